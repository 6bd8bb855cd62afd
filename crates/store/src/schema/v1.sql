-- A name and a mailbox. `offer` is its one open offer, `session` its present model context.
CREATE TABLE participant (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    agent TEXT NOT NULL,
    session INTEGER,
    offer INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (project, name)
) STRICT;

-- One model context of a participant. `turn` is the agent's id of the running turn, `turn_from` the transcript's length at its start.
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    native TEXT NOT NULL,
    participant INTEGER NOT NULL,
    transcript TEXT,
    cwd TEXT NOT NULL,
    pid INTEGER,
    pid_start INTEGER,
    state TEXT NOT NULL,
    state_since INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    turn TEXT,
    turn_from INTEGER NOT NULL DEFAULT 0,
    stops INTEGER NOT NULL DEFAULT 0,
    person_turn_at INTEGER,
    UNIQUE (agent, native)
) STRICT;

-- What was said. The order of ids is the order of acceptance; the newest row is never trimmed, so no id is used twice. An ask has `ask` = 1 and is closed by its first reply.
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    public TEXT NOT NULL UNIQUE,
    sender INTEGER,
    sender_session INTEGER,
    body TEXT NOT NULL,
    thread TEXT,
    reply_to INTEGER,
    ask INTEGER NOT NULL DEFAULT 0,
    closed_by INTEGER,
    waiter INTEGER,
    waiter_start INTEGER,
    hops INTEGER NOT NULL DEFAULT 0,
    verb TEXT NOT NULL,
    key TEXT,
    digest BLOB,
    sent_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_key ON message (sender, verb, key) WHERE key IS NOT NULL;

-- One message at one recipient: 0 queued, 1 offered, 2 and above are ends.
CREATE TABLE delivery (
    message INTEGER NOT NULL,
    recipient INTEGER NOT NULL,
    state INTEGER NOT NULL,
    state_at INTEGER NOT NULL,
    offer INTEGER,
    returns INTEGER NOT NULL DEFAULT 0,
    doubted INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_waiting ON delivery (recipient, state, message) WHERE state < 2;

-- What one hook run, MCP call or command printed: 0 open, 1 seen, 2 returned, 3 in doubt. `answer` marks the reply to a waiting ask, which may be
-- open beside the one mail offer.
CREATE TABLE offer (
    id INTEGER PRIMARY KEY,
    nonce TEXT NOT NULL,
    participant INTEGER NOT NULL,
    session INTEGER NOT NULL,
    answer INTEGER NOT NULL DEFAULT 0,
    anchor TEXT NOT NULL,
    turn TEXT,
    position INTEGER NOT NULL,
    read_from INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    pid_start INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    made_at INTEGER NOT NULL,
    decided_at INTEGER
) STRICT;
CREATE INDEX offer_open ON offer (participant) WHERE state = 0;

CREATE TABLE tag (
    participant INTEGER NOT NULL,
    tag TEXT NOT NULL,
    PRIMARY KEY (participant, tag)
) STRICT, WITHOUT ROWID;

-- MCP calls that a subagent announced: they never take their parent's mail.
CREATE TABLE subagent_call (
    call TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Everything that happened, in order.
CREATE TABLE trail (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    participant INTEGER,
    message INTEGER,
    detail TEXT
) STRICT;
