-- New, or new settings of the tenant's own. No row: the name is another tenant's.
INSERT INTO accounts (name, tenant, channel, settings, created_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE
SET channel = excluded.channel, settings = excluded.settings
WHERE accounts.tenant = excluded.tenant
