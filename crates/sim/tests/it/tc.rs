//! Linux traffic control: one frame taken ahead of time, and a token bucket for a link.
use crate::support::{headers, policy, vlan_class};
use proptest::prelude::*;
use slicewise_dataplane::{DropReason, Frame, Verdict};
use slicewise_model::{
    ClassSpec, Colour, Discipline, PolicyParams, PolicySpec, PrioritySpec, QueueLimitSpec, Rate,
    RateSpec, ShaperSpec,
};
use slicewise_sim::device::Forwarding;
use slicewise_sim::device::tc::Tc;
use slicewise_units::{Accounting, BitRate, ByteCount, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

const LINK: Rate = Rate {
    rate: BitRate::new(100_000_000),
    accounting: Accounting::L2,
};
const LARGEST: u64 = 1_500;
/// What a byte lasts on the link, ns.
const BYTE_NS: u64 = 80;
const VOICE: u16 = 10;
const BULK: u16 = 20;

/// Strict priority for voice.
fn disciplines() -> PolicyParams {
    let mut voice = vlan_class("voice", VOICE);
    voice.priority = Some(PrioritySpec {
        level: 1,
        rate: None,
        burst: None,
        accounting: Accounting::L2,
    });
    policy(vec![voice]).resolve(LINK.rate).unwrap()
}

fn tc() -> Tc {
    Tc::new(disciplines(), LINK, ByteCount::new(LARGEST), 1).unwrap()
}

fn offer(plane: &mut impl Forwarding, handle: u64, (vlan, bytes): (u16, u32), nanos: u64) {
    let frame = Frame {
        handle,
        lengths: FrameLengths {
            l2_bytes: bytes,
            l3_offset: 18,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    };
    let now = Instant::from_nanos(nanos);
    assert_eq!(plane.on_frame(frame, &headers(vlan), now), Verdict::Queued);
}

/// Everything that leaves until `end`, polled at the times that the plane names.
fn departures(plane: &mut impl Forwarding, from: u64, end: u64) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    let mut now = Instant::from_nanos(from);
    while plane.poll_at() != Instant::MAX {
        now = now.max(plane.poll_at());
        if now.nanos() > end {
            break;
        }
        match plane.poll_egress(now) {
            Some(packet) => left.push((packet.id().into(), now.nanos())),
            None => assert!(plane.poll_at() > now, "asked in vain"),
        }
    }
    left
}

#[test]
fn a_priority_frame_waits_for_the_frame_taken_before_it_came_and_for_no_other() {
    let mut tc = tc();
    for handle in 0..4 {
        offer(&mut tc, handle, (BULK, 1_500), 0);
    }
    // The bucket is full, and pays for one frame.
    assert_eq!(departures(&mut tc, 0, 0), [(0, 0)]);
    offer(&mut tc, 9, (VOICE, 100), 10_000);
    let bulk = 1_500 * BYTE_NS;
    let voice = 100 * BYTE_NS;
    assert_eq!(
        departures(&mut tc, 10_000, u64::MAX),
        [
            (1, bulk),
            (9, bulk + voice),
            (2, 2 * bulk + voice),
            (3, 3 * bulk + voice)
        ]
    );
}

#[test]
fn a_frame_is_taken_as_it_arrives_even_while_the_transmitter_is_busy() {
    let mut tc = tc();
    offer(&mut tc, 1, (BULK, 1_500), 1_000);
    // Nobody asks for a frame in between.
    offer(&mut tc, 2, (VOICE, 100), 2_000);
    let voice = 100 * BYTE_NS;
    assert_eq!(
        departures(&mut tc, 3_000, u64::MAX),
        [(1, 3_000), (2, 3_000 + voice)]
    );
}

#[test]
fn a_frame_that_nothing_precedes_leaves_at_once() {
    let mut tc = tc();
    offer(&mut tc, 1, (VOICE, 100), 5_000);
    assert_eq!(departures(&mut tc, 5_000, u64::MAX), [(1, 5_000)]);
    assert_eq!(tc.poll_at(), Instant::MAX);
}

#[test]
fn frames_that_waited_leave_one_after_another_at_the_rate() {
    let mut tc = tc();
    for handle in 0..20 {
        offer(&mut tc, handle, (BULK, 1_000), 0);
    }
    let expected: Vec<(u64, u64)> = (0..20)
        .map(|handle| {
            let bytes: u64 = (handle + 1) * 1_000;
            (handle, bytes.saturating_sub(LARGEST) * BYTE_NS)
        })
        .collect();
    assert_eq!(departures(&mut tc, 0, u64::MAX), expected);
}

/// How many of five frames of 1,000 bytes that come at once have room: the bucket pays for one, and the next is held.
fn accepted(policy: PolicySpec) -> usize {
    let params = policy.resolve(LINK.rate).unwrap();
    let mut tc = Tc::new(params, LINK, ByteCount::new(1_000), 1).unwrap();
    let mut accepted = 0;
    for handle in 0..6 {
        let frame = Frame {
            handle,
            lengths: FrameLengths {
                l2_bytes: 1_000,
                l3_offset: 18,
            },
            traffic_class: TrafficClass::DEFAULT,
            colour: Colour::Green,
        };
        let verdict = tc.on_frame(frame, &headers(BULK), Instant::ZERO);
        if handle == 0 {
            assert_eq!(departures(&mut tc, 0, 0), [(0, 0)]);
            continue;
        }
        match verdict {
            Verdict::Queued => accepted += 1,
            Verdict::Dropped(reason) => assert_eq!(reason, DropReason::QueueFull),
        }
    }
    accepted
}

#[test]
fn a_single_queue_goes_on_holding_the_next_frame_and_a_scheduler_gives_it_away() {
    let three = || {
        let mut default = ClassSpec::class_default();
        default.queue.limit = Some(QueueLimitSpec::Packets(3));
        default
    };
    let fifo = PolicySpec {
        discipline: Discipline::Fifo,
        ..policy(vec![three()])
    };
    assert_eq!(accepted(fifo), 3);
    assert_eq!(accepted(policy(vec![three()])), 3);
    assert_eq!(
        accepted(policy(vec![vlan_class("voice", VOICE), three()])),
        4
    );
}

#[test]
fn a_shaper_counts_what_the_link_counts() {
    let shape = |accounting| {
        let mut bulk = vlan_class("bulk", BULK);
        bulk.shape = Some(ShaperSpec {
            rate: RateSpec::Absolute(BitRate::new(8_000_000)),
            committed_burst_bits: Some(16_000.into()),
            excess_burst_bits: None,
            peak: false,
            accounting,
        });
        let link = Rate {
            accounting: Accounting::L3,
            ..LINK
        };
        let params = policy(vec![bulk]).resolve(LINK.rate).unwrap();
        let mut tc = Tc::new(params, link, ByteCount::new(LARGEST), 1).unwrap();
        for handle in 0..10 {
            offer(&mut tc, handle, (BULK, 1_018), 0);
        }
        departures(&mut tc, 0, u64::MAX).pop()
    };
    // The bucket pays for two IP packets of 1,000 bytes, and each of the others takes a millisecond.
    assert_eq!(shape(Accounting::L2), Some((9, 8_000_000)));
    assert_eq!(shape(Accounting::L3), shape(Accounting::L2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Never more than the bucket and the rate allow, whatever comes when; nothing is lost or left.
    #[test]
    fn what_leaves_is_within_the_bucket_and_complete(
        frames in prop::collection::vec((0u64..200_000, any::<bool>(), 60u32..1_501), 1..100),
    ) {
        let mut tc = tc();
        let (mut left, mut now, mut offered) = (Vec::new(), 0, Vec::new());
        for (handle, (gap, is_voice, bytes)) in (0u64..).zip(frames) {
            left.extend(departures(&mut tc, now, now + gap));
            now += gap;
            offered.push(u64::from(bytes));
            offer(&mut tc, handle, (if is_voice { VOICE } else { BULK }, bytes), now);
        }
        left.extend(departures(&mut tc, now, u64::MAX));
        prop_assert_eq!(left.len(), offered.len());
        for (index, (_, from)) in left.iter().enumerate() {
            let mut bytes = 0;
            for (handle, at) in &left[index..] {
                bytes += offered[usize::try_from(*handle).unwrap()];
                prop_assert!(bytes * BYTE_NS <= LARGEST * BYTE_NS + (at - from) + 1);
            }
        }
    }
}
