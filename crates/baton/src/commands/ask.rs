//! `ask`: a message, and the wait for its answer.

use super::{Session, body, inbox};
use crate::print::{Out, done};
use baton_core::error::Exit;
use baton_core::id::MessageId;
use baton_core::mail::proof;
use baton_core::time::Span;
use baton_core::wake::Attention;
use baton_core::{Code, Error};
use baton_mail::ask::{self, Waited};
use baton_mail::identity::Identity;
use baton_mail::inbox::{refuse_subagent, shell_place};
use baton_mail::post::{self, Draft};
use baton_mail::process;
use baton_store::Store;
use clap::Args;
use serde_json::json;
use std::time::Instant;

// `baton ask`
#[derive(Debug, Args)]
pub struct Ask {
    /// Whom to ask
    #[arg(required_unless_present = "resume")]
    to: Option<String>,
    /// The question; - or nothing reads stdin
    body: Option<String>,
    /// How long to wait
    #[arg(long, default_value = "45s", value_name = "DURATION")]
    timeout: String,
    /// Go on waiting for an ask that timed out
    #[arg(long, value_name = "REQUEST_ID", conflicts_with_all = ["to", "body", "key"])]
    resume: Option<String>,
    /// A key that makes a retry safe
    #[arg(long)]
    key: Option<String>,
}

impl Ask {
    /// Asks and waits.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let timeout = Span::parse(&self.timeout)?;
        let rules = session.limits()?;
        let mut store = session.store()?;
        let me = session.identity(&mut store)?;
        refuse_subagent(&me)?;
        let ask = match (&self.resume, &self.to) {
            (Some(request), _) => {
                let id = MessageId::from_input(request).map_err(|_| {
                    Error::new(Code::RequestNotFound, "that is no request id")
                        .hint("a request id looks like r7k2qx9abcd3e")
                })?;
                ask::wait_again(&mut store, &me, &id)?;
                id
            }
            (None, Some(to)) => {
                let body = body(self.body)?;
                let draft = Draft {
                    to,
                    body: &body,
                    reply_to: None,
                    thread: None,
                    key: self.key.as_deref(),
                    ttl: None,
                    attention: Attention::Ordinary,
                };
                let accepted = post::ask(&mut store, &session.home, &me, &draft, process::this(), &rules)?;
                if accepted.again {
                    ask::wait_again(&mut store, &me, &accepted.id)?;
                }
                post::wake(&mut store, &session.home, &accepted, true, &rules);
                accepted.id
            }
            (None, None) => {
                return Err(Error::new(Code::Usage, "whom to ask?").hint("baton ask NAME \"question\""));
            }
        };
        store.tidy();
        let deadline = Instant::now() + timeout.to_std();
        let place = shell_place(&me);
        let waited = ask::wait(&mut store, &session.home, &me, &ask, place.as_ref(), deadline)?;
        report(&mut store, &me, &ask, waited, out)
    }
}

fn report(
    store: &mut Store,
    me: &Identity,
    ask: &MessageId,
    waited: Waited,
    out: &Out,
) -> Result<Exit, Error> {
    match waited {
        Waited::Answer(letter, row, nonce) => {
            let mut document = inbox::describe(store, &letter, me)?;
            document["request_id"] = json!(ask.request().as_str());
            if let Some(nonce) = &nonce {
                document["offer"] = json!(proof::mark(nonce));
            }
            out.mail(&document, || match &nonce {
                Some(nonce) => inbox::framed(me, std::slice::from_ref(&letter), 0, nonce),
                None => letter.body.clone(),
            })?;
            // What an agent takes is proven by its transcript instead.
            if nonce.is_none() {
                store.mark_read(me.participant.id, &[row], baton_mail::now())?;
            }
            store.tidy();
            done()
        }
        Waited::Elsewhere(id, state) => {
            let document = json!({"request_id": ask.request().as_str(), "message_id": id.as_str(), "state": state.as_str()});
            out.data(&document, || {
                format!("the answer {id} was delivered to you already ({})", state.as_str())
            })?;
            done()
        }
        Waited::Ended(state) => Err(ask::ended(ask, state)),
        Waited::TimedOut => {
            let document = json!({"request_id": ask.request().as_str(), "message_id": ask.as_str()});
            let error = Error::new(Code::TimedOut, "no answer yet; it will come as mail")
                .hint(format!("go on waiting: baton ask --resume {}", ask.request()));
            if out.is_json() {
                out.data(&document, String::new)?;
                return Ok(Exit::NotYet);
            }
            Err(error)
        }
    }
}
