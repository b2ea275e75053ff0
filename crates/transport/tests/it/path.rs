//! A path for tests: two ends, a bottleneck with a queue one way, a delay both ways, and whatever a test does to
//! segments on the way.

use slicewise_transport::{Behaviour, Connection, Flags, Segment, State};
use slicewise_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bytes of headers and gaps that a frame takes on the wire beside its data.
const OVERHEAD: u64 = 14 + 24 + 20 + 32;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    ArrivesLate(Duration),
    ArrivesTwice,
    IsLost,
    IsMarked,
}

/// Which end a frame goes to: [`SERVER`] from the opener to the listener, [`CLIENT`] back.
pub const SERVER: usize = 1;
pub const CLIENT: usize = 0;

pub struct Bottleneck {
    pub bits_per_second: u64,
    /// Most frames that wait; `None`: all.
    pub frames: Option<usize>,
    /// Frames that wait from which new ones are marked.
    pub marks_at: Option<usize>,
    pub delay: Duration,
}

struct Flow {
    behaviour: Behaviour,
    ends: [Connection; 2],
    arrived: [u64; 2],
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: u64,
    order: u64,
    flow: usize,
    to: usize,
    slot: usize,
}

/// Flows that share a bottleneck towards [`SERVER`]; the way back is only delayed.
pub struct Path<F> {
    bottleneck: Bottleneck,
    pub now: Instant,
    flows: Vec<Flow>,
    /// Frames that wait: flow, segment, whether it is marked.
    queue: VecDeque<(usize, Segment, bool)>,
    free_at: Instant,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    slots: Vec<(Segment, bool)>,
    order: u64,
    fate: F,
    /// Integral of the queue's length over time, frames × ns, and its largest length.
    pub queued: u128,
    pub longest: usize,
    pub dropped: u64,
    last: Instant,
}

impl<F: FnMut(usize, &Segment) -> Fate> Path<F> {
    pub fn new(bottleneck: Bottleneck, fate: F) -> Self {
        Self {
            bottleneck,
            now: Instant::ZERO,
            flows: Vec::new(),
            queue: VecDeque::new(),
            free_at: Instant::ZERO,
            arrivals: BinaryHeap::new(),
            slots: Vec::new(),
            order: 0,
            fate,
            queued: 0,
            longest: 0,
            dropped: 0,
            last: Instant::ZERO,
        }
    }

    pub fn add(&mut self, behaviour: Behaviour) -> usize {
        let ends = [Connection::open(&behaviour), Connection::listen(&behaviour)];
        self.flows.push(Flow {
            behaviour,
            ends,
            arrived: [0; 2],
        });
        self.flows.len() - 1
    }

    pub fn end(&self, flow: usize, end: usize) -> &Connection {
        &self.flows[flow].ends[end]
    }

    pub fn arrived(&self, flow: usize, end: usize) -> u64 {
        self.flows[flow].arrived[end]
    }

    pub fn write(&mut self, flow: usize, end: usize, bytes: u64) {
        self.flows[flow].ends[end].write(bytes);
        self.pump(flow, end);
    }

    pub fn close(&mut self, flow: usize, end: usize) {
        let Flow {
            behaviour, ends, ..
        } = &mut self.flows[flow];
        ends[end].close(behaviour);
        self.pump(flow, end);
    }

    pub fn is_over(&self, flow: usize) -> bool {
        let over = |end: &Connection| matches!(end.state(), State::Closed | State::TimedOut);
        self.flows[flow].ends.iter().all(over)
    }

    /// Send what an end has.
    pub fn pump(&mut self, flow: usize, end: usize) {
        loop {
            let Flow {
                behaviour, ends, ..
            } = &mut self.flows[flow];
            let behaviour = *behaviour;
            let Some(segment) = ends[end].poll_transmit(&behaviour, self.now) else {
                return;
            };
            for part in (0..).map_while(|n| segment.part(n, behaviour.mss_bytes)) {
                // The adapter sends at once: the bottleneck is elsewhere.
                self.flows[flow].ends[end].on_left(u64::from(part.bytes), &behaviour);
                self.carry(flow, 1 - end, part);
            }
        }
    }

