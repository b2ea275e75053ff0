//! Effects of an acknowledgement on the sender.

use super::scoreboard::Delivered;
use super::{Cause, Phase, Sender, Timer};
use crate::congestion::bbr::Arrived;
use crate::congestion::{Acknowledged, Congestion};
use crate::segment::{Flags, Segment, is_earlier};
use slicewise_units::{Duration, Instant};

/// Duplicate acknowledgements that stand for a loss where SACK was not agreed on (RFC 5681, section 3.2).
const DUP_THRESH: u64 = 3;

impl Sender {
    /// A segment with an acknowledgement arrived. Returns the round trip of the last byte acknowledged, if it was measured.
    pub(crate) fn on_acknowledgement(
        &mut self,
        segment: &Segment,
        now: Instant,
    ) -> Option<Duration> {
        let una = self.board.una();
        // One that another has overtaken says nothing but which blocks have arrived.
        let is_old = segment.acknowledgement < una;
        if segment.acknowledgement > self.board.next() || (is_old && segment.sack.is_empty()) {
            return None;
        }
        let ack = segment.acknowledgement.max(una);
        let is_update = !is_old && self.update_window(segment);
        if !is_update && ack == una && segment.sack.is_empty() && self.board.in_flight() == 0 {
            return None;
        }
        self.bursts.invalidate();
        let mut delivered = Delivered::default();
        self.board.acknowledge(ack, &mut delivered);
        let is_duplicate = self.on_sack(segment, una, &mut delivered);
        let bytes = ack - una;
        let rtt = self.measure(&delivered, now);
        if bytes > 0 && rtt.is_none() {
            self.rtt.on_progress();
        }
        if self.try_undo(segment.echo, bytes) {
            self.rack.on_undone();
        }
        if !self.is_sacking {
            self.count_duplicates(segment, bytes, &mut delivered);
        }
        self.rack
            .on_delivered(&delivered, segment.echo, self.rtt.min(), now);
        self.leave_phase(ack);
        if self.judge_probe(ack, is_duplicate) && self.phase == Phase::Open {
            // The probe repaired a loss: the window is reduced for it.
            self.reduce(Cause::Loss);
            self.phase = Phase::Reducing;
        }
        let is_marked = self.is_marking && segment.flags.has(Flags::ECE);
        // What was sacked before does not count again; without SACK, all but a segment may have arrived before (RFC 3465,
        // section 2.3).
        let arrived = match self.phase {
            Phase::TimedOut if !self.is_sacking => bytes.min(self.window.mss),
            _ => bytes.min(delivered.bytes),
        };
        self.grow(arrived, rtt, is_marked, now);
        if is_marked && self.phase == Phase::Open && !self.congestion.has_model() {
            self.answer_mark(now);
        }
        if bytes > 0 {
            self.timer = None;
        }
        let lost = self.detect_loss(now);
        if self.congestion.has_model() {
            self.follow_model(&delivered, rtt, now);
        } else {
            self.keep_rate(delivered.bytes, lost == 0 && bytes > 0);
        }
        self.rearm(bytes > 0, now);
        rtt
    }

    /// Take the window of a segment that is not older than the one it was taken of last, also where it is smaller than before (RFC 9293,
    /// section 3.8.6; as Linux, the smaller of two that say the same otherwise is the older). Returns whether it has changed.
    fn update_window(&mut self, segment: &Segment) -> bool {
        let window_end = segment.acknowledgement + u64::from(segment.window_bytes);
        let is_newer = segment.acknowledgement > self.board.una()
            || segment.sequence > self.window_updated_at
            || (segment.sequence == self.window_updated_at && window_end > self.window_end);
        if !is_newer {
            return false;
        }
        self.window_updated_at = segment.sequence;
        std::mem::replace(&mut self.window_end, window_end) != window_end
    }

