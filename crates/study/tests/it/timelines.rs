//! What changes during a run.

use crate::support::{STUDY, parse, told};
use insta::assert_snapshot;
use slicewise_stats::description::Basis;
use slicewise_study::{Pacing, Study};
use slicewise_units::{BitRate, Duration};

/// The study of the other tests, with a timeline.
fn with(timeline: &str) -> Result<Study, String> {
    parse(&format!("{STUDY}{timeline}"))
}

const TIMELINE: &str = "\
timeline:
  settle: 500 ms
  changes:
    raised:
      at: 2 s
      title: more for gold
      slices: {gold: {share: 80 %}, rest: {share: 2 Mbit/s}}
      sources: {other: {rate: 1 Mbit/s}}
    restored:
      at: 4 s
      scenarios: {storm: {sources: {other: {rate: 20 Mbit/s}}}}
      policies: {weighted: {classes: [{name: gold, slice: gold, minimum: 70 %}]}}
";

#[test]
fn a_phase_lies_between_two_changes_and_is_measured_once_it_has_settled() {
    let study = with(TIMELINE).unwrap();
    let phases: Vec<(&str, [u64; 3])> = (study.phases.iter())
        .map(|phase| {
            let times = [phase.begins, phase.measured_from, phase.ends];
            (phase.name.as_str(), times.map(|t| t.nanos() / 1_000_000))
        })
        .collect();
    assert_eq!(
        phases,
        [
            ("start", [0, 500, 2_000]),
            ("raised", [2_000, 2_500, 4_000]),
            ("restored", [4_000, 4_500, 5_000])
        ]
    );
    let words: Vec<String> = study.phases.iter().map(|p| p.changes.join("; ")).collect();
    assert_eq!(
        words,
        [
            "",
            "slices gold, rest; source other",
            "policy weighted; scenario storm"
        ]
    );
}

#[test]
fn a_change_stays_in_force_until_another_one_changes_the_same() {
    let study = with(TIMELINE).unwrap();
    let shares = |phase: usize| -> Vec<u64> {
        let slices = study.phases[phase].study.slices.iter();
        slices
            .map(|s| s.share.bits_per_second() / 1_000_000)
            .collect()
    };
    assert_eq!([0, 1, 2].map(shares), [[6, 4], [8, 2], [8, 2]]);
    let rates = |phase: usize| -> Vec<u64> {
        let scenarios = study.phases[phase].study.scenarios.iter();
        let other = scenarios.map(|s| s.sources.iter().find(|s| s.name == "other").unwrap());
        other
            .map(|s| s.rate.bits_per_second() / 1_000_000)
            .collect()
    };
    assert_eq!([0, 1, 2].map(rates), [[2, 20], [1, 1], [1, 20]]);
    let policy = |phase: usize| &study.phases[phase].study.policies[1].params;
    assert_eq!(policy(0), policy(1));
    assert_ne!(policy(1), policy(2));
    // The study itself is its first phase.
    assert_eq!(study.policies, study.phases[0].study.policies);
}

#[test]
fn a_source_sends_one_thing_after_the_other_and_begins_anew_only_where_it_changes() {
    let study = with(TIMELINE).unwrap();
    let sends = |scenario: usize, name: &str| -> Vec<(u64, u64, u64)> {
        let sources = &study.scenarios[scenario].sources;
        let source = sources.iter().position(|s| s.name == name).unwrap();
        let sends = study.sends(scenario, source);
        let parts = sends.iter().map(|params| {
            let [start, stop] = [params.start, params.stop].map(|at| at.nanos() / 1_000_000_000);
            (start, stop, params.rate.bits_per_second() / 1_000_000)
        });
        parts.collect()
    };
    assert_eq!(sends(0, "steady"), [(0, 5, 5)]);
    assert_eq!(sends(0, "other"), [(0, 2, 2), (2, 5, 1)]);
    assert_eq!(sends(1, "other"), [(0, 2, 20), (2, 4, 1), (4, 5, 20)]);
}

#[test]
fn a_source_that_a_change_lets_stop_or_begin_later_does_so() {
    let late = TIMELINE.replace(
        "{other: {rate: 1 Mbit/s}}",
        "{other: {start: 3 s, stop: 3500 ms}}",
    );
    let study = with(&late).unwrap();
    let sources = &study.scenarios[0].sources;
    let other = sources.iter().position(|s| s.name == "other").unwrap();
    let sends = study.sends(0, other);
    let spans = sends.iter().map(|s| (s.start, s.stop));
    let ms = Duration::from_millis;
    assert_eq!(
        spans.collect::<Vec<_>>(),
        [(ms(0), ms(2_000)), (ms(3_000), ms(3_500))]
    );
}

