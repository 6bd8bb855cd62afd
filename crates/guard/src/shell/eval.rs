//! Walks over a syntax tree and keeps the shell's state at each point.

mod branches;
mod loops;

use super::container::Mount;
use super::parse::{self, Fault, MAX_DEPTH};
use super::syntax::*;
use super::value::{Origin, Value};
use super::{Analysis, Command, Location, Ran, Redirection};
use crate::World;
use crate::path;
use std::collections::HashMap;
use std::rc::Rc;

/// Longest text that is analysed. No person or agent types a longer command.
pub const MAX_TEXT_BYTES: usize = 2 << 20;
/// The most work for one text: bytes read, words expanded, state copied. A step takes about a tenth
/// of a microsecond.
pub const MAX_STEPS: u64 = 400_000;
/// How many commands are kept. A text that runs more is not understood.
const MAX_COMMANDS: usize = 20_000;
/// How many words of an array are kept. A longer array is unknown.
const MAX_ARRAY_WORDS: usize = 4096;

/// What a text would do on this machine.
pub fn analyse(text: &str, world: &dyn World) -> Analysis {
    let mut shell = Shell::new(world);
    if text.len() > MAX_TEXT_BYTES {
        shell.analysis.unknown.push(format!("the command is longer than {MAX_TEXT_BYTES} bytes"));
    } else {
        shell.source(text, &Context::default());
    }
    shell.finish()
}

/// The state that a subshell copies.
#[derive(Clone, Default, PartialEq)]
pub(super) struct ShellState {
    pub(super) variables: HashMap<String, Vec<Value>>,
    pub(super) functions: HashMap<String, Rc<str>>,
    pub(super) aliases: HashMap<String, Rc<str>>,
    pub(super) arguments: Vec<Value>,
    pub(super) cwd: Option<String>,
    pub(super) old_cwd: Option<String>,
    pub(super) folders: Vec<Option<String>>,
    /// Whether `set -x` is on.
    pub(super) traced: bool,
    /// `$0`: the script that runs, as it was called.
    pub(super) called_as: Option<Value>,
}

impl ShellState {
    /// How much work it is to copy the state.
    pub(super) fn size(&self) -> usize {
        let words = |values: &Vec<Value>| {
            values.len() + values.iter().map(|value| value.text.len()).sum::<usize>() / 256
        };
        self.variables.values().map(words).sum::<usize>() + self.functions.len() + self.arguments.len()
    }
}

/// What a command inherits from its position in the text.
#[derive(Clone, Default)]
pub(super) struct Context {
    pub(super) stdin: Option<Rc<Value>>,
    /// Whether the output is used.
    pub(super) wants_output: bool,
    pub(super) captured: bool,
    pub(super) background: bool,
    pub(super) location: Location,
    pub(super) mounts: Option<Rc<[Mount]>>,
    pub(super) traced: bool,
    pub(super) from_file: bool,
    pub(super) in_code: bool,
    pub(super) depth: u32,
}

impl Context {
    pub(super) fn deeper(&self) -> Self {
        Self { depth: self.depth + 1, ..self.clone() }
    }
}

pub(super) struct Shell<'w> {
    pub(super) world: &'w dyn World,
    pub(super) state: ShellState,
    pub(super) analysis: Analysis,
    pub(super) active: Vec<String>,
    /// The functions that run at this point, with the state in which each was called.
    pub(super) called: Vec<(String, ShellState)>,
    /// Copies of the system's programs that the text made, with the programs' names.
    pub(super) programs: HashMap<String, String>,
    /// How often a running function was called again.
    pub(super) recursions: usize,
    pub(super) scripts_read: Vec<String>,
    /// Folders into which something downloaded was unpacked.
    pub(super) fetched: Vec<String>,
    /// What runs when the shell ends, and from where.
    pub(super) traps: Vec<(Value, Context)>,
    /// The state after a `cd` that may fail has failed. It is followed once, with every such `cd`
    /// failing.
    pub(super) failed_cd: Option<ShellState>,
    pub(super) cds_fail: bool,
    /// How many ways lead through the loops around this point, and whether one loop is past its
    /// first value.
    ways: usize,
    is_later: bool,
    /// The variables of those loops.
    looped: Vec<String>,
    stopped: bool,
    /// The work after which the walk stops. Within a file it is less than [`MAX_STEPS`].
    limit: u64,
    /// Other states that a branch may have left behind. What follows is run in each of them too.
    others: Vec<ShellState>,
    forks: usize,
}

