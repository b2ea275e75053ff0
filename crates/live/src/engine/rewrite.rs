//! Changes that the gateway makes in a frame: DSCP (RFC 2474), ECN (RFC 3168), and transport checksums that a virtual
//! interface left to hardware that does not exist.

use super::inspect;
use slicewise_units::FrameLengths;
use slicewise_wire::{IpVersion, LinkType, PROTOCOL_TCP, PROTOCOL_UDP, parse_frame};

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// Write `traffic_class` (DSCP and ECN) into the outermost IP header of a frame, and update an IPv4 header's checksum
/// so that a correct one stays correct (RFC 1624, equation 3). Does nothing if there is no IP header. The traffic class
/// of MPLS labels (RFC 5462) stays as it is.
#[inline]
pub fn set_traffic_class(head: &mut [u8], lengths: FrameLengths, traffic_class: u8) {
    let at = usize::from(lengths.l3_offset);
    let Some(ethertype) = at.checked_sub(2).and_then(|before| head.get(before..at)) else {
        return;
    };
    let version = if ethertype == ETHERTYPE_IPV4 {
        IpVersion::V4
    } else if ethertype == ETHERTYPE_IPV6 {
        IpVersion::V6
    } else {
        version_within(head, lengths, traffic_class)
    };
    if version == IpVersion::V4 {
        if let Some(header) = head.get_mut(at..).and_then(|ip| ip.first_chunk_mut()) {
            set_v4(header, traffic_class);
        }
    } else if version == IpVersion::V6
        && let Some([first, second, ..]) = head.get_mut(at..)
    {
        *first = *first & 0xf0 | traffic_class >> 4;
        *second = *second & 0x0f | traffic_class << 4;
    }
}

/// Version of an IP header that does not follow its `EtherType`: in a PPPoE session, or behind MPLS labels. None where
/// nothing would change.
#[cold]
fn version_within(head: &[u8], lengths: FrameLengths, traffic_class: u8) -> IpVersion {
    let version = match head
        .get(usize::from(lengths.l3_offset))
        .map(|first| first >> 4)
    {
        Some(4) => IpVersion::V4,
        Some(6) => IpVersion::V6,
        _ => return IpVersion::None,
    };
    if inspect::traffic_class(head, lengths.l3_offset, version) == traffic_class {
        return IpVersion::None;
    }
    let headers = parse_frame(LinkType::ETHERNET, head, lengths.l2_bytes).headers;
    let is_ip = headers.ip_version != IpVersion::None && headers.l3_offset == lengths.l3_offset;
    if is_ip { version } else { IpVersion::None }
}

fn set_v4(header: &mut [u8; 20], traffic_class: u8) {
    let [version, before] = [header[0], header[1]];
    if before == traffic_class {
        return;
    }
    let word = |low: u8| u32::from(u16::from_be_bytes([version, low]));
    let checksum = u32::from(u16::from_be_bytes([header[10], header[11]]));
    // HC' = ~(~HC + ~m + m')
    let sum = (!checksum & 0xffff) + (!word(before) & 0xffff) + word(traffic_class);
    let [high, low] = (!fold(sum)).to_be_bytes();
    header[1] = traffic_class;
    header[10] = high;
    header[11] = low;
}

/// Fold a sum of 16-bit words into one (RFC 1071).
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(0)
}

/// A running sum of 16-bit words; pieces may have odd lengths.
#[derive(Debug, Default)]
struct Sum {
    words: u32,
    /// The first half of a word whose second half is in the next piece.
    odd: Option<u8>,
}

impl Sum {
    fn add(&mut self, piece: &[u8]) {
        let mut piece = piece;
        if let (Some(high), [low, rest @ ..]) = (self.odd, piece) {
            self.word([high, *low]);
            self.odd = None;
            piece = rest;
        }
        let words = piece.chunks_exact(2);
        if let [last] = words.remainder() {
            self.odd = Some(*last);
        }
        for word in words {
            if let [high, low] = word {
                self.word([*high, *low]);
            }
        }
    }

