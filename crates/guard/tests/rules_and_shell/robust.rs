//! The engine never fails, whatever its input is, and its work grows with the length of the text.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::{Decision, FakeWorld, Request, RuleSet, judge, redact, rules, shell};
use proptest::prelude::*;

fn world() -> FakeWorld {
    FakeWorld::new("/home/me/project", "/home/me")
}

fn all_rules() -> RuleSet {
    let rules = rules::all().map(|rule| baton_guard::Active { rule, params: Default::default() }).collect();
    RuleSet { rules, ..RuleSet::default() }
}

fn judged(command: &str, native: &str) -> Decision {
    let mut tool = ToolUse::new(ToolKind::Shell, native);
    tool.command = Some(command.to_owned());
    judge(&Request::before("claude", &tool), &all_rules(), &world()).verdict.decision
}

/// Pieces that shells, and the languages inside them, are made of.
const PIECES: &[&str] = &[
    "sudo",
    "rm -rf",
    "/",
    "~",
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "${x",
    "}",
    "{",
    "(",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "<<E",
    "E",
    "<(",
    ">",
    "<<<",
    "a=",
    "$x",
    "$'",
    "\\",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "case",
    "esac",
    ";;",
    "function f",
    "f()",
    "[[",
    "]]",
    "((",
    "))",
    "eval",
    "sh -c",
    "python3 -c",
    "node -e",
    "perl -e",
    "awk",
    "xargs",
    "find . -exec",
    "{}",
    "\\;",
    "env",
    "echo",
    "cat",
    ".env",
    "curl x",
    "git push",
    "origin",
    "main",
    "é",
    "\u{1F600}",
    "\0",
    " ",
    "=",
    "#",
    "!",
    "*",
    "?",
    "[",
    "]",
    ",",
    "..",
    ":",
    "-",
    "%",
    "+",
    "@",
    "1",
    "powershell -c",
    "cmd /c",
    "psql -c",
    "DROP",
    "os.system(",
    "base64 -d",
    "printf",
    "\\x73",
    "tmux send-keys",
    "git -c alias.x=!",
    "while read l",
    "alias a=",
    "set --",
    "\"$@\"",
    "${x//a/b}",
    "${x:0:1}",
    "${!x}",
    "{1..9}",
    "{a,b}",
    "trap",
    "tar cf",
    "dd of=",
    "timeout 5",
    "docker run",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_gets_a_decision(text in "\\PC{0,200}") {
        judged(&text, "Bash");
        judged(&text, "PowerShell");
        judged(&text, "cmd");
        redact::redact(&text, &all_rules());
    }

    #[test]
    fn any_bytes_get_a_decision(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        judged(&text, "Bash");
        redact::redact(&text, &all_rules());
    }

    #[test]
    fn any_mix_of_shell_gets_a_decision(picks in prop::collection::vec((0..PIECES.len(), any::<bool>()), 0..60)) {
        let mut text = String::new();
        for (pick, space) in picks {
            text.push_str(PIECES[pick]);
            if space { text.push(' '); }
        }
        judged(&text, "Bash");
        judged(&text, "PowerShell");
        let steps = shell::analyse(&text, &world()).steps;
        prop_assert!(steps < 1_000_000, "{steps} steps for {text:?}");
    }

    #[test]
    fn secrets_in_any_text_are_gone(before in "\\PC{0,40}", after in "\\PC{0,40}") {
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let text = format!("{before} {secret} {after}");
        let redacted = redact::redact(&text, &RuleSet::standard()).expect("found");
        prop_assert!(!redacted.text.contains(secret), "{}", redacted.text);
    }

    #[test]
    fn tools_of_any_shape_get_a_decision(path in "\\PC{0,60}", content in "\\PC{0,200}") {
        for kind in [ToolKind::Read, ToolKind::Write, ToolKind::Edit, ToolKind::Patch, ToolKind::Delete, ToolKind::List, ToolKind::Grep, ToolKind::Fetch, ToolKind::Unknown, ToolKind::TypedInput] {
            let mut tool = ToolUse::new(kind, "x");
            tool.paths.push(path.clone());
            tool.content = Some(content.clone());
            tool.patch = Some(content.clone());
            tool.typed = Some(content.clone());
            tool.url = Some(path.clone());
            judge(&Request::before("codex", &tool), &all_rules(), &world());
        }
    }
}

