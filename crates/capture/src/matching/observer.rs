//! Reports on packets as their fate becomes known.

use crate::Sighting;

/// Position of a packet among those sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendOrder {
    /// Increases with every sighting of the sending point, so it orders packets even if their times are
    /// equal.
    pub overall: u64,
    /// Number of the packet within its flow, from 0 and modulo 2³²: consecutive numbers were sent in
    /// succession. `None` in flows beyond the first million.
    pub in_flow: Option<u32>,
}

/// Observes the fate of packets. Statically dispatched: unused callbacks cost nothing.
///
/// Every sighting given to the matcher is reported once, and its fate once:
///
/// - each of the sending point by [`on_sent`](Self::on_sent) at once, in the order given, and later by
///   exactly one of [`on_received`](Self::on_received), [`on_lost`](Self::on_lost) and
///   [`on_ambiguous_sent`](Self::on_ambiguous_sent);
/// - each of the receiving point by exactly one of [`on_received`](Self::on_received),
///   [`on_duplicate`](Self::on_duplicate), [`on_unsent`](Self::on_unsent) and
///   [`on_ambiguous_received`](Self::on_ambiguous_received).
///
/// Sightings are reported as captured: times are on the clock of their own point.
pub trait MatchObserver {
    /// A packet was sent.
    fn on_sent(&mut self, _sent: &Sighting) {}

    /// It was received.
    fn on_received(&mut self, _sent: &Sighting, _received: &Sighting, _order: SendOrder) {}

    /// It was not received within the time-out.
    fn on_lost(&mut self, _sent: &Sighting, _send_order: u64) {}

    /// A further copy of a packet that was sent once and already received.
    fn on_duplicate(&mut self, _sent: &Sighting, _received: &Sighting) {}

    /// A packet seen at the receiving point only; also one that arrived after the time-out and was
    /// reported as lost.
    fn on_unsent(&mut self, _received: &Sighting) {}

    /// A packet sent whose copies at the receiver are indistinguishable from those of another packet.
    fn on_ambiguous_sent(&mut self, _sent: &Sighting) {}

    /// A copy received of one of several packets sent; `first_sent` is the first of these, `None` if
    /// none was seen yet.
    fn on_ambiguous_received(&mut self, _first_sent: Option<&Sighting>, _received: &Sighting) {}

    /// These indistinguishable packets are decided; no more sightings of them are expected.
    fn on_ambiguous_closed(&mut self, _group: &AmbiguousGroup) {}
}

impl<O: MatchObserver> MatchObserver for &mut O {
    #[inline]
    fn on_sent(&mut self, sent: &Sighting) {
        (**self).on_sent(sent);
    }

    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, order: SendOrder) {
        (**self).on_received(sent, received, order);
    }

    #[inline]
    fn on_lost(&mut self, sent: &Sighting, send_order: u64) {
        (**self).on_lost(sent, send_order);
    }

    #[inline]
    fn on_duplicate(&mut self, sent: &Sighting, received: &Sighting) {
        (**self).on_duplicate(sent, received);
    }

    #[inline]
    fn on_unsent(&mut self, received: &Sighting) {
        (**self).on_unsent(received);
    }

    #[inline]
    fn on_ambiguous_sent(&mut self, sent: &Sighting) {
        (**self).on_ambiguous_sent(sent);
    }

    #[inline]
    fn on_ambiguous_received(&mut self, first_sent: Option<&Sighting>, received: &Sighting) {
        (**self).on_ambiguous_received(first_sent, received);
    }

    #[inline]
    fn on_ambiguous_closed(&mut self, group: &AmbiguousGroup) {
        (**self).on_ambiguous_closed(group);
    }
}

/// Two observers of the same packets; the first is called first.
impl<A: MatchObserver, B: MatchObserver> MatchObserver for (A, B) {
    #[inline]
    fn on_sent(&mut self, sent: &Sighting) {
        self.0.on_sent(sent);
        self.1.on_sent(sent);
    }

