//! Networks of hosts, links and devices, checked against what can be worked out by hand.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::Pipeline;
use slicewise_model::{PrioritySpec, QueueLimitSpec, Rate, RateSpec};
use slicewise_sim::device::isr4221::{LicenceParams, isr4221};
use slicewise_sim::device::port::port;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::{FlowParams, Node, Outcome, Topology};
use slicewise_traffic::{
    Iperf3, Iperf3Params, OnOff, Pace, Pattern, Poisson, Random, Sizes, Source,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, Instant};

const END: Instant = Instant::from_nanos(60_000_000_000);
/// 1494 B of frame and 24 B of FCS, preamble and gap at 1 Gbit/s.
const GIGABIT_FRAME_NS: u64 = (1494 + 24) * 8;

type Described = Topology<Pipeline>;

fn run(topology: Described, flows: Vec<FlowParams>) -> (Recorder, Outcome) {
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    let outcome = network.run_until(END);
    (network.into_parts().0, outcome)
}

fn licence(credit: u64, priority_borrows: bool) -> LicenceParams {
    LicenceParams {
        rate: Rate {
            rate: BitRate::new(35_000_000),
            accounting: Accounting::L3,
        },
        credit: ByteCount::new(credit),
        priority_borrows,
    }
}

/// host → 1 Gbit/s → ISR 4221 → 1 Gbit/s → host.
fn router(receiver: EndpointParams) -> (Described, [Node; 2]) {
    let mut topology = Topology::default();
    let sender = topology.endpoint(EndpointParams::default());
    let sink = topology.endpoint(receiver);
    let policy = policy(Vec::new()).resolve(GIGABIT).unwrap();
    let router = device(&mut topology, Duration::from_micros(41));
    let forwarding = isr4221(policy, &licence(4_375_000, true), 1).unwrap();
    let link = ethernet(1_000_000_000);
    join(&mut topology, sender, router, link);
    join_egress(&mut topology, router, forwarding, sink, link);
    (topology, [sender, sink])
}

#[test]
fn a_lone_packet_takes_two_serializations_and_the_processing_time() {
    let (topology, ends) = router(EndpointParams::default());
    let second = Duration::from_secs(1);
    let flows = vec![cbr(0, ends, 1_000_000, Duration::from_micros(3), second)];
    let (recorder, outcome) = run(topology, flows);
    assert_eq!(recorder.delays(0).len(), 84);
    assert!(
        recorder
            .delays(0)
            .iter()
            .all(|delay| *delay == 2 * GIGABIT_FRAME_NS + 41_000)
    );
    assert_eq!((outcome.in_flight, recorder.lost()), (0, 0));
}

#[test]
fn propagation_adds_to_the_delay() {
    let mut topology = Topology::default();
    let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let device = device(&mut topology, Duration::from_micros(7));
    let mut long = ethernet(1_000_000_000);
    long.propagation = Duration::from_millis(5);
    join(&mut topology, sender, device, long);
    let link = ethernet(1_000_000_000);
    join_egress(&mut topology, device, plain_port(GIGABIT), sink, link);
    let second = Duration::from_secs(1);
    // At 100 Mbit/s some forty packets are on the link at any time.
    let (recorder, _) = run(
        topology,
        vec![cbr(0, [sender, sink], 100_000_000, Duration::ZERO, second)],
    );
    let expected = 2 * GIGABIT_FRAME_NS + 5_000_000 + 7_000;
    assert_eq!(recorder.delays(0).len(), 8_367);
    assert!(recorder.delays(0).iter().all(|delay| *delay == expected));
}

