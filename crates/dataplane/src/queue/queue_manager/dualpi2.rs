//! `DualPI2`: a queue for ECT(1) frames of scalable congestion controls (L), one for all others (C), and a controller that marks and
//! drops in both so that flows share the rate (RFC 9332, appendix A).
//!
//! Every `update` a proportional-integral controller changes the base probability p' by α·(delay − target) +
//! β·(delay − delay before). Frames of C are dropped, or marked, with probability p'², and frames of L are marked with k·p', or all
//! of them while they wait longer than the step. Where k·p' reaches 1, marks no longer suffice: both queues drop with p'².
//!
//! As in the RFC, no chance decides: each queue adds up the probabilities of its frames, and the frame that completes 1 is chosen.
//! All arithmetic is on integers, so that every machine decides the same.

use super::updates::Updates;
use super::{Candidate, Decision};
use crate::frame::DropReason;
use slicewise_model::queue::DualPi2Params;
use slicewise_units::{Duration, Instant};
use slicewise_wire::Ecn;

/// Number of queues.
pub(in crate::queue) const QUEUES: u32 = 2;
/// Queue of scalable congestion controls.
pub(in crate::queue) const L_QUEUE: u32 = 1;
/// Queue of all others.
const C_QUEUE: u32 = 0;
/// Probability 1: probabilities have 48 bits after the point.
const ONE: i64 = 1 << 48;
/// α = 0.16 and β = 3.2 per second (Linux 6.17, `sch_dualpi2.c`), in units of 1/25.
const ALPHA: i128 = 4;
const BETA: i128 = 80;
const GAIN_UNIT: i128 = 25 * 1_000_000_000;

/// Returns the queue of a frame (RFC 9331, section 5.1: CE may have been ECT(1)).
pub(in crate::queue) const fn queue_of(ecn: Ecn) -> u32 {
    match ecn {
        Ecn::Ect1 | Ecn::Ce => L_QUEUE,
        Ecn::NotEct | Ecn::Ect0 => C_QUEUE,
    }
}

/// State of both queues.
#[derive(Debug, Clone, Copy)]
pub(in crate::queue) struct DualPi2State {
    params: DualPi2Params,
    /// p', of [`ONE`].
    base: i64,
    /// By queue, that of the frame that left last, or zero in an empty queue.
    delays: [Duration; QUEUES as usize],
    /// `prevq`.
    delay_before: Duration,
    /// By queue, sum of the probabilities of its frames since one was chosen, of [`ONE`].
    sums: [i64; QUEUES as usize],
    updates: Updates,
}

impl DualPi2State {
    /// State of unused queues.
    pub(super) const fn new(params: &DualPi2Params) -> Self {
        Self {
            params: *params,
            base: 0,
            delays: [Duration::ZERO; QUEUES as usize],
            delay_before: Duration::ZERO,
            sums: [0; QUEUES as usize],
            updates: Updates::every(params.update),
        }
    }

    /// `dualpi2_dequeue`: decision on a frame of `queue`. The last frame of a queue is not dropped.
    pub(super) fn judge(&mut self, queue: usize, candidate: Candidate, now: Instant) -> Decision {
        for _ in 0..self.updates.take_due(now) {
            self.calculate();
        }
        let delay = now.saturating_since(candidate.arrival);
        let is_last = candidate.bytes_behind == 0;
        self.delays[queue] = if is_last { Duration::ZERO } else { delay };
        let (is_l, coupled) = (queue == L_QUEUE as usize, self.coupled());
        let is_overload = coupled == ONE;
        if is_l && !is_overload {
            // The only frame delays no other: on a slow link, the step would mark each.
            let is_late = !is_last && delay >= self.params.step;
            return match self.chooses(queue, if is_late { ONE } else { coupled }) {
                true => Decision::Mark,
                false => Decision::Send,
            };
        }
        let is_chosen = self.chooses(queue, self.squared());
        let can_mark = candidate.is_ecn_capable;
        if is_chosen && !is_last && (is_overload || !can_mark) {
            Decision::Drop(DropReason::Pie)
        } else if can_mark && (is_chosen || is_l) {
            Decision::Mark
        } else {
            Decision::Send
        }
    }

    /// A queue has become empty without a departure.
    pub(super) const fn on_empty(&mut self, queue: usize) {
        self.delays[queue] = Duration::ZERO;
    }

    /// Continue with the state of `old`.
    pub(super) fn resume_from(&mut self, old: &Self) {
        let mut updates = self.updates;
        updates.resume_from(old.updates);
        *self = Self {
            params: self.params,
            updates,
            ..*old
        };
    }

    /// `p_C`: probability of drops, or of marks in C.
    fn squared(&self) -> i64 {
        let squared = i128::from(self.base) * i128::from(self.base) / i128::from(ONE);
        i64::try_from(squared).unwrap_or(ONE)
    }

