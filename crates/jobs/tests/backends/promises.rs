//! The promises that are checked in the same way with each program.

use crate::bench::{self, AT_ONCE, LIMIT, Stage, all_gone, endless, pid_in};
use baton_core::Code;
use baton_core::job::{Fault, Finish, Observation, Said, ToolKind, ToolState};
use baton_jobs::backend::Task;
use baton_machine::process;
use baton_testkit::agents::Agent;
use baton_testkit::model::Part;
use baton_testkit::{Script, Step, wait};
use std::fs;
use std::time::Instant;

fn end(text: &str) -> Said {
    Said { text: text.to_owned(), finish: Finish::End }
}

/// Steps are reported as steps, tools with their calls, and the model's last message is the end.
#[track_caller]
pub fn a_turn_with_tools_ends_with_what_the_model_said(agent: Agent) {
    let stage = Stage::steps(agent, [Step::shell("echo one > made; sleep 1"), Step::say("all done\nreally")]);
    let job = stage.ask("make a file");
    assert_eq!(job.said(), end("all done\nreally"));
    let ran = job.tool(ToolKind::Shell, ToolState::Running);
    assert!(ran.what.contains("echo one"), "{}", ran.what);
    assert_eq!(job.tool(ToolKind::Shell, ToolState::Ended).call, ran.call);
    assert!(job.open_tools().is_empty());
    assert_eq!(fs::read_to_string(stage.file("made")).unwrap(), "one\n");
    let session = job.session();
    let snapshot = wait::poll(AT_ONCE, || {
        let snapshot = stage.backend().recall(&job.task, &session)?;
        (snapshot.idle == Some(true)).then_some(snapshot)
    });
    let snapshot = snapshot.expect("the turn is recalled");
    assert_eq!((snapshot.said, snapshot.tools), (Some(end("all done\nreally")), Vec::new()));
    let root = job.turn.root();
    job.turn.close();
    all_gone(&Vec::from_iter(root.map(|root| root.pid)));
    assert!(!job.has(|seen| matches!(seen, Observation::Gone(_))));
}

/// The prompt arrives byte for byte.
#[track_caller]
pub fn a_prompt_arrives_whole(agent: Agent, prompt: &str) {
    arrives_whole(&Stage::steps(agent, [Step::say("ok")]), prompt);
}

#[track_caller]
pub fn arrives_whole(stage: &Stage, prompt: &str) {
    let job = stage.ask(prompt);
    assert_eq!(job.said().text, "ok");
    let asked = stage.asked();
    let texts: Vec<&str> = asked[0].shown().map(|said| said.text.as_str()).collect();
    if !texts.contains(&prompt) {
        // Not assert_eq: the difference would be too long to read.
        let near = texts.iter().max_by_key(|text| text.len()).unwrap_or(&"");
        let differs = near.bytes().zip(prompt.bytes()).position(|(a, b)| a != b);
        panic!("{} of {} bytes, first difference at {differs:?}", near.len(), prompt.len());
    }
}

/// A second turn continues the first, and a recall tells the two apart.
#[track_caller]
pub fn a_resumed_session_knows_what_was_said(agent: Agent) {
    let script = Script::by(|request| {
        if request.shows("second question") {
            assert!(request.shows("first question"));
            Step::Hang
        } else {
            Step::say("first answer")
        }
    });
    let stage = Stage::new(agent, script);
    let first = stage.ask("the first question");
    first.said();
    let session = first.session();
    drop(first);
    let second = stage.start(&Task { resume: Some(session.clone()), ..stage.task("the second question") });
    assert!(wait::until(LIMIT, || stage.asked().len() == 2), "{:#?}", second.all());
    assert_eq!(second.session(), session);
    let said: Vec<_> = stage.asked()[1].said().iter().map(|said| said.text.clone()).collect();
    assert!(said.iter().any(|text| text == "first answer"), "{said:?}");
    // Killed in the middle, nothing of the second turn has ended.
    bench::kill(second.pid());
    second.gone();
    let recalled = stage.backend().recall(&second.task, &session);
    assert!(recalled.is_none_or(|snapshot| snapshot.said.is_none() && snapshot.fault.is_none()));
}

/// A model that does not begin its answer, and one that does not end it, leave the turn as it is
/// until it is aborted.
#[track_caller]
pub fn a_model_that_hangs_is_left_by_an_abort(stage: impl Fn(Step) -> Stage) {
    let within = Step::parts([Part::text("a whole message"), Part::Pause(LIMIT * 10)]);
    for (step, begins) in [(Step::Hang, false), (within, true)] {
        let stage = stage(step);
        let job = stage.ask("hello");
        assert!(wait::until(LIMIT, || stage.asked().len() == 1));
        job.wait_for(&Observation::Busy);
        if begins && job.turn.look().is_some() {
            job.wait("words", |seen| matches!(seen, Observation::Progress(_)).then_some(()));
        }
        if job.turn.look().is_some() {
            let look = job.look();
            assert_eq!((look.idle, look.said), (Some(false), None));
        }
        let ends = |seen: &Observation| {
            matches!(
                seen,
                Observation::Said(_) | Observation::Idle | Observation::Gone(_) | Observation::Aborted
            )
        };
        assert!(!job.has(ends), "{:#?}", job.all());
        job.abort();
        assert!(!job.has(|seen| matches!(seen, Observation::Said(_))), "{:#?}", job.all());
    }
}

