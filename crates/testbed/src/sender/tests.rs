//! Over the loopback interface of the namespace of this process.

use super::*;
use crate::udp_sink::UdpSink;
use slicewise_traffic::{Cbr, Interval, Mix, OnOff, Pace, Pattern, Poisson, Random, Sizes};
use slicewise_units::BitRate;
use slicewise_wire::{IpVersion, LinkType, PROTOCOL_UDP, ParseEnd, parse_frame};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU32;

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PAYLOAD_BYTES: u32 = 100;
const HEADER_BYTES: u32 = 42;
const SOON: Duration = Duration::from_millis(5);
const TENTH: Duration = Duration::from_millis(100);

/// A packet each millisecond, on average.
fn pace() -> Pace {
    Pace::new(1_000, BitRate::new(8_000_000)).unwrap()
}

fn source(pattern: Pattern, until: Duration, stream: u64) -> Source {
    Source::new(
        pattern,
        Sizes::Equal(HEADER_BYTES + PAYLOAD_BYTES),
        Instant::ZERO,
        Duration::from_millis(1),
        Instant::ZERO.saturating_add(until),
        Random::stream(5, stream),
    )
}

fn every_millisecond(until: Duration) -> Source {
    source(Pattern::Cbr(Cbr::new(pace())), until, 0)
}

/// One packet now, the next in half an hour.
fn rare() -> Source {
    let pattern = Cbr::new(Pace::new(1_000, BitRate::new(4)).unwrap());
    source(Pattern::Cbr(pattern), Duration::from_secs(36_000), 0)
}

fn flow(name: &str, source: Source, local: SocketAddr, remote: SocketAddr) -> SendingFlow {
    SendingFlow {
        name: name.to_owned(),
        source,
        local,
        remote,
        dscp: 0,
        header_bytes: HEADER_BYTES,
        payload_bytes: PAYLOAD_BYTES,
        inner: None,
    }
}

/// When packets are due, ns from time zero.
fn departures(source: &Source) -> Vec<u64> {
    let mut source = source.clone();
    std::iter::from_fn(|| source.next_departure())
        .map(|departure| departure.at.nanos())
        .collect()
}

fn receiver() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(HERE).unwrap();
    let patience = std::time::Duration::from_secs(10);
    socket.set_read_timeout(Some(patience)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Receives exactly this many datagrams. All fit into the socket buffer.
fn received(socket: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2_000];
    let datagrams = (0..count)
        .map(|_| {
            let bytes = socket.recv(&mut buffer).unwrap();
            buffer[..bytes].to_vec()
        })
        .collect();
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut buffer).is_err(), "more than {count}");
    datagrams
}

/// A closed port on an address of this host that no other test uses.
fn deserted(last: u8) -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).unwrap();
    socket.local_addr().unwrap()
}

#[test]
fn datagrams_have_the_sizes_that_the_source_draws() {
    let interval = pace().interval();
    let sizes = [(HEADER_BYTES, 1, interval), (HEADER_BYTES + 7, 1, interval)];
    let sizes = sizes
        .into_iter()
        .chain([(HEADER_BYTES + PAYLOAD_BYTES, 1, Interval::default())]);
    let mixed = Source::new(
        Pattern::Poisson(Poisson::new(1e6)),
        Sizes::Mix(Mix::new(sizes, Random::stream(5, 1)).unwrap()),
        Instant::ZERO,
        Duration::ZERO,
        Instant::ZERO.saturating_add(TENTH),
        Random::stream(5, 0),
    );
    let (socket, remote) = receiver();
    let drawn: Vec<usize> = std::iter::from_fn({
        let mut mixed = mixed.clone();
        move || mixed.next_departure()
    })
    .map(|departure| usize::try_from(departure.l2_bytes - HEADER_BYTES).unwrap())
    .collect();
    let sender = Sender::start(None, vec![flow("mixed", mixed, deserted(9), remote)]).unwrap();
    sender.start_at(TimeZero::after(SOON));
    sender.join().unwrap();
    let lengths: Vec<usize> = received(&socket, drawn.len())
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(lengths, drawn);
    assert_eq!(BTreeSet::from_iter(drawn), [0, 7, 100].into());
}

