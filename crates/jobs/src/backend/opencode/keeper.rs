//! The one server that all jobs of a home share, and the process that keeps it.
//!
//! Two servers on one data folder of OpenCode answer the same prompt twice, so there is only one.
//! Kernel locks on three files of a folder decide what each process may do, never a file's mere
//! existence:
//!
//! | file | held | by |
//! |---|---|---|
//! | `users` | shared | each job, for as long as it needs the server |
//! | `users` | exclusively | the keeper, once no job needs the server: then it ends the server |
//! | `start` | exclusively | the job that looks for the server, and starts a keeper if there is none |
//! | `keeper` | exclusively | the keeper, for life |
//!
//! `server.json` has the port and the password of the server. If the keeper is killed, the server
//! goes on: the next job starts a keeper that takes it over, or the last job ends the server. If
//! the server is killed, the keeper ends too.
//!
//! The server has the environment of the first job: its folders, its keys and the nesting depth,
//! but not the id of that job.

use super::super::Task;
use super::api::{Api, Failure, USER_NAME};
use super::listener::{self, Owner};
use crate::processes;
use baton_core::job::Fault;
use baton_core::process::Process;
use baton_core::{Code, Error, limits};
use baton_machine::own;
use baton_machine::process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The hidden command of baton that runs a keeper: `baton keep-server --folder FOLDER --program
/// PROGRAM`.
pub const COMMAND: &str = "keep-server";
/// How long a job waits for a server that answers. A keeper gives up a little earlier, and says
/// why.
const START_LIMIT: Duration = Duration::from_secs(30);
const KEEPER_LIMIT: Duration = Duration::from_secs(28);
/// A server that does not answer for this long is hung.
const HEALTH_LIMIT: Duration = Duration::from_secs(10);
/// How long doctor waits for an answer.
const DOCTOR_LIMIT: Duration = Duration::from_secs(3);
/// How long a server may take to end its turns, and then to end.
const END_LIMIT: Duration = Duration::from_secs(3);
/// How long the leftovers of a killed server may take to end after SIGTERM.
const LEFTOVERS_LIMIT: Duration = Duration::from_millis(500);
/// How often a starting server is asked whether it is ready.
const START_INTERVAL: Duration = Duration::from_millis(50);
/// How many ports are tried. Another process may take a free one before the server does.
const MAX_PORTS: usize = 3;
/// Variables that belong to one job alone.
const JOB_VARIABLES: [&str; 2] = [processes::JOB_VARIABLE, processes::READ_ONLY_VARIABLE];

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) password: String,
    /// The process that was started; also the number of its group.
    pub(super) process: Process,
}

/// A server that a job needs. The server stays as long as one of these exists.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) server: Server,
    pub(super) version: String,
    folder: PathBuf,
    /// The shared lock on `users`.
    users: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        flock(&self.users, FlockOperation::Unlock).ok();
        end_if_nobody_keeps_it(&self.folder);
    }
}

/// The folder of the server for a task.
pub(super) fn folder(task: &Task) -> PathBuf {
    task.home.join("opencode").join(name_of(&data_folder(task)))
}

/// Where OpenCode keeps its sessions.
pub(super) fn data_folder(task: &Task) -> PathBuf {
    let set = |name| task.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| Some(task.user_home()?.join(".local/share")));
    data.unwrap_or_default().join("opencode")
}

