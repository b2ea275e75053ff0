//! Timelines: the study as it is after each change, checked as a study of its own.
//!
//! A change is settings on top of those before it, as in a file that extends another. Names stay: what changes are
//! slices, policies and what sources send.

use super::policies::{FORMS, PolicyFileSpec};
use super::traffic::{ScenarioSpec, SliceSpec, SourceSpec};
use super::{Checker, StudySpec, Table, entry_as_meant};
use crate::file::{Decode, Entry, Key, Node, Placed, Problems, Schemas, Span, merge_nodes};
use crate::params::ScenarioParams;
use crate::spec::{At, Name, Named};
use crate::study::{Phase, Study};
use crate::{problem, settings};
use slicewise_units::Duration;
use std::collections::BTreeSet;

/// A phase has at least so many bins that are measured.
const MIN_BINS: u64 = 10;
/// Name of the phase before the first change.
const FIRST_PHASE: &str = "start";

settings! {
    /// Changes during every run, and the phases between them.
    struct TimelineSpec as "TimelineSpec" {
        /// Name of the phase before the first change. Default `start`.
        first: Option<Name>,
        /// How long after a change nothing is measured, so that queues and sources settle.
        [required] settle: Option<At<Duration>>,
        /// The changes, in order of time, by the name of the phase that begins with each.
        [required ": which settings change, and when? A timeline is of changes during a run; to leave a warm-up out, start \
            the sources that are measured later (`start`)"] changes: Named<Placed<ChangeSpec>>,
    }
}

settings! {
    /// A change: settings on top of those before it. Names stay as they are.
    struct ChangeSpec as "ChangeSpec" {
        /// When, from the start of the run.
        [required] at: Option<At<Duration>>,
        /// One line for people.
        title: String,
        /// Shares and objectives of slices, by name.
        slices: Overlay<Named<Placed<SliceSpec>>>,
        /// Policies, by name. A list of classes replaces the one before.
        policies: Overlay<Named<Placed<PolicyFileSpec>>>,
        /// Traffic of sources, by name, in every scenario that has them.
        sources: Overlay<Named<SourceSpec>>,
        /// Traffic of sources in one scenario.
        scenarios: Overlay<Named<ScenarioSpec>>,
    }
}

/// Settings that are read on top of others, and not for themselves.
#[derive(Debug, Clone)]
pub(crate) struct Overlay<T>(std::marker::PhantomData<fn() -> T>);

impl<T> Default for Overlay<T> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<T: Decode> Decode for Overlay<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        entry.table(problems).map(|_| Self::default())
    }

    fn schema(schemas: &mut Schemas) -> serde_json::Value {
        T::schema(schemas)
    }
}

/// Change in a timeline, as far as it can be put on top of a study.
pub(crate) struct Change<'a> {
    key: &'a Key,
    node: &'a Node,
}

/// The changes of a study, in the order written.
pub(crate) fn changes(root: &Node) -> Vec<Change<'_>> {
    let timeline = entry_as_meant(root, "timeline").map(|(_, timeline)| timeline);
    let changes = timeline.and_then(|timeline| timeline.entry("changes"));
    let changes = changes.iter().flat_map(|(_, changes)| changes.entries());
    changes.map(|(key, node)| Change { key, node }).collect()
}

impl Change<'_> {
    /// The name of the phase that begins with it.
    pub(crate) fn name(&self) -> &str {
        &self.key.text
    }

    /// `root` with what changes; whatever it has none of is reported.
    pub(crate) fn on_top_of(&self, root: &Node, problems: &mut Problems) -> Node {
        let mut changed = root.clone();
        let tables = [Table::SLICES, Table::POLICIES, Table::SCENARIOS];
        let mut is_empty = true;
        for Table(table, what) in tables {
            let Some((_, over)) = self.node.entry(table) else {
                continue;
            };
            is_empty &= names(over).is_empty();
            let Some(settings) = changed.entry_mut(table) else {
                continue;
            };
            let over = match table {
                "scenarios" => sources_only(over, settings, problems),
                _ => over.clone(),
            };
            let over = known_only(over, settings, what, problems);
            *settings = merge_nodes(settings.clone(), over);
        }
        if let Some((_, over)) = self.node.entry("sources") {
            is_empty &= names(over).is_empty();
            change_sources(&mut changed, over, problems);
        }
        if is_empty {
            problem!(problems, self.key.span => "this changes nothing: it has no `slices`, `policies`, `sources` or \
                `scenarios`");
        }
        changed
    }

    /// Names the changes in a few words: "policy guaranteed", "sources bulk and video".
    fn words(&self) -> Vec<String> {
        let tables = [
            (Table::SLICES.0, Table::SLICES.1),
            (Table::POLICIES.0, Table::POLICIES.1),
            ("sources", "source"),
            (Table::SCENARIOS.0, Table::SCENARIOS.1),
        ];
        let written = tables.into_iter().filter_map(|(table, what)| {
            let (_, node) = self.node.entry(table)?;
            match names(node).as_slice() {
                [] => None,
                [name] => Some(format!("{what} {name}")),
                several => Some(format!("{table} {}", several.join(", "))),
            }
        });
        written.collect()
    }
}

