//! Rule files: errors say where, custom rules match, and a repository may only tighten.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::config::{Layer, load, merge};
use baton_guard::{Decision, FakeWorld, Request, RuleSet, judge, rules};
use proptest::prelude::*;

fn world() -> FakeWorld {
    let mut world = FakeWorld::new("/home/me/project", "/home/me");
    world.repository.branch = Some("feature".to_owned());
    world
}

fn decide(command: &str, rules: &RuleSet) -> (Decision, String) {
    let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
    tool.command = Some(command.to_owned());
    let verdict = judge(&Request::before("claude", &tool), rules, &world()).verdict;
    (verdict.decision, verdict.rule)
}

fn layer(text: &str) -> Layer {
    load(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn errors_name_their_line_and_column() {
    for (text, line, column, words) in [
        ("[guard]\nenable = [\"block-sud\"]\n", 2, 11, "no such rule"),
        ("[guard]\nunknown = \"maybe\"\n", 2, 11, "unknown must be"),
        ("[guard]\nx = 1\n", 2, 1, "no such rule or setting: x"),
        ("[guard.block-sudo]\nallowPaths = []\n", 2, 1, "takes no allowPaths"),
        (
            "[guard.sanitize-api-keys]\nadditionalPatterns = [{ regex = \"[\" }]\n",
            2,
            23,
            "not a regular expression",
        ),
        ("[[guard.rule]]\nid = \"a\"\ndecision = \"no\"\n", 3, 12, "decision must be"),
        ("[[guard.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\n", 1, 1, "something to match"),
        (
            "[[guard.rule]]\nid = \"a\"\ndecision = \"ask\"\nevent = \"after\"\nreason = \"r\"\ntool = \"x\"\n",
            3,
            12,
            "can only \"deny\" or \"note\"",
        ),
        (
            "[[guard.rule]]\nid = \"a\"\ndecision = \"deny\"\nevent = \"stop\"\nreason = \"r\"\ntool = \"x\"\n",
            1,
            1,
            "no command, path or tool",
        ),
        ("[guard\n", 1, 7, ""),
    ] {
        let error = load(text).expect_err(text);
        assert!(error.message.contains(words), "{text}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
}

#[test]
fn parameters_and_switches_hold() {
    let user = layer(
        "[guard]\nenable = [\"block-terraform\"]\ndisable = [\"block-rm-rf\"]\nunknown = \"deny\"\n\
         [guard.block-sudo]\nallowPatterns = [\"sudo systemctl status *\"]\nhint = \"Ask Ann.\"\n",
    );
    let rules = merge(&user, &[]).rules;
    assert_eq!(decide("sudo systemctl status nginx", &rules).0, Decision::Allow);
    assert_eq!(decide("sudo ls", &rules), (Decision::Deny, "block-sudo".to_owned()));
    assert_eq!(decide("terraform plan", &rules).1, "block-terraform");
    assert_eq!(decide("rm -rf /tmp/x", &rules).0, Decision::Allow);
    assert_eq!(decide("echo $(", &rules), (Decision::Deny, "unknown".to_owned()));
}

#[test]
fn custom_rules_match_by_command_argument_path_effect_tool_and_agent() {
    let user = layer(
        r#"
[[guard.rule]]
id = "no-prod"
decision = "deny"
command = "deploy **"
argument = "*prod*"
reason = "Not to production."

[[guard.rule]]
id = "generated"
decision = "ask"
path = "src/generated"
effect = ["write", "delete"]
reason = "Generated files are made by make."

[[guard.rule]]
id = "docker"
decision = "note"
command = "docker"
agent = "claude"
reason = "Use podman."

[[guard.rule]]
id = "own-reset"
decision = "allow"
command = "git reset --hard"
"#,
    );
    let rules = merge(&user, &[]).rules;
    assert_eq!(decide("sh -c 'deploy --to prod-1'", &rules), (Decision::Deny, "no-prod".to_owned()));
    assert_eq!(decide("deploy --to dev", &rules).0, Decision::Allow);
    assert_eq!(decide("cd src && echo x > generated/a.rs", &rules), (Decision::Ask, "generated".to_owned()));
    assert_eq!(decide("cat src/generated/a.rs", &rules).0, Decision::Allow);
    assert_eq!(decide("docker ps", &rules), (Decision::Note, "docker".to_owned()));
    assert_eq!(decide("git reset --hard", &rules).0, Decision::Allow, "an own allow answers an ask");
    assert_eq!(
        decide("git reset --hard; git stash clear", &rules).0,
        Decision::Ask,
        "but only what it covers"
    );
}

#[test]
fn a_repository_does_not_loosen() {
    let user = layer("[guard]\nenable = [\"block-helm\"]\n");
    let repository = layer(
        "[guard]\ndisable = [\"block-sudo\"]\nunknown = \"allow\"\n[guard.block-sudo]\nallowPatterns = [\"sudo **\"]\n\
         [guard.block-push-master]\nprotectedBranches = [\"release\"]\n[[guard.rule]]\nid = \"a\"\ndecision = \"allow\"\ncommand = \"sudo\"\n",
    );
    let merged = merge(&user, std::slice::from_ref(&repository));
    assert_eq!(decide("sudo ls", &merged.rules).0, Decision::Deny);
    assert_eq!(decide("echo $(", &merged.rules).0, Decision::Ask);
    assert_eq!(decide("git push origin main", &merged.rules).0, Decision::Deny);
    assert_eq!(decide("git push origin release", &merged.rules).0, Decision::Deny);
    assert_eq!(merged.ignored.len(), 4, "{:?}", merged.ignored);
}

fn some_layer() -> impl Strategy<Value = Layer> {
    let ids: Vec<&'static str> = rules::all().map(|rule| rule.id).collect();
    let some_ids = prop::collection::vec(prop::sample::select(ids), 0..6);
    let unknown = prop::sample::select(vec![
        "",
        "unknown = \"ask\"\n",
        "unknown = \"deny\"\n",
        "unknown = \"allow\"\n",
    ]);
    let params = prop::sample::subsequence(
        vec![
            "[guard.block-sudo]\nallowPatterns = [\"sudo **\"]\n",
            "[guard.block-rm-rf]\nallowPaths = [\"/\"]\n",
            "[guard.block-push-master]\nprotectedBranches = [\"release\"]\n",
            "[guard.block-push-master]\nprotectedBranches = []\n",
            "[guard.prefer-package-manager]\nallowed = [\"npm\"]\n",
            "[guard.prefer-package-manager]\nallowed = [\"pnpm\"]\n",
            "[[guard.rule]]\nid = \"x\"\ndecision = \"allow\"\ncommand = \"git **\"\n",
            "[[guard.rule]]\nid = \"y\"\ndecision = \"deny\"\ncommand = \"ls\"\nreason = \"r\"\n",
        ],
        0..6,
    );
    (some_ids.clone(), some_ids, unknown, params).prop_map(|(enable, disable, unknown, params)| {
        let mut seen = Vec::new();
        let mut text = format!("[guard]\nenable = {enable:?}\ndisable = {disable:?}\n{unknown}");
        for part in params {
            let head = part.lines().next().unwrap_or("").to_owned();
            if head.starts_with("[[") || !seen.contains(&head) {
                text.push_str(part);
                seen.push(head);
            }
        }
        layer(&text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_a_repository_says_no_decision_gets_weaker(user in some_layer(), repository in some_layer()) {
        let alone = merge(&user, &[]).rules;
        let both = merge(&user, std::slice::from_ref(&repository)).rules;
        for command in [
            "ls", "sudo ls", "rm -rf /", "rm -rf $X", "git push origin main", "git push origin release", "git reset --hard", "npm install", "cat .env", "echo $(", "helm ls",
            "curl x | sh", "git add -A", "pnpm install",
        ] {
            let before = decide(command, &alone).0.strength();
            let after = decide(command, &both).0.strength();
            prop_assert!(after >= before, "{command}: {before} became {after}");
        }
    }
}

#[test]
fn a_rule_of_ones_own_looks_after_a_tool_and_at_the_end_of_a_turn() {
    let user = layer(
        "[[guard.rule]]\nid = \"no-dump\"\nevent = \"after\"\ndecision = \"deny\"\ncommand = \"pg_dump **\"\nreason = \"Not into the context.\"\n\
         [[guard.rule]]\nid = \"slow\"\nevent = \"after\"\ndecision = \"note\"\ncommand = \"make **\"\nreason = \"Use ninja.\"\n\
         [[guard.rule]]\nid = \"tested\"\nevent = \"stop\"\ndecision = \"deny\"\nagent = \"codex\"\nreason = \"Run the tests.\"\n",
    );
    let rules = merge(&user, &[]).rules;
    let after = |command: &str, output: &str| {
        let mut tool = ToolUse::new(ToolKind::Shell, "Bash");
        tool.command = Some(command.to_owned());
        let verdict = judge(&Request::after("claude", &tool, output), &rules, &world()).verdict;
        (verdict.decision, verdict.rule)
    };
    let withheld = Decision::Redact("[Not into the context.]".to_owned());
    assert_eq!(after("cd x; pg_dump all", "rows"), (withheld, "no-dump".to_owned()));
    assert_eq!(after("pg_dump all", "").0, Decision::Allow, "nothing was shown");
    assert_eq!(after("make all", "x"), (Decision::Note, "slow".to_owned()));
    assert_eq!(after("ls", "x").0, Decision::Allow);
    assert_eq!(decide("pg_dump all", &rules).0, Decision::Allow, "it looks at another event");
    let stop = |agent, stops_blocked| {
        let request = Request { stops_blocked, ..Request::stop(agent) };
        judge(&request, &rules, &world()).verdict.rule
    };
    assert_eq!(stop("codex", Some(0)), "tested");
    assert_eq!(stop("codex", Some(1)), "", "it can't be known to be satisfied, so once is enough");
    assert_eq!(stop("claude", Some(0)), "");
}

/// The file that the environment names and the project's file both tighten: the second takes
/// nothing from the first.
#[test]
fn a_second_tightening_file_keeps_what_the_first_protects() {
    let branches =
        |name: &str| load(&format!("[guard.block-push-master]\nprotectedBranches = [\"{name}\"]\n")).unwrap();
    let merged = merge(&load("").unwrap(), &[branches("release"), branches("develop")]);
    let rule = merged.rules.rules.iter().find(|active| active.rule.id == "block-push-master").unwrap();
    let protected = rule.params.protected_branches.clone().unwrap();
    for branch in ["main", "master", "release", "develop"] {
        assert!(protected.iter().any(|name| name == branch), "{branch} in {protected:?}");
    }
}
