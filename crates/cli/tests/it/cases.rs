//! Several studies in one file, from the file to the reports.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text, words};
use std::collections::BTreeMap;
use std::fs;

const CASES: &str = "
published:
  - {claim: critical is not lost, source: table 1, metric: loss_ratio, slice: critical, scenarios: calm, about: 0 %, within: 1 %, tolerance_from: a reason}
cases:
  narrow: {title: A narrow link}
  wide: {title: A wide link, link: {propagation: 1 ms}}
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("cases.yaml", format!("{STUDY}{CASES}"));
    sandbox
}

#[test]
fn a_run_that_several_cases_have_is_carried_out_once() {
    let sandbox = Sandbox::new();
    let slower = "{policies: {first: {classes: [{name: critical, slice: critical, priority: {rate: 4 Mbit/s}}]}}}";
    let cases = format!(
        "{STUDY}cases: {{one: {{}}, other: {slower}, judged: {{margins: {{loss: 1 %}}}}}}\n"
    );
    sandbox.write("cases.yaml", cases);
    let (_, stderr) = sandbox.succeeded(&["run", "cases.yaml", "--out", "out"]);
    contains(
        &stderr,
        "18 of 36 runs are the same in several cases, and were carried out once",
    );
    let record = |case: &str, policy: &str| {
        sandbox.read(&format!("out/small-{case}/runs/{policy}/crowded.jsonl"))
    };
    assert_eq!(record("one", "shared"), record("other", "shared"));
    assert_eq!(record("one", "first"), record("judged", "first"));
    assert_ne!(record("one", "first"), record("other", "first"));
    let (_, stderr) = sandbox.succeeded(&["run", "cases.yaml", "--out", "out"]);
    contains(&stderr, "36 of 36 runs were finished before");
}

#[test]
fn cases_that_are_gone_or_have_changed_are_not_taken_for_those_of_the_file() {
    let sandbox = Sandbox::new();
    let run = |cases: &str, port: &str, more: &[&str]| {
        let study = STUDY.replace("port_rate: 10 Mbit/s", port);
        sandbox.write("cases.yaml", format!("{study}cases: {{{cases}}}\n"));
        let run = ["run", "cases.yaml", "--out", "out", "--repetitions", "1"];
        sandbox.succeeded(&[&run[..], more].concat()).1
    };
    let named = || {
        let series = sandbox.read("out/series.json");
        ["small-a", "small-b", "small-c"].map(|case| series.contains(&format!("\"{case}\"")))
    };
    run(
        "a: {}, b: {margins: {loss: 1 %}}",
        "port_rate: 10 Mbit/s",
        &[],
    );
    assert_eq!(named(), [true, true, false]);
    // One that is not run stays, if it is as the file says.
    run(
        "a: {}, b: {title: b}, c: {title: c}",
        "port_rate: 10 Mbit/s",
        &["--case", "c"],
    );
    assert_eq!(named(), [true, true, true]);
    let notes = run(
        "b: {title: b}, c: {title: c}",
        "port_rate: 11 Mbit/s",
        &["--case", "c", "--replace"],
    );
    contains(&notes, "left unread: `small-a`, `small-b`");
    assert_eq!(named(), [false, false, true]);
    assert!(sandbox.path("out/small-a/study.json").exists());
}

