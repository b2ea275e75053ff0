//! BOLA: the quality follows from how much there is to play (K. Spiteri, R. Urgaonkar, R. K. Sitaraman, "BOLA:
//! near-optimal bitrate adaptation for online videos", IEEE INFOCOM 2016, IEEE/ACM Transactions on Networking 28(4),
//! 2020), with what dash.js adds to it (K. Spiteri, R. Sitaraman, D. Sparacio, "From theory to practice: improving
//! bitrate adaptation in the DASH reference player", ACM MMSys 2018; `BolaRule.js` of version 5.1).

use super::ladder::Ladder;
use slicewise_units::{Duration, Instant};

/// With less than this to play the lowest quality is preferred, and none is waited for, s: `MINIMUM_BUFFER_S`.
const MINIMUM_BUFFER: f64 = 10.0;
/// The top quality is preferred from `MINIMUM_BUFFER` and so much for each quality at the earliest, s:
/// `MINIMUM_BUFFER_PER_BITRATE_LEVEL_S`.
const BUFFER_PER_QUALITY: f64 = 2.0;
/// Part of the placeholder that remains with each segment: `PLACEHOLDER_BUFFER_DECAY`.
const PLACEHOLDER_DECAY: f64 = 0.99;

/// The objective: of all qualities m, the one with the largest (V (υ_m + γ) − Q) / r_m, where Q is the time to play, υ_m
/// the utility, the logarithm of the bit rate r_m over the lowest, and V and γ weigh utility against
/// stalls. The paper counts Q in segments and calls γ here γp; with V in seconds it is the same.
#[derive(Debug, Clone)]
pub struct Objective {
    bit_rates: Vec<f64>,
    utilities: Vec<f64>,
    /// V, s.
    v: f64,
    gamma: f64,
}

impl Objective {
    pub fn new(bit_rates: &[f64], v: f64, gamma: f64) -> Self {
        let lowest = bit_rates.first().copied().unwrap_or(1.0);
        Self {
            bit_rates: bit_rates.to_vec(),
            utilities: bit_rates.iter().map(|r| libm::log(r / lowest)).collect(),
            v,
            gamma,
        }
    }

    /// V and γ as dash.js sets them: the lowest quality is preferred with `MINIMUM_BUFFER` to play, the top one with
    /// `stable_buffer` s. `None` where no quality has more utility than the first.
    pub fn of_buffer(bit_rates: &[f64], stable_buffer: f64) -> Option<Self> {
        let mut objective = Self::new(bit_rates, 0.0, 0.0);
        let top = objective.utilities.last().copied().unwrap_or(0.0);
        let of_ladder = MINIMUM_BUFFER + BUFFER_PER_QUALITY * bit_rates.len() as f64;
        objective.gamma = top / (stable_buffer.max(of_ladder) / MINIMUM_BUFFER - 1.0);
        objective.v = MINIMUM_BUFFER / objective.gamma;
        (objective.gamma > 0.0 && objective.gamma.is_finite()).then_some(objective)
    }

    /// The quality that is best with `level` s to play; the higher of equal ones.
    pub fn best(&self, level: f64) -> usize {
        let mut best = (0, f64::NEG_INFINITY);
        for (quality, (rate, utility)) in self.bit_rates.iter().zip(&self.utilities).enumerate() {
            let score = (self.v * (utility + self.gamma) - level) / rate;
            if score >= best.1 {
                best = (quality, score);
            }
        }
        best.0
    }

    /// The most to play with which a segment of this quality is asked for at once, s. Since version 5.0, dash.js
    /// computes this and `least` with utilities from 1, the objective with utilities from 0; before, and in its
    /// paper, all with utilities from 1. So this is V above the level at which the objective becomes negative.
    fn most(&self, quality: usize) -> f64 {
        let utility = self.utilities.get(quality).copied().unwrap_or(0.0);
        self.v * (utility + 1.0 + self.gamma)
    }

    /// The least to play with which this quality is preferred to all lower ones, with utilities from 1, s.
    fn least(&self, quality: usize) -> f64 {
        let of = |m: usize| Some((*self.bit_rates.get(m)?, self.utilities.get(m)? + 1.0));
        let Some((rate, utility)) = of(quality) else {
            return 0.0;
        };
        let lower = (0..quality).filter_map(of);
        let levels =
            lower.map(|(r, u)| self.v * (self.gamma + (rate * u - r * utility) / (rate - r)));
        levels.fold(0.0, f64::max)
    }
}

/// State of a client from its last segments: the rule of dash.js.
///
/// A *placeholder* counts as further time to play. It is what makes the rule ask for a good quality before there is
/// much to play (BOLA-E), and it makes up for time in which the client asked for nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bola {
    /// It has had a segment to play, so that qualities follow from the buffer; else from throughput.
    is_steady: bool,
    /// s.
    placeholder: f64,
    /// Since when the placeholder has to make up for time: the last segment's arrival, or the last decision after it.
    idle_since: Option<Instant>,
    /// A segment arrived since the rule was first asked.
    has_segment: bool,
}

/// Choice of a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    pub quality: usize,
    /// Ask again after this; 0: ask for the segment now.
    pub wait: Duration,
}

/// Input of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Situation {
    pub now: Instant,
    /// Time to play, s.
    pub level: f64,
    /// The quality that the throughput allows.
    pub sustainable: usize,
    /// The quality of the last segment.
    pub current: usize,
}

impl Bola {
    /// The quality of the next segment, or how long to wait before asking again.
    pub fn choose(&mut self, objective: &Objective, ladder: &Ladder, at: Situation) -> Choice {
        if !self.is_steady {
            self.placeholder = (objective.least(at.sustainable) - at.level).max(0.0);
            self.is_steady = self.has_segment && at.level >= ladder.segment.as_secs_f64();
            return Choice {
                quality: at.sustainable,
                wait: Duration::ZERO,
            };
        }
        if let Some(since) = self.idle_since.replace(at.now) {
            self.placeholder += at.now.saturating_since(since).as_secs_f64();
        }
        let mut quality = objective.best(at.level + self.placeholder);
        // BOLA-O: a higher quality only where the throughput allows it, so that qualities do not alternate.
        if quality > at.current && quality > at.sustainable {
            quality = at.sustainable.max(at.current);
        }
        let excess = (at.level + self.placeholder - objective.most(quality)).max(0.0);
        let of_placeholder = excess.min(self.placeholder);
        self.placeholder -= of_placeholder;
        let wait = if quality < ladder.top() {
            excess - of_placeholder
        } else {
            0.0
        };
        Choice {
            quality,
            wait: seconds(wait),
        }
    }

    /// A segment of `quality` arrived, `took` s after it was asked for, with `level` s to play.
    pub fn on_segment(
        &mut self,
        objective: &Objective,
        quality: usize,
        level: f64,
        took: f64,
        now: Instant,
    ) {
        self.has_segment = true;
        self.idle_since = Some(now);
        let most = (objective.most(quality) - level - took).max(0.0);
        self.placeholder = (self.placeholder * PLACEHOLDER_DECAY).min(most);
    }

    /// There was nothing to play any more.
    pub fn on_empty(&mut self) {
        if self.is_steady {
            self.placeholder = 0.0;
        }
    }
}

/// A time of so many s, rounded up to a nanosecond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; from float to integer saturates"
)]
fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos(libm::ceil(seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests;
