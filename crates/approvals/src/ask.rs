//! An agent asks: the question is recorded, and where nobody else would answer it, its hook is held until somebody does.

use crate::trail::{self, Kind};
use crate::{look, reviewers, watch};
use baton_agents::Agent;
use baton_agents::agent::Env;
use baton_agents::asked::{self, Asked};
use baton_core::approval::{Answer, QuestionKind, State, Step};
use baton_core::event::Event;
use baton_core::id::ApprovalId;
use baton_core::time::Span;
use baton_core::{Code, Error, frame};
use baton_gate::Gate;
use baton_gate::approvals::{Access, Opinion, Policy};
use baton_mail::bell::Bell;
use baton_mail::line::JOB_MARKS;
use baton_mail::{identity, process, project};
use baton_store::{ApprovalRow, Approvals, NewApproval, Process, Role, Store};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much of why is kept, in characters.
const WHY: usize = 400;

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
    /// What the person has set about questions, and what that means for this one.
    pub rules: Rules,
}

/// What the person has set about questions, and what that means for one. The default: nothing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Why it is asked, where the guard wants it; by which rule nobody need be asked.
    pub opinion: Opinion,
    /// Who may answer, and how people are told.
    pub policy: Policy,
    /// Baton's own program, which tells them.
    pub program: Option<PathBuf>,
}

impl Rules {
    /// Those for the question that a payload shows. With a mistake in the person's file there are none.
    pub fn of_question(gate: &Gate, agent: &dyn Agent, payload: &[u8], program: Option<PathBuf>) -> Self {
        let Ok(policy) = gate.approvals() else { return Self::default() };
        Self { opinion: gate.opinion_of_question(agent, payload), policy, program }
    }

    /// Those for a call that a rule of ours wants to be asked about. What the person lets run by rule is not what a rule wants the person to see.
    pub fn of_call(gate: &Gate, why: &str, program: Option<PathBuf>) -> Self {
        let opinion = Opinion { why: Some(frame::shown(why, WHY)), by_rule: None };
        Self { opinion, policy: gate.approvals().unwrap_or_default(), program }
    }

    /// Those for a question that says itself which call it is about.
    pub fn of_asked(
        gate: &Gate,
        agent: &dyn Agent,
        cwd: &Path,
        asked: &Asked,
        program: Option<PathBuf>,
    ) -> Self {
        if let Some(why) = &asked.question.why {
            return Self::of_call(gate, why, program);
        }
        let Ok(policy) = gate.approvals() else { return Self::default() };
        let about = asked.question.tool_use.as_deref();
        let opinion =
            about.map(|tool| gate.opinion_of_tool(agent, cwd, tool, Access::Any)).unwrap_or_default();
        Self { opinion, policy, program }
    }

    /// Who answers by rule, as it is written down.
    fn by(&self, asked: &Asked) -> Option<String> {
        let by = self.opinion.by_rule.as_ref().filter(|_| asked.question.kind == QuestionKind::Permission);
        by.map(|rule| format!("rule: {rule}"))
    }
}

/// Whether the questions of this environment are somebody else's: a job's worker has them from the backend itself.
pub fn is_a_jobs(env: Env<'_>) -> bool {
    JOB_MARKS.iter().any(|mark| env(mark).is_some())
}

/// Records a question, with the answer where a rule of the person's gives one. Who holds it is the caller's to say.
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
        why: asker.rules.opinion.why.as_deref(),
        asked: &asked.question.id,
        call: asked.call.as_deref(),
        input: asked.input,
        asker: asking,
        holder,
        until: holder.filter(|_| asker.hold.0 > 0).map(|_| now.plus(asker.hold)),
        now,
    })?;
    if moved.moved {
        trail::note_in(store, Kind::Asked, &moved.row);
    }
    // Also if it was recorded before, by one who could not write the rest.
    let is_ours = moved.row.state == State::Waiting && moved.row.holder == holder;
    let by = asker.rules.by(asked).filter(|_| is_ours);
    let row = match by {
        None => moved.row,
        Some(by) => match approvals.answer(&moved.row.id, &Answer::Allow, &by, baton_mail::now())? {
            Some(answered) => {
                trail::note_in(store, Kind::Answered, &answered.row);
                answered.row
            }
            None => moved.row,
        },
    };
    crate::ring(asker.home);
    let told = row.answer.is_none() && asker.rules.policy.notify.is_set();
    if let Some(program) = asker.rules.program.as_deref().filter(|_| told) {
        baton_jobs::notify::of(program, asker.home, row.id.as_str());
    }
    Ok(row)
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
    let allows = asker.agent.render_answer(event, asked, &Answer::Allow).is_some();
    let can_answer =
        allows || asker.agent.render_answer(event, asked, &Answer::Words(String::new())).is_some();
    let by_rule = allows && asker.rules.by(asked).is_some();
    let held = can_answer && (unattended || is_watched(store, asker, event));
    // Either its dialog comes, and tells, or nobody is asked at all.
    if !held && !by_rule && (asker.agent.tells_again(event) || (unattended && !can_answer)) {
        return Ok(None);
    }
    let mut bell = crate::listen(asker.home)?;
    let mut approvals = Approvals::open(asker.home, Role::Hook)?;
    if !can_answer && is_known(&approvals, asker.agent, event, asked)? {
        return Ok(None);
    }
    let holder = (held || by_rule).then(process::this);
    let row = record(store, &mut approvals, asker, event, asked, holder, asking)?;
    if holder.is_none() || row.holder != holder {
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

/// Whether a call that a rule of ours wants to be asked about may be held for an answer: where nobody sits at the terminal, or somebody watches. Never a
/// job's: its worker has that from the backend.
pub fn may_hold_call(store: &mut Store, asker: &Asker<'_>, event: &Event) -> bool {
    if is_a_jobs(asker.env) {
        return false;
    }
    let asking = identity::agent_process(asker.agent, asker.env);
    let arguments = asking.map(|asking| process::arguments(asking.pid)).unwrap_or_default();
    asker.agent.is_headless(&arguments, asker.env) || is_watched(store, asker, event)
}

/// The same for a call that a rule of ours wants to be asked about, in the hook before it, where it [may be held](may_hold_call). `render` gives what
/// the hook prints. `None`: nobody has answered, and the call must not run.
pub fn hold_call(
    store: &mut Store,
    asker: &Asker<'_>,
    event: &Event,
    asked: &Asked,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    if !may_hold_call(store, asker, event) {
        return Ok(None);
    }
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

/// Whether somebody sits in front of the agent whose hook this is, so that its own terminal can be asked in.
pub fn is_at_terminal(agent: &dyn Agent, env: Env<'_>) -> bool {
    identity::agent_process(agent, env).is_some_and(|asking| {
        !agent.is_headless(&process::arguments(asking.pid), env) && process::reads_a_terminal(asking.pid)
    })
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

/// Whether somebody is there for the questions of all, or a reviewer for those of this session.
fn is_watched(store: &mut Store, asker: &Asker<'_>, event: &Event) -> bool {
    if watch::is_watched(asker.home) {
        return true;
    }
    let policy = &asker.rules.policy;
    if policy.reviewers.is_empty() {
        return false;
    }
    let Ok(Some((asks, _))) = store.participant_of(Some(asker.agent.name()), &event.session_id) else {
        return false;
    };
    reviewers::is_present(store, policy, &asks.project, Some(asks.id))
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
