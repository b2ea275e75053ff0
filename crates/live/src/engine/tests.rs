//! The engine over ports in memory and a clock that stands still until it is set.

mod lateness;
mod look;
mod memory;
mod names;
mod overhead;
mod slices;
mod stepwise;

use super::{DirectionParams, Discard, Engine, EngineParams};
use crate::frame_memory::FrameId;
use crate::memory::MemoryPort;
use crate::port::Port;
use proptest::prelude::*;
use slicewise_dataplane::DropReason;
use slicewise_model::{
    ClassMap, ClassSpec, Condition, Discipline, MatchMode, PolicyParams, PolicySpec, PrioritySpec,
    QueueLimitSpec, Rate,
};
use slicewise_units::{Accounting, BitRate, Duration, Instant, Way};

const GIGABIT: u64 = 1_000_000_000;

fn vlan(id: u16) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: format!("vlan{id}"),
        mode: MatchMode::All,
        conditions: vec![Condition::OuterVlan(id..=id)],
    })
}

fn priority(mut class: ClassSpec) -> ClassSpec {
    class.priority = Some(at_level(1));
    class
}

fn at_level(level: u8) -> PrioritySpec {
    PrioritySpec {
        level,
        rate: None,
        burst: None,
        accounting: Accounting::L2,
    }
}

fn limited(mut class: ClassSpec, packets: u32) -> ClassSpec {
    class.queue.limit = Some(QueueLimitSpec::Packets(packets));
    class
}

fn direction(rate: u64, classes: Vec<ClassSpec>) -> DirectionParams {
    let link = Rate::l2(BitRate::new(rate));
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes,
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    };
    DirectionParams {
        link,
        policy: spec.resolve(link.rate).unwrap().into(),
        seed: 1,
    }
}

/// An engine between two ports.
struct Bench {
    engine: Engine,
    ports: [MemoryPort; 2],
    now: Instant,
    chunks: usize,
}

impl Bench {
    fn new(rate: u64, classes: Vec<ClassSpec>) -> Self {
        Self::both_ways(direction(rate, classes))
    }

    fn both_ways(direction: DirectionParams) -> Self {
        Self::of(&EngineParams {
            directions: [direction.clone(), direction],
            largest_frame: 1_522,
            receive_queues: [0; 2],
            memory_bytes: 8 << 20,
            adds_slices: false,
        })
    }

    fn of(params: &EngineParams) -> Self {
        let engine = Engine::new(params, Instant::ZERO).unwrap();
        let chunks = engine.memory.total_chunks();
        Self {
            engine,
            ports: [MemoryPort::new(1_500, 1_000), MemoryPort::new(1_500, 1_000)],
            now: Instant::ZERO,
            chunks,
        }
    }

    fn arrive(&mut self, frame: Vec<u8>) {
        self.ports[0].arrive(frame);
    }

    fn apply(&mut self, directions: &[DirectionParams; 2]) {
        let prepared = self.engine.basis().prepare(directions, self.now).unwrap();
        let _replaced = self.engine.commit(prepared, self.now).unwrap();
    }

    /// Poll until nothing more happens now.
    fn poll(&mut self) {
        let mut clock = || self.now;
        while {
            let round = self.engine.poll(&mut self.ports, &mut clock);
            round.is_unfinished || round.received > 0
        } {}
        for port in &mut self.ports {
            port.complete(&mut self.engine.memory);
        }
    }

    /// Let time pass as the engine asks for it until `end`, or until nothing waits.
    fn run_until(&mut self, end: Instant) -> Vec<(Instant, Vec<u8>)> {
        let mut sent = Vec::new();
        loop {
            self.poll();
            sent.extend(self.ports[1].take_sent().into_iter().map(|f| (self.now, f)));
            match self.engine.poll_at() {
                Some(at) if at <= end => self.now = at,
                _ => return sent,
            }
        }
    }

    fn run(&mut self) -> Vec<Vec<u8>> {
        let sent = self.run_until(Instant::MAX);
        sent.into_iter().map(|(_, frame)| frame).collect()
    }

