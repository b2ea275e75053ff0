//! Flows that were completed.

use crate::{Figures, samples};
use slicewise_stats::application::FlowFigures;
use slicewise_units::{Duration, Instant};

/// A flow that was completed.
#[derive(Debug, Clone, Copy)]
struct Flow {
    ended: Instant,
    took: Duration,
    bytes: u64,
}

/// All that ended, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    completed: Vec<Flow>,
    /// When those began and ended that failed.
    failed: Vec<(Instant, Instant)>,
}

impl Flows {
    /// A flow that began at `began`, when its connection was opened, got the last of its `bytes`.
    pub fn on_completed(&mut self, began: Instant, bytes: u64, now: Instant) {
        self.completed.push(Flow {
            ended: now,
            took: now.saturating_since(began),
            bytes,
        });
    }

    /// A flow that began at `began` will not be completed.
    pub fn on_failed(&mut self, began: Instant, now: Instant) {
        self.failed.push((began, now));
    }

    /// Of flows completed in [`from`, `to`); `open` is when those began that are not complete.
    pub fn figures(
        &self,
        open: impl Iterator<Item = Instant>,
        (from, to): (Instant, Instant),
    ) -> Figures {
        let completed = self.completed.iter();
        let flows = || completed.clone().filter(|f| (from..to).contains(&f.ended));
        // Those that ended later were in progress; what failed never ends.
        let later = completed.clone().filter(|f| f.ended >= to);
        let began = later.map(|f| f.ended.nanos().saturating_sub(f.took.nanos()));
        let failed = self.failed.iter().filter(|(_, ended)| *ended >= from);
        let unfinished = failed.map(|(began, _)| *began).chain(open);
        let until_the_end: Vec<u64> = began
            .chain(unfinished.map(Instant::nanos))
            .filter(|began| *began < to.nanos())
            .map(|began| to.nanos() - began)
            .collect();
        let unfinished_times = samples::cdf(&until_the_end);
        let took: Vec<u64> = flows().map(|flow| flow.took.nanos()).collect();
        let time_of_begun = [took.as_slice(), &until_the_end].concat();
        let times = samples::cdf(&took);
        let completion_time = samples::figures(took);
        // A flow takes a nanosecond at least.
        let rates = flows().map(|f| f.bytes as f64 * 8e9 / f.took.nanos().max(1) as f64);
        let rates: f64 = rates.sum();
        let completed = completion_time.samples;
        let flows = FlowFigures {
            completed,
            completion_time,
            time_of_begun: samples::figures(time_of_begun),
            rate_mean_bits_per_second: (completed > 0).then(|| rates / completed as f64),
        };
        Figures {
            flows: Some(flows),
            times,
            unfinished_times,
            ..Figures::default()
        }
    }
}
