//! A question on the person's own terminal, and the keys that answer it.
//!
//! It shows one question at a time. What the keys do is decided in `baton_core::approval::keys`,
//! and an answer goes the way of `baton approve`: only the person's counts, only for what was
//! shown, and it is reported once it took effect. If this process is killed, the question goes on
//! waiting.

use super::CommandContext;
use super::approve::{Extent, answer_shown, in_full};
use super::notices::Notices;
use crate::environment;
use crate::keys::Keys;
use crate::print::{Out, Text, Tone, stderr_is_terminal, text};
use baton_approvals::inbox::{self, Pending};
use baton_core::approval::keys::{self, KeyStep, Shown};
use baton_core::approval::{Answer, Digest, State, in_one_line};
use baton_core::rights::Caller;
use baton_core::{Code, Error, limits};
use baton_jobs::{Runtime, describe};
use baton_mail::caller;
use baton_mail::identity::Identity;
use baton_store::JobRow;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The lines that are left for what comes below a question.
const LINES_BELOW: usize = 4;
/// How often an open question is looked at without a key or a bell: whether the terminal is still
/// there.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A person who waited this long may be looking at something else.
const END_NOTICE_AFTER: Duration = Duration::from_secs(10);
/// The longest reason or answer that is typed here.
const TYPED_CHARS: usize = 4000;
/// The reason of a person that gives none.
pub const NO_REASON: &str = "the person said no";

/// Whether questions have short numbers, by which the person picks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Shown,
    None,
}

/// The questions of one terminal.
pub struct Asking<'a> {
    host: &'a Runtime,
    context: &'a CommandContext,
    out: Out,
    me: Identity,
    keys: Option<Keys>,
    screen: Option<OnScreen>,
    /// The number of a question is its place here.
    seen: Vec<String>,
    numbers: Numbers,
    /// The question that the person picked.
    picked: Option<String>,
    /// The questions whose end was said here.
    told: Vec<String>,
    notices: Notices,
}

/// The question that is shown.
struct OnScreen {
    pending: Pending,
    digest: Digest,
    shown: Shown,
    mode: Mode,
}

/// What the next keys are.
enum Mode {
    /// One of the keys that are offered.
    Choose,
    /// Yes to the exact rule, or anything else.
    Confirm,
    /// The reason for a no, up to Enter.
    Reason(String),
    /// The answer in words.
    Words(String),
    /// The number of a question, or the beginning of its id.
    Pick(String),
}

impl<'a> Asking<'a> {
    /// `None` if questions are not to be asked here: it is no terminal, a program reads the output,
    /// or the caller is not the person.
    pub fn of_person(
        context: &'a CommandContext,
        host: &'a Runtime,
        out: Out,
        numbers: Numbers,
    ) -> Result<Option<Self>, Error> {
        if out.is_json() || !stderr_is_terminal() {
            return Ok(None);
        }
        let mut store = context.store()?;
        let me = context.identity(&mut store)?;
        if caller::of(&me.kind, &environment::get) != Caller::Person {
            return Ok(None);
        }
        let (keys, screen, picked) = (None, None, None);
        let (seen, told) = (Vec::new(), Vec::new());
        let notices = Notices::new(host, out);
        Ok(Some(Self { host, context, out, me, keys, screen, seen, numbers, picked, told, notices }))
    }

    /// Whether a question is on the screen.
    pub fn is_open(&self) -> bool {
        self.screen.is_some()
    }

    /// Whether one of these would be put on the screen.
    pub fn would_ask(&self, waiting: &[Pending]) -> bool {
        waiting.iter().any(|one| self.may_ask(one))
    }

    /// Whether a question can be put on the screen. What was answered a moment ago may still be in
    /// the list that the caller has read before.
    fn may_ask(&self, one: &Pending) -> bool {
        is_answerable(one) && !self.told.contains(&one.id())
    }

    /// Whether the end of a question was said here, or will be at the next look.
    pub fn has_told(&self, one: &Pending) -> bool {
        let is_shown = self.screen.as_ref().is_some_and(|screen| screen.pending.id() == one.id());
        is_shown || self.told.contains(&one.id())
    }

