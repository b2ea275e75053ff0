//! The results folder: opened, written run by run, and read.

use crate::checksum::{self, Form};
use crate::host::HostFacts;
use crate::inputs::{self, RunsOfStudy};
use crate::names::{
    FACTS_BYTES, FILES, FOLDERS, FORMAT, LOCK_FILE, MOST_REPETITIONS, RECORD_BYTES, STUDY_BYTES,
    STUDY_FILE,
};
use crate::open::{self, ReadError, make_folder};
use crate::records::{RecordFiles, RecordText};
use crate::{Action, ResultsError, check, own, records, write_file};
use serde::{Deserialize, Serialize};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::path::path_component;
use slicewise_stats::record::{OTHER_INPUTS, RunKey, RunRecord, SCHEMA_VERSION};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Action where the folder already holds results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Force {
    /// Go on with results of the same study; refuse those of any other.
    #[default]
    Refuse,
    /// Throw away results but runs with the same inputs, and no file of anybody else's. A folder that holds no results is
    /// refused all the same.
    Replace,
    /// Throw away all results, as [`Replace`](Self::Replace) does.
    Discard,
}

/// A folder that holds, or is to hold, the results of one study.
#[derive(Debug)]
pub struct ResultsFolder {
    root: PathBuf,
    study: StudyDescription,
    /// The study as it is judged, where that is another one.
    judged: Option<StudyDescription>,
    /// How the study differs from that of the runs that were there.
    changes: Vec<String>,
    records: RecordFiles,
    /// Held while this process may write runs; the operating system frees it when the process ends.
    _lock: Option<File>,
}

fn judged(study: &StudyDescription) -> Option<StudyDescription> {
    (!study.phases.is_empty()).then(|| study.by_phase())
}

/// `study.json`: the marker of a results folder.
#[derive(Debug, Serialize, Deserialize)]
struct StudyFile {
    format: String,
    schema_version: u32,
    study: StudyDescription,
}

/// The part of [`StudyFile`] that every version of the program can read.
#[derive(Debug, Deserialize)]
struct StudyFileHead {
    format: String,
    schema_version: u32,
}

/// The part of a [`RunRecord`] that every version of the program can read.
#[derive(Debug, Deserialize)]
struct RecordHead {
    schema_version: u32,
}

impl ResultsFolder {
    /// A folder to run `study` into: a new one, an empty one, or one that holds results of the
    /// same study, which is gone on with.
    ///
    /// # Errors
    /// Where the folder holds anything else, holds results of another study, program version or seed, or runs of other
    /// inputs (with [`Force::Refuse`]), is being written by another process, or cannot be written.
    pub fn create(
        path: impl Into<PathBuf>,
        study: &StudyDescription,
        force: Force,
    ) -> Result<Self, ResultsError> {
        let root = path.into();
        if root.is_file() {
            return Err(ResultsError::NotAFolder { path: root });
        }
        fs::create_dir_all(&root).map_err(|e| ResultsError::io(Action::CreateFolder, &root, e))?;
        // Refuse before anything is written: the lock is a file too.
        let found = match read_study(&root) {
            Ok(None) if !is_empty(&root)? => {
                return Err(ResultsError::NotAResultsFolder { path: root });
            }
            Ok(None) => None,
            Ok(Some(found)) => {
                if force == Force::Refuse {
                    refuse_other_study(&root, &found, study)?;
                }
                Some(found)
            }
            // Results all the same, only not ours to read.
            Err(ResultsError::UnknownSchema { .. }) if force != Force::Refuse => None,
            Err(ResultsError::DamagedStudy { path, reason }) if force != Force::Refuse => {
                if let Some(stranger) = stranger(&root)? {
                    return Err(ResultsError::DamagedStudyAmongOthers {
                        path,
                        reason,
                        stranger,
                    });
                }
                None
            }
            Err(error) => return Err(error),
        };
        for name in FOLDERS {
            open::check_folder(&root.join(name))?;
        }
        let is_changed = found.as_ref().is_some_and(|found| found != study);
        let records = RecordFiles::default();
        let runs = match is_changed || force == Force::Replace {
            true => Some(RunsOfStudy::below(&root, study, &records)?),
            false => None,
        };
        if let (Some(runs), Force::Refuse) = (&runs, force) {
            runs.refuse_others(&root)?;
        }
        let lock = lock(&root)?;
        if force != Force::Refuse {
            let kept = runs.filter(|_| force == Force::Replace);
            own::remove_results(&root, |path| {
                kept.as_ref().is_some_and(|runs| runs.has(path))
            })?;
        }
        own::remove_partial_files(&root)?;
        let folder = Self {
            root,
            judged: judged(study),
            changes: found
                .as_ref()
                .map_or_else(Vec::new, |found| inputs::changes(found, study)),
            study: study.clone(),
            records,
            _lock: lock,
        };
        if found.as_ref() != Some(study) || force != Force::Refuse {
            folder.write_study()?;
        }
        Ok(folder)
    }

