//! Whom a message goes to: several recipients, everyone, names and ids as people type them; and
//! what the sender hears about it.

use crate::puppet::{Puppet, Style};
use crate::world::{Done, World};
use serde_json::{Value, json};
use std::collections::HashMap;

fn names(sent: &Value) -> Vec<String> {
    sent["to"].as_array().unwrap().iter().map(|to| to["name"].as_str().unwrap().to_owned()).collect()
}

fn bodies(world: &World) -> Vec<String> {
    world.mail().iter().map(|mail| mail["body"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_message_goes_to_several_or_to_none_of_them() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    for name in ["lin", "eve"] {
        Puppet::start(&world, Style::Codex, name);
    }
    ada.shell(&["send", "lin", "nobody", "--json", "--", "hello"]).expect_error(1, "unknown-recipient");
    ada.shell(&["send", "lin", "ada", "--json", "--", "hello"]).expect_error(1, "self-target");
    assert!(bodies(&world).is_empty(), "all recipients are known before anything is sent");
    let sent = ada.shell(&["send", "lin", "EVE", "lin", "--key", "k", "--json", "--", "to", "both"]);
    let sent = sent.expect(0).json();
    assert_eq!(names(&sent), ["lin", "eve"]);
    let again = ada.shell(&["send", "lin", "EVE", "lin", "--key", "k", "--json", "--", "to", "both"]);
    assert_eq!(again.expect(0).json()["message_id"], sent["message_id"]);
    ada.shell(&["send", "lin", "--key", "k", "--json", "--", "to both"]).expect_error(1, "key-conflict");
    assert_eq!(bodies(&world), ["to both"]);
    let hint = ada.shell(&["send", "lin", "two", "words", "--json"]).expect_error(64, "usage");
    assert!(hint.contains("-- \"text\""), "{hint}");
    ada.shell(&["send", "--", "lin", "as before"]).expect(0);
    assert_eq!(world.mail().last().unwrap()["body"], "as before");
}

#[test]
fn everyone_is_every_other_session_that_runs_and_an_agent_says_that_it_means_it() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let lin = Puppet::start(&world, Style::Codex, "lin");
    let gone = Puppet::start(&world, Style::Codex, "gone");
    gone.hook(&gone.payload("SessionEnd", json!({"reason": "other"})));
    Puppet::start(&world, Style::Codex, "eve");
    let refused = ada.shell(&["send", "*", "stop", "--json"]);
    let message = refused.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("eve") && message.contains("lin"), "{message}");
    assert!(refused.expect_error(3, "consent-needed").contains("--to-all"));
    world.script(&["send", "*", "stop", "--json"]).expect_error(3, "consent-needed");
    assert!(bodies(&world).is_empty());
    let all = ["send", "*", "stop", "--to-all", "--key", "k", "--json"];
    let sent = ada.shell(&all).expect(0).json();
    let mut reached = names(&sent);
    reached.sort();
    let codex_ends = world.who("codex-gone")["state"] == "gone";
    assert_eq!(reached, if codex_ends { vec!["eve", "lin"] } else { vec!["eve", "gone", "lin"] });
    // Whoever comes later is not part of the first send, nor of its retry.
    Puppet::start(&world, Style::Codex, "late");
    assert_eq!(ada.shell(&all).expect(0).json()["to"], sent["to"]);
    lin.shell(&["ask", "*", "well?", "--json"]).expect_error(1, "ambiguous-target");
    if world.has_person() {
        let sent = world.person(&["send", "*", "from the person", "--json"]).expect(0);
        assert!(sent.stdout.contains("\"ada\""), "{}", sent.stdout);
    }
}

#[test]
fn a_name_counts_in_any_case_and_a_typo_has_a_suggestion() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    Puppet::start(&world, Style::Codex, "lily");
    assert_eq!(names(&ada.shell(&["send", "LILY", "hi", "--json"]).expect(0).json()), ["lily"]);
    assert_eq!(names(&ada.shell(&["send", "agent:CODEX", "hi", "--json"]).expect(0).json()), ["lily"]);
    for typo in ["lil", "lilly", "LIYL"] {
        let hint = ada.shell(&["send", typo, "hi", "--json"]).expect_error(1, "unknown-recipient");
        assert!(hint.contains("did you mean lily?"), "{typo}: {hint}");
    }
    for verb in ["ask", "wake"] {
        let words: &[&str] =
            if verb == "ask" { &["ask", "lil", "hi", "--json"] } else { &["wake", "lil", "--json"] };
        assert!(ada.shell(words).expect_error(1, "unknown-recipient").contains("did you mean lily?"));
    }
}

