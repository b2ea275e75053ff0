//! Requests, flows and segments of a run, one by one, on request.

use super::column::{Run, Seed, columns};
use super::folder::DataFolder;
use super::parquet_table::ParquetTable;
use crate::error::ReportError;
use slicewise_results::{AtomicFile, ResultsFolder};
use slicewise_stats::application::{SourceTransactions, Transaction};
use slicewise_stats::record::RunKey;
use std::path::Path;

columns! {
    /// Requests, flows and segments.
    Transactions<'a> = "transactions" (key: &'a RunKey, of: &'a SourceTransactions, one: &Transaction) {
        ..Run(key),
        seed: Seed = Seed(key.seed),
        slice: &str = of.slice.as_str(),
        source: &str = of.source.as_str(),
        kind: &str = one.kind,
        connection: u32 = one.connection,
        number: u64 = one.number,
        begins_ns: u64 = one.begins_ns,
        sent_ns: Option<u64> = one.sent_ns,
        ends_ns: Option<u64> = one.ends_ns,
        bytes: Option<u64> = one.bytes,
        quality: Option<u64> = one.quality,
    }
}

/// Writes the transactions of a run. Their file has its name once it is committed.
///
/// # Errors
/// Where the file cannot be written.
pub fn write_transactions(
    folder: &ResultsFolder,
    key: &RunKey,
    sources: &[SourceTransactions],
) -> Result<AtomicFile, ReportError> {
    let path = folder.prepare_transactions(key)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let parent = path.parent().unwrap_or(Path::new(""));
    let data = DataFolder::new(parent.to_owned(), folder.study());
    let mut table = ParquetTable::create(&data, &name, Transactions::SCHEMA)?;
    for of in sources {
        for one in &of.transactions {
            table.row(&Transactions::row(key, of, one))?;
        }
    }
    table.end()
}
