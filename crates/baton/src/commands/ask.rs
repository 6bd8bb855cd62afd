//! `ask`: a message, and the wait for its answer.

use super::{CommandContext, body, inbox, mail};
use crate::environment;
use crate::print::{Out, Progress, Text, done, text};
use baton_core::error::Exit;
use baton_core::id::MessageId;
use baton_core::mail::proof;
use baton_core::time::Span;
use baton_core::wake::Attention;
use baton_core::{Code, Error};
use baton_machine::process;
use baton_mail::ask::{self, NoAnswer, WaitOutcome};
use baton_mail::identity::Identity;
use baton_mail::inbox::shell_place;
use baton_mail::post::{self, Draft, Everyone};
use baton_mail::reference::{self, Reference};
use baton_store::Store;
use clap::Args;
use serde_json::{Value, json};
use std::time::Instant;

// `baton ask`
#[derive(Debug, Args)]
pub struct Ask {
    /// The participant to ask
    #[arg(required_unless_present = "resume")]
    to: Option<String>,
    /// The question; - or nothing reads stdin
    body: Option<String>,
    /// How long to wait
    #[arg(long, default_value = "45s", value_name = "DURATION")]
    timeout: String,
    /// Wait again for an ask that timed out
    #[arg(long, value_name = "REQUEST_ID", conflicts_with_all = ["to", "body", "key"])]
    resume: Option<String>,
    /// A key that makes a retry safe
    #[arg(long)]
    key: Option<String>,
}

impl Ask {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let timeout = Span::parse(&self.timeout)?;
        let rules = context.limits()?;
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        let (ask, again) = match (&self.resume, &self.to) {
            (Some(request), _) => {
                let id = reference::find(&store, &me, request, Reference::Asked)?;
                ask::record_waiter(&mut store, &me, &id)?;
                (id, false)
            }
            (None, Some(to)) => {
                let body = body(self.body)?;
                let draft = Draft {
                    to: &[to],
                    everyone: Everyone::NotSaid,
                    body: &body,
                    reply_to: None,
                    thread: None,
                    key: self.key.as_deref(),
                    ttl: None,
                    attention: Attention::Ordinary,
                };
                let accepted = post::ask(&mut store, &context.home, &me, &draft, process::this(), &rules)?;
                post::wake_recipients(
                    &mut store,
                    &context.home,
                    &accepted,
                    true,
                    &rules,
                    environment::own_program().ok().as_deref(),
                );
                (accepted.id, accepted.again)
            }
            (None, None) => {
                return Err(Error::new(Code::Usage, "no participant to ask is named")
                    .hint("baton ask NAME \"question\""));
            }
        };
        store.tidy();
        let deadline = Instant::now() + timeout.to_std();
        let place = shell_place(&me);
        let waiting = if again { ask::record_waiter(&mut store, &me, &ask) } else { Ok(()) };
        let waited = waiting
            .and_then(|()| {
                let spinner = (!out.is_json()).then(Progress::spinner).flatten();
                let mut look = |store: &mut Store| {
                    let Some(spinner) = &spinner else { return };
                    // The line only shows what goes on: a failed look leaves the last one.
                    if let Ok(Some(so_far)) = ask::why_no_answer(store, &context.home, &ask, &rules) {
                        spinner.say(text![so_far.from, " ", so_far.words]);
                    }
                };
                let waited =
                    ask::wait(&mut store, &context.home, &me, &ask, place.as_ref(), deadline, &mut look);
                if let Some(spinner) = &spinner {
                    spinner.clear();
                }
                waited
            })
            .and_then(|waited| describe(&store, &me, &ask, &waited).map(|document| (waited, document)));
        match waited {
            Ok((WaitOutcome::TimedOut, _)) => {
                // The wait has ended; why it did is only a help.
                let why = ask::why_no_answer(&mut store, &context.home, &ask, &rules).ok().flatten();
                timed_out(&ask, why.as_ref(), out)
            }
            Ok((waited, document)) => report(&mut store, &me, &ask, waited, document, out),
            // It never was a question of this caller's, or another one has to be answered first.
            Err(error) if matches!(error.code(), Code::RequestNotFound | Code::WouldDeadlock) => Err(error),
            Err(error) => broke_off(&ask, &error, out),
        }
    }
}

