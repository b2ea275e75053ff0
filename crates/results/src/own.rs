//! Files of a results folder that are this program's own: by name and place, records also by their beginning. Only these
//! are removed.

use crate::atomic::target_name;
use crate::checksum::Form;
use crate::names::{
    FIGURE_KINDS, FIGURE_SCRIPT, FILES, FOLDERS, LOCK_FILE, NARROW, PREDICTION_FOLDER,
    REPLAY_FOLDER, STUDY_BYTES, STUDY_FILE, TABLES, TRANSACTIONS_FOLDER,
};
use crate::{Action, ResultsError, open};
use serde_json::Value;
use slicewise_stats::path::path_component;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Remove the results in a folder but those that `is_kept`; what else lies there stays, and so do the folders it lies in.
pub(crate) fn remove_results(
    root: &Path,
    is_kept: impl Fn(&Path) -> bool,
) -> Result<(), ResultsError> {
    let names = StudyNames::read(root);
    let mut files = Vec::new();
    let mut folders = Vec::new();
    walk(root, &mut Vec::new(), &mut |path, parts, is_folder| {
        if is_folder {
            folders.push(path);
        } else if is_own_file(parts, &names) && may_be_written(&path, parts) && !is_kept(&path) {
            files.push(path);
        }
    })?;
    // The marker last: a folder half removed is still known as a results folder.
    let marker = root.join(STUDY_FILE);
    files.sort_by_key(|path| *path == marker);
    files.iter().try_for_each(|path| remove_file(path))?;
    // Inner folders first; one that still holds something stays.
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

/// Remove what killed processes left half-written. Only called while the lock is held.
pub(crate) fn remove_partial_files(root: &Path) -> Result<(), ResultsError> {
    let mut files = Vec::new();
    walk(root, &mut Vec::new(), &mut |path, parts, is_folder| {
        if !is_folder && is_partial_file(parts) {
            files.push(path);
        }
    })?;
    files.iter().try_for_each(|path| remove_file(path))
}

/// Returns true if a file at this place, by its parts below the root, is one that is being written.
pub(crate) fn is_partial_file(parts: &[&str]) -> bool {
    let Some((temporary, folders)) = parts.split_last() else {
        return false;
    };
    target_name(temporary).is_some_and(|name| {
        let target = [folders, &[name]].concat();
        is_own_file(&target, &StudyNames::default())
    })
}

/// Returns true if the text, which is no JSON, may be a description of a study that was damaged, rather than a file of
/// somebody else's.
pub(crate) fn may_be_study_file(text: &[u8]) -> bool {
    let begins = |start: &str| start.as_bytes().iter().zip(text).all(|(a, b)| a == b);
    // As this version and earlier ones began; zeros are what a power cut leaves.
    begins(Form::Pretty.start())
        || begins("{\n  \"format\": \"slicewise results\"")
        || text.iter().all(|&byte| byte == 0)
}

/// Returns false for a file that has the name of records and begins otherwise: one of somebody else's.
fn may_be_written(path: &Path, parts: &[&str]) -> bool {
    if !parts.last().is_some_and(|name| is_records_file(name)) {
        return true;
    }
    let start = Form::Compact.start().as_bytes();
    let mut found = Vec::new();
    let read = open::regular(path).ok().flatten().map(|file| {
        let mut beginning = file.take(start.len() as u64);
        beginning.read_to_end(&mut found)
    });
    let is_zeros = found.iter().all(|&byte| byte == 0);
    matches!(read, Some(Ok(_))) && (is_zeros || start.starts_with(&found))
}

fn remove_file(path: &Path) -> Result<(), ResultsError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(ResultsError::io(Action::Remove, path, e))
        }
        _ => Ok(()),
    }
}

