//! The admission test: what it accepts, what it rejects and with which message, and its correctness.
mod bounds;
mod choice;
mod classes;
mod extremes;
mod rates_only;
mod refusals;
mod support;
