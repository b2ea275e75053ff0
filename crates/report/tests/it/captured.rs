//! Reports of runs measured from captures: page, tables and terminal.

use crate::support::{self, Size, record, study};
use slicewise_report::Report;
use slicewise_report::terminal::flow_table_text;
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::description::SliceLimit;
use slicewise_stats::flow::{
    CaptureRecord, ClockRecord, FlowKey, FlowRecord, HopRecord, IncompleteFile, PointRecord,
    RoundTripFigures, Span, TcpFigures,
};
use slicewise_stats::record::{DelayFigures, RunRecord};
use std::fs;
use std::path::Path;

const DELAY: DelayFigures = DelayFigures {
    samples: 900,
    mean_ns: 1_500_000.5,
    min_ns: 200_000,
    p50_ns: 1_234_000,
    p90_ns: 5_000_000,
    p95_ns: 6_000_000,
    p99_ns: 7_654_000,
    p999_ns: 8_000_000,
    p9999_ns: 8_050_000,
    p99999_ns: 8_100_000,
    max_ns: 8_100_000,
};

/// The larger `number`, the less it sends; the first is TCP.
fn flow(number: u16) -> FlowRecord {
    let frames = 100_000 - u64::from(number) * 1000;
    let span = Span {
        first_ns: 1_000,
        last_ns: 2_000_001_000,
    };
    FlowRecord {
        flow: FlowKey {
            source: "10.0.10.2".into(),
            destination: "10.0.10.3".into(),
            source_port: Some(40_000 + number),
            destination_port: Some(5201),
            protocol: if number == 0 { 6 } else { 17 },
            vlans: vec![10],
            dscp: 46,
        },
        slice: "critical".into(),
        sent_frames: frames,
        sent_bytes: frames * 1000,
        received_frames: frames - 500,
        received_bytes: (frames - 500) * 1000,
        lost_frames: 500,
        delay: if number == 2 {
            DelayFigures::default()
        } else {
            DELAY
        },
        sent: Some(span),
        received: Some(span),
        tcp: (number == 0).then_some(TcpFigures {
            data_bytes: 90_000_000,
            throughput_bits_per_second: 360e6,
            retransmitted_segments: 4321,
            retransmitted_bytes: 6_000_000,
            round_trip: RoundTripFigures::from(DELAY),
        }),
        ..FlowRecord::default()
    }
}

fn capture() -> CaptureRecord {
    let point = |name: &str, packets| PointRecord {
        name: name.into(),
        files: vec![format!("{name}.pcap")],
        packets,
        ..PointRecord::default()
    };
    CaptureRecord {
        points: vec![
            point("sent", 5_000_000),
            point("router", 4_990_000),
            point("received", 4_980_000),
        ],
        loss_timeout_ns: 1_000_000_000,
        matched_frames: 4_979_000,
        unsent_frames: 1000,
        clock: ClockRecord {
            smallest_delay_ns: Some(200_000),
            ..ClockRecord::default()
        },
        ..CaptureRecord::default()
    }
}

fn captured(flows: u16, record: RunRecord) -> RunRecord {
    let hop = |name: &str| HopRecord {
        clocks_disagree: false,
        name: name.into(),
        in_frames: 5_000_000,
        out_frames: 4_990_000,
        lost_frames: 10_000,
        delay: DELAY,
    };
    RunRecord {
        capture: Some(capture()),
        flows: (0..flows).map(flow).collect(),
        hops: vec![hop("sent → router"), hop("router → received")],
        ..record
    }
}

/// One policy with all its runs captured, the last file cut off.
fn report(folder: &Path, flows: u16) -> Report {
    let study = study(Size {
        policies: 1,
        ..Size::SMALL
    });
    let results = ResultsFolder::create(folder, &study, Force::Refuse).unwrap();
    for scenario in 0..study.scenarios.len() {
        for repetition in 0..study.repetitions {
            let mut run = captured(flows, record(&study, 0, scenario, repetition));
            if (scenario, repetition) == (0, 0) {
                let points = &mut run.capture.as_mut().unwrap().points;
                points[2].incomplete.push(IncompleteFile {
                    file: "<received>.pcap".into(),
                    offset_bytes: 1_234_567,
                    reason: "it ends in the middle of a packet".into(),
                });
            }
            results.write_run(&run).unwrap();
        }
    }
    slicewise_report::write(&results).unwrap()
}

