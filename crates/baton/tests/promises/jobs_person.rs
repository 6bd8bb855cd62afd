//! Jobs as the person at a terminal meets them: their ends, their questions, and what the commands
//! say about them.

use crate::jobs::Jobs;
use crate::terminal::Terminal;
use crate::world::{Done, run};
use std::fs;
use std::process::Command;

impl Jobs {
    /// A command as it prints for people, in a script.
    fn say(&self, arguments: &[&str]) -> Done {
        run(self.command(arguments), b"")
    }

    /// Baton at the person's terminal.
    fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::baton(&self.world, arguments, &|command| self.dress(command))
    }

    /// A job that waits for an answer, and its question's id.
    fn asking(&self) -> (String, String) {
        let started = self.run(&["job", "start", "claude", "ASK-FIRST", "--allow", "ask"]).expect(0).json();
        let id = started["job_id"].as_str().unwrap().to_owned();
        let row = self.until(&id, "blocked");
        (id, row["questions"][0]["id"].as_str().unwrap().to_owned())
    }
}

#[test]
fn a_status_is_a_report_and_a_result_exits_by_the_end_of_its_job() {
    let jobs = Jobs::new();
    let id = jobs.run(&["run", "claude", "FAIL-LOUDLY"]).expect(1).json()["job_id"].clone();
    let id = id.as_str().unwrap();
    let status = jobs.say(&["job", "status", id]).expect(0);
    assert_eq!(status.stderr, "");
    assert!(status.stdout.contains("429") && status.stdout.contains("(rate-limited)"), "{}", status.stdout);
    assert!(!status.stdout.contains("error:"), "{}", status.stdout);
    for ended in [["job", "result", id], ["job", "wait", id]] {
        let done = jobs.say(&ended).expect(1);
        assert!(done.stderr.starts_with("error: job"), "{}", done.stderr);
    }
    let list = jobs.say(&["job", "list"]).expect(0).stdout;
    assert!(list.lines().any(|line| line.starts_with(id) && line.contains("429")), "{list}");
}

#[test]
fn no_line_of_a_jobs_log_says_a_word_twice() {
    let jobs = Jobs::new();
    let id = jobs.start("STEP-ONLY");
    jobs.until(&id, "running");
    let done = jobs.say(&["job", "wait", &id, "--max-wait", "1s"]).expect(2);
    assert!(done.stderr.contains(&format!("job {id} goes on after ")), "{}", done.stderr);
    assert!(done.stderr.contains(&format!("baton job wait {id}")), "{}", done.stderr);
    let log = jobs.say(&["job", "logs", &id]).expect(0).stdout;
    assert!(log.contains(" running bash: make"), "{log}");
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{line}");
    }
    jobs.run(&["job", "cancel", &id]).expect(0);
}

#[test]
fn j29_what_a_worktree_ends_with_works_as_printed() {
    let jobs = Jobs::new();
    let git = |arguments: &[&str]| {
        let mut command = jobs.world.command("git");
        run(
            {
                command.args(arguments);
                command
            },
            b"",
        )
        .expect(0)
        .stdout
    };
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "x"]);
    git(&["config", "user.email", "x@example.invalid"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let step = |said: &str, name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name)).expect("a step").to_owned();
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir("/");
        shell.env("HOME", jobs.world.path("home"));
        run(shell, b"").expect(0).stdout
    };
    let run_it = || jobs.say(&["run", "claude", "WRITE-A-FILE", "--worktree"]).expect(0).stderr;
    let said = run_it();
    assert!(said.contains("1 file changed") && said.contains("  A made.txt"), "{said}");
    assert!(step(&said, "see: ").contains("+new"), "{said}");
    step(&said, "keep:");
    assert_eq!(fs::read_to_string(jobs.world.project().join("made.txt")).unwrap(), "new\n");
    step(&said, "drop:");
    assert_eq!(git(&["branch", "--list", "baton/*"]), "");
    git(&["rm", "--quiet", "made.txt"]);
    git(&["commit", "--quiet", "-m", "again"]);
    // To drop it loses it, and nothing else.
    let said = run_it();
    step(&said, "drop:");
    assert_eq!(
        (git(&["worktree", "list"]).lines().count(), git(&["status", "--porcelain"])),
        (1, String::new())
    );
}

#[test]
fn to_decline_a_rule_for_good_answers_nothing_and_exits_with_1() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let (id, question) = jobs.asking();
    let digest = jobs.run(&["approvals", &question]).expect(0).json()["digest"].clone();
    assert!(digest.is_string());
    // The scripted agent names no rule, so the beginning of the id is what asks once more.
    let mut terminal = jobs.terminal(&["approve", &id]);
    terminal.wait_for("go on? [y/N] ");
    terminal.press("n\n");
    assert_eq!(terminal.end(), Some(1), "{}", terminal.screen());
    assert!(terminal.shows("error: nothing was answered"), "{}", terminal.screen());
    assert_eq!(jobs.status(&id)["status"], "blocked");
    let done = jobs.world.person(&["deny", &question]);
    assert_eq!(done.code, Some(0), "{done:?}");
}
