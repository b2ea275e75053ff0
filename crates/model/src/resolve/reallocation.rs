//! Control loops over the rates of classes: what is written, and what of it contradicts the policy.

use crate::rate::LARGEST_FRAME;
use crate::reallocation::{RateLimits, ReallocatedClass, ReallocationParams};
use crate::{CLASS_DEFAULT, ClassSpec, Discipline, PolicySpec, RateSpec};
use slicewise_units::{Accounting, BitRate, Duration};

/// Shortest interval: no controller polls a device more often.
const EVERY_MIN: Duration = Duration::from_millis(1);
/// Shortest interval on a gateway, whose loop waits for its turn on a processor twice in each interval.
const GATEWAY_EVERY_MIN: Duration = Duration::from_millis(10);

/// A class of a loop, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReallocatedClassSpec {
    /// Its name.
    pub name: String,
    /// Rate that it has whenever it wants it. Percentages are of the rate that is divided.
    pub guarantee: RateSpec,
    /// Rate that it has even if it wants less; default one largest frame in each interval, at most the guarantee.
    pub minimum: Option<RateSpec>,
    /// Most that it has; default all.
    pub maximum: Option<RateSpec>,
}

/// A control loop over the rates of classes, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReallocationSpec {
    /// Time between two readings of the counters.
    pub every: Duration,
    /// Time from a reading until the rates decided on it are in force.
    pub delay: Duration,
    /// Rate that is divided; default what the device forwards.
    pub rate: Option<RateSpec>,
    /// Headroom of a class beyond its demand, of the demand, in thousandths of a percent.
    pub headroom: u32,
    /// Weight of the newest demand where demand falls, in thousandths of a percent.
    pub weight: u32,
    /// The classes among which it divides.
    pub classes: Vec<ReallocatedClassSpec>,
}

/// Why a loop cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ReallocationError {
    /// Its class, where the setting is one of a class.
    pub class: Option<String>,
    /// The setting, as named in a study file; `name` where the policy has no such class.
    pub field: &'static str,
    /// Description of the problem, and its remedy.
    pub problem: String,
}

fn fail<T>(field: &'static str, problem: impl Into<String>) -> Result<T, ReallocationError> {
    Err(ReallocationError {
        class: None,
        field,
        problem: problem.into(),
    })
}

impl ReallocationSpec {
    /// Validates it for `policy` on a device that forwards `capacity`.
    ///
    /// # Errors
    /// If a time or rate is out of its range, the guarantees exceed the rate, or `policy` has no class with a rate to set.
    pub fn resolve(
        &self,
        policy: &PolicySpec,
        capacity: BitRate,
    ) -> Result<ReallocationParams, ReallocationError> {
        if self.every < EVERY_MIN {
            let problem = format!("is {}: at least {EVERY_MIN}", self.every);
            return fail("every", problem);
        }
        if self.delay >= self.every {
            let problem = format!(
                "is {}: the rates must be in force before the next reading, {} later",
                self.delay, self.every
            );
            return fail("delay", problem);
        }
        if self.weight == 0 || self.weight > 100_000 {
            return fail("weight", "must be more than 0 % and at most 100 %");
        }
        let rate = self.rate.map_or(Ok(capacity), |rate| rate.of(capacity));
        let rate = rate.or_else(|problem| fail("rate", problem))?;
        if rate > capacity {
            let problem = format!("is {rate}, more than the {capacity} that the device forwards");
            return fail("rate", problem);
        }
        if policy.discipline == Discipline::Guaranteed {
            let problem = "the discipline `guaranteed` gives away what is unused by itself: leave the loop out";
            return fail("reallocate", problem);
        }
        let classes = self.classes.iter().map(|class| {
            let limits = class.resolve(policy, rate, self.every);
            limits.map_err(|(field, problem)| ReallocationError {
                class: Some(class.name.clone()),
                field,
                problem,
            })
        });
        let classes = classes.collect::<Result<Vec<_>, _>>()?;
        check_sum(&classes, rate)?;
        if !self.classes.iter().any(|class| policy.is_limited(class)) {
            let problem = "no class of the loop has a rate that it could set: give one of them `shape` or `police`";
            return fail("classes", problem);
        }
        Ok(ReallocationParams {
            every: self.every,
            delay: self.delay,
            rate,
            headroom: self.headroom,
            weight: self.weight,
            classes,
        })
    }
}

impl ReallocationParams {
    /// Checks that a gateway can carry it out.
    ///
    /// # Errors
    /// If it would read counters too often.
    pub fn check_gateway(&self) -> Result<(), ReallocationError> {
        if self.every >= GATEWAY_EVERY_MIN {
            return Ok(());
        }
        let problem = format!(
            "is {}: at least {GATEWAY_EVERY_MIN} on a gateway, whose loop shares the processor with others",
            self.every
        );
        fail("every", problem)
    }

