//! Control loop over the rates of classes: from counters, read at the end of each interval, to rates.

use crate::counters::ClassCounters;
use slicewise_model::ReallocationParams;
use slicewise_units::{BitRate, Duration};
use std::collections::HashMap;

/// State of a loop between two readings.
///
/// It knows what a controller knows that polls a device: bytes offered, also those dropped, and frames waiting.
#[derive(Debug, Clone)]
pub struct ReallocationLoop {
    params: ReallocationParams,
    /// Positions of its classes, by name.
    positions: HashMap<String, usize>,
    /// Bytes offered to each class until the last reading.
    offered_bytes: Vec<u64>,
    /// Demand of each class as estimated.
    estimates: Vec<BitRate>,
}

impl ReallocationLoop {
    /// A loop that has read nothing.
    #[must_use]
    pub fn new(params: ReallocationParams) -> Self {
        let classes = params.classes.len();
        let names = params.classes.iter().map(|class| class.name.clone());
        Self {
            positions: names.zip(0..).collect(),
            offered_bytes: vec![0; classes],
            estimates: vec![BitRate::ZERO; classes],
            params,
        }
    }

    /// Its parameters.
    #[must_use]
    pub const fn params(&self) -> &ReallocationParams {
        &self.params
    }

    /// Read the `counters` of all classes, `elapsed` after the last reading, or the start. Returns the rates of its classes, in
    /// their order. O(classes of the policy).
    ///
    /// A class wants what was offered to it, and to send what waits within the next interval. Bytes that wait are estimated from
    /// frames by the mean length of all that were offered.
    pub fn on_interval<'a>(
        &mut self,
        counters: impl Iterator<Item = &'a ClassCounters>,
        elapsed: Duration,
    ) -> Vec<BitRate> {
        let mut offered = vec![0u64; self.offered_bytes.len()];
        let mut waiting = vec![0u128; self.offered_bytes.len()];
        for class in counters {
            let Some(position) = self.position(&class.class) else {
                continue;
            };
            let bytes = u128::from(class.queued_frames) * u128::from(class.offered_bytes);
            offered[position] += class.offered_bytes;
            waiting[position] += bytes / u128::from(class.offered_frames.max(1));
        }
        let nanos = u128::from(elapsed.nanos().max(1));
        for (position, offered) in offered.into_iter().enumerate() {
            let before = std::mem::replace(&mut self.offered_bytes[position], offered);
            let bytes = u128::from(offered.saturating_sub(before)) + waiting[position];
            let rate = bytes.saturating_mul(8_000_000_000) / nanos;
            let rate = BitRate::new(u64::try_from(rate).unwrap_or(u64::MAX));
            let estimate = &mut self.estimates[position];
            *estimate = self.params.estimate(*estimate, rate);
        }
        self.params.decide(&self.estimates)
    }

    /// Position of a class, or of the class that it is within.
    fn position(&self, class: &str) -> Option<usize> {
        let outer = || class.split('/').next();
        let position = self.positions.get(class);
        position.or_else(|| self.positions.get(outer()?)).copied()
    }
}
