//! Plans: slices that ask for guarantees on one link, and what the admission test says to each.

use crate::bound;
use crate::params::{DutParams, HopParams, ScenarioParams};
use crate::study::{Study, StudyPolicy};
use slicewise_model::{
    Admission, AdmissionParams, ClassUse, GuaranteeRequest, MaximumParams, PolicyParams,
    PolicySpec, Refusal, SetMember,
};
use slicewise_units::{BitRate, ByteCount, Duration};

/// Slices on one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Name of the file, or of the policy of a study.
    pub name: String,
    /// The scenario that says how many slices there are, in a study of populations.
    pub scenario: Option<String>,
    /// The phase that it is of, in a study with a timeline.
    pub phase: Option<String>,
    /// The device whose link it is, in a study with a path of several.
    pub device: Option<String>,
    /// For the last device of a path: guaranteed slices with the bound of their one-way delay over the whole path.
    pub end_to_end: Vec<(String, Duration)>,
    /// The link as guarantees are tested on it.
    pub link: AdmissionParams,
    /// Tenants and their weights.
    pub tenants: Vec<(String, u32)>,
    /// Slices in order.
    pub slices: Vec<PlannedSlice>,
}

/// A slice of a plan, or some equal ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSlice {
    /// Name.
    pub name: String,
    /// How many equal slices.
    pub count: u64,
    /// The guarantee each asks for; `None` for best effort.
    pub request: Option<GuaranteeRequest>,
    /// The delay that the policy of a study gives it: it is the first that is tested where none is stated.
    pub given: Option<Duration>,
    /// The most each may send.
    pub maximum: Option<MaximumParams>,
    /// Weight of each in the excess.
    pub weight: u32,
    /// The tenant, where one is named.
    pub tenant: Option<String>,
}

/// Outcome of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOutcome {
    /// For each slice of the plan, in order.
    pub slices: Vec<SliceOutcome>,
    /// Rate of the link that is left, as the link counts.
    pub rate_left: BitRate,
    /// Rate of the link that is reserved only because frames may be small.
    pub held_for_small_frames: BitRate,
    /// Rest of the buffer, where one is stated.
    pub buffer_left: Option<ByteCount>,
    /// The delay classes in use.
    pub classes: Vec<ClassUse>,
}

/// Decision on one slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SliceOutcome {
    /// It asks for nothing.
    BestEffort,
    /// Its guarantee is given, with this delay bound.
    Admitted {
        /// The delay D + δ that frames within its guarantee have at most, from their arrival to their
        /// last bit on the link. What a device adds for what it has already taken comes on top.
        bound: Duration,
    },
    /// Its guarantee is refused.
    Refused(Refusal),
}

impl PlanOutcome {
    /// Returns true if every guarantee is given.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.slices
            .iter()
            .all(|slice| !matches!(slice, SliceOutcome::Refused(_)))
    }
}

impl Plan {
    /// Put the slices to the admission test as a set; what does not fit is refused in order.
    #[must_use]
    pub fn outcome(&self) -> PlanOutcome {
        let mut admission = Admission::new(self.link.clone());
        let member = |slice: &PlannedSlice| {
            Some(SetMember {
                count: slice.count,
                kept: slice.given,
                ..SetMember::from(slice.request?)
            })
        };
        let set: Vec<SetMember> = self.slices.iter().filter_map(member).collect();
        let mut answers = admission.try_admit_set(&set).into_iter();
        let outcome = |slice: &PlannedSlice| match slice.request.and_then(|_| answers.next()) {
            None => SliceOutcome::BestEffort,
            Some(Ok(given)) => SliceOutcome::Admitted { bound: given.delay },
            Some(Err(refusal)) => SliceOutcome::Refused(refusal),
        };
        let slices = self.slices.iter().map(outcome).collect();
        PlanOutcome {
            slices,
            rate_left: admission.rate_left(),
            held_for_small_frames: admission.held_for_small_frames(),
            buffer_left: admission.buffer_left(),
            classes: admission.classes_in_use().collect(),
        }
    }
}

