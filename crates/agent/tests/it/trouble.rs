//! A controller that is away, wrong or hostile.

use crate::support::gateway::{Gateway, params};
use crate::support::relay::Relay;
use crate::support::server::{Mood, Server};
use crate::support::{slice, started, wait_until};
use serde_json::json;
use slicewise_agent::Agent;
use slicewise_api::{ElephantTerms, GatewaySlice};
use std::fs;
use std::time::Duration;

#[test]
fn whatever_the_controller_answers_the_gateway_goes_on_and_follows_it_again_when_it_is_right() {
    let (server, gateway, _folder) = started();
    let deep = "[".repeat(100_000);
    let mut hostile = slice("x", 3, 1);
    hostile
        .forward
        .as_mut()
        .unwrap()
        .guarantee
        .as_mut()
        .unwrap()
        .rate_bps = u64::MAX;
    hostile.forward.as_mut().unwrap().weight = u32::MAX;
    hostile.backward.as_mut().unwrap().flows.elephants = Some(ElephantTerms {
        rate_bps: 0,
        interval_ms: 0,
        times: 0,
    });
    let everything = |slices: &[GatewaySlice]| json!({"generation": 9, "snapshot": slices});
    let elsewhere = GatewaySlice {
        link: "other".to_owned(),
        ..slice("a", 1, 1_000)
    };
    let mut many = slice("a", 1, 1_000);
    let packets = many.forward.as_mut().unwrap();
    packets.matches = vec![packets.matches[0].clone(); 50_000];
    let moods = [
        Mood::Says(500, b"{}".to_vec()),
        Mood::Says(200, b"\xff\xfe".to_vec()),
        Mood::Says(200, deep.into_bytes()),
        Mood::Says(301, Vec::new()),
        Mood::Says(
            404,
            json!({"title": "no such gateway"}).to_string().into_bytes(),
        ),
        Mood::Wants(json!({"generation": -1})),
        Mood::Wants(json!({"generation": 0, "changes": [{"remove": "a"}]})),
        Mood::Wants(json!({"generation": 9, "changes": [{"remove": "../../etc"}]})),
        Mood::Wants(json!({"generation": 9, "snapshot": [{"name": "a"}]})),
        Mood::Wants(json!({"generation": u64::MAX, "changes": [{"put": hostile}]})),
        Mood::Wants(json!({"generation": i64::MAX, "changes": [{"put": hostile}]})),
        Mood::Wants(everything(&[slice("a", 1, 1_000), slice("a", 2, 9)])),
        Mood::Wants(everything(&[slice("class-default", 3, 1)])),
        Mood::Wants(everything(&[elsewhere])),
        Mood::Wants(everything(&[many])),
        Mood::Wants(json!({"generation": 9, "snapshot": [], "draining": ["a", "a", "b", "never"]})),
        Mood::HangsUp,
    ];
    for mood in moods {
        let shown = format!("{mood:?}").chars().take(60).collect::<String>();
        server.with(|state| state.mood = mood);
        std::thread::sleep(Duration::from_millis(150));
        server.with(|state| state.mood = Mood::Well);
        server.put(slice("a", 1, 1_000));
        let generation = server.put(slice("b", 2, 2_000));
        let is_right = || {
            let refused = server.with(|state| state.acknowledged.refused.is_empty());
            server.acknowledged() == generation && refused
        };
        wait_until(&format!("it follows after {shown}"), is_right);
        wait_until(&format!("both are seen after {shown}"), || {
            gateway.names().is_some_and(|names| names == ["a", "b"])
        });
    }
    let seen = gateway.stop();
    assert_eq!((seen.arrived, seen.reordered), (seen.left, 0));
}

#[test]
fn a_controller_that_does_not_answer_stops_nothing() {
    let (server, gateway, _folder) = started();
    server.with(|state| state.mood = Mood::Silent);
    std::thread::sleep(Duration::from_millis(300));
    let before = gateway.seen().left[&1];
    std::thread::sleep(Duration::from_millis(100));
    let seen = gateway.stop();
    assert!(seen.left[&1] > before);
    assert_eq!(seen.names[0], ["a"]);
}

#[test]
fn a_network_that_loses_everything_without_a_word_is_noticed_and_followed_by_what_changed_meanwhile()
 {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let relay = Relay::start(&server.url);
    let gateway = Gateway::start(&relay.url, &folder.path().join("state")).unwrap();
    server.put(slice("a", 1, 1_000));
    server.wait_for(1);
    relay.cut();
    let before = relay.connections();
    server.put(slice("b", 2, 1_000));
    let generation = server.remove("a");
    // Its connections are never answered again, not even when the network is back: it has to make others.
    wait_until("it connects anew", || relay.connections() >= before + 2);
    assert_eq!(server.acknowledged(), 1);
    assert!(gateway.names().is_some_and(|names| names == ["a"]));
    let sent = gateway.seen().left[&1];
    wait_until("it forwards on", || gateway.seen().left[&1] > sent);
    relay.mend();
    wait_until("what changed is in force", || {
        server.acknowledged() == generation && server.with(|state| state.gone == ["a"])
    });
    gateway.wait_for(&["b"]);
}

