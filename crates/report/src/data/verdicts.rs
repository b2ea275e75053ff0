//! Verdicts, and every test behind them.

use super::column::{Seed, Value, columns, variant};
use super::folder::DataFolder;
use super::table::{TableWriter, write_or_remove, write_table};
use crate::attribute::{AttributeText, attributes};
use crate::error::ReportError;
use crate::side::Side;
use slicewise_stats::objective::Percentile;
use slicewise_stats::quantity::Unit;
use slicewise_stats::seeds::{SeedRow, SeedTable, SeedVerdict};
use slicewise_stats::verdict::{
    BoundCheck, DecidedBy, Deciding, ObjectiveIndicator, ObjectiveTest, PolicyVerdict, RunCount,
    Scale, VerdictTable,
};

/// The test of the share of runs beyond a limit.
const SHARE_OF_RUNS: &str = "share_of_runs";

columns! {
    /// An attribute of a policy, and the test that decided it.
    Verdicts<'a> = "verdicts" (
        policy: &'a str, text: &'a AttributeText, numbers: Option<&'a Numbers<'a>>,
        repetitions_needed: Option<u32>, slice_limit: Option<u64>, confidence: f64
    ) {
        policy: &str = policy,
        attribute: &str = text.key,
        verdict: &str = &text.word,
        test: Option<&str> = numbers.and_then(|n| n.test.as_deref()),
        slice: Option<&str> = numbers.map(|n| n.slice),
        scenario: Option<&str> = numbers.and_then(|n| n.scenario),
        indicator: Option<&str> = numbers.and_then(|n| n.indicator.as_deref()),
        reference: Option<f64> = numbers.and_then(|n| n.reference),
        treatment: Option<f64> = numbers.and_then(|n| n.treatment),
        statistic: Option<f64> = numbers.and_then(|n| n.statistic),
        worst: Option<f64> = numbers.and_then(|n| n.worst),
        margin: Option<f64> = numbers.and_then(|n| n.margin),
        scale: Option<&str> = numbers.map(|n| n.scale.as_str()),
        runs: Option<u32> = numbers.and_then(|n| n.runs).map(|runs| runs.runs),
        runs_beyond: Option<u32> = numbers.and_then(|n| n.runs).map(|runs| runs.beyond),
        repetitions_needed: Option<u32> = repetitions_needed,
        slice_limit: Option<u64> = slice_limit,
        confidence: f64 = confidence,
        published: Option<&str> = text.published.as_deref(),
        agrees: Option<bool> = text.agrees,
        reason: &str = &text.reason,
    }
}

columns! {
    /// A test behind a verdict: with the e-values of "holds" and "broken".
    Tests<'a> = "verdict_tests" (
        [policy, attribute]: [&'a str; 2], verdict: String, numbers: &'a Numbers<'a>,
        repetitions_needed: Option<u32>
    ) {
        policy: &str = policy,
        attribute: &str = attribute,
        verdict: String = verdict,
        test: Option<&str> = numbers.test.as_deref(),
        slice: &str = numbers.slice,
        scenario: &str = numbers.scenario.unwrap_or_default(),
        indicator: Option<&str> = numbers.indicator.as_deref(),
        fields numbers: Option<f64> { reference treatment statistic worst margin }
        scale: &str = &numbers.scale,
        runs: Option<u32> = numbers.runs.map(|runs| runs.runs),
        runs_beyond: Option<u32> = numbers.runs.map(|runs| runs.beyond),
        runs_unsettled: Option<u32> = numbers.runs.map(|runs| runs.unsettled),
        sample: Option<String> = numbers.runs.map(|runs| variant(runs.sample)),
        e_holds: Option<f64> = numbers.runs.map(RunCount::evidence_within),
        e_broken: Option<f64> = numbers.runs.map(RunCount::evidence_beyond),
        repetitions_needed: Option<u32> = repetitions_needed,
    }
}

