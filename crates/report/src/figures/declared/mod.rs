//! Figures that a study declares: quantities over cases, scenarios, policies or each other, and distributions.

mod caption;
mod fits;
mod map;
mod panels;

use super::figure::Figure;
use crate::findings::Findings;
use crate::signs::{self, Sign};
pub(super) use map::PointsByName;
use slicewise_stats::description::{ScenarioDescription, StudyDescription};
use slicewise_stats::plot::{PlotDescription, PlotValue, PlotX};
use slicewise_stats::plotted::{PlotCell, SENT};
use std::collections::BTreeSet;

/// A declared figure and the studies that it draws.
pub(super) struct Declared<'a> {
    pub(super) plot: &'a PlotDescription,
    /// Each case that has runs, in the order of the figure: study, figure as that knows it, and values.
    cases: Vec<(&'a StudyDescription, &'a PlotDescription, &'a [PlotCell])>,
}

/// Figures of a study that draw no other.
pub(super) fn of_study(findings: &Findings) -> Vec<Declared<'_>> {
    let all = of_series(&[findings]);
    all.into_iter()
        .filter(|of| {
            let is_over_cases = matches!(of.plot.x, PlotX::Case | PlotX::CaseNumber);
            let is_over_points = is_over_cases && !findings.study().coordinates.is_empty();
            of.plot.cases().count() < 2 && !is_over_points
        })
        .collect()
}

/// Figures that these studies declare, the cases of one file. A case that was run when the file declared a figure
/// otherwise has no part in it.
pub(super) fn of_series<'a>(cases: &[&'a Findings]) -> Vec<Declared<'a>> {
    let mut all: Vec<Declared<'a>> = Vec::new();
    for plot in cases.iter().flat_map(|findings| &findings.study().plots) {
        if all.iter().any(|known| known.plot.name == plot.name) {
            continue;
        }
        let drawn = cases.iter().filter_map(|findings| {
            let study = findings.study();
            let mut own = study.plots.iter().zip(&findings.plots);
            let (own, cells) = own.find(|(other, _)| is_part(study, other, plot))?;
            Some((study, own, cells.as_slice()))
        });
        let mut drawn: Vec<_> = drawn.collect();
        // Points of a sweep are in the order of their folder.
        let place = |case: &Option<String>| {
            let mut cases = plot.cases();
            let place = cases.position(|(_, of)| Some(&of.name) == case.as_ref());
            place.unwrap_or_default()
        };
        drawn.sort_by_key(|(study, ..)| place(&study.case));
        all.push(Declared { plot, cases: drawn });
    }
    all
}

/// Returns true if a figure that a study knows is this one. A point of a sweep knows of itself alone.
fn is_part(study: &StudyDescription, known: &PlotDescription, plot: &PlotDescription) -> bool {
    if study.coordinates.is_empty() {
        return known == plot;
    }
    let groups = plot.groups.clone();
    *plot
        == PlotDescription {
            groups,
            ..known.clone()
        }
}

/// A cell in its surroundings.
#[derive(Clone, Copy)]
struct Entry<'a> {
    study: &'a StudyDescription,
    cell: &'a PlotCell,
    /// Name of its group of cases; empty where cases have none.
    group: &'a str,
    /// Number that its case states, and its unit.
    case_x: &'a str,
}

impl<'a> Entry<'a> {
    fn case(self) -> &'a str {
        self.study.case.as_deref().unwrap_or_default()
    }

    /// Name of its case in a row: of a point of a sweep, its value on the axis.
    fn row(self) -> &'a str {
        match self.case_x {
            value if !value.is_empty() && !self.study.coordinates.is_empty() => value,
            _ => self.case(),
        }
    }

    fn policy(self) -> &'a str {
        let policy = self.study.policies.get(self.cell.policy);
        policy.map_or("", |policy| &policy.name)
    }

    fn scenario(self) -> Option<&'a ScenarioDescription> {
        self.study.scenarios.get(self.cell.scenario)
    }

    fn scenario_name(self) -> &'a str {
        self.scenario().map_or("", |scenario| &scenario.name)
    }

    /// Policy, scenario and case, in words.
    fn label(self) -> String {
        let parts = [self.policy(), self.scenario_name(), self.case()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Points with a name and a sign in common.
struct Line<'a> {
    name: String,
    sign: Sign,
    entries: Vec<Entry<'a>>,
}

impl Line<'_> {
    /// Returns true unless its points differ in several axes of a sweep, and are scattered over each.
    fn is_curve(&self) -> bool {
        let coordinates = self.entries.iter().map(|entry| &entry.study.coordinates);
        let mut differing = BTreeSet::new();
        if let Some(first) = coordinates.clone().next() {
            for (axis, (one, other)) in coordinates.flat_map(|of| first.iter().zip(of).enumerate())
            {
                if one != other {
                    differing.insert(axis);
                }
            }
        }
        differing.len() < 2
    }
}

