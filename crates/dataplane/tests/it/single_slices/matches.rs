//! Slices whose class maps are replaced while frames wait.

use super::*;
use proptest::prelude::*;
use slicewise_dataplane::Prepared;
use slicewise_model::IpPrefix;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// VLANs, each the same number as its source address.
const VLANS: u16 = 8;

/// How a class map says which VLANs it matches.
#[derive(Debug, Clone, Copy)]
pub enum Written {
    /// One by one.
    Vlans,
    /// As prefixes of the source address, each as long as can be.
    Prefixes,
    /// So that it is walked.
    Walked,
}

fn map_of(name: &str, vlans: &BTreeSet<u16>, written: Written) -> ClassMap {
    let one = |&vlan: &u16| Condition::OuterVlan(vlan..=vlan);
    let conditions = match written {
        Written::Vlans => vlans.iter().map(one).collect(),
        Written::Walked => {
            let not = |condition| Condition::Not(Box::new(condition));
            vlans.iter().map(|vlan| not(not(one(vlan)))).collect()
        }
        Written::Prefixes => prefixes(vlans, 0, 3),
    };
    ClassMap {
        name: name.to_owned(),
        mode: MatchMode::Any,
        conditions,
    }
}

/// Those of the `2^bits` VLANs from `first` on.
fn prefixes(vlans: &BTreeSet<u16>, first: u16, bits: u8) -> Vec<Condition> {
    let size = 1 << bits;
    match vlans.range(first..first + size).count() {
        0 => Vec::new(),
        count if count == usize::from(size) => {
            let address = IpAddr::V4(Ipv4Addr::from(u32::from(first)));
            vec![Condition::Source(
                IpPrefix::new(address, 32 - bits).unwrap(),
            )]
        }
        _ => {
            let mut parts = prefixes(vlans, first, bits - 1);
            parts.extend(prefixes(vlans, first + size / 2, bits - 1));
            parts
        }
    }
}

pub fn matches(name: &str, vlans: &[u16], written: Written) -> SliceChange {
    let vlans = vlans.iter().copied().collect();
    SliceChange::Matches {
        name: name.to_owned(),
        matches: Box::new(map_of(name, &vlans, written)),
    }
}

pub fn burst(port: &mut Port, vlan: u16, frames: usize) {
    for _ in 0..frames {
        let verdict = port.offer(arrival(port.now(), vlan, 1_000));
        assert_eq!(verdict, Verdict::Queued);
    }
}

fn order(port: &Port) -> Vec<u16> {
    port.departures.iter().map(|left| left.vlan).collect()
}

fn counted(port: &Port) -> Vec<(String, u64, u64)> {
    let classes = port.pipeline.counters();
    let classes = classes.filter(|class| !class.class.is_empty());
    let counted = classes.map(|class| {
        (
            class.class.clone(),
            class.offered_frames,
            class.queued_frames,
        )
    });
    counted.collect()
}

#[test]
fn packets_that_a_slice_gets_wait_for_older_ones_in_class_default_and_its_own_do_not() {
    let prompt = guaranteed(4_000, 6_000, Duration::from_millis(8));
    let mut port = Port::new(&spec(&[(1..=1, prompt)]), Some(LINK));
    burst(&mut port, 2, 5);
    let changed = apply(&mut port, matches("vlan1-1", &[1, 2], Written::Vlans)).unwrap();
    assert_eq!((changed.class, changed.waiting), (0, 5));
    burst(&mut port, 2, 2);
    burst(&mut port, 1, 2);
    assert_eq!(
        port.pipeline.backlog(),
        9,
        "what is kept beside a queue counts"
    );
    let of_slice = ("vlan1-1".to_owned(), 4, 4);
    let of_default = (CLASS_DEFAULT.to_owned(), 5, 5);
    assert_eq!(counted(&port), [of_slice, of_default]);
    port.run_until(1_000_000_000);
    assert_eq!(order(&port), [1, 1, 2, 2, 2, 2, 2, 2, 2]);
    assert_in_order(&port.departures);
    burst(&mut port, 3, 3);
    burst(&mut port, 2, 1);
    port.run_until(u64::MAX / 2);
    assert_eq!(order(&port)[9..], [2, 3, 3, 3], "it is guaranteed now");
}

