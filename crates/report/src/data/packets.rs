//! Every packet of a run, on request: too much for anybody's eyes, and what a database is for.
//!
//! `<folder>/<policy>/<scenario>/rep-000/packets-00000.parquet`, as many files as it takes, so that a
//! reader that works on several files at once has some.

use super::column::columns;
use super::folder::DataFolder;
use super::parquet_table::ParquetTable;
use crate::error::ReportError;
use slicewise_results::{Action, ResultsError, is_packet_file, make_folder};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::path::run_components;
use slicewise_stats::record::RunKey;
use std::path::{Path, PathBuf};
use std::{fs, io};

columns! {
    /// Every packet of a run.
    Packets<'a> = "packets" (run_id: &'a str, row: &PacketRow<'a>) {
        run_id: &str = run_id,
        slice: &str = row.slice,
        flow: &str = row.flow,
        seq: u64 = row.sequence,
        t_sent_ns: u64 = row.sent_ns,
        t_received_ns: Option<u64> = row.received_ns,
        len: u32 = row.bytes,
        lost: bool = row.received_ns.is_none(),
        colour: Option<&str> = row.colour,
    }
}

/// Rows of a file: some 100 MB.
const ROWS_IN_A_FILE: u64 = 8 << 20;

/// Fate of one packet.
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
        Self::remove(folder, key)?;
        let repetition = repetition(key);
        let mut path = folder.to_owned();
        make_folder(&path)?;
        for part in run_components(key) {
            path.push(part);
            make_folder(&path)?;
        }
        let folder = DataFolder::new(path, study);
        Ok(Self {
            table: ParquetTable::create(&folder, &file_name(0), Packets::SCHEMA)?,
            folder,
            run_id: format!("{}/{}/{repetition}", key.policy, key.scenario),
            files: 0,
            rows: 0,
        })
    }

    /// Returns true if packets of run `key` are there, below `folder`.
    #[must_use]
    pub fn is_there(folder: &Path, key: &RunKey) -> bool {
        let path = Self::folder_of_run(folder, key);
        path.join(format!("{}.parquet", file_name(0))).is_file()
    }

    /// Remove the packets of run `key` below `folder`, and nothing else that lies beside them.
    ///
    /// # Errors
    /// Where they are there and cannot be removed.
    pub fn remove(folder: &Path, key: &RunKey) -> Result<(), ReportError> {
        let path = Self::folder_of_run(folder, key);
        let failed = |e| ResultsError::io(Action::RemovePackets, &path, e);
        let entries = match fs::read_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if is_packet_file(&name.to_string_lossy()) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        // It stays where something else lies in it.
        let _ = fs::remove_dir(&path);
        Ok(())
    }

    fn folder_of_run(folder: &Path, key: &RunKey) -> PathBuf {
        let mut path = folder.to_owned();
        path.extend(run_components(key));
        path
    }

    /// Write one packet.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn row(&mut self, row: &PacketRow<'_>) -> Result<(), ReportError> {
        if self.rows >= ROWS_IN_A_FILE {
            self.files += 1;
            self.rows = 0;
            let next = ParquetTable::create(&self.folder, &file_name(self.files), Packets::SCHEMA)?;
            std::mem::replace(&mut self.table, next).end()?.commit()?;
        }
        self.rows += 1;
        self.table.row(&Packets::row(&self.run_id, row))
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
