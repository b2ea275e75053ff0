//! `--captures DIR` of `slicewise run`: what may be written there, and what was.

use crate::Failure;
use crate::executor::Outcome;
use crate::noteln;
use slicewise_results::ResultsFolder;
use slicewise_stats::path::run_components;
use slicewise_study::{RunSpec, Study};
use std::io;
use std::path::Path;

/// Refuse, before any run, to capture where files lie that must not be replaced: `names` of each run that is not
/// finished yet.
pub fn check(
    root: &Path,
    names: &[&str],
    is_replaceable: fn(&Path) -> io::Result<bool>,
    (study, runs): (&Study, &[RunSpec]),
    folder: &ResultsFolder,
) -> Result<(), Failure> {
    let keys = runs.iter().filter_map(|run| run.key(study));
    for key in keys {
        if folder.has_run(&key) {
            continue;
        }
        let mut of_run = root.to_owned();
        of_run.extend(run_components(&key));
        for path in names.iter().map(|name| of_run.join(name)) {
            match is_replaceable(&path) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(Failure::mistake(format!(
                        "`{}` exists and is not replaced: move it away, or name another folder for the captures \
                         (`--captures DIR`)",
                        path.display()
                    )));
                }
                Err(error) => {
                    return Err(Failure::mistake(format!("`{}`: {error}", path.display())));
                }
            }
        }
    }
    Ok(())
}

/// Say what was captured: a run that is kept is not carried out, so nothing of it can be.
pub fn report(outcomes: &[Outcome], captures: &Path) {
    let finished: usize = outcomes.iter().map(|outcome| outcome.finished).sum();
    let resumed: usize = outcomes.iter().map(|outcome| outcome.resumed).sum();
    if finished > 0 {
        noteln!("captures of {finished} runs are in {}", captures.display());
    }
    if resumed > 0 {
        noteln!(
            "no captures of the {resumed} runs kept from before: use another results folder (`--out DIR`) to capture \
             all of them"
        );
    }
}
