//! When an application has to look at which of its connections.

use slicewise_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Connections by the time to look at them; at the same time, by number. A look that turns out to be
/// needless is harmless, so nothing is ever taken off.
#[derive(Debug, Clone, Default)]
pub struct Agenda(BinaryHeap<Reverse<(Instant, u32)>>);

impl Agenda {
    /// Look at `connection` at `time`.
    pub fn add(&mut self, time: Instant, connection: u32) {
        self.0.push(Reverse((time, connection)));
    }

    /// The time of the next look.
    pub fn next_at(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((time, _))| *time)
    }

    /// The next connection to look at by now.
    pub fn due(&mut self, now: Instant) -> Option<u32> {
        if self.next_at()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, connection))| connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_when_due_in_order_of_time_then_number() {
        let at = Instant::from_nanos;
        let mut agenda = Agenda::default();
        agenda.add(at(20), 0);
        agenda.add(at(10), 2);
        agenda.add(at(10), 1);
        assert_eq!(agenda.next_at(), Some(at(10)));
        assert_eq!(agenda.due(at(9)), None);
        let due: Vec<u32> = std::iter::from_fn(|| agenda.due(at(19))).collect();
        assert_eq!(due, [1, 2]);
        assert_eq!(agenda.due(at(20)), Some(0));
        assert_eq!(agenda.next_at(), None);
    }
}
