//! Studies measured from captures: what their files say, and what is said of mistakes in them.

use crate::support::{self, told};
use insta::assert_snapshot;
use slicewise_study::{MeasuredStudy, MemoryFiles};
use slicewise_units::Duration;
use std::path::Path;

const MEASURED: &str = "\
name: two-policies
dut: a router in the laboratory
link: 100 Mbit/s
slices:
  voice: {match: {vlan: 10}, share: 20 %, guaranteed: true}
  rest: {match: {}, share: 80 Mbit/s}
policies:
  none: {title: one queue}
  llq: {configuration: priority 20000}
scenarios:
  calm: {reference: true}
  storm: {title: overload, cycle: 2 s}
repetitions: 3
duration: 60 s
captures:
  sent: runs/{policy}/{scenario}-{repetition}/tx*.pcap
  received: runs/{policy}/{scenario}-{repetition}/rx*.pcap
";

fn parse(text: &str) -> Result<MeasuredStudy, String> {
    MeasuredStudy::parse(text, "measured.yaml", &support::files(), "1.0")
        .map_err(|mistakes| told(&mistakes))
}

fn mistakes(old: &str, new: &str) -> String {
    assert!(MEASURED.contains(old), "`{old}` is not in the study");
    parse(&MEASURED.replacen(old, new, 1)).expect_err("this should be refused")
}

#[test]
fn a_measured_study_says_what_was_run_and_where_its_captures_are() {
    let study = parse(MEASURED).unwrap();
    let description = &study.description;
    assert_eq!(description.name, "two-policies");
    assert_eq!(description.repetitions, 3);
    assert_eq!(description.capacity.bits_per_second, 100_000_000);
    let shares: Vec<u64> = description
        .slices
        .iter()
        .map(|slice| slice.share_bits_per_second)
        .collect();
    assert_eq!(shares, [20_000_000, 80_000_000]);
    assert_eq!(description.scenarios[1].cycle_ns, 2_000_000_000);
    let captures = study.captures.unwrap();
    let sent = captures.of_run(&captures.sent, "llq", "storm", 2);
    assert_eq!(sent, Path::new("runs/llq/storm-002/tx*.pcap"));
}

#[test]
fn slices_alone_are_enough_to_read_one_pair_of_captures() {
    let study = parse("slices: {voice: {match: {dscp: ef}}}").unwrap();
    assert_eq!(study.matches.len(), 1);
    assert!(study.captures.is_none() && study.duration.is_none());
    assert_eq!(study.bin, Duration::from_millis(50));
    assert_eq!(study.description.repetitions, 0);
}

#[test]
fn a_study_that_can_be_simulated_tells_slices_and_first_sources_too() {
    let study = parse(support::STUDY).unwrap();
    assert_eq!(study.description.name, "small");
    let sources = study.first_sources[0].iter();
    let vlans: Vec<Option<u16>> = sources.map(|headers| headers.unwrap().vlan).collect();
    assert_eq!(vlans, [Some(10), Some(20)]);
    let measured = parse(MEASURED).unwrap();
    assert!(measured.first_sources.is_empty());
}

#[test]
fn the_same_file_has_the_same_digest_and_another_one_another() {
    let digest = |text: &str| parse(text).unwrap().description.digest;
    assert_eq!(digest(MEASURED), digest(MEASURED));
    let other = MEASURED.replace("storm", "tempest");
    assert_ne!(digest(MEASURED), digest(&other));
    let study = slicewise_study::Study::parse(support::STUDY, "measured.yaml", &support::files());
    assert_eq!(digest(support::STUDY), study.unwrap().digest());
}

#[test]
fn a_path_that_does_not_tell_runs_apart_is_refused() {
    assert_snapshot!(mistakes("tx*.pcap", "tx-{run}.pcap"), @"measured.yaml:16:9 `runs/{policy}/{scenario}-{repetition}/tx-{run}.pcap`: only {policy}, {scenario} and {repetition} can stand in braces");
    assert_snapshot!(mistakes("{policy}/{scenario}-{repetition}/rx", "{policy}/rx"), @"
    measured.yaml:17:13 `runs/{policy}/rx*.pcap`: `{scenario}` is missing: there are several
    measured.yaml:17:13 `runs/{policy}/rx*.pcap`: `{repetition}` is missing: there are several
    ");
}

#[test]
fn a_percentage_needs_something_to_be_of() {
    assert_snapshot!(mistakes("link: 100 Mbit/s\n", ""), @"measured.yaml:4:37 `20 %`: a percentage, but there is no `link` that it refers to; help: add `link: RATE`, what the slices share");
}

#[test]
fn slices_are_needed() {
    let text = "name: empty\n";
    let refused = MeasuredStudy::parse(text, "measured.yaml", &MemoryFiles::new(), "1.0");
    assert_snapshot!(refused.unwrap_err().to_string(), @"
    error: `slices` is missing: at least one is required
     --> measured.yaml:1:1
      |
    1 | name: empty
      | ^
    ");
}

#[test]
fn settings_of_other_files_and_impossible_ones_are_refused() {
    assert_snapshot!(mistakes("duration: 60 s", "duration: 60.01 s\nrepeat: 3"), @"
    measured.yaml:14:11 `60.01 s`: the run of 60.01 s is not a whole number of bins of 50 ms; help: give `duration` a multiple of `measure.bin`
    measured.yaml:15:1 `repeat`: `repeat` is not a setting here; help: did you mean `repetitions`?
    ");
    assert_snapshot!(mistakes("storm: {title: overload", "storm: {reference: true"), @"measured.yaml:12:3 `storm`: `calm` is the reference already: only one is allowed");
    assert_snapshot!(mistakes("repetitions: 3", "repetitions: 0"), @"measured.yaml:13:14 `0`: there must be 1 to 10000 repetitions");
}

#[test]
fn captures_are_not_asked_for_what_applications_got() {
    assert_snapshot!(mistakes(
        "share: 20 %, guaranteed: true}",
        "share: 20 %, objective: {goodput: 1 Mbit/s, request_latency: 20 ms, delay: 5 ms}}",
    ), @"
    measured.yaml:5:64 `1 Mbit/s`: captures do not show what applications got: only studies that run can be judged by this; help: state `throughput`, `delay` or `loss` of the slice's packets instead
    measured.yaml:5:91 `20 ms`: captures do not show what applications got: only studies that run can be judged by this; help: state `throughput`, `delay` or `loss` of the slice's packets instead
    ");
}