impl<'w> Shell<'w> {
    pub(super) fn new(world: &'w dyn World) -> Self {
        let state = ShellState { cwd: Some(path::join("/", &world.cwd())), ..ShellState::default() };
        Self {
            world,
            state,
            analysis: Analysis::default(),
            active: Vec::new(),
            called: Vec::new(),
            programs: HashMap::new(),
            recursions: 0,
            scripts_read: Vec::new(),
            fetched: Vec::new(),
            traps: Vec::new(),
            failed_cd: None,
            cds_fail: false,
            ways: 1,
            is_later: false,
            looped: Vec::new(),
            stopped: false,
            limit: MAX_STEPS,
            others: Vec::new(),
            forks: 0,
        }
    }

    pub(super) fn finish(mut self) -> Analysis {
        self.run_traps(0);
        self.analysis
    }

    /// Counts work; false once there was too much.
    pub(super) fn step(&mut self, steps: usize) -> bool {
        self.analysis.steps += steps as u64;
        if self.stopped {
            return false;
        }
        let too_much = if self.analysis.steps > self.limit {
            format!("the command takes more than {MAX_STEPS} steps to understand")
        } else if self.analysis.commands.len() > MAX_COMMANDS {
            format!("the command runs more than {MAX_COMMANDS} commands")
        } else {
            return true;
        };
        self.stopped = true;
        // In a file that existed before the command, unread text is no reason to ask.
        if self.limit == MAX_STEPS {
            self.analysis.unknown.push(too_much);
        }
        false
    }

    /// Walks over a file that existed before the command. A long file is read only as far as its
    /// share of the work allows, and is no reason to ask.
    pub(super) fn within_file_budget(&mut self, on_disk: bool, walk: impl FnOnce(&mut Self)) {
        if !on_disk || self.stopped {
            walk(self);
            return;
        }
        let before = self.limit;
        let share = (before.saturating_sub(self.analysis.steps)) / 3;
        self.limit = (self.analysis.steps + share).min(MAX_STEPS - 1);
        walk(self);
        self.limit = before;
        self.stopped = self.analysis.steps > before || self.analysis.commands.len() > MAX_COMMANDS;
    }

    pub(super) fn unknown(&mut self, why: impl Into<String>, context: &Context) {
        if !context.from_file && self.analysis.unknown.len() < 16 {
            self.analysis.unknown.push(why.into());
        }
    }

    pub(super) fn ran(&mut self, origin: Origin, by: &str, context: &Context) {
        if context.location != Location::Container && self.analysis.ran.len() < 64 {
            self.analysis.ran.push(Ran { origin, by: by.to_owned(), from_file: context.from_file });
        }
    }

    /// Runs a text in this shell. Returns its output.
    pub(super) fn source(&mut self, text: &str, context: &Context) -> Value {
        if !self.step(text.len() / 16 + 8) {
            return Value::unknown(Origin::Input);
        }
        match parse::parse_at(text, context.depth) {
            Ok(script) => self.list(&script.list, &script.heres, context),
            Err(fault) => {
                let why = match fault {
                    Fault::Size => "the command has more words than are read".to_owned(),
                    Fault::Depth => "the command is nested more than 32 times".to_owned(),
                    Fault::Syntax(why) => format!("the command can't be parsed ({why})"),
                };
                self.unknown(why, context);
                Value::unknown(Origin::Input)
            }
        }
    }

    /// Runs a text that may hold unknown parts, as `sh -c` and `eval` do.
    pub(super) fn source_value(&mut self, text: &Value, by: &str, context: &Context) -> Value {
        if context.depth > MAX_DEPTH {
            self.unknown("the command is nested more than 32 times", context);
            return Value::unknown(Origin::Input);
        }
        if text.is_opaque() || (text.text.trim().is_empty() && !text.holes.is_empty()) {
            for (_, origin) in text.holes.iter().take(8) {
                match origin {
                    Origin::File(path) => self.shell_file(path, by, context),
                    _ => self.ran(origin.clone(), by, context),
                }
            }
            return Value::unknown(Origin::Input);
        }
        if text.holes.is_empty() {
            return self.source(&text.text, context);
        }
        // Unknown parts become variables of which nothing is known.
        let mut spelled = String::with_capacity(text.text.len() + 16 * text.holes.len());
        let mut last = 0;
        for (number, (at, origin)) in text.holes.iter().enumerate() {
            spelled.push_str(text.text.get(last..*at).unwrap_or(""));
            last = *at;
            let name = format!("__unknown_{}_{number}", context.depth);
            spelled.push_str(&format!("${{{name}}}"));
            self.state.variables.insert(name, vec![Value::unknown(origin.clone())]);
        }
        spelled.push_str(text.text.get(last..).unwrap_or(""));
        self.source(&spelled, context)
    }

