//! Which scenarios `--quick` keeps where a study does not name them.

use crate::support::{self, parse};
use slicewise_study::Study;

/// A study of two slices of 5 Mbit/s each, in which `gold` and `rest` send so much of the device's rate.
fn kept(scenarios: &[(&str, &str, &str)]) -> Vec<String> {
    let scenario = |(name, gold, rest): &(&str, &str, &str)| {
        let reference = if *name == "calm" {
            "reference: true, "
        } else {
            ""
        };
        format!(
            "  {name}: {{{reference}sources: {{gold: {{rate: {gold}}}, rest: {{rate: {rest}}}}}}}\n"
        )
    };
    let scenarios: String = scenarios.iter().map(scenario).collect();
    study(&scenarios, "", "")
}

fn study(scenarios: &str, on_off: &str, quick: &str) -> Vec<String> {
    let text = format!(
        "\
name: small
link: {{rate: 1 Gbit/s}}
dut: {{model: port, port_rate: 10 Mbit/s}}
slices:
  gold: {{match: {{vlan: 10}}, share: 50 %, guaranteed: true, headers: {{vlan: 10}}}}
  rest: {{match: {{vlan: 20}}, share: 50 %, headers: {{vlan: 20}}}}
sources:
  gold: {{slice: gold, pattern: cbr, payload: 1000 B}}
  rest: {{slice: rest, pattern: cbr, payload: 1000 B{on_off}}}
scenarios:
{scenarios}policies:
  nothing: {{none: true}}
repetitions: 2
duration: 5 s
{quick}"
    );
    let study = parse(&text).unwrap_or_else(|message| panic!("{message}"));
    let quick = study.into_quick();
    quick.scenarios.into_iter().map(|s| s.name).collect()
}

#[test]
fn the_heaviest_best_effort_is_kept_wherever_it_stands() {
    let heavy = ("heavy", "40 %", "90 %");
    let light = ("light", "40 %", "60 %");
    let calm = ("calm", "40 %", "40 %");
    assert_eq!(kept(&[calm, light, heavy]), ["calm", "heavy"]);
    assert_eq!(kept(&[heavy, calm, light]), ["heavy", "calm"]);
}

#[test]
fn a_guaranteed_slice_that_exceeds_its_share_leaves_nothing_to_judge() {
    let found = kept(&[
        ("calm", "40 %", "40 %"),
        ("heavy", "40 %", "80 %"),
        ("misuse", "60 %", "90 %"),
    ]);
    assert_eq!(found, ["calm", "heavy"]);
}

#[test]
fn a_scenario_that_leaves_something_is_kept_beside_the_heaviest() {
    let found = kept(&[
        ("calm", "50 %", "40 %"),
        ("idle", "10 %", "70 %"),
        ("less-idle", "40 %", "70 %"),
        ("heavy", "50 %", "90 %"),
    ]);
    assert_eq!(found, ["calm", "idle", "heavy"]);
}

#[test]
fn a_load_that_pauses_counts_as_its_average() {
    let scenarios = "  calm: {reference: true, sources: {gold: {rate: 40 %}, rest: {rate: 40 %}}}
  steady: {sources: {gold: {rate: 40 %}, rest: {rate: 80 %, on_off: {on_for: 900 ms, off_for: 100 ms}}}}
  peak: {sources: {gold: {rate: 40 %}, rest: {rate: 100 %}}}
";
    let pauses = ", on_off: {on_for: 500 ms, off_for: 500 ms}";
    assert_eq!(study(scenarios, pauses, ""), ["calm", "steady"]);
}

#[test]
fn without_a_scenario_in_which_promises_are_kept_the_heaviest_stands_for_it() {
    let found = kept(&[
        ("calm", "60 %", "40 %"),
        ("heavy", "60 %", "90 %"),
        ("light", "60 %", "50 %"),
    ]);
    assert_eq!(found, ["calm", "heavy"]);
}

#[test]
fn a_profile_without_scenarios_keeps_the_same() {
    let scenarios = "  heavy: {sources: {gold: {rate: 40 %}, rest: {rate: 90 %}}}
  calm: {reference: true, sources: {gold: {rate: 40 %}, rest: {rate: 40 %}}}
  light: {sources: {gold: {rate: 40 %}, rest: {rate: 60 %}}}
";
    let quick = "quick: {repetitions: 1, duration: 2 s}\n";
    assert_eq!(study(scenarios, "", quick), ["heavy", "calm"]);
    let quick = "quick: {scenarios: light}\n";
    assert_eq!(study(scenarios, "", quick), ["light"]);
}

fn million_slices() -> Study {
    parse(include_str!("../../../../studies/million-slices.yaml")).unwrap()
}

#[test]
fn slices_by_the_thousand_are_kept_where_they_are_most() {
    let kept: Vec<String> = million_slices()
        .into_quick()
        .scenarios
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert_eq!(kept, ["1e3", "1e6"]);
}

#[test]
fn too_few_repetitions_for_anything_to_hold_are_reported_with_how_many_it_takes() {
    let message = |margins: &str, repetitions: u32| {
        let text = support::STUDY.replace("duration: 5 s", &format!("duration: 5 s\n{margins}"));
        let mut study = parse(&text).unwrap();
        study.repetitions = repetitions;
        study.too_few_repetitions()
    };
    assert_eq!(
        message("", 33).unwrap(),
        "33 repetitions cannot show that anything holds: excluding an effect in 9 % of runs \
         (`margins.rare_runs`) requires 34"
    );
    assert_eq!(message("", 34), None);
    assert_eq!(message("margins: {rare_runs: 42 %}", 6), None);
    assert!(message("margins: {rare_runs: 42 %}", 5).is_some());
    // Slices by the thousand are judged by the same tests.
    let mut populations = million_slices();
    assert_eq!(populations.too_few_repetitions(), None);
    populations.repetitions = 2;
    assert!(populations.too_few_repetitions().is_some());
    // A first look excludes what it can.
    assert_eq!(
        parse(support::STUDY)
            .unwrap()
            .into_quick()
            .too_few_repetitions(),
        None
    );
}
