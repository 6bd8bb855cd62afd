//! Searches for proof that an agent took what a hook printed.
//!
//! An agent writes its conversation in order, but late: Claude Code holds lines back for about 100
//! ms, and sends its requests before. So the absence of a nonce proves nothing by itself, and
//! neither does a later event. What proves absence is *order in the file*. If the file has a model
//! response to a request made after the offer, and the nonce is not before that response, then the
//! agent did not take the offer.
//!
//! Presence is not enough either. A person may take a prompt back before the first word of the
//! answer. Then the text that a hook added to the prompt is out of the context, though it stays in
//! the file. A person may also clear the conversation at that moment, and the model never reads it.
//! So a nonce counts once the model has answered with it in its context. If the agent records its
//! requests, the record of that request decides.
//!
//! The agents' adapters turn lines into [`Item`]s, and [`Search`] judges them. A nonce does not
//! count in a model's own words, in the raw output of a hook, or in quoted text.

use crate::event::Shown;
use crate::id::Nonce;

/// Where in the course of a session an offer was made. The store keeps it until the offer is
/// settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At the start of a session.
    Start,
    /// With the prompt of the offer's turn.
    Prompt,
    /// After the tool calls with these ids, all of one model response. Empty if the transcript does
    /// not have the ids.
    Tools(Vec<String>),
    /// At the end of the turn.
    Stop,
    /// As the result of the tool call of this id.
    Call(String),
    /// As the output of a shell command that the agent ran. The id of that call is not known.
    Shell,
    /// Pushed into an idle session, as a prompt of its own.
    Push,
}

impl Anchor {
    /// The text for the store. Ids come from the agent and may hold anything but a newline, so each
    /// has its own line after the kind.
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
    /// The turn that the session is in now, if an event of the session causes the search.
    pub now: Option<String>,
    /// The agent has no ids for turns. It writes each line before it acts on it, and runs its
    /// prompt hooks only between turns.
    pub unnamed: bool,
}

/// What one line of a transcript means for proof. Adapters skip lines that mean nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A person's prompt.
    Prompt {
        /// The agent's id for its turn.
        id: String,
    },
    /// Text that the agent put into the context because a hook said so.
    Injected { text: String },
    /// The agent's record of what a hook printed, whether the agent took it or not.
    HookRan { output: String },
    /// The agent replaced the conversation so far by this text. What the model had not answered and
    /// is not in the text is lost to it.
    Replaced {
        /// What is left of the conversation.
        text: String,
    },
    /// The agent's note that a summary has replaced the conversation so far. It says nothing about
    /// an offer: what was not answered stays.
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
        id: String,
        /// The tool calls in this piece.
        calls: Vec<String>,
        /// The marks that hooks had put into the request that it answers. `None` if the agent does
        /// not record its requests.
        request: Option<Vec<String>>,
    },
}

/// What the transcript says about an offer so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The nonce is where it counts, and the model has answered since.
    Proven,
    /// The nonce is where it counts, but the model has not answered yet, and may never.
    Held,
    /// The model has gone on without it. The agent did not take it and never will.
    Passed,
    /// No conclusion yet.
    Open,
    /// There is no transcript to read.
    Blind,
}

/// One pass over the items of a transcript, in the order of the file, for one offer.
#[derive(Debug)]
pub struct Search<'a> {
    anchor: &'a Anchor,
    turns: &'a Turns,
    mark: String,
    turn_seen: bool,
    /// The offer is the result of a call. As far as the order in the file shows, the turn of that
    /// call has begun.
    call_turn_begun: bool,
    injected: bool,
    /// The response that holds the anchor's tool calls.
    carrier: Option<String>,
    /// Results of the anchor's tool calls still to come.
    results_missing: usize,
    /// A tool result was written after the offer was made.
    result_after_offer: bool,
    responses: Vec<String>,
    /// The agent has recorded the output of the hook run that made the offer.
    our_run: bool,
    verdict: Option<Proof>,
}

impl<'a> Search<'a> {
    /// A search for `nonce`, offered at `anchor`.
    pub fn new(nonce: &Nonce, anchor: &'a Anchor, turns: &'a Turns) -> Self {
        Self {
            anchor,
            turns,
            mark: mark(nonce),
            turn_seen: false,
            call_turn_begun: false,
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

    /// Takes the next item. `after_offer` says whether its line came after the offer was made, by
    /// the file's length then. Returns false when no further item can change the verdict.
    pub fn feed(&mut self, item: &Item, after_offer: bool) -> bool {
        if self.verdict.is_none() {
            self.verdict = self.judge(item, after_offer);
        }
        self.verdict.is_none()
    }

    pub fn proof(&self) -> Proof {
        self.verdict.unwrap_or(if self.injected { Proof::Held } else { Proof::Open })
    }

    fn judge(&mut self, item: &Item, after_offer: bool) -> Option<Proof> {
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
                (after_offer && self.injected && !text.contains(&self.mark)).then_some(Proof::Passed)
            }
            Item::StopHandled => (self.our_run && !self.injected).then_some(Proof::Passed),
            Item::Summarized => None,
        }
    }

    /// The offer is in the result of a call, not in the output of a hook.
    fn in_a_result(&self) -> bool {
        matches!(self.anchor, Anchor::Call(_) | Anchor::Shell)
    }

