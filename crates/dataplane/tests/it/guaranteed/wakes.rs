//! However many slices become eligible at once, a call wakes few of them, and none is late.

use super::bound::{Admission, Random};
use super::rig::{
    Arrival, Conformance, LARGEST_FRAME, Rig, arrival, best_effort, guaranteed, params,
    with_maximum,
};
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use slicewise_dataplane::guaranteed::{Selection, SliceId, WAKES_PER_CALL};
use slicewise_model::SliceParams;
use slicewise_units::{Duration, Instant};

const LINK: u64 = 100_000_000_000;
/// Of each slice of the crowd: its second frame is eligible 60.7 ms after the first.
const RATE: u64 = 200_000;
const CROWD: u32 = 200_000;
const FRAME_BITS: u64 = LARGEST_FRAME * 8;
/// When the second frames of the crowd are eligible.
const TOGETHER: u64 = FRAME_BITS * 1_000_000_000 / RATE;

/// A slice that sends nothing beyond its guarantee.
fn limited(rate: u64, delay: Duration) -> SliceParams {
    with_maximum(guaranteed(rate, LARGEST_FRAME, delay), rate, LARGEST_FRAME)
}

fn crowd(slices: u32) -> Vec<SliceParams> {
    let slice = limited(RATE, Duration::from_millis(50));
    vec![slice; slices as usize]
}

/// Two largest frames at once, of which the first is eligible.
fn pair(at: u64, slice: u32) -> [Arrival; 2] {
    let bytes = LARGEST_FRAME;
    [arrival(at, slice, bytes); 2]
}

/// Every frame of a slice with a guarantee has left by its deadline, counted from when it conforms.
fn assert_in_time(rig: &Rig, slices: &[SliceParams]) {
    let granularity = rig.scheduler.granularity().nanos();
    let mut buckets: Vec<Option<Conformance>> = slices
        .iter()
        .map(|slice| slice.guarantee)
        .map(|slice| slice.map(|it| Conformance::new(it.rate.bits_per_second(), it.burst.bytes())))
        .collect();
    for sent in &rig.sent {
        let Some(bucket) = &mut buckets[sent.slice as usize] else {
            continue;
        };
        assert!(sent.guaranteed, "slice {} is at its maximum", sent.slice);
        let eligible = bucket.earliest(sent.arrival, sent.bytes);
        bucket.on_frame(eligible, sent.bytes);
        let delay = slices[sent.slice as usize].guarantee.unwrap().delay;
        let due = eligible + delay.nanos() + granularity;
        assert!(
            sent.end <= due,
            "a frame of slice {} left at {} ns and was due at {due} ns",
            sent.slice,
            sent.end,
        );
    }
}

/// The whole crowd is eligible at one moment, and right after it a few slices whose frames are urgent.
fn run_crowd() -> (Rig, Vec<SliceParams>) {
    let mut slices = crowd(CROWD);
    let urgent = limited(20_000_000, Duration::from_micros(20));
    let urgent_first = CROWD;
    slices.extend([urgent; 50]);
    let excess = slices.len() as u32;
    slices.push(best_effort(60_000));
    let mut arrivals: Vec<Arrival> = (0..CROWD).flat_map(|id| pair(0, id)).collect();
    arrivals.extend((0..400_000).map(|_| arrival(30_000_000, excess, LARGEST_FRAME)));
    let interval = FRAME_BITS * 1_000_000_000 / 20_000_000;
    // From one frame time to one wheel bucket after the crowd.
    arrivals.extend((0..50).flat_map(|n| {
        pair(
            TOGETHER - interval + 121 + u64::from(n) * 200,
            urgent_first + n,
        )
    }));
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    rig.run(&arrivals);
    (rig, slices)
}

#[test]
fn a_crowd_that_becomes_eligible_at_once_delays_nobody_on_a_busy_link() {
    let (rig, slices) = run_crowd();
    assert_in_time(&rig, &slices);
}

