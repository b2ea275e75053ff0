//! Tables filled run by run, so that no more than one run is in memory.

use super::applications;
use super::column::{Run, Seed, at, columns};
use super::folder::DataFolder;
use super::table::Tables;
use crate::captured::{is_captured, vlans_text};
use crate::error::ReportError;
use slicewise_stats::flow::{FlowRecord, HopRecord, RoundTripFigures, TcpFigures};
use slicewise_stats::loss_episodes::{LossEpisode, loss_episodes};
use slicewise_stats::phase::{ChangeRecord, PhaseRecord, PhaseSliceRecord, policy_in_phase};
use slicewise_stats::queues::{ElephantRecord, QueueRecord};
use slicewise_stats::record::{
    CdfPoint, DelayFigures, DropCount, Figures, IatFigures, LinkLoss, RunKey, RunRecord, Series,
    SliceRecord, VariationFigures,
};

columns! {
    /// One-way delay: no times where there are no samples.
    Delay<'a>(delay: &DelayFigures) {
        delay_samples: u64 = delay.samples,
        delay_mean_ns: Option<f64> = known(delay.samples, delay.mean_ns),
        delay_min_ns: Option<u64> = known(delay.samples, delay.min_ns),
        delay_p50_ns: Option<u64> = known(delay.samples, delay.p50_ns),
        delay_p90_ns: Option<u64> = known(delay.samples, delay.p90_ns),
        delay_p95_ns: Option<u64> = known(delay.samples, delay.p95_ns),
        delay_p99_ns: Option<u64> = known(delay.samples, delay.p99_ns),
        delay_p999_ns: Option<u64> = known(delay.samples, delay.p999_ns),
        delay_p9999_ns: Option<u64> = known(delay.samples, delay.p9999_ns),
        delay_p99999_ns: Option<u64> = known(delay.samples, delay.p99999_ns),
        delay_max_ns: Option<u64> = known(delay.samples, delay.max_ns),
    }
}

columns! {
    /// PDV, which has the samples of the delay, then IPDV with its own.
    Variation<'a>(delay_samples: u64, of: &VariationFigures) {
        pdv_mean_ns: Option<f64> = known(delay_samples, of.pdv_mean_ns),
        pdv_p50_ns: Option<u64> = known(delay_samples, of.pdv_p50_ns),
        pdv_p95_ns: Option<u64> = known(delay_samples, of.pdv_p95_ns),
        pdv_p99_ns: Option<u64> = known(delay_samples, of.pdv_p99_ns),
        pdv_p999_ns: Option<u64> = known(delay_samples, of.pdv_p999_ns),
        pdv_max_ns: Option<u64> = known(delay_samples, of.pdv_max_ns),
        ipdv_samples: u64 = of.ipdv_samples,
        ipdv_mean_ns: Option<f64> = known(of.ipdv_samples, of.ipdv_mean_ns),
        ipdv_p95_ns: Option<u64> = known(of.ipdv_samples, of.ipdv_p95_ns),
        ipdv_p99_ns: Option<u64> = known(of.ipdv_samples, of.ipdv_p99_ns),
        ipdv_p999_ns: Option<u64> = known(of.ipdv_samples, of.ipdv_p999_ns),
        ipdv_max_ns: Option<u64> = known(of.ipdv_samples, of.ipdv_max_ns),
    }
}

