//! The admission test: what it accepts, what it rejects and with which message, and its correctness.
#![allow(clippy::unwrap_used)]

mod bounds;
mod classes;
mod extremes;
mod refusals;
mod support;
