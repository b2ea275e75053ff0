//! The JSON Schemas: those that ship are those of this version, and they refuse what a check refuses.

use crate::support::{self, outside::violations};
use serde_json::Value;
use slicewise_study::{
    FileKind, GatewayConfig, Lab, MeasuredStudy, MemoryFiles, Plan, json_schema,
};
use std::collections::BTreeSet;
use std::path::Path;

/// Each kind of file with the schema that ships.
const SCHEMAS: [(FileKind, &str); 5] = [
    (FileKind::Study, "slicewise-study.schema.json"),
    (FileKind::Plan, "slicewise-plan.schema.json"),
    (FileKind::Measured, "slicewise-measured.schema.json"),
    (FileKind::Gateway, "slicewise-gateway.schema.json"),
    (FileKind::Lab, "slicewise-lab.schema.json"),
];

const PLAN: &str = "\
link: 1 Gbit/s
tenants: {gold: 2}
slices:
  voice: {count: 20, tenant: gold, guarantee: {rate: 1 Mbit/s, delay: 10 ms}}
  rest: {weight: 3}
";

const MEASURED: &str = "\
name: captured
link: {rate: 100 Mbit/s, counts: L1}
slices:
  voice: {match: {vlan: 10}, share: 20 %, guaranteed: true}
  rest: {match: {}, share: 80 %}
policies: {llq: {configuration: priority}}
scenarios: {calm: {reference: true}, storm: {cycle: 2 s}}
repetitions: 3
captures: {sent: 'tx-{policy}-{scenario}-{repetition}', received: 'rx-{policy}-{scenario}-{repetition}', loss_timeout: 5 s}
";

const GATEWAY: &str = "\
interfaces: [left, right]
link: 35 Mbit/s
policy: {classes: [{name: voice, match: {vlan: 10}, priority: {}}]}
";

const LAB: &str = "\
sender: {ssh: user@host-a, interface: eth1, address: 10.0.1.2}
receiver: {ssh: host-b, interface: eth1, address: 10.0.2.2, program: sudo slicewise}
device: {ssh: root@host-c, apply: sh -e, export: tc, interface: eth2}
clocks: {check: two-way, limit: 1 ms}
ssh_config: lab.ssh
";

/// Whether this program reads a text.
fn is_read(kind: FileKind, text: &str) -> bool {
    let files = MemoryFiles::new();
    match kind {
        FileKind::Study => support::parse(text).is_ok(),
        FileKind::Plan => Plan::parse(text, "plan.yaml", &files).is_ok(),
        FileKind::Measured => MeasuredStudy::parse(text, "runs.yaml", &files, "test").is_ok(),
        FileKind::Gateway => GatewayConfig::parse(text, "gateway.yaml", &files).is_ok(),
        FileKind::Lab => Lab::parse(text, "lab.yaml", &files).is_ok(),
    }
}

#[test]
fn the_schemas_that_ship_are_those_of_this_version() {
    for (kind, name) in SCHEMAS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../studies")
            .join(name);
        let current = serde_json::to_string_pretty(&json_schema(kind)).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &current).unwrap();
        }
        let shipped = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            shipped == current,
            "run this test with UPDATE_SCHEMA=1 to write {name}"
        );
    }
}

#[test]
fn the_schemas_know_no_more_keys_than_they_name_and_describe() {
    fn check(schema: &Value) {
        if let Some(object) = schema.as_object() {
            if let Some(Value::Object(properties)) = object.get("properties") {
                let others = object.get("additionalProperties");
                assert_eq!(others, Some(&false.into()), "{object:?}");
                for (name, property) in properties {
                    let description = property.get("description");
                    assert!(description.is_some(), "{name} is not described");
                }
            }
            object.values().for_each(check);
        } else if let Some(items) = schema.as_array() {
            items.iter().for_each(check);
        }
    }
    for (kind, _) in SCHEMAS {
        check(&json_schema(kind));
    }
}

