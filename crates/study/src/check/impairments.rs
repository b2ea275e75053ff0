//! Impairments of links.

use super::Checker;
use crate::params::StudyLink;
use crate::spec::{PartsPerMillion, Scalar, Short, narrowed};
use crate::{problem, settings};
use serde_json::{Value, json};
use slicewise_traffic::impairments::{
    DelayVariationParams, ImpairmentParams, LinkImpairments, LossParams,
};
use slicewise_units::Duration;

/// The whole, parts per million.
const ALL: u32 = 1_000_000;

settings! {
    /// Loss and delay variation of the links, in simulations only.
    impl LinkImpairments as "ImpairmentsSpec" = Self::default(); {
        /// Of the link from the sending host to the device.
        ingress,
        /// Of the link from the device to the receiving host.
        egress,
    }
}

settings! {
    /// Impairments of a link. They are independent for each source, with random numbers that follow from its name.
    impl ImpairmentParams as "ImpairmentSpec" = Self::default(); {
        /// Frames lost: a fraction of all, independently, or in bursts.
        loss: Short<Probability, LossParams> = |link, loss| {
            let never = LossParams::independent(0);
            link.loss = Some(loss.value).filter(|loss| *loss != never);
        },
        /// Bit error ratio: a frame is lost if one of its bits is wrong.
        bit_errors: BitErrorRatio = |link, ratio| link.bit_errors_per_1e15 = ratio.0,
        /// Delay beyond propagation: up to this value, uniformly distributed and in order, or settings.
        delay_variation: Short<Duration, DelayVariationParams> = |link, delay| {
            link.delay_variation = Some(delay.value).filter(|delay| delay.up_to > Duration::ZERO);
        },
    }
}

settings! {
    /// Loss in bursts: a channel of two states that may change state after each frame of a source, as of
    /// Gilbert and Elliott.
    impl LossParams as "BurstLossSpec", strict = Self {
        to_bad_ppm: 0,
        to_good_ppm: 0,
        in_good_ppm: 0,
        in_bad_ppm: ALL,
    };
    {
        /// Probability of the bad state after a frame in the good one: `p` of `netem loss gemodel`.
        [expected] to_bad: Begins = |loss, to_bad| loss.to_bad_ppm = to_bad.0.0,
        /// Probability of the good state after a frame in the bad one: `r`. A burst has 1 / `to_good` frames
        /// on average.
        [expected] to_good: Ends = |loss, to_good| loss.to_good_ppm = to_good.0.0,
        /// Frames lost in the bad state: `1-h`. Default 100 %.
        in_bad: Probability = |loss, part| loss.in_bad_ppm = part.0.0,
        /// Frames lost in the good state: `1-k`. Default 0 %.
        in_good: Probability = |loss, part| loss.in_good_ppm = part.0.0,
    }
}

impl From<Probability> for LossParams {
    fn from(Probability(PartsPerMillion(ppm)): Probability) -> Self {
        Self::independent(ppm)
    }
}

narrowed! {
    /// Parts of a million.
    #[derive(Copy)]
    Probability(PartsPerMillion) as "PartsPerMillion": |text| match PartsPerMillion::from_text(text)? {
        PartsPerMillion(ppm) if ppm > ALL => Err("this is more than 100 %".to_owned()),
        part => Ok(part),
    };
    /// How likely a burst of losses begins.
    #[derive(Copy)]
    Begins(PartsPerMillion) as "PartsPerMillion": |text| match Probability::from_text(text)?.0 {
        PartsPerMillion(0) => Err("no burst of losses would begin".to_owned()),
        part => Ok(part),
    };
    /// How likely a burst of losses ends.
    #[derive(Copy)]
    Ends(PartsPerMillion) as "PartsPerMillion": |text| match Probability::from_text(text)?.0 {
        PartsPerMillion(0) => Err("no burst of losses would end".to_owned()),
        part => Ok(part),
    };
}

settings! {
    /// How delay varies.
    impl DelayVariationParams as "DelayVariationSpec" = Duration::ZERO.into(); {
        /// Maximum added to propagation.
        [expected] up_to,
        /// `uniform` (default), or `normal`: around the middle, with a sixth of `up_to` as standard deviation.
        distribution,
        /// True if a frame may overtake another of its source, as with netem. Default false.
        reorder,
    }
}

/// Wrong bits in 10¹⁵.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BitErrorRatio(u64);

impl Scalar for BitErrorRatio {
    const NAME: &'static str = "BitErrorRatio";

    fn from_text(text: &str) -> Result<Self, String> {
        let written = text.trim();
        let ratio: f64 = written.parse().unwrap_or(f64::NAN);
        // At one wrong bit in a hundred no frame of 64 bytes in 150 is whole.
        if !(1e-15..=0.01).contains(&ratio) && ratio != 0.0 {
            return Err(format!(
                "`{written}` is not a bit error ratio from 1e-15 to 0.01: write for example `1e-7`"
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 10^13"
        )]
        let per_1e15 = (ratio * 1e15).round() as u64;
        Ok(Self(per_1e15))
    }

    fn accepted() -> Value {
        json!({
            "type": ["number", "string"],
            "minimum": 0,
            "maximum": 0.01,
            "pattern": "^ *[0-9.]+([eE]-?[0-9]+)? *$",
            "examples": [1e-7],
        })
    }
}

impl Checker<'_> {
    /// Delay varies by less than the run takes.
    pub(super) fn check_variation(&mut self, link: &StudyLink, duration: Duration) {
        let of = link.impairments;
        for (which, impairment) in [("ingress", of.ingress), ("egress", of.egress)] {
            let varies = impairment.delay_variation;
            if varies.is_none_or(|varies| varies.up_to < duration) {
                continue;
            }
            let path = ["link", "impairments", which, "delay_variation"];
            let within = [path.as_slice(), &["up_to"]].concat();
            if let Some(at) = self.place_of(&within).or_else(|| self.place_of(&path)) {
                problem!(self.problems, at => "this is not shorter than the run, which takes {duration}";
                    "choose a shorter time, or a longer `duration`");
            }
        }
    }
}
