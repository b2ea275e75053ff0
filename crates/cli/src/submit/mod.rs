//! `slicewise submit`: the shards of a study as jobs of a cluster, collected.

mod kubernetes;
mod script;
mod slurm;
mod submission;

use crate::arguments::{Engine, SubmitOptions};
use crate::exit::Exit;
use crate::{Failure, outln};
use submission::Submission;

pub fn submit(options: &SubmitOptions) -> Result<Exit, Failure> {
    check_options(options)?;
    let submission = Submission::new(options)?;
    let (files, by_hand) = match options.to {
        Engine::Slurm => (slurm::files(&submission)?, "`submit.sh` submits them"),
        Engine::Kubernetes => (
            kubernetes::files(&submission)?,
            "apply `shards.yaml`, and `collect.yaml` once that is complete",
        ),
    };
    submission.write(&files)?;
    if options.write_only {
        outln!("Scripts are in {}; {by_hand}", submission.folder.display());
        return Ok(Exit::Success);
    }
    match options.to {
        Engine::Slurm => slurm::run(&submission),
        Engine::Kubernetes => kubernetes::run(&submission),
    }
}

/// Options of the other scheduler, and those that need the results here.
fn check_options(options: &SubmitOptions) -> Result<(), Failure> {
    let is_slurm = options.to == Engine::Slurm;
    let of_kubernetes = [&options.image, &options.claim, &options.namespace];
    let why = if is_slurm && of_kubernetes.iter().any(|option| option.is_some()) {
        "`--image`, `--claim` and `--namespace` are for `--to kubernetes`"
    } else if !is_slurm && !options.sbatch.is_empty() {
        "options behind `--` are for `sbatch`: leave them out, or change manifests of `--write-only`"
    } else if options.judgement.is_given() && (!is_slurm || options.no_wait || options.write_only) {
        "nothing is judged here: give `--json`, `--explain` and `--fail-on` to `slicewise report DIR` where the results are"
    } else {
        return Ok(());
    };
    Err(Failure::mistake(why))
}
