//! Changes of single slices while frames flow.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::{
    Change, ClassCounters, DropReason, NewSlice, SliceChange, SliceChangeError, SliceChanged,
    Stale, Verdict,
};
use slicewise_model::{
    BurstSpec, CLASS_DEFAULT, ClassMap, ClassSpec, Condition, Discipline, FlowQueueSpec,
    GuaranteeSpec, MatchMode, MaximumSpec, PolicySpec, QueueLimitSpec, RateSpec, SliceParams,
};
use slicewise_units::{BitRate, ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
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
}

const BEST_EFFORT: Kind = Kind {
    cir: None,
    cbs: 0,
    delay: Duration::ZERO,
    limited: false,
    weight: 1,
    by_flow: false,
};

fn guaranteed(cir: u32, cbs: u32, delay: Duration) -> Kind {
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
        }),
        maximum: kind.limited.then(|| MaximumSpec {
            rate: RateSpec::Absolute(rate("6 Mbit/s")),
            burst: Some(BurstSpec::Size(ByteCount::new(u64::from(
                kind.cbs.max(4_000),
            )))),
        }),
        weight: Some(kind.weight),
        flow_queue: kind.by_flow.then(FlowQueueSpec::default),
        queue_limit: Some(QueueLimitSpec::Packets(40)),
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
    PolicySpec {
        discipline: Discipline::Guaranteed,
        ..policy(classes.collect())
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
        set_dscp: None,
        flow_queue: class.flow_queue,
    }))
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

