//! The key of a packet: a hash of what routers leave alone, the same at every point the packet
//! passes.
//!
//! Hashed are the addresses, the protocol, the ports, the identification of IPv4, the bytes of the
//! IP payload, and the bytes from the transport header on. Left out is what changes on the way (time to live,
//! DSCP, ECN, IPv4 checksum and options, IPv6 extension headers, VLAN tags, tunnels) and the
//! checksum of UDP, TCP and SCTP, which a sender's capture shows unfinished where the adapter
//! computes it. Of TCP, sequence and acknowledgement numbers, flags and options are hashed, not the
//! window. Address translation and splitting of segments behind a point change the key.
//!
//! Two points may have captured different lengths behind different link headers. So that both
//! hash the same bytes, those behind [`MOST_KEY_BYTES`] from the IP header on are left out: of 96
//! captured bytes, as many remain behind 20 of a Linux cooked header and two VLAN tags. Packets in
//! a tunnel have fewer: then both points must agree on fewer.

use slicewise_wire::{IpVersion, PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP, ParsedFrame};

/// Bytes from the IP header on that keys are made of, at most.
pub const MOST_KEY_BYTES: u32 = 68;

/// The key, or none where the captured bytes end before what it is made of.
#[inline]
pub(super) fn packet_key(frame: &ParsedFrame, captured: &[u8], key_bytes: u32) -> Option<u64> {
    let end = frame.ip_offset + frame.ip_bytes.min(key_bytes) as usize;
    if captured.len() < end {
        return None;
    }
    let headers = &frame.headers;
    let facts = u64::from(headers.protocol)
        | u64::from(frame.identification) << 8
        | u64::from(frame.ip_payload_bytes()) << 32;
    let hash = if headers.ip_version == IpVersion::V6 {
        let of_source = fold(low(headers.source) ^ PI[0], high(headers.source) ^ PI[1]);
        let destination = headers.destination;
        fold(low(destination) ^ of_source, high(destination) ^ facts)
    } else {
        let addresses = low(headers.source) << 32 | low(headers.destination);
        fold(addresses ^ PI[0], facts ^ PI[1])
    };
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
            // To the flags; the window behind them is left out, as are checksum and urgent pointer.
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
    Some(hash_bytes(
        hash,
        captured.get(start..end).unwrap_or_default(),
    ))
}

/// How many bytes there are is told by the length of the packet, which was hashed before; so the
/// last words may overlap those before.
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

/// The two halves of a product of 128 bits on one another: every bit of the result depends on
/// every bit of both factors.
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
