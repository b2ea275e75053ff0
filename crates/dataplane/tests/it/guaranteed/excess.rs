//! What no guarantee needs is given out by weight, and never left unused.

use super::rig::{
    Arrival, LARGEST_FRAME, Rig, arrival, best_effort, guaranteed, params, with_maximum,
};
use proptest::prelude::*;
use slicewise_model::{GuaranteedParams, SliceParams};
use slicewise_units::{Accounting, Duration, Instant};

const LINK: u64 = 1_000_000_000;

/// All frames at once, enough that no slice runs out before `frames` have left.
fn backlog(slices: &[SliceParams], frames: usize, sizes: &[u64]) -> Vec<Arrival> {
    (0..slices.len() as u32)
        .flat_map(|slice| {
            (0..frames).map(move |n| arrival(0, slice, sizes[(n + slice as usize) % sizes.len()]))
        })
        .collect()
}

fn offer(rig: &mut Rig, arrivals: &[Arrival]) {
    for arrival in arrivals {
        rig.arrive(*arrival).unwrap();
    }
}

fn sent_bytes(rig: &Rig, slices: usize) -> Vec<u64> {
    let mut bytes = vec![0; slices];
    for sent in rig.sent.iter().filter(|sent| !sent.guaranteed) {
        bytes[sent.slice as usize] += sent.bytes;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Two slices that stay backlogged never differ by more than a turn of each, weights
    /// considered (Shreedhar & Varghese, theorem 2: one quantum and a frame).
    #[test]
    fn shares_are_within_one_quantum_of_the_weights(
        weights in prop::collection::vec(1u32..6, 2..12),
        sizes in prop::collection::vec(60u64..=LARGEST_FRAME, 1..5),
        stop in 1_000_000u64..8_000_000,
    ) {
        let slices: Vec<SliceParams> = weights.iter().map(|&weight| best_effort(weight)).collect();
        let mut rig = Rig::new(&params(&[1]), &slices, LINK);
        offer(&mut rig, &backlog(&slices, 20_000, &sizes));
        rig.send_until(stop);
        let bytes = sent_bytes(&rig, slices.len());
        for (one, weight) in bytes.iter().zip(&weights) {
            for (other, other_weight) in bytes.iter().zip(&weights) {
                let turns = one / u64::from(*weight);
                let other_turns = other / u64::from(*other_weight);
                prop_assert!(turns.abs_diff(other_turns) <= 2 * LARGEST_FRAME, "{bytes:?}");
            }
        }
    }

    /// Tenants share by their weights, however many slices each has.
    #[test]
    fn tenants_share_by_weight_whatever_their_slices(
        weights in prop::collection::vec(1u32..5, 2..5),
        counts in prop::collection::vec(1usize..6, 5),
    ) {
        let slices: Vec<SliceParams> = weights
            .iter()
            .zip(&counts)
            .zip(0..)
            .flat_map(|((_, &count), tenant)| {
                (0..count).map(move |n| SliceParams { tenant, ..best_effort(1 + n as u32) })
            })
            .collect();
        let mut rig = Rig::new(&params(&weights), &slices, LINK);
        offer(&mut rig, &backlog(&slices, 5_000, &[LARGEST_FRAME, 700]));
        rig.send_until(10_000_000);
        let bytes = sent_bytes(&rig, slices.len());
        let shares: Vec<u64> = weights
            .iter()
            .zip(0..)
            .map(|(&weight, tenant)| {
                let own = slices.iter().zip(&bytes).filter(|(slice, _)| slice.tenant == tenant);
                own.map(|(_, bytes)| bytes).sum::<u64>() / u64::from(weight)
            })
            .collect();
        for pair in shares.windows(2) {
            prop_assert!(pair[0].abs_diff(pair[1]) <= 2 * LARGEST_FRAME, "{shares:?}");
        }
    }

    /// The link is idle only while every slice with frames has had its maximum; and no slice has
    /// more than that beside its guarantee.
    #[test]
    fn the_link_never_idles_while_a_frame_may_leave(
        kinds in prop::collection::vec((0u8..3, 1u32..4), 1..12),
        times in prop::collection::vec((0u64..3_000_000, 60u64..=LARGEST_FRAME), 1..200),
    ) {
        let (rate, burst) = (30_000_000, 4 * LARGEST_FRAME);
        let slices: Vec<SliceParams> = kinds
            .iter()
            .map(|&(kind, weight)| match kind {
                0 => best_effort(weight),
                1 => guaranteed(5_000_000, 2 * LARGEST_FRAME, Duration::from_millis(1)),
                _ => with_maximum(best_effort(weight), rate, burst),
            })
            .collect();
        let limited = |slice: u32| slices[slice as usize].maximum.is_some();
        let mut arrivals: Vec<Arrival> = times
            .iter()
            .zip(0u32..)
            .map(|(&(at, bytes), n)| arrival(at, n % slices.len() as u32, bytes))
            .collect();
        arrivals.sort();
        let mut rig = Rig::new(&params(&[1]), &slices, LINK);
        rig.run(&arrivals);
        rig.assert_in_order();
        let granularity = rig.scheduler.granularity().nanos();
        // Where the link was idle before a frame, that frame had just come, or had to wait.
        let mut free = 0;
        for sent in &rig.sent {
            if sent.start > free && sent.start > sent.arrival {
                prop_assert!(limited(sent.slice), "{sent:?} might have gone at {free}");
            }
            free = sent.end;
        }
        for id in (0..slices.len() as u32).filter(|&id| limited(id)) {
            let own: Vec<_> = rig.sent.iter().filter(|sent| sent.slice == id).collect();
            for (n, first) in own.iter().enumerate() {
                let mut bytes = 0;
                for last in &own[n..] {
                    bytes += last.bytes;
                    let time = last.start - first.start;
                    let most = u128::from(burst) * 8_000_000_000
                        + u128::from(rate) * u128::from(time);
                    prop_assert!(u128::from(bytes) * 8_000_000_000 <= most);
                }
            }
            // And it is not held longer than needed while no other slice wants the link.
            if slices.len() == 1 {
                let total: u64 = own.iter().map(|sent| sent.bytes).sum();
                let needed = u128::from(total.saturating_sub(burst)) * 8_000_000_000
                    / u128::from(rate);
                let last_arrival = arrivals.last().unwrap().at;
                let end = own.last().unwrap().start;
                let waits = own.len() as u64 * granularity;
                prop_assert!(u128::from(end) <= u128::from(last_arrival + waits) + needed + 13_000);
            }
        }
    }
}

#[test]
fn service_beyond_the_guarantee_does_not_consume_it() {
    // A slice that had the whole link for itself finds its guarantee untouched when others come.
    let objective = Duration::from_millis(1);
    let slices = [
        guaranteed(100_000_000, 4 * LARGEST_FRAME, objective),
        best_effort(100),
    ];
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    let arrivals = |slice, at, frames| (0..frames).map(move |_| arrival(at, slice, LARGEST_FRAME));
    rig.arrive_all(arrivals(0, 0, 400));
    rig.send_until(4_000_000);
    rig.arrive_all(arrivals(1, 4_000_000, 1_000));
    rig.send_until(8_000_000);
    let own: u64 = rig
        .sent
        .iter()
        .filter(|sent| sent.slice == 0 && sent.start >= 4_000_000)
        .map(|sent| sent.bytes)
        .sum();
    // 4 ms at 100 Mbit/s, though it had ten times its rate before.
    assert!(own >= 4_000_000 / 80 - LARGEST_FRAME, "{own} B");
}

/// A slice that has to wait for seconds must not keep others that wait for less: its calendar is
/// not as long as that.
#[test]
fn a_slice_that_waits_for_long_does_not_hold_up_others() {
    let slices = [
        with_maximum(best_effort(1), 1_000, LARGEST_FRAME),
        with_maximum(best_effort(1), 100_000_000, 2 * LARGEST_FRAME),
    ];
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    let frames = |slice, count| (0..count).map(move |_| arrival(0, slice, LARGEST_FRAME));
    rig.arrive_all(frames(0, 4).chain(frames(1, 1_000)));
    rig.send_until(100_000_000);
    let fast = rig.sent.iter().filter(|sent| sent.slice == 1).count() as u64;
    // 100 Mbit/s for 100 ms.
    assert!(fast >= 1_250_000 / LARGEST_FRAME - 1, "{fast} frames");
}

#[test]
fn a_guarantee_is_woken_in_time_beside_a_slower_one() {
    let slow = guaranteed(1_000, LARGEST_FRAME, Duration::from_millis(40));
    let fast = guaranteed(50_000_000, LARGEST_FRAME, Duration::from_millis(40));
    let mut rig = Rig::new(&params(&[1]), &[slow, fast, best_effort(50_000)], LINK);
    let frames = |slice, count| (0..count).map(move |_| arrival(0, slice, LARGEST_FRAME));
    rig.arrive_all(
        frames(0, 3)
            .chain(frames(1, 1_000))
            .chain(frames(2, 20_000)),
    );
    rig.send_until(100_000_000);
    let own = rig
        .sent
        .iter()
        .filter(|sent| sent.slice == 1 && sent.guaranteed);
    let bytes: u64 = own.map(|sent| sent.bytes).sum();
    // 50 Mbit/s for 100 ms.
    assert!(bytes + 2 * LARGEST_FRAME >= 625_000, "{bytes} B");
}

#[test]
fn a_maximum_of_l1_counts_preamble_gap_and_fcs_of_every_frame() {
    let counted = GuaranteedParams {
        accounting: Accounting::L1,
        ..params(&[1])
    };
    // 60 bytes are 84 on the wire: 672 µs each at 1 Mbit/s.
    let limited = with_maximum(best_effort(1), 1_000_000, LARGEST_FRAME);
    let mut rig = Rig::new(&counted, &[limited], 1_000_000_000);
    rig.arrive_all([arrival(0, 0, 60); 100]);
    rig.send_until(1_000_000);
    let burst = rig.sent.len();
    rig.send_until(21_000_000);
    assert!(
        (29..=31).contains(&(rig.sent.len() - burst)),
        "{} in 20 ms",
        rig.sent.len() - burst
    );
}

#[test]
fn a_slice_that_comes_back_takes_its_turn_behind_those_that_wait() {
    let mut rig = Rig::new(&params(&[1]), &vec![best_effort(1); 3], LINK);
    offer(
        &mut rig,
        &backlog(&[best_effort(1), best_effort(1)], 3, &[LARGEST_FRAME]),
    );
    // A turn is one largest frame: slice 0 has had one when slice 2 comes.
    rig.send_until(1);
    rig.arrive_all([arrival(1, 2, LARGEST_FRAME); 2]);
    rig.send_until(u64::MAX);
    let turns: Vec<u32> = rig.sent.iter().map(|sent| sent.slice).collect();
    assert_eq!(turns, [0, 1, 0, 2, 1, 0, 2, 1]);
}

#[test]
fn slices_that_have_to_wait_longer_than_the_calendar_do_not_hide_one_that_may_send() {
    // Three wait for 12 s, further than the calendar reaches; the last for 2 s.
    let slow = with_maximum(best_effort(1), 1_000, LARGEST_FRAME);
    let last = with_maximum(best_effort(1), 6_072, LARGEST_FRAME);
    let mut rig = Rig::new(&params(&[1]), &[slow, slow, slow, last], LINK);
    let two_frames = |rig: &mut Rig, slice, at| {
        rig.arrive_all([arrival(at, slice, LARGEST_FRAME); 2]);
    };
    for slice in 0..3 {
        two_frames(&mut rig, slice, 0);
    }
    rig.send_until(1_000_000);
    let now = 1_000_000_000;
    two_frames(&mut rig, 3, now);
    let mut next = |now| {
        let sent = rig
            .scheduler
            .dequeue(&mut rig.pool, Instant::from_nanos(now));
        sent.map(|(slice, _)| slice.index())
    };
    assert_eq!((next(now), next(now)), (Some(3), None));
    // Nobody asked meanwhile: those that waited as long as the calendar reaches are found first.
    assert_eq!(next(now + 2_100_000_000), Some(3));
}

#[test]
fn a_frame_behind_one_that_left_early_is_due_by_its_own_tokens() {
    // The second frame would be eligible after 12 ms, but leaves at once as excess. The third costs
    // less, so it is eligible after 0.5 ms.
    let own = guaranteed(1_000_000, LARGEST_FRAME, Duration::from_millis(1));
    let mut rig = Rig::new(&params(&[1]), &[own, best_effort(50_000)], LINK);
    for bytes in [LARGEST_FRAME, LARGEST_FRAME, 60] {
        rig.arrive(arrival(0, 0, bytes)).unwrap();
    }
    rig.send_until(1);
    rig.arrive_all([arrival(1, 1, LARGEST_FRAME); 2_000]);
    rig.send_until(20_000_000);
    let third = rig.sent.iter().find(|sent| sent.handle == 2).unwrap();
    assert!(third.guaranteed, "{third:?}");
    assert!(third.end <= 480_000 + 1_000_000 + 12_144, "{third:?}");
}

#[test]
fn a_limited_slice_gets_its_maximum_beside_one_that_always_has_frames() {
    let limited = with_maximum(best_effort(1), 100_000_000, 2 * LARGEST_FRAME);
    let slices = [limited, best_effort(1)];
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    offer(&mut rig, &backlog(&slices, 10_000, &[LARGEST_FRAME]));
    rig.send_until(100_000_000);
    let limited = sent_bytes(&rig, 2)[0];
    assert!((1_225_000..=1_255_000).contains(&limited), "{limited} B");
}
