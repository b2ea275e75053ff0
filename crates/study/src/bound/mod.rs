//! The bound of one-way delay that a guarantee comes to in a study.
//!
//! A frame waits in the sender's adapter for at most J, is carried and processed in a constant time
//! F, and from its eligible time on takes at most D + δ in the scheduler to its last bit, then
//! the way to the receiver and its interrupt. How much later than F + J it may be eligible, and how devices in a row add up, is in
//! [`path`].
//!
//! Where J has no bound, because another source on the same link has no worst case, D + δ from the
//! eligible time remains: it does not depend on what arrives. From the moment a frame is queued it
//! does not follow, because frames that were held up on the link together may come as a burst above
//! CBS.
//!
//! An application over TCP sends at once what its windows and the network allow, so it has no arrival curve: a class
//! that one sends to has no bound, and on a link that one sends on, J has none. D + δ from the eligible time holds for
//! every other class, whatever an application sends.

mod path;

use crate::params::{
    ApplicationSourceParams, DutModel, DutParams, PopulationPatternParams, ScenarioParams,
};
use crate::study::Study;
use path::{ROUNDING, Walk};
use slicewise_model::{GuaranteedParams, Inflation, PolicyParams, largest_as};
use slicewise_stats::description::{DelayBound, Unbounded};
use slicewise_units::{BitRate, ByteCount, Duration, FrameLengths};
use std::collections::BTreeMap;

/// Bounds that a policy promises in a study.
#[derive(Debug, Default)]
pub(crate) struct Promised {
    pub(crate) bounds: BTreeMap<String, DelayBound>,
    pub(crate) unbounded: Vec<Unbounded>,
}

/// The bounds that follow from a policy's guarantees, and where none does.
pub(crate) fn promised(study: &Study, policy: usize) -> Promised {
    let mut promised = Promised::default();
    let hops: Vec<_> = study.hops(policy).collect();
    if hops.iter().all(|(_, policy)| policy.guaranteed.is_none()) {
        return promised;
    }
    for scenario in &study.scenarios {
        let mut walk = Walk::begin(study, scenario);
        if study.populations.is_empty() {
            hops.iter()
                .for_each(|(device, policy)| walk.pass(device, policy));
        }
        let guaranteed = study.slices.iter().enumerate();
        for (slice, params) in guaranteed.filter(|(_, slice)| slice.guaranteed) {
            let bound = match study.populations.is_empty() {
                true => bound(study, &hops, &walk, slice),
                false => of_population(study, &hops, scenario, slice),
            };
            let Some(bound) = bound.transpose() else {
                continue;
            };
            let (why, scheduler_ns) = match bound {
                Ok(Parts {
                    scheduler_ns,
                    outside_ns: Ok(outside_ns),
                }) => {
                    promised.add(&params.name, scheduler_ns, outside_ns);
                    continue;
                }
                // Times in the schedulers of a path are not measured.
                Ok(Parts {
                    scheduler_ns,
                    outside_ns: Err(why),
                }) => (why, (hops.len() == 1).then_some(scheduler_ns)),
                Err(why) => (why, None),
            };
            promised.unbounded.push(Unbounded {
                slice: params.name.clone(),
                scenario: scenario.name.clone(),
                why,
                scheduler_ns,
            });
        }
    }
    promised
}

impl Promised {
    /// The bound of a slice is the largest of all scenarios that have one.
    fn add(&mut self, slice: &str, scheduler_ns: u64, outside_ns: u64) {
        let bound = DelayBound {
            scheduler_ns,
            outside_ns,
        };
        let largest = self.bounds.entry(slice.to_owned()).or_insert(bound);
        largest.scheduler_ns = largest.scheduler_ns.max(scheduler_ns);
        largest.outside_ns = largest.outside_ns.max(outside_ns);
    }
}

/// Bounded part of the delay of a slice that keeps to its guarantee.
struct Parts {
    /// [`DelayBound::scheduler_ns`].
    scheduler_ns: u64,
    /// [`DelayBound::outside_ns`], or why there is none.
    outside_ns: Result<u64, String>,
}

