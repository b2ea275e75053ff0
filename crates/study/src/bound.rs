//! The bound of one-way delay that a guarantee comes to in a study.
//!
//! A frame waits in the sender's adapter for at most J, is carried and processed in a constant time
//! F, and is eligible in the scheduler at the latest F + J after it was sent if its source keeps to
//! (CIR, CBS): eligibility is a token bucket's, and what comes to that at most J late leaves it at
//! most J late. From then on it takes D + δ to the last bit ([`DelayClasses::bucket_width`]), then
//! the way to the receiver and its interrupt.
//!
//! Where J has no bound, because another source on the same link has no worst case, D + δ from the
//! eligible time remains: it does not depend on what arrives. From the moment a frame is queued it
//! does not follow, because frames that were held up on the link together may come as a burst above
//! CBS.
//!
//! What an application over TCP sends at once follows from its windows and from what the network does, so it has no arrival
//! curve: a class that one sends to has no bound, and on a link that one sends on, J has none. D + δ from the eligible time
//! holds for every other class, whatever an application sends.
//!
//! On a path of several devices the frames that leave one of them are at most D + δ later than eligible there, so
//! they are at most as much later eligible at the next: each device adds its own D + δ and the way to it, and the burst
//! that CBS allows is paid for only once. As a sum of hops, each bounded for itself, the traffic that reaches the i-th
//! hop would have a burst that is larger by CIR times the delays before it, and would wait for that at every
//! hop: Σ over i of Σ over j ≤ i of (D + δ) of hop j. (J.-Y. Le Boudec, P. Thiran, *Network Calculus*, Springer 2001,
//! sections 1.4.3 and 1.5: the burst is paid only once, and shapers that are as a flow was before delay it no more.)
//!
//! [`DelayClasses::bucket_width`]: slicewise_model::DelayClasses::bucket_width

use crate::params::{
    ApplicationSourceParams, DutModel, DutParams, PopulationPatternParams, ScenarioParams,
    SourceHeaders, SourceParams,
};
use crate::study::Study;
use slicewise_model::{GuaranteeParams, GuaranteedParams, PolicyParams, Rate};
use slicewise_stats::description::{DelayBound, Unbounded};
use slicewise_traffic::arrivals::{ArrivalCurve, Backlog, backlog, bytes_up};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths};
use std::collections::BTreeMap;

/// Departures and link times are whole nanoseconds, rounded: a source may be ahead of its rate by
/// as much without sending more than it may.
const ROUNDING: Duration = Duration::from_nanos(2);
/// The smallest frame without FCS, bytes (IEEE 802.3).
const SMALLEST_FRAME: u32 = 60;
/// Bytes before the IP header behind two tags.
const LARGEST_OFFSET: u8 = 22;

/// What a policy promises in a study.
#[derive(Debug, Default)]
pub(crate) struct Promised {
    pub(crate) bounds: BTreeMap<String, DelayBound>,
    pub(crate) unbounded: Vec<Unbounded>,
}

/// The bounds that follow from a policy's guarantees, and where none does.
pub(crate) fn promised(study: &Study, policy: usize) -> Promised {
    let mut promised = Promised::default();
    let hops: Vec<_> = study.hops(policy).collect();
    if hops.iter().all(|(_, policy)| policy.guaranteed.is_none()) {
        return promised;
    }
    for (slice, params) in study
        .slices
        .iter()
        .enumerate()
        .filter(|(_, s)| s.guaranteed)
    {
        for scenario in &study.scenarios {
            let (why, scheduler_ns) = match bound(study, &hops, scenario, slice) {
                Ok(None) => continue,
                Ok(Some(Parts {
                    schedulers,
                    outside: Ok(outside_ns),
                })) => {
                    promised.add(&params.name, schedulers, outside_ns);
                    continue;
                }
                Ok(Some(Parts {
                    schedulers: InSchedulers { together_ns, .. },
                    outside: Err(why),
                    // Times in the schedulers of a path are not measured.
                })) => (why, (hops.len() == 1).then_some(together_ns)),
                Err(why) => (why, None),
            };
            promised.unbounded.push(Unbounded {
                slice: params.name.clone(),
                scenario: scenario.name.clone(),
                why,
                scheduler_ns,
            });
        }
    }
    promised
}

