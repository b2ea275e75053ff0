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
    let paths = folder.cases();
    let cases = paths.map(|path| case(&path, &beside(&path)));
    let cases: Vec<Option<CaseReport>> = cases.collect::<Result<_, _>>()?;
    let cases: Vec<CaseReport> = cases.into_iter().flatten().collect();
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

/// The findings of the results folder of a case, whose report is made again, or of a point of a sweep; `None` where it has
/// no runs.
///
/// # Errors
/// As [`write_beside`].
pub fn case(path: &Path, beside: &[PathBuf]) -> Result<Option<CaseReport>, ReportError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_there = path.join("study.json").exists();
    let (Some(name), true) = (name, is_there) else {
        return Ok(None);
    };
    let results = ResultsFolder::open(path)?;
    if results.runs_on_disk() == 0 {
        return Ok(None);
    }
    let findings = match results.study().coordinates.is_empty() {
        true => write_beside(&results, beside)?.findings,
        // A sweep has many points.
        false => judge(&results, &[])?.without_curves(),
    };
    let folder = name.to_owned();
    Ok(Some(CaseReport { folder, findings }))
}
