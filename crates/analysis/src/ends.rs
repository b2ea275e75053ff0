//! The packets of two points on one time axis: if a clock was set during the run, its times are
//! corrected.

use crate::connections::FlowObserver;
use crate::feed::{Batch, Feed};
use crate::offload::{Segments, Side};
use crate::params::AnalysisError;
use slicewise_capture::matching::{Alignment, JumpView, Shift};
use slicewise_capture::{Jump, MOST_WRONG_STAMPS, PointFacts, SORT_WINDOW_NS, Sighting};
use slicewise_wire::Headers;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Sightings of each side examined before the first is matched, and around a clock step.
const PREFIX: usize = 1 << 16;

/// Sightings of each side usually sufficient to see that a jump is a pause.
const FEW: usize = 1 << 8;

/// Jumps per pass that may examine [`PREFIX`] sightings: 5 ms each.
const MOST_LONG_LOOKS: usize = 1 << 10;

/// Steps and wrong timestamps listed; further ones are only counted.
pub(crate) const MOST_NAMED: usize = 16;

/// A clock step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClockStep {
    /// Where.
    pub(crate) jump: Jump,
    /// By how much, ns.
    pub(crate) by_ns: i64,
}

/// Time facts of a point from comparing it with another.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointTimes {
    /// Number of clock steps.
    pub(crate) step_count: u64,
    /// The first of them.
    pub(crate) steps: Vec<ClockStep>,
    /// Packets with wrong timestamps at the beginning or end of the capture.
    pub(crate) wrong_stamp_count: u64,
    /// Where they start.
    pub(crate) wrong_stamps: Vec<WrongStamps>,
}

/// Consecutive packets with wrong timestamps.
#[derive(Debug, Clone)]
pub(crate) struct WrongStamps {
    /// Position of the first.
    pub(crate) jump: Jump,
    /// Its timestamp, ns.
    pub(crate) stamped_ns: u64,
}

/// Two points that were read completely.
pub(crate) struct Finished {
    pub(crate) sent: Result<(PointFacts, PointTimes), AnalysisError>,
    pub(crate) received: Result<(PointFacts, PointTimes), AnalysisError>,
    /// Headers of the flows of the receiving point.
    pub(crate) received_flows: Vec<Headers>,
    pub(crate) segments: Segments,
}

/// Two points being read.
pub(crate) struct Ends<'a, B> {
    sent: End,
    received: End,
    headers: &'a RefCell<Vec<Headers>>,
    flow_observer: &'a mut B,
    largest_delay_ns: u64,
    /// Clock of the receiving point − clock of the sending point, ns, at the beginning.
    offset_ns: i64,
    long_looks: usize,
    segments: Segments,
}

/// One of them.
struct End {
    feed: Feed,
    /// Received, not yet released.
    waiting: VecDeque<Batch>,
    /// Last released, as released.
    released: Vec<Sighting>,
    /// Headers of its flows.
    flows: Vec<Headers>,
    /// Sum of its clock steps so far, ns.
    set_by_ns: i64,
    newest_ns: u64,
    span_ns: Option<(u64, u64)>,
    times: PointTimes,
}

impl<'a, B: FlowObserver> Ends<'a, B> {
    pub(crate) fn new(
        [sent, received]: [Feed; 2],
        headers: &'a RefCell<Vec<Headers>>,
        flow_observer: &'a mut B,
        largest_delay_ns: u64,
    ) -> Self {
        Self {
            sent: End::new(sent),
            received: End::new(received),
            headers,
            flow_observer,
            largest_delay_ns,
            offset_ns: 0,
            long_looks: 0,
            segments: Segments::default(),
        }
    }

    /// The first sightings of both points up to the first pause or clock step; all examined if these
    /// share no packet.
    pub(crate) fn look_ahead(&mut self) -> (Vec<Sighting>, Vec<Sighting>) {
        self.fill(Side::Sent, PREFIX);
        self.fill(Side::Received, PREFIX);
        self.restore_head(Side::Sent);
        self.restore_head(Side::Received);
        let stretch = |end: &End| end.stretch(0, PREFIX, self.largest_delay_ns);
        let (sent, received) = (stretch(&self.sent), stretch(&self.received));
        if Alignment::probe(&sent, &received).is_some() {
            return (sent, received);
        }
        (self.sent.ahead(PREFIX), self.received.ahead(PREFIX))
    }

