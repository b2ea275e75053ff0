//! A study with what its jobs need, whatever the scheduler.

use crate::arguments::SubmitOptions;
use crate::execution::{on_interrupt, wanted_runs};
use crate::progress::Progress;
use crate::results::{named_path, results_failure};
use crate::series::load_wanted;
use crate::shard::Shard;
use crate::{Failure, noteln};
use slicewise_results::{make_folder, write_file};
use slicewise_stats::shell;
use slicewise_stats::words::count;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at a queue: as often as a person at it.
const INTERVAL: Duration = Duration::from_secs(5);
/// Longest wait for a scheduler that gives no answer.
const AWAY: Duration = Duration::from_secs(600);
/// Lines of a log that are printed.
const TAIL_LINES: usize = 10;

pub struct Submission<'a> {
    pub options: &'a SubmitOptions,
    /// Name of the study.
    pub name: String,
    /// Folder that the shards are collected into.
    pub results: PathBuf,
    /// Folder of scripts and logs.
    pub folder: PathBuf,
    /// Runs of all shards.
    pub runs: u64,
}

impl<'a> Submission<'a> {
    /// Checks the study as `slicewise run` does.
    pub fn new(options: &'a SubmitOptions) -> Result<Self, Failure> {
        let selection = &options.selection;
        let (name, studies) = load_wanted(selection)?;
        let runs = studies.iter().map(|study| wanted_runs(selection, study));
        let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
        let total = runs.iter().map(Vec::len).sum::<usize>() as u64;
        let shards = u64::from(options.shards.get());
        Shard::first_of(shards).select(&studies, &mut runs)?;
        noteln!("{} in {}", count(total, "run"), count(shards, "shard"));
        let default = format!("{name}{}", selection.suffix());
        // Without a slash at the end.
        let results: PathBuf =
            (named_path(options.out.as_deref(), &default).components()).collect();
        if results.file_name().is_none() {
            return Err(Failure::mistake(format!(
                "`--out {}`: names of other folders begin with that of this one, and it has none; expected a path such as \
                 results/study",
                results.display()
            )));
        }
        Ok(Self {
            options,
            name,
            folder: with_suffix(&results, options.to.suffix()),
            results,
            runs: total,
        })
    }

    /// Returns the command of a shard, whose number is in the variable `shard`.
    pub fn run_command(&self) -> Result<String, Failure> {
        let (options, selection) = (self.options, &self.options.selection);
        let (results, of) = (shell::word(text_of(&self.results)?), options.shards);
        let mut words = vec![format!(
            "slicewise run --shard=\"$shard/{of}\" --out={results}\"-shard-$shard-of-{of}\" --jobs={}",
            options.cpus
        )];
        for (option, names) in [
            ("case", &selection.cases),
            ("policy", &selection.policies),
            ("scenario", &selection.scenarios),
        ] {
            words.extend((names.iter()).map(|name| format!("--{option}={}", shell::word(name))));
        }
        words.extend((selection.repetitions).map(|number| format!("--repetitions={number}")));
        words.extend(selection.seed.map(|seed| format!("--seed={seed}")));
        words.extend(selection.quick.then(|| "--quick".to_owned()));
        words.push(format!("-- {}", shell::word(text_of(&selection.study)?)));
        Ok(words.join(" "))
    }

    /// Returns the command that collects all shards.
    pub fn collect_command(&self) -> Result<String, Failure> {
        let (results, of) = (shell::word(text_of(&self.results)?), self.options.shards);
        let selection = &self.options.selection;
        let is_whole = selection.policies.is_empty() && selection.scenarios.is_empty();
        let partial = if is_whole { "" } else { "--partial " };
        Ok(format!(
            "slicewise collect {partial}-- {results} {results}-shard-*-of-{of}"
        ))
    }

    /// Returns the results folder of each shard.
    pub fn shard_folders(&self) -> impl Iterator<Item = PathBuf> {
        let of = self.options.shards.get();
        (1..=of).map(move |shard| with_suffix(&self.results, &format!("-shard-{shard}-of-{of}")))
    }

    /// Writes files into the folder; none if something else has the name of one of them.
    pub fn write(&self, files: &[(&str, String)]) -> Result<(), Failure> {
        let mut missing = Vec::new();
        for (name, text) in files {
            let path = self.folder.join(name);
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => missing.push((path, text)),
                Ok(found)
                    if found.is_file() && fs::read_to_string(&path).is_ok_and(|t| t == *text) => {}
                _ => {
                    return Err(Failure::mistake(format!(
                        "`{}` is of another submission, or changed by hand: remove it, give the same options as before, or \
                         choose another folder (`--out DIR`)",
                        path.display()
                    )));
                }
            }
        }
        let is_ours = missing.len() < files.len();
        let is_empty = fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_none());
        if self.folder.exists() && !is_ours && !is_empty {
            return Err(Failure::mistake(format!(
                "`{}` holds files of others: remove it, or choose another folder (`--out DIR`)",
                self.folder.display()
            )));
        }
        let around = self.folder.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(around).map_err(|error| {
            Failure::system(format!("cannot create `{}`: {error}", around.display()))
        })?;
        make_folder(&self.folder).map_err(results_failure)?;
        for (path, text) in missing {
            write_file(&path, text.as_bytes()).map_err(results_failure)?;
        }
        Ok(())
    }

    /// Shows progress until `look` returns `None`: nothing is left to wait for. Otherwise it returns how many runs are done,
    /// and what the jobs do. False if the user leaves before. A look that fails is repeated: a scheduler may be away for a
    /// while.
    pub fn watch(
        &self,
        mut look: impl FnMut() -> Result<Option<(u64, String)>, Failure>,
    ) -> Result<bool, Failure> {
        let interrupt = on_interrupt("leaving; the jobs go on")?;
        let mut progress = Progress::new(self.runs);
        let mut done = 0;
        let mut seen = Instant::now();
        while !interrupt.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let state = match look() {
                Ok(None) => {
                    progress.finish();
                    return Ok(true);
                }
                Ok(Some((runs, state))) => {
                    seen = Instant::now();
                    done = runs.min(self.runs);
                    state
                }
                Err(failure) if seen.elapsed() > AWAY => {
                    progress.finish();
                    return Err(
                        failure.with_advice("(the jobs go on; the same command looks again)")
                    );
                }
                Err(failure) => failure.to_string(),
            };
            progress.show(done, &state);
            // Counting the runs of a large sweep takes a while.
            let next = Instant::now() + INTERVAL.max(begin.elapsed() * 20);
            while Instant::now() < next && !interrupt.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(50));
            }
        }
        progress.finish();
        Ok(false)
    }
}

/// Returns the path with `suffix` at the end of its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Returns a path as text, which scripts and manifests consist of.
pub fn text_of(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        Failure::mistake(format!(
            "`{}` is not UTF-8, as scripts must be: rename it",
            path.display()
        ))
    })
}

/// Returns the output of a program of the cluster.
pub fn call(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::mistake(format!(
            "there is no `{program}` here: call the command where there is, or write the scripts with `--write-only` and \
             start them there"
        )),
        _ => Failure::system(format!("cannot call `{program}`: {error}")),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let called = arguments.join(" ");
        return Err(Failure::system(format!(
            "`{program} {called}` failed: {}",
            said.trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the last lines of a log, indented.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(TAIL_LINES));
    last.map(|line| format!("\n  {line}")).collect()
}
