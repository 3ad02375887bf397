-- Verified events, once per account and identity. A repeat leaves the first row as it is, also a settled one (B046, B047).
INSERT INTO inbox (tenant, id, channel, account, identity, status, received_at, next_try_at, tries, doc, raw)
SELECT $1, u.id, $2, $3, u.identity, 'waiting', $4, $4, 0, u.doc, $5
FROM unnest($6::text[], $7::text[], $8::text[]) WITH ORDINALITY AS u (id, identity, doc, n)
ORDER BY u.identity COLLATE "C", u.n
ON CONFLICT (tenant, account, identity) DO NOTHING
RETURNING id
