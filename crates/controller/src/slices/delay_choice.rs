//! Why a slice has its delays.

use slicewise_api::{DelayChoice, DelayChoices, DelayOrigin, Slice, Terms};
use slicewise_model::{DelayRange, DelayReason, GuaranteeRequest};
use slicewise_units::Duration;

/// Returns why a slice has its delays; `ranges` are those of the links of its path, forward and backward.
pub(crate) fn delay_choices(
    slice: &Slice,
    delays: &[[Option<Duration>; 2]],
    ranges: &[[DelayRange; 2]],
) -> DelayChoices {
    let choice = |direction: usize| {
        let request = requests(slice)[direction]?;
        let mut choice = DelayChoice {
            reason: match request.delay {
                Some(_) => DelayOrigin::Stated,
                None => DelayOrigin::Default,
            },
            default_ns: 0,
            links_ns: Vec::with_capacity(delays.len()),
        };
        for (delays, ranges) in delays.iter().zip(ranges) {
            let (given, range) = (delays[direction]?, ranges[direction]);
            choice.links_ns.push(given.nanos());
            let default = request.default_delay(range).nanos();
            choice.default_ns = choice.default_ns.saturating_add(default);
            if let DelayReason::Chosen { .. } = request.delay_reason(given, range) {
                choice.reason = DelayOrigin::Smallest;
            }
        }
        Some(choice)
    };
    DelayChoices {
        forward: choice(0),
        backward: choice(1),
    }
}

/// What is requested of each link, forward and backward.
pub(crate) fn requests(slice: &Slice) -> [Option<GuaranteeRequest>; 2] {
    let request = |terms: &Option<Terms>| terms.as_ref()?.request(slice.path.len());
    [request(&slice.forward), request(&slice.backward)]
}
