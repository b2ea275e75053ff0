//! Packet reordering (RFC 4737) per flow.

use super::observer::{MatchObserver, SendOrder};
use crate::Sighting;
use std::collections::VecDeque;

/// Reordering of the packets of one flow: order of sending against order of reception.
///
/// Lost, duplicate and ambiguous packets are excluded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Packets received.
    pub received: u64,
    /// Those that are Type-P-Reordered: received after one that was sent later (section 3.3).
    pub reordered: u64,
    /// Largest reordering extent (section 4.2): number of packets between one and the first that
    /// overtook it.
    pub extent_max: u64,
    /// Sum of the extents of all reordered packets; divided by `reordered`, the mean.
    pub extent_sum: u64,
    /// Largest late-time offset (section 4.3): time between the first that overtook a packet and that
    /// packet, ns on the clock of the receiving point.
    pub late_time_max_ns: u64,
    /// Largest n for which a packet was n-reordered (section 5): the n packets right before it were all
    /// sent later. TCP, with its threshold of three duplicate acknowledgements, treats 3 as loss.
    pub n_reordering_max: u64,
    /// Reordered packets of which the first that overtook them was forgotten, because more than
    /// [`MOST_GAPS`] gaps were remembered: their counted extent, late time and n are lower bounds.
    pub beyond_look_back: u64,
}

impl Reordering {
    /// Type-P-Reordered-Ratio (section 4.1): reordered / received; 0 where none were.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        ratio(self.reordered, self.received)
    }

    /// Mean extent of reordered packets; 0 where there are none.
    #[must_use]
    pub fn extent_mean(&self) -> f64 {
        ratio(self.extent_sum, self.reordered)
    }

    /// Combines the figures of several flows: counts are added, maxima are over all.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.reordered += other.reordered;
        self.extent_max = self.extent_max.max(other.extent_max);
        self.extent_sum += other.extent_sum;
        self.late_time_max_ns = self.late_time_max_ns.max(other.late_time_max_ns);
        self.n_reordering_max = self.n_reordering_max.max(other.n_reordering_max);
        self.beyond_look_back += other.beyond_look_back;
    }
}

/// Observes matches and keeps [`Reordering`] of every flow of the sending point.
///
/// A packet was first overtaken by one that was sent later than all before it, behind a gap in the sending
/// order; so only the packets behind gaps are remembered, for as long as a packet of the gap may still
/// arrive. Flows without loss and reordering take no memory.
#[derive(Debug, Clone)]
pub struct ReorderingTracker {
    flows: Vec<Flow>,
    /// How long packets of a gap may be awaited, ns.
    longest_wait_ns: u64,
    most_gaps: usize,
}

/// Most gaps remembered per flow: some 12 MB.
pub const MOST_GAPS: usize = 1 << 18;

#[derive(Debug, Clone, Default)]
struct Flow {
    figures: Reordering,
    /// The next number in the sending order, after the highest received.
    next: u64,
    /// The first packet received behind each gap that was open then, in order of arrival and of sending.
    overtakers: VecDeque<Arrival>,
    /// The last packet received of each run without a gap, in order of arrival and of sending: those sent
    /// before the last received one. The last of them is that one.
    runs: VecDeque<Arrival>,
    /// The highest number forgotten of `overtakers`, plus 1.
    forgotten: u64,
    /// The last place in the order of arrival forgotten of `runs`, plus 1.
    forgotten_index: u64,
}

/// A packet received.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// Its place in the sending order of its flow.
    number: u64,
    /// Its place in the order of arrival.
    index: u64,
    time_ns: u64,
}

impl ReorderingTracker {
    /// A tracker of packets matched within this loss time-out.
    #[must_use]
    pub const fn new(timeout_ns: u64) -> Self {
        Self {
            flows: Vec::new(),
            // A packet may be received a time-out after it was sent, and the one that overtook it a
            // time-out before, by clocks that differ.
            longest_wait_ns: timeout_ns.saturating_mul(2),
            most_gaps: MOST_GAPS,
        }
    }

    /// Figures of a flow, by its index at the sending point; zeros if none of its packets was received.
    #[must_use]
    pub fn flow(&self, flow: u32) -> Reordering {
        let flow = self.flows.get(flow as usize);
        flow.map(|flow| flow.figures).unwrap_or_default()
    }

    /// Heap memory in use, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let gaps = self.flows.iter();
        let gaps = gaps.map(|flow| flow.overtakers.capacity() + flow.runs.capacity());
        self.flows.capacity() * size_of::<Flow>() + gaps.sum::<usize>() * size_of::<Arrival>()
    }
}

