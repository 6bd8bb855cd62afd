//! An agent asks: the question is recorded, and where nobody else would answer it, its hook is held until somebody does.

use crate::{look, watch};
use baton_agents::Agent;
use baton_agents::agent::Env;
use baton_agents::asked::{self, Asked};
use baton_core::approval::{Answer, State, Step};
use baton_core::event::Event;
use baton_core::id::ApprovalId;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_mail::bell::Bell;
use baton_mail::line::JOB_MARKS;
use baton_mail::{identity, process, project};
use baton_store::{ApprovalRow, Approvals, NewApproval, Process, Role, Store};
use std::path::Path;
use std::time::{Duration, Instant};

/// Where a question comes from.
pub struct Asker<'a> {
    /// Where baton keeps its state.
    pub home: &'a Path,
    /// The agent.
    pub agent: &'a dyn Agent,
    /// The environment of its hook or plugin.
    pub env: Env<'a>,
    /// How long a hook is held. A link holds what it is told of for as long as it is asked.
    pub hold: Span,
    /// Why it is asked, where a rule of ours wants it.
    pub why: Option<String>,
}

/// Whether the questions of this environment are somebody else's: a job's worker has them from the backend itself.
pub fn is_a_jobs(env: Env<'_>) -> bool {
    JOB_MARKS.iter().any(|mark| env(mark).is_some())
}

/// Records a question. Who holds it is the caller's to say.
pub fn record(
    store: &mut Store,
    approvals: &mut Approvals,
    asker: &Asker<'_>,
    event: &Event,
    asked: &Asked,
    holder: Option<Process>,
    asking: Option<Process>,
) -> Result<ApprovalRow, Error> {
    let agent = asker.agent.name();
    let participant =
        store.participant_of(Some(agent), &event.session_id)?.map(|(participant, _)| participant);
    let cwd = event.cwd.as_deref().unwrap_or(Path::new("/"));
    let found = project::of(cwd);
    let now = baton_mail::now();
    let moved = approvals.record(&NewApproval {
        id: ApprovalId::from_random(baton_mail::random()),
        project: participant.as_ref().map_or(found.as_str(), |participant| &participant.project),
        cwd: &cwd.to_string_lossy(),
        agent,
        session: &event.session_id,
        subagent: event.subagent.as_deref(),
        participant: participant.as_ref().map(|participant| participant.id),
        name: participant.as_ref().map_or(agent, |participant| &participant.name),
        transcript: event.transcript.as_deref().map(Path::to_string_lossy).as_deref(),
        question: &asked::to_json(&asked.question).to_string(),
        why: asker.why.as_deref(),
        asked: &asked.question.id,
        call: asked.call.as_deref(),
        input: asked.input,
        asker: asking,
        holder,
        until: holder.filter(|_| asker.hold.0 > 0).map(|_| now.plus(asker.hold)),
        now,
    })?;
    crate::ring(asker.home);
    Ok(moved.row)
}

/// An answer that a hook is to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The question.
    pub id: ApprovalId,
    /// The answer in the agent's words.
    pub text: String,
}

/// Whether an event asks for certain. Where it may not, the agent is left alone.
pub fn is_certain(agent: &dyn Agent, env: Env<'_>, event: &Event, asked: &Asked) -> bool {
    let asking = identity::agent_process(agent, env);
    let arguments = asking.map(|asking| process::arguments(asking.pid)).unwrap_or_default();
    agent.surely_asks(asked, event, &arguments, env, &|file| std::fs::read(file).ok())
}

/// What a hook does with its agent's question: records it and, where nobody sits at the terminal or somebody watches the inbox, waits for an answer.
/// `None`: the hook says nothing, and the agent asks its person itself.
pub fn hold(
    store: &mut Store,
    asker: &Asker<'_>,
    event: &Event,
    asked: &Asked,
) -> Result<Option<Taken>, Error> {
    if is_a_jobs(asker.env) {
        return Ok(None);
    }
    let asking = identity::agent_process(asker.agent, asker.env);
    let arguments = asking.map(|asking| process::arguments(asking.pid)).unwrap_or_default();
    let unattended = asker.agent.is_headless(&arguments, asker.env);
    let can_answer = asker.agent.render_answer(event, asked, &Answer::Allow).is_some()
        || asker.agent.render_answer(event, asked, &Answer::Words(String::new())).is_some();
    let held = can_answer && (unattended || watch::is_watched(asker.home));
    // Either its dialog comes, and tells, or nobody is asked at all.
    if !held && (asker.agent.tells_again(event) || (unattended && !can_answer)) {
        return Ok(None);
    }
    let mut bell = crate::listen(asker.home)?;
    let mut approvals = Approvals::open(asker.home, Role::Hook)?;
    if !can_answer && is_known(&approvals, asker.agent, event, asked)? {
        return Ok(None);
    }
    let holder = held.then(process::this);
    let row = record(store, &mut approvals, asker, event, asked, holder, asking)?;
    if !held || row.holder != holder {
        return Ok(None);
    }
    let render = |answer: &Answer| asker.agent.render_answer(event, asked, answer);
    let taken = wait_for(&mut approvals, &mut bell, asker, &row, &render)?;
    if taken.is_none() {
        approvals.release(&row.id)?;
        crate::ring(asker.home);
    }
    Ok(taken)
}

