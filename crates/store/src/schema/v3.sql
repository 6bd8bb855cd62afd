-- Not 0: a job that this participant asked for may still run, and its events look after it. A hint that grows with each job; the truth is in jobs.db.
ALTER TABLE participant ADD COLUMN jobs INTEGER NOT NULL DEFAULT 0;
