//! Tests that the state in force follows the wanted state, over an engine with ports in memory and a clock that is set.

mod packets;
mod random;

use super::*;
use crate::store::Record;
use slicewise_api::{
    Desired, ElephantTerms, FlowTerms, GatewayChange, GatewayTerms, Guarantee, Match, Terms,
};
use slicewise_live::engine::Engine;
use slicewise_live::memory::MemoryPort;
use slicewise_live::{EngineParams, Port};
use slicewise_model::{Discipline, GuaranteedSpec, PolicySpec, Rate};
use slicewise_units::{BitRate, Way};

const LINK: u64 = 10_000_000;

fn directions(rate: u64) -> [DirectionParams; 2] {
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes: Vec::new(),
        discipline: Discipline::Guaranteed,
        guaranteed: Some(GuaranteedSpec::default()),
        queues: Vec::new(),
    };
    let params = DirectionParams {
        link: Rate::l2(BitRate::new(rate)),
        policy: spec.resolve(BitRate::new(rate)).unwrap().into(),
        seed: 1,
    };
    [params.clone(), params]
}

/// Packets of a VLAN, with a guarantee of some kbit/s (0: none) and a delay of some ms.
fn terms(vlan: u16, kbit: u64, delay_ms: u64) -> GatewayTerms {
    GatewayTerms {
        matches: vec![Match {
            vlan: Some(vlan),
            ..Match::default()
        }],
        terms: Terms {
            guarantee: (kbit > 0).then_some(Guarantee {
                rate_bps: kbit * 1_000,
                burst_bytes: 1_522,
                delay_ns: Some(delay_ms * 1_000_000),
                ..Guarantee::default()
            }),
            ..Terms::default()
        },
    }
}

fn slice(name: &str, both: [Option<GatewayTerms>; 2], version: u64) -> GatewaySlice {
    let [forward, backward] = both;
    GatewaySlice {
        name: name.to_owned(),
        link: "uplink".to_owned(),
        tenant: "default".to_owned(),
        tenant_weight: 1,
        forward,
        backward,
        version,
    }
}

fn put(name: &str, terms: &GatewayTerms, version: u64) -> GatewayChange {
    let both = [Some(terms.clone()), Some(terms.clone())];
    GatewayChange::Put(Box::new(slice(name, both, version)))
}

fn of_tenant(tenant: &str, name: &str, terms: &GatewayTerms, version: u64) -> GatewayChange {
    let both = [Some(terms.clone()), Some(terms.clone())];
    GatewayChange::Put(Box::new(GatewaySlice {
        tenant: tenant.to_owned(),
        ..slice(name, both, version)
    }))
}

fn remove(name: &str) -> GatewayChange {
    GatewayChange::Remove(name.to_owned())
}

fn changes(generation: u64, changes: Vec<GatewayChange>) -> Desired {
    Desired {
        generation,
        changes,
        ..Desired::default()
    }
}

/// A gateway without threads.
struct World {
    engine: Engine,
    ports: [MemoryPort; 2],
    reconciler: Reconciler,
    now: Instant,
    /// Changes that the data plane was asked for.
    asked: usize,
    /// How many frames have arrived, by direction.
    arrived: [u32; 2],
    /// VLAN and number of those that have left.
    left: [Vec<(u16, u32)>; 2],
}

impl World {
    /// A gateway that has carried out these changes, of generation 1.
    fn with(first: Vec<GatewayChange>) -> Self {
        let mut world = Self::new(Kept::default());
        world.take(changes(1, first));
        world
    }

    fn new(kept: Kept) -> Self {
        let params = EngineParams {
            directions: directions(LINK),
            largest_frame: 1_522,
            receive_queues: [0; 2],
            memory_bytes: 8 << 20,
            adds_slices: true,
        };
        Self {
            engine: Engine::new(&params, Instant::ZERO).unwrap(),
            ports: [MemoryPort::new(1_500, 1_000), MemoryPort::new(1_500, 1_000)],
            reconciler: Reconciler::new("uplink", params.directions, kept),
            now: Instant::ZERO,
            asked: 0,
            arrived: [0; 2],
            left: [Vec::new(), Vec::new()],
        }
    }