/// Calls `on_entry` with the path of every file and folder in folders of ours, its parts below the root, and
/// whether it is a folder: a folder before what is in it. Links are neither followed nor among them.
fn walk(
    folder: &Path,
    parts: &mut Vec<String>,
    on_entry: &mut impl FnMut(PathBuf, &[&str], bool),
) -> Result<(), ResultsError> {
    let failed = |e| ResultsError::io(Action::ReadFolder, folder, e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        // A name of ours is ASCII.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        parts.push(name);
        let place: Vec<&str> = parts.iter().map(String::as_str).collect();
        if kind.is_dir() && is_own_folder(&place) {
            on_entry(entry.path(), &place, true);
            walk(&entry.path(), parts, on_entry)?;
        } else if kind.is_file() {
            on_entry(entry.path(), &place, false);
        }
        parts.pop();
    }
    Ok(())
}

fn is_own_folder(parts: &[&str]) -> bool {
    match parts {
        [PREDICTION_FOLDER | REPLAY_FOLDER, rest @ ..] if !rest.is_empty() => is_own_folder(rest),
        [top] => FOLDERS.contains(top),
        // Before version 5 of the schema a run was a file.
        ["runs" | "packets" | TRANSACTIONS_FOLDER, _] => true,
        ["runs" | "packets" | TRANSACTIONS_FOLDER, _, _] => true,
        ["packets", _, _, run] => numbered(run, "rep-", ""),
        _ => false,
    }
}

fn is_own_file(parts: &[&str], names: &StudyNames) -> bool {
    match parts {
        [PREDICTION_FOLDER | REPLAY_FOLDER, LOCK_FILE] => true,
        [PREDICTION_FOLDER | REPLAY_FOLDER, rest @ ..] => is_own_file(rest, names),
        [file] => FILES.contains(file),
        ["runs", _, file] => is_records_file(file),
        ["runs", _, _, file] => numbered(file, "rep-", ".json"),
        ["packets", _, _, run, file] => numbered(run, "rep-", "") && is_packet_file(file),
        [TRANSACTIONS_FOLDER, _, _, file] => numbered(file, "rep-", ".parquet"),
        ["data", file] => file.rsplit_once('.').is_some_and(|(name, extension)| {
            ["csv", "parquet"].contains(&extension) && TABLES.contains(&name)
        }),
        ["figures", FIGURE_SCRIPT] => true,
        ["figures", file] => names.has_figure(file),
        _ => false,
    }
}

/// Returns true if a file in the folder of a run's packets is one of ours.
#[must_use]
pub fn is_packet_file(name: &str) -> bool {
    numbered(name, "packets-", ".parquet")
}

/// Returns true if a file in the folder of a policy may be named after a scenario.
fn is_records_file(name: &str) -> bool {
    let is_ours = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+%".contains(&byte);
    let scenario = name.strip_suffix(".jsonl").unwrap_or_default();
    !scenario.is_empty() && !scenario.starts_with('.') && scenario.bytes().all(is_ours)
}

