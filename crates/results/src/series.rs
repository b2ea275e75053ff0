//! The folder around the results of several cases: which there are.

use crate::atomic::write_file;
use crate::error::{Action, ResultsError};
use crate::names::STUDY_BYTES;
use crate::open::{self, ReadError, make_folder};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of [`SeriesDescription`].
const SCHEMA_VERSION: u32 = 1;
const FILE: &str = "series.json";

/// Contents of `series.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesDescription {
    /// Version of this schema.
    pub schema_version: u32,
    /// Name of the series.
    pub name: String,
    /// One line for people; may be empty.
    pub title: String,
    /// A paragraph for people; may be empty.
    pub description: String,
    /// Where the published figures come from; may be empty.
    pub source: String,
    /// Version of the program that wrote it.
    pub program_version: String,
    /// The cases, in their order: names of the folders beside this file.
    pub cases: Vec<String>,
    /// Cases that the back ends could not carry out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A case that a back end could not carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The name of the folder that its results would have had.
    pub case: String,
    /// One line for people; may be empty.
    pub title: String,
    /// The back end.
    pub backend: String,
    /// Why, for people.
    pub reason: String,
}

impl SeriesDescription {
    /// A description in the schema of this version of the program.
    #[must_use]
    pub const fn new(name: String, program_version: String, cases: Vec<String>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            name,
            title: String::new(),
            description: String::new(),
            source: String::new(),
            program_version,
            cases,
            left_out: Vec::new(),
        }
    }

    /// Returns true if the folder `case` is among its cases, or those left out.
    fn names(&self, case: &str) -> bool {
        self.cases.iter().any(|one| one == case) || self.left_out.iter().any(|one| one.case == case)
    }
}

/// The part of [`SeriesDescription`] that every version of the program can read.
#[derive(Debug, Deserialize)]
struct SeriesHead {
    schema_version: u32,
}

/// A folder with a results folder for each case.
#[derive(Debug, Clone)]
pub struct SeriesFolder {
    path: PathBuf,
    description: SeriesDescription,
}

impl SeriesFolder {
    /// Make the folder, or take over that of the same series. Cases that are there and not among these stay known if
    /// `is_kept`, and so do those that were left out.
    ///
    /// # Errors
    /// Where it holds something else, or cannot be written.
    pub fn create(
        path: &Path,
        mut description: SeriesDescription,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<Self, ResultsError> {
        if path.join("study.json").exists() {
            return Err(ResultsError::NotASeries {
                path: path.to_owned(),
            });
        }
        if let Some(earlier) = Self::open(path)? {
            let earlier = earlier.description;
            if earlier.name != description.name {
                return Err(ResultsError::OtherSeries {
                    path: path.to_owned(),
                    theirs: earlier.name,
                    ours: description.name,
                });
            }
            let new = |case: &String| !description.cases.contains(case) && is_kept(case);
            let others: Vec<String> = earlier.cases.into_iter().filter(new).collect();
            description.cases.extend(others);
            let left_out = earlier.left_out.into_iter();
            let left_out = left_out.filter(|one| !description.names(&one.case));
            let left_out: Vec<LeftOut> = left_out.collect();
            description.left_out.extend(left_out);
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| ResultsError::io(Action::CreateFolder, parent, error))?;
        }
        make_folder(path)?;
        let file = path.join(FILE);
        let json = serde_json::to_vec_pretty(&description)
            .map_err(|error| ResultsError::io(Action::Write, &file, error.into()))?;
        write_file(&file, &json)?;
        Ok(Self {
            path: path.to_owned(),
            description,
        })
    }

