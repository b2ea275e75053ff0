//! Verdicts, and every test behind them.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::attribute::attributes;
use crate::error::ReportError;
use slicewise_stats::estimate::Interval;
use slicewise_stats::objective::Percentile;
use slicewise_stats::verdict::{
    BoundCheck, DecidedBy, Deciding, Indicator, ObjectiveIndicator, ObjectiveTest, Outcome,
    PolicyVerdict, Scale, TestName, VerdictTable,
};
use std::borrow::Cow;

pub(crate) const VERDICTS: Schema = Schema {
    name: "verdicts",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("attribute", Kind::Text),
        Column::new("verdict", Kind::Text),
        Column::optional("test", Kind::Text),
        Column::optional("slice", Kind::Text),
        Column::optional("scenario", Kind::Text),
        Column::optional("indicator", Kind::Text),
        Column::optional("reference", Kind::Real),
        Column::optional("treatment", Kind::Real),
        Column::optional("statistic", Kind::Real),
        Column::optional("interval_low", Kind::Real),
        Column::optional("interval_high", Kind::Real),
        Column::optional("margin", Kind::Real),
        Column::optional("scale", Kind::Text),
        Column::optional("p_value", Kind::Real),
        Column::optional("repetitions_needed", Kind::Integer),
        Column::optional("slice_limit", Kind::Integer),
        Column::new("confidence", Kind::Real),
        Column::optional("published", Kind::Text),
        Column::optional("agrees", Kind::Flag),
        Column::new("reason", Kind::Text),
    ],
};

pub(crate) const VERDICT_TESTS: Schema = Schema {
    name: "verdict_tests",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("attribute", Kind::Text),
        Column::new("verdict", Kind::Text),
        Column::optional("test", Kind::Text),
        Column::new("slice", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::optional("indicator", Kind::Text),
        Column::optional("reference", Kind::Real),
        Column::optional("treatment", Kind::Real),
        Column::optional("statistic", Kind::Real),
        Column::optional("interval_low", Kind::Real),
        Column::optional("interval_high", Kind::Real),
        Column::optional("margin", Kind::Real),
        Column::new("scale", Kind::Text),
        Column::optional("repetitions", Kind::Integer),
        Column::optional("repetitions_beyond", Kind::Integer),
        Column::optional("p_holds", Kind::Real),
        Column::optional("p_broken", Kind::Real),
        Column::optional("repetitions_needed", Kind::Integer),
    ],
};

/// Write the verdicts and the tests behind them.
pub(crate) fn write_verdicts(
    folder: &DataFolder,
    verdicts: &VerdictTable,
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, VERDICTS)?;
    let mut tests = TableWriter::create(folder, VERDICT_TESTS)?;
    for verdict in &verdicts.policies {
        verdict_rows(&mut table, verdict, verdicts.confidence)?;
        test_rows(&mut tests, verdict)?;
    }
    table.finish()?;
    tests.finish()
}

fn verdict_rows(
    table: &mut TableWriter,
    verdict: &PolicyVerdict,
    confidence: f64,
) -> Result<(), ReportError> {
    let rows = [
        (
            verdict.isolation.decided_by().map(Numbers::of),
            verdict.isolation.repetitions_needed(),
            None,
        ),
        (
            verdict
                .reallocation
                .decided_by
                .as_ref()
                .map(Numbers::of_test),
            verdict.reallocation.repetitions_needed,
            None,
        ),
        (None, None, verdict.scalability.limit.number()),
    ];
    for (text, (numbers, repetitions_needed, limit)) in attributes(verdict).iter().zip(rows) {
        let numbers = numbers.as_ref();
        table.row(&[
            verdict.policy.as_str().into(),
            text.key.into(),
            text.word.as_str().into(),
            numbers.map(|n| n.test).into(),
            numbers.map(|n| n.slice).into(),
            numbers.and_then(|n| n.scenario).into(),
            numbers.and_then(|n| n.indicator.as_deref()).into(),
            numbers.and_then(|n| n.reference).into(),
            numbers.and_then(|n| n.treatment).into(),
            numbers.and_then(|n| n.statistic).into(),
            numbers.and_then(|n| n.interval.low).into(),
            numbers.and_then(|n| n.interval.high).into(),
            numbers.map(|n| n.margin).into(),
            numbers.map(|n| n.scale).into(),
            numbers.and_then(|n| n.p_value).into(),
            repetitions_needed.into(),
            limit.into(),
            Value::Real(confidence),
            text.published.as_deref().into(),
            text.agrees.into(),
            text.reason.as_str().into(),
        ])?;
    }
    Ok(())
}

