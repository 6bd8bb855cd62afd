//! What the guard says reaches the real agents: a forbidden call does not run and the model reads
//! why, an allowed one runs, a secret in a tool's output stays out of the model's requests. Mail
//! that waits meanwhile comes all the same, once.

use crate::inbox_user::InboxUser;
use crate::sandbox::{LIMIT, StorySandbox};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Part, Request};
use baton_testkit::opencode::Server;
use baton_testkit::{Script, Step, isolated, wait};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// Looks like a key of the kind that is kept out of contexts, and that no agent takes out by
/// itself: Copilot does so with those of its own house.
const SECRET: &str = "AKIAQ3EGRZJ7K2M5XW4T";
/// Relative, as all of them take it. Gemini CLI refuses `.env` itself, before any hook.
const ENV_FILE: &str = ".env.production";
/// Commits what is there, and then another way, and says so.
const COMMITS: &str = "git config user.name a; git config user.email a@b; git add new.txt && git commit -qm new && git commit --amend -qm newer && echo COMMITTED''-IT";
const MAIL: &str = "MAIL-BESIDE-THE-GUARD";

/// The text of the result that a request was made with.
fn result(requests: &[Arc<Request>], at: usize) -> String {
    let results = requests[at].results();
    results.last().map(|said| said.text.clone()).unwrap_or_default()
}

/// One run: a forbidden command, a forbidden read, a forbidden write, an allowed command and an
/// allowed read that show a secret. Mail comes during the first.
fn is_judged(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::shell("sudo true; touch SUDO-RAN").after(Duration::from_secs(1)),
        1 => Step::read(ENV_FILE),
        2 => Step::write(ENV_FILE, "WRITTEN"),
        3 => Step::shell("touch ALLOWED-RAN; cat notes.txt"),
        4 => Step::read("notes.txt"),
        5 => Step::shell("echo and on"),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script);
    let project = stage.sandbox.project();
    fs::write(project.join(ENV_FILE), "SECRET-OF-THE-ENV=1\n").expect("a file in the project");
    fs::write(project.join("notes.txt"), format!("before {SECRET} behind\n")).expect("a file in the project");
    let agent = stage.start(who, Session::New, "please begin");
    stage.request(|_| true);
    stage.send(&stage.name_of(who), MAIL);
    agent.finish(LIMIT).expect_ok();
    let requests = stage.model.requests_of(Kind::Main);
    assert!(!project.join("SUDO-RAN").exists(), "{who:?}: what was refused ran");
    assert!(result(&requests, 1).contains("block-sudo"), "{who:?}: {}", result(&requests, 1));
    assert!(result(&requests, 2).contains("block-env-files"), "{who:?}: {}", result(&requests, 2));
    assert!(
        stage.model.sightings("SECRET-OF-THE-ENV").first.is_none(),
        "{who:?}: what it may not read was read"
    );
    assert!(result(&requests, 3).contains("block-env-files"), "{who:?}: {}", result(&requests, 3));
    let written = fs::read_to_string(project.join(ENV_FILE)).expect("the file is still there");
    assert_eq!(written, "SECRET-OF-THE-ENV=1\n", "{who:?}: what was refused was written");
    assert!(
        project.join("ALLOWED-RAN").exists(),
        "{who:?}: what is allowed did not run: {}",
        stage.trouble()
    );
    // Printed by a command, and read by a tool.
    for shown in [result(&requests, 4), result(&requests, 5)] {
        assert!(
            shown.contains("before") && shown.contains("behind"),
            "{who:?}: the rest of the output: {shown}"
        );
        assert!(!shown.contains(SECRET), "{who:?}: {shown}");
    }
    assert!(stage.model.sightings(SECRET).first.is_none(), "{who:?}: it came another way");
    stage.seen_once(MAIL);
    let log = stage.json(&["guard", "log"]);
    let rules: Vec<_> = log.as_array().into_iter().flatten().map(|entry| entry["rule"].clone()).collect();
    assert_eq!(rules[..3], ["block-sudo", "block-env-files", "block-env-files"], "{who:?}: {log}");
    assert!(log.as_array().into_iter().flatten().all(|entry| entry["agent"] == who.name()), "{log}");
}

