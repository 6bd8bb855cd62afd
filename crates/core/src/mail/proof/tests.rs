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

fn look(anchor: &Anchor, items: &[Item]) -> Look {
    let turn = Turns { offer: Some("p2".into()), now: Some("p3".into()), unnamed: false };
    let nonce = nonce();
    let mut search = Search::new(&nonce, anchor, &turn);
    for item in items {
        search.feed(item, true);
    }
    search.look()
}

#[test]
fn the_table_of_looks() {
    let ran = || Item::HookRan { output: marked() };
    let rows: Vec<(&str, Anchor, Vec<Item>, Look)> = vec![
        ("nothing written", Anchor::Start, vec![], Look::Open),
        ("taken at start", Anchor::Start, vec![injected()], Look::Held),
        ("taken at start, answered", Anchor::Start, vec![injected(), response("r1", &[])], Look::Proven),
        ("start passed", Anchor::Start, vec![prompt("p2"), response("r1", &[])], Look::Passed),
        ("with the prompt, unanswered", Anchor::Prompt, vec![prompt("p2"), injected()], Look::Held),
        (
            "with the prompt, answered",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), response("r", &[])],
            Look::Proven,
        ),
        (
            "prompt taken back, another answered",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), prompt("p3"), recorded("r", &[])],
            Look::Passed,
        ),
        (
            "recorded in the answered request",
            Anchor::Prompt,
            vec![prompt("p2"), recorded("r", &[mark(&nonce())])],
            Look::Proven,
        ),
        (
            "another offer recorded",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), recorded("r", &["[baton-offer x]".into()])],
            Look::Passed,
        ),
        (
            "request failed, the prompt stays",
            Anchor::Prompt,
            vec![prompt("p2"), injected(), prompt("p3")],
            Look::Held,
        ),
        ("prompt passed", Anchor::Prompt, vec![prompt("p2"), response("r", &[])], Look::Passed),
        (
            "an earlier response comes late",
            Anchor::Prompt,
            vec![response("r0", &[]), prompt("p2")],
            Look::Open,
        ),
        ("prompt was blocked by another hook", Anchor::Prompt, vec![prompt("p3")], Look::Passed),
        ("the turn before comes late", Anchor::Prompt, vec![prompt("p1")], Look::Open),
        (
            "batch taken",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), injected()],
            Look::Held,
        ),
        (
            "batch answered",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), injected(), response("r2", &[])],
            Look::Proven,
        ),
        (
            "batch taken, then interrupted",
            tools(&["a"]),
            vec![prompt("p2"), injected(), prompt("p3")],
            Look::Held,
        ),
        (
            "taken while the response was streaming",
            tools(&["a"]),
            vec![response("r1", &["a"]), injected(), response("r1", &["b"])],
            Look::Held,
        ),
        (
            "batch passed",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), response("r2", &[])],
            Look::Passed,
        ),
        (
            "a piece of the same response after the tool's result",
            tools(&["a"]),
            vec![response("r1", &["a"]), result("a", "ok"), response("r1", &["b"])],
            Look::Open,
        ),
        (
            "batch, next turn",
            tools(&["a"]),
            vec![prompt("p2"), response("r1", &["a"]), prompt("p3")],
            Look::Passed,
        ),
        (
            "calls unknown: same response",
            tools(&[]),
            vec![response("r1", &[]), injected(), result("x", ""), response("r2", &[])],
            Look::Proven,
        ),
        (
            "calls unknown: answered without it",
            tools(&[]),
            vec![response("r1", &[]), result("x", ""), response("r2", &[])],
            Look::Passed,
        ),
        ("stop taken", Anchor::Stop, vec![ran(), injected(), Item::StopHandled], Look::Held),
        (
            "stop answered",
            Anchor::Stop,
            vec![ran(), injected(), Item::StopHandled, response("r", &[])],
            Look::Proven,
        ),
        ("stop ran, not taken", Anchor::Stop, vec![ran(), Item::StopHandled], Look::Passed),
        (
            "an earlier stop's note comes late",
            Anchor::Stop,
            vec![Item::StopHandled, response("r", &[])],
            Look::Open,
        ),
        ("stop, next turn", Anchor::Stop, vec![prompt("p2"), prompt("p3")], Look::Passed),
        (
            "call answered",
            Anchor::Call("c".into()),
            vec![result("c", &marked()), response("r", &[])],
            Look::Proven,
        ),
        ("call failed", Anchor::Call("c".into()), vec![result("c", "connection closed")], Look::Passed),
        ("shell answered", Anchor::Shell, vec![result("x", &marked()), response("r", &[])], Look::Proven),
    ];
    for (name, anchor, items, expected) in rows {
        assert_eq!(look(&anchor, &items), expected, "{name}");
    }
}

#[test]
fn quotes_raw_output_and_foreign_results_never_count() {
    let quoting =
        [Item::HookRan { output: marked() }, Item::ToolResult { call: "other".into(), text: marked() }];
    for anchor in [Anchor::Start, Anchor::Prompt, tools(&["a"]), Anchor::Stop, Anchor::Call("c".into())] {
        assert_eq!(look(&anchor, &quoting), Look::Open, "{anchor:?}");
    }
    assert_eq!(look(&Anchor::Call("c".into()), &[injected()]), Look::Open);
    assert_eq!(look(&Anchor::Shell, &[injected()]), Look::Open);
    let body = crate::frame::defuse(&marked());
    assert_eq!(look(&Anchor::Start, &[Item::Injected { text: body }]), Look::Open);
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
    ] {
        assert_eq!(Anchor::parse(&anchor.to_text()), Some(anchor));
    }
}

