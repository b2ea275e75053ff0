//! The agent with its threads, between a data plane over ports in memory and a controller that is scripted.

mod changes;
mod killed;
mod support;
mod trouble;
