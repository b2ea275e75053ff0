//! Offers: what would be accepted.

use crate::{Bounds, DelayChoices};
use serde::{Deserialize, Serialize};
use slicewise_units::Way;
use utoipa::ToSchema;

/// A direction of a link. `forward`: from the first interface of a gateway to the second. `backward`: the opposite.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(remote = "Way", rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From the first interface of a gateway to the second.
    Forward,
    /// The opposite.
    Backward,
}

/// Where the admission test failed first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedOn {
    /// The slice; in a batch, the first that does not fit.
    pub slice: String,
    /// The link.
    pub link: String,
    /// The direction.
    #[serde(with = "Direction")]
    #[schema(value_type = Direction)]
    pub direction: Way,
}

/// Answer whether a slice would be accepted, with alternatives. Each of the alternatives changes one number only and
/// leaves the others as asked for; where a slice has guarantees in both directions, the alternatives are about the
/// direction that was refused (`refused_on`), or, if it is accepted, about the forward direction if there is a
/// guarantee in it. If a quota of rates refuses it, only `largest_rate_bps` is stated, of the first direction with a
/// guarantee. If it is refused for another reason than capacity, there are no alternatives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferAnswer {
    /// True if it would be accepted as it is.
    pub accepted: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where the admission test failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_on: Option<RefusedOn>,
    /// The bounds it would have, if accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<Bounds>,
    /// Why it would have these bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_choice: Option<DelayChoices>,
    /// The largest rate that would be accepted, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_rate_bps: Option<u64>,
    /// The largest burst that would be accepted, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_burst_bytes: Option<u64>,
    /// The smallest delay objective from end to end that would be accepted, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_delay_ns: Option<u64>,
}
