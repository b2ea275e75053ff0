//! The half of a connection that sends: what may leave when, and what is lost.
//!
//! RFC 5681 (congestion control), RFC 6298 (time-out), RFC 6675 (what is under way), RFC 6937 (rate of recovery), RFC 8985 (RACK and
//! TLP), RFC 3522 (Eifel detection), RFC 3168 (ECN), RFC 2861 (idle senders), RFC 9293 section 3.8.6.1 (closed windows).

mod acknowledge;
mod burst;
mod pacing;
mod probe;
mod prr;
mod rack;
mod rtt;
mod scoreboard;

use crate::behaviour::Behaviour;
use crate::congestion::{Cause, Congestion, Window};
use crate::timers::Ticks;
use burst::Bursts;
use pacing::Pacer;
use probe::Probe;
use prr::ProportionalRate;
use rack::{Path, Rack};
use rtt::RoundTrip;
use scoreboard::Scoreboard;
use slicewise_units::{Duration, Instant};

/// Behind the last byte of a stream without end: far above any run, far below an overflow.
const ENDLESS: u64 = 1 << 62;

/// Counters of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendFigures {
    /// Frames with data, or what an adapter makes of them.
    pub segments: u64,
    /// Of those, with data that had been sent before.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Recoveries from loss without a time-out.
    pub recoveries: u64,
    /// Reductions of the window because queues mark.
    pub mark_reductions: u64,
    /// Losses that were none, and the reductions that were taken back.
    pub undone: u64,
    /// Probes for the loss of a tail.
    pub probes: u64,
}

/// Phase of the answer to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Reducing because of marks.
    Reducing,
    /// Recovering from losses.
    Recovering,
    /// After a time-out.
    TimedOut,
}

/// State that a reduction replaced, for when the reduction was a mistake.
#[derive(Debug, Clone, Copy)]
struct Undo {
    window: Window,
    /// Stamp of the first retransmission; `None` before there is one.
    first_resent: Option<u32>,
}

/// Content of the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Its first position.
    pub(crate) start: u64,
    /// Behind its last.
    pub(crate) end: u64,
    /// It was sent before.
    pub(crate) is_resent: bool,
}

/// Purpose of the timer of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Retransmission,
    Reordering,
    Tail,
    /// The window is closed.
    Persist,
}

/// A sender. Positions: 0 is the SYN, then come the bytes of the application, then the FIN.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    board: Scoreboard,
    /// Behind the last byte that the application has given, or behind the FIN.
    limit: u64,
    is_finished: bool,
    /// Behind the last position that the receiver takes.
    window_end: u64,
    pub(crate) window: Window,
    congestion: Congestion,
    phase: Phase,
    /// The phase ends when this is acknowledged.
    recovery_point: u64,
    prr: ProportionalRate,
    /// A retransmission is due whatever the window says: the first of a recovery.
    is_forced: bool,
    undo: Option<Undo>,
    rtt: RoundTrip,
    rack: Rack,
    probe: Probe,
    timer: Option<(Timer, Instant)>,
    ticks: Ticks,
    /// Bytes handed down and not yet on the wire.
    below_socket_bytes: u64,
    bursts: Bursts,
    pacer: Pacer,
    /// The window was what limited the sender until this position is acknowledged.
    limited_to: u64,
    /// Most that was under way at once of late, and the position with whose acknowledgement that is a round trip ago.
    round_flight: u64,
    round_end: u64,
    /// Sequence number of the segment that updated the window last (RFC 9293, section 3.3.1, `SND.WL1`).
    window_updated_at: u64,
    /// When data last left.
    last_sent_at: Option<Instant>,
    /// SACK was agreed on; else duplicates are counted.
    pub(crate) is_sacking: bool,
    duplicates: u64,
    /// ECN was agreed on.
    pub(crate) is_marking: bool,
    /// CWR is due on the next new data.
    is_reduced: bool,
    failed: bool,
    pub(crate) figures: SendFigures,
}

