//! The report over several cases, or over the points of a sweep.

use crate::data::SeriesTables;
use crate::error::ReportError;
use crate::figures::write_series_figures;
use crate::findings::Findings;
use crate::page::{CaseReport, write_series_page};
use crate::write_with;
use slicewise_results::{ResultsFolder, SeriesFolder};
use slicewise_stats::record::RunRecord;
use std::path::{Path, PathBuf};

/// Make the reports of all cases of `folder` that have runs, each with those that `beside` names for its folder, the page
/// over them, and tables of all of them. The points of a sweep get no report of their own.
///
/// # Errors
/// Where no case has a finished run; else as [`crate::write_beside`], of any case.
pub fn write_series(
    folder: &SeriesFolder,
    beside: impl Fn(&Path) -> Vec<PathBuf>,
) -> Result<Vec<CaseReport>, ReportError> {
    let opened = folder.cases().map(|path| with_runs(&path));
    let opened: Vec<Option<ResultsFolder>> = opened.collect::<Result<_, _>>()?;
    let opened: Vec<ResultsFolder> = opened.into_iter().flatten().collect();
    if opened.is_empty() {
        return Err(ReportError::NoCaseRun {
            path: folder.path().to_owned(),
        });
    }
    let studies: Vec<_> = opened.iter().map(ResultsFolder::study).collect();
    let mut tables = SeriesTables::create(folder, &studies)?;
    let cases = opened.iter().map(|results| {
        tables.begin_case(results.study());
        let beside = beside(results.path());
        case_report(results, &beside, |run| tables.on_run(run))
    });
    let cases: Vec<CaseReport> = cases.collect::<Result<_, _>>()?;
    let findings: Vec<_> = cases.iter().map(|case| &case.findings).collect();
    tables.finish(&findings)?;
    let figures = write_series_figures(folder, &findings)?;
    write_series_page(folder, &cases, &figures)?;
    Ok(cases)
}

/// The findings of the results folder of a case, whose report is made again, or of a point of a sweep; `None` where it has
/// no runs.
///
/// # Errors
/// As [`crate::write_beside`].
pub fn case(path: &Path, beside: &[PathBuf]) -> Result<Option<CaseReport>, ReportError> {
    let results = with_runs(path)?;
    let report = results.map(|results| case_report(&results, beside, |_| Ok(())));
    report.transpose()
}

/// The results folder at `path`; `None` where it has no runs.
fn with_runs(path: &Path) -> Result<Option<ResultsFolder>, ReportError> {
    if !path.join("study.json").exists() {
        return Ok(None);
    }
    let results = ResultsFolder::open(path)?;
    Ok((results.runs_on_disk() > 0).then_some(results))
}

fn case_report(
    results: &ResultsFolder,
    beside: &[PathBuf],
    on_run: impl FnMut(&RunRecord) -> Result<(), ReportError>,
) -> Result<CaseReport, ReportError> {
    let findings = match results.study().coordinates.is_empty() {
        true => write_with(results, beside, on_run)?.findings,
        // A sweep has many points.
        false => Findings::gather(results, &[], on_run)?.without_curves(),
    };
    let folder = results.path().file_name().unwrap_or_default();
    Ok(CaseReport {
        folder: folder.to_string_lossy().into_owned(),
        findings,
    })
}
