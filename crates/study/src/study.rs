//! A validated study.

use crate::diagnostics::Diagnostics;
use crate::params::{
    DutParams, HopParams, HostTiming, MeasureParams, PopulationParams, ScenarioParams, StudyLink,
    StudySlice,
};
use crate::quick::QuickParams;
use slicewise_model::{PolicyParams, PolicySpec, Rate, ReallocationParams};
use slicewise_stats::description::{
    Coordinate, Margins, PublishedFigure, PublishedVerdict, Scalability,
};
use slicewise_stats::plot::PlotDescription;
use slicewise_stats::verdict::runs_to_hold;
use slicewise_stats::words::{count, percent};
use slicewise_traffic::RateSeries;
use slicewise_units::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A study: every name resolved, every default filled in, every contradiction refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Name: also the results folder's.
    pub name: String,
    /// The case of its file that it is; `None` where the file holds one study.
    pub case: Option<String>,
    /// One line for people.
    pub title: String,
    /// A paragraph for people; may be empty.
    pub description: String,
    /// Where the published figures come from; may be empty.
    pub source: String,
    /// Name of the file it came from, without its folder.
    pub file_name: String,
    /// Assumptions that the published study does not state, one text each.
    pub assumptions: Vec<String>,
    /// The links at both sides of the device.
    pub link: StudyLink,
    /// The device under test; of a path the device that limits it: of those under the policy that is compared,
    /// the one with the least capacity.
    pub dut: DutParams,
    /// Rates of its port, where they change during a run; the rate of `dut` is then their mean over `duration`.
    pub port_series: Option<Arc<RateSeries>>,
    /// The devices of a path, in the order in which frames pass them; empty where `dut` is alone.
    pub path: Vec<HopParams>,
    /// The hosts.
    pub hosts: HostTiming,
    /// Propagation delay of the links of hosts that have one of their own, by the name of the host.
    pub host_propagation: BTreeMap<String, Duration>,
    /// Slices in order; at least one.
    pub slices: Vec<StudySlice>,
    /// Populations in order; where there are any, they send everything.
    pub populations: Vec<PopulationParams>,
    /// Policies in order; at least one.
    pub policies: Vec<StudyPolicy>,
    /// Scenarios in order; at least one.
    pub scenarios: Vec<ScenarioParams>,
    /// Repetitions of each policy × scenario; at least one.
    pub repetitions: u32,
    /// How long traffic is offered in a run.
    pub duration: Duration,
    /// The seed all others are derived from.
    pub seed: u64,
    /// How it is measured.
    pub measure: MeasureParams,
    /// Margins of the verdicts.
    pub margins: Margins,
    /// The study says itself which increase of delay is always tolerated.
    pub(crate) is_resolution_declared: bool,
    /// Published figures.
    pub published: Vec<PublishedFigure>,
    /// Where it stands on each axis of a sweep, in their order; empty if it is no point of one.
    pub coordinates: Vec<Coordinate>,
    /// Figures that its file declares and that draw it.
    pub plots: Vec<PlotDescription>,
    /// The phases of every run, in order of time; empty where nothing changes during a run. The first is the study
    /// itself.
    pub phases: Vec<Phase>,
    /// A profile of minutes instead of hours, where the study gives one.
    pub quick: Option<QuickParams>,
    /// Features that the simulator does not model, a sentence each.
    pub(crate) limits: Vec<String>,
    /// How configurations in other languages were understood, a sentence each.
    pub(crate) statements: Vec<String>,
    pub(crate) warnings: Diagnostics,
    /// Only that profile is left of it.
    pub(crate) is_quick: bool,
    pub(crate) digest: String,
}

/// A part of every run, from one change of the timeline to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Name.
    pub name: String,
    /// One line for people; may be empty.
    pub title: String,
    /// When it begins, from the start of the run.
    pub begins: Duration,
    /// From when it is measured: the settling time later.
    pub measured_from: Duration,
    /// When it ends.
    pub ends: Duration,
    /// Changes as it begins, a few words each; empty for the first.
    pub changes: Vec<String>,
    /// The study as it is in this phase, which has no phases itself: slices, policies and scenarios with their names in
    /// the same order as in the first one.
    pub study: Study,
}

