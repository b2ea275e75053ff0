//! Each verdict's reason in one line of English.

use super::{
    BoundCheck, DecidedBy, Deciding, Indicator, InfluenceVerdict, IsolationVerdict,
    ObjectiveIndicator, ObjectiveTest, ObjectivesVerdict, Outcome, PolicyVerdict,
    ReallocationVerdict, ScalabilityVerdict, Scale, TestName,
};
use crate::description::SliceLimit;
use crate::words::{self, percent};
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

impl fmt::Display for Indicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Throughput => "throughput",
            Self::ReceivedShare => "received share of the rate sent",
            Self::LossRatio => "loss ratio",
            Self::DelayMean => "mean delay",
            Self::DelayP99 => "p99 delay",
            Self::QueueingDelayMean => "mean queueing delay",
            Self::QueueingDelayP99 => "p99 queueing delay",
            Self::Goodput => "goodput",
            Self::GoodputWithinShare => "goodput within the share",
            Self::CompletionTimeMean => "mean completion time",
            Self::CompletionTimeP99 => "p99 completion time",
            Self::RequestLatencyMean => "mean request latency",
            Self::RequestLatencyP99 => "p99 request latency",
        })
    }
}

impl fmt::Display for ObjectiveIndicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput => f.pad("throughput"),
            Self::LossRatio => f.pad("loss ratio"),
            Self::Delay(at) => f.pad(&format!("delay at {at}")),
            Self::DelayVariation(at) => f.pad(&format!("delay variation at {at}")),
            Self::Goodput => f.pad("goodput"),
            Self::CompletionTime(at) => f.pad(&format!("completion time at {at}")),
            Self::RequestLatency(at) => f.pad(&format!("request latency at {at}")),
            Self::Availability => f.pad("availability"),
        }
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PairedDifference => "paired t",
            Self::PairedRatio => "paired Fieller",
            Self::IndependentDifference => "Welch",
            Self::IndependentRatio => "Welch and Fieller",
            Self::StudentMean => "Student",
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
        format!(
            "isolation {}; reallocation {}; scalability {}",
            self.isolation.reason(),
            self.reallocation.reason(),
            self.scalability.reason()
        )
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

    /// What decided it.
    #[must_use]
    pub fn deciding(&self) -> String {
        let text = match self.decided_by() {
            Some(Deciding::Bound(check)) => Some(check.describe()),
            Some(Deciding::Objective(_)) => self
                .objectives
                .as_ref()
                .and_then(ObjectivesVerdict::deciding),
            Some(Deciding::Influence(_)) => self.influence.deciding(),
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

impl InfluenceVerdict {
    /// The deciding test, and what would decide it if undecided; `None` if there was none.
    #[must_use]
    pub fn deciding(&self) -> Option<String> {
        let numbers = self.decided_by.as_ref()?;
        let worsening = numbers.worsening();
        Some(match self.outcome {
            Outcome::Broken => {
                let first = match &self.first_broken {
                    Some(first) if numbers.scenario.as_ref() != Some(first) => {
                        format!("; first in {first}")
                    }
                    _ => String::new(),
                };
                format!("{worsening}{first}")
            }
            Outcome::Holds => format!("closest to its margin: {worsening}"),
            _ => format!(
                "{worsening}{}",
                more_repetitions(numbers.repetitions, self.repetitions_needed)
            ),
        })
    }
}

impl ObjectivesVerdict {
    /// The deciding objective, and what would decide it if undecided; `None` if there was none.
    #[must_use]
    pub fn deciding(&self) -> Option<String> {
        let test = self.decided_by.as_ref()?;
        let text = test.describe();
        Some(match self.outcome {
            Outcome::Broken => match &self.first_missed {
                Some(first) if *first != test.scenario => {
                    format!("{text}; first missed in {first}")
                }
                _ => text,
            },
            Outcome::Holds => format!("least headroom {text}"),
            _ => format!(
                "{text}{}",
                match test.growing_per_second {
                    Some(_) => String::new(),
                    None => more_repetitions(test.repetitions, self.repetitions_needed),
                }
            ),
        })
    }
}

impl ObjectiveTest {
    /// Why an objective that is met in the repetitions is not shown to be met: "; still growing by 6 ms in a second: run longer",
    /// "; 0 of 3200 packets lost or late, 29958 needed".
    #[must_use]
    pub fn not_shown(&self) -> Option<String> {
        if self.outcome != Outcome::Inconclusive {
            return None;
        }
        if let Some(growing) = self.growing_per_second {
            let growing = words::time(growing);
            return Some(format!(
                "; still growing by {growing} in a second: run longer"
            ));
        }
        let (allowed, packets) = self.allowed_share().zip(self.packets)?;
        if !self.lacks_packets() {
            return None;
        }
        let shown = match packets.beyond {
            // Without an event the bound falls with the number of packets.
            0 => {
                let needed = (packets.of as f64 * packets.upper / allowed).ceil();
                format!("{needed} needed")
            }
            _ => format!("which shows at most {}", percent(packets.upper)),
        };
        Some(format!(
            "; {} of {} lost{}, {shown}",
            packets.beyond,
            words::count(packets.of, "packet"),
            match self.indicator {
                ObjectiveIndicator::LossRatio => "",
                _ => " or late",
            },
        ))
    }

    /// "delay at 99 % of voice in storm 6.2 ms (5.9 ms to 6.5 ms), objective at most 5 ms, missed".
    #[must_use]
    pub fn describe(&self) -> String {
        let value = |value: f64| objective_value(self.indicator, value);
        let bounds = match (self.interval.low, self.interval.high) {
            _ if self.mean.is_none() => format!(
                "in {} of {}; {} lost",
                self.repetitions_infinite,
                words::count(self.repetitions.into(), "repetition"),
                percent(self.loss_ratio)
            ),
            (Some(_), _) if !self.varies => "in every repetition".to_owned(),
            (Some(low), Some(high)) => format!("{} to {}", value(low), value(high)),
            _ => "no interval".to_owned(),
        };
        let (slice, scenario) = (&self.slice, &self.scenario);
        format!(
            "{} of {slice} in {scenario} {} ({bounds}), {}",
            self.indicator,
            self.value(),
            self.compared(),
        )
    }

    /// The mean in its unit: "5.2 ms", "∞".
    #[must_use]
    pub fn value(&self) -> String {
        self.mean.map_or_else(
            || "∞".to_owned(),
            |mean| objective_value(self.indicator, mean),
        )
    }

    /// "objective at most 5 ms, room 46 %".
    #[must_use]
    pub fn compared(&self) -> String {
        let at = if self.indicator.is_at_least() {
            "at least"
        } else {
            "at most"
        };
        let limit = objective_value(self.indicator, self.limit);
        let sent = self.offered.map_or_else(String::new, |offered| {
            let offered = words::rate(offered);
            let (sends_only, sends) = match self.indicator {
                ObjectiveIndicator::Goodput => (
                    format!("no more than {offered} is known to be asked for"),
                    "its applications ask for",
                ),
                _ => (format!("it sends only {offered}"), "it sends"),
            };
            if !self.can_be_met && self.outcome == Outcome::Inconclusive {
                return format!("; {sends_only}: whether it would get more is unknown");
            }
            let held_against = objective_value(self.indicator, self.held_against);
            format!(", compared with {held_against} because {sends} {offered}")
        });
        let room = match (self.outcome, self.room) {
            (Outcome::Holds, Some(room)) => format!(", headroom {}", percent(room)),
            (Outcome::Broken, _) => ", missed".to_owned(),
            _ => String::new(),
        };
        let not_shown = self.not_shown().unwrap_or_default();
        format!("objective {at} {limit}{sent}{room}{not_shown}")
    }
}

/// A value of an objective in its unit.
#[must_use]
pub fn objective_value(indicator: ObjectiveIndicator, value: f64) -> String {
    match indicator {
        ObjectiveIndicator::Throughput | ObjectiveIndicator::Goodput => words::rate(value),
        ObjectiveIndicator::LossRatio | ObjectiveIndicator::Availability => percent(value),
        ObjectiveIndicator::Delay(_)
        | ObjectiveIndicator::DelayVariation(_)
        | ObjectiveIndicator::CompletionTime(_)
        | ObjectiveIndicator::RequestLatency(_) => words::time(value),
    }
}

impl ReallocationVerdict {
    /// The reason of the reallocation verdict, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        let Some(numbers) = &self.decided_by else {
            return "not tested: in no load cycle was capacity of guaranteed slices unused while best effort had \
                    demand"
                .to_owned();
        };
        let scenarios = match &*self.scenarios {
            [only] => format!("in {}", only.scenario),
            several => format!("over {} scenarios", several.len()),
        };
        let (fraction, margin) = (percent(numbers.statistic), percent(numbers.margin));
        let bounds = bounds(numbers);
        let compared = match self.outcome {
            Outcome::Holds => format!("at least {margin} needed"),
            Outcome::Broken => format!("at most {margin} counts as none"),
            _ => format!("{margin} needed"),
        };
        let more = match self.outcome {
            Outcome::Inconclusive => more_repetitions(numbers.repetitions, self.repetitions_needed),
            _ => String::new(),
        };
        format!(
            "{}: {} gets {fraction} ({bounds}) of the unused capacity {scenarios}, {compared} \
             ({}){more}",
            self.outcome, numbers.slice, numbers.test
        )
    }
}

