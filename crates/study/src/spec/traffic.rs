//! Slices, sources and scenarios as written.

use super::ObjectiveSpec;
use super::PayloadSpec;
use super::containers::{Named, OneOrMany};
use super::scalar::{Name, NumberRange, Share, Text};
use super::words::{Counted, Dscp, PatternName, Protocol};
use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_model::IpPrefix;
use slicewise_units::Duration;
use slicewise_wire::Ecn;
use std::net::IpAddr;

/// A slice: which frames belong to it and what it was promised.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SliceSpec {
    /// Which frames belong to it: conditions that must all hold, or a list of such groups, one of which
    /// must.
    #[serde(rename = "match")]
    pub(crate) matches: Option<At<OneOrMany<MatchSpec>>>,
    /// Its share of the device's rate (a rate, or a percentage of it): guaranteed to a guaranteed
    /// slice, its fair part otherwise.
    pub(crate) share: Option<Text<Share>>,
    /// Whether the share is guaranteed, and the slice's isolation judged. Default false.
    pub(crate) guaranteed: Option<Text<bool>>,
    /// What it needs in absolute terms: isolation is then judged by that.
    pub(crate) objective: Option<At<ObjectiveSpec>>,
    /// Header fields of the packets its sources send.
    #[serde(default)]
    pub(crate) headers: HeadersSpec,
}

/// Conditions on the headers of a frame; all must hold. A list stands for any one of its items.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatchSpec {
    /// VLAN id of the outermost tag: a number, a range like `10-19`, or a list of them.
    #[serde(default)]
    pub(crate) vlan: OneOrMany<Text<NumberRange>>,
    /// VLAN id of the second tag.
    #[serde(default)]
    pub(crate) inner_vlan: OneOrMany<Text<NumberRange>>,
    /// Source address or prefix.
    #[serde(default)]
    pub(crate) source: OneOrMany<Text<IpPrefix>>,
    /// Destination address or prefix.
    #[serde(default)]
    pub(crate) destination: OneOrMany<Text<IpPrefix>>,
    /// IP protocol: a number or a name.
    #[serde(default)]
    pub(crate) protocol: OneOrMany<Text<Protocol>>,
    /// Source port of UDP, TCP or SCTP.
    #[serde(default)]
    pub(crate) source_port: OneOrMany<Text<NumberRange>>,
    /// Destination port of UDP, TCP or SCTP.
    #[serde(default)]
    pub(crate) destination_port: OneOrMany<Text<NumberRange>>,
    /// Tunnel endpoint identifier of the GTP-U tunnel around the packet: a number, a range like `1-1000`, or a list
    /// of them.
    #[serde(default)]
    pub(crate) teid: OneOrMany<Text<NumberRange<u32>>>,
    /// Differentiated-services code point: a number or a name.
    #[serde(default)]
    pub(crate) dscp: OneOrMany<Text<Dscp>>,
    /// IP precedence, 0 to 7.
    #[serde(default)]
    pub(crate) precedence: OneOrMany<Text<u8>>,
    /// Conditions that must not hold together.
    pub(crate) not: Option<Box<Self>>,
}

/// Header fields of a source's packets.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeadersSpec {
    /// VLAN id of the outermost tag. Default: no tag.
    pub(crate) vlan: Option<Text<u16>>,
    /// VLAN id of the second tag. Default: no second tag.
    pub(crate) inner_vlan: Option<Text<u16>>,
    /// Source address. Default 192.0.2.1.
    pub(crate) source: Option<Text<IpAddr>>,
    /// Destination address. Default 198.51.100.1.
    pub(crate) destination: Option<Text<IpAddr>>,
    /// IP protocol. Default udp.
    pub(crate) protocol: Option<Text<Protocol>>,
    /// Source port. Default 49152.
    pub(crate) source_port: Option<Text<u16>>,
    /// Destination port. Default 5201, as iperf3.
    pub(crate) destination_port: Option<Text<u16>>,
    /// Differentiated-services code point. Default 0.
    pub(crate) dscp: Option<Text<Dscp>>,
    /// Explicit congestion notification: queues with `ecn: yes` mark packets that are `ect0` or `ect1`
    /// instead of dropping them. Default not_ect. Simulated studies only.
    pub(crate) ecn: Option<Text<Ecn>>,
}

/// A traffic source: one flow. In a scenario: only the differences from
/// the common source of the same name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceSpec {
    /// The slice it belongs to.
    pub(crate) slice: Option<Text<Name>>,
    /// When packets leave: `iperf3` (on a timer, all packets due at once), `cbr` (evenly),
    /// `poisson` (at random), `replay` (as in a capture).
    pub(crate) pattern: Option<Text<PatternName>>,
    /// Sending rate: a rate, or a percentage of the device's rate.
    pub(crate) rate: Option<Text<Share>>,
    /// What the rate counts of each packet: `payload`, L1, L2 or L3. Default: payload for
    /// `iperf3`, as it does itself, else L2.
    pub(crate) counts: Option<Text<Counted>>,
    /// Bytes behind the transport header: one size; sizes and the weight with which each is drawn,
    /// `{64 B: 7, 576 B: 4, 1448 B: 1}`; `imix`, IP packets of 40, 576 and 1500 B with weights 7, 4
    /// and 1; or, for `replay`, `capture` (default): those of the capture.
    pub(crate) payload: Option<At<PayloadSpec>>,
    /// Header fields that differ from the slice's.
    #[serde(default)]
    pub(crate) headers: HeadersSpec,
    /// Sends for a while, pauses for a while.
    pub(crate) on_off: Option<At<OnOffSpec>>,
    /// When it starts. Default 0 s.
    pub(crate) start: Option<Text<Duration>>,
    /// When it stops. Default: at the end of the run.
    pub(crate) stop: Option<Text<Duration>>,
    /// Random addition to the start, uniform from 0 to this, drawn for each repetition. Default: the
    /// period of its packets or of its timer, so that sources do not lock phase.
    pub(crate) start_spread: Option<Text<Duration>>,
    /// The capture that `replay` takes times and sizes from, relative to the study file.
    pub(crate) pcap: Option<Text<String>>,
}

/// A source that pauses.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnOffSpec {
    // Not `on` and `off`: many YAML parsers take these words for true and false.
    /// How long it sends.
    pub(crate) on_for: Option<Text<Duration>>,
    /// How long it is silent.
    pub(crate) off_for: Option<Text<Duration>>,
}

/// A scenario: the offered traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioSpec {
    /// One line for people. Default: the name.
    pub(crate) title: Option<Text<String>>,
    /// No slice exceeds what was promised: isolation is judged against this scenario.
    pub(crate) reference: Option<Text<bool>>,
    /// Sources, by name: differences from the common ones, and additional ones.
    #[serde(default)]
    pub(crate) sources: Named<SourceSpec>,
    /// How many slices each population has.
    #[serde(default)]
    pub(crate) populations: Named<Text<u32>>,
    /// Common sources that this scenario leaves out.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "resolved before a study is decoded; here for the schema"
    )]
    without: super::List<Text<Name>>,
}
