//! Tests of the controller over its API, on SQLite and on PostgreSQL.
#![allow(clippy::unwrap_used)]

mod api;
mod clocks;
mod cluster;
mod counter_history;
mod crashes;
mod damage;
mod delays;
mod description;
mod foreign_pages;
mod gateway_state;
mod gateways;
mod hostile;
mod http2;
mod identity;
mod older_stores;
mod operations;
mod postgres_killed;
mod problems;
mod promises;
mod purge;
mod rates_only;
mod rogue_gateway;
mod rules;
mod scale;
mod streams;
mod support;
mod tls;
mod unread;
mod views;
