//! The record of a run, from its captures.

use crate::clocks::Clocks;
use crate::connections::{Connections, FlowPairs};
use crate::describe;
use crate::flows::Membership;
use crate::hops;
use crate::params::{AnalysisError, AnalysisParams, RunLength, SliceRule};
use crate::pass::{Pair, PassFacts, Prefix, Watch};
use crate::recorder::{PacketSink, ReceivedClock, Recorded, Recorder, TimeAxis};
use crate::ways;
use slicewise_capture::RunMark;
use slicewise_capture::clock::ClockEstimate;
use slicewise_capture::matching::DirectionCounts;
use slicewise_stats::collect::{CollectorParams, MeasuredSlice, RunCollector};
use slicewise_stats::flow::{FlowRecord, PointRecord};
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_units::Duration;
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Most flows with a record of their own: those with most bytes.
pub const MOST_FLOW_RECORDS: usize = 10_000;

/// Analyse the captures of one run. `sink` receives every packet of a slice, in the order in which their
/// fate becomes known.
///
/// Memory does not grow with the length of the captures: packets are matched within a window of the loss
/// time-out.
///
/// # Errors
/// If files cannot be read, contain nothing that can be matched, or cannot be read as often as needed;
/// or if `watch` or `sink` stop it. Files that end in damage are not an error: the record says so.
pub fn analyse(
    params: &AnalysisParams,
    key: RunKey,
    watch: &dyn Watch,
    mut sink: Option<&mut dyn PacketSink>,
) -> Result<RunRecord, AnalysisError> {
    if !params.via.is_empty() {
        refuse_pipes(params, "every hop is measured in a separate pass")?;
    } else if params.accept_clock_estimate {
        refuse_pipes(params, "estimating the clocks requires a separate pass")?;
    }
    // If delays may need correction, packets are reported only once that is known.
    let first_sink = match &mut sink {
        Some(sink) if !params.accept_clock_estimate => Some(&mut **sink as &mut dyn PacketSink),
        _ => None,
    };
    let had_sink = first_sink.is_some();
    let mut pass = run_pass(params, watch, SecondPass::default(), first_sink)?;
    let clocks = &pass.clocks;
    let correction = clocks
        .estimate()
        .filter(|_| params.accept_clock_estimate && clocks.disagree());
    // What was sent behind the damage of the receiving capture is unknown, not lost.
    let is_damaged = pass.facts.received.incomplete().next().is_some();
    let last_sent_ns = is_damaged.then_some(pass.recorded.last_arrival.sent_ns);
    let second = SecondPass {
        correction,
        last_sent_ns: last_sent_ns.filter(|ns| *ns > 0),
    };
    if second.last_sent_ns.is_some() {
        refuse_pipes(
            params,
            "the receiving capture is damaged: finding what it still covers requires a separate pass",
        )?;
    }
    let sink = sink.filter(|_| !had_sink);
    if sink.is_some() || second != SecondPass::default() {
        pass = run_pass(params, watch, second, sink)?;
    }
    if pass.facts.counts.matched == 0 {
        return Err(AnalysisError::Nothing(describe::no_match(&pass.facts)));
    }
    if pass.is_one_capture {
        return Err(AnalysisError::Nothing(describe::same_capture(params)));
    }
    let (hops, via) = hops::measure(params, watch)?;
    let timeout_ns = params.loss_timeout.nanos();
    let mut record = finish(pass, key, timeout_ns, via);
    record.hops = hops;
    Ok(record)
}

/// Results of the first pass over the captures that the second pass needs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct SecondPass {
    /// How the clocks differ, where delays are corrected by that.
    correction: Option<ClockEstimate>,
    /// When the last packet was sent that belongs to the run, by the clock of the sending point.
    last_sent_ns: Option<u64>,
}

/// Result of one pass over the captures of the two ends.
struct PassResult {
    recorded: Recorded,
    facts: PassFacts,
    ways: DirectionCounts,
    lost_back: u64,
    is_one_capture: bool,
    clocks: Clocks,
    connections: Connections,
}

fn run_pass<'s>(
    params: &AnalysisParams,
    watch: &dyn Watch,
    second: SecondPass,
    sink: Option<&'s mut (dyn PacketSink + 's)>,
) -> Result<PassResult, AnalysisError> {
    let pair = Pair::open(&params.sent, &params.received, params.innermost)?;
    let mark = run_mark(&pair);
    let collector = collector(params, mark)?;
    let headers: RefCell<Vec<Headers>> = RefCell::default();
    let pairs = FlowPairs::default();
    let mut connections = Connections::new(&pairs);
    let timeout_ns = params.loss_timeout.nanos();
    let begin = |prefix: &Prefix<'_>| {
        let first = prefix.sent.iter().map(|one| one.time_ns).min();
        let mut only = params.run.and_then(|run| {
            let start = run.start_ns?;
            Some((start, start.saturating_add(run.duration.nanos())))
        });
        let start_ns = match (only, mark) {
            (Some((start, _)), _) => start,
            (None, Some(mark)) => mark.start_ns,
            (None, None) => first.unwrap_or(0),
        };
        if let Some(last_ns) = second.last_sent_ns {
            let (_, end) = only.get_or_insert((0, u64::MAX));
            *end = (*end).min(last_ns.saturating_add(1));
        }
        let axis = TimeAxis {
            start_ns,
            only,
            received: match second.correction {
                Some(estimate) => ReceivedClock::Estimated(estimate),
                None => ReceivedClock::Ahead(prefix.alignment_ns),
            },
        };
        Recorder::new(&params.slices, collector, &headers, axis, timeout_ns, sink)
    };
    let sorted = ways::run(
        pair,
        timeout_ns,
        &headers,
        &pairs,
        &mut connections,
        watch,
        begin,
    )?;
    Ok(PassResult {
        recorded: sorted.forward.finish()?,
        facts: sorted.facts,
        ways: sorted.ways,
        lost_back: sorted.lost_back,
        is_one_capture: sorted.is_one_capture,
        clocks: sorted.clocks.corrected(second.correction),
        connections,
    })
}

