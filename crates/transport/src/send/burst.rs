//! How long a burst may be, how much may wait below the socket, and the pacing rate that both follow from.

use super::Sender;
use crate::behaviour::Behaviour;
use slicewise_traffic::transport::CongestionControl;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Sizes of bursts by window and round trip. Asked for with every segment and kept until one of these changes: it takes
/// several divisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bursts {
    /// True if the other fields hold for the present window and round trip.
    is_current: bool,
    /// Pacing rate, bytes a second; `None` before there is a round trip.
    pub(super) rate: Option<u64>,
    /// Longest burst, bytes.
    pub(super) bytes: u64,
    /// A burst that the window divides into is waited for up to this length, bytes; 0: it is not.
    pub(super) worthwhile_bytes: u64,
    /// Most bytes below the socket: two bursts always may wait there.
    below_socket_bytes: u64,
}

impl Bursts {
    /// The window or the round trip may have changed.
    pub(super) const fn invalidate(&mut self) {
        self.is_current = false;
    }
}

impl Sender {
    /// Returns the sizes of bursts for the present window and round trip.
    #[inline]
    pub(super) fn bursts(&mut self, behaviour: &Behaviour) -> &Bursts {
        if !self.bursts.is_current {
            self.bursts = self.size_bursts(behaviour);
        }
        &self.bursts
    }

    /// `bytes` of data have left the adapter; true if more may be sent now that could not before.
    #[inline]
    pub(crate) fn on_left(&mut self, bytes: u64, behaviour: &Behaviour) -> bool {
        let before = self.below_socket_bytes;
        self.below_socket_bytes = before.saturating_sub(bytes);
        let after = self.below_socket_bytes;
        let most = self.bursts(behaviour).below_socket_bytes;
        before >= most && after < most
    }

    /// Bytes that have to leave the adapter before more may be sent; 0 if more may be sent now.
    #[inline]
    pub(crate) fn excess_below_socket(&mut self, behaviour: &Behaviour) -> u64 {
        let most = self.bursts(behaviour).below_socket_bytes;
        (self.below_socket_bytes + 1).saturating_sub(most)
    }

    fn size_bursts(&self, behaviour: &Behaviour) -> Bursts {
        let (mss, most) = (self.window.mss, u64::from(behaviour.burst_bytes));
        let rate = self.pacing_rate(behaviour);
        // What the pacing rate sends in the time of a burst.
        let paced = behaviour
            .burst_time
            .zip(rate)
            .map(|(time, rate)| of_product(rate, time.nanos(), SECOND));
        let bytes = paced.map_or(most, |paced| {
            let near = behaviour.burst_rtt.map_or(0, |unit| {
                let halvings = self.rtt.min().nanos() / unit.nanos().max(1);
                most >> halvings.min(63)
            });
            // At least two, so that one acknowledgement answers them.
            let bytes = paced.saturating_add(near) / mss * mss;
            bytes.clamp((2 * mss).min(most), most)
        });
        let share = self.window.bytes.checked_div(behaviour.burst_divisor);
        let worthwhile = share.unwrap_or(0).min(paced.unwrap_or(0)).min(most);
        Bursts {
            is_current: true,
            rate,
            bytes,
            worthwhile_bytes: worthwhile / mss * mss,
            below_socket_bytes: behaviour
                .below_socket_bytes
                .map_or(u64::MAX, |most| most.min(2 * bytes)),
        }
    }

    /// Bytes a second at which the window is spread over a round trip: twice that in slow start, so that it can double, a
    /// fifth more after it (ip-sysctl, `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`), no more for Prague (`tcp_prague`).
    fn pacing_rate(&self, behaviour: &Behaviour) -> Option<u64> {
        if let Some(rate) = self.congestion.pacing_rate() {
            return Some(rate);
        }
        let smoothed = self.rtt.smoothed()?.nanos().max(1);
        let percent = if self.window.bytes < self.window.ssthresh / 2 {
            200
        } else if behaviour.congestion == CongestionControl::Prague {
            100
        } else {
            120
        };
        // Recovery may leave no room in the window, and sends all the same.
        let window = self.window.bytes.max(self.window.mss);
        let rate = of_product(window, SECOND / 100 * percent, smoothed);
        (rate < u64::MAX).then_some(rate)
    }
}

/// `one` · `other` / `divisor`, at most [`u64::MAX`]. A product of 64 bits, as nearly all are, is divided several times as
/// fast as one of 128.
pub(super) fn of_product(one: u64, other: u64, divisor: u64) -> u64 {
    match one.checked_mul(other) {
        Some(product) => product / divisor,
        None => {
            let quotient = u128::from(one) * u128::from(other) / u128::from(divisor);
            u64::try_from(quotient).unwrap_or(u64::MAX)
        }
    }
}
