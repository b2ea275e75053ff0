//! Mistakes in policies, in the study file and in IOS text.

use crate::support::{self, STUDY, changed, mistakes, parse};
use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Study};

#[test]
fn guarantees_of_a_policy_fit_in_the_port() {
    let classes = "minimum: 60 %}\n      - {name: more, match: {vlan: 11}, minimum: 5 Mbit/s}";
    assert_snapshot!(mistakes("minimum: 60 %}", classes), @"study.yaml:29:50 `5 Mbit/s`: class `more`, minimum: with 5 Mbit/s for this class the guarantees add up to 11 Mbit/s, more than the available 10 Mbit/s: lower one of them (4 Mbit/s would fit)");
}

#[test]
fn policies_that_contradict_themselves_are_refused() {
    // A guarantee is not above the maximum.
    assert_snapshot!(mistakes("minimum: 60 %", "minimum: 60 %, shape: 2 Mbit/s"), @"study.yaml:28:44 `60 %`: class `gold`, minimum: guarantees 6 Mbit/s, above the maximum of 2 Mbit/s its shaper sets");
    // A percentage of the port is all of it at most.
    assert_snapshot!(mistakes("minimum: 60 %", "minimum: 101 %"), @"study.yaml:28:44 `101 %`: this is more than 100 %");
    // Mechanisms are known ones.
    assert_snapshot!(mistakes("queue_limit: 64 packets", "queue_limt: 64 packets"), @"study.yaml:29:41 `queue_limt`: `queue_limt` is not a setting here; help: did you mean `queue_limit`?");
    // Settings of a class are not of a policy, and are no reason for further messages.
    assert_snapshot!(mistakes("{none: true}", "{none: true, queue_limit: 64 packets}"), @"study.yaml:25:25 `queue_limit`: `queue_limit` is not a setting here; help: it is a setting of a class; of one queue for all frames: `classes: [{name: class-default, queue_limit: …}]`");
    // A class is there once.
    assert_snapshot!(mistakes("{name: rest, match", "{name: gold, match"), @"study.yaml:29:16 `gold`: class `gold` is defined twice");
    // A policy has one form.
    assert_snapshot!(mistakes("{none: true}", "{none: true, ios: router.cfg}"), @"study.yaml:25:3 `nothing`: a policy has one form: `ios` excludes `none`; help: if it comes from an extended file, leave it out with `extends: {file: …, without: [policies.…]}`");
}

#[test]
fn the_router_has_two_levels_of_priority() {
    let text = changed("minimum: 60 %", "priority: {level: 3}").replacen(
        "model: port\n  port_rate: 10 Mbit/s",
        "model: isr4221\n  licence: {rate: 10 Mbit/s, credit: 1 s}",
        1,
    );
    assert_snapshot!(parse(&text).unwrap_err(), @"study.yaml:28:35 `priority`: an ISR 4221 supports 2 priority levels");
}

