//! Turns against a server that the test plays.

use super::*;
use baton_core::approval::Subject;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

const LIMIT: Duration = Duration::from_secs(30);

/// A server that answers by a function of method, path and body: a content type, a body, and
/// whether the line stays open.
fn serve(answer: impl Fn(&str, &str) -> (&'static str, String, bool) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || respond(stream, &*answer));
        }
    });
    port
}

fn respond(mut stream: TcpStream, answer: &dyn Fn(&str, &str) -> (&'static str, String, bool)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_lowercase();
        length = lower.strip_prefix("content-length:").map_or(length, |size| size.trim().parse().unwrap());
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (kind, said, stays) = answer(path, &String::from_utf8_lossy(&body));
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{said}").unwrap();
    if stays {
        reader.read_exact(&mut [0]).ok();
    }
}

fn event(kind: &str, about: &Value) -> String {
    format!("data: {}\n\n", json!({"type": kind, "properties": about}))
}

fn listen(port: u16, allow: Allow) -> (Arc<Its>, Receiver<Observation>) {
    let (tell, told) = channel();
    let its = Arc::new(Its {
        api: Api::new(port, "x", "/"),
        session: "ses_job".to_owned(),
        prompt: "msg_1".to_owned(),
        allow,
        server: process::this(),
        report: Arc::new(move |observation| tell.send(observation).unwrap_or(())),
        state: Mutex::new(State { family: HashSet::from(["ses_job".to_owned()]), ..State::default() }),
        changed: Condvar::new(),
    });
    let reader = Arc::clone(&its);
    thread::spawn(move || reader.read_events());
    (its, told)
}

#[test]
fn events_that_break_off_are_lost_and_found_again_while_the_server_answers() {
    let connections = Mutex::new(0);
    let port = serve(move |path, _| match path {
        "/event" => {
            let mut count = lock(&connections);
            *count += 1;
            ("text/event-stream", event("server.connected", &json!({})), *count > 1)
        }
        _ => ("application/json", json!({"healthy": true, "version": "1.18.33"}).to_string(), false),
    });
    let (_its, told) = listen(port, Allow::Ask);
    assert!(matches!(told.recv_timeout(LIMIT), Ok(Observation::Lost(Channel::Stream, _))));
    assert_eq!(told.recv_timeout(LIMIT), Ok(Observation::Found(Channel::Stream)));
}

#[test]
fn an_older_server_is_answered_by_its_own_call_and_other_sessions_are_not_ours() {
    let (answered, answers) = channel();
    let answered = Mutex::new(answered);
    let port = serve(move |path, body| match path {
        "/event" => {
            let asked = |session: &str, id: &str| json!({"id": id, "sessionID": session, "permission": "bash", "patterns": ["ls"]});
            let events = [
                event("permission.asked", &asked("ses_other", "per_other")),
                event("session.created", &json!({"info": {"id": "ses_child", "parentID": "ses_job"}})),
                event("permission.asked", &asked("ses_child", "per_child")),
            ];
            ("text/event-stream", events.concat(), true)
        }
        "/session/ses_job/permissions/per_child" => {
            lock(&answered).send(body.to_owned()).unwrap();
            ("application/json", "true".to_owned(), false)
        }
        // What it does not know is its web page.
        _ => ("text/html", "<html></html>".to_owned(), false),
    });
    let (its, told) = listen(port, Allow::Ask);
    let question = match told.recv_timeout(LIMIT) {
        Ok(Observation::Asked(question)) => question,
        other => panic!("{other:?}"),
    };
    // Its patterns are not the command.
    let head = "bash: ls … (the agent does not say more)";
    assert_eq!((question.id.as_str(), question.subject.head().as_str()), ("per_child", head));
    let swapped = Question::new("per_child", Subject::command("bash", "rm x"));
    assert_eq!(its.answer(&swapped, &Answer::Allow).unwrap_err().code(), Code::QuestionChanged);
    its.answer(&question, &Answer::Deny("no".to_owned())).unwrap();
    assert_eq!(answers.recv_timeout(LIMIT).unwrap(), r#"{"response":"reject"}"#);
    assert!(its.answer(&Question { id: "per_other".into(), ..question }, &Answer::Allow).is_err());
}
