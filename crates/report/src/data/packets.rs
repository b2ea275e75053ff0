//! Every packet of a run, on request: too much for anybody's eyes, and what a database is for.
//!
//! `<folder>/<policy>/<scenario>/rep-000/packets-00000.parquet`, as many files as it takes, so that a
//! reader that works on several files at once has some.

use super::folder::DataFolder;
use super::parquet_table::ParquetTable;
use super::table::{Column, Kind, Schema, Value};
use crate::error::ReportError;
use crate::layout::{ResultsError, path_component};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::RunKey;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const PACKETS: Schema = Schema {
    name: "packets",
    columns: &[
        Column::new("run_id", Kind::Text),
        Column::new("slice", Kind::Text),
        Column::new("flow", Kind::Text),
        Column::new("seq", Kind::Integer),
        Column::new("t_sent_ns", Kind::Integer),
        Column::optional("t_received_ns", Kind::Integer),
        Column::new("len", Kind::Integer),
        Column::new("lost", Kind::Flag),
        Column::optional("colour", Kind::Text),
    ],
};

/// Rows of a file: some 100 MB.
const ROWS_IN_A_FILE: u64 = 8 << 20;

/// What became of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRow<'a> {
    /// Its slice.
    pub slice: &'a str,
    /// Its flow, in one line.
    pub flow: &'a str,
    /// Its number among all packets of the sending point, in the order sent, from 0.
    pub sequence: u64,
    /// When it was sent, ns from the start of the run.
    pub sent_ns: u64,
    /// When it was received, ns from the start of the run; `None` where it was lost.
    pub received_ns: Option<u64>,
    /// Bytes, L2 without FCS.
    pub bytes: u32,
    /// Drop precedence it arrived with, where its code point is one of assured forwarding
    /// (RFC 2597): `green`, `yellow` or `red`.
    pub colour: Option<&'static str>,
}

/// Writes the packets of one run.
pub struct PacketTable {
    folder: DataFolder,
    run_id: String,
    files: u32,
    rows: u64,
    table: ParquetTable,
}

impl PacketTable {
    /// The packets of run `key` of `study`, in folders of its own below `folder`. What an earlier command left
    /// there of the same run is removed.
    ///
    /// # Errors
    /// Where the folder or the first file cannot be made.
    pub fn create(
        folder: &Path,
        key: &RunKey,
        study: &StudyDescription,
    ) -> Result<Self, ReportError> {
        let repetition = repetition(key);
        let path = Self::folder_of_run(folder, key);
        if path.exists() {
            fs::remove_dir_all(&path)
                .map_err(|e| ResultsError::io("remove the packets in", &path, e))?;
        }
        fs::create_dir_all(&path).map_err(|e| ResultsError::io("create the folder", &path, e))?;
        let folder = DataFolder::new(path, study);
        Ok(Self {
            table: ParquetTable::create(&folder, &file_name(0), PACKETS)?,
            folder,
            run_id: format!("{}/{}/{repetition}", key.policy, key.scenario),
            files: 0,
            rows: 0,
        })
    }

    /// Where the packets of run `key` are, below `folder`.
    #[must_use]
    pub fn folder_of_run(folder: &Path, key: &RunKey) -> PathBuf {
        folder
            .join(path_component(&key.policy))
            .join(path_component(&key.scenario))
            .join(repetition(key))
    }

    /// Write one packet.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn row(&mut self, row: &PacketRow<'_>) -> Result<(), ReportError> {
        if self.rows >= ROWS_IN_A_FILE {
            self.files += 1;
            self.rows = 0;
            let next = ParquetTable::create(&self.folder, &file_name(self.files), PACKETS)?;
            std::mem::replace(&mut self.table, next).end()?.commit()?;
        }
        self.rows += 1;
        let values: [Value<'_>; 9] = [
            self.run_id.as_str().into(),
            row.slice.into(),
            row.flow.into(),
            row.sequence.into(),
            row.sent_ns.into(),
            row.received_ns.into(),
            row.bytes.into(),
            row.received_ns.is_none().into(),
            row.colour.into(),
        ];
        self.table.row(&values)
    }

    /// Complete the last file.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn finish(self) -> Result<(), ReportError> {
        self.table.end()?.commit()?;
        Ok(())
    }
}

fn repetition(key: &RunKey) -> String {
    format!("rep-{:03}", key.repetition)
}

fn file_name(number: u32) -> String {
    format!("packets-{number:05}")
}
