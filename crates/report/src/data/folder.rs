//! Where tables are written, and what they say of their origin.

use super::table::{Schema, Value, write_table};
use crate::error::ReportError;
use parquet::file::metadata::KeyValue;
use slicewise_results::ResultsError;
use slicewise_stats::description::StudyDescription;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A folder of tables of one study.
#[derive(Debug, Clone)]
pub(crate) struct DataFolder {
    path: PathBuf,
    origin: [(&'static str, String); 4],
}

impl DataFolder {
    /// Tables of `study` in the folder `path`.
    pub(crate) fn new(path: PathBuf, study: &StudyDescription) -> Self {
        let origin = [
            ("slicewise.study", study.name.clone()),
            ("slicewise.study_digest", study.digest.clone()),
            ("slicewise.program_version", study.program_version.clone()),
            ("slicewise.seed", study.seed.to_string()),
        ];
        Self { path, origin }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The origin as metadata of a Parquet file.
    pub(super) fn metadata(&self) -> Vec<KeyValue> {
        let entries = self.origin.iter();
        entries
            .map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()))
            .collect()
    }

    /// Write a table; without rows, remove the one that an earlier report had.
    pub(super) fn write_or_remove<'a>(
        &self,
        schema: Schema,
        rows: Option<impl IntoIterator<Item = Vec<Value<'a>>>>,
    ) -> Result<(), ReportError> {
        if let Some(rows) = rows {
            return write_table(self, schema, rows);
        }
        for extension in ["csv", "parquet"] {
            let path = self.path.join(format!("{}.{extension}", schema.name));
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(ResultsError::io("remove", path, e).into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
