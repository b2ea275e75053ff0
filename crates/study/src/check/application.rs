//! Settings of an application in a study file.

use super::payload::{SizeWeight, size_weights, size_weights_schema};
use crate::file::{Decode, Entry, Placed, Problems, Schemas, Value};
use crate::params::AdaptationRule;
use crate::settings;
use crate::spec::{ApplicationKind, At, List, PassingRate, Positive, Scalar, Short, narrowed};
use serde_json::{Value as Json, json};
use slicewise_units::{ByteCount, Duration};

/// Most requests, or flows that arrive, in a second.
const MAX_EVENTS_PER_SECOND: u64 = 10_000_000;

/// An application by its kind, or with settings.
pub(crate) type Application = Short<ApplicationKind, Placed<ApplicationSpec>>;

narrowed! {
    /// How many there are of something.
    #[derive(Copy)]
    Count(u32) as "Count": |text| match u32::from_text(text)? {
        0 => Err("there must be at least one".to_owned()),
        count => Ok(count),
    };
    /// Bytes, and not none.
    #[derive(Copy)]
    Bytes(ByteCount) as "Size": |text| match ByteCount::from_text(text)? {
        ByteCount::ZERO => Err("a size of zero: nothing would be sent".to_owned()),
        bytes => Ok(bytes),
    };
}

/// How often something happens, in 1000 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventRate(pub(super) u64);

impl Scalar for EventRate {
    const NAME: &'static str = "EventRate";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim();
        let expected =
            || format!("`{written}` is not a rate of events: write for example `1000 /s`");
        let number = written.strip_suffix("/s").ok_or_else(expected)?.trim();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let whole = whole.replace('_', "");
        if !is_number(&whole) || !is_number(part) || part.len() > 3 {
            return Err(expected());
        }
        let most = || format!("at most {MAX_EVENTS_PER_SECOND} /s can be simulated");
        let thousandths: u64 = format!("{whole}{part:0<3}").parse().map_err(|_| most())?;
        match thousandths {
            0 => Err("a rate of zero: nothing would happen".to_owned()),
            rate if rate > MAX_EVENTS_PER_SECOND * 1_000 => Err(most()),
            rate => Ok(Self(rate)),
        }
    }

    fn accepted() -> Json {
        json!({
            "type": "string",
            "pattern": "^ *[0-9]+(_[0-9]+)*(\\.[0-9]{1,3})? */s *$",
            "examples": ["1000 /s"],
        })
    }
}

/// Sizes of responses or transfers: one, exponentially distributed ones, or several with weights.
pub(crate) type TransferSizeSpec = Short<At<Bytes>, TransferSizeForm>;

/// Sizes of responses or transfers in one of their forms.
#[derive(Debug, Clone)]
pub(crate) enum TransferSizeForm {
    One(At<Bytes>),
    Exponential(At<Bytes>),
    Mix(Vec<SizeWeight>),
}

impl From<At<Bytes>> for TransferSizeForm {
    fn from(one: At<Bytes>) -> Self {
        Self::One(one)
    }
}

impl Decode for TransferSizeForm {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        match &entry.node.value {
            Value::Mapping(entries) if entries.len() == 1 => {
                match entry.node.entry("exponential") {
                    Some((key, node)) => {
                        let key = Some(key.span);
                        At::decode(Entry { node, key }, problems).map(Self::Exponential)
                    }
                    None => size_weights(entry, problems).map(Self::Mix),
                }
            }
            _ => size_weights(entry, problems).map(Self::Mix),
        }
    }

    fn schema(schemas: &mut Schemas) -> Json {
        let exponential = json!({
            "type": "object",
            "description": "Exponentially distributed sizes, by their mean.",
            "properties": { "exponential": {
                "anyOf": [<Bytes as Decode>::schema(schemas)],
                "description": "Mean size.",
            } },
            "additionalProperties": false,
            "required": ["exponential"],
        });
        json!({ "anyOf": [exponential, size_weights_schema(schemas)] })
    }
}

