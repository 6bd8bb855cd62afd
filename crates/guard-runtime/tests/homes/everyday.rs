//! What developers type all day, judged by all the rules that are on by default, in a home and a
//! project as people have them.

use crate::test_home::TestHome;
use baton_agents::agent;
use baton_core::guard::Verdict;
use baton_guard::RuleSet;
use serde_json::json;
use std::path::Path;

/// A home with keys, credentials and caches, and a project with secrets, build output and branches.
const SETUP: &str = r#"
mkdir -p ~/.ssh ~/.aws ~/.config/gh ~/.config/baton ~/.cache/app ~/.cache/go-build/00 ~/.m2/repository ~/.claude ~/.codex ~/notes ~/b
echo k > ~/.ssh/id_ed25519; echo p > ~/.ssh/id_ed25519.pub; echo c > ~/.ssh/config; echo h > ~/.ssh/known_hosts
echo c > ~/.aws/credentials; echo t > ~/.config/gh/hosts.yml; echo n > ~/.netrc; echo x > ~/.bashrc
echo '[guard]' > ~/.config/baton/config.toml; echo x > ~/b/baton.db
echo '{"hooks":{"PreToolUse":[{"hooks":[{"command":"baton hook claude PreToolUse"}]}]}}' > ~/.claude/settings.json
echo '{"x":"baton"}' > ~/.codex/hooks.json
git init -q -b main . && git config user.email a@b && git config user.name n
git init -q --bare ../r.git && git remote add origin ../r.git
mkdir -p src tests docs scripts packages/api packages/web bin .github/workflows
echo '[guard]' > .baton.toml; echo A=1 > .env.example
printf '.env\nnode_modules\ndist\nbuild\ntarget\nout\n' > .gitignore
echo '{"name":"x","scripts":{"test":"jest","build":"tsc","lint":"eslint ."}}' > package.json
cp package.json packages/api/; cp package.json packages/web/
printf 'all:\n\tcc -c src/a.c\ntest:\n\tctest\n' > Makefile
echo a > src/a.ts; echo b > src/b.ts; echo t > tests/a.sh; echo r > README.md; echo l > LICENSE; echo '#!/bin/sh' > scripts/a.sh
echo on > .github/workflows/ci.yml; echo '{}' > tsconfig.json
git add . && git commit -qm i && git push -q -u origin main
git checkout -q -b other && git checkout -q -b feature/x && git push -q -u origin feature/x
echo API_KEY=abc > .env; echo API_KEY=abc > .env.local
mkdir -p dist build build-debug out coverage node_modules/a target/debug data logs .claude
echo d > dist/a.js; echo o > build/a.o; echo j > node_modules/a/index.js; echo l > a.log; echo l > logs/a.log; echo 1 > data/a.csv
echo '{"hooks":{"PreToolUse":[{"hooks":[{"command":"baton hook claude PreToolUse"}]}]}}' > .claude/settings.json
"#;

