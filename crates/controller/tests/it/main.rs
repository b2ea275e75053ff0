//! Tests of the controller over its API, on SQLite and on PostgreSQL.
#![allow(clippy::unwrap_used)]

mod api;
mod crashes;
mod description;
mod gateways;
mod operations;
mod problems;
mod promises;
mod rules;
mod scale;
mod support;