impl<'a> Declared<'a> {
    pub(super) fn figure(&self) -> Figure {
        let entries = self.entries();
        let lines = self.lines(&entries);
        let mut how = self.explained(&entries);
        let panel = match &self.plot.x {
            PlotX::Distribution(of) => panels::distribution(of, &lines),
            PlotX::Value(x) => self.scatter(x, &lines, &mut how),
            _ => self.over_places(&lines, &mut how),
        };
        how.extend(self.left_out(&entries));
        Figure {
            subject: self.title(),
            how: how.join(" "),
            panels: vec![panel],
        }
    }

    fn title(&self) -> String {
        if !self.plot.title.is_empty() {
            return self.plot.title.clone();
        }
        let y = self.plot.y.as_ref().map(axis_name);
        let x = match &self.plot.x {
            PlotX::Policy => "policy".to_owned(),
            PlotX::Case | PlotX::CaseNumber => "case".to_owned(),
            PlotX::Scenario | PlotX::ScenarioNumber => "scenario".to_owned(),
            PlotX::Value(x) => axis_name(x),
            PlotX::Distribution(of) => {
                return format!("Distribution of {} of {}", of.of.words(), of.slice);
            }
        };
        capitalised(&format!("{} over {x}", y.unwrap_or_default()))
    }

    fn entries(&self) -> Vec<Entry<'a>> {
        let of_case = |&(study, plot, cells): &(
            &'a StudyDescription,
            &'a PlotDescription,
            &'a [PlotCell],
        )| {
            let mut cases = plot.cases();
            let own = cases.find(|(_, case)| Some(&case.name) == study.case.as_ref());
            let group = own.and_then(|(group, _)| plot.groups.get(group));
            let case_x = own.map_or("", |(_, case)| case.x.as_str());
            let entry = move |cell| Entry {
                study,
                cell,
                group: group.map_or("", |group| group.name.as_str()),
                case_x,
            };
            cells.iter().map(entry).collect::<Vec<_>>()
        };
        self.cases.iter().flat_map(of_case).collect()
    }

    /// Returns group or case, policy, scenario and point, as far as lines differ in them and not places.
    fn parts(&self, entry: Entry<'a>) -> [&'a str; 4] {
        let of_cases = matches!(self.plot.x, PlotX::Case | PlotX::CaseNumber);
        let is_along = matches!(
            self.plot.x,
            PlotX::Scenario | PlotX::ScenarioNumber | PlotX::Value(_)
        );
        // Percentiles of several cases have no distribution together.
        let is_apart =
            matches!(&self.plot.x, PlotX::Distribution(of) if !of.of.percentiles().is_empty());
        let case = match entry.group {
            "" if of_cases => "",
            group if group.is_empty() || is_apart => entry.case(),
            group => group,
        };
        // No policy changes what is sent.
        let policy = if self.plot.x == PlotX::Policy || entry.cell.point == SENT {
            ""
        } else {
            entry.policy()
        };
        let scenario = if is_along { "" } else { entry.scenario_name() };
        [case, policy, scenario, entry.cell.point]
    }

    fn lines(&self, entries: &[Entry<'a>]) -> Vec<Line<'a>> {
        let mut keys: Vec<[&str; 4]> = Vec::new();
        for entry in entries {
            let parts = self.parts(*entry);
            if !keys.contains(&parts) {
                keys.push(parts);
            }
        }
        let differ = |part: usize| keys.iter().any(|key| key[part] != keys[0][part]);
        let differing = [0, 1, 2, 3].map(differ);
        let mut policies: Vec<&str> = Vec::new();
        for policy in self.cases.iter().flat_map(|(study, ..)| &study.policies) {
            if !policies.contains(&policy.name.as_str()) {
                policies.push(&policy.name);
            }
        }
        let is_a_policy = differing == [false, true, false, false];
        let line = |(index, key): (usize, &[&'a str; 4])| {
            let [_, policy, ..] = key;
            let place = policies.iter().position(|name| name == policy);
            let parts = key.iter().zip(differing);
            let parts = parts.filter(|(part, differs)| *differs && !part.is_empty());
            let parts: Vec<&str> = parts.map(|(part, _)| *part).collect();
            let own = entries.iter().filter(|entry| self.parts(**entry) == *key);
            let own: Vec<Entry<'a>> = own.copied().collect();
            Line {
                name: match (parts.is_empty(), own.first()) {
                    (false, _) => parts.join(", "),
                    (true, Some(entry)) if !entry.group.is_empty() => entry.group.to_owned(),
                    (true, _) if policy.is_empty() => key.concat(),
                    (true, _) => (*policy).to_owned(),
                },
                sign: signs::policy(place.filter(|_| is_a_policy).unwrap_or(index)),
                entries: own,
            }
        };
        keys.iter().enumerate().map(line).collect()
    }

    fn confidence(&self) -> f64 {
        let first = self.cases.first();
        first.map_or(0.95, |(study, ..)| study.margins.confidence)
    }
}

/// Name of a quantity along an axis.
fn axis_name(of: &PlotValue) -> String {
    let words = of.metric.words();
    match of.slice.as_ref().or(of.queue.as_ref()) {
        Some(subject) => format!("{words} of {subject}"),
        None => words,
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}