/// host → ISR (1 Gbit/s) → port (100 Mbit/s) → host, and a second host at the second device.
fn two_hops() -> (Described, [[Node; 2]; 2]) {
    let mut topology = Topology::default();
    let [sender, other, sink] = [(); 3].map(|()| topology.endpoint(EndpointParams::default()));
    let policy = policy(Vec::new()).resolve(GIGABIT).unwrap();
    let first = device(&mut topology, Duration::from_micros(41));
    let second = device(&mut topology, Duration::from_micros(10));
    let forwarding = isr4221(policy, &licence(4_375_000, true), 1).unwrap();
    let (fast, slow) = (ethernet(1_000_000_000), ethernet(100_000_000));
    join(&mut topology, sender, first, fast);
    join_egress(&mut topology, first, forwarding, second, fast);
    join(&mut topology, other, second, fast);
    let forwarding = plain_port(BitRate::new(100_000_000));
    join_egress(&mut topology, second, forwarding, sink, slow);
    (topology, [[sender, sink], [other, sink]])
}

#[test]
fn delays_of_two_hops_add_up() {
    let (topology, [ends, _]) = two_hops();
    let second = Duration::from_secs(1);
    let (recorder, _) = run(
        topology,
        vec![cbr(0, ends, 1_000_000, Duration::ZERO, second)],
    );
    let expected = 2 * GIGABIT_FRAME_NS + 41_000 + 10_000 + 10 * GIGABIT_FRAME_NS;
    assert!(recorder.delays(0).iter().all(|delay| *delay == expected));
    assert_eq!(recorder.delays(0).len(), 84);
}

#[test]
fn traffic_that_joins_at_the_second_hop_delays_by_its_own_serialization() {
    let (topology, [first, other]) = two_hops();
    let until = Duration::from_micros(100);
    // The other frame reaches the second device 1 us before the first sender's, and is served
    // first: 121,440 ns at 100 Mbit/s, of which 1 us is over.
    let ahead = GIGABIT_FRAME_NS + 41_000 - 1_000;
    let flows = vec![
        cbr(0, first, 1_000_000, Duration::ZERO, until),
        cbr(1, other, 1_000_000, Duration::from_nanos(ahead), until),
    ];
    let (recorder, _) = run(topology, flows);
    let alone = 2 * GIGABIT_FRAME_NS + 41_000 + 10_000 + 10 * GIGABIT_FRAME_NS;
    assert_eq!(recorder.delays(0), [alone + 10 * GIGABIT_FRAME_NS - 1_000]);
    assert_eq!(
        recorder.delays(1),
        [GIGABIT_FRAME_NS + 10_000 + 10 * GIGABIT_FRAME_NS]
    );
}

#[test]
fn interrupt_moderation_stamps_packets_when_the_interrupt_fires() {
    let moderated = EndpointParams {
        interrupt_interval: Duration::from_micros(125),
        ..EndpointParams::default()
    };
    let frames = |receiver| {
        let (topology, ends) = router(receiver);
        // One frame every 18 us for 1 ms: 1494 B at 664 Mbit/s.
        let until = Duration::from_millis(1);
        run(
            topology,
            vec![cbr(0, ends, 664_000_000, Duration::ZERO, until)],
        )
        .0
    };
    let plain = frames(EndpointParams::default());
    let stamped = frames(moderated);
    let first = 2 * GIGABIT_FRAME_NS + 41_000;
    for (at, stamp) in plain.arrivals(0).into_iter().zip(stamped.arrivals(0)) {
        // The first interrupt comes at once, the others a whole number of intervals later.
        assert_eq!(stamp, first + (at - first).next_multiple_of(125_000));
    }
    assert_eq!(stamped.arrivals(0).len(), 56);
}

#[test]
fn an_overloaded_port_sends_without_a_gap() {
    let mut topology = Topology::default();
    let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let device = device(&mut topology, Duration::ZERO);
    let forwarding = plain_port(BitRate::new(35_000_000));
    join(&mut topology, sender, device, ethernet(1_000_000_000));
    let slow = ethernet(35_000_000);
    join_egress(&mut topology, device, forwarding, sink, slow);
    let second = Duration::from_secs(1);
    let flows = vec![cbr(0, [sender, sink], 50_000_000, Duration::ZERO, second)];
    let (recorder, outcome) = run(topology, flows);
    let arrivals = recorder.arrivals(0);
    // The n-th frame is out after exactly n serializations, rounded up to a nanosecond.
    for (n, at) in (1u64..).zip(&arrivals) {
        assert_eq!(
            at - GIGABIT_FRAME_NS,
            (n * 1518 * 8_000_000_000).div_ceil(35_000_000)
        );
    }
    assert_eq!(outcome.in_flight, 0);
    assert_eq!(recorder.sent.len(), arrivals.len() + recorder.lost());
    assert!(recorder.lost() > 1_000);
}

