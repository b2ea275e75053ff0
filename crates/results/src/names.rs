//! Names of what lies in a results folder, and limits of what is read.

/// Names of the tables of a report: each as `data/NAME.csv` and `data/NAME.parquet`.
pub const TABLES: [&str; 28] = [
    "runs",
    "series",
    "delay_cdf",
    "iat_cdf",
    "received_iat_cdf",
    "drops",
    "link_losses",
    "loss_episodes",
    "queues",
    "elephants",
    "phases",
    "applications",
    "application_series",
    "application_times",
    "application_cells",
    "cells",
    "verdicts",
    "verdict_tests",
    "published",
    "populations",
    "flows",
    "hops",
    "back_ends",
    "beside_verdicts",
    "beside_cells",
    "prediction",
    "testbed_runs",
    "testbed_senders",
];

/// First parts of the names of a report's figures, by what they show.
pub const FIGURE_KINDS: [&str; 18] = [
    "throughput",
    "loss",
    "delay-mean",
    "delay-p99",
    "beside-loss",
    "beside-delay-mean",
    "beside-delay-p99",
    "scale",
    "delay-cdf",
    "time-series",
    "application-goodput",
    "application-rtt",
    "request-latency",
    "completion-time",
    "quality",
    "application-series",
    DECLARED_FIGURE,
    HEAT_MAP,
];

/// First part of the names of figures that a study declares.
pub const DECLARED_FIGURE: &str = "figure";

/// First part of the names of their heat maps over the two axes of a sweep.
pub const HEAT_MAP: &str = "map";

/// End of the names of figures that are one column wide.
pub const NARROW: &str = "@85mm";
/// Script in the folder of figures that draws their data.
pub const FIGURE_SCRIPT: &str = "plot.py";

pub(crate) const STUDY_FILE: &str = "study.json";
/// Folders that a study writes at the top of its folder.
pub(crate) const FOLDERS: [&str; 7] = [
    "runs",
    "data",
    "figures",
    "packets",
    TRANSACTIONS_FOLDER,
    PREDICTION_FOLDER,
    REPLAY_FOLDER,
];
/// Files that a study writes there. The marker is the last one.
pub(crate) const FILES: [&str; 4] = ["report.html", "host.json", UNSUPPORTED_FILE, STUDY_FILE];
pub(crate) const UNSUPPORTED_FILE: &str = "unsupported.json";
pub(crate) const TRANSACTIONS_FOLDER: &str = "transactions";
pub(crate) const PREDICTION_FOLDER: &str = "prediction";
pub(crate) const REPLAY_FOLDER: &str = "replay";
pub(crate) const LOCK_FILE: &str = ".lock";
pub(crate) const FORMAT: &str = "slicewise results";
/// As many as a study may have: each is looked for when the folder is read.
pub(crate) const MOST_REPETITIONS: u32 = 10_000;
/// Largest files read. A record has at most a million bins and 260,000 flows, which take half of this.
pub(crate) const RECORD_BYTES: u64 = 1 << 30;
pub(crate) const STUDY_BYTES: u64 = 64 << 20;
pub(crate) const FACTS_BYTES: u64 = 16 << 20;
