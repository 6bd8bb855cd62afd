//! The tables of tools, cell by cell: name, input, and the call that it makes.

use baton_agents::tools::{Tools, kind, tool};
use baton_agents::{ALL, claude, codex, copilot, cursor, gemini, opencode, pi};
use baton_core::tool::ToolKind::{
    self, Delete, Edit, Fetch, Glob, Grep, List, Other, Patch, Read, Search, Shell, Task, TypedInput,
    Unknown, Write,
};
use baton_core::tool::ToolUse;
use serde_json::{Value, json};

/// What a call contains beside its kind and name.
enum Says {
    Nothing,
    Paths(&'static [&'static str]),
    /// A folder that is searched, and the pattern of the files.
    Below(&'static str, &'static str),
    File(&'static str, &'static str),
    Command(&'static str),
    PatchText(&'static str),
    Url(&'static str),
    Typed(&'static str),
    /// A command, and where it runs.
    In(&'static str, &'static str),
}
use Says::{Below, Command, File, In, Nothing, PatchText, Paths, Typed, Url};

/// Names with the same meaning, an input, and the call that it makes.
type Cell = (&'static str, Value, ToolKind, Says);

fn claude_cells() -> Vec<Cell> {
    let edit = json!({"file_path": "/a", "old_string": "x", "new_string": "y"});
    let cell = json!({"notebook_path": "/a.ipynb", "new_source": "y"});
    vec![
        ("Bash PowerShell Monitor", json!({"command": "ls", "description": "d"}), Shell, Command("ls")),
        ("Read", json!({"file_path": "/a", "offset": 3}), Read, Paths(&["/a"])),
        ("NotebookRead", json!({"notebook_path": "/a.ipynb"}), Read, Paths(&["/a.ipynb"])),
        ("NotebookRead", json!({"file_path": "/a.ipynb"}), Read, Paths(&["/a.ipynb"])),
        ("Write", json!({"file_path": "/a", "content": "y"}), Write, File("/a", "y")),
        ("Edit MultiEdit", edit, Edit, File("/a", "y")),
        ("NotebookEdit", cell, Edit, File("/a.ipynb", "y")),
        ("NotebookEdit", json!({"file_path": "/a.ipynb"}), Edit, Paths(&["/a.ipynb"])),
        ("LS", json!({"path": "/d"}), List, Paths(&["/d"])),
        ("Glob", json!({"pattern": "*.rs", "path": "/d"}), Glob, Below("/d", "*.rs")),
        ("Grep", json!({"pattern": "x", "path": "/d"}), Grep, Paths(&["/d"])),
        ("Grep", json!({"pattern": "x", "path": "/d", "glob": "*.a"}), Grep, Below("/d", "*.a")),
        ("WebFetch", json!({"url": "http://h", "prompt": "p"}), Fetch, Url("http://h")),
        ("WebSearch", json!({"query": "q"}), Search, Nothing),
        ("Agent Task", json!({"prompt": "p", "description": "d"}), Task, Nothing),
        ("Workflow", json!({"scriptPath": "/w.js"}), Task, Paths(&["/w.js"])),
        ("Skill TodoWrite AskUserQuestion ToolSearch SendMessage", json!({"a": 1}), Other, Nothing),
        ("ListAgents ReportFindings TaskCreate TaskGet TaskList", json!({}), Other, Nothing),
        ("TaskUpdate TaskOutput TaskStop BashOutput KillShell", json!({}), Other, Nothing),
        ("EnterPlanMode ExitPlanMode ScheduleWakeup", json!({}), Other, Nothing),
        ("CronCreate CronDelete CronList", json!({}), Other, Nothing),
        ("EnterWorktree ExitWorktree", json!({"path": "/w"}), Other, Paths(&["/w"])),
    ]
}

fn codex_cells() -> Vec<Cell> {
    let agents = "spawn_agent send_message followup_task send_input resume_agent wait_agent close_agent";
    let glued = "multi_agent_v1send_input multi_agent_v1resume_agent multi_agent_v1wait_agent multi_agent_v1close_agent";
    vec![
        ("Bash shell local_shell", json!({"command": "ls"}), Shell, Command("ls")),
        ("shell", json!({"command": ["bash", "-lc", "ls"]}), Shell, Command("'bash' '-lc' 'ls'")),
        ("Bash shell local_shell", json!({"command": "ls", "workdir": "/d"}), Shell, In("ls", "/d")),
        ("exec_command", json!({"cmd": "ls", "tty": true}), Shell, Command("ls")),
        ("exec_command", json!({"cmd": "ls", "workdir": "/d"}), Shell, In("ls", "/d")),
        ("write_stdin", json!({"chars": "rm x\n", "session_id": 1}), TypedInput, Typed("rm x\n")),
        ("view_image", json!({"path": "/a.png"}), Read, Paths(&["/a.png"])),
        ("apply_patch", json!({"command": "*** Begin Patch"}), Patch, PatchText("*** Begin Patch")),
        ("apply_patch", json!("*** Begin Patch"), Patch, PatchText("*** Begin Patch")),
        ("web_search", json!({}), Search, Nothing),
        (agents, json!({"message": "m"}), Task, Nothing),
        (glued, json!({"target": "t"}), Task, Nothing),
        ("update_plan request_user_input get_goal create_goal update_goal", json!({}), Other, Nothing),
    ]
}

fn gemini_cells() -> Vec<Cell> {
    let replace = json!({"file_path": "/a", "old_string": "x", "new_string": "y"});
    vec![
        ("run_shell_command", json!({"command": "ls", "description": "d"}), Shell, Command("ls")),
        ("run_shell_command", json!({"command": "ls", "dir_path": "/d"}), Shell, In("ls", "/d")),
        ("run_shell_command", json!({"command": "ls", "directory": "/d"}), Shell, In("ls", "/d")),
        ("read_file", json!({"file_path": "/a"}), Read, Paths(&["/a"])),
        ("read_file", json!({"absolute_path": "/a"}), Read, Paths(&["/a"])),
        ("read_many_files", json!({"paths": ["/a", "/b"]}), Read, Paths(&["/a", "/b"])),
        ("read_many_files", json!({"include": ["src/**"]}), Read, Paths(&["src/**"])),
        ("write_file", json!({"file_path": "/a", "content": "y"}), Write, File("/a", "y")),
        ("replace", replace, Edit, File("/a", "y")),
        ("list_directory", json!({"dir_path": "/d"}), List, Paths(&["/d"])),
        ("list_directory", json!({"path": "/d"}), List, Paths(&["/d"])),
        ("glob", json!({"pattern": "*", "dir_path": "/d"}), Glob, Below("/d", "*")),
        ("glob", json!({"pattern": "*", "path": "/d"}), Glob, Below("/d", "*")),
        ("grep_search search_file_content", json!({"dir_path": "/d"}), Grep, Paths(&["/d"])),
        ("grep_search search_file_content", json!({"path": "/d"}), Grep, Paths(&["/d"])),
        ("grep_search", json!({"dir_path": "/d", "include": "*.a"}), Grep, Below("/d", "*.a")),
        ("grep_search", json!({"dir_path": "/d", "include_pattern": "*.a"}), Grep, Below("/d", "*.a")),
        ("web_fetch", json!({"prompt": "read http://h"}), Fetch, Url("read http://h")),
        ("google_web_search", json!({"query": "q"}), Search, Nothing),
        ("invoke_agent", json!({"agent_name": "a", "prompt": "p"}), Task, Nothing),
        ("write_todos save_memory ask_user update_topic activate_skill", json!({}), Other, Nothing),
        ("enter_plan_mode exit_plan_mode", json!({}), Other, Nothing),
        ("list_background_processes read_background_output", json!({"pid": 1}), Other, Nothing),
    ]
}

fn opencode_cells() -> Vec<Cell> {
    let edit = json!({"filePath": "/a", "oldString": "x", "newString": "y"});
    vec![
        ("bash", json!({"command": "ls", "workdir": "/d"}), Shell, In("ls", "/d")),
        ("read", json!({"filePath": "/a"}), Read, Paths(&["/a"])),
        ("write", json!({"filePath": "/a", "content": "y"}), Write, File("/a", "y")),
        ("edit", edit, Edit, File("/a", "y")),
        ("apply_patch patch", json!({"patchText": "*** Begin"}), Patch, PatchText("*** Begin")),
        ("list", json!({"path": "/d"}), List, Paths(&["/d"])),
        ("glob", json!({"pattern": "*", "path": "/d"}), Glob, Below("/d", "*")),
        ("grep", json!({"pattern": "x", "path": "/d"}), Grep, Paths(&["/d"])),
        ("grep", json!({"path": "/d", "include": "*.a"}), Grep, Below("/d", "*.a")),
        ("webfetch", json!({"url": "http://h"}), Fetch, Url("http://h")),
        ("websearch", json!({"query": "q"}), Search, Nothing),
        // Not a shell command.
        ("task", json!({"prompt": "p", "command": "review"}), Task, Nothing),
        ("todowrite todoread skill question", json!({}), Other, Nothing),
    ]
}

fn copilot_cells() -> Vec<Cell> {
    vec![
        ("bash powershell Bash", json!({"command": "ls", "description": "d"}), Shell, Command("ls")),
        ("write_bash write_powershell", json!({"input": "y{enter}"}), TypedInput, Typed("y{enter}")),
        ("view show_file read Read", json!({"path": "/a"}), Read, Paths(&["/a"])),
        ("create write Write", json!({"path": "/a", "file_text": "y"}), Write, File("/a", "y")),
        ("edit str_replace_editor Edit", json!({"path": "/a", "new_str": "y"}), Edit, File("/a", "y")),
        ("str_replace_editor", json!({"path": "/a", "file_text": "y"}), Edit, File("/a", "y")),
        ("Edit", json!({"patch": "*** Begin"}), Edit, PatchText("*** Begin")),
        ("Edit", json!({"input": "*** Begin"}), Edit, PatchText("*** Begin")),
        ("Edit", json!("*** Begin"), Edit, PatchText("*** Begin")),
        ("apply_patch", json!({"patch": "*** Begin"}), Patch, PatchText("*** Begin")),
        ("apply_patch", json!({"input": "*** Begin"}), Patch, PatchText("*** Begin")),
        ("apply_patch", json!("*** Begin"), Patch, PatchText("*** Begin")),
        ("ls", json!({"path": "/d"}), List, Paths(&["/d"])),
        ("glob Glob", json!({"pattern": "*", "paths": "/d"}), Glob, Below("/d", "*")),
        ("glob Glob", json!({"pattern": "*", "path": "/d"}), Glob, Below("/d", "*")),
        ("grep rg Grep", json!({"pattern": "x", "paths": ["/d", "/e"]}), Grep, Paths(&["/d", "/e"])),
        ("grep rg Grep", json!({"pattern": "x", "path": "/d"}), Grep, Paths(&["/d"])),
        ("grep rg Grep", json!({"path": "/d", "glob": "*.a"}), Grep, Below("/d", "*.a")),
        ("web_fetch WebFetch", json!({"url": "http://h"}), Fetch, Url("http://h")),
        ("web_search WebSearch", json!({"query": "q"}), Search, Nothing),
        ("task Agent read_agent write_agent list_agents", json!({"prompt": "p"}), Task, Nothing),
        ("read_bash stop_bash list_bash", json!({"shellId": "1"}), Other, Nothing),
        ("read_powershell stop_powershell list_powershell", json!({"shellId": "1"}), Other, Nothing),
        ("skill sql session_store_sql fetch_copilot_cli_documentation", json!({}), Other, Nothing),
        ("update_todo TodoWrite ask_user AskUserQuestion", json!({}), Other, Nothing),
    ]
}

fn cursor_cells() -> Vec<Cell> {
    vec![
        ("Shell", json!({"command": "ls"}), Shell, Command("ls")),
        ("Shell", json!({"command": "ls", "working_directory": "/d"}), Shell, In("ls", "/d")),
        ("Shell", json!({"command": "ls", "cwd": "/d"}), Shell, In("ls", "/d")),
        ("Read", json!({"path": "/a"}), Read, Paths(&["/a"])),
        ("Read", json!({"file_path": "/a"}), Read, Paths(&["/a"])),
        ("Read", json!({"target_file": "/a"}), Read, Paths(&["/a"])),
        ("Write", json!({"path": "/a", "content": "y"}), Write, File("/a", "y")),
        ("Write", json!({"file_path": "/a"}), Write, Paths(&["/a"])),
        ("Write", json!({"target_file": "/a"}), Write, Paths(&["/a"])),
        ("Delete", json!({"path": "/a"}), Delete, Paths(&["/a"])),
        ("Grep", json!({"pattern": "x", "path": "/d"}), Grep, Paths(&["/d"])),
        ("Grep", json!({"pattern": "x", "path": "/d", "glob": "*.a"}), Grep, Below("/d", "*.a")),
        ("Task", json!({"prompt": "p"}), Task, Nothing),
    ]
}

fn pi_cells() -> Vec<Cell> {
    vec![
        ("bash user_bash", json!({"command": "ls"}), Shell, Command("ls")),
        ("read", json!({"path": "/a"}), Read, Paths(&["/a"])),
        ("write", json!({"path": "/a", "content": "y"}), Write, File("/a", "y")),
        ("edit", json!({"path": "/a", "edits": []}), Edit, Paths(&["/a"])),
        ("ls", json!({"path": "/d"}), List, Paths(&["/d"])),
        ("find", json!({"pattern": "*", "path": "/d"}), Glob, Below("/d", "*")),
        ("grep", json!({"pattern": "x", "path": "/d"}), Grep, Paths(&["/d"])),
        ("grep", json!({"path": "/d", "glob": "*.a"}), Grep, Below("/d", "*.a")),
    ]
}

fn expected(kind: ToolKind, name: &str, says: &Says) -> ToolUse {
    let mut call = ToolUse::new(kind, name);
    match *says {
        Nothing => {}
        Paths(paths) => call.paths = paths.iter().map(|path| (*path).to_owned()).collect(),
        Below(path, glob) => {
            call.paths = vec![path.to_owned()];
            call.globs = vec![glob.to_owned()];
        }
        File(path, content) => {
            call.paths = vec![path.to_owned()];
            call.content = Some(content.to_owned());
        }
        Command(text) => call.command = Some(text.to_owned()),
        PatchText(text) => call.patch = Some(text.to_owned()),
        Url(text) => call.url = Some(text.to_owned()),
        Typed(text) => call.typed = Some(text.to_owned()),
        In(text, folder) => {
            call.command = Some(text.to_owned());
            call.folder = Some(folder.to_owned());
        }
    }
    call
}

fn agents() -> [(&'static str, &'static Tools, Vec<Cell>); 7] {
    [
        ("claude", &claude::tools::TOOLS, claude_cells()),
        ("codex", &codex::tools::TOOLS, codex_cells()),
        ("gemini", &gemini::tools::TOOLS, gemini_cells()),
        ("opencode", &opencode::tools::TOOLS, opencode_cells()),
        ("copilot", &copilot::tools::TOOLS, copilot_cells()),
        ("cursor", &cursor::tools::TOOLS, cursor_cells()),
        ("pi", &pi::tools::TOOLS, pi_cells()),
    ]
}

#[test]
fn every_cell_of_the_tables_means_what_it_says() {
    for (agent, tools, cells) in agents() {
        for (names, input, kind, says) in &cells {
            for name in names.split(' ') {
                assert_eq!(
                    tool(tools, name, input, &[]),
                    expected(kind.clone(), name, says),
                    "{agent} {name}"
                );
            }
        }
    }
}

#[test]
fn no_cell_of_the_tables_is_without_a_test() {
    for (agent, tools, cells) in agents() {
        let tested: Vec<(&str, &Value)> =
            cells.iter().flat_map(|cell| cell.0.split(' ').map(|name| (name, &cell.1))).collect();
        for row in tools.rows {
            for name in row.names {
                assert!(tested.iter().any(|(tested, _)| tested == name), "{agent} {name}");
            }
            for (_, field) in row.fields {
                let holds =
                    |(name, input): &(&str, &Value)| row.names.contains(name) && input.get(field).is_some();
                assert!(tested.iter().any(holds), "{agent} {:?} {field}", row.names);
            }
        }
    }
}

#[test]
fn a_known_tool_without_its_field_is_not_understood() {
    for (agent, tools, cells) in agents() {
        for (names, input, kind, _) in &cells {
            if !matches!(kind, Shell | Read | Write | Edit | Delete | Patch | Fetch) {
                continue;
            }
            for name in names.split(' ') {
                let why = |input: &Value| tool(tools, name, input, &[]).unread;
                assert_eq!(why(input), None, "{agent} {name} {input}");
                let renamed = json!({"other": "x", "extra": {"value": input}});
                assert!(why(&renamed).is_some(), "{agent} {name}");
                for odd in [json!({}), json!(null), json!(7), json!([])] {
                    assert!(why(&odd).is_some(), "{agent} {name} {odd}");
                }
                let Value::Object(fields) = input else { continue };
                for odd in [json!(7), json!({"text": "x"}), json!([["x"]])] {
                    let odd: serde_json::Map<String, Value> =
                        fields.keys().map(|key| (key.clone(), odd.clone())).collect();
                    assert!(why(&Value::Object(odd)).is_some(), "{agent} {name}");
                }
            }
        }
    }
}

#[test]
fn what_looks_like_a_field_is_found_under_another_name_and_deeper() {
    for (agent, tools, _) in agents() {
        for input in [
            json!({"script": "sudo id"}),
            json!({"cmd": "sudo id"}),
            json!({"params": {"command": "sudo id"}}),
            json!({"calls": [{"input": {"argv": "sudo id"}}]}),
        ] {
            let shell = tools.rows.iter().find(|row| row.kind == Shell).unwrap();
            let known = shell.names.first().unwrap();
            for name in ["elsewhere", known] {
                assert_eq!(
                    tool(tools, name, &input, &[]).command.as_deref(),
                    Some("sudo id"),
                    "{agent} {name} {input}"
                );
            }
        }
        let words = json!({"command": "sudo", "args": ["rm", "a b"]});
        assert_eq!(
            tool(tools, "elsewhere", &words, &[]).command.as_deref(),
            Some("sudo 'rm' 'a b'"),
            "{agent}"
        );
        for input in [json!({"uri": "/a"}), json!({"filename": "/a"}), json!({"files": [{"path": "/a"}]})] {
            assert_eq!(tool(tools, "elsewhere", &input, &[]).paths, ["/a"], "{agent} {input}");
        }
    }
}

#[test]
fn a_name_is_in_one_row_only() {
    for (agent, tools, _) in agents() {
        let mut names: Vec<&str> = tools.rows.iter().flat_map(|row| row.names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{agent}");
    }
}

#[test]
fn every_agent_that_baton_speaks_to_has_its_own_table() {
    for agent in ALL {
        let (_, tools, _) = agents().into_iter().find(|(name, ..)| *name == agent.name()).unwrap();
        assert!(std::ptr::eq(agent.tools(), tools), "{}", agent.name());
    }
}

fn mcp(server: &str, tool: &str) -> ToolKind {
    let server = (!server.is_empty()).then(|| server.to_owned());
    ToolKind::Mcp { server, tool: tool.to_owned() }
}

#[test]
fn tools_of_servers_are_recognised_by_each_agents_spelling() {
    let rows: &[(&Tools, &str, &[&str], ToolKind)] = &[
        (&claude::tools::TOOLS, "mcp__git__log", &[], mcp("git", "log")),
        (&claude::tools::TOOLS, "mcp__a__b__c", &[], mcp("a", "b__c")),
        (&claude::tools::TOOLS, "mcp__a__b__c", &["a", "a__b"], mcp("a__b", "c")),
        (&claude::tools::TOOLS, "mcp____c", &[], Unknown),
        (&claude::tools::TOOLS, "mcp__git__", &[], Unknown),
        (&claude::tools::TOOLS, "git_log", &["git"], Unknown),
        (&codex::tools::TOOLS, "mcp__git__log", &[], mcp("git", "log")),
        (&pi::tools::TOOLS, "mcp__git__log", &[], mcp("git", "log")),
        (&gemini::tools::TOOLS, "mcp_git_log_all", &[], mcp("git", "log_all")),
        (&gemini::tools::TOOLS, "mcp_git_log_all", &["git_log"], mcp("git_log", "all")),
        // Without knowing the servers, it may be one of OpenCode's own tools.
        (&opencode::tools::TOOLS, "git_log", &[], Unknown),
        (&opencode::tools::TOOLS, "git_log", &["git"], mcp("git", "log")),
        (
            &opencode::tools::TOOLS,
            "probe-srv_echo_msg",
            &["probe-srv", "probe"],
            mcp("probe-srv", "echo_msg"),
        ),
        (&opencode::tools::TOOLS, "apply_patch", &["apply"], Patch),
        (&copilot::tools::TOOLS, "git-log", &[], Unknown),
        (&copilot::tools::TOOLS, "git-log", &["git"], mcp("git", "log")),
        (&copilot::tools::TOOLS, "my-git-log", &["my", "my-git"], mcp("my-git", "log")),
        (&copilot::tools::TOOLS, "git/log", &[], mcp("git", "log")),
        (&cursor::tools::TOOLS, "MCP:log", &[], mcp("", "log")),
        (&cursor::tools::TOOLS, "MCP:", &[], Unknown),
    ];
    for (tools, name, servers, expected) in rows {
        assert_eq!(kind(tools, name, servers), *expected, "{name} {servers:?}");
    }
}

#[test]
fn an_unknown_tool_is_unknown_and_shows_its_fields() {
    let input = json!({
        "command": "rm x", "filePath": "/a", "files": ["/b", 7, ""], "url": "http://h", "content": "y",
        "patchText": "*** Begin", "chars": "q", "path": {"not": "text"},
    });
    for (agent, tools, _) in agents() {
        let call = tool(tools, "Bash2", &input, &[]);
        let mut expected = ToolUse::new(Unknown, "Bash2");
        expected.paths = vec!["/a".to_owned(), "/b".to_owned()];
        expected.command = Some("rm x".to_owned());
        expected.patch = Some("*** Begin".to_owned());
        expected.content = Some("y".to_owned());
        expected.url = Some("http://h".to_owned());
        expected.typed = Some("q".to_owned());
        assert_eq!(call, expected, "{agent}");
        for input in [json!(null), json!([]), json!("text"), json!(3), json!({})] {
            assert_eq!(tool(tools, "", &input, &[]), ToolUse::new(Unknown, ""), "{agent} {input}");
        }
    }
}
