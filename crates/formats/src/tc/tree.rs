//! The disciplines of a policy: one HTB for each policy that has several classes, in the class it
//! divides, and a queue for each class without a policy of its own.
//!
//! HTB serves first the leaves that are within their `rate`, then level by level those that borrow
//! from the class above, and on each level by `prio`, then in turn by `quantum`. What is borrowed is
//! not charged to `rate`. That is a minimum with the excess shared by weight, and strict priority
//! for a class whose `rate` is all there is.

mod filters;
mod remarks;

use super::counting::Counting;
use super::queue::{self, Place};
use super::{Feature, TcCommand, link_burst};
use crate::export::Inexpressible;
use crate::flow::{Flow, flows_of};
use crate::tc::filter::FieldsUsed;
use slicewise_model::{
    ClassMap, ClassParams, Condition, Discipline, MatchMode, PolicyParams, Rate,
};
use slicewise_units::{BitRate, ByteCount, Duration, NANOS_PER_SECOND};
use std::collections::BTreeSet;

/// Priorities of HTB; the last is that of the classes without.
const HTB_PRIORITIES: usize = 8;
/// Classes of one HTB: what is left of a minor number of 16 bits.
const CLASSES_MAX: usize = 0xff00;
/// The classes that hold the others, and the first of those that hold packets.
const MINOR_LINK: usize = 1;
const MINOR_REST: usize = 2;
const MINOR_FIRST: usize = 0x10;
/// The least rate that `tc` can give: one byte a second.
const RATE_MIN: BitRate = BitRate::new(8);
/// Frames that a bucket holds at least which shall never be what limits: the link above lets out one at
/// a time, one more waits in front of it, and two are to spare.
const BUCKET_FRAMES: u64 = 4;
/// Longest time that fits in the 32 bits of 64 ns by which `tc` states a burst.
const BURST_TIME_MAX: Duration = Duration::from_nanos(u32::MAX as u64 * 64);

/// Everything there is to say so far.
pub(super) struct Writer<'a> {
    pub(super) interface: &'a str,
    pub(super) link: BitRate,
    pub(super) counting: Counting,
    pub(super) commands: Vec<TcCommand>,
    pub(super) needs: BTreeSet<Feature>,
    pub(super) differences: Vec<String>,
    pub(super) problems: Vec<Inexpressible>,
    /// Major number of the next HTB.
    pub(super) next_handle: u32,
}

/// One class of an HTB.
struct HtbClass {
    minor: usize,
    parent: usize,
    rate: BitRate,
    /// Most credit for `rate`.
    burst: ByteCount,
    ceil: BitRate,
    /// Most credit for `ceil`.
    ceil_burst: ByteCount,
    prio: Option<usize>,
    quantum: u64,
}

/// One HTB while it is written.
struct Htb<'a> {
    policy: &'a PolicyParams,
    place: Place<'a>,
    handle: u32,
    /// Priority levels that are there, the first served first.
    levels: Vec<u8>,
    /// Rate that priority classes with a rate are kept to while others wait.
    policed: Option<BitRate>,
}

