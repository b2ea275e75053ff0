//! From what was written to what can be run: every setting read, every name resolved, every
//! contradiction reported at its place.

mod classes;
mod gateway;
mod guaranteed;
mod impairments;
mod ios;
mod limits;
pub(crate) mod matching;
mod measured;
mod network;
mod objective;
mod payload;
mod plan;
mod policies;
mod populations;
mod published;
mod quick;
mod traffic;
mod unmodelled;

use crate::device;
use crate::diagnostics::{Diagnostics, suggestion};
use crate::file::{Files, Key, Node, Problems, Sources, Span, Value};
use crate::impairments::{ImpairmentParams, LinkImpairments};
use crate::kind::entry_as_meant;
use crate::params::{DutModel, DutParams, PopulationParams, ScenarioParams, StudyLink, StudySlice};
use crate::quick::usual_scenarios;
use crate::spec::{Name, Named, Repetitions, Scalar, StudySpec, Text};
use crate::study::Study;
use slicewise_model::Rate;
use slicewise_units::{Accounting, BitRate, Duration, FrameLengths};

/// Longest run: a day.
const MAX_DURATION: Duration = Duration::from_secs(86_400);
/// Most runs of a study.
const MAX_RUNS: u64 = 1_000_000;
/// Most entries of a table: slices, policies, scenarios, or classes of a policy.
const MAX_ENTRIES: usize = 4_096;

/// A table of named things that other settings name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Slices,
    Policies,
    Scenarios,
    Populations,
    /// Of a plan.
    Tenants,
}

impl Table {
    /// Its key in the file.
    const fn key(self) -> &'static str {
        match self {
            Self::Slices => "slices",
            Self::Policies => "policies",
            Self::Scenarios => "scenarios",
            Self::Populations => "populations",
            Self::Tenants => "tenants",
        }
    }

    /// What one of its entries is called.
    const fn entry(self) -> &'static str {
        match self {
            Self::Slices => "slice",
            Self::Policies => "policy",
            Self::Scenarios => "scenario",
            Self::Populations => "population",
            Self::Tenants => "tenant",
        }
    }
}

/// Stands for a link that could not be read.
const UNKNOWN_LINK: StudyLink = StudyLink {
    rate: Rate {
        rate: BitRate::new(u64::MAX),
        accounting: Accounting::L1,
    },
    propagation: Duration::ZERO,
    mtu_bytes: u32::MAX,
    impairments: LinkImpairments {
        ingress: UNIMPAIRED,
        egress: UNIMPAIRED,
    },
};
const UNIMPAIRED: ImpairmentParams = ImpairmentParams {
    loss: None,
    bit_errors_per_1e15: 0,
    delay_variation: None,
};
/// Stands for a device that could not be read.
const UNKNOWN_DUT: DutParams = DutParams {
    model: DutModel::Port,
    port_rate: Rate {
        rate: BitRate::MAX,
        accounting: Accounting::L1,
    },
    processing_delay: Duration::ZERO,
    licence: None,
};

/// What checking needs beside the specification.
pub(crate) struct Checker<'a> {
    pub(crate) problems: &'a mut Problems,
    pub(crate) sources: &'a mut Sources,
    pub(crate) files: &'a dyn Files,
    /// The tree the specification was decoded from.
    pub(crate) root: &'a Node,
}

