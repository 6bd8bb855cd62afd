//! Asks, and waits for answers.

use crate::client::Client;
use crate::world::{CLAUDE, CODEX, World, bodies, send, until};
use baton_core::limits;
use baton_core::mail::Delivery;
use baton_core::time::Span;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Asks as Claude Code. Returns the request, and the question's id once it waits for Codex.
fn ask(world: &World, claude: &mut Client, arguments: Value) -> (u64, String) {
    let body = arguments["body"].as_str().expect("a body").to_owned();
    let request = claude.begin("ask_peer", arguments);
    (request, question(world, &body))
}

/// The id of the question that waits for Codex.
fn question(world: &World, body: &str) -> String {
    let store = world.store();
    let codex = store.participant_of(Some("codex"), CODEX).expect("a store").expect("Codex").0.id;
    let mut found = None;
    until("the question is there", || {
        let peeked = store.peek(codex, baton_machine::clock::now(), 10, &|_| true).expect("a store");
        found = peeked
            .letters
            .into_iter()
            .find(|(_, letter)| letter.ask && letter.body == body)
            .map(|(_, letter)| letter.id.to_string());
        found.is_some()
    });
    found.expect("it was found")
}

fn reply(codex: &mut Client, question: &str, body: &str) -> String {
    let replied = codex.call("reply_to_message", json!({"message_id": question, "body": body})).ok();
    replied["message_id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_answer_comes_back_alone_and_other_mail_stays() {
    let (world, mut claude, mut codex) = World::with_two();
    let (request, id) = ask(&world, &mut claude, json!({"to": "agent:codex", "body": "how many?"}));
    let other = send(&mut codex, CLAUDE, "something else");
    let asked = codex.call("read_messages", json!({})).ok();
    assert_eq!(asked["messages"][0]["request_id"], json!(id.replacen('m', "r", 1)));
    let answer_id = reply(&mut codex, &id, "seven");

    let answer = claude.finish(request).ok();
    assert_eq!(answer["answered"], json!(true));
    assert_eq!(answer["message_id"], json!(id));
    assert_eq!(answer["reply"]["body"], "seven");
    assert_eq!(answer["reply"]["message_id"], json!(answer_id));
    assert_eq!(answer["reply"]["reply_to"], json!(id));
    assert_eq!(answer["reply"]["from"], CODEX);
    assert_eq!(answer.as_object().unwrap().keys().next_back().unwrap(), "offer");
    assert_eq!(world.state(&answer_id), Delivery::Offered);

    let read = claude.call("read_messages", json!({})).ok();
    assert_eq!(read["messages"][0]["message_id"], json!(other));
    assert_eq!(read["messages"].as_array().unwrap().len(), 1);

    let transcript = world.transcript(CLAUDE);
    transcript.claude_prompt("p1");
    transcript.claude_calls("r1", &Client::call_id(request));
    transcript.claude_result(&Client::call_id(request), &answer.to_string());
    transcript.claude_says("r2");
    claude.call("read_messages", json!({})).ok();
    assert_eq!(world.state(&answer_id), Delivery::Seen);
}

#[test]
fn the_bell_brings_the_answer_and_not_the_sweep() {
    let (world, mut claude, mut codex) = World::with_two();
    let mut waits = Vec::new();
    for round in 0..5 {
        let (request, id) = ask(&world, &mut claude, json!({"to": CODEX, "body": format!("round {round}")}));
        reply(&mut codex, &id, "here");
        let replied = Instant::now();
        assert_eq!(claude.finish(request).ok()["answered"], json!(true));
        waits.push(replied.elapsed());
    }
    // The machine may be busy for one of them, and not for all.
    assert!(waits.iter().min().unwrap() < &(limits::SWEEP_INTERVAL.to_std() / 2), "{waits:?}");
}

#[test]
fn after_a_time_out_the_answer_comes_as_mail() {
    let (world, mut claude, mut codex) = World::with_two();
    let asked = claude.call("ask_peer", json!({"to": CODEX, "body": "?", "timeout": "50ms"})).ok();
    assert_eq!(asked["answered"], json!(false));
    let request = asked["request_id"].as_str().unwrap();
    assert!(asked["hint"].as_str().unwrap().contains(&format!("resume {request}")), "{asked}");
    assert!(asked.get("offer").is_none());
    let id = reply(&mut codex, &question(&world, "?"), "late");
    let read = claude.call("read_messages", json!({})).ok();
    assert_eq!(bodies(&read), ["late"]);
    assert_eq!(read["messages"][0]["reply_to"], asked["message_id"]);

    let resumed = claude.call("ask_peer", json!({"resume": request})).ok();
    assert_eq!(resumed["answered"], json!(true));
    assert!(resumed["hint"].as_str().unwrap().contains(&format!("baton mail {id}")), "{resumed}");
}

#[test]
fn a_wait_can_be_resumed() {
    let (world, mut claude, mut codex) = World::with_two();
    let asked =
        claude.call("ask_peer", json!({"to": CODEX, "body": "?", "timeout": "50ms", "key": "k"})).ok();
    let resumed = claude.begin("ask_peer", json!({"resume": asked["request_id"], "to": null}));
    reply(&mut codex, &question(&world, "?"), "at last");
    assert_eq!(claude.finish(resumed).ok()["reply"]["body"], "at last");
    // The same key is the same question, which already has its answer.
    let again = claude.call("ask_peer", json!({"to": CODEX, "body": "?", "key": "k"})).ok();
    assert_eq!((&again["answered"], &again["message_id"]), (&json!(true), &asked["message_id"]));
}

#[test]
fn a_cancelled_ask_is_not_lost() {
    let (world, mut claude, mut codex) = World::with_two();
    let (request, id) = ask(&world, &mut claude, json!({"to": CODEX, "body": "?"}));
    claude.cancel(request);
    // The server handles requests in order, so the cancellation has arrived when this is answered.
    claude.call("who", json!({})).ok();
    reply(&mut codex, &id, "for whom it may concern");
    assert_eq!(bodies(&claude.call("read_messages", json!({})).ok()), ["for whom it may concern"]);
    let answered = |message: &Value| message["id"] == json!(request) && message.get("method").is_none();
    assert!(claude.wait_for(Duration::from_millis(50), answered).is_none(), "a cancelled call has no answer");
}

#[test]
fn a_client_that_goes_away_leaves_the_answer_in_the_queue() {
    let (world, mut claude, mut codex) = World::with_two();
    let (_, id) = ask(&world, &mut claude, json!({"to": CODEX, "body": "?", "timeout": "10m"}));
    claude.close();
    let answer = reply(&mut codex, &id, "too late for that one");
    assert!(claude.has_ended());
    assert_eq!(world.state(&answer), Delivery::Queued);
    let mut claude = world.client(crate::client::Caller::Claude);
    assert_eq!(bodies(&claude.call("read_messages", json!({})).ok()), ["too late for that one"]);
}

#[test]
fn the_first_reply_closes_and_the_second_is_mail() {
    let (world, mut claude, mut codex) = World::with_two();
    let (request, id) = ask(&world, &mut claude, json!({"to": CODEX, "body": "?"}));
    reply(&mut codex, &id, "yes");
    reply(&mut codex, &id, "and another thing");
    assert_eq!(claude.finish(request).ok()["reply"]["body"], "yes");
    assert_eq!(bodies(&claude.call("read_messages", json!({})).ok()), ["and another thing"]);
}

#[test]
fn several_can_wait_at_once_and_each_gets_its_own() {
    let (world, mut claude, mut codex) = World::with_two();
    let asked: Vec<_> = (0..4)
        .map(|n| ask(&world, &mut claude, json!({"to": CODEX, "body": format!("question {n}")})))
        .collect();
    let questions = codex.call("read_messages", json!({})).ok();
    for message in questions["messages"].as_array().unwrap().iter().rev() {
        let body = message["body"].as_str().unwrap().replace("question", "answer");
        reply(&mut codex, message["message_id"].as_str().unwrap(), &body);
    }
    for (n, (request, _)) in asked.into_iter().enumerate() {
        assert_eq!(claude.finish(request).ok()["reply"]["body"], json!(format!("answer {n}")));
    }
}

#[test]
fn a_waiting_call_reports_progress() {
    let (_world, mut claude, _codex) = World::with_two();
    let request = claude.begin("ask_peer", json!({"to": CODEX, "body": "?", "timeout": "6s"}));
    let progress = claude
        .wait_for(crate::client::TIMEOUT, |message| message["method"] == "notifications/progress")
        .unwrap();
    assert_eq!(progress["params"]["progressToken"], json!(request));
    assert_eq!(progress["params"]["total"], json!(6.0));
    assert_eq!(claude.finish(request).ok()["answered"], json!(false));
}

#[test]
fn a_question_that_expires_has_its_own_code() {
    let (world, mut claude, _codex) = World::with_two();
    let asked = claude.call("ask_peer", json!({"to": CODEX, "body": "well?", "timeout": "1ms"})).ok();
    let much_later = baton_machine::clock::now().plus(limits::Limits::default().ttl).plus(Span::days(1));
    world.store().upkeep(&limits::Limits::default(), much_later).expect("a store");
    assert_eq!(world.state(asked["message_id"].as_str().expect("an id")), Delivery::Expired);
    let resumed = claude.call("ask_peer", json!({"resume": asked["request_id"]}));
    assert_eq!(resumed.code(), "ask-expired");
}

#[test]
fn an_ask_that_would_close_a_ring_is_refused_at_once() {
    let (world, mut claude, mut codex) = World::with_two();
    let (request, id) =
        ask(&world, &mut claude, json!({"to": CODEX, "body": "mine first?", "timeout": "10m"}));
    let refused = codex.call("ask_peer", json!({"to": CLAUDE, "body": "no, mine?", "timeout": "10m"}));
    let refused = refused.result.to_string();
    assert!(refused.contains("would-deadlock") && refused.contains(&id), "{refused}");
    assert!(bodies(&claude.call("read_messages", json!({})).ok()).is_empty(), "nothing was sent");
    reply(&mut codex, &id, "yours");
    assert_eq!(claude.finish(request).ok()["reply"]["body"], "yours");
    // Claude waits no more.
    let (request, id) = {
        let request = codex.begin("ask_peer", json!({"to": CLAUDE, "body": "now mine?"}));
        let mut read = claude.call("read_messages", json!({})).ok();
        until("the question is there", || {
            if read["messages"].as_array().is_none_or(Vec::is_empty) {
                read = claude.call("read_messages", json!({})).ok();
            }
            !read["messages"].as_array().is_none_or(Vec::is_empty)
        });
        (request, read["messages"][0]["message_id"].as_str().expect("an id").to_owned())
    };
    reply(&mut claude, &id, "sure");
    assert_eq!(codex.finish(request).ok()["reply"]["body"], "sure");
}
