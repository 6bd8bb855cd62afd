//! Fails when an agent is missing somewhere: CONTRIBUTING.md, "Adding an agent", says what each
//! place is for.

use baton_agents::{ALL, Agent};
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    let path = repository().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The agents whose real program runs in the tests. Cursor is not one of them: it needs its own
/// service.
fn driven() -> Vec<&'static dyn Agent> {
    ALL.iter().copied().filter(|agent| agent.verified().is_some()).collect()
}

fn names(agents: &[&dyn Agent]) -> Vec<&'static str> {
    agents.iter().map(|agent| agent.name()).collect()
}

/// No agent lacks a backend. One that can't do jobs would be left out here, with the reason.
#[test]
fn every_agent_has_a_backend_and_tests_of_it() {
    let backends: Vec<_> = baton_jobs::backend::ALL.iter().map(|backend| backend.agent()).collect();
    assert_eq!(backends, names(ALL));
    let tests = text("crates/jobs/tests/backends/main.rs");
    for name in backends {
        assert!(
            tests.contains(&format!("mod {name};")),
            "crates/jobs/tests/backends has no module for {name}"
        );
    }
}

#[test]
fn every_agent_with_a_pinned_version_runs_in_tests() {
    let driven_by_tests: Vec<_> =
        baton_testkit::agents::Agent::ALL.iter().map(|agent| agent.name()).collect();
    assert_eq!(driven_by_tests, names(&driven()));
    for agent in baton_testkit::agents::Agent::ALL {
        let verified = baton_agents::by_name(agent.name()).expect("an agent").verified();
        assert_eq!(Some(agent.pinned()), verified, "{}", agent.name());
    }
}

#[test]
fn every_agent_with_a_pinned_version_has_stories() {
    let (stories, tools) = (text("tests/stories/main.rs"), text("scripts/lib/tools.sh"));
    for name in names(&driven()) {
        let has_module = stories.contains(&format!("mod {name};"));
        let shares_modules = tools.contains(&format!("    {name}) chosen+="));
        assert!(has_module || shares_modules, "tests/stories has no module for {name}");
        for shared in ["guard", "terminal", "wake"] {
            let has_story = text(&format!("tests/stories/{shared}.rs")).contains(&format!("fn {name}_"));
            assert!(has_story, "tests/stories/{shared}.rs has no story of {name}");
        }
    }
}

#[test]
fn every_agent_is_fuzzed() {
    let targets = text("fuzz/Cargo.toml");
    for name in names(ALL) {
        for target in [format!("payload_{name}"), format!("config_{name}")] {
            assert!(targets.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml has no {target}");
            let (kind, _) = target.split_once('_').expect("a kind");
            let calls = format!("bodies::{kind}(\"{name}\", data)");
            assert!(text(&format!("fuzz/fuzz_targets/{target}.rs")).contains(&calls), "{target}: {calls}");
            assert!(repository().join("fuzz/corpus").join(&target).is_dir(), "{target} has no corpus");
        }
    }
}

#[test]
fn the_front_page_names_every_agent() {
    let page = text("README.md");
    for agent in ALL {
        assert!(page.contains(agent.title()), "README.md does not name {}", agent.title());
    }
}
