//! What a report is made of: files, numbers, and the same bytes for the same runs.

use crate::support::{NAUGHTY, Size, csv_rows, fill, has_known_figures, record, study};
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use slicewise_report::ReportError;
use slicewise_results::{Force, ResultsFolder};
use slicewise_stats::objective::Objective;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const TABLES: [&str; 13] = [
    "runs",
    "series",
    "delay_cdf",
    "iat_cdf",
    "received_iat_cdf",
    "drops",
    "link_losses",
    "loss_episodes",
    "cells",
    "verdicts",
    "verdict_tests",
    "published",
    "populations",
];

fn report(size: Size) -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("results");
    slicewise_report::write(&fill(&path, &study(size))).unwrap();
    (temporary, path)
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|e| {
            (
                e.file_name().into_string().unwrap(),
                fs::read(e.path()).unwrap(),
            )
        })
        .collect()
}

/// A field of a CSV file: its text, and whether it was quoted.
type CsvField = (String, bool);

/// The rows of a CSV file after its header, which a reader of RFC 4180 would not tell from numbers.
fn csv_fields(path: &Path) -> Vec<Vec<CsvField>> {
    let text = fs::read_to_string(path).unwrap();
    let (_, mut rest) = text.split_once('\n').unwrap();
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let field = if let Some(quoted) = rest.strip_prefix('"') {
            let mut end = 0;
            while !quoted[end..].starts_with('"') || quoted[end..].starts_with("\"\"") {
                end += quoted[end..].find('"').map_or(1, |quote| match quote {
                    0 => 2,
                    further => further,
                });
            }
            rest = &quoted[end + 1..];
            (quoted[..end].replace("\"\"", "\""), true)
        } else {
            let end = rest.find([',', '\n']).unwrap();
            let field = &rest[..end];
            rest = &rest[end..];
            (field.to_owned(), false)
        };
        row.push(field);
        if rest.starts_with('\n') {
            rows.push(std::mem::take(&mut row));
        }
        rest = &rest[1..];
    }
    rows
}

/// A value of a Parquet file as the CSV writes it.
fn field(value: &Field) -> CsvField {
    let plain = |text: String| (text, false);
    match value {
        Field::Null => plain(String::new()),
        Field::Str(text) => (text.clone(), true),
        Field::Long(value) => plain(value.to_string()),
        Field::ULong(value) => plain(value.to_string()),
        Field::Double(value) => plain(format!("{value:?}")),
        Field::Bool(value) => plain(value.to_string()),
        other => panic!("a kind of value that no table has: {other:?}"),
    }
}

fn open_parquet(path: &Path) -> SerializedFileReader<fs::File> {
    SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap()
}

fn parquet_rows(path: &Path) -> (Vec<String>, Vec<Vec<CsvField>>) {
    let reader = open_parquet(path);
    let columns = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .to_vec();
    let header = columns.iter().map(|c| c.name().to_owned()).collect();
    let rows = reader.get_row_iter(None).unwrap();
    let fields = rows.map(|r| {
        r.unwrap()
            .get_column_iter()
            .map(|(_, f)| field(f))
            .collect()
    });
    (header, fields.collect())
}

#[test]
fn holds_the_same_values_of_the_same_types_as_csv_and_as_parquet() {
    let (_temporary, path) = report(Size::SMALL);
    let data = path.join("data");
    for table in TABLES {
        let csv = data.join(format!("{table}.csv"));
        let (header, rows) = parquet_rows(&data.join(format!("{table}.parquet")));
        assert_eq!(csv_rows(&csv).0, header, "{table}: columns");
        // `populations.rs` fills the one, and links of this study are not impaired.
        assert!(
            !rows.is_empty() || ["populations", "link_losses"].contains(&table),
            "{table} is empty"
        );
        assert!(csv_fields(&csv) == rows, "{table}: rows");
        let reader = open_parquet(&data.join(format!("{table}.parquet")));
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        for (index, column) in columns.iter().enumerate() {
            let has_type = |text: &str, quoted: bool| match column.physical_type() {
                Type::BYTE_ARRAY => quoted,
                Type::INT64 => text.bytes().all(|byte| byte.is_ascii_digit()) && !quoted,
                Type::DOUBLE => text.contains(['.', 'e']) && !quoted,
                _ => ["true", "false"].contains(&text) && !quoted,
            };
            let other = rows.iter().map(|row| &row[index]).find(|(text, quoted)| {
                let is_null = text.is_empty() && !quoted;
                !is_null && !has_type(text, *quoted)
            });
            assert_eq!(other, None, "{table}.{}", column.name());
        }
    }
    assert_eq!(files(&data).len(), 2 * TABLES.len());
    // The scenarios of this study are called 0, 1 and 2.
    let runs = csv_fields(&data.join("runs.csv"));
    assert_eq!(runs[0][1], ("0".to_owned(), true));
    assert_eq!(runs[0][2], ("0".to_owned(), false));
}

