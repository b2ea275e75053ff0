//! Runs of slices by the thousand: what the simulator holds to, among tens and hundreds of them.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::record::{RunRecord, SliceRecord};
use slicewise_study::{Backend, RunFilter, Study};

/// Slices that burst, all at once, beside slices that always have frames waiting.
const MANY: &str = "\
name: many
link: {rate: 1 Gbit/s}
dut: {model: port}
slices:
  gold: {match: {vlan: 10}, share: 400 Mbit/s, guaranteed: true}
  rest: {match: {vlan: 20}, share: 500 Mbit/s}
populations:
  gold: {sends: bursts, frame: 1514 B, burst: 3028 B, every: 5 ms}
  rest: {sends: backlog, frame: 1514 B, weights: [1, 2, 3]}
scenarios:
  tens: {reference: true, populations: {gold: 20, rest: 30}}
  hundreds: {populations: {gold: 20, rest: 300}}
policies:
  bounded:
    discipline: guaranteed
    guaranteed: {counts: L1, largest_frame: 1546 B, delays: {shortest: 100 us, longest: 10 ms}}
    classes:
      - {name: gold, slice: gold, guarantee: {rate: 10 Mbit/s, burst: 3092 B, delay: 2 ms}}
      - {name: rest, slice: rest, queue_limit: 64 packets}
  turns:
    discipline: deficit_round_robin
    classes:
      - {name: gold, slice: gold, queue_limit: 64 packets}
      - {name: rest, slice: rest, queue_limit: 64 packets}
repetitions: 3
duration: 60 ms
measure: {bin: 5 ms}
";

fn study(changes: &[(&str, &str)]) -> Study {
    changed(MANY, changes)
}

fn records(study: &Study, policy: &str, scenario: &str) -> Vec<RunRecord> {
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        scenarios: vec![scenario.to_owned()],
        ..RunFilter::default()
    };
    let runs = study.runs(&filter).unwrap();
    let simulator = Simulator::default();
    let records = runs.iter().map(|run| simulator.run(study, run).unwrap());
    records.collect()
}

const POLICIES: [&str; 2] = ["bounded", "turns"];
const SCENARIOS: [&str; 2] = ["tens", "hundreds"];

/// Every run of the study.
fn all(study: &Study) -> Vec<RunRecord> {
    let cells = POLICIES
        .iter()
        .flat_map(|policy| SCENARIOS.iter().map(move |scenario| (policy, scenario)));
    cells
        .flat_map(|(policy, scenario)| records(study, policy, scenario))
        .collect()
}

fn slice<'a>(record: &'a RunRecord, name: &str) -> &'a SliceRecord {
    record.slices.iter().find(|s| s.slice == name).unwrap()
}

/// What `bounded` proves of a frame of `gold`: what it asks for.
fn bound_ns(study: &Study) -> u64 {
    let description = study.description("test");
    let bound = description.policies[0].delay_bounds["gold"].end_to_end_ns();
    assert_eq!(bound, 2_000_000);
    bound
}

