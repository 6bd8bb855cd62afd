//! `doctor`: checks, each pass, note, warn or fail, with what to do. Here are those of baton
//! itself; those of the agents are in `agents`, those of jobs in `jobs`.

mod agents;
mod approvals;
mod check;
mod jobs;
mod programs;

use super::CommandContext;
use crate::print::Out;
use crate::settings::Settings;
use crate::{environment, guard};
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::frame::shown as shown_name;
use baton_core::wake::{self as wake_rules, Outcome};
use baton_core::{Error, limits};
use baton_guard_runtime::log::UNJUDGED;
use baton_guard_runtime::policy::Mode;
use baton_machine::process::mark;
use baton_mail::wake::{self, Forecast, WakeRequest};
use baton_mail::{directory, identity, unknown_events};
use baton_store::{Counts, Heard, Participant, Role, Store};
use check::{Block, Check, CheckLevel};
use clap::Args;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Unknown names of one agent that are shown one by one.
const MAX_UNKNOWN_SHOWN: usize = 20;
/// What is shown of the last line of the hooks' log.
const LOG_LINE_CHARS: usize = 300;
/// What is shown of a field of the guard's log.
const FIELD_CHARS: usize = 60;
const UNKNOWN_HINT: &str = "a newer baton may know it; `baton doctor --fix` clears it until it appears again";

// `baton doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Repair what can be repaired without touching other programs' files
    #[arg(long)]
    fix: bool,
}

/// How each running session can be woken, or why not and what to do about it.
fn wakes(context: &CommandContext) -> Vec<Check> {
    let Ok(rules) = context.limits() else { return Vec::new() };
    if !Store::path(&context.home).exists() {
        return Vec::new();
    }
    let request =
        WakeRequest { home: &context.home, rules: &rules, wanted: true, by_hand: false, follower: None };
    let looked = Store::open(&context.home, Role::Command).and_then(|mut store| {
        let mut checks = Vec::new();
        for who in directory::who(&mut store, None, false)? {
            let Ok(agent) = baton_agents::by_name(&who.agent) else { continue };
            let forecast = wake::forecast(&store, &who, &request)?;
            let stranded = stranded(&store, &who, &forecast)?;
            checks.push(stranded.unwrap_or_else(|| wakeable(agent, &who.name, &forecast)));
        }
        Ok(checks)
    });
    looked.unwrap_or_default()
}

/// A warning if mail has waited beside an idle session that could be woken.
fn stranded(store: &Store, who: &Participant, forecast: &Forecast) -> Result<Option<Check>, Error> {
    let now = baton_machine::clock::now();
    let since = store.waits_since(who.id)?;
    let Some(waited) =
        since.and_then(|since| wake_rules::stranded_for(who.state, forecast.outcome, since, now))
    else {
        return Ok(None);
    };
    let name = &who.name;
    let detail = format!("{name}: idle, and mail has waited for it for {} s", waited.to_std().as_secs());
    let check = Check::new("wake", CheckLevel::Warn, detail);
    Ok(Some(check.hint(format!("`baton wake {name}` wakes it; `baton log` shows what was tried"))))
}

fn wakeable(agent: &dyn Agent, name: &str, forecast: &Forecast) -> Check {
    let why = forecast.outcome.meaning();
    match (forecast.outcome, forecast.routes.first()) {
        (Outcome::NoRoute, _) | (Outcome::NoClient, _) | (Outcome::Unconfirmed, _) => {
            Check::new("wake", CheckLevel::Note, format!("{name}: {why}")).hint(agent.facts().wakeable)
        }
        (_, Some(route)) => Check::new("wake", CheckLevel::Pass, format!("{name}: by {}", route.as_str())),
        (_, None) => Check::new("wake", CheckLevel::Pass, format!("{name}: {why}")),
    }
}

