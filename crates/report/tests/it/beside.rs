//! Results folders side by side: what is judged, printed, written, and refused.

use crate::support::{
    Size, column, fill, fill_live, has_known_figures, live_study, study, three_back_ends,
};
use slicewise_report::prediction::findings;
use slicewise_report::terminal::{Colours, beside_table_text, verdict_table_text};
use slicewise_report::{Report, write, write_beside};
use slicewise_results::{Force, ResultsFolder, Unsupported};
use std::fs;
use std::path::{Path, PathBuf};

fn paths(folders: &[ResultsFolder]) -> Vec<PathBuf> {
    folders.iter().map(|f| f.path().to_owned()).collect()
}

fn report(root: &Path) -> Report {
    let [simulator, live @ ..] = three_back_ends(root, Size::SMALL);
    write_beside(&simulator, &paths(&live)).unwrap()
}

/// What a message says, without the folder's own path.
fn message(error: impl std::fmt::Display, root: &Path) -> String {
    error
        .to_string()
        .replace(&root.display().to_string(), "DIR")
}

#[test]
fn verdicts_of_three_back_ends_stand_beside_each_other() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path());
    let text = beside_table_text(&report.findings.sides, 120, Colours::None).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120));
    insta::assert_snapshot!(text, @"
    Isolation / reallocation; each back end is judged by its own runs
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     Policy     Published  simulator             gateway               Linux tc                          Scalability
                           3 × 4 s, 3 scenarios  2 × 4 s, 2 scenarios  2 × 4 s, 2 scenarios
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     no policy  no / yes   inconclusive / holds  holds ≠ / holds       holds ≠ / holds                   no practical limit
     priority   yes / yes  holds / holds         holds / holds         holds / holds                     2 slices
     shaping    yes / no   holds / broken        holds / broken        not supported: this kernel has    256 slices
                                                                       no HTB queueing discipline
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
    let narrow = beside_table_text(&report.findings.sides, 80, Colours::None).unwrap();
    assert!(narrow.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_line_says_how_many_figures_were_predicted() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path());
    let lines: Vec<String> = report.findings.sides.iter().flat_map(findings).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    31 of 36 figures of gateway were predicted: throughput 9 of 12, loss ratio 11 of 12, median delay within 100 µs 11 of 12; 5 not decided
    36 of 36 figures of gateway are reproduced by simulating the packets that were sent: throughput 12 of 12, loss ratio 12 of 12, median delay within 100 µs 12 of 12
    22 of 24 figures of Linux tc were predicted: throughput 6 of 8, loss ratio 8 of 8, median delay within 100 µs 8 of 8; 2 not decided
    24 of 24 figures of Linux tc are reproduced by simulating the packets that were sent: throughput 8 of 8, loss ratio 8 of 8, median delay within 100 µs 8 of 8
    ");
}

#[test]
fn one_folder_alone_has_nothing_beside_it() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = fill(temporary.path(), &study(Size::SMALL));
    let report = write(&folder).unwrap();
    assert_eq!(
        beside_table_text(&report.findings.sides, 120, Colours::None),
        None
    );
    assert_eq!(report.findings.sides.iter().flat_map(findings).count(), 0);
    let page = fs::read_to_string(report.html).unwrap();
    assert!(page.contains(r#""beside":null,"prediction":null"#));
    assert!(!page.contains("<section id=\"beside\"") && !page.contains("<section id=\"testbed\""));
}

#[test]
fn tables_hold_what_the_page_shows() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path());
    assert!(has_known_figures(&report.figures, "beside-loss"));
    let data = report.data;
    let back_ends = column(&data.join("back_ends.csv"), "back_end");
    assert_eq!(back_ends, ["simulator", "gateway", "Linux tc"]);
    let verdicts = column(&data.join("beside_verdicts.csv"), "verdict");
    assert_eq!(verdicts.len(), 3 * 3 * 3);
    assert_eq!(verdicts.iter().filter(|v| *v == "not supported").count(), 2);
    let devices = column(&data.join("testbed_runs.csv"), "device");
    // Three policies and two of them, in two scenarios with two repetitions.
    assert_eq!(devices.len(), (3 + 2) * 4);
    assert_eq!(
        column(&data.join("testbed_senders.csv"), "source").len(),
        20
    );
    let outcomes = column(&data.join("prediction.csv"), "outcome");
    // As studied and as sent, in two scenarios, of two slices, three quantities.
    assert_eq!(outcomes.len(), (3 + 2) * 2 * 2 * 2 * 3);
    assert!(outcomes.iter().any(|o| o == "met"));
    let traffic = column(&data.join("prediction.csv"), "traffic");
    let as_sent = traffic.iter().filter(|t| *t == "as_sent").count();
    assert_eq!(as_sent, outcomes.len() / 2);
    for table in ["back_ends", "beside_verdicts", "beside_cells", "prediction"] {
        assert!(data.join(format!("{table}.parquet")).is_file());
    }
}

