//! Losses of a run: frames dropped by classes of devices, and frames lost on impaired links.

use crate::device::{Forwarding, Plane};
use crate::impairment::Lost;
use crate::network::Network;
use crate::observer::Observer;
use crate::port::PortId;
use slicewise_dataplane::hqos::{Hqos, HqosCounters, HqosPlace};
use slicewise_dataplane::{ClassCounters, DropReason, Pipeline};
use slicewise_model::hqos::queue_name;
use slicewise_stats::record::{DropCount, LinkLoss};
use slicewise_study::{RunSpec, ScenarioParams, Study};
use std::collections::BTreeMap;

/// Names of the links that a study has, in the order in which its network has them.
pub(crate) const LINKS: [&str; 2] = ["ingress", "egress"];

/// Returns the drops of classes at these ports of devices, by reason.
pub(crate) fn dropped<O: Observer>(
    network: &Network<Plane, O>,
    egress: &[PortId],
) -> Vec<DropCount> {
    let planes = egress.iter().filter_map(|port| network.forwarding(*port));
    planes
        .map(Forwarding::pipeline)
        .flat_map(Pipeline::counters)
        .flat_map(drops_of)
        .collect()
}

/// The same of ports whose policies have not changed: what waits in a hierarchy by its queues, with the names and reasons of
/// the device of `run --on dpdk`.
pub(crate) fn dropped_by_queue<O: Observer>(
    network: &Network<Plane, O>,
    egress: &[PortId],
) -> Vec<DropCount> {
    let planes = egress.iter().filter_map(|port| network.forwarding(*port));
    let mut drops = Vec::new();
    for pipeline in planes.map(Forwarding::pipeline) {
        let hierarchies: BTreeMap<u32, &Hqos> = pipeline.hierarchies().collect();
        for (number, class) in (0..).zip(pipeline.counters()) {
            let of_class = drops_of(class);
            match hierarchies.get(&number) {
                Some(hqos) => {
                    drops
                        .extend(of_class.filter(|drop| !OF_QUEUES.contains(&drop.reason.as_str())));
                    drops.extend(hqos.counters().flat_map(drops_of_queue));
                }
                None => drops.extend(of_class),
            }
        }
    }
    drops
}

/// Reasons that a hierarchy counts by queue.
const OF_QUEUES: [&str; 4] = [
    DropReason::QueueFull.name(),
    DropReason::RedEarly.name(),
    DropReason::RedForced.name(),
    DropReason::FrameTooLong.name(),
];

fn drops_of_queue((place, counters): (HqosPlace, HqosCounters)) -> impl Iterator<Item = DropCount> {
    let reasons = [
        (DropReason::QueueFull.name(), counters.dropped_full),
        ("red", counters.dropped_early),
        (DropReason::FrameTooLong.name(), counters.dropped_too_long),
    ];
    let reasons = reasons.into_iter().filter(|(_, frames)| *frames > 0);
    reasons.map(move |(reason, frames)| DropCount {
        class: queue_name(place.subport, place.pipe, place.queue),
        reason: reason.to_owned(),
        frames,
    })
}

/// Returns the drops of a class, by reason.
pub(crate) fn drops_of(class: &ClassCounters) -> impl Iterator<Item = DropCount> {
    DropReason::ALL.into_iter().filter_map(|reason| {
        let frames = class.dropped(reason);
        let (class, reason) = (class.class.clone(), reason.name().to_owned());
        (frames > 0).then_some(DropCount {
            class,
            reason,
            frames,
        })
    })
}

/// Returns the losses of each slice on impaired links, by reason.
pub(crate) fn losses_on_links<O: Observer>(
    study: &Study,
    run: &RunSpec,
    network: &Network<Plane, O>,
    links: &[Vec<PortId>; 2],
) -> Vec<LinkLoss> {
    let mut losses = Vec::new();
    let Some(scenario) = study.scenarios.get(run.scenario) else {
        return losses;
    };
    for (link, ports) in LINKS.into_iter().zip(links) {
        let impaired = || ports.iter().filter_map(|port| network.impairments(*port));
        for (index, slice) in study.slices.iter().enumerate() {
            let flows = impaired().flat_map(|link| slices_of_flows(scenario).zip(link.lost()));
            let own = flows.filter(|(slice, _)| *slice == index);
            let lost = own.fold(Lost::default(), |sum, (_, lost)| sum + lost);
            let reasons = [("loss", lost.at_random), ("bit_error", lost.by_bit_errors)];
            losses.extend(reasons.into_iter().filter(|(_, frames)| *frames > 0).map(
                |(reason, frames)| LinkLoss {
                    link: link.to_owned(),
                    slice: slice.name.clone(),
                    reason: reason.to_owned(),
                    frames,
                },
            ));
        }
    }
    losses
}

/// The slice of each flow: of sources, then of both directions of connections.
fn slices_of_flows(scenario: &ScenarioParams) -> impl Iterator<Item = usize> {
    let sources = scenario.sources.iter().map(|source| source.slice);
    let connections = scenario.applications.iter().flat_map(|params| {
        let flows = 2 * params.application.connections() as usize;
        std::iter::repeat_n(params.slice, flows)
    });
    sources.chain(connections)
}
