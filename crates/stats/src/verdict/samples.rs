//! What is compared: repetitions of a treatment and of a reference, in pairs or as independent samples.

use super::TestName;
use crate::compare::{self, Comparison};
use crate::estimate::Sample;

/// The values of one indicator on both sides, one per repetition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Samples<'a> {
    /// (treatment, reference): the repetitions of both share their random numbers.
    Pairs(&'a [(f64, f64)]),
    /// Treatment and reference have nothing in common.
    Independent(&'a [f64], &'a [f64]),
}

impl Samples<'_> {
    pub fn compare(self, is_ratio: bool, means: &(Sample, Sample)) -> Option<Comparison> {
        let (treatment, reference) = means;
        match (self, is_ratio) {
            (Self::Pairs(pairs), true) => compare::paired_ratio(pairs),
            (Self::Pairs(pairs), false) => compare::paired_difference(pairs),
            (Self::Independent(..), true) => compare::ratio(treatment, reference),
            (Self::Independent(..), false) => compare::difference(treatment, reference),
        }
    }

    pub const fn test(self, is_ratio: bool) -> TestName {
        match (self, is_ratio) {
            (Self::Pairs(_), true) => TestName::PairedRatio,
            (Self::Pairs(_), false) => TestName::PairedDifference,
            (Self::Independent(..), true) => TestName::IndependentRatio,
            (Self::Independent(..), false) => TestName::IndependentDifference,
        }
    }

    /// Runs of the treatment beyond the margin. A run without a partner is compared with the worst of the reference:
    /// with a fixed threshold their number is binomial.
    pub fn beyond(self, falls: bool, is_beyond: impl Fn(f64, f64) -> bool) -> u32 {
        let count = match self {
            Self::Pairs(pairs) => pairs.iter().filter(|(t, r)| is_beyond(*t, *r)).count(),
            Self::Independent(treatment, reference) => {
                let worse = if falls { f64::min } else { f64::max };
                let worst = reference.iter().copied().reduce(worse).unwrap_or(0.0);
                treatment.iter().filter(|t| is_beyond(**t, worst)).count()
            }
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
