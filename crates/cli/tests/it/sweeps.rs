//! Sweeps, from the file to curves over their axes.

use crate::support::small_study::STUDY;
#[cfg(feature = "linux")]
use crate::support::text;
use crate::support::{Sandbox, contains, words};
use std::collections::BTreeSet;
#[cfg(feature = "linux")]
use std::process::Command;

/// A study of one cell that is run once at each point.
fn sandbox(sweep: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let study = STUDY
        .replace("repetitions: 3", "repetitions: 1")
        .replace("  crowded: {sources: {rest: {rate: 90 %}}}\n", "")
        .replace("  shared: {none: true}\n", "");
    sandbox.write("sweep.yaml", format!("{study}{sweep}"));
    sandbox
}

const GRID: &str = "\
sweep:
  axes:
    load: {path: scenarios.calm.sources.rest.rate, from: 20 %, to: 140 %, count: 3}
    propagation: {path: link.propagation, values: [1 us, 1 ms]}
";

/// Rows of a figure: shape, line, and place along its axis.
fn rows(sandbox: &Sandbox, figure: &str) -> Vec<(String, String, String)> {
    let csv = sandbox.read(&format!("out/figures/figure-{figure}.csv"));
    let rows = csv.lines().skip(1).map(|row| {
        let mut cells = row.splitn(4, ',').skip(1).map(str::to_owned);
        let [shape, line, rest] = [cells.next(), cells.next(), cells.next()].map(Option::unwrap);
        let place = rest.split(',').nth(1).unwrap().to_owned();
        (shape, line.replace('"', ""), place)
    });
    rows.collect()
}

