//! Ports that send ahead: what becomes of packets is what it would be if they left one by one.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::Pipeline;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::impairment::Impairments;
use slicewise_sim::link::LinkParams;
use slicewise_sim::{FlowParams, Network, Observer, Simulator, Topology};
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter};
use slicewise_traffic::{
    DelayVariationParams, ImpairmentParams, LossParams, Pace, Pattern, Poisson, Random, Sizes,
    Source,
};
use slicewise_units::{BitRate, Duration, Instant};

const _: () = {
    assert!(<(Recorder, Unordered)>::ORDERED && <(Unordered, Recorder)>::ORDERED);
    assert!(!<(Unordered, Unordered)>::ORDERED);
};

/// By host, Mbit/s of its Poisson sources.
type Rates = Vec<Vec<u64>>;

/// Hosts that send over links of 1 Gbit/s, the first of which may lose frames and deliver them out of order, through three devices. The port of
/// the second has 500 Mbit/s and a short queue; those of the others have a policy that does nothing, or none; that of the last has
/// one if there are two hosts.
fn built<O: Observer>(
    rates: &Rates,
    lost_ppm: u32,
    one_by_one: bool,
    observer: O,
) -> Network<Pipeline, O> {
    let mut topology = Topology::default();
    let sink = topology.endpoint(EndpointParams::default());
    let [first, second, last] =
        [1, 3, 2].map(|us| device(&mut topology, Duration::from_micros(us)));
    let port_rate = BitRate::new(500_000_000);
    let mut flows: Vec<FlowParams> = Vec::new();
    let mut links = Vec::new();
    for sources in rates {
        let host = topology.endpoint(EndpointParams {
            transmit_ring_frames: one_by_one.then_some(u32::MAX),
            ..EndpointParams::default()
        });
        let link = LinkParams {
            propagation: Duration::from_nanos(777),
            ..ethernet(1_000_000_000)
        };
        links.push(join(&mut topology, host, first, link));
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
            delay_variation: Some(DelayVariationParams {
                reorder: true,
                ..Duration::from_micros(60).into()
            }),
            ..ImpairmentParams::default()
        };
        let seeds = (0u64..).take(flows.len());
        topology.impair(links[0], Impairments::new(params, seeds, 0));
    }
    let mut class = vlan_class("first", 10);
    class.queue.limit = Some(slicewise_model::QueueLimitSpec::Packets(20));
    let policy = policy(vec![class]).resolve(port_rate).unwrap();
    let forwarding = slicewise_sim::device::port::port(policy, 1).unwrap();
    join_egress(
        &mut topology,
        second,
        forwarding,
        last,
        ethernet(500_000_000),
    );
    for (from, to, rate) in [(first, second, 10_000_000_000), (last, sink, 1_000_000_000)] {
        if one_by_one || to == sink && rates.len() == 2 {
            let plain = plain_port(BitRate::new(rate));
            join_egress(&mut topology, from, plain, to, ethernet(rate));
        } else {
            join(&mut topology, from, to, ethernet(rate));
        }
    }
    topology.build(flows, observer).unwrap()
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

