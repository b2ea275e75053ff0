//! Files in a folder of runs on real packets beside its records.

use crate::folder::pretty_json;
use crate::names::{FACTS_BYTES, PREDICTION_FOLDER, REPLAY_FOLDER, STUDY_FILE, UNSUPPORTED_FILE};
use crate::open::{self, ReadError};
use crate::{Action, ResultsError, ResultsFolder, write_file};
use serde::{Deserialize, Serialize};
use slicewise_stats::prediction::OfferedTraffic;
use std::path::PathBuf;
use std::{fs, io};

/// A policy that has no runs because what was to carry them out cannot express it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unsupported {
    /// The policy's name.
    pub policy: String,
    /// Why, for people: "this kernel has no FQ-CoDel".
    pub reason: String,
}

impl ResultsFolder {
    /// Write down which policies cannot be supported here, replacing what was written before; with
    /// none, the file is removed.
    ///
    /// # Errors
    /// Where the file cannot be written; [`ResultsError::Gone`] where the folder is not there any
    /// more.
    pub fn write_unsupported(&self, policies: &[Unsupported]) -> Result<(), ResultsError> {
        self.check_in_place()?;
        let path = self.unsupported_path();
        if policies.is_empty() {
            return match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    Err(ResultsError::io(Action::Remove, &path, e))
                }
                _ => Ok(()),
            };
        }
        let json = pretty_json(&policies, &path)?;
        write_file(&path, &json)
    }

    /// The policies that cannot be supported here; none where nothing is written of it.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub fn read_unsupported(&self) -> Result<Vec<Unsupported>, ResultsError> {
        let path = self.unsupported_path();
        let damaged = |reason: String| ResultsError::DamagedUnsupported {
            path: path.clone(),
            reason,
        };
        let text = match open::read(&path, FACTS_BYTES) {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(text)) => text,
            Err(ReadError::Io(e)) => return Err(ResultsError::io(Action::Read, path, e)),
            Err(error) => return Err(damaged(error.to_string())),
        };
        serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))
    }

    /// The folder of the same cells simulated with such traffic, whether there is one or not.
    #[must_use]
    pub fn prediction_path(&self, traffic: OfferedTraffic) -> PathBuf {
        self.path().join(match traffic {
            OfferedTraffic::AsStudied => PREDICTION_FOLDER,
            OfferedTraffic::AsSent => REPLAY_FOLDER,
        })
    }

    /// The same cells simulated with such traffic; `None` where they were not.
    ///
    /// # Errors
    /// Where they are there and cannot be read.
    pub fn open_prediction(&self, traffic: OfferedTraffic) -> Result<Option<Self>, ResultsError> {
        let path = self.prediction_path(traffic);
        if path.join(STUDY_FILE).is_file() {
            Self::open(path).map(Some)
        } else {
            Ok(None)
        }
    }

    fn unsupported_path(&self) -> PathBuf {
        self.path().join(UNSUPPORTED_FILE)
    }
}
