-- A try to make an idle participant take a turn. `newest` is the newest message that waited for it, `tried` how many tries for the same mail came before.
-- Without an outcome it is being performed, or whoever did that was killed.
CREATE TABLE wake (
    id INTEGER PRIMARY KEY,
    participant INTEGER NOT NULL,
    session INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    tried INTEGER NOT NULL,
    route TEXT,
    outcome TEXT,
    detail TEXT,
    at INTEGER NOT NULL,
    decided_at INTEGER
) STRICT;
CREATE INDEX wake_of ON wake (participant);

-- `wake` is a participant's wake that no event of it has confirmed yet. Until `dnd_until` only urgent mail reaches it. `wake_off`: it is never woken.
ALTER TABLE participant ADD COLUMN wake INTEGER;
ALTER TABLE participant ADD COLUMN dnd_until INTEGER;
ALTER TABLE participant ADD COLUMN wake_off INTEGER NOT NULL DEFAULT 0;
-- How much a message presses: 0 ordinary, 1 urgent (passes dnd), 2 quiet (wakes nobody).
ALTER TABLE message ADD COLUMN attention INTEGER NOT NULL DEFAULT 0;