    fn discarded(&self, reason: Discard) -> u64 {
        self.engine.counters(Way::Forward).discarded[reason as usize]
    }

    /// Every frame that arrived is sent, waits, or is counted under one reason; and no memory is lost.
    fn assert_conserved(&self) {
        let counters = self.engine.counters(Way::Forward);
        let discarded: u64 = counters.discarded.iter().sum();
        let dropped: u64 = self
            .engine
            .classes(Way::Forward)
            .map(|(c, _)| c.dropped_total())
            .sum();
        let dropped = dropped + counters.dropped_by_removed_frames;
        let waiting = u64::from(self.engine.backlog());
        assert_eq!(
            counters.received_frames,
            counters.sent_frames + waiting + discarded + dropped
        );
        if waiting == 0 {
            assert_eq!(self.engine.memory.free_chunks(), self.chunks);
        }
    }
}

/// A UDP packet of IPv4 in a frame of `bytes` with one VLAN tag; its last bytes are `number`.
fn tagged(vlan: u16, bytes: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00];
    frame.extend(vlan.to_be_bytes());
    frame.extend([0x08, 0x00]);
    frame.extend(ipv4(bytes - 18));
    let end = frame.len();
    frame[end - 4..].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[frame.len() - 4..].try_into().unwrap())
}

fn vlan_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[14], frame[15]])
}

