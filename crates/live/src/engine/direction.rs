//! One direction: a pipeline, and a link clock that says when its frames leave.

mod slices;

use super::Clock;
use super::division::OfDirection;
use super::flows::Watched;
use super::inspect::{self, Discard};
use super::per_class::PerClass;
use super::rewrite;
use crate::frame_memory::BATCH;
use crate::frame_memory::{FrameId, FrameMemory, Wanted};
use crate::histogram::Histogram;
use crate::port::{Arrival, Port, Unsent};
use slicewise_dataplane::{
    Basis, BuildError, ClassCounters, Departure, DropReason, ElephantCounters, Frame, FrameOwner,
    LinkClock, Pipeline, PipelineParams, Prepared, Replaced, Stale,
};
use slicewise_model::{Colour, PolicyParams, Rate};
use slicewise_units::{Accounting, Duration, FrameLengths, Instant};
use slicewise_wire::{Headers, LinkType, parse_frame};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Parameters of one direction: what it forwards, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionParams {
    /// Rate of the emulated link, to which departures are paced, and the bytes that it counts.
    pub link: Rate,
    /// Classes and how they share it.
    pub policy: Arc<PolicyParams>,
    /// Seed of random early detection.
    pub seed: u64,
}

/// Counters of one direction since the gateway started.
///
/// At any time `received = sent + waiting + Σ discarded + Σ dropped by classes, also by removed ones`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Frames that arrived.
    pub received_frames: u64,
    /// Their bytes, L2 without FCS.
    pub received_bytes: u64,
    /// Frames handed to the interface.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that are not IP; their VLAN determines their class, or they belong to class-default.
    pub not_ip_frames: u64,
    /// Frames dropped by classes that a change of configuration has removed since, with their counters.
    pub dropped_by_removed_frames: u64,
    /// Frames discarded in addition to the pipeline's drops, in the order of [`Discard::ALL`].
    pub discarded: [u64; Discard::ALL.len()],
    /// Time in which a frame was due, the link sent none, and that it did not make up for: it was more than
    /// [`MAX_CATCH_UP`] behind. Delays may exceed their bounds by what was lost since the queues were empty.
    pub lost_link_time: Duration,
    /// Number of times that link time was lost.
    pub link_stalls: u64,
}

/// How far a link may fall behind and still catch up, by a burst of this length. If no frame is handed over for
/// longer, because the program does not run or the interface accepts nothing, the excess time is lost.
pub const MAX_CATCH_UP: Duration = Duration::from_millis(1);
/// Frames sent before others are received again.
const MOST_DEPARTURES: usize = 128;

/// A direction at work.
#[derive(Debug)]
pub(crate) struct Direction {
    name: &'static str,
    pipeline: Pipeline,
    policy: Arc<PolicyParams>,
    link: LinkClock,
    accounting: Accounting,
    counters: DirectionCounters,
    of_classes: PerClass,
    /// Slices that were removed, and of which frames may still wait, by name: for each removal, in order, whether somebody asked for it.
    removing: BTreeMap<String, VecDeque<bool>>,
    /// Classes whose flows somebody asks about.
    watched: Vec<Watched>,
    /// Of all classes.
    delay: Histogram,
    lateness: Histogram,
    /// When the pipeline was polled last, and when the frame it returned was due: a frame that becomes ready
    /// exactly at a late poll was ready when the link became free.
    polled_at: Instant,
    due_at: Instant,
    /// Frames that have arrived and are to be offered together, and the headers of each.
    incoming: (Vec<Frame>, Vec<Headers>),
    /// Frames that the link sends now, and when each was due.
    departures: Vec<(Departure, Instant)>,
    /// Departing frames that the interface takes.
    outgoing: Vec<FrameId>,
}

/// Frames lie in memory of which each class has a share.
struct Shared<'a> {
    memory: &'a mut FrameMemory,
    of_classes: &'a PerClass,
}

impl FrameOwner for Shared<'_> {
    #[inline]
    fn try_hold(&mut self, frame: &Frame, class: u32) -> bool {
        let share = self.of_classes.share(class);
        share.is_some_and(|share| self.memory.try_hold(frame_of(frame), share))
    }

    #[inline]
    fn on_dropped(&mut self, frame: &Frame, _: DropReason) {
        self.memory.release(frame_of(frame));
    }
}

/// How far pacing got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paced {
    /// Nothing more is due.
    Idle,
    /// More is due: poll again at once.
    More,
    /// More is due, but the interface accepts nothing now.
    Blocked,
}

