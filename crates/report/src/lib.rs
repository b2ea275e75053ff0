//! Results folder → one self-contained HTML report, the numbers as CSV and Parquet, figures as SVG.
//!
//! Everything is made from the folder alone, so a report can be made again at any time, anywhere.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod attribute;
pub mod captured;
pub mod comparison;
mod curves;
mod data;
mod error;
mod figures;
mod findings;
mod flows;
mod limits;
mod link_losses;
mod markup;
mod matrix;
mod measured;
mod object;
mod page;
pub mod populations;
pub mod prediction;
mod published;
mod queues;
pub mod seeds;
mod series;
pub mod side;
mod signs;
mod sweep;
pub mod terminal;
pub mod testbed;
mod text_table;
mod timeline;
mod unbroken;

pub use data::{PacketRow, PacketTable, write_transactions};
pub use error::ReportError;
pub use findings::Findings;
pub use link_losses::LinkLosses;
pub use measured::{MeasuredFigure, measured};
pub use page::CaseReport;
pub use published::headline as published_headline;
pub use series::{case, write_series};
pub use sweep::{PointBetween, points_between};
pub use timeline::Changes;

use data::{DataFolder, RunTables};
use slicewise_results::{ResultsFolder, make_folder};
use slicewise_stats::record::RunRecord;
use std::path::PathBuf;

/// A report that was written.
#[derive(Debug)]
pub struct Report {
    /// The HTML file.
    pub html: PathBuf,
    /// The folder of CSV and Parquet files.
    pub data: PathBuf,
    /// The folder of SVG figures.
    pub figures: PathBuf,
    /// Its findings.
    pub findings: Findings,
}

/// Make report, data and figures of `folder` again, from the runs that lie in it.
///
/// Runs that are missing or damaged are left out, and the report says so.
///
/// # Errors
/// Where there is no run at all, or something cannot be read or written.
pub fn write(folder: &ResultsFolder) -> Result<Report, ReportError> {
    write_beside(folder, &[])
}

/// The same, with what other results folders of the same study hold beside it: the verdicts and figures
/// of other back ends.
///
/// # Errors
/// Where there is no run at all in one of the folders, one is of another study or named twice, or
/// something cannot be read or written.
pub fn write_beside(folder: &ResultsFolder, beside: &[PathBuf]) -> Result<Report, ReportError> {
    write_with(folder, beside, |_| Ok(()))
}

/// The same; gives every run to `also` on the way.
fn write_with(
    folder: &ResultsFolder,
    beside: &[PathBuf],
    mut also: impl FnMut(&RunRecord) -> Result<(), ReportError>,
) -> Result<Report, ReportError> {
    let (html, data, figures) = (
        folder.report_path(),
        folder.data_path(),
        folder.figures_path(),
    );
    folder.check_in_place()?;
    for path in [&data, &figures] {
        make_folder(path)?;
    }
    let data_folder = DataFolder::new(data.clone(), folder.judged());
    let mut tables = RunTables::create(&data_folder)?;
    let findings = Findings::gather(folder, beside, |run| {
        tables.on_run(run)?;
        also(run)
    })?;
    tables.finish()?;
    data::write(&data_folder, &findings)?;
    let drawn = figures::write_figures(&figures, &findings)?;
    page::write_page(&html, &findings, &drawn)?;
    Ok(Report {
        html,
        data,
        figures,
        findings,
    })
}

/// Returns the findings of a report of `folder` with those `beside` it, without writing anything.
///
/// # Errors
/// As [`write_beside`], except for what cannot be written.
pub fn judge(folder: &ResultsFolder, beside: &[PathBuf]) -> Result<Findings, ReportError> {
    Findings::gather(folder, beside, |_| Ok(()))
}
