//! Description of a study for judging and reporting, and notes on it.

use crate::bound;
use crate::bursts;
use crate::device;
use crate::fill;
use crate::licence;
use crate::packets;
use crate::params::{ImpairmentParams, LinkImpairments};
use crate::study::{Phase, Study, StudyPolicy};
use slicewise_model::PolicyParams;
use slicewise_stats::backend::SIMULATOR;
use slicewise_stats::description::{
    Capacity, PolicyDescription, ScenarioDescription, SliceDescription, StudyDescription, Unbounded,
};
use slicewise_stats::phase::{PhaseDescription, PhasePolicy};

/// The configuration of a policy, below the device that runs it where that is another than the study's.
fn configuration(policy: &StudyPolicy) -> String {
    let device = policy.device.as_ref();
    let device = device.map(|device| format!("on {}\n\n", device::describe(device)));
    device.unwrap_or_default() + &policy.configuration
}

impl Study {
    /// Returns notes on the study, a sentence each: promised bounds of delay that will not be judged, because some
    /// slice may send more than it was promised or because they do not follow; and priority that may exceed a licence.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let later = self.phases.iter().skip(1).map(|phase| &phase.study);
        let mut notes = packets::notes(self);
        notes.extend(fill::notes(self));
        for study in std::iter::once(self).chain(later) {
            for (index, policy) in study.policies.iter().enumerate() {
                let mut unbounded = bound::promised(study, index).unbounded;
                if !self.phases.is_empty() {
                    at_no_scheduler(&mut unbounded);
                }
                let of_bounds = bound::notes(&policy.name, &unbounded);
                let of_losses = study
                    .hops(index)
                    .flat_map(|(_, params)| params.loss_notes());
                let of_losses = of_losses.map(|note| format!("policy `{}`: {note}", policy.name));
                let notes_of_policy = of_bounds.into_iter().chain(of_losses);
                let of_others = policy.not_judged.iter().map(|others| {
                    format!(
                        "policy `{}` is judged without what its configuration attaches before it: {others} (make it the \
                         policy of a first device of a `path` to judge it, too)",
                        policy.name
                    )
                });
                let notes_of_policy = of_others.chain(notes_of_policy);
                for note in notes_of_policy
                    .chain(licence::notes(study, index))
                    .chain(bursts::notes(study, index))
                {
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
            }
        }
        notes
    }

    /// Returns the texts for "Assumptions" in the report.
    fn stated(&self) -> Vec<String> {
        let later = self.phases.iter().skip(1).map(|phase| &phase.study);
        let statements = std::iter::once(self).chain(later);
        let mut stated = [self.assumptions.as_slice(), &self.limits].concat();
        for statement in statements.flat_map(|study| &study.statements) {
            if !stated.contains(statement) {
                stated.push(statement.clone());
            }
        }
        stated.extend(self.impaired());
        stated
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

    /// Returns true if no random event is possible that only one run of many would show.
    fn is_without_chance(&self) -> bool {
        let policies = self.policies.iter().map(|policy| &policy.params);
        let on_path = self.path.iter().flat_map(|hop| &hop.policies);
        self.impaired().is_empty()
            && self.populations.is_empty()
            && self.scenarios.iter().all(|s| s.applications.is_empty())
            && !policies.chain(on_path).any(PolicyParams::drops_at_random)
    }

    /// Returns the description of the study for judging and reporting. `program_version` is the version of the program
    /// that runs it.
    #[must_use]
    pub fn description(&self, program_version: &str) -> StudyDescription {
        let slices = self.slices.iter().map(|slice| SliceDescription {
            name: slice.name.clone(),
            share_bits_per_second: slice.share.bits_per_second(),
            guaranteed: slice.guaranteed,
            objective: slice
                .objective
                .map(|objective| objective.in_bins(self.measure.bin.nanos())),
        });
        let policies = self.policies.iter().enumerate().map(|(index, policy)| {
            let promised = bound::promised(self, index);
            PolicyDescription {
                name: policy.name.clone(),
                title: policy.title.clone(),
                configuration: configuration(policy),
                scalability: policy.scalability.clone(),
                delay_bounds: promised.bounds,
                round_ns: if self.is_resolution_declared {
                    0
                } else {
                    let rate = self.capacity_of(policy).rate.bits_per_second().max(1);
                    let bits = u128::from(policy.params.round_bytes()) * 8;
                    u64::try_from(bits * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
                },
                unbounded: promised.unbounded,
                not_judged: policy.not_judged.clone(),
                published_verdict: policy.published_verdict.clone(),
                rests_on: policy.rests_on.clone(),
                phase: None,
            }
        });
        let scenarios = self.scenarios.iter().map(|scenario| ScenarioDescription {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            reference: scenario.reference,
            cycle_ns: scenario.cycle().nanos(),
            x: scenario.x.clone(),
        });
        let phases = self.phases.iter();
        let phases = phases.map(|phase| describe_phase(phase, self, program_version));
        StudyDescription {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            source: self.source.clone(),
            digest: self.digest.clone(),
            is_quick: self.is_quick,
            file_name: self.file_name.clone(),
            seed: self.seed,
            program_version: program_version.to_owned(),
            backend: SIMULATOR.id.to_owned(),
            dut: device::describe_path(&self.dut, self.port_series.as_deref(), &self.path),
            assumptions: self.stated(),
            repetitions: self.repetitions,
            duration_ns: self.duration.nanos(),
            is_without_chance: self.is_without_chance(),
            capacity: Capacity {
                varies: self.port_series.is_some(),
                ..device::capacity(&self.dut)
            },
            slices: slices.collect(),
            policies: policies.collect(),
            scenarios: scenarios.collect(),
            inputs: self.all_inputs(),
            phases: phases.collect(),
            margins: self.margins,
            published: self.published.clone(),
            case: self.case.clone(),
            coordinates: self.coordinates.clone(),
            plots: self.plots.clone(),
        }
    }
}

fn describe_phase(phase: &Phase, first: &Study, program_version: &str) -> PhaseDescription {
    let study = phase.study.description(program_version);
    let policies = study.policies.into_iter().zip(&first.policies);
    let policies = policies.map(|(mut policy, first)| {
        at_no_scheduler(&mut policy.unbounded);
        let differs = policy.scalability != first.scalability;
        PhasePolicy {
            configuration: policy.configuration,
            scalability: differs.then_some(policy.scalability),
            delay_bounds: policy.delay_bounds,
            unbounded: policy.unbounded,
        }
    });
    PhaseDescription {
        name: phase.name.clone(),
        title: phase.title.clone(),
        begins_ns: phase.begins.nanos(),
        measured_from_ns: phase.measured_from.nanos(),
        ends_ns: phase.ends.nanos(),
        changes: phase.changes.clone(),
        slices: study.slices,
        policies: policies.collect(),
        cycles_ns: study.scenarios.iter().map(|s| s.cycle_ns).collect(),
    }
}

/// Times in the scheduler are not recorded where its policy changes during a run.
fn at_no_scheduler(unbounded: &mut [Unbounded]) {
    for slice in unbounded {
        slice.scheduler_ns = None;
    }
}
