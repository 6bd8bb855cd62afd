//! The server as a client sees it, without any agent.

use std::io::{Read, Write};

use serde_json::Value;

use super::*;

fn post(model: &Model, path: &str, headers: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(model.address).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask_claude(model: &Model, messages: &Value) -> String {
    let body = json!({"model": "m", "stream": true, "tools": [{"name": "Bash"}], "messages": messages});
    post(model, "/v1/messages?beta=true", "X-Claude-Code-Session-Id: s1\r\n", &body)
}

fn ask_codex(model: &Model, source: &str, thread: &str, input: &Value) -> String {
    let turn =
        json!({"session_id": "s2", "thread_id": thread, "thread_source": source, "request_kind": "turn"});
    let body = json!({"input": input, "client_metadata": {"x-codex-turn-metadata": turn.to_string()}});
    post(model, "/v1/responses", "", &body)
}

#[test]
fn steps_are_given_in_turn_to_each_conversation() {
    let model = Model::start(Script::steps([Step::shell("true"), Step::say("second")]));
    let hello = json!([{"role": "user", "content": "hello"}]);
    let first = ask_claude(&model, &hello);
    assert!(first.contains(r#""name":"Bash""#) && first.contains(r#""stop_reason":"tool_use""#), "{first}");
    let other = ask_codex(&model, "user", "s2", &json!([]));
    assert!(other.contains("exec_command") && other.contains("response.completed"), "{other}");
    assert!(ask_claude(&model, &hello).contains("second"));
    assert!(ask_claude(&model, &hello).contains("script ended"));
}

#[test]
fn a_response_can_be_cut_or_fail_in_the_middle() {
    let model = Model::start(Script::steps([
        Step::say("half").cut(2),
        Step::inside("inner failure"),
        Step::say("x"),
    ]));
    let cut = ask_codex(&model, "user", "s2", &json!([]));
    assert!(cut.contains("half") && !cut.contains("response.completed"), "{cut}");
    let failed = ask_codex(&model, "user", "s2", &json!([]));
    assert!(failed.starts_with("HTTP/1.1 200") && failed.contains("inner failure"), "{failed}");
    assert!(ask_codex(&model, "user", "s2", &json!([])).contains("response.completed"));
}

#[test]
fn a_script_decides_by_what_is_shown_and_calls_mcp_tools_in_each_agents_way() {
    let model = Model::start(Script::by(|request| match request.word_after("id=") {
        Some(id) => Step::mcp("baton", "reply", json!({"id": id})),
        None => Step::say("nothing"),
    }));
    let claude = ask_claude(&model, &json!([{"role": "system", "content": "mail id=m-7, please"}]));
    assert!(
        claude.contains(r#""name":"mcp__baton__reply""#) && claude.contains(r#"{\"id\":\"m-7\"}"#),
        "{claude}"
    );
    let message = json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "id=m-8"}]});
    let codex = ask_codex(&model, "user", "s2", &json!([message]));
    assert!(codex.contains(r#""namespace":"mcp__baton""#) && codex.contains("m-8"), "{codex}");
}

#[test]
fn sightings_count_inside_one_request_and_not_the_models_own_words() {
    let model = Model::start(Script::steps([]));
    let once = json!([{"role": "user", "content": "N1"}, {"role": "assistant", "content": "N1 N1"}]);
    ask_claude(&model, &json!([{"role": "user", "content": "before"}]));
    ask_claude(&model, &once);
    ask_claude(&model, &once);
    assert_eq!(model.sightings("N1"), Sightings { first: Some(1), requests: 2, most: 1 });
    ask_claude(
        &model,
        &json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "N1"}]},
            {"type": "text", "text": "N1"},
        ]}]),
    );
    assert_eq!(model.sightings("N1").most, 2);
    assert_eq!(model.sightings("N2"), Sightings { first: None, requests: 0, most: 0 });
}

#[test]
fn main_subagent_and_side_requests_are_told_apart() {
    let model = Model::start(Script::steps([]).subagents(|_| Step::say("from below")));
    ask_claude(&model, &json!([{"role": "user", "content": "a"}]));
    post(&model, "/v1/messages", "", &json!({"messages": []}));
    let body = json!({"stream": true, "tools": [{"name": "Bash"}], "messages": []});
    let below = post(&model, "/v1/messages", "x-claude-code-agent-id: a1\r\n", &body);
    assert!(below.contains("from below"));
    ask_codex(&model, "thread_title", "s3", &json!([]));
    ask_codex(&model, "subagent", "s4", &json!([]));
    let summary = ask_claude(
        &model,
        &json!([{"role": "user", "content": "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."}]),
    );
    assert!(summary.contains("<summary>"));
    let kinds: Vec<_> = model.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::Main, Kind::Side, Kind::Subagent, Kind::Side, Kind::Subagent, Kind::Compaction]);
}

