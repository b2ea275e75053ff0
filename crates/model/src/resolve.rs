//! Turns what a user wrote into what a data plane can run: fills in defaults, rejects contradictions.
//!
//! Defaults follow Cisco IOS XE, because the studied policies relied on its defaults; each constant
//! names its origin.

mod elephants;
mod guaranteed;
mod hqos;
mod named_queue;
mod policer;
mod reallocation;

pub use reallocation::{
    ReallocatedClassSpec, ReallocatedPolicy, ReallocationError, ReallocationSpec,
};

use crate::class_map::MAX_DSCP;
use crate::policy::{ClassParams, ClassSpec, Discipline, PolicyParams, PolicySpec};
use crate::queue::Refusal;
use crate::rate::{LARGEST_FRAME, largest_frame};
use crate::{
    CLASS_DEFAULT, PriorityParams, PrioritySpec, QueueLimitParams, Rate, RateSpec, ShaperParams,
    ShaperSpec,
};
use guaranteed::Shared;
use slicewise_units::{BitRate, ByteCount, Duration};
use std::collections::BTreeSet;

/// Time at the rate that a shaper's Bc covers by default (IOS XE: Tc of 4 ms).
const SHAPER_BURST: Duration = Duration::from_millis(4);
/// Time at the rate that a priority class's conditional policer covers by default (IOS: 200 ms).
const PRIORITY_BURST: Duration = Duration::from_millis(200);
/// Most levels of nesting: link, tenant, slice, class and one spare.
const MAX_DEPTH: usize = 5;
/// Most levels of strict priority in one policy.
pub const MAX_PRIORITY_LEVELS: usize = 63;

/// Why a policy cannot run: class, setting, and problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy `{policy}`, {part} `{class}`: {field}: {problem}")]
pub struct PolicyError {
    /// The policy.
    pub policy: String,
    /// Which part of it.
    pub part: Part,
    /// The class or named queue.
    pub class: String,
    /// The setting, as named in a study file: `shape`, `priority`, `police.exceed` …
    pub field: &'static str,
    /// Description of the problem, and its remedy.
    pub problem: String,
}

/// Part of a policy that a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A class.
    Class,
    /// A named queue.
    Queue,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Class => "class",
            Self::Queue => "queue",
        })
    }
}

/// The port a policy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortParams {
    /// Its rate, and which bytes of a frame occupy it: percentages and default queue limits refer to it,
    /// as in the software of a device.
    pub rate: Rate,
    /// The rate that may be guaranteed: lower if the device forwards less than its port could, for
    /// instance with a licensed rate; else the same.
    pub admissible: Rate,
    /// After a packet that a full queue has dropped, none is admitted before the queue is shorter by so many packets; 0:
    /// as soon as there is room.
    pub hysteresis: u32,
}

impl From<Rate> for PortParams {
    fn from(rate: Rate) -> Self {
        Self {
            rate,
            admissible: rate,
            hysteresis: 0,
        }
    }
}

impl PolicySpec {
    /// Validate for a link (or parent class) of rate `link`, which counts whole frames without
    /// FCS, and fill in the defaults.
    ///
    /// # Errors
    /// If the guarantees do not fit in `link`, a guarantee exceeds its maximum, a rate or a
    /// weight is zero, settings contradict each other, a class is defined twice, or its class map
    /// has a condition that can never hold.
    pub fn resolve(&self, link: BitRate) -> Result<PolicyParams, PolicyError> {
        self.resolve_for(Rate::l2(link).into())
    }

