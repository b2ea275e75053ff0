//! The half of a connection that receives: what has arrived, and when to say so.
//!
//! RFC 9293 (acceptance), RFC 5681 section 4.2 (delayed acknowledgements), RFC 2018 and RFC 2883 (SACK), RFC 3168 and RFC 8257
//! (marks). The application takes whatever is in order at once.

mod pending;
mod ranges;
mod window;

use crate::behaviour::Behaviour;
use crate::segment::{Flags, SackBlocks, Segment};
use pending::Pending;
use ranges::Ranges;
use slicewise_units::{Duration, Instant};
use window::ReceiveWindow;

/// A receiver.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    /// The position expected next.
    next: u64,
    /// Ranges that have arrived beyond a gap.
    ranges: Ranges,
    fin: Option<u64>,
    window: ReceiveWindow,
    /// The time stamp to answer (RFC 7323, section 4.3), and the position acknowledged last.
    echo: u32,
    acknowledged: u64,
    pending: Pending,
    is_ack_due: bool,
    ack_at: Option<Instant>,
    /// When data arrived last.
    arrived_at: Option<Instant>,
    /// Range that arrived twice, to be reported once.
    duplicate: Option<(u64, u64)>,
    /// An acknowledgement to be sent before marks change: up to where, and what it echoes.
    before_change: Option<(u64, bool)>,
    /// Say that congestion was experienced.
    is_echoing: bool,
    /// ECN was agreed on.
    pub(crate) is_marking: bool,
    /// Each acknowledgement echoes the marks of its own segments (RFC 8257), instead of until CWR (RFC 3168).
    is_exact: bool,
    pub(crate) is_sacking: bool,
    /// Bytes in order that the application has not taken.
    arrived: u64,
}

impl Receiver {
    pub(crate) fn new(behaviour: &Behaviour) -> Self {
        Self {
            next: 0,
            ranges: Ranges::default(),
            fin: None,
            window: ReceiveWindow::new(behaviour),
            echo: 0,
            acknowledged: 0,
            pending: Pending::new(behaviour),
            is_ack_due: false,
            ack_at: None,
            arrived_at: None,
            duplicate: None,
            before_change: None,
            is_echoing: false,
            is_marking: false,
            is_exact: behaviour.congestion.is_scalable(),
            is_sacking: behaviour.sack,
            arrived: 0,
        }
    }

    /// A SYN has opened this direction.
    pub(crate) fn on_syn(&mut self, segment: &Segment) {
        self.next = segment.sequence + 1;
        self.echo = segment.stamp;
    }

    /// Data arrives. After a silence longer than `rto`, the time-out of this end, the other one begins anew, and
    /// acknowledgements are quick again, as Linux's are (measured with 6.18).
    pub(crate) fn end_silence(&mut self, rto: Duration, behaviour: &Behaviour, now: Instant) {
        let is_silent = |at: Instant| now.saturating_since(at) > rto;
        if self.arrived_at.is_some_and(is_silent) {
            self.pending.quicken(behaviour);
        }
    }

    /// A segment arrived; `is_marked`: its packet said that congestion was experienced.
    pub(crate) fn on_segment(
        &mut self,
        segment: &Segment,
        is_marked: bool,
        behaviour: &Behaviour,
        now: Instant,
    ) {
        if segment.sequence <= self.acknowledged && segment.stamp != 0 {
            self.echo = segment.stamp;
        }
        let start = segment.sequence;
        let end = start + u64::from(segment.bytes);
        if segment.flags.has(Flags::SYN) {
            // Its acknowledgement was lost.
            self.is_ack_due = true;
            return;
        }
        let is_fin = segment.flags.has(Flags::FIN);
        if segment.bytes == 0 && !is_fin {
            // Below what is expected: a probe that wants an answer.
            self.is_ack_due |= start < self.next;
            return;
        }
        self.on_mark(segment, is_marked);
        if is_fin && end < self.window.edge() + 1 {
            self.fin = Some(end);
        }
        let is_pushed = segment.flags.has(Flags::PSH);
        self.on_data(
            start,
            end.min(self.window.edge()),
            is_pushed,
            behaviour,
            now,
        );
        if self.fin == Some(self.next) {
            self.next += 1;
            self.is_ack_due = true;
        }
    }

