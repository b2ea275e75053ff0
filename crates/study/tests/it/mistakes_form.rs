//! Messages about a file that is no study, or not the form of one.

use crate::support::{STUDY, changed, files, mistakes, parse};
use insta::assert_snapshot;
use slicewise_study::Study;

#[test]
fn a_key_is_there_once() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: 5 s\nname: other"), @"study.yaml:34:1 `name`: duplicate mapping key `name` is not allowed here");
}

#[test]
fn several_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = changed("repetitions: 2", "repetitions: two")
        .replacen("rate: 50 %", "rate: 50", 1)
        .replacen("duration: 5 s", "duration: soon", 1)
        .replacen("minimum: 60 %", "minimum: 60 %, wieght: 2", 1)
        .replacen("vlan: 20", "vlan: 5000", 1);
    let message = Study::parse(&text, "study.yaml", &files()).unwrap_err();
    let lines: Vec<usize> = message.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [13, 17, 28, 32, 33]);
    assert_eq!(message.count(), 5);
}

#[test]
fn a_file_without_the_form_of_a_study_is_refused() {
    // What is missing is named.
    assert_snapshot!(parse("title: nothing else\n").unwrap_err(), @"
    study.yaml:1:1 `t`: `name` is missing
    study.yaml:1:1 `t`: `link` is missing
    study.yaml:1:1 `t`: `duration` is missing
    study.yaml:1:1 `t`: `repetitions` is missing
    study.yaml:1:1 `t`: `dut` is missing
    study.yaml:1:1 `t`: `slices` is missing: at least one is required
    study.yaml:1:1 `t`: `scenarios` is missing: at least one is required
    study.yaml:1:1 `t`: `policies` is missing: at least one is required
    ");
    // An empty file is refused.
    assert_snapshot!(parse("# nothing\n").unwrap_err(), @"study.yaml:2:1 ``: the file is empty: it should hold a study");
    // A list is no study.
    assert_snapshot!(parse("- a\n- b\n").unwrap_err(), @"study.yaml:1:1 `-`: a study file holds keys and values, for example `name: my-study`");
    // Malformed yaml is reported with its place.
    assert_snapshot!(parse("name: [a, b\nlink: x\n").unwrap_err(), @"study.yaml:2:5 `:`: illegal placement of ':' indicator");
    // A mapping where a value belongs is reported with its place.
    assert_snapshot!(mistakes("duration: 5 s", "duration: {seconds: 5}"), @"study.yaml:33:1 `duration`: one value is expected here, not keys with values");
    // A value where a mapping belongs is reported with its place.
    assert_snapshot!(mistakes("link: {rate: 1 Gbit/s}", "link: 1 Gbit/s"), @"study.yaml:2:7 `1 Gbit/s`: settings are expected here, for example `rate: …`");
    // A setting left empty is reported with its place.
    assert_snapshot!(mistakes("duration: 5 s", "duration:"), @"study.yaml:33:1 `duration`: there is no value here");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let message = mistakes("name: small", "\"na\\u001b[31mme\": small");
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn colour_is_there_where_it_is_wanted() {
    let message = Study::parse("title: x", "study.yaml", &files()).unwrap_err();
    assert!(message.render(true).contains('\u{1b}'));
    assert!(!message.render(false).contains('\u{1b}'));
}

#[test]
fn a_file_without_end_of_mistakes_is_told_in_part() {
    let many: String = (0..200).map(|n| format!("nonsense{n}: 1\n")).collect();
    let message = Study::parse(&format!("{STUDY}{many}"), "study.yaml", &files()).unwrap_err();
    assert_eq!(message.iter().count(), 50);
    assert_eq!(message.count(), 200);
    assert!(message.to_string().ends_with("… and 150 more"));
}

#[test]
fn a_very_long_line_is_shown_in_part() {
    let message = mistakes(
        "duration: 5 s",
        &format!("duration: {}5 x", " ".repeat(100_000)),
    );
    assert!(message.len() < 2_000, "{} bytes", message.len());
}

#[test]
fn a_misspelt_key_is_one_mistake_wherever_it_stands() {
    let keys = "name link rate dut model port_rate slices match vlan share guaranteed headers sources slice \
                pattern payload scenarios reference policies none classes minimum queue_limit ios \
                repetitions duration";
    let mut tried = 0;
    for key in keys.split_whitespace() {
        let written = format!("{key}:");
        for (at, _) in STUDY.match_indices(&written) {
            let is_whole = |c: char| !c.is_ascii_alphabetic() && c != '_';
            if !STUDY[..at].chars().next_back().is_none_or(is_whole) {
                continue;
            }
            let (before, behind) = (&STUDY[..at], &STUDY[at + written.len()..]);
            let wrong = format!("{before}{key}x:{behind}");
            let found = Study::parse(&wrong, "study.yaml", &files()).unwrap_err();
            assert_eq!(found.count(), 1, "{wrong}\n{found}");
            let text = found.to_string();
            assert!(
                text.contains(&format!("`{key}x` is not a setting here")),
                "{text}"
            );
            assert!(text.contains(&format!("did you mean `{key}`?")), "{text}");
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

#[test]
fn two_misspelt_keys_that_resemble_one_are_two_mistakes() {
    let found = mistakes("duration: 5 s", "duratoin: 5 s\nduratio: 6 s").to_string();
    assert_eq!(
        found.matches("did you mean `duration`?").count(),
        2,
        "{found}"
    );
}

#[test]
fn a_second_document_is_named_as_such() {
    assert_snapshot!(mistakes("duration: 5 s", "duration: 5 s\n---\nname: other"), @"study.yaml:35:1 `n`: a second document begins here, but a file must hold one; help: remove the line `---` and what follows it, or move that to its own file");
}

#[test]
fn control_characters_of_a_line_are_not_shown() {
    let found = mistakes("duration: 5 s", "duratoin: \"\u{9b}31m\u{7f}\"").to_string();
    assert!(
        !found.contains(|c: char| c.is_control() && c != '\n'),
        "{found:?}"
    );
}

#[test]
fn every_setting_that_is_missing_is_named_at_once() {
    let message = mistakes(
        "nothing: {none: true}",
        "nothing: {none: true, scalability: {slices: 2}}",
    );
    for key in ["limited_by", "source"] {
        assert!(
            message.contains(&format!(": `{key}` is missing")),
            "{message}"
        );
    }
}

#[test]
fn a_setting_that_cannot_be_read_hides_no_mistake_beside_it() {
    let message = mistakes(
        "link: {rate: 1 Gbit/s}",
        "link: {rate: 1 Gbit/s, mtu: 9 B, propagation: soon, impairments: {ingress: {loss: 200 %, bit_errors: 2}}}",
    );
    for mistake in [
        "the MTU must be from",
        "`soon` is not a duration",
        "this is more than 100 %",
        "`2` is not a bit error ratio",
    ] {
        assert!(message.contains(mistake), "{mistake}: {message}");
    }
    assert_eq!(message.lines().count(), 4, "{message}");
}
