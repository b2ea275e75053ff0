//! `CoDel` in the flow queue of a slice touches no frame within the guarantee, and controls what is beyond.

use super::rig::{
    Arrival, Conformance, LARGEST_FRAME, Rig, arrival, best_effort, flow_queue, params,
};
use proptest::prelude::*;
use slicewise_dataplane::DropReason;
use slicewise_dataplane::guaranteed::SliceId;
use slicewise_model::{
    DelayRange, FlowQueueParams, FlowQueueSpec, FlowsSpec, GuaranteeParams, GuaranteedParams,
    SliceParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::Ecn;

const LINK: u64 = 10_000_000;
const RATE: u64 = 4_000_000;
const MS: u64 = 1_000_000;

fn guarantee(rate: u64, burst: u64, delay_ms: u64) -> SliceParams {
    SliceParams {
        guarantee: Some(GuaranteeParams {
            rate: BitRate::new(rate),
            burst: ByteCount::new(burst),
            delay: Duration::from_millis(delay_ms),
            smallest_frame: ByteCount::ZERO,
        }),
        ..best_effort(1)
    }
}

/// Two guarantees that together need the whole link, and just pass the admission test: one of 4 Mbit/s for a slice with a flow
/// queue, and one of 6 Mbit/s with a shorter delay.
#[derive(Debug, Clone, Copy)]
struct Edge {
    delays_ms: [u64; 2],
    bursts: [u64; 2],
}

/// Every frame of the slice waits about 40 ms.
const LONG: Edge = Edge {
    delays_ms: [60, 30],
    bursts: [20_000, 30_000],
};
/// Every frame of the slice waits longer than the target and the interval together.
const LONGER: Edge = Edge {
    delays_ms: [300, 150],
    bursts: [120_000, 90_000],
};

struct Link {
    rig: Rig,
    /// The slice with the flow queue.
    own: SliceId,
    accounting: Accounting,
    dropped: Vec<DropReason>,
    largest_backlog: u32,
}

impl Link {
    /// A link that carries 10 Mbit/s, counted by `accounting`, of frames of `bytes`.
    fn new(edge: Edge, own: &SliceParams, accounting: Accounting, bytes: u64) -> Self {
        let queue = flow_queue(FlowQueueSpec::default(), LINK);
        Self::with_queue(edge, own, accounting, bytes, &queue)
    }

    fn with_queue(
        edge: Edge,
        own: &SliceParams,
        accounting: Accounting,
        bytes: u64,
        queue: &FlowQueueParams,
    ) -> Self {
        let delays = edge.delays_ms.map(Duration::from_millis);
        let params = GuaranteedParams {
            accounting,
            largest_frame: ByteCount::new(LARGEST_FRAME + 24),
            delays: DelayRange::new(delays[1], delays[0]),
            ..params(&[1])
        };
        let other = guarantee(6_000_000, edge.bursts[1], edge.delays_ms[1]);
        let link = (LINK * bytes).div_ceil(counted(accounting, bytes));
        let mut rig = Rig::new(&params, &[other, best_effort(1)], link);
        let scheduler = &mut rig.scheduler;
        let own = scheduler.add_flow_queued_slice(own, queue, Instant::ZERO);
        rig.tag = |handle| (0, (handle % 7 * 1_000) as u16);
        Self {
            own: own.unwrap(),
            rig,
            accounting,
            dropped: Vec::new(),
            largest_backlog: 0,
        }
    }

    /// Offer frames of `bytes`: of the slice with the flow queue as early as `own` allows, of the other guaranteed slice as
    /// early as that of `edge` allows, and of best effort more than there is room for.
    fn offer(&mut self, edge: Edge, mut own: Conformance, bytes: u64, from: u64, until: u64) {
        let mut other = Conformance::new(6_000_000, edge.bursts[1]);
        let cost = counted(self.accounting, bytes);
        let mut arrivals = Vec::new();
        for (bucket, slice) in [(&mut own, self.own.index()), (&mut other, 0)] {
            loop {
                let at = bucket.earliest(from, cost);
                if at >= until {
                    break;
                }
                bucket.on_frame(at, cost);
                arrivals.push(arrival(at, slice, bytes));
            }
        }
        let gap = bytes * 800;
        arrivals.extend((from / gap..until / gap).map(|n| arrival(n * gap, 1, bytes)));
        arrivals.sort();
        self.run(&arrivals, until);
    }

    fn run(&mut self, arrivals: &[Arrival], until: u64) {
        for arrival in arrivals {
            self.rig.send_until(arrival.at);
            self.rig.arrive(*arrival).unwrap();
            self.observe();
        }
        self.rig.send_until(until);
        self.observe();
    }

    fn observe(&mut self) {
        let backlog = self.rig.scheduler.slice_backlog(self.own);
        self.largest_backlog = self.largest_backlog.max(backlog);
        while self.rig.pool.count_dropped().is_some() {}
        while let Some(frame) = self.rig.pool.poll_dropped() {
            self.dropped.push(frame.reason);
        }
    }

    /// The longest wait of a frame of the other guaranteed slice, and its bound.
    fn other(&self, edge: Edge) -> (u64, u64) {
        let sent = self.rig.sent.iter().filter(|sent| sent.slice == 0);
        let longest = sent.map(|sent| sent.end - sent.arrival).max();
        (longest.unwrap(), self.bound(edge.delays_ms[1]))
    }

    fn bound(&self, delay_ms: u64) -> u64 {
        delay_ms * MS + self.rig.scheduler.granularity().nanos()
    }

    fn marks(&self) -> usize {
        self.rig.sent.iter().filter(|sent| sent.marked).count()
    }

    /// The longest time from when the slice's first n frames had arrived until n had left, for any n. Frames are of one size.
    fn longest_lag(&self) -> u64 {
        let own = self.own.index();
        let sent = self.rig.sent.iter().filter(|sent| sent.slice == own);
        let ends = sent.clone().map(|sent| sent.end);
        let mut arrivals: Vec<u64> = sent.map(|sent| sent.arrival).collect();
        arrivals.sort_unstable();
        let lags = ends.zip(arrivals).map(|(end, arrival)| end - arrival);
        lags.max().unwrap()
    }
}

fn counted(accounting: Accounting, bytes: u64) -> u64 {
    let lengths = FrameLengths {
        l2_bytes: bytes as u32,
        l3_offset: 14,
    };
    accounting.count(lengths).bytes()
}

fn own(edge: Edge) -> SliceParams {
    guarantee(RATE, edge.bursts[0], edge.delays_ms[0])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_conforming_slice_loses_no_frame_and_gets_no_mark(
        edge in prop::sample::select(vec![LONG, LONGER]),
        accounting in prop::sample::select(vec![Accounting::L1, Accounting::L2, Accounting::L3]),
        bytes in prop::sample::select(vec![60, 300, LARGEST_FRAME]),
        ecn in prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0]),
    ) {
        let mut link = Link::new(edge, &own(edge), accounting, bytes);
        link.rig.ecn = ecn;
        link.offer(edge, Conformance::new(RATE, edge.bursts[0]), bytes, 0, 1_500 * MS);
        let bound = link.bound(edge.delays_ms[0]);
        // Half of the bound is far above the target: otherwise CoDel would have had nothing to drop.
        let lag = link.longest_lag();
        prop_assert!((bound / 2..=bound).contains(&lag), "{lag} of {bound} ns");
        prop_assert_eq!((link.dropped.len(), link.marks()), (0, 0));
        let (longest, bound) = link.other(edge);
        prop_assert!(longest <= bound, "{longest} of {bound} ns");
    }

    /// Frames of all sizes overtake each other by flow and level. That makes none of the slice due before its tokens allow.
    #[test]
    fn a_slice_whose_frames_overtake_each_other_delays_no_other_slice(
        sizes in prop::collection::vec(60..=LARGEST_FRAME, 1..40),
        rate in RATE / 2..3 * RATE,
        seed in 0..100u64,
    ) {
        let levels = FlowQueueSpec { flows: FlowsSpec { priority: vec![vec![46], vec![34]], ..FlowsSpec::default() }, ..FlowQueueSpec::default() };
        let mut link = Link::with_queue(LONG, &own(LONG), Accounting::L2, 1_000, &flow_queue(levels, LINK));
        link.rig.tag = |handle| {
            let mixed = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            ([0, 0, 34, 46][(mixed % 4) as usize], (mixed / 4 % 5 * 1_000) as u16)
        };
        let mut own = Conformance::new(rate, LONG.bursts[0]);
        let mut other = Conformance::new(6_000_000, LONG.bursts[1]);
        let mut arrivals = Vec::new();
        // Both pause now and then, so that they send bursts again.
        for (bucket, slice, pause) in [(&mut own, link.own.index(), 230 + seed), (&mut other, 0, 310)] {
            let mut at = 0;
            for (n, &bytes) in sizes.iter().cycle().enumerate() {
                let waits = if n % 97 == 96 { pause * MS } else { 0 };
                at = bucket.earliest(at + waits, bytes);
                if at >= 2_000 * MS {
                    break;
                }
                bucket.on_frame(at, bytes);
                arrivals.push(arrival(at, slice, bytes));
            }
        }
        // Best effort takes what is left, with frames as long as they may be.
        let gap = LARGEST_FRAME * 1_600;
        arrivals.extend((0..2_000 * MS / gap).map(|n| arrival(n * gap, 1, LARGEST_FRAME)));
        arrivals.sort();
        link.run(&arrivals, 2_000 * MS);
        let (longest, bound) = link.other(LONG);
        prop_assert!(longest <= bound, "{longest} of {bound} ns");
    }
}

