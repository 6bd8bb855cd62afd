//! hcom, for comparison: two participants in a throw-away home, one of them bound like a session
//! that hcom itself launched.
//!
//! It gets no search path, so its check for updates finds no program to reach the network with.

use crate::Outcome;
use crate::child::Shot;
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The version that is compared.
pub const VERSION: &str = "0.7.31";

pub struct Hcom {
    program: PathBuf,
    home: PathBuf,
    me: String,
    peer: String,
    input: String,
}

const SESSION_IDS: [&str; 2] =
    ["05b61459-1268-4e75-8291-dd3039b07bc5", "05b61459-1268-4e75-8291-dd3039b07bc6"];
const PROCESS_ID: &str = "bench-process";

impl Hcom {
    /// Sets it up, and checks that its hook delivers mail: a hook that does not know its session
    /// would be fast for the wrong reason.
    pub fn new(program: &Path, home: PathBuf) -> Outcome<Self> {
        let transcript = home.join(".claude/projects/bench").join(format!("{}.jsonl", SESSION_IDS[0]));
        fs::create_dir_all(transcript.parent().unwrap_or(&home))?;
        let first = json!({"type": "user", "sessionId": SESSION_IDS[0], "uuid": "u1", "parentUuid": null, "cwd": home,
            "message": {"role": "user", "content": "hi"}});
        fs::write(&transcript, format!("{first}\n"))?;
        let input = json!({"session_id": SESSION_IDS[0], "transcript_path": transcript, "cwd": home, "hook_event_name": "PostToolUse",
            "permission_mode": "bypassPermissions", "tool_name": "Bash", "tool_input": {"command": "echo hi"},
            "tool_response": {"stdout": "hi", "stderr": ""}, "tool_use_id": "toolu_dc83d1b70d8547a1a854"});
        let mut hcom = Self {
            program: program.to_owned(),
            home,
            me: String::new(),
            peer: String::new(),
            input: input.to_string(),
        };
        hcom.me = hcom.start(SESSION_IDS[0])?;
        hcom.peer = hcom.start(SESSION_IDS[1])?;
        hcom.bind(&transcript)?;
        hcom.shot()
            .arg("send")
            .arg(format!("@{}", hcom.me))
            .args(["--from", "bench", "--", "is it heard"])
            .fire()?;
        // The first run introduces hcom to the model, the next one brings the mail.
        let said: Vec<u8> =
            hcom.hook().fire()?.output.into_iter().chain(hcom.hook().fire()?.output).collect();
        if !String::from_utf8_lossy(&said).contains("is it heard") {
            return Err("its hook does not deliver mail to its session".into());
        }
        Ok(hcom)
    }

    /// A copy in a fresh state, for the parallel sends.
    pub fn again(&self, home: PathBuf) -> Outcome<Self> {
        Self::new(&self.program, home)
    }

    /// Its hook after a tool, with nothing pending.
    pub fn hook(&self) -> Shot {
        self.shot()
            .env("HCOM_LAUNCHED", "1")
            .env("HCOM_PROCESS_ID", PROCESS_ID)
            .env("HCOM_TOOL", "claude")
            .arg("post")
            .input(&*self.input)
    }

    /// One message from one participant to the other.
    pub fn send(&self, body: &str) -> Shot {
        self.shot().arg("send").arg(format!("@{}", self.peer)).args(["--name", &self.me, "--", body])
    }

    /// How many different messages with such a text were accepted, and how many in all.
    pub fn count(&self, mark: &str) -> Outcome<(u32, u32)> {
        let db = Connection::open(self.home.join(".hcom/hcom.db"))?;
        let sql = "SELECT count(DISTINCT json_extract(data, '$.text')), count(*) FROM events WHERE type = 'message' AND data LIKE ?1";
        Ok(db.query_row(sql, [format!("%{mark}%")], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    fn shot(&self) -> Shot {
        Shot::new(&self.program, &self.home)
            .env("HOME", &self.home)
            .env("HCOM_DIR", self.home.join(".hcom"))
            .env("PATH", self.home.join("no-programs"))
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_SESSION_ID", SESSION_IDS[0])
    }

    fn start(&self, session: &str) -> Outcome<String> {
        let mut shot = self.shot().arg("start");
        shot.environment.retain(|(name, _)| name != "CLAUDE_CODE_SESSION_ID");
        let said = shot.env("CLAUDE_CODE_SESSION_ID", session).fire()?.output;
        let said = String::from_utf8_lossy(&said).into_owned();
        let name = said
            .split_once("[hcom:")
            .and_then(|(_, rest)| rest.split_once(']'))
            .map(|(name, _)| name.to_owned());
        name.ok_or_else(|| "`hcom start` gave no name".into())
    }

    /// Writes what a launch through hcom would have written: which process and transcript belong to
    /// the session.
    fn bind(&self, transcript: &Path) -> Outcome<()> {
        let db = Connection::open(self.home.join(".hcom/hcom.db"))?;
        db.execute(
            "UPDATE instances SET tool = 'claude', status = 'active', transcript_path = ?2 WHERE name = ?1",
            (&self.me, transcript.to_string_lossy()),
        )?;
        db.execute(
            "INSERT INTO process_bindings (process_id, session_id, instance_name, updated_at) VALUES (?1, ?2, ?3, unixepoch())",
            (PROCESS_ID, SESSION_IDS[0], &self.me),
        )?;
        Ok(())
    }
}
