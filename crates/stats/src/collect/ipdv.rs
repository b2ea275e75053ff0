//! Delay variation between consecutive packets of a flow (IPDV, RFC 3393 and RFC 5481).
//!
//! Two packets are consecutive if their flow sent none between them. A pair is measured once both have
//! been received, in either order; it counts at the send time of the later one. A pair with a lost
//! packet is never measured, so losses need not be reported.

use super::gaps::{GapChange, Gaps};
use slicewise_units::Instant;

/// Flow and sequence number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPosition {
    /// Index of the flow, from 0: memory grows with the largest. A flow belongs to one slice.
    pub flow: u32,
    /// Number of the packet among all packets that the flow sent, lost ones included, modulo 2³².
    pub sequence: u32,
}

/// A packet that was received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub sequence: u32,
    pub sent_at: Instant,
    pub delay_ns: u64,
}

/// Packets of a flow available for comparison.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    /// The packet sent last of those received.
    newest: Option<Received>,
    /// Once a packet did not come right after the one sent before it.
    window: Option<Box<Window>>,
}

/// State of a flow with packets lost or reordered.
#[derive(Debug, Clone)]
struct Window {
    /// The packets received last, each at its sequence number modulo [`WINDOW`].
    packets: [Option<Received>; WINDOW],
    gaps: Gaps,
}

/// Packets kept per flow. A pair is missed if one of its packets arrives after one that was sent this
/// many packets later.
pub(super) const WINDOW: usize = 64;

impl Flow {
    /// The packet sent before `packet`, if no packet received was sent later than that: then the one sent after
    /// `packet` has not been received. Otherwise `None`: use [`Self::neighbours`].
    #[inline]
    fn predecessor(&mut self, packet: Received) -> Option<Received> {
        let before = self.newest?;
        if packet.sequence != before.sequence.wrapping_add(1) {
            return None;
        }
        self.newest = Some(packet);
        if let Some(window) = &mut self.window {
            window.packets[slot(packet.sequence)] = Some(packet);
        }
        Some(before)
    }

    /// The packets sent right before and right after `packet`, if received.
    fn neighbours(&mut self, packet: Received) -> [Option<Received>; 2] {
        if packet.sequence == 0 && self.newest.is_none() && self.window.is_none() {
            self.newest = Some(packet);
            return [None, None];
        }
        let window = self.window.get_or_insert_with(|| {
            let mut packets = [None; WINDOW];
            if let Some(newest) = self.newest {
                packets[slot(newest.sequence)] = Some(newest);
            }
            let gaps = Gaps::default();
            Box::new(Window { packets, gaps })
        });
        let window = &mut window.packets;
        let find = |sequence: u32| window[slot(sequence)].filter(|one| one.sequence == sequence);
        let before = find(packet.sequence.wrapping_sub(1));
        let after = find(packet.sequence.wrapping_add(1));
        let held = &mut window[slot(packet.sequence)];
        if held.is_none_or(|held| packet.is_later_than(held)) {
            *held = Some(packet);
        }
        if self
            .newest
            .is_none_or(|newest| packet.is_later_than(newest))
        {
            self.newest = Some(packet);
        }
        [before, after]
    }

    /// Number of packets that the flow sent between `packet` and the newest one received before; `None` for a reordered packet,
    /// which was sent before the newest one.
    fn skipped_by(&self, packet: Received) -> Option<u32> {
        let Some(newest) = self.newest else {
            return Some(packet.sequence);
        };
        let distance = packet.sequence.wrapping_sub(newest.sequence);
        packet
            .is_later_than(newest)
            .then(|| distance.saturating_sub(1))
    }
}

impl Received {
    fn is_later_than(self, other: Self) -> bool {
        self.sequence.wrapping_sub(other.sequence) < 1 << 31
    }
}

/// Order of a packet that its flow did not send right after the one received before, by the packets received before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrival {
    /// It was sent before the newest one received before.
    pub is_reordered: bool,
    /// Loss bursts that are more or fewer with it.
    pub bursts: GapChange,
    /// Its variation relative to the packet before it, if that was received before it, ns.
    pub variation_ns: Option<u64>,
    /// The packet after it, if that was received before it, and its variation relative to this one.
    pub next: Option<(Received, u64)>,
}

#[inline]
const fn slot(sequence: u32) -> usize {
    sequence as usize % WINDOW
}

/// The flows of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Flows(Vec<Flow>);

impl Flows {
    /// Forget every packet.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A packet was received; returns its variation relative to the one before, ns. `None` if its flow did not send it right
    /// after the one received before: then use [`Self::on_out_of_turn`].
    #[inline(always)]
    pub fn on_successor(&mut self, flow: u32, packet: Received) -> Option<u64> {
        let before = self.0.get_mut(flow as usize)?.predecessor(packet)?;
        Some(packet.delay_ns.abs_diff(before.delay_ns))
    }

    /// The same with a packet that its flow did not send right after the one received before.
    pub fn on_out_of_turn(&mut self, flow: u32, packet: Received) -> Arrival {
        let index = flow as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Flow::default);
        }
        let flow = &mut self.0[index];
        let skipped = flow.skipped_by(packet);
        let [before, after] = flow.neighbours(packet);
        let gaps = flow.window.as_mut().map(|window| &mut window.gaps);
        let change = |gaps: &mut Gaps| match skipped {
            Some(packets) => gaps.add(packet.sequence.wrapping_sub(packets), packets),
            None => gaps.take(packet.sequence),
        };
        let variation = |other: Received| other.delay_ns.abs_diff(packet.delay_ns);
        Arrival {
            is_reordered: skipped.is_none(),
            bursts: gaps.map(change).unwrap_or_default(),
            variation_ns: before.map(variation),
            next: after.map(|after| (after, variation(after))),
        }
    }

    /// Bytes held.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let windows = self.0.iter().filter(|flow| flow.window.is_some());
        self.0.len() * size_of::<Flow>() + windows.count() * size_of::<Window>()
    }
}

#[cfg(test)]
mod tests;
