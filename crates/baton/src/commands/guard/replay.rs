//! `guard replay`: what the rules of today would have said about the calls of past conversations.

use super::CommandContext;
use crate::print::{Out, Progress, Text, Tone, done, table, text, when};
use crate::{environment, guard};
use baton_agents::history::{History, HistoryReader, Past};
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::event::EventKind;
use baton_core::frame::shown;
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error, limits};
use baton_guard_runtime::Guard;
use baton_guard_runtime::replay::Replay;
use clap::Args;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What is shown of a call.
const CALL_CHARS: usize = 60;

// `baton guard replay`
#[derive(Debug, Args)]
pub struct ReplayPast {
    /// Only this agent's conversations
    #[arg(long)]
    agent: Option<String>,
    /// Only calls of the last while, such as `12h` or `30d`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

/// What came of one agent's conversations.
#[derive(Default)]
struct Tally {
    conversations: usize,
    calls: usize,
    unjudged: usize,
    /// Why there is nothing, or not all.
    trouble: Option<String>,
    by_rule: BTreeMap<(String, &'static str), Rule>,
}

/// What one rule would have done.
#[derive(Default)]
struct Rule {
    calls: usize,
    sessions: BTreeSet<String>,
    last: Option<Moment>,
    example: String,
}

impl ReplayPast {
    /// Judges them all. Nothing is logged, and no one is notified.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let since = self.since.as_deref().map(Span::parse).transpose()?;
        let since = since.map(|span| Moment(baton_machine::clock::now().0 - span.0));
        let agents: Vec<&dyn Agent> = match &self.agent {
            Some(name) => vec![baton_agents::by_name(name)?],
            None => ALL.to_vec(),
        };
        let guard = guard::open(&context.home);
        let mut tallies = Vec::new();
        for agent in agents {
            let mut past = Conversations {
                guard: &guard,
                replay: Replay::new(&guard),
                agent,
                since,
                tally: Tally::default(),
            };
            past.read()?;
            tallies.push((agent, past.tally));
        }
        let document: Vec<Value> =
            tallies.iter().map(|(agent, tally)| tally.document(agent.name())).collect();
        out.data(&Value::Array(document), || in_words(&tallies))?;
        done()
    }
}

/// One agent's conversations, while they are read.
struct Conversations<'a> {
    guard: &'a Guard,
    replay: Replay<'a>,
    agent: &'a dyn Agent,
    since: Option<Moment>,
    tally: Tally,
}