#[test]
fn results_are_those_since_the_last_prompt() {
    let model = Model::start(Script::steps([]));
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": id});
    ask_claude(
        &model,
        &json!([
            {"role": "user", "content": "one"}, {"role": "user", "content": [result("old")]},
            {"role": "user", "content": "two"}, {"role": "user", "content": [result("new")]},
        ]),
    );
    let request = &model.requests()[0];
    assert_eq!(request.last_user_text(), "two");
    assert_eq!(request.results().iter().map(|said| said.text.as_str()).collect::<Vec<_>>(), ["new"]);
}

#[test]
fn errors_delays_and_unknown_calls_are_answered() {
    let wait = Duration::from_millis(60);
    let model = Model::start(Script::steps([Step::error(529, "busy"), Step::say("late").after(wait)]));
    assert!(ask_claude(&model, &json!([])).starts_with("HTTP/1.1 529 "));
    let start = Instant::now();
    assert!(ask_claude(&model, &json!([])).contains("late"));
    assert!(start.elapsed() >= wait);
    assert!(post(&model, "/v1/messages/count_tokens", "", &json!({})).contains("input_tokens"));
    assert!(post(&model, "/else", "", &json!({})).starts_with("HTTP/1.1 404 "));
    assert_eq!(model.unknown_calls(), ["POST /else"]);
}

#[test]
fn a_hanging_answer_ends_with_the_model() {
    let model = Model::start(Script::by(|_| Step::Hang));
    let address = model.address;
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"POST /messages HTTP/1.1\r\ncontent-length: 19\r\n\r\n{\"tools\":[{\"n\":1}]}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok();
        answer
    });
    assert!(model.wait_for(crate::wait::HANG, |_| true).is_some());
    drop(model);
    assert_eq!(client.join().unwrap(), "");
}

#[test]
fn gemini_is_answered_in_its_own_words() {
    let script = Script::by(|request| match request.results().len() {
        0 => Step::parts([Part::text("calling"), Part::mcp("baton", "who", json!({"a": 1}))]),
        _ => Step::say("done"),
    })
    .subagents(|_| Step::say("from below"));
    let model = Model::start(script);
    let ask = |method: &str, tools: &Value, contents: &Value| {
        let tools = json!([{"functionDeclarations": tools}]);
        let body = json!({"contents": contents, "tools": tools, "systemInstruction": {"parts": [{"text": "be good"}]}});
        post(&model, &format!("/as/gemini/v1beta/models/m:{method}"), "", &body)
    };
    let shell = json!([{"name": "run_shell_command"}]);
    let hello = json!({"role": "user", "parts": [{"text": "hello"}]});
    let streamed = ask("streamGenerateContent?alt=sse", &shell, &json!([hello]));
    assert!(
        streamed.contains("text/event-stream") && streamed.contains(r#"{"text":"calling"}"#),
        "{streamed}"
    );
    assert!(streamed.contains(r#"{"functionCall":{"name":"mcp_baton_who","args":{"a":1}}}"#), "{streamed}");
    let call = json!({"role": "model", "parts": [{"functionCall": {"id": "c", "name": "x", "args": {}}}]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "x", "response": {"output": "RESULT"}}}]});
    let whole = ask("generateContent", &shell, &json!([hello, call, result]));
    assert!(whole.contains("application/json") && whole.contains(r#"{"text":"done"}"#), "{whole}");
    assert!(
        ask("generateContent", &json!([{"name": "a"}, {"name": "complete_task"}]), &json!([]))
            .contains("from below")
    );
    assert!(ask("generateContent", &json!([]), &json!([])).contains("Scripted test"));
    assert!(post(&model, "/v1beta/models/m:countTokens", "", &json!({})).contains("totalTokens"));

    let requests = model.requests();
    let kinds: Vec<_> = requests.iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::Main, Kind::Main, Kind::Subagent, Kind::Side]);
    assert!(requests[0].offers("run_shell_command") && requests[0].shows("be good"));
    assert_eq!(requests[1].results()[0].text, "RESULT");
    assert_eq!(model.unknown_calls(), [""; 0]);
}

#[test]
fn chunked_bodies_are_read() {
    let model = Model::start(Script::steps([Step::say("hi")]));
    let mut stream = TcpStream::connect(model.address).unwrap();
    stream
        .write_all(b"POST /messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(model.requests()[0].body, json!({"a": 1}));
}

#[test]
#[should_panic(expected = "the model's script panicked: no such luck")]
fn a_panic_in_the_script_fails_the_test() {
    let model = Model::start(Script::by(|_| panic!("no such luck")));
    assert!(ask_claude(&model, &json!([])).starts_with("HTTP/1.1 400 "));
}
