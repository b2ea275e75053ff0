//! How late frames are eligible on a path of devices that each guarantee their class a rate, a burst and a delay.
//!
//! Step numbers are those of the proof in `docs/mechanisms/guaranteed-bound.md`. Frames of one host that have been in the same class on
//! each device so far are a *stream*: they arrive in the order in which they were sent. A frame of stream o, sent at t, arrives at the
//! i-th device at the latest at t + A_i(o), and is eligible there at the latest at t + E_i(o):
//!
//! - A_1(o) is the longest wait in the host's adapter, and A_{i+1}(o) = E_i(o) + D + δ of its class (step 6);
//! - E_i(o) = A_i(o) where its class has no other stream: a token bucket behind a system that keeps the order delays nothing that it would
//!   not have delayed in front of it (step 7; J.-Y. Le Boudec, *A Theory of Traffic Regulators for Deterministic Networks*, ToN 2018);
//! - with other streams, E_i(o) = A_i(o) + \[sup_u Σ_s α_s(u + J_s) − ρ u − σ\]⁺ / ρ, where J_s is 0 for o itself, A_i(s) − A_i(o) + A_r(o) for
//!   streams that have been in its class since device r, and A_i(s) for all others: frames of these may have overtaken it, and have used the
//!   tokens that its own source left (step 8). All that was in the class of o on the device before may also be counted as σ' + ρ' u.

use super::{TOO_MUCH, reacts};
use crate::params::{DutParams, ScenarioParams, SourceHeaders, SourceParams};
use crate::study::Study;
use slicewise_model::{Action, ClassParams, GuaranteeParams, GuaranteedParams, PolicyParams, Rate};
use slicewise_traffic::arrivals::{ArrivalCurve, Backlog, Counting, amount, backlog, bytes_up};
use slicewise_units::{Accounting, ByteCount, Duration, NANOS_PER_SECOND};
use std::collections::{BTreeMap, BTreeSet};

/// Departures and link times are whole nanoseconds, rounded: a source may be ahead of its rate by
/// as much without sending more than it may.
pub(super) const ROUNDING: Duration = Duration::from_nanos(2);
/// Most streams of a class that are each looked at; of more, each counts as if it was behind all others.
const MAX_STREAMS: usize = 64;

/// How far frames of one flow have come.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    /// The slice of the flow.
    pub(super) slice: usize,
    /// Number of devices so far that guarantee it something.
    pub(super) guarantees: usize,
    /// Sum of D + δ of its classes so far, ns, or why its time in a device has no bound.
    pub(super) schedulers_ns: Result<u64, String>,
    /// A: the latest arrival at the next device after the moment it was sent, beside what is the same for all frames, ns; or why that
    /// has no bound.
    pub(super) late_ns: Result<u64, String>,
    /// Propagation delay of the link of its host, ns: a source at its end would be the same to the device.
    pub(super) link_ns: u64,
    /// Frames of one stream stay in order.
    stream: usize,
    /// Its class on each device so far, where that guarantees it something.
    passed: Vec<Option<Passed>>,
    headers: SourceHeaders,
    /// Why its headers, and so its class on the next device, are not known.
    remarked: Option<String>,
}

/// A class with a guarantee that a flow has passed.
#[derive(Debug, Clone, Copy)]
struct Passed {
    class: usize,
    /// A: see the top of this file.
    late_ns: u64,
    guarantee: GuaranteeParams,
    accounting: Accounting,
}

/// The flows of a scenario, device by device.
pub(super) struct Walk<'a> {
    study: &'a Study,
    scenario: &'a ScenarioParams,
    /// Of each source, then of each application.
    pub(super) flows: Vec<Progress>,
}