impl Writer<'_> {
    /// Write `policy` into its place.
    pub(super) fn policy(&mut self, policy: &PolicyParams, place: Place<'_>) {
        if policy.discipline == Discipline::Guaranteed {
            self.refuse_guarantees(policy, place.path);
            return;
        }
        if let Some(queue) = policy.queues.first() {
            let why = format!(
                "several classes may use the queue `{}`: here each class of HTB has a queue of its own; give each class its own, without `queue`",
                queue.name
            );
            self.refuse(place.path, "queues", why);
            return;
        }
        match policy.classes.as_slice() {
            [] => {}
            [only] if policy.is_one_queue() => match &only.child {
                Some(child) => {
                    let path = path_of(place.path, only);
                    self.policy(
                        child,
                        Place {
                            path: &path,
                            ..place
                        },
                    );
                }
                None => {
                    let path = path_of(place.path, only);
                    let place = Place {
                        path: &path,
                        ..place
                    };
                    self.queue(only, place);
                }
            },
            [.., default] if policy.is_one_queue() => {
                let path = path_of(place.path, default);
                let place = Place {
                    path: &path,
                    ..place
                };
                self.queue(default, place);
            }
            classes if classes.len() > CLASSES_MAX => self.refuse(
                place.path,
                "classes",
                format!(
                    "are {}: an HTB holds {CLASSES_MAX}; divide them among classes with a `child`",
                    classes.len()
                ),
            ),
            _ => self.htb(policy, place),
        }
    }

    fn refuse_guarantees(&mut self, policy: &PolicyParams, path: &str) {
        let mut promised = 0;
        for class in &policy.classes {
            if class.slice.is_some_and(|slice| slice.guarantee.is_some()) {
                promised += 1;
                self.refuse(
                    &path_of(path, class),
                    "guarantee",
                    "the kernel has no scheduler that keeps a delay bound for each slice: HTB keeps \
                     rates, and serves first or in turn; run the policy on the gateway, or write one with `minimum` \
                     (a rate) and `priority` (served first)"
                        .to_owned(),
                );
            }
        }
        if promised == 0 {
            self.refuse(
                path,
                "discipline",
                "the kernel has no scheduler that shares the excess tenant by tenant under maximums \
                 with bursts, as the discipline `guaranteed` does; run the policy on the gateway, or write one of \
                 `minimum_share` with `weight` and `shape`"
                    .to_owned(),
            );
        }
    }

    pub(super) fn refuse(&mut self, class: &str, what: &'static str, why: String) {
        self.problems.push(Inexpressible {
            class: (!class.is_empty()).then(|| class.to_owned()),
            what,
            why,
        });
    }

    /// State a difference, once.
    pub(super) fn differs(&mut self, difference: String) {
        if !self.differences.contains(&difference) {
            self.differences.push(difference);
        }
    }

    pub(super) fn command(&mut self, why: &str, text: &str, rest: &[String]) {
        let mut arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
        arguments.splice(2..2, ["dev".to_owned(), self.interface.to_owned()]);
        arguments.extend_from_slice(rest);
        self.commands.push(TcCommand {
            why: why.to_owned(),
            arguments,
        });
    }

    /// The queue of `class` at `place`, whose path is its own.
    fn queue(&mut self, class: &ClassParams, place: Place<'_>) {
        match queue::queue(class, place, self.counting) {
            Ok(queue) => {
                self.needs.extend(queue.needs);
                let why = format!("Queue of `{}`.", place.path);
                self.command(
                    &why,
                    &format!("qdisc add parent {}", place.parent),
                    &queue.arguments,
                );
                queue.differences.into_iter().for_each(|d| self.differs(d));
            }
            Err((what, why)) => self.refuse(place.path, what, why),
        }
    }

    fn htb(&mut self, policy: &PolicyParams, place: Place<'_>) {
        let levels: BTreeSet<u8> = policy
            .classes
            .iter()
            .filter_map(|class| class.priority.map(|p| p.level))
            .collect();
        if levels.len() >= HTB_PRIORITIES {
            let (there, most) = (levels.len(), HTB_PRIORITIES - 1);
            let why = format!(
                "has {there} levels: beside the classes without, HTB has {most}; give several classes one level"
            );
            self.refuse(place.path, "priority", why);
            return;
        }
        if !self.guarantees_fit(policy, place) {
            return;
        }
        let policed = policy
            .classes
            .iter()
            .filter_map(|class| class.priority.and_then(|p| p.police))
            .map(|(rate, _)| rate.rate)
            .reduce(|a, b| a + b);
        let htb = Htb {
            policy,
            place,
            handle: self.next_handle,
            levels: levels.into_iter().collect(),
            policed,
        };
        self.next_handle += 1;
        self.needs.insert(Feature::Htb);
        self.command(
            &match place.path {
                "" => "The scheduler.".to_owned(),
                path => format!("The scheduler within `{path}`."),
            },
            &format!(
                "qdisc add parent {} handle {:x}: htb default {:x}",
                place.parent,
                htb.handle,
                MINOR_FIRST + policy.classes.len() - 1
            ),
            &[],
        );
        self.inner_classes(&htb);
        if policy.discipline == Discipline::Fifo {
            self.shared_queue(&htb);
        } else {
            self.leaves(&htb);
        }
        self.filters(&htb);
        self.remarks(&htb);
    }

    /// Returns true if the guarantees do not exceed the rate there is; otherwise reports it.
    fn guarantees_fit(&mut self, policy: &PolicyParams, place: Place<'_>) -> bool {
        let guaranteed = policy.classes.iter().flat_map(|class| {
            let priority = class.priority.and_then(|p| p.police);
            [priority, class.minimum].into_iter().flatten()
        });
        let sum = guaranteed.fold(BitRate::ZERO, |sum, (rate, _)| sum + rate.rate);
        if sum > place.rate {
            let why = format!(
                "add up to {sum}, more than the {} there is: HTB would not keep any of them; lower one",
                place.rate
            );
            self.refuse(place.path, "guarantees", why);
        }
        sum <= place.rate
    }

    /// The class that all borrow from, and where priority classes are held to a rate another one
    /// between it and the classes without priority, which keeps the rest for them.
    fn inner_classes(&mut self, htb: &Htb<'_>) {
        let bucket = self.ample_bucket();
        let inner = HtbClass {
            minor: MINOR_LINK,
            parent: 0,
            rate: self.link,
            burst: bucket,
            ceil: self.link,
            ceil_burst: bucket,
            prio: None,
            quantum: self.counting.largest_frame().bytes(),
        };
        self.htb_class(htb, "What the classes share.", &inner);
        if let Some(policed) = htb.policed {
            let rest = HtbClass {
                minor: MINOR_REST,
                parent: MINOR_LINK,
                rate: htb.place.rate.saturating_sub(policed).max(RATE_MIN),
                ..inner
            };
            let why = "What priority classes beyond their rates must leave to the others.";
            self.htb_class(htb, why, &rest);
        }
    }

    fn htb_class(&mut self, htb: &Htb<'_>, why: &str, class: &HtbClass) {
        let handle = htb.handle;
        let parent = match class.parent {
            0 => format!("{handle:x}:"),
            parent => format!("{handle:x}:{parent:x}"),
        };
        let mut text = format!(
            "class add parent {parent} classid {handle:x}:{:x} htb rate {}bit ceil {}bit burst {} \
             cburst {} quantum {}",
            class.minor,
            class.rate.bits_per_second(),
            class.ceil.bits_per_second(),
            class.burst.bytes(),
            class.ceil_burst.bytes(),
            class.quantum,
        );
        if let Some(prio) = class.prio {
            text.push_str(&format!(" prio {prio}"));
        }
        self.command(why, &text, &[]);
    }

    /// It holds what the link above may let out at once, too.
    fn ample_bucket(&self) -> ByteCount {
        ByteCount::new(self.counting.largest_frame().bytes() * BUCKET_FRAMES)
            .max(link_burst(self.link))
    }

    /// A bucket of HTB out of which no more comes than out of one of `burst`: HTB sends a frame while
    /// there is any credit, not once there is enough, and so overdraws by up to one frame.
    fn bucket(&self, burst: ByteCount) -> ByteCount {
        burst
            .saturating_sub(self.counting.largest_frame())
            .max(ByteCount::new(1))
    }

    /// One queue for all classes, which are distinguished for policing alone.
    fn shared_queue(&mut self, htb: &Htb<'_>) {
        let Some(default) = htb.policy.classes.last() else {
            return;
        };
        let minor = MINOR_FIRST + htb.policy.classes.len() - 1;
        let leaf = HtbClass {
            minor,
            parent: MINOR_LINK,
            rate: self.link,
            burst: self.ample_bucket(),
            ceil: self.link,
            ceil_burst: self.ample_bucket(),
            prio: Some(0),
            quantum: self.counting.largest_frame().bytes(),
        };
        self.htb_class(htb, "One queue for all classes.", &leaf);
        let path = path_of(htb.place.path, default);
        let parent = format!("{:x}:{minor:x}", htb.handle);
        let place = Place {
            parent: &parent,
            path: &path,
            ..htb.place
        };
        self.queue(default, place);
    }

    fn leaves(&mut self, htb: &Htb<'_>) {
        let others = || htb.policy.classes.iter().filter(|c| c.priority.is_none());
        let divisor = others().fold(0, |divisor, class| greatest_divisor(divisor, class.weight));
        for (index, class) in htb.policy.classes.iter().enumerate() {
            let path = path_of(htb.place.path, class);
            let minor = MINOR_FIRST + index;
            self.check_bursts(class, &path);
            let frame = self.counting.largest_frame().bytes();
            let quantum = match class.priority {
                Some(_) => frame,
                None => u64::from(class.weight / divisor.max(1)) * frame,
            };
            if quantum > i32::MAX.unsigned_abs().into() {
                let why = format!(
                    "of {} against {divisor} is a turn of {quantum} bytes, more than HTB can give; choose weights that are closer \
                     together",
                    class.weight
                );
                self.refuse(&path, "weight", why);
            }
            let leaf = HtbClass {
                minor,
                quantum,
                ..self.leaf(htb, class)
            };
            self.htb_class(htb, &format!("Class `{path}`."), &leaf);
            let parent = format!("{:x}:{minor:x}", htb.handle);
            let rate = class.shape.map_or(htb.place.rate, |shape| shape.rate.rate);
            let place = Place {
                parent: &parent,
                rate,
                path: &path,
                code_points: htb.place.code_points & code_points(htb.policy, index),
            };
            match &class.child {
                None => self.queue(class, place),
                Some(child) => {
                    let rate = rate.min(htb.place.rate);
                    self.policy(child, Place { rate, ..place });
                }
            }
            self.rate_differences(class, &path);
        }
    }

    fn leaf(&self, htb: &Htb<'_>, class: &ClassParams) -> HtbClass {
        let ample = self.ample_bucket();
        let (rate, burst) = match (class.priority, class.minimum) {
            (Some(priority), _) => match priority.police {
                Some((rate, burst)) => (rate.rate, self.bucket(burst)),
                None => (self.link, ample),
            },
            (None, Some((minimum, burst))) => (minimum.rate, self.bucket(burst)),
            (None, None) => (RATE_MIN, ByteCount::new(1)),
        };
        let (ceil, ceil_burst) = match class.shape {
            Some(shape) => (shape.rate.rate, self.bucket(shape.burst)),
            None => (self.link, ample),
        };
        let level = |level: u8| htb.levels.iter().position(|&l| l == level);
        let rest = match htb.policed {
            Some(_) if class.priority.is_none() => MINOR_REST,
            _ => MINOR_LINK,
        };
        HtbClass {
            minor: 0,
            parent: rest,
            rate: rate.max(RATE_MIN),
            burst,
            ceil: ceil.max(rate).max(RATE_MIN),
            ceil_burst,
            prio: Some(
                class
                    .priority
                    .and_then(|p| level(p.level))
                    .unwrap_or(htb.levels.len()),
            ),
            quantum: 0,
        }
    }

    /// Bursts that `tc` cannot state.
    fn check_bursts(&mut self, class: &ClassParams, path: &str) {
        let priority = class.priority.and_then(|p| p.police);
        let shape = class.shape.map(|shape| (shape.rate, shape.burst));
        let settings = [
            ("priority", priority),
            ("minimum", class.minimum),
            ("shape", shape),
        ];
        for (what, setting) in settings {
            let Some((rate, burst)) = setting else {
                continue;
            };
            if let Some(why) = burst_refused(rate.rate, burst) {
                self.refuse(path, what, why);
            }
        }
    }
}

