//! Measured figures in short: those that the figures of a study draw, or the main ones of each slice.

use crate::findings::Findings;
use crate::sweep::AxisMap;
use crate::text_table::TextTable;
use serde::Serialize;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::plot::PlotX;
use slicewise_stats::quantity::{Metric, Quantity};
use slicewise_stats::summary::CellSummary;
use std::collections::BTreeSet;

/// Estimate of a quantity in a policy under a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuredFigure<'a> {
    policy: &'a str,
    scenario: &'a str,
    /// `None` of all slices together, and of a queue.
    slice: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    /// Name in study files.
    quantity: &'static str,
    unit: &'static str,
    repetitions: u32,
    mean: f64,
    interval_low: Option<f64>,
    interval_high: Option<f64>,
    #[serde(skip)]
    metric: Metric,
}

/// Main quantities of a slice.
const OF_SLICES: [Quantity; 3] = [
    Quantity::Throughput,
    Quantity::LossRatio,
    Quantity::DelayP99,
];
/// Main quantities of the applications of a slice.
const OF_APPLICATIONS: [Quantity; 4] = [
    Quantity::Goodput,
    Quantity::CompletionTimeP99,
    Quantity::RequestLatencyP99,
    Quantity::QualityMean,
];

/// Estimates that the figures of the study draw; where they draw none, the main ones of each slice.
#[must_use]
pub fn measured(findings: &Findings) -> Vec<MeasuredFigure<'_>> {
    let drawn = drawn(findings);
    if !drawn.is_empty() {
        return drawn;
    }
    let cells = findings.main().summary.cells.iter();
    cells.flat_map(main_figures).collect()
}

fn drawn(findings: &Findings) -> Vec<MeasuredFigure<'_>> {
    let study = findings.study();
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for (plot, cells) in study.plots.iter().zip(&findings.plots) {
        for cell in cells {
            let policy = study.policies.get(cell.policy).map_or("", |it| &it.name);
            let scenario = study.scenarios.get(cell.scenario).map_or("", |it| &it.name);
            let x = match &plot.x {
                PlotX::Value(of) => Some(of),
                _ => None,
            };
            let values = [(plot.y.as_ref(), &cell.y), (x, &cell.x)];
            let values = values
                .into_iter()
                .filter_map(|(of, value)| of.zip(value.as_ref()));
            for (of, estimate) in values {
                let slice = of.slice.as_deref();
                let figure = MeasuredFigure {
                    queue: of.queue.as_deref(),
                    ..MeasuredFigure::of([policy, scenario], slice, of.metric, estimate)
                };
                if known.insert((figure.policy, figure.key())) {
                    found.push(figure);
                }
            }
        }
    }
    found
}

fn main_figures(cell: &CellSummary) -> impl Iterator<Item = MeasuredFigure<'_>> {
    cell.slices.iter().flat_map(move |slice| {
        let name = slice.slice.as_str();
        // Of several sources, the last entry is all of them together.
        let mut of_all = cell.applications.iter();
        let applications = of_all.rfind(|of| of.slice == name).map(|of| &of.estimates);
        let of_slice = OF_SLICES.iter().map(|it| (it, slice.steady.of(*it)));
        let of_applications = OF_APPLICATIONS
            .iter()
            .map(move |it| (it, applications.and_then(|of| of.of(*it))));
        let figure = move |(quantity, estimate): (&Quantity, Option<&Estimate>)| {
            let names = [cell.policy.as_str(), cell.scenario.as_str()];
            let metric = (*quantity).into();
            Some(MeasuredFigure::of(names, Some(name), metric, estimate?))
        };
        of_slice.chain(of_applications).filter_map(figure)
    })
}

impl<'a> MeasuredFigure<'a> {
    fn of(
        [policy, scenario]: [&'a str; 2],
        slice: Option<&'a str>,
        metric: Metric,
        estimate: &Estimate,
    ) -> Self {
        Self {
            policy,
            scenario,
            slice,
            queue: None,
            quantity: metric.name(),
            unit: metric.quantity.unit().name(),
            repetitions: estimate.samples,
            mean: estimate.mean,
            interval_low: estimate.interval.low,
            interval_high: estimate.interval.high,
            metric,
        }
    }

    /// Slice or queue that it is of; "all" slices where it is of none.
    fn subject(&self) -> &'a str {
        self.slice.or(self.queue).unwrap_or("all")
    }

    /// Quantity, subject and scenario.
    fn key(&self) -> [&'a str; 3] {
        [self.quantity, self.subject(), self.scenario]
    }

