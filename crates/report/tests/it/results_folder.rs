//! What a results folder accepts, refuses and trusts.

use crate::support::{self, Size, fill_live, live_study, record, sealed, study};
use slicewise_results::host::HostFacts;
use slicewise_results::{Force, ResultsError, ResultsFolder};
use slicewise_stats::description::{PolicyDescription, StudyDescription};
use slicewise_stats::prediction::OfferedTraffic;
use slicewise_stats::record::{RunKey, RunRecord};
use std::fs;
use std::path::Path;

fn records(folder: &ResultsFolder) -> Vec<Result<RunRecord, ResultsError>> {
    folder.finished_runs().collect()
}

/// An error's message without the folder, which is another each time.
fn message(error: &ResultsError, root: &Path) -> String {
    error
        .to_string()
        .replace(&root.display().to_string(), "DIR")
}

#[test]
fn gives_back_the_runs_that_were_written() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder =
        ResultsFolder::create(temporary.path().join("a/b"), &study, Force::Refuse).unwrap();
    let first = record(&study, 0, 1, 0);
    let second = record(&study, 1, 0, 2);
    folder.write_run(&second).unwrap();
    folder.write_run(&first).unwrap();

    assert_eq!(folder.read_run(&first.key).unwrap().as_ref(), Some(&first));
    assert!(
        folder
            .read_run(&RunKey {
                repetition: 1,
                ..first.key.clone()
            })
            .unwrap()
            .is_none()
    );
    let found: Vec<RunRecord> = records(&folder).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, [first, second], "in the order of the study");

    let path = folder.path().to_owned();
    drop(folder);
    let opened = ResultsFolder::open(path).unwrap();
    assert_eq!(opened.study(), &study);
    assert_eq!(records(&opened).len(), 2);
}

#[test]
fn goes_on_with_the_same_study_and_refuses_any_other() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let create =
        |study: &StudyDescription, force| ResultsFolder::create(temporary.path(), study, force);
    create(&study, Force::Refuse)
        .unwrap()
        .write_run(&record(&study, 0, 0, 0))
        .unwrap();

    assert_eq!(records(&create(&study, Force::Refuse).unwrap()).len(), 1);

    let changes: [fn(&mut StudyDescription); 3] = [
        |s| s.name = "other".to_owned(),
        |s| s.program_version = "9.9.9".to_owned(),
        |s| s.seed = 99,
    ];
    for change in changes {
        let mut other = study.clone();
        change(&mut other);
        let error = create(&other, Force::Refuse).unwrap_err();
        assert!(matches!(error, ResultsError::OtherStudy { .. }), "{error}");
    }

    let mut other = study;
    other.inputs[0][0] = "ffff".to_owned();
    let replaced = create(&other, Force::Replace).unwrap();
    assert_eq!(replaced.study(), &other);
    assert_eq!(records(&replaced).len(), 0);
}

#[test]
fn runs_are_kept_whose_inputs_are_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let create =
        |study: &StudyDescription, force| ResultsFolder::create(temporary.path(), study, force);
    let folder = create(&study, Force::Refuse).unwrap();
    for (policy, scenario) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        folder
            .write_run(&record(&study, policy, scenario, 0))
            .unwrap();
    }
    drop(folder);

    // Texts and margins are no inputs, and what is added or gone changes no other run.
    let mut longer = study.clone();
    longer.digest = "ffff".to_owned();
    longer.title = "A better title".to_owned();
    longer.policies.push(PolicyDescription {
        name: "one more".to_owned(),
        ..study.policies[0].clone()
    });
    longer.inputs.push(study.inputs[0].clone());
    longer.policies.swap(0, 1);
    let opened = create(&longer, Force::Refuse).unwrap();
    assert_eq!(opened.changes(), ["policy `one more` is new"]);
    assert_eq!(records(&opened).len(), 4);
    drop(opened);
    let opened = create(&study, Force::Refuse).unwrap();
    let gone = "policy `one more` is gone, and its runs stay unread";
    assert_eq!(opened.changes(), [gone]);
    drop(opened);

    let refused = |other: &StudyDescription| {
        let error = create(other, Force::Refuse).unwrap_err();
        assert!(error.is_users_mistake());
        message(&error, temporary.path())
    };
    let mut other_policy = study.clone();
    other_policy.inputs[1] = vec!["ffff".to_owned(); 3];
    let mut other_scenario = study.clone();
    other_scenario
        .inputs
        .iter_mut()
        .for_each(|of| of[1] = "ffff".to_owned());
    let mut other_cell = study.clone();
    other_cell.inputs[0][1] = "ffff".to_owned();
    let mut other_link = study.clone();
    other_link.inputs = vec![vec!["ffff".to_owned(); 3]; 3];
    let messages = [&other_policy, &other_scenario, &other_cell, &other_link].map(refused);
    insta::assert_snapshot!(messages.join("\n"), @r"
    `DIR` holds 2 runs of policy `priority` with other inputs, and 2 with the same: name another folder for the new results
    `DIR` holds 2 runs of scenario `1` with other inputs, and 2 with the same: name another folder for the new results
    `DIR` holds 1 run of some policies under some scenarios with other inputs, and 3 with the same: name another folder for the new results
    `DIR` holds 4 runs with other inputs: name another folder for the new results
    ");
    // Nothing was touched, and what has no runs may change.
    let mut without_runs = study;
    without_runs.inputs[2] = vec!["ffff".to_owned(); 3];
    assert_eq!(
        records(&create(&without_runs, Force::Refuse).unwrap()).len(),
        4
    );

    let replaced = create(&other_policy, Force::Replace).unwrap();
    let left: Vec<_> = records(&replaced)
        .into_iter()
        .map(|run| run.unwrap().key.policy)
        .collect();
    assert_eq!(left, [&*other_policy.policies[0].name; 2]);
    assert_eq!(replaced.runs_on_disk(), 2);
}