/// The guaranteed policies of a study, on what each of its devices may guarantee; with a timeline each policy in each
/// phase, with populations in each scenario.
pub(crate) fn plans_of(study: &Study) -> Vec<Plan> {
    if !study.phases.is_empty() {
        let phases = study.phases.iter().flat_map(|phase| {
            let of_phase = move |plan| Plan {
                phase: Some(phase.name.clone()),
                ..plan
            };
            plans_of(&phase.study).into_iter().map(of_phase)
        });
        return phases.collect();
    }
    if !study.path.is_empty() {
        let policies = study.policies.iter().enumerate();
        return policies
            .flat_map(|(index, policy)| plans_of_path(study, index, policy))
            .collect();
    }
    let policies = study.policies.iter();
    let plans = policies.filter_map(|policy| {
        let device = policy.device.as_ref().unwrap_or(&study.dut);
        plan_of(policy, device)
    });
    if study.populations.is_empty() {
        return plans.collect();
    }
    let slice_name = |index: usize| study.slices.get(index).map_or("", |slice| &slice.name);
    let populations = study.populations.iter();
    let names: Vec<&str> = populations.map(|p| slice_name(p.slice)).collect();
    plans
        .flat_map(|plan| {
            let scenarios = study.scenarios.iter();
            let plans: Vec<Plan> = scenarios
                .map(|scenario| plan.clone().in_scenario(scenario, &names))
                .collect();
            plans
        })
        .collect()
}

impl Plan {
    /// The slices that the `populations` have in a scenario, instead of one of each class.
    pub(crate) fn in_scenario(self, scenario: &ScenarioParams, populations: &[&str]) -> Self {
        let counts = populations.iter().zip(&scenario.populations);
        let slices = counts
            .filter(|(_, count)| **count > 0)
            .filter_map(|(name, count)| {
                let slice = self.slices.iter().find(|slice| slice.name == *name)?;
                Some(PlannedSlice {
                    count: u64::from(*count),
                    ..slice.clone()
                })
            })
            .collect();
        Self {
            scenario: Some(scenario.name.clone()),
            slices,
            ..self
        }
    }
}

/// A policy of a study on each device of the path that guarantees something.
fn plans_of_path(study: &Study, index: usize, policy: &StudyPolicy) -> Vec<Plan> {
    let on_device = |hop: &HopParams| {
        let spec = hop.own.as_ref().unwrap_or(&policy.spec);
        let plan = plan_on(spec, hop.policies.get(index)?, &hop.device)?;
        Some(Plan {
            name: policy.name.clone(),
            device: Some(hop.name.clone()),
            ..plan
        })
    };
    let mut plans: Vec<Plan> = study.path.iter().filter_map(on_device).collect();
    if let Some(last) = plans.last_mut() {
        let bounds = bound::promised(study, index).bounds.into_iter();
        let bounds = bounds.map(|(slice, b)| (slice, Duration::from_nanos(b.end_to_end_ns())));
        last.end_to_end = bounds.collect();
    }
    plans
}

/// A guaranteed policy as a plan; `None` for any other.
pub(crate) fn plan_of(policy: &StudyPolicy, dut: &DutParams) -> Option<Plan> {
    plan_on(&policy.spec, &policy.params, dut)
}

fn plan_on(spec: &PolicySpec, params: &PolicyParams, dut: &DutParams) -> Option<Plan> {
    let common = params.guaranteed.as_ref()?;
    let buffer = spec.guaranteed.as_ref().and_then(|common| common.buffer);
    Some(Plan {
        name: spec.name.clone(),
        scenario: None,
        phase: None,
        device: None,
        end_to_end: Vec::new(),
        link: AdmissionParams {
            link: dut.capacity(),
            accounting: common.accounting,
            largest_frame: common.largest_frame,
            buffer,
            delays: common.delays,
        },
        tenants: common
            .tenants
            .iter()
            .map(|tenant| (tenant.name.clone(), tenant.weight))
            .collect(),
        slices: slices_of(spec, params),
    })
}

fn slices_of(spec: &PolicySpec, params: &PolicyParams) -> Vec<PlannedSlice> {
    let classes = params.classes.iter();
    classes
        .filter_map(|class| {
            let slice = class.slice?;
            let mut written = spec.classes.iter();
            let written = written.find(|written| written.name == class.name);
            let asked = written.and_then(|written| written.guarantee);
            Some(PlannedSlice {
                name: class.name.clone(),
                count: 1,
                request: slice
                    .guarantee
                    .map(|guarantee| guarantee.request(asked.and_then(|asked| asked.delay))),
                given: slice.guarantee.map(|guarantee| guarantee.delay),
                maximum: slice.maximum,
                weight: slice.weight,
                tenant: written.and_then(|written| written.tenant.clone()),
            })
        })
        .collect()
}
