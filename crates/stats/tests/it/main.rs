//! Integration tests of estimators and verdicts.
#![allow(clippy::unwrap_used)]

mod bounds;
mod comparison;
mod figures;
mod objectives;
mod synthetic;
mod verdicts;
