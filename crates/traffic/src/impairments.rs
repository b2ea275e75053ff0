//! Impairments of frames by a link.

use slicewise_units::Duration;
use std::fmt;

/// Impairments of the two links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkImpairments {
    /// Of the link from the sending host to the device.
    pub ingress: ImpairmentParams,
    /// Of the link from the device to the receiving host.
    pub egress: ImpairmentParams,
}

impl LinkImpairments {
    /// No frame is lost or delayed on either.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Impairments of a link. Every source meets them for itself, as if it had the link alone: what it loses
/// does not depend on what others send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImpairmentParams {
    /// Frames that are lost.
    pub loss: Option<LossParams>,
    /// Wrong bits in 10¹⁵. A frame with one of them, the FCS included, is lost.
    pub bit_errors_per_1e15: u64,
    /// Delay beyond propagation.
    pub delay_variation: Option<DelayVariationParams>,
}

/// A channel of two states, as of Gilbert and Elliott, that may change state with each frame; parts per
/// million. Loss without memory has `to_bad_ppm` 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossParams {
    /// From the good state to the bad one, after a frame.
    pub to_bad_ppm: u32,
    /// From the bad state to the good one, after a frame; more than 0.
    pub to_good_ppm: u32,
    /// Frames lost in the good state.
    pub in_good_ppm: u32,
    /// Frames lost in the bad state.
    pub in_bad_ppm: u32,
}

impl LossParams {
    /// Each frame for itself.
    #[must_use]
    pub const fn independent(ppm: u32) -> Self {
        Self {
            to_bad_ppm: 0,
            to_good_ppm: 1_000_000,
            in_good_ppm: ppm,
            in_bad_ppm: ppm,
        }
    }

    /// Frames lost in the long run, as a fraction.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let [to_bad, to_good] = [self.to_bad_ppm, self.to_good_ppm].map(f64::from);
        let [good, bad] = [self.in_good_ppm, self.in_bad_ppm].map(f64::from);
        (to_good * good + to_bad * bad) / (to_bad + to_good) / 1e6
    }
}

/// How delay varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayVariationParams {
    /// Maximum added to propagation.
    pub up_to: Duration,
    /// Distribution of the added delay, from zero to the maximum.
    pub distribution: DelayDistribution,
    /// A frame may overtake another of its source.
    pub reorder: bool,
}

impl From<Duration> for DelayVariationParams {
    /// Up to so much, evenly distributed and in order.
    fn from(up_to: Duration) -> Self {
        Self {
            up_to,
            distribution: DelayDistribution::Uniform,
            reorder: false,
        }
    }
}

/// A distribution of delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayDistribution {
    /// All delays alike.
    Uniform,
    /// Normal around the middle, with a sixth of the width as standard deviation, cut off at both ends.
    Normal,
}

/// For people: "1 % of frames lost at random, delay up to 2 ms longer".
impl fmt::Display for ImpairmentParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(loss) = &self.loss {
            let mean = loss.mean() * 100.0;
            let mean = format!("{mean:.4}");
            let mean = mean.trim_end_matches('0').trim_end_matches('.');
            let how = if loss.to_bad_ppm == 0 {
                "at random"
            } else {
                "in bursts"
            };
            parts.push(format!("{mean} % of frames lost {how}"));
        }
        if self.bit_errors_per_1e15 > 0 {
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let ratio = self.bit_errors_per_1e15 as f64 / 1e15;
            parts.push(format!("bit error ratio {ratio:e}"));
        }
        if let Some(variation) = &self.delay_variation {
            let order = if variation.reorder {
                ", also out of order"
            } else {
                ""
            };
            parts.push(format!("delay up to {} longer{order}", variation.up_to));
        }
        f.write_str(&parts.join(", "))
    }
}