#[test]
fn a_project_is_named_by_the_end_of_its_path() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let short = world.project().file_name().unwrap().to_str().unwrap().to_owned();
    let elsewhere = |words: &[&str]| -> Done {
        let mut command = world.as_script(words);
        command.current_dir(world.path("other"));
        crate::world::run(command, b"")
    };
    let hint = elsewhere(&["send", "ada", "hi", "--json"]).expect_error(1, "other-project");
    assert_eq!(hint, format!("write {short}:ada"));
    let address = format!("{short}:ada");
    assert_eq!(names(&elsewhere(&["send", &address, "hi", "--json"]).expect(0).json()), ["ada"]);
    let hint = elsewhere(&["send", "nowhere:ada", "hi", "--json"]).expect_error(1, "unknown-recipient");
    assert!(hint.contains("PROJECT:NAME") && hint.contains(&short), "{hint}");
    let typo = format!("{}:ada", &short[..short.len() - 1]);
    let hint = elsewhere(&["send", &typo, "hi", "--json"]).expect_error(1, "unknown-recipient");
    assert_eq!(hint, format!("did you mean {short}:ada?"));
    let hint =
        elsewhere(&["send", &format!("{short}:adda"), "hi", "--json"]).expect_error(1, "unknown-recipient");
    assert!(hint.contains("did you mean ada?"), "{hint}");
    drop(ada);
}

#[test]
fn the_beginning_of_a_message_id_is_enough_where_it_fits_one() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let lin = Puppet::start(&world, Style::Codex, "lin");
    let other = Puppet::start(&world, Style::Codex, "other");
    let ids: Vec<String> = (0..40).map(|n| ada.send("lin", &format!("number {n}"))).collect();
    let hidden = ada.send("other", "not for lin");
    let mut beginnings: HashMap<&str, Vec<&String>> = HashMap::new();
    for id in &ids {
        beginnings.entry(&id[..2]).or_default().push(id);
    }
    let (shared, several) = beginnings.iter().find(|(_, ids)| ids.len() > 1).expect("40 ids, 32 beginnings");
    let refused = lin.shell(&["reply", shared, "which?", "--json"]);
    let message = refused.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(several.iter().all(|id| message.contains(id.as_str())), "{message}");
    refused.expect_error(1, "ambiguous-message");
    // The others' mail makes nothing ambiguous, and does not exist.
    let unique = |id: &str| {
        let fits = |end: usize| ids.iter().filter(|other| other[..end] == id[..end]).count() == 1;
        id[..(2..=13).find(|end| fits(*end)).unwrap()].to_owned()
    };
    let beginning = unique(&ids[7]);
    let replied = lin.shell(&["reply", &beginning, "yes", "--json"]).expect(0).json();
    let mail = lin.shell(&["mail", replied["message_id"].as_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(mail["reply_to"], json!(ids[7]));
    assert_eq!(lin.shell(&["mail", &beginning, "--json"]).expect(0).json()["body"], "number 7");
    lin.shell(&["reply", &hidden[..6], "me too", "--json"]).expect_error(1, "message-not-found");
    lin.shell(&["mail", &hidden[..6], "--json"]).expect_error(1, "message-not-found");
    lin.shell(&[
        "send",
        "ada",
        "about it",
        "--reply-to",
        &beginning.to_uppercase().replace('M', "m"),
        "--json",
    ])
    .expect(0);
    let asked = other.shell(&["ask", "lin", "?", "--timeout", "10ms", "--json"]).expect(2).json();
    let request = asked["request_id"].as_str().unwrap();
    let resumed =
        other.shell(&["ask", "--resume", &request[..9], "--timeout", "10ms", "--json"]).expect(2).json();
    assert_eq!(resumed["request_id"], asked["request_id"]);
    ada.shell(&["ask", "--resume", &request[..9], "--json"]).expect_error(1, "request-not-found");
}

#[test]
fn the_sender_reads_in_words_what_happens_to_the_message() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let mut lin = Puppet::start(&world, Style::Codex, "lin");
    let words = |done: Done| -> String {
        let done = done.expect(0);
        let (_, fate) = done.stdout.trim_end().split_once(" · ").unwrap_or_else(|| panic!("{done:?}"));
        fate.to_owned()
    };
    lin.event(crate::puppet::Moment::Prompt);
    assert_eq!(words(ada.shell(&["send", "lin", "while it works"])), "joins its running turn");
    lin.finish_turn();
    lin.shell(&["dnd", "until", "2h"]).expect(0);
    let fate = words(ada.shell(&["send", "lin", "while it rests"]));
    assert!(fate.starts_with("waits: do not disturb until ") && fate.contains(':'), "{fate}");
    lin.shell(&["dnd", "on"]).expect(0);
    assert_eq!(words(ada.shell(&["send", "lin", "still"])), "waits: do not disturb");
    let mut both = ada.shell(&["send", "lin", "user", "--", "to both"]).expect(0).stdout;
    both.truncate(both.trim_end().len());
    let lines: Vec<&str> = both.lines().collect();
    assert_eq!(lines[1..], ["  lin · waits: do not disturb", "  user · waits in the inbox (`baton inbox`)"]);
    let quiet = words(ada.shell(&["send", "lin", "later", "--wake", "off"]));
    assert!(quiet.starts_with("waits: waking is off"), "{quiet}");
}

