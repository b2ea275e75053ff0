//! Points that a sweep gets where isolation ceases to hold: a search for the largest value of its first axis.

use super::{carry_out, page_over_cases, series_folder};
use crate::arguments::RunOptions;
use crate::execution::{as_asked, wanted_runs};
use crate::exit::Exit;
use crate::{Failure, noteln};
use slicewise_report::{PointBetween, points_between};
use slicewise_results::SeriesFolder;
use slicewise_stats::sweep::Resolution;
use slicewise_stats::words::count;
use slicewise_study::{Series, Study};

/// Add points to the sweep of `options` and run the policies whose verdict changes there, until the values between which
/// isolation ceases to hold are as close as `resolution`. `folder` knows the added points then.
pub(super) fn refine(
    options: &RunOptions,
    folder: &mut SeriesFolder,
    resolution: &Resolution,
) -> Result<Exit, Failure> {
    let mut added: Vec<PointBetween> = Vec::new();
    loop {
        let cases = page_over_cases(folder, false)?;
        let findings: Vec<_> = cases.iter().map(|case| &case.findings).collect();
        let mut points = points_between(&findings, resolution);
        let policies = &options.policies;
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
        let series = Series::load_with_points(&options.study, &values)
            .map_err(|found| Failure::mistakes(found, &options.study))?;
        *folder = series_folder(options, &series, &series.cases, Vec::new())?;
        let exit = run(options, &series, folder, &points)?;
        if exit != Exit::Success {
            return Ok(exit);
        }
    }
}

/// Run the policies of `points` there.
fn run(
    options: &RunOptions,
    series: &Series,
    folder: &SeriesFolder,
    points: &[PointBetween],
) -> Result<Exit, Failure> {
    let mut studies: Vec<Study> = Vec::new();
    let mut runs = Vec::new();
    for study in &series.cases {
        let is_at = |point: &&PointBetween| {
            let values = study.coordinates.iter().map(|value| &value.text);
            values.eq(&point.values)
        };
        let policies = points
            .iter()
            .filter(is_at)
            .map(|point| point.policy.clone());
        let policies: Vec<String> = policies.collect();
        if policies.is_empty() {
            continue;
        }
        let study = as_asked(options, study.clone());
        let of_policies = RunOptions {
            policies,
            ..options.clone()
        };
        runs.push(wanted_runs(&of_policies, &study)?);
        studies.push(study);
    }
    noteln!(
        "{} between those where isolation ceases to hold",
        count(studies.len() as u64, "point")
    );
    let (exit, _) = carry_out(options, folder, &studies, &runs)?;
    Ok(exit)
}
