//! The agent with its threads, between a data plane over ports in memory and a controller that is scripted.
#![allow(clippy::unwrap_used)]

mod changes;
mod full_disk;
mod killed;
mod stores;
mod support;
mod trouble;
