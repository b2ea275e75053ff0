//! Slices change and go while frames flow: what becomes of their tokens and frames.

use super::rig::{LARGEST_FRAME, Rig, arrival, best_effort, guaranteed, params, with_maximum};
use slicewise_dataplane::guaranteed::SliceId;
use slicewise_model::{QueueLimitParams, SliceParams};
use slicewise_units::{ByteCount, Duration, Instant};

const LINK: u64 = 1_000_000_000;

#[test]
fn a_removed_slice_is_not_held_up_by_its_maximum() {
    for guarantee in [false, true] {
        let mut slow = best_effort(1);
        if guarantee {
            slow = guaranteed(1_000, 2 * LARGEST_FRAME, Duration::from_millis(1));
        }
        let slow = with_maximum(slow, 1_000, 2 * LARGEST_FRAME);
        let mut rig = Rig::new(&params(&[1]), &[slow], LINK);
        rig.arrive_all([arrival(0, 0, 1000); 60]);
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
    rig.arrive_all([arrival(0, 0, LARGEST_FRAME); 3]);
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
