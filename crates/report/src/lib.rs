//! Results folder → one self-contained HTML report, the numbers as CSV and Parquet, figures as SVG.
//!
//! Everything is made from the folder alone, so a report can be made again at any time, anywhere.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod host;
pub mod layout;
