//! `slicewise init --libreqos`: the study of what LibreQoS shapes.

use crate::support::{Sandbox, contains, record, words};
use insta::assert_snapshot;
use slicewise_model::policy::ClassParams;
use slicewise_study::{Study, StudyPolicy};

const HEADER: &str = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n";
const DEVICES: &str = "\
# left out: 9,x,9,x,AP_A,,100.64.9.9,,1,1,2,2,
1,\"968 Circle St., Gurnee\",1,Device 1,AP_A,,\"100.64.0.1, 100.64.0.14\",,25,5,155,20,
2,31 Marconi Street,2,Device 2,AP_A,,100.64.0.2,2001:db8:64::/56,25,5,105,18,
2,31 Marconi Street,3,Device 3,AP_A,,100.64.0.3,,25,5,105,18,
3,255 NW. Newport Ave,4,Device 4,Site_5,,100.64.0.4,,10.5,5,400,18,
4,,5,Device 5,,,100.64.0.5,,25,5,105,18,
5,,6,Device 6,Nowhere,,100.64.0.6,,25,5,105,18,
";
const NETWORK: &str = r#"{
  "Site_1": {"downloadBandwidthMbps": 1000, "uploadBandwidthMbps": 1000, "type": "Site", "children": {
    "AP_A": {"downloadBandwidthMbps": 40, "uploadBandwidthMbps": 500},
    "Site_2": {"downloadBandwidthMbps": 500, "children": {"Site_3": {"downloadBandwidthMbps": 500, "children": {
      "Site_4": {"downloadBandwidthMbps": 300, "children": {}},
      "Site_4b": {"downloadBandwidthMbps": 300, "children": {"Site_5": {"downloadBandwidthMbps": 200}}}}}}}}}
}"#;

/// The study that is written of these files.
fn study(devices: &str, network: Option<&str>) -> (Sandbox, Study) {
    let sandbox = sandbox(devices, network);
    sandbox.succeeded(&["init", "isp.yaml", "--libreqos", "."]);
    sandbox.succeeded(&["check", "isp.yaml"]);
    let study = Study::load(&sandbox.path("isp.yaml")).unwrap();
    (sandbox, study)
}

fn sandbox(devices: &str, network: Option<&str>) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("ShapedDevices.csv", format!("{HEADER}{devices}"));
    if let Some(network) = network {
        sandbox.write("network.json", network);
    }
    sandbox
}

/// Every class with its depth, minimum and maximum in kbit/s.
fn classes(policy: &StudyPolicy) -> Vec<String> {
    fn add(classes: &[ClassParams], depth: usize, lines: &mut Vec<String>) {
        for class in classes.iter().filter(|class| class.name != "class-default") {
            let kilo = |rate: slicewise_units::BitRate| rate.bits_per_second() / 1_000;
            let minimum = class.minimum.map_or(0, |(rate, _)| kilo(rate.rate));
            let maximum = class.shape.map_or(0, |shape| kilo(shape.rate.rate));
            let pad = "  ".repeat(depth);
            lines.push(format!("{pad}{} {minimum} {maximum}", class.name));
            if let Some(child) = &class.child {
                add(&child.classes, depth + 1, lines);
            }
        }
    }
    let mut lines = Vec::new();
    add(&policy.params.classes, 0, &mut lines);
    lines
}