    #[inline]
    fn on_received(&mut self, sent: &Sighting, received: &Sighting, order: SendOrder) {
        self.0.on_received(sent, received, order);
        self.1.on_received(sent, received, order);
    }

    #[inline]
    fn on_lost(&mut self, sent: &Sighting, send_order: u64) {
        self.0.on_lost(sent, send_order);
        self.1.on_lost(sent, send_order);
    }

    #[inline]
    fn on_duplicate(&mut self, sent: &Sighting, received: &Sighting) {
        self.0.on_duplicate(sent, received);
        self.1.on_duplicate(sent, received);
    }

    #[inline]
    fn on_unsent(&mut self, received: &Sighting) {
        self.0.on_unsent(received);
        self.1.on_unsent(received);
    }

    #[inline]
    fn on_ambiguous_sent(&mut self, sent: &Sighting) {
        self.0.on_ambiguous_sent(sent);
        self.1.on_ambiguous_sent(sent);
    }

    #[inline]
    fn on_ambiguous_received(&mut self, first_sent: Option<&Sighting>, received: &Sighting) {
        self.0.on_ambiguous_received(first_sent, received);
        self.1.on_ambiguous_received(first_sent, received);
    }

    #[inline]
    fn on_ambiguous_closed(&mut self, group: &AmbiguousGroup) {
        self.0.on_ambiguous_closed(group);
        self.1.on_ambiguous_closed(group);
    }
}

/// Indistinguishable packets: the same key, sent more than once within a time-out, or seen more than
/// once at the receiver before the sender.
///
/// Which of them were received is unknown and not guessed. How many were lost at least is known:
/// [`lost_at_least`](Self::lost_at_least).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmbiguousGroup {
    /// The first of them sent; `None` where none was.
    pub first_sent: Option<Sighting>,
    /// The first of them received; `None` where none was.
    pub first_received: Option<Sighting>,
    /// Sightings reported by [`MatchObserver::on_ambiguous_sent`].
    pub sent: u64,
    /// Sightings reported by [`MatchObserver::on_ambiguous_received`].
    pub received: u64,
}

impl AmbiguousGroup {
    /// Packets of the group that were certainly lost: 0 if as many were received as sent. More may have
    /// been lost if some of those received are duplicates.
    #[must_use]
    pub const fn lost_at_least(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// Number of sightings by fate.
///
/// Once everything is decided, `sent = matched + lost + ambiguous_sent` and `received = matched +
/// duplicates + unsent + ambiguous_received`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchCounts {
    /// Sightings of the sending point.
    pub sent: u64,
    /// Sightings of the receiving point.
    pub received: u64,
    /// Packets seen at both.
    pub matched: u64,
    /// Those reported by the receiving point first: their order of arrival is less certain. Many of them
    /// mean that the clocks are badly aligned, or that the packets go the other way.
    pub received_first: u64,
    /// Packets sent and not received within the time-out.
    pub lost: u64,
    /// Further copies received.
    pub duplicates: u64,
    /// Seen at the receiver only.
    pub unsent: u64,
    /// Unsent packets that are known to have been sent more than a time-out before, and counted as lost. A lower bound:
    /// the last 8,192 packets lost are remembered.
    pub late: u64,
    /// Longest time between sending and arrival of these, ns; of packets that repeat, since the last that
    /// was lost.
    pub largest_late_ns: u64,
    /// Sent, but indistinguishable from others.
    pub ambiguous_sent: u64,
    /// Received, but attributable to several packets.
    pub ambiguous_received: u64,
    /// Groups of indistinguishable packets.
    pub ambiguous_groups: u64,
    /// Packets in such groups that were certainly lost.
    pub ambiguous_lost: u64,
    /// Decided before their time-out because too many were waiting: lost, unsent and ambiguous packets
    /// that might have had another fate.
    pub decided_early: u64,
    /// Matched packets dropped from memory before their time-out for the same reason: their late
    /// duplicates count as unsent.
    pub forgotten_early: u64,
    /// Most entries held at a time.
    pub peak_entries: u64,
}