/// The same for a call that a rule of ours wants to be asked about, in the hook before it: where nobody sits at the terminal, or where its agent can't ask
/// and somebody watches. `render` gives what the hook prints; nothing, to let the call go on. `None`: nobody has answered, and the call must not run.
pub fn hold_call(
    store: &mut Store,
    asker: &Asker<'_>,
    event: &Event,
    asked: &Asked,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    let asking = identity::agent_process(asker.agent, asker.env);
    let mut bell = crate::listen(asker.home)?;
    let mut approvals = Approvals::open(asker.home, Role::Hook)?;
    let holder = Some(process::this());
    let row = record(store, &mut approvals, asker, event, asked, holder, asking)?;
    if row.holder != holder {
        return Ok(None);
    }
    let taken = wait_for(&mut approvals, &mut bell, asker, &row, render)?;
    if taken.is_none() {
        let note = Some("nobody answered in time: it was refused");
        approvals.close(&row.id, Step::RefusedThere, note, baton_mail::now())?;
        crate::ring(asker.home);
    }
    Ok(taken)
}

/// Whether nobody sits in front of the agent whose hook this is, and whether its own terminal can be asked in.
pub fn who_is_there(agent: &dyn Agent, env: Env<'_>) -> (bool, bool) {
    let asking = identity::agent_process(agent, env);
    let arguments = asking.map(|asking| process::arguments(asking.pid)).unwrap_or_default();
    let unattended = agent.is_headless(&arguments, env);
    (unattended, !unattended && asking.is_some_and(|asking| process::reads_a_terminal(asking.pid)))
}

/// Waits for an answer and takes it. `None`: none came in time, or the question is over.
fn wait_for(
    approvals: &mut Approvals,
    bell: &mut Bell,
    asker: &Asker<'_>,
    row: &ApprovalRow,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    let deadline = Instant::now() + asker.hold.to_std();
    let ending = row.asker.and_then(process::ending);
    loop {
        let now = approvals.get(&row.id)?.map_or(State::Gone, |row| row.state);
        if now == State::Answered {
            match take(approvals, asker, &row.id, render) {
                Ok(Some(taken)) => return Ok(Some(taken)),
                // Somebody holds the store for long. Nobody else takes what is ours.
                Err(error) if error.code() == Code::StoreLocked && Instant::now() < deadline => continue,
                other => _ = other?,
            }
        }
        if now.is_end() || now == State::Terminal {
            return Ok(None);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || row.asker.is_some_and(|asking| !process::is_alive(asking)) {
            return take(approvals, asker, &row.id, render);
        }
        // The agent's own dialog may be answered meanwhile, which nothing announces; each sweep looks.
        bell.wait_or_end(ending.as_ref(), left.min(SWEEP));
        if let Some(open) = approvals.get(&row.id)? {
            look::reconcile(approvals, asker.home, open)?;
        }
    }
}

/// Whether the dialog that is told of is that of a question which was held before.
fn is_known(approvals: &Approvals, agent: &dyn Agent, event: &Event, asked: &Asked) -> Result<bool, Error> {
    let open = approvals.of_session(agent.name(), &event.session_id)?;
    Ok(open.iter().any(|row| row.state == State::Terminal && row.input == asked.input))
}

/// How often a held hook looks at what its agent's own files say.
const SWEEP: Duration = Duration::from_millis(500);

/// Takes an answer, if there is one, in the agent's words.
fn take(
    approvals: &mut Approvals,
    asker: &Asker<'_>,
    id: &ApprovalId,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    let Some(moved) = approvals.take(id, baton_mail::now())?.filter(|moved| moved.moved) else {
        return Ok(None);
    };
    crate::ring(asker.home);
    let text = moved.row.answer.and_then(|answer| render(&answer));
    if text.is_none() {
        approvals.refused(id, "its hook can't give that answer")?;
        crate::ring(asker.home);
    }
    Ok(text.map(|text| Taken { id: id.clone(), text }))
}

/// The answer that was taken could not be printed: the agent does not have it.
pub fn give_back(home: &Path, taken: &Taken) -> Result<(), Error> {
    let mut approvals = Approvals::open(home, Role::Hook)?;
    approvals.refused(&taken.id, "its agent did not read the answer")?;
    approvals.release(&taken.id)?;
    crate::ring(home);
    Ok(())
}
