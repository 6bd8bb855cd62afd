-- The asks whose sender waits: each new ask looks whether it would close a ring of them. A sender that was killed while it waited stays in until its ask is closed.
CREATE INDEX message_waiting ON message (sender) WHERE waiter IS NOT NULL AND closed_by IS NULL;
