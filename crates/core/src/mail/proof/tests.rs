//! Where a nonce counts, where it does not, and what proves that it was not taken.

use super::*;

fn nonce() -> Nonce {
    Nonce::from_random([5; 8])
}

fn marked() -> String {
    format!("mail\n{}\n</baton-mail>", mark(&nonce()))
}

fn prompt(id: &str) -> Item {
    Item::Prompt { id: id.into() }
}

fn injected() -> Item {
    Item::Injected { text: marked() }
}

fn result(call: &str, text: &str) -> Item {
    Item::ToolResult { call: call.into(), text: text.into() }
}

fn response(id: &str, calls: &[&str]) -> Item {
    Item::Response {
        id: id.into(),
        calls: calls.iter().map(|&call| call.to_owned()).collect(),
        request: None,
    }
}

/// A response by an agent that records its requests.
fn recorded(id: &str, marks: &[String]) -> Item {
    Item::Response { id: id.into(), calls: vec![], request: Some(marks.to_vec()) }
}

fn tools(calls: &[&str]) -> Anchor {
    Anchor::Tools(calls.iter().map(|&call| call.to_owned()).collect())
}

fn proof_of(anchor: &Anchor, items: &[Item]) -> Proof {
    let turn = Turns { offer: Some("p2".into()), now: Some("p3".into()), unnamed: false };
    let nonce = nonce();
    let mut search = Search::new(&nonce, anchor, &turn);
    for item in items {
        search.feed(item, true);
    }
    search.proof()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_table_of_proofs() {
    let ran = || Item::HookRan { output: marked() };
    let rows: Vec<(&str, Anchor, Vec<Item>, Proof)> = vec![
        ("nothing written", Anchor::Start, vec![], Proof::Open),
        ("taken at start", Anchor::Start, vec![injected()], Proof::Held),
        ("taken at start, answered", Anchor::Start, vec![injected(), response("r1", &[])], Proof::Proven),
        ("start passed", Anchor::Start, vec![prompt("p2"), response("r1", &[])], Proof::Passed),
        ("with the prompt, unanswered", Anchor::Prompt, vec![prompt("p2"), injected()], Proof::Held),
        (
            "with the prompt, answered",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), response("r", &[])],
            Proof::Proven,
        ),
        (
            "prompt taken back, another answered",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), prompt("p3"), recorded("r", &[])],
            Proof::Passed,
        ),
        (
            "recorded in the answered request",
            Anchor::Prompt,
            vec![prompt("p2"), recorded("r", &[mark(&nonce())])],
            Proof::Proven,
        ),
        (
            "another offer recorded",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), recorded("r", &["[baton-offer x]".into()])],
            Proof::Passed,
        ),
        (
            "request failed, the prompt stays",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), prompt("p3")],
            Proof::Held,
        ),
        ("prompt passed", Anchor::Prompt, vec![prompt("p2"), response("r", &[])], Proof::Passed),
        (
            "an earlier response comes late",
            Anchor::Prompt,
            vec![response("r0", &[]), prompt("p2")],
            Proof::Open,
        ),
        ("prompt was blocked by another hook", Anchor::Prompt, vec![prompt("p3")], Proof::Passed),
        ("the turn before comes late", Anchor::Prompt, vec![prompt("p1")], Proof::Open),
        (
            "batch taken",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), injected()],
            Proof::Held,
        ),
        (
            "batch answered",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), injected(), response("r2", &[])],
            Proof::Proven,
        ),
        (
            "batch taken, then interrupted",
            tools(&["a"]),
            vec![prompt("p2"), injected(), prompt("p3")],
            Proof::Held,
        ),
        (
            "taken while the response was streaming",
            tools(&["a"]),
            vec![response("r1", &["a"]), injected(), response("r1", &["b"])],
            Proof::Held,
        ),
        (
            "batch passed",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), response("r2", &[])],
            Proof::Passed,
        ),
        (
            "a piece of the same response after the tool's result",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), response("r1", &["b"])],
            Proof::Open,
        ),
        (
            "batch, next turn",
            tools(&["a"]),
            vec![prompt("p2"), response("r1", &["a"]), prompt("p3")],
            Proof::Passed,
        ),
        (
            "calls unknown: same response",
            tools(&[]),
            vec![response("r1", &[]), injected(), result("x", ""), response("r2", &[])],
            Proof::Proven,
        ),
        (
            "calls unknown: answered without it",
            tools(&[]),
            vec![response("r1", &[]), result("x", ""), response("r2", &[])],
            Proof::Passed,
        ),
        ("stop taken", Anchor::Stop, vec![ran(), injected(), Item::StopHandled], Proof::Held),
        (
            "stop answered",
            Anchor::Stop,
            vec![ran(), injected(), Item::StopHandled, response("r", &[])],
            Proof::Proven,
        ),
        ("stop ran, not taken", Anchor::Stop, vec![ran(), Item::StopHandled], Proof::Passed),
        (
            "an earlier stop's note comes late",
            Anchor::Stop,
            vec![Item::StopHandled, response("r", &[])],
            Proof::Open,
        ),
        ("stop, next turn", Anchor::Stop, vec![prompt("p2"), prompt("p3")], Proof::Passed),
        (
            "call answered",
            Anchor::Call("c".into()),
            vec![result("c", &marked()), response("r", &[])],
            Proof::Proven,
        ),
        ("call failed", Anchor::Call("c".into()), vec![result("c", "connection closed")], Proof::Passed),
        ("shell answered", Anchor::Shell, vec![result("x", &marked()), response("r", &[])], Proof::Proven),
    ];
    for (name, anchor, items, expected) in rows {
        assert_eq!(proof_of(&anchor, &items), expected, "{name}");
    }
}

