//! The one server that all jobs of a home share, and the process that keeps it.
//!
//! Two servers on one data folder of OpenCode answer the same prompt twice, so there is one. Who may do what is decided by kernel locks on three files
//! of a folder, never by a file being there:
//!
//! | file | held | by |
//! |---|---|---|
//! | `users` | shared | each job, for as long as it needs the server |
//! | `users` | exclusively | the keeper, once nobody needs the server: then it ends it |
//! | `start` | exclusively | the job that looks for the server, and starts a keeper if there is none |
//! | `keeper` | exclusively | the keeper, for life |
//!
//! `server.json` says where the server is and with which password. If the keeper is killed the server goes on; the next job starts a keeper that
//! takes it over, and the last job ends it if none came. If the server is killed the keeper ends too.
//!
//! The server has the environment of the job that came first: its folders, its keys, the depth of jobs, but not the id of that job.

use super::super::Task;
use super::api::{Api, Failure, USER};
use crate::processes;
use baton_core::job::Fault;
use baton_core::{Code, Error};
use baton_mail::process;
use baton_store::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The hidden command of our own program that runs a keeper: `baton keep-server --folder FOLDER --program PROGRAM`.
pub const COMMAND: &str = "keep-server";
/// How long a job waits for a server, from nothing to one that answers; a keeper gives up a little earlier, and says why.
const START_LIMIT: Duration = Duration::from_secs(30);
const KEEPER_LIMIT: Duration = Duration::from_secs(28);
/// A server that does not answer for so long is hung.
const HEALTH_LIMIT: Duration = Duration::from_secs(10);
/// How long doctor waits for one.
const DOCTOR_LIMIT: Duration = Duration::from_secs(3);
/// How long a server may take to end its turns, and then to end.
const END_LIMIT: Duration = Duration::from_secs(3);
/// What a killed server left running has so long to go by itself.
const LEFTOVERS: Duration = Duration::from_millis(500);
/// How often a server that starts is asked whether it is there.
const START_INTERVAL: Duration = Duration::from_millis(50);
/// How many ports are tried: between finding a free one and the server taking it somebody else may.
const PORTS: usize = 3;
/// What one job alone carries.
const OF_ONE_JOB: [&str; 2] = [processes::JOB, processes::READ_ONLY];

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) password: String,
    /// The process that was started; also the number of its group.
    pub(super) process: Process,
}

/// A server that is needed. It stays until nobody holds one of these.
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

/// The server that runs now, if one does and it takes its password. Nothing is started.
pub(super) fn running(task: &Task, limit: Duration) -> Option<Server> {
    let server = read(&folder(task))?;
    (process::is_alive(server.process) && api(&server).version(limit).is_ok()).then_some(server)
}

/// Finds the server or has it started, and holds it.
pub(super) fn hold(task: &Task) -> Result<Held, Fault> {
    let end = Instant::now() + START_LIMIT;
    let folder = folder(task);
    let failed = |error: io::Error| could_not(&error.to_string(), &folder);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let users = locked(&folder.join("users"), FlockOperation::LockShared, end).map_err(failed)?;
    let start = locked(&folder.join("start"), FlockOperation::LockExclusive, end).map_err(failed)?;
    let found = read(&folder).filter(|server| process::is_alive(server.process));
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
    let environment = task.environment.iter().filter(|(name, _)| !OF_ONE_JOB.iter().any(|own| name == own));
    command.env_clear().envs(environment.cloned());
    // It must not hold anybody's folder.
    command.current_dir(task.user_home().filter(|home| home.is_dir()).unwrap_or(Path::new("/")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut keeper = command.spawn().map_err(|error| format!("{}: {error}", task.baton.display()))?;
    let (tell, told) = mpsc::channel();
    let output = keeper.stdout.take();
    // It outlives its word by as long as anybody needs the server.
    thread::spawn(move || {
        let lines =
            output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
        for line in lines {
            if let Some(word) = line.strip_prefix(WORD) {
                tell.send(word.to_owned()).ok();
                break;
            }
        }
        drop(tell);
        keeper.wait().ok();
    });
    match told.recv_timeout(limit) {
        Ok(word) if word == READY => Ok(()),
        Ok(reason) => Err(reason),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("it did not answer within {} s", START_LIMIT.as_secs()))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("its keeper ended at once".to_owned()),
    }
}

/// How a keeper's only line begins.
const WORD: &str = "keeper: ";
const READY: &str = "ready";

/// Keeps the server of that folder until nobody needs it: takes over one that runs, or starts one. Its environment and its folder are the server's.
pub fn run(folder: &Path, program: &Path) -> Result<(), Error> {
    // Away from the terminal and the group of whoever started us; a leader is away already.
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
    // The keeper of a server that has just ended may still be on its way out.
    let life = locked(&folder.join("keeper"), FlockOperation::LockExclusive, end).map_err(words)?;
    let old = read(folder).filter(|server| process::is_alive(server.process));
    let (server, child) = match old {
        Some(old) if api(&old).version(HEALTH_LIMIT).is_ok() => (old, None),
        old => {
            if let Some(hung) = old {
                end_server(folder, &hung);
            }
            let (server, child) = start(folder, program, end)?;
            write(folder, &server).map_err(words)?;
            (server, Some(child))
        }
    };
    say(READY);
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

/// The word of a keeper to whoever started it; it may be gone.
fn say(word: &str) {
    let mut out = io::stdout();
    writeln!(out, "{WORD}{word}").and_then(|()| out.flush()).ok();
}

/// Waits for the first of two: nobody needs the server (then the lock that says so is kept), or the server has ended.
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
    for _ in 0..PORTS {
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
    let log = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(folder.join("server.log"))?;
    let mut command = Command::new(program);
    command.args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()]);
    command.env(processes::SERVER, mark(folder));
    command.env("OPENCODE_SERVER_USERNAME", USER).env("OPENCODE_SERVER_PASSWORD", password);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    command.spawn()
}

