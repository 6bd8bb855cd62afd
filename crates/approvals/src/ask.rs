//! An agent asks a question. The question is recorded. If no person would see the agent's own
//! dialog, or one watches the inbox, the hook is held until an answer comes.

use crate::trail::{self, Kind};
use crate::{look, reviewers, watch};
use baton_agents::Agent;
use baton_agents::agent::Env;
use baton_agents::asked::{self, AgentQuestion};
use baton_core::approval::{Answer, AskedBy, Digest, QuestionKind, State, Step};
use baton_core::event::Event;
use baton_core::id::ApprovalId;
use baton_core::job::JOB_MARKS;
use baton_core::process::Process;
use baton_core::time::Span;
use baton_core::{Code, Error, frame, limits};
use baton_guard_runtime::Guard;
use baton_guard_runtime::approvals::{Access, ApprovalSettings, Opinion};
use baton_machine::bell::Bell;
use baton_machine::{process, project};
use baton_mail::identity;
use baton_store::{ApprovalRow, Approvals, NewApproval, Role, Store};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much of the reason is kept.
const WHY_CHARS: usize = 400;
/// How often a held hook checks its agent's own files.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// Where a question comes from.
pub struct Asker<'a> {
    pub home: &'a Path,
    pub agent: &'a dyn Agent,
    /// The environment of its hook or plugin.
    pub env: Env<'a>,
    /// How long a hook is held. A link holds a question as long as the agent asks it.
    pub hold: Span,
    /// What the user has set about questions, applied to this one.
    pub rules: Rules,
}

/// What the user has set about questions, applied to one of them. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Why the guard wants it asked, and which rule answers it without a person.
    pub opinion: Opinion,
    /// Who may answer, and how people are notified.
    pub policy: ApprovalSettings,
    /// Baton's own program, which notifies them.
    pub program: Option<PathBuf>,
}

impl Rules {
    /// The rules for the question in a payload. If the user's file has a mistake, there are none.
    pub fn of_question(guard: &Guard, agent: &dyn Agent, payload: &[u8], program: Option<PathBuf>) -> Self {
        let Ok(policy) = guard.approvals() else { return Self::default() };
        Self { opinion: guard.opinion_of_question(agent, payload), policy, program }
    }

    /// The rules for a call that a guard rule wants confirmed. No auto_approve rule answers it,
    /// because the guard wants a person to see it.
    pub fn of_call(guard: &Guard, why: &str, program: Option<PathBuf>) -> Self {
        let opinion = Opinion { why: Some(frame::shown(why, WHY_CHARS)), by_rule: None };
        Self { opinion, policy: guard.approvals().unwrap_or_default(), program }
    }

    /// The rules for a question that names the call it is about.
    pub fn of_asked(
        guard: &Guard,
        agent: &dyn Agent,
        cwd: &Path,
        asked: &AgentQuestion,
        program: Option<PathBuf>,
    ) -> Self {
        if let Some(why) = &asked.question.why {
            return Self::of_call(guard, why, program);
        }
        let Ok(policy) = guard.approvals() else { return Self::default() };
        let about = asked.question.tool_use.as_deref();
        let opinion =
            about.map(|tool| guard.opinion_of_tool(agent, cwd, tool, Access::Any)).unwrap_or_default();
        Self { opinion, policy, program }
    }

    /// The rule that answers, as the record names it.
    fn by(&self, asked: &AgentQuestion) -> Option<String> {
        let by = self.opinion.by_rule.as_ref().filter(|_| asked.question.kind() == QuestionKind::Permission);
        by.map(|rule| format!("rule: {rule}"))
    }
}

/// Whether this environment is a job's. A job's worker gets the questions from the backend itself.
pub fn is_a_jobs(env: Env<'_>) -> bool {
    JOB_MARKS.iter().any(|mark| env(mark).is_some())
}

/// A question to be recorded.
#[derive(Clone, Copy)]
pub struct NewQuestion<'a> {
    /// The event that asks.
    pub event: &'a Event,
    /// What it asks.
    pub asked: &'a AgentQuestion,
    /// The process that can hand the answer to the agent; `None` if none can.
    pub holder: Option<Process>,
    /// The agent's own process.
    pub agent_process: Option<Process>,
}

