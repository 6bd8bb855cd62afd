//! Lists participants, and finds whom an address means.

use crate::reconcile;
use baton_core::address::Address;
use baton_core::frame::shown;
use baton_core::id::ParticipantId;
use baton_core::job::JOB_TAG;
use baton_core::session::State;
use baton_core::{Code, Error, limits, name};
use baton_machine::project;
use baton_store::{Found, Participant, Store};

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

/// The participants that an address means in a project.
pub fn resolve(
    store: &mut Store,
    project: &str,
    sender: ParticipantId,
    text: &str,
) -> Result<Vec<Participant>, Error> {
    let found = match Address::parse(text)? {
        Address::Plain(name) => vec![find_plain(store, project, &name)?],
        Address::Agent(kind) => vec![find_only_of_kind(store, project, &kind)?],
        Address::Tag(tag) => find_tagged(store, project, sender, &tag)?,
        Address::InProject { project, name } => vec![find_in_project(store, &project, &name)?],
        Address::OnMachine { name, machine } => {
            return Err(Error::new(
                Code::UnknownMachine,
                format!("no machine {} is joined", shown(&machine, 60)),
            )
            .hint(format!("leave the machine out if {} runs here", shown(&name, 60))));
        }
    };
    if found.len() > limits::MAX_RECIPIENTS {
        return Err(Error::new(
            Code::AmbiguousTarget,
            format!(
                "that means {} recipients, and at most {} are allowed",
                found.len(),
                limits::MAX_RECIPIENTS
            ),
        ));
    }
    if found.iter().any(|participant| participant.id == sender) {
        return Err(Error::new(Code::SelfTarget, "that is you").hint("`baton who` lists the others"));
    }
    if let Some(script) = found.iter().find(|participant| participant.agent == name::SCRIPT) {
        return Err(unknown_recipient(&script.name));
    }
    Ok(found)
}

fn find_plain(store: &mut Store, project: &str, name: &str) -> Result<Participant, Error> {
    if name == name::USER {
        return store.ensure_outsider(name::USER, baton_machine::clock::now());
    }
    match store.find_name(project, name)? {
        Found::One(found) => return Ok(*found),
        Found::Elsewhere(projects) => {
            let full: Vec<_> = projects.iter().map(|project| format!("{project}:{name}")).collect();
            return Err(Error::new(Code::OtherProject, format!("{name} is not in this project"))
                .hint(format!("write {}", full.join(" or "))));
        }
        Found::Nobody => {}
    }
    match store.participant_of(None, name)? {
        Some((found, _)) if found.project == project || found.is_outsider() => Ok(found),
        Some((found, _)) => {
            Err(Error::new(Code::OtherProject, format!("that session is {} of another project", found.name))
                .hint(format!("write {}:{}", found.project, found.name)))
        }
        None => Err(unknown_recipient(name)),
    }
}

fn find_only_of_kind(store: &mut Store, project: &str, kind: &str) -> Result<Participant, Error> {
    baton_agents::by_name(kind)?;
    let mut running = store.of_kind(project, kind, JOB_TAG)?;
    for participant in &mut running {
        reconcile::correct_state(store, participant)?;
    }
    running.retain(|participant| participant.state != State::Gone);
    match running.len() {
        1 => running.pop().ok_or_else(|| unknown_recipient(kind)),
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
    let projects: Vec<String> = store
        .projects()?
        .into_iter()
        .filter(|known| known == wanted || project::short(known) == wanted)
        .collect();
    match &projects[..] {
        [] => Err(Error::new(Code::UnknownRecipient, format!("no project {} is known", shown(wanted, 80)))
            .hint("`baton who --all` lists them")),
        [one] => match store.find_name(one, name)? {
            Found::One(found) if found.project == *one => Ok(*found),
            _ => Err(unknown_recipient(name)),
        },
        several => Err(Error::new(
            Code::AmbiguousTarget,
            format!("{} projects are called {}", several.len(), shown(wanted, 80)),
        )
        .hint(format!("write the full path: {}", several.join(" or ")))),
    }
}

fn unknown_recipient(name: &str) -> Error {
    Error::new(Code::UnknownRecipient, format!("no participant is called {}", shown(name, 60)))
        .hint("`baton who --all` lists the names")
}