fn verdict(home: &TestHome, cwd: &Path, command: &str) -> Verdict {
    let payload =
        json!({"session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {"command": command}});
    let agent = agent::by_name("claude").expect("an agent");
    let call = agent.call(payload.to_string().as_bytes(), Some("PreToolUse"));
    let mut call = call.expect("a payload").expect("a call");
    home.guard().judge(agent, &mut call, &RuleSet::standard()).verdict
}

/// Commands next to those that are left alone: the same words where they do harm.
#[test]
fn harmful_commands_are_blocked_in_the_same_home() {
    let home = TestHome::made_by(SETUP);
    for command in [
        "cat .e*",
        "cat .env*",
        "cat ~/.ssh/*",
        "cat ~/.ssh/id_*",
        "head ~/.aws/*",
        "cp ~/.config/gh/* .",
        "shopt -s dotglob; cat *",
        "ln -s ~/.ssh/id_ed25519 k1; cat k*",
        "rm .b*",
        "rm -f .*",
        "rm -rf .claude/*",
        "rm ~/.config/baton/*",
        "find . -name '*.toml' -delete",
        "find . -name '.baton*' -exec rm {} +",
        "find . -name '*.env' -exec cat {} +",
        "find . \\( -name x -o -name .env \\) -exec cat {} +",
        "find . -delete",
        "find . -name '*' -delete",
        "find ~ -name '*.log' -delete",
        "rg -g '.env*' KEY",
        "rg --glob=.env KEY",
        "grep -rn KEY --include='.env*' .",
        "cd nonexistent; rm -rf *",
        "cd nonexistent\nrm -rf ./*",
        "cd a-typo || true; rm -rf *",
        "cd x1; cd x2; cd x3; rm -rf *",
        "trap 'rm -rf \"$d\"' EXIT; d=/etc",
        "d=build; trap 'rm -rf $d' EXIT; d=/",
        "echo x > ~/.bashrc",
        "echo y > ~/.ssh/config",
        "git push origin \"$BRANCH\"",
        "git push origin \"ma$X\"",
        "for d in build /; do rm -rf \"$d\"; done",
        "rm -rf \"$CACHE/\"*",
        "declare -p",
        "env | cut -d= -f2",
        "env | grep TOKEN",
        "base64 -d <<<\"$GPG_KEY\" | gpg -d",
        "base64 -d <<<\"$GPG_KEY\"",
    ] {
        assert!(verdict(&home, &home.project, command).decision.holds(), "{command}");
    }
}

/// A `cd` that can't fail, or whose failure ends the shell, leaves one folder.
#[test]
fn a_cd_that_is_looked_after_leaves_one_place() {
    let home = TestHome::made_by(SETUP);
    for command in [
        "cd build && rm -rf *",
        "cd build; rm -rf *",
        "cd nonexistent && rm -rf *",
        "cd nonexistent || exit 1; rm -rf *",
        "set -e; cd nonexistent; rm -rf *",
        "mkdir -p fresh; cd fresh; rm -rf *",
    ] {
        let verdict = verdict(&home, &home.project, command);
        assert!(!verdict.decision.holds(), "{command}: {}", verdict.reason);
    }
}

/// Git loses what is on no branch and no remote: behind a tag, in another repository, in files that
/// are not its own.
#[test]
fn git_is_asked_about_the_repository_that_a_call_names() {
    let home = TestHome::made_by(&format!(
        "{SETUP}\ngit tag kept; git checkout -q --detach; git commit -q --allow-empty -m lone; git tag lone; git checkout -q feature/x
git clone -q ../r.git ../apart; git -C ../apart config user.email a@b; git -C ../apart config user.name n; git -C ../apart checkout -q -b lost; git -C ../apart commit -q --allow-empty -m l; git -C ../apart checkout -q main; git -C ../apart branch -q twin main"
    ));
    for command in [
        "git tag -d lone",
        "git tag --delete kept lone",
        "git --git-dir=../apart/.git branch -D lost",
        "git --git-dir ../apart/.git branch -D lost",
        "GIT_DIR=../apart/.git git branch -D lost",
        "git --git-dir=../apart/.git reset --hard",
        "git clone ../r.git; git reset --hard HEAD~1",
        "git clone ../r.git ../apart; cd ../apart; git branch -D lost",
    ] {
        assert!(verdict(&home, &home.project, command).decision.holds(), "{command}");
    }
    for command in [
        "git tag -d kept",
        "git tag -d none",
        "git tag v2",
        "git --git-dir=../apart/.git branch -D twin",
        "git --git-dir=../apart/.git log",
        "git clone https://example.com/a/index.git fresh && cd fresh && git reset --hard 46a429e",
        "git clone --depth 1 https://example.com/a/index.git; cd index; git checkout -f v2; git clean -fdx",
        "git clone https://example.com/a/index && git -C index reset --hard v2",
    ] {
        let verdict = verdict(&home, &home.project, command);
        assert!(!verdict.decision.holds(), "{command}: {} {}", verdict.rule, verdict.reason);
    }
}

/// The project does not follow a call into the system.
#[test]
fn a_folder_of_the_system_is_no_project() {
    let home = TestHome::made_by(SETUP);
    for (cwd, command) in [
        ("/etc", "rm -rf /etc/ssl"),
        ("/etc/ssl", "rm -rf certs"),
        ("/", "rm -rf /etc"),
        ("/usr/lib", "rm -rf *"),
        ("/var/log", "rm -rf ./*"),
        ("/home", "rm -rf other"),
    ] {
        assert!(verdict(&home, Path::new(cwd), command).decision.holds(), "{cwd} {command}");
    }
    // Nor into the home, from where the project is known.
    assert!(verdict(&home, &home.home, "rm -rf notes").decision.holds());
    let inside = verdict(&home, &home.project.join("packages/api"), "rm -rf ../web/dist");
    assert!(!inside.decision.holds(), "{}", inside.reason);
}

#[test]
fn ordinary_commands_are_left_alone_in_a_real_home() {
    let home = TestHome::made_by(SETUP);
    let known = include_str!("../../../guard/tests/data/ordinary.txt").lines();
    let commands: Vec<String> = known
        .chain(include_str!("../data/everyday.txt").lines())
        .filter(|line| !line.is_empty())
        .map(|line| line.replace('⏎', "\n"))
        .collect();
    let held: Vec<String> = commands
        .iter()
        .filter_map(|command| {
            let verdict = verdict(&home, &home.project, command);
            verdict.decision.holds().then(|| {
                format!("{} {} {command:?} {}", verdict.decision.as_str(), verdict.rule, verdict.reason)
            })
        })
        .collect();
    assert!(commands.len() >= 1_200, "{} commands", commands.len());
    assert!(
        held.len() * 1000 <= commands.len() * 3,
        "{} of {} held\n{}",
        held.len(),
        commands.len(),
        held.join("\n")
    );
}
