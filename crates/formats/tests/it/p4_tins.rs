//! Slice requests of P4-TINS: what they are read as, what is said of mistakes, and what is written.

use crate::support::any_policy;
use crate::support::requests_fixpoint;
use insta::assert_snapshot;
use proptest::prelude::*;
use slicewise_formats::ReadPolicy;
use slicewise_formats::p4_tins::{self, DataPlane};
use slicewise_model::{
    Action, Discipline, MeterAlgorithm, PolicyParams, PortParams, QueueLimitSpec, Rate,
};
use slicewise_units::{Accounting, BitRate};
use slicewise_wire::{Headers, IpVersion};
use std::fs;
use std::num::NonZeroU32;

const LINK: PortParams = PortParams {
    rate: GBIT10,
    admissible: GBIT10,
    hysteresis: 0,
};
const GBIT10: Rate = Rate {
    rate: BitRate::new(10_000_000_000),
    accounting: Accounting::L1,
};

fn golden(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/p4-tins/");
    fs::read_to_string(format!("{folder}{name}.json")).unwrap()
}

fn policy(name: &str, plane: DataPlane) -> ReadPolicy {
    p4_tins::parse(&golden(name)).unwrap().policy(plane)
}

fn mistakes(text: &str) -> String {
    let errors = p4_tins::parse(text).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn resolved(text: &str, plane: DataPlane) -> PolicyParams {
    let policy = p4_tins::parse(text).unwrap().policy(plane);
    policy.spec.resolve_for(LINK).unwrap()
}

#[test]
fn a_request_is_a_meter_that_chooses_between_two_queues_in_the_baseline() {
    let policy = policy("one", DataPlane::Baseline).spec;
    let queues: Vec<_> = policy
        .queues
        .iter()
        .map(|q| (q.name.as_str(), q.priority))
        .collect();
    assert_eq!(queues, [("high", Some(1)), ("low", None)]);
    assert_eq!(
        policy.queues[1].queue.limit,
        Some(QueueLimitSpec::Packets(25_000))
    );
    assert_eq!(policy.discipline, Discipline::DeficitRoundRobin);
    let params = policy.resolve_for(LINK).unwrap();
    let [slice, default] = params.classes.as_slice() else {
        panic!("{params:?}");
    };
    assert_eq!(slice.name, "slice-1");
    assert_eq!(
        (slice.named_queue.as_deref(), default.named_queue.as_deref()),
        (Some("high"), Some("low"))
    );
    let police = slice.police.as_ref().unwrap();
    assert_eq!(
        (police.exceed.queue(), &police.violate),
        (Some("low"), &Action::Drop)
    );
    let MeterAlgorithm::TwoRateThreeColour { cir, cbs, pir, pbs } = police.algorithm else {
        panic!("{police:?}");
    };
    let gbit = |rate: u64| Rate {
        rate: BitRate::new(rate * 1_000_000_000),
        accounting: Accounting::L1,
    };
    assert_eq!((cir, pir), (gbit(7), gbit(8)));
    assert_eq!((cbs.bytes(), pbs.bytes()), (1_250_000, 1_250_000));
}

#[test]
fn the_remedy_tells_yellow_packets_apart_by_protocol_and_elephants_by_rate() {
    let policy = policy("v4", DataPlane::P4Tins);
    assert_eq!(policy.notes, []);
    let names: Vec<_> = policy.spec.queues.iter().map(|q| q.name.as_str()).collect();
    assert_eq!(names, ["high", "elephants", "udp", "tcp", "sliced-tcp"]);
    let yellow = |class: usize| {
        let police = policy.spec.classes[class].police.as_ref().unwrap();
        police.exceed.as_ref().and_then(Action::queue)
    };
    assert_eq!((yellow(0), yellow(1)), (Some("udp"), Some("sliced-tcp")));
    let default = policy.spec.classes.last().unwrap();
    assert_eq!(default.named_queue.as_deref(), Some("tcp"));
    assert_eq!(default.elephants.as_ref().unwrap().queue, "elephants");
    let udp = &policy.spec.classes[2];
    assert_eq!(
        (udp.name.as_str(), udp.named_queue.as_deref()),
        ("udp", Some("udp"))
    );
}

#[test]
fn a_frame_belongs_to_the_slice_whose_flow_it_is() {
    let policy = policy("v4", DataPlane::Baseline).spec;
    let frame = Headers {
        source: 0x0a00_0202,
        destination: 0x0a00_0902,
        ip_version: IpVersion::V4,
        protocol: 6,
        has_ports: true,
        source_port: 40_000,
        destination_port: 5_004,
        ..Headers::EMPTY
    };
    let class_of = |frame: &Headers| {
        let mut classes = policy.classes.iter();
        let matching =
            classes.find(|class| class.matches.as_ref().is_none_or(|m| m.matches(frame)));
        matching.unwrap().name.clone()
    };
    assert_eq!(class_of(&frame), "s2");
    let other_port = Headers {
        destination_port: 5_005,
        ..frame
    };
    assert_eq!(class_of(&other_port), "class-default");
}

/// Requests for slices whose flows are given.
fn requests_of(flows: &[&str]) -> String {
    let rates = r#""minRate": 1000000, "maxRate": 2000000, "allowBurst": 5000, "peakBurst": 5000"#;
    let one = |flow: &&str| format!("{{{rates}, \"flows\": [{{{flow}}}]}}");
    let requests: Vec<String> = flows.iter().map(one).collect();
    format!("[{}]", requests.join(",\n"))
}

#[test]
fn slices_are_told_by_the_tunnel_that_their_packets_are_in() {
    let text = requests_of(&[r#""teid": 7"#, r#""teid": 8, "protocol": "tcp""#]);
    let policy = resolved(&text, DataPlane::Baseline);
    let class_of = |teid, protocol| {
        let frame = Headers {
            ip_version: IpVersion::V4,
            protocol,
            teid: NonZeroU32::new(teid),
            ..Headers::EMPTY
        };
        let mut classes = policy.classes.iter();
        let found = classes.find(|c| c.matches.as_ref().is_none_or(|map| map.matches(&frame)));
        found.unwrap().name.as_str()
    };
    assert_eq!((class_of(7, 17), class_of(7, 6)), ("slice-1", "slice-1"));
    // The protocol is that of the packet inside.
    assert_eq!(
        (class_of(8, 6), class_of(8, 17)),
        ("slice-2", "class-default")
    );
    assert_eq!(class_of(0, 6), "class-default");
    let written = p4_tins::write(&policy, LINK).unwrap();
    assert!(
        written.contains(r#"{"protocol": "tcp", "teid": 8}"#),
        "{written}"
    );
    assert_eq!(resolved(&written, DataPlane::Baseline), policy);
}

#[test]
fn a_tunnel_that_no_packet_can_be_in_is_refused() {
    let wrong = ["0", "4294967296", "-1", "1.5", r#""7""#, r#""7-9""#];
    let flow = |(teid, protocol)| format!("\"protocol\": {protocol}, \"teid\": {teid}");
    let flows: Vec<String> = wrong.into_iter().zip(1..).map(flow).collect();
    let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
    assert_snapshot!(mistakes(&requests_of(&flows)), @"
    1:116: user packets do not carry TEID 0: expected a TEID, 1 to 4294967295
    2:115: `4294967296` is too large: expected a TEID, 1 to 4294967295
    3:115: `-1` is not a whole number: expected a TEID, 1 to 4294967295
    4:115: `1.5` is not a whole number: expected a TEID, 1 to 4294967295
    5:115: `teid` is text: expected a TEID, 1 to 4294967295
    6:115: `teid` is text: expected a TEID, 1 to 4294967295
    ");
    let common = requests_of(&[r#""teid": 7"#, r#""ipv4Source": "10.0.0.0/8""#]);
    assert!(mistakes(&common).contains("overlaps one of slice"));
}

#[test]
fn a_slice_of_several_protocols_is_noted_with_its_place() {
    let notes = policy("one", DataPlane::P4Tins).notes;
    let [note] = notes.as_slice() else {
        panic!("{notes:?}");
    };
    assert_eq!((note.span.line, note.span.column), (1, 1));
    assert!(
        note.message.contains("all wait in `sliced-tcp`"),
        "{}",
        note.message
    );
    assert_eq!(policy("one", DataPlane::Baseline).notes, []);
}

#[test]
fn names_every_value_that_is_wrong() {
    assert_snapshot!(mistakes(&golden("hostile")));
}

#[test]
fn names_both_slices_of_overlapping_flows() {
    assert_snapshot!(mistakes(&golden("overlapping")), @"7:14: this flow of slice `mail` overlaps one of slice `web`: expected flows that have no packet in common with that on line 3");
}

#[test]
fn text_that_is_not_json_is_refused_at_its_place() {
    let texts = [
        "",
        "[",
        "[{\"name\": \"a\",}]",
        "[1, 2",
        "{'name': 1}",
        "[07]",
        "yes",
        "[] []",
        "7",
        "[]",
    ];
    let told: Vec<String> = texts
        .iter()
        .map(|text| format!("{text:?}: {}", mistakes(text)))
        .collect();
    assert_snapshot!(told.join("\n"), @r#"
    "": 1:1: the text ends too early
    "[": 1:1: the text ends too early
    "[{\"name\": \"a\",}]": 1:15: this is not JSON: trailing comma; text, and numbers with a unit, are written in double quotes: "7 Gbit/s"
    "[1, 2": 1:5: the text ends too early
    "{'name': 1}": 1:2: this is not JSON: key must be a string; text, and numbers with a unit, are written in double quotes: "7 Gbit/s"
    "[07]": 1:3: this is not JSON: invalid number; text, and numbers with a unit, are written in double quotes: "7 Gbit/s"
    "yes": 1:1: this is not JSON: expected value; text, and numbers with a unit, are written in double quotes: "7 Gbit/s"
    "[] []": 1:4: this is not JSON: trailing characters; text, and numbers with a unit, are written in double quotes: "7 Gbit/s"
    "7": 1:1: the text is a number: expected a list of requests, or one request
    "[]": 1:1: the list is empty: expected at least one request
    "#);
    let deep = "[".repeat(100_000);
    assert!(mistakes(&deep).contains("recursion limit exceeded"));
}

#[test]
fn more_flows_than_can_be_compared_are_refused() {
    let flows: Vec<String> = (0..=4096)
        .map(|n| format!("{{\"protocol\": \"udp\", \"sourcePort\": {n}}}"))
        .collect();
    let text = format!(
        "{{\"minRate\": 1, \"maxRate\": 1, \"allowBurst\": 5000, \"peakBurst\": 5000, \"flows\": [{}]}}",
        flows.join(",")
    );
    assert!(mistakes(&text).contains("this is more than 4096 flows"));
}

#[test]
fn slices_that_do_not_fit_in_the_link_are_refused_with_what_would_fit() {
    let text = golden("v4").replace("\"6 Gbit/s\"", "\"7.5 Gbit/s\"");
    let policy = p4_tins::parse(&text).unwrap().policy(DataPlane::Baseline);
    let error = policy.spec.resolve_for(LINK).unwrap_err();
    assert_eq!((error.class.as_str(), error.field), ("s2", "police"));
    assert!(
        error.problem.contains("2.5 Gbit/s would fit"),
        "{}",
        error.problem
    );
    let place = policy
        .places
        .iter()
        .find(|place| place.class == error.class)
        .unwrap()
        .span;
    assert_eq!((place.line, place.column), (14, 16));
}

#[test]
fn a_canonical_request_is_written_as_it_was_read() {
    for plane in DataPlane::ALL {
        let text = golden("v4");
        assert_eq!(p4_tins::write(&resolved(&text, plane), LINK).unwrap(), text);
    }
}

#[test]
fn what_is_not_of_a_published_data_plane_is_not_written() {
    let good = resolved(&golden("v4"), DataPlane::Baseline);
    let refused = |change: &dyn Fn(&mut PolicyParams)| {
        let mut policy = good.clone();
        change(&mut policy);
        p4_tins::write(&policy, LINK).unwrap_err().to_string()
    };
    let told = [
        refused(&|p| p.discipline = Discipline::MinimumShare),
        refused(&|p| p.queues[1].weight = 2),
        refused(&|p| p.classes.swap(0, 2)),
        refused(&|p| p.classes.truncate(0)),
        refused(&|p| p.classes[0].set_dscp = Some(46)),
        refused(&|p| p.classes[0].named_queue = Some("low".to_owned())),
        refused(&|p| p.classes[0].police.as_mut().unwrap().violate = Action::Transmit),
        refused(&|p| p.classes[0].police.as_mut().unwrap().exceed = Action::Drop),
        refused(&|p| p.classes[1].matches = p.classes[0].matches.clone()),
        refused(&|p| {
            let map = p.classes[0].matches.as_mut().unwrap();
            map.conditions = vec![slicewise_model::Condition::OuterVlan(3..=3)];
        }),
        refused(&|p| {
            let map = p.classes[0].matches.as_mut().unwrap();
            map.conditions = vec![slicewise_model::Condition::GtpTeid(3..=4)];
        }),
    ];
    assert_snapshot!(told.join("\n"));
}

#[test]
fn every_file_of_the_corpus_reads_the_same_after_writing() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/slice_requests"
    );
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() >= 4, "the corpus is gone");
    for file in files {
        requests_fixpoint::check(&fs::read_to_string(file.unwrap().path()).unwrap());
    }
}

/// A request of up to five slices that share no flow.
fn requests() -> impl Strategy<Value = String> {
    let ports = || {
        prop_oneof![
            Just(String::new()),
            (0..100u16).prop_map(|n| format!(", \"sourcePort\": {n}")),
            (0..100u16).prop_map(|n| format!(", \"destinationPort\": \"{n}-{}\"", n + 7))
        ]
    };
    let flow = (
        any::<u8>(),
        24..=32u8,
        prop::sample::select(vec!["\"tcp\"", "\"udp\"", "132", "6, \"teid\": 7"]),
        ports(),
    );
    let slice = (
        1..2_000_000_000u64,
        0..2_000_000_000u64,
        1546..10_000_000u64,
        prop::collection::vec(flow, 1..4),
        "[ -~]{1,20}",
    );
    prop::collection::vec(slice, 1..5).prop_map(|slices| {
        let written: Vec<String> = slices.into_iter().enumerate().map(|(index, (min, more, burst, flows, name))| {
            let flows: Vec<String> = flows.into_iter().map(|(host, length, protocol, ports)| {
                let address = u32::from_be_bytes([10, u8::try_from(index).unwrap(), 0, host]);
                let kept = u32::MAX << (32 - u32::from(length));
                let address = std::net::Ipv4Addr::from(address & kept);
                format!("{{\"ipv4Source\": \"{address}/{length}\", \"protocol\": {protocol}{ports}}}")
            }).collect();
            let name = format!("{index}{name}").replace('\\', "\\\\").replace('"', "\\\"");
            format!("{{\"name\": \"{name}\", \"minRate\": {min}, \"maxRate\": {}, \"allowBurst\": {burst}, \"peakBurst\": {}, \"flows\": [{}]}}",
                min + more, burst * 2, flows.join(", "))
        }).collect();
        format!("[{}]", written.join(",\n"))
    })
}

proptest! {
    #[test]
    fn a_policy_of_requests_is_written_so_that_it_reads_the_same(text in requests()) {
        for plane in DataPlane::ALL {
            let policy = resolved(&text, plane);
            let written = p4_tins::write(&policy, LINK).unwrap();
            prop_assert_eq!(resolved(&written, plane), policy, "{}", written);
        }
    }

    #[test]
    fn any_policy_is_written_or_refused(policy in any_policy::policy(true)) {
        if let Ok(params) = policy.resolve_for(LINK) {
            let _ = p4_tins::write(&params, LINK);
        }
    }

    #[test]
    fn no_text_of_requests_is_read_with_a_panic(
        text in requests(), at in any::<prop::sample::Index>(), inserted in "[\\PC\\n\\[\\]{}\",:0-9]{0,4}", cut in 0..30usize
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        let start = at.index(characters.len());
        let end = (start + cut).min(characters.len());
        characters.splice(start..end, inserted.chars());
        requests_fixpoint::check(&characters.into_iter().collect::<String>());
    }
}
