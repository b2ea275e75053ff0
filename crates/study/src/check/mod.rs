//! From what was written to what can be run: every setting read, every name resolved, every
//! contradiction reported at its place.

mod application;
mod case;
mod classes;
mod closed_loop;
mod curves;
mod dpdk;
mod drawable;
mod early_detection;
mod elephants;
mod figures;
mod flow_control;
mod flows;
mod foreign;
mod gateway;
mod headers;
mod impairments;
mod ios;
mod lab;
mod limits;
mod matching;
mod measured;
mod named_queues;
mod network;
mod network_control;
mod objective;
mod path;
mod payload;
mod places;
mod plan;
mod police;
mod policies;
mod populations;
mod port_rate;
mod port_series;
mod published;
mod qos_sched;
mod queues;
mod quick;
mod reallocation;
mod sweep;
pub(crate) mod timeline;
mod traffic;
mod transport;
mod unmodelled;

pub(crate) use case::differ_in_more_than_case;
pub(crate) use curves::curves;
pub(crate) use drawable::Drawable;
pub(crate) use figures::{FigureSpec, figures};
pub(crate) use gateway::GatewaySpec;
pub(crate) use lab::LabSpec;
pub(crate) use measured::MeasuredSpec;
pub(crate) use plan::PlanSpec;
pub(crate) use policies::class_place;
pub(crate) use sweep::Sweep;

use crate::device;
use crate::diagnostics::{Diagnostics, MAX_DIAGNOSTICS, closest};
use crate::file::{Entry, FileError, Files, Key, Node, Placed, Problems, Settings, Sources, Span};
use crate::params::{
    DutModel, DutParams, MeasureParams, PopulationParams, ScenarioParams, StudyLink, StudySlice,
};
use crate::quick::usual_scenarios;
use crate::spec::{
    At, List, Name, Named, Positive, Reference, Repetitions, Scalar, Short, narrowed,
};
use crate::study::Study;
use crate::{problem, settings};
use case::CaseSpec;
use dpdk::ProfilePlace;
use ios::AttachedPolicies;
use network::{DutSpec, HostsSpec, MarginsSpec};
use policies::PolicyFileSpec;
use populations::PopulationSpec;
use published::PublishedSpec;
use quick::QuickSpec;
use slicewise_model::Rate;
use slicewise_units::{Accounting, BitRate, Duration, FrameLengths};
use sweep::SweepSpec;
use timeline::TimelineSpec;
use traffic::{ScenarioSpec, SliceSpec, SourceSpec};

/// Longest run: a day.
const MAX_DURATION: Duration = Duration::from_secs(86_400);
/// Most runs of a study.
pub(crate) const MAX_RUNS: u64 = 1_000_000;
/// Most entries of a table: slices, policies, scenarios, or classes of a policy.
const MAX_ENTRIES: usize = 4_096;

narrowed! {
    /// How long traffic is offered.
    #[derive(Copy)]
    RunLength(Duration) as "Duration": |text| match Positive::from_text(text)? {
        Positive(length) if length > MAX_DURATION => {
            Err("this is longer than 24 h, the longest run".to_owned())
        }
        Positive(length) => Ok(length),
    };
}

/// Another study file, or what of it.
type Extends = Short<String, ExtendsSpec>;

settings! {
    /// A study file that this one builds on.
    struct ExtendsSpec as "ExtendsSpec" {
        /// The file, relative to this one.
        [required] file: String,
        /// Settings not to take from it: keys, with full stops between levels, for example `published` or
        /// `policies.priority`.
        without: List<String>,
    }
}

impl From<String> for ExtendsSpec {
    fn from(file: String) -> Self {
        let without = List::default();
        Self { file, without }
    }
}

