//! Slices with a guarantee: defaults, contradictions, and the admission test.

use super::{ClassResolver, Part, PolicyError, PortParams};
use crate::queue::default_limit;
use crate::{
    AdmissionParams, BurstSpec, CLASS_DEFAULT, ClassSpec, DelayRange, DelayReason, Discipline,
    GuaranteeParams, GuaranteeRequest, GuaranteeSpec, GuaranteedParams, GuaranteedSpec,
    MaximumParams, MaximumSpec, PolicyParams, PolicySpec, QueueLimitParams, Refusal, Reservations,
    SetMember, SliceParams, TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Rounded};
use std::collections::VecDeque;

/// Time at the rate that the burst of a guarantee or of a maximum covers by default.
const BURST: Duration = Duration::from_millis(4);
/// Tenant of classes without one.
const TENANT_DEFAULT: &str = "default";
/// Shortest and longest frame, bytes without FCS, two tags included: the minimum of Ethernet, and an IP
/// packet of 65,535 bytes.
const FRAMES: [u32; 2] = [60, 65_557];
/// The largest burst: credit for it fits in 63 bits of nanobits.
const BURST_MAX: ByteCount = ByteCount::new(1_000_000_000);
/// The largest weight of a slice.
const WEIGHT_MAX: u32 = 65_535;

/// State shared by the classes of a guaranteed policy during resolution.
pub(super) struct Shared {
    pub(super) params: GuaranteedParams,
    /// The port and, if different, the rate that may be guaranteed: both must admit the guarantee.
    pub(super) links: Vec<AdmissionParams>,
    /// Answers of the test to the classes that ask for a guarantee, in the order in which they are resolved.
    answers: VecDeque<Result<GuaranteeParams, Refusal>>,
}

impl PolicySpec {
    /// `None` if the policy is not a guaranteed one.
    pub(super) fn shared(
        &self,
        port: &PortParams,
        depth: usize,
    ) -> Result<Option<Shared>, PolicyError> {
        let fail = |field, problem: String| {
            Err(PolicyError {
                policy: self.name.clone(),
                part: Part::Class,
                class: CLASS_DEFAULT.to_owned(),
                field,
                problem,
            })
        };
        if self.discipline != Discipline::Guaranteed {
            return match self.guaranteed {
                Some(_) => fail(
                    "guaranteed",
                    "tenants, delays, largest frame and buffer are for the discipline \
                     `guaranteed`"
                        .to_owned(),
                ),
                None => Ok(None),
            };
        }
        if depth > 1 {
            return fail(
                "discipline",
                "no delay can be guaranteed inside a class, because the delay of the class \
                 itself is not \
                 known; guarantee at the outermost level"
                    .to_owned(),
            );
        }
        let spec = self.guaranteed.clone().unwrap_or_default();
        if let Err((field, problem)) = spec.check() {
            return fail(field, problem);
        }
        let delays = DelayRange::new(spec.shortest_delay, spec.longest_delay);
        let mut links = vec![port.rate];
        if port.admissible != port.rate {
            links.push(port.admissible);
        }
        let links = links.into_iter().map(|link| AdmissionParams {
            link,
            accounting: spec.accounting,
            largest_frame: spec.largest_frame(),
            buffer: spec.buffer,
            delays,
        });
        let links: Vec<AdmissionParams> = links.collect();
        let params = GuaranteedParams {
            accounting: spec.accounting,
            largest_frame: spec.largest_frame(),
            delays,
            tenants: self.tenants(&spec),
        };
        let classes = self.classes.iter();
        let (others, default): (Vec<&ClassSpec>, Vec<&ClassSpec>) =
            classes.partition(|class| class.name != CLASS_DEFAULT);
        let classes = others.into_iter().chain(default);
        // What is wrong with a request is said where its class is resolved.
        let requests = classes.filter_map(|class| {
            let request = class
                .guarantee?
                .request(port.rate.rate, params.largest_frame);
            request.ok()
        });
        let set: Vec<SetMember> = requests.map(SetMember::from).collect();
        let answers = Reservations::new(&links).try_admit_set(&set);
        Ok(Some(Shared {
            params,
            links,
            answers: answers.into(),
        }))
    }

