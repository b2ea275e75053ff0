//! Links: what a gateway announces, and what of them is promised and left.

use crate::invalid::{check_count, check_range, check_stored};
use crate::{Guarantee, Invalid, check_name};
use serde::{Deserialize, Serialize};
use serde_json::json;
use slicewise_model::{
    Admission, AdmissionParams, DelayRange, GuaranteeParams, GuaranteedSpec, Rate,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Most classes of a gateway's own policy.
const CLASSES_MAX: usize = 4_096;

/// Bytes of a frame that a rate counts, as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Counts(pub Accounting);

impl Counts {
    /// All that a frame occupies on the wire: preamble, frame with FCS, inter-frame gap.
    pub const L1: Self = Self(Accounting::L1);
    /// The frame without FCS.
    pub const L2: Self = Self(Accounting::L2);
    /// The IP packet.
    pub const L3: Self = Self(Accounting::L3);
}

impl TryFrom<String> for Counts {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl From<Counts> for String {
    fn from(Counts(accounting): Counts) -> Self {
        accounting.to_string()
    }
}

impl PartialSchema for Counts {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.pattern(Some("^L[123]( [+-] [0-9]+ B)?( in ATM cells)?$"))
            .examples([json!("L1"), json!("L2 + 8 B"), json!("L3 + 40 B in ATM cells")])
            .description(Some(
                "Bytes of a frame that a rate counts. `L1`: all it occupies on the wire, that is preamble, frame with FCS, and inter-frame gap. \
                 `L2`: the frame without FCS. `L3`: the IP packet. Bytes that a link behind the gateway adds to each frame follow, at most \
                 1500, and `in ATM cells` if the sum fills cells of 53 bytes with 48 of it each (not L1).",
            ))
            .into()
    }
}

impl ToSchema for Counts {}

/// Rule by which guarantees of slices are admitted. `delay_bounds`: each has a delay, and all must be kept at once. `sum_of_rates`: the rates fit in
/// the link together, and no delay is promised; the gateway meters slices, as P4-TINS does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionRule {
    /// Each guarantee has a delay, and all must be kept at once.
    #[default]
    DelayBounds,
    /// The rates fit in the link together; no delay is promised.
    SumOfRates,
}

impl AdmissionRule {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A link as its gateway announces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkAnnouncement {
    /// Its name, unique among all gateways.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub name: String,
    /// From the first interface to the second.
    pub forward: LinkDirection,
    /// From the second interface to the first.
    pub backward: LinkDirection,
    /// Names of classes of the gateway's own policy: no slice of the link can have one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 4096)]
    pub classes: Vec<String>,
}

/// One direction of a link: the parameters of its admission test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkDirection {
    /// Rule by which guarantees are admitted.
    #[serde(default, skip_serializing_if = "AdmissionRule::is_default")]
    #[schema(default = "delay_bounds")]
    pub admission: AdmissionRule,
    /// Rate that may be guaranteed, bit/s.
    #[schema(minimum = 1, maximum = 100_000_000_000_000_u64)]
    pub rate_bps: u64,
    /// Bytes of a frame that the rate of the link counts; L2 by default.
    #[serde(default)]
    #[schema(default = "L2")]
    pub counts: Counts,
    /// Bytes of a frame that rates and bursts of slices, `largest_frame_bytes` and `buffer_bytes` count; L2 by default.
    #[serde(default)]
    #[schema(default = "L2")]
    pub slices_count: Counts,
    /// The largest frame of any traffic, bytes.
    #[schema(minimum = 60, maximum = 74_094)]
    pub largest_frame_bytes: u64,
    /// Buffer of all slices together, bytes; absent if it is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub buffer_bytes: Option<u64>,
    /// The shortest delay that can be promised, nanoseconds; absent if none is (`sum_of_rates`), and only then.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(minimum = 1_000)]
    pub shortest_delay_ns: u64,
    /// The longest delay, nanoseconds: a stated delay above it is rounded down to it. It is at most 55,110 times the shortest, whatever is announced.
    /// Absent if none is promised.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(minimum = 1_000)]
    pub longest_delay_ns: u64,
    /// Guarantees of classes of the gateway's own policy: what slices are promised is admitted beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 4096)]
    pub reserved: Vec<Guarantee>,
}

impl LinkDirection {
    /// The admission test, in which the guarantees of the gateway's own classes are counted, and these with their delays.
    ///
    /// # Errors
    /// The first value that is not valid, or the first of these guarantees that does not fit.
    pub fn with_reserved(&self) -> Result<(Admission, Vec<GuaranteeParams>), Invalid> {
        check_count(&self.reserved, CLASSES_MAX, "guarantees", "/reserved")?;
        let mut admission = Admission::new(self.admission()?);
        let admit = |(index, guarantee): (usize, &Guarantee)| {
            let admitted = admission.try_admit(&guarantee.request(1));
            let admitted = admitted.map_err(|refusal| {
                Invalid::new(format!("/reserved/{index}"), refusal.to_string())
            })?;
            Ok(admitted.params())
        };
        let reserved = self.reserved.iter().enumerate().map(admit);
        let reserved = reserved.collect::<Result<_, Invalid>>()?;
        Ok((admission, reserved))
    }

