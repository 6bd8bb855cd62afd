//! `doctor`: checks, each pass, note, warn or fail, with what to do. Here are those of baton itself; those of the agents are in `agents`, those of jobs in `jobs`.

mod agents;
mod approvals;
mod check;
mod jobs;
mod programs;

use super::Session;
use crate::gate;
use crate::print::Out;
use crate::settings::Settings;
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::frame::shown as shown_name;
use baton_core::wake::Outcome;
use baton_core::{Error, limits};
use baton_gate::log::UNJUDGED;
use baton_gate::policy::Mode;
use baton_mail::wake::{self, Outlook, Wish};
use baton_mail::{directory, unknown};
use baton_store::{Heard, Role, Store};
use check::{Block, Check, Verdict};
use clap::Args;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Unknown names of one agent that are shown one by one.
const UNKNOWN_SHOWN: usize = 20;
/// What is shown of the last line of the hooks' log.
const LOG_LINE_CHARS: usize = 300;
/// What is shown of a field of the guard's log.
const FIELD_CHARS: usize = 60;
const UNKNOWN_HINT: &str =
    "a newer baton may know it; `baton doctor --fix` forgets it until it is seen again";

// `baton doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Repair what can be repaired without touching other programs' files
    #[arg(long)]
    fix: bool,
}

/// How each running session can be woken, or why not and what to do about it.
fn wakes(session: &Session) -> Vec<Check> {
    let Ok(rules) = session.limits() else { return Vec::new() };
    if !Store::path(&session.home).exists() {
        return Vec::new();
    }
    let wish = Wish { home: &session.home, rules: &rules, wanted: true, by_hand: false };
    let looked = Store::open(&session.home, Role::Command).and_then(|mut store| {
        let mut checks = Vec::new();
        for who in directory::who(&mut store, None, false)? {
            let Ok(agent) = baton_agents::by_name(&who.agent) else { continue };
            let outlook = wake::outlook(&store, &who, &wish)?;
            checks.push(wakeable(agent, &who.name, &outlook));
        }
        Ok(checks)
    });
    looked.unwrap_or_default()
}

fn wakeable(agent: &dyn Agent, name: &str, outlook: &Outlook) -> Check {
    let why = outlook.outcome.meaning();
    match (outlook.outcome, outlook.routes.first()) {
        (Outcome::NoRoute, _) | (Outcome::NoClient, _) | (Outcome::Unconfirmed, _) => {
            Check::new("wake", Verdict::Note, format!("{name}: {why}")).hint(agent.facts().wakeable)
        }
        (_, Some(route)) => Check::new("wake", Verdict::Pass, format!("{name}: by {}", route.as_str())),
        (_, None) => Check::new("wake", Verdict::Pass, format!("{name}: {why}")),
    }
}

impl Doctor {
    /// Checks everything; exit 1 if one check fails.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut checks = vec![self.home(&session.home)];
        let mut heard = Vec::new();
        checks.extend(self.store(session, &mut heard));
        checks.push(settings(session));
        checks.extend(wakes(session));
        checks.push(guard(session));
        checks.push(hook_log(&session.home));
        checks.push(server(&session.home));
        let mut blocks = vec![
            Block { title: "baton", agent: None, checks, absent: false },
            Block { title: "jobs", agent: None, checks: jobs::checks(session, self.fix), absent: false },
            Block { title: "approvals", agent: None, checks: approvals::checks(session), absent: false },
        ];
        blocks.extend(agents::blocks(session, &heard, |agent| self.unknown(&session.home, agent)));
        let document: Vec<Value> = blocks.iter().flat_map(Block::documents).collect();
        out.data(&Value::Array(document), || check::shown(*out, &blocks))?;
        Ok(if blocks.iter().any(Block::fails) { Exit::Failed } else { Exit::Done })
    }

    fn home(&self, home: &Path) -> Check {
        let Ok(metadata) = std::fs::metadata(home) else {
            return Check::new("home", Verdict::Warn, format!("{} does not exist yet", home.display()))
                .hint("it is made when it is first needed");
        };
        if self.fix {
            // The check right below says whether it worked.
            std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700)).ok();
            remove_drafts(home);
        }
        let mode = std::fs::metadata(home).unwrap_or(metadata).permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            Check::new("home", Verdict::Pass, format!("{} ({mode:o})", home.display()))
        } else {
            let detail = format!("{} can be entered by others ({mode:o})", home.display());
            Check::new("home", Verdict::Fail, detail).hint("baton doctor --fix")
        }
    }

    /// What the agent said to our hooks that no table knows, one row for each name.
    fn unknown(&self, home: &Path, agent: &dyn Agent) -> Vec<Check> {
        if self.fix {
            // What could not be forgotten is shown.
            unknown::forget(home, agent).ok();
        }
        let (names, full) = unknown::list(home, agent);
        let check = |detail: String| Check::new("unknown", Verdict::Warn, detail).hint(UNKNOWN_HINT);
        let mut checks: Vec<Check> = names
            .iter()
            .take(UNKNOWN_SHOWN)
            .map(|unknown| {
                let name = shown_name(&unknown.name, limits::UNKNOWN_NAME_BYTES);
                let day = unknown.seen.to_rfc3339();
                let day = day.split('T').next().unwrap_or(&day);
                check(format!("{} {name}, seen on {day}", unknown.what.as_str()))
            })
            .collect();
        if names.len() > UNKNOWN_SHOWN || full {
            let least = if full { "at least " } else { "" };
            checks.push(check(format!("{least}{} more", names.len().saturating_sub(UNKNOWN_SHOWN))));
        }
        checks
    }

    fn store(&self, session: &Session, heard: &mut Vec<Heard>) -> Vec<Check> {
        if !Store::path(&session.home).exists() {
            let check = Check::new("store", Verdict::Warn, "there is none yet");
            return vec![check.hint("it is made when it is first needed")];
        }
        let mut store = match Store::open(&session.home, Role::Command) {
            Ok(store) => store,
            Err(error) => return vec![Check::error("store", Verdict::Fail, &error)],
        };
        if self.fix {
            let rules = session.limits().unwrap_or_default();
            // What it could not do, the checks below show.
            store.upkeep(&rules, baton_mail::now()).ok();
            store.tidy();
        }
        let mut checks = vec![match store.check() {
            Ok(()) => {
                let (messages, sessions) = store.counts().unwrap_or_default();
                let detail = format!("sound; {messages} messages, {sessions} sessions");
                Check::new("store", Verdict::Pass, detail)
            }
            Err(error) => Check::error("store", Verdict::Fail, &error),
        }];
        let wal = store.wal_bytes();
        let detail = format!("{} KiB wait to be folded in", wal >> 10);
        checks.push(if wal > 4 * limits::WAL_BYTES_HOOK {
            Check::new("store log", Verdict::Warn, detail).hint("baton doctor --fix")
        } else {
            Check::new("store log", Verdict::Pass, detail)
        });
        if let Ok(here) = directory::who(&mut store, None, false) {
            checks.push(Check::new("sessions", Verdict::Pass, format!("{} known and not gone", here.len())));
        }
        // Without it, what was heard of the agents is not shown; the check above says why.
        *heard = store.heard().unwrap_or_default();
        checks
    }
}