columns! {
    /// A slice of a run, or all of them together, over a span of it.
    Runs<'a> = "runs" (
        record: &'a RunRecord, slice: Option<&'a SliceRecord>, span: &'static str, figures: &'a Figures
    ) {
        ..Run(&record.key),
        seed: Seed = Seed(record.key.seed),
        slice: Option<&str> = slice.map(|s| s.slice.as_str()),
        span: &str = span,
        fields figures: u64 { span_ns sent_frames sent_bytes received_frames received_bytes lost_frames }
        fields figures: f64 { offered_bits_per_second throughput_bits_per_second loss_ratio }
        ..Delay(&figures.delay),
        ..Variation(figures.delay.samples, &figures.variation),
        iat_samples: Option<u64> = slice.map(|s| s.iat_sent.samples),
        iat_mean_ns: Option<f64> = slice.map(|s| s.iat_sent.mean_ns),
        iat_variance_ns2: Option<f64> = slice.map(|s| s.iat_sent.variance_ns2),
        received_iat_samples: Option<u64> = received(slice).map(|iat| iat.samples),
        received_iat_mean_ns: Option<f64> = received(slice).map(|iat| iat.mean_ns),
        received_iat_variance_ns2: Option<f64> = received(slice).map(|iat| iat.variance_ns2),
        transient_end_ns: u64 = record.transient.end_ns,
        steady_state_reached: bool = record.transient.steady_state_reached,
        transient_throughput_bits_per_second: f64 = record.transient.throughput_before_bits_per_second,
        steady_throughput_bits_per_second: f64 = record.transient.throughput_after_bits_per_second,
        scheduler_delay_max_ns: Option<u64> = slice.and_then(|s| Some(s.scheduler?.delay_max_ns)),
        scheduler_after_eligible_max_ns: Option<u64> =
            slice.and_then(|s| s.scheduler?.after_eligible_max_ns),
    }
}

columns! {
    /// A slice in an interval of a run.
    Bins<'a> = "series" (record: &'a RunRecord, slice: &'a str, series: &Series, bin: usize) {
        ..Run(&record.key),
        slice: &str = slice,
        start_ns: u64 = record.bin_ns.saturating_mul(bin as u64),
        sent_bytes: u64 = at(&series.sent_bytes, bin).unwrap_or(0),
        received_bytes: u64 = at(&series.received_bytes, bin).unwrap_or(0),
        sent_frames: u32 = at(&series.sent_frames, bin).unwrap_or(0),
        lost_frames: u32 = at(&series.lost_frames, bin).unwrap_or(0),
        delay_mean_ns: Option<u64> = at(&series.delay_mean_ns, bin).flatten(),
        delay_max_ns: Option<u64> = at(&series.delay_max_ns, bin).flatten(),
    }
}

columns! {
    /// A point of the distribution function of delay.
    DelayCdf<'a> = "delay_cdf" (key: &'a RunKey, slice: &'a str, point: CdfPoint) {
        ..Run(key),
        slice: &str = slice,
        delay_ns: u64 = point.0,
        fraction: f64 = point.1,
    }
}

columns! {
    /// A point of the distribution function of inter-arrival times.
    IatCdf<'a> = "iat_cdf" (key: &'a RunKey, slice: &'a str, point: CdfPoint) {
        ..Run(key),
        slice: &str = slice,
        iat_ns: u64 = point.0,
        fraction: f64 = point.1,
    }
}

columns! {
    /// The same as received.
    ReceivedIatCdf<'a> = "received_iat_cdf" (key: &'a RunKey, slice: &'a str, point: CdfPoint) {
        ..Run(key),
        slice: &str = slice,
        iat_ns: u64 = point.0,
        fraction: f64 = point.1,
    }
}

columns! {
    /// Frames that a class dropped for a reason.
    Drops<'a> = "drops" (key: &'a RunKey, drop: &'a DropCount) {
        ..Run(key),
        class: &str = &drop.class,
        reason: &str = &drop.reason,
        frames: u64 = drop.frames,
    }
}

columns! {
    /// Frames of a slice that an impaired link lost for a reason.
    LinkLosses<'a> = "link_losses" (key: &'a RunKey, loss: &'a LinkLoss) {
        ..Run(key),
        link: &str = &loss.link,
        slice: &str = &loss.slice,
        reason: &str = &loss.reason,
        frames: u64 = loss.frames,
    }
}

columns! {
    /// The length of a queue, as looks at it found it.
    Queues<'a> = "queues" (key: &'a RunKey, queue: &'a QueueRecord) {
        ..Run(key),
        device: u32 = queue.device,
        queue: &str = &queue.queue,
        looks: u64 = queue.looks,
        mean_frames: f64 = queue.mean_frames,
        largest_frames: u32 = queue.largest_frames,
    }
}

columns! {
    /// Flows of a class that moves elephants to a queue of their own.
    Elephants<'a> = "elephants" (key: &'a RunKey, of: &'a ElephantRecord) {
        ..Run(key),
        device: u32 = of.device,
        class: &str = &of.class,
        fields of: u64 { tagged moved moved_back unfollowed_frames }
    }
}

