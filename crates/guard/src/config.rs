//! Rule files: a `[guard]` table in TOML. It is checked on load, and an error names its line and
//! column.
//!
//! There are two layers: the person's own file, and the repository's, which may only tighten.
//! [`merge`] keeps that promise, and a property test checks it.

use crate::judge::GuardEvent;
use crate::rules::custom::{Action, Custom};
use crate::rules::{self, Active, LabelledPattern, Params, RuleSet, Unknown};
use std::collections::BTreeMap;
use toml_edit::{Document, Item, Table, TableLike, Value};

/// What one rule file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Rules that are switched on.
    pub enable: Vec<String>,
    /// Rules that are switched off.
    pub disable: Vec<String>,
    /// Parameters, by rule.
    pub params: BTreeMap<String, Params>,
    /// What happens to a command that is not understood.
    pub unknown: Option<Unknown>,
    pub custom: Vec<Custom>,
}

/// What is wrong with a rule file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ConfigError {}

type Loaded<T> = Result<T, ConfigError>;

struct Loader<'t> {
    text: &'t str,
}

/// Reads a rule file. A file without a `[guard]` table says nothing.
pub fn load(text: &str) -> Loaded<Layer> {
    let loader = Loader { text };
    let document = Document::parse(text).map_err(|error| loader.error(error.span(), error.message()))?;
    match document.get("guard") {
        None => Ok(Layer::default()),
        Some(item) => match item.as_table_like() {
            Some(table) => loader.layer(table),
            None => Err(loader.error(item.span(), "guard must be a table")),
        },
    }
}

