//! No queue takes the memory that reception or another slice needs.

use super::*;
use crate::engine::EngineError;

/// A class with a queue far longer than there is memory for.
fn bulk() -> ClassSpec {
    let bulk = ClassMap {
        name: "bulk".to_owned(),
        mode: MatchMode::All,
        conditions: vec![Condition::OuterVlan(20..=20)],
    };
    limited(ClassSpec::new(bulk), 200_000)
}

/// A voice slice beside [`bulk`], over ports that receive into memory lent before, as AF_XDP does.
fn flooded(memory_bytes: u64, receive_queues: u32) -> Bench {
    let direction = direction(100_000_000, vec![priority(vlan(10)), bulk()]);
    let mut bench = Bench::of(&EngineParams {
        directions: [direction.clone(), direction],
        largest_frame: 1_522,
        receive_queues: [receive_queues; 2],
        memory_bytes,
        adds_slices: false,
    });
    for side in 0..2 {
        let budget = bench.engine.port_budget(side);
        let port = MemoryPort::new(1_500, budget.transmit.max(64) as usize);
        bench.ports[side] = port.lending(budget.receive as usize);
    }
    bench.poll();
    bench
}

#[test]
fn a_flood_into_a_long_queue_leaves_reception_and_the_other_slice_their_memory() {
    let mut bench = flooded(32 << 20, 1);
    // 150,000 frames/s for 0.4 s, more than all of the memory.
    for number in 0..60_000 {
        bench.arrive(tagged(20, 1_000, number));
        if number % 64 == 63 {
            bench.now = bench.now.saturating_add(Duration::from_micros(427));
            bench.poll();
        }
    }
    let bulk = bench.ports[1].take_sent().len();
    assert!((4_900..5_100).contains(&bulk), "{bulk}");
    let mut arrived = 0;
    for number in 0..1_500 {
        bench.arrive(tagged(10, 200, number));
        let until = bench.now.saturating_add(Duration::from_micros(100));
        let sent = bench.run_until(until);
        bench.now = until;
        arrived += sent
            .iter()
            .filter(|(_, frame)| vlan_of(frame) == 10)
            .count();
    }
    assert_eq!(arrived, 1_500);
    let (flooding, _) = bench.engine.classes(0).nth(1).unwrap();
    assert_eq!(
        flooding.dropped(DropReason::BufferFull),
        bench.engine.refused_frames()
    );
    assert!(bench.engine.refused_frames() > 40_000);
    assert_eq!(bench.engine.most_refused(), "forward: bulk");
    assert_eq!(
        bench.ports[0].counters(),
        crate::port::PortCounters::default()
    );
    bench.assert_conserved();
    bench.run();
    for port in &mut bench.ports {
        port.close(&mut bench.engine.memory);
    }
    assert_eq!(bench.engine.memory.free_chunks(), bench.chunks);
}

#[test]
fn sixteen_receive_queues_on_both_sides_leave_each_other_their_memory() {
    let mut bench = flooded(256 << 20, 16);
    for number in 0..1_000 {
        for side in 0..2 {
            bench.ports[side].arrive(tagged(10, 200, number));
        }
        bench.now = bench.now.saturating_add(Duration::from_micros(100));
        bench.poll();
    }
    for mut port in bench.ports {
        assert_eq!(port.take_sent().len(), 1_000);
        assert_eq!(port.counters(), crate::port::PortCounters::default());
    }
}

#[test]
fn too_little_memory_is_refused_and_the_message_says_how_much_is_needed() {
    let direction = direction(GIGABIT, vec![limited(vlan(10), 1_000)]);
    let params = EngineParams {
        directions: [direction.clone(), direction],
        largest_frame: 1_522,
        receive_queues: [16, 1],
        memory_bytes: 2 << 20,
        adds_slices: false,
    };
    let refused = Engine::new(&params, Instant::ZERO).unwrap_err();
    assert!(matches!(refused, EngineError::TooLittleMemory { .. }));
    insta::assert_snapshot!(refused, @"`memory` is 2 MiB, and at least 3 MiB are required for 17 receive queues and 4 queues of classes (97 MiB to fill all of them): raise `memory`, or reduce receive queues (`ethtool -L`)");
}

#[test]
fn a_class_that_a_reload_removes_keeps_its_frames_and_the_new_one_gets_its_part_of_the_memory() {
    let mut bench = flooded(4 << 20, 0);
    (0..5_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    let waiting = bench.engine.backlog();
    let after = direction(
        100_000_000,
        vec![priority(vlan(10)), limited(vlan(30), 100)],
    );
    bench.apply(&[after.clone(), after]);
    assert_eq!(bench.engine.backlog(), waiting);
    bench.run();
    bench.assert_conserved();
    (0..100).for_each(|number| bench.arrive(tagged(30, 1_000, number)));
    let sent = bench.run();
    assert_eq!(
        sent.iter().filter(|frame| vlan_of(frame) == 30).count(),
        100
    );
    bench.assert_conserved();
}

#[test]
fn a_queue_that_goes_on_beside_other_classes_has_its_memory_once() {
    let mut bench = flooded(4 << 20, 0);
    (0..5_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    let (waiting, refused) = (bench.engine.backlog(), bench.engine.refused_frames());
    assert!(refused > 0, "it has all that it can get");
    // It has another number.
    let after = direction(
        100_000_000,
        vec![limited(vlan(30), 1), priority(vlan(10)), bulk()],
    );
    bench.apply(&[after.clone(), after]);
    (0..1_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    // The memory of the first frame was with the interface before.
    let waiting_after = bench.engine.backlog();
    assert!(
        (waiting..=waiting + 1).contains(&waiting_after),
        "{waiting_after} of {waiting}"
    );
    assert_eq!(bench.engine.most_refused(), "forward: bulk");
    bench.run();
    bench.assert_conserved();
    let delays: Vec<(&str, u64)> = bench
        .engine
        .classes(0)
        .map(|(class, delays)| (class.class.as_str(), delays.count()))
        .collect();
    let sent = u64::from(waiting_after) + 1;
    let expected = [
        ("vlan30", 0),
        ("vlan10", 0),
        ("bulk", sent),
        ("class-default", 0),
    ];
    assert_eq!(delays, expected);
}
