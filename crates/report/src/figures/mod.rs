//! Figures for papers: the same numbers as the page, and the same bytes for the same runs.
//!
//! [`figure::Figure`] describes one; its drawings at two widths, as SVG, PDF and PGF, its data and its caption follow.

mod axis;
mod canvas;
mod declared;
mod distribution;
mod estimates;
mod figure;
mod font;
mod frame;
mod heat_map;
mod labels;
mod layout;
mod pdf;
mod pgf;
mod scale;
mod series;

use crate::error::ReportError;
use crate::findings::Findings;
use crate::limits::{self, Limit};
use crate::signs::{self, Sign};
use crate::text_table::TextTable;
use canvas::{INK, Rgb};
use declared::{Declared, PointsByName};
pub(crate) use estimates::APPLICATION_FIGURES;
use figure::{Figure, Level};
use layout::lay_out;
use slicewise_results::{
    DECLARED_FIGURE, FIGURE_SCRIPT, HEAT_MAP, NARROW, SeriesFolder, make_folder, write_file,
};
use slicewise_stats::path::path_component;
use std::collections::BTreeMap;
use std::path::Path;

/// Figures that the page shows without its script, by name.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    by_name: BTreeMap<String, String>,
    /// Figures that the study declares.
    pub(crate) declared: Vec<DeclaredFigure>,
}

/// A declared figure for the page.
#[derive(Debug)]
pub(crate) struct DeclaredFigure {
    /// Name of its files, without an ending.
    pub(crate) name: String,
    pub(crate) title: String,
    /// How it is drawn, in sentences.
    pub(crate) how: String,
    /// Wide and narrow drawing; `None` where they are too large for the page.
    pub(crate) svgs: Option<[String; 2]>,
    /// Values that are drawn.
    pub(crate) table: TextTable,
}

impl Figures {
    /// A figure of `slice`, in scenario `scenario` unless that is empty; `None` where there is none, or it is
    /// too large for the page.
    pub(crate) fn get(&self, kind: &str, slice: &str, scenario: &str) -> Option<&str> {
        let name = match scenario {
            "" => slice_figure(kind, slice),
            scenario => scenario_figure(kind, slice, scenario),
        };
        self.by_name.get(&name).map(String::as_str)
    }
}

fn slice_figure(kind: &str, slice: &str) -> String {
    format!("{kind}-{}", path_component(slice))
}

fn scenario_figure(kind: &str, slice: &str, scenario: &str) -> String {
    let scenario = path_component(scenario);
    format!("{}-scenario-{scenario}", slice_figure(kind, slice))
}

/// Findings to draw, and their limits.
struct Drawing<'a> {
    findings: &'a Findings,
    limits: Vec<Limit>,
}

impl Drawing<'_> {
    fn slice_name(&self, slice: usize) -> &str {
        let slices = &self.findings.study().slices;
        slices.get(slice).map_or("", |s| &s.name)
    }

    /// Policies of runs with their signs.
    fn policies(&self) -> Vec<(String, Sign)> {
        let names = self.findings.main().policies_of_runs().into_iter();
        let names = names.enumerate();
        names
            .map(|(index, name)| (name.to_owned(), signs::policy(index)))
            .collect()
    }

    /// Limits of a quantity of a slice; in one scenario only, if it is given.
    fn limits(&self, quantity: &str, slice: usize, scenario: Option<usize>) -> Vec<&Limit> {
        let limits = self.limits.iter().filter(|limit| {
            let is_elsewhere = limit.scenario.zip(scenario).is_some_and(|(a, b)| a != b);
            limit.slice == slice && limit.applies_to(quantity) && !is_elsewhere
        });
        limits.collect()
    }

    /// A limit on the y axis, in the colour of its policy, during its phase.
    fn level(&self, limit: &Limit) -> Level {
        let phases = &self.findings.study().phases;
        let phase = limit.phase.and_then(|phase| phases.get(phase));
        let policy = limit.policy.map(|policy| self.findings.base_of(policy));
        Level {
            value: limit.value,
            on_x: false,
            extent: phase.map(|p| (p.begins_ns as f64 / 1e9, p.ends_ns as f64 / 1e9)),
            label: limit.label.clone(),
            colour: policy.map_or(INK, |policy| signs::policy(policy).colour),
        }
    }
}