impl Promised {
    /// The bound of a slice is the largest of all scenarios that have one.
    fn add(&mut self, slice: &str, schedulers: InSchedulers, outside_ns: u64) {
        let InSchedulers {
            together_ns,
            sum_ns,
        } = schedulers;
        let sum_of_hops_ns = sum_ns.map_or(0, |sum| sum.saturating_add(outside_ns));
        let largest = self.bounds.entry(slice.to_owned()).or_insert(DelayBound {
            scheduler_ns: together_ns,
            outside_ns,
            sum_of_hops_ns,
        });
        largest.scheduler_ns = largest.scheduler_ns.max(together_ns);
        largest.outside_ns = largest.outside_ns.max(outside_ns);
        largest.sum_of_hops_ns = largest.sum_of_hops_ns.max(sum_of_hops_ns);
    }
}

/// Time in the schedulers of a path.
#[derive(Debug, Clone, Copy, Default)]
struct InSchedulers {
    /// With the burst paid for once.
    together_ns: u64,
    /// Hop by hop; `None` for one device.
    sum_ns: Option<u64>,
}

/// What is bounded of a slice that keeps to its guarantee.
struct Parts {
    /// See [`DelayBound::scheduler_ns`].
    schedulers: InSchedulers,
    /// [`DelayBound::outside_ns`], or why there is none.
    outside: Result<u64, String>,
}

/// What to say of bounds that do not follow: scenarios with the same reason together.
pub(crate) fn notes(policy: &str, unbounded: &[Unbounded]) -> Vec<String> {
    let mut reasons: Vec<(&Unbounded, Vec<&str>)> = Vec::new();
    for one in unbounded {
        let is_same = |other: &Unbounded| {
            (&other.slice, &other.why, other.scheduler_ns)
                == (&one.slice, &one.why, one.scheduler_ns)
        };
        match reasons.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, scenarios)) => scenarios.push(&one.scenario),
            None => reasons.push((one, vec![&one.scenario])),
        }
    }
    let note = |(one, scenarios): (&Unbounded, Vec<&str>)| {
        let scenarios = match scenarios.as_slice() {
            [only] => format!("scenario {only}"),
            several => format!("scenarios {}", several.join(", ")),
        };
        let Unbounded { slice, why, .. } = one;
        match one.scheduler_ns {
            Some(ns) => format!(
                "policy `{policy}`: in {scenarios}, slice `{slice}` is judged at the scheduler \
                 only, by its bound of {}: the path to the device has no bound, because {why}",
                Duration::from_nanos(ns)
            ),
            None => format!(
                "policy `{policy}`: the delay of slice `{slice}` has no bound to be judged by in \
                 {scenarios}: {why}"
            ),
        }
    };
    reasons.into_iter().map(note).collect()
}