/// Notes on bounds that do not follow: scenarios with the same reason together.
pub(crate) fn notes(policy: &str, unbounded: &[Unbounded]) -> Vec<String> {
    let mut reasons: Vec<(&Unbounded, Vec<&str>)> = Vec::new();
    for one in unbounded {
        let is_same = |other: &Unbounded| {
            (&other.slice, &other.why, other.scheduler_ns)
                == (&one.slice, &one.why, one.scheduler_ns)
        };
        match reasons.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, scenarios)) => scenarios.push(&one.scenario),
            None => reasons.push((one, vec![&one.scenario])),
        }
    }
    let note = |(one, scenarios): (&Unbounded, Vec<&str>)| {
        let scenarios = match scenarios.as_slice() {
            [only] => format!("scenario {only}"),
            several => format!("scenarios {}", several.join(", ")),
        };
        let Unbounded { slice, why, .. } = one;
        match one.scheduler_ns {
            Some(ns) => format!(
                "policy `{policy}`: in {scenarios}, slice `{slice}` is judged at the scheduler \
                 only, by its bound of {}: the path to the device has no bound, because {why}",
                Duration::from_nanos(ns)
            ),
            None => format!(
                "policy `{policy}`: the delay of slice `{slice}` has no bound to be judged by in \
                 {scenarios}: {why}"
            ),
        }
    };
    reasons.into_iter().map(note).collect()
}

/// The bound of a slice whose flows have passed `hops`; `None` where it has no guarantee or sends nothing.
fn bound(
    study: &Study,
    hops: &[(&DutParams, &PolicyParams)],
    walk: &Walk<'_>,
    slice: usize,
) -> Result<Option<Parts>, String> {
    let flows: Vec<_> = walk
        .flows
        .iter()
        .filter(|flow| flow.slice == slice)
        .collect();
    if flows.iter().all(|flow| flow.guarantees == 0) {
        return Ok(None);
    }
    let (mut scheduler_ns, mut outside_ns) = (0, Ok(0u64));
    for flow in flows {
        let schedulers = flow.schedulers_ns.clone()?;
        scheduler_ns = schedulers.max(scheduler_ns);
        let outside = flow
            .late_ns
            .clone()
            .map(|late| late.saturating_sub(schedulers).saturating_add(flow.link_ns));
        outside_ns = outside_ns.and_then(|most| Ok(outside?.max(most)));
    }
    // A pause holds frames before the device that sends it: in hosts, or in the device before it.
    if hops.iter().any(|(device, _)| sends_pauses(device)) {
        outside_ns = Err(PAUSES.to_owned());
    }
    if hops.len() > 1
        && let Err(why) = outside_ns
    {
        return Err(why);
    }
    if hops.iter().any(|(device, _)| waits_for_bursts(device)) {
        return Err(BURSTS.to_owned());
    }
    Ok(Some(Parts {
        scheduler_ns,
        outside_ns: outside_ns.map(|late| late.saturating_add(constant_ns(study, hops))),
    }))
}

/// Part of one-way delay behind the first link, beside waiting in schedulers, ns.
fn constant_ns(study: &Study, hops: &[(&DutParams, &PolicyParams)]) -> u64 {
    let link = study.link;
    let varies = link.impairments.egress.delay_variation;
    let in_hop = |(device, _): &(&DutParams, _)| {
        let processing = device.processing_delay.nanos();
        processing.saturating_add(link.propagation.nanos())
    };
    let parts = [
        ROUNDING.nanos(),
        hops.iter().map(in_hop).fold(0, u64::saturating_add),
        varies.map_or(0, |variation| variation.up_to.nanos()),
        study.hosts.interrupt_moderation.nanos(),
    ];
    parts.into_iter().fold(0, u64::saturating_add)
}

/// Why nothing bounds how long frames wait before a device.
const PAUSES: &str =
    "the device sends pause frames, and nothing bounds how long a sender is paused";