    /// How far the receiving clock is ahead, if by more than any delay; else 0.
    pub(crate) fn align(&mut self, sent: &[Sighting], received: &[Sighting]) -> i64 {
        let alignment = Alignment::probe(sent, received);
        self.offset_ns = alignment.map_or(0, |found| found.offset_ns(self.largest_delay_ns));
        self.offset_ns
    }

    /// Append the next sightings of a point; false at its end.
    pub(crate) fn pull(&mut self, side: Side, out: &mut Vec<Sighting>) -> bool {
        if self.end(side).waiting.is_empty() && !self.take(side) {
            return false;
        }
        let first = self.end_mut(side).waiting.front_mut();
        if let Some(jump) = first.and_then(|batch| batch.jump.take()) {
            self.decide(side, jump);
        }
        let end = match side {
            Side::Sent => &mut self.sent,
            Side::Received => &mut self.received,
        };
        let Some(mut batch) = end.waiting.pop_front() else {
            return false;
        };
        end.release(&mut batch);
        out.append(&mut batch.sightings);
        let flows = &end.flows;
        for segment in &batch.segments {
            if let Some(headers) = flows.get(segment.flow as usize) {
                self.segments.on_segment(side, headers, segment);
            }
        }
        if side == Side::Sent {
            self.flow_observer.on_segments(&batch.segments);
        }
        true
    }

    pub(crate) const fn have_failed(&self) -> bool {
        self.sent.feed.has_failed() || self.received.feed.has_failed()
    }

    /// Returns the results of reading the points, or the error.
    pub(crate) fn finish(self) -> Finished {
        Finished {
            received_flows: self.received.flows.clone(),
            segments: self.segments,
            sent: self.sent.finish(),
            received: self.received.finish(),
        }
    }

    const fn end(&self, side: Side) -> &End {
        match side {
            Side::Sent => &self.sent,
            Side::Received => &self.received,
        }
    }

