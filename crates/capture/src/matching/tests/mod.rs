//! Matching against a naive model, against networks with known truth, and case by case.

mod cases;
mod model;
mod networks;

use super::{AmbiguousGroup, MatchObserver, SendOrder};
use crate::{Direction, Sighting};

/// The reports, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    Sent(u64, u64),
    Received(u64, u64, u64),
    Lost(u64, u64),
    Duplicate(u64, u64, u64),
    Unsent(u64, u64),
    AmbiguousSent(u64, u64),
    AmbiguousReceived(u64, u64),
    Closed(u64, u64, u64),
}

/// Records all reports.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder {
    pub(super) facts: Vec<Fact>,
    pub(super) orders: Vec<u64>,
    /// Key of each packet received, and its number within its flow.
    pub(super) in_flow: Vec<(u64, Option<u32>)>,
}

impl Recorder {
    /// The reports, sorted.
    pub(super) fn sorted(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.sort_unstable();
        facts
    }

    pub(super) fn fates(&self) -> Vec<Fact> {
        let is_fate = |fact: &&Fact| !matches!(fact, Fact::Sent(..));
        self.facts.iter().filter(is_fate).copied().collect()
    }
}

impl MatchObserver for Recorder {
    fn on_sent(&mut self, sent: &Sighting) {
        self.facts.push(Fact::Sent(sent.key, sent.time_ns));
    }

    fn on_received(&mut self, sent: &Sighting, received: &Sighting, order: SendOrder) {
        assert_eq!(sent.key, received.key);
        self.orders.push(order.overall);
        self.in_flow.push((sent.key, order.in_flow));
        self.facts
            .push(Fact::Received(sent.key, sent.time_ns, received.time_ns));
    }

    fn on_lost(&mut self, sent: &Sighting, _: u64) {
        self.facts.push(Fact::Lost(sent.key, sent.time_ns));
    }

    fn on_duplicate(&mut self, sent: &Sighting, received: &Sighting) {
        assert_eq!(sent.key, received.key);
        self.facts
            .push(Fact::Duplicate(sent.key, sent.time_ns, received.time_ns));
    }

    fn on_unsent(&mut self, received: &Sighting) {
        self.facts
            .push(Fact::Unsent(received.key, received.time_ns));
    }

    fn on_ambiguous_sent(&mut self, sent: &Sighting) {
        self.facts.push(Fact::AmbiguousSent(sent.key, sent.time_ns));
    }

    fn on_ambiguous_received(&mut self, _: Option<&Sighting>, received: &Sighting) {
        self.facts
            .push(Fact::AmbiguousReceived(received.key, received.time_ns));
    }

    fn on_ambiguous_closed(&mut self, group: &AmbiguousGroup) {
        let key = group.first_sent.or(group.first_received).unwrap().key;
        self.facts
            .push(Fact::Closed(key, group.sent, group.received));
    }
}

pub(super) fn sighting(time_ns: u64, key: u64, flow: u32) -> Sighting {
    Sighting {
        time_ns,
        key,
        flow,
        l2_bytes: 100,
        ttl: 64,
        dscp: 0,
        direction: Direction::Unknown,
        time_is_restored: false,
    }
}

/// A source that yields `sightings` in batches of `batch`.
pub(super) fn source(
    sightings: &[Sighting],
    batch: usize,
) -> impl FnMut(&mut Vec<Sighting>) -> bool + '_ {
    let mut chunks = sightings.chunks(batch.max(1));
    move |into| match chunks.next() {
        Some(chunk) => {
            into.extend_from_slice(chunk);
            true
        }
        None => false,
    }
}