    /// The folder at `path`, if it is one of a series.
    ///
    /// # Errors
    /// Where its description cannot be read, is damaged, or has another schema.
    pub fn open(path: &Path) -> Result<Option<Self>, ResultsError> {
        if !path.is_dir() {
            return Ok(None);
        }
        let file = path.join(FILE);
        let damaged = |reason: String| ResultsError::DamagedSeries {
            path: file.clone(),
            reason,
        };
        let text = match open::read(&file, STUDY_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(ReadError::Io(error)) => return Err(ResultsError::io(Action::Read, file, error)),
            Err(error) => return Err(damaged(error.to_string())),
        };
        let head: SeriesHead =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if head.schema_version != SCHEMA_VERSION {
            return Err(ResultsError::UnknownSchema {
                path: file,
                found: head.schema_version,
                supported: SCHEMA_VERSION,
            });
        }
        let description: SeriesDescription =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        Ok(Some(Self {
            path: path.to_owned(),
            description,
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its description.
    #[must_use]
    pub const fn description(&self) -> &SeriesDescription {
        &self.description
    }

    /// The folders of its cases, in their order; some may not be there yet.
    pub fn cases(&self) -> impl Iterator<Item = PathBuf> {
        let names = self.description.cases.iter();
        // A name leads nowhere else.
        let plain = names.filter(|name| !name.contains(['/', '\\']) && name.as_str() != "..");
        plain.map(|name| self.path.join(name))
    }

    /// The folder of figures over the cases.
    #[must_use]
    pub fn figures_path(&self) -> PathBuf {
        self.path.join("figures")
    }

    /// The folder of tables over the cases.
    #[must_use]
    pub fn data_path(&self) -> PathBuf {
        self.path.join("data")
    }

    /// The page over all cases.
    #[must_use]
    pub fn report_path(&self) -> PathBuf {
        self.path.join("report.html")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, cases: &[&str]) -> SeriesDescription {
        let cases = cases.iter().map(|&case| case.to_owned()).collect();
        SeriesDescription::new(name.to_owned(), "1".to_owned(), cases)
    }

    #[test]
    fn a_folder_keeps_the_cases_that_were_run_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/series");
        SeriesFolder::create(&path, described("s", &["s-x", "s-a", "s-b"]), |_| true).unwrap();
        SeriesFolder::create(&path, described("s", &["s-b", "s-c"]), |case| case != "s-x").unwrap();
        let opened = SeriesFolder::open(&path).unwrap().unwrap();
        assert_eq!(opened.description().cases, ["s-b", "s-c", "s-a"]);
        assert_eq!(opened.cases().next(), Some(path.join("s-b")));
    }

    #[test]
    fn a_case_is_left_out_until_it_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let left_out = |reason: &str| LeftOut {
            case: "s-b".to_owned(),
            title: String::new(),
            backend: "dpdk".to_owned(),
            reason: reason.to_owned(),
        };
        let create = |cases: &[&str], left_out: &[LeftOut]| {
            let description = SeriesDescription {
                left_out: left_out.to_vec(),
                ..described("s", cases)
            };
            SeriesFolder::create(&path, description, |_| true).unwrap();
            let opened = SeriesFolder::open(&path).unwrap().unwrap();
            opened.description().left_out.clone()
        };
        assert_eq!(create(&["s-a"], &[left_out("old")]), [left_out("old")]);
        assert_eq!(create(&["s-a"], &[]), [left_out("old")]);
        assert_eq!(create(&["s-a"], &[left_out("new")]), [left_out("new")]);
        assert_eq!(create(&["s-b"], &[]), []);
    }

    #[test]
    fn a_description_of_another_schema_or_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        SeriesFolder::create(&path, described("s", &["s-a"]), |_| true).unwrap();
        let file = path.join(FILE);
        let text = std::fs::read_to_string(&file).unwrap();
        let later = text.replace("\"schema_version\": 1", "\"schema_version\": 2, \"new\": 3");
        std::fs::write(&file, later).unwrap();
        let refused = SeriesFolder::open(&path).unwrap_err();
        let ResultsError::UnknownSchema { found: 2, .. } = refused else {
            panic!("{refused}");
        };
        for damaged in [&text[..text.len() / 2], "", "[]"] {
            std::fs::write(&file, damaged).unwrap();
            let refused = SeriesFolder::open(&path).unwrap_err();
            assert!(refused.is_users_mistake(), "{refused}");
            assert!(refused.to_string().contains("is damaged"), "{refused}");
        }
    }

    #[test]
    fn what_is_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series");
        SeriesFolder::create(&path, described("one", &[]), |_| true).unwrap();
        let refused = SeriesFolder::create(&path, described("other", &[]), |_| true).unwrap_err();
        assert!(refused.is_users_mistake(), "{refused}");
        std::fs::write(folder.path().join("study.json"), "{}").unwrap();
        let refused =
            SeriesFolder::create(folder.path(), described("one", &[]), |_| true).unwrap_err();
        assert!(refused.is_users_mistake(), "{refused}");
        assert!(!folder.path().join(FILE).exists());
    }

    #[test]
    fn a_folder_of_a_case_lies_beside_its_description() {
        let folder = tempfile::tempdir().unwrap();
        let cases = described("s", &["../elsewhere", "..", "s-a"]);
        let series = SeriesFolder::create(&folder.path().join("s"), cases, |_| true).unwrap();
        let cases: Vec<PathBuf> = series.cases().collect();
        assert_eq!(cases, [folder.path().join("s/s-a")]);
    }
}