#[test]
fn a_parquet_file_says_of_which_study_it_is() {
    let (_temporary, path) = report(Size::SMALL);
    let study = study(Size::SMALL);
    let expected = [
        ("slicewise.study", study.name),
        ("slicewise.study_digest", study.digest),
        ("slicewise.program_version", study.program_version),
        ("slicewise.seed", study.seed.to_string()),
    ];
    for table in TABLES {
        let reader = open_parquet(&path.join(format!("data/{table}.parquet")));
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let found: Vec<(&str, String)> = metadata
            .unwrap()
            .iter()
            .map(|entry| (entry.key.as_str(), entry.value.clone().unwrap()))
            .collect();
        assert_eq!(found, expected, "{table}");
    }
}

#[test]
fn an_interval_in_which_nothing_arrived_has_no_delay_anywhere() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    let lines = || {
        let name = "figures/time-series-no+policy-scenario-0.svg";
        let svg = fs::read_to_string(temporary.path().join(name)).unwrap();
        svg.matches("stroke-width").count()
    };
    let mut run = record(&study, 0, 0, 0);
    folder.write_run(&run).unwrap();
    slicewise_report::write(&folder).unwrap();
    let whole_lines = lines();
    let series = &mut run.slices[0].series;
    (series.delay_mean_ns[7], series.delay_max_ns[7]) = (None, None);
    (run.slices[1].whole.delay, run.slices[1].whole.variation) = Default::default();
    folder.write_run(&run).unwrap();
    slicewise_report::write(&folder).unwrap();
    assert_eq!(lines(), whole_lines + 1, "one line is in two parts");

    let data = temporary.path().join("data");
    let (header, rows) = parquet_rows(&data.join("series.parquet"));
    assert!(csv_fields(&data.join("series.csv")) == rows);
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    for name in ["delay_mean_ns", "delay_max_ns"] {
        let empty = rows.iter().filter(|row| row[column(name)].0.is_empty());
        assert_eq!(empty.count(), 1);
        assert_eq!(rows[7][column(name)].0, "", "{name}");
    }
    let (header, rows) = parquet_rows(&data.join("runs.parquet"));
    let without: Vec<&str> = header
        .iter()
        .zip(&rows[2])
        .filter(|(_, (text, _))| text.is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(without.len(), 23, "{without:?}");
    assert!(without.iter().all(|name| {
        ["delay_", "pdv_", "scheduler_"]
            .iter()
            .any(|part| name.contains(part))
    }));

    let html = fs::read_to_string(temporary.path().join("report.html")).unwrap();
    let (_, delays) = html.split_once(r#""delay":["#).unwrap();
    assert_eq!(delays.split(',').nth(7), Some("null"));
}

#[test]
fn holds_every_number_of_every_run() {
    let size = Size::SMALL;
    let (_temporary, path) = report(size);
    let runs = size.policies * size.scenarios * size.repetitions as usize;
    let (_, rows) = csv_rows(&path.join("data/runs.csv"));
    assert_eq!(
        rows.len(),
        runs * 5,
        "two slices before and after the transient, and the aggregate"
    );
    let (header, rows) = csv_rows(&path.join("data/series.csv"));
    let bins = usize::try_from(size.seconds).unwrap() * 20;
    assert_eq!(rows.len(), runs * 2 * bins);

    let expected = record(&study(size), 1, 2, 1);
    let series = &expected.slices[1].series;
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    let of_run: Vec<&Vec<String>> = rows
        .iter()
        .filter(|r| r[..4] == ["priority", "2", "1", "best effort"].map(str::to_owned))
        .collect();
    assert_eq!(of_run.len(), bins);
    for (bin, row) in of_run.iter().enumerate() {
        assert_eq!(row[column("start_ns")], (bin * 50_000_000).to_string());
        assert_eq!(
            row[column("received_bytes")],
            series.received_bytes[bin].to_string()
        );
        assert_eq!(
            row[column("lost_frames")],
            series.lost_frames[bin].to_string()
        );
        assert_eq!(
            row[column("delay_max_ns")],
            series.delay_max_ns[bin].map_or(String::new(), |ns| ns.to_string())
        );
    }
}

#[test]
fn means_of_cells_are_the_means_of_their_runs() {
    let (_temporary, path) = report(Size::SMALL);
    let (header, runs) = csv_rows(&path.join("data/runs.csv"));
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    let mut sums: BTreeMap<(String, String, String), Vec<f64>> = BTreeMap::new();
    for row in runs.iter().filter(|row| row[column("span")] == "steady") {
        for quantity in ["throughput_bits_per_second", "loss_ratio", "delay_p99_ns"] {
            let cell = (
                format!("{}/{}", row[column("policy")], row[column("scenario")]),
                row[column("slice")].clone(),
                quantity.to_owned(),
            );
            sums.entry(cell)
                .or_default()
                .push(row[column(quantity)].parse().unwrap());
        }
    }
    let (header, cells) = csv_rows(&path.join("data/cells.csv"));
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    let mut compared = 0;
    for row in cells.iter().filter(|row| row[column("span")] == "steady") {
        let cell = (
            format!("{}/{}", row[column("policy")], row[column("scenario")]),
            row[column("slice")].clone(),
            row[column("quantity")].clone(),
        );
        let Some(values) = sums.get(&cell) else {
            continue;
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let ours: f64 = row[column("mean")].parse().unwrap();
        assert!(
            (ours - mean).abs() <= 1e-9 * mean.abs(),
            "{cell:?}: {ours} for {mean}"
        );
        compared += 1;
    }
    assert_eq!(compared, sums.len());
}

#[test]
fn gives_the_same_bytes_for_the_same_runs() {
    let (_one, first) = report(Size::SMALL);
    let (_other, second) = report(Size::SMALL);
    for folder in ["data", "figures"] {
        let (a, b) = (files(&first.join(folder)), files(&second.join(folder)));
        assert!(a.keys().eq(b.keys()));
        for (name, bytes) in &a {
            assert!(b[name] == *bytes, "{folder}/{name} differs");
        }
    }
    let html = |folder: &Path| fs::read(folder.join("report.html")).unwrap();
    assert!(html(&first) == html(&second));
}

#[test]
fn draws_each_figure_for_each_slice_and_each_cell() {
    let (_temporary, path) = report(Size::SMALL);
    assert!(has_known_figures(&path.join("figures"), "time-series"));
    let figures = files(&path.join("figures"));
    for name in ["throughput", "loss", "delay-mean", "delay-p99"] {
        for slice in ["critical", "best+effort"] {
            assert!(
                figures.contains_key(&format!("{name}-{slice}.svg")),
                "{name} {slice}"
            );
        }
    }
    for policy in ["no+policy", "priority", "shaping"] {
        for scenario in 0..3 {
            let name = format!("time-series-{policy}-scenario-{scenario}.svg");
            assert!(figures.contains_key(&name), "{name}");
            assert!(figures.contains_key(&format!("delay-cdf-critical-scenario-{scenario}.svg")));
        }
    }
    for (name, bytes) in figures.iter().filter(|(name, _)| name.ends_with(".svg")) {
        for end in [
            ".pdf",
            ".pgf",
            "@85mm.svg",
            "@85mm.pdf",
            "@85mm.pgf",
            ".csv",
            ".txt",
        ] {
            let other = name.replace("@85mm", "").replace(".svg", end);
            assert!(figures.contains_key(&other), "{other}");
        }
        let svg = String::from_utf8(bytes.clone()).unwrap();
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{name}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert!(
            svg.contains("no policy") || name.starts_with("time-series"),
            "{name}: legend"
        );
    }
}

#[test]
fn needs_nothing_from_anywhere() {
    let (_temporary, path) = report(Size::SMALL);
    let html = fs::read_to_string(path.join("report.html")).unwrap();
    let library = include_str!("../../assets/echarts/echarts.min.js");
    let html = html.replace(library, "");
    for fetches in [
        " src=",
        "@import",
        "url(",
        "<link",
        "<img",
        "<iframe",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!html.contains(fetches), "the page holds {fetches:?}");
    }
    assert!(
        html.contains("default-src 'none'"),
        "and the browser is message so"
    );
}

#[test]
fn takes_no_text_of_a_study_for_markup() {
    let (_temporary, path) = report(Size::SMALL);
    let html = fs::read_to_string(path.join("report.html")).unwrap();
    assert_eq!(html.matches("<script").count(), 3, "results, library, page");
    assert_eq!(html.matches("</script").count(), 3);
    assert!(!html.contains(NAUGHTY));
    let (_, after) = html.split_once("id=\"results\">").unwrap();
    let (json, _) = after.split_once("</script>").unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(json).is_ok());
    assert!(html.contains("nobody, nowhere &lt;/script&gt;&lt;script&gt;document.title="));
}

