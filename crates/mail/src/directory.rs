//! Lists participants, and finds whom an address means.

use crate::reconcile;
use baton_agents::activity::{Activity, END_BYTES};
use baton_core::address::Address;
use baton_core::frame::shown;
use baton_core::id::ParticipantId;
use baton_core::job::JOB_TAG;
use baton_core::session::State;
use baton_core::{Code, Error, limits, name};
use baton_machine::project;
use baton_store::{Found, Participant, Store};
use std::path::Path;

/// All participants of a project, or of every project, with their corrected states. Those that are
/// gone only if asked for.
pub fn who(store: &mut Store, project: Option<&str>, gone_too: bool) -> Result<Vec<Participant>, Error> {
    let mut participants = store.everybody(project)?;
    for participant in &mut participants {
        reconcile::correct_state(store, participant)?;
    }
    participants.retain(|participant| {
        participant.agent != name::SCRIPT && (gone_too || participant.state != State::Gone)
    });
    Ok(participants)
}

/// What a session works on, as its agent's own file tells. Empty for a session that is gone.
pub fn activity(participant: &Participant) -> Activity {
    let transcript = participant.transcript.as_deref().filter(|_| participant.state != State::Gone);
    let agent = baton_agents::by_name(&participant.agent);
    match (agent, transcript) {
        (Ok(agent), Some(file)) => {
            let end = baton_machine::files::end(Path::new(file), END_BYTES);
            end.map_or_else(|_| Activity::default(), |end| agent.activity(&end))
        }
        _ => Activity::default(),
    }
}

/// The participants that several addresses mean in a project, each once. An error if one of the
/// addresses means no one.
pub fn resolve_all(
    store: &mut Store,
    project: &str,
    sender: ParticipantId,
    addresses: &[&str],
) -> Result<Vec<Participant>, Error> {
    let mut all: Vec<Participant> = Vec::new();
    for address in addresses {
        for found in resolve(store, project, sender, address)? {
            if all.iter().all(|known| known.id != found.id) {
                all.push(found);
            }
        }
    }
    refuse_more_than(limits::MAX_RECIPIENTS, &all)?;
    Ok(all)
}

/// The participants that an address means in a project.
pub fn resolve(
    store: &mut Store,
    project: &str,
    sender: ParticipantId,
    text: &str,
) -> Result<Vec<Participant>, Error> {
    let found = match Address::parse(text)? {
        Address::Plain(name) => vec![find_plain(store, project, &name)?],
        Address::Agent(kind) => vec![find_only_of_kind(store, project, &kind.to_lowercase())?],
        Address::Tag(tag) => find_tagged(store, project, sender, &tag)?,
        Address::Everyone => return find_everyone(store, project, sender),
        Address::InProject { project, name } => vec![find_in_project(store, &project, &name)?],
        Address::OnMachine { name, machine } => {
            return Err(Error::new(
                Code::UnknownMachine,
                format!("no machine {} is joined", shown(&machine, 60)),
            )
            .hint(format!("leave the machine out if {} runs here", shown(&name, 60))));
        }
    };
    refuse_more_than(limits::MAX_RECIPIENTS, &found)?;
    if found.iter().any(|participant| participant.id == sender) {
        return Err(Error::new(Code::SelfTarget, "that is you").hint("`baton who` lists the others"));
    }
    if let Some(script) = found.iter().find(|participant| participant.agent == name::SCRIPT) {
        return Err(unknown_recipient(store, project, &script.name));
    }
    Ok(found)
}

fn refuse_more_than(most: usize, found: &[Participant]) -> Result<(), Error> {
    if found.len() <= most {
        return Ok(());
    }
    Err(Error::new(
        Code::AmbiguousTarget,
        format!("that means {} recipients, and at most {most} are allowed", found.len()),
    )
    .hint("name some of them, or give those that you mean a tag: `baton tag add`"))
}

/// The other sessions that run in a project, without those of jobs.
fn find_everyone(store: &mut Store, project: &str, sender: ParticipantId) -> Result<Vec<Participant>, Error> {
    let mut found = who(store, Some(project), false)?;
    found.retain(|participant| {
        participant.id != sender
            && !participant.is_outsider()
            && participant.tags.iter().all(|tag| tag != JOB_TAG)
    });
    refuse_more_than(limits::MAX_EVERYONE, &found)?;
    if found.is_empty() {
        return Err(Error::new(Code::UnknownRecipient, "no other session runs in this project")
            .hint("`baton who --all` lists the sessions of every project"));
    }
    Ok(found)
}

