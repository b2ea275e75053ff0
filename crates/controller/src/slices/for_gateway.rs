//! Slices as gateways carry them out.

use super::delay_choice::{HopDelays, is_promised};
use slicewise_api::{GatewaySlice, GatewayTerms, Guarantee, Match, Slice, Terms};
use slicewise_units::{BothWays, Duration};

/// Returns a slice as the gateway of `link`, where it was admitted with `delays`, carries it out.
pub(crate) fn gateway_slice(
    slice: &Slice,
    link: &str,
    delays: HopDelays,
    generation: u64,
    tenant_weight: u32,
) -> GatewaySlice {
    let matches: BothWays<fn(&Match) -> Match> = BothWays {
        forward: Match::clone,
        backward: Match::mirrored,
    };
    let ways = slice.ways().zip(delays).zip(matches);
    let terms = ways.map(|((terms, delay), matches)| {
        let guarantee = |guarantee| Guarantee {
            delay_ns: delay.filter(is_promised).map(Duration::nanos),
            ..guarantee
        };
        terms.as_ref().map(|terms| GatewayTerms {
            matches: slice.matches.iter().map(matches).collect(),
            terms: Terms {
                guarantee: terms.guarantee.map(guarantee),
                ..terms.clone()
            },
        })
    });
    GatewaySlice {
        name: slice.name.clone(),
        link: link.to_owned(),
        tenant: slice.tenant.clone(),
        tenant_weight,
        forward: terms.forward,
        backward: terms.backward,
        version: generation,
    }
}
