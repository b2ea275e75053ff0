//! Populations: slices by the thousand.

use super::policies::classes_of;
use super::traffic::ScenarioSpec;
use super::{Checker, StudySpec, Table};
use crate::file::{Node, Span};
use crate::params::{
    DutModel, DutParams, MAX_WAITING_FRAMES, PopulationParams, PopulationPatternParams,
    ScenarioParams,
};
use crate::plan::{SliceOutcome, plan_of};
use crate::spec::{At, List, PopulationPattern};
use crate::study::StudyPolicy;
use crate::{problem, settings};
use slicewise_model::{Discipline, MAX_DELAYS};
use slicewise_units::{ByteCount, Duration};
use std::collections::BTreeSet;

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
const OF_CLASS: [(&str, &str); 8] = [
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
        "queue",
        "leave it out: a slice of a population is one queue",
    ),
    (
        "child",
        "leave it out: a slice of a population is one queue",
    ),
];
const AT_MOST: &str = "set `maximum` in a policy of `discipline: guaranteed`";

settings! {
    /// The slices that a class of the same name stands for, and what each of them sends. Measured
    /// together, as the slice of that name. Scenarios set their number.
    struct PopulationSpec as "PopulationSpec" {
        /// Traffic of each slice: `backlog` (there is always a frame waiting) or `bursts` (all slices of the population
        /// send their burst at the same moment, again and again).
        [expected] sends: Option<PopulationPattern>,
        /// Length of its frames, L2 without FCS.
        [expected] frame: Option<At<ByteCount>>,
        /// Bytes of a burst: as many whole frames as fit.
        burst: Option<At<ByteCount>>,
        /// Time from burst to burst.
        every: Option<At<Duration>>,
        /// Weights in the excess, given to the slices in turn, instead of the class's.
        weights: List<At<u32>>,
    }
}

