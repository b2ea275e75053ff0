//! Policies given as a profile of DPDK's hierarchical scheduler, and the pipes on which slices of the study fall.

use super::foreign::ForeignPlace;
use super::policies::Understood;
use super::{Checker, StudySpec};
use crate::file::Span;
use crate::params::{ScenarioParams, StudySlice};
use crate::spec::{At, Verbatim};
use crate::study::StudyPolicy;
use slicewise_formats::dpdk;
use slicewise_model::hqos::HqosParams;
use slicewise_traffic::scenario::SourceHeaders;
use slicewise_units::BitRate;
use std::collections::BTreeSet;

impl Checker<'_> {
    /// What the profile in `text` makes of a port of rate `port`.
    pub(super) fn dpdk_policy(
        &mut self,
        name: &At<String>,
        text: &At<Verbatim>,
        port: BitRate,
    ) -> Option<Understood> {
        let text = self.foreign_text(text)?;
        let policy = match dpdk::read(&text.text, port) {
            Ok(policy) => policy,
            Err(errors) => {
                self.report_foreign(&text, errors);
                return None;
            }
        };
        self.note_foreign(&text, policy.notes);
        let classes = &policy.spec.classes;
        let class = classes.first().map_or("", |class| class.name.as_str());
        let places = policy.places.into_iter().map(|place| ForeignPlace {
            class: class.to_owned(),
            field: "hqos",
            at: place.span,
        });
        let places = places.collect();
        Some(Understood::foreign(name, policy.spec, text, places))
    }

    /// Packets of every slice fall on a pipe that has a profile, in each policy that has pipes.
    pub(super) fn check_pipes(
        &mut self,
        spec: &StudySpec,
        slices: &[StudySlice],
        scenarios: &[ScenarioParams],
        policies: &[StudyPolicy],
    ) {
        for policy in policies {
            let mut classes = policy.params.classes.iter();
            let Some(hqos) = classes.find_map(|class| class.hqos.as_deref()) else {
                continue;
            };
            let mut told = BTreeSet::new();
            for (slice, headers) in scenarios.iter().flat_map(headers) {
                let Some(problem) = problem(headers, hqos) else {
                    continue;
                };
                let Some(slice) = slices.get(slice) else {
                    continue;
                };
                if !told.insert((slice.name.as_str(), problem.to_string())) {
                    continue;
                }
                let at = self.place_of_slice(spec, &slice.name);
                let message = format!(
                    "packets of slice `{}` {problem} in policy `{}`",
                    slice.name, policy.name
                );
                match problem {
                    Problem::Wraps { .. } => self.problems.warn(at, message),
                    Problem::Untagged | Problem::NoProfile { .. } => {
                        self.problems.add_with_help(at, message, problem.help());
                    }
                }
            }
        }
    }

    fn place_of_slice(&self, spec: &StudySpec, name: &str) -> Span {
        let mut slices = spec.slices.iter();
        let slice = slices.find(|(of, _)| of.value == name);
        slice.map_or(self.root.span, |(name, _)| name.span)
    }
}

/// The slice and the headers of everything that a scenario sends.
fn headers(scenario: &ScenarioParams) -> impl Iterator<Item = (usize, &SourceHeaders)> {
    let sources = scenario.sources.iter().map(|s| (s.slice, &s.headers));
    let applications = scenario.applications.iter();
    sources.chain(applications.map(|s| (s.slice, &s.headers)))
}

/// What is wrong with the VLANs of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    /// It has no two tags.
    Untagged,
    /// Its pipe has no profile.
    NoProfile { subport: u32, pipe: u32 },
    /// There are fewer subports or pipes than its VLANs say, so others are used.
    Wraps { subport: u32, pipe: u32 },
}

impl Problem {
    const fn help(self) -> &'static str {
        match self {
            Self::Untagged => {
                "the outer tag is the subport and the inner one the pipe: set `vlan` and `inner_vlan`"
            }
            Self::NoProfile { .. } | Self::Wraps { .. } => {
                "give the pipe a profile, or the slice another `inner_vlan`"
            }
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Untagged => f.write_str("have no two VLAN tags, which choose the pipe"),
            Self::NoProfile { subport, pipe } => write!(
                f,
                "fall on pipe {pipe} of subport {subport}, which has no profile"
            ),
            Self::Wraps { subport, pipe } => write!(
                f,
                "have VLANs beyond the last subport or pipe and fall on pipe {pipe} of subport {subport}"
            ),
        }
    }
}

/// As the sample application places a packet (`get_pkt_sched` in `app_thread.c`).
fn problem(headers: &SourceHeaders, hqos: &HqosParams) -> Option<Problem> {
    let (Some(outer), Some(inner)) = (headers.vlan, headers.inner_vlan) else {
        return Some(Problem::Untagged);
    };
    let count = u32::try_from(hqos.subports.len()).unwrap_or(1).max(1);
    let subport = u32::from(outer) % count;
    let of_subport = hqos.subports.get(subport as usize)?;
    let pipe = u32::from(inner) % of_subport.pipes.max(1);
    let mut assigned = of_subport.assigned.iter();
    if !assigned.any(|range| (range.first..=range.last).contains(&pipe)) {
        return Some(Problem::NoProfile { subport, pipe });
    }
    let wraps = u32::from(outer) != subport || u32::from(inner) != pipe;
    wraps.then_some(Problem::Wraps { subport, pipe })
}
