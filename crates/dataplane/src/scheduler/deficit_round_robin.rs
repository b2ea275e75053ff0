//! Deficit round robin (Shreedhar & Varghese, SIGCOMM 1995).
//!
//! Backlogged children take turns; at its turn a child's deficit grows by its quantum and it
//! sends while the deficit covers its frames. From when two children became backlogged, and while
//! they stay so and may send, what they sent divided by their weights differs by less than one
//! quantum plus one frame. With quanta of at least one largest frame a decision takes O(1).
//!
//! A child that must wait for its shaper when its turn comes is skipped and keeps its quantum. As soon
//! as possible, it sends that ahead of the others, and gets no further quantum before it is used up: so
//! a shaper below its fair share gets its rate whatever the quanta, and no child accumulates more than
//! one turn. Such children are checked first: one step each per decision.

use super::choice::{Offers, Step};
use super::offer::Offer;
use slicewise_units::{FrameLengths, Instant};

/// Quantum in bytes of the child with the smallest weight: a largest frame with two VLAN tags, so
/// that every turn sends at least one frame.
pub const QUANTUM_BYTES: u32 = 1522;

/// Where weights change, quanta are in bytes with so many bits after the binary point.
const WEIGHT_SHIFT: u32 = 16;
/// The largest quantum: turns of any number of frames leave room for the cost of others.
const QUANTUM_MAX: i64 = i64::MAX >> 8;

/// End of the ring, or not in it.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Added at each turn, in bytes × the smallest weight.
    quantum: i64,
    /// Amount that may still be sent in this turn, in bytes × the smallest weight.
    deficit: i64,
    /// It has had its quantum for this turn.
    granted: bool,
    /// It is in the list of those that wait with a quantum.
    listed: bool,
    next: u32,
    previous: u32,
    in_ring: bool,
}

/// The ring of backlogged children.
#[derive(Debug, Clone)]
pub struct DeficitRoundRobin {
    turns: Vec<Turn>,
    /// The child whose turn it is.
    current: u32,
    /// Its next frame does not fit in its turn.
    is_over: bool,
    ring_len: u32,
    /// Children whose turn came while they had to wait. Entries may be out of date.
    waiting: Vec<u32>,
    /// Quanta are multiples of the weights by a largest frame, and frames cost their length by
    /// this: so quanta are no larger than they must be, and shares are exact.
    least_weight: i64,
    search: Search,
}

/// How far a decision has come, while it waits for the offer of a child.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// Entries of `waiting` that were looked at.
    looked_at: u32,
    /// Children in turn that had to wait, one after another.
    had_to_wait: u32,
    /// When the first of all that had to wait need wait no longer.
    earliest: Instant,
}

impl Search {
    const START: Self = Self {
        looked_at: 0,
        had_to_wait: 0,
        earliest: Instant::MAX,
    };
}

impl DeficitRoundRobin {
    /// One child per weight; a weight of 0 counts as 1.
    #[must_use]
    pub fn new(weights: &[u32]) -> Self {
        let turns = weights
            .iter()
            .map(|&weight| Turn {
                quantum: i64::from(weight.max(1)) * i64::from(QUANTUM_BYTES),
                deficit: 0,
                granted: false,
                listed: false,
                next: NONE,
                previous: NONE,
                in_ring: false,
            })
            .collect();
        let least = weights.iter().copied().min().unwrap_or(1).max(1);
        Self {
            turns,
            current: NONE,
            is_over: false,
            ring_len: 0,
            waiting: Vec::with_capacity(weights.len()),
            least_weight: i64::from(least),
            search: Search::START,
        }
    }

    /// Other weights from the next quantum of each child on. Deficits stay as they are, so a
    /// ring whose weights change is given all of them like this, those before the first frame too.
    pub(crate) fn set_weights(&mut self, weights: impl Iterator<Item = u64> + Clone) {
        let least = u128::from(weights.clone().min().unwrap_or(1).max(1));
        for (turn, weight) in self.turns.iter_mut().zip(weights) {
            let scaled = (u128::from(weight.max(1)) * u128::from(QUANTUM_BYTES)) << WEIGHT_SHIFT;
            let quantum = i64::try_from(scaled / least).unwrap_or(QUANTUM_MAX);
            turn.quantum = quantum.min(QUANTUM_MAX);
        }
        self.least_weight = 1 << WEIGHT_SHIFT;
    }