    /// [`resolve`](Self::resolve) for a port with another accounting, or a device that forwards less
    /// than its port could.
    ///
    /// Only a guaranteed policy uses the accounting of the port: its delay bounds are tested for the
    /// largest size of its guarantees on the wire. Minimums and priorities are summed as written.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn resolve_for(&self, port: PortParams) -> Result<PolicyParams, PolicyError> {
        self.resolve_at(port, 1)
    }

    fn resolve_at(&self, port: PortParams, depth: usize) -> Result<PolicyParams, PolicyError> {
        let fail = |class: &str, field, problem: String| {
            Err(PolicyError {
                policy: self.name.clone(),
                part: Part::Class,
                class: class.to_owned(),
                field,
                problem,
            })
        };
        if depth > MAX_DEPTH {
            return fail(
                CLASS_DEFAULT,
                "child",
                format!("nested deeper than {MAX_DEPTH} levels"),
            );
        }
        if port.rate.rate.min(port.admissible.rate) == BitRate::ZERO {
            return fail(
                CLASS_DEFAULT,
                "link",
                "has a rate of zero: nothing could ever pass".into(),
            );
        }
        let mut shared = self.shared(&port, depth)?;
        let queues = self.named_queues(port, depth)?;
        let implicit = ClassSpec::class_default();
        let (others, mut defaults): (Vec<&ClassSpec>, Vec<&ClassSpec>) =
            self.classes.iter().partition(|c| c.name != CLASS_DEFAULT);
        if defaults.len() > 1 {
            return fail(CLASS_DEFAULT, "classes", "is defined twice".into());
        }
        let default = defaults.pop().unwrap_or(&implicit);
        let mut classes = Vec::with_capacity(others.len() + 1);
        let mut names = BTreeSet::new();
        for spec in others.into_iter().chain([default]) {
            if !names.insert(&spec.name) {
                return fail(&spec.name, "classes", "is defined twice".into());
            }
            let resolver = ClassResolver {
                policy: self,
                part: Part::Class,
                spec,
                port,
                depth,
            };
            classes.push(resolver.class(shared.as_mut())?);
        }
        let params = PolicyParams {
            name: self.name.clone(),
            classes,
            discipline: self.discipline,
            links: shared
                .as_ref()
                .map_or_else(Vec::new, |shared| shared.links.clone()),
            guaranteed: shared.map(|shared| shared.params),
            queues,
        };
        self.check_sums(&params, port.rate.rate.min(port.admissible.rate))?;
        self.check_levels(&params)?;
        Ok(params)
    }

    /// Classes and queues have no more levels of priority than a scheduler serves.
    fn check_levels(&self, params: &PolicyParams) -> Result<(), PolicyError> {
        let queues = params.queues.iter();
        let queues = queues.filter_map(|it| Some((it.priority?.level, Part::Queue, &it.name)));
        let classes = params.classes.iter();
        let classes = classes.filter_map(|it| Some((it.priority?.level, Part::Class, &it.name)));
        let mut levels = BTreeSet::new();
        for (level, part, name) in queues.chain(classes) {
            levels.insert(level);
            if levels.len() > MAX_PRIORITY_LEVELS {
                return Err(PolicyError {
                    policy: self.name.clone(),
                    part,
                    class: name.clone(),
                    field: "priority",
                    problem: format!(
                        "is the {}th level of this policy: at most {MAX_PRIORITY_LEVELS} are possible; give it a level \
                         that another has",
                        levels.len()
                    ),
                });
            }
        }
        Ok(())
    }

    /// Guarantees, of priority and of minimum, must fit together in the parent's rate.
    fn check_sums(&self, params: &PolicyParams, link: BitRate) -> Result<(), PolicyError> {
        let queues = params.queues.iter().map(|queue| {
            let minimum = queue.minimum.map(|(rate, _)| rate.rate);
            (Part::Queue, &queue.name, vec![("minimum", minimum)])
        });
        let classes = params.classes.iter().map(|class| {
            let priority = class.priority.and_then(|priority| priority.police);
            let rates = vec![
                ("priority", priority.map(|(rate, _)| rate.rate)),
                ("minimum", class.minimum.map(|(rate, _)| rate.rate)),
                ("police", params.committed_by_meter(class)),
            ];
            (Part::Class, &class.name, rates)
        });
        let mut sum: u128 = 0;
        for (part, name, rates) in queues.chain(classes) {
            for (field, rate) in rates {
                let Some(rate) = rate else { continue };
                sum += u128::from(rate.bits_per_second());
                if sum > u128::from(link.bits_per_second()) {
                    return Err(PolicyError {
                        policy: self.name.clone(),
                        part,
                        class: name.clone(),
                        field,
                        problem: over_committed(part, rate, sum, link),
                    });
                }
            }
        }
        Ok(())
    }
}

