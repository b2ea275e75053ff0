//! Integration tests of capture files, points and matching.
#![allow(clippy::unwrap_used)]

mod damage;
mod golden;
mod robustness;
mod support;
