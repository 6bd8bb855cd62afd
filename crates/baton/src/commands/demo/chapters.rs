//! The chapters of the demo. Each shows one thing that baton does, and ends with what proves it.

use super::actor::Actor;
use super::show::Show;
use super::stage::{Stage, until};
use baton_core::Error;
use serde_json::Value;

/// The two scripted agents.
struct Cast<'a> {
    stage: &'a Stage,
    /// Writes like Claude Code.
    ada: Actor<'a>,
    /// Writes like Codex.
    lin: Actor<'a>,
}

/// Plays the chapters in their order.
pub fn play(stage: &Stage, show: &mut Show) -> Result<(), Error> {
    show.tell(
        "baton demo: two scripted agents in a throw-away home. Everything else is real: every command, hook, process and \
         file below is this program at work.",
    )?;
    let mut cast = begin(stage, show)?;
    let chapters = [mail, killed_hook, ask, wake, job, refused_command, approval];
    for chapter in chapters {
        chapter(&mut cast, show)?;
    }
    end(&mut cast, show)
}

fn begin<'a>(stage: &'a Stage, show: &mut Show) -> Result<Cast<'a>, Error> {
    show.chapter("Two agents start, and their hooks register them")?;
    let ada = Actor::claude(stage, "ada")?;
    let lin = Actor::codex(stage, "lin")?;
    show.types("you", "baton who")?;
    show.shows(&stage.baton(&["who"])?)?;
    let names = stage.read(&["who"])?;
    let is_there = |name: &str| names.as_array().into_iter().flatten().any(|row| row["name"] == name);
    show.proves(is_there("ada") && is_there("lin"), "ada and lin are registered by their own hooks")?;
    Ok(Cast { stage, ada, lin })
}

fn mail(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    const BODY: &str = "keep the empty-line case in src/parse.rs";
    show.chapter("Mail: it arrives in a running turn, with the next tool result")?;
    cast.lin.prompt("fix the parser")?;
    let message = send(&mut cast.ada, "ada", "lin", BODY, show)?;
    let brought = cast.lin.tools_until_mail()?;
    show.tell("lin's next tool has run. Its hook adds this to lin's context:")?;
    show.shows(&brought)?;
    let again = cast.lin.tool()?;
    let is_seen = cast.ada.delivery(&message)? == "seen";
    show.proves(
        is_seen && again.is_empty() && cast.lin.heard(BODY)? == 1,
        "seen once, proven by lin's own transcript",
    )
}

fn killed_hook(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    const BODY: &str = "run the tests before you stop";
    show.chapter("A hook is killed with the mail in its hands")?;
    let message = send(&mut cast.ada, "ada", "lin", BODY, show)?;
    let signal = cast.lin.tool_with_killed_hook(|| Ok(cast.ada.delivery(&message)? == "offered"))?;
    show.tell("lin's hook has claimed the message and is about to print it: kill -9.")?;
    let is_lost = signal == Some(9) && cast.lin.heard(BODY)? == 0;
    show.proves(is_lost, "the hook is dead, and lin has not heard of the message")?;
    let brought = cast.lin.tools_until_mail()?;
    show.tell("lin's next hook brings it:")?;
    show.shows(&body_of(&brought))?;
    let again = cast.lin.tool()?;
    let is_seen = cast.ada.delivery(&message)? == "seen";
    show.proves(
        is_seen && again.is_empty() && cast.lin.heard(BODY)? == 1,
        "it arrived all the same, and once",
    )
}

fn ask(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    const QUESTION: &str = "did the tests pass?";
    const ANSWER: &str = "all 214 passed";
    show.chapter("An ask waits for its reply")?;
    cast.ada.prompt("check with lin")?;
    let asking = ["ask", "lin", QUESTION, "--timeout", "20s"];
    show.types("ada", &format!("baton ask lin \"{QUESTION}\""))?;
    cast.ada.shell_begins(&asking)?;
    let brought = cast.lin.tools_until_mail()?;
    let message = between(&brought, "message_id ", ",");
    show.types("lin", &format!("baton reply {message} \"{ANSWER}\""))?;
    cast.lin.shell(&["reply", message, ANSWER])?;
    let printed = cast.ada.shell_ends(&asking)?;
    show.tell("ada's command returns:")?;
    show.shows(&body_of(&printed))?;
    cast.ada.shell_showed(&printed)?;
    cast.lin.stop()?;
    show.proves(
        body_of(&printed) == format!("| {ANSWER}"),
        "the ask ended with the reply to it, and nothing else",
    )
}

fn wake(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    const BODY: &str = "the fix is on branch parser";
    show.chapter("An idle agent is woken for its mail")?;
    cast.ada.stop()?;
    show.tell("ada has ended its turn and waits for its person. lin sends:")?;
    let message = send(&mut cast.lin, "lin", "ada", BODY, show)?;
    let line = cast.ada.next_wake()?;
    show.tell("At the inbox that Claude Code opens for each session, this line arrives:")?;
    show.shows(&line)?;
    let brought = cast.ada.prompt(&line)?;
    show.tell("It begins a turn, and the prompt hook of that turn brings the mail:")?;
    show.shows(&body_of(&brought))?;
    cast.ada.tool()?;
    let is_seen = cast.lin.delivery(&message)? == "seen";
    show.proves(is_seen && cast.ada.heard(BODY)? == 1, "woken, and the mail was seen once")
}