impl Checker<'_> {
    fn read<T: Scalar>(&mut self, field: Option<&Text<T>>) -> Option<T> {
        field.and_then(|text| text.read(self.problems))
    }

    /// The value; the default where there is none, or none that can be read.
    fn read_or<T: Scalar>(&mut self, field: Option<&Text<T>>, default: T) -> T {
        self.read(field).unwrap_or(default)
    }

    /// The value of a setting that must be there; `at` is where to say that it is not.
    fn required<T: Scalar>(&mut self, field: Option<&Text<T>>, key: &str, at: Span) -> Option<T> {
        match field {
            Some(text) => text.read(self.problems),
            None => {
                self.problems.add(at, format!("`{key}` is missing"));
                None
            }
        }
    }

    fn nonzero_duration(&mut self, field: Option<&Text<Duration>>) -> Option<Duration> {
        let text = field?;
        let duration = text.read(self.problems)?;
        if duration == Duration::ZERO {
            self.problems
                .add(text.span(), "this must be longer than zero");
            return None;
        }
        Some(duration)
    }

    /// A table's names: each valid, and no two alike to a file system that ignores case.
    fn names<T>(&mut self, table: &Named<T>) {
        let mut seen = std::collections::BTreeMap::new();
        for (name, _) in table.iter() {
            let _ = name.read(self.problems);
            if let Some(other) = seen.insert(name.text().to_lowercase(), name.text()) {
                let message = format!(
                    "`{}` and `{other}` differ in case only: a file system may take them for one",
                    name.text()
                );
                self.problems.add(name.span(), message);
            }
        }
    }

    /// The entries written at `path`, also those that could not be read and are in no table.
    fn entries_at(&self, path: &[&str]) -> &[(Key, Node)] {
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
        match node.map(|node| &node.value) {
            Some(Value::Mapping(entries)) => entries,
            _ => &[],
        }
    }

    /// Where the key at the end of `path` is written, if it is.
    fn key_at(&self, path: &[&str]) -> Option<Span> {
        let (last, before) = path.split_last()?;
        let node = before.iter().try_fold(self.root, |node, key| {
            node.entry(key).map(|(_, inner)| inner)
        })?;
        node.entry(last).map(|(key, _)| key.span)
    }

    /// Report that the study has no entry in `table`, unless there are some that cannot be read.
    fn needs_one(&mut self, table: &str) {
        if self.entries_at(&[table]).is_empty() {
            let message = format!("`{table}` is missing: at least one is required");
            self.problems.add(self.root.span, message);
        }
    }

    /// The position of `name` among `known`, the names in `table`; where it is none of them, that
    /// is reported, unless an entry of that name is there and cannot be read.
    fn index_of(&mut self, table: Table, name: &Text<Name>, known: &[&str]) -> Option<usize> {
        let index = known.iter().position(|known| *known == name.text());
        let is_written = |(key, _): &(Key, Node)| key.text == name.text();
        if index.is_none() && !self.entries_at(&[table.key()]).iter().any(is_written) {
            let what = table.entry();
            let message = format!("there is no {what} `{}`", name.text());
            let help = if self.problems.are_many() {
                None
            } else {
                suggestion(name.text(), known)
            };
            self.problems.add_with_help(name.span(), message, help);
        }
        index
    }

    /// Whether tables are small enough to look names up in them.
    fn has_fair_size(&mut self, spec: &StudySpec) -> bool {
        let mut is_fair = true;
        let mut check = |what: &str, excess: Option<Span>| {
            if let Some(at) = excess {
                let message = format!("there are more than {MAX_ENTRIES} {what}");
                self.problems.add(at, message);
                is_fair = false;
            }
        };
        check("slices", excess(&spec.slices));
        check("sources", excess(&spec.sources));
        check("policies", excess(&spec.policies));
        check("scenarios", excess(&spec.scenarios));
        for (_, scenario) in spec.scenarios.iter() {
            check("sources", excess(&scenario.sources));
        }
        for (_, policy) in spec.policies.iter() {
            let classes = policy.classes.as_ref();
            let excess = classes.and_then(|classes| classes.value.0.get(MAX_ENTRIES));
            check("classes", excess.map(|class| class.span));
        }
        is_fair
    }

    /// The study, unless something was found wrong.
    pub(crate) fn study(&mut self, spec: &StudySpec, file_name: &str) -> Option<Study> {
        if !self.has_fair_size(spec) {
            return None;
        }
        let at = self.root.span;
        let name = self.required(spec.name.as_ref(), "name", at);
        let network = self.network(spec);
        let repetitions = self.required(spec.repetitions.as_ref(), "repetitions", at);
        let repetitions = repetitions.map(|Repetitions(repetitions)| repetitions);
        let slices = self.slices(spec, &network.dut);
        let measure = self.measure(spec, network.duration, slices.len());
        let populations = self.populations(spec);
        let scenarios = self.scenarios(spec, &network, &slices);
        let policies = self.policies(spec, &network.dut);
        self.check_populations(spec, &network.dut, &scenarios, &policies);
        self.check_roles(spec, &slices, &populations, &scenarios);
        if let Some(repetitions) = repetitions {
            self.check_amount(spec, repetitions);
        }
        let frame = largest_frame_time(&network, &scenarios, &populations);
        let margins = self.margins(spec.margins.as_ref(), frame);
        let published = self.published(spec);
        let usual = || {
            let port = network.dut.port_rate.rate;
            usual_scenarios(&scenarios, &slices, &populations, port)
        };
        let quick = self.quick(spec, network.duration, measure.bin, &scenarios, usual);
        let limits = self.unmodelled(spec);
        let seed = self.read_or(spec.seed.as_ref(), 1);
        let name = name?.0;
        let title = trimmed(spec.title.as_ref());
        let digest = self.sources.digest();
        self.problems.is_empty().then(|| Study {
            title: if title.is_empty() {
                name.clone()
            } else {
                title
            },
            name,
            description: trimmed(spec.description.as_ref()),
            source: trimmed(spec.source.as_ref()),
            file_name: file_name.to_owned(),
            assumptions: spec
                .assumptions
                .iter()
                .map(|(_, text)| trimmed(Some(text)))
                .collect(),
            link: network.link,
            dut: network.dut,
            hosts: network.hosts,
            slices,
            populations,
            policies,
            scenarios,
            repetitions: repetitions.unwrap_or(1),
            duration: network.duration,
            seed,
            measure,
            margins,
            published,
            quick,
            is_quick: false,
            limits,
            warnings: Diagnostics::new(Vec::new(), 0),
            text_digest: digest.clone(),
            digest,
        })
    }

    /// The network and how long a run takes. What depends on a setting that could not be read is
    /// checked all the same, against one so large that nothing is wrong because of it.
    fn network(&mut self, spec: &StudySpec) -> traffic::Network {
        let link = self.link(spec.link.as_ref());
        let dut = self.dut(spec.dut.as_ref(), link.as_ref());
        let hosts = self.hosts(spec.hosts.as_ref());
        let duration = match &spec.duration {
            Some(text) => self.duration(text),
            None => self.required(None, "duration", self.root.span),
        };
        let is_known = link.is_some() && dut.is_some() && duration.is_some();
        let (link, dut) = match (link, dut) {
            (Some(link), Some(dut)) => (link, dut),
            (_, dut) => (UNKNOWN_LINK, dut.unwrap_or(UNKNOWN_DUT)),
        };
        let network = traffic::Network {
            link,
            dut,
            hosts,
            duration: duration.unwrap_or(MAX_DURATION),
            is_known,
        };
        self.check_delays(spec, &network);
        self.check_variation(spec, network.duration);
        network
    }

    fn duration(&mut self, text: &Text<Duration>) -> Option<Duration> {
        let duration = self.nonzero_duration(Some(text))?;
        if duration > MAX_DURATION {
            self.problems
                .add(text.span(), "this is longer than 24 h, the longest run");
            return None;
        }
        Some(duration)
    }

    /// Isolation is judged against a reference, of slices that send.
    fn check_roles(
        &mut self,
        spec: &StudySpec,
        slices: &[StudySlice],
        populations: &[PopulationParams],
        scenarios: &[ScenarioParams],
    ) {
        let spans = |index: usize| spec.scenarios.0.get(index).map(|(name, _)| name.span());
        let references: Vec<usize> = (0..scenarios.len())
            .filter(|&index| scenarios.get(index).is_some_and(|s| s.reference))
            .collect();
        if let (Some(&first), Some(&second)) = (references.first(), references.get(1))
            && let (Some((first, _)), Some(at)) = (spec.scenarios.0.get(first), spans(second))
        {
            let message = format!(
                "`{}` is the reference already: only one is allowed",
                first.text()
            );
            self.problems.add(at, message);
        }
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
                let help = "set `reference: true` in the scenario where no slice exceeds what was \
                            promised";
                let message = "no scenario is the reference that isolation is judged against";
                self.problems
                    .add_with_help(first, message, Some(help.to_owned()));
                return;
            };
            // A source that could not be read may have been the slice's.
            let written = scenarios
                .get(reference)
                .map(|s| self.entries_at(&["scenarios", &s.name, "sources"]).len());
            let sends = |s: &ScenarioParams| {
                Some(s.sources.len()) < written
                    || s.sources.iter().any(|s| s.slice == slice)
                    || populations.iter().any(|p| p.slice == slice)
                    // One that has a mistake may be of this slice.
                    || populations.len() < spec.populations.len()
            };
            if let (Some(scenario), Some(at)) = (scenarios.get(reference), spans(reference))
                && !sends(scenario)
            {
                let message = format!(
                    "slice `{}` sends nothing in the reference: its isolation cannot be judged",
                    params.name
                );
                self.problems.add(at, message);
            }
        }
    }

    fn check_amount(&mut self, spec: &StudySpec, repetitions: u32) {
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let runs = count(spec.policies.len())
            .saturating_mul(count(spec.scenarios.len()))
            .saturating_mul(u64::from(repetitions));
        if runs > MAX_RUNS {
            let at = spec.repetitions.as_ref().map_or(self.root.span, Text::span);
            let message = format!(
                "{} policies × {} scenarios × {repetitions} repetitions are {runs} runs, more than \
                 {MAX_RUNS}",
                spec.policies.len(),
                spec.scenarios.len(),
            );
            self.problems.add(at, message);
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
    let of_populations = populations.iter().map(|population| FrameLengths {
        l2_bytes: population.frame_bytes,
        l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
    });
    let times = of_sources.chain(of_populations);
    times
        .map(|frame| device::frame_time(network.dut.capacity(), frame))
        .max()
        .unwrap_or(Duration::ZERO)
}

/// Where the first entry that is too many is.
fn excess<T>(table: &Named<T>) -> Option<Span> {
    table.0.get(MAX_ENTRIES).map(|(name, _)| name.span())
}

fn trimmed(text: Option<&Text<String>>) -> String {
    text.map(|text| text.text().trim().to_owned())
        .unwrap_or_default()
}
