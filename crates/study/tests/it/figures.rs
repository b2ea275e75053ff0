//! Declared figures: which cases they draw, and mistakes in them.

use crate::support::{STUDY, files, told};
use insta::assert_snapshot;
use slicewise_stats::fit::FitKind;
use slicewise_stats::plot::{Distributed, PlotX};
use slicewise_stats::quantity::Quantity;
use slicewise_study::{Study, StudyFile};

const CASES: &str = "\
cases:
  a: {x: 10 % of the link}
  b: {x: 20 % of the link, without: [policies.router]}
  c: {without: [scenarios.storm]}
figures:
  one:
";

fn read(text: &str) -> Result<StudyFile, String> {
    StudyFile::parse(text, "study.yaml", &files()).map_err(|mistakes| told(&mistakes))
}

/// The study of the other tests with a figure, or what is said of it.
fn of_study(figure: &str) -> Result<Study, String> {
    match read(&format!("{STUDY}figures:\n  one:\n{figure}"))? {
        StudyFile::Study(study) => Ok(*study),
        StudyFile::Series(_) => panic!("a study has no cases"),
    }
}

fn of_cases(figure: &str) -> Result<Vec<Study>, String> {
    match read(&format!("{STUDY}{CASES}{figure}"))? {
        StudyFile::Series(series) => Ok(series.cases),
        StudyFile::Study(_) => panic!("a series has cases"),
    }
}

fn refused<T: std::fmt::Debug>(read: Result<T, String>) -> String {
    read.expect_err("this should be refused")
}

const Y: &str = "    y: {metric: delay_mean, slice: gold}\n";

#[test]
fn a_figure_of_a_study_has_its_axes_and_cells() {
    let figure = format!("    title: a title\n    policies: weighted\n    x: scenario\n{Y}");
    let study = of_study(&figure).unwrap();
    let [plot] = &study.plots[..] else {
        panic!("{:?}", study.plots);
    };
    assert_eq!(
        (plot.name.as_str(), plot.title.as_str()),
        ("one", "a title")
    );
    assert_eq!(
        (&plot.x, plot.policies.as_slice()),
        (&PlotX::Scenario, &["weighted".to_owned()][..])
    );
    let y = plot.y.as_ref().unwrap();
    assert_eq!(
        (y.metric.quantity, y.slice.as_deref()),
        (Quantity::DelayMean, Some("gold"))
    );
    assert!(plot.has_case(None) && !plot.has_case(Some("a")));
    assert_eq!(study.description("1").plots, study.plots);
}

#[test]
fn every_case_knows_the_figures_that_draw_it() {
    let figure = format!(
        "    cases: {{first: [b, a]}}\n    x: case_number\n{Y}    fit: [linear, exponential]\n"
    );
    let studies = of_cases(&figure).unwrap();
    let drawn: Vec<usize> = studies.iter().map(|study| study.plots.len()).collect();
    assert_eq!(drawn, [1, 1, 0]);
    let plot = &studies[0].plots[0];
    let cases: Vec<_> = plot
        .cases()
        .map(|(group, case)| (group, &*case.name, &*case.x))
        .collect();
    assert_eq!(
        cases,
        [(0, "b", "20 % of the link"), (0, "a", "10 % of the link")]
    );
    assert_eq!(plot.groups[0].name, "first");
    assert_eq!(plot.fits, [FitKind::Linear, FitKind::Exponential]);
    let description = studies[1].description("1");
    assert_eq!(
        (description.case.as_deref(), &description.plots),
        (Some("b"), &studies[1].plots)
    );
}

#[test]
fn a_distribution_has_no_other_axis() {
    let study = of_study("    x: {distribution: loss_episode_frames, slice: gold}\n").unwrap();
    let PlotX::Distribution(of) = &study.plots[0].x else {
        panic!("{:?}", study.plots);
    };
    assert_eq!(
        (of.of, of.slice.as_str()),
        (Distributed::LossEpisodeFrames, "gold")
    );
    let with_y = of_study(&format!("    x: {{distribution: delay, slice: gold}}\n{Y}"));
    assert_snapshot!(refused(with_y), @"study.yaml:37:5 `y`: the vertical axis of a distribution is the share: leave out `y`");
    let as_y = of_study("    x: scenario\n    y: {distribution: delay, slice: gold}\n");
    assert_snapshot!(refused(as_y), @"study.yaml:37:23 `delay`: a distribution is on the horizontal axis: write it as `x`");
}

