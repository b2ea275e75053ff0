use super::*;
use proptest::prelude::*;
use std::fs::{self, OpenOptions};

fn record(repetition: u32, payload: &str) -> Vec<u8> {
    format!(r#"{{"key":{{"policy":"\"repetition\":9","repetition":{repetition},"seed":1}},"text":"{payload}"}}"#)
        .into_bytes()
}

/// An empty folder, and the path of a file in it.
fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calm.jsonl");
    (folder, path)
}

fn add_to(path: &Path, bytes: &[u8]) {
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

fn text(files: &RecordFiles, path: &Path, repetition: u32) -> Option<Vec<u8>> {
    let found = files.read(path, repetition).unwrap();
    found.map(|found| found.text)
}

#[test]
fn the_beginning_of_a_record_is_not_read_and_gives_way_to_the_next() {
    let (_folder, path) = file();
    let whole = record(0, "whole");
    add_to(&path, &[&whole, &b"\n"[..], &record(1, "cut")].concat());
    let files = RecordFiles::default();
    assert_eq!(files.repetitions(&path).unwrap(), [0]);
    assert_eq!(text(&files, &path, 1), None);
    files.append(&path, (1, 3), record(1, "again")).unwrap();
    assert_eq!(text(&files, &path, 0).unwrap(), whole);
    assert_eq!(text(&files, &path, 1).unwrap(), record(1, "again"));
    assert_eq!(fs::read(&path).unwrap().split(|b| *b == b'\n').count(), 3);
}

#[test]
fn a_whole_record_without_its_line_feed_counts_and_gets_it() {
    let (_folder, path) = file();
    let sealed = |repetition| checksum::seal(&record(repetition, "whole"), Form::Compact);
    add_to(&path, &[&sealed(0), &b"\n"[..], &sealed(1)].concat());
    let files = RecordFiles::default();
    assert_eq!(files.repetitions(&path).unwrap(), [0, 1]);
    assert_eq!(text(&files, &path, 1).unwrap(), sealed(1));
    files.append(&path, (2, 4), sealed(2)).unwrap();
    let lines = (0..3).map(|repetition| [sealed(repetition), b"\n".to_vec()].concat());
    assert_eq!(fs::read(&path).unwrap(), lines.collect::<Vec<_>>().concat());
    assert_eq!(text(&RecordFiles::default(), &path, 1).unwrap(), sealed(1));
}

#[test]
fn lines_of_no_repetition_are_named_until_every_repetition_is_there_and_gone_then() {
    let (_folder, path) = file();
    let files = RecordFiles::default();
    files.append(&path, (0, 2), record(0, "sound")).unwrap();
    add_to(&path, b"\0\0\0\nof nobody\n");
    assert_eq!(files.unknown(&path, 2).unwrap(), [2, 3]);
    assert!(files.unknown(&path, 1).unwrap().is_empty());
    files.append(&path, (1, 2), record(1, "sound")).unwrap();
    assert!(files.unknown(&path, 2).unwrap().is_empty());
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
}

#[test]
fn a_repetition_is_looked_for_in_the_first_bytes_of_a_line_however_long_it_is() {
    let (_folder, path) = file();
    let files = RecordFiles::default();
    let long = "x".repeat(200_000);
    files.append(&path, (0, 9), record(0, &long)).unwrap();
    let late = format!(r#"{{"text":"{long}","repetition":1}}"#);
    files.append(&path, (2, 9), late.into_bytes()).unwrap();
    files.append(&path, (3, 9), record(3, "short")).unwrap();
    let again = RecordFiles::default();
    assert_eq!(again.repetitions(&path).unwrap(), [0, 3]);
    assert_eq!(again.unknown(&path, 9).unwrap(), [2]);
    assert_eq!(text(&again, &path, 0).unwrap(), record(0, &long));
    assert_eq!(again.read(&path, 3).unwrap().unwrap().line, 3);
}

#[test]
fn records_that_another_process_appends_or_puts_in_order_are_found() {
    let (_folder, path) = file();
    let [one, other] = [RecordFiles::default(), RecordFiles::default()];
    one.append(&path, (1, 3), record(1, "b")).unwrap();
    assert_eq!(text(&other, &path, 0), None);
    one.append(&path, (0, 3), record(0, "a")).unwrap();
    assert_eq!(text(&other, &path, 0).unwrap(), record(0, "a"));
    // Puts them in order.
    one.append(&path, (2, 3), record(2, "c")).unwrap();
    for (repetition, payload) in (0..).zip(["a", "b", "c"]) {
        let found = other.read(&path, repetition).unwrap().unwrap();
        assert_eq!(found.line, u64::from(repetition) + 1);
        assert_eq!(found.text, record(repetition, payload));
    }
}

#[test]
fn nothing_is_appended_through_a_link() {
    let (folder, path) = file();
    let theirs = folder.path().join("theirs");
    fs::write(&theirs, "theirs\n").unwrap();
    std::os::unix::fs::symlink(&theirs, &path).unwrap();
    let refused = RecordFiles::default().append(&path, (0, 1), record(0, "a"));
    assert!(refused.unwrap_err().to_string().contains("is a link"));
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs\n");
}

/// Event in the life of a file: a record is appended, perhaps by a process that knows nothing yet, or the beginning of one is.
type Step = (u32, String, bool, bool);

proptest! {
    #[test]
    fn the_last_record_of_each_repetition_is_read_and_files_of_all_are_equal(
        steps in prop::collection::vec((0u32..5, "[a-z]{0,3}", any::<bool>(), any::<bool>()), 0..20),
    ) {
        let steps: Vec<Step> = steps;
        let (_folder, path) = file();
        let mut files = RecordFiles::default();
        let mut model = BTreeMap::new();
        for (repetition, payload, is_cut, is_new_process) in steps {
            if is_new_process {
                files = RecordFiles::default();
            }
            if is_cut {
                add_to(&path, &record(repetition, &payload));
                continue;
            }
            files.append(&path, (repetition, 5), record(repetition, &payload)).unwrap();
            model.insert(repetition, record(repetition, &payload));
            for repetition in 0..5 {
                prop_assert_eq!(&text(&files, &path, repetition), &model.get(&repetition).cloned());
            }
        }
        let known: Vec<u32> = model.keys().copied().collect();
        prop_assert_eq!(files.repetitions(&path).unwrap(), known);
        if model.len() == 5 {
            files.append(&path, (0, 5), model[&0].clone()).unwrap();
            let lines: Vec<Vec<u8>> = model.into_values().map(|text| [text, b"\n".to_vec()].concat()).collect();
            prop_assert_eq!(fs::read(&path).unwrap(), lines.concat());
        }
    }

    #[test]
    fn any_file_is_read_without_panic(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n')], 0..300), is_record: bool,
    ) {
        let (_folder, path) = file();
        let start = if is_record { record(0, "") } else { Vec::new() };
        fs::write(&path, [start, bytes].concat()).unwrap();
        let files = RecordFiles::default();
        let lines = fs::read(&path).unwrap().iter().filter(|byte| **byte == b'\n').count();
        let known = files.repetitions(&path).unwrap().len();
        prop_assert!(known + files.unknown(&path, u32::MAX).unwrap().len() <= lines);
        for repetition in 0..3 {
            let _ = files.read(&path, repetition).unwrap();
        }
    }
}
