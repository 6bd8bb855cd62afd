//! Maps an identity to the caller that rights depend on: see [`baton_core::rights`].

use crate::identity::Kind;
use baton_agents::ALL;
use baton_agents::agent::Env;
use baton_core::job::JOB_MARKS;
use baton_core::rights::Caller;
use baton_machine::process;
use baton_machine::process::mark;

pub fn of(kind: &Kind, env: Env<'_>) -> Caller {
    match kind {
        Kind::Session { subagent: true, .. } => Caller::Subagent,
        Kind::Session { .. } if is_in_a_job(env) => Caller::Job,
        Kind::Session { .. } => Caller::Agent,
        // Inside an agent whose session is not known, the caller is neither the person nor a
        // script.
        Kind::Person | Kind::Script if is_inside_an_agent(env) => Caller::Stranger,
        Kind::Person => Caller::Person,
        Kind::Script => Caller::Script,
        Kind::Stranger(_) => Caller::Stranger,
    }
}

/// Whether this process runs inside an agent or a job, by the mark that the kernel keeps, by its
/// environment, or by the processes above it.
pub fn is_inside_an_agent(env: Env<'_>) -> bool {
    let in_shell = || ALL.iter().any(|agent| agent.shell(env).is_some() || agent.is_unnamed_shell(env));
    let below = || {
        process::ancestors().iter().any(|above| {
            let arguments = process::arguments(above.pid);
            ALL.iter().any(|agent| agent.is_process(&arguments))
        })
    };
    mark::own().is_some() || in_shell() || below() || is_in_a_job(env)
}

/// Whether this is a process of a job: by the mark that the kernel keeps, by its own environment or
/// by that of any process above it. A process can clear its own, but not theirs.
pub fn is_in_a_job(env: Env<'_>) -> bool {
    let marks = JOB_MARKS;
    mark::is_below_a_job()
        || marks.iter().any(|mark| env(mark).is_some())
        || process::ancestors()
            .iter()
            .any(|above| marks.iter().any(|mark| process::variable(above.pid, mark).is_some()))
}
