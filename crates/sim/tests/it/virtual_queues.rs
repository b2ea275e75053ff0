//! Virtual queues of a switch: what credit saved while idle does to another queue.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::loss_episodes::{LossEpisode, loss_episodes};
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter};

/// The first set of the study that ships, with a fifth of its credit. Bursts of 100 ms every 500 ms.
const STUDY: &str = "\
name: virtual-queues
link: {rate: 1 Gbit/s}
dut: {model: switch, credit: 200 ms}
measure: {bin: 1 ms}
slices:
  h1: {match: {source: 10.0.0.1}, share: 64 %, headers: {source: 10.0.0.1}}
  h2: {match: {source: 10.0.0.2}, share: 10 %, headers: {source: 10.0.0.2}}
sources:
  h1: {slice: h1, host: h1, pattern: cbr, payload: 1470 B, counts: L2, rate: 640 Mbit/s}
scenarios:
  bursts:
    reference: true
    sources:
      h2: {slice: h2, host: h2, pattern: cbr, payload: 1470 B, counts: L2, rate: 465 Mbit/s, start: 500 ms, stop: 2 s, on_off: {on_for: 100 ms, off_for: 400 ms}}
policies:
  queues:
    classes:
      - {name: q1, slice: h1, minimum: 640 Mbit/s, shape: 640 Mbit/s, queue_limit: 100 packets}
      - {name: q2, slice: h2, minimum: 100 Mbit/s, shape: 100 Mbit/s, queue_limit: 100 packets}
repetitions: 1
duration: 2 s
";

fn run(changes: &[(&str, &str)]) -> RunRecord {
    let study = changed(STUDY, changes);
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

/// The times in which h1 loses frames.
fn episodes(changes: &[(&str, &str)]) -> Vec<LossEpisode> {
    let record = run(changes);
    loss_episodes(&record.slices[0].series, record.bin_ns)
}

fn length_ms(changes: &[(&str, &str)]) -> u64 {
    let episodes = episodes(changes);
    assert_eq!(episodes.len(), 3, "{episodes:?}");
    let all: u64 = episodes.iter().map(|episode| episode.length_ns).sum();
    all / 3 / 1_000_000
}

#[test]
fn a_burst_hurts_the_other_queue_until_it_has_spent_what_its_queue_saved() {
    // 200 ms * 100 / (465 - 100) = 54.8 ms, of which the queue of 100 frames covers 10.
    let episodes = episodes(&[]);
    assert_eq!(episodes.len(), 3);
    for (episode, burst) in episodes.iter().zip([500, 1_000, 1_500]) {
        let begins = episode.begins_ns / 1_000_000 - burst;
        let ends = begins + episode.length_ns / 1_000_000;
        assert!((8..13).contains(&begins), "{begins}");
        assert!((54..57).contains(&ends), "{ends}");
    }
    // A link of 1 Gbit/s carries 984 Mbit/s of L2; h2 takes 465 of that, and h1 lacks 121 of its 640.
    let ratio = episodes[0].lost_frames as f64 / episodes[0].sent_frames as f64;
    assert!((0.17..0.2).contains(&ratio), "{ratio}");
}

#[test]
fn the_time_is_proportional_to_the_credit_in_seconds_and_not_to_the_length_of_the_burst() {
    let usual = length_ms(&[]);
    let half = length_ms(&[("credit: 200 ms", "credit: 100 ms")]);
    // The queue, which covers the first 10 ms, stays as it is.
    assert!((half * 2 + 10).abs_diff(usual) <= 3, "{half} and {usual}");
    let longer = length_ms(&[(
        "{on_for: 100 ms, off_for: 400 ms}",
        "{on_for: 200 ms, off_for: 300 ms}",
    )]);
    assert!(longer.abs_diff(usual) <= 1, "{longer} and {usual}");
}

#[test]
fn a_pause_shorter_than_the_credit_takes_gives_back_as_much_of_it() {
    // 60 ms of silence earn 60 of the 200 ms.
    let episodes = episodes(&[(
        "{on_for: 100 ms, off_for: 400 ms}",
        "{on_for: 440 ms, off_for: 60 ms}",
    )]);
    let lengths: Vec<u64> = episodes.iter().map(|of| of.length_ns / 1_000_000).collect();
    assert!((40..48).contains(&lengths[0]), "{lengths:?}");
    assert!((4..10).contains(&lengths[1]), "{lengths:?}");
}

#[test]
fn a_queue_without_a_minimum_hurts_no_other() {
    assert_eq!(episodes(&[("minimum: 100 Mbit/s, ", "")]), []);
}

#[test]
fn without_any_minimum_the_time_is_the_same() {
    let neither = [("minimum: 640 Mbit/s, ", ""), ("minimum: 100 Mbit/s, ", "")];
    assert!(length_ms(&neither).abs_diff(length_ms(&[])) <= 1);
}

#[test]
fn a_burst_that_the_policy_states_counts_instead_of_the_credit_of_the_switch() {
    let of = (
        "shape: 100 Mbit/s",
        "shape: {rate: 100 Mbit/s, burst: 40 kB}",
    );
    assert_eq!(episodes(&[of]), []);
}

/// The bursts end long before the run does. What follows is no steady state, and the losses count.
#[test]
fn losses_of_a_load_that_ends_within_the_run_are_not_taken_for_a_transient() {
    let record = run(&[
        ("stop: 2 s", "stop: 1 s"),
        ("duration: 2 s", "duration: 6 s"),
    ]);
    assert_eq!(record.transient.end_ns, 0);
    let h1 = &record.slices[0];
    assert_eq!(h1.steady.lost_frames, h1.whole.lost_frames);
    assert!(h1.steady.lost_frames > 0);
}