/// The numbers of a test, whatever it is of.
struct Numbers<'a> {
    test: &'static str,
    slice: &'a str,
    scenario: Option<&'a str>,
    indicator: Option<Cow<'static, str>>,
    reference: Option<f64>,
    treatment: Option<f64>,
    /// `None` where it is infinite.
    statistic: Option<f64>,
    interval: Interval,
    margin: f64,
    scale: &'static str,
    p_value: Option<f64>,
    /// How many there are, and those beyond the margin.
    repetitions: Option<[u32; 2]>,
}

impl<'a> Numbers<'a> {
    fn of(decided_by: Deciding<'a>) -> Self {
        match decided_by {
            Deciding::Bound(check) => Self::of_bound(check),
            Deciding::Objective(test) => Self::of_objective(test),
            Deciding::Influence(numbers) => Self::of_test(numbers),
        }
    }

    fn of_test(numbers: &'a DecidedBy) -> Self {
        Self {
            test: test_name(numbers.test),
            slice: &numbers.slice,
            scenario: numbers.scenario.as_deref(),
            indicator: numbers.indicator.map(|i| indicator_name(i).into()),
            reference: numbers.reference,
            treatment: numbers.treatment,
            statistic: Some(numbers.statistic),
            interval: numbers.interval,
            margin: numbers.margin,
            scale: scale_name(numbers.scale),
            p_value: numbers.p_value,
            repetitions: Some([numbers.repetitions, numbers.repetitions_beyond]),
        }
    }

    /// `statistic` is the mean, `margin` the objective.
    fn of_objective(test: &'a ObjectiveTest) -> Self {
        let (indicator, scale) = objective_name(test.indicator);
        Self {
            test: match test.mean {
                Some(_) => test_name(TestName::StudentMean),
                None => "binomial",
            },
            slice: &test.slice,
            scenario: Some(&test.scenario),
            indicator: Some(indicator.into()),
            reference: None,
            treatment: None,
            statistic: test.mean,
            interval: test.interval,
            margin: test.held_against,
            scale,
            p_value: Some(match test.outcome {
                Outcome::Holds => test.p_met,
                Outcome::Broken => test.p_missed,
                _ => test.p_met.min(test.p_missed),
            }),
            repetitions: Some([test.repetitions, test.repetitions_beyond]),
        }
    }

    /// `statistic` is the largest delay, `margin` the bound.
    fn of_bound(check: &'a BoundCheck) -> Self {
        Self {
            test: "proved_bound",
            slice: &check.slice,
            scenario: Some(&check.scenario),
            indicator: Some(
                match check.way_unbounded {
                    None => "delay_max",
                    Some(_) => "scheduler_after_eligible_max",
                }
                .into(),
            ),
            reference: None,
            treatment: None,
            statistic: Some(check.largest_ns as f64),
            interval: Interval::UNBOUNDED,
            margin: check.bound.end_to_end_ns() as f64,
            scale: scale_name(Scale::Nanoseconds),
            p_value: None,
            repetitions: None,
        }
    }

    /// A row of `verdict_tests`: p-values of "holds" and "broken", and the repetitions that would decide.
    fn row(
        &self,
        table: &mut TableWriter,
        [policy, attribute, verdict]: [&str; 3],
        p_values: Option<[f64; 2]>,
        repetitions_needed: Option<u32>,
    ) -> Result<(), ReportError> {
        table.row(&[
            policy.into(),
            attribute.into(),
            verdict.into(),
            Value::Text(self.test),
            self.slice.into(),
            self.scenario.unwrap_or_default().into(),
            self.indicator.as_deref().into(),
            self.reference.into(),
            self.treatment.into(),
            self.statistic.into(),
            self.interval.low.into(),
            self.interval.high.into(),
            self.margin.into(),
            self.scale.into(),
            self.repetitions.map(|[all, _]| u64::from(all)).into(),
            self.repetitions.map(|[_, beyond]| u64::from(beyond)).into(),
            p_values.map(|[holds, _]| holds).into(),
            p_values.map(|[_, broken]| broken).into(),
            repetitions_needed.into(),
        ])
    }
}