#[test]
fn a_mistake_in_an_ios_file_is_told_at_its_place_there() {
    let files = MemoryFiles::new().with(
        "router.cfg",
        "policy-map x\n class class-default\n  shap 5\n",
    );
    let message = Study::parse(STUDY, "study.yaml", &files).unwrap_err();
    let first = message.iter().next().unwrap();
    assert_eq!(
        (first.file.as_str(), first.line, first.column),
        ("router.cfg", 3, 3)
    );
    assert_eq!(first.span, 36..40);
    assert_snapshot!(message, @"
    error: unknown command `shap`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition
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
        support::ROUTER.replace("bandwidth 6000", "bandwidth 16000"),
    );
    assert_snapshot!(Study::parse(STUDY, "study.yaml", &files).unwrap_err(), @"
    error: class `gold`, minimum: guarantees 16 Mbit/s, more than the available 10 Mbit/s
     --> router.cfg:5:3
      |
    5 |   bandwidth 16000
      |   ^^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_mistake_in_a_block_of_ios_is_told_at_its_place() {
    let block = "ios: |\n\n      policy-map x\n\n       class class-default\n        shap 5";
    assert_snapshot!(mistakes("ios: router.cfg", block), @"study.yaml:36:9 `shap`: unknown command `shap`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition; help: abbreviations are not read: write `shape`");
}

#[test]
fn a_quoted_ios_text_is_pointed_at_as_a_whole() {
    let text = r#"ios: "policy-map x\n class class-default\n  shap 5""#;
    assert_snapshot!(mistakes("ios: router.cfg", text), @r#"study.yaml:31:10 `"policy-map x\n class class-default\n  shap 5"`: unknown command `shap`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition; help: abbreviations are not read: write `shape`"#);
}

#[test]
fn a_whole_configuration_is_read_with_a_warning_and_shown_without_the_rest() {
    let router = format!(
        "hostname a\nusername b secret 5 hash\n{}interface Gi0/1\n service-policy output slices\n",
        support::ROUTER
    );
    let map = support::ROUTER
        .lines()
        .find(|line| line.starts_with("policy-map"));
    let router = router.replace(
        "slices\n",
        &format!("{}\n", map.unwrap()["policy-map ".len()..].trim()),
    );
    let files = MemoryFiles::new().with("router.cfg", &router);
    let study = Study::parse(STUDY, "study.yaml", &files).unwrap();
    let warning = study.warnings().iter().next().unwrap();
    assert_eq!(
        warning.message,
        "skipped 3 lines: hostname, interface, username"
    );
    assert_eq!((warning.file.as_str(), warning.line), ("router.cfg", 1));
    let shown =
        |policy: &&slicewise_study::StudyPolicy| policy.configuration.contains("policy-map");
    let policy = study.policies.iter().find(shown).unwrap();
    assert!(
        !policy.configuration.contains("secret"),
        "{}",
        policy.configuration
    );
    assert!(
        !policy.configuration.contains("interface"),
        "{}",
        policy.configuration
    );
}

#[test]
fn a_number_of_packets_that_is_too_large_is_not_called_a_fraction() {
    assert_snapshot!(mistakes("64 packets", "99999999999999 packets"), @"study.yaml:29:54 `99999999999999 packets`: `99999999999999 packets` is too large: a queue holds at most 4294967295 packets");
    assert_snapshot!(mistakes("64 packets", "6.4 packets"), @"study.yaml:29:54 `6.4 packets`: `6.4 packets` is not a whole number of packets");
}

#[test]
fn a_configuration_without_a_policy_map_has_none_to_name() {
    assert_snapshot!(mistakes("ios: router.cfg", "ios: |\n      hostname edge"), @"study.yaml:32:7 `hostname edge`: the configuration has no `policy-map`; help: take it from `show running-config`: the policy map, and the class maps that it names");
}

#[test]
fn a_queue_has_one_manager_with_settings_that_it_can_have() {
    let queue = |text: &str| mistakes("queue_limit: 64 packets", text);
    for other in ["wred", "pie", "flow_queue", "codel"] {
        for setting in ["dualpi2", "codel"].into_iter().filter(|it| *it != other) {
            let refused = queue(&format!("{setting}: {{}}, {other}: {{}}"));
            let advice = format!("remove `{other}`");
            assert!(refused.ends_with(&advice), "{refused}");
        }
    }
    for setting in ["codel", "flow_queue"] {
        let refused = queue(&format!("{setting}: {{interval: 5 ms}}"));
        let place =
            format!("study.yaml:29:41 `{setting}`: class `rest`, {setting}: has an interval");
        assert!(refused.starts_with(&place), "{refused}");
    }
    assert_snapshot!(queue("dualpi2: {}, pie: {}"), @"study.yaml:29:41 `dualpi2`: `dualpi2` manages the queue by itself: remove `pie`");
    assert_snapshot!(queue("dualpi2: {step: 11 s}"), @"study.yaml:29:41 `dualpi2`: class `rest`, dualpi2: has a step of 11 s: must be 1 µs to 10 s");
    assert_snapshot!(queue("dualpi2: {update: 0.5 ms}"), @"study.yaml:29:41 `dualpi2`: class `rest`, dualpi2: has a time of `update` of 500 µs: must be 1 ms to 10 s");
    assert_snapshot!(queue("dualpi2: {coupling: 0}"), @"study.yaml:29:41 `dualpi2`: class `rest`, dualpi2: has a coupling of 0: must be 1 to 255");
    assert_snapshot!(queue("dualpi2: {weight: 256}"), @"study.yaml:29:59 `256`: `256` is not a whole number from 0 to 255");
    assert_snapshot!(queue("priority: {}, dualpi2: {}"), @"study.yaml:29:55 `dualpi2`: class `rest`, dualpi2: cannot be set on a priority class: it is served before everything else");
}
