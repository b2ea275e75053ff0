//! `slicewise run --on lab.yaml`: the lab; and `slicewise lab-host`, which runs on its hosts.

use crate::Failure;
use crate::arguments::BackendName;
use crate::errln;
use crate::exit::Exit;
use slicewise_study::{Lab, RunSpec, ScenarioParams, Study};
use slicewise_testbed::lab::{LabSession, serve};
use slicewise_testbed::{AttemptError, DeviceKind};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The lab in the file that the command line names; `None` if it names another back end.
pub fn loaded(on: &BackendName) -> Result<Option<Lab>, Failure> {
    match on {
        BackendName::Lab(path) => {
            let lab = Lab::load(path).map_err(|found| Failure::mistakes(found, path))?;
            Ok(Some(lab))
        }
        _ => Ok(None),
    }
}

/// The device of a lab whose hosts can carry out these runs; `None` if the user interrupted.
pub fn device(
    lab: Lab,
    (study, wanted): (&Study, &[RunSpec]),
    interrupt: &AtomicBool,
) -> Result<Option<DeviceKind>, Failure> {
    let indices: BTreeSet<usize> = wanted.iter().map(|run| run.scenario).collect();
    let scenarios = indices
        .iter()
        .filter_map(|&index| study.scenarios.get(index));
    let scenarios: Vec<&ScenarioParams> = scenarios.collect();
    let say = Box::new(|text: &str| errln!("{text}"));
    let is_interrupted = || interrupt.load(Ordering::Relaxed);
    match LabSession::open(lab, VERSION, &scenarios, say, &is_interrupted) {
        Ok(session) => Ok(Some(DeviceKind::Lab(Arc::new(session)))),
        Err(AttemptError::Interrupted) => Ok(None),
        Err(error) => Err(Failure::mistake(error)),
    }
}

/// Carry out orders from standard input until it ends.
pub fn host() -> Result<Exit, Failure> {
    serve(io::stdin(), io::stdout().lock(), VERSION)
        .map(|()| Exit::Success)
        .map_err(|error| Failure::system(format!("a host of a lab: {error}")))
}
