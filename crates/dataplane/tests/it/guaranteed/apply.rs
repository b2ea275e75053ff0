//! Slices come, change and go while frames flow: nothing is lost and nothing is reordered.

use super::rig::{LARGEST_FRAME, Rig, arrival, best_effort, guaranteed, params, with_maximum};
use proptest::prelude::*;
use slicewise_dataplane::DropReason;
use slicewise_dataplane::guaranteed::{Removal, SliceError, SliceId};
use slicewise_model::{QueueLimitParams, SliceParams};
use slicewise_units::{ByteCount, Duration, Instant};

const LINK: u64 = 1_000_000_000;

fn slice(kind: u8, weight: u32) -> SliceParams {
    let objective = Duration::from_micros(100 << (kind % 4));
    match kind % 4 {
        0 => best_effort(weight),
        1 => guaranteed(10_000_000, 3 * LARGEST_FRAME, objective),
        2 => with_maximum(best_effort(weight), 50_000_000, 2 * LARGEST_FRAME),
        _ => with_maximum(
            guaranteed(20_000_000, 2 * LARGEST_FRAME, objective),
            40_000_000,
            2 * LARGEST_FRAME,
        ),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Frame { slice: u32, bytes: u64 },
    Add { kind: u8, weight: u32 },
    Change { slice: u32, kind: u8, weight: u32 },
    Remove { slice: u32 },
    Pass { nanos: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u32..6, 60u64..=LARGEST_FRAME).prop_map(|(slice, bytes)| Step::Frame { slice, bytes }),
        1 => (any::<u8>(), 1u32..4).prop_map(|(kind, weight)| Step::Add { kind, weight }),
        2 => (0u32..6, any::<u8>(), 1u32..4)
            .prop_map(|(slice, kind, weight)| Step::Change { slice, kind, weight }),
        1 => (0u32..6).prop_map(|slice| Step::Remove { slice }),
        3 => (0u64..200_000).prop_map(|nanos| Step::Pass { nanos }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_sequence_of_changes_and_frames_keeps_every_frame(
        steps in prop::collection::vec(step(), 1..300)
    ) {
        let initial: Vec<SliceParams> = (0..4).map(|kind| slice(kind, 1)).collect();
        let mut rig = Rig::new(&params(&[1]), &initial, LINK);
        let mut now = 0;
        let mut accepted = 0;
        for step in steps {
            let at = Instant::from_nanos(now);
            match step {
                Step::Frame { slice, bytes } => {
                    match rig.arrive(arrival(now, slice, bytes)) {
                        Ok(()) => accepted += 1,
                        Err(reason) => prop_assert_eq!(reason, DropReason::SliceRemoved),
                    }
                }
                Step::Add { kind, weight } => {
                    rig.scheduler.add_slice(&slice(kind, weight), at).unwrap();
                }
                Step::Change { slice: id, kind, weight } => {
                    let id = SliceId::new(id);
                    let changed =
                        rig.scheduler.change_slice(id, &slice(kind, weight), &rig.pool, at);
                    prop_assert!(matches!(changed, Ok(()) | Err(SliceError::Unknown(_))));
                }
                Step::Remove { slice } => {
                    let waiting = rig.scheduler.slice_backlog(SliceId::new(slice));
                    match rig.scheduler.remove_slice(SliceId::new(slice), at) {
                        Ok(Removal::Gone) => prop_assert_eq!(waiting, 0),
                        Ok(Removal::Draining { packets }) => prop_assert_eq!(packets, waiting),
                        Err(error) => prop_assert_eq!(error, SliceError::Unknown(slice)),
                    }
                }
                Step::Pass { nanos } => {
                    now += nanos;
                    rig.send_until(now);
                }
            }
        }
        rig.send_until(u64::MAX);
        prop_assert_eq!(rig.sent.len(), accepted);
        prop_assert_eq!(rig.scheduler.backlog(), 0);
        rig.assert_in_order();
    }
}

#[test]
fn a_removed_slice_sends_its_backlog_and_accepts_no_more() {
    let slices = [
        guaranteed(10_000_000, 2 * LARGEST_FRAME, Duration::from_millis(1)),
        best_effort(1),
    ];
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    let frame = |slice| arrival(0, slice, 1000);
    for _ in 0..5 {
        rig.arrive(frame(0)).unwrap();
    }
    let id = SliceId::new(0);
    assert_eq!(
        rig.scheduler.remove_slice(id, Instant::ZERO),
        Ok(Removal::Draining { packets: 5 })
    );
    assert_eq!(rig.arrive(frame(0)), Err(DropReason::SliceRemoved));
    assert_eq!(
        rig.scheduler.remove_slice(id, Instant::ZERO),
        Err(SliceError::Unknown(0))
    );
    rig.send_until(u64::MAX);
    assert_eq!(rig.sent.len(), 5);
    assert_eq!(rig.scheduler.slices(), 1);
    // Its number is free again.
    let again = rig
        .scheduler
        .add_slice(&best_effort(1), Instant::ZERO)
        .unwrap();
    assert_eq!(again, id);
}

#[test]
fn a_removed_slice_is_not_held_up_by_its_maximum() {
    for guarantee in [false, true] {
        let mut slow = best_effort(1);
        if guarantee {
            slow = guaranteed(1_000, 2 * LARGEST_FRAME, Duration::from_millis(1));
        }
        let slow = with_maximum(slow, 1_000, 2 * LARGEST_FRAME);
        let mut rig = Rig::new(&params(&[1]), &[slow], LINK);
        for _ in 0..60 {
            let frame = arrival(0, 0, 1000);
            rig.arrive(frame).unwrap();
        }
        rig.send_until(1_000_000_000);
        assert!(rig.sent.len() < 6, "its maximum holds it up");
        let now = Instant::from_nanos(1_000_000_000);
        let _ = rig.scheduler.remove_slice(SliceId::new(0), now).unwrap();
        rig.send_until(2_000_000_000);
        assert_eq!(rig.sent.len(), 60, "guarantee {guarantee}");
        rig.assert_in_order();
    }
}

#[test]
fn a_frame_longer_than_the_largest_frame_is_rejected() {
    let mut rig = Rig::new(&params(&[1]), &[best_effort(1)], LINK);
    let frame = arrival(0, 0, LARGEST_FRAME + 1);
    assert_eq!(rig.arrive(frame), Err(DropReason::FrameTooLong));
}

#[test]
fn a_slice_of_an_unknown_tenant_is_rejected() {
    let mut rig = Rig::new(&params(&[1]), &[], LINK);
    let stranger = SliceParams {
        tenant: 1,
        ..best_effort(1)
    };
    let refused = rig.scheduler.add_slice(&stranger, Instant::ZERO);
    assert_eq!(refused, Err(SliceError::UnknownTenant(1)));
}

#[test]
fn credit_above_a_smaller_burst_is_forfeited_and_debt_stays() {
    // Had the change filled the bucket again, more than the two bursts would leave before the
    // rate has earned anything.
    let before = with_maximum(best_effort(1), 1_000_000, 8 * LARGEST_FRAME);
    let mut rig = Rig::new(&params(&[1]), &[before], LINK);
    rig.arrive_all([arrival(0, 0, LARGEST_FRAME); 40]);
    rig.send_until(500_000);
    assert_eq!(rig.sent.len(), 8);
    let after = with_maximum(best_effort(1), 1_000_000, 4 * LARGEST_FRAME);
    let at = Instant::from_nanos(500_000);
    rig.scheduler
        .change_slice(SliceId::new(0), &after, &rig.pool, at)
        .unwrap();
    rig.send_until(1_000_000);
    assert_eq!(rig.sent.len(), 8);
}

#[test]
fn a_frame_that_costs_more_than_a_reduced_burst_still_leaves() {
    let before = with_maximum(best_effort(1), 1_000_000, LARGEST_FRAME);
    let mut rig = Rig::new(&params(&[1]), &[before], LINK);
    for _ in 0..3 {
        let frame = arrival(0, 0, LARGEST_FRAME);
        rig.arrive(frame).unwrap();
    }
    rig.send_until(1_000);
    let after = with_maximum(best_effort(1), 1_000_000, 100);
    let at = Instant::from_nanos(1_000);
    rig.scheduler
        .change_slice(SliceId::new(0), &after, &rig.pool, at)
        .unwrap();
    rig.send_until(u64::MAX);
    assert_eq!(rig.sent.len(), 3);
}

#[test]
fn tokens_are_earned_at_the_rate_of_their_time() {
    // Full again after 1 ms; a lower rate afterwards does not take that back.
    let delay = Duration::from_millis(1);
    let before = guaranteed(100_000_000, 8 * LARGEST_FRAME, delay);
    let after = guaranteed(1_000_000, 8 * LARGEST_FRAME, delay);
    let mut rig = Rig::new(&params(&[1]), &[before, best_effort(60_000)], LINK);
    let burst = |at| (0..8).map(move |_| arrival(at, 0, LARGEST_FRAME));
    rig.arrive_all(burst(0));
    rig.send_until(5_000_000);
    let at = Instant::from_nanos(5_000_000);
    rig.scheduler
        .change_slice(SliceId::new(0), &after, &rig.pool, at)
        .unwrap();
    rig.arrive_all(burst(5_000_000));
    rig.send_until(u64::MAX);
    assert!(rig.sent.iter().all(|sent| sent.guaranteed));
}

#[test]
fn a_changed_weight_counts_from_the_next_turn() {
    let mut rig = Rig::new(&params(&[1]), &[best_effort(1), best_effort(1)], LINK);
    for _ in 0..100 {
        for slice in 0..2 {
            rig.arrive(arrival(0, slice, 1000)).unwrap();
        }
    }
    let heavier = best_effort(3);
    rig.scheduler
        .change_slice(SliceId::new(1), &heavier, &rig.pool, Instant::ZERO)
        .unwrap();
    // 80 frames of 8 µs.
    rig.send_until(640_000);
    let of_second = rig.sent.iter().filter(|sent| sent.slice == 1).count();
    assert!((57..=63).contains(&of_second), "{of_second} of 80");
}

#[test]
fn a_queue_is_full_by_packets_or_by_bytes() {
    let limited = |packets, bytes| SliceParams {
        queue_limit: QueueLimitParams {
            packets,
            bytes: ByteCount::new(bytes),
            hysteresis: 0,
        },
        ..best_effort(1)
    };
    let mut rig = Rig::new(
        &params(&[1]),
        &[limited(10, 2_500), limited(2, 9_000)],
        LINK,
    );
    let mut taken = |slice| {
        let frame = arrival(0, slice, 1000);
        (0..10).filter(|_| rig.arrive(frame).is_ok()).count()
    };
    assert_eq!((taken(0), taken(1)), (2, 2));
}

#[test]
fn a_changed_slice_that_waits_for_tokens_keeps_its_guarantee() {
    let promised = guaranteed(10_000_000, LARGEST_FRAME, Duration::from_millis(5));
    let mut rig = Rig::new(&params(&[1]), &[promised, best_effort(10_000)], 100_000_000);
    for slice in [0, 1] {
        rig.arrive_all([arrival(0, slice, 1500); 500]);
    }
    rig.send_until(5_000_000);
    let at = Instant::from_nanos(5_000_000);
    rig.scheduler
        .change_slice(SliceId::new(0), &promised, &rig.pool, at)
        .unwrap();
    rig.send_until(45_000_000);
    let sent = rig.sent.iter().filter(|sent| sent.slice == 0).count();
    // 45 ms at 10 Mbit/s are 37 frames of 1,500 B.
    assert!((35..=40).contains(&sent), "{sent}");
}
