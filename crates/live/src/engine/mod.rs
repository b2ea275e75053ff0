//! Forwarding between two ports, independent of their kind: it reads its time from a
//! [`Clock`], and frames from a [`Port`].
//!
//! Both directions have a pipeline of their own, and a link clock that paces departures: the emulated
//! link, not the interface behind it, is the bottleneck. A frame is handed over when its first bit
//! would leave the emulated link.

mod change;
mod direction;
mod division;
mod flows;
mod inspect;
mod per_class;
mod queues;
mod rewrite;
mod slices;
mod stepwise;
#[cfg(test)]
mod tests;

pub use change::{AddedClasses, EngineBasis, PreparedDirections, ReplacedDirections};
pub(crate) use direction::{Direction, Paced};
pub use direction::{DirectionCounters, DirectionParams, MAX_CATCH_UP};
use division::Division;
pub use flows::{FlowCount, FlowKey};
pub use inspect::{Discard, Inspected, inspect};
pub use rewrite::set_traffic_class;
pub use slices::{ClassesCounted, DirectedChange, FlowsCounted, GoneSlice, NotChanged};
pub use stepwise::{Progress, StepwiseChange};

use crate::frame_memory::BATCH;
use crate::frame_memory::{
    Budget, CHUNK_BYTES, FrameMemory, Needs, PortBudget, TooLittle, bytes_of, chunks_of,
};
use crate::histogram::Histogram;
use crate::port::{Arrival, Port};
use slicewise_dataplane::{BuildError, ClassCounters, ElephantCounters};
use slicewise_units::{BothWays, Instant, Way};
use std::collections::VecDeque;
use std::io;

/// A source of time.
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
    /// Receive queues of each port that frame memory is lent to; 0 for a port that copies frames.
    pub receive_queues: [u32; 2],
    /// Maximum frame memory, bytes, whatever the queues may hold.
    pub memory_bytes: u64,
    /// Slices will be [added](Engine::change_slice): all of that memory is allocated at the start, also where the queues
    /// of the policies need less.
    pub adds_slices: bool,
}

impl EngineParams {
    /// Returns the smallest parameters for any gateway with these directions: interfaces that lend no memory, and
    /// frames that Ethernet carries everywhere.
    #[must_use]
    pub const fn at_least(directions: [DirectionParams; 2], memory_bytes: u64) -> Self {
        Self {
            directions,
            largest_frame: LARGEST_FRAME,
            receive_queues: [0; 2],
            memory_bytes,
            adds_slices: false,
        }
    }

    /// Checks that an [`Engine`] can be made of them, except for the memory that the system has.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn check(&self) -> Result<(), EngineError> {
        self.parts(Instant::ZERO).map(|_| ())
    }

    /// The directions, what their queues want of the memory, and how it is divided.
    fn parts(&self, now: Instant) -> Result<(BothWays<Direction>, Division, Budget), EngineError> {
        let [forward, backward] = &self.directions;
        let directions = BothWays {
            forward: Direction::new(Way::Forward.name(), forward, now)?,
            backward: Direction::new(Way::Backward.name(), backward, now)?,
        };
        let needs = Needs {
            receive_queues: self.receive_queues,
            frame_chunks: chunks_of(self.largest_frame),
            queues: 0,
            queue_chunks: 0,
        };
        let policies = directions.as_ref();
        let policies = policies.map(|direction| (direction.policy(), direction.class_names()));
        let division = Division::new(policies, needs);
        let needs = division.needs;
        let room = if self.adds_slices {
            u64::from(MOST_QUEUED_CHUNKS)
        } else {
            0
        };
        let dividing = Needs {
            queue_chunks: needs.queue_chunks.max(room),
            ..needs
        };
        let chunks = self.memory_bytes / CHUNK_BYTES as u64;
        let budget = Budget::divide(chunks, &dividing).map_err(|TooLittle { least, .. }| {
            EngineError::TooLittleMemory {
                bytes: self.memory_bytes,
                least_bytes: bytes_of(least),
                needed_bytes: bytes_of(needs.chunks_needed()),
                receive_queues: self.receive_queues.iter().sum(),
                queues: needs.queues,
            }
        })?;
        Ok((directions, division, budget))
    }
}