/// Records a question. If a rule of the user answers it, the answer is recorded too. The caller
/// says which process holds it.
pub fn record(
    store: &mut Store,
    approvals: &mut Approvals,
    asker: &Asker<'_>,
    new: &NewQuestion<'_>,
) -> Result<ApprovalRow, Error> {
    let NewQuestion { event, asked, holder, agent_process } = *new;
    let agent = asker.agent.name();
    let participant =
        store.participant_of(Some(agent), &event.session_id)?.map(|(participant, _)| participant);
    let cwd = event.cwd.as_deref().unwrap_or(Path::new("/"));
    let found = project::of(cwd);
    let now = baton_machine::clock::now();
    let digest = digest(agent, event, asked);
    let moved = approvals.record(&NewApproval {
        id: ApprovalId::from_random(baton_machine::random::id()),
        project: participant.as_ref().map_or(found.as_str(), |participant| &participant.project),
        cwd: &cwd.to_string_lossy(),
        agent,
        session: &event.session_id,
        subagent: event.subagent.as_deref(),
        participant: participant.as_ref().map(|participant| participant.id),
        name: participant.as_ref().map_or(agent, |participant| &participant.name),
        transcript: event.transcript.as_deref().map(Path::to_string_lossy).as_deref(),
        question: &asked::to_json(&asked.question).to_string(),
        digest: &digest,
        why: asker.rules.opinion.why.as_deref(),
        asked: &asked.question.id,
        call: asked.call.as_deref(),
        input: asked.input,
        asker: agent_process,
        holder,
        until: holder.filter(|_| asker.hold.0 > 0).map(|_| now.plus(asker.hold)),
        now,
    })?;
    if moved.moved {
        trail::note_in(store, Kind::Asked, &moved.row);
    }
    // Also if it was recorded before, by a process that could not write the rest.
    let is_ours = moved.row.state == State::Waiting && moved.row.holder == holder;
    let by = asker.rules.by(asked).filter(|_| is_ours);
    let row = match by {
        None => moved.row,
        Some(by) => match approvals.answer(
            &moved.row.id,
            &digest,
            &Answer::Allow,
            &by,
            baton_machine::clock::now(),
        )? {
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
        baton_jobs::spawn_notifier::for_question(program, asker.home, row.id.as_str());
    }
    Ok(row)
}

/// Identifies what an agent asks, by what the holder holds.
pub fn digest(agent: &str, event: &Event, asked: &AgentQuestion) -> Digest {
    let folder = event.cwd.as_deref().unwrap_or(Path::new("/")).to_string_lossy();
    asked.question.subject.digest(AskedBy { agent, asker: &event.session_id, folder: &folder })
}

/// An answer for a hook to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub id: ApprovalId,
    /// The answer in the agent's format.
    pub text: String,
}

/// Whether the agent will ask for certain. If it may not ask, the hook leaves it alone.
pub fn is_certain(agent: &dyn Agent, env: Env<'_>, event: &Event, asked: &AgentQuestion) -> bool {
    let asking = identity::agent_process(agent, env);
    let arguments = asking.map(|asking| process::arguments(asking.pid)).unwrap_or_default();
    agent.will_prompt_user(asked, event, &arguments, env, &|file| {
        baton_machine::files::read(file, limits::AGENT_FILE_BYTES).ok()
    })
}

/// Handles an agent's question in its hook: records it and, if no person sits at the terminal or
/// one watches the inbox, waits for an answer. With `None` the hook prints nothing, and the agent
/// shows its own dialog.
pub fn hold(
    store: &mut Store,
    asker: &Asker<'_>,
    event: &Event,
    asked: &AgentQuestion,
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
    // Either the agent's dialog comes and reports the question, or no person is asked at all.
    if !held && !by_rule && (asker.agent.reports_dialog_separately(event) || (unattended && !can_answer)) {
        return Ok(None);
    }
    let mut bell = crate::listen(asker.home)?;
    let mut approvals = Approvals::open(asker.home, Role::Hook)?;
    if !can_answer && is_known(&approvals, asker.agent, event, asked)? {
        return Ok(None);
    }
    let holder = (held || by_rule).then(process::this);
    let new = NewQuestion { event, asked, holder, agent_process: asking };
    let row = record(store, &mut approvals, asker, &new)?;
    if holder.is_none() || row.holder != holder {
        return Ok(None);
    }
    let render = |answer: &Answer| asker.agent.render_answer(event, asked, answer);
    let held = digest(asker.agent.name(), event, asked);
    let taken = wait_for(&mut approvals, &mut bell, asker, &row, &held, &render)?;
    if taken.is_none() {
        approvals.release(&row.id)?;
        crate::ring(asker.home);
    }
    Ok(taken)
}

/// Whether a call that a guard rule wants confirmed may be held for an answer: if no person sits at
/// the terminal, or one watches the inbox. Never in a job: its worker gets the question from the
/// backend.
pub fn may_hold_call(store: &mut Store, asker: &Asker<'_>, event: &Event) -> bool {
    if is_a_jobs(asker.env) {
        return false;
    }
    let asking = identity::agent_process(asker.agent, asker.env);
    let arguments = asking.map(|asking| process::arguments(asking.pid)).unwrap_or_default();
    asker.agent.is_headless(&arguments, asker.env) || is_watched(store, asker, event)
}

