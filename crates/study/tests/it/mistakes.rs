//! Mistakes in values, traffic and the network: each with its place, and what to do.

use crate::support::{STUDY, changed, files, mistakes, parse};
use insta::assert_snapshot;
use slicewise_study::Study;

#[test]
fn a_correct_study_has_none() {
    assert_eq!(parse(STUDY).map(|study| study.name), Ok("small".to_owned()));
}

/// As a reader sees it; other tests look at place, message and help alone.
#[test]
fn a_mistake_is_shown_in_its_line_with_help() {
    let text = changed("guaranteed: true", "guarantied: true");
    assert_snapshot!(Study::parse(&text, "study.yaml", &files()).unwrap_err(), @"
    error: `guarantied` is not a setting here
      --> study.yaml:10:5
       |
    10 |     guarantied: true
       |     ^^^^^^^^^^
       |
       = help: did you mean `guaranteed`?
    ");
}

#[test]
fn mistakes_in_values_slices_and_scenarios_are_told() {
    // A bare number needs a unit.
    assert_snapshot!(mistakes("port_rate: 10 Mbit/s", "port_rate: 10"), @"study.yaml:5:14 `10`: `10` is a number without a unit: a rate needs one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s");
    // A unit of something else is refused.
    assert_snapshot!(mistakes("duration: 5 s", "duration: 5 kB"), @"study.yaml:33:11 `5 kB`: `kB` is not a unit of a duration: use one of ns, µs, ms, s, min, h");
    // A duration is longer than zero.
    assert_snapshot!(mistakes("duration: 5 s", "duration: 0 s"), @"study.yaml:33:11 `0 s`: this must be longer than zero");
    // A duration is not negative.
    assert_snapshot!(mistakes("duration: 5 s", "duration: -5 s"), @"study.yaml:33:11 `-5 s`: `-5 s` is negative: a duration must be at least 0");
    // There is a repetition.
    assert_snapshot!(mistakes("repetitions: 2", "repetitions: 0"), @"study.yaml:32:14 `0`: there must be 1 to 10000 repetitions");
    // Suggests the slice a source meant.
    assert_snapshot!(mistakes("slice: rest, pattern", "slice: rset, pattern"), @"study.yaml:21:30 `rset`: there is no slice `rset`; help: did you mean `rest`?");
    // Shares fit in what the device forwards.
    assert_snapshot!(mistakes("share: 4 Mbit/s", "share: 5 Mbit/s"), @"study.yaml:14:12 `5 Mbit/s`: with 5 Mbit/s for this slice the shares add up to 11 Mbit/s, more than the 10 Mbit/s the device forwards");
    // Beside a guaranteed slice, the others have one, too.
    assert_snapshot!(mistakes("share: 4 Mbit/s", ""), @"study.yaml:12:3 `rest`: `share` is missing: where a slice is guaranteed, or has an objective, every slice has a share");
    // One share alone fits too.
    assert_snapshot!(mistakes("share: 60 %", "share: 160 %"), @"study.yaml:9:12 `160 %`: a share of 16 Mbit/s is above the 10 Mbit/s the device forwards");
    // Patterns are known ones.
    assert_snapshot!(mistakes("pattern: cbr", "pattern: cbrr"), @"study.yaml:17:34 `cbrr`: `cbrr` is not a traffic pattern: did you mean `cbr`?");
    // Devices are known ones.
    assert_snapshot!(mistakes("model: port", "model: isr4331"), @"study.yaml:4:10 `isr4331`: `isr4331` is not a modelled device: did you mean `isr4221`?");
    // Isolation needs a reference.
    assert_snapshot!(mistakes("    reference: true\n", ""), @"study.yaml:19:3 `calm`: no scenario is the reference that isolation is judged against; help: set `reference: true` in the scenario where no slice exceeds what was promised");
    // There is one reference.
    assert_snapshot!(mistakes("  storm:\n", "  storm:\n    reference: true\n"), @"study.yaml:22:3 `storm`: `calm` is the reference already: only one is allowed");
    // Packets of a source match its slice.
    assert_snapshot!(mistakes("headers: {vlan: 20}", "headers: {vlan: 21}"), @"
    study.yaml:21:30 `rest`: the packets of source `other` do not match slice `rest`; help: give the source, or the slice, the `headers` that the slice matches on
    study.yaml:23:30 `rest`: the packets of source `other` do not match slice `rest`; help: give the source, or the slice, the `headers` that the slice matches on
    ");
    // Packets of a source belong to no slice before its own.
    assert_snapshot!(mistakes("match: {vlan: 10}", "match: {vlan: 10-20}"), @"
    study.yaml:21:30 `rest`: the packets of source `other` belong to slice `gold`, which stands before `rest` and matches them too; help: narrow the `match` of `gold`, or write `rest` before it
    study.yaml:23:30 `rest`: the packets of source `other` belong to slice `gold`, which stands before `rest` and matches them too; help: narrow the `match` of `gold`, or write `rest` before it
    ");
}

#[test]
fn lengths_of_queues_are_looked_at_as_often_as_a_figure_needs() {
    let measured = |interval: &str| {
        mistakes(
            "duration: 5 s",
            &format!("duration: 5 s\nmeasure: {{queue_lengths: {interval}}}"),
        )
    };
    assert_snapshot!(measured("100 ns"), @"study.yaml:34:26 `100 ns`: a run would look at the queues 50000000 times, more than 10000000; help: choose a longer interval");
    assert_snapshot!(measured("6 s"), @"study.yaml:34:26 `6 s`: a run of 5 s would not look at the queues once");
    let published = |figure: &str| {
        let figure = format!(
            "duration: 5 s\npublished:\n  - {{claim: c, source: s, metric: {figure}, scenarios: calm, about: 5, within: 1 %, tolerance_from: t}}"
        );
        mistakes("duration: 5 s", &figure)
    };
    assert_snapshot!(published("queue_length"), @"
    study.yaml:35:35 `queue_length`: `queue` is missing: whose length is it?
    study.yaml:35:35 `queue_length`: the lengths of queues are not measured; help: add `measure: {queue_lengths: 10 ms}`: how often queues are looked at
    ");
    assert_snapshot!(published("transient_end, queue: gold"), @"
    study.yaml:35:57 `gold`: `queue` is of `metric: queue_length` alone
    study.yaml:35:87 `5`: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h
    ");
}

#[test]
fn mistakes_in_rates_and_names_are_told() {
    // The link carries what is sent.
    assert_snapshot!(mistakes("rate: 20 Mbit/s", "rate: 2 Gbit/s"), @"study.yaml:22:3 `storm`: the sources of this scenario send up to 2.094 Gbit/s, more than the 1 Gbit/s of the link they send on; help: overload must occur at the device, not before it: give some of them another `host`, or `link` a higher rate than `dut.port_rate`");
    // Packets fit in the link.
    assert_snapshot!(mistakes("payload: 1000 B", "payload: 1473 B"), @"study.yaml:17:60 `1473 B`: a payload of 1473 B makes IP packets of 1501 B, above the link's MTU of 1500 B; help: these headers leave room for a payload of 1472 B, or raise `link.mtu`");
    // Names can be folders.
    assert_snapshot!(mistakes("name: small", "name: ../small"), @"study.yaml:1:7 `../small`: the name `../small` has an invalid character: letters, digits, `.`, `_` and `-` are allowed");
    // Names differ in more than case.
    assert_snapshot!(mistakes("  storm:", "  Calm:"), @"study.yaml:22:3 `Calm`: `Calm` and `calm` differ in case only: a file system may take them for one");
}

#[test]
fn the_model_of_a_port_has_no_licence() {
    let dut = "model: port\n  licence: {rate: 35 Mbit/s, credit: 1 s}";
    assert_snapshot!(mistakes("model: port", dut), @"study.yaml:5:3 `licence`: only the model `isr4221` has a licence; help: leave it out, or use the model `isr4221`");
}

#[test]
fn a_file_that_is_named_exists() {
    assert_snapshot!(mistakes("ios: router.cfg", "ios: ruter.cfg"), @"study.yaml:31:10 `ruter.cfg`: cannot read `ruter.cfg`: no such file");
}

#[test]
fn published_figures_name_what_there_is() {
    let figure = "duration: 5 s\npublished:\n  - {claim: c, source: s, metric: delay_mean, \
                  slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %, tolerance_from: t}";
    assert_snapshot!(mistakes("duration: 5 s", figure), @"
    study.yaml:35:54 `golden`: there is no slice `golden`; help: did you mean `gold`?
    study.yaml:35:72 `wieghted`: there is no policy `wieghted`; help: did you mean `weighted`?
    study.yaml:35:100 `storms`: there is no scenario `storms`; help: did you mean `storm`?
    study.yaml:35:116 `3`: `3` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h
    ");
}

#[test]
fn a_tolerance_of_a_published_figure_has_a_reason() {
    let figure = |written: &str| {
        let figure = format!(
            "duration: 5 s\npublished:\n  - {{claim: c, source: s, metric: transient_end, about: 3 s, within: 5 %{written}}}"
        );
        mistakes("duration: 5 s", &figure)
    };
    assert_snapshot!(figure(", basis: calibrated"), @r#"study.yaml:35:70 `5 %`: `tolerance_from` is missing: why does this difference still agree?; help: write for example `tolerance_from: two published digits`, `read from the figure to half a division`, or, if nothing is known, `our reading of "about"`"#);
    assert_eq!(figure(", tolerance_from: ' '").lines().count(), 1);
    assert_snapshot!(figure(", tolerance_from: t, basis: fitted"), @"study.yaml:35:101 `fitted`: `fitted` is not a basis of a published figure: known are `predicted`, `calibrated`, `entailed`");
}

#[test]
fn a_published_figure_says_one_thing() {
    let figure = "duration: 5 s\npublished:\n  - {claim: c, source: s, metric: transient_end, \
                  about: 3 s, within: 5 %, tolerance_from: t, at_most: 4 s}";
    assert_snapshot!(mistakes("duration: 5 s", figure), @"study.yaml:35:5 `{`: the published value is given by exactly one of `about`, `between`, `at_least` and `at_most`");
}

/// Scenarios that state these places; nothing where it is empty.
fn placed(calm: &str, storm: &str) -> String {
    let place = |x: &str| match x {
        "" => String::new(),
        x => format!("    x: {x}\n"),
    };
    let text = changed("  storm:\n", &format!("  storm:\n{}", place(storm)));
    let text = text.replacen(
        "    reference: true\n",
        &format!("    reference: true\n{}", place(calm)),
        1,
    );
    match parse(&text) {
        Ok(study) => study
            .scenarios
            .iter()
            .map(|s| s.x.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        Err(mistakes) => mistakes,
    }
}

#[test]
fn scenarios_state_numbers_in_one_unit_or_none() {
    assert_eq!(placed("", ""), ", ");
    assert_eq!(
        placed("50 % of the link", "120 % of the link"),
        "50 % of the link, 120 % of the link"
    );
    assert_snapshot!(placed("50 % of the link", "120 Mbit/s"), @"study.yaml:24:8 `120 Mbit/s`: `Mbit/s` is not the unit of the scenarios before: `% of the link`; help: give all scenarios numbers in one unit");
    for (calm, storm, said) in [
        ("much", "120 Mbit/s", "`much` is no number with a unit"),
        ("1 s", "1 s", "another scenario is at 1 s already"),
        ("", "1 s", "scenario `calm` states no `x`, and others do"),
    ] {
        let mistakes = placed(calm, storm);
        assert!(mistakes.contains(said), "{mistakes}");
    }
}
