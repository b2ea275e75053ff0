//! RFC 8289, section 5, as written there: a loop over a queue it holds itself, and a control law
//! found by bisection of d²·count ≤ interval².

use super::MAX_PACKET;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct Reference {
    target: u64,
    interval: u64,
    /// Arrival and bytes.
    pub queue: VecDeque<(u64, u64)>,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    pub dropped: Vec<(u64, u64)>,
}

impl Reference {
    pub fn new(target: u64, interval: u64) -> Self {
        Self {
            target,
            interval,
            ..Self::default()
        }
    }

    fn control_law(&self, time: u64) -> u64 {
        let (mut low, mut high) = (0u128, u128::from(self.interval));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if middle * middle * u128::from(self.count) <= u128::from(self.interval).pow(2) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        time + low as u64
    }

    fn bytes(&self) -> u64 {
        self.queue.iter().map(|(_, bytes)| bytes).sum()
    }

    fn dodequeue(&mut self, now: u64) -> (Option<(u64, u64)>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if now - packet.0 < self.target || self.bytes() <= MAX_PACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    pub fn dequeue(&mut self, now: u64) -> Option<(u64, u64)> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.extend(packet);
                self.count += 1;
                (packet, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.dropped.extend(packet);
            (packet, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.last_count;
            self.count = 1;
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * self.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }
}
