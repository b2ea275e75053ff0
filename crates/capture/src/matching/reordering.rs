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
    /// Reordered packets overtaken by all of the last [`LOOK_BACK`]: the counted extent and late time
    /// are lower bounds.
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

/// Observes matches and keeps [`Reordering`] and the last [`LOOK_BACK`] packets received (1 KiB) for
/// every flow of the sending point.
#[derive(Debug, Clone, Default)]
pub struct ReorderingTracker {
    flows: Vec<Flow>,
}

/// Number of packets a reordered one is compared with.
pub const LOOK_BACK: usize = 64;

#[derive(Debug, Clone, Default)]
struct Flow {
    figures: Reordering,
    highest: Option<u64>,
    recent: VecDeque<Arrival>,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    send_order: u64,
    time_ns: u64,
}

impl ReorderingTracker {
    /// Figures of a flow, by its index at the sending point; zeros if none of its packets was received.
    #[must_use]
    pub fn flow(&self, flow: u32) -> Reordering {
        let flow = self.flows.get(flow as usize);
        flow.map(|flow| flow.figures).unwrap_or_default()
    }

    /// Heap memory in use, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let recent = self.flows.iter().map(|flow| flow.recent.capacity());
        self.flows.capacity() * size_of::<Flow>() + recent.sum::<usize>() * size_of::<Arrival>()
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
            flow.on_received(order.overall, received.time_ns);
        }
    }
}

impl Flow {
    #[inline]
    fn on_received(&mut self, send_order: u64, time_ns: u64) {
        self.figures.received += 1;
        let arrival = Arrival {
            send_order,
            time_ns,
        };
        if self.highest.is_some_and(|highest| send_order < highest) {
            self.on_reordered(arrival);
        } else {
            self.highest = Some(send_order);
        }
        if self.recent.len() >= LOOK_BACK {
            self.recent.pop_front();
        }
        self.recent.push_back(arrival);
    }

    #[cold]
    fn on_reordered(&mut self, late: Arrival) {
        let figures = &mut self.figures;
        figures.reordered += 1;
        let sent_later = |one: &&Arrival| one.send_order > late.send_order;
        let right_before = self.recent.iter().rev().take_while(sent_later).count();
        figures.n_reordering_max = figures.n_reordering_max.max(right_before as u64);

        let overtook = |one: &Arrival| one.send_order > late.send_order;
        let Some(first) = self.recent.iter().position(overtook) else {
            // Overtaken by a packet further back than the history reaches.
            figures.beyond_look_back += 1;
            figures.extent_max = figures.extent_max.max(LOOK_BACK as u64 + 1);
            figures.extent_sum += LOOK_BACK as u64 + 1;
            return;
        };
        if first == 0 && figures.received > LOOK_BACK as u64 + 1 {
            figures.beyond_look_back += 1;
        }
        let extent = (self.recent.len() - first) as u64;
        figures.extent_max = figures.extent_max.max(extent);
        figures.extent_sum += extent;
        if let Some(first) = self.recent.get(first) {
            let late_ns = late.time_ns.saturating_sub(first.time_ns);
            figures.late_time_max_ns = figures.late_time_max_ns.max(late_ns);
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

    /// Figures of packets that arrive 10 ns apart, given in the order they were sent.
    fn figures(orders: impl IntoIterator<Item = u64>) -> Reordering {
        let mut tracker = ReorderingTracker::default();
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
                overall: order,
                in_flow: None,
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
    fn reports_where_the_history_was_too_short() {
        let late_by = |overtaken: u64| figures((2..2 + overtaken).chain([1]));
        assert_eq!(late_by(64).beyond_look_back, 0);
        assert_eq!(late_by(64).extent_max, 64);
        assert_eq!(late_by(65).beyond_look_back, 1);
        assert_eq!(late_by(500).extent_max, 64);
        assert_eq!(late_by(500).reordered, 1);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

        #[test]
        fn agrees_with_the_definitions(
            orders in proptest::collection::vec(0_u64..1_000_000, 0..LOOK_BACK),
        ) {
            let mut orders = orders;
            let mut seen = std::collections::BTreeSet::new();
            orders.retain(|&order| seen.insert(order));
            let (mut reordered, mut extent_sum, mut n_max) = (0, 0, 0);
            for (i, &order) in orders.iter().enumerate() {
                let before = &orders[..i];
                let Some(j) = before.iter().position(|&other| other > order) else { continue };
                reordered += 1;
                extent_sum += (i - j) as u64;
                let n = before.iter().rev().take_while(|&&other| other > order).count() as u64;
                n_max = n_max.max(n);
            }
            let figures = figures(orders);
            proptest::prop_assert_eq!(figures.reordered, reordered);
            proptest::prop_assert_eq!(figures.extent_sum, extent_sum);
            proptest::prop_assert_eq!(figures.n_reordering_max, n_max);
        }
    }
}