impl ScalabilityVerdict {
    /// What limits the number of slices, in one line.
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
    /// "0 of 32 repetitions".
    #[must_use]
    pub fn beyond(&self) -> String {
        let repetitions = words::count(self.repetitions.into(), "repetition");
        format!("{} of {repetitions}", self.repetitions_beyond)
    }

    /// "mean delay of critical in s6 +104 % (98 % to 110 %), margin 25 %; 32 of 32 repetitions beyond it
    /// (paired Fieller, p < 0.001)".
    fn worsening(&self) -> String {
        let indicator = self
            .indicator
            .map_or_else(String::new, |i| format!("{i} of "));
        let scenario = self
            .scenario
            .as_ref()
            .map_or_else(String::new, |s| format!(" in {s}"));
        // Worsening is reported in the direction in which the indicator moves.
        let falls = self.indicator.is_some_and(Indicator::falls);
        let sign = if falls { -1.0 } else { 1.0 };
        let p_value = match self.p_value {
            // Without variation, a probability means nothing.
            None => String::new(),
            Some(_) if !self.varies => String::new(),
            Some(p) if p < 0.001 => ", p < 0.001".to_owned(),
            Some(p) => format!(", p = {p:.3}"),
        };
        format!(
            "{indicator}{}{scenario} {} ({}), margin {}; {} beyond it ({}{p_value})",
            self.slice,
            signed(self.scale, sign * self.statistic),
            bounds(self),
            quantity(self.scale, self.margin),
            self.beyond(),
            self.test,
        )
    }
}

