//! `slicewise analyse` on captures as they come: what it makes of them, and what it says of those that are
//! damaged, wrong or missing.
#![allow(clippy::unwrap_used)]

mod support;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use slicewise_capture::write::{PcapngParams, PcapngWriter};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use support::{MS, PAYLOAD_BYTES, Packet, START_NS, Sandbox, frame, later, packets, pcap};

/// Column of the table of packets.
const LOST: usize = 7;

const PAIR: [&str; 5] = ["analyse", "--sent", "tx.pcap", "--received", "rx.pcap"];

/// 100 packets, each received 2 ms later, of which the last ten are lost.
fn pair() -> Sandbox {
    let sandbox = Sandbox::new();
    let sent = packets(100);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&later(&sent[..90], 2 * MS)));
    sandbox
}

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

/// Standard error, and the record, of analysing the pair of captures.
fn analysed(sandbox: &Sandbox, more: &[&str]) -> (String, Value) {
    let (_, told) = sandbox.succeeded(&with(&with(&PAIR, &["--out", "out"]), more));
    (told, sandbox.record("out"))
}

fn frames(record: &Value, slice: usize) -> [u64; 3] {
    let whole = &record["slices"][slice]["whole"];
    ["sent_frames", "received_frames", "lost_frames"].map(|field| whole[field].as_u64().unwrap())
}