fn apply(port: &mut Port, change: SliceChange) -> Result<SliceChanged, SliceChangeError> {
    let now = Instant::from_nanos(port.now());
    port.pipeline.change_slice(change, now)
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

#[derive(Debug, Clone)]
enum Step {
    Offer(u16, u32, u64),
    Add(usize, Kind),
    Change(usize, Kind),
    Remove(usize),
    Whole(Vec<(usize, Kind)>),
    Shaper(bool),
    Read,
}

/// The class maps that slices have: some overlap.
const MAPS: [RangeInclusive<u16>; 6] = [0..=0, 1..=1, 2..=2, 1..=2, 0..=3, 3..=3];

fn kind() -> impl Strategy<Value = Kind> {
    let guarantee = prop::option::of((100u32..6_000, 1_522u32..20_000, 5u64..90));
    (guarantee, any::<bool>(), 1u32..5, 0u32..5).prop_map(|(guarantee, limited, weight, flows)| {
        let kind = guarantee.map_or(BEST_EFFORT, |(cir, cbs, delay)| {
            guaranteed(cir, cbs, Duration::from_millis(delay))
        });
        Kind {
            limited,
            weight,
            by_flow: flows == 0,
            ..kind
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let map = 0..MAPS.len();
    let whole = prop::collection::vec((map.clone(), kind()), 0..4);
    prop_oneof![
        30 => (0u16..5, 60u32..1522, 0u64..1_500_000).prop_map(|(v, b, g)| Step::Offer(v, b, g)),
        3 => (map.clone(), kind()).prop_map(|(map, kind)| Step::Add(map, kind)),
        2 => (map.clone(), kind()).prop_map(|(map, kind)| Step::Change(map, kind)),
        3 => map.prop_map(Step::Remove),
        1 => whole.prop_map(Step::Whole),
        1 => any::<bool>().prop_map(Step::Shaper),
        1 => Just(Step::Read),
    ]
}

/// Class maps in force, in the order in which they are tested, and the port.
struct Model {
    port: Port,
    maps: Vec<usize>,
    /// Class maps of removed slices, and their classes.
    draining: BTreeMap<usize, u32>,
    /// Counters of removed slices that were read.
    read: Vec<ClassCounters>,
}

impl Model {
    fn new() -> Self {
        Self {
            port: Port::new(&spec(&[]), Some(LINK)),
            maps: Vec::new(),
            draining: BTreeMap::new(),
            read: Vec::new(),
        }
    }

    /// The class of a frame by the plain walk. A slice that drains keeps its frames until it is empty.
    fn walk(&self, vlan: u16) -> String {
        let in_force = |map: &usize| MAPS[*map].contains(&vlan);
        let found = self.maps.iter().find(|map| in_force(map));
        found.map_or(CLASS_DEFAULT.to_owned(), |&map| name(&MAPS[map]))
    }

    fn offer(&mut self, vlan: u16, bytes: u32, gap: u64) {
        let at = self.port.now() + gap;
        self.port.run_until(at);
        self.forget_drained();
        let expected = self.walk(vlan);
        let before = offered(&self.port, &expected);
        let verdict = self.port.offer(Arrival { at, vlan, bytes });
        let after = offered(&self.port, &expected);
        assert_eq!(after, before + 1, "a frame of VLAN {vlan} is of {expected}");
        let drains = self
            .draining
            .keys()
            .any(|&map| name(&MAPS[map]) == expected);
        let removed = verdict == Verdict::Dropped(DropReason::SliceRemoved);
        assert_eq!(removed, drains, "{expected}: {verdict:?}");
    }

    /// Slices whose last frame has left are no longer matched.
    fn forget_drained(&mut self) {
        let port = &self.port;
        let is_gone = |class: &u32| queued(port, *class) == 0;
        let gone: Vec<usize> = self
            .draining
            .iter()
            .filter(|(_, class)| is_gone(class))
            .map(|(&map, _)| map)
            .collect();
        self.maps.retain(|map| !gone.contains(map));
        self.draining.retain(|map, _| !gone.contains(map));
    }

    fn add(&mut self, map: usize, kind: Kind) {
        self.forget_drained();
        match apply(&mut self.port, add(&MAPS[map], kind)) {
            Ok(_) => {
                assert!(!self.maps.contains(&map));
                self.maps.push(map);
            }
            Err(SliceChangeError::NameTaken { .. }) => {
                assert!(self.maps.contains(&map) && !self.draining.contains_key(&map));
            }
            Err(SliceChangeError::Draining { .. }) => assert!(self.draining.contains_key(&map)),
            Err(SliceChangeError::Refused { .. }) => assert!(!self.maps.contains(&map)),
            Err(other) => panic!("{other}"),
        }
    }

    fn step(&mut self, step: Step) {
        self.forget_drained();
        let now = Instant::from_nanos(self.port.now());
        match step {
            Step::Offer(vlan, bytes, gap) => self.offer(vlan, bytes, gap),
            Step::Add(map, kind) => self.add(map, kind),
            Step::Change(map, kind) => {
                let is_live = self.maps.contains(&map) && !self.draining.contains_key(&map);
                let changed = apply(&mut self.port, change(&MAPS[map], kind));
                let is_unknown = matches!(changed, Err(SliceChangeError::Unknown { .. }));
                assert_eq!(is_unknown, !is_live, "{changed:?}");
            }
            Step::Remove(map) => {
                let is_live = self.maps.contains(&map) && !self.draining.contains_key(&map);
                let removed = apply(&mut self.port, remove(&MAPS[map]));
                assert_eq!(removed.is_ok(), is_live, "{removed:?}");
                if let Ok(removed) = removed {
                    self.draining.insert(map, removed.class);
                }
            }
            Step::Whole(classes) => self.replace(classes),
            Step::Shaper(on) => {
                let shaper = on.then_some(slicewise_model::ShaperParams {
                    rate: slicewise_model::Rate::l2(rate("9 Mbit/s")),
                    burst: ByteCount::new(3_000),
                    priority_borrows: false,
                });
                let prepared = self
                    .port
                    .pipeline
                    .basis()
                    .prepare(Change::PortShaper(shaper), now);
                let replaced = self.port.pipeline.commit(prepared.unwrap(), now).unwrap();
                self.read.extend_from_slice(replaced.removed());
                self.on_replaced();
            }
            Step::Read => {
                let pipeline = &mut self.port.pipeline;
                self.read
                    .extend(std::iter::from_fn(|| pipeline.poll_removed(now)));
            }
        }
    }

    fn replace(&mut self, mut classes: Vec<(usize, Kind)>) {
        let mut seen = BTreeSet::new();
        classes.retain(|(map, _)| seen.insert(*map));
        let spec: Vec<_> = classes
            .iter()
            .map(|&(map, kind)| (MAPS[map].clone(), kind))
            .collect();
        let Ok(policy) = self::spec(&spec).resolve(LINK) else {
            return;
        };
        let now = Instant::from_nanos(self.port.now());
        let prepared = self
            .port
            .pipeline
            .basis()
            .prepare(Change::Policy(policy), now)
            .unwrap();
        let replaced = self.port.pipeline.commit(prepared, now).unwrap();
        self.read.extend_from_slice(replaced.removed());
        self.maps = classes.iter().map(|&(map, _)| map).collect();
        self.draining.clear();
    }

    /// Frames of slices that drained are before all others now.
    fn on_replaced(&mut self) {
        let draining = std::mem::take(&mut self.draining);
        self.maps.retain(|map| !draining.contains_key(map));
    }

    /// Every offered frame is counted once, also those of slices that are gone.
    fn check_counters(&mut self) {
        let now = Instant::from_nanos(self.port.now());
        let pipeline = &mut self.port.pipeline;
        self.read
            .extend(std::iter::from_fn(|| pipeline.poll_removed(now)));
        let (mut offered, mut accounted, mut sent) = (0, 0, 0);
        for class in self.port.pipeline.counters().chain(&self.read) {
            let all = class.sent_frames + class.queued_frames + class.dropped_total();
            assert_eq!(class.offered_frames, all, "class {}", class.class);
            offered += class.offered_frames;
            accounted += all;
            sent += class.sent_frames;
        }
        assert_eq!(
            (offered, accounted),
            (self.port.offered(), self.port.offered())
        );
        assert_eq!(sent, self.port.departures.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_sequence_of_changes_keeps_every_frame_in_order_and_in_the_class_that_the_walk_finds(
        steps in prop::collection::vec(step(), 1..400)
    ) {
        let mut model = Model::new();
        for step in steps {
            let is_offer = matches!(step, Step::Offer(..));
            let before = model.port.pipeline.backlog();
            model.step(step);
            if !is_offer {
                prop_assert_eq!(model.port.pipeline.backlog(), before, "a change loses nothing");
                model.check_counters();
            }
        }
        model.port.run_until(u64::MAX / 2);
        prop_assert_eq!(model.port.pipeline.backlog(), 0, "everything drains");
        model.check_counters();
        prop_assert_eq!(
            model.port.offered(),
            model.port.departures.len() as u64 + model.port.dropped
        );
        assert_in_order(&model.port.departures);
    }
}

#[test]
fn what_a_removed_slice_reserved_is_free_when_its_deadlines_have_passed() {
    let half = guaranteed(6_000, 6_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, half)]), Some(LINK));
    let refused = apply(&mut port, add(&(2..=2), half)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "slice `vlan2-2`: guarantees 6 Mbit/s, but only 4 Mbit/s of the link is unreserved: a \
         rate of at most 4 Mbit/s would be accepted"
    );
    apply(&mut port, remove(&(1..=1))).unwrap();
    let refused = apply(&mut port, add(&(2..=2), half)).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.ends_with(
            "; what slices had before they were changed or removed is released within 17.23 ms"
        ),
        "{text}"
    );
    port.run_until(20_000_000);
    apply(&mut port, add(&(2..=2), half)).unwrap();
}

#[test]
fn a_lower_guarantee_is_reserved_in_full_until_the_old_deadlines_have_passed() {
    let of = |cir| guaranteed(cir, 3_000, Duration::from_millis(20));
    let mut port = Port::new(&spec(&[(1..=1, of(8_000)), (2..=2, of(1_000))]), Some(LINK));
    apply(&mut port, change(&(1..=1), of(2_000))).unwrap();
    assert!(apply(&mut port, change(&(2..=2), of(7_000))).is_err());
    port.run_until(20_000_000);
    apply(&mut port, change(&(2..=2), of(7_000))).unwrap();
    // Changed back before the end of the transition: nothing is released that is in use.
    apply(&mut port, change(&(1..=1), of(1_000))).unwrap();
    apply(&mut port, change(&(1..=1), of(2_000))).unwrap();
    port.run_until(60_000_000);
    assert!(apply(&mut port, change(&(2..=2), of(8_100))).is_err());
    apply(&mut port, change(&(2..=2), of(8_000))).unwrap();
}

#[test]
fn a_change_that_fits_only_without_the_old_guarantee_says_so() {
    let (ms, fast) = (
        Duration::from_millis,
        guaranteed(1_000, 9_000, Duration::from_millis(10)),
    );
    let mut port = Port::new(&spec(&[(1..=1, fast)]), Some(LINK));
    let slow = guaranteed(6_000, 60_000, ms(90));
    let error = apply(&mut port, change(&(1..=1), slow)).unwrap_err();
    assert!(
        matches!(error, SliceChangeError::InTransition { .. }),
        "{error}"
    );
    let slower = guaranteed(1_000, 9_000, ms(90));
    apply(&mut port, change(&(1..=1), slower)).unwrap();
    assert!(apply(&mut port, change(&(1..=1), slow)).is_err());
    port.run_until(ms(10).nanos());
    apply(&mut port, change(&(1..=1), slow)).unwrap();
}

#[test]
fn a_slice_that_is_added_waits_for_frames_of_class_default_before_it() {
    let mut port = Port::new(&spec(&[]), Some(LINK));
    let burst = |port: &mut Port, vlan, frames| {
        for _ in 0..frames {
            let (at, bytes) = (port.now(), 1_000);
            let _ = port.offer(Arrival { at, vlan, bytes });
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
        port.offer(Arrival {
            at,
            vlan: 1,
            bytes: 1_000,
        })
    };
    let class = (0..3).map(|_| offer(&mut port)).count();
    assert_eq!(class, 3);
    let removed = apply(&mut port, remove(&(1..=1))).unwrap();
    assert_eq!((removed.class, removed.waiting), (0, 3));
    assert_eq!(offer(&mut port), Verdict::Dropped(DropReason::SliceRemoved));
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
        ("vlan1-1", 4, 3)
    );
    assert_eq!(counters.dropped(DropReason::SliceRemoved), 1);
    assert_eq!(port.pipeline.poll_removed(now), None);
    let added = apply(&mut port, add(&(5..=5), BEST_EFFORT)).unwrap();
    assert_eq!(added.class, 0, "its place is used again");
}

#[test]
fn a_burst_that_finds_its_slice_removed_is_of_the_next_class_and_counted_once() {
    let mut port = Port::new(
        &spec(&[(1..=1, BEST_EFFORT), (1..=2, BEST_EFFORT)]),
        Some(LINK),
    );
    let _ = port.offer(Arrival {
        at: 0,
        vlan: 1,
        bytes: 1_000,
    });
    apply(&mut port, remove(&(1..=1))).unwrap();
    let sent = port.pipeline.poll_egress(Instant::ZERO);
    assert!(sent.is_some(), "the last frame of the slice");
    let frames: [_; 3] = std::array::from_fn(|n| frame(n as u64, 1, 1_000));
    let (headers, mut verdicts) = ([headers(1); 3], [Verdict::Queued; 3]);
    let pipeline = &mut port.pipeline;
    pipeline.enqueue_burst(&frames, &headers, Instant::ZERO, |_, _| true, &mut verdicts);
    assert_eq!(verdicts, [Verdict::Queued; 3]);
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
            "class-default cannot be removed: frames that no class map matches belong to it",
            "slice `vlan1-1`: a slice cannot move to another tenant: remove it and add it there",
            "slice `vlan3-3`: unknown tenant 7",
        ]
    );
    // Nothing has changed since, and nothing is reserved for the slice of the unknown tenant.
    let all = spec(&[(1..=1, guaranteed(9_500, 3_000, Duration::from_millis(50)))]);
    let change = Change::Policy(all.resolve(LINK).unwrap());
    let prepared = basis.prepare(change, Instant::ZERO).unwrap();
    let whole = guaranteed(9_900, 3_000, Duration::from_millis(50));
    apply(&mut port, add(&(3..=3), whole)).unwrap();
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
        let _ = port.offer(Arrival {
            at,
            vlan,
            bytes: 1_000,
        });
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A slice within its guarantee, and others that come, change, send all they have at once, and go.
    #[test]
    fn no_change_of_other_slices_delays_a_frame_beyond_its_bound(
        churn in prop::collection::vec(
            (
                prop_oneof![
                    (0..MAPS.len(), kind()).prop_map(|(map, kind)| Step::Add(map, kind)),
                    (0..MAPS.len(), kind()).prop_map(|(map, kind)| Step::Change(map, kind)),
                    (0..MAPS.len()).prop_map(Step::Remove),
                ],
                prop::collection::vec((0u16..5, 1u32..30), 0..4),
                0u64..8_000_000,
            ),
            1..150,
        )
    ) {
        const VLAN: u16 = 9;
        let own = guaranteed(1_000, 3_000, Duration::from_millis(20));
        let mut model = Model::new();
        model.port = Port::new(&spec(&[(VLAN..=VLAN, own)]), Some(LINK));
        let classes = spec(&[(VLAN..=VLAN, own)]).resolve(LINK).unwrap();
        let delays = classes.guaranteed.unwrap().delay_classes;
        let class = classes.classes[0].slice.unwrap().guarantee.unwrap().class;
        let bound = delays.delay(class) + delays.bucket_width();
        let (mut conforming, mut arrivals) = (0u64, Vec::new());
        for (step, bursts, gap) in churn {
            model.step(step);
            for (vlan, frames) in bursts {
                for _ in 0..frames {
                    let _ = model.port.offer(Arrival { at: model.port.now(), vlan, bytes: 1_500 });
                }
            }
            // Its whole burst, as early as it may.
            let now = model.port.now();
            if now >= conforming {
                for _ in 0..2 {
                    arrivals.push(now);
                    let _ = model.port.offer(Arrival { at: now, vlan: VLAN, bytes: 1_500 });
                }
                conforming = now + 24_000_000;
            }
            model.port.run_until(now + gap);
        }
        model.port.run_until(u64::MAX / 2);
        let left = model.port.departures.iter().filter(|left| left.vlan == VLAN);
        let left: Vec<u64> = left.map(|left| left.at + 1_200_000).collect();
        prop_assert_eq!(left.len(), arrivals.len());
        for (arrived, left) in arrivals.iter().zip(left) {
            prop_assert!(left <= arrived + bound.nanos(), "{} ns late", left - arrived - bound.nanos());
        }
    }
}
