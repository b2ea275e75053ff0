//! The page's sections on captures: how runs were measured, flows, hops.

use super::document::{CapturedView, TableView};
use crate::captured::{
    CapturedFindings, CapturedRun, FlowFinding, RUNS_SHOWN, flow_name, warnings,
};
use crate::populations::grouped;
use slicewise_stats::record::{DelayFigures, RunKey};
use slicewise_stats::words::{percent, rate, time};

pub(crate) fn view(findings: &CapturedFindings) -> Option<CapturedView> {
    if findings.run_count == 0 {
        return None;
    }
    let runs = &findings.runs;
    let one_run = findings.run_count == 1;
    Some(CapturedView {
        note: note(findings),
        warnings: runs
            .iter()
            .flat_map(|run| warnings_of(run, one_run))
            .collect(),
        points: points(runs),
        matching: matching(runs),
        flows_note: flows_note(findings),
        flows: flows(&findings.flows, one_run),
        hops: hops(runs),
    })
}

fn run_name(run: &RunKey) -> String {
    format!(
        "{}, {}, repetition {}",
        run.policy, run.scenario, run.repetition
    )
}

fn warnings_of(run: &CapturedRun, one_run: bool) -> Vec<String> {
    let texts = warnings(&run.capture).into_iter();
    if one_run {
        texts.collect()
    } else {
        let name = run_name(&run.run);
        texts.map(|text| format!("{name}: {text}")).collect()
    }
}

fn note(findings: &CapturedFindings) -> String {
    let mut timeouts: Vec<u64> = findings
        .runs
        .iter()
        .map(|run| run.capture.loss_timeout_ns)
        .collect();
    timeouts.sort_unstable();
    timeouts.dedup();
    #[expect(clippy::cast_precision_loss, reason = "times that are printed")]
    let timeouts: Vec<String> = timeouts.into_iter().map(|ns| time(ns as f64)).collect();
    let mut note = format!(
        "Frames were matched between what was captured where they were sent and where they were received. A frame that does not arrive within {} is lost (RFC 7680).",
        timeouts.join(" or ")
    );
    if findings.run_count > findings.runs.len() as u64 {
        note.push_str(&format!(
            " Of {} runs the first {RUNS_SHOWN} are shown; the others are in the results folder, in runs/.",
            grouped(findings.run_count)
        ));
    }
    note
}

fn points(runs: &[CapturedRun]) -> TableView {
    let rows = runs.iter().flat_map(|run| {
        run.capture.points.iter().map(|point| {
            vec![
                run_name(&run.run),
                point.name.clone(),
                point.files.join(", "),
                grouped(point.packets),
                grouped(point.not_ip),
                grouped(point.fragments),
                grouped(point.truncated),
            ]
        })
    });
    let head = [
        "Run",
        "Point",
        "Files",
        "Packets",
        "Not IP",
        "Fragments",
        "Cut off",
    ];
    TableView::new(&head, 3, rows.collect())
}

#[expect(clippy::cast_precision_loss, reason = "times that are printed")]
fn matching(runs: &[CapturedRun]) -> TableView {
    let rows = runs.iter().map(|CapturedRun { run, capture, .. }| {
        let smallest = capture.clock.smallest_delay_ns.map_or_else(none, |ns| {
            let text = time(ns.unsigned_abs() as f64);
            if ns < 0 { format!("−{text}") } else { text }
        });
        vec![
            run_name(run),
            grouped(capture.matched_frames),
            grouped(capture.duplicate_frames),
            format!(
                "{} / {}",
                grouped(capture.ambiguous_sent_frames),
                grouped(capture.ambiguous_received_frames)
            ),
            grouped(capture.unsent_frames),
            grouped(capture.reverse_frames),
            smallest,
        ]
    });
    let head = [
        "Run",
        "Matched",
        "Duplicates",
        "Ambiguous: sent / received",
        "Seen only received",
        "In reverse",
        "Smallest delay by the clocks",
    ];
    TableView::new(&head, 1, rows.collect())
}

fn flows_note(findings: &CapturedFindings) -> String {
    let shown = findings.flows.len() as u64;
    if findings.flow_count > shown {
        format!(
            "The {shown} of {} flows that sent most bytes; all are in data/flows.csv and data/flows.parquet.",
            grouped(findings.flow_count)
        )
    } else {
        "All flows, those that sent most bytes first; also in data/flows.csv and data/flows.parquet.".to_owned()
    }
}

fn flows(flows: &[FlowFinding], one_run: bool) -> Option<TableView> {
    if flows.is_empty() {
        return None;
    }
    let with_tcp = flows.iter().any(|finding| finding.flow.tcp.is_some());
    let mut head = vec!["Flow", "Slice"];
    if !one_run {
        head.insert(0, "Run");
    }
    let names = head.len();
    head.extend(["Sent", "Lost", "Reordered", "Throughput"]);
    head.extend(DELAY_HEAD);
    if with_tcp {
        head.extend(["TCP throughput", "Retransmitted", "Round trip: median"]);
    }
    let rows = flows.iter().map(|finding| {
        let flow = &finding.flow;
        let mut row = vec![flow_name(&flow.flow), flow.slice.clone()];
        if !one_run {
            row.insert(0, run_name(&finding.run));
        }
        row.extend([
            grouped(flow.sent_frames),
            finding.loss_ratio().map_or_else(none, percent),
            percent(flow.reordering.ratio),
            finding.throughput_bits_per_second().map_or_else(none, rate),
        ]);
        row.extend(delay(&flow.delay));
        if with_tcp {
            row.extend(tcp(finding));
        }
        row
    });
    Some(TableView::new(&head, names, rows.collect()))
}

#[expect(clippy::cast_precision_loss, reason = "times that are printed")]
fn tcp(finding: &FlowFinding) -> [String; 3] {
    let Some(tcp) = &finding.flow.tcp else {
        return [none(), none(), none()];
    };
    let trips = tcp.round_trip;
    let median = if trips.samples == 0 {
        none()
    } else {
        time(trips.p50_ns as f64)
    };
    [
        rate(tcp.throughput_bits_per_second),
        grouped(tcp.retransmitted_segments),
        median,
    ]
}

fn hops(runs: &[CapturedRun]) -> Option<TableView> {
    let rows = runs.iter().flat_map(|run| {
        run.hops.iter().map(|hop| {
            let mut row = vec![
                run_name(&run.run),
                hop.name.clone(),
                grouped(hop.in_frames),
                grouped(hop.out_frames),
                grouped(hop.lost_frames),
            ];
            row.extend(delay(&hop.delay));
            row
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut head = vec!["Run", "Hop", "In", "Out", "Lost"];
    head.extend(DELAY_HEAD);
    (!rows.is_empty()).then(|| TableView::new(&head, 2, rows))
}

#[expect(clippy::cast_precision_loss, reason = "times that are printed")]
fn delay(delay: &DelayFigures) -> [String; 4] {
    if delay.samples == 0 {
        return [none(), none(), none(), none()];
    }
    [delay.min_ns, delay.p50_ns, delay.p99_ns, delay.max_ns].map(|ns| time(ns as f64))
}

fn none() -> String {
    "–".to_owned()
}

const DELAY_HEAD: [&str; 4] = ["Delay: smallest", "median", "99 %", "largest"];
