//! Carrying out a study's timeline: policies change while frames wait in the devices.
//!
//! Traffic changes without it: a source is the sequence of what it sends.

use crate::device::{Forwarding, Plane};
use crate::elephants::elephants_of;
use crate::losses::{dropped, drops_of};
use crate::network::Network;
use crate::observer::Observer;
use crate::port::PortId;
use crate::queue_lengths::QueueLengths;
use slicewise_dataplane::{Change, Pipeline};
use slicewise_model::PolicyParams;
use slicewise_stats::phase::{ChangeRecord, PhaseRecord};
use slicewise_stats::queues::ElephantRecord;
use slicewise_stats::record::DropCount;
use slicewise_study::Study;
use slicewise_units::Instant;
use std::collections::BTreeMap;

/// Change at the beginning of a phase, and the drops of classes until then.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    change: Option<ChangeRecord>,
    dropped: Vec<DropCount>,
}

/// Counters of classes that changes removed.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    pub(crate) drops: Vec<DropCount>,
    pub(crate) elephants: Vec<ElephantRecord>,
}

/// Simulate until the last change of `study`'s timeline has been made, with looks at the lengths of queues. Returns how each
/// phase began, and what classes counted that the changes removed. `egress` are the devices' ports, in the order of the path.
pub(crate) fn run<O: Observer>(
    network: &mut Network<Plane, O>,
    study: &Study,
    policy: usize,
    egress: &[PortId],
    lengths: &mut QueueLengths<'_>,
) -> (Vec<Begun>, Gone) {
    let policies_in = |study: &Study| -> Vec<PolicyParams> {
        let hops = study.hops(policy);
        hops.map(|(_, policy)| policy.clone()).collect()
    };
    let mut in_force = policies_in(study);
    let mut gone = Gone::default();
    let mut begun: Vec<Begun> = study
        .phases
        .iter()
        .take(1)
        .map(|_| Begun::default())
        .collect();
    for phase in study.phases.iter().skip(1) {
        let now = Instant::ZERO.saturating_add(phase.begins);
        lengths.run_until(network, now);
        let dropped = [dropped(network, egress), gone.drops.clone()].concat();
        let mut change: Option<ChangeRecord> = None;
        let hops = (1..)
            .zip(egress)
            .zip(policies_in(&phase.study))
            .zip(&mut in_force);
        for (((device, port), wanted), in_force) in
            hops.filter(|((_, wanted), old)| *wanted != **old)
        {
            let own = network.change(*port, now, |plane| {
                let before: Vec<_> = elephants_of(plane.pipeline(), device).collect();
                let change = put_in_force(plane.pipeline_mut(), &wanted, now, &mut gone.drops);
                let has = |class: &str| plane.pipeline().elephants().any(|(name, _)| name == class);
                let before = before.into_iter();
                gone.elephants
                    .extend(before.filter(|record| !has(&record.class)));
                change
            });
            if own.as_ref().is_some_and(|own| own.refused.is_none()) {
                *in_force = wanted;
            }
            change = match (change, own) {
                (Some(one), Some(other)) => Some(one.and(other)),
                (one, other) => one.or(other),
            };
        }
        begun.push(Begun { change, dropped });
    }
    (begun, gone)
}

/// Add to the phases of a record how they began, and what was dropped in each; `dropped` is that of the whole run.
pub(crate) fn complete(phases: &mut [PhaseRecord], begun: Vec<Begun>, dropped: &[DropCount]) {
    let until = begun.iter().skip(1).map(|next| by_reason(&next.dropped));
    let until: Vec<_> = until.chain([by_reason(dropped)]).collect();
    for ((phase, begun), until) in phases.iter_mut().zip(begun).zip(until) {
        let before = by_reason(&begun.dropped);
        let drops = until.into_iter().map(|(place, frames)| {
            let earlier = before.get(&place).copied().unwrap_or(0);
            let (class, reason) = place;
            DropCount {
                class,
                reason,
                frames: frames.saturating_sub(earlier),
            }
        });
        phase.drops = drops.filter(|drop| drop.frames > 0).collect();
        phase.change = begun.change;
    }
}

/// Frames dropped by all devices together, by class and reason.
fn by_reason(drops: &[DropCount]) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for drop in drops {
        let sum: &mut u64 = sums
            .entry((drop.class.clone(), drop.reason.clone()))
            .or_default();
        *sum = sum.saturating_add(drop.frames);
    }
    sums
}

/// Put a policy in force; where it is refused, everything stays as it was. What classes dropped that it has no
/// more goes to `gone`.
fn put_in_force(
    pipeline: &mut Pipeline,
    policy: &PolicyParams,
    now: Instant,
    gone: &mut Vec<DropCount>,
) -> ChangeRecord {
    let waiting = pipeline.backlog();
    let replaced = pipeline.apply(Change::Policy(policy.clone()), now);
    if let Ok(replaced) = &replaced {
        gone.extend(replaced.removed().iter().flat_map(drops_of));
    }
    ChangeRecord {
        waiting_frames: waiting.into(),
        lost_frames: waiting.saturating_sub(pipeline.backlog()).into(),
        refused: replaced.err().map(|error| error.to_string()),
    }
}
