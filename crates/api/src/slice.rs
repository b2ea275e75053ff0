//! Slices: what is asked for, and what has become of it.

use crate::invalid::{check_count, check_range};
use crate::{FlowTerms, Invalid, Match, Name, check_name, class_map};
use serde::{Deserialize, Serialize};
use slicewise_model::{CLASS_DEFAULT, GuaranteeRequest};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::ops::Deref;
use utoipa::{IntoParams, ToSchema};

/// The largest burst, bytes.
pub const BURST_MAX_BYTES: u64 = 1_000_000_000;
/// The longest frame of an IP packet, bytes, in ATM cells behind the largest overhead.
const FRAME_MAX_BYTES: u64 = 74_094;
/// The largest weight.
pub const WEIGHT_MAX: u32 = 65_535;
/// The largest rate, bit/s.
const RATE_MAX_BPS: u64 = BitRate::MAX.bits_per_second();
/// The longest delay objective, nanoseconds: 1000 s.
const DELAY_MAX_NS: u64 = 1_000_000_000_000;
/// Most matches of one slice.
pub const MATCHES_MAX: usize = 64;
/// Most links of a path.
const LINKS_MAX: usize = 16;

/// A slice as asked for, with at least one of `forward` and `backward`. A request replaces the slice as a whole: a member that it leaves out gets
/// its default. To change a part, read the slice and send all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Its name, unique among all tenants: `[a-z0-9][a-z0-9._-]{0,62}`. It is neither `class-default` nor the name of a class of a gateway on its
    /// path.
    #[schema(example = "gold", pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub name: String,
    /// The tenant it belongs to. Empty: the one it has; for a new slice that of the token, or `default`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(example = "default", pattern = "^([a-z0-9][a-z0-9._-]{0,62})?$")]
    pub tenant: String,
    /// The links it passes, in the forward direction. Empty: for a change, the path that it has; for a new slice, the only link there is. The path
    /// cannot be changed. It passes each gateway once.
    #[serde(default)]
    #[schema(max_items = 16, value_type = Vec<Name>)]
    pub path: Vec<String>,
    /// Packets of the forward direction: a packet belongs to the slice if any of them matches. No packet may belong to two slices of the
    /// same link and direction. Classes of a gateway's own policy are tested before slices. A change of them drops and reorders no packet: those that
    /// change to another slice wait until those before them have left. Matches that are no few exact values and prefixes, such as most ranges of
    /// more than 16 ports, cost the guarantee until the older packets of the slice have left: meanwhile it is best effort.
    #[schema(min_items = 1, max_items = 64)]
    pub matches: Vec<Match>,
    /// Terms in the forward direction; absent if the slice does not exist there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Terms>,
    /// Terms in the backward direction; absent if the slice does not exist there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Terms>,
}

/// Terms of a slice in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Its guarantee; absent for best effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    /// The most it may send; absent if only the link limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Maximum>,
    /// Weight of its share of the excess among the slices of its tenant.
    #[serde(default = "default_weight")]
    #[schema(minimum = 1, maximum = 65535, default = 1)]
    pub weight: u32,
    /// Treatment of its flows.
    #[serde(default, skip_serializing_if = "FlowTerms::is_default")]
    pub flows: FlowTerms,
}

const fn default_weight() -> u32 {
    1
}

impl Default for Terms {
    /// Best effort with weight 1.
    fn default() -> Self {
        Self {
            guarantee: None,
            maximum: None,
            weight: 1,
            flows: FlowTerms::default(),
        }
    }
}

/// A guarantee: frames within rate and burst are not lost, and delayed for no longer than the objective; without an objective, than `bound_ns` of
/// the slice. Frames above both are not dropped for that: they share the excess, and have no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// Committed rate (CIR), bit/s.
    #[schema(minimum = 1, maximum = 100_000_000_000_000_u64, example = 10_000_000)]
    pub rate_bps: u64,
    /// Committed burst (CBS), bytes; at least the largest frame of the link.
    #[schema(minimum = 1, maximum = 1_000_000_000, example = 15_220)]
    pub burst_bytes: u64,
    /// Delay objective from end to end, nanoseconds. Absent: at every link the time that the rate takes to send the burst, where that
    /// fits, else the smallest delay that does; a change keeps what was chosen while it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_u64)]
    pub delay_ns: Option<u64>,
    /// The smallest frame, bytes as the link's slices count: smaller ones are charged as this, so that less of the link has to be
    /// reserved where that counts more bytes of each frame. Absent: any frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 74_094)]
    pub smallest_frame_bytes: Option<u64>,
}