/// A short name for a path: FNV-1a, 64 bits.
fn name_of(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The running server, if there is one and it accepts its password. Starts nothing.
pub(super) fn running(task: &Task, limit: Duration) -> Option<Server> {
    let server = read(&folder(task))?;
    (is_ours(&server) && api(&server).version(limit).is_ok()).then_some(server)
}

/// Finds the server or starts it, and holds it.
pub(super) fn hold(task: &Task) -> Result<Held, Fault> {
    let end = Instant::now() + START_LIMIT;
    let folder = folder(task);
    let failed = |error: io::Error| could_not(&error.to_string(), &folder);
    own::folder(&folder).map_err(failed)?;
    let users = locked(&folder.join("users"), FlockOperation::LockShared, end).map_err(failed)?;
    let start = locked(&folder.join("start"), FlockOperation::LockExclusive, end).map_err(failed)?;
    let found = read(&folder).filter(is_ours);
    let found = found.and_then(|server| Some((api(&server).version(HEALTH_LIMIT).ok()?, server)));
    let is_kept = try_lock(&folder.join("keeper")).map_err(failed)?.is_none();
    let (version, server) = match found {
        Some(found) if is_kept => found,
        _ => {
            let left = end.saturating_duration_since(Instant::now());
            start_keeper(task, &folder, left).map_err(|reason| could_not(&reason, &folder))?;
            let server = read(&folder).ok_or_else(|| could_not("it is gone again", &folder))?;
            let version = api(&server).version(HEALTH_LIMIT);
            (version.map_err(|failure| could_not(&failure.in_words(), &folder))?, server)
        }
    };
    drop(start);
    Ok(Held { server, version, folder, users })
}

fn could_not(reason: &str, folder: &Path) -> Fault {
    let error = Error::new(Code::BackendStart, format!("no server of OpenCode: {reason}"));
    error.hint(format!("its log is {}", folder.join("server.log").display())).into()
}

/// Starts a keeper and waits until its server answers.
fn start_keeper(task: &Task, folder: &Path, limit: Duration) -> Result<(), String> {
    let mut command = Command::new(&task.baton);
    command.arg(COMMAND).arg("--folder").arg(folder).arg("--program").arg(&task.program);
    let environment =
        task.environment.iter().filter(|(name, _)| !JOB_VARIABLES.iter().any(|own| name == own));
    command.env_clear().envs(environment.cloned());
    // It must not keep the job's folder busy.
    command.current_dir(task.user_home().filter(|home| home.is_dir()).unwrap_or(Path::new("/")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut keeper = command.spawn().map_err(|error| format!("{}: {error}", task.baton.display()))?;
    let (tell, told) = mpsc::channel();
    let output = keeper.stdout.take();
    // The keeper lives on after its one line, as long as any job needs the server.
    thread::spawn(move || {
        let lines =
            output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
        for line in lines {
            if let Some(word) = line.strip_prefix(KEEPER_PREFIX) {
                tell.send(word.to_owned()).ok();
                break;
            }
        }
        drop(tell);
        keeper.wait().ok();
    });
    match told.recv_timeout(limit) {
        Ok(word) if word == READY_WORD => Ok(()),
        Ok(reason) => Err(reason),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("it did not answer within {} s", START_LIMIT.as_secs()))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("its keeper ended at once".to_owned()),
    }
}

/// The beginning of a keeper's only line.
const KEEPER_PREFIX: &str = "keeper: ";
const READY_WORD: &str = "ready";

/// Keeps the server of that folder until no job needs it: takes over a running one, or starts one.
/// The server inherits this process's environment and folder.
pub fn run(folder: &Path, program: &Path) -> Result<(), Error> {
    // Leaves the terminal and the group of the process that started it. If it fails, this process
    // leads a session already.
    rustix::process::setsid().ok();
    let kept = keep(folder, program);
    if let Err(reason) = &kept {
        say(reason);
    }
    kept.map_err(|reason| Error::new(Code::BackendStart, reason))
}

fn keep(folder: &Path, program: &Path) -> Result<(), String> {
    let words = |error: io::Error| error.to_string();
    let end = Instant::now() + KEEPER_LIMIT;
    // The keeper of a server that has just ended may still be ending.
    let life = locked(&folder.join("keeper"), FlockOperation::LockExclusive, end).map_err(words)?;
    let old = read(folder).filter(|server| process::is_alive(server.process));
    let (server, child) = match old {
        Some(old) if is_ours(&old) && api(&old).version(HEALTH_LIMIT).is_ok() => (old, None),
        old => {
            if let Some(hung) = old {
                end_server(folder, &hung);
            }
            let (server, child) = start(folder, program, end)?;
            write(folder, &server).map_err(words)?;
            (server, Some(child))
        }
    };
    say(READY_WORD);
    let users = wait_until_unneeded(folder, &server)?;
    end_server(folder, &server);
    fs::remove_file(folder.join("server.json")).ok();
    drop(users);
    if let Some(mut child) = child {
        child.wait().ok();
    }
    drop(life);
    Ok(())
}

/// A keeper's line to the process that started it, which may be gone.
#[expect(clippy::disallowed_methods, reason = "a pipe to the program that started it")]
fn say(word: &str) {
    let mut out = io::stdout();
    writeln!(out, "{KEEPER_PREFIX}{word}").and_then(|()| out.flush()).ok();
}

/// Waits until no job needs the server (then it keeps the lock that says so), or the server has
/// ended.
fn wait_until_unneeded(folder: &Path, server: &Server) -> Result<Option<File>, String> {
    let users = open(&folder.join("users")).map_err(|error| error.to_string())?;
    let (tell, told) = mpsc::channel();
    let ended = tell.clone();
    thread::spawn(move || {
        while flock(&users, FlockOperation::LockExclusive) == Err(rustix::io::Errno::INTR) {}
        tell.send(Some(users)).ok();
    });
    if let Some(ending) = process::ending(server.process) {
        thread::spawn(move || {
            wait_for(&ending, None);
            ended.send(None).ok();
        });
    } else if !process::is_alive(server.process) {
        return Ok(None);
    }
    Ok(told.recv().unwrap_or_default())
}

/// Starts a server on a free port with a password of its own, and waits until it answers.
fn start(folder: &Path, program: &Path, end: Instant) -> Result<(Server, Child), String> {
    let mut last = String::new();
    for _ in 0..MAX_PORTS {
        let password = password().map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let mut child = spawn(folder, program, port, &password)
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let pid = child.id().cast_signed();
        let process = process::find(pid).unwrap_or(Process { pid, start: 0 });
        let server = Server { port, password, process };
        match wait_until_it_answers(&server, &mut child, end) {
            Ok(()) => return Ok((server, child)),
            Err(reason) => {
                end_server(folder, &server);
                child.wait().ok();
                last = reason;
            }
        }
        if Instant::now() >= end {
            break;
        }
    }
    Err(last)
}

fn spawn(folder: &Path, program: &Path, port: u16, password: &str) -> io::Result<Child> {
    let log = own::rewrite(&folder.join("server.log"))?;
    let mut command = Command::new(program);
    command.args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()]);
    command.env(processes::SERVER_VARIABLE, mark(folder));
    command.env("OPENCODE_SERVER_USERNAME", USER_NAME).env("OPENCODE_SERVER_PASSWORD", password);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    command.spawn()
}

