//! Policies given as a profile of DPDK's hierarchical scheduler, and the pipes on which slices of the study fall.

use super::policies::{Origin, Understood};
use super::{Checker, StudySpec};
use crate::file::Span;
use crate::params::{ScenarioParams, StudySlice};
use crate::spec::{At, Verbatim};
use crate::study::StudyPolicy;
use slicewise_formats::{ReadPolicy, SettingPlace, dpdk};
use slicewise_model::HqosSpec;
use slicewise_model::hqos::{BEST_EFFORT, HqosParams, HqosSection, HqosSubport, QUEUES};
use slicewise_traffic::scenario::{SizesParams, SourceHeaders};
use slicewise_units::BitRate;
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Checker<'_> {
    /// Returns the policy of the profile in `text` on a port of rate `port`.
    pub(super) fn dpdk_policy(
        &mut self,
        name: &At<String>,
        text: &At<Verbatim>,
        port: BitRate,
    ) -> Option<Understood> {
        let mut written = Vec::new();
        let policy = self.foreign_policy(name, text, |text| {
            let policy = dpdk::read(text, port)?;
            written.clone_from(&policy.places);
            let classes = &policy.spec.classes;
            let class = classes.first().map_or("", |class| class.name.as_str());
            let places = policy.places.into_iter().map(|place| SettingPlace {
                class: class.to_owned(),
                field: "hqos",
                span: place.span,
            });
            Ok(ReadPolicy {
                places: places.collect(),
                spec: policy.spec,
                notes: policy.notes,
            })
        })?;
        if let Origin::Foreign(text, _) = &policy.origin {
            let places = written.into_iter().map(|place| ProfilePlace {
                policy: name.value.clone(),
                section: place.section,
                at: text.span(self.sources, place.span),
                key: place.key,
            });
            self.profile_places.extend(places);
        }
        Some(policy)
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
                let at = spec.slices.entry(&slice.name);
                let at = at.map_or(self.root.span, |(name, _)| name.span);
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

    /// Frames of every slice cost no more than can ever be earned for them, in each policy that has pipes.
    pub(super) fn check_credits(
        &mut self,
        slices: &[StudySlice],
        scenarios: &[ScenarioParams],
        policies: &[StudyPolicy],
    ) {
        for policy in policies {
            let mut classes = policy.spec.classes.iter();
            let Some(hqos) = classes.find_map(|class| class.hqos.as_deref()) else {
                continue;
            };
            let mut told = BTreeSet::new();
            for offered in scenarios.iter().flat_map(offered) {
                let Some(limit) = offered.limit(hqos) else {
                    continue;
                };
                let (Some(what), Some(slice)) =
                    (offered.beyond(&limit, hqos), slices.get(offered.slice))
                else {
                    continue;
                };
                if !told.insert((slice.name.as_str(), limit.section, limit.key.clone())) {
                    continue;
                }
                let message = format!("frames of slice `{}` {what}", slice.name);
                let mut places = self.profile_places.iter();
                let place = places.find(|place| place.is(&policy.name, &limit));
                let at = place.map_or(self.root.span, |place| place.at);
                if offered.smallest.is_some() {
                    self.problems.add(at, message);
                } else {
                    self.problems.warn(at, message);
                }
            }
        }
    }
}

/// The slice and the headers of everything that a scenario sends.
pub(super) fn headers(scenario: &ScenarioParams) -> impl Iterator<Item = (usize, &SourceHeaders)> {
    let sources = scenario.sources.iter().map(|s| (s.slice, &s.headers));
    let applications = scenario.applications.iter();
    sources.chain(applications.map(|s| (s.slice, &s.headers)))
}

/// Where a setting of a profile is written.
pub(crate) struct ProfilePlace {
    policy: String,
    section: HqosSection,
    key: String,
    at: Span,
}

impl ProfilePlace {
    fn is(&self, policy: &str, limit: &Limit) -> bool {
        self.policy == policy && self.section == limit.section && self.key == limit.key
    }
}

/// Frames of one source.
struct Offered<'s> {
    slice: usize,
    headers: &'s SourceHeaders,
    /// Bytes of the largest and, where the sizes are known, of the smallest frame; L2 without FCS.
    largest: u64,
    smallest: Option<u64>,
}

/// The frames that a scenario sends.
fn offered(scenario: &ScenarioParams) -> impl Iterator<Item = Offered<'_>> {
    let sources = scenario.sources.iter().map(|source| {
        let sizes = source.weighted_sizes();
        let smallest = sizes.map(|of| of.size.l2_bytes.into()).min();
        Offered {
            slice: source.slice,
            headers: &source.headers,
            largest: source.largest.l2_bytes.into(),
            smallest: smallest.filter(|_| source.sizes != SizesParams::Capture),
        }
    });
    // Whether they fill their packets depends on what they send.
    let applications = scenario.applications.iter().map(|source| Offered {
        slice: source.slice,
        headers: &source.headers,
        largest: u64::from(source.transport.mtu_bytes) + u64::from(source.headers.l3_offset()),
        smallest: None,
    });
    sources.chain(applications)
}