    /// Parameters of the admission test.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn admission(&self) -> Result<AdmissionParams, Invalid> {
        let most = BitRate::MAX.bits_per_second();
        check_range(self.rate_bps, 1..=most, "/rate_bps")?;
        check_stored(self.buffer_bytes.unwrap_or(0), "/buffer_bytes")?;
        let mut spec = GuaranteedSpec {
            accounting: self.slices_count.0,
            largest_frame: Some(ByteCount::new(self.largest_frame_bytes)),
            shortest_delay: Duration::from_nanos(self.shortest_delay_ns),
            longest_delay: Duration::from_nanos(self.longest_delay_ns),
            tenants: Vec::new(),
            buffer: self.buffer_bytes.map(ByteCount::new),
        };
        let delays = match self.admission {
            AdmissionRule::DelayBounds => DelayRange::new(spec.shortest_delay, spec.longest_delay),
            AdmissionRule::SumOfRates => {
                let stated = self.shortest_delay_ns.max(self.longest_delay_ns);
                if stated > 0 {
                    let problem =
                        "a link with `admission: sum_of_rates` promises no delay: leave it out";
                    return Err(Invalid::new("/shortest_delay_ns", problem));
                }
                // Delays that pass the check of the rest.
                spec.shortest_delay = GuaranteedSpec::default().shortest_delay;
                spec.longest_delay = GuaranteedSpec::default().longest_delay;
                DelayRange::NONE
            }
        };
        spec.check().map_err(|(field, problem)| {
            let at = match field {
                "delays" => "/shortest_delay_ns",
                _ => "/largest_frame_bytes",
            };
            Invalid::new(at, problem)
        })?;
        Ok(AdmissionParams {
            link: Rate {
                rate: BitRate::new(self.rate_bps),
                accounting: self.counts.0,
            },
            accounting: spec.accounting,
            largest_frame: spec.largest_frame(),
            buffer: spec.buffer,
            delays,
        })
    }
}

impl LinkAnnouncement {
    /// Validates the name and both directions.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        check_name(&self.name, "/name")?;
        for (direction, at) in [(&self.forward, "/forward"), (&self.backward, "/backward")] {
            direction
                .with_reserved()
                .map_err(|invalid| invalid.within(at))?;
        }
        check_count(&self.classes, CLASSES_MAX, "classes", "/classes")?;
        for (index, class) in self.classes.iter().enumerate() {
            check_name(class, &format!("/classes/{index}"))?;
        }
        Ok(())
    }
}

/// A link as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkRecord {
    /// Its name.
    pub name: String,
    /// The gateway that announced it.
    pub gateway: String,
    /// From the first interface to the second.
    pub forward: LinkDirectionRecord,
    /// From the second interface to the first.
    pub backward: LinkDirectionRecord,
    /// True if the last announcement of its gateway was refused and had this link otherwise, or not at all. No further
    /// guarantee is admitted on it until an announcement is accepted.
    #[serde(default)]
    pub disputed: bool,
}

/// One direction of a link as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkDirectionRecord {
    /// As in [`LinkDirection`].
    #[serde(default, skip_serializing_if = "AdmissionRule::is_default")]
    pub admission: AdmissionRule,
    /// As in [`LinkDirection`].
    pub rate_bps: u64,
    /// As in [`LinkDirection`].
    pub counts: Counts,
    /// As in [`LinkDirection`].
    pub slices_count: Counts,
    /// As in [`LinkDirection`].
    pub largest_frame_bytes: u64,
    /// As in [`LinkDirection`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// As in [`LinkDirection`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shortest_delay_ns: u64,
    /// As in [`LinkDirection`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub longest_delay_ns: u64,
    /// Rate of the link that classes of the gateway's own policy are guaranteed, bit/s as the link counts.
    #[serde(default)]
    pub reserved_bps: u64,
    /// Guarantees that are promised.
    pub promised: Promised,
    /// Capacity that is left.
    pub left: Left,
    /// The delay classes that hold slices, or classes of the gateway's own policy, shortest first.
    pub delay_classes: Vec<DelayClassUse>,
}

/// Guarantees that are promised on one direction of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promised {
    /// Slices with a guarantee, also those that drain.
    pub slices: u64,
    /// Sum of their guaranteed rates, bit/s.
    pub rate_bps: u64,
    /// Sum of their bursts, bytes.
    pub burst_bytes: u64,
    /// Rate of the link that the guarantees take if all frames are as small as they may be, bit/s as the link counts.
    #[serde(default)]
    pub link_rate_bps: u64,
}

/// Capacity that is left of one direction of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Left {
    /// Rate of the link that is not reserved, bit/s as the link counts.
    pub rate_bps: u64,
    /// Buffer that is not reserved, bytes; absent if it is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Lower bound of the delay of any further guarantee, nanoseconds; absent if none would be admitted. It is reached with a burst of one largest
    /// frame, hardly any rate, and no smaller frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_delay_ns: Option<u64>,
}

/// Use of a delay class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DelayClassUse {
    /// Its delay, nanoseconds.
    pub delay_ns: u64,
    /// Slices in it, and classes of the gateway's own policy.
    pub slices: u64,
    /// Sum of their guaranteed rates, bit/s.
    pub rate_bps: u64,
    /// Sum of their bursts, bytes.
    pub burst_bytes: u64,
    /// Rate of the link that the guarantees take if all frames are as small as they may be, bit/s as the link counts.
    #[serde(default)]
    pub link_rate_bps: u64,
    /// How much more burst the class could admit before its own condition fails, bytes.
    pub slack_bytes: u64,
}
