//! Studies of populations, slices by the thousand: what they say, and what is said of mistakes.

use crate::support::{parse, told};
use insta::assert_snapshot;
use slicewise_study::{Plan, PopulationPatternParams, RunFilter, SliceOutcome};
use slicewise_units::Duration;

/// Two populations under both disciplines that schedule them.
const MANY: &str = "\
name: many
link: {rate: 1 Gbit/s}
dut: {model: port}
slices:
  gold: {match: {vlan: 10}, share: 400 Mbit/s, guaranteed: true}
  rest: {match: {vlan: 20}, share: 500 Mbit/s}
populations:
  gold: {sends: bursts, frame: 1514 B, burst: 3028 B, every: 5 ms}
  rest: {sends: backlog, frame: 1514 B, weights: [1, 2]}
scenarios:
  few: {reference: true, populations: {gold: 4, rest: 10}}
  many: {populations: {gold: 20, rest: 200}}
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
      - {name: rest, slice: rest}
repetitions: 2
duration: 50 ms
measure: {bin: 5 ms}
";

fn changed(old: &str, new: &str) -> String {
    assert!(MANY.contains(old), "`{old}` is not in the study");
    MANY.replacen(old, new, 1)
}

/// Messages about [`MANY`] with `old` replaced by `new`.
fn mistakes(old: &str, new: &str) -> String {
    parse(&changed(old, new)).expect_err("this should be refused")
}

#[test]
fn a_correct_study_says_how_many_slices_send_what() {
    let study = parse(MANY).unwrap();
    assert_eq!(study.runs(&RunFilter::default()).unwrap().len(), 2 * 2 * 2);
    let [few, many] = &study.scenarios[..] else {
        panic!("{:?}", study.scenarios);
    };
    assert_eq!(
        (&few.populations[..], &many.populations[..]),
        (&[4, 10][..], &[20, 200][..])
    );
    let [gold, rest] = &study.populations[..] else {
        panic!("{:?}", study.populations);
    };
    assert_eq!(
        gold.pattern,
        PopulationPatternParams::Bursts {
            frames: 2,
            every: Duration::from_millis(5)
        }
    );
    assert_eq!((gold.frame_bytes, gold.weights.len()), (1514, 0));
    assert_eq!(rest.pattern, PopulationPatternParams::Backlog);
    assert_eq!(rest.weights, [1, 2]);
}

#[test]
fn a_burst_is_as_many_whole_frames_as_fit() {
    let frames = |burst: &str| {
        let study = parse(&changed(
            "burst: 3028 B, every",
            &format!("burst: {burst}, every"),
        ));
        match study.unwrap().populations[0].pattern {
            PopulationPatternParams::Bursts { frames, .. } => frames,
            PopulationPatternParams::Backlog => 0,
        }
    };
    assert_eq!(
        [frames("1514 B"), frames("3027 B"), frames("15140 B")],
        [1, 1, 10]
    );
}

#[test]
fn a_population_may_have_no_slices_in_a_scenario() {
    let study = parse(&changed("rest: 200", "rest: 0")).unwrap();
    assert_eq!(study.scenarios[1].populations, [20, 0]);
}

