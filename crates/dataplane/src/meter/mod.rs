//! Meters: they colour packets, and never delay or drop one.
//!
//! One file per algorithm. Every RFC's colour-blind rules equal its colour-aware rules for green
//! packets, so each algorithm implements only the colour-aware form and [`MeterState`] treats every
//! packet as green in blind mode.

pub mod policer;
mod rfc4115;
mod single_rate;
mod sr_tcm;
mod tr_tcm;

pub use policer::{PolicerState, PolicerVerdict};

use rfc4115::Rfc4115;
use single_rate::SingleRate;
use slicewise_model::{Colour, ColourMode, MeterAlgorithm};
use slicewise_units::{Duration, FrameLengths, Instant};
use sr_tcm::SrTcm;
use tr_tcm::TrTcm;

/// A meter with its buckets, which start full.
#[derive(Debug, Clone, Copy)]
pub struct MeterState {
    mode: ColourMode,
    /// Buckets earn credit at its multiples only.
    refill_interval: Option<Duration>,
    marker: Marker,
}

#[derive(Debug, Clone, Copy)]
enum Marker {
    SingleRate(SingleRate),
    SrTcm(SrTcm),
    TrTcm(TrTcm),
    Rfc4115(Rfc4115),
}

impl MeterState {
    /// A meter whose buckets are full at `now`, and replenished continuously.
    #[must_use]
    pub fn new(algorithm: MeterAlgorithm, mode: ColourMode, now: Instant) -> Self {
        Self::with_interval(algorithm, mode, None, now)
    }

    /// A meter whose buckets are full at `now`, and replenished at multiples of `refill_interval` only: what a bucket
    /// would earn during an interval beyond its burst is lost.
    #[must_use]
    pub fn with_interval(
        algorithm: MeterAlgorithm,
        mode: ColourMode,
        refill_interval: Option<Duration>,
        now: Instant,
    ) -> Self {
        let now = replenished(refill_interval, now);
        let marker = match algorithm {
            MeterAlgorithm::SingleRateTwoColour { cir, cbs } => {
                Marker::SingleRate(SingleRate::new(cir, cbs, now))
            }
            MeterAlgorithm::SingleRateThreeColour { cir, cbs, ebs } => {
                Marker::SrTcm(SrTcm::new(cir, cbs, ebs, now))
            }
            MeterAlgorithm::TwoRateThreeColour { cir, cbs, pir, pbs } => {
                Marker::TrTcm(TrTcm::new(cir, cbs, pir, pbs, now))
            }
            MeterAlgorithm::TwoRateThreeColourEfficient { cir, cbs, eir, ebs } => {
                Marker::Rfc4115(Rfc4115::new(cir, cbs, eir, ebs, now))
            }
        };
        Self {
            mode,
            refill_interval,
            marker,
        }
    }

    /// The colour of a frame that arrives at `now` with the colour `incoming`. O(1).
    ///
    /// In colour-aware mode the result is never better than `incoming`; in colour-blind mode
    /// `incoming` does not matter.
    #[inline]
    pub fn colour(&mut self, frame: FrameLengths, incoming: Colour, now: Instant) -> Colour {
        let incoming = match self.mode {
            ColourMode::Blind => Colour::Green,
            ColourMode::Aware => incoming,
        };
        let now = replenished(self.refill_interval, now);
        match &mut self.marker {
            Marker::SingleRate(meter) => meter.colour(frame, incoming, now),
            Marker::SrTcm(meter) => meter.colour(frame, incoming, now),
            Marker::TrTcm(meter) => meter.colour(frame, incoming, now),
            Marker::Rfc4115(meter) => meter.colour(frame, incoming, now),
        }
    }

    /// Continue with the credit of `old`, up to this meter's bursts, so that changing parameters gives
    /// no fresh burst. A change of algorithm starts with full buckets.
    pub fn resume_from(&mut self, old: &Self, now: Instant) {
        let now = replenished(self.refill_interval, now);
        match (&mut self.marker, &old.marker) {
            (Marker::SingleRate(new), Marker::SingleRate(old)) => new.resume_from(old, now),
            (Marker::SrTcm(new), Marker::SrTcm(old)) => new.resume_from(old, now),
            (Marker::TrTcm(new), Marker::TrTcm(old)) => new.resume_from(old, now),
            (Marker::Rfc4115(new), Marker::Rfc4115(old)) => new.resume_from(old, now),
            _ => {}
        }
    }
}

/// When the buckets were last replenished, as of `now`.
#[inline]
fn replenished(interval: Option<Duration>, now: Instant) -> Instant {
    match interval {
        Some(interval) => last_multiple(interval, now),
        None => now,
    }
}

/// Not inlined, so that a meter that is replenished continuously does not pay for it.
#[inline(never)]
fn last_multiple(interval: Duration, now: Instant) -> Instant {
    let since = now.nanos().checked_rem(interval.nanos());
    Instant::from_nanos(now.nanos() - since.unwrap_or(0))
}

#[cfg(test)]
mod tests;
