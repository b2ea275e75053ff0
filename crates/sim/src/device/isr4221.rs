//! Cisco ISR 4221: ports of one rate, and a licence over what it forwards.
//!
//! `docs/devices/isr4221.md` states which of this is published and which assumed, and what follows
//! from it.

use slicewise_dataplane::{BuildError, Pipeline, PipelineParams};
use slicewise_model::{PolicyParams, Rate, ShaperParams};
use slicewise_units::{ByteCount, Instant};

/// The licence for a throughput: a token bucket that limits everything the router forwards, full at
/// the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LicenceParams {
    /// Rate at which credit is earned, and which bytes of a frame are charged.
    pub rate: Rate,
    /// Maximum credit, in counted bytes.
    pub credit: ByteCount,
    /// Frames of priority classes are charged but do not wait for credit.
    pub priority_borrows: bool,
}

/// An egress port of an ISR 4221 under `policy`. The port's rate is that of the link that the
/// topology connects to it.
///
/// # Errors
/// Where the data plane cannot hold the policy.
pub fn isr4221(
    policy: PolicyParams,
    licence: &LicenceParams,
    seed: u64,
) -> Result<Pipeline, BuildError> {
    let licence = ShaperParams {
        rate: licence.rate,
        burst: licence.credit,
        priority_borrows: licence.priority_borrows,
    };
    let params = PipelineParams {
        policy,
        port_shaper: Some(licence),
        seed,
    };
    Pipeline::new(&params, Instant::ZERO)
}
