//! From what a user wrote to what a data plane can run: defaults filled in, contradictions refused.
//!
//! Defaults follow Cisco IOS XE, because that is what the studied policies left to default; each
//! constant names where it comes from.

use crate::policy::{BurstSpec, ClassParams, ClassSpec, Discipline, PolicyParams, PolicySpec, RateSpec};
use crate::{
    Action, CLASS_DEFAULT, MeterAlgorithm, PolicerParams, PolicerSpec, PriorityParams,
    PrioritySpec, QueueLimitParams, QueueLimitSpec, Rate, RedCurve, ShaperParams, ShaperSpec,
    WredKey, WredParams, WredSpec,
};
use slicewise_units::{BitRate, ByteCount, Duration};

/// The largest frame a burst must hold: 1500 B of payload, Ethernet header and two VLAN tags.
const LARGEST_FRAME: ByteCount = ByteCount::new(1522);
/// Time at the rate that a shaper's Bc covers by default (IOS XE: Tc of 4 ms).
const SHAPER_BURST: Duration = Duration::from_millis(4);
/// Time at the rate that a policer's burst covers by default (IOS: CIR / 32 bytes).
const POLICER_BURST: Duration = Duration::from_millis(250);
/// Time at the rate that a priority class's conditional policer covers by default (IOS: 200 ms).
const PRIORITY_BURST: Duration = Duration::from_millis(200);
/// Time at its rate that a queue holds by default (IOS XE: 50 ms of 1500 B packets).
const QUEUE_TIME: Duration = Duration::from_millis(50);
/// The packet size IOS XE divides by to get a default queue limit.
const QUEUE_PACKET: ByteCount = ByteCount::new(1500);
/// Fewest packets a default queue limit allows (IOS XE).
const QUEUE_PACKETS_MIN: u64 = 64;
/// Default limit of a priority queue, packets (IOS XE).
const PRIORITY_QUEUE_PACKETS: u32 = 512;
/// Default weight exponent of the WRED average (IOS).
const WRED_EXPONENT: u8 = 9;
/// Default mark probability denominator of WRED (IOS).
const WRED_MARK_DENOMINATOR: u32 = 10;
/// Levels of nesting allowed: link, tenant, slice, class and one to spare.
const MAX_DEPTH: usize = 5;

/// Why a policy cannot be run: which class, which setting, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy `{policy}`, class `{class}`: {field}: {problem}")]
pub struct PolicyError {
    /// The policy.
    pub policy: String,
    /// The class.
    pub class: String,
    /// The setting, in the words of a study file: `shape`, `priority`, `minimum` …
    pub field: &'static str,
    /// What is wrong and what to do.
    pub problem: String,
}

impl PolicySpec {
    /// Validate for a link (or parent class) of rate `link` and fill in the defaults.
    ///
    /// # Errors
    /// Where the guarantees do not fit in `link`, a guarantee exceeds its maximum, a rate or a
    /// weight is zero, settings contradict each other, or a class is named twice.
    pub fn resolve(&self, link: BitRate) -> Result<PolicyParams, PolicyError> {
        self.resolve_at(link, link, 1)
    }