/// The bound of a slice on its way through `hops`; `None` where it has no guarantee or sends nothing.
fn bound(
    study: &Study,
    hops: &[(&DutParams, &PolicyParams)],
    scenario: &ScenarioParams,
    slice: usize,
) -> Result<Option<Parts>, String> {
    let mut schedulers = InSchedulers::default();
    let (mut guarantees, mut sum_ns) = (0, 0u64);
    let mut outside = Ok(0);
    for (device, policy) in hops.iter().copied() {
        let Some(guaranteed) = &policy.guaranteed else {
            continue;
        };
        let situation = Situation {
            study,
            device,
            policy,
            guaranteed,
            scenario,
        };
        let in_device = if study.populations.is_empty() {
            outside = situation.outside(slice, hops);
            situation.in_device(slice)?
        } else {
            situation.of_population(slice)?
        };
        let Some(own) = in_device else { continue };
        guarantees += 1;
        schedulers.together_ns = schedulers.together_ns.saturating_add(own);
        sum_ns = sum_ns.saturating_add(schedulers.together_ns);
    }
    if guarantees == 0 {
        return Ok(None);
    }
    if guarantees < hops.len() {
        return Err("not every device on its path gives it a guarantee".to_owned());
    }
    // A pause holds frames before the device that sends it: in hosts, or in the device before it.
    if hops.iter().any(|(device, _)| sends_pauses(device)) {
        if hops.len() > 1 {
            return Err(PAUSES.to_owned());
        }
        outside = Err(PAUSES.to_owned());
    }
    schedulers.sum_ns = (hops.len() > 1).then_some(sum_ns);
    if hops.iter().any(|(device, _)| waits_for_bursts(device)) {
        return Err(BURSTS.to_owned());
    }
    Ok(Some(Parts {
        schedulers,
        outside,
    }))
}

/// Why nothing bounds how long frames wait before a device.
const PAUSES: &str =
    "the device sends pause frames, and nothing bounds how long a sender is paused";

/// Why nothing bounds how long frames wait in a device.
const BURSTS: &str =
    "the device hands frames on in whole bursts, and nothing bounds how long one waits for others";

const fn waits_for_bursts(device: &DutParams) -> bool {
    matches!(device.model, DutModel::QosSched(_))
}

const fn sends_pauses(device: &DutParams) -> bool {
    matches!(device.model, DutModel::Switch(switch) if switch.flow_control.is_some())
}

/// A policy in a scenario, on a device.
struct Situation<'a> {
    study: &'a Study,
    device: &'a DutParams,
    policy: &'a PolicyParams,
    guaranteed: &'a GuaranteedParams,
    scenario: &'a ScenarioParams,
}

