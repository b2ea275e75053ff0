use super::*;
use crate::frame::Frame;
use proptest::prelude::*;
use slicewise_model::{
    ClassSpec, Colour, FlowQueueSpec, FlowsSpec, PolicySpec, QueueLimitParams, QueueLimitSpec,
    QueueParams, QueueSpec,
};
use slicewise_units::{BitRate, ByteCount, FrameLengths};
use slicewise_wire::{Ecn, TrafficClass};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
/// Bytes a flow may send in a turn by default.
const QUANTUM: u64 = 1514;
/// A frame at 100 Mbit/s.
const FRAME_TIME: u64 = 1514 * 80;

fn params(spec: FlowQueueSpec, packets: u32) -> QueueParams {
    let class = ClassSpec {
        queue: QueueSpec::from(spec).with_limit(Some(QueueLimitSpec::Packets(packets))),
        ..ClassSpec::class_default()
    };
    let policy = PolicySpec {
        name: "p".into(),
        classes: vec![class],
        discipline: slicewise_model::Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    };
    let policy = policy.resolve(BitRate::new(1_000_000_000)).unwrap();
    policy.classes[0].queue.clone()
}

struct Rig {
    queue: FlowQueue,
    pool: FramePool,
    handles: u64,
    dropped: Vec<(u64, DropReason)>,
    /// Flows of frames that were marked.
    marked: Vec<u16>,
}

/// A frame to come.
#[derive(Debug, Clone, Copy)]
struct Offer {
    /// Of 1024.
    flow: u16,
    bytes: u32,
    dscp: u8,
    ecn: Ecn,
}

const fn offer(flow: u16, bytes: u32) -> Offer {
    Offer {
        flow,
        bytes,
        dscp: 0,
        ecn: Ecn::NotEct,
    }
}

impl Rig {
    fn new(spec: FlowQueueSpec, packets: u32) -> Self {
        Self {
            queue: FlowQueue::new(&params(spec, packets)),
            pool: FramePool::with_capacity(packets + 1),
            handles: 0,
            dropped: Vec::new(),
            marked: Vec::new(),
        }
    }

    /// Queues a frame; its handle.
    fn push(&mut self, offer: Offer, now: u64) -> u64 {
        let handle = self.handles;
        self.handles += 1;
        let frame = Frame {
            handle,
            lengths: FrameLengths {
                l2_bytes: offer.bytes,
                l3_offset: 14,
            },
            traffic_class: TrafficClass::new(offer.dscp, offer.ecn),
            colour: Colour::Green,
        };
        let queued = QueuedFrame::new(&frame, 0, Instant::from_nanos(now), offer.flow << 3);
        self.queue.try_enqueue(&mut self.pool, queued).unwrap();
        self.collect();
        handle
    }

    fn pop(&mut self, now: u64) -> Option<QueuedFrame> {
        let queued = self.queue.dequeue(&mut self.pool, Instant::from_nanos(now));
        self.collect();
        if let Some(queued) = queued {
            assert!(!queued.is_marked() || queued.ecn() == Ecn::Ce);
            self.marked
                .extend(queued.is_marked().then_some(queued.flow() >> 3));
        }
        queued
    }

    fn collect(&mut self) {
        let before = self.dropped.len();
        while self.pool.count_dropped().is_some() {}
        while let Some(dropped) = self.pool.poll_dropped() {
            self.dropped.push((dropped.frame.handle, dropped.reason));
        }
        let dropped = (self.dropped.len() - before) as u32;
        assert_eq!(self.queue.take_dropped(), dropped);
    }

    fn handle(&mut self, now: u64) -> Option<u64> {
        self.pop(now).map(|queued| queued.handle())
    }
}

#[test]
fn a_flow_that_sends_little_overtakes_those_that_send_much() {
    let mut rig = Rig::new(FlowQueueSpec::default(), 2000);
    for n in 0..1000 {
        rig.push(offer(n % 10, 1514), 0);
    }
    // The first round of the ten, in which they are new.
    for now in 0..10 {
        rig.pop(now);
    }
    for now in 10..50 {
        rig.pop(now);
        let sparse = rig.push(offer(500 + now as u16, 100), now);
        assert_eq!(rig.handle(now), Some(sparse));
    }
}

