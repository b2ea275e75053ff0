//! Two results compared: did anything get worse, or better, from A to B?
//!
//! Each indicator of each slice in each cell of both is tested as influence is, with A in the place of the reference scenario; "better" is
//! the same test with A and B exchanged, so that comparing B with A gives "better" for "worse", and the reverse. "Not worse" becomes
//! "inconclusive", as there is no "not better". Margins and confidence are those of A.

mod changes;

use super::indicator::{Span, sends};
use super::influence::{PairOfValues, has_applications, idle_delay, mean_offered, pairs_of};
use super::runs::{RunCount, SampleKind};
use super::{DecidedBy, Outcome, indicator};
use crate::backend::BackendKind;
use crate::description::{Margins, StudyDescription};
use crate::observations::{Observations, RunObservation};
use crate::published::PublishedOutcome;
use crate::quantity::Quantity;
use changes::{only_in, published_changes, verdict_changes};
use serde::Serialize;
use std::fmt;

/// One of two results.
#[derive(Debug, Clone, Copy)]
pub struct Results<'a> {
    /// Study that was run.
    pub study: &'a StudyDescription,
    /// The scalars of its runs.
    pub observations: &'a Observations,
}

/// B compared with A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultsComparison {
    /// One-sided confidence of every decision.
    pub confidence: f64,
    /// Every test: by policy, scenario, slice and indicator, in the order of A.
    pub figures: Vec<ComparedFigure>,
    /// Slices of cells of both that could not be compared, or not in full.
    pub not_compared: Vec<NotCompared>,
    /// Verdicts that are not the same, both by the margins of A.
    pub verdicts: Vec<VerdictChange>,
    /// Published figures with another outcome.
    pub published: Vec<PublishedChange>,
    /// Parts that only A has.
    pub only_in_a: Vec<Place>,
    /// Parts that only B has.
    pub only_in_b: Vec<Place>,
}

/// Change of a figure, or of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Shown to be worse by more than the margin; of a verdict: a lesser one.
    Worse,
    /// Neither worse nor the same nor better is shown; of a verdict: one of the two is undecided or missing.
    Inconclusive,
    /// Shown to be better by more than the margin.
    Better,
    /// Shown not to be worse by more than the margin; whether it is better is not.
    NotWorse,
    /// Shown to be within the margin in both directions.
    Same,
}

/// One indicator of one slice in one cell, B against A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Policy; scenario, slice and indicator are in `numbers`.
    pub policy: String,
    /// The outcome.
    pub outcome: Change,
    /// The repetitions of both sides share their random numbers and are compared in pairs.
    pub paired: bool,
    /// The numbers: `reference` is the mean of A, `treatment` that of B, `statistic` the worsening from A to B, and runs beyond are those of B
    /// that are worse by more than the margin.
    pub numbers: DecidedBy,
    /// The same pairs with A and B exchanged: runs beyond are those of B that are better.
    pub better: RunCount,
    /// Every pair has the same value on both sides.
    pub equal: bool,
    /// Repetitions of A.
    pub repetitions_a: u32,
    /// Repetitions of B.
    pub repetitions_b: u32,
    /// Where it is inconclusive: repetitions of each side that would decide whether it is worse; `None` where no
    /// number within reason would.
    pub repetitions_needed: Option<u32>,
}

/// A slice in a cell that could not be compared, or not in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The reason.
    pub why: &'static str,
}

/// A verdict of one policy in A and in B.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictChange {
    /// Policy.
    pub policy: String,
    /// "isolation" or "reallocation".
    pub attribute: &'static str,
    /// In A.
    pub a: Outcome,
    /// In B.
    pub b: Outcome,
    /// `Worse`, `Better` or `Inconclusive`.
    pub change: Change,
}

/// A published figure beside A and beside B.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedChange {
    /// Claim of the publication.
    pub claim: String,
    /// In A.
    pub a: PublishedOutcome,
    /// In B.
    pub b: PublishedOutcome,
}

/// A policy, scenario, slice, or a cell of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
}

impl fmt::Display for Place {
    /// "policy gold, scenario storm".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("policy", &self.policy),
            ("scenario", &self.scenario),
            ("slice", &self.slice),
        ];
        let parts = parts.map(|(what, name)| name.as_ref().map(|name| format!("{what} {name}")));
        f.pad(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Worse => "worse",
            Self::Inconclusive => "inconclusive",
            Self::Better => "better",
            Self::NotWorse => "not worse",
            Self::Same => "same",
        })
    }
}