fn names(table: &Node) -> Vec<&str> {
    let entries = table.entries().iter();
    entries.map(|(key, _)| key.text.as_str()).collect()
}

/// The entries of `over` whose names `table` has; others are reported.
fn known_only(over: Node, table: &Node, what: &str, problems: &mut Problems) -> Node {
    let known = names(table);
    retained(over, |key, node| {
        if let Some((_, before)) = table.entry(&key.text) {
            *node = changeable_only(node.clone(), before, what, problems);
            return true;
        }
        let message = format!("there is no {what} `{}` that could change", key.text);
        problems.add_unknown(key.span, message, (&key.text, &known));
        false
    })
}

/// Of the settings `over`, those that can change; a change of others is reported.
fn changeable_only(over: Node, before: &Node, what: &str, problems: &mut Problems) -> Node {
    let fixed: &[&str] = match what {
        "slice" => &["match", "headers"],
        "source" => &["slice", "headers", "host"],
        _ => &[],
    };
    let form = FORMS.into_iter().find(|form| before.entry(form).is_some());
    retained(over, |key, node| {
        let name = key.text.as_str();
        if let Some(form) =
            form.filter(|form| what == "policy" && *form != name && FORMS.contains(&name))
        {
            let message = format!(
                "a policy keeps its form during a run: this one is written with `{form}`, not `{name}`"
            );
            let help = match (form, name) {
                ("none", _) | (_, "none") => {
                    "write it as `classes` in every phase: one queue for everything is `classes: [{name: class-default}]`"
                }
                _ => "write it in the same form in every phase",
            };
            problems.add_with_help(key.span, message, help);
            return false;
        }
        let unchanged = before.entry(name).is_some_and(|(_, before)| {
            merge_nodes(before.clone(), node.clone()).says_the_same_as(before)
        });
        if !fixed.contains(&name) || unchanged {
            return true;
        }
        let message = format!("`{name}` of a {what} cannot change during a run");
        let help = match what {
            "slice" => "define another slice for these frames",
            _ => "define another source with a `start` at this moment, and let this one `stop`",
        };
        problems.add_with_help(key.span, message, help);
        false
    })
}

fn retained(mut table: Node, mut keep: impl FnMut(&Key, &mut Node) -> bool) -> Node {
    if let Some(entries) = table.entries_mut() {
        entries.retain_mut(|(key, node)| keep(key, node));
    }
    table
}

/// Of scenarios their sources, as far as they have them: nothing else can change.
fn sources_only(over: &Node, scenarios: &Node, problems: &mut Problems) -> Node {
    retained(over.clone(), |scenario, settings| {
        let known = scenarios.entry(&scenario.text);
        let known = known.and_then(|(_, scenario)| scenario.entry("sources"));
        *settings = retained(settings.clone(), |key, node| {
            if key.text != "sources" {
                problem!(problems, key.span => "`{}` of a scenario cannot change: only its `sources` can", key.text);
                return false;
            }
            if let Some((_, known)) = known {
                *node = known_only(node.clone(), known, "source", problems);
            }
            true
        });
        true
    })
}

/// Change sources in every scenario that has them.
fn change_sources(root: &mut Node, over: &Node, problems: &mut Problems) {
    let scenarios = root.entry_mut("scenarios").and_then(Node::entries_mut);
    let Some(scenarios) = scenarios.filter(|_| over.is_mapping()) else {
        return;
    };
    let mut known: Vec<String> = Vec::new();
    for (_, scenario) in scenarios {
        let Some(sources) = scenario.entry_mut("sources") else {
            continue;
        };
        known.extend(names(sources).into_iter().map(str::to_owned));
        let own = retained(over.clone(), |key, _| sources.entry(&key.text).is_some());
        let own = known_only(own, sources, "source", problems);
        *sources = merge_nodes(sources.clone(), own);
    }
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    for (key, _) in over.entries() {
        if !known.contains(&key.text.as_str()) {
            let message = format!("no scenario has a source `{}` that could change", key.text);
            problems.add_unknown(key.span, message, (&key.text, &known));
        }
    }
}

