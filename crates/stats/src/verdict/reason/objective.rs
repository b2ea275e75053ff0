//! Result of an objective, in words.

use super::still_growing;
use crate::objective::Percentile;
use crate::pooled::{self, PooledShare};
use crate::projection::Projection;
use crate::quantity::Unit;
use crate::verdict::{ObjectiveIndicator, ObjectiveTest, ObjectivesVerdict, Outcome, SampleKind};
use crate::words::{self, percent, share};
use std::fmt;

impl fmt::Display for ObjectiveIndicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (name, None) => f.pad(name),
            (name, Some(at)) => f.pad(&format!("{name} at {at}")),
        }
    }
}

impl ObjectivesVerdict {
    /// The deciding objective, and what would decide it if undecided; `None` if there was none.
    #[must_use]
    pub fn deciding(&self) -> Option<String> {
        let test = self.decided_by.as_ref()?;
        let first = match &self.first_missed {
            Some(first) if *first != test.scenario => format!("; first missed in {first}"),
            _ => String::new(),
        };
        Some(format!("{}{first}", test.describe()))
    }
}

impl ObjectiveTest {
    /// "voice within 5 ms for 99.9 % of packets in 34 of 34 runs of storm".
    #[must_use]
    pub fn claim(&self) -> String {
        let limit = objective_value(self.indicator, self.limit);
        let of = |at: Percentile, what: &str| match at {
            Percentile::Max => format!("all {what}"),
            at => format!("{at} of {what}"),
        };
        let claim = match self.indicator {
            ObjectiveIndicator::Throughput => format!("gets at least {limit}"),
            ObjectiveIndicator::LossRatio => format!("loses at most {limit}"),
            ObjectiveIndicator::Delay(at) => format!("within {limit} for {}", of(at, "packets")),
            ObjectiveIndicator::DelayVariation(at) => {
                format!("varies within {limit} for {}", of(at, "packets received"))
            }
            ObjectiveIndicator::Goodput => format!("gets a goodput of at least {limit}"),
            ObjectiveIndicator::CompletionTime(at) => {
                format!("completes {} within {limit}", of(at, "flows"))
            }
            ObjectiveIndicator::RequestLatency(at) => {
                format!("answers {} within {limit}", of(at, "requests"))
            }
            ObjectiveIndicator::Availability { length_ns } => {
                let length = words::time(length_ns as f64);
                format!("conforms in at least {limit} of intervals of {length}")
            }
        };
        let lowered = match self.offered {
            Some(_) if !self.can_be_met && self.outcome == Outcome::Inconclusive => String::new(),
            Some(offered) => {
                let sends = match self.indicator {
                    ObjectiveIndicator::Goodput => "its applications ask for",
                    _ => "it sends",
                };
                let held_against = objective_value(self.indicator, self.held_against);
                format!(" ({held_against} because {sends} {})", words::rate(offered))
            }
            None => String::new(),
        };
        let runs = self.runs.of_scenario(Some(&self.scenario));
        format!("{} {claim}{lowered}{runs}", self.slice)
    }

    /// "worst run 4.1 ms", "worst run ∞, 99.7 % lost".
    #[must_use]
    pub fn measured(&self) -> String {
        let is_of_packets = !matches!(self.indicator, ObjectiveIndicator::Availability { .. });
        if self.runs.sample == SampleKind::Census
            && is_of_packets
            && let Some((packets, allowed)) = self.packets.zip(self.allowed_share())
        {
            return self.census(packets, allowed);
        }
        let of_loss = self.indicator == ObjectiveIndicator::LossRatio;
        let lost = match self.worst {
            None if !of_loss => format!(", {} lost", share(self.worst_loss_ratio)),
            _ => String::new(),
        };
        let run = match self.runs.runs {
            1 => "",
            _ => "worst run ",
        };
        format!("{run}{}{lost}", self.worst_value())
    }

    /// Returns the value of the worst run in its unit: "5.2 ms", "∞".
    #[must_use]
    pub fn worst_value(&self) -> String {
        self.worst.map_or_else(
            || "∞".to_owned(),
            |worst| objective_value(self.indicator, worst),
        )
    }

