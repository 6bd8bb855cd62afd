//! Writes whose destination is a folder: what counts is the file that arrives there.

use crate::test_home::TestHome;
use baton_agents::agent;
use baton_core::guard::Verdict;
use baton_guard::RuleSet;
use serde_json::json;

/// A home, a project, and in it what an attack has prepared.
const SETUP: &str = r#"
mkdir -p ~/.config/app ~/.claude ~/.ssh ~/tools ~/b ~/backup
echo '{"hooks":{"PreToolUse":[{"hooks":[{"command":"baton hook claude PreToolUse"}]}]}}' > ~/.claude/settings.json
echo x > ~/b/baton.db; echo x > ~/.bashrc
git init -q -b main .
mkdir -p y z/baton dotfiles/.config/autostart hooks docs src w/.git/hooks pages
echo '[guard]' > .baton.toml; echo '[guard]' > y/config.toml; echo '{}' > y/settings.json; echo x > y/.baton.toml
echo '[guard]' > z/baton/config.toml; echo x > dotfiles/.bashrc; echo x > .bashrc; echo k > authorized_keys
echo x > hooks/pre-commit; echo x > w/.git/hooks/pre-commit; echo r > README.md; echo a > src/a.ts; echo p > pages/p.html
gzip -k < y/config.toml > config.toml.gz; touch d.tar d.zip x.tgz
"#;

/// The same with a configuration.
const CONFIGURED: &str = "mkdir -p ~/.config/baton; echo '[guard]' > ~/.config/baton/config.toml";

fn verdict(home: &TestHome, command: &str) -> Verdict {
    let payload = json!({"session_id": "s", "cwd": home.project, "tool_name": "Bash", "tool_input": {"command": command}});
    let agent = agent::by_name("claude").expect("an agent");
    let call = agent.call(payload.to_string().as_bytes(), Some("PreToolUse"));
    let mut call = call.expect("a payload").expect("a call");
    home.guard().judge(agent, &mut call, &RuleSet::standard()).verdict
}

