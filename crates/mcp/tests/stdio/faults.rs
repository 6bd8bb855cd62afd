//! Servers, stores and clients that die, break or vanish.

use crate::client::{Caller, Client, TIMEOUT};
use crate::world::{CLAUDE, CODEX, World, bodies, send, until};
use baton_core::frame::{Framed, Letter};
use baton_core::id::Nonce;
use baton_core::limits::{self, Limits};
use baton_core::mail::{Anchor, Delivery};
use baton_machine::process;
use baton_store::{Claim, HookStep};
use serde_json::json;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

#[test]
fn what_a_killed_server_did_not_deliver_is_offered_again() {
    let (world, mut claude, mut codex) = World::with_two();
    let transcript = world.transcript(CLAUDE);
    transcript.claude_prompt("p1");
    for round in 0..12_u32 {
        let body = format!("round {round}");
        let id = send(&mut codex, CLAUDE, &body);
        let call = claude.begin("read_messages", json!({}));
        if round == 0 {
            until("it is offered", || world.state(&id) == Delivery::Offered);
        } else {
            std::thread::sleep(Duration::from_micros(u64::from(round) * 150));
        }
        claude.kill();
        let offered = world.state(&id) == Delivery::Offered;

        // The agent starts the server again, and its transcript shows nothing yet.
        claude = world.client(Caller::Claude);
        let call_id = format!("{}-{round}", Client::call_id(call));
        if offered && round == 0 {
            let early = claude.call("read_messages", json!({})).ok();
            assert_eq!(
                (bodies(&early).len(), &early["more"]),
                (0, &json!(0)),
                "not twice while it may still turn up"
            );
        }
        // Then the agent writes the failed call, and the model goes on.
        transcript.claude_calls(&format!("r{round}"), &Client::call_id(call));
        transcript.claude_result(&Client::call_id(call), "Connection closed");
        transcript.claude_says(&format!("s{round}"));
        let again = claude.begin_read(&call_id);
        assert_eq!(bodies(&again), [body], "round {round}, offered: {offered}");
        transcript.claude_calls(&format!("t{round}"), &call_id);
        transcript.claude_result(&call_id, &again.to_string());
        transcript.claude_says(&format!("u{round}"));
        assert!(bodies(&claude.call("read_messages", json!({"peek": true})).ok()).is_empty());
        assert_eq!(world.state(&id), Delivery::Seen);
    }
}

impl Client {
    /// Reads messages under a given id of the tool call.
    fn begin_read(&mut self, call: &str) -> serde_json::Value {
        let id = self.fresh_id();
        self.begin_with(id, "read_messages", json!({}), Some(json!({"claudecode/toolUseId": call})));
        self.finish(id).ok()
    }
}

#[test]
fn a_broken_store_is_a_tools_error_and_its_repair_is_noticed() {
    let world = World::new();
    std::fs::create_dir(world.home()).unwrap();
    std::fs::write(
        world.home().join("baton.db"),
        "no database at all, but long enough to look at: ".repeat(100),
    )
    .unwrap();
    let mut claude = world.client(Caller::Claude);
    assert_eq!(claude.call("who", json!({})).code(), "store-corrupt");
    assert_eq!(claude.hook(json!({"hook_event_name": "PostToolBatch", "session_id": CLAUDE})).text(), "{}");
    assert!(world.log().contains("store-corrupt"), "{}", world.log());

    std::fs::remove_file(world.home().join("baton.db")).unwrap();
    world.add("claude", CLAUDE, Some(process::this()));
    assert_eq!(claude.call("who", json!({})).ok()["you"], world.name_of(CLAUDE).as_str());
}

#[test]
fn a_store_that_was_replaced_is_not_written_to_under_its_old_name() {
    let (world, mut claude, _codex) = World::with_two();
    send(&mut claude, CODEX, "into the old one");
    std::fs::rename(world.home(), world.home().with_extension("old")).unwrap();
    world.add("claude", CLAUDE, Some(process::this()));
    world.add("codex", CODEX, None);
    let id = send(&mut claude, CODEX, "into the new one");
    assert_eq!(world.state(&id), Delivery::Queued);
}

