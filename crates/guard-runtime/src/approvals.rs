//! The `[approvals]` section of the person's own file: what runs without a question, who may
//! answer, how the person is told.
//!
//! A project's file and a file that the environment names can't set any of this. Otherwise a
//! repository could approve its own calls. This module parses the section and checks calls against
//! it. How long a question is held (`approvals.hold`) is an ordinary setting.

use crate::policy::{malformed, parsed, text};
use crate::{Guard, Mode, READ_ONLY_VARIABLE, Ruling, runs_in};
use baton_agents::{Agent, ToolCall};
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::guard::Decision;
use baton_core::tool::ToolUse;
pub use baton_guard::permit::script_of;
use baton_guard::permit::{self, Pattern};
use baton_guard::rules::read_only;
use baton_guard::{Active, Params};
use serde_json::Value as Json;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use toml_edit::{Item, Value};

const SECTION_NAME: &str = "approvals";
/// Placeholders in the words of `notify_command`. Each is replaced by the text that it names.
pub const PLACEHOLDERS: [&str; 4] = ["{title}", "{text}", "{id}", "{count}"];
/// How many patterns, reviewers of a project or words of a command a list may have. More is a
/// mistake.
const MAX_LIST_ITEMS: usize = 200;

/// Each setting for people: key, default, meaning.
pub const MEANINGS: [(&str, &str, &str); 7] = [
    ("approvals.auto_approve", "none", "patterns of calls that run without a question"),
    ("approvals.reviewers", "none", "agents that may answer questions of a project, by its folder"),
    (
        "approvals.notify_command",
        "none",
        "a command to run when a question waits, or when a job that you started has ended",
    ),
    ("approvals.notify_bell", "off", "whether `baton approvals --watch` rings the terminal's bell"),
    ("approvals.notify_webhook", "none", "an address on this machine that gets a request in the same cases"),
    ("approvals.notify_mail", "none", "the reviewer who gets mail when a question waits"),
    (
        "approvals.notify_terminal",
        "on",
        "whether `run`, `job wait` and `approvals --watch` have their terminal show a notification",
    ),
];

/// Whether this module reads a key of the section.
pub fn is_key(key: &str) -> bool {
    MEANINGS.iter().any(|(known, ..)| *known == key)
}

/// What the person set in `[approvals]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Patterns of calls that run without a question.
    pub auto_approve: Vec<Pattern>,
    /// Who may answer: a project's folder, and the names of participants there.
    pub reviewers: Vec<(PathBuf, Vec<String>)>,
    pub notify: Notify,
    /// The keys that the file sets.
    set: Vec<&'static str>,
    file: Option<PathBuf>,
}

/// How the person learns that a question waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// The words of a command.
    pub command: Vec<String>,
    /// Whether `baton approvals --watch` rings its terminal's bell.
    pub bell: bool,
    /// An address on this machine.
    pub webhook: Option<String>,
    /// The name of a reviewer.
    pub mail: Option<String>,
    /// Whether commands have their own terminal show a notification, if it can.
    pub terminal: bool,
}

impl Default for Notify {
    fn default() -> Self {
        Self { command: Vec::new(), bell: false, webhook: None, mail: None, terminal: true }
    }
}

impl Notify {
    /// Whether baton tells a person who is not watching.
    pub fn is_set(&self) -> bool {
        !self.command.is_empty() || self.webhook.is_some() || self.mail.is_some()
    }
}

impl ApprovalSettings {
    /// Every setting, to show it: key, value, file.
    pub fn shown(&self) -> Vec<(&'static str, String, Option<&Path>)> {
        let many = |texts: Vec<&str>| if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
        let reviewers = self
            .reviewers
            .iter()
            .map(|(project, names)| format!("{}: {}", project.display(), names.join(" ")));
        let reviewers: Vec<String> = reviewers.collect();
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let values = [
            many(self.auto_approve.iter().map(Pattern::as_str).collect()),
            many(reviewers.iter().map(String::as_str).collect()),
            many(self.notify.command.iter().map(String::as_str).take(1).collect()),
            if self.notify.bell { "on" } else { "off" }.to_owned(),
            or_none(&self.notify.webhook),
            or_none(&self.notify.mail),
            if self.notify.terminal { "on" } else { "off" }.to_owned(),
        ];
        let from = |key: &str| self.file.as_deref().filter(|_| self.set.contains(&key));
        MEANINGS.into_iter().zip(values).map(|((key, ..), value)| (key, value, from(key))).collect()
    }

