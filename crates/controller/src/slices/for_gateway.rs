//! Slices as gateways carry them out.

use super::delay_choice::HopDelays;
use slicewise_api::{GatewaySlice, GatewayTerms, Guarantee, Match, Slice, Terms};
use slicewise_units::Duration;

/// A slice as the gateway of `link`, where it was admitted with `delays`, carries it out.
pub(crate) fn gateway_slice(
    slice: &Slice,
    link: &str,
    delays: HopDelays,
    generation: u64,
    tenant_weight: u32,
) -> GatewaySlice {
    let terms = |terms: &Option<Terms>, delay: Option<Duration>, matches: Vec<Match>| {
        terms.as_ref().map(|terms| GatewayTerms {
            matches,
            guarantee: terms.guarantee.map(|guarantee| Guarantee {
                delay_ns: delay.map(Duration::nanos),
                ..guarantee
            }),
            maximum: terms.maximum,
            weight: terms.weight,
            flows: terms.flows,
        })
    };
    GatewaySlice {
        name: slice.name.clone(),
        link: link.to_owned(),
        tenant: slice.tenant.clone(),
        tenant_weight,
        forward: terms(&slice.forward, delays.forward, slice.matches.clone()),
        backward: terms(
            &slice.backward,
            delays.backward,
            slice.matches.iter().map(Match::mirrored).collect(),
        ),
        version: generation,
    }
}
