//! Fuzzes agents' payloads and files: nothing panics, and what was put in comes out again.
//!
//! `cargo +nightly fuzz run payload_claude` (or `config_claude`, and so on for each agent). On a
//! stable toolchain: `cargo fuzz run --sanitizer none payload_claude`. The tests of crate `agents`
//! replay the corpus beside this file.

use baton_agents::call::change_texts;
use baton_agents::install::{Current, GuardHooks, Install, Records, Scope};
use baton_agents::{Ruling, by_name};
use baton_core::event::Reply;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The input as an agent's payload, for every event that may be installed.
pub fn payload(agent: &str, data: &[u8]) {
    let agent = by_name(agent).expect("a known agent");
    let calls = agent.facts().calls;
    let named =
        calls.before.iter().chain(calls.after).map(|name| Some(*name)).chain([None, Some("agentStop")]);
    for named in named {
        if let Ok(event) = agent.parse(data, named) {
            for reply in [Reply::Context("text".to_owned()), Reply::Continue("text".to_owned())] {
                is_json(&agent.render(&event, &reply, None));
            }
        }
        let Ok(Some(mut call)) = agent.call(data, named) else { continue };
        for ruling in
            [Ruling::Deny("why".to_owned()), Ruling::Ask("why".to_owned()), Ruling::Note("why".to_owned())]
        {
            is_json(&agent.render_ruling(&call, &ruling));
        }
        if let Some(mut output) = call.output.take() {
            change_texts(&mut output, &mut |text| Some(text.chars().rev().collect()));
            is_json(&agent.render_ruling(&call, &Ruling::Redact { output, why: "why".to_owned() }));
        }
    }
    agent.runs_foreign_hook(data, &|_| None);
    let (mut reader, mut past) = (agent.transcript(), agent.history_reader(Path::new("/none")));
    for line in String::from_utf8_lossy(data).lines() {
        reader(line);
        past(line);
    }
}

fn is_json(text: &str) {
    assert!(text.is_empty() || serde_json::from_str::<Value>(text).is_ok(), "{text}");
}

/// The input as each of an agent's files, alone: it is refused, or all of it comes back.
pub fn config(agent: &str, data: &[u8]) {
    let agent = by_name(agent).expect("a known agent");
    for scope in [Scope::User, Scope::Project("/p".into())] {
        for guard in [GuardHooks::On, GuardHooks::Closed] {
            let install = Install::new(Path::new("/bin/baton"), Path::new("/h"), scope.clone());
            let install = install.expect("plain paths").with_guard(guard);
            let target = agent.target(install, Path::new("/home/dev"), &|_| None).expect("plain paths");
            for file in target.files() {
                let before = vec![(file.clone(), Some(data.to_vec()))];
                let Ok(edits) = target.add(&current(&before)) else { continue };
                let made: Records = edits
                    .iter()
                    .filter(|edit| edit.is_change())
                    .map(|edit| (edit.path.clone(), edit.made.clone()))
                    .collect();
                let mut now = before.clone();
                for edit in edits {
                    set(&mut now, &edit.path, edit.after);
                }
                let taken = target.take_out(&current(&now), &made).expect("what was put in can be taken out");
                for edit in taken {
                    set(&mut now, &edit.path, edit.after);
                }
                now.retain(|(_, bytes)| bytes.is_some());
                assert_eq!(now, before, "{}", file.display());
            }
        }
    }
}

type Files = Vec<(PathBuf, Option<Vec<u8>>)>;

fn current(files: &Files) -> Current {
    files.iter().cloned().collect()
}

fn set(files: &mut Files, path: &Path, bytes: Option<Vec<u8>>) {
    match files.iter_mut().find(|(there, _)| there == path) {
        Some((_, there)) => *there = bytes,
        None => files.push((path.to_owned(), bytes)),
    }
}
