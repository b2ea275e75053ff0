//! Data for the page's script: `assets/page/*.js` knows fields by these names.

use super::{beside, scale};
use crate::curves::{Arrivals, BinnedRun, ByScenario, Curve};
use crate::figures::SLICES_ON_PAGE;
use crate::findings::{Findings, XAxis};
use crate::limits::{self, Limit};
use crate::object::{EstimateView, SliceFigures, estimate, object, slice_figures};
use crate::prediction;
use crate::signs;
use serde::Serialize;
use slicewise_stats::description::{PolicyDescription, ScenarioDescription, SliceDescription};
use slicewise_stats::phase::PhaseDescription;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::summary::{CellSummary, SliceSummary, TransientSummary};

object! {
    /// The whole of it.
    Script<'a>(findings: &'a Findings) {
        slices: &'a [SliceDescription] = &findings.study().slices,
        policies: Vec<Policy<'a>> = findings.study().policies.iter().enumerate()
            .map(|(index, policy)| Policy::of(policy, findings.base_of(index), findings.study().phases.len(), index))
            .collect(),
        /// Policies of runs: each is one of `policies` in each phase.
        bases: Vec<&'a str> = findings.main().policies_of_runs(),
        phases: Vec<Phase<'a>> = findings.study().phases.iter().map(Phase::of).collect(),
        limits: Vec<Limit> = limits::all(findings),
        margin_of_throughput: f64 = findings.study().margins.throughput_relative,
        /// Where scenarios stand, if they are numbers.
        x_axis: Option<XAxis<'a>> = findings.x_axis(),
        scenarios: &'a [ScenarioDescription] = &findings.study().scenarios,
        signs: Signs = Signs::of(),
        /// Quantities of `cells`, in output order.
        quantities: Vec<QuantityInfo> = Quantity::of_spans().map(QuantityInfo::of).collect(),
        one_cell: bool = findings.has_one_cell(),
        slices_drawn: usize = SLICES_ON_PAGE,
        heaviest_scenario: usize = findings.heaviest_scenario(),
        /// By policy, then scenario; `None` where no run is finished.
        cells: Vec<Vec<Option<Cell<'a>>>> = cells(findings),
        /// Time series of the first repetition of each cell.
        binned: &'a [BinnedRun] = &findings.curves.binned,
        arrivals: &'a [Arrivals] = &findings.curves.arrivals,
        drops: Vec<Drops<'a>> = drops(findings, &findings.curves.drops),
        /// Losses on impaired links: with link and slice for the class.
        link_losses: Vec<Drops<'a>> = drops(findings, &findings.curves.link_losses),
        /// Marks of queues: with the slice for the class.
        marks: Vec<Drops<'a>> = drops(findings, &findings.curves.marks),
        populations: Option<Vec<scale::Population>> = scale::script(findings),
        beside: Option<beside::Beside<'a>> = beside::script(findings),
        prediction: Option<Vec<prediction::Row<'a>>> = prediction::script(&findings.sides),
    }
}

object! {
    Policy<'a>(policy: &'a PolicyDescription, base: usize, phases: usize, index: usize) {
        name: &'a str = &policy.name,
        base: usize = base,
        phase: usize = index.checked_rem(phases).unwrap_or(0),
    }
}

object! {
    /// A phase, and the part of it that is measured, s.
    Phase<'a>(phase: &'a PhaseDescription) {
        name: &'a str = &phase.name,
        begins: f64 = phase.begins_ns as f64 / 1e9,
        from: f64 = phase.measured_from_ns as f64 / 1e9,
        to: f64 = phase.ends_ns as f64 / 1e9,
    }
}

object! {
    QuantityInfo(quantity: Quantity) {
        name: &'static str = quantity.name(),
        title: &'static str = quantity.words(),
        unit: &'static str = quantity.unit().name(),
    }
}

object! {
    /// Signs of policies and slices, on any background; markers are outlines as SVG paths.
    Signs() {
        policies: &'static [&'static str] = &signs::POLICIES,
        slices: &'static [&'static str] = &signs::SLICES,
        markers: Vec<String> = signs::MARKERS.map(signs::path).to_vec(),
        dashes: &'static [Option<(u32, u32)>] = &signs::DASHES,
    }
}

object! {
    Cell<'a>(cell: &'a CellSummary, curve: impl Fn(usize) -> Option<&'a Curve>) {
        repetitions: u32 = cell.repetitions,
        transient: Transient = Transient::of(&cell.transient),
        slices: Vec<SliceCell<'a>> = (0..).zip(&cell.slices)
            .map(|(slice, figures)| SliceCell::of(figures, curve(slice)))
            .collect(),
    }
}

object! {
    /// Runs that have a transient, and those that reached no steady state; when it ends, and the rates before and after.
    Transient(transient: &TransientSummary) {
        found: u32 = transient.found,
        not_reached: u32 = transient.not_reached,
        end_ns: Option<EstimateView> = estimate(transient.end_ns.as_ref()),
        before: Option<EstimateView> = estimate(transient.throughput_before_bits_per_second.as_ref()),
        after: Option<EstimateView> = estimate(transient.throughput_after_bits_per_second.as_ref()),
    }
}

object! {
    SliceCell<'a>(slice: &SliceSummary, delay_cdf: Option<&'a Curve>) {
        #[serde(flatten)]
        figures: SliceFigures = slice_figures(slice),
        delay_cdf: Option<&'a Curve> = delay_cdf,
    }
}

object! {
    /// Frames that one class dropped for one reason: a mean over the runs of each scenario, `None` where none is
    /// finished.
    Drops<'a>((policy, class, reason): &'a (usize, String, String), frames: Vec<Option<f64>>) {
        policy: usize = *policy,
        class: &'a str = class,
        reason: &'a str = reason,
        frames: Vec<Option<f64>> = frames,
    }
}

fn cells<'a>(findings: &'a Findings) -> Vec<Vec<Option<Cell<'a>>>> {
    let study = findings.study();
    let cell = |policy, scenario| {
        let curves = &findings.curves.delay;
        let curve = |slice| curves.get(&(policy, scenario, slice));
        Some(Cell::of(findings.cell(policy, scenario)?, curve))
    };
    let of_policy = |policy| (0..study.scenarios.len()).map(move |s| cell(policy, s));
    (0..study.policies.len())
        .map(|policy| of_policy(policy).collect())
        .collect()
}

fn drops<'a>(findings: &Findings, frames: &'a ByScenario) -> Vec<Drops<'a>> {
    let rows = frames
        .iter()
        .filter(|(_, frames)| frames.values().any(|f| *f > 0));
    rows.map(|(key, by_scenario)| {
        let mean = |scenario| {
            let frames = by_scenario.get(&scenario).copied().unwrap_or_default();
            let cell = findings.cell(key.0, scenario)?;
            Some(frames as f64 / f64::from(cell.repetitions))
        };
        let scenarios = 0..findings.study().scenarios.len();
        Drops::of(key, scenarios.map(mean).collect())
    })
    .collect()
}
