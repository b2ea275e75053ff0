//! How long the packets of a source are.

use super::Checker;
use crate::file::{At, Span};
use crate::params::{PacketSize, SizesParams, SourceHeaders, WeightedSize};
use crate::spec::{Counted, PatternName, Payload, PayloadSpec, Short, SizeWeights, SourceSpec};
use slicewise_units::{Accounting, ByteCount, FrameLengths};

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

/// What a study says of the sizes of a source, and where.
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

impl Checker<'_> {
    /// The sizes as they are written; `at` is where to say that they are not.
    pub(super) fn payload(
        &mut self,
        spec: Option<&At<PayloadSpec>>,
        pattern: Option<PatternName>,
        at: Span,
    ) -> Option<Written> {
        let Some(At { value, span }) = spec else {
            if pattern == Some(PatternName::Replay) {
                let sizes = WrittenSizes::Capture;
                return Some(Written { sizes, at });
            }
            self.problems.add(at, "`payload` is missing");
            return None;
        };
        let (sizes, at) = match value {
            Short::Settings(mix) => (self.mix(mix, *span)?, *span),
            Short::Value(text) => {
                let at = text.span();
                let sizes = match text.read(self.problems)? {
                    Payload::Imix => WrittenSizes::Imix,
                    Payload::Size(size) => {
                        WrittenSizes::Payloads(vec![(self.payload_bytes(size, at)?, 1)])
                    }
                    Payload::Capture if pattern.is_none_or(|p| p == PatternName::Replay) => {
                        WrittenSizes::Capture
                    }
                    Payload::Capture => {
                        let message = "only the pattern `replay` has the sizes of a capture";
                        let help = "write a size, sizes with weights, or `imix`".to_owned();
                        self.problems.add_with_help(at, message, Some(help));
                        return None;
                    }
                };
                (sizes, at)
            }
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
            let message = "a payload of this size does not fit in an IP packet";
            self.problems.add(at, message);
        }
        bytes.and_then(|bytes| u32::try_from(bytes).ok())
    }

    fn mix(&mut self, SizeWeights(mix): &SizeWeights, at: Span) -> Option<WrittenSizes> {
        if mix.len() > MAX_SIZES {
            let message = format!("a mix may have at most {MAX_SIZES} sizes");
            self.problems.add(at, message);
            return None;
        }
        let mut payloads: Vec<(u32, u32)> = Vec::new();
        let mut is_whole = true;
        for (size, weight) in mix {
            let bytes = size.read(self.problems);
            let bytes = bytes.and_then(|bytes| self.payload_bytes(bytes, size.span()));
            let weight = weight.read(self.problems).filter(|read| {
                let fits = *read <= MAX_WEIGHT;
                if !fits {
                    let message = format!("a weight may be at most {MAX_WEIGHT}");
                    self.problems.add(weight.span(), message);
                }
                fits
            });
            let (Some(bytes), Some(weight)) = (bytes, weight) else {
                is_whole = false;
                continue;
            };
            if payloads.iter().any(|(other, _)| *other == bytes) {
                let message = format!("{bytes} B has a weight already");
                self.problems.add(size.span(), message);
                is_whole = false;
            }
            payloads.push((bytes, weight));
        }
        // A scenario takes a size out of the mix that all scenarios have by giving it no weight.
        payloads.retain(|(_, weight)| *weight > 0);
        if is_whole && payloads.is_empty() {
            let message = "no size has a weight: nothing would be sent";
            self.problems.add(at, message);
        }
        (is_whole && !payloads.is_empty()).then_some(WrittenSizes::Payloads(payloads))
    }

    /// The sizes of the packets that carry what is written, behind these headers and on a link of this
    /// MTU.
    pub(super) fn sizes(
        &mut self,
        written: &Written,
        spec: &SourceSpec,
        pattern: PatternName,
        headers: &SourceHeaders,
        mtu_bytes: u32,
    ) -> Option<Sizes> {
        let header_bytes = headers.ip_bytes() + headers.transport_bytes();
        let default = match pattern {
            PatternName::Iperf3 => Counted::Payload,
            _ => Counted::Layer(Accounting::L2.layer),
        };
        let counted = self.read_or(spec.counts.as_ref(), default);
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
            self.problems.add_with_help(written.at, message, help);
        }
        let sizes = match (&written.sizes, sizes.len()) {
            (WrittenSizes::Capture, _) => SizesParams::Capture,
            (_, 1) => SizesParams::Equal,
            _ => SizesParams::Mix(sizes),
        };
        Some(Sizes { largest, sizes })
    }

    /// What packets of IMIX leave for payload behind that many bytes of headers.
    fn imix(&mut self, at: Span, header_bytes: u32) -> Option<Vec<(u32, u32)>> {
        let payload =
            |(bytes, weight): (u32, u32)| Some((bytes.checked_sub(header_bytes)?, weight));
        let payloads: Option<Vec<_>> = IMIX.into_iter().map(payload).collect();
        if payloads.is_none() {
            let message = format!(
                "`imix` has IP packets of 40 B, and the headers of this source alone have {header_bytes} B"
            );
            let help = "write the sizes of the payload and their weights, for example \
                        `{64 B: 7, 528 B: 4, 1448 B: 1}`";
            self.problems
                .add_with_help(at, message, Some(help.to_owned()));
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
        Counted::Layer(layer) => {
            let counted = Counted::accounting(layer).count(lengths).bytes();
            u32::try_from(counted).unwrap_or(u32::MAX)
        }
    };
    PacketSize {
        payload_bytes,
        l2_bytes,
        counted_bytes,
    }
}
