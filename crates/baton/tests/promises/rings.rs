//! M8: sessions that ask each other. The last ask of a ring ends at once and names the question to
//! answer first; no one waits for the time-out.

use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, done, rounds};
use baton_testkit::wait;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than a test may take: an ask that waits for it hangs.
const TIMEOUT: &str = "10m";

fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    done(output.status, &output.stdout, &output.stderr)
}

fn ask(from: &Puppet<'_>, to: &str, body: &str) -> Command {
    from.shell_command(&["ask", to, body, "--timeout", TIMEOUT, "--json"])
}

/// Asks, and waits until the question is accepted. Returns its id too.
fn asking(world: &World, command: Command, body: &str) -> (Child, String) {
    let child = spawn(command);
    let id = wait::poll(wait::HANG, || sent(world, body));
    (child, id.expect("the ask is accepted"))
}

fn sent(world: &World, body: &str) -> Option<String> {
    let mail = world.mail();
    let found = mail.iter().find(|mail| mail["body"] == body)?;
    Some(found["message_id"].as_str()?.to_owned())
}

/// Expects the refusal; returns its message and hint.
fn refused(done: Done) -> (String, String) {
    let message = done.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    (message, done.expect_error(1, "would-deadlock"))
}

fn answered(child: Child, body: &str) {
    assert_eq!(ended(child).expect(0).json()["body"], json!(body));
}

#[test]
fn m8_two_asks_for_each_other_never_wait_for_their_time_outs() {
    let world = World::talkative();
    let one = Puppet::start(&world, Style::Claude, "one");
    let two = Puppet::start(&world, Style::Codex, "two");
    for round in 0..rounds(50) {
        let questions = [format!("one asks {round}"), format!("two asks {round}")];
        let mut both =
            [Some(spawn(ask(&one, "two", &questions[0]))), Some(spawn(ask(&two, "one", &questions[1])))];
        // One of them ends by itself. The other can't: its answer has not been written.
        let begun = Instant::now();
        let first = loop {
            let over =
                (0..2).find(|at| both[*at].as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()));
            if let Some(over) = over {
                break over;
            }
            assert!(begun.elapsed() < wait::HANG, "round {round}: both wait");
            std::thread::sleep(Duration::from_millis(2));
        };
        let (message, hint) = refused(ended(both[first].take().unwrap()));
        let waiting = both[1 - first].take().unwrap();
        let question = sent(&world, &questions[1 - first]).expect("the other ask was accepted");
        assert!(message.contains(&question) && hint.contains(&question), "{message}\n{hint}");
        assert_eq!(sent(&world, &questions[first]), None, "nothing was sent");
        let refused_one = [&one, &two][first];
        refused_one.shell(&["reply", &question, "first you", "--json"]).expect(0);
        answered(waiting, "first you");
    }
}

#[test]
fn m8_a_ring_of_three_is_found_by_its_last_ask() {
    let world = World::talkative();
    let [a, b, c] = ["anna", "bert", "cleo"].map(|name| Puppet::start(&world, Style::Claude, name));
    let (first, _) = asking(&world, ask(&a, "bert", "a to b"), "a to b");
    let (second, question) = asking(&world, ask(&b, "cleo", "b to c"), "b to c");
    let (to_first, _) = refused(ended(spawn(ask(&c, "anna", "c to a"))));
    assert!(to_first.contains(&question) && to_first.contains("bert"), "{to_first}");
    // So is the same question to the one in the middle.
    let (to_second, _) = refused(ended(spawn(ask(&c, "bert", "c to b"))));
    assert!(to_second.contains(&question), "{to_second}");
    c.shell(&["reply", &question, "c says"]).expect(0);
    answered(second, "c says");
    // The ring is open now, so the same ask is accepted and waits.
    let (third, late) = asking(&world, ask(&c, "anna", "c to a"), "c to a");
    let (again, _) = refused(ended(spawn(ask(&b, "cleo", "b to c again"))));
    assert!(again.contains("anna"), "{again}");
    b.shell(&["reply", &sent(&world, "a to b").unwrap(), "b says"]).expect(0);
    answered(first, "b says");
    a.shell(&["reply", &late, "a says"]).expect(0);
    answered(third, "a says");
}