/// UDP in IPv4 with a right header checksum.
fn ipv4(bytes: usize) -> Vec<u8> {
    let mut packet = vec![
        0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    packet[2..4].copy_from_slice(&u16::try_from(bytes).unwrap().to_be_bytes());
    let checksum = header_checksum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = u16::try_from(bytes - 20).unwrap();
    packet.extend([0x30, 0x39, 0x14, 0x51]);
    packet.extend(udp.to_be_bytes());
    packet.extend([0, 0]);
    packet.resize(bytes, 0);
    packet
}

/// RFC 1071, the plain way: of a header whose checksum field is zero, the checksum; of a whole one, 0.
fn header_checksum(header: &[u8]) -> u16 {
    let words = header[..20].chunks(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap()
}

#[test]
fn departures_keep_the_pace_of_the_link_to_the_nanosecond() {
    let mut bench = Bench::new(35_000_000, vec![]);
    (0..20).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    let sent = bench.run_until(Instant::MAX);
    assert_eq!(sent.len(), 20);
    for (index, (at, frame)) in (0u64..).zip(&sent) {
        // 8,000 bits at 35 Mbit/s, from the start of the first: rounded up, without drift.
        let expected = (index * 8_000 * 1_000_000_000).div_ceil(35_000_000);
        assert_eq!(at.nanos(), expected);
        assert_eq!(u64::from(number(frame)), index);
    }
    assert_eq!(
        bench.engine.lateness(Way::Forward).largest(),
        Duration::ZERO
    );
    bench.assert_conserved();
}

#[test]
fn time_lost_by_waking_late_is_made_up_for() {
    let mut bench = Bench::new(GIGABIT, vec![]);
    (0..100).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    let mut sent = 0;
    // Woken every 50 us instead of every 8 us.
    for wake in 0..16 {
        bench.now = Instant::from_nanos(wake * 50_000);
        bench.poll();
        sent += bench.ports[1].take_sent().len();
        let due = usize::try_from(wake * 50_000 / 8_000).unwrap() + 1;
        assert_eq!(sent, due.min(100), "at {}", bench.now.nanos());
    }
    bench.assert_conserved();
}

#[test]
fn a_link_that_was_not_served_for_long_sends_no_more_than_one_millisecond_at_once() {
    let mut bench = Bench::new(GIGABIT, vec![limited(vlan(10), 500)]);
    (0..400).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    assert_eq!(bench.ports[1].take_sent().len(), 1);
    bench.now = Instant::from_nanos(100_000_000);
    bench.poll();
    let burst = bench.ports[1].take_sent().len();
    assert!((125..=127).contains(&burst), "{burst}");
}

#[test]
fn who_has_priority_overtakes_and_nobody_else_is_reordered() {
    let mut bench = Bench::new(10_000_000, vec![priority(vlan(10)), vlan(20)]);
    for i in 0..10 {
        bench.arrive(tagged(20, 1_000, i));
    }
    bench.poll();
    for i in 0..3 {
        bench.arrive(tagged(10, 500, i));
    }
    let sent = bench.run();
    let order: Vec<(u16, u32)> = sent.iter().map(|f| (vlan_of(f), number(f))).collect();
    assert_eq!(order[0], (20, 0));
    assert_eq!(order[1..4], [(10, 0), (10, 1), (10, 2)]);
    let rest: Vec<u32> = order[4..].iter().map(|(_, n)| *n).collect();
    assert_eq!(rest, (1..10).collect::<Vec<u32>>());
    bench.assert_conserved();
}

#[test]
fn a_slice_that_exceeds_its_queue_costs_the_other_nothing() {
    let classes = vec![limited(vlan(10), 64), limited(vlan(20), 16)];
    let mut bench = Bench::new(10_000_000, classes);
    for i in 0..600 {
        bench.arrive(tagged(20, 1_000, i));
    }
    for i in 0..10 {
        bench.arrive(tagged(10, 1_000, i));
    }
    let sent = bench.run();
    assert_eq!(sent.iter().filter(|f| vlan_of(f) == 10).count(), 10);
    let (flooding, _) = bench.engine.classes(Way::Forward).nth(1).unwrap();
    assert!(flooding.dropped(DropReason::QueueFull) >= 580);
    bench.assert_conserved();
}

#[test]
fn damaged_frames_are_counted_and_dropped_and_others_pass() {
    let mut bench = Bench::new(GIGABIT, vec![]);
    bench
        .engine
        .set_own_addresses([[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 8]]);
    bench.arrive(vec![0; 13]);
    bench.arrive(tagged(10, 1_519, 0));
    let mut cut_off = tagged(10, 100, 0);
    cut_off.truncate(30);
    bench.arrive(cut_off);
    let mut short_header = tagged(10, 100, 0);
    short_header[18] = 0x42;
    bench.arrive(short_header);
    // One byte more than the frame has, in IPv4 and in IPv6.
    let mut too_long = tagged(10, 100, 0);
    too_long[20..22].copy_from_slice(&83u16.to_be_bytes());
    bench.arrive(too_long.clone());
    too_long[20..22].copy_from_slice(&82u16.to_be_bytes());
    bench.arrive(too_long.clone());
    let mut v6 = vec![2; 12];
    v6.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 9, 59, 64]);
    v6.resize(14 + 40 + 8, 0);
    bench.arrive(v6);
    let mut looped = tagged(10, 100, 0);
    looped[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bench.arrive(looped);
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 0, 2, 0x08, 0x06]);
    arp.resize(42, 1);
    bench.arrive(arp.clone());
    bench.arrive(tagged(10, 1_518, 0));
    let sent = bench.run();
    assert_eq!(sent, [too_long, arp, tagged(10, 1_518, 0)]);
    for (reason, frames) in [
        (Discard::Runt, 1),
        (Discard::Giant, 1),
        (Discard::Malformed, 4),
        (Discard::Looped, 1),
    ] {
        assert_eq!(bench.discarded(reason), frames, "{reason:?}");
    }
    assert_eq!(bench.engine.counters(Way::Forward).not_ip_frames, 1);
    bench.assert_conserved();
}

#[test]
fn a_class_s_dscp_is_written_into_the_frame_and_the_checksum_stays_right() {
    let mut marked = vlan(10);
    marked.set_dscp = Some(46);
    let mut bench = Bench::new(GIGABIT, vec![marked]);
    bench.arrive(tagged(10, 100, 7));
    let mut v6 = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00, 0, 10, 0x86, 0xdd,
    ];
    v6.extend([0x60, 0x0a, 0xbc, 0xde, 0, 8, 17, 64]);
    v6.extend([0x20; 32]);
    v6.extend([0x30, 0x39, 0x14, 0x51, 0, 8, 0, 0]);
    bench.arrive(v6.clone());
    let sent = bench.run();
    assert_eq!(sent[0][19], 46 << 2);
    assert_eq!(header_checksum(&sent[0][18..]), 0);
    assert_eq!(sent[0][20..28], tagged(10, 100, 7)[20..28]);
    // 101110 00: DSCP 46, flow label untouched.
    assert_eq!(sent[1][18..22], [0x6b, 0x8a, 0xbc, 0xde]);
    assert_eq!(sent[1][22..], v6[22..]);
}

