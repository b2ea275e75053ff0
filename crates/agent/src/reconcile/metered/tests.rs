//! Tests of metered slices, over an engine with ports in memory and a clock that is set.

use super::*;
use slicewise_api::{GatewayTerms, Guarantee, Match, Maximum, Terms};
use slicewise_live::EngineParams;
use slicewise_live::memory::MemoryPort;
use slicewise_model::metered::{HIGH_QUEUE, SLICED_TCP_QUEUE, UDP_QUEUE};
use slicewise_model::{ClassSpec, Discipline, NamedQueueSpec, PolicySpec, Rate};
use slicewise_units::Duration;

/// Bytes of a frame.
const FRAME: u64 = 1_000;
/// Bytes of each bucket.
const BUCKET: u64 = 10 * FRAME;

fn directions(mbit: u64) -> [DirectionParams; 2] {
    let queue = |name: &str, priority| NamedQueueSpec {
        priority,
        ..NamedQueueSpec::new(name)
    };
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes: vec![ClassSpec {
            named_queue: Some("tcp".to_owned()),
            ..ClassSpec::class_default()
        }],
        discipline: Discipline::DeficitRoundRobin,
        guaranteed: None,
        queues: vec![
            queue(HIGH_QUEUE, Some(1)),
            queue(UDP_QUEUE, None),
            queue("tcp", None),
            queue(SLICED_TCP_QUEUE, None),
        ],
    };
    let link = BitRate::new(mbit * 1_000_000);
    let params = DirectionParams {
        link: Rate::l2(link),
        policy: spec.resolve(link).unwrap().into(),
        seed: 1,
    };
    [params.clone(), params]
}

/// A slice of a VLAN in the forward direction, S(c, p) in Mbit/s.
fn slice(name: &str, vlan: u16, (min, max): (u64, u64)) -> GatewaySlice {
    GatewaySlice {
        name: name.to_owned(),
        link: "uplink".to_owned(),
        tenant: "default".to_owned(),
        tenant_weight: 1,
        forward: Some(GatewayTerms {
            matches: vec![Match {
                vlan: Some(vlan),
                ..Match::default()
            }],
            terms: Terms {
                guarantee: Some(Guarantee {
                    rate_bps: min * 1_000_000,
                    burst_bytes: BUCKET,
                    ..Guarantee::default()
                }),
                maximum: Some(Maximum {
                    rate_bps: max * 1_000_000,
                    burst_bytes: BUCKET,
                }),
                ..Terms::default()
            },
        }),
        backward: None,
        version: min,
    }
}

fn put(name: &str, vlan: u16, rates: (u64, u64)) -> GatewayChange {
    GatewayChange::Put(Box::new(slice(name, vlan, rates)))
}

fn remove(name: &str) -> GatewayChange {
    GatewayChange::Remove(name.to_owned())
}

/// A gateway without threads.
struct World {
    engine: Engine,
    ports: [MemoryPort; 2],
    metered: Metered,
    now: Instant,
    number: u64,
    commits: u64,
}

impl World {
    fn new(mbit: u64, kept: Kept) -> Self {
        let params = EngineParams {
            directions: directions(mbit),
            largest_frame: 1_522,
            receive_queues: [0; 2],
            memory_bytes: 8 << 20,
            adds_slices: true,
        };
        let mut world = Self {
            engine: Engine::new(&params, Instant::ZERO).unwrap(),
            ports: [(); 2].map(|()| MemoryPort::new(1_500, 1_000)),
            metered: Metered::new("uplink", params.directions, kept),
            now: Instant::ZERO,
            number: 0,
            commits: 0,
        };
        world.metered.restore(&mut world.engine, Instant::ZERO);
        world
    }

    /// Carries out one request; returns whether there was one.
    fn step(&mut self) -> bool {
        let answer = match self.metered.poll_request(false, self.now) {
            None => return false,
            Some(Request::Basis) => Answer::Basis(Box::new(self.engine.basis())),
            Some(Request::Commit(change)) => {
                self.commits += 1;
                Answer::Committed(self.engine.commit(*change, self.now).map(Box::new))
            }
            Some(other) => panic!("{other:?}"),
        };
        self.metered.on_answer(answer, self.now);
        true
    }

    fn take(&mut self, generation: u64, changes: Vec<GatewayChange>) -> Vec<Record> {
        let desired = Desired {
            generation,
            changes,
            ..Desired::default()
        };
        let records = self.metered.take(desired).unwrap();
        while self.step() {}
        records
    }

