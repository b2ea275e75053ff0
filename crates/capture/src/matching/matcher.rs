//! The matcher: one window, one index, and a linked list of packets per flow.

use super::index::{Found, Index, Vacant};
use super::late::LostKeys;
use super::observer::{AmbiguousGroup, MatchCounts, MatchObserver, SendOrder};
use super::sent_flows::SentFlows;
use super::window::{Entry, State, Window};
use crate::Sighting;

/// Parameters of matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchParams {
    /// How long to wait for a packet at the other point, ns: the threshold beyond which a packet counts
    /// as lost (RFC 7680, section 2.5), and within which equal keys are indistinguishable.
    pub timeout_ns: u64,
    /// Estimate of the clock of the receiving point minus that of the sending point, ns. Used only for
    /// ordering; times are reported as captured.
    pub alignment_ns: i64,
    /// Most packets held at a time; beyond that, the oldest are decided early and counted.
    pub most_entries: u32,
}

impl Default for MatchParams {
    fn default() -> Self {
        Self {
            timeout_ns: 5_000_000_000,
            alignment_ns: 0,
            most_entries: 8_000_000,
        }
    }
}

/// Matches packets seen at two points by their keys.
///
/// Two sightings match if their keys are equal and their times, on one clock, differ by no more than the
/// time-out in either direction. Within that:
///
/// - Sent once and received once: matched. Further copies are duplicates (RFC 5560), not receptions.
/// - Sent once and not received: lost, even if a copy arrives after the time-out (RFC 7680); that copy
///   counts as seen at the receiver only.
/// - Sent again while the fate of the first is open: all ambiguous. Each resend extends the wait by a
///   time-out. None of them contributes a delay or a loss; the minimum number lost in the group is
///   reported when it closes.
/// - Sent again after the first was received: the first stays matched, because it was received before
///   the second left; the later ones, and copies received after them, are ambiguous.
/// - Received twice before it was sent: ambiguous, because it may be a packet of the other direction
///   that was sent twice.
///
/// Sightings may be slightly out of order, as long as none is further behind [`advance`](Self::advance)
/// than [`slack_ns`](MatchParams::slack_ns). Nothing is held longer than two time-outs except groups
/// that keep being resent.
#[derive(Debug, Clone)]
pub struct Matcher {
    params: MatchParams,
    timeout_ns: i64,
    window: Window,
    index: Index,
    sent_flows: SentFlows,
    /// Position of the last match of each flow of the receiving point.
    last_matched: Vec<u32>,
    lost_keys: LostKeys,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    counts: MatchCounts,
    /// How often the list of a flow did not lead to the packet received.
    searched: u64,
    /// True if that was so for many of the last packets.
    is_searching: bool,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    facts: AmbiguousGroup,
    /// Time it was last sent, or else first received; aligned.
    time_ns: i64,
}

impl MatchParams {
    /// How late a sighting may be relative to the latest of its point, ns.
    #[must_use]
    pub const fn slack_ns(&self) -> u64 {
        self.timeout_ns / SLACK_OF_TIMEOUT
    }

    /// Converts a time of the receiving point to the clock of the sending point.
    #[inline]
    pub(super) fn align_received(&self, time_ns: u64) -> i64 {
        align_sent(time_ns).saturating_sub(self.alignment_ns)
    }
}

/// A time of the sending point, the common clock.
#[inline]
pub(super) fn align_sent(time_ns: u64) -> i64 {
    i64::try_from(time_ns).unwrap_or(i64::MAX)
}

impl Matcher {
    /// Match with `params`.
    #[must_use]
    pub fn new(params: MatchParams) -> Self {
        let most_entries = params.most_entries.clamp(1, MOST_ENTRIES);
        Self {
            params: MatchParams {
                most_entries,
                ..params
            },
            timeout_ns: i64::try_from(params.timeout_ns).unwrap_or(i64::MAX),
            window: Window::new(),
            index: Index::new(),
            sent_flows: SentFlows::default(),
            last_matched: Vec::new(),
            lost_keys: LostKeys::default(),
            groups: Vec::new(),
            free_groups: Vec::new(),
            counts: MatchCounts::default(),
            searched: 0,
            is_searching: false,
        }
    }

