//! Values that are one word of a list.

use super::scalar::{NUMBER, SIZE_UNITS, Scalar, TIME_UNITS, meant};
use crate::diagnostics::suggestion;
use crate::gateway::GatewayPacketIo;
use crate::impairments::DelayDistribution;
use crate::params::DutModel;
use serde_json::{Value, json};
use slicewise_model::{Action, ColourMode, Discipline, QueueLimitSpec, WredKey};
use slicewise_stats::description::{ComparedDelay, Metric, SliceLimit};
use slicewise_units::{Accounting, ByteCount, Duration};

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

fn names<T>(words: &[(&'static str, T)]) -> Value {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    json!({ "enum": names })
}

/// A type whose values are words.
macro_rules! words {
    ($type:ty, $name:literal, $what:literal, $words:expr) => {
        impl Scalar for $type {
            const NAME: &'static str = $name;

            fn from_text(text: &str) -> Result<Self, String> {
                word(text, $what, $words)
            }

            fn accepted() -> Value {
                names($words)
            }
        }
    };
}

words!(
    DutModel,
    "DeviceModel",
    "a modelled device",
    &[
        ("isr4221", Self::Isr4221),
        ("port", Self::Port),
        ("gateway", Self::Gateway),
    ]
);

words!(
    ComparedDelay,
    "ComparedDelay",
    "a delay that is compared",
    &[("queueing", Self::Queueing), ("one_way", Self::OneWay)]
);

words!(
    GatewayPacketIo,
    "PacketIo",
    "a way to receive and send frames",
    &[
        ("auto", Self::Auto),
        ("af_xdp", Self::AfXdp),
        ("af_packet", Self::AfPacket),
    ]
);

words!(
    DelayDistribution,
    "DelayDistribution",
    "a distribution of delay",
    &[("uniform", Self::Uniform), ("normal", Self::Normal)]
);

/// When a source's packets leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternName {
    Iperf3,
    Cbr,
    Poisson,
    Replay,
}

words!(
    PatternName,
    "Pattern",
    "a traffic pattern",
    &[
        ("iperf3", Self::Iperf3),
        ("cbr", Self::Cbr),
        ("poisson", Self::Poisson),
        ("replay", Self::Replay),
    ]
);

/// What the slices of a population send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PopulationPattern {
    Backlog,
    Bursts,
}

words!(
    PopulationPattern,
    "PopulationPattern",
    "what slices of a population send",
    &[("backlog", Self::Backlog), ("bursts", Self::Bursts)]
);

/// How a licence treats frames of priority classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LicencePriority {
    Borrows,
    Waits,
}

words!(
    LicencePriority,
    "LicencePriority",
    "what a licence does with priority frames",
    &[("borrows", Self::Borrows), ("waits", Self::Waits)]
);

/// What a rate of traffic counts of each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Payload,
    Layer(Accounting),
}

words!(
    Counted,
    "Counted",
    "something a rate can count",
    &[
        ("payload", Self::Payload),
        ("L1", Self::Layer(Accounting::L1)),
        ("L2", Self::Layer(Accounting::L2)),
        ("L3", Self::Layer(Accounting::L3)),
    ]
);

words!(
    Discipline,
    "Discipline",
    "a discipline",
    &[
        ("minimum_share", Self::MinimumShare),
        ("deficit_round_robin", Self::DeficitRoundRobin),
        ("fifo", Self::Fifo),
        ("guaranteed", Self::Guaranteed),
    ]
);

words!(
    ColourMode,
    "ColourMode",
    "a colour mode of a meter",
    &[("blind", Self::Blind), ("aware", Self::Aware)]
);

words!(
    WredKey,
    "WredKey",
    "what a curve is chosen by",
    &[("dscp", Self::Dscp), ("precedence", Self::Precedence)]
);

