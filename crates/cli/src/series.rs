//! `slicewise run` and `report`, of one study or of a file with cases: all of them in turns, a report for each and a page
//! over them.

mod refine;
#[cfg(feature = "linux")]
mod testbed;

use crate::Failure;
use crate::arguments::{BackendName, JudgementOptions, ReportOptions, RunOptions, Selection};
use crate::execution::{
    Execution, as_asked, on_interrupt, options_of_shard, processors, runs_of_shard, wanted_runs,
};
use crate::executor::Work;
use crate::exit::Exit;
use crate::judgement::{as_json, gate, selected};
use crate::load::{has_no_cases, load_study_file, sweep_of, warn};
use crate::output::{self, colours, columns};
use crate::progress::Progress;
use crate::report::{report_failure, siblings, verdicts_text, write_report};
use crate::results::{named_path, open_results, results_failure, results_path};
use crate::run;
use crate::transactions;
use crate::{noteln, outln};
use slicewise_report::{CaseReport, published_headline, terminal, write_series};
use slicewise_results::{LeftOut, ResultsFolder, SeriesDescription, SeriesFolder};
use slicewise_sim::Simulator;
use slicewise_study::{RunSpec, Series, Study, StudyFile};
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Cases whose verdicts are printed; those of more are in the report alone.
const MAX_PRINTED: usize = 32;

pub fn run(options: &RunOptions) -> Result<Exit, Failure> {
    if options.transactions && options.on != BackendName::Sim {
        return Err(Failure::mistake(
            "`--transactions` is for the simulator: leave it out, or leave out `--on`",
        ));
    }
    let file = load_study_file(&options.selection.study)?;
    let name = match &file {
        StudyFile::Series(series) => &series.name,
        StudyFile::Study(study) => &study.name,
    };
    let of_shard = options_of_shard(options, name)?;
    let options = of_shard.as_ref().unwrap_or(options);
    match file {
        StudyFile::Series(series) => run_cases(options, *series),
        StudyFile::Study(study) => run::run(options, wanted_study(&options.selection, *study)?),
    }
}

/// Returns the name of the study, or series, in the file, and the studies that the command line asks for.
pub fn load_wanted(selection: &Selection) -> Result<(String, Vec<Study>), Failure> {
    match load_study_file(&selection.study)? {
        StudyFile::Study(study) => {
            let study = wanted_study(selection, *study)?;
            Ok((study.name.clone(), vec![study]))
        }
        StudyFile::Series(series) => {
            let studies = wanted_cases(selection, &series)?;
            if series.refine.is_some() {
                note_no_refinement();
            }
            Ok((series.name, studies))
        }
    }
}

fn wanted_study(selection: &Selection, study: Study) -> Result<Study, Failure> {
    if !selection.cases.is_empty() {
        return Err(has_no_cases(&selection.study));
    }
    warn(study.warnings());
    Ok(as_asked(selection, study))
}

fn wanted_cases(selection: &Selection, series: &Series) -> Result<Vec<Study>, Failure> {
    warn(series.warnings());
    for name in &selection.cases {
        series.case(name).map_err(Failure::mistake)?;
    }
    let is_wanted = |study: &&Study| {
        let case = study.case.as_ref();
        selection.cases.is_empty() || case.is_some_and(|case| selection.cases.contains(case))
    };
    let wanted = series.cases.iter().filter(is_wanted);
    let studies: Vec<Study> = wanted
        .map(|study| as_asked(selection, study.clone()))
        .collect();
    if !series.axes.is_empty() {
        let runs = studies.iter().map(|study| wanted_runs(selection, study));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let runs: usize = runs.iter().map(Vec::len).sum();
        noteln!("{}", sweep_of(studies.len(), runs as u64));
    }
    Ok(studies)
}

fn note_no_refinement() {
    noteln!(
        "note: a shard has no points of `refine`: `slicewise run STUDY --out DIR` adds them to collected shards"
    );
}

pub fn report(options: &ReportOptions) -> Result<Exit, Failure> {
    if let Some(series) = SeriesFolder::open(&options.results).map_err(results_failure)? {
        if !options.beside.is_empty() {
            return Err(Failure::mistake(
                "this folder holds several cases: `--beside` is for the folder of one",
            ));
        }
        return write_reports(&series, &options.judgement, &[], false);
    }
    let folder = ResultsFolder::open(&options.results).map_err(results_failure)?;
    write_report(&folder, &options.beside, &options.judgement, &[])
}

