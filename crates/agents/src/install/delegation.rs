//! Files that tell an agent how to hand a task to another agent: a slash command, a subagent, a
//! skill. Only baton writes them.
//!
//! All say the same: run one command that blocks, repeat it while it says "not yet", and answer
//! with the result or with the reason why there is none. The mark is in a comment of the front
//! matter, which no model sees.

use std::path::PathBuf;

use super::own_file::OwnFile;
use super::shell::quote;
use super::{Current, FileEdit, Install, InstallError};
use crate::agent::names;

/// Longer than the longest wait.
const COMMAND_TIMEOUT: &str = "600000 ms";

#[derive(Clone, Debug)]
pub(crate) struct Part {
    path: PathBuf,
    what: &'static str,
    text: String,
    mark: String,
}

impl Part {
    /// A slash command of Claude Code.
    pub(crate) fn command(install: &Install, path: PathBuf) -> Self {
        Self::new(install, path, "the slash command /baton-run", &command(&baton(install)))
    }

    /// A subagent of Claude Code.
    pub(crate) fn subagent(install: &Install, path: PathBuf) -> Self {
        Self::new(install, path, "the subagent baton-worker", &subagent(&baton(install)))
    }

    /// A skill, for agents that read skills.
    pub(crate) fn skill(install: &Install, path: PathBuf) -> Self {
        Self::new(install, path, "the skill baton-jobs", &skill(&baton(install)))
    }

    fn new(install: &Install, path: PathBuf, what: &'static str, text: &Instructions) -> Self {
        let mark = format!("# Written by baton setup for {}\n", serde_json::json!(install.home()));
        Self { text: format!("---\n{mark}{}---\n\n{}", text.head, text.body), path, what, mark }
    }

    fn own_file(&self) -> OwnFile<'_> {
        OwnFile { path: &self.path, what: self.what, bytes: self.text.as_bytes(), mark: &self.mark }
    }
}

/// What such a file says: its front matter, and the rest.
pub(crate) struct Instructions {
    pub head: String,
    pub body: String,
}

/// For the slash command of Claude Code.
pub(crate) fn command(baton: &str) -> Instructions {
    let head = format!(
        "description: Hand a task to another agent and get its result\nargument-hint: AGENT TASK\nallowed-tools: Bash({baton} run:*), Bash({baton} job wait:*)\n"
    );
    let body = format!(
        "Hand a task to another agent through baton. The first word is the agent, the rest is the task, unchanged:\n\n$ARGUMENTS\n\n{}",
        steps(baton)
    );
    Instructions { head, body }
}

/// For the subagent of Claude Code.
pub(crate) fn subagent(baton: &str) -> Instructions {
    let head = format!(
        "name: baton-worker\ndescription: Hands one task to another agent CLI ({}) through baton and brings back its \
         real result. Say which agent, and the whole task.\ntools: Bash\n",
        names()
    );
    let body = format!(
        "You hand one task to another agent and bring back its result. You do nothing of the task yourself. Your request says which agent, and what it should do.\n\n{}",
        steps(baton)
    );
    Instructions { head, body }
}

/// For the skill.
pub(crate) fn skill(baton: &str) -> Instructions {
    let head = format!(
        "name: baton-jobs\ndescription: Hands a task to another agent CLI ({}) and gets its real result back. Use when \
         asked to delegate, to get a second opinion, or to let another agent do or review something.\n",
        names()
    );
    let body = format!(
        "# Hand a task to another agent\n\nWith the tools of the MCP server `baton`: start_job, then wait_job with its job_id, again while `ended` is false, at most 20 times. \
         Where your shell is not sandboxed, a command does the same:\n\n{}",
        steps(baton)
    );
    Instructions { head, body }
}

pub(crate) fn paths(parts: &[Part]) -> impl Iterator<Item = PathBuf> {
    parts.iter().map(|part| part.path.clone())
}

/// The edits that write these files.
pub(crate) fn write(parts: &[Part], now: &Current) -> Result<Vec<FileEdit>, InstallError> {
    parts.iter().map(|part| part.own_file().write(now)).collect()
}

/// The edits that remove these files.
pub(crate) fn remove(parts: &[Part], now: &Current) -> Vec<FileEdit> {
    parts.iter().filter_map(|part| part.own_file().remove(now)).collect()
}

/// The program as a shell calls it, without quotes if they are not needed: agents compare the
/// beginning of a command with what is allowed.
fn baton(install: &Install) -> String {
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@".contains(c));
    let word = |text: &str| if plain(text) { text.to_owned() } else { quote(text) };
    format!("{} --home {}", word(install.baton()), word(install.home()))
}

fn steps(baton: &str) -> String {
    format!(
        "1. Run this command in the foreground, with a time-out of {COMMAND_TIMEOUT}, with the agent and the task in their places, the task word for word:\n\n\
         ```sh\n{baton} run AGENT --max-wait 8m - <<'BATON_TASK'\nTASK\nBATON_TASK\n```\n\n\
         Options go before the `-`: --model M, --effort E, --cwd DIR, --worktree (a git worktree of its own), --read-only (it changes nothing), --resume JOB.\n\n\
         2. Exit status 0: what it printed is the result. Your answer is that text, unchanged.\n\n\
         3. Exit status 2: it goes on, and the output names the job. Run `{baton} job wait JOB --max-wait 8m`, in the foreground, with a time-out of {COMMAND_TIMEOUT}; \
         again while the exit status is 2, at most 20 times.\n\n\
         4. Anything else, or 2 after the last time: your answer is one line, `ERROR: ` and the reason that the output gives.\n\n\
         Nothing else is an answer. Don't say that the job was started, that you wait for it, or that somebody should look later. Don't run it in the background, and don't do the task yourself.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::Scope;
    use std::path::Path;

    fn parts(baton: &str) -> Vec<Part> {
        let install = Install::new(Path::new(baton), Path::new("/h/it's"), Scope::User).unwrap();
        vec![
            Part::command(&install, "/a".into()),
            Part::subagent(&install, "/b".into()),
            Part::skill(&install, "/c".into()),
        ]
    }

    #[test]
    fn each_has_one_front_matter_with_the_mark_and_the_way_to_a_result() {
        for part in parts("/opt/baton") {
            let (head, body) =
                part.text.strip_prefix("---\n").and_then(|rest| rest.split_once("---\n")).unwrap();
            assert!(head.starts_with(&part.mark) && head.contains("description: "), "{head}");
            assert!(
                !head.lines().any(|line| line.matches(": ").count() > 1 && !line.starts_with('#')),
                "{head}"
            );
            for word in [
                r"/opt/baton --home '/h/it'\''s' run AGENT --max-wait 8m",
                "600000 ms",
                "20 times",
                "ERROR: ",
            ] {
                assert!(body.contains(word), "{word} is not in {body}");
            }
        }
    }
}