const METRICS: &[(&str, Metric)] = &[
    ("throughput", Metric::Throughput),
    ("loss_ratio", Metric::LossRatio),
    ("delay_mean", Metric::DelayMean),
    ("delay_mean_whole", Metric::DelayMeanWhole),
    ("delay_min", Metric::DelayMin),
    ("delay_p50", Metric::DelayP50),
    ("delay_p99", Metric::DelayP99),
    ("delay_max", Metric::DelayMax),
    ("iat_samples", Metric::IatSamples),
    ("iat_mean", Metric::IatMean),
    ("iat_variance", Metric::IatVariance),
    ("iat_kolmogorov_smirnov", Metric::IatKolmogorovSmirnov),
    ("transient_end", Metric::TransientEnd),
    ("transient_throughput", Metric::TransientThroughput),
    ("aggregate_throughput", Metric::AggregateThroughput),
];

words!(Metric, "Metric", "a measured quantity", METRICS);

/// The word for a quantity.
pub(crate) fn metric_word(metric: Metric) -> &'static str {
    let mut words = METRICS.iter();
    words
        .find(|(_, it)| *it == metric)
        .map_or("", |(word, _)| word)
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

/// A differentiated-services code point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dscp(pub(crate) u8);

impl Scalar for Dscp {
    const NAME: &'static str = "Dscp";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim().to_ascii_lowercase();
        match written.parse::<u8>() {
            Ok(value) if value <= 63 => Ok(Self(value)),
            Ok(_) => Err(format!("`{written}` is above 63, the largest code point")),
            Err(_) => word(
                &written,
                "a code point from 0 to 63, or the name of one",
                CODE_POINTS,
            )
            .map(Self),
        }
    }

    fn accepted() -> Value {
        let names: Vec<&str> = CODE_POINTS.iter().map(|(name, _)| *name).collect();
        json!({
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 63 }, { "enum": names }],
        })
    }
}

const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("icmpv6", 58),
    ("sctp", 132),
];

/// An IP protocol number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protocol(pub(crate) u8);

impl Scalar for Protocol {
    const NAME: &'static str = "Protocol";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim().to_ascii_lowercase();
        match written.parse() {
            Ok(value) => Ok(Self(value)),
            Err(_) => word(
                &written,
                "a protocol: write a number from 0 to 255 or a name",
                PROTOCOLS,
            )
            .map(Self),
        }
    }

    fn accepted() -> Value {
        let names: Vec<&str> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
        json!({
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "enum": names }],
        })
    }
}

impl Scalar for Action {
    const NAME: &'static str = "Action";

    fn from_text(text: &str) -> Result<Self, String> {
        let mut parts = text.split_whitespace();
        let expected = || {
            format!(
                "`{}` is not an action: write `transmit`, `drop`, `set_dscp af11` or \
                 `set_qos_group 3`",
                text.trim()
            )
        };
        match (parts.next(), parts.next(), parts.next()) {
            (Some("transmit"), None, None) => Ok(Self::Transmit),
            (Some("drop"), None, None) => Ok(Self::Drop),
            (Some("set_dscp"), Some(value), None) => {
                Dscp::from_text(value).map(|dscp| Self::SetDscp(dscp.0))
            }
            (Some("set_qos_group"), Some(value), None) => {
                value.parse().map(Self::SetQosGroup).map_err(|_| expected())
            }
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
            let packets = number.trim().replace('_', "").parse();
            return packets
                .map(Self::Packets)
                .map_err(|_| format!("`{written}` is not a whole number of packets"));
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

impl Scalar for SliceLimit {
    const NAME: &'static str = "SliceLimit";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "unlimited" => Ok(Self::NoPracticalLimit),
            number => number
                .parse()
                .map(Self::Slices)
                .map_err(|_| format!("`{number}` is neither a number of slices nor `unlimited`")),
        }
    }

    fn accepted() -> Value {
        json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "enum": ["unlimited"] }] })
    }
}

/// A published figure with its unit; which units do depends on the quantity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure(pub(crate) String);

impl Scalar for Figure {
    const NAME: &'static str = "Figure";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self(text.trim().to_owned()))
    }

    fn accepted() -> Value {
        json!({
            "type": ["number", "string"],
            "examples": ["0.066 ms", "0.1847 ms^2", "35 Mbit/s", "100 %", 0.0125],
        })
    }
}
