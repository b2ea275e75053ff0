//! What a number of repetitions can show.
//!
//! Student's bounds assume that repetitions vary like a normal sample. Real ones may not: losses may be
//! confined to one run in ten, and a sample of ten without them then looks exact. No bound of a mean
//! keeps its level for every distribution (R. R. Bahadur and L. J. Savage, Ann. Math. Stat. 27, 1956),
//! so two rules complement Student's bounds, each exact for any distribution:
//!
//! - "Holds" also needs a binomial test: with the stated confidence, fewer than
//!   [`Margins::rare_runs`] of all runs lie beyond the margin. Rarer behaviour is ignored.
//! - "Broken" must be true even if every unseen run showed no worsening at all: the margin is divided by
//!   [`Rules::seen_share`].

use crate::description::Margins;
use crate::estimate::{t_tail, valid_confidence};
use crate::power::{self, MAX_REPETITIONS};
use statrs::distribution::{Binomial, DiscreteCDF};

/// Requirements of a study on its repetitions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// One-sided confidence of a decision.
    pub confidence: f64,
    /// Share of runs beyond the margin that must be excluded.
    rare_runs: f64,
}

/// How far beyond its margin a mean lies, and the variance of that with one repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contrast {
    /// Negative within the margin.
    pub distance: f64,
    pub variance: f64,
}

impl Contrast {
    /// p-values of "the mean of `runs` is within the margin" and "beyond it" (Student's t). The margin itself is
    /// within, and without scatter nothing is left to chance.
    pub fn p_values(self, runs: u32) -> (f64, f64) {
        self.p_values_at(runs, f64::from(runs) - 1.0)
    }

    /// The same with other degrees of freedom than those of one sample.
    pub fn p_values_at(self, runs: u32, freedom: f64) -> (f64, f64) {
        let Self { distance, variance } = self;
        if variance > 0.0 {
            let t = distance / (variance / f64::from(runs)).sqrt();
            (t_tail(-t, freedom), t_tail(t, freedom))
        } else if distance > 0.0 {
            (1.0, 0.0)
        } else {
            (0.0, 1.0)
        }
    }
}

impl Rules {
    pub fn of(margins: &Margins) -> Self {
        let rare_runs = if margins.rare_runs.is_finite() {
            margins.rare_runs.clamp(1e-6, 0.999_999)
        } else {
            Margins::default().rare_runs
        };
        Self {
            confidence: valid_confidence(margins.confidence),
            rare_runs,
        }
    }

    /// Largest p-value of a decision.
    pub fn alpha(self) -> f64 {
        1.0 - self.confidence
    }

    /// Probability of at most `beyond` of `runs` runs beyond the margin if the rare share of all runs is.
    pub fn p_rare(self, runs: u32, beyond: u32) -> f64 {
        if beyond >= runs {
            return 1.0;
        }
        Binomial::new(self.rare_runs, runs.into()).map_or(1.0, |runs| runs.cdf(beyond.into()))
    }

    /// Probability of at least `beyond` of `runs` runs beyond the margin if the rare share of all runs is.
    pub fn p_frequent(self, runs: u32, beyond: u32) -> f64 {
        let Some(fewer) = beyond.checked_sub(1) else {
            return 1.0;
        };
        Binomial::new(self.rare_runs, runs.into()).map_or(1.0, |runs| runs.sf(fewer.into()))
    }

    /// Repetitions that would decide a test of which `beyond` of `runs` runs are beyond the margin, one of `tests`;
    /// `None` where no number within reason would. `contrast` is that from the margin divided by its argument;
    /// `None` for a single run, whose scatter is not known.
    pub fn runs_to_decide(
        self,
        (runs, beyond): (u32, u32),
        tests: usize,
        contrast: Option<&dyn Fn(f64) -> Contrast>,
    ) -> Option<u32> {
        let Some(contrast) = contrast else {
            return self.runs_to_exclude_rare(1, 0);
        };
        let at_margin = contrast(1.0);
        if at_margin.distance <= 0.0 {
            return self.runs_to_show_within((runs, beyond), at_margin);
        }
        // The strictest step of Holm's correction must be passed.
        let level = 1.0 - self.alpha() / tests.max(1) as f64;
        power::fewest(|runs| {
            let Contrast { distance, variance } = contrast(self.seen_share(runs));
            distance > 0.0 && power::suffices(runs, distance, variance, level)
        })
    }

    /// Repetitions that would show a mean to be within its margin.
    pub fn runs_to_show_within(
        self,
        (runs, beyond): (u32, u32),
        Contrast { distance, variance }: Contrast,
    ) -> Option<u32> {
        let of_mean =
            power::fewest(|runs| power::suffices(runs, distance, variance, self.confidence));
        of_mean
            .zip(self.runs_to_exclude_rare(runs, beyond))
            .map(|(mean, rare)| mean.max(rare))
    }

    /// Repetitions that would decide on which side of the rare share that of runs beyond the margin is.
    pub fn runs_to_decide_share(self, (runs, beyond): (u32, u32), tests: usize) -> Option<u32> {
        let level = self.alpha() / tests.max(1) as f64;
        let share = |n: u32| u64::from(beyond) * u64::from(n) / u64::from(runs.max(1));
        let is_frequent = |n: u32| {
            let beyond = u32::try_from(share(n)).unwrap_or(u32::MAX);
            self.p_frequent(n, beyond) <= level
        };
        self.runs_to_exclude_rare(runs, beyond)
            .or_else(|| (2..=MAX_REPETITIONS).find(|&n| is_frequent(n)))
    }

