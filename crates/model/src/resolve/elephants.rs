//! Elephants: defaults and contradictions.

use super::{ClassResolver, PolicyError};
use crate::elephants::FOLLOWED_MAX;
use crate::rate::LARGEST_FRAME;
use crate::{Detector, ElephantsParams, ElephantsSpec};
use slicewise_units::{BitRate, Duration, Rounded};

/// How often a controller reads counters: β of Chen et al. (2022).
const READ_EVERY: Duration = Duration::from_secs(3);
/// In the data plane: a flow of three times the rate is found within two intervals and a third.
const INTERVAL: Duration = Duration::from_millis(2);
/// γ of Chen et al. (2022).
const TIMES: u32 = 2;
/// Flows that have a counter each.
const FLOWS: u32 = 16_384;
/// Flows that heavy hitters are sought among.
const HEAVY_HITTERS: u32 = 256;
/// The longest interval.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Most intervals in a row.
const TIMES_MAX: u32 = 1000;

impl ClassResolver<'_> {
    pub(super) fn elephants(&self, spec: &ElephantsSpec) -> Result<ElephantsParams, PolicyError> {
        self.check_queue_of_elephants(&spec.queue)?;
        let link = self.port.rate.rate;
        let rate = self.rate(spec.rate, "elephants.rate")?;
        if rate > link {
            let problem = format!("is {rate}, above the {link} of the link: no flow sends as much");
            return Err(self.error("elephants.rate", problem));
        }
        let (interval, flows) = match spec.detector {
            Detector::Counters => (READ_EVERY, FLOWS),
            Detector::HeavyHitters => (INTERVAL, HEAVY_HITTERS),
        };
        let interval = spec.interval.unwrap_or(interval);
        let (times, flows) = (spec.times.unwrap_or(TIMES), spec.flows.unwrap_or(flows));
        if interval > INTERVAL_MAX {
            let problem = format!("is {interval}: at most {INTERVAL_MAX}");
            return Err(self.error("elephants.interval", problem));
        }
        let threshold = rate.bytes_in(interval);
        if threshold < LARGEST_FRAME {
            let least = rate.time_to_send(LARGEST_FRAME).unwrap_or(INTERVAL_MAX);
            let least = least.rounded_up();
            let problem = format!(
                "is {interval}, in which {rate} is {threshold}: one frame would make a flow an elephant. At least \
                 {least} is needed"
            );
            return Err(self.error("elephants.interval", problem));
        }
        if !(1..=TIMES_MAX).contains(&times) {
            let problem = format!("is {times}: must be 1 to {TIMES_MAX}");
            return Err(self.error("elephants.times", problem));
        }
        self.check_followed(spec.detector, flows, rate)?;
        Ok(ElephantsParams {
            queue: spec.queue.clone(),
            threshold,
            detector: spec.detector,
            interval,
            times,
            flows,
        })
    }

    /// Frames of a flow lie in both queues in order of arrival, which have names so that both can be told.
    fn check_queue_of_elephants(&self, queue: &str) -> Result<(), PolicyError> {
        let fail = |field, problem: String| Err(self.error(field, problem));
        let Some(own) = &self.spec.named_queue else {
            let problem = "the class needs a named queue for its other flows: set `queue`";
            return fail("elephants", problem.to_owned());
        };
        self.check_is_queue("elephants.queue", queue)?;
        if own == queue {
            let problem = format!("`{queue}` is the queue of the class itself: name another");
            return fail("elephants.queue", problem);
        }
        let both = self
            .policy
            .queues
            .iter()
            .filter(|it| it.name == *own || it.name == *queue);
        let mut unfit = both.filter_map(|it| Some((&it.name, it.queue.not_in_order()?)));
        let Some((name, setting)) = unfit.next() else {
            return Ok(());
        };
        let why = match setting {
            "flow_queue" => "has a queue for each flow, so large flows cannot harm others there",
            _ => "takes frames out of their order, so large flows cannot move there",
        };
        let problem = format!("the queue `{name}` {why}: remove either this or its `{setting}`");
        fail("elephants", problem)
    }

    /// Counts of heavy hitters may be too large by what the link sends, divided by their number.
    fn check_followed(
        &self,
        detector: Detector,
        flows: u32,
        rate: BitRate,
    ) -> Result<(), PolicyError> {
        let fail = |problem: String| Err(self.error("elephants.flows", problem));
        if !(1..=FOLLOWED_MAX).contains(&flows) {
            return fail(format!("is {flows}: must be 1 to {FOLLOWED_MAX}"));
        }
        let link = self.port.rate.rate;
        let least = link.bits_per_second().div_ceil(rate.bits_per_second());
        if detector == Detector::HeavyHitters && u64::from(flows) < least {
            return fail(format!(
                "is {flows}, so a count may be too large by {link} / {flows}, which is more than the rate of {rate}: \
                 at least {least} are needed"
            ));
        }
        Ok(())
    }
}
