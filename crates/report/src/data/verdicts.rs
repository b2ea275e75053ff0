//! Verdicts, and every test behind them.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::attribute::attributes;
use crate::error::ReportError;
use slicewise_stats::objective::Percentile;
use slicewise_stats::verdict::{
    DecidedBy, Indicator, ObjectiveIndicator, ObjectiveTest, PolicyVerdict, Scale, TestName,
    VerdictTable,
};

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
        Column::new("statistic", Kind::Real),
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
    let numbers = [
        (
            verdict.isolation.influence.decided_by.as_ref(),
            verdict.isolation.repetitions_needed(),
            None,
        ),
        (
            verdict.reallocation.decided_by.as_ref(),
            verdict.reallocation.repetitions_needed,
            None,
        ),
        (None, None, verdict.scalability.limit.number()),
    ];
    for (text, (numbers, repetitions_needed, limit)) in attributes(verdict).iter().zip(numbers) {
        table.row(&[
            verdict.policy.as_str().into(),
            text.key.into(),
            text.word.as_str().into(),
            numbers.map(|n| test_name(n.test)).into(),
            numbers.map(|n| n.slice.as_str()).into(),
            numbers.and_then(|n| n.scenario.as_deref()).into(),
            numbers.and_then(|n| n.indicator).map(indicator_name).into(),
            numbers.and_then(|n| n.reference).into(),
            numbers.and_then(|n| n.treatment).into(),
            numbers.map(|n| n.statistic).into(),
            numbers.and_then(|n| n.interval.low).into(),
            numbers.and_then(|n| n.interval.high).into(),
            numbers.map(|n| n.margin).into(),
            numbers.map(|n| scale_name(n.scale)).into(),
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

fn test_rows(table: &mut TableWriter, verdict: &PolicyVerdict) -> Result<(), ReportError> {
    for test in &verdict.isolation.influence.tests {
        let n: &DecidedBy = &test.numbers;
        table.row(&[
            verdict.policy.as_str().into(),
            "influence".into(),
            test.outcome.to_string().as_str().into(),
            Value::Text(test_name(n.test)),
            n.slice.as_str().into(),
            n.scenario.as_deref().unwrap_or_default().into(),
            n.indicator.map(indicator_name).into(),
            n.reference.into(),
            n.treatment.into(),
            n.statistic.into(),
            n.interval.low.into(),
            n.interval.high.into(),
            n.margin.into(),
            scale_name(n.scale).into(),
            u64::from(n.repetitions).into(),
            u64::from(n.repetitions_beyond).into(),
            test.p_holds.into(),
            test.p_broken.into(),
            test.repetitions_needed.into(),
        ])?;
    }
    for test in verdict.isolation.objectives.iter().flat_map(|o| &o.tests) {
        objective_row(table, &verdict.policy, test)?;
    }
    for check in &verdict.isolation.bounds {
        table.row(&[
            verdict.policy.as_str().into(),
            "isolation".into(),
            check.outcome.to_string().as_str().into(),
            Value::Text("proved_bound"),
            check.slice.as_str().into(),
            check.scenario.as_str().into(),
            Value::Text(match check.way_unbounded {
                None => "delay_max",
                Some(_) => "scheduler_after_eligible_max",
            }),
            Value::Null,
            Value::Null,
            Value::Real(check.largest_ns as f64),
            Value::Null,
            Value::Null,
            Value::Real(check.bound.end_to_end_ns() as f64),
            scale_name(Scale::Nanoseconds).into(),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ])?;
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

/// `statistic` is the mean, `margin` the objective.
fn objective_row(
    table: &mut TableWriter,
    policy: &str,
    test: &ObjectiveTest,
) -> Result<(), ReportError> {
    let (indicator, scale) = objective_name(test.indicator);
    table.row(&[
        policy.into(),
        "objective".into(),
        test.outcome.to_string().as_str().into(),
        Value::Text(test_name(TestName::StudentMean)),
        test.slice.as_str().into(),
        test.scenario.as_str().into(),
        Value::Text(&indicator),
        Value::Null,
        Value::Null,
        test.mean.into(),
        test.interval.low.into(),
        test.interval.high.into(),
        test.limit.into(),
        scale.into(),
        u64::from(test.repetitions).into(),
        u64::from(test.repetitions_beyond).into(),
        test.p_met.into(),
        test.p_missed.into(),
        test.repetitions_needed.into(),
    ])
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
        TestName::StudentMean => "student_mean",
    }
}

fn indicator_name(indicator: Indicator) -> &'static str {
    match indicator {
        Indicator::Throughput => "throughput",
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
