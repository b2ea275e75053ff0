-- `purge`: an operator ends the slice, which drains: the gateway drops its waiting frames.
ALTER TABLE slice_hops ADD COLUMN purge BIGINT NOT NULL DEFAULT 0;
CREATE INDEX slice_hops_to_purge ON slice_hops (gateway, slice) WHERE purge = 1;
