//! Two results folders compared: what lies in each, and what is worse or better in the second.

mod table;

pub use table::{headline, table};

use crate::error::ReportError;
use crate::side::{add_runs, resolved};
use serde::Serialize;
use slicewise_results::{ResultsFolder, SeriesFolder};
use slicewise_stats::description::Margins;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::comparison::{Place, Results, ResultsComparison, compare};
use std::path::{Path, PathBuf};

/// One of the two folders.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFolder {
    /// The folder, as it was named.
    pub results: PathBuf,
    /// Name of the study.
    pub study: String,
    /// Its digest.
    pub study_digest: String,
    /// Version of the program that ran it.
    pub program_version: String,
    /// Back end that executed the runs.
    pub backend: String,
    /// The seed that the seeds of all runs are derived from.
    pub seed: u64,
    /// Runs that the whole study has.
    pub expected_runs: u64,
    /// Runs that can be compared.
    pub finished_runs: u64,
    /// Records left out because they are damaged, and why; without the folder's path.
    pub damaged_runs: Vec<String>,
}

/// Folder B compared with folder A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FolderComparison {
    /// Reference of the comparison.
    pub a: ComparedFolder,
    /// Results that are compared with it.
    pub b: ComparedFolder,
    /// The margins of A, which apply to both.
    pub margins: Margins,
    /// True if the margins of B are others.
    pub margins_differ: bool,
    /// The tests and what they come to.
    #[serde(flatten)]
    pub results: ResultsComparison,
}

/// The results in a folder that is not one around those of several cases.
fn of_one_study(path: &Path) -> Result<ResultsFolder, ReportError> {
    let Some(series) = SeriesFolder::open(path)? else {
        return Ok(ResultsFolder::open(path)?);
    };
    let cases = series.cases().filter(|case| case.is_dir());
    let cases: Vec<String> = cases.map(|case| format!("`{}`", case.display())).collect();
    Err(ReportError::SeveralCases {
        path: path.to_owned(),
        cases: if cases.is_empty() {
            "none has been run".to_owned()
        } else {
            format!("name the folder of one: {}", cases.join(", "))
        },
    })
}

/// Compare the results folder `b` with `a`. Damaged records are left out and named.
///
/// # Errors
/// Where a folder cannot be read or holds no finished run, both are the same folder, or they have nothing in
/// common.
pub fn compare_folders(a: &Path, b: &Path) -> Result<FolderComparison, ReportError> {
    let (folder_a, folder_b) = (of_one_study(a)?, of_one_study(b)?);
    if resolved(a) == resolved(b) {
        return Err(ReportError::SameFolderTwice { path: b.to_owned() });
    }
    let (builder_a, compared_a) = read(&folder_a)?;
    let (builder_b, compared_b) = read(&folder_b)?;
    let results = compare(
        Results {
            study: folder_a.judged(),
            observations: builder_a.observations(),
        },
        Results {
            study: folder_b.judged(),
            observations: builder_b.observations(),
        },
    );
    if results.figures.is_empty() && results.not_compared.is_empty() {
        return Err(ReportError::NothingInCommon {
            a: a.to_owned(),
            b: b.to_owned(),
            only: format!(
                "only the first has {}, only the second {}",
                places(&results.only_in_a),
                places(&results.only_in_b)
            ),
        });
    }
    let margins = folder_a.study().margins;
    Ok(FolderComparison {
        a: compared_a,
        b: compared_b,
        margins,
        margins_differ: margins != folder_b.study().margins,
        results,
    })
}

fn read(folder: &ResultsFolder) -> Result<(SummaryBuilder<'_>, ComparedFolder), ReportError> {
    let study = folder.judged();
    let mut builder = SummaryBuilder::new(study);
    let mut damaged_runs = Vec::new();
    add_runs(folder, &mut builder, &mut damaged_runs, |_| {});
    let finished_runs = builder.runs();
    if finished_runs == 0 {
        let path = folder.path().to_owned();
        return Err(ReportError::NoRuns { path });
    }
    let compared = ComparedFolder {
        results: folder.path().to_owned(),
        study: study.name.clone(),
        study_digest: study.digest.clone(),
        program_version: study.program_version.clone(),
        backend: study.backend.clone(),
        seed: study.seed,
        expected_runs: folder.expected_runs(),
        finished_runs,
        damaged_runs,
    };
    Ok((builder, compared))
}

/// "policy gold; scenario storm", a few of them.
pub(crate) fn places(places: &[Place]) -> String {
    let mut shown: Vec<String> = (places.iter().take(PLACES_SHOWN))
        .map(ToString::to_string)
        .collect();
    if places.len() > PLACES_SHOWN {
        shown.push(format!("and {} more", places.len() - PLACES_SHOWN));
    }
    if shown.is_empty() {
        return "nothing else".to_owned();
    }
    shown.join("; ")
}

/// Places that one line names.
const PLACES_SHOWN: usize = 6;