impl Conversations<'_> {
    fn read(&mut self) -> Result<(), Error> {
        let written = self.since.and_then(|since| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(since.0).ok()?))
        });
        match self.agent.history(&environment::user_home()?, written, &environment::get) {
            History::Unreadable(why) => self.tally.trouble = Some(why.to_owned()),
            History::Files(files) => {
                let bar = Progress::conversations(self.agent.title(), files.len());
                for file in files {
                    self.file(&file)?;
                    bar.step();
                }
                bar.clear();
            }
            History::Database { file, query } => self.database(&file, query)?,
        }
        Ok(())
    }

    fn file(&mut self, file: &Path) -> Result<(), Error> {
        let Ok(open) = baton_machine::files::open(file) else { return Ok(()) };
        self.tally.conversations += 1;
        let mut reader = self.agent.history_reader(file);
        let mut lines = BufReader::new(open);
        let mut line = Vec::new();
        loop {
            line.clear();
            // A line that is longer than any payload is none that was ever judged.
            let most = limits::PAYLOAD_BYTES as u64;
            match lines.by_ref().take(most).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => self.line(&mut reader, &String::from_utf8_lossy(&line))?,
            }
        }
    }

    fn database(&mut self, file: &Path, query: &str) -> Result<(), Error> {
        if !file.is_file() {
            return Ok(());
        }
        let bar = Progress::conversations(self.agent.title(), 1);
        let mut reader = self.agent.history_reader(file);
        let mut failed = None;
        let mut sessions = BTreeSet::new();
        let read = baton_store::foreign::rows(file, query, self.since.map_or(0, |since| since.0), |row| {
            if failed.is_none() {
                for past in reader(row) {
                    sessions.extend(past.call.session_id.clone());
                    failed = failed.take().or(self.judge(past).err());
                }
            }
        });
        bar.clear();
        self.tally.conversations = sessions.len();
        if let Err(error) = read {
            self.tally.trouble = Some(error.message().to_owned());
        }
        failed.map_or(Ok(()), Err)
    }

    fn line(&mut self, reader: &mut HistoryReader, line: &str) -> Result<(), Error> {
        reader(line).into_iter().try_for_each(|past| self.judge(past))
    }

    fn judge(&mut self, mut past: Past) -> Result<(), Error> {
        if past.at.zip(self.since).is_some_and(|(at, since)| at < since) {
            return Ok(());
        }
        let before = past.call.kind == EventKind::BeforeTool;
        self.tally.calls += usize::from(before);
        self.tally.unjudged += usize::from(self.replay.ran_unjudged(self.agent, &past));
        let Some(verdict) = self.replay.judge(self.agent, &mut past)? else {
            return Err(Error::new(Code::Usage, "the guard is off, so nothing is judged")
                .hint("guard.mode = \"on\" in your config.toml"));
        };
        if verdict.rule.is_empty() {
            return Ok(());
        }
        let rule = self.tally.by_rule.entry((verdict.rule, verdict.decision.as_str())).or_default();
        rule.calls += 1;
        rule.sessions.extend(past.call.session_id.clone());
        rule.last = rule.last.max(past.at);
        if rule.example.is_empty() {
            rule.example = self.guard.shown(&past.call, CALL_CHARS);
        }
        Ok(())
    }
}

impl Tally {
    fn document(&self, agent: &str) -> Value {
        let rules: Vec<Value> = self
            .by_rule
            .iter()
            .map(|((id, decision), rule)| {
                json!({
                    "rule": id, "decision": decision, "calls": rule.calls, "sessions": rule.sessions.len(),
                    "last": rule.last.map(Moment::to_rfc3339), "example": rule.example,
                })
            })
            .collect();
        json!({
            "agent": agent, "conversations": self.conversations, "calls": self.calls, "unjudged": self.unjudged,
            "trouble": self.trouble, "rules": rules,
        })
    }
}

fn in_words(tallies: &[(&dyn Agent, Tally)]) -> Text {
    let mut rows = Vec::new();
    let mut sums = Vec::new();
    let found = |(_, tally): &&(&dyn Agent, Tally)| tally.conversations > 0 || tally.trouble.is_some();
    for (agent, tally) in tallies.iter().filter(found) {
        for ((id, decision), rule) in &tally.by_rule {
            rows.push(vec![
                agent.name().to_owned(),
                (*decision).to_owned(),
                id.clone(),
                rule.calls.to_string(),
                rule.sessions.len().to_string(),
                rule.last.map_or_else(|| "–".to_owned(), when),
                rule.example.clone(),
            ]);
        }
        let held: usize = tally.by_rule.values().map(|rule| rule.calls).sum();
        let unjudged = match tally.unjudged {
            0 => String::new(),
            count => format!("; {count} ran without having been judged"),
        };
        let trouble = tally.trouble.as_ref().map_or_else(String::new, |why| format!("; {}", shown(why, 200)));
        sums.push(format!(
            "{}: {} calls in {} conversations, {held} with something to say{unjudged}{trouble}",
            agent.title(),
            tally.calls,
            tally.conversations
        ));
    }
    let head = ["AGENT", "DECISION", "RULE", "CALLS", "SESSIONS", "LAST", "FOR EXAMPLE"];
    let tones = [None, Some(Tone::Bold), None, None, None, Some(Tone::Dim)];
    if sums.is_empty() {
        return Text::from("no agent has kept a conversation from that time here");
    }
    let sums = Text::join(sums, "\n");
    if rows.is_empty() { sums } else { text![table(&head, &rows, &tones).trim_end(), "\n\n", sums] }
}
