//! The admission test: what it takes, what it refuses and in which words, and that it is right.
#![allow(clippy::unwrap_used)]

mod bounds;
mod classes;
mod extremes;
mod refusals;
mod support;
