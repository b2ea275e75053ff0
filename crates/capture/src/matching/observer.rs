//! What is told of packets as their fate becomes known.

use crate::Sighting;

/// Where a packet stands among those sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendOrder {
    /// Rises with every sighting of the sending point, so that it orders packets even where their times
    /// are equal.
    pub overall: u64,
    /// Number of the packet among all packets that its flow sent, from 0 and modulo 2³²: packets whose
    /// numbers follow each other were sent one right after the other. `None` in flows beyond the million
    /// that are counted.
    pub in_flow: Option<u32>,
}

/// Watches the fate of packets. Dispatched statically: matching pays only for what is watched.
///
/// Every sighting given to the matcher is told of once here, and its fate once:
///
/// - each of the sending point by [`on_sent`](Self::on_sent) at once, in the order given, and later by
///   exactly one of [`on_received`](Self::on_received), [`on_lost`](Self::on_lost) and
///   [`on_ambiguous_sent`](Self::on_ambiguous_sent);
/// - each of the receiving point by exactly one of [`on_received`](Self::on_received),
///   [`on_duplicate`](Self::on_duplicate), [`on_unsent`](Self::on_unsent) and
///   [`on_ambiguous_received`](Self::on_ambiguous_received).
///
/// Sightings are told as they were captured: times are of the clock of their own point.
pub trait MatchObserver {
    /// A packet was sent.
    fn on_sent(&mut self, _sent: &Sighting) {}

    /// It was received.
    fn on_received(&mut self, _sent: &Sighting, _received: &Sighting, _order: SendOrder) {}

    /// It was not received within the time-out.
    fn on_lost(&mut self, _sent: &Sighting, _send_order: u64) {}

    /// A further copy of a packet that was sent once and already received.
    fn on_duplicate(&mut self, _sent: &Sighting, _received: &Sighting) {}

    /// A packet seen at the receiving point only; also one that came later than the time-out, whose
    /// sending is told as lost.
    fn on_unsent(&mut self, _received: &Sighting) {}

    /// A packet sent whose copies at the receiver cannot be told from those of another packet.
    fn on_ambiguous_sent(&mut self, _sent: &Sighting) {}

    /// A copy received that could be of any of several packets sent, of which `first_sent` is the first;
    /// `None` where none was seen yet.
    fn on_ambiguous_received(&mut self, _first_sent: Option<&Sighting>, _received: &Sighting) {}

    /// No more sightings of these indistinguishable packets are waited for.
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

/// Two observers of the same packets; the first is told first.
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

/// Packets that cannot be told apart: the same key, sent more than once within a time-out, or seen more
/// than once at the receiver before the sender.
///
/// Which was received is unknown and not guessed. How many were is known:
/// [`lost_at_least`](Self::lost_at_least).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmbiguousGroup {
    /// The first of them sent; `None` where none was.
    pub first_sent: Option<Sighting>,
    /// The first of them received; `None` where none was.
    pub first_received: Option<Sighting>,
    /// Sightings told by [`MatchObserver::on_ambiguous_sent`].
    pub sent: u64,
    /// Sightings told by [`MatchObserver::on_ambiguous_received`].
    pub received: u64,
}

impl AmbiguousGroup {
    /// Packets of the group that were certainly lost: none where as many were received as sent. More
    /// may have been, where some of those received are duplicates.
    #[must_use]
    pub const fn lost_at_least(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// How many sightings had which fate.
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
    /// Of these, told by the receiving point first: the order of arrival is less certain for them. Many
    /// say that the clocks are badly aligned, or that the packets go the other way.
    pub received_first: u64,
    /// Packets sent and not received within the time-out.
    pub lost: u64,
    /// Further copies received.
    pub duplicates: u64,
    /// Seen at the receiver only.
    pub unsent: u64,
    /// Sent, but not to be told from others.
    pub ambiguous_sent: u64,
    /// Received, but of one of several packets.
    pub ambiguous_received: u64,
    /// Groups of packets not to be told apart.
    pub ambiguous_groups: u64,
    /// Packets of such groups that were certainly lost.
    pub ambiguous_lost: u64,
    /// Decided before their time-out, as too many were waiting: lost, unsent and ambiguous ones that
    /// might have become something else.
    pub decided_early: u64,
    /// Matched packets forgotten before their time-out for the same reason: late duplicates of them
    /// count as unsent.
    pub forgotten_early: u64,
    /// Most entries remembered at a time.
    pub peak_entries: u64,
}
