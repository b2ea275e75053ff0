//! Studies whose links are impaired: what is lost where, and that nothing else changes.

use proptest::prelude::*;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};
use std::collections::BTreeSet;

/// Two slices on a port that the second overloads.
const SMALL: &str = "\
name: small
link: {rate: 1 Gbit/s, propagation: 100 us, impairments: IMPAIRMENTS}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 60 %, guaranteed: true, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 40 %, headers: {vlan: 20}}
sources:
  steady: {slice: gold, pattern: iperf3, rate: 50 %, payload: PAYLOAD}
scenarios:
  calm:
    reference: true
    sources: {other: {slice: rest, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}}
  storm:
    sources: {other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: imix}}
policies:
  nothing: {none: true}
  weighted:
    classes:
      - {name: gold, slice: gold, minimum: 60 %}
      - {name: rest, slice: rest, queue_limit: 20 packets}
repetitions: 1
duration: 2 s
seed: SEED
";

fn study(impairments: &str, payload: &str, seed: u64) -> Study {
    let text = SMALL
        .replace("IMPAIRMENTS", impairments)
        .replace("PAYLOAD", payload)
        .replace("SEED", &seed.to_string());
    Study::parse(&text, "small.yaml", &MemoryFiles::new())
        .map_err(|e| e.to_string())
        .unwrap()
}

/// By policy, then scenario.
fn records(study: &Study) -> Vec<RunRecord> {
    let runs = study.runs(&RunFilter::default()).unwrap();
    runs.iter()
        .map(|run| Simulator::default().run(study, run).unwrap())
        .collect()
}

fn on_links(record: &RunRecord, slice: &str) -> u64 {
    let losses = record.link_losses.iter().filter(|loss| loss.slice == slice);
    losses.map(|loss| loss.frames).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_is_sent_is_received_or_dropped_by_the_policy_or_lost_on_a_link(
        seed in any::<u64>(),
        loss_ppm in 0u32..300_000,
        errors in 0u32..1_000,
        vary_us in 0u32..5_000,
        reorder in any::<bool>(),
    ) {
        let varies = format!("{{up_to: {vary_us} us, reorder: {reorder}}}");
        let impairments = format!(
            "{{ingress: {{loss: {loss_ppm} ppm, bit_errors: {errors}e-8, delay_variation: {varies}}}, \
             egress: {{loss: {{to_bad: {} ppm, to_good: 20 %}}, bit_errors: {errors}e-8, delay_variation: {varies}}}}}",
            loss_ppm / 10 + 1,
        );
        for record in records(&study(&impairments, "{64 B: 7, 576 B: 4, 1400 B: 1}", seed)) {
            let slices = record.slices.iter().map(|slice| &slice.whole);
            for whole in slices.clone() {
                prop_assert_eq!(whole.sent_frames, whole.delay.samples + whole.lost_frames);
            }
            let lost: u64 = slices.map(|whole| whole.lost_frames).sum();
            let dropped: u64 = record.drops.iter().map(|drop| drop.frames).sum();
            let on_links: u64 = record.link_losses.iter().map(|loss| loss.frames).sum();
            prop_assert_eq!(lost, dropped + on_links);
        }
    }
}

#[test]
fn losses_are_counted_by_link_slice_and_reason_and_apart_from_the_drops_of_the_policy() {
    let impairments = "{ingress: {loss: 2 %}, egress: {bit_errors: 1e-6}}";
    let records = records(&study(impairments, "1000 B", 1));
    let kinds = |record: &RunRecord| -> BTreeSet<String> {
        let losses = record.link_losses.iter();
        losses
            .map(|loss| format!("{} {} {}", loss.link, loss.slice, loss.reason))
            .collect()
    };
    let expected = [
        "egress gold bit_error",
        "egress rest bit_error",
        "ingress gold loss",
        "ingress rest loss",
    ];
    for record in &records {
        assert_eq!(kinds(record), expected.map(str::to_owned).into());
    }
    // Nobody overloads the port: only links lose, and what they do is as much as is asked for.
    let calm = &records[0];
    assert!(calm.drops.is_empty());
    let gold = &calm.slices[0].whole;
    let share = on_links(calm, "gold") as f64 / gold.sent_frames as f64;
    // 2 % at random, and 1,050 bytes with 8,400 bits: 2.8 % in all; 1,200 frames.
    assert!((0.014..0.045).contains(&share), "{share}");
    // The policy drops by itself, and none of that is a link's.
    let storm = &records[1];
    assert!(storm.drops.iter().all(|drop| drop.reason == "queue_full"));
    assert!(!storm.drops.is_empty());
}

#[test]
fn a_source_loses_the_same_frames_on_the_way_to_the_device_whatever_else_differs() {
    let records = records(&study(
        "{ingress: {loss: {to_bad: 1 %, to_good: 25 %}}}",
        "1000 B",
        3,
    ));
    let lost: BTreeSet<u64> = records
        .iter()
        .map(|record| on_links(record, "gold"))
        .collect();
    assert_eq!(lost.len(), 1, "in all policies and scenarios: {lost:?}");
    assert!(lost.first().is_some_and(|frames| *frames > 10));
}

#[test]
fn delay_varies_by_what_is_asked_for_and_nothing_is_lost() {
    let of = |impairments: &str| records(&study(impairments, "1000 B", 1)).swap_remove(2);
    let plain = of("{}");
    assert!(plain.link_losses.is_empty());
    for reorder in [false, true] {
        let varied = of(&format!(
            "{{egress: {{delay_variation: {{up_to: 4 ms, reorder: {reorder}}}}}}}"
        ));
        assert!(varied.drops.is_empty() && varied.link_losses.is_empty());
        let (before, after) = (&plain.slices[0].whole, &varied.slices[0].whole);
        assert_eq!(before.sent_frames, after.sent_frames);
        assert_eq!(after.lost_frames, 0);
        assert!(after.delay.max_ns <= before.delay.max_ns + 4_000_000);
        let more = after.delay.mean_ns - before.delay.mean_ns;
        // In order, a frame waits for the one before it, which comes 1.7 ms earlier on average.
        let expected = if reorder { 1.9e6..2.1e6 } else { 2.1e6..2.9e6 };
        assert!(expected.contains(&more), "{more}");
    }
}

#[test]
fn a_study_without_impairments_has_the_record_it_had_before_there_were_any() {
    let record = records(&study("{}", "1000 B", 1)).swap_remove(0);
    let written = serde_json::to_string(&record).unwrap();
    assert!(!written.contains("link_losses"));
}