    fn on_mark(&mut self, segment: &Segment, is_marked: bool) {
        if !self.is_marking {
            return;
        }
        if self.is_exact {
            // RFC 8257, section 3.2: what is pending is acknowledged before the echo changes.
            if is_marked != self.is_echoing && self.pending.bytes > 0 {
                self.before_change = Some((self.next, self.is_echoing));
                self.pending.on_acknowledged();
            }
            self.is_echoing = is_marked;
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.is_echoing = false;
        }
        self.is_echoing |= is_marked;
    }

    fn on_data(
        &mut self,
        start: u64,
        end: u64,
        is_pushed: bool,
        behaviour: &Behaviour,
        now: Instant,
    ) {
        if end <= self.next {
            if end > start {
                self.duplicate = Some((start, end));
            }
            // Also beyond the window: say what is expected.
            self.is_ack_due = true;
            return;
        }
        // Of what arrives in part again, the first such part is said (RFC 2883, section 4.1, and Linux 6.18, measured).
        let again = match start < self.next {
            true => Some((start, self.next)),
            false => self.ranges.overlap(start, end),
        };
        if again.is_some() {
            (self.duplicate, self.is_ack_due) = (again, true);
        }
        if start > self.next {
            self.ranges.insert(start, end);
            self.is_ack_due = true;
            return;
        }
        self.arrived_at = Some(now);
        let had_gap = !self.ranges.is_empty();
        let reached = self.ranges.take_from(end);
        let bytes = reached - self.next;
        self.next = reached;
        self.arrived += bytes;
        self.window.on_arrived(bytes, now);
        let is_immediate = (self.pending).on_arrived(bytes, end - start, is_pushed, behaviour);
        if had_gap || is_immediate {
            self.is_ack_due = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(behaviour.ticks.expiry(now, behaviour.ack_delay));
        }
    }

    /// This end sends data.
    pub(crate) fn on_data_sent(&mut self, behaviour: &Behaviour, now: Instant) {
        (self.pending).on_data_sent(self.arrived_at, behaviour, now);
    }

    /// A round trip was measured from the time stamps of data that arrives.
    pub(crate) fn on_round_trip(&mut self, rtt: Duration) {
        self.window.on_round_trip(rtt);
    }

    /// An acknowledgement is due on its own.
    #[inline]
    pub(crate) const fn is_ack_due(&self) -> bool {
        self.is_ack_due || self.before_change.is_some()
    }

    #[inline]
    pub(crate) const fn poll_at(&self) -> Option<Instant> {
        self.ack_at
    }

    pub(crate) fn on_timer(&mut self, now: Instant) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.is_ack_due = true;
            self.pending.on_delayed();
        }
    }

    /// Bytes in order since the last call.
    #[inline]
    pub(crate) fn take_arrived(&mut self) -> u64 {
        std::mem::take(&mut self.arrived)
    }

    /// The other end has sent everything, and all of it is here.
    pub(crate) fn is_done(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Fill in what every segment says of this half; acknowledgements that were due are made.
    pub(crate) fn acknowledge(&mut self, segment: &mut Segment) {
        let (next, is_echoing) = self.before_change.unwrap_or((self.next, self.is_echoing));
        segment.acknowledgement = next;
        segment.flags = (segment.flags.with(Flags::ACK)).with_if(is_echoing, Flags::ECE);
        segment.window_bytes = self.window.advertise(next, self.ranges.bytes());
        segment.echo = self.echo;
        if self.before_change.take().is_some() {
            self.acknowledged = next;
            return;
        }
        if self.is_sacking && (self.duplicate.is_some() || !self.ranges.is_empty()) {
            let mut sack = SackBlocks::default();
            if let Some((start, end)) = self.duplicate.take() {
                sack.push(start, end);
            }
            for (start, end) in self.ranges.latest() {
                sack.push(start, end);
            }
            segment.sack = sack;
        }
        self.acknowledged = self.next;
        self.pending.on_acknowledged();
        (self.is_ack_due, self.ack_at) = (false, None);
    }
}
