//! Points that a sweep gets where isolation ceases to hold: a search for the largest value of its first axis.

use super::{carry_out, path_of, series_folder};
use crate::arguments::{RunOptions, Selection};
use crate::execution::{as_asked, wanted_runs};
use crate::exit::Exit;
use crate::report::report_failure;
use crate::{Failure, noteln};
use slicewise_report::{CaseReport, PointBetween, case, points_between};
use slicewise_results::SeriesFolder;
use slicewise_stats::sweep::Resolution;
use slicewise_stats::words::count;
use slicewise_study::{RunSpec, Series, Study};
use std::path::Path;

/// Add points to the sweep of `options` and run the policies whose verdict changes there, until the values between which
/// isolation ceases to hold are as close as `resolution`. `folder` knows the added points then.
pub(super) fn refine(
    options: &RunOptions,
    folder: &mut SeriesFolder,
    resolution: &Resolution,
) -> Result<Exit, Failure> {
    let mut added: Vec<PointBetween> = Vec::new();
    let mut cases: Vec<CaseReport> = Vec::new();
    for path in folder.cases() {
        judge(&path, &mut cases)?;
    }
    if !cases
        .iter()
        .any(|case| case.findings.main().verdicts.is_judged())
    {
        noteln!(
            "note: `refine` has nothing to search: no verdict of isolation depends on the axis, as nothing was judged"
        );
    }
    loop {
        let findings: Vec<_> = cases.iter().map(|case| &case.findings).collect();
        let mut points = points_between(&findings, resolution);
        let policies = &options.selection.policies;
        points.retain(|point| policies.is_empty() || policies.contains(&point.policy));
        // A run whose record cannot be used is not repeated here.
        points.retain(|point| !added.contains(point));
        if points.is_empty() {
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
        *folder = series_folder(options, &series, &series.cases, Vec::new())?;
        let (studies, runs) = between(options, &series, &points)?;
        let number = count(studies.len() as u64, "point");
        noteln!("{number} between those where isolation ceases to hold");
        let (exit, _) = carry_out(options, folder, &studies, &runs)?;
        for study in &studies {
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

/// The studies of `points`, and the runs of their policies.
fn between(
    options: &RunOptions,
    series: &Series,
    points: &[PointBetween],
) -> Result<(Vec<Study>, Vec<Vec<RunSpec>>), Failure> {
    let (mut studies, mut runs) = (Vec::new(), Vec::new());
    for study in &series.cases {
        let is_at = |point: &&PointBetween| {
            let values = study.coordinates.iter().map(|value| &value.text);
            values.eq(&point.values)
        };
        let policies = points.iter().filter(is_at);
        let policies: Vec<String> = policies.map(|point| point.policy.clone()).collect();
        if policies.is_empty() {
            continue;
        }
        let study = as_asked(&options.selection, study.clone());
        let of_policies = Selection {
            policies,
            ..options.selection.clone()
        };
        runs.push(wanted_runs(&of_policies, &study)?);
        studies.push(study);
    }
    Ok((studies, runs))
}
