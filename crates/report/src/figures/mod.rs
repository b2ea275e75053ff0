//! Figures for papers, as SVG: the same numbers as the page, and the same bytes for the same runs.

mod applications;
mod axis;
mod estimates;
mod panel;
mod scale;

use crate::curves::{BinnedRun, BinnedSlice, Curve, LeftOut};
use crate::error::ReportError;
use crate::findings::Findings;
use crate::signs::{self, Sign};
use axis::Axis;
pub(crate) use estimates::OF_APPLICATIONS;
use panel::{DrawError, Panel, Place, Rgb, figure};
use slicewise_results::write_file;
use slicewise_stats::path::path_component;
use slicewise_stats::words::time;
use std::collections::BTreeMap;
use std::path::Path;

/// Figures that the page shows without its script, by name.
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<String, String>);

impl Figures {
    /// A figure of `slice`, in scenario `scenario` unless that is empty; `None` where there is none, or it is
    /// too large for the page.
    pub(crate) fn get(&self, kind: &str, slice: &str, scenario: &str) -> Option<&str> {
        let name = match scenario {
            "" => slice_figure(kind, slice),
            scenario => scenario_figure(kind, slice, scenario),
        };
        self.0.get(&name).map(String::as_str)
    }
}

fn slice_figure(kind: &str, slice: &str) -> String {
    format!("{kind}-{}", path_component(slice))
}

fn scenario_figure(kind: &str, slice: &str, scenario: &str) -> String {
    let scenario = path_component(scenario);
    format!("{}-scenario-{scenario}", slice_figure(kind, slice))
}

/// Write every figure into `folder`; keep those that the page shows. Each is called `KIND-SUBJECT.svg`, or
/// `KIND-SUBJECT-scenario-SCENARIO.svg`, of one of [`slicewise_results::FIGURE_KINDS`].
pub(crate) fn write_figures(folder: &Path, findings: &Findings) -> Result<Figures, ReportError> {
    let mut kept = Figures::default();
    let mut write = |name: String, keep: bool, svg: Result<String, DrawError>| {
        let path = folder.join(format!("{name}.svg"));
        match svg {
            Ok(svg) => {
                write_file(&path, svg.as_bytes())?;
                if keep && svg.len() <= MOST_BYTES_ON_PAGE {
                    kept.0.insert(name, svg);
                }
                Ok(())
            }
            Err(reason) => Err(ReportError::Figure { path, reason }),
        }
    };
    let heaviest = findings.heaviest_scenario();
    let study = findings.study();
    for (index, slice) in study.slices.iter().enumerate() {
        let shown = index < SLICES_ON_PAGE;
        for (kind, svg) in estimates::of_slice(findings, index) {
            write(slice_figure(kind, &slice.name), shown, svg)?;
        }
        for (quantity, svg) in estimates::figures_beside(findings, index) {
            let kind = format!("beside-{quantity}");
            write(slice_figure(&kind, &slice.name), false, svg)?;
        }
        if let Some(svg) = scale::largest_delays(findings, index) {
            write(slice_figure("scale", &slice.name), true, svg)?;
        }
        for (scenario, description) in study.scenarios.iter().enumerate() {
            if let Some(svg) = delay_cdf(findings, index, scenario) {
                let name = scenario_figure("delay-cdf", &slice.name, &description.name);
                write(name, shown && scenario == heaviest, svg)?;
            }
        }
    }
    for run in &findings.curves.binned {
        let policy = &run.policy_name;
        let scenario = study.scenarios.get(run.scenario).map_or("", |s| &s.name);
        let name = format!(
            "time-series-{}-scenario-{}",
            path_component(policy),
            path_component(scenario)
        );
        let shaded = match (run.left_out.is_empty(), study.phases.is_empty()) {
            (true, _) => "",
            (false, true) => " (shaded: the initial transient)",
            (false, false) => " (shaded: phases settle)",
        };
        let title = format!("{policy}, scenario {scenario}{shaded}");
        write(name, false, time_series(findings, run, &title))?;
        let title = format!("First connection of each source: {policy}, scenario {scenario}");
        if let Some(svg) = applications::series(run, &title) {
            let name = scenario_figure(APPLICATION_SERIES, policy, scenario);
            write(name, run.scenario == heaviest, svg)?;
        }
    }
    Ok(kept)
}

