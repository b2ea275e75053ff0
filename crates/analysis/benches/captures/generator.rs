//! A pair of captures: constant-rate traffic over a path that loses, delays and occasionally reorders
//! packets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Length of each packet from the IP header on.
const IP_BYTES: usize = 1500;
const ETHERNET_BYTES: usize = 14;
const FRAME_BYTES: usize = ETHERNET_BYTES + IP_BYTES;
/// Sixteen flows, eight in each of two slices, separated by VLAN.
const FLOWS: u64 = 16;
/// 100,000 packets/s.
const GAP_NS: u64 = 10_000;
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
/// One in a hundred is lost.
const LOST_OF: u64 = 100;

/// Write `packets` packets as sent and as received, at most `snap_length` bytes of each.
pub fn write_pair(
    sent: &Path,
    received: &Path,
    packets: u64,
    snap_length: usize,
) -> io::Result<()> {
    let mut sent = Writer::create(sent, snap_length)?;
    let mut received = Writer::create(received, snap_length)?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    // Arrivals not written yet, by time.
    let mut on_the_way: std::collections::BinaryHeap<std::cmp::Reverse<(u64, u64)>> =
        std::collections::BinaryHeap::new();
    for number in 0..packets {
        let now = EPOCH_NS + number * GAP_NS;
        while let Some(&std::cmp::Reverse((at, number))) = on_the_way.peek()
            && at <= now
        {
            on_the_way.pop();
            received.packet(at, number, 63)?;
        }
        sent.packet(now, number, 64)?;
        if !random.next().is_multiple_of(LOST_OF) {
            // A queue of up to 8 µs, so that most stay in order; one in a thousand is held up.
            let held_up = if random.next().is_multiple_of(1_000) {
                30_000
            } else {
                0
            };
            let delay = 150_000 + random.next() % 8_000 + held_up;
            on_the_way.push(std::cmp::Reverse((now + delay, number)));
        }
    }
    while let Some(std::cmp::Reverse((at, number))) = on_the_way.pop() {
        received.packet(at, number, 63)?;
    }
    sent.out.flush()?;
    received.out.flush()
}

struct Writer {
    out: BufWriter<File>,
    frame: Vec<u8>,
    captured: usize,
}

impl Writer {
    fn create(path: &Path, snap_length: usize) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let captured = FRAME_BYTES.min(snap_length);
        // Nanoseconds, version 2.4, Ethernet.
        for field in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1u32] {
            out.write_all(&field.to_le_bytes())?;
        }
        Ok(Self {
            out,
            frame: template(),
            captured,
        })
    }

    fn packet(&mut self, at_ns: u64, number: u64, ttl: u8) -> io::Result<()> {
        let flow = u8::try_from(number % FLOWS).unwrap_or(0);
        let of_flow = number / FLOWS;
        let id = (of_flow & 0xffff).to_be_bytes();
        let ip = &mut self.frame[ETHERNET_BYTES..];
        ip[4..6].copy_from_slice(&id[6..]);
        ip[8] = ttl;
        ip[15] = flow;
        ip[21] = flow;
        ip[10..12].fill(0);
        let checksum = ip_checksum(&ip[..20]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        // As iperf3 begins its datagrams: seconds, microseconds, number.
        let seconds = u32::try_from(at_ns / 1_000_000_000).unwrap_or(0);
        let sent_ns = EPOCH_NS + number * GAP_NS;
        let micros = u32::try_from(sent_ns / 1_000 % 1_000_000).unwrap_or(0);
        ip[28..32].copy_from_slice(&seconds_of(sent_ns).to_be_bytes());
        ip[32..36].copy_from_slice(&micros.to_be_bytes());
        ip[36..40].copy_from_slice(&u32::try_from(of_flow).unwrap_or(0).to_be_bytes());
        let lengths = [self.captured, FRAME_BYTES].map(|n| u32::try_from(n).unwrap_or(0));
        let nanos = u32::try_from(at_ns % 1_000_000_000).unwrap_or(0);
        for field in [seconds, nanos, lengths[0], lengths[1]] {
            self.out.write_all(&field.to_le_bytes())?;
        }
        self.out.write_all(&self.frame[..self.captured])
    }
}

fn seconds_of(ns: u64) -> u32 {
    u32::try_from(ns / 1_000_000_000).unwrap_or(0)
}

/// Ethernet, IPv4 and UDP of every packet; addresses, identification and payload follow.
fn template() -> Vec<u8> {
    let mut frame = vec![0u8; FRAME_BYTES];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[ETHERNET_BYTES..];
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(0).to_be_bytes();
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&length(IP_BYTES));
    ip[9] = 17;
    ip[12..16].copy_from_slice(&[10, 0, 0, 0]);
    ip[16..20].copy_from_slice(&[10, 0, 1, 1]);
    ip[20..22].copy_from_slice(&49_152u16.to_be_bytes());
    ip[22..24].copy_from_slice(&5_201u16.to_be_bytes());
    ip[24..26].copy_from_slice(&length(IP_BYTES - 20));
    frame
}

/// RFC 1071.
fn ip_checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap_or(0)
}

struct Random(u64);

impl Random {
    /// Xorshift64.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}
