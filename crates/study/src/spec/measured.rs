//! A measured study as written: slices, and captures of runs that somebody else carried out.

use super::containers::{List, Named, OneOrMany, Short};
use super::plan::PlanLinkSpec;
use super::policy::{ScalabilitySpec, VerdictSpec};
use super::scalar::{Name, Repetitions, Share, Text};
use super::traffic::MatchSpec;
use super::{MarginsSpec, MeasureSpec, ObjectiveSpec};
use crate::file::At;
use schemars::JsonSchema;
use serde::Deserialize;
use slicewise_units::{BitRate, Duration};

/// A study whose runs have been captured. With slices alone: how to classify packets of any capture.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Slicewise measured study", transform = crate::schema::require_of_measured)]
pub(crate) struct MeasuredStudySpec {
    /// Name of the study, and of the folder its results go to.
    pub(crate) name: Option<Text<Name>>,
    /// One line that says what is studied.
    pub(crate) title: Option<Text<String>>,
    /// A paragraph for the report.
    pub(crate) description: Option<Text<String>>,
    /// The publication that the published verdicts come from.
    pub(crate) source: Option<Text<String>>,
    /// What was tested, in one line.
    pub(crate) dut: Option<Text<String>>,
    /// What the slices share: a rate, or a rate and what it counts.
    pub(crate) link: Option<At<Short<BitRate, PlanLinkSpec>>>,
    /// The slices, by name: a packet belongs to the first that matches.
    #[serde(default)]
    pub(crate) slices: Named<MeasuredSliceSpec>,
    /// The policies that were compared, by name.
    #[serde(default)]
    pub(crate) policies: Named<MeasuredPolicySpec>,
    /// The scenarios, by name.
    #[serde(default)]
    pub(crate) scenarios: Named<MeasuredScenarioSpec>,
    /// How often each policy was run under each scenario.
    pub(crate) repetitions: Option<Text<Repetitions>>,
    /// How long traffic was offered in a run. Default: as long as the captures show.
    pub(crate) duration: Option<Text<Duration>>,
    /// Where the captures of each run are.
    pub(crate) captures: Option<At<CapturesSpec>>,
    /// How it is measured.
    pub(crate) measure: Option<MeasureSpec>,
    /// How much worsening the verdicts tolerate, and with what confidence.
    pub(crate) margins: Option<MarginsSpec>,
}

/// A slice: which frames belong to it and what it was promised.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredSliceSpec {
    /// Which frames belong to it: conditions that must all hold, or a list of such groups, one of which must.
    #[serde(rename = "match")]
    pub(crate) matches: Option<At<OneOrMany<MatchSpec>>>,
    /// Its share of the link: needed where isolation and reallocation are to be judged.
    pub(crate) share: Option<Text<Share>>,
    /// Whether the share is guaranteed, and the slice's isolation judged. Default false.
    pub(crate) guaranteed: Option<Text<bool>>,
    /// What it needs in absolute terms.
    pub(crate) objective: Option<At<ObjectiveSpec>>,
}

/// What was configured: reported, not interpreted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredPolicySpec {
    /// One line for people. Default: the name.
    pub(crate) title: Option<Text<String>>,
    /// The configuration, for the report.
    pub(crate) configuration: Option<Text<String>>,
    /// How many slices it can hold.
    pub(crate) scalability: Option<At<ScalabilitySpec>>,
    /// The verdicts of a publication.
    pub(crate) published: Option<At<VerdictSpec>>,
}

/// What was offered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredScenarioSpec {
    /// One line for people. Default: the name.
    pub(crate) title: Option<Text<String>>,
    /// No slice exceeds what was promised: isolation is judged against this scenario.
    pub(crate) reference: Option<Text<bool>>,
    /// The time after which the load repeats, where it is switched on and off.
    pub(crate) cycle: Option<Text<Duration>>,
}

/// Where the captures are: paths relative to the file, with `{policy}`, `{scenario}` and
/// `{repetition}`, and `*` for any part of a file's name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapturesSpec {
    /// Captured where packets were sent.
    pub(crate) sent: Text<String>,
    /// Captured where they were received.
    pub(crate) received: Text<String>,
    /// Points between the two, in the order packets pass them.
    #[serde(default)]
    pub(crate) via: List<Text<String>>,
    /// A packet that has not arrived after this time is lost (RFC 7680).
    pub(crate) loss_timeout: Option<Text<Duration>>,
}