columns! {
    /// An attribute of a policy on one of several back ends.
    BesideVerdicts<'a> = "beside_verdicts" (
        side: &'a Side, verdict: &'a PolicyVerdict, text: AttributeText
    ) {
        policy: &str = &verdict.policy,
        back_end: &str = &side.name,
        attribute: &str = text.key,
        verdict: String = text.word,
        reason: String = text.reason,
        published: Option<String> = text.published,
        agrees: Option<bool> = text.agrees,
        confidence: f64 = side.verdicts.confidence,
    }
}

columns! {
    /// An attribute of a policy under one of several seeds.
    SeedVerdicts<'a> = "seed_verdicts" (row: &'a SeedRow, seed: u64, verdict: SeedVerdict) {
        policy: &str = &row.policy,
        attribute: String = row.attribute.to_string(),
        seed: Seed = Seed(seed),
        verdict: String = verdict.outcome.to_string(),
        published: Option<&str> = row.published.map(|yes| if yes { "yes" } else { "no" }),
        agrees: Option<bool> = verdict.agrees,
    }
}

/// Write the verdicts and the tests behind them; those of several back ends where there are several.
pub(super) fn write(
    folder: &DataFolder,
    verdicts: &VerdictTable,
    sides: &[Side],
) -> Result<(), ReportError> {
    write_verdicts(folder, [(Vec::new(), verdicts)])?;
    let of_side = |side| {
        let of_policy = move |verdict| {
            let row = move |text| BesideVerdicts::row(side, verdict, text);
            attributes(verdict).map(row)
        };
        let side: &Side = side;
        side.verdicts.policies.iter().flat_map(of_policy)
    };
    let beside = (sides.len() > 1).then(|| sides.iter().flat_map(of_side));
    write_or_remove(folder, BesideVerdicts::SCHEMA, beside)
}

/// Write the verdicts of several cases and the tests behind them, each case with the values that its rows begin with.
pub(super) fn write_verdicts<'a>(
    folder: &DataFolder,
    cases: impl IntoIterator<Item = (Vec<Value<'static>>, &'a VerdictTable)>,
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, Verdicts::SCHEMA)?;
    let mut tests = TableWriter::create(folder, Tests::SCHEMA)?;
    for (first, verdicts) in cases {
        table.begin_rows(first.clone());
        tests.begin_rows(first);
        for verdict in &verdicts.policies {
            verdict_rows(&mut table, verdict, verdicts.confidence)?;
            test_rows(&mut tests, verdict)?;
        }
    }
    table.finish()?;
    tests.finish()
}

/// Write the verdict under each seed.
pub(crate) fn write_seed_verdicts(
    folder: &DataFolder,
    seeds: &SeedTable,
) -> Result<(), ReportError> {
    let of_row = |row| {
        let row: &SeedRow = row;
        let verdicts = row.verdicts.iter();
        verdicts.map(move |(seed, verdict)| SeedVerdicts::row(row, *seed, *verdict))
    };
    write_table(
        folder,
        SeedVerdicts::SCHEMA,
        seeds.rows.iter().flat_map(of_row),
    )
}

fn verdict_rows(
    table: &mut TableWriter,
    verdict: &PolicyVerdict,
    confidence: f64,
) -> Result<(), ReportError> {
    let (isolation, reallocation) = (&verdict.isolation, &verdict.reallocation);
    let rows = [
        (
            isolation.decided_by().map(Numbers::of),
            isolation.repetitions_needed(),
            None,
        ),
        (
            reallocation.decided_by.as_ref().map(Numbers::of_test),
            reallocation.repetitions_needed,
            None,
        ),
        (None, None, verdict.scalability.limit.number()),
    ];
    for (text, (numbers, needed, limit)) in attributes(verdict).iter().zip(rows) {
        let numbers = numbers.as_ref();
        let policy = &verdict.policy;
        table.row(&Verdicts::row(
            policy, text, numbers, needed, limit, confidence,
        ))?;
    }
    Ok(())
}

