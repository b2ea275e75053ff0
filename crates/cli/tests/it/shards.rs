//! A study carried out in shards and collected, end to end.

use crate::support::seal::sealed;
use crate::support::small_study::STUDY;
use crate::support::{Sandbox, analysed, contains, pair, records_below, words};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const CASES: &str = "cases:
  one: {}
  slower: {policies: {first: {classes: [{name: critical, slice: critical, priority: {rate: 4 Mbit/s}}]}}}
  judged: {margins: {loss: 1 %}}
";
const SWEEP: &str =
    "sweep: {axes: {load: {path: sources.critical.rate, values: [20 %, 30 %, 40 %]}}}\n";

fn sandbox(more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("small.yaml", format!("{STUDY}{more}"));
    sandbox
}

/// Carries out shards, and returns the names of their folders.
fn run_shards(sandbox: &Sandbox, count: usize) -> Vec<String> {
    let names = (1..=count).map(|number| {
        let shard = format!("{number}/{count}");
        let run = ["run", "small.yaml", "--shard", &shard];
        let (printed, noted) = sandbox.succeeded(&run);
        let name = format!("results/small-shard-{number}-of-{count}");
        contains(&printed, &format!("Shard {shard} is in {name}"));
        contains(&noted, &format!("shard {shard}: "));
        assert!(!sandbox.path(&name).join("report.html").exists());
        name
    });
    names.collect()
}

pub fn collect_into<'a>(results: &'a str, shards: &'a [String]) -> Vec<&'a str> {
    let shards = shards.iter().map(String::as_str);
    ["collect", results].into_iter().chain(shards).collect()
}

/// Contents of files below a folder, by their paths in it, without facts about the host.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap();
            let name = name.to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.ends_with("host.json") && !name.ends_with(".lock") {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Panics where the folders do not hold the same files with the same bytes.
pub fn assert_same(sandbox: &Sandbox, one: &str, other: &str) {
    let (one, other) = (contents(&sandbox.path(one)), contents(&sandbox.path(other)));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{name} differs");
    }
}

/// The results of a run of the whole study, with a report that knows no host.
pub fn run_whole(sandbox: &Sandbox) {
    sandbox.succeeded(&words("run small.yaml --out whole"));
    for host in ["host.json", "small-one/host.json"] {
        let _ = fs::remove_file(sandbox.path("whole").join(host));
    }
    sandbox.succeeded(&words("report whole"));
}

pub fn records_in(folder: &Path) -> usize {
    records_below(&folder.join("runs")).len()
}

#[test]
fn shards_put_together_have_the_bytes_of_one_run_whatever_their_number() {
    let sandbox = sandbox("");
    run_whole(&sandbox);
    for count in [1, 2, 4, 8] {
        let shards = run_shards(&sandbox, count);
        let least = 12 / count;
        for shard in &shards {
            let runs = records_in(&sandbox.path(shard));
            assert!((least..=12usize.div_ceil(count)).contains(&runs), "{shard}");
        }
        let results = format!("of-{count}");
        let (printed, noted) = sandbox.succeeded(&collect_into(&results, &shards));
        contains(&printed, &format!("Report: {results}/report.html"));
        contains(&noted, &format!("{}: ", shards[0]));
        assert_same(&sandbox, "whole", &results);
    }
    // Once more, nothing changes.
    let shards = ["results/small-shard-1-of-2".to_owned()];
    let (_, noted) = sandbox.succeeded(&collect_into("of-4", &shards));
    contains(&noted, "small-shard-1-of-2: 0 runs, and 6 that of-4 has");
    assert_same(&sandbox, "whole", "of-4");
}