/// Ten percent more than the guarantee: without control, 500 kB would wait after ten seconds.
#[test]
fn a_slice_that_sends_too_much_keeps_little_more_than_its_guarantee_allows() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut link = Link::new(LONG, &own(LONG), Accounting::L2, LARGEST_FRAME);
        link.rig.ecn = ecn;
        let excessive = Conformance::new(RATE / 10 * 11, LONG.bursts[0]);
        link.offer(LONG, excessive, LARGEST_FRAME, 0, 10_000 * MS);
        let (longest, bound) = link.other(LONG);
        assert!(longest <= bound, "{longest} of {bound} ns");
        if ecn == Ecn::Ect0 {
            // Marks slow a sender that reacts to them; this one does not.
            assert!(link.marks() > 100 && link.dropped.is_empty());
            continue;
        }
        let protected = LONG.bursts[0] + RATE / 8 * LONG.delays_ms[0] / 1_000;
        let most = u64::from(link.largest_backlog) * LARGEST_FRAME;
        assert!(
            most >= protected && most < 2 * protected,
            "{most} of {protected} B"
        );
        assert!(link.dropped.len() > 100, "{}", link.dropped.len());
        assert!(
            link.dropped
                .iter()
                .all(|&reason| reason == DropReason::CoDel)
        );
    }
}