#[test]
fn a_sweep_says_how_much_it_is_and_draws_curves_over_its_axis() {
    let sandbox = sandbox(GRID);
    let (checked, _) = sandbox.succeeded(&words("check sweep.yaml"));
    contains(&checked, "sweep.yaml: sweep of 6 points: 6 runs\n");
    contains(
        &checked,
        "\nload-20pct_propagation-1us: load 20 %, propagation 1 us\n",
    );
    contains(&checked, "\nnote (of 6 points): 1 repetition cannot show");
    let (printed, noted) = sandbox.succeeded(&words("run sweep.yaml --out out"));
    contains(&noted, "sweep of 6 points: 6 runs\n");
    contains(&printed, "Report: out/report.html");
    let rows = rows(&sandbox, "loss_ratio-rest");
    let lines = ["propagation = 1 us", "propagation = 1 ms"];
    let expected = lines.iter().flat_map(|line| {
        let places = ["20", "80", "140"];
        places.map(|place| {
            (
                "signed_line".to_owned(),
                (*line).to_owned(),
                place.to_owned(),
            )
        })
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
    let svg = sandbox.read("out/figures/figure-delay_p99-rest.svg");
    for text in ["load (%)", "propagation = 1 us", "propagation = 1 ms"] {
        contains(&svg, text);
    }
    let page = sandbox.read("out/report.html");
    contains(&page, "Loss ratio of rest over load");
    // The report of a point, where it is asked for, has no curves of a single sign.
    let point = "out/small-load-20pct_propagation-1us";
    sandbox.succeeded(&["report", point]);
    let page = sandbox.read(&format!("{point}/report.html"));
    assert!(!page.contains("over load"));
    contains(
        &sandbox.read(&format!("{point}/study.json")),
        "\"number\": 20.0",
    );
}

#[test]
fn points_are_chosen_like_cases_and_join_those_that_were_run() {
    let sandbox = sandbox(GRID);
    let run = "run sweep.yaml --out out --case load-20pct_propagation-1us";
    let (_, noted) = sandbox.succeeded(&words(run));
    contains(&noted, "sweep of 1 point: 1 run\n");
    let more = format!("{run} --case load-140pct_propagation-1us --quick");
    let (_, noted) = sandbox.succeeded(&words(&more.replace(" out ", " quick ")));
    contains(&noted, "sweep of 2 points: 2 runs\n");
    sandbox.succeeded(&words(&more.replace(" --quick", "")));
    let places = |figure: &str| {
        rows(&sandbox, figure)
            .into_iter()
            .map(|(_, _, place)| place)
            .collect::<Vec<_>>()
    };
    assert_eq!(places("throughput-rest"), ["20", "140"]);
    let refused = sandbox.refused(
        2,
        &words("run sweep.yaml --case load-20pct_propagation-2us"),
    );
    contains(&refused, "did you mean `load-20pct_propagation-1us`?");
}

#[test]
fn points_that_are_drawn_from_ranges_are_scattered_and_words_are_rows() {
    let sample = GRID.replace("values: [1 us, 1 ms]", "from: 1 us, to: 999 us");
    let sandbox = sandbox(&format!("{sample}  sample: {{points: 5}}\n"));
    sandbox.succeeded(&words("run sweep.yaml --out out"));
    let rows_of = rows(&sandbox, "throughput-rest");
    let different: BTreeSet<&String> = rows_of.iter().map(|(_, _, place)| place).collect();
    assert_eq!(different.len(), 5, "{rows_of:?}");
    // Of one policy, and no line joins what differs in the other axis, too.
    let mut rows = rows_of.iter();
    assert!(
        rows.all(|(shape, line, _)| shape == "signs" && line == "first"),
        "{rows_of:?}"
    );
    let words_of = "\
sweep:
  axes:
    manager: {path: policies.first.title, values: [one, other]}
figures:
  by-name: {x: manager, y: {metric: throughput, slice: rest}}
";
    let study = sandbox.read("sweep.yaml");
    let (study, _) = study.split_once("sweep:\n").unwrap();
    sandbox.write("words.yaml", format!("{study}{words_of}"));
    sandbox.succeeded(&words("run words.yaml --out rows"));
    let svg = sandbox.read("rows/figures/figure-by-name.svg");
    contains(&svg, ">manager one<");
    contains(&svg, ">manager other<");
}

#[test]
fn a_sweep_that_is_too_large_is_refused_with_what_to_do() {
    let huge =
        "sweep: {axes: {seed: {path: seed, from: 1, to: 2000000000000, count: 1000000000000}}}\n";
    let sandbox = sandbox(huge);
    let refused = sandbox.refused(2, &words("run sweep.yaml --out out"));
    contains(
        &refused,
        "the grid has 1000000000000 points, and a sweep at most 2000",
    );
    contains(&refused, "`sample: {points: 200}`");
    assert!(!sandbox.path("out").exists());
}

#[cfg(feature = "linux")]
#[test]
fn a_sweep_may_have_more_points_than_files_may_be_open() {
    let axis = "{path: seed, from: 1, to: 80, count: 80}";
    let sandbox = sandbox(&format!("sweep: {{axes: {{seed: {axis}}}}}\n"));
    let slicewise = env!("CARGO_BIN_EXE_slicewise");
    let run = format!("ulimit -S -n 64; exec {slicewise} run sweep.yaml --out out");
    let output = Command::new("sh")
        .args(["-c", &run])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_sweep_over_two_axes_of_numbers_has_a_heat_map_that_shows_what_was_not_run() {
    let sandbox = sandbox(&GRID.replace("1 us, 1 ms", "1 us, 10 us, 100 us"));
    let cells = |sandbox: &Sandbox| {
        let csv = sandbox.read("out/figures/map-loss_ratio-rest.csv");
        let rows = csv.lines().skip(1).map(|row| {
            let cells: Vec<&str> = row.split(',').collect();
            [cells[1], cells[2], cells[4], cells[5], cells[10]].join(" ")
        });
        rows.collect::<Vec<_>>().join("\n")
    };
    let mut run = "run sweep.yaml --out out".to_owned();
    for point in ["20pct", "80pct", "140pct"].iter().flat_map(|load| {
        ["1us", "10us", "100us"].map(|propagation| format!("load-{load}_propagation-{propagation}"))
    }) {
        if point != "load-140pct_propagation-10us" {
            run.push_str(&format!(" --case {point}"));
        }
    }
    sandbox.succeeded(&words(&run));
    insta::assert_snapshot!(cells(&sandbox), @r"
    cell first 20 1 0 %
    cell first 80 1 27.7 %
    cell first 140 1 58.7 %
    cell first 20 10 0 %
    cell first 80 10 27.7 %
    no_value first 140 10 
    cell first 20 100 0 %
    cell first 80 100 27.7 %
    cell first 140 100 58.7 %
    ");
    let page = sandbox.read("out/report.html");
    contains(&page, "Loss ratio of rest over load and propagation");
    for end in [".svg", ".pdf", ".pgf", "@85mm.svg", ".txt"] {
        let file = format!("out/figures/map-loss_ratio-rest{end}");
        assert!(sandbox.path(&file).exists(), "{file}");
    }
}

#[test]
fn a_heat_map_leaves_out_points_that_were_added_between_others() {
    let sandbox = sandbox(&GRID.replace("1 us, 1 ms", "1 us, 10 us, 100 us"));
    sandbox.succeeded(&words("run sweep.yaml --out out"));
    let study = sandbox.read("sweep.yaml");
    sandbox.write("sweep.yaml", study.replace("count: 3", "count: 5"));
    sandbox.succeeded(&words(
        "run sweep.yaml --out out --case load-50pct_propagation-1us",
    ));
    let csv = sandbox.read("out/figures/map-loss_ratio-rest.csv");
    assert_eq!(csv.matches("\n0,cell").count(), 9, "{csv}");
    let caption = sandbox.read("out/figures/map-loss_ratio-rest.txt");
    contains(&caption, "1 point between others is not drawn.");
}
