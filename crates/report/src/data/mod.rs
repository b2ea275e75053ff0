//! Every number as CSV and Parquet. The schema is described in `docs/results.md`; a test holds
//! the two together.

mod beside;
mod captured;
mod cells;
mod folder;
mod packets;
mod parquet_table;
mod populations;
mod published;
mod runs;
mod seeds;
mod table;
mod testbed;
mod verdicts;

pub(crate) use beside::{write_beside, write_prediction};
pub(crate) use captured::CapturedTables;
pub(crate) use cells::{quantities, write_cells};
pub(crate) use folder::DataFolder;
pub use packets::{PacketRow, PacketTable};
pub(crate) use populations::write_populations;
pub(crate) use published::write_published;
pub(crate) use runs::RunTables;
pub(crate) use seeds::{seed_verdicts_header, write_seed_verdicts};
pub(crate) use testbed::write_testbed;
pub(crate) use verdicts::write_verdicts;

#[cfg(test)]
mod tests {
    use super::table::Schema;
    use super::{
        beside, captured, cells, packets, populations, published, runs, seeds, testbed, verdicts,
    };

    /// Every table that a report writes into its folder of data.
    const TABLES: [Schema; 19] = [
        runs::RUNS,
        runs::SERIES,
        runs::DELAY_CDF,
        runs::IAT_CDF,
        runs::DROPS,
        runs::LINK_LOSSES,
        cells::CELLS,
        verdicts::VERDICTS,
        verdicts::VERDICT_TESTS,
        published::PUBLISHED,
        populations::POPULATIONS,
        captured::FLOWS,
        captured::HOPS,
        beside::BACK_ENDS,
        beside::BESIDE_VERDICTS,
        beside::BESIDE_CELLS,
        beside::PREDICTION,
        testbed::TESTBED_RUNS,
        testbed::TESTBED_SENDERS,
    ];

    #[test]
    fn a_results_folder_knows_every_table() {
        assert_eq!(TABLES.map(|table| table.name), slicewise_results::TABLES);
    }

    fn schemas() -> impl Iterator<Item = Schema> {
        TABLES
            .into_iter()
            .chain([packets::PACKETS, seeds::SEED_VERDICTS])
    }

    const DOCUMENTATION: &str = include_str!("../../../../docs/results.md");

    /// The first cells of the rows of a table's section: where its columns are named.
    fn described(table: &str) -> Vec<&'static str> {
        let (_, section) = DOCUMENTATION.split_once(&format!("### {table}\n")).unwrap();
        let section = section.split("\n##").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let cells = rows.map(|row| row.split(" |").next().unwrap().trim_end_matches('`'));
        cells.flat_map(|names| names.split("`, `")).collect()
    }

    #[test]
    fn every_column_is_documented_and_every_documented_column_is_there() {
        for schema in schemas() {
            let mut described = described(schema.name);
            let mut columns: Vec<&str> = schema.columns.iter().map(|c| c.name).collect();
            described.sort_unstable();
            columns.sort_unstable();
            assert_eq!(described, columns, "table {}", schema.name);
        }
    }

    #[test]
    fn no_table_has_two_columns_of_one_name() {
        for schema in schemas() {
            let mut names: Vec<&str> = schema.columns.iter().map(|c| c.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), schema.columns.len(), "table {}", schema.name);
        }
    }
}
