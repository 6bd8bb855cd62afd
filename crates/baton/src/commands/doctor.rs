//! `doctor`: checks, each pass, warn or fail, with what to do.

use super::{Session, setup};
use crate::environment;
use crate::print::{Out, Tone, table};
use crate::settings::Settings;
use baton_agents::{ALL, Agent};
use baton_core::error::Exit;
use baton_core::frame::shown as shown_name;
use baton_core::{Error, limits};
use baton_mail::{directory, unknown};
use baton_store::{Role, Store};
use clap::Args;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Unknown names of one agent that are shown one by one.
const UNKNOWN_SHOWN: usize = 20;
const UNKNOWN_HINT: &str =
    "a newer baton may know it; `baton doctor --fix` forgets it until it is seen again";

// `baton doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Repair what can be repaired without touching other programs' files
    #[arg(long)]
    fix: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Warn,
    Fail,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

#[derive(Debug)]
struct Check {
    name: String,
    verdict: Verdict,
    detail: String,
    hint: Option<String>,
}

impl Check {
    fn new(name: impl Into<String>, verdict: Verdict, detail: impl Into<String>, hint: Option<&str>) -> Self {
        Self { name: name.into(), verdict, detail: detail.into(), hint: hint.map(str::to_owned) }
    }
}

impl Doctor {
    /// Checks everything; exit 1 if one check fails.
    pub fn run(&self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let mut checks = vec![self.home(&session.home)];
        checks.extend(self.store(session));
        checks.push(settings(session));
        checks.push(hook_log(&session.home));
        for agent in ALL {
            checks.extend(installation(session, *agent));
            checks.extend(self.unknown(&session.home, *agent));
        }
        let document: Vec<Value> = checks
            .iter()
            .map(|check| json!({"check": check.name, "verdict": check.verdict.as_str(), "detail": check.detail, "hint": check.hint}))
            .collect();
        out.data(&Value::Array(document), || shown(*out, &checks))?;
        Ok(if checks.iter().any(|check| check.verdict == Verdict::Fail) { Exit::Failed } else { Exit::Done })
    }

    fn home(&self, home: &Path) -> Check {
        let Ok(metadata) = std::fs::metadata(home) else {
            return Check::new(
                "home",
                Verdict::Warn,
                format!("{} does not exist yet", home.display()),
                Some("it is made when it is first needed"),
            );
        };
        if self.fix {
            // The check right below says whether it worked.
            std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700)).ok();
            remove_drafts(home);
        }
        let mode = std::fs::metadata(home).unwrap_or(metadata).permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            Check::new("home", Verdict::Pass, format!("{} ({mode:o})", home.display()), None)
        } else {
            Check::new(
                "home",
                Verdict::Fail,
                format!("{} can be entered by others ({mode:o})", home.display()),
                Some("baton doctor --fix"),
            )
        }
    }

    /// What the agent said to our hooks that no table knows, one row for each name.
    fn unknown(&self, home: &Path, agent: &dyn Agent) -> Vec<Check> {
        if self.fix {
            // What could not be forgotten is shown.
            unknown::forget(home, agent).ok();
        }
        let (names, full) = unknown::list(home, agent);
        let check = |detail: String, hint| {
            Check::new(format!("{} unknown", agent.name()), Verdict::Warn, detail, Some(hint))
        };
        let mut checks: Vec<Check> = names
            .iter()
            .take(UNKNOWN_SHOWN)
            .map(|unknown| {
                let name = shown_name(&unknown.name, limits::UNKNOWN_NAME_BYTES);
                let day = unknown.seen.to_rfc3339();
                let day = day.split('T').next().unwrap_or(&day);
                check(format!("{} {name}, seen on {day}", unknown.what.as_str()), UNKNOWN_HINT)
            })
            .collect();
        if names.len() > UNKNOWN_SHOWN || full {
            let least = if full { "at least " } else { "" };
            checks.push(check(
                format!("{least}{} more", names.len().saturating_sub(UNKNOWN_SHOWN)),
                UNKNOWN_HINT,
            ));
        }
        checks
    }

    fn store(&self, session: &Session) -> Vec<Check> {
        if !Store::path(&session.home).exists() {
            return vec![Check::new(
                "store",
                Verdict::Warn,
                "there is none yet",
                Some("it is made when it is first needed"),
            )];
        }
        let mut store = match Store::open(&session.home, Role::Command) {
            Ok(store) => store,
            Err(error) => {
                return vec![Check::new("store", Verdict::Fail, error.message(), error.hint_text())];
            }
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
                Check::new(
                    "store",
                    Verdict::Pass,
                    format!("sound; {messages} messages, {sessions} sessions"),
                    None,
                )
            }
            Err(error) => Check::new("store", Verdict::Fail, error.message(), error.hint_text()),
        }];
        let wal = store.wal_bytes();
        let (verdict, hint) = if wal > 4 * limits::WAL_BYTES_HOOK {
            (Verdict::Warn, Some("baton doctor --fix"))
        } else {
            (Verdict::Pass, None)
        };
        checks.push(Check::new(
            "store log",
            verdict,
            format!("{} KiB wait to be folded in", wal >> 10),
            hint,
        ));
        if let Ok(here) = directory::who(&mut store, None, false) {
            checks.push(Check::new(
                "sessions",
                Verdict::Pass,
                format!("{} known and not gone", here.len()),
                None,
            ));
        }
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
        Ok(_) => Check::new("settings", Verdict::Pass, "readable", None),
        Err(error) => Check::new("settings", Verdict::Fail, error.message(), error.hint_text()),
    }
}

fn hook_log(home: &Path) -> Check {
    let text = std::fs::read_to_string(home.join("hook.log")).unwrap_or_default();
    match text.lines().next_back() {
        None => Check::new("hook log", Verdict::Pass, "no hook has failed", None),
        Some(last) => Check::new(
            "hook log",
            Verdict::Warn,
            format!("last failure: {last}"),
            Some("the file is hook.log in the home"),
        ),
    }
}

fn installation(session: &Session, agent: &dyn Agent) -> Vec<Check> {
    let name = agent.name();
    let Some(program) = environment::find_program(agent.program()) else {
        return vec![Check::new(name, Verdict::Pass, "not installed", None)];
    };
    let mut checks = vec![Check::new(
        name,
        Verdict::Pass,
        format!("{}; verified with {} {}", program.display(), agent.title(), agent.verified()),
        None,
    )];
    let hint = format!("baton setup {name}");
    checks.push(match setup::plan(session, agent, false, false) {
        Ok(plan) if plan.is_empty() => Check::new(
            format!("{name} setup"),
            Verdict::Pass,
            "hooks, trust and MCP entry are in place",
            None,
        ),
        Ok(_) => Check::new(
            format!("{name} setup"),
            Verdict::Warn,
            "not set up, or by another version",
            Some(hint.as_str()),
        ),
        Err(error) => Check::new(format!("{name} setup"), Verdict::Fail, error.message(), error.hint_text()),
    });
    checks
}

fn shown(out: Out, checks: &[Check]) -> String {
    let rows: Vec<Vec<String>> = checks
        .iter()
        .map(|check| {
            vec![
                check.verdict.as_str().to_owned(),
                check.name.clone(),
                check.detail.clone(),
                check.hint.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let worst = checks.iter().map(|check| check.verdict as u8).max().unwrap_or(0);
    let tone = [Tone::Good, Tone::Warn, Tone::Bad][usize::from(worst)];
    table(out, &["", "CHECK", "DETAIL", "HINT"], &rows, &[Some(tone), Some(Tone::Bold)])
}
