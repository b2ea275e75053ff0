//! Tests of the share of runs beyond a limit.
//!
//! Each run is within its limit or beyond it. "Holds" says that at most a share p₀ of all runs ([`Margins::rare_runs`]) is beyond,
//! "broken" that more than p₀ is. Each is decided by an e-value: the likelihood ratio of k of n runs between a share q on its side of p₀
//! and p₀ itself, mixed over several q. While the contrary is true its expectation is at most 1, so that it ever reaches 1/α with a
//! probability of at most α (J. Ville 1939; V. Vovk and R. Wang, Ann. Stat. 49, 2021; A. Ramdas and others, Stat. Sci. 38, 2023). That
//! holds for every distribution of what is measured, and at every look: runs may be added until it is decided.

use super::Outcome;
use crate::description::Margins;
use crate::estimate::valid_confidence;
pub use crate::observations::SampleKind;
use serde::{Deserialize, Serialize};

/// No study has more repetitions.
pub(super) const MAX_REPETITIONS: u32 = 10_000;

/// Shares of runs beyond the limit for which "holds" is decided soonest, as parts of p₀, and their weights.
const WITHIN: [(f64, f64); 4] = [
    (1.0 / 180.0, 0.7),
    (1.0 / 9.0, 0.12),
    (1.0 / 3.0, 0.1),
    (5.0 / 9.0, 0.08),
];

/// Shares of runs within the limit for which "broken" is decided soonest, as parts of 1 − p₀, and their weights.
const BEYOND: [(f64, f64); 4] = [(0.88, 0.1), (0.714, 0.2), (0.44, 0.2), (0.033, 0.5)];

/// A run held against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// Beyond it.
    Beyond,
    /// Within it, but without a steady state: it does not show that the limit is kept.
    Unsettled,
    /// Within it.
    Within,
    /// Within it, and the reference is worse than this run by more than the limit.
    Better,
}

/// Shares of worse ones of all runs that differ from the reference by more than the margin, and their weights.
const WORSE: [(f64, f64); 3] = [(0.65, 0.3), (0.8, 0.3), (0.97, 0.4)];

/// Runs, and those of them beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCount {
    /// Runs; 1 where all of them are copies of one.
    pub runs: u32,
    /// Those beyond the limit.
    pub beyond: u32,
    /// Those within it that had no steady state: they do not show that it is kept.
    pub unsettled: u32,
    /// Those as much better than the reference as others are worse: as many of them are chance.
    pub better: u32,
    /// Runs of the reference that differ from the one before by more than the limit.
    pub scattered: u32,
    /// How the runs represent all runs.
    pub sample: SampleKind,
    /// Share of all runs that "holds" says no more are beyond than.
    pub excluded: f64,
    /// Share of all runs that "broken" says more are beyond than: the same, but at most 9 %, as few runs exclude little.
    pub tolerated: f64,
    /// One-sided confidence of a decision.
    pub confidence: f64,
}

impl RunCount {
    /// None, by the margins of a study.
    #[must_use]
    pub fn none(margins: &Margins) -> Self {
        let usual = Margins::default().rare_runs;
        let excluded = match margins.rare_runs.is_finite() {
            true => margins.rare_runs.clamp(1e-6, 0.999_999),
            false => usual,
        };
        Self {
            runs: 0,
            beyond: 0,
            unsettled: 0,
            better: 0,
            scattered: 0,
            sample: SampleKind::Sample,
            excluded,
            tolerated: excluded.min(usual),
            confidence: valid_confidence(margins.confidence),
        }
    }

    /// With these runs.
    #[must_use]
    pub(super) fn with(self, runs: impl Iterator<Item = Run>) -> Self {
        runs.fold(self, |count, run| Self {
            runs: count.runs.saturating_add(1),
            beyond: count.beyond + u32::from(run == Run::Beyond),
            unsettled: count.unsettled + u32::from(run == Run::Unsettled),
            better: count.better + u32::from(run == Run::Better),
            ..count
        })
    }

    /// The runs within their limit.
    #[must_use]
    pub const fn within(self) -> u32 {
        self.runs.saturating_sub(self.beyond)
    }