#[test]
fn a_limited_transmit_queue_loses_what_the_adapter_cannot_take() {
    let mut topology = Topology::default();
    let limited = EndpointParams {
        transmit_ring_frames: Some(10),
        ..EndpointParams::default()
    };
    let sender = topology.endpoint(limited);
    let sink = topology.endpoint(EndpointParams::default());
    let device = device(&mut topology, Duration::ZERO);
    join(&mut topology, sender, device, ethernet(10_000_000));
    let link = ethernet(1_000_000_000);
    join_egress(&mut topology, device, plain_port(GIGABIT), sink, link);
    let second = Duration::from_secs(1);
    let flows = vec![cbr(0, [sender, sink], 20_000_000, Duration::ZERO, second)];
    let (recorder, _) = run(topology, flows);
    assert_eq!(
        recorder.sent.len(),
        recorder.delays(0).len() + recorder.lost()
    );
    assert!(recorder.lost() > 800);
    let longest = recorder.delays(0).into_iter().max().unwrap();
    assert!(
        longest <= 10 * 100 * GIGABIT_FRAME_NS + GIGABIT_FRAME_NS,
        "{longest}"
    );
}

#[test]
fn an_adapter_may_send_several_frames_in_one_nanosecond() {
    let mut topology = Topology::default();
    let limited = EndpointParams {
        transmit_ring_frames: Some(100),
        ..EndpointParams::default()
    };
    let sender = topology.endpoint(limited);
    let sink = topology.endpoint(EndpointParams::default());
    let device = device(&mut topology, Duration::ZERO);
    // A frame lasts 0.3 ns.
    join(&mut topology, sender, device, ethernet(40_000_000_000_000));
    let link = ethernet(1_000_000_000);
    join_egress(&mut topology, device, plain_port(GIGABIT), sink, link);
    let until = Duration::from_millis(10);
    let flows = (0..8).map(|slice| cbr(slice, [sender, sink], 20_000_000, Duration::ZERO, until));
    let (recorder, outcome) = run(topology, flows.collect());
    assert_eq!((outcome.in_flight, recorder.lost()), (0, 0));
    assert!(recorder.sent.len() > 8 * 10);
}

#[test]
fn the_licence_delays_others_but_not_priority() {
    let second = Duration::from_secs(1);
    let delays = |borrows| {
        let mut topology = Topology::default();
        let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
        let mut critical = vlan_class("critical", 10);
        critical.priority = Some(PrioritySpec {
            level: 1,
            rate: Some(RateSpec::Absolute(BitRate::new(17_500_000))),
            burst: None,
            accounting: Accounting::L2,
        });
        let policy = policy(vec![critical]).resolve(GIGABIT).unwrap();
        // No credit to speak of: the licence limits from the start.
        let forwarding = isr4221(policy, &licence(1_500, borrows), 1).unwrap();
        let device = device(&mut topology, Duration::from_micros(41));
        let link = ethernet(1_000_000_000);
        join(&mut topology, sender, device, link);
        join_egress(&mut topology, device, forwarding, sink, link);
        let flows = vec![
            cbr(0, [sender, sink], 16_000_000, Duration::ZERO, second),
            cbr(1, [sender, sink], 30_000_000, Duration::ZERO, second),
        ];
        let recorder = run(topology, flows).0;
        let longest = recorder.delays(0).into_iter().max().unwrap();
        let rest = recorder.arrivals(0).len() + recorder.arrivals(1).len();
        (longest, rest)
    };
    let (borrowing, received) = delays(true);
    // Another frame on either link may be ahead of it, never the licence.
    assert!(
        borrowing <= 2 * GIGABIT_FRAME_NS + 41_000 + 2 * GIGABIT_FRAME_NS,
        "{borrowing}"
    );
    let (waiting, received_waiting) = delays(false);
    // The rest of a frame's time at 35 Mbit/s of L3: 1476 × 8 / 35 = 337 us at most.
    assert!((300_000..337_372 + 90_000).contains(&waiting), "{waiting}");
    // Either way the licence lets the same through.
    assert!(
        received.abs_diff(received_waiting) <= 2,
        "{received} {received_waiting}"
    );
}