    /// Reads a file's section.
    pub fn read(file: &Path, text: &str) -> Result<Self, Error> {
        let document = parsed(file, text)?;
        let mut policy = Self { file: Some(file.to_owned()), ..Self::default() };
        let Some(section) = document.get(SECTION_NAME).and_then(Item::as_table_like) else {
            return Ok(policy);
        };
        for (name, item) in section.iter() {
            let key = format!("{SECTION_NAME}.{name}");
            let Some((key, ..)) = MEANINGS.into_iter().find(|(known, ..)| *known == key) else { continue };
            policy.set.push(key);
            policy.take(name, item).map_err(|why| {
                let at = item.span().unwrap_or_default().start;
                malformed(file, text, at, &format!("{key} {why}"))
            })?;
        }
        Ok(policy)
    }

    fn take(&mut self, name: &str, item: &Item) -> Result<(), String> {
        let one = |words: &str| item.as_str().map(str::to_owned).ok_or_else(|| format!("must be {words}"));
        match name {
            "auto_approve" => {
                for text in list(item).ok_or("must be a list of patterns, such as [\"bash: git status\"]")? {
                    let pattern = Pattern::parse(&text);
                    self.auto_approve.push(pattern.map_err(|why| format!("{text:?} {why}"))?);
                }
            }
            "reviewers" => {
                let words = "must be a section: [approvals.reviewers], then \"/project\" = [\"name\"]";
                for (project, names) in item.as_table_like().ok_or(words)?.iter() {
                    if !Path::new(project).is_absolute() {
                        return Err(format!("{project:?} must be the whole path of a project's folder"));
                    }
                    self.reviewers.push((project.into(), list(names).ok_or(words)?));
                }
            }
            "notify_command" => {
                let words = "must be a list: a program and its arguments, such as [\"notify-send\", \"{title}\", \"{text}\"]";
                self.notify.command = list(item).ok_or(words)?;
                let program = self.notify.command.first().ok_or(words)?;
                if program.is_empty() || program.contains('{') {
                    return Err("must begin with a program".to_owned());
                }
                // A placeholder inside a longer word could be read as something else by the program
                // that gets the word.
                let holds =
                    |word: &String| PLACEHOLDERS.iter().any(|place| word.contains(place) && word != place);
                if self.notify.command.iter().any(holds) {
                    return Err(format!("must have {} as separate words", PLACEHOLDERS.join(", ")));
                }
            }
            "notify_bell" => self.notify.bell = switch(item)?,
            "notify_terminal" => self.notify.terminal = switch(item)?,
            "notify_webhook" => {
                let url = one("an address, such as \"http://127.0.0.1:8080/asked\"")?;
                if !is_loopback(&url) {
                    return Err(
                        "must be an address of this machine: http://127.0.0.1:PORT/… or http://[::1]:PORT/…"
                            .to_owned(),
                    );
                }
                self.notify.webhook = Some(url);
            }
            "notify_mail" => self.notify.mail = Some(one("the name of a participant")?),
            _ => {}
        }
        Ok(())
    }
}

fn switch(item: &Item) -> Result<bool, String> {
    match item.as_value() {
        Some(Value::Boolean(on)) => Ok(*on.value()),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A list of at most [`MAX_LIST_ITEMS`] texts.
fn list(item: &Item) -> Option<Vec<String>> {
    let items = item.as_array()?;
    if items.len() > MAX_LIST_ITEMS {
        return None;
    }
    items.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Whether an address can't leave this machine. It must be a number, because a name means whatever
/// the resolver says.
fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if url.chars().any(|sign| sign.is_control() || sign.is_whitespace() || sign == '\\') {
        return false;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => (host, port.strip_prefix(':').or(port.is_empty().then_some("80"))),
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("80")),
        },
    };
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let v4 = host.parse::<Ipv4Addr>().is_ok_and(|host| host.is_loopback()) && !authority.starts_with('[');
    let v6 = host.parse::<Ipv6Addr>().is_ok_and(|host| host.is_loopback()) && authority.starts_with('[');
    is_port && (v4 || v6)
}

/// What baton says about a call that its agent asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    /// The guard's reason, and the rule that gave it.
    pub why: Option<String>,
    /// The person's patterns that make the question unnecessary.
    pub by_rule: Option<String>,
}

/// What the caller may do in general.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whatever its agent permits.
    Any,
    /// Nothing may be changed.
    ReadOnly,
}

impl Guard {
    /// The `[approvals]` settings of the person's file.
    pub fn approvals(&self) -> Result<ApprovalSettings, Error> {
        let Some(file) = &self.places.config else {
            return self.settings().map(|_| ApprovalSettings::default());
        };
        match text(file)? {
            Some(text) => ApprovalSettings::read(file, &text),
            None => Ok(ApprovalSettings::default()),
        }
    }