#[test]
fn quotes_raw_output_and_foreign_results_never_count() {
    let quoting =
        [Item::HookRan { output: marked() }, Item::ToolResult { call: "other".into(), text: marked() }];
    for anchor in [Anchor::Start, Anchor::Prompt, tools(&["a"]), Anchor::Stop, Anchor::Call("c".into())] {
        assert_eq!(proof_of(&anchor, &quoting), Proof::Open, "{anchor:?}");
    }
    assert_eq!(proof_of(&Anchor::Call("c".into()), &[injected()]), Proof::Open);
    assert_eq!(proof_of(&Anchor::Shell, &[injected()]), Proof::Open);
    let body = crate::frame::defuse(&marked());
    assert_eq!(proof_of(&Anchor::Start, &[Item::Injected { text: body }]), Proof::Open);
}

#[test]
fn anchors_round_trip() {
    for anchor in [
        Anchor::Start,
        Anchor::Prompt,
        tools(&[]),
        tools(&["a", "b:c,d"]),
        Anchor::Stop,
        Anchor::Call("c".into()),
        Anchor::Shell,
        Anchor::Push,
    ] {
        assert_eq!(Anchor::parse(&anchor.to_text()), Some(anchor));
    }
}

/// An agent that names no turns writes in order, and asks its prompt hooks between turns.
#[test]
fn where_turns_have_no_names_the_order_alone_decides() {
    let rows: Vec<(&str, Anchor, Vec<Item>, Proof)> = vec![
        ("its own prompt", Anchor::Prompt, vec![prompt("a")], Proof::Open),
        ("prompt taken", Anchor::Prompt, vec![prompt("a"), injected()], Proof::Held),
        (
            "prompt answered with it",
            Anchor::Prompt,
            vec![prompt("a"), injected(), response("r", &[])],
            Proof::Proven,
        ),
        ("prompt answered without", Anchor::Prompt, vec![prompt("a"), response("r", &[])], Proof::Passed),
        ("prompt blocked, another taken", Anchor::Prompt, vec![prompt("b"), prompt("c")], Proof::Open),
        ("tools, another turn", tools(&[]), vec![prompt("b")], Proof::Passed),
        (
            "tools taken, another turn",
            tools(&[]),
            vec![result("c", ""), injected(), prompt("b")],
            Proof::Held,
        ),
        ("tools not taken", tools(&[]), vec![result("c", ""), response("r", &[])], Proof::Passed),
        ("shell, another turn", Anchor::Shell, vec![prompt("b")], Proof::Passed),
        ("stop, another turn", Anchor::Stop, vec![prompt("b")], Proof::Passed),
        ("stop taken", Anchor::Stop, vec![injected(), response("r", &[])], Proof::Proven),
        ("start, not asked yet", Anchor::Start, vec![prompt("a")], Proof::Open),
    ];
    for (name, anchor, items, expected) in rows {
        let (nonce, turns) = (nonce(), Turns { unnamed: true, ..Turns::default() });
        let mut search = Search::new(&nonce, &anchor, &turns);
        for item in &items {
            search.feed(item, true);
        }
        assert_eq!(search.proof(), expected, "{name}");
        let mut before = Search::new(&nonce, &anchor, &turns);
        before.feed(&prompt("z"), false);
        before.feed(&response("q", &[]), false);
        assert_eq!(before.proof(), Proof::Open, "{name}: what was there before says nothing");
    }
}