impl Loader<'_> {
    fn error(&self, span: Option<std::ops::Range<usize>>, message: impl Into<String>) -> ConfigError {
        let at = span.map_or(0, |span| span.start);
        let before = self.text.get(..at).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        ConfigError { line, column, message: message.into() }
    }

    fn layer(&self, table: &dyn TableLike) -> Loaded<Layer> {
        let mut layer = Layer::default();
        for (key, item) in table.iter() {
            match key {
                "enable" => layer.enable = self.rule_ids(item)?,
                "disable" => layer.disable = self.rule_ids(item)?,
                "unknown" => {
                    layer.unknown = Some(match item.as_str() {
                        Some("ask") => Unknown::Ask,
                        Some("deny") => Unknown::Deny,
                        Some("allow") => Unknown::Allow,
                        _ => {
                            return Err(
                                self.error(item.span(), "unknown must be \"ask\", \"deny\" or \"allow\"")
                            );
                        }
                    });
                }
                "rule" => {
                    let Some(tables) = item.as_array_of_tables() else {
                        return Err(self.error(item.span(), "rules are written as [[guard.rule]]"));
                    };
                    for table in tables {
                        let custom = self.custom(table)?;
                        if rules::by_id(&custom.id).is_some()
                            || layer.custom.iter().any(|other| other.id == custom.id)
                        {
                            return Err(self.error(
                                table.get("id").and_then(Item::span),
                                format!("there already is a rule {}", custom.id),
                            ));
                        }
                        layer.custom.push(custom);
                    }
                }
                id => {
                    let span = table.key(id).and_then(toml_edit::Key::span).or_else(|| item.span());
                    let Some(rule) = rules::by_id(id) else {
                        return Err(self.error(span, format!("no such rule or setting: {id}")));
                    };
                    let Some(table) = item.as_table_like() else {
                        return Err(self.error(span, format!("{id} must be a table of parameters")));
                    };
                    layer.params.insert(id.to_owned(), self.params(rule, table)?);
                }
            }
        }
        Ok(layer)
    }

    fn rule_ids(&self, item: &Item) -> Loaded<Vec<String>> {
        let mut ids = Vec::new();
        for value in self.array(item)? {
            match value.as_str().filter(|id| rules::by_id(id).is_some()) {
                Some(id) => ids.push(id.to_owned()),
                None => {
                    return Err(
                        self.error(value.span(), format!("no such rule: {}", value.to_string().trim()))
                    );
                }
            }
        }
        Ok(ids)
    }

    fn array<'i>(&self, item: &'i Item) -> Loaded<Vec<&'i Value>> {
        match item.as_array() {
            Some(array) => Ok(array.iter().collect()),
            None => Err(self.error(item.span(), "this must be a list")),
        }
    }

    /// One text or a list of texts.
    fn texts(&self, item: &Item) -> Loaded<Vec<String>> {
        if let Some(text) = item.as_str() {
            return Ok(vec![text.to_owned()]);
        }
        self.array(item)?
            .into_iter()
            .map(|value| {
                value
                    .as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| self.error(value.span(), "this must be a text"))
            })
            .collect()
    }

    fn text(&self, item: &Item) -> Loaded<String> {
        item.as_str().map(str::to_owned).ok_or_else(|| self.error(item.span(), "this must be a text"))
    }

    fn number(&self, item: &Item) -> Loaded<u64> {
        let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| self.error(item.span(), "this must be a number"))
    }

    fn params(&self, rule: &rules::Rule, table: &dyn TableLike) -> Loaded<Params> {
        let mut params = Params::default();
        for (key, item) in table.iter() {
            if key != "hint" && !rule.parameters.contains(&key) {
                let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
                return Err(self.error(span, format!("{} takes no {key}", rule.id)));
            }
            match key {
                "hint" => params.hint = Some(self.text(item)?),
                "allowPatterns" => params.allow_patterns = self.texts(item)?,
                "allowPaths" => params.allow_paths = self.texts(item)?,
                "protectedBranches" => params.protected_branches = Some(self.texts(item)?),
                "additionalPatterns" => params.additional_patterns = self.patterns(rule, item)?,
                "allowed" => params.allowed = self.texts(item)?,
                "blocked" => params.blocked = self.texts(item)?,
                "thresholdKb" => params.threshold_kb = Some(self.number(item)?),
                "times" => params.times = Some(u32::try_from(self.number(item)?).unwrap_or(u32::MAX)),
                "remote" => params.remote = Some(self.text(item)?),
                "baseBranch" => params.base_branch = Some(self.text(item)?),
                key => return Err(self.error(item.span(), format!("{} takes no {key}", rule.id))),
            }
        }
        Ok(params)
    }

    fn patterns(&self, rule: &rules::Rule, item: &Item) -> Loaded<Vec<LabelledPattern>> {
        let mut patterns = Vec::new();
        for value in self.array(item)? {
            let pattern = match (value.as_str(), value.as_inline_table()) {
                (Some(text), _) => LabelledPattern { text: text.to_owned(), label: text.to_owned() },
                (None, Some(table)) => {
                    let Some(text) = table.get("regex").and_then(Value::as_str) else {
                        return Err(self.error(value.span(), "a pattern needs a regex"));
                    };
                    let label = table.get("label").and_then(Value::as_str).unwrap_or("secret");
                    LabelledPattern { text: text.to_owned(), label: label.to_owned() }
                }
                _ => {
                    return Err(
                        self.error(value.span(), "a pattern is a text, or a table of regex and label")
                    );
                }
            };
            if rule.event == GuardEvent::After
                && let Err(why) = regex_lite::Regex::new(&pattern.text)
            {
                return Err(self.error(value.span(), format!("not a regular expression: {why}")));
            }
            patterns.push(pattern);
        }
        Ok(patterns)
    }

    fn custom(&self, table: &Table) -> Loaded<Custom> {
        let mut custom = Custom {
            id: String::new(),
            action: Action::Deny,
            event: GuardEvent::Before,
            reason: String::new(),
            commands: Vec::new(),
            arguments: Vec::new(),
            paths: Vec::new(),
            effects: Vec::new(),
            tools: Vec::new(),
            agents: Vec::new(),
        };
        let mut has_action = false;
        for (key, item) in table.iter() {
            match key {
                "id" => custom.id = self.text(item)?,
                "reason" => custom.reason = self.text(item)?,
                "command" => custom.commands = self.texts(item)?,
                "argument" => custom.arguments = self.texts(item)?,
                "path" => custom.paths = self.texts(item)?,
                "effect" => {
                    custom.effects = self.texts(item)?;
                    if let Some(effect) = custom.effects.iter().find(|effect| {
                        !matches!(effect.as_str(), "read" | "list" | "write" | "delete" | "execute")
                    }) {
                        return Err(self.error(
                            item.span(),
                            format!("no such effect: {effect} (read, list, write, delete, execute)"),
                        ));
                    }
                }
                "tool" => custom.tools = self.texts(item)?,
                "agent" => custom.agents = self.texts(item)?,
                "event" => {
                    custom.event = match item.as_str() {
                        Some("before") => GuardEvent::Before,
                        Some("after") => GuardEvent::After,
                        Some("stop") => GuardEvent::Stop,
                        _ => {
                            return Err(
                                self.error(item.span(), "event must be \"before\", \"after\" or \"stop\"")
                            );
                        }
                    };
                }
                "decision" => {
                    has_action = true;
                    custom.action = match item.as_str() {
                        Some("allow") => Action::Allow,
                        Some("deny") => Action::Deny,
                        Some("ask") => Action::Ask,
                        Some("note") => Action::Note,
                        _ => {
                            return Err(self.error(
                                item.span(),
                                "decision must be \"allow\", \"deny\", \"ask\" or \"note\"",
                            ));
                        }
                    };
                }
                key => {
                    let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
                    return Err(self.error(span, format!("a rule has no {key}")));
                }
            }
        }
        let lacks = |what: &str| Err(self.error(table.span(), format!("a rule needs {what}")));
        if custom.id.is_empty() {
            return lacks("an id");
        }
        if !has_action {
            return lacks("a decision");
        }
        if custom.reason.is_empty() && custom.action != Action::Allow {
            return lacks("a reason");
        }
        let can = match custom.event {
            GuardEvent::Before => true,
            // A call that has run can't be asked about. A turn that ends is either kept going or
            // not.
            GuardEvent::After => matches!(custom.action, Action::Deny | Action::Note),
            GuardEvent::Stop => custom.action == Action::Deny,
        };
        if !can {
            let event = custom.event.as_str();
            let words = if custom.event == GuardEvent::Stop { "\"deny\"" } else { "\"deny\" or \"note\"" };
            return Err(self.error(
                table.get("decision").and_then(Item::span),
                format!("a rule of the event {event} can only {words}"),
            ));
        }
        if custom.event == GuardEvent::Stop {
            if custom.names_call() {
                let why = "at the end of a turn there is no command, path or tool to match";
                return Err(self.error(table.span(), why));
            }
            return Ok(custom);
        }
        if !custom.names_call() {
            return lacks("something to match: command, argument, path, effect or tool");
        }
        Ok(custom)
    }
}

