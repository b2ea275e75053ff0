//! Figures that a study declares: a quantity over cases, scenarios or policies, two quantities over each other, or a
//! distribution.

use crate::fit::FitKind;
use crate::loss_episodes::loss_episodes;
use crate::quantity::{Metric, Quantity};
use crate::record::Series;
use serde::{Deserialize, Serialize};

/// A declared figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotDescription {
    /// Name: part of the names of its files.
    pub name: String,
    /// Caption; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Cases; empty in a study without cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<PlotGroup>,
    /// Policies; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Scenarios; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<String>,
    /// Horizontal axis.
    pub x: PlotX,
    /// Vertical axis; `None` for the share of a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<PlotValue>,
    /// Curves fitted to the points of each line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<FitKind>,
}

/// Cases that have a line in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotGroup {
    /// Name; empty for cases that have none in common.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The cases, in order.
    pub cases: Vec<PlotCase>,
}

/// A case of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotCase {
    /// Name.
    pub name: String,
    /// Place on an axis of numbers, "0.75 of the link"; empty if it states none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub x: String,
}

/// Horizontal axis of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotX {
    /// Names of policies.
    Policy,
    /// Names of cases.
    Case,
    /// Numbers that cases state.
    CaseNumber,
    /// Names of scenarios.
    Scenario,
    /// Numbers that scenarios state.
    ScenarioNumber,
    /// A quantity.
    Value(PlotValue),
    /// Values of a distribution, whose shares are on the vertical axis.
    Distribution(PlotDistribution),
}

/// A quantity of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotValue {
    /// The quantity.
    pub metric: Metric,
    /// Slice; `None` for all slices together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// Queue of the device, where the quantity is one of a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

/// A distribution that a figure draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotDistribution {
    /// Quantity that is distributed.
    pub of: Distributed,
    /// Slice.
    pub slice: String,
    /// Length of the intervals that have a value each, ns; of values per interval alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
}

impl PlotDistribution {
    /// Returns each value of a run with this series; none of a distribution that is kept otherwise.
    pub(crate) fn values(&self, series: &Series, bin_ns: u64) -> Vec<f64> {
        let episodes = || loss_episodes(series, bin_ns).into_iter();
        match self.of {
            Distributed::LossEpisodeLength => episodes().map(|of| of.length_ns as f64).collect(),
            Distributed::LossEpisodeFrames => episodes().map(|of| of.lost_frames as f64).collect(),
            Distributed::LostFrames => {
                let bins = self.every_ns.unwrap_or(bin_ns) / bin_ns.max(1);
                let bins = usize::try_from(bins).unwrap_or(usize::MAX).max(1);
                let intervals = series.lost_frames.chunks_exact(bins);
                let lost = |bins: &[u32]| bins.iter().copied().map(f64::from).sum();
                intervals.map(lost).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Something whose distribution is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distributed {
    /// One-way delay, by its percentiles.
    Delay,
    /// Delay above the smallest, by its percentiles.
    Pdv,
    /// Latency of requests, by its percentiles.
    RequestLatency,
    /// Completion time of flows, by its percentiles.
    CompletionTime,
    /// Length of each episode of loss.
    LossEpisodeLength,
    /// Frames lost in each episode of loss.
    LossEpisodeFrames,
    /// Frames lost in each interval of a given length.
    LostFrames,
    /// Inter-arrival times of the first source, as sent and as received.
    Iat,
}

impl Distributed {
    /// Quantities that are percentiles of it, each with its share; none where every value is known.
    #[must_use]
    pub fn percentiles(self) -> Vec<(Quantity, f64)> {
        use Quantity as Q;
        let of: &[(Quantity, f64)] = match self {
            Self::Delay => &[
                (Q::DelayP50, 0.5),
                (Q::DelayP90, 0.9),
                (Q::DelayP95, 0.95),
                (Q::DelayP99, 0.99),
                (Q::DelayP999, 0.999),
                (Q::DelayP9999, 0.9999),
                (Q::DelayP99999, 0.99999),
            ],
            Self::Pdv => &[
                (Q::PdvP50, 0.5),
                (Q::PdvP95, 0.95),
                (Q::PdvP99, 0.99),
                (Q::PdvP999, 0.999),
            ],
            Self::RequestLatency => &[
                (Q::RequestLatencyP50, 0.5),
                (Q::RequestLatencyP90, 0.9),
                (Q::RequestLatencyP99, 0.99),
                (Q::RequestLatencyP999, 0.999),
            ],
            Self::CompletionTime => &[
                (Q::CompletionTimeP50, 0.5),
                (Q::CompletionTimeP90, 0.9),
                (Q::CompletionTimeP99, 0.99),
            ],
            Self::LossEpisodeLength | Self::LossEpisodeFrames | Self::LostFrames | Self::Iat => &[],
        };
        of.to_vec()
    }

    /// Quantity that names it and has its unit.
    #[must_use]
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Delay => Quantity::DelayMean,
            Self::Pdv => Quantity::PdvMean,
            Self::RequestLatency => Quantity::RequestLatencyMean,
            Self::CompletionTime => Quantity::CompletionTimeMean,
            Self::LossEpisodeLength => Quantity::LossEpisodeLength,
            Self::LossEpisodeFrames | Self::LostFrames => Quantity::LossEpisodeFrames,
            Self::Iat => Quantity::IatMean,
        }
    }

    /// Name in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Delay => "one-way delay",
            Self::Pdv => "delay above the smallest",
            Self::RequestLatency => "request latency",
            Self::CompletionTime => "completion time",
            Self::LossEpisodeLength | Self::LossEpisodeFrames => self.quantity().words(),
            Self::LostFrames => "lost frames",
            Self::Iat => "inter-arrival time",
        }
    }

    /// Plural noun for the members of the distribution, and a participle for those without a value.
    #[must_use]
    pub const fn members(self) -> (&'static str, &'static str) {
        match self {
            Self::Delay | Self::Pdv => ("frames sent", "lost"),
            Self::RequestLatency => ("requests due", "unanswered at the end"),
            Self::CompletionTime => ("flows begun", "in progress at the end"),
            Self::LossEpisodeLength | Self::LossEpisodeFrames => ("episodes of loss", ""),
            Self::LostFrames => ("intervals", ""),
            Self::Iat => ("inter-arrival times", ""),
        }
    }
}

impl PlotDescription {
    /// Returns true if `case` is drawn; `None` is a study without cases.
    #[must_use]
    pub fn has_case(&self, case: Option<&str>) -> bool {
        match case {
            None => self.groups.is_empty(),
            Some(case) => self.cases().any(|(_, of)| of.name == case),
        }
    }

    /// Returns a figure of each of its cases alone, with the name of the case.
    #[must_use]
    pub fn by_case(mut self) -> Vec<(String, Self)> {
        let mut parts = Vec::new();
        for PlotGroup { name, cases } in std::mem::take(&mut self.groups) {
            for case in cases {
                let (case_name, name) = (case.name.clone(), name.clone());
                let groups = vec![PlotGroup {
                    name,
                    cases: vec![case],
                }];
                let part = Self {
                    groups,
                    ..self.clone()
                };
                parts.push((case_name, part));
            }
        }
        parts
    }

    /// Its cases, each with the number of its group.
    pub fn cases(&self) -> impl Iterator<Item = (usize, &PlotCase)> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(index, group)| group.cases.iter().map(move |case| (index, case)))
    }
}