    fn arrive(&mut self, vlan: u16, frames: u64) {
        for _ in 0..frames {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00];
            frame.extend(vlan.to_be_bytes());
            frame.extend([0x88, 0xb5]);
            frame.extend(self.number.to_be_bytes());
            frame.resize(usize::try_from(FRAME).unwrap(), 0);
            self.ports[0].arrive(frame);
            self.number += 1;
        }
        self.poll();
    }

    fn poll(&mut self) {
        let now = self.now;
        while {
            let round = self.engine.poll(&mut self.ports, &mut || now);
            round.is_unfinished || round.received > 0
        } {}
        self.ports[1].complete(self.engine.memory());
    }

    /// Time passes; returns VLAN and number of each frame that left until now.
    fn pass(&mut self, time: Duration) -> Vec<(u16, u64)> {
        let end = self.now.saturating_add(time);
        while let Some(at) = self.engine.poll_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.poll();
        }
        self.now = end;
        let sent = self.ports[1].take_sent();
        let read = |frame: Vec<u8>| {
            let vlan = u16::from_be_bytes([frame[14], frame[15]]);
            (vlan, u64::from_be_bytes(frame[18..26].try_into().unwrap()))
        };
        sent.into_iter().map(read).collect()
    }

    /// Frames of a class that were offered, and dropped.
    fn counted(&self, name: &str) -> (u64, u64) {
        let mut classes = self.engine.classes(Way::Forward);
        let class = classes.find(|(class, _)| class.class == name).unwrap().0;
        (class.offered_frames, class.dropped_total())
    }

    fn names(&self) -> Vec<String> {
        let classes = self.engine.classes(Way::Forward);
        classes.map(|(class, _)| class.class.clone()).collect()
    }
}

#[test]
fn slices_come_change_and_go_in_commits_and_are_acknowledged() {
    let mut world = World::new(100, Kept::default());
    let records = world.take(3, vec![put("b", 2, (70, 80)), put("a", 1, (20, 100))]);
    assert_eq!((records.len(), world.commits), (3, 1));
    assert_eq!(world.names(), ["a", "b", "class-default"]);
    assert_eq!(world.metered.acknowledgement().generation, 3);
    world.take(4, vec![put("a", 1, (20, 100))]);
    assert_eq!(world.commits, 1, "nothing differs");
    assert_eq!(world.metered.acknowledgement().generation, 4);
    world.take(5, vec![put("0", 3, (10, 10)), remove("b")]);
    assert_eq!(
        world.names(),
        ["a", "0", "class-default"],
        "the first stays in its place"
    );
    let told = world.metered.acknowledgement();
    assert_eq!(
        (told.generation, told.gone.clone()),
        (5, vec!["b".to_owned()])
    );
    assert_eq!(world.metered.kept().removed.len(), 1);
    assert_eq!(
        world.metered.on_acknowledged(&told),
        [Record::Gone(told.gone.clone())]
    );
    assert_eq!(world.metered.acknowledgement().gone, [""; 0]);
    assert!(world.metered.is_in_force("a") && !world.metered.is_in_force("b"));
    // A snapshot without a slice removes it.
    let desired = Desired {
        generation: 6,
        snapshot: Some(vec![slice("a", 1, (20, 100))]),
        draining: vec!["x".to_owned()],
        ..Desired::default()
    };
    world.metered.take(desired).unwrap();
    assert_eq!(
        world.metered.acknowledgement().generation,
        5,
        "not in force yet"
    );
    while world.step() {}
    assert_eq!(world.metered.acknowledgement().gone, ["0", "x"]);
    assert_eq!(world.names(), ["a", "class-default"]);
}

#[test]
fn a_change_gives_no_new_tokens_and_moves_no_frame() {
    let mut world = World::new(100, Kept::default());
    world.take(1, vec![put("a", 1, (1, 1)), put("b", 2, (1, 1))]);
    // Both buckets of `a` are empty then, and further frames red.
    world.arrive(1, 12);
    assert_eq!(world.counted("a"), (12, 2));
    world.take(2, vec![put("b", 2, (50, 60))]);
    world.arrive(1, 3);
    assert_eq!(
        world.counted("a"),
        (15, 5),
        "the bucket is as empty as before"
    );
    world.take(3, vec![put("a", 1, (2, 2))]);
    world.arrive(1, 3);
    assert_eq!(world.counted("a"), (18, 8));
    let left = world.pass(Duration::from_millis(100));
    assert_eq!(left, (0..10).map(|number| (1, number)).collect::<Vec<_>>());
}

