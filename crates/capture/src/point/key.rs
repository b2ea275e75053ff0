//! The key of a packet: a hash of the fields routers do not change, the same at every point the packet
//! passes.
//!
//! Hashed are the addresses, the protocol, the ports, the identification of IPv4, the bytes of the
//! IP payload, and the bytes from the transport header on. Not hashed are fields that change in transit
//! (time to live, DSCP, ECN, IPv4 checksum and options, IPv6 extension headers, VLAN tags, tunnels) and
//! the checksum of UDP, TCP and SCTP, which is incomplete in a sender's capture if the adapter computes
//! it. Of TCP, sequence and acknowledgement numbers, flags and options are hashed, not the window. Of a
//! segment with SYN, options and ECN flags are not: routers that clamp the maximum segment size
//! (RFC 6691), and proxies, change them. Address translation and segmentation after a point change the
//! key.
//!
//! Two points may have captured different lengths after different link headers. So that both hash the
//! same bytes, only the first [`MOST_KEY_BYTES`] of a packet without options and extension headers are
//! used: as many as remain of 96 captured bytes after the 20 of a Linux cooked header and two VLAN tags. Packets in a tunnel have
//! fewer: then both points must use fewer. Of packets that both points captured whole, the last
//! [`LAST_KEY_BYTES`] are hashed, too: traffic generators put their sequence numbers there.

use slicewise_wire::{
    Headers, IpVersion, PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP, ParsedFrame, TcpFlags,
};

/// Most bytes from the IP header on that keys cover, options and extension headers left out.
pub const MOST_KEY_BYTES: u32 = 68;

/// Last bytes of a packet that keys cover: TRex's signature has 16 bytes, Spirent's 20, that of Ixia up
/// to 28.
pub const LAST_KEY_BYTES: usize = 32;

/// The bytes of a packet that keys cover, the same at all points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyBytes {
    /// Bytes from the IP header on without options and extension headers, at most [`MOST_KEY_BYTES`].
    pub first: u32,
    /// Packets of at most this many bytes without options and extension headers were captured whole: keys
    /// cover their last [`LAST_KEY_BYTES`], too.
    pub whole: u32,
}

impl KeyBytes {
    /// All that keys can cover.
    pub const MOST: Self = Self {
        first: MOST_KEY_BYTES,
        whole: u32::MAX,
    };

    /// Returns the bytes that keys can cover at both of two points.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            whole: self.whole.min(other.whole),
        }
    }
}

/// The key, or `None` if the captured bytes end before the hashed ones.
#[inline]
pub(super) fn packet_key(frame: &ParsedFrame, captured: &[u8], bytes: KeyBytes) -> Option<u64> {
    let plain_bytes = frame.ip_bytes - option_bytes(frame);
    let packet_end = frame.ip_offset + frame.ip_bytes as usize;
    let end = packet_end - plain_bytes.saturating_sub(bytes.first) as usize;
    if captured.len() < end {
        return None;
    }
    let headers = &frame.headers;
    let hash = seed(headers, facts(frame, frame.ip_payload_bytes()));
    let transport = captured.get(frame.transport_offset..)?;
    let (hash, hashed) = match headers.protocol {
        PROTOCOL_UDP => {
            let header: &[u8; 8] = transport.first_chunk()?;
            let ports = u64::from_le_bytes(*header) & 0xffff_ffff;
            (hash ^ ports, 8)
        }
        PROTOCOL_TCP => {
            let header: &[u8; 16] = transport.first_chunk()?;
            let words = u128::from_le_bytes(*header);
            if TcpFlags(header[13]).contains(TcpFlags::SYN) {
                return Some(syn_key(frame, words));
            }
            // Up to the flags; window, checksum and urgent pointer are not hashed.
            let rest = high(words) & 0xffff_ffff_ffff;
            (fold(low(words) ^ hash, rest ^ PI[2]), 20)
        }
        PROTOCOL_SCTP => {
            let header: &[u8; 8] = transport.first_chunk()?;
            (hash ^ u64::from_le_bytes(*header), 12)
        }
        _ => (hash, 0),
    };
    let start = frame.transport_offset + hashed;
    let hash = hash_bytes(hash, captured.get(start..end).unwrap_or_default());
    if plain_bytes <= bytes.first || plain_bytes > bytes.whole {
        return Some(hash);
    }
    let last = start
        .max(end)
        .max(packet_end.saturating_sub(LAST_KEY_BYTES));
    Some(hash_bytes(hash, captured.get(last..packet_end)?))
}

/// Bytes of IPv4 options or IPv6 extension headers, which routers may add, change and remove.
#[inline]
pub(super) fn option_bytes(frame: &ParsedFrame) -> u32 {
    let fixed = if frame.headers.ip_version == IpVersion::V6 {
        40
    } else {
        20
    };
    let plain_bytes = frame.ip_payload_bytes() + fixed;
    frame.ip_bytes.saturating_sub(plain_bytes)
}

