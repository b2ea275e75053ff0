//! Changes of single slices while frames flow.

mod beside;
mod buffers;
mod churn;
mod conditioning;
mod diff;
pub mod flows;
mod kept;
mod matches;
mod policy;
mod purge;
mod random;
mod reserved;
mod tenants;

use crate::support::*;
use slicewise_dataplane::{
    Change, ClassCounters, Conditioning, DropReason, Frame, FrameOwner, NewSlice, SliceChange,
    SliceChangeError, SliceChanged, SliceFlows, Stale, Step, Verdict,
};
use slicewise_model::{
    BurstSpec, CLASS_DEFAULT, ClassMap, ClassSpec, Condition, Discipline, FlowQueueSpec,
    GuaranteeSpec, GuaranteedSpec, MatchMode, MaximumSpec, PolicerSpec, PolicySpec, QueueLimitSpec,
    QueueSpec, RateSpec, SliceParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, Instant};
use std::ops::RangeInclusive;

const LINK: BitRate = BitRate::new(10_000_000);

/// What a slice has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    /// kbit/s; none for best effort.
    cir: Option<u32>,
    /// Bytes.
    cbs: u32,
    delay: Duration,
    limited: bool,
    weight: u32,
    by_flow: bool,
    /// kbit/s; none without a policer.
    police: Option<u32>,
    set_dscp: Option<u8>,
    /// Of a second tenant.
    is_of_other: bool,
}

const BEST_EFFORT: Kind = Kind {
    cir: None,
    cbs: 0,
    delay: Duration::ZERO,
    limited: false,
    weight: 1,
    by_flow: false,
    police: None,
    set_dscp: None,
    is_of_other: false,
};

const fn guaranteed(cir: u32, cbs: u32, delay: Duration) -> Kind {
    Kind {
        cir: Some(cir),
        cbs,
        delay,
        ..BEST_EFFORT
    }
}

/// A class of the frames of some VLANs, with the name of those.
fn class(vlans: &RangeInclusive<u16>, kind: Kind) -> ClassSpec {
    let name = name(vlans);
    ClassSpec {
        guarantee: kind.cir.map(|cir| GuaranteeSpec {
            rate: RateSpec::Absolute(BitRate::new(u64::from(cir) * 1_000)),
            burst: Some(BurstSpec::Size(ByteCount::new(kind.cbs.into()))),
            delay: Some(kind.delay),
            smallest_frame: None,
        }),
        maximum: kind.limited.then(|| MaximumSpec {
            rate: RateSpec::Absolute(rate("6 Mbit/s")),
            burst: Some(BurstSpec::Size(ByteCount::new(u64::from(
                kind.cbs.max(4_000),
            )))),
        }),
        police: kind.police.map(|kbit| {
            PolicerSpec::new(RateSpec::Absolute(BitRate::new(u64::from(kbit) * 1_000)))
        }),
        set_dscp: kind.set_dscp,
        tenant: kind.is_of_other.then(|| "other".to_owned()),
        weight: Some(kind.weight),
        queue: match kind.by_flow {
            true => FlowQueueSpec::default().into(),
            false => QueueSpec::default(),
        }
        .with_limit(Some(QueueLimitSpec::Packets(40))),
        ..ClassSpec::new(ClassMap {
            name,
            mode: MatchMode::All,
            conditions: vec![Condition::OuterVlan(vlans.clone())],
        })
    }
}

fn name(vlans: &RangeInclusive<u16>) -> String {
    format!("vlan{}-{}", vlans.start(), vlans.end())
}

fn spec(classes: &[(RangeInclusive<u16>, Kind)]) -> PolicySpec {
    let classes = classes.iter().map(|(vlans, kind)| class(vlans, *kind));
    guaranteed_policy(classes.collect())
}

/// With a second tenant if a class is of that.
fn guaranteed_policy(classes: Vec<ClassSpec>) -> PolicySpec {
    let is_of_other = classes.iter().any(|class| class.tenant.is_some());
    PolicySpec {
        discipline: Discipline::Guaranteed,
        guaranteed: is_of_other.then(|| GuaranteedSpec {
            tenants: vec![("other".to_owned(), 2)],
            ..GuaranteedSpec::default()
        }),
        ..policy(classes)
    }
}

fn params(kind: Kind) -> SliceParams {
    // A guarantee that this link would refuse is refused by the pipeline.
    let policy = spec(&[(0..=0, kind)]).resolve(rate("10 Gbit/s")).unwrap();
    policy.classes[0].slice.unwrap()
}

fn add(vlans: &RangeInclusive<u16>, kind: Kind) -> SliceChange {
    let policy = spec(&[(vlans.clone(), kind)]);
    let policy = policy.resolve(rate("10 Gbit/s")).unwrap();
    let class = &policy.classes[0];
    SliceChange::Add(Box::new(NewSlice {
        name: class.name.clone(),
        matches: class.matches.clone().unwrap(),
        params: class.slice.unwrap(),
        conditioning: conditioning(kind),
        flow_queue: class.queue.flow_queue(),
        is_of_policy: false,
    }))
}

