//! Weighted round robin among the best-effort queues of a pipe.

use slicewise_model::hqos::BEST_EFFORT_QUEUES;

/// Bits by which tokens are shortened while no grinder works on the pipe.
const SHIFT: u32 = 3;

/// Tokens of the queues of a pipe: what each has used. The queue with the least is next, and what it has used is taken
/// from all. Tokens have 16 bits and wrap, as in the library.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundRobin {
    tokens: [u16; BEST_EFFORT_QUEUES],
    /// All bits where the queue has frames.
    active: [u16; BEST_EFFORT_QUEUES],
}

impl RoundRobin {
    /// From what a pipe keeps; bits of `queues` say which have frames.
    #[inline]
    pub(super) fn load(kept: [u16; BEST_EFFORT_QUEUES], queues: u8) -> Self {
        Self {
            tokens: kept.map(|tokens| tokens << SHIFT),
            active: std::array::from_fn(|queue| 0u16.wrapping_sub(u16::from(queues >> queue & 1))),
        }
    }

    /// Returns the tokens that the pipe keeps.
    #[inline]
    pub(super) fn store(&self) -> [u16; BEST_EFFORT_QUEUES] {
        std::array::from_fn(|queue| (self.tokens[queue] & self.active[queue]) >> SHIFT)
    }

    /// The queue that is next.
    #[inline]
    pub(super) fn choose(&mut self) -> u8 {
        for (tokens, active) in self.tokens.iter_mut().zip(self.active) {
            *tokens |= !active;
        }
        // Of equal ones the last in each pair, and the last pair.
        let [a, b, c, d] = self.tokens;
        let first = u8::from(b <= a);
        let second = 2 + u8::from(d <= c);
        let mut chosen = if c.min(d) <= a.min(b) { second } else { first };
        let least = a.min(b).min(c).min(d);
        self.tokens = self.tokens.map(|tokens| tokens - least);
        if self.active[usize::from(chosen)] == 0 {
            // A queue with frames has used as much as can be counted. The library would read an empty queue.
            let active = self.active.iter().rposition(|active| *active != 0);
            chosen = active
                .and_then(|queue| u8::try_from(queue).ok())
                .unwrap_or(0);
        }
        chosen
    }

    /// A frame of `bytes` has left a queue in which a byte costs `cost`.
    #[inline]
    pub(super) fn spend(&mut self, queue: u8, bytes: u32, cost: u8) {
        let [low, high, ..] = bytes.wrapping_mul(u32::from(cost)).to_le_bytes();
        let tokens = &mut self.tokens[usize::from(queue)];
        *tokens = tokens.wrapping_add(u16::from_le_bytes([low, high]));
    }

    /// A queue has no frames any more.
    #[inline]
    pub(super) fn on_empty(&mut self, queue: u8) {
        self.active[usize::from(queue)] = 0;
    }
}
