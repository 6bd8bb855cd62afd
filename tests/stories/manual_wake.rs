//! Waking an agent by hand: its own bare call for that, made by an extension that has nothing to do
//! with baton. What baton adds is measured against it.
//!
//! Each extension listens on a socket in the sandbox. A line on it is the session and the text to
//! wake it with.

use crate::opencode;
use crate::sandbox::StorySandbox;
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Calls `wake(session, text)` for each line that comes in.
const LISTEN: &str = r#"
import { createServer } from "node:net"
const listen = (wake) => {
  const server = createServer((caller) => {
    let line = ""
    caller.on("data", (piece) => (line += piece))
    caller.on("end", () => {
      const { session, text } = JSON.parse(line)
      wake(session, text)
    })
  })
  server.on("error", () => {})
  server.listen(SOCKET).unref()
}
"#;

const OPENCODE: &str = r#"
export const Hand = async ({ client }) => {
  listen((id, text) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } }))
  return {}
}
"#;

const PI: &str = r#"
export default (pi) => listen((_, text) => pi.sendMessage({ customType: "hand", content: text, display: true }, { triggerTurn: true }))
"#;

const COPILOT: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension"
const session = await joinSession({})
listen((_, text) => session.send({ prompt: text }))
"#;

fn socket(stage: &StorySandbox) -> PathBuf {
    stage.sandbox.path("tmp/hand")
}

fn extension(stage: &StorySandbox, wakes: &str) -> String {
    LISTEN.replace("SOCKET", &json!(socket(stage)).to_string()) + wakes
}

/// OpenCode's `promptAsync`.
pub fn for_opencode(stage: &StorySandbox) {
    opencode::add_plugin(stage, "hand.js", &extension(stage, OPENCODE));
}

/// Pi's `sendMessage` that begins a turn.
pub fn for_pi(stage: &StorySandbox) {
    let file = stage.sandbox.path("home/.pi/agent/extensions/hand.js");
    fs::write(file, extension(stage, PI)).expect("an extension");
}

/// The `send` of a Copilot session.
pub fn for_copilot(stage: &StorySandbox) {
    let folder = stage.sandbox.path("home/.copilot/extensions/hand");
    fs::create_dir_all(&folder).expect("a folder for the extension");
    fs::write(folder.join("extension.mjs"), extension(stage, COPILOT)).expect("an extension");
}

/// Wakes the session with that text.
pub fn wake(stage: &StorySandbox, session: &str, text: &str) {
    let mut caller = UnixStream::connect(socket(stage)).expect("the extension listens");
    write!(caller, "{}", json!({"session": session, "text": text})).expect("the extension reads");
}
