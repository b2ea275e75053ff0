//! Populations: slices by the thousand.

use super::{Checker, Table};
use crate::params::{DutParams, PopulationParams, PopulationPatternParams, ScenarioParams};
use crate::plan::{SliceOutcome, plan_of};
use crate::spec::{
    ClassFileSpec, ModelName, Name, PopulationPattern, PopulationSpec, ScenarioSpec, StudySpec,
    Text,
};
use crate::study::StudyPolicy;
use slicewise_model::Discipline;
use slicewise_units::{ByteCount, Duration};

/// Most slices of a population: sixteen million.
const MAX_SLICES: u32 = 1 << 24;
/// Shortest and longest frames, L2 without FCS: IEEE 802.3's least, and what IP can carry.
const FRAMES: std::ops::RangeInclusive<u64> = 60..=65_535;
/// Shortest time from burst to burst.
const EVERY_MIN: Duration = Duration::from_micros(1);

/// Settings that do nothing in a study of populations: one port is modelled, and neither hosts, nor
/// links to it, nor headers.
const OF_STUDY: [&[&str]; 8] = [
    &["hosts"],
    &["path"],
    &["link", "counts"],
    &["link", "propagation"],
    &["link", "mtu"],
    &["link", "impairments"],
    &["dut", "processing_delay"],
    &["dut", "licence"],
];
/// Settings of a class that do nothing for the slices of a population, and what to do instead.
const OF_CLASS: [(&str, &str); 7] = [
    ("police", AT_MOST),
    ("shape", AT_MOST),
    (
        "priority",
        "give `guarantee` in a policy of `discipline: guaranteed`",
    ),
    ("wred", "set `queue_limit`"),
    (
        "set_dscp",
        "leave it out: frames of populations have no headers",
    ),
    (
        "flow_queue",
        "leave it out: a slice of a population is one flow",
    ),
    (
        "child",
        "leave it out: a slice of a population is one queue",
    ),
];
const AT_MOST: &str = "set `maximum` in a policy of `discipline: guaranteed`";

