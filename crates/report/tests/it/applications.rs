//! Reports of sources with an application.

use crate::support::{Size, column, fill, has_known_figures, record, study};
use slicewise_report::terminal::application_table_text;
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::application::{
    ApplicationRecord, ApplicationSeries, FailureCount, FlowFigures, RequestFigures,
    TransportFigures, VideoFigures,
};
use slicewise_stats::record::{CdfPoint, DelayFigures, RunRecord};
use std::fs;
use std::path::PathBuf;

/// A source with made-up figures that differ between repetitions.
fn source(name: &str, slice: &str, run: &RunRecord) -> ApplicationRecord {
    let rate = 10e6 + 1e5 * f64::from(run.key.repetition);
    let bins = usize::try_from(run.duration_ns / run.bin_ns).unwrap();
    ApplicationRecord {
        source: name.to_owned(),
        slice: slice.to_owned(),
        transport: TransportFigures {
            span_ns: run.duration_ns,
            connections: 10,
            goodput_bits_per_second: rate,
            segments: 10_000,
            retransmitted_segments: 100,
            rtt_samples: 5_000,
            rtt_mean_ns: 12e6,
            window_samples: 4_000,
            window_mean_bytes: 64e3,
            fairness: Some(0.98),
            ..TransportFigures::default()
        },
        series: ApplicationSeries {
            goodput_bytes: vec![62_500; bins],
            retransmitted_segments: vec![1; bins],
            rtt_mean_ns: vec![Some(12_000_000); bins],
            first_window_bytes: (0..bins as u64)
                .map(|bin| Some(14_480 + 1_448 * bin))
                .collect(),
            first_rtt_ns: (0..bins)
                .map(|bin| (bin % 7 > 0).then_some(11_000_000))
                .collect(),
        },
        ..ApplicationRecord::default()
    }
}

fn times(mean_ns: f64) -> DelayFigures {
    DelayFigures {
        samples: 500,
        mean_ns,
        p50_ns: 9_000_000,
        p99_ns: 40_000_000,
        p999_ns: 80_000_000,
        ..DelayFigures::default()
    }
}

/// A source of each kind.
fn applications(run: &RunRecord) -> Vec<ApplicationRecord> {
    let (first, last) = (&run.slices[0].slice, &run.slices[1].slice);
    let requests = RequestFigures {
        offered_per_second: 100.0,
        achieved_per_second: 99.5,
        unanswered: 2,
        latency: times(10e6),
        response_time: times(9e6),
        ..RequestFigures::default()
    };
    let flows = FlowFigures {
        completed: 500,
        completion_time: times(20e6),
        rate_mean_bits_per_second: Some(4e6),
        ..FlowFigures::default()
    };
    let video = VideoFigures {
        clients: 2,
        segments: 20,
        quality_mean: Some(2.5),
        bit_rate_mean: Some(3e6),
        start_up_mean_ns: Some(8e8),
        ..VideoFigures::default()
    };
    vec![
        source("downloads", last, run),
        ApplicationRecord {
            requests: Some(requests),
            times: vec![CdfPoint(9_000_000, 0.5), CdfPoint(80_000_000, 1.0)],
            failures: vec![FailureCount {
                reason: "no answer".to_owned(),
                connections: 2,
            }],
            ..source("web", first, run)
        },
        ApplicationRecord {
            flows: Some(flows),
            ..source("pages", first, run)
        },
        ApplicationRecord {
            video: Some(video),
            ..source("film", last, run)
        },
    ]
}

fn reported() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("results");
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(&path, &study, Force::Refuse).unwrap();
    for policy in 0..study.policies.len() {
        for scenario in 0..study.scenarios.len() {
            for repetition in 0..study.repetitions {
                let mut run = record(&study, policy, scenario, repetition);
                run.applications = applications(&run);
                folder.write_run(&run).unwrap();
            }
        }
    }
    let report = slicewise_report::write(&folder).unwrap();
    let table = application_table_text(&report.findings.main().summary, 100);
    assert_eq!(table, None, "too many rows for a terminal");
    let mut summary = report.findings.main().summary.clone();
    summary.cells.truncate(1);
    insta::assert_snapshot!(application_table_text(&summary, 100).unwrap(), @"
    ───────────────────────────────────────────────────────────────────────────────────────
     Policy     Scenario  Source         Goodput    RTT  Latency: 99 %  Flow time  Quality
    ═══════════════════════════════════════════════════════════════════════════════════════
     no policy  0         downloads  10.1 Mbit/s  12 ms              –          –        –
     no policy  0         web        10.1 Mbit/s  12 ms          40 ms          –        –
     no policy  0         pages      10.1 Mbit/s  12 ms              –      20 ms        –
     no policy  0         film       10.1 Mbit/s  12 ms              –          –      2.5
    ───────────────────────────────────────────────────────────────────────────────────────
    ");
    (temporary, path)
}

