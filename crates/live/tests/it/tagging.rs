//! VLAN tags between two hosts, each a namespace. Needs root; says so and passes where it cannot.

use crate::support::{Endpoint, Namespace, run};
use slicewise_live::sys::interface::Interfaces;
use slicewise_live::sys::namespace::within;
use slicewise_live::tagging::{MOST_RULES, TagRule, attach};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const PORT: u16 = 9_000;

/// Two hosts that know each other, whose interfaces send as on a wire.
struct Hosts {
    source: Namespace,
    sink: Namespace,
}

impl Hosts {
    fn new(what: &str) -> Option<Self> {
        let source = Namespace::new(&format!("{what}-a"))?;
        let sink = Namespace::new(&format!("{what}-b"))?;
        let (from, to) = (source.name(), sink.name());
        run(&format!(
            "ip link add eth0 netns {from} type veth peer name eth0 netns {to}"
        ))
        .unwrap();
        let source_end = (
            from,
            "02:00:00:00:00:0a",
            ["10.0.0.1", "10.0.0.11", "fd00::1"],
        );
        let sink_end = (
            to,
            "02:00:00:00:00:0b",
            ["10.0.0.2", "10.0.0.12", "fd00::2"],
        );
        for ((name, own, addresses), (_, other, others)) in
            [(source_end, sink_end), (sink_end, source_end)]
        {
            let ip = |command: String| run(&format!("ip -n {name} {command}")).unwrap();
            // Room for a second tag: an interface takes frames of its MTU and one tag.
            let mtu = if name == to { 1_504 } else { 1_500 };
            ip(format!(
                "link set eth0 addrgenmode none mtu {mtu} address {own}"
            ));
            ip("link set eth0 up".to_owned());
            for address in addresses {
                let kind = if address.contains(':') {
                    "/128 nodad"
                } else {
                    "/32"
                };
                ip(format!("address add {address}{kind} dev eth0"));
            }
            for address in others {
                ip(format!("route add {address} dev eth0"));
                ip(format!(
                    "neigh add {address} lladdr {other} nud permanent dev eth0"
                ));
            }
            let system = within(name, || {
                Interfaces::new().unwrap().send_as_on_a_wire("eth0")
            });
            system.unwrap().unwrap();
        }
        Some(Self { source, sink })
    }

    /// Have the source tag, and the sink take tags off.
    fn attach(&self, rules: &[TagRule]) {
        let attached = within(self.source.name(), || attach("eth0", rules));
        attached.unwrap().unwrap();
        let attached = within(self.sink.name(), || attach("eth0", &[]));
        attached.unwrap().unwrap();
    }

