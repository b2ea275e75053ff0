//! Series and distributions for the page and the figures, gathered run by run.

use serde::Serialize;
use slicewise_stats::application::ApplicationSeries;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::{CdfPoint, DelayFigures, RunRecord, SliceRecord};
use std::collections::BTreeMap;

/// Values in ns, and the fraction at or below each.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(crate) struct Curve(pub(crate) Vec<u64>, pub(crate) Vec<f64>);

impl Curve {
    /// The points of a distribution function; fractions to seven decimals, so that the tail reaches 99.999 %.
    pub(crate) fn of(points: impl IntoIterator<Item = CdfPoint>) -> Self {
        let mut view = Self::default();
        for CdfPoint(value, fraction) in points {
            view.0.push(value);
            view.1.push((fraction * 1e7).round() / 1e7);
        }
        view
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct BinnedRun {
    pub(crate) policy: usize,
    pub(crate) scenario: usize,
    pub(crate) repetition: u32,
    pub(crate) bin_ns: u64,
    /// Parts that are not measured: the initial transient, or how long phases settle; ns.
    pub(crate) left_out: Vec<LeftOut>,
    /// The policy as the run names it, whatever its phases are called.
    pub(crate) policy_name: String,
    /// Unit of `delay`, ns.
    pub(crate) delay_unit_ns: u64,
    pub(crate) slices: Vec<BinnedSlice>,
    /// Series of sources with an application, by name: drawn as figures only.
    #[serde(skip)]
    pub(crate) applications: Vec<(String, ApplicationSeries)>,
}

impl BinnedRun {
    /// Width of a bin, s.
    pub(crate) fn bin_seconds(&self) -> f64 {
        self.bin_ns as f64 / 1e9
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct BinnedSlice {
    pub(crate) sent: Vec<u64>,
    pub(crate) received: Vec<u64>,
    pub(crate) frames: Vec<u32>,
    pub(crate) lost: Vec<u32>,
    /// `None` where nothing that was sent in the bin was received.
    pub(crate) delay: Vec<Option<u64>>,
    /// The same in ns, for figures.
    #[serde(skip)]
    pub(crate) delay_mean_ns: Vec<Option<u64>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Arrivals {
    pub(crate) policy: usize,
    pub(crate) scenario: usize,
    pub(crate) slice: usize,
    pub(crate) repetition: u32,
    pub(crate) cdf: Curve,
}

/// Frames lost, by policy, where and why; in all runs of each scenario.
pub(crate) type ByScenario = BTreeMap<(usize, String, String), BTreeMap<usize, u64>>;

/// Curves that are drawn beside estimates. Records must come cell by cell; a cell's distributions are complete when the
/// next cell begins. Memory does not grow with the repetitions.
#[derive(Debug, Default)]
pub(crate) struct Curves {
    /// Policy and scenario of the runs that are being gathered.
    current: Option<(String, String)>,
    /// By policy, one for each phase, and scenario: by slice.
    gathered: BTreeMap<(usize, usize), Vec<MeanDistribution>>,
    /// By policy, scenario, slice.
    pub(crate) delay: BTreeMap<(usize, usize, usize), Curve>,
    /// The first repetition of each cell.
    pub(crate) binned: Vec<BinnedRun>,
    /// The first [`REPETITIONS_DRAWN`] of each scenario under the first policy that has runs, as sent: no policy changes
    /// them.
    pub(crate) arrivals: Vec<Arrivals>,
    /// By policy, class and reason: frames dropped in all runs of each scenario.
    pub(crate) drops: ByScenario,
    /// The same by policy, link and slice, and reason: what impaired links lost.
    pub(crate) link_losses: ByScenario,
    /// The same by policy and slice: frames that a queue marked instead of dropping.
    pub(crate) marks: ByScenario,
}

impl Curves {
    /// Take what is drawn of one run.
    pub(crate) fn on_run(&mut self, record: &RunRecord, study: &StudyDescription) {
        let cell = (record.key.policy.clone(), record.key.scenario.clone());
        let is_new = self.current.as_ref() != Some(&cell);
        if is_new {
            self.end_cell();
            self.current = Some(cell);
        }
        let mut is_first = true;
        for view in record.by_phase() {
            let policy = study.policy_place(&view.key.policy);
            let scenario = study.scenario_place(&view.key.scenario);
            let Some(place) = policy.zip(scenario) else {
                continue;
            };
            if is_first {
                self.on_whole_run(record, place, is_new);
            }
            is_first = false;
            self.on_phase(&view, place);
        }
    }

    /// Adds the curves of a run without its phases, in the place of the first of them.
    fn on_whole_run(
        &mut self,
        record: &RunRecord,
        (policy, scenario): (usize, usize),
        is_new: bool,
    ) {
        if is_new {
            self.binned.push(binned(record, policy, scenario));
        }
        let is_drawn = record.key.repetition < REPETITIONS_DRAWN;
        if is_drawn && (self.arrivals.first()).is_none_or(|first| first.policy == policy) {
            let slices = record.slices.iter().enumerate();
            self.arrivals
                .extend(slices.map(|(slice, slice_record)| Arrivals {
                    policy,
                    scenario,
                    slice,
                    repetition: record.key.repetition,
                    cdf: Curve::of(thinned(&slice_record.iat_sent.cdf)),
                }));
        }
    }

    fn on_phase(&mut self, record: &RunRecord, (policy, scenario): (usize, usize)) {
        let gathered = self.gathered.entry((policy, scenario)).or_default();
        gathered.resize_with(record.slices.len(), MeanDistribution::default);
        for (gathered, slice) in gathered.iter_mut().zip(&record.slices) {
            gathered.add(&with_tail(&slice.delay_cdf, &slice.steady.delay));
        }
        let add = |to: &mut ByScenario, place: String, reason: &str, frames: u64| {
            let by_scenario = to.entry((policy, place, reason.to_owned())).or_default();
            let sum = by_scenario.entry(scenario).or_default();
            *sum = sum.saturating_add(frames);
        };
        for drop in &record.drops {
            let class = drop.class.clone();
            add(&mut self.drops, class, &drop.reason, drop.frames);
        }
        for loss in &record.link_losses {
            let place = format!("{} link, slice {}", loss.link, loss.slice);
            add(&mut self.link_losses, place, &loss.reason, loss.frames);
        }
        for slice in record.slices.iter().filter(|slice| slice.marked_frames > 0) {
            let reason = "congestion experienced";
            add(
                &mut self.marks,
                slice.slice.clone(),
                reason,
                slice.marked_frames,
            );
        }
    }

    /// Complete the distributions gathered last.
    pub(crate) fn end_cell(&mut self) {
        for ((policy, scenario), slices) in std::mem::take(&mut self.gathered) {
            for (slice, distribution) in slices.iter().enumerate() {
                let curve = Curve::of(thinned(&distribution.points()));
                self.delay.insert((policy, scenario, slice), curve);
            }
        }
    }
}

/// A part of a run that is not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// Label of the part after it.
    pub(crate) label: String,
}

fn left_out(record: &RunRecord) -> Vec<LeftOut> {
    if record.phases.is_empty() {
        let end_ns = record.transient.end_ns;
        let transient = LeftOut {
            from_ns: 0,
            to_ns: end_ns,
            label: String::new(),
        };
        return (end_ns > 0).then_some(transient).into_iter().collect();
    }
    let mut begins_ns = 0;
    let phases = record.phases.iter().map(|phase| {
        let from_ns = std::mem::replace(&mut begins_ns, phase.ends_ns);
        LeftOut {
            from_ns,
            to_ns: phase.measured_from_ns,
            label: phase.phase.clone(),
        }
    });
    phases.collect()
}

fn binned(record: &RunRecord, policy: usize, scenario: usize) -> BinnedRun {
    let slices = record
        .slices
        .iter()
        .map(|SliceRecord { series, .. }| BinnedSlice {
            sent: series.sent_bytes.clone(),
            received: series.received_bytes.clone(),
            frames: series.sent_frames.clone(),
            lost: series.lost_frames.clone(),
            delay: series
                .delay_mean_ns
                .iter()
                .map(|ns| ns.map(|ns| ns.div_ceil(DELAY_UNIT_NS)))
                .collect(),
            delay_mean_ns: series.delay_mean_ns.clone(),
        });
    BinnedRun {
        policy,
        scenario,
        repetition: record.key.repetition,
        bin_ns: record.bin_ns,
        left_out: left_out(record),
        policy_name: record.key.policy.clone(),
        delay_unit_ns: DELAY_UNIT_NS,
        slices: slices.collect(),
        applications: (record.applications.iter())
            .map(|source| (source.source.clone(), source.series.clone()))
            .collect(),
    }
}

/// A distribution function with the percentiles of its tail, which is finer than its points.
fn with_tail(cdf: &[CdfPoint], delay: &DelayFigures) -> Vec<CdfPoint> {
    let percentiles = [
        (delay.p999_ns, 0.999),
        (delay.p9999_ns, 0.9999),
        (delay.p99999_ns, 0.99999),
    ];
    let mut points = cdf.to_vec();
    let Some(last) = points.pop() else {
        return points;
    };
    for (value, fraction) in percentiles {
        let is_above = |point: &CdfPoint| value > point.0 && fraction > point.1;
        // With too few samples a percentile is the largest.
        if value < last.0 && points.last().is_none_or(is_above) {
            points.push(CdfPoint(value, fraction));
        }
    }
    points.push(last);
    points
}

/// The mean of several distribution functions: that of all their samples, as every repetition has
/// about as many.
#[derive(Debug, Default)]
struct MeanDistribution {
    /// Functions that have points.
    functions: u32,
    /// By value, the sum of the steps there. Values come from histograms, so there are not many.
    steps: BTreeMap<u64, f64>,
}

impl MeanDistribution {
    fn add(&mut self, cdf: &[CdfPoint]) {
        self.functions += u32::from(!cdf.is_empty());
        let mut below = 0.0;
        for CdfPoint(value, fraction) in cdf {
            *self.steps.entry(*value).or_default() += fraction - below;
            below = *fraction;
        }
    }

    fn points(&self) -> Vec<CdfPoint> {
        let mut total = 0.0;
        let steps = self.steps.iter().map(|(value, step)| {
            total += step;
            CdfPoint(*value, f64::min(total / f64::from(self.functions), 1.0))
        });
        steps.collect()
    }
}

/// Fewer steps: one is left out where the steps around it are near in fraction and in value.
fn thinned(cdf: &[CdfPoint]) -> Vec<CdfPoint> {
    let Some((first, last)) = cdf.first().zip(cdf.last()) else {
        return Vec::new();
    };
    let octaves = (last.0.max(1) as f64 / first.0.max(1) as f64).log2();
    let step = octaves / MOST_POINTS as f64;
    let mut kept: Vec<CdfPoint> = vec![*first];
    for pair in cdf.windows(2) {
        let [point, next] = pair else { continue };
        let Some(previous) = kept.last() else {
            continue;
        };
        let wide = (next.0.max(1) as f64 / previous.0.max(1) as f64).log2() > step;
        let high = next.1 - previous.1 > 1.0 / MOST_POINTS as f64;
        if (wide || high) && point.0 != previous.0 {
            kept.push(*point);
        }
    }
    if kept.last().is_some_and(|point| point.0 != last.0) {
        kept.push(*last);
    }
    kept
}

/// More lines cannot be told from each other.
pub(crate) const REPETITIONS_DRAWN: u32 = 20;
/// A tenth of a microsecond: finer than a pixel at any zoom, and half the digits.
const DELAY_UNIT_NS: u64 = 100;
/// Steps that are nearer than this part of a curve's height, and of its width, are merged: no
/// curve has more than four times as many.
const MOST_POINTS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(cdf: &[CdfPoint], value: u64) -> f64 {
        cdf.iter()
            .take_while(|point| point.0 <= value)
            .last()
            .map_or(0.0, |point| point.1)
    }

    fn distribution(mut values: Vec<u64>) -> Vec<CdfPoint> {
        values.sort_unstable();
        let total = values.len() as f64;
        let mut cdf: Vec<CdfPoint> = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            let fraction = (index + 1) as f64 / total;
            match cdf.last_mut() {
                Some(last) if last.0 == value => last.1 = fraction,
                _ => cdf.push(CdfPoint(value, fraction)),
            }
        }
        cdf
    }

    #[test]
    fn the_mean_of_two_distributions_is_that_of_their_samples() {
        let mut mean = MeanDistribution::default();
        for values in [vec![100, 200], Vec::new(), vec![200, 400]] {
            mean.add(&distribution(values));
        }
        assert_eq!(
            mean.points(),
            [CdfPoint(100, 0.25), CdfPoint(200, 0.75), CdfPoint(400, 1.0)]
        );
    }

    #[test]
    fn the_tail_of_a_distribution_is_that_of_its_percentiles() {
        let cdf = [
            CdfPoint(100, 0.5),
            CdfPoint(200, 0.995),
            CdfPoint(9_000, 1.0),
        ];
        let delay = DelayFigures {
            p999_ns: 300,
            p9999_ns: 4_000,
            p99999_ns: 9_000,
            ..DelayFigures::default()
        };
        let tail = [CdfPoint(300, 0.999), CdfPoint(4_000, 0.9999), cdf[2]];
        assert_eq!(with_tail(&cdf, &delay), [&cdf[..2], &tail].concat());
        assert_eq!(with_tail(&[], &delay), []);
    }

    proptest! {
        #[test]
        fn thinning_keeps_the_ends_and_moves_no_point_far(
            values in proptest::collection::vec(1u64..10_000_000, 1..2_000)
        ) {
            let cdf = distribution(values);
            let thin = thinned(&cdf);
            prop_assert!(thin.len() <= 4 * MOST_POINTS + 2);
            prop_assert_eq!(thin.first(), cdf.first());
            prop_assert_eq!(thin.last().map(|p| p.1), Some(1.0));
            let octaves = (cdf[cdf.len() - 1].0 as f64 / cdf[0].0 as f64).log2();
            let width = (octaves / MOST_POINTS as f64).exp2();
            for point in &cdf {
                // Near in height at this value, or at one a step further left.
                let value = point.0;
                let there = at(&thin, value);
                let left = cdf
                    .iter()
                    .take_while(|p| p.0 as f64 <= value as f64 / width * (1.0 - 1e-9))
                    .last()
                    .map_or(0.0, |p| p.1);
                prop_assert!(there <= point.1 + 1e-12);
                prop_assert!(there >= left - 1.0 / MOST_POINTS as f64, "{there} {left}");
            }
        }
    }
}