/// One line a policy; `None` where no policy has frames to show.
fn delay_cdf(
    findings: &Findings,
    slice: usize,
    scenario: usize,
) -> Option<Result<String, DrawError>> {
    let study = findings.study();
    let curves: Vec<(usize, &Curve)> = (0..study.policies.len())
        .filter_map(|policy| {
            let curve = findings.curves.delay.get(&(policy, scenario, slice))?;
            (!curve.0.is_empty()).then_some((policy, curve))
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let nanoseconds = |curve: &Curve| curve.0.iter().map(|ns| *ns as f64).collect::<Vec<f64>>();
    let values: Vec<f64> = curves
        .iter()
        .flat_map(|(_, curve)| nanoseconds(curve))
        .collect();
    let x = Axis::logarithmic("one-way delay", values.iter().copied(), time);
    let y = Axis::from_zero("frames, %", 1.0, 0.01);
    let scenario_name = study.scenarios.get(scenario).map_or("", |s| &s.name);
    let title = format!(
        "One-way delay of slice {}, scenario {scenario_name}",
        slice_name(findings, slice)
    );
    Some(figure(&title, &policy_legend(findings), HEIGHT, |area| {
        let mut panel = Panel::new(area, &x, &y)?;
        for (place, (policy, curve)) in curves.iter().enumerate() {
            let (sign, values) = (signs::policy(*policy), nanoseconds(curve));
            let mut below = 0.0;
            let mut points = vec![(0.0, Some(0.0))];
            for (value, fraction) in values.iter().zip(&curve.1) {
                points.extend([(*value, Some(below)), (*value, Some(*fraction))]);
                below = *fraction;
            }
            points.push((f64::MAX, Some(below)));
            // Earlier lines are wider, so that none hides another that runs along it.
            let width = u32::try_from(curves.len() - place).unwrap_or(1).min(8) + 2;
            panel.signed_line(points.into_iter(), sign, width)?;
            // Markers of two lines that run along each other do not lie on each other.
            let offset = count(place) / count(curves.len());
            for fraction in
                (0..MARKERS_ON_A_LINE).map(|n| (count(n) + offset) / count(MARKERS_ON_A_LINE))
            {
                if let Some(at) = curve.1.iter().position(|reached| *reached >= fraction) {
                    panel.point((values[at], fraction), sign, (f64::MAX, Place::Around))?;
                }
            }
        }
        Ok(())
    }))
}

/// Rate, loss and delay of one run above each other.
fn time_series(findings: &Findings, run: &BinnedRun, title: &str) -> Result<String, DrawError> {
    let width = run.bin_seconds();
    let slices: Vec<SliceSeries> = (run.slices.iter())
        .map(|slice| SliceSeries::of(run, slice))
        .collect();
    let largest = |of: fn(&SliceSeries) -> [&Values; 2]| {
        let values = slices.iter().flat_map(of).flatten().flatten();
        values.copied().fold(0.0, f64::max)
    };
    let delays = slices.iter().flat_map(|slice| &slice.delay).flatten();
    let bins = run.slices.iter().map(|s| s.sent.len()).max();
    let end = count(bins.unwrap_or_default()) * width;
    // Time has labels below the last panel only.
    let hidden = Axis::span("", end);
    let seconds = Axis::span("time since the start of the run, s", end);
    let rate = Axis::from_zero("rate, Mbit/s", largest(|s| [&s.sent, &s.received]), 1e6);
    let loss = Axis::from_zero("loss, %", largest(|s| [&s.loss; 2]), 0.01);
    let delay = Axis::logarithmic("delay", delays.copied(), time);
    let legend: Vec<(String, Sign)> = (0..run.slices.len())
        .map(|slice| {
            let name = format!("{} (thin: sent)", slice_name(findings, slice));
            (name, signs::slice(slice))
        })
        .collect();
    let shaded = |part: &LeftOut| [part.from_ns, part.to_ns].map(|ns| ns as f64 / 1e9);
    // Values with the middle of their bin, s.
    let points = |values: &Values| {
        let values = values.clone().into_iter().enumerate();
        values.map(move |(bin, value)| ((count(bin) + 0.5) * width, value))
    };
    figure(title, &legend, TALL, |area| {
        let (upper, rest) = area.split_vertically(TALL / 3);
        let (middle, lower) = rest.split_vertically(TALL / 4);
        let mut panels = [
            Panel::new(&upper, &hidden, &rate)?,
            Panel::new(&middle, &hidden, &loss)?,
            Panel::new(&lower, &seconds, &delay)?,
        ];
        for [from, to] in run.left_out.iter().map(shaded) {
            for panel in &mut panels {
                panel.rectangle((from, 0.0), (to, f64::MAX), SHADE, SHADE_OPACITY)?;
            }
        }
        let [rates, losses, delays] = &mut panels;
        for (index, slice) in slices.iter().enumerate() {
            let colour = signs::slice(index).colour;
            rates.line(points(&slice.sent), colour, 1, 0.6)?;
            rates.line(points(&slice.received), colour, 3, 1.0)?;
            losses.line(points(&slice.loss), colour, 3, 1.0)?;
            delays.line(points(&slice.delay), colour, 3, 1.0)?;
        }
        Ok(())
    })
}

/// A value for each bin; `None` where there is none.
type Values = Vec<Option<f64>>;

/// The series of one slice in the units in which they are drawn: rates in bit/s, the loss ratio, mean delay in ns.
struct SliceSeries {
    sent: Values,
    received: Values,
    loss: Values,
    delay: Values,
}

impl SliceSeries {
    fn of(run: &BinnedRun, slice: &BinnedSlice) -> Self {
        let rate = |bytes: &u64| Some(*bytes as f64 * 8.0 / run.bin_seconds());
        let unit = run.delay_unit_ns as f64;
        let loss = |(lost, sent): (&u32, &u32)| match sent {
            0 => Some(0.0),
            sent => Some(f64::from(*lost) / f64::from(*sent)),
        };
        Self {
            sent: slice.sent.iter().map(rate).collect(),
            received: slice.received.iter().map(rate).collect(),
            loss: slice.lost.iter().zip(&slice.frames).map(loss).collect(),
            delay: (slice.delay.iter())
                .map(|units| units.map(|units| units as f64 * unit))
                .collect(),
        }
    }
}

fn policy_legend(findings: &Findings) -> Vec<(String, Sign)> {
    let names = findings.study().policies.iter().map(|p| p.name.clone());
    names
        .enumerate()
        .map(|(index, name)| (name, signs::policy(index)))
        .collect()
}

fn slice_name(findings: &Findings, slice: usize) -> &str {
    findings.study().slices.get(slice).map_or("", |s| &s.name)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Markers along the line of a distribution.
const MARKERS_ON_A_LINE: usize = 4;
/// Prefix of the names of figures of first connections over time.
pub(crate) const APPLICATION_SERIES: &str = "application-series";
const HEIGHT: u32 = 880;
const TALL: u32 = 1400;
/// Slices whose figures the page shows.
pub(crate) const SLICES_ON_PAGE: usize = 6;
/// Larger figures are left to files.
const MOST_BYTES_ON_PAGE: usize = 192 << 10;
const INK: Rgb = (0, 0, 0);
/// Colour of parts that are not measured.
const SHADE: Rgb = (0xC7, 0x7F, 0x00);
const SHADE_OPACITY: f64 = 0.13;
