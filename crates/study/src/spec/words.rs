//! Values that are one word of a list.

use super::scalar::{NUMBER, SIZE_UNITS, Scalar, TIME_UNITS, counted_of, meant, scalars};
use crate::diagnostics::suggestion;
use crate::gateway::GatewayPacketIo;
use crate::lab::{ClockCheck, ConfigurationLanguage};
use crate::params::{
    AdaptationRule, CongestionControl, DutModel, QosSchedParams, QosSchedThreads, SwitchParams,
    TcpProfile,
};
use serde_json::{Value, json};
use slicewise_formats::p4_tins::DataPlane;
use slicewise_model::{Action, ColourMode, Detector, Discipline, QueueLimitSpec, WredKey};
use slicewise_stats::description::{Basis, ComparedDelay, SliceLimit};
use slicewise_stats::fit::FitKind;
use slicewise_stats::plot::Distributed;
use slicewise_stats::quantity::Metric;
use slicewise_traffic::impairments::DelayDistribution;
use slicewise_traffic::scenario::{Ecn, Periods};
use slicewise_units::{Accounting, ByteCount, Duration};
use std::num::IntErrorKind;

/// The meaning of `text` among `words`.
fn word<T: Copy>(text: &str, what: &str, words: &[(&str, T)]) -> Result<T, String> {
    let written = text.trim();
    words
        .iter()
        .find(|(name, _)| *name == written)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            let help = suggestion(written, &names)
                .map(|help| format!(": {help}"))
                .unwrap_or_default();
            format!("`{written}` is not {what}{help}")
        })
}

/// A type whose values are words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// Noun for the type, with its article.
    const WHAT: &'static str;
    /// The words.
    const WORDS: &'static [(&'static str, Self)];
}

/// The word for a value.
pub(crate) fn word_for<T: Words>(value: T) -> &'static str {
    let mut words = T::WORDS.iter();
    words
        .find(|(_, it)| *it == value)
        .map_or("", |(word, _)| word)
}

macro_rules! words {
    (@text $word:ident) => { stringify!($word) };
    (@text $word:ident $text:literal) => { $text };
    ($($type:ty as $name:literal, $what:literal { $($word:ident $(= $text:literal)?: $value:expr),* $(,)? })*) => {
        $(
            impl Words for $type {
                const WHAT: &'static str = $what;
                const WORDS: &'static [(&'static str, Self)] = &[$((words!(@text $word $($text)?), $value)),*];
            }

            impl Scalar for $type {
                const NAME: &'static str = $name;

                fn from_text(text: &str) -> Result<Self, String> {
                    word(text, Self::WHAT, Self::WORDS)
                }

                fn accepted() -> Value {
                    let words: Vec<&str> = Self::WORDS.iter().map(|(word, _)| *word).collect();
                    json!({ "enum": words })
                }
            }
        )*
    };
}

/// When a source's packets leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternName {
    Iperf3,
    Cbr,
    Poisson,
    Replay,
}

/// Kind of application of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApplicationKind {
    Bulk,
    Requests,
    ShortFlows,
    Video,
}

/// Transport protocol of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TransportProtocol {
    #[default]
    Tcp,
}

/// Traffic of the slices of a population.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PopulationPattern {
    Backlog,
    Bursts,
}

/// True if a licence lets frames of priority classes borrow credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Borrows(pub(crate) bool);

/// Weights of named queues: fixed, or multiplied by their active flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Weights {
    #[default]
    Fixed,
    ByActiveFlows,
}

/// Bytes of each packet that a rate of traffic counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Payload,
    Layer(Accounting),
}

/// Places of a figure's points along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisName {
    Policy,
    Case,
    CaseNumber,
    Scenario,
    ScenarioNumber,
}

/// Spacing of the values of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Spacing {
    #[default]
    Linear,
    Logarithmic,
}