impl ResultsComparison {
    /// Figures with this outcome.
    #[must_use]
    pub fn count(&self, outcome: Change) -> usize {
        let figures = self.figures.iter();
        figures.filter(|figure| figure.outcome == outcome).count()
    }
}

/// Compare `b` with `a`: every slice of every policy and scenario that both have by name and have runs of.
///
/// Without one in common, there are no figures.
#[must_use]
pub fn compare(a: Results<'_>, b: Results<'_>) -> ResultsComparison {
    let margins = a.study.margins;
    let mut comparing = Comparing {
        a,
        b,
        margins,
        figures: Vec::new(),
        not_compared: Vec::new(),
    };
    comparing.compare_all();
    let (figures, not_compared) = (comparing.figures, comparing.not_compared);
    let number = figures.len();
    ResultsComparison {
        confidence: RunCount::none(&margins).confidence,
        figures: figures
            .into_iter()
            .map(|figure| figure.decided(number))
            .collect(),
        not_compared,
        verdicts: verdict_changes(a, b),
        published: published_changes(a, b),
        only_in_a: only_in(a, b),
        only_in_b: only_in(b, a),
    }
}

struct Comparing<'a> {
    a: Results<'a>,
    b: Results<'a>,
    margins: Margins,
    /// Their outcomes are decided when there are all.
    figures: Vec<ComparedFigure>,
    not_compared: Vec<NotCompared>,
}

/// The runs of one cell in both results, and where the slice is in each.
struct Cell<'a> {
    a: Vec<&'a RunObservation>,
    b: Vec<&'a RunObservation>,
    paired: bool,
    sample: SampleKind,
    slices: (usize, usize),
    /// Delay without queueing of the slice, ns.
    smallest_ns: (u64, u64),
}

impl<'a> Comparing<'a> {
    fn compare_all(&mut self) {
        for policies in common(&self.a.study.policies, &self.b.study.policies, |p| &p.name) {
            let scenarios: Vec<(usize, usize)> = self.common_scenarios(policies).collect();
            for &scenario in &scenarios {
                for slices in common(&self.a.study.slices, &self.b.study.slices, |s| &s.name) {
                    let smallest_ns = self.smallest_delays(policies, &scenarios, slices);
                    let (a, b, paired) = self.runs(policies, scenario);
                    let cell = Cell {
                        a,
                        b,
                        paired,
                        sample: self.sample(policies, scenario),
                        slices,
                        smallest_ns,
                    };
                    self.compare_cell(policies.0, scenario.0, &cell);
                }
            }
        }
    }

