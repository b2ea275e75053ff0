//! Integration tests of policies and of admission.
#![allow(clippy::unwrap_used)]

mod admission;
mod capacity;
mod class_map;
mod reallocation;
mod resolve;
