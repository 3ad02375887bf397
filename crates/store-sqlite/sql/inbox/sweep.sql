-- Bounded clean-up behind the channels' last redelivery. What is waiting or unmatched stays.
DELETE FROM inbox
WHERE rowid IN (SELECT rowid FROM inbox WHERE received_at < ?1 AND status IN ('settled', 'foreign') ORDER BY received_at LIMIT ?2)