/// Why nothing bounds how long frames wait in a device.
const BURSTS: &str =
    "the device hands frames on in whole bursts, and nothing bounds how long one waits for others";

const fn waits_for_bursts(device: &DutParams) -> bool {
    matches!(device.model, DutModel::QosSched(_))
}

const fn sends_pauses(device: &DutParams) -> bool {
    matches!(device.model, DutModel::Switch(switch) if switch.flow_control.is_some())
}

/// The bound of the slices of a population: nothing but the scheduler is measured.
fn of_population(
    study: &Study,
    hops: &[(&DutParams, &PolicyParams)],
    scenario: &ScenarioParams,
    slice: usize,
) -> Result<Option<Parts>, String> {
    let Some((policy, guaranteed)) = hops
        .first()
        .and_then(|(_, policy)| Some((policy, policy.guaranteed.as_ref()?)))
    else {
        return Ok(None);
    };
    let counts = study.populations.iter().zip(&scenario.populations);
    let mut own = counts.filter(|(population, count)| population.slice == slice && **count > 0);
    let name = study.slices.get(slice).map_or("", |s| s.name.as_str());
    let class = policy.classes.iter().find(|class| class.name == name);
    let guarantee = class.and_then(|class| class.slice?.guarantee);
    let (Some((population, _)), Some(guarantee)) = (own.next(), guarantee) else {
        return Ok(None);
    };
    let PopulationPatternParams::Bursts { frames, every } = population.pattern else {
        return Err("its slices always have a frame waiting".to_owned());
    };
    let frame = FrameLengths {
        l2_bytes: population.frame_bytes,
        l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
    };
    let frame = guaranteed
        .accounting
        .count(frame)
        .max(guarantee.smallest_frame);
    let burst = ByteCount::new(frame.bytes().saturating_mul(u64::from(frames)));
    if burst > guarantee.burst || burst > guarantee.rate.bytes_in(every) {
        return Err(format!(
            "each of its slices sends {burst} every {every}, but only {} with bursts of {} are \
             guaranteed",
            guarantee.rate, guarantee.burst
        ));
    }
    Ok(Some(Parts {
        scheduler_ns: guarantee.delay.nanos(),
        outside_ns: Ok(0),
    }))
}

/// Checks that the device is a link as the proof assumes it (`docs/mechanisms/guaranteed-bound.md`, a link that is a
/// token bucket).
///
/// Through a licence that has to be waited for, a frame leaves no later than through a link of
/// its rate alone, if no frame takes longer on the port, and none is let through on credit:
/// then the largest frame that the admission test counts as under way covers the one on the
/// port, and the time a frame of one's own takes there.
fn check_device(device: &DutParams, guaranteed: &GuaranteedParams) -> Result<(), String> {
    let DutParams {
        port_rate, licence, ..
    } = *device;
    let Some(licence) = licence.filter(|licence| !licence.priority_borrows) else {
        return Ok(());
    };
    let charged = licence.rate.accounting;
    let largest = largest_as(guaranteed.accounting, charged, guaranteed.largest_frame);
    let on_port = Inflation::between(charged, port_rate.accounting, ByteCount::ZERO, largest);
    let needed = on_port.inflate(licence.rate.rate.bits_per_second());
    if needed > u128::from(port_rate.rate.bits_per_second()) {
        return Err("small frames take longer on the port than in the licence".to_owned());
    }
    if largest > licence.credit {
        return Err("the licence lets frames through on credit".to_owned());
    }
    Ok(())
}

/// Why nothing bounds what comes from an application.
fn reacts(source: &ApplicationSourceParams) -> String {
    format!(
        "source `{}` reacts to what it gets: no arrival curve bounds what its transport sends at once",
        source.name
    )
}

/// Where a sum does not fit in 128 bits.
const TOO_MUCH: &str = "the sources send too much to compute a bound";

fn bit_rate(bits_per_second: u128) -> BitRate {
    BitRate::new(u64::try_from(bits_per_second).unwrap_or(u64::MAX))
}