#[test]
fn predictions_are_held_against_what_was_measured() {
    let temporary = tempfile::tempdir().unwrap();
    let data = report(temporary.path()).data;
    let table = data.join("prediction.csv");
    let numbers = |name: &str| -> Vec<f64> {
        let column = column(&table, name).into_iter();
        column
            .map(|value| value.parse().unwrap_or(f64::NAN))
            .collect()
    };
    let (low, high) = (numbers("interval_low"), numbers("interval_high"));
    let quantities = column(&table, "quantity");
    let outcomes = column(&table, "outcome");
    for (place, outcome) in outcomes.iter().enumerate() {
        if quantities[place] == "delay_p50_ns" {
            let within = -100_000.0 <= low[place] && high[place] <= 100_000.0;
            assert_eq!(outcome == "met", within, "{} {}", low[place], high[place]);
        }
    }
}

#[test]
fn what_an_earlier_report_had_beside_it_does_not_stay() {
    let temporary = tempfile::tempdir().unwrap();
    let [simulator, gateway, _] = three_back_ends(temporary.path(), Size::SMALL);
    let report = write_beside(&simulator, &paths(&[gateway])).unwrap();
    assert!(report.data.join("prediction.csv").is_file());
    write(&simulator).unwrap();
    for table in ["back_ends", "beside_cells", "prediction", "testbed_runs"] {
        for extension in ["csv", "parquet"] {
            assert!(!report.data.join(format!("{table}.{extension}")).exists());
        }
    }
}

#[test]
fn a_policy_that_is_not_supported_says_why() {
    let temporary = tempfile::tempdir().unwrap();
    let [_, _, kernel] = three_back_ends(temporary.path(), Size::SMALL);
    let report = write(&kernel).unwrap();
    assert_eq!(
        (
            report.findings.main().finished_runs,
            report.findings.main().expected_runs
        ),
        (8, 8)
    );
    insta::assert_snapshot!(verdict_table_text(&report.findings.main().verdicts, 120, Colours::None).unwrap(), @"
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     Policy     Performance isolation        Resource reallocation        Scalability                  Published
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     no policy  holds                        holds                        no practical limit           no / yes / no limit
                critical: mean queueing      702.6 kbit/s of              nothing is configured for a  ≠ differs: isolation
                delay 14.63 µs → 15.41 µs    702.6 kbit/s, 100 % of the   slice (made up for tests)
                (+779.3 ns) in 2, within     unused capacity, at least
                +74 µs in 2 of 2 runs        95 % in 2 of 2 runs
     priority   holds                        holds                        2 slices                     yes / yes / 2
                critical: throughput         575.6 kbit/s of              2 priority levels (256       = agrees
                15.75 Mbit/s → 15.75 Mbit/s  575.6 kbit/s, 100 % of the   classes)
                (−0.034 %) in 2, within      unused capacity, at least
                −1 % in 2 of 2 runs          95 % in 2 of 2 runs
     shaping    not supported                not supported                256 slices                   yes / no / 256
                this kernel has no HTB       this kernel has no HTB       256 classes in a policy      not comparable
                queueing discipline          queueing discipline
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
    let page = fs::read_to_string(report.html).unwrap();
    assert!(page.contains("shaping is not supported here."));
    assert!(page.contains("--on tc --seed 1"));
}

#[test]
fn a_back_end_that_supports_no_policy_is_reported_all_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let whole = study(Size::SMALL);
    let simulator = fill(&temporary.path().join("synthetic"), &whole);
    let live = live_study(&whole, "tc", "Linux 6.1.0");
    let all = live.policies.iter().map(|p| (p.name.as_str(), "no qdisc"));
    let all: Vec<_> = all.collect();
    let kernel = fill_live(&temporary.path().join("synthetic-tc"), &live, &whole, &all);
    assert_eq!(write(&kernel).unwrap().findings.main().expected_runs, 0);
    let report = write_beside(&simulator, &paths(&[kernel])).unwrap();
    let text = beside_table_text(&report.findings.sides, 120, Colours::None).unwrap();
    assert_eq!(text.matches("not supported: no").count(), 3);
}

