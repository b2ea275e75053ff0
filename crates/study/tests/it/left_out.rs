//! What could not be read is reported once, not again wherever it is named or counted.

use crate::support::{self, changed, mistakes, parse};
use insta::assert_snapshot;

#[test]
fn suggests_the_source_a_scenario_meant() {
    let old = "  storm:\n    sources: {other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: 500 B}}";
    assert_snapshot!(mistakes(old, "  storm: {sources: {staedy: {rate: 10 %}}}"), @"study.yaml:22:21 `staedy`: no source `staedy` is common to all scenarios, and `slice`, `pattern` and `payload` that would define it here are missing; help: did you mean `steady`?");
}

#[test]
fn a_setting_that_was_given_to_a_misspelt_source_is_not_missed() {
    let text = changed("pattern: cbr, rate: 50 %", "pattern: cbr")
        .replace("sources: {other:", "sources: {steady: {rate: 50 %}, other:")
        .replacen(
            "steady: {rate: 50 %}, other",
            "stedy: {rate: 50 %}, other",
            1,
        );
    assert_snapshot!(parse(&text).unwrap_err(), @"study.yaml:21:15 `stedy`: no source `stedy` is common to all scenarios, and `slice`, `pattern` and `payload` that would define it here are missing; help: did you mean `steady`?");
}

#[test]
fn a_source_like_none_is_told_what_there_is() {
    let message = mistakes("sources: {other:", "sources: {xyz: {rate: 10 %}, other:");
    assert_snapshot!(message, @"study.yaml:21:15 `xyz`: no source `xyz` is common to all scenarios, and `slice`, `pattern` and `payload` that would define it here are missing; help: known are `steady`");
}

#[test]
fn a_policy_that_cannot_be_read_is_not_missing() {
    let policies = "policies:\n  nothing: {none: [true]}\npublished:\n  - {claim: c, source: s, \
                    metric: transient_end, policies: nothing, at_most: 3 s}\nrepetitions: 2\n";
    let text = support::STUDY;
    let start = text.find("policies:").unwrap();
    let end = text.find("repetitions:").unwrap();
    let text = format!(
        "{}{policies}{}",
        &text[..start],
        &text[end + "repetitions: 2\n".len()..]
    );
    assert_snapshot!(parse(&text).unwrap_err(), @"study.yaml:25:13 `none`: one value is expected here, not a list");
}

#[test]
fn a_slice_that_cannot_be_read_is_not_missed_by_its_sources() {
    assert_snapshot!(mistakes("share: 60 %", "share: [60 %]"), @"study.yaml:9:5 `share`: one value is expected here, not a list");
}

#[test]
fn a_scenario_that_cannot_be_read_may_have_been_the_reference() {
    assert_snapshot!(mistakes("reference: true", "reference: [true]"), @"study.yaml:20:5 `reference`: one value is expected here, not a list");
}