/// What only a person can answer does not run if no person can be asked, and the run goes on. What
/// a failing command prints is looked at too.
fn asks_nobody(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::shell("touch ASK-RAN; eval \"$NOT_SET_ANYWHERE\""),
        1 => Step::shell("cat notes.txt; false"),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script);
    // Nobody is at the inbox either.
    stage.configure("[approvals]\nhold = \"1s\"\n");
    let project = stage.sandbox.project();
    fs::write(project.join("notes.txt"), format!("before {SECRET} behind\n")).expect("a file in the project");
    stage.run(who, Session::New, "please begin");
    let requests = stage.model.requests_of(Kind::Main);
    assert!(!project.join("ASK-RAN").exists(), "{who:?}: nobody was asked, and it ran");
    assert!(result(&requests, 1).contains("Not understood"), "{who:?}: {}", result(&requests, 1));
    if who == Agent::Claude {
        // Its hook can't replace that; the model reads that it must not use it.
        assert!(requests[2].shows("It could not be taken out here"), "{}", stage.trouble());
    } else {
        assert!(stage.model.sightings(SECRET).first.is_none(), "{who:?}: {}", result(&requests, 2));
    }
    assert!(result(&requests, 2).contains("before"), "{who:?}: {}", result(&requests, 2));
}

/// A call that says where it runs is judged there: what looks like a folder of the project is
/// another one. Gemini CLI refuses such calls itself.
fn is_judged_where_it_runs(who: Agent, tool: &'static str, command: &'static str, folder: &'static str) {
    let script = Script::by(move |request| {
        let other = request.word_after("please go to ").unwrap_or_default().to_owned();
        match request.results().len() {
            0 => Step::tool(
                tool,
                json!({command: "find build -delete", folder: format!("/tmp/{other}/home"), "description": "d"}),
            ),
            _ => Step::say("finished"),
        }
    });
    let stage = StorySandbox::with(&[who], script);
    let other = stage.sandbox.home();
    fs::create_dir_all(other.join("build")).expect("a folder");
    let name =
        other.parent().and_then(|root| root.file_name()).expect("a name").to_string_lossy().into_owned();
    stage.run(who, Session::New, &format!("please go to {name}"));
    let requests = stage.model.requests_of(Kind::Main);
    assert!(other.join("build").exists(), "{who:?}: it ran: {}", result(&requests, 1));
    assert!(result(&requests, 1).contains("block-rm-rf"), "{who:?}: {}", result(&requests, 1));
}

#[test]
fn codex_is_judged_where_its_command_runs() {
    isolated(|| is_judged_where_it_runs(Agent::Codex, "exec_command", "cmd", "workdir"));
}

#[test]
fn opencode_is_judged_where_its_command_runs() {
    isolated(|| is_judged_where_it_runs(Agent::OpenCode, "bash", "command", "workdir"));
}

#[test]
fn claude_is_refused_what_is_forbidden_and_is_shown_no_secret() {
    isolated(|| is_judged(Agent::Claude));
}

#[test]
fn codex_is_refused_what_is_forbidden_and_is_shown_no_secret() {
    isolated(|| is_judged(Agent::Codex));
}

#[test]
fn opencode_is_refused_what_is_forbidden_and_is_shown_no_secret() {
    isolated(|| is_judged(Agent::OpenCode));
}

#[test]
fn gemini_is_refused_what_is_forbidden_and_is_shown_no_secret() {
    isolated(|| is_judged(Agent::Gemini));
}

#[test]
fn copilot_is_refused_what_is_forbidden_and_is_shown_no_secret() {
    isolated(|| is_judged(Agent::Copilot));
}

#[test]
fn pi_is_refused_what_is_forbidden_and_is_shown_no_secret() {
    isolated(|| is_judged(Agent::Pi));
}

