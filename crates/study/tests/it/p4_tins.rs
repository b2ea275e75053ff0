//! Policies given as slice requests of P4-TINS.

use crate::support::{STUDY, told};
use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Study};

const REQUESTS: &str = r#"[
  {"name": "gold", "minRate": "6 Mbit/s", "maxRate": "8 Mbit/s", "allowBurst": 5000, "peakBurst": 5000,
   "flows": [{"ipv4Source": "10.0.1.0/24", "protocol": "tcp"}]},
  {"name": "silver", "minRate": "4 Mbit/s", "maxRate": "8 Mbit/s", "allowBurst": 5000, "peakBurst": 5000,
   "flows": [{"ipv4Source": "10.0.2.0/24", "protocol": "udp"}]}
]
"#;

/// [`STUDY`] with only the policy `p` of these settings, and `requests.json`.
fn with(policy: &str, requests: &str) -> Result<Study, String> {
    let start = STUDY.find("policies:").unwrap();
    let end = STUDY.find("repetitions:").unwrap();
    let text = format!(
        "{}policies:\n  p:\n{policy}\n{}",
        &STUDY[..start],
        &STUDY[end..]
    );
    let files = MemoryFiles::new().with("requests.json", requests);
    Study::parse(&text, "study.yaml", &files).map_err(|mistakes| told(&mistakes))
}

#[test]
fn a_policy_is_what_a_data_plane_runs_for_requests() {
    for (plane, queues) in [
        ("", 5),
        ("    data_plane: p4-tins", 5),
        ("    data_plane: baseline", 2),
    ] {
        let study = with(&format!("    p4_tins: requests.json\n{plane}"), REQUESTS).unwrap();
        let policy = &study.policies[0];
        assert_eq!(policy.params.queues.len(), queues);
        assert_eq!(policy.spec.name, "p");
        assert_eq!(policy.configuration, REQUESTS.trim_end());
        assert_eq!(policy.params.classes[0].name, "gold");
    }
}

#[test]
fn a_mistake_in_requests_is_told_at_its_place() {
    let requests = REQUESTS.replace("\"8 Mbit/s\"", "\"5 Mbit/s\"");
    assert_snapshot!(with("    p4_tins: requests.json", &requests).unwrap_err(), @r#"requests.json:2:54 `"5 Mbit/s"`: `maxRate` 5 Mbit/s is below `minRate` 6 Mbit/s: expected 6 Mbit/s or more"#);
}

#[test]
fn a_mistake_in_a_block_of_requests_is_told_at_its_place() {
    let block = "    p4_tins: |\n      [\n        {\"minRate\": \"fast\"}\n      ]";
    assert_snapshot!(with(block, "").unwrap_err(), @r#"
    study.yaml:28:9 `{`: `maxRate` is missing: expected a rate such as "7 Gbit/s"
    study.yaml:28:9 `{`: `allowBurst` is missing: expected a burst such as "1.25 MB"
    study.yaml:28:9 `{`: `peakBurst` is missing: expected a burst such as "1.25 MB"
    study.yaml:28:9 `{`: `flows` is missing: expected a list of flows, each an object with header fields
    study.yaml:28:21 `"fast"`: `fast` is not a rate: write for example `17.5 Mbit/s`
    "#);
}

#[test]
fn requests_that_do_not_fit_in_the_link_are_told_with_what_would_fit() {
    let requests = REQUESTS.replace("4 Mbit/s", "5 Mbit/s");
    assert_snapshot!(with("    p4_tins: requests.json", &requests).unwrap_err(), @r#"requests.json:4:33 `"5 Mbit/s"`: class `silver`, police: with 5 Mbit/s for this class the guarantees add up to 11 Mbit/s, more than the available 10 Mbit/s: lower one of them (4 Mbit/s would fit)"#);
}

#[test]
fn a_data_plane_is_for_requests() {
    let told = [
        with("    none: true\n    data_plane: baseline", "").unwrap_err(),
        with(
            "    p4_tins: requests.json\n    data_plane: switch",
            REQUESTS,
        )
        .unwrap_err(),
        with("    p4_tins: requests.json\n    none: true", REQUESTS).unwrap_err(),
    ];
    assert_snapshot!(told.join("\n"), @"
    study.yaml:27:17 `baseline`: `data_plane` is for policies with `p4_tins`
    study.yaml:27:17 `switch`: `switch` is not a data plane of P4-TINS: known are `baseline`, `p4-tins`
    study.yaml:25:3 `p`: a policy has one form: `p4_tins` excludes `none`; help: if it comes from an extended file, leave it out with `extends: {file: …, without: [policies.…]}`
    ");
}

#[test]
fn yellow_packets_of_two_queues_are_warned_of() {
    let requests = REQUESTS.replace(", \"protocol\": \"tcp\"", "");
    let study = with("    p4_tins: requests.json", &requests).unwrap();
    assert_snapshot!(told(study.warnings()), @r#"requests.json:2:12 `"gold"`: warning: slice `gold` may carry UDP and other protocols: its yellow packets all wait in `sliced-tcp`; state `protocol` of its flows, and make a slice of each"#);
}