/// The page as a browser that runs no scripts has it.
fn without_scripts(html: &str) -> String {
    let mut parts = html.split("<script");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, part| {
        page + part.split_once("</script>").unwrap().1
    })
}

#[test]
fn shows_title_verdicts_and_figures_without_a_script() {
    let temporary = tempfile::tempdir().unwrap();
    let mut described = study(Size::SMALL);
    described.title = "Which `policy-map` holds?".to_owned();
    described.assumptions = vec!["Class `be` has no `shape`.".to_owned()];
    let folder = fill(temporary.path(), &described);
    let page = slicewise_report::write(&folder).unwrap().html;
    let html = without_scripts(&fs::read_to_string(page).unwrap());
    for text in [
        "<h1 id=\"title\">Which <code>policy-map</code> holds?</h1>",
        "<li>Class <code>be</code> has no <code>shape</code>.</li>",
        "“priority” isolates critical and passes unused capacity on",
        "Performance isolation",
        "published: ",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert_eq!(html.matches("class=\"verdict-row\"").count(), 3);
    // Throughput, loss, delay and its distribution, of two slices.
    assert_eq!(html.matches("<div class=\"chart\"><svg").count(), 8);
    assert!(!html.contains('`'), "no backtick is left raw");
}

#[test]
fn stays_small_for_a_study_of_seven_policies_and_seven_scenarios() {
    // Only one repetition of each cell is in the page, so ten are no larger.
    let (_temporary, path) = report(Size {
        repetitions: 2,
        ..Size::FULL
    });
    let bytes = fs::metadata(path.join("report.html")).unwrap().len();
    assert!(bytes < 6_000_000, "{bytes} bytes");
}

#[test]
fn reports_what_is_there_where_runs_are_missing_or_damaged() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = fill(temporary.path(), &study);
    let path = folder.records_path("priority", "1");
    let text = fs::read_to_string(&path).unwrap();
    let first_two = text.split_inclusive('\n').take(2);
    fs::write(&path, first_two.collect::<String>()).unwrap();
    fs::remove_dir_all(temporary.path().join("runs/shaping")).unwrap();
    let path = folder.records_path("no policy", "0");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.split_inclusive('\n').enumerate();
    let changed = changed.map(|(index, line)| match index {
        1 => line.replace("\"lost_frames\":0", "\"lost_frames\":1"),
        _ => line.to_owned(),
    });
    fs::write(&path, changed.collect::<String>()).unwrap();
    drop(folder);

    let report = slicewise_report::write(&ResultsFolder::open(temporary.path()).unwrap()).unwrap();
    assert_eq!(
        (
            report.findings.main().expected_runs,
            report.findings.main().finished_runs
        ),
        (27, 16)
    );
    assert_eq!(report.findings.main().verdicts.policies.len(), 3);
    let [damaged] = report.findings.main().damaged_runs.as_slice() else {
        panic!("{:?}", report.findings.main().damaged_runs)
    };
    assert!(
        damaged.starts_with("`runs/no+policy/0.jsonl`, line 2, cannot be trusted (its checksum")
    );
    assert!(damaged.ends_with("this run must be repeated"));
    let html = fs::read_to_string(&report.html).unwrap();
    assert!(html.contains("16 of 27 runs are finished."));
    assert!(
        !html.contains(&temporary.path().display().to_string()),
        "no path of this machine"
    );
}