    fn word(&mut self, word: [u8; 2]) {
        self.words += u32::from(u16::from_be_bytes(word));
        if self.words > u32::MAX / 2 {
            self.words = u32::from(fold(self.words));
        }
    }

    fn finish(mut self) -> u16 {
        if let Some(high) = self.odd {
            self.word([high, 0]);
        }
        !fold(self.words)
    }
}

/// The position and the value of the checksum that a UDP or TCP packet lacks: `head` is the first
/// piece of the frame, `pieces` all of them, `l3_offset` and `transport_offset` where the headers are.
/// `None` if there is no such packet.
pub fn transport_checksum<'a>(
    head: &[u8],
    pieces: impl Iterator<Item = &'a [u8]>,
    l3_offset: usize,
    transport_offset: usize,
    protocol: u8,
    transport_bytes: usize,
) -> Option<(usize, [u8; 2])> {
    let field = transport_offset
        + match protocol {
            PROTOCOL_TCP => 16,
            PROTOCOL_UDP => 6,
            _ => return None,
        };
    let ip = head.get(l3_offset..)?;
    let addresses = match ip.first()? >> 4 {
        4 => ip.get(12..20)?,
        _ => ip.get(8..40)?,
    };
    let partial: &[u8; 2] = head.get(field..)?.first_chunk()?;
    let mut sum = Sum::default();
    sum.add(addresses);
    sum.add(&u32::try_from(transport_bytes).ok()?.to_be_bytes());
    sum.add(&[0, protocol]);
    // The field holds a part of the sum already, and does not count itself.
    sum.add(&(!u16::from_be_bytes(*partial)).to_be_bytes());
    let end = transport_offset + transport_bytes;
    let mut at = 0;
    for piece in pieces {
        let from = transport_offset.saturating_sub(at).min(piece.len());
        let to = end.saturating_sub(at).min(piece.len());
        sum.add(piece.get(from..to).unwrap_or_default());
        at += piece.len();
    }
    let checksum = match sum.finish() {
        // In UDP, zero says that there is none (RFC 768).
        0 if protocol == PROTOCOL_UDP => 0xffff,
        checksum => checksum,
    };
    Some((field, checksum.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, the plain way.
    fn plain_sum(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|pair| match pair {
            [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
            [high] => u32::from(u16::from_be_bytes([*high, 0])),
            _ => 0,
        });
        fold(words.sum())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_checksum_left_to_hardware_is_completed_however_the_frame_is_cut(
            payload in proptest::collection::vec(any::<u8>(), 0..300),
            cut in 34usize..300,
            is_tcp in any::<bool>(),
        ) {
            let (protocol, header_bytes, field) = if is_tcp { (6, 20, 16) } else { (17, 8, 6) };
            let mut transport = vec![0x11; header_bytes];
            transport.extend(&payload);
            transport[field..field + 2].fill(0);
            let mut pseudo = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, protocol];
            pseudo.extend(u16::try_from(transport.len()).unwrap().to_be_bytes());
            let whole: Vec<u8> = pseudo.iter().chain(&transport).copied().collect();
            let expected = !plain_sum(&whole);
            // What Linux leaves there: the sum over the addresses, protocol and length.
            transport[field..field + 2].copy_from_slice(&plain_sum(&pseudo).to_be_bytes());
            let mut frame = vec![0; 14];
            frame.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            frame.extend(&transport);
            let (head, rest) = frame.split_at((cut + header_bytes).min(frame.len()));
            let pieces = [head, rest].into_iter();
            let (at, found) =
                transport_checksum(head, pieces, 14, 34, protocol, transport.len()).unwrap();
            prop_assert_eq!(at, 34 + field);
            let found = u16::from_be_bytes(found);
            prop_assert!(found == expected || (!is_tcp && expected == 0 && found == 0xffff));
        }
    }
}
