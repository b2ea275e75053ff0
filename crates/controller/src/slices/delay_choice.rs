//! Why a slice has its delays.

use slicewise_api::{DelayChoice, DelayChoices, DelayOrigin, Slice};
use slicewise_model::{DelayRange, DelayReason, GuaranteeRequest};
use slicewise_units::{BothWays, Duration, Way};

/// Delays of a slice on one link; `None` without a guarantee.
pub(crate) type HopDelays = BothWays<Option<Duration>>;

/// Returns true if a delay is promised: zero is that of a link that promises none.
pub(super) fn is_promised(delay: &Duration) -> bool {
    *delay > Duration::ZERO
}

/// Returns why a slice has its delays; `ranges` are those of the links of its path.
pub(crate) fn delay_choices(
    slice: &Slice,
    delays: &[HopDelays],
    ranges: &[BothWays<DelayRange>],
) -> DelayChoices {
    let choice = |way: Way| {
        let request = requests(slice)[way]?;
        let mut choice = DelayChoice {
            reason: match request.delay {
                Some(_) => DelayOrigin::Stated,
                None => DelayOrigin::Default,
            },
            default_ns: 0,
            links_ns: Vec::with_capacity(delays.len()),
        };
        for (delays, ranges) in delays.iter().zip(ranges) {
            let (given, range) = (delays[way].filter(is_promised)?, ranges[way]);
            choice.links_ns.push(given.nanos());
            let default = request.default_delay(range).nanos();
            choice.default_ns = choice.default_ns.saturating_add(default);
            if let DelayReason::Chosen { .. } = request.delay_reason(given, range) {
                choice.reason = DelayOrigin::Smallest;
            }
        }
        Some(choice)
    };
    BothWays::from_fn(choice).into()
}

/// Guarantees that a slice requests of each link.
pub(crate) fn requests(slice: &Slice) -> BothWays<Option<GuaranteeRequest>> {
    slice
        .ways()
        .map(|terms| terms.as_ref()?.request(slice.path.len()))
}
