//! Tables filled run by run, so that no more than one run is in memory.

use super::applications::ApplicationTables;
use super::column::{Seed, columns};
use super::folder::DataFolder;
use super::phases::{self, Phases};
use super::table::{TableOfSome, TableWriter};
use crate::captured::{is_captured, vlans_text};
use crate::error::ReportError;
use slicewise_stats::flow::{FlowRecord, HopRecord, RoundTripFigures, TcpFigures};
use slicewise_stats::loss_episodes::{LossEpisode, loss_episodes};
use slicewise_stats::queues::{ElephantRecord, QueueRecord};
use slicewise_stats::record::{
    CdfPoint, DelayFigures, DropCount, Figures, LinkLoss, RunKey, RunRecord, Series, SliceRecord,
    VariationFigures,
};

columns! {
    /// Which run.
    Run<'a>(key: &'a RunKey) {
        policy: &str = &key.policy,
        scenario: &str = &key.scenario,
        repetition: u32 = key.repetition,
    }
}

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
        span_ns: u64 = figures.span_ns,
        sent_frames: u64 = figures.sent_frames,
        sent_bytes: u64 = figures.sent_bytes,
        received_frames: u64 = figures.received_frames,
        received_bytes: u64 = figures.received_bytes,
        lost_frames: u64 = figures.lost_frames,
        offered_bits_per_second: f64 = figures.offered_bits_per_second,
        throughput_bits_per_second: f64 = figures.throughput_bits_per_second,
        loss_ratio: f64 = figures.loss_ratio,
        ..Delay(&figures.delay),
        ..Variation(figures.delay.samples, &figures.variation),
        iat_samples: Option<u64> = slice.map(|s| s.iat_sent.samples),
        iat_mean_ns: Option<f64> = slice.map(|s| s.iat_sent.mean_ns),
        iat_variance_ns2: Option<f64> = slice.map(|s| s.iat_sent.variance_ns2),
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
    Bins<'a> = "series" (record: &'a RunRecord, slice: &'a SliceRecord, bin: &Bin) {
        ..Run(&record.key),
        slice: &str = &slice.slice,
        start_ns: u64 = bin.start_ns,
        sent_bytes: u64 = bin.sent_bytes,
        received_bytes: u64 = bin.received_bytes,
        sent_frames: u32 = bin.sent_frames,
        lost_frames: u32 = bin.lost_frames,
        delay_mean_ns: Option<u64> = bin.delay_mean_ns,
        delay_max_ns: Option<u64> = bin.delay_max_ns,
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
        tagged: u64 = of.tagged,
        moved: u64 = of.moved,
        moved_back: u64 = of.moved_back,
        unfollowed_frames: u64 = of.unfollowed_frames,
    }
}

columns! {
    /// Bins in a row in which a slice lost frames.
    Episodes<'a> = "loss_episodes" (key: &'a RunKey, slice: &'a str, episode: LossEpisode) {
        ..Run(key),
        slice: &str = slice,
        begins_ns: u64 = episode.begins_ns,
        length_ns: u64 = episode.length_ns,
        sent_frames: u64 = episode.sent_frames,
        lost_frames: u64 = episode.lost_frames,
    }
}

columns! {
    /// A flow of a captured run.
    Flows<'a> = "flows" (key: &'a RunKey, flow: &'a FlowRecord) {
        ..Run(key),
        slice: &str = &flow.slice,
        source: &str = &flow.flow.source,
        destination: &str = &flow.flow.destination,
        source_port: Option<u16> = flow.flow.source_port,
        destination_port: Option<u16> = flow.flow.destination_port,
        protocol: u8 = flow.flow.protocol,
        vlans: String = vlans_text(&flow.flow.vlans),
        dscp: u8 = flow.flow.dscp,
        sent_frames: u64 = flow.sent_frames,
        sent_bytes: u64 = flow.sent_bytes,
        received_frames: u64 = flow.received_frames,
        received_bytes: u64 = flow.received_bytes,
        lost_frames: u64 = flow.lost_frames,
        duplicate_frames: u64 = flow.duplicate_frames,
        ambiguous_frames: u64 = flow.ambiguous_frames,
        reordered_frames: u64 = flow.reordering.reordered_frames,
        reordered_ratio: f64 = flow.reordering.ratio,
        max_extent_frames: u64 = flow.reordering.max_extent_frames,
        max_n_reordering: u64 = flow.reordering.max_n_reordering,
        max_late_ns: u64 = flow.reordering.max_late_ns,
        ..Delay(&flow.delay),
        first_sent_ns: Option<u64> = flow.sent.map(|span| span.first_ns),
        last_sent_ns: Option<u64> = flow.sent.map(|span| span.last_ns),
        first_received_ns: Option<u64> = flow.received.map(|span| span.first_ns),
        last_received_ns: Option<u64> = flow.received.map(|span| span.last_ns),
        ..Tcp(flow.tcp.as_ref()),
    }
}

columns! {
    /// What is known of a TCP flow alone.
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
        in_frames: u64 = hop.in_frames,
        out_frames: u64 = hop.out_frames,
        lost_frames: u64 = hop.lost_frames,
        ..Delay(&hop.delay),
    }
}

/// The tables that hold every run.
pub(crate) struct RunTables {
    folder: DataFolder,
    runs: TableWriter,
    series: TableWriter,
    delay_cdf: TableWriter,
    iat_cdf: TableWriter,
    drops: TableWriter,
    link_losses: TableWriter,
    loss_episodes: TableWriter,
    queues: TableOfSome,
    elephants: TableOfSome,
    phases: TableOfSome,
    applications: ApplicationTables,
    /// Flows and hops: begun with the first run that was captured.
    captured: Option<[TableWriter; 2]>,
}