/// Write every figure into `folder`; keep those that the page shows. Each is called `KIND-SUBJECT` or
/// `KIND-SUBJECT-scenario-SCENARIO`, of one of [`slicewise_results::FIGURE_KINDS`].
pub(crate) fn write_figures(folder: &Path, findings: &Findings) -> Result<Figures, ReportError> {
    let drawing = Drawing {
        findings,
        limits: limits::all(findings),
    };
    let title = &findings.study().title;
    let declared = write_declared(
        folder,
        title,
        &declared::of_study(findings),
        &PointsByName::new(),
    )?;
    let mut by_name = BTreeMap::new();
    let mut write = |name: String, keep: bool, figure: &Figure| {
        let [svg, _] = write_figure(folder, &name, title, figure)?;
        if keep && svg.len() <= MOST_BYTES_ON_PAGE {
            by_name.insert(name, svg);
        }
        Ok::<(), ReportError>(())
    };
    let heaviest = findings.heaviest_scenario();
    let study = findings.study();
    for (index, slice) in study.slices.iter().enumerate() {
        let shown = index < SLICES_ON_PAGE;
        for (kind, figure) in estimates::of_slice(&drawing, index) {
            write(slice_figure(kind, &slice.name), shown, &figure)?;
        }
        for (quantity, figure) in estimates::figures_beside(&drawing, index) {
            let kind = format!("beside-{quantity}");
            write(slice_figure(&kind, &slice.name), false, &figure)?;
        }
        if let Some(figure) = scale::largest_delays(&drawing, index) {
            write(slice_figure("scale", &slice.name), true, &figure)?;
        }
        for (scenario, description) in study.scenarios.iter().enumerate() {
            if let Some(figure) = distribution::of_delay(&drawing, index, scenario) {
                let name = scenario_figure("delay-cdf", &slice.name, &description.name);
                write(name, shown && scenario == heaviest, &figure)?;
            }
        }
    }
    for run in &findings.curves.binned {
        let policy = &run.policy_name;
        let scenario = study.scenarios.get(run.scenario).map_or("", |s| &s.name);
        let name = scenario_figure("time-series", policy, scenario);
        write(name, false, &series::of_run(&drawing, run, scenario))?;
        if let Some(figure) = series::of_applications(run, scenario) {
            let name = scenario_figure(APPLICATION_SERIES, policy, scenario);
            write(name, run.scenario == heaviest, &figure)?;
        }
    }
    write_file(&folder.join(FIGURE_SCRIPT), SCRIPT.as_bytes())?;
    Ok(Figures { by_name, declared })
}

/// Write the figures that the file of a series declares.
pub(crate) fn write_series_figures(
    folder: &SeriesFolder,
    cases: &[&Findings],
) -> Result<Vec<DeclaredFigure>, ReportError> {
    let all = declared::of_series(cases);
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let path = folder.figures_path();
    make_folder(&path)?;
    write_file(&path.join(FIGURE_SCRIPT), SCRIPT.as_bytes())?;
    let series = folder.description();
    let title = match series.title.as_str() {
        "" => &series.name,
        title => title,
    };
    let points = cases
        .iter()
        .filter_map(|point| Some((point.study().case.as_deref()?, *point)));
    write_declared(&path, title, &all, &points.collect())
}

fn write_declared(
    folder: &Path,
    study: &str,
    all: &[Declared<'_>],
    points: &PointsByName<'_>,
) -> Result<Vec<DeclaredFigure>, ReportError> {
    let mut written = Vec::new();
    let figures = all.iter().flat_map(|declared| {
        let map = declared.map(points).map(|map| (HEAT_MAP, map));
        let figures = std::iter::once((DECLARED_FIGURE, declared.figure())).chain(map);
        figures.map(|(kind, figure)| (slice_figure(kind, &declared.plot.name), figure))
    });
    for (name, figure) in figures {
        let svgs = write_figure(folder, &name, study, &figure)?;
        let bytes = svgs.iter().map(String::len).sum::<usize>();
        written.push(DeclaredFigure {
            name,
            svgs: (bytes <= MOST_BYTES_ON_PAGE).then_some(svgs),
            table: figure.table(),
            title: figure.subject,
            how: figure.how,
        });
    }
    Ok(written)
}

/// Write all files of a figure; returns the wide and the narrow drawing as SVG.
fn write_figure(
    folder: &Path,
    name: &str,
    study: &str,
    figure: &Figure,
) -> Result<[String; 2], ReportError> {
    let caption = figure.caption(study);
    let write = |end: &str, bytes: &[u8]| write_file(&folder.join(format!("{name}{end}")), bytes);
    let mut svgs = [String::new(), String::new()];
    let widths = [("", WIDE_MM), (NARROW, NARROW_MM)];
    for (drawn, (end, width)) in svgs.iter_mut().zip(widths) {
        let canvas = lay_out(figure, width);
        let svg = canvas.svg(&figure.subject);
        write(&format!("{end}.svg"), svg.as_bytes())?;
        let pdf = pdf::pdf(&canvas).map_err(|reason| ReportError::Figure {
            path: folder.join(format!("{name}{end}.pdf")),
            reason,
        })?;
        write(&format!("{end}.pdf"), &pdf)?;
        let pgf = pgf::pgf(&canvas, &figure.subject);
        write(&format!("{end}.pgf"), pgf.as_bytes())?;
        *drawn = svg;
    }
    write(".txt", caption.as_bytes())?;
    write(".csv", figure.csv().as_bytes())?;
    Ok(svgs)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Draws the data of any figure again.
const SCRIPT: &str = include_str!("../../assets/figures/plot.py");
/// Widths of two columns of a journal's page, and of one.
const WIDE_MM: f64 = 175.0;
const NARROW_MM: f64 = 85.0;
/// Prefix of the names of figures of first connections over time.
pub(crate) const APPLICATION_SERIES: &str = "application-series";
/// Slices whose figures the page shows.
pub(crate) const SLICES_ON_PAGE: usize = 6;
/// Larger figures are left to files.
const MOST_BYTES_ON_PAGE: usize = 192 << 10;
/// Colour of parts that are not measured.
const SHADE: Rgb = (0xF8, 0xEE, 0xDD);