fn numbered(name: &str, before: &str, after: &str) -> bool {
    let number = name
        .strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after));
    number.is_some_and(|digits| digits.len() >= 3 && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Names of a study as they are in names of files, as far as they can be read: also of a description that this
/// version of the program does not read.
#[derive(Debug, Default)]
struct StudyNames {
    /// Of slices, policies and declared figures.
    subjects: Vec<String>,
}

impl StudyNames {
    fn read(root: &Path) -> Self {
        let text = open::read(&root.join(STUDY_FILE), STUDY_BYTES);
        let text = text.ok().flatten().unwrap_or_default();
        let file: Value = serde_json::from_slice(&text).unwrap_or_default();
        let of = |list: &str| file["study"][list].as_array().into_iter().flatten();
        let names = of("slices").chain(of("policies")).chain(of("plots"));
        Self {
            subjects: names
                .filter_map(|named| named["name"].as_str())
                .map(path_component)
                .collect(),
        }
    }

    /// Returns true if a file of that name is one of a figure that a report of the study has: `KIND-SUBJECT` or
    /// `KIND-SUBJECT-scenario-SCENARIO`, drawn at two widths, with data and caption. Without names, any subject will do.
    fn has_figure(&self, file: &str) -> bool {
        let Some((name, extension)) = file.rsplit_once('.') else {
            return false;
        };
        let name = match extension {
            "svg" | "pdf" | "pgf" => name.strip_suffix(NARROW).unwrap_or(name),
            "csv" | "txt" => name,
            _ => return false,
        };
        let is_of = |rest: &str, subject: &String| {
            let scenario = rest.strip_prefix(subject.as_str());
            scenario.is_some_and(|rest| rest.is_empty() || rest.starts_with("-scenario-"))
        };
        let is_subject =
            |rest: &str| self.subjects.is_empty() || self.subjects.iter().any(|s| is_of(rest, s));
        FIGURE_KINDS.iter().any(|kind| {
            let rest = name
                .strip_prefix(kind)
                .and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(is_subject)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let subjects = vec!["best+effort".to_owned(), "a-scenario-b".to_owned()];
        is_own_file(&parts, &StudyNames { subjects })
    }

    #[test]
    fn files_are_known_by_name_and_place() {
        for own in [
            "study.json",
            "report.html",
            "runs/a/b.jsonl",
            "runs/a/%C3%A9+2.5.jsonl",
            "runs/a/b/rep-000.json",
            "runs/a/b/rep-1234.json",
            "data/cells.csv",
            "data/cells.parquet",
            "figures/loss-best+effort.svg",
            "figures/beside-loss-best+effort.svg",
            "figures/loss-best+effort@85mm.pdf",
            "figures/figure-best+effort@85mm.pdf",
            "figures/loss-best+effort@85mm.pgf",
            "figures/map-best+effort@85mm.svg",
            "figures/loss-best+effort.csv",
            "figures/loss-best+effort.txt",
            "figures/plot.py",
            "figures/delay-cdf-best+effort-scenario-6.svg",
            "figures/delay-cdf-a-scenario-b-scenario-6.svg",
            "packets/a/b/rep-000/packets-00012.parquet",
            "transactions/a/b/rep-012.parquet",
            "replay/runs/a/b.jsonl",
            "prediction/study.json",
            "prediction/.lock",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "thesis.tex",
            ".lock",
            "runs/a/notes.txt",
            "runs/a/my notes.jsonl",
            "runs/a/.jsonl",
            "runs/b.jsonl",
            "runs/a/b/notes.txt",
            "runs/a/b/rep-old.json",
            "runs/a/rep-000.json",
            "data/mine.csv",
            "data/cells.xlsx",
            "data/old/cells.csv",
            "figures/mine.svg",
            "figures/loss-mine.svg",
            "figures/loss-mine.pgf",
            "figures/figure-mine.svg",
            "figures/loss-best+effort.png",
            "figures/loss-best+effort-90mm.svg",
            "figures/other.py",
            "packets/a/b/rep-000/notes.parquet",
            "transactions/a/b/notes.parquet",
            "prediction/thesis.tex",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }

    #[test]
    fn files_of_others_stay_even_under_names_of_records() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("runs/fifo");
        let left = |texts: [&str; 5]| {
            fs::create_dir_all(&policy).unwrap();
            for (number, text) in texts.iter().enumerate() {
                fs::write(policy.join(format!("{number}.jsonl")), text).unwrap();
            }
            remove_results(folder.path(), |_| false).unwrap();
            let is_left = |number: &usize| policy.join(format!("{number}.jsonl")).exists();
            (0..texts.len()).filter(is_left).collect::<Vec<_>>()
        };
        let ours = [
            "",
            "\0\0",
            "{\"sha",
            "{\"sha256\":\"0f\",",
            "{\"sha256\":\"",
        ];
        assert!(left(ours).is_empty());
        let theirs = [
            "{\"mine\":1}",
            "x",
            "\n",
            "{\"sha1\":\"",
            "\u{feff}{\"sha256\":\"",
        ];
        assert_eq!(left(theirs), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn half_written_files_are_known_by_the_file_they_would_become() {
        assert!(is_partial_file(&["runs", "a", ".b.jsonl.7-1.partial"]));
        assert!(is_partial_file(&["data", ".cells.csv.7-1.partial"]));
        let rows = ["transactions", "a", "b", ".rep-000.parquet.7-1.partial"];
        assert!(is_partial_file(&rows));
        assert!(!is_partial_file(&["data", ".mine.csv.7-1.partial"]));
        assert!(!is_partial_file(&["notes", ".cells.csv.7-1.partial"]));
    }
}