words! {
    DutModel as "DeviceModel", "a modelled device" {
        isr4221: Self::Isr4221, port: Self::Port, gateway: Self::Gateway, switch: Self::Switch(SwitchParams::TOFINO),
        qos_sched: Self::QosSched(QosSchedParams::SAMPLE),
    }
    QosSchedThreads as "QosSchedThreads", "a layout of threads" { separate: Self::Separate, mixed: Self::Mixed }
    ComparedDelay as "ComparedDelay", "a delay that is compared" {
        queueing: Self::Queueing, one_way: Self::OneWay,
    }
    GatewayPacketIo as "PacketIo", "a way to receive and send frames" {
        auto: Self::Auto, af_xdp: Self::AfXdp, af_packet: Self::AfPacket,
    }
    ClockCheck as "ClockCheck", "a way to measure the offset of clocks" { two_way = "two-way": Self::TwoWay }
    ConfigurationLanguage as "ConfigurationLanguage", "a language of configurations" {
        ios: Self::Ios, p4_tins = "p4-tins": Self::P4Tins, ovs: Self::Ovs, dpdk: Self::Dpdk, tc: Self::Tc,
    }
    DelayDistribution as "DelayDistribution", "a distribution of delay" {
        uniform: Self::Uniform, normal: Self::Normal,
    }
    Periods as "Periods", "a distribution of periods" {
        fixed: Self::Fixed, exponential: Self::Exponential,
    }
    PatternName as "Pattern", "a traffic pattern" {
        iperf3: Self::Iperf3, cbr: Self::Cbr, poisson: Self::Poisson, replay: Self::Replay,
    }
    ApplicationKind as "ApplicationKind", "an application" {
        bulk: Self::Bulk, requests: Self::Requests, short_flows: Self::ShortFlows, video: Self::Video,
    }
    AdaptationRule as "AdaptationRule", "a rule by which video adapts" {
        throughput: Self::Throughput, bola: Self::Bola, dynamic: Self::Dynamic,
    }
    TransportProtocol as "TransportProtocol", "a transport that is modelled" { tcp: Self::Tcp }
    TcpProfile as "TcpProfile", "a TCP that is modelled" {
        linux: Self::Linux, linux_4_15 = "linux-4.15": Self::Linux415, rfc: Self::Rfc,
    }
    CongestionControl as "CongestionControl", "a congestion control" {
        new_reno: Self::NewReno, reno: Self::NewReno, cubic: Self::Cubic, dctcp: Self::Dctcp, bbr: Self::Bbr,
        prague: Self::Prague,
    }
    PopulationPattern as "PopulationPattern", "what slices of a population send" {
        backlog: Self::Backlog, bursts: Self::Bursts,
    }
    Borrows as "LicencePriority", "what a licence does with priority frames" {
        borrows: Self(true), waits: Self(false),
    }
    Discipline as "Discipline", "a discipline" {
        minimum_share: Self::MinimumShare, deficit_round_robin: Self::DeficitRoundRobin,
        fifo: Self::Fifo, guaranteed: Self::Guaranteed,
    }
    Detector as "Detector", "a way to find elephants" {
        counters: Self::Counters, heavy_hitters: Self::HeavyHitters,
    }
    ColourMode as "ColourMode", "a colour mode of a meter" {
        blind: Self::Blind, aware: Self::Aware,
    }
    Weights as "Weights", "a rule for weights" {
        fixed: Self::Fixed, by_active_flows: Self::ByActiveFlows,
    }
    DataPlane as "DataPlane", "a data plane of P4-TINS" {
        baseline: Self::Baseline, p4_tins = "p4-tins": Self::P4Tins,
    }
    WredKey as "WredKey", "what a curve is chosen by" {
        dscp: Self::Dscp, precedence: Self::Precedence,
    }
    Ecn as "Ecn", "a value of explicit congestion notification" {
        not_ect: Self::NotEct, ect0: Self::Ect0, ect1: Self::Ect1,
    }
    AxisName as "FigureAxis", "an axis (a quantity is written as `{metric: NAME, slice: NAME}`)" {
        policy: Self::Policy, case: Self::Case, case_number: Self::CaseNumber, scenario: Self::Scenario,
        scenario_number: Self::ScenarioNumber,
    }
    Spacing as "Spacing", "a spacing" { linear: Self::Linear, logarithmic: Self::Logarithmic }
    FitKind as "Fit", "a curve that can be fitted" { linear: Self::Linear, exponential: Self::Exponential }
    Distributed as "Distribution", "something whose distribution can be drawn" {
        delay: Self::Delay, pdv: Self::Pdv, request_latency: Self::RequestLatency,
        completion_time: Self::CompletionTime, loss_episode_length: Self::LossEpisodeLength,
        loss_episode_frames: Self::LossEpisodeFrames, lost_frames: Self::LostFrames,
        iat: Self::Iat,
    }
    Basis as "Basis", "a basis of a published figure" {
        predicted: Self::Predicted, calibrated: Self::Calibrated, entailed: Self::Entailed,
    }
}