#[test]
fn packets_that_a_slice_loses_wait_for_older_ones_in_its_queue() {
    let slow = Kind {
        limited: true,
        ..guaranteed(1_000, 3_000, Duration::from_millis(90))
    };
    let mut port = Port::new(&spec(&[(1..=2, slow)]), Some(LINK));
    burst(&mut port, 2, 12);
    let changed = apply(&mut port, matches("vlan1-2", &[1], Written::Vlans)).unwrap();
    assert_eq!(changed.waiting, 12);
    burst(&mut port, 1, 1);
    burst(&mut port, 2, 3);
    burst(&mut port, 3, 2);
    assert_eq!(offered(&port, CLASS_DEFAULT), 5);
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 18);
    assert_in_order(&port.departures);
    let last = port.departures[13..].iter().filter(|left| left.vlan == 2);
    assert_eq!(last.count(), 4, "behind all that were before them");
    assert_eq!(counted(&port)[0], ("vlan1-2".to_owned(), 13, 0));
}

#[test]
fn packets_whose_older_ones_still_wait_in_a_slice_that_had_them_are_refused_to_another_one() {
    let mut port = Port::new(
        &spec(&[(1..=1, BEST_EFFORT), (2..=2, BEST_EFFORT)]),
        Some(LINK),
    );
    burst(&mut port, 1, 3);
    apply(&mut port, matches("vlan1-1", &[3], Written::Vlans)).unwrap();
    let take = matches("vlan2-2", &[1, 2], Written::Vlans);
    let refused = apply(&mut port, take.clone()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "slice `vlan2-2`: packets that it is to have were those of slice `vlan1-1`, of which 3 frames still wait: repeat it later"
    );
    assert_eq!(counted(&port)[1], ("vlan2-2".to_owned(), 0, 0));
    port.run_until(10_000_000);
    apply(&mut port, take).unwrap();
    burst(&mut port, 1, 1);
    assert_eq!(counted(&port)[1], ("vlan2-2".to_owned(), 1, 1));
}

#[test]
fn class_default_has_no_class_map_to_replace() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    let refused = apply(&mut port, matches(CLASS_DEFAULT, &[1], Written::Vlans)).unwrap_err();
    assert_eq!(refused, SliceChangeError::Default);
    let refused = apply(&mut port, matches("other", &[1], Written::Vlans)).unwrap_err();
    assert_eq!(refused.to_string(), "there is no slice `other`");
}

#[derive(Debug, Clone)]
enum Step {
    /// Frames of a VLAN, after a while.
    Offer(u16, usize, u64),
    /// A slice, by its number, has these VLANs, as far as no other has them.
    Matches(usize, BTreeSet<u16>, Written),
    Add(usize, BTreeSet<u16>, Written, Kind),
    Change(usize, Kind),
    /// Its flows wait by flow, or not.
    Flows(usize, bool),
    Remove(usize),
    Purge(usize),
    /// The whole policy is built again.
    Whole,
    /// Class-default waits by flow, or not.
    Default(bool),
    /// Frames of these VLANs arrive together.
    Burst(Vec<u16>),
    /// So many frames leave together.
    Dequeue(usize),
    /// The policy is built again, and put in force later, if it is current then.
    Prepare,
    Commit,
    /// Another policy: the slice of each VLAN, and which slices there are.
    Policy(Vec<usize>, Vec<Option<Kind>>, Written),
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![
        3 => Just(Written::Vlans),
        3 => Just(Written::Prefixes),
        1 => Just(Written::Walked),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let guarantee = prop::option::of((100u32..3_000, 1_522u32..9_000, 20u64..90));
    (guarantee, any::<bool>(), 0u32..5).prop_map(|(guarantee, limited, flows)| Kind {
        limited,
        by_flow: flows == 0,
        ..guarantee.map_or(BEST_EFFORT, |(cir, cbs, delay)| {
            guaranteed(cir, cbs, Duration::from_millis(delay))
        })
    })
}

fn step() -> impl Strategy<Value = Step> {
    let slice = || 0..NAMES.len();
    let vlans = || prop::collection::btree_set(0..VLANS, 0..6);
    prop_oneof![
        30 => (0..VLANS, 1usize..6, 0u64..4_000_000).prop_map(|(v, n, g)| Step::Offer(v, n, g)),
        6 => (slice(), vlans(), written()).prop_map(|(s, v, w)| Step::Matches(s, v, w)),
        2 => (slice(), vlans(), written(), kind()).prop_map(|(s, v, w, k)| Step::Add(s, v, w, k)),
        1 => (slice(), kind()).prop_map(|(s, k)| Step::Change(s, k)),
        1 => (slice(), any::<bool>()).prop_map(|(s, f)| Step::Flows(s, f)),
        2 => slice().prop_map(Step::Remove),
        2 => slice().prop_map(Step::Purge),
        1 => Just(Step::Whole),
        1 => any::<bool>().prop_map(Step::Default),
        8 => prop::collection::vec(0..VLANS, 1..60).prop_map(Step::Burst),
        8 => (1usize..30).prop_map(Step::Dequeue),
        1 => Just(Step::Prepare),
        1 => Just(Step::Commit),
        1 => (
            prop::collection::vec(0usize..4, usize::from(VLANS)),
            prop::collection::vec(prop::option::of(kind()), 3),
            written(),
        )
            .prop_map(|(owners, kinds, written)| Step::Policy(owners, kinds, written)),
    ]
}

/// The VLANs of each slice that is there.
struct Model {
    port: Port,
    slices: [Option<BTreeSet<u16>>; 3],
    removed: u64,
    lost: u64,
    walked: u64,
    refused: [u64; 11],
    prepared: Option<Prepared>,
    /// Class maps may overlap.
    overlaps: bool,
}

struct Refused<'a>(&'a mut [u64; 11]);

