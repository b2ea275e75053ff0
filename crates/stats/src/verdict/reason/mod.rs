//! Each verdict's reason in one line of English.

mod objective;

pub use objective::objective_value;

use super::{
    BoundCheck, DecidedBy, Deciding, InfluenceTest, InfluenceVerdict, IsolationVerdict,
    ObjectivesVerdict, Outcome, PolicyVerdict, ReallocationVerdict, RunCount, SampleKind,
    ScalabilityVerdict, Scale,
};
use crate::description::SliceLimit;
use crate::quantity::{Quantity, Unit};
use crate::words::{self, percent, share};
use std::fmt;

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::Partial => "partial",
            Self::Inconclusive => "inconclusive",
            Self::NotTested => "not tested",
        })
    }
}

impl PolicyVerdict {
    /// The reason of each verdict, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        if let Some(why) = &self.not_supported {
            return format!("not supported: {why}");
        }
        if self.not_run {
            return "not run".to_owned();
        }
        let reason = format!(
            "isolation {}; reallocation {}; scalability {}",
            self.isolation.reason(),
            self.reallocation.reason(),
            self.scalability.reason()
        );
        match &self.not_judged {
            Some(not_judged) => format!("{reason}; not judged: {not_judged}"),
            None => reason,
        }
    }
}

impl IsolationVerdict {
    /// The reason of the isolation verdict, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        if let Some(broken) = self.broken_bound() {
            return format!("broken: {}", broken.describe());
        }
        let mut parts = vec![format!("{}: {}", self.outcome, self.deciding())];
        parts.extend(self.influence_remark());
        parts.extend(self.bounds.iter().map(BoundCheck::describe));
        parts.extend(self.unbounded());
        parts.join("; ")
    }

    /// Describes the test that decided it.
    #[must_use]
    pub fn deciding(&self) -> String {
        let text = match self.decided_by() {
            Some(Deciding::Bound(check)) => Some(check.describe()),
            Some(Deciding::Objective(_)) => self
                .objectives
                .as_ref()
                .and_then(ObjectivesVerdict::deciding),
            Some(Deciding::Influence(_)) => {
                (self.deciding_influence.as_ref()).and_then(InfluenceVerdict::deciding)
            }
            None => None,
        };
        text.unwrap_or_else(|| self.why_not_judged())
    }

    /// Influence, reported in addition if objectives decide.
    #[must_use]
    pub fn influence_remark(&self) -> Option<String> {
        self.objectives.as_ref()?;
        if let Some(Deciding::Influence(_)) = self.decided_by() {
            return None;
        }
        let outcome = match self.influence.outcome {
            Outcome::Holds => "no influence of others",
            Outcome::Broken => "influence of others",
            Outcome::Inconclusive => "influence of others inconclusive",
            Outcome::Partial | Outcome::NotTested => return None,
        };
        Some(format!("{outcome}: {}", self.influence.deciding()?))
    }

    fn why_not_judged(&self) -> String {
        let mut not_judged = self.not_judged.iter().filter(|n| !n.only_bound);
        let missing = not_judged.clone().find(|n| n.missing);
        match missing.or(not_judged.next()) {
            Some(first) => format!("{} in {}: {}", first.slice, first.scenario, first.why),
            None => "no slice states an objective, and there is no guaranteed slice, no reference \
                     scenario, or no other scenario"
                .to_owned(),
        }
    }

    /// If a delay bound exists but could not be judged in any scenario: the slice and the reason.
    #[must_use]
    pub fn unbounded(&self) -> Option<String> {
        let is_judged = |slice: &str| self.bounds.iter().any(|check| check.slice == slice);
        let missing = self.not_judged.iter().filter(|n| n.only_bound);
        let first = missing.into_iter().find(|n| !is_judged(&n.slice))?;
        let (slice, scenario, why) = (&first.slice, &first.scenario, &first.why);
        Some(format!(
            "no bound of delay for {slice} in scenario {scenario}: {why}"
        ))
    }
}

impl RunCount {
    /// " in 34 of 34 runs".
    #[must_use]
    pub fn in_words(self) -> String {
        self.of_scenario(None)
    }

    /// " in 34 of 34 runs of storm"; of one capture ": met in this capture of storm".
    fn of_scenario(self, scenario: Option<&str>) -> String {
        let scenario = scenario.map_or_else(String::new, |scenario| format!(" of {scenario}"));
        if self.sample == SampleKind::Census {
            let kept = match self.beyond {
                0 => "met",
                _ => "missed",
            };
            return format!(": {kept} in this capture{scenario}");
        }
        let runs = words::count(self.runs.into(), "run");
        let copies = match self.sample {
            SampleKind::Copies => " (deterministic: one run)",
            _ => "",
        };
        format!(" in {} of {runs}{scenario}{copies}", self.within())
    }

