//! What is measured: a scheduler of slices behind the few calls the scenarios need.

use crate::workload::{
    PACKET_BYTES, QUEUE_PACKETS, SHAPED_BURST_BYTES, Scenario, maximum_bits_per_second,
};
use std::collections::VecDeque;

/// A scheduler under measurement.
pub trait Contender {
    /// What the report calls it.
    const NAME: &'static str;

    /// A scheduler of `slices` empty slices, numbered from 0, with the limits `scenario` sets.
    fn new(slices: u32, scenario: Scenario) -> Self;

    /// Bytes of state of all slices while their queues are empty.
    fn state_bytes(&self) -> usize;

    /// Take packets (slice, bytes, handle). Returns how many were not dropped.
    fn enqueue(&mut self, burst: &[(u32, u32, u64)], now_ns: u64) -> usize;

    /// Append up to `max` packets (slice, handle) that may be sent now to `out`.
    fn dequeue(&mut self, out: &mut Vec<(u32, u64)>, max: usize, now_ns: u64);
}

/// **A placeholder, not a scheduler of this project**: one `VecDeque` a slice, packets served in
/// turn, a slice without credit passed over. It shows that the benchmark works.
pub struct RoundRobinPlaceholder {
    slices: Vec<Slice>,
    /// The slices with packets, by turn.
    turns: VecDeque<u32>,
    maximum: u64,
}

struct Slice {
    packets: VecDeque<u64>,
    /// Credit of one bit, in units of 1/10⁹ bit, and when it was last right.
    credit: u64,
    updated_ns: u64,
}

const NANOBITS: u64 = 1_000_000_000;

impl Contender for RoundRobinPlaceholder {
    const NAME: &'static str = "round-robin placeholder";

    fn new(slices: u32, scenario: Scenario) -> Self {
        let slice = || Slice {
            packets: VecDeque::new(),
            credit: u64::from(SHAPED_BURST_BYTES) * 8 * NANOBITS,
            updated_ns: 0,
        };
        Self {
            slices: (0..slices).map(|_| slice()).collect(),
            turns: VecDeque::with_capacity(slices as usize),
            maximum: maximum_bits_per_second(scenario, slices),
        }
    }

    fn state_bytes(&self) -> usize {
        self.slices.len() * size_of::<Slice>() + self.turns.capacity() * size_of::<u32>()
    }

    fn enqueue(&mut self, burst: &[(u32, u32, u64)], _now_ns: u64) -> usize {
        let mut accepted = 0;
        for &(id, _, handle) in burst {
            let Some(slice) = self.slices.get_mut(id as usize) else {
                continue;
            };
            if slice.packets.len() == QUEUE_PACKETS {
                continue;
            }
            if slice.packets.is_empty() {
                self.turns.push_back(id);
            }
            slice.packets.push_back(handle);
            accepted += 1;
        }
        accepted
    }

    fn dequeue(&mut self, out: &mut Vec<(u32, u64)>, max: usize, now_ns: u64) {
        const PACKET: u64 = PACKET_BYTES as u64 * 8 * NANOBITS;
        let full = u64::from(SHAPED_BURST_BYTES) * 8 * NANOBITS;
        let limited = self.maximum < crate::workload::LINK_BITS_PER_SECOND;
        let mut passed_over = 0;
        while out.len() < max && passed_over < self.turns.len() {
            let Some(id) = self.turns.pop_front() else {
                return;
            };
            let Some(slice) = self.slices.get_mut(id as usize) else {
                continue;
            };
            if limited {
                let gained = (now_ns - slice.updated_ns).saturating_mul(self.maximum);
                slice.credit = slice.credit.saturating_add(gained).min(full);
                slice.updated_ns = now_ns;
                if slice.credit < PACKET {
                    self.turns.push_back(id);
                    passed_over += 1;
                    continue;
                }
                slice.credit -= PACKET;
            }
            passed_over = 0;
            if let Some(handle) = slice.packets.pop_front() {
                out.push((id, handle));
            }
            if !slice.packets.is_empty() {
                self.turns.push_back(id);
            }
        }
    }
}