impl<'a> Walk<'a> {
    /// All flows behind the adapters of their hosts.
    pub(super) fn begin(study: &'a Study, scenario: &'a ScenarioParams) -> Self {
        let hosts: Vec<Option<&str>> = flows(scenario).map(|(_, host, _)| host).collect();
        let streams: BTreeSet<Option<&str>> = hosts.iter().copied().collect();
        let streams: Vec<Option<&str>> = streams.into_iter().collect();
        let late: Vec<Result<u64, String>> = streams
            .iter()
            .map(|host| on_link_of(study, scenario, *host))
            .collect();
        let flows = flows(scenario).map(|(slice, host, headers)| {
            let stream = streams.binary_search(&host).unwrap_or_default();
            Progress {
                slice,
                guarantees: 0,
                schedulers_ns: Ok(0),
                late_ns: late[stream].clone(),
                link_ns: study.propagation_from(host).nanos(),
                stream,
                passed: Vec::new(),
                headers,
                remarked: None,
            }
        });
        Self {
            study,
            scenario,
            flows: flows.collect(),
        }
    }

    /// All flows pass a device.
    pub(super) fn pass(&mut self, device: &DutParams, policy: &PolicyParams) {
        let classes: Vec<Option<usize>> = self.flows.iter().map(|f| class(policy, f)).collect();
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (flow, class) in classes.iter().enumerate() {
            match class {
                Some(class) => members.entry(*class).or_default().push(flow),
                None => self.flows[flow].leave_guarantees(),
            }
        }
        let mut after = self.flows.clone();
        for (index, members) in members {
            let Some(class) = policy.classes.get(index) else {
                continue;
            };
            members.iter().for_each(|flow| after[*flow].remark(class));
            let guaranteed = policy.guaranteed.as_ref();
            let guarantee = class.slice.and_then(|slice| slice.guarantee);
            let (Some(guaranteed), Some(guarantee)) = (guaranteed, guarantee) else {
                members
                    .iter()
                    .for_each(|flow| after[*flow].leave_guarantees());
                continue;
            };
            let shared = Shared {
                walk: self,
                remarked: self.flows.iter().find_map(|flow| flow.remarked.as_ref()),
                class,
                guaranteed,
                guarantee,
                members: &members,
            };
            shared.pass(device, index, &mut after);
        }
        let mut streams = BTreeMap::new();
        for (flow, class) in after.iter_mut().zip(classes) {
            let next = streams.len();
            flow.stream = *streams.entry((flow.stream, class)).or_insert(next);
        }
        self.flows = after;
    }

    fn source(&self, flow: usize) -> Option<&'a SourceParams> {
        self.scenario.sources.get(flow)
    }

    fn curve(&self, flow: usize, counting: Counting) -> Result<ArrivalCurve, String> {
        let Some(source) = self.source(flow) else {
            let application = flow - self.scenario.sources.len();
            let application = self.scenario.applications.get(application);
            return Err(application.map_or_else(|| TOO_MUCH.to_owned(), reacts));
        };
        ArrivalCurve::of(source, &self.study.hosts, counting)
            .map_err(|why| format!("source `{}` {why}", source.name))
    }
}

/// Slice, host and headers of every source of a scenario, then of every application.
fn flows(scenario: &ScenarioParams) -> impl Iterator<Item = (usize, Option<&str>, SourceHeaders)> {
    let of_sources = scenario.sources.iter();
    let of_sources = of_sources.map(|s| (s.slice, s.host.as_deref(), s.headers));
    let of_applications = scenario.applications.iter();
    let of_applications = of_applications.map(|s| (s.slice, s.host.as_deref(), s.headers));
    of_sources.chain(of_applications)
}

/// The class of the frames of a flow.
fn class(policy: &PolicyParams, flow: &Progress) -> Option<usize> {
    policy.classes.iter().position(|class| {
        let map = class.matches.as_ref();
        map.is_none_or(|map| map.matches(&(&flow.headers).into()))
    })
}