    /// Guarantees that state no delay and got another one than their default in `params`, which this policy was resolved to: a
    /// sentence each.
    #[must_use]
    pub fn delay_notes(&self, params: &PolicyParams) -> Vec<String> {
        let Some(common) = &params.guaranteed else {
            return Vec::new();
        };
        let note = |class: &ClassSpec| {
            let written = class.guarantee?;
            let mut resolved = params.classes.iter();
            let resolved = resolved.find(|resolved| resolved.name == class.name)?;
            let given = resolved.slice?.guarantee?;
            let request = given.request(written.delay);
            let reason = request.delay_reason(given.delay, common.delays);
            matches!(reason, DelayReason::Chosen { .. }).then(|| {
                let delay = given.delay.rounded_up();
                format!("class `{}`: delay of {delay} ({reason})", class.name)
            })
        };
        self.classes.iter().filter_map(note).collect()
    }

    /// The tenants defined, and one for classes without a tenant.
    fn tenants(&self, spec: &GuaranteedSpec) -> Vec<TenantParams> {
        let mut tenants: Vec<TenantParams> = spec
            .tenants
            .iter()
            .map(|(name, weight)| TenantParams {
                name: name.clone(),
                weight: *weight,
            })
            .collect();
        let is_missing = |name: &str| tenants.iter().all(|tenant| tenant.name != name);
        let default = self
            .classes
            .iter()
            .find(|class| class.name == CLASS_DEFAULT);
        let all_named = self.classes.iter().all(|class| class.tenant.is_some());
        if is_missing(TENANT_DEFAULT) && !(all_named && default.is_some()) {
            tenants.push(TenantParams {
                name: TENANT_DEFAULT.to_owned(),
                weight: 1,
            });
        }
        tenants
    }
}

impl GuaranteedSpec {
    /// Validates delays, largest frame and tenants.
    ///
    /// # Errors
    /// The invalid setting, as named in a study file, and the problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let spec = self;
        let [smallest, largest] = FRAMES.map(|l2_bytes| {
            spec.accounting.count(FrameLengths {
                l2_bytes,
                l3_offset: FrameLengths::L3_OFFSET_MAX,
            })
        });
        if !(smallest..=largest).contains(&spec.largest_frame()) {
            let problem = format!(
                "{} is outside {smallest} to {largest}, the shortest and the longest frame as {} \
                 counts them",
                spec.largest_frame(),
                spec.accounting
            );
            return Err(("largest_frame", problem));
        }
        if spec.shortest_delay < Duration::from_micros(1) {
            let problem = format!("{} is shorter than 1 µs", spec.shortest_delay);
            return Err(("delays", problem));
        }
        if spec.shortest_delay > spec.longest_delay {
            let problem = format!(
                "the shortest, {}, is longer than the longest, {}",
                spec.shortest_delay, spec.longest_delay
            );
            return Err(("delays", problem));
        }
        for (index, (name, weight)) in spec.tenants.iter().enumerate() {
            if *weight == 0 {
                let problem = format!("tenant `{name}` has a weight of 0: must be at least 1");
                return Err(("tenants", problem));
            }
            let earlier = spec.tenants.get(..index).unwrap_or_default();
            if earlier.iter().any(|(other, _)| other == name) {
                return Err(("tenants", format!("tenant `{name}` is defined twice")));
            }
        }
        Ok(())
    }
}

