//! One pass over the captures of two points: each is read by a thread of its own, and matched here.

use crate::params::AnalysisError;
use slicewise_capture::matching::{
    Alignment, MatchCounts, MatchObserver, MatchParams, Matcher, drive,
};
use slicewise_capture::{CaptureError, Point, PointFacts, Progress, Sighting, TcpSegment};
use slicewise_wire::Headers;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Sightings a thread hands over at a time.
const BATCH: usize = 4_096;
/// Batches that wait between two threads.
const BATCHES_WAITING: usize = 8;
/// Sightings of each side that are looked at before the first is matched.
const PREFIX: usize = 1 << 16;

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
    pub(crate) counts: MatchCounts,
}

enum Message {
    Batch(Batch),
    End(Box<PointFacts>),
    Failed(CaptureError),
}

/// Sightings, and what has come to be known with them.
#[derive(Debug, Default)]
struct Batch {
    sightings: Vec<Sighting>,
    segments: Vec<TcpSegment>,
    new_flows: Vec<Headers>,
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

/// The side of a channel where batches arrive.
struct Feed {
    batches: Receiver<Message>,
    /// Taken before matching began.
    waiting: VecDeque<Batch>,
    facts: Option<PointFacts>,
    failed: Option<CaptureError>,
}

impl Feed {
    /// Read a point in a thread of its own.
    fn spawn<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        point: Point,
        stop: &'scope AtomicBool,
    ) -> Self {
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        scope.spawn(move || read(point, &sender, stop));
        Self {
            batches,
            waiting: VecDeque::new(),
            facts: None,
            failed: None,
        }
    }

    /// The next batch; none at the end, or where reading failed. `learn` is told of each once, as it
    /// arrives.
    fn next(&mut self, learn: impl FnOnce(&mut Batch)) -> Option<Batch> {
        if let Some(batch) = self.waiting.pop_front() {
            return Some(batch);
        }
        let mut batch = self.receive()?;
        learn(&mut batch);
        Some(batch)
    }

    fn receive(&mut self) -> Option<Batch> {
        if self.facts.is_some() || self.failed.is_some() {
            return None;
        }
        match self.batches.recv() {
            Ok(Message::Batch(batch)) => return Some(batch),
            Ok(Message::End(facts)) => self.facts = Some(*facts),
            Ok(Message::Failed(error)) => self.failed = Some(error),
            // The thread ended without a word: a defect of ours, which the scope tells of.
            Err(_) => {}
        }
        None
    }

    /// Take what comes first, to look at it.
    fn look_ahead(&mut self, mut learn: impl FnMut(&mut Batch)) -> Vec<Sighting> {
        let mut seen = Vec::new();
        while seen.len() < PREFIX
            && let Some(mut batch) = self.receive()
        {
            learn(&mut batch);
            seen.extend_from_slice(&batch.sightings);
            self.waiting.push_back(batch);
        }
        seen
    }

    /// What was read at the point, or why that failed.
    fn end(mut self) -> Result<PointFacts, AnalysisError> {
        while self.receive().is_some() {}
        match (self.facts, self.failed) {
            (_, Some(error)) => Err(error.into()),
            (Some(facts), None) => Ok(facts),
            (None, None) => Err(AnalysisError::Interrupted),
        }
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
        let mut sent = Feed::spawn(scope, pair.sent, &stop);
        let mut received = Feed::spawn(scope, pair.received, &stop);
        let mut learn = |batch: &mut Batch| {
            if !batch.new_flows.is_empty() {
                let mut headers = headers.borrow_mut();
                headers.append(&mut batch.new_flows);
                beside.on_flows(&headers);
            }
            beside.on_segments(&batch.segments);
        };
        let first_sent = sent.look_ahead(&mut learn);
        let first_received = received.look_ahead(|_| {});
        let alignment_ns = alignment_ns(&first_sent, &first_received, timeout_ns);
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
        // Where one side fails, the other need not be read to its end.
        let failed = Cell::new(false);
        let pull = |feed: &mut Feed, out: &mut Vec<_>, learn: &mut dyn FnMut(&mut Batch)| -> bool {
            if watch.is_interrupted() || failed.get() {
                stop.store(true, Ordering::Relaxed);
                return false;
            }
            report(&progress, watch);
            let batch = feed.next(learn);
            failed.set(failed.get() || feed.failed.is_some());
            batch
                .map(|mut batch| out.append(&mut batch.sightings))
                .is_some()
        };
        drive(
            &mut matcher,
            |out| pull(&mut sent, out, &mut learn),
            |out| pull(&mut received, out, &mut |_| {}),
            &mut observer,
        );
        // Threads that still want to hand something over are let go.
        stop.store(true, Ordering::Relaxed);
        let (sent, received) = (sent.end(), received.end());
        if watch.is_interrupted() {
            return Err(AnalysisError::Interrupted);
        }
        let facts = PassFacts {
            sent: sent?,
            received: received?,
            counts: *matcher.counts(),
        };
        report(&progress, watch);
        Ok((observer, facts))
    })
}

/// By what the receiving clock is ahead by more than any delay; else 0.
fn alignment_ns(sent: &[Sighting], received: &[Sighting], timeout_ns: u64) -> i64 {
    let tolerance = LARGEST_DELAY_NS.max(timeout_ns / 2);
    Alignment::probe(sent, received).map_or(0, |alignment| alignment.offset_ns(tolerance))
}

fn report(progress: &[Arc<Progress>; 2], watch: &dyn Watch) {
    let sum = |of: fn(&Progress) -> u64| progress.iter().map(|one| of(one)).sum();
    watch.on_progress(sum(Progress::read_bytes), sum(Progress::total_bytes));
}

/// Read a point to its end, batch by batch.
fn read(mut point: Point, batches: &SyncSender<Message>, stop: &AtomicBool) {
    let mut flows = 0;
    let last = loop {
        let mut batch = Batch::default();
        let more = match point.read_with_tcp(&mut batch.sightings, &mut batch.segments, BATCH) {
            Ok(more) => more,
            Err(error) => break Message::Failed(error),
        };
        batch.new_flows = point.flows().iter().skip(flows).copied().collect();
        flows = point.flows().len();
        // Where nobody listens any more, there is nothing left to do.
        if batches.send(Message::Batch(batch)).is_err() || stop.load(Ordering::Relaxed) {
            return;
        }
        if !more {
            break Message::End(Box::new(point.facts()));
        }
    };
    let _ = batches.send(last);
}