pub(super) fn wait_until_it_answers(server: &Server, child: &mut Child, end: Instant) -> Result<(), String> {
    let api = api(server);
    // A call that comes while it is about to listen is never answered, so the first ones are short.
    let mut patience = Duration::from_millis(500);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Nothing is sent, above all not the password, before it is known which process listens.
        match listener::owner(server.port, server.process) {
            Owner::Nobody if !left.is_zero() && matches!(child.try_wait(), Ok(None)) => {
                thread::sleep(START_INTERVAL);
                continue;
            }
            Owner::Another => return Err(format!("another process took port {}", server.port)),
            Owner::Nobody | Owner::Server => {}
        }
        match api.version(left.min(patience).max(START_INTERVAL)) {
            Ok(_) => return Ok(()),
            Err(Failure::NoSuchCall) => return Err("this version has no /global/health".to_owned()),
            Err(Failure::Broken(_)) => patience *= 2,
            Err(_) => {}
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it ended at once: {status}"));
        }
        if left.is_zero() {
            return Err(format!("it did not answer within {} s", KEEPER_LIMIT.as_secs()));
        }
        thread::sleep(START_INTERVAL);
    }
}

/// Ends a server: first its turns, which ends the commands that run in them, then itself. Its start
/// time tells it from another process with its number.
fn end_server(folder: &Path, server: &Server) {
    if process::is_alive(server.process) {
        end_living(server);
    }
    // A server that was killed leaves the commands of its turns behind.
    processes::end_of_server(&mark(folder), LEFTOVERS_LIMIT);
}

/// The mark of a server's processes.
fn mark(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn end_living(server: &Server) {
    if is_ours(server) {
        api(server).post("/global/dispose", &Value::Null, END_LIMIT).ok();
    }
    for signal in [Signal::TERM, Signal::KILL] {
        let Some(ending) = process::ending(server.process) else { return };
        if let Some(group) = Pid::from_raw(server.process.pid) {
            rustix::process::kill_process_group(group, signal).ok();
        }
        if wait_for(&ending, Some(END_LIMIT)) {
            return;
        }
    }
}

/// Stops the turn of a session without a worker. Also ends the server, or what it left, if its
/// keeper was killed too.
pub(super) fn abandon(task: &Task, session: Option<&str>) {
    if let Some((session, server)) = session.zip(running(task, END_LIMIT)) {
        // Even if it is refused, the caller reads the state afterwards.
        drop(api(&server).post(&format!("/session/{session}/abort"), &json!({}), END_LIMIT));
    }
    end_if_nobody_keeps_it(&folder(task));
}

/// The state of one folder's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperStatus {
    /// It answers, and accepts the recorded password. Its version.
    Answers(String),
    /// It runs but does not answer like that.
    Silent(String),
    /// It is gone, but still recorded.
    Gone,
}