#[test]
fn circuits_are_slices_and_nodes_are_classes_with_policies_of_their_own() {
    let (_sandbox, study) = study(DEVICES, Some(NETWORK));
    assert_snapshot!(classes(&study.policies[0]).join("\n"), @"
    circuit-4 25000 105000
    circuit-5 25000 105000
    node-site-1 50500 1000000
      node-ap-a 40000 40000
        circuit-1 20000 40000
        circuit-2 20000 40000
      node-site-2 10500 500000
        node-site-3 10500 500000
          node-site-4b 10500 300000
            circuit-3 10500 200000
    ");
    assert_eq!(study.slices.len(), 5);
    assert_eq!(study.dut.port_rate.rate.bits_per_second(), 1_210_000_000);
    assert_snapshot!(study.assumptions.join("\n"), @"
    The port carries what its nodes and circuits carry together. Put the rate of the uplink into `dut.port_rate`.
    LibreQoS has CAKE in each circuit, which is modelled as `flow_queue` (fq_codel).
    No load is in the files. Every circuit asks for half its minimum, one of them for all that it may get beside that, or each for its maximum.
    Nodes nested deeper than policies are have no class; each of their circuits gets at most what they carry: Site_5.
    Circuits are promised more than these carry; their minimums are lowered in proportion: AP_A.
    Circuits behind a node that network.json does not have are on the link itself: 5.
    ");
}

#[test]
fn without_a_network_every_circuit_is_on_the_link() {
    let (_sandbox, study) = study("1,a,1,a,,,100.64.0.1,,25,5,155,20,\n", None);
    assert_snapshot!(classes(&study.policies[0]).join("\n"), @"circuit-1 25000 155000");
    let (_sandbox, empty) = self::study("1,a,1,a,AP,,100.64.0.1,,25,5,155,20,\n", Some("{}"));
    assert_eq!(classes(&empty.policies[0]), classes(&study.policies[0]));
}

#[test]
fn names_that_only_other_characters_tell_apart_stay_apart() {
    let devices = "a b,,1,,,,100.64.0.1,,1,1,2,2,\na-b,,1,,,,100.64.0.2,,1,1,2,2,\nA B,,1,,,,100.64.0.3,,1,1,2,2,\n";
    let (_sandbox, study) = study(devices, None);
    let names: Vec<&str> = study
        .slices
        .iter()
        .map(|slice| slice.name.as_str())
        .collect();
    assert_eq!(names, ["circuit-a-b", "circuit-a-b-2", "circuit-a-b-3"]);
}

#[test]
fn a_busy_site_is_what_limits_its_circuits() {
    let devices = "1,,1,,AP,,100.64.0.1,,2,1,8,2,\n2,,2,,AP,,100.64.0.2,,2,1,8,2,\n3,,3,,,,100.64.0.3,,2,1,8,2,\n";
    let network = r#"{"AP": {"downloadBandwidthMbps": 10}}"#;
    let (sandbox, _) = study(devices, Some(network));
    sandbox.succeeded(&words(
        "run isp.yaml --policy libreqos --scenario busy --repetitions 1 --out results",
    ));
    let record = record(&sandbox.path("results/runs/libreqos/busy.jsonl"));
    let rates: Vec<f64> = (0..3)
        .map(|slice| {
            let received = &record["slices"][slice]["whole"]["received_bytes"];
            received.as_f64().unwrap() * 8.0 / (record["duration_ns"].as_f64().unwrap() / 1e9) / 1e6
        })
        .collect();
    // 10 Mbit/s for two that ask for 8 each, and 8 for the one beside them.
    assert!(
        (rates[0] - 5.0).abs() < 0.3 && (rates[1] - 5.0).abs() < 0.3,
        "{rates:?}"
    );
    assert!(rates[2] > 7.5, "{rates:?}");
}

/// One circuit asks for all that it may get, which is judged without filling anything in.
#[test]
fn isolation_and_reallocation_are_judged() {
    let devices = "1,,1,,AP,,100.64.0.1,,2,1,8,2,\n2,,2,,AP,,100.64.0.2,,2,1,8,2,\n3,,3,,,,100.64.0.3,,2,1,5,2,\n";
    let (sandbox, study) = study(devices, Some(r#"{"AP": {"downloadBandwidthMbps": 7}}"#));
    let greedy = study
        .scenarios
        .iter()
        .find(|it| it.name == "greedy")
        .unwrap();
    let rates: Vec<u64> = greedy
        .sources
        .iter()
        .map(|source| source.rate.bits_per_second() / 1_000)
        .collect();
    // The other circuit of its node asks for half of 2 Mbit/s.
    assert_eq!(rates, [1_000, 6_000, 1_000]);
    let guaranteed: Vec<bool> = study.slices.iter().map(|slice| slice.guaranteed).collect();
    assert_eq!(guaranteed, [true, false, true]);
    let (run, _) = sandbox.succeeded(&["run", "isp.yaml", "--quick", "--policy", "libreqos"]);
    assert!(!run.contains("not tested"), "{run}");
}

#[test]
fn fields_may_hold_lines_and_comments_may_stand_before_the_names() {
    let sandbox = Sandbox::new();
    let rows = "1,\"Acme, \"\"North\"\"\",1,a,,,\"100.64.0.1,\n100.64.0.2\",,25,5,155,20,\"call\nfirst\"\n,,,,,,,,,,,,\n2,b,1,b,,,100.64.0.3,,25,5,155,20,\r\n";
    sandbox.write(
        "ShapedDevices.csv",
        format!("\u{feff}# exported\n{HEADER}{rows}"),
    );
    sandbox.succeeded(&["init", "isp.yaml", "--libreqos", "."]);
    sandbox.succeeded(&["check", "isp.yaml"]);
    let study = sandbox.read("isp.yaml");
    contains(&study, r#"destination: ["100.64.0.1/32", "100.64.0.2/32"]"#);
    contains(&study, "# Acme, \"North\"");
    contains(&study, "circuit-2:");
}

#[test]
fn an_address_belongs_to_one_circuit() {
    let refused = |devices: &str| {
        let sandbox = sandbox(devices, None);
        sandbox.refused(2, &["init", "isp.yaml", "--libreqos", "."])
    };
    let one =
        "1,a,1,a,,,100.64.0.1,,25,5,155,20,\"two\nlines\"\n1,a,2,a,,,100.64.0.1,,25,5,155,20,\n";
    assert_snapshot!(refused(&format!("{one}2,b,1,b,,,\"100.64.0.9, 100.64.0.1\",,25,5,155,20,\n")), @"error: ./ShapedDevices.csv:5:12: 100.64.0.1/32 belongs to circuit `1`, too: expected each address in one circuit; 100.64.0.1/32 is on line 2");
    assert_snapshot!(refused(&format!("{one}2,b,1,b,,,100.64.0.0/24,,25,5,155,20,\n")), @"error: ./ShapedDevices.csv:5:11: 100.64.0.0/24 belongs to circuit `1`, too: expected each address in one circuit; 100.64.0.1/32 is on line 2");
    assert_snapshot!(refused("1,a,1,a,,,100.64.0.1,,25,5,155,20,\"open\n2,b,1,b,,,100.64.0.3,,25,5,155,20,\n"), @r#"error: ./ShapedDevices.csv:2:1: a quote in this row is not closed: expected `"` at the end of the field, and `""` for one within it"#);
}

#[test]
fn mistakes_have_their_places() {
    let refused = |devices: &str, network: Option<&str>| {
        let sandbox = sandbox(devices, network);
        sandbox.refused(2, &["init", "isp.yaml", "--libreqos", "."])
    };
    let devices = "\
1,a,1,a,AP,,100.64.0.1,,25,5,x,20,
2,a,1,a,AP,,100.64.0,,25,5,155,20,
3,a,1,a,AP,,,,25,5,155,20,
4,a,1,a,AP,,100.64.0.4,,25,5,15,20,
5,a,1,a
6,a,1,a,AP,,100.64.0.5,,25,5,155,20,
6,a,1,a,AP,,100.64.0.6,,25,5,150,20,
";
    assert_snapshot!(refused(devices, None), @"
    error: ./ShapedDevices.csv:2:30: `x` is not a rate: expected a number of Mbit/s above 0, such as `25`
    ./ShapedDevices.csv:3:13: `100.64.0` is not read: expected IPv4 addresses such as `100.64.0.1`, or prefixes
    ./ShapedDevices.csv:4:1: circuit `3` has no address: expected one in `IPv4` or `IPv6`
    ./ShapedDevices.csv:5:30: the maximum of 15 Mbit/s is below the minimum: expected 25 Mbit/s or more
    ./ShapedDevices.csv:6:7: the row has 4 columns: expected 12 at least, of `Circuit ID` to `Upload Max Mbps`
    ./ShapedDevices.csv:8:1: circuit `6` has another row: expected the same parent node and rates in each
    ");
    let one = "1,a,1,a,AP,,100.64.0.1,,25,5,155,20,\n";
    assert_snapshot!(refused(one, Some("{\"AP\": {\"uploadBandwidthMbps\": 5}}")), @r#"error: ./network.json:1:2: node `AP` has no rate: expected `"downloadBandwidthMbps": NUMBER` in Mbit/s, above 0"#);
    assert_snapshot!(refused(one, Some("{\"AP\": {\"downloadBandwidthMbps\": \"fast\"}}")), @r#"error: ./network.json:1:34: this is not a rate: expected `"downloadBandwidthMbps": NUMBER` in Mbit/s, above 0"#);
    assert_snapshot!(refused(one, Some("{\"AP\": 5")), @"error: ./network.json:1:8: the text ends too early");
    assert_snapshot!(refused("", None), @"error: ./ShapedDevices.csv:1:1: the file has no circuit: expected a row for each device below the names of the columns");
}
