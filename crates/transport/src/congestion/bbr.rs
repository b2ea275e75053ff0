//! BBR, version 3 (draft-ietf-ccwg-bbr): the window and the pacing rate follow from a model of the path, the largest rate of delivery
//! and the smallest round trip. `docs/tcp.md` says what of the draft is not here.

mod arithmetic;
mod delivery_rate;
mod model;
mod probe_rtt;
mod upper;

use super::Window;
use arithmetic::{UNBOUNDED, percent_of, product, rate_of};
use delivery_rate::{DeliveryRate, PathSample};
use model::{Aggregation, LowerBounds, MinRtt, Rounds};
use slicewise_units::{Duration, Instant};
use upper::{in_flight_at_loss, is_too_much};

/// Part of a bound that is left after loss, percent.
const BETA: u64 = 70;
/// Part of the upper bound that is used while other flows are to find room, percent.
const HEADROOM: u64 = 85;
/// Part of the estimated rate at which data is paced, percent: less, so that the queue drains in the long run.
const PACED: u64 = 99;
/// Losses of a round trip that end Startup.
const STARTUP_LOSSES: u32 = 6;
/// Round trips without a rate larger by [`GROWTH`] percent, after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
const GROWTH: u64 = 125;
/// Round trips after which Drain is over, whatever is under way.
const DRAIN_ROUNDS: u64 = 3;
/// Segments that are always allowed.
const MIN_SEGMENTS: u64 = 4;
/// Time between probes for bandwidth: at least so long, and a random part of a second more.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_RANDOM: u64 = 1_000_000_000;
/// Most round trips between probes for bandwidth, however large the window.
const MAX_PROBE_ROUNDS: u64 = 63;

/// State of the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Doubles the rate each round trip until it grows no more.
    Startup,
    /// Lets the queue drain that Startup has left.
    Drain,
    /// Sends less than arrives, so that queues drain and other flows find room.
    Down,
    /// Sends as much as arrives.
    Cruise,
    /// Fills the pipe without a queue before it is probed.
    Refill,
    /// Sends more than arrives.
    Up,
    /// Has little under way, so that the round trip without a queue is seen.
    ProbeRtt,
}

impl State {
    const fn is_probe_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Losses now are those that a probe causes.
    const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// The pacing rate, and the window, in percent of the model.
    const fn gains(self) -> (u64, u64) {
        match self {
            Self::Startup => (277, 200),
            Self::Drain => (50, 200),
            Self::Down => (90, 200),
            Self::Cruise | Self::Refill => (100, 200),
            Self::Up => (125, 225),
            Self::ProbeRtt => (100, 50),
        }
    }
}

/// Effect of a probe for bandwidth on samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feedback {
    None,
    /// A probe has begun; its effect is seen from the next round trip on.
    Starting,
    /// Samples tell of the probe.
    Probing,
    /// The probe is over; its effect is seen until the next round trip.
    Stopping,
}

/// Search for the rate that grows no more.
#[derive(Debug, Clone, Copy, Default)]
struct FullPipe {
    rate: u64,
    rounds: u32,
    is_now: bool,
}

/// Input of the model from an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) sample: PathSample,
    /// Bytes newly delivered.
    pub(crate) bytes: u64,
    /// Bytes under way.
    pub(crate) in_flight: u64,
    pub(crate) rtt: Option<Duration>,
    /// The window is what limits the sender.
    pub(crate) is_limited: bool,
    /// Losses are being repaired.
    pub(crate) is_recovering: bool,
    pub(crate) now: Instant,
}

/// The model of a path, and what it makes of it.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    pub(crate) delivery: DeliveryRate,
    state: State,
    mss: u64,
    initial_window: u64,
    rounds: Rounds,
    /// The largest rate of delivery of the present cycle of probing and of the last, bytes a second.
    rates: [u64; 2],
    min_rtt: MinRtt,
    aggregation: Aggregation,
    lower: LowerBounds,
    /// Most bytes under way that did not cause much loss.
    upper_bytes: u64,
    /// The pipe has been full once.
    is_filled: bool,
    full_pipe: FullPipe,
    losses_in_round: u32,
    has_recovered_for_round: bool,
    feedback: Feedback,
    /// A loss is to be taken for one of the probe.
    is_sampling_probe: bool,
    /// The last probe caused too much loss; this one was short for that reason.
    was_too_high: bool,
    was_precautionary: bool,
    /// The round in which Drain began.
    drain_began: u64,
    /// State that losses ended, and the upper bound before them, for when they were none.
    undo: (Option<State>, u64),
    cycle_began: Instant,
    probe_wait: Duration,
    rounds_since_probe: u64,
    growth_doublings: u32,
    growth_acked: u64,
    growth_every: u64,
    pub(crate) pacing_rate: Option<u64>,
    /// The window before loss or `ProbeRTT`.
    prior_window: u64,
    was_recovering: bool,
    is_restarting: bool,
    /// When `ProbeRTT` may end, and whether a round trip has passed with little under way.
    probe_rtt_ends: Option<Instant>,
    probe_rtt_has_round: bool,
}