/// The recorded servers of a home, each asked whether it answers; for doctor.
pub fn servers(home: &Path) -> Vec<(PathBuf, KeeperStatus)> {
    let folders =
        fs::read_dir(home.join("opencode")).into_iter().flatten().flatten().map(|entry| entry.path());
    folders
        .filter_map(|folder| {
            let server = read(&folder)?;
            let status = match process::is_alive(server.process) {
                false => KeeperStatus::Gone,
                true if !is_ours(&server) => {
                    KeeperStatus::Silent("another process listens at its port".to_owned())
                }
                true => match api(&server).version(DOCTOR_LIMIT) {
                    Ok(version) => KeeperStatus::Answers(version),
                    Err(failure) => KeeperStatus::Silent(failure.in_words()),
                },
            };
            Some((folder, status))
        })
        .collect()
}

/// Ends the server of a folder and removes its record, if it has no keeper and no job needs it.
pub fn forget(folder: &Path) {
    end_if_nobody_keeps_it(folder);
}

/// Ends a server that has neither a keeper nor a user: its keeper was killed.
fn end_if_nobody_keeps_it(folder: &Path) {
    let Ok(Some(_life)) = try_lock(&folder.join("keeper")) else { return };
    let Ok(Some(_users)) = try_lock(&folder.join("users")) else { return };
    if let Some(server) = read(folder) {
        end_server(folder, &server);
        fs::remove_file(folder.join("server.json")).ok();
    }
}

/// Waits until a process has ended, up to a limit.
fn wait_for(ending: &OwnedFd, limit: Option<Duration>) -> bool {
    let end = limit.map(|limit| Instant::now() + limit);
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(ending, PollFlags::IN)], left.as_ref()) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Whether the process that listens at a server's port may get its password: another process may
/// have the port of a server that is gone.
fn is_ours(server: &Server) -> bool {
    process::is_alive(server.process) && listener::owner(server.port, server.process) == Owner::Server
}

fn api(server: &Server) -> Api {
    Api::new(server.port, &server.password, "/")
}

fn free_port() -> io::Result<u16> {
    // With port 0 it would take 4096, where users may expect their own server.
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|address| address.port())
}

fn password() -> io::Result<String> {
    let bytes = baton_machine::random::bytes::<24>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read(folder: &Path) -> Option<Server> {
    let document: Value =
        serde_json::from_slice(&own::read(&folder.join("server.json"), limits::OWN_FILE_BYTES).ok()?).ok()?;
    Some(Server {
        port: document["port"].as_u64()?.try_into().ok()?,
        password: document["password"].as_str()?.to_owned(),
        process: Process {
            pid: document["pid"].as_i64()?.try_into().ok()?,
            start: document["start"].as_u64()?,
        },
    })
}

fn write(folder: &Path, server: &Server) -> io::Result<()> {
    let Process { pid, start } = server.process;
    let document = json!({"port": server.port, "password": server.password, "pid": pid, "start": start});
    let new = folder.join("server.json.new");
    let mut file = own::rewrite(&new)?;
    file.write_all(document.to_string().as_bytes())?;
    fs::rename(new, folder.join("server.json"))
}

fn open(path: &Path) -> io::Result<File> {
    own::lock_file(path)
}

/// The file with an exclusive lock, or `None` if another process holds one.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The file with a lock, or an error after `end`.
fn locked(path: &Path, how: FlockOperation, end: Instant) -> io::Result<File> {
    let file = open(path)?;
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut result = flock(&file, how);
        while result == Err(rustix::io::Errno::INTR) {
            result = flock(&file, how);
        }
        tell.send(result.map(|()| file)).ok();
    });
    match told.recv_timeout(end.saturating_duration_since(Instant::now())) {
        Ok(result) => Ok(result?),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("{} is held", path.display()))),
    }
}
