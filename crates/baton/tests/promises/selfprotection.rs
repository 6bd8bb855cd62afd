//! What protects baton itself, judged by the program on a real home: files by where they lead,
//! command lines by baton's own parser.

use crate::world::{World, program, run};
use serde_json::{Value, json};
use std::fs;

/// A home that is set up, with what an attack needs.
fn world() -> World {
    let world = World::new();
    world.configure("[guard]\nmode = \"on\"\n");
    world.script(&["setup", "claude"]).expect(0);
    world.script(&["send", "user", "hi"]);
    let home = world.path("home");
    fs::write(world.project().join(".baton.toml"), "[guard]\n").unwrap();
    fs::write(world.project().join("evil"), "[guard]\nmode = \"off\"\n").unwrap();
    fs::write(world.project().join("evil.patch"), "--- a/.baton.toml\n+++ b/.baton.toml\n").unwrap();
    fs::write(world.project().join("off.json"), "{\"disableAllHooks\": true}").unwrap();
    fs::hard_link(home.join(".config/baton/config.toml"), world.project().join("hard")).unwrap();
    std::os::unix::fs::symlink(home.join(".config/baton"), world.project().join("soft")).unwrap();
    fs::copy(program(), world.project().join("b")).unwrap();
    world
}

fn judged(world: &World, tool: &str, input: Value) -> String {
    let payload = json!({
        "session_id": "s", "cwd": world.project(), "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
    });
    let check = world.baton(&["guard", "check", "--only", "protect-baton", "--json"]);
    run(check, payload.to_string().as_bytes()).expect(0).json()["decision"].as_str().unwrap().to_owned()
}