impl Bbr {
    pub(crate) fn new(mss: u64, initial_window: u64) -> Self {
        Self {
            delivery: DeliveryRate::default(),
            state: State::Startup,
            mss,
            initial_window,
            rounds: Rounds::default(),
            rates: [0; 2],
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            lower: LowerBounds::default(),
            upper_bytes: UNBOUNDED,
            is_filled: false,
            full_pipe: FullPipe::default(),
            losses_in_round: 0,
            has_recovered_for_round: false,
            feedback: Feedback::None,
            is_sampling_probe: false,
            was_too_high: false,
            was_precautionary: false,
            drain_began: 0,
            undo: (None, UNBOUNDED),
            cycle_began: Instant::ZERO,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
            growth_doublings: 0,
            growth_acked: 0,
            growth_every: UNBOUNDED,
            pacing_rate: None,
            prior_window: 0,
            was_recovering: false,
            is_restarting: false,
            probe_rtt_ends: None,
            probe_rtt_has_round: false,
        }
    }

    /// A part that ends at `end` is sent; see [`DeliveryRate::on_sent`].
    pub(crate) fn on_sent(
        &mut self,
        end: u64,
        (before, in_flight): (u64, u64),
        window: &mut Window,
        now: Instant,
    ) {
        if before == 0 && self.delivery.is_limited() {
            self.is_restarting = true;
            self.aggregation.restart(now);
            if self.state.is_probe_bandwidth() {
                self.pace(100);
            } else if self.state == State::ProbeRtt {
                self.end_probe_rtt(window, now);
            }
        }
        // A SYN says nothing of the rate.
        if end > 1 {
            self.delivery.on_sent(end, before, in_flight, now);
        }
    }

    /// `bytes` are lost, the last of which were sent at `sent_at`.
    pub(crate) fn on_lost(&mut self, bytes: u64, sent_at: Instant, window: &Window, now: Instant) {
        self.losses_in_round += 1;
        if self.lower.on_lost(self.delivery.delivered()) {
            self.undo = (None, self.upper_bytes);
        }
        let Some(mut sample) = self.delivery.on_lost(bytes, sent_at) else {
            return;
        };
        if self.is_sampling_probe && is_too_much(&sample) {
            sample.in_flight = in_flight_at_loss(&sample, bytes, window.mss);
            self.on_too_much(&sample, window, now);
        }
    }

    /// The window is about to be reduced for a loss: keep it.
    pub(crate) fn save_window(&mut self, bytes: u64) {
        let is_usual = !self.was_recovering && self.state != State::ProbeRtt;
        self.prior_window = match is_usual {
            true => bytes,
            false => self.prior_window.max(bytes),
        };
    }

    /// Losses were none: take back what followed from them.
    pub(crate) fn on_undo(&mut self) {
        self.lower.undo();
        self.full_pipe = FullPipe::default();
        let (state, upper) = std::mem::take(&mut self.undo);
        self.upper_bytes = self.upper_bytes.max(upper);
        let is_elsewhere = state != Some(self.state) && self.state != State::ProbeRtt;
        match state {
            Some(State::Startup) => {
                self.is_filled = false;
                if is_elsewhere {
                    self.state = State::Startup;
                }
            }
            Some(_) if is_elsewhere => self.start_refill(),
            _ => {}
        }
    }