/// That guarantees of `sum` bit/s, of which the last is `rate`, do not fit in `link`.
fn over_committed(part: Part, rate: BitRate, sum: u128, link: BitRate) -> String {
    if sum == u128::from(rate.bits_per_second()) {
        return format!("guarantees {rate}, more than the available {link}");
    }
    let others = sum - u128::from(rate.bits_per_second());
    let [others, sum] =
        [others, sum].map(|sum| BitRate::new(u64::try_from(sum).unwrap_or(u64::MAX)));
    let left = link
        .bits_per_second()
        .saturating_sub(others.bits_per_second());
    let fits = match left {
        0 => "nothing is left for it".to_owned(),
        left => format!("{} would fit", BitRate::new(left)),
    };
    format!(
        "with {rate} for this {part} the guarantees add up to {sum}, more than the available \
         {link}: lower one of them ({fits})"
    )
}

impl RateSpec {
    /// The rate, possibly as a percentage of `whole`.
    ///
    /// # Errors
    /// If it is zero, or more than 100 %: the problem, as the end of a sentence.
    pub fn of(self, whole: BitRate) -> Result<BitRate, &'static str> {
        let rate = match self {
            Self::Absolute(rate) => rate,
            Self::PercentMilli(0) => return Err("is 0 %"),
            Self::PercentMilli(share) if share > 100_000 => return Err("is more than 100 %"),
            Self::PercentMilli(share) => whole.scaled(u64::from(share), 100_000),
        };
        if rate == BitRate::ZERO {
            return Err("is a rate of zero: nothing could ever pass");
        }
        Ok(rate)
    }
}

struct ClassResolver<'a> {
    policy: &'a PolicySpec,
    /// Kind of `spec`: a named queue is checked as a class that has its settings.
    part: Part,
    spec: &'a ClassSpec,
    port: PortParams,
    depth: usize,
}

