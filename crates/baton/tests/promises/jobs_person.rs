//! Jobs as the person at a terminal meets them: their ends, their questions, and what the commands
//! say about them.

use crate::jobs::Jobs;
use crate::keyboard::Terminal;
use crate::world::{Done, program, quoted, rounds, run};
use baton_testkit::wait;
use rustix::process::{Signal, kill_process};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Longer than the keyboard must be quiet before a key counts.
const PAUSE: Duration = Duration::from_millis(1500);

impl Jobs {
    /// A command as it prints for people, in a script.
    fn say(&self, arguments: &[&str]) -> Done {
        run(self.command(arguments), b"")
    }

    /// Baton at the person's terminal.
    fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::baton(&self.world, arguments, &|command| self.dress(command))
    }

    /// `baton run` at the person's terminal, with a job that asks.
    fn run_there(&self, prompt: &str) -> Terminal {
        self.terminal(&["run", "claude", prompt, "--allow", "ask"])
    }

    /// The only job that waits, and its question's id.
    fn waiting(&self) -> (String, String) {
        let rows = self.run(&["approvals"]).expect(0).json();
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
        let text = |name: &str| rows[0][name].as_str().unwrap().to_owned();
        (text("job_id"), text("id"))
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

/// The keys of a question that is shown whole, and has no rule.
const KEYS: &str = "allow it? [y]es  [n]o ";

#[test]
fn a3_run_answers_a_question_with_a_key_of_the_person() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let mut terminal = jobs.run_there("ASK-FIRST");
    terminal.wait_for(KEYS);
    assert!(terminal.shows("    command: rm -r target"), "{}", terminal.screen());
    let (_, id) = jobs.waiting();
    assert!(terminal.shows(&id) && id.len() <= 16 && id.ends_with(".1"), "{id}");
    terminal.press_until("y", "approved: Bash: rm -r target");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.screen().trim_end().ends_with("allowed"), "{}", terminal.screen());
    assert_eq!(terminal.screen().matches(KEYS).count(), 1, "{}", terminal.screen());
    assert!(!terminal.shows("meanwhile"), "{}", terminal.screen());

    fs::remove_file(jobs.file("answer")).unwrap();
    let mut terminal = jobs.run_there("ASK-FIRST");
    terminal.wait_for(KEYS);
    terminal.press_until("n", "why not?");
    terminal.press("not tomorroz");
    terminal.press("\u{7f}w, não\n");
    terminal.wait_for("denied: Bash: rm -r target");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert_eq!(terminal.screen().matches("    command: ").count(), 1, "{}", terminal.screen());
    assert!(jobs.wait_for_file("answer").contains("not tomorrow, não"), "{}", jobs.wait_for_file("answer"));
}

#[test]
fn a4_nothing_that_was_typed_before_the_question_or_pasted_is_an_answer() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let mut terminal = jobs.run_there("ASK-FIRST AFTER-GO");
    terminal.wait_for("job j");
    terminal.press("y");
    terminal.press("y\ny\n");
    fs::write(jobs.file("go"), "").unwrap();
    terminal.wait_for(KEYS);
    // Someone who types a command ahead goes on typing.
    for key in ["y", "a", "r", "n", "y"] {
        terminal.press(key);
        thread::sleep(Duration::from_millis(60));
    }
    thread::sleep(PAUSE);
    for pasted in ["yes\n", "y\n", "\u{1b}[Ay", "\u{1b}[200~y\u{1b}[201~"] {
        terminal.press(pasted);
        thread::sleep(PAUSE);
    }
    let (id, _) = jobs.waiting();
    assert!(!jobs.file("answer").exists(), "{}", terminal.screen());
    // The keys count again.
    terminal.press_until("y", "approved: ");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert_eq!(jobs.status(&id)["result"], "allowed");
}

#[test]
fn a4_only_what_was_shown_whole_is_approved_with_a_key() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let mut terminal = jobs.run_there("ASK-LONG");
    terminal.wait_for("allow it? [n]o  [e] show all of it ");
    assert!(!terminal.shows("target-79"), "{}", terminal.screen());
    terminal.press_until("y", "not all of it is on the screen: press e first");
    assert!(!jobs.file("answer").exists());
    terminal.press_until("e", "target-79");
    terminal.wait_for(KEYS);
    terminal.press_until("y", "approved: ");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(jobs.wait_for_file("answer").contains("target-79"));
}

