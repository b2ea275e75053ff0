//! Controller.

pub mod dashboard;