impl RunTables {
    pub(crate) fn create(folder: &DataFolder) -> Result<Self, ReportError> {
        Ok(Self {
            runs: TableWriter::create(folder, Runs::SCHEMA)?,
            series: TableWriter::create(folder, Bins::SCHEMA)?,
            delay_cdf: TableWriter::create(folder, DelayCdf::SCHEMA)?,
            iat_cdf: TableWriter::create(folder, IatCdf::SCHEMA)?,
            drops: TableWriter::create(folder, Drops::SCHEMA)?,
            link_losses: TableWriter::create(folder, LinkLosses::SCHEMA)?,
            loss_episodes: TableWriter::create(folder, Episodes::SCHEMA)?,
            queues: TableOfSome::new(folder, Queues::SCHEMA),
            elephants: TableOfSome::new(folder, Elephants::SCHEMA),
            phases: TableOfSome::new(folder, Phases::SCHEMA),
            applications: ApplicationTables::create(folder),
            captured: None,
            folder: folder.clone(),
        })
    }

    pub(crate) fn on_run(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        let key = &record.key;
        for slice in &record.slices {
            for bin in bins(record.bin_ns, &slice.series) {
                self.series.row(&Bins::row(record, slice, &bin))?;
            }
            for point in &slice.iat_sent.cdf {
                self.iat_cdf.row(&IatCdf::row(key, &slice.slice, *point))?;
            }
            for episode in loss_episodes(&slice.series, record.bin_ns) {
                let row = Episodes::row(key, &slice.slice, episode);
                self.loss_episodes.row(&row)?;
            }
        }
        record
            .by_phase()
            .iter()
            .try_for_each(|view| self.on_phase(view))?;
        phases::on_run(&mut self.phases, record)?;
        self.applications.on_run(record)?;
        for loss in &record.link_losses {
            self.link_losses.row(&LinkLosses::row(key, loss))?;
        }
        for class in &record.elephants {
            self.elephants.row(&Elephants::row(key, class))?;
        }
        self.on_captured_run(record)
    }

    /// What is measured of each phase, or of a run without phases.
    fn on_phase(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        let key = &record.key;
        for slice in &record.slices {
            for (span, figures) in [("whole", &slice.whole), ("steady", &slice.steady)] {
                let row = Runs::row(record, Some(slice), span, figures);
                self.runs.row(&row)?;
            }
            for point in &slice.delay_cdf {
                let row = DelayCdf::row(key, &slice.slice, *point);
                self.delay_cdf.row(&row)?;
            }
        }
        let row = Runs::row(record, None, "steady", &record.aggregate);
        self.runs.row(&row)?;
        for drop in &record.drops {
            self.drops.row(&Drops::row(key, drop))?;
        }
        for queue in &record.queues {
            self.queues.row(&Queues::row(key, queue))?;
        }
        Ok(())
    }

    fn on_captured_run(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        if !is_captured(record) {
            return Ok(());
        }
        let [flows, hops] = match &mut self.captured {
            Some(tables) => tables,
            none => none.insert([
                TableWriter::create(&self.folder, Flows::SCHEMA)?,
                TableWriter::create(&self.folder, Hops::SCHEMA)?,
            ]),
        };
        for flow in &record.flows {
            flows.row(&Flows::row(&record.key, flow))?;
        }
        for hop in &record.hops {
            hops.row(&Hops::row(&record.key, hop))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), ReportError> {
        let tables = [
            self.runs,
            self.series,
            self.delay_cdf,
            self.iat_cdf,
            self.drops,
            self.link_losses,
            self.loss_episodes,
        ];
        for some in [self.queues, self.elephants, self.phases] {
            some.finish()?;
        }
        self.applications.finish()?;
        let captured = self.captured.into_iter().flatten();
        tables
            .into_iter()
            .chain(captured)
            .try_for_each(TableWriter::finish)
    }
}

/// One interval of a time series.
pub(crate) struct Bin {
    start_ns: u64,
    sent_bytes: u64,
    received_bytes: u64,
    sent_frames: u32,
    lost_frames: u32,
    delay_mean_ns: Option<u64>,
    delay_max_ns: Option<u64>,
}

fn bins(bin_ns: u64, series: &Series) -> impl Iterator<Item = Bin> {
    let counts = series.sent_bytes.iter().zip(&series.received_bytes);
    let frames = series.sent_frames.iter().zip(&series.lost_frames);
    let delays = series.delay_mean_ns.iter().zip(&series.delay_max_ns);
    let bins = (0..).zip(counts).zip(frames).zip(delays);
    bins.map(move |(((bin, bytes), frames), delays)| Bin {
        start_ns: bin_ns.saturating_mul(bin),
        sent_bytes: *bytes.0,
        received_bytes: *bytes.1,
        sent_frames: *frames.0,
        lost_frames: *frames.1,
        delay_mean_ns: *delays.0,
        delay_max_ns: *delays.1,
    })
}

/// A figure of `samples` samples; `None` where there are none.
fn known<T>(samples: u64, figure: T) -> Option<T> {
    (samples > 0).then_some(figure)
}

fn measured(tcp: Option<&TcpFigures>) -> Option<RoundTripFigures> {
    tcp.map(|tcp| tcp.round_trip)
        .filter(|trips| trips.samples > 0)
}