    /// The mean with its unit.
    fn text(&self) -> String {
        self.metric.quantity.unit().text(self.mean, 4)
    }

    /// "99th percentile of completion time of web in loaded".
    fn title(&self, has_scenarios: bool) -> String {
        let words = self.metric.words();
        let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
        let scenario = match has_scenarios {
            true => format!(" in {}", self.scenario),
            false => String::new(),
        };
        let (first, subject) = (first.to_uppercase(), self.subject());
        format!("{first}{rest} of {subject}{scenario}")
    }
}

/// A measured figure over all points of a sweep.
#[derive(Debug)]
pub(crate) struct MeasuredMap {
    pub(crate) title: String,
    pub(crate) map: AxisMap<String>,
}

impl MeasuredMap {
    /// At most `most` maps, and how many more there are; none of studies that are no points of a grid.
    pub(crate) fn of(points: &[&Findings], most: usize) -> (Vec<Self>, usize) {
        let measured: Vec<_> = points.iter().map(|point| measured(point)).collect();
        let mut known = BTreeSet::new();
        let all = measured.iter().flatten();
        let keys: Vec<_> = all.filter(|figure| known.insert(figure.key())).collect();
        let scenarios = points.first().map(|point| point.study().scenarios.len());
        let map = |key: &&MeasuredFigure<'_>| {
            let at_points = points.iter().zip(&measured).map(|(point, figures)| {
                let own = figures.iter().filter(|figure| figure.key() == key.key());
                let own = own.map(|figure| (figure.policy, figure.text()));
                (point.study().coordinates.as_slice(), own.collect())
            });
            Self {
                title: key.title(scenarios.is_some_and(|count| count > 1)),
                map: AxisMap::of(at_points.collect()),
            }
        };
        let maps = keys.iter().take(most).map(map);
        let dense: Vec<Self> = maps.filter(|of| of.map.is_dense()).collect();
        let others = keys.len().saturating_sub(most);
        (dense, others)
    }
}

/// Measured figures of several cases, as a table.
#[derive(Debug)]
pub(crate) struct MeasuredRows {
    pub(crate) head: Vec<&'static str>,
    /// How many of the first columns are names; the others are numbers.
    pub(crate) names: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

impl From<MeasuredRows> for TextTable {
    fn from(MeasuredRows { head, names, rows }: MeasuredRows) -> Self {
        let head = head.into_iter().map(str::to_owned).collect();
        Self { head, names, rows }
    }
}

/// Names, and texts with the places of their columns.
type Row = ([String; 4], Vec<(usize, String)>);

/// A row for each case, policy, scenario and slice that has a figure, with a column for each quantity. Columns of names
/// that are the same everywhere are left out, but for one.
pub(crate) fn rows(cases: &[(String, &Findings)]) -> MeasuredRows {
    const NAMES: [&str; 4] = ["Case", "Policy", "Scenario", "Slice"];
    let mut quantities: Vec<&'static str> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for (case, findings) in cases {
        let first_of_case = rows.len();
        for figure in measured(findings) {
            let known = quantities.iter().position(|name| *name == figure.quantity);
            let column = known.unwrap_or_else(|| {
                quantities.push(figure.quantity);
                quantities.len() - 1
            });
            let names = [case, figure.policy, figure.scenario, figure.subject()];
            let names = names.map(str::to_owned);
            let value = (column, figure.text());
            let own = rows.iter_mut().skip(first_of_case);
            match own.into_iter().find(|(known, _)| *known == names) {
                Some((_, values)) => values.push(value),
                None => rows.push((names, vec![value])),
            }
        }
    }
    let differs = |column: &usize| {
        let mut names = rows.iter().map(|(names, _)| &names[*column]);
        let first = names.next();
        names.any(|name| Some(name) != first)
    };
    let mut names: Vec<usize> = (0..NAMES.len()).filter(differs).collect();
    if names.is_empty() {
        names.push(NAMES.len() - 1);
    }
    let head = names.iter().map(|column| NAMES[*column]);
    let texts = rows.iter().map(|(of, values)| {
        let names = names.iter().map(|column| of[*column].clone());
        let value = |column| values.iter().find(|(place, _)| *place == column);
        let values = (0..quantities.len())
            .map(|column| value(column).map_or_else(|| "–".to_owned(), |(_, text)| text.clone()));
        names.chain(values).collect()
    });
    MeasuredRows {
        head: head.chain(quantities.iter().copied()).collect(),
        names: names.len(),
        rows: texts.collect(),
    }
}