#[test]
fn changes_that_cannot_be_made_are_refused_where_they_are_written() {
    let refused = |from: &str, to: &str| {
        assert!(TIMELINE.contains(from), "{from}");
        with(&TIMELINE.replace(from, to)).unwrap_err()
    };
    assert_snapshot!(refused("at: 4 s", "at: 2 s"), @"study.yaml:43:11 `2 s`: a change at 2 s is not after the one before it, or the start, at 2 s");
    assert_snapshot!(refused("at: 4 s", "at: 5 s"), @"study.yaml:43:11 `5 s`: the run is over after 5 s");
    assert_snapshot!(refused("at: 4 s", "at: 4010 ms"), @"study.yaml:43:11 `4010 ms`: a change at 4.01 s is not at the edge of a bin: bins are 50 ms wide; help: choose a multiple of `measure.bin`");
    assert_snapshot!(refused("at: 4 s", "at: 4200 ms"), @"study.yaml:43:11 `4200 ms`: phase `restored` is measured for 300 ms after its settling time: it takes 500 ms at least (10 bins, and a cycle of every source that pauses)");
    assert_snapshot!(refused("settle: 500 ms", "settle: 3 s"), @"
    study.yaml:34:1 `timeline`: phase `start` is measured for 0 ns after its settling time: it takes 500 ms at least (10 bins, and a cycle of every source that pauses)
    study.yaml:38:11 `2 s`: phase `raised` is measured for 0 ns after its settling time: it takes 500 ms at least (10 bins, and a cycle of every source that pauses)
    study.yaml:43:11 `4 s`: phase `restored` is measured for 0 ns after its settling time: it takes 500 ms at least (10 bins, and a cycle of every source that pauses)
    ");
    assert_snapshot!(refused("settle: 500 ms\n", "first: raised\n  settle: 500 ms\n"), @"study.yaml:38:5 `raised`: the phase before the first change is called `raised` already");
    assert_snapshot!(refused("slices: {gold:", "slices: {golden:"), @"study.yaml:40:16 `golden`: there is no slice `golden` that could change; help: did you mean `gold`?");
    assert_snapshot!(refused("sources: {other: {rate: 1", "sources: {another: {rate: 1"), @"study.yaml:41:17 `another`: no scenario has a source `another` that could change; help: did you mean `other`?");
    assert_snapshot!(refused("{sources: {other: {rate: 20 Mbit/s}}}", "{reference: true}"), @"study.yaml:44:27 `reference`: `reference` of a scenario cannot change: only its `sources` can");
    assert_snapshot!(refused("storm: {sources: {other", "storm: {sources: {third"), @"study.yaml:44:37 `third`: there is no source `third` that could change; help: known are `steady`, `other`");
    assert_snapshot!(refused("sources: {other: {rate: 1", "sources: {other: {flows: 3, rate: 1"), @"study.yaml:38:11 `2 s`: this change gives a source more or fewer `flows`: their number is the same throughout a run; help: write a second source that begins or ends at this moment");
    assert_snapshot!(refused("sources: {other: {rate: 1", "sources: {x: {rate: 1"), @"study.yaml:41:17 `x`: no scenario has a source `x` that could change; help: known are `other`, `steady`");
    assert_snapshot!(refused("minimum: 70 %}]}", "minimum: 70 %}]}, nothing: {classes: []}"), @"study.yaml:45:93 `classes`: a policy keeps its form during a run: this one is written with `none`, not `classes`; help: write it as `classes` in every phase: one queue for everything is `classes: [{name: class-default}]`");
    assert_snapshot!(refused("classes: [{name: gold, slice: gold, minimum: 70 %}]", "none: true"), @"study.yaml:45:29 `none`: a policy keeps its form during a run: this one is written with `classes`, not `none`; help: write it as `classes` in every phase: one queue for everything is `classes: [{name: class-default}]`");
    assert_snapshot!(refused("{rate: 1 Mbit/s}", "{host: x, headers: {vlan: 30}}"), @"
    study.yaml:41:25 `host`: `host` of a source cannot change during a run; help: define another source with a `start` at this moment, and let this one `stop`
    study.yaml:41:34 `headers`: `headers` of a source cannot change during a run; help: define another source with a `start` at this moment, and let this one `stop`
    ");
    assert_snapshot!(refused("{rate: 1 Mbit/s}", "{slice: gold}"), @"study.yaml:41:25 `slice`: `slice` of a source cannot change during a run; help: define another source with a `start` at this moment, and let this one `stop`");
    assert_snapshot!(refused("{gold: {share: 80 %}", "{gold: {share: 80 %, match: {vlan: 11}}"), @"study.yaml:40:36 `match`: `match` of a slice cannot change during a run; help: define another slice for these frames");
    assert_snapshot!(refused("minimum: 70 %", "minimum: 170 %"), @"study.yaml:45:74 `170 %`: this is more than 100 % (in phase `restored`)");
}

#[test]
fn what_identifies_a_slice_or_a_source_may_be_stated_again() {
    let again = TIMELINE
        .replace("{share: 80 %}", "{share: 80 %, match: {vlan: 10}}")
        .replace("{rate: 1 Mbit/s}", "{slice: rest, rate: 1 Mbit/s}");
    assert_eq!(with(&again).map(|study| study.phases.len()), Ok(3));
}

#[test]
fn a_slice_that_is_silent_throughout_a_phase_is_warned_of() {
    let silent = TIMELINE.replace("{other: {rate: 1 Mbit/s}}", "{steady: {stop: 2 s}}");
    let study = with(&silent).unwrap();
    assert_snapshot!(told(study.warnings()), @"
    study.yaml:38:11 `2 s`: warning: slice `gold` sends nothing in phase `raised` of the reference, from 2.5 s to 4 s: its isolation is not tested in that phase
    study.yaml:43:11 `4 s`: warning: slice `gold` sends nothing in phase `restored` of the reference, from 4.5 s to 5 s: its isolation is not tested in that phase
    ");
    assert_eq!(with(TIMELINE).unwrap().warnings().count(), 0);
}

#[test]
fn a_phase_is_no_shorter_than_a_cycle_of_its_own_load() {
    let paused = |off: &str| {
        let change = format!("{{rate: 1 Mbit/s, on_off: {{on_for: 1 s, off_for: {off}}}}}");
        let longer = TIMELINE
            .replace("at: 4 s", "at: 4050 ms")
            .replace("settle: 500 ms", "settle: 50 ms");
        with(&longer.replace("{rate: 1 Mbit/s}", &change))
    };
    let refused = paused("1 s").unwrap_err();
    let expected = "phase `restored` is measured for 900 ms after its settling time: it takes 2 s";
    assert!(refused.contains(expected), "{refused}");
    assert!(!refused.contains("phase `raised`"), "{refused}");
}

#[test]
fn a_timeline_that_says_nothing_is_refused() {
    let refused = |timeline: &str| with(timeline).unwrap_err();
    assert_snapshot!(refused("timeline: {settle: 1 s, changes: {}}\n"), @"study.yaml:34:1 `timeline`: a timeline without a change has no phases");
    assert_snapshot!(refused("timeline: {settle: 1 s}\n"), @"study.yaml:34:1 `timeline`: `changes` is missing: which settings change, and when? A timeline is of changes during a run; to leave a warm-up out, start the sources that are measured later (`start`)");
    assert_snapshot!(refused("timeline: {changes: {later: {at: 2 s}}}\n"), @"study.yaml:34:1 `timeline`: `settle` is missing");
    assert_snapshot!(refused("timeline: {settle: 500 ms, changes: {later: {sources: {other: {rate: 1 Mbit/s}}}}}\n"), @"study.yaml:34:38 `later`: `at` is missing");
}

#[test]
fn a_guarantee_that_does_not_fit_in_a_phase_is_refused_by_the_check() {
    let guaranteed = STUDY.replace("  router:\n    ios: router.cfg\n", "  promised: {discipline: guaranteed, classes: [{name: gold, slice: gold, guarantee: {rate: 6 Mbit/s, burst: 3 kB, delay: 50 ms}}]}\n");
    let change = "timeline: {settle: 500 ms, changes: {more: {at: 2 s, policies: {promised: {classes: [{name: gold, slice: gold, guarantee: {rate: 60 Mbit/s, burst: 3 kB, delay: 50 ms}}]}}}}}\n";
    assert!(parse(&guaranteed).is_ok());
    assert_snapshot!(parse(&format!("{guaranteed}{change}")).unwrap_err(), @"study.yaml:33:112 `guarantee`: class `gold`, guarantee: guarantees 60 Mbit/s (L2), in small frames 84 Mbit/s (L1), but only 10 Mbit/s (L1) of the link is free: write a rate of at most 7.142 Mbit/s (L2), or `counts: L1` for all guarantees of the link (in phase `more`)");
}

#[test]
fn a_published_figure_says_which_phase_it_is_of() {
    let figure = |phase: &str| {
        format!(
            "{TIMELINE}published: [{{claim: c, source: s, metric: throughput, slice: gold, about: 5 Mbit/s, within: 1 %, tolerance_from: t{phase}}}]\n"
        )
    };
    let study = with(&figure(", phase: raised, policies: weighted")).unwrap();
    let judged = study.description("test").by_phase();
    assert_eq!(judged.published[0].policies, ["weighted/raised"]);
    assert_eq!(judged.published[0].basis, Basis::Predicted);
    assert_eq!(judged.published[0].tolerance_from, "t");
    let entailed = with(&figure(", phase: raised, basis: entailed")).unwrap();
    assert_eq!(entailed.published[0].basis, Basis::Entailed);
    assert_snapshot!(with(&figure("")).unwrap_err(), @"study.yaml:46:13 `{`: `phase` is missing: one of start, raised, restored");
    assert_snapshot!(with(&figure(", phase: risen")).unwrap_err(), @"study.yaml:46:124 `risen`: there is no phase `risen`; help: did you mean `raised`?");
    let without = figure(", phase: raised").replace(TIMELINE, "");
    assert_snapshot!(with(&without).unwrap_err(), @"study.yaml:34:124 `raised`: without a `timeline` there are no phases");
}

#[test]
fn populations_and_a_shorter_quick_run_exclude_a_timeline() {
    let quick = format!("{TIMELINE}quick: {{duration: 1 s}}\n");
    assert_snapshot!(with(&quick).unwrap_err(), @"study.yaml:46:19 `1 s`: with a `timeline` every run takes as long as the phases");
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/million-slices.yaml"
    );
    let populations = std::fs::read_to_string(path).unwrap();
    let changed = "timeline: {settle: 1 ms, changes: {later: {at: 5 ms, policies: {}}}}\n";
    let refused = parse(&format!("{populations}{changed}")).unwrap_err();
    assert!(
        refused.contains("`timeline` and `populations` exclude each other"),
        "{refused}"
    );
    let study = with(TIMELINE).unwrap().into_quick();
    assert_eq!(study.duration, Duration::from_secs(5));
    assert_eq!(study.phases[1].study.scenarios.len(), study.scenarios.len());
}

#[test]
fn a_testbed_changes_policies_on_the_gateway_and_sources_everywhere() {
    let study = with(TIMELINE).unwrap();
    let gateway = study.clone().into_testbed(Pacing::Departures).unwrap();
    let capacity = |study: &Study| study.link.rate.rate;
    assert_eq!(capacity(&gateway.phases[2].study), capacity(&gateway));
    assert!(capacity(&gateway) > BitRate::new(1_000_000_000));
    let refused = study.into_testbed(Pacing::TokenBucket).unwrap_err();
    assert_snapshot!(refused.to_string(), @"phase `restored` changes a policy: traffic control replaces queues with what waits in them, and DPDK's scheduler is configured when it starts, so only the gateway (`--on gateway`) and the simulator carry that out");
    let same_policies = TIMELINE.replace(
        "      policies: {weighted: {classes: [{name: gold, slice: gold, minimum: 70 %}]}}\n",
        "",
    );
    let study = with(&same_policies).unwrap();
    assert!(study.into_testbed(Pacing::TokenBucket).is_ok());
}

#[test]
fn a_phase_in_which_nothing_is_sent_is_refused() {
    let text = format!("{STUDY}{TIMELINE}")
        .replace("rate: 50 %, payload", "rate: 50 %, stop: 4 s, payload")
        .replace(
            "rate: 2 Mbit/s, payload",
            "rate: 2 Mbit/s, stop: 2500 ms, payload",
        );
    assert_snapshot!(parse(&text).unwrap_err(), @"study.yaml:43:11 `4 s`: no source of scenario `calm` sends in phase `restored`, from 4.5 s to 5 s: there would be nothing to measure; help: give a source another `start` or `stop`, or the change another moment");
}
