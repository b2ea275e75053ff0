//! The results folder: what lies where, and what may be trusted.
//!
//! ```text
//! DIR/study.json                          what was run: the study, its digest, its seed
//! DIR/host.json                           facts about the host, apart from results
//! DIR/unsupported.json                    policies that what was to carry them out cannot express
//! DIR/runs/<policy>/<scenario>/rep-000.json
//! DIR/report.html
//! DIR/data/*.csv, *.parquet
//! DIR/figures/*.svg
//! DIR/packets/<policy>/<scenario>/rep-000/*.parquet   on request
//! DIR/prediction/                         the same cells simulated: a results folder of its own
//! DIR/replay/                             the same, of the packets that were sent in each run
//! ```
//!
//! Files appear whole or not at all, so a killed process leaves finished runs behind and nothing
//! that could be taken for one. Results of different studies, versions or seeds never mix.

mod atomic;
mod check;
mod error;
mod live;

pub use error::ResultsError;
pub use live::Unsupported;
pub use slicewise_stats::path::path_component;

pub(crate) use atomic::{AtomicFile, write_file};

use crate::host::HostFacts;
use serde::{Deserialize, Serialize};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::{RunKey, RunRecord, SCHEMA_VERSION};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// What to do where the folder already holds results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Force {
    /// Go on with results of the same study; refuse those of any other.
    #[default]
    Refuse,
    /// Throw away the results that are there. A folder that holds anything but results is
    /// refused all the same.
    Replace,
}

