//! A plan as written: slices to be given guarantees on one link.

use super::containers::{Named, Short};
use super::policy::{DelaysSpec, GuaranteeFileSpec, MaximumFileSpec};
use super::scalar::{Name, Share, Text};
use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_units::{BitRate, ByteCount, Layer};

/// A plan: what slices ask of one link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Slicewise plan", transform = crate::schema::require_of_plan)]
pub(crate) struct PlanFileSpec {
    /// The link: its rate, or its rate and what it counts.
    pub(crate) link: Option<At<Short<BitRate, PlanLinkSpec>>>,
    /// How much can wait in all slices together, where that is limited.
    pub(crate) buffer: Option<Text<ByteCount>>,
    /// The largest frame there can be. Default 1522 B.
    pub(crate) largest_frame: Option<Text<ByteCount>>,
    /// Which bytes of a frame rates, bursts, largest frame and buffer count. Default L2.
    pub(crate) counts: Option<Text<Layer>>,
    /// The range of delay classes. Default 10 µs to 100 ms.
    pub(crate) delays: Option<DelaysSpec>,
    /// Tenants, who share the excess first, and the weight of each.
    #[serde(default)]
    pub(crate) tenants: Named<Text<u32>>,
    /// The slices, by name, in the order in which they are tested.
    #[serde(default)]
    pub(crate) slices: Named<At<PlanSliceSpec>>,
}

/// A link, and which bytes of a frame occupy it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanLinkSpec {
    /// Its rate.
    pub(crate) rate: Text<BitRate>,
    /// Which bytes of a frame occupy it. Default L1.
    pub(crate) counts: Option<Text<Layer>>,
}

/// A slice of a plan, or some equal ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanSliceSpec {
    /// Guaranteed rate of each, and its delay bound. Default: best effort.
    pub(crate) guarantee: Option<At<Short<Share, GuaranteeFileSpec>>>,
    /// Rate each gets at most. Default: no limit.
    pub(crate) maximum: Option<At<Short<Share, MaximumFileSpec>>>,
    /// Part of each of the excess relative to the other slices of its tenant. Default 1.
    #[schemars(extend("minimum" = 1))]
    pub(crate) weight: Option<Text<u32>>,
    /// The tenant whose part of the excess they share.
    pub(crate) tenant: Option<Text<Name>>,
    /// How many there are. Default 1.
    #[schemars(extend("minimum" = 1))]
    pub(crate) count: Option<Text<u64>>,
}
