use slicewise_stats::words::count;
use std::path::PathBuf;
use std::{fmt, io};

/// Operation on a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A file is read.
    Read,
    /// The names of what is in a folder are read.
    ReadFolder,
    /// A folder is made.
    CreateFolder,
    /// A file is written.
    Write,
    /// A file is removed.
    Remove,
    /// Files of packets are removed from a folder.
    RemovePackets,
}

impl Action {
    /// Returns true if nothing on the disk is to change.
    #[must_use]
    pub const fn is_reading(self) -> bool {
        matches!(self, Self::Read | Self::ReadFolder)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::ReadFolder => "read the folder",
            Self::CreateFolder => "create the folder",
            Self::Write => "write",
            Self::Remove => "remove",
            Self::RemovePackets => "remove the packets in",
        })
    }
}

/// Why a results folder cannot be used, or a part of it cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Reading or writing failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// Operation that was tried.
        action: Action,
        /// On what.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The folder holds the results of one study.
    #[error("`{}` holds the results of a study: name another folder for those of its cases", path.display())]
    NotASeries {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds other cases.
    #[error("`{}` holds cases of `{theirs}`, not of `{ours}`: name another folder", path.display())]
    OtherSeries {
        /// The folder.
        path: PathBuf,
        /// Name of the series that is there.
        theirs: String,
        /// Name of the series that was to be written.
        ours: String,
    },
    /// The description of the cases cannot be read.
    #[error(
        "`{}` is damaged ({reason}): remove it, and run the cases again into the same folder, which keeps their \
         finished runs",
        path.display()
    )]
    DamagedSeries {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The path is a file, not a folder.
    #[error("`{}` is a file: name a folder for the results", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error(
        "`{}` is not empty and holds no results: name an empty folder, or one that does not exist yet",
        path.display()
    )]
    NotAResultsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The path to be read is not a results folder.
    #[error(
        "`{}` {}: name the folder that a study was run into{}",
        path.display(),
        if *is_file { "is a file" } else { "holds no results of a study" },
        inside.as_ref().map(|root| format!(", here `{}`", root.display())).unwrap_or_default()
    )]
    NoResults {
        /// The path.
        path: PathBuf,
        /// True if the path is a file.
        is_file: bool,
        /// The results folder it lies in, where it does.
        inside: Option<PathBuf>,
    },
    /// The folder was taken away, or emptied, while it was in use.
    #[error(
        "`{}` is gone: the results folder was removed, moved or emptied while it was in use, and \
         nothing more is written into it",
        path.display()
    )]
    Gone {
        /// The description of the study that marked the folder.
        path: PathBuf,
    },
    /// Something lies where this program keeps a file or folder of its own, and is none.
    #[error(
        "`{}` is {what}, not {wanted}: this program did not make it and leaves it alone; move it away, or name \
         another folder",
        path.display()
    )]
    Foreign {
        /// Where.
        path: PathBuf,
        /// Kind of the object: "a link", "a named pipe".
        what: &'static str,
        /// Kind of object that should be there: "a file", "a folder".
        wanted: &'static str,
    },
    /// There is no folder to read.
    #[error("`{}` does not exist: run a study first, or name the folder one was run into", path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds results of another study, another version of it, or another seed.
    #[error(
        "`{}` holds results of {what} `{found}`, not of `{wanted}`: name another folder for the \
         new results",
        path.display()
    )]
    OtherStudy {
        /// The folder.
        path: PathBuf,
        /// Item that differs: "study", "study digest", "program version", "seed".
        what: &'static str,
        /// Value in the folder.
        found: String,
        /// Value that was asked for.
        wanted: String,
    },
    /// The folder holds runs of the study that this description of it gives other inputs.
    #[error(
        "`{}` holds {}{of} with other inputs{}: name another folder for the new results",
        path.display(),
        count(*runs, "run"),
        if *kept > 0 { format!(", and {kept} with the same") } else { String::new() }
    )]
    OtherInputs {
        /// The folder.
        path: PathBuf,
        /// How many.
        runs: u64,
        /// Of which policies or scenarios they are: " of policy `fq`", or empty.
        of: String,
        /// Runs whose inputs are the same.
        kept: u64,
    },
    /// A folder holds runs that cannot be put together with those of another one.
    #[error(
        "the {what} is `{found}` in `{}`, but `{wanted}` in `{}`: nothing was collected; leave out one of them, or run it \
         again with the file, the options and the program version of the other",
        path.display(),
        first.display()
    )]
    OtherShard {
        /// The folder.
        path: PathBuf,
        /// The folder that the others are compared with.
        first: PathBuf,
        /// Item that differs: "seed".
        what: String,
        /// Its value in the folder.
        found: String,
        /// Its value in the first one.
        wanted: String,
    },
    /// A folder to be put together with others holds runs that depend on their machine.
    #[error(
        "`{}` holds runs of real packets: only runs that are the same on every machine, simulated or from captures, can be \
         collected",
        path.display()
    )]
    RealPackets {
        /// The folder.
        path: PathBuf,
    },
    /// Two sound records of a run differ.
    #[error(
        "`{}` and `{}` have different records of repetition {repetition}, which is the same on every machine unless the \
         machine or slicewise has a defect: run it a third time into another folder, and remove the line that differs",
        one.display(),
        other.display()
    )]
    TwoRecords {
        /// The file found first.
        one: PathBuf,
        /// The other one.
        other: PathBuf,
        /// Repetition, from 0.
        repetition: u32,
    },
    /// Another process is writing into the folder.
    #[error("another process is writing into `{}`: wait for it, or name another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was written by a version of the program with another schema.
    #[error(
        "`{}` has schema version {found}, this program reads version {supported}: run the study \
         again into another folder, or use the version of the program that wrote this one",
        path.display()
    )]
    UnknownSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that can be read.
        supported: u32,
    },
    /// The description of the study cannot be read, so nothing beside it can be identified.
    #[error("`{}` is damaged ({reason}): run the study again into another folder", path.display())]
    DamagedStudy {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The description of the study cannot be read, and something lies beside it that no study
    /// writes: it would be thrown away with the results.
    #[error(
        "`{}` is damaged ({reason}), and `{}` beside it is no result: nothing was replaced; remove \
         your own files, or name another folder",
        path.display(),
        stranger.display()
    )]
    DamagedStudyAmongOthers {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
        /// File or folder beside it.
        stranger: PathBuf,
    },
    /// One run's record is half-written, corrupt, or another run's.
    #[error("`{}`{} cannot be trusted ({reason})", path.display(), in_line(*line))]
    DamagedRun {
        /// The file.
        path: PathBuf,
        /// Its line, from 1; `None` where it is the whole file.
        line: Option<u64>,
        /// Reason.
        reason: String,
    },
    /// The list of unsupported policies cannot be read.
    #[error("`{}` is damaged ({reason}): run the study again to write it again", path.display())]
    DamagedUnsupported {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A run handed in a record that is not sound, or not of this study: a fault of the program.
    #[error(
        "the record for `{}` is not sound ({reason}) and was not written: this is a bug in slicewise",
        path.display()
    )]
    RefusedRecord {
        /// Where it would have been written.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
}