#[test]
fn a_command_of_the_person_mentions_unread_mail_once() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    if !world.has_person() {
        return;
    }
    let mentions = |words: &[&str]| world.person(words).stdout.matches("for you: baton inbox").count();
    assert_eq!(mentions(&["who"]), 0);
    ada.send("user", "one");
    assert!(world.person(&["who"]).stdout.contains("1 message waits for you: baton inbox"));
    ada.send("user", "two");
    for words in [&["mail"][..], &["log"], &["config"], &["send", "ada", "hi"], &["job", "list"]] {
        assert_eq!(mentions(words), 1, "{words:?}");
    }
    assert_eq!(mentions(&["who", "--json"]), 0);
    assert_eq!(mentions(&["inbox"]), 0);
    assert_eq!(mentions(&["who"]), 0, "they are read");
    // No one else hears of it.
    ada.send("user", "three");
    let below = world.on_terminal(
        &format!("{} who", crate::world::program()),
        &[("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "x")],
    );
    assert!(!below.stdout.contains("baton inbox"), "{}", below.stdout);
}

#[test]
fn a_command_that_reads_makes_no_home() {
    let world = World::new();
    let typo = world.path("typo/home");
    let typo = typo.to_str().unwrap();
    for words in [
        &["who"][..],
        &["mail"],
        &["inbox"],
        &["log"],
        &["reply", "m000000000000", "hi"],
        &["wake", "lin"],
        &["job", "list"],
        &["approvals"],
        &["approve", "a000000000000"],
    ] {
        let words: Vec<&str> = ["--home", typo, "--json"].iter().chain(words).copied().collect();
        let hint = world.script(&words).expect_error(1, "no-home");
        assert!(hint.contains("baton setup") && hint.contains("--home"), "{hint}");
    }
    assert_eq!(world.script(&["--home", typo, "whoami", "--json"]).expect(0).json()["kind"], "script");
    assert!(!world.path("typo").exists());
    world.script(&["--home", typo, "send", "user", "hi"]).expect(0);
    assert_eq!(world.script(&["--home", typo, "mail", "--json"]).expect(0).json()[0]["body"], "hi");
}

#[test]
fn acting_as_another_is_refused_where_it_has_no_effect() {
    let world = World::talkative();
    Puppet::start(&world, Style::Claude, "ada");
    world.script(&["--as", "ada", "who", "--json"]).expect_error(3, "not-a-person");
    if world.has_person() {
        let who = world.person(&["--as", "ADA", "who"]).expect(0).stdout;
        assert!(who.contains("ada (you)"), "{who}");
        world.person(&["--as", "adda", "who"]).expect(1);
        let refused = world.person(&["--as", "ada", "guard", "list"]).expect(64).stdout;
        assert!(refused.contains("--as has no effect"), "{refused}");
    }
}
