//! Figures of results folders as a paper prints them: signs at their values, limits, sizes, and texts that do not overlap.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs of a study that ships, with one whose scenarios are numbers and one with phases.
fn figures_of(study: &str, more: &[&str]) -> (Sandbox, Vec<PathBuf>) {
    let sandbox = Sandbox::new();
    let study = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../studies")
        .join(study);
    sandbox.succeeded(
        &[
            &["run", study.to_str().unwrap(), "--quick", "--out", "out"],
            more,
        ]
        .concat(),
    );
    let mut folders = vec![sandbox.path("out")];
    let cases = fs::read_dir(sandbox.path("out")).unwrap();
    folders.extend(
        cases
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir()),
    );
    let figures = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder.join("figures")).ok());
    let mut files: Vec<PathBuf> = figures
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    (sandbox, files)
}

fn svgs(files: &[PathBuf]) -> impl Iterator<Item = (&PathBuf, String)> {
    let svgs = files
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "svg"));
    svgs.map(|path| (path, fs::read_to_string(path).unwrap()))
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = element.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0)
}

fn number(element: &str, name: &str) -> f64 {
    let value = attribute(element, name).unwrap_or_else(|| panic!("{name} of {element}"));
    value.parse().unwrap()
}

/// A text of a figure and its area: left, right, top, bottom.
#[derive(Debug)]
struct Label {
    text: String,
    size: f64,
    anchor: String,
    at: (f64, f64),
    area: [f64; 4],
}

fn labels(svg: &str) -> Vec<Label> {
    let texts = svg.lines().filter(|line| line.starts_with("<text"));
    let label = |line: &str| {
        let (x, y, size) = (
            number(line, "x"),
            number(line, "y"),
            number(line, "font-size"),
        );
        let length = number(line, "textLength");
        let anchor = attribute(line, "text-anchor").unwrap_or("start").to_owned();
        let before = length
            * match anchor.as_str() {
                "start" => 0.0,
                "middle" => 0.5,
                _ => 1.0,
            };
        let (up, down) = (0.72 * size, 0.2 * size);
        let area = if line.contains("rotate(-90") {
            [x - up, x + down, y + before - length, y + before]
        } else {
            [x - before, x - before + length, y - up, y + down]
        };
        let text = line.split_once('>').unwrap().1.trim_end_matches("</text>");
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        Label {
            text,
            size,
            anchor,
            at: (x, y),
            area,
        }
    };
    texts.map(label).collect()
}

/// Texts are large enough for a column, nothing lies on them, and all of them are on the page.
fn is_legible(path: &Path, svg: &str) {
    let labels = labels(svg);
    let name = path.display();
    let mut view = attribute(svg, "viewBox")
        .unwrap()
        .split(' ')
        .skip(2)
        .map(|n| n.parse::<f64>().unwrap());
    let (width, height) = (view.next().unwrap(), view.next().unwrap());
    let millimetres = if name.to_string().contains("@85mm.") {
        85.0
    } else {
        175.0
    };
    assert!(
        svg.contains(&format!(" width=\"{millimetres}mm\"")),
        "{name}"
    );
    assert!(
        (width - millimetres * 72.0 / 25.4).abs() < 0.01,
        "{name}: {width} pt"
    );
    for (index, label) in labels.iter().enumerate() {
        assert!((7.0..=8.0).contains(&label.size), "{name}: {label:?}");
        let [left, right, top, bottom] = label.area;
        assert!(
            left >= 0.0 && right <= width && top >= 0.0 && bottom <= height,
            "{name}: {label:?} is not inside"
        );
        for other in &labels[..index] {
            let [l, r, t, b] = other.area;
            assert!(
                left >= r || l >= right || top >= b || t >= bottom,
                "{name}: {label:?} lies on {other:?}"
            );
        }
    }
    let lines = svg.lines().filter(|line| line.contains(" stroke-width="));
    let lines = lines.filter(|line| line.starts_with("<path"));
    let widths: Vec<f64> = lines.map(|line| number(line, "stroke-width")).collect();
    assert!(
        widths.iter().all(|width| *width >= 0.5),
        "{name}: {widths:?}"
    );
    let has_data = rows(path)
        .iter()
        .any(|row| row["kind"].contains("line") || row["kind"] == "steps");
    assert!(
        !has_data || widths.iter().any(|width| *width >= 0.75),
        "{name}: {widths:?}"
    );
}

