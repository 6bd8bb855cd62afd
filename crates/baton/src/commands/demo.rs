//! `demo`: what baton does, shown with two scripted agents on a throw-away home.
//!
//! The two are scripts, and say so. Everything else is real: each step runs this very program the way an agent would, hooks with native
//! payloads on stdin, commands with the agent's environment, and transcripts written as the agents write them.

mod actor;

use super::Session;
use crate::print::{Out, Tone, done};
use actor::{Actor, Stage};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use serde_json::Value;

/// Plays the demo.
pub fn run(_session: &Session, out: &Out) -> Result<Exit, Error> {
    let stage = Stage::build()?;
    let played = play(&stage, *out);
    stage.clear();
    played?;
    done()
}

fn play(stage: &Stage, out: Out) -> Result<(), Error> {
    let step = |number: u32, title: &str| {
        say(out, &format!("\n{}", out.tone(Tone::Bold, &format!("{number}. {title}"))))
    };
    say(out, "Two scripted agents, one throw-away store. Every line below is this program at work.")?;

    step(1, "Two sessions start, and their hooks register them")?;
    let mut ada = Actor::claude(stage, "ada")?;
    let mut lin = Actor::codex(stage, "lin")?;
    show(out, &stage.baton(None, &["who"], "")?)?;

    step(2, "lin works; ada sends; the mail comes with lin's next tool result")?;
    lin.prompt("fix the parser")?;
    let sent = stage.baton(
        Some(&ada),
        &["send", "lin", "src/parse.rs: the empty line case is on purpose, keep it", "--json"],
        "",
    )?;
    show(out, &sent)?;
    let delivered = lin.tool()?;
    show(out, &delivered)?;

    step(3, "A hook is killed with kill -9 after it claimed a message: the message comes again, once")?;
    let sent = stage.baton(
        Some(&ada),
        &["send", "lin", "and please run the tests before you stop", "--json"],
        "",
    )?;
    show(out, &sent)?;
    lin.stop_killed()?;
    say(out, &out.tone(Tone::Dim, "(the stop hook was killed; the person types the next prompt)"))?;
    let again = lin.prompt("go on")?;
    let again = if again.is_empty() { lin.tool()? } else { again };
    show(out, &again)?;
    let stopped = lin.stop()?;
    expect(stopped.is_empty(), "nothing is delivered twice")?;

    step(4, "ada asks, lin answers, and the ask returns with exactly that answer")?;
    ada.prompt("check with lin")?;
    let answer = stage.ask_and_answer(&mut ada, &mut lin, "did the tests pass?", "all 214 passed")?;
    show(out, &answer)?;

    step(5, "What happened to every message")?;
    ada.stop()?;
    show(out, &stage.baton(None, &["mail"], "")?)?;
    let mail: Value = serde_json::from_str(&stage.baton(None, &["mail", "--json"], "")?)
        .map_err(|error| Error::new(Code::Internal, format!("the demo can't read its own mail: {error}")))?;
    let seen =
        mail.as_array().into_iter().flatten().filter(|row| row["deliveries"][0]["state"] == "seen").count();
    expect(seen == 4, "every message reaches its end")?;
    say(
        out,
        &format!("\n{seen} messages were delivered, each once, each proven by the agent's own transcript."),
    )
}

fn expect(held: bool, promise: &str) -> Result<(), Error> {
    if held {
        Ok(())
    } else {
        Err(Error::new(Code::Internal, format!("the demo broke a promise: {promise}"))
            .hint("this is a bug; please report it"))
    }
}

fn say(out: Out, text: &str) -> Result<(), Error> {
    out.data(&Value::String(text.to_owned()), || text.to_owned())
}

fn show(out: Out, text: &str) -> Result<(), Error> {
    let shown: Vec<_> = text.trim_end().lines().map(|line| format!("   {line}")).collect();
    say(out, &shown.join("\n"))
}