#[test]
fn runs_of_a_lost_shard_are_missing_and_run_carries_out_just_these() {
    let sandbox = sandbox("");
    run_whole(&sandbox);
    let mut shards = run_shards(&sandbox, 4);
    let lost = shards.remove(1);
    let error = sandbox.refused(1, &collect_into("out", &shards));
    contains(
        &error,
        "error: 3 of 12 runs are missing in out, such as policy ",
    );
    contains(&error, "`slicewise run small.yaml --out out`");
    assert!(!sandbox.path("out/report.html").exists());
    let partial = [&collect_into("part", &shards)[..], &["--partial"]].concat();
    let (printed, noted) = sandbox.succeeded(&partial);
    contains(&noted, "note: 3 of 12 runs are missing in part, such as ");
    contains(&printed, "Report: part/report.html");
    assert_eq!(records_in(&sandbox.path("out")), 9);
    let collected = records_below(&sandbox.path("out/runs"));
    for (_, lost) in records_below(&sandbox.path(&lost).join("runs")) {
        assert!(collected.iter().all(|(_, record)| *record != lost));
    }
    let (_, noted) = sandbox.succeeded(&words("run small.yaml --out out"));
    contains(&noted, "9 of 12 runs were finished before and are kept");
    fs::remove_file(sandbox.path("out/host.json")).unwrap();
    sandbox.succeeded(&words("report out"));
    assert_same(&sandbox, "whole", "out");
    fs::remove_dir_all(sandbox.path(&lost)).unwrap();
    let error = sandbox.refused(2, &collect_into("new", &[lost]));
    contains(&error, "`results/small-shard-2-of-4` does not exist");
}

