-- In the same transaction as `number`, so that there are no gaps.
UPDATE feed_heads SET last_position = last_position + $2 WHERE tenant = $1