/// Slices that begin at few moments, so that many are eligible at once.
fn check(seed: u64, count: usize, link: u64) {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut admission = Admission::new(link);
    let rates = [link / count as u64 / 2, link / count as u64].map(|rate| rate.max(1));
    let mut slices = Vec::new();
    let mut refused = 0;
    while slices.len() < count && refused < 1_000 {
        // Most are long.
        let delay = Duration::from_nanos(10_000 << random.below(13).max(random.below(13)));
        let slice = limited(rates[random.below(2) as usize], delay);
        if admission.admits(&slice) {
            slices.push(slice);
        } else {
            refused += 1;
        }
    }
    let mut arrivals: Vec<Arrival> = (0..slices.len() as u32)
        .flat_map(|id| [pair(0, id), pair(0, id)].concat())
        .collect();
    let excess = slices.len() as u32;
    slices.push(best_effort(60_000));
    arrivals.extend((0..random.below(2) * 20_000).map(|at| arrival(at, excess, LARGEST_FRAME)));
    arrivals.sort();
    let mut rig = Rig::new(&params(&[1]), &slices, link);
    rig.run(&arrivals);
    rig.assert_in_order();
    assert_in_time(&rig, &slices);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn slices_that_are_eligible_together_meet_their_bound(
        seed in any::<u64>(),
        count in 65usize..8_000,
        link in prop::sample::select(vec![1_000_000_000u64, LINK]),
    ) {
        check(seed, count, link);
    }
}

/// Nobody asks until all are eligible: each call still wakes few, and the link goes on until all have left.
#[test]
fn a_crowd_that_nobody_asked_for_in_time_leaves_without_a_pause() {
    let slices = crowd(10_000);
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    rig.arrive_all((0..10_000).flat_map(|id| pair(0, id)));
    rig.send_until(TOGETHER / 2);
    assert_eq!(rig.scheduler.sleeping_slices(), 10_000);
    let at = Instant::from_nanos(2 * TOGETHER);
    for calls in 1..=10_000 {
        let Selection::Ready(next) = rig.scheduler.select(&rig.pool, at) else {
            panic!("a frame is eligible");
        };
        assert!(next.guaranteed);
        let asleep = 10_000u32.saturating_sub(calls * WAKES_PER_CALL);
        assert_eq!(rig.scheduler.sleeping_slices(), asleep);
        rig.scheduler.take(next.slice, true, &mut rig.pool, at);
    }
    assert_eq!(rig.scheduler.select(&rig.pool, at), Selection::Empty);
}

/// Slices that wait for longer than the calendar reaches are checked again there: no frame can leave, and more than a
/// call checks are due.
#[test]
fn a_crowd_that_is_checked_again_on_an_idle_link_takes_few_calls() {
    // 12 s until the second frame.
    let slices = [limited(1_000, Duration::from_millis(50)); 2_000];
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    rig.arrive_all((0..2_000).flat_map(|id| pair(0, id)));
    rig.send_until(1_000_000);
    let (mut now, mut calls) = (Instant::from_nanos(1_000_000), 0);
    while let Selection::Wait(next) = rig.scheduler.select(&rig.pool, now) {
        assert!(next > now, "a wait ends later");
        (now, calls) = (next, calls + 1);
        // The calendar reaches 2.1 s. Each time 2,000 / 64 calls check the guarantees, and the 30 buckets that the
        // first frames took are those of the maxima.
        assert!(calls <= 6 * (32 + 31 + 31), "{calls} calls until {now}");
    }
    assert!(now.nanos() > 12_000_000_000, "{now:?}");
    rig.send_until(u64::MAX);
    assert_eq!(rig.sent.len(), 4_000);
}

/// A frame that is eligible keeps its deadline when the delay of its slice becomes shorter, also before a call has woken
/// the slice.
#[test]
fn a_change_finds_a_slice_that_has_not_been_woken_yet() {
    let rate = 10_000_000;
    let [long, middle, short] = [5_000, 2_000, 100].map(|delay| {
        let delay = Duration::from_micros(delay);
        limited(rate, delay)
    });
    let mut rig = Rig::new(&params(&[1]), &[long, middle], 1_000_000_000);
    rig.arrive_all(pair(0, 0));
    rig.send_until(1_000_000);
    let now = FRAME_BITS * 1_000_000_000 / rate + 20_000;
    rig.arrive(pair(now, 1)[0]).unwrap();
    let at = Instant::from_nanos(now);
    rig.scheduler
        .change_slice(SliceId::new(0), &short, &rig.pool, at)
        .unwrap();
    let Selection::Ready(first) = rig.scheduler.select(&rig.pool, at) else {
        panic!("both frames are eligible");
    };
    assert_eq!(first.slice, SliceId::new(1));
}
