//! Looking for proof that an agent took what a hook printed.
//!
//! An agent writes its conversation down in order, but late: Claude Code holds lines back for about 100 ms, and its
//! requests leave before. So the absence of a nonce proves nothing by itself, and neither does a later event. What
//! proves absence is *order in the file*: if a model response stands there that answers a request made after the
//! offer, and the nonce does not stand before it, then the agent did not take the offer.
//!
//! Presence needs care too: a person who takes a prompt back before the first word of the answer takes back what a
//! hook had added to it, though it stays in the file; and one who clears the conversation at that moment clears it unread. So
//! a nonce counts once the model has answered with it in its context, by the record of that very request where the agent keeps one.
//!
//! The agents' adapters turn lines into [`Item`]s; [`Search`] judges them. What a model said, the raw output of a hook and
//! quoted text are not places where a nonce counts.

use crate::event::Shown;
use crate::id::Nonce;

/// Where in the course of a session an offer was made; kept with the offer until it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At the start of a session.
    Start,
    /// With the prompt of the offer's turn.
    Prompt,
    /// After the tool calls of these ids (of one model response). Empty where the agent's ids don't stand in its transcript.
    Tools(Vec<String>),
    /// At the end of the turn.
    Stop,
    /// As the result of the tool call of this id.
    Call(String),
    /// As the output of a shell command that the agent ran; which call it was is not known.
    Shell,
    /// Pushed into an idle session, as a prompt of its own.
    Push,
}

impl Anchor {
    /// One line of text for the store; ids are foreign, so they stand on lines of their own behind the kind.
    pub fn to_text(&self) -> String {
        match self {
            Self::Start => "start".to_owned(),
            Self::Prompt => "prompt".to_owned(),
            Self::Stop => "stop".to_owned(),
            Self::Shell => "shell".to_owned(),
            Self::Push => "push".to_owned(),
            Self::Call(id) => format!("call\n{id}"),
            Self::Tools(ids) => ids.iter().fold("tools".to_owned(), |text, id| text + "\n" + id),
        }
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        match lines.next()? {
            "start" => Some(Self::Start),
            "prompt" => Some(Self::Prompt),
            "stop" => Some(Self::Stop),
            "shell" => Some(Self::Shell),
            "push" => Some(Self::Push),
            "call" => lines.next().map(|id| Self::Call(id.to_owned())),
            "tools" => Some(Self::Tools(lines.map(str::to_owned).collect())),
            _ => None,
        }
    }
}

/// The turns that a search has to tell apart, by the agent's ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// The turn in which the offer was made.
    pub offer: Option<String>,
    /// The turn that the session is in now, if the look is made on an event of it.
    pub now: Option<String>,
    /// The agent has no names for turns. It writes each line before what follows from it, and asks its prompt hooks only between turns.
    pub unnamed: bool,
}

/// What one line of a transcript means for proof. Lines that mean nothing are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A person's prompt.
    Prompt {
        /// The agent's id for its turn.
        id: String,
    },
    /// Text that the agent put into the context because a hook said so.
    Injected {
        /// That text.
        text: String,
    },
    /// The agent's record of what a hook printed, taken or not.
    HookRan {
        /// What it printed.
        output: String,
    },
    /// The agent replaced the conversation so far by this text. What the model had not answered yet and is not in it, it never will.
    Replaced {
        /// What is left of the conversation.
        text: String,
    },
    /// The agent's note that a summary has taken the place of what was said so far. It says nothing about an offer: what was not answered stays.
    Summarized,
    /// The agent's note that all stop hooks of a turn have ended and their output was handled.
    StopHandled,
    /// A tool call's result, as the model sees it.
    ToolResult {
        /// The call's id.
        call: String,
        /// What the model sees.
        text: String,
    },
    /// A piece of a model response. Pieces of one response share the id.
    Response {
        /// Which response.
        id: String,
        /// The tool calls in this piece.
        calls: Vec<String>,
        /// The marks that hooks had put into the request which it answers; `None` where the agent keeps no record of requests.
        request: Option<Vec<String>>,
    },
}