#[test]
fn the_schemas_refuse_what_a_check_refuses() {
    let refused: [(_, _, &[(&str, &str)]); 5] = [
        (
            FileKind::Study,
            support::STUDY,
            &[
                ("duration: 5 s", "duration: 5"),
                ("duration: 5 s", "duration:"),
                ("guaranteed: true", "guarantied: true"),
                ("pattern: cbr", "pattern: cbrr"),
                ("name: small", "name: ../small"),
                ("  storm:", "  sto/rm:"),
                ("minimum: 60 %", "minimum: 60"),
                ("minimum: 60 %", "minimum: 6_0 %"),
                ("64 packets", "64"),
                ("port_rate: 10", "port_rate: -10"),
                ("repetitions: 2\n", ""),
                ("repetitions: 2", "repetitions: 0"),
                ("repetitions: 2", "repetitions: 10001"),
                ("repetitions: 2", "repetitions: 1_000"),
            ],
        ),
        (
            FileKind::Plan,
            PLAN,
            &[
                ("count: 20", "count: 2_0"),
                ("count: 20", "count: 0"),
                ("weight: 3", "weight: 0"),
                ("link: 1 Gbit/s\n", ""),
                ("link: 1 Gbit/s", "link: 1"),
                ("delay: 10 ms", "delays: 10 ms"),
            ],
        ),
        (
            FileKind::Measured,
            MEASURED,
            &[
                ("repetitions: 3", "repetitions: 0"),
                ("cycle: 2 s", "cycle: 2"),
                ("sent: ", "send: "),
                ("match: {vlan: 10}", "match: {vlans: 10}"),
            ],
        ),
        (
            FileKind::Gateway,
            GATEWAY,
            &[
                ("interfaces: [left, right]\n", ""),
                ("priority: {}", "priority: {rates: 1 Mbit/s}"),
            ],
        ),
        (
            FileKind::Lab,
            LAB,
            &[
                ("address: 10.0.1.2", "addresses: 10.0.1.2"),
                ("ssh: host-b, ", ""),
                ("export: tc", "export: vyos"),
                ("check: two-way", "check: ntp"),
                ("limit: 1 ms", "limit: 1"),
                ("ssh_config", "ssh_configuration"),
            ],
        ),
    ];
    for (kind, text, changes) in refused {
        for &(old, new) in changes {
            assert!(text.contains(old), "{old}");
            assert_eq!(violations(text, kind), Vec::<String>::new());
            assert!(is_read(kind, text), "{kind:?}");
            let text = text.replacen(old, new, 1);
            assert!(!is_read(kind, &text), "a check allows `{new}`");
            assert!(
                !violations(&text, kind).is_empty(),
                "the schema allows `{new}`"
            );
        }
    }
}

#[test]
fn underscores_in_numbers_are_refused_with_the_number_to_write() {
    let message = support::mistakes("repetitions: 2", "repetitions: 1_000");
    insta::assert_snapshot!(message, @"study.yaml:32:14 `1_000`: `1_000` has underscores, which YAML 1.2 reads as text: write 1000");
}

const NUMBERS: &str = "5|5.|.5|0.5|1_000|1_000.2_5|0|0.0|00|_1|1_|1__0|.|-5|+5|5e3|5,5|007|0_0.1";
const DELAYS: &str = "ms| ms|  us|µs|μs|ns| s| min| h|m| MS|| days";
const PERCENTILES: &str = "| at 99 %| at 99%| at  99.900 %| at 99.999 %| at 099 %| at 100.0 %| at 50 %| at 97 %| at 99.99999 %| at 99|at 99 %| at| at 99.9000000 %| at 5_0 %| at .9 %|  at 95 % | AT 99 %";
const PERCENTS: &str = "0 %|0.1 %|100 %|100.000 %|100.001 %|101 %|099.9 %|99.9999 %|0.00001 %|0.0000001 %|0.00000001 %|0.00000010 %|99.9990 %|5|5. %|.5 %|-1 %|1_0 %|  5  % |1000 %|%";