settings! {
    /// A study: policies compared under scenarios on one device.
    struct StudySpec as "StudySpec" {
        /// Another study file that this one builds on. Settings are merged key by key; a value or a
        /// list replaces the one of the other file.
        extends: Option<Extends>,
        /// Name of the study, and of the folder its results go to.
        [expected] name: Option<Name>,
        /// One line that says what is studied.
        title: String,
        /// A paragraph for the report.
        description: String,
        /// The publication that the published figures come from.
        source: String,
        /// Assumptions that the publication does not state, by name, each with its reason.
        assumptions: Named<String>,
        /// The links between the hosts and the device under test.
        [expected] link: Option<Placed<StudyLink>>,
        /// The device under test; or `path` and `devices`.
        dut: Option<Placed<DutSpec>>,
        /// Names of the devices between sender and receiver, in the order in which frames pass them.
        path: Option<At<List<At<Reference>>>>,
        /// The devices of `path`, by name.
        devices: Named<Placed<DutSpec>>,
        /// The hosts that send and receive.
        hosts: Option<Placed<HostsSpec>>,
        /// The slices, by name.
        slices: Named<Placed<SliceSpec>>,
        /// Traffic sources that every scenario has, by name, unless the scenario says otherwise.
        sources: Named<SourceSpec>,
        /// Instead of sources: large populations of slices, each named as its slice and its classes.
        populations: Named<PopulationSpec>,
        /// The policies compared, by name.
        policies: Named<Placed<PolicyFileSpec>>,
        /// The scenarios, by name.
        scenarios: Named<ScenarioSpec>,
        /// How long traffic is offered in a run.
        [expected] duration: Option<At<RunLength>>,
        /// How often each policy runs under each scenario.
        [expected] repetitions: Option<Repetitions>,
        /// A quick profile for a first look, used by `--quick`.
        quick: Option<Placed<QuickSpec>>,
        /// The seed of all randomness: the same seed gives the same results. Default 1.
        seed: Option<u64>,
        /// Changes during every run.
        timeline: Option<Placed<TimelineSpec>>,
        /// How it is measured.
        measure: Option<Placed<MeasureParams>>,
        /// How much worsening the verdicts tolerate, and with what confidence.
        margins: Option<Placed<MarginsSpec>>,
        /// Figures of the publication, to compare with ours.
        published: List<Placed<PublishedSpec>>,
        /// Figures of the report over cases, scenarios and policies, or of quantities over each other, by name.
        figures: Named<Placed<FigureSpec>>,
        /// Studies that share the settings of this file, by name: what each has on top of them. A list `without` names
        /// settings that a case does not take over.
        cases: Named<CaseSpec>,
        /// Cases that differ in some settings: one for each point of a grid.
        sweep: Option<SweepSpec>,
    }
}

/// A table of named things that other settings name: its key in the file, and what one of its entries
/// is called.
#[derive(Debug, Clone, Copy)]
struct Table(&'static str, &'static str);

impl Table {
    const SLICES: Self = Self("slices", "slice");
    const DEVICES: Self = Self("devices", "device");
    const POLICIES: Self = Self("policies", "policy");
    const SCENARIOS: Self = Self("scenarios", "scenario");
    const POPULATIONS: Self = Self("populations", "population");
    /// Of a plan.
    const TENANTS: Self = Self("tenants", "tenant");
}

/// Stands for a rate that could not be read.
const UNKNOWN_RATE: Rate = Rate {
    rate: BitRate::MAX,
    accounting: Accounting::L1,
};
/// Stands for a device that could not be read.
const UNKNOWN_DUT: DutParams = DutParams {
    model: DutModel::Port,
    port_rate: UNKNOWN_RATE,
    processing_delay: Duration::ZERO,
    licence: None,
};

/// Context of a check, beside the specification.
pub(crate) struct Checker<'a> {
    pub(crate) problems: &'a mut Problems,
    pub(crate) sources: &'a mut Sources,
    pub(crate) files: &'a dyn Files,
    /// The tree the specification was decoded from.
    pub(crate) root: &'a Node,
    /// Where the settings are of policies that are profiles of DPDK's scheduler.
    pub(crate) profile_places: Vec<ProfilePlace>,
    /// How configurations in other languages were understood, a sentence each, for the report.
    pub(crate) statements: Vec<String>,
    /// Policies attached in the configurations from which policies were read.
    pub(crate) attached: Vec<AttachedPolicies>,
}

