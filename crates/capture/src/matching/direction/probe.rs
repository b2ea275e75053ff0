//! Examines the first packets of two captures.

use super::{FlowDirection, Split, by_capture, by_time_to_live, difference};
use crate::Sighting;
use crate::matching::alignment::shared;
use std::collections::BTreeMap;

/// Directions as indicated by the first packets of both points, before matching.
///
/// Flows found here have a direction from their first packet on; others from their first matched packet
/// on.
#[derive(Debug, Clone)]
pub struct DirectionProbe {
    /// Direction of the flows of the sending point seen at both points, in order of index.
    pub flows: Vec<(u32, FlowDirection)>,
    /// Basis for deciding the direction of further flows by time.
    pub basis: SplitBasis,
    /// Packets seen at both points.
    pub shared: usize,
    /// Those that, by the clocks, were received before they were sent.
    pub received_before_sent: usize,
    pub(super) split: Split,
}

/// How time order indicates directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBasis {
    /// Packets of known direction went both ways: their differences bracket the clock offset.
    BothWays,
    /// The clocks are trusted: some flows were always sent first, some always received first, and none
    /// mixed.
    Clocks,
    /// No evidence: all flows are assumed to go forward. If all were received before they were sent, the
    /// clocks disagree or the captures are swapped.
    Assumed,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    direction: Option<FlowDirection>,
    smallest_ns: i64,
    largest_ns: i64,
}

impl DirectionProbe {
    /// Examine the first sightings of both points; for `reverse_flow` see
    /// [`DirectionFilter`](super::DirectionFilter).
    pub fn new(
        sent: &[Sighting],
        received: &[Sighting],
        mut reverse_flow: impl FnMut(u32) -> Option<u32>,
    ) -> Self {
        let pairs = shared(sent, received);
        let mut flows: BTreeMap<u32, Flow> = BTreeMap::new();
        for (sent, received) in &pairs {
            let difference_ns = difference(sent, received);
            let flow = flows.entry(sent.flow).or_insert(Flow {
                direction: None,
                smallest_ns: difference_ns,
                largest_ns: difference_ns,
            });
            flow.smallest_ns = flow.smallest_ns.min(difference_ns);
            flow.largest_ns = flow.largest_ns.max(difference_ns);
            let seen = by_time_to_live(sent, received).or_else(|| by_capture(sent, received));
            flow.direction = flow.direction.or(seen);
        }
        by_pairs(&mut flows, &mut reverse_flow);

        let mut split = Split::new(i64::MIN);
        for flow in flows.values() {
            match flow.direction {
                Some(FlowDirection::Forward) => {
                    split.learn(FlowDirection::Forward, flow.smallest_ns)
                }
                Some(FlowDirection::Reverse) => {
                    split.learn(FlowDirection::Reverse, flow.largest_ns)
                }
                None => {}
            }
        }
        let basis = if split.has_both() {
            SplitBasis::BothWays
        } else if clocks_part(&flows) {
            split.otherwise_ns = 0;
            SplitBasis::Clocks
        } else {
            SplitBasis::Assumed
        };
        let decided = flows.iter().map(|(&index, flow)| {
            let by_time = split.direction_of(flow.smallest_ns);
            (index, flow.direction.unwrap_or(by_time))
        });
        let early = |pair: &&(Sighting, Sighting)| difference(&pair.0, &pair.1) < 0;
        Self {
            flows: decided.collect(),
            basis,
            shared: pairs.len(),
            received_before_sent: pairs.iter().filter(early).count(),
            split,
        }
    }
}

/// Of two flows that answer each other, the one with the larger differences goes forward.
fn by_pairs(flows: &mut BTreeMap<u32, Flow>, reverse_flow: &mut impl FnMut(u32) -> Option<u32>) {
    let indexes: Vec<u32> = flows.keys().copied().collect();
    for index in indexes {
        let Some(&flow) = flows.get(&index) else {
            continue;
        };
        let Some(other) = reverse_flow(index).and_then(|other| flows.get_mut(&other)) else {
            continue;
        };
        let direction = flow.direction.unwrap_or({
            if let Some(other) = other.direction {
                other.opposite()
            } else if flow.smallest_ns > other.smallest_ns {
                FlowDirection::Forward
            } else {
                FlowDirection::Reverse
            }
        });
        other.direction.get_or_insert(direction.opposite());
        if let Some(flow) = flows.get_mut(&index) {
            flow.direction = Some(direction);
        }
    }
}

/// Returns true if the signs of the differences separate the flows into two groups.
fn clocks_part(flows: &BTreeMap<u32, Flow>) -> bool {
    let forward = flows.values().filter(|flow| flow.smallest_ns >= 0).count();
    let reverse = flows.values().filter(|flow| flow.largest_ns < 0).count();
    forward > 0 && reverse > 0 && forward + reverse == flows.len()
}