#[test]
fn a_slice_without_a_guarantee_is_controlled_at_any_backlog() {
    // It gets the 4 Mbit/s that the other leaves, and its queue stands at 20 kB.
    let mut link = Link::new(LONG, &best_effort(65_535), Accounting::L2, LARGEST_FRAME);
    link.offer(
        LONG,
        Conformance::new(RATE, LONG.bursts[0]),
        LARGEST_FRAME,
        0,
        1_500 * MS,
    );
    assert!(link.dropped.len() > 5, "{}", link.dropped.len());
    assert!(
        link.dropped
            .iter()
            .all(|&reason| reason == DropReason::CoDel)
    );
}

#[test]
fn what_is_protected_follows_the_guarantee() {
    let small = guarantee(RATE, 2 * LARGEST_FRAME, LONG.delays_ms[1]);
    let conforming = || Conformance::new(RATE, LONG.bursts[0]);
    let mut link = Link::new(LONG, &small, Accounting::L2, LARGEST_FRAME);
    link.offer(LONG, conforming(), LARGEST_FRAME, 0, 1_000 * MS);
    assert!(!link.dropped.is_empty(), "it has a smaller burst and delay");
    let change = |link: &mut Link, params: &SliceParams, at| {
        let (own, rig) = (link.own, &mut link.rig);
        let now = Instant::from_nanos(at);
        rig.scheduler
            .change_slice(own, params, &rig.pool, now)
            .unwrap();
        link.dropped.clear();
    };
    change(&mut link, &own(LONG), 1_000 * MS);
    link.offer(LONG, conforming(), LARGEST_FRAME, 2_000 * MS, 3_000 * MS);
    assert_eq!(link.dropped, [], "it has the burst and delay that it uses");
    change(&mut link, &small, 3_000 * MS);
    link.offer(LONG, conforming(), LARGEST_FRAME, 4_000 * MS, 5_000 * MS);
    assert!(!link.dropped.is_empty(), "they are small again");
}

#[test]
fn frames_that_wait_when_the_guarantee_shrinks_are_still_protected() {
    let mut link = Link::new(LONGER, &own(LONGER), Accounting::L2, LARGEST_FRAME);
    let conforming = Conformance::new(RATE, LONGER.bursts[0]);
    link.offer(LONGER, conforming, LARGEST_FRAME, 0, 600 * MS);
    let waiting = link.rig.scheduler.slice_backlog(link.own);
    assert!(waiting > 40, "{waiting}");
    let small = guarantee(RATE / 4, 2 * LARGEST_FRAME, LONGER.delays_ms[1]);
    let now = Instant::from_nanos(600 * MS);
    let (own, rig) = (link.own, &mut link.rig);
    rig.scheduler
        .change_slice(own, &small, &rig.pool, now)
        .unwrap();
    // Nothing more comes of the slice.
    let none = Conformance::new(1, 0);
    link.offer(LONGER, none, LARGEST_FRAME, 600 * MS, 1_500 * MS);
    assert_eq!(link.rig.scheduler.slice_backlog(own), 0);
    assert_eq!(link.dropped, []);
}
