//! Meters and policers: what a user writes and what the data plane runs.

use crate::{BurstSpec, Rate, RateSpec};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// The colour a meter gives a packet, in order of preference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Colour {
    /// Within the committed rate.
    #[default]
    Green,
    /// Beyond the committed rate, within the excess or peak.
    Yellow,
    /// Beyond all rates.
    Red,
}

impl Colour {
    /// All of them, in order of preference.
    pub const ALL: [Self; 3] = [Self::Green, Self::Yellow, Self::Red];
}

/// Mode of a meter: it respects the incoming colour of a packet, or does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColourMode {
    /// Every packet counts as green before metering.
    #[default]
    Blind,
    /// A packet is never promoted to a better colour than its incoming one.
    Aware,
}

/// Which marker algorithm, with validated parameters. Buckets start full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterAlgorithm {
    /// One bucket: green within (CIR, CBS), red beyond.
    SingleRateTwoColour {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size.
        cbs: ByteCount,
    },
    /// RFC 2697: overflow of the committed bucket fills the excess bucket.
    SingleRateThreeColour {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size.
        cbs: ByteCount,
        /// Excess burst size.
        ebs: ByteCount,
    },
    /// RFC 2698: green spends from both buckets; beyond PIR is red.
    TwoRateThreeColour {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size.
        cbs: ByteCount,
        /// Peak information rate, at least CIR.
        pir: Rate,
        /// Peak burst size.
        pbs: ByteCount,
    },
    /// RFC 4115: green spends from the committed bucket only, yellow from the excess bucket,
    /// which fills at EIR.
    TwoRateThreeColourEfficient {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size.
        cbs: ByteCount,
        /// Excess information rate, *in addition to* CIR.
        eir: Rate,
        /// Excess burst size.
        ebs: ByteCount,
    },
}

impl MeterAlgorithm {
    /// The committed rate.
    #[must_use]
    pub const fn committed_rate(&self) -> Rate {
        match *self {
            Self::SingleRateTwoColour { cir, .. }
            | Self::SingleRateThreeColour { cir, .. }
            | Self::TwoRateThreeColour { cir, .. }
            | Self::TwoRateThreeColourEfficient { cir, .. } => cir,
        }
    }
}

impl MeterAlgorithm {
    /// Rate and burst within which no packet gets this colour, which is not green, or a worse one.
    fn threshold(&self, colour: Colour) -> (BitRate, ByteCount) {
        match (*self, colour) {
            (Self::TwoRateThreeColour { pir, pbs, .. }, Colour::Red) => (pir.rate, pbs),
            (Self::SingleRateThreeColour { cir, cbs, ebs }, Colour::Red) => (cir.rate, cbs + ebs),
            (Self::TwoRateThreeColourEfficient { cir, cbs, eir, ebs }, Colour::Red) => {
                let both = cir
                    .rate
                    .bits_per_second()
                    .saturating_add(eir.rate.bits_per_second());
                (BitRate::new(both), cbs + ebs)
            }
            (
                Self::SingleRateTwoColour { cir, cbs }
                | Self::SingleRateThreeColour { cir, cbs, .. }
                | Self::TwoRateThreeColour { cir, cbs, .. }
                | Self::TwoRateThreeColourEfficient { cir, cbs, .. },
                _,
            ) => (cir.rate, cbs),
        }
    }

    /// With rates of other bytes.
    pub(crate) const fn counted_as(mut self, accounting: Accounting) -> Self {
        match &mut self {
            Self::SingleRateTwoColour { cir, .. } | Self::SingleRateThreeColour { cir, .. } => {
                *cir = cir.counted_as(accounting);
            }
            Self::TwoRateThreeColour { cir, pir: more, .. }
            | Self::TwoRateThreeColourEfficient { cir, eir: more, .. } => {
                *cir = cir.counted_as(accounting);
                *more = more.counted_as(accounting);
            }
        }
        self
    }
}

/// Action of a policer on packets of a colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Forward it unchanged.
    Transmit,
    /// Drop it.
    Drop,
    /// Set its DSCP and forward it.
    SetDscp(u8),
    /// Set a device-internal QoS group and forward it.
    SetQosGroup(u8),
    /// Forward it through this named queue of the policy.
    Queue(String),
}

impl Action {
    /// The named queue that it chooses.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        match self {
            Self::Queue(queue) => Some(queue),
            _ => None,
        }
    }
}