/// The merged rules, and what of the repository's file has no effect.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub rules: RuleSet,
    /// What the repository's file tried to loosen, one line each.
    pub ignored: Vec<String>,
}

/// Merges the person's own layer with those that may only tighten: the file that the environment
/// names, and the repository's. Each of them may switch rules on, protect more, look for more, and
/// add rules that deny, ask or note. Anything in them that would loosen is left out.
pub fn merge(user: &Layer, tightening: &[Layer]) -> Merged {
    let mut ignored = Vec::new();
    let mut active = Vec::new();
    for rule in rules::all() {
        let is = |list: &[String]| list.iter().any(|id| id == rule.id);
        let by_user = if is(&user.disable) {
            false
        } else {
            rule.on || is(&user.enable) || user.params.contains_key(rule.id)
        };
        let by_others = tightening.iter().any(|layer| is(&layer.enable));
        if tightening.iter().any(|layer| is(&layer.disable)) {
            ignored.push(format!("disable {}: only the person's own file can switch rules off", rule.id));
        }
        if !by_user && !by_others {
            continue;
        }
        let own = user.params.get(rule.id).cloned().unwrap_or_default();
        let theirs = tightening.iter().filter_map(|layer| layer.params.get(rule.id));
        let params = theirs.fold(own, |own, theirs| tighten(rule.id, own, theirs, &mut ignored));
        active.push(Active { rule, params });
    }
    let mut custom = user.custom.clone();
    for rule in tightening.iter().flat_map(|layer| &layer.custom) {
        if rule.action == Action::Allow {
            ignored.push(format!("rule {}: only the person's own file can allow", rule.id));
        } else if custom.iter().any(|other| other.id == rule.id) {
            let mut renamed = rule.clone();
            renamed.id = format!("repository:{}", rule.id);
            custom.push(renamed);
        } else {
            custom.push(rule.clone());
        }
    }
    let mut unknown = user.unknown.unwrap_or_default();
    for theirs in tightening.iter().filter_map(|layer| layer.unknown) {
        unknown = match (unknown, theirs) {
            (_, Unknown::Deny) | (Unknown::Deny, _) => Unknown::Deny,
            (Unknown::Allow, Unknown::Ask) => Unknown::Ask,
            (Unknown::Ask, Unknown::Allow) => {
                ignored.push("unknown = \"allow\": only the person's own file can loosen".to_owned());
                Unknown::Ask
            }
            (own, _) => own,
        };
    }
    Merged { rules: RuleSet { rules: active, custom, unknown }, ignored }
}

