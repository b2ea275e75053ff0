//! What is said of mistakes in values, traffic and the network: each with its place, and what to do.

use crate::support::{STUDY, mistakes, parse};
use insta::assert_snapshot;

#[test]
fn a_correct_study_has_none() {
    assert_eq!(parse(STUDY).map(|study| study.name), Ok("small".to_owned()));
}

#[test]
fn suggests_the_setting_that_was_meant() {
    assert_snapshot!(mistakes("guaranteed: true", "guarantied: true"), @"
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
fn a_bare_number_needs_a_unit() {
    assert_snapshot!(mistakes("port_rate: 10 Mbit/s", "port_rate: 10"), @"
    error: `10` is a number without a unit: a rate needs one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s
     --> study.yaml:5:14
      |
    5 |   port_rate: 10
      |              ^^
    ");
}

#[test]
fn a_unit_of_something_else_is_refused() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: 5 kB"), @"
    error: `kB` is not a unit of a duration: use one of ns, µs, ms, s, min, h
      --> study.yaml:33:11
       |
    33 | duration: 5 kB
       |           ^^^^
    ");
}

#[test]
fn a_duration_is_longer_than_zero() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: 0 s"), @"
    error: this must be longer than zero
      --> study.yaml:33:11
       |
    33 | duration: 0 s
       |           ^^^
    ");
}

#[test]
fn a_duration_is_not_negative() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: -5 s"), @"
    error: `-5 s` is negative: a duration must be at least 0
      --> study.yaml:33:11
       |
    33 | duration: -5 s
       |           ^^^^
    ");
}