fn run_cases(options: &RunOptions, series: Series) -> Result<Exit, Failure> {
    let studies = wanted_cases(&options.selection, &series)?;
    if let [study] = &studies[..]
        && options.shard.is_none()
    {
        return run_alone(options, &series, study);
    }
    let of_one_case = [
        (options.seeds.is_some(), "--seeds"),
        (options.captures.is_some(), "--captures"),
    ];
    if let Some((_, option)) = of_one_case.iter().find(|(is_set, _)| *is_set) {
        return Err(Failure::mistake(format!(
            "`{option}` is for one study: choose a case (`--case NAME`)"
        )));
    }
    #[cfg(feature = "linux")]
    if options.on != BackendName::Sim {
        return testbed::run(options, &series, &studies);
    }
    simulate(options, &series, &studies)
}

/// One case, in the folder that it has among the others, and the page over those that were run.
fn run_alone(options: &RunOptions, series: &Series, study: &Study) -> Result<Exit, Failure> {
    if options.seeds.is_some() {
        return run::run(options, study.clone());
    }
    // What is wrong with the command line is said before a folder is made.
    wanted_runs(&options.selection, study)?;
    let folder = series_folder(options, series, std::slice::from_ref(study), Vec::new())?;
    let exit = run::run(&of_case(options, study), study.clone())?;
    let has_runs = ResultsFolder::open(path_of(options, study))
        .is_ok_and(|results| results.runs_on_disk() > 0);
    if exit != Exit::Interrupted && has_runs {
        page_over_cases(&folder, options.out.is_none())?;
        if !options.judgement.json {
            outln!("Page over the cases: {}", folder.report_path().display());
        }
    }
    Ok(exit)
}

fn simulate(options: &RunOptions, series: &Series, studies: &[Study]) -> Result<Exit, Failure> {
    let runs = runs_of_shard(options, studies)?;
    let mut folder = series_folder(options, series, studies, Vec::new())?;
    let (mut exit, has_runs) = carry_out(options, &folder, studies, &runs)?;
    if let Some(shard) = options.shard {
        if series.refine.is_some() {
            note_no_refinement();
        }
        return Ok(shard.conclude(folder.path(), exit));
    }
    if exit == Exit::Success
        && let Some(resolution) = &series.refine
    {
        exit = refine::refine(options, &mut folder, resolution, |folder, points| {
            let runs = points.iter().map(|(study, policies)| {
                let selection = Selection {
                    policies: policies.clone(),
                    ..options.selection.clone()
                };
                wanted_runs(&selection, study)
            });
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            let studies: Vec<Study> = points.iter().map(|(study, _)| study.clone()).collect();
            Ok(carry_out(options, folder, &studies, &runs)?.0)
        })?;
    }
    if exit == Exit::Interrupted || !has_runs {
        return Ok(exit);
    }
    reported(options, &folder, exit)
}

