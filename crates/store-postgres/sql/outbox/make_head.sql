-- The tenant's feed begins.
INSERT INTO feed_heads (tenant, last_position) VALUES ($1, 0) ON CONFLICT (tenant) DO NOTHING