/// The least that a bucket holds, or a class gets in a period, of those that a frame needs.
struct Limit {
    section: HqosSection,
    key: String,
    bytes: u64,
    is_bucket: bool,
}

impl Offered<'_> {
    fn limit(&self, hqos: &HqosSpec) -> Option<Limit> {
        let sizes = hqos.subports.iter().map(|it| it.pipes);
        let (number, pipe) = place(self.headers, &sizes.collect::<Vec<_>>())?;
        let subport = hqos.subports.get(number as usize)?;
        let mut assigned = subport.assigned.iter();
        let range = assigned.find(|range| (range.first..=range.last).contains(&pipe))?;
        let class = class(self.headers, subport);
        let (of_subport, of_pipe) = (subport.profile as usize, range.profile as usize);
        let levels = [
            (
                HqosSection::SubportProfile(of_subport),
                hqos.subport_profiles.get(of_subport)?,
            ),
            (
                HqosSection::PipeProfile(of_pipe),
                &hqos.pipe_profiles.get(of_pipe)?.rates,
            ),
        ];
        let limits = levels.into_iter().flat_map(|(section, rates)| {
            let rate = rates.tc_rates.get(class).copied().unwrap_or(0);
            let credits = u128::from(rate) * u128::from(rates.tc_period) / 1000;
            let bucket = Limit {
                section,
                key: "tb size".to_owned(),
                bytes: rates.tb_size,
                is_bucket: true,
            };
            let credits = Limit {
                section,
                key: format!("tc {class} rate"),
                bytes: u64::try_from(credits).unwrap_or(u64::MAX),
                is_bucket: false,
            };
            [bucket, credits]
        });
        limits.min_by_key(|limit| limit.bytes)
    }

    /// Returns the problem where packets cost more than `limit`.
    fn beyond(&self, limit: &Limit, hqos: &HqosSpec) -> Option<String> {
        let cost = |bytes: u64| bytes + u64::from(hqos.frame_overhead);
        let most = limit.bytes;
        if cost(self.largest) <= most {
            return None;
        }
        let all = self.smallest.is_some_and(|bytes| cost(bytes) > most);
        let (costs, left) = match (all, self.smallest == Some(self.largest)) {
            (true, true) => ("cost", "none would ever leave"),
            (true, false) => ("cost up to", "none would ever leave"),
            _ => ("cost up to", "those that cost more would never leave"),
        };
        let (key, section) = (&limit.key, limit.section);
        let holds = match limit.is_bucket {
            true => format!("`{key}` of {section} is {most}"),
            false => format!("`{key}` of {section} is {most} B in a `tc period`"),
        };
        let cost = cost(self.largest);
        Some(format!("{costs} {cost} B, and {holds}: {left}"))
    }
}

/// The traffic class of packets in pipes of `subport`: the last octet of an IPv4 destination counts its queues.
fn class(headers: &SourceHeaders, subport: &HqosSubport) -> usize {
    let last = match headers.destination {
        IpAddr::V4(destination) => destination.octets()[3],
        IpAddr::V6(_) => 0,
    };
    let queues = (0..QUEUES).map(|queue| queue.min(BEST_EFFORT));
    let with_size = |class: &usize| {
        subport
            .queue_sizes
            .get(*class)
            .is_some_and(|size| *size > 0)
    };
    let with_size: Vec<usize> = queues.filter(with_size).collect();
    let position = usize::from(last) % with_size.len().max(1);
    with_size.get(position).copied().unwrap_or(BEST_EFFORT)
}

/// Subport and pipe of packets, where `pipes` has the number of pipes of each subport.
fn place(headers: &SourceHeaders, pipes: &[u32]) -> Option<(u32, u32)> {
    let count = u32::try_from(pipes.len()).unwrap_or(1).max(1);
    let subport = u32::from(headers.vlan?) % count;
    let pipe = u32::from(headers.inner_vlan?) % pipes.get(subport as usize)?.max(&1);
    Some((subport, pipe))
}

/// Problem with the VLAN tags of a packet.
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
    let pipes = hqos.subports.iter().map(|it| it.pipes);
    let (subport, pipe) = place(headers, &pipes.collect::<Vec<_>>())?;
    let of_subport = hqos.subports.get(subport as usize)?;
    let mut assigned = of_subport.assigned.iter();
    if !assigned.any(|range| (range.first..=range.last).contains(&pipe)) {
        return Some(Problem::NoProfile { subport, pipe });
    }
    let wraps = u32::from(outer) != subport || u32::from(inner) != pipe;
    wraps.then_some(Problem::Wraps { subport, pipe })
}