/// How long a frame of a host takes at most until its last bit, and all that was sent before it, is on the link, ns.
fn on_link_of(study: &Study, scenario: &ScenarioParams, host: Option<&str>) -> Result<u64, String> {
    if study.link.impairments.ingress.delay_variation.is_some() {
        // Frames that follow each other closer than they were sent may be above the burst.
        return Err("delay varies on it (`link.impairments.ingress`)".to_owned());
    }
    let mut reacting = scenario.applications.iter();
    if let Some(source) = reacting.find(|source| source.host.as_deref() == host) {
        return Err(reacts(source));
    }
    let Rate { rate, accounting } = study.link.rate;
    let sources = scenario.sources.iter();
    let of_host = sources.filter(|source| source.host.as_deref() == host);
    let curves = of_host.map(|source| {
        ArrivalCurve::of(source, &study.hosts, accounting.into())
            .map_err(|why| format!("source `{}` {why}", source.name))
    });
    let curves: Vec<ArrivalCurve> = curves.collect::<Result<_, _>>()?;
    let waiting = match backlog(&curves, rate).ok_or(TOO_MUCH)? {
        Backlog::AtMost(most) => most,
        Backlog::Grows(offered) => {
            return Err(format!(
                "all sources together send {} on a link of {rate}",
                super::bit_rate(offered)
            ));
        }
    };
    let sent = waiting.div_ceil(u128::from(rate.bits_per_second().max(1)));
    u64::try_from(sent).map_err(|_| TOO_MUCH.to_owned())
}

impl Progress {
    /// A of this flow on the first device from which on the other has been in its class; `None` if it was not in it on the last.
    fn together_since(&self, other: &Self) -> Option<u64> {
        let classes = self.passed.iter().zip(&other.passed).rev();
        let together = classes.map_while(|(own, other)| {
            own.filter(|own| other.is_some_and(|other| other.class == own.class))
        });
        together.last().map(|passed| passed.late_ns)
    }

    /// It gets the code point that a class gives its frames.
    fn remark(&mut self, class: &ClassParams) {
        // In a tunnel the outer packet gets it, which classifiers do not look at.
        if self.headers.tunnel.is_none() {
            self.headers.dscp = class.set_dscp.unwrap_or(self.headers.dscp);
        }
        let police = class.police.as_ref();
        let actions = police.map(|p| [&p.conform, &p.exceed, &p.violate]);
        let mut actions = actions.into_iter().flatten();
        if actions.any(|action| !matches!(action, Action::Transmit | Action::Drop)) {
            self.remarked = Some(format!(
                "the policer of class `{}` marks some frames, which may be in other classes from there on",
                class.name
            ));
        }
    }

    /// It is in a class that guarantees nothing: how long it stays there has no bound.
    fn leave_guarantees(&mut self) {
        self.passed.push(None);
        let unguaranteed = || "not every device on its path gives it a guarantee".to_owned();
        let why = self.remarked.clone().unwrap_or_else(unguaranteed);
        self.late_ns = Err(why.clone());
        if self.schedulers_ns.is_ok() {
            self.schedulers_ns = Err(why);
        }
    }
}

/// The flows that share a class with a guarantee.
struct Shared<'a> {
    walk: &'a Walk<'a>,
    /// Why frames of other flows may be in this class.
    remarked: Option<&'a String>,
    class: &'a ClassParams,
    guaranteed: &'a GuaranteedParams,
    guarantee: GuaranteeParams,
    /// Positions of flows.
    members: &'a [usize],
}