#[test]
fn two_captures_give_a_record_a_report_and_tables() {
    let sandbox = pair();
    let (printed, told) = sandbox.succeeded(&PAIR);
    assert_eq!(told, "");
    insta::assert_snapshot!(printed, @"
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
     Policy        Performance isolation    Resource reallocation            Scalability      Published
    ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
     as-captured   not tested               not tested                       no limit known   –
                   nothing to judge it by   nothing was left to reallocate   none is stated
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    ────────────────────────────────────────────────────────────────────────────────────────
     Flow                                 Sent   Lost     Throughput   Delay: median   99 %
    ════════════════════════════════════════════════════════════════════════════════════════
     10.0.0.1:49152 → 10.0.0.2:5201 UDP    100   10 %   1.149 Mbit/s            2 ms   2 ms
    ────────────────────────────────────────────────────────────────────────────────────────

    Report: results/captures/report.html
    ");
    let record = sandbox.record("results/captures");
    assert_eq!(frames(&record, 0), [100, 90, 10]);
    let bytes = 42 + PAYLOAD_BYTES as u64;
    assert_eq!(record["slices"][0]["whole"]["sent_bytes"], 100 * bytes);
    let delay = &record["flows"][0]["delay"];
    assert_eq!(
        (&delay["min_ns"], &delay["max_ns"]),
        (&(2 * MS).into(), &(2 * MS).into())
    );
    for table in ["runs.csv", "flows.parquet", "series.parquet"] {
        assert!(
            sandbox.path("results/captures/data").join(table).exists(),
            "{table}"
        );
    }
}

#[test]
fn files_of_one_point_may_be_given_in_any_order() {
    let sandbox = pair();
    let (_, whole) = analysed(&sandbox, &[]);
    let sent = packets(100);
    sandbox.write("cut/b.pcap", pcap(&sent[..30]));
    sandbox.write("cut/c.pcap", pcap(&sent[30..60]));
    sandbox.write("cut/a.pcap", pcap(&sent[60..]));
    let ways: [&[&str]; 2] = [&["cut/*.pcap"], &["cut/c.pcap", "cut/a.pcap", "cut/b.pcap"]];
    for (number, files) in ways.into_iter().enumerate() {
        let out = format!("out-{number}");
        let more = ["--received", "rx.pcap", "--out", &out];
        sandbox.succeeded(&with(&with(&["analyse", "--sent"], files), &more));
        let record = sandbox.record(&out);
        for field in ["slices", "flows", "aggregate", "duration_ns"] {
            assert_eq!(record[field], whole[field], "{field}");
        }
    }
}

#[test]
fn stretches_between_points_are_told_in_order() {
    let sandbox = pair();
    let sent = packets(100);
    sandbox.write("first.pcap", pcap(&later(&sent, MS / 2)));
    sandbox.write("second.pcap", pcap(&later(&sent[..95], MS)));
    let via = ["--via", "first.pcap", "--via", "second.pcap"];
    let (_, record) = analysed(&sandbox, &via);
    let hop = |hop: &Value| {
        format!(
            "{}: in {}, out {}, lost {}, {} ns",
            hop["name"].as_str().unwrap(),
            hop["in_frames"],
            hop["out_frames"],
            hop["lost_frames"],
            hop["delay"]["p50_ns"]
        )
    };
    let hops: Vec<String> = record["hops"].as_array().unwrap().iter().map(hop).collect();
    insta::assert_snapshot!(hops.join("\n"), @"
    sent → via 1: in 100, out 100, lost 0, 500000 ns
    via 1 → via 2: in 100, out 95, lost 5, 500000 ns
    via 2 → received: in 95, out 90, lost 5, 1000000 ns
    ");
    let points = record["capture"]["points"].as_array().unwrap();
    let names: Vec<&str> = points
        .iter()
        .map(|point| point["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["sent", "via 1", "via 2", "received"]);
}

#[test]
fn without_a_file_of_slices_tags_tell_them_and_else_flows_do() {
    let sandbox = Sandbox::new();
    let mut sent = packets(90);
    for packet in &mut sent {
        match packet.number % 3 {
            0 => packet.vlan = Some(10),
            1 => packet.vlan = Some(20),
            _ => packet.source_port += u16::try_from(packet.number % 2).unwrap(),
        }
    }
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&later(&sent, MS)));
    let (_, record) = analysed(&sandbox, &[]);
    let slices = record["slices"].as_array().unwrap().iter();
    let told: Vec<String> = slices
        .map(|slice| {
            format!(
                "{}: {}",
                slice["slice"].as_str().unwrap(),
                slice["whole"]["sent_frames"]
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    VLAN 10: 30
    VLAN 20: 30
    UDP 10.0.0.1:49152 > 10.0.0.2:5201: 15
    UDP 10.0.0.1:49153 > 10.0.0.2:5201: 15
    ");
}

#[test]
fn packets_are_written_as_parquet_where_asked_for() {
    let sandbox = pair();
    for (slices, out) in [(None, "found"), (Some("slices.yaml"), "told")] {
        sandbox.write("slices.yaml", "slices: {all: {match: {}}}");
        let mut arguments = with(&PAIR, &["--packets", "--out", out]);
        if let Some(slices) = slices {
            arguments.extend(["--slices", slices]);
        }
        sandbox.succeeded(&arguments);
        let folder = sandbox
            .path(out)
            .join("packets/as-captured/as-captured/rep-000");
        let files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        let [file] = &files[..] else {
            panic!("one file: {files:?}")
        };
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        let lost = reader
            .get_row_iter(None)
            .unwrap()
            .filter(|row| row.as_ref().unwrap().get_bool(LOST).unwrap());
        assert_eq!(
            (reader.metadata().file_metadata().num_rows(), lost.count()),
            (100, 10)
        );
        // The same command finds everything done; without packets there is as little to do.
        sandbox.succeeded(&arguments);
    }
}

/// Packets of both directions. Each takes 1 ms and up to 0.4 ms more; the receiving clock goes `behind_ns`
/// behind.
fn both_ways(behind_ns: u64) -> Sandbox {
    let (mut tx, mut rx) = (Vec::new(), Vec::new());
    for number in 0..400_u32 {
        let goes_back = number % 4 == 3;
        let sent_at = u64::from(number) * MS + 200 * MS;
        let received_at = sent_at + MS + u64::from(number % 5) * MS / 10;
        let packet = |at_ns| Packet {
            at_ns,
            vlan: None,
            source_port: 49_152,
            number,
            goes_back,
        };
        let (at_tx, at_rx) = if goes_back {
            (received_at, sent_at)
        } else {
            (sent_at, received_at)
        };
        tx.push(packet(at_tx));
        rx.push(packet(at_rx - behind_ns));
    }
    tx.sort_by_key(|packet| packet.at_ns);
    rx.sort_by_key(|packet| packet.at_ns);
    let sandbox = Sandbox::new();
    sandbox.write("tx.pcap", pcap(&tx));
    sandbox.write("rx.pcap", pcap(&rx));
    sandbox
}

#[test]
fn clocks_that_disagree_are_told_and_delays_only_where_the_estimate_is_accepted() {
    let sandbox = both_ways(50 * MS);
    let (told, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(told, @"note: The two clocks disagree: each of 300 frames arrived before it was sent, by 49 ms at worst. No delays are told, and none are judged; by the method of floors of delay of both directions (Moon, Skelly & Towsley 1999), half their difference (as RFC 5905) the receiving clock was 50 ms ± 1 ms behind the sending one at the start, and drifted by 0 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is the same in both directions.");
    assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 0);
    assert_eq!(record["flows"][0]["delay"]["samples"], 0);
    assert_eq!(frames(&record, 0), [300, 300, 0]);
    assert_eq!(record["capture"]["reverse_frames"], 100);

    let (told, record) = analysed(&sandbox, &["--accept-clock-estimate", "--replace"]);
    insta::assert_snapshot!(told, @"note: The two clocks were aligned: by the method of floors of delay of both directions (Moon, Skelly & Towsley 1999), half their difference (as RFC 5905) the receiving clock was 50 ms ± 1 ms behind the sending one at the start, and drifted by 0 parts per million. Delays are no better than this estimate.");
    let estimate = &record["capture"]["clock"]["estimate"];
    let unsure = estimate["offset_uncertainty_ns"].as_u64().unwrap();
    assert!(unsure <= 2 * MS, "{estimate}");
    let delay = &record["slices"][0]["whole"]["delay"];
    assert_eq!(delay["samples"], 300);
    for (field, actual) in [("min_ns", MS), ("max_ns", MS + 4 * MS / 10)] {
        let told = delay[field].as_u64().unwrap();
        assert!(
            told.abs_diff(actual) <= unsure,
            "{field} is {told}, ± {unsure}"
        );
    }
}

#[test]
fn clocks_years_apart_still_tell_loss_and_throughput() {
    let sandbox = pair();
    let mut capture = pcap(&later(&packets(100)[..90], 2 * MS));
    // Of each record the seconds are set: a clock that was never set.
    let mut at = 24;
    while at < capture.len() {
        capture[at..at + 4].copy_from_slice(&7_u32.to_le_bytes());
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    sandbox.write("rx.pcap", capture);
    let (told, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(told, @"note: The two clocks disagree: each of 90 frames arrived before it was sent, by 1767225593 s at worst. No delays are told, and none are judged; by the method of floor of delay, one direction (Moon, Skelly & Towsley 1999) the receiving clock was 1767225593 s behind the sending one at the start, and drifted by 0 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is zero, so that delays are above the smallest, not one-way delays.");
    assert_eq!(frames(&record, 0), [100, 90, 10]);
    assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 0);
}

/// Gold has VLAN 10, and the rest takes half of what gold sends once it is crowded.
const MEASURED: &str = "
name: lab
dut: a router in the lab
link: 10 Mbit/s
slices:
  gold: {match: {vlan: 10}, share: 60 %, guaranteed: true}
  rest: {match: {vlan: 20}, share: 40 %}
policies:
  shared: {configuration: none}
scenarios:
  calm: {reference: true}
  crowded: {}
repetitions: 2
duration: 2 s
captures:
  sent: '{policy}/{scenario}-{repetition}-tx.pcap'
  received: '{policy}/{scenario}-{repetition}-rx*.pcap'
";

fn lab() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("lab.yaml", MEASURED);
    for scenario in ["calm", "crowded"] {
        for repetition in ["000", "001"] {
            let mut sent = packets(2000);
            sent.iter_mut().for_each(|packet| {
                packet.vlan = Some(if packet.number % 2 == 0 { 10 } else { 20 });
            });
            let mut received = later(&sent, MS);
            received.retain(|packet| scenario == "calm" || packet.number % 4 != 0);
            let name = format!("shared/{scenario}-{repetition}");
            sandbox.write(&format!("{name}-tx.pcap"), pcap(&sent));
            sandbox.write(&format!("{name}-rx1.pcap"), pcap(&received));
        }
    }
    sandbox
}

#[test]
fn a_study_that_names_its_captures_gives_verdicts() {
    let sandbox = lab();
    let (printed, told) = sandbox.succeeded(&["analyse", "lab.yaml"]);
    assert_eq!(told, "");
    insta::assert_snapshot!(printed.split("\n\n").next().unwrap(), @"
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     Policy      Performance isolation                 Resource reallocation            Scalability      Published
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     shared      broken                                not tested                       no limit known   –
                 loss ratio +50 points in scenario     nothing was left to reallocate   none is stated
                 crowded (margin 0.1 points)
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
    // What is done is not done again: only its report is made.
    fs::remove_file(sandbox.path("results/lab/report.html")).unwrap();
    sandbox.succeeded(&["analyse", "lab.yaml"]);
    assert!(sandbox.path("results/lab/report.html").exists());
}

#[test]
fn a_run_that_cannot_be_analysed_does_not_take_the_others_with_it() {
    let sandbox = lab();
    sandbox.write("shared/calm-001-rx1.pcap", "");
    insta::assert_snapshot!(sandbox.refused(1, &["analyse", "lab.yaml"]), @"
    error: policy shared, scenario calm, repetition 1: shared/calm-001-rx1.pcap: byte 0: the file is empty; leave it out, or capture again
    note: made from 3 of 4 runs: verdicts that need the others say so
    ");
    assert!(sandbox.path("results/lab/report.html").exists());
    fs::remove_file(sandbox.path("shared/calm-001-rx1.pcap")).unwrap();
    insta::assert_snapshot!(sandbox.refused(2, &["analyse", "lab.yaml"]), @"error: shared/calm-001-rx*.pcap: no file matches");
}

#[test]
fn a_file_that_is_no_capture_is_refused_and_told_what_it_is() {
    let sandbox = pair();
    sandbox.write("empty.pcap", "");
    sandbox.write("letter.txt", "Dear all, captures are attached.");
    sandbox.write("folder/tx.pcap", "");
    let mut told = String::new();
    for file in [
        "folder",
        "empty.pcap",
        "letter.txt",
        "missing.pcap",
        "none*.pcap",
        "[.pcap",
    ] {
        told += &sandbox.refused(2, &["analyse", "--sent", "tx.pcap", "--received", file]);
    }
    insta::assert_snapshot!(told, @"
    error: folder: is a directory: name the capture files in it, as in `DIR/*.pcap`
    error: empty.pcap: byte 0: the file is empty; leave it out, or capture again
    error: letter.txt: byte 0: neither pcap nor pcapng, but text; capture with `tcpdump -w FILE`, which writes pcap
    error: missing.pcap: there is no such file
    error: none*.pcap: no file matches
    error: [.pcap: invalid range pattern
    ");
    assert!(!sandbox.path("results/captures/report.html").exists());
}

#[test]
fn what_lies_before_damage_is_reported_and_marked_incomplete() {
    let sandbox = pair();
    let sound = fs::read(sandbox.path("rx.pcap")).unwrap();
    sandbox.write("rx.pcap", &sound[..sound.len() - 10]);
    let (told, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(told, @"note: rx.pcap could not be read beyond byte 9992: the file ends after 102 of the 112 bytes of a packet. What is before is in the figures, what is behind is missing in them.");
    assert_eq!(frames(&record, 0), [100, 89, 11]);
    let incomplete = &record["capture"]["points"][1]["incomplete"][0];
    let last_record = sound.len() - 16 - 96;
    assert_eq!(incomplete["offset_bytes"], last_record);
    assert!(
        sandbox
            .read("out/report.html")
            .contains("rx.pcap could not be read beyond byte")
    );

    let mut huge = sound.clone();
    huge.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ]);
    sandbox.write("rx.pcap", huge);
    let (told, record) = analysed(&sandbox, &["--replace"]);
    insta::assert_snapshot!(told, @"note: rx.pcap could not be read beyond byte 10 112: the header of a packet states 4294967295 captured bytes, where at most 262144 are possible: the file is damaged from here on. What is before is in the figures, what is behind is missing in them.");
    assert_eq!(frames(&record, 0), [100, 90, 10]);
}

#[test]
fn packets_of_an_interface_that_was_not_described_are_no_packets() {
    let sandbox = pair();
    let params = PcapngParams {
        comment: "",
        application: "",
        interface: "",
        snap_bytes: 96,
    };
    let mut writer = PcapngWriter::new(Vec::new(), &params).unwrap();
    for packet in packets(5) {
        writer
            .write_packet(START_NS + packet.at_ns, &frame(&packet), 142)
            .unwrap();
    }
    let bytes = writer.finish().unwrap();
    let length = |at: usize| u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    let section = length(0);
    let without = [&bytes[..section], &bytes[section + length(section)..]].concat();
    sandbox.write("rx.pcap", without);
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the received side holds no packets (rx.pcap: byte 32: a packet of interface 0, but 0 interfaces were described before it, so that its link type and the unit of its time are unknown; what lies before was read)");
}

#[test]
fn time_stamps_that_go_backwards_are_told() {
    let sandbox = pair();
    let mut sent = packets(100);
    sent.swap(40, 41);
    sandbox.write("tx.pcap", pcap(&sent));
    let (told, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(told, @"note: At sent, 1 packet has a time stamp before that of the one before: the clock was set back, or files are not in order.");
    assert_eq!(frames(&record, 0), [100, 90, 10]);
}

#[test]
fn files_of_different_link_layers_are_of_one_point() {
    let sandbox = pair();
    let sent = packets(100);
    // Raw IP: what comes behind the Ethernet header.
    let mut raw = pcap(&[]);
    raw[20..24].copy_from_slice(&101_u32.to_le_bytes());
    for packet in &later(&sent[50..90], 2 * MS) {
        let ip = &frame(packet)[14..];
        let at = START_NS + packet.at_ns;
        let nanos = u32::try_from(at % 1_000_000_000).unwrap();
        let seconds = u32::try_from(at / 1_000_000_000).unwrap();
        let length = u32::try_from(ip.len()).unwrap();
        for word in [seconds, nanos, length, length] {
            raw.extend(word.to_le_bytes());
        }
        raw.extend(ip);
    }
    sandbox.write("rx.pcap", pcap(&later(&sent[..50], 2 * MS)));
    sandbox.write("raw.pcap", raw);
    let more = ["raw.pcap", "--out", "out"];
    let (_, told) = sandbox.succeeded(&with(&PAIR, &more));
    assert_eq!(told, "");
    assert_eq!(frames(&sandbox.record("out"), 0), [100, 90, 10]);
}

#[test]
fn captures_that_have_nothing_to_do_with_each_other_are_refused() {
    let sandbox = pair();
    let mut other = packets(20);
    other.iter_mut().for_each(|packet| packet.number += 1000);
    sandbox.write("rx.pcap", pcap(&other));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the two sides share no packet: 100 packets were sent and 20 received, and none is the same. Are they of the same run? Is there address translation, or a tunnel, between them?");
    sandbox.write("rx.pcap", pcap(&[]));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the received side holds no packets");
    assert!(!sandbox.path("results/captures/report.html").exists());
}

#[test]
fn a_file_given_twice_is_refused_by_whatever_name() {
    let sandbox = pair();
    let twice =
        |sent, received| sandbox.refused(2, &["analyse", "--sent", sent, "--received", received]);
    insta::assert_snapshot!(twice("tx.pcap", "tx.pcap"), @"error: tx.pcap: given twice; each measuring point has files of its own");
    insta::assert_snapshot!(twice("tx.pcap", "./tx.pcap"), @"error: ./tx.pcap: given twice; each measuring point has files of its own");
    insta::assert_snapshot!(twice("-", "-"), @"error: -: given twice; each measuring point has files of its own");
}

#[test]
fn ends_that_are_exchanged_are_told() {
    let sandbox = pair();
    let exchanged = [
        "analyse",
        "--sent",
        "rx.pcap",
        "--received",
        "tx.pcap",
        "--out",
        "out",
    ];
    let (_, told) = sandbox.succeeded(&exchanged);
    insta::assert_snapshot!(told, @"
    note: The two clocks disagree: each of 90 frames arrived before it was sent, by 2 ms at worst. No delays are told, and none are judged; by the method of floor of delay, one direction (Moon, Skelly & Towsley 1999) the receiving clock was 2 ms behind the sending one at the start, and drifted by 0 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is zero, so that delays are above the smallest, not one-way delays.
    note: Every frame arrived before it was sent: where the clocks are one, the captures of the two ends have been exchanged.
    note: 10 frames were seen at the receiving end only: sent before the capture at the sending end began, or missed by it.
    ");
    // Here packets went both ways, three of four from tx to rx.
    let sandbox = both_ways(0);
    let (_, told) = sandbox.succeeded(&exchanged);
    insta::assert_snapshot!(told, @"note: More went from the receiving end to the sending one than the other way: the two captures may have been exchanged.");
}

#[test]
fn a_folder_of_runs_needs_runs_and_slices() {
    let sandbox = pair();
    fs::create_dir(sandbox.path("wire")).unwrap();
    sandbox.write("slices.yaml", "slices: {all: {match: {}}}");
    let analyse = ["analyse", "--runs", "wire", "--slices", "slices.yaml"];
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: wire: no runs here: expected <policy>/<scenario>/rep-000/ with captures called sent* and received* below it");
    insta::assert_snapshot!(sandbox.refused(2, &analyse[..3]), @"
    error: the following required arguments were not provided:
      --slices <FILE>

    Usage: slicewise analyse --slices <FILE> <STUDY|--runs <DIR>|--sent <FILE>...>

    For more information, try '--help'.
    ");
    sandbox.write("wire/shared/calm/rep-000/tx.pcap", "");
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: wire/shared/calm/rep-000: no file called received* or rx*");
    sandbox.write("wire/shared/calm/first/tx.pcap", "");
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: wire/shared/calm/first: this is no repetition: call it rep-000, rep-001 and so on");
    sandbox.write("lab.yaml", MEASURED);
    fs::remove_dir_all(sandbox.path("wire")).unwrap();
    sandbox.write("wire/shared/night/0/tx.pcap", "");
    sandbox.write("wire/shared/night/0/rx.pcap", "");
    let of_lab = ["analyse", "--runs", "wire", "--slices", "lab.yaml"];
    insta::assert_snapshot!(sandbox.refused(2, &of_lab), @"error: there are captures of scenario `night`, and the study has none of that name");
}

#[test]
fn a_file_of_slices_that_is_none_is_refused() {
    let sandbox = pair();
    sandbox.write("letter.txt", "Dear all,\nslices are attached.\n");
    sandbox.write("typo.yaml", "slices: {gold: {mach: {vlan: 10}}}\n");
    let told = |file| sandbox.refused(2, &with(&PAIR, &["--slices", file]));
    insta::assert_snapshot!(told("letter.txt"), @"
    error: a study file holds keys and values, for example `name: my-study`
     --> letter.txt:1:1
      |
    1 | Dear all,
      | ^^^^^^^^^

    error: 1 mistake in letter.txt
    ");
    insta::assert_snapshot!(told("typo.yaml"), @"
    error: `match` is missing: which frames are the slice's?
     --> typo.yaml:1:10
      |
    1 | slices: {gold: {mach: {vlan: 10}}}
      |          ^^^^

    error: there is no setting `mach` here
     --> typo.yaml:1:17
      |
    1 | slices: {gold: {mach: {vlan: 10}}}
      |                 ^^^^
      |
      = help: did you mean `match`?

    error: 2 mistakes in typo.yaml
    ");
    insta::assert_snapshot!(told("missing.yaml"), @"
    error: there is no such file
    --> missing.yaml

    error: 1 mistake in missing.yaml
    ");
    insta::assert_snapshot!(told("tx.pcap"), @"
    error: this is not UTF-8 text: byte 2 does not belong there; save the file as UTF-8
    --> tx.pcap

    error: 1 mistake in tx.pcap
    ");
}

#[test]
fn packets_of_no_slice_are_told() {
    let sandbox = pair();
    sandbox.write("slices.yaml", "slices: {gold: {match: {vlan: 10}}}\n");
    let (told, _) = analysed(&sandbox, &["--slices", "slices.yaml"]);
    insta::assert_snapshot!(told, @"note: 100 frames were sent that no slice matches: they are in no figure of a slice.");
}

#[test]
fn standard_input_is_read_once() {
    let sandbox = pair();
    let from_stdin = |more: &[&str]| {
        let mut command = sandbox.command(&["analyse", "--sent", "-", "--received", "rx.pcap"]);
        command
            .args(more)
            .stdin(File::open(sandbox.path("tx.pcap")).unwrap());
        command.output().unwrap()
    };
    let output = from_stdin(&["--out", "out"]);
    assert!(output.status.success(), "{}", support::text(&output.stderr));
    assert_eq!(frames(&sandbox.record("out"), 0), [100, 90, 10]);
    sandbox.write("via.pcap", fs::read(sandbox.path("rx.pcap")).unwrap());
    let refused = |more: &[&str]| {
        let output = from_stdin(more);
        assert_eq!(output.status.code(), Some(2));
        support::text(&output.stderr)
    };
    insta::assert_snapshot!(refused(&["--via", "via.pcap"]), @"error: standard input can be read only once, and every stretch of the path is measured in a pass of its own: write it to a file first, and give that");
    insta::assert_snapshot!(refused(&["--accept-clock-estimate", "--packets"]), @"error: standard input can be read only once, and an estimate of the clocks needs all packets before the first is told: write it to a file first, and give that");
}

#[test]
fn results_of_other_captures_are_not_overwritten_unless_that_is_said() {
    let sandbox = pair();
    let before = analysed(&sandbox, &["--packets"]).1;
    sandbox.write("rx.pcap", pcap(&later(&packets(100)[..80], MS)));
    let analyse = with(&PAIR, &["--out", "out"]);
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: `out` holds results of other captures, or of these analysed in another way: name another folder for the new results (`--out DIR`), or throw these results away (`--replace`)");
    assert_eq!(sandbox.record("out"), before);
    let (_, record) = analysed(&sandbox, &["--replace"]);
    assert_eq!(frames(&record, 0), [100, 80, 20]);
    assert!(
        !sandbox.path("out/packets").exists(),
        "packets of the other captures"
    );

    sandbox.write("precious/letter.txt", "dear");
    for more in [&["--packets"][..], &["--replace"]] {
        sandbox.refused(2, &with(&with(&PAIR, &["--out", "precious"]), more));
        assert_eq!(fs::read_dir(sandbox.path("precious")).unwrap().count(), 1);
    }
}

#[test]
fn intervals_that_do_not_fit_are_refused() {
    let sandbox = pair();
    let told = |more: &[&str]| sandbox.refused(2, &with(&PAIR, more));
    insta::assert_snapshot!(told(&["--interval", "30ms", "--duration", "1s"]), @"error: the run of 1 s is not a whole number of intervals of 30 ms");
    insta::assert_snapshot!(told(&["--interval", "0ms"]), @"error: the series cannot be made: the interval of the series must not be zero");
    insta::assert_snapshot!(told(&["--loss-timeout", "0s"]), @"error: --loss-timeout: after no time at all everything would be lost");
    insta::assert_snapshot!(told(&["--reference", "calm"]), @"error: --reference calm: there is no scenario of that name, only as-captured");
}

#[cfg(unix)]
#[test]
fn an_analysis_that_is_stopped_leaves_no_report_and_goes_on_later() {
    let sandbox = pair();
    let many = pcap(&packets(30_000));
    let analyse = [
        "analyse",
        "--sent",
        "-",
        "--received",
        "rx.pcap",
        "--packets",
        "--out",
        "out",
    ];
    let mut command = sandbox.command(&analyse);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than pipe and buffers hold: once it is written, reading has begun.
    input.write_all(&many).unwrap();
    let stop = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(stop.unwrap().success());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let heard = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("stopping"));
    assert!(heard.is_some());
    drop(input);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    for name in [
        "report.html",
        "runs",
        "data",
        "packets/as-captured/as-captured/rep-000",
    ] {
        assert!(!sandbox.path("out").join(name).exists(), "{name}");
    }
    let mut command = sandbox.command(&analyse);
    let again = command
        .stdin(File::open(sandbox.path("tx.pcap")).unwrap())
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", support::text(&again.stderr));
}