/// Why a burst beside a rate cannot be stated.
fn burst_refused(rate: BitRate, burst: ByteCount) -> Option<String> {
    let nanos = u128::from(burst.bytes()) * 8 * u128::from(NANOS_PER_SECOND)
        / u128::from(rate.bits_per_second().max(1));
    let most = BURST_TIME_MAX.nanos();
    (nanos > u128::from(most) || u32::try_from(burst.bytes()).is_err()).then(|| {
        format!(
            "a burst of {burst} at {rate}: tc states a burst in 32 bits as the time that the rate takes \
             for it, {} s at most, and in bytes, 4294967295 at most; give a smaller burst",
            most / NANOS_PER_SECOND
        )
    })
}

fn path_of(path: &str, class: &ClassParams) -> String {
    match path {
        "" => class.name.clone(),
        path => format!("{path}/{}", class.name),
    }
}

/// The code points that packets of a class may have, bit `n` for code point `n`; those that are no IP packets have 0.
fn code_points(policy: &PolicyParams, index: usize) -> u64 {
    let own = |class: &ClassParams| {
        let flows = class.matches.as_ref().map(flows_of)?.ok()?;
        Some(flows)
    };
    // What classes before it take whatever else a packet has.
    let before = policy.classes.iter().take(index).filter_map(own).flatten();
    let taken = before.fold(0, |taken, flow| match (flow.dscp, flow.without_dscp()) {
        (Some(set), rest) if rest == Flow::default() => taken | set,
        _ => taken,
    });
    let of_class = policy.classes.get(index).and_then(own);
    let matched = of_class.map_or(u64::MAX, |flows| {
        flows
            .iter()
            .fold(0, |set, flow| set | flow.dscp.unwrap_or(u64::MAX))
    });
    let map = policy.classes.get(index);
    let map = map.and_then(|class| class.matches.as_ref());
    // Class maps of code points match IP packets alone.
    matched & map.map_or(u64::MAX, of_map) & !(taken & !1)
}

