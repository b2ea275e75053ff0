//! The study file: what is run, on what, and how it is judged.
//!
//! [`Study::load`] reads a YAML file (and the files it names) and gives either a [`Study`], in
//! which every name is resolved and every default filled in, or [`Diagnostics`]: everything found
//! wrong, each with its place. [`Study::runs`] lists what there is to execute, and a [`Backend`]
//! executes it. `docs/study-file.md` describes the file.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bound;
mod bursts;
mod cases;
mod check;
mod description;
mod device;
mod diagnostics;
mod expand;
mod export;
mod file;
mod fill;
mod from_ios;
mod gateway;
mod inputs;
mod kind;
mod lab;
mod licence;
mod load;
mod measured;
mod misfit;
mod packets;
pub mod params;
mod plan;
mod quick;
mod reallocation;
mod run;
mod seed;
mod spec;
mod study;
mod testbed;
mod timeline;
mod transactions;

pub use cases::{Series, StudyFile, SweepAxis};
pub use diagnostics::{Diagnostic, Diagnostics};
pub use file::{FileError, Files, Folder, MAX_FILE_BYTES, MemoryFiles};
pub(crate) use file::{problem, settings};
pub use from_ios::{IosStudy, study_of_ios};
pub use gateway::{
    DEFAULT_MEMORY, DEFAULT_METRICS_PORT, GatewayConfig, GatewayController, GatewayDirection,
    GatewayPacketIo,
};
pub use kind::{FileKind, json_schema};
pub use lab::{ConfigurationLanguage, ConfiguredBy, Lab, LabClocks, LabDevice, LabHost};
pub use load::{Misfits, ios_text};
pub use measured::{CapturePatterns, MeasuredStudy};
pub use misfit::Misfit;
pub use params::{
    AdaptationRule, ApplicationParams, ApplicationSourceParams, BACKLOG_FRAMES, BulkParams,
    CongestionControl, DelayDistribution, DelayVariationParams, DutModel, DutParams, FlowArrivals,
    FlowControlParams, HopParams, HostTiming, ImpairmentParams, LicenceParams, LinkImpairments,
    LossParams, MAX_WAITING_FRAMES, MeasureParams, OnOffParams, PacketSize, PatternParams, Periods,
    PopulationParams, PopulationPatternParams, QosSchedBursts, QosSchedParams, QosSchedRings,
    QosSchedThreads, RequestsParams, ScenarioParams, ServerParams, ShortFlowsParams, SizesParams,
    SourceHeaders, SourceParams, StudyLink, StudySlice, SwitchParams, TcpProfile, TransferSizes,
    TransportParams, VideoParams, WeightedSize,
};
pub use plan::{Plan, PlanOutcome, PlannedSlice, SliceOutcome};
pub use quick::QuickParams;
pub use run::{Backend, FilterError, RunError, RunFilter, RunSpec};
pub use spec::code_point;
pub use study::{Phase, Study, StudyPolicy};
pub use testbed::{Pacing, TestbedError};
