//! What setup says: before, what changes; afterwards, what that means and what to type next.

use super::{Outcome, Planned, changes};
use crate::commands::CommandContext;
use crate::environment;
use crate::guard;
use crate::print::{Out, Text, Tone, columns, text};
use baton_agents::Agent;
use baton_guard_runtime::policy::Mode;
use std::path::Path;

/// The rules that only the person can want: not everyone has a cloud or a database.
const OPTIONAL: [&str; 7] = [
    "block-aws-cli",
    "block-az-cli",
    "block-gcloud",
    "block-helm",
    "block-kubectl",
    "block-terraform",
    "warn-destructive-sql",
];
/// Lines that one agent takes before setup begins, its title included.
const MAX_LINES: usize = 5;
/// Columns before what is wrapped.
const INDENT: usize = 2;

/// A path as people write it.
pub fn short(path: &Path) -> String {
    let home = environment::user_home().ok();
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// What changes, agent by agent. Agents without a change are named in one line.
pub fn before(out: Out, planned: &[Planned], is_dry: bool, removes: bool) {
    let mut unchanged = Vec::new();
    for Planned { agent, plan } in planned {
        let changes = changes(plan);
        if changes.is_empty() {
            unchanged.push(agent.title());
            continue;
        }
        out.say(text![out.tone(Tone::Bold, agent.title())]);
        let fits = if changes.len() < MAX_LINES { changes.len() } else { MAX_LINES - 2 };
        let width =
            changes[..fits].iter().map(|change| short(&change.path).chars().count()).max().unwrap_or(0);
        for change in &changes[..fits] {
            let path = format!("{:width$}", short(&change.path));
            let what = match (removes, change.is_deleted) {
                (true, true) => "delete it: baton made it".to_owned(),
                (true, false) => "take baton's entries out".to_owned(),
                (false, _) => change.what.clone(),
            };
            out.say(text!["  ", path, "  ", out.tone(Tone::Dim, &what)]);
        }
        if changes.len() > fits {
            out.say(text![format_args!("  and {} more files", changes.len() - fits)]);
        }
    }
    match (unchanged.len() == planned.len(), removes) {
        (true, true) => out.say("nothing of baton is set up"),
        (true, false) => out.say(text!["nothing to change; connected: ", unchanged.join(", ")]),
        (false, true) => {}
        (false, false) if unchanged.is_empty() => {}
        (false, false) => out.say(text!["nothing to change: ", unchanged.join(", ")]),
    }
    if is_dry && unchanged.len() < planned.len() {
        out.say("nothing was changed; the diff:");
    }
}

/// The diff, coloured.
pub fn diff(outcomes: &[Outcome]) -> Text {
    let mut text = Text::default();
    for line in outcomes.iter().flat_map(|outcome| outcome.diff.lines()) {
        let tone = match line.as_bytes() {
            [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => Some(Tone::Bold),
            [b'@', ..] => Some(Tone::Dim),
            [b'+', ..] => Some(Tone::Good),
            [b'-', ..] => Some(Tone::Bad),
            _ => None,
        };
        let line = Text::from(line.to_owned());
        text.push(match tone {
            Some(tone) => line.toned(tone),
            None => line,
        });
        text.push("\n");
    }
    text
}

/// What is connected now, what the guard refuses, and what to type.
pub fn after(context: &CommandContext, out: Out, agents: &[&dyn Agent]) {
    let say = |text: Text| out.say(text!["  ", text.filled(INDENT, columns())]);
    out.say(text![out.tone(Tone::Bold, "connected")]);
    for agent in agents {
        say(text![agent.title(), ": ", agent.facts().after_setup]);
    }
    let Ok(policy) = guard::open(&context.home).policy(&context.cwd) else { return };
    out.say(text![out.tone(Tone::Bold, "guard")]);
    if policy.settings.mode.value == Mode::Off {
        say(text!["off: tool calls are not judged"]);
    } else {
        let on: Vec<&str> = policy.rules.rules.iter().map(|active| active.rule.id).collect();
        let off: Vec<&str> = OPTIONAL.into_iter().filter(|id| !on.contains(id)).collect();
        say(text!["these rules refuse, ask or take secrets out from now on: ", on.join(", ")]);
        say(text![
            "`baton guard explain RULE` says what each means, `baton guard disable RULE` switches one off"
        ]);
        if !off.is_empty() {
            let how = "rules for clouds and databases are off; `baton guard enable RULE` switches one on: ";
            say(text![how, off.join(", ")]);
        }
    }
    out.say(text![out.tone(Tone::Bold, "next")]);
    let program = agents.first().map_or("claude", |agent| agent.program());
    say(text![format_args!(
        "start `{program}` in a project, then `baton who`; `baton doctor` checks all of it"
    )]);
}

/// What was taken out, and what is still there.
pub fn after_removal(context: &CommandContext, out: Out, outcomes: &[Outcome]) {
    let changed: Vec<&str> =
        outcomes.iter().filter(|one| !one.changes.is_empty()).map(|one| one.agent.title()).collect();
    if !changed.is_empty() {
        out.say(text!["baton is out of ", changed.join(", "), "; the rest of their files is as it was"]);
    }
    let mut stays = Vec::new();
    if context.home.exists() {
        stays.push(format!("{} (mail, jobs, logs)", short(&context.home)));
    }
    if let Ok(Some(config)) = environment::own_config_file()
        && config.exists()
    {
        stays.push(format!("{} (your settings)", short(&config)));
    }
    if !stays.is_empty() {
        stays.push("branches baton/… of jobs in your repositories".to_owned());
        let text = text![
            "these stay: ",
            stays.join(", "),
            "; `baton setup --remove --purge` deletes state and settings"
        ];
        out.say(text.filled(0, columns()));
    }
}
