//! Studies in which conforming frames were late or lost: each has a bound that holds, or none and the reason, and loses nothing that
//! its guarantees cover.

use crate::support::parsed;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};

fn case(text: &str) -> (Study, Vec<RunRecord>) {
    let study = parsed(text);
    let runs = study.runs(&RunFilter::default()).unwrap();
    let runs = runs.iter();
    let records = runs.map(|run| Simulator::default().run(&study, run).unwrap());
    let records = records.collect();
    (study, records)
}

fn lost(records: &[RunRecord], policy: &str, slice: usize) -> u64 {
    let of_policy = records.iter().filter(|record| record.key.policy == policy);
    of_policy
        .map(|record| record.slices[slice].whole.lost_frames)
        .sum()
}

/// The reason why the first slice has no bound; else its bound and the largest delay, ns.
fn bound(study: &Study, records: &[RunRecord]) -> Result<(u64, u64), String> {
    let description = study.description("test");
    let policy = &description.policies[0];
    let name = &description.slices[0].name;
    let mut unbounded = policy.unbounded.iter();
    if let Some(unbounded) = unbounded.find(|unbounded| unbounded.slice == *name) {
        return Err(unbounded.why.clone());
    }
    let delays = records
        .iter()
        .map(|record| record.slices[0].whole.delay.max_ns);
    Ok((
        policy.delay_bounds[name].end_to_end_ns(),
        delays.max().unwrap(),
    ))
}

#[test]
fn a_class_fed_by_two_hosts_waits_for_tokens_of_either() {
    let (study, records) = case(include_str!("../cases/hosts.yaml"));
    let (bound, largest) = bound(&study, &records).unwrap();
    // Delays of the adapters and of the device alone would be 10 ms.
    assert!(
        largest > 15_000_000 && largest <= bound,
        "{largest} of {bound}"
    );
    assert!(bound < 18_000_000, "{bound}");
}

#[test]
fn two_classes_that_are_one_on_the_second_device_wait_for_tokens_of_either() {
    let text = include_str!("../cases/merge2.yaml");
    let (study, records) = case(text);
    let why = bound(&study, &records).unwrap_err();
    assert!(why.contains("its queue holds 117"), "{why}");
    let roomy = text.replace("name: both,", "name: both, queue_limit: 500 packets,");
    assert_ne!(roomy, text);
    let (study, records) = case(&roomy);
    let (bound, largest) = bound(&study, &records).unwrap();
    assert!(
        largest > 31_000_000 && largest <= bound,
        "{largest} of {bound}"
    );
    assert_eq!(lost(&records, "guaranteed", 0), 0);
}

#[test]
fn a_flow_queue_drops_nothing_of_a_slice_within_its_guarantee() {
    let (_, records) = case(include_str!("../cases/codel.yaml"));
    assert_eq!(
        (lost(&records, "plain", 0), lost(&records, "flows", 0)),
        (0, 0)
    );
}

#[test]
fn the_default_queue_has_room_for_small_frames_that_count_little() {
    let (study, records) = case(include_str!("../cases/l3.yaml"));
    assert_eq!(lost(&records, "l3", 0), 0);
    let (bound, largest) = bound(&study, &records).unwrap();
    assert!(largest <= bound, "{largest} of {bound}");
}

#[test]
fn a_queue_that_is_too_short_for_a_guarantee_has_no_bound_and_is_warned_of() {
    let (study, records) = case(include_str!("../cases/lq.yaml"));
    assert!(lost(&records, "l3", 0) > 0);
    insta::assert_snapshot!(bound(&study, &records).unwrap_err(), @"1013 packets may wait in class `gold`, and its queue holds 10: frames within its guarantee may be lost unless `queue_limit` is larger");
    let notes = study.notes().into_iter();
    let notes: Vec<String> = notes
        .filter(|note| note.contains("leave `queue_limit`"))
        .collect();
    insta::assert_snapshot!(notes.join("\n"), @"policy `l3`: class `gold`: its queue holds 10 packets, but up to 1101 small ones may wait within the guarantee: some may be lost; leave `queue_limit` out, or state the `smallest_frame` of the guarantee");
}

/// The smallest bound and how close a packet comes to it, of all slices.
fn all_within(text: &str) -> Vec<(u64, u64)> {
    let (study, records) = case(text);
    let description = study.description("test");
    let slices = description.slices.iter().enumerate();
    let bounded = slices.filter_map(|(index, slice)| {
        let bound = description.policies[0].delay_bounds.get(&slice.name)?;
        let delays = records
            .iter()
            .map(|record| record.slices[index].whole.delay.max_ns);
        Some((delays.max().unwrap(), bound.end_to_end_ns()))
    });
    let bounded: Vec<(u64, u64)> = bounded.collect();
    for (largest, bound) in &bounded {
        assert!(largest <= bound, "{largest} of {bound}");
    }
    bounded
}