impl Sender {
    pub(crate) fn new(behaviour: &Behaviour) -> Self {
        Self {
            board: Scoreboard::default(),
            limit: 1,
            is_finished: false,
            window_end: 1,
            window: Window {
                bytes: behaviour.initial_window_bytes,
                ssthresh: u64::MAX,
                mss: u64::from(behaviour.mss_bytes),
            },
            congestion: Congestion::new(behaviour),
            phase: Phase::Open,
            recovery_point: 0,
            prr: ProportionalRate::default(),
            is_forced: false,
            undo: None,
            rtt: RoundTrip::new(behaviour.min_rto, behaviour.min_rto_above_srtt),
            rack: Rack::default(),
            probe: Probe::default(),
            timer: None,
            ticks: behaviour.ticks,
            below_socket_bytes: 0,
            bursts: Bursts::default(),
            pacer: Pacer::default(),
            limited_to: 0,
            round_flight: 0,
            round_end: 0,
            window_updated_at: 0,
            last_sent_at: None,
            is_sacking: behaviour.sack,
            duplicates: 0,
            is_marking: false,
            is_reduced: false,
            failed: false,
            figures: SendFigures::default(),
        }
    }

    /// The application gives `bytes` more.
    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.is_finished {
            self.limit = self.limit.saturating_add(bytes).min(ENDLESS);
        }
    }

    /// The application gives nothing more: a FIN follows what it has given. Of an endless stream that is what a send buffer of
    /// two windows holds (J. Semke, J. Mahdavi, M. Mathis, "Automatic TCP Buffer Tuning", 1998).
    pub(crate) fn finish(&mut self, behaviour: &Behaviour) {
        if !self.is_finished {
            if self.limit == ENDLESS {
                let kept = (2 * self.window.bytes).min(behaviour.send_buffer_bytes);
                self.limit = self.board.next().max(self.board.una().max(1) + kept);
            }
            self.limit += 1;
            self.is_finished = true;
        }
    }

    /// The position of the FIN, once there is one.
    pub(crate) const fn fin(&self) -> Option<u64> {
        if self.is_finished {
            Some(self.limit - 1)
        } else {
            None
        }
    }

    /// Behind the last byte that the application has given.
    pub(crate) fn written(&self) -> u64 {
        self.limit - u64::from(self.is_finished)
    }

    /// Everything has been acknowledged, the FIN included.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_finished && self.board.una() >= self.limit
    }

    /// The time-out of retransmission.
    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(crate) const fn una(&self) -> u64 {
        self.board.una()
    }

    pub(crate) const fn next(&self) -> u64 {
        self.board.next()
    }

    /// It has tried often enough.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// When to call [`Self::on_timer`] or ask for data next.
    #[inline]
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        let timer = self.timer.map(|(_, at)| at);
        match (timer, self.pacer.waits_until()) {
            (Some(timer), Some(paced)) => Some(timer.min(paced)),
            (timer, paced) => timer.or(paced),
        }
    }

    /// The next part to send, if anything may leave now. Whoever asks sends it.
    pub(crate) fn poll_transmit(
        &mut self,
        behaviour: &Behaviour,
        now: Instant,
    ) -> Option<Outgoing> {
        if self.is_at_rest() {
            return None;
        }
        let outgoing = self.choose(behaviour, now)?;
        self.on_sent(outgoing, behaviour, now);
        Some(outgoing)
    }

    /// All that was given is acknowledged. This is how the end of a connection is that only receives, and it is asked
    /// after each segment.
    #[inline]
    const fn is_at_rest(&self) -> bool {
        self.board.una() == self.limit && self.probe.due.is_none()
    }

    fn choose(&mut self, behaviour: &Behaviour, now: Instant) -> Option<Outgoing> {
        if self.failed || self.excess_below_socket(behaviour) > 0 {
            return None;
        }
        if let Some(probe) = self.due_probe() {
            return Some(probe);
        }
        if self.pacer.holds_back(now) {
            return None;
        }
        let in_flight = self.in_flight();
        let mss = self.window.mss;
        let room = match self.window.bytes.saturating_sub(in_flight) {
            room if room < mss && self.is_forced => mss,
            room => room,
        };
        let burst = self.bursts(behaviour).bytes;
        if self.board.has_lost()
            && let Some((start, end)) = self.board.next_lost(self.whole_segments(room, burst))
        {
            if room < mss && end - start > room {
                return None;
            }
            return Some(Outgoing {
                start,
                end,
                is_resent: true,
            });
        }
        self.is_forced = false;
        self.choose_new(room, behaviour, now)
    }

    /// As many whole segments as fit in `room`, at least one and at most a burst.
    const fn whole_segments(&self, room: u64, burst: u64) -> u64 {
        let mss = self.window.mss;
        if room >= burst {
            // Whole segments itself.
            return burst;
        }
        if room < 2 * mss {
            mss
        } else {
            room / mss * mss
        }
    }

    fn choose_new(&mut self, room: u64, behaviour: &Behaviour, now: Instant) -> Option<Outgoing> {
        let (una, start) = (self.board.una(), self.board.next());
        let available = match (una, start) {
            (_, 0) => 1,
            // Nothing follows the SYN before that is acknowledged.
            (0, _) => 0,
            _ => {
                self.limit
                    .min((una + behaviour.send_buffer_bytes).max(start))
                    - start
            }
        };
        if available == 0 {
            if let Some(model) = self.congestion.model()
                && room > 0
            {
                model.delivery.limit(self.board.in_flight());
            }
            return None;
        }
        // The SYN and the FIN take no room of the receiver's.
        let last = start + available;
        let ends = self.is_finished && last == self.limit;
        let window_end = self.window_end + u64::from(ends && self.window_end + 1 == self.limit);
        let open = window_end.saturating_sub(start);
        let mss = self.window.mss;
        let Bursts {
            bytes: burst,
            worthwhile_bytes,
            ..
        } = *self.bursts(behaviour);
        let wanted = self.whole_segments(room, burst).min(available);
        // The window allows a shorter burst than it soon could, but most of it is under way. What leaves because something has arrived
        // beyond a gap does not wait (limited transmit, RFC 3042; Linux 6.18, measured).
        let waits = self.phase == Phase::Open && self.board.sacked_bytes() == 0;
        if waits && wanted < worthwhile_bytes.min(available) {
            self.limited_to = start;
            return None;
        }
        let bytes = wanted.min(open);
        if bytes < wanted.min(mss) {
            // Silly windows are not filled (RFC 9293, section 3.8.6.2.1); if nothing is under way, only a timer can
            // find out that the window has opened.
            if una == start && self.timer.is_none() {
                self.set_timer(Timer::Persist, self.rtt.rto(), now);
            }
            return None;
        }
        if room < bytes.min(mss) {
            self.limited_to = start;
            return None;
        }
        let bytes = if bytes > mss && bytes < available {
            bytes / mss * mss
        } else {
            bytes
        };
        Some(Outgoing {
            start,
            end: start + bytes,
            is_resent: false,
        })
    }

    fn on_sent(&mut self, outgoing: Outgoing, behaviour: &Behaviour, now: Instant) {
        let Outgoing {
            start,
            end,
            is_resent,
        } = outgoing;
        let bytes = end - start;
        let before = self.board.in_flight();
        let data =
            bytes - u64::from(start == 0) - u64::from(self.fin().is_some_and(|fin| end > fin));
        let segments = data.div_ceil(self.window.mss);
        if is_resent {
            self.board.resend(start, end, now);
            self.figures.retransmitted_segments += segments;
            if let Some(undo) = &mut self.undo {
                undo.first_resent.get_or_insert(crate::segment::stamp(now));
            }
        } else {
            self.restart_after_idle(behaviour, now);
            self.board.send(bytes, now);
            let outstanding = end - self.board.una();
            if self.board.una() >= self.round_end || outstanding > self.round_flight {
                (self.round_flight, self.round_end) = (outstanding, end);
            }
        }
        if let Some(model) = self.congestion.model() {
            let in_flight = (before, self.board.in_flight());
            model.on_sent(end, in_flight, &mut self.window, now);
            // After a silence the model may have changed the pacing rate.
            if before == 0 {
                self.bursts.invalidate();
            }
        }
        self.is_forced = false;
        self.figures.segments += segments;
        self.prr.on_sent(bytes);
        self.below_socket_bytes += data;
        self.last_sent_at = Some(now);
        if behaviour.pacing
            && let Some(rate) = self.bursts(behaviour).rate
        {
            self.pacer.on_sent(bytes, rate, now);
        }
        self.arm(now, is_resent);
    }

    /// A sender that had nothing to send does not know the path any more: its window is halved for every time-out that
    /// has passed (RFC 2861; ip-sysctl, `tcp_slow_start_after_idle`).
    fn restart_after_idle(&mut self, behaviour: &Behaviour, now: Instant) {
        let Some(last) = self.last_sent_at.filter(|_| self.board.in_flight() == 0) else {
            return;
        };
        let (idle, rto) = (now.saturating_since(last), self.rtt.rto());
        self.congestion.on_idle(idle);
        if idle <= rto || self.phase != Phase::Open || self.congestion.has_model() {
            return;
        }
        self.bursts.invalidate();
        let halvings = (idle.nanos() / rto.nanos().max(1)).min(63);
        let least = behaviour.initial_window_bytes.min(self.window.bytes);
        self.window.ssthresh = self.window.ssthresh.max(self.window.bytes / 4 * 3);
        self.window.bytes = (self.window.bytes >> halvings).max(least);
        self.congestion.on_reduced();
    }

    /// The timer has expired, or time has passed.
    pub(crate) fn on_timer(&mut self, behaviour: &Behaviour, now: Instant) {
        self.pacer.on_time(now);
        let Some((timer, _)) = self.timer.filter(|(_, at)| *at <= now) else {
            return;
        };
        self.timer = None;
        self.bursts.invalidate();
        match timer {
            Timer::Reordering => {
                self.detect_loss(now);
                self.rearm(false, now);
            }
            Timer::Tail => self.send_probe(behaviour, now),
            Timer::Persist => self.probe_window(behaviour, now),
            Timer::Retransmission => self.on_timeout(behaviour, now),
        }
    }

    /// RFC 6298, section 5, and RFC 5681, section 3.1.
    fn on_timeout(&mut self, behaviour: &Behaviour, now: Instant) {
        if self.board.una() == self.board.next() {
            return;
        }
        let most = if self.board.una() == 0 {
            behaviour.syn_retries
        } else {
            behaviour.retries
        };
        if self.rtt.backoff() >= most {
            self.failed = true;
            return;
        }
        self.figures.timeouts += 1;
        self.rtt.back_off();
        // What a probe would have shown is known now: the next loss of a tail may be probed for.
        self.probe.under_way = None;
        let is_opening = self.board.una() == 0;
        if self.phase != Phase::TimedOut && !is_opening {
            self.begin_undo();
            // A loss while recovering is no new congestion.
            if self.phase == Phase::Open || self.phase == Phase::Reducing {
                let (before, outstanding) = (self.window, self.outstanding());
                self.window.ssthresh =
                    (self.congestion).on_congestion(&before, outstanding, Cause::Loss);
            }
            self.is_reduced = self.is_marking;
        }
        if !is_opening {
            self.congestion.on_timeout();
        }
        let lost_before = self.board.lost_bytes();
        if self.is_sacking {
            let path = self.path();
            self.rack.detect_on_timeout(&mut self.board, path, now);
        } else {
            self.board.lose_on_timeout(|_| true);
        }
        self.lose_in_model(self.board.lost_bytes().saturating_sub(lost_before), now);
        self.duplicates = 0;
        self.window.bytes = match self.congestion.has_model() {
            true => self.in_flight() + self.window.mss,
            false => self.window.mss,
        };
        self.is_forced = true;
        self.arm_retransmission(now);
        // The loss of a SYN says little about the path: only the initial window is a segment (RFC 5681, section 3.1).
        if !is_opening {
            self.phase = Phase::TimedOut;
            self.recovery_point = self.board.next();
        }
    }

    /// The receiver's window is closed, and nothing is under way that would open it (RFC 9293, section 3.8.6.1): send what
    /// fits, or one byte.
    fn probe_window(&mut self, behaviour: &Behaviour, now: Instant) {
        if self.board.una() != self.board.next() || self.limit <= self.board.next() {
            return;
        }
        if self.rtt.backoff() >= behaviour.retries {
            self.failed = true;
            return;
        }
        self.rtt.back_off();
        let least = self.board.next() + 1;
        let most = (self.board.next() + self.window.mss).min(self.limit);
        let end = self.window_end.clamp(least, most);
        self.probe.due = Some(Outgoing {
            start: self.board.next(),
            end,
            is_resent: false,
        });
        self.set_timer(Timer::Persist, self.rtt.rto(), now);
    }

    /// Bytes under way: without SACK, each duplicate acknowledgement stands for a segment that has arrived.
    fn in_flight(&self) -> u64 {
        let arrived = self.duplicates * self.window.mss;
        self.board.in_flight().saturating_sub(arrived)
    }

    /// Returns the bytes that are not acknowledged, without what limited transmit has added (RFC 5681, section 3.1,
    /// equation 4, `FlightSize`).
    fn outstanding(&self) -> u64 {
        (self.board.next() - self.board.una()).min(self.window.bytes)
    }

    fn path(&self) -> Path {
        Path {
            min_rtt: self.rtt.min(),
            smoothed: self.rtt.smoothed(),
            mss_bytes: self.window.mss,
            is_recovering: matches!(self.phase, Phase::Recovering | Phase::TimedOut),
        }
    }

    /// Remember what a reduction replaces. Where retransmissions are under way, an old time stamp may be theirs, and
    /// proves nothing.
    fn begin_undo(&mut self) {
        self.undo = (self.board.resent_bytes() == 0).then_some(Undo {
            window: self.window,
            first_resent: None,
        });
    }

    /// Reduce the window over a round trip.
    fn reduce(&mut self, cause: Cause) {
        let (before, outstanding) = (self.window, self.outstanding());
        self.window.ssthresh = self.congestion.on_congestion(&before, outstanding, cause);
        self.prr = ProportionalRate::new(self.board.next() - self.board.una());
        self.recovery_point = self.board.next();
        self.is_reduced = self.is_marking;
        self.limited_to = 0;
        self.phase = match cause {
            Cause::Loss => Phase::Recovering,
            Cause::Mark => Phase::Reducing,
        };
    }

    /// Returns true if CWR is due, and clears that.
    pub(crate) fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.is_reduced)
    }

    /// After something has been sent: one timer for whatever may be next.
    fn arm(&mut self, now: Instant, is_resent: bool) {
        if let Some((Timer::Reordering | Timer::Retransmission, _)) = self.timer
            && !is_resent
        {
            return;
        }
        self.arm_tail(now);
    }

    fn arm_retransmission(&mut self, now: Instant) {
        self.set_timer(Timer::Retransmission, self.rtt.rto(), now);
    }

    fn set_timer(&mut self, timer: Timer, after: Duration, now: Instant) {
        self.timer = Some((timer, self.ticks.expiry(now, after)));
    }
}