#[test]
fn datagrams_of_a_tunnel_have_whole_packets_in_them() {
    for ip_version in [IpVersion::V4, IpVersion::V6] {
        let inner = Headers {
            source: 0x0a00_0001,
            destination: 0x0a00_0901,
            ip_version,
            protocol: PROTOCOL_UDP,
            dscp: 46,
            has_ports: true,
            source_port: 5000,
            destination_port: 5001,
            l3_offset: 14,
            teid: NonZeroU32::new(0x0102_0304),
            ..Headers::EMPTY
        };
        let (socket, remote) = receiver();
        let mut flow = flow("inside", every_millisecond(TENTH), deserted(11), remote);
        flow.inner = Some(inner);
        let sender = Sender::start(None, vec![flow]).unwrap();
        sender.start_at(TimeZero::after(SOON));
        assert_eq!(sender.join().unwrap()[0].sent_frames, 100);
        for (number, datagram) in received(&socket, 100).iter().enumerate() {
            assert_eq!(datagram[..8], tunnel_header(datagram.len() - 8));
            let packet = &datagram[8..];
            let bytes = u32::try_from(packet.len()).unwrap();
            let parsed = parse_frame(LinkType::RAW, packet, bytes);
            let headers = Headers {
                teid: None,
                ..inner
            };
            assert_eq!((parsed.headers, parsed.end), (headers, ParseEnd::Complete));
            let payload = &packet[parsed.payload_offset..];
            assert_eq!(payload.len(), PAYLOAD_BYTES as usize);
            assert_eq!(Stamp::read(payload).unwrap().sequence as usize, number);
        }
    }
}

/// Version 1, a user packet, its length and TEID.
fn tunnel_header(bytes: usize) -> [u8; 8] {
    let [high, low] = u16::try_from(bytes).unwrap().to_be_bytes();
    [0x30, 0xff, high, low, 1, 2, 3, 4]
}

#[test]
fn sends_exactly_the_listed_packets_and_none_early() {
    let poisson = Pattern::Poisson(Poisson::new(pace().interval_ns()));
    let (on, off) = (Duration::from_millis(20), Duration::from_millis(30));
    let on_off = OnOff::new(Pattern::Cbr(Cbr::new(pace())), on, off).unwrap();
    let sources = [
        source(poisson, TENTH, 0),
        source(Pattern::OnOff(Box::new(on_off)), TENTH, 1),
    ];
    let receivers = [receiver(), receiver()];
    // From one address, with different DSCPs.
    let local = deserted(2);
    let mut flows: Vec<SendingFlow> = (sources.iter().zip(&receivers).zip(["first", "second"]))
        .map(|((source, (_, remote)), name)| flow(name, source.clone(), local, *remote))
        .collect();
    flows[1].dscp = 46;
    let sender = Sender::start(None, flows).unwrap();
    assert!(!sender.is_finished());
    let zero = TimeZero::after(SOON);
    sender.start_at(zero);
    let records = sender.join().unwrap();

    let mut all = BTreeSet::new();
    for (number, (source, (socket, _))) in (0u32..).zip(sources.iter().zip(&receivers)) {
        let due = departures(source);
        assert!((20..200).contains(&due.len()), "{}", due.len());
        let datagrams = received(socket, due.len());
        for ((sequence, due), datagram) in (0u32..).zip(&due).zip(&datagrams) {
            let stamp = Stamp::read(datagram).unwrap();
            assert_eq!((stamp.flow, stamp.sequence), (number, sequence));
            assert!(stamp.sent_ns >= zero.unix_ns + due);
            assert_eq!(datagram.len(), 100);
        }
        let record = &records[usize::try_from(number).unwrap()];
        assert_eq!(record.sent_frames, u64::try_from(due.len()).unwrap());
        assert_eq!(record.refused_frames, 0);
        assert!(record.lateness_p50_ns <= record.lateness_p99_ns);
        assert!(record.lateness_p99_ns <= record.lateness_max_ns);
        all.extend(datagrams);
    }
    let sent: u64 = records.iter().map(|record| record.sent_frames).sum();
    assert_eq!(u64::try_from(all.len()).unwrap(), sent, "two are alike");
    assert_eq!(
        [&*records[0].source, &*records[1].source],
        ["first", "second"]
    );
}

#[test]
fn overdue_packets_are_sent_at_once_and_counted_as_late() {
    let (socket, remote) = receiver();
    let source = every_millisecond(TENTH);
    let due = departures(&source);
    let sender = Sender::start(None, vec![flow("late", source, HERE, remote)]).unwrap();
    // A run that started ten seconds ago.
    let now = TimeZero::after(Duration::ZERO);
    let ten = Duration::from_secs(10);
    sender.start_at(TimeZero {
        monotonic: Instant::from_nanos(now.monotonic.nanos() - ten.nanos()),
        unix_ns: now.unix_ns - ten.nanos(),
    });
    let records = sender.join().unwrap();
    assert_eq!(received(&socket, due.len()).len(), due.len());
    assert!(records[0].lateness_p50_ns > 9_900_000_000);
    assert!(records[0].lateness_max_ns >= 9_999_000_000);
}

#[test]
fn stopping_ends_it_even_if_packets_are_still_due() {
    let (socket, remote) = receiver();
    let sender = Sender::start(None, vec![flow("rare", rare(), HERE, remote)]).unwrap();
    sender.start_at(TimeZero::after(Duration::ZERO));
    assert_eq!(received(&socket, 1).len(), 1);
    assert!(!sender.is_finished());
    sender.stop();
    assert_eq!(sender.join().unwrap()[0].sent_frames, 1);
}