impl MatchObserver for ReorderingTracker {
    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, order: SendOrder) {
        let flow = sent.flow as usize;
        if flow >= self.flows.len() {
            self.flows.resize_with(flow + 1, Flow::default);
        }
        if let Some(flow) = self.flows.get_mut(flow) {
            let arrival = Arrival {
                number: flow.number(order),
                index: flow.figures.received,
                time_ns: received.time_ns,
            };
            flow.on_received(arrival);
            if flow.overtakers.len() + flow.runs.len() > 1 {
                flow.forget(
                    received.time_ns.saturating_sub(self.longest_wait_ns),
                    self.most_gaps,
                );
            }
        }
    }
}

impl Flow {
    /// Place of a packet in the sending order of its flow, without the wrap-around of [`SendOrder`].
    #[inline]
    fn number(&self, order: SendOrder) -> u64 {
        let Some(in_flow) = order.in_flow else {
            return order.overall;
        };
        #[expect(clippy::cast_possible_truncation, reason = "the number modulo 2³²")]
        let ahead = in_flow.wrapping_sub(self.next as u32).cast_signed();
        self.next.saturating_add_signed(ahead.into())
    }

    #[inline]
    fn on_received(&mut self, arrival: Arrival) {
        self.figures.received += 1;
        let Arrival { number, .. } = arrival;
        if number >= self.next {
            if number > self.next {
                self.overtakers.push_back(arrival);
            }
            self.next = number + 1;
        } else {
            self.on_reordered(&arrival);
        }
        match self.runs.back_mut() {
            Some(last) if last.number + 1 == number => *last = arrival,
            _ => self.runs.push_back(arrival),
        }
    }

    #[cold]
    fn on_reordered(&mut self, late: &Arrival) {
        while self.runs.back().is_some_and(|run| run.number > late.number) {
            self.runs.pop_back();
        }
        let figures = &mut self.figures;
        figures.reordered += 1;
        let sent_before = self.runs.back();
        let sent_before = sent_before.map_or(self.forgotten_index, |run| run.index + 1);
        figures.n_reordering_max = figures.n_reordering_max.max(late.index - sent_before);

        let overtook = |one: &Arrival| one.number < late.number;
        let first = self.overtakers.partition_point(overtook);
        figures.beyond_look_back += u64::from(first == 0 && self.forgotten > late.number);
        let Some(first) = self.overtakers.get(first) else {
            return;
        };
        let extent = late.index - first.index;
        figures.extent_max = figures.extent_max.max(extent);
        figures.extent_sum += extent;
        let late_ns = late.time_ns.saturating_sub(first.time_ns);
        figures.late_time_max_ns = figures.late_time_max_ns.max(late_ns);
    }

