//! The packets of one time-out, in the order reported.

use crate::{Direction, Sighting};

/// State of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Decided; the key is free or maps to another entry.
    Decided,
    /// Sent, not yet received.
    Sent,
    /// Sent and received.
    Matched,
    /// Received, not yet sent.
    Received,
    /// One of several; `link` is its group.
    Ambiguous,
}

/// A sighting and the state of its packet, in half a cache line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) time_ns: u64,
    pub(super) key: u64,
    pub(super) flow: u32,
    l2_bytes: u32,
    /// Position of the next packet sent in the same flow, its own position if there is none yet; for an
    /// ambiguous one, its group.
    pub(super) link: u32,
    ttl: u8,
    dscp: u8,
    marks: Marks,
    pub(super) state: State,
}

/// Direction of a sighting and whether its time is restored, in one byte.
#[derive(Debug, Clone, Copy)]
struct Marks(u8);

impl Marks {
    const RESTORED: u8 = 4;

    #[inline]
    const fn of(sighting: &Sighting) -> Self {
        let direction = match sighting.direction {
            Direction::Unknown => 0,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        Self(direction | (Self::RESTORED * sighting.time_is_restored as u8))
    }

    #[inline]
    const fn direction(self) -> Direction {
        match self.0 & (Self::RESTORED - 1) {
            1 => Direction::Inbound,
            2 => Direction::Outbound,
            _ => Direction::Unknown,
        }
    }

    #[inline]
    const fn time_is_restored(self) -> bool {
        self.0 & Self::RESTORED != 0
    }
}

const _: () = assert!(size_of::<Entry>() == 32, "two to a cache line");

impl Entry {
    #[inline]
    pub(super) const fn new(sighting: &Sighting, state: State, link: u32) -> Self {
        Self {
            time_ns: sighting.time_ns,
            key: sighting.key,
            flow: sighting.flow,
            l2_bytes: sighting.l2_bytes,
            link,
            ttl: sighting.ttl,
            dscp: sighting.dscp,
            marks: Marks::of(sighting),
            state,
        }
    }

    #[inline]
    pub(super) const fn sighting(&self) -> Sighting {
        Sighting {
            time_ns: self.time_ns,
            key: self.key,
            flow: self.flow,
            l2_bytes: self.l2_bytes,
            ttl: self.ttl,
            dscp: self.dscp,
            direction: self.marks.direction(),
            time_is_restored: self.marks.time_is_restored(),
        }
    }
}

/// A ring of entries. Positions increase monotonically; the low 32 bits identify an entry while it is
/// here.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// Length is a power of two.
    entries: Vec<Entry>,
    /// Packet number within its flow, for each entry that was sent and is not ambiguous.
    in_flow: Vec<u32>,
    /// Position of the next.
    head: u64,
    /// Position of the oldest.
    tail: u64,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            entries: vec![NOTHING; FIRST_ENTRIES],
            in_flow: vec![0; FIRST_ENTRIES],
            head: 0,
            tail: 0,
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no more than a limit below 2³²"
    )]
    pub(super) const fn len(&self) -> u32 {
        (self.head - self.tail) as u32
    }

    /// Position of the next entry.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits name an entry"
    )]
    pub(super) const fn next_position(&self) -> u32 {
        self.head as u32
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        if self.len() as usize == self.entries.len() {
            self.grow();
        }
        let slot = self.slot(self.next_position());
        self.entries[slot] = entry;
        self.head += 1;
    }

    /// Position of the oldest entry.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits name an entry"
    )]
    pub(super) const fn oldest(&self) -> Option<u32> {
        if self.head == self.tail {
            return None;
        }
        Some(self.tail as u32)
    }

    /// Position of the entry after the oldest.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits name an entry"
    )]
    pub(super) const fn second_oldest(&self) -> Option<u32> {
        if self.head - self.tail < 2 {
            return None;
        }
        Some((self.tail + 1) as u32)
    }

    /// Remove all entries.
    pub(super) const fn clear(&mut self) {
        self.tail = self.head;
    }

    /// Remove the oldest entry.
    #[inline]
    pub(super) const fn pop(&mut self) {
        if self.tail < self.head {
            self.tail += 1;
        }
    }

    /// Returns true if the ring holds an entry of this position.
    #[inline]
    pub(super) const fn holds(&self, position: u32) -> bool {
        let back = self.next_position().wrapping_sub(position);
        back.wrapping_sub(1) < self.len()
    }

    #[inline]
    pub(super) fn get(&self, position: u32) -> &Entry {
        &self.entries[self.slot(position)]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, position: u32) -> &mut Entry {
        let slot = self.slot(position);
        &mut self.entries[slot]
    }

    /// The full position of an entry in the ring.
    #[inline]
    pub(super) fn order(&self, position: u32) -> u64 {
        self.head - u64::from(self.next_position().wrapping_sub(position))
    }

    /// Packet number within its flow of an entry that was sent.
    #[inline]
    pub(super) fn in_flow(&self, position: u32) -> u32 {
        self.in_flow[self.slot(position)]
    }

    #[inline]
    pub(super) fn set_in_flow(&mut self, position: u32, number: u32) {
        let slot = self.slot(position);
        self.in_flow[slot] = number;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.in_flow.capacity() * size_of::<u32>()
    }

    #[inline]
    fn slot(&self, position: u32) -> usize {
        position as usize & (self.entries.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = vec![NOTHING; self.entries.len() * 2];
        let mut in_flow = vec![0; larger.len()];
        let mask = larger.len() - 1;
        let first = self.oldest().unwrap_or_default();
        for offset in 0..self.len() {
            let position = first.wrapping_add(offset);
            larger[position as usize & mask] = *self.get(position);
            in_flow[position as usize & mask] = self.in_flow(position);
        }
        self.entries = larger;
        self.in_flow = in_flow;
    }
}

const NOTHING: Entry = Entry {
    time_ns: 0,
    key: 0,
    flow: 0,
    l2_bytes: 0,
    link: 0,
    ttl: 0,
    dscp: 0,
    marks: Marks(0),
    state: State::Decided,
};

const FIRST_ENTRIES: usize = 1 << 9;
