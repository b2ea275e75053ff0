//! CUBIC's window (RFC 9438), in segments as the RFC has it.

use super::hystart::{Growth, HyStart};
use super::{Acknowledged, Window};
use crate::behaviour::Behaviour;
use slicewise_units::{Duration, Instant};

/// Section 4.6: by how much the window is reduced.
const BETA: f64 = 0.7;
/// Section 5: how fast it grows, segments a second cubed.
const C: f64 = 0.4;
/// Section 4.3: growth that is as fair to Reno as its reduction by [`BETA`].
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The window's history since congestion.
#[derive(Debug, Clone)]
pub(crate) struct Cubic {
    /// Slow start before the first loss.
    slow_start: HyStart,
    /// See [`Behaviour::keeps_alpha`].
    keeps_alpha: bool,
    /// The window before the last reduction, with fast convergence.
    w_max: f64,
    /// The window when the last reduction happened.
    prior: f64,
    epoch: Option<Epoch>,
    /// Part of a byte by which the window has grown.
    fraction: f64,
    /// Values that the last reduction replaced.
    before: Option<(f64, f64)>,
}

/// Congestion avoidance since it began.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Instant,
    /// Time to `w_max`, seconds.
    k: f64,
    /// Where it goes.
    w_max: f64,
    /// The window Reno would have.
    w_est: f64,
}

impl Cubic {
    pub(crate) const fn new(behaviour: &Behaviour) -> Self {
        Self {
            slow_start: HyStart::new(behaviour.sends_bursts()),
            keeps_alpha: behaviour.keeps_alpha,
            w_max: 0.0,
            prior: 0.0,
            epoch: None,
            fraction: 0.0,
            before: None,
        }
    }

    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Acknowledged) {
        // Only the first slow start does not know where it ends (RFC 9406, section 4.3).
        if window.is_slow_start() && window.ssthresh < u64::MAX {
            if ack.is_limited {
                window.bytes = (window.bytes + ack.bytes).min(window.ssthresh);
            }
            return;
        }
        if window.is_slow_start() {
            match self.slow_start.on_ack(ack, window.mss) {
                Growth::By(bytes) if ack.is_limited => {
                    window.bytes = (window.bytes + bytes).min(window.ssthresh);
                }
                Growth::By(_) => {}
                Growth::Enough => window.ssthresh = window.bytes,
            }
            return;
        }
        if !ack.is_limited {
            return;
        }
        let mss = float(window.mss);
        let cwnd = (float(window.bytes) + self.fraction) / mss;
        let segments = float(ack.bytes) / mss;
        let epoch = self.epoch.get_or_insert_with(|| {
            // Without a reduction before (section 4.10) the window is at its maximum.
            let w_max = self.w_max.max(cwnd);
            Epoch {
                start: ack.now,
                k: libm::cbrt((w_max - cwnd) / C),
                w_max,
                w_est: cwnd,
            }
        });
        let t = ack.now.saturating_since(epoch.start).as_secs_f64();
        let cubic = |t: f64| {
            let from_k = t - epoch.k;
            C * from_k * from_k * from_k + epoch.w_max
        };
        let alpha = match self.keeps_alpha || epoch.w_est < self.prior {
            true => ALPHA,
            false => 1.0,
        };
        epoch.w_est += alpha * segments / cwnd;
        let grown = if cubic(t) < epoch.w_est {
            epoch.w_est.max(cwnd)
        } else {
            let target = cubic(t + ack.smoothed.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * segments
        };
        self.set(window, grown * mss);
    }

    /// The threshold after congestion.
    pub(crate) fn on_congestion(&mut self, window: &Window) -> u64 {
        let cwnd = float(window.bytes) / float(window.mss);
        self.before = Some((self.w_max, self.prior));
        // Fast convergence, section 4.7: leave room for a new flow.
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.prior = cwnd;
        self.epoch = None;
        self.fraction = 0.0;
        whole(float(window.bytes) * BETA)
    }

    pub(crate) fn on_timeout(&mut self) {
        // Section 4.8: the next congestion avoidance begins where slow start ends.
        self.w_max = 0.0;
    }

    pub(crate) fn on_undo(&mut self) {
        if let Some((w_max, prior)) = self.before.take() {
            (self.w_max, self.prior) = (w_max, prior);
        }
        self.epoch = None;
    }

    /// Time without data does not count (section 4.2 of RFC 9438: `t` is since congestion avoidance began).
    pub(crate) fn on_idle(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }

    fn set(&mut self, window: &mut Window, bytes: f64) {
        let grown = whole(bytes).max(window.bytes);
        self.fraction = bytes - float(grown);
        window.bytes = grown;
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "windows are far below 2^53 bytes"
)]
const fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down; a window is never negative"
)]
const fn whole(bytes: f64) -> u64 {
    bytes as u64
}
