//! The stores that are measured, small and full ones. Mail is put into them before a run, and
//! everything is taken back after it.
//!
//! Sessions and mail go through `baton-store`, as in real use. Only the hundred thousand old
//! messages and the rewinding use SQL: the first for speed, the second because baton never forgets.
//! No connection is open while a program is measured, unless a case says so. A program that opens a
//! store alone has to build SQLite's index of the WAL again, and a floor pays for that as baton
//! does.

use crate::Outcome;
use baton_core::body::Body;
use baton_core::id::{MessageId, ParticipantId};
use baton_core::limits::Limits;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::Attention;
use baton_store::{NewMail, Role, Sighting, Store, Verb};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Sessions in a small store: what one developer has open.
pub const FEW_SESSIONS: usize = 20;
/// Sessions in a full store.
pub const MANY_SESSIONS: usize = 1_000;
/// Messages in a full store.
pub const MANY_MESSAGES: u32 = 100_000;
/// The peers whose hooks and sends are measured.
const MEASURED_PEERS: [usize; 3] = [0, 1, 3];
/// In each body, to be counted in a hook's output.
pub const BODY_MARK: &str = "bench-mail";

/// A session that is registered in a store.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The agent's own id of it.
    pub session: String,
    pub name: String,
    pub participant: ParticipantId,
}

/// A home with a store.
pub struct Home {
    pub folder: PathBuf,
    /// Where its sessions work.
    pub project: PathBuf,
    pub peers: Vec<Peer>,
    mark: Mark,
    ids: AtomicU64,
}

/// The last rows before anything was measured.
#[derive(Clone, Copy, Default)]
struct Mark {
    message: i64,
    offer: i64,
    trail: i64,
}

impl Home {
    /// A home with that many sessions and no mail.
    pub fn with_sessions(folder: PathBuf, project: &Path, sessions: usize) -> Outcome<Self> {
        let mut store = Store::open(&folder, Role::Hook)?;
        let cwd = project.to_string_lossy();
        let mut peers = Vec::new();
        for number in 0..sessions {
            let session = format!("{number:08x}-51de-4bad-8ace-{:012x}", number * 7919);
            let seen = store.sight_session(&Sighting {
                agent: "claude",
                native: &session,
                project: &cwd,
                cwd: &cwd,
                transcript: None,
                process: None,
                source: None,
                state: State::Busy,
                now: now(),
            })?;
            let named = store.participant(seen.participant)?.ok_or("a session without a participant")?;
            peers.push(Peer { session, name: named.name, participant: seen.participant });
        }
        drop(store);
        let mut home = Self {
            folder,
            project: project.to_owned(),
            peers,
            mark: Mark::default(),
            ids: AtomicU64::new(0),
        };
        home.fold()?;
        home.settle_down()?;
        Ok(home)
    }

    /// Records the bench as the process of the sessions whose hooks and sends are measured. It
    /// starts them, as an agent does. One process runs several sessions here, which a sighting
    /// would take for one session that goes on.
    pub fn run_measured_sessions(&self) -> Outcome<()> {
        let agent = baton_machine::process::this();
        // The first hook of an agent marks it, and the later ones find the mark.
        baton_machine::process::mark::set(agent);
        let db = self.connect()?;
        for peer in MEASURED_PEERS.iter().filter_map(|index| self.peers.get(*index)) {
            db.execute(
                "UPDATE session SET pid = ?1, pid_start = ?2 WHERE native = ?3",
                (agent.pid, agent.start.cast_signed(), &peer.session),
            )?;
        }
        drop(db);
        self.fold()
    }

    /// A home with a copy of this one's store, as it was when it was made.
    pub fn copy(&self, folder: PathBuf) -> Outcome<Self> {
        fs::create_dir_all(&folder)?;
        fs::copy(Store::path(&self.folder), Store::path(&folder))?;
        let (project, peers) = (self.project.clone(), self.peers.clone());
        Ok(Self { folder, project, peers, mark: self.mark, ids: AtomicU64::new(0) })
    }

    /// Adds a long history: seen mail of the last three weeks among all sessions, and some that
    /// still waits for sessions that are not measured.
    pub fn fill(&mut self, messages: u32) -> Outcome<()> {
        let mut db = self.connect()?;
        let people = u32::try_from(self.peers.len())?;
        let newest = now().0 - 3_600_000;
        let tx = db.transaction()?;
        tx.execute_batch("CREATE TEMP TABLE past (i INTEGER PRIMARY KEY, at INTEGER, sender INTEGER, recipient INTEGER, state INTEGER)")?;
        tx.execute(
            "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             INSERT INTO past SELECT i, ?3 - (?1 - i) * 17000, 1 + i % ?2, 1 + (i + 1 + i % 97) % ?2,
                CASE WHEN i % 100 = 0 AND (i + 1 + i % 97) % ?2 > 100 THEN 0 ELSE 2 END FROM n",
            (messages, people, newest),
        )?;
        tx.execute_batch(
            "INSERT INTO message (public, sender, sender_session, body, verb, sent_at, expires_at)
                SELECT printf('m%012d', i), sender, sender, printf('%d: %.*c', i, 60 + i % 400, 'x'), 'send', at, at + 2592000000 FROM past;
             INSERT INTO delivery (message, recipient, state, state_at, offer) SELECT i, recipient, state, at, (i + 2) / 3 FROM past;
             INSERT INTO offer (nonce, participant, session, anchor, position, read_from, pid, pid_start, state, made_at, decided_at)
                SELECT printf('n%012d', i), recipient, recipient, 'prompt', 0, 0, 1, 1, 1, at, at FROM past WHERE i % 3 = 1;
             INSERT INTO trail (at, kind, participant, message) SELECT at, 'sent', recipient, i FROM past;
             INSERT INTO trail (at, kind, participant, message) SELECT at, 'offered', recipient, i FROM past WHERE state = 2;
             INSERT INTO trail (at, kind, participant, message) SELECT at, 'seen', recipient, i FROM past WHERE state = 2;
             DROP TABLE past;",
        )?;
        tx.commit()?;
        drop(db);
        self.fold()?;
        self.settle_down()
    }

