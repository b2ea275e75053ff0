//! Objectives of slices.

use super::{Checker, StudySpec};
use crate::file::Placed;
use crate::params::{ApplicationParams, ScenarioParams};
use crate::spec::{NUMBER, Percent, Scalar, TIME_UNITS, percent_digits, scalars};
use crate::{problem, settings};
use serde_json::{Map, Value, json};
use slicewise_stats::objective::{ConformingIntervals, DelayLimit, Objective, Percentile};
use slicewise_units::{BitRate, Duration};

/// The percentile of a delay that states none (ITU-T Y.1541 takes this one for delay variation).
const DEFAULT_PERCENTILE: Percentile = Percentile::P999;
/// Objectives with a value in each interval: availability refers to these, and needs one of them.
const OF_INTERVALS: [&str; 5] = ["delay", "delay_variation", "loss", "throughput", "goodput"];
/// Objectives with a value only at the end of a flow or request.
const OF_ENDS: [&str; 2] = ["completion_time", "request_latency"];
type IsOne = fn(&ApplicationParams) -> bool;
/// Objectives of applications, and the source that each needs.
const OF_APPLICATIONS: [(&str, &str, IsOne); 3] = [
    ("goodput", "an application", |_| true),
    (
        "completion_time",
        "an application `short_flows`, or `bulk` with `bytes`",
        has_flows,
    ),
    ("request_latency", "an application `requests`", has_requests),
];

settings! {
    /// Objectives of a slice in absolute terms. Isolation is then judged by whether it meets them.
    impl Objective as "ObjectiveSpec" = Self::default(); schema one_is_required; {
        /// Largest one-way delay, at a percentile: `5 ms at 99 %`. Without one, at 99.9 %.
        delay,
        /// Largest packet delay variation (RFC 5481: delay less the smallest), at a percentile. Without
        /// one, at 99.9 %.
        delay_variation,
        /// Largest loss, in percent of all packets.
        loss: PartOfAll = |objective, part| objective.loss_ratio = Some(part.0),
        /// Least rate received, of L2 frames without FCS.
        throughput: BitRate = |objective, rate| objective.throughput_bits_per_second = Some(rate.bits_per_second()),
        /// Least goodput of the slice's applications together.
        goodput: BitRate = |objective, rate| objective.goodput_bits_per_second = Some(rate.bits_per_second()),
        /// Longest completion time of flows, at a percentile: `2 s at 99 %`. Without one, at 99.9 %.
        completion_time,
        /// Longest latency of requests, from when they are due, at a percentile. Without one, at 99.9 %.
        request_latency,
        /// Least share of intervals in which `delay`, `delay_variation`, `loss`, `throughput` and `goodput` are met, as far as stated, and
        /// their length: `99.9 % of 10 s`. Without one, of 1 s.
        availability,
    }
}

fn one_is_required(schema: &mut Map<String, Value>) {
    let of_intervals = OF_INTERVALS.map(|key| json!({ "required": [key] }));
    let of_ends =
        OF_ENDS.map(|key| json!({ "required": [key], "not": { "required": ["availability"] } }));
    let one = of_intervals.into_iter().chain(of_ends).collect();
    schema.insert("anyOf".to_owned(), one);
}

/// Returns true if its requests have latencies.
pub(super) const fn has_requests(application: &ApplicationParams) -> bool {
    matches!(application, ApplicationParams::Requests(_))
}

/// Returns true if its flows have an end.
pub(super) const fn has_flows(application: &ApplicationParams) -> bool {
    match application {
        ApplicationParams::ShortFlows(_) => true,
        ApplicationParams::Bulk(bulk) => bulk.bytes.is_some(),
        _ => false,
    }
}

/// A percentage of all there is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PartOfAll(f64);

/// A percentage of all there is: seven digits after the point, as losses of 10⁻⁷ and less are asked for.
const PART: &str = r"0*(100(\.0+)?|[0-9]{1,2}(\.[0-9]{1,7}0*)?)\s*%";

scalars! {
    PartOfAll as "PercentOfAll": part_of_all, accepting json!({
        "type": "string",
        "pattern": format!(r"^\s*{PART}\s*$"),
        "examples": ["0.1 %", "0.00001 %"],
    });
}

fn part_of_all(text: &str) -> Result<PartOfAll, String> {
    let billionths: u64 = percent_digits(text, 7)?;
    match billionths {
        0..=1_000_000_000 => Ok(PartOfAll(billionths as f64 / 1e9)),
        _ => Err("this is more than 100 %".to_owned()),
    }
}

impl Scalar for ConformingIntervals {
    const NAME: &'static str = "ConformingIntervals";

    fn from_text(text: &str) -> Result<Self, String> {
        let (part, length) = match text.split_once(" of ") {
            Some((part, length)) => (part, Duration::from_text(length.trim())?.nanos()),
            None => (text, Self::LENGTH_NS),
        };
        if length == 0 {
            return Err("an interval must have a length".to_owned());
        }
        Ok(Self {
            share: part_of_all(part)?.0,
            length_ns: length,
        })
    }

