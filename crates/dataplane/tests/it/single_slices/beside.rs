//! Frames that wait beside the queue of the class that they get.

use super::matches::{Written, burst, matches};
use super::*;
use std::ops::ControlFlow;

/// Flows have queues of their own, whose frames are patient, or not.
fn by_flow(on: bool) -> SliceFlows {
    SliceFlows {
        queue: on.then_some(flows::PATIENT),
        ..SliceFlows::default()
    }
}

fn flows_of_default() -> SliceChange {
    SliceChange::Flows {
        name: CLASS_DEFAULT.to_owned(),
        flows: Box::new(by_flow(true)),
    }
}

fn wait_for_a_slice(port: &mut Port) {
    burst(port, 3, 20);
    apply(port, matches("vlan1-1", &[1, 2], Written::Vlans)).unwrap();
    burst(port, 2, 8);
}

#[test]
fn frames_that_wait_for_a_slice_keep_their_order_when_its_flows_get_queues_meanwhile() {
    let prompt = guaranteed(8_000, 12_000, Duration::from_millis(40));
    let mut port = Port::new(&spec(&[(1..=1, prompt)]), Some(LINK));
    burst(&mut port, 3, 40);
    apply(&mut port, flows_of(&(1..=1), by_flow(true))).unwrap();
    apply(&mut port, matches("vlan1-1", &[1, 2], Written::Vlans)).unwrap();
    apply(&mut port, flows_of(&(1..=1), by_flow(false))).unwrap();
    burst(&mut port, 2, 10);
    let _ = apply(&mut port, flows_of(&(1..=1), by_flow(true))).unwrap_err();
    burst(&mut port, 1, 12);
    port.run_until(port.now() + 16_000_000);
    burst(&mut port, 2, 10);
    apply(&mut port, flows_of(&(1..=1), by_flow(true))).unwrap();
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 72);
    assert_in_order(&port.departures);
}

#[test]
fn frames_that_waited_for_a_slice_keep_their_order_in_class_default_with_flow_queues() {
    let prompt = guaranteed(1_000, 3_000, Duration::from_millis(40));
    let given_back = matches("vlan1-1", &[1], Written::Vlans);
    for end in [given_back, remove(&(1..=1))] {
        let mut port = Port::new(&spec(&[(1..=1, prompt)]), Some(LINK));
        apply(&mut port, flows_of_default()).unwrap();
        wait_for_a_slice(&mut port);
        apply(&mut port, end).unwrap();
        burst(&mut port, 2, 8);
        port.run_until(u64::MAX / 2);
        assert_eq!(port.departures.len(), 36);
        assert_in_order(&port.departures);
    }
}

#[test]
fn frames_that_wait_for_a_removed_slice_leave_though_its_last_ones_were_dropped() {
    let by_flow = Kind {
        by_flow: true,
        ..BEST_EFFORT
    };
    let mut port = Port::new(&spec(&[(1..=1, by_flow)]), None);
    burst(&mut port, 1, 40);
    let pipeline = &mut port.pipeline;
    // Slow enough for CoDel to drop.
    let mut now = 0;
    for _ in 0..15 {
        now += 30_000_000;
        let _ = pipeline.poll_egress(Instant::from_nanos(now));
        while pipeline.poll_dropped().is_some() {}
    }
    let at = Instant::from_nanos(now);
    pipeline.change_slice(remove(&(1..=1)), at).unwrap();
    for sequence in 100..102 {
        let verdict = pipeline.on_frame(frame(sequence, 1, 1_000), &headers(1), at);
        assert_eq!(verdict, Verdict::Queued);
    }
    let mut last = 0;
    for _ in 0..100 {
        now += 900_000_000;
        let _ = pipeline.dequeue_burst(Instant::from_nanos(now), |left| {
            last = left.frame.handle >> 16;
            ControlFlow::Continue(())
        });
        while pipeline.poll_dropped().is_some() {}
    }
    assert_eq!((pipeline.backlog(), last), (0, 101));
}

