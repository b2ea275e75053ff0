//! Every number as CSV and Parquet. The schema is described in `docs/results.md`; a test holds
//! the two together.

mod cells;
mod published;
mod runs;
mod table;
mod verdicts;

pub(crate) use cells::write_cells;
pub(crate) use published::write_published;
pub(crate) use runs::RunTables;
pub(crate) use verdicts::write_verdicts;

#[cfg(test)]
use table::{Kind, Schema};

/// Every table that a report writes.
#[cfg(test)]
const SCHEMAS: [Schema; 9] = [
    runs::RUNS,
    runs::SERIES,
    runs::DELAY_CDF,
    runs::IAT_CDF,
    runs::DROPS,
    cells::CELLS,
    verdicts::VERDICTS,
    verdicts::VERDICT_TESTS,
    published::PUBLISHED,
];
