//! Runs of a folder whose inputs are those that a study describes.

use crate::checksum::{self, Form};
use crate::open::ReadError;
use crate::records::{self, RecordFiles, RecordText};
use crate::{Action, ResultsError};
use serde::Deserialize;
use slicewise_stats::description::StudyDescription;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs of a policy under a scenario that lie in a folder.
#[derive(Debug)]
struct Cell<'a> {
    policy: &'a str,
    scenario: &'a str,
    /// The file of their records.
    path: PathBuf,
    runs: u64,
    /// They have the inputs that the study describes.
    is_same: bool,
}

/// Runs of a study that lie in a folder.
#[derive(Debug)]
pub(crate) struct RunsOfStudy<'a>(Vec<Cell<'a>>);

/// The part of a record that says what it depends on.
#[derive(Debug, Deserialize)]
struct RecordHead {
    key: KeyHead,
}

#[derive(Debug, Deserialize)]
struct KeyHead {
    inputs: String,
}

impl<'a> RunsOfStudy<'a> {
    /// Find them. All runs of a policy under a scenario have the same inputs, so the first that can be read says which.
    pub(crate) fn below(
        root: &Path,
        study: &'a StudyDescription,
        records: &RecordFiles,
    ) -> Result<Self, ResultsError> {
        let mut cells = Vec::new();
        for policy in &study.policies {
            for scenario in &study.scenarios {
                let (policy, scenario) = (policy.name.as_str(), scenario.name.as_str());
                let path = records::path(root, policy, scenario);
                let repetitions = match records.repetitions(&path) {
                    Err(ReadError::Io(e)) => return Err(ResultsError::io(Action::Read, path, e)),
                    // Anything but a file is found out when its turn comes.
                    found => found.unwrap_or_default(),
                };
                if !repetitions.is_empty() {
                    let texts = repetitions.iter().map(|one| records.read(&path, *one));
                    let inputs = texts.filter_map(|text| inputs_of(text.ok()??)).next();
                    cells.push(Cell {
                        policy,
                        scenario,
                        runs: repetitions.len() as u64,
                        // So are records none of which can be read.
                        is_same: inputs.is_none_or(|it| it == study.inputs_of(policy, scenario)),
                        path,
                    });
                }
            }
        }
        Ok(Self(cells))
    }

    /// Returns true if a file is one of runs that the study describes.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let mut same = self.0.iter().filter(|cell| cell.is_same);
        same.any(|cell| cell.path == path)
    }

    /// Refuse a folder with runs whose inputs the study describes otherwise.
    pub(crate) fn refuse_others(&self, root: &Path) -> Result<(), ResultsError> {
        let count = |is_same: bool| {
            let of = self.0.iter().filter(|cell| cell.is_same == is_same);
            of.map(|cell| cell.runs).sum::<u64>()
        };
        match count(false) {
            0 => Ok(()),
            runs => Err(ResultsError::OtherInputs {
                path: root.to_owned(),
                runs,
                of: self.of_others(),
                kept: count(true),
            }),
        }
    }

    /// Of which policies, or scenarios, the other runs are.
    fn of_others(&self) -> String {
        let named = |what: &str, name: for<'b> fn(&'b Cell<'a>) -> &'a str| {
            let same: BTreeSet<&str> = self
                .0
                .iter()
                .filter(|cell| cell.is_same)
                .map(name)
                .collect();
            let others = self.0.iter().filter(|cell| !cell.is_same).map(name);
            let others: BTreeSet<&str> = others.collect();
            let names: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
            others
                .is_disjoint(&same)
                .then(|| format!(" of {what} {}", names.join(", ")))
        };
        if self.0.iter().all(|cell| !cell.is_same) {
            return String::new();
        }
        named("policy", |cell| cell.policy)
            .or_else(|| named("scenario", |cell| cell.scenario))
            .unwrap_or_else(|| " of some policies under some scenarios".to_owned())
    }
}

fn inputs_of(mut record: RecordText) -> Option<String> {
    let json = checksum::unseal(&mut record.text, Form::Compact).ok()?;
    let head: RecordHead = serde_json::from_slice(json).ok()?;
    Some(head.key.inputs)
}

/// Names the policies and scenarios that are new in `study`, and those that only `before` has: a clause each, for people.
pub(crate) fn changes(before: &StudyDescription, study: &StudyDescription) -> Vec<String> {
    let policies =
        [before, study].map(|of| of.policies.iter().map(|policy| &policy.name).collect());
    let scenarios =
        [before, study].map(|of| of.scenarios.iter().map(|scenario| &scenario.name).collect());
    let mut changes = Vec::new();
    for (what, [before, after]) in [("policy", policies), ("scenario", scenarios)] {
        let (before, after): (Vec<&String>, Vec<&String>) = (before, after);
        let new = after.iter().filter(|name| !before.contains(name));
        changes.extend(new.map(|name| format!("{what} `{name}` is new")));
        let gone = before.iter().filter(|name| !after.contains(name));
        changes
            .extend(gone.map(|name| format!("{what} `{name}` is gone, and its runs stay unread")));
    }
    changes
}