    fn arrive(&mut self, side: usize, vlan: u16, frames: usize) {
        for _ in 0..frames {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00];
            frame.extend(vlan.to_be_bytes());
            frame.extend([0x88, 0xb5]);
            frame.extend(self.arrived[side].to_be_bytes());
            frame.resize(1_000, 0);
            self.ports[side].arrive(frame);
            self.arrived[side] += 1;
        }
    }

    fn poll(&mut self) {
        let now = self.now;
        while {
            let round = self.engine.poll(&mut self.ports, &mut || now);
            round.is_unfinished || round.received > 0
        } {}
        for (port, left) in self.ports.iter_mut().rev().zip(&mut self.left) {
            port.complete(self.engine.memory());
            left.extend(port.take_sent().iter().map(|frame| {
                let vlan = u16::from_be_bytes([frame[14], frame[15]]);
                (vlan, u32::from_be_bytes(frame[18..22].try_into().unwrap()))
            }));
        }
        while let Some(gone) = self.engine.poll_gone() {
            self.reconciler
                .on_gone(gone.direction, &gone.counters.class);
        }
    }

    /// Everything that can be done now.
    fn act(&mut self) {
        self.poll();
        // Each is answered before the next is asked for, or the first eight are.
        loop {
            let mut asked = Vec::new();
            while asked.len() < 8
                && let Some(change) = self.reconciler.poll_change(self.now)
            {
                asked.push(change);
            }
            if asked.is_empty() {
                return;
            }
            self.asked += asked.len();
            for change in asked {
                let outcome = self.engine.change_slice(change, self.now);
                self.reconciler.on_changed(outcome, self.now);
            }
            self.poll();
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        loop {
            self.act();
            let next = [self.engine.poll_at(), self.reconciler.poll_at()];
            match next.into_iter().flatten().min() {
                Some(at) if at <= end => self.now = at.max(self.now),
                _ => break,
            }
        }
        self.now = end;
        self.act();
    }

    /// Frames arrive, and those that can leave do.
    fn offer(&mut self, side: usize, vlan: u16, frames: usize) {
        self.arrive(side, vlan, frames);
        self.poll();
    }

    /// A link of this rate is in force from now on.
    fn reload(&mut self, rate: u64) {
        let directions = directions(rate);
        let prepared = self.engine.basis().prepare(&directions, self.now).unwrap();
        let _replaced = self.engine.commit(prepared, self.now).unwrap();
        self.reconciler.on_reloaded(directions);
        self.act();
    }

    fn take(&mut self, desired: Desired) -> Vec<Record> {
        let records = self.reconciler.take(desired).unwrap();
        self.act();
        records
    }

    fn names(&self, direction: usize) -> Vec<String> {
        let classes = self.engine.classes(Way::ALL[direction]);
        let names = classes.map(|(class, _)| class.class.clone());
        let mut names: Vec<String> = names.filter(|name| name != "class-default").collect();
        names.sort();
        names
    }

    fn acknowledged(&self) -> u64 {
        self.reconciler.acknowledgement().generation
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_generation_is_acknowledged_when_its_slices_are_in_force_in_both_directions() {
    let mut world = World::new(Kept::default());
    let desired = changes(
        7,
        vec![
            put("a", &terms(1, 500, 20), 1),
            put("b", &terms(2, 0, 0), 1),
        ],
    );
    world.reconciler.take(desired).unwrap();
    assert_eq!(world.acknowledged(), 0);
    world.act();
    assert_eq!(world.acknowledged(), 7);
    assert_eq!([world.names(0), world.names(1)], [["a", "b"], ["a", "b"]]);
}

#[test]
fn a_snapshot_changes_only_what_differs() {
    let (one, two) = (terms(1, 500, 20), terms(2, 500, 20));
    let mut world = World::with(vec![
        put("a", &one, 1),
        put("b", &two, 1),
        put("c", &one, 1),
    ]);
    let asked = world.asked;
    let both = |terms: &GatewayTerms| [Some(terms.clone()), Some(terms.clone())];
    let changed = terms(2, 600, 20);
    let records = world.take(Desired {
        generation: 5,
        snapshot: Some(vec![
            slice("a", both(&one), 1),
            slice("b", both(&changed), 2),
        ]),
        draining: vec!["x".to_owned()],
        ..Desired::default()
    });
    assert_eq!(records.len(), 4, "{records:?}");
    assert_eq!(world.asked - asked, 2, "b changes and c goes");
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(acknowledgement.generation, 5);
    // One that this gateway does not know is gone from it.
    assert_eq!(acknowledgement.gone, ["c", "x"]);
    assert_eq!(world.names(0), ["a", "b"]);
}

#[test]
fn a_removed_slice_is_gone_when_its_frames_have_left_and_the_controller_hears_of_it_until_it_knows()
{
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    world.offer(0, 1, 5);
    world.take(changes(2, vec![remove("a")]));
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(
        (acknowledgement.generation, acknowledgement.gone.len()),
        (2, 0)
    );
    assert_eq!(world.reconciler.kept().removed.len(), 1);
    world.pass(ms(100));
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(acknowledgement.gone, ["a"]);
    // It was killed before the controller knew.
    let mut world = World::new(world.reconciler.kept());
    world.act();
    assert_eq!(world.reconciler.acknowledgement(), acknowledgement);
    let records = world.reconciler.on_acknowledged(&acknowledgement);
    assert_eq!(records, [Record::Gone(vec!["a".to_owned()])]);
    assert!(world.reconciler.acknowledgement().gone.is_empty());
    assert!(world.reconciler.kept().removed.is_empty());
}

fn purge(generation: u64, name: &str) -> Desired {
    Desired {
        purge: vec![name.to_owned()],
        ..changes(generation, vec![remove(name)])
    }
}

#[test]
fn a_removed_slice_is_purged_once_where_its_frames_wait() {
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    world.offer(0, 1, 5);
    world.take(changes(2, vec![remove("a")]));
    assert_eq!(world.reconciler.acknowledgement().gone.len(), 0);
    let asked = world.asked;
    world.take(purge(3, "a"));
    assert_eq!(world.asked - asked, 1, "in one direction, once");
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(
        (acknowledgement.generation, &acknowledgement.gone[..]),
        (3, &["a".to_owned()][..])
    );
    // The controller says so until it has heard that.
    world.take(purge(4, "a"));
    assert_eq!(world.asked - asked, 1);
    assert_eq!(world.engine.backlog(), 0);
    // A slice of that name that comes later is another one.
    world.take(changes(5, vec![put("a", &terms(1, 500, 20), 5)]));
    world.offer(0, 1, 5);
    world.take(Desired {
        purge: vec!["a".to_owned()],
        ..changes(6, vec![])
    });
    assert_eq!(world.names(0), ["a"]);
    world.take(changes(7, vec![remove("a")]));
    assert!(world.engine.backlog() > 0);
}

#[test]
fn a_slice_is_removed_and_purged_with_one_answer() {
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    world.arrive(0, 1, 5);
    world.offer(1, 1, 5);
    world.take(Desired {
        generation: 3,
        snapshot: Some(Vec::new()),
        draining: vec!["a".to_owned()],
        purge: vec!["a".to_owned()],
        ..Desired::default()
    });
    assert_eq!(world.reconciler.acknowledgement().gone, ["a"]);
    assert_eq!(world.engine.backlog(), 0);
}

#[test]
fn a_removed_slice_is_told_as_gone_with_its_own_generation_also_while_an_earlier_one_is_open() {
    let (one, two) = (terms(1, 500, 20), terms(2, 500, 20));
    let mut world = World::with(vec![put("a", &one, 1), put("x", &two, 1)]);
    world.offer(0, 1, 5);
    // Frames of `a` have to leave first; nothing of `x` waits.
    world.take(changes(2, vec![of_tenant("other", "a", &one, 2)]));
    world.take(changes(3, vec![remove("x")]));
    let before = world.reconciler.acknowledgement();
    assert_eq!((before.generation, before.gone.clone()), (1, vec![]));
    assert_eq!(world.reconciler.on_acknowledged(&before), []);
    assert_eq!(world.reconciler.kept().removed.len(), 1);
    world.pass(ms(100));
    let after = world.reconciler.acknowledgement();
    assert_eq!(
        (after.generation, &after.gone[..]),
        (3, &["x".to_owned()][..])
    );
    // It comes and goes once more before the gateway hears that the controller knows the first time.
    world.take(changes(4, vec![put("x", &two, 4)]));
    world.take(changes(5, vec![remove("x")]));
    assert_eq!(world.reconciler.on_acknowledged(&after), []);
    let again = world.reconciler.acknowledgement();
    assert_eq!((again.generation, again.gone), (5, vec!["x".to_owned()]));
}

#[test]
fn an_answer_that_says_nothing_new_is_not_written_down() {
    let mut world = World::new(Kept::default());
    let everything = |generation, slices| Desired {
        generation,
        snapshot: Some(slices),
        ..Desired::default()
    };
    assert_eq!(world.take(everything(0, Vec::new())), []);
    let a = slice("a", [Some(terms(1, 500, 20)), None], 1);
    assert_eq!(world.take(everything(3, vec![a.clone()])).len(), 2);
    assert_eq!(world.take(everything(3, vec![a])), []);
    assert_eq!(world.take(everything(4, Vec::new())).len(), 2);
}

#[test]
fn a_guarantee_that_fits_only_without_the_old_one_comes_after_the_lesser_of_both() {
    let large = |delay| terms(1, 9_900, delay);
    let mut world = World::with(vec![put("a", &large(90), 1), put("b", &terms(2, 50, 5), 1)]);
    assert_eq!(world.acknowledged(), 1);
    let mut slow_and_short = terms(1, 100, 6);
    slow_and_short.guarantee.as_mut().unwrap().burst_bytes = 3_000;
    world.take(changes(2, vec![put("a", &slow_and_short, 2)]));
    world.pass(ms(200));
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(
        (acknowledgement.generation, acknowledgement.refused),
        (2, vec![])
    );
}

#[test]
fn after_a_commit_a_guarantee_waits_for_the_frames_that_waited_then() {
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    // A frame of `a` waits for one that is on the link.
    for vlan in [9, 1] {
        world.offer(0, vlan, 1);
    }
    world.reload(2 * LINK);
    world.take(changes(2, vec![put("b", &terms(2, 500, 20), 1)]));
    assert_eq!(
        (world.names(0), world.acknowledged()),
        (vec!["a".to_owned()], 1)
    );
    world.pass(ms(100));
    assert_eq!((world.names(0).len(), world.acknowledged()), (2, 2));
    assert!(world.reconciler.acknowledgement().refused.is_empty());
}

#[test]
fn what_can_never_be_in_force_is_refused_with_the_reason_and_the_rest_goes_on() {
    let mut world = World::new(Kept::default());
    let mut other_link = slice("d", [None, Some(terms(4, 0, 0))], 1);
    other_link.link = "downlink".to_owned();
    let mut without_match = terms(3, 0, 0);
    without_match.matches.clear();
    world.take(changes(
        4,
        vec![
            put("a", &terms(1, 20_000, 20), 1),
            put("b", &terms(2, 500, 20), 1),
            put("c", &without_match, 1),
            GatewayChange::Put(Box::new(other_link)),
            put("class-default", &terms(5, 0, 0), 1),
        ],
    ));
    world.pass(ms(300));
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(acknowledgement.generation, 4);
    let reasons = acknowledgement.refused.iter();
    let reasons: Vec<String> = reasons
        .map(|it| format!("{}: {}", it.slice, it.reason))
        .collect();
    insta::assert_snapshot!(reasons.join("\n"), @"
    a: backward: slice `a`: guarantees 20 Mbit/s (L2), but only 9.5 Mbit/s (L2) of the link is free: write a rate of at most 9.5 Mbit/s
    c: it matches no packet: `matches` is empty
    class-default: backward: there is a slice `class-default` already: change it, or choose another name
    d: this gateway has link `uplink`, and no link `downlink`
    ");
    assert_eq!(world.names(0), ["b"]);
    let kept = world.reconciler.kept();
    // The link is faster from now on: what was refused may fit.
    world.reload(10 * LINK);
    assert_eq!(world.names(0), ["a", "b"]);
    let acknowledgement = world.reconciler.acknowledgement();
    assert_eq!(
        (acknowledgement.refused.len(), acknowledgement.recovered),
        (3, vec!["a".to_owned()])
    );
    // Or it was restarted meanwhile.
    let mut world = World::new(Kept::default());
    let prepared = world
        .engine
        .basis()
        .prepare(&directions(10 * LINK), world.now)
        .unwrap();
    let _replaced = world.engine.commit(prepared, world.now).unwrap();
    world.reconciler = Reconciler::new("uplink", directions(10 * LINK), kept);
    world.act();
    assert_eq!(world.reconciler.acknowledgement().recovered, ["a"]);
}

#[test]
fn an_answer_that_no_controller_gives_changes_nothing() {
    let mut world = World::new(Kept::default());
    world.take(changes(5, vec![put("a", &terms(1, 500, 20), 1)]));
    let wrong = |world: &mut World, desired| {
        let reason = world.reconciler.take(desired).unwrap_err();
        world.act();
        assert_eq!(world.names(0), ["a"]);
        assert_eq!(world.acknowledged(), 5);
        reason
    };
    insta::assert_snapshot!(wrong(&mut world, changes(3, vec![remove("a")])), @"it answers with generation 3 after 5 without saying what is in force");
    insta::assert_snapshot!(wrong(&mut world, changes(6, vec![remove("a"), remove("\n")])), @r#"/name: "\n" is not a name: expected 1 to 63 of a-z, 0-9, `.`, `_` and `-`, and a letter or digit first"#);
}

#[test]
fn a_controller_with_an_older_store_is_followed() {
    let mut world = World::new(Kept::default());
    world.take(changes(
        9,
        vec![
            put("a", &terms(1, 500, 20), 1),
            put("b", &terms(2, 500, 20), 1),
        ],
    ));
    world.take(Desired {
        generation: 4,
        snapshot: Some(vec![slice("a", [Some(terms(1, 400, 20)), None], 7)]),
        ..Desired::default()
    });
    assert_eq!(world.acknowledged(), 4);
    assert_eq!([world.names(0), world.names(1)], [vec!["a"], vec![]]);
}

const ELEPHANTS: ElephantTerms = ElephantTerms {
    rate_bps: 1_000_000,
    interval_ms: 100,
    times: 2,
};

#[test]
fn flows_get_queues_of_their_own_and_count_when_frames_from_before_have_left_and_none_is_lost() {
    let mut wanted = terms(1, 500, 50);
    let mut world = World::with(vec![put("a", &wanted, 1)]);
    world.offer(0, 1, 5);
    wanted.flows = FlowTerms {
        weight_per_flow: true,
        flow_queueing: true,
        elephants: Some(ELEPHANTS),
    };
    wanted.weight = 3;
    world.take(changes(2, vec![put("a", &wanted, 2)]));
    let counted = |world: &mut World| {
        world
            .engine
            .count_classes(Way::Forward, 0, 32, world.now)
            .flows
    };
    assert_eq!(world.acknowledged(), 1);
    assert_eq!(counted(&mut world), [], "frames wait that came before");
    assert_eq!(world.reconciler.acknowledgement().refused, []);
    world.pass(ms(100));
    assert_eq!(world.acknowledged(), 2);
    let seen = counted(&mut world);
    let [(name, seen)] = &seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!((name.as_str(), seen.weighed.unwrap().weight), ("a", 3));
    assert!(seen.elephants.is_some());
    // A reload keeps that.
    world.reload(LINK);
    assert_eq!(counted(&mut world).len(), 1);
    wanted.flows = FlowTerms::default();
    world.take(changes(3, vec![put("a", &wanted, 3)]));
    assert_eq!((world.acknowledged(), counted(&mut world)), (3, vec![]));
    let classes = world.engine.classes(Way::Forward);
    let dropped: u64 = classes.map(|(class, _)| class.dropped_total()).sum();
    assert_eq!(dropped, 0);
}

#[test]
fn elephants_that_are_more_than_can_be_followed_are_refused_with_the_reason() {
    let mut world = World::new(Kept::default());
    let mut wanted = terms(1, 500, 50);
    wanted.flows.elephants = Some(ElephantTerms {
        rate_bps: 500,
        interval_ms: 30_000,
        times: 1,
    });
    world.take(changes(1, vec![put("a", &wanted, 1)]));
    let refused = world.reconciler.acknowledgement().refused;
    insta::assert_snapshot!(refused[0].reason, @"/flows/elephants/rate_bps: 20000 flows above 500 bit/s fit on a link of 10 Mbit/s, and 16384 can be followed: a higher rate is needed");
    assert_eq!(world.acknowledged(), 1);
}