/// A name counts in any case; a session id only as it is.
fn find_plain(store: &mut Store, project: &str, typed: &str) -> Result<Participant, Error> {
    let name = &typed.to_ascii_lowercase();
    if name == name::USER {
        return store.ensure_outsider(name::USER, baton_machine::clock::now());
    }
    match store.find_name(project, name)? {
        Found::One(found) => return Ok(*found),
        Found::Elsewhere(projects) => {
            let full: Vec<_> = addresses_in(store, &projects, name)?;
            return Err(Error::new(Code::OtherProject, format!("{name} is not in this project"))
                .hint(format!("write {}", full.join(" or "))));
        }
        Found::Nobody => {}
    }
    match store.participant_of(None, typed)? {
        Some((found, _)) if found.project == project || found.is_outsider() => Ok(found),
        Some((found, _)) => {
            let full = addresses_in(store, std::slice::from_ref(&found.project), &found.name)?;
            Err(Error::new(Code::OtherProject, format!("that session is {} of another project", found.name))
                .hint(format!("write {}", full.join(""))))
        }
        None => Err(unknown_recipient(store, project, typed)),
    }
}

/// How to address a name in each of these projects: with the short name of the project, if only one
/// project has it.
fn addresses_in(store: &Store, projects: &[String], name: &str) -> Result<Vec<String>, Error> {
    let known = store.projects()?;
    let is_alone = |short: &str| known.iter().filter(|other| project::short(other) == short).count() == 1;
    let shortest = |project: &String| match project::short(project) {
        short if is_alone(short) && !short.contains([':', '@']) => format!("{short}:{name}"),
        _ => format!("{project}:{name}"),
    };
    Ok(projects.iter().map(shortest).collect())
}

fn find_only_of_kind(store: &mut Store, project: &str, kind: &str) -> Result<Participant, Error> {
    baton_agents::by_name(kind)?;
    let mut running = store.of_kind(project, kind, JOB_TAG)?;
    for participant in &mut running {
        reconcile::correct_state(store, participant)?;
    }
    running.retain(|participant| participant.state != State::Gone);
    match running.len() {
        1 => running.pop().ok_or_else(|| Error::new(Code::Internal, "a list of one is empty")),
        0 => Err(Error::new(Code::UnknownRecipient, format!("no {kind} session runs in this project"))
            .hint("`baton who --all` lists the sessions of every project")),
        _ => {
            let names: Vec<_> = running.iter().map(|participant| participant.name.as_str()).collect();
            Err(Error::new(Code::AmbiguousTarget, format!("{} {kind} sessions run here", names.len()))
                .hint(format!("name one of: {}", names.join(", "))))
        }
    }
}

fn find_tagged(
    store: &mut Store,
    project: &str,
    sender: ParticipantId,
    tag: &str,
) -> Result<Vec<Participant>, Error> {
    let mut found = store.tagged(project, tag)?;
    found.retain(|participant| participant.id != sender);
    if found.is_empty() {
        return Err(Error::new(
            Code::UnknownRecipient,
            format!("no other participant here has the tag #{tag}"),
        )
        .hint("run `baton tag add` in a session to give it a tag"));
    }
    Ok(found)
}

fn find_in_project(store: &mut Store, wanted: &str, name: &str) -> Result<Participant, Error> {
    let known = store.projects()?;
    let matching = |fits: &dyn Fn(&str) -> bool| -> Vec<String> {
        known.iter().filter(|known| fits(known) || fits(project::short(known))).cloned().collect()
    };
    let mut projects = matching(&|known| known == wanted);
    if projects.is_empty() {
        projects = matching(&|known| known.eq_ignore_ascii_case(wanted));
    }
    match &projects[..] {
        [] => Err(unknown_project(&known, wanted, name)),
        [one] => match store.find_name(one, &name.to_ascii_lowercase())? {
            Found::One(found) if found.project == *one => Ok(*found),
            _ => Err(unknown_recipient(store, one, name)),
        },
        several => Err(Error::new(
            Code::AmbiguousTarget,
            format!("{} projects are called {}", several.len(), shown(wanted, 80)),
        )
        .hint(format!("write the full path: {}", several.join(" or ")))),
    }
}

/// How many names a hint lists.
const MAX_LISTED: usize = 5;

fn unknown_project(known: &[String], wanted: &str, name: &str) -> Error {
    let short = || known.iter().map(|project| project::short(project));
    let hint = match name::closest(wanted, short()) {
        Some(meant) => format!("did you mean {meant}:{}?", shown(name, 60)),
        None if known.is_empty() => "no session has been seen in any project yet".to_owned(),
        None => {
            let some: Vec<_> = short().take(MAX_LISTED).collect();
            format!(
                "write PROJECT:NAME; the projects are {}; `baton who --all` lists their sessions",
                some.join(", ")
            )
        }
    };
    Error::new(Code::UnknownRecipient, format!("no project {} is known", shown(wanted, 80))).hint(hint)
}

/// The error for a name that no participant of a project has, with the name that was probably
/// meant.
pub fn unknown_recipient(store: &Store, project: &str, name: &str) -> Error {
    // Without the list there is no suggestion, and the error is the same.
    let known = store.names(project).unwrap_or_default();
    let names = known.iter().map(String::as_str).filter(|known| *known != name::SCRIPT);
    let hint = match name::closest(name, names.chain([name::USER])) {
        Some(meant) if meant != name => format!("did you mean {meant}? `baton who` lists who is here"),
        _ => "`baton who --all` lists the names".to_owned(),
    };
    Error::new(Code::UnknownRecipient, format!("no participant is called {}", shown(name, 60))).hint(hint)
}
