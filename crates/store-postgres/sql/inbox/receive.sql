-- A verified event, once per account and identity. A repeat leaves the first row as it is, also a settled one (B046, B047).
INSERT INTO inbox (tenant, id, channel, account, identity, status, received_at, next_try_at, tries, doc, raw)
VALUES ($1, $2, $3, $4, $5, 'waiting', $6, $6, 0, $7, $8)
ON CONFLICT (tenant, account, identity) DO NOTHING
RETURNING id