#[test]
fn refuses_a_folder_with_anything_else_in_it_and_leaves_it_untouched() {
    let temporary = tempfile::tempdir().unwrap();
    let thesis = temporary.path().join("thesis.tex");
    fs::write(&thesis, "years of work").unwrap();
    for force in [Force::Refuse, Force::Replace] {
        let error =
            ResultsFolder::create(temporary.path(), &study(Size::SMALL), force).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(
                message(&error, temporary.path()),
                @"`DIR` is not empty and holds no results: name an empty folder, or one that does not exist yet"
            );
        }
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "years of work");
    assert!(matches!(
        ResultsFolder::open(temporary.path()).unwrap_err(),
        ResultsError::NoResults { is_file: false, .. }
    ));
    assert!(matches!(
        ResultsFolder::create(&thesis, &study(Size::SMALL), Force::Refuse).unwrap_err(),
        ResultsError::NotAFolder { .. }
    ));
}

#[test]
fn refuses_a_study_file_of_somebody_else() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("study.json");
    fs::write(&path, r#"{"format": "my own notes", "schema_version": 1}"#).unwrap();
    let error =
        ResultsFolder::create(temporary.path(), &study(Size::SMALL), Force::Replace).unwrap_err();
    assert!(
        matches!(error, ResultsError::NotAResultsFolder { .. }),
        "{error}"
    );

    fs::write(
        &path,
        r#"{"format": "slicewise results", "schema_version": 7}"#,
    )
    .unwrap();
    let error = ResultsFolder::open(temporary.path()).unwrap_err();
    insta::assert_snapshot!(message(&error, temporary.path()), @"`DIR/study.json` has schema version 7, this program reads version 5: run the study again into another folder, or use the version of the program that wrote this one");

    fs::write(&path, "{\n  \"format\": \"slicewise results\", \"schema_v").unwrap();
    let error = ResultsFolder::open(temporary.path()).unwrap_err();
    assert!(
        matches!(error, ResultsError::DamagedStudy { .. }),
        "{error}"
    );
}

#[test]
fn replaces_results_whose_study_file_is_damaged_and_nothing_else() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(root, &study, Force::Refuse).unwrap();
    folder.write_run(&record(&study, 0, 0, 0)).unwrap();
    drop(folder);
    let whole = fs::read(root.join("study.json")).unwrap();
    fs::write(root.join("study.json"), &whole[..12]).unwrap();

    let error = ResultsFolder::create(root, &study, Force::Refuse).unwrap_err();
    assert!(
        matches!(error, ResultsError::DamagedStudy { .. }),
        "{error}"
    );

    let thesis = root.join("thesis.tex");
    fs::write(&thesis, "years of work").unwrap();
    let error = ResultsFolder::create(root, &study, Force::Replace).unwrap_err();
    assert!(error.is_users_mistake());
    insta::assert_snapshot!(message(&error, root), @"`DIR/study.json` is damaged (EOF while parsing an object at line 2 column 10), and `DIR/thesis.tex` beside it is no result: nothing was replaced; remove your own files, or name another folder");
    assert!(root.join("runs").exists() && thesis.exists());

    fs::remove_file(thesis).unwrap();
    let folder = ResultsFolder::create(root, &study, Force::Replace).unwrap();
    // A run knows its inputs.
    assert_eq!(records(&folder).len(), 1);
    assert_eq!(fs::read(root.join("study.json")).unwrap(), whole);
}