/// An agent whose plugin shows us what the model is about to be shown.
#[test]
fn a_request_proves_what_it_holds_and_disproves_only_what_it_would_have_to_hold() {
    let held = |ids: &[&str]| Shown { marks: vec![], ids: ids.iter().map(|id| (*id).to_owned()).collect() };
    let call = Anchor::Call("c".to_owned());
    let (lives, gone) = (true, false);
    type Row = (&'static str, Anchor, Option<&'static str>, Shown, bool, Proof);
    let rows: Vec<Row> = vec![
        ("its own prompt, without", Anchor::Prompt, Some("m2"), held(&["m1", "m2"]), lives, Proof::Passed),
        ("the turn before", Anchor::Prompt, Some("m1"), held(&["m1"]), lives, Proof::Held),
        (
            "a later prompt, and its own was never stored",
            Anchor::Prompt,
            Some("m3"),
            held(&["m3"]),
            lives,
            Proof::Passed,
        ),
        ("its own tool, without", tools(&["c"]), Some("m2"), held(&["m2", "c"]), lives, Proof::Passed),
        ("another tool", tools(&["c"]), Some("m2"), held(&["m2", "d"]), lives, Proof::Held),
        (
            "its own tool is on a branch that was left",
            tools(&["c"]),
            Some("m3"),
            held(&["m3"]),
            lives,
            Proof::Passed,
        ),
        ("its own call is too", call.clone(), Some("m3"), held(&["m3"]), lives, Proof::Passed),
        ("its own call, without", call.clone(), Some("m2"), held(&["c"]), lives, Proof::Passed),
        ("another call", call, Some("m2"), held(&["d"]), gone, Proof::Held),
        ("a shell in its turn", Anchor::Shell, Some("m2"), held(&["m2"]), gone, Proof::Held),
        ("a shell, a turn later", Anchor::Shell, Some("m3"), held(&["m3"]), gone, Proof::Passed),
        ("a push on its way", Anchor::Push, Some("m3"), held(&["m3"]), lives, Proof::Held),
        ("a push of a process that is gone", Anchor::Push, Some("m3"), held(&["m3"]), gone, Proof::Passed),
        (
            "a prompt of a process that is gone",
            Anchor::Prompt,
            Some("m1"),
            held(&["m1"]),
            gone,
            Proof::Passed,
        ),
        ("a stop", Anchor::Stop, None, held(&[]), lives, Proof::Passed),
    ];
    for (name, anchor, now, shown, maker_lives, expected) in rows {
        let turns = Turns { offer: Some("m2".to_owned()), now: now.map(str::to_owned), unnamed: false };
        assert_eq!(proof_in_request(&nonce(), &anchor, &turns, &shown, maker_lives), expected, "{name}");
        let shown = Shown { marks: vec![mark(&nonce())], ..shown };
        assert_eq!(proof_in_request(&nonce(), &anchor, &turns, &shown, maker_lives), Proof::Proven, "{name}");
    }
}

#[test]
fn a_replaced_conversation_takes_back_what_it_no_longer_holds() {
    let replaced = |text: &str| Item::Replaced { text: text.to_owned() };
    let gone = replaced("something else");
    assert_eq!(proof_of(&Anchor::Prompt, &[prompt("p2"), injected(), gone.clone()]), Proof::Passed);
    assert_eq!(
        proof_of(&Anchor::Prompt, &[prompt("p2"), injected(), replaced(&marked())]),
        Proof::Held,
        "it is still in the conversation"
    );
    assert_eq!(proof_of(&Anchor::Prompt, &[prompt("p2"), gone.clone()]), Proof::Open, "it was never there");
    let turns = Turns { offer: Some("p2".into()), now: None, unnamed: false };
    let nonce = nonce();
    let mut search = Search::new(&nonce, &Anchor::Prompt, &turns);
    search.feed(&injected(), false);
    search.feed(&gone, false);
    assert_eq!(search.proof(), Proof::Held, "what was replaced before the offer says nothing about it");
}

/// The response with the calls is before the part of the file that is read. Its results tell when
/// it is over.
#[test]
fn a_response_after_all_results_proves_that_the_offer_was_passed() {
    let anchor = tools(&["c1", "c2"]);
    let next = || response("r2", &[]);
    assert_eq!(proof_of(&anchor, &[result("c1", "ok"), next()]), Proof::Open, "a result is still to come");
    assert_eq!(proof_of(&anchor, &[result("c1", "ok"), result("c2", "ok"), next()]), Proof::Passed);
    assert_eq!(proof_of(&anchor, &[result("c1", "ok"), result("c9", "ok"), next()]), Proof::Open);
}
