//! A measured study as written: slices, and captures of runs that somebody else carried out.

use super::containers::{List, Named, OneOrMany, Short};
use super::plan::PlanLinkSpec;
use super::policy::{ScalabilitySpec, VerdictSpec};
use super::scalar::{Name, Share, Text};
use super::traffic::MatchSpec;
use super::{MarginsSpec, MeasureSpec, ObjectiveSpec};
use crate::file::At;
use serde::Deserialize;
use slicewise_units::{BitRate, Duration};

/// A study whose runs have been captured. With slices alone: how to tell them in any capture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredStudySpec {
    pub(crate) name: Option<Text<Name>>,
    pub(crate) title: Option<Text<String>>,
    pub(crate) description: Option<Text<String>>,
    pub(crate) source: Option<Text<String>>,
    /// What was tested, in one line.
    pub(crate) dut: Option<Text<String>>,
    /// What the slices share: a rate, or a rate and what it counts.
    pub(crate) link: Option<At<Short<BitRate, PlanLinkSpec>>>,
    #[serde(default)]
    pub(crate) slices: Named<MeasuredSliceSpec>,
    #[serde(default)]
    pub(crate) policies: Named<MeasuredPolicySpec>,
    #[serde(default)]
    pub(crate) scenarios: Named<MeasuredScenarioSpec>,
    pub(crate) repetitions: Option<Text<u32>>,
    /// How long traffic was offered in a run. Default: as long as the captures show.
    pub(crate) duration: Option<Text<Duration>>,
    pub(crate) captures: Option<At<CapturesSpec>>,
    pub(crate) measure: Option<MeasureSpec>,
    pub(crate) margins: Option<MarginsSpec>,
}

/// A slice: who belongs to it and what it was promised.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredSliceSpec {
    #[serde(rename = "match")]
    pub(crate) matches: Option<At<OneOrMany<MatchSpec>>>,
    /// Its share of the link: needed where isolation and reallocation are to be judged.
    pub(crate) share: Option<Text<Share>>,
    pub(crate) guaranteed: Option<Text<bool>>,
    /// What it needs in absolute terms.
    pub(crate) objective: Option<At<ObjectiveSpec>>,
}

/// What was configured: only told, not understood.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredPolicySpec {
    pub(crate) title: Option<Text<String>>,
    pub(crate) configuration: Option<Text<String>>,
    pub(crate) scalability: Option<At<ScalabilitySpec>>,
    pub(crate) published: Option<At<VerdictSpec>>,
}

/// What was offered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredScenarioSpec {
    pub(crate) title: Option<Text<String>>,
    pub(crate) reference: Option<Text<bool>>,
    /// The time after which the load repeats, where it is switched on and off.
    pub(crate) cycle: Option<Text<Duration>>,
}

/// Where the captures are: paths relative to the file, with `{policy}`, `{scenario}` and
/// `{repetition}`, and `*` for any part of a file's name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapturesSpec {
    pub(crate) sent: Text<String>,
    pub(crate) received: Text<String>,
    /// Points between the two, in the order packets pass them.
    #[serde(default)]
    pub(crate) via: List<Text<String>>,
    /// Whoever has not arrived after so long is lost (RFC 7680).
    pub(crate) loss_timeout: Option<Text<Duration>>,
}
