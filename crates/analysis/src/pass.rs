//! One pass over the captures of two points: each is read by its own thread, and matched here.

use crate::connections::FlowObserver;
use crate::ends::{Ends, PointTimes};
use crate::feed::Feed;
use crate::offload::{Segments, Side};
use crate::params::AnalysisError;
use slicewise_capture::matching::{MatchCounts, MatchObserver, MatchParams, Matcher, drive};
use slicewise_capture::{CaptureError, Point, PointFacts, Progress, Sighting};
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Largest difference treated as delay rather than as a clock offset: half the default loss time-out,
/// longer than any queue.
const LARGEST_DELAY_NS: u64 = 2_500_000_000;

/// Progress and interruption of an analysis.
pub trait Watch {
    /// Bytes read so far, and total bytes; the total is 0 if unknown.
    fn on_progress(&self, read_bytes: u64, total_bytes: u64);

    /// Returns true to stop the analysis.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The first packets of both points.
pub(crate) struct Prefix<'a> {
    pub(crate) sent: &'a [Sighting],
    pub(crate) received: &'a [Sighting],
    /// How far the receiving clock seems ahead, if by more than any delay, ns; else 0.
    pub(crate) alignment_ns: i64,
}

/// Result of matching two points.
pub(crate) struct Pair {
    pub(crate) sent: Point,
    pub(crate) received: Point,
}

/// Result of a pass besides its observer's.
#[derive(Debug)]
pub(crate) struct PassFacts {
    pub(crate) sent: PointFacts,
    pub(crate) received: PointFacts,
    /// Time facts of the two points from comparing them.
    pub(crate) sent_times: PointTimes,
    pub(crate) received_times: PointTimes,
    pub(crate) counts: MatchCounts,
    /// Packets of each flow of the sending point.
    pub(crate) sent_in_flows: Vec<u64>,
    pub(crate) periods: Periods,
    /// Headers of the flows of the receiving point.
    pub(crate) received_flows: Vec<Headers>,
    pub(crate) segments: Segments,
}

/// Flows of the sending point that repeat packets, and after how long.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Periods {
    /// Flows that repeat one after more than the time-out, though delays may be as long: their packets
    /// are matched by time alone.
    pub(crate) flows_beyond: u64,
    /// The shortest time after which one of these does, ns.
    pub(crate) beyond_ns: Option<u64>,
    /// The shortest time after which a flow does that is not longer than the time-out, ns: such packets
    /// are ambiguous.
    pub(crate) within_ns: Option<u64>,
}

impl Periods {
    fn new(matcher: &Matcher) -> Self {
        let timeout_ns = matcher.params().timeout_ns;
        let beyond = || {
            let possible = timeout_ns.saturating_add(1)..LARGEST_DELAY_NS;
            matcher.periods_ns().filter(move |ns| possible.contains(ns))
        };
        Self {
            flows_beyond: beyond().count() as u64,
            beyond_ns: beyond().min(),
            within_ns: matcher.periods_ns().filter(|&ns| ns <= timeout_ns).min(),
        }
    }
}

impl Pair {
    /// Open the files of two points so that both use the same packet keys, of innermost packets where that is asked for.
    pub(crate) fn open(
        sent: &[PathBuf],
        received: &[PathBuf],
        innermost: bool,
    ) -> Result<Self, CaptureError> {
        let open = if innermost {
            Point::open_innermost
        } else {
            Point::open
        };
        let (mut sent, mut received) = (open(sent)?, open(received)?);
        let bytes = sent
            .key_bytes_available()
            .common(received.key_bytes_available());
        sent.set_key_bytes(bytes);
        received.set_key_bytes(bytes);
        Ok(Self { sent, received })
    }
}

/// Match all packets of `pair` within the loss time-out. Headers of the flows of the sending point are
/// put into `headers` and reported to `flow_observer` before any of their sightings; `begin` creates the
/// observer.
pub(crate) fn run<O: MatchObserver, B: FlowObserver>(
    pair: Pair,
    timeout_ns: u64,
    headers: &RefCell<Vec<Headers>>,
    flow_observer: &mut B,
    watch: &dyn Watch,
    begin: impl FnOnce(&Prefix<'_>) -> O,
) -> Result<(O, PassFacts), AnalysisError> {
    let progress = [pair.sent.progress(), pair.received.progress()];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let largest_delay_ns = LARGEST_DELAY_NS.max(timeout_ns / 2);
        let feeds = [
            Feed::spawn(scope, pair.sent, &stop),
            Feed::spawn(scope, pair.received, &stop),
        ];
        let mut ends = Ends::new(feeds, headers, flow_observer, largest_delay_ns);
        let (first_sent, first_received) = ends.look_ahead();
        let alignment_ns = ends.align(&first_sent, &first_received);
        let mut observer = begin(&Prefix {
            sent: &first_sent,
            received: &first_received,
            alignment_ns,
        });
        drop((first_sent, first_received));
        let mut matcher = Matcher::new(MatchParams {
            timeout_ns,
            alignment_ns,
            ..MatchParams::default()
        });
        let ends = RefCell::new(ends);
        // If one side fails, the other need not be read to its end.
        let pull = |side: Side, out: &mut Vec<Sighting>| -> bool {
            let mut ends = ends.borrow_mut();
            if watch.is_interrupted() || ends.have_failed() {
                stop.store(true, Ordering::Relaxed);
                return false;
            }
            report(&progress, watch);
            ends.pull(side, out)
        };
        drive(
            &mut matcher,
            |out| pull(Side::Sent, out),
            |out| pull(Side::Received, out),
            &mut observer,
        );
        // Unblocks threads that are still sending.
        stop.store(true, Ordering::Relaxed);
        let finished = ends.into_inner().finish();
        if watch.is_interrupted() {
            return Err(AnalysisError::Interrupted);
        }
        let (sent, sent_times) = finished.sent?;
        let (received, received_times) = finished.received?;
        let facts = PassFacts {
            sent,
            received,
            sent_times,
            received_times,
            counts: *matcher.counts(),
            sent_in_flows: matcher.sent_in_flows().map(u64::from).collect(),
            periods: Periods::new(&matcher),
            received_flows: finished.received_flows,
            segments: finished.segments,
        };
        report(&progress, watch);
        Ok((observer, facts))
    })
}

fn report(progress: &[Arc<Progress>; 2], watch: &dyn Watch) {
    let sum = |of: fn(&Progress) -> u64| progress.iter().map(|one| of(one)).sum();
    watch.on_progress(sum(Progress::read_bytes), sum(Progress::total_bytes));
}
