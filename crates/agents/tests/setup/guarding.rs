//! The guard's entries in the agents' files: present when it is on, gone when it is off, and never
//! in the way of a removal.

use crate::world::{BATON, Files, HOME};
use baton_agents::install::{GuardHooks, Install, Scope, Target};
use baton_agents::{ALL, Agent};
use std::path::Path;

fn target(agent: &dyn Agent, guard: GuardHooks) -> Box<dyn Target> {
    let install = Install::new(Path::new(BATON), Path::new(HOME), Scope::User).unwrap().with_guard(guard);
    agent.target(install, Path::new("/home/dev"), &|_| None).unwrap()
}

/// The content of all files of an agent.
fn text(files: &Files, target: &dyn Target) -> String {
    let now = files.current();
    let all = target.files().into_iter().filter_map(|file| now.bytes(&file).map(<[u8]>::to_vec));
    all.map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

fn has_plugin(agent: &dyn Agent) -> bool {
    target(agent, GuardHooks::On).loaded().is_some()
}

#[test]
fn an_installation_without_a_guard_gets_one_and_loses_it_again() {
    for agent in ALL {
        let [off, on] = [GuardHooks::Off, GuardHooks::On].map(|guard| target(*agent, guard));
        let (without, _) = Files::default().installed(&*off).unwrap();
        let (with, _) = without.installed(&*on).unwrap();
        let (fresh, _) = Files::default().installed(&*on).unwrap();
        let mark = if has_plugin(*agent) { "\"open\"" } else { "--guard" };
        assert!(!text(&without, &*off).contains(mark), "{}", agent.name());
        assert!(text(&with, &*on).contains(mark), "{}", agent.name());
        assert_eq!(
            text(&with, &*on).matches(mark).count(),
            text(&fresh, &*on).matches(mark).count(),
            "{}: an upgrade is as good as a new installation",
            agent.name()
        );
        assert_eq!(with.installed(&*on).unwrap().0, with, "{}: twice is the same as once", agent.name());
        let (again, _) = with.installed(&*off).unwrap();
        assert!(!text(&again, &*off).contains(mark), "{}", agent.name());
    }
}

/// A hook that waits for a person needs more time than the entries of older versions give it, and
/// its command says so.
#[test]
fn a_hook_that_may_wait_has_the_time_for_it_also_after_an_upgrade() {
    for name in ["claude", "codex", "gemini", "copilot"] {
        let on = target(baton_agents::by_name(name).unwrap(), GuardHooks::On);
        let (fresh, _) = Files::default().installed(&*on).unwrap();
        let text = text(&fresh, &*on);
        let waits = text.lines().filter(|line| line.contains("--guard --hold")).count();
        assert_eq!(waits, 1, "{name}: {text}");
        let times = if name == "gemini" { ["630000", "10000"] } else { ["630", "10"] };
        let mut old = Files::default();
        let now = fresh.current();
        for file in on.files() {
            let Some(bytes) = now.bytes(&file) else { continue };
            let before = String::from_utf8(bytes.to_vec()).unwrap();
            assert!(!before.contains("--hold") || before.contains(times[0]), "{name}: {before}");
            old = old.and(&file, before.replace(" --hold", "").replace(times[0], times[1]).as_bytes());
        }
        let (again, _) = old.installed(&*on).unwrap();
        assert_eq!(self::text(&again, &*on), text, "{name}");
    }
}

#[test]
fn who_wants_it_closed_gets_it_closed_where_the_agent_can() {
    for agent in ALL {
        let [open, closed] = [GuardHooks::On, GuardHooks::Closed].map(|guard| target(*agent, guard));
        let (files, _) = Files::default().installed(&*open).unwrap();
        let (files, _) = files.installed(&*closed).unwrap();
        let text = text(&files, &*closed);
        let says = match agent.name() {
            "claude" => "\"onFailure\": \"block\"",
            "cursor" => "\"failClosed\": true",
            "opencode" | "pi" => "\"closed\"",
            // These have no such setting.
            _ => continue,
        };
        assert!(text.contains(says), "{}: {text}", agent.name());
    }
}