/// Video waits in its adapter, leaves the first device as excess before it is eligible, and uses the tokens of voice on the second.
#[test]
fn frames_that_leave_early_as_excess_are_counted_as_they_were_sent() {
    let bounded = all_within(include_str!("../cases/early-excess.yaml"));
    assert!(bounded[0].0 > 22_000_000, "{bounded:?}");
    all_within(include_str!("../cases/three-devices.yaml"));
}

/// Buckets of 2 ms release frames so much before they are eligible, also those of a slice at its maximum.
#[test]
fn frames_that_are_released_early_are_counted_as_they_were_sent() {
    let bounded = all_within(include_str!("../cases/early-release.yaml"));
    assert!(bounded[0].0 > 1_800_000, "{bounded:?}");
}

/// A first device that gives voice another code point, and a second one that knows only that.
const REMARKED: &str = "
name: remarked
title: t
description: d
link: {rate: 100 Mbit/s}
path: [first, second]
devices:
  first: {model: port, port_rate: 100 Mbit/s}
  second:
    model: port
    port_rate: 100 Mbit/s
    policy:
      title: second
      discipline: guaranteed
      classes:
        - {name: gold, match: {dscp: cs5}, guarantee: {rate: 2 Mbit/s, burst: 1600 B, delay: 3 ms}}
slices:
  voice: {match: {dscp: ef}, share: 2 Mbit/s, guaranteed: true, headers: {dscp: ef, source: 10.0.1.2, destination: 10.0.2.2}}
  bulk: {match: {dscp: 0}, share: 40 Mbit/s, headers: {source: 10.0.1.4, destination: 10.0.2.4}}
sources:
  voice: {slice: voice, host: h1, pattern: cbr, payload: 158 B, rate: 0.5 Mbit/s}
  bulk: {slice: bulk, host: h2, pattern: iperf3, payload: 1458 B, rate: 60 Mbit/s}
scenarios:
  calm: {title: as promised, reference: true}
policies:
  guaranteed:
    title: guaranteed
    discipline: guaranteed
    classes:
      - {name: voice, slice: voice, set_dscp: cs5, guarantee: {rate: 2 Mbit/s, burst: 1600 B, delay: 2 ms}}
repetitions: 1
duration: 1 s
seed: 1
";

#[test]
fn frames_are_followed_into_the_class_of_their_new_code_point() {
    let (study, records) = case(REMARKED);
    let (both, largest) = bound(&study, &records).unwrap();
    assert!(
        largest <= both && (5_000_000..5_100_000).contains(&both),
        "{both}"
    );
    let unmarked = REMARKED.replace("set_dscp: cs5, ", "");
    let (study, records) = case(&unmarked);
    let why = bound(&study, &records).unwrap_err();
    assert_eq!(why, "not every device on its path gives it a guarantee");
}

/// Devices mark the outer packet, and classify by the inner one.
#[test]
fn in_a_tunnel_frames_stay_in_the_class_of_their_own_code_point() {
    let inside = REMARKED.replace("headers: {dscp: ef,", "headers: {teid: 7, dscp: ef,");
    let (study, records) = case(&inside);
    let why = bound(&study, &records).unwrap_err();
    assert_eq!(why, "not every device on its path gives it a guarantee");
    // A device that drops what is in the class tells where frames are.
    let dropped = |dscp: &str| {
        let second =
            format!("match: {{dscp: {dscp}}}, police: {{rate: 8 kbit/s, burst: 1600 B}}, ");
        let (_, records) = case(&inside.replace("match: {dscp: cs5}, ", &second));
        records[0].slices[0].whole.lost_frames
    };
    assert_eq!(dropped("cs5"), 0);
    assert!(dropped("ef") > 100);
}

/// On the last device it does not matter what frames are marked as.
#[test]
fn where_a_policer_marks_some_frames_nothing_is_stated_of_the_next_device() {
    let police = "police: {rate: 1 Mbit/s, burst: 1600 B, exceed: set_dscp 0}";
    let by_policer = REMARKED.replace("set_dscp: cs5", police);
    let (study, records) = case(&by_policer);
    insta::assert_snapshot!(bound(&study, &records).unwrap_err(), @"the policer of class `voice` marks some frames, which may be in other classes from there on");
    let on_the_last = REMARKED.replace(
        "match: {dscp: cs5}",
        &format!("match: {{dscp: cs5}}, {police}"),
    );
    let (study, records) = case(&on_the_last);
    assert!(bound(&study, &records).is_ok());
}
