//! What is to be analysed, and how.

use crate::offload::SplitFlow;
use slicewise_capture::CaptureError;
use slicewise_model::ClassMap;
use slicewise_stats::collect::CollectorError;
use slicewise_stats::objective::Objective;
use slicewise_units::Duration;
use slicewise_wire::Headers;
use std::path::PathBuf;

/// Captures of one run, and how to read them.
#[derive(Debug, Clone)]
pub struct AnalysisParams {
    /// Files of the point where packets were sent.
    pub sent: Vec<PathBuf>,
    /// Files of the points between, in the order packets pass them.
    pub via: Vec<Vec<PathBuf>>,
    /// Files of the point where packets were received.
    pub received: Vec<PathBuf>,
    /// Whose packets are whose.
    pub slices: SliceRule,
    /// Width of a bin of the time series.
    pub bin: Duration,
    /// How long traffic was offered, and the longest on/off cycle of the load. `None`: what the
    /// captures say of themselves, or as long as there are packets, and no cycle.
    pub run: Option<RunLength>,
    /// Whoever has not arrived after so long is lost (RFC 7680).
    pub loss_timeout: Duration,
    /// Where the clocks of the two ends disagree: correct received times by the estimate, instead of
    /// telling no delays.
    pub accept_clock_estimate: bool,
}

/// How a run went in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLength {
    /// When it began, ns by the clock of the sending point: packets sent before, or once it was over, are
    /// not the run's. `None`: with what was sent first, and every packet is the run's.
    pub start_ns: Option<u64>,
    /// How long traffic was offered: a whole number of bins.
    pub duration: Duration,
    /// The longest on/off cycle of the load; zero where it is constant.
    pub cycle: Duration,
}

/// How slices are told apart.
#[derive(Debug, Clone)]
pub enum SliceRule {
    /// By VLAN, and otherwise by flow.
    Automatic,
    /// The first slice that matches.
    Matched(Vec<MatchedSlice>),
}

/// A slice told by its class map.
#[derive(Debug, Clone)]
pub struct MatchedSlice {
    /// Name.
    pub name: String,
    /// Its packets.
    pub matches: ClassMap,
    /// Headers of its first source, whose inter-arrival times are measured; `None`: of the flow of
    /// which a packet is seen first.
    pub first_source: Option<Headers>,
    /// What it needs, where the study says so.
    pub objective: Option<Objective>,
}

/// Why captures could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A file cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Bins do not fit the run.
    #[error("the series cannot be made: {0}")]
    Series(#[from] CollectorError),
    /// Nothing in the captures is of any use.
    #[error("{0}")]
    Nothing(String),
    /// An adapter or a kernel splits or joins segments between the two captures.
    #[error("{0}")]
    Split(SplitFlow),
    /// Files have to be read again, and one of them cannot be.
    #[error(
        "standard input and pipes can be read only once, and {why}: write them to files first, and give \
         those"
    )]
    ReadOnce {
        /// Why again.
        why: &'static str,
    },
    /// Whoever is told of the packets could not take one.
    #[error("{0}")]
    Sink(String),
    /// It was asked to stop.
    #[error("stopped")]
    Interrupted,
}
