//! The clocks of the two ends: whether they agree, and their offset.

use slicewise_capture::clock::{ClockEstimate, ClockMethod, ClockReport, ClockVerdict, DelayFloor};
use slicewise_stats::flow::{self, ClockRecord};

/// State of the clocks according to the delays of both directions.
#[derive(Debug)]
pub(crate) struct Clocks {
    report: ClockReport,
    /// How far the receiving clock is ahead, if by more than any delay, ns; else 0.
    alignment_ns: i64,
    /// Correction of received times.
    correction: Option<ClockEstimate>,
    /// One of them was set during the run.
    was_set: bool,
}

impl Clocks {
    pub(crate) fn new(
        forward: &DelayFloor,
        reverse: &DelayFloor,
        alignment_ns: i64,
        was_set: bool,
    ) -> Self {
        Self {
            report: ClockReport::new(forward, reverse),
            alignment_ns,
            correction: None,
            was_set,
        }
    }

    /// The same, after received times were corrected by `correction`.
    pub(crate) const fn corrected(mut self, correction: Option<ClockEstimate>) -> Self {
        self.correction = correction;
        self
    }

    /// Returns true if a clock was set during the run, some packet arrived before it was sent, or all arrived later
    /// than any network delay explains.
    pub(crate) fn disagree(&self) -> bool {
        self.was_set
            || self.alignment_ns != 0
            || matches!(self.report.verdict, ClockVerdict::Disagree { .. })
    }

    /// How far the receiving clock is ahead, if by more than any delay, ns; else 0.
    pub(crate) const fn alignment_ns(&self) -> i64 {
        self.alignment_ns
    }

    /// Correction for received times; `None` if a clock was set during the run.
    pub(crate) fn estimate(&self) -> Option<ClockEstimate> {
        self.report.estimate.filter(|_| !self.was_set)
    }

    /// For the record of the run. If the clocks agree, there is nothing to estimate.
    pub(crate) fn record(&self) -> ClockRecord {
        let report = &self.report;
        let estimate = self.estimate().filter(|_| self.disagree());
        ClockRecord {
            negative_delays: report.negative_delays,
            smallest_delay_ns: report.smallest_delay_ns,
            estimate: estimate.map(|estimate| flow::ClockEstimate {
                method: method(&estimate).to_owned(),
                assumption: estimate.method.assumption().to_owned(),
                offset_ns: estimate.offset_ns as f64,
                drift_ppm: estimate.drift_ppb / 1e3,
                offset_uncertainty_ns: estimate.offset_uncertainty_ns,
            }),
            alignment_ns: self.alignment_ns,
            aligned: self.correction.is_some(),
            was_set: self.was_set,
        }
    }
}

fn method(estimate: &ClockEstimate) -> &'static str {
    match estimate.method {
        ClockMethod::BothDirections => {
            "floors of delay of both directions (Moon, Skelly & Towsley 1999), half their difference \
             (as RFC 5905)"
        }
        ClockMethod::ForwardOnly => "floor of delay, one direction (Moon, Skelly & Towsley 1999)",
        ClockMethod::ReverseOnly => {
            "floor of delay of the opposite direction (Moon, Skelly & Towsley 1999)"
        }
    }
}