#[test]
fn one_flow_is_named_once_and_its_figures_come_before_how_they_were_measured() {
    let temporary = tempfile::tempdir().unwrap();
    let mut study = study(Size {
        policies: 1,
        scenarios: 1,
        repetitions: 1,
        seconds: 4,
    });
    let mut run = captured(1, record(&study, 0, 0, 0));
    let name = "TCP 10.0.10.2:40000 > 10.0.10.3:5201";
    study.slices.truncate(1);
    study.slices[0].guaranteed = false;
    study.published.clear();
    study.policies[0].published_verdict = None;
    study.policies[0].scalability.slices = SliceLimit::NotStated;
    run.slices.truncate(1);
    for slice in [
        &mut study.slices[0].name,
        &mut run.slices[0].slice,
        &mut run.flows[0].slice,
    ] {
        *slice = name.to_owned();
    }
    let results = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    results.write_run(&run).unwrap();
    let report = slicewise_report::write(&results).unwrap();
    let page = fs::read_to_string(&report.html).unwrap();
    let page = page.replace(['\u{a0}', '\u{202f}'], " ");
    let (_, answer) = page.split_once("<p class=\"finding\">").unwrap();
    let (answer, _) = answer.split_once("</p>").unwrap();
    insta::assert_snapshot!(answer, @"0.5 % of 100 000 frames lost; delay 1.234 ms in the median, 7.654 ms for 99 %; 0 % reordered.");
    let sections: Vec<&str> = page.split("<section").skip(1).collect();
    let ids = sections
        .iter()
        .filter_map(|s| s.split_once("id=\"")?.1.split('"').next());
    let ids: Vec<&str> = ids.collect();
    assert_eq!(ids[..3], ["flows", "distributions", "captures"]);
    let body = page.split("id=\"results\"").next().unwrap();
    assert_eq!(
        body.matches("99 %</th>").count(),
        2,
        "of the flow, and of its hops"
    );
    assert_eq!(body.matches("10.0.10.2:40000").count(), 1);
}

#[test]
fn all_flows_are_in_the_data_and_the_largest_on_the_page() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path(), 30);
    let runs = report.findings.main().finished_runs;
    assert!(runs > 1);
    assert_eq!(report.findings.captured.flow_count, 30 * runs);
    assert_eq!(report.findings.captured.flows.len(), 50);
    let sent: Vec<u64> = report
        .findings
        .captured
        .flows
        .iter()
        .map(|f| f.flow.sent_bytes)
        .collect();
    assert!(sent.is_sorted_by(|a, b| a >= b));
    let csv = fs::read_to_string(report.data.join("flows.csv")).unwrap();
    assert_eq!(csv.lines().count() as u64, 1 + 30 * runs);
    assert!(report.data.join("flows.parquet").exists());
    let hops = fs::read_to_string(report.data.join("hops.csv")).unwrap();
    assert_eq!(hops.lines().count() as u64, 1 + 2 * runs);
    let page = fs::read_to_string(&report.html)
        .unwrap()
        .replace('\u{a0}', " ");
    for text in [
        &format!("The 50 of {} flows that sent most bytes", 30 * runs),
        "does not arrive within 1 s is lost (RFC 7680)",
        "sent → router",
        "1000 frames were seen at the receiving end only",
        "&lt;received&gt;.pcap could not be read beyond byte",
        "TCP throughput",
    ] {
        assert!(page.contains(text), "{text} is missing");
    }
}

#[test]
fn a_terminal_shows_ten_flows_and_says_where_the_others_are() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path(), 2);
    let table = flow_table_text(&report.findings.captured, 120).unwrap();
    assert!(
        table.lines().all(|line| line.chars().count() <= 120),
        "{table}"
    );
    for text in ["4321", "398 Mbit/s", "1.234 ms", "The 10 of "] {
        assert!(table.contains(text), "{text} is missing:\n{table}");
    }
}

#[test]
fn tcp_has_columns_only_where_there_is_tcp() {
    let temporary = tempfile::tempdir().unwrap();
    let mut report = report(temporary.path(), 3);
    report
        .findings
        .captured
        .flows
        .retain(|finding| finding.flow.tcp.is_none());
    let table = flow_table_text(&report.findings.captured, 120).unwrap();
    assert!(
        !table.contains("Retransmitted") && table.contains("UDP"),
        "{table}"
    );
}

#[test]
fn a_study_without_captures_says_nothing_of_them() {
    let temporary = tempfile::tempdir().unwrap();
    let report =
        slicewise_report::write(&support::fill(temporary.path(), &study(Size::SMALL))).unwrap();
    assert_eq!(flow_table_text(&report.findings.captured, 120), None);
    let page = fs::read_to_string(&report.html).unwrap();
    assert!(!page.contains("id=\"captures\"") && !page.contains("id=\"flows\""));
    assert!(!report.data.join("flows.csv").exists());
}
