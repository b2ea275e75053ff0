//! Random sequences of changes and frames.

use super::purge::purge;
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
enum Step {
    Offer(u16, u32, u64),
    Add(usize, Kind),
    Change(usize, Kind),
    /// What is done about the flows of a slice: of a map, or of [`OWN`].
    Flows(usize, SliceFlows),
    Remove(usize),
    Purge(usize),
    Whole(Vec<(usize, Kind)>),
    Shaper(bool),
    Read,
}

/// The class maps that slices have: some overlap.
const MAPS: [RangeInclusive<u16>; 6] = [0..=0, 1..=1, 2..=2, 1..=2, 0..=3, 3..=3];

/// The VLAN of a slice that keeps to its guarantee.
const OWN: u16 = 9;

/// The class map at an index, or that of [`OWN`].
fn map_at(index: usize) -> RangeInclusive<u16> {
    MAPS.get(index).cloned().unwrap_or(OWN..=OWN)
}

fn slice_flows() -> impl Strategy<Value = SliceFlows> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(weigh, queue, elephants)| SliceFlows {
        weigh,
        queue: queue.then_some(flows::PATIENT),
        elephants: elephants.then(|| flows::elephants(4_000, 10)),
    })
}

pub(super) fn kind() -> impl Strategy<Value = Kind> {
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
        2 => (map.clone(), slice_flows()).prop_map(|(map, flows)| Step::Flows(map, flows)),
        3 => map.clone().prop_map(Step::Remove),
        2 => map.prop_map(Step::Purge),
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
    fn walk(&self, vlan: u16, without: Option<usize>) -> String {
        let in_force = |map: &usize| Some(*map) != without && MAPS[*map].contains(&vlan);
        let found = self.maps.iter().find(|map| in_force(map));
        found.map_or(CLASS_DEFAULT.to_owned(), |&map| name(&MAPS[map]))
    }

    fn offer(&mut self, vlan: u16, bytes: u32, gap: u64) {
        let at = self.port.now() + gap;
        self.port.run_until(at);
        self.forget_drained();
        let mut expected = self.walk(vlan, None);
        let drains = |name: &str| {
            let mut draining = self.draining.keys();
            draining
                .find(|&&map| self::name(&MAPS[map]) == name)
                .copied()
        };
        // Frames of a slice that drains wait if they are of class-default after that.
        let draining = drains(&expected);
        let next = draining.map(|map| self.walk(vlan, Some(map)));
        let is_kept = next.as_deref() == Some(CLASS_DEFAULT);
        if is_kept {
            expected = CLASS_DEFAULT.to_owned();
        }
        let before = offered(&self.port, &expected);
        let verdict = self.port.offer(arrival(at, vlan, bytes));
        let after = offered(&self.port, &expected);
        assert_eq!(after, before + 1, "a frame of VLAN {vlan} is of {expected}");
        let drains = draining.is_some() && !is_kept;
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
            Err(SliceChangeError::Moving { .. }) => {
                let own = &MAPS[map];
                let meets = |other: &usize| MAPS[*other].clone().any(|vlan| own.contains(&vlan));
                assert!(self.draining.keys().any(meets));
            }
            Err(SliceChangeError::Refused { .. } | SliceChangeError::Committed { .. }) => {
                assert!(!self.maps.contains(&map))
            }
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
            Step::Flows(map, flows) => {
                let is_own = map >= MAPS.len();
                let is_live = self.maps.contains(&map) && !self.draining.contains_key(&map);
                let changed = apply(&mut self.port, flows_of(&map_at(map), flows));
                match changed {
                    Ok(_) => assert!(is_live || is_own),
                    Err(SliceChangeError::NotByFlow { frames, .. }) => assert!(frames > 0),
                    Err(SliceChangeError::Unknown { .. }) => assert!(!is_live && !is_own),
                    Err(other) => panic!("{other}"),
                }
                if is_live || is_own {
                    let class = self.port.pipeline.class_of(&name(&map_at(map)));
                    let seen = self.port.pipeline.poll_flows(class.unwrap(), now);
                    let weighed = seen.and_then(|seen| seen.weighed);
                    assert!(weighed.is_none_or(|weighed| weighed.weight >= weighed.flows));
                }
            }
            Step::Remove(map) => {
                let is_live = self.maps.contains(&map) && !self.draining.contains_key(&map);
                let removed = apply(&mut self.port, remove(&MAPS[map]));
                assert_eq!(removed.is_ok(), is_live, "{removed:?}");
                if let Ok(removed) = removed {
                    self.draining.insert(map, removed.class);
                }
            }
            Step::Purge(map) => self.purge(map),
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

    /// The frames of a slice that drains are dropped, and no others.
    fn purge(&mut self, map: usize) {
        let class = self.draining.get(&map).copied();
        let waiting = class.map_or(0, |class| queued(&self.port, class));
        let before = u64::from(self.port.pipeline.backlog());
        let mut left = 0;
        match apply(&mut self.port, purge(&MAPS[map])) {
            Ok(purged) => {
                assert_eq!(Some(purged.class), class);
                left = u64::from(purged.waiting);
            }
            Err(SliceChangeError::InForce { .. }) => assert!(self.maps.contains(&map)),
            Err(SliceChangeError::Unknown { .. }) => assert!(!self.maps.contains(&map)),
            Err(other) => panic!("{other}"),
        }
        let after = u64::from(self.port.pipeline.backlog());
        assert_eq!(after, before - waiting + left);
        if class.is_some() && left == 0 {
            // Its packets are of the next class from now on.
            self.draining.remove(&map);
            self.maps.retain(|other| *other != map);
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
            let is_loss = matches!(step, Step::Offer(..) | Step::Purge(_));
            let before = model.port.pipeline.backlog();
            model.step(step);
            if !is_loss {
                prop_assert_eq!(model.port.pipeline.backlog(), before, "a change loses nothing");
            }
            model.check_counters();
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A slice within its guarantee, whose flows may have queues of their own, and others that come, change, send all they
    /// have at once, and go.
    #[test]
    fn no_change_of_other_slices_delays_a_frame_beyond_its_bound(
        churn in prop::collection::vec(
            (
                prop_oneof![
                    (0..MAPS.len(), kind()).prop_map(|(map, kind)| Step::Add(map, kind)),
                    (0..MAPS.len(), kind()).prop_map(|(map, kind)| Step::Change(map, kind)),
                    (0..MAPS.len()).prop_map(Step::Remove),
                    (0..MAPS.len()).prop_map(Step::Purge),
                    (0..=MAPS.len(), slice_flows()).prop_map(|(map, flows)| Step::Flows(map, flows)),
                ],
                prop::collection::vec((0u16..5, 1u32..30), 0..4),
                0u64..8_000_000,
            ),
            1..150,
        )
    ) {
        let own = guaranteed(1_000, 3_000, Duration::from_millis(20));
        let mut model = Model::new();
        model.port = Port::new(&spec(&[(OWN..=OWN, own)]), Some(LINK));
        let classes = spec(&[(OWN..=OWN, own)]).resolve(LINK).unwrap();
        let guarantee = classes.classes[0].slice.unwrap().guarantee.unwrap();
        let bound = guarantee.delay;
        let (mut conforming, mut arrivals) = (0u64, Vec::new());
        for (step, bursts, gap) in churn {
            model.step(step);
            for (vlan, frames) in bursts {
                for _ in 0..frames {
                    let _ = model.port.offer(arrival(model.port.now(), vlan, 1_500));
                }
            }
            // Its whole burst, as early as it may.
            let now = model.port.now();
            if now >= conforming {
                for _ in 0..2 {
                    arrivals.push(now);
                    let _ = model.port.offer(arrival(now, OWN, 1_500));
                }
                conforming = now + 24_000_000;
            }
            model.port.run_until(now + gap);
        }
        model.port.run_until(u64::MAX / 2);
        let left = model.port.departures.iter().filter(|left| left.vlan == OWN);
        let left: Vec<u64> = left.map(|left| left.at + 1_200_000).collect();
        prop_assert_eq!(left.len(), arrivals.len());
        for (arrived, left) in arrivals.iter().zip(left) {
            prop_assert!(left <= arrived + bound.nanos(), "{} ns late", left - arrived - bound.nanos());
        }
    }
}