fn sum(one: Duration, other: Duration) -> Duration {
    Duration::from_nanos(one.nanos().saturating_add(other.nanos()))
}

/// Names of the phases of a study, in order of time; empty where it has no timeline.
pub(super) fn phase_names(spec: &StudySpec) -> Vec<&str> {
    let timeline = spec.timeline.iter().map(|timeline| &timeline.value);
    let names = timeline.flat_map(|timeline| {
        let first = timeline
            .first
            .as_ref()
            .map_or(FIRST_PHASE, |Name(name)| name);
        std::iter::once(first).chain(timeline.changes.names())
    });
    names.collect()
}

impl Checker<'_> {
    /// The phases of `study`, which is as it is before the first change; `later` is the study after each change, as far
    /// as it could be read.
    pub(crate) fn phases(
        &mut self,
        spec: &StudySpec,
        study: &Study,
        later: Vec<Study>,
    ) -> Vec<Phase> {
        let Some(timeline) = &spec.timeline else {
            return Vec::new();
        };
        let changes = &timeline.value.changes;
        self.names(changes);
        let first = phase_names(spec).first().map_or(FIRST_PHASE, |first| first);
        if let Some((name, _)) = changes.iter().find(|(name, _)| name.value == first) {
            problem!(self.problems, name.span => "the phase before the first change is called `{first}` already");
        }
        if changes.len() == 0 && self.entries_at(&["timeline", "changes"]).is_empty() {
            problem!(self.problems, timeline.span => "a timeline without a change has no phases");
        }
        if let Some(at) = self.key_at(&["populations"]) {
            problem!(self.problems, at => "populations do not change during a run: `timeline` and `populations` \
                exclude each other");
        }
        if let Some(at) = spec
            .quick
            .as_ref()
            .and_then(|quick| quick.place("duration"))
        {
            problem!(self.problems, at => "with a `timeline` every run takes as long as the phases");
        }
        let phases = self.phase_times(timeline, study, later, first);
        let words = super::timeline::changes(self.root);
        let words = std::iter::once(Vec::new()).chain(words.iter().map(Change::words));
        let is_sound = self.problems.is_empty();
        let mut made: Vec<Phase> = Vec::new();
        for ((mut phase, at), changes) in phases.into_iter().zip(words) {
            let before = made.last().unwrap_or(&phase);
            self.check_applications(&before.study, &phase.study, at);
            self.check_flows(&before.study, &phase.study, at);
            phase.changes = changes;
            if is_sound {
                self.check_length(&phase, at);
            }
            made.push(phase);
        }
        made
    }

    /// When phases begin and end, and where that is written; `later` is the study in each but the first.
    fn phase_times(
        &mut self,
        timeline: &Placed<TimelineSpec>,
        study: &Study,
        later: Vec<Study>,
        first: &str,
    ) -> Vec<(Phase, Span)> {
        let settle = timeline.value.settle.as_ref();
        let settle_time = settle.map_or(Duration::ZERO, |settle| settle.value);
        if let Some(settle) = settle {
            self.check_edge(settle, study, "the settling time");
        }
        let ends = study.duration;
        let phase = |name: &str, title: &str, begins, study| Phase {
            name: name.to_owned(),
            title: title.to_owned(),
            begins,
            measured_from: sum(begins, settle_time),
            ends,
            changes: Vec::new(),
            study,
        };
        let before_changes = phase(first, "", Duration::ZERO, study.clone());
        let mut phases = vec![(before_changes, timeline.span)];
        let mut later = later.into_iter();
        for (name, change) in timeline.value.changes.iter() {
            let Some(at) = &change.value.at else { continue };
            self.check_edge(at, study, "a change");
            let before = phases
                .last()
                .map_or(Duration::ZERO, |(phase, _)| phase.begins);
            if at.value <= before {
                problem!(self.problems, at.span => "a change at {} is not after the one before it, or the start, at \
                    {before}", at.value);
            }
            if at.value >= study.duration {
                problem!(self.problems, at.span => "the run is over after {}", study.duration);
            }
            if let Some((last, _)) = phases.last_mut() {
                last.ends = at.value;
            }
            let title = &change.value.title;
            let next = later.next();
            phases.extend(next.map(|study| (phase(&name.value, title, at.value, study), at.span)));
        }
        phases
    }

    fn check_edge(&mut self, time: &At<Duration>, study: &Study, what: &str) {
        let bin = study.measure.bin;
        if !time.value.nanos().is_multiple_of(bin.nanos().max(1)) {
            problem!(self.problems, time.span => "{what} at {} is not at the edge of a bin: bins are {bin} \
                wide", time.value;
                "choose a multiple of `measure.bin`");
        }
    }

    /// Checks that the measured part of a phase is neither too short nor shorter than a cycle of its load.
    fn check_length(&mut self, phase: &Phase, at: Span) {
        let study = &phase.study;
        let bins = Duration::from_nanos(study.measure.bin.nanos().saturating_mul(MIN_BINS));
        let cycles = study.scenarios.iter().map(|scenario| scenario.cycle());
        let needed = cycles.max().unwrap_or(Duration::ZERO).max(bins);
        let measured = phase
            .ends
            .nanos()
            .saturating_sub(phase.measured_from.nanos());
        let measured = Duration::from_nanos(measured);
        if measured < needed {
            problem!(self.problems, at => "phase `{}` is measured for {measured} after its settling time: it \
                takes {needed} at least ({MIN_BINS} bins, and a cycle of every source that pauses)", phase.name);
        } else {
            self.check_traffic(phase, at);
        }
    }

    /// Something is sent in what is measured of a phase.
    fn check_traffic(&mut self, phase: &Phase, at: Span) {
        for scenario in &phase.study.scenarios {
            let of_sources = scenario.sources.iter().map(|s| (s.start, s.stop));
            let of_applications = scenario.applications.iter().map(|s| (s.start, s.stop));
            let mut spans = of_sources.chain(of_applications);
            if !spans.any(|(start, stop)| start < phase.ends && stop > phase.measured_from) {
                problem!(self.problems, at => "no source of scenario `{}` sends in phase `{}`, from {} to {}: \
                    there would be nothing to measure",
                    scenario.name, phase.name, phase.measured_from, phase.ends;
                    "give a source another `start` or `stop`, or the change another moment");
            } else if scenario.reference {
                self.warn_of_silence(phase, at, scenario);
            }
        }
    }

    /// A slice that is silent throughout a phase of the reference is not judged in it.
    fn warn_of_silence(&mut self, phase: &Phase, at: Span, reference: &ScenarioParams) {
        let of_sources = reference.sources.iter().map(|s| (s.slice, s.start, s.stop));
        let of_applications = reference.applications.iter();
        let of_applications = of_applications.map(|s| (s.slice, s.start, s.stop));
        let spans: Vec<_> = of_sources.chain(of_applications).collect();
        let slices = phase.study.slices.iter().enumerate();
        for (index, slice) in slices.filter(|(_, slice)| slice.guaranteed) {
            let sends = |&(of, start, stop): &(usize, Duration, Duration)| {
                of == index && start < phase.ends && stop > phase.measured_from
            };
            if !spans.iter().any(sends) {
                let message = format!(
                    "slice `{}` sends nothing in phase `{}` of the reference, from {} to {}: its isolation is not tested in that phase",
                    slice.name, phase.name, phase.measured_from, phase.ends
                );
                self.problems.warn(at, message);
            }
        }
    }

    /// Applications stay what they are.
    fn check_applications(&mut self, before: &Study, later: &Study, at: Span) {
        let scenarios = before.scenarios.iter().zip(&later.scenarios);
        let changed = scenarios.flat_map(|(one, other)| {
            let gone = one
                .applications
                .iter()
                .filter(|it| !other.applications.contains(it));
            let new = other
                .applications
                .iter()
                .filter(|it| !one.applications.contains(it));
            gone.chain(new)
        });
        let mut changed = changed.map(|source| &source.name);
        if let Some(name) = changed.next() {
            problem!(self.problems, at => "source `{name}` is an application: applications go on through every change, \
                and cannot change";
                "give it another `start` or `stop`, or put what differs into a scenario of its own");
        }
    }

    /// Flows of a source stay as many as they are.
    fn check_flows(&mut self, before: &Study, later: &Study, at: Span) {
        let flows = |study: &Study| {
            let sources = study.scenarios.iter().flat_map(|it| &it.sources);
            sources
                .map(|source| source.name.clone())
                .collect::<Vec<_>>()
        };
        if flows(before) != flows(later) {
            problem!(self.problems, at => "this change gives a source more or fewer `flows`: their number is the same throughout a run";
                "write a second source that begins or ends at this moment");
        }
    }
}
