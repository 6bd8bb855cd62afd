//! Calls tmux. Each call has a time limit, uses no shell, and passes data only as arguments.
//!
//! The agent's environment names the server, but not the pane: this module lists the server's
//! panes, and takes the one whose process tree holds the agent.

use super::{Typed, reads_keys};
use baton_core::process::Process;
use baton_machine::process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A call takes milliseconds. After this, the server hangs.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The fields of a pane. None contains a blank. An older tmux does not know the last one and prints
/// nothing for it.
const PANE_FORMAT: &str = "#{pane_id} #{pane_pid} #{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_input_off} #{pane_tty} #{bracket_paste_flag}";

/// A server, by its socket.
#[derive(Debug)]
pub(super) struct Server {
    socket: PathBuf,
}

/// A pane in which the agent reads keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pane {
    id: String,
    pid: i32,
    pub(super) tty: PathBuf,
}

/// What a pane showed, with what tmux compares to see whether it has changed.
#[derive(Debug)]
pub(super) struct PaneSnapshot {
    pub(super) screen: String,
    /// The format that tmux fills in.
    format: String,
    /// What tmux filled in for this snapshot.
    state: String,
}

impl PaneSnapshot {
    /// Whether tmux itself finds the line on the screen, so that it notices when the line is gone.
    pub(super) fn finds_line(&self) -> bool {
        self.row_of_line().is_some_and(|row| row > 0)
    }

    /// Whether this tmux can search screens. Old versions can't.
    pub(super) fn can_search(&self) -> bool {
        self.row_of_line().is_some()
    }

    fn row_of_line(&self) -> Option<u32> {
        self.state.rsplit(' ').next()?.parse().ok()
    }
}

/// Whether tmux acted. It does so only if the pane is unchanged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acted {
    Done,
    Changed,
}

impl Server {
    /// The server that a process's environment names.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let named = process::variable(pid, "TMUX")?;
        // The socket, the server's process and the session, separated by commas.
        let socket = named.to_str()?.rsplitn(3, ',').nth(2)?;
        (!socket.is_empty()).then(|| Self { socket: PathBuf::from(socket) })
    }

    /// The pane whose first process is above the agent, if the agent reads its keys and nothing in
    /// tmux takes them first.
    pub(super) fn pane_of(&self, agent: Process) -> Result<Pane, Typed> {
        let printed = self.call(["list-panes", "-a", "-F", PANE_FORMAT]).map_err(|error| match error {
            // No tmux, no server, no such socket: nothing to type into.
            CallError::Refused(_) => Typed::NoPane,
            CallError::Silent => Typed::Failed("tmux does not answer".to_owned()),
        })?;
        let above = process::lineage(agent.pid);
        let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let pane = printed.lines().map(fields).find(|fields| {
            fields.get(1).and_then(|pid| pid.parse().ok()).is_some_and(|pid: i32| above.contains(&pid))
        });
        pane_from(&pane.ok_or(Typed::NoPane)?)
            .and_then(|pane| if reads_keys(agent, &pane.tty) { Ok(pane) } else { Err(Typed::NoPane) })
    }

    /// The pane's screen with the positions of its cursor and of the line. One call, so that all
    /// are from one instant.
    pub(super) fn snapshot(&self, pane: &Pane, line: &str) -> Result<PaneSnapshot, Typed> {
        let format = format!(
            "#{{pane_pid}} #{{pane_dead}} #{{pane_in_mode}} #{{pane_synchronized}} #{{cursor_x}} #{{cursor_y}} #{{C/r:{}}}",
            pattern(line)
        );
        let target = pane.id.as_str();
        let ask =
            ["display-message", "-p", "-t", target, &format, ";", "capture-pane", "-e", "-p", "-t", target];
        let printed = self.call(ask).map_err(failed)?;
        let (state, screen) = printed.split_once('\n').unwrap_or((&printed, ""));
        Ok(PaneSnapshot { screen: screen.to_owned(), state: state.to_owned(), format })
    }

    /// Pastes the line as a bracketed paste, if the pane is unchanged.
    pub(super) fn paste(&self, pane: &Pane, snapshot: &PaneSnapshot, line: &str) -> Result<Acted, Typed> {
        let buffer = format!("baton-{}", std::process::id());
        self.call(["set-buffer", "-b", &buffer, "--", line]).map_err(failed)?;
        let pasted =
            self.if_unchanged(pane, snapshot, &format!("paste-buffer -p -d -b {buffer} -t {}", pane.id));
        if !matches!(pasted, Ok(Acted::Done)) {
            // The buffer is already gone if tmux pasted after all.
            self.call(["delete-buffer", "-b", &buffer]).ok();
        }
        pasted
    }

    /// Presses Enter, if the pane is unchanged.
    pub(super) fn press_enter(&self, pane: &Pane, snapshot: &PaneSnapshot) -> Result<Acted, Typed> {
        self.if_unchanged(pane, snapshot, &format!("send-keys -t {} Enter", pane.id))
    }

    /// tmux compares and acts in one step, by the pane's output that it has read so far. `command`
    /// contains only names that baton made.
    fn if_unchanged(&self, pane: &Pane, snapshot: &PaneSnapshot, command: &str) -> Result<Acted, Typed> {
        let same = format!("#{{==:{},{}}}", snapshot.format, snapshot.state);
        let otherwise = format!("display-message -p -t {} changed", pane.id);
        let printed =
            self.call(["if-shell", "-F", "-t", &pane.id, &same, command, &otherwise]).map_err(failed)?;
        Ok(if printed.is_empty() { Acted::Done } else { Acted::Changed })
    }

    fn call<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String, CallError> {
        let mut command = Command::new("tmux");
        // -u: tmux prints a screen unchanged in every locale.
        command.args([OsStr::new("-u"), OsStr::new("-S"), self.socket.as_os_str()]).args(arguments);
        command.env_remove("TMUX").env_remove("TMUX_PANE");
        bounded(command, CALL_TIMEOUT)
    }
}