impl ClassResolver<'_> {
    fn error(&self, field: &'static str, problem: impl Into<String>) -> PolicyError {
        PolicyError {
            policy: self.policy.name.clone(),
            part: self.part,
            class: self.spec.name.clone(),
            field,
            problem: problem.into(),
        }
    }

    fn refused(&self, (field, problem): Refusal) -> PolicyError {
        self.error(field, problem)
    }

    fn queue_limit(&self, rate: BitRate) -> Result<QueueLimitParams, PolicyError> {
        let (limit, hysteresis) = (self.spec.queue.limit, self.port.hysteresis);
        QueueLimitParams::new(limit, self.spec.priority.is_some(), rate, hysteresis)
            .map_err(|refusal| self.refused(refusal))
    }

    fn class(&self, shared: Option<&mut Shared>) -> Result<ClassParams, PolicyError> {
        let spec = self.spec;
        if self.part == Part::Class {
            self.check_match()?;
        }
        self.check_guarantee_settings()?;
        self.check_named_queues()?;
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
            let burst = rate
                .bytes_in(SHAPER_BURST)
                .max(LARGEST_FRAME + LARGEST_FRAME);
            (Rate::l2(rate), burst)
        });
        let priority = spec.priority.map(|p| self.priority(p)).transpose()?;
        let own_rate = shape
            .map(|s| s.rate.rate)
            .or(minimum.map(|(m, _)| m.rate))
            .unwrap_or(self.port.rate.rate);
        if spec.weight == Some(0) {
            return Err(self.error(
                "weight",
                format!("is 0: a {} needs a weight of at least 1", self.part),
            ));
        }
        if spec.set_dscp.is_some_and(|dscp| dscp > MAX_DSCP) {
            return Err(self.error(
                "set_dscp",
                format!("is above {MAX_DSCP}, the largest code point"),
            ));
        }
        let slice = shared.map(|shared| self.slice(shared)).transpose()?;
        let hqos = spec.hqos.as_ref().map(|hqos| self.hqos(hqos));
        let hqos = hqos.transpose()?;
        let queue_limit = match (slice, &hqos) {
            (Some(slice), _) => slice.queue_limit,
            (None, Some(hqos)) => hqos::limit(hqos),
            (None, None) => self.queue_limit(own_rate)?,
        };
        let queue = spec.queue.resolve(queue_limit, own_rate);
        Ok(ClassParams {
            name: spec.name.clone(),
            matches: spec.matches.clone(),
            police: spec.police.as_ref().map(|p| self.policer(p)).transpose()?,
            set_dscp: spec.set_dscp,
            priority,
            minimum,
            weight: spec.weight.unwrap_or(1),
            shape,
            queue: queue.map_err(|refusal| self.refused(refusal))?,
            hqos,
            named_queue: spec.named_queue.clone(),
            elephants: spec
                .elephants
                .as_ref()
                .map(|elephants| self.elephants(elephants))
                .transpose()?,
            child: self.child(shape)?,
            slice,
        })
    }

    fn child(&self, shape: Option<ShaperParams>) -> Result<Option<Box<PolicyParams>>, PolicyError> {
        let Some(child) = self.spec.child.as_deref() else {
            return Ok(None);
        };
        let port = PortParams {
            rate: shape.map_or(self.port.rate, |shape| shape.rate),
            ..self.port
        };
        child
            .resolve_at(port, self.depth + 1)
            .map(|child| Some(Box::new(child)))
    }

    /// A class map on every class except class-default, which takes the rest.
    fn check_match(&self) -> Result<(), PolicyError> {
        match (&self.spec.matches, self.spec.name == CLASS_DEFAULT) {
            (None, false) => Err(self.error("match", "has no class map")),
            (Some(_), true) => Err(self.error(
                "match",
                "matches every frame that no other class does and must not have a class map",
            )),
            (Some(map), false) => map.check().map_err(|problem| self.error("match", problem)),
            (None, true) => Ok(()),
        }
    }

    /// Settings that exclude each other.
    fn check_combination(&self) -> Result<(), PolicyError> {
        let spec = self.spec;
        if spec.priority.is_some() {
            let excluded = [
                ("minimum", spec.minimum.is_some()),
                ("weight", spec.weight.is_some()),
                ("shape", spec.shape.is_some()),
                ("child", spec.child.is_some()),
            ];
            let excluded = excluded.into_iter().find(|(_, set)| *set);
            let excluded = excluded.map(|(field, _)| field);
            if let Some(field) = excluded.or(spec.queue.manager_of_all()) {
                return Err(self.error(
                    field,
                    format!(
                        "cannot be set on a priority {}: it is served before everything else",
                        self.part
                    ),
                ));
            }
        }
        if spec.child.is_some() && spec.queue.setting().is_some() {
            return Err(self.error(
                "child",
                "a class divided by a child policy has no queue of its own: set the queue limit, \
                 WRED or the flow queue on the child's classes",
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
            Discipline::Fifo if spec.name != CLASS_DEFAULT => match spec.queue.setting() {
                Some(field) => Err(self.error(
                    field,
                    "one FIFO for all classes has one queue: set this on `class-default`",
                )),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn rate(&self, spec: RateSpec, field: &'static str) -> Result<BitRate, PolicyError> {
        spec.of(self.port.rate.rate)
            .map_err(|problem| self.error(field, problem))
    }

    fn shaper(&self, spec: ShaperSpec) -> Result<ShaperParams, PolicyError> {
        let rate = self.rate(spec.rate, "shape")?;
        let bc = match spec.committed_burst_bits.map(|burst| burst.at(rate)) {
            Some(0) => return Err(self.error("shape", "has a committed burst of zero")),
            Some(bits) => bits,
            None => rate.bytes_in(SHAPER_BURST).bits().max(1),
        };
        let excess = spec.excess_burst_bits.map(|burst| burst.at(rate));
        let be = excess.unwrap_or(if spec.peak { bc } else { 0 });
        let total = bc.saturating_add(be);
        let rate = if spec.peak {
            rate.scaled(total, bc)
        } else {
            rate
        };
        Ok(ShaperParams {
            rate: Rate {
                rate,
                accounting: spec.accounting,
            },
            burst: ByteCount::new(total / 8).max(largest_frame(spec.accounting)),
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
                let rate = Rate {
                    rate,
                    accounting: spec.accounting,
                };
                Some((rate, burst.max(largest_frame(spec.accounting))))
            }
        };
        Ok(PriorityParams {
            level: spec.level,
            police,
        })
    }
}