    /// Scenarios of which both have runs under a policy.
    fn common_scenarios(
        &self,
        (policy_a, policy_b): (usize, usize),
    ) -> impl Iterator<Item = (usize, usize)> + use<'a> {
        let (a, b) = (self.a, self.b);
        common(&a.study.scenarios, &b.study.scenarios, |s| &s.name)
            .filter(move |&(of_a, of_b)| a.has(policy_a, of_a) && b.has(policy_b, of_b))
    }

    /// The runs of a cell, and whether they are pairs: of one study, by the same seeds, not captured elsewhere.
    fn runs(
        &self,
        policies: (usize, usize),
        scenarios: (usize, usize),
    ) -> (Vec<&'a RunObservation>, Vec<&'a RunObservation>, bool) {
        let (in_a, in_b) = (self.a.observations, self.b.observations);
        let a: Vec<_> = in_a.cell(policies.0, scenarios.0).collect();
        let b: Vec<_> = in_b.cell(policies.1, scenarios.1).collect();
        let pairs: Vec<_> = a
            .iter()
            .filter_map(|run| Some((*run, in_b.run(policies.1, scenarios.1, run.repetition)?)))
            .collect();
        let paired = self.a.study.name == self.b.study.name
            && [self.a, self.b].iter().all(|side| !side.is_captured())
            && pairs.len() == a.len().min(b.len())
            && pairs.iter().all(|(a, b)| a.seed == b.seed);
        if paired {
            let (a, b) = pairs.into_iter().unzip();
            return (a, b, true);
        }
        (a, b, false)
    }

    /// Returns the kind of sample that the runs of a cell are in both.
    fn sample(&self, policies: (usize, usize), scenarios: (usize, usize)) -> SampleKind {
        let (a, b) = (self.a, self.b);
        let of_a = a.observations.sample(a.study, policies.0, scenarios.0);
        let of_b = b.observations.sample(b.study, policies.1, scenarios.1);
        of_a.of_pairs(of_b)
    }

    /// Smallest delays of a slice in the scenarios of both, ns. On one back end both are compared with the smaller
    /// of the two, so that delay added to every packet shows; paths of different ones have nothing in common.
    fn smallest_delays(
        &self,
        policies: (usize, usize),
        scenarios: &[(usize, usize)],
        slices: (usize, usize),
    ) -> (u64, u64) {
        let a = scenarios.iter().map(|scenario| scenario.0);
        let b = scenarios.iter().map(|scenario| scenario.1);
        let a = self.a.smallest_delay_ns(policies.0, a, slices.0);
        let b = self.b.smallest_delay_ns(policies.1, b, slices.1);
        let (a, b) = (a.or(b).unwrap_or(0), b.or(a).unwrap_or(0));
        if self.a.study.backend == self.b.study.backend && !self.a.is_captured() {
            (a.min(b), a.min(b))
        } else {
            (a, b)
        }
    }

    fn compare_cell(&mut self, policy: usize, scenario: usize, cell: &Cell<'_>) {
        let names = Place {
            policy: Some(self.a.study.policies[policy].name.clone()),
            scenario: Some(self.a.study.scenarios[scenario].name.clone()),
            slice: Some(self.a.study.slices[cell.slices.0].name.clone()),
        };
        let runs = || cell.a.iter().chain(&cell.b).copied();
        let has_applications = has_applications(cell.a.iter().copied(), cell.slices.0)
            && has_applications(cell.b.iter().copied(), cell.slices.1);
        let span = match has_applications {
            true => Span::Whole,
            false => Span::Steady,
        };
        let sending = (
            cell.a.iter().any(|run| sends(run, cell.slices.0, span)),
            cell.b.iter().any(|run| sends(run, cell.slices.1, span)),
        );
        match sending {
            (true, true) => {}
            (false, false) => return,
            (true, false) => return self.skip(&names, "it sends nothing in B"),
            (false, true) => return self.skip(&names, "it sends nothing in A"),
        }
        if !has_applications && runs().any(|run| run.has_no_delays) {
            self.skip(
                &names,
                "its delays are unknown: the clocks of the two ends disagree",
            );
        }
        let margins = Margins {
            delay_resolution_ns: (self.margins.delay_resolution_ns).max(idle_delay(runs())),
            ..self.margins
        };
        let throughput = throughput_indicator(cell, margins.throughput_relative);
        let indicators = if has_applications {
            let goodput = [Quantity::Goodput];
            goodput.into_iter().chain(indicator::TIMES).collect()
        } else {
            indicator::of_packets(margins.delay_of, throughput).to_vec()
        };
        for quantity in indicators {
            let pairs = cell.pairs(quantity);
            let none = RunCount {
                sample: cell.sample,
                ..RunCount::none(&margins)
            };
            let mirrored: Vec<PairOfValues> = pairs.iter().map(PairOfValues::mirrored).collect();
            let [worse, better] =
                [&pairs, &mirrored].map(|pairs| pairs_of(quantity, pairs, &margins, none));
            let Some((numbers, better)) = worse.zip(better) else {
                // Without a packet there is no delay; throughput and loss show that.
                continue;
            };
            if quantity.is_better_if_more() && numbers.reference <= Some(0.0) {
                self.skip(&names, "it received nothing in A");
                continue;
            }
            let runs = |runs: &[&RunObservation]| u32::try_from(runs.len()).unwrap_or(u32::MAX);
            self.figures.push(ComparedFigure {
                policy: self.a.study.policies[policy].name.clone(),
                outcome: Change::Inconclusive,
                paired: cell.paired,
                numbers: DecidedBy {
                    scenario: names.scenario.clone(),
                    slice: self.a.study.slices[cell.slices.0].name.clone(),
                    ..numbers
                },
                better: better.runs,
                equal: pairs.iter().all(|pair| pair.treatment == pair.reference),
                repetitions_a: runs(&cell.a),
                repetitions_b: runs(&cell.b),
                repetitions_needed: None,
            });
        }
    }

    fn skip(&mut self, place: &Place, why: &'static str) {
        let place = place.clone();
        self.not_compared.push(NotCompared { place, why });
    }
}