impl Shared<'_> {
    fn pass(&self, device: &DutParams, class: usize, after: &mut [Progress]) {
        let delay_ns = self.guarantee.delay.nanos();
        let in_class = self.check(device);
        let eligible = in_class.clone().and_then(|()| self.eligible());
        let room = match &in_class {
            Ok(()) => self.check_room(eligible.as_deref().unwrap_or_default()),
            Err(_) => Ok(()),
        };
        let in_class = in_class.and(room);
        for (position, &flow) in self.members.iter().enumerate() {
            let progress = &mut after[flow];
            progress.guarantees += 1;
            progress.schedulers_ns = match (&progress.schedulers_ns, &in_class) {
                (Ok(before), Ok(())) => Ok(before.saturating_add(delay_ns)),
                (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            };
            let eligible = eligible.as_ref().map(|eligible| eligible[position]);
            let eligible = eligible.map_err(Clone::clone);
            let late_ns = *progress.late_ns.as_ref().unwrap_or(&0);
            let late = eligible.map(|eligible| eligible.saturating_add(delay_ns));
            progress.late_ns = in_class.clone().and(late);
            progress.passed.push(Some(Passed {
                class,
                late_ns,
                guarantee: self.guarantee,
                accounting: self.guaranteed.accounting,
            }));
        }
    }

    fn counting(&self) -> Counting {
        Counting {
            accounting: self.guaranteed.accounting,
            smallest_frame: self.guarantee.smallest_frame,
        }
    }

    fn curves(&self) -> Result<Vec<ArrivalCurve>, String> {
        let curve = |flow: &usize| self.walk.curve(*flow, self.counting());
        self.members.iter().map(curve).collect()
    }

    /// Checks that all traffic of the class fits its guarantee and leaves the class in order.
    fn check(&self, device: &DutParams) -> Result<(), String> {
        let name = &self.class.name;
        if let Some(why) = self.remarked {
            return Err(why.clone());
        }
        if !self.class.queue.keeps_order() {
            return Err(format!(
                "frames of class `{name}` overtake each other in its flow queue: only their \
                 service as a whole is bounded"
            ));
        }
        if self.class.elephants.is_some() {
            return Err(format!("elephants of class `{name}` wait in another queue"));
        }
        let guarantee = &self.guarantee;
        match backlog(&self.curves()?, guarantee.rate).ok_or(TOO_MUCH)? {
            Backlog::Grows(offered) => {
                return Err(format!(
                    "class `{name}` receives {}, but only {} are guaranteed",
                    super::bit_rate(offered),
                    guarantee.rate
                ));
            }
            Backlog::AtMost(needed) => {
                let rounding = guarantee.rate.bits_per_second() * ROUNDING.nanos();
                let needed = bytes_up(needed.saturating_sub(u128::from(rounding)));
                if needed > guarantee.burst {
                    return Err(format!(
                        "class `{name}` may receive bursts of {needed}, but only {} are guaranteed",
                        guarantee.burst
                    ));
                }
            }
        }
        super::check_device(device, self.guaranteed)
    }

    /// E of each member, ns.
    fn eligible(&self) -> Result<Vec<u64>, String> {
        let flows = &self.walk.flows;
        let curves = self.curves()?;
        let streams = self.members.iter().map(|flow| flows[*flow].stream);
        let streams: BTreeSet<usize> = streams.collect();
        if streams.len() == 1 {
            return self
                .members
                .iter()
                .map(|flow| flows[*flow].late_ns.clone())
                .collect();
        }
        let late = self.members.iter().map(|flow| flows[*flow].late_ns.clone());
        let late: Vec<u64> = late.collect::<Result<_, _>>()?;
        let waits: BTreeMap<usize, u64> = if streams.len() > MAX_STREAMS {
            let longest = self.wait_behind_others(None, &curves, &late)?;
            streams
                .into_iter()
                .map(|stream| (stream, longest))
                .collect()
        } else {
            let waits = streams.into_iter().map(|stream| {
                let wait = self.wait_behind_others(Some(stream), &curves, &late)?;
                Ok((stream, wait))
            });
            waits.collect::<Result<_, String>>()?
        };
        let own = self.members.iter().zip(late);
        Ok(own
            .map(|(flow, late)| late.saturating_add(waits[&flows[*flow].stream]))
            .collect())
    }

    /// How much longer frames of a stream wait for tokens than in front of a system that keeps the order, ns; without a
    /// stream, those of any.
    fn wait_behind_others(
        &self,
        stream: Option<usize>,
        curves: &[ArrivalCurve],
        late: &[u64],
    ) -> Result<u64, String> {
        let flows = &self.walk.flows;
        let mut members = self.members.iter().zip(late);
        let own = members.find(|(flow, _)| Some(flows[**flow].stream) == stream);
        let own = own.map(|(flow, late)| (&flows[*flow], *late));
        // As it was sent: of streams that were in its class on the device before, and of all others.
        let (mut together, mut others) = (Vec::new(), Vec::new());
        let mut last = None;
        for ((flow, curve), late) in self.members.iter().zip(curves).zip(late) {
            let flow = &flows[*flow];
            match own.and_then(|(own, own_late)| Some((own.together_since(flow)?, own_late))) {
                Some((first, own_late)) => {
                    let variation = (late + first).saturating_sub(own_late);
                    let is_own = own.is_some_and(|(own, _)| own.stream == flow.stream);
                    together.push(curve.delayed(if is_own { 0 } else { variation }));
                    last = flow.passed.last().copied().flatten();
                }
                None if own.is_some_and(|(own, _)| own.stream == flow.stream) => {
                    together.push(*curve);
                }
                None => others.push(curve.delayed(*late)),
            }
        }
        let as_sent = self.wait(together.iter().chain(&others));
        // As it left that class.
        let left = last.filter(|passed| self.counts_as(passed));
        let left = left.map(|Passed { guarantee, .. }| {
            let left = ArrivalCurve::of_bucket(guarantee.rate, guarantee.burst);
            self.wait(others.iter().chain([&left]))
        });
        match left.unwrap_or(u64::MAX).min(as_sent) {
            u64::MAX => Err(TOO_MUCH.to_owned()),
            wait => Ok(wait),
        }
    }

    /// The longest wait for tokens of what arrives by these curves, ns; `u64::MAX` where nothing bounds it.
    fn wait<'c>(&self, curves: impl Iterator<Item = &'c ArrivalCurve>) -> u64 {
        let curves: Vec<ArrivalCurve> = curves.copied().collect();
        let GuaranteeParams { rate, burst, .. } = self.guarantee;
        let tokens = u128::from(burst.bytes()) * 8 * u128::from(NANOS_PER_SECOND);
        match backlog(&curves, rate) {
            Some(Backlog::AtMost(needed)) => {
                let missing = needed.saturating_sub(tokens);
                let wait = missing.div_ceil(u128::from(rate.bits_per_second().max(1)));
                u64::try_from(wait).unwrap_or(u64::MAX)
            }
            Some(Backlog::Grows(_)) | None => u64::MAX,
        }
    }

    /// Returns true if the earlier class `passed` counts bytes as this one does.
    fn counts_as(&self, passed: &Passed) -> bool {
        let before = (passed.accounting, passed.guarantee.smallest_frame);
        before == (self.guaranteed.accounting, self.guarantee.smallest_frame)
    }

    /// Checks that all frames that may wait fit in the queue, where `eligible` bounds their eligible times. Where those
    /// are not known, frames are taken to arrive in the order in which they were sent.
    fn check_room(&self, eligible: &[u64]) -> Result<(), String> {
        let flows = &self.walk.flows;
        let late = |position: usize| match eligible.get(position) {
            Some(_) => *flows[self.members[position]].late_ns.as_ref().unwrap_or(&0),
            None => 0,
        };
        let waits = eligible.iter().enumerate();
        let longest = waits
            .map(|(position, eligible)| eligible - late(position))
            .max();
        let window = longest
            .unwrap_or(0)
            .saturating_add(self.guarantee.delay.nanos());
        let (mut bytes, mut packets) = (0u64, 0u64);
        for (position, &flow) in self.members.iter().enumerate() {
            let Some(source) = self.walk.source(flow) else {
                continue;
            };
            let curve = self
                .walk
                .curve(flow, Accounting::L2.into())?
                .delayed(late(position));
            let most = bytes_up(amount(&[curve], window).ok_or(TOO_MUCH)?).bytes();
            let smallest = source
                .weighted_sizes()
                .map(|sized| sized.size.l2_bytes)
                .min();
            bytes = bytes.saturating_add(most);
            packets = packets.saturating_add(most / u64::from(smallest.unwrap_or(1).max(1)));
        }
        let limit = self
            .class
            .slice
            .map_or(self.class.queue.limit, |slice| slice.queue_limit);
        if packets <= u64::from(limit.packets) && bytes <= limit.bytes.bytes() {
            return Ok(());
        }
        let name = &self.class.name;
        let most = if packets > u64::from(limit.packets) {
            format!(
                "{packets} packets may wait in class `{name}`, and its queue holds {}",
                limit.packets
            )
        } else {
            format!(
                "{} may wait in class `{name}`, and its queue holds {}",
                ByteCount::new(bytes),
                limit.bytes
            )
        };
        Err(format!(
            "{most}: frames within its guarantee may be lost unless `queue_limit` is larger"
        ))
    }
}
