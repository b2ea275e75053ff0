//! The page's sections on captures: how runs were measured, flows, hops.

use crate::captured::{
    CapturedFindings, CapturedRun, FlowFinding, RUNS_SHOWN, flow_name, warnings,
};
use crate::flows::{self, DELAY_COLUMNS, Delays};
use crate::markup::{Prose, Section, list, table};
use crate::populations::grouped;
use crate::text_table::{TextTable, or_dash};
use maud::html;
use slicewise_stats::record::RunKey;
use slicewise_stats::words::{percent, time};

/// Outcome of the traffic in a sentence: the flow that lost the largest share. `None` where nothing was captured.
pub(super) fn answer(findings: &CapturedFindings) -> Option<String> {
    let ratio = |finding: &&FlowFinding| finding.loss_ratio().unwrap_or(0.0);
    let flows = findings.flows.iter().rev();
    let worst = flows.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let delays = Delays {
        figures: worst.flow.delay,
        resolution_ns: worst.resolution_ns,
    };
    let figures = format!(
        "{} of {} frames lost; delay {} in the median, {} for 99 %; {} reordered",
        flows::lost(worst),
        grouped(worst.flow.sent_frames),
        flows::median(&delays),
        flows::percentile_99(&delays),
        percent(worst.flow.reordering.ratio)
    );
    Some(match findings.flow_count {
        1 => format!("{figures}."),
        all => format!(
            "Of {} flows, {} lost most: {figures}.",
            grouped(all),
            flow_name(&worst.flow.flow)
        ),
    })
}

pub(super) fn sections(findings: &CapturedFindings) -> [Option<Section>; 3] {
    if findings.run_count == 0 {
        return [None, None, None];
    }
    [Some(captures(findings)), flows(findings), hops(findings)]
}

fn captures(findings: &CapturedFindings) -> Section {
    let runs = &findings.runs;
    let warnings: Vec<String> = runs
        .iter()
        .flat_map(|run| warnings_of(run, findings.run_count == 1))
        .collect();
    let body = html! {
        p.note { (Prose(&note(findings))) }
        @if !warnings.is_empty() {
            div.notice { strong { "Note" } (list(&warnings)) }
        }
        h3 { "Captured packets" }
        (table(&of_runs(findings, points(runs))))
        @if let Some(unread) = unread(runs) {
            h3 { "Frames without an IP packet that was found" }
            (table(&of_runs(findings, unread)))
        }
        h3 { "Matched packets" }
        (table(&of_runs(findings, matching(runs))))
    };
    Section::new("captures", "Captures", body).headed("Measured from captures")
}

/// A table of several runs; one run is not named.
fn of_runs(findings: &CapturedFindings, table: TextTable) -> TextTable {
    match findings.run_count {
        1 => table.without_first(),
        _ => table,
    }
}

fn flows(findings: &CapturedFindings) -> Option<Section> {
    let shown = findings.flows.len() as u64;
    let note = if findings.flow_count > shown {
        format!(
            "The {shown} of {} flows that sent most bytes; all are in data/flows.csv and data/flows.parquet.",
            grouped(findings.flow_count)
        )
    } else {
        "All flows, those that sent most bytes first; also in data/flows.csv and data/flows.parquet.".to_owned()
    };
    let run_name: Option<fn(&RunKey) -> String> = (findings.run_count > 1).then_some(named);
    let flows = flows::table(
        &findings.flows,
        &flows::ON_PAGE,
        run_name,
        !findings.flows.iter().all(FlowFinding::names_its_slice),
    );
    let body = html! {
        p.note { (Prose(&note)) }
        div #flows-table { (table(&flows)) }
        p.key { "Throughput counts received frames without copies, from the first frame to the last. A frame is reordered if one sent after it arrived before it (RFC 4737)." }
    };
    (shown > 0).then(|| Section::new("flows", "Flows", body))
}

fn named(run: &RunKey) -> String {
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
        let name = named(&run.run);
        texts.map(|text| format!("{name}: {text}")).collect()
    }
}

fn note(findings: &CapturedFindings) -> String {
    let runs = findings.runs.iter();
    let mut timeouts: Vec<u64> = runs.map(|run| run.capture.loss_timeout_ns).collect();
    timeouts.sort_unstable();
    timeouts.dedup();
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

fn points(runs: &[CapturedRun]) -> TextTable {
    let rows = runs.iter().flat_map(|run| {
        run.capture.points.iter().map(|point| {
            let mut row = vec![named(&run.run), point.name.clone(), point.files.join(", ")];
            let counts = [
                point.packets,
                point.not_ip,
                point.fragments,
                point.truncated,
            ];
            row.extend(counts.map(grouped));
            row
        })
    });
    let head = "Run | Point | Files | Packets | Not IP | Fragments | Cut off";
    TextTable::new(head, 3, rows.collect())
}

/// Table of the kinds of frames that were not looked into.
fn unread(runs: &[CapturedRun]) -> Option<TextTable> {
    let rows = runs.iter().flat_map(|run| {
        run.capture.points.iter().flat_map(|point| {
            point.unread.iter().map(|kind| {
                let frames = grouped(kind.frames);
                vec![
                    named(&run.run),
                    point.name.clone(),
                    kind.kind.clone(),
                    frames,
                ]
            })
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| TextTable::new("Run | Point | Kind | Frames", 3, rows))
}

fn matching(runs: &[CapturedRun]) -> TextTable {
    let rows = runs.iter().map(|CapturedRun { run, capture, .. }| {
        let smallest = or_dash(capture.clock.smallest_delay_ns, |ns| {
            let sign = if ns < 0 { "−" } else { "" };
            format!("{sign}{}", time(ns.unsigned_abs() as f64))
        });
        vec![
            named(run),
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
    let head = "Run | Matched | Duplicates | Ambiguous: sent / received | Seen only received | In reverse | Smallest delay by the clocks";
    TextTable::new(head, 1, rows.collect())
}

fn hops(findings: &CapturedFindings) -> Option<Section> {
    let rows = findings.runs.iter().flat_map(|run| {
        run.hops.iter().map(|hop| {
            let mut row = vec![named(&run.run), hop.name.clone()];
            row.extend([hop.in_frames, hop.out_frames, hop.lost_frames].map(grouped));
            let delays = Delays {
                figures: hop.delay,
                resolution_ns: run.capture.resolution_ns(),
            };
            row.extend(DELAY_COLUMNS.map(|(_, text)| text(&delays)));
            row
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let delays = DELAY_COLUMNS.map(|(head, _)| head).join(" | ");
    let head = format!("Run | Hop | In | Out | Lost | {delays}");
    let body = html! {
        p.note { "From each measuring point to the next, in the order in which frames pass them." }
        (table(&of_runs(findings, TextTable::new(&head, 2, rows))))
    };
    Some(Section::new("hops", "Hops", body))
}
