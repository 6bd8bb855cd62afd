//! What is fuzzed of the guard: whatever a command, an output or a rule file holds, there is a decision, in time, and the same one again.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{Active, Call, Params, RuleSet, Told, judge, rules};
use std::time::{Duration, Instant};

/// No call takes longer. The fuzzer's build is an optimised one; others are given more.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 50 });

/// A command in a shell, of each of the shells; what a tool gave back; a patch; a rule file.
pub fn judged(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut world = Told::new("/home/me/project", "/home/me");
    world.files.insert("/home/me/project/run.sh".to_owned(), text.clone().into_owned());
    let rules = RuleSet {
        rules: rules::all().map(|rule| Active { rule, params: Params::default() }).collect(),
        ..RuleSet::default()
    };
    for native in ["Bash", "powershell", "cmd"] {
        let mut tool = ToolUse::new(ToolKind::Shell, native);
        tool.command = Some(text.clone().into_owned());
        let call = Call::before("claude", &tool);
        let first = in_time(|| judge(&call, &rules, &world).verdict);
        assert_eq!(first, judge(&call, &rules, &world).verdict, "the same call");
    }
    let tool = ToolUse::new(ToolKind::Shell, "Bash");
    in_time(|| judge(&Call::after("claude", &tool, &text), &rules, &world).verdict);
    let mut patch = ToolUse::new(ToolKind::Patch, "apply_patch");
    patch.patch = Some(text.clone().into_owned());
    in_time(|| judge(&Call::before("codex", &patch), &rules, &world).verdict);
    // Whether it is one or not.
    baton_guard::config::load(&text).ok();
}

/// Does it, in time; what else runs on the machine may take time once, or twice.
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
