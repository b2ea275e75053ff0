//! Estimators, confidence intervals, tests and verdicts; the schema of results.

#![forbid(unsafe_code)]

pub mod description;
pub mod record;
