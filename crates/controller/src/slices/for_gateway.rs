//! Slices as gateways carry them out.

use slicewise_api::{GatewaySlice, GatewayTerms, Guarantee, Match, Slice, Terms};

/// A slice as the gateway of `link` carries it out.
pub(crate) fn gateway_slice(
    slice: &Slice,
    link: &str,
    generation: u64,
    tenant_weight: u32,
) -> GatewaySlice {
    let hops = u64::try_from(slice.path.len().max(1)).unwrap_or(1);
    let terms = |terms: &Option<Terms>, matches: Vec<Match>| {
        terms.as_ref().map(|terms| GatewayTerms {
            matches,
            guarantee: terms.guarantee.map(|guarantee| Guarantee {
                delay_ns: guarantee.delay_ns.map(|delay| delay / hops),
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
        forward: terms(&slice.forward, slice.matches.clone()),
        backward: terms(
            &slice.backward,
            slice.matches.iter().map(Match::mirrored).collect(),
        ),
        version: generation,
    }
}
