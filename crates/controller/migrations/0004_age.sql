-- `age_ms`: for how long controllers have used this store, which no clock that jumps makes wrong. What is kept for a while is
-- kept by it: answers of idempotency keys, and whose flows are wanted.
ALTER TABLE state ADD COLUMN age_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE idempotency RENAME COLUMN at_ms TO at_age_ms;
-- As if the newest answer were of now; those of a clock that was ahead would stay too long, but none is forgotten too early.
UPDATE state SET age_ms = (SELECT COALESCE(MAX(at_age_ms), 0) FROM idempotency);
DELETE FROM flow_interests;
ALTER TABLE flow_interests RENAME COLUMN until_ms TO until_age_ms;