#[test]
fn a_sender_never_started_sends_nothing_and_ends() {
    let (socket, remote) = receiver();
    let flows = || vec![flow("idle", every_millisecond(TENTH), HERE, remote)];
    let records = Sender::start(None, flows()).unwrap().join().unwrap();
    assert_eq!((records[0].sent_frames, records[0].lateness_max_ns), (0, 0));
    drop(Sender::start(None, flows()).unwrap());
    assert!(received(&socket, 0).is_empty());
}

#[test]
fn a_sender_dropped_while_sending_stops() {
    let (socket, remote) = receiver();
    let sender = Sender::start(None, vec![flow("rare", rare(), HERE, remote)]).unwrap();
    sender.start_at(TimeZero::after(Duration::ZERO));
    assert_eq!(received(&socket, 1).len(), 1);
    drop(sender);
}

#[test]
fn a_closed_port_does_not_disturb() {
    let source = every_millisecond(TENTH);
    let due = departures(&source);
    let sender = Sender::start(None, vec![flow("unheard", source, HERE, deserted(3))]).unwrap();
    sender.start_at(TimeZero::after(Duration::ZERO));
    let records = sender.join().unwrap();
    assert_eq!(records[0].sent_frames, u64::try_from(due.len()).unwrap());
    assert_eq!(records[0].refused_frames, 0);
}

#[test]
fn a_permanent_send_error_ends_it_and_names_the_source() {
    // A socket without SO_BROADCAST may not send broadcasts.
    let everybody = SocketAddr::from(([255, 255, 255, 255], 9));
    let source = every_millisecond(TENTH);
    let sender = Sender::start(None, vec![flow("shout", source, HERE, everybody)]).unwrap();
    sender.start_at(TimeZero::after(Duration::ZERO));
    let error = sender.join().unwrap_err().to_string();
    assert!(
        error.starts_with("source `shout`: sending to 255.255.255.255:9: "),
        "{error}"
    );
}

#[test]
fn rejects_flows_that_udp_cannot_carry_and_says_why() {
    let refused = |change: fn(&mut SendingFlow)| {
        let mut flow = flow("odd", rare(), HERE, HERE);
        change(&mut flow);
        Sender::start(None, vec![flow]).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refused(|flow| flow.dscp = 64), @"source `odd`: a code point above 63");
    insta::assert_snapshot!(refused(|flow| flow.payload_bytes = 65_508), @"source `odd`: more than 65507 bytes of payload");
    insta::assert_snapshot!(refused(|flow| flow.remote = SocketAddr::from(([0u16; 8], 9))), @"source `odd`: source and destination have different IP versions");
    // A documentation address (RFC 5737), which is not local.
    insta::assert_snapshot!(refused(|flow| flow.local = SocketAddr::from(([192, 0, 2, 1], 9))), @"source `odd`: UDP port 192.0.2.1:9: Cannot assign requested address (os error 99)");
    let missing = Sender::start(
        Some("no-such-namespace"),
        vec![flow("odd", rare(), HERE, HERE)],
    );
    let message = missing.unwrap_err().to_string();
    assert!(message.contains("`no-such-namespace`"), "{message}");
}

/// A temporary namespace, deleted when dropped.
struct Namespace(String);

impl Namespace {
    /// `None` without permission to create one.
    fn new() -> Option<Self> {
        let this = Self(format!("sender-{}", std::process::id()));
        ip(&["netns", "add", &this.0]).then_some(this)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["netns", "delete", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    let status = std::process::Command::new("ip").args(arguments).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn sends_in_the_given_namespace_and_leaves_no_thread_there() {
    let Some(namespace) = Namespace::new() else {
        eprintln!("skipped: creating network namespaces requires root");
        return;
    };
    let name = namespace.0.as_str();
    assert!(ip(&["-n", name, "link", "set", "lo", "up"]));
    assert!(ip(&[
        "-n",
        name,
        "addr",
        "add",
        "192.0.2.7/32",
        "dev",
        "lo"
    ]));
    // The address is local only in that namespace.
    let there = SocketAddr::from(([192, 0, 2, 7], 5_201));
    let udp_sink = UdpSink::bind(Some(name), &[there]).unwrap();
    let from = SocketAddr::from(([192, 0, 2, 7], 0));
    let source = every_millisecond(SOON);
    let due = departures(&source);
    let sender = Sender::start(Some(name), vec![flow("there", source, from, there)]).unwrap();
    sender.start_at(TimeZero::after(SOON));
    let records = sender.join().unwrap();
    assert_eq!(records[0].sent_frames, u64::try_from(due.len()).unwrap());
    assert!(UdpSocket::bind(from).is_err(), "this thread is still there");
    drop(udp_sink);
    assert!(UdpSink::bind(Some(name), &[there]).is_ok());
}