    fn accepted() -> Value {
        json!({
            "type": "string",
            // Some digit of the length is not 0.
            "pattern": format!(r"^\s*{PART}(\s* of (?=[0-9_.\s]*[1-9])\s*{NUMBER}\s*({TIME_UNITS}))?\s*$"),
            "examples": ["99.9 %", "99.9 % of 1 s"],
        })
    }
}

impl Scalar for DelayLimit {
    const NAME: &'static str = "DelayLimit";

    fn from_text(text: &str) -> Result<Self, String> {
        let (delay, at) = match text.split_once(" at ") {
            Some((delay, at)) => (delay, percentile(at)?),
            None => (text, DEFAULT_PERCENTILE),
        };
        let limit = Duration::from_text(delay.trim())?;
        if limit == Duration::ZERO {
            return Err("a delay of zero cannot be met".to_owned());
        }
        Ok(Self {
            limit_ns: limit.nanos(),
            at,
        })
    }

    fn accepted() -> Value {
        let percentiles = "\\s*(0*(50|90|95|99|100)(\\.0+)?|0*99\\.(9|99|999)0*)\\s*%";
        json!({
            "type": "string",
            // Some digit of the delay is not 0.
            "pattern": format!("^(?=[0-9_.\\s]*[1-9])\\s*{NUMBER}\\s*({TIME_UNITS})(\\s* at {percentiles})?\\s*$"),
            "examples": ["5 ms at 99 %", "2 ms"],
        })
    }
}

fn percentile(text: &str) -> Result<Percentile, String> {
    let percent = Percent::from_text(text)?;
    let found = Percentile::ALL
        .iter()
        .find(|p| p.per_100_000() == percent.0);
    found.copied().ok_or_else(|| {
        let known: Vec<String> = Percentile::ALL.iter().map(ToString::to_string).collect();
        format!(
            "`{}` is not a measured percentile: use one of {}",
            text.trim(),
            known.join(", ")
        )
    })
}

impl Checker<'_> {
    /// The objectives of a slice whose share is `share`; zero where that is not known.
    pub(super) fn objective(
        &mut self,
        spec: Option<&Placed<Objective>>,
        share: BitRate,
    ) -> Option<Objective> {
        let spec = spec?;
        let has_intervals = OF_INTERVALS.iter().any(|key| spec.place(key).is_some());
        if !has_intervals && spec.place("availability").is_some() {
            problem!(self.problems, spec.span => "availability is the share of intervals in which other objectives are \
                met, but there are none that have a value in each interval";
                "state at least one of `delay`, `delay_variation`, `loss`, `throughput` and `goodput`");
        } else if !has_intervals && OF_ENDS.iter().all(|key| spec.place(key).is_none()) {
            problem!(self.problems, spec.span => "the objective is empty";
                "state at least one of `delay`, `delay_variation`, `loss`, `throughput`, `goodput`, `completion_time` \
                and `request_latency`");
        }
        let rates = [
            ("throughput", spec.value.throughput_bits_per_second),
            ("goodput", spec.value.goodput_bits_per_second),
        ];
        for (key, rate) in rates {
            if let Some(at) = spec.place(key)
                && let Some(rate) = rate
                && share > BitRate::ZERO
                && rate > share.bits_per_second()
            {
                problem!(self.problems, at => "an objective of {} is above the slice's share of {share}: nothing \
                    promises it more than its share", BitRate::new(rate));
            }
        }
        Some(spec.value)
    }

    /// Checks that objectives of applications are set only for slices that have such applications in a scenario.
    pub(super) fn check_objectives_of_applications(
        &mut self,
        spec: &StudySpec,
        scenarios: &[ScenarioParams],
    ) {
        // A source that could not be read may have the application.
        let are_all_read = scenarios.len() == self.entries_at(&["scenarios"]).len();
        if !are_all_read || scenarios.iter().any(|s| self.misses_source(s)) {
            return;
        }
        for (place, (name, slice)) in spec.slices.iter().enumerate() {
            let Some(objective) = &slice.value.objective else {
                continue;
            };
            let sources = || scenarios.iter().flat_map(|scenario| &scenario.applications);
            let has = |is_one: IsOne| {
                sources().any(|source| source.slice == place && is_one(&source.application))
            };
            for (key, needed, is_one) in OF_APPLICATIONS {
                if let Some(at) = objective.place(key)
                    && !has(is_one)
                {
                    problem!(self.problems, at => "no source of slice `{}` has {needed}, so that there is nothing to \
                        judge by this", name.value);
                }
            }
        }
    }

    /// Captures do not show what applications got.
    pub(super) fn refuse_objectives_of_applications(&mut self, spec: Option<&Placed<Objective>>) {
        for (key, _, _) in OF_APPLICATIONS {
            if let Some(at) = spec.and_then(|spec| spec.place(key)) {
                problem!(self.problems, at => "captures do not show what applications got: only studies that run can \
                    be judged by this";
                    "state `throughput`, `delay` or `loss` of the slice's packets instead");
            }
        }
    }
}
