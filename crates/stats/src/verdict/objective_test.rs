//! An objective of a slice, as it is tested in a scenario.

use super::Outcome;
use super::runs::RunCount;
use crate::application::ApplicationRecord;
use crate::objective::Percentile;
use crate::pooled::PooledShare;
use crate::projection::Projection;
use crate::quantity::Unit;
use serde::{Deserialize, Serialize};

/// Indicator of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveIndicator {
    /// Rate received, bit/s: at least.
    Throughput,
    /// Lost packets / sent packets: at most.
    LossRatio,
    /// A percentile of one-way delay of all packets sent, ns: at most. Of one that is lost it is infinite.
    Delay(Percentile),
    /// A percentile of packet delay variation (RFC 5481), ns: at most.
    DelayVariation(Percentile),
    /// Goodput of applications, bit/s: at least.
    Goodput,
    /// A percentile of the completion time of flows, ns: at most. One in progress has taken the time until now.
    CompletionTime(Percentile),
    /// A percentile of the latency of all requests due, ns: at most.
    RequestLatency(Percentile),
    /// Share of intervals in which all objectives of packets and of goodput are met: at least.
    Availability {
        /// Length of an interval, ns.
        length_ns: u64,
    },
}

impl ObjectiveIndicator {
    /// Returns true if more of it is better.
    #[must_use]
    pub const fn is_at_least(self) -> bool {
        matches!(
            self,
            Self::Throughput | Self::Goodput | Self::Availability { .. }
        )
    }

    /// Sign between a value and its limit.
    #[must_use]
    pub const fn relation(self) -> char {
        if self.is_at_least() { '≥' } else { '≤' }
    }

    /// Unit of its values.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::Throughput | Self::Goodput => Unit::Rate,
            Self::LossRatio | Self::Availability { .. } => Unit::Ratio,
            _ => Unit::Time,
        }
    }

    /// Name in words, and percentile.
    #[must_use]
    pub const fn words(self) -> (&'static str, Option<Percentile>) {
        match self {
            Self::Throughput => ("throughput", None),
            Self::LossRatio => ("loss ratio", None),
            Self::Delay(at) => ("delay", Some(at)),
            Self::DelayVariation(at) => ("delay variation", Some(at)),
            Self::Goodput => ("goodput", None),
            Self::CompletionTime(at) => ("completion time", Some(at)),
            Self::RequestLatency(at) => ("request latency", Some(at)),
            Self::Availability { .. } => ("availability", None),
        }
    }

    /// Returns true if it is a rate, of which a slice gets no more than it asks for.
    pub(super) const fn is_rate(self) -> bool {
        matches!(self.unit(), Unit::Rate)
    }

    /// Returns true if it needs the clocks of both ends.
    pub(super) const fn is_delay(self) -> bool {
        matches!(self, Self::Delay(_) | Self::DelayVariation(_))
    }

    /// Returns true if it applies to applications instead of packets.
    pub(super) const fn is_of_applications(self) -> bool {
        matches!(
            self,
            Self::Goodput | Self::CompletionTime(_) | Self::RequestLatency(_)
        )
    }

    /// Returns true if an application is of the kind that has it.
    pub(super) const fn is_had_by(self, application: &ApplicationRecord) -> bool {
        match self {
            Self::CompletionTime(_) => application.flows.is_some(),
            Self::RequestLatency(_) => application.requests.is_some(),
            _ => true,
        }
    }
}

/// One objective of one slice in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveTest {
    /// Slice.
    pub slice: String,
    /// Scenario.
    pub scenario: String,
    /// The indicator.
    pub indicator: ObjectiveIndicator,
    /// The objective, in the unit of the indicator.
    pub limit: f64,
    /// Limit that it was compared with: `limit`, except for the rate of a slice that hardly sends or asks for as much.
    pub held_against: f64,
    /// Where that is less than `limit`: the rate that the slice sends or asks for, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// False where the slice sends too little to meet it: it is missed, or inconclusive.
    pub can_be_met: bool,
    /// Mean over runs; `None` where it is infinite, as it is of some run.
    pub mean: Option<f64>,
    /// Of the worst run: the one with the least room; `None` where it is infinite.
    pub worst: Option<f64>,
    /// From the worst run to the limit, as a share of what lies between the limit and the best that could be (no delay, no loss, all that is
    /// sent): 1 at the best, 0 at the limit, negative beyond. `None` where it is infinite.
    pub room: Option<f64>,
    /// Mean over runs of the packets lost / sent.
    pub loss_ratio: f64,
    /// Packets lost / sent in the worst run; the largest where several runs are equally bad.
    #[serde(default)]
    pub worst_loss_ratio: f64,
    /// The runs, and those beyond the limit.
    pub runs: RunCount,
    /// `Holds` where it is met, `Broken` where it is missed, or `Inconclusive`.
    pub outcome: Outcome,
    /// Runs that would decide it; `None` where it is decided or no number within reason would.
    pub repetitions_needed: Option<u32>,
    /// Packets of all repetitions and those of them lost or late, where the objective is of a share of packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PooledShare>,
    /// Where only the percentile of each run is known: values that all runs together have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u64>,
    /// Of one capture: what it says of the time after it, where it is long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<Projection>,
    /// ns of delay in a second: the delay still grows, so that the objective cannot be shown to be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing_per_second: Option<f64>,
}