#[test]
fn a_packet_in_a_pppoe_session_or_behind_labels_is_classified_and_marked() {
    let mut marked = ClassSpec::new(ClassMap {
        name: "port".to_owned(),
        mode: MatchMode::All,
        conditions: vec![Condition::DestinationPort(5201..=5201)],
    });
    marked.set_dscp = Some(46);
    let mut bench = Bench::new(GIGABIT, vec![marked]);
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 10];
    let session = [&addresses[..], &[0x88, 0x64, 0x11, 0, 0, 9, 0, 84, 0, 0x21]].concat();
    let labels = [0x88, 0x47, 0, 1, 0x40, 64, 0, 1, 0x41, 64];
    let labels = [&addresses[..], &labels].concat();
    let of_ip = [session, labels].map(|before| [&before[..], &ipv4(82)].concat());
    // A pseudowire, and a control packet of the session: neither is IP.
    let mut wire = of_ip[1].clone();
    wire[26] = 0;
    let mut control = of_ip[0].clone();
    control[24..26].copy_from_slice(&[0xc0, 0x21]);
    for frame in of_ip.iter().chain([&wire, &control]) {
        bench.arrive(frame.clone());
    }
    let sent = bench.run();
    for (sent, arrived) in sent.iter().zip(&of_ip) {
        assert_eq!(sent[27], 46 << 2);
        assert_eq!(header_checksum(&sent[26..]), 0);
        assert_eq!((&sent[..27], &sent[38..]), (&arrived[..27], &arrived[38..]));
    }
    assert_eq!(sent[2..], [wire, control]);
    assert_eq!(bench.engine.counters(Way::Forward).not_ip_frames, 2);
    bench.assert_conserved();
}

#[test]
fn a_frame_that_needs_no_change_is_not_touched() {
    let mut bench = Bench::new(GIGABIT, vec![vlan(10)]);
    let mut wrong_checksum = tagged(10, 100, 7);
    wrong_checksum[28] ^= 0xff;
    wrong_checksum[19] = 0x67;
    bench.arrive(wrong_checksum.clone());
    assert_eq!(bench.run(), [wrong_checksum]);
}

#[test]
fn a_port_that_takes_nothing_is_asked_again_and_nothing_is_lost() {
    let mut bench = Bench::new(GIGABIT, vec![]);
    bench.ports[1] = MemoryPort::new(1_500, 2);
    (0..6).for_each(|i| bench.arrive(tagged(10, 100, i)));
    bench.now = Instant::from_nanos(1_000_000);
    let round = {
        let mut clock = || Instant::from_nanos(1_000_000);
        bench.engine.poll(&mut bench.ports, &mut clock)
    };
    assert!(!round.is_blocked);
    bench.now = Instant::from_nanos(2_000_000);
    let mut clock = || Instant::from_nanos(2_000_000);
    let round = bench.engine.poll(&mut bench.ports, &mut clock);
    assert!(round.is_blocked);
    assert_eq!(bench.ports[1].take_sent().len(), 2);
    bench.ports[1].complete(&mut bench.engine.memory);
    let sent = bench.run();
    assert_eq!(
        sent.iter().map(|f| number(f)).collect::<Vec<_>>(),
        [2, 3, 4, 5]
    );
    bench.assert_conserved();
}