/// Simulate `runs` of each of `studies`; returns whether any has a record, too.
fn carry_out(
    options: &RunOptions,
    folder: &SeriesFolder,
    studies: &[Study],
    runs: &[Vec<RunSpec>],
) -> Result<(Exit, bool), Failure> {
    // Every folder is locked, and a sweep has more of them than files may be open.
    #[cfg(feature = "linux")]
    let _ = slicewise_live::sys::limits::raise_descriptors();
    let open = |study: &Study| -> Result<ResultsFolder, Failure> {
        let description = study.description(env!("CARGO_PKG_VERSION"));
        open_results(&path_of(options, study), &description, options.force())
    };
    let folders: Vec<ResultsFolder> = studies.iter().map(open).collect::<Result<_, _>>()?;
    let simulator = Simulator::default();
    let works: Vec<Work<'_>> = studies
        .iter()
        .zip(&folders)
        .zip(runs)
        .map(|((study, folder), runs)| Work {
            study,
            folder,
            backend: &simulator,
            runs,
            transactions: options.transactions,
        })
        .collect();
    transactions::announce(&works)?;
    let interrupt = on_interrupt("finishing the runs in progress")?;
    let execution = Execution {
        works: &works,
        jobs: options.jobs.map_or_else(processors, NonZeroU32::get),
        interrupt: &interrupt,
        what: "runs",
    };
    let all = runs.iter().flatten();
    let total = all.clone().count();
    // A first look, as soon as every case has run once.
    let is_whole = studies.len() == folder.description().cases.len();
    let mut left = all.filter(|run| run.repetition == 0).count();
    let progress = Progress::new(total as u64);
    let (outcomes, exit) = execution.carry_out(progress, |progress, _, repetition| {
        left -= usize::from(repetition == 0);
        if repetition == 0
            && left == 0
            && total > studies.len()
            && is_whole
            && options.shard.is_none()
        {
            let written = write_series(folder, |_| Vec::new());
            progress.note(&match written {
                Ok(_) => format!(
                    "every case has run once; a first report: {}",
                    folder.report_path().display()
                ),
                Err(error) => format!("a first report cannot be written: {error}"),
            });
        }
    })?;
    let has_runs = outcomes.iter().any(|outcome| outcome.has_runs());
    Ok((exit, has_runs))
}

/// The reports of runs that ended like this; where all succeeded, the verdicts decide.
fn reported(options: &RunOptions, folder: &SeriesFolder, runs: Exit) -> Result<Exit, Failure> {
    let has_siblings = options.out.is_none();
    let judged = write_reports(
        folder,
        &options.judgement,
        &options.selection.policies,
        has_siblings,
    )?;
    Ok(match runs {
        Exit::Success => judged,
        other => other,
    })
}

/// Where the user says that results of a case go.
fn out_of(options: &RunOptions, study: &Study) -> Option<PathBuf> {
    options.out.as_ref().map(|out| out.join(&study.name))
}

fn path_of(options: &RunOptions, study: &Study) -> PathBuf {
    results_path(out_of(options, study).as_deref(), study, &options.suffix())
}

/// The name of the folder of a case.
fn folder_name(options: &RunOptions, study: &Study) -> Option<String> {
    let path = path_of(options, study);
    Some(path.file_name()?.to_str()?.to_owned())
}

/// The options for one case of several.
fn of_case(options: &RunOptions, study: &Study) -> RunOptions {
    RunOptions {
        out: out_of(options, study),
        ..options.clone()
    }
}

/// The folder around those of these cases; `left_out` are not among them.
fn series_folder(
    options: &RunOptions,
    series: &Series,
    studies: &[Study],
    left_out: Vec<LeftOut>,
) -> Result<SeriesFolder, Failure> {
    let names = studies
        .iter()
        .filter_map(|study| folder_name(options, study));
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let description = SeriesDescription {
        title: series.title.clone(),
        description: series.description.clone(),
        source: series.source.clone(),
        left_out,
        ..SeriesDescription::new(series.name.clone(), version, names.collect())
    };
    let path = named_path(options.out.as_deref(), &series.name);
    let unread = RefCell::new(Vec::new());
    let is_kept = |case: &str| {
        let is_kept = is_of_series(options, series, &path, case);
        if !is_kept {
            unread.borrow_mut().push(format!("`{case}`"));
        }
        is_kept
    };
    let folder = SeriesFolder::create(&path, description, is_kept).map_err(results_failure)?;
    let unread = unread.into_inner();
    // A search finds its points again.
    if !unread.is_empty() && series.refine.is_none() {
        noteln!(
            "since the last run into `{}`: gone from the file, or of other inputs until they are run again, and left unread: {}",
            path.display(),
            unread.join(", ")
        );
    }
    Ok(folder)
}