columns! {
    /// Bins in a row in which a slice lost frames.
    Episodes<'a> = "loss_episodes" (key: &'a RunKey, slice: &'a str, episode: LossEpisode) {
        ..Run(key),
        slice: &str = slice,
        fields episode: u64 { begins_ns length_ns sent_frames lost_frames }
    }
}

columns! {
    /// A flow of a captured run.
    Flows<'a> = "flows" (key: &'a RunKey, flow: &'a FlowRecord) {
        ..Run(key),
        slice: &str = &flow.slice,
        source: &str = &flow.flow.source,
        destination: &str = &flow.flow.destination,
        fields flow.flow: Option<u16> { source_port destination_port }
        protocol: u8 = flow.flow.protocol,
        vlans: String = vlans_text(&flow.flow.vlans),
        dscp: u8 = flow.flow.dscp,
        fields flow: u64 {
            sent_frames sent_bytes received_frames received_bytes lost_frames duplicate_frames ambiguous_frames
        }
        reordered_frames: u64 = flow.reordering.reordered_frames,
        reordered_ratio: f64 = flow.reordering.ratio,
        fields flow.reordering: u64 { max_extent_frames max_n_reordering max_late_ns }
        reordering_bounded_frames: u64 = flow.reordering.bounded_frames,
        ..Delay(&flow.delay),
        first_sent_ns: Option<u64> = flow.sent.map(|span| span.first_ns),
        last_sent_ns: Option<u64> = flow.sent.map(|span| span.last_ns),
        first_received_ns: Option<u64> = flow.received.map(|span| span.first_ns),
        last_received_ns: Option<u64> = flow.received.map(|span| span.last_ns),
        ..Tcp(flow.tcp.as_ref()),
    }
}

columns! {
    /// Figures of TCP flows only.
    Tcp<'a>(tcp: Option<&TcpFigures>) {
        tcp_data_bytes: Option<u64> = tcp.map(|tcp| tcp.data_bytes),
        tcp_throughput_bits_per_second: Option<f64> = tcp.map(|tcp| tcp.throughput_bits_per_second),
        tcp_retransmitted_segments: Option<u64> = tcp.map(|tcp| tcp.retransmitted_segments),
        tcp_retransmitted_bytes: Option<u64> = tcp.map(|tcp| tcp.retransmitted_bytes),
        rtt_samples: Option<u64> = tcp.map(|tcp| tcp.round_trip.samples),
        rtt_min_ns: Option<u64> = measured(tcp).map(|trips| trips.min_ns),
        rtt_mean_ns: Option<f64> = measured(tcp).map(|trips| trips.mean_ns),
        rtt_p50_ns: Option<u64> = measured(tcp).map(|trips| trips.p50_ns),
        rtt_p99_ns: Option<u64> = measured(tcp).map(|trips| trips.p99_ns),
    }
}

columns! {
    /// A stretch between two measuring points of a captured run.
    Hops<'a> = "hops" (key: &'a RunKey, hop: &'a HopRecord) {
        ..Run(key),
        hop: &str = &hop.name,
        fields hop: u64 { in_frames out_frames lost_frames }
        ..Delay(&hop.delay),
    }
}

columns! {
    /// A slice in a phase of a run, and what the change did with which the phase began.
    Phases<'a> = "phases" (
        record: &'a RunRecord, phase: &'a PhaseRecord, slice: &'a str, figures: &PhaseSliceRecord
    ) {
        policy: String = policy_in_phase(&record.key.policy, &phase.phase),
        scenario: &str = &record.key.scenario,
        repetition: u32 = record.key.repetition,
        phase: &str = &phase.phase,
        fields phase: u64 { measured_from_ns ends_ns }
        slice: &str = slice,
        reordered_frames: u64 = figures.reordered_frames,
        waiting_frames: Option<u64> = change(phase).map(|change| change.waiting_frames),
        lost_by_change_frames: Option<u64> = change(phase).map(|change| change.lost_frames),
        refused: Option<&str> = change(phase).and_then(|change| change.refused.as_deref()),
    }
}

fn received(slice: Option<&SliceRecord>) -> Option<&IatFigures> {
    slice?.iat_received.as_ref()
}

const fn change(phase: &PhaseRecord) -> Option<&ChangeRecord> {
    phase.change.as_ref()
}

/// The tables that hold every run.
pub(crate) struct RunTables(Tables);

