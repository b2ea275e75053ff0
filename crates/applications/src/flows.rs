//! Flows that were completed.

use crate::{Figures, happened, samples};
use slicewise_stats::application::{FlowFigures, Transaction};
use slicewise_units::{Duration, Instant};

/// A flow.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// Number of its connection, or client.
    pub connection: u32,
    /// When its connection was opened.
    pub began: Instant,
    /// When its request, or its data, was handed to the transport; [`Instant::MAX`] before.
    pub sent: Instant,
    /// Bytes that it transfers, at least 1; 0 before they are drawn.
    pub bytes: u64,
}

impl Flow {
    /// A flow whose connection is opened.
    pub const fn at(connection: u32, began: Instant) -> Self {
        Self {
            connection,
            began,
            sent: Instant::MAX,
            bytes: 0,
        }
    }

    fn transaction(self, ends_ns: Option<u64>) -> Transaction {
        Transaction {
            kind: "flow",
            connection: self.connection,
            number: 0,
            begins_ns: self.began.nanos(),
            sent_ns: happened(self.sent),
            ends_ns,
            bytes: (self.bytes > 0).then_some(self.bytes),
            quality: None,
        }
    }
}

/// All that ended, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    completed: Vec<(Flow, Instant)>,
    failed: Vec<(Flow, Instant)>,
}

impl Flows {
    /// A flow got the last of its bytes.
    pub fn on_completed(&mut self, flow: Flow, now: Instant) {
        self.completed.push((flow, now));
    }

    /// A flow will not be completed.
    pub fn on_failed(&mut self, flow: Flow, now: Instant) {
        self.failed.push((flow, now));
    }

    /// Returns all that have begun; `open` are those that have not ended.
    pub fn transactions(&self, open: impl Iterator<Item = Flow>) -> Vec<Transaction> {
        let completed = self.completed.iter();
        let completed = completed.map(|(flow, ended)| flow.transaction(Some(ended.nanos())));
        let failed = self.failed.iter().map(|(flow, _)| *flow);
        let unfinished = failed.chain(open).map(|flow| flow.transaction(None));
        completed.chain(unfinished).collect()
    }

    /// Of flows completed in [`from`, `to`); `open` are those that have not ended.
    pub fn figures(
        &self,
        open: impl Iterator<Item = Flow>,
        (from, to): (Instant, Instant),
    ) -> Figures {
        let completed = self.completed.iter();
        let flows = completed
            .clone()
            .filter(|(_, ended)| (from..to).contains(ended));
        // Those that ended later were in progress; what failed never ends.
        let later = completed.filter(|(_, ended)| *ended >= to);
        let failed = self.failed.iter().filter(|(_, ended)| *ended >= from);
        let unfinished = later.chain(failed).map(|(flow, _)| *flow).chain(open);
        let until_the_end: Vec<u64> = unfinished
            .filter(|flow| flow.began < to)
            .map(|flow| to.saturating_since(flow.began).nanos())
            .collect();
        let unfinished_times = samples::cdf(&until_the_end);
        let took = flows
            .clone()
            .map(|(flow, ended)| ended.saturating_since(flow.began));
        let took: Vec<u64> = took.map(Duration::nanos).collect();
        let time_of_begun = [took.as_slice(), &until_the_end].concat();
        let times = samples::cdf(&took);
        // A flow takes a nanosecond at least.
        let rates = flows
            .zip(&took)
            .map(|((flow, _), took)| flow.bytes as f64 * 8e9 / (*took).max(1) as f64);
        let rates: f64 = rates.sum();
        let completion_time = samples::figures(took);
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
