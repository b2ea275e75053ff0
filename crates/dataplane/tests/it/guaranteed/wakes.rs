//! However many slices become eligible at once, a call wakes few of them, and none is late.

use super::rig::{
    Arrival, Conformance, LARGEST_FRAME, Rig, best_effort, guaranteed, params, with_maximum,
};
use slicewise_dataplane::guaranteed::{Selection, WAKES_PER_CALL};
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
    with_maximum(
        guaranteed(rate, LARGEST_FRAME, delay),
        rate,
        LARGEST_FRAME,
    )
}

fn crowd(slices: u32) -> Vec<SliceParams> {
    let slice = limited(RATE, Duration::from_millis(50));
    vec![slice; slices as usize]
}

/// Two largest frames at once, of which the first is eligible.
fn pair(at: u64, slice: u32) -> [Arrival; 2] {
    let bytes = LARGEST_FRAME;
    [Arrival { at, slice, bytes }; 2]
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
fn run_crowd(best_effort_frames: usize) -> (Rig, Vec<SliceParams>) {
    let mut slices = crowd(CROWD);
    let urgent = limited(20_000_000, Duration::from_micros(20));
    let urgent_first = CROWD;
    slices.extend([urgent; 50]);
    let excess = slices.len() as u32;
    slices.push(best_effort(60_000));
    let mut arrivals: Vec<Arrival> = (0..CROWD).flat_map(|id| pair(0, id)).collect();
    arrivals.extend((0..best_effort_frames).map(|_| Arrival {
        at: 30_000_000,
        slice: excess,
        bytes: LARGEST_FRAME,
    }));
    let interval = FRAME_BITS * 1_000_000_000 / 20_000_000;
    // From one frame time to one wheel bucket after the crowd.
    arrivals.extend((0..50).flat_map(|n| {
        pair(TOGETHER - interval + 121 + u64::from(n) * 200, urgent_first + n)
    }));
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    rig.run(&arrivals);
    (rig, slices)
}

#[test]
fn a_crowd_that_becomes_eligible_at_once_delays_nobody_on_an_idle_link() {
    let (rig, slices) = run_crowd(0);
    assert_in_time(&rig, &slices);
}

#[test]
fn a_crowd_that_becomes_eligible_at_once_delays_nobody_on_a_busy_link() {
    let (rig, slices) = run_crowd(400_000);
    assert_in_time(&rig, &slices);
}