    /// First those that kept a turn and need wait no longer; then round the ring from the current
    /// turn until a child may send. If all children of a round must wait, so must the node.
    #[inline(always)]
    pub(super) fn select(&mut self, offers: Offers<'_>) -> Step {
        // Usually nobody waits: then turns end until the frame of a child fits in its own.
        if self.waiting.is_empty() && self.search.earliest == Instant::MAX {
            self.end_turn_if_over();
            while let Some(offer) = offers.of(self.current)
                && offer.is_ready()
            {
                if self.try_turn(offers.head(offer).lengths) {
                    self.search.looked_at = 0;
                    self.search.had_to_wait = 0;
                    return Step::answer(offer);
                }
                self.search.had_to_wait = 0;
                self.end_turn();
            }
        }
        self.search(offers)
    }

    #[inline(never)]
    fn search(&mut self, offers: Offers<'_>) -> Step {
        let mut search = self.search;
        let step = match self.find_postponed(offers, &mut search) {
            Some(step) => step,
            None => self.find_in_turn(offers, &mut search),
        };
        self.search = match step.answered() {
            Err(_) => search,
            Ok(_) => Search::START,
        };
        step
    }

    #[inline]
    fn find_postponed(&mut self, offers: Offers<'_>, search: &mut Search) -> Option<Step> {
        while (search.looked_at as usize) < self.waiting.len() {
            let Some(position) = self.postponed(search.looked_at as usize) else {
                continue;
            };
            let Some(offer) = offers.of(position) else {
                return Some(Step::ask(position));
            };
            if !offer.is_ready() {
                search.earliest = search.earliest.min(offer.until);
            } else if self.try_postponed(position, offers.head(offer).lengths) {
                return Some(Step::answer(offer.until(search.earliest)));
            }
            search.looked_at += 1;
        }
        None
    }

    #[inline]
    fn find_in_turn(&mut self, offers: Offers<'_>, search: &mut Search) -> Step {
        // Those that are postponed from here on had their turn in this decision.
        search.looked_at = u32::MAX;
        if self.end_turn_if_over() {
            search.had_to_wait = 0;
        }
        while search.had_to_wait < self.ring_len {
            let current = self.current;
            let Some(offer) = offers.of(current) else {
                return Step::ask(current);
            };
            if !offer.is_ready() {
                search.earliest = search.earliest.min(offer.until);
                search.had_to_wait += 1;
                self.postpone_turn();
            } else if self.try_turn(offers.head(offer).lengths) {
                return Step::answer(offer.until(search.earliest));
            } else {
                search.had_to_wait = 0;
                self.end_turn();
            }
        }
        Step::answer(Offer::wait(search.earliest))
    }

    /// A child got its first frame: it joins the ring just before the current turn, that is last.
    pub(super) fn on_backlogged(&mut self, position: u32) -> bool {
        let was_empty = self.ring_len == 0;
        if self.turns[position as usize].in_ring {
            return was_empty;
        }
        let (previous, next) = if self.current == NONE {
            self.current = position;
            (position, position)
        } else {
            (self.turns[self.current as usize].previous, self.current)
        };
        let turn = &mut self.turns[position as usize];
        turn.in_ring = true;
        turn.deficit = 0;
        turn.granted = false;
        turn.previous = previous;
        turn.next = next;
        self.turns[previous as usize].next = position;
        self.turns[next as usize].previous = position;
        self.ring_len += 1;
        was_empty
    }

    /// A child has no frames left: it leaves the ring and forfeits its deficit. Returns whether it was
    /// the last.
    pub(super) fn on_emptied(&mut self, position: u32) -> bool {
        let turn = &mut self.turns[position as usize];
        if turn.in_ring {
            turn.in_ring = false;
            let (previous, next) = (turn.previous, turn.next);
            self.turns[previous as usize].next = next;
            self.turns[next as usize].previous = previous;
            self.ring_len -= 1;
            if self.ring_len == 0 {
                self.current = NONE;
            } else if self.current == position {
                self.current = next;
            }
        }
        self.ring_len == 0
    }

