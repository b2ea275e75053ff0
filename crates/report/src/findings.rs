//! Everything a report is made of, gathered from the results folder in one pass.

use crate::curves::Curves;
use crate::data::RunTables;
use crate::error::ReportError;
use crate::host::HostFacts;
use crate::layout::ResultsFolder;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::published::{self, PublishedComparison};
use slicewise_stats::summary::{Summary, SummaryBuilder};
use slicewise_stats::verdict::{self, VerdictTable};

/// What the runs come to.
pub(crate) struct Findings<'a> {
    pub(crate) study: &'a StudyDescription,
    pub(crate) summary: Summary,
    pub(crate) verdicts: VerdictTable,
    pub(crate) published: Vec<PublishedComparison>,
    pub(crate) curves: Curves,
    pub(crate) expected_runs: u64,
    pub(crate) finished_runs: u64,
    /// Records that cannot be trusted, and why; without the folder, which says nothing of results.
    pub(crate) damaged_runs: Vec<String>,
    pub(crate) host: Option<HostFacts>,
}

impl<'a> Findings<'a> {
    /// Read every run once, writing its tables on the way; one run is in memory at a time.
    pub(crate) fn gather(folder: &'a ResultsFolder) -> Result<Self, ReportError> {
        let study = folder.study();
        let mut tables = RunTables::create(&folder.data_path())?;
        let mut builder = SummaryBuilder::new(study);
        let mut curves = Curves::new(study);
        let mut finished_runs = 0;
        let mut damaged_runs = Vec::new();
        for run in folder.finished_runs() {
            let record = match run {
                Ok(record) => record,
                Err(error) if error.is_damaged_run() => {
                    damaged_runs.push(without_folder(&error.to_string(), folder));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if let Err(error) = builder.add(&record) {
                damaged_runs.push(error.to_string());
                continue;
            }
            tables.on_run(&record)?;
            curves.on_run(&record);
            finished_runs += 1;
        }
        if finished_runs == 0 {
            return Err(ReportError::NoRuns {
                path: folder.path().to_owned(),
            });
        }
        tables.finish()?;
        curves.finish();
        Ok(Self {
            study,
            summary: builder.summary(),
            verdicts: verdict::judge(study, builder.observations()),
            published: published::compare(study, builder.observations()),
            curves,
            expected_runs: folder.expected_runs(),
            finished_runs,
            damaged_runs,
            host: folder.read_host(),
        })
    }
}

fn without_folder(message: &str, folder: &ResultsFolder) -> String {
    message.replace(
        &format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR),
        "",
    )
}