impl ResultsError {
    /// `action` failed on `path`.
    #[must_use]
    pub fn io(action: Action, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source,
        }
    }

    /// True where one run's record is to be thrown away and the run done again.
    #[must_use]
    pub fn is_damaged_run(&self) -> bool {
        matches!(self, Self::DamagedRun { .. })
    }

    /// True where the user named the wrong folder (exit code 2), false where something failed
    /// (exit code 1).
    #[must_use]
    pub fn is_users_mistake(&self) -> bool {
        match self {
            Self::NotAFolder { .. }
            | Self::NotASeries { .. }
            | Self::OtherSeries { .. }
            | Self::DamagedSeries { .. }
            | Self::NotAResultsFolder { .. }
            | Self::Missing { .. }
            | Self::NoResults { .. }
            | Self::DamagedStudyAmongOthers { .. }
            | Self::OtherStudy { .. }
            | Self::OtherInputs { .. }
            | Self::OtherShard { .. }
            | Self::RealPackets { .. }
            | Self::Foreign { .. }
            | Self::InUse { .. } => true,
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::InvalidFilename
            ),
            Self::UnknownSchema { .. }
            | Self::DamagedStudy { .. }
            | Self::DamagedRun { .. }
            | Self::DamagedUnsupported { .. }
            | Self::Gone { .. }
            | Self::TwoRecords { .. }
            | Self::RefusedRecord { .. } => false,
        }
    }
}

fn in_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line},"))
}
