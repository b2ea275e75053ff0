//! Settings of a valid file that a back end, or the gateway, cannot carry out.

use crate::Failure;
use crate::arguments::BackendName;
use slicewise_live::{DirectionParams, EngineError, EngineParams};
use slicewise_study::{
    Diagnostics, GatewayConfig, GatewayDirection, Lab, Misfit, Pacing, Study, StudyFile,
};
use slicewise_testbed::{Unsendable, check_sources, lab, supports};
use std::cell::Cell;
use std::path::Path;

/// Seed of random early detection: which packets it picks need not be unforeseeable.
pub const SEED: u64 = 1;

/// Load a study file whose runs the back end can carry out, or say everything that is wrong with it.
pub fn load_study_file(path: &Path, on: &BackendName) -> Result<StudyFile, Diagnostics> {
    let Some(pacing) = on.pacing() else {
        return StudyFile::load(path);
    };
    let lab = match on {
        BackendName::Lab(path) => Some(Lab::load(path)?),
        _ => None,
    };
    let misfits = |study: &Study| misfits(study, pacing, lab.as_ref());
    let fitting = Cell::new(0);
    let file = StudyFile::load_for(path, &|study| {
        let (misfits, fits) = misfits(study);
        fitting.set(fitting.get() + usize::from(fits));
        match study.case {
            // Other cases can be run.
            Some(_) if !fits => misfits.into_iter().map(Misfit::as_warning).collect(),
            _ => misfits,
        }
    })?;
    match file {
        StudyFile::Series(_) if fitting.get() == 0 => {
            StudyFile::load_for(path, &|study| misfits(study).0)
        }
        file => Ok(file),
    }
}

/// Returns the settings of a study that hosts and the device with this pacing, or those of a lab, cannot carry out, and
/// whether they can be used for it at all.
fn misfits(study: &Study, pacing: Pacing, lab: Option<&Lab>) -> (Vec<Misfit>, bool) {
    let study = match study.for_testbed(pacing) {
        Ok(study) => study,
        Err(misfits) => return (misfits, false),
    };
    let scenarios = 0..study.scenarios.len();
    let check = |scenario: usize| match (lab, study.scenarios.get(scenario)) {
        (Some(_), Some(scenario)) => lab::check_sources(scenario),
        _ => check_sources(&study, scenario),
    };
    let unsendable = scenarios.filter_map(|scenario| check(scenario).err());
    let unsendable = unsendable.map(|error| {
        let Unsendable {
            scenario,
            source_name,
            why,
        } = error;
        let source = source_name.as_deref().unwrap_or_default();
        Misfit::at(&["scenarios", &scenario, "sources", source], why)
    });
    let misfits: Vec<Misfit> = unsendable.collect();
    let policies = study.policies.iter().filter_map(|policy| {
        let supported = match lab {
            Some(lab) => lab::supports(lab, policy, &study),
            None => supports(pacing, policy, &study, &[]),
        };
        let unsupported = supported.err()?;
        let misfits = unsupported.into_iter().map(|it| {
            let problem = format!("policy `{}` cannot be run here: {}", policy.name, it.why);
            let policy = ["policies", &policy.name];
            match it.class.as_deref() {
                Some(class) => Misfit::at(&policy, problem).of_class(Some(class), it.setting),
                None => Misfit::at(&[&policy[..], &[it.setting]].concat(), problem),
            }
        });
        Some(misfits.collect::<Vec<_>>())
    });
    let policies: Vec<Vec<Misfit>> = policies.collect();
    // The others are run without it.
    let is_warning = policies.len() < study.policies.len();
    let policies = policies.into_iter().flatten();
    let policies = policies.map(|misfit| match is_warning {
        true => misfit.as_warning(),
        false => misfit,
    });
    (misfits.into_iter().chain(policies).collect(), true)
}

/// Load a gateway's configuration, which some gateway can run, or say everything that is wrong with it.
pub fn load_gateway(path: &Path) -> Result<GatewayConfig, Failure> {
    let config = GatewayConfig::load_for(path, &misfits_of_gateway);
    config.map_err(|found| Failure::mistakes(found, path))
}

/// Returns the settings that no gateway can carry out, whatever its interfaces.
fn misfits_of_gateway(config: &GatewayConfig) -> Vec<Misfit> {
    let checked = engine_params(config.clone()).check();
    let misfit = checked.err().map(|error| match error {
        EngineError::TooLittleMemory {
            least_bytes,
            queues,
            ..
        } => {
            let least = least_bytes.div_ceil(1 << 20);
            let problem = format!(
                "{queues} queues of classes require {least} MiB at least, whatever the interfaces: give `memory` that much"
            );
            Misfit::at(&["memory"], problem)
        }
        EngineError::Memory { .. } => Misfit::at(&["memory"], error.to_string()),
        EngineError::Build(_) => Misfit::at(&["policy"], error.to_string()),
    });
    misfit.into_iter().collect()
}

pub fn direction(direction: GatewayDirection) -> DirectionParams {
    DirectionParams {
        link: direction.link,
        policy: direction.policy.into(),
        seed: SEED,
    }
}

/// Returns the parameters of the engine, for any interfaces.
fn engine_params(config: GatewayConfig) -> EngineParams {
    EngineParams::at_least(config.directions.map(direction), config.memory.bytes())
}
