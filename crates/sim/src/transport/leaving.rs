//! The data of a connection in an adapter that sends ahead.
//!
//! When a frame leaves such an adapter is known when it is handed over, so that nothing needs to happen at that time. What has
//! left is counted when the connection is to send; only a connection that waits for it needs an event.

use slicewise_units::Instant;
use std::collections::VecDeque;

/// Data that an end of a connection has handed over and that has not been counted as sent.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// By frame: when it leaves, and all bytes handed over up to its last one.
    frames: VecDeque<(Instant, u64)>,
    handed_over: u64,
    counted: u64,
}

impl Leaving {
    /// A frame with `bytes` of data leaves at `at`, after those before it.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, bytes: u64) {
        self.handed_over += bytes;
        self.frames.push_back((at, self.handed_over));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The bytes that leave before `before` and were not taken yet.
    #[inline]
    pub(crate) fn take_before(&mut self, before: Instant) -> u64 {
        let counted = self.counted;
        while let Some((at, handed_over)) = self.frames.front()
            && *at < before
        {
            self.counted = *handed_over;
            self.frames.pop_front();
        }
        self.counted - counted
    }

    /// When the next `bytes` have left; [`Instant::MAX`] if there are not so many.
    #[inline]
    pub(crate) fn left_at(&self, bytes: u64) -> Instant {
        let wanted = self.counted + bytes;
        let before = |(_, handed_over): &(Instant, u64)| *handed_over < wanted;
        let frame = self.frames.get(self.frames.partition_point(before));
        frame.map_or(Instant::MAX, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn bytes_are_taken_once_they_have_left_and_known_before() {
        let mut leaving = Leaving::default();
        for (nanos, bytes) in [(10, 100), (20, 1), (30, 50)] {
            leaving.push(at(nanos), bytes);
        }
        assert_eq!(leaving.take_before(at(10)), 0);
        let left_at = [1, 100, 101, 102, 151, 152].map(|bytes| leaving.left_at(bytes));
        let never = Instant::MAX;
        assert_eq!(left_at, [at(10), at(10), at(20), at(30), at(30), never]);
        assert_eq!(leaving.take_before(at(21)), 101);
        assert_eq!((leaving.left_at(50), leaving.left_at(51)), (at(30), never));
        leaving.push(at(40), 7);
        assert_eq!((leaving.left_at(51), leaving.is_empty()), (at(40), false));
        assert_eq!(leaving.take_before(Instant::MAX), 57);
        assert!(leaving.is_empty());
    }
}
