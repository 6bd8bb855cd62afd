-- `digest` tells what is asked from everything else that could be; `answered` is the digest of what was shown to the one who answered. An answer counts only
-- where they are the same, and the same as what its holder has in hand.
ALTER TABLE approval ADD COLUMN digest TEXT;
ALTER TABLE approval ADD COLUMN answered TEXT;