    /// A folder that holds results, to read them and to make its report again.
    ///
    /// # Errors
    /// Where there is no such folder, or no description of a study in it that can be read.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ResultsError> {
        let root = path.into();
        if !root.exists() {
            return Err(ResultsError::Missing { path: root });
        }
        let is_file = root.is_file();
        let study = if is_file { None } else { read_study(&root)? };
        match study {
            Some(study) => Ok(Self {
                judged: judged(&study),
                changes: Vec::new(),
                root,
                study,
                records: RecordFiles::default(),
                _lock: None,
            }),
            None => Err(ResultsError::NoResults {
                inside: results_folder_around(&root),
                path: root,
                is_file,
            }),
        }
    }

    /// Check that the folder is still there, with its description of the study.
    ///
    /// # Errors
    /// [`ResultsError::Gone`] where it is not: what would be written could not be distinguished from
    /// anything else, and a folder that somebody removed would come back with a part of the results.
    pub fn check_in_place(&self) -> Result<(), ResultsError> {
        let path = self.root.join(STUDY_FILE);
        if path.is_file() {
            Ok(())
        } else {
            Err(ResultsError::Gone { path })
        }
    }

    /// How many records lie in the folder, sound or not.
    #[must_use]
    pub fn runs_on_disk(&self) -> u64 {
        let of_cell = |(policy, scenario)| {
            let found = (self.records).repetitions(&self.records_path(policy, scenario));
            let found = found.unwrap_or_default().into_iter();
            let of_study = found.filter(|repetition| *repetition < self.study.repetitions);
            of_study.count() as u64
        };
        self.cells().map(of_cell).sum()
    }

    /// Returns true if a record of the run lies in the folder, sound or not.
    #[must_use]
    pub fn has_run(&self, key: &RunKey) -> bool {
        let path = self.records_path(&key.policy, &key.scenario);
        // A file that cannot be read has none.
        self.records.has(&path, key.repetition).unwrap_or(false)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The study as it is judged: each policy in each phase is a policy of its own.
    #[must_use]
    pub fn judged(&self) -> &StudyDescription {
        self.judged.as_ref().unwrap_or(&self.study)
    }

    /// The study whose results it holds.
    #[must_use]
    pub fn study(&self) -> &StudyDescription {
        &self.study
    }

    /// How the study differs from that of the runs that were there when the folder was opened to write: a clause each,
    /// for people.
    #[must_use]
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// The HTML report, whether it has been written or not.
    #[must_use]
    pub fn report_path(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// The folder of CSV and Parquet files.
    #[must_use]
    pub fn data_path(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The folder of SVG figures.
    #[must_use]
    pub fn figures_path(&self) -> PathBuf {
        self.root.join("figures")
    }

    /// The file of records of a policy under a scenario, whether there are any or not.
    #[must_use]
    pub fn records_path(&self, policy: &str, scenario: &str) -> PathBuf {
        records::path(&self.root, policy, scenario)
    }

    /// Append one run's record: whole, or not at all.
    ///
    /// # Errors
    /// Where the record is not of this study or not sound, or cannot be written;
    /// [`ResultsError::Gone`] where the folder is not there any more.
    pub fn write_run(&self, record: &RunRecord) -> Result<(), ResultsError> {
        let RunKey {
            policy,
            scenario,
            repetition,
            ..
        } = &record.key;
        let path = self.records_path(policy, scenario);
        let refused = |reason| ResultsError::RefusedRecord {
            path: path.clone(),
            reason,
        };
        check::record_of_study(record, &self.study).map_err(refused)?;
        let json = serde_json::to_vec(record)
            .map_err(|e| ResultsError::io(Action::Write, &path, io::Error::from(e)))?;
        let sealed = checksum::seal(&json, Form::Compact);
        if sealed.len() as u64 > RECORD_BYTES {
            return Err(refused(ReadError::TooLarge(RECORD_BYTES).to_string()));
        }
        self.check_in_place()?;
        self.create_folders(&["runs", &path_component(policy)])?;
        let run = (*repetition, self.study.repetitions);
        self.records.append(&path, run, sealed)
    }

    /// Step by step from the root, which is not created again where it was removed meanwhile.
    pub(crate) fn create_folders(&self, parts: &[&str]) -> Result<(), ResultsError> {
        let mut folder = self.root.clone();
        for part in parts {
            folder.push(part);
            if let Err(error) = make_folder(&folder) {
                // Rather say that the folder is gone than that its parts are.
                self.check_in_place()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The record of a run; `None` where it has not been done.
    ///
    /// # Errors
    /// [`ResultsError::DamagedRun`] where there is a record that is corrupt, or of another run or seed: it must not be
    /// used, and the run must be done again.
    pub fn read_run(&self, key: &RunKey) -> Result<Option<RunRecord>, ResultsError> {
        let run = (key.policy.as_str(), key.scenario.as_str(), key.repetition);
        self.read_run_at(run, |record| match record.key == *key {
            true => Ok(()),
            false if record.key.seed == key.seed => Err(OTHER_INPUTS.to_owned()),
            false => Err(format!(
                "it was run with seed {}, not {}",
                record.key.seed, key.seed
            )),
        })
    }

    /// All finished runs of the study, policy by policy, scenario by scenario, repetition by
    /// repetition; one record in memory at a time.
    ///
    /// Runs that have not been done are left out; damaged ones are errors, after which the
    /// iterator goes on.
    pub fn finished_runs(&self) -> impl Iterator<Item = Result<RunRecord, ResultsError>> + '_ {
        self.cells().flat_map(move |(policy, scenario)| {
            let unknown = self.unknown_records(policy, scenario);
            let runs = (0..self.study.repetitions).filter_map(move |repetition| {
                let run = (policy, scenario, repetition);
                self.read_run_at(run, |_| Ok(())).transpose()
            });
            unknown.into_iter().map(Err).chain(runs)
        })
    }

    /// Errors for lines that may have been records of runs that are missing.
    fn unknown_records(&self, policy: &str, scenario: &str) -> Vec<ResultsError> {
        let path = self.records_path(policy, scenario);
        let lines = self.records.unknown(&path, self.study.repetitions);
        // Where there is no file to read, reading the first run says so.
        let lines = lines.unwrap_or_default().into_iter();
        let damaged = |line| ResultsError::DamagedRun {
            path: path.clone(),
            line: Some(line),
            reason: "nothing in it says of which run it is".to_owned(),
        };
        lines.map(damaged).collect()
    }

    /// How many runs the whole study has.
    #[must_use]
    pub fn expected_runs(&self) -> u64 {
        self.study.policies.len() as u64
            * self.study.scenarios.len() as u64
            * u64::from(self.study.repetitions)
    }

    /// Write down what is known of the host: apart from results, which are the same everywhere.
    ///
    /// # Errors
    /// Where the file cannot be written; [`ResultsError::Gone`] where the folder is not there any
    /// more.
    pub fn write_host(&self, facts: &HostFacts) -> Result<(), ResultsError> {
        self.check_in_place()?;
        let path = self.root.join("host.json");
        let json = pretty_json(facts, &path)?;
        write_file(&path, &json)
    }

    /// Returns the facts about the host; `None` where there are none, or none readable: results do not depend on them.
    #[must_use]
    pub fn read_host(&self) -> Option<HostFacts> {
        let text = open::read(&self.root.join("host.json"), FACTS_BYTES).ok()??;
        serde_json::from_slice(&text).ok()
    }

    /// Policy, scenario and repetition of every run of the study.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (&str, &str, u32)> + '_ {
        self.cells().flat_map(|(policy, scenario)| {
            (0..self.study.repetitions).map(move |repetition| (policy, scenario, repetition))
        })
    }

    /// Each policy under each scenario.
    fn cells(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.study.policies.iter().flat_map(|policy| {
            let scenarios = self.study.scenarios.iter();
            scenarios.map(|scenario| (policy.name.as_str(), scenario.name.as_str()))
        })
    }

    /// The record of a run by policy, scenario and repetition, if it passes `check` too.
    pub(crate) fn read_run_at(
        &self,
        (policy, scenario, repetition): (&str, &str, u32),
        check: impl FnOnce(&RunRecord) -> Result<(), String>,
    ) -> Result<Option<RunRecord>, ResultsError> {
        let path = self.records_path(policy, scenario);
        let RecordText { line, mut text } = match self.records.read(&path, repetition) {
            Ok(None) => return Ok(None),
            Ok(Some(found)) => found,
            Err(ReadError::Io(e)) => return Err(ResultsError::io(Action::Read, path, e)),
            Err(error) => {
                return Err(ResultsError::DamagedRun {
                    path,
                    line: None,
                    reason: error.to_string(),
                });
            }
        };
        let record = unsealed_record(&mut text).and_then(|record| {
            check::record_of_study(&record, &self.study)?;
            check::record_of_slot(&record, policy, scenario, repetition)?;
            check(&record)?;
            Ok(record)
        });
        let record = record.map_err(|reason| ResultsError::DamagedRun {
            path,
            line: Some(line),
            reason,
        })?;
        Ok(Some(record))
    }

    fn write_study(&self) -> Result<(), ResultsError> {
        let path = self.root.join(STUDY_FILE);
        let file = StudyFile {
            format: FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            study: self.study.clone(),
        };
        let json = pretty_json(&file, &path)?;
        write_file(&path, &checksum::seal(&json, Form::Pretty))
    }
}

/// The record in a file's text.
fn unsealed_record(text: &mut [u8]) -> Result<RunRecord, String> {
    let json = match checksum::unseal(text, Form::Compact) {
        Ok(json) => json,
        Err(error) => {
            let head: Result<RecordHead, _> = serde_json::from_slice(text);
            return Err(match head {
                // Earlier versions had no checksum.
                Ok(head) => check::schema_version(head.schema_version)
                    .err()
                    .unwrap_or_else(|| error.to_string()),
                Err(e) if e.is_eof() => format!("it ends too early: {e}"),
                Err(_) => error.to_string(),
            });
        }
    };
    serde_json::from_slice(json).map_err(|e| e.to_string())
}

pub(crate) fn pretty_json(value: &impl Serialize, path: &Path) -> Result<Vec<u8>, ResultsError> {
    let mut json = serde_json::to_vec_pretty(value)
        .map_err(|e| ResultsError::io(Action::Write, path, io::Error::from(e)))?;
    json.push(b'\n');
    Ok(json)
}

/// `None` where there is no `study.json`, or one of somebody else's.
fn read_study(root: &Path) -> Result<Option<StudyDescription>, ResultsError> {
    let path = root.join(STUDY_FILE);
    let damaged = |reason: String| ResultsError::DamagedStudy {
        path: path.clone(),
        reason,
    };
    let mut text = match open::read(&path, STUDY_BYTES) {
        Ok(None) => return Ok(None),
        Ok(Some(text)) => text,
        Err(ReadError::NotAFile(what)) => {
            let wanted = "a file";
            return Err(ResultsError::Foreign { path, what, wanted });
        }
        Err(ReadError::TooLarge(_)) => return Ok(None),
        Err(ReadError::Io(e)) => return Err(ResultsError::io(Action::Read, path, e)),
    };
    let head: StudyFileHead = match serde_json::from_slice(&text) {
        Ok(head) => head,
        Err(_) if !own::may_be_study_file(&text) => return Ok(None),
        Err(e) => return Err(damaged(e.to_string())),
    };
    if head.format != FORMAT {
        return Ok(None);
    }
    if head.schema_version != SCHEMA_VERSION {
        return Err(ResultsError::UnknownSchema {
            path,
            found: head.schema_version,
            supported: SCHEMA_VERSION,
        });
    }
    let unsealed = checksum::unseal(&mut text, Form::Pretty);
    let json = unsealed.map_err(|e| damaged(e.to_string()))?;
    let file: StudyFile = serde_json::from_slice(json).map_err(|e| damaged(e.to_string()))?;
    if file.study.repetitions > MOST_REPETITIONS {
        let found = file.study.repetitions;
        return Err(damaged(format!("it has {found} repetitions")));
    }
    Ok(Some(file.study))
}

fn refuse_other_study(
    root: &Path,
    found: &StudyDescription,
    wanted: &StudyDescription,
) -> Result<(), ResultsError> {
    let identities = [
        ("study", found.name.clone(), wanted.name.clone()),
        (
            "program version",
            found.program_version.clone(),
            wanted.program_version.clone(),
        ),
        ("seed", found.seed.to_string(), wanted.seed.to_string()),
    ];
    for (what, found, wanted) in identities {
        if found != wanted {
            return Err(ResultsError::OtherStudy {
                path: root.to_owned(),
                what,
                found,
                wanted,
            });
        }
    }
    Ok(())
}

/// True where nothing lies in the folder but what a process killed at its start leaves behind.
fn is_empty(root: &Path) -> Result<bool, ResultsError> {
    for entry in fs::read_dir(root).map_err(|e| ResultsError::io(Action::ReadFolder, root, e))? {
        let entry = entry.map_err(|e| ResultsError::io(Action::ReadFolder, root, e))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name != LOCK_FILE && !own::is_partial_file(&[&name]) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first thing in the folder that no study writes.
fn stranger(root: &Path) -> Result<Option<PathBuf>, ResultsError> {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(root).map_err(|e| ResultsError::io(Action::ReadFolder, root, e))? {
        let entry = entry.map_err(|e| ResultsError::io(Action::ReadFolder, root, e))?;
        let kind = entry
            .file_type()
            .map_err(|e| ResultsError::io(Action::Read, entry.path(), e))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_known = if kind.is_dir() {
            FOLDERS.contains(&&*name)
        } else {
            FILES.contains(&&*name) || name == LOCK_FILE || own::is_partial_file(&[&name])
        };
        if !is_known {
            strangers.push(entry.path());
        }
    }
    Ok(strangers.into_iter().min())
}

/// The results folder that `path` lies in.
fn results_folder_around(path: &Path) -> Option<PathBuf> {
    let is_results = |folder: &Path| matches!(read_study(folder), Ok(Some(_)));
    path.ancestors()
        .skip(1)
        .map(|folder| {
            if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            }
        })
        .find(|folder| is_results(folder))
        .map(Path::to_owned)
}

fn lock(root: &Path) -> Result<Option<File>, ResultsError> {
    let path = root.join(LOCK_FILE);
    let file = open::lock_file(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(ResultsError::InUse {
            path: root.to_owned(),
        }),
        // Some file systems know no locks; files still appear whole or not at all.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}