/// Why forwarding cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A policy cannot be run.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The system does not have enough memory.
    #[error("cannot allocate {bytes} B of frame memory: {error}")]
    Memory {
        /// How much was asked for.
        bytes: u64,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Interfaces and queues need more memory than they may have.
    #[error(
        "`memory` is {} MiB, and at least {} MiB are required for {receive_queues} receive queues and \
         {queues} queues of classes ({} MiB to fill all of them): raise `memory`, or reduce receive \
         queues (`ethtool -L`)",
        .bytes >> 20,
        mebibytes(*.least_bytes),
        mebibytes(*.needed_bytes)
    )]
    TooLittleMemory {
        /// How much they may have.
        bytes: u64,
        /// How much is the least.
        least_bytes: u64,
        /// How much is enough for everything.
        needed_bytes: u64,
        /// Receive queues of both interfaces.
        receive_queues: u32,
        /// Queues of classes in both directions.
        queues: u64,
    },
}

/// Outcome of one round of [`Engine::poll`].
#[derive(Debug, Default)]
pub struct Round {
    /// Frames received.
    pub received: usize,
    /// Frames are due, or may have arrived, that this round did not reach: poll again at once.
    pub is_unfinished: bool,
    /// A direction's frames are due, but its interface accepts none: poll again shortly.
    pub is_blocked: bool,
    /// A port did not send what it had taken: its interface may have changed.
    pub is_refused: bool,
    /// Ports that failed; they are of no use any more.
    pub failed: [Option<io::Error>; 2],
}

/// Rounded up.
const fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Longest frame with an IP packet of 1500 B and two tags, without FCS: what an interface holds at least.
const LARGEST_FRAME: u32 = 1522;
/// Batches received from one port before departures have their turn.
const MOST_BATCHES: usize = 4;
/// Chunks that queues of slices to be added may use: a frame in each is as many as a pipeline holds.
const MOST_QUEUED_CHUNKS: u32 = 1 << 22;

/// Two directions at work.
#[derive(Debug)]
pub struct Engine {
    directions: BothWays<Direction>,
    memory: FrameMemory,
    arrivals: Vec<Arrival>,
    /// Addresses of the gateway's own interfaces.
    own: [[u8; 6]; 2],
    /// How the memory was divided when it was allocated.
    budget: Budget,
    needs: Needs,
    adds_slices: bool,
    /// Slices that were added to policies whose slices change only as a whole.
    added: AddedClasses,
    /// Changes of both directions that were committed as a whole.
    commits: u64,
    /// Slices that were removed one by one, and whose last frame has left.
    gone: VecDeque<GoneSlice>,
    is_stopping: bool,
}

impl Engine {
    /// Both directions idle at `now`.
    ///
    /// # Errors
    /// Where a policy cannot be run or there is not enough memory.
    pub fn new(params: &EngineParams, now: Instant) -> Result<Self, EngineError> {
        let (directions, mut division, budget) = params.parts(now)?;
        let needs = division.needs;
        let memory = FrameMemory::new(budget.total).map_err(|error| EngineError::Memory {
            bytes: bytes_of(budget.total.into()),
            error,
        })?;
        let mut engine = Self {
            directions,
            memory,
            arrivals: Vec::with_capacity(BATCH),
            own: [[0; 6]; 2],
            budget,
            needs,
            adds_slices: params.adds_slices,
            added: AddedClasses::default(),
            commits: 0,
            gone: VecDeque::new(),
            is_stopping: false,
        };
        engine.divide_memory(&mut division);
        Ok(engine)
    }

    /// Divide the memory for queues among those that there are now. O(classes).
    fn divide_memory(&mut self, division: &mut Division) {
        let Division {
            needs,
            wanted,
            directions: queues,
        } = division;
        self.needs = *needs;
        // A pipeline that cannot hold as many frames as its queues may have would be full for all of them.
        let mut total = self.budget.queues;
        for (_, (direction, queues)) in self.directions.as_ref().zip(queues.as_ref()) {
            direction.offer_shares(queues, wanted);
            let is_full = queues.frames > u64::from(direction.capacity());
            // It grows with the slices.
            if is_full && !self.adds_slices {
                total = total.min(direction.capacity());
            }
        }
        self.memory.shares_mut().divide(total, wanted);
        for (_, (direction, queues)) in self.directions.as_mut().zip(queues.as_ref()) {
            direction.set_shares(queues, wanted);
        }
    }

    /// The addresses of the two interfaces: frames with such a source have come back.
    pub const fn set_own_addresses(&mut self, own: [[u8; 6]; 2]) {
        self.own = own;
    }

    /// Where frames lie: for ports to be opened on, and closed.
    pub const fn memory(&mut self) -> &mut FrameMemory {
        &mut self.memory
    }

    /// Bytes that frames take if every ring and every queue is full of frames of maximum size. If that is more
    /// than [the memory](Self::memory_bytes), rings are shorter, or queues hold fewer large frames than their
    /// limits allow; even then, a slice that fills its queue takes nothing that was reserved for another.
    #[must_use]
    pub fn memory_needed(&self) -> u64 {
        self.needs
            .chunks_needed()
            .saturating_mul(CHUNK_BYTES as u64)
    }