/// Why a call failed.
#[derive(Debug)]
enum CallError {
    /// tmux reported an error or could not be started.
    Refused(String),
    /// tmux did not answer in time.
    Silent,
}

fn failed(error: CallError) -> Typed {
    Typed::Failed(match error {
        CallError::Refused(why) => format!("tmux: {}", why.trim()),
        CallError::Silent => "tmux does not answer".to_owned(),
    })
}

/// A pane by the fields of [`PANE_FORMAT`], unless something in tmux would take the keys first.
fn pane_from(fields: &[String]) -> Result<Pane, Typed> {
    let [id, pid, dead, in_mode, synchronized, input_off, tty, brackets @ ..] = fields else {
        return Err(Typed::NoPane);
    };
    let known_id = id.strip_prefix('%').is_some_and(|number| number.parse::<u32>().is_ok());
    let (Ok(pid), true, "0") = (pid.parse(), known_id, dead.as_str()) else { return Err(Typed::NoPane) };
    if in_mode != "0" {
        return Err(Typed::CopyMode);
    }
    if synchronized != "0" || input_off != "0" {
        return Err(Typed::Shared);
    }
    // Without brackets, a paste is a series of key presses.
    if brackets.first().is_some_and(|flag| flag == "0") {
        return Err(Typed::Unknown);
    }
    Ok(Pane { id: id.clone(), pid, tty: Path::new(tty).to_owned() })
}

/// The line as a pattern for tmux to search a screen for. Letters and digits stay. Other
/// characters, which could have a meaning in tmux formats, match any character. It is short enough
/// for one line of a narrow pane, and every line of baton begins with it.
fn pattern(line: &str) -> String {
    line.chars().take(8).map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '.' }).collect()
}

/// Runs a command, and reads what it prints until it ends.
fn bounded(mut command: Command, limit: Duration) -> Result<String, CallError> {
    let refused = |error: io::Error| CallError::Refused(error.to_string());
    let (mut output, input) = io::pipe().map_err(refused)?;
    let errors = input.try_clone().map_err(refused)?;
    let mut child = command.stdin(Stdio::null()).stdout(input).stderr(errors).spawn().map_err(refused)?;
    // Closes our write ends of the pipe, so that it ends with the child.
    drop(command);
    let end = Instant::now() + limit;
    let mut printed = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let ready = poll(&mut [PollFd::new(&output, PollFlags::IN)], timeout.as_ref());
        match ready {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(count) if count > 0 => {}
            _ => {
                // The child may have ended by itself meanwhile.
                child.kill().ok();
                child.wait().ok();
                return Err(CallError::Silent);
            }
        }
        match output.read(&mut piece).map_err(refused)? {
            0 => break,
            length => printed.extend_from_slice(&piece[..length]),
        }
    }
    let printed = String::from_utf8_lossy(&printed).into_owned();
    match child.wait() {
        Ok(status) if status.success() => Ok(printed),
        Ok(_) => Err(CallError::Refused(printed)),
        Err(error) => Err(refused(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_pane_that_takes_keys_for_itself_or_for_others_is_refused() {
        let pane = |line: &str| pane_from(&fields(line));
        let known = pane("%3 41 0 0 0 0 /dev/pts/7 ").unwrap();
        assert_eq!(known, Pane { id: "%3".to_owned(), pid: 41, tty: PathBuf::from("/dev/pts/7") });
        assert!(pane("%3 41 0 0 0 0 /dev/pts/7 1").is_ok());
        assert_eq!(pane("%3 41 0 0 0 0 /dev/pts/7 0"), Err(Typed::Unknown));
        assert_eq!(pane("%3 41 1 0 0 0 /dev/pts/7 "), Err(Typed::NoPane));
        assert_eq!(pane("%3 41 0 1 0 0 /dev/pts/7 "), Err(Typed::CopyMode));
        assert_eq!(pane("%3 41 0 0 1 0 /dev/pts/7 "), Err(Typed::Shared));
        assert_eq!(pane("%3 41 0 0 0 1 /dev/pts/7 "), Err(Typed::Shared));
        assert_eq!(pane("kill-server 41 0 0 0 0 /dev/pts/7 "), Err(Typed::NoPane));
        assert_eq!(pane("%3"), Err(Typed::NoPane));
    }

    #[test]
    fn a_pattern_means_nothing_to_tmux() {
        assert_eq!(pattern("[baton] Mail is"), ".baton..");
        assert_eq!(pattern("#{x,y}:z"), "..x.y..z");
    }

    #[test]
    fn a_call_that_hangs_is_ended() {
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let start = Instant::now();
        assert!(matches!(bounded(sleep, Duration::from_millis(50)), Err(CallError::Silent)));
        assert!(start.elapsed() < Duration::from_secs(90));
    }

    #[test]
    fn a_call_returns_its_output_or_its_failure() {
        let mut echo = Command::new("echo");
        echo.arg("hello");
        assert_eq!(bounded(echo, CALL_TIMEOUT).unwrap(), "hello\n");
        assert!(matches!(bounded(Command::new("false"), CALL_TIMEOUT), Err(CallError::Refused(_))));
        assert!(matches!(bounded(Command::new("/no/such/tmux"), CALL_TIMEOUT), Err(CallError::Refused(_))));
    }
}