/// Holds a call that a guard rule wants confirmed, in the hook before it, if it [may be
/// held](may_hold_call). `render` gives what the hook prints. `None` if no answer came: then the
/// call must not run.
pub fn hold_call(
    store: &mut Store,
    asker: &Asker<'_>,
    event: &Event,
    asked: &AgentQuestion,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    if !may_hold_call(store, asker, event) {
        return Ok(None);
    }
    let asking = identity::agent_process(asker.agent, asker.env);
    let mut bell = crate::listen(asker.home)?;
    let mut approvals = Approvals::open(asker.home, Role::Hook)?;
    let holder = Some(process::this());
    let new = NewQuestion { event, asked, holder, agent_process: asking };
    let row = record(store, &mut approvals, asker, &new)?;
    if row.holder != holder {
        return Ok(None);
    }
    let held = digest(asker.agent.name(), event, asked);
    let taken = wait_for(&mut approvals, &mut bell, asker, &row, &held, render)?;
    if taken.is_none() {
        let note = Some("no answer came in time, so it was refused");
        approvals.close(&row.id, Step::RefusedThere, note, baton_machine::clock::now())?;
        crate::ring(asker.home);
    }
    Ok(taken)
}

/// Whether a person sits at the terminal of this hook's agent, so that its own dialog can ask.
pub fn is_at_terminal(agent: &dyn Agent, env: Env<'_>) -> bool {
    identity::agent_process(agent, env).is_some_and(|asking| {
        !agent.is_headless(&process::arguments(asking.pid), env) && process::reads_a_terminal(asking.pid)
    })
}

/// Waits for an answer and takes it. `None` if none came in time, or the question is over.
fn wait_for(
    approvals: &mut Approvals,
    bell: &mut Bell,
    asker: &Asker<'_>,
    row: &ApprovalRow,
    held: &Digest,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    let deadline = Instant::now() + asker.hold.to_std();
    let ending = row.asker.and_then(process::ending);
    loop {
        let now = approvals.get(&row.id)?.map_or(State::Gone, |row| row.state);
        if now == State::Answered {
            match take(approvals, asker, &row.id, held, render) {
                Ok(Some(taken)) => return Ok(Some(taken)),
                // Another process holds the store for long. No other process takes this answer.
                Err(error) if error.code() == Code::StoreLocked && Instant::now() < deadline => continue,
                other => _ = other?,
            }
        }
        if now.is_end() || now == State::Terminal {
            return Ok(None);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || row.asker.is_some_and(|asking| !process::is_alive(asking)) {
            return take(approvals, asker, &row.id, held, render);
        }
        // The agent's own dialog may be answered meanwhile, without an event. So each sweep looks.
        bell.wait_or_end(ending.as_ref(), left.min(SWEEP_INTERVAL));
        if let Some(open) = approvals.get(&row.id)? {
            look::reconcile(approvals, asker.home, open)?;
        }
    }
}

/// Whether the reported dialog is that of a question that was held before.
fn is_known(
    approvals: &Approvals,
    agent: &dyn Agent,
    event: &Event,
    asked: &AgentQuestion,
) -> Result<bool, Error> {
    let open = approvals.of_session(agent.name(), &event.session_id)?;
    Ok(open.iter().any(|row| row.state == State::Terminal && row.input == asked.input))
}

/// Whether anyone watches the inbox, or a reviewer is there for this session.
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

/// Takes an answer, if there is one, in the agent's format.
fn take(
    approvals: &mut Approvals,
    asker: &Asker<'_>,
    id: &ApprovalId,
    held: &Digest,
    render: &dyn Fn(&Answer) -> Option<String>,
) -> Result<Option<Taken>, Error> {
    let taken = match approvals.take(id, held, baton_machine::clock::now()) {
        // The answer was withdrawn. The bell tells the process that gave it.
        Err(error) if error.code() == Code::QuestionChanged => {
            crate::ring(asker.home);
            None
        }
        taken => taken?,
    };
    let Some(moved) = taken.filter(|moved| moved.moved) else { return Ok(None) };
    crate::ring(asker.home);
    let text = moved.row.answer.and_then(|answer| render(&answer));
    if text.is_none() {
        approvals.record_refusal(id, "its hook can't give that answer")?;
        crate::ring(asker.home);
    }
    Ok(text.map(|text| Taken { id: id.clone(), text }))
}

/// Takes back an answer that could not be printed: the agent does not have it.
pub fn give_back(home: &Path, taken: &Taken) -> Result<(), Error> {
    let mut approvals = Approvals::open(home, Role::Hook)?;
    approvals.record_refusal(&taken.id, "its agent did not read the answer")?;
    approvals.release(&taken.id)?;
    crate::ring(home);
    Ok(())
}