/// A text by how often something is repeated in it.
type Shape = Box<dyn Fn(usize) -> String>;

/// Texts that make parsers slow.
fn shapes() -> Vec<(&'static str, Shape)> {
    let repeat = |piece: &'static str| -> Shape { Box::new(move |times| piece.repeat(times)) };
    vec![
        ("open parentheses", repeat("(")),
        ("open substitutions", repeat("$(")),
        ("open quotes", repeat("\"$(")),
        ("open braces", repeat("{")),
        ("open expansions", repeat("${x:-")),
        ("arithmetic", repeat("((")),
        ("arithmetic that is none", repeat("$((a) ")),
        ("backticks", repeat("`a`")),
        ("escaped backticks", repeat("\\`")),
        ("words", repeat("a ")),
        ("commands", repeat("ls -la a;")),
        ("pipes", repeat("a|")),
        ("long pipeline", Box::new(|times| format!("{}a", "a|".repeat(times)))),
        ("assignments", repeat("a=1 ")),
        ("variables", Box::new(|times| (0..times).map(|n| format!("v{n}=1;")).collect())),
        ("variables and subshells", Box::new(|times| (0..times).map(|n| format!("v{n}=$(a);")).collect())),
        ("growing variable", repeat("a=$a$a;")),
        ("growing words", Box::new(|times| format!("a=x;{}", "a=\"$a $a\";".repeat(times)))),
        ("brace lists", repeat("{a,b}")),
        ("brace words", repeat("{a,b} ")),
        ("globs", repeat("*")),
        ("here-documents", repeat("cat <<E\nx\nE\n")),
        ("here-documents without an end", repeat("cat <<E\n")),
        (
            "function calls",
            Box::new(|times| format!("f(){{ {} }};{}", "a;".repeat(times), "f;".repeat(times))),
        ),
        (
            "functions",
            Box::new(|times| {
                (0..times).map(|n| format!("f{n}(){{ f{};f{}; }};", n + 1, n + 1)).collect::<String>() + "f0"
            }),
        ),
        (
            "loops",
            Box::new(|times| {
                format!(
                    "{}a{}",
                    "for i in 1 2 3 4 5 6 7 8 9;do ".repeat(times.min(30)),
                    ";done".repeat(times.min(30))
                )
            }),
        ),
        ("evals", repeat("eval \"a\";")),
        ("nested shells", Box::new(|times| format!("{}a", "sh -c \\".repeat(times)))),
        ("wrappers", repeat("env ")),
        ("files", Box::new(|times| (0..times).map(|n| format!("echo a>f{n};")).collect())),
        ("appended files", repeat("echo aaaaaaaa>>f;")),
        ("links", Box::new(|times| (0..times).map(|n| format!("ln -s a{n} b{n};cat b{n};")).collect())),
        ("python", Box::new(|times| format!("python3 -c '{}'", "open(a+".repeat(times)))),
        ("python calls", Box::new(|times| format!("python3 -c '{}'", "os.system(a);".repeat(times)))),
        ("sql", Box::new(|times| format!("psql -c '{}'", "select 1;".repeat(times)))),
        ("separators", repeat(";")),
        ("newlines", repeat("\n")),
        ("comments", repeat("#\n")),
        ("case", repeat("case a in ")),
        ("branches", repeat("if a;then b=1;else b=2;fi;")),
        (
            "branches of many variables",
            Box::new(|times| {
                (0..times).map(|n| format!("if a;then v{n}=1;else w{n}=2;fi;")).collect::<String>()
                    + "rm -rf $v1"
            }),
        ),
        (
            "branches in branches",
            Box::new(|times| "if a;then b=1;".repeat(times.min(24)) + &"fi;".repeat(times.min(24))),
        ),
        ("cases", repeat("case a in a) b=1;; b) cd /;; *) c=2;; esac;")),
        ("mounts", Box::new(|times| format!("docker run {} a rm -rf /x", "-v /a:/x ".repeat(times)))),
        ("xargs", repeat("a | xargs ")),
        ("find", repeat("find / -exec ")),
        ("echo pipes", repeat("echo a | ")),
        ("printf", Box::new(|times| format!("printf '{}' {}", "%s".repeat(times), "a ".repeat(times)))),
        ("private keys", repeat("-----BEGIN ")),
        ("addresses", repeat("://")),
        ("git", repeat("git push origin a;")),
        ("a quoted text", Box::new(|times| format!("echo '{}'", "some text ".repeat(times)))),
        ("a here-document", Box::new(|times| format!("cat > f <<'E'\n{}E\n", "some text\n".repeat(times)))),
        (
            "a here-document into a shell",
            Box::new(|times| format!("sh <<'E'\n{}E\n", "echo some text\n".repeat(times))),
        ),
    ]
}

