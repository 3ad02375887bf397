-- The numbering of a tenant is serialised by this row; here the writer's transaction locks the whole file anyway.
SELECT last_position FROM feed_heads WHERE tenant = ?1
