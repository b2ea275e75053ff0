//! Cases of a file on real packets.

use super::refine::{Points, refine};
use super::{folder_name, headline, of_case, reported, series_folder};
use crate::Failure;
use crate::arguments::RunOptions;
use crate::exit::Exit;
use crate::noteln;
use crate::run;
use crate::testbed_run::runs_to_send;
use slicewise_results::LeftOut;
use slicewise_study::{Pacing, Series, Study};

/// One case after the other: a testbed carries out one run at a time.
pub fn run(options: &RunOptions, series: &Series, studies: &[Study]) -> Result<Exit, Failure> {
    let (studies, left_out) = those_for_testbed(options, studies)?;
    let mut folder = series_folder(options, series, &studies, left_out)?;
    let policies = &options.selection.policies;
    let studies = studies
        .iter()
        .map(|study| (study.clone(), policies.clone()));
    let mut exit = measure(options, &studies.collect())?;
    if exit == Exit::Success
        && let Some(resolution) = &series.refine
    {
        exit = refine(options, &mut folder, resolution, |_, points| {
            measure(options, points)
        })?;
    }
    match exit {
        Exit::Interrupted => Ok(exit),
        other => reported(options, &folder, other),
    }
}

/// Run each of these studies with its policies.
fn measure(options: &RunOptions, studies: &Points) -> Result<Exit, Failure> {
    let mut worst = Exit::Success;
    for (study, policies) in studies {
        noteln!("{}", headline(&study.name, &study.title));
        let mut options = of_case(options, study);
        options.selection.policies.clone_from(policies);
        match run::run(&options, study.clone())? {
            // Verdicts of all cases are looked at in the end.
            Exit::Success | Exit::Verdict => {}
            Exit::Interrupted => return Ok(Exit::Interrupted),
            other => worst = other,
        }
    }
    Ok(worst)
}

/// The cases that a testbed can carry out, and the others: what is wrong with the last one is said before the first is
/// measured.
fn those_for_testbed(
    options: &RunOptions,
    studies: &[Study],
) -> Result<(Vec<Study>, Vec<LeftOut>), Failure> {
    let (mut suited, mut left_out) = (Vec::new(), Vec::new());
    let mut reason = None;
    for study in studies {
        let case = study.case.as_deref().unwrap_or_default();
        match study
            .clone()
            .into_testbed(options.on.pacing().unwrap_or(Pacing::Departures))
        {
            Ok(on_testbed) => {
                let runs = runs_to_send(options, &on_testbed);
                runs.map_err(|failure| Failure::mistake(format!("case {case}: {failure}")))?;
                suited.push(study.clone());
            }
            Err(error) => {
                noteln!("case {case} is left out: {error}");
                left_out.extend(folder_name(options, study).map(|folder| LeftOut {
                    case: folder,
                    title: study.title.clone(),
                    backend: options.on.id().to_owned(),
                    reason: error.to_string(),
                }));
                reason = Some(error);
            }
        }
    }
    match reason {
        Some(error) if suited.is_empty() => Err(Failure::mistake(error)),
        _ => Ok((suited, left_out)),
    }
}