    /// What ends a sleep.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.keys.as_ref().and_then(Keys::fd)
    }

    /// The longest sleep.
    pub fn longest(&self) -> Duration {
        if self.is_open() || self.notices.is_due_soon() {
            LOOK_INTERVAL
        } else {
            limits::SWEEP_INTERVAL.to_std()
        }
    }

    /// Notifies the person that jobs have ended that were waited for since `began`.
    pub fn tell_ends(&self, rows: &[JobRow], began: Instant) {
        let ended: Vec<&JobRow> = rows.iter().filter(|row| row.status.is_end()).collect();
        if began.elapsed() >= END_NOTICE_AFTER {
            self.notices.tell_ends(&ended);
        }
    }

    /// Says that a job has ended that the person started and that is not waited for here.
    pub fn job_ended(&mut self, row: &JobRow) {
        if self.is_open() {
            self.out.prompt("\n");
        }
        let took = describe::elapsed(row).coarse();
        let id = self.out.tone(Tone::Bold, row.id.as_str());
        self.out.say(text![id, format_args!(" ({}) {} after {took}", row.agent, row.status)]);
        self.prompt();
        self.notices.tell_ends(&[row]);
    }

    /// Compares what is on the screen with what waits now, and shows the next question.
    pub fn look(&mut self, waiting: &[Pending]) {
        for one in waiting {
            if !self.seen.contains(&one.id()) {
                self.seen.push(one.id());
                self.notices.question_came();
                self.comes_meanwhile(one);
            }
        }
        self.notices.tell_questions(waiting);
        self.drop_what_is_over(waiting);
        if self.screen.is_none() {
            let may_ask = |one: &&Pending| self.may_ask(one);
            let picked = waiting.iter().find(|one| Some(one.id()) == self.picked).filter(may_ask);
            let next = picked.or_else(|| waiting.iter().find(may_ask));
            if let Some(next) = next {
                self.ask(next.clone());
            }
        }
    }

    /// Takes the question off the screen if it waits no more, and says how it ended.
    fn drop_what_is_over(&mut self, waiting: &[Pending]) {
        let still = |screen: &OnScreen| {
            let is_same = |one: &&Pending| {
                one.id() == screen.pending.id()
                    && one.digest().as_ref() == Some(&screen.digest)
                    && is_answerable(one)
            };
            waiting.iter().any(|one| is_same(&one))
        };
        if self.screen.as_ref().is_some_and(|screen| !still(screen)) {
            self.is_over();
        }
    }

    /// The waiting is over: no question is shown any more. One that goes on waiting can be answered
    /// by its id.
    pub fn end(&mut self, waiting: &[Pending]) {
        self.drop_what_is_over(waiting);
        let left = self.screen.as_ref().map(|screen| screen.pending.id());
        self.close();
        if let Some(id) = left {
            self.out
                .say(self.out.tone(Tone::Dim, &format!("its question goes on waiting: baton approve {id}")));
        }
    }

    /// Another question came while one is on the screen. The keys go on meaning that one.
    fn comes_meanwhile(&mut self, one: &Pending) {
        if self.numbers == Numbers::None || self.screen.is_none() {
            return;
        }
        self.out.prompt("\n");
        self.out.say(self.head(one));
        self.prompt();
    }

    /// One line about a question.
    pub fn head(&self, one: &Pending) -> Text {
        let where_else = match one.state() {
            State::Terminal => "  (its own terminal takes the answer)",
            _ => "",
        };
        text![
            self.out.tone(Tone::Bold, &self.number(&one.id())),
            format_args!("{} ({}): {}", one.who(), one.agent(), one.line().text),
            where_else
        ]
    }

    fn number(&self, id: &str) -> String {
        number(self.numbers, &self.seen, id)
    }

    fn ask(&mut self, pending: Pending) {
        // In the background there is no keyboard. It is asked when that changes.
        let (Some(keys), Some(digest)) = (Keys::open(), pending.digest()) else { return };
        let (rows, columns) = keys.size();
        let text = in_full(&self.out, &pending, Extent::ForPerson);
        let fits = text.height(columns) + LINES_BELOW <= rows;
        let is_whole = fits || pending.line().is_whole;
        let number = self.out.tone(Tone::Bold, &self.number(&pending.id()));
        if fits {
            self.out.insist(text![number, text]);
        } else {
            self.out.insist(text![
                number,
                format_args!("{} ({}) in ", pending.who(), pending.agent()),
                in_one_line(pending.cwd()),
                ":"
            ]);
            self.out.insist(text!["    ", pending.line().text]);
        }
        let shown = if is_whole { Shown::Whole } else { Shown::Part };
        self.keys = Some(keys);
        self.screen = Some(OnScreen { pending, digest, shown, mode: Mode::Choose });
        self.prompt();
    }

    /// Shows what the keys do. Only keys that are pressed from now on count.
    fn prompt(&mut self) {
        let (Some(screen), Some(keys)) = (&self.screen, &mut self.keys) else { return };
        let words = match &screen.mode {
            Mode::Choose => {
                let offered = keys::offered(screen.pending.question(), screen.shown);
                match (self.numbers, self.seen.len()) {
                    (Numbers::Shown, 2..) => format!("{offered} [/] another one "),
                    _ => offered,
                }
            }
            Mode::Confirm => "allow that from now on? [y/N] ".to_owned(),
            Mode::Reason(typed) => format!("why not? (Enter: no reason, Esc: back) {typed}"),
            Mode::Words(typed) => format!("your answer: (Esc: back) {typed}"),
            Mode::Pick(typed) => format!("which one, by its number or id? (Esc: back) {typed}"),
        };
        let number = number(self.numbers, &self.seen, &screen.pending.id());
        self.out.prompt(text![number, words]);
        keys.drawn();
    }

    /// Handles what was typed.
    pub fn take_keys(&mut self) {
        let (Some(screen), Some(keys)) = (&mut self.screen, &mut self.keys) else { return };
        if keys.is_lost() {
            self.close();
            return;
        }
        if keys.was_suspended() {
            self.out.prompt("\n");
            self.prompt();
            return;
        }
        match screen.mode {
            Mode::Choose => {
                if let Some(key) = keys.pressed() {
                    self.choose(key);
                }
            }
            Mode::Confirm => match keys.pressed() {
                Some('y' | 'Y') => {
                    self.out.prompt("yes\n");
                    self.give(Answer::AllowAlways);
                }
                Some(_) => self.back_to_keys("nothing was answered"),
                None => {}
            },
            Mode::Reason(_) | Mode::Words(_) | Mode::Pick(_) => {
                let typed = keys.typed();
                let last = typed.len().saturating_sub(1);
                for (at, c) in typed.into_iter().enumerate() {
                    // Inside of a paste, the end of a line is no Enter.
                    let c = if at < last && matches!(c, '\n' | '\r') { ' ' } else { c };
                    if !self.edit(c) {
                        break;
                    }
                }
            }
        }
    }

    /// Goes back to the keys that are offered, with a word about why.
    fn back_to_keys(&mut self, why: &str) {
        if let Some(screen) = &mut self.screen {
            screen.mode = Mode::Choose;
        }
        self.out.prompt(text![why.to_owned(), "\n"]);
        self.prompt();
    }

    fn choose(&mut self, key: char) {
        let Some(screen) = &mut self.screen else { return };
        if self.numbers == Numbers::Shown && (key == '/' || key.is_ascii_digit()) {
            let typed = Some(key).filter(char::is_ascii_digit).map(String::from).unwrap_or_default();
            screen.mode = Mode::Pick(typed);
            self.out.prompt("\n");
            self.prompt();
            return;
        }
        match keys::step(key, screen.pending.question(), screen.shown) {
            KeyStep::Allow => {
                self.out.prompt("yes\n");
                self.give(Answer::Allow);
            }
            KeyStep::TakeReason => self.begin(Mode::Reason(String::new())),
            KeyStep::TakeWords => self.begin(Mode::Words(String::new())),
            KeyStep::ShowAll => self.show_all(Mode::Choose),
            KeyStep::ConfirmAlways => self.show_all(Mode::Confirm),
            KeyStep::Refuse(why) => self.back_to_keys(why),
            KeyStep::Nothing => {}
        }
    }

    fn begin(&mut self, mode: Mode) {
        if let Some(screen) = &mut self.screen {
            screen.mode = mode;
        }
        self.out.prompt("\n");
        self.prompt();
    }

    /// Shows everything. What comes next may be a yes to the rule, so that is shown last.
    fn show_all(&mut self, next: Mode) {
        let Some(screen) = &mut self.screen else { return };
        self.out.prompt("\n");
        self.out.insist(in_full(&self.out, &screen.pending, Extent::ForPerson));
        if let (Mode::Confirm, Some(rule)) = (&next, screen.pending.question().subject.always()) {
            self.out.insist(format!("this allows from now on: {}", in_one_line(rule)));
        }
        screen.shown = Shown::Whole;
        screen.mode = next;
        self.prompt();
    }

    /// One character of a line. Returns whether more of it may follow.
    fn edit(&mut self, c: char) -> bool {
        let Some(OnScreen { mode: Mode::Reason(typed) | Mode::Words(typed) | Mode::Pick(typed), .. }) =
            &mut self.screen
        else {
            return false;
        };
        match c {
            '\n' | '\r' => {
                self.out.prompt("\n");
                self.line_is_typed();
                return false;
            }
            '\u{1b}' => {
                self.back_to_keys("");
                return false;
            }
            '\u{8}' | '\u{7f}' => {
                if typed.pop().is_some() {
                    self.out.rub_out();
                }
            }
            // Ctrl-U.
            '\u{15}' => {
                for _ in 0..typed.chars().count() {
                    self.out.rub_out();
                }
                typed.clear();
            }
            c if c.is_control() || typed.chars().count() >= TYPED_CHARS => {}
            c => {
                typed.push(c);
                self.out.prompt(c.to_string());
            }
        }
        true
    }

    fn line_is_typed(&mut self) {
        let Some(screen) = &mut self.screen else { return };
        match std::mem::replace(&mut screen.mode, Mode::Choose) {
            Mode::Reason(typed) => {
                let reason = if typed.trim().is_empty() { NO_REASON } else { typed.trim() };
                self.give(Answer::Deny(reason.to_owned()));
            }
            Mode::Words(typed) if typed.trim().is_empty() => self.back_to_keys("nothing was answered"),
            Mode::Words(typed) => self.give(Answer::Words(typed)),
            Mode::Pick(typed) => self.pick(typed.trim()),
            Mode::Choose | Mode::Confirm => {}
        }
    }

    /// Puts another question on the screen at the next look, by its number or by the beginning of
    /// its id.
    fn pick(&mut self, typed: &str) {
        let number: Option<usize> = typed.trim_start_matches('#').parse().ok();
        let by_number = number.and_then(|number| self.seen.get(number.checked_sub(1)?));
        let mut by_id = self.seen.iter().filter(|id| typed.len() > 1 && id.starts_with(typed));
        let found = by_number.cloned().or_else(|| by_id.next().filter(|_| by_id.next().is_none()).cloned());
        match found {
            Some(found) => {
                self.picked = Some(found);
                self.screen = None;
                self.keys = None;
            }
            None => self.back_to_keys("no question is meant by that"),
        }
    }

    /// Gives the answer, for what is on the screen.
    fn give(&mut self, answer: Answer) {
        let Some(screen) = self.screen.take() else { return };
        // The keyboard stays quiet until the answer took effect.
        let keys = self.keys.take();
        let given = self.context.store().and_then(|store| {
            answer_shown(self.host, &store, &self.me, &screen.pending, &screen.digest, &answer)
        });
        drop(keys);
        match given {
            Ok(effect) => {
                let tone = if effect.state == State::Denied { Tone::Warn } else { Tone::Good };
                let word = self.out.tone(tone, effect.state.as_str());
                self.told.push(screen.pending.id());
                self.out.say(text![
                    self.number(&screen.pending.id()),
                    word,
                    ": ",
                    screen.pending.line().text
                ]);
            }
            Err(error) if error.code() == Code::AlreadyAnswered => {
                self.told.push(screen.pending.id());
                self.say_end(&screen.pending);
            }
            Err(error) => {
                let hint = error.hint_text().map(|hint| format!(" ({hint})")).unwrap_or_default();
                self.out.say(text![
                    self.out.tone(Tone::Bad, "not done"),
                    format_args!(": {}{hint}", error.message())
                ]);
            }
        }
    }

    /// The question on the screen waits no more.
    fn is_over(&mut self) {
        self.out.prompt("\n");
        self.keys = None;
        if let Some(screen) = self.screen.take() {
            self.told.push(screen.pending.id());
            self.say_end(&screen.pending);
        }
    }

    /// Says how a question ended that was not answered here.
    pub fn say_end(&self, pending: &Pending) {
        let end = inbox::end_of(self.host, pending).ok().flatten();
        let by =
            end.as_ref().and_then(|end| end.by.as_deref()).map(|by| format!(" by {by}")).unwrap_or_default();
        let words = match end.map(|end| end.state) {
            Some(state @ (State::Approved | State::Denied | State::Replied)) => {
                format!("answered meanwhile{by}: {state}")
            }
            Some(State::Answered | State::Handed) => format!("answered meanwhile{by}"),
            Some(State::Gone) => "it has ended, and waits for no answer any more".to_owned(),
            Some(State::Terminal) => "its own terminal takes the answer now".to_owned(),
            _ => "it does not ask that any more".to_owned(),
        };
        let what = pending.line().text;
        self.out.say(text![self.number(&pending.id()), self.out.tone(Tone::Dim, &words), ": ", what]);
    }

    /// Takes the question off the screen. It goes on waiting.
    pub fn close(&mut self) {
        self.keys = None;
        if self.screen.take().is_some() {
            self.out.prompt("\n");
        }
    }
}

/// The number of a question, as it is shown before its words.
fn number(numbers: Numbers, seen: &[String], id: &str) -> String {
    let at = seen.iter().position(|seen| seen == id).filter(|_| numbers == Numbers::Shown);
    at.map(|at| format!("[{}] ", at + 1)).unwrap_or_default()
}

fn is_answerable(one: &Pending) -> bool {
    one.state() == State::Waiting && one.digest().is_some()
}