fn largest_delay(records: &[RunRecord], name: &str) -> u64 {
    let delays = records.iter().map(|r| slice(r, name).whole.delay.max_ns);
    delays.max().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_record_and_another_another() {
    let bytes = |record: &RunRecord| serde_json::to_string(record).unwrap();
    let (first, second) = (study(&[]), study(&[]));
    let once: Vec<String> = all(&first).iter().map(bytes).collect();
    assert_eq!(once, all(&second).iter().map(bytes).collect::<Vec<_>>());
    let of_one_cell = &records(&first, "bounded", "tens");
    assert_ne!(
        slice(&of_one_cell[0], "gold").series,
        slice(&of_one_cell[1], "gold").series,
        "repetitions draw when bursts begin"
    );
}

#[test]
fn every_policy_is_offered_the_same_bursts() {
    let study = study(&[]);
    for scenario in SCENARIOS {
        let sent = |policy| -> Vec<Vec<u32>> {
            let records = records(&study, policy, scenario);
            let series = records
                .iter()
                .map(|r| slice(r, "gold").series.sent_frames.clone());
            series.collect()
        };
        assert_eq!(sent("bounded"), sent("turns"));
    }
}

#[test]
fn a_record_says_how_many_slices_there_were_and_what_they_cost() {
    let record = &records(&study(&[]), "bounded", "hundreds")[0];
    let reported: Vec<(&str, u32, bool)> = record
        .populations
        .iter()
        .map(|p| (p.slice.as_str(), p.slices, p.backlogged))
        .collect();
    assert_eq!(reported, [("gold", 20, false), ("rest", 300, true)]);
    for population in &record.populations {
        assert_eq!(population.turn_bytes, 1546);
        assert!(
            (1..=160).contains(&population.state_bytes),
            "{population:?}"
        );
    }
}

#[test]
fn bursts_within_a_guarantee_keep_to_their_bound_however_many_slices_wait() {
    for scenario in SCENARIOS {
        let study = study(&[]);
        let runs = records(&study, "bounded", scenario);
        let largest = largest_delay(&runs, "gold");
        assert!(largest <= bound_ns(&study), "{largest} ns in {scenario}");
        assert!(
            largest >= 20 * 2 * 1538 * 8,
            "all bursts came at once, so the last frame waited for the others: {largest} ns"
        );
        for run in &runs {
            assert_eq!(slice(run, "gold").whole.lost_frames, 0);
        }
    }
}

#[test]
fn under_deficit_round_robin_delay_grows_with_the_number_of_slices() {
    let largest = |scenario| largest_delay(&records(&study(&[]), "turns", scenario), "gold");
    let (tens, hundreds) = (largest("tens"), largest("hundreds"));
    assert!(hundreds > 4 * tens, "{tens} ns and {hundreds} ns");
    assert!(hundreds > bound_ns(&study(&[])), "{hundreds} ns");
}

#[test]
fn what_is_left_goes_by_weight_within_two_turns() {
    for record in all(&study(&[])) {
        let rest = &record.populations[1];
        let apart = rest.most_bytes_per_weight - rest.least_bytes_per_weight;
        assert!(apart <= 2 * rest.turn_bytes, "{:?}: {rest:?}", record.key);
        assert!(
            rest.least_bytes_per_weight > 0,
            "{:?}: {rest:?}",
            record.key
        );
    }
}

#[test]
fn a_weight_of_three_gets_three_times_as_much() {
    let with = |weights: &str| {
        let study = study(&[
            ("weights: [1, 2, 3]", weights),
            ("gold: 20, rest: 30", "gold: 1, rest: 2"),
        ]);
        records(&study, "bounded", "tens")
            .remove(0)
            .populations
            .remove(1)
    };
    let (equal, unequal) = (with("weights: [5, 5]"), with("weights: [1, 3]"));
    // Two slices, so that the whole excess is known: halves of five parts each, or four parts.
    let ratio = unequal.least_bytes_per_weight as f64 / equal.least_bytes_per_weight as f64;
    assert!((2.4..2.6).contains(&ratio), "{equal:?} {unequal:?}");
}

#[test]
fn nothing_is_lost_that_is_not_counted() {
    // A queue of one frame: the second of each burst and of each backlog has no room.
    let tight = study(&[(
        "burst: 3092 B, delay: 2 ms}}",
        "burst: 3092 B, delay: 2 ms}, queue_limit: 1 packets}",
    )]);
    for (study, loses) in [(study(&[]), false), (tight, true)] {
        for record in all(&study) {
            for slice in &record.slices {
                let figures = &slice.whole;
                let kept = figures.delay.samples + figures.lost_frames;
                assert_eq!(
                    figures.sent_frames, kept,
                    "{:?} {}",
                    record.key, slice.slice
                );
                let drops = record.drops.iter().filter(|drop| drop.class == slice.slice);
                let dropped: u64 = drops.map(|drop| drop.frames).sum();
                assert_eq!(dropped, figures.lost_frames, "{:?}", record.key);
            }
            let lost = slice(&record, "gold").whole.lost_frames;
            let expected = loses && record.key.policy == "bounded";
            assert_eq!(lost > 0, expected, "{:?}", record.key);
        }
    }
}

#[test]
fn the_link_is_never_idle_while_frames_wait() {
    for record in all(&study(&[])) {
        let received = record.slices.iter().map(|s| &s.series.received_bytes);
        let bins = record.slices[0].series.received_bytes.len();
        let by_bin = received.fold(vec![0; bins], |sum: Vec<u64>, own| {
            sum.iter().zip(own).map(|(a, b)| a + b).collect()
        });
        // 1538 bytes of the link for 1514 of a frame; a frame may end on either side of a bin.
        let full = record.bin_ns / 8 * 1514 / 1538;
        let offered_bins = usize::try_from(record.duration_ns / record.bin_ns).unwrap();
        for bytes in &by_bin[..offered_bins] {
            assert!(bytes.abs_diff(full) <= 1514, "{:?}: {by_bin:?}", record.key);
        }
    }
}