/// Run mark in the captures of the sending point.
fn run_mark(pair: &Pair) -> Option<RunMark> {
    pair.sent.comments().find_map(RunMark::find)
}

/// A collector for a run of known length; open-ended if the length is unknown or slices are discovered
/// on the fly.
fn collector(
    params: &AnalysisParams,
    mark: Option<RunMark>,
) -> Result<RunCollector, AnalysisError> {
    let run = params.run.or_else(|| {
        let mark = mark?;
        let is_whole = mark.duration_ns.is_multiple_of(params.bin.nanos().max(1));
        is_whole.then_some(RunLength {
            start_ns: None,
            duration: Duration::from_nanos(mark.duration_ns),
            cycle: Duration::from_nanos(mark.cycle_ns),
        })
    });
    let collector = match (&params.slices, run) {
        (SliceRule::Matched(slices), Some(run)) => RunCollector::new(CollectorParams {
            slices: slices
                .iter()
                .map(|slice| MeasuredSlice::new(&slice.name, slice.objective.as_ref()))
                .collect(),
            duration: run.duration,
            bin: params.bin,
            cycle: run.cycle,
        })?
        .with_phases(params.phases.clone())?,
        (rule, run) => {
            let cycle = run.map_or(Duration::ZERO, |run| run.cycle);
            let mut collector = RunCollector::open_ended(params.bin, cycle)?;
            if let SliceRule::Matched(slices) = rule {
                for slice in slices {
                    collector.add_slice(MeasuredSlice::new(&slice.name, slice.objective.as_ref()));
                }
            }
            collector
        }
    };
    Ok(match params.medians {
        true => collector.with_medians(),
        false => collector,
    })
}

fn finish(pass: PassResult, key: RunKey, timeout_ns: u64, via: Vec<PointRecord>) -> RunRecord {
    let PassResult {
        mut recorded,
        facts,
        ways,
        lost_back,
        clocks,
        connections,
        ..
    } = pass;
    let mut record = recorded.collector.finish(key, Vec::new());
    let flows = recorded.flows.iter().enumerate();
    let mut records: Vec<FlowRecord> = flows
        .filter(|(_, flow)| flow.sent_frames > 0)
        .map(|(index, flow)| {
            let slice = match flow.slice {
                Membership::Of(slice) => recorded.names.get(slice),
                Membership::Unknown | Membership::None => None,
            };
            let lasted_ns = flow.received.map_or(0, |span| span.length_ns());
            flow.record(
                slice.cloned().unwrap_or_default(),
                describe::reordering(&recorded.reordering, index),
                connections.figures(index, lasted_ns),
            )
        })
        .collect();
    records.sort_by(|a, b| b.sent_bytes.cmp(&a.sent_bytes).then(a.flow.cmp(&b.flow)));
    records.truncate(MOST_FLOW_RECORDS);
    record.flows = records;
    let capture = describe::capture(
        &facts, via, timeout_ns, &ways, lost_back, &recorded, &clocks,
    );
    let has_no_delays = capture.clock.leaves_no_delays();
    record.capture = Some(capture);
    if has_no_delays {
        forget_delays(&mut record);
    }
    record
}

/// Delays by clocks that disagree are meaningless: none are recorded.
fn forget_delays(record: &mut RunRecord) {
    let slices = record.slices.iter_mut();
    let slices = slices.flat_map(|slice| {
        slice.delay_cdf.clear();
        slice.delay_of_sent = None;
        slice.series.delay_mean_ns.fill(None);
        slice.series.delay_max_ns.fill(None);
        slice.series.late_frames.clear();
        [&mut slice.whole, &mut slice.steady]
    });
    let phases = record.phases.iter_mut().flat_map(|phase| {
        let slices = phase.slices.iter_mut().map(|slice| {
            slice.delay_cdf.clear();
            slice.delay_of_sent = None;
            &mut slice.figures
        });
        slices.chain([&mut phase.aggregate])
    });
    for figures in slices.chain([&mut record.aggregate]).chain(phases) {
        figures.delay = Default::default();
        figures.variation = Default::default();
    }
    for flow in &mut record.flows {
        flow.delay = Default::default();
    }
}

/// Files will be read more than once.
fn refuse_pipes(params: &AnalysisParams, why: &'static str) -> Result<(), AnalysisError> {
    let files = params.sent.iter().chain(&params.received);
    let mut files = files.chain(params.via.iter().flatten());
    let is_pipe = |file: &&PathBuf| {
        file.as_path() == Path::new("-")
            || std::fs::metadata(file).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
    };
    match files.find(is_pipe) {
        Some(_) => Err(AnalysisError::ReadOnce { why }),
        None => Ok(()),
    }
}
