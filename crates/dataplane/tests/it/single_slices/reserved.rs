//! What slices give up stays reserved until no deadline of another depends on it.

use super::kept::replace;
use super::*;

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// How long a frame of 1,500 bytes takes on the link, ns.
pub(super) const FRAME: u64 = 1_200_000;

/// Frames of 1,500 bytes at once.
pub(super) fn burst(port: &mut Port, vlan: u16, frames: u32) {
    for _ in 0..frames {
        let at = port.now();
        let bytes = 1_500;
        let verdict = port.offer(arrival(at, vlan, bytes));
        assert_eq!(verdict, Verdict::Queued);
    }
}

/// Slices, and one of VLAN 9 that has sent its burst just now: its frames wait under its guarantee for 12 ms.
fn busy(slices: &[(RangeInclusive<u16>, Kind)]) -> Port {
    let patient = guaranteed(100, 15_000, ms(90));
    let mut port = Port::new(&spec(&[slices, &[(9..=9, patient)]].concat()), Some(LINK));
    burst(&mut port, 9, 10);
    port
}

/// Just after the last of those frames has begun to leave.
const IDLE: u64 = 9 * FRAME + 1;

/// By when frames of a slice have left that come now, and are within its guarantee.
fn due(port: &Port, delay: Duration) -> u64 {
    port.now() + delay.nanos()
}

/// When the last frame of a VLAN has left, after all others have.
fn last_of(port: &mut Port, vlan: u16) -> u64 {
    port.run_until(u64::MAX / 2);
    let left = port.departures.iter().filter(|left| left.vlan == vlan);
    left.map(|left| left.at + FRAME).max().unwrap()
}

/// The VLANs of all frames that leave after some first ones, in their order.
fn order_after(port: &mut Port, first: usize) -> Vec<u16> {
    port.run_until(u64::MAX / 2);
    let after = &port.departures[first..];
    after.iter().map(|left| left.vlan).collect()
}

fn repeat(port: &mut Port, change: &SliceChange) {
    while let Err(error) = apply(port, change.clone()) {
        assert!(error.is_temporary(), "{error}");
        let later = port.now() + FRAME;
        port.run_until(later);
    }
}

/// A slice sends its burst beside another's, which has a longer delay. When it has gone, another comes in its place, or the same
/// one again, and sends its burst, too.
fn come_after_another(go: SliceChange, come: &SliceChange, vlan: u16) {
    let short = guaranteed(100, 9_000, ms(10));
    let long = guaranteed(100, 48_000, ms(50));
    let mut port = Port::new(&spec(&[(1..=1, short), (2..=2, long)]), Some(LINK));
    burst(&mut port, 1, 6);
    burst(&mut port, 2, 32);
    let due = due(&port, ms(50));
    port.run_until(8 * FRAME);
    apply(&mut port, go).unwrap();
    repeat(&mut port, come);
    burst(&mut port, vlan, 6);
    assert!(last_of(&mut port, 2) <= due);
}

#[test]
fn a_slice_that_comes_after_another_delays_no_frame_that_waited_for_that_one() {
    let short = guaranteed(100, 9_000, ms(10));
    come_after_another(remove(&(1..=1)), &add(&(3..=3), short), 3);
}

#[test]
fn a_guarantee_that_comes_back_delays_no_frame_that_waited_for_the_one_before() {
    let short = guaranteed(100, 9_000, ms(10));
    come_after_another(change(&(1..=1), BEST_EFFORT), &change(&(1..=1), short), 1);
}

/// What a commit changes is not tested beside what was reserved before; what comes after it waits until that does not count.
#[test]
fn a_slice_that_comes_after_a_commit_delays_no_frame_that_waited_then() {
    let short = guaranteed(100, 9_000, ms(10));
    let long = guaranteed(100, 48_000, ms(50));
    let both = [(1..=1, short), (2..=2, long)];
    for is_removed_before in [false, true] {
        let mut port = Port::new(&spec(&both), Some(LINK));
        burst(&mut port, 1, 6);
        burst(&mut port, 2, 32);
        let due = due(&port, ms(50));
        port.run_until(8 * FRAME);
        if is_removed_before {
            apply(&mut port, remove(&(1..=1))).unwrap();
        }
        replace(&mut port, &spec(&both[1..])).unwrap();
        let more = Kind {
            cir: Some(200),
            ..long
        };
        let raise = apply(&mut port, change(&(2..=2), more)).unwrap_err();
        assert!(raise.is_temporary(), "{raise}");
        apply(&mut port, change(&(2..=2), long)).unwrap();
        repeat(&mut port, &add(&(3..=3), short));
        burst(&mut port, 3, 6);
        assert!(last_of(&mut port, 2) <= due, "{is_removed_before}");
    }
}