    /// [`resolve`](Self::resolve) for a device that forwards less than its port could: percentages
    /// and default queue limits refer to the `port`, as the device's software computes them, but
    /// guarantees must fit in `admissible`, for instance a licensed rate.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn resolve_admissible(
        &self,
        port: BitRate,
        admissible: BitRate,
    ) -> Result<PolicyParams, PolicyError> {
        self.resolve_at(port, admissible.min(port), 1)
    }

    fn resolve_at(
        &self,
        link: BitRate,
        admissible: BitRate,
        depth: usize,
    ) -> Result<PolicyParams, PolicyError> {
        let fail = |class: &str, field, problem: String| {
            Err(PolicyError { policy: self.name.clone(), class: class.to_owned(), field, problem })
        };
        if depth > MAX_DEPTH {
            return fail(CLASS_DEFAULT, "child", format!("nested deeper than {MAX_DEPTH} levels"));
        }
        let mut specs: Vec<&ClassSpec> =
            self.classes.iter().filter(|c| c.name != CLASS_DEFAULT).collect();
        let implicit = ClassSpec::class_default();
        let mut defaults = self.classes.iter().filter(|c| c.name == CLASS_DEFAULT);
        specs.push(defaults.next().unwrap_or(&implicit));
        if defaults.next().is_some() {
            return fail(CLASS_DEFAULT, "classes", "is there twice".into());
        }
        let mut classes = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            if specs[..index].iter().any(|other| other.name == spec.name) {
                return fail(&spec.name, "classes", "is there twice".into());
            }
            if spec.matches.is_none() && spec.name != CLASS_DEFAULT {
                return fail(&spec.name, "match", "has no class map".into());
            }
            let resolver = ClassResolver { policy: self, spec, link, admissible, depth };
            classes.push(resolver.class()?);
        }
        let params = PolicyParams { name: self.name.clone(), classes, discipline: self.discipline };
        self.check_sums(&params, admissible)?;
        Ok(params)
    }

    /// Guarantees, of priority and of minimum, must fit together in the parent's rate.
    fn check_sums(&self, params: &PolicyParams, link: BitRate) -> Result<(), PolicyError> {
        let mut sum: u128 = 0;
        for class in &params.classes {
            let priority = class.priority.and_then(|p| p.police).map(|(rate, _)| rate.rate);
            let minimum = class.minimum.map(|(rate, _)| rate.rate);
            for (rate, field) in [(priority, "priority"), (minimum, "minimum")] {
                let Some(rate) = rate else { continue };
                sum += u128::from(rate.bits_per_second());
                if sum > u128::from(link.bits_per_second()) {
                    return Err(PolicyError {
                        policy: self.name.clone(),
                        class: class.name.clone(),
                        field,
                        problem: format!(
                            "with {rate} for this class the guarantees add up to {}, more than \
                             the {link} there is: lower one of them",
                            BitRate::new(u64::try_from(sum).unwrap_or(u64::MAX)),
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}

struct ClassResolver<'a> {
    policy: &'a PolicySpec,
    spec: &'a ClassSpec,
    link: BitRate,
    admissible: BitRate,
    depth: usize,
}

impl ClassResolver<'_> {
    fn error(&self, field: &'static str, problem: impl Into<String>) -> PolicyError {
        PolicyError {
            policy: self.policy.name.clone(),
            class: self.spec.name.clone(),
            field,
            problem: problem.into(),
        }
    }

    fn class(&self) -> Result<ClassParams, PolicyError> {
        let spec = self.spec;
        self.check_combination()?;
        let shape = spec.shape.map(|s| self.shaper(s)).transpose()?;
        let minimum = spec.minimum.map(|m| self.rate(m, "minimum")).transpose()?;
        if let (Some(minimum), Some(shape)) = (minimum, shape)
            && minimum > shape.rate.rate
        {
            return Err(self.error(
                "minimum",
                format!(
                    "guarantees {minimum}, above the maximum of {} its shaper sets",
                    shape.rate.rate
                ),
            ));
        }
        let minimum = minimum.map(|rate| {
            let burst = rate.bytes_in(SHAPER_BURST).max(LARGEST_FRAME + LARGEST_FRAME);
            (Rate::l2(rate), burst)
        });
        let priority = spec.priority.map(|p| self.priority(p)).transpose()?;
        let own_rate = shape
            .map(|s| s.rate.rate)
            .or(minimum.map(|(m, _)| m.rate))
            .unwrap_or(self.link);
        let queue_limit = self.queue_limit(own_rate)?;
        if spec.weight == Some(0) {
            return Err(self.error("weight", "is 0: a class needs a weight of at least 1"));
        }
        if spec.set_dscp.is_some_and(|dscp| dscp > 63) {
            return Err(self.error("set_dscp", "is above 63, the largest code point"));
        }
        let child = spec
            .child
            .as_deref()
            .map(|child| {
                let rate = shape.map_or(self.link, |s| s.rate.rate);
                child.resolve_at(rate, rate.min(self.admissible), self.depth + 1).map(Box::new)
            })
            .transpose()?;
        Ok(ClassParams {
            name: spec.name.clone(),
            matches: spec.matches.clone(),
            police: spec.police.as_ref().map(|p| self.policer(p)).transpose()?,
            set_dscp: spec.set_dscp,
            priority,
            minimum,
            weight: spec.weight.unwrap_or(1),
            shape,
            queue_limit,
            wred: spec
                .wred
                .as_ref()
                .map(|w| self.wred(w, queue_limit, own_rate))
                .transpose()?,
            child,
        })
    }

    /// Settings that exclude each other.
    fn check_combination(&self) -> Result<(), PolicyError> {
        let spec = self.spec;
        if spec.priority.is_some() {
            let excluded = [
                ("minimum", spec.minimum.is_some()),
                ("weight", spec.weight.is_some()),
                ("shape", spec.shape.is_some()),
                ("wred", spec.wred.is_some()),
                ("child", spec.child.is_some()),
            ];
            if let Some((field, _)) = excluded.into_iter().find(|(_, set)| *set) {
                return Err(self.error(
                    field,
                    "cannot be set on a priority class: it is served before everything else",
                ));
            }
        }
        if spec.child.is_some() && (spec.queue_limit.is_some() || spec.wred.is_some()) {
            return Err(self.error(
                "child",
                "a class divided by a child policy has no queue of its own: set the queue limit \
                 or WRED on the child's classes",
            ));
        }
        match self.policy.discipline {
            Discipline::DeficitRoundRobin if spec.minimum.is_some() => Err(self.error(
                "minimum",
                "deficit round robin shares by weight alone: set `weight`, or use the discipline \
                 `minimum_share`",
            )),
            Discipline::Fifo
                if spec.minimum.is_some()
                    || spec.weight.is_some()
                    || spec.shape.is_some()
                    || spec.priority.is_some()
                    || spec.child.is_some() =>
            {
                Err(self.error(
                    "discipline",
                    "one FIFO for all classes has no rate, weight or priority by class",
                ))
            }
            _ => Ok(()),
        }
    }

    fn rate(&self, spec: RateSpec, field: &'static str) -> Result<BitRate, PolicyError> {
        let rate = match spec {
            RateSpec::Absolute(rate) => rate,
            RateSpec::PercentMilli(0) => return Err(self.error(field, "is 0 %")),
            RateSpec::PercentMilli(share) if share > 100_000 => {
                return Err(self.error(field, "is more than 100 %"));
            }
            RateSpec::PercentMilli(share) => self.link.scaled(u64::from(share), 100_000),
        };
        if rate == BitRate::ZERO {
            return Err(self.error(field, "is a rate of zero: nothing could ever pass"));
        }
        Ok(rate)
    }

    fn shaper(&self, spec: ShaperSpec) -> Result<ShaperParams, PolicyError> {
        let rate = self.rate(spec.rate, "shape")?;
        let bc = match spec.committed_burst_bits {
            Some(0) => return Err(self.error("shape", "has a committed burst of zero")),
            Some(bits) => bits,
            None => rate.bytes_in(SHAPER_BURST).bits().max(1),
        };
        let be = spec.excess_burst_bits.unwrap_or(if spec.peak { bc } else { 0 });
        let total = bc.saturating_add(be);
        let rate = if spec.peak { rate.scaled(total, bc) } else { rate };
        Ok(ShaperParams {
            rate: Rate { rate, accounting: spec.accounting },
            burst: ByteCount::new(total / 8).max(LARGEST_FRAME),
            priority_borrows: false,
        })
    }

    fn priority(&self, spec: PrioritySpec) -> Result<PriorityParams, PolicyError> {
        if spec.level == 0 {
            return Err(self.error("priority", "level 0 does not exist: 1 is served first"));
        }
        let police = match spec.rate {
            None => None,
            Some(rate) => {
                let rate = self.rate(rate, "priority")?;
                let burst = spec.burst.unwrap_or_else(|| rate.bytes_in(PRIORITY_BURST));
                let rate = Rate { rate, accounting: spec.accounting };
                Some((rate, burst.max(LARGEST_FRAME)))
            }
        };
        Ok(PriorityParams { level: spec.level, police })
    }

    fn policer(&self, spec: &PolicerSpec) -> Result<PolicerParams, PolicyError> {
        let rate = |r| {
            self.rate(r, "police").map(|rate| Rate { rate, accounting: spec.accounting })
        };
        let burst_of = |burst: Option<BurstSpec>, rate: Rate| {
            burst.unwrap_or(BurstSpec::Time(POLICER_BURST)).size(rate.rate)
        };
        let cir = rate(spec.cir)?;
        let cbs = burst_of(spec.cbs, cir);
        // An action beyond the excess burst asks for one: as large as the committed burst (IOS).
        let single_rate = spec.pir.is_none() && spec.eir.is_none();
        let ebs = spec.ebs.map(|ebs| burst_of(Some(ebs), cir));
        let ebs = ebs.or((single_rate && spec.violate.is_some()).then_some(cbs));
        let algorithm = match (spec.pir, spec.eir, ebs) {
            (Some(_), Some(_), _) => {
                return Err(self.error(
                    "police",
                    "has both `pir` (RFC 2698) and `eir` (RFC 4115): keep one",
                ));
            }
            (Some(_), None, Some(_)) => {
                return Err(self.error(
                    "police",
                    "has both `pir` and an excess burst: a two-rate meter takes `pbs`",
                ));
            }
            (Some(pir), None, None) => {
                let pir = rate(pir)?;
                if pir.rate < cir.rate {
                    return Err(self.error(
                        "police",
                        format!("peak rate {} is below the committed rate {}", pir.rate, cir.rate),
                    ));
                }
                let pbs = burst_of(spec.pbs, pir);
                MeterAlgorithm::TwoRateThreeColour { cir, cbs, pir, pbs }
            }
            (None, Some(eir), _) => {
                let eir = rate(eir)?;
                let ebs = burst_of(spec.ebs, eir);
                MeterAlgorithm::TwoRateThreeColourEfficient { cir, cbs, eir, ebs }
            }
            (None, None, Some(ebs)) => MeterAlgorithm::SingleRateThreeColour { cir, cbs, ebs },
            (None, None, None) => MeterAlgorithm::SingleRateTwoColour { cir, cbs },
        };
        if cbs == ByteCount::ZERO {
            return Err(self.error("police", "has a burst of zero: no packet would ever conform"));
        }
        let exceed = spec.exceed.unwrap_or(Action::Drop);
        let violate = spec.violate.unwrap_or(exceed);
        let two_colours = matches!(algorithm, MeterAlgorithm::SingleRateTwoColour { .. });
        Ok(PolicerParams {
            algorithm,
            mode: spec.mode,
            conform: spec.conform.unwrap_or(Action::Transmit),
            exceed,
            violate: if two_colours { exceed } else { violate },
        })
    }

    fn queue_limit(&self, rate: BitRate) -> Result<QueueLimitParams, PolicyError> {
        let unlimited = ByteCount::new(u64::MAX);
        match self.spec.queue_limit {
            Some(QueueLimitSpec::Packets(0)) => {
                Err(self.error("queue_limit", "is 0: no packet could ever wait"))
            }
            Some(QueueLimitSpec::Packets(packets)) => {
                Ok(QueueLimitParams { packets, bytes: unlimited })
            }
            Some(QueueLimitSpec::Bytes(bytes)) => self.byte_limit(bytes),
            Some(QueueLimitSpec::Time(time)) => self.byte_limit(rate.bytes_in(time)),
            None if self.spec.priority.is_some() => {
                Ok(QueueLimitParams { packets: PRIORITY_QUEUE_PACKETS, bytes: unlimited })
            }
            None => {
                let packets = rate.bytes_in(QUEUE_TIME).bytes() / QUEUE_PACKET.bytes();
                let packets = u32::try_from(packets.max(QUEUE_PACKETS_MIN)).unwrap_or(u32::MAX);
                Ok(QueueLimitParams { packets, bytes: unlimited })
            }
        }
    }

    fn byte_limit(&self, bytes: ByteCount) -> Result<QueueLimitParams, PolicyError> {
        if bytes < LARGEST_FRAME {
            return Err(self.error(
                "queue_limit",
                format!("holds {bytes}, less than one largest frame ({LARGEST_FRAME})"),
            ));
        }
        // The smallest Ethernet frame without FCS is 60 bytes: more packets cannot fit.
        let packets = u32::try_from(bytes.bytes() / 60 + 1).unwrap_or(u32::MAX);
        Ok(QueueLimitParams { packets, bytes })
    }

    fn wred(
        &self,
        spec: &WredSpec,
        limit: QueueLimitParams,
        rate: BitRate,
    ) -> Result<WredParams, PolicyError> {
        let exponential_weight = spec.exponential_weight.unwrap_or(WRED_EXPONENT);
        if !(1..=16).contains(&exponential_weight) {
            return Err(self.error("wred", "has a weight exponent outside 1 to 16"));
        }
        let mut curves: Vec<RedCurve> =
            (0..64u32).map(|dscp| default_curve(limit.packets, dscp >> 3)).collect();
        for &(value, curve) in &spec.curves {
            let (first, count) = match spec.key {
                WredKey::Dscp => (usize::from(value), 1),
                WredKey::Precedence => (usize::from(value) * 8, 8),
            };
            if curve.min_packets > curve.max_packets || curve.max_packets == 0 {
                return Err(self.error(
                    "wred",
                    format!(
                        "curve of {value}: needs 0 ≤ min ≤ max and max ≥ 1, has {} and {}",
                        curve.min_packets, curve.max_packets
                    ),
                ));
            }
            if curve.mark_denominator == 0 {
                return Err(self.error("wred", format!("curve of {value}: denominator is 0")));
            }
            let Some(range) = curves.get_mut(first..first + count) else {
                return Err(self.error("wred", format!("there is no code point {value}")));
            };
            range.fill(curve);
        }
        let typical_transmission = rate.time_to_send(QUEUE_PACKET).unwrap_or(Duration::MAX);
        Ok(WredParams { curves, exponential_weight, typical_transmission })
    }
}

/// IOS XE's default curve: drop everything from half the queue on, start between a quarter and
/// nearly half of it, later for higher precedence.
fn default_curve(queue_packets: u32, precedence: u32) -> RedCurve {
    let max = (queue_packets / 2).max(2);
    let min = u64::from(max) * u64::from(8 + precedence) / 16;
    RedCurve {
        min_packets: u32::try_from(min).unwrap_or(max).clamp(1, max),
        max_packets: max,
        mark_denominator: WRED_MARK_DENOMINATOR,
    }
}