/// Two random flows through a port with short queues.
fn congested(
    seed: u64,
    rates: [u64; 2],
    queue_packets: u32,
    moderation_us: u64,
) -> (Recorder, Outcome) {
    let mut topology = Topology::default();
    let sender = topology.endpoint(EndpointParams::default());
    let sink = topology.endpoint(EndpointParams {
        interrupt_interval: Duration::from_micros(moderation_us),
        ..EndpointParams::default()
    });
    let mut class = vlan_class("first", 10);
    class.queue.limit = Some(QueueLimitSpec::Packets(queue_packets));
    let rate = BitRate::new(35_000_000);
    let policy = policy(vec![class]).resolve(rate).unwrap();
    let device = device(&mut topology, Duration::from_micros(41));
    let forwarding = port(policy, seed).unwrap();
    join(&mut topology, sender, device, ethernet(1_000_000_000));
    let slow = ethernet(35_000_000);
    join_egress(&mut topology, device, forwarding, sink, slow);
    let until = Instant::from_nanos(200_000_000);
    let spread = Duration::from_millis(1);
    let paces = rates.map(|rate| Pace::new(1448, BitRate::new(rate)).unwrap());
    let host = Iperf3Params {
        tick: Duration::from_millis(1),
        timer_slack: Duration::from_micros(50),
        send_cost: Duration::from_micros(15),
    };
    let ten = Duration::from_millis(10);
    let burst = OnOff::new(Pattern::Iperf3(Iperf3::new(paces[0], &host)), ten, ten).unwrap();
    let patterns = [
        Pattern::OnOff(Box::new(burst)),
        Pattern::Poisson(Poisson::new(paces[1].interval_ns())),
    ];
    let flows = (0u16..)
        .zip(patterns)
        .map(|(slice, pattern)| {
            let random = Random::stream(seed, u64::from(slice));
            flow(
                slice,
                [sender, sink],
                Source::new(
                    pattern,
                    Sizes::Equal(FRAME_BYTES),
                    Instant::ZERO,
                    spread,
                    until,
                    random,
                ),
            )
        })
        .collect();
    run(topology, flows)
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let first = congested(5, [40_000_000, 20_000_000], 20, 50);
    assert_eq!(first, congested(5, [40_000_000, 20_000_000], 20, 50));
    assert_ne!(first, congested(6, [40_000_000, 20_000_000], 20, 50));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every packet sent is received or lost, once; those of a flow arrive in order; none sooner
    /// than light and serialization allow.
    #[test]
    fn packets_are_conserved_and_keep_their_order(
        seed in any::<u64>(),
        rates in [100_000u64..80_000_000, 100_000u64..80_000_000],
        queue_packets in 1u32..100,
        moderation_us in 0u64..200,
    ) {
        let (recorder, outcome) = congested(seed, rates, queue_packets, moderation_us);
        prop_assert_eq!(outcome.in_flight, 0);
        let mut sent: Vec<(u16, u64)> = recorder.sent.iter().map(|s| (s.0, s.1)).collect();
        let mut ended: Vec<(u16, u64)> = recorder.fates.iter().map(|f| (f.0, f.1)).collect();
        sent.sort_unstable();
        ended.sort_unstable();
        prop_assert_eq!(sent, ended);
        for slice in 0..2 {
            let received: Vec<u64> = recorder
                .fates
                .iter()
                .filter(|f| f.0 == slice && matches!(f.2, Fate::Received { .. }))
                .map(|f| f.1)
                .collect();
            prop_assert!(received.is_sorted());
            let least = GIGABIT_FRAME_NS + 41_000 + 1518 * 8_000 / 35;
            prop_assert!(recorder.delays(slice).iter().all(|delay| *delay >= least));
        }
    }
}