/// An objective as JSON Schema and as this program see it, of a slice with applications that have all there is.
fn objective(objective: &str) -> (bool, bool) {
    let text = support::STUDY
        .replace(
            "    guaranteed: true\n",
            &format!("    guaranteed: true\n    objective: {objective}\n"),
        )
        .replace(
            "scenarios:\n",
            "  web: {slice: gold, application: {kind: requests, rate: 10 /s, response: 1 kB}}\n  \
             files: {slice: gold, application: {kind: short_flows, response: 1 kB}}\nscenarios:\n",
        );
    let allowed = violations(&text, FileKind::Study).is_empty();
    (allowed, is_read(FileKind::Study, &text))
}

#[test]
fn the_schema_takes_of_objectives_what_a_check_takes_and_refuses_what_it_refuses() {
    let mut cases: Vec<String> = Vec::new();
    // Of nanoseconds only whole ones; what lies between is said by a number's value, not by its form.
    let whole = |number: &str, unit: &str| unit.trim() != "ns" || !number.contains('.');
    for number in NUMBERS.split('|') {
        let units = DELAYS.split('|').filter(|unit| whole(number, unit));
        cases.extend(units.map(|unit| format!("{{delay: '{number}{unit}'}}")));
    }
    for at in PERCENTILES.split('|') {
        cases.push(format!("{{delay_variation: '5 ms{at}'}}"));
    }
    for percent in PERCENTS.split('|') {
        cases.push(format!("{{loss: '{percent}'}}"));
        cases.push(format!("{{loss: 1 %, availability: '{percent}'}}"));
        for length in ["10 s", "0 s", "0.5 s", "5", ""] {
            cases.push(format!(
                "{{loss: 1 %, availability: '{percent} of {length}'}}"
            ));
        }
    }
    cases.extend(["{}", "{availability: 99 %}", "{throughput: 5 Mbit/s}"].map(str::to_owned));
    let of_applications = [
        "{goodput: 1 Mbit/s}",
        "{goodput: 1}",
        "{goodput: 1 Mbit/s, availability: 99 %}",
        "{completion_time: 2 s at 99 %}",
        "{completion_time: 2 s at 97 %}",
        "{completion_time: 2 s, availability: 99 %}",
        "{completion_time: 2 s, delay: 1 s, availability: 99 %}",
        "{request_latency: 20 ms}",
        "{request_latency: 0 ms}",
        "{request_latency: 20 ms, availability: 99 %}",
        "{request_latency: 20 ms, goodput: 1 kbit/s, availability: 99 %}",
    ];
    cases.extend(of_applications.map(str::to_owned));
    let differing: Vec<&String> = cases
        .iter()
        .filter(|case| {
            let (allowed, read) = objective(case);
            allowed != read
        })
        .collect();
    assert!(differing.is_empty(), "{differing:?}");
    // Some of both kinds.
    assert_eq!(objective("{delay: 1 min}"), (true, true));
    assert_eq!(objective("{delay: 5 ms at 99.900 %}"), (true, true));
    assert_eq!(objective("{delay: 0 ms}"), (false, false));
    assert_eq!(objective("{loss: 101 %}"), (false, false));
}

#[test]
fn every_key_of_a_study_is_documented() {
    const DOCUMENTATION: &str = include_str!("../../../../docs/study-file.md");
    // What stands in code, inline or in blocks.
    let code: Vec<&str> = DOCUMENTATION.split('`').skip(1).step_by(2).collect();
    let code = code.join("\n");
    let is_in_a_word = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
    let words: BTreeSet<&str> = code.split(is_in_a_word).collect();
    let schema = serde_json::to_value(json_schema(FileKind::Study)).unwrap();
    let missing: Vec<String> = keys(&schema)
        .into_iter()
        .filter(|key| !words.contains(&**key))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// The names of all properties in a schema.
fn keys(schema: &Value) -> BTreeSet<String> {
    let below = match schema {
        Value::Object(parts) => parts.values().flat_map(keys).collect(),
        Value::Array(parts) => parts.iter().flat_map(keys).collect(),
        _ => BTreeSet::new(),
    };
    let own = schema.get("properties").and_then(Value::as_object);
    let own = own.into_iter().flat_map(|own| own.keys().cloned());
    below.into_iter().chain(own).collect()
}