fn test_rows(table: &mut TableWriter, verdict: &PolicyVerdict) -> Result<(), ReportError> {
    let policy = verdict.policy.as_str();
    for test in &verdict.isolation.influence.tests {
        let names = [policy, "influence", &test.outcome.to_string()];
        let p_values = Some([test.p_holds, test.p_broken]);
        Numbers::of_test(&test.numbers).row(table, names, p_values, test.repetitions_needed)?;
    }
    for test in verdict.isolation.objectives.iter().flat_map(|o| &o.tests) {
        let names = [policy, "objective", &test.outcome.to_string()];
        let p_values = Some([test.p_met, test.p_missed]);
        Numbers::of_objective(test).row(table, names, p_values, test.repetitions_needed)?;
    }
    for check in &verdict.isolation.bounds {
        let names = [policy, "isolation", &check.outcome.to_string()];
        Numbers::of_bound(check).row(table, names, None, None)?;
    }
    let slice = verdict
        .reallocation
        .decided_by
        .as_ref()
        .map_or("", |n| n.slice.as_str());
    for scenario in &verdict.reallocation.scenarios {
        table.row(&[
            verdict.policy.as_str().into(),
            "reallocation".into(),
            "measured".into(),
            Value::Null,
            slice.into(),
            scenario.scenario.as_str().into(),
            Value::Null,
            Value::Null,
            Value::Null,
            scenario.fraction.into(),
            scenario.interval.low.into(),
            scenario.interval.high.into(),
            Value::Null,
            scale_name(Scale::Fraction).into(),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ])?;
    }
    Ok(())
}

/// "delay_p99", "nanoseconds".
fn objective_name(indicator: ObjectiveIndicator) -> (String, &'static str) {
    let at = |name: &str, at: Percentile| {
        let percentile = at.to_string().replace(['.', ' ', '%'], "");
        let name = match at {
            Percentile::Max => format!("{name}_max"),
            _ => format!("{name}_p{percentile}"),
        };
        (name, "nanoseconds")
    };
    match indicator {
        ObjectiveIndicator::Throughput => ("throughput".to_owned(), "bits_per_second"),
        ObjectiveIndicator::LossRatio => ("loss_ratio".to_owned(), "fraction"),
        ObjectiveIndicator::Availability => ("availability".to_owned(), "fraction"),
        ObjectiveIndicator::Delay(percentile) => at("delay", percentile),
        ObjectiveIndicator::DelayVariation(percentile) => at("delay_variation", percentile),
    }
}

fn test_name(test: TestName) -> &'static str {
    match test {
        TestName::PairedDifference => "paired_difference",
        TestName::PairedRatio => "paired_ratio",
        TestName::IndependentDifference => "independent_difference",
        TestName::IndependentRatio => "independent_ratio",
        TestName::StudentMean => "student_mean",
    }
}

fn indicator_name(indicator: Indicator) -> &'static str {
    match indicator {
        Indicator::Throughput => "throughput",
        Indicator::ReceivedShare => "received_share",
        Indicator::LossRatio => "loss_ratio",
        Indicator::DelayMean => "delay_mean",
        Indicator::DelayP99 => "delay_p99",
        Indicator::QueueingDelayMean => "queueing_delay_mean",
        Indicator::QueueingDelayP99 => "queueing_delay_p99",
    }
}

fn scale_name(scale: Scale) -> &'static str {
    match scale {
        Scale::Relative => "relative",
        Scale::RatioDifference => "ratio_difference",
        Scale::Nanoseconds => "nanoseconds",
        Scale::Fraction => "fraction",
    }
}
