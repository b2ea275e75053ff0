//! How much to send while recovering: proportional rate reduction (RFC 6937), bounded as RFC 9937 has it.

/// A recovery's account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProportionalRate {
    /// Bytes under way when it began.
    recover_bytes: u64,
    delivered: u64,
    sent: u64,
}

impl ProportionalRate {
    pub(crate) const fn new(in_flight: u64) -> Self {
        Self {
            recover_bytes: in_flight,
            delivered: 0,
            sent: 0,
        }
    }

    /// `bytes` were sent, new or again.
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// `delivered` bytes arrived; returns how many may be sent now (RFC 6937, section 3). `is_safe`: data was acknowledged
    /// cumulatively, and nothing more was found lost. Only then may more be sent than was delivered: behind a policer, that
    /// would be lost again (RFC 9937, section 6).
    pub(crate) fn on_delivered(
        &mut self,
        delivered: u64,
        in_flight: u64,
        ssthresh: u64,
        mss: u64,
        is_safe: bool,
    ) -> u64 {
        self.delivered += delivered;
        if in_flight > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let due = share.div_ceil(u128::from(self.recover_bytes.max(1)));
            let due = u64::try_from(due).unwrap_or(u64::MAX);
            return due.saturating_sub(self.sent);
        }
        // Packet conservation, and a segment more where recovery makes progress.
        let bound = self.delivered.saturating_sub(self.sent).max(delivered);
        let bound = bound + if is_safe { mss } else { 0 };
        (ssthresh - in_flight).min(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 segments under way, the first lost, the window halved: one is sent for every two delivered, evenly, and half
    /// of the window is under way at the end.
    #[test]
    fn a_single_loss_is_paid_for_evenly_over_a_round_trip() {
        const MSS: u64 = 1_000;
        let (mut prr, ssthresh) = (ProportionalRate::new(100 * MSS), 50 * MSS);
        let (mut in_flight, mut sent) = (100 * MSS, Vec::new());
        for _ in 0..99 {
            in_flight -= MSS;
            let may = prr.on_delivered(MSS, in_flight, ssthresh, MSS, true) / MSS * MSS;
            prr.on_sent(may);
            in_flight += may;
            sent.push(may / MSS);
        }
        assert_eq!(in_flight, ssthresh);
        assert!(sent.iter().all(|segments| *segments <= 1));
        let first: u64 = sent[..50].iter().sum();
        assert!((24..=26).contains(&first), "{first}");
    }

    /// After heavy losses the window is below the threshold: it grows by one segment more than is delivered.
    #[test]
    fn after_heavy_loss_it_grows_as_in_slow_start() {
        let mut prr = ProportionalRate::new(100_000);
        let mut may_send =
            |in_flight, is_safe| prr.on_delivered(1_000, in_flight, 50_000, 1_000, is_safe);
        assert_eq!(may_send(10_000, true), 2_000);
        assert_eq!(may_send(49_500, true), 500);
        // While losses are still being found, no more than was delivered: nothing was sent of 3,000.
        assert_eq!(may_send(12_000, false), 3_000);
    }
}