impl Direction {
    pub(crate) fn new(
        name: &'static str,
        params: &DirectionParams,
        now: Instant,
    ) -> Result<Self, BuildError> {
        let mut pipeline = Pipeline::new(
            &PipelineParams {
                policy: PolicyParams::clone(&params.policy),
                port_shaper: None,
                seed: params.seed,
            },
            now,
        )?;
        pipeline.reserve();
        let classes = pipeline.counters().len();
        Ok(Self {
            name,
            pipeline,
            policy: Arc::clone(&params.policy),
            link: LinkClock::new(params.link.rate),
            accounting: params.link.accounting,
            counters: DirectionCounters::default(),
            of_classes: PerClass::new(classes),
            removing: BTreeMap::new(),
            watched: Vec::new(),
            delay: Histogram::default(),
            lateness: Histogram::default(),
            polled_at: Instant::ZERO,
            due_at: Instant::ZERO,
            incoming: (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH)),
            departures: Vec::with_capacity(MOST_DEPARTURES),
            outgoing: Vec::with_capacity(MOST_DEPARTURES),
        })
    }

    /// Frames that have arrived are inspected, and offered to the pipeline together.
    pub(crate) fn on_arrivals(
        &mut self,
        arrivals: &[Arrival],
        memory: &mut FrameMemory,
        egress: &impl Port,
        own: &[[u8; 6]; 2],
        now: Instant,
    ) {
        for &arrival in arrivals {
            self.inspect(arrival, memory, egress, own);
        }
        let (frames, headers) = &mut self.incoming;
        let mut owner = Shared {
            memory,
            of_classes: &self.of_classes,
        };
        self.pipeline
            .enqueue_burst(frames, headers, now, &mut owner);
        frames.clear();
        headers.clear();
    }

    #[inline]
    fn inspect(
        &mut self,
        arrival: Arrival,
        memory: &mut FrameMemory,
        egress: &impl Port,
        own: &[[u8; 6]; 2],
    ) {
        let Arrival { frame, length, .. } = arrival;
        self.counters.received_frames += 1;
        self.counters.received_bytes += u64::from(length);
        let head = memory.head(frame);
        let inspected = match inspect::inspect(head, length, own) {
            Ok(inspected) if length <= egress.largest_frame(outer_type(head)) => inspected,
            Ok(_) => return self.discard(frame, Discard::Giant, memory),
            Err(reason) => return self.discard(frame, reason, memory),
        };
        if inspected.headers.ip_version == slicewise_wire::IpVersion::None {
            self.counters.not_ip_frames += 1;
        }
        if arrival.lacks_checksum {
            complete_checksum(frame, length, memory);
        }
        let (frames, headers) = &mut self.incoming;
        frames.push(Frame {
            handle: u64::from(frame.0),
            lengths: FrameLengths {
                l2_bytes: length,
                l3_offset: inspected.l3_offset,
            },
            traffic_class: inspected.traffic_class,
            colour: Colour::Green,
        });
        headers.push(inspected.headers);
    }

    /// Frames that queues have dropped since they took them.
    #[inline]
    fn release_dropped(&mut self, memory: &mut FrameMemory) {
        while let Some(dropped) = self.pipeline.poll_dropped() {
            memory.release(frame_of(&dropped.frame));
        }
    }

    fn discard(&mut self, frame: FrameId, reason: Discard, memory: &mut FrameMemory) {
        memory.release(frame);
        self.count_discarded(reason, 1);
    }

    fn count_discarded(&mut self, reason: Discard, frames: u64) {
        if let Some(count) = self.counters.discarded.get_mut(reason as usize) {
            *count += frames;
        }
    }

    /// When the next frame should leave: the link is free and the pipeline lets one go.
    #[inline]
    pub(crate) fn due(&self) -> Option<Instant> {
        let ready = self.pipeline.poll_at()?;
        let ready = if ready == self.polled_at {
            self.due_at
        } else {
            ready
        };
        Some(ready.max(self.link.free_at()))
    }

    /// Send what is due now.
    pub(crate) fn pace(
        &mut self,
        egress: &mut impl Port,
        memory: &mut FrameMemory,
        clock: &mut impl Clock,
    ) -> (Paced, io::Result<()>) {
        // Where nothing waits, the time need not be asked for.
        let Some(due) = self.due() else {
            return (Paced::Idle, Ok(()));
        };
        let now = clock.now();
        if due > now {
            return (Paced::Idle, Ok(()));
        }
        let room = egress.room(memory).min(MOST_DEPARTURES);
        if room > 0 {
            self.dequeue(room, due, now);
        }
        let is_full = self.departures.len() >= room;
        let paced = if self.due().is_none_or(|due| due > now) {
            Paced::Idle
        } else if is_full && room < MOST_DEPARTURES {
            Paced::Blocked
        } else {
            Paced::More
        };
        self.outgoing.clear();
        let mut departures = std::mem::take(&mut self.departures);
        for (departure, due) in departures.drain(..) {
            self.on_departure(departure, due, egress, memory, now);
        }
        self.departures = departures;
        self.release_dropped(memory);
        if self.outgoing.is_empty() {
            return (paced, Ok(()));
        }
        (paced, egress.transmit(memory, &self.outgoing))
    }

    /// Take up to `most` frames that the link can send by `now`, the first of which was due at `due`. Whatever the
    /// pipeline answers, it is not asked again at this moment.
    fn dequeue(&mut self, most: usize, mut due: Instant, now: Instant) {
        let earliest = Instant::from_nanos(now.nanos().saturating_sub(MAX_CATCH_UP.nanos()));
        let lost = earliest.saturating_since(due);
        let (link, departures) = (&mut self.link, &mut self.departures);
        let _ = self.pipeline.dequeue_burst(now, |departure| {
            let size = self.accounting.count(departure.frame.lengths);
            link.send(size, due.max(earliest));
            departures.push((departure, due));
            due = due.max(link.free_at());
            if due > now || departures.len() >= most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if lost > Duration::ZERO && !self.departures.is_empty() {
            self.counters.lost_link_time = self.counters.lost_link_time + lost;
            self.counters.link_stalls += 1;
        }
        self.polled_at = now;
        // Where no frame is ready now, the link idles: the next one is not due before it is ready.
        let is_ready = self.pipeline.poll_at() == Some(now);
        self.due_at = if is_ready { due } else { now };
    }

    #[inline]
    fn on_departure(
        &mut self,
        departure: Departure,
        due: Instant,
        egress: &impl Port,
        memory: &mut FrameMemory,
        now: Instant,
    ) {
        let Departure {
            frame,
            class,
            queued_at,
        } = departure;
        self.lateness.record(now.saturating_since(due));
        let delay = now.saturating_since(queued_at);
        self.delay.record(delay);
        self.of_classes.record(class, delay);
        let id = frame_of(&frame);
        if !egress.is_open() {
            return self.discard(id, Discard::InterfaceDown, memory);
        }
        // Its MTU may have shrunk since the frame arrived.
        if frame.lengths.l2_bytes > egress.largest_frame(outer_type(memory.head(id))) {
            return self.discard(id, Discard::Giant, memory);
        }
        self.counters.sent_frames += 1;
        self.counters.sent_bytes += u64::from(frame.lengths.l2_bytes);
        let watched = self
            .watched
            .iter_mut()
            .find(|watched| watched.class == class);
        if let Some(watched) = watched {
            watched.on_departure(memory.head(id), frame.lengths.l2_bytes);
        }
        let octet = frame.traffic_class.octet();
        rewrite::set_traffic_class(memory.head_mut(id), frame.lengths, octet);
        // From here on it takes of what the interface may hold.
        memory.let_go(id);
        self.outgoing.push(id);
    }

    /// Frames that were handed to the interface and that it did not send.
    pub(crate) fn on_unsent(&mut self, unsent: Unsent) {
        self.counters.sent_frames -= unsent.frames;
        self.counters.sent_bytes -= unsent.bytes;
        self.count_discarded(Discard::Refused, unsent.frames);
    }

    /// Discard all waiting frames; returns how many.
    pub(crate) fn give_up(&mut self, memory: &mut FrameMemory, now: Instant) -> u64 {
        let mut frames = 0;
        let mut at = now;
        while self.pipeline.backlog() > 0 {
            match self.pipeline.poll_egress(at) {
                Some(frame) => {
                    memory.release(frame_of(&frame));
                    frames += 1;
                }
                // A shaper holds it back: as if that time had passed.
                None => match self.pipeline.poll_at() {
                    Some(next) if next > at => at = next,
                    _ => break,
                },
            }
            self.release_dropped(memory);
        }
        self.count_discarded(Discard::Stopped, frames);
        frames
    }

    /// The base for preparing another policy.
    pub(crate) fn basis(&self) -> Basis {
        self.pipeline.basis()
    }

    /// Put another policy in force, and the link rate of `params`; nothing queued is lost or reordered. Slices that were
    /// removed before are `gone` with it.
    pub(crate) fn commit(
        &mut self,
        params: &DirectionParams,
        prepared: Prepared,
        now: Instant,
        gone: &mut Vec<ClassCounters>,
    ) -> Result<Replaced, Stale> {
        self.finish_removed(now, gone);
        let due = self.due();
        let replaced = self.pipeline.commit(prepared, now)?;
        // The new policy is polled from now on. The link still makes up for the time in which a frame was due before.
        if let Some(due) = due.filter(|due| *due < now && self.pipeline.poll_at() == Some(now)) {
            self.polled_at = now;
            self.due_at = due;
        }
        let removed = replaced.removed().iter();
        let dropped: u64 = removed.map(ClassCounters::dropped_total).sum();
        self.counters.dropped_by_removed_frames += dropped;
        self.forget_removed(replaced.removed(), now, gone);
        // Classes have other numbers now.
        self.watched.clear();
        let classes = self.pipeline.counters().len();
        self.of_classes.renumber(classes, replaced.numbers());
        self.follow(params, now);
        Ok(replaced)
    }

    pub(super) fn policy(&self) -> &PolicyParams {
        &self.policy
    }

    /// Changes of the pipeline so far.
    pub(super) const fn version(&self) -> u64 {
        self.pipeline.version()
    }

    /// The policy and the link of `params` are in force from here on.
    pub(super) fn follow(&mut self, params: &DirectionParams, now: Instant) {
        self.policy = Arc::clone(&params.policy);
        self.link.set_rate(params.link.rate, now);
        self.accounting = params.link.accounting;
    }

    pub(crate) const fn counters(&self) -> &DirectionCounters {
        &self.counters
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = (&ClassCounters, &Histogram)> {
        let classes = (0..).map_while(|class| self.class(class));
        // Places of slices that are gone have no name.
        classes.filter(|(class, _)| !class.class.is_empty())
    }

    pub(crate) fn class(&self, number: u32) -> Option<(&ClassCounters, &Histogram)> {
        let counters = self.pipeline.class_counters(number)?;
        Some((counters, self.of_classes.delays(number)))
    }

    pub(crate) fn elephants(&self) -> impl Iterator<Item = (&str, ElephantCounters)> {
        self.pipeline.elephants()
    }

    pub(crate) const fn delay(&self) -> &Histogram {
        &self.delay
    }

    pub(crate) const fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    pub(crate) fn backlog(&self) -> u32 {
        self.pipeline.backlog()
    }

    /// The paths of its classes, in the order of their numbers.
    pub(super) fn class_names(&self) -> impl Iterator<Item = &str> {
        self.pipeline.counters().map(|class| class.class.as_str())
    }

    /// Let the queues of a division go on with the shares that their classes have.
    pub(super) fn offer_shares(&self, of: &OfDirection, wanted: &mut [Wanted]) {
        self.of_classes.offer_shares(&of.queues, wanted);
    }

    /// Let the classes have the shares of their queues in a division.
    pub(super) fn set_shares(&mut self, of: &OfDirection, wanted: &[Wanted]) {
        self.of_classes.set_shares(&of.queues, wanted);
    }

    /// Frames that its queues can hold together.
    pub(crate) fn capacity(&self) -> u32 {
        self.pipeline.capacity()
    }
}

#[inline]
fn frame_of(frame: &Frame) -> FrameId {
    FrameId(u32::try_from(frame.handle).unwrap_or(u32::MAX))
}

/// The outermost `EtherType`.
#[inline]
fn outer_type(head: &[u8]) -> u16 {
    head.get(12..14)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// A virtual interface has handed over a frame whose checksum hardware was to fill in.
#[cold]
fn complete_checksum(frame: FrameId, length: u32, memory: &mut FrameMemory) {
    let head = memory.head(frame);
    let parsed = parse_frame(LinkType::ETHERNET, head, length);
    let ip_bytes = parsed.ip_bytes as usize;
    let transport_bytes = (parsed.ip_offset + ip_bytes).saturating_sub(parsed.transport_offset);
    let found = rewrite::transport_checksum(
        head,
        memory.pieces(frame),
        parsed.ip_offset,
        parsed.transport_offset,
        parsed.headers.protocol,
        transport_bytes,
    );
    if let Some((at, checksum)) = found
        && let Some(field) = memory.head_mut(frame).get_mut(at..at + 2)
    {
        field.copy_from_slice(&checksum);
    }
}