#[test]
fn what_is_left_of_a_removed_class_has_no_queue_of_another() {
    let both = spec(&[(2..=2, BEST_EFFORT), (1..=1, BEST_EFFORT)]);
    let mut port = Port::new(&both, Some(LINK));
    burst(&mut port, 1, 3);
    burst(&mut port, 2, 5);
    let now = Instant::from_nanos(port.now());
    let policy = spec(&[(2..=2, BEST_EFFORT)]).resolve(LINK).unwrap();
    let basis = port.pipeline.basis();
    let prepared = basis.prepare(Change::Policy(policy), now).unwrap();
    let _replaced = port.pipeline.commit(prepared, now).unwrap();
    let lengths: Vec<(&str, u32)> = port.pipeline.queue_lengths().collect();
    assert_eq!(
        lengths,
        [("vlan2-2", 5), (CLASS_DEFAULT, 0), ("vlan1-1", 3)]
    );
}

#[test]
fn frames_that_wait_for_a_slice_have_room_when_its_queue_limit_rises() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    burst(&mut port, 3, 1);
    apply(&mut port, matches("vlan1-1", &[1, 2], Written::Vlans)).unwrap();
    for limit in [2_000, 3_000] {
        let mut params = params(BEST_EFFORT);
        params.queue_limit.packets = limit;
        params.queue_limit.bytes = ByteCount::new(u64::from(u32::MAX));
        let name = name(&(1..=1));
        apply(&mut port, SliceChange::Change { name, params }).unwrap();
    }
    for vlan in [3, 1, 2] {
        for _ in 0..4_000 {
            let verdict = port.offer(arrival(port.now(), vlan, 100));
            assert_ne!(verdict, Verdict::Dropped(DropReason::BufferFull));
        }
    }
    assert_eq!(counters_of(&port, "vlan1-1").queued_frames, 6_000);
}

fn counters_of(port: &Port, name: &str) -> ClassCounters {
    let mut classes = port.pipeline.counters();
    classes.find(|class| class.class == name).unwrap().clone()
}

#[test]
fn class_default_counts_frames_that_two_slices_have_lost_and_both_still_hold() {
    let kinds = [(1..=2), (2..=3)].map(|vlans| (vlans, BEST_EFFORT));
    let mut port = Port::new(&spec(&kinds), Some(LINK));
    burst(&mut port, 2, 4);
    burst(&mut port, 3, 4);
    for (name, kept) in [("vlan1-2", 1), ("vlan2-3", 3)] {
        apply(&mut port, matches(name, &[kept], Written::Vlans)).unwrap();
    }
    for _ in 0..3 {
        let verdict = port.offer(arrival(port.now(), 2, 1_000));
        assert_eq!(verdict, Verdict::Dropped(DropReason::SliceRemoved));
    }
    let default = counters_of(&port, CLASS_DEFAULT);
    assert_eq!(default.dropped(DropReason::SliceRemoved), 3);
    assert_conserved(&port);
}

#[test]
fn frames_of_class_default_leave_before_those_of_the_same_moment_of_a_slice_that_drains() {
    let mut port = Port::new(&spec(&[(5..=5, BEST_EFFORT)]), Some(LINK));
    apply(&mut port, remove(&(5..=5))).unwrap();
    burst(&mut port, 1, 2);
    let added = apply(&mut port, add(&(1..=1), BEST_EFFORT)).unwrap();
    assert_eq!(added.class, 0, "before class-default");
    burst(&mut port, 1, 2);
    apply(&mut port, remove(&(1..=1))).unwrap();
    let now = Instant::from_nanos(port.now());
    let _ = port.pipeline.apply(Change::PortShaper(None), now).unwrap();
    port.run_until(u64::MAX / 2);
    let left: Vec<_> = port.departures.iter().map(|left| left.sequence).collect();
    assert_eq!(left, [0, 1, 2, 3]);
}