    /// Take the blocks; true if the first says that something arrived twice.
    fn on_sack(&mut self, segment: &Segment, una: u64, delivered: &mut Delivered) -> bool {
        if segment.sack.is_empty() {
            return false;
        }
        let ack = segment.acknowledgement;
        let mut blocks = segment.sack.iter(ack);
        let first = blocks.next();
        let second = segment.sack.iter(ack).nth(1);
        let is_duplicate = first.is_some_and(|(start, end)| {
            let within_second = second.is_some_and(|(low, high)| start >= low && end <= high);
            end <= ack || within_second
        });
        if is_duplicate {
            self.rack.on_duplicate(una, self.board.next());
        }
        for (start, end) in segment.sack.iter(ack) {
            if start < end && start >= ack {
                self.board.sack(start, end, delivered);
            }
        }
        is_duplicate
    }

    /// A round-trip time of what was sent once (Karn's algorithm). If the acknowledgement covers something sent again, the
    /// rest of it may have arrived long before.
    fn measure(&mut self, delivered: &Delivered, now: Instant) -> Option<Duration> {
        if delivered.acknowledges_resent {
            return None;
        }
        let (first, last) = (delivered.first_sent_once?, delivered.last_sent_once?);
        let last = now.saturating_since(last);
        self.rtt.on_sample(now.saturating_since(first), last, now);
        Some(last)
    }

    /// If what was sent again had not been lost, its acknowledgement answers the original (RFC 3522): take back what was
    /// done.
    fn try_undo(&mut self, echo: u32, bytes: u64) -> bool {
        let is_reduced = matches!(self.phase, Phase::Recovering | Phase::TimedOut);
        let Some(undo) = self.undo.filter(|_| is_reduced && bytes > 0) else {
            return false;
        };
        let Some(first_resent) = undo.first_resent else {
            return false;
        };
        self.undo = None;
        if echo == 0 || !is_earlier(echo, first_resent) {
            return false;
        }
        self.window.bytes = self.window.bytes.max(undo.window.bytes);
        self.window.ssthresh = undo.window.ssthresh;
        self.board.lose_nothing();
        self.congestion.on_undo();
        self.phase = Phase::Open;
        self.figures.undone += 1;
        true
    }

    /// Without SACK: each duplicate says that one segment more has left the network (RFC 5681, RFC 6582).
    fn count_duplicates(&mut self, segment: &Segment, bytes: u64, delivered: &mut Delivered) {
        let mss = self.window.mss;
        if bytes > 0 {
            let is_partial =
                self.phase == Phase::Recovering && segment.acknowledgement < self.recovery_point;
            self.duplicates = 0;
            if is_partial {
                // RFC 6582, section 3.2, step 3: the next one is lost too.
                self.board.lose_first(mss);
            }
            return;
        }
        if self.board.una() == self.board.next() || segment.bytes > 0 {
            return;
        }
        self.duplicates += 1;
        delivered.bytes += mss;
        if self.duplicates >= DUP_THRESH && self.phase == Phase::Open {
            self.board.lose_first(mss);
        }
    }

    /// A phase ends when everything is acknowledged that had been sent when it began.
    fn leave_phase(&mut self, ack: u64) {
        if self.phase == Phase::Open || ack < self.recovery_point {
            return;
        }
        let is_reduced = matches!(self.phase, Phase::Recovering | Phase::Reducing);
        if is_reduced && !self.congestion.has_model() {
            self.window.bytes = self.window.ssthresh;
        }
        if self.phase == Phase::Recovering {
            self.rack.on_recovered();
        }
        self.phase = Phase::Open;
        self.undo = None;
        self.duplicates = 0;
    }

    fn grow(&mut self, bytes: u64, rtt: Option<Duration>, is_marked: bool, now: Instant) {
        if bytes == 0 {
            return;
        }
        let una = self.board.una();
        // Slow start may double what was under way in a round trip, however much of that is acknowledged by now (RFC 7661, section 4.3:
        // what was acknowledged in a round trip validates twice that; Linux 6.18, measured).
        let is_filled = self.window.is_slow_start() && self.window.bytes < 2 * self.round_flight;
        let ack = Acknowledged {
            bytes,
            una,
            next: self.board.next(),
            rtt,
            smoothed: self.rtt.smoothed().unwrap_or(Duration::ZERO),
            is_marked,
            is_limited: una <= self.limited_to || is_filled,
            now,
        };
        self.congestion.on_round(&ack);
        if matches!(self.phase, Phase::Open | Phase::TimedOut) {
            self.congestion.on_ack(&mut self.window, &ack);
        }
    }

