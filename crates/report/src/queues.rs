//! Lengths of a device's queues and the flows of elephants, in all runs.

use slicewise_stats::record::RunRecord;
use std::collections::BTreeMap;

/// Queues and elephants, where runs have them.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// By policy (in its phase), scenario, device and queue.
    lengths: BTreeMap<Place, Length>,
    /// By policy, scenario, device and class.
    elephants: BTreeMap<Place, Elephants>,
}

/// Policy, scenario, device, and queue or class.
pub(crate) type Place = (String, String, u32, String);

/// The length of a queue in some runs.
#[derive(Debug, Default)]
pub(crate) struct Length {
    runs: u32,
    sum_of_means: f64,
    pub(crate) largest_frames: u32,
}

/// Flows of a class in some runs.
#[derive(Debug, Default)]
pub(crate) struct Elephants {
    pub(crate) tagged: u64,
    pub(crate) moved: u64,
    pub(crate) moved_back: u64,
    pub(crate) unfollowed_frames: u64,
}

impl Queues {
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        let place = |of: &RunRecord, device, name: &String| {
            let key = &of.key;
            (
                key.policy.clone(),
                key.scenario.clone(),
                device,
                name.clone(),
            )
        };
        for view in record.by_phase() {
            for queue in &view.queues {
                let place = place(&view, queue.device, &queue.queue);
                let length = self.lengths.entry(place).or_default();
                length.runs += 1;
                length.sum_of_means += queue.mean_frames;
                length.largest_frames = length.largest_frames.max(queue.largest_frames);
            }
        }
        for class in &record.elephants {
            let place = place(record, class.device, &class.class);
            let flows = self.elephants.entry(place).or_default();
            flows.tagged = flows.tagged.saturating_add(class.tagged);
            flows.moved = flows.moved.saturating_add(class.moved);
            flows.moved_back = flows.moved_back.saturating_add(class.moved_back);
            let unfollowed = &mut flows.unfollowed_frames;
            *unfollowed = unfollowed.saturating_add(class.unfollowed_frames);
        }
    }

    pub(crate) const fn lengths(&self) -> &BTreeMap<Place, Length> {
        &self.lengths
    }

    pub(crate) const fn elephants(&self) -> &BTreeMap<Place, Elephants> {
        &self.elephants
    }
}

impl Length {
    /// Mean over the runs, frames.
    pub(crate) fn mean_frames(&self) -> f64 {
        self.sum_of_means / f64::from(self.runs.max(1))
    }
}
