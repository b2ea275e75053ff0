//! The sizes of a source's packets.

use super::Checker;
use crate::file::{Decode, Entry, Problems, Schemas, Span};
use crate::params::{PacketSize, SizesParams, SourceHeaders, WeightedSize};
use crate::problem;
use crate::spec::{At, Counted, NUMBER, PatternName, SIZE_UNITS, Scalar, Short};
use serde_json::{Value, json};
use slicewise_units::{Accounting, ByteCount, FrameLengths};
use std::fmt::Display;

/// Simple IMIX: bytes of IP packets, and how many there are of each in twelve. On an untagged Ethernet
/// their frames have 64 (padded), 594 and 1518 bytes with FCS: in the notation of RFC 6985, seven `a`,
/// four of a custom size of 594 bytes and one `g`.
const IMIX: [(u32, u32); 3] = [(40, 7), (576, 4), (1500, 1)];
/// Most sizes of a mix.
const MAX_SIZES: usize = 64;
/// Largest weight of a size.
const MAX_WEIGHT: u32 = 1_000_000;
/// The largest IP packet, bytes.
const MAX_PACKET: u64 = 65_535;

/// Payload sizes of a source as written, and their place.
pub(super) struct Written {
    sizes: WrittenSizes,
    at: Span,
}

enum WrittenSizes {
    /// Bytes of payload, and the weight of each.
    Payloads(Vec<(u32, u32)>),
    Imix,
    Capture,
}

/// How long the packets of a source are.
pub(super) struct Sizes {
    pub(super) largest: PacketSize,
    pub(super) sizes: SizesParams,
}

/// A payload written as one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    Size(ByteCount),
    /// Simple IMIX.
    Imix,
    /// The sizes of the capture that is replayed.
    Capture,
}

impl Scalar for Payload {
    const NAME: &'static str = "Payload";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "imix" | "IMIX" => Ok(Self::Imix),
            "capture" => Ok(Self::Capture),
            // Not the sentence of a size: a word was tried.
            word if word.starts_with(|c: char| c.is_ascii_alphabetic()) => Err(format!(
                "`{word}` is not a payload: write a size (`1448 B`), sizes with weights (`{{64 B: 7, 1448 B: 1}}`), \
                 `imix` or `capture`"
            )),
            size => ByteCount::from_text(size).map(Self::Size),
        }
    }

    fn accepted() -> Value {
        json!({ "anyOf": [ByteCount::accepted(), { "enum": ["imix", "IMIX", "capture"] }] })
    }
}

/// One size, several with the weight of each, or a name for sizes.
pub(crate) type PayloadSpec = Short<At<Payload>, PayloadForm>;

/// A size and its weight, where they can be read.
pub(super) type SizeWeight = (Option<At<ByteCount>>, Option<At<u32>>);

/// A payload in one of its forms.
#[derive(Debug, Clone)]
pub(crate) enum PayloadForm {
    One(At<Payload>),
    /// Sizes, and how often each is drawn relative to the others.
    Mix(Vec<SizeWeight>),
}

impl From<At<Payload>> for PayloadForm {
    fn from(one: At<Payload>) -> Self {
        Self::One(one)
    }
}

impl Decode for PayloadForm {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        size_weights(entry, problems).map(Self::Mix)
    }

    fn schema(schemas: &mut Schemas) -> Value {
        size_weights_schema(schemas)
    }
}

/// Sizes, and the weight of each.
pub(super) fn size_weights(entry: Entry<'_>, problems: &mut Problems) -> Option<Vec<SizeWeight>> {
    let entries = entry.table(problems)?.iter();
    let sizes = entries.map(|(key, node)| {
        let size = ByteCount::from_text(&key.text);
        let size = size.map_err(|message| problems.add(key.span, message));
        let span = key.span;
        let key = Some(span);
        let weight = At::decode(Entry { node, key }, problems);
        (size.ok().map(|value| At { value, span }), weight)
    });
    Some(sizes.collect())
}

/// Returns the schema of [`size_weights`], for editors.
pub(super) fn size_weights_schema(schemas: &mut Schemas) -> Value {
    schemas.reference("SizeWeights", |schemas| {
        json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^ *{NUMBER} *({SIZE_UNITS}) *$") },
            "additionalProperties": <u32 as Decode>::schema(schemas),
            "minProperties": 1,
        })
    })
}