impl GuaranteeSpec {
    /// The request for a link of rate `link`, with the default burst filled in.
    ///
    /// # Errors
    /// If the rate is zero or exceeds the link.
    pub fn request(
        &self,
        link: BitRate,
        largest_frame: ByteCount,
    ) -> Result<GuaranteeRequest, String> {
        let rate = self.rate.of(link)?;
        Ok(GuaranteeRequest {
            rate,
            burst: kept(burst(self.burst, rate, largest_frame))?,
            delay: self.delay,
            smallest_frame: self.smallest_frame.unwrap_or_default(),
        })
    }
}

impl MaximumSpec {
    /// The maximum on a link of rate `link`, with the default burst filled in, of a slice that
    /// has this guarantee.
    ///
    /// # Errors
    /// If the rate is zero or exceeds the link, rate or burst are below those of the
    /// guarantee, or the burst does not hold the largest frame.
    pub fn resolve(
        &self,
        guarantee: Option<&GuaranteeRequest>,
        link: BitRate,
        largest_frame: ByteCount,
    ) -> Result<MaximumParams, String> {
        let rate = self.rate.of(link)?;
        let mut size = burst(self.burst, rate, largest_frame);
        if size < largest_frame {
            return Err(format!(
                "has a burst of {size}, smaller than the largest frame: at least {largest_frame} \
                 is needed"
            ));
        }
        if let Some(guarantee) = guarantee {
            if rate < guarantee.rate {
                return Err(format!(
                    "is {rate}, below the guarantee of {}",
                    guarantee.rate
                ));
            }
            if self.burst.is_none() {
                size = size.max(guarantee.burst);
            }
            if size < guarantee.burst {
                return Err(format!(
                    "has a burst of {size}, below that of the guarantee, {}",
                    guarantee.burst
                ));
            }
        }
        Ok(MaximumParams {
            rate,
            burst: kept(size)?,
        })
    }
}

impl SliceParams {
    /// A slice that is to be added to a policy with these common parameters, on a link of rate `link`, with the queue
    /// that a class without a `queue_limit` has. It belongs to the first tenant. Whether the guarantee can be kept is not
    /// tested: it gets the delay that it states, which was chosen before, or its default.
    ///
    /// # Errors
    /// If the delay is shorter than every class, guarantee and maximum contradict each other, or a value is too large or
    /// zero: the problem, as the end of a sentence.
    pub fn to_add(
        guarantee: Option<&GuaranteeRequest>,
        maximum: Option<&MaximumSpec>,
        weight: u32,
        common: &GuaranteedParams,
        link: BitRate,
    ) -> Result<Self, String> {
        if weight == 0 || weight > WEIGHT_MAX {
            return Err(format!(
                "has a weight of {weight}: must be 1 to {WEIGHT_MAX}"
            ));
        }
        let resolve =
            |maximum: &MaximumSpec| maximum.resolve(guarantee, link, common.largest_frame);
        let maximum = maximum.map(resolve).transpose()?;
        let params = |request: &GuaranteeRequest| {
            let (shortest, latest) = (common.delays.shortest(), common.delays.latest());
            let delay = match request.delay {
                Some(delay) if delay < shortest => Err(format!(
                    "asks for a delay of {delay}, below {shortest}, the shortest of the link"
                )),
                Some(delay) => Ok(delay.min(latest)),
                None => Ok(request.default_delay(common.delays)),
            }?;
            Ok::<_, String>(GuaranteeParams {
                rate: request.rate,
                burst: kept(request.burst)?,
                delay,
                smallest_frame: request.smallest_frame,
            })
        };
        let guarantee = guarantee.map(params).transpose()?;
        let of_guarantee = guarantee.map(|guarantee| guarantee.rate);
        let own_rate = maximum.map(|maximum| maximum.rate).or(of_guarantee);
        let limit = default_limit(own_rate.unwrap_or(link));
        let queue_limit = guarantee.map_or(limit, |guarantee| {
            room_for(&guarantee, common.accounting, limit)
        });
        Ok(Self {
            guarantee,
            maximum,
            weight,
            tenant: 0,
            queue_limit,
        })
    }
}