/// The numbers of a test, whatever it is of.
#[derive(Default)]
pub(crate) struct Numbers<'a> {
    test: Option<String>,
    slice: &'a str,
    scenario: Option<&'a str>,
    indicator: Option<String>,
    reference: Option<f64>,
    treatment: Option<f64>,
    /// `None` where it is infinite.
    statistic: Option<f64>,
    /// The same of the worst run.
    worst: Option<f64>,
    margin: Option<f64>,
    scale: String,
    runs: Option<RunCount>,
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
            test: Some(SHARE_OF_RUNS.to_owned()),
            slice: &numbers.slice,
            scenario: numbers.scenario.as_deref(),
            indicator: numbers.indicator.map(variant),
            reference: numbers.reference,
            treatment: numbers.treatment,
            statistic: Some(numbers.statistic),
            worst: numbers.worst,
            margin: Some(numbers.margin),
            scale: variant(numbers.scale),
            runs: Some(numbers.runs),
        }
    }

    /// `statistic` is the mean, `margin` the objective.
    fn of_objective(test: &'a ObjectiveTest) -> Self {
        let (indicator, scale) = objective_name(test.indicator);
        Self {
            test: Some(SHARE_OF_RUNS.to_owned()),
            slice: &test.slice,
            scenario: Some(&test.scenario),
            indicator: Some(indicator),
            statistic: test.mean,
            worst: test.worst,
            margin: Some(test.held_against),
            scale: scale.to_owned(),
            runs: Some(test.runs),
            ..Self::default()
        }
    }

    /// `statistic` is the largest delay, `margin` the bound.
    fn of_bound(check: &'a BoundCheck) -> Self {
        Self {
            test: Some("proved_bound".to_owned()),
            slice: &check.slice,
            scenario: Some(&check.scenario),
            indicator: Some(
                match check.way_unbounded {
                    None => "delay_max",
                    Some(_) => "scheduler_after_eligible_max",
                }
                .to_owned(),
            ),
            statistic: Some(check.largest_ns as f64),
            margin: Some(check.bound.end_to_end_ns() as f64),
            scale: variant(Scale::Nanoseconds),
            ..Self::default()
        }
    }
}

fn test_rows(table: &mut TableWriter, verdict: &PolicyVerdict) -> Result<(), ReportError> {
    let mut add = |attribute, outcome: &str, numbers: Numbers<'_>, needed| {
        let names = [verdict.policy.as_str(), attribute];
        table.row(&Tests::row(names, outcome.to_owned(), &numbers, needed))
    };
    let isolation = &verdict.isolation;
    for test in &isolation.influence.tests {
        let (word, numbers) = (test.outcome.to_string(), Numbers::of_test(&test.numbers));
        add("influence", &word, numbers, test.repetitions_needed)?;
    }
    for test in isolation.objectives.iter().flat_map(|o| &o.tests) {
        let (word, numbers) = (test.outcome.to_string(), Numbers::of_objective(test));
        add("objective", &word, numbers, test.repetitions_needed)?;
    }
    for check in &isolation.bounds {
        let (word, numbers) = (check.outcome.to_string(), Numbers::of_bound(check));
        add("isolation", &word, numbers, None)?;
    }
    let decided_by = verdict.reallocation.decided_by.as_ref();
    for scenario in &verdict.reallocation.scenarios {
        let numbers = Numbers {
            slice: decided_by.map_or("", |n| n.slice.as_str()),
            scenario: Some(&scenario.scenario),
            statistic: Some(scenario.fraction),
            worst: Some(scenario.least),
            scale: variant(Scale::Fraction),
            ..Numbers::default()
        };
        add("reallocation", "measured", numbers, None)?;
    }
    Ok(())
}

/// Name and scale of an objective: "delay_p99", "nanoseconds".
fn objective_name(indicator: ObjectiveIndicator) -> (String, &'static str) {
    let (words, at) = indicator.words();
    let name = words.replace(' ', "_");
    let scale = match indicator.unit() {
        Unit::Rate => "bits_per_second",
        Unit::Ratio => "fraction",
        _ => "nanoseconds",
    };
    match at {
        None => (name, scale),
        Some(Percentile::Max) => (format!("{name}_max"), scale),
        Some(at) => {
            let at = at.to_string().replace(['.', ' ', '%'], "");
            (format!("{name}_p{at}"), scale)
        }
    }
}
