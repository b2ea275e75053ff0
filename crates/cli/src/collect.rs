//! `slicewise collect`: shards of a study, or of its cases, put into one results folder.

use crate::Failure;
use crate::arguments::CollectOptions;
use crate::exit::Exit;
use crate::report::write_report;
use crate::results::results_failure;
use crate::series::write_reports;
use crate::{errln, noteln};
use slicewise_results::{Collected, ResultsFolder, SeriesFolder, Shards};
use slicewise_stats::backend::BackendKind;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::words::count;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Damaged records that are printed; the rest are only counted.
const DAMAGED_PRINTED: usize = 10;

pub fn collect(options: &CollectOptions) -> Result<Exit, Failure> {
    let mut series = Vec::new();
    for shard in &options.shards {
        series.push(SeriesFolder::open(shard).map_err(results_failure)?);
    }
    let mut tally = Tally::new(&options.shards);
    if series.iter().all(Option::is_none) {
        let shards = Shards::open(&options.results, &options.shards).map_err(results_failure)?;
        let everyone: Vec<usize> = (0..options.shards.len()).collect();
        let folder = tally.add(&shards, &everyone)?;
        tally.conclude(options)?;
        return write_report(&folder, &[], &options.judgement, &[]);
    }
    let series = options.shards.iter().zip(series);
    let series = series.map(|(path, series)| series.ok_or_else(|| no_cases(path)));
    let folder = collect_cases(options, &series.collect::<Result<Vec<_>, _>>()?, &mut tally)?;
    tally.conclude(options)?;
    write_reports(&folder, &options.judgement, &[], false)
}

/// Case by case; nothing is written before all are known to fit together.
fn collect_cases(
    options: &CollectOptions,
    series: &[SeriesFolder],
    tally: &mut Tally<'_>,
) -> Result<SeriesFolder, Failure> {
    let there = SeriesFolder::open(&options.results).map_err(results_failure)?;
    refuse_other_series(there.iter().chain(series))?;
    let mut cases: Vec<OsString> = Vec::new();
    for case in series.iter().flat_map(SeriesFolder::cases) {
        let case = case.file_name().map(OsStr::to_owned);
        cases.extend(case.filter(|case| !cases.contains(case)));
    }
    let mut work = Vec::new();
    for case in cases {
        let paths = series.iter().map(|one| one.path().join(&case)).enumerate();
        let there = paths.clone().filter(|(_, path)| path.is_dir());
        let (numbers, paths): (Vec<usize>, Vec<PathBuf>) = match there.clone().next() {
            Some(_) => there.unzip(),
            // Opening it says what is wrong.
            None => paths.take(1).unzip(),
        };
        let shards = Shards::open(&options.results.join(&case), &paths);
        work.push((shards.map_err(results_failure)?, numbers));
    }
    let mut folder = None;
    // The last one determines texts, and which cases come first.
    for one in series.iter().rev() {
        let made = SeriesFolder::create(&options.results, one.description().clone(), |_| true);
        folder = Some(made.map_err(results_failure)?);
    }
    for (shards, numbers) in work {
        tally.add(&shards, &numbers)?;
    }
    folder.ok_or_else(|| Failure::mistake("no shard is named"))
}

fn no_cases(path: &Path) -> Failure {
    Failure::mistake(format!(
        "`{}` holds no cases, but another shard does: name shards of one file",
        path.display()
    ))
}

fn refuse_other_series<'a>(
    mut folders: impl Iterator<Item = &'a SeriesFolder>,
) -> Result<(), Failure> {
    let Some(first) = folders.next() else {
        return Ok(());
    };
    let wanted = &first.description().name;
    let mut others = folders.filter(|folder| folder.description().name != *wanted);
    others.next().map_or(Ok(()), |other| {
        Err(Failure::mistake(format!(
            "`{}` holds cases of `{}`, but `{}` of `{wanted}`: nothing was collected; leave out one of them",
            other.path().display(),
            other.description().name,
            first.path().display()
        )))
    })
}

/// Counts of collected runs, over all cases.
struct Tally<'a> {
    shards: &'a [PathBuf],
    /// Of each shard: runs taken from it, and runs that were known.
    runs: Vec<(u64, u64)>,
    transactions: u64,
    damaged: Vec<String>,
    expected: u64,
    missing: u64,
    /// The first missing run, and the command that carries out what is missing.
    example: Option<(String, String)>,
}

impl<'a> Tally<'a> {
    fn new(shards: &'a [PathBuf]) -> Self {
        Self {
            shards,
            runs: vec![(0, 0); shards.len()],
            transactions: 0,
            damaged: Vec::new(),
            expected: 0,
            missing: 0,
            example: None,
        }
    }

    /// Collects the runs of one study, from the shards with these numbers.
    fn add(&mut self, shards: &Shards, numbers: &[usize]) -> Result<ResultsFolder, Failure> {
        let (folder, collected) = shards.collect().map_err(results_failure)?;
        let counts = collected.taken.iter().zip(&collected.known);
        for (number, (taken, known)) in numbers.iter().zip(counts) {
            if let Some(runs) = self.runs.get_mut(*number) {
                *runs = (runs.0 + taken, runs.1 + known);
            }
        }
        self.expected += folder.expected_runs();
        self.missing += collected.missing;
        self.transactions += collected.transactions;
        if self.example.is_none() {
            self.example = example(folder.study(), &collected);
        }
        self.damaged.extend(collected.damaged);
        Ok(folder)
    }

    /// Says what came from where; an error where runs are missing.
    fn conclude(&self, options: &CollectOptions) -> Result<(), Failure> {
        for (shard, (taken, known)) in self.shards.iter().zip(&self.runs) {
            let known = match known {
                0 => String::new(),
                known => format!(", and {known} that {} has", options.results.display()),
            };
            noteln!("{}: {}{known}", shard.display(), count(*taken, "run"));
        }
        if self.transactions > 0 {
            let runs = count(self.transactions, "run");
            noteln!("transactions of {runs} were copied with them");
        }
        for damaged in self.damaged.iter().take(DAMAGED_PRINTED) {
            errln!("warning: left out: {damaged}");
        }
        if let Some(more @ 1..) = self.damaged.len().checked_sub(DAMAGED_PRINTED) {
            errln!("warning: and {more} more records were left out");
        }
        let Some((run, command)) = &self.example else {
            return Ok(());
        };
        let results = options.results.display();
        let missing = match self.expected {
            1 => format!("{} of 1 run is missing in {results}", self.missing),
            runs => format!("{} of {runs} runs are missing in {results}", self.missing),
        };
        if options.partial {
            noteln!("note: {missing}, such as {run}");
            return Ok(());
        }
        Err(Failure::system(format!(
            "{missing}, such as {run}: run their shards again and collect them, or run what is missing here, with the \
             options of the shards: `{command} --out {results}`; `slicewise report {results}` reports on what is there"
        )))
    }
}

fn example(study: &StudyDescription, collected: &Collected) -> Option<(String, String)> {
    let (policy, scenario, repetition) = collected.first_missing.as_ref()?;
    let case = match &study.case {
        Some(case) => format!("case {case}, "),
        None => String::new(),
    };
    let quick = if study.is_quick { " --quick" } else { "" };
    let command = match study.is_of(BackendKind::Captured) {
        true => "slicewise analyse …".to_owned(),
        false => format!("slicewise run {}{quick}", study.file_name),
    };
    Some((
        format!("{case}policy {policy}, scenario {scenario}, repetition {repetition}"),
        command,
    ))
}
