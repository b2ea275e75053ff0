//! Bytes and ATM cells that links behind the device add to each frame, wherever a file says what is counted.

use crate::support::{changed, mistakes, parse, told};
use insta::assert_snapshot;
use slicewise_model::MeterAlgorithm;
use slicewise_study::{GatewayConfig, MemoryFiles, Plan, SliceOutcome, Study};
use slicewise_units::Accounting;

fn accounting(text: &str) -> Accounting {
    text.parse().unwrap()
}

fn study(old: &str, new: &str) -> Study {
    parse(&changed(old, new)).unwrap()
}

const PORT: &str = "port_rate: 10 Mbit/s";
const CLASS: &str = "minimum: 60 %}";

#[test]
fn every_rate_of_a_study_counts_what_is_added() {
    let pppoe = accounting("L2 + 8 B");
    let adsl = accounting("L3 + 40 B in ATM cells");
    let link = study(
        "link: {rate: 1 Gbit/s}",
        "link: {rate: 1 Gbit/s, counts: L2 + 8 B}",
    );
    assert_eq!(link.link.rate.accounting, pppoe);
    let port = study(
        PORT,
        &format!("{PORT}\n  port_counts: L3 + 40 B in ATM cells"),
    );
    assert_eq!(port.dut.port_rate.accounting, adsl);
    let licensed =
        "port_rate: 10 Mbit/s\n  licence: {rate: 10 Mbit/s, credit: 1 MB, counts: L2 + 8 B}";
    let licensed = changed(PORT, licensed).replacen("model: port", "model: isr4221", 1);
    let licensed = parse(&licensed).unwrap();
    assert_eq!(licensed.dut.licence.unwrap().rate.accounting, pppoe);
    let class = |settings: &str| {
        let study = study(CLASS, &format!("{settings}}}"));
        study.policies[1].params.classes[0].clone()
    };
    let shape = class("shape: {rate: 50 %, counts: L3 + 40 B in ATM cells}").shape;
    assert_eq!(shape.unwrap().rate.accounting, adsl);
    let priority = class("priority: {level: 1, rate: 50 %, counts: L2 + 8 B}").priority;
    let (rate, _) = priority.unwrap().police.unwrap();
    assert_eq!(rate.accounting, pppoe);
    let police = class("police: {rate: 50 %, counts: L2 + 8 B}").police;
    let MeterAlgorithm::SingleRateTwoColour { cir, .. } = police.unwrap().algorithm else {
        panic!("one rate");
    };
    assert_eq!(cir.accounting, pppoe);
}

#[test]
fn the_rate_of_a_source_counts_what_is_added() {
    let bytes = |counts: &str| {
        let counted = format!("payload: 1000 B, counts: {counts}}}");
        study("payload: 1000 B}", &counted).scenarios[0].sources[0]
            .largest
            .counted_bytes
    };
    // UDP over IPv4 behind one tag.
    assert_eq!(bytes("L2 + 8 B"), 1_028 + 18 + 8);
    assert_eq!(bytes("L3 + 40 B in ATM cells"), 23 * 53);
}

#[test]
fn gateways_and_plans_count_what_is_added() {
    let gateway = "interfaces: [a, b]\nlink: {rate: 10 Mbit/s, counts: L1 + 8 B}\nbackward: {link: {rate: 1 Mbit/s, counts: L3 + 40 \
                   B in ATM cells}}\npolicy: {none: true}\n";
    let gateway = GatewayConfig::parse(gateway, "gateway.yaml", &MemoryFiles::new()).unwrap();
    let counts = gateway
        .directions
        .map(|direction| direction.link.accounting);
    assert_eq!(
        counts,
        ["L1 + 8 B", "L3 + 40 B in ATM cells"].map(accounting)
    );
    let plan = "link: {rate: 10 Mbit/s, counts: L1 + 8 B}\ncounts: L2 + 8 B\nslices: {a: {}}\n";
    let plan = Plan::parse(plan, "plan.yaml", &MemoryFiles::new()).unwrap();
    assert_eq!(plan.link.link.accounting, accounting("L1 + 8 B"));
    assert_eq!(plan.link.accounting, accounting("L2 + 8 B"));
}

