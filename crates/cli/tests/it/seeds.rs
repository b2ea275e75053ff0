//! `slicewise run --seeds N`, end to end: the table of verdicts under several seeds.

use crate::support::small_study;
use crate::support::{self, Sandbox, contains, words};
use insta::assert_snapshot;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

/// The small study, with published verdicts of which one is wrong, and a margin by which the isolation of
/// `first` depends on the seed.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let published = |yes_no: &str| {
        format!("published: {{isolation: {yes_no}, reallocation: yes, scalability: '2'}}")
    };
    let study = small_study::STUDY
        .replace(
            "{none: true}",
            &format!("{{none: true, {}}}", published("yes")),
        )
        .replace(
            "  first:\n",
            &format!("  first:\n    {}\n", published("yes")),
        )
        .replace(
            "margins: {",
            "margins: {delay: 17 %, delay_of: one_way, delay_resolution: 0 s, ",
        );
    sandbox.write("small.yaml", study);
    sandbox
}

/// The rows of a CSV file without its header.
fn rows(sandbox: &Sandbox, path: &str) -> Vec<Vec<String>> {
    let text = sandbox.read(path);
    let row = |line: &str| {
        line.split(',')
            .map(|cell| cell.trim_matches('"').to_owned())
            .collect()
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn verdicts_are_counted_over_seeds_and_are_those_of_each_seed_alone() {
    let sandbox = sandbox();
    let (table, progress) =
        sandbox.succeeded(&words("run small.yaml --seeds 3 --out table --jobs 2"));
    assert_snapshot!(table, @"
    ──────────────────────────────────────────────────────────────────────
     Policy  Attribute     Holds  Partial  Broken   Incon-  Published,
                                                   clusive  ours the same
    ══════════════════════════════════════════════════════════════════════
     shared  isolation         –                3        –  yes, 0 of 3
             reallocation      3        –       –        –  yes, 3 of 3
     first   isolation         2                –        1  yes, 2 of 3
             reallocation      3        –       –        –  yes, 3 of 3
    ──────────────────────────────────────────────────────────────────────
    No verdict holds under one seed and is broken under another
    Published verdicts: 8 of 12 agree; under 0 of 3 seeds all 4 do

    Table: table/seed_verdicts.csv
    ");
    contains(&progress, "36/36 runs");

    let mut of_seed: BTreeMap<String, Vec<[String; 3]>> = BTreeMap::new();
    for row in rows(&sandbox, "table/seed_verdicts.csv") {
        let [policy, attribute, seed, verdict, ..] =
            row.try_into().map(|row: [String; 6]| row).unwrap();
        of_seed
            .entry(seed)
            .or_default()
            .push([policy, attribute, verdict]);
    }
    assert_eq!(of_seed.keys().collect::<Vec<_>>(), ["7", "8", "9"]);
    assert_ne!(of_seed["7"], of_seed["8"], "the seed decides something");
    for (seed, several) in of_seed {
        sandbox.succeeded(&["run", "small.yaml", "--seed", &seed, "--out", &seed]);
        let mut alone: Vec<_> = rows(&sandbox, &format!("{seed}/data/verdicts.csv"))
            .into_iter()
            .map(|row| [row[0].clone(), row[1].clone(), row[2].clone()])
            .filter(|row| row[1] != "scalability")
            .collect();
        alone.sort();
        let mut several = several;
        several.sort();
        assert_eq!(several, alone, "seed {seed}");
    }
}

#[test]
fn nothing_is_written_unless_it_is_asked_for_and_only_policies_that_run_are_in_the_table() {
    let sandbox = sandbox();
    let run = words("run small.yaml --seeds 2 --repetitions 2 --policy first");
    let (table, _) = sandbox.succeeded(&run);
    contains(&table, "first");
    assert!(!table.contains("shared"), "{table}");
    let left: Vec<_> = fs::read_dir(sandbox.path("."))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["small.yaml"]);
}

#[test]
fn a_table_replaces_neither_results_nor_another_table() {
    let sandbox = sandbox();
    let few = words("run small.yaml --repetitions 1 --policy first");
    let with = |more: &[&'static str]| [&few[..], more].concat();
    sandbox.succeeded(&with(&["--out", "results"]));
    sandbox.succeeded(&with(&["--out", "table", "--seeds", "2"]));
    let stderr = [
        sandbox.refused(2, &with(&["--out", "results", "--seeds", "2"])),
        sandbox.refused(2, &with(&["--out", "table", "--seeds", "2"])),
    ];
    assert_snapshot!(stderr.concat(), @"
    error: `results` holds the results of a study: choose another folder for the table (`--out DIR`)
    error: `table/seed_verdicts.csv` exists: choose another folder (`--out DIR`), or replace it (`--replace`)
    ");
    sandbox.succeeded(&with(&["--out", "table", "--seeds", "2", "--replace"]));
}

#[test]
fn options_that_make_no_sense_with_seeds_are_refused_with_the_reason() {
    let sandbox = sandbox();
    let refused = |more: &[&str]| {
        sandbox.refused(2, &[&["run", "small.yaml", "--seeds", "2"], more].concat())
    };
    let stderr = [
        refused(&["--on", "tc"]),
        refused(&["--scenario", "calm"]),
        refused(&["--captures", "wire"]),
        refused(&["--replace"]),
        refused(&["--policy", "third"]),
        refused(&["--seed", "18446744073709551615"]),
    ];
    assert_snapshot!(stderr.concat(), @"
    error: `--seeds` is for the simulator: on real packets verdicts depend on the machine, too; leave out `--on` and `--tolerate-noise`
    error: `--seeds` judges each policy by all scenarios: leave out `--scenario`
    error: `--seeds` keeps no runs: to capture those of one seed, use `--seed N --captures DIR`
    error: `--seeds` writes nothing without `--out DIR`: leave out `--replace`
    error: the study has no policy `third`: known are `shared`, `first`
    error: fewer than 2 seeds start at 18446744073709551615: choose a smaller one (`--seed N`)
    ");
}

#[test]
fn the_seeds_judged_before_an_interruption_are_printed() {
    let sandbox = sandbox();
    let mut running = sandbox
        .command(&words(
            "run small.yaml --seeds 400 --repetitions 1 --jobs 1 --out table",
        ))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Only a tenth of its runs is printed: forty seeds are judged.
    let mut progress = [0; 4];
    std::io::Read::read_exact(running.stderr.as_mut().unwrap(), &mut progress).unwrap();
    let id = running.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let (table, error) = (support::text(&output.stdout), support::text(&output.stderr));
    contains(&table, "first");
    contains(&error, "of 400 seeds were judged, and nothing was written");
    assert!(!sandbox.path("table/seed_verdicts.csv").exists());
}
