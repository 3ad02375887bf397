-- Bounded clean-up. Running and parked rows never expire (B030), whatever their expiry says.
DELETE FROM records
WHERE rowid IN (SELECT rowid FROM records WHERE state = 2 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