    /// Charge a frame sent by its turn.
    pub(super) fn charge(&mut self, position: u32, lengths: FrameLengths) {
        self.turns[position as usize].deficit -= self.cost(lengths);
    }

    /// Returns true if the child at `position` may send a frame of these lengths next, in the same turn. If not, and no
    /// other can be its next one, its turn is over.
    #[inline]
    pub(super) fn goes_on(&mut self, position: u32, next: FrameLengths, is_certain: bool) -> bool {
        if position != self.current {
            return false;
        }
        let goes_on = self.turns[position as usize].deficit >= self.cost(next);
        self.is_over = is_certain && !goes_on;
        goes_on
    }

    /// The turn of the child at `position`, if it has it now.
    #[inline]
    pub(super) fn current(&mut self, position: u32) -> Option<CurrentTurn<'_>> {
        let turn = self.turns.get_mut(position as usize)?;
        (position == self.current).then_some(CurrentTurn {
            deficit: &mut turn.deficit,
            is_over: &mut self.is_over,
            least_weight: self.least_weight,
        })
    }

    #[inline]
    fn cost(&self, lengths: FrameLengths) -> i64 {
        cost(lengths, self.least_weight)
    }

    /// End the current turn if that is known to be over. Only when the next is decided on: until then, a child that gets
    /// its first frame joins in front of it.
    #[inline]
    fn end_turn_if_over(&mut self) -> bool {
        let is_over = std::mem::take(&mut self.is_over);
        if is_over {
            self.end_turn();
        }
        is_over
    }

    /// The current child's turn is over.
    #[inline]
    fn end_turn(&mut self) {
        let turn = &mut self.turns[self.current as usize];
        turn.granted = false;
        self.current = turn.next;
    }

    /// The current child has to wait: it keeps its turn for when it need not, and the next one
    /// has its own.
    fn postpone_turn(&mut self) {
        let position = self.current;
        let turn = &mut self.turns[position as usize];
        turn.grant();
        self.current = turn.next;
        if !turn.listed {
            turn.listed = true;
            self.waiting.push(position);
        }
    }

    /// Returns true if the current child may send a frame of this length in its turn; gives it its quantum where it has
    /// not had it yet.
    #[inline]
    fn try_turn(&mut self, lengths: FrameLengths) -> bool {
        let cost = self.cost(lengths);
        let turn = &mut self.turns[self.current as usize];
        turn.grant();
        turn.deficit >= cost
    }

    /// Returns true if a child that kept its turn may send a frame of this length in it; else the turn is over.
    fn try_postponed(&mut self, position: u32, lengths: FrameLengths) -> bool {
        let cost = self.cost(lengths);
        let turn = &mut self.turns[position as usize];
        turn.granted = turn.deficit >= cost;
        turn.granted
    }

    /// The child at `index` of those that keep a turn, or that entry is removed.
    fn postponed(&mut self, index: usize) -> Option<u32> {
        let position = self.waiting[index];
        let turn = &mut self.turns[position as usize];
        if turn.in_ring && turn.granted && position != self.current {
            return Some(position);
        }
        turn.listed = false;
        self.waiting.swap_remove(index);
        None
    }
}

/// A turn while it lasts.
pub(super) struct CurrentTurn<'a> {
    deficit: &'a mut i64,
    is_over: &'a mut bool,
    least_weight: i64,
}

impl CurrentTurn<'_> {
    /// Charge a frame sent, and whether `next` may be sent in the same turn; else it is over.
    #[inline]
    pub(super) fn goes_on(&mut self, sent: FrameLengths, next: FrameLengths) -> bool {
        *self.deficit -= cost(sent, self.least_weight);
        let goes_on = *self.deficit >= cost(next, self.least_weight);
        if !goes_on {
            *self.is_over = true;
        }
        goes_on
    }
}

/// Cost of a frame, charged to a deficit.
#[inline]
fn cost(lengths: FrameLengths, least_weight: i64) -> i64 {
    i64::from(lengths.l2_bytes) * least_weight
}

impl Turn {
    #[inline]
    fn grant(&mut self) {
        if !self.granted {
            self.deficit += self.quantum;
            self.granted = true;
        }
    }
}
