//! The files of a measuring point: patterns, and folders of runs.

use crate::Failure;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The captures of one run, by measuring point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFiles {
    pub sent: Vec<PathBuf>,
    /// Points in between, in the order packets pass them.
    pub via: Vec<Vec<PathBuf>>,
    pub received: Vec<PathBuf>,
}

impl RunFiles {
    /// All files.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let via = self.via.iter().flatten();
        self.sent.iter().chain(via).chain(&self.received)
    }

    /// Bytes of all files; none of a file that cannot be read.
    pub fn bytes(&self) -> u64 {
        let facts = self.all().filter_map(|file| fs::metadata(file).ok());
        facts.map(|facts| facts.len()).sum()
    }

    /// A file that was given before, by this name or another.
    pub fn first_given_twice(&self) -> Option<&PathBuf> {
        let mut seen = BTreeSet::new();
        // What has no path of its own (standard input) goes by its name.
        let mut is_new = |file: &Path| seen.insert(file.canonicalize().unwrap_or(file.to_owned()));
        self.all().find(|file| !is_new(file))
    }
}

/// Standard input.
const STDIN: &str = "-";

/// The files a path stands for, which may have `*`, `?` and `[…]` in it: sorted, at least one.
pub fn matching(pattern: &Path) -> Result<Vec<PathBuf>, Failure> {
    // A file of that very name is meant, whatever is in its name.
    if pattern.as_os_str() == STDIN || pattern.exists() {
        return Ok(vec![pattern.to_owned()]);
    }
    let shown = pattern.display();
    let text = pattern.to_str().unwrap_or_default();
    if !text.contains(['*', '?', '[']) {
        return Err(Failure::mistake(format!("{shown}: no such file")));
    }
    let options = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..glob::MatchOptions::default()
    };
    let paths = glob::glob_with(text, options)
        .map_err(|error| Failure::mistake(format!("{shown}: {}", error.msg)))?;
    let mut files = Vec::new();
    for path in paths {
        files.push(path.map_err(|error| Failure::system(error.to_string()))?);
    }
    if files.is_empty() {
        return Err(Failure::mistake(format!("{shown}: no file matches")));
    }
    Ok(files)
}

/// The files of several patterns, each once.
pub fn matching_any(patterns: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for pattern in patterns {
        for file in matching(pattern)? {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// A run found in a folder of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    pub policy: String,
    pub scenario: String,
    pub repetition: u32,
    pub files: RunFiles,
}

/// Returns the runs in `folder/<policy>/<scenario>/<repetition>/`, in order.
pub fn runs_below(folder: &Path) -> Result<Vec<FoundRun>, Failure> {
    let mut runs = Vec::new();
    for (policy, path) in folders(folder)? {
        for (scenario, path) in folders(&path)? {
            for (name, path) in folders(&path)? {
                let repetition = repetition(&name).ok_or_else(|| {
                    let shown = path.display();
                    Failure::mistake(format!(
                        "{shown}: not the name of a repetition: use rep-000, rep-001 and so on"
                    ))
                })?;
                runs.push(FoundRun {
                    policy: policy.clone(),
                    scenario: scenario.clone(),
                    repetition,
                    files: files_of_run(&path)?,
                });
            }
        }
    }
    if runs.is_empty() {
        return Err(Failure::mistake(format!(
            "{}: no runs here: expected <policy>/<scenario>/rep-000/ with captures called sent* and \
             received* below it",
            folder.display()
        )));
    }
    let key = |run: &FoundRun| (run.policy.clone(), run.scenario.clone(), run.repetition);
    runs.sort_by_key(key);
    let twice = runs.windows(2).find(|pair| key(&pair[0]) == key(&pair[1]));
    if let Some([one, _]) = twice {
        return Err(Failure::mistake(format!(
            "{}: repetition {} of policy {}, scenario {} exists twice, under two names",
            folder.display(),
            one.repetition,
            one.policy,
            one.scenario
        )));
    }
    Ok(runs)
}

/// As many as a study may have.
const REPETITIONS_MAX: u32 = 10_000;

/// `rep-007`, `7`.
fn repetition(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("rep-").unwrap_or(name);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten();
    number.filter(|number| *number < REPETITIONS_MAX)
}

/// Folders in a folder, by name.
fn folders(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| path.is_dir() && !name.starts_with('.')) {
            found.push((name, path));
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::mistake(format!("{}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Files called `sent*` or `tx*`, `received*` or `rx*`, and `via*`: those of one point in between for
/// each name up to its first full stop.
fn files_of_run(folder: &Path) -> Result<RunFiles, Failure> {
    let mut files = RunFiles::default();
    let mut last_via = None;
    for path in entries(folder)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let begins = |words: [&str; 2]| words.iter().any(|word| name.starts_with(word));
        if begins(["sent", "tx"]) {
            files.sent.push(path);
        } else if begins(["received", "rx"]) {
            files.received.push(path);
        } else if let Some(rest) = name.strip_prefix("via") {
            let point = rest.split('.').next().unwrap_or_default().to_owned();
            if last_via.as_ref() != Some(&point) {
                files.via.push(Vec::new());
                last_via = Some(point);
            }
            if let Some(point) = files.via.last_mut() {
                point.push(path);
            }
        }
    }
    for (found, names) in [
        (&files.sent, "sent* or tx*"),
        (&files.received, "received* or rx*"),
    ] {
        if found.is_empty() {
            let shown = folder.display();
            return Err(Failure::mistake(format!("{shown}: no file called {names}")));
        }
    }
    Ok(files)
}