settings! {
    /// An application over the transport of its source.
    struct ApplicationSpec as "ApplicationSpec" {
        /// Kind of application: `bulk` (sends as much as its transport takes), `requests` (asks at a constant rate,
        /// whatever the answers take), `short_flows` (asks again once it was answered, on a new connection each time),
        /// `video` (adapts its quality).
        kind: Option<ApplicationKind>,
        /// Of `bulk`: connections. Default 1.
        flows: Option<Count>,
        /// Of `bulk`, instead of `flows`: flows that begin in a second on average, at random (a Poisson process).
        arrivals: Option<EventRate>,
        /// Of `bulk`: what each connection transfers: one size; `{exponential: 100 kB}`, by their mean; or sizes and the weight
        /// with which each is drawn. Default: it sends until the source stops.
        bytes: Option<TransferSizeSpec>,
        /// Of `bulk`: most that each connection sends, on average since it began. Default: as much as its transport takes.
        bitrate: Option<PassingRate>,
        /// Of `requests`: requests of all connections together, for example `1000 /s`.
        rate: Option<EventRate>,
        /// Of `requests`: connections, which stay open and carry one request at a time. Default 10.
        connections: Option<Count>,
        /// Of `short_flows` and `video`: clients. Default 1.
        clients: Option<Count>,
        /// Of `requests` and `short_flows`: bytes of a request. Default 100 B.
        request: Option<Bytes>,
        /// Of `requests` and `short_flows`: bytes of a response: one size; `{exponential: 10 kB}`, by their mean; or sizes and
        /// the weight with which each is drawn, `{1 kB: 9, 100 kB: 1}`.
        response: Option<TransferSizeSpec>,
        /// Of `short_flows`: time from the end of a flow to the next one of the client. Default 0 s.
        pause: Duration,
        /// Of `requests`, `short_flows` and `video`: time that the server works on a request. Default 0 s.
        service_time: Duration,
        /// Of `requests`, `short_flows` and `video`: requests that the server works on at once. Default: all.
        workers: Option<Count>,
        /// Of `video`: bit rates of the qualities, lowest first.
        ladder: List<At<PassingRate>>,
        /// Of `video`: length of a segment, in time played. Default 4 s.
        segment: Option<Positive>,
        /// Of `video`: a client asks for no more while it has this much to play. Default 30 s.
        buffer: Option<At<Positive>>,
        /// Of `video`: what the next quality is chosen by: `throughput`, `bola` (how much there is to play), or
        /// `dynamic` (default: the first while there is little, the second once there is enough).
        rule: AdaptationRule,
        /// Of `bulk` and `video`: each connection or client begins so much later than the one before it. Default 0 s.
        stagger: Duration,
    }
}

impl From<ApplicationKind> for Placed<ApplicationSpec> {
    fn from(kind: ApplicationKind) -> Self {
        let mut spec = Self::default();
        spec.value.kind = Some(kind);
        spec
    }
}

impl ApplicationKind {
    /// The settings that it has beside `kind`.
    pub(super) const fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Bulk => &["flows", "arrivals", "bytes", "bitrate", "stagger"],
            Self::Requests => &[
                "rate",
                "connections",
                "request",
                "response",
                "service_time",
                "workers",
            ],
            Self::ShortFlows => &[
                "clients",
                "request",
                "response",
                "pause",
                "service_time",
                "workers",
            ],
            Self::Video => &[
                "clients",
                "ladder",
                "segment",
                "buffer",
                "rule",
                "stagger",
                "service_time",
                "workers",
            ],
        }
    }

    /// The setting that says how many connections it has.
    pub(super) const fn connections(self) -> &'static str {
        match self {
            Self::Bulk => "flows",
            Self::Requests => "connections",
            Self::ShortFlows | Self::Video => "clients",
        }
    }
}
