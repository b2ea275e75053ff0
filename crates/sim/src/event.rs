//! The event queue: what happens next, in a total order.
//!
//! Events are ordered by (time, order of scheduling), so two events of the same nanosecond
//! happen in the order in which they were scheduled, on every machine. One event is one 128-bit
//! integer — time, sequence, code, from the high bits down — so that one comparison orders two
//! events and nothing else is stored.
//!
//! The queue is an implicit d-ary heap (Johnson 1975, "Priority queues with update and finding
//! minimum spanning trees"). Handling an event nearly always schedules its successor, so
//! [`EventQueue::pop`] leaves a hole at the root that the next [`EventQueue::schedule`] fills: one
//! sift instead of two.

use slicewise_units::Instant;

/// What happens. The number tells to whom: an index into the network's table of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A source sends its next frame.
    Departure(u32),
    /// The frame at the head of a link reaches the node behind it.
    Arrival(u32),
    /// A device polls its pipeline for a frame to transmit.
    Egress(u32),
    /// A host's network adapter raises an interrupt.
    Interrupt(u32),
}

/// Bits of an event's code: two for the kind, the rest for the index.
const CODE_BITS: u32 = 24;
const INDEX_BITS: u32 = 22;
/// Bits of the sequence number. It wraps after 10¹² events, which could at worst reverse two
/// events of one nanosecond, the same way on every machine.
const SEQUENCE_BITS: u32 = 64 - CODE_BITS;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;
/// Indices an event can name: [0, `INDEX_LIMIT`).
pub const INDEX_LIMIT: u32 = 1 << INDEX_BITS;

impl Event {
    #[inline]
    const fn code(self) -> u32 {
        let (kind, index) = match self {
            Self::Departure(index) => (0, index),
            Self::Arrival(index) => (1, index),
            Self::Egress(index) => (2, index),
            Self::Interrupt(index) => (3, index),
        };
        (kind << INDEX_BITS) | (index & (INDEX_LIMIT - 1))
    }

    #[inline]
    const fn from_code(code: u32) -> Self {
        let index = code & (INDEX_LIMIT - 1);
        match (code >> INDEX_BITS) & 3 {
            0 => Self::Departure(index),
            1 => Self::Arrival(index),
            2 => Self::Egress(index),
            _ => Self::Interrupt(index),
        }
    }
}

/// Pending events. `ARITY` children a node; see `benches/event_queue.rs` for the choice.
#[derive(Debug, Clone)]
pub struct EventQueue<const ARITY: usize = 4> {
    /// The heap; with `hole`, the root's value is spent.
    heap: Vec<u128>,
    hole: bool,
    sequence: u64,
}

impl<const ARITY: usize> Default for EventQueue<ARITY> {
    fn default() -> Self {
        Self {
            heap: Vec::with_capacity(64),
            hole: false,
            sequence: 0,
        }
    }
}

impl<const ARITY: usize> EventQueue<ARITY> {
    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole)
    }

    /// True where nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Let `event` happen at `at`, after everything already scheduled for that time.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: Event) {
        let order = (self.sequence << CODE_BITS) | u64::from(event.code());
        let entry = (u128::from(at.nanos()) << 64) | u128::from(order);
        self.sequence = (self.sequence + 1) & SEQUENCE_MASK;
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(entry);
        }
    }

    /// Take the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, Event)> {
        if self.hole {
            self.hole = false;
            let last = self.heap.pop()?;
            if self.heap.is_empty() {
                return None;
            }
            self.sift_down(last);
        }
        let entry = *self.heap.first()?;
        self.hole = true;
        let [time, order] = halves(entry);
        let code = u32::try_from(order & ((1 << CODE_BITS) - 1)).unwrap_or(0);
        Some((Instant::from_nanos(time), Event::from_code(code)))
    }

    /// Put `entry` into the hole at the root and let it sink.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= heap.len() {
                break;
            }
            let end = (first + ARITY).min(heap.len());
            let (mut least, mut child) = (heap[first], first);
            for (offset, &candidate) in heap[first + 1..end].iter().enumerate() {
                if candidate < least {
                    (least, child) = (candidate, first + 1 + offset);
                }
            }
            if entry < least {
                break;
            }
            heap[hole] = least;
            hole = child;
        }
        heap[hole] = entry;
    }

    /// Let the last entry, which is `entry`, rise.
    #[inline]
    fn sift_up(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut hole = heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if heap[parent] < entry {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a u128")]
const fn halves(entry: u128) -> [u64; 2] {
    [(entry >> 64) as u64, entry as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain<const A: usize>(queue: &mut EventQueue<A>) -> Vec<(u64, Event)> {
        std::iter::from_fn(|| queue.pop().map(|(at, event)| (at.nanos(), event))).collect()
    }

    #[test]
    fn events_of_one_nanosecond_happen_in_the_order_scheduled() {
        let mut queue = EventQueue::<4>::default();
        for index in 0..9 {
            queue.schedule(Instant::from_nanos(7), Event::Arrival(index));
        }
        queue.schedule(Instant::from_nanos(6), Event::Egress(0));
        let order: Vec<Event> = drain(&mut queue)
            .into_iter()
            .map(|(_, event)| event)
            .collect();
        let expected: Vec<Event> = std::iter::once(Event::Egress(0))
            .chain((0..9).map(Event::Arrival))
            .collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn every_kind_and_index_survives_packing() {
        for index in [0, 1, INDEX_LIMIT - 1] {
            for event in [
                Event::Departure(index),
                Event::Arrival(index),
                Event::Egress(index),
                Event::Interrupt(index),
            ] {
                assert_eq!(Event::from_code(event.code()), event);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against the obvious model: a sorted list of (time, order of scheduling).
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec(prop::option::of(0u64..50), 1..300)) {
            let mut binary = EventQueue::<2>::default();
            let mut quaternary = EventQueue::<4>::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (index, step) in (0u32..).zip(steps) {
                match step {
                    Some(at) => {
                        binary.schedule(Instant::from_nanos(at), Event::Departure(index));
                        quaternary.schedule(Instant::from_nanos(at), Event::Departure(index));
                        model.push((at, index));
                        model.sort_unstable();
                    }
                    None => {
                        let expected = (!model.is_empty()).then(|| model.remove(0));
                        let expected = expected
                            .map(|(at, index)| (Instant::from_nanos(at), Event::Departure(index)));
                        prop_assert_eq!(binary.pop(), expected);
                        prop_assert_eq!(quaternary.pop(), expected);
                    }
                }
                prop_assert_eq!(quaternary.len(), model.len());
            }
        }
    }
}