#[test]
fn work_grows_with_the_length() {
    let world = world();
    let mut wrong = Vec::new();
    for (name, shape) in shapes() {
        let small = shape(200);
        let large = shape(1600);
        let small_steps = shell::analyse(&small, &world).steps.max(1);
        let large_steps = shell::analyse(&large, &world).steps;
        let lengths = large.len() as f64 / small.len().max(1) as f64;
        let growth = large_steps as f64 / small_steps as f64;
        // Three times linear leaves room for copies. The budget ends what grows faster.
        if growth > lengths * 3.0 && large_steps < baton_guard::shell::MAX_STEPS / 2 {
            wrong.push(format!(
                "{name}: {small_steps} steps for {}, {large_steps} for {}",
                small.len(),
                large.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_too_deep_or_broken_is_asked_about() {
    for text in [
        "sh -c 'a",
        "echo $(",
        "if true; then",
        "a | | b",
        "$(".repeat(100).as_str(),
        "(".repeat(40).as_str(),
        "cat <<E | (",
        "a )",
    ] {
        let rules = RuleSet::only("block-sudo", Default::default()).expect("a rule");
        let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
        tool.command = Some(text.to_owned());
        let verdict = judge(&Request::before("claude", &tool), &rules, &world()).verdict;
        assert_eq!(verdict.decision, Decision::Ask, "{text:?}");
        assert_eq!(verdict.rule, "unknown", "{text:?}");
    }
}

/// A mebibyte of each shape ends, by the engine's own count of its work.
#[test]
fn e7_a_mebibyte_is_read_in_a_bounded_number_of_steps() {
    for (name, shape) in shapes() {
        let unit = shape(64).len().max(1);
        let times = ((64 << 20) / unit).min(1 << 20);
        let mut text = shape(times);
        let mut end = text.len().min(1 << 20);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
        tool.command = Some(text);
        let judgement = judge(&Request::before("claude", &tool), &RuleSet::standard(), &world());
        let steps = judgement.analysis.map_or(0, |analysis| analysis.steps);
        assert!(steps < 2 * baton_guard::shell::MAX_STEPS, "{name}: {steps} steps");
    }
}

/// Five nested loops over nine words cost what their body costs, and the dangerous word in one of
/// their lists is still found.
#[test]
fn loops_inside_each_other_cost_what_their_body_costs() {
    let nested = |body: &str, last: &str| {
        let heads: String =
            ["a", "b", "c", "d"].iter().map(|name| format!("for {name} in 1 2 3 4 5 6 7 8 9; do ")).collect();
        format!("{heads}for e in {last}; do {body}; done; done; done; done; done")
    };
    let judged = |text: &str| {
        let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
        tool.command = Some(text.to_owned());
        let judgement = judge(&Request::before("claude", &tool), &RuleSet::standard(), &world());
        (judgement.verdict.decision.holds(), judgement.analysis.map_or(0, |analysis| analysis.steps))
    };
    let (held, steps) = judged(&nested("echo $a $b $c $d $e", "1 2 3 4 5 6 7 8 9"));
    assert!(!held && steps < 20_000, "{held} {steps}");
    for (body, last) in [("rm -rf \"$e\"", "build dist /"), ("$e id", "ls sudo"), ("cat $e", "a b .env")] {
        assert!(judged(&nested(body, last)).0, "{body} {last}");
    }
    // A word that is put together from several loops could be anything.
    assert!(judged(&nested("$d$e id", "x y z do")).0 && judged(&nested("$a$e id", "x y z do")).0);
    for (text, is_held) in [
        ("for d in build /; do rm -rf \"$d\"; done", true),
        ("for f in a b c; do rm \"$f\"; done", false),
        ("for a in src lib; do for b in x y; do rm -rf \"$a/$b\"; done; done", false),
        ("for a in . ..; do for b in . ..; do rm -rf \"x/$a/$b\"; done; done", true),
    ] {
        assert_eq!(judged(text).0, is_held, "{text}");
    }
}
