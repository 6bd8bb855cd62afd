-- 1: the person wrote it. Set when it is accepted, by who called then; the sender's name says nothing about it.
ALTER TABLE message ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0;