impl RunTables {
    pub(crate) fn create(folder: &DataFolder) -> Result<Self, ReportError> {
        let of_every_report = [
            Runs::SCHEMA,
            Bins::SCHEMA,
            DelayCdf::SCHEMA,
            IatCdf::SCHEMA,
            ReceivedIatCdf::SCHEMA,
            Drops::SCHEMA,
            LinkLosses::SCHEMA,
            Episodes::SCHEMA,
        ];
        Tables::create(folder, of_every_report).map(Self)
    }

    pub(crate) fn on_run(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        let (key, tables) = (&record.key, &mut self.0);
        for slice in &record.slices {
            let (name, series) = (slice.slice.as_str(), &slice.series);
            let bins = 0..series.sent_bytes.len();
            tables.rows(
                Bins::SCHEMA,
                bins.map(|bin| Bins::row(record, name, series, bin)),
            )?;
            let points = slice.iat_sent.cdf.iter();
            tables.rows(
                IatCdf::SCHEMA,
                points.map(|point| IatCdf::row(key, name, *point)),
            )?;
            let received = slice.iat_received.iter().flat_map(|iat| &iat.cdf);
            tables.rows(
                ReceivedIatCdf::SCHEMA,
                received.map(|point| ReceivedIatCdf::row(key, name, *point)),
            )?;
            let episodes = loss_episodes(series, record.bin_ns).into_iter();
            tables.rows(
                Episodes::SCHEMA,
                episodes.map(|episode| Episodes::row(key, name, episode)),
            )?;
        }
        for view in record.by_phase().iter() {
            on_phase(tables, view)?;
        }
        for phase in &record.phases {
            let slices = record.slices.iter().zip(&phase.slices);
            let rows =
                slices.map(|(slice, figures)| Phases::row(record, phase, &slice.slice, figures));
            tables.rows(Phases::SCHEMA, rows)?;
        }
        applications::on_run(tables, record)?;
        let losses = record.link_losses.iter();
        tables.rows(
            LinkLosses::SCHEMA,
            losses.map(|loss| LinkLosses::row(key, loss)),
        )?;
        let elephants = record.elephants.iter();
        tables.rows(
            Elephants::SCHEMA,
            elephants.map(|class| Elephants::row(key, class)),
        )?;
        if is_captured(record) {
            tables.begin([Flows::SCHEMA, Hops::SCHEMA])?;
        }
        let flows = record.flows.iter();
        tables.rows(Flows::SCHEMA, flows.map(|flow| Flows::row(key, flow)))?;
        let hops = record.hops.iter();
        tables.rows(Hops::SCHEMA, hops.map(|hop| Hops::row(key, hop)))
    }

    pub(crate) fn finish(self) -> Result<(), ReportError> {
        self.0.finish()
    }
}

/// Writes the figures of each phase, or of a run without phases.
fn on_phase(tables: &mut Tables, record: &RunRecord) -> Result<(), ReportError> {
    let key = &record.key;
    for slice in &record.slices {
        let spans = [("whole", &slice.whole), ("steady", &slice.steady)];
        let row = |(span, figures)| Runs::row(record, Some(slice), span, figures);
        tables.rows(Runs::SCHEMA, spans.map(row))?;
        let points = slice.delay_cdf.iter();
        let row = |point: &CdfPoint| DelayCdf::row(key, &slice.slice, *point);
        tables.rows(DelayCdf::SCHEMA, points.map(row))?;
    }
    let aggregate = Runs::row(record, None, "steady", &record.aggregate);
    tables.rows(Runs::SCHEMA, [aggregate])?;
    let drops = record.drops.iter();
    tables.rows(Drops::SCHEMA, drops.map(|drop| Drops::row(key, drop)))?;
    let queues = record.queues.iter();
    tables.rows(Queues::SCHEMA, queues.map(|queue| Queues::row(key, queue)))
}

/// A figure of `samples` samples; `None` where there are none.
fn known<T>(samples: u64, figure: T) -> Option<T> {
    (samples > 0).then_some(figure)
}

fn measured(tcp: Option<&TcpFigures>) -> Option<RoundTripFigures> {
    tcp.map(|tcp| tcp.round_trip)
        .filter(|trips| trips.samples > 0)
}