    /// Data was delivered, or lost: the model, the pacing rate and the window follow.
    pub(crate) fn on_arrived(&mut self, arrived: &Arrived, window: &mut Window) {
        let sample = &arrived.sample;
        self.rounds.on_sample(sample, self.delivery.delivered());
        if self.rounds.is_start {
            self.rounds_since_probe += 1;
        }
        self.update_rates(sample);
        let bounds = (self.state.is_probing(), self.max_rate(), window.bytes);
        (self.lower).on_sample(sample, self.delivery.delivered(), bounds);
        let expected = self.rate();
        (self.aggregation).on_delivered(
            arrived,
            expected,
            window.bytes,
            &self.rounds,
            self.is_filled,
        );
        self.check_full_pipe(sample);
        self.check_startup(arrived);
        let is_drained = arrived.in_flight <= self.with_budget(self.bdp(100))
            || self.rounds.count > self.drain_began + DRAIN_ROUNDS;
        if self.state == State::Drain && is_drained {
            self.start_down(arrived.now);
        }
        if self.is_filled {
            self.probe_bandwidth(arrived, window);
        }
        if let Some(rtt) = arrived.rtt {
            self.min_rtt.on_sample(rtt, arrived.now);
            self.pacing_rate.get_or_insert_with(|| {
                let gain = State::Startup.gains().0;
                rate_of(percent_of(self.initial_window, gain), rtt)
            });
        }
        self.check_probe_rtt(arrived, window);
        self.lower.advance(sample);
        if self.rounds.is_start {
            self.losses_in_round = 0;
            self.has_recovered_for_round = arrived.is_recovering;
        }
        self.pace(self.state.gains().0);
        self.set_window(arrived, window);
    }

    fn update_rates(&mut self, sample: &PathSample) {
        let Some(rate) = sample.rate else { return };
        if rate >= self.max_rate() || !sample.is_application_limited {
            self.rates[0] = self.rates[0].max(rate);
        }
    }

    fn max_rate(&self) -> u64 {
        self.rates[0].max(self.rates[1])
    }

    /// The rate of the path, as far as losses let it.
    fn rate(&self) -> u64 {
        self.max_rate().min(self.lower.rate)
    }

    /// The product of rate and delay, bytes, times `percent`.
    fn bdp(&self, percent: u64) -> u64 {
        match self.min_rtt.rtt() {
            Some(rtt) => percent_of(product(self.rate(), rtt), percent),
            None => percent_of(self.initial_window, percent),
        }
    }

    /// The upper bound, less room for other flows.
    fn with_headroom(&self) -> u64 {
        match self.upper_bytes {
            UNBOUNDED => UNBOUNDED,
            bytes => percent_of(bytes, HEADROOM)
                .min(bytes.saturating_sub(self.mss))
                .max(self.least()),
        }
    }

    const fn least(&self) -> u64 {
        MIN_SEGMENTS * self.mss
    }

    fn check_full_pipe(&mut self, sample: &PathSample) {
        let Some(rate) = sample.rate else { return };
        if self.full_pipe.is_now || !self.rounds.is_start || sample.is_application_limited {
            return;
        }
        if rate >= percent_of(self.full_pipe.rate, GROWTH) {
            self.full_pipe = FullPipe {
                rate,
                ..FullPipe::default()
            };
        } else {
            self.full_pipe.rounds += 1;
            self.full_pipe.is_now = self.full_pipe.rounds >= FULL_ROUNDS;
            self.is_filled |= self.full_pipe.is_now;
        }
    }

    fn check_startup(&mut self, arrived: &Arrived) {
        if self.state != State::Startup {
            return;
        }
        let is_lossy = self.rounds.is_start
            && self.has_recovered_for_round
            && self.losses_in_round >= STARTUP_LOSSES
            && is_too_much(&arrived.sample);
        if is_lossy && !self.is_filled {
            self.undo.0 = Some(State::Startup);
            self.is_filled = true;
            self.upper_bytes = self.bdp(100).max(self.lower.latest_delivered);
        }
        if self.is_filled {
            self.state = State::Drain;
            self.drain_began = self.rounds.count;
        }
    }

    fn start_round(&mut self) {
        self.rounds.begin(self.delivery.delivered());
    }

    fn start_down(&mut self, now: Instant) {
        self.lower.forget_latest();
        self.growth_every = UNBOUNDED;
        // A random moment, so that flows do not probe together.
        let random = mixed(now.nanos() ^ self.delivery.delivered().rotate_left(32));
        self.rounds_since_probe = random & 1;
        let part = Duration::from_nanos((random >> 1) % PROBE_WAIT_RANDOM);
        self.probe_wait = PROBE_WAIT + part;
        self.cycle_began = now;
        self.feedback = Feedback::Stopping;
        self.start_round();
        self.state = State::Down;
    }