/// What a kind of slice does with frames before they are queued.
fn conditioning(kind: Kind) -> Conditioning {
    let policy = spec(&[(0..=0, kind)]).resolve(rate("10 Gbit/s")).unwrap();
    Conditioning {
        set_dscp: policy.classes[0].set_dscp,
        police: policy.classes[0].police.clone(),
    }
}

fn change(vlans: &RangeInclusive<u16>, kind: Kind) -> SliceChange {
    SliceChange::Change {
        name: name(vlans),
        params: params(kind),
    }
}

fn remove(vlans: &RangeInclusive<u16>) -> SliceChange {
    SliceChange::Remove { name: name(vlans) }
}

fn flows_of(vlans: &RangeInclusive<u16>, flows: SliceFlows) -> SliceChange {
    SliceChange::Flows {
        name: name(vlans),
        flows: Box::new(flows),
    }
}

fn apply(port: &mut Port, change: SliceChange) -> Result<SliceChanged, SliceChangeError> {
    let now = Instant::from_nanos(port.now());
    let checked = port.pipeline.check_slice_change(&change, now);
    let changed = port.pipeline.change_slice(change, now);
    let refused = changed.clone().err();
    assert_eq!(checked.err(), refused, "a check foretells it");
    changed
}

/// Of all classes with this name: a whole policy may bring back one whose frames still drain.
fn offered(port: &Port, name: &str) -> u64 {
    let of_name = port.pipeline.counters().filter(|class| class.class == name);
    of_name.map(|class| class.offered_frames).sum()
}

fn queued(port: &Port, class: u32) -> u64 {
    let class = port.pipeline.counters().nth(class as usize);
    class.map_or(0, |class| class.queued_frames)
}