#[test]
fn flows_that_always_send_share_within_a_quantum_and_a_frame() {
    let mut rig = Rig::new(FlowQueueSpec::default(), 100_000);
    let sizes = [64u32, 300, 700, 1100, 1514];
    for (flow, &bytes) in (0u16..).zip(&sizes) {
        for _ in 0..600_000 / bytes {
            rig.push(offer(flow, bytes), 0);
        }
    }
    // After every frame, not only at the end: within a round the difference is largest.
    let mut sent: BTreeMap<u16, u64> = (0u16..).zip(&sizes).map(|(flow, _)| (flow, 0)).collect();
    for _ in 0..3_000 {
        let queued = rig.pop(1).unwrap();
        *sent.get_mut(&(queued.flow() >> 3)).unwrap() += u64::from(queued.lengths().l2_bytes);
        let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
        assert!(most - least <= QUANTUM + 1514, "{sent:?}");
    }
    assert!(sent.values().all(|&bytes| bytes > 100_000), "{sent:?}");
}

/// A link of 100 Mbit/s that a flow offers twice as much, and another a tenth: the longest wait
/// of each in its second second, and frames dropped.
fn beside_a_flood(spec: FlowQueueSpec, ecn: Ecn) -> (BTreeMap<u16, u64>, Rig) {
    let mut rig = Rig::new(spec, 20_000);
    let mut longest = BTreeMap::new();
    for n in 0..2 * 1_000 * MS / FRAME_TIME {
        let now = n * FRAME_TIME;
        for _ in 0..2 {
            rig.push(
                Offer {
                    ecn,
                    ..offer(1, 1514)
                },
                now,
            );
        }
        if n % 10 == 0 {
            rig.push(offer(2, 1514), now);
        }
        if let Some(queued) = rig.pop(now)
            && now > 1_000 * MS
        {
            let wait = now - queued.arrival().nanos();
            let longest = longest.entry(queued.flow() >> 3).or_insert(0);
            *longest = wait.max(*longest);
        }
    }
    (longest, rig)
}

#[test]
fn one_flow_s_standing_queue_delays_no_other() {
    let (longest, rig) = beside_a_flood(FlowQueueSpec::default(), Ecn::NotEct);
    assert!(longest[&2] <= FRAME_TIME, "{longest:?}");
    assert!(longest[&1] > 100 * MS, "the flood does stand: {longest:?}");
    assert!(!rig.dropped.is_empty());
    let shared = FlowQueueSpec {
        flows: FlowsSpec {
            flows: Some(1),
            ..FlowsSpec::default()
        },
        ..FlowQueueSpec::default()
    };
    let (longest, _) = beside_a_flood(shared, Ecn::NotEct);
    assert!(longest[&2] > 100 * MS, "in one queue: {longest:?}");
}

#[test]
fn a_full_queue_takes_from_the_flow_with_most_bytes_and_its_oldest() {
    let mut rig = Rig::new(FlowQueueSpec::default(), 100);
    let fat: Vec<u64> = (0..60).map(|_| rig.push(offer(1, 1514), 0)).collect();
    for _ in 0..40 {
        rig.push(offer(2, 500), 0);
    }
    for n in 0..20 {
        rig.push(offer(3 + n, 60), 0);
    }
    let expected: Vec<_> = fat[..20]
        .iter()
        .map(|&h| (h, DropReason::Overlimit))
        .collect();
    assert_eq!(rig.dropped, expected);
    assert_eq!(rig.queue.packets(), 100);
}

#[test]
fn a_frame_that_alone_exceeds_the_limit_is_refused_and_the_only_one_is_never_dropped() {
    let limit = QueueLimitParams {
        bytes: ByteCount::new(1522),
        ..QueueLimitParams::of_packets(9)
    };
    let params = QueueParams {
        limit,
        ..params(FlowQueueSpec::default(), 9)
    };
    let mut rig = Rig::new(FlowQueueSpec::default(), 10);
    rig.queue = FlowQueue::new(&params);
    let first = rig.push(offer(1, 1522), 0);
    let mut frame = rig.pool.get(0).frame();
    frame.lengths.l2_bytes = 1523;
    let long = QueuedFrame::new(&frame, 0, Instant::ZERO, 1 << 3);
    let refused = rig.queue.try_enqueue(&mut rig.pool, long);
    assert_eq!(refused, Err(DropReason::QueueFull));
    rig.queue.set_limit(QueueLimitParams {
        bytes: ByteCount::new(100),
        ..limit
    });
    let second = rig.push(offer(1, 60), 0);
    assert_eq!(rig.dropped, [(first, DropReason::Overlimit)]);
    assert_eq!(rig.handle(0), Some(second));
}

