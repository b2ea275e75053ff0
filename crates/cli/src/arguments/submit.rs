//! Options of `slicewise submit`.

use super::{JudgementOptions, Selection};
use clap::{Args, ValueEnum};
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct SubmitOptions {
    #[command(flatten)]
    pub selection: Selection,
    /// Scheduler of the cluster.
    #[arg(long, value_enum, value_name = "SCHEDULER")]
    pub to: Engine,
    /// Number of shards: jobs that may run at the same time.
    #[arg(long, value_name = "N")]
    pub shards: NonZeroU32,
    /// Processors of each shard, which carries out as many runs at a time.
    #[arg(long, value_name = "N", default_value = "1")]
    pub cpus: NonZeroU32,
    /// The results folder that the shards are collected into [default: results/<name of the study>, with `-quick` behind it].
    /// Shards are in `DIR-shard-2-of-4`, scripts and logs in `DIR-slurm` or `DIR-kubernetes`.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the scripts, and submit nothing.
    #[arg(long)]
    pub write_only: bool,
    /// Submit, and leave at once.
    #[arg(long, conflicts_with = "write_only")]
    pub no_wait: bool,
    /// Kubernetes: the image, with `slicewise` and `sh`.
    #[arg(long, value_name = "IMAGE", required_if_eq("to", "kubernetes"))]
    pub image: Option<String>,
    /// Kubernetes: persistent volume claim, shared by all nodes, that holds the contents of the current folder.
    #[arg(long, value_name = "NAME", required_if_eq("to", "kubernetes"))]
    pub claim: Option<String>,
    /// Kubernetes: the namespace [default: that of kubectl's context].
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub judgement: JudgementOptions,
    /// Slurm: options of `sbatch`, for the array and for the job that collects.
    #[arg(last = true, value_name = "SBATCH_OPTION")]
    pub sbatch: Vec<String>,
}

/// Schedulers that shards are submitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// An array of jobs.
    Slurm,
    /// An Indexed Job.
    Kubernetes,
}

impl Engine {
    /// Returns the end of the name of the folder with scripts and logs.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Slurm => "-slurm",
            Self::Kubernetes => "-kubernetes",
        }
    }
}
