//! Every number as CSV and Parquet. The schema is described in `docs/results.md`; a test holds
//! the two together.

mod applications;
mod column;
mod estimates;
mod folder;
mod packets;
mod parquet_table;
mod runs;
mod series;
mod table;
mod testbed;
mod transactions;
mod verdicts;

pub(crate) use folder::DataFolder;
pub use packets::{PacketRow, PacketTable};
pub(crate) use runs::RunTables;
pub(crate) use series::SeriesTables;
pub use transactions::write_transactions;
pub(crate) use verdicts::{SeedVerdicts, write_seed_verdicts};

use crate::error::ReportError;
use crate::findings::Findings;

/// Write what all runs together come to.
pub(crate) fn write(folder: &DataFolder, findings: &Findings) -> Result<(), ReportError> {
    estimates::write(folder, findings)?;
    applications::write_cells(folder, &findings.main().summary)?;
    verdicts::write(folder, &findings.main().verdicts, &findings.sides)?;
    testbed::write(folder, &findings.sides)
}

#[cfg(test)]
mod tests {
    use super::column::Schema;
    use super::{applications, estimates, packets, runs, testbed, transactions, verdicts};

    /// Every table that a report writes into its folder of data.
    const TABLES: [Schema; 28] = [
        runs::Runs::SCHEMA,
        runs::Bins::SCHEMA,
        runs::DelayCdf::SCHEMA,
        runs::IatCdf::SCHEMA,
        runs::ReceivedIatCdf::SCHEMA,
        runs::Drops::SCHEMA,
        runs::LinkLosses::SCHEMA,
        runs::Episodes::SCHEMA,
        runs::Queues::SCHEMA,
        runs::Elephants::SCHEMA,
        runs::Phases::SCHEMA,
        applications::Applications::SCHEMA,
        applications::Bins::SCHEMA,
        applications::Times::SCHEMA,
        applications::Cells::SCHEMA,
        estimates::Cells::SCHEMA,
        verdicts::Verdicts::SCHEMA,
        verdicts::Tests::SCHEMA,
        estimates::Published::SCHEMA,
        estimates::Populations::SCHEMA,
        runs::Flows::SCHEMA,
        runs::Hops::SCHEMA,
        testbed::BackEnds::SCHEMA,
        verdicts::BesideVerdicts::SCHEMA,
        estimates::BesideCells::SCHEMA,
        estimates::Predictions::SCHEMA,
        testbed::Runs::SCHEMA,
        testbed::Senders::SCHEMA,
    ];

    #[test]
    fn a_results_folder_knows_every_table() {
        assert_eq!(TABLES.map(|table| table.name), slicewise_results::TABLES);
    }

    fn schemas() -> impl Iterator<Item = Schema> {
        TABLES
            .into_iter()
            .chain([packets::Packets::SCHEMA, transactions::Transactions::SCHEMA])
            .chain([verdicts::SeedVerdicts::SCHEMA])
    }

    const DOCUMENTATION: &str = include_str!("../../../../docs/results.md");

    /// Columns that the list of a section names.
    fn described(section: &str) -> Vec<&'static str> {
        let (_, section) = DOCUMENTATION
            .split_once(&format!("### {section}\n"))
            .unwrap();
        let section = section.split("\n##").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("- `"));
        let names = rows.map(|row| row.split(": ").next().unwrap().trim_end_matches(['`', '?']));
        names.flat_map(|names| names.split("`, `")).collect()
    }

    #[test]
    fn every_column_is_documented_and_every_documented_column_is_there() {
        let of_several = described("Columns of several tables");
        for schema in schemas() {
            let own = described(schema.name);
            let columns = schema.columns();
            let columns: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
            let is_described = |name: &&str| own.contains(name) || of_several.contains(name);
            let missing: Vec<_> = columns.iter().filter(|name| !is_described(name)).collect();
            let unknown: Vec<_> = own.iter().filter(|name| !columns.contains(name)).collect();
            assert!(
                missing.is_empty() && unknown.is_empty(),
                "{}: {missing:?} {unknown:?}",
                schema.name
            );
        }
        for name in of_several {
            let has = |schema: &Schema| schema.columns().iter().any(|c| c.name == name);
            assert!(schemas().filter(has).count() > 1, "{name}");
        }
    }

    #[test]
    fn no_table_has_two_columns_of_one_name() {
        for schema in schemas() {
            let columns = schema.columns();
            let mut names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), schema.columns().len(), "table {}", schema.name);
        }
    }
}