/// The most that a slice may send, even if the link is idle. Frames above it wait in the slice's queue, and are dropped only when that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Maximum {
    /// Peak rate (PIR), bit/s; at least the committed rate.
    #[schema(minimum = 1, maximum = 100_000_000_000_000_u64, example = 20_000_000)]
    pub rate_bps: u64,
    /// Peak burst (PBS), bytes; at least the committed burst.
    #[schema(minimum = 1, maximum = 1_000_000_000, example = 30_440)]
    pub burst_bytes: u64,
}

/// State of a slice. `admitted`: its capacity is promised, and not every gateway of its path has it in force yet. `installed`: every gateway of its
/// path has it in force. `draining`: it was removed, but frames of it may still wait in a gateway; its capacity stays promised until each
/// gateway says that they are gone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SliceState {
    /// Its capacity is promised; not every gateway of its path has it in force yet.
    Admitted,
    /// Every gateway of its path has it in force.
    Installed,
    /// Removed, but frames of it may still wait in a gateway: its capacity stays promised until each says that they are gone.
    Draining,
}

impl SliceState {
    /// As in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Installed => "installed",
            Self::Draining => "draining",
        }
    }
}

/// Delay bounds from end to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bounds {
    /// Of the forward direction, nanoseconds; absent without a guarantee there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<u64>,
    /// Of the backward direction, nanoseconds; absent without a guarantee there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<u64>,
}

/// Why the directions of a slice have their delays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelayChoices {
    /// Of the forward direction; absent without a guarantee there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<DelayChoice>,
    /// Of the backward direction; absent without a guarantee there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<DelayChoice>,
}

/// Why a direction of a slice has its delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelayChoice {
    /// Where it comes from.
    pub reason: DelayOrigin,
    /// The default from end to end, nanoseconds: at every link the time that the rate takes to send the burst, rounded down to one of
    /// four delays per doubling, and at least the shortest of the link and at most its longest.
    pub default_ns: u64,
    /// The delay that each link of the path promises, nanoseconds, in order; the bound is their sum.
    pub links_ns: Vec<u64>,
}

/// Origin of a delay. `stated`: it was stated. `default`: none was stated, and it is the default. `smallest`: none was stated, and the slice has
/// another one than its present default: the smallest that fitted when it was admitted, or the one that it had before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DelayOrigin {
    /// It was stated.
    Stated,
    /// None was stated: it is the default.
    Default,
    /// None was stated, and the slice has another one than its present default: the smallest that fitted when it was admitted, or the
    /// one that it had before a change.
    Smallest,
}

/// Why a gateway does not have a slice in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SliceProblem {
    /// The gateway.
    pub gateway: String,
    /// The reason, as the gateway states it.
    pub reason: String,
}

/// A slice as read back: it states its tenant and at least one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SliceRecord {
    /// As it was asked for.
    #[serde(flatten)]
    pub slice: Slice,
    /// Its state.
    pub state: SliceState,
    /// Changes with every change of the slice; the `ETag` is this number in quotes.
    pub version: u64,
    /// The generation of its last change.
    pub generation: u64,
    /// Delay bounds that follow from its guarantees: the sum over its links.
    pub bound_ns: Bounds,
    /// Why they are these. Lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_choice: Option<DelayChoices>,
    /// Who created it.
    pub created_by: String,
    /// When it was created, milliseconds since 1970-01-01 UTC.
    pub created_at_ms: u64,
    /// When it was changed last, milliseconds since 1970-01-01 UTC.
    pub changed_at_ms: u64,
    /// Gateways that do not have this version in force yet (or, while it drains, have not said that its frames are gone).
    pub unacknowledged: Vec<String>,
    /// Gateways that refused it, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<SliceProblem>,
}