    /// Describes what the runs show of all runs: " (95 %: in at least 91 %)"; nothing of copies of one run.
    fn shown(self, outcome: Outcome) -> String {
        let (claim, share) = match outcome {
            _ if self.sample != SampleKind::Sample => return String::new(),
            Outcome::Holds | Outcome::Partial => ("at least", 1.0 - self.excluded),
            Outcome::Broken => ("less than", 1.0 - self.tolerated),
            _ => return String::new(),
        };
        format!(
            " ({}: in {claim} {})",
            percent(self.confidence),
            percent(share)
        )
    }

    /// Describes what would decide it: "; about 40 repetitions would decide".
    fn decides(self, needed: Option<u32>) -> String {
        match needed {
            _ if self.unsettled > 0 => format!(
                "; {} of them had no steady state: run longer",
                self.unsettled
            ),
            None if self.better > self.runs / 10 => format!(
                "; in {} it is better by as much: runs scatter by more than the margin, run longer",
                self.better
            ),
            _ if self.sample == SampleKind::Copies => {
                "; every repetition is a copy of it: run longer".to_owned()
            }
            Some(needed) => format!("; about {needed} repetitions would decide"),
            None => "; more repetitions alone will not decide".to_owned(),
        }
    }
}

impl InfluenceVerdict {
    /// The deciding test, and what would decide it if undecided; `None` if there was none.
    #[must_use]
    pub fn deciding(&self) -> Option<String> {
        let numbers = self.decided_by.as_ref()?;
        let first = match &self.first_broken {
            Some(first) if numbers.scenario.as_ref() != Some(first) => {
                format!("; first in {first}")
            }
            _ => String::new(),
        };
        let (described, open) = (numbers.describe(self.outcome), self.not_shown());
        Some(format!("{described}{first}{open}"))
    }

    /// Why the deciding test is not decided: "; about 40 repetitions would decide".
    #[must_use]
    pub fn not_shown(&self) -> String {
        let decides = |test: &&InfluenceTest| Some(&test.numbers) == self.decided_by.as_ref();
        let test = self.tests.iter().find(decides);
        test.map_or_else(String::new, InfluenceTest::not_shown)
    }
}

impl InfluenceTest {
    /// Why it is not decided: "; about 40 repetitions would decide".
    fn not_shown(&self) -> String {
        match self.growing_per_second {
            _ if self.outcome != Outcome::Inconclusive => String::new(),
            Some(growing) => still_growing(growing),
            None => self.numbers.runs.decides(self.repetitions_needed),
        }
    }
}

fn still_growing(per_second: f64) -> String {
    let growing = words::time(per_second);
    format!("; still growing by {growing} in a second: run longer")
}

impl ReallocationVerdict {
    /// The reason of the reallocation verdict, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        if self.rate_varies {
            return "not tested: the rate that slices share changes during a run, so shares of it do not say what \
                    guaranteed slices leave"
                .to_owned();
        }
        let Some(numbers) = &self.decided_by else {
            return "not tested: in no load cycle was capacity of guaranteed slices unused while best effort had \
                    demand"
                .to_owned();
        };
        let open = match self.outcome {
            Outcome::Inconclusive => numbers.runs.decides(self.repetitions_needed),
            _ => String::new(),
        };
        format!(
            "{}: {}{}; {}{open}",
            self.outcome,
            self.claim(numbers),
            numbers.runs.shown(match self.outcome {
                // What is shown is that no more than so much is reallocated.
                Outcome::Broken => Outcome::Holds,
                outcome => outcome,
            }),
            self.measured(numbers),
        )
    }

    /// "at least 95 %".
    #[must_use]
    pub fn claimed_part(&self, numbers: &DecidedBy) -> String {
        let limit = percent(numbers.margin);
        match self.claimed {
            Outcome::Holds => format!("at least {limit}"),
            Outcome::Broken => format!("at most {limit}"),
            _ => format!("a part below {limit}"),
        }
    }

    /// "best effort gets at least 95 % of the unused capacity in 34 of 34 runs of storm".
    fn claim(&self, numbers: &DecidedBy) -> String {
        let claim = self.claimed_part(numbers);
        let runs = numbers.runs.of_scenario(numbers.scenario.as_deref());
        format!(
            "{} gets {claim} of the unused capacity{runs}",
            numbers.slice
        )
    }

    /// "1.6 Mbit/s of 1.75 Mbit/s, ".
    #[must_use]
    pub fn rates(&self, numbers: &DecidedBy) -> String {
        match (numbers.treatment, numbers.reference) {
            (Some(taken), Some(available)) => {
                format!("{} of {}, ", words::rate(taken), words::rate(available))
            }
            _ => String::new(),
        }
    }

    /// "mean 1.6 Mbit/s of 1.75 Mbit/s, 91 %; worst run 90 %".
    fn measured(&self, numbers: &DecidedBy) -> String {
        let rates = self.rates(numbers);
        let mean = percent(numbers.statistic);
        match (numbers.worst, numbers.runs.runs) {
            (Some(worst), 2..) => format!("mean {rates}{mean}, worst run {}", percent(worst)),
            _ => format!("{rates}{mean}"),
        }
    }
}

impl ScalabilityVerdict {
    /// Names the limit of the number of slices, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        let limit = self.limit.to_string();
        if self.limited_by.is_empty() {
            limit
        } else {
            format!("{limit}: {}", self.limited_by)
        }
    }
}