    /// How the memory was divided when it was allocated.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the memory that the port of a side may hold.
    #[must_use]
    pub fn port_budget(&self, side: usize) -> PortBudget {
        let budget = self.budget.ports.get(side).copied();
        budget.unwrap_or(PortBudget::full(0))
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
            for way in Way::ALL {
                self.receive(way, ports, clock, &mut round);
            }
        }
        for (way, direction) in self.directions.iter_mut() {
            let other = usize::from(way == Way::Forward);
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
        if self
            .directions
            .iter()
            .any(|(_, direction)| direction.is_removing())
        {
            self.find_gone(clock.now());
        }
        round
    }

    /// Count frames that ports did not send as discarded instead of sent; returns whether there were any.
    /// [`poll`](Self::poll) does this, too; call it for ports that have been closed since.
    pub fn count_unsent<P: Port>(&mut self, ports: &mut [P; 2]) -> bool {
        let mut is_refused = false;
        // Each direction sends on the port of the other.
        for ((_, direction), port) in self.directions.iter_mut().zip(ports.iter_mut().rev()) {
            let unsent = port.take_unsent();
            is_refused |= unsent.frames > 0;
            direction.on_unsent(unsent);
        }
        is_refused
    }

    /// Offer the frames that have arrived at one port to its direction, so that a late arrival of a high
    /// priority is known before the next departure is chosen.
    fn receive<P: Port>(
        &mut self,
        way: Way,
        [first, second]: &mut [P; 2],
        clock: &mut impl Clock,
        round: &mut Round,
    ) {
        let direction = &mut self.directions[way];
        let [failed, failed_second] = &mut round.failed;
        let (ingress, egress, failed) = match way {
            Way::Forward => (first, second, failed),
            Way::Backward => (second, first, failed_second),
        };
        for batch in 1..=MOST_BATCHES {
            self.arrivals.clear();
            let received = ingress.receive(&mut self.memory, &mut self.arrivals);
            round.received += self.arrivals.len();
            if !self.arrivals.is_empty() {
                let (arrivals, now) = (&self.arrivals, clock.now());
                direction.on_arrivals(arrivals, &mut self.memory, egress, &self.own, now);
            }
            if let Err(error) = received {
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
        self.directions
            .iter()
            .filter_map(|(_, one)| one.due())
            .min()
    }

    /// Stop receiving; waiting frames still leave.
    pub const fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Give up everything that waits, and count it; returns how many frames.
    pub fn give_up(&mut self, now: Instant) -> u64 {
        let memory = &mut self.memory;
        let directions = self.directions.iter_mut();
        directions.map(|(_, one)| one.give_up(memory, now)).sum()
    }

    /// Frames waiting.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.directions.iter().map(|(_, one)| one.backlog()).sum()
    }

    /// Chunks of memory that neither a frame nor a port holds.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        (self.memory.free_chunks() * CHUNK_BYTES) as u64
    }

    /// Frames that were dropped because their class had used up the memory that it may use.
    #[must_use]
    pub const fn refused_frames(&self) -> u64 {
        self.memory.shares().refused()
    }

    /// The direction and class for which that happened most often.
    #[must_use]
    pub fn most_refused(&self) -> &str {
        self.memory.shares().most_refused()
    }

    /// Returns the counters of a direction.
    #[must_use]
    pub fn counters(&self, way: Way) -> &DirectionCounters {
        self.directions[way].counters()
    }

    /// Classes of a direction, each with how long its frames waited.
    pub fn classes(&self, way: Way) -> impl Iterator<Item = (&ClassCounters, &Histogram)> {
        self.directions[way].classes()
    }

    /// The class of a direction with this number, with how long its frames waited; `None` after the last. A place that no class
    /// has now has no name.
    #[must_use]
    pub fn class(&self, way: Way, number: u32) -> Option<(&ClassCounters, &Histogram)> {
        self.directions[way].class(number)
    }

    /// Classes of a direction that move elephants, and what became of their flows.
    pub fn elephants(&self, way: Way) -> impl Iterator<Item = (&str, ElephantCounters)> {
        self.directions[way].elephants()
    }

    /// How long frames of a direction waited, of all classes.
    #[must_use]
    pub fn delay(&self, way: Way) -> &Histogram {
        self.directions[way].delay()
    }

    /// How much later frames of a direction left than the link clock demanded.
    #[must_use]
    pub fn lateness(&self, way: Way) -> &Histogram {
        self.directions[way].lateness()
    }
}