impl Scalar for Metric {
    const NAME: &'static str = "Metric";

    fn from_text(text: &str) -> Result<Self, String> {
        let words: Vec<_> = Self::all().map(|metric| (metric.name(), metric)).collect();
        word(text, "a measured quantity", &words)
    }

    fn accepted() -> Value {
        let words: Vec<&str> = Self::all().map(Self::name).collect();
        json!({ "enum": words })
    }
}

/// Code points by name: default forwarding, class selectors (RFC 2474), assured forwarding
/// (RFC 2597), expedited forwarding (RFC 3246), voice admit (RFC 5865), lower effort (RFC 8622).
const CODE_POINTS: &[(&str, u8)] = &[
    ("default", 0),
    ("le", 1),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("voice-admit", 44),
];

/// A code point by number, from 0 to 63, or by name, as in study files.
///
/// # Errors
/// A description of the expected value.
pub fn code_point(text: &str) -> Result<u8, String> {
    Dscp::from_text(text).map(|dscp| dscp.0)
}

/// Types of numbers that have names, too.
macro_rules! named_numbers {
    ($($(#[doc = $doc:literal])* $type:ident as $name:literal: $what:literal, $names:expr, $max:literal, $above:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub(crate) struct $type(pub(crate) u8);

            impl Scalar for $type {
                const NAME: &'static str = $name;

                fn from_text(text: &str) -> Result<Self, String> {
                    let written = text.trim().to_ascii_lowercase();
                    match written.parse::<u8>() {
                        Ok(value) if u32::from(value) <= $max => Ok(Self(value)),
                        Ok(_) => Err(format!("`{written}` is above {}", $above)),
                        Err(_) => word(&written, $what, $names).map(Self),
                    }
                }

                fn accepted() -> Value {
                    let names: Vec<&str> = $names.iter().map(|(name, _)| *name).collect();
                    json!({
                        "anyOf": [{ "type": "integer", "minimum": 0, "maximum": $max }, { "enum": names }],
                    })
                }
            }
        )*
    };
}

named_numbers! {
    /// A differentiated-services code point.
    Dscp as "Dscp": "a code point from 0 to 63, or the name of one", CODE_POINTS, 63, "63, the largest code point";
    /// An IP protocol number.
    Protocol as "Protocol": "a protocol: write a number from 0 to 255 or a name", PROTOCOLS, 255, "255";
}

/// An `EtherType`, or the service access point of LLC of a frame that has its length there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EtherType(pub(crate) u16);

/// `EtherTypes` by name (IANA), and service access points of LLC.
const ETHERTYPES: &[(&str, u16)] = &[
    ("arp", 0x0806),
    ("ipv4", 0x0800),
    ("ipv6", 0x86dd),
    ("stp", 0x42),
    ("isis", 0xfe),
    ("lacp", 0x8809),
    ("eapol", 0x888e),
    ("lldp", 0x88cc),
    ("ptp", 0x88f7),
];
/// Larger numbers are lengths, up to the first `EtherType`.
const MAX_SERVICE_ACCESS_POINT: u16 = 0xff;
const FIRST_ETHERTYPE: u16 = 0x0600;
const TAG_TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];

impl Scalar for EtherType {
    const NAME: &'static str = "EtherType";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim().to_ascii_lowercase();
        let number = match written.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => written.parse(),
        };
        let expected = "an EtherType: write a number from 0x0600 to 0xffff, that of a service access point (0 to 0xff) \
                        for frames without one, or a name";
        match number {
            Ok(number) if TAG_TYPES.contains(&number) => Err(format!(
                "`{written}` is the type of a VLAN tag: match `vlan`"
            )),
            Ok(number @ (0..=MAX_SERVICE_ACCESS_POINT | FIRST_ETHERTYPE..)) => Ok(Self(number)),
            Ok(_) => Err(format!(
                "`{written}` is the length of a frame, not {expected}"
            )),
            Err(_) => word(&written, expected, ETHERTYPES).map(Self),
        }
    }

    fn accepted() -> Value {
        let names: Vec<&str> = ETHERTYPES.iter().map(|(name, _)| *name).collect();
        json!({
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": u16::MAX },
                { "type": "string", "pattern": "^0x[0-9a-fA-F]{1,4}$" },
                { "enum": names },
            ],
        })
    }
}