impl Deref for SliceRecord {
    type Target = Slice;

    fn deref(&self) -> &Slice {
        &self.slice
    }
}

/// Selection of slices to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SliceQuery {
    /// Those after this cursor: `next` of the part before.
    #[serde(default)]
    pub after: Option<String>,
    /// At most this many.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<u32>,
    /// Slices of this tenant.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Those in this state.
    #[serde(default)]
    pub state: Option<SliceState>,
    /// Those that pass this link.
    #[serde(default)]
    pub link: Option<String>,
    /// Those whose name has this in it.
    #[serde(default)]
    pub name_contains: Option<String>,
    /// Count those of all parts, too.
    #[serde(default)]
    pub count: bool,
}

/// A part of a list of slices, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlicePage {
    /// The slices.
    pub items: Vec<SliceRecord>,
    /// `after` of the next part; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Number of slices in all parts, if it was asked for (`count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl Slice {
    /// Validates everything that does not depend on links and other slices.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        check_name(&self.name, "/name")?;
        if self.name == CLASS_DEFAULT {
            let problem = format!(
                "`{CLASS_DEFAULT}` is what packets of no slice belong to: choose another name"
            );
            return Err(Invalid::new("/name", problem));
        }
        if !self.tenant.is_empty() {
            check_name(&self.tenant, "/tenant")?;
        }
        check_count(&self.path, LINKS_MAX, "links", "/path")?;
        for (index, link) in self.path.iter().enumerate() {
            let at = format!("/path/{index}");
            check_name(link, &at)?;
            if self.path.iter().take(index).any(|before| before == link) {
                let problem =
                    format!("link `{link}` is on the path twice: a slice passes a link once");
                return Err(Invalid::new(at, problem));
            }
        }
        if self.matches.is_empty() || self.matches.len() > MATCHES_MAX {
            let problem = format!(
                "has {} matches: expected 1 to {MATCHES_MAX}",
                self.matches.len()
            );
            return Err(Invalid::new("/matches", problem));
        }
        class_map(&self.name, &self.matches).map_err(|invalid| invalid.within("/matches"))?;
        // 3GPP TS 29.281, 4.2: each end of a tunnel gives it a number for the packets that it receives.
        let tunnel = self.matches.iter().position(|one| one.teid.is_some());
        if let (Some(index), Some(_), Some(_)) = (tunnel, &self.forward, &self.backward) {
            let problem = "the two directions of a GTP-U tunnel have different TEIDs: add a slice for each direction";
            return Err(Invalid::new(format!("/matches/{index}/teid"), problem));
        }
        if self.forward.is_none() && self.backward.is_none() {
            let problem = "has neither `forward` nor `backward`: state at least one of them";
            return Err(Invalid::new("", problem));
        }
        for (terms, at) in [(&self.forward, "/forward"), (&self.backward, "/backward")] {
            if let Some(terms) = terms {
                terms.check().map_err(|invalid| invalid.within(at))?;
            }
        }
        Ok(())
    }
}