fn job(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    show.chapter("A job: a task for another agent, in the background")?;
    cast.lin.prompt("find out why the parser test is flaky")?;
    show.types("lin", "baton job start claude \"why is the parser test flaky?\"")?;
    let arguments = ["job", "start", "claude", "why is the parser test flaky?"];
    let started = cast.lin.read(&arguments)?;
    let id = started["job_id"].as_str().unwrap_or_default().to_owned();
    show.types("you", &format!("baton job wait {id}"))?;
    show.shows(&cast.stage.baton(&["job", "wait", &id])?)?;
    let brought = cast.lin.tools_until_mail()?;
    show.tell("lin, who asked for it, gets mail about the end:")?;
    show.shows(&body_of(&brought))?;
    cast.lin.stop()?;
    let status = cast.stage.read(&["job", "status", &id])?["status"].clone();
    show.proves(
        status == "completed" && brought.contains(&id),
        "a worker of its own ran the job, and its asker has the result",
    )
}

fn refused_command(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    const COMMAND: &str = "echo cm0gLXJmIC8= | base64 -d | sh";
    show.chapter("A rule refuses a command by what it does, not by its spelling")?;
    show.tell("ada is about to run this:")?;
    show.types("ada", COMMAND)?;
    let (decision, reason) = cast.ada.judged(COMMAND)?;
    show.shows(&reason)?;
    let (harmless, _) = cast.ada.judged("echo aGVsbG8= | base64 -d")?;
    show.proves(
        decision == "deny" && reason.contains("block-rm-rf") && harmless.is_empty(),
        "refused: that is rm -rf /; the same pipe with a harmless text may run",
    )
}

/// Who may answer a question here.
enum Approver {
    /// The person at this terminal.
    Person,
    /// A session that the settings name: no person is here.
    Reviewer,
    /// No one: the demo runs below an agent.
    Nobody,
}

impl Approver {
    fn find(stage: &Stage) -> Result<Self, Error> {
        let me = stage.read(&["whoami"])?;
        Ok(match me["kind"].as_str() {
            Some("person") => Self::Person,
            Some("script") => Self::Reviewer,
            _ => Self::Nobody,
        })
    }
}

fn approval(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    const COMMAND: &str = "npm publish";
    show.chapter("A permission is asked for, and answered from another place")?;
    let approver = Approver::find(cast.stage)?;
    if matches!(approver, Approver::Nobody) {
        return show
            .tell("skipped: this demo runs below an agent, and an agent can't answer for its person.");
    }
    let permission = cast.ada.permission_begins(COMMAND)?;
    show.tell("ada runs unattended and asks for permission; its hook waits for an answer.")?;
    let stage = cast.stage;
    let id = until("a question", || {
        let rows = stage.read(&["approvals"])?;
        Ok(rows[0]["id"].as_str().map(str::to_owned))
    })?;
    show.types("you", "baton approvals")?;
    show.shows(&cast.stage.baton(&["approvals"])?)?;
    let arguments = ["approve", &id];
    let (behaviour, printed) = if matches!(approver, Approver::Person) {
        show.types("you", &format!("baton approve {id}"))?;
        let approving = cast.stage.start(&arguments)?;
        let behaviour = cast.ada.permission_ends(&permission)?;
        (behaviour, Stage::end(approving)?.done(&arguments)?)
    } else {
        show.tell("No person sits at a terminal here. The settings name lin a reviewer, so lin may answer.")?;
        cast.stage.name_reviewer("lin")?;
        show.types("lin", &format!("baton approve {id}"))?;
        cast.lin.shell_begins(&arguments)?;
        let behaviour = cast.ada.permission_ends(&permission)?;
        (behaviour, cast.lin.shell_ends(&arguments)?)
    };
    show.shows(&printed)?;
    show.proves(behaviour == "allow", "the answer reached the hook that asked, and the tool has run")
}

fn end(cast: &mut Cast<'_>, show: &mut Show) -> Result<(), Error> {
    show.chapter("What the store says about every message")?;
    let mail = cast.lin.read(&["mail"])?;
    let rows: Vec<&Value> = mail.as_array().into_iter().flatten().collect();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = String::new();
    for row in &rows {
        let delivery = &row["deliveries"][0];
        let body: String = word(&row["body"]).lines().next().unwrap_or_default().chars().take(48).collect();
        lines.push_str(&format!(
            "{:5} to {:3}  {}  {body}\n",
            word(&row["from_name"]),
            word(&delivery["to"]),
            word(&delivery["state"])
        ));
    }
    show.shows(&lines)?;
    let is_whole = rows.len() >= 5 && rows.iter().all(|row| row["deliveries"][0]["state"] == "seen");
    show.proves(is_whole, &format!("{} messages, each seen once; nothing is left open", rows.len()))?;
    show.last_words("Next: `baton setup` connects your own agents; `baton setup --remove` takes that back.")
}

/// Sends a message from an agent's shell; gives its id.
fn send(actor: &mut Actor<'_>, name: &str, to: &str, body: &str, show: &mut Show) -> Result<String, Error> {
    show.types(name, &format!("baton send {to} \"{body}\""))?;
    let printed = actor.shell(&["send", to, body])?;
    show.shows(&printed)?;
    Ok(printed.split(' ').next().unwrap_or_default().to_owned())
}

/// The bodies of the messages in a frame: each of their lines is behind a `|`.
fn body_of(frame: &str) -> String {
    let lines: Vec<&str> = frame.lines().filter(|line| line.starts_with("| ")).collect();
    lines.join("\n")
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    text.split(before).nth(1).and_then(|rest| rest.split(after).next()).unwrap_or_default()
}
