-- For start-up and operators.
SELECT name, tenant, channel, settings, created_at FROM accounts ORDER BY name
