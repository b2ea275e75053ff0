//! Flows and hops of runs that were measured from captures.

use super::folder::DataFolder;
use super::runs::delay_values;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::captured::vlans_text;
use crate::error::ReportError;
use slicewise_stats::flow::{FlowRecord, HopRecord};
use slicewise_stats::record::{RunKey, RunRecord};

pub(crate) const FLOWS: Schema = Schema {
    name: "flows",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("slice", Kind::Text),
        Column::new("source", Kind::Text),
        Column::new("destination", Kind::Text),
        Column::optional("source_port", Kind::Integer),
        Column::optional("destination_port", Kind::Integer),
        Column::new("protocol", Kind::Integer),
        Column::new("vlans", Kind::Text),
        Column::new("dscp", Kind::Integer),
        Column::new("sent_frames", Kind::Integer),
        Column::new("sent_bytes", Kind::Integer),
        Column::new("received_frames", Kind::Integer),
        Column::new("received_bytes", Kind::Integer),
        Column::new("lost_frames", Kind::Integer),
        Column::new("duplicate_frames", Kind::Integer),
        Column::new("ambiguous_frames", Kind::Integer),
        Column::new("reordered_frames", Kind::Integer),
        Column::new("reordered_ratio", Kind::Real),
        Column::new("max_extent_frames", Kind::Integer),
        Column::new("max_n_reordering", Kind::Integer),
        Column::new("max_late_ns", Kind::Integer),
        Column::new("delay_samples", Kind::Integer),
        Column::optional("delay_mean_ns", Kind::Real),
        Column::optional("delay_min_ns", Kind::Integer),
        Column::optional("delay_p50_ns", Kind::Integer),
        Column::optional("delay_p90_ns", Kind::Integer),
        Column::optional("delay_p95_ns", Kind::Integer),
        Column::optional("delay_p99_ns", Kind::Integer),
        Column::optional("delay_p999_ns", Kind::Integer),
        Column::optional("delay_p9999_ns", Kind::Integer),
        Column::optional("delay_p99999_ns", Kind::Integer),
        Column::optional("delay_max_ns", Kind::Integer),
        Column::optional("first_sent_ns", Kind::Integer),
        Column::optional("last_sent_ns", Kind::Integer),
        Column::optional("first_received_ns", Kind::Integer),
        Column::optional("last_received_ns", Kind::Integer),
        Column::optional("tcp_data_bytes", Kind::Integer),
        Column::optional("tcp_throughput_bits_per_second", Kind::Real),
        Column::optional("tcp_retransmitted_segments", Kind::Integer),
        Column::optional("tcp_retransmitted_bytes", Kind::Integer),
        Column::optional("rtt_samples", Kind::Integer),
        Column::optional("rtt_min_ns", Kind::Integer),
        Column::optional("rtt_mean_ns", Kind::Real),
        Column::optional("rtt_p50_ns", Kind::Integer),
        Column::optional("rtt_p99_ns", Kind::Integer),
    ],
};

pub(crate) const HOPS: Schema = Schema {
    name: "hops",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("repetition", Kind::Integer),
        Column::new("hop", Kind::Text),
        Column::new("in_frames", Kind::Integer),
        Column::new("out_frames", Kind::Integer),
        Column::new("lost_frames", Kind::Integer),
        Column::new("delay_samples", Kind::Integer),
        Column::optional("delay_mean_ns", Kind::Real),
        Column::optional("delay_min_ns", Kind::Integer),
        Column::optional("delay_p50_ns", Kind::Integer),
        Column::optional("delay_p90_ns", Kind::Integer),
        Column::optional("delay_p95_ns", Kind::Integer),
        Column::optional("delay_p99_ns", Kind::Integer),
        Column::optional("delay_p999_ns", Kind::Integer),
        Column::optional("delay_p9999_ns", Kind::Integer),
        Column::optional("delay_p99999_ns", Kind::Integer),
        Column::optional("delay_max_ns", Kind::Integer),
    ],
};

/// Both tables.
pub(crate) struct CapturedTables {
    flows: TableWriter,
    hops: TableWriter,
}

impl CapturedTables {
    pub(crate) fn create(folder: &DataFolder) -> Result<Self, ReportError> {
        Ok(Self {
            flows: TableWriter::create(folder, FLOWS)?,
            hops: TableWriter::create(folder, HOPS)?,
        })
    }

    pub(crate) fn on_run(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        for flow in &record.flows {
            let vlans = vlans_text(&flow.flow.vlans);
            self.flows.row(&flow_row(&record.key, flow, &vlans))?;
        }
        for hop in &record.hops {
            self.hops.row(&hop_row(&record.key, hop))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), ReportError> {
        self.flows.finish()?;
        self.hops.finish()
    }
}

fn run<'a>(key: &'a RunKey) -> [Value<'a>; 3] {
    [
        key.policy.as_str().into(),
        key.scenario.as_str().into(),
        key.repetition.into(),
    ]
}

fn flow_row<'a>(key: &'a RunKey, flow: &'a FlowRecord, vlans: &'a str) -> Vec<Value<'a>> {
    let headers = &flow.flow;
    let reordering = &flow.reordering;
    let mut row = run(key).to_vec();
    row.extend::<[Value<'a>; 20]>([
        flow.slice.as_str().into(),
        headers.source.as_str().into(),
        headers.destination.as_str().into(),
        headers.source_port.map(u32::from).into(),
        headers.destination_port.map(u32::from).into(),
        u32::from(headers.protocol).into(),
        vlans.into(),
        u32::from(headers.dscp).into(),
        flow.sent_frames.into(),
        flow.sent_bytes.into(),
        flow.received_frames.into(),
        flow.received_bytes.into(),
        flow.lost_frames.into(),
        flow.duplicate_frames.into(),
        flow.ambiguous_frames.into(),
        reordering.reordered_frames.into(),
        reordering.ratio.into(),
        reordering.max_extent_frames.into(),
        reordering.max_n_reordering.into(),
        reordering.max_late_ns.into(),
    ]);
    row.extend(delay_values(&flow.delay));
    for span in [flow.sent, flow.received] {
        row.push(span.map(|span| span.first_ns).into());
        row.push(span.map(|span| span.last_ns).into());
    }
    let tcp = flow.tcp.as_ref();
    let trips = tcp.map(|tcp| tcp.round_trip);
    let measured = trips.filter(|trips| trips.samples > 0);
    row.extend::<[Value<'a>; 9]>([
        tcp.map(|tcp| tcp.data_bytes).into(),
        tcp.map(|tcp| tcp.throughput_bits_per_second).into(),
        tcp.map(|tcp| tcp.retransmitted_segments).into(),
        tcp.map(|tcp| tcp.retransmitted_bytes).into(),
        trips.map(|trips| trips.samples).into(),
        measured.map(|trips| trips.min_ns).into(),
        measured.map(|trips| trips.mean_ns).into(),
        measured.map(|trips| trips.p50_ns).into(),
        measured.map(|trips| trips.p99_ns).into(),
    ]);
    row
}

fn hop_row<'a>(key: &'a RunKey, hop: &'a HopRecord) -> Vec<Value<'a>> {
    let mut row = run(key).to_vec();
    row.extend::<[Value<'a>; 4]>([
        hop.name.as_str().into(),
        hop.in_frames.into(),
        hop.out_frames.into(),
        hop.lost_frames.into(),
    ]);
    row.extend(delay_values(&hop.delay));
    row
}