impl Checker<'_> {
    pub(super) fn populations(&mut self, spec: &StudySpec) -> Vec<PopulationParams> {
        self.names(&spec.populations);
        let slices: Vec<&str> = spec.slices.iter().map(|(name, _)| name.text()).collect();
        if let (Some((name, _)), Some((source, _))) =
            (spec.populations.0.first(), spec.sources.0.first())
        {
            let message = format!(
                "a study has sources or populations, not both: `{}` is a source",
                source.text()
            );
            self.problems.add(name.span(), message);
        }
        if spec.populations.len() > 0 {
            self.check_what_populations_ignore(spec);
        }
        let populations = spec.populations.iter();
        populations
            .filter_map(|(name, population)| self.population(name, population, &slices))
            .collect()
    }

    /// A setting that would change nothing is a mistake: whoever wrote it expects something of it.
    fn check_what_populations_ignore(&mut self, spec: &StudySpec) {
        let slices = spec.slices.iter();
        let of_slices = slices.map(|(name, _)| vec!["slices", name.text(), "headers"]);
        let of_study = OF_STUDY.iter().map(|path| path.to_vec());
        for path in of_study.chain(of_slices).collect::<Vec<_>>() {
            if let Some(at) = self.key_at(&path) {
                let message = format!(
                    "`{}` has no effect in a study of populations: one port is modelled, without \
                     hosts, links to it and headers",
                    path.join(".")
                );
                let help = Some("leave it out".to_owned());
                self.problems.add_with_help(at, message, help);
            }
        }
        if let Some(text) = spec.dut.as_ref().and_then(|dut| dut.value.model.as_ref())
            && !matches!(text.read(self.problems), None | Some(ModelName::Port))
        {
            let message = "a study of populations models one port: set `model: port`";
            self.problems.add(text.span(), message);
        }
        for (_, scenario) in spec.scenarios.iter() {
            // Those of the study are reported already.
            if let (Some((source, _)), 0) = (scenario.sources.0.first(), spec.sources.len()) {
                let message = "a study has sources or populations, not both: this source would send \
                               nothing";
                self.problems.add(source.span(), message);
            }
        }
        let populations: Vec<&str> = spec.populations.iter().map(|(n, _)| n.text()).collect();
        for (_, policy) in spec.policies.iter() {
            let classes = policy.classes.iter().flat_map(|classes| &classes.value.0);
            let classes: Vec<&ClassFileSpec> = classes.map(|class| &class.value).collect();
            let has_class = |name: &&str| classes.iter().any(|class| class.name.text() == *name);
            // A population without a class is reported, and its class may be one of these.
            let has_all = populations.iter().all(has_class);
            for class in classes {
                let name = class.name.text();
                if populations.contains(&name) {
                    self.check_class_of_population(class);
                } else if has_all {
                    let message =
                        format!("there is no population `{name}`: this class would be empty");
                    let help = Some("leave it out".to_owned());
                    self.problems
                        .add_with_help(class.name.span(), message, help);
                }
            }
        }
    }

    fn check_class_of_population(&mut self, class: &ClassFileSpec) {
        for (setting, help) in OF_CLASS {
            if let Some(at) = class.place(setting) {
                let message = format!("`{setting}` has no effect on the slices of a population");
                self.problems
                    .add_with_help(at, message, Some(help.to_owned()));
            }
        }
    }

    fn population(
        &mut self,
        name: &Text<Name>,
        spec: &PopulationSpec,
        slices: &[&str],
    ) -> Option<PopulationParams> {
        let slice = self.index_of(Table::Slices, name, slices);
        let sends = self.required(spec.sends.as_ref(), "sends", name.span());
        let frame = self.required(spec.frame.as_ref(), "frame", name.span());
        if let (Some(frame), Some(text)) = (frame, &spec.frame)
            && !FRAMES.contains(&frame.bytes())
        {
            let message = "frames are from 60 B to 65535 B long";
            self.problems.add(text.span(), message);
            return None;
        }
        let weights = spec.weights.0.iter();
        let weights: Vec<u32> = weights
            .filter_map(|text| {
                let weight = text.read(self.problems)?;
                if weight == 0 {
                    let message = "a slice needs a weight of at least 1";
                    self.problems.add(text.span(), message);
                }
                Some(weight)
            })
            .collect();
        let pattern = self.population_pattern(name, spec, sends?, frame?)?;
        Some(PopulationParams {
            slice: slice?,
            frame_bytes: u32::try_from(frame?.bytes()).ok()?,
            pattern,
            weights,
        })
    }

    fn population_pattern(
        &mut self,
        name: &Text<Name>,
        spec: &PopulationSpec,
        sends: PopulationPattern,
        frame: ByteCount,
    ) -> Option<PopulationPatternParams> {
        if sends == PopulationPattern::Backlog {
            let set = spec.burst.as_ref().map(Text::span);
            if let Some(at) = set.or(spec.every.as_ref().map(Text::span)) {
                let message = "a backlog has no bursts: this is for `sends: bursts`";
                self.problems.add(at, message);
                return None;
            }
            return Some(PopulationPatternParams::Backlog);
        }
        let burst = self.required(spec.burst.as_ref(), "burst", name.span());
        let every = self.required(spec.every.as_ref(), "every", name.span());
        let (burst, every) = (burst?, every?);
        let frames = u32::try_from(burst.bytes() / frame.bytes()).unwrap_or(u32::MAX);
        if let (0, Some(text)) = (frames, &spec.burst) {
            let message = format!("this is too small for a frame of {} B", frame.bytes());
            self.problems.add(text.span(), message);
            return None;
        }
        if let (true, Some(text)) = (every < EVERY_MIN, &spec.every) {
            let message = format!("bursts must be at least {EVERY_MIN} apart");
            self.problems.add(text.span(), message);
            return None;
        }
        Some(PopulationPatternParams::Bursts { frames, every })
    }

    /// A population without a slice is reported where it is written, and what follows from it is not.
    fn is_misnamed(spec: &StudySpec) -> bool {
        let named = |name: &str| spec.slices.iter().any(|(slice, _)| slice.text() == name);
        let mut populations = spec.populations.iter();
        populations.any(|(name, _)| !named(name.text()))
    }

    /// How many slices each population has in a scenario.
    pub(super) fn population_counts(
        &mut self,
        name: &Text<Name>,
        scenario: &ScenarioSpec,
        spec: &StudySpec,
    ) -> Vec<u32> {
        if Self::is_misnamed(spec) {
            return Vec::new();
        }
        let known: Vec<&str> = spec
            .populations
            .iter()
            .map(|(name, _)| name.text())
            .collect();
        for (name, _) in scenario.populations.iter() {
            self.index_of(Table::Populations, name, &known);
        }
        let mut counts = Vec::new();
        for population in known {
            let mut written = scenario.populations.iter();
            let Some((_, text)) = written.find(|(name, _)| name.text() == population) else {
                let message = format!("the number of slices of `{population}` is missing");
                self.problems.add(name.span(), message);
                continue;
            };
            let Some(count) = text.read(self.problems) else {
                continue;
            };
            if count > MAX_SLICES {
                let message = format!("at most {MAX_SLICES} slices are possible");
                self.problems.add(text.span(), message);
            }
            counts.push(count);
        }
        counts
    }

    /// Policies know every population, and their guarantees fit however many slices there are.
    pub(super) fn check_populations(
        &mut self,
        spec: &StudySpec,
        dut: &DutParams,
        scenarios: &[ScenarioParams],
        policies: &[StudyPolicy],
    ) {
        if spec.populations.len() == 0 || Self::is_misnamed(spec) {
            return;
        }
        for policy in policies {
            let written = spec.policies.iter();
            let Some((at, _)) = written
                .into_iter()
                .find(|(name, _)| name.text() == policy.name)
            else {
                continue;
            };
            let discipline = policy.params.discipline;
            if !matches!(
                discipline,
                Discipline::Guaranteed | Discipline::DeficitRoundRobin
            ) {
                let message = "populations are scheduled by `discipline: guaranteed` or \
                               `deficit_round_robin`";
                self.problems.add(at.span(), message);
                continue;
            }
            for (population, _) in spec.populations.iter() {
                let mut classes = policy.params.classes.iter();
                if !classes.any(|class| class.name == population.text()) {
                    let message = format!(
                        "population `{}` has no class of its name here",
                        population.text()
                    );
                    self.problems.add(at.span(), message);
                }
            }
            for scenario in scenarios {
                self.check_population_fits(spec, dut, scenario, policy);
            }
        }
    }

    fn check_population_fits(
        &mut self,
        spec: &StudySpec,
        dut: &DutParams,
        scenario: &ScenarioParams,
        policy: &StudyPolicy,
    ) {
        let Some(plan) = plan_of(policy, dut) else {
            return;
        };
        if scenario.populations.len() < spec.populations.len() {
            // One of the numbers is missing or cannot be read.
            return;
        }
        let populations: Vec<&str> = spec.populations.iter().map(|(n, _)| n.text()).collect();
        let plan = plan.in_scenario(scenario, &populations);
        for (slice, outcome) in plan.slices.iter().zip(plan.outcome().slices) {
            let SliceOutcome::Refused(refusal) = outcome else {
                continue;
            };
            let written = spec.scenarios.iter();
            let at = written
                .filter(|(name, _)| name.text() == scenario.name)
                .flat_map(|(_, scenario)| scenario.populations.iter())
                .find(|(name, _)| name.text() == slice.name)
                .map_or(self.root.span, |(_, text)| text.span());
            let message = format!("under policy `{}`: {refusal}", policy.name);
            self.problems.add(at, message);
        }
    }
}