    /// Prague answers at once, by a little; the others over a round trip.
    fn answer_mark(&mut self, now: Instant) {
        if let Congestion::Prague(prague) = &mut self.congestion {
            let smoothed = self.rtt.smoothed().unwrap_or(Duration::ZERO);
            let is_reduced = prague.on_mark(&mut self.window, smoothed, now);
            self.figures.mark_reductions += u64::from(is_reduced);
            return;
        }
        self.figures.mark_reductions += 1;
        self.reduce(Cause::Mark);
    }

    /// Find losses, and begin to recover from them. Returns the bytes newly lost.
    pub(super) fn detect_loss(&mut self, now: Instant) -> u64 {
        let path = self.path();
        let (lost, wait) = if self.is_sacking {
            self.rack.detect(&mut self.board, path, now)
        } else {
            (0, None)
        };
        self.lose_in_model(lost, now);
        let is_calm = matches!(self.phase, Phase::Open | Phase::Reducing);
        if is_calm && self.board.lost_bytes() > 0 {
            self.begin_undo();
            if self.phase == Phase::Open {
                self.reduce(Cause::Loss);
            } else {
                // The window is being reduced already.
                self.phase = Phase::Recovering;
                self.recovery_point = self.board.next();
            }
            self.figures.recoveries += 1;
            // A segment goes at once, more as data arrives (RFC 9937).
            if !self.congestion.has_model() {
                self.window.bytes = self.in_flight();
            }
            self.is_forced = true;
            self.probe.under_way = None;
        }
        if let Some(at) = wait {
            self.set_timer(Timer::Reordering, at.saturating_since(now), now);
        }
        lost
    }

    /// Tell the model of the path, where there is one, that data was taken for lost.
    pub(super) fn lose_in_model(&mut self, lost: u64, now: Instant) {
        if let Some(model) = self.congestion.model()
            && lost > 0
        {
            model.on_lost(lost, self.board.lost_sent_at(), &self.window, now);
        }
    }

    /// Window and pacing rate follow from the model of the path.
    fn follow_model(&mut self, delivered: &Delivered, rtt: Option<Duration>, now: Instant) {
        let (in_flight, min_rtt) = (self.in_flight(), self.rtt.min());
        let is_limited = self.board.una() <= self.limited_to;
        let is_recovering = matches!(self.phase, Phase::Recovering | Phase::TimedOut);
        let una = self.board.una();
        let Some(model) = self.congestion.model() else {
            return;
        };
        let bytes = delivered.bytes;
        let newest = delivered.newest.map(|newest| newest.sent_at);
        let sample = (model.delivery).on_delivered(bytes, newest, una, min_rtt, now);
        let arrived = Arrived {
            sample,
            bytes,
            in_flight,
            rtt,
            is_limited,
            is_recovering,
            now,
        };
        model.on_arrived(&arrived, &mut self.window);
    }

    /// While the window is reduced, PRR says how much may leave.
    fn keep_rate(&mut self, delivered: u64, is_safe: bool) {
        if !matches!(self.phase, Phase::Recovering | Phase::Reducing) || delivered == 0 {
            return;
        }
        let (in_flight, mss) = (self.in_flight(), self.window.mss);
        let ssthresh = self.window.ssthresh;
        let may_send = (self.prr).on_delivered(delivered, in_flight, ssthresh, mss, is_safe);
        self.window.bytes = in_flight + may_send;
    }

    pub(super) fn rearm(&mut self, has_progressed: bool, now: Instant) {
        if self.board.una() == self.board.next() {
            self.timer = None;
        } else if has_progressed && self.timer.is_none() {
            self.arm_tail(now);
        } else if self.timer.is_none() {
            self.arm_retransmission(now);
        }
    }
}
