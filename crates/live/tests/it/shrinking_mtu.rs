//! Frames that an interface does not send any more, because its MTU has shrunk. Needs root; says so and
//! passes where it cannot.

use crate::support::{Endpoint, Namespace, run, udp};
use slicewise_live::frame_memory::FrameId;
use slicewise_live::port::{Port, Unsent};
use std::time::{Duration, Instant};

/// Lengths of the frames offered: some fit into an MTU of 1000, and never the same number in a row.
const LENGTHS: [usize; 9] = [60, 1_514, 1_514, 200, 1_014, 1_015, 1_514, 1_514, 300];

/// Two ends of a virtual cable in one namespace, of which the first is to shrink.
fn ends(namespace: &Namespace) -> [Endpoint; 2] {
    let name = namespace.name();
    run(&format!(
        "ip -n {name} link add one type veth peer name two"
    ))
    .unwrap();
    // The kernel is to send nothing of its own.
    let _ = run(&format!(
        "ip netns exec {name} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"
    ));
    for interface in ["one", "two"] {
        let set = format!("ip -n {name} link set {interface}");
        run(&format!("{set} addrgenmode none mtu 1500")).unwrap();
        run(&format!("{set} up")).unwrap();
    }
    ["one", "two"].map(|interface| Endpoint::open(name, interface))
}

/// Hand these frames over at once.
fn transmit(end: &mut Endpoint, frames: &[Vec<u8>]) {
    assert!(end.port.room(&mut end.memory) >= frames.len());
    let frames: Vec<FrameId> = frames
        .iter()
        .map(|frame| end.memory.store(&[frame]).unwrap())
        .collect();
    end.port.transmit(&mut end.memory, &frames).unwrap();
}

fn frames() -> Vec<Vec<u8>> {
    let numbered = (0u32..100).zip(LENGTHS.into_iter().cycle());
    numbered
        .map(|(number, bytes)| udp(&[], 5201, bytes, number))
        .collect()
}

/// What has arrived is exactly this, in order.
fn assert_received(end: &mut Endpoint, expected: &[Vec<u8>]) {
    let received = end.receive(expected.len(), Duration::from_secs(5));
    let lengths: Vec<usize> = received.iter().map(Vec::len).collect();
    assert!(received == expected, "received {lengths:?}");
}

#[test]
fn every_frame_is_sent_in_order_or_counted_as_not_sent_while_the_mtu_shrinks() {
    let Some(namespace) = Namespace::new("mtu") else {
        return;
    };
    let [mut one, mut two] = ends(&namespace);
    let all = frames();
    transmit(&mut one, &all);
    assert_received(&mut two, &all);
    assert_eq!(one.port.take_unsent(), Unsent::default());

    let mtu = |bytes: u32| {
        let name = namespace.name();
        run(&format!("ip -n {name} link set one mtu {bytes}")).unwrap();
    };
    mtu(1_000);
    let fits = |frame: &&Vec<u8>| frame.len() <= 1_014;
    let short: Vec<Vec<u8>> = all.iter().filter(fits).cloned().collect();
    let long: Vec<&Vec<u8>> = all.iter().filter(|frame| !fits(frame)).collect();
    let refused = Unsent {
        frames: long.len() as u64,
        bytes: long.iter().map(|frame| frame.len() as u64).sum(),
    };
    for _ in 0..10 {
        transmit(&mut one, &all);
        assert_eq!(one.port.take_unsent(), refused);
        assert_received(&mut two, &short);
    }
    transmit(&mut one, &[udp(&[], 5201, 1_514, 1)]);
    assert_eq!(one.port.take_unsent().frames, 1);

    mtu(1_500);
    transmit(&mut one, &all);
    assert_received(&mut two, &all);
    assert_eq!(one.port.take_unsent(), Unsent::default());
}

#[test]
fn frames_that_wait_when_the_interface_closes_are_counted_as_not_sent() {
    let Some(namespace) = Namespace::new("down") else {
        return;
    };
    let [mut one, _two] = ends(&namespace);
    run(&format!("ip -n {} link set one down", namespace.name())).unwrap();
    let all = frames();
    let ids: Vec<FrameId> = all
        .iter()
        .map(|frame| one.memory.store(&[frame]).unwrap())
        .collect();
    assert!(one.port.transmit(&mut one.memory, &ids).is_err());
    assert_eq!(one.port.take_unsent(), Unsent::default());
    one.port.close(&mut one.memory);
    assert_eq!(one.port.take_unsent().frames, all.len() as u64);
}

#[test]
fn a_frame_that_the_interface_never_takes_holds_the_others_up_for_a_moment_only() {
    let Some(namespace) = Namespace::new("peer") else {
        return;
    };
    let [mut one, mut two] = ends(&namespace);
    // What the other end does not take is dropped on the way; it allows for a VLAN tag.
    run(&format!("ip -n {} link set two mtu 1000", namespace.name())).unwrap();
    let all = frames();
    transmit(&mut one, &all);
    let is_short = |frame: &&Vec<u8>| frame.len() <= 1_018;
    let short: Vec<Vec<u8>> = all.iter().filter(is_short).cloned().collect();
    let mut received = Vec::new();
    let start = Instant::now();
    while received.len() < short.len() && start.elapsed() < Duration::from_secs(20) {
        // As a gateway does, which asks before it sends.
        one.port.room(&mut one.memory);
        received.extend(two.receive(short.len(), Duration::from_millis(1)));
    }
    assert!(
        received == short,
        "received {} of {}",
        received.len(),
        short.len()
    );
    one.port.close(&mut one.memory);
    let unsent = one.port.take_unsent().frames;
    assert_eq!(unsent, (all.len() - short.len()) as u64);
}
