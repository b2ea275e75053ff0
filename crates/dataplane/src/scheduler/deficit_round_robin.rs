//! Deficit round robin (Shreedhar & Varghese, SIGCOMM 1995).
//!
//! Backlogged children take turns; at its turn a child's deficit grows by its quantum and it
//! sends while the deficit covers its frames. Over any time in which two children stay
//! backlogged, what they sent divided by their weights differs by less than one quantum plus one
//! frame. With quanta of at least one largest frame a decision takes O(1).

use super::{Discipline, NodeId, Peek, Tree};
use crate::queue::FramePool;
use slicewise_units::{FrameLengths, Instant};

/// Bytes of quantum for each unit of weight: a largest frame with two VLAN tags, so that every
/// turn sends at least one frame.
pub const QUANTUM_BYTES: u32 = 1522;

/// End of the ring, or not in it.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Bytes added at each turn.
    quantum: i64,
    /// Bytes that may still be sent in this turn.
    deficit: i64,
    next: u32,
    previous: u32,
    in_ring: bool,
}

/// The ring of backlogged children.
#[derive(Debug, Clone)]
pub struct DeficitRoundRobin {
    turns: Vec<Turn>,
    /// Whose turn it is.
    current: u32,
    /// The current child has had its quantum for this turn.
    granted: bool,
    ring_len: u32,
}

impl DeficitRoundRobin {
    /// One child a weight; a weight of 0 counts as 1.
    #[must_use]
    pub fn new(weights: &[u32]) -> Self {
        let turns = weights
            .iter()
            .map(|&weight| Turn {
                quantum: i64::from(weight.max(1)) * i64::from(QUANTUM_BYTES),
                deficit: 0,
                next: NONE,
                previous: NONE,
                in_ring: false,
            })
            .collect();
        Self {
            turns,
            current: NONE,
            granted: false,
            ring_len: 0,
        }
    }

    /// A child got its first frame: it joins the ring just before the current turn, that is last.
    pub(super) fn on_backlogged(&mut self, position: u32) {
        if self.turns[position as usize].in_ring {
            return;
        }
        let (previous, next) = if self.current == NONE {
            self.current = position;
            self.granted = false;
            (position, position)
        } else {
            (self.turns[self.current as usize].previous, self.current)
        };
        let turn = &mut self.turns[position as usize];
        turn.in_ring = true;
        turn.deficit = 0;
        turn.previous = previous;
        turn.next = next;
        self.turns[previous as usize].next = position;
        self.turns[next as usize].previous = position;
        self.ring_len += 1;
    }

    /// A child has no frames left: it leaves the ring and forfeits its deficit.
    pub(super) fn on_emptied(&mut self, position: u32) {
        let turn = self.turns[position as usize];
        if !turn.in_ring {
            return;
        }
        self.turns[turn.previous as usize].next = turn.next;
        self.turns[turn.next as usize].previous = turn.previous;
        self.turns[position as usize].in_ring = false;
        self.ring_len -= 1;
        if self.ring_len == 0 {
            self.current = NONE;
        } else if self.current == position {
            self.current = turn.next;
            self.granted = false;
        }
    }

    /// Charge a frame sent by its turn.
    pub(super) fn charge(&mut self, position: u32, lengths: FrameLengths) {
        self.turns[position as usize].deficit -= i64::from(lengths.l2_bytes);
    }

    pub(super) fn on_departure(&mut self, position: u32, lengths: FrameLengths, emptied: bool) {
        self.charge(position, lengths);
        if emptied {
            self.on_emptied(position);
        }
    }

    const fn pass_turn(&mut self) {
        self.current = self.turns.as_slice()[self.current as usize].next;
        self.granted = false;
    }

    /// Whether the current child may send a frame of this length in its turn; gives it its
    /// quantum where it has not had it yet.
    fn try_turn(&mut self, lengths: FrameLengths) -> bool {
        let turn = &mut self.turns[self.current as usize];
        if !self.granted {
            turn.deficit += turn.quantum;
            self.granted = true;
        }
        turn.deficit >= i64::from(lengths.l2_bytes)
    }
}

/// Gives access to the ring inside whatever node holds it.
type RingOf = fn(&mut Discipline) -> Option<&mut DeficitRoundRobin>;

pub(super) fn peek(tree: &mut Tree, id: NodeId, pool: &FramePool, now: Instant) -> Peek {
    peek_ring(tree, id, pool, now, |discipline| match discipline {
        Discipline::DeficitRoundRobin(ring) => Some(ring),
        _ => None,
    })
}

/// Go round the ring from the current turn until a child may send. Children that must wait for a
/// shaper are passed over without growing their deficit; when a whole round has only such
/// children, so must we.
pub(super) fn peek_ring(
    tree: &mut Tree,
    id: NodeId,
    pool: &FramePool,
    now: Instant,
    ring_of: RingOf,
) -> Peek {
    let mut earliest: Option<Instant> = None;
    let mut waiting = 0;
    loop {
        let Some(ring) = ring_of(tree.discipline_mut(id)) else {
            return Peek::Empty;
        };
        if ring.ring_len == 0 || waiting >= ring.ring_len {
            return earliest.map_or(Peek::Empty, Peek::Wait);
        }
        let current = ring.current;
        let below = tree.peek_child(id, current, pool, now);
        let Some(ring) = ring_of(tree.discipline_mut(id)) else {
            return Peek::Empty;
        };
        match below {
            Peek::Ready(head) => {
                if ring.try_turn(head.lengths) {
                    return below;
                }
                waiting = 0;
            }
            Peek::Wait(until) => {
                earliest = Some(earliest.map_or(until, |e| e.min(until)));
                waiting += 1;
            }
            Peek::Empty => waiting += 1,
        }
        ring.pass_turn();
    }
}
