//! A plain port: a policy over a link of a rate, and nothing else.

use super::DeviceParams;
use slicewise_dataplane::{BuildError, Pipeline, PipelineParams};
use slicewise_model::PolicyParams;
use slicewise_units::{Duration, Instant};

/// A device that is one egress port under `policy`. The port's rate is that of the link that the
/// topology connects to it.
///
/// # Errors
/// Where the data plane cannot hold the policy.
pub fn port(
    policy: PolicyParams,
    processing: Duration,
    seed: u64,
) -> Result<DeviceParams<Pipeline>, BuildError> {
    let params = PipelineParams {
        policy,
        port_shaper: None,
        seed,
    };
    Ok(DeviceParams {
        forwarding: Pipeline::new(&params, Instant::ZERO)?,
        processing,
    })
}
