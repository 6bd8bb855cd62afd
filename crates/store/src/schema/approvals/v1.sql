-- One question that an agent waits with. `question` is what is asked, as JSON; `asked` is the agent's own id of it, `call` that of the tool call, `input` a
-- fingerprint of the tool and its input, for agents that give neither. `holder` is the process that hands an answer over, `asker` the agent's own, each with
-- its start. `participant` is one of the mail store. The moves between states are those of `baton_core::approval`.
CREATE TABLE approval (
    id INTEGER PRIMARY KEY,
    public TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    cwd TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    subagent TEXT,
    participant INTEGER,
    name TEXT NOT NULL,
    transcript TEXT,
    question TEXT NOT NULL,
    why TEXT,
    asked TEXT NOT NULL,
    call TEXT,
    input INTEGER NOT NULL,
    asker INTEGER,
    asker_start INTEGER,
    holder INTEGER,
    holder_start INTEGER,
    state TEXT NOT NULL,
    answer TEXT,
    words TEXT,
    by TEXT,
    note TEXT,
    asked_at INTEGER NOT NULL,
    until INTEGER,
    answered_at INTEGER,
    handed_at INTEGER,
    closed_at INTEGER
) STRICT;
CREATE INDEX approval_open ON approval (agent, session) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX approval_asked ON approval (agent, session, asked) WHERE closed_at IS NULL AND asked <> '';
