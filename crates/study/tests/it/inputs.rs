//! Inputs of runs: settings that they depend on, and settings that they do not.

use crate::support::{STUDY, parse};
use slicewise_study::Study;
use std::collections::BTreeSet;

/// Policy and scenario of the cells whose inputs differ.
fn differing(one: &Study, other: &Study) -> BTreeSet<(String, String)> {
    let mut cells = BTreeSet::new();
    for (p, policy) in one.policies.iter().enumerate() {
        for (s, scenario) in one.scenarios.iter().enumerate() {
            let other_policy = other.policies.iter().position(|it| it.name == policy.name);
            let other_scenario = other
                .scenarios
                .iter()
                .position(|it| it.name == scenario.name);
            let (Some(q), Some(t)) = (other_policy, other_scenario) else {
                continue;
            };
            let inputs = one.inputs(p, s, one.seed).unwrap();
            if Some(inputs) != other.inputs(q, t, other.seed) {
                cells.insert((policy.name.clone(), scenario.name.clone()));
            }
        }
    }
    cells
}

fn after(changes: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let mut text = STUDY.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    differing(&parse(STUDY).unwrap(), &parse(&text).unwrap())
}

#[test]
fn runs_depend_neither_on_texts_nor_on_what_is_judged_nor_on_other_runs() {
    let changes = [
        ("name: small", "# for the paper\nname: larger"),
        (
            "name: small",
            "name: small\ntitle: A link\ndescription: of two slices\nassumptions: {a: b}",
        ),
        ("repetitions: 2", "repetitions: 40"),
        (
            "repetitions: 2",
            "repetitions: 2\nmargins: {throughput: 3 %, delay_resolution: 1 ms}",
        ),
        (
            "    reference: true\n",
            "    reference: true\n    title: as promised\n",
        ),
        ("scenarios:\n", "scenarios:\n  silent: {}\n"),
        ("  nothing: {none: true}\n", ""),
        (
            "  nothing: {none: true}\n",
            "  fair: {none: true}\n  nothing: {none: true, title: none}\n",
        ),
        ("share: 4 Mbit/s", "share: 3 Mbit/s"),
    ];
    for change in changes {
        assert_eq!(after(&[change]), BTreeSet::new(), "{change:?}");
    }
    let other_reference = [
        ("    reference: true\n", ""),
        ("  storm:\n", "  storm:\n    reference: true\n"),
    ];
    assert_eq!(after(&other_reference), BTreeSet::new());
    let places = [
        ("  calm:\n", "  calm:\n    x: 2 Mbit/s\n"),
        ("  storm:\n", "  storm:\n    x: 20 Mbit/s\n"),
    ];
    assert_eq!(after(&places), BTreeSet::new());
}

#[test]
fn runs_depend_on_network_traffic_measurement_and_seed() {
    let changes = [
        (
            "link: {rate: 1 Gbit/s}",
            "link: {rate: 1 Gbit/s, propagation: 1 us}",
        ),
        ("port_rate: 10 Mbit/s", "port_rate: 10001 kbit/s"),
        ("payload: 1000 B", "payload: 1001 B"),
        (
            "match: {vlan: 20}\n    share",
            "match: {vlan: 20, protocol: udp}\n    share",
        ),
        ("duration: 5 s", "duration: 6 s"),
        ("duration: 5 s", "duration: 5 s\nseed: 2"),
        ("duration: 5 s", "duration: 5 s\nmeasure: {bin: 10 ms}"),
        (
            "duration: 5 s",
            "duration: 5 s\nhosts: {clock_drift: 0 ppm}",
        ),
        (
            "    guaranteed: true\n",
            "    guaranteed: true\n    objective: {delay: 2 ms}\n",
        ),
    ];
    for change in changes {
        assert_eq!(after(&[change]).len(), 6, "{change:?}");
    }
}

#[test]
fn runs_depend_on_their_own_policy_and_scenario_alone() {
    let of = |change| {
        let (policies, scenarios): (Vec<_>, Vec<_>) = after(&[change]).into_iter().unzip();
        let names = |names: Vec<String>| {
            names
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join(" ")
        };
        format!("{} / {}", names(policies), names(scenarios))
    };
    assert_eq!(
        of(("queue_limit: 64 packets", "queue_limit: 63 packets")),
        "weighted / calm storm"
    );
    assert_eq!(
        of(("rate: 20 Mbit/s, payload", "rate: 21 Mbit/s, payload")),
        "nothing router weighted / storm"
    );
}

#[test]
fn inputs_of_a_phase_are_those_of_its_study() {
    let timeline = "timeline: {settle: 1 s, changes: {later: {at: 3 s, policies: {weighted: {classes: [{name: gold, slice: gold, minimum: 50 %}]}}}}}\n";
    let with = |rate: &str| parse(&format!("{STUDY}{}", timeline.replace("50 %", rate))).unwrap();
    let (one, other) = (with("50 %"), with("40 %"));
    let cells = differing(&one, &other);
    assert!(
        cells.iter().all(|(policy, _)| policy == "weighted"),
        "{cells:?}"
    );
    assert_eq!(cells.len(), 2);
    assert_eq!(differing(&parse(STUDY).unwrap(), &one).len(), 6);
}