fn wait_until_it_answers(server: &Server, child: &mut Child, end: Instant) -> Result<(), String> {
    let api = api(server);
    // A call that comes while it is about to listen is never answered, so the first ones are short.
    let mut patience = Duration::from_millis(500);
    loop {
        let left = end.saturating_duration_since(Instant::now());
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

/// Ends a server: its turns, which ends the commands that run in them, then itself. It is told by its start from another one with its number.
fn end_server(folder: &Path, server: &Server) {
    if process::is_alive(server.process) {
        end_living(server);
    }
    // One that was killed leaves the commands of its turns behind.
    processes::end_of_server(&mark(folder), LEFTOVERS);
}

/// By what the processes of a server are known.
fn mark(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn end_living(server: &Server) {
    api(server).post("/global/dispose", &Value::Null, END_LIMIT).ok();
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

/// Stops the turn of a session that nobody watches any more; and the server, or what it left, if its keeper was killed too.
pub(super) fn abandon(task: &Task, session: Option<&str>) {
    if let Some((session, server)) = session.zip(running(task, END_LIMIT)) {
        // Refused or not: whoever asks reads what it has afterwards.
        drop(api(&server).post(&format!("/session/{session}/abort"), &json!({}), END_LIMIT));
    }
    end_if_nobody_keeps_it(&folder(task));
}

/// How the server of one folder stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It answers, and takes the password that is written down. Its version.
    Answers(String),
    /// It runs and does not answer so.
    Silent(String),
    /// It is gone, and only written down.
    Gone,
}

/// The servers that are written down in a home, each asked whether it answers; for doctor.
pub fn servers(home: &Path) -> Vec<(PathBuf, Standing)> {
    let folders =
        fs::read_dir(home.join("opencode")).into_iter().flatten().flatten().map(|entry| entry.path());
    folders
        .filter_map(|folder| {
            let server = read(&folder)?;
            let standing = match process::is_alive(server.process) {
                false => Standing::Gone,
                true => match api(&server).version(DOCTOR_LIMIT) {
                    Ok(version) => Standing::Answers(version),
                    Err(failure) => Standing::Silent(failure.in_words()),
                },
            };
            Some((folder, standing))
        })
        .collect()
}

/// Ends the server of a folder and forgets it, if nobody keeps it and no job needs it.
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

/// Waits until a process has ended, for at most so long.
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

fn api(server: &Server) -> Api {
    Api::new(server.port, &server.password, "/")
}

fn free_port() -> io::Result<u16> {
    // Asked for port 0 it would take 4096, where the user may expect his own.
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|address| address.port())
}

fn password() -> io::Result<String> {
    let mut bytes = [0; 24];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read(folder: &Path) -> Option<Server> {
    let document: Value = serde_json::from_slice(&fs::read(folder.join("server.json")).ok()?).ok()?;
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
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(document.to_string().as_bytes())?;
    fs::rename(new, folder.join("server.json"))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// The file with an exclusive lock, or nothing if somebody holds one.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The file with a lock, by then at the latest.
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
