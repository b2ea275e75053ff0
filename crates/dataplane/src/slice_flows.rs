//! Treatment of the flows of a slice: its weight may count each active one, and those above a rate are recognised.
//!
//! Only the excess is shared by weight, so guarantees do not depend on any of it.

use crate::active_flows::{INTERVAL, Sketch, end_of_interval};
use crate::elephants::{ElephantsSeen, Watch};
use crate::queue::FlowHash;
use crate::scheduler::Tree;
use slicewise_model::{ElephantsParams, FlowQueueParams};
use slicewise_units::Instant;
use slicewise_wire::Headers;

/// Treatment of the flows of a slice; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceFlows {
    /// The slice's weight counts once for each active flow, that is one that sent a frame in the last interval of 100 ms.
    pub weigh: bool,
    /// A queue for each flow.
    pub queue: Option<FlowQueueParams>,
    /// Flows above a rate are recognised. They move nowhere: `queue` of the parameters is not used.
    pub elephants: Option<ElephantsParams>,
}

/// Report on the flows of a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowsSeen {
    /// Active flows, about, and the slice's weight by them, if they count.
    pub weighed: Option<Weighed>,
    /// Those above the rate, if they are recognised.
    pub elephants: Option<ElephantsSeen>,
}

/// A weight by active flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weighed {
    /// Flows that were active in the last interval.
    pub flows: u32,
    /// The weight of now.
    pub weight: u32,
}

/// The flows of a slice.
#[derive(Debug)]
pub(crate) struct FlowWatch {
    active: Option<Active>,
    elephants: Option<Watch>,
}

#[derive(Debug)]
struct Active {
    /// The weight of one flow.
    weight: u32,
    sketch: Sketch,
    /// Flows that were active in the last interval.
    flows: u32,
    /// When the interval is over.
    end: Instant,
}

impl Active {
    fn weighed(&self) -> Weighed {
        Weighed {
            flows: self.flows,
            weight: self.weight.saturating_mul(self.flows.max(1)),
        }
    }
}

impl FlowWatch {
    /// `None` where nothing is counted. What `before` has counted goes on where the settings are the same.
    pub(crate) fn new(params: &SliceFlows, weight: u32, before: Option<Self>) -> Option<Self> {
        let (active, elephants) =
            before.map_or((None, None), |before| (before.active, before.elephants));
        let active = params.weigh.then(|| {
            active.unwrap_or_else(|| Active {
                weight,
                sketch: Sketch::new(),
                flows: 0,
                end: Instant::ZERO,
            })
        });
        let elephants = params.elephants.as_ref().map(|params| {
            let before = elephants.filter(|before| before.params() == params);
            before.unwrap_or_else(|| Watch::new(params))
        });
        let is_needed = active.is_some() || elephants.is_some();
        is_needed.then_some(Self { active, elephants })
    }

    /// The slice has another weight; returns that of now.
    pub(crate) fn set_weight(&mut self, weight: u32) -> u32 {
        match &mut self.active {
            None => weight,
            Some(active) => {
                active.weight = weight;
                active.weighed().weight
            }
        }
    }

    /// A frame is offered to the queue of the slice; returns the weight from now on, if that may have changed.
    #[inline(never)]
    pub(crate) fn on_frame(
        &mut self,
        (headers, hash, flow): (&Headers, FlowHash, u16),
        bytes: u32,
        now: Instant,
        tree: &Tree,
    ) -> Option<u32> {
        if let Some(elephants) = &mut self.elephants {
            elephants.on_frame((hash.wide(headers), headers), bytes, now, tree);
        }
        let active = self.active.as_mut()?;
        let is_over = now >= active.end;
        if is_over {
            active.end_interval(now);
        }
        active.sketch.insert(flow);
        is_over.then(|| active.weighed().weight)
    }

    /// Returns the report, with the changes since the last one. A slice that sends nothing has no active flows.
    pub(crate) fn report(&mut self, now: Instant) -> FlowsSeen {
        let weighed = |active: &mut Active| {
            if now >= active.end {
                active.end_interval(now);
            }
            active.weighed()
        };
        FlowsSeen {
            weighed: self.active.as_mut().map(weighed),
            elephants: self.elephants.as_mut().map(|watch| watch.report(now)),
        }
    }
}

impl Active {
    fn end_interval(&mut self, now: Instant) {
        // Unless that was long ago, and nothing has come since.
        let is_last = now < self.end.saturating_add(INTERVAL);
        let flows = self.sketch.take();
        self.flows = if is_last { flows } else { 0 };
        self.end = end_of_interval(now);
    }
}