#[test]
fn applications_are_in_tables_on_the_page_and_in_figures() {
    let (_temporary, path) = reported();
    let data = path.join("data");
    let runs = column(&data.join("applications.csv"), "source");
    assert_eq!(runs[..4], ["downloads", "web", "pages", "film"]);
    let known = |column_name: &str| {
        let values = column(&data.join("applications.csv"), column_name);
        values[..4]
            .iter()
            .map(|value| !value.is_empty())
            .collect::<Vec<_>>()
    };
    assert_eq!(known("goodput_bits_per_second"), [true; 4]);
    assert_eq!(known("request_latency_p99_ns"), [false, true, false, false]);
    assert_eq!(
        known("completion_time_mean_ns"),
        [false, false, true, false]
    );
    assert_eq!(known("quality_mean"), [false, false, false, true]);
    let series = column(&data.join("application_series.csv"), "first_rtt_ns");
    assert_eq!(series[..2], ["", "11000000"]);
    let times = data.join("application_times.csv");
    assert!(
        column(&times, "of")
            .iter()
            .all(|of| of == "request_latency")
    );
    let last = |name: &str| column(&times, name)[1].parse::<f64>().unwrap();
    assert_eq!((last("time_ns"), last("share_of_finished")), (80e6, 1.0));
    // Two of the requests were not answered.
    assert_eq!(last("share_of_all"), 500.0 / 502.0);
    let cells = data.join("application_cells.csv");
    let sources = column(&cells, "source");
    assert!(
        sources.contains(&String::new()),
        "slices with several sources"
    );
    assert!(column(&cells, "quantity").contains(&"request_latency_p999_ns".to_owned()));

    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("id=\"applications\"") && page.contains("Source downloads"));
    assert!(page.contains("First connection of each source"));
    // In three repetitions.
    assert!(page.contains("6 connections (no answer)"));
    let figures = path.join("figures");
    let kinds = [
        "application-goodput",
        "application-rtt",
        "request-latency",
        "completion-time",
        "quality",
    ];
    for kind in kinds.into_iter().chain(["application-series"]) {
        assert!(has_known_figures(&figures, kind), "{kind}");
    }
}

#[test]
fn a_study_without_applications_says_nothing_of_them() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("results");
    let report = slicewise_report::write(&fill(&path, &study(Size::SMALL))).unwrap();
    assert_eq!(
        application_table_text(&report.findings.main().summary, 100),
        None
    );
    assert!(!path.join("data/applications.csv").exists());
    assert!(!path.join("data/application_cells.csv").exists());
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(!page.contains("id=\"applications\""));
}

#[test]
fn a_mean_of_nothing_is_empty() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    let mut run = record(&study, 0, 0, 0);
    let figures = ApplicationRecord {
        flows: Some(FlowFigures::default()),
        video: Some(VideoFigures::default()),
        ..source("film", &run.slices[1].slice, &run)
    };
    run.applications = vec![figures];
    folder.write_run(&run).unwrap();
    slicewise_report::write(&folder).unwrap();
    let table = temporary.path().join("data/applications.csv");
    for counted in ["flows_completed", "video_segments", "stalls"] {
        assert_eq!(column(&table, counted), ["0"], "{counted}");
    }
    for mean in [
        "flow_rate_mean_bits_per_second",
        "quality_mean",
        "quality_least",
        "bit_rate_mean_bits_per_second",
        "switches_per_minute",
        "start_up_mean_ns",
        "stalled_ratio",
    ] {
        assert_eq!(column(&table, mean), [""], "{mean}");
    }
}