#[test]
fn a4_always_needs_the_exact_rule_on_the_screen_and_a_second_yes() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let rule = "this allows from now on: for the rest of the session: Bash(rm:*)";
    let mut terminal = jobs.run_there("ASK-WITH-RULE");
    terminal.wait_for("[a]lways");
    terminal.press_until("a", "allow that from now on? [y/N]");
    assert!(terminal.shows(rule), "{}", terminal.screen());
    terminal.press_until("n", "nothing was answered");
    assert!(!jobs.file("answer").exists());
    terminal.press_until("y", "approved: ");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(!jobs.wait_for_file("answer").contains("updatedPermissions"));
    fs::remove_file(jobs.file("answer")).unwrap();
    let mut terminal = jobs.run_there("ASK-WITH-RULE");
    terminal.wait_for("[a]lways");
    terminal.press_until("a", "allow that from now on? [y/N]");
    terminal.press_until("y", "approved: ");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(jobs.wait_for_file("answer").contains("updatedPermissions"));
}

#[test]
fn a5_what_is_answered_withdrawn_or_ended_elsewhere_leaves_the_screen() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    // Answered in another terminal.
    let mut terminal = jobs.run_there("ASK-FIRST");
    terminal.wait_for(KEYS);
    let (_, question) = jobs.waiting();
    let done = jobs.world.person(&["approve", &question]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(
        terminal.shows("answered meanwhile by user: approved: Bash: rm -r target"),
        "{}",
        terminal.screen()
    );
    // Withdrawn by its agent, and the waiting goes on.
    let mut terminal = jobs.run_there("ASK-AND-WITHDRAW");
    terminal.wait_for(KEYS);
    fs::write(jobs.file("go"), "").unwrap();
    terminal.wait_for("it does not ask that any more: Bash: rm -r target");
    terminal.press("y");
    fs::write(jobs.file("go-on"), "").unwrap();
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    // The job ends while it asks.
    let mut terminal = jobs.run_there("ASK-FIRST");
    terminal.wait_for(KEYS);
    let (id, _) = jobs.waiting();
    jobs.run(&["job", "cancel", &id]).expect(0);
    assert_eq!(terminal.end(), Some(1), "{}", terminal.screen());
    // Its agent may take the question back before it ends.
    let said = ["it has ended, and waits for no answer any more", "it does not ask that any more"];
    assert!(said.iter().any(|said| terminal.shows(said)), "{}", terminal.screen());
}

#[test]
fn a5_a_question_outlives_the_terminal_that_shows_it() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    for signal in [Signal::KILL, Signal::TERM, Signal::HUP] {
        let state =
            |name: &str| format!("stty -a > {}", quoted(&jobs.world.path(name).display().to_string()));
        let baton = format!("{} run claude ASK-FIRST --allow ask", quoted(program()));
        let line = format!("{}; {baton}; {}", state("before"), state("after"));
        let mut terminal = Terminal::line(&jobs.world, &line, &|command| jobs.dress(command));
        terminal.wait_for(KEYS);
        kill_process(terminal.below(), signal).unwrap();
        terminal.end();
        if signal != Signal::KILL {
            let read = |name: &str| fs::read_to_string(jobs.world.path(name)).unwrap();
            assert_eq!(read("before"), read("after"), "the terminal is put back");
        }
        let (id, question) = jobs.waiting();
        assert_eq!(jobs.status(&id)["status"], "blocked");
        // Another terminal goes on with it, by `job wait`.
        let mut terminal = jobs.terminal(&["job", "wait", &id]);
        terminal.wait_for(KEYS);
        assert!(terminal.shows(&question));
        terminal.press_until("y", "approved: ");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    }
}