/// IP protocols by name (IANA).
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("icmpv6", 58),
    ("sctp", 132),
];

/// An action of a policer that is written in words.
#[derive(Debug, Clone)]
pub(crate) struct PlainAction(pub(crate) Action);

impl Scalar for PlainAction {
    const NAME: &'static str = "Action";

    fn from_text(text: &str) -> Result<Self, String> {
        let mut parts = text.split_whitespace();
        let expected = || {
            format!(
                "`{}` is not an action: write `transmit`, `drop`, `set_dscp af11`, \
                 `set_qos_group 3` or `{{queue: NAME}}`",
                text.trim()
            )
        };
        match (parts.next(), parts.next(), parts.next()) {
            (Some("transmit"), None, None) => Ok(Self(Action::Transmit)),
            (Some("drop"), None, None) => Ok(Self(Action::Drop)),
            (Some("set_dscp"), Some(value), None) => {
                Dscp::from_text(value).map(|dscp| Self(Action::SetDscp(dscp.0)))
            }
            (Some("set_qos_group"), Some(value), None) => value
                .parse()
                .map(|group| Self(Action::SetQosGroup(group)))
                .map_err(|_| expected()),
            _ => Err(expected()),
        }
    }

    fn accepted() -> Value {
        json!({
            "type": "string",
            "pattern": "^ *(transmit|drop|set_dscp +[a-z0-9-]+|set_qos_group +[0-9]+) *$",
        })
    }
}

impl Scalar for QueueLimitSpec {
    const NAME: &'static str = "QueueLimit";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim();
        if let Some(number) = written
            .strip_suffix("packets")
            .or(written.strip_suffix("packet"))
        {
            let packets: Result<u32, _> = number.trim().replace('_', "").parse();
            return packets
                .map(Self::Packets)
                .map_err(|error| match error.kind() {
                    IntErrorKind::PosOverflow => {
                        format!(
                            "`{written}` is too large: a queue holds at most {} packets",
                            u32::MAX
                        )
                    }
                    _ => format!("`{written}` is not a whole number of packets"),
                });
        }
        match (written.parse::<ByteCount>(), written.parse::<Duration>()) {
            (Ok(size), _) => Ok(Self::Bytes(size)),
            (_, Ok(time)) => Ok(Self::Time(time)),
            (Err(size), Err(time)) => Err(meant(&[&size, &time]).unwrap_or_else(|| {
                format!(
                    "`{written}` is not a queue limit: write for example `64 packets`, `100 kB` or \
                     `10 ms`"
                )
            })),
        }
    }

    fn accepted() -> Value {
        json!({
            "type": "string",
            "pattern": format!("^ *([0-9][0-9_]* *packets?|{NUMBER} *({SIZE_UNITS}|{TIME_UNITS})) *$"),
            "examples": ["64 packets", "100 kB", "10 ms"],
        })
    }
}

scalars! {
    Counted as "Counted": |text| match text.trim() {
        "payload" => Ok(Self::Payload),
        counted => counted
            .parse()
            .map(Self::Layer)
            .map_err(|problem: String| format!("{problem}; of a source also `payload`")),
    },
    accepting counted_of(&["payload", "L1", "L2", "L3"]);
    SliceLimit as "SliceLimit": |text| match text.trim() {
        "unlimited" => Ok(Self::NoPracticalLimit),
        number => number
            .parse()
            .map(Self::Slices)
            .map_err(|_| format!("`{number}` is neither a number of slices nor `unlimited`")),
    },
    accepting json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "enum": ["unlimited"] }] });
}

/// A published figure with its unit; which units do depends on the quantity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure(pub(crate) String);

scalars! {
    Figure as "Figure": |text| Ok(Self(text.trim().to_owned())), accepting json!({
        "type": ["number", "string"],
        "examples": ["0.066 ms", "0.1847 ms^2", "35 Mbit/s", "100 %", 0.0125],
    });
}
