//! Everything that the cases need, made once: programs, homes, a transcript.
//!
//! | home | sessions | messages | WAL | who else has it open |
//! |---|---|---|---|---|
//! | `small` | 20 | none | empty | none |
//! | `long` | 20 | none | 250 KB | none |
//! | `held` | 20 | none | 250 KB | the driver, as a session's MCP server would |
//! | `recent` | 20 | 950 of this minute | empty | none |
//! | `full` | 1,000 | 100,000 | empty | none |
//!
//! Nothing is ever written to `small`, `long`, `held` and `full` after this; copies of them take
//! the mail, and others the floor's rows.

use crate::Outcome;
use crate::child::Shot;
use crate::homes::{FEW_SESSIONS, Home, MANY_MESSAGES, MANY_SESSIONS, Peer};
use crate::payload::{self, Event};
use baton_store::Store;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A WAL just short of what a command would fold.
const LONG_WAL_BYTES: u64 = 250 << 10;

#[derive(Debug)]
pub struct Programs {
    pub baton: PathBuf,
    /// The floor that reads.
    pub floor_read: PathBuf,
    /// The floor that writes.
    pub floor_write: PathBuf,
}

impl Programs {
    /// The programs as an installation has them: copied. A linker leaves a file in the page cache
    /// in small pieces, and running it from there costs each process some forty page faults more.
    fn installed(self, root: &Path) -> Outcome<Self> {
        let folder = root.join("bin");
        std::fs::create_dir(&folder)?;
        let copy = |program: PathBuf| -> Outcome<PathBuf> {
            let to = folder.join(program.file_name().ok_or("a program without a name")?);
            std::fs::copy(&program, &to)?;
            Ok(to)
        };
        Ok(Self {
            baton: copy(self.baton)?,
            floor_read: copy(self.floor_read)?,
            floor_write: copy(self.floor_write)?,
        })
    }
}

/// A store in the forms that are compared.
pub struct Sized {
    /// Never written to.
    pub quiet: Home,
    /// Takes mail, and is rewound.
    pub mail: Home,
    /// Takes the floor's rows.
    pub floor: Home,
}

/// The programs, and the folder that everything is below.
pub struct Workshop {
    pub programs: Programs,
    pub scratch: TempDir,
    pub root: PathBuf,
    pub project: PathBuf,
}

impl Workshop {
    pub fn new(programs: Programs, below: &Path) -> Outcome<Self> {
        let scratch = tempfile::Builder::new().prefix("baton-bench-").tempdir_in(below)?;
        let root = scratch.path().canonicalize()?;
        let project = root.join("project");
        std::fs::create_dir(&project)?;
        let programs = programs.installed(&root)?;
        Ok(Self { programs, scratch, root, project })
    }

    pub fn mcp(&self, home: &Home, peer: &Peer) -> Shot {
        Shot::new(&self.programs.baton, &home.project)
            .args(["mcp", "--agent", "claude", "--home"])
            .arg(&home.folder)
            .env("HOME", &home.project)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_SESSION_ID", &peer.session)
    }
}

pub struct World {
    pub workshop: Workshop,
    /// The store of one developer.
    pub small: Sized,
    /// The store after years.
    pub full: Sized,
    /// With a long WAL, and no other process that has it open.
    pub long: Home,
    /// With a long WAL, and another process that has it open.
    pub held: Home,
    /// With many messages of this minute.
    pub recent: Home,
    transcript: PathBuf,
    _holder: Connection,
}

impl World {
    /// From now on this process counts as an agent: it runs the sessions whose hooks are measured.
    pub fn new(workshop: Workshop) -> Outcome<Self> {
        let Workshop { programs, root, project, .. } = &workshop;
        let transcript = payload::transcript(root.join("transcript.jsonl"))?;
        let quiet = |home: &Home| -> Outcome<()> {
            payload::hook(&programs.baton, home, &home.peers[0], &transcript, &Event::Tools).fire()?;
            home.fold()
        };
        let small = Home::with_sessions(root.join("small"), project, FEW_SESSIONS)?;
        small.run_measured_sessions()?;
        quiet(&small)?;
        let mut full = Home::with_sessions(root.join("full"), project, MANY_SESSIONS)?;
        full.run_measured_sessions()?;
        full.fill(MANY_MESSAGES)?;
        quiet(&full)?;
        let long = small.copy(root.join("long"))?;
        long.lengthen_wal(LONG_WAL_BYTES)?;
        let held = small.copy(root.join("held"))?;
        held.lengthen_wal(LONG_WAL_BYTES)?;
        let holder = held.connect()?;
        holder.query_row("SELECT count(*) FROM session", [], |row| row.get::<_, i64>(0))?;
        let mut recent = small.copy(root.join("recent"))?;
        for peer in &recent.peers[1..] {
            recent.queue(peer, 50)?;
        }
        recent.settle_down()?;
        let sized = |quiet: Home, name: &str| -> Outcome<Sized> {
            let copy = |what: &str| quiet.copy(root.join(format!("{name}-{what}")));
            Ok(Sized { mail: copy("mail")?, floor: copy("floor")?, quiet })
        };
        let (small, full) = (sized(small, "small")?, sized(full, "full")?);
        // Otherwise what is written back later would be timed.
        rustix::fs::sync();
        Ok(Self { workshop, small, full, long, held, recent, transcript, _holder: holder })
    }

    pub fn baton(&self) -> &Path {
        &self.workshop.programs.baton
    }

    pub fn hook(&self, home: &Home, peer: &Peer, event: &Event) -> Shot {
        payload::hook(&self.workshop.programs.baton, home, peer, &self.transcript, event)
    }

    /// The floor that reads, on that home's store.
    pub fn floor_read(&self, home: &Home) -> Shot {
        Shot::new(&self.workshop.programs.floor_read, &home.project)
            .arg(Store::path(&home.folder))
            .arg("claude")
            .arg(&home.peers[0].session)
    }

    /// The floor that writes, into that home's store.
    pub fn floor_write(&self, home: &Home, key: &str) -> Shot {
        Shot::new(&self.workshop.programs.floor_write, &home.project).arg(Store::path(&home.folder)).arg(key)
    }

    /// A send that names no session.
    pub fn send(&self, home: &Home, to: &Peer, body: &str) -> Shot {
        Shot::new(&self.workshop.programs.baton, &home.project)
            .args(["send", &to.name, body])
            .env("BATON_HOME", &home.folder)
            .env("HOME", &home.project)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
    }

    /// A send from the shell of an agent's session.
    pub fn send_from(&self, home: &Home, from: &Peer, to: &Peer, body: &str) -> Shot {
        self.send(home, to, body).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", &from.session)
    }
}