    fn start_refill(&mut self) {
        self.lower.reset();
        (self.growth_doublings, self.growth_acked) = (0, 0);
        self.was_precautionary = false;
        self.feedback = Feedback::None;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &PathSample, window: &Window) {
        self.feedback = Feedback::Starting;
        self.start_round();
        self.full_pipe = FullPipe {
            rate: sample.rate.unwrap_or(0),
            ..FullPipe::default()
        };
        self.state = State::Up;
        self.raise_growth(window);
    }

    /// The phases of probing for bandwidth.
    fn probe_bandwidth(&mut self, arrived: &Arrived, window: &Window) {
        if self.adapt_upper(arrived, window) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(arrived, window) => {
                self.start_refill();
            }
            State::Down if self.is_drained(arrived) => self.state = State::Cruise,
            State::Refill if self.rounds.is_start => {
                self.is_sampling_probe = true;
                self.start_up(&arrived.sample, window);
            }
            State::Up if self.is_up_over(arrived, window) => {
                self.was_too_high = false;
                self.start_down(arrived.now);
            }
            _ => {}
        }
    }

    /// Returns true if the probe has shown what it can. After one that caused too much loss, the next ends where loss began.
    fn is_up_over(&mut self, arrived: &Arrived, window: &Window) -> bool {
        if self.was_too_high && arrived.in_flight >= self.upper_bytes {
            self.was_precautionary = true;
            return true;
        }
        if arrived.is_limited && window.bytes >= self.upper_bytes {
            self.full_pipe = FullPipe {
                rate: arrived.sample.rate.unwrap_or(0),
                ..FullPipe::default()
            };
            return false;
        }
        self.full_pipe.is_now
    }

    fn is_time_to_probe(&self, arrived: &Arrived, window: &Window) -> bool {
        let has_waited = arrived.now.saturating_since(self.cycle_began) > self.probe_wait;
        // As often as Reno, whose window grows by a segment each round trip, would fill as large a window.
        let segments = self.bdp(100).min(window.bytes) / self.mss.max(1);
        let is_reno_due = self.rounds_since_probe >= segments.min(MAX_PROBE_ROUNDS);
        has_waited || is_reno_due
    }

    fn is_drained(&self, arrived: &Arrived) -> bool {
        let rtt = self.min_rtt.rtt().unwrap_or(Duration::ZERO);
        let whole = product(self.max_rate(), rtt);
        arrived.in_flight <= self.with_headroom() && arrived.in_flight <= self.with_budget(whole)
    }

    /// Set the pacing rate to `gain` percent of the model's.
    fn pace(&mut self, gain: u64) {
        let rate = percent_of(percent_of(self.rate(), gain), PACED);
        if rate > 0 && (self.is_filled || self.pacing_rate.is_none_or(|before| rate > before)) {
            self.pacing_rate = Some(rate);
        }
    }

    fn set_window(&mut self, arrived: &Arrived, window: &mut Window) {
        if self.was_recovering && !arrived.is_recovering {
            window.bytes = window.bytes.max(self.prior_window);
        }
        self.was_recovering = arrived.is_recovering;
        let most = self.bdp(self.state.gains().1) + self.aggregation.extra();
        let most = self.with_budget(most);
        if self.is_filled {
            window.bytes = (window.bytes + arrived.bytes).min(most);
        } else if window.bytes < most || self.delivery.delivered() < self.initial_window {
            window.bytes += arrived.bytes;
        }
        window.bytes = window.bytes.max(self.least());
        if self.state == State::ProbeRtt {
            window.bytes = window.bytes.min(self.probe_rtt_window());
        }
        let bound = match self.state {
            State::Down | State::Refill | State::Up => self.upper_bytes,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => UNBOUNDED,
        };
        let bound = bound.min(self.lower.bytes).max(self.least());
        window.bytes = window.bytes.min(bound);
    }

    /// Raises bytes under way to as many as a host that sends and receives in bursts needs.
    fn with_budget(&self, bytes: u64) -> u64 {
        // Bursts take a millisecond of the pacing rate, or two segments: three are at the sender and the receiver.
        let burst = self.pacing_rate.unwrap_or(0) / 1_000;
        let budget = 3 * burst.clamp(2 * self.mss, (64 << 10).max(2 * self.mss));
        let probe = if self.state == State::Up {
            2 * self.mss
        } else {
            0
        };
        bytes.max(budget).max(self.least()) + probe
    }
}

/// A number without order from one with (D. Steele et al., "Fast splittable pseudorandom number generators", 2014).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
