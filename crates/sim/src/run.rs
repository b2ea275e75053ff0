//! Measurement and errors of any run.

use slicewise_stats::backend::SIMULATOR;
use slicewise_stats::collect::{CollectorParams, MeasuredSlice, RunCollector};
use slicewise_study::{RunError, Study};

/// Returns the collector of figures for a run of `study` under a scenario.
pub(crate) fn collector(study: &Study, scenario: usize) -> Result<RunCollector, RunError> {
    let slices = study.slices.iter();
    let slices = slices.map(|slice| MeasuredSlice::new(&slice.name, slice.objective.as_ref()));
    RunCollector::new(CollectorParams {
        slices: slices.collect(),
        duration: study.duration,
        bin: study.measure.bin,
        cycle: study.cycle(scenario),
    })
    .and_then(|collector| collector.with_phases(study.measured_phases()))
    .map(|collector| match study.measure.medians {
        true => collector.with_medians(),
        false => collector,
    })
    .map_err(failed)
}

pub(crate) fn failed(error: impl std::fmt::Display) -> RunError {
    RunError::Failed(error.to_string())
}

pub(crate) fn unsupported(what: &str) -> RunError {
    RunError::Unsupported {
        backend: SIMULATOR.id.to_owned(),
        what: what.to_owned(),
    }
}
