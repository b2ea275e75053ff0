//! The results of a study: the folder they lie in, and what of it may be trusted.
//!
//! ```text
//! DIR/study.json                          what was run: the study, its digest, its seed
//! DIR/host.json                           facts about the host, apart from results
//! DIR/unsupported.json                    policies that what was to carry them out cannot express
//! DIR/runs/<policy>/<scenario>.jsonl      a line for each run
//! DIR/report.html
//! DIR/data/*.csv, *.parquet
//! DIR/figures/*.svg, *.pdf, *.pgf, *.csv, *.txt, plot.py
//! DIR/packets/<policy>/<scenario>/rep-000/*.parquet   on request
//! DIR/transactions/<policy>/<scenario>/rep-000.parquet   on request
//! DIR/prediction/                         the same cells simulated: a results folder of its own
//! DIR/replay/                             the same, of the packets that were sent in each run
//! ```
//!
//! Around the folders of several cases lies another one: `DIR/series.json`, `DIR/report.html` and a results folder for
//! each case ([`SeriesFolder`]).
//!
//! Files appear whole or not at all, and records line by line, so a killed process leaves finished runs behind and nothing
//! that could be taken for one. Results of different studies, versions, seeds or inputs never mix. Files of
//! others are left alone: nothing is written through a link, and only files that a study writes are removed.
//!
//! An executor writes through [`ResultsFolder`], a report reads from it. What records hold is described by
//! [`slicewise_stats::record`] and [`slicewise_stats::description`].

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod atomic;
mod check;
mod checksum;
mod collect;
mod error;
mod folder;
pub mod host;
mod inputs;
mod names;
mod open;
mod own;
mod records;
mod series;
mod testbed;
mod transactions;

pub use atomic::{AtomicFile, write_file};
pub use collect::{Collected, Shards};
pub use error::{Action, ResultsError};
pub use folder::{Force, ResultsFolder};
pub use names::{DECLARED_FIGURE, FIGURE_KINDS, FIGURE_SCRIPT, HEAT_MAP, NARROW, TABLES};
pub use open::make_folder;
pub use own::is_packet_file;
pub use series::{LeftOut, SeriesDescription, SeriesFolder};
pub use testbed::Unsupported;
