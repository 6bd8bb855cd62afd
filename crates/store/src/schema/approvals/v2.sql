-- When somebody was last told that a session or a job waits: several processes tell it once.
CREATE TABLE notice (
    who TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