    /// Writes until the WAL is about that long, and leaves it so.
    pub fn lengthen_wal(&self, bytes: u64) -> Outcome<()> {
        let mut store = Store::open(&self.folder, Role::Hook)?;
        while store.wal_bytes() < bytes {
            store.note(now(), "bench", None, "makes the WAL longer")?;
        }
        Ok(())
    }

    /// Queues messages for a session, from others of its project.
    pub fn queue(&self, to: &Peer, count: usize) -> Outcome<()> {
        let mut store = Store::open(&self.folder, Role::Hook)?;
        let rules = Limits::default();
        for number in 0..count {
            let sender = &self.peers[2 + number % (self.peers.len() - 2)];
            let body =
                Body::from_text(format!("{BODY_MARK} {number}: {}", "the build is green again; ".repeat(7)))?;
            let recipients = store.participant(to.participant)?.into_iter().collect();
            store.accept_mail(
                NewMail {
                    id: self.fresh_id(),
                    sender: sender.participant,
                    session: None,
                    by_person: false,
                    verb: Verb::Send,
                    recipients,
                    body: &body,
                    thread: None,
                    reply_to: None,
                    key: None,
                    waiter: None,
                    ttl: rules.ttl,
                    attention: Attention::Ordinary,
                    now: now(),
                },
                &rules,
            )?;
        }
        drop(store);
        self.fold()
    }

    /// Ends the turn of a session, as its stop does. `turn_from` is the transcript's length at the
    /// turn's start.
    pub fn idle(&self, peer: &Peer, turn_from: usize) -> Outcome<()> {
        self.connect()?.execute(
            "UPDATE session SET state = 'idle', turn_from = ?2 WHERE native = ?1 AND agent = 'claude'",
            (&peer.session, i64::try_from(turn_from)?),
        )?;
        self.fold()
    }

    /// Makes the present content the one that a rewind goes back to.
    pub fn settle_down(&mut self) -> Outcome<()> {
        let db = self.connect()?;
        let last = |table: &str| {
            db.query_row(&format!("SELECT coalesce(max(id), 0) FROM {table}"), [], |row| row.get(0))
        };
        self.mark = Mark { message: last("message")?, offer: last("offer")?, trail: last("trail")? };
        Ok(())
    }

    /// Takes back what a run added, and returns how many messages that were.
    pub fn rewind(&self) -> Outcome<usize> {
        let mut db = self.connect()?;
        let tx = db.transaction()?;
        let messages = tx.execute("DELETE FROM message WHERE id > ?1", [self.mark.message])?;
        tx.execute("DELETE FROM delivery WHERE message > ?1", [self.mark.message])?;
        if tx.execute("DELETE FROM offer WHERE id > ?1", [self.mark.offer])? > 0 {
            tx.execute("UPDATE participant SET offer = NULL WHERE offer > ?1", [self.mark.offer])?;
        }
        tx.execute("DELETE FROM trail WHERE id > ?1", [self.mark.trail])?;
        tx.commit()?;
        drop(db);
        self.fold()?;
        Ok(messages)
    }

    /// Empties the WAL.
    pub fn fold(&self) -> Outcome<()> {
        let db = self.connect()?;
        let refused: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if refused == 0 { Ok(()) } else { Err("the WAL could not be folded".into()) }
    }

    /// A connection for the bench itself. It folds nothing when it closes, or it would remove the
    /// WAL.
    pub fn connect(&self) -> Outcome<Connection> {
        let db = Connection::open(Store::path(&self.folder))?;
        db.busy_timeout(std::time::Duration::from_secs(10))?;
        db.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL")?;
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(db)
    }

    /// An id that no other message has.
    fn fresh_id(&self) -> MessageId {
        let next = self.ids.fetch_add(1, Ordering::Relaxed);
        MessageId::from_random((next | 0x1f << 55).to_le_bytes())
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewound_store_is_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut home = Home::with_sessions(dir.path().join("home"), dir.path(), 5).unwrap();
        home.fill(300).unwrap();
        home.queue(&home.peers[0], 3).unwrap();
        assert_eq!(home.rewind().unwrap(), 3);
        assert_eq!(home.rewind().unwrap(), 0);
        let db = home.connect().unwrap();
        let count = |table: &str| {
            db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!((count("message"), count("delivery"), count("offer")), (300, 300, 100));
        let waiting: i64 = db
            .query_row("SELECT count(*) FROM delivery WHERE recipient = 1 AND state < 2", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(waiting, 0);
    }
}