#[test]
fn a_torn_state_file_is_completed_by_the_controller() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = Server::start();
    let first = Gateway::start(&server.url, &state).unwrap();
    server.put(slice("a", 1, 1_000));
    server.wait_for(1);
    server.put(slice("b", 2, 1_000));
    server.wait_for(2);
    first.stop();
    // As if it had been killed while it wrote: the file is not its own any more.
    let bytes = fs::read(&state).unwrap();
    let torn = folder.path().join("torn");
    fs::write(&torn, &bytes[..bytes.len() - 5]).unwrap();
    server.with(|state| state.asked.clear());
    let again = Gateway::start(&server.url, &torn).unwrap();
    again.wait_for(&["a", "b"]);
    assert!(
        server.with(|state| state.asked.contains(&1)),
        "the second is asked for"
    );
}

#[test]
fn a_state_that_cannot_be_used_is_refused_before_anything_is_forwarded() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("missing/state");
    let opened = Agent::open(
        params("http://127.0.0.1:9", &state),
        crate::support::directions(),
    );
    let text = opened.unwrap_err().to_string();
    let text = text.replace(folder.path().to_str().unwrap(), "FOLDER");
    insta::assert_snapshot!(text, @"FOLDER/missing/state: cannot open it: No such file or directory (os error 2); the gateway keeps its slices in this file, so it needs a folder to which it may write");
}

#[test]
fn what_is_refused_is_announced_again_while_slices_change() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    server.with(|state| state.refuses = true);
    let _gateway = Gateway::start(&server.url, &folder.path().join("state")).unwrap();
    let generation = server.put(slice("a", 1, 1_000));
    server.wait_for(generation);
    assert!(server.with(|state| state.announced.is_none() && state.refused > 0));
    server.with(|state| state.refuses = false);
    wait_until("it is announced", || {
        server.with(|state| state.announced.is_some())
    });
    let announced = server.with(|state| state.announced.clone()).unwrap();
    assert_eq!(announced["reached"], generation);
}

#[test]
fn a_gateway_keeps_its_identity_with_its_state_and_another_has_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let known = |state: &str| {
        let path = folder.path().join(state);
        let gateway = crate::changes::retry(|| Gateway::start(&server.url, &path).ok());
        // The first report may come with a late one of the gateway before it.
        for _ in 0..2 {
            server.with(|state| state.instances.clear());
            wait_until("it reports", || {
                server.with(|state| !std::mem::take(&mut state.counters).is_empty())
            });
        }
        gateway.stop();
        // Its agent ends with the next thing that happens.
        wait_until("the file is free", || {
            server.put(slice("a", 1, 1_000));
            Agent::open(params(&server.url, &path), crate::support::directions()).is_ok()
        });
        let found = server.with(|state| state.instances.clone());
        assert_eq!(found.len(), 1, "{found:?}");
        found
    };
    let (one, same, other) = (known("one"), known("one"), known("other"));
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[test]
fn an_answer_without_an_end_is_given_up_before_it_takes_more_memory_than_frames_have() {
    let (server, gateway, _folder) = started();
    let slices = r#"{"name":"a","link":"l","tenant":"t","version":1},"#;
    let matches = r#"{"generation":9,"snapshot":[{"name":"a","link":"l","tenant":"t","version":1,"forward":{"weight":1,"matches":[{}"#;
    let endless = [
        ("", " ", 32),
        (r#"{"generation":9,"x":""#, "aaaaaaaaaaaaaaaa", 32),
        // What takes more memory than text is given up sooner.
        (r#"{"generation":9,"draining":["a""#, r#","a""#, 8),
        (r#"{"generation":9,"snapshot":["#, slices, 8),
        (matches, ",{}", 8),
    ];
    for (begin, again, most) in endless {
        server.with(|state| {
            state.taken = 0;
            state.mood = Mood::Endless(begin, again);
        });
        wait_until(again, || server.with(|state| state.taken > 0));
        let taken = server.with(|state| {
            state.mood = Mood::Well;
            state.taken
        });
        // The kernel holds some megabytes on their way.
        assert!(taken < (most + 12) << 20, "{taken} B of {again}");
        let generation = server.put(slice("b", 2, 2_000));
        server.wait_for(generation);
    }
    let seen = gateway.stop();
    assert_eq!((seen.arrived, seen.reordered), (seen.left, 0));
}