    /// Forgets gaps whose packets no longer arrive, and the oldest beyond the limit.
    fn forget(&mut self, before_ns: u64, most: usize) {
        while let Some(first) = self.overtakers.front()
            && (first.time_ns < before_ns || self.overtakers.len() > most)
        {
            self.forgotten = first.number + 1;
            self.overtakers.pop_front();
        }
        // The packet after the first came no later than the second.
        while let (Some(first), Some(second)) = (self.runs.front(), self.runs.get(1))
            && (second.time_ns < before_ns || self.runs.len() > most)
        {
            self.forgotten_index = first.index + 1;
            self.runs.pop_front();
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure of a report")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::matching::tests::sighting;

    /// Figures of packets that arrive 10 ns apart, given in the order they were sent.
    fn figures(orders: impl IntoIterator<Item = u64>) -> Reordering {
        figures_with(MOST_GAPS, orders)
    }

    fn figures_with(most_gaps: usize, orders: impl IntoIterator<Item = u64>) -> Reordering {
        let mut tracker = ReorderingTracker::new(1 << 40);
        tracker.most_gaps = most_gaps;
        for (arrival, order) in (0_u64..).zip(orders) {
            let sighting = Sighting {
                time_ns: arrival * 10,
                key: order,
                flow: 3,
                l2_bytes: 100,
                ttl: 64,
                dscp: 0,
                direction: Direction::Unknown,
                time_is_restored: false,
            };
            let order = SendOrder {
                overall: order * 10,
                in_flow: Some(u32::try_from(order).unwrap()),
            };
            tracker.on_received(&sighting, &sighting, order);
        }
        tracker.flow(3)
    }

    #[test]
    fn packets_in_order_with_gaps_are_not_reordered() {
        let figures = figures([1, 2, 5, 9, 100]);
        assert_eq!(figures.received, 5);
        assert_eq!(figures.reordered, 0);
        assert_eq!(figures.ratio(), 0.0);
    }

    #[test]
    fn measures_how_late_one_packet_came() {
        let figures = figures([1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
        assert_eq!(figures.reordered, 1);
        assert_eq!(figures.extent_max, 4);
        assert_eq!(figures.n_reordering_max, 4);
        assert_eq!(figures.late_time_max_ns, 40);
        assert_eq!(figures.ratio(), 0.1);
    }

    /// 4, 5 and 6 are all reordered, but only the first comes right after packets sent later.
    #[test]
    fn measures_a_run_of_late_packets() {
        let figures = figures([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11]);
        assert_eq!(figures.reordered, 3);
        assert_eq!(figures.extent_max, 6);
        assert_eq!(figures.extent_sum, 4 + 5 + 6);
        assert_eq!(figures.n_reordering_max, 4);
        assert_eq!(figures.late_time_max_ns, 60);
    }

    #[test]
    fn measures_extents_of_any_size_in_little_memory() {
        let late_by = |overtaken: u64| figures((1..=overtaken).chain([0]));
        for overtaken in [1, 64, 65, 500, 150_000] {
            let figures = late_by(overtaken);
            assert_eq!(figures.extent_max, overtaken);
            assert_eq!(figures.n_reordering_max, overtaken);
            assert_eq!(figures.late_time_max_ns, overtaken * 10);
            assert_eq!((figures.reordered, figures.beyond_look_back), (1, 0));
        }
    }

    #[test]
    fn numbers_of_a_flow_wrap_around() {
        let flow = Flow {
            next: (1 << 32) + 5,
            ..Flow::default()
        };
        let number = |in_flow| {
            flow.number(SendOrder {
                overall: 0,
                in_flow: Some(in_flow),
            })
        };
        assert_eq!([3, 5, 9].map(number), [3, 5, 9].map(|low| (1 << 32) + low));
        assert_eq!(number(u32::MAX), (1 << 32) - 1);
    }

    #[test]
    fn forgets_gaps_whose_packets_are_lost() {
        let mut tracker = ReorderingTracker::new(1_000);
        for number in 0..100_000_u32 {
            let one = sighting(u64::from(number) * 10, 0, 0);
            let order = SendOrder {
                overall: 0,
                in_flow: Some(number * 2),
            };
            tracker.on_received(&one, &one, order);
        }
        assert!(tracker.memory_bytes() < 50_000, "200 gaps of 2 µs");
    }

    #[test]
    fn reports_where_the_history_was_too_short() {
        // Every second is missing, and one arrives at the end.
        let missing = |late: u64| (0..100).map(|number| number * 2 + 1).chain([late]);
        let found = figures_with(10, missing(180));
        assert_eq!((found.extent_max, found.beyond_look_back), (10, 0));
        assert_eq!(found.n_reordering_max, 10);
        let found = figures_with(10, missing(100));
        assert_eq!((found.extent_max, found.beyond_look_back), (10, 1));
        assert_eq!(figures(missing(100)).extent_max, 50);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

        #[test]
        fn agrees_with_the_definitions(
            sent in proptest::collection::vec((0_u64..300, 0_u8..10), 0..300),
        ) {
            // Numbers in order, some of them missing, and some late.
            let mut orders: Vec<(u64, u64)> = (0..).zip(&sent)
                .filter(|(_, (_, fate))| *fate > 1)
                .map(|(number, (delay, fate))| (number + if *fate < 4 { *delay } else { 0 }, number))
                .collect();
            orders.sort_unstable();
            let orders: Vec<u64> = orders.into_iter().map(|(_, number)| number).collect();
            let mut expected = Reordering { received: orders.len() as u64, ..Reordering::default() };
            for (i, &order) in orders.iter().enumerate() {
                let before = &orders[..i];
                let Some(j) = before.iter().position(|&other| other > order) else { continue };
                let extent = (i - j) as u64;
                expected.reordered += 1;
                expected.extent_sum += extent;
                expected.extent_max = expected.extent_max.max(extent);
                expected.late_time_max_ns = expected.late_time_max_ns.max(extent * 10);
                let n = before.iter().rev().take_while(|&&other| other > order).count() as u64;
                expected.n_reordering_max = expected.n_reordering_max.max(n);
            }
            proptest::prop_assert_eq!(figures(orders), expected);
        }
    }
}