/// Frames of a class that is gone are sent before all others.
#[test]
fn a_slice_that_comes_after_a_commit_waits_for_no_frames_of_classes_that_are_gone() {
    let prompt = guaranteed(100, 9_000, ms(10));
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    burst(&mut port, 1, 30);
    replace(&mut port, &spec(&[])).unwrap();
    let refused = apply(&mut port, add(&(3..=3), prompt)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "slice `vlan3-3`: frames wait from before the policy was put in force: repeat it when they have left"
    );
    repeat(&mut port, &add(&(3..=3), prompt));
    burst(&mut port, 3, 6);
    let due = due(&port, ms(10));
    assert!(last_of(&mut port, 3) <= due);
}

/// They have let others be sent first that would have been due later than they; so have those that come behind them.
#[test]
fn frames_that_wait_for_a_longer_delay_claim_no_shorter_one() {
    let slow = guaranteed(100, 30_022, ms(69));
    let middle = guaranteed(100, 22_522, ms(58));
    for (before, after, at) in [(20, 0, ms(26)), (10, 10, ms(31))] {
        let mut port = Port::new(&spec(&[(3..=3, slow), (4..=4, middle)]), Some(LINK));
        burst(&mut port, 3, before);
        port.run_until(1);
        burst(&mut port, 4, 15);
        port.run_until(ms(5).nanos());
        let faster = Kind {
            delay: ms(35),
            ..slow
        };
        apply(&mut port, change(&(3..=3), faster)).unwrap();
        burst(&mut port, 3, after);
        port.run_until(at.nanos());
        let prompt = guaranteed(100, 6_022, ms(9));
        apply(&mut port, add(&(1..=1), prompt)).unwrap();
        burst(&mut port, 1, 4);
        let due = due(&port, ms(9));
        assert!(last_of(&mut port, 1) <= due, "{after} frames");
    }
}

/// Otherwise a shorter delay would make them later.
#[test]
fn frames_that_wait_when_the_delay_becomes_shorter_keep_the_one_that_they_had() {
    let busy = guaranteed(100, 42_022, ms(49));
    let of = |delay| guaranteed(100, 6_022, ms(delay));
    for by_flow in [false, true] {
        let changed = Kind { by_flow, ..of(82) };
        let slices = [(1..=1, changed), (2..=2, of(98)), (3..=3, busy)];
        let mut port = Port::new(&spec(&slices), Some(LINK));
        for (vlan, frames) in [(3, 28), (1, 3), (2, 3)] {
            burst(&mut port, vlan, frames);
        }
        apply(&mut port, change(&(1..=1), of(70))).unwrap();
        port.run_until(34 * FRAME);
        // Then it holds.
        for vlan in [9, 2, 1] {
            burst(&mut port, vlan, 1);
        }
        assert_eq!(
            order_after(&mut port, 28),
            [1, 1, 1, 2, 2, 2, 1, 2, 9],
            "{by_flow}"
        );
    }
}

/// A slice has 3 frames when its delay becomes shorter, behind those of a busy one. It gets one more at each of some times, and
/// another slice gets some at one time.
fn one_more(others_at: Duration, at: &[Duration]) -> Vec<u16> {
    let busy = guaranteed(100, 42_022, ms(49));
    let of = |delay| guaranteed(100, 7_522, ms(delay));
    let slices = [(1..=1, of(82)), (2..=2, of(98)), (3..=3, busy)];
    let mut port = Port::new(&spec(&slices), Some(LINK));
    burst(&mut port, 3, 28);
    burst(&mut port, 1, 3);
    let shorter = of(70);
    apply(&mut port, change(&(1..=1), shorter)).unwrap();
    port.run_until(others_at.nanos());
    burst(&mut port, 2, 4);
    for at in at {
        port.run_until(at.nanos());
        burst(&mut port, 1, 1);
    }
    order_after(&mut port, 28)
}

/// The last frame of those that waited leaves at 36 ms; 69 ms later is too late.
#[test]
fn a_frame_that_comes_when_the_delay_has_become_shorter_is_due_no_later_than_before() {
    let order = one_more(ms(1), &[ms(1)]);
    assert_eq!(order, [1, 1, 1, 1, 2, 2, 2, 2]);
}

