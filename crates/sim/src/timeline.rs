//! Carrying out a study's timeline: policies change while frames wait in the devices.
//!
//! What sources send changes by itself: a source is the sequence of what it sends.

use crate::backend::dropped;
use crate::device::Plane;
use crate::network::Network;
use crate::observer::Observer;
use crate::topology::PortId;
use slicewise_dataplane::{Change, Pipeline};
use slicewise_model::PolicyParams;
use slicewise_stats::phase::{ChangeRecord, PhaseRecord};
use slicewise_stats::record::DropCount;
use slicewise_study::Study;
use slicewise_units::Instant;

/// What a phase began with, and what classes had dropped until then.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    change: Option<ChangeRecord>,
    dropped: Vec<DropCount>,
}

/// Simulate until the last change of `study`'s timeline has been made, and return how each phase began. `egress` are the
/// devices' ports, in the order of the path.
pub(crate) fn run<O: Observer>(
    network: &mut Network<Plane, O>,
    study: &Study,
    policy: usize,
    egress: &[PortId],
) -> Vec<Begun> {
    let policies_in = |study: &Study| -> Vec<PolicyParams> {
        let hops = study.hops(policy);
        hops.map(|(_, policy)| policy.clone()).collect()
    };
    let mut in_force = policies_in(study);
    let mut begun: Vec<Begun> = study
        .phases
        .iter()
        .take(1)
        .map(|_| Begun::default())
        .collect();
    for phase in study.phases.iter().skip(1) {
        let now = Instant::ZERO.saturating_add(phase.begins);
        network.run_until(now);
        let dropped = dropped(network);
        let mut change: Option<ChangeRecord> = None;
        let hops = egress
            .iter()
            .zip(policies_in(&phase.study))
            .zip(&mut in_force);
        for ((port, wanted), in_force) in hops.filter(|((_, wanted), old)| *wanted != **old) {
            let own = network.change(*port, now, |plane| {
                put_in_force(plane.pipeline_mut(), &wanted, now)
            });
            *in_force = wanted;
            change = match (change, own) {
                (Some(one), Some(other)) => Some(one.and(other)),
                (one, other) => one.or(other),
            };
        }
        begun.push(Begun { change, dropped });
    }
    begun
}

/// Add to the phases of a record how they began, and what was dropped in each; `dropped` is that of the whole run.
pub(crate) fn complete(phases: &mut [PhaseRecord], begun: Vec<Begun>, dropped: &[DropCount]) {
    let until = begun.iter().skip(1).map(|next| next.dropped.clone());
    let until: Vec<Vec<DropCount>> = until.chain([dropped.to_vec()]).collect();
    for ((phase, begun), until) in phases.iter_mut().zip(begun).zip(until) {
        let before = |drop: &DropCount| {
            let mut same = begun.dropped.iter();
            let same = same.find(|b| b.class == drop.class && b.reason == drop.reason);
            same.map_or(0, |before| before.frames)
        };
        let drops = until.into_iter().map(|drop| DropCount {
            frames: drop.frames.saturating_sub(before(&drop)),
            ..drop
        });
        phase.drops = drops.filter(|drop| drop.frames > 0).collect();
        phase.change = begun.change;
    }
}

/// Put a policy in force; where it is refused, everything stays as it was.
fn put_in_force(pipeline: &mut Pipeline, policy: &PolicyParams, now: Instant) -> ChangeRecord {
    let waiting = pipeline.backlog();
    let refused = pipeline.apply(Change::Policy(policy.clone()), now);
    ChangeRecord {
        waiting_frames: waiting.into(),
        lost_frames: waiting.saturating_sub(pipeline.backlog()).into(),
        refused: refused.err().map(|error| error.to_string()),
    }
}