/// The one-sided bounds, in the direction in which the indicator moves.
fn bounds(numbers: &DecidedBy) -> String {
    let is_fraction = numbers.scale == Scale::Fraction;
    let falls = numbers.indicator.is_some_and(Indicator::falls);
    let text = |value: f64| {
        if is_fraction {
            percent(value)
        } else {
            signed(numbers.scale, value)
        }
    };
    let (low, high) = if falls {
        (
            numbers.interval.high.map(|h| -h),
            numbers.interval.low.map(|l| -l),
        )
    } else {
        (numbers.interval.low, numbers.interval.high)
    };
    match (low, high) {
        (Some(_), Some(_)) if !numbers.varies => "in every repetition".to_owned(),
        (Some(low), Some(high)) => format!("{} to {}", text(low), text(high)),
        (Some(low), None) => format!("at least {}", text(low)),
        (None, Some(high)) => format!("at most {}", text(high)),
        (None, None) => "no interval".to_owned(),
    }
}

fn more_repetitions(repetitions: u32, needed: Option<u32>) -> String {
    match needed {
        Some(needed) if needed > repetitions => {
            format!("; about {needed} repetitions would decide")
        }
        // The estimate says that there are enough: it depends on chance.
        Some(_) => "; a few more repetitions would decide".to_owned(),
        None => "; more repetitions alone will not decide".to_owned(),
    }
}

fn signed(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Relative => words::change(value),
        _ => words::signed(&quantity(scale, value)),
    }
}

fn quantity(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Relative | Scale::Fraction => percent(value),
        Scale::RatioDifference => words::points(value),
        Scale::Nanoseconds => words::time(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Interval;

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

    fn with_p_value(p_value: Option<f64>, varies: bool) -> String {
        let numbers = DecidedBy {
            test: TestName::StudentMean,
            scenario: None,
            slice: "voice".to_owned(),
            indicator: None,
            reference: None,
            treatment: None,
            statistic: 0.3,
            scale: Scale::Relative,
            interval: Interval::UNBOUNDED,
            margin: 0.25,
            repetitions: 10,
            repetitions_beyond: 9,
            varies,
            p_value,
        };
        numbers.worsening()
    }

    #[test]
    fn a_probability_is_told_to_three_digits_where_repetitions_vary() {
        let told = [
            with_p_value(Some(0.000_999), true),
            with_p_value(Some(0.001), true),
            with_p_value(Some(0.001), false),
            with_p_value(None, true),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        voice +30 % (no interval), margin 25 %; 9 of 10 repetitions beyond it (Student, p < 0.001)
        voice +30 % (no interval), margin 25 %; 9 of 10 repetitions beyond it (Student, p = 0.001)
        voice +30 % (no interval), margin 25 %; 9 of 10 repetitions beyond it (Student)
        voice +30 % (no interval), margin 25 %; 9 of 10 repetitions beyond it (Student)
        ");
    }
}