    /// The fewest runs that exclude the rare share where the share of runs beyond the margin stays
    /// `beyond` of `runs`; `None` where no number within reason does.
    pub fn runs_to_exclude_rare(self, runs: u32, beyond: u32) -> Option<u32> {
        let scaled = |n: u32| {
            let beyond = u64::from(beyond) * u64::from(n);
            u32::try_from(beyond.div_ceil(u64::from(runs.max(1)))).unwrap_or(u32::MAX)
        };
        if f64::from(beyond) >= self.rare_runs * f64::from(runs.max(1)) {
            return None;
        }
        (1..=MAX_REPETITIONS).find(|&n| self.p_rare(n, scaled(n)) <= self.alpha())
    }

    /// The share of all runs represented by `runs` runs: a behaviour with a larger share than the rest
    /// occurs in at least one of them, with the stated confidence.
    pub fn seen_share(self, runs: u32) -> f64 {
        self.alpha().powf(1.0 / f64::from(runs.max(1)))
    }
}

/// The fewest repetitions with which anything can be shown to hold: that many without one beyond its margin; `None`
/// where that is more than anyone will run.
#[must_use]
pub fn repetitions_to_hold(margins: &Margins) -> Option<u32> {
    Rules::of(margins).runs_to_exclude_rare(1, 0)
}

/// The smallest share of runs, in whole percent, that `runs` runs can exclude at `confidence`.
#[must_use]
pub fn rare_share_excluded(runs: u32, confidence: f64) -> f64 {
    let alpha = 1.0 - valid_confidence(confidence);
    let share = 1.0 - alpha.powf(1.0 / f64::from(runs.max(1)));
    (share * 100.0).ceil().min(99.0) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rare_runs: f64) -> Rules {
        Rules::of(&Margins {
            rare_runs,
            ..Margins::default()
        })
    }

    #[test]
    fn the_fewest_runs_without_one_beyond_the_margin_are_those_of_the_binomial_test() {
        // 0.9^28 = 0.0523, 0.9^29 = 0.0471.
        assert!(rules(0.1).p_rare(28, 0) > 0.05 && rules(0.1).p_rare(29, 0) < 0.05);
        assert_eq!(rules(0.1).runs_to_exclude_rare(5, 0), Some(29));
        assert_eq!(rules(0.09).runs_to_exclude_rare(10, 0), Some(32));
        assert_eq!(rules(0.4).runs_to_exclude_rare(3, 0), Some(6));
    }

    #[test]
    fn runs_beyond_the_margin_ask_for_more_and_too_many_cannot_be_excluded() {
        // One in 40 beyond: 0.025 against 0.09.
        let needed = rules(0.09).runs_to_exclude_rare(40, 1).unwrap();
        assert!((40..120).contains(&needed), "{needed}");
        assert!(rules(0.09).p_rare(needed, needed.div_ceil(40)) <= 0.05);
        assert_eq!(rules(0.09).runs_to_exclude_rare(10, 1), None);
        assert_eq!(rules(0.09).runs_to_exclude_rare(0, 0), Some(32));
    }

    #[test]
    fn all_runs_beyond_the_margin_exclude_nothing() {
        assert_eq!(rules(0.5).p_rare(1, 1), 1.0);
        assert_eq!(rules(0.5).p_rare(0, 0), 1.0);
    }

    #[test]
    fn the_share_that_a_quick_look_excludes_is_the_one_its_rule_accepts() {
        for runs in 2..60 {
            let rare = rare_share_excluded(runs, 0.95);
            assert!(rules(rare).p_rare(runs, 0) <= 0.05 + 1e-12, "{runs} {rare}");
            assert!(rules(rare - 0.01).p_rare(runs, 0) > 0.05, "{runs} {rare}");
        }
        assert_eq!(rare_share_excluded(6, 0.95), 0.4);
    }

    #[test]
    fn a_share_that_is_more_than_rare_is_shown_by_as_many_runs_as_the_binomial_test_needs() {
        // With 0.1 of all runs, P(X >= 2 of 4) = 0.0523, P(X >= 2 of 5) = 0.0815, P(X >= 3 of 6) = 0.0159.
        assert_eq!(rules(0.1).runs_to_decide_share((10, 5), 1), Some(6));
        assert_eq!(rules(0.1).runs_to_decide_share((10, 0), 1), Some(29));
        // One of many tests needs more.
        assert!(rules(0.1).runs_to_decide_share((10, 5), 10) > Some(6));
    }

    #[test]
    fn a_worsening_that_is_one_of_many_needs_the_repetitions_of_holms_strictest_step() {
        let contrast = |_| Contrast {
            distance: 0.5,
            variance: 1.0,
        };
        let needed = |tests| rules(0.1).runs_to_decide((10, 10), tests, Some(&contrast));
        // The textbook's size of a one-sided test of half a standard deviation at 5 %.
        assert_eq!(needed(1), Some(27));
        let strict = power::fewest(|runs| power::suffices(runs, 0.5, 1.0, 0.995));
        assert_eq!(needed(10), strict);
        assert!(strict > Some(27));
    }
}
