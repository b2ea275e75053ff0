//! DCTCP: the window is reduced by how much of it was marked (RFC 8257).

use super::new_reno::NewReno;
use super::{Acknowledged, Cause, Window};

/// Weight of a new observation, as a power of two (section 4.2: g = 1/16).
const G_SHIFT: u32 = 4;
/// `alpha` is kept in units of 2⁻²⁰.
const ONE: u64 = 1 << 20;

/// Share of the bytes acknowledged that was marked, as a moving average.
#[derive(Debug, Clone, Default)]
pub(super) struct MarkedShare {
    alpha: u64,
    acked: u64,
    marked: u64,
    /// The observation may end when this is acknowledged.
    window_end: u64,
}

impl MarkedShare {
    /// Count what was acknowledged. Returns whether a window has been observed.
    pub(super) const fn count(&mut self, ack: &Acknowledged) -> bool {
        self.acked += ack.bytes;
        if ack.is_marked {
            self.marked += ack.bytes;
        }
        ack.una >= self.window_end && self.acked > 0
    }

    /// Take the observation into the average, and begin another.
    pub(super) fn update(&mut self, ack: &Acknowledged) {
        let share = self.marked * ONE / self.acked.max(1);
        self.alpha = self.alpha - (self.alpha >> G_SHIFT) + (share >> G_SHIFT);
        (self.acked, self.marked, self.window_end) = (0, 0, ack.next);
    }

    /// Returns a window less half the share of it (section 3.3).
    pub(super) fn reduced(&self, window_bytes: u64) -> u64 {
        let reduction = u128::from(window_bytes) * u128::from(self.alpha.min(ONE));
        let reduction = reduction / u128::from(2 * ONE);
        window_bytes - u64::try_from(reduction).unwrap_or(window_bytes / 2)
    }
}

/// How much was marked of late.
#[derive(Debug, Clone)]
pub(crate) struct Dctcp {
    pub(super) growth: NewReno,
    share: MarkedShare,
}

impl Default for Dctcp {
    /// As if everything had been marked (section 4.2).
    fn default() -> Self {
        Self {
            growth: NewReno::default(),
            share: MarkedShare {
                alpha: ONE,
                ..MarkedShare::default()
            },
        }
    }
}

impl Dctcp {
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Acknowledged) {
        self.growth.on_ack(window, ack);
    }

    pub(crate) fn on_round(&mut self, ack: &Acknowledged) {
        if self.share.count(ack) {
            self.share.update(ack);
        }
    }

    pub(crate) fn on_congestion(&self, window: &Window, outstanding: u64, cause: Cause) -> u64 {
        match cause {
            // Section 3.5: loss is answered as without DCTCP.
            Cause::Loss => outstanding / 2,
            Cause::Mark => self.share.reduced(window.bytes),
        }
    }
}