/// Rows of the data beside a figure, by the names of their columns.
fn rows(path: &Path) -> Vec<std::collections::HashMap<String, String>> {
    let name = path
        .to_str()
        .unwrap()
        .replace("@85mm.svg", ".csv")
        .replace(".svg", ".csv");
    let mut reader = csv::Reader::from_path(name).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// Every limit of the data has its name and its line.
fn has_its_limits(path: &Path, svg: &str) {
    let labels = labels(svg);
    let dashed = svg
        .lines()
        .filter(|line| line.contains("stroke-dasharray=\"3 2\""))
        .count();
    let limits: Vec<_> = rows(path)
        .into_iter()
        .filter(|row| row["kind"] == "limit")
        .collect();
    assert!(dashed >= limits.len(), "{}: {dashed} lines", path.display());
    for limit in limits.iter().filter(|limit| !limit["series"].is_empty()) {
        let is_there = labels.iter().any(|label| label.text == limit["series"]);
        assert!(is_there, "{}: {}", path.display(), limit["series"]);
    }
}

/// Returns the place of a value, by the labels along an axis; `None` where it has too few.
fn places(svg: &str, is_x: bool, scale: &str) -> Option<impl Fn(f64) -> f64> {
    let is_logarithmic = scale == "log";
    let along = move |value: f64| {
        if is_logarithmic { value.log10() } else { value }
    };
    let anchor = if is_x { "middle" } else { "end" };
    let ticks = labels(svg)
        .into_iter()
        .filter(|label| label.size == 7.0 && label.anchor == anchor);
    let ticks = ticks.filter_map(|label| {
        let value: f64 = label.text.replace('\u{202f}', "").parse().ok()?;
        // Labels of the vertical axis stand a little below their values.
        let at = if is_x { label.at.0 } else { label.at.1 - 2.45 };
        Some((along(value), at))
    });
    let ticks: Vec<(f64, f64)> = ticks.collect();
    let (a, b) = (*ticks.first()?, *ticks.last()?);
    (a.0 != b.0).then_some(move |value| a.1 + (along(value) - a.0) / (b.0 - a.0) * (b.1 - a.1))
}

/// Signs lie where labels along the axes say that their values are.
fn signs_are_at_their_values(path: &Path, svg: &str) -> usize {
    let rows: Vec<_> = rows(path)
        .into_iter()
        .filter(|row| row["kind"].starts_with("sign"))
        .collect();
    let Some(first) = rows.first() else { return 0 };
    let is_numeric = |scale: &str| ["linear", "log"].contains(&scale);
    let [x, y] = ["x", "y"].map(|axis| {
        let scale = first[&format!("{axis}_scale")].as_str();
        is_numeric(scale)
            .then(|| places(svg, axis == "x", scale))
            .flatten()
    });
    assert!(x.is_some() || y.is_some(), "{}", path.display());
    let markers = svg
        .lines()
        .filter(|line| line.contains("translate("))
        .map(|line| {
            let place = attribute(line, "transform")
                .unwrap()
                .trim_start_matches("translate(");
            let (x, y) = place.split_once(')').unwrap().0.split_once(' ').unwrap();
            let at: [f64; 2] = [x, y].map(|at| at.parse().unwrap());
            (attribute(line, "fill").unwrap().to_owned(), at)
        });
    let markers: Vec<(String, [f64; 2])> = markers.collect();
    for row in &rows {
        let x = x.as_ref().map(|place| place(row["x"].parse().unwrap()));
        let y = y.as_ref().map(|place| place(row["y"].parse().unwrap()));
        let is_at = |at: f64, expected: Option<f64>| expected.is_none_or(|e| (at - e).abs() < 0.05);
        let found = markers
            .iter()
            .any(|(fill, at)| *fill == row["colour"] && is_at(at[0], x) && is_at(at[1], y));
        assert!(
            found,
            "{}: {row:?} at {x:?}, {y:?}, signs {markers:?}",
            path.display()
        );
    }
    rows.len()
}

/// Signs of the legend, or of all points: no two names share both colour and shape.
fn signs_differ(path: &Path, svg: &str) {
    let names: BTreeSet<String> = rows(path)
        .into_iter()
        .filter(|row| row["kind"].starts_with("sign"))
        .map(|row| row["series"].clone())
        .collect();
    let signs = svg.lines().filter(|line| line.contains("translate("));
    let signs: BTreeSet<(&str, &str)> = signs
        .map(|line| {
            (
                attribute(line, "fill").unwrap(),
                attribute(line, "d").unwrap(),
            )
        })
        .collect();
    assert!(
        names.is_empty() || names.len() == signs.len(),
        "{}: {names:?}",
        path.display()
    );
}

fn check(files: &[PathBuf]) -> usize {
    let mut signs = 0;
    for (path, svg) in svgs(files) {
        is_legible(path, &svg);
        has_its_limits(path, &svg);
        signs += signs_are_at_their_values(path, &svg);
        signs_differ(path, &svg);
        let pdf = fs::read(path.with_extension("pdf")).unwrap();
        let pdf = String::from_utf8_lossy(&pdf);
        let wide = attribute(&svg, "viewBox")
            .unwrap()
            .split(' ')
            .nth(2)
            .unwrap();
        assert!(
            pdf.starts_with("%PDF-")
                && pdf.contains("/FontFile2 ")
                && pdf.contains("+LiberationSans"),
            "{}",
            path.display()
        );
        assert!(
            pdf.contains(&format!("/MediaBox [0 0 {}", wide.trim_end_matches('0'))),
            "{}: {wide}",
            path.display()
        );
    }
    signs
}

#[test]
fn figures_of_objectives_and_bounds_are_right_at_both_widths() {
    let (_sandbox, files) = figures_of("voice-and-bulk.yaml", &[]);
    // Four figures of two slices: four policies in two scenarios, at two widths.
    assert_eq!(check(&files), 4 * 2 * 4 * 2 * 2);
    let caption = files
        .iter()
        .find(|path| path.ends_with("delay-p99-voice.txt"))
        .unwrap();
    let caption = fs::read_to_string(caption).unwrap();
    for part in [
        "99th percentile of one-way delay of slice voice",
        "of 4 repetitions",
        "95 % confidence interval",
        "objective ≤ 5 ms for 99.9 %",
        "bound proved by guaranteed",
    ] {
        assert!(caption.contains(part), "{caption}");
    }
}

#[test]
fn figures_of_eight_policies_are_right_at_both_widths() {
    let (_sandbox, files) = figures_of("router-mechanisms.yaml", &["--repetitions", "2"]);
    assert!(check(&files) > 200);
}

#[test]
fn figures_over_numbers_and_phases_are_right_at_both_widths() {
    let (_sandbox, files) = figures_of(
        "dpdk-hqos.yaml",
        &["--case", "e1", "--case", "change", "--policy", "guaranteed"],
    );
    assert!(check(&files) > 20);
}

const DECLARED: &str = "
figures:
  over-numbers:
    title: Delay over the rate
    cases: {up to 60 %: [a, b, c]}
    policies: shared
    x: case_number
    y: {metric: delay_mean, slice: rest}
    scenarios: calm
    fit: [linear, exponential]
  over-names: {x: case, y: {metric: loss_episode_frames, slice: rest}}
  against: {cases: [a, b], x: {metric: throughput, slice: rest}, y: {metric: delay_p99, slice: critical}}
  of-one: {cases: a, x: scenario, y: {metric: throughput, slice: rest}, title: Of one case}
  each-interval: {cases: a, x: {distribution: lost_frames, slice: rest, every: 500 ms}}
  percentiles: {cases: [a, c], scenarios: crowded, x: {distribution: delay, slice: critical}}
  arrivals: {cases: a, scenarios: crowded, x: {distribution: iat, slice: critical}}
cases:
  a: {x: 20 % of the link, scenarios: {calm: {sources: {rest: {rate: 20 %}}}}}
  b: {x: 40 % of the link, scenarios: {calm: {sources: {rest: {rate: 40 %}}}}}
  c: {x: 50 % of the link, scenarios: {calm: {sources: {rest: {rate: 50 %}}}}}
";

/// The study of other tests with figures over its cases, run with these options.
pub fn declared(options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("cases.yaml", format!("{STUDY}{DECLARED}"));
    sandbox.succeeded(&[&["run", "cases.yaml", "--out", "out"], options].concat());
    sandbox
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn declared_figures_are_right_at_both_widths_and_on_the_page() {
    let sandbox = declared(&[]);
    let files = files_in(&sandbox.path("out/figures"));
    // Two policies in two scenarios of two cases, their percentiles and those of three cases.
    assert!(check(&files) > 2 * (3 + 8 + 4));
    let of_case = files_in(&sandbox.path("out/small-a/figures"));
    let names = |files: &[PathBuf]| -> Vec<String> {
        let svgs = files
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap());
        let svgs = svgs.filter_map(|name| name.strip_suffix("@85mm.svg"));
        svgs.filter(|name| name.starts_with("figure-"))
            .map(str::to_owned)
            .collect()
    };
    let all = [
        "against",
        "arrivals",
        "each-interval",
        "of-one",
        "over-names",
        "over-numbers",
        "percentiles",
    ];
    assert_eq!(names(&files), all.map(|name| format!("figure-{name}")));
    let of_each = ["figure-arrivals", "figure-each-interval", "figure-of-one"];
    assert_eq!(names(&of_case), of_each);
    let page = sandbox.read("out/report.html");
    for part in [
        "Figures of the study",
        "Delay over the rate",
        "href=\"figures/figure-over-numbers.csv\"",
        "No value, because nothing was lost: shared, calm, a;",
        "Share of the intervals of 500\u{a0}ms in 3 repetitions with at most this value.",
        "; percentiles that no value of a repetition exceeds are left out.",
        "Of the frames sent, these shares were lost and lie beyond every value: shared, crowded, ",
        "% of the link",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        sandbox
            .read("out/small-a/report.html")
            .contains("Of one case")
    );
    assert!(
        !sandbox
            .read("out/small-b/report.html")
            .contains("Figures of the study")
    );
    let csv = sandbox.read("out/figures/figure-against.csv");
    sandbox.succeeded(&["report", "out"]);
    assert_eq!(sandbox.read("out/figures/figure-against.csv"), csv);
}

#[test]
fn a_declared_figure_has_intervals_on_both_axes_and_its_fit_in_words() {
    let sandbox = declared(&[]);
    let against = rows(&sandbox.path("out/figures/figure-against.svg"));
    assert_eq!(against.len(), 8);
    let is_inside = |row: &std::collections::HashMap<String, String>,
                     [low, at, high]: [&str; 3]| {
        let number = |column: &str| row[column].parse::<f64>();
        // Equal values have no interval.
        row[low].is_empty()
            || (number(low).unwrap() < number(at).unwrap()
                && number(at).unwrap() < number(high).unwrap())
    };
    for row in &against {
        assert!(is_inside(row, ["x_low", "x", "x_high"]), "{row:?}");
        assert!(is_inside(row, ["low", "y", "high"]), "{row:?}");
    }
    for column in ["x_low", "low"] {
        assert!(
            against.iter().any(|row| !row[column].is_empty()),
            "{column}"
        );
    }
    assert_eq!(against[0]["point"], "shared, calm, a");
    let fitted = rows(&sandbox.path("out/figures/figure-over-numbers.svg"));
    let of = |series: &str| -> Vec<(f64, f64)> {
        let own = fitted
            .iter()
            .filter(|row| row["series"].starts_with(series));
        own.map(|row| (row["x"].parse().unwrap(), row["y"].parse().unwrap()))
            .collect()
    };
    let signs: Vec<(f64, f64)> = of("up to 60 %").into_iter().chain(of("shared")).collect();
    assert_eq!(
        signs.iter().map(|sign| sign.0).collect::<Vec<_>>(),
        [20.0, 40.0, 50.0]
    );
    let mean = |values: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        values.iter().map(of).sum::<f64>() / values.len() as f64
    };
    let line = of("linear fit");
    // A line of least squares passes through the mean of the points.
    let [first, .., last] = line[..] else {
        panic!("{fitted:?}");
    };
    let slope = (last.1 - first.1) / (last.0 - first.0);
    let at_mean = first.1 + slope * (mean(&signs, |of| of.0) - first.0);
    assert!(
        (at_mean - mean(&signs, |of| of.1)).abs() < 1e-6 * at_mean,
        "{fitted:?}"
    );
    let caption = sandbox.read("out/figures/figure-over-numbers.txt");
    for part in [
        "Delay over the rate, study",
        "A sign is the mean of 3 repetitions",
        "3 signs by least squares: y = a + b x, a = ",
        "y = a exp(b x)",
        "(95 % confidence), residual standard error of ln y",
    ] {
        assert!(caption.contains(part), "{part}: {caption}");
    }
}