/// What the transcript says about an offer so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The nonce stands where it counts, and the model has answered since.
    Proven,
    /// It stands there, but the model has not answered yet, and may never.
    Held,
    /// The model has gone on without it: it was not taken, and never will be.
    Passed,
    /// Nothing to be concluded yet.
    Open,
    /// There is no transcript to look at.
    Blind,
}

/// One pass over the items of a transcript, in the order of the file, for one offer.
#[derive(Debug)]
pub struct Search<'a> {
    anchor: &'a Anchor,
    turns: &'a Turns,
    mark: String,
    turn_seen: bool,
    injected: bool,
    /// The response that holds the anchor's tool calls.
    carrier: Option<String>,
    /// Results of the anchor's tool calls still to come.
    results_missing: usize,
    /// A tool result was written after the offer was made.
    result_after_offer: bool,
    responses: Vec<String>,
    /// The agent has recorded the output of the very hook run that made the offer.
    our_run: bool,
    verdict: Option<Look>,
}

impl<'a> Search<'a> {
    /// A search for `nonce`, offered at `anchor`.
    pub fn new(nonce: &Nonce, anchor: &'a Anchor, turns: &'a Turns) -> Self {
        Self {
            anchor,
            turns,
            mark: mark(nonce),
            turn_seen: false,
            injected: false,
            carrier: None,
            results_missing: match anchor {
                Anchor::Tools(calls) => calls.len(),
                _ => 0,
            },
            result_after_offer: false,
            responses: Vec::new(),
            our_run: false,
            verdict: None,
        }
    }

    /// Takes the next item. `after_offer` says whether the line lies beyond the file's length when the offer was made.
    /// Returns false when nothing further can change the verdict.
    pub fn feed(&mut self, item: &Item, after_offer: bool) -> bool {
        if self.verdict.is_none() {
            self.verdict = self.judge(item, after_offer);
        }
        self.verdict.is_none()
    }

    /// The verdict over all items so far.
    pub fn look(&self) -> Look {
        self.verdict.unwrap_or(if self.injected { Look::Held } else { Look::Open })
    }

    fn judge(&mut self, item: &Item, after_offer: bool) -> Option<Look> {
        match item {
            Item::Injected { text } => {
                self.injected |= !self.in_a_result() && text.contains(&self.mark);
                None
            }
            Item::ToolResult { call, text } => self.tool_result(call, text, after_offer),
            Item::Prompt { id } => self.prompt(id, after_offer),
            Item::Response { id, calls, request } => {
                self.response(id, calls, request.as_deref(), after_offer)
            }
            Item::HookRan { output } => {
                self.our_run |= matches!(self.anchor, Anchor::Stop) && output.contains(&self.mark);
                None
            }
            Item::Replaced { text } => {
                (after_offer && self.injected && !text.contains(&self.mark)).then_some(Look::Passed)
            }
            Item::StopHandled => (self.our_run && !self.injected).then_some(Look::Passed),
            Item::Summarized => None,
        }
    }

    /// The offer is the result of a call, not what a hook said.
    fn in_a_result(&self) -> bool {
        matches!(self.anchor, Anchor::Call(_) | Anchor::Shell)
    }

    fn tool_result(&mut self, call: &str, text: &str, after_offer: bool) -> Option<Look> {
        self.result_after_offer |= after_offer;
        match self.anchor {
            Anchor::Call(id) if id == call => {
                self.injected = text.contains(&self.mark);
                (!self.injected).then_some(Look::Passed)
            }
            Anchor::Shell => {
                self.injected |= text.contains(&self.mark);
                None
            }
            Anchor::Tools(calls) if calls.iter().any(|id| id == call) => {
                self.results_missing = self.results_missing.saturating_sub(1);
                None
            }
            _ => None,
        }
    }

    fn prompt(&mut self, id: &str, after_offer: bool) -> Option<Look> {
        if self.turns.offer.as_deref() == Some(id) {
            self.turn_seen = true;
            return None;
        }
        // A later turn has begun, so whatever the offer's turn took is written before this line. Any other prompt after the
        // offer's own is later; where that was never written (another hook blocked it), the present one is.
        // Where turns have no names, only the offer's own prompt, if it was made with one, is not later.
        let unnamed = self.turns.unnamed && !matches!(self.anchor, Anchor::Prompt);
        let later = self.turn_seen || unnamed || self.turns.now.as_deref() == Some(id);
        (after_offer && later && !self.injected && !matches!(self.anchor, Anchor::Start))
            .then_some(Look::Passed)
    }