#[test]
fn writes_nothing_into_a_folder_that_was_removed_or_emptied() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("results");
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(&root, &study, Force::Refuse).unwrap();
    folder.write_run(&record(&study, 0, 0, 0)).unwrap();
    fs::remove_file(root.join("study.json")).unwrap();
    let error = folder.write_run(&record(&study, 0, 0, 1)).unwrap_err();
    assert!(!error.is_users_mistake());
    insta::assert_snapshot!(message(&error, temporary.path()), @"`DIR/results/study.json` is gone: the results folder was removed, moved or emptied while it was in use, and nothing more is written into it");
    assert_eq!(folder.runs_on_disk(), 1);

    fs::remove_dir_all(&root).unwrap();
    let refused = [
        folder.write_run(&record(&study, 0, 0, 2)).unwrap_err(),
        folder.write_host(&HostFacts::of_this_host()).unwrap_err(),
        folder.check_in_place().unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, ResultsError::Gone { .. }), "{error}");
    }
    assert!(slicewise_report::write(&folder).is_err());
    assert!(!root.exists());
}

#[test]
fn says_which_folder_to_read_where_a_part_of_it_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("results");
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(&root, &study, Force::Refuse).unwrap();
    folder.write_run(&record(&study, 0, 0, 0)).unwrap();
    let message = |path: &Path| message(&ResultsFolder::open(path).unwrap_err(), temporary.path());
    insta::assert_snapshot!(message(&root.join("study.json")), @"`DIR/results/study.json` is a file: name the folder that a study was run into, here `DIR/results`");
    insta::assert_snapshot!(message(&root.join("runs")), @"`DIR/results/runs` holds no results of a study: name the folder that a study was run into, here `DIR/results`");
    insta::assert_snapshot!(message(temporary.path()), @"`DIR` holds no results of a study: name the folder that a study was run into");
}

#[test]
fn detects_records_that_cannot_be_trusted() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    let good = record(&study, 0, 0, 0);
    folder.write_run(&good).unwrap();
    let path = folder.records_path("no policy", "0");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.trim_end();
    let with = |change: &dyn Fn(&mut RunRecord)| {
        let mut record = good.clone();
        change(&mut record);
        sealed(&serde_json::to_string(&record).unwrap())
    };
    let damaged = [
        ("cut off", text[..text.len() / 2].to_owned()),
        ("empty", String::new()),
        ("zeros", "\0".repeat(text.len())),
        ("two in one", format!("{text}{text}")),
        ("another run", with(&|r| r.key.scenario = "1".to_owned())),
        ("other inputs", with(&|r| r.key.inputs = "x".to_owned())),
        ("another schema", with(&|r| r.schema_version = 1)),
        (
            "a largest delay without a mean",
            with(&|r| r.slices[0].series.delay_mean_ns[3] = None),
        ),
        (
            "late frames of some intervals",
            with(&|r| r.slices[0].series.late_frames = vec![0; 3]),
        ),
        (
            "a negative variation",
            with(&|r| r.slices[0].whole.variation.ipdv_mean_ns = -1.0),
        ),
        (
            "not a number",
            sealed(&text.replacen(r#""loss_ratio":"#, r#""loss_ratio":null,"x":"#, 1)),
        ),
        ("a ratio above 1", with(&|r| r.aggregate.loss_ratio = 2.0)),
        (
            "a negative rate",
            with(&|r| r.slices[0].whole.offered_bits_per_second = -1.0),
        ),
        (
            "a series too short",
            with(&|r| r.slices[0].series.lost_frames.truncate(1)),
        ),
        (
            "a distribution that falls",
            with(&|r| r.slices[1].delay_cdf.reverse()),
        ),
        ("a slice missing", with(&|r| r.slices.truncate(1))),
        (
            "a plausible figure that nobody measured",
            text.replacen(r#""lost_frames":0"#, r#""lost_frames":1"#, 1),
        ),
        ("no checksum", serde_json::to_string(&good).unwrap()),
    ];
    for (what, text) in damaged {
        fs::write(&path, text + "\n").unwrap();
        match folder.read_run(&good.key) {
            // It does not say of which run it is.
            Ok(found) => assert!(found.is_none() && "empty zeros".contains(what), "{what}"),
            Err(error) => {
                assert!(error.is_damaged_run(), "{what}: {error}");
                let place = "0.jsonl`, line 1, cannot";
                assert!(error.to_string().contains(place), "{what}: {error}");
            }
        }
        let all = records(&folder);
        assert!(
            matches!(all.as_slice(), [Err(e)] if e.is_damaged_run()),
            "{what}"
        );
    }
    folder.write_run(&good).unwrap();
    assert_eq!(folder.read_run(&good.key).unwrap(), Some(good.clone()));

    let other_seed = RunKey {
        seed: 12345,
        ..good.key
    };
    assert!(folder.read_run(&other_seed).unwrap_err().is_damaged_run());
}

#[test]
fn a_record_of_an_earlier_version_says_that_the_study_must_be_run_again() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    let good = record(&study, 0, 0, 0);
    folder.write_run(&good).unwrap();
    let path = folder.records_path("no policy", "0");
    let text = fs::read_to_string(&path).unwrap();
    // Version 1 had no variation, and no percentile between the median and the 99th.
    let mut earlier: serde_json::Value = serde_json::from_str(&text).unwrap();
    earlier["schema_version"] = 1.into();
    earlier["aggregate"]
        .as_object_mut()
        .unwrap()
        .remove("variation");
    earlier.as_object_mut().unwrap().remove("sha256");
    fs::write(&path, format!("{earlier}\n")).unwrap();
    let error = folder.read_run(&good.key).unwrap_err();
    assert!(error.is_damaged_run());
    insta::assert_snapshot!(message(&error, temporary.path()), @"`DIR/runs/no+policy/0.jsonl`, line 1, cannot be trusted (its schema version is 1, this program reads version 5: run the study again)");
}

#[test]
fn writes_no_record_that_it_would_not_read() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    let mut broken = record(&study, 0, 0, 0);
    broken.aggregate.throughput_bits_per_second = f64::NAN;
    let error = folder.write_run(&broken).unwrap_err();
    assert!(
        matches!(error, ResultsError::RefusedRecord { .. }),
        "{error}"
    );
    assert_eq!(records(&folder).len(), 0);
}

