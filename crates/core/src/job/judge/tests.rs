//! Observations in, verdict out.

use super::*;
use crate::approval::{Question, Subject};
use crate::job::{Observation as O, Snapshot, Status, Tool, ToolKind, ToolState};
use proptest::prelude::*;

const LOOKS: bool = true;

fn watch(seen: &[(i64, O)]) -> Watch {
    let mut watch = Watch::default();
    for (at, observation) in seen {
        watch.observe(observation.clone(), Span::seconds(*at));
    }
    watch
}

fn now(seconds: i64) -> Now {
    Now { since: Span::seconds(seconds), wall: Moment(1_000_000_000_000 + seconds * 1000), looks: LOOKS }
}

fn verdict(seen: &[(i64, O)], seconds: i64) -> Option<JobVerdict> {
    all(&watch(seen), &Patience::default(), now(seconds))
}

fn code(verdict: Option<JobVerdict>) -> Option<Code> {
    match verdict? {
        JobVerdict::Failed(fault) | JobVerdict::Stop(fault) | JobVerdict::Lost(fault) => {
            Some(fault.error.code())
        }
        JobVerdict::Completed(_) | JobVerdict::Aborted | JobVerdict::Extend => None,
    }
}

fn said(finish: Finish) -> O {
    O::Said(Said { text: "done".to_owned(), finish })
}

fn tool(state: ToolState) -> Tool {
    let (call, what) = ("c1".to_owned(), "bash: make".to_owned());
    Tool { call, kind: ToolKind::Shell, what, state, output: 0 }
}

fn look(idle: bool, finish: Option<Finish>) -> O {
    let said = finish.map(|finish| Said { text: "done".to_owned(), finish });
    O::Looked(Snapshot { idle: Some(idle), said, ..Snapshot::default() })
}

#[test]
fn a_result_needs_idle_a_last_word_and_no_open_tool() {
    let done = Some(JobVerdict::Completed("done".to_owned()));
    assert_eq!(verdict(&[(0, O::Busy), (1, said(Finish::End)), (2, O::Idle)], 2), done);
    assert_eq!(verdict(&[(0, O::Busy), (1, O::Idle), (2, said(Finish::End))], 2), done, "in either order");
    assert_eq!(verdict(&[(1, said(Finish::Length)), (2, O::Idle)], 2), done);
    // One of the three is missing.
    assert_eq!(verdict(&[(1, said(Finish::End))], 2), None);
    assert_eq!(verdict(&[(1, O::Idle)], 2), None);
    for finish in [Finish::ToolCalls, Finish::Unknown, Finish::Summary, Finish::Absent] {
        assert_eq!(verdict(&[(1, said(finish)), (2, O::Idle)], 3), None, "{finish:?}");
    }
    for state in [ToolState::Pending, ToolState::Running] {
        assert_eq!(verdict(&[(0, O::Tool(tool(state))), (1, said(Finish::End)), (2, O::Idle)], 60), None);
    }
    let ended = [
        (0, O::Tool(tool(ToolState::Running))),
        (1, O::Tool(tool(ToolState::Ended))),
        (1, said(Finish::End)),
        (2, O::Idle),
    ];
    assert_eq!(verdict(&ended, 2), done);
}

#[test]
fn a_step_that_ended_is_not_the_end_of_the_turn() {
    let step =
        [(1, said(Finish::ToolCalls)), (1, O::Idle), (1, O::Busy), (2, O::Tool(tool(ToolState::Running)))];
    assert_eq!(verdict(&step, 600), None);
}

#[test]
fn a_message_without_a_finish_counts_after_two_idle_looks() {
    assert_eq!(verdict(&[(5, look(true, Some(Finish::Absent)))], 5), None);
    let twice = [(5, look(true, Some(Finish::Absent))), (10, look(true, Some(Finish::Absent)))];
    assert_eq!(verdict(&twice, 10), Some(JobVerdict::Completed("done".to_owned())));
    let between = [
        (5, look(true, Some(Finish::Absent))),
        (7, look(false, None)),
        (10, look(true, Some(Finish::Absent))),
    ];
    assert_eq!(verdict(&between, 10), None, "it worked in between");
}

#[test]
fn one_that_stops_without_a_last_word_has_failed() {
    for seen in [
        vec![(1, said(Finish::ToolCalls)), (2, O::Idle)],
        vec![(1, said(Finish::Unknown)), (2, O::Idle)],
        vec![(1, O::Busy), (2, O::Idle)],
    ] {
        assert_eq!(verdict(&seen, 11), None, "{seen:?}");
        assert_eq!(code(verdict(&seen, 12)), Some(Code::BackendError), "{seen:?}");
    }
}