/// A validated policer: a meter, and an action per colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicerParams {
    /// The meter.
    pub algorithm: MeterAlgorithm,
    /// Colour-blind or colour-aware.
    pub mode: ColourMode,
    /// Its buckets are replenished at multiples of this interval only, as those of switches are; `None` for
    /// continuously.
    pub refill_interval: Option<Duration>,
    /// Action on green.
    pub conform: Action,
    /// Action on yellow.
    pub exceed: Action,
    /// Action on red.
    pub violate: Action,
}

impl PolicerParams {
    /// The action on a colour.
    #[must_use]
    pub const fn action(&self, colour: Colour) -> &Action {
        match colour {
            Colour::Green => &self.conform,
            Colour::Yellow => &self.exceed,
            Colour::Red => &self.violate,
        }
    }

    /// Rate and burst within which no packet is dropped; `None` where none ever is.
    #[must_use]
    pub fn passed(&self) -> Option<(BitRate, ByteCount)> {
        let dropped = Colour::ALL
            .into_iter()
            .find(|colour| *self.action(*colour) == Action::Drop);
        dropped.map(|colour| match colour {
            Colour::Green => (BitRate::ZERO, ByteCount::ZERO),
            colour => self.algorithm.threshold(colour),
        })
    }

    /// Returns true if some packets within (rate, burst) are dropped, as far as numbers tell that count the same bytes.
    #[must_use]
    pub fn may_drop_within(&self, rate: BitRate, burst: ByteCount) -> bool {
        self.passed()
            .is_some_and(|(kept_rate, kept_burst)| kept_rate < rate || kept_burst < burst)
    }

    /// Returns true if packets of every colour are sent as they came.
    #[must_use]
    pub fn passes_all(&self) -> bool {
        [&self.conform, &self.exceed, &self.violate]
            .iter()
            .all(|action| **action == Action::Transmit)
    }
}

/// A policer as written; what is `None` takes the default of [`crate::PolicySpec::resolve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicerSpec {
    /// Committed information rate.
    pub cir: RateSpec,
    /// Committed burst; default 250 ms at CIR, at least 1500 B (IOS: CIR/32 bytes).
    pub cbs: Option<BurstSpec>,
    /// Excess burst: makes it the single-rate three-colour marker (RFC 2697). Default: as large
    /// as the committed burst where `violate` is set (as IOS), else none. With `eir`: the burst
    /// of that rate; default as `cbs`, at EIR.
    pub ebs: Option<BurstSpec>,
    /// Peak information rate: makes it a two-rate marker (RFC 2698).
    pub pir: Option<RateSpec>,
    /// Peak burst; default as `cbs`, at PIR.
    pub pbs: Option<BurstSpec>,
    /// Excess information rate: makes it the marker of RFC 4115. Not together with `pir`.
    pub eir: Option<RateSpec>,
    /// Bytes of a frame that the rates count.
    pub accounting: Accounting,
    /// Colour-blind or colour-aware.
    pub mode: ColourMode,
    /// Replenish the buckets at multiples of this interval only; default continuously. What a bucket cannot
    /// hold is lost: one that is smaller than the rate times the interval passes less than its rate.
    pub refill_interval: Option<Duration>,
    /// Action on green; default transmit.
    pub conform: Option<Action>,
    /// Action on yellow; default drop. With a two-colour meter: the action beyond the rate.
    pub exceed: Option<Action>,
    /// Action on red; default as `exceed`.
    pub violate: Option<Action>,
}

impl PolicerSpec {
    /// Its actions as written, on green, yellow and red, each with the name of the setting.
    #[must_use]
    pub fn actions(&self) -> [(&'static str, Option<&Action>); 3] {
        [
            ("conform", self.conform.as_ref()),
            ("exceed", self.exceed.as_ref()),
            ("violate", self.violate.as_ref()),
        ]
    }

    /// A policer at `cir` with defaults otherwise: colour-blind, counting L2.
    #[must_use]
    pub const fn new(cir: RateSpec) -> Self {
        Self {
            cir,
            cbs: None,
            ebs: None,
            pir: None,
            pbs: None,
            eir: None,
            accounting: Accounting::L2,
            mode: ColourMode::Blind,
            refill_interval: None,
            conform: None,
            exceed: None,
            violate: None,
        }
    }
}

impl From<RateSpec> for PolicerSpec {
    fn from(cir: RateSpec) -> Self {
        Self::new(cir)
    }
}
