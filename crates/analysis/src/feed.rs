//! The packets of a point, read in a separate thread.

use crate::params::AnalysisError;
use slicewise_capture::{CaptureError, Jump, Point, PointFacts, Sighting, TcpSegment};
use slicewise_wire::Headers;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Sightings per batch.
const BATCH: usize = 4_096;
/// Batches queued between two threads.
const BATCHES_WAITING: usize = 8;

enum Message {
    Batch(Batch),
    End(Box<PointFacts>),
    Failed(CaptureError),
}

/// Sightings, and the facts that came with them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// A jump in the times before the first of them.
    pub(crate) jump: Option<Jump>,
    pub(crate) sightings: Vec<Sighting>,
    pub(crate) segments: Vec<TcpSegment>,
    pub(crate) new_flows: Vec<Headers>,
}

/// Receiving side of the channel.
pub(crate) struct Feed {
    batches: Receiver<Message>,
    facts: Option<PointFacts>,
    failed: Option<CaptureError>,
}

impl Feed {
    /// Read a point in a separate thread.
    pub(crate) fn spawn<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        point: Point,
        stop: &'scope AtomicBool,
    ) -> Self {
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        scope.spawn(move || read(point, &sender, stop));
        Self {
            batches,
            facts: None,
            failed: None,
        }
    }

    /// The next batch; `None` at the end or if reading failed.
    pub(crate) fn receive(&mut self) -> Option<Batch> {
        if self.facts.is_some() || self.failed.is_some() {
            return None;
        }
        match self.batches.recv() {
            Ok(Message::Batch(batch)) => return Some(batch),
            Ok(Message::End(facts)) => self.facts = Some(*facts),
            Ok(Message::Failed(error)) => self.failed = Some(error),
            // The thread panicked, which the scope propagates.
            Err(_) => {}
        }
        None
    }

    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns the facts read at the point, or the error.
    pub(crate) fn end(mut self) -> Result<PointFacts, AnalysisError> {
        while self.receive().is_some() {}
        match (self.facts, self.failed) {
            (_, Some(error)) => Err(error.into()),
            (Some(facts), None) => Ok(facts),
            (None, None) => Err(AnalysisError::Interrupted),
        }
    }
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
        batch.jump = point.take_jump();
        batch.new_flows = point.flows().iter().skip(flows).copied().collect();
        flows = point.flows().len();
        // If the receiver is gone, there is nothing left to do.
        if batches.send(Message::Batch(batch)).is_err() || stop.load(Ordering::Relaxed) {
            return;
        }
        if !more {
            break Message::End(Box::new(point.facts()));
        }
    };
    let _ = batches.send(last);
}