fn tighten(id: &str, mut own: Params, theirs: &Params, ignored: &mut Vec<String>) -> Params {
    if !theirs.allow_patterns.is_empty() || !theirs.allow_paths.is_empty() {
        ignored.push(format!("{id}: only the person's own file can allow patterns and paths"));
    }
    if let Some(branches) = &theirs.protected_branches {
        let mut all =
            own.protected_branches.take().unwrap_or_else(|| vec!["main".to_owned(), "master".to_owned()]);
        all.extend(branches.iter().filter(|branch| !all.contains(branch)).cloned().collect::<Vec<_>>());
        own.protected_branches = Some(all);
    }
    own.additional_patterns.extend(theirs.additional_patterns.iter().cloned());
    own.blocked.extend(theirs.blocked.iter().cloned());
    if own.allowed.is_empty() {
        own.allowed.clone_from(&theirs.allowed);
    }
    own.threshold_kb = match (own.threshold_kb, theirs.threshold_kb) {
        (own, Some(theirs)) => Some(own.unwrap_or(1024).min(theirs)),
        (own, None) => own,
    };
    own.times = match (own.times, theirs.times) {
        (own, Some(theirs)) => Some(own.unwrap_or(3).min(theirs)),
        (own, None) => own,
    };
    own.hint = match (own.hint, &theirs.hint) {
        (Some(own), Some(theirs)) => Some(format!("{own} {theirs}")),
        (own, theirs) => own.or_else(|| theirs.clone()),
    };
    own.remote = own.remote.or_else(|| theirs.remote.clone());
    own.base_branch = own.base_branch.or_else(|| theirs.base_branch.clone());
    own
}

/// The parameters of a rule from JSON, as `guard check --params` takes them. Unknown ones are
/// ignored.
pub fn params_of(json: &serde_json::Value) -> Params {
    use serde_json::Value;
    let texts = |key: &str| -> Vec<String> {
        let values = json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or(&[]);
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    let patterns = json.get("additionalPatterns").and_then(Value::as_array).map(Vec::as_slice).unwrap_or(&[]);
    Params {
        allow_patterns: texts("allowPatterns"),
        allow_paths: texts("allowPaths"),
        protected_branches: json.get("protectedBranches").map(|_| texts("protectedBranches")),
        additional_patterns: patterns
            .iter()
            .filter_map(|pattern| match pattern {
                Value::String(text) => Some(LabelledPattern { text: text.clone(), label: text.clone() }),
                pattern => {
                    let text = pattern.get("regex")?.as_str()?.to_owned();
                    let label = pattern.get("label").and_then(Value::as_str).unwrap_or("secret").to_owned();
                    Some(LabelledPattern { text, label })
                }
            })
            .collect(),
        allowed: texts("allowed"),
        blocked: texts("blocked"),
        threshold_kb: json.get("thresholdKb").and_then(Value::as_u64),
        times: json.get("times").and_then(Value::as_u64).and_then(|times| u32::try_from(times).ok()),
        remote: text("remote"),
        base_branch: text("baseBranch"),
        hint: text("hint"),
    }
}