    /// What other files set in `[approvals]`, which has no effect: one line each.
    pub fn ignored_approvals(&self, cwd: &Path) -> Vec<String> {
        let project = crate::project_file(cwd);
        let files = self
            .places
            .named_config
            .iter()
            .chain(&project)
            .filter(|file| Some(*file) != self.places.config.as_ref());
        let mut ignored = Vec::new();
        for file in files {
            // A file that can't be read sets nothing. The checks of the settings report it.
            let Ok(Some(text)) = text(file) else { continue };
            let Ok(document) = parsed(file, &text) else { continue };
            let Some(section) = document.get(SECTION_NAME).and_then(Item::as_table_like) else { continue };
            let keys =
                section.iter().map(|(name, _)| format!("{SECTION_NAME}.{name}")).filter(|key| is_key(key));
            ignored.extend(
                keys.map(|key| format!("{}: {key} counts only in your own config.toml", file.display())),
            );
        }
        ignored
    }

    /// The opinion about the call that a question is about. It is empty if the payload shows no
    /// call.
    pub fn opinion_of_question(&self, agent: &dyn Agent, payload: &[u8]) -> Opinion {
        let before = agent.facts().calls.before.first().copied();
        let Some(Ok(Some(mut call))) = before.map(|before| agent.call(payload, Some(before))) else {
            return Opinion::default();
        };
        if agent.facts().calls.cwd_is_of_call {
            self.resolve_cwd(&mut call);
        }
        self.opinion(agent, &call, Access::Any)
    }

    /// The opinion about a call that a job's agent asks about.
    pub fn opinion_of_tool(&self, agent: &dyn Agent, cwd: &Path, tool: &ToolUse, access: Access) -> Opinion {
        let call = ToolCall {
            kind: EventKind::BeforeTool,
            native: String::new(),
            session_id: None,
            cwd: Some(cwd.to_owned()),
            id: None,
            tool: tool.clone(),
            input: Json::Null,
            output: None,
        };
        self.opinion(agent, &call, access)
    }