#[test]
fn a_second_ctrl_c_leaves_and_the_job_goes_on() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let choose = "cancel job ";
    for prompt in ["ASK-FIRST", "HANG"] {
        let mut terminal = jobs.run_there(prompt);
        terminal.wait_for(if prompt == "HANG" { "running" } else { KEYS });
        terminal.press_until("\u{3}", choose);
        terminal.press("w");
        if prompt == "ASK-FIRST" {
            terminal.wait_for_times(KEYS, 2);
        }
        thread::sleep(PAUSE);
        terminal.press("\u{3}");
        terminal.wait_for_times(choose, 2);
        terminal.press("\u{3}");
        assert_eq!(terminal.end(), Some(2), "{}", terminal.screen());
        assert!(terminal.shows(" goes on; `baton job wait j"), "{}", terminal.screen());
    }
    let open = jobs.run(&["job", "status"]).expect(0).json();
    assert_eq!(open.as_array().map(Vec::len), Some(2), "{open}");
    let mut terminal = jobs.run_there("HANG");
    terminal.wait_for("running");
    terminal.press_until("\u{3}", choose);
    terminal.press("c");
    assert_eq!(terminal.end(), Some(1), "{}", terminal.screen());
    assert!(terminal.shows(" is cancelled: "), "{}", terminal.screen());
}

#[test]
fn a_watched_inbox_shows_each_question_once_and_takes_keys() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let mut watcher = jobs.terminal(&["approvals", "--watch"]);
    watcher.wait_for("nothing waits; watching…");
    let (first, _) = jobs.asking();
    watcher.wait_for(KEYS);
    let (second, _) = jobs.asking();
    watcher.wait_for(&format!("[2] {second} (claude): Bash: rm -r target"));
    // The second one, by its number.
    watcher.press_until("2", "which one, by its number or id?");
    watcher.press("\n");
    watcher.wait_for_times("    command: rm -r target", 2);
    watcher.press_until("n", "why not?");
    watcher.press("\n");
    watcher.wait_for("[2] denied: Bash: rm -r target");
    watcher.wait_for_times("    command: rm -r target", 3);
    watcher.press_until("y", "[1] approved: Bash: rm -r target");
    for (id, result) in [(&first, "allowed"), (&second, "refused")] {
        assert_eq!(jobs.run(&["job", "wait", id]).expect(0).json()["result"], result);
    }
    assert!(!watcher.shows("state:") && !watcher.shows("meanwhile"), "{}", watcher.screen());
    watcher.press("\u{3}");
    assert_eq!(watcher.end(), Some(0), "{}", watcher.screen());
}

#[test]
fn a_questions_id_is_short_and_so_is_what_names_it() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let (job, question) = jobs.asking();
    assert_eq!(question, format!("{job}.1"));
    // A number has no beginning, and a wrong one is another question.
    for wrong in [format!("{job}.11"), format!("{job}.")] {
        let done = jobs.world.person(&["deny", &wrong]);
        assert!(done.code == Some(1) && done.stdout.contains("waits for no answer, or now asks"), "{done:?}");
    }
    let done = jobs.world.person(&["deny", &format!("{}.1", &job[..6])]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn j25_the_person_who_started_a_job_hears_its_end_once() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let mail = |jobs: &Jobs| -> Vec<(String, String)> {
        let rows = jobs.world.mail();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        rows.iter().map(|row| (text(&row["body"]), text(&row["deliveries"][0]["state"]))).collect()
    };
    // Started in the background, and ended while no one looked.
    let mut terminal = jobs.terminal(&["job", "start", "claude", "SLEEP-AND-ANSWER"]);
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let id = terminal.screen().lines().next().unwrap().trim().to_owned();
    assert!(wait::until(wait::HANG, || mail(&jobs).len() == 1), "{:?}", mail(&jobs));
    let (body, state) = mail(&jobs).remove(0);
    assert!(body.contains(&format!("Job {id} (claude) completed")) && body.contains("slept"), "{body}");
    assert_eq!(state, "queued");
    let mut inbox = jobs.terminal(&["inbox"]);
    inbox.wait_for(&format!("Job {id} (claude) completed"));
    assert_eq!(inbox.end(), Some(0));
    // What a command has printed needs no mail, whoever is first: the worker or the command.
    for _ in 0..rounds(3) {
        let before = mail(&jobs).len();
        let mut terminal = jobs.terminal(&["run", "claude", "quick"]);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        assert!(wait::until(wait::HANG, || jobs.run(&["job", "list"]).json()[0]["status"] == "completed"));
        let after = mail(&jobs);
        assert_eq!(after.len(), before + 1, "{after:?}");
        assert!(after.iter().all(|(_, state)| state == "seen"), "{after:?}");
    }
    // A question that was answered leaves no mail that waits.
    let mut terminal = jobs.run_there("ASK-FIRST");
    terminal.wait_for(KEYS);
    let asks = |(body, state): &(String, String)| body.contains("waits for an answer") && state == "queued";
    assert!(wait::until(wait::HANG, || mail(&jobs).iter().any(asks)), "{:?}", mail(&jobs));
    terminal.press_until("y", "approved: ");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let waits = || mail(&jobs).iter().filter(|(_, state)| state == "queued").count();
    assert!(wait::until(wait::HANG, || waits() == 0), "{:?}", mail(&jobs));
}