#[test]
fn populations_that_cannot_be_are_refused() {
    // Populations are of a slice.
    assert_snapshot!(mistakes("  rest: {sends: backlog", "  rset: {sends: backlog"), @"study.yaml:9:3 `rset`: there is no slice `rset`; help: did you mean `rest`?");
    // A scenario counts populations that there are.
    assert_snapshot!(mistakes("rest: 200}", "rest: 200, rset: 1}"), @"study.yaml:12:45 `rset`: there is no population `rset`; help: did you mean `rest`?");
    // Every scenario says how many slices a population has.
    assert_snapshot!(mistakes("{gold: 20, rest: 200}", "{gold: 20}"), @"study.yaml:12:3 `many`: the number of slices of `rest` is missing");
    // A population has sixteen million slices at most.
    assert_snapshot!(mistakes("rest: 200", "rest: 16777217"), @"study.yaml:12:40 `16777217`: at most 16777216 slices are possible");
    // A study has sources or populations.
    assert_snapshot!(mistakes("populations:\n", "sources:\n  steady: {slice: gold, headers: {vlan: 10}, pattern: cbr, rate: 1 Mbit/s, payload: 1000 B}\npopulations:\n"), @"study.yaml:10:3 `gold`: a study has sources or populations, not both: `steady` is a source");
    // A weight is at least one.
    assert_snapshot!(mistakes("weights: [1, 2]", "weights: [1, 0]"), @"study.yaml:9:54 `0`: a slice needs a weight of at least 1");
    // A burst holds a frame.
    assert_snapshot!(mistakes("burst: 3028 B, every", "burst: 1513 B, every"), @"study.yaml:8:47 `1513 B`: this is too small for a frame of 1514 B");
    // Bursts come a microsecond apart at least.
    assert_snapshot!(mistakes("every: 5 ms", "every: 999 ns"), @"study.yaml:8:62 `999 ns`: bursts must be at least 1 µs apart");
    // Bursts need their size and period.
    assert_snapshot!(mistakes("burst: 3028 B, every: 5 ms", "weights: [1]"), @"
    study.yaml:8:3 `gold`: `burst` is missing
    study.yaml:8:3 `gold`: `every` is missing
    ");
    // A backlog has no bursts.
    assert_snapshot!(mistakes("weights: [1, 2]", "burst: 3028 B"), @"study.yaml:9:48 `3028 B`: a backlog has no bursts: this is for `sends: bursts`");
    // Frames are such as there are.
    assert_snapshot!(mistakes("backlog, frame: 1514 B", "backlog, frame: 59 B"), @"study.yaml:9:33 `59 B`: frames are from 60 B to 65535 B long");
    // A population says what it sends.
    assert_snapshot!(mistakes("sends: backlog, frame: 1514 B, ", ""), @"
    study.yaml:9:3 `rest`: `sends` is missing
    study.yaml:9:3 `rest`: `frame` is missing
    ");
    // Populations need a discipline that tells slices apart.
    assert_snapshot!(mistakes("discipline: deficit_round_robin", "discipline: minimum_share"), @"study.yaml:20:3 `turns`: populations are scheduled by `discipline: guaranteed` or `deficit_round_robin`");
}

/// 20 bursts at once take longer than the time that one takes at its rate; what fits them is the delay in every scenario.
#[test]
fn slices_that_state_no_delay_get_one_that_fits_in_every_scenario() {
    let text = changed(
        "rate: 10 Mbit/s, burst: 3092 B, delay: 2 ms",
        "rate: 45 Mbit/s, burst: 3092 B",
    );
    let study = parse(&text).unwrap();
    assert_snapshot!(told(study.warnings()), @"study.yaml:14:3 `bounded`: warning: class `gold`: delay of 507.3 µs (none is stated: the smallest that fits, instead of the default of 475.7 µs)");
    let given = study.policies[0].params.classes[0].slice.unwrap();
    let delay = given.guarantee.unwrap().delay;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let plans = Plan::load(file.path()).unwrap();
    let bounds = plans.iter().map(|plan| plan.outcome().slices[0].clone());
    let expected = SliceOutcome::Admitted { bound: delay };
    assert_eq!(Vec::from_iter(bounds), [expected.clone(), expected]);
    let described = study.description("0");
    let promised = described.policies[0].delay_bounds["gold"];
    assert_eq!(promised.scheduler_ns, delay.nanos());
}

#[test]
fn a_policy_has_a_class_for_every_population() {
    assert_snapshot!(mistakes("name: rest, slice: rest}", "name: remainder, slice: rest}"), @"study.yaml:20:3 `turns`: population `rest` has no class of its name here");
}

#[test]
fn guarantees_fit_however_many_slices_a_scenario_has() {
    assert_snapshot!(mistakes("gold: 20", "gold: 120"), @"study.yaml:12:30 `120`: under policy `bounded`: guarantees 1.2 Gbit/s (L1), but only 1 Gbit/s (L1) of the link is free: write 80 such slices");
}

#[test]
fn settings_that_populations_ignore_are_refused() {
    let class = "{name: gold, slice: gold, queue_limit: 64 packets";
    let of_turns = |setting: &str| mistakes(class, &format!("{class}, {setting}"));
    let settings = [
        "shape: 1 Mbit/s",
        "priority: {level: 1}",
        "wred: {}",
        "set_dscp: ef",
        "flow_queue: {}",
    ];
    for setting in settings {
        let key = setting.split(':').next().unwrap_or_default();
        let message = of_turns(setting);
        let expected = format!(": `{key}` has no effect on the slices of a population; help: ");
        assert!(message.contains(&expected), "{message}");
        assert!(message.starts_with("study.yaml:23:"), "{message}");
    }
    assert_snapshot!(of_turns("police: 1 Mbit/s"), @"study.yaml:23:68 `1 Mbit/s`: `police` has no effect on the slices of a population; help: set `maximum` in a policy of `discipline: guaranteed`");
    assert_snapshot!(mistakes("{name: gold, slice: gold, queue_limit: 64 packets}", "{name: gold, slice: gold, child: {classes: [{name: a, match: {}}]}}"), @"study.yaml:23:35 `child`: `child` has no effect on the slices of a population; help: leave it out: a slice of a population is one queue");
    assert_snapshot!(mistakes("burst: 3092 B, delay: 2 ms}}", "burst: 3092 B, delay: 2 ms}, police: 1 Mbit/s, set_dscp: ef}"), @"
    study.yaml:18:101 `1 Mbit/s`: `police` has no effect on the slices of a population; help: set `maximum` in a policy of `discipline: guaranteed`
    study.yaml:18:121 `ef`: `set_dscp` has no effect on the slices of a population; help: leave it out: frames of populations have no headers
    ");
}

#[test]
fn a_class_that_is_no_population_is_refused() {
    assert_snapshot!(mistakes("      - {name: rest, slice: rest}", "      - {name: rest, slice: rest}\n      - {name: class-default, queue_limit: 1 packets}"), @"study.yaml:25:16 `class-default`: there is no population `class-default`: this class would be empty; help: leave it out");
}

#[test]
fn what_is_not_modelled_of_the_network_is_refused() {
    assert_snapshot!(mistakes("link: {rate: 1 Gbit/s}\ndut: {model: port}", "link: {rate: 1 Gbit/s, counts: L2, propagation: 1 ms, mtu: 9000 B}\ndut: {model: gateway, processing_delay: 1 ms}\nhosts: {timer: 1 ms}"), @"
    study.yaml:2:24 `counts`: `link.counts` has no effect in a study of populations: one port is modelled, without hosts, links to it and headers; help: leave it out
    study.yaml:2:36 `propagation`: `link.propagation` has no effect in a study of populations: one port is modelled, without hosts, links to it and headers; help: leave it out
    study.yaml:2:55 `mtu`: `link.mtu` has no effect in a study of populations: one port is modelled, without hosts, links to it and headers; help: leave it out
    study.yaml:3:14 `gateway`: a study of populations models one port: set `model: port`
    study.yaml:3:23 `processing_delay`: `dut.processing_delay` has no effect in a study of populations: one port is modelled, without hosts, links to it and headers; help: leave it out
    study.yaml:4:1 `hosts`: `hosts` has no effect in a study of populations: one port is modelled, without hosts, links to it and headers; help: leave it out
    ");
    assert_snapshot!(mistakes("gold: {match: {vlan: 10}", "gold: {match: {vlan: 10}, headers: {vlan: 10}"), @"study.yaml:5:29 `headers`: `slices.gold.headers` has no effect in a study of populations: one port is modelled, without hosts, links to it and headers; help: leave it out");
    assert_snapshot!(mistakes("few: {", "few: {sources: {a: {slice: gold, headers: {vlan: 10}, pattern: cbr, rate: 1 Mbit/s, payload: 100 B}}, "), @"study.yaml:11:19 `a`: a study has sources or populations, not both: this source would send nothing");
}
