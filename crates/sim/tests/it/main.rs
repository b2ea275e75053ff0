//! Integration tests of the simulator.
#![allow(clippy::unwrap_used)]

mod bounds;
mod captures;
mod chain;
mod impairments;
mod objectives;
mod populations;
mod queueing_theory;
mod studies;
mod support;
