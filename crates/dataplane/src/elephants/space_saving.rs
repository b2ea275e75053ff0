//! The largest flows of a stream, in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi, *Efficient Computation
//! of Frequent and Top-k Elements in Data Streams*, 2005), counting bytes instead of frames (Berinde, Indyk, Cormode and
//! Strauss, *Space-optimal Heavy Hitters with Strong Error Bounds*, 2010).

use super::flow_table::FlowTable;

/// Children of a node of the heap: four lie on two cache lines.
const ARITY: usize = 4;

/// Bounds of the bytes of a flow: `estimate - error <= true <= estimate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) estimate: u64,
    pub(super) error: u64,
}

impl Count {
    /// Bytes that the flow has sent at least.
    pub(super) const fn guaranteed(self) -> u64 {
        self.estimate - self.error
    }
}

/// `k` counters. A flow without one takes over the smallest, with its count as error. So all counts add up to the bytes
/// `N` of the stream, the smallest is at most `N / k`, and so is every error. A flow that has no counter has sent no more
/// than the smallest.
///
/// The smallest is found in a heap: O(log k) steps at most, and none for a flow whose count stays below those of its
/// children. (The list of buckets of the publication takes O(1), but for frames that count 1 each.)
#[derive(Debug)]
pub(super) struct SpaceSaving {
    /// In the order of a heap, the smallest estimate first.
    heap: FlowTable<Count>,
}

impl SpaceSaving {
    /// With `counters` counters.
    pub(super) fn new(counters: u32) -> Self {
        Self {
            heap: FlowTable::with_capacity(counters),
        }
    }

    /// Count bytes of a flow; returns what is known of it now.
    #[inline]
    pub(super) fn add(&mut self, flow: u64, bytes: u64) -> Count {
        if let Some(position) = self.heap.find(flow)
            && let Some(count) = self.heap.get_mut(position)
        {
            count.estimate += bytes;
            let count = *count;
            self.sift_down(position);
            return count;
        }
        let smallest = self.heap.get(0).filter(|_| self.heap.is_full());
        let error = smallest.map_or(0, |smallest| smallest.estimate);
        let count = Count {
            estimate: error + bytes,
            error,
        };
        match self.heap.insert(flow, count) {
            Some(position) => self.sift_up(position),
            None => {
                self.heap.replace(0, flow, count);
                self.sift_down(0);
            }
        }
        count
    }

    /// Begin anew. O(1).
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    fn estimate(&self, position: usize) -> Option<u64> {
        self.heap.get(position).map(|count| count.estimate)
    }

    fn sift_down(&mut self, mut position: usize) {
        while let Some(own) = self.estimate(position) {
            let first = ARITY * position + 1;
            let children =
                (first..first + ARITY).filter_map(|child| Some((self.estimate(child)?, child)));
            match children.min() {
                Some((smallest, child)) if smallest < own => {
                    self.heap.swap(position, child);
                    position = child;
                }
                _ => return,
            }
        }
    }

    fn sift_up(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if self.estimate(parent) <= self.estimate(position) {
                return;
            }
            self.heap.swap(position, parent);
            position = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, SpaceSaving};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Returns the bounds of a flow, also of one without a counter.
    fn count_of(sketch: &SpaceSaving, flow: u64) -> Count {
        let known = sketch.heap.find(flow).and_then(|at| sketch.heap.get(at));
        known.copied().unwrap_or_else(|| {
            let estimate = if sketch.heap.is_full() {
                sketch.estimate(0).unwrap()
            } else {
                0
            };
            Count {
                estimate,
                error: estimate,
            }
        })
    }

    fn frames() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let few_send_much = prop_oneof![3 => 0u64..4, 3 => 0u64..20, 2 => 0u64..200];
        prop::collection::vec((few_send_much, 1u64..1600), 0..600)
    }

    proptest! {
        #[test]
        fn errors_are_within_the_bound(frames in frames(), counters in 1u32..24) {
            let mut sketch = SpaceSaving::new(counters);
            let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
            let mut total = 0;
            for (flow, bytes) in frames {
                let count = sketch.add(flow, bytes);
                *exact.entry(flow).or_default() += bytes;
                total += bytes;
                prop_assert_eq!(count, count_of(&sketch, flow));
            }
            for (&flow, &sent) in &exact {
                let count = count_of(&sketch, flow);
                prop_assert!(count.guaranteed() <= sent && sent <= count.estimate, "{sent} {count:?}");
                prop_assert!(count.error <= total / u64::from(counters), "{count:?} of {total}");
            }
            let counted: u64 = (0..sketch.heap.len()).filter_map(|at| sketch.estimate(at)).sum();
            prop_assert_eq!(counted, total);
        }

        #[test]
        fn it_begins_anew_without_errors(before in frames(), after in frames()) {
            let (mut used, mut new) = (SpaceSaving::new(7), SpaceSaving::new(7));
            before.iter().for_each(|&(flow, bytes)| { used.add(flow, bytes); });
            used.clear();
            for (flow, bytes) in after {
                prop_assert_eq!(used.add(flow, bytes), new.add(flow, bytes));
            }
        }
    }
}