/// The last port has no timer, and the last that happens is what it sends.
#[test]
fn what_is_due_when_a_run_stops_has_left_and_nothing_else_has() {
    let network = || built(&vec![vec![800], vec![700]], 0, false, Unordered::default());
    let ended_at = network().run_until(Instant::MAX).ended_at;
    let in_flight = |until: u64| network().run_until(Instant::from_nanos(until)).in_flight;
    assert_eq!(
        [1, 0].map(|early| in_flight(ended_at.nanos() - early)),
        [1, 0]
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

/// Applications of several hosts beside datagrams, where queues and links lose packets.
const CONNECTIONS: &str = "\
name: connections
link: {rate: 100 Mbit/s, propagation: 20 us, impairments: {ingress: {loss: 0.1 %}}}
dut: {model: switch, port_rate: 50 Mbit/s}
hosts: {interrupt_moderation: 30 us}
slices:
  bulk: {match: {dscp: 0}, share: 30 %, headers: {}}
  web: {match: {dscp: ef}, share: 30 %, headers: {dscp: ef}}
sources:
  bulk: {slice: bulk, host: one, transport: {profile: PROFILE}, application: {kind: bulk, flows: 3}}
  flows: {slice: web, host: one, transport: {profile: PROFILE}, application: {kind: short_flows, response: 52 kB}}
  web: {slice: web, host: two, transport: {profile: PROFILE}, application: {kind: requests, rate: 400 /s, request: 40 kB, response: 20 kB, connections: 40}}
  other: {slice: bulk, host: two, pattern: poisson, payload: 1000 B, counts: L2, rate: 10 Mbit/s}
scenarios:
  all: {reference: true, sources: {}}
policies:
  queues:
    classes:
      - {name: web, slice: web, shape: 30 Mbit/s, queue_limit: 40 packets}
      - {name: bulk, slice: bulk, queue_limit: 60 packets}
repetitions: 3
duration: 2 s
";

/// Flow control that never pauses anybody lets every adapter send frames one by one, and the way back has a policy.
#[test]
fn connections_fare_the_same_whether_adapters_send_ahead_or_one_by_one() {
    let one = "dut: {model: switch, port_rate: 50 Mbit/s}";
    let two = "path: [one, two]
devices:
  one: {model: switch, port_rate: 80 Mbit/s}
  two: {model: switch, port_rate: 50 Mbit/s}";
    // Requests of many connections are lost on the way back.
    let narrow = "dut: {model: switch, port_rate: 300 Mbit/s}";
    for (profile, devices) in [
        ("linux", one),
        ("linux", two),
        ("linux-4.15", one),
        ("rfc", two),
        ("rfc", narrow),
    ] {
        let run = |flow_control: &str| -> Vec<RunRecord> {
            let text = CONNECTIONS.replace("PROFILE", profile);
            let with = devices.replace("switch", &format!("switch{flow_control}"));
            let rate = if devices == narrow {
                "20 Mbit/s"
            } else {
                "100 Mbit/s"
            };
            let link = format!("link: {{rate: {rate}");
            let study = changed(&text, &[(one, &with), ("link: {rate: 100 Mbit/s", &link)]);
            let runs = study.runs(&RunFilter::default()).unwrap();
            let records = runs.iter().map(|run| {
                let mut record = Simulator::default().run(&study, run).unwrap();
                record.key.inputs.clear();
                record
            });
            records.collect()
        };
        let ahead = run("");
        let one_by_one = run(
            ", flow_control: {buffer: 90 MB, high: 80 MB, low: 70 MB, host_queue: 1000000 packets}",
        );
        assert_eq!(ahead, one_by_one, "{profile}, {devices}");
        let resent = ahead[0].applications.iter();
        let resent = resent.map(|it| it.transport.retransmitted_segments);
        let loses = devices != narrow;
        let resent = resent.sum::<u64>();
        assert!(
            !loses || resent > 20,
            "{profile}, {devices}: {resent} were lost"
        );
    }
}

/// Only connections of the first port get through: each has another port.
#[test]
fn a_connection_that_is_opened_again_is_classified_again() {
    let study = changed(
        "\
name: reopened
link: {rate: 100 Mbit/s}
dut: {model: port}
slices:
  web: {match: {dscp: 0}, share: 30 %, headers: {source_port: 80, destination_port: 49152}}
sources:
  web: {slice: web, transport: {profile: linux}, application: {kind: short_flows, response: 10 kB}}
scenarios:
  all: {reference: true, sources: {}}
policies:
  first-port:
    classes:
      - {name: first, match: {destination_port: 49152}}
      - {name: class-default, police: {rate: 8 kbit/s, burst: 100 B, exceed: drop}}
repetitions: 1
duration: 2 s
",
        &[],
    );
    let runs = study.runs(&RunFilter::default()).unwrap();
    let record = Simulator::default().run(&study, &runs[0]).unwrap();
    let flows = record.applications[0].flows.as_ref().unwrap();
    assert_eq!(flows.completed, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_sent_ahead_meet_the_fate_they_meet_one_by_one(
        rates in prop::collection::vec(
            prop_oneof![
                9 => prop::collection::vec(100u64..900, 1..4),
                1 => prop::collection::vec(20u64..80, 15..19),
            ],
            1..4,
        ),
        lost_ppm in prop_oneof![Just(0), Just(200_000)],
        stop_ns in 0u64..4_000_000,
    ) {
        let mut one_by_one = built(&rates, lost_ppm, true, Recorder::default());
        let mut ahead = built(&rates, lost_ppm, false, Recorder::default());
        let mut chained = built(&rates, lost_ppm, false, Unordered::default());
        chained.run_until(Instant::from_nanos(stop_ns));
        let outcomes = [
            one_by_one.run_until(Instant::MAX),
            ahead.run_until(Instant::MAX),
            chained.run_until(Instant::MAX),
        ];
        prop_assert_eq!(outcomes.map(|outcome| outcome.in_flight), [0; 3]);
        prop_assert_eq!(outcomes[1].ended_at, outcomes[2].ended_at);
        prop_assert!(outcomes[0].events > outcomes[1].events);
        let unimpaired = &rates[usize::from(lost_ppm > 0)..];
        let are_chained = unimpaired.iter().any(|sources| sources.len() <= 16);
        prop_assert_eq!(outcomes[1].events > outcomes[2].events, are_chained);
        let expected = one_by_one.into_parts().0;
        let ahead = ahead.into_parts().0;
        prop_assert_eq!(&expected.sent, &ahead.sent, "in order of time");
        let expected = sorted(expected);
        prop_assert_eq!(&expected, &sorted(ahead));
        prop_assert_eq!(&expected, &sorted(chained.into_parts().0.0));
    }
}