impl Checker<'_> {
    pub(super) fn populations(&mut self, spec: &StudySpec) -> Vec<PopulationParams> {
        self.names(&spec.populations);
        let slices = spec.slices.names();
        if let (Some((name, _)), Some((source, _))) =
            (spec.populations.0.first(), spec.sources.0.first())
        {
            problem!(self.problems, name.span => "a study has sources or populations, not both: `{}` is a \
                source", source.value);
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
        let slices = spec.slices.names().into_iter();
        let of_slices = slices.map(|name| vec!["slices", name, "headers"]);
        let of_study = OF_STUDY.iter().map(|path| path.to_vec());
        for path in of_study.chain(of_slices).collect::<Vec<_>>() {
            if let Some(at) = self.key_at(&path) {
                problem!(self.problems, at => "`{}` has no effect in a study of populations: one port is modelled, \
                    without hosts, links to it and headers", path.join(".");
                    "leave it out");
            }
        }
        if let Some(dut) = &spec.dut
            && let Some(at) = dut.place("model")
            && !matches!(dut.value.model, None | Some(DutModel::Port))
        {
            problem!(self.problems, at => "a study of populations models one port: set `model: port`");
        }
        for (_, scenario) in spec.scenarios.iter() {
            // Those of the study are reported already.
            if let (Some((source, _)), 0) = (scenario.sources.0.first(), spec.sources.len()) {
                problem!(self.problems, source.span => "a study has sources or populations, not both: this source \
                    would send nothing");
            }
        }
        let populations = spec.populations.names();
        for name in spec.policies.names() {
            if let Some(policy) = self.entry_at(&["policies", name]) {
                self.check_classes(&populations, policy.node);
            }
        }
    }

    fn check_classes(&mut self, populations: &[&str], policy: &Node) {
        let classes = classes_of(policy).iter().filter_map(|class| {
            let (_, name) = class.entry("name")?;
            Some((class, name.span, name.text()?))
        });
        let classes: Vec<(&Node, Span, &str)> = classes.collect();
        let has_class = |name: &&str| classes.iter().any(|(.., class)| class == name);
        // A population without a class is reported, and its class may be one of these.
        let has_all = populations.iter().all(has_class);
        for (class, at, name) in classes {
            if populations.contains(&name) {
                for (setting, help) in OF_CLASS {
                    if let Some((key, node)) = class.entry(setting) {
                        let at = node.anchor(Some(key.span));
                        problem!(self.problems, at => "`{setting}` has no effect on the slices of a population";
                            "{help}");
                    }
                }
            } else if has_all {
                problem!(self.problems, at => "there is no population `{name}`: this class would be empty";
                    "leave it out");
            }
        }
    }

    fn population(
        &mut self,
        name: &At<String>,
        spec: &PopulationSpec,
        slices: &[&str],
    ) -> Option<PopulationParams> {
        let slice = self.index_of(Table::SLICES, name, slices);
        if let Some(frame) = &spec.frame
            && !FRAMES.contains(&frame.value.bytes())
        {
            problem!(self.problems, frame.span => "frames are from 60 B to 65535 B long");
            return None;
        }
        for weight in spec.weights.0.iter().filter(|weight| weight.value == 0) {
            problem!(self.problems, weight.span => "a slice needs a weight of at least 1");
        }
        let frame = spec.frame.as_ref().map(|frame| frame.value);
        let pattern = self.population_pattern(name, spec, spec.sends?, frame?)?;
        Some(PopulationParams {
            slice: slice?,
            frame_bytes: u32::try_from(frame?.bytes()).ok()?,
            pattern,
            weights: spec.weights.0.iter().map(|weight| weight.value).collect(),
        })
    }

    fn population_pattern(
        &mut self,
        name: &At<String>,
        spec: &PopulationSpec,
        sends: PopulationPattern,
        frame: ByteCount,
    ) -> Option<PopulationPatternParams> {
        if sends == PopulationPattern::Backlog {
            let set = spec.burst.as_ref().map(|burst| burst.span);
            if let Some(at) = set.or(spec.every.as_ref().map(|every| every.span)) {
                problem!(self.problems, at => "a backlog has no bursts: this is for `sends: bursts`");
                return None;
            }
            return Some(PopulationPatternParams::Backlog);
        }
        for key in ["burst", "every"] {
            if self.entry_at(&["populations", &name.value, key]).is_none() {
                self.problems.add(name.span, format!("`{key}` is missing"));
            }
        }
        let (burst, every) = (spec.burst.as_ref()?, spec.every.as_ref()?);
        let frames = u32::try_from(burst.value.bytes() / frame.bytes()).unwrap_or(u32::MAX);
        if frames == 0 {
            problem!(self.problems, burst.span => "this is too small for a frame of {} B", frame.bytes());
            return None;
        }
        if every.value < EVERY_MIN {
            problem!(self.problems, every.span => "bursts must be at least {EVERY_MIN} apart");
            return None;
        }
        let every = every.value;
        Some(PopulationPatternParams::Bursts { frames, every })
    }

    /// A population without a slice is reported where it is written, and what follows from it is not.
    fn is_misnamed(spec: &StudySpec) -> bool {
        let slices = spec.slices.names();
        let mut populations = spec.populations.names().into_iter();
        populations.any(|name| !slices.contains(&name))
    }

    /// How many slices each population has in a scenario.
    pub(super) fn population_counts(
        &mut self,
        name: &At<String>,
        scenario: &ScenarioSpec,
        spec: &StudySpec,
    ) -> Vec<u32> {
        if Self::is_misnamed(spec) {
            return Vec::new();
        }
        let known = spec.populations.names();
        for (name, _) in scenario.populations.iter() {
            self.index_of(Table::POPULATIONS, name, &known);
        }
        let mut counts = Vec::new();
        for population in known {
            let path = ["scenarios", &name.value, "populations", population];
            if self.entry_at(&path).is_none() {
                problem!(self.problems, name.span => "the number of slices of `{population}` is missing");
            }
            let Some(count) = scenario.populations.get(population) else {
                continue;
            };
            if count.value > MAX_SLICES {
                problem!(self.problems, count.span => "at most {MAX_SLICES} slices are possible");
            }
            counts.push(count.value);
        }
        counts
    }

    /// Policies know every population, and their guarantees fit however many slices there are.
    pub(super) fn check_populations(
        &mut self,
        spec: &StudySpec,
        dut: &DutParams,
        (populations, scenarios): (&[PopulationParams], &[ScenarioParams]),
        policies: &mut [StudyPolicy],
    ) {
        if spec.populations.len() == 0 || Self::is_misnamed(spec) {
            return;
        }
        for policy in policies {
            let Some((at, _)) = spec.policies.entry(&policy.name) else {
                continue;
            };
            let discipline = policy.params.discipline;
            if !matches!(
                discipline,
                Discipline::Guaranteed | Discipline::DeficitRoundRobin
            ) {
                problem!(self.problems, at.span => "populations are scheduled by `discipline: guaranteed` or \
                    `deficit_round_robin`");
                continue;
            }
            for population in spec.populations.names() {
                let mut classes = policy.params.classes.iter();
                if !classes.any(|class| class.name == population) {
                    problem!(self.problems, at.span => "population `{population}` has no class of its name here");
                }
            }
            self.check_populations_fit(spec, dut, scenarios, policy);
            self.check_waiting_frames(spec, (populations, scenarios), policy);
            let delays = policy.params.classes.iter();
            let delays = delays.filter_map(|class| Some(class.slice?.guarantee?.delay));
            let delays = delays.collect::<BTreeSet<_>>().len();
            if delays > MAX_DELAYS {
                problem!(self.problems, at.span => "the guarantees get {delays} distinct delays: at most {MAX_DELAYS} are \
                    possible";
                    "state equal `delay`s");
            }
        }
    }

    /// There is room for all frames that may wait.
    fn check_waiting_frames(
        &mut self,
        spec: &StudySpec,
        (populations, scenarios): (&[PopulationParams], &[ScenarioParams]),
        policy: &StudyPolicy,
    ) {
        if populations.len() < spec.populations.len() {
            return;
        }
        let queue_frames = |population: &str| {
            let mut classes = policy.params.classes.iter();
            let class = classes.find(|class| class.name == population)?;
            let slice = class.slice.map(|slice| slice.queue_limit);
            Some(slice.unwrap_or(class.queue.limit).packets)
        };
        for scenario in scenarios {
            let Some((name, written)) = spec.scenarios.entry(&scenario.name) else {
                continue;
            };
            let names = spec.populations.names().into_iter();
            let counted = names.zip(populations).zip(&scenario.populations);
            let waiting = counted.filter_map(|((population, params), count)| {
                let frames = params.waiting_frames(queue_frames(population)?);
                let at = written.populations.get(population).map(|count| count.span);
                Some((u64::from(frames) * u64::from(*count), at))
            });
            let waiting: Vec<_> = waiting.collect();
            let all = waiting
                .iter()
                .fold(0u64, |sum, (frames, _)| sum.saturating_add(*frames));
            if all > u64::from(MAX_WAITING_FRAMES) {
                let most = waiting.iter().max_by_key(|(frames, _)| *frames);
                let at = most.and_then(|(_, at)| *at).unwrap_or(name.span);
                problem!(self.problems, at => "under policy `{}` up to {all} frames may wait, more than the \
                    {MAX_WAITING_FRAMES} there is room for", policy.name;
                    "choose fewer slices, smaller bursts, or shorter `queue_limit`s");
            }
        }
    }

    /// The guarantees fit in each scenario, with the same delays.
    fn check_populations_fit(
        &mut self,
        spec: &StudySpec,
        dut: &DutParams,
        scenarios: &[ScenarioParams],
        policy: &mut StudyPolicy,
    ) {
        let populations = spec.populations.names();
        // Otherwise one of the numbers is missing or cannot be read.
        let is_whole = |scenario: &&ScenarioParams| scenario.populations.len() >= populations.len();
        for scenario in scenarios.iter().filter(is_whole) {
            let Some(plan) = plan_of(policy, dut) else {
                return;
            };
            let plan = plan.in_scenario(scenario, &populations);
            for (slice, outcome) in plan.slices.iter().zip(plan.outcome().slices) {
                match outcome {
                    SliceOutcome::BestEffort => {}
                    // More slices need a longer delay, with which fewer fit, too.
                    SliceOutcome::Admitted { bound } => policy.lengthen_delay(&slice.name, bound),
                    SliceOutcome::Refused(refusal) => {
                        let scenario = spec.scenarios.get(&scenario.name);
                        let at =
                            scenario.and_then(|scenario| scenario.populations.get(&slice.name));
                        let at = at.map_or(self.root.span, |count| count.span);
                        problem!(self.problems, at => "under policy `{}`: {refusal}", policy.name);
                    }
                }
            }
        }
    }
}

impl StudyPolicy {
    /// Give a class at least this delay, if it has a guarantee.
    fn lengthen_delay(&mut self, class: &str, delay: Duration) {
        let mut written = self.spec.classes.iter();
        let written = written.find(|written| written.name == class);
        let mut classes = self.params.classes.iter_mut();
        let resolved = classes.find(|resolved| resolved.name == class);
        if let (Some(common), Some(written), Some(resolved)) =
            (&self.params.guaranteed, written, resolved)
            && let Some(slice) = &mut resolved.slice
            && slice
                .guarantee
                .is_some_and(|guarantee| guarantee.delay < delay)
        {
            *slice = slice.with_delay(delay, common, written);
            resolved.queue.limit = slice.queue_limit;
        }
    }
}
