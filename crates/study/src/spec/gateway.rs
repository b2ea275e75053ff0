//! A gateway's configuration as written.

use super::containers::{List, Named, Short};
use super::plan::PlanLinkSpec;
use super::policy::PolicyFileSpec;
use super::scalar::Text;
use super::traffic::SliceSpec;
use super::words::PacketIoName;
use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_units::{BitRate, ByteCount};

/// What a gateway forwards, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Slicewise gateway", transform = crate::schema::require_of_gateway)]
pub(crate) struct GatewayFileSpec {
    /// The two interfaces.
    pub(crate) interfaces: Option<At<List<Text<String>>>>,
    /// The link that slices share: its rate, or its rate and what it counts.
    pub(crate) link: Option<At<Short<BitRate, PlanLinkSpec>>>,
    /// How they share it, in both directions.
    pub(crate) policy: Option<At<PolicyFileSpec>>,
    /// Settings that differ from the second interface to the first.
    pub(crate) backward: Option<At<BackwardSpec>>,
    /// Slices by name, which classes refer to with `slice:`.
    #[serde(default)]
    pub(crate) slices: Named<SliceSpec>,
    /// How frames are received and sent. Default `auto`.
    pub(crate) packet_io: Option<Text<PacketIoName>>,
    /// Maximum frame memory. Default 256 MiB.
    pub(crate) memory: Option<Text<ByteCount>>,
    /// The port of the loopback interface that serves metrics; 0 for none. Default 9640.
    pub(crate) metrics_port: Option<Text<u16>>,
}

/// Settings that differ from the second interface to the first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackwardSpec {
    /// The link. Default: as forward.
    pub(crate) link: Option<At<Short<BitRate, PlanLinkSpec>>>,
    /// How slices share it. Default: as forward.
    pub(crate) policy: Option<At<PolicyFileSpec>>,
}
