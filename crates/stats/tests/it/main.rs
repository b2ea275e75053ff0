//! Integration tests of estimators and verdicts.
#![allow(clippy::unwrap_used)]

mod applications;
mod bounds;
mod comparison;
mod description;
mod figures;
mod objectives;
mod objectives_of_applications;
mod objectives_shown;
mod phases;
mod predictions;
mod published;
mod reallocation;
mod seeds;
mod synthetic;
mod verdicts;
