//! State that is kept of each flow of the sending point.

/// One flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentFlow {
    /// Position of its last packet.
    pub(super) last: u32,
    /// Number of its last packet, from 0 and modulo 2³².
    pub(super) number: u32,
    /// Key of one of its packets, by which repetitions are noticed.
    witness: u64,
    /// When a packet with that key was last sent, ns.
    witness_ns: u64,
    /// Shortest time between two of them, ns; `u64::MAX` where it never came again.
    period_ns: u64,
}

const _: () = assert!(size_of::<SentFlow>() == 32, "two to a cache line");

impl SentFlow {
    const NONE: Self = Self {
        last: u32::MAX,
        // The first packet is number 0.
        number: u32::MAX,
        witness: 0,
        witness_ns: 0,
        period_ns: u64::MAX,
    };

    /// Number of its packets, modulo 2³².
    const fn packets(&self) -> u32 {
        self.number.wrapping_add(1)
    }

    /// A packet of this flow is sent.
    ///
    /// The witness changes with packets 1, 2, 4, 8 and so on, so that a sequence of keys that repeats is
    /// noticed once four times as many packets were sent as the sequence and those before it have.
    #[inline]
    pub(super) fn on_sent(&mut self, key: u64, time_ns: u64) {
        self.number = self.number.wrapping_add(1);
        if self.number != 0 && self.witness == key {
            self.on_repeated(time_ns);
        } else if self.number & self.number.wrapping_sub(1) == 0 {
            self.witness = key;
            self.witness_ns = time_ns;
        }
    }

    #[cold]
    fn on_repeated(&mut self, time_ns: u64) {
        self.period_ns = self.period_ns.min(time_ns.abs_diff(self.witness_ns));
        self.witness_ns = time_ns;
    }
}

/// Flows of the sending point, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct SentFlows(Vec<SentFlow>);

impl SentFlows {
    /// A flow, created if absent; `None` beyond the limit.
    #[inline]
    pub(super) fn flow(&mut self, flow: u32) -> Option<&mut SentFlow> {
        let flow = flow as usize;
        if flow >= self.0.len() {
            if flow >= MOST_THREADED_FLOWS {
                return None;
            }
            let length = (flow + 1).next_power_of_two();
            self.0.resize(length, SentFlow::NONE);
        }
        self.0.get_mut(flow)
    }

    /// Returns true if packets of a flow are numbered.
    #[inline]
    pub(super) const fn is_numbered(&self, flow: u32) -> bool {
        (flow as usize) < self.0.len()
    }

    /// Packets of each flow, modulo 2³².
    pub(super) fn packets(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(SentFlow::packets)
    }

    /// Shortest time after which each flow repeats a packet, ns; none of flows that do not.
    pub(super) fn periods_ns(&self) -> impl Iterator<Item = u64> {
        let periods = self.0.iter().map(|flow| flow.period_ns);
        periods.filter(|&period_ns| period_ns != u64::MAX)
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<SentFlow>()
    }
}

/// Flows with a list of their own; packets of further flows are searched for.
pub(super) const MOST_THREADED_FLOWS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_of_keys_that_repeats_is_noticed() {
        for (before, length) in [
            (0, 1),
            (1, 1),
            (5, 1),
            (0, 2),
            (3, 7),
            (100, 64),
            (0, 1_000),
        ] {
            let mut flows = SentFlows::default();
            let sent = (0..before)
                .chain((0..4 * length + 3 * before).map(|number| before + number % length));
            for (number, key) in (0..).zip(sent) {
                flows.flow(0).unwrap().on_sent(key, number * 10);
            }
            assert_eq!(flows.periods_ns().collect::<Vec<_>>(), [length * 10]);
            assert_eq!(
                u64::from(flows.packets().next().unwrap()),
                4 * (before + length)
            );
        }
    }

    #[test]
    fn packets_that_differ_do_not_repeat() {
        let mut flows = SentFlows::default();
        for key in 0..1_000 {
            flows.flow(7).unwrap().on_sent(key, key);
        }
        assert_eq!(flows.periods_ns().count(), 0);
        assert_eq!(
            flows.packets().collect::<Vec<_>>(),
            [0, 0, 0, 0, 0, 0, 0, 1_000]
        );
    }
}