#[test]
fn a_killed_shard_goes_on_where_it_stopped() {
    let sandbox = sandbox("");
    let long = STUDY.replace("duration: 4 s", "duration: 200 s");
    sandbox.write("small.yaml", long);
    run_whole(&sandbox);
    let mut child = sandbox
        .command(&words("run small.yaml --shard 1/2 --jobs 1"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = sandbox.path("results/small-shard-1-of-2");
    let begin = Instant::now();
    while records_in(&folder) == 0 {
        assert!(begin.elapsed() < Duration::from_secs(120), "no run ends");
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = records_in(&folder);
    assert!(finished < 6, "killed too late");
    let (_, noted) = sandbox.succeeded(&words("run small.yaml --shard 1/2"));
    contains(
        &noted,
        &format!("{finished} of 6 runs were finished before"),
    );
    sandbox.succeeded(&words("run small.yaml --shard 2/2 --out other"));
    let shards = ["results/small-shard-1-of-2", "other"].map(str::to_owned);
    sandbox.succeeded(&collect_into("out", &shards));
    assert_same(&sandbox, "whole", "out");
}

#[test]
fn shards_of_something_else_are_named_and_nothing_is_collected() {
    let sandbox = sandbox("");
    let [one, two] = run_shards(&sandbox, 2).try_into().unwrap();
    sandbox.write("other.yaml", STUDY.replace("4 s", "5 s"));
    sandbox.write("renamed.yaml", STUDY.replace("name: small", "name: large"));
    for (arguments, said) in [
        (
            "small.yaml --seed 8",
            "the seed is `8` in `other`, but `7` in `",
        ),
        (
            "small.yaml --repetitions 2",
            "the number of repetitions is `2` in `other`",
        ),
        (
            "other.yaml",
            "the digest of inputs of policy shared, scenario calm is `",
        ),
        (
            "renamed.yaml",
            "the study is `large` in `other`, but `small`",
        ),
    ] {
        let run = format!("run {arguments} --shard 2/2 --out other --replace");
        sandbox.succeeded(&words(&run));
        let shards = [one.clone(), "other".to_owned()];
        let error = sandbox.refused(2, &collect_into("out", &shards));
        contains(&error, said);
        contains(&error, &format!("in `{one}`: nothing was collected"));
        assert!(!sandbox.path("out").exists());
        // Nor where the folder has some of the runs already.
        sandbox.refused(1, &collect_into("there", std::slice::from_ref(&one)));
        let before = contents(&sandbox.path("there"));
        let error = sandbox.refused(2, &collect_into("there", &shards[1..]));
        contains(&error, "in `there`: nothing was collected");
        assert_eq!(contents(&sandbox.path("there")), before);
    }
    // A title changes no run.
    let titled = STUDY.replace("name: small", "name: small\ntitle: A title");
    sandbox.write("small.yaml", titled);
    sandbox.succeeded(&words("run small.yaml --shard 2/2 --out other --replace"));
    let shards = [one, "other".to_owned()];
    sandbox.succeeded(&collect_into("out", &shards));
    assert!(!sandbox.read("out/study.json").contains("A title"));
    sandbox.succeeded(&collect_into("out", &[two]));
}

#[test]
fn a_damaged_record_is_told_and_another_shard_may_have_it() {
    let sandbox = sandbox("");
    run_whole(&sandbox);
    let shards = run_shards(&sandbox, 2);
    let runs = contents(&sandbox.path(&shards[0]));
    let damaged = runs.keys().find(|name| name.ends_with(".jsonl")).unwrap();
    let damaged = format!("{}/{damaged}", shards[0]);
    let changed = sandbox
        .read(&damaged)
        .replacen("\"lost_frames\":0", "\"lost_frames\":1", 1);
    sandbox.write(&damaged, changed);
    let error = sandbox.refused(1, &collect_into("out", &shards));
    contains(
        &error,
        &format!("left out: `{damaged}`, line 1, cannot be trusted"),
    );
    contains(&error, "1 of 12 runs are missing in out");
    let with_whole = [&shards[..], &["whole".to_owned()]].concat();
    let (_, noted) = sandbox.succeeded(&collect_into("out", &with_whole));
    contains(&noted, "whole: 1 run, and 11 that out has");
    assert_same(&sandbox, "whole", "out");
}

#[test]
fn two_different_records_of_a_run_are_an_error_that_names_both() {
    let sandbox = sandbox("");
    let shards = run_shards(&sandbox, 1);
    sandbox.succeeded(&collect_into("out", &shards));
    let record = "runs/first/calm.jsonl";
    let ours = sandbox.read(&format!("out/{record}"));
    let lines = ours.lines().map(|line| {
        let other = line.replacen("\"lost_frames\":0", "\"lost_frames\":1", 1);
        assert_ne!(line, other);
        format!("{}\n", sealed(&other))
    });
    let theirs: String = lines.collect();
    sandbox.write(&format!("{}/{record}", shards[0]), theirs);
    let error = sandbox.refused(1, &collect_into("out", &shards));
    let both = format!(
        "`out/{record}` and `{}/{record}` have different records of repetition 0",
        shards[0]
    );
    contains(&error, &both);
    assert_eq!(sandbox.read(&format!("out/{record}")), ours);
}

#[test]
fn cases_are_collected_one_by_one_and_share_runs_in_a_shard() {
    let sandbox = sandbox(CASES);
    run_whole(&sandbox);
    let mut same = 0;
    for shard in ["1/2", "2/2"] {
        let (_, noted) = sandbox.succeeded(&["run", "small.yaml", "--shard", shard]);
        let line = noted.lines().find(|line| line.contains("are the same in"));
        let count = line.unwrap().split(' ').next().unwrap();
        same += count.parse::<u32>().unwrap();
    }
    // As many as without shards: none is carried out in both.
    assert_eq!(same, 18);
    let shards = [1, 2].map(|number| format!("results/small-shard-{number}-of-2"));
    assert!(!sandbox.path(&shards[0]).join("report.html").exists());
    let error = sandbox.refused(1, &collect_into("out", &shards[1..]));
    contains(&error, "are missing in out, such as case one, policy ");
    sandbox.succeeded(&collect_into("out", &shards));
    let runs_of = |folder: &str| {
        let mut files = contents(&sandbox.path(folder));
        files.retain(|name, _| !name.contains("report.html"));
        files
    };
    assert_eq!(runs_of("out"), runs_of("whole"));
    assert_eq!(
        sandbox.read("out/report.html"),
        sandbox.read("whole/report.html")
    );

    sandbox.write(
        "large.yaml",
        sandbox.read("small.yaml").replace("small", "large"),
    );
    sandbox.succeeded(&words("run large.yaml --shard 1/2 --out other"));
    let mixed = [shards[0].clone(), "other".to_owned()];
    let error = sandbox.refused(2, &collect_into("new", &mixed));
    contains(
        &error,
        "`other` holds cases of `large`, but `results/small-shard-1-of-2` of `small`",
    );
    let mixed = [shards[0].clone(), "whole/small-one".to_owned()];
    let error = sandbox.refused(2, &collect_into("new", &mixed));
    contains(&error, "`whole/small-one` holds no cases");
    assert!(!sandbox.path("new").exists());
}

#[test]
fn a_sweep_in_more_shards_than_a_point_has_runs_has_the_bytes_of_one_run() {
    let sandbox = sandbox(SWEEP);
    run_whole(&sandbox);
    let shards = run_shards(&sandbox, 16);
    let (printed, _) = sandbox.succeeded(&collect_into("out", &shards));
    contains(&printed, "Report: out/report.html");
    assert_same(&sandbox, "whole", "out");
    // One point of it.
    let point = "run small.yaml --case load-20pct --shard 2/4 --out point";
    let (_, noted) = sandbox.succeeded(&words(point));
    contains(&noted, "shard 2/4: 3 of 12 runs");
    assert_eq!(records_in(&sandbox.path("point/small-load-20pct")), 3);
}

#[test]
fn a_search_goes_on_from_collected_shards() {
    let load = "path: scenarios.crowded.sources.rest.rate, values: [40 %, 120 %]";
    let sandbox = sandbox(&format!(
        "sweep: {{axes: {{load: {{{load}}}}}, refine: 50 %}}\n"
    ));
    let shards = [1, 2].map(|number| {
        let shard = format!("{number}/2");
        let (_, noted) = sandbox.succeeded(&["run", "small.yaml", "--shard", &shard]);
        contains(&noted, "a shard has no points of `refine`");
        format!("results/small-shard-{number}-of-2")
    });
    sandbox.succeeded(&collect_into("out", &shards));
    assert!(!sandbox.path("out/small-load-90pct").exists());
    let (_, noted) = sandbox.succeeded(&words("run small.yaml --out out"));
    contains(&noted, "24 of 24 runs were finished before");
    let added = sandbox.path("out/small-load-90pct");
    assert_eq!(records_in(&added), 6);
    // The points stay where a shard is collected again.
    sandbox.succeeded(&collect_into("out", &shards));
    assert_eq!(records_in(&added), 6);
    sandbox.succeeded(&words("report out"));
}

#[test]
fn options_that_make_no_sense_for_a_shard_are_refused_before_a_folder_is_made() {
    let sandbox = sandbox("");
    for (options, said) in [
        ("--shard 0/4", "shards are numbered from 1"),
        ("--shard 5/4", "there is no shard 5 of 4"),
        ("--shard 2", "expected I/N"),
        ("--shard 1/0", "there is no shard 1 of 0"),
        ("--shard 1/13", "there are 12 different runs"),
        (
            "--shard 1/2 --policy first --scenario calm --repetitions 1",
            "there is 1 run to be carried out",
        ),
        ("--shard 1/2 --on gateway", "leave out `--on`"),
        ("--shard 1/2 --seeds 2", "`--seeds` keeps no runs"),
        ("--shard 1/2 --captures wire", "collects no captures"),
        ("--shard 1/2 --json", "a shard is not judged"),
        ("--shard 1/2 --fail-on broken", "a shard is not judged"),
    ] {
        let run = format!("run small.yaml {options}");
        contains(&sandbox.refused(2, &words(&run)), said);
        assert!(!sandbox.path("results").exists(), "{options}");
    }
    sandbox.refused(2, &["collect", "out"]);
}

#[test]
fn runs_that_depend_on_their_machine_are_not_collected() {
    let sandbox = pair();
    analysed(&sandbox, &[]);
    let study = sandbox.read("out/study.json");
    let of_gateway = study.replace(r#""backend": "captures""#, r#""backend": "gateway""#);
    assert_ne!(of_gateway, study);
    sandbox.write("out/study.json", sealed(&of_gateway));
    let error = sandbox.refused(2, &words("collect new out"));
    contains(&error, "`out` holds runs of real packets");
    assert!(!sandbox.path("new").exists());
}

#[test]
fn verdicts_of_collected_shards_may_fail_the_command() {
    let sandbox = sandbox("");
    let shards = run_shards(&sandbox, 2);
    let collect = collect_into("out", &shards);
    let failing = [&collect[..], &["--fail-on", "broken", "--json"]].concat();
    let output = sandbox.slicewise(&failing);
    assert_eq!(output.status.code(), Some(3));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["finished_runs"], 12);
}
