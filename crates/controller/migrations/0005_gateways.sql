-- `since`: the generation at which the gateway was announced first; of changes up to it, nothing is kept for the gateway.
-- `instance`: which process of that name it is; `rival`: another one, refused last. `problem`: why its last announcement was refused.
ALTER TABLE gateways ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateways ADD COLUMN instance TEXT NOT NULL DEFAULT '';
ALTER TABLE gateways ADD COLUMN rival TEXT NOT NULL DEFAULT '';
ALTER TABLE gateways ADD COLUMN problem TEXT NOT NULL DEFAULT '';
-- Its gateway announces it otherwise, and was refused.
ALTER TABLE links ADD COLUMN disputed BIGINT NOT NULL DEFAULT 0;