#[test]
fn frames_lost_in_intervals_need_their_length() {
    let of = |x: &str| of_study(&format!("    x: {{{x}, slice: gold}}\n"));
    let study = of("distribution: lost_frames, every: 500 ms").unwrap();
    let PlotX::Distribution(distribution) = &study.plots[0].x else {
        panic!("{:?}", study.plots);
    };
    assert_eq!(
        (distribution.of, distribution.every_ns),
        (Distributed::LostFrames, Some(500_000_000))
    );
    assert_snapshot!(refused(of("distribution: lost_frames")), @"study.yaml:36:5 `x`: `every` is missing: in intervals of which length are frames counted?");
    assert_snapshot!(refused(of("distribution: lost_frames, every: 120 ms")), @"study.yaml:36:43 `120 ms`: the study has bins of 50 ms and runs of 5 s; help: choose a multiple of the bin, and no more than a run");
    assert_snapshot!(refused(of("distribution: lost_frames, every: 1000 s")), @"study.yaml:36:43 `1000 s`: the study has bins of 50 ms and runs of 5 s; help: choose a multiple of the bin, and no more than a run");
    assert_snapshot!(refused(of("distribution: delay, every: 1 s")), @"study.yaml:36:37 `1 s`: `every` is of `distribution: lost_frames` alone");
    assert_snapshot!(refused(of_study("    x: scenario\n    y: {metric: loss_ratio, slice: gold, every: 1 s}\n")), @"study.yaml:37:49 `1 s`: `every` is of `distribution: lost_frames` alone");
}

#[test]
fn mistakes_in_quantities_are_told() {
    let of = |x: &str, y: &str| refused(of_study(&format!("    x: {x}\n    y: {y}\n")));
    assert_snapshot!(of("scenario", "{metric: delay_meen, slice: gold}"), @"study.yaml:37:17 `delay_meen`: `delay_meen` is not a measured quantity: did you mean `delay_mean`?");
    assert_snapshot!(of("scenario", "{metric: speed, slice: gold}"), @"study.yaml:37:17 `speed`: `speed` is not a measured quantity: known are `offered`, `throughput`, `loss_ratio`, `delay_mean`, `delay_p50`, `delay_p90`, `delay_p95`, `delay_p99`, `delay_p999`, `delay_p9999`, `delay_p99999`, `delay_max`, `pdv_mean`, `pdv_p50`, `pdv_p95`, `pdv_p99`, `pdv_p999`, `pdv_max`, `ipdv_mean`, `ipdv_p95` and 68 more");
    assert_snapshot!(of("scenario", "{metric: fct_p50, slice: gold}"), @"study.yaml:37:17 `fct_p50`: `fct_p50` is not a measured quantity: known are `delay_p50`, `pdv_p50`, `request_latency_p50`, `completion_time_p50`, `delay_p50_whole`, `pdv_p50_whole`, `offered`, `throughput`, `loss_ratio`, `delay_mean`, `delay_p90`, `delay_p95`, `delay_p99`, `delay_p999`, `delay_p9999`, `delay_p99999`, `delay_max`, `pdv_mean`, `pdv_p95`, `pdv_p99` and 68 more");
    assert_snapshot!(of("throughput", "{metric: delay_mean, slice: gold}"), @"study.yaml:36:8 `throughput`: `throughput` is not an axis (a quantity is written as `{metric: NAME, slice: NAME}`): known are `policy`, `case`, `case_number`, `scenario`, `scenario_number`");
    assert_snapshot!(of("scenario", "{metric: delay_mean}"), @"study.yaml:37:17 `delay_mean`: `slice` is missing: whose delay_mean is it?");
    assert_snapshot!(of("scenario", "{metric: delay_mean, slice: glod}"), @"study.yaml:37:36 `glod`: the study has no slice `glod`; help: did you mean `gold`?");
    assert_snapshot!(of("scenario", "{metric: aggregate_throughput, slice: gold}"), @"study.yaml:37:46 `gold`: aggregate_throughput is not of one slice");
    assert_snapshot!(of("scenario", "{metric: queue_length, queue: gold}"), @"study.yaml:37:17 `queue_length`: the lengths of queues are not measured; help: add `measure: {queue_lengths: 10 ms}`: how often queues are looked at");
    assert_snapshot!(of("{metric: iat_kolmogorov_smirnov, slice: gold}", "{metric: delay_mean, slice: gold}"), @"study.yaml:36:17 `iat_kolmogorov_smirnov`: iat_kolmogorov_smirnov compares repetitions: no run has a value of it");
    assert_snapshot!(refused(of_study("    x: scenario\n")), @"study.yaml:35:3 `one`: `y` is missing: what is drawn?");
}