impl ClassResolver<'_> {
    /// Settings that require the discipline `guaranteed`, or are incompatible with it.
    pub(super) fn check_guarantee_settings(&self) -> Result<(), PolicyError> {
        let spec = self.spec;
        if self.policy.discipline != Discipline::Guaranteed {
            let only_there = [
                ("guarantee", spec.guarantee.is_some()),
                ("maximum", spec.maximum.is_some()),
                ("tenant", spec.tenant.is_some()),
            ];
            return match only_there.into_iter().find(|(_, set)| *set) {
                Some((field, _)) => Err(self.error(field, "requires the discipline `guaranteed`")),
                None => Ok(()),
            };
        }
        let excluded = [
            (
                "priority",
                spec.priority.is_some(),
                "cannot be combined with guarantees: set `guarantee` with a short `delay`",
            ),
            (
                "minimum",
                spec.minimum.is_some(),
                "has no delay bound: set `guarantee`",
            ),
            (
                "shape",
                spec.shape.is_some(),
                "would delay guaranteed frames: set `maximum`",
            ),
            (
                "child",
                spec.child.is_some(),
                "cannot be inside a slice with a guarantee: make its classes slices, and the \
                 class a tenant",
            ),
        ];
        if let Some((field, _, problem)) = excluded.into_iter().find(|(_, set, _)| *set) {
            return Err(self.error(field, problem));
        }
        match spec.queue.not_for_slices() {
            Some(field) => {
                Err(self.error(field, "would drop guaranteed frames: set `queue_limit`"))
            }
            None => Ok(()),
        }
    }

    /// The class as a slice; its guarantee is admitted in `shared`.
    pub(super) fn slice(&self, shared: &mut Shared) -> Result<SliceParams, PolicyError> {
        let spec = self.spec;
        let frame = shared.params.largest_frame;
        let request = spec
            .guarantee
            .map(|guarantee| {
                guarantee
                    .request(self.port.rate.rate, frame)
                    .map_err(|problem| self.error("guarantee", problem))
            })
            .transpose()?;
        let maximum = spec
            .maximum
            .map(|maximum| {
                maximum
                    .resolve(request.as_ref(), self.port.rate.rate, frame)
                    .map_err(|problem| self.error("maximum", problem))
            })
            .transpose()?;
        if spec.weight > Some(WEIGHT_MAX) {
            let problem = format!("is above {WEIGHT_MAX}, the largest weight of a slice");
            return Err(self.error("weight", problem));
        }
        let tenant = self.tenant(&shared.params.tenants)?;
        let answer = request.and_then(|_| shared.answers.pop_front());
        let guarantee = answer
            .transpose()
            .map_err(|refusal| self.error("guarantee", refusal.to_string()))?;
        let own_rate = maximum
            .map(|maximum| maximum.rate)
            .or(guarantee.map(|guarantee| guarantee.rate))
            .unwrap_or(self.port.rate.rate);
        let mut queue_limit = self.queue_limit(own_rate)?;
        if let (Some(guarantee), None) = (guarantee, spec.queue.limit) {
            queue_limit = room_for(&guarantee, shared.params.accounting, queue_limit);
        }
        Ok(SliceParams {
            guarantee,
            maximum,
            weight: spec.weight.unwrap_or(1),
            tenant,
            queue_limit,
        })
    }

    fn tenant(&self, tenants: &[TenantParams]) -> Result<u32, PolicyError> {
        let name = self.spec.tenant.as_deref().unwrap_or(TENANT_DEFAULT);
        let position = tenants.iter().position(|tenant| tenant.name == name);
        if let Some(position) = position.and_then(|position| u32::try_from(position).ok()) {
            return Ok(position);
        }
        let known: Vec<String> = tenants
            .iter()
            .take(20)
            .map(|tenant| format!("`{}`", tenant.name))
            .collect();
        let problem = format!("unknown tenant `{name}`; defined: {}", known.join(", "));
        Err(self.error("tenant", problem))
    }
}