#[test]
fn a_port_that_fails_is_reported_and_the_other_direction_goes_on() {
    let mut bench = Bench::new(GIGABIT, vec![]);
    bench.ports[0].fail();
    bench.ports[1].arrive(tagged(10, 100, 0));
    let mut clock = || Instant::ZERO;
    let round = bench.engine.poll(&mut bench.ports, &mut clock);
    assert!(round.failed[0].is_some());
    assert!(round.failed[1].is_none());
    assert_eq!(bench.engine.counters(Way::Backward).received_frames, 1);
}

#[test]
fn stopping_sends_what_waits_and_counts_what_is_given_up() {
    let mut bench = Bench::new(10_000_000, vec![]);
    (0..10).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    bench.engine.stop();
    bench.arrive(tagged(10, 1_000, 99));
    let sent = bench.run_until(Instant::from_nanos(4 * 800_000)).len();
    assert_eq!(bench.engine.give_up(bench.now), 10 - 1 - sent as u64 + 1);
    assert_eq!(bench.ports[0].arriving(), 1);
    bench.assert_conserved();
}

#[test]
fn a_refused_policy_leaves_both_directions_as_they_were() {
    let mut bench = Bench::new(10_000_000, vec![vlan(10)]);
    let good = direction(20_000_000, vec![vlan(20)]);
    // No file says so: it is refused when it is read.
    let classes = (1..=64u16).map(|id| ClassSpec {
        priority: Some(at_level(1)),
        ..vlan(id)
    });
    let mut bad = direction(20_000_000, classes.collect());
    let mut too_many = PolicyParams::clone(&bad.policy);
    let priorities = too_many
        .classes
        .iter_mut()
        .filter_map(|class| class.priority.as_mut());
    for (priority, level) in priorities.zip(1..) {
        priority.level = level;
    }
    bad.policy = too_many.into();
    let prepared = bench.engine.basis().prepare(&[good, bad], Instant::ZERO);
    assert!(prepared.is_err());
    bench.arrive(tagged(10, 100, 0));
    bench.poll();
    let (class, _) = bench.engine.classes(Way::Forward).next().unwrap();
    assert_eq!((class.class.as_str(), class.offered_frames), ("vlan10", 1));
}

#[derive(Debug, Clone)]
enum Event {
    Arrive { vlan: u16, bytes: usize },
    Damaged(Vec<u8>),
    Wait(u64),
    Reload(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (prop_oneof![Just(10u16), Just(20), Just(30)], 60usize..1_518)
            .prop_map(|(vlan, bytes)| Event::Arrive { vlan, bytes }),
        1 => proptest::collection::vec(any::<u8>(), 0..80).prop_map(Event::Damaged),
        3 => (0u64..3_000_000).prop_map(Event::Wait),
        1 => (0u8..4).prop_map(Event::Reload),
    ]
}