#[test]
fn a9_a_known_terminal_shows_a_notification_and_no_other_gets_a_sequence() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let in_a = |term: &str, arguments: &[&str]| {
        Terminal::baton(&jobs.world, arguments, &|command| {
            jobs.dress(command);
            command.env("TERM", term);
        })
    };
    let ask = ["run", "claude", "ASK-FIRST", "--allow", "ask"];
    let answered = |mut terminal: Terminal| {
        terminal.press_until("y", "approved: ");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        terminal.screen()
    };
    let terminal = in_a("xterm-kitty", &ask);
    terminal.wait_for(KEYS);
    let (id, _) = jobs.waiting();
    terminal.wait_for(&format!("\u{1b}]9;baton: {id} (claude) waits for your answer\u{7}"));
    assert_eq!(answered(terminal).matches("\u{1b}]9;").count(), 1, "once for each question");
    let terminal = in_a("xterm-256color", &ask);
    terminal.wait_for(KEYS);
    thread::sleep(PAUSE * 2);
    assert!(!answered(terminal).contains("\u{1b}]"));
    jobs.world.configure("[approvals]\nnotify_terminal = false\n");
    let terminal = in_a("xterm-kitty", &ask);
    terminal.wait_for(KEYS);
    thread::sleep(PAUSE * 2);
    assert!(!answered(terminal).contains("\u{1b}]"));
}

#[test]
fn a9_who_watches_hears_of_the_ends_of_the_jobs_that_the_person_started() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        return;
    }
    let notes = jobs.world.path("notes");
    let told = format!("notify_command = [\"touch\", {:?}]", notes.display().to_string());
    jobs.world.configure(&format!("[approvals]\n{told}\n"));
    let mut watcher = Terminal::baton(&jobs.world, &["approvals", "--watch"], &|command| {
        jobs.dress(command);
        command.env("TERM", "foot");
    });
    watcher.wait_for("nothing waits; watching…");
    // A script looks for itself.
    let other = jobs.start("quick");
    jobs.until(&other, "completed");
    let mut terminal = jobs.terminal(&["job", "start", "claude", "WAIT-FOR-GO"]);
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let id = terminal.screen().lines().next().unwrap().trim().to_owned();
    fs::write(jobs.file("go"), "").unwrap();
    watcher.wait_for(&format!("{id} (claude) completed after "));
    watcher.wait_for(&format!("\u{1b}]777;notify;baton;job {id} (claude) completed\u{7}"));
    assert!(!watcher.shows(&other), "{}", watcher.screen());
    assert!(wait::until(wait::HANG, || notes.exists()), "the command runs too");
    watcher.press("\u{3}");
    assert_eq!(watcher.end(), Some(0), "{}", watcher.screen());
    // What a command has shown needs no notification.
    fs::remove_file(&notes).unwrap();
    let mut terminal = jobs.terminal(&["run", "claude", "quick"]);
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    thread::sleep(PAUSE * 2);
    assert!(!notes.exists());
}
