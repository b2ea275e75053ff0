//! Packets that arrive after the time-out: lost, but not changed on the way.

/// The packets lost last.
#[derive(Debug, Clone, Default)]
pub(super) struct LostKeys {
    /// By bits of the key, the last ones first; empty until something is lost.
    buckets: Vec<[Lost; 4]>,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    key: u64,
    sent_ns: i64,
}

impl LostKeys {
    /// A packet sent at `sent_ns` is lost.
    #[inline]
    pub(super) fn on_lost(&mut self, key: u64, sent_ns: i64) {
        if self.buckets.is_empty() {
            let none = Lost {
                key: 0,
                sent_ns: i64::MAX,
            };
            self.buckets = vec![[none; 4]; BUCKETS];
        }
        if let Some(bucket) = self.buckets.get_mut(bucket(key)) {
            let [one, two, three, _] = *bucket;
            *bucket = [Lost { key, sent_ns }, one, two, three];
        }
    }

    /// How long ago a packet with this key was sent and lost, ns; `None` if it was not.
    #[inline]
    pub(super) fn sent_ago(&self, key: u64, time_ns: i64) -> Option<u64> {
        let mut bucket = self.buckets.get(bucket(key))?.iter();
        let lost = bucket.find(|lost| lost.key == key && lost.sent_ns <= time_ns)?;
        Some(time_ns.abs_diff(lost.sent_ns))
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<[Lost; 4]>()
    }
}

const fn bucket(key: u64) -> usize {
    (key >> 20) as usize % BUCKETS
}

/// 128 KiB.
const BUCKETS: usize = 1 << 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packets_lost_are_known_if_they_come() {
        let key = |number: i64| number.unsigned_abs().wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let mut lost = LostKeys::default();
        assert_eq!(lost.sent_ago(key(1), 10), None);
        for number in 0..100_000 {
            lost.on_lost(key(number), number);
        }
        let late = |number| lost.sent_ago(key(number), 200_000) == Some((200_000 - number) as u64);
        assert!((99_500..100_000).all(late));
        assert!(!late(100_000) && (0..50_000).filter(|&number| late(number)).count() < 100);
        assert_eq!(
            lost.sent_ago(key(99_999), 99_998),
            None,
            "before it was sent"
        );
    }
}