    /// E-value of "at most so many of all runs are beyond".
    #[must_use]
    pub fn evidence_within(self) -> f64 {
        let mixed = WITHIN.map(|(part, weight)| (part * self.excluded, weight));
        let beyond = self.beyond.saturating_add(self.unsettled);
        mixture(self.excluded, mixed, self.runs, beyond)
    }

    /// E-value of "more than p₀ of all runs are beyond".
    #[must_use]
    pub fn evidence_beyond(self) -> f64 {
        let mixed = BEYOND.map(|(part, weight)| (1.0 - part * (1.0 - self.tolerated), weight));
        mixture(self.tolerated, mixed, self.runs, self.beyond)
    }

    /// Returns true if the runs that are worse than the reference are shown to outnumber those that are better by as
    /// much: where runs of one scenario scatter by more than the margin, they are as many.
    fn is_worse_than_chance(self, tests: f64) -> bool {
        let discordant = self.beyond.saturating_add(self.better);
        let evidence = mixture(0.5, WORSE, discordant, self.beyond);
        self.better + self.scattered == 0 || evidence * (1.0 - self.confidence) >= tests
    }

    /// The e-value of the one of both that the runs lean to.
    pub(super) fn strength(self) -> f64 {
        self.evidence_within().max(self.evidence_beyond())
    }

    /// Returns true if there is more evidence for "broken" than for "holds".
    pub(super) fn leans_to_broken(self) -> bool {
        self.evidence_beyond() > self.evidence_within()
    }

    /// The outcome, as one of `tests` of which one that is broken breaks all.
    pub(super) fn outcome(self, tests: usize) -> Outcome {
        if self.sample != SampleKind::Sample && self.runs > 0 {
            return match self {
                Self { beyond: 1.., .. } => Outcome::Broken,
                Self { unsettled: 1.., .. } => Outcome::Inconclusive,
                _ => Outcome::Holds,
            };
        }
        let (alpha, tests) = (1.0 - self.confidence, tests.max(1) as f64);
        // Where few runs exclude little, both can be shown: "broken" says more.
        if self.evidence_beyond() * alpha >= tests && self.is_worse_than_chance(tests) {
            Outcome::Broken
        } else if self.evidence_within() * alpha >= 1.0 {
            Outcome::Holds
        } else {
            Outcome::Inconclusive
        }
    }

    /// Runs that would decide it if the share of those beyond the limit stays what it is; `None` where no number within reason would.
    pub(super) fn runs_needed(self, tests: usize) -> Option<u32> {
        if self.sample != SampleKind::Sample {
            return None;
        }
        (self.runs.saturating_add(1).max(2)..=MAX_REPETITIONS)
            .find(|&runs| self.scaled_to(runs).outcome(tests) != Outcome::Inconclusive)
    }

    /// As many runs with the same share of them beyond the limit, rounded against what the runs lean to.
    pub(super) fn scaled_to(self, runs: u32) -> Self {
        let scaled = |count: u32| {
            let (product, all) = (
                u64::from(count) * u64::from(runs),
                u64::from(self.runs.max(1)),
            );
            let scaled = match self.leans_to_broken() {
                true => product / all,
                false => product.div_ceil(all),
            };
            u32::try_from(scaled).unwrap_or(u32::MAX)
        };
        Self {
            runs,
            beyond: scaled(self.beyond),
            unsettled: scaled(self.unsettled),
            better: scaled(self.better),
            scattered: scaled(self.scattered),
            ..self
        }
    }
}

/// Likelihood ratio of `beyond` of `runs` between mixed shares and the contrary one.
fn mixture<const N: usize>(contrary: f64, mixed: [(f64, f64); N], runs: u32, beyond: u32) -> f64 {
    let within = f64::from(runs.saturating_sub(beyond));
    let ratio = |share: f64| {
        let of_beyond = (share / contrary).ln();
        let of_within = ((1.0 - share) / (1.0 - contrary)).ln();
        (f64::from(beyond) * of_beyond + within * of_within).exp()
    };
    let terms = mixed.iter().map(|(share, weight)| weight * ratio(*share));
    // What is beyond all measure is decided, whatever its digits.
    terms.sum::<f64>().min(1e300)
}