/// If no person sits at the terminal, what a person has to decide waits for the person at the
/// inbox.
fn waits_at_the_inbox(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::shell("touch made-1"),
        1 => Step::shell("touch made-2"),
        2 => Step::shell(format!("touch made-3; {UNTIL_TOLD}")),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script).without_waking();
    let rule = "[[guard.rule]]\nid = \"count-files\"\ndecision = \"ask\"\ncommand = \"touch **\"\nreason = \"Files are counted.\"\n";
    stage.configure(&format!("wake = \"off\"\n{rule}"));
    let Some(user) = InboxUser::new(&stage) else { return };
    let agent = stage.start(who, Session::New, "please begin");
    let asked = |what: &str| {
        let is_it = |row: &Value| {
            row["what"].as_str().is_some_and(|text| text.contains(what)) && row["state"] == "waiting"
        };
        let row = wait::poll(LIMIT, || user.inbox().into_iter().find(is_it));
        let row = row.unwrap_or_else(|| panic!("{what} is not asked: {:?}{}", user.inbox(), stage.trouble()));
        assert!(row["why"].as_str().is_some_and(|why| why.contains("Files are counted.")), "{row}");
        row["id"].as_str().expect("an id").to_owned()
    };
    user.approve_until(&asked("touch made-1"), "made-1");
    let no = asked("touch made-2");
    user.person(&["deny", &no, "--reason", "there's \"enough\" of them"]).took_effect();
    stage.request(|request| request.shows("there's \"enough\" of them"));
    // Said while it still runs.
    user.approve_until(&asked(UNTIL_TOLD), "made-3");
    end_tools(&stage);
    agent.finish(LIMIT).expect_ok();
    assert!(!stage.sandbox.project().join("made-2").exists(), "{who:?}: denied, and made all the same");
    assert!(user.inbox().is_empty(), "{:?}", user.inbox());
}

#[test]
fn claude_waits_at_the_inbox_for_what_a_person_has_to_decide() {
    isolated(|| waits_at_the_inbox(Agent::Claude));
}

#[test]
fn codex_waits_at_the_inbox_for_what_a_person_has_to_decide() {
    isolated(|| waits_at_the_inbox(Agent::Codex));
}

#[test]
fn opencode_waits_at_the_inbox_for_what_a_person_has_to_decide() {
    isolated(|| waits_at_the_inbox(Agent::OpenCode));
}

#[test]
fn gemini_waits_at_the_inbox_for_what_a_person_has_to_decide() {
    isolated(|| waits_at_the_inbox(Agent::Gemini));
}

#[test]
fn pi_waits_at_the_inbox_for_what_a_person_has_to_decide() {
    isolated(|| waits_at_the_inbox(Agent::Pi));
}

#[test]
fn copilot_waits_at_the_inbox_for_what_a_person_has_to_decide() {
    isolated(|| waits_at_the_inbox(Agent::Copilot));
}

#[test]
fn claude_runs_nothing_that_a_person_would_have_to_be_asked_about() {
    isolated(|| asks_nobody(Agent::Claude));
}

#[test]
fn codex_runs_nothing_that_a_person_would_have_to_be_asked_about() {
    isolated(|| asks_nobody(Agent::Codex));
}

#[test]
fn opencode_runs_nothing_that_a_person_would_have_to_be_asked_about() {
    isolated(|| asks_nobody(Agent::OpenCode));
}

#[test]
fn gemini_runs_nothing_that_a_person_would_have_to_be_asked_about() {
    isolated(|| asks_nobody(Agent::Gemini));
}

#[test]
fn copilot_runs_nothing_that_a_person_would_have_to_be_asked_about() {
    isolated(|| asks_nobody(Agent::Copilot));
}

#[test]
fn pi_runs_nothing_that_a_person_would_have_to_be_asked_about() {
    isolated(|| asks_nobody(Agent::Pi));
}

/// Makes a file that no commit has, once.
fn makes_a_file(request: &Request) -> Option<Step> {
    (!request.shows("MADE-IT")).then(|| Step::shell("echo new > new.txt; echo MADE''-IT"))
}

