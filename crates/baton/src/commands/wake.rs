//! `wake` and `dnd`.

use super::CommandContext;
use crate::environment;
use crate::print::{Out, Tone, done, text};
use baton_core::error::Exit;
use baton_core::id::ParticipantId;
use baton_core::rights;
use baton_core::time::{Moment, Span};
use baton_core::wake::{CONFIRM_TIMEOUT, Outcome};
use baton_core::{Code, Error};
use baton_machine::bell::Bell;
use baton_mail::caller;
use baton_mail::directory;
use baton_mail::identity::{Identity, Kind};
use baton_mail::wake::{self, WakeRequest, follow};
use baton_store::{Participant, Store};
use clap::{Args, Subcommand};
use serde_json::json;
use std::time::Instant;

// `baton wake`
#[derive(Debug, Args)]
pub struct Wake {
    /// The participant to wake
    name: String,
    /// Stop waking that session automatically
    #[arg(long, conflicts_with = "on")]
    off: bool,
    /// Wake that session automatically again
    #[arg(long)]
    on: bool,
}

// `baton follow-mail`
#[derive(Debug, Args)]
pub struct FollowMail {
    /// The row of the participant
    participant: i64,
}

// `baton dnd`
#[derive(Debug, Args)]
pub struct Dnd {
    #[command(subcommand)]
    action: DndAction,
}

#[derive(Debug, Subcommand)]
enum DndAction {
    /// Pause mail until you switch it back
    On {
        /// The session (default: your own)
        name: Option<String>,
    },
    /// Resume mail
    Off {
        /// The session (default: your own)
        name: Option<String>,
    },
    /// Pause mail for a time (30m, 2h) or until a moment (2026-11-20T08:00:00Z)
    Until {
        /// The time or the moment
        time: String,
        /// The session (default: your own)
        name: Option<String>,
    },
}

impl Wake {
    /// Wakes the participant, and prints the outcome.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        if self.on || self.off {
            return self.switch(context, &mut store, &me, out);
        }
        let mut whom = one(&mut store, &me, &self.name)?;
        let by_hand = me.kind == Kind::Person;
        let program = environment::own_program().ok();
        let request = WakeRequest {
            home: &context.home,
            rules: &rules,
            wanted: true,
            by_hand,
            follower: program.as_deref(),
        };
        let mut bell = Bell::listen(&context.home, whom.id)?;
        let woken = wake::wake(&mut store, &mut whom, &request)?;
        let mut confirmed = None;
        if woken.outcome.is_under_way() {
            confirmed = Some(is_confirmed(&mut store, &whom, &mut bell)?);
        }
        let last =
            confirmed.map(|confirmed| if confirmed { Outcome::Confirmed } else { Outcome::Unconfirmed });
        let document = json!({
            "name": whom.name,
            "outcome": woken.outcome.as_str(),
            "route": woken.route.map(|route| route.as_str()),
            "confirmation": last.map(Outcome::as_str),
            "meaning": last.unwrap_or(woken.outcome).meaning(),
        });
        let waits = store.participant(whom.id)?.is_some_and(|whom| whom.unread > 0);
        out.data(&document, || {
            let name = out.tone(Tone::Bold, &whom.name);
            let words = match woken.outcome {
                Outcome::SkippedDeduped if !waits => "nothing waits for it".to_owned(),
                outcome => {
                    let route = woken.route.map(|route| format!(" ({})", route.as_str())).unwrap_or_default();
                    let then = last.map(|last| format!("; {}", last.meaning())).unwrap_or_default();
                    format!("{}{route}{then}", outcome.meaning())
                }
            };
            text![name, ": ", words]
        })?;
        if confirmed == Some(false) { Ok(Exit::NotYet) } else { done() }
    }
}

impl Wake {
    fn switch(
        &self,
        context: &CommandContext,
        store: &mut Store,
        me: &Identity,
        out: &Out,
    ) -> Result<Exit, Error> {
        let whom = own_or_any(store, me, Some(&self.name))?;
        store.set_wake(whom.id, self.on, baton_machine::clock::now())?;
        if self.on {
            wake_for_waiting_mail(context, store, &whom)?;
        }
        let word = if self.on { "auto" } else { "off" };
        out.data(&json!({"name": whom.name, "wake": word}), || {
            let name = out.tone(Tone::Bold, &whom.name);
            if self.on {
                text![name, " is woken when mail comes"]
            } else {
                text![name, " is not woken any more"]
            }
        })?;
        done()
    }
}

