//! Forwarding between two ports, without knowledge of what they are: it reads its time from a
//! [`Clock`], and frames from a [`Port`].
//!
//! Both directions have a pipeline of their own, and a link clock that paces departures: the emulated
//! link, not the interface behind it, is the bottleneck. A frame is handed over when its first bit
//! would leave the emulated link.

mod direction;
mod inspect;
mod rewrite;
#[cfg(test)]
mod tests;

pub(crate) use direction::{Direction, Paced};
pub use direction::{DirectionCounters, DirectionParams};
pub use inspect::{Discard, Inspected, inspect};
pub use rewrite::set_traffic_class;

use crate::frame_memory::{CHUNK_BYTES, FrameMemory};
use crate::histogram::Histogram;
use crate::port::{Arrival, BATCH, Port};
use slicewise_dataplane::{ApplyError, BuildError, ClassCounters};
use slicewise_units::Instant;
use std::io;

/// Tells the time.
pub trait Clock {
    /// It never goes backwards.
    fn now(&mut self) -> Instant;
}

impl<F: FnMut() -> Instant> Clock for F {
    #[inline]
    fn now(&mut self) -> Instant {
        self()
    }
}

/// Both directions; number 0 receives from port 0 and sends to port 1, number 1 the other way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineParams {
    /// The directions.
    pub directions: [DirectionParams; 2],
    /// Longest frame that will be held, bytes: how much memory a queued frame may need.
    pub largest_frame: u32,
    /// Most memory for frames, bytes, whatever the queues may hold.
    pub memory_bytes: u64,
}

/// Why forwarding cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A policy cannot be run.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is not so much memory.
    #[error("{bytes} B of memory for frames cannot be had: {error}")]
    Memory {
        /// How much was asked for.
        bytes: u64,
        /// What the system answered.
        error: io::Error,
    },
}

/// What one round of [`Engine::poll`] did.
#[derive(Debug, Default)]
pub struct Round {
    /// Frames received.
    pub received: usize,
    /// Frames are due, or may have arrived, that this round had no turn for: come again at once.
    pub is_unfinished: bool,
    /// A direction's frames are due, and its interface takes none: come again shortly.
    pub is_blocked: bool,
    /// A port did not send what it had taken: its interface may have changed.
    pub is_refused: bool,
    /// Ports that failed; they are of no use any more.
    pub failed: [Option<io::Error>; 2],
}

/// Chunks that rings of the kernel hold beside what is queued, both ports together.
const RING_CHUNKS: u64 = 4 * 4096;
/// Batches received from one port before departures have their turn.
const MOST_BATCHES: usize = 4;

/// Two directions at work.
#[derive(Debug)]
pub struct Engine {
    directions: [Direction; 2],
    memory: FrameMemory,
    arrivals: Vec<Arrival>,
    /// Addresses of the gateway's own interfaces.
    own: [[u8; 6]; 2],
    memory_needed: u64,
    is_stopping: bool,
}

impl Engine {
    /// Both directions idle at `now`.
    ///
    /// # Errors
    /// Where a policy cannot be run or there is not enough memory.
    pub fn new(params: &EngineParams, now: Instant) -> Result<Self, EngineError> {
        let [forward, backward] = &params.directions;
        let directions = [
            Direction::new(forward, now)?,
            Direction::new(backward, now)?,
        ];
        let needed = memory_needed(&directions, params.largest_frame);
        let bytes = needed.min(
            params
                .memory_bytes
                .max(RING_CHUNKS * CHUNK_BYTES as u64 * 2),
        );
        let chunks = u32::try_from(bytes / CHUNK_BYTES as u64).unwrap_or(u32::MAX);
        let memory =
            FrameMemory::new(chunks).map_err(|error| EngineError::Memory { bytes, error })?;
        Ok(Self {
            directions,
            memory,
            arrivals: Vec::with_capacity(BATCH),
            own: [[0; 6]; 2],
            memory_needed: needed,
            is_stopping: false,
        })
    }

    /// The addresses of the two interfaces: frames with such a source have come back.
    pub const fn set_own_addresses(&mut self, own: [[u8; 6]; 2]) {
        self.own = own;
    }

    /// Where frames lie: for ports to be opened on, and closed.
    pub const fn memory(&mut self) -> &mut FrameMemory {
        &mut self.memory
    }

    /// Bytes that frames would take if every queue were full of largest frames. Where that is more
    /// than there is, a slice that fills its queues can cost others frames.
    #[must_use]
    pub const fn memory_needed(&self) -> u64 {
        self.memory_needed
    }

