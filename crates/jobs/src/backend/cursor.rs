//! Cursor's command line agent: `cursor-agent -p` with lines of JSON as output.
//!
//! This is written from its documentation only, because the program is not available for tests. No
//! question can be asked in such a run. Without `--force` it only proposes changes and runs no
//! commands. With it, everything runs that the user's rules don't deny. There is nothing in
//! between, so a job that may edit but not more is refused. `--mode=ask` only reads. It reports a
//! failure on stderr, without a last line.

use super::child::{Child, Ended};
use super::headless::{self, Listener};
use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn, describe};
use baton_core::job::{Allow, Fault, Finish, Observation, Said, Snapshot, Tool, ToolKind, ToolState};
use baton_core::time::Moment;
use baton_core::{Code, Error};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The documentation names no limit, so this is what any program takes.
const PROMPT_BYTES: usize = 104 << 10;

/// Cursor.
#[derive(Debug)]
pub struct Cursor;

impl Cursor {
    pub(super) const NAME: &str = "cursor";
}

impl Backend for Cursor {
    fn agent(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            model: true,
            efforts: &[],
            read_only: ReadOnly::Rules,
            resume: true,
            answers: false,
            prompt_bytes: PROMPT_BYTES,
        }
    }

    fn check(&self, task: &Task) -> Result<(), Error> {
        super::check_options(self, task)?;
        if task.allow == Allow::Edits && !task.read_only {
            return Err(Error::new(Code::UnsupportedOption, "Cursor can't be limited to edits").hint(
                "choose `--allow all`, `--allow ask` (it then only proposes changes) or `--read-only`",
            ));
        }
        Ok(())
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        if let Some(session) = &task.resume {
            report(Observation::Session(session.clone()));
        }
        let session = task.resume.clone().unwrap_or_default();
        let listener =
            Stream { session, folder: task.folder.clone(), text: String::new(), tools: Vec::new() };
        headless::start(&mut command(task), task, &task.prompt, listener, report)
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        headless::kept_end(&task.folder, session)
    }
}

fn command(task: &Task) -> Command {
    let mut command = Child::command(task);
    command.args(["-p", "--output-format", "stream-json"]);
    if task.read_only {
        command.arg("--mode=ask");
    } else if task.allow == Allow::All {
        command.arg("--force");
    }
    if let Some(model) = &task.model {
        command.arg(format!("--model={model}"));
    }
    if let Some(session) = &task.resume {
        command.arg(format!("--resume={session}"));
    }
    command
}

/// A turn, by the program's output.
struct Stream {
    session: String,
    folder: PathBuf,
    /// What the model has said since the last tool.
    text: String,
    tools: Vec<Tool>,
}

impl Listener for Stream {
    fn line(&mut self, line: &str, now: Moment) -> Vec<Observation> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        match (text("type"), text("subtype")) {
            ("system", "init") => {
                text("session_id").clone_into(&mut self.session);
                vec![Observation::Session(self.session.clone())]
            }
            ("assistant", _) => {
                let blocks = line["message"]["content"].as_array().into_iter().flatten();
                let said: String = blocks.filter_map(|block| block["text"].as_str()).collect();
                self.text.push_str(&said);
                vec![Observation::Progress(describe::line(&said))]
            }
            ("tool_call", "started") => {
                let said = Said { text: std::mem::take(&mut self.text), finish: Finish::ToolCalls };
                let tool = tool(text("call_id"), &line["tool_call"]);
                self.tools.push(tool.clone());
                vec![Observation::Said(said), Observation::Tool(tool)]
            }
            ("tool_call", "completed") => {
                let at = self.tools.iter().position(|tool| tool.call == text("call_id"));
                at.map(|at| ended(self.tools.remove(at))).into_iter().collect()
            }
            ("result", _) => self.result(&line, now),
            _ => Vec::new(),
        }
    }

    fn ended(&mut self, ended: &Ended, now: Moment) -> Option<Fault> {
        let words = ended.last_words.trim();
        let failed = ended.status.code().is_some_and(|code| code != 0) && !words.is_empty();
        failed.then(|| describe::fault("cursor", None, words, now))
    }
}

impl Stream {
    fn result(&mut self, line: &Value, now: Moment) -> Vec<Observation> {
        let mut told: Vec<Observation> = std::mem::take(&mut self.tools).into_iter().map(ended).collect();
        let whole = line["result"].as_str().unwrap_or_default();
        if line["is_error"] == true || line["subtype"] != "success" {
            told.push(Observation::Fault(describe::fault("cursor", None, whole, now)));
            return told;
        }
        // Its result has all text of the turn. A job's result is the last part.
        let text = if self.text.is_empty() { whole.to_owned() } else { std::mem::take(&mut self.text) };
        let said = Said { text, finish: Finish::End };
        headless::keep_end(&self.folder, &self.session, &said);
        told.extend([Observation::Said(said), Observation::Idle]);
        told
    }
}

fn ended(tool: Tool) -> Observation {
    Observation::Tool(Tool { state: ToolState::Ended, ..tool })
}

/// `{"readToolCall": {"args": {…}}}`, or `{"function": {"name": …, "arguments": …}}`.
fn tool(call: &str, told: &Value) -> Tool {
    let entry = told.as_object().and_then(|told| told.iter().next());
    let (key, value) = entry.map_or(("tool", &Value::Null), |(key, value)| (key.as_str(), value));
    let name = match key {
        "function" => value["name"].as_str().unwrap_or("function"),
        key => key.strip_suffix("ToolCall").unwrap_or(key),
    };
    let args = &value["args"];
    let detail =
        ["command", "path", "globPattern", "pattern", "url"].iter().find_map(|name| args[*name].as_str());
    let what = match detail {
        Some(detail) => format!("{name}: {}", describe::line(detail)),
        None => name.to_owned(),
    };
    let kind = if name == "shell" { ToolKind::Shell } else { ToolKind::Other };
    Tool { call: call.to_owned(), kind, what, state: ToolState::Running, output: 0 }
}