#[test]
fn an_error_and_an_abort_are_ends() {
    let error = O::Fault(Fault::new(Code::NotLoggedIn, "401"));
    assert_eq!(code(verdict(&[(0, O::Busy), (1, error.clone())], 1)), Some(Code::NotLoggedIn));
    // The program dies because of the error. The error is the reason, not the death.
    assert_eq!(code(verdict(&[(1, error), (2, O::Gone("exit code 1".into()))], 2)), Some(Code::NotLoggedIn));
    assert_eq!(verdict(&[(0, O::Busy), (1, O::Aborted)], 1), Some(JobVerdict::Aborted));
}

#[test]
fn one_that_has_finished_and_died_has_finished() {
    let seen = [(1, said(Finish::End)), (2, O::Idle), (3, O::Gone("signal 9".into()))];
    assert_eq!(verdict(&seen, 3), Some(JobVerdict::Completed("done".to_owned())));
    assert_eq!(code(verdict(&[(1, O::Busy), (3, O::Gone("signal 9".into()))], 3)), Some(Code::BackendGone));
}

#[test]
fn one_way_to_hear_it_is_enough() {
    let stream = (1, O::Lost(Channel::Stream, "closed".into()));
    let looks = (2, O::Lost(Channel::Look, "refused".into()));
    assert_eq!(verdict(std::slice::from_ref(&stream), 60), None);
    assert_eq!(verdict(std::slice::from_ref(&looks), 60), None);
    let both = [stream, looks.clone()];
    assert_eq!(verdict(&both, 6), None);
    assert_eq!(code(verdict(&both, 7)), Some(Code::TransportLost));
    let back = [both[0].clone(), both[1].clone(), (5, look(false, None))];
    assert_eq!(verdict(&back, 60), None, "a look that works is a way");
    // If the backend can't be asked, the stream is the only channel.
    let deaf = Now { looks: false, ..now(60) };
    assert_eq!(code(all(&watch(&both[..1]), &Patience::default(), deaf)), Some(Code::TransportLost));
}

#[test]
fn a_shell_without_a_process_on_three_looks_in_a_row_is_stuck() {
    for (lives, stuck) in [
        (vec![Life::Absent; 3], true),
        (vec![Life::Absent; 2], false),
        (vec![Life::Absent, Life::Absent, Life::Unknown, Life::Absent], false),
        (vec![Life::Absent, Life::Absent, Life::Alive, Life::Absent, Life::Absent], false),
        (vec![Life::Unknown; 9], false),
    ] {
        let mut watch = watch(&[(1, O::Tool(tool(ToolState::Running)))]);
        for life in &lives {
            watch.vitals(&[("c1".to_owned(), *life)]);
        }
        let found = code(all(&watch, &Patience::default(), now(20)));
        assert_eq!(found == Some(Code::StuckTool), stuck, "{lives:?}");
    }
    // While it waits for a permission, it has no process. Some backends report that wait only
    // afterwards.
    let asked_for = [(1, O::Tool(tool(ToolState::Running))), (2, O::Tool(tool(ToolState::Pending)))];
    for seen in [&asked_for[1..], &asked_for] {
        let mut waiting = watch(seen);
        for _ in 0..9 {
            waiting.vitals(&[("c1".to_owned(), Life::Absent)]);
        }
        assert_eq!(all(&waiting, &Patience::default(), now(60)), None);
        waiting.observe(O::Tool(tool(ToolState::Running)), Span::seconds(60));
        waiting.vitals(&[("c1".to_owned(), Life::Absent)]);
        assert_eq!(all(&waiting, &Patience::default(), now(61)), None, "it begins anew");
    }
}

#[test]
fn an_hour_without_a_change_is_a_stall_unless_a_tool_lives() {
    let quiet = [(0, O::Busy), (10, O::Progress("bash: make".into()))];
    assert_eq!(verdict(&quiet, 3609), None);
    assert_eq!(code(verdict(&quiet, 3610)), Some(Code::Stalled));
    // A look without news is no change. A look with a new version is.
    assert_eq!(
        code(verdict(&[(10, look(false, None)), (3000, look(false, None))], 3700)),
        Some(Code::Stalled)
    );
    let newer = O::Looked(Snapshot { idle: Some(false), version: 7, ..Snapshot::default() });
    assert_eq!(verdict(&[(10, O::Busy), (3000, newer)], 3700), None);

    let mut living = watch(&[(10, O::Tool(tool(ToolState::Running)))]);
    living.vitals(&[("c1".to_owned(), Life::Alive)]);
    let patience = Patience { cap: Span::days(9), ..Patience::default() };
    let mut extended = 0;
    for hour in 1..9 {
        match all(&living, &patience, now(10 + hour * 3600)) {
            Some(JobVerdict::Extend) => {
                living.extensions += 1;
                extended += 1;
            }
            other => {
                assert_eq!(code(other), Some(Code::Stalled));
                break;
            }
        }
    }
    assert_eq!(extended, patience.extensions);
}

