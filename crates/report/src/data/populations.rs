//! Populations, over the repetitions of each policy × scenario.

use super::folder::DataFolder;
use super::table::{Column, Kind, Schema, TableWriter, Value};
use crate::error::ReportError;
use crate::populations::PopulationFinding;

pub(crate) const POPULATIONS: Schema = Schema {
    name: "populations",
    columns: &[
        Column::new("policy", Kind::Text),
        Column::new("scenario", Kind::Text),
        Column::new("slice", Kind::Text),
        Column::new("slices", Kind::Integer),
        Column::new("all_slices", Kind::Integer),
        Column::new("repetitions", Kind::Integer),
        Column::new("backlogged", Kind::Flag),
        Column::optional("delay_max_ns", Kind::Integer),
        Column::optional("delay_bound_ns", Kind::Integer),
        Column::optional("least_bytes_per_weight", Kind::Integer),
        Column::optional("most_bytes_per_weight", Kind::Integer),
        Column::new("turn_bytes", Kind::Integer),
        Column::new("state_bytes", Kind::Integer),
    ],
};

/// Write what every population got. Times of the host are not in it: they are no results.
pub(crate) fn write_populations(
    folder: &DataFolder,
    populations: &[PopulationFinding],
) -> Result<(), ReportError> {
    let mut table = TableWriter::create(folder, POPULATIONS)?;
    for finding in populations {
        let row: [Value<'_>; 13] = [
            finding.policy.as_str().into(),
            finding.scenario.as_str().into(),
            finding.slice.as_str().into(),
            finding.slices.into(),
            finding.all_slices.into(),
            finding.repetitions.into(),
            finding.backlogged.into(),
            finding.delay_max_ns.into(),
            finding.delay_bound_ns.into(),
            finding.bytes_per_weight.map(|(least, _)| least).into(),
            finding.bytes_per_weight.map(|(_, most)| most).into(),
            finding.turn_bytes.into(),
            finding.state_bytes.into(),
        ];
        table.row(&row)?;
    }
    table.finish()
}