#[test]
fn frames_keep_their_order_whatever_comes_and_goes_and_none_is_lost() {
    let mut world = World::new(10, Kept::default());
    let mut left = Vec::new();
    for generation in 1..=60 {
        // Before and after the change, so that frames wait on both sides of it; all of a slice are green.
        let arrive = |world: &mut World| [1, 2, 3].map(|vlan| world.arrive(vlan, 4));
        arrive(&mut world);
        let (index, step) = (generation % 3, generation % 4);
        let (name, vlan) = [("a", 1), ("b", 2), ("c", 3)][usize::try_from(index).unwrap()];
        let change = match step {
            3 => remove(name),
            _ => put(name, vlan, (2 + step % 2, 1_000)),
        };
        world.take(generation, vec![change]);
        assert!(world.engine.backlog() > 0);
        arrive(&mut world);
        left.extend(world.pass(Duration::from_millis(32)));
    }
    left.extend(world.pass(Duration::from_millis(1_000)));
    let expected = (world.number, 0);
    assert_eq!((left.len() as u64, world.engine.backlog()), expected);
    for vlan in [1, 2, 3] {
        let of_vlan = left.iter().filter(|(of, _)| *of == vlan);
        let numbers: Vec<u64> = of_vlan.map(|(_, number)| *number).collect();
        assert!(numbers.is_sorted(), "{vlan}: {numbers:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_in_force_once_it_does() {
    let mut world = World::new(100, Kept::default());
    world.take(
        1,
        vec![put("b", 2, (90, 100)), put("class-default", 9, (1, 1))],
    );
    // `a` is first by name, and yet does not take what `b` has.
    world.take(2, vec![put("a", 1, (20, 100))]);
    let told = world.metered.acknowledgement();
    let reasons: Vec<_> = told
        .refused
        .iter()
        .map(|one| (&*one.slice, &*one.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            (
                "a",
                "forward: guarantees 20 Mbit/s, but only 10 Mbit/s of the link is free"
            ),
            (
                "class-default",
                "the policy of the gateway has a class of this name"
            ),
        ]
    );
    assert_eq!((told.generation, world.metered.refused_now()), (2, 2));
    world.take(3, vec![put("b", 2, (80, 100)), remove("class-default")]);
    let told = world.metered.acknowledgement();
    assert_eq!(
        (told.refused.len(), told.recovered.clone()),
        (0, vec!["a".to_owned()])
    );
    assert!(world.metered.refused().is_empty());
    world.metered.on_acknowledged(&told);
    assert!(world.metered.acknowledgement().recovered.is_empty());
}

#[test]
fn what_is_kept_is_in_force_from_the_first_frame_on() {
    let mut world = World::new(100, Kept::default());
    world.take(7, vec![put("a", 1, (20, 100)), put("b", 2, (1, 1))]);
    world.take(8, vec![remove("b")]);
    let world = World::new(100, world.metered.kept());
    assert_eq!(world.names(), ["a", "class-default"]);
    let told = world.metered.acknowledgement();
    assert_eq!((told.generation, told.gone), (8, vec!["b".to_owned()]));
}

#[test]
fn a_reload_keeps_slices_and_a_commit_that_it_overtakes_is_prepared_again() {
    let mut world = World::new(100, Kept::default());
    world.take(1, vec![put("a", 1, (70, 80))]);
    let desired = Desired {
        generation: 2,
        changes: vec![put("b", 2, (20, 80))],
        ..Desired::default()
    };
    world.metered.take(desired).unwrap();
    assert!(world.step(), "it is prepared");
    let basis = world.engine.basis();
    let small = basis.prepare(&directions(60), world.now);
    let refused = small.unwrap_err().to_string();
    assert!(refused.contains("slice `a`, which was added while running, cannot be kept: it is guaranteed 70 Mbit/s, but only 60 Mbit/s"), "{refused}");
    let reloaded = basis.prepare(&directions(95), world.now).unwrap();
    drop(world.engine.commit(reloaded, world.now).unwrap());
    assert_eq!(world.names(), ["a", "class-default"]);
    world.metered.on_reloaded(directions(95));
    while world.step() {}
    assert_eq!(world.names(), ["a", "b", "class-default"]);
    assert_eq!(world.metered.acknowledgement().generation, 2);
}

#[test]
fn an_older_store_is_followed_from_its_snapshot_on() {
    let mut world = World::new(100, Kept::default());
    world.take(9, vec![put("a", 1, (70, 80))]);
    let older = |snapshot| Desired {
        generation: 4,
        snapshot,
        ..Desired::default()
    };
    assert!(world.metered.take(older(None)).is_err());
    world
        .metered
        .take(older(Some(vec![slice("b", 2, (90, 90))])))
        .unwrap();
    assert_eq!(world.metered.acknowledgement().generation, 0);
    while world.step() {}
    let told = world.metered.acknowledgement();
    assert_eq!((told.generation, told.gone), (4, vec!["a".to_owned()]));
    assert_eq!(world.names(), ["b", "class-default"]);
}