#[test]
fn waiting_for_a_person_is_no_stall_but_has_the_cap() {
    let question = Question::new("q", Subject::command("bash", "rm -r target"));
    let blocked = [(1, O::Busy), (2, O::Asked(question))];
    assert_eq!(watch(&blocked).status(), Status::Blocked);
    assert_eq!(verdict(&blocked, 7200), None);
    assert_eq!(code(verdict(&blocked, 4 * 3600)), Some(Code::JobTimeout));
    let answered = [blocked[0].clone(), blocked[1].clone(), (9, O::Settled("q".into()))];
    assert_eq!(watch(&answered).status(), Status::Running);
}

#[test]
fn a_rate_limit_has_its_own_code_and_reset_time() {
    let retry = |seconds: i64| O::Retrying {
        message: "429 Too Many Requests".into(),
        until: Some(now(seconds).wall),
    };
    assert_eq!(verdict(&[(1, retry(20))], 2), None, "a short wait is the backend's own business");
    let Some(JobVerdict::Stop(fault)) = verdict(&[(1, retry(3601))], 2) else {
        panic!("it waits for an hour")
    };
    assert_eq!((fault.error.code(), fault.again_at), (Code::RateLimited, Some(now(3601).wall)));
    // Many short waits add up to a long one. Work in between ends the count.
    let tries: Vec<_> = (0..40).map(|n| (n * 20, retry(n * 20 + 20))).collect();
    assert_eq!(code(verdict(&tries, 799)), Some(Code::RateLimited));
    let mut worked = tries.clone();
    worked.insert(30, (590, O::Progress("text".into())));
    assert_eq!(verdict(&worked, 799), None);
    let server = [(1, O::Retrying { message: "500 Internal Server Error".into(), until: None })];
    assert_eq!(code(verdict(&server, 700)), Some(Code::BackendError));
}

#[test]
fn a_breadcrumb_is_one_short_line() {
    let long = format!("bash:  make\n\t{}", "é".repeat(200));
    let crumb = watch(&[(1, O::Progress(long)), (2, O::Progress(String::new()))]).crumb.unwrap();
    assert!(crumb.what.starts_with("bash: make é") && crumb.what.chars().count() == 80);
    assert_eq!(crumb.at, Span::seconds(1));
}

fn observation() -> impl Strategy<Value = O> {
    let finish = prop_oneof![
        Just(Finish::End),
        Just(Finish::ToolCalls),
        Just(Finish::Summary),
        Just(Finish::Unknown),
        Just(Finish::Absent)
    ];
    let state = prop_oneof![Just(ToolState::Pending), Just(ToolState::Running), Just(ToolState::Ended)];
    prop_oneof![
        Just(O::Busy),
        Just(O::Idle),
        finish.clone().prop_map(said),
        state.prop_map(|state| O::Tool(tool(state))),
        (any::<bool>(), proptest::option::of(finish)).prop_map(|(idle, finish)| look(idle, finish)),
        Just(O::Lost(Channel::Stream, "x".into())),
        Just(O::Found(Channel::Stream)),
        Just(O::Gone("x".into())),
    ]
}

/// E6: with a short `jobs.idle`, an agent that waits for its model to answer again is not stalled.
#[test]
fn e6_a_wall_is_told_from_silence() {
    let patience = Patience { idle: Span::seconds(5), ..Patience::default() };
    for (message, code) in [
        (Some("Attempt 1 failed with status 429"), Code::RateLimited),
        (Some("Attempt 1 failed with status 500"), Code::BackendError),
        (None, Code::Stalled),
    ] {
        let mut watch = Watch::default();
        watch.observe(O::Busy, Span(0));
        if let Some(message) = message {
            watch.observe(O::Retrying { message: message.to_owned(), until: None }, Span::seconds(1));
        }
        let found = all(&watch, &patience, Now { since: Span::seconds(30), ..now(0) });
        let Some(JobVerdict::Stop(fault)) = found else { panic!("{found:?}") };
        assert_eq!(fault.error.code(), code, "{message:?}");
    }
}

proptest! {
    /// In any order of observations: a result needs all of its grounds, and a backend that is gone
    /// never counts as running.
    #[test]
    fn no_result_without_its_grounds(seen in proptest::collection::vec(observation(), 0..40)) {
        let mut watch = Watch::default();
        for (at, observation) in seen.into_iter().enumerate() {
            let at = Span::seconds(at as i64);
            watch.observe(observation, at);
            let found = all(&watch, &Patience::default(), Now { since: at, ..now(0) });
            if let Some(JobVerdict::Completed(_)) = found {
                prop_assert!(watch.idle_since.is_some());
                prop_assert!(watch.open_tools().next().is_none());
                let finish = watch.said.as_ref().map(|said| said.finish);
                prop_assert!(matches!(finish, Some(Finish::End)) || (finish == Some(Finish::Absent) && watch.idle_looks >= 2));
            }
            if watch.gone.is_some() {
                prop_assert!(found.is_some());
            }
        }
    }
}