/// Holds the store's write lock until the returned value is dropped.
fn hold_the_store(world: &World, codex: &mut Client) -> Sender<()> {
    // A claim frames its messages inside its transaction, so a slow frame keeps the transaction
    // open.
    send(codex, CLAUDE, "something to claim");
    let mut store = world.store();
    let (participant, session) = store.participant_of(None, CLAUDE).expect("a store").expect("known");
    let claim = Claim {
        nonce: Nonce::from_random([7; 8]),
        anchor: Anchor::Start,
        turn: None,
        position: 0,
        read_from: 0,
        claimer: process::this(),
        at_stop: false,
        only_urgent: false,
    };
    let (settle, claim) = (Vec::new(), Some(claim));
    let step = HookStep {
        session,
        participant: participant.id,
        settle,
        state: None,
        transcript: None,
        turn: None,
        claim,
        now: baton_machine::clock::now(),
        confirms: None,
    };
    let ((release, released), (begun, has_begun)) = (channel::<()>(), channel());
    std::thread::spawn(move || {
        let hold = |_: &[Letter], _: usize, _: &Nonce| {
            begun.send(()).expect("the test waits");
            // Ends when the test drops its side.
            released.recv().ok();
            Framed { taken: 1, ..Framed::default() }
        };
        store.hook_step(&step, &Limits::default(), &|_| true, &hold).expect("a claim");
    });
    has_begun.recv_timeout(TIMEOUT).expect("the store is held");
    release
}

#[test]
fn a_locked_store_is_an_error_in_time_and_silence_for_a_hook() {
    let (world, mut claude, mut codex) = World::with_two();
    let held = hold_the_store(&world, &mut codex);
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": CLAUDE, "prompt_id": "p1"});
    assert_eq!(claude.hook(prompt.clone()).text(), "{}");
    assert!(world.log().contains("store-locked"), "{}", world.log());
    assert_eq!(claude.call("send_message", json!({"to": CODEX, "body": "x"})).code(), "store-locked");
    // A reader does not wait.
    claude.call("read_messages", json!({"peek": true})).ok();
    drop(held);
    until("the store is free", || {
        claude.call("send_message", json!({"to": CODEX, "body": "x"})).result["isError"] == json!(false)
    });
}

#[test]
fn an_idle_server_expires_old_mail_and_keeps_the_wal_short() {
    let (world, mut claude, _codex) = World::with_two();
    let sent = claude.call("send_message", json!({"to": CODEX, "body": "now or never", "ttl": "1ms"})).ok();
    until("it expires", || world.state(sent["message_id"].as_str().unwrap()) == Delivery::Expired);
    let note = claude.call("read_messages", json!({})).ok();
    assert_eq!(note["messages"][0]["sender"], "baton");
    assert_eq!(note["messages"][0]["reply_to"], sent["message_id"]);
    assert_eq!(
        claude
            .call("reply_to_message", json!({"message_id": note["messages"][0]["message_id"], "body": "oh"}))
            .code(),
        "no-reply-address"
    );

    let body = "x".repeat(65_536);
    for _ in 0..8 {
        send(&mut claude, CODEX, &body);
    }
    until("the WAL is folded", || world.store().wal_bytes() < limits::WAL_BYTES_COMMAND);
}

#[test]
fn a_home_that_can_not_be_made_is_an_error_and_never_fails_a_hook() {
    let world = World::new();
    std::fs::write(world.home(), "a file where the folder should be").unwrap();
    let mut codex = world.client(Caller::Codex(CODEX));
    assert_eq!(codex.call("read_messages", json!({})).code(), "home-unsafe");
    assert_eq!(codex.hook(json!({"hook_event_name": "PostToolUse", "session_id": CODEX})).text(), "");
}
