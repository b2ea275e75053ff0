//! `slicewise report`: the report again, from a results folder alone.

use crate::Failure;
use crate::arguments::ReportOptions;
use crate::exit::Exit;
use crate::run::results_failure;
use slicewise_report::layout::ResultsFolder;

pub fn report(options: &ReportOptions) -> Result<Exit, Failure> {
    let folder = ResultsFolder::open(&options.results).map_err(results_failure)?;
    write_report(&folder)?;
    Ok(Exit::Success)
}

/// Judge what is in the folder, write the report, and print the verdicts.
pub fn write_report(folder: &ResultsFolder) -> Result<(), Failure> {
    let written = slicewise_report::write(folder).map_err(Failure::failure)?;
    println!("{}", written.verdict_table);
    println!("Report: {}", written.report.display());
    Ok(())
}
