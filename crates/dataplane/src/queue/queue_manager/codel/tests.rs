mod reference;

use super::{Candidate, CoDel, CoDelState, Decision, MAX_PACKET};
use proptest::prelude::*;
use reference::Reference;
use slicewise_model::CoDelParams;
use slicewise_units::{Duration, Instant};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
const TARGET: u64 = 5 * MS;
const INTERVAL: u64 = 100 * MS;

fn codel(target: u64, interval: u64, ecn: bool) -> CoDel {
    CoDel::new(&CoDelParams {
        target: Duration::from_nanos(target),
        interval: Duration::from_nanos(interval),
        ecn,
    })
}

/// A queue under the state machine.
struct Queue {
    frames: VecDeque<(u64, u64)>,
    state: CoDelState,
    dropped: Vec<(u64, u64)>,
    marked: Vec<u64>,
}

impl Queue {
    const fn new() -> Self {
        Self {
            frames: VecDeque::new(),
            state: CoDelState::NEW,
            dropped: Vec::new(),
            marked: Vec::new(),
        }
    }

    fn dequeue(&mut self, codel: CoDel, now: u64, capable: bool) -> Option<(u64, u64)> {
        while let Some(frame) = self.frames.pop_front() {
            let candidate = Candidate {
                arrival: Instant::from_nanos(frame.0),
                bytes_behind: self.frames.iter().map(|(_, bytes)| bytes).sum(),
                is_ecn_capable: capable,
                is_protected: false,
            };
            match codel.judge(&mut self.state, candidate, Instant::from_nanos(now)) {
                Decision::Send => return Some(frame),
                Decision::Mark => {
                    self.marked.push(now);
                    return Some(frame);
                }
                Decision::Drop(_) => self.dropped.push(frame),
            }
        }
        codel.on_empty(&mut self.state);
        None
    }
}

/// A queue that always has frames which waited 50 ms: times of drops, one dequeue per millisecond.
fn standing(codel: CoDel, until: u64, capable: bool) -> (Vec<u64>, Queue) {
    let mut queue = Queue::new();
    let mut times = Vec::new();
    for now in (50 * MS..until).step_by(MS as usize) {
        while queue.frames.len() < 60 {
            queue.frames.push_back((now - 50 * MS, 1500));
        }
        for frame in &mut queue.frames {
            frame.0 = now - 50 * MS;
        }
        let before = queue.dropped.len();
        queue.dequeue(codel, now, capable);
        times.extend(std::iter::repeat_n(now, queue.dropped.len() - before));
    }
    (times, queue)
}

#[test]
fn a_standing_queue_loses_frames_ever_faster_by_the_square_root() {
    let (times, _) = standing(codel(TARGET, INTERVAL, false), 1_000 * MS, false);
    assert_eq!(times[0], 150 * MS, "an interval after it was first seen");
    // interval · Σ 1/√k from k = 1 on, which no rounding makes earlier, and no dequeue comes more
    // than a millisecond after it.
    let mut due = times[0] as f64;
    for (drops, &time) in times.iter().enumerate().skip(1) {
        due += INTERVAL as f64 / (drops as f64).sqrt();
        let time = time as f64;
        assert!(
            (due - 1_000.0..=due + MS as f64).contains(&time),
            "{drops}: {time} {due}"
        );
    }
    assert!(times.len() > 20, "{}", times.len());
}

#[test]
fn a_standing_queue_that_comes_back_soon_meets_the_drop_rate_it_left() {
    let codel = codel(TARGET, INTERVAL, false);
    let (times, mut queue) = standing(codel, 1_000 * MS, false);
    let drops = times.len() as u32;
    let state = queue.state;
    assert_eq!(state.count, drops);
    // It empties, and stands again.
    let short = |queue: &mut Queue, now: u64| {
        queue.frames = [(now, 1500)].into();
        queue.dequeue(codel, now, false);
    };
    let again = |queue: &mut Queue, now: u64| {
        for now in [now, now + INTERVAL] {
            queue.frames = std::iter::repeat_n((now - 50 * MS, 1500), 9).collect();
            queue.dequeue(codel, now, false);
        }
        queue.state.count
    };
    short(&mut queue, 1_001 * MS);
    assert_eq!(again(&mut queue, 1_100 * MS), drops - 1);
    queue.state = state;
    short(&mut queue, 1_001 * MS);
    assert_eq!(again(&mut queue, 3_000 * MS), 1, "16 intervals later");
}

#[test]
fn ecn_capable_frames_are_marked_instead_at_the_same_times() {
    let (drops, _) = standing(codel(TARGET, INTERVAL, true), 600 * MS, false);
    let (none, queue) = standing(codel(TARGET, INTERVAL, true), 600 * MS, true);
    assert!(none.is_empty());
    assert_eq!(queue.marked, drops);
    let (_, queue) = standing(codel(TARGET, INTERVAL, false), 600 * MS, true);
    assert!(queue.marked.is_empty(), "unless that is switched off");
}

#[test]
fn the_last_full_frame_of_a_queue_is_never_dropped() {
    let codel = codel(TARGET, INTERVAL, false);
    let mut queue = Queue::new();
    for now in (0..2_000 * MS).step_by(MS as usize) {
        queue.frames = [(0, 9000), (0, MAX_PACKET)].into();
        assert!(queue.dequeue(codel, now, false).is_some());
    }
    assert!(queue.dropped.is_empty());
}

#[test]
fn extreme_times_neither_overflow_nor_stop_it() {
    for interval in [1, u64::from(u32::MAX), u64::MAX] {
        let codel = codel(1, interval, false);
        let mut queue = Queue::new();
        for now in [0, 1, u64::MAX - 1, u64::MAX, u64::MAX] {
            queue.frames = std::iter::repeat_n((0, 1500), 9).collect();
            assert!(queue.dequeue(codel, now, false).is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Frames and departures at random: it drops what the RFC's own words drop, never a frame
    /// that waited less than the target, and loses none.
    #[test]
    fn drops_what_the_rfc_drops(
        target in 1u64..50,
        more in 1u64..200,
        steps in prop::collection::vec((0u64..40, 0usize..4, 0usize..4, 60u64..3000), 1..400),
    ) {
        let codel = codel(target * MS, (target + more) * MS, false);
        let mut reference = Reference::new(target * MS, (target + more) * MS);
        let mut queue = Queue::new();
        let (mut now, mut arrived, mut left) = (1, 0, 0);
        for (gap, arrivals, departures, bytes) in steps {
            now += gap * MS / 3;
            for _ in 0..arrivals {
                queue.frames.push_back((now, bytes));
                reference.queue.push_back((now, bytes));
                arrived += 1;
            }
            for _ in 0..departures {
                let dropped = queue.dropped.len();
                let frame = queue.dequeue(codel, now, false);
                prop_assert_eq!(frame, reference.dequeue(now));
                left += usize::from(frame.is_some());
                for (arrival, _) in &queue.dropped[dropped..] {
                    prop_assert!(now - arrival >= target * MS);
                }
            }
            prop_assert_eq!(&queue.dropped, &reference.dropped);
            prop_assert_eq!(arrived, left + queue.dropped.len() + queue.frames.len());
        }
    }
}
