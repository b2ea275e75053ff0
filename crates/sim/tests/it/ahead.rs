//! Adapters that send ahead: what becomes of packets is what it would be if they left one by one.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::Pipeline;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::impairment::Impairments;
use slicewise_sim::link::LinkParams;
use slicewise_sim::packet::Packet;
use slicewise_sim::{FlowId, FlowParams, Network, Observer, Outcome, Topology};
use slicewise_traffic::{
    ImpairmentParams, LossParams, Pace, Pattern, Poisson, Random, Sizes, Source,
};
use slicewise_units::{BitRate, Duration, Instant};

/// A recorder that does not need packets of several flows in order.
#[derive(Debug, Default)]
struct Unordered(Recorder);

impl Observer for Unordered {
    const ORDERED: bool = false;

    fn on_sent(&mut self, flow: &FlowId, packet: &Packet) {
        self.0.on_sent(flow, packet);
    }

    fn on_received(&mut self, flow: &FlowId, packet: &Packet, at: Instant) {
        self.0.on_received(flow, packet, at);
    }

    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, now: Instant) {
        self.0.on_lost(flow, packet, now);
    }
}

const _: () = {
    assert!(<(Recorder, Unordered)>::ORDERED && <(Unordered, Recorder)>::ORDERED);
    assert!(!<(Unordered, Unordered)>::ORDERED);
};

/// By host, Mbit/s of its Poisson sources.
type Rates = Vec<Vec<u64>>;

/// Hosts that send over links of 1 Gbit/s, the first of which loses `lost_ppm` of its frames, to a device, whose port has
/// 500 Mbit/s and a short queue.
fn built<O: Observer>(
    rates: &Rates,
    lost_ppm: u32,
    ring_frames: Option<u32>,
    observer: O,
) -> Network<Pipeline, O> {
    let mut topology = Topology::default();
    let sink = topology.endpoint(EndpointParams::default());
    let device = device(&mut topology, Duration::from_micros(3));
    let port_rate = BitRate::new(500_000_000);
    let mut flows: Vec<FlowParams> = Vec::new();
    let mut links = Vec::new();
    for sources in rates {
        let host = topology.endpoint(EndpointParams {
            transmit_ring_frames: ring_frames,
            ..EndpointParams::default()
        });
        let link = LinkParams {
            propagation: Duration::from_nanos(777),
            ..ethernet(1_000_000_000)
        };
        links.push(join(&mut topology, host, device, link));
        for mbit in sources {
            let slice = u16::try_from(flows.len()).unwrap();
            let pace = Pace::new(FRAME_BYTES, BitRate::new(mbit * 1_000_000)).unwrap();
            let source = Source::new(
                Pattern::Poisson(Poisson::new(pace.interval_ns())),
                Sizes::Equal(FRAME_BYTES - 200 * (u32::from(slice) % 3)),
                Instant::ZERO,
                Duration::ZERO,
                Instant::from_nanos(8_000_000),
                Random::stream(7, slice.into()),
            );
            flows.push(flow(slice, [host, sink], source));
        }
    }
    if lost_ppm > 0 {
        let params = ImpairmentParams {
            loss: Some(LossParams::independent(lost_ppm)),
            ..ImpairmentParams::default()
        };
        let seeds = (0u64..).take(flows.len());
        topology.impair(links[0], Impairments::new(params, seeds, 0));
    }
    let mut class = vlan_class("first", 10);
    class.queue_limit = Some(slicewise_model::QueueLimitSpec::Packets(20));
    let policy = policy(vec![class]).resolve(port_rate).unwrap();
    let forwarding = slicewise_sim::device::port::port(policy, 1).unwrap();
    join_egress(
        &mut topology,
        device,
        forwarding,
        sink,
        ethernet(500_000_000),
    );
    topology.build(flows, observer).unwrap()
}

fn sorted(mut recorder: Recorder) -> Recorder {
    recorder.sent.sort_unstable();
    recorder
        .fates
        .sort_unstable_by_key(|(slice, number, _)| (*slice, *number));
    recorder
}

#[test]
fn a_source_alone_on_a_link_between_hosts_sends_all_its_packets() {
    let mut topology = Topology::<Pipeline>::default();
    let [host, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    join(&mut topology, host, sink, ethernet(1_000_000_000));
    let until = Duration::from_millis(1);
    let flows = vec![cbr(0, [host, sink], 2_000_000_000, Duration::ZERO, until)];
    let mut network = topology.build(flows, Unordered::default()).unwrap();
    network.run_until(Instant::MAX);
    let recorder = network.into_parts().0.0;
    assert_eq!(
        (recorder.sent.len(), recorder.arrivals(0).len()),
        (168, 168)
    );
}

#[test]
fn a_source_with_a_limit_waits_without_flow_control_too() {
    let mut topology = Topology::default();
    let sink = topology.endpoint(EndpointParams::default());
    let host = topology.endpoint(EndpointParams {
        source_limit_frames: Some(1),
        ..EndpointParams::default()
    });
    let device = device(&mut topology, Duration::ZERO);
    join(&mut topology, host, device, ethernet(100_000_000));
    join_egress(
        &mut topology,
        device,
        plain_port(GIGABIT),
        sink,
        ethernet(1_000_000_000),
    );
    let until = Duration::from_millis(10);
    let flows = vec![cbr(0, [host, sink], 200_000_000, Duration::ZERO, until)];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    network.run_until(Instant::MAX);
    // Of 168 packets, as many as the link sends meanwhile, and one that waits.
    let sent = network.into_parts().0.sent.len();
    assert!((84..=86).contains(&sent), "{sent}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_sent_ahead_meet_the_fate_they_meet_one_by_one(
        rates in prop::collection::vec(prop::collection::vec(100u64..900, 1..4), 1..4),
        lost_ppm in prop_oneof![Just(0), Just(200_000)],
        stop_ns in 0u64..4_000_000,
    ) {
        let end = |outcome: Outcome| (outcome.ended_at, outcome.in_flight);
        let mut one_by_one = built(&rates, lost_ppm, Some(u32::MAX), Recorder::default());
        let mut ahead = built(&rates, lost_ppm, None, Recorder::default());
        let mut chained = built(&rates, lost_ppm, None, Unordered::default());
        chained.run_until(Instant::from_nanos(stop_ns));
        let outcomes = [
            one_by_one.run_until(Instant::MAX),
            ahead.run_until(Instant::MAX),
            chained.run_until(Instant::MAX),
        ];
        prop_assert_eq!(outcomes.map(end), [end(outcomes[0]); 3]);
        prop_assert!(outcomes[0].events >= outcomes[1].events);
        let unimpaired = &rates[usize::from(lost_ppm > 0)..];
        let alone = unimpaired.iter().any(|sources| sources.len() == 1);
        prop_assert_eq!(outcomes[1].events > outcomes[2].events, alone);
        let expected = one_by_one.into_parts().0;
        let ahead = ahead.into_parts().0;
        prop_assert_eq!(&expected.sent, &ahead.sent, "in order of time");
        let expected = sorted(expected);
        prop_assert_eq!(&expected, &sorted(ahead));
        prop_assert_eq!(&expected, &sorted(chained.into_parts().0.0));
    }
}