/// An agent that names no turns writes in order, and asks its prompt hooks between turns.
#[test]
fn where_turns_have_no_names_the_order_alone_decides() {
    let rows: Vec<(&str, Anchor, Vec<Item>, Look)> = vec![
        ("its own prompt", Anchor::Prompt, vec![prompt("a")], Look::Open),
        ("prompt taken", Anchor::Prompt, vec![prompt("a"), injected()], Look::Held),
        (
            "prompt answered with it",
            Anchor::Prompt,
            vec![prompt("a"), injected(), response("r", &[])],
            Look::Proven,
        ),
        ("prompt answered without", Anchor::Prompt, vec![prompt("a"), response("r", &[])], Look::Passed),
        ("prompt blocked, another taken", Anchor::Prompt, vec![prompt("b"), prompt("c")], Look::Open),
        ("tools, another turn", tools(&[]), vec![prompt("b")], Look::Passed),
        ("tools taken, another turn", tools(&[]), vec![result("c", ""), injected(), prompt("b")], Look::Held),
        ("tools not taken", tools(&[]), vec![result("c", ""), response("r", &[])], Look::Passed),
        ("shell, another turn", Anchor::Shell, vec![prompt("b")], Look::Passed),
        ("stop, another turn", Anchor::Stop, vec![prompt("b")], Look::Passed),
        ("stop taken", Anchor::Stop, vec![injected(), response("r", &[])], Look::Proven),
        ("start, not asked yet", Anchor::Start, vec![prompt("a")], Look::Open),
    ];
    for (name, anchor, items, expected) in rows {
        let (nonce, turns) = (nonce(), Turns { unnamed: true, ..Turns::default() });
        let mut search = Search::new(&nonce, &anchor, &turns);
        for item in &items {
            search.feed(item, true);
        }
        assert_eq!(search.look(), expected, "{name}");
        let mut before = Search::new(&nonce, &anchor, &turns);
        before.feed(&prompt("z"), false);
        before.feed(&response("q", &[]), false);
        assert_eq!(before.look(), Look::Open, "{name}: what was there before says nothing");
    }
}

/// An agent whose plugin shows us what the model is about to be shown.
#[test]
fn a_request_proves_what_it_holds_and_disproves_only_what_it_would_have_to_hold() {
    let held = |ids: &[&str]| Shown { marks: vec![], ids: ids.iter().map(|id| (*id).to_owned()).collect() };
    let call = Anchor::Call("c".to_owned());
    let (lives, gone) = (true, false);
    type Row = (&'static str, Anchor, Option<&'static str>, Shown, bool, Look);
    let rows: Vec<Row> = vec![
        ("its own prompt, without", Anchor::Prompt, Some("m2"), held(&["m1", "m2"]), lives, Look::Passed),
        ("the turn before", Anchor::Prompt, Some("m1"), held(&["m1"]), lives, Look::Held),
        (
            "a later prompt, and its own was never stored",
            Anchor::Prompt,
            Some("m3"),
            held(&["m3"]),
            lives,
            Look::Passed,
        ),
        ("its own tool, without", tools(&["c"]), Some("m2"), held(&["m2", "c"]), lives, Look::Passed),
        ("another tool", tools(&["c"]), Some("m2"), held(&["m2", "d"]), lives, Look::Held),
        (
            "its own tool is on a branch that was left",
            tools(&["c"]),
            Some("m3"),
            held(&["m3"]),
            lives,
            Look::Passed,
        ),
        ("its own call is too", call.clone(), Some("m3"), held(&["m3"]), lives, Look::Passed),
        ("its own call, without", call.clone(), Some("m2"), held(&["c"]), lives, Look::Passed),
        ("another call", call, Some("m2"), held(&["d"]), gone, Look::Held),
        ("a shell in its turn", Anchor::Shell, Some("m2"), held(&["m2"]), gone, Look::Held),
        ("a shell, a turn later", Anchor::Shell, Some("m3"), held(&["m3"]), gone, Look::Passed),
        ("a push on its way", Anchor::Push, Some("m3"), held(&["m3"]), lives, Look::Held),
        ("a push of a process that is gone", Anchor::Push, Some("m3"), held(&["m3"]), gone, Look::Passed),
        ("a prompt of a process that is gone", Anchor::Prompt, Some("m1"), held(&["m1"]), gone, Look::Passed),
        ("a stop", Anchor::Stop, None, held(&[]), lives, Look::Passed),
    ];
    for (name, anchor, now, shown, maker_lives, expected) in rows {
        let turns = Turns { offer: Some("m2".to_owned()), now: now.map(str::to_owned), unnamed: false };
        assert_eq!(look_at_request(&nonce(), &anchor, &turns, &shown, maker_lives), expected, "{name}");
        let shown = Shown { marks: vec![mark(&nonce())], ..shown };
        assert_eq!(look_at_request(&nonce(), &anchor, &turns, &shown, maker_lives), Look::Proven, "{name}");
    }
}