#[test]
fn sweeps_away_what_a_killed_process_left() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    folder.write_run(&record(&study, 0, 0, 0)).unwrap();
    let left = folder
        .records_path("no policy", "0")
        .with_file_name(".0.jsonl.77-3.partial");
    fs::write(&left, "{").unwrap();
    assert_eq!(records(&folder).len(), 1);
    drop(folder);

    let folder = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    assert!(!left.exists());
    assert_eq!(records(&folder).len(), 1);
}

#[test]
fn starts_in_a_folder_that_a_process_killed_at_its_start_left() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join(".lock"), "").unwrap();
    fs::write(temporary.path().join(".study.json.1-0.partial"), "{").unwrap();
    ResultsFolder::create(temporary.path(), &study(Size::SMALL), Force::Refuse).unwrap();
}

#[test]
fn lets_one_process_write_at_a_time() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let first = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
    let error = ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap_err();
    assert!(matches!(error, ResultsError::InUse { .. }), "{error}");
    ResultsFolder::open(temporary.path()).unwrap();
    drop(first);
    ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap();
}

#[test]
fn says_which_folder_cannot_be_written() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "").unwrap();
    let error = ResultsFolder::create(file.join("results"), &study(Size::SMALL), Force::Refuse)
        .unwrap_err();
    assert!(error.is_users_mistake());
    insta::assert_snapshot!(
        message(&error, temporary.path()),
        @"cannot create the folder `DIR/file/results`: Not a directory (os error 20)"
    );
    let error = ResultsFolder::open(temporary.path().join("nowhere")).unwrap_err();
    insta::assert_snapshot!(
        message(&error, temporary.path()),
        @"`DIR/nowhere` does not exist: run a study first, or name the folder one was run into"
    );
}

#[test]
fn results_with_a_prediction_can_be_replaced() {
    let temporary = tempfile::tempdir().unwrap();
    let whole = study(Size::SMALL);
    let live = live_study(&whole, "gateway", "slicewise gateway");
    let unsupported = [("shaping", "made up")];
    drop(fill_live(temporary.path(), &live, &whole, &unsupported));
    let folder = ResultsFolder::create(temporary.path(), &live, Force::Discard).unwrap();
    assert!(
        folder
            .open_prediction(OfferedTraffic::AsStudied)
            .unwrap()
            .is_none()
    );
    assert_eq!(folder.read_unsupported().unwrap(), []);
    assert!(!folder.prediction_path(OfferedTraffic::AsStudied).exists());
}

