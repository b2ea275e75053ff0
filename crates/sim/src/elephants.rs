//! Counts of flows in classes that move elephants.

use crate::device::{Forwarding, Plane};
use crate::network::Network;
use crate::observer::Observer;
use crate::port::PortId;
use slicewise_dataplane::Pipeline;
use slicewise_stats::queues::ElephantRecord;

/// Returns the counts of the classes that the devices have now.
pub(crate) fn elephants<O: Observer>(
    network: &Network<Plane, O>,
    egress: &[PortId],
) -> Vec<ElephantRecord> {
    let planes = (1..)
        .zip(egress)
        .filter_map(|(device, port)| Some((device, network.forwarding(*port)?)));
    planes
        .flat_map(|(device, plane)| elephants_of(plane.pipeline(), device))
        .collect()
}

/// Returns the counts of the classes of a device; `device` is its place on the path, from 1.
pub(crate) fn elephants_of(
    pipeline: &Pipeline,
    device: u32,
) -> impl Iterator<Item = ElephantRecord> {
    pipeline
        .elephants()
        .map(move |(class, flows)| ElephantRecord {
            device,
            class: class.to_owned(),
            tagged: flows.tagged,
            moved: flows.moved,
            moved_back: flows.moved_back,
            unfollowed_frames: flows.unfollowed_frames,
        })
}

/// One record a class: what a class has counted in several of its lives is added up.
pub(crate) fn by_class(records: Vec<ElephantRecord>) -> Vec<ElephantRecord> {
    let mut sums: Vec<ElephantRecord> = Vec::new();
    for record in records {
        let is_same =
            |sum: &&mut ElephantRecord| sum.device == record.device && sum.class == record.class;
        match sums.iter_mut().find(is_same) {
            Some(sum) => {
                sum.tagged += record.tagged;
                sum.moved += record.moved;
                sum.moved_back += record.moved_back;
                sum.unfollowed_frames += record.unfollowed_frames;
            }
            None => sums.push(record),
        }
    }
    sums
}