    /// The parameters in use.
    #[must_use]
    pub const fn params(&self) -> &MatchParams {
        &self.params
    }

    /// Counts so far.
    #[must_use]
    pub const fn counts(&self) -> &MatchCounts {
        &self.counts
    }

    /// Packets of each flow of the sending point so far, modulo 2³²; none of flows beyond the first million.
    pub fn sent_in_flows(&self) -> impl Iterator<Item = u32> {
        self.sent_flows.packets()
    }

    /// Shortest time after which flows of the sending point repeat a packet, ns: one number for each flow
    /// that does. Such packets are matched by time alone if that is longer than the time-out, and
    /// ambiguous if it is not.
    pub fn periods_ns(&self) -> impl Iterator<Item = u64> {
        self.sent_flows.periods_ns()
    }

    /// Heap memory in use, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.window.memory_bytes()
            + self.index.memory_bytes()
            + self.sent_flows.memory_bytes()
            + self.lost_keys.memory_bytes()
            + self.last_matched.capacity() * size_of::<u32>()
            + self.groups.capacity() * size_of::<Group>()
            + self.free_groups.capacity() * size_of::<u32>()
    }

    /// Sightings of the sending point.
    pub fn on_sent_batch<O: MatchObserver>(&mut self, batch: &[Sighting], observer: &mut O) {
        for chunk in batch.chunks(TOUCHED_AT_ONCE as usize) {
            self.touch(chunk.iter().map(|sent| sent.key));
            for sent in chunk {
                self.on_sent(sent, observer);
            }
        }
    }

    /// Sightings of the receiving point.
    pub fn on_received_batch<O: MatchObserver>(&mut self, batch: &[Sighting], observer: &mut O) {
        for chunk in batch.chunks(TOUCHED_AT_ONCE as usize) {
            if self.is_searching {
                self.touch(chunk.iter().map(|received| received.key));
            }
            let searched = self.searched;
            for received in chunk {
                self.on_received(received, observer);
            }
            self.is_searching = self.searched - searched > SEARCHES_TO_TOUCH;
        }
    }

    /// No further sighting of either point will be before `horizon_ns` (clock of the sending point):
    /// packets that have waited longer than a time-out plus [`slack_ns`](MatchParams::slack_ns) are
    /// decided.
    pub fn advance<O: MatchObserver>(&mut self, horizon_ns: i64, observer: &mut O) {
        let slack = i64::try_from(self.params.slack_ns()).unwrap_or(i64::MAX);
        let before = horizon_ns
            .saturating_sub(self.timeout_ns)
            .saturating_sub(slack);
        self.retire_while(
            |matcher, oldest| {
                let is_due = |position| matcher.time_of(matcher.window.get(position)) < before;
                // A wrong timestamp far ahead must not delay all that follow.
                is_due(oldest)
                    || (matcher.time_of(matcher.window.get(oldest)) > horizon_ns
                        && matcher.window.second_oldest().is_some_and(is_due))
            },
            observer,
        );
    }

    /// No more sightings will come: everything open is decided.
    pub fn finish<O: MatchObserver>(&mut self, observer: &mut O) {
        let oldest = self.window.oldest().unwrap_or_default();
        for offset in 0..self.window.len() {
            self.settle(oldest.wrapping_add(offset), observer);
        }
        self.window.clear();
        self.index.clear();
    }

    /// A sighting of the sending point.
    #[inline]
    pub fn on_sent<O: MatchObserver>(&mut self, sent: &Sighting, observer: &mut O) {
        self.counts.sent += 1;
        if let Some(flow) = self.sent_flows.flow(sent.flow) {
            flow.on_sent(sent.key, sent.time_ns);
        }
        observer.on_sent(sent);
        match self.find(sent.key) {
            Ok(found) => self.on_sent_again(found, sent, observer),
            Err(vacant) => {
                let position = self.push_sent(sent, State::Sent);
                self.index.occupy(vacant, position);
            }
        }
        self.make_room(observer);
    }

    /// A sighting of the receiving point.
    #[inline]
    pub fn on_received<O: MatchObserver>(&mut self, received: &Sighting, observer: &mut O) {
        self.counts.received += 1;
        if let Some(position) = self.next_of_flow(received) {
            self.match_at(position, received, observer);
            return;
        }
        self.on_received_out_of_turn(received, observer);
    }

    fn on_received_out_of_turn<O: MatchObserver>(&mut self, received: &Sighting, observer: &mut O) {
        self.searched += 1;
        let found = match self.find(received.key) {
            Ok(found) => found,
            Err(vacant) => {
                let position = self.push(received, State::Received, 0);
                self.index.occupy(vacant, position);
                self.make_room(observer);
                return;
            }
        };
        let entry = *self.window.get(found.position);
        if !self.is_within(&entry, self.params.align_received(received.time_ns)) {
            self.settle(found.position, observer);
            let position = self.push(received, State::Received, 0);
            self.index.replace(found, position);
            return;
        }
        match entry.state {
            State::Sent => self.match_at(found.position, received, observer),
            State::Matched => {
                self.counts.duplicates += 1;
                observer.on_duplicate(&entry.sighting(), received);
            }
            State::Received => {
                let first = entry.sighting();
                let group = self.open_group(AmbiguousGroup {
                    first_sent: None,
                    first_received: Some(first),
                    sent: 0,
                    received: 1,
                });
                observer.on_ambiguous_received(None, &first);
                let time_ns = self.time_of(&entry);
                let entry = self.window.get_mut(found.position);
                entry.state = State::Ambiguous;
                entry.link = group;
                self.join_received(group, received, time_ns, observer);
            }
            State::Ambiguous => {
                let time_ns = self.time_of(&entry);
                self.join_received(entry.link, received, time_ns, observer);
            }
            State::Decided => debug_assert!(false, "decided packets are not in the index"),
        }
    }

    /// A key in the index is sent (again).
    #[cold]
    fn on_sent_again<O: MatchObserver>(&mut self, found: Found, sent: &Sighting, observer: &mut O) {
        let entry = *self.window.get(found.position);
        let time_ns = align_sent(sent.time_ns);
        let position = if !self.is_within(&entry, time_ns) {
            self.settle(found.position, observer);
            self.push_sent(sent, State::Sent)
        } else if entry.state == State::Received {
            self.window.get_mut(found.position).state = State::Decided;
            let position = self.push_sent(sent, State::Matched);
            self.counts.received_first += 1;
            self.report_match(position, &entry.sighting(), observer);
            position
        } else {
            let group = match entry.state {
                State::Ambiguous => entry.link,
                State::Sent => {
                    let first = entry.sighting();
                    observer.on_ambiguous_sent(&first);
                    self.open_group(AmbiguousGroup {
                        first_sent: Some(first),
                        first_received: None,
                        sent: 1,
                        received: 0,
                    })
                }
                _ => self.open_group(AmbiguousGroup {
                    first_sent: None,
                    first_received: None,
                    sent: 0,
                    received: 0,
                }),
            };
            self.window.get_mut(found.position).state = State::Decided;
            self.join_sent(group, sent, observer);
            self.push(sent, State::Ambiguous, group)
        };
        self.index.replace(found, position);
    }

    /// The packet received is often the next one its flow sent after the last one received, or a few
    /// further on if some were lost: no search needed.
    #[inline]
    fn next_of_flow(&self, received: &Sighting) -> Option<u32> {
        let mut position = *self.last_matched.get(received.flow as usize)?;
        for _ in 0..FOLLOWED_IN_FLOW {
            if !self.window.holds(position) {
                return None;
            }
            let next = self.window.get(position).link;
            if next == position || !self.window.holds(next) {
                return None;
            }
            let entry = self.window.get(next);
            if entry.key == received.key && entry.state == State::Sent {
                let arrived = self.params.align_received(received.time_ns);
                let apart = arrived.saturating_sub(align_sent(entry.time_ns));
                return (apart.saturating_abs() <= self.timeout_ns).then_some(next);
            }
            position = next;
        }
        None
    }

    #[inline]
    fn match_at<O: MatchObserver>(&mut self, position: u32, received: &Sighting, observer: &mut O) {
        self.window.get_mut(position).state = State::Matched;
        self.report_match(position, received, observer);
    }

    #[inline]
    fn report_match<O: MatchObserver>(
        &mut self,
        position: u32,
        received: &Sighting,
        observer: &mut O,
    ) {
        self.counts.matched += 1;
        if let Some(last) = of_flow(&mut self.last_matched, received.flow) {
            // A late packet must not move the list back.
            let ahead = position.wrapping_sub(*last);
            if ahead <= self.window.len() || !self.window.holds(*last) {
                *last = position;
            }
        }
        let sent = self.window.get(position).sighting();
        let is_numbered = self.sent_flows.is_numbered(sent.flow);
        let order = SendOrder {
            overall: self.window.order(position),
            in_flow: is_numbered.then(|| self.window.in_flow(position)),
        };
        observer.on_received(&sent, received, order);
    }

    /// Store a packet sent and link it to the previous one of its flow.
    #[inline]
    fn push_sent(&mut self, sent: &Sighting, state: State) -> u32 {
        let position = self.window.next_position();
        self.push(sent, state, position);
        if let Some(flow) = self.sent_flows.flow(sent.flow) {
            self.window.set_in_flow(position, flow.number);
            let before = std::mem::replace(&mut flow.last, position);
            if before != position && self.window.holds(before) {
                let entry = self.window.get_mut(before);
                // Positions have 32 bits: after 2³² packets it may be another's.
                let is_threaded =
                    matches!(entry.state, State::Sent | State::Matched | State::Decided);
                if is_threaded && entry.flow == sent.flow {
                    entry.link = position;
                }
            }
        }
        position
    }

    #[inline]
    fn push(&mut self, sighting: &Sighting, state: State, link: u32) -> u32 {
        let position = self.window.next_position();
        self.window.push(Entry::new(sighting, state, link));
        let entries = u64::from(self.window.len().min(self.params.most_entries));
        self.counts.peak_entries = self.counts.peak_entries.max(entries);
        position
    }

    #[inline]
    fn make_room<O: MatchObserver>(&mut self, observer: &mut O) {
        while self.window.len() > self.params.most_entries {
            self.retire_early(observer);
        }
    }

    #[cold]
    fn retire_early<O: MatchObserver>(&mut self, observer: &mut O) {
        let Some(oldest) = self.window.oldest() else {
            return;
        };
        match self.window.get(oldest).state {
            State::Decided => {}
            State::Matched => self.counts.forgotten_early += 1,
            State::Sent | State::Received | State::Ambiguous => self.counts.decided_early += 1,
        }
        self.retire_oldest(observer);
    }

    fn retire_while<O: MatchObserver>(
        &mut self,
        is_due: impl Fn(&Self, u32) -> bool,
        observer: &mut O,
    ) {
        let mut retired = 0_u32;
        while let Some(oldest) = self.window.oldest()
            && is_due(self, oldest)
        {
            if retired.is_multiple_of(TOUCHED_AT_ONCE) {
                let ahead = (0..TOUCHED_AT_ONCE.min(self.window.len()))
                    .map(|offset| self.window.get(oldest.wrapping_add(offset)).key);
                self.touch(ahead);
            }
            retired += 1;
            self.retire_oldest(observer);
        }
    }

    #[inline]
    fn retire_oldest<O: MatchObserver>(&mut self, observer: &mut O) {
        let Some(oldest) = self.window.oldest() else {
            return;
        };
        let entry = self.window.get(oldest);
        if entry.state != State::Decided {
            let key = entry.key;
            self.index.remove(key, oldest);
            self.settle(oldest, observer);
        }
        self.window.pop();
    }

    /// Report the fate of an entry that is no longer waiting. Its key must leave the index or map to
    /// another entry.
    #[inline]
    fn settle<O: MatchObserver>(&mut self, position: u32, observer: &mut O) {
        let entry = *self.window.get(position);
        self.window.get_mut(position).state = State::Decided;
        match entry.state {
            State::Matched | State::Decided => {}
            State::Sent => {
                self.counts.lost += 1;
                self.lost_keys.on_lost(entry.key, align_sent(entry.time_ns));
                observer.on_lost(&entry.sighting(), self.window.order(position));
            }
            State::Received => {
                self.counts.unsent += 1;
                let at_ns = self.params.align_received(entry.time_ns);
                if let Some(ago_ns) = self.lost_keys.sent_ago(entry.key, at_ns) {
                    self.counts.late += 1;
                    self.counts.largest_late_ns = self.counts.largest_late_ns.max(ago_ns);
                }
                observer.on_unsent(&entry.sighting());
            }
            State::Ambiguous => self.close_group(entry.link, observer),
        }
    }

    #[cold]
    fn open_group(&mut self, facts: AmbiguousGroup) -> u32 {
        self.counts.ambiguous_groups += 1;
        self.counts.ambiguous_sent += facts.sent;
        self.counts.ambiguous_received += facts.received;
        let group = Group {
            facts,
            time_ns: i64::MIN,
        };
        if let Some(free) = self.free_groups.pop() {
            self.groups[free as usize] = group;
            return free;
        }
        self.groups.push(group);
        u32::try_from(self.groups.len() - 1).unwrap_or(u32::MAX)
    }

    fn close_group<O: MatchObserver>(&mut self, group: u32, observer: &mut O) {
        let facts = self.groups[group as usize].facts;
        self.counts.ambiguous_lost += facts.lost_at_least();
        self.free_groups.push(group);
        observer.on_ambiguous_closed(&facts);
    }

    fn join_sent<O: MatchObserver>(&mut self, group: u32, sent: &Sighting, observer: &mut O) {
        self.counts.ambiguous_sent += 1;
        let group = &mut self.groups[group as usize];
        group.facts.sent += 1;
        group.facts.first_sent.get_or_insert(*sent);
        group.time_ns = align_sent(sent.time_ns);
        observer.on_ambiguous_sent(sent);
    }

    fn join_received<O: MatchObserver>(
        &mut self,
        group: u32,
        received: &Sighting,
        time_ns: i64,
        observer: &mut O,
    ) {
        self.counts.ambiguous_received += 1;
        let group = &mut self.groups[group as usize];
        group.facts.received += 1;
        group.facts.first_received.get_or_insert(*received);
        group.time_ns = time_ns;
        let first_sent = group.facts.first_sent;
        observer.on_ambiguous_received(first_sent.as_ref(), received);
    }

    #[inline]
    fn find(&self, key: u64) -> Result<Found, Vacant> {
        self.index
            .find(key, |position| self.window.get(position).key == key)
    }

    /// Time it was seen, by the clock of the sending point.
    #[inline]
    fn time_of(&self, entry: &Entry) -> i64 {
        match entry.state {
            State::Sent | State::Matched => align_sent(entry.time_ns),
            State::Received => self.params.align_received(entry.time_ns),
            State::Ambiguous => self.groups[entry.link as usize].time_ns,
            State::Decided => i64::MIN,
        }
    }

    #[inline]
    fn is_within(&self, entry: &Entry, time_ns: i64) -> bool {
        let apart = time_ns.saturating_sub(self.time_of(entry));
        apart.saturating_abs() <= self.timeout_ns
    }

    /// Overlaps the cache misses of several searches.
    #[inline]
    fn touch(&self, keys: impl Iterator<Item = u64>) {
        let touched = keys.fold(0, |touched, key| touched ^ self.index.touch(key));
        std::hint::black_box(touched);
    }
}

/// The slot of a flow, created if absent; `None` for flows beyond the limit.
#[inline]
fn of_flow(positions: &mut Vec<u32>, flow: u32) -> Option<&mut u32> {
    let flow = flow as usize;
    if flow >= positions.len() {
        if flow >= super::sent_flows::MOST_THREADED_FLOWS {
            return None;
        }
        positions.resize((flow + 1).next_power_of_two(), u32::MAX);
    }
    positions.get_mut(flow)
}

/// Packets followed in a flow before searching: the longest gap bridged.
const FOLLOWED_IN_FLOW: u32 = 4;

/// Upper limit of the window: 32 GB.
const MOST_ENTRIES: u32 = 1 << 30;

/// Searches whose cache misses are overlapped.
const TOUCHED_AT_ONCE: u32 = 16;

/// Fewest searches in such a group for which touching pays off.
const SEARCHES_TO_TOUCH: u64 = 2;

/// A fiftieth of the time-out: 100 ms of 5 s.
const SLACK_OF_TIMEOUT: u64 = 50;