/// Hash of the addresses and of the IP header's other fields.
#[inline]
fn seed(headers: &Headers, facts: u64) -> u64 {
    if headers.ip_version == IpVersion::V6 {
        let of_source = fold(low(headers.source) ^ PI[0], high(headers.source) ^ PI[1]);
        let destination = headers.destination;
        fold(low(destination) ^ of_source, high(destination) ^ facts)
    } else {
        let addresses = low(headers.source) << 32 | low(headers.destination);
        fold(addresses ^ PI[0], facts ^ PI[1])
    }
}

#[inline]
fn facts(frame: &ParsedFrame, bytes: u32) -> u64 {
    u64::from(frame.headers.protocol)
        | u64::from(frame.identification) << 8
        | u64::from(bytes) << 32
}

/// Key of a segment with SYN: without its options, their length, and the ECN flags that are negotiated
/// like them. `words` are the first 16 bytes of the TCP header.
#[inline(never)]
fn syn_key(frame: &ParsedFrame, words: u128) -> u64 {
    let hash = seed(&frame.headers, facts(frame, frame.payload_bytes()));
    // Acknowledgement number, and the flags from FIN to URG.
    let rest = high(words) & 0x3f00_ffff_ffff;
    fold(fold(low(words) ^ hash, rest ^ PI[2]) ^ PI[2], PI[3])
}

/// The number of bytes follows from the packet length, which is already hashed; so the last words may
/// overlap earlier ones.
#[inline]
fn hash_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    while let Some((chunk, behind)) = rest.split_first_chunk::<16>() {
        hash = hash_16(hash, chunk);
        rest = behind;
    }
    if rest.is_empty() {
        return fold(hash ^ PI[2], PI[3]);
    }
    let (first, last) = if let Some(last) = bytes.last_chunk::<16>() {
        return fold(hash_16(hash, last) ^ PI[2], PI[3]);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else {
        bytes
            .iter()
            .fold((0, 0), |(few, _), byte| (few << 8 | u64::from(*byte), 0))
    };
    fold(fold(first ^ hash, last ^ PI[3]) ^ PI[2], PI[3])
}

#[inline]
fn hash_16(hash: u64, chunk: &[u8; 16]) -> u64 {
    let words = u128::from_le_bytes(*chunk);
    fold(low(words) ^ hash, high(words) ^ PI[3])
}

/// Folds the two halves of a 128-bit product: every bit of the result depends on every bit of both
/// factors.
#[inline]
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    low(product) ^ high(product)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(super) fn low(word: u128) -> u64 {
    word as u64
}

#[inline]
pub(super) fn high(word: u128) -> u64 {
    low(word >> 64)
}

