//! What is said of mistakes: each with its place, and what to do.

#![allow(clippy::unwrap_used)]

mod support;

use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Study};
use support::{STUDY, changed, files, mistakes, parse};

#[test]
fn a_correct_study_has_none() {
    assert_eq!(parse(STUDY).map(|study| study.name), Ok("small".to_owned()));
}

#[test]
fn suggests_the_setting_that_was_meant() {
    assert_snapshot!(mistakes("guaranteed: true", "guarantied: true"), @"
    error: there is no setting `guarantied` here
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
    error: `kB` is not a unit of a duration: use one of ns, us, µs, ms, s, min, h
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
    error: `-5 s` is negative: a duration cannot be
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
fn guarantees_of_a_policy_fit_in_the_port() {
    let classes = "minimum: 60 %}\n      - {name: more, match: {vlan: 11}, minimum: 5 Mbit/s}";
    assert_snapshot!(mistakes("minimum: 60 %}", classes), @"
    error: class `more`, minimum: with 5 Mbit/s for this class the guarantees add up to 11 Mbit/s, more than the 10 Mbit/s there is: lower one of them
      --> study.yaml:29:50
       |
    29 |       - {name: more, match: {vlan: 11}, minimum: 5 Mbit/s}
       |                                                  ^^^^^^^^
    ");
}

#[test]
fn a_guarantee_is_not_above_the_maximum() {
    assert_snapshot!(mistakes("minimum: 60 %", "minimum: 60 %, shape: 2 Mbit/s"), @"
    error: class `gold`, minimum: guarantees 6 Mbit/s, above the maximum of 2 Mbit/s its shaper sets
      --> study.yaml:28:44
       |
    28 |       - {name: gold, slice: gold, minimum: 60 %, shape: 2 Mbit/s}
       |                                            ^^^^
    ");
}

#[test]
fn a_percentage_of_the_port_is_all_of_it_at_most() {
    assert_snapshot!(mistakes("minimum: 60 %", "minimum: 101 %"), @"
    error: this is more than 100 %
      --> study.yaml:28:44
       |
    28 |       - {name: gold, slice: gold, minimum: 101 %}
       |                                            ^^^^^
    ");
}

#[test]
fn mechanisms_are_known_ones() {
    assert_snapshot!(mistakes("queue_limit: 64 packets", "queue_limt: 64 packets"), @"
    error: there is no setting `queue_limt` here
      --> study.yaml:29:41
       |
    29 |       - {name: rest, match: {vlan: 20}, queue_limt: 64 packets}
       |                                         ^^^^^^^^^^
       |
       = help: did you mean `queue_limit`?
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
    error: `isr4331` is not a device that is modelled: did you mean `isr4221`?
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
       = help: set `reference: true` in the scenario where nobody exceeds what was promised
    ");
}

#[test]
fn there_is_one_reference() {
    assert_snapshot!(mistakes("  storm:\n", "  storm:\n    reference: true\n"), @"
    error: `calm` is the reference already: there is one
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
fn the_link_carries_what_is_sent() {
    assert_snapshot!(mistakes("rate: 20 Mbit/s", "rate: 2 Gbit/s"), @"
    error: the sources of this scenario send up to 2.094 Gbit/s, more than the 1 Gbit/s of the link they send on
      --> study.yaml:22:3
       |
    22 |   storm:
       |   ^^^^^
       |
       = help: overload belongs behind the device's ingress: give `link` a higher rate than `dut.port_rate`
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
    ");
}

#[test]
fn names_can_be_folders() {
    assert_snapshot!(mistakes("name: small", "name: ../small"), @"
    error: the name `../small` holds a character that a name cannot: it may have letters, digits, `.`, `_` and `-`
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
fn a_key_is_there_once() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: 5 s\nname: other"), @"
    error: duplicate mapping key `name` is not allowed here
      --> study.yaml:34:1
       |
    34 | name: other
       | ^^^^
    ");
}

#[test]
fn a_class_is_there_once() {
    assert_snapshot!(mistakes("{name: rest, match", "{name: gold, match"), @"
    error: class `gold` is there twice
      --> study.yaml:29:16
       |
    29 |       - {name: gold, match: {vlan: 20}, queue_limit: 64 packets}
       |                ^^^^
    ");
}

#[test]
fn a_policy_has_one_form() {
    assert_snapshot!(mistakes("{none: true}", "{none: true, ios: router.cfg}"), @"
    error: a policy has only one of `ios`, `classes` and `none`
      --> study.yaml:25:3
       |
    25 |   nothing: {none: true, ios: router.cfg}
       |   ^^^^^^^
       |
       = help: where it comes from a file that is extended, leave it out there: `extends: {file: …, without: [policies.…]}`
    ");
}

#[test]
fn the_model_of_a_port_has_no_licence() {
    let dut = "model: port\n  licence: {rate: 35 Mbit/s, credit: 1 s}";
    assert_snapshot!(mistakes("model: port", dut), @"
    error: the model `port` has no licence
     --> study.yaml:5:3
      |
    5 |   licence: {rate: 35 Mbit/s, credit: 1 s}
      |   ^^^^^^^
      |
      = help: leave it out, or use the model `isr4221`
    ");
}

#[test]
fn the_router_has_two_levels_of_priority() {
    let text = changed("minimum: 60 %", "priority: {level: 3}").replacen(
        "model: port\n  port_rate: 10 Mbit/s",
        "model: isr4221\n  licence: {rate: 10 Mbit/s, credit: 1 s}",
        1,
    );
    assert_snapshot!(parse(&text).unwrap_err(), @"
    error: an ISR 4221 has 2 levels of priority
      --> study.yaml:28:35
       |
    28 |       - {name: gold, slice: gold, priority: {level: 3}}
       |                                   ^^^^^^^^
    ");
}

#[test]
fn a_file_that_is_named_exists() {
    assert_snapshot!(mistakes("ios: router.cfg", "ios: ruter.cfg"), @"
    error: cannot read `ruter.cfg`: there is no such file
      --> study.yaml:31:10
       |
    31 |     ios: ruter.cfg
       |          ^^^^^^^^^
    ");
}

#[test]
fn a_mistake_in_an_ios_file_is_told_at_its_place_there() {
    let files = MemoryFiles::new().with(
        "router.cfg",
        "policy-map x\n class class-default\n  shap 5\n",
    );
    let told = Study::parse(STUDY, "study.yaml", &files).unwrap_err();
    let first = told.iter().next().unwrap();
    assert_eq!(
        (first.file.as_str(), first.line, first.column),
        ("router.cfg", 3, 3)
    );
    assert_eq!(first.span, 36..40);
    assert_snapshot!(told, @"
    error: unknown command `shap`: expected `bandwidth`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition
     --> router.cfg:3:3
      |
    3 |   shap 5
      |   ^^^^
      |
      = help: abbreviations are not read: write `shape`
    ");
}

#[test]
fn a_guarantee_in_an_ios_file_that_does_not_fit_is_told_there() {
    let files = MemoryFiles::new().with(
        "router.cfg",
        &support::ROUTER.replace("bandwidth 6000", "bandwidth 16000"),
    );
    assert_snapshot!(Study::parse(STUDY, "study.yaml", &files).unwrap_err(), @"
    error: class `gold`, minimum: guarantees 16 Mbit/s, more than the 10 Mbit/s there is
     --> router.cfg:5:3
      |
    5 |   bandwidth 16000
      |   ^^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_mistake_in_a_block_of_ios_is_told_at_its_place() {
    let block = "ios: |\n\n      policy-map x\n\n       class class-default\n        shap 5";
    assert_snapshot!(mistakes("ios: router.cfg", block), @"
    error: unknown command `shap`: expected `bandwidth`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition
      --> study.yaml:36:9
       |
    36 |         shap 5
       |         ^^^^
       |
       = help: abbreviations are not read: write `shape`
    ");
}

#[test]
fn a_quoted_ios_text_is_pointed_at_as_a_whole() {
    let text = r#"ios: "policy-map x\n class class-default\n  shap 5""#;
    assert_snapshot!(mistakes("ios: router.cfg", text), @r#"
    error: unknown command `shap`: expected `bandwidth`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition
      --> study.yaml:31:10
       |
    31 |     ios: "policy-map x\n class class-default\n  shap 5"
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: abbreviations are not read: write `shape`
    "#);
}

#[test]
fn published_figures_name_what_there_is() {
    let figure = "duration: 5 s\npublished:\n  - {claim: c, source: s, metric: delay_mean, \
                  slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %}";
    assert_snapshot!(mistakes("duration: 5 s", figure), @"
    error: there is no slice `golden`
      --> study.yaml:35:54
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %}
       |                                                      ^^^^^^
       |
       = help: did you mean `gold`?

    error: there is no policy `wieghted`
      --> study.yaml:35:72
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %}
       |                                                                        ^^^^^^^^
       |
       = help: did you mean `weighted`?

    error: there is no scenario `storms`
      --> study.yaml:35:100
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %}
       |                                                                                                    ^^^^^^
       |
       = help: did you mean `storm`?

    error: `3` is a number without a unit: a duration needs one of ns, us, µs, ms, s, min, h
      --> study.yaml:35:116
       |
    35 |   - {claim: c, source: s, metric: delay_mean, slice: golden, policies: wieghted, scenarios: [calm, storms], about: 3, within: 5 %}
       |                                                                                                                    ^
    ");
}

#[test]
fn a_published_figure_says_one_thing() {
    let figure = "duration: 5 s\npublished:\n  - {claim: c, source: s, metric: transient_end, \
                  about: 3 s, within: 5 %, at_most: 4 s}";
    assert_snapshot!(mistakes("duration: 5 s", figure), @"
    error: what was published is said by exactly one of `about`, `between`, `at_least` and `at_most`
      --> study.yaml:35:5
       |
    35 |   - {claim: c, source: s, metric: transient_end, about: 3 s, within: 5 %, at_most: 4 s}
       |     ^
    ");
}

#[test]
fn several_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = changed("repetitions: 2", "repetitions: two")
        .replacen("rate: 50 %", "rate: 50", 1)
        .replacen("duration: 5 s", "duration: soon", 1)
        .replacen("minimum: 60 %", "minimum: 60 %, wieght: 2", 1)
        .replacen("vlan: 20", "vlan: 5000", 1);
    let told = Study::parse(&text, "study.yaml", &files()).unwrap_err();
    let lines: Vec<usize> = told.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [13, 17, 28, 32, 33]);
    assert_eq!(told.count(), 5);
}

#[test]
fn what_is_missing_is_named() {
    assert_snapshot!(parse("title: nothing else\n").unwrap_err(), @"
    error: `name` is missing
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `link` is missing
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `dut` is missing
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `duration` is missing
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `repetitions` is missing
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `slices` is missing: there must be one at least
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `scenarios` is missing: there must be one at least
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^

    error: `policies` is missing: there must be one at least
     --> study.yaml:1:1
      |
    1 | title: nothing else
      | ^
    ");
}

#[test]
fn an_empty_file_is_refused() {
    assert_snapshot!(parse("# nothing\n").unwrap_err(), @"
    error: the file is empty: it should hold a study
     --> study.yaml:2:1
      |
    2 |
      | ^
    ");
}

#[test]
fn a_list_is_no_study() {
    assert_snapshot!(parse("- a\n- b\n").unwrap_err(), @"
    error: a study file holds keys and values, for example `name: my-study`
     --> study.yaml:1:1
      |
    1 | - a
      | ^
    ");
}

#[test]
fn malformed_yaml_is_told_with_its_place() {
    assert_snapshot!(parse("name: [a, b\nlink: x\n").unwrap_err(), @"
    error: illegal placement of ':' indicator
     --> study.yaml:2:5
      |
    2 | link: x
      |     ^
    ");
}

#[test]
fn a_mapping_where_a_value_belongs_is_told_with_its_place() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: {seconds: 5}"), @"
    error: one value is expected here, not keys with values
      --> study.yaml:33:1
       |
    33 | duration: {seconds: 5}
       | ^^^^^^^^
    ");
}

#[test]
fn a_value_where_a_mapping_belongs_is_told_with_its_place() {
    assert_snapshot!(mistakes("link: {rate: 1 Gbit/s}", "link: 1 Gbit/s"), @"
    error: settings are expected here, for example `rate: …`
     --> study.yaml:2:7
      |
    2 | link: 1 Gbit/s
      |       ^^^^^^^^
    ");
}

#[test]
fn a_setting_left_empty_is_told_with_its_place() {
    assert_snapshot!(mistakes("duration: 5 s", "duration:"), @"
    error: there is no value here
      --> study.yaml:33:1
       |
    33 | duration:
       | ^^^^^^^^
    ");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let told = mistakes("name: small", "\"na\\u001b[31mme\": small");
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn colour_is_there_where_it_is_wanted() {
    let told = Study::parse("title: x", "study.yaml", &files()).unwrap_err();
    assert!(told.render(true).contains('\u{1b}'));
    assert!(!told.render(false).contains('\u{1b}'));
}

#[test]
fn a_file_without_end_of_mistakes_is_told_in_part() {
    let many: String = (0..200).map(|n| format!("nonsense{n}: 1\n")).collect();
    let told = Study::parse(&format!("{STUDY}{many}"), "study.yaml", &files()).unwrap_err();
    assert_eq!(told.iter().count(), 50);
    assert_eq!(told.count(), 200);
    assert!(told.to_string().ends_with("… and 150 more"));
}

#[test]
fn a_very_long_line_is_shown_in_part() {
    let told = mistakes(
        "duration: 5 s",
        &format!("duration: {}5 x", " ".repeat(100_000)),
    );
    assert!(told.len() < 2_000, "{} bytes", told.len());
}
