//! `slicewise analyse`: what it makes of captures as they come.

use crate::support::{
    MEASURED, MS, PAIR, PAYLOAD_BYTES, Sandbox, analysed, both_ways, frames, later, packets, pair,
    pcap, with,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use std::fs::{self, File};

/// Column of the table of packets.
const LOST: usize = 7;

#[test]
fn two_captures_give_a_record_a_report_and_tables() {
    let sandbox = pair();
    let (printed, stderr) = sandbox.succeeded(&PAIR);
    assert_eq!(stderr, "");
    insta::assert_snapshot!(printed, @"
    ───────────────────────────────────────────────────────────────────────────────────
     Flow                                Sent  Lost    Throughput  Delay: median  99 %
    ═══════════════════════════════════════════════════════════════════════════════════
     10.0.0.1:49152 → 10.0.0.2:5201 UDP   100  10 %  1.149 Mbit/s           2 ms  2 ms
    ───────────────────────────────────────────────────────────────────────────────────

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
    let stderr: Vec<String> = slices
        .map(|slice| {
            format!(
                "{}: {}",
                slice["slice"].as_str().unwrap(),
                slice["whole"]["sent_frames"]
            )
        })
        .collect();
    insta::assert_snapshot!(stderr.join("\n"), @"
    VLAN 10: 30
    VLAN 20: 30
    UDP 10.0.0.1:49152 > 10.0.0.2:5201: 15
    UDP 10.0.0.1:49153 > 10.0.0.2:5201: 15
    ");
}

#[test]
fn variation_is_between_packets_sent_in_turn_whatever_is_lost_reordered_or_copied() {
    let sandbox = Sandbox::new();
    // Two flows of one slice take turns.
    let mut sent = packets(200);
    for packet in &mut sent {
        packet.vlan = Some(10);
        packet.source_port += u16::try_from(packet.number % 2).unwrap();
    }
    // Two packets of the first flow that cannot be distinguished: neither has a delay.
    sent[82].number = sent[80].number;
    let delay = |place: usize| match place {
        80 | 82 => None,
        lost if lost % 20 >= 18 => None,
        late if late % 14 < 2 => Some(8 * MS + late as u64 * 1_000),
        other => Some(2 * MS + other as u64 % 5 * 100_000),
    };
    let mut received = Vec::new();
    for (place, packet) in sent.iter().enumerate() {
        let is_alike = [80, 82].contains(&place);
        let Some(delay_ns) = delay(place).or(is_alike.then_some(MS)) else {
            continue;
        };
        received.extend(later(&[*packet], delay_ns));
        if place % 9 == 4 && !is_alike {
            received.extend(later(&[*packet], delay_ns + 300_000));
        }
    }
    received.sort_by_key(|packet| packet.at_ns);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&received));
    let (_, record) = analysed(&sandbox, &[]);
    assert_eq!(record["capture"]["ambiguous_sent_frames"], 2);
    assert!(record["capture"]["duplicate_frames"].as_u64().unwrap() > 10);
    assert!(
        record["flows"][0]["reordering"]["reordered_frames"]
            .as_u64()
            .unwrap()
            > 10
    );

    let variations: Vec<u64> = (2..200)
        .filter_map(|place| Some(delay(place)?.abs_diff(delay(place - 2)?)))
        .collect();
    let variation = &record["slices"][0]["whole"]["variation"];
    assert_eq!(variation["ipdv_samples"], variations.len());
    assert_eq!(
        variation["ipdv_max_ns"],
        variations.iter().copied().max().unwrap()
    );
    let mean = variations.iter().sum::<u64>() as f64 / variations.len() as f64;
    assert_eq!(variation["ipdv_mean_ns"], mean);
    assert_eq!(variation["pdv_max_ns"], 8 * MS + 197_000 - 2 * MS);
}

#[test]
fn packets_are_written_as_parquet_where_asked_for() {
    let sandbox = pair();
    for (slices, out) in [(None, "found"), (Some("slices.yaml"), "sliced")] {
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

#[test]
fn clocks_that_disagree_are_told_and_delays_only_where_the_estimate_is_accepted() {
    let sandbox = both_ways(50 * MS);
    let (stderr, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(stderr, @"note: The two clocks disagree: each of 300 frames arrived before it was sent, by 49 ms at worst. No delays are reported or judged; by the method of floors of delay of both directions (Moon, Skelly & Towsley 1999), half their difference (as RFC 5905) the receiving clock was 50 ms ± 1 ms behind the sending one at the start, and drifted by 0 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is the same in both directions.");
    assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 0);
    assert_eq!(record["flows"][0]["delay"]["samples"], 0);
    assert_eq!(frames(&record, 0), [300, 300, 0]);
    assert_eq!(record["capture"]["reverse_frames"], 100);

    let (stderr, record) = analysed(&sandbox, &["--accept-clock-estimate", "--replace"]);
    insta::assert_snapshot!(stderr, @"note: The two clocks were aligned: by the method of floors of delay of both directions (Moon, Skelly & Towsley 1999), half their difference (as RFC 5905) the receiving clock was 50 ms ± 1 ms behind the sending one at the start, and drifted by 0 parts per million. Delays are no better than this estimate.");
    let estimate = &record["capture"]["clock"]["estimate"];
    let unsure = estimate["offset_uncertainty_ns"].as_u64().unwrap();
    assert!(unsure <= 2 * MS, "{estimate}");
    let delay = &record["slices"][0]["whole"]["delay"];
    assert_eq!(delay["samples"], 300);
    for (field, actual) in [("min_ns", MS), ("max_ns", MS + 4 * MS / 10)] {
        let stderr = delay[field].as_u64().unwrap();
        assert!(
            stderr.abs_diff(actual) <= unsure,
            "{field} is {stderr}, ± {unsure}"
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
    let (stderr, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(stderr, @"note: The two clocks disagree: each of 90 frames arrived before it was sent, by 1767225593 s at worst. No delays are reported or judged; by the method of floor of delay, one direction (Moon, Skelly & Towsley 1999) the receiving clock was 1767225593 s behind the sending one at the start, and drifted by 0 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is zero (delays are relative to the smallest, not one-way delays).");
    assert_eq!(frames(&record, 0), [100, 90, 10]);
    assert_eq!(record["slices"][0]["whole"]["delay"]["samples"], 0);
}

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
    let (printed, stderr) = sandbox.succeeded(&["analyse", "lab.yaml"]);
    assert_eq!(stderr, "");
    insta::assert_snapshot!(printed.split("\n\n").next().unwrap(), @"
    ──────────────────────────────────────────────────────────────────────────────────────────────────────
     policy  isolation           reallocation        throughput   loss ratio          mean queueing delay
                                 of unused capacity  gold ≥ −1 %  gold ≤ +0.1 points  gold ≤ +1.23 ms
    ══════════════════════════════════════════════════════════════════════════════════════════════════════
     shared  ? −50 % throughput  not tested          ? −50 %      ? +50 points        ? 0 ns
    ──────────────────────────────────────────────────────────────────────────────────────────────────────
    ? inconclusive
    Not shown: p99 queueing delay (see the report).
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
