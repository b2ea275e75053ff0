//! DCTCP: the window is reduced by how much of it was marked (RFC 8257).

use super::new_reno::NewReno;
use super::{Acknowledged, Cause, Window};

/// Weight of a new observation, as a power of two (section 4.2: g = 1/16).
const G_SHIFT: u32 = 4;
/// `alpha` is kept in units of 2⁻²⁰.
const ONE: u64 = 1 << 20;

/// How much was marked of late.
#[derive(Debug, Clone)]
pub(crate) struct Dctcp {
    pub(super) growth: NewReno,
    alpha: u64,
    acked: u64,
    marked: u64,
    /// The observation ends when this is acknowledged.
    window_end: u64,
}

impl Default for Dctcp {
    /// As if everything had been marked (section 4.2).
    fn default() -> Self {
        Self {
            growth: NewReno::default(),
            alpha: ONE,
            acked: 0,
            marked: 0,
            window_end: 0,
        }
    }
}

impl Dctcp {
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Acknowledged) {
        self.growth.on_ack(window, ack);
    }

    pub(crate) fn on_round(&mut self, ack: &Acknowledged) {
        self.acked += ack.bytes;
        if ack.is_marked {
            self.marked += ack.bytes;
        }
        if ack.una < self.window_end || self.acked == 0 {
            return;
        }
        let share = self.marked * ONE / self.acked;
        self.alpha = self.alpha - (self.alpha >> G_SHIFT) + (share >> G_SHIFT);
        (self.acked, self.marked, self.window_end) = (0, 0, ack.next);
    }

    pub(crate) fn on_congestion(&self, window: &Window, outstanding: u64, cause: Cause) -> u64 {
        match cause {
            // Section 3.5: loss is answered as without DCTCP.
            Cause::Loss => outstanding / 2,
            Cause::Mark => {
                let reduction = u128::from(window.bytes) * u128::from(self.alpha.min(ONE));
                let reduction = reduction / u128::from(2 * ONE);
                window.bytes - u64::try_from(reduction).unwrap_or(window.bytes / 2)
            }
        }
    }
}
