//! Where tables are written, and what they say of their origin.

use super::column::{Column, Schema};
use parquet::file::metadata::KeyValue;
use slicewise_stats::description::StudyDescription;
use std::path::{Path, PathBuf};

/// A folder of tables of one study.
#[derive(Debug, Clone)]
pub(crate) struct DataFolder {
    path: PathBuf,
    origin: [(&'static str, String); 4],
    /// Columns with which every table begins.
    first_columns: Vec<Column>,
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
        Self {
            path,
            origin,
            first_columns: Vec::new(),
        }
    }

    /// The same folder, whose tables begin with these columns.
    pub(super) fn with_first_columns(self, first_columns: Vec<Column>) -> Self {
        Self {
            first_columns,
            ..self
        }
    }

    /// All columns of a table.
    pub(super) fn columns(&self, schema: Schema) -> Vec<Column> {
        let mut columns = self.first_columns.clone();
        columns.extend(schema.columns());
        columns
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
}
