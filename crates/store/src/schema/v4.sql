-- Each command asks which session runs above it. Sessions that are gone stay out, so the index is as long as the list of agents that run.
CREATE INDEX session_process ON session (pid) WHERE state <> 'gone';
