//! Objectives of slices.

use super::Checker;
use crate::file::Placed;
use crate::settings;
use crate::spec::{NUMBER, Percent, Scalar, TIME_UNITS};
use serde_json::{Map, Value, json};
use slicewise_stats::objective::{DelayLimit, Objective, Percentile};
use slicewise_units::{BitRate, Duration};

/// The percentile of a delay that states none (ITU-T Y.1541 takes this one for delay variation).
const DEFAULT_PERCENTILE: Percentile = Percentile::P999;
/// Of these there must be one: availability alone is of nothing.
const OF_WHAT: [&str; 4] = ["delay", "delay_variation", "loss", "throughput"];

settings! {
    /// What a slice needs in absolute terms. Isolation is then judged by whether it gets that.
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
        /// Least share of intervals (`measure.bin`) in which all of the above are met.
        availability: PartOfAll = |objective, part| objective.availability = Some(part.0),
    }
}

fn one_is_required(schema: &mut Map<String, Value>) {
    let one = OF_WHAT.map(|key| json!({ "required": [key] }));
    schema.insert("anyOf".to_owned(), one.into_iter().collect());
}

/// A percentage of all there is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PartOfAll(f64);

impl Scalar for PartOfAll {
    const NAME: &'static str = "PercentOfAll";

    fn from_text(text: &str) -> Result<Self, String> {
        Percent::from_text(text)?.of_all().map(Self)
    }

    fn accepted() -> Value {
        json!({
            "type": "string",
            "pattern": "^\\s*0*(100(\\.0+)?|[0-9]{1,2}(\\.[0-9]{1,3}0*)?)\\s*%\\s*$",
            "examples": ["0.1 %"],
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
        if OF_WHAT.iter().all(|key| spec.place(key).is_none()) {
            let message = if spec.place("availability").is_some() {
                "availability is the share of intervals in which the other objectives are met, but there are \
                 none"
            } else {
                "the objective is empty"
            };
            let help = "state at least one of `delay`, `delay_variation`, `loss` and `throughput`";
            self.problems.add_with_help(spec.span, message, help);
        }
        if let Some(at) = spec.place("throughput")
            && let Some(rate) = spec.value.throughput_bits_per_second
            && share > BitRate::ZERO
            && rate > share.bits_per_second()
        {
            let message = format!(
                "an objective of {} is above the slice's share of {share}: it is not judged in scenarios where the \
                 slice sends more",
                BitRate::new(rate)
            );
            self.problems.add(at, message);
        }
        Some(spec.value)
    }
}
