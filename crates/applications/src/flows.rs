//! Flows that were completed.

use crate::samples;
use slicewise_stats::application::FlowFigures;
use slicewise_units::{Duration, Instant};

/// A flow that was completed.
#[derive(Debug, Clone, Copy)]
struct Flow {
    ended: Instant,
    took: Duration,
    bytes: u64,
}

/// All that were completed, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Flows(Vec<Flow>);

impl Flows {
    /// A flow that began at `began`, when its connection was opened, got the last of its `bytes`.
    pub fn on_completed(&mut self, began: Instant, bytes: u64, now: Instant) {
        self.0.push(Flow {
            ended: now,
            took: now.saturating_since(began),
            bytes,
        });
    }

    /// Of flows completed in [`from`, `to`).
    pub fn figures(&self, from: Instant, to: Instant) -> FlowFigures {
        let flows = || self.0.iter().filter(|f| (from..to).contains(&f.ended));
        let completion_time = samples::figures(flows().map(|flow| flow.took.nanos()).collect());
        // A flow takes a nanosecond at least.
        let rates = flows().map(|f| f.bytes as f64 * 8e9 / f.took.nanos().max(1) as f64);
        let completed = completion_time.samples;
        FlowFigures {
            completed,
            completion_time,
            rate_mean_bits_per_second: rates.sum::<f64>() / completed.max(1) as f64,
        }
    }
}
