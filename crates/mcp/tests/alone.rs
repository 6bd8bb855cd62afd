//! The MCP server alone, as the tests start it: `baton-mcp-alone AGENT HOME`.

#![expect(clippy::disallowed_macros, reason = "a program of the tests")]

use baton_core::limits::Limits;
use baton_guard_runtime::{Guard, Places};
use baton_mcp::Options;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The guard without the person's file.
fn guard(home: &Path) -> Guard {
    Guard::open(Places {
        home: home.to_owned(),
        config: std::env::var_os("TEST_CONFIG").map(PathBuf::from),
        named_config: None,
        user_home: PathBuf::from("/"),
        cwd: std::env::current_dir().unwrap_or_default(),
        env: |name| std::env::var_os(name),
        now: baton_machine::clock::now,
        patience: Duration::ZERO,
        aside: |_, _, _| None,
        own_line: |_| baton_core::guard::OwnLine::Unreadable,
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agent, home] = &arguments[..] else {
        eprintln!("usage: baton-mcp-alone AGENT HOME");
        return ExitCode::from(64);
    };
    let log = PathBuf::from(home).join("test.log");
    let served = baton_agents::by_name(agent).and_then(|agent| {
        baton_mcp::serve(Options {
            offers_tools: true,
            agent,
            home: home.into(),
            cwd: std::env::current_dir().unwrap_or_default(),
            env: Box::new(|name| std::env::var_os(name)),
            program: std::env::current_exe().unwrap_or_default(),
            environment: std::env::vars_os().collect(),
            limits: Box::new(Limits::default),
            guard,
            log: Box::new(move |line| {
                let file = OpenOptions::new().create(true).append(true).open(&log);
                // A test that expects the line notices if it is missing.
                file.and_then(|mut file| writeln!(file, "{line}")).ok();
            }),
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
