//! A plan as written: slices to be given guarantees on one link.

use super::containers::{Named, Short};
use super::policy::{DelaysSpec, GuaranteeFileSpec, MaximumFileSpec};
use super::scalar::{Name, Share, Text};
use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_units::{BitRate, ByteCount, Layer};

/// A plan: what slices ask of one link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanFileSpec {
    /// The link: its rate, or its rate and what it counts.
    pub(crate) link: Option<At<Short<BitRate, PlanLinkSpec>>>,
    pub(crate) buffer: Option<Text<ByteCount>>,
    pub(crate) largest_frame: Option<Text<ByteCount>>,
    pub(crate) counts: Option<Text<Layer>>,
    pub(crate) delays: Option<DelaysSpec>,
    #[serde(default)]
    pub(crate) tenants: Named<Text<u32>>,
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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanSliceSpec {
    pub(crate) guarantee: Option<At<Short<Share, GuaranteeFileSpec>>>,
    pub(crate) maximum: Option<At<Short<Share, MaximumFileSpec>>>,
    pub(crate) weight: Option<Text<u32>>,
    pub(crate) tenant: Option<Text<Name>>,
    pub(crate) count: Option<Text<u64>>,
}