/// Digits of pi: numbers without a pattern.
pub(super) const PI: [u64; 4] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slicewise_wire::{LinkType, parse_frame};

    /// No packet is captured whole.
    const FIRST: KeyBytes = KeyBytes {
        first: MOST_KEY_BYTES,
        whole: 0,
    };

    /// An IPv4 packet with a UDP or TCP header and 60 bytes behind it, as raw IP.
    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![
            0x45, 0xb8, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0xaa, 0xbb,
        ];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x14, 0x51]);
        packet.extend(payload);
        let length = u16::try_from(packet.len()).unwrap();
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet
    }

    fn key(packet: &[u8], captured: usize) -> Option<u64> {
        let wire_bytes = u32::try_from(packet.len()).unwrap();
        let captured = &packet[..captured];
        let frame = parse_frame(LinkType::RAW, captured, wire_bytes);
        packet_key(&frame, captured, FIRST)
    }

    /// UDP: length and checksum. TCP: the rest of its header, of 20 bytes.
    fn example(protocol: u8) -> Vec<u8> {
        let mut rest: Vec<u8> = (0..80).collect();
        if protocol == PROTOCOL_TCP {
            rest[8] = 0x50;
        }
        packet(protocol, &rest)
    }

    #[test]
    fn ignores_fields_that_change_in_transit_and_hashes_the_rest() {
        // Type of service, time to live, IP checksum; UDP length (implied by that of IP) and checksum;
        // TCP window, checksum and urgent pointer.
        let changing: [(u8, &[usize]); 3] = [
            (PROTOCOL_UDP, &[1, 8, 10, 11, 24, 25, 26, 27]),
            (PROTOCOL_TCP, &[1, 8, 10, 11, 34, 35, 36, 37, 38, 39]),
            (1, &[1, 8, 10, 11]),
        ];
        for (protocol, left_out) in changing {
            let whole = example(protocol);
            let expected = key(&whole, whole.len()).unwrap();
            for at in (0..whole.len()).filter(|at| ![0, 2, 3, 6, 7, 9, 32].contains(at)) {
                let mut changed = whole.clone();
                changed[at] ^= 0x10;
                let is_same = key(&changed, changed.len()).unwrap() == expected;
                let may_be_same = left_out.contains(&at) || at >= 68;
                assert_eq!(is_same, may_be_same, "byte {at} of protocol {protocol}");
            }
        }
    }

    #[test]
    fn is_the_same_for_every_snap_length_or_none() {
        for protocol in [PROTOCOL_UDP, PROTOCOL_TCP, PROTOCOL_SCTP, 1] {
            let whole = example(protocol);
            let expected = key(&whole, whole.len());
            assert!(expected.is_some());
            for captured in 20..whole.len() {
                let known = expected.filter(|_| captured >= 68);
                assert_eq!(
                    key(&whole, captured),
                    known,
                    "{captured} bytes of protocol {protocol}"
                );
            }
        }
    }

    #[test]
    fn options_of_a_syn_are_no_part_of_its_key_and_those_of_other_segments_are() {
        // Data offset, flags, window, checksum, urgent pointer, then options.
        let segment = |flags: u8, options: &[u8]| {
            let mut rest: Vec<u8> = (0..12).collect();
            let words = u8::try_from(5 + options.len() / 4).unwrap();
            rest.extend([words << 4, flags, 1, 2, 0, 0, 0, 0]);
            rest.extend(options);
            let mut v6 = vec![0x60, 0, 0, 0, 0, 0, PROTOCOL_TCP, 64];
            v6.extend(0..32);
            v6[5] = u8::try_from(rest.len()).unwrap();
            v6.extend(&rest);
            // The other one has its ports.
            [packet(PROTOCOL_TCP, &rest[4..]), v6].map(|packet| key(&packet, packet.len()).unwrap())
        };
        let clamped = [2, 4, 0x05, 0x84, 1, 3, 3, 7];
        for flags in [0x02, 0x12] {
            let sent = segment(flags, &[2, 4, 0x05, 0xb4, 1, 3, 3, 7]);
            assert_eq!(sent, segment(flags, &clamped));
            assert_eq!(sent, segment(flags, &clamped[..4]), "one was removed");
            assert_eq!(sent, segment(flags | 0xc0, &clamped), "ECN negotiation");
            assert_ne!(sent, segment(flags ^ 0x10, &clamped));
        }
        assert_ne!(segment(0x10, &clamped), segment(0x10, &[1; 8]));
        assert_ne!(segment(0x10, &clamped), segment(0x90, &clamped));
    }

    #[test]
    fn the_last_bytes_are_hashed_of_packets_that_are_captured_whole() {
        for (protocol, bytes) in [(PROTOCOL_UDP, 478), (PROTOCOL_TCP, 60), (1, 50)] {
            let mut rest = vec![0x50; bytes];
            let whole = packet(protocol, &rest);
            *rest.last_mut().unwrap() ^= 1;
            let other = packet(protocol, &rest);
            rest[bytes - LAST_KEY_BYTES] ^= 1;
            let third = packet(protocol, &rest);
            let length = u32::try_from(whole.len()).unwrap();
            let keys = |bytes: KeyBytes| {
                [&whole, &other, &third].map(|packet| {
                    let frame = parse_frame(LinkType::RAW, packet, length);
                    packet_key(&frame, packet, bytes).unwrap()
                })
            };
            let [one, two, three] = keys(KeyBytes::MOST);
            assert!(one != two && two != three);
            let up_to = |whole| KeyBytes { whole, ..FIRST };
            assert_eq!(keys(up_to(length)), [one, two, three]);
            let [one, two, _] = keys(up_to(length - 1));
            assert_eq!(one, two);
            let frame = parse_frame(LinkType::RAW, &whole, length);
            let cut = &whole[..whole.len() - 1];
            assert_eq!(packet_key(&frame, cut, KeyBytes::MOST), None);
        }
    }

    #[test]
    fn keys_differ_between_packets_of_different_lengths() {
        let payload = [0; 100];
        let keys: std::collections::BTreeSet<_> = (8..100)
            .map(|bytes| {
                let packet = packet(PROTOCOL_UDP, &payload[..bytes]);
                key(&packet, packet.len()).unwrap()
            })
            .collect();
        assert_eq!(keys.len(), 92);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn differs_where_hashed_bytes_differ(
            one in prop::collection::vec(any::<u8>(), 44),
            two in prop::collection::vec(any::<u8>(), 44),
        ) {
            let keys = [&one, &two].map(|rest| {
                let packet = packet(1, rest);
                key(&packet, packet.len()).unwrap()
            });
            prop_assert_eq!(keys[0] == keys[1], one == two);
        }
    }
}
