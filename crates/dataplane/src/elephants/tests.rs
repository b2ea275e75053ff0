//! Who is tagged, against exact counts.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use super::{ElephantCounters, Elephants};
use crate::scheduler::{QueueId, Tree};
use proptest::prelude::*;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use slicewise_model::{Detector, ElephantsParams};
use slicewise_units::{BitRate, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

const LINK: BitRate = BitRate::new(10_000_000_000);
const INTERVAL: Duration = Duration::from_millis(2);
const RATE: BitRate = BitRate::new(300_000_000);

fn params(flows: u32) -> ElephantsParams {
    ElephantsParams {
        queue: "elephants".into(),
        threshold: RATE.bytes_in(INTERVAL),
        detector: Detector::HeavyHitters,
        interval: INTERVAL,
        times: 2,
        flows,
    }
}

/// Frames of flows, which are chosen with a probability by rank, rank^-skew.
struct Mix {
    random: Xoshiro256PlusPlus,
    /// The sum of the weights up to each flow.
    weights: Vec<f64>,
    lengths: Vec<u32>,
    load: f64,
}

impl Mix {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let flows = 20 + random.next_u64() % 3_000;
        let skew = 0.5 + unit(&mut random);
        let load = 0.4 + 0.6 * unit(&mut random);
        let mut sum = 0.0;
        let weights = (1..=flows).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        let weights = weights.collect();
        let lengths = (0..flows).map(|_| [60, 590, 1514][(random.next_u64() % 3) as usize]);
        let lengths = lengths.collect();
        Self {
            random,
            weights,
            lengths,
            load,
        }
    }

    /// The next frame: its flow and length, and the time that it takes on the link at the load.
    fn frame(&mut self) -> (u64, u32, Duration) {
        let all = self.weights.last().copied().unwrap();
        let at = all * unit(&mut self.random);
        let flow = self.weights.partition_point(|&sum| sum < at);
        let bytes = self.lengths[flow];
        let time = f64::from(bytes) * 8e9 / self.load / LINK.bits_per_second() as f64;
        // A key is a hash.
        let key = (flow as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (key, bytes, Duration::from_nanos(time as u64))
    }
}

fn unit(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[derive(Debug, Default)]
struct Outcome {
    elephants: u64,
    found: u64,
    false_positives: u64,
    /// Elephants that were not found.
    misses: u64,
    /// The most by which one of them exceeded the rate in the first of two intervals, as a part of the rate.
    exceeded: f64,
    /// Misses of flows that exceeded the rate by more than the bound.
    beyond_bound: u64,
    frames: u64,
    unfollowed: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.elephants += other.elephants;
        self.found += other.found;
        self.false_positives += other.false_positives;
        self.misses += other.misses;
        self.exceeded = self.exceeded.max(other.exceeded);
        self.beyond_bound += other.beyond_bound;
        self.frames += other.frames;
        self.unfollowed += other.unfollowed;
    }
}

/// Count a mix for some intervals, and compare what was tagged with what exact counts say.
fn outcome(seed: u64, flows: u32, intervals: u64) -> Outcome {
    let mut mix = Mix::new(seed);
    let params = params(flows);
    let threshold = params.threshold.bytes();
    let queues = [0, 1].map(QueueId::of);
    let (mut elephants, tree) = (Elephants::new(&params, queues), Tree::new());
    let mut sent: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut totals = vec![0u64; intervals as usize];
    let mut tagged = BTreeSet::new();
    let (mut now, mut frames) = (Instant::ZERO, 0);
    loop {
        let (flow, bytes, time) = mix.frame();
        let interval = (now.nanos() / INTERVAL.nanos()) as usize;
        if interval >= totals.len() {
            break;
        }
        let position = elephants.count(flow, bytes, now, &tree);
        if position.is_some_and(|position| elephants.flows.get(position).unwrap().is_tagged) {
            tagged.insert(flow);
        }
        sent.entry(flow).or_insert_with(|| vec![0; totals.len()])[interval] += u64::from(bytes);
        totals[interval] += u64::from(bytes);
        frames += 1;
        now = now.saturating_add(time);
    }
    let mut outcome = Outcome {
        frames,
        unfollowed: elephants.counters.unfollowed_frames,
        ..Outcome::default()
    };
    for (flow, sent) in &sent {
        let in_a_row = |least: &dyn Fn(usize) -> u64| {
            (1..sent.len()).any(|at| sent[at - 1] > least(at - 1) && sent[at] > threshold)
        };
        let is_elephant = in_a_row(&|_| threshold);
        let is_certain = in_a_row(&|at| threshold + totals[at] / u64::from(flows));
        let is_found = tagged.contains(flow);
        outcome.elephants += u64::from(is_elephant);
        outcome.found += u64::from(is_found && is_elephant);
        outcome.false_positives += u64::from(is_found && !is_elephant);
        outcome.beyond_bound += u64::from(is_certain && !is_found);
        if is_elephant && !is_found {
            outcome.misses += 1;
            let largest = sent.iter().max().unwrap();
            let exceeded = (largest - threshold) as f64 / threshold as f64;
            outcome.exceeded = outcome.exceeded.max(exceeded);
        }
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_mouse_is_tagged_and_no_elephant_beyond_the_bound_is_missed(seed: u64, flows in 34u32..300) {
        let outcome = outcome(seed, flows, 4);
        prop_assert_eq!(outcome.false_positives, 0);
        if outcome.unfollowed == 0 {
            prop_assert_eq!(outcome.beyond_bound, 0, "{:?}", outcome);
        }
    }
}

/// Figures of the page, counted again.
#[test]
#[ignore = "takes a minute"]
fn ten_thousand_mixes_give_no_false_positives_and_the_misses_of_the_page() {
    for (flows, misses) in [(64, 2), (256, 0), (1024, 0)] {
        let mut all = Outcome::default();
        (0..10_000).for_each(|seed| all += outcome(seed, flows, 3));
        assert_eq!((all.false_positives, all.beyond_bound), (0, 0), "{all:?}");
        assert_eq!((all.elephants, all.misses), (23_052, misses), "{all:?}");
    }
}

#[test]
fn counters_of_a_class_that_goes_on_are_added_to_those_before() {
    let of = |factor| ElephantCounters {
        tagged: factor,
        moved: 2 * factor,
        moved_back: 3 * factor,
        unfollowed_frames: 4 * factor,
    };
    let mut counters = of(10);
    counters.absorb(of(7));
    assert_eq!(counters, of(17));
}
