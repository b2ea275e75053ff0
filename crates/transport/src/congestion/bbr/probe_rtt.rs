//! The phase in which little is under way, so that queues are empty and the round trip of the path is seen.

use super::{Arrived, Bbr, Feedback, State, Window};
use slicewise_units::{Duration, Instant};

/// Duration of the phase, once little is under way.
const PROBE_RTT: Duration = Duration::from_millis(200);

impl Bbr {
    pub(super) fn check_probe_rtt(&mut self, arrived: &Arrived, window: &mut Window) {
        if self.state != State::ProbeRtt && self.min_rtt.take_probe_due() && !self.is_restarting {
            self.save_window(window.bytes);
            self.state = State::ProbeRtt;
            self.probe_rtt_ends = None;
            self.feedback = Feedback::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            // Little is under way because it is wanted so: rates are no measure of the path.
            self.delivery.limit(arrived.in_flight);
            self.probe_rtt(arrived, window);
        }
        self.is_restarting &= arrived.sample.delivered == 0;
    }

    fn probe_rtt(&mut self, arrived: &Arrived, window: &mut Window) {
        let now = arrived.now;
        if self.probe_rtt_ends.is_none() {
            if arrived.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_ends = Some(now + PROBE_RTT);
                self.probe_rtt_has_round = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt_has_round |= self.rounds.is_start;
        if self.probe_rtt_has_round {
            self.end_probe_rtt(window, now);
        }
    }

    /// End the phase if it has taken its time.
    pub(super) fn end_probe_rtt(&mut self, window: &mut Window, now: Instant) {
        if self.probe_rtt_ends.is_none_or(|ends| now <= ends) {
            return;
        }
        self.min_rtt.was_probed(now);
        window.bytes = window.bytes.max(self.prior_window);
        self.lower.reset();
        if self.is_filled {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(State::ProbeRtt.gains().1).max(self.least())
    }
}
