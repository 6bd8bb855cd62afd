//! Transcripts that the real programs wrote (Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0,
//! Copilot 1.0.102), reduced to the lines that matter.
//!
//! Where a hook had text for the model, the sample has `CTX-<event>-<number>`. Tests put an offer's
//! mark there, or in a place where it must not count.

use baton_agents::{Agent, by_name};
use baton_core::frame;
use baton_core::id::Nonce;
use baton_core::mail::{Anchor, Item, Proof, Search, Turns, proof};

/// The nonce in the samples that were recorded with whole offers.
pub fn nonce() -> Nonce {
    Nonce::parse("n0123456789ab").unwrap()
}

/// The mark of that nonce.
pub fn mark() -> String {
    proof::mark(&nonce())
}

/// The mark as a message's body may quote it.
pub fn quoted_mark() -> String {
    let quoted = frame::defuse(&mark());
    assert_ne!(quoted, mark());
    quoted
}

/// An offer as the store keeps it until it is settled.
pub struct Offer<'a> {
    pub anchor: Anchor,
    /// The end of the id of its turn; empty if turns have no ids.
    pub turn: &'a str,
    /// The offer was made before the line with this text was written.
    pub before: &'a str,
}

/// A recorded transcript.
#[derive(Clone)]
pub struct Sample {
    agent: &'static dyn Agent,
    lines: Vec<String>,
}

impl Sample {
    /// The sample of this name, which begins with the agent's name.
    pub fn named(name: &str) -> Self {
        let agent = by_name(name.split_once('-').unwrap().0).unwrap();
        let path = format!("{}/tests/transcripts/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let lines = std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        Self { agent, lines }
    }

    /// With `new` for `old` in each line that `chosen` picks; there must be at least one. Neither
    /// may need escapes in JSON.
    pub fn with_in(&self, chosen: impl Fn(&str) -> bool, old: &str, new: &str) -> Self {
        let mut sample = self.clone();
        let mut found = false;
        for line in sample.lines.iter_mut().filter(|line| line.contains(old) && chosen(line)) {
            *line = line.replace(old, new);
            found = true;
        }
        assert!(found, "no line with {old}");
        sample
    }

    /// The same in every line.
    pub fn with(&self, old: &str, new: &str) -> Self {
        self.with_in(|_| true, old, new)
    }

    /// Without the lines before the first that has this text.
    pub fn without_before(&self, text: &str) -> Self {
        Self { agent: self.agent, lines: self.lines[self.position(text)..].to_vec() }
    }

    /// Without the lines of the model's answer with this text.
    pub fn without(&self, text: &str) -> Self {
        let mut sample = self.clone();
        sample.lines.retain(|line| !line.contains(text) || line.contains("$set"));
        assert_ne!(sample.lines.len(), self.lines.len(), "no line with {text}");
        sample
    }

    /// With one more line.
    pub fn and(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    pub fn sketch(&self) -> Vec<String> {
        self.items().iter().flatten().map(sketch).collect()
    }

    /// The items of each line.
    fn items(&self) -> Vec<Vec<Item>> {
        let mut read = self.agent.transcript();
        self.lines.iter().map(|line| read(line)).collect()
    }

    /// The whole id of a turn whose prompt is in the sample.
    fn turn(&self, end: &str) -> String {
        let items = self.items();
        let mut prompts = items.iter().flatten().filter_map(|item| match item {
            Item::Prompt { id } => Some(id),
            _ => None,
        });
        prompts.find(|id| id.ends_with(end)).map_or_else(|| end.to_owned(), String::clone)
    }

    fn position(&self, text: &str) -> usize {
        self.lines
            .iter()
            .position(|line| line.contains(text))
            .unwrap_or_else(|| panic!("no line with {text}"))
    }

    /// The conclusions about an offer while the file grows, each change with the line that caused
    /// it.
    ///
    /// Agents write late, so the file may have been shorter when the offer was made. That must not
    /// matter. Claude Code and Copilot may be a whole turn behind, Codex some milliseconds, Gemini
    /// CLI never.
    pub fn course(&self, offer: &Offer<'_>) -> Vec<(Proof, String)> {
        let latest = self.position(offer.before);
        let turn = (!offer.turn.is_empty()).then(|| self.turn(offer.turn));
        let turns = Turns { offer: turn, now: None, unnamed: !self.agent.quirks().names_turns };
        let items = self.items();
        let course = |position: usize| {
            let mut changes = vec![(Proof::Open, String::new())];
            for end in position + 1..=self.lines.len() {
                let nonce = nonce();
                let mut search = Search::new(&nonce, &offer.anchor, &turns);
                for (at, items) in items[..end].iter().enumerate() {
                    for item in items {
                        search.feed(item, at >= position);
                    }
                }
                if changes.last().is_some_and(|(look, _)| *look != search.proof()) {
                    changes.push((search.proof(), self.lines[end - 1].clone()));
                }
            }
            changes
        };
        let expected = course(latest);
        let earliest = match self.agent.name() {
            "claude" | "copilot" => 0,
            "codex" => latest.saturating_sub(2),
            _ => latest,
        };
        for position in earliest..latest {
            assert_eq!(looks(&course(position)), looks(&expected), "when {position} lines had been written");
        }
        expected
    }

    /// Only the looks of [`course`](Self::course).
    pub fn looks(&self, offer: &Offer<'_>) -> Vec<Proof> {
        looks(&self.course(offer))
    }
}

fn looks(course: &[(Proof, String)]) -> Vec<Proof> {
    course.iter().map(|(look, _)| *look).collect()
}

fn sketch(item: &Item) -> String {
    let short = |id: &str| id.get(id.len().saturating_sub(8)..).unwrap_or(id).to_owned();
    let line = |text: &str| text.replace('\n', "/").chars().take(60).collect::<String>();
    match item {
        Item::Prompt { id } => format!("prompt {}", short(id)),
        Item::Injected { text } => format!("injected {}", line(text)),
        Item::HookRan { output } => {
            let context = output
                .find("CTX-")
                .map(|at| output[at..].chars().take_while(|c| *c != '"').collect::<String>());
            format!("hook printed {}", context.unwrap_or_else(|| "nothing for the model".to_owned()))
        }
        Item::Replaced { .. } => "replaced".to_owned(),
        Item::StopHandled => "stop handled".to_owned(),
        Item::Summarized => "summarized".to_owned(),
        Item::ToolResult { call, text } => format!("result {call}: {}", line(text)).trim_end().to_owned(),
        Item::Response { id, calls, .. } if calls.is_empty() => format!("response {id}"),
        Item::Response { id, calls, .. } => format!("response {id} calls {}", calls.join(", ")),
    }
}

/// The lines of an indented text.
pub fn lines(text: &str) -> Vec<String> {
    text.trim().lines().map(|line| line.trim().to_owned()).collect()
}
