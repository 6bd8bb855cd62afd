//! Fuzzes the guard: for any command, output or rule file there is a decision, in time, and the
//! same one again.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{Active, FakeWorld, Params, Request, RuleSet, judge, rules};
use std::time::{Duration, Instant};

/// Longest time for one call. The fuzzer's build is optimised; other builds get more.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 50 });

/// The input as a command of each shell, as a tool's output, as a patch and as a rule file.
pub fn judged(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut world = FakeWorld::new("/home/me/project", "/home/me");
    world.files.insert("/home/me/project/run.sh".to_owned(), text.clone().into_owned());
    let rules = RuleSet {
        rules: rules::all().map(|rule| Active { rule, params: Params::default() }).collect(),
        ..RuleSet::default()
    };
    for native in ["Bash", "powershell", "cmd"] {
        let mut tool = ToolUse::new(ToolKind::Shell, native);
        tool.command = Some(text.clone().into_owned());
        let request = Request::before("claude", &tool);
        let first = in_time(|| judge(&request, &rules, &world).verdict);
        assert_eq!(first, judge(&request, &rules, &world).verdict, "the same call");
    }
    let tool = ToolUse::new(ToolKind::Shell, "Bash");
    in_time(|| judge(&Request::after("claude", &tool, &text), &rules, &world).verdict);
    let mut patch = ToolUse::new(ToolKind::Patch, "apply_patch");
    patch.patch = Some(text.clone().into_owned());
    in_time(|| judge(&Request::before("codex", &patch), &rules, &world).verdict);
    // It need not be a valid one.
    baton_guard::config::load(&text).ok();
}

/// Runs it and checks the time. Other programs on the machine may slow it down once or twice.
fn in_time<T>(work: impl Fn() -> T) -> T {
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let done = work();
        shortest = shortest.min(start.elapsed());
        if shortest < LIMIT {
            return done;
        }
    }
    panic!("it takes {shortest:?}")
}