    /// Bytes for frames.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.memory.total_chunks() * CHUNK_BYTES) as u64
    }

    /// One round: what has arrived at both ports (within limits), then what is due in both directions.
    pub fn poll<P: Port>(&mut self, ports: &mut [P; 2], clock: &mut impl Clock) -> Round {
        let mut round = Round::default();
        if !self.is_stopping {
            for side in 0..2 {
                self.receive(side, ports, clock, &mut round);
            }
        }
        for (side, direction) in self.directions.iter_mut().enumerate() {
            let other = 1 - side;
            let Some(egress) = ports.get_mut(other) else {
                continue;
            };
            let (paced, sent) = direction.pace(egress, &mut self.memory, clock);
            round.is_unfinished |= paced == Paced::More;
            round.is_blocked |= paced == Paced::Blocked;
            if let (Err(error), Some(failed)) = (sent, round.failed.get_mut(other)) {
                *failed = Some(error);
            }
        }
        round.is_refused = self.count_unsent(ports);
        round
    }

    /// Move what ports did not send from what was sent to what was discarded; returns whether there was
    /// something. [`poll`](Self::poll) does it; it is for ports that were closed since.
    pub fn count_unsent<P: Port>(&mut self, ports: &mut [P; 2]) -> bool {
        let mut is_refused = false;
        // Each direction sends on the port of the other.
        for (direction, port) in self.directions.iter_mut().zip(ports.iter_mut().rev()) {
            let unsent = port.take_unsent();
            is_refused |= unsent.frames > 0;
            direction.on_unsent(unsent);
        }
        is_refused
    }

    /// What has arrived at one port is offered to its direction, so that a late arrival of a high
    /// priority is known before the next departure is chosen.
    fn receive<P: Port>(
        &mut self,
        side: usize,
        ports: &mut [P; 2],
        clock: &mut impl Clock,
        round: &mut Round,
    ) {
        let Ok([ingress, egress]) = ports.get_disjoint_mut([side, 1 - side]) else {
            return;
        };
        let Some(direction) = self.directions.get_mut(side) else {
            return;
        };
        for batch in 1..=MOST_BATCHES {
            self.arrivals.clear();
            let received = ingress.receive(&mut self.memory, &mut self.arrivals);
            round.received += self.arrivals.len();
            if !self.arrivals.is_empty() {
                let now = clock.now();
                for &arrival in &self.arrivals {
                    let memory = &mut self.memory;
                    direction.on_arrival(arrival, memory, egress, &self.own, now);
                }
            }
            if let (Err(error), Some(failed)) = (received, round.failed.get_mut(side)) {
                *failed = Some(error);
                return;
            }
            if self.arrivals.len() < BATCH {
                return;
            }
            round.is_unfinished |= batch == MOST_BATCHES;
        }
    }

    /// When the next frame should leave; `None` while nothing waits.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.directions.iter().filter_map(Direction::due).min()
    }

    /// Change both directions while frames wait: nothing queued is lost or reordered.
    ///
    /// # Errors
    /// Where one cannot be changed so; both are then as they were.
    pub fn apply(
        &mut self,
        params: &[DirectionParams; 2],
        before: &[DirectionParams; 2],
        now: Instant,
    ) -> Result<(), ApplyError> {
        let [forward, backward] = &mut self.directions;
        forward.apply(&params[0], now)?;
        if let Err(error) = backward.apply(&params[1], now) {
            // It ran a moment ago, and nothing has happened since.
            forward.apply(&before[0], now)?;
            return Err(error);
        }
        Ok(())
    }

    /// Receive no more; what waits still leaves.
    pub const fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Give up everything that waits, and count it; returns how many frames.
    pub fn give_up(&mut self, now: Instant) -> u64 {
        let memory = &mut self.memory;
        self.directions
            .iter_mut()
            .map(|direction| direction.give_up(memory, now))
            .sum()
    }

    /// Frames waiting.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.directions.iter().map(Direction::backlog).sum()
    }

    /// Chunks of memory that neither a frame nor a port holds.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        (self.memory.free_chunks() * CHUNK_BYTES) as u64
    }

    /// What a direction has counted.
    #[must_use]
    pub fn counters(&self, direction: usize) -> Option<&DirectionCounters> {
        self.directions.get(direction).map(Direction::counters)
    }

    /// Classes of a direction, each with how long its frames waited.
    pub fn classes(&self, direction: usize) -> impl Iterator<Item = (&ClassCounters, &Histogram)> {
        self.directions
            .get(direction)
            .into_iter()
            .flat_map(Direction::classes)
    }

    /// How long frames of a direction waited, of all classes.
    #[must_use]
    pub fn delay(&self, direction: usize) -> Option<&Histogram> {
        self.directions.get(direction).map(Direction::delay)
    }

    /// How much later than the link clock said frames of a direction left.
    #[must_use]
    pub fn lateness(&self, direction: usize) -> Option<&Histogram> {
        self.directions.get(direction).map(Direction::lateness)
    }
}

/// Memory for full queues of largest frames, and for the rings.
fn memory_needed(directions: &[Direction; 2], largest_frame: u32) -> u64 {
    let frames: u64 = directions.iter().map(|d| u64::from(d.capacity())).sum();
    let chunks = u64::from(largest_frame).div_ceil(CHUNK_BYTES as u64).max(1);
    (frames * chunks + RING_CHUNKS) * CHUNK_BYTES as u64
}