#[test]
fn unsupported_policies_are_written_read_and_taken_back() {
    let temporary = tempfile::tempdir().unwrap();
    let folder =
        ResultsFolder::create(temporary.path(), &study(Size::SMALL), Force::Refuse).unwrap();
    assert_eq!(folder.read_unsupported().unwrap(), []);
    let list = [Unsupported {
        policy: "shaping".to_owned(),
        reason: "no HTB".to_owned(),
    }];
    folder.write_unsupported(&list).unwrap();
    assert_eq!(folder.read_unsupported().unwrap(), list);
    folder.write_unsupported(&[]).unwrap();
    folder.write_unsupported(&[]).unwrap();
    assert_eq!(folder.read_unsupported().unwrap(), []);
    assert!(!temporary.path().join("unsupported.json").exists());
}

#[test]
fn damaged_parts_of_a_live_folder_are_left_out_with_a_word() {
    let temporary = tempfile::tempdir().unwrap();
    let [_, _, kernel] = three_back_ends(temporary.path(), Size::SMALL);
    fs::write(kernel.path().join("unsupported.json"), "[{").unwrap();
    fs::write(kernel.path().join("prediction/study.json"), "{").unwrap();
    let report = write(&kernel).unwrap();
    insta::assert_snapshot!(report.findings.main().damaged_runs.join("\n"), @"
    `unsupported.json` is damaged (EOF while parsing an object at line 1 column 2): run the study again to write it again
    `prediction/study.json` is damaged (EOF while parsing an object at line 1 column 1): run the study again into another folder
    ");
    // Nothing says any more that its runs are not missing.
    assert_eq!(
        (
            report.findings.main().finished_runs,
            report.findings.main().expected_runs
        ),
        (8, 12)
    );
}

#[test]
fn a_damaged_record_beside_is_left_out_and_named() {
    let temporary = tempfile::tempdir().unwrap();
    let [simulator, gateway, _] = three_back_ends(temporary.path(), Size::SMALL);
    let path = gateway.records_path("priority", "0");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"sha256\":\"", "\"sha256\":\"0", 1)).unwrap();
    let report = write_beside(&simulator, &paths(&[gateway])).unwrap();
    let gateway = &report.findings.sides[1];
    assert_eq!((gateway.finished_runs, gateway.expected_runs), (11, 12));
    let [damaged] = &*gateway.damaged_runs else {
        panic!("{:?}", gateway.damaged_runs)
    };
    assert!(damaged.starts_with("`runs/priority/0.jsonl`, line 1, cannot be trusted"));
}

#[test]
fn refuses_what_cannot_be_set_beside() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let [simulator, gateway, _] = three_back_ends(root, Size::SMALL);
    let twice = [gateway.path().to_owned(), root.join("./synthetic-gateway")];
    let itself = [root.join("synthetic-gateway/../synthetic")];
    let mut other = study(Size::SMALL);
    other.name = "another".to_owned();
    let other = fill(&root.join("another"), &other);
    let empty = study(Size::SMALL);
    let empty = ResultsFolder::create(root.join("empty"), &empty, Force::Refuse).unwrap();
    let refused = |beside: &[PathBuf]| {
        let error = write_beside(&simulator, beside).unwrap_err();
        assert!(error.is_users_mistake());
        message(error, root)
    };
    insta::assert_snapshot!(refused(&twice), @"`DIR/./synthetic-gateway` is named twice: name each results folder once");
    insta::assert_snapshot!(refused(&itself), @"`DIR/synthetic-gateway/../synthetic` is named twice: name each results folder once");
    insta::assert_snapshot!(refused(&paths(&[other])), @"`DIR/another` holds results of study `another`, not of `synthetic`: combine folders of one study only, or run `synthetic` on another back end first");
    insta::assert_snapshot!(refused(&paths(&[empty])), @"`DIR/empty` holds no finished run: run the study first");
    insta::assert_snapshot!(refused(&[root.join("nowhere")]), @"`DIR/nowhere` does not exist: run a study first, or name the folder one was run into");
    insta::assert_snapshot!(refused(&[root.join("synthetic-gateway/runs")]), @"`DIR/synthetic-gateway/runs` holds no results of a study: name the folder that a study was run into, here `DIR/synthetic-gateway`");
}

#[test]
fn two_folders_of_one_back_end_are_told_apart() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let whole = study(Size::SMALL);
    let live = live_study(&whole, "gateway", "slicewise gateway");
    let folders = ["monday", "tuesday"].map(|day| fill_live(&root.join(day), &live, &whole, &[]));
    let elsewhere = fill_live(&root.join("old/monday"), &live, &whole, &[]);
    let [monday, tuesday] = folders;
    let report = write_beside(&monday, &paths(&[tuesday, elsewhere])).unwrap();
    let names: Vec<&str> = report
        .findings
        .sides
        .iter()
        .map(|side| side.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "gateway (monday)",
            "gateway (tuesday)",
            "gateway (monday) 2"
        ]
    );
}