    /// Returns `policy` with these rates of the classes of the loop, in their order.
    #[must_use]
    pub fn apply(&self, policy: &PolicySpec, rates: &[BitRate]) -> PolicySpec {
        let names = self.classes.iter().map(|class| class.name.as_str());
        policy.with_rates(names.zip(rates.iter().copied()))
    }
}

/// A policy with the control loop that sets rates of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReallocatedPolicy {
    /// The policy as written.
    pub spec: PolicySpec,
    /// The loop.
    pub params: ReallocationParams,
}

/// Guarantees fit in `rate` together.
fn check_sum(classes: &[ReallocatedClass], rate: BitRate) -> Result<(), ReallocationError> {
    let mut left = rate;
    for class in classes {
        let guarantee = class.limits.guarantee;
        if guarantee > left {
            return Err(ReallocationError {
                class: Some(class.name.clone()),
                field: "guarantee",
                problem: format!(
                    "is {guarantee}, but the guarantees before it leave {left} of {rate}: lower one of them"
                ),
            });
        }
        left = left.saturating_sub(guarantee);
    }
    Ok(())
}

impl ReallocatedClassSpec {
    fn resolve(
        &self,
        policy: &PolicySpec,
        rate: BitRate,
        every: Duration,
    ) -> Result<ReallocatedClass, (&'static str, String)> {
        let mut classes = policy.classes.iter();
        match classes.find(|class| class.name == self.name) {
            Some(class) => check_limiter(class)?,
            None if self.name == CLASS_DEFAULT => {}
            None => {
                let problem = format!("there is no class `{}` in this policy", self.name);
                return Err(("name", problem));
            }
        }
        let of = |field, spec: RateSpec| {
            let own = spec
                .of(rate)
                .map_err(|problem| (field, problem.to_owned()))?;
            if own > rate {
                return Err((
                    field,
                    format!("is {own}, more than the {rate} that the loop divides"),
                ));
            }
            Ok(own)
        };
        let guarantee = of("guarantee", self.guarantee)?;
        let maximum = self.maximum.map_or(Ok(rate), |it| of("maximum", it))?;
        if maximum < guarantee {
            let problem = format!("is {maximum}, less than the guarantee of {guarantee}");
            return Err(("maximum", problem));
        }
        let frames = u128::from(LARGEST_FRAME.bits()) * 1_000_000_000;
        let frames = frames.div_ceil(u128::from(every.nanos().max(1)));
        let frames = BitRate::new(u64::try_from(frames).unwrap_or(u64::MAX));
        let minimum = match self.minimum {
            Some(minimum) => of("minimum", minimum)?,
            None => frames.min(guarantee),
        };
        if minimum > guarantee {
            let problem = format!(
                "is {minimum}, more than the guarantee of {guarantee}: what a class always has is guaranteed to it"
            );
            return Err(("minimum", problem));
        }
        Ok(ReallocatedClass {
            name: self.name.clone(),
            limits: RateLimits {
                guarantee,
                minimum,
                maximum,
            },
        })
    }
}

/// The loop can set the rate of the class's shaper and policer, and measures what they count.
fn check_limiter(class: &ClassSpec) -> Result<(), (&'static str, String)> {
    let shape = class.shape.as_ref();
    let police = class.police.as_ref();
    let counts = shape.map(|it| it.accounting).into_iter();
    let mut counts = counts.chain(police.map(|it| it.accounting));
    let problem = if counts.any(|counts| counts != Accounting::L2) {
        "counts other bytes of a frame than the loop, which measures L2: leave `counts` out"
    } else if shape.is_some_and(|shape| shape.peak) {
        "shapes to a peak rate, and a loop sets the average: write the shaper without `peak`"
    } else if police.is_some_and(|police| police.pir.is_some() || police.eir.is_some()) {
        "polices to two rates, and a loop sets one: write the policer without a peak or excess rate"
    } else if police.is_some_and(|police| {
        let mut actions = police.actions().into_iter();
        actions.any(|(_, action)| action.is_some_and(|action| action.queue().is_some()))
    }) {
        "has a policer that chooses queues, whose rate a loop cannot set"
    } else {
        return Ok(());
    };
    Err(("class", format!("class `{}` {problem}", class.name)))
}

impl PolicySpec {
    fn is_limited(&self, class: &ReallocatedClassSpec) -> bool {
        let mut classes = self.classes.iter();
        classes.any(|it| it.name == class.name && (it.shape.is_some() || it.police.is_some()))
    }

    /// The policy with other rates of the shapers and policers of classes, by name. What is written as a time at the rate
    /// (bursts, queue limits, thresholds) follows when it is resolved.
    #[must_use]
    pub fn with_rates<'a>(&self, rates: impl Iterator<Item = (&'a str, BitRate)>) -> Self {
        let mut policy = self.clone();
        for (name, rate) in rates {
            let rate = RateSpec::Absolute(rate);
            for class in policy.classes.iter_mut().filter(|it| it.name == name) {
                class.shape.iter_mut().for_each(|shape| shape.rate = rate);
                class.police.iter_mut().for_each(|police| police.cir = rate);
            }
        }
        policy
    }
}