/// The first comes too early to have it.
#[test]
fn a_shorter_delay_is_in_force_for_frames_that_come_late_enough() {
    let order = one_more(ms(13), &[ms(14), ms(36)]);
    assert_eq!(order, [1, 1, 1, 1, 1, 2, 2, 2, 2]);
}

/// With a delay of 82 ms its last frame would be due after those that came before it.
#[test]
fn a_change_of_something_else_does_not_put_off_a_shorter_delay() {
    let of = |bytes, delay| guaranteed(100, bytes, ms(delay));
    let slices = [
        (1..=1, of(6_022, 82)),
        (2..=2, of(6_022, 98)),
        (3..=3, of(30_022, 49)),
        (4..=4, of(24_022, 30)),
    ];
    let shorter = of(6_022, 70);
    let weight = Kind {
        weight: 2,
        ..shorter
    };
    let mut port = Port::new(&spec(&slices), Some(LINK));
    burst(&mut port, 3, 20);
    burst(&mut port, 1, 3);
    apply(&mut port, change(&(1..=1), shorter)).unwrap();
    port.run_until(ms(5).nanos());
    burst(&mut port, 2, 4);
    // The first of three frames has just begun to leave.
    port.run_until(20 * FRAME + 1);
    burst(&mut port, 4, 16);
    port.run_until(ms(26).nanos());
    burst(&mut port, 1, 1);
    apply(&mut port, change(&(1..=1), weight)).unwrap();
    assert_eq!(order_after(&mut port, 37), [1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn what_a_removed_slice_reserved_is_free_when_no_frame_waits_that_is_to_leave_in_time() {
    let half = guaranteed(6_000, 6_000, ms(20));
    let mut port = busy(&[(1..=1, half)]);
    let refused = apply(&mut port, add(&(2..=2), half)).unwrap_err();
    let text = "slice `vlan2-2`: guarantees 6 Mbit/s (L2), but only 3.9 Mbit/s (L2) of the link is free: write a \
                rate of at most 3.597 Mbit/s";
    assert_eq!(refused.to_string(), text);
    assert!(!refused.is_temporary());
    apply(&mut port, remove(&(1..=1))).unwrap();
    let refused = apply(&mut port, add(&(2..=2), half)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "{text}; what was in force before counts until no frame waits that is to leave under a guarantee: repeat it later"
        )
    );
    assert!(refused.is_temporary());
    port.run_until(IDLE - 1);
    apply(&mut port, add(&(2..=2), half)).unwrap_err();
    port.run_until(IDLE);
    apply(&mut port, add(&(2..=2), half)).unwrap();
}

#[test]
fn nothing_stays_reserved_while_only_best_effort_waits() {
    let half = guaranteed(6_000, 6_000, ms(20));
    let mut port = Port::new(&spec(&[(1..=1, half)]), Some(LINK));
    burst(&mut port, 4, 10);
    apply(&mut port, remove(&(1..=1))).unwrap();
    apply(&mut port, add(&(2..=2), half)).unwrap();
}

/// Nobody looks between the two busy periods.
#[test]
fn what_a_slice_reserved_that_is_removed_with_frames_is_free_in_the_next_busy_period() {
    let half = guaranteed(6_000, 6_000, ms(20));
    let other = guaranteed(100, 6_022, ms(90));
    let mut port = Port::new(&spec(&[(1..=1, half), (3..=3, other)]), Some(LINK));
    burst(&mut port, 1, 3);
    let removed = apply(&mut port, remove(&(1..=1))).unwrap();
    assert_eq!(removed.waiting, 3);
    port.run_until(2 * FRAME);
    apply(&mut port, add(&(2..=2), half)).unwrap_err();
    port.run_until(2 * FRAME + 1);
    burst(&mut port, 3, 3);
    apply(&mut port, add(&(2..=2), half)).unwrap();
    // The same for what is replaced.
    let (less, five) = (
        guaranteed(1_000, 6_000, ms(20)),
        guaranteed(5_000, 6_000, ms(20)),
    );
    apply(&mut port, change(&(2..=2), less)).unwrap();
    apply(&mut port, add(&(4..=4), five)).unwrap_err();
    port.run_until(5 * FRAME + 1);
    burst(&mut port, 3, 1);
    apply(&mut port, add(&(4..=4), five)).unwrap();
    // Now nothing is reserved that could be released.
    port.run_until(u64::MAX / 2);
    let refused = apply(&mut port, add(&(5..=5), five)).unwrap_err();
    assert!(!refused.is_temporary(), "{refused}");
}

/// At the time at which the guarantees were idle, frames may come under the old one before it is changed.
#[test]
fn a_busy_period_that_begins_when_the_one_before_ends_is_another() {
    let half = guaranteed(6_000, 6_000, ms(20));
    let mut port = Port::new(&spec(&[(1..=1, half)]), Some(LINK));
    burst(&mut port, 1, 1);
    let sent = port.pipeline.poll_egress(Instant::ZERO);
    assert!(sent.is_some());
    burst(&mut port, 1, 2);
    apply(&mut port, remove(&(1..=1))).unwrap();
    apply(&mut port, add(&(2..=2), half)).unwrap_err();
}

#[test]
fn a_lower_guarantee_is_reserved_in_full_while_frames_under_the_old_one_may_wait() {
    let of = |cir| guaranteed(cir, 3_000, ms(20));
    let mut port = busy(&[(1..=1, of(8_000)), (2..=2, of(1_000))]);
    apply(&mut port, change(&(1..=1), of(2_000))).unwrap();
    assert!(apply(&mut port, change(&(2..=2), of(7_000))).is_err());
    port.run_until(IDLE);
    apply(&mut port, change(&(2..=2), of(7_000))).unwrap();
    // Changed back before the end of the transition: nothing is released that is in use.
    burst(&mut port, 9, 10);
    apply(&mut port, change(&(1..=1), of(1_000))).unwrap();
    apply(&mut port, change(&(1..=1), of(2_000))).unwrap();
    port.run_until(u64::MAX / 2);
    assert!(apply(&mut port, change(&(2..=2), of(8_000))).is_err());
    apply(&mut port, change(&(2..=2), of(7_800))).unwrap();
}

#[test]
fn what_a_guarantee_covers_needs_nothing_beside_it_when_what_came_before_has_ended() {
    let of = |cir, cbs, delay| guaranteed(cir, cbs, ms(delay));
    let mut port = busy(&[(1..=1, of(1_000, 30_000, 60))]);
    apply(&mut port, change(&(1..=1), of(1_000, 3_000, 60))).unwrap();
    port.run_until(IDLE - 1);
    // The burst of 30 kB is still reserved, now within 30 ms.
    apply(&mut port, change(&(1..=1), of(2_000, 3_000, 30))).unwrap();
    let other = add(&(2..=2), of(1_000, 20_000, 40));
    assert!(apply(&mut port, other.clone()).is_err());
    port.run_until(IDLE);
    apply(&mut port, other).unwrap();
}

#[test]
fn a_change_that_fits_only_without_the_old_guarantee_says_so() {
    let fast = guaranteed(1_000, 9_000, ms(10));
    let mut port = busy(&[(1..=1, fast)]);
    let slow = guaranteed(6_000, 60_000, ms(80));
    let error = apply(&mut port, change(&(1..=1), slow)).unwrap_err();
    assert!(
        matches!(error, SliceChangeError::InTransition { .. }),
        "{error}"
    );
    let slower = guaranteed(1_000, 9_000, ms(80));
    apply(&mut port, change(&(1..=1), slower)).unwrap();
    assert!(apply(&mut port, change(&(1..=1), slow)).is_err());
    port.run_until(IDLE);
    apply(&mut port, change(&(1..=1), slow)).unwrap();
}

#[test]
fn a_change_that_fits_without_the_old_guarantee_is_carried_out_while_no_frame_waits() {
    let fast = guaranteed(1_000, 9_000, ms(10));
    let mut port = Port::new(&spec(&[(1..=1, fast)]), Some(LINK));
    let slow = guaranteed(6_000, 60_000, ms(80));
    apply(&mut port, change(&(1..=1), slow)).unwrap();
    // Nothing else is reserved.
    let rest = guaranteed(1_000, 9_000, ms(10));
    apply(&mut port, add(&(2..=2), rest)).unwrap();
}

#[test]
fn a_guarantee_that_does_not_fit_at_all_is_refused_though_its_delay_is_longer() {
    let fast = guaranteed(1_000, 9_000, ms(10));
    let too_much = guaranteed(20_000, 9_000, ms(90));
    let mut port = Port::new(&spec(&[(1..=1, fast)]), Some(LINK));
    let error = apply(&mut port, change(&(1..=1), too_much)).unwrap_err();
    assert!(matches!(error, SliceChangeError::Refused { .. }), "{error}");
    // What it had is still reserved.
    let of = |cir| guaranteed(cir, 3_000, ms(90));
    assert!(apply(&mut port, add(&(2..=2), of(9_001))).is_err());
    apply(&mut port, add(&(2..=2), of(8_900))).unwrap();
}
