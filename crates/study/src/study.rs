//! A validated study.

use crate::bound;
use crate::device;
use crate::diagnostics::Diagnostics;
use crate::impairments::{ImpairmentParams, LinkImpairments};
use crate::params::{
    DutParams, HostParams, LinkParams, MeasureParams, PopulationParams, ScenarioParams, SliceParams,
};
use crate::quick::QuickParams;
use slicewise_model::{PolicyParams, PolicySpec};
use slicewise_stats::backend::SIMULATOR;
use slicewise_stats::description::{
    Margins, PolicyDescription, PublishedFigure, PublishedVerdict, Scalability,
    ScenarioDescription, SliceDescription, StudyDescription,
};
use slicewise_stats::verdict::repetitions_to_hold;
use slicewise_stats::words::{count, percent};
use slicewise_units::Duration;

/// A study: every name resolved, every default filled in, every contradiction refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Name: also the results folder's.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people; may be empty.
    pub description: String,
    /// Where the published figures come from; may be empty.
    pub source: String,
    /// Name of the file it came from, without its folder.
    pub file_name: String,
    /// What is assumed that the published study does not state, one text each.
    pub assumptions: Vec<String>,
    /// The links at both sides of the device.
    pub link: LinkParams,
    /// The device under test.
    pub dut: DutParams,
    /// The hosts.
    pub hosts: HostParams,
    /// Slices in order; at least one.
    pub slices: Vec<SliceParams>,
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
    /// Published figures.
    pub published: Vec<PublishedFigure>,
    /// A profile of minutes instead of hours, where the study gives one.
    pub quick: Option<QuickParams>,
    /// What the simulator does not model of it, a sentence each.
    pub(crate) limits: Vec<String>,
    pub(crate) warnings: Diagnostics,
    /// Only that profile is left of it.
    pub(crate) is_quick: bool,
    pub(crate) digest: String,
    /// The digest of the study as it was written.
    pub(crate) text_digest: String,
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
    /// How many slices it holds on this device.
    pub scalability: Scalability,
    /// It is the device that limits it: on another one it is another number.
    pub(crate) scalability_is_of_device: bool,
    /// Verdicts as published, where they were.
    pub published_verdict: Option<PublishedVerdict>,
}

impl Study {
    /// SHA-256, in hexadecimal, over the study's text and every file it names; of a study derived from
    /// that, also over how.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The digest of the text and the files, whatever was derived from them.
    #[must_use]
    pub fn text_digest(&self) -> &str {
        &self.text_digest
    }

    /// Settings that do not do in a simulation what they say, each with its place; may be empty.
    #[must_use]
    pub const fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Where the study has too few repetitions for any verdict of "holds": a sentence that says how many it takes.
    #[must_use]
    pub fn too_few_repetitions(&self) -> Option<String> {
        let needed = repetitions_to_hold(&self.margins)?;
        (self.populations.is_empty() && self.repetitions < needed).then(|| {
            format!(
                "{} cannot show that anything holds: excluding an effect in {} of runs \
                 (`margins.rare_runs`) requires {needed}",
                count(self.repetitions.into(), "repetition"),
                percent(self.margins.rare_runs)
            )
        })
    }

    /// What is worth knowing of the study although it is no mistake, a sentence each: bounds of
    /// delay that its policies promise, and that will not be judged because some slice may send
    /// more than it was promised, or because they do not follow.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let of_policy = |policy: &StudyPolicy| {
            let unbounded = bound::promised(self, &policy.params).unbounded;
            bound::notes(&policy.name, &unbounded)
        };
        self.policies.iter().flat_map(of_policy).collect()
    }

    /// How its links are impaired, a sentence each.
    fn impaired(&self) -> Vec<String> {
        let LinkImpairments { ingress, egress } = self.link.impairments;
        let links = [
            ("to the device (ingress)", ingress),
            ("from the device (egress)", egress),
        ];
        let is_impaired =
            |(_, params): &(&str, ImpairmentParams)| *params != ImpairmentParams::default();
        links
            .into_iter()
            .filter(is_impaired)
            .map(|(which, params)| format!("The link {which} is impaired: {params}."))
            .collect()
    }

    /// What judging and reporting need of the study. `program_version` is that of the program
    /// that runs it.
    #[must_use]
    pub fn description(&self, program_version: &str) -> StudyDescription {
        let slices = self.slices.iter().map(|slice| SliceDescription {
            name: slice.name.clone(),
            share_bits_per_second: slice.share.bits_per_second(),
            guaranteed: slice.guaranteed,
            objective: slice.objective,
        });
        let policies = self.policies.iter().map(|policy| {
            let promised = bound::promised(self, &policy.params);
            PolicyDescription {
                name: policy.name.clone(),
                title: policy.title.clone(),
                configuration: policy.configuration.clone(),
                scalability: policy.scalability.clone(),
                delay_bounds: promised.bounds,
                unbounded: promised.unbounded,
                published_verdict: policy.published_verdict.clone(),
            }
        });
        let scenarios = self.scenarios.iter().map(|scenario| ScenarioDescription {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            reference: scenario.reference,
            cycle_ns: scenario.cycle().nanos(),
        });
        StudyDescription {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            source: self.source.clone(),
            digest: self.digest.clone(),
            text_digest: self.text_digest.clone(),
            is_quick: self.is_quick,
            file_name: self.file_name.clone(),
            seed: self.seed,
            program_version: program_version.to_owned(),
            backend: SIMULATOR.id.to_owned(),
            dut: device::describe(&self.dut),
            assumptions: [self.assumptions.as_slice(), &self.limits, &self.impaired()].concat(),
            repetitions: self.repetitions,
            duration_ns: self.duration.nanos(),
            capacity: device::capacity(&self.dut),
            slices: slices.collect(),
            policies: policies.collect(),
            scenarios: scenarios.collect(),
            margins: self.margins,
            published: self.published.clone(),
        }
    }
}
