//! PIE: frames are dropped on arrival with a probability that a proportional-integral controller derives from the
//! queueing delay (RFC 8033, appendix A, with timestamps; ECN as in its section 5.1).
//!
//! Every `update` the probability changes by α·(delay − target) + β·(delay − delay before), with α = 1/8 and β = 5/4 per
//! second, scaled down while it is small. The updates that were due are made up for when the next frame arrives or leaves,
//! so there is no timer. All arithmetic is on integers, so that every machine decides the same.

use super::updates::Updates;
use super::{Backlog, Candidate};
use crate::frame::DropReason;
use crate::queue::QueuedFrame;
use rand_core::Rng;
use slicewise_model::queue::PieParams;
use slicewise_units::{Duration, Instant};

/// Probability 1: probabilities have 48 bits after the point.
const ONE: i64 = 1 << 48;
/// `MEAN_PKTSIZE`: twice as many bytes may always wait.
const MEAN_PACKET: u64 = 1_500;
/// `mark_ecnth` of section 5.1: from this probability on, frames are dropped and not marked.
const MARK_BELOW: i64 = ONE / 10;
/// From here on frames are dropped even if the delay was below half the target.
const SAFEGUARD: i64 = ONE / 5;
/// Steps by which a change of the probability is scaled: below 1/bound, it is divided by the second number.
const SCALES: [(i64, i128); 6] = [
    (1_000_000, 2_048),
    (100_000, 512),
    (10_000, 128),
    (1_000, 32),
    (100, 8),
    (10, 2),
];

/// State of one queue.
#[derive(Debug, Clone, Copy)]
pub struct PieState {
    params: PieParams,
    /// `drop_prob_`, of [`ONE`].
    probability: i64,
    /// `current_qdelay`: that of the frame that left last, or zero in an empty queue.
    delay: Duration,
    /// `qdelay_old_`.
    delay_before: Duration,
    /// `burst_allowance_`.
    allowance: Duration,
    updates: Updates,
}

impl PieState {
    /// State of an unused queue.
    #[must_use]
    pub const fn new(params: &PieParams) -> Self {
        Self {
            params: *params,
            probability: 0,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            allowance: Duration::ZERO,
            updates: Updates::every(params.update),
        }
    }

    /// `enque`: decide on a frame that finds `backlog` waiting; it may get a congestion mark.
    ///
    /// # Errors
    /// The reason to drop it.
    pub(super) fn on_arrival(
        &mut self,
        backlog: Backlog,
        queued: &mut QueuedFrame,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        self.update(queued.arrival());
        let is_calm = self.is_calm(self.delay) && self.is_calm(self.delay_before);
        if self.probability == 0 && is_calm {
            self.allowance = self.params.burst;
        }
        if self.allowance > Duration::ZERO || !self.drops_early(backlog, random) {
            return Ok(());
        }
        if self.params.ecn && queued.ecn().is_capable() && self.probability < MARK_BELOW {
            queued.mark();
            return Ok(());
        }
        Err(DropReason::Pie)
    }

    /// `drop_early`; a random number is drawn only where chance decides.
    fn drops_early(&self, backlog: Backlog, random: &mut impl Rng) -> bool {
        let is_calm = self.is_calm(self.delay_before) && self.probability < SAFEGUARD;
        if is_calm || backlog.bytes <= 2 * MEAN_PACKET {
            return false;
        }
        // 32 bits, to compare with 48 bits after the point.
        i64::from(random.next_u32()) << 16 < self.probability
    }

    /// `deque`: a frame is about to leave.
    pub(super) fn on_departure(&mut self, candidate: Candidate, now: Instant) {
        self.update(now);
        self.delay = match candidate.bytes_behind {
            0 => Duration::ZERO,
            _ => now.saturating_since(candidate.arrival),
        };
    }

    /// The last frame left, or was dropped for another queue: nothing waits.
    pub(super) const fn on_empty(&mut self) {
        self.delay = Duration::ZERO;
    }

