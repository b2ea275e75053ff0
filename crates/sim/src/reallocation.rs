//! Carrying out a policy's control loop: it reads the counters of the device and sets the rates of classes.

use crate::device::{Forwarding, Plane};
use crate::network::Network;
use crate::observer::Observer;
use crate::port::PortId;
use crate::queue_lengths::QueueLengths;
use crate::run::failed;
use slicewise_dataplane::{Change, ReallocationLoop};
use slicewise_model::PolicyParams;
use slicewise_study::{RunError, RunSpec, Study};
use slicewise_traffic::Random;
use slicewise_units::{Duration, Instant};

/// The seed of the loop's clock is that of a source of this name, which no study can have.
const LOOP: &str = "/loop";

/// Simulate until the traffic of `study` ends, with the loop of its policy, if it has one, at the port of the device.
///
/// The clock of the loop is not that of the sources: the first reading is at a random time of the second interval.
pub(crate) fn run<O: Observer>(
    network: &mut Network<Plane, O>,
    study: &Study,
    spec: &RunSpec,
    port: Option<PortId>,
    lengths: &mut QueueLengths<'_>,
) -> Result<(), RunError> {
    let stopped = Instant::ZERO.saturating_add(study.duration);
    let policy = study.policies.get(spec.policy);
    let reallocation = policy.and_then(|policy| Some((policy, policy.reallocation.as_ref()?)));
    if let (Some((policy, reallocation)), Some(port)) = (reallocation, port) {
        let mut control = ReallocationLoop::new(reallocation.clone());
        let mut in_force = policy.params.clone();
        let mut elapsed = first_reading(reallocation.every, spec.source_seed(LOOP));
        let mut read_at = Instant::ZERO.saturating_add(elapsed);
        loop {
            let acts_at = read_at.saturating_add(reallocation.delay);
            if acts_at >= stopped {
                break;
            }
            lengths.run_until(network, read_at);
            let Some(plane) = network.forwarding(port) else {
                break;
            };
            let rates = control.on_interval(plane.pipeline().counters(), elapsed);
            lengths.run_until(network, acts_at);
            let wanted = policy.reallocated(&study.dut, &rates).map_err(failed)?;
            if wanted != in_force {
                set(network, port, wanted.clone(), acts_at)?;
                in_force = wanted;
            }
            elapsed = reallocation.every;
            read_at = read_at.saturating_add(elapsed);
        }
    }
    lengths.run_until(network, stopped);
    Ok(())
}

/// A time in the second interval.
fn first_reading(every: Duration, seed: u64) -> Duration {
    let phase = Random::stream(seed, 0).below(every.nanos());
    Duration::from_nanos(every.nanos().saturating_add(phase))
}

/// Put a policy in force at a port: nothing that waits is lost or reordered.
fn set<O: Observer>(
    network: &mut Network<Plane, O>,
    port: PortId,
    policy: PolicyParams,
    now: Instant,
) -> Result<(), RunError> {
    let change = |plane: &mut Plane| plane.pipeline_mut().apply(Change::Policy(policy), now);
    match network.change(port, now, change) {
        Some(Err(error)) => Err(failed(error)),
        Some(Ok(_)) | None => Ok(()),
    }
}
