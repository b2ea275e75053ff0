//! Points that a sweep gets where isolation begins or ceases to hold: a search along its first axis.

use super::{folder_name, path_of, series_folder};
use crate::arguments::RunOptions;
use crate::execution::as_asked;
use crate::exit::Exit;
use crate::report::report_failure;
use crate::{Failure, noteln};
use slicewise_report::{CaseReport, PointBetween, case, points_between};
use slicewise_results::SeriesFolder;
use slicewise_stats::sweep::Resolution;
use slicewise_stats::words::count;
use slicewise_study::{Series, Study};
use std::path::Path;

/// Studies at added points, each with the policies to run there.
pub(super) type Points = Vec<(Study, Vec<String>)>;

/// Add points to the sweep of `options`, and let `carry_out` run there the policies whose verdict changes, until the values
/// between which isolation begins or ceases to hold are as close as `resolution`. `folder` knows the added points then.
pub(super) fn refine(
    options: &RunOptions,
    folder: &mut SeriesFolder,
    resolution: &Resolution,
    mut carry_out: impl FnMut(&SeriesFolder, &Points) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let mut added: Vec<PointBetween> = Vec::new();
    let mut cases: Vec<CaseReport> = Vec::new();
    for path in folder.cases() {
        judge(&path, &mut cases)?;
    }
    loop {
        let findings: Vec<_> = cases.iter().map(|case| &case.findings).collect();
        let mut points = points_between(&findings, resolution);
        let policies = &options.selection.policies;
        points.retain(|point| policies.is_empty() || policies.contains(&point.policy));
        // A run whose record cannot be used is not repeated here.
        points.retain(|point| !added.contains(point));
        if points.is_empty() {
            if added.is_empty() {
                noteln!(
                    "note: `refine` adds no point: no verdict of isolation changes along the axis, or only between values as close as it asks for"
                );
            }
            return Ok(Exit::Success);
        }
        added.extend(points.iter().cloned());
        let mut values: Vec<Vec<String>> = Vec::new();
        for point in &added {
            if !values.contains(&point.values) {
                values.push(point.values.clone());
            }
        }
        let series = Series::load_with_points(&options.selection.study, &values)
            .map_err(|found| Failure::mistakes(found, &options.selection.study))?;
        let left_out = folder.description().left_out.clone();
        let is_run = |study: &&Study| {
            let name = folder_name(options, study);
            left_out
                .iter()
                .all(|left| Some(&left.case) != name.as_ref())
        };
        let studies: Vec<Study> = series.cases.iter().filter(is_run).cloned().collect();
        *folder = series_folder(options, &series, &studies, left_out)?;
        let points = at(&points, options, studies);
        let number = count(points.len() as u64, "point");
        noteln!("{number} between those where isolation begins or ceases to hold");
        let exit = carry_out(folder, &points)?;
        for (study, _) in &points {
            judge(&path_of(options, study), &mut cases)?;
        }
        if exit != Exit::Success {
            return Ok(exit);
        }
    }
}

/// Judge the point at `path`, instead of what was found there before.
fn judge(path: &Path, cases: &mut Vec<CaseReport>) -> Result<(), Failure> {
    let found = case(path, &[]).map_err(|error| report_failure(error, path))?;
    let name = path.file_name().and_then(|name| name.to_str());
    cases.retain(|case| Some(case.folder.as_str()) != name);
    cases.extend(found);
    Ok(())
}

/// Returns the studies at `points`, each with its policies.
fn at(points: &[PointBetween], options: &RunOptions, studies: Vec<Study>) -> Points {
    let policies_at = |study: &Study| -> Vec<String> {
        let is_at = |point: &&PointBetween| {
            let values = study.coordinates.iter().map(|value| &value.text);
            values.eq(&point.values)
        };
        let points = points.iter().filter(is_at);
        points.map(|point| point.policy.clone()).collect()
    };
    let studies = studies.into_iter().map(|study| {
        let policies = policies_at(&study);
        (as_asked(&options.selection, study), policies)
    });
    let is_run = |(_, policies): &(Study, Vec<String>)| !policies.is_empty();
    studies.filter(is_run).collect()
}
