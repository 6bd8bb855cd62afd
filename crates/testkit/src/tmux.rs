//! One terminal in which an interactive agent runs, driven through a separate tmux server.
//!
//! The server's socket is in the sandbox, so the user's tmux is never touched, and it ends with the
//! value. One session, one window, one pane; the pane stays after its program ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::sandbox::Sandbox;
use crate::wait;

/// Size of the terminal: wide enough that agents don't wrap short lines.
const TERMINAL_SIZE: (u16, u16) = (160, 50);

/// Between text and Enter: agents take both at once for a paste.
const ENTER_DELAY: Duration = Duration::from_millis(400);

/// A tmux call itself takes milliseconds, on an idle machine.
const CALL_LIMIT: Duration = crate::wait::HANG;

/// The limit for a program to draw what was typed.
const ECHO_LIMIT: Duration = Duration::from_secs(30);

/// A running terminal.
#[derive(Debug)]
pub struct Tmux<'a> {
    sandbox: &'a Sandbox,
    socket: PathBuf,
}

/// The screen did not show the wanted text.
#[derive(Debug)]
pub struct NotShown {
    /// What was waited for.
    pub wanted: String,
    /// What was there instead.
    pub screen: String,
}

impl std::fmt::Display for NotShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the screen does not show {:?}, but:\n{}", self.wanted, self.screen)
    }
}

impl std::error::Error for NotShown {}

impl<'a> Tmux<'a> {
    /// Starts `command` (its program, arguments, environment and folder) in a new terminal.
    pub fn start(sandbox: &'a Sandbox, name: &str, command: &Command) -> Tmux<'a> {
        // A separate socket: the server of an earlier terminal of that name may still be ending.
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let terminal = Tmux { sandbox, socket: sandbox.path(format!("tmp/{name}-{number}.tmux")) };
        let mut arguments: Vec<OsString> = ["new-session", "-d", "-s", "test"].map(OsString::from).to_vec();
        for size in [format!("-x{}", TERMINAL_SIZE.0), format!("-y{}", TERMINAL_SIZE.1)] {
            arguments.push(size.into());
        }
        if let Some(folder) = command.get_current_dir() {
            arguments.extend(["-c".into(), folder.into()]);
        }
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                let mut pair = name.to_owned();
                pair.push("=");
                pair.push(value);
                arguments.extend(["-e".into(), pair]);
            }
        }
        arguments.push("--".into());
        arguments.push(command.get_program().to_owned());
        arguments.extend(command.get_args().map(ToOwned::to_owned));
        arguments.extend([";", "set-option", "remain-on-exit", "on"].map(OsString::from));
        terminal.call(arguments);
        terminal
    }

    fn call(&self, arguments: impl IntoIterator<Item = OsString>) -> String {
        let mut command = self.sandbox.command("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments);
        self.sandbox.run(&mut command, CALL_LIMIT).expect_ok().stdout
    }

    /// What is on the screen now.
    pub fn screen(&self) -> String {
        self.call(["capture-pane", "-p", "-t", "test"].map(OsString::from))
    }

    /// Waits until the screen shows `wanted` and returns it.
    pub fn wait_for(&self, wanted: &str, limit: Duration) -> Result<String, NotShown> {
        self.wait_until(wanted, limit, |screen| screen.contains(wanted))
    }

    /// Waits until the screen satisfies `shown`; `wanted` describes that in words.
    pub fn wait_until(
        &self,
        wanted: &str,
        limit: Duration,
        shown: impl Fn(&str) -> bool,
    ) -> Result<String, NotShown> {
        let found = wait::poll(limit, || Some(self.screen()).filter(|screen| shown(screen)));
        found.ok_or_else(|| NotShown { wanted: wanted.to_owned(), screen: self.screen() })
    }

    /// Any other call of its tmux; the terminal is the session `test`.
    pub fn command(&self, arguments: &[&str]) -> String {
        self.call(arguments.iter().map(OsString::from))
    }

    /// Types text unchanged, without Enter.
    pub fn type_text(&self, text: &str) {
        self.call(["send-keys", "-t", "test", "-l", "--", text].map(OsString::from));
    }

    /// Presses keys by tmux's names for them: `Enter`, `Escape`, `C-c`, `Up`.
    pub fn press(&self, keys: &[&str]) {
        self.call(["send-keys", "-t", "test"].iter().chain(keys).map(OsString::from));
    }

    /// Types a line as a person does: text, a check that it is there, a moment, Enter.
    #[track_caller]
    pub fn submit(&self, text: &str) {
        let before = times_shown(&self.screen(), text);
        self.type_text(text);
        let typed = |screen: &str| times_shown(screen, text) > before;
        self.wait_until(text, ECHO_LIMIT, typed).unwrap_or_else(|error| panic!("{error}"));
        thread::sleep(ENTER_DELAY);
        self.press(&["Enter"]);
    }

    /// The process that the terminal was started with.
    pub fn pid(&self) -> u32 {
        let printed = self.call(["display-message", "-p", "-t", "test", "#{pane_pid}"].map(OsString::from));
        printed.trim().parse().expect("tmux prints a process id")
    }

    /// The pane's id, as in `TMUX_PANE`.
    pub fn pane(&self) -> String {
        self.call(["display-message", "-p", "-t", "test", "#{pane_id}"].map(OsString::from)).trim().to_owned()
    }

    /// Its server's socket, as in `TMUX`.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether the program in it has ended.
    pub fn ended(&self) -> bool {
        self.call(["display-message", "-p", "-t", "test", "#{pane_dead}"].map(OsString::from)).trim() == "1"
    }

    /// Waits until the program has ended.
    pub fn wait_for_end(&self, limit: Duration) -> bool {
        wait::until(limit, || self.ended())
    }

    /// `kill -9` of the program (the pane's process group), as a crash would end it.
    pub fn kill(&self) {
        crate::process::signal_group(self.pid(), rustix::process::Signal::KILL);
        assert!(self.wait_for_end(CALL_LIMIT), "the program in the terminal does not end");
    }
}

/// How often a screen shows a text, wherever the program puts blanks.
fn times_shown(screen: &str, text: &str) -> usize {
    let without_blanks = |text: &str| text.split_whitespace().collect::<String>();
    without_blanks(screen).matches(&without_blanks(text)).count()
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let mut command = self.sandbox.command("tmux");
        command.arg("-S").arg(&self.socket).arg("kill-server");
        // The server may be gone already.
        command.output().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_what_its_program_prints_and_takes_input() {
        let sandbox = Sandbox::new();
        let mut shell = sandbox.command("sh");
        shell.args(["-c", "echo in $PWD; read line; echo got $line-$MARK; sleep 60"]).env("MARK", "x");
        let terminal = Tmux::start(&sandbox, "t", &shell);
        let limit = crate::wait::HANG;
        terminal.wait_for("/project", limit).unwrap();
        terminal.submit("baton");
        terminal.wait_for("got baton-x", limit).unwrap();
        assert!(terminal.pid() > 1);
        assert!(terminal.pane().starts_with('%'));
        terminal.kill();
        assert!(terminal.ended());
    }

    #[test]
    fn what_is_not_shown_is_reported_with_the_screen() {
        let sandbox = Sandbox::new();
        let mut shell = sandbox.command("sh");
        shell.args(["-c", "echo hello; sleep 60"]);
        let terminal = Tmux::start(&sandbox, "t", &shell);
        terminal.wait_for("hello", crate::wait::HANG).unwrap();
        let error = terminal.wait_for("never", Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("hello"));
    }
}
