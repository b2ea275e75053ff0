//! One pass over the captures of two points: each is read by a thread of its own, and matched here.

use crate::ends::{Ends, PointTimes, Side};
use crate::feed::Feed;
use crate::offload::Segments;
use crate::params::AnalysisError;
use slicewise_capture::matching::{MatchCounts, MatchObserver, MatchParams, Matcher, drive};
use slicewise_capture::{CaptureError, Point, PointFacts, Progress, Sighting, TcpSegment};
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What is taken for delay rather than for a difference of clocks: beyond any queue, as the default of
/// the loss time-out, of which it is half.
const LARGEST_DELAY_NS: u64 = 2_500_000_000;

/// Watches an analysis, and may stop it.
pub trait Watch {
    /// So many bytes of the files were read, of so many; of 0 where that is not known.
    fn on_progress(&self, read_bytes: u64, total_bytes: u64);

    /// Whether to stop.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Sees what the sending point saw beside sightings.
pub(crate) trait Beside {
    /// These are all flows of the sending point so far, in order of number.
    fn on_flows(&mut self, _flows: &[Headers]) {}

    /// TCP segments of the sending point, in the order of its sightings.
    fn on_segments(&mut self, _segments: &[TcpSegment]) {}
}

/// What came first at both points.
pub(crate) struct Prefix<'a> {
    pub(crate) sent: &'a [Sighting],
    pub(crate) received: &'a [Sighting],
    /// By how much the receiving clock seems ahead by more than any delay, ns; else 0.
    pub(crate) alignment_ns: i64,
}

/// What two points saw of the same packets.
pub(crate) struct Pair {
    pub(crate) sent: Point,
    pub(crate) received: Point,
}

/// What a pass found out, beside what its observer was told.
#[derive(Debug)]
pub(crate) struct PassFacts {
    pub(crate) sent: PointFacts,
    pub(crate) received: PointFacts,
    /// What was found out about the times of the two points by comparing them.
    pub(crate) sent_times: PointTimes,
    pub(crate) received_times: PointTimes,
    pub(crate) counts: MatchCounts,
    /// Headers of the flows of the receiving point.
    pub(crate) received_flows: Vec<Headers>,
    pub(crate) segments: Segments,
}

impl Pair {
    /// Open the files of two points so that they name packets alike.
    pub(crate) fn open(sent: &[PathBuf], received: &[PathBuf]) -> Result<Self, CaptureError> {
        let (mut sent, mut received) = (Point::open(sent)?, Point::open(received)?);
        let bytes = sent
            .key_bytes_available()
            .min(received.key_bytes_available());
        sent.set_key_bytes(bytes);
        received.set_key_bytes(bytes);
        Ok(Self { sent, received })
    }
}

/// Match all packets of `pair` within the loss time-out. Headers of the flows of the sending point are put into `headers`, and
/// `beside` is told of them, before any of their sightings is told; `begin` makes the observer.
pub(crate) fn run<O: MatchObserver, B: Beside>(
    pair: Pair,
    timeout_ns: u64,
    headers: &RefCell<Vec<Headers>>,
    beside: &mut B,
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
        let mut ends = Ends::new(feeds, headers, beside, largest_delay_ns);
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
        // Where one side fails, the other need not be read to its end.
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
        // Threads that still want to hand something over are let go.
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