impl FollowMail {
    /// Follows the mail until no look is needed.
    pub fn run(self, context: &CommandContext) -> Result<Exit, Error> {
        // So that it outlives its starter. Fails only for a process that already leads a group.
        rustix::process::setsid().ok();
        follow::follow(&context.home, ParticipantId(self.participant), &|| context.limits())?;
        done()
    }
}

/// Wakes a participant for mail that has waited while waking was not wanted.
fn wake_for_waiting_mail(
    context: &CommandContext,
    store: &mut Store,
    whom: &Participant,
) -> Result<(), Error> {
    let (rules, program) = (context.limits()?, environment::own_program().ok());
    let follower = program.as_deref();
    let request = WakeRequest { home: &context.home, rules: &rules, wanted: true, by_hand: false, follower };
    wake::wake(store, &mut whom.clone(), &request).map(drop)
}

/// The caller's own context, or for the person anybody's.
fn own_or_any(store: &mut Store, me: &Identity, name: Option<&str>) -> Result<Participant, Error> {
    let whom = match name {
        None => me.participant.clone(),
        Some(name) if *name == me.participant.name => me.participant.clone(),
        Some(name) => {
            rights::may(caller::of(&me.kind, &environment::get), &rights::DISTURB_OTHERS)?;
            one(store, me, name)?
        }
    };
    if whom.is_outsider() {
        return Err(Error::new(
            Code::NotASession,
            format!("{} is not a session, so there is nothing to pause", whom.name),
        )
        .hint("name a session; `baton who` lists them"));
    }
    Ok(whom)
}

/// Waits until an event of the session confirms its wake.
fn is_confirmed(store: &mut Store, whom: &Participant, bell: &mut Bell) -> Result<bool, Error> {
    let deadline = Instant::now() + CONFIRM_TIMEOUT.to_std();
    loop {
        let last = store.last_wake(whom.id)?;
        if last.is_some_and(|last| last.outcome == Some(Outcome::Confirmed)) {
            return Ok(true);
        }
        if !bell.wait(deadline) {
            return Ok(false);
        }
    }
}

fn one(store: &mut Store, me: &Identity, name: &str) -> Result<Participant, Error> {
    let mut found = directory::resolve(store, &me.project, me.participant.id, name)?;
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(Error::new(Code::AmbiguousTarget, "that address names more than one participant")
            .hint("name one of them")),
    }
}

impl Dnd {
    /// Sets or ends a request not to be disturbed.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let now = baton_machine::clock::now();
        let (name, until) = match &self.action {
            DndAction::On { name } => (name, Some(Moment(i64::MAX))),
            DndAction::Off { name } => (name, None),
            DndAction::Until { time, name } => (name, Some(moment(time, now)?)),
        };
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let whom = own_or_any(&mut store, &me, name.as_deref())?;
        store.set_dnd(whom.id, until, now)?;
        if until.is_none() {
            wake_for_waiting_mail(context, &mut store, &whom)?;
        }
        let shown = match until {
            Some(Moment(i64::MAX)) => Some("on".to_owned()),
            until => until.map(Moment::to_rfc3339),
        };
        out.data(&json!({"name": whom.name, "dnd": shown}), || {
            let name = out.tone(Tone::Bold, &whom.name);
            match &shown {
                Some(text) if text == "on" => {
                    text!["mail for ", name, " waits; `baton dnd off ", &whom.name, "` ends that"]
                }
                Some(moment) => text!["mail for ", name, " waits until ", moment],
                None => text!["mail for ", name, " comes again"],
            }
        })?;
        done()
    }
}

/// A duration from now, or a moment to come.
fn moment(text: &str, now: Moment) -> Result<Moment, Error> {
    let then = Span::parse(text).map(|span| now.plus(span)).ok().or_else(|| Moment::parse(text));
    then.filter(|then| *then > now).ok_or_else(|| {
        Error::new(
            Code::BadDuration,
            format!("{} is not a time in the future", baton_core::frame::shown(text, 40)),
        )
        .hint("write a duration such as 30m or 2h, or a moment such as 2026-11-20T08:00:00Z")
    })
}