#[test]
fn a_declared_figure_says_which_cases_were_not_run_and_why_it_has_no_fit() {
    let sandbox = declared(&["--case", "a", "--case", "b", "--repetitions", "1"]);
    let caption = sandbox.read("out/figures/figure-over-numbers.txt");
    assert!(caption.contains("Not run: c."), "{caption}");
    assert!(
        caption.contains("it has 2 signs, and a fit needs three"),
        "{caption}"
    );
    assert!(
        caption.contains("A sign is the value of one repetition."),
        "{caption}"
    );
    let row = &rows(&sandbox.path("out/figures/figure-over-numbers.svg"))[0];
    assert_eq!((row["low"].as_str(), row["high"].as_str()), ("", ""));
}

#[test]
fn the_script_draws_the_data_of_every_kind_of_figure() {
    let found = Command::new("python3")
        .args(["-c", "import matplotlib"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("not tested: python3 has no matplotlib");
        return;
    }
    let (_sandbox, files) = figures_of("voice-and-bulk.yaml", &[]);
    let script = files.iter().find(|path| path.ends_with("plot.py")).unwrap();
    for kind in ["throughput-", "delay-p99-", "delay-cdf-", "time-series-"] {
        let is_of = |path: &&PathBuf| {
            path.extension().is_some_and(|e| e == "csv")
                && path
                    .file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with(kind)
        };
        let csv = files.iter().find(is_of).unwrap();
        let output = Command::new("python3")
            .arg(script)
            .arg(csv)
            .output()
            .unwrap();
        assert!(output.status.success(), "{kind}: {}", text(&output.stderr));
    }
}

/// Two sources of one slice: many short flows, and fewer long ones.
const TWO_SOURCES: &str = "
name: flows
link: {rate: 1 Gbit/s, propagation: 2 ms}
dut: {model: port, port_rate: 10 Mbit/s}
slices: {web: {match: {source: 10.0.0.1}, headers: {source: 10.0.0.1, destination: 10.1.0.1}, share: 100 %}}
sources:
  small: {slice: web, start_spread: 3 s, application: {kind: bulk, flows: 60, bytes: 2 kB}}
  large: {slice: web, start_spread: 3 s, application: {kind: bulk, flows: 20, bytes: 60 kB}}
scenarios: {loaded: {}}
policies: {shared: {none: true}}
figures:
  median: {x: policy, y: {metric: completion_time_p50, slice: web}}
  tail: {x: policy, y: {metric: completion_time_p99, slice: web}}
  goodput: {x: policy, y: {metric: goodput, slice: web}}
  over-policies: {x: {metric: timeouts, slice: web}, y: {metric: completion_time_p99, slice: web}}
repetitions: 1
duration: 4 s
";

#[test]
fn percentiles_of_a_slice_with_two_sources_are_those_of_all_their_flows() {
    let sandbox = Sandbox::new();
    sandbox.write("flows.yaml", TWO_SOURCES);
    sandbox.succeeded(&["run", "flows.yaml", "--out", "out"]);
    let times = rows(&sandbox.path("out/data/application_times.svg"));
    let number = |row: &std::collections::HashMap<String, String>, column: &str| {
        row[column].parse::<f64>().unwrap()
    };
    let at_most = |ns: f64, source: &str| {
        let own = times.iter().filter(|row| row["source"] == source);
        let reached = own.filter(|row| number(row, "time_ns") <= ns);
        reached
            .map(|row| number(row, "share_of_finished"))
            .fold(0.0, f64::max)
    };
    let value = |figure: &str, unit: f64| {
        let figure = rows(&sandbox.path(&format!("out/figures/figure-{figure}.svg")));
        number(&figure[0], "x") * unit
    };
    for (figure, share) in [("median", 0.5), ("tail", 0.99)] {
        let ns = value(figure, 1e6);
        let of_all = |ns| 0.75 * at_most(ns, "small") + 0.25 * at_most(ns, "large");
        assert!(of_all(ns * 1.000_001) >= share, "{figure}: {ns}");
        assert!(of_all(ns * 0.99) < share, "{figure}: {ns}");
    }
    for (figure, caption) in [
        (
            "tail",
            "Applications are measured over the whole run, transient included.",
        ),
        (
            "goodput",
            "Goodput is the mean over the whole run, whenever sources begin and end.",
        ),
    ] {
        let text = sandbox.read(&format!("out/figures/figure-{figure}.txt"));
        assert!(text.contains(caption), "{text}");
    }
    let files = files_in(&sandbox.path("out/figures"));
    check(&files);
    let narrow = sandbox.read("out/figures/figure-over-policies@85mm.svg");
    assert!(!narrow.contains('…'), "{narrow}");
}