#[test]
fn m8_a_killed_or_timed_out_wait_is_no_part_of_a_ring() {
    let world = World::talkative();
    let one = Puppet::start(&world, Style::Claude, "one");
    let two = Puppet::start(&world, Style::Codex, "two");
    let (mut killed, _) = asking(&world, ask(&one, "two", "killed"), "killed");
    killed.kill().unwrap();
    killed.wait().unwrap();
    one.shell(&["ask", "two", "timed out", "--timeout", "10ms", "--json"]).expect(2);
    let (waiting, question) = asking(&world, ask(&two, "one", "well?"), "well?");
    one.shell(&["reply", &question, "well"]).expect(0);
    answered(waiting, "well");
}

#[test]
fn m8_a_resumed_wait_and_a_repeated_ask_close_no_ring_either() {
    let world = World::talkative();
    let one = Puppet::start(&world, Style::Claude, "one");
    let two = Puppet::start(&world, Style::Codex, "two");
    let early =
        one.shell(&["ask", "two", "early", "--timeout", "10ms", "--key", "k", "--json"]).expect(2).json();
    let request = early["request_id"].as_str().unwrap();
    let (waiting, question) = asking(&world, ask(&two, "one", "meanwhile"), "meanwhile");
    let resume = one.shell(&["ask", "--resume", request, "--timeout", TIMEOUT, "--json"]);
    assert!(refused(resume).0.contains(&question));
    let repeat = one.shell(&["ask", "two", "early", "--timeout", TIMEOUT, "--key", "k", "--json"]);
    assert!(refused(repeat).0.contains(&question));
    one.shell(&["reply", &question, "so"]).expect(0);
    answered(waiting, "so");
    // An answer that is there already is taken, whoever waits meanwhile.
    two.shell(&["reply", early["message_id"].as_str().unwrap(), "there"]).expect(0);
    let (waiting, question) = asking(&world, ask(&two, "one", "once more"), "once more");
    let resumed = one.shell(&["ask", "--resume", request, "--json"]).expect(0).json();
    assert_eq!(resumed["body"], "there");
    one.shell(&["reply", &question, "yes"]).expect(0);
    answered(waiting, "yes");
}

#[test]
fn m8_a_script_closes_a_ring_only_while_it_waits() {
    let world = World::talkative();
    let one = Puppet::start(&world, Style::Claude, "one");
    // Its ask is open, and no process waits for the answer: it may be asked by anyone.
    world.script(&["ask", "one", "no wait", "--timeout", "10ms"]).expect(2);
    let (from_one, _) = asking(&world, ask(&one, "user", "may I?"), "may I?");
    // While `one` waits for the person, a script waits for `one` without a ring.
    let (script, question) = asking(
        &world,
        world.as_script(&["ask", "one", "script asks", "--timeout", TIMEOUT, "--json"]),
        "script asks",
    );
    one.shell(&["reply", &question, "to the script"]).expect(0);
    answered(script, "to the script");
    let mut from_one = from_one;
    from_one.kill().unwrap();
    from_one.wait().unwrap();
}

#[test]
fn m8_the_person_sees_what_to_answer_first() {
    let world = World::talkative();
    if !world.has_person() {
        return;
    }
    let one = Puppet::start(&world, Style::Claude, "one");
    let (mut waiting, question) =
        asking(&world, ask(&one, "user", "which port do you want?"), "which port do you want?");
    let shown = world.person(&["ask", "one", "well?", "--timeout", "30s", "--json"]).expect(1);
    let document: Value = serde_json::from_str(shown.stdout.lines().last().unwrap()).unwrap();
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains(&question) && message.contains("which port do you want?"), "{message}");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