    fn carry(&mut self, flow: usize, to: usize, segment: Segment) {
        let fate = (self.fate)(to, &segment);
        let copies = match fate {
            Fate::IsLost => return,
            Fate::ArrivesTwice => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let is_marked = fate == Fate::IsMarked;
            match fate {
                Fate::ArrivesLate(by) => self.deliver(flow, to, segment, is_marked, by),
                _ if to == CLIENT => {
                    self.deliver(flow, to, segment, is_marked, Duration::ZERO);
                }
                _ => self.enqueue(flow, segment, is_marked),
            }
        }
    }

    fn enqueue(&mut self, flow: usize, segment: Segment, mut is_marked: bool) {
        let waiting = self.queue.len();
        if self.bottleneck.frames.is_some_and(|most| waiting >= most) {
            self.dropped += 1;
            return;
        }
        if self.bottleneck.marks_at.is_some_and(|at| waiting >= at) {
            is_marked |= segment.flags.has(Flags::ECT);
        }
        self.count_queue();
        self.queue.push_back((flow, segment, is_marked));
        self.longest = self.longest.max(self.queue.len());
        self.serve();
    }

    fn count_queue(&mut self) {
        let passed = self.now.saturating_since(self.last).nanos();
        self.queued += u128::from(passed) * self.queue.len() as u128;
        self.last = self.now;
    }

    fn serve(&mut self) {
        if self.free_at > self.now {
            return;
        }
        self.count_queue();
        if let Some((flow, segment, is_marked)) = self.queue.pop_front() {
            let bits = (u64::from(segment.bytes) + OVERHEAD) * 8;
            let nanos =
                u128::from(bits) * 1_000_000_000 / u128::from(self.bottleneck.bits_per_second);
            let takes = Duration::from_nanos(u64::try_from(nanos).unwrap());
            self.free_at = self.now + takes;
            self.deliver(flow, SERVER, segment, is_marked, takes);
        }
    }

    fn deliver(&mut self, flow: usize, to: usize, segment: Segment, marked: bool, after: Duration) {
        let at = (self.now + after + self.bottleneck.delay).nanos();
        self.order += 1;
        self.slots.push((segment, marked));
        self.arrivals.push(Reverse(Arrival {
            at,
            order: self.order,
            flow,
            to,
            slot: self.slots.len() - 1,
        }));
    }

    /// The next thing that happens, no later than `end`; false if there is none.
    pub fn step(&mut self, end: Instant) -> bool {
        let arrival = self
            .arrivals
            .peek()
            .map(|next| Instant::from_nanos(next.0.at));
        let served = (!self.queue.is_empty()).then_some(self.free_at);
        let timers = self.flows.iter().flat_map(|flow| flow.ends.iter());
        let timer = timers.filter_map(Connection::poll_at).min();
        let times = [arrival, served, timer].into_iter().flatten();
        let Some(next) = times.min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = next.max(self.now);
        self.serve();
        while let Some(next) = self.arrivals.peek()
            && next.0.at <= self.now.nanos()
        {
            let Reverse(Arrival { flow, to, slot, .. }) = self.arrivals.pop().unwrap();
            let (segment, is_marked) = self.slots[slot];
            let Flow {
                behaviour,
                ends,
                arrived,
            } = &mut self.flows[flow];
            ends[to].on_segment(&segment, is_marked, behaviour, self.now);
            arrived[to] += ends[to].take_arrived();
            self.pump(flow, to);
        }
        for flow in 0..self.flows.len() {
            for end in [CLIENT, SERVER] {
                let Flow {
                    behaviour, ends, ..
                } = &mut self.flows[flow];
                if ends[end].poll_at().is_some_and(|at| at <= self.now) {
                    ends[end].on_timer(behaviour, self.now);
                    self.pump(flow, end);
                }
            }
        }
        true
    }

    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
        self.count_queue();
        self.now = end.max(self.now);
    }
}