#[test]
fn mistakes_in_axes_and_fits_are_told() {
    let of = |figure: &str| refused(of_study(&format!("{figure}{Y}")));
    assert_snapshot!(of("    x: scenario\n    fit: linear\n"), @"study.yaml:37:10 `linear`: a fit needs numbers along the horizontal axis; help: write `x: case_number`, `x: scenario_number`, an axis of a sweep that has numbers, or a quantity");
    assert_snapshot!(of("    x: scenario\n    fit: cubic\n"), @"study.yaml:37:10 `cubic`: `cubic` is not a curve that can be fitted: known are `linear`, `exponential`");
    assert_snapshot!(of("    x: scenario_number\n"), @"study.yaml:36:8 `scenario_number`: scenario `calm` states no `x`; help: write its number with a unit there, for example `x: 0.75 of the link`");
    assert_snapshot!(of("    x: case\n"), @"study.yaml:36:8 `case`: this file has no `cases`; help: write `scenario`, `scenario_number`, `policy` or a quantity");
    assert_snapshot!(of("    x: scenario\n    cases: a\n"), @"study.yaml:37:12 `a`: this file has no `cases`: the figure draws its only study");
    assert_snapshot!(of("    x: scenario\n    policies: waited\n"), @"study.yaml:37:15 `waited`: there is no policy `waited` in what the figure draws; help: did you mean `weighted`?");
}

#[test]
fn mistakes_in_cases_are_told() {
    let of = |figure: &str| refused(of_cases(&format!("{figure}{Y}")));
    assert_snapshot!(of("    x: case\n    cases: []\n"), @"study.yaml:41:5 `cases`: a list of `cases` is empty; help: write at least one, or leave it out");
    assert_snapshot!(of("    x: case\n    cases: {near: [a], far: []}\n"), @"study.yaml:41:5 `cases`: a list of `cases` is empty; help: write at least one, or leave it out");
    assert_snapshot!(of("    x: case\n    policies: []\n"), @"study.yaml:41:5 `policies`: a list of `policies` is empty; help: write at least one, or leave it out");
    assert_snapshot!(of("    x: case\n    cases: [a, d]\n"), @"study.yaml:41:16 `d`: there is no case `d`; help: known are `a`, `b`, `c`");
    assert_snapshot!(of("    x: case_number\n"), @"study.yaml:40:8 `case_number`: case `c` states no `x`; help: write its number with a unit there, for example `x: 0.75 of the link`");
    assert_snapshot!(of("    x: case\n    cases: {first: a, second: [b, a]}\n"), @"study.yaml:41:35 `a`: case `a` is drawn already: a point has one line");
    assert_snapshot!(of("    x: case\n    policies: router\n"), @"study.yaml:41:15 `router`: case `b` has no such policy: it would have no point");
    assert_snapshot!(of("    x: case\n    scenarios: [calm, strom]\n"), @"study.yaml:41:23 `strom`: there is no scenario `strom` in what the figure draws; help: did you mean `storm`?");
    let misplaced = format!("{STUDY}cases:\n  a: {{x: many}}\n  b: {{figures: {{}}}}\n");
    assert_snapshot!(refused(read(&misplaced)), @"
    study.yaml:35:10 `many`: `many` is no number with a unit; help: write a number, then its quantity and unit: `0.75 of the link`
    study.yaml:36:7 `figures`: `figures` is said of the whole file, not of a case
    ");
    let of_two_units = format!(
        "{STUDY}cases:\n  a: {{x: 1 s}}\n  b: {{x: 2 ms}}\nfigures:\n  one:\n    x: case_number\n{Y}"
    );
    assert_snapshot!(refused(read(&of_two_units)), @"study.yaml:39:8 `case_number`: case `b` is at a number in `ms`, others in `s`; help: give all of them one unit");
}
