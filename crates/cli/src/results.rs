//! The results folder a command writes into.

use crate::{Failure, noteln};
use slicewise_results::{Force, ResultsError, ResultsFolder};
use slicewise_stats::description::StudyDescription;
use slicewise_study::Study;
use std::path::{Path, PathBuf};

/// Where results go: where the user says, else `results/<name of the study>`, or that with something behind
/// it for what is not the whole study in the simulator. Cases of one file have a folder around theirs.
pub fn results_path(out: Option<&Path>, study: &Study, suffix: &str) -> PathBuf {
    let name = format!("{}{suffix}", study.name);
    match study.series() {
        Some(series) if out.is_none() => named_path(None, series).join(&name),
        _ => named_path(out, &name),
    }
}

/// Where the user says, else `results/<name>`.
pub fn named_path(out: Option<&Path>, name: &str) -> PathBuf {
    out.map_or_else(|| Path::new("results").join(name), Path::to_owned)
}

/// Opens the folder for results of the study described, or goes on with it.
pub fn open_results(
    path: &Path,
    description: &StudyDescription,
    force: Force,
) -> Result<ResultsFolder, Failure> {
    let folder = ResultsFolder::create(path, description, force).map_err(|error| {
        let can_be_replaced = matches!(
            error,
            ResultsError::OtherStudy { .. }
                | ResultsError::OtherInputs { .. }
                | ResultsError::UnknownSchema { .. }
                | ResultsError::DamagedStudy { .. }
        );
        let failure = results_failure(error);
        if can_be_replaced {
            failure.with_advice("(`--out DIR`), or discard these results (`--replace`)")
        } else {
            failure
        }
    })?;
    let changes = folder.changes().join("; ");
    if !changes.is_empty() {
        noteln!("since the last run into `{}`: {changes}", path.display());
    }
    Ok(folder)
}

/// Exit code 2 where the user named the wrong folder, 1 where the system failed.
pub fn results_failure(error: ResultsError) -> Failure {
    if error.is_users_mistake() {
        Failure::mistake(error)
    } else {
        Failure::system(error)
    }
}