    /// Continue with the state of `old`, within the bounds of the parameters that may have changed: a shorter interval
    /// begins with the next frame, and a shorter burst allowance ends sooner.
    pub(super) fn resume_from(&mut self, old: &Self) {
        let mut updates = self.updates;
        updates.resume_from(old.updates);
        *self = Self {
            params: self.params,
            allowance: old.allowance.min(self.params.burst),
            updates,
            ..*old
        };
    }

    fn is_calm(&self, delay: Duration) -> bool {
        delay.nanos() < self.params.target.nanos() / 2
    }

    /// `calculate_drop_prob`, as often as it is due by `now`.
    fn update(&mut self, now: Instant) {
        for _ in 0..self.updates.take_due(now) {
            self.calculate();
        }
    }

    fn calculate(&mut self) {
        let nanos = |time: Duration| i128::from(time.nanos());
        let (delay, before) = (nanos(self.delay), nanos(self.delay_before));
        // α = 1/8 and β = 10/8 per second.
        let eighths = (delay - nanos(self.params.target)) + 10 * (delay - before);
        let change = eighths * i128::from(ONE) / 8_000_000_000;
        let below = |&&(bound, _): &&(i64, i128)| self.probability < ONE / bound;
        let scale = SCALES.iter().find(below).map_or(1, |&(_, scale)| scale);
        let mut probability = i128::from(self.probability) + change / scale;
        if delay == 0 && before == 0 {
            probability = probability * 98 / 100;
        }
        let bounded = probability.clamp(0, i128::from(ONE));
        self.probability = i64::try_from(bounded).unwrap_or(ONE);
        self.delay_before = self.delay;
        let left = self
            .allowance
            .nanos()
            .saturating_sub(self.params.update.nanos());
        self.allowance = Duration::from_nanos(left);
    }
}