fn two_levels() -> FlowQueueSpec {
    FlowQueueSpec {
        flows: FlowsSpec {
            priority: vec![vec![46], vec![34, 36]],
            ..FlowsSpec::default()
        },
        ..FlowQueueSpec::default()
    }
}

#[test]
fn a_frame_of_a_higher_level_takes_the_place_of_one_that_was_staged() {
    let mut rig = Rig::new(two_levels(), 100);
    let with = |dscp| Offer {
        dscp,
        ..offer(1, 1000)
    };
    let low: Vec<u64> = (0..3).map(|_| rig.push(with(0), 0)).collect();
    let now = Instant::from_nanos(1);
    let staged = rig.queue.stage(&mut rig.pool, now).unwrap();
    assert_eq!(
        rig.queue.stage(&mut rig.pool, now),
        Some(staged),
        "it stays"
    );
    let middle = rig.push(with(36), 1);
    let high = rig.push(with(46), 1);
    let order: Vec<u64> = std::iter::from_fn(|| rig.handle(1)).collect();
    assert_eq!(order, [high, middle, low[0], low[1], low[2]]);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Push(Offer),
    Stage,
    Pop,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let frame = (0u16..6, 60u32..3000, 0usize..4, 0u8..4).prop_map(|(flow, bytes, dscp, ecn)| {
        Step::Push(Offer {
            flow,
            bytes,
            dscp: [0, 34, 36, 46][dscp],
            ecn: Ecn::from_bits(ecn),
        })
    });
    let step = prop_oneof![
        6 => frame,
        1 => Just(Step::Stage),
        4 => Just(Step::Pop),
        3 => (0..60 * MS).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every frame is sent, waits, or was dropped once; those of one flow on one level leave in
    /// order; none but the fattest flow's is dropped for want of room; and while anything waits,
    /// something leaves.
    #[test]
    fn loses_nothing_and_reorders_no_flow(steps in steps(), packets in 1u32..40) {
        let mut rig = Rig::new(two_levels(), packets);
        let mut order: BTreeMap<(u16, usize), u64> = BTreeMap::new();
        let (mut now, mut sent) = (1, 0);
        for step in steps {
            match step {
                Step::Wait(time) => now += time,
                Step::Stage => {
                    let waits = rig.queue.packets() > 0;
                    let staged = rig.queue.stage(&mut rig.pool, Instant::from_nanos(now));
                    rig.collect();
                    prop_assert_eq!(staged.is_some(), waits);
                }
                Step::Push(offer) => {
                    rig.push(offer, now);
                    prop_assert!(rig.queue.packets() <= packets);
                }
                Step::Pop => {
                    let waits = rig.queue.packets() > 0;
                    let queued = rig.pop(now);
                    prop_assert_eq!(queued.is_some(), waits);
                    if let Some(queued) = queued {
                        sent += 1;
                        let level = rig.queue.params.levels.of(queued.dscp());
                        let last = order.insert((queued.flow(), level), queued.handle());
                        prop_assert!(last < Some(queued.handle()));
                    }
                }
            }
            let waiting = u64::from(rig.queue.packets());
            prop_assert_eq!(rig.handles, sent + waiting + rig.dropped.len() as u64);
            let bytes: u64 = rig.queue.flows.iter().map(|flow| u64::from(flow.bytes)).sum();
            let staged = rig.queue.staged.map_or(0, |staged| u64::from(staged.bytes));
            prop_assert_eq!(rig.queue.bytes(), bytes + staged);
            let fattest = rig.queue.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0);
            let found = rig.queue.fattest.find().map_or(0, |id| rig.queue.flows[id as usize].bytes);
            prop_assert!(found * 5 >= fattest * 4, "{} of {}", found, fattest);
        }
        let expected = u64::from(rig.queue.packets());
        let left = std::iter::from_fn(|| rig.queue.pop_unserved(&mut rig.pool)).count() as u64;
        prop_assert_eq!(left, expected, "every dropped frame is returned");
        prop_assert!(rig.queue.flows.iter().all(|flow| flow.bytes == 0));
    }
}