    fn tool_result(&mut self, call: &str, text: &str, after_offer: bool) -> Option<Proof> {
        self.result_after_offer |= after_offer;
        match self.anchor {
            Anchor::Call(id) if id == call => {
                self.injected = text.contains(&self.mark);
                (!self.injected).then_some(Proof::Passed)
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

    fn prompt(&mut self, id: &str, after_offer: bool) -> Option<Proof> {
        if self.in_a_result() && !self.turns.unnamed {
            return self.prompt_around_a_call(id, after_offer);
        }
        if self.turns.offer.as_deref() == Some(id) {
            self.turn_seen = true;
            return None;
        }
        // If this prompt begins a later turn, everything that the offer's turn took is before this
        // line. Any other prompt after the offer's own prompt is later. If that was never written,
        // because another hook blocked it, the present turn's prompt is later. If turns have no
        // ids, every prompt is later except the offer's own.
        let unnamed = self.turns.unnamed && !matches!(self.anchor, Anchor::Prompt);
        let later = self.turn_seen || unnamed || self.turns.now.as_deref() == Some(id);
        (after_offer && later && !self.injected && !matches!(self.anchor, Anchor::Start))
            .then_some(Proof::Passed)
    }

    /// A command or an MCP call does not know its turn. If the prompt's hook was killed, the store
    /// knows only an earlier turn, and the prompt may be written after the offer. So the first
    /// other prompt after the offer may be the offer's own, and only the next one is later. A
    /// prompt before the offer proves nothing: the hook of the next prompt may have been killed
    /// too.
    fn prompt_around_a_call(&mut self, id: &str, after_offer: bool) -> Option<Proof> {
        if self.turns.offer.as_deref() == Some(id) {
            return None;
        }
        let passed = after_offer && self.call_turn_begun && !self.injected;
        self.call_turn_begun |= after_offer;
        passed.then_some(Proof::Passed)
    }

    fn response(
        &mut self,
        id: &str,
        calls: &[String],
        request: Option<&[String]>,
        after_offer: bool,
    ) -> Option<Proof> {
        let new = !self.responses.iter().any(|seen| seen == id);
        if new {
            self.responses.push(id.to_owned());
        }
        if let Anchor::Tools(ours) = self.anchor
            && calls.iter().any(|call| ours.contains(call))
        {
            self.carrier = Some(id.to_owned());
        }
        // The prompt of a call is before the response that makes the call.
        self.call_turn_begun |= matches!(self.anchor, Anchor::Call(ours) if calls.contains(ours));
        if !after_offer {
            return None;
        }
        let held = request.filter(|_| !self.in_a_result()).map(|marks| marks.contains(&self.mark));
        match self.anchor {
            _ if held == Some(true) => Some(Proof::Proven),
            // Another piece of a response that was already streaming is no answer to the offer. A
            // new response whose request lacks the mark shows that the prompt was taken back.
            _ if self.injected => {
                new.then_some(if held == Some(false) { Proof::Passed } else { Proof::Proven })
            }
            Anchor::Start => Some(Proof::Passed),
            Anchor::Prompt => (self.turn_seen || (new && self.turns.unnamed)).then_some(Proof::Passed),
            Anchor::Tools(ours) if ours.is_empty() => {
                (new && self.result_after_offer).then_some(Proof::Passed)
            }
            Anchor::Tools(_) => match &self.carrier {
                Some(carrier) => (carrier != id).then_some(Proof::Passed),
                // The calls are before the part of the file that we read, and so is every piece of
                // their response.
                None => (new && self.results_missing == 0).then_some(Proof::Passed),
            },
            Anchor::Stop => (new && self.our_run).then_some(Proof::Passed),
            Anchor::Call(_) | Anchor::Shell | Anchor::Push => None,
        }
    }
}

/// Judges an offer by a request that is about to go to the model, for an agent that shows us each
/// request.
///
/// The mark in the request is proof. Its absence proves the opposite in three cases only. The
/// request holds the prompt or tool result that the offer was added to. The request belongs to a
/// later prompt (ids ascend), so the person has left that part of the conversation. Or the process
/// that made the offer is dead (`maker_lives`), so nothing is on its way. In any other case the
/// offer is held.
pub fn proof_in_request(
    nonce: &Nonce,
    anchor: &Anchor,
    turns: &Turns,
    shown: &Shown,
    maker_lives: bool,
) -> Proof {
    let holds = |id: &String| shown.ids.contains(id);
    let is_later = turns.offer.as_ref().zip(turns.now.as_ref()).is_some_and(|(offer, now)| now > offer);
    let must_be_there = match anchor {
        Anchor::Start | Anchor::Stop => true,
        Anchor::Prompt => is_later || turns.offer.as_ref().is_none_or(holds),
        Anchor::Tools(calls) => is_later || calls.iter().any(holds),
        Anchor::Call(call) => is_later || holds(call),
        // A shell command ends with its turn.
        Anchor::Shell => turns.now.is_some() && turns.now != turns.offer,
        Anchor::Push => !maker_lives,
    };
    let maker_is_gone = !maker_lives && !matches!(anchor, Anchor::Call(_) | Anchor::Shell);
    if shown.marks.contains(&mark(nonce)) {
        Proof::Proven
    } else if must_be_there || maker_is_gone {
        Proof::Passed
    } else {
        Proof::Held
    }
}

pub const MARK: &str = "[baton-offer ";

/// The line that ends an offer's text. Only a complete offer has it, so output that was cut short
/// never counts. It has no quotes and no angle brackets, so it reads the same inside JSON and
/// inside the tags that some agents put around a hook's text. No body can contain it, because
/// [`crate::frame::defuse`] takes its bracket away.
pub fn mark(nonce: &Nonce) -> String {
    format!("{MARK}{nonce}]")
}

#[cfg(test)]
mod tests;