    /// Runs something on a copy of the state.
    pub(super) fn in_subshell<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        self.step(12 + self.state.size() * 2);
        let saved = self.state.clone();
        let others = std::mem::take(&mut self.others);
        let traps = self.traps.len();
        let result = run(self);
        self.run_traps(traps);
        self.state = saved;
        self.others = others;
        result
    }

    pub(super) fn list(&mut self, list: &List<'_>, heres: &[Here<'_>], context: &Context) -> Value {
        self.items(&list.items, heres, context)
    }

    fn items(&mut self, items: &[Item<'_>], heres: &[Here<'_>], context: &Context) -> Value {
        let mut output = Value::default();
        let mut ends = Vec::new();
        for (number, item) in items.iter().enumerate() {
            if !self.step(4) {
                break;
            }
            let inner = Context { background: context.background || item.background, ..context.clone() };
            let printed = if let [only] = &item.stages[..] {
                self.node(only, heres, &inner)
            } else {
                self.pipeline(&item.stages, heres, &inner)
            };
            if context.wants_output
                && output.text.len() + printed.text.len() <= MAX_TEXT_BYTES
                && output.holes.len() < 256
            {
                output.push(&printed);
            }
            if let Some(failed) = self.failed_cd.take() {
                ends.extend(self.after_failed_cd(failed, items, number, heres, context));
            }
            if !self.others.is_empty() {
                ends.extend(self.in_other_states(items.get(number + 1..).unwrap_or(&[]), heres, context));
            }
        }
        for end in ends {
            self.or_else(end);
        }
        output
    }

    fn pipeline(&mut self, stages: &[Node<'_>], heres: &[Here<'_>], context: &Context) -> Value {
        let mut stdin = context.stdin.clone();
        let mut starts = Vec::with_capacity(stages.len());
        let mut printed = Value::default();
        for (number, stage) in stages.iter().enumerate() {
            let is_last = number + 1 == stages.len();
            starts.push(self.analysis.commands.len());
            let context = Context {
                stdin: stdin.take(),
                wants_output: !is_last || context.wants_output,
                captured: is_last && context.captured,
                ..context.clone()
            };
            printed = if is_last {
                self.node(stage, heres, &context)
            } else {
                self.in_subshell(|shell| shell.node(stage, heres, &context))
            };
            if !is_last {
                stdin = Some(Rc::new(printed.clone()));
            }
        }
        self.note_pipes(&starts);
        printed
    }

    /// Notes for the commands of each stage which stages follow.
    fn note_pipes(&mut self, starts: &[usize]) {
        let end = self.analysis.commands.len();
        let names: Vec<String> = starts
            .iter()
            .map(|start| {
                self.analysis.commands.get(*start).map(|command| command.name.clone()).unwrap_or_default()
            })
            .collect();
        for (number, start) in starts.iter().enumerate() {
            let until = starts.get(number + 1).copied().unwrap_or(end);
            let later = names.get(number + 1..).unwrap_or(&[]);
            if later.is_empty() {
                continue;
            }
            for command in self.analysis.commands.get_mut(*start..until).unwrap_or(&mut []) {
                if command.piped_to.len() < 16 && !command.captured {
                    command.piped_to.extend(later.iter().take(16).cloned());
                    command.piped_at.extend(starts.iter().skip(number + 1).take(16));
                }
            }
        }
    }

    pub(super) fn node(&mut self, node: &Node<'_>, heres: &[Here<'_>], context: &Context) -> Value {
        let redirects: Vec<Redirection> =
            node.redirects.iter().map(|redirect| self.redirection(redirect, heres, context)).collect();
        let mut context = context.clone();
        let mut out_file = None;
        for redirect in &redirects {
            match redirect.op {
                RedirectOp::Read | RedirectOp::ReadWrite if redirect.fd.unwrap_or(0) == 0 => {
                    context.stdin = Some(Rc::new(self.content(&redirect.target)));
                }
                RedirectOp::HereDocument | RedirectOp::HereString if redirect.fd.unwrap_or(0) == 0 => {
                    context.stdin = Some(Rc::new(redirect.target.clone()));
                }
                RedirectOp::Write | RedirectOp::Append | RedirectOp::WriteBoth | RedirectOp::AppendBoth
                    if redirect.fd.unwrap_or(1) == 1 =>
                {
                    out_file = self.absolute(&redirect.target).map(|path| (path, redirect.op));
                    context.wants_output = true;
                }
                // `exec 3< file`, and `sh <&3` later.
                RedirectOp::Read | RedirectOp::ReadWrite => {
                    let content = self.content(&redirect.target);
                    self.write_file(format!("/dev/fd/{}", redirect.fd.unwrap_or(0)), content);
                }
                RedirectOp::Duplicate if redirect.fd.unwrap_or(0) == 0 => {
                    let source = self.analysis.files.get(&format!("/dev/fd/{}", redirect.target.text));
                    context.stdin = source.cloned().map(Rc::new).or(context.stdin);
                }
                _ => {}
            }
        }
        let printed = self.kind(&node.kind, heres, redirects, &context);
        for redirect in node.redirects.iter().filter(|_| out_file.is_some()) {
            self.feed_process(redirect, &printed, heres, &context);
        }
        let Some((file, op)) = out_file else { return printed };
        if !path::is_below(&file, "/dev") {
            let mut content = printed;
            if matches!(op, RedirectOp::Append | RedirectOp::AppendBoth)
                && let Some(before) = self.analysis.files.get(&file)
            {
                let mut whole = before.clone();
                self.step(whole.text.len() / 64);
                whole.push(&content);
                content = whole;
            }
            self.write_file(file, content);
        }
        Value::default()
    }

    /// `> >(sh)`: a command that reads what another one prints.
    fn feed_process(
        &mut self,
        redirect: &Redirect<'_>,
        printed: &Value,
        heres: &[Here<'_>],
        context: &Context,
    ) {
        let Target::Word(Word::Parts(parts)) = &redirect.target else { return };
        let inner =
            Context { stdin: Some(Rc::new(printed.clone())), wants_output: false, ..context.deeper() };
        for part in parts {
            if let Part::Process { list, is_input: false } = part {
                self.in_subshell(|shell| shell.list(list, heres, &inner));
            }
        }
    }

    pub(super) fn write_file(&mut self, path: String, content: Value) {
        if self.analysis.files.len() < 1024 && self.step(content.text.len() / 64 + 4) {
            self.analysis.files.insert(path, content);
        }
    }

    fn kind(
        &mut self,
        kind: &NodeKind<'_>,
        heres: &[Here<'_>],
        redirects: Vec<Redirection>,
        context: &Context,
    ) -> Value {
        if !matches!(kind, NodeKind::Simple { .. }) && !redirects.is_empty() {
            let command = Command {
                redirects: redirects.clone(),
                cwd: self.state.cwd.clone(),
                location: context.location,
                mounts: context.mounts.clone(),
                from_file: context.from_file,
                ..Command::default()
            };
            self.analysis.commands.push(command);
        }
        match kind {
            NodeKind::Simple { assignments, words } => {
                self.simple(assignments, words, redirects, heres, context)
            }
            NodeKind::Group(lists) => {
                let mut output = Value::default();
                for list in lists {
                    output.push(&self.list(list, heres, context));
                }
                output
            }
            NodeKind::If { branches, otherwise } => {
                let mut output = Value::default();
                for (condition, _) in branches {
                    output.push(&self.list(condition, heres, context));
                }
                let bodies: Vec<&List<'_>> =
                    branches.iter().map(|(_, body)| body).chain(otherwise.as_ref()).collect();
                output.push(&self.in_branches(&bodies, heres, context, otherwise.is_none()));
                output
            }
            NodeKind::Subshell(list) => self.in_subshell(|shell| shell.list(list, heres, context)),
            NodeKind::For { name, values, body } => {
                let values = match values {
                    Some(words) => self.words(words, heres, context),
                    None => self.state.arguments.clone(),
                };
                self.in_loop(name, &values, body, heres, context)
            }
            NodeKind::Case { subject, branches } => {
                self.word(subject, heres, context);
                let branches: Vec<&List<'_>> = branches.iter().collect();
                self.in_branches(&branches, heres, context, true)
            }
            NodeKind::Function { name, body } => {
                self.state.functions.insert((*name).to_owned(), Rc::from(*body));
                Value::default()
            }
            NodeKind::Test(words) => {
                for word in words {
                    self.word(word, heres, context);
                }
                Value::default()
            }
        }
    }

    fn redirection(&mut self, redirect: &Redirect<'_>, heres: &[Here<'_>], context: &Context) -> Redirection {
        let target = match &redirect.target {
            Target::Word(word) => self.word(word, heres, context),
            Target::Here(number) => {
                heres.get(*number).map(|here| self.quoted(&here.parts, heres, context)).unwrap_or_default()
            }
        };
        Redirection { fd: redirect.fd, op: redirect.op, target }
    }

    fn simple(
        &mut self,
        assignments: &[Assignment<'_>],
        words: &[Word<'_>],
        redirects: Vec<Redirection>,
        heres: &[Here<'_>],
        context: &Context,
    ) -> Value {
        let argv = self.words(words, heres, context);
        let mut set = Vec::new();
        for assignment in assignments {
            self.subscript(assignment.index, context);
            let mut values = Vec::new();
            if assignment.values.len() == 1 {
                for word in &assignment.values {
                    values.push(self.word(word, heres, context));
                }
            } else {
                values = self.words(&assignment.values, heres, context);
            }
            if assignment.append
                && let Some(before) = self.state.variables.get(assignment.name)
            {
                let mut before = before.clone();
                match (&mut before[..], &values[..]) {
                    ([one], [more]) => one.push(more),
                    _ => before.extend(values),
                }
                values = before;
            }
            let length: usize = values.iter().map(|value| value.text.len() + 16 * value.holes.len()).sum();
            if !self.step(4 + values.len() + length / 64) {
                break;
            }
            if values.len() > MAX_ARRAY_WORDS {
                values = vec![Value::unknown(Origin::Variable(Rc::from(assignment.name)))];
            }
            set.push((assignment.name.to_owned(), values));
        }
        let firsts: Vec<(String, Value)> = set
            .iter()
            .map(|(name, values)| (name.clone(), values.first().cloned().unwrap_or_default()))
            .collect();
        if argv.is_empty() {
            let had_no_words = words.is_empty();
            for (name, values) in set {
                self.prompt_variable(&name, values.first(), context);
                self.state.variables.insert(name, values);
            }
            if !redirects.is_empty() || !firsts.is_empty() {
                let command = Command {
                    assignments: firsts,
                    redirects,
                    cwd: self.state.cwd.clone(),
                    location: context.location,
                    mounts: context.mounts.clone(),
                    from_file: context.from_file,
                    ..Command::default()
                };
                self.analysis.commands.push(command);
            }
            // `< file` alone in a substitution prints the file.
            return match (&context.stdin, had_no_words) {
                (Some(stdin), true) => (**stdin).clone(),
                _ => Value::default(),
            };
        }
        let declares = matches!(
            argv.first().map(|word| word.text.as_str()),
            Some("declare" | "local" | "typeset" | "export" | "readonly")
        );
        if declares {
            self.state.variables.extend(set);
        }
        self.run(argv, firsts, redirects, context)
    }

    /// An absolute path from the current folder, with links that the text made resolved; `None` if
    /// too much of it is unknown.
    pub(super) fn absolute(&self, value: &Value) -> Option<String> {
        let text = value.literal()?;
        if text.is_empty() {
            return None;
        }
        let joined = if path::is_absolute(text) {
            path::join("/", text)
        } else {
            path::join(self.state.cwd.as_deref()?, text)
        };
        Some(joined)
    }

    /// The content of a file, as far as the text shows it.
    pub(super) fn content(&self, file: &Value) -> Value {
        let Some(mut path) = self.absolute(file) else { return Value::unknown(Origin::Input) };
        if path::is_below(&path, "/dev/tcp") || path::is_below(&path, "/dev/udp") {
            return Value::unknown(Origin::Download);
        }
        for _ in 0..4 {
            match self.analysis.links.get(&path) {
                Some(target) => path.clone_from(target),
                None => break,
            }
        }
        let written = self.analysis.files.get(&path).cloned();
        written.unwrap_or_else(|| Value::unknown(Origin::File(Rc::from(path))))
    }
}
