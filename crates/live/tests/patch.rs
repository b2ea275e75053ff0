//! A patch between two interfaces of a namespace in the middle. Needs root; says so and passes where it
//! cannot.
#![allow(clippy::unwrap_used)]

mod support;

use slicewise_live::sys::namespace::within;
use slicewise_live::{patch, sys::interface::Interfaces};
use std::net::UdpSocket;
use std::time::Duration;
use support::{Testbed, run, udp};

#[test]
fn frames_go_on_with_their_tags_both_ways() {
    let Some(testbed) = Testbed::new("patch", 1_500) else {
        return;
    };
    within(&testbed.namespace("gateway"), || {
        patch::join("left", "right")
    })
    .unwrap()
    .unwrap();
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    let tag = [0x81, 0x00, 0x00, 0x0a];
    let frames: Vec<Vec<u8>> = [vec![], vec![tag], vec![tag, [0x81, 0x00, 0x00, 0x14]]]
        .iter()
        .zip(0..)
        .map(|(tags, number)| udp(tags, 9, 600, number))
        .collect();
    source.send(&frames);
    assert_eq!(sink.receive(3, Duration::from_secs(5)), frames);
    sink.send(&frames);
    assert_eq!(source.receive(3, Duration::from_secs(5)), frames);
}

/// Behind a bridge it would: the frames that wait would stay charged to its buffer.
#[test]
fn a_queue_behind_it_does_not_hold_back_the_sender() {
    let Some(testbed) = Testbed::new("charge", 1_500) else {
        return;
    };
    let (source, middle) = (testbed.namespace("source"), testbed.namespace("gateway"));
    let slow = "qdisc add dev right root tbf rate 8kbit burst 2000 limit 10000000";
    if let Err(why) = run(&format!("tc -n {middle} {slow}")) {
        eprintln!("skipped: {why}");
        return;
    }
    within(&middle, || patch::join("left", "right"))
        .unwrap()
        .unwrap();
    for command in [
        "addr add 192.0.2.1/24 dev eth0",
        "neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent",
    ] {
        run(&format!("ip -n {source} {command}")).unwrap();
    }
    let socket = within(&source, || {
        Interfaces::new()
            .unwrap()
            .send_as_on_a_wire("eth0")
            .unwrap();
        UdpSocket::bind("192.0.2.1:0")
    });
    let socket = socket.unwrap().unwrap();
    socket.set_nonblocking(true).unwrap();
    // Several times what the buffer of a socket holds.
    for _ in 0..1_000 {
        socket.send_to(&[0; 1_400], "192.0.2.2:9").unwrap();
    }
}
