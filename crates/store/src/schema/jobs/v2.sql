-- The digest of what was shown to the one who answered: the worker hands the answer over only where it holds the same.
ALTER TABLE answer ADD COLUMN digest TEXT;
