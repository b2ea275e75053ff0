//! Shards as an array of jobs of Slurm.

use super::script::fill;
use super::submission::{Submission, call, tail, text_of};
use crate::arguments::ReportOptions;
use crate::exit::Exit;
use crate::series;
use crate::{Failure, errln, noteln, outln};
use slicewise_results::{ResultsFolder, SeriesFolder};
use slicewise_stats::shell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for files of ended jobs to appear here: clients of NFS look for new ones twice a minute.
const GRACE: Duration = Duration::from_secs(60);
/// Failed shards that are named; the rest are only counted.
const MAX_NAMED: usize = 10;

/// Returns the scripts, by their names.
pub fn files(submission: &Submission<'_>) -> Result<Vec<(&'static str, String)>, Failure> {
    let options = submission.options;
    let work = std::env::current_dir().map_err(|error| {
        Failure::system(format!("cannot determine the current folder: {error}"))
    })?;
    let sbatch: Vec<String> = options
        .sbatch
        .iter()
        .map(|option| shell::word(option))
        .collect();
    let values = [
        ("SHARDS", options.shards.to_string()),
        ("CPUS", options.cpus.to_string()),
        ("WORK", shell::word(text_of(&work)?)),
        ("RUN", submission.run_command()?),
        ("COLLECT", submission.collect_command()?),
        ("OPTIONS", sbatch.join(" ")),
    ];
    Ok(vec![
        ("shards.sh", fill(include_str!("shards.sh"), &values)),
        ("collect.sh", fill(include_str!("collect.sh"), &values)),
        ("submit.sh", fill(include_str!("submit.sh"), &values)),
    ])
}

/// Submits the scripts, waits for the jobs, and judges the results.
pub fn run(submission: &Submission<'_>) -> Result<Exit, Failure> {
    let folder = &submission.folder;
    call("sbatch", &["--version"])?;
    let earlier = fs::read_to_string(folder.join("jobs")).unwrap_or_default();
    let (list, words) = (earlier.trim().replace(' ', ","), earlier.trim());
    if !states(words)?.is_empty() {
        return Err(Failure::mistake(format!(
            "this study is still queued: wait until `squeue --jobs={list}` shows nothing, or cancel it (`scancel {words}`)"
        )));
    }
    let jobs = call("sh", &["--", text_of(&folder.join("submit.sh"))?])?;
    let how = format!(
        "`squeue --jobs={}` shows the jobs, `scancel {jobs}` cancels them; the report will be in {}",
        jobs.replace(' ', ","),
        submission.results.display()
    );
    let names = jobs.replace(' ', " (shards) and ");
    noteln!(
        "Jobs {names} submitted; scripts and logs are in {}",
        folder.display()
    );
    if submission.options.no_wait {
        outln!("{how}");
        return Ok(Exit::Success);
    }
    let mut gone: Option<Instant> = None;
    let is_over = submission.watch(|| {
        let states = states(&jobs)?;
        if states.is_empty() {
            let since = gone.get_or_insert_with(Instant::now);
            if has_result(submission) || since.elapsed() > GRACE {
                return Ok(None);
            }
        }
        Ok(Some((runs_on_disk(submission), in_words(&states))))
    })?;
    if !is_over {
        errln!("{how}");
        return Ok(Exit::Interrupted);
    }
    if code(submission, "collect").as_deref() != Some("0") {
        return Err(failure(submission));
    }
    if !submission.options.judgement.is_given() {
        let verdicts = fs::read_to_string(folder.join("collect.out")).unwrap_or_default();
        outln!("{}", verdicts.trim_end());
        return Ok(Exit::Success);
    }
    series::report(&ReportOptions {
        results: submission.results.clone(),
        beside: Vec::new(),
        judgement: submission.options.judgement.clone(),
    })
}