fn remove_drafts(home: &Path) {
    let Ok(entries) = std::fs::read_dir(home) else { return };
    for entry in entries.flatten() {
        let old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 60));
        if old && entry.file_name().to_string_lossy().starts_with(".baton.db.") {
            // A draft of a store whose maker was killed; it may be gone by now.
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

fn settings(session: &Session) -> Check {
    match Settings::load(&session.cwd) {
        Ok(_) => Check::new("settings", Verdict::Pass, "readable"),
        Err(error) => Check::error("settings", Verdict::Fail, &error),
    }
}

/// Whether tool calls are judged, and what came of it.
fn guard(session: &Session) -> Check {
    let policy = match gate::open(&session.home).policy(&session.cwd) {
        Ok(policy) => policy,
        Err(error) => return Check::error("guard", Verdict::Fail, &error),
    };
    if policy.settings.mode.value == Mode::Off {
        return Check::new("guard", Verdict::Note, "off: tool calls are not judged")
            .hint("guard.mode = \"on\" in your config.toml, then `baton setup`");
    }
    let log = baton_gate::log::last(&session.home, usize::MAX);
    let unjudged = log.iter().filter(|entry| entry["decision"] == UNJUDGED).count();
    let failed = log.iter().filter(|entry| entry["rule"] == "").count() - unjudged;
    let last = log.last().map_or_else(String::new, |entry| {
        let text = |key: &str| shown_name(entry[key].as_str().unwrap_or_default(), FIELD_CHARS);
        format!("; last {} by {} in {}, {}", text("decision"), text("rule"), text("agent"), text("at"))
    });
    if let Some(ignored) = policy.ignored.first() {
        let more = policy.ignored.len();
        return Check::new(
            "guard",
            Verdict::Warn,
            format!("on; {more} wishes of a file that may only tighten are passed over"),
        )
        .hint(shown_name(ignored, LOG_LINE_CHARS));
    }
    if unjudged > 0 {
        let detail = format!("on; {unjudged} calls ran without having been judged{last}");
        return Check::new("guard", Verdict::Warn, detail)
            .hint("their hooks failed, took too long, or were not in force; `baton guard log` shows when");
    }
    let held = policy.settings.on_failure.value.as_str();
    let detail = format!("on; what can't be judged: {held}; {} decisions logged{last}", log.len());
    if failed > 0 {
        return Check::new("guard", Verdict::Warn, format!("{failed} calls could not be judged; {detail}"))
            .hint("hook.log in the home says why");
    }
    Check::new("guard", Verdict::Pass, detail)
}

fn hook_log(home: &Path) -> Check {
    let text = std::fs::read_to_string(home.join("hook.log")).unwrap_or_default();
    match text.lines().next_back() {
        None => Check::new("hook log", Verdict::Pass, "no hook has failed"),
        Some(last) => {
            let last = shown_name(last, LOG_LINE_CHARS);
            Check::new("hook log", Verdict::Warn, format!("last failure: {last}"))
                .hint("the file is hook.log in the home")
        }
    }
}

/// Whether the MCP server that the agents start answers; it is the same for all of them.
fn server(home: &Path) -> Check {
    let greeted = std::env::current_exe()
        .map_err(|error| format!("can't be found: {error}"))
        .and_then(|program| programs::greet_server(&program, home, ALL[0].name()));
    match greeted {
        Ok(version) => Check::new("mcp", Verdict::Pass, format!("the server answers, version {version}")),
        Err(why) => Check::new("mcp", Verdict::Fail, format!("the server {why}"))
            .hint(format!("see what `baton mcp --agent {}` says", ALL[0].name())),
    }
}