/// Returns true if the folder `case` beside those that are run is of a case that the file has, run as the file says.
fn is_of_series(options: &RunOptions, series: &Series, path: &Path, case: &str) -> bool {
    let ways = ["", "-gateway", "-tc", "-dpdk"];
    let ways = ways
        .iter()
        .flat_map(|way| [(*way).to_owned(), format!("{way}-quick")]);
    let ways: Vec<String> = ways.collect();
    let mut studies = series.cases.iter();
    let found = studies.find_map(|study| {
        let way = case.strip_prefix(&study.name)?;
        ways.iter().any(|one| one == way).then_some((study, way))
    });
    let Some((study, way)) = found else {
        return false;
    };
    let is_simulated = way.is_empty() || way == "-quick";
    if way != options.suffix() || !is_simulated {
        return true;
    }
    let study = as_asked(&options.selection, study.clone());
    let inputs = study.description(env!("CARGO_PKG_VERSION")).inputs;
    // One that cannot be read says so where it is judged.
    ResultsFolder::open(path.join(case)).map_or(true, |there| there.study().inputs == inputs)
}

/// The report of every case and the page over them; prints what each case came to. [`Exit::Verdict`] where a verdict of
/// one of them is what `judgement` fails on: of `policies`, or of all where none is named.
pub fn write_reports(
    folder: &SeriesFolder,
    judgement: &JudgementOptions,
    policies: &[String],
    has_siblings: bool,
) -> Result<Exit, Failure> {
    let cases = page_over_cases(folder, has_siblings)?;
    if judgement.json {
        print_json(folder, &cases, policies)?;
    } else {
        let findings: Vec<_> = cases.iter().map(|case| &case.findings).collect();
        let is_judged = findings.iter().any(|of| of.main().verdicts.is_judged());
        let has_published = findings.iter().any(|of| !of.published.is_empty());
        let table =
            match (is_judged || has_published, cases.len() <= MAX_PRINTED) {
                (false, _) => terminal::measured_table_text(&findings, columns(), colours()),
                (true, is_few) => terminal::sweep_table_text(&findings, columns(), colours())
                    .or_else(|| match is_few {
                        true => None,
                        false => terminal::case_table_text(&findings, columns(), colours()),
                    }),
            };
        match table {
            Some(table) => output::coloured_line(&table),
            None => cases
                .iter()
                .for_each(|case| print_case(folder, case, judgement.explain)),
        }
        let published = cases.iter().flat_map(|case| &case.findings.published);
        if let Some(line) = published_headline(published) {
            outln!("{line}");
        }
        outln!("Report: {}", folder.report_path().display());
    }
    let mut exit = Exit::Success;
    for case in &cases {
        let verdicts = selected(&case.findings, policies);
        if let Some(fail_on) = judgement.fail_on
            && gate(&verdicts, fail_on) != Exit::Success
        {
            exit = Exit::Verdict;
        }
    }
    Ok(exit)
}

/// The report of every case that has runs, and the page over them.
fn page_over_cases(folder: &SeriesFolder, has_siblings: bool) -> Result<Vec<CaseReport>, Failure> {
    let beside = |path: &Path| -> Vec<PathBuf> {
        match has_siblings {
            true => siblings(path),
            false => Vec::new(),
        }
    };
    write_series(folder, beside).map_err(|error| report_failure(error, folder.path()))
}

fn print_json(
    folder: &SeriesFolder,
    cases: &[CaseReport],
    policies: &[String],
) -> Result<(), Failure> {
    let mut all = serde_json::Map::new();
    for case in cases {
        let path = folder.path().join(&case.folder);
        let results = ResultsFolder::open(&path).map_err(results_failure)?;
        all.insert(
            case.name().to_owned(),
            as_json(&results, &case.findings, policies)?,
        );
    }
    output::json(&serde_json::Value::Object(all));
    Ok(())
}

fn print_case(folder: &SeriesFolder, case: &CaseReport, explain: bool) {
    let findings = &case.findings;
    let title = case.title(&folder.description().title);
    outln!("{}", headline(case.name(), title));
    let published = &findings.published;
    if let Some(table) = terminal::published_table_text(published, columns(), colours()) {
        output::coloured_line(&table);
    } else if let Some(table) = verdicts_text(findings, explain) {
        output::coloured_line(&table);
    } else if let Some(table) = terminal::measured_table_text(&[findings], columns(), colours()) {
        output::coloured_line(&table);
    }
}

/// "c1: A narrow link", or the name alone where there is no title.
fn headline(name: &str, title: &str) -> String {
    match title {
        "" => name.to_owned(),
        same if same == name => name.to_owned(),
        title => format!("{name}: {title}"),
    }
}
