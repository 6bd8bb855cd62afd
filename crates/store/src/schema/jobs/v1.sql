-- One task that an agent does in the background. `asker` is a participant of the mail store; `request` is what was asked for, as JSON, but for the prompt.
-- `worker` is the process that watches it, `backend` the agent's program, each with its start. The ends `completed`, `failed` and `cancelled` are final.
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    public TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    status TEXT NOT NULL,
    phase TEXT NOT NULL DEFAULT '',
    prompt TEXT NOT NULL,
    request TEXT NOT NULL,
    cwd TEXT NOT NULL,
    worktree TEXT,
    asker INTEGER NOT NULL,
    asker_name TEXT NOT NULL,
    key TEXT,
    digest BLOB,
    worker INTEGER,
    worker_start INTEGER,
    backend INTEGER,
    backend_start INTEGER,
    session TEXT,
    resumes TEXT,
    activity TEXT,
    activity_at INTEGER,
    questions TEXT,
    result TEXT,
    error_code TEXT,
    error TEXT,
    hint TEXT,
    again_at INTEGER,
    exit TEXT,
    changes TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    elapsed INTEGER,
    cancel INTEGER NOT NULL DEFAULT 0,
    told INTEGER NOT NULL DEFAULT 0,
    read_at INTEGER
) STRICT;
CREATE UNIQUE INDEX job_key ON job (asker, key) WHERE key IS NOT NULL;
CREATE INDEX job_open ON job (asker) WHERE ended_at IS NULL OR told = 0;
CREATE INDEX job_project ON job (project, id);

-- Answers to what a job asked, for its worker to take.
CREATE TABLE answer (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    words TEXT NOT NULL,
    by TEXT NOT NULL,
    at INTEGER NOT NULL,
    outcome TEXT
) STRICT;
CREATE INDEX answer_of ON answer (job) WHERE outcome IS NULL;