/// A policy of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyPolicy {
    /// Name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The configuration as text, as it was written.
    pub configuration: String,
    /// The policy as written.
    pub spec: PolicySpec,
    /// Of one read from IOS text: the name of its policy map, which may be another than the policy's.
    pub policy_map: Option<String>,
    /// The policy, validated for the study's device: what a data plane runs.
    pub params: PolicyParams,
    /// The control loop that sets rates of its classes, if one does.
    pub reallocation: Option<ReallocationParams>,
    /// The device that runs it, where that is another one than the study's.
    pub device: Option<DutParams>,
    /// How many slices it holds on this device.
    pub scalability: Scalability,
    /// It is the device that limits it: on another one it is another number.
    pub(crate) scalability_is_of_device: bool,
    /// Other policies that its configuration attaches where packets pass, and that are not part of what is judged, as the
    /// end of a sentence.
    pub not_judged: Option<String>,
    /// Verdicts as published, where they were.
    pub published_verdict: Option<PublishedVerdict>,
    /// Assumptions that its verdict rests on, each with what it would be otherwise.
    pub rests_on: Vec<String>,
}

impl Study {
    /// Propagation delay of the link of a host that sends; `None` is that of sources that name none.
    #[must_use]
    pub fn propagation_from(&self, host: Option<&str>) -> Duration {
        let own = host.and_then(|host| self.host_propagation.get(host));
        own.copied().unwrap_or(self.link.propagation)
    }

    /// SHA-256, in hexadecimal, over the study's text and every file it names.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Of a case, the name of the series that it belongs to.
    #[must_use]
    pub fn series(&self) -> Option<&str> {
        let name = self.name.strip_suffix(self.case.as_deref()?)?;
        name.strip_suffix('-')
    }

    /// Settings that do not do in a simulation what they say, each with its place; may be empty.
    #[must_use]
    pub const fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Number of its runs: every policy under every scenario, repeated.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        let cells = self.policies.len().saturating_mul(self.scenarios.len());
        let cells = u64::try_from(cells).unwrap_or(u64::MAX);
        cells.saturating_mul(self.repetitions.into())
    }

    /// Where something is promised and the study has too few repetitions for any verdict of "holds": a sentence that says how
    /// many it takes.
    #[must_use]
    pub fn too_few_repetitions(&self) -> Option<String> {
        let is_promised = |slice: &StudySlice| slice.guaranteed || slice.objective.is_some();
        self.slices.iter().find(|slice| is_promised(slice))?;
        let needed = runs_to_hold(&self.margins)?;
        (self.repetitions < needed).then(|| {
            format!(
                "{} cannot show that anything holds: excluding an effect in {} of runs \
                 (`margins.rare_runs`) requires {needed}",
                count(self.repetitions.into(), "repetition"),
                percent(self.margins.rare_runs)
            )
        })
    }

    /// The rate that slices share under a policy: that of its own device, where it has one.
    #[must_use]
    pub fn capacity_of(&self, policy: &StudyPolicy) -> Rate {
        policy.device.as_ref().unwrap_or(&self.dut).capacity()
    }

    /// The devices between sender and receiver and the policy that each is under, for policy number `policy`; empty
    /// where there is no such policy.
    pub fn hops(&self, policy: usize) -> impl Iterator<Item = (&DutParams, &PolicyParams)> {
        let alone = self.policies.get(policy).filter(|_| self.path.is_empty());
        let hops = self.path.iter();
        let on_path = hops.filter_map(move |hop| Some((&hop.device, hop.policies.get(policy)?)));
        alone
            .map(|policy| (policy.device.as_ref().unwrap_or(&self.dut), &policy.params))
            .into_iter()
            .chain(on_path)
    }
}