impl Terms {
    /// Validates the numbers and their relations.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        check_range(self.weight.into(), 1..=WEIGHT_MAX.into(), "/weight")?;
        let flows = self.flows.check();
        flows.map_err(|invalid| invalid.within("/flows"))?;
        let (guarantee, maximum) = (self.guarantee, self.maximum);
        for (value, most, at) in [
            (
                guarantee.map(|it| it.rate_bps),
                RATE_MAX_BPS,
                "/guarantee/rate_bps",
            ),
            (
                guarantee.map(|it| it.burst_bytes),
                BURST_MAX_BYTES,
                "/guarantee/burst_bytes",
            ),
            (
                guarantee.and_then(|it| it.delay_ns),
                DELAY_MAX_NS,
                "/guarantee/delay_ns",
            ),
            (
                guarantee.and_then(|it| it.smallest_frame_bytes),
                FRAME_MAX_BYTES,
                "/guarantee/smallest_frame_bytes",
            ),
            (
                maximum.map(|it| it.rate_bps),
                RATE_MAX_BPS,
                "/maximum/rate_bps",
            ),
            (
                maximum.map(|it| it.burst_bytes),
                BURST_MAX_BYTES,
                "/maximum/burst_bytes",
            ),
        ] {
            value.map_or(Ok(()), |value| check_range(value, 1..=most, at))?;
        }
        if let (Some(guarantee), Some(maximum)) = (&self.guarantee, &self.maximum) {
            let below = |what: &str, most: u64, least: u64| {
                let problem = format!("{most} is below that of the guarantee, {least}");
                match most < least {
                    true => Err(Invalid::new(format!("/maximum/{what}"), problem)),
                    false => Ok(()),
                }
            };
            below("rate_bps", maximum.rate_bps, guarantee.rate_bps)?;
            below("burst_bytes", maximum.burst_bytes, guarantee.burst_bytes)?;
        }
        Ok(())
    }

    /// The guarantee at each of `hops` links: the delay objective is divided evenly.
    #[must_use]
    pub fn request(&self, hops: usize) -> Option<GuaranteeRequest> {
        self.guarantee.map(|guarantee| guarantee.request(hops))
    }
}

impl Guarantee {
    /// Returns the request to each of `hops` links: the delay objective is divided evenly.
    #[must_use]
    pub fn request(&self, hops: usize) -> GuaranteeRequest {
        let hops = u64::try_from(hops.max(1)).unwrap_or(u64::MAX);
        GuaranteeRequest {
            rate: BitRate::new(self.rate_bps),
            burst: ByteCount::new(self.burst_bytes),
            delay: self
                .delay_ns
                .map(|delay| Duration::from_nanos(delay / hops)),
            smallest_frame: ByteCount::new(self.smallest_frame_bytes.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slice(changed: serde_json::Value) -> Result<Slice, String> {
        let mut slice = json!({
            "name": "gold", "matches": [{"vlan": 5}],
            "forward": {"guarantee": {"rate_bps": 10, "burst_bytes": 2000, "delay_ns": 9}},
        });
        for (key, value) in changed.as_object().unwrap() {
            slice[key] = value.clone();
        }
        let slice: Slice = serde_json::from_value(slice).map_err(|error| error.to_string())?;
        slice.check().map_err(|invalid| invalid.to_string())?;
        Ok(slice)
    }

    #[test]
    fn defaults_are_filled_in_and_the_delay_is_divided_over_the_links() {
        let slice = slice(json!({})).unwrap();
        assert_eq!(slice.tenant, "", "who asks decides");
        let terms = slice.forward.unwrap();
        assert_eq!(terms.weight, 1);
        let delay = |hops| terms.request(hops).unwrap().delay.unwrap().nanos();
        assert_eq!([delay(0), delay(1), delay(2)], [9, 9, 4]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let wrong = [
            json!({"name": "Gold"}),
            json!({"name": ""}),
            json!({"name": "-a"}),
            json!({"name": "class-default"}),
            json!({"tenant": "a b"}),
            json!({"path": ["a", "a"]}),
            json!({"matches": []}),
            json!({"matches": [{"vlan": 1}, {"vlan": 5000}]}),
            json!({"forward": null}),
            json!({"matches": [{"vlan": 1}, {"teid": 7}], "backward": {}}),
            json!({"forward": {"weight": 0}}),
            json!({"forward": {"guarantee": {"rate_bps": 0, "burst_bytes": 1}}}),
            json!({"forward": {"guarantee": {"rate_bps": 1, "burst_bytes": 1_000_000_001}}}),
            json!({"forward": {"guarantee": {"rate_bps": 2, "burst_bytes": 9}, "maximum": {"rate_bps": 1, "burst_bytes": 9}}}),
            json!({"colour": "red"}),
        ];
        let problems = wrong.map(|changed| slice(changed).unwrap_err());
        insta::assert_snapshot!(problems.join("\n"));
    }
}