/// Every file below a folder, with its bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn replacing_results_removes_all_of_them_and_no_file_of_anybody_else() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let whole = study(Size::SMALL);
    let live = live_study(&whole, "gateway", "slicewise gateway");
    let folder = fill_live(root, &live, &whole, &[("shaping", "made up")]);
    slicewise_report::write(&folder).unwrap();
    drop(folder);
    let theirs = [
        "notes.txt",
        ".download.partial",
        "data/mine.csv",
        "data/cells.xlsx",
        "figures/mine.svg",
        "figures/loss-mine.svg",
        "figures/old/loss.svg",
        "runs/no+policy/notes.txt",
        "runs/mine/x",
        "prediction/notes.txt",
        "mine/.cells.csv.1-1.partial",
    ];
    for name in theirs {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("rep-000.json"), "theirs").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), root.join("runs/no+policy/link")).unwrap();

    drop(ResultsFolder::create(root, &live, Force::Discard).unwrap());

    fs::remove_file(root.join("runs/no+policy/link")).unwrap();
    let left = contents(root);
    let ours = [".lock", "study.json"];
    let names: Vec<&str> = left.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected = [&theirs[..], &ours[..]].concat();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for (name, bytes) in &left {
        assert!(
            ours.contains(&name.as_str()) || name.as_bytes() == bytes,
            "{name}"
        );
    }
    assert!(elsewhere.path().join("rep-000.json").exists());
    assert!(!root.join("packets").exists() && !root.join("replay").exists());
}

#[test]
fn a_file_that_is_no_json_and_not_ours_is_not_taken_for_a_damaged_description() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("study.json");
    fs::write(&path, "// my own study\n{a: 1}").unwrap();
    let error =
        ResultsFolder::create(temporary.path(), &study(Size::SMALL), Force::Replace).unwrap_err();
    assert!(
        matches!(error, ResultsError::NotAResultsFolder { .. }),
        "{error}"
    );
    assert!(path.exists());
}

#[test]
fn a_description_that_was_changed_is_not_trusted() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    drop(ResultsFolder::create(temporary.path(), &study, Force::Refuse).unwrap());
    let path = temporary.path().join("study.json");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(sealed(&text), text);
    let changed = text.replacen(r#""guaranteed": true"#, r#""guaranteed": false"#, 1);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    let error = ResultsFolder::open(temporary.path()).unwrap_err();
    insta::assert_snapshot!(message(&error, temporary.path()), @"`DIR/study.json` is damaged (its checksum does not match: it was changed or damaged after it was written): run the study again into another folder");
}

#[test]
fn nothing_is_written_through_a_link() {
    let study = study(Size::SMALL);
    let elsewhere = tempfile::tempdir().unwrap();
    for name in [
        "runs",
        "data",
        "figures",
        "packets",
        "transactions",
        "prediction",
        "replay",
        ".lock",
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        drop(ResultsFolder::create(root, &study, Force::Refuse).unwrap());
        let _ = fs::remove_file(root.join(name));
        std::os::unix::fs::symlink(elsewhere.path(), root.join(name)).unwrap();
        for force in [Force::Refuse, Force::Replace] {
            let error = ResultsFolder::create(root, &study, force).unwrap_err();
            assert!(error.is_users_mistake(), "{name}: {error}");
            assert!(
                error
                    .to_string()
                    .contains(&format!("{name}` is a link, not a f")),
                "{error}"
            );
        }
        assert!(root.join("study.json").exists(), "{name}");
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_of_a_report_that_is_a_link_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let study = study(Size::SMALL);
    let folder = support::fill(temporary.path(), &study);
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), temporary.path().join("data")).unwrap();
    let error = slicewise_report::write(&folder).unwrap_err();
    assert!(
        error.to_string().contains("data` is a link, not a folder"),
        "{error}"
    );
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn runs_that_are_kept_elsewhere_are_read_through_a_link_and_not_written() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = support::fill(temporary.path(), &study(Size::SMALL));
    let elsewhere = tempfile::tempdir().unwrap();
    let (runs, kept) = (temporary.path().join("runs"), elsewhere.path().join("runs"));
    fs::rename(&runs, &kept).unwrap();
    std::os::unix::fs::symlink(&kept, &runs).unwrap();
    let report = slicewise_report::write(&folder).unwrap();
    let main = report.findings.main();
    assert_eq!(main.finished_runs, main.expected_runs);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}