#[test]
fn there_is_a_repetition() {
    assert_snapshot!(mistakes("repetitions: 2", "repetitions: 0"), @"
    error: there must be 1 to 10000 repetitions
      --> study.yaml:32:14
       |
    32 | repetitions: 0
       |              ^
    ");
}

#[test]
fn suggests_the_slice_a_source_meant() {
    assert_snapshot!(mistakes("slice: rest, pattern", "slice: rset, pattern"), @"
    error: there is no slice `rset`
      --> study.yaml:21:30
       |
    21 |     sources: {other: {slice: rset, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}}
       |                              ^^^^
       |
       = help: did you mean `rest`?
    ");
}

#[test]
fn shares_fit_in_what_the_device_forwards() {
    assert_snapshot!(mistakes("share: 4 Mbit/s", "share: 5 Mbit/s"), @"
    error: with 5 Mbit/s for this slice the shares add up to 11 Mbit/s, more than the 10 Mbit/s the device forwards
      --> study.yaml:14:12
       |
    14 |     share: 5 Mbit/s
       |            ^^^^^^^^
    ");
}

#[test]
fn one_share_alone_fits_too() {
    assert_snapshot!(mistakes("share: 60 %", "share: 160 %"), @"
    error: a share of 16 Mbit/s is above the 10 Mbit/s the device forwards
     --> study.yaml:9:12
      |
    9 |     share: 160 %
      |            ^^^^^
    ");
}

#[test]
fn patterns_are_known_ones() {
    assert_snapshot!(mistakes("pattern: cbr", "pattern: cbrr"), @"
    error: `cbrr` is not a traffic pattern: did you mean `cbr`?
      --> study.yaml:17:34
       |
    17 |   steady: {slice: gold, pattern: cbrr, rate: 50 %, payload: 1000 B}
       |                                  ^^^^
    ");
}

#[test]
fn devices_are_known_ones() {
    assert_snapshot!(mistakes("model: port", "model: isr4331"), @"
    error: `isr4331` is not a modelled device: did you mean `isr4221`?
     --> study.yaml:4:10
      |
    4 |   model: isr4331
      |          ^^^^^^^
    ");
}

#[test]
fn isolation_needs_a_reference() {
    assert_snapshot!(mistakes("    reference: true\n", ""), @"
    error: no scenario is the reference that isolation is judged against
      --> study.yaml:19:3
       |
    19 |   calm:
       |   ^^^^
       |
       = help: set `reference: true` in the scenario where no slice exceeds what was promised
    ");
}

#[test]
fn there_is_one_reference() {
    assert_snapshot!(mistakes("  storm:\n", "  storm:\n    reference: true\n"), @"
    error: `calm` is the reference already: only one is allowed
      --> study.yaml:22:3
       |
    22 |   storm:
       |   ^^^^^
    ");
}

#[test]
fn packets_of_a_source_match_its_slice() {
    assert_snapshot!(mistakes("headers: {vlan: 20}", "headers: {vlan: 21}"), @"
    error: the packets of source `other` do not match slice `rest`
      --> study.yaml:21:30
       |
    21 |     sources: {other: {slice: rest, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}}
       |                              ^^^^
       |
       = help: give the source, or the slice, the `headers` that the slice matches on

    error: the packets of source `other` do not match slice `rest`
      --> study.yaml:23:30
       |
    23 |     sources: {other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: 500 B}}
       |                              ^^^^
       |
       = help: give the source, or the slice, the `headers` that the slice matches on
    ");
}

#[test]
fn packets_of_a_source_belong_to_no_slice_before_its_own() {
    assert_snapshot!(mistakes("match: {vlan: 10}", "match: {vlan: 10-20}"), @r"
    error: the packets of source `other` belong to slice `gold`, which stands before `rest` and matches them too
      --> study.yaml:21:30
       |
    21 |     sources: {other: {slice: rest, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}}
       |                              ^^^^
       |
       = help: narrow the `match` of `gold`, or write `rest` before it

    error: the packets of source `other` belong to slice `gold`, which stands before `rest` and matches them too
      --> study.yaml:23:30
       |
    23 |     sources: {other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: 500 B}}
       |                              ^^^^
       |
       = help: narrow the `match` of `gold`, or write `rest` before it
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
    assert_snapshot!(measured("100 ns"), @r"
    error: a run would look at the queues 50000000 times, more than 10000000
      --> study.yaml:34:26
       |
    34 | measure: {queue_lengths: 100 ns}
       |                          ^^^^^^
       |
       = help: choose a longer interval
    ");
    assert_snapshot!(measured("6 s"), @r"
    error: a run of 5 s would not look at the queues once
      --> study.yaml:34:26
       |
    34 | measure: {queue_lengths: 6 s}
       |                          ^^^
    ");
    let published = |figure: &str| {
        let figure = format!(
            "duration: 5 s\npublished:\n  - {{claim: c, source: s, metric: {figure}, scenarios: calm, about: 5, within: 1 %, tolerance_from: t}}"
        );
        mistakes("duration: 5 s", &figure)
    };
    assert_snapshot!(published("queue_length"), @r"
    error: `queue` is missing: whose length is it?
      --> study.yaml:35:35
       |
    35 |   - {claim: c, source: s, metric: queue_length, scenarios: calm, about: 5, within: 1 %, tolerance_from: t}
       |                                   ^^^^^^^^^^^^

    error: the lengths of queues are not measured
      --> study.yaml:35:35
       |
    35 |   - {claim: c, source: s, metric: queue_length, scenarios: calm, about: 5, within: 1 %, tolerance_from: t}
       |                                   ^^^^^^^^^^^^
       |
       = help: add `measure: {queue_lengths: 10 ms}`: how often queues are looked at
    ");
    assert_snapshot!(published("transient_end, queue: gold"), @r"
    error: `queue` is of `metric: queue_length` alone
      --> study.yaml:35:57
       |
    35 |   - {claim: c, source: s, metric: transient_end, queue: gold, scenarios: calm, about: 5, within: 1 %, tolerance_from: t}
       |                                                         ^^^^

    error: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h
      --> study.yaml:35:87
       |
    35 |   - {claim: c, source: s, metric: transient_end, queue: gold, scenarios: calm, about: 5, within: 1 %, tolerance_from: t}
       |                                                                                       ^
    ");
}

#[test]
fn the_link_carries_what_is_sent() {
    assert_snapshot!(mistakes("rate: 20 Mbit/s", "rate: 2 Gbit/s"), @"
    error: the sources of this scenario send up to 2.094 Gbit/s, more than the 1 Gbit/s of the link they send on
      --> study.yaml:22:3
       |
    22 |   storm:
       |   ^^^^^
       |
       = help: overload must occur at the device, not before it: give some of them another `host`, or `link` a higher rate than `dut.port_rate`
    ");
}

#[test]
fn packets_fit_in_the_link() {
    assert_snapshot!(mistakes("payload: 1000 B", "payload: 1473 B"), @"
    error: a payload of 1473 B makes IP packets of 1501 B, above the link's MTU of 1500 B
      --> study.yaml:17:60
       |
    17 |   steady: {slice: gold, pattern: cbr, rate: 50 %, payload: 1473 B}
       |                                                            ^^^^^^
       |
       = help: these headers leave room for a payload of 1472 B, or raise `link.mtu`
    ");
}

#[test]
fn names_can_be_folders() {
    assert_snapshot!(mistakes("name: small", "name: ../small"), @"
    error: the name `../small` has an invalid character: letters, digits, `.`, `_` and `-` are allowed
     --> study.yaml:1:7
      |
    1 | name: ../small
      |       ^^^^^^^^
    ");
}

#[test]
fn names_differ_in_more_than_case() {
    assert_snapshot!(mistakes("  storm:", "  Calm:"), @"
    error: `Calm` and `calm` differ in case only: a file system may take them for one
      --> study.yaml:22:3
       |
    22 |   Calm:
       |   ^^^^
    ");
}

#[test]
fn the_model_of_a_port_has_no_licence() {
    let dut = "model: port\n  licence: {rate: 35 Mbit/s, credit: 1 s}";
    assert_snapshot!(mistakes("model: port", dut), @"
    error: only the model `isr4221` has a licence
     --> study.yaml:5:3
      |
    5 |   licence: {rate: 35 Mbit/s, credit: 1 s}
      |   ^^^^^^^
      |
      = help: leave it out, or use the model `isr4221`
    ");
}

#[test]
fn a_file_that_is_named_exists() {
    assert_snapshot!(mistakes("ios: router.cfg", "ios: ruter.cfg"), @"
    error: cannot read `ruter.cfg`: no such file
      --> study.yaml:31:10
       |
    31 |     ios: ruter.cfg
       |          ^^^^^^^^^
    ");
}

#[test]
fn published_figures_name_what_there_is() {
    let figure = "duration: 5 s\npublished:\n  - {claim: c, source: s, metric: delay_mean, \
                  slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %, tolerance_from: t}";
    assert_snapshot!(mistakes("duration: 5 s", figure), @"
    error: there is no slice `golden`
      --> study.yaml:35:54
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %, t...
       |                                                      ^^^^^^
       |
       = help: did you mean `gold`?

    error: there is no policy `wieghted`
      --> study.yaml:35:72
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %, t...
       |                                                                        ^^^^^^^^
       |
       = help: did you mean `weighted`?

    error: there is no scenario `storms`
      --> study.yaml:35:100
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %, t...
       |                                                                                                    ^^^^^^
       |
       = help: did you mean `storm`?

    error: `3` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h
      --> study.yaml:35:116
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %, t...
       |                                                                                                                    ^
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
    assert_snapshot!(figure(", basis: calibrated"), @r#"
    error: `tolerance_from` is missing: why does this difference still agree?
      --> study.yaml:35:70
       |
    35 |   - {claim: c, source: s, metric: transient_end, about: 3 s, within: 5 %, basis: calibrated}
       |                                                                      ^^^
       |
       = help: write for example `tolerance_from: two published digits`, `read from the figure to half a division`, or, if nothing is known, `our reading of "about"`
    "#);
    assert_eq!(figure(", tolerance_from: ' '").lines().count(), 7);
    assert_snapshot!(figure(", tolerance_from: t, basis: fitted"), @"
    error: `fitted` is not a basis of a published figure: known are `predicted`, `calibrated`, `entailed`
      --> study.yaml:35:101
       |
    35 |   - {claim: c, source: s, metric: transient_end, about: 3 s, within: 5 %, tolerance_from: t, basis: fitted}
       |                                                                                                     ^^^^^^
    ");
}

#[test]
fn a_published_figure_says_one_thing() {
    let figure = "duration: 5 s\npublished:\n  - {claim: c, source: s, metric: transient_end, \
                  about: 3 s, within: 5 %, tolerance_from: t, at_most: 4 s}";
    assert_snapshot!(mistakes("duration: 5 s", figure), @"
    error: the published value is given by exactly one of `about`, `between`, `at_least` and `at_most`
      --> study.yaml:35:5
       |
    35 |   - {claim: c, source: s, metric: transient_end, about: 3 s, within: 5 %, tolerance_from: t, at_most: 4 s}
       |     ^
    ");
}
