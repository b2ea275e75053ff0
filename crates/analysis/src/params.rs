//! Parameters of an analysis.

use crate::changed::ChangedFlows;
use crate::offload::SplitFlow;
use slicewise_capture::CaptureError;
use slicewise_model::ClassMap;
use slicewise_stats::collect::{CollectorError, MeasuredPhase};
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
    /// How packets are assigned to slices.
    pub slices: SliceRule,
    /// Width of a bin of the time series.
    pub bin: Duration,
    /// How long traffic was offered, and the longest on/off cycle of the load. `None`: as stated in the
    /// captures, or as long as there are packets, and no cycle.
    pub run: Option<RunLength>,
    /// Parts of the run that are measured for themselves, where its length is known and slices are matched.
    pub phases: Vec<MeasuredPhase>,
    /// True if medians of delay are kept from several moments on, for a run of known length that is compared with its
    /// prediction.
    pub medians: bool,
    /// Packets that have not arrived after this time are lost (RFC 7680).
    pub loss_timeout: Duration,
    /// If the clocks of the two ends disagree: correct received times by the estimate instead of
    /// reporting no delays.
    pub accept_clock_estimate: bool,
    /// Packets are those inside tunnels of IP in IP, GRE and VXLAN, instead of the outer ones.
    pub innermost: bool,
}

/// Timing of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLength {
    /// Start of the run, ns by the clock of the sending point: packets sent before it or after the end
    /// are not part of the run. `None`: the first packet sent, and every packet is part of the run.
    pub start_ns: Option<u64>,
    /// How long traffic was offered: a whole number of bins.
    pub duration: Duration,
    /// The longest on/off cycle of the load; zero if constant.
    pub cycle: Duration,
}

/// How packets are classified into slices.
#[derive(Debug, Clone)]
pub enum SliceRule {
    /// By VLAN, and otherwise by flow.
    Automatic,
    /// The first slice whose class map matches.
    Matched(Vec<MatchedSlice>),
}

/// A slice defined by its class map.
#[derive(Debug, Clone)]
pub struct MatchedSlice {
    /// Name.
    pub name: String,
    /// Its class map.
    pub matches: ClassMap,
    /// Headers of its first source, whose inter-arrival times are measured; `None`: the first flow seen.
    pub first_source: Option<Headers>,
    /// Its objectives, if the study states any.
    pub objective: Option<Objective>,
}

/// Why captures could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A file cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Bins do not fit the run.
    #[error("cannot build the time series: {0}")]
    Series(#[from] CollectorError),
    /// Nothing in the captures can be used.
    #[error("{0}")]
    Nothing(String),
    /// An adapter or a kernel splits or merges segments between the two captures.
    #[error("{0}")]
    Split(SplitFlow),
    /// Something between the two captures changes packets.
    #[error("{0}")]
    Changed(ChangedFlows),
    /// Files have to be read again, and one of them cannot.
    #[error(
        "standard input and pipes can be read only once, but {why}: write them to files first, \
         and give \
         those"
    )]
    ReadOnce {
        /// Why a second read is needed.
        why: &'static str,
    },
    /// The packet sink failed.
    #[error("{0}")]
    Sink(String),
    /// Interrupted.
    #[error("stopped")]
    Interrupted,
}