/// A turn that leaves something to do goes on, the model reads why, and the turn ends once it is
/// done. A note of a rule reaches the model too.
fn is_held_at_the_end(who: Agent) {
    let script = Script::by(|request| match makes_a_file(request) {
        Some(step) => step,
        None if request.shows("require-commit-before-stop") && !request.shows("COMMITTED-IT") => {
            Step::shell(COMMITS)
        }
        None => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script);
    stage.configure("[guard]\nenable = [\"require-commit-before-stop\", \"warn-git-amend\"]\n");
    stage.run(who, Session::New, "please begin");
    let requests = stage.model.requests_of(Kind::Main);
    let held = requests.iter().position(|request| request.shows("require-commit-before-stop"));
    let log = stage.json(&["guard", "log"]);
    assert_eq!(held, Some(2), "{who:?}: {log}\n{}", stage.trouble());
    assert!(requests[3].shows("warn-git-amend"), "{who:?}: {}", result(&requests, 3));
    assert_eq!(requests.len(), 4, "{who:?}: it ends once all is committed: {}", result(&requests, 3));
    assert_eq!([&log[0]["rule"], &log[0]["decision"]], ["require-commit-before-stop", "deny"], "{log}");
    assert_eq!([&log[1]["rule"], &log[1]["decision"]], ["warn-git-amend", "note"], "{log}");
    assert_eq!(log.as_array().map(Vec::len), Some(2), "{who:?}: every call was judged: {log}");
}

/// Nothing is ever done: it is held three times.
fn is_held_three_times(who: Agent) {
    let script = Script::by(|request| makes_a_file(request).unwrap_or_else(|| Step::say("finished")));
    let stage = StorySandbox::with(&[who], script);
    stage.configure("[guard]\nenable = [\"require-commit-before-stop\"]\n");
    stage.run(who, Session::New, "please begin");
    let log = stage.json(&["guard", "log"]);
    assert_eq!(log.as_array().map(Vec::len), Some(3), "{who:?}: {log}");
    assert_eq!(stage.model.requests_of(Kind::Main).len(), 5, "{who:?}: {}", stage.trouble());
}

#[test]
fn claude_goes_on_while_something_is_left_to_do() {
    isolated(|| is_held_at_the_end(Agent::Claude));
}

#[test]
fn codex_goes_on_while_something_is_left_to_do() {
    isolated(|| is_held_at_the_end(Agent::Codex));
}

#[test]
fn gemini_goes_on_while_something_is_left_to_do() {
    isolated(|| is_held_at_the_end(Agent::Gemini));
}

#[test]
fn copilot_goes_on_while_something_is_left_to_do() {
    isolated(|| is_held_at_the_end(Agent::Copilot));
}

#[test]
fn pi_goes_on_while_something_is_left_to_do() {
    isolated(|| is_held_at_the_end(Agent::Pi));
}

#[test]
fn claude_is_held_three_times_at_most() {
    isolated(|| is_held_three_times(Agent::Claude));
}

#[test]
fn codex_is_held_three_times_at_most() {
    isolated(|| is_held_three_times(Agent::Codex));
}

#[test]
fn gemini_is_held_three_times_at_most() {
    isolated(|| is_held_three_times(Agent::Gemini));
}

#[test]
fn copilot_is_held_three_times_at_most() {
    isolated(|| is_held_three_times(Agent::Copilot));
}

#[test]
fn pi_is_held_three_times_at_most() {
    isolated(|| is_held_three_times(Agent::Pi));
}

/// What an agent did before the guard was there is found in its own records, with what the rules
/// would have said.
fn is_found_in_its_past(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::shell("git push origin main; echo pushed"),
        1 => Step::shell("cat notes.txt"),
        2 => Step::read("notes.txt"),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::bare(script);
    let project = stage.sandbox.project();
    fs::write(project.join("notes.txt"), format!("before {SECRET} behind\n")).expect("a file in the project");
    stage.run(who, Session::New, "please begin");
    let past = stage.json(&["guard", "replay", "--agent", who.name(), "--since", "1h"]);
    let agent = &past[0];
    assert_eq!(agent["calls"], 3, "{who:?}: {past}");
    assert_eq!(agent["conversations"], 1, "{who:?}: {past}");
    assert_eq!(agent["trouble"], json!(null), "{who:?}: {past}");
    let rules = agent["rules"].as_array().expect("rules");
    let of = |id: &str| {
        rules.iter().find(|rule| rule["rule"] == id).unwrap_or_else(|| panic!("{who:?}: {id}: {past}"))
    };
    let push = of("block-push-master");
    assert_eq!(
        [&push["decision"], &push["calls"], &push["sessions"]],
        [&json!("deny"), &json!(1), &json!(1)],
        "{past}"
    );
    assert!(push["example"].as_str().is_some_and(|shown| shown.contains("git push")), "{past}");
    let secret = of("sanitize-api-keys");
    assert_eq!([&secret["decision"], &secret["calls"]], [&json!("redact"), &json!(2)], "{who:?}: {past}");
    assert!(!past.to_string().contains(SECRET), "{past}");
    let all = stage.json(&["guard", "replay"]);
    assert_eq!(all.as_array().map(Vec::len), Some(7), "every agent is looked at: {all}");
}

#[test]
fn claude_s_past_is_judged() {
    isolated(|| is_found_in_its_past(Agent::Claude));
}

#[test]
fn codex_s_past_is_judged() {
    isolated(|| is_found_in_its_past(Agent::Codex));
}

#[test]
fn opencode_s_past_is_judged() {
    isolated(|| is_found_in_its_past(Agent::OpenCode));
}

#[test]
fn gemini_s_past_is_judged() {
    isolated(|| is_found_in_its_past(Agent::Gemini));
}

#[test]
fn copilot_s_past_is_judged() {
    isolated(|| is_found_in_its_past(Agent::Copilot));
}

#[test]
fn pi_s_past_is_judged() {
    isolated(|| is_found_in_its_past(Agent::Pi));
}

/// OpenCode has no hook at the end of a turn: a session that a person has open gets a new prompt.
/// One that the person interrupts is left alone.
#[test]
fn opencode_goes_on_while_something_is_left_to_do() {
    isolated(|| {
        let script = Script::by(|request| match makes_a_file(request) {
            Some(step) => step,
            None if request.shows("require-commit-before-stop") && !request.shows("COMMITTED-IT") => {
                Step::shell(COMMITS)
            }
            None => Step::say("finished"),
        });
        let stage = StorySandbox::with(&[Agent::OpenCode], script);
        stage.configure("[guard]\nenable = [\"require-commit-before-stop\", \"warn-git-amend\"]\n");
        let server = Server::start(&stage.opencode());
        let session = server.session();
        server.prompt(&session, "please begin");
        stage.request(|request| request.shows("COMMITTED-IT"));
        let noted =
            stage.model.requests_of(Kind::Main).into_iter().any(|request| request.shows("warn-git-amend"));
        assert!(noted, "a note comes with the result: {}", stage.trouble());
        assert!(wait::until(LIMIT, || stage.json(&["who"])[0]["state"] == "idle"), "{}", stage.trouble());
        let log = stage.json(&["guard", "log"]);
        let rules: Vec<_> = log.as_array().into_iter().flatten().map(|entry| entry["rule"].clone()).collect();
        assert_eq!(rules, ["require-commit-before-stop", "warn-git-amend"], "{log}");
    });
}

/// Where nothing of ours can answer and the person wants that, nothing runs: the program is gone.
fn is_closed_without_us(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::shell("touch RAN-UNJUDGED"),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::bare(script);
    stage.configure("[guard]\non_failure = \"deny\"\n");
    // A copy of its own, which is the one that setup names.
    let program = stage.sandbox.path("bin/baton");
    let original = program.canonicalize().expect("the program");
    fs::remove_file(&program).and_then(|()| fs::copy(original, &program)).expect("a copy");
    stage.prepare(&[who]);
    fs::remove_file(program).expect("the program was there");
    stage.run(who, Session::New, "please begin");
    assert!(!stage.sandbox.project().join("RAN-UNJUDGED").exists(), "{who:?}: nobody judged it, and it ran");
}

#[test]
fn claude_runs_nothing_unjudged_where_that_is_wanted() {
    isolated(|| is_closed_without_us(Agent::Claude));
}

#[test]
fn opencode_runs_nothing_unjudged_where_that_is_wanted() {
    isolated(|| is_closed_without_us(Agent::OpenCode));
}

#[test]
fn pi_runs_nothing_unjudged_where_that_is_wanted() {
    isolated(|| is_closed_without_us(Agent::Pi));
}

/// The hook before a tool fails, the one after it does not: the call is in the log.
fn is_told_when_it_ran_unjudged(who: Agent, file: &str, event: &str) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::shell("touch RAN-UNJUDGED"),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script);
    // As if it had crashed: its command is another that fails.
    let file = stage.sandbox.home().join(file);
    let text = fs::read_to_string(&file).expect("the agent's file");
    let broken = text.replace(&format!("{event} --guard"), &format!("{event} --guard --nonsense"));
    assert_ne!(text, broken, "{who:?}: its hook is not in {}", file.display());
    fs::write(&file, broken).expect("the agent's file");
    stage.run(who, Session::New, "please begin");
    assert!(stage.sandbox.project().join("RAN-UNJUDGED").exists(), "{who:?}: {}", stage.trouble());
    let log = stage.json(&["guard", "log"]);
    let unjudged = log.as_array().into_iter().flatten().filter(|entry| entry["decision"] == "unjudged");
    assert_eq!(unjudged.count(), 1, "{who:?}: {log}");
}