impl fmt::Display for SliceLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slices(1) => f.pad("1 slice"),
            Self::Slices(limit) => f.pad(&format!("{limit} slices")),
            Self::NoPracticalLimit => f.pad("no practical limit"),
            Self::NotStated => f.pad("no limit known"),
        }
    }
}

impl BoundCheck {
    /// "largest delay of critical 2.1 ms in scenario 6, above its proved bound of 1.3 ms (300 µs of it
    /// outside the scheduler)"; of the scheduler's part alone: "at the scheduler: largest delay of critical 1.9 ms
    /// after its eligible time in scenario 6, within its proved bound of 2 ms (the path to the device has no bound,
    /// because source `x` is Poisson)".
    #[must_use]
    pub fn describe(&self) -> String {
        let (compared, doubt) = match self.outcome {
            Outcome::Broken => ("above", ": the device or the bound is wrong"),
            _ => ("within", ""),
        };
        let time = |ns: u64| words::time(ns as f64);
        let (place, since, remark) = match (&self.way_unbounded, self.bound.outside_ns) {
            (Some(why), _) => (
                "at the scheduler: ",
                " after its eligible time",
                format!(" (the path to the device has no bound, because {why})"),
            ),
            (None, 0) => ("", "", String::new()),
            (None, ns) => (
                "",
                "",
                format!(" ({} of it outside the scheduler)", time(ns)),
            ),
        };
        format!(
            "{place}largest delay of {} {}{since} in scenario {}, {compared} its proved bound of {}{remark}{doubt}",
            self.slice,
            time(self.largest_ns),
            self.scenario,
            time(self.bound.end_to_end_ns()),
        )
    }
}

impl DecidedBy {
    /// "mean delay of critical within +25 % of the reference in 0 of 34 runs of s6 (95 %: in less than 91 %); mean 200 µs → 408 µs (+104 %),
    /// worst run +120 %".
    fn describe(&self, outcome: Outcome) -> String {
        let shown = self.runs.shown(outcome);
        format!("{}{shown}; {}", self.claim(), self.measured())
    }

    /// "mean delay of critical within +25 % of the reference in 0 of 34 runs of s6".
    fn claim(&self) -> String {
        let indicator = self
            .indicator
            .map_or_else(String::new, |i| format!("{i} of "));
        format!(
            "{indicator}{} within {} of the reference{}",
            self.slice,
            self.change(self.margin),
            self.runs.of_scenario(self.scenario.as_deref()),
        )
    }

    /// "mean 200 µs → 408 µs (+104 %), worst run +120 %".
    fn measured(&self) -> String {
        let mean = self.change(self.statistic);
        let values = match self.absolute() {
            Some(values) => format!("{values} ({mean})"),
            None => mean,
        };
        match (self.worst, self.runs.runs) {
            (Some(worst), 2..) => format!("mean {values}, worst run {}", self.change(worst)),
            _ => values,
        }
    }

    /// The indicator in the reference scenario and in this one: "200 µs → 408 µs".
    #[must_use]
    pub fn absolute(&self) -> Option<String> {
        let indicator = self.indicator?;
        let (reference, treatment) = (self.reference?, self.treatment?);
        let value = |value: f64| match indicator.unit() {
            Unit::Ratio => share(value),
            unit => unit.text(value, 4),
        };
        Some(format!("{} → {}", value(reference), value(treatment)))
    }

    /// A worsening in the direction in which the indicator moves: throughput that worsens falls, delay and loss rise.
    #[must_use]
    pub fn change(&self, worsening: f64) -> String {
        self.scale.change(self.indicator, worsening)
    }
}

impl Scale {
    /// A worsening of an indicator, as its change.
    #[must_use]
    pub fn change(self, indicator: Option<Quantity>, worsening: f64) -> String {
        let falls = indicator.is_some_and(Quantity::is_better_if_more);
        signed(self, if falls { -worsening } else { worsening })
    }
}

/// A change in its unit, with its sign.
fn signed(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Relative => words::change(value),
        _ => words::signed(&quantity(scale, value)),
    }
}

/// A margin in its unit.
#[must_use]
pub fn quantity(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Relative | Scale::Fraction => percent(value),
        Scale::RatioDifference => words::points(value),
        Scale::Nanoseconds => words::time(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_keep_three_digits_and_their_sign() {
        for (value, text) in [
            (1.042, "+104 %"),
            (-0.0231, "−2.31 %"),
            (0.1, "+10 %"),
            (5_819.42, "5820-fold"),
            (-1e-9, "0 %"),
            (0.0, "0 %"),
        ] {
            assert_eq!(signed(Scale::Relative, value), text);
        }
        assert_eq!(signed(Scale::Nanoseconds, 412_345.0), "+412.3 µs");
        assert_eq!(signed(Scale::Nanoseconds, 2_000_000.0), "+2 ms");
        assert_eq!(quantity(Scale::RatioDifference, 0.001), "0.1 points");
    }
}