fn expect(world: &World, held: bool, commands: &[&str]) {
    let home = world.home().display().to_string();
    let mut wrong = Vec::new();
    for command in commands {
        let command = command.replace("STATE", &home).replace("PROGRAM", program());
        let decision = judged(world, "Bash", json!({"command": command}));
        if (decision == "deny" || decision == "ask") != held {
            wrong.push(format!("{decision}: {command}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn s9_no_way_to_write_what_is_batons_is_open() {
    expect(
        &world(),
        true,
        &[
            "ln -sf evil ~/.config/baton/config.toml",
            "cd ~/.config/baton && ln -sf /dev/null config.toml",
            "cp -l ~/.config/baton/config.toml x && echo > x",
            "ln ~/.config/baton/config.toml x",
            "echo > hard",
            "sed -i s/on/off/ soft/config.toml",
            "perl -i -pe 's/on/off/' ~/.config/baton/config.toml",
            "perl -pi -e 's/baton/true/' ~/.claude/settings.json",
            "ruby -i -pe '1' ~/.config/baton/config.toml",
            "printf '%s\\n' '1d' w q | ed ~/.config/baton/config.toml",
            "ex -s -c '%d' -c wq ~/.config/baton/config.toml",
            "vim -es -c '%d' -c wq ~/.config/baton/config.toml",
            "tar -C ~/.config/baton -xf x.tar",
            "tar xf x.tar -C ~/.config",
            "tar -xf x.tar --directory=STATE",
            "tar xf x.tar -C ~ .config/baton/config.toml",
            "unzip -o x.zip -d ~/.config/baton",
            "cd ~/.config/baton && unzip x.zip",
            "cd ~/.config/baton; cpio -i < x.cpio",
            "7z x x.7z -o$HOME/.config/baton",
            "git -C ~/.config/baton checkout .",
            "git checkout HEAD~1 -- .baton.toml",
            "git restore .baton.toml",
            "git apply evil.patch",
            "patch -p1 < evil.patch",
            "patch -p1 -i evil.patch",
            "sqlite3 file:STATE/baton.db 'delete from x'",
            "sqlite3 'file:STATE/baton.db?mode=rw' 'delete from x'",
            "sqlite3 -cmd '.open STATE/baton.db' :memory: 'delete from x'",
            "sqlite3 :memory: \"attach 'STATE/baton.db' as b; delete from b.x\"",
            "echo \".open STATE/baton.db\" | sqlite3",
            "python3 -c \"import sqlite3; sqlite3.connect('STATE/baton.db').execute('delete from x')\"",
            "python3 -c \"open('$HOME/.config/baton/config.toml','w').write('')\"",
            "rm STATE/guard.log",
            "mount --bind /tmp/x ~/.config/baton",
            "mv STATE /tmp/x",
            "rm PROGRAM",
            "rm \"$(command -v baton)\"",
            "mv $(which baton) /tmp/x",
            "cp evil PROGRAM",
            "chmod -x PROGRAM",
            "chmod 000 PROGRAM",
            "ln -sf /bin/true PROGRAM",
            "cp PROGRAM /tmp/b",
            "kill $(pgrep baton)",
            "pgrep -f 'baton mcp' | xargs kill -9",
            "pkill -f 'bat[o]n'",
            "killall -r 'bato.'",
            "systemctl --user stop baton.service",
            "./b setup --remove",
            "PROGRAM setup --remove",
            "claude mcp remove baton",
            "codex mcp remove baton",
            "gemini hooks disable baton",
            "claude --settings '{\"disableAllHooks\":true}' -p hi",
            "claude --settings off.json -p hi",
            "claude --bare -p hi",
            "codex exec -c features.hooks=false hi",
            "codex --disable hooks exec hi",
            "echo '{\"disableAllHooks\": true}' > .claude/settings.local.json",
            "jq '.disableAllHooks = true' .claude/settings.json > t && mv t .claude/settings.json",
            "echo '{\"hooksConfig\":{\"enabled\":false}}' > .gemini/settings.json",
            "unset BATON_READ_ONLY; claude -p hi",
            "env -u BATON_JOB baton job start claude hi",
        ],
    );
}

#[test]
fn s9_a_switch_that_turns_hooks_off_is_written_by_no_tool() {
    let world = world();
    for (tool, input) in [
        (
            "Write",
            json!({"file_path": ".claude/settings.local.json", "content": "{\"disableAllHooks\": true}"}),
        ),
        (
            "Write",
            json!({"file_path": ".claude/settings.json", "content": "{\n \"disableAllHooks\" : true\n}"}),
        ),
        (
            "Edit",
            json!({"file_path": ".claude/settings.local.json", "old_string": "{", "new_string": "{\"disableAllHooks\":true,"}),
        ),
        ("Write", json!({"file_path": "hard", "content": ""})),
        ("Write", json!({"file_path": "soft/config.toml", "content": ""})),
    ] {
        assert_eq!(judged(&world, tool, input.clone()), "deny", "{input}");
    }
    for (tool, input) in [
        ("Write", json!({"file_path": ".claude/settings.local.json", "content": "{\"model\": \"x\"}"})),
        ("Write", json!({"file_path": "notes.md", "content": "disableAllHooks: true turns hooks off"})),
        ("Read", json!({"file_path": ".baton.toml"})),
    ] {
        assert_eq!(judged(&world, tool, input.clone()), "allow", "{input}");
    }
}

#[test]
fn s7_the_guard_reads_batons_whole_command_line() {
    expect(
        &world(),
        true,
        &[
            "env -i HOME=$HOME setsid -f script -qc \"baton --home STATE approve ID\" /dev/null",
            "baton --home STATE guard disable block-sudo",
            "baton --json --as user approve ID",
            "baton guard --home=/x disable block-sudo",
            "baton approve $ID",
            "baton who --as user",
            "tmux new-window 'baton approve X'",
            "tmux send-keys -t %1 'baton approve X' Enter",
            "tmux send-keys -t %1 'baton app' 'rove X' Enter",
            "screen -X stuff 'baton approve X\\n'",
            "echo 'baton approve X' | at now",
            "at now <<< 'baton approve X'",
            "systemd-run --user baton approve X",
            "ssh localhost baton approve X",
            "xdotool type 'baton approve X'",
            "ulimit -x unlimited",
            "prlimit --locks=unlimited --pid $$",
            "gdb -p $(pgrep baton)",
            "./b approve X",
            "socat exec:'baton approve X',pty -",
            "crontab - <<< '* * * * * baton approve X'",
            "tmux set-buffer 'baton approve X'",
            "expect -c 'spawn baton approve X'",
            "python3 -c \"import pty; pty.spawn(['baton','approve','X'])\"",
            "ln -s PROGRAM /tmp/q; /tmp/q approve X",
            "$(command -v baton) approve X",
            "\"$(which baton)\" guard disable block-sudo",
            "baton hook claude < x.json",
            "baton mcp --agent codex",
            "baton job-worker x",
            "baton $VERB x",
            "baton setup",
            "baton doctor --fix",
            "baton send otter hi --urgent",
        ],
    );
}

#[test]
fn s4_baton_without_the_marks_of_a_job_is_kept_from_agents() {
    expect(
        &world(),
        true,
        &[
            "env -i HOME=$HOME PATH=$PATH setsid -f baton job start claude three --allow ask",
            "env - HOME=$HOME baton job start claude hi",
            "env --ignore-environment baton job start claude hi",
            "env -vi PATH=$PATH baton job start claude hi",
            "/usr/bin/env -i setsid -f PROGRAM job start claude hi",
            "setsid -f env -i bash -c 'cd /tmp && baton job start claude hi'",
            "exec -c baton job start claude hi",
            "(exec -cl baton run claude hi)",
            "env -i -S 'baton job start claude hi'",
            "env -i PATH=/opt/baton/bin baton job start claude hi",
            "unset BATON_JOB_DEPTH; baton job start claude hi",
        ],
    );
    expect(
        &world(),
        false,
        &[
            "env -i PATH=$PATH make test",
            "env -i HOME=/home/me/baton ls",
            "env -i PATH=$PATH make test; baton who",
            "env -i PATH=/opt/baton/bin:/usr/bin make test; baton who",
            "env LANG=C baton who",
            "setsid -f baton job start claude hi",
        ],
    );
}

#[test]
fn s7_what_agents_do_with_baton_every_day_is_left_alone() {
    expect(
        &world(),
        false,
        &[
            "baton who",
            "baton send otter \"$MSG\"",
            "baton send otter 'please approve and setup --remove'",
            "baton inbox --json",
            "baton guard list",
            "baton guard disable --help",
            "baton --version",
            "tmux new -d -s baton",
            "tmux new-session -c ~/src/baton 'make test'",
            "baton setup --dry-run",
            "baton job start codex 'write tests' --read-only",
            "baton job wait $JOB",
            "cat ~/.config/baton/config.toml",
            "git checkout main",
            "git stash pop",
            "git pull",
            "git apply other.patch",
            "tar xzf src.tar.gz",
            "unzip x.zip -d build",
            "patch -p1 < other.patch",
            "sqlite3 app.db 'delete from x'",
            "kill $(pgrep node)",
            "pkill -f vite",
            "systemctl --user stop redis",
            "claude -p hi",
            "claude mcp list",
            "codex exec hi",
            "grep -r disableAllHooks .",
            "ulimit -n 4096",
            "perl -i -pe 's/a/b/' src/a.txt",
            "vim src/a.txt",
            "chmod -x script.sh",
            "python3 -c \"open('out.txt','w').write('baton')\"",
        ],
    );
}