/// A table's names: each valid, and no two alike to a file system that ignores case.
fn check_names<T>(table: &Named<T>, problems: &mut Problems) {
    for (name, _) in table.iter() {
        if let Err(message) = Name::from_text(&name.value) {
            problems.add(name.span, message);
        }
    }
    let names = table
        .iter()
        .map(|(name, _)| (name.value.as_str(), name.span));
    differ_in_more_than_case(names, problems);
}

impl<'a> Checker<'a> {
    fn names<T>(&mut self, table: &Named<T>) {
        check_names(table, self.problems);
    }

    /// A file that another names cannot be read.
    fn unreadable(&mut self, at: Span, path: &str, error: &FileError) {
        let shown = self.sources.shown(path);
        problem!(self.problems, at => "cannot read `{shown}`: {error}");
    }

    /// The entries written at `path`, also those that could not be read and are in no table.
    fn entries_at(&self, path: &[&str]) -> &'a [(Key, Node)] {
        let (first, rest) = path.split_first().unwrap_or((&"", &[]));
        let table = entry_as_meant(self.root, first).map(|(_, table)| table);
        let node = table.and_then(|table| {
            rest.iter()
                .enumerate()
                .try_fold(table, |node, (depth, key)| {
                    // Below a table stand names, and below a name settings again.
                    let resembling = || node.entry_resembling(key).filter(|_| depth > 0);
                    node.entry(key).or_else(resembling).map(|(_, inner)| inner)
                })
        });
        node.map_or(&[], Node::entries)
    }

    /// Returns the entry at `path`.
    fn entry_at(&self, path: &[&str]) -> Option<Entry<'a>> {
        let root = Entry {
            node: self.root,
            key: None,
        };
        path.iter().try_fold(root, |entry, key| {
            let (key, node) = entry.node.entry(key)?;
            let key = Some(key.span);
            Some(Entry { node, key })
        })
    }

    /// Where to point at of what is written at `path`.
    fn place_of(&self, path: &[&str]) -> Option<Span> {
        self.entry_at(path).map(Entry::span)
    }

    /// Where the key at the end of `path` is written, if it is.
    fn key_at(&self, path: &[&str]) -> Option<Span> {
        self.entry_at(path).and_then(|entry| entry.key)
    }

    /// Report that the study has no entry in `table`, unless there are some that cannot be read.
    fn needs_one(&mut self, table: &str) {
        if self.entries_at(&[table]).is_empty() {
            problem!(self.problems, self.root.span => "`{table}` is missing: at least one is required");
        }
    }

    /// The position of `name` among `known`, the names in `table`; where it is none of them, that
    /// is reported, unless an entry of that name is there and cannot be read.
    fn index_of(
        &mut self,
        table: Table,
        name: &At<impl AsRef<str>>,
        known: &[&str],
    ) -> Option<usize> {
        let text = name.value.as_ref();
        let index = known.iter().position(|known| *known == text);
        if index.is_none() {
            self.report_unknown(table, name, known.len(), || known.to_vec());
        }
        index
    }

    /// Report that there is no `name` in `table`, unless an entry of that name is there and cannot be read: it has `readable`
    /// others. Where mistakes are many, nobody looks, and each that cannot be read may be the one.
    fn report_unknown<'k>(
        &mut self,
        Table(key, what): Table,
        name: &At<impl AsRef<str>>,
        readable: usize,
        known: impl FnOnce() -> Vec<&'k str>,
    ) {
        let text = name.value.as_ref();
        let is_written = |(key, _): &(Key, Node)| key.text == text;
        let (are_many, entries) = (self.problems.are_many(), self.entries_at(&[key]));
        let is_there = if are_many {
            entries.len() > readable
        } else {
            entries.iter().any(is_written)
        };
        if is_there {
            return;
        }
        let known = if are_many { Vec::new() } else { known() };
        let message = format!("there is no {what} `{text}`");
        self.problems
            .add_unknown(name.span, message, (text, &known));
    }

    /// Returns true if tables are small enough to look names up in them.
    fn has_fair_size(&mut self, spec: &StudySpec) -> bool {
        let mut is_fair = self.is_fair("slices", &spec.slices)
            & self.is_fair("sources", &spec.sources)
            & self.is_fair("devices", &spec.devices)
            & self.is_fair("policies", &spec.policies)
            & self.is_fair("scenarios", &spec.scenarios);
        let path = spec.path.iter().flat_map(|path| &path.value.0);
        is_fair &= self.is_few("devices on the path", path.map(|hop| hop.span));
        for (_, scenario) in spec.scenarios.iter() {
            is_fair &= self.is_fair("sources", &scenario.sources);
        }
        let devices = spec.devices.iter();
        let of_devices = devices.filter_map(|(_, device)| device.value.policy.as_ref());
        let of_study = spec.policies.iter().map(|(_, policy)| policy);
        for policy in of_study.chain(of_devices) {
            let classes = policy.value.classes.iter().flat_map(|list| &list.0);
            is_fair &= self.is_few("classes", classes.map(|class| class.span));
            let queues = policy.value.queues.iter().flat_map(|list| &list.0);
            is_fair &= self.is_few("queues", queues.map(|queue| queue.span));
        }
        is_fair
    }

    fn is_fair<T>(&mut self, what: &str, table: &Named<T>) -> bool {
        self.is_few(what, table.iter().map(|(name, _)| name.span))
    }

    /// Returns true if there are not too many of something at these places; otherwise reports it.
    fn is_few(&mut self, what: &str, mut places: impl Iterator<Item = Span>) -> bool {
        let excess = places.nth(MAX_ENTRIES);
        if let Some(at) = excess {
            problem!(self.problems, at => "there are more than {MAX_ENTRIES} {what}");
        }
        excess.is_none()
    }

    /// The study, unless something was found wrong.
    pub(crate) fn study(&mut self, spec: &StudySpec, file_name: &str) -> Option<Study> {
        if !self.has_fair_size(spec) {
            return None;
        }
        let network = self.network(spec);
        let slices = self.slices(spec, &network.dut);
        let measure = self.measure(spec, slices.len());
        let populations = self.populations(spec);
        let scenarios = self.scenarios(spec, &network, &slices);
        self.check_objectives_of_applications(spec, &scenarios);
        let host_propagation = self.host_propagation(spec, &scenarios, &network);
        let mut policies = self.policies(&spec.policies, &spec.slices, &network.dut);
        self.check_rests_on(spec);
        self.check_port_series(spec, &network, &policies);
        self.check_loops(spec, network.duration);
        for policy in &policies {
            if let Some((name, _)) = spec.policies.entry(&policy.name) {
                self.warn_of_short_queues(name.span, &policy.params, &network.dut, &network.link);
            }
        }
        let path = self.hops(spec, &network, &policies);
        for policy in &mut policies {
            policy.not_judged = self.attached_and_not_judged(&policy.name);
        }
        let sending = (&*populations, &*scenarios);
        self.check_populations(spec, &network.dut, sending, &mut policies);
        self.warn_of_delays(spec, &path, &policies);
        self.check_tunnels(spec, &network, &policies, &scenarios);
        self.check_pipes(spec, &slices, &scenarios, &policies);
        self.check_credits(&slices, &scenarios, &policies);
        self.check_roles(spec, &slices, &populations, &scenarios);
        let Repetitions(repetitions) = spec.repetitions.unwrap_or(Repetitions(1));
        self.check_amount(spec, repetitions);
        let frame = largest_frame_time(&network, &scenarios, &populations);
        let margins = self.margins(spec.margins.as_ref(), frame);
        let is_resolution_declared = (spec.margins.as_ref())
            .is_some_and(|margins| margins.place("delay_resolution").is_some());
        let published = self.published(spec);
        let usual = || {
            let port = network.dut.port_rate.rate;
            usual_scenarios(&scenarios, &slices, &populations, port)
        };
        let quick = self.quick(spec, network.duration, measure.bin, &scenarios, usual);
        let of_devices = path.iter().flat_map(|hop| &hop.policies);
        let of_study = policies.iter().map(|policy| &policy.params);
        let limits = self.unmodelled(spec, of_study.chain(of_devices));
        let Name(name) = spec.name.clone()?;
        let digest = self.sources.digest();
        self.problems.is_empty().then(|| Study {
            title: if spec.title.is_empty() {
                name.clone()
            } else {
                spec.title.clone()
            },
            name,
            case: None,
            description: spec.description.clone(),
            source: spec.source.clone(),
            file_name: file_name.to_owned(),
            assumptions: (spec.assumptions.iter())
                .map(|(_, text)| text.clone())
                .collect(),
            link: network.link,
            dut: network.dut,
            port_series: network.port_series,
            path,
            hosts: network.hosts,
            host_propagation,
            slices,
            populations,
            policies,
            scenarios,
            repetitions,
            duration: network.duration,
            seed: spec.seed.unwrap_or(1),
            measure,
            margins,
            is_resolution_declared,
            published,
            coordinates: Vec::new(),
            plots: Vec::new(),
            quick,
            phases: Vec::new(),
            is_quick: false,
            limits,
            statements: std::mem::take(&mut self.statements),
            warnings: Diagnostics::new(Vec::new(), 0),
            digest,
        })
    }

    /// The network and how long a run takes. What depends on a setting that could not be read is
    /// checked all the same, against one so large that nothing is wrong because of it.
    fn network(&mut self, spec: &StudySpec) -> traffic::Network {
        let link = spec.link.as_ref().map(|link| link.value);
        let link = link.filter(|link| link.rate.rate > BitRate::ZERO);
        let path = self.path(spec, link.as_ref());
        let series = match &path {
            Some(_) => None,
            None => self.port_series(spec),
        };
        let dut = match &path {
            Some(path) => path.limiting,
            None => self.dut(spec.dut.as_ref(), link.as_ref(), series.as_ref()),
        };
        let hosts = self.hosts(spec.hosts.as_ref());
        let duration = spec.duration.as_ref().map(|length| length.value.0);
        let is_known = link.is_some() && dut.is_some() && duration.is_some();
        let (link, dut) = match (link, dut) {
            (Some(link), Some(dut)) => (link, dut),
            (_, dut) => {
                let link = StudyLink {
                    rate: UNKNOWN_RATE,
                    mtu_bytes: u32::MAX,
                    ..StudyLink::start()
                };
                (link, dut.unwrap_or(UNKNOWN_DUT))
            }
        };
        let network = traffic::Network {
            link,
            dut,
            port_series: series.map(|series| series.rates),
            path: path.map_or_else(Vec::new, |path| path.devices),
            hosts,
            duration: duration.unwrap_or(MAX_DURATION),
            is_known,
        };
        self.check_delays(spec, &network);
        self.check_variation(&network.link, network.duration);
        network
    }

    /// Isolation is judged against a reference, of slices that send.
    fn check_roles(
        &mut self,
        spec: &StudySpec,
        slices: &[StudySlice],
        populations: &[PopulationParams],
        scenarios: &[ScenarioParams],
    ) {
        let spans = |index: usize| spec.scenarios.0.get(index).map(|(name, _)| name.span);
        let references: Vec<usize> = (0..scenarios.len())
            .filter(|&index| scenarios.get(index).is_some_and(|s| s.reference))
            .collect();
        let names = spec.scenarios.iter().map(|(name, _)| name).zip(scenarios);
        self.check_one_reference(names.map(|(name, scenario)| (name, scenario.reference)));
        let places = spec.scenarios.iter();
        self.check_places(places.map(|(name, scenario)| (name, scenario.x.as_ref())));
        // Where some scenario could not be read, it may have been the reference.
        if scenarios.len() < self.entries_at(&["scenarios"]).len() {
            return;
        }
        let guaranteed = slices
            .iter()
            .enumerate()
            .filter(|(_, slice)| slice.guaranteed);
        for (slice, params) in guaranteed {
            let Some(&reference) = references.first() else {
                let (Some(first), Some(_)) = (spans(0), scenarios.get(1)) else {
                    return;
                };
                problem!(self.problems, first => "no scenario is the reference that isolation is judged against";
                    "set `reference: true` in the scenario where no slice exceeds what was promised");
                return;
            };
            let sends = |s: &ScenarioParams| {
                // A source that could not be read may have been the slice's.
                self.misses_source(s)
                    || s.slices().any(|of| of == slice)
                    || populations.iter().any(|p| p.slice == slice)
                    // One that has a mistake may be of this slice.
                    || populations.len() < spec.populations.len()
            };
            if let (Some(scenario), Some(at)) = (scenarios.get(reference), spans(reference))
                && !sends(scenario)
            {
                problem!(self.problems, at => "slice `{}` sends nothing in the reference: its isolation cannot be \
                    judged", params.name);
            }
        }
    }

    /// No two scenarios are the reference.
    fn check_one_reference<'n>(&mut self, scenarios: impl Iterator<Item = (&'n At<String>, bool)>) {
        let mut references = scenarios.filter(|(_, is_reference)| *is_reference);
        if let (Some((first, _)), Some((second, _))) = (references.next(), references.next()) {
            problem!(self.problems, second.span => "`{}` is the reference already: only one is allowed", first.value);
        }
    }

    /// Returns true if a source of the scenario is written that could not be read.
    fn misses_source(&self, scenario: &ScenarioParams) -> bool {
        let written = self.entries_at(&["scenarios", &scenario.name, "sources"]);
        scenario.sources.len() + scenario.applications.len() < written.len()
    }

    fn check_amount(&mut self, spec: &StudySpec, repetitions: u32) {
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let runs = count(spec.policies.len())
            .saturating_mul(count(spec.scenarios.len()))
            .saturating_mul(u64::from(repetitions));
        if runs > MAX_RUNS {
            let at = self.place_of(&["repetitions"]).unwrap_or(self.root.span);
            problem!(self.problems, at => "{} policies × {} scenarios × {repetitions} repetitions are {runs} runs, \
                more than {MAX_RUNS}", spec.policies.len(), spec.scenarios.len());
        }
    }
}