    /// "voice within 5 ms for 99.9 % of packets in 34 of 34 runs of storm (95 %: in at least 91 %); worst run 4.1 ms; resolution 0.003 %".
    #[must_use]
    pub fn describe(&self) -> String {
        let resolution = match self.packets {
            Some(packets)
                if self.outcome == Outcome::Holds && self.runs.sample != SampleKind::Census =>
            {
                let resolution = packets.resolution(self.runs.confidence);
                format!("; resolution {}", share(resolution))
            }
            _ => String::new(),
        };
        format!(
            "{}{}; {}{resolution}{}",
            self.claim(),
            self.runs.shown(self.outcome),
            self.measured(),
            self.not_shown(),
        )
    }

    /// Of one capture, its packets and what they say of the time after it: "37 of 1200000 packets lost or late, 1200 allowed; if the load
    /// stays as it is at most 0.004 % (95 %, 42 blocks of 4 s)".
    fn census(&self, packets: PooledShare, allowed: f64) -> String {
        let all = words::count(packets.of, "packet");
        let (beyond, lost) = (packets.beyond, self.lost_words());
        let allowed = (allowed * packets.of as f64).floor();
        let projection = match self.projection {
            None => "too short to project".to_owned(),
            Some(Projection { upper: None, .. }) => {
                "nothing to project: fewer than ten blocks contain one".to_owned()
            }
            Some(Projection {
                upper: Some(upper),
                blocks,
                block_ns,
            }) => format!(
                "if the load stays as it is at most {} ({}, {blocks} blocks of {})",
                share(upper),
                percent(self.runs.confidence),
                words::time(block_ns as f64)
            ),
        };
        format!("{beyond} of {all} {lost}, {allowed} allowed; {projection}")
    }

    const fn lost_words(&self) -> &'static str {
        match self.indicator {
            ObjectiveIndicator::LossRatio => "lost",
            ObjectiveIndicator::Availability { .. } => "not conforming",
            _ => "lost or late",
        }
    }

    /// Why it is not decided: "; still growing by 6 ms in a second: run longer", "; 0 of 3200 packets lost or late, 36889 needed".
    #[must_use]
    pub fn not_shown(&self) -> String {
        if self.outcome != Outcome::Inconclusive {
            return String::new();
        }
        if let Some(growing) = self.growing_per_second {
            return still_growing(growing);
        }
        if let Some(offered) = self.offered.filter(|_| !self.can_be_met) {
            let offered = words::rate(offered);
            let sends_only = match self.indicator {
                ObjectiveIndicator::Goodput => {
                    format!("no more than {offered} is known to be asked for")
                }
                _ => format!("it sends only {offered}"),
            };
            return format!("; {sends_only}: whether it would get more is unknown");
        }
        let repetitions = match self.repetitions_needed {
            Some(needed) => format!("; about {needed} repetitions would decide"),
            None => String::new(),
        };
        let Some(allowed) = self.allowed_share().filter(|_| self.lacks_packets()) else {
            if self.is_beyond_by_being_short() && self.runs.leans_to_broken() {
                return "; runs have too few packets for what is allowed: run longer".to_owned();
            }
            return self.runs.decides(self.repetitions_needed);
        };
        let needed = pooled::packets_needed(allowed, self.runs.confidence);
        let Some(packets) = self.packets else {
            let counted = match self.indicator {
                ObjectiveIndicator::CompletionTime(_) => "flow",
                ObjectiveIndicator::RequestLatency(_) => "request",
                _ => "packet",
            };
            let all = words::count(self.values.unwrap_or(0), counted);
            let needed = needed.unwrap_or(u64::MAX);
            return format!("; {all} in all runs, {needed} needed{repetitions}");
        };
        let shown = match needed.filter(|_| packets.beyond == 0) {
            Some(needed) => format!("{needed} needed"),
            None => format!("which shows at most {}", share(packets.upper)),
        };
        let counted = match self.indicator {
            ObjectiveIndicator::Availability { .. } => "interval",
            _ => "packet",
        };
        let what = self.lost_words();
        let all = words::count(packets.of, counted);
        format!("; {} of {all} {what}, {shown}{repetitions}", packets.beyond)
    }
}

/// A value of an objective in its unit.
#[must_use]
pub fn objective_value(indicator: ObjectiveIndicator, value: f64) -> String {
    match (indicator, indicator.unit()) {
        // 99.9995 % is not all.
        (ObjectiveIndicator::Availability { .. }, _) => {
            format!("{} %", words::digits(value * 100.0, 8))
        }
        (_, Unit::Ratio) => share(value),
        (_, unit) => unit.text(value, 4),
    }
}