    const fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Sent => &mut self.sent,
            Side::Received => &mut self.received,
        }
    }

    /// Take one more batch; false at the end.
    fn take(&mut self, side: Side) -> bool {
        let Some(mut batch) = self.end_mut(side).feed.receive() else {
            return false;
        };
        if !batch.new_flows.is_empty() {
            if side == Side::Sent {
                let mut headers = self.headers.borrow_mut();
                headers.extend_from_slice(&batch.new_flows);
                self.flow_observer.on_flows(&headers);
            }
            self.end_mut(side).flows.append(&mut batch.new_flows);
        }
        self.end_mut(side).waiting.push_back(batch);
        true
    }

    /// Read until this many sightings are waiting, if there are as many.
    fn fill(&mut self, side: Side, count: usize) {
        while self.end(side).waiting_count() < count && self.take(side) {}
    }

    /// A few packets at the beginning with timestamps unlike all that follow.
    fn restore_head(&mut self, side: Side) {
        let end = self.end(side);
        let (Some(head), Some(jump)) = (end.waiting.front(), end.waiting.get(1)) else {
            return;
        };
        let Some(jump) = jump
            .jump
            .clone()
            .filter(|_| is_far(jump, self.largest_delay_ns))
        else {
            return;
        };
        let count = head.sightings.len();
        if count > MOST_WRONG_STAMPS {
            return;
        }
        let after = end.stretch(1, PREFIX, self.largest_delay_ns);
        let other = self.end(side.other()).ahead(PREFIX);
        let view = JumpView {
            before: &head.sightings,
            after: &after,
            other: &other,
            jump_ns: difference(jump.after_ns, jump.before_ns),
            offset_ns: 0,
            largest_delay_ns: self.largest_delay_ns,
        };
        if !view.has_base() || !matches!(view.shift(|_, _| false), Shift::Set(_)) {
            return;
        }
        let time_ns = jump.after_ns;
        let end = self.end_mut(side);
        end.restore(Jump { record: 1, ..jump }, count, time_ns);
        if let Some(next) = end.waiting.get_mut(1) {
            next.jump = None;
        }
    }

    /// A pause or a clock step?
    fn decide(&mut self, side: Side, jump: Jump) {
        let end = self.end(side);
        let jump_ns = difference(end.corrected(jump.after_ns), end.newest_ns);
        if jump_ns.unsigned_abs() <= SORT_WINDOW_NS {
            return;
        }
        let mut shift = self.look_at(side, jump_ns, FEW);
        // What looks like a clock step must persist.
        if shift != Shift::Alike && self.long_looks < MOST_LONG_LOOKS {
            self.long_looks += 1;
            shift = self.look_at(side, jump_ns, PREFIX);
        }
        let by_ns = match shift {
            Shift::Set(by_ns) => by_ns,
            Shift::Alike | Shift::Unknown if self.both_go_back(side, jump_ns) => jump_ns,
            Shift::Alike | Shift::Unknown => return,
        };
        let short = self.short_stretch(side, by_ns);
        let end = self.end_mut(side);
        match short {
            Some(count) => {
                let time_ns = end.newest_ns.saturating_add_signed(end.set_by_ns);
                end.restore(jump, count, time_ns);
            }
            None => {
                end.set_by_ns = end.set_by_ns.saturating_add(by_ns);
                end.times.on_step(ClockStep { jump, by_ns });
            }
        }
    }

    fn look_at(&mut self, side: Side, jump_ns: i64, count: usize) -> Shift {
        self.fill(Side::Sent, count);
        self.fill(Side::Received, count);
        let (end, opposite) = (self.end(side), self.end(side.other()));
        let after = end.stretch(0, count, self.largest_delay_ns);
        let offset_ns = match side {
            Side::Sent => self.offset_ns.saturating_neg(),
            Side::Received => self.offset_ns,
        };
        let at_ns = end
            .newest_ns
            .saturating_add_signed(offset_ns.saturating_neg());
        let other = opposite.around(at_ns, count);
        let view = JumpView {
            before: last(&end.released, count),
            after: &after,
            other: &other,
            jump_ns,
            offset_ns,
            largest_delay_ns: self.largest_delay_ns,
        };
        if count < PREFIX && !view.has_base() {
            return Shift::Unknown;
        }
        let of = |flow: u32| end.flows.get(flow as usize);
        view.shift(|one, other| of(one).zip(of(other)).is_some_and(|(a, b)| answers(a, b)))
    }

    /// Returns true if the other point goes back by about as much: both were captured by one clock.
    fn both_go_back(&self, side: Side, jump_ns: i64) -> bool {
        let goes_back = |jump: &Jump| {
            let other_ns = difference(jump.after_ns, jump.before_ns);
            other_ns.abs_diff(jump_ns) <= self.largest_delay_ns
        };
        let back = jump_ns < 0 && jump_ns.unsigned_abs() > self.largest_delay_ns * 2;
        let jumps = self.end(side.other()).waiting.iter();
        back && jumps.filter_map(|batch| batch.jump.as_ref()).any(goes_back)
    }

    /// Number of packets until the clock returns to its former time, or until the end of the capture, if
    /// few: their timestamps are wrong.
    fn short_stretch(&mut self, side: Side, by_ns: i64) -> Option<usize> {
        if by_ns.unsigned_abs() <= self.largest_delay_ns {
            return None;
        }
        // One batch more: whether it jumps shows where the stretch ends.
        self.fill(side, MOST_WRONG_STAMPS + 1);
        let end = self.end(side);
        let stretch = end.stretch(0, PREFIX, self.largest_delay_ns).len();
        let next = end.far_jumps(0, self.largest_delay_ns).next();
        let returns = next.is_none_or(|jump| {
            let back_ns = difference(jump.after_ns, jump.before_ns);
            back_ns.saturating_add(by_ns).unsigned_abs() <= self.largest_delay_ns
        });
        (stretch <= MOST_WRONG_STAMPS && returns).then_some(stretch)
    }
}

impl End {
    fn new(feed: Feed) -> Self {
        Self {
            feed,
            waiting: VecDeque::new(),
            released: Vec::new(),
            flows: Vec::new(),
            set_by_ns: 0,
            newest_ns: 0,
            span_ns: None,
            times: PointTimes::default(),
        }
    }

    fn waiting_count(&self) -> usize {
        self.waiting.iter().map(|batch| batch.sightings.len()).sum()
    }

    const fn corrected(&self, time_ns: u64) -> u64 {
        time_ns.saturating_add_signed(self.set_by_ns.saturating_neg())
    }

    /// The first waiting ones, by the current clock.
    fn ahead(&self, count: usize) -> Vec<Sighting> {
        let waiting = self.waiting.iter().flat_map(|batch| &batch.sightings);
        waiting
            .take(count)
            .map(|one| self.brought_back(one))
            .collect()
    }

    /// Released and waiting ones, this many before and after a time; all if many are requested.
    fn around(&self, at_ns: u64, count: usize) -> Vec<Sighting> {
        if count >= PREFIX {
            let mut all = self.released.clone();
            all.extend(self.ahead(count));
            return all;
        }
        let at = self.released.partition_point(|one| one.time_ns <= at_ns);
        let end = at.saturating_add(count);
        let released = at.saturating_sub(count)..end.min(self.released.len());
        let mut around = self.released[released].to_vec();
        around.extend(self.ahead(end.saturating_sub(self.released.len())));
        around
    }