#[test]
fn claude_tells_of_a_call_that_ran_unjudged() {
    isolated(|| is_told_when_it_ran_unjudged(Agent::Claude, ".claude/settings.json", "PreToolUse"));
}

#[test]
fn gemini_tells_of_a_call_that_ran_unjudged() {
    isolated(|| is_told_when_it_ran_unjudged(Agent::Gemini, ".gemini/settings.json", "BeforeTool"));
}

/// Calls of every kind, one of them failing: each was judged before it ran, and none is taken for
/// one that was not.
fn is_always_judged(who: Agent) {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::write("made.txt", "made"),
        1 => Step::read("made.txt"),
        2 => Step::mcp("baton", "who", json!({})),
        3 => Step::shell("echo one; false"),
        4 => Step::parts([Part::shell("echo two"), Part::shell("echo two"), Part::shell("sudo true")]),
        7 => Step::shell("echo two"),
        _ => Step::say("finished"),
    });
    let stage = StorySandbox::with(&[who], script);
    stage.run(who, Session::New, "please begin");
    let requests = stage.model.requests_of(Kind::Main);
    assert!(stage.sandbox.project().join("made.txt").exists(), "{who:?}: {}", stage.trouble());
    assert!(result(&requests, 4).contains("one"), "{who:?}: {}", result(&requests, 4));
    let log = stage.json(&["guard", "log"]);
    let decisions: Vec<_> =
        log.as_array().into_iter().flatten().map(|entry| entry["decision"].clone()).collect();
    assert_eq!(decisions, ["deny"], "{who:?}: {log}");
}

#[test]
fn claude_runs_nothing_without_a_judgement() {
    isolated(|| is_always_judged(Agent::Claude));
}

#[test]
fn codex_runs_nothing_without_a_judgement() {
    isolated(|| is_always_judged(Agent::Codex));
}

#[test]
fn opencode_runs_nothing_without_a_judgement() {
    isolated(|| is_always_judged(Agent::OpenCode));
}

#[test]
fn gemini_runs_nothing_without_a_judgement() {
    isolated(|| is_always_judged(Agent::Gemini));
}

#[test]
fn copilot_runs_nothing_without_a_judgement() {
    isolated(|| is_always_judged(Agent::Copilot));
}

#[test]
fn pi_runs_nothing_without_a_judgement() {
    isolated(|| is_always_judged(Agent::Pi));
}