impl Cell<'_> {
    /// An indicator in runs of both sides. Runs that have nothing in common are as good a pair as any.
    fn pairs(&self, quantity: Quantity) -> Vec<PairOfValues> {
        let of_a = |run| indicator::value(quantity, run, self.slices.0, self.smallest_ns.0);
        let of_b = |run| indicator::value(quantity, run, self.slices.1, self.smallest_ns.1);
        let pair = |treatment, reference| PairOfValues {
            treatment,
            reference,
            is_steady: true,
        };
        let distinct = self.sample.distinct();
        if self.paired {
            let both = self.a.iter().zip(&self.b).take(distinct);
            return both
                .filter_map(|(a, b)| Some(pair(of_b(b)?, of_a(a)?)))
                .collect();
        }
        let a = self.a.iter().filter_map(|run| of_a(run));
        let b = self.b.iter().filter_map(|run| of_b(run));
        a.zip(b).take(distinct).map(|(a, b)| pair(b, a)).collect()
    }
}

/// The received rate where a slice sends the same on both sides, within the margin, and else its share of what it
/// sends, as in influence.
fn throughput_indicator(cell: &Cell<'_>, margin: f64) -> Quantity {
    let a = mean_offered(cell.a.iter().copied(), cell.slices.0);
    let b = mean_offered(cell.b.iter().copied(), cell.slices.1);
    let reacts = |runs: &[&RunObservation], slice: usize| {
        let mut slices = runs.iter().filter_map(|run| run.slices.get(slice));
        slices.any(|slice| slice.reacts)
    };
    let any_tcp = reacts(&cell.a, cell.slices.0) || reacts(&cell.b, cell.slices.1);
    match a.zip(b) {
        Some((a, b)) if !any_tcp && (a - b).abs() > margin * a.min(b) => Quantity::ReceivedShare,
        _ => Quantity::Throughput,
    }
}

impl ComparedFigure {
    /// Decide one of `figures`: is B worse, and is A?
    fn decided(self, figures: usize) -> Self {
        let (worse, better) = (self.numbers.runs, self.better);
        let outcome = match (worse.outcome(figures), better.outcome(figures)) {
            (Outcome::Broken, _) => Change::Worse,
            (_, Outcome::Broken) => Change::Better,
            (Outcome::Holds, Outcome::Holds) => Change::Same,
            (Outcome::Holds, _) => Change::NotWorse,
            _ => Change::Inconclusive,
        };
        Self {
            outcome,
            repetitions_needed: (outcome == Change::Inconclusive)
                .then(|| worse.runs_needed(figures))
                .flatten(),
            ..self
        }
    }
}

impl Results<'_> {
    fn has(&self, policy: usize, scenario: usize) -> bool {
        self.observations.cell(policy, scenario).next().is_some()
    }

    fn has_policy(&self, policy: usize) -> bool {
        (0..self.study.scenarios.len()).any(|scenario| self.has(policy, scenario))
    }

    fn has_scenario(&self, scenario: usize) -> bool {
        (0..self.study.policies.len()).any(|policy| self.has(policy, scenario))
    }

    fn is_captured(&self) -> bool {
        self.study.is_of(BackendKind::Captured)
    }

    /// `None` where nothing arrived.
    fn smallest_delay_ns(
        &self,
        policy: usize,
        scenarios: impl Iterator<Item = usize>,
        slice: usize,
    ) -> Option<u64> {
        scenarios
            .flat_map(|scenario| self.observations.cell(policy, scenario))
            .filter_map(|run| Some(&run.slices.get(slice)?.whole.delay))
            .filter(|delay| delay.samples > 0)
            .map(|delay| delay.min_ns)
            .min()
    }
}

/// Places of what both lists have by name, in the order of the first.
fn common<'a, T>(
    a: &'a [T],
    b: &'a [T],
    name: fn(&T) -> &String,
) -> impl Iterator<Item = (usize, usize)> + use<'a, T> {
    a.iter().enumerate().filter_map(move |(place, of_a)| {
        let other = b.iter().position(|of_b| name(of_b) == name(of_a))?;
        Some((place, other))
    })
}