fn burst(spec: Option<BurstSpec>, rate: BitRate, largest_frame: ByteCount) -> ByteCount {
    match spec {
        Some(burst) => burst.size(rate),
        None => rate.bytes_in(BURST).max(largest_frame + largest_frame),
    }
}

/// A burst that a token bucket can hold.
fn kept(burst: ByteCount) -> Result<ByteCount, String> {
    if burst > BURST_MAX {
        return Err(format!(
            "has a burst of {burst}: must be at most {BURST_MAX}"
        ));
    }
    Ok(burst)
}

impl PolicyParams {
    /// Classes in which frames within the guarantee can be lost, a sentence each: the queue is too short for what may wait, or the
    /// policer is below the guarantee.
    #[must_use]
    pub fn loss_notes(&self) -> Vec<String> {
        let Some(common) = &self.guaranteed else {
            return Vec::new();
        };
        let classes = self.classes.iter();
        let notes = classes.filter_map(|class| {
            let slice = class.slice?;
            let guarantee = slice.guarantee?;
            Some((class, slice.queue_limit, guarantee))
        });
        let notes = notes.flat_map(|(class, limit, guarantee)| {
            let name = &class.name;
            let packets = guarantee.largest_backlog_packets(common.accounting);
            let room = (packets > u64::from(limit.packets)).then(|| {
                format!(
                    "class `{name}`: its queue holds {} packets, but up to {packets} small ones may wait within the guarantee: some \
                     may be lost; leave `queue_limit` out, or state the `smallest_frame` of the guarantee",
                    limit.packets
                )
            });
            let bytes = guarantee.largest_backlog_l2(common);
            let room = room.or_else(|| {
                (bytes > limit.bytes).then(|| {
                    format!(
                        "class `{name}`: its queue holds {}, but up to {bytes} may wait within the guarantee: some frames may be \
                         lost; leave `queue_limit` out",
                        limit.bytes
                    )
                })
            });
            let police = class.police.as_ref();
            let police = police.filter(|police| police.may_drop_within(guarantee.rate, guarantee.burst));
            let police = police.map(|_| {
                format!(
                    "class `{name}`: its policer drops frames within the guarantee of {} with bursts of {}: police at no less",
                    guarantee.rate, guarantee.burst
                )
            });
            room.into_iter().chain(police)
        });
        notes.collect()
    }
}

/// How late a gateway may be for frames that arrive, and again for those that leave, while its bounds hold.
const LATENESS: Duration = Duration::from_millis(2);

impl SliceParams {
    /// The same slice with another delay of its guarantee, if it has one. A queue of the default length has room for it.
    #[must_use]
    pub fn with_delay(&self, delay: Duration, common: &GuaranteedParams, spec: &ClassSpec) -> Self {
        let Some(guarantee) = self.guarantee else {
            return *self;
        };
        let guarantee = GuaranteeParams { delay, ..guarantee };
        let queue_limit = match spec.queue.limit {
            Some(_) => self.queue_limit,
            None => room_for(&guarantee, common.accounting, self.queue_limit),
        };
        Self {
            guarantee: Some(guarantee),
            queue_limit,
            ..*self
        }
    }
}

/// At least `limit`, and the largest backlog of a guarantee even if all frames are small, and come and leave late.
fn room_for(
    guarantee: &GuaranteeParams,
    accounting: Accounting,
    limit: QueueLimitParams,
) -> QueueLimitParams {
    let late = GuaranteeParams {
        delay: guarantee.delay + LATENESS,
        ..*guarantee
    };
    let packets = late.largest_backlog_packets(accounting);
    QueueLimitParams {
        packets: limit
            .packets
            .max(u32::try_from(packets).unwrap_or(u32::MAX)),
        ..limit
    }
}
