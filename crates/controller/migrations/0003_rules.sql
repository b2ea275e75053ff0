-- `loan`: what the borrower had before, as JSON; empty while nothing is lent.
CREATE TABLE rules (
    name TEXT_C PRIMARY KEY,
    gateway TEXT_C NOT NULL,
    body TEXT NOT NULL,
    loan TEXT NOT NULL
);
CREATE INDEX rules_by_gateway ON rules (gateway, name);
