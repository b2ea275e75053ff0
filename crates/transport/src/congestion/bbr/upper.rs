//! The upper bound of what is under way: where a probe for bandwidth caused too much loss.

use super::arithmetic::{UNBOUNDED, percent_of};
use super::delivery_rate::PathSample;
use super::{Arrived, BETA, Bbr, Feedback, State, Window};
use slicewise_units::Instant;

/// Loss in a round trip beyond which a path is too full, as a part of the data: one in so many bytes, 2 %.
pub(super) const LOSS_PART: u64 = 50;
/// Doublings of the growth of the upper bound.
const MAX_GROWTH_DOUBLINGS: u32 = 30;

impl Bbr {
    /// The upper bound of what is under way, by what a probe has shown. Returns true if the next probe begins.
    pub(super) fn adapt_upper(&mut self, arrived: &Arrived, window: &Window) -> bool {
        let sample = &arrived.sample;
        if self.rounds.is_start {
            match self.feedback {
                Feedback::Starting => self.feedback = Feedback::Probing,
                Feedback::Stopping => {
                    self.is_sampling_probe = false;
                    self.feedback = Feedback::None;
                    let is_probing = self.state.is_probe_bandwidth();
                    if is_probing && !sample.is_application_limited {
                        self.rates = [0, self.rates[0]];
                    }
                    if is_probing && self.was_precautionary && !self.was_too_high {
                        self.start_refill();
                        return true;
                    }
                }
                Feedback::None | Feedback::Probing => {}
            }
        }
        if !is_too_much(sample) && self.upper_bytes < UNBOUNDED {
            self.upper_bytes = self.upper_bytes.max(sample.in_flight);
            if self.state == State::Up {
                self.grow_upper(arrived, window);
            }
        }
        false
    }

    /// A probe caused too much loss.
    pub(super) fn on_too_much(&mut self, sample: &PathSample, window: &Window, now: Instant) {
        (self.is_sampling_probe, self.was_too_high) = (false, true);
        if !sample.is_application_limited {
            let target = self.bdp(100).min(window.bytes);
            self.upper_bytes = sample.in_flight.max(percent_of(target, BETA));
        }
        if self.state == State::Up {
            self.undo.0 = Some(State::Up);
            self.start_down(now);
        }
    }

    fn grow_upper(&mut self, arrived: &Arrived, window: &Window) {
        if !arrived.is_limited || window.bytes < self.upper_bytes {
            return;
        }
        self.growth_acked += arrived.bytes;
        if let Some(segments) = self.growth_acked.checked_div(self.growth_every)
            && segments > 0
        {
            self.growth_acked -= segments * self.growth_every;
            self.upper_bytes = self.upper_bytes.saturating_add(segments * self.mss);
        }
        if self.rounds.is_start {
            self.raise_growth(window);
        }
    }

    /// The bound grows by one segment in the first round trip, then by two, four, ...
    pub(super) fn raise_growth(&mut self, window: &Window) {
        let segments = 1u64 << self.growth_doublings;
        self.growth_doublings = (self.growth_doublings + 1).min(MAX_GROWTH_DOUBLINGS);
        self.growth_every = (window.bytes / segments).max(self.mss);
    }
}

pub(super) const fn is_too_much(sample: &PathSample) -> bool {
    sample.lost > sample.in_flight / LOSS_PART
}

/// Bytes under way at which the loss of `bytes` made too much of it, by the state when the last of them was sent. Packets
/// of which one detection tells count one after the other, as if each were sent with as much under way.
pub(super) fn in_flight_at_loss(sample: &PathSample, bytes: u64, mss: u64) -> u64 {
    let mss = mss.max(1);
    let before = sample.in_flight.saturating_sub(mss.min(bytes));
    let known = sample.lost.saturating_sub(bytes);
    let still_little = (sample.in_flight / LOSS_PART).saturating_sub(known) / mss;
    let lost_before = known + still_little * mss;
    // The prefix of the deciding packet with which loss reaches the limit: (before + x) / 50 = lost_before + x.
    let prefix = before.saturating_sub(LOSS_PART * lost_before) / (LOSS_PART - 1);
    before + prefix
}
