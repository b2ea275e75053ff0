//! A synthetic study: a fluid model of a shared link, made up for tests of the report and good for
//! nothing else. Its numbers have the shape of real ones and claim nothing.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::cast_possible_truncation
)]
#![allow(clippy::cast_sign_loss, clippy::cast_precision_loss)]

mod fluid;
mod live;
mod seal;
mod study;
mod tables;

pub use fluid::record;
pub use live::{fill_live, live_study, three_back_ends};
pub use seal::sealed;
pub use study::{NAUGHTY, Size, study};
pub use tables::{column, csv_rows, has_known_figures};

use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::description::StudyDescription;
use std::path::Path;

/// Write the whole synthetic study into `path`.
pub fn fill(path: &Path, study: &StudyDescription) -> ResultsFolder {
    let folder = ResultsFolder::create(path, study, Force::Refuse).unwrap();
    for policy in 0..study.policies.len() {
        for scenario in 0..study.scenarios.len() {
            for repetition in 0..study.repetitions {
                folder
                    .write_run(&record(study, policy, scenario, repetition))
                    .unwrap();
            }
        }
    }
    folder
}