impl Checker<'_> {
    /// The sizes as they are written; `at` is where to say that they are not.
    pub(super) fn payload(
        &mut self,
        payload: Option<&At<PayloadSpec>>,
        is_written: bool,
        pattern: Option<PatternName>,
        at: Span,
    ) -> Option<Written> {
        if !is_written {
            if pattern == Some(PatternName::Replay) {
                let sizes = WrittenSizes::Capture;
                return Some(Written { sizes, at });
            }
            self.problems.add(at, "`payload` is missing");
        }
        let At { value, span } = payload?;
        let at = *span;
        let sizes = match &value.value {
            PayloadForm::Mix(mix) => {
                WrittenSizes::Payloads(self.mix(mix, at, Self::payload_bytes)?)
            }
            PayloadForm::One(one) => match one.value {
                Payload::Imix => WrittenSizes::Imix,
                Payload::Size(size) => {
                    WrittenSizes::Payloads(vec![(self.payload_bytes(size, at)?, 1)])
                }
                Payload::Capture if pattern.is_none_or(|p| p == PatternName::Replay) => {
                    WrittenSizes::Capture
                }
                Payload::Capture => {
                    problem!(self.problems, at => "only the pattern `replay` has the sizes of a capture";
                        "write a size, sizes with weights, or `imix`");
                    return None;
                }
            },
        };
        Some(Written { sizes, at })
    }

    fn payload_bytes(&mut self, size: ByteCount, at: Span) -> Option<u32> {
        if size == ByteCount::ZERO {
            self.problems.add(at, "a payload of zero");
            return None;
        }
        let bytes = Some(size.bytes()).filter(|bytes| *bytes <= MAX_PACKET);
        if bytes.is_none() {
            problem!(self.problems, at => "a payload of this size does not fit in an IP packet");
        }
        bytes.and_then(|bytes| u32::try_from(bytes).ok())
    }

    /// Sizes that have a weight, each read by `bytes_of`.
    pub(super) fn mix<T: Copy + PartialEq + Display>(
        &mut self,
        mix: &[SizeWeight],
        at: Span,
        bytes_of: fn(&mut Self, ByteCount, Span) -> Option<T>,
    ) -> Option<Vec<(T, u32)>> {
        if mix.len() > MAX_SIZES {
            problem!(self.problems, at => "a mix may have at most {MAX_SIZES} sizes");
            return None;
        }
        let mut sizes: Vec<(T, u32)> = Vec::new();
        let mut is_whole = true;
        for (size, weight) in mix {
            let bytes = size
                .as_ref()
                .and_then(|size| bytes_of(self, size.value, size.span));
            let weight = weight.as_ref().filter(|weight| {
                let fits = weight.value <= MAX_WEIGHT;
                if !fits {
                    problem!(self.problems, weight.span => "a weight may be at most {MAX_WEIGHT}");
                }
                fits
            });
            let (Some(size), Some(bytes), Some(weight)) = (size, bytes, weight) else {
                is_whole = false;
                continue;
            };
            if sizes.iter().any(|(other, _)| *other == bytes) {
                problem!(self.problems, size.span => "{bytes} B has a weight already");
                is_whole = false;
            }
            sizes.push((bytes, weight.value));
        }
        // A scenario takes a size out of the mix that all scenarios have by giving it no weight.
        sizes.retain(|(_, weight)| *weight > 0);
        if is_whole && sizes.is_empty() {
            problem!(self.problems, at => "no size has a weight: nothing would be sent");
        }
        (is_whole && !sizes.is_empty()).then_some(sizes)
    }

    /// The sizes of the packets that carry what is written, behind these headers and on a link of this
    /// MTU.
    pub(super) fn sizes(
        &mut self,
        written: &Written,
        counts: Option<Counted>,
        pattern: PatternName,
        headers: &SourceHeaders,
        mtu_bytes: u32,
    ) -> Option<Sizes> {
        let header_bytes = headers.ip_bytes() + headers.transport_bytes();
        let default = match pattern {
            PatternName::Iperf3 => Counted::Payload,
            _ => Counted::Layer(Accounting::L2),
        };
        let counted = counts.unwrap_or(default);
        let payloads = match &written.sizes {
            WrittenSizes::Payloads(payloads) => payloads.clone(),
            WrittenSizes::Imix => self.imix(written.at, header_bytes)?,
            // A link that could not be read carries anything.
            WrittenSizes::Capture => {
                let most = mtu_bytes.min(u32::from(u16::MAX));
                vec![(most.saturating_sub(header_bytes), 1)]
            }
        };
        let mut sizes: Vec<WeightedSize> = payloads
            .into_iter()
            .map(|(payload, weight)| WeightedSize {
                size: packet_size(payload, header_bytes, headers, counted),
                weight,
            })
            .collect();
        sizes.sort_unstable_by_key(|sized| sized.size.payload_bytes);
        let largest = sizes.last()?.size;
        if header_bytes + largest.payload_bytes > mtu_bytes {
            let message = format!(
                "a payload of {} B makes IP packets of {} B, above the link's MTU of {mtu_bytes} B",
                largest.payload_bytes,
                header_bytes + largest.payload_bytes,
            );
            let help = mtu_bytes.checked_sub(header_bytes).map(|most| {
                format!("these headers leave room for a payload of {most} B, or raise `link.mtu`")
            });
            self.problems.add_suggesting(written.at, message, help);
        }
        let sizes = match (&written.sizes, sizes.len()) {
            (WrittenSizes::Capture, _) => SizesParams::Capture,
            (_, 1) => SizesParams::Equal,
            _ => SizesParams::Mix(sizes),
        };
        Some(Sizes { largest, sizes })
    }

    /// Returns the payload sizes and weights of IMIX packets with that many bytes of headers.
    fn imix(&mut self, at: Span, header_bytes: u32) -> Option<Vec<(u32, u32)>> {
        let payload =
            |(bytes, weight): (u32, u32)| Some((bytes.checked_sub(header_bytes)?, weight));
        let payloads: Option<Vec<_>> = IMIX.into_iter().map(payload).collect();
        if payloads.is_none() {
            problem!(self.problems, at => "`imix` has IP packets of 40 B, and the headers of this source alone have \
                {header_bytes} B";
                "write the sizes of the payload and their weights, for example `{{64 B: 7, 528 B: 4, 1448 B: 1}}`");
        }
        payloads
    }
}

fn packet_size(
    payload_bytes: u32,
    header_bytes: u32,
    headers: &SourceHeaders,
    counted: Counted,
) -> PacketSize {
    let l3_offset = headers.l3_offset();
    let l2_bytes = header_bytes + payload_bytes + u32::from(l3_offset);
    let lengths = FrameLengths {
        l2_bytes,
        l3_offset,
    };
    let counted_bytes = match counted {
        Counted::Payload => payload_bytes,
        Counted::Layer(accounting) => {
            let counted = accounting.count(lengths).bytes();
            u32::try_from(counted).unwrap_or(u32::MAX)
        }
    };
    PacketSize {
        payload_bytes,
        l2_bytes,
        counted_bytes,
    }
}
