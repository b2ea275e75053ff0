//! Reallocation of a link's rate among classes by a control loop: settings, and the decision.
//!
//! The decision is generalised max-min fairness: max-min fairness with a minimum and a maximum of each class (Hou, Tzeng,
//! Panwar, "A generalized max-min rate allocation policy and its distributed implementation using the ABR flow control
//! mechanism", IEEE INFOCOM 1998). What no class wants goes back to the guarantees first.

use slicewise_units::{BitRate, Duration};

/// A fraction of 1 in the unit of settings, thousandths of a percent.
const WHOLE: u128 = 100_000;

/// Limits of the rate of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Rate that the class has whenever it wants it; at most `maximum`.
    pub guarantee: BitRate,
    /// Rate that it has even if it wants less; at most `guarantee`.
    pub minimum: BitRate,
    /// Most that it has.
    pub maximum: BitRate,
}

impl RateLimits {
    fn clamp(self, rate: BitRate) -> BitRate {
        rate.max(self.minimum).min(self.maximum)
    }
}

/// Rate that a class wants, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDemand {
    /// Rate that it wants.
    pub wanted: BitRate,
    /// Limits of what it gets.
    pub limits: RateLimits,
}

/// Divides `rate` among classes: first what each wants of its guarantee, then what it wants beyond, then the rest, to the
/// guarantees first. In each step the smallest rates grow together. Rounding leaves less than 1 bit/s of each class.
///
/// The sum is at most `rate` if the guarantees are. O(n log `rate`).
#[must_use]
pub fn allocate(rate: BitRate, demands: &[RateDemand]) -> Vec<BitRate> {
    let mut rates = vec![BitRate::ZERO; demands.len()];
    let wanted = |demand: &RateDemand| demand.limits.clamp(demand.wanted);
    let steps: [&dyn Fn(&RateDemand) -> BitRate; 4] = [
        &|demand| wanted(demand).min(demand.limits.guarantee),
        &wanted,
        &|demand| wanted(demand).max(demand.limits.guarantee),
        &|demand| demand.limits.maximum,
    ];
    for cap in steps {
        let caps: Vec<BitRate> = demands.iter().map(cap).collect();
        raise(&mut rates, &caps, rate);
    }
    rates
}

/// Raises the smallest rates together, each up to its cap, until their sum is `sum`.
fn raise(rates: &mut [BitRate], caps: &[BitRate], sum: BitRate) {
    let raised = |level: BitRate, rate: BitRate, cap: BitRate| level.min(cap).max(rate);
    let sum_at = |level: u64| -> u128 {
        let rates = rates.iter().zip(caps);
        let rates = rates.map(|(rate, cap)| raised(BitRate::new(level), *rate, *cap));
        rates.map(|rate| u128::from(rate.bits_per_second())).sum()
    };
    // The largest level at which they fit.
    let (mut fits, mut beyond) = (0, sum.bits_per_second().saturating_add(1));
    while beyond - fits > 1 {
        let level = fits + (beyond - fits) / 2;
        if sum_at(level) <= u128::from(sum.bits_per_second()) {
            fits = level;
        } else {
            beyond = level;
        }
    }
    for (rate, cap) in rates.iter_mut().zip(caps) {
        *rate = raised(BitRate::new(fits), *rate, *cap);
    }
}

/// A class of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReallocatedClass {
    /// Its name: a class of the policy, not of a child.
    pub name: String,
    /// Limits of its rate.
    pub limits: RateLimits,
}

/// A validated control loop over the rates of classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReallocationParams {
    /// Time between two readings of the counters. Not zero.
    pub every: Duration,
    /// Time from a reading until the rates decided on it are in force, less than `every`.
    pub delay: Duration,
    /// Rate that is divided, L2 without FCS.
    pub rate: BitRate,
    /// Headroom of a class beyond its demand, of the demand, in thousandths of a percent.
    pub headroom: u32,
    /// Weight of the newest demand where demand falls, in thousandths of a percent; 1 to 100,000.
    pub weight: u32,
    /// Its classes. Those with a shaper or policer get their rates, the others are measured alone.
    pub classes: Vec<ReallocatedClass>,
}

impl ReallocationParams {
    /// Estimate of a demand that was `before` and is `measured` now: a rise counts at once, a fall with the weight.
    #[must_use]
    pub fn estimate(&self, before: BitRate, measured: BitRate) -> BitRate {
        let fall = u128::from(before.saturating_sub(measured).bits_per_second());
        // Rounded up, to arrive.
        let fall = (fall * u128::from(self.weight)).div_ceil(WHOLE);
        let fall = BitRate::new(u64::try_from(fall).unwrap_or(u64::MAX));
        before.saturating_sub(fall).max(measured)
    }

    /// Rates of the classes, in their order, for these estimates of their demands.
    #[must_use]
    pub fn decide(&self, estimates: &[BitRate]) -> Vec<BitRate> {
        let with_headroom = |estimate: BitRate| {
            let whole = u64::try_from(WHOLE).unwrap_or(u64::MAX);
            estimate.scaled(whole + u64::from(self.headroom), whole)
        };
        let classes = self.classes.iter().zip(estimates);
        let demands: Vec<RateDemand> = classes
            .map(|(class, estimate)| RateDemand {
                wanted: with_headroom(*estimate),
                limits: class.limits,
            })
            .collect();
        allocate(self.rate, &demands)
    }
}

impl std::fmt::Display for ReallocationParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |thousandths: u32| f64::from(thousandths) / 1_000.0;
        let delay = match self.delay {
            Duration::ZERO => "at once".to_owned(),
            delay => format!("after {delay}"),
        };
        write!(
            f,
            "reallocated every {} among its classes, in force {delay}: {}, headroom {} %, weight {} %",
            self.every,
            self.rate,
            percent(self.headroom),
            percent(self.weight)
        )?;
        self.classes.iter().try_for_each(|class| {
            let RateLimits {
                guarantee,
                minimum,
                maximum,
            } = class.limits;
            let name = &class.name;
            write!(
                f,
                "\n  {name}: guarantee {guarantee}, minimum {minimum}, maximum {maximum}"
            )
        })
    }
}