/// A folder that holds, or is to hold, the results of one study.
#[derive(Debug)]
pub struct ResultsFolder {
    root: PathBuf,
    study: StudyDescription,
    /// Held while this process may write runs; the operating system frees it when the process ends.
    _lock: Option<File>,
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
    /// Where the folder holds anything else, holds results of another study, digest, program
    /// version or seed (unless [`Force::Replace`]), is being written by another process, or
    /// cannot be written.
    pub fn create(
        path: impl Into<PathBuf>,
        study: &StudyDescription,
        force: Force,
    ) -> Result<Self, ResultsError> {
        let root = path.into();
        if root.is_file() {
            return Err(ResultsError::NotAFolder { path: root });
        }
        fs::create_dir_all(&root).map_err(|e| ResultsError::io("create the folder", &root, e))?;
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
            Err(ResultsError::UnknownSchema { .. }) if force == Force::Replace => None,
            Err(ResultsError::DamagedStudy { path, reason }) if force == Force::Replace => {
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
        let lock = lock(&root)?;
        if force == Force::Replace {
            remove_results(&root)?;
        }
        sweep_partial_files(&root)?;
        let folder = Self {
            root,
            study: study.clone(),
            _lock: lock,
        };
        if found.as_ref() != Some(study) || force == Force::Replace {
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
                root,
                study,
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
    /// [`ResultsError::Gone`] where it is not: what would be written could not be told from
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
        self.slots()
            .filter(|(policy, scenario, repetition)| {
                self.run_path(policy, scenario, *repetition).is_file()
            })
            .count() as u64
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The study whose results it holds.
    #[must_use]
    pub fn study(&self) -> &StudyDescription {
        &self.study
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

    /// Where the record of a run lies, whether it has been written or not.
    #[must_use]
    pub fn run_path(&self, policy: &str, scenario: &str, repetition: u32) -> PathBuf {
        self.root
            .join("runs")
            .join(path_component(policy))
            .join(path_component(scenario))
            .join(format!("rep-{repetition:03}.json"))
    }

    /// Write one run's record: whole, or not at all.
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
        let path = self.run_path(policy, scenario, *repetition);
        let refused = |reason| ResultsError::RefusedRecord {
            path: path.clone(),
            reason,
        };
        check::record_of_study(record, &self.study).map_err(refused)?;
        let json = serde_json::to_vec(record)
            .map_err(|e| ResultsError::io("write", &path, io::Error::from(e)))?;
        self.check_in_place()?;
        self.create_folder_of_runs(policy, scenario)?;
        write_file(&path, &json)
    }

    /// Step by step from the root, which is not created again where it was removed meanwhile.
    fn create_folder_of_runs(&self, policy: &str, scenario: &str) -> Result<(), ResultsError> {
        let mut folder = self.root.clone();
        for part in ["runs", &path_component(policy), &path_component(scenario)] {
            folder.push(part);
            match fs::create_dir(&folder) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    // Rather say that the folder is gone than that its parts are.
                    self.check_in_place()?;
                    return Err(ResultsError::io("create the folder", folder, e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The record of a run; `None` where it has not been done.
    ///
    /// # Errors
    /// [`ResultsError::DamagedRun`] where there is a file that is half-written, corrupt, or of
    /// another run or seed: it must not be used, and the run must be done again.
    pub fn read_run(&self, key: &RunKey) -> Result<Option<RunRecord>, ResultsError> {
        let record = self.read_run_at(&key.policy, &key.scenario, key.repetition)?;
        match record {
            Some(record) if record.key.seed != key.seed => Err(ResultsError::DamagedRun {
                path: self.run_path(&key.policy, &key.scenario, key.repetition),
                reason: format!("it was run with seed {}, not {}", record.key.seed, key.seed),
            }),
            other => Ok(other),
        }
    }

    /// All finished runs of the study, policy by policy, scenario by scenario, repetition by
    /// repetition; one record in memory at a time.
    ///
    /// Runs that have not been done are left out; damaged ones are errors, after which the
    /// iterator goes on.
    pub fn finished_runs(&self) -> impl Iterator<Item = Result<RunRecord, ResultsError>> + '_ {
        self.slots().filter_map(|(policy, scenario, repetition)| {
            self.read_run_at(policy, scenario, repetition).transpose()
        })
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

    /// What is known of the host; `None` where nothing is, or nothing readable: results do not
    /// depend on it.
    #[must_use]
    pub fn read_host(&self) -> Option<HostFacts> {
        let text = fs::read(self.root.join("host.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn slots(&self) -> impl Iterator<Item = (&str, &str, u32)> + '_ {
        let study = &self.study;
        study.policies.iter().flat_map(move |policy| {
            study.scenarios.iter().flat_map(move |scenario| {
                (0..study.repetitions).map(move |repetition| {
                    (policy.name.as_str(), scenario.name.as_str(), repetition)
                })
            })
        })
    }

    fn read_run_at(
        &self,
        policy: &str,
        scenario: &str,
        repetition: u32,
    ) -> Result<Option<RunRecord>, ResultsError> {
        let path = self.run_path(policy, scenario, repetition);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(ResultsError::io("read", path, e)),
        };
        let record: Result<RunRecord, String> = serde_json::from_slice(&text)
            .map_err(|e| {
                let head: Result<RecordHead, _> = serde_json::from_slice(&text);
                let version = head.map(|head| check::schema_version(head.schema_version));
                if let Ok(Err(other_version)) = version {
                    other_version
                } else if e.is_eof() {
                    format!("it ends too early: {e}")
                } else {
                    e.to_string()
                }
            })
            .and_then(|record: RunRecord| {
                check::record_of_study(&record, &self.study)?;
                check::record_of_slot(&record, policy, scenario, repetition)?;
                Ok(record)
            });
        record
            .map(Some)
            .map_err(|reason| ResultsError::DamagedRun { path, reason })
    }

    fn write_study(&self) -> Result<(), ResultsError> {
        let path = self.root.join(STUDY_FILE);
        let file = StudyFile {
            format: FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            study: self.study.clone(),
        };
        let json = pretty_json(&file, &path)?;
        write_file(&path, &json)
    }
}

fn pretty_json(value: &impl Serialize, path: &Path) -> Result<Vec<u8>, ResultsError> {
    let mut json = serde_json::to_vec_pretty(value)
        .map_err(|e| ResultsError::io("write", path, io::Error::from(e)))?;
    json.push(b'\n');
    Ok(json)
}

/// `None` where there is no `study.json`, or one of somebody else's.
fn read_study(root: &Path) -> Result<Option<StudyDescription>, ResultsError> {
    let path = root.join(STUDY_FILE);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(ResultsError::io("read", path, e)),
    };
    let damaged = |e: serde_json::Error| ResultsError::DamagedStudy {
        path: path.clone(),
        reason: e.to_string(),
    };
    let head: StudyFileHead = serde_json::from_slice(&text).map_err(damaged)?;
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
    let file: StudyFile = serde_json::from_slice(&text).map_err(damaged)?;
    Ok(Some(file.study))
}

fn refuse_other_study(
    root: &Path,
    found: &StudyDescription,
    wanted: &StudyDescription,
) -> Result<(), ResultsError> {
    let identities = [
        ("study", found.name.clone(), wanted.name.clone()),
        ("study digest", found.digest.clone(), wanted.digest.clone()),
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
    for entry in fs::read_dir(root).map_err(|e| ResultsError::io("read the folder", root, e))? {
        let entry = entry.map_err(|e| ResultsError::io("read the folder", root, e))?;
        let name = entry.file_name();
        if name != LOCK_FILE && !is_partial_file(&name.to_string_lossy()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first thing in the folder that no study writes.
fn stranger(root: &Path) -> Result<Option<PathBuf>, ResultsError> {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(root).map_err(|e| ResultsError::io("read the folder", root, e))? {
        let entry = entry.map_err(|e| ResultsError::io("read the folder", root, e))?;
        let kind = entry
            .file_type()
            .map_err(|e| ResultsError::io("read", entry.path(), e))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_known = if kind.is_dir() {
            FOLDERS.contains(&&*name) || is_partial_file(&name)
        } else {
            FILES.contains(&&*name) || name == LOCK_FILE || is_partial_file(&name)
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
    let file = File::create(&path).map_err(|e| ResultsError::io("write", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(ResultsError::InUse {
            path: root.to_owned(),
        }),
        // Some file systems know no locks; files still appear whole or not at all.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn remove_results(root: &Path) -> Result<(), ResultsError> {
    let gone = |path: &Path, result: io::Result<()>| match result {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ResultsError::io("remove", path, e)),
        _ => Ok(()),
    };
    // The marker last: a folder half removed is still known as a results folder.
    for name in FOLDERS {
        let path = root.join(name);
        gone(&path, fs::remove_dir_all(&path))?;
    }
    for name in FILES {
        let path = root.join(name);
        gone(&path, fs::remove_file(&path))?;
    }
    Ok(())
}

/// Remove what killed processes left half-written. Only called while the lock is held.
fn sweep_partial_files(folder: &Path) -> Result<(), ResultsError> {
    for entry in fs::read_dir(folder).map_err(|e| ResultsError::io("read the folder", folder, e))? {
        let entry = entry.map_err(|e| ResultsError::io("read the folder", folder, e))?;
        let path = entry.path();
        let kind = entry
            .file_type()
            .map_err(|e| ResultsError::io("read", &path, e))?;
        if kind.is_dir() {
            sweep_partial_files(&path)?;
        } else if is_partial_file(&entry.file_name().to_string_lossy()) {
            fs::remove_file(&path).map_err(|e| ResultsError::io("remove", &path, e))?;
        }
    }
    Ok(())
}

fn is_partial_file(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(atomic::TEMPORARY_SUFFIX)
}

const STUDY_FILE: &str = "study.json";
/// What a study writes at the top of its folder. The marker is the last one.
const FOLDERS: [&str; 6] = [
    "runs",
    "data",
    "figures",
    "packets",
    PREDICTION_FOLDER,
    REPLAY_FOLDER,
];
const FILES: [&str; 4] = ["report.html", "host.json", UNSUPPORTED_FILE, STUDY_FILE];
const UNSUPPORTED_FILE: &str = "unsupported.json";
const PREDICTION_FOLDER: &str = "prediction";
const REPLAY_FOLDER: &str = "replay";
const LOCK_FILE: &str = ".lock";
const FORMAT: &str = "slicewise results";