/// The question is there, whatever became of the wait for its answer.
fn broke_off(ask: &MessageId, error: &Error, out: &Out) -> Result<Exit, Error> {
    let request = ask.request();
    let error = Error::new(
        Code::WaitFailed,
        format!(
            "the question {request} was accepted, but waiting for its answer failed: {}",
            error.message()
        ),
    )
    .hint(format!("don't ask again; the answer comes as mail, or wait again: baton ask --resume {request}"));
    out.wait_failed(json!({"request_id": request.as_str(), "message_id": ask.as_str()}), &error)
}

/// The answer as JSON, where there is one.
fn describe(store: &Store, me: &Identity, ask: &MessageId, waited: &WaitOutcome) -> Result<Value, Error> {
    let WaitOutcome::Answer { letter, nonce, .. } = waited else { return Ok(Value::Null) };
    let mut document = inbox::describe(store, letter, me)?;
    document["request_id"] = json!(ask.request().as_str());
    if let Some(nonce) = nonce {
        document["offer"] = json!(proof::mark(nonce));
    }
    Ok(document)
}

fn report(
    store: &mut Store,
    me: &Identity,
    ask: &MessageId,
    waited: WaitOutcome,
    document: Value,
    out: &Out,
) -> Result<Exit, Error> {
    match waited {
        WaitOutcome::Answer { letter, row, nonce } => {
            out.mail(&document, || match &nonce {
                Some(nonce) => inbox::framed(me, std::slice::from_ref(&letter), 0, nonce),
                None => letter.body.clone(),
            })?;
            // What an agent takes is proven by its transcript instead.
            if nonce.is_none() {
                out.afterwards(store.mark_read(me.participant.id, &[row], baton_machine::clock::now()));
            }
            store.tidy();
            done()
        }
        WaitOutcome::Elsewhere { id, state } => {
            // It was shown before, as `baton mail` shows it again.
            let answer = store.message(&id)?.filter(|_| state.is_end());
            let body = answer.as_ref().map(|answer| mail::shown_body(answer, me));
            let document = json!({
                "request_id": ask.request().as_str(), "message_id": id.as_str(), "state": state.as_str(), "body": body,
            });
            out.data(&document, || match (&answer, body) {
                // An agent sees who wrote it, as in its mail.
                (Some(answer), _) if me.session().is_some() => mail::in_full(*out, answer, me),
                (_, Some(body)) => body.into(),
                _ => {
                    let state = state.as_str();
                    format!("the answer {id} is on its way to you already ({state}): baton mail {id}").into()
                }
            })?;
            done()
        }
        WaitOutcome::Ended(state) => Err(ask::ended_error(ask, state)),
        WaitOutcome::TimedOut => timed_out(ask, None, out),
    }
}

/// The wait has ended, and the question has not.
fn timed_out(ask: &MessageId, why: Option<&NoAnswer>, out: &Out) -> Result<Exit, Error> {
    let request = ask.request();
    if out.is_json() {
        let document = json!({
            "request_id": request.as_str(),
            "message_id": ask.as_str(),
            "reason": why.map(|why| why.silence.as_str()),
            "meaning": why.map(|why| format!("{} {}", why.from, why.words)),
        });
        out.data(&document, Text::default)?;
        return Ok(Exit::NotYet);
    }
    let why = why.map(|why| format!(": {} {}", why.from, why.words)).unwrap_or_default();
    Err(Error::new(Code::TimedOut, format!("no answer yet{why}"))
        .hint(format!("the answer will come as mail; or wait again: baton ask --resume {request}")))
}