#[test]
fn refuses_to_report_on_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let folder =
        ResultsFolder::create(temporary.path(), &study(Size::SMALL), Force::Refuse).unwrap();
    let error = slicewise_report::write(&folder).unwrap_err();
    assert!(matches!(error, ReportError::NoRuns { .. }), "{error}");
    assert!(error.is_users_mistake());
    assert!(!folder.report_path().exists());
    assert_eq!(files(&folder.data_path()).len(), 0, "no empty tables");
}

#[test]
fn the_row_of_isolation_is_that_of_the_objective_where_one_decided() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("results");
    let mut study = study(Size::SMALL);
    study.slices[0].objective = Some(Objective {
        throughput_bits_per_second: Some(15_000_000),
        ..Objective::default()
    });
    let report = slicewise_report::write(&fill(&path, &study)).unwrap();
    let (header, rows) = csv_rows(&path.join("data/verdicts.csv"));
    let column = |row: &[String], name: &str| {
        let place = header.iter().position(|h| h == name).unwrap();
        row[place].clone()
    };
    for (policy, row) in report
        .findings
        .main()
        .verdicts
        .policies
        .iter()
        .zip(rows.chunks(3))
    {
        let objectives = policy.isolation.objectives.as_ref().unwrap();
        let test = objectives.decided_by.as_ref().unwrap();
        let row = &row[0];
        assert_eq!(column(row, "attribute"), "isolation");
        assert_eq!(column(row, "test"), "share_of_runs");
        assert_eq!(column(row, "indicator"), "throughput");
        assert_eq!(column(row, "scale"), "bits_per_second");
        assert_eq!(column(row, "scenario"), test.scenario);
        assert_eq!(column(row, "margin").parse(), Ok(15e6));
        assert_eq!(column(row, "statistic").parse().ok(), test.mean);
        assert_eq!(column(row, "reference"), "");
    }
}