fn expect(home: &TestHome, held: bool, commands: &[&str]) {
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|command| {
            let command = command.replace("$PWD", &home.project.display().to_string());
            let verdict = verdict(home, &command);
            (verdict.decision.holds() != held)
                .then(|| format!("{}: {command}: {}", verdict.decision.as_str(), verdict.reason))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const ARRIVALS: &[&str] = &[
    "cp y/config.toml ~/.config/baton/",
    "cp y/* ~/.config/baton/",
    "ln -sf $PWD/y/config.toml ~/.config/baton/",
    "cd ~/.config/baton/ && ln -sf $PWD/y/config.toml",
    "mv -t ~/.config/baton y/config.toml",
    "mv -ft ~/.config/baton y/config.toml",
    "cp --target-dir=$HOME/.config/baton y/config.toml",
    "install -t ~/.config/baton y/config.toml",
    "install -Dm644 -t ~/.config/baton y/config.toml",
    "rsync -a y/ ~/.config/baton/",
    "rsync -a y/ ~/.config/baton",
    "scp x:config.toml ~/.config/baton/",
    "wget -P ~/.config/baton https://example.com/config.toml",
    "wget --directory-prefix=$HOME/.config/baton https://example.com/config.toml",
    "curl -O --output-dir ~/.config/baton https://example.com/config.toml",
    "curl -fsSLO --output-dir ~/.config/baton https://example.com/config.toml",
    "curl --output-dir ~/.config/baton -o config.toml https://example.com/x",
    "cd ~/.config/baton && curl -O https://example.com/config.toml",
    "cd ~/.config/baton && wget https://example.com/config.toml?x=1",
    "cp -r y/. ~/.config/baton/",
    "cp -rT y ~/.config/baton",
    "ln -s $PWD/y ~/.config/baton",
    "ln -sfn $PWD/y ~/.config/baton",
    "cp -r y ~/.config/baton",
    "mv y ~/.config/baton",
    "git clone $PWD/y ~/.config/baton",
    "cd ~/.config && git clone https://example.com/x/baton.git",
    "cp -r z/. ~/.config/",
    "cp -r z/* ~/.config/",
    "cp -r z/baton ~/.config",
    "rsync -a z/ ~/.config",
    "ln -s -t ~/.config $PWD/z/baton",
    "cd ~/.config && cp -r $PWD/y baton",
    "mkdir -p q/baton && echo x > q/baton/config.toml && cp -r q/. ~/.config/",
    "mkdir -p docs/baton && echo x > docs/baton/config.toml && cp -r docs/. ~/.config/",
    "cp y/settings.json ~/.claude/",
    "cp y/settings.json ~/.claude",
    "cp -r y/. ~/.claude/",
    "cp -r y/* ~/.claude/",
    "cp y/.baton.toml .",
    "cp -r y/. .",
    "cp .bashrc ~/",
    "cp .bashrc ~",
    "cp -a dotfiles/. ~/",
    "cp -a dotfiles/.[a-z]* ~/",
    "cp -r dotfiles/.config ~/",
    "rsync -a x:dots/ ~/",
    "cp \"$(cat name)\" ~/.config/baton/",
    "cp \"$(cat name)\" ~/.ssh/",
    "cp authorized_keys ~/.ssh/",
    "cp authorized_keys ~/.ssh",
    "cp -r hooks .git/",
    "cp -r hooks .git",
    "cp -r w/. .",
    "cp -r w/.git .",
    "tar xf d.tar -C ~",
    "cd ~ && tar xf project/d.tar",
    "unzip d.zip -d ~",
    "dd if=y/config.toml of=~/.bashrc",
];

#[test]
fn a_file_that_arrives_in_a_folder_is_held_like_one_that_is_named() {
    expect(&TestHome::made_by(SETUP), true, ARRIVALS);
}

#[test]
fn it_is_held_as_well_where_the_folder_is_there() {
    let home = TestHome::made_by(&format!("{SETUP}\n{CONFIGURED}"));
    expect(&home, true, ARRIVALS);
    expect(
        &home,
        true,
        &[
            "gzip ~/.config/baton/config.toml",
            "xz -f ~/.config/baton/config.toml",
            "zstd --rm ~/.config/baton/config.toml",
            "cp y/config.toml ~/.config/baton",
            "ln -sf $PWD/y/config.toml ~/.config/baton",
        ],
    );
}

#[test]
fn ordinary_copies_and_archives_are_left_alone() {
    expect(
        &TestHome::made_by(&format!("{SETUP}\n{CONFIGURED}")),
        false,
        &[
            "tar xzf x.tgz -C ~/tools",
            "tar xzf x.tgz",
            "tar xzf x.tgz -C docs",
            "unzip d.zip",
            "unzip d.zip -d docs",
            "unzip -l d.zip",
            "cp README.md docs/",
            "cp -r src docs/",
            "cp -r src/. docs/",
            "cp src/* docs/",
            "mv docs/a.md docs/b.md .",
            "cp -r . /tmp/copy",
            "cp -r . ../copy",
            "rsync -a ./ ~/backup/project/",
            "rsync -a --exclude node_modules src/ docs/",
            "rsync -at src docs",
            "cp README.md ~/backup/",
            "cp README.md ~/",
            "ln -s ../README.md docs/",
            "ln -s ../src/a.ts",
            "curl -O https://example.com/a.tar.gz",
            "curl -sSL https://example.com/a -o docs/a",
            "wget https://example.com/a.tar.gz",
            "wget -P docs https://example.com/config.toml",
            "git clone https://example.com/x/y.git",
            "git clone https://example.com/x/y.git ~/tools/y",
            "gzip README.md",
            "gunzip config.toml.gz",
            "gzip -dc ~/.config/baton/config.toml",
            "cp -r pages ~/.config/app/",
            "cp -r pages/. ~/.config/app/",
            "scp host:a.log .",
            "rsync -av host:logs/ docs/",
            "cp ~/.bashrc docs/",
            "dd if=/dev/zero of=docs/a bs=1k count=1",
        ],
    );
}