/// A command that never returns is seen as running below the root, and an abort ends it too.
#[track_caller]
pub fn an_abort_ends_the_command_that_runs(agent: Agent) {
    let stage = Stage::steps(agent, [Step::shell(endless("pid")), Step::say("never")]);
    let job = stage.ask("run it");
    job.tool(ToolKind::Shell, ToolState::Running);
    let command = pid_in(&stage.file("pid"));
    let root = job.pid();
    assert!(process::lineage(command).contains(&root), "the command runs below the root");
    job.abort();
    job.turn.close();
    all_gone(&[command, root]);
    assert_eq!(stage.asked().len(), 1);
}

/// `kill -9` in the middle is reported within a second, and a recall finds no end.
#[track_caller]
pub fn a_killed_program_is_gone(agent: Agent) {
    let stage = Stage::steps(agent, [Step::Hang]);
    let job = stage.ask("hello");
    assert!(wait::until(LIMIT, || stage.asked().len() == 1));
    let session = job.session();
    let killed = Instant::now();
    bench::kill(job.pid());
    let words = job.gone();
    assert!(killed.elapsed() < AT_ONCE, "{:?}", killed.elapsed());
    assert!(words.contains("signal 9"), "{words}");
    let recalled = stage.backend().recall(&job.task, &session);
    assert!(recalled.is_none_or(|snapshot| snapshot.said.is_none()));
}

/// An answer that breaks off, and one with an error in it, are tried again or are a fault. Half a
/// text is no part of a result.
#[track_caller]
pub fn a_broken_answer_is_no_end(agent: Agent, events: usize) {
    for broken in [Step::say("half").cut(events), Step::inside("scripted failure")] {
        let stage = Stage::steps(agent, [broken, Step::say("whole")]);
        let job = stage.ask("hello");
        let end = |seen: &Observation| matches!(seen, Observation::Idle | Observation::Fault(_));
        job.wait("end", |seen| end(seen).then_some(()));
        let faulty = job.has(|seen| matches!(seen, Observation::Fault(_)));
        let ends = job.all().into_iter().filter_map(|seen| match seen {
            Observation::Said(said) if said.finish == Finish::End => Some(said.text),
            _ => None,
        });
        let wanted: &[&str] = if faulty { &[] } else { &["whole"] };
        assert_eq!(ends.collect::<Vec<_>>(), wanted, "{:#?}", job.all());
    }
}

/// A fault of the provider has our code, and the words of the program.
#[track_caller]
pub fn a_refused_request_is_a_fault(agent: Agent, status: u16, code: Code) -> Fault {
    let stage = Stage::new(agent, Script::by(move |_| Step::error(status, "scripted refusal")));
    let job = stage.ask("hello");
    let fault = job.fault();
    assert_eq!(fault.error.code(), code, "{fault:?}");
    assert!(fault.error.hint_text().is_some());
    assert!(!job.has(|seen| *seen == Observation::Idle));
    fault
}

/// A fault that the program remembers has the same code when it is reported, looked at and
/// recalled.
#[track_caller]
pub fn a_fault_is_told_and_kept(stage: &Stage, code: Code, words: &str, retries: bool) -> Fault {
    let job = stage.start(&stage.task);
    let fault = job.fault();
    assert_eq!(fault.error.code(), code, "{fault:?}");
    assert!(fault.error.message().contains(words) && fault.error.hint_text().is_some(), "{fault:?}");
    job.wait_for(&Observation::Idle);
    let retried = job.has(|seen| matches!(seen, Observation::Retrying { .. }));
    assert_eq!(retried, retries, "{:#?}", job.all());
    assert!(!job.has(|seen| matches!(seen, Observation::Said(_))), "{:#?}", job.all());
    assert_eq!(job.look().fault.unwrap().error.code(), code);
    let recalled = stage.backend().recall(&job.task, &job.session()).expect("it is written down");
    assert_eq!(recalled.fault.unwrap().error.code(), code);
    fault
}

/// A read-only job can't write, by the shell or by a tool, whatever it may do without asking.
#[track_caller]
pub fn a_read_only_job_changes_nothing(agent: Agent) {
    let stage = Stage::steps(agent, []);
    let file = |name| stage.file(name).to_string_lossy().into_owned();
    let (kept, made) = (file("kept"), file("made"));
    let stage = stage.again([
        Step::shell(format!("echo x > {kept}; touch {made}")),
        Step::write(&kept, "other"),
        Step::write(&made, "new"),
        Step::read(&kept),
        Step::say("tried"),
    ]);
    fs::write(stage.file("kept"), "as it was").unwrap();
    let job = stage.start(&Task { read_only: true, ..stage.task("try") });
    assert_eq!(job.said().text, "tried");
    assert_eq!(fs::read_to_string(stage.file("kept")).unwrap(), "as it was");
    assert!(!stage.file("made").exists());
    let last = stage.asked().last().cloned().unwrap();
    assert!(last.shows("as it was"), "it could read: {:#?}", last.results());
}
