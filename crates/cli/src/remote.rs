//! Folders of results that are named `s3://BUCKET/PREFIX`.

#[cfg(feature = "s3")]
mod copies;

use crate::Failure;
use crate::arguments::{Command, RunOptions};
use crate::exit::Exit;
use std::path::{Path, PathBuf};

/// Carries out a command. In the place of folders in object storage it gets copies on this machine, whose changes are
/// put while it runs and at its end.
pub fn with_copies(
    command: &mut Command,
    carry_out: impl FnOnce(&Command) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    match &*command {
        Command::Run(options) => refuse_local(options)?,
        Command::Submit(options) if options.out.as_deref().is_some_and(is_remote) => {
            return Err(Failure::mistake(
                "scripts and logs of `submit` are in a folder that all nodes share: name one with `--out`; `slicewise collect \
                 s3://… DIR-shard-*` puts shards into object storage",
            ));
        }
        _ => {}
    }
    let mut folders = folders(command);
    folders.retain(|(folder, _)| is_remote(folder));
    if folders.is_empty() {
        return carry_out(command);
    }
    #[cfg(not(feature = "s3"))]
    return Err(Failure::left_out("s3"));
    #[cfg(feature = "s3")]
    {
        let copies = copies::Copies::open(folders)?;
        copies.conclude(carry_out(command))
    }
}

/// Options of `run` whose files are many or large, and are not kept by records.
fn refuse_local(options: &RunOptions) -> Result<(), Failure> {
    let is_remote = |folder: &Option<PathBuf>| folder.as_deref().is_some_and(is_remote);
    let option = match options {
        _ if is_remote(&options.captures) => "--captures",
        _ if options.seeds.is_some() && is_remote(&options.out) => "--seeds",
        _ => return Ok(()),
    };
    Err(Failure::mistake(format!(
        "`{option}` writes no results that could be gone on with: name a folder on this machine instead of object storage"
    )))
}

fn is_remote(folder: &Path) -> bool {
    let text = folder.to_str();
    text.is_some_and(|text| text.contains("://") || text.starts_with("s3:"))
}

/// Use that a command makes of a results folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    /// A shard, whose runs are collected.
    Collect,
    /// Verdicts do not depend on whether the report can be written.
    Report,
    Write,
}

/// Results folders that the command line names.
fn folders(command: &mut Command) -> Vec<(&mut PathBuf, Use)> {
    let read = |folder| (folder, Use::Read);
    let write = |folder| (folder, Use::Write);
    match command {
        Command::Run(options) => options.out.iter_mut().map(write).collect(),
        Command::Analyse(options) => options.out.iter_mut().map(write).collect(),
        Command::Collect(options) => {
            let shards = options.shards.iter_mut();
            let shards = shards.map(|folder| (folder, Use::Collect));
            shards.chain([write(&mut options.results)]).collect()
        }
        Command::Report(options) => {
            let beside = options.beside.iter_mut().map(read);
            beside
                .chain([(&mut options.results, Use::Report)])
                .collect()
        }
        Command::Compare(options) => [&mut options.a, &mut options.b].map(read).into(),
        _ => Vec::new(),
    }
}