    /// Returns the sightings of batch `from` and later, up to where times jump by more than any delay.
    fn stretch(&self, from: usize, count: usize, largest_delay_ns: u64) -> Vec<Sighting> {
        let far = |batch: &Batch| is_far(batch, largest_delay_ns);
        let behind = self.waiting.iter().skip(from + 1);
        let batches = 1 + behind.take_while(|batch| !far(batch)).count();
        let stretch = self.waiting.iter().skip(from).take(batches);
        let sightings = stretch.flat_map(|batch| &batch.sightings);
        sightings
            .take(count)
            .map(|one| self.brought_back(one))
            .collect()
    }

    /// Jumps after batch `from` by more than any delay, or backwards.
    fn far_jumps(&self, from: usize, largest_delay_ns: u64) -> impl Iterator<Item = &Jump> {
        let behind = self.waiting.iter().skip(from + 1);
        let far = behind.filter(move |batch| is_far(batch, largest_delay_ns));
        far.filter_map(|batch| batch.jump.as_ref())
    }

    fn brought_back(&self, sighting: &Sighting) -> Sighting {
        Sighting {
            time_ns: self.corrected(sighting.time_ns),
            ..*sighting
        }
    }

    /// Release: correct times, and keep what was released.
    fn release(&mut self, batch: &mut Batch) {
        if self.set_by_ns != 0 {
            for sighting in &mut batch.sightings {
                sighting.time_ns = self.corrected(sighting.time_ns);
            }
            for segment in &mut batch.segments {
                segment.time_ns = self.corrected(segment.time_ns);
            }
        }
        let times = || batch.sightings.iter().map(|one| one.time_ns);
        if let (Some(first), Some(last)) = (times().min(), times().max()) {
            self.newest_ns = last;
            let (begin, end) = self.span_ns.unwrap_or((first, last));
            self.span_ns = Some((begin.min(first), end.max(last)));
        }
        if self.released.len() > 2 * PREFIX {
            self.released.drain(..self.released.len() - PREFIX);
        }
        self.released.extend_from_slice(&batch.sightings);
    }

    /// The first `count` waiting ones have wrong timestamps: replaced by `time_ns`.
    fn restore(&mut self, jump: Jump, count: usize, time_ns: u64) {
        let first = self
            .waiting
            .front()
            .and_then(|batch| batch.sightings.first());
        let stamped_ns = first.map_or(0, |first| first.time_ns);
        let mut left = count;
        for batch in &mut self.waiting {
            let taken = left.min(batch.sightings.len());
            for sighting in batch.sightings.iter_mut().take(taken) {
                sighting.time_ns = time_ns;
                sighting.time_is_restored = true;
            }
            self.times.wrong_stamp_count += taken as u64;
            left -= taken;
        }
        if self.times.wrong_stamps.len() < MOST_NAMED {
            let place = WrongStamps { jump, stamped_ns };
            self.times.wrong_stamps.push(place);
        }
    }

    fn finish(self) -> Result<(PointFacts, PointTimes), AnalysisError> {
        let mut facts = self.feed.end()?;
        facts.counts.first_ns = self.span_ns.map(|(first, _)| first);
        facts.counts.last_ns = self.span_ns.map(|(_, last)| last);
        Ok((facts, self.times))
    }
}

impl PointTimes {
    fn on_step(&mut self, step: ClockStep) {
        self.step_count += 1;
        if self.steps.len() < MOST_NAMED {
            self.steps.push(step);
        }
    }
}

fn is_far(batch: &Batch, largest_delay_ns: u64) -> bool {
    batch.jump.as_ref().is_some_and(|jump| {
        jump.after_ns < jump.before_ns || jump.after_ns - jump.before_ns > largest_delay_ns
    })
}

fn answers(one: &Headers, other: &Headers) -> bool {
    one.protocol == other.protocol
        && (one.source, one.source_port) == (other.destination, other.destination_port)
        && (one.destination, one.destination_port) == (other.source, other.source_port)
}

fn last(sightings: &[Sighting], count: usize) -> &[Sighting] {
    &sightings[sightings.len().saturating_sub(count)..]
}

fn difference(one_ns: u64, other_ns: u64) -> i64 {
    let signed = |ns| i64::try_from(ns).unwrap_or(i64::MAX);
    signed(one_ns) - signed(other_ns)
}
