//! Verdicts under several seeds.

use super::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::error::ReportError;
use slicewise_stats::seeds::SeedTable;

pub(crate) const SEED_VERDICTS: Schema = Schema {
    name: "seed_verdicts",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("attribute", Kind::Text),
        Column::new("seed", Kind::Unsigned),
        Column::new("verdict", Kind::Text),
        Column::optional("published", Kind::Text),
        Column::optional("agrees", Kind::Flag),
    ],
};

/// The first line of the table as CSV.
pub(crate) fn seed_verdicts_header() -> String {
    SEED_VERDICTS.header()
}

/// Write the verdict under each seed.
pub(crate) fn write_seed_verdicts(
    folder: &DataFolder,
    seeds: &SeedTable,
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, SEED_VERDICTS)?;
    for row in &seeds.rows {
        let attribute = row.attribute.to_string();
        let published = row.published.map(|yes| if yes { "yes" } else { "no" });
        for (seed, verdict) in &row.verdicts {
            let outcome = verdict.outcome.to_string();
            table.row(&[
                row.policy.as_str().into(),
                attribute.as_str().into(),
                Value::Unsigned(*seed),
                outcome.as_str().into(),
                published.into(),
                verdict.agrees.into(),
            ])?;
        }
    }
    table.finish()
}