/// Returns state, in Slurm's abbreviations, and reason of each job that is not over.
fn states(jobs: &str) -> Result<Vec<(String, String)>, Failure> {
    let text = call("squeue", &["-h", "-r", "--me", "-o", "%F %t %r"])?;
    let states = text.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let job = words.next()?;
        let is_ours = jobs.split(' ').any(|one| one == job);
        is_ours.then_some((words.next()?, words.next()?))
    });
    Ok(states.collect())
}

/// "jobs: 3 active, 2 waiting (Resources)".
fn in_words(states: &[(String, String)]) -> String {
    let waiting = states.iter().filter(|(state, _)| state == "PD");
    let mut reasons = waiting.clone().map(|(_, reason)| reason);
    let reason = reasons.find(|reason| !["None", "Dependency"].contains(&reason.as_str()));
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let waiting = waiting.count();
    let active = states.len() - waiting;
    format!("jobs: {active} active, {waiting} waiting{reason}")
}

/// Runs in the folders of the shards.
fn runs_on_disk(submission: &Submission<'_>) -> u64 {
    let count = |path: &Path| ResultsFolder::open(path).map_or(0, |folder| folder.runs_on_disk());
    let counts = (submission.shard_folders()).map(|path| match SeriesFolder::open(&path) {
        Ok(Some(series)) => series.cases().map(|case| count(&case)).sum(),
        _ => count(&path),
    });
    counts.sum()
}

/// Returns the exit code of a job; `None` where it was ended, or has not begun.
fn code(submission: &Submission<'_>, job: &str) -> Option<String> {
    let text = fs::read_to_string(submission.folder.join(format!("{job}.code"))).ok()?;
    Some(text.trim().to_owned())
}

/// Returns names and exit codes of the shards that have not succeeded.
fn failed(submission: &Submission<'_>) -> Vec<(String, Option<String>)> {
    let names = (1..=submission.options.shards.get()).map(|shard| format!("shard-{shard}"));
    let codes = names.map(|name| (name.clone(), code(submission, &name)));
    codes
        .filter(|(_, code)| code.as_deref() != Some("0"))
        .collect()
}

/// Returns true if the shards are collected, or cannot be as one has failed; of what was ended there is no file to look for.
fn has_result(submission: &Submission<'_>) -> bool {
    let failed = failed(submission);
    let is_known = !failed.is_empty() && failed.iter().all(|(_, code)| code.is_some());
    is_known || code(submission, "collect").is_some()
}

/// Describes the failure, its reason, and the remedy.
fn failure(submission: &Submission<'_>) -> Failure {
    let mut failed = failed(submission);
    let what = format!(
        "{} of {} shards failed: ",
        failed.len(),
        submission.options.shards
    );
    let what = if failed.is_empty() {
        failed.push(("collect".to_owned(), code(submission, "collect")));
        "the shards are done, but not collected: "
    } else {
        &what
    };
    let names = failed.iter().take(MAX_NAMED).map(|(name, _)| name.as_str());
    let names: Vec<&str> = names.collect();
    let (job, code) = failed.first().cloned().unwrap_or_default();
    let log = submission.folder.join(format!("{job}.log"));
    let lines = fs::read(&log)
        .ok()
        .map(|bytes| tail(&String::from_utf8_lossy(&bytes)));
    let why = match (code.as_deref(), &lines) {
        (None, None) => {
            "was cancelled before it ran, or its node does not have this folder, which all nodes must share".to_owned()
        }
        (None, _) => "was ended by Slurm: if its log names a limit, raise it (`-- --time=… --mem=…`)".to_owned(),
        (Some("126" | "127"), _) => {
            "cannot start `slicewise` on its node: install it there, or put a folder that all nodes share into PATH before \
             submitting"
                .to_owned()
        }
        (Some(code), _) => format!("ended with exit code {code}"),
    };
    Failure::system(format!(
        "{what}{}. {job} {why}. The same command goes on where shards stopped. The end of {}:{}",
        names.join(", "),
        log.display(),
        lines.unwrap_or_default()
    ))
}
