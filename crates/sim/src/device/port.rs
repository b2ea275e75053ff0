//! A plain port: a policy over a link of a rate, and nothing else.

use slicewise_dataplane::{BuildError, Pipeline, PipelineParams};
use slicewise_model::PolicyParams;
use slicewise_units::Instant;

/// An egress port under `policy`. The port's rate is that of the link that the
/// topology connects to it.
///
/// # Errors
/// Where the data plane cannot hold the policy.
pub fn port(policy: PolicyParams, seed: u64) -> Result<Pipeline, BuildError> {
    let params = PipelineParams {
        policy,
        port_shaper: None,
        seed,
    };
    Pipeline::new(&params, Instant::ZERO)
}
