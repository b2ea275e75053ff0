//! The hierarchical scheduler in a pipeline. Its arithmetic is held against the library by the test `librte_sched`.
#![allow(clippy::cast_possible_truncation)]

mod change;
mod random;
pub(crate) mod rig;

use rig::{CLASSES, MS, Rig, addressed, of_pipes, profile, subport};
use slicewise_dataplane::hqos::{HqosCounters, HqosPlace, HqosPlaces};
use slicewise_dataplane::{DropReason, Verdict};
use slicewise_model::HqosSpec;
use slicewise_model::hqos::{BEST_EFFORT, HqosPipeRange};
use slicewise_units::BitRate;
use slicewise_wire::{Headers, IpVersion};

const GIGABIT: BitRate = BitRate::new(1_000_000_000);

/// Two pipes of 100 Mbit/s at 1 Gbit/s.
fn two_pipes() -> HqosSpec {
    of_pipes(&[12_500_000, 12_500_000], GIGABIT)
}

#[test]
fn a_pipe_sends_at_its_rate_and_idle_pipes_give_it_nothing() {
    let mut rig = Rig::new(&two_pipes(), GIGABIT);
    rig.keep_full(0, 12, 1_000, 500 * MS);
    let sent = rig.bytes_sent(|frame| frame.pipe == 0, 100 * MS);
    // 24 bytes beside each frame count, too.
    let expected = 12_500_000 * 4 / 10 * 1_000 / 1_024;
    assert!(
        sent.abs_diff(expected) < expected / 200,
        "{sent} {expected}"
    );
}

#[test]
fn a_higher_class_of_a_pipe_is_served_first() {
    let mut rig = Rig::new(&two_pipes(), GIGABIT);
    for queue in [12, 5, 3, 0] {
        for _ in 0..10 {
            let _ = rig.offer(0, queue, 1_000);
        }
    }
    rig.run_until(100 * MS);
    let queues: Vec<u32> = rig.departures.iter().map(|frame| frame.queue).collect();
    let mut sorted = queues.clone();
    sorted.sort_unstable();
    assert_eq!(queues.len(), 40);
    assert_eq!(queues, sorted);
}

#[test]
fn best_effort_queues_share_by_weight() {
    let mut spec = two_pipes();
    spec.pipe_profiles[0].wrr_weights = [1, 2, 4, 8];
    let mut rig = Rig::new(&spec, GIGABIT);
    for now in 0..400 {
        rig.run_until(now * MS);
        for queue in 12..16 {
            while rig.offer(0, queue, 200 + 100 * queue) == Verdict::Queued {}
        }
    }
    let of = |queue| rig.bytes_sent(|frame| frame.queue == queue, 100 * MS) as f64;
    for (queue, weight) in [(13, 2.0), (14, 4.0), (15, 8.0)] {
        let ratio = of(queue) / of(12) / weight;
        assert!((0.9..1.1).contains(&ratio), "{queue}: {ratio}");
    }
}

/// Best effort of eight pipes of 50 Mbit/s in a subport of 100 Mbit/s: by their weights, once the watermark has come down.
#[test]
fn an_oversubscribed_subport_is_shared_by_weight() {
    let mut spec = of_pipes(&[6_250_000; 8], GIGABIT);
    spec.subport_profiles[0].tc_rates[BEST_EFFORT] = 12_500_000;
    for (pipe, weight) in [(0, 1), (1, 3)] {
        spec.pipe_profiles[pipe].oversubscription_weight = weight;
    }
    let mut rig = Rig::new(&spec, GIGABIT);
    for now in 0..30_000 {
        rig.run_until(now * MS);
        for pipe in 0..8 {
            while rig.offer(pipe, 12, 500) == Verdict::Queued {}
        }
    }
    let of = |pipe| rig.bytes_sent(|frame| frame.pipe == pipe, 25_000 * MS) as f64;
    let ratio = of(1) / of(0);
    assert!((2.7..3.3).contains(&ratio), "{ratio}");
}