fn configuration(number: u8) -> DirectionParams {
    match number {
        0 => direction(20_000_000, vec![priority(vlan(10)), limited(vlan(20), 8)]),
        1 => direction(5_000_000, vec![vlan(10), vlan(20), vlan(30)]),
        2 => direction(40_000_000, vec![vlan(20)]),
        _ => direction(10_000_000, vec![]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_frame_is_sent_in_order_or_counted_whatever_arrives_and_is_reconfigured(
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let mut bench = Bench::new(20_000_000, vec![priority(vlan(10)), limited(vlan(20), 8)]);
        let mut sent = Vec::new();
        let mut arrived = 0;
        for event in events {
            match event {
                Event::Arrive { vlan, bytes } => {
                    bench.arrive(tagged(vlan, bytes, arrived));
                    arrived += 1;
                }
                Event::Damaged(bytes) => bench.arrive(bytes),
                Event::Wait(nanos) => {
                    let until = bench.now.saturating_add(Duration::from_nanos(nanos));
                    sent.extend(bench.run_until(until));
                    bench.now = until;
                }
                Event::Reload(number) => {
                    let next = configuration(number);
                    bench.apply(&[next.clone(), next]);
                }
            }
            bench.assert_conserved();
        }
        sent.extend(bench.run_until(Instant::MAX));
        bench.assert_conserved();
        prop_assert_eq!(bench.engine.backlog(), 0);
        for vlan in [10, 20, 30] {
            let of_vlan = sent.iter().map(|(_, f)| f).filter(|f| {
                f.len() >= 60 && f[12..14] == [0x81, 0] && vlan_of(f) == vlan && f[0] == 2
            });
            let numbers: Vec<u32> = of_vlan.map(|f| number(f)).collect();
            prop_assert!(numbers.is_sorted(), "{:?}", numbers);
        }
        // Nothing leaves faster than the fastest link it was given.
        let bits: u64 = sent.iter().map(|(_, f)| f.len() as u64 * 8).sum();
        if let Some((last, _)) = sent.last() {
            let allowed = 40_000_000 * last.nanos() / 1_000_000_000;
            prop_assert!(bits <= allowed + 2 * 1_518 * 8, "{} in {}", bits, last.nanos());
        }
    }
}

#[test]
fn a_closed_port_costs_only_the_frames_meant_for_it() {
    struct Closed;
    impl Port for Closed {
        fn receive(
            &mut self,
            _: &mut crate::frame_memory::FrameMemory,
            _: &mut Vec<crate::port::Arrival>,
        ) -> std::io::Result<()> {
            Ok(())
        }
        fn room(&mut self, _: &mut crate::frame_memory::FrameMemory) -> usize {
            usize::MAX
        }
        fn transmit(
            &mut self,
            _: &mut crate::frame_memory::FrameMemory,
            frames: &[FrameId],
        ) -> std::io::Result<()> {
            assert!(frames.is_empty());
            Ok(())
        }
        fn largest_frame(&self, _: u16) -> u32 {
            u32::MAX
        }
        fn is_open(&self) -> bool {
            false
        }
        fn close(&mut self, _: &mut crate::frame_memory::FrameMemory) {}
    }
    let mut bench = Bench::new(GIGABIT, vec![]);
    (0..5).for_each(|i| bench.arrive(tagged(10, 100, i)));
    let mut closed = Closed;
    let arrivals = {
        let mut arrivals = Vec::new();
        bench.ports[0]
            .receive(&mut bench.engine.memory, &mut arrivals)
            .unwrap();
        arrivals
    };
    let Engine {
        directions, memory, ..
    } = &mut bench.engine;
    directions
        .forward
        .on_arrivals(&arrivals, memory, &closed, &[[0; 6]; 2], Instant::ZERO);
    for _ in 0..5 {
        let (_, result) = directions
            .forward
            .pace(&mut closed, memory, &mut || Instant::from_nanos(1_000_000));
        result.unwrap();
    }
    assert_eq!(bench.discarded(Discard::InterfaceDown), 5);
    bench.assert_conserved();
}

#[test]
fn frames_that_an_interface_takes_and_does_not_send_are_counted_as_refused_and_not_as_sent() {
    let mut bench = Bench::new(GIGABIT, vec![]);
    bench.ports[1].refuse_above(1_000);
    for (i, bytes) in (0..).zip([1_000, 1_001, 1_400, 64]) {
        bench.arrive(tagged(10, bytes, i));
    }
    let sent = bench.run();
    assert_eq!(sent.iter().map(|f| number(f)).collect::<Vec<_>>(), [0, 3]);
    let counters = bench.engine.counters(Way::Forward);
    assert_eq!((counters.sent_frames, counters.sent_bytes), (2, 1_064));
    assert_eq!(bench.discarded(Discard::Refused), 2);
    bench.assert_conserved();
}

#[test]
fn frames_that_wait_while_the_mtu_shrinks_are_giants_when_they_should_leave() {
    let mut bench = Bench::new(10_000_000, vec![]);
    (0..4).for_each(|i| bench.arrive(tagged(10, 1_400, i)));
    bench.arrive(tagged(10, 500, 4));
    bench.poll();
    bench.ports[1].set_mtu(1_000);
    let sent = bench.run();
    assert_eq!(sent.iter().map(|f| number(f)).collect::<Vec<_>>(), [0, 4]);
    assert_eq!(bench.discarded(Discard::Giant), 3);
    bench.assert_conserved();
}
