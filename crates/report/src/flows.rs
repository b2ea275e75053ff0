//! The table of flows: on the page with all of its columns, in a terminal with some.

use crate::captured::{FlowFinding, flow_name};
use crate::populations::grouped;
use crate::text_table::{TextTable, or_dash, time_or_dash};
use slicewise_stats::flow::TcpFigures;
use slicewise_stats::record::{DelayFigures, RunKey};
use slicewise_stats::words::{percent, rate, time};

/// A column of numbers: its head, and a number in words.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// Columns of a table of flows; those of TCP are left out where no flow is TCP.
pub(crate) struct Columns {
    packets: &'static [Column<FlowFinding>],
    delay: &'static [Column<Delays>],
    tcp: &'static [Column<TcpFigures>],
}

/// Delays, and how finely they were measured.
pub(crate) struct Delays {
    pub(crate) figures: DelayFigures,
    /// Resolution of timestamps, ns; 0 if unknown.
    pub(crate) resolution_ns: u64,
}

/// Columns on the page.
pub(crate) const ON_PAGE: Columns = Columns {
    packets: &[
        ("Sent", sent),
        ("Lost", lost),
        ("Reordered", |finding| {
            percent(finding.flow.reordering.ratio)
        }),
        ("Throughput", throughput),
    ],
    delay: &DELAY_COLUMNS,
    tcp: &[
        ("TCP throughput", |tcp| rate(tcp.throughput_bits_per_second)),
        ("Retransmitted", retransmitted),
        ("Round trip: median", |tcp| {
            let trips = tcp.round_trip;
            time_or_dash((trips.samples > 0).then_some(trips.p50_ns))
        }),
    ],
};

/// Columns that fit in a terminal.
pub(crate) const IN_TERMINAL: Columns = Columns {
    packets: &[("Sent", sent), ("Lost", lost), ("Throughput", throughput)],
    delay: &[("Delay: median", median), ("99 %", percentile_99)],
    tcp: &[("Retransmitted", retransmitted)],
};

/// Delay, of a flow or a hop.
pub(crate) const DELAY_COLUMNS: [Column<Delays>; 4] = [
    ("Delay: smallest", |delay| {
        known(delay, delay.figures.min_ns)
    }),
    ("median", median),
    ("99 %", percentile_99),
    ("largest", |delay| known(delay, delay.figures.max_ns)),
];

/// A row a flow: its name and slice, before them its run where `run_name` is given, then the columns.
pub(crate) fn table(
    flows: &[FlowFinding],
    columns: &Columns,
    run_name: Option<fn(&RunKey) -> String>,
    with_slice: bool,
) -> TextTable {
    let is_tcp = flows.iter().any(|finding| finding.flow.tcp.is_some());
    let tcp = if is_tcp { columns.tcp } else { &[] };
    let mut head = Vec::new();
    head.extend(run_name.map(|_| "Run"));
    head.push("Flow");
    head.extend(with_slice.then_some("Slice"));
    let names = head.len();
    head.extend(columns.packets.iter().map(|(head, _)| head));
    head.extend(columns.delay.iter().map(|(head, _)| head));
    head.extend(tcp.iter().map(|(head, _)| head));
    let rows = flows.iter().map(|finding| {
        let flow = &finding.flow;
        let mut row = Vec::new();
        row.extend(run_name.map(|name| name(&finding.run)));
        row.push(flow_name(&flow.flow));
        row.extend(with_slice.then(|| flow.slice.clone()));
        row.extend(columns.packets.iter().map(|(_, text)| text(finding)));
        let delays = Delays {
            figures: flow.delay,
            resolution_ns: finding.resolution_ns,
        };
        row.extend(columns.delay.iter().map(|(_, text)| text(&delays)));
        row.extend(tcp.iter().map(|(_, text)| or_dash(flow.tcp.as_ref(), text)));
        row
    });
    TextTable::new(&head.join(" | "), names, rows.collect())
}

fn sent(finding: &FlowFinding) -> String {
    grouped(finding.flow.sent_frames)
}

pub(crate) fn lost(finding: &FlowFinding) -> String {
    or_dash(finding.loss_ratio(), percent)
}

fn throughput(finding: &FlowFinding) -> String {
    or_dash(finding.throughput_bits_per_second(), rate)
}

fn retransmitted(tcp: &TcpFigures) -> String {
    grouped(tcp.retransmitted_segments)
}

pub(crate) fn median(delay: &Delays) -> String {
    known(delay, delay.figures.p50_ns)
}

pub(crate) fn percentile_99(delay: &Delays) -> String {
    known(delay, delay.figures.p99_ns)
}

fn known(delay: &Delays, ns: u64) -> String {
    if delay.figures.samples > 0 && ns < delay.resolution_ns {
        return format!("< {}", time(delay.resolution_ns as f64));
    }
    time_or_dash((delay.figures.samples > 0).then_some(ns))
}
