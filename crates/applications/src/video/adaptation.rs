//! Which quality is asked for next: the rules of dash.js 5.1, with the defaults of its `Settings.js`.
//!
//! Of the rule for throughput or for the buffer and that against an empty buffer, the lower quality counts
//! (`ABRRulesCollection.js`).

use super::bola::{Bola, Choice, Objective, Situation};
use super::ladder::Ladder;
use super::throughput::Throughput;
use slicewise_traffic::application::AdaptationRule;
use slicewise_units::{Duration, Instant};

/// Of the throughput measured, so much is relied on: `bandwidthSafetyFactor`.
const SAFE: f64 = 0.9;
/// The same where little is left to play: `insufficientBufferRule.throughputSafetyFactor`.
const SAFE_WITH_LITTLE: f64 = 0.7;
/// So many segments at the beginning are not judged by how little is left: `segmentIgnoreCount`.
const IGNORED_SEGMENTS: u32 = 2;
/// No more than this counts as nothing left to play, s: `stallThreshold`.
const EMPTY: f64 = 0.3;
/// Before any throughput is known, bit/s: `DEFAULT_VIDEO_BITRATE` of `AbrController.js`.
const FIRST_BIT_RATE: f64 = 1e6;

/// Terms that are the same for all clients.
#[derive(Debug)]
pub struct Terms {
    pub ladder: Ladder,
    rule: AdaptationRule,
    /// Time to play that a client strives for below the top quality, s: `bufferTimeDefault`.
    stable_buffer: f64,
    /// `None` where there is one quality.
    objective: Option<Objective>,
}

impl Terms {
    pub fn new(ladder: Ladder, rule: AdaptationRule, stable_buffer: Duration) -> Self {
        let stable_buffer = stable_buffer.as_secs_f64();
        Self {
            objective: Objective::of_buffer(&ladder.bit_rates, stable_buffer),
            ladder,
            rule,
            stable_buffer,
        }
    }
}

/// Observations of a client, by which it chooses.
#[derive(Debug, Clone, Copy)]
pub struct Adaptation {
    throughput: Throughput,
    /// From when the rule was first asked on.
    bola: Option<Bola>,
    uses_bola: bool,
    segments: u32,
    /// Of the last segment that was asked for; at first of that which will be.
    pub quality: usize,
}

impl Adaptation {
    pub fn new(terms: &Terms) -> Self {
        Self {
            throughput: Throughput::default(),
            bola: None,
            uses_bola: terms.rule == AdaptationRule::Bola,
            segments: 0,
            quality: terms.ladder.within(FIRST_BIT_RATE),
        }
    }

    /// The quality of the next segment, with `level` s to play.
    pub fn choose(&mut self, terms: &Terms, level: f64, now: Instant) -> Choice {
        self.on_level(terms, level);
        let mut choice = Choice {
            quality: self.quality,
            wait: Duration::ZERO,
        };
        if let Some(mean) = self.throughput.mean() {
            let sustainable = terms.ladder.within(SAFE * mean);
            choice.quality = sustainable;
            if let (true, Some(objective)) = (self.uses_bola, &terms.objective) {
                let situation = Situation {
                    now,
                    level,
                    sustainable,
                    current: self.quality,
                };
                let bola = self.bola.get_or_insert_default();
                choice = bola.choose(objective, &terms.ladder, situation);
            }
            if self.segments >= IGNORED_SEGMENTS {
                let segment = terms.ladder.segment.as_secs_f64().max(1e-9);
                let affordable = if level <= EMPTY {
                    0.0
                } else {
                    SAFE_WITH_LITTLE * mean * level / segment
                };
                choice.quality = choice.quality.min(terms.ladder.within(affordable));
            }
        }
        self.quality = choice.quality;
        choice
    }

    /// A segment arrived, with `level` s to play before it. It was asked for `took` ago, and arrived in `transfer`.
    pub fn on_segment(
        &mut self,
        terms: &Terms,
        bytes: u64,
        level: f64,
        took: Duration,
        transfer: Duration,
        now: Instant,
    ) {
        self.segments = self.segments.saturating_add(1);
        self.throughput.on_response(bytes, transfer);
        if let (Some(bola), Some(objective)) = (&mut self.bola, &terms.objective) {
            if level <= EMPTY {
                bola.on_empty();
            }
            bola.on_segment(objective, self.quality, level, took.as_secs_f64(), now);
        }
        self.on_level(terms, level + terms.ladder.segment.as_secs_f64());
    }

    #[cfg(test)]
    pub fn uses_bola(&self) -> bool {
        self.uses_bola
    }

    /// The dynamic rule uses throughput until there is `stable_buffer` to play, then BOLA until there is half as much
    /// (`AbrController.js`).
    fn on_level(&mut self, terms: &Terms, level: f64) {
        if terms.rule == AdaptationRule::Dynamic {
            let least = if self.uses_bola { 0.5 } else { 1.0 };
            self.uses_bola = level >= least * terms.stable_buffer;
        }
    }
}