impl Doctor {
    /// Checks everything; exit 1 if one check fails.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let mut checks = vec![self.home(&context.home)];
        let mut heard = Vec::new();
        checks.extend(self.store(context, &mut heard));
        checks.push(settings(context));
        checks.extend(record(context, self.fix));
        checks.extend(marked());
        checks.extend(wakes(context));
        checks.push(guard(context));
        checks.push(hook_log(&context.home));
        checks.push(server(&context.home));
        let mut blocks = vec![
            Block { title: "baton", agent: None, checks, absent: false },
            Block { title: "jobs", agent: None, checks: jobs::checks(context, self.fix), absent: false },
            Block { title: "approvals", agent: None, checks: approvals::checks(context), absent: false },
        ];
        blocks.extend(agents::blocks(context, &heard, |agent| self.unknown(&context.home, agent)));
        let document: Vec<Value> = blocks.iter().flat_map(Block::documents).collect();
        out.data(&Value::Array(document), || check::shown(*out, &blocks))?;
        Ok(if blocks.iter().any(Block::fails) { Exit::Failed } else { Exit::Done })
    }

    fn home(&self, home: &Path) -> Check {
        let Ok(metadata) = std::fs::metadata(home) else {
            return Check::new("home", CheckLevel::Note, format!("{} does not exist yet", home.display()))
                .hint("baton makes it when it first needs it");
        };
        if self.fix {
            // The check right below says whether it worked.
            std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700)).ok();
            remove_drafts(home);
        }
        let mode = std::fs::metadata(home).unwrap_or(metadata).permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            Check::new("home", CheckLevel::Pass, format!("{} ({mode:o})", home.display()))
        } else {
            let detail = format!("{} can be entered by others ({mode:o})", home.display());
            Check::new("home", CheckLevel::Fail, detail).hint("baton doctor --fix")
        }
    }

    /// What the agent said to our hooks that no table knows, one row for each name.
    fn unknown(&self, home: &Path, agent: &dyn Agent) -> Vec<Check> {
        if self.fix {
            // What could not be forgotten is shown.
            unknown_events::forget(home, agent).ok();
        }
        let unknown_events::UnknownNames { names, is_full } = unknown_events::list(home, agent);
        let check = |detail: String| Check::new("unknown", CheckLevel::Warn, detail).hint(UNKNOWN_HINT);
        let mut checks: Vec<Check> = names
            .iter()
            .take(MAX_UNKNOWN_SHOWN)
            .map(|unknown| {
                let name = shown_name(&unknown.name, limits::UNKNOWN_NAME_BYTES);
                let day = unknown.seen.to_rfc3339();
                let day = day.split('T').next().unwrap_or(&day);
                check(format!("{} {name}, seen on {day}", unknown.kind.as_str()))
            })
            .collect();
        if names.len() > MAX_UNKNOWN_SHOWN || is_full {
            let least = if is_full { "at least " } else { "" };
            checks.push(check(format!("{least}{} more", names.len().saturating_sub(MAX_UNKNOWN_SHOWN))));
        }
        checks
    }

    fn store(&self, context: &CommandContext, heard: &mut Vec<Heard>) -> Vec<Check> {
        if !Store::path(&context.home).exists() {
            let check = Check::new("store", CheckLevel::Note, "there is none yet");
            return vec![check.hint("baton makes it when it first needs it")];
        }
        let mut store = match Store::open(&context.home, Role::Command) {
            Ok(store) => store,
            Err(error) => return vec![Check::error("store", CheckLevel::Fail, &error)],
        };
        if self.fix {
            let rules = context.limits().unwrap_or_default();
            // What it could not do, the checks below show.
            store.upkeep(&rules, baton_machine::clock::now()).ok();
            store.tidy();
        }
        let mut checks = vec![match store.check() {
            Ok(()) => {
                let Counts { messages, sessions } = store.counts().unwrap_or_default();
                let detail = format!("sound; {messages} messages, {sessions} sessions");
                Check::new("store", CheckLevel::Pass, detail)
            }
            Err(error) => Check::error("store", CheckLevel::Fail, &error),
        }];
        let wal = store.wal_bytes();
        let detail = format!("{} KiB wait to be folded in", wal >> 10);
        checks.push(if wal > 4 * limits::WAL_BYTES_HOOK {
            Check::new("store log", CheckLevel::Warn, detail).hint("baton doctor --fix")
        } else {
            Check::new("store log", CheckLevel::Pass, detail)
        });
        if let Ok(here) = directory::who(&mut store, None, false) {
            checks.push(Check::new(
                "sessions",
                CheckLevel::Pass,
                format!("{} known and not gone", here.len()),
            ));
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

/// Whether the home names the configuration file, so that no environment of an agent chooses
/// another.
fn record(context: &CommandContext, fix: bool) -> Option<Check> {
    // The check of the settings reports a damaged record.
    let recorded = environment::recorded_config_file(&context.home);
    let is_damaged = recorded.is_err();
    let is_recorded = matches!(recorded, Ok(Some(_)));
    let set_up = context.home.join("setup").is_dir();
    if is_recorded || !(set_up || is_damaged) {
        return None;
    }
    if fix && environment::record_config_file(&context.home).is_ok() {
        return Some(Check::new("settings", CheckLevel::Pass, "the configuration file is recorded now"));
    }
    if is_damaged {
        return None;
    }
    let why = "the home does not record the configuration file, so the environment of an agent chooses it";
    Some(
        Check::new("settings", CheckLevel::Warn, why)
            .hint("run `baton setup` again, or `baton doctor --fix`"),
    )
}

/// Whether an administrator's limit makes each process look like one below an agent.
fn marked() -> Option<Check> {
    let no_agent_above = identity::outermost_agent_variable("HOME").is_none();
    (mark::own().is_some() && no_agent_above).then(|| {
        let why = "this process counts as one below an agent or a job: its limit of file locks (RLIMIT_LOCKS) is set";
        Check::new("person", CheckLevel::Warn, why).hint(
            "an agent started this terminal, or /etc/security/limits.conf sets `locks`: take that line out",
        )
    })
}

fn settings(context: &CommandContext) -> Check {
    match Settings::load(&context.cwd) {
        Ok(_) => Check::new("settings", CheckLevel::Pass, "readable"),
        Err(error) => Check::error("settings", CheckLevel::Fail, &error),
    }
}

/// Whether tool calls are judged, and what came of it.
fn guard(context: &CommandContext) -> Check {
    let policy = match guard::open(&context.home).policy(&context.cwd) {
        Ok(policy) => policy,
        Err(error) => return Check::error("guard", CheckLevel::Fail, &error),
    };
    if policy.settings.mode.value == Mode::Off {
        return Check::new("guard", CheckLevel::Note, "off: tool calls are not judged")
            .hint("guard.mode = \"on\" in your config.toml, then `baton setup`");
    }
    let log = baton_guard_runtime::log::last(&context.home, usize::MAX);
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
            CheckLevel::Warn,
            format!("on; {more} settings of a file that may only tighten are ignored"),
        )
        .hint(shown_name(ignored, LOG_LINE_CHARS));
    }
    if unjudged > 0 {
        let detail = format!("on; {unjudged} calls ran without having been judged{last}");
        return Check::new("guard", CheckLevel::Warn, detail)
            .hint("their hooks failed, took too long, or were not in force; `baton guard log` shows when");
    }
    let held = policy.settings.on_failure.value.as_str();
    let detail = format!("on; what can't be judged: {held}; {} decisions logged{last}", log.len());
    if failed > 0 {
        return Check::new(
            "guard",
            CheckLevel::Warn,
            format!("{failed} calls could not be judged; {detail}"),
        )
        .hint("hook.log in the home says why");
    }
    Check::new("guard", CheckLevel::Pass, detail)
}

fn hook_log(home: &Path) -> Check {
    let bytes = baton_machine::own::end(&home.join("hook.log"), limits::LOG_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().next_back() {
        None => Check::new("hook log", CheckLevel::Pass, "no hook has failed"),
        Some(last) => {
            let last = shown_name(last, LOG_LINE_CHARS);
            Check::new("hook log", CheckLevel::Warn, format!("last failure: {last}"))
                .hint("the file is hook.log in the home")
        }
    }
}

/// Whether the MCP server that the agents start answers; it is the same for all of them.
fn server(home: &Path) -> Check {
    let greeted = environment::own_program()
        .map_err(|error| error.message().to_owned())
        .and_then(|program| programs::greet_server(&program, home, ALL[0].name()));
    match greeted {
        Ok(version) => Check::new("mcp", CheckLevel::Pass, format!("the server answers, version {version}")),
        Err(why) => Check::new("mcp", CheckLevel::Fail, format!("the server {why}"))
            .hint(format!("see what `baton mcp --agent {}` says", ALL[0].name())),
    }
}