/// PIE beside the pseudo-code of RFC 8033, appendix A, in floating point.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::queue::{FifoQueue, FlowQueue, FramePool};
    use proptest::prelude::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use slicewise_model::{
        Colour, FlowsParams, PriorityLevels, QueueLimitParams, QueueManager, QueueParams,
        Separation,
    };
    use slicewise_units::FrameLengths;
    use slicewise_wire::{Ecn, TrafficClass};

    const MS: u64 = 1_000_000;
    const FRAME: u32 = 1_000;

    fn params(ecn: bool) -> PieParams {
        PieParams {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            ecn,
        }
    }

    fn queued(at: u64, ecn: Ecn, flow: u16) -> QueuedFrame {
        let frame = Frame {
            handle: 0,
            lengths: FrameLengths {
                l2_bytes: FRAME,
                l3_offset: 14,
            },
            traffic_class: TrafficClass::new(0, ecn),
            colour: Colour::Green,
        };
        QueuedFrame::new(&frame, 0, Instant::from_nanos(at), flow)
    }

    /// The variables of appendix A, in seconds.
    #[derive(Debug, Default)]
    struct Reference {
        drop_prob: f64,
        current_qdelay: f64,
        qdelay_old: f64,
        burst_allowance: f64,
    }

    impl Reference {
        const QDELAY_REF: f64 = 0.015;

        /// `enque`, up to the call of `drop_early`: the frame is not yet protected as part of a burst.
        fn may_drop(&mut self) -> bool {
            if self.drop_prob == 0.0
                && self.current_qdelay < Self::QDELAY_REF / 2.0
                && self.qdelay_old < Self::QDELAY_REF / 2.0
            {
                self.burst_allowance = 0.150;
            }
            self.burst_allowance == 0.0
        }

        /// `drop_early`, with `u` for `random()`.
        fn drop_early(&self, byte_length: u64, u: f64) -> bool {
            if self.qdelay_old < Self::QDELAY_REF / 2.0 && self.drop_prob < 0.2
                || byte_length <= 2 * 1_500
            {
                return false;
            }
            u < self.drop_prob
        }

        fn calculate_drop_prob(&mut self) {
            let mut p = 0.125 * (self.current_qdelay - Self::QDELAY_REF)
                + 1.25 * (self.current_qdelay - self.qdelay_old);
            p /= match self.drop_prob {
                p if p < 0.000001 => 2048.0,
                p if p < 0.00001 => 512.0,
                p if p < 0.0001 => 128.0,
                p if p < 0.001 => 32.0,
                p if p < 0.01 => 8.0,
                p if p < 0.1 => 2.0,
                _ => 1.0,
            };
            self.drop_prob += p;
            if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.qdelay_old = self.current_qdelay;
            // The allowance is a multiple of the period: rounding must not leave a rest.
            self.burst_allowance = (self.burst_allowance - 0.015).max(0.0);
            if self.burst_allowance < 1e-9 {
                self.burst_allowance = 0.0;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Over random delays and backlogs, with one update a period. Each case stops where rounding could decide: at a
        /// bound of a scale, or where chance is as good as equal.
        #[test]
        fn follows_the_pseudo_code_of_rfc_8033(
            seed in any::<u64>(),
            steps in prop::collection::vec((prop_oneof![Just(0u64), 0..60_000_000u64], 0..20_000u64), 1..400),
        ) {
            let mut state = PieState::new(&params(false));
            let mut reference = Reference::default();
            let (mut random, mut same) = (Xoshiro256PlusPlus::seed_from_u64(seed), Xoshiro256PlusPlus::seed_from_u64(seed));
            let start = 1_000 * MS;
            state.update(Instant::from_nanos(start));
            for (step, (delay, bytes)) in (1u64..).zip(steps) {
                state.delay = Duration::from_nanos(delay);
                reference.current_qdelay = delay as f64 / 1e9;
                let now = start + step * 15 * MS;
                state.update(Instant::from_nanos(now));
                reference.calculate_drop_prob();
                let probability = state.probability as f64 / ONE as f64;
                prop_assert!((probability - reference.drop_prob).abs() < 1e-9, "{probability} {}", reference.drop_prob);
                let bounds = [0.000001, 0.00001, 0.0001, 0.001, 0.01, 0.1, 0.2];
                if bounds.iter().any(|bound| (reference.drop_prob - bound).abs() < 1e-8) {
                    break;
                }
                reference.drop_prob = if state.probability == 0 { 0.0 } else { reference.drop_prob };
                let backlog = Backlog { packets: 9, bytes };
                let dropped = state.on_arrival(backlog, &mut queued(now, Ecn::NotEct, 0), &mut random);
                let mut expected = false;
                if reference.may_drop() {
                    let guarded = reference.drop_early(bytes, -1.0);
                    let u = if guarded { f64::from(same.next_u32()) / f64::from(u32::MAX) } else { 1.0 };
                    if guarded && (u - reference.drop_prob).abs() < 1e-8 {
                        break;
                    }
                    expected = reference.drop_early(bytes, u);
                }
                prop_assert_eq!(dropped.is_err(), expected);
            }
        }
    }

    /// Frames of four flows come twice as fast as one may leave each ms, for 20 s; those not of flow 0 are `others`. Returns
    /// drops, marks, and the mean delay of the last 10 s in ms.
    fn overloaded(params: &QueueParams, ecn: Ecn) -> (usize, usize, u64) {
        let mut pool = FramePool::with_capacity(100_000);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut fifo, mut flows) = (FifoQueue::new(params), FlowQueue::new(params));
        let (mut drops, mut marks, mut delays) = (0, 0, Vec::new());
        for ms in 0..20_000 {
            for n in 0..2u64 {
                let flow = u16::try_from((2 * ms + n) % 4).unwrap() << 11;
                let mut frame = queued(ms * MS + n * MS / 2, ecn, flow);
                let result = match &mut fifo {
                    Some(fifo) => fifo.try_enqueue(&mut pool, frame, &mut random).map(|_| ()),
                    None => flows
                        .admit(&mut frame, &mut random)
                        .and_then(|()| flows.try_enqueue(&mut pool, frame).map(|_| ())),
                };
                drops += usize::from(result == Err(DropReason::Pie));
            }
            let now = Instant::from_nanos((ms + 1) * MS);
            let sent = match &mut fifo {
                Some(fifo) => fifo.dequeue(&mut pool, now),
                None => flows.dequeue(&mut pool, now),
            };
            if let Some(sent) = sent {
                marks += usize::from(sent.is_marked());
                if ms >= 10_000 {
                    delays.push(now.saturating_since(sent.arrival()).nanos() / MS);
                }
            }
        }
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        (drops, marks, mean)
    }

    fn with(flows: Separation, ecn: bool) -> QueueParams {
        QueueParams {
            limit: QueueLimitParams::of_packets(50_000),
            manager: QueueManager::Pie(params(ecn)),
            flows,
        }
    }

    #[test]
    fn the_delay_of_an_overloaded_queue_comes_close_to_the_target() {
        let (drops, marks, mean) = overloaded(&with(Separation::None, false), Ecn::NotEct);
        assert!(drops > 15_000 && marks == 0, "{drops} {marks}");
        assert!((10..=20).contains(&mean), "{mean}");
    }

    #[test]
    fn each_flow_has_a_probability_of_its_own() {
        let flows = Separation::PerFlow(FlowsParams {
            flows: 4,
            quantum: 1_514,
            levels: PriorityLevels::ONE,
        });
        let (drops, _, mean) = overloaded(&with(flows, false), Ecn::NotEct);
        assert!(drops > 15_000 && (8..=22).contains(&mean), "{drops} {mean}");
    }

    #[test]
    fn frames_are_marked_below_a_tenth_and_dropped_above() {
        let (drops, marks, _) = overloaded(&with(Separation::None, true), Ecn::Ect0);
        assert!(drops > 0 && marks > 0, "{drops} {marks}");
        let (_, marks, _) = overloaded(&with(Separation::None, true), Ecn::NotEct);
        assert_eq!(marks, 0);
    }

    #[test]
    fn a_burst_within_the_allowance_is_not_dropped() {
        let mut state = PieState::new(&params(false));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let backlog = Backlog {
            packets: 1_000,
            bytes: 1_000_000,
        };
        for ms in 0..140 {
            state.delay = Duration::from_millis(ms);
            let mut frame = queued((1_000 + ms) * MS, Ecn::NotEct, 0);
            assert_eq!(state.on_arrival(backlog, &mut frame, &mut random), Ok(()));
        }
    }

    #[test]
    fn a_long_idle_time_forgets_the_probability() {
        let mut state = PieState::new(&params(false));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        state.update(Instant::from_nanos(MS));
        state.probability = ONE;
        let mut frame = queued(10_000_000 * MS, Ecn::NotEct, 0);
        let backlog = Backlog {
            packets: 0,
            bytes: 0,
        };
        assert_eq!(state.on_arrival(backlog, &mut frame, &mut random), Ok(()));
        assert_eq!(state.probability, 0);
    }

    #[test]
    fn a_queue_whose_last_frames_were_dropped_has_no_delay() {
        let mut state = PieState::new(&params(false));
        let waiting = Candidate {
            arrival: Instant::from_nanos(MS),
            bytes_behind: 1_000,
            is_ecn_capable: false,
            is_protected: false,
        };
        state.on_departure(waiting, Instant::from_nanos(100 * MS));
        state.probability = ONE;
        state.on_empty();
        state.update(Instant::from_nanos(10_000_000 * MS));
        assert_eq!(state.probability, 0);
    }

    #[test]
    fn a_shorter_interval_and_burst_are_in_force_with_the_next_frame() {
        let slow = PieParams {
            update: Duration::from_secs(10),
            burst: Duration::from_secs(10),
            ..params(false)
        };
        let mut old = PieState::new(&slow);
        old.allowance = slow.burst;
        old.update(Instant::from_nanos(MS));
        let mut new = PieState::new(&params(false));
        new.resume_from(&old);
        new.delay = Duration::from_millis(100);
        for ms in [2, 18] {
            new.update(Instant::from_nanos(ms * MS));
        }
        assert!(new.probability > 0);
        assert!(new.allowance < params(false).burst);
    }
}
