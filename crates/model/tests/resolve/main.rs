//! From what a user wrote to what a data plane runs: every default, every refusal.

#![allow(clippy::unwrap_used)]

mod bounds;
mod defaults;
mod refusals;
mod support;