impl FrameOwner for Refused<'_> {
    fn on_dropped(&mut self, _: &Frame, reason: DropReason) {
        self.0[reason as usize] += 1;
    }
}

fn by_flow_of(name: &str, by_flow: bool) -> SliceChange {
    let flows = SliceFlows {
        queue: by_flow.then_some(flows::PATIENT),
        ..SliceFlows::default()
    };
    SliceChange::Flows {
        name: name.to_owned(),
        flows: Box::new(flows),
    }
}

/// Frames that were dropped from a queue: none that arrives is dropped because a slice was removed.
fn lost(class: &ClassCounters) -> u64 {
    class.dropped(DropReason::CoDel) + class.dropped(DropReason::SliceRemoved)
}

impl Model {
    fn new() -> Self {
        Self {
            port: Port::new(&spec(&[]), Some(LINK)),
            slices: [None, None, None],
            removed: 0,
            lost: 0,
            walked: 0,
            refused: [0; 11],
            prepared: None,
            overlaps: false,
        }
    }

    /// Those of some VLANs that no other slice has.
    fn free(&self, slice: usize, mut vlans: BTreeSet<u16>) -> BTreeSet<u16> {
        if self.overlaps {
            return vlans;
        }
        for (other, taken) in self.slices.iter().enumerate() {
            if let (true, Some(taken)) = (other != slice, taken) {
                vlans.retain(|vlan| !taken.contains(vlan));
            }
        }
        vlans
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Offer(vlan, frames, gap) => {
                self.port.run_until(self.port.now() + gap);
                for _ in 0..frames {
                    let verdict = self.port.offer(arrival(self.port.now(), vlan, 1_000));
                    if let Verdict::Dropped(reason) = verdict {
                        self.refused[reason as usize] += 1;
                    }
                }
            }
            Step::Matches(slice, vlans, written) => {
                let vlans = self.free(slice, vlans);
                let change = SliceChange::Matches {
                    name: NAMES[slice].to_owned(),
                    matches: Box::new(map_of(NAMES[slice], &vlans, written)),
                };
                match apply(&mut self.port, change) {
                    Ok(_) => self.slices[slice] = Some(vlans),
                    Err(SliceChangeError::Moving { .. }) => {}
                    Err(SliceChangeError::NotInPlace { .. }) => {
                        self.walked += 1;
                    }
                    Err(SliceChangeError::Unknown { .. }) => assert!(self.slices[slice].is_none()),
                    Err(other) => panic!("{other}"),
                }
            }
            Step::Add(slice, vlans, written, kind) => {
                let vlans = self.free(slice, vlans);
                let SliceChange::Add(mut new) = add(&(0..=0), kind) else {
                    unreachable!()
                };
                new.name = NAMES[slice].to_owned();
                new.matches = map_of(NAMES[slice], &vlans, written);
                match apply(&mut self.port, SliceChange::Add(new)) {
                    Ok(_) => self.slices[slice] = Some(vlans),
                    Err(SliceChangeError::NameTaken { .. }) => {
                        assert!(self.slices[slice].is_some())
                    }
                    Err(
                        SliceChangeError::Moving { .. }
                        | SliceChangeError::Draining { .. }
                        | SliceChangeError::Committed { .. }
                        | SliceChangeError::Refused { .. },
                    ) => assert!(self.slices[slice].is_none()),
                    Err(other) => panic!("{other}"),
                }
            }
            Step::Change(slice, kind) => {
                let change = SliceChange::Change {
                    name: NAMES[slice].to_owned(),
                    params: params(kind),
                };
                let _ = apply(&mut self.port, change);
            }
            Step::Flows(slice, by_flow) => {
                let _ = apply(&mut self.port, by_flow_of(NAMES[slice], by_flow));
            }
            Step::Remove(slice) => {
                let name = NAMES[slice].to_owned();
                let removed = apply(&mut self.port, SliceChange::Remove { name });
                assert_eq!(removed.is_ok(), self.slices[slice].is_some());
                self.slices[slice] = None;
            }
            Step::Purge(slice) => {
                let name = NAMES[slice].to_owned();
                let purged = apply(&mut self.port, SliceChange::Purge { name });
                assert!(purged.is_err() || self.slices[slice].is_none());
                while self.port.pipeline.poll_dropped().is_some() {
                    self.port.dropped += 1;
                }
            }
            Step::Default(by_flow) => {
                let _ = apply(&mut self.port, by_flow_of(CLASS_DEFAULT, by_flow));
            }
            Step::Burst(vlans) => {
                let now = Instant::from_nanos(self.port.now());
                let first = self.port.sequence;
                self.port.sequence += vlans.len() as u64;
                let frames: Vec<_> = (first..)
                    .zip(&vlans)
                    .map(|(n, &v)| frame(n, v, 1_000))
                    .collect();
                let headers: Vec<_> = vlans.iter().map(|&v| headers(v)).collect();
                let owner = &mut Refused(&mut self.refused);
                self.port
                    .pipeline
                    .enqueue_burst(&frames, &headers, now, owner);
            }
            Step::Dequeue(mut frames) => {
                let now = Instant::from_nanos(self.port.now());
                let departures = &mut self.port.departures;
                let _ = self.port.pipeline.dequeue_burst(now, |left| {
                    let handle = left.frame.handle;
                    departures.push(Departure {
                        at: now.nanos(),
                        vlan: (handle & 0xffff) as u16,
                        bytes: 1_000,
                        sequence: handle >> 16,
                        colour: left.frame.colour,
                    });
                    frames -= 1;
                    if frames == 0 {
                        std::ops::ControlFlow::Break(())
                    } else {
                        std::ops::ControlFlow::Continue(())
                    }
                });
                while self.port.pipeline.poll_dropped().is_some() {
                    self.port.dropped += 1;
                }
            }
            Step::Prepare => self.prepared = Some(self.prepare(Change::PortShaper(None))),
            Step::Commit => {
                if let Some(prepared) = self.prepared.take() {
                    let _ = self.commit(prepared);
                }
            }
            Step::Policy(owners, kinds, written) => {
                let mut slices = [None, None, None];
                let mut classes = Vec::new();
                for (slice, kind) in kinds.into_iter().enumerate() {
                    let Some(kind) = kind else { continue };
                    let of_slice = (0..VLANS).filter(|&vlan| owners[usize::from(vlan)] == slice);
                    let vlans: BTreeSet<u16> = of_slice.collect();
                    let of = class(&(0..=0), kind);
                    let made = ClassSpec::new(map_of(NAMES[slice], &vlans, written));
                    classes.push(ClassSpec {
                        guarantee: of.guarantee,
                        maximum: of.maximum,
                        weight: of.weight,
                        queue: of.queue,
                        ..made
                    });
                    slices[slice] = Some(vlans);
                }
                let spec = PolicySpec {
                    discipline: Discipline::Guaranteed,
                    ..policy(classes)
                };
                let Ok(policy) = spec.resolve(LINK) else {
                    return;
                };
                let prepared = self.prepare(Change::Policy(policy));
                self.commit(prepared).unwrap();
                self.slices = slices;
            }
            Step::Whole => {
                let prepared = self.prepare(Change::PortShaper(None));
                self.commit(prepared).unwrap();
            }
        }
    }

    fn prepare(&self, change: Change) -> Prepared {
        let now = Instant::from_nanos(self.port.now());
        self.port.pipeline.basis().prepare(change, now).unwrap()
    }

    fn commit(&mut self, prepared: Prepared) -> Result<(), Stale> {
        let now = Instant::from_nanos(self.port.now());
        let replaced = self.port.pipeline.commit(prepared, now)?;
        for class in replaced.removed() {
            self.removed += class.offered_frames;
            self.lost += lost(class);
        }
        Ok(())
    }

    /// Frames that wait, and those that were dropped from a queue: for their delay whenever it finds the next, or by a purge.
    fn backlog(&mut self) -> u64 {
        self.check();
        let classes = self.port.pipeline.counters();
        let lost = classes.map(lost);
        u64::from(self.port.pipeline.backlog()) + lost.sum::<u64>() + self.lost
    }

    /// Every frame is counted once.
    fn check(&mut self) {
        let now = Instant::from_nanos(self.port.now());
        let pipeline = &mut self.port.pipeline;
        while let Some(class) = pipeline.poll_removed(now) {
            assert_eq!(
                class.offered_frames,
                class.sent_frames + class.dropped_total()
            );
            self.removed += class.offered_frames;
            self.lost += lost(&class);
        }
        let (mut offered, mut queued) = (self.removed, 0);
        let mut names = BTreeSet::new();
        for class in pipeline.counters() {
            let is_new = class.class.is_empty() || names.insert(&class.class);
            assert!(is_new, "two classes are called {}", class.class);
            let all = class.sent_frames + class.queued_frames + class.dropped_total();
            assert_eq!(class.offered_frames, all, "class {}", class.class);
            offered += class.offered_frames;
            queued += class.queued_frames;
        }
        assert_eq!(queued, u64::from(pipeline.backlog()));
        assert_eq!(offered, self.port.offered());
    }

    /// With nothing on its way, each VLAN is of the slice that has it.
    fn check_classes(&mut self) {
        for vlan in 0..VLANS {
            let owner = self
                .slices
                .iter()
                .position(|slice| slice.as_ref().is_some_and(|vlans| vlans.contains(&vlan)));
            let name = owner.map_or(CLASS_DEFAULT, |slice| NAMES[slice]);
            let before = offered(&self.port, name);
            burst(&mut self.port, vlan, 1);
            assert_eq!(
                offered(&self.port, name),
                before + 1,
                "VLAN {vlan} is of {name}"
            );
            self.port.run_until(self.port.now() + 1_000_000_000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn whatever_slices_have_no_packet_is_lost_to_a_change_or_overtakes_another_of_its_flow(
        steps in prop::collection::vec(step(), 1..300)
    ) {
        let mut model = Model::new();
        for step in steps {
            let is_offer = matches!(step, Step::Offer(..) | Step::Burst(_) | Step::Dequeue(_));
            let before = model.backlog();
            model.step(step);
            if !is_offer {
                prop_assert_eq!(model.backlog(), before, "a change loses nothing");
            }
        }
        model.port.run_until(model.port.now() + 100_000_000_000);
        prop_assert_eq!(model.port.pipeline.backlog(), 0, "everything leaves");
        model.check();
        prop_assert_eq!(model.refused[DropReason::SliceRemoved as usize], 0);
        prop_assert_eq!(model.refused[DropReason::BufferFull as usize], 0);
        (0..8).for_each(|_| model.check());
        model.check_classes();
        assert_in_order(&model.port.departures);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn class_maps_that_overlap_lose_no_count(steps in prop::collection::vec(step(), 1..300)) {
        let mut model = Model::new();
        model.overlaps = true;
        for step in steps {
            model.step(step);
            model.check();
        }
        model.port.run_until(model.port.now() + 100_000_000_000);
        prop_assert_eq!(model.port.pipeline.backlog(), 0, "everything leaves");
        (0..8).for_each(|_| model.check());
    }
}

#[test]
fn a_range_of_more_than_16_ports_changes_in_place_only_as_a_block() {
    let prompt = guaranteed(4_000, 6_000, Duration::from_millis(8));
    let change = |ports: RangeInclusive<u16>| {
        let mut port = Port::new(&spec(&[(1..=1, prompt)]), Some(LINK));
        let matches = ClassMap {
            name: "vlan1-1".to_owned(),
            mode: MatchMode::All,
            conditions: vec![Condition::DestinationPort(ports)],
        };
        let matches = Box::new(matches);
        let name = "vlan1-1".to_owned();
        apply(&mut port, SliceChange::Matches { name, matches })
    };
    assert!(change(5_000..=5_015).is_ok());
    assert!(change(4_096..=5_119).is_ok());
    for ports in [5_000..=5_016, 4_097..=5_120] {
        let refused = change(ports);
        let is_it = matches!(refused, Err(SliceChangeError::NotInPlace { .. }));
        assert!(is_it, "{refused:?}");
    }
}
