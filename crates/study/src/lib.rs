//! The study file: what is run, on what, and how it is judged.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod params;
mod run;
mod study;

pub use params::{
    DutModel, DutParams, HostParams, LicenceParams, LinkParams, MeasureParams, OnOffParams,
    PatternParams, ScenarioParams, SliceParams, SourceHeaders, SourceParams,
};
pub use run::{Backend, RunError, RunSpec};
pub use study::{Study, StudyPolicy};
