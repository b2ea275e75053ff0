//! Slices come, change and go.

use crate::support::gateway::{Gateway, VLANS, engine, params};
use crate::support::relay::Relay;
use crate::support::server::Server;
use crate::support::{directions, slice, started, wait_until};
use slicewise_agent::Agent;
use slicewise_api::{ElephantTerms, FlowTerms};
use slicewise_live::gateway::ControllerSnapshot;
use slicewise_live::sys::time;
use slicewise_units::Way;
use std::time::Duration;

#[test]
fn slices_of_the_controller_are_in_force_and_acknowledged_and_their_traffic_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    server.put(slice("a", 1, 1_000));
    let gateway = Gateway::start(&server.url, &folder.path().join("state")).unwrap();
    server.wait_for(1);
    gateway.wait_for(&["a"]);
    let generation = server.put(slice("b", 2, 1_000));
    server.wait_for(generation);
    let announced = server.with(|state| state.announced.clone()).unwrap();
    assert_eq!(announced["links"][0]["forward"]["rate_bps"], 1_000_000_000);
    wait_until("both have sent", || {
        server.with(|state| {
            let both = |name: &str| {
                state
                    .counters
                    .iter()
                    .flat_map(|report| &report.slices)
                    .any(|slice| {
                        let forward = slice.forward.as_ref();
                        slice.name == name
                            && forward.is_some_and(|it| it.sent_frames > 0 && it.delay_ns.is_some())
                    })
            };
            both("a") && both("b")
        })
    });
    server.remove("a");
    wait_until("it is gone", || server.with(|state| state.gone == ["a"]));
    // What is gone is told until the controller knows, and then no more.
    wait_until("only once", || {
        server.put(slice("b", 2, 1_001));
        std::thread::sleep(Duration::from_millis(20));
        server.with(|state| state.acknowledged.gone.is_empty())
    });
}

#[test]
fn the_state_of_the_agent_tells_of_its_controller_and_of_refused_slices() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    server.put(slice("a", 1, 1_000));
    // More than the link has.
    let generation = server.put(slice("b", 2, 2_000_000));
    let relay = Relay::start(&server.url);
    let gateway = Gateway::start(&relay.url, &folder.path().join("state")).unwrap();
    let expected = ControllerSnapshot {
        is_followed: true,
        generation,
        refused_slices: 1,
        is_written: true,
    };
    wait_until("one slice is refused", || gateway.status() == expected);
    relay.cut();
    wait_until("the controller is away", || !gateway.status().is_followed);
    relay.mend();
    wait_until("it is followed again", || gateway.status() == expected);
}

#[test]
fn a_slice_whose_frames_cannot_leave_is_gone_once_it_is_purged() {
    let (server, gateway, _folder) = started();
    gateway.stall(true);
    wait_until("frames wait", || gateway.seen().backlog >= 50);
    let removed = server.remove("a");
    server.wait_for(removed);
    assert!(server.with(|state| state.gone.is_empty()));
    server.with(|state| state.purged.push("a".to_owned()));
    let purged = server.remove("a");
    wait_until("it is gone", || server.with(|state| state.gone == ["a"]));
    assert!(server.acknowledged() >= purged);
    // Its name and its packets are free, although nothing leaves.
    server.with(|state| state.purged.clear());
    let again = server.put(slice("a", 1, 1_000));
    server.wait_for(again);
    gateway.stall(false);
    let seen = gateway.stop();
    assert!(
        seen.left[&1] < seen.arrived[&1],
        "those that waited are dropped"
    );
    for vlan in (0..VLANS).filter(|vlan| *vlan != 1) {
        assert_eq!(seen.arrived[&vlan], seen.left[&vlan]);
    }
    assert_eq!(seen.reordered, 0);
}

#[test]
fn after_a_restart_slices_are_in_force_without_the_controller_and_only_changes_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = Server::start();
    let first = Gateway::start(&server.url, &state).unwrap();
    server.put(slice("a", 1, 1_000));
    let generation = server.put(slice("b", 2, 1_000));
    server.wait_for(generation);
    first.stop();
    // Its agent ends with the next thing that happens.
    wait_until("the file is free", || {
        server.put(slice("b", 2, 1_000));
        Gateway::start("http://127.0.0.1:9", &state).is_ok_and(|alone| {
            alone.wait_for(&["a", "b"]);
            true
        })
    });
    server.with(|state| state.asked.clear());
    let generation = server.remove("a");
    let again = retry(|| Gateway::start(&server.url, &state).ok());
    server.wait_for(generation);
    again.wait_for(&["b"]);
    assert!(
        server.with(|state| state.asked[0]) >= 2,
        "it has what it had"
    );
}