/// Repetitions that decide open tests, of each whether it leans to "broken" and the repetitions that it needs: those that lean to "holds" must
/// all be decided, and of the others one is enough.
pub(super) fn repetitions_to_decide(
    open: impl Iterator<Item = (bool, Option<u32>)>,
) -> Option<u32> {
    let (broken, holding): (Vec<_>, Vec<_>) =
        open.partition(|(leans_to_broken, _)| *leans_to_broken);
    if !broken.is_empty() {
        return broken.into_iter().filter_map(|(_, needed)| needed).min();
    }
    let needed: Option<Vec<u32>> = holding.into_iter().map(|(_, needed)| needed).collect();
    needed?.into_iter().max()
}

/// The fewest runs with which anything can be shown to hold: that many without one beyond its limit; `None` where
/// that is more than anyone will run.
#[must_use]
pub fn runs_to_hold(margins: &Margins) -> Option<u32> {
    RunCount::none(margins).runs_needed(1)
}

/// The smallest share of runs beyond a limit, in whole percent, that `runs` runs without one can exclude at `confidence`.
#[must_use]
pub fn rare_share_excluded(runs: u32, confidence: f64) -> f64 {
    let excludes = |percent: u32| {
        let none = RunCount::none(&Margins {
            confidence,
            rare_runs: f64::from(percent) / 100.0,
            ..Margins::default()
        });
        none.scaled_to(runs).outcome(1) == Outcome::Holds
    };
    let percent = (1..99).find(|&percent| excludes(percent)).unwrap_or(99);
    f64::from(percent) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> RunCount {
        RunCount::none(&Margins::default())
    }

    fn count(runs: u32, beyond: u32) -> RunCount {
        RunCount {
            runs,
            beyond,
            ..none()
        }
    }

    fn outcome(runs: u32, beyond: u32) -> Outcome {
        count(runs, beyond).outcome(1)
    }

    #[test]
    fn an_e_value_is_expected_to_be_one_at_the_share_itself() {
        // Σ C(n, k) p₀ᵏ (1 − p₀)ⁿ⁻ᵏ E(k, n) = 1, for every n.
        for runs in [1u16, 2, 7, 40] {
            let (mut choose, mut expected) = (1.0, [0.0, 0.0]);
            for beyond in 0..=runs {
                let probability =
                    choose * 0.09f64.powi(beyond.into()) * 0.91f64.powi((runs - beyond).into());
                let counted = count(runs.into(), beyond.into());
                expected[0] += probability * counted.evidence_within();
                expected[1] += probability * counted.evidence_beyond();
                choose *= f64::from(runs - beyond) / f64::from(beyond + 1);
            }
            for expected in expected {
                assert!((expected - 1.0).abs() < 1e-9, "{runs}: {expected}");
            }
        }
    }

    #[test]
    fn thirty_four_runs_within_hold_and_those_beyond_ask_for_more() {
        let open = Outcome::Inconclusive;
        assert_eq!(
            [33, 34].map(|runs| outcome(runs, 0)),
            [open, Outcome::Holds]
        );
        assert_eq!(
            [50, 90].map(|runs| outcome(runs, 1)),
            [open, Outcome::Holds]
        );
        assert_eq!(runs_to_hold(&Margins::default()), Some(34));
        assert_eq!(count(3, 0).runs_needed(1), Some(34));
        // One of 40 beyond it stays one of 40.
        let needed = count(40, 1).runs_needed(1).unwrap();
        assert_eq!(outcome(needed, needed.div_ceil(40)), Outcome::Holds);
        assert_eq!(outcome(needed - 1, (needed - 1).div_ceil(40)), open);
    }

    #[test]
    fn two_to_eight_runs_decide_what_most_of_them_are_beyond() {
        let open = Outcome::Inconclusive;
        assert_eq!([outcome(1, 1), outcome(2, 2)], [open, Outcome::Broken]);
        assert_eq!(outcome(8, 5), Outcome::Broken);
        // One of many tests needs more.
        let of_many = |runs| count(runs, runs).outcome(100);
        assert_eq!([2, 4].map(of_many), [open, Outcome::Broken]);
        assert_eq!(count(1, 1).runs_needed(1), Some(2));
    }

    #[test]
    fn runs_that_are_worse_as_often_as_better_are_chance() {
        let with_better = |better| RunCount {
            better,
            ..count(40, 12)
        };
        let outcomes = [0, 1, 5, 10].map(|better| with_better(better).outcome(1));
        let open = Outcome::Inconclusive;
        assert_eq!(outcomes, [Outcome::Broken, Outcome::Broken, open, open]);
        // Where the reference scatters, it takes six runs that are all worse.
        let scattered = |runs| RunCount {
            scattered: 1,
            ..count(runs, runs)
        };
        assert_eq!(
            [5, 6].map(|runs| scattered(runs).outcome(1)),
            [open, Outcome::Broken]
        );
        assert_eq!(with_better(10).runs_needed(1), None);
    }

    #[test]
    fn a_share_at_the_limit_is_decided_by_no_number_of_runs() {
        assert_eq!(count(100, 9).runs_needed(1), None);
    }

    #[test]
    fn a_run_without_a_steady_state_shows_neither() {
        let unsettled = |number| RunCount {
            unsettled: number,
            ..count(40, 0)
        };
        assert_eq!(unsettled(0).outcome(1), Outcome::Holds);
        assert_eq!(unsettled(40).outcome(1), Outcome::Inconclusive);
        assert_eq!(unsettled(40).runs_needed(1), None);
        let runs = [
            Run::Beyond,
            Run::Unsettled,
            Run::Within,
            Run::Better,
            Run::Beyond,
        ];
        let counted = none().with(runs.into_iter());
        assert_eq!((counted.runs, counted.beyond), (5, 2));
        assert_eq!((counted.unsettled, counted.better), (1, 1));
    }

    #[test]
    fn a_run_that_all_others_copy_decides_alone() {
        let of = |run| {
            let deterministic = RunCount {
                sample: SampleKind::Copies,
                ..none()
            };
            deterministic.with([run].into_iter())
        };
        assert_eq!(of(Run::Within).outcome(9), Outcome::Holds);
        assert_eq!(of(Run::Beyond).outcome(9), Outcome::Broken);
        assert_eq!(of(Run::Unsettled).outcome(9), Outcome::Inconclusive);
        assert_eq!(of(Run::Unsettled).runs_needed(9), None);
    }

    #[test]
    fn the_share_that_a_quick_look_excludes_is_the_one_its_rule_accepts() {
        for runs in 2..60 {
            let share = rare_share_excluded(runs, 0.95);
            let holds = |rare_runs| {
                let counted = RunCount {
                    excluded: rare_runs,
                    ..count(runs, 0)
                };
                counted.outcome(1) == Outcome::Holds
            };
            assert!(holds(share) && !holds(share - 0.01), "{runs} {share}");
        }
        assert_eq!(rare_share_excluded(6, 0.95), 0.42);
    }

    #[test]
    fn few_runs_hold_for_less_and_are_broken_as_any() {
        let quick = |runs, beyond| {
            let margins = Margins {
                rare_runs: 0.42,
                ..Margins::default()
            };
            let counted = RunCount {
                runs,
                beyond,
                ..RunCount::none(&margins)
            };
            counted.outcome(1)
        };
        assert_eq!(
            [quick(6, 0), quick(6, 1)],
            [Outcome::Holds, Outcome::Inconclusive]
        );
        assert_eq!(
            [quick(6, 4), quick(2, 2)],
            [Outcome::Broken, Outcome::Broken]
        );
    }

    #[test]
    fn no_count_and_no_margin_makes_evidence_that_is_no_number() {
        for rare_runs in [f64::NAN, -1.0, 0.0, 1e-9, 0.5, 1.0, 2.0] {
            let margins = Margins {
                rare_runs,
                ..Margins::default()
            };
            for (runs, beyond) in [(0, 0), (1, 1), (u32::MAX, 0), (u32::MAX, u32::MAX)] {
                let counted = RunCount {
                    runs,
                    beyond,
                    ..RunCount::none(&margins)
                };
                for evidence in [counted.evidence_within(), counted.evidence_beyond()] {
                    assert!(evidence.is_finite() && evidence >= 0.0);
                }
            }
        }
    }
}
