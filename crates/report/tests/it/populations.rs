//! Reports of slices by the thousand: page, tables, figure and terminal.

use crate::support::{self, Size, has_known_figures, record, study};
use slicewise_report::Report;
use slicewise_report::terminal::population_table_text;
use slicewise_results::host::{HostFacts, RunTime};
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::description::DelayBound;
use slicewise_stats::record::{PopulationRecord, RunRecord};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Slices that burst and slices that always wait, a hundred times as many a scenario.
fn populations(scenario: usize, repetition: u32) -> Vec<PopulationRecord> {
    let population = |slice: &str, slices, backlogged| PopulationRecord {
        slice: slice.to_owned(),
        slices,
        backlogged,
        least_bytes_per_weight: 30_000,
        most_bytes_per_weight: 31_000 + 500 * u64::from(repetition),
        turn_bytes: 1_500,
        state_bytes: 136,
    };
    let waiting = 900 * [1, 100, 10_000][scenario];
    vec![
        population("critical", 100, false),
        population("best effort", waiting, true),
    ]
}

fn with_populations(
    scenario: usize,
    repetition: u32,
    delay_ns: u64,
    record: RunRecord,
) -> RunRecord {
    let mut record = record;
    record.slices[0].whole.delay.max_ns = delay_ns + u64::from(repetition);
    record.slices[1].whole.delay.max_ns = 1_000_000;
    record.populations = populations(scenario, repetition);
    record
}

/// Two policies, three scenarios: the first keeps to its bound, but not in the last scenario.
fn report(folder: &Path) -> Report {
    let mut study = study(Size {
        policies: 2,
        ..Size::SMALL
    });
    study.policies[0].delay_bounds.insert(
        "critical".to_owned(),
        DelayBound {
            scheduler_ns: 100_000,
            outside_ns: 10_000,
        },
    );
    let results = ResultsFolder::create(folder, &study, Force::Refuse).unwrap();
    for policy in 0..2 {
        for scenario in 0..study.scenarios.len() {
            for repetition in 0..study.repetitions {
                let delay_ns =
                    [[50_000, 60_000, 120_000], [80_000, 800_000, 80_000_000]][policy][scenario];
                let run = record(&study, policy, scenario, repetition);
                let run = with_populations(scenario, repetition, delay_ns, run);
                results.write_run(&run).unwrap();
            }
        }
    }
    let time = RunTime {
        runs: 1,
        frames: 1_000,
        elapsed_ns: 250_000,
    };
    let scenarios = BTreeMap::from([(study.scenarios[0].name.clone(), time)]);
    let host = HostFacts {
        simulated: BTreeMap::from([(study.policies[0].name.clone(), scenarios)]),
        ..HostFacts::default()
    };
    results.write_host(&host).unwrap();
    slicewise_report::write(&results).unwrap()
}

#[test]
fn a_terminal_shows_delay_beside_its_bound() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path());
    let table = population_table_text(&report.findings.populations, 120).unwrap();
    for text in ["≤ 110 µs", "> 110 µs", "136 kB", "250 ns", "9 000 100"] {
        assert!(table.contains(text), "{text} is missing:\n{table}");
    }
    assert!(
        table.lines().all(|line| line.chars().count() <= 120),
        "{table}"
    );
}

#[test]
fn a_study_without_populations_says_nothing_of_them() {
    assert_eq!(population_table_text(&[], 120), None);
    let temporary = tempfile::tempdir().unwrap();
    let report =
        slicewise_report::write(&support::fill(temporary.path(), &study(Size::SMALL))).unwrap();
    assert!(report.findings.populations.is_empty());
    let page = fs::read_to_string(&report.html).unwrap();
    assert!(page.contains(r#""populations":null"#));
    let figures = fs::read_dir(&report.figures).unwrap();
    let mut names = figures.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.starts_with("scale-")));
}

#[test]
fn the_worst_repetition_counts() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path());
    let last = report.findings.main().finished_runs / 6 - 1;
    let critical = &report.findings.populations[0];
    assert_eq!(critical.delay_max_ns, Some(50_000 + last));
    assert_eq!(critical.delay_bound_ns, Some(110_000));
    assert_eq!(critical.bytes_per_weight, None, "it sends less than it may");
    let waiting = &report.findings.populations[1];
    assert_eq!(
        waiting.bytes_per_weight,
        Some((30_000, 31_000 + 500 * last))
    );
    assert_eq!(
        waiting.delay_bound_ns, None,
        "its frames wait for one another"
    );
    assert_eq!(waiting.all_slices, 1_000);
    assert_eq!(waiting.state_bytes_in_all(), 136_000);
}

#[test]
fn page_data_and_figures_hold_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let report = report(temporary.path());
    let csv = fs::read_to_string(report.data.join("populations.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 3 * 2);
    assert!(
        !csv.contains("250"),
        "what a frame costs is of the host, not of the results"
    );
    let page = fs::read_to_string(&report.html).unwrap();
    assert!(page.contains(r#""ns_a_frame":"250 ns""#));
    assert!(page.contains(r#""within_bound":false"#) && page.contains(r#""within_bound":true"#));
    assert!(has_known_figures(&report.figures, "scale"));
    let figure = fs::read_to_string(report.figures.join("scale-critical.svg")).unwrap();
    assert!(figure.contains("bound proved by"));
    assert!(figure.contains("1\u{202f}000\u{202f}000") || figure.contains("10\u{202f}000"));
    let waiting = fs::read_to_string(report.figures.join("scale-best+effort.svg")).unwrap();
    assert!(!waiting.contains("bound proved by"));
}

#[test]
fn times_of_an_earlier_invocation_are_kept_where_they_can_be_compared() {
    let facts = |jobs, scenario: &str, elapsed_ns| HostFacts {
        jobs,
        simulated: BTreeMap::from([(
            "drr".to_owned(),
            BTreeMap::from([(
                scenario.to_owned(),
                RunTime {
                    runs: 1,
                    frames: 10,
                    elapsed_ns,
                },
            )]),
        )]),
        ..HostFacts::default()
    };
    let cost = |facts: &HostFacts, scenario| {
        let time = facts.run_time("drr", scenario);
        time.and_then(RunTime::ns_a_frame)
    };
    let both = facts(2, "few", 100).with_times_of(Some(facts(2, "many", 300)));
    assert_eq!(
        (cost(&both, "few"), cost(&both, "many")),
        (Some(10.0), Some(30.0))
    );
    let again = facts(2, "few", 100).with_times_of(Some(facts(2, "few", 300)));
    assert_eq!(cost(&again, "few"), Some(20.0));
    let alone = facts(1, "few", 100).with_times_of(Some(facts(2, "many", 300)));
    assert_eq!(cost(&alone, "many"), None, "runs beside others take longer");
    assert_eq!(cost(&alone, "few"), Some(10.0));
}
