//! Integration tests of results folders and reports.
#![allow(clippy::unwrap_used)]

mod applications;
mod beside;
mod browser;
mod captured;
mod headline;
mod listing;
mod populations;
mod report;
mod results_folder;
mod support;
mod terminal;