impl Situation<'_> {
    /// From the moment a frame of a slice is eligible to its last bit, ns; `None` where the slice has no guarantee or
    /// sends nothing.
    fn in_device(&self, slice: usize) -> Result<Option<u64>, String> {
        let own = || flows(self.scenario).filter(|(_, of, _)| *of == slice);
        let classes: Vec<Option<usize>> =
            own().map(|(_, _, headers)| self.class(headers)).collect();
        let guarantee = |class: &Option<usize>| {
            let class = self.policy.classes.get((*class)?)?;
            class.slice?.guarantee.map(|guarantee| (class, guarantee))
        };
        if classes.iter().all(|class| guarantee(class).is_none()) {
            return Ok(None);
        }
        let mut scheduler_ns = 0;
        for ((source, _, _), class) in own().zip(&classes) {
            let Some((params, guarantee)) = guarantee(class) else {
                return Err(format!(
                    "source `{source}` is in a class without a guarantee"
                ));
            };
            if params.flow_queue.is_some() {
                return Err(format!(
                    "frames of class `{}` overtake each other in its flow queue: only their \
                     service as a whole is bounded",
                    params.name
                ));
            }
            self.check_conformance(*class, &params.name, &guarantee)?;
            let own = self.in_scheduler(&guarantee);
            scheduler_ns = scheduler_ns.max(own);
        }
        self.check_device()?;
        Ok(Some(scheduler_ns))
    }

    /// The bound of the slices of a population: nothing but the scheduler is measured.
    fn of_population(&self, slice: usize) -> Result<Option<u64>, String> {
        let study = self.study;
        let counts = study.populations.iter().zip(&self.scenario.populations);
        let mut own = counts.filter(|(population, count)| population.slice == slice && **count > 0);
        let name = study.slices.get(slice).map_or("", |s| s.name.as_str());
        let class = self.policy.classes.iter().find(|class| class.name == name);
        let guarantee = class.and_then(|class| class.slice?.guarantee);
        let (Some((population, _)), Some(guarantee)) = (own.next(), guarantee) else {
            return Ok(None);
        };
        let PopulationPatternParams::Bursts { frames, every } = population.pattern else {
            return Err("its slices always have a frame waiting".to_owned());
        };
        let frame = FrameLengths {
            l2_bytes: population.frame_bytes,
            l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
        };
        let frame = self.guaranteed.accounting.count(frame);
        let burst = ByteCount::new(frame.bytes().saturating_mul(u64::from(frames)));
        if burst > guarantee.burst || burst > guarantee.rate.bytes_in(every) {
            return Err(format!(
                "each of its slices sends {burst} every {every}, but only {} with bursts of {} are \
                 guaranteed",
                guarantee.rate, guarantee.burst
            ));
        }
        Ok(Some(self.in_scheduler(&guarantee)))
    }

    /// From the moment a frame is eligible to its last bit, ns.
    fn in_scheduler(&self, guarantee: &GuaranteeParams) -> u64 {
        let bucket_width = self.guaranteed.delay_classes.bucket_width();
        guarantee.delay.nanos().saturating_add(bucket_width.nanos())
    }

    /// The class of packets with these headers.
    fn class(&self, headers: &SourceHeaders) -> Option<usize> {
        self.policy.classes.iter().position(|class| {
            let map = class.matches.as_ref();
            map.is_none_or(|map| map.matches(&headers.into()))
        })
    }

    /// All that is sent to a class must fit its guarantee.
    fn check_conformance(
        &self,
        class: Option<usize>,
        name: &str,
        guarantee: &GuaranteeParams,
    ) -> Result<(), String> {
        let sources = self.scenario.sources.iter();
        let of_class = sources.filter(|source| self.class(&source.headers) == class);
        let mut reacting = self.scenario.applications.iter();
        if let Some(source) = reacting.find(|source| self.class(&source.headers) == class) {
            return Err(reacts(source));
        }
        let curves = self.curves(of_class, self.guaranteed.accounting)?;
        match backlog(&curves, guarantee.rate).ok_or(TOO_MUCH)? {
            Backlog::Grows(offered) => Err(format!(
                "class `{name}` receives {}, but only {} are guaranteed",
                bit_rate(offered),
                guarantee.rate
            )),
            Backlog::AtMost(needed) => {
                let rounding = guarantee.rate.bits_per_second() * ROUNDING.nanos();
                let needed = bytes_up(needed.saturating_sub(u128::from(rounding)));
                if needed <= guarantee.burst {
                    return Ok(());
                }
                Err(format!(
                    "class `{name}` may receive bursts of {needed}, but only {} are guaranteed",
                    guarantee.burst
                ))
            }
        }
    }

    /// Through a licence that has to be waited for, a frame leaves no later than through a link of
    /// its rate alone, if no frame takes longer on the port, and none is let through on credit:
    /// then the largest frame that the admission test counts as under way covers the one on the
    /// port, and the time a frame of one's own takes there.
    fn check_device(&self) -> Result<(), String> {
        let DutParams {
            port_rate, licence, ..
        } = *self.device;
        let Some(licence) = licence.filter(|licence| !licence.priority_borrows) else {
            return Ok(());
        };
        let largest = u32::try_from(self.guaranteed.largest_frame.bytes()).unwrap_or(u32::MAX);
        let largest = largest.saturating_add(u32::from(LARGEST_OFFSET));
        for l2_bytes in [SMALLEST_FRAME, largest] {
            let frame = FrameLengths {
                l2_bytes,
                l3_offset: LARGEST_OFFSET,
            };
            let on_port = u128::from(port_rate.accounting.count(frame).bytes())
                * u128::from(licence.rate.rate.bits_per_second());
            let charged = licence.rate.accounting.count(frame);
            let in_licence =
                u128::from(charged.bytes()) * u128::from(port_rate.rate.bits_per_second());
            if on_port > in_licence {
                return Err("small frames take longer on the port than in the licence".to_owned());
            }
            if charged > licence.credit {
                return Err("the licence lets frames through on credit".to_owned());
            }
        }
        Ok(())
    }

    /// What one-way delay of a slice contains beside the schedulers of `hops`: on the way to the device what it contains
    /// from the host from which that takes longest.
    fn outside(&self, slice: usize, hops: &[(&DutParams, &PolicyParams)]) -> Result<u64, String> {
        let (study, link) = (self.study, self.study.link);
        if link.impairments.ingress.delay_variation.is_some() {
            // Frames that follow each other closer than they were sent may be above the burst.
            return Err("delay varies on it (`link.impairments.ingress`)".to_owned());
        }
        let mut sent = 0;
        for host in self.scenario.hosts_of(slice) {
            sent = sent.max(self.on_link_of(host)?);
        }
        let varies = link.impairments.egress.delay_variation;
        let in_hop = |(device, _): &(&DutParams, _)| {
            let processing = device.processing_delay.nanos();
            processing.saturating_add(link.propagation.nanos())
        };
        let parts = [
            ROUNDING.nanos(),
            link.propagation.nanos(),
            hops.iter().map(in_hop).fold(0, u64::saturating_add),
            varies.map_or(0, |variation| variation.up_to.nanos()),
            study.hosts.interrupt_moderation.nanos(),
        ];
        Ok(parts.into_iter().fold(sent, u64::saturating_add))
    }

    /// How long a frame of a host takes at most until its last bit, and all that was sent before it, is on the link, ns.
    fn on_link_of(&self, host: Option<&str>) -> Result<u64, String> {
        let mut reacting = self.scenario.applications.iter();
        if let Some(source) = reacting.find(|source| source.host.as_deref() == host) {
            return Err(reacts(source));
        }
        let Rate { rate, accounting } = self.study.link.rate;
        let sources = self.scenario.sources.iter();
        let of_host = sources.filter(|source| source.host.as_deref() == host);
        let curves = self.curves(of_host, accounting)?;
        let waiting = match backlog(&curves, rate).ok_or(TOO_MUCH)? {
            Backlog::AtMost(most) => most,
            Backlog::Grows(offered) => {
                return Err(format!(
                    "all sources together send {} on a link of {rate}",
                    bit_rate(offered)
                ));
            }
        };
        let sent = waiting.div_ceil(u128::from(rate.bits_per_second().max(1)));
        u64::try_from(sent).map_err(|_| TOO_MUCH.to_owned())
    }

    fn curves<'s>(
        &self,
        sources: impl Iterator<Item = &'s SourceParams>,
        accounting: Accounting,
    ) -> Result<Vec<ArrivalCurve>, String> {
        sources
            .map(|source| {
                ArrivalCurve::of(source, &self.study.hosts, accounting)
                    .map_err(|why| format!("source `{}` {why}", source.name))
            })
            .collect()
    }
}

/// Name, slice and headers of every source of a scenario.
fn flows(scenario: &ScenarioParams) -> impl Iterator<Item = (&str, usize, &SourceHeaders)> {
    let of_applications = scenario.applications.iter();
    let of_applications = of_applications.map(|s| (s.name.as_str(), s.slice, &s.headers));
    let of_sources = scenario.sources.iter();
    of_sources
        .map(|s| (s.name.as_str(), s.slice, &s.headers))
        .chain(of_applications)
}

/// Why nothing bounds what comes from an application.
fn reacts(source: &ApplicationSourceParams) -> String {
    format!(
        "source `{}` reacts to what it gets: no arrival curve bounds what its transport sends at once",
        source.name
    )
}

/// Where a sum does not fit in 128 bits.
const TOO_MUCH: &str = "the sources send too much to compute a bound";

fn bit_rate(bits_per_second: u128) -> BitRate {
    BitRate::new(u64::try_from(bits_per_second).unwrap_or(u64::MAX))
}