    /// Send a datagram; the frame it came in, when it has arrived at the sink's socket.
    fn datagram(&self, wire: &mut Endpoint, from: &str, to: &str, bytes: usize) -> Vec<u8> {
        let at = |address: &str, port| SocketAddr::new(address.parse().unwrap(), port);
        // A child that another test starts holds a copy of the last socket until it is what it is to be.
        let bind = |name: &str, address| {
            let try_once = || within(name, || UdpSocket::bind(address)).unwrap().ok();
            (0..1_000)
                .find_map(|_| {
                    let socket = try_once();
                    if socket.is_none() {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    socket
                })
                .unwrap()
        };
        let receiver = bind(self.sink.name(), at(to, PORT));
        let sender = bind(self.source.name(), at(from, PORT));
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        sender.send_to(&vec![0x5a; bytes], at(to, PORT)).unwrap();
        let mut buffer = vec![0; 2_000];
        let (length, source) = receiver.recv_from(&mut buffer).unwrap();
        assert_eq!((length, source), (bytes, at(from, PORT)));
        wire.receive(1, PATIENCE).pop().unwrap()
    }
}

fn rule(source: &str, destination: &str, vlan: u16, inner_vlan: Option<u16>) -> TagRule {
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    TagRule {
        source: address(source),
        destination: address(destination),
        vlan,
        inner_vlan,
    }
}

/// From the first type on, so many bytes.
fn types(frame: &[u8], bytes: usize) -> &[u8] {
    &frame[12..12 + bytes]
}

#[test]
fn frames_are_tagged_by_their_addresses_and_arrive_at_sockets() {
    let Some(hosts) = Hosts::new("tag") else {
        return;
    };
    hosts.attach(&[
        rule("10.0.0.1", "10.0.0.2", 10, None),
        rule("10.0.0.11", "10.0.0.2", 4_094, Some(300)),
        rule("fd00::1", "fd00::2", 20, Some(21)),
    ]);
    let wire = &mut Endpoint::open(hosts.sink.name(), "eth0");
    let frame = hosts.datagram(wire, "10.0.0.1", "10.0.0.2", 100);
    assert_eq!(types(&frame, 6), [0x81, 0, 0, 10, 8, 0]);
    assert_eq!(frame.len(), 14 + 4 + 28 + 100);
    // The largest there are, with both tags.
    let frame = hosts.datagram(wire, "10.0.0.11", "10.0.0.2", 1_472);
    assert_eq!(
        types(&frame, 10),
        [0x81, 0, 0x0f, 0xfe, 0x81, 0, 1, 44, 8, 0]
    );
    assert_eq!(frame.len(), 14 + 8 + 1_500);
    let frame = hosts.datagram(wire, "fd00::1", "fd00::2", 1_452);
    assert_eq!(
        types(&frame, 10),
        [0x81, 0, 0, 20, 0x81, 0, 0, 21, 0x86, 0xdd]
    );
    // Other pairs of the same addresses.
    for (from, to) in [("10.0.0.1", "10.0.0.12"), ("10.0.0.11", "10.0.0.12")] {
        let frame = hosts.datagram(wire, from, to, 100);
        assert_eq!(types(&frame, 2), [8, 0]);
    }

    // New rules take the place of the old ones.
    hosts.attach(&[rule("10.0.0.1", "10.0.0.12", 30, None)]);
    let frame = hosts.datagram(wire, "10.0.0.1", "10.0.0.12", 100);
    assert_eq!(types(&frame, 6), [0x81, 0, 0, 30, 8, 0]);
    let frame = hosts.datagram(wire, "10.0.0.1", "10.0.0.2", 100);
    assert_eq!(types(&frame, 2), [8, 0]);
}

#[test]
fn a_connection_works_with_tags_in_both_directions() {
    let Some(hosts) = Hosts::new("tcp") else {
        return;
    };
    let there = rule("10.0.0.1", "10.0.0.2", 10, Some(11));
    let back = rule("10.0.0.2", "10.0.0.1", 12, None);
    for (host, rule) in [(&hosts.source, there), (&hosts.sink, back)] {
        within(host.name(), || attach("eth0", &[rule]))
            .unwrap()
            .unwrap();
    }
    let listener = within(hosts.sink.name(), || TcpListener::bind("10.0.0.2:9000"));
    let listener = listener.unwrap().unwrap();
    let address: SocketAddr = "10.0.0.2:9000".parse().unwrap();
    let client = within(hosts.source.name(), || {
        TcpStream::connect_timeout(&address, PATIENCE)
    });
    let mut client = client.unwrap().unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent = vec![7; 300_000];
    let sending = std::thread::spawn(move || client.write_all(&sent).unwrap());
    let mut received = Vec::new();
    server.read_to_end(&mut received).unwrap();
    sending.join().unwrap();
    assert_eq!(received.len(), 300_000);
}

#[test]
fn the_kernel_takes_as_many_rules_as_there_may_be() {
    let Some(hosts) = Hosts::new("most") else {
        return;
    };
    let wire = &mut Endpoint::open(hosts.sink.name(), "eth0");
    for (family, from, to) in [
        ("10.1.0.1", "10.0.0.1", "10.0.0.2"),
        ("fd01::1", "fd00::1", "fd00::2"),
    ] {
        let mut rules = vec![rule(family, to, 1, Some(2)); MOST_RULES - 1];
        rules.push(rule(from, to, 99, Some(98)));
        hosts.attach(&rules);
        let frame = hosts.datagram(wire, from, to, 100);
        assert_eq!(types(&frame, 8), [0x81, 0, 0, 99, 0x81, 0, 0, 98]);
    }
}
