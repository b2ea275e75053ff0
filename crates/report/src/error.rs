use slicewise_results::ResultsError;
use std::path::PathBuf;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The results folder cannot be used.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// There is nothing to report on.
    #[error("`{}` holds no finished run: run the study first", path.display())]
    NoRuns {
        /// The folder.
        path: PathBuf,
    },
    /// A folder of cases in which there is nothing to report on.
    #[error("`{}` holds cases of which none has a finished run: run them first", path.display())]
    NoCaseRun {
        /// The folder.
        path: PathBuf,
    },
    /// A folder to be set beside another one is of another study.
    #[error(
        "`{}` holds results of study `{found}`, not of `{wanted}`: combine folders of one study only, \
         or run `{wanted}` on another back end first",
        path.display()
    )]
    OtherStudyBeside {
        /// The folder.
        path: PathBuf,
        /// The study it holds.
        found: String,
        /// The study of the report.
        wanted: String,
    },
    /// A folder was named twice.
    #[error("`{}` is named twice: name each results folder once", path.display())]
    SameFolderTwice {
        /// The folder.
        path: PathBuf,
    },
    /// A folder around the results of several cases, where those of one study are needed.
    #[error("`{}` holds the results of several cases: {cases}", path.display())]
    SeveralCases {
        /// The folder.
        path: PathBuf,
        /// The folders of the cases.
        cases: String,
    },
    /// Two folders to be compared have nothing to compare.
    #[error(
        "`{}` and `{}` have no slice of a policy and scenario in common that has runs in both: {only}; compare \
         results of studies that share these names",
        a.display(),
        b.display()
    )]
    NothingInCommon {
        /// The one folder.
        a: PathBuf,
        /// The other one.
        b: PathBuf,
        /// Parts that each of them has alone.
        only: String,
    },
    /// A table could not be written as Parquet.
    #[error("cannot write `{}`: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        source: parquet::errors::ParquetError,
    },
    /// A figure could not be drawn.
    #[error("cannot draw `{}`: {reason}", path.display())]
    Figure {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        reason: String,
    },
}

impl ReportError {
    /// True where the runs could be read, and what is made of them not be written.
    #[must_use]
    pub fn is_unwritten(&self) -> bool {
        match self {
            Self::Results(ResultsError::Io { action, .. }) => !action.is_reading(),
            Self::Parquet { .. } => true,
            _ => false,
        }
    }

    /// True where the user named the wrong folder (exit code 2), false where something failed
    /// (exit code 1).
    #[must_use]
    pub fn is_users_mistake(&self) -> bool {
        match self {
            Self::Results(error) => error.is_users_mistake(),
            Self::NoRuns { .. }
            | Self::NoCaseRun { .. }
            | Self::SeveralCases { .. }
            | Self::OtherStudyBeside { .. }
            | Self::SameFolderTwice { .. }
            | Self::NothingInCommon { .. } => true,
            Self::Parquet { .. } | Self::Figure { .. } => false,
        }
    }
}