#[test]
fn a_frame_that_no_credits_suffice_for_is_dropped_as_too_long() {
    let mut spec = two_pipes();
    spec.pipe_profiles[0].rates.tb_size = 1_023;
    let mut rig = Rig::new(&spec, GIGABIT);
    let too_long = Verdict::Dropped(DropReason::FrameTooLong);
    assert_eq!(rig.offer(0, 12, 1_000), too_long);
    assert_eq!(rig.offer(0, 12, 999), Verdict::Queued);
    assert_eq!(rig.offer(1, 12, 1_000), Verdict::Queued);
    rig.run_until(MS);
    assert_eq!(rig.departures.len(), 2);
    let counters = rig.counters();
    let of_first = &counters[0].1;
    assert_eq!((of_first.dropped_too_long, of_first.dropped_full), (1, 0));
}

#[test]
fn queues_count_what_they_queue_and_drop() {
    let mut rig = Rig::new(&two_pipes(), GIGABIT);
    for _ in 0..100 {
        let _ = rig.offer(1, 3, 500);
    }
    let _ = rig.offer(0, 15, 300);
    let counted: Vec<_> = rig.counters();
    let [(first, of_first), (second, of_second)] = counted.as_slice() else {
        panic!("{counted:?}")
    };
    assert_eq!((first.pipe, first.queue, first.class()), (0, 15, 12));
    assert_eq!((of_first.queued_frames, of_first.queued_bytes), (1, 300));
    assert_eq!((second.pipe, second.queue, second.class()), (1, 3, 3));
    assert_eq!((of_second.queued_frames, of_second.dropped_full), (64, 36));
    assert_eq!(of_second.waiting_frames, 64);
}

#[test]
fn vlans_and_the_destination_decide_on_the_place() {
    let mut spec = two_pipes();
    let mut second = subport(4, Vec::new());
    second.queue_sizes = [0; CLASSES];
    second.queue_sizes[1] = 64;
    second.queue_sizes[BEST_EFFORT] = 64;
    spec.subports.push(second);
    spec.pipe_profiles.truncate(1);
    spec.subports[0] = subport(2, Vec::new());
    spec.subports[0].queue_sizes = spec.subports[1].queue_sizes;
    let class_has_queue = |class| class == 1 || class == BEST_EFFORT;
    for (class, rate) in spec.pipe_profiles[0].rates.tc_rates.iter_mut().enumerate() {
        *rate *= u64::from(class_has_queue(class));
    }
    let places = HqosPlaces::new(&spec.resolve(GIGABIT).unwrap());
    let place = |outer, inner, octets| places.of(&addressed(outer, inner, octets));
    let expected = |subport, pipe, queue, colour| HqosPlace {
        subport,
        pipe,
        queue,
        colour,
    };
    // Five queues: that of class 1, and those of best effort.
    assert_eq!(place(0, 1, [4, 0, 0, 0]), expected(0, 1, 1, 0));
    assert_eq!(place(3, 7, [9, 0, 0, 1]), expected(1, 3, 12, 1));
    assert_eq!(place(2, 2, [7, 0, 0, 14]), expected(0, 0, 15, 2));
    let untagged = Headers {
        ip_version: IpVersion::V6,
        destination: u128::MAX,
        ..Headers::EMPTY
    };
    assert_eq!(places.of(&untagged), expected(0, 0, 1, 0));
}

/// As in the sample application: such a pipe has the first profile, and no credits to begin with.
#[test]
fn a_pipe_without_a_profile_has_the_first() {
    let mut spec = two_pipes();
    spec.subports[0].assigned = vec![HqosPipeRange {
        first: 0,
        last: 0,
        profile: 1,
    }];
    spec.pipe_profiles[0] = profile(1_250_000, GIGABIT);
    let mut rig = Rig::new(&spec, GIGABIT);
    rig.keep_full(1, 0, 1_000, 400 * MS);
    let sent = rig.bytes_sent(|_| true, 0);
    let expected = 1_250_000 * 4 / 10 * 1_000 / 1_024;
    assert!(sent.abs_diff(expected) < expected / 50, "{sent} {expected}");
}

#[test]
fn counters_of_queues_are_summed_one_by_one() {
    let of = |factor| HqosCounters {
        queued_frames: factor,
        queued_bytes: 2 * factor,
        waiting_frames: 3 * factor as u32,
        dropped_full: 4 * factor,
        dropped_early: 5 * factor,
        dropped_too_long: 6 * factor,
    };
    let mut sum = of(10);
    sum += of(7);
    assert_eq!(sum, of(17));
}
