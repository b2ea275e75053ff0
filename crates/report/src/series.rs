//! The report over several cases, or over the points of a sweep.

use crate::data;
use crate::error::ReportError;
use crate::figures::write_series_figures;
use crate::page::{CaseReport, write_series_page};
use crate::{judge, write_beside};
use slicewise_results::{ResultsFolder, SeriesFolder};
use std::path::{Path, PathBuf};

/// Make the reports of all cases of `folder` that have runs, each with those that `beside` names for its folder, the page
/// over them, and tables of all of them. The points of a sweep get no report of their own.
///
/// # Errors
/// Where no case has a finished run; else as [`write_beside`], of any case.
pub fn write_series(
    folder: &SeriesFolder,
    beside: impl Fn(&Path) -> Vec<PathBuf>,
) -> Result<Vec<CaseReport>, ReportError> {
    let mut cases = Vec::new();
    for path in folder.cases() {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let is_there = path.join("study.json").exists();
        let Some(results) = is_there.then(|| ResultsFolder::open(&path)).transpose()? else {
            continue;
        };
        if results.runs_on_disk() > 0 {
            let findings = match results.study().coordinates.is_empty() {
                true => write_beside(&results, &beside(&path))?.findings,
                // A sweep has many points.
                false => judge(&results, &[])?.without_curves(),
            };
            let folder = name.to_owned();
            cases.push(CaseReport { folder, findings });
        }
    }
    if cases.is_empty() {
        return Err(ReportError::NoCaseRun {
            path: folder.path().to_owned(),
        });
    }
    let findings: Vec<_> = cases.iter().map(|case| &case.findings).collect();
    data::write_series(folder, &findings)?;
    let figures = write_series_figures(folder, &findings)?;
    write_series_page(folder, &cases, &figures)?;
    Ok(cases)
}
