//! Steps that frames of few classes need: at ingress, and the choice of a queue. Neither is inlined, so that other
//! classes do not pay for its variables.

use crate::active_flows::ActiveFlows;
use crate::build::{Choice, ClassState, Ingress};
use crate::elephants::{Arrival, Enqueued};
use crate::frame::{DropReason, Frame};
use crate::meter::policer::{PolicerState, PolicerVerdict};
use crate::queue::{FlowHash, FramePool};
use crate::scheduler::{QueueId, Tree};
use crate::slots::Slots;
use rand_xoshiro::Xoshiro256PlusPlus;
use slicewise_units::Instant;
use slicewise_wire::Headers;

/// Where a frame waits.
pub(super) enum Chosen {
    Queue(QueueId),
    /// It waits there already.
    Enqueued(Enqueued),
}

/// Parts of a pipeline.
pub(super) struct Parts<'a> {
    pub(super) tree: &'a mut Tree,
    pub(super) pool: &'a mut FramePool,
    pub(super) active_flows: &'a mut ActiveFlows,
    pub(super) random: &'a mut Xoshiro256PlusPlus,
}

/// Where a frame waits of a class whose queue is `own`; or why it is dropped.
#[inline(never)]
pub(super) fn choose(
    choice: &mut Choice,
    own: QueueId,
    arrival: Arrival<'_>,
    flow: u16,
    parts: Parts<'_>,
) -> Result<Chosen, DropReason> {
    if let Some(places) = &choice.places {
        let place = places.of(arrival.flow.0);
        return Ok(Chosen::Queue(QueueId::of_place(own.leaf, place)));
    }
    let queue = choice.by_colour[arrival.frame.colour as usize];
    if queue == own
        && let Some(elephants) = &mut choice.elephants
    {
        let enqueued = elephants.on_frame(arrival, parts.tree, parts.pool, parts.random)?;
        return Ok(Chosen::Enqueued(enqueued));
    }
    if choice.counts_flows {
        let active_flows = parts.active_flows;
        active_flows.on_frame(queue, flow, arrival.now, parts.tree);
    }
    Ok(Chosen::Queue(queue))
}

/// The hash of the flow of a frame whose class needs it, and may count it.
#[inline]
pub(super) fn flow_of(
    class: &mut ClassState,
    headers: &Headers,
    frame: &Frame,
    now: Instant,
    hash: FlowHash,
    tree: &mut Tree,
) -> u16 {
    let (flow, queue) = (hash.of(headers), class.queue);
    if let Some(flows) = class.flows_mut() {
        let l2_bytes = frame.lengths.l2_bytes;
        let weight = flows.on_frame((headers, hash, flow), l2_bytes, now, tree);
        if let Some(weight) = weight {
            tree.set_slice_weight(queue, weight);
        }
    }
    flow
}

/// The steps at ingress of the class of a frame; or why it is dropped.
#[inline(never)]
pub(super) fn condition(
    ingress: &[Ingress],
    policers: &mut Slots<(String, PolicerState)>,
    frame: &mut Frame,
    now: Instant,
) -> Result<(), DropReason> {
    for step in ingress {
        match *step {
            Ingress::SetDscp(dscp) => {
                frame.traffic_class = frame.traffic_class.with_dscp(dscp);
            }
            Ingress::Removed => return Err(DropReason::SliceRemoved),
            Ingress::Police(index) => {
                let Some((_, policer)) = policers.get_mut(index as usize) else {
                    continue;
                };
                if policer.on_frame(frame, now) == PolicerVerdict::Drop {
                    return Err(DropReason::Policed);
                }
            }
        }
    }
    Ok(())
}
