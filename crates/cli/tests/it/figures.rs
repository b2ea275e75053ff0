//! Figures of results folders as a paper prints them: signs at their values, limits, sizes, and texts that do not overlap.

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

/// Signs lie where labels along the axis say that their values are.
fn signs_are_at_their_values(path: &Path, svg: &str) -> usize {
    let rows: Vec<_> = rows(path)
        .into_iter()
        .filter(|row| row["kind"].starts_with("sign"))
        .collect();
    let Some(first) = rows.first() else { return 0 };
    let is_of_rows = first["y_scale"] == "categories";
    let (column, scale) = if is_of_rows {
        ("x", &first["x_scale"])
    } else {
        ("y", &first["y_scale"])
    };
    let along = |value: f64| if scale == "log" { value.log10() } else { value };
    let anchor = if is_of_rows { "middle" } else { "end" };
    let ticks = labels(svg)
        .into_iter()
        .filter(|label| label.size == 7.0 && label.anchor == anchor);
    let ticks = ticks.filter_map(|label| {
        let value: f64 = label.text.replace('\u{202f}', "").parse().ok()?;
        // Labels of the vertical axis stand a little below their values.
        Some((
            along(value),
            if is_of_rows {
                label.at.0
            } else {
                label.at.1 - 2.45
            },
        ))
    });
    let ticks: Vec<(f64, f64)> = ticks.collect();
    let (a, b) = (ticks[0], ticks[ticks.len() - 1]);
    let markers = svg
        .lines()
        .filter(|line| line.contains("translate("))
        .map(|line| {
            let place = attribute(line, "transform")
                .unwrap()
                .trim_start_matches("translate(");
            let (x, y) = place.split_once(')').unwrap().0.split_once(' ').unwrap();
            let at: f64 = if is_of_rows { x } else { y }.parse().unwrap();
            (attribute(line, "fill").unwrap().to_owned(), at)
        });
    let markers: Vec<(String, f64)> = markers.collect();
    for row in &rows {
        let value = along(row[column].parse().unwrap());
        let expected = a.1 + (value - a.0) / (b.0 - a.0) * (b.1 - a.1);
        let found = markers
            .iter()
            .any(|(fill, at)| *fill == row["colour"] && (at - expected).abs() < 0.05);
        assert!(
            found,
            "{}: {row:?} at {expected}, signs {markers:?}",
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