    /// A call that can't be judged is never permitted.
    fn opinion(&self, agent: &dyn Agent, call: &ToolCall, access: Access) -> Opinion {
        let works_in = self.cwd_of(call);
        let Ok(mut policy) = self.policy(&works_in) else { return Opinion::default() };
        let reads_only = (self.places.env)(READ_ONLY_VARIABLE).is_some();
        if access == Access::ReadOnly
            && !reads_only
            && let Some(rule) = baton_guard::rules::by_id(read_only::RULE_ID)
        {
            policy.rules.rules.push(Active { rule, params: Params::default() });
        }
        if policy.settings.mode.value == Mode::On || access == Access::ReadOnly {
            let verdict = self.judge_before(agent, call, &policy.rules, 0).verdict;
            if matches!(verdict.decision, Decision::Ask | Decision::Deny) {
                let why = match crate::to_ruling(call, &verdict) {
                    Some(Ruling::Ask(why) | Ruling::Deny(why)) => Some(why),
                    _ => None,
                };
                return Opinion { why, by_rule: None };
            }
        }
        let patterns = self.approvals().map(|policy| policy.auto_approve).unwrap_or_default();
        let own = |project: &Path| self.own_paths(project);
        let machine = self.machine(&works_in, &runs_in(call, &works_in), &own);
        let used = permit::permits(&patterns, &call.tool, &machine).unwrap_or_default();
        let used: Vec<&str> = used.iter().map(|pattern| pattern.as_str()).collect();
        Opinion { why: None, by_rule: (!used.is_empty()).then(|| used.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::Code;

    fn read(text: &str) -> Result<ApprovalSettings, Error> {
        ApprovalSettings::read(Path::new("/c.toml"), text)
    }

    #[test]
    fn everything_is_read_and_shown() {
        let policy = read(
            "[approvals]\nhold = \"5s\"\nauto_approve = [\"bash: git status\", \"edit: src/**\"]\nnotify_command = [\"notify-send\", \"{title}\"]\n\
             notify_bell = true\nnotify_webhook = \"http://127.0.0.1:8080/x?y\"\nnotify_mail = \"otter\"\nnotify_terminal = false\n\
             [approvals.reviewers]\n\"/w/p\" = [\"otter\", \"birch\"]\n",
        )
        .unwrap();
        assert_eq!(policy.auto_approve.len(), 2);
        assert_eq!(policy.reviewers, [("/w/p".into(), vec!["otter".to_owned(), "birch".to_owned()])]);
        assert!(policy.notify.bell && policy.notify.is_set());
        let values: Vec<String> = policy.shown().into_iter().map(|(_, value, _)| value).collect();
        let expected = [
            "bash: git status, edit: src/**",
            "/w/p: otter birch",
            "notify-send",
            "on",
            "http://127.0.0.1:8080/x?y",
            "otter",
            "off",
        ];
        assert_eq!(values, expected);
        assert!(policy.shown().iter().all(|(_, _, file)| file.is_some()));
        let nothing = read("wake = \"off\"\n").unwrap();
        assert!(!nothing.notify.is_set() && nothing.shown().iter().all(|(_, _, file)| file.is_none()));
        for ((_, default, _), (_, value, _)) in MEANINGS.into_iter().zip(nothing.shown()) {
            assert_eq!(default, value);
        }
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        for bad in [
            "auto_approve = \"bash: ls\"",
            "auto_approve = [\"bash: *\"]",
            "auto_approve = [1]",
            "reviewers = [\"otter\"]",
            "reviewers = { \"project\" = [\"otter\"] }",
            "reviewers = { \"/p\" = \"otter\" }",
            "notify_command = \"notify-send {text}\"",
            "notify_command = []",
            "notify_command = [\"{text}\"]",
            "notify_command = [\"sh\", \"-c\", \"echo {text}\"]",
            "notify_bell = \"on\"",
            "notify_terminal = 1",
            "notify_webhook = 8080",
            "notify_webhook = \"http://example.com/\"",
            "notify_mail = []",
        ] {
            let error = read(&format!("[approvals]\n{bad}\n")).unwrap_err();
            assert_eq!(error.code(), Code::ConfigMalformed, "{bad}");
            assert!(error.message().contains("line 2: approvals."), "{}", error.message());
        }
    }

    #[test]
    fn the_questions_of_each_agent_are_held_against_the_rules() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project").display().to_string();
        std::fs::create_dir_all(&project).unwrap();
        let config = home.path().join("config.toml");
        std::fs::write(&config, "[approvals]\nauto_approve = [\"bash: git *\", \"bash: cat *\"]\n").unwrap();
        let guard = Guard::open(crate::Places {
            home: home.path().join("baton"),
            config: Some(config),
            named_config: None,
            user_home: home.path().to_owned(),
            cwd: project.clone().into(),
            env: |_| None,
            now: || baton_core::time::Moment(0),
            patience: std::time::Duration::ZERO,
            aside: |_, _, _| None,
            own_line: |_| baton_core::guard::OwnLine::Unreadable,
        });
        // The shape of each is from a recorded payload.
        let payload = |agent: &str, command: &str| match agent {
            "copilot" => {
                serde_json::json!({"hookName": "permissionRequest", "sessionId": "s", "timestamp": 1, "cwd": project, "toolName": "bash",
                "toolInput": {"command": command}, "permissionSuggestions": []})
            }
            _ => {
                serde_json::json!({"session_id": "s", "transcript_path": "/t", "cwd": project, "hook_event_name": "PermissionRequest",
                "permission_mode": "default", "tool_name": "Bash", "tool_input": {"command": command, "description": "d"}})
            }
        };
        for name in ["claude", "codex", "copilot"] {
            let agent = baton_agents::by_name(name).unwrap();
            let opinion = |command: &str| {
                guard.opinion_of_question(agent, payload(name, command).to_string().as_bytes())
            };
            let permitted = Opinion { why: None, by_rule: Some("bash: git *".to_owned()) };
            assert_eq!(opinion("git status"), permitted, "{name}");
            assert_eq!(opinion("make"), Opinion::default(), "{name}");
            let secret = opinion("cat ~/.ssh/id_rsa");
            let why = secret.why.unwrap_or_else(|| panic!("{name}: the guard says nothing"));
            assert!(why.contains("(baton guard: ") && secret.by_rule.is_none(), "{name}: {why}");
        }
    }

    #[test]
    fn only_numbers_of_this_machine_are_loopback() {
        for good in
            ["http://127.0.0.1", "http://127.0.0.1:9/x", "http://127.9.9.9:80", "http://[::1]:8080/?a=@"]
        {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "https://127.0.0.1:9/",
            "http://localhost:9/",
            "http://127.0.0.1@example.com/",
            "http://example.com:80@127.0.0.1/",
            "http://127.0.0.1:9@example.com/",
            "http://127.0.0.1.example.com/",
            "http://127.0.0.1:x/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:/",
            "http://127.1/",
            "http://0.0.0.0/",
            "http://192.168.0.1/",
            "http://[::1].example.com/",
            "http://[::1]x/",
            "http://::1/",
            "http://[127.0.0.1]/",
            "http://127.0.0.1\\@example.com/",
            "http://127.0.0.1 /",
            "http:///",
            "127.0.0.1:9",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
