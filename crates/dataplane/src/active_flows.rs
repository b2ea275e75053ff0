//! Active flows of queues, by whose number their weights are multiplied.
//!
//! After K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, "A Linear-Time Probabilistic Counting Algorithm for Database
//! Applications", ACM TODS 15(2), 1990: a flow sets the bit of its hash, and how many bits are clear tells how many flows
//! there were. The estimate grows with each bit that is set, by the reciprocal of the probability that a new flow would
//! have set one (D. Ting, "Streamed Approximate Counting of Distinct Elements", KDD 2014): integers alone, and unbiased.

use crate::queue::FLOW_BITS;
use crate::scheduler::{Inner, NodeId, QueueId, Tree};
use slicewise_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A flow is active if it sent a frame in the last interval of this length that is over, counted from time zero.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
const BITS: u32 = 1 << FLOW_BITS;
const WORDS: usize = (BITS / u64::BITS) as usize;
/// Bits of an estimate after the binary point.
const FRACTION_BITS: u32 = 16;

/// A child of a node: the queue, if it is one that is counted, and the weight.
type Child = (Option<QueueId>, u32);

/// The queues of a tree whose active flows are counted.
#[derive(Debug, Default)]
pub(crate) struct ActiveFlows {
    queues: BTreeMap<QueueId, Counted>,
    /// Nodes of deficit round robin.
    nodes: Vec<(NodeId, Vec<Child>)>,
    /// When the interval is over.
    end: Instant,
}

#[derive(Debug)]
struct Counted {
    /// The queue is the same after a change if this is.
    path: String,
    /// Of this interval.
    sketch: Sketch,
    /// Flows that were active in the last one.
    flows: u32,
}

impl ActiveFlows {
    pub(crate) fn add_queue(&mut self, queue: QueueId, path: String) {
        let counted = Counted {
            path,
            sketch: Sketch::new(),
            flows: 0,
        };
        self.queues.insert(queue, counted);
    }

    /// A node whose children have these weights; nothing happens where no queue is counted.
    pub(crate) fn add_node(&mut self, node: NodeId, children: Vec<Child>) {
        if children.iter().any(|(queue, _)| queue.is_some()) {
            self.nodes.push((node, children));
        }
    }

    pub(crate) fn counts(&self, queue: QueueId) -> bool {
        self.queues.contains_key(&queue)
    }

    /// A frame of `flow` comes to `queue`. O(log queues), and O(queues) once per interval.
    pub(crate) fn on_frame(&mut self, queue: QueueId, flow: u16, now: Instant, tree: &mut Tree) {
        if now >= self.end {
            self.end_interval(now);
            self.apply(tree);
        }
        if let Some(counted) = self.queues.get_mut(&queue) {
            counted.sketch.insert(flow);
        }
    }

    fn end_interval(&mut self, now: Instant) {
        // Unless that was long ago, and nothing has come since.
        let is_last = now < self.end + INTERVAL;
        for counted in self.queues.values_mut() {
            let flows = counted.sketch.take();
            counted.flows = if is_last { flows } else { 0 };
        }
        self.end = end_of_interval(now);
    }

    /// Give the nodes the weights of now. A queue without active flows has that of one.
    pub(crate) fn apply(&self, tree: &mut Tree) {
        for (node, children) in &self.nodes {
            let weights = children.iter().map(|(queue, weight)| {
                let counted = queue.and_then(|queue| self.queues.get(&queue));
                let flows = counted.map_or(1, |counted| counted.flows.max(1));
                u64::from(*weight) * u64::from(flows)
            });
            if let Some(Inner::DeficitRoundRobin(ring)) = tree.inner_mut(*node) {
                ring.set_weights(weights);
            }
        }
    }

    /// Go on with the counts of `old` where queues have the same path; `tree` is that of this one.
    pub(crate) fn resume_from(&mut self, old: &mut Self, tree: &mut Tree) {
        self.end = old.end;
        let old = std::mem::take(&mut old.queues).into_values();
        let mut old: BTreeMap<String, Counted> =
            old.map(|counted| (counted.path.clone(), counted)).collect();
        for counted in self.queues.values_mut() {
            if let Some(before) = old.remove(&counted.path) {
                *counted = before;
            }
        }
        self.apply(tree);
    }
}

/// When the interval that contains `now` is over.
pub(crate) fn end_of_interval(now: Instant) -> Instant {
    let elapsed = now.nanos() % INTERVAL.nanos();
    Instant::from_nanos(now.nanos() - elapsed).saturating_add(INTERVAL)
}

/// How many distinct hashes were inserted, about.
#[derive(Debug)]
pub(crate) struct Sketch {
    words: Box<[u64; WORDS]>,
    clear: u32,
    /// With [`FRACTION_BITS`].
    estimate: u64,
}

impl Sketch {
    pub(crate) fn new() -> Self {
        Self {
            words: Box::new([0; WORDS]),
            clear: BITS,
            estimate: 0,
        }
    }

    pub(crate) fn insert(&mut self, hash: u16) {
        let bit = u32::from(hash) % BITS;
        let Some(word) = self.words.get_mut((bit / u64::BITS) as usize) else {
            return;
        };
        let mask = 1 << (bit % u64::BITS);
        if *word & mask == 0 {
            *word |= mask;
            // The bit was clear: there is one at least.
            self.estimate += (u64::from(BITS) << FRACTION_BITS) / u64::from(self.clear.max(1));
            self.clear = self.clear.saturating_sub(1);
        }
    }

    /// The estimate, rounded; it begins anew.
    pub(crate) fn take(&mut self) -> u32 {
        let rounded = (self.estimate + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS;
        self.words.fill(0);
        self.clear = BITS;
        self.estimate = 0;
        u32::try_from(rounded).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{BITS, Sketch};
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    proptest! {
        /// Six standard errors of linear counting (Whang et al., theorem 1), which are larger than those of this estimate.
        #[test]
        fn the_number_of_flows_is_estimated_within_the_error_of_linear_counting(
            flows in 1..20_000u32,
            seed in any::<u64>(),
        ) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut sketch = Sketch::new();
            for _ in 0..flows {
                let hash = (random.next_u64() >> 51) as u16;
                // A flow sends more than one frame.
                (0..3).for_each(|_| sketch.insert(hash));
            }
            let (n, m) = (f64::from(flows), f64::from(BITS));
            let error = (m * ((n / m).exp() - n / m - 1.0)).sqrt();
            let estimate = sketch.take();
            prop_assert!((f64::from(estimate) - n).abs() <= 6.0 * error + 1.0, "{estimate} of {flows}");
            prop_assert_eq!(sketch.take(), 0);
        }
    }
}