/// The code points that packets of a class map may have, whatever else it asks for.
fn of_map(map: &ClassMap) -> u64 {
    let sets = map.conditions.iter().map(of_condition);
    match map.mode {
        MatchMode::Any => sets.fold(0, |all, set| all | set),
        MatchMode::All => sets.fold(u64::MAX, |all, set| all & set),
    }
}

fn of_condition(condition: &Condition) -> u64 {
    let all = |conditions: &[Condition]| {
        let sets = conditions.iter().map(of_condition);
        sets.fold(u64::MAX, |all, set| all & set)
    };
    match condition {
        Condition::Dscp(set) => *set,
        Condition::Not(inner) => match **inner {
            // Packets that are not IP count as 0.
            Condition::Dscp(set) => !set | 1,
            _ => u64::MAX,
        },
        Condition::AccessList(list) => {
            let permitted = list.entries.iter().filter(|entry| entry.permit);
            permitted.fold(0, |set, entry| set | all(&entry.conditions))
        }
        _ => u64::MAX,
    }
}

/// Euclid's.
fn greatest_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        b => greatest_divisor(b, a % b),
    }
}

/// Returns true if some class map looks behind the tags.
pub(super) fn looks_at_packets(policy: &PolicyParams) -> bool {
    policy.classes.iter().any(|class| {
        let used = class
            .matches
            .as_ref()
            .map(FieldsUsed::of)
            .unwrap_or_default();
        used.ip || used.transport || class.child.as_deref().is_some_and(looks_at_packets)
    })
}

/// A rate that some discipline takes must be whole bytes a second, and not none.
pub(super) fn usable(rate: Rate) -> bool {
    rate.rate >= RATE_MIN
}
