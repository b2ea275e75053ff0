//! A study with a timeline, from the file to the report.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text, words};
use std::fs;

/// A policy that its timeline changes is exported as it is in the phase that is named.
#[test]
fn a_policy_is_exported_as_it_is_in_a_phase() {
    let sandbox = Sandbox::new();
    sandbox.write("changing.yaml", format!("{STUDY}{TIMELINE}"));
    sandbox.write("one.yaml", STUDY);
    let call = |policy: &'static str| ["export", "changing.yaml", "--to", "tc", "--policy", policy];
    let (unnamed, noted) = sandbox.succeeded(&call("first"));
    let note = "the timeline changes this policy, and this is `first/start`: name another phase as `--policy first/swapped`";
    contains(&noted, note);
    let (start, quiet) = sandbox.succeeded(&call("first/start"));
    assert_eq!((quiet.as_str(), &start), ("", &unnamed));
    let (swapped, _) = sandbox.succeeded(&call("first/swapped"));
    assert_ne!(swapped, start);
    let refused = sandbox.refused(2, &call("first/later"));
    contains(&refused, "no phase `later`: it has start, swapped");
    let refused = sandbox.refused(2, &call("second/start"));
    contains(&refused, "the study has no policy `second`");
    let refused = sandbox.refused(2, &words("export one.yaml --to tc --policy first/start"));
    contains(&refused, "no timeline");
}

#[test]
fn the_requests_of_a_published_phase_are_written() {
    let sandbox = Sandbox::new();
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/p4-tins.yaml");
    let requests = |policy: &str| {
        let arguments = [
            "export", study, "--case", "v2", "--to", "p4-tins", "--policy", policy,
        ];
        sandbox.succeeded(&arguments).0
    };
    assert!(requests("p4-tins/first").contains("\"minRate\""));
    assert_ne!(requests("p4-tins/first"), requests("p4-tins/second"));
}

const TIMELINE: &str = "
timeline:
  settle: 500 ms
  changes:
    swapped:
      at: 2 s
      title: the rest gets more
      slices: {critical: {share: 45 %}}
      sources: {rest: {pattern: cbr, rate: 120 %}}
      policies:
        first:
          classes:
            - {name: critical, slice: critical, priority: {rate: 4.5 Mbit/s}}
";

#[test]
fn a_study_with_a_timeline_is_judged_phase_by_phase() {
    let sandbox = Sandbox::new();
    sandbox.write("changing.yaml", format!("{STUDY}{TIMELINE}"));
    let output = sandbox.slicewise(&["run", "changing.yaml", "--out", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for policy in words("shared/start shared/swapped first/start first/swapped") {
        assert!(printed.contains(policy), "{policy}: {printed}");
    }
    // One policy changes in each of two scenarios and three repetitions.
    let changes = "Changes: 6 changes while ";
    contains(&printed, changes);
    contains(&printed, "waited; 0 lost by them\n");
    let data = |name: &str| fs::read_to_string(sandbox.path(&format!("out/data/{name}"))).unwrap();
    // Policies, phases, scenarios, repetitions and slices.
    assert_eq!(data("phases.csv").lines().count(), 1 + 2 * 2 * 2 * 3 * 2);
    let rates = |policy: &str| -> Vec<f64> {
        let wanted =
            format!("\"{policy}\",\"calm\",\"rest\",\"steady\",\"offered_bits_per_second\",");
        let cells = data("cells.csv");
        let line = cells.lines().find(|line| line.starts_with(&wanted));
        let fields = line.unwrap().split(',').skip(6).take(1);
        fields.map(|field| field.parse().unwrap()).collect()
    };
    assert!((3.5e6..4.5e6).contains(&rates("first/start")[0]));
    assert!((11.9e6..12.1e6).contains(&rates("first/swapped")[0]));
    let page = fs::read_to_string(sandbox.path("out/report.html")).unwrap();
    for said in [
        "id=\"timeline\"",
        "the rest gets more: slice critical; policy first; source rest",
    ] {
        assert!(page.contains(said), "{said}");
    }
    // Made again from the folder alone, and compared with itself elsewhere.
    let again = sandbox.slicewise(&["report", "out"]);
    assert_eq!(text(&again.stdout), printed);
    let verdicts = sandbox.slicewise(&["report", "out", "--json"]);
    let verdicts: serde_json::Value = serde_json::from_slice(&verdicts.stdout).unwrap();
    assert_eq!(verdicts["policies"].as_array().unwrap().len(), 4);
    assert_eq!(verdicts["expected_runs"], verdicts["finished_runs"]);
    assert_eq!(verdicts["expected_runs"], 12);
}

#[test]
fn a_timeline_that_cannot_be_carried_out_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let late = TIMELINE.replace("at: 2 s", "at: 20 s");
    sandbox.write("late.yaml", format!("{STUDY}{late}"));
    let said = sandbox.refused(2, &["run", "late.yaml", "--out", "out"]);
    contains(&said, "the run is over after 4 s");
    assert!(!sandbox.path("out").exists());
}