#[test]
fn what_cannot_be_counted_is_refused_where_it_stands() {
    let counted = |counts: &str| mistakes(PORT, &format!("{PORT}\n  port_counts: {counts}"));
    assert_snapshot!(counted("L4"), @"study.yaml:6:16 `L4`: `L4` is not what a rate can count: expected L1, L2 or L3, with the bytes that a link adds to each frame, for example `L2 + 8 B` or `L3 + 40 B in ATM cells`");
    assert_snapshot!(counted("L2 + 2 kB"), @"study.yaml:6:16 `L2 + 2 kB`: an overhead of 2 kB per frame is too large: at most 1500 B");
    assert_snapshot!(counted("L1 in ATM cells"), @"study.yaml:6:16 `L1 in ATM cells`: `L1 in ATM cells` puts the preamble and gap of Ethernet in ATM cells: write L2 or L3 and the bytes that are added");
    assert_snapshot!(mistakes("payload: 1000 B}", "payload: 1000 B, counts: frames}"), @"study.yaml:17:76 `frames`: `frames` is not what a rate can count: expected L1, L2 or L3, with the bytes that a link adds to each frame, for example `L2 + 8 B` or `L3 + 40 B in ATM cells`; of a source also `payload`");
    let gateway =
        "interfaces: [a, b]\nlink: {rate: 10 Mbit/s, counts: L2 + 8}\npolicy: {none: true}\n";
    let refused = GatewayConfig::parse(gateway, "gateway.yaml", &MemoryFiles::new()).unwrap_err();
    assert_snapshot!(told(&refused), @"gateway.yaml:2:33 `L2 + 8`: `8` is a number without a unit: a size needs one of B, byte, bytes, kB, MB, GB, KiB, MiB, GiB");
}

#[test]
fn a_refused_guarantee_names_what_the_link_counts() {
    let plan = "link: {rate: 10 Mbit/s, counts: L1 + 8 B}\nslices: {a: {guarantee: {rate: 9 Mbit/s, burst: 3044 B}}}\n";
    let plan = Plan::parse(plan, "plan.yaml", &MemoryFiles::new()).unwrap();
    let [SliceOutcome::Refused(refusal)] = &plan.outcome().slices[..] else {
        panic!("it does not fit");
    };
    assert_snapshot!(refusal, @"guarantees 9 Mbit/s (L2), in small frames 13.8 Mbit/s (L1 + 8 B), but only 10 Mbit/s (L1 + 8 B) of the link is free: write a rate of at most 6.521 Mbit/s (L2), a smallest frame of at least 288 B, or `counts: L1 + 8 B` for all guarantees of the link");
}

#[test]
fn runs_depend_on_what_is_added() {
    let inputs = |counts: &str| {
        let study = study(PORT, &format!("{PORT}\n  port_counts: {counts}"));
        study.inputs(0, 0, 1).unwrap()
    };
    assert_eq!(inputs("L2"), inputs("L2 + 0 B"));
    assert_ne!(inputs("L2"), inputs("L2 + 8 B"));
    assert_ne!(inputs("L3 + 8 B"), inputs("L3 + 8 B in ATM cells"));
}

#[test]
fn shares_of_a_port_leave_room_for_what_is_added() {
    let overhead = |counts: &str| {
        let study = study(PORT, &format!("{PORT}\n  port_counts: {counts}"));
        study.description("test").capacity.frame_overhead_bytes
    };
    let overheads = [
        "L1",
        "L1 + 8 B",
        "L2",
        "L2 + 8 B",
        "L3",
        "L3 + 18 B",
        "L3 in ATM cells",
    ];
    assert_eq!(overheads.map(overhead), [24, 32, 0, 8, 0, 4, 0]);
    // ADSL with bridged PPPoE: as tc-stab(8) counts packets of 46 B and 1500 B.
    let study = study(
        PORT,
        &format!("{PORT}\n  port_counts: L3 + 40 B in ATM cells"),
    );
    let capacity = study.description("test").capacity;
    assert!(capacity.in_atm_cells);
    assert_eq!(capacity.occupied(600.0, 10.0), 1_060.0);
    assert_eq!(capacity.occupied(15_140.0, 10.0), 17_490.0);
    assert_eq!(capacity.occupied(0.0, 0.0), 0.0);
}
