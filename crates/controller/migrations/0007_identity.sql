-- `store`: identity of the store, 128 random bits that a backup carries; filled in by the program in the same transaction.
-- `adopted`: an operator said that the gateway is to follow this store, whatever it followed before.
ALTER TABLE state ADD COLUMN store TEXT NOT NULL DEFAULT '';
ALTER TABLE gateways ADD COLUMN adopted BIGINT NOT NULL DEFAULT 0;