#[test]
fn after_a_restart_slices_are_in_force_before_the_first_frame() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = Server::start();
    let first = Gateway::start(&server.url, &state).unwrap();
    let mut generation = 0;
    for vlan in 0..200 {
        generation = server.put(slice(&format!("s{vlan:03}"), vlan, 100));
    }
    server.wait_for(generation);
    first.stop();
    server.put(slice("s000", 0, 100));
    // Nobody but who starts the gateway asks for anything.
    let agent = retry(|| Agent::open(params(&server.url, &state), directions()).ok());
    let mut engine = engine();
    agent
        .into_controller()
        .slices
        .restore(&mut engine, time::now());
    for direction in Way::ALL {
        let names = engine.classes(direction).map(|(class, _)| &class.class);
        let slices = names.filter(|name| name.starts_with('s')).count();
        assert_eq!(slices, 200);
    }
}

pub fn retry<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until("it succeeds", || {
        found = attempt();
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_controller_that_has_forgotten_what_changed_sends_everything_and_nothing_is_removed_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let gateway = Gateway::start(&server.url, &folder.path().join("state")).unwrap();
    for vlan in 0..VLANS {
        server.put(slice(&format!("s{vlan}"), vlan, 500));
    }
    server.wait_for(4);
    let asked = server.with(|state| state.asked.len());
    server.with(|state| state.forgotten = 100);
    let generation = server.put(slice("s0", 0, 600));
    server.wait_for(generation);
    wait_until("it has asked again", || {
        server.with(|state| state.asked.len()) > asked
    });
    let seen = gateway.stop();
    assert_eq!(
        seen.arrived, seen.left,
        "a slice that is removed drops frames"
    );
    assert_eq!(seen.reordered, 0);
}

#[test]
fn many_changes_under_traffic_lose_and_reorder_no_frame() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let gateway = Gateway::start(&server.url, &folder.path().join("state")).unwrap();
    for vlan in 0..VLANS {
        server.put(slice(&format!("s{vlan}"), vlan, 500));
    }
    let mut generation = 0;
    for round in 0..400u64 {
        let vlan = u16::try_from(round).unwrap() % VLANS;
        generation = server.put(slice(&format!("s{vlan}"), vlan, 400 + round));
        // Others without traffic come and go.
        server.put(slice("other", 100 + vlan, round % 7));
        if round % 3 == 0 {
            generation = server.remove("other");
        }
    }
    wait_until("the last is in force", || {
        server.acknowledged() >= generation
    });
    assert_eq!(server.with(|state| state.acknowledged.refused.clone()), []);
    let seen = gateway.stop();
    assert!(seen.arrived[&0] > 0);
    assert_eq!((seen.arrived, seen.reordered), (seen.left, 0));
}

#[test]
fn what_is_decided_about_flows_is_reported_with_its_reason_and_no_frame_is_lost_or_reordered() {
    let (server, gateway, _folder) = started();
    let mut by_flow = slice("a", 1, 1_000);
    by_flow.forward.as_mut().unwrap().flows = FlowTerms {
        weight_per_flow: true,
        flow_queueing: true,
        // Nine frames in one of the intervals of a minute: the traffic of this gateway is more on any machine.
        elephants: Some(ElephantTerms {
            rate_bps: 64_000,
            interval_ms: 200,
            times: 1,
        }),
    };
    let generation = server.put(by_flow);
    server.wait_for(generation);
    server.with(|state| assert_eq!(state.acknowledged.refused, []));
    let reported = || {
        server.with(|state| {
            let events = state.counters.iter().flat_map(|report| &report.events);
            let of_slice = events.filter(|event| event.slice.as_deref() == Some("a"));
            of_slice
                .map(|event| event.reason.clone())
                .collect::<Vec<_>>()
        })
    };
    wait_until("its flow is an elephant", || !reported().is_empty());
    insta::assert_snapshot!(reported()[0], @"forward: 1 flow became an elephant, above 64 kbit/s in 200 ms: not IP");
    let generation = server.put(slice("a", 1, 1_000));
    server.wait_for(generation);
    let seen = gateway.stop();
    assert_eq!((seen.arrived, seen.reordered), (seen.left, 0));
}