#[test]
fn a_slice_that_is_added_waits_for_frames_of_class_default_before_it() {
    let mut port = Port::new(&spec(&[]), Some(LINK));
    let burst = |port: &mut Port, vlan, frames| {
        for _ in 0..frames {
            let _ = port.offer(arrival(port.now(), vlan, 1_000));
        }
    };
    burst(&mut port, 1, 5);
    burst(&mut port, 2, 5);
    let prompt = guaranteed(1_000, 3_000, Duration::from_millis(5));
    let added = apply(&mut port, add(&(1..=1), prompt)).unwrap();
    assert_eq!(added.waiting, 10, "the first is not on the wire yet");
    burst(&mut port, 1, 1);
    burst(&mut port, 2, 5);
    port.run_until(u64::MAX / 2);
    let order: Vec<u16> = port.departures.iter().map(|left| left.vlan).collect();
    assert_eq!(order, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn the_counters_of_a_removed_slice_are_kept_until_they_are_read() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    let offer = |port: &mut Port| {
        let at = port.now();
        port.offer(arrival(at, 1, 1_000))
    };
    let class = (0..3).map(|_| offer(&mut port)).count();
    assert_eq!(class, 3);
    let removed = apply(&mut port, remove(&(1..=1))).unwrap();
    assert_eq!((removed.class, removed.waiting), (0, 3));
    assert_eq!(
        offer(&mut port),
        Verdict::Queued,
        "behind those, as one of class-default"
    );
    assert_eq!(offered(&port, CLASS_DEFAULT), 1);
    let again = apply(&mut port, add(&(1..=1), BEST_EFFORT)).unwrap_err();
    assert_eq!(
        again.to_string(),
        "slice `vlan1-1` was removed, and 3 frames of it still wait: repeat it later"
    );
    assert_eq!(
        port.pipeline.poll_removed(Instant::from_nanos(port.now())),
        None
    );
    port.run_until(10_000_000);
    assert_eq!(
        offer(&mut port),
        Verdict::Queued,
        "it is of class-default now"
    );
    let now = Instant::from_nanos(port.now());
    let counters = port.pipeline.poll_removed(now).unwrap();
    assert_eq!(
        (
            counters.class.as_str(),
            counters.offered_frames,
            counters.sent_frames
        ),
        ("vlan1-1", 3, 3)
    );
    assert_eq!(port.departures.len(), 4, "the last one has left, too");
    assert_eq!(port.pipeline.poll_removed(now), None);
    let added = apply(&mut port, add(&(5..=5), BEST_EFFORT)).unwrap();
    assert_eq!(added.class, 0, "its place is used again");
}

/// Frames of a burst that were dropped.
struct Dropped(u32);

impl FrameOwner for Dropped {
    fn on_dropped(&mut self, _: &Frame, _: DropReason) {
        self.0 += 1;
    }
}

#[test]
fn a_burst_that_finds_its_slice_removed_is_of_the_next_class_and_counted_once() {
    let mut port = Port::new(
        &spec(&[(1..=1, BEST_EFFORT), (1..=2, BEST_EFFORT)]),
        Some(LINK),
    );
    let _ = port.offer(arrival(0, 1, 1_000));
    apply(&mut port, remove(&(1..=1))).unwrap();
    let sent = port.pipeline.poll_egress(Instant::ZERO);
    assert!(sent.is_some(), "the last frame of the slice");
    let frames: [_; 3] = std::array::from_fn(|n| frame(n as u64, 1, 1_000));
    let headers = [headers(1); 3];
    let pipeline = &mut port.pipeline;
    let mut dropped = Dropped(0);
    pipeline.enqueue_burst(&frames, &headers, Instant::ZERO, &mut dropped);
    assert_eq!(dropped.0, 0);
    let counted: Vec<(String, u64)> = pipeline
        .counters()
        .map(|class| (class.class.clone(), class.offered_frames))
        .collect();
    let expected = [("", 0), ("vlan1-2", 3), (CLASS_DEFAULT, 0)];
    assert_eq!(
        counted,
        expected.map(|(name, frames)| (name.to_owned(), frames))
    );
    let removed = pipeline.poll_removed(Instant::ZERO).unwrap();
    assert_eq!((removed.offered_frames, removed.sent_frames), (1, 1));
    assert_eq!(removed.dropped_total(), 0);
}

#[test]
fn changes_that_cannot_be_are_refused_and_change_nothing() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    let basis = port.pipeline.basis();
    let default = SliceChange::Remove {
        name: CLASS_DEFAULT.into(),
    };
    let mut stranger = params(BEST_EFFORT);
    stranger.tenant = 7;
    let moved = SliceChange::Change {
        name: "vlan1-1".into(),
        params: stranger,
    };
    let SliceChange::Add(mut foreign) =
        add(&(3..=3), guaranteed(1_000, 3_000, Duration::from_millis(9)))
    else {
        unreachable!()
    };
    foreign.params.tenant = 7;
    let refusals: Vec<String> = [
        remove(&(2..=2)),
        change(&(2..=2), BEST_EFFORT),
        add(&(1..=1), BEST_EFFORT),
        default,
        moved,
        SliceChange::Add(foreign),
    ]
    .into_iter()
    .map(|change| apply(&mut port, change).unwrap_err().to_string())
    .collect();
    assert_eq!(
        refusals,
        [
            "there is no slice `vlan2-2`",
            "there is no slice `vlan2-2`",
            "there is a slice `vlan1-1` already: change it, or choose another name",
            "class-default cannot be removed and has no class map: frames that no class map matches belong to it",
            "slice `vlan1-1`: unknown tenant 7",
            "slice `vlan3-3`: unknown tenant 7",
        ]
    );
    // Nothing has changed since, and nothing is reserved for the slice of the unknown tenant.
    let all = spec(&[(1..=1, guaranteed(9_500, 3_000, Duration::from_millis(50)))]);
    let change = Change::Policy(all.resolve(LINK).unwrap());
    let prepared = basis.prepare(change, Instant::ZERO).unwrap();
    assert_eq!(port.pipeline.version(), prepared.version());
    let whole = guaranteed(9_900, 3_000, Duration::from_millis(50));
    apply(&mut port, add(&(3..=3), whole)).unwrap();
    assert_ne!(port.pipeline.version(), prepared.version());
    assert_eq!(
        port.pipeline.commit(prepared, Instant::ZERO).unwrap_err(),
        Stale
    );
    let mut other = Port::new(&policy(vec![vlan_class(1)]), None);
    assert_eq!(
        apply(&mut other, remove(&(1..=1))).unwrap_err().to_string(),
        "policy `test` has no slices: its discipline is not `guaranteed`"
    );
}

#[test]
fn a_whole_policy_keeps_what_single_changes_have_made() {
    let fast = guaranteed(2_000, 3_000, Duration::from_millis(50));
    let mut port = Port::new(
        &spec(&[(1..=1, BEST_EFFORT), (2..=2, BEST_EFFORT)]),
        Some(LINK),
    );
    apply(&mut port, remove(&(1..=1))).unwrap();
    apply(&mut port, add(&(3..=3), BEST_EFFORT)).unwrap();
    apply(&mut port, change(&(3..=3), fast)).unwrap();
    for vlan in [2, 3, 3] {
        let at = port.now();
        let _ = port.offer(arrival(at, vlan, 1_000));
    }
    let same = [(2..=2, BEST_EFFORT), (3..=3, fast)];
    port.apply(&spec(&same));
    let counted: Vec<(String, u64)> = port
        .pipeline
        .counters()
        .map(|class| (class.class.clone(), class.queued_frames))
        .collect();
    let expected = [("vlan2-2", 1), ("vlan3-3", 2), (CLASS_DEFAULT, 0)];
    assert_eq!(
        counted,
        expected.map(|(name, frames)| (name.to_owned(), frames))
    );
    port.run_until(u64::MAX / 2);
    // Its frames did not drain, which would have been in order of arrival.
    let order: Vec<u16> = port.departures.iter().map(|left| left.vlan).collect();
    assert_eq!(order, [3, 3, 2]);
}