#[test]
fn every_case_has_results_and_a_report_of_its_own_and_a_page_is_over_all() {
    let sandbox = sandbox();
    let output = sandbox.slicewise(&["run", "cases.yaml", "--out", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for said in [
        "A narrow link",
        "A wide link",
        "critical is not lost",
        "2 of 2 predicted figures agree",
        "Report: out/report.html",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    let first_look = "every case has run once; a first report: out/report.html";
    assert!(text(&output.stderr).contains(first_look));
    let page = fs::read_to_string(sandbox.path("out/report.html")).unwrap();
    assert!(page.contains("2 of 2 predicted figures agree."));
    let names = fs::read_dir(sandbox.path("out")).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let cases: Vec<&String> = names
        .iter()
        .filter(|name| name.starts_with("small-"))
        .collect();
    assert_eq!(cases.len(), 2, "{names:?}");
    for case in cases {
        assert!(
            page.contains(&format!("href=\"{case}/report.html\"")),
            "{case}"
        );
        assert!(sandbox.path(&format!("out/{case}/report.html")).exists());
    }
    // The reports can be made again from the folder alone, with the same page.
    let again = sandbox.slicewise(&["report", "out"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(
        fs::read_to_string(sandbox.path("out/report.html")).unwrap(),
        page
    );
}

/// Throughput of the slice with a guarantee, bit/s, by policy and phase.
fn throughput_of_the_slice(cells: &str) -> BTreeMap<String, f64> {
    let rows = cells.lines().map(|row| row.replace('"', ""));
    let values = rows.filter_map(|row| match row.split(',').collect::<Vec<_>>()[..] {
        [
            policy,
            _,
            "sliced",
            "steady",
            "throughput_bits_per_second",
            _,
            mean,
            ..,
        ] => Some((policy.to_owned(), mean.parse().unwrap())),
        _ => None,
    });
    values.collect()
}

#[test]
fn beside_udp_a_slice_of_tcp_gets_more_than_its_guarantee_but_hardly_that_from_meters_alone() {
    let sandbox = Sandbox::new();
    let study = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/p4-tins-100m.yaml"
    );
    sandbox.succeeded(&["run", study, "--quick", "--out", "out"]);
    let of_case = |case: &str| {
        let cells = format!("out/p4-tins-100m-{case}/data/cells.csv");
        throughput_of_the_slice(&sandbox.read(&cells))
    };
    // What S(70, 80) and S(20, 100) promise, in L2: full frames of 1,514 B occupy 1,538 B of the link.
    let [first, second] = [70e6, 20e6].map(|rate| rate * 1_514.0 / 1_538.0 * 0.99);
    for policy in ["p4-tins", "guaranteed"] {
        for case in ["tcp", "tcp-and-udp"] {
            let rates = of_case(case);
            assert!(rates[&format!("{policy}/first")] > 1.1 * first, "{rates:?}");
            // And its part of what nobody is promised.
            assert!(
                rates[&format!("{policy}/second")] > 2.5 * second,
                "{rates:?}"
            );
        }
    }
    let of_udp = |file: &str| sandbox.read(&format!("out/p4-tins-100m-tcp-and-udp/{file}"));
    assert!(of_udp("data/queues.csv").contains("\"p4-tins/first\",\"udp\",0,1,\"sliced-tcp\","));
    assert!(of_udp("data/elephants.csv").contains("\"p4-tins\",\"udp\",0,1,\"sliced\",1,1,"));
    let page = of_udp("report.html");
    assert!(page.contains("id=\"queues\"") && page.contains("Moved back"));
    let rates = of_case("tcp-and-udp");
    assert!(rates["baseline/first"] < 1.05 * first, "{rates:?}");
    assert!(rates["baseline/second"] < 1.05 * second, "{rates:?}");
}

#[test]
fn a_case_can_be_run_alone_and_the_rest_goes_on_where_it_stopped() {
    let sandbox = sandbox();
    let alone = sandbox.slicewise(&["run", "cases.yaml", "--case", "wide"]);
    assert!(alone.status.success(), "{}", text(&alone.stderr));
    let all = sandbox.slicewise(&["run", "cases.yaml"]);
    assert!(all.status.success(), "{}", text(&all.stderr));
    assert!(
        text(&all.stderr).contains("runs were finished before and are kept"),
        "{}",
        text(&all.stderr)
    );
}

#[test]
fn a_case_run_alone_has_the_folder_that_it_has_in_the_series() {
    let sandbox = sandbox();
    let out = ["run", "cases.yaml", "--out", "out"];
    let wide = ["run", "cases.yaml", "--out", "out", "--case", "wide"];
    let narrow = ["run", "cases.yaml", "--out", "out", "--case", "narrow"];
    let (printed, _) = sandbox.succeeded(&wide);
    contains(&printed, "Report: out/small-wide/report.html");
    contains(&printed, "Page over the cases: out/report.html");
    assert!(!sandbox.read("out/report.html").contains("A narrow link"));
    // A second case joins it on the page; the whole series keeps both.
    sandbox.succeeded(&narrow);
    let page = sandbox.read("out/report.html");
    assert!(page.contains("A narrow link") && page.contains("A wide link"));
    for again in [&out[..], &wide[..]] {
        let (_, noted) = sandbox.succeeded(again);
        contains(&noted, "runs were finished before and are kept");
    }
    // Nothing is left where the command line is wrong.
    let wrong = words("run cases.yaml --out new --case wide --policy x");
    sandbox.refused(2, &wrong);
    assert!(!sandbox.path("new").exists());
}

#[test]
fn a_folder_of_cases_that_cannot_be_used_is_a_mistake_that_says_what_to_do() {
    let sandbox = sandbox();
    sandbox.succeeded(&["run", "cases.yaml", "--out", "out", "--case", "wide"]);
    let compared = sandbox.refused(2, &["compare", "out", "out"]);
    let said = "`out` holds the results of several cases: name the folder of one: `out/small-wide`";
    contains(&compared, said);
    let series = sandbox.read("out/series.json");
    sandbox.write("empty/series.json", &series);
    let empty = sandbox.refused(2, &["report", "empty"]);
    let said = "`empty` holds cases of which none has a finished run: run them first";
    contains(&empty, said);
    sandbox.write("out/series.json", &series[..series.len() / 2]);
    for arguments in [
        &["report", "out"][..],
        &["run", "cases.yaml", "--out", "out"][..],
    ] {
        let damaged = sandbox.refused(2, arguments);
        contains(&damaged, "`out/series.json` is damaged");
    }
}

#[test]
fn a_case_without_a_title_is_said_once_and_one_case_is_no_plural() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "one.yaml",
        format!("{STUDY}cases: {{only: {{}}, other: {{}}}}\n"),
    );
    let (printed, _) = sandbox.succeeded(&["run", "one.yaml", "--out", "out"]);
    assert!(
        printed.lines().any(|line| line == "small-only"),
        "{printed}"
    );
    sandbox.write("one.yaml", format!("{STUDY}cases: {{only: {{}}}}\n"));
    let (printed, _) = sandbox.succeeded(&["check", "one.yaml"]);
    assert!(printed.starts_with("one.yaml: 1 case\n"), "{printed}");
}

#[test]
fn what_is_for_one_study_asks_for_a_case() {
    let sandbox = sandbox();
    let refused = |arguments: &[&str], said: &str| {
        let output = sandbox.slicewise(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = text(&output.stderr);
        assert!(message.contains(said), "{arguments:?}: {message}");
    };
    refused(
        &["run", "cases.yaml", "--seeds", "2"],
        "`--seeds` is for one study: choose a case (`--case NAME`)",
    );
    refused(
        &["run", "cases.yaml", "--captures", "frames"],
        "`--captures` is for one study",
    );
    refused(
        &["run", "cases.yaml", "--case", "wid"],
        "there is no case `wid`: did you mean `wide`?",
    );
    refused(
        &["export", "cases.yaml", "--policy", "first", "--to", "tc"],
        "cases.yaml holds cases: choose one of narrow, wide (`--case NAME`)",
    );
    sandbox.write("one.yaml", STUDY);
    refused(
        &["run", "one.yaml", "--case", "wide"],
        "one.yaml holds one study and no cases: leave out `--case`",
    );
    let exported = sandbox.slicewise(&words(
        "export cases.yaml --case wide --policy first --to ios",
    ));
    assert!(exported.status.success(), "{}", text(&exported.stderr));
}