    /// `p_CL`: probability of marks in L, at most 1.
    fn coupled(&self) -> i64 {
        let coupled = self.base.saturating_mul(self.params.coupling.into());
        coupled.min(ONE)
    }

    /// `recur`: true for as large a part of the frames as `probability` says.
    const fn chooses(&mut self, queue: usize, probability: i64) -> bool {
        let sum = &mut self.sums[queue];
        *sum += probability;
        let is_chosen = *sum >= ONE;
        if is_chosen {
            *sum -= ONE;
        }
        is_chosen
    }

    /// `dualpi2_update`, with the longer delay of both queues as in appendix A.2.
    fn calculate(&mut self) {
        let nanos = |time: Duration| i128::from(time.nanos());
        let delay = self.delays[0].max(self.delays[1]);
        let error = nanos(delay) - nanos(self.params.target);
        let growth = nanos(delay) - nanos(self.delay_before);
        let change = (ALPHA * error + BETA * growth) * i128::from(ONE) / GAIN_UNIT;
        let base = (i128::from(self.base) + change).clamp(0, i128::from(ONE));
        self.base = i64::try_from(base).unwrap_or(ONE);
        self.delay_before = delay;
    }
}

/// `DualPI2` beside the pseudo-code of RFC 9332, appendix A.2, in floating point.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::queue::{FlowQueue, FramePool, QueuedFrame};
    use proptest::prelude::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use slicewise_model::{Colour, QueueLimitParams, QueueManager, QueueParams};
    use slicewise_units::FrameLengths;
    use slicewise_wire::TrafficClass;
    use std::collections::BTreeMap;

    const MS: u64 = 1_000_000;
    const FRAME: u32 = 1_000;
    /// A frame of [`FRAME`] bytes at 80 Mbit/s.
    const FRAME_TIME: u64 = MS / 10;

    const PARAMS: DualPi2Params = DualPi2Params {
        target: Duration::from_millis(15),
        update: Duration::from_millis(16),
        step: Duration::from_millis(1),
        coupling: 2,
        weight: 15,
    };

    /// The variables of appendix A, in seconds, by queue where there are two: C, then L.
    #[derive(Debug, Default)]
    struct Reference {
        p: f64,
        prevq: f64,
        time: [f64; 2],
        count: [f64; 2],
    }

    impl Reference {
        const K: f64 = 2.0;

        fn dualpi2_update(&mut self) {
            let curq = self.time[0].max(self.time[1]);
            self.p += 0.16 * (curq - 0.015) + 3.2 * (curq - self.prevq);
            self.p = self.p.clamp(0.0, 1.0);
            self.prevq = curq;
        }

        fn recur(&mut self, queue: usize, likelihood: f64) -> bool {
            self.count[queue] += likelihood;
            let is_true = self.count[queue] >= 1.0;
            self.count[queue] -= if is_true { 1.0 } else { 0.0 };
            is_true
        }

        /// `dualpi2_dequeue` once the scheduler has chosen, with p_CL at most 1.
        fn dequeue(&mut self, queue: usize, candidate: Candidate, delay: f64) -> Decision {
            let (p_c, p_cl) = (self.p * self.p, (Self::K * self.p).min(1.0));
            let (p_cmax, p_lmax) = (1.0 / (Self::K * Self::K), 1.0);
            if queue == 1 && p_cl < p_lmax {
                let native = if candidate.bytes_behind > 0 && delay >= 0.001 {
                    1.0
                } else {
                    0.0
                };
                return match self.recur(1, p_cl.max(native)) {
                    true => Decision::Mark,
                    false => Decision::Send,
                };
            }
            let drop = Decision::Drop(DropReason::Pie);
            match (queue, self.recur(queue, p_c)) {
                (1, true) => drop,
                (1, false) => Decision::Mark,
                (_, true) if !candidate.is_ecn_capable || p_c >= p_cmax => drop,
                (_, true) => Decision::Mark,
                (_, false) => Decision::Send,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Over random delays of both queues, with none to two updates before each frame. A case stops where rounding could
        /// decide: where a sum, or k·p', is as good as 1.
        #[test]
        fn follows_the_pseudo_code_of_rfc_9332(
            longest_ms in 1u64..60,
            steps in prop::collection::vec((0u64..3, any::<u16>(), any::<bool>(), any::<bool>(), 0u64..8), 1..400),
        ) {
            let mut state = DualPi2State::new(&PARAMS);
            let mut reference = Reference::default();
            let mut now = 1_000 * MS;
            state.updates.take_due(Instant::from_nanos(now));
            for (updates, delay, is_l, is_ecn_capable, bytes_behind) in steps {
                now += updates * 16 * MS;
                (0..updates).for_each(|_| reference.dualpi2_update());
                let delay = u64::from(delay) * longest_ms * MS / 65_536;
                let candidate = Candidate {
                    arrival: Instant::from_nanos(now - delay),
                    bytes_behind,
                    is_ecn_capable: is_l || is_ecn_capable,
                    is_protected: false,
                };
                let queue = usize::from(is_l);
                if (2.0 * reference.p - 1.0).abs() < 1e-8 {
                    break;
                }
                let decision = state.judge(queue, candidate, Instant::from_nanos(now));
                let expected = reference.dequeue(queue, candidate, delay as f64 / 1e9);
                let probability = state.base as f64 / ONE as f64;
                prop_assert!((probability - reference.p).abs() < 1e-9, "{probability} {}", reference.p);
                let count = reference.count[queue];
                if count < 1e-8 && count > 0.0 || count > 1.0 - 1e-8 {
                    break;
                }
                match (decision, expected) {
                    // The last frame of a queue stays.
                    (Decision::Send | Decision::Mark, Decision::Drop(_)) => prop_assert_eq!(bytes_behind, 0),
                    _ => prop_assert_eq!(decision, expected),
                }
                reference.time[queue] = if bytes_behind > 0 { delay as f64 / 1e9 } else { 0.0 };
            }
        }
    }

    fn queue(packets: u32) -> FlowQueue {
        FlowQueue::new(&QueueParams {
            manager: QueueManager::DualPi2(PARAMS),
            ..QueueParams::tail_drop(QueueLimitParams::of_packets(packets))
        })
    }

    /// Frames of a kind: those that came and those that left, those dropped and marked, and the sum of delays in µs.
    #[derive(Debug, Default)]
    struct Counts {
        sent: u64,
        dropped: BTreeMap<&'static str, u64>,
        marked: u64,
        delays: u64,
    }

    /// Returns the kind of a frame, which its handle is.
    fn kind(handle: u64) -> usize {
        usize::try_from(handle).unwrap()
    }

    /// Frames of each kind come so often in the time in which 20 leave, for 20 s; counted are those of the last 10 s.
    fn offered(queue: &mut FlowQueue, kinds: &[(Ecn, u64)]) -> Vec<Counts> {
        let mut pool = FramePool::with_capacity(100_000);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut counts: Vec<Counts> = kinds.iter().map(|_| Counts::default()).collect();
        for slot in 0..200_000u64 {
            let (at, is_counted) = (1_000 * MS + slot * FRAME_TIME, slot >= 100_000);
            for (number, &(ecn, often)) in kinds.iter().enumerate() {
                for _ in (slot * often / 20)..((slot + 1) * often / 20) {
                    let mut frame = queued(number as u64, ecn, at);
                    let result = queue
                        .admit(&mut frame, &mut random)
                        .and_then(|()| queue.try_enqueue(&mut pool, frame).map(|_| ()));
                    if let (Err(reason), true) = (result, is_counted) {
                        *counts[number].dropped.entry(reason.name()).or_default() += 1;
                    }
                }
            }
            let now = Instant::from_nanos(at + FRAME_TIME);
            let sent = queue.dequeue(&mut pool, now);
            while pool.count_dropped().is_some() {}
            while let Some(dropped) = pool.poll_dropped() {
                let of_kind = &mut counts[kind(dropped.frame.handle)].dropped;
                *of_kind.entry(dropped.reason.name()).or_default() += u64::from(is_counted);
            }
            if let Some(sent) = sent.filter(|_| is_counted) {
                let counts = &mut counts[kind(sent.handle())];
                counts.sent += 1;
                counts.marked += u64::from(sent.is_marked());
                counts.delays += now.saturating_since(sent.arrival()).nanos() / 1_000;
            }
        }
        counts
    }

    fn queued(handle: u64, ecn: Ecn, at: u64) -> QueuedFrame {
        let frame = Frame {
            handle,
            lengths: FrameLengths {
                l2_bytes: FRAME,
                l3_offset: 14,
            },
            traffic_class: TrafficClass::new(0, ecn),
            colour: Colour::Green,
        };
        QueuedFrame::new(&frame, 0, Instant::from_nanos(at), 0)
    }

    /// A tenth too much is offered to C: p'² has to be 1/11.
    #[test]
    fn the_delay_of_an_overloaded_classic_queue_comes_close_to_the_target() {
        let [classic] = &offered(&mut queue(50_000), &[(Ecn::NotEct, 22)])[..] else {
            panic!("one kind");
        };
        let mean = classic.delays / classic.sent;
        assert!((14_000..=16_000).contains(&mean), "{mean} µs");
        let dropped = classic.dropped["pie"];
        assert!((9_500..=10_500).contains(&dropped), "{dropped}");
    }

    /// The same where frames can be marked: nobody answers to marks, so p' grows to where they stop.
    #[test]
    fn frames_of_the_classic_queue_are_dropped_only_if_marks_do_not_suffice() {
        let mut mild = queue(50_000);
        let [l, classic] = &offered(&mut mild, &[(Ecn::Ect1, 5), (Ecn::Ect0, 10)])[..] else {
            panic!("two kinds");
        };
        assert_eq!((l.dropped.len(), classic.dropped.len()), (0, 0));
        let [classic] = &offered(&mut queue(50_000), &[(Ecn::Ect0, 22)])[..] else {
            panic!("one kind");
        };
        assert!(classic.dropped["pie"] > 9_000, "{classic:?}");
    }

    /// C is offered a tenth too much beside L, whose frames overtake it and are marked with k·p', p' = √(drops of C).
    #[test]
    fn marks_of_the_low_latency_queue_are_coupled_to_drops_of_the_other() {
        let [l, classic] = &offered(&mut queue(50_000), &[(Ecn::Ect1, 10), (Ecn::NotEct, 11)])[..]
        else {
            panic!("two kinds");
        };
        let p_c = classic.dropped["pie"] as f64 / (classic.dropped["pie"] + classic.sent) as f64;
        let p_l = l.marked as f64 / l.sent as f64;
        assert!(l.dropped.is_empty() && p_c > 0.05, "{p_c}");
        assert!((p_l - 2.0 * p_c.sqrt()).abs() < 0.02, "{p_l} {p_c}");
        assert!(l.delays / l.sent < 1_000, "{} µs", l.delays / l.sent);
        assert!(classic.delays / classic.sent > 10_000);
    }

    /// Both are offered twice the rate.
    #[test]
    fn under_overload_both_queues_drop_and_the_classic_one_keeps_its_share() {
        let [l, classic] = &offered(&mut queue(5_000), &[(Ecn::Ect1, 40), (Ecn::NotEct, 40)])[..]
        else {
            panic!("two kinds");
        };
        assert!(l.dropped.contains_key("pie") && classic.dropped.contains_key("pie"));
        let share = l.sent / classic.sent;
        assert!((14..=16).contains(&share), "{share}");
    }

    #[test]
    fn frames_of_the_low_latency_queue_are_marked_from_the_step_on() {
        let mut queue = queue(1_000);
        let mut pool = FramePool::with_capacity(1_000);
        for handle in 0..21 {
            let frame = queued(handle, Ecn::Ect1, 1_000 * MS);
            queue.try_enqueue(&mut pool, frame).unwrap();
        }
        for frames in 1..=21 {
            let now = Instant::from_nanos(1_000 * MS + frames * FRAME_TIME);
            let sent = queue.dequeue(&mut pool, now).unwrap();
            // The last one has nobody behind it.
            assert_eq!(sent.is_marked(), (10..21).contains(&frames), "{frames}");
        }
    }

    #[test]
    fn both_queues_have_a_limit_at_their_end_together() {
        let mut queue = queue(4);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut pool = FramePool::with_capacity(10);
        let mut arrive = |handle, ecn| {
            let mut frame = queued(handle, ecn, 1_000 * MS);
            queue.admit(&mut frame, &mut random)?;
            queue.try_enqueue(&mut pool, frame)
        };
        for (handle, ecn) in (0..).zip([Ecn::Ect1, Ecn::NotEct, Ecn::Ce, Ecn::Ect0]) {
            arrive(handle, ecn).unwrap();
        }
        for ecn in [Ecn::Ect1, Ecn::NotEct] {
            assert_eq!(arrive(9, ecn), Err(DropReason::QueueFull));
        }
        let left = std::iter::from_fn(|| queue.dequeue(&mut pool, Instant::from_nanos(1_001 * MS)));
        let mut handles: Vec<_> = left.map(|frame| frame.handle()).collect();
        handles.sort_unstable();
        assert_eq!(handles, [0, 1, 2, 3]);
    }

    #[test]
    fn a_changed_queue_goes_on_with_its_probability() {
        let mut old = queue(50_000);
        offered(&mut old, &[(Ecn::NotEct, 22)]);
        let mut new = queue(50_000);
        new.resume_from(&old);
        let mut pool = FramePool::with_capacity(10);
        for handle in 0..8 {
            let frame = queued(handle, Ecn::Ect1, 30_000 * MS);
            new.try_enqueue(&mut pool, frame).unwrap();
        }
        let left = std::iter::from_fn(|| new.dequeue(&mut pool, Instant::from_nanos(30_000 * MS)));
        // k·p' = 2·√(1/11) = 0.6.
        assert!(left.filter(QueuedFrame::is_marked).count() >= 2);
    }
}
