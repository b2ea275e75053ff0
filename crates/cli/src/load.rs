//! Studies from their files, and what is said of them.

use crate::Failure;
use crate::noteln;
use crate::output;
use slicewise_stats::words::count;
use slicewise_study::{Diagnostics, Series, Study, StudyFile, StudyPolicy};
use std::path::Path;

/// Cases that a message names.
const MAX_NAMES: usize = 20;

/// Load a study file, or say everything that is wrong with it.
pub fn load_study_file(path: &Path) -> Result<StudyFile, Failure> {
    StudyFile::load(path).map_err(|found| Failure::mistakes(found, path))
}

/// Load a study, or the case of that name; of a sweep also the point with these coordinates, which need not be one of its grid.
pub fn load_study(path: &Path, case: Option<&str>) -> Result<Study, Failure> {
    match (load_study_file(path)?, case) {
        (StudyFile::Study(study), None) => Ok(*study),
        (StudyFile::Study(_), Some(_)) => Err(has_no_cases(path)),
        (StudyFile::Series(series), Some(case)) => {
            match case.contains('=') && !series.axes.is_empty() {
                true => point(path, &series, case),
                false => series.case(case).cloned().map_err(Failure::mistake),
            }
        }
        (StudyFile::Series(series), None) => {
            let names: Vec<&str> = series.case_names().take(MAX_NAMES).collect();
            let more = if series.cases.len() > MAX_NAMES {
                ", …"
            } else {
                ""
            };
            Err(Failure::mistake(format!(
                "{} holds cases: choose one of {}{more} (`--case NAME`)",
                path.display(),
                names.join(", ")
            )))
        }
    }
}

/// The point of a sweep with a value on each axis, written as `load=70 %,flows=4`.
fn point(path: &Path, series: &Series, coordinates: &str) -> Result<Study, Failure> {
    let given: Vec<(&str, &str)> = coordinates
        .split(',')
        .map(|one| one.split_once('=').unwrap_or((one, "")))
        .map(|(axis, value)| (axis.trim(), value.trim()))
        .collect();
    let axes: Vec<&str> = series.axes.iter().map(|axis| axis.name.as_str()).collect();
    let value_on = |axis: &&str| given.iter().find(|(name, _)| name == axis);
    let values: Option<Vec<String>> = axes
        .iter()
        .map(|axis| value_on(axis).map(|(_, value)| (*value).to_owned()))
        .collect();
    let Some(values) = values.filter(|values| values.len() == given.len()) else {
        return Err(Failure::mistake(format!(
            "`{coordinates}` is no point of {}: it takes one value on each axis, {}",
            path.display(),
            axes.join(", ")
        )));
    };
    let without_spaces = |text: &str| text.replace(' ', "");
    let is_there = |study: &&Study| {
        let texts = study.coordinates.iter();
        let texts = texts.map(|value| without_spaces(&value.text));
        texts.eq(values.iter().map(|value| without_spaces(value)))
    };
    if let Some(study) = series.cases.iter().find(is_there) {
        return Ok(study.clone());
    }
    let more = Series::load_with_points(path, std::slice::from_ref(&values))
        .map_err(|found| Failure::mistakes(found, path))?;
    let found = more.cases.iter().find(is_there).cloned();
    found.ok_or_else(|| Failure::mistake(format!("`{coordinates}` cannot be read as a point")))
}

/// Says how much a sweep is.
pub fn sweep_of(points: usize, runs: u64) -> String {
    let points = count(points as u64, "point");
    format!("sweep of {points}: {}", count(runs, "run"))
}

/// A case was named, of a file that holds one study.
pub fn has_no_cases(path: &Path) -> Failure {
    Failure::mistake(format!(
        "{} holds one study and no cases: leave out `--case`",
        path.display()
    ))
}

/// Print what a file says that is worth knowing and no mistake.
pub fn warn(warnings: &Diagnostics) {
    if warnings.count() > 0 {
        let text = warnings.render(output::error_colours());
        output::styled_error(&format!("{text}\n\n"));
    }
}

/// Say before the runs that nothing will be shown to hold. Of a single scenario there are no verdicts to say the rest.
pub fn note_before_runs(study: &Study) {
    let is_compared = study.scenarios.len() > 1;
    let rest = (!is_compared).then(|| study.notes());
    let notes = study.too_few_repetitions().into_iter();
    for note in notes.chain(rest.into_iter().flatten()) {
        noteln!("note: {note}");
    }
}

/// A policy of the study, or which there are.
pub fn policy_named<'a>(study: &'a Study, name: &str) -> Result<&'a StudyPolicy, Failure> {
    let found = study.policies.iter().find(|policy| policy.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = study.policies.iter().map(|p| p.name.as_str()).collect();
        let names = names.join(", ");
        Failure::mistake(format!("the study has no policy `{name}`: it has {names}"))
    })
}