/// How long the largest frame that anything sends occupies what slices share.
fn largest_frame_time(
    network: &traffic::Network,
    scenarios: &[ScenarioParams],
    populations: &[PopulationParams],
) -> Duration {
    let of_sources = scenarios
        .iter()
        .flat_map(|s| &s.sources)
        .map(|source| FrameLengths {
            l2_bytes: source.largest.l2_bytes,
            l3_offset: source.headers.l3_offset(),
        });
    let of_applications = scenarios
        .iter()
        .flat_map(|s| &s.applications)
        .map(|source| {
            let l3_offset = source.headers.l3_offset();
            FrameLengths {
                l2_bytes: source.transport.mtu_bytes.saturating_add(l3_offset.into()),
                l3_offset,
            }
        });
    let of_populations = populations.iter().map(|population| FrameLengths {
        l2_bytes: population.frame_bytes,
        l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
    });
    let times = of_sources.chain(of_applications).chain(of_populations);
    times
        .map(|frame| device::frame_time(network.dut.capacity(), frame))
        .max()
        .unwrap_or(Duration::ZERO)
}

/// A setting at the top of a file, or the misspelt one that was probably meant to be it: the file is still what it
/// was meant to be, and what is wrong with it is one mistake.
pub(crate) fn entry_as_meant<'a>(root: &'a Node, setting: &str) -> Option<(&'a Key, &'a Node)> {
    let is_meant = |(key, _): &&(Key, Node)| {
        closest(&key.text, settings()).is_some_and(|meant| meant == setting)
    };
    root.entry(setting).or_else(|| {
        root.entries()
            .iter()
            .filter(|(key, _)| !settings().any(|setting| setting == key.text))
            .take(MAX_DIAGNOSTICS)
            .find(is_meant)
            .map(|(key, node)| (key, node))
    })
}

/// Settings at the top of any kind of file.
fn settings() -> impl Iterator<Item = &'static str> {
    fn keys<S: Settings>() -> impl Iterator<Item = &'static str> {
        S::FIELDS.iter().map(|field| field.key)
    }
    let gateway = keys::<GatewaySpec>().chain(keys::<PlanSpec>());
    keys::<StudySpec>()
        .chain(gateway)
        .chain(keys::<MeasuredSpec>())
        .chain(keys::<LabSpec>())
}