    fn response(
        &mut self,
        id: &str,
        calls: &[String],
        request: Option<&[String]>,
        after_offer: bool,
    ) -> Option<Look> {
        let new = !self.responses.iter().any(|seen| seen == id);
        if new {
            self.responses.push(id.to_owned());
        }
        if let Anchor::Tools(ours) = self.anchor
            && calls.iter().any(|call| ours.contains(call))
        {
            self.carrier = Some(id.to_owned());
        }
        if !after_offer {
            return None;
        }
        let held = request.filter(|_| !self.in_a_result()).map(|marks| marks.contains(&self.mark));
        match self.anchor {
            _ if held == Some(true) => Some(Look::Proven),
            // A further piece of the response that was under way is no answer to it. A new one without it: it was taken back.
            _ if self.injected => {
                new.then_some(if held == Some(false) { Look::Passed } else { Look::Proven })
            }
            Anchor::Start => Some(Look::Passed),
            Anchor::Prompt => (self.turn_seen || (new && self.turns.unnamed)).then_some(Look::Passed),
            Anchor::Tools(ours) if ours.is_empty() => {
                (new && self.result_after_offer).then_some(Look::Passed)
            }
            Anchor::Tools(_) => match &self.carrier {
                Some(carrier) => (carrier != id).then_some(Look::Passed),
                // The calls stand before the part of the file that we read, and so does every piece of their response.
                None => (new && self.results_missing == 0).then_some(Look::Passed),
            },
            Anchor::Stop => (new && self.our_run).then_some(Look::Passed),
            Anchor::Call(_) | Anchor::Shell | Anchor::Push => None,
        }
    }
}

/// Looks at an offer by a request that is about to go to the model, in an agent that shows us each of them.
///
/// The mark in it is proof. That it is not there proves the opposite only where it would have to be: in a request that holds the very prompt or
/// tool result which the offer was added to, or that belongs to a later prompt (their ids ascend): then the person has left that part of the
/// conversation; or if the process that made the offer is gone (`maker_lives`), because then nothing is on its way any
/// more. Until then the offer is held.
pub fn look_at_request(
    nonce: &Nonce,
    anchor: &Anchor,
    turns: &Turns,
    shown: &Shown,
    maker_lives: bool,
) -> Look {
    let holds = |id: &String| shown.ids.contains(id);
    let is_later = turns.offer.as_ref().zip(turns.now.as_ref()).is_some_and(|(offer, now)| now > offer);
    let must_be_there = match anchor {
        Anchor::Start | Anchor::Stop => true,
        Anchor::Prompt => is_later || turns.offer.as_ref().is_none_or(holds),
        Anchor::Tools(calls) => is_later || calls.iter().any(holds),
        Anchor::Call(call) => is_later || holds(call),
        // A shell command has ended with its turn.
        Anchor::Shell => turns.now.is_some() && turns.now != turns.offer,
        Anchor::Push => !maker_lives,
    };
    let maker_is_gone = !maker_lives && !matches!(anchor, Anchor::Call(_) | Anchor::Shell);
    if shown.marks.contains(&mark(nonce)) {
        Look::Proven
    } else if must_be_there || maker_is_gone {
        Look::Passed
    } else {
        Look::Held
    }
}

/// What a mark begins with.
pub const MARK: &str = "[baton-offer ";

/// The line that ends an offer's text. Only a complete offer has it, so output that was cut short never counts; without quotes and angle
/// brackets, so that it reads the same inside JSON and inside the tags that some agents put around a hook's text; and no body can contain
/// it, because [`crate::frame::defuse`] takes its bracket away.
pub fn mark(nonce: &Nonce) -> String {
    format!("{MARK}{nonce}]")
}

#[cfg(test)]
mod tests;
