//! Ports without a timer: what leaves them is what leaves ports with one, whatever happens to them meanwhile.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::{Change, ClassCounters, Pipeline};
use slicewise_model::{
    CoDelSpec, FlowQueueSpec, PolicyParams, PrioritySpec, QueueLimitSpec, QueueSpec, RateSpec,
    ShaperSpec,
};
use slicewise_sim::device::port::port;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::impairment::Impairments;
use slicewise_sim::link::{Handover, LinkParams};
use slicewise_sim::{FlowParams, Network, Node, Observer, PortId, Topology};
use slicewise_traffic::{
    ImpairmentParams, LossParams, Pace, Pattern, Poisson, Random, Sizes, Source,
};
use slicewise_units::{Accounting, BitRate, Duration, Instant};

/// A kind of class for each slice.
type Kinds = Vec<u8>;

/// One host sends through some devices in a row; each receiver is at one of them, at least one at the last.
#[derive(Debug, Clone)]
struct Described {
    host_rate: u64,
    /// Of the links behind devices.
    handover: Handover,
    propagation: Duration,
    loses: bool,
    /// Ports are added from the receivers on, so that of one nanosecond the last timer is the first.
    backwards: bool,
    /// The kinds of classes and the rate of the port between each two devices.
    between: Vec<(Kinds, u64)>,
    /// By receiver: the device, and its port.
    receivers: Vec<(usize, Kinds, u64)>,
    /// By slice: the receiver, Mbit/s, the size of frames.
    flows: Vec<(usize, u64, u32)>,
    /// How long after the one before, at which port, and what.
    steps: Vec<(u64, usize, Step)>,
}

#[derive(Debug, Clone)]
enum Step {
    Look,
    Change(Kinds),
    /// For so many ns.
    Pause(u64),
    EndPause,
}

fn policy_of(kinds: &[u8], rate: BitRate) -> PolicyParams {
    let classes = (0u16..).zip(kinds).map(|(slice, kind)| {
        let mut class = vlan_class(&slice.to_string(), 10 * (slice + 1));
        match kind {
            0 | 1 => {
                class.priority = Some(PrioritySpec {
                    level: kind + 1,
                    rate: None,
                    burst: None,
                    accounting: Accounting::L2,
                });
            }
            2 => class.minimum = Some(RateSpec::PercentMilli(8_000)),
            3 => class.shape = Some(ShaperSpec::from(RateSpec::PercentMilli(20_000))),
            4 => {
                class.queue = QueueSpec {
                    limit: class.queue.limit,
                    ..FlowQueueSpec {
                        codel: CoDelSpec {
                            target: Some(Duration::from_micros(200)),
                            interval: Some(Duration::from_micros(800)),
                            ..CoDelSpec::default()
                        },
                        ..FlowQueueSpec::default()
                    }
                    .into()
                };
            }
            _ => class.queue.limit = Some(QueueLimitSpec::Packets(5)),
        }
        class
    });
    policy(classes.collect()).resolve(rate).unwrap()
}

/// The network, and the ports of its devices with their rates.
fn built<O: Observer>(
    of: &Described,
    observer: O,
) -> (Network<Pipeline, O>, Vec<(PortId, BitRate)>) {
    let mut topology = Topology::default();
    let host = topology.endpoint(EndpointParams::default());
    let devices: Vec<Node> = (0..=of.between.len())
        .map(|_| device(&mut topology, Duration::ZERO))
        .collect();
    join(&mut topology, host, devices[0], ethernet(of.host_rate));
    let mut ports = Vec::new();
    let mut behind = |topology: &mut Topology<Pipeline>, from, to, kinds: &[u8], rate| {
        let link = LinkParams {
            handover: of.handover,
            propagation: of.propagation,
            ..ethernet(rate)
        };
        let rate = BitRate::new(rate);
        let forwarding = port(policy_of(kinds, rate), 1).unwrap();
        let port = join_egress(topology, from, forwarding, to, link);
        ports.push((port, rate));
        port
    };
    let pairs = || devices.windows(2).zip(&of.between);
    if !of.backwards {
        for (pair, (kinds, rate)) in pairs() {
            behind(&mut topology, pair[0], pair[1], kinds, *rate);
        }
    }
    let mut receivers = Vec::new();
    for (place, (at, kinds, rate)) in of.receivers.iter().enumerate() {
        let receiver = topology.endpoint(EndpointParams::default());
        let last = devices.len() - 1;
        let from = devices[if place == 0 { last } else { *at.min(&last) }];
        let port = behind(&mut topology, from, receiver, kinds, *rate);
        if of.loses {
            let params = ImpairmentParams {
                loss: Some(LossParams::independent(100_000)),
                ..ImpairmentParams::default()
            };
            let seeds = (0u64..).take(of.flows.len());
            topology.impair(port, Impairments::new(params, seeds, 1));
        }
        receivers.push(receiver);
    }
    if of.backwards {
        for (pair, (kinds, rate)) in pairs().rev() {
            behind(&mut topology, pair[0], pair[1], kinds, *rate);
        }
    }
    let flows = (0u16..)
        .zip(&of.flows)
        .map(|(slice, (receiver, mbit, size))| {
            let pace = Pace::new(*size, BitRate::new(mbit * 1_000_000)).unwrap();
            let source = Source::new(
                Pattern::Poisson(Poisson::new(pace.interval_ns())),
                Sizes::Equal(*size),
                Instant::ZERO,
                Duration::ZERO,
                Instant::from_nanos(5_000_000),
                Random::stream(7, slice.into()),
            );
            flow(slice, [host, receivers[receiver % receivers.len()]], source)
        });
    let flows: Vec<FlowParams> = flows.collect();
    (topology.build(flows, observer).unwrap(), ports)
}

/// What is seen of all ports after each step and at the end; what was sent when and what became of it.
fn play<O: Observer>(of: &Described, observer: O) -> (Vec<Vec<ClassCounters>>, Instant, O) {
    let (mut network, ports) = built(of, observer);
    let (mut now, mut seen) = (Instant::ZERO, Vec::new());
    let look = |network: &Network<Pipeline, O>| {
        let pipelines = ports
            .iter()
            .filter_map(|(port, _)| network.forwarding(*port));
        pipelines.flat_map(Pipeline::counters).cloned().collect()
    };
    for (gap, port, step) in &of.steps {
        now += Duration::from_nanos(*gap);
        network.run_until(now);
        let (port, rate) = ports[port % ports.len()];
        match step {
            Step::Look => {}
            Step::Change(kinds) => {
                let change = Change::Policy(policy_of(kinds, rate));
                let changed = network.change(port, now, |it| it.apply(change, now));
                drop(changed.unwrap().unwrap());
            }
            Step::Pause(ns) => network.pause(port, now + Duration::from_nanos(*ns), now),
            Step::EndPause => network.pause(port, Instant::ZERO, now),
        }
        seen.push(look(&network));
    }
    let outcome = network.run_until(Instant::MAX);
    assert_eq!(outcome.in_flight, 0);
    seen.push(look(&network));
    (seen, outcome.ended_at, network.into_parts().0)
}

fn kinds() -> impl Strategy<Value = Kinds> {
    prop::collection::vec(0..6u8, 0..6)
}

fn rate() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![
        100_000_000,
        300_000_000,
        1_000_000_000,
        900_000_000_000,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Look),
        kinds().prop_map(Step::Change),
        (0..1_000_000u64).prop_map(Step::Pause),
        Just(Step::EndPause),
    ]
}

prop_compose! {
    fn described()(
        host_rate in rate(),
        handover in prop::sample::select(vec![Handover::LastBit, Handover::FirstBit]),
        propagation in prop::sample::select(vec![0, 777]),
        loses in any::<bool>(),
        backwards in any::<bool>(),
        between in prop::collection::vec((kinds(), rate()), 0..3),
        receivers in prop::collection::vec((0..3usize, kinds(), rate()), 1..4),
        flows in prop::collection::vec(
            (0..3usize, 5..200u64, prop::sample::select(vec![64, 500, FRAME_BYTES])),
            1..6,
        ),
        steps in prop::collection::vec((0..1_000_000u64, 0..5usize, step()), 0..12),
    ) -> Described {
        let propagation = Duration::from_nanos(propagation);
        Described { host_rate, handover, propagation, loses, backwards, between, receivers, flows, steps }
    }
}

/// A queue for each flow drops the oldest frame when another comes that it has no room for.
#[test]
fn a_frame_that_is_dropped_for_another_is_lost_when_that_comes() {
    let mut topology = Topology::default();
    let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let node = device(&mut topology, Duration::ZERO);
    join(&mut topology, sender, node, ethernet(100_000_000));
    let mut class = vlan_class("slow", 10);
    class.queue = QueueSpec {
        limit: class.queue.limit,
        ..FlowQueueSpec::default().into()
    };
    class.queue.limit = Some(QueueLimitSpec::Packets(5));
    class.shape = Some(ShaperSpec::from(RateSpec::PercentMilli(1_000)));
    let rate = BitRate::new(10_000_000);
    let forwarding = port(policy(vec![class]).resolve(rate).unwrap(), 1).unwrap();
    let port = join_egress(&mut topology, node, forwarding, sink, ethernet(10_000_000));
    let until = Duration::from_millis(20);
    let flows = vec![cbr(0, [sender, sink], 10_000_000, Duration::ZERO, until)];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    network.run_until(Instant::ZERO.saturating_add(until));
    let counters = network.forwarding(port).unwrap().counters();
    let dropped: u64 = counters.map(ClassCounters::dropped_total).sum();
    let (recorder, _) = network.into_parts();
    assert!(dropped > 3);
    assert_eq!(recorder.lost() as u64, dropped);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Where packets are recorded in order of time, every port has a timer.
    #[test]
    fn a_port_without_a_timer_is_at_any_time_what_one_with_a_timer_is(of in described()) {
        let (expected, ended_at, recorder) = play(&of, Recorder::default());
        let (seen, ended_without, unordered) = play(&of, Unordered::default());
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(ended_without, ended_at);
        prop_assert_eq!(sorted(unordered.0), sorted(recorder));
    }
}

/// The frame that the first device hands on reaches the second when that may send, too.
#[test]
fn a_frame_that_arrives_when_it_is_sent_is_no_earlier_where_its_port_would_need_no_timer() {
    let rate = 100_000_000;
    let of = Described {
        host_rate: 1_000_000_000,
        handover: Handover::FirstBit,
        propagation: Duration::ZERO,
        loses: false,
        backwards: true,
        between: vec![(vec![0, 2], rate)],
        receivers: vec![(0, vec![3], rate)],
        flows: vec![(0, 38, FRAME_BYTES), (0, 53, 64)],
        steps: Vec::new(),
    };
    let (.., recorder) = play(&of, Recorder::default());
    let (.., unordered) = play(&of, Unordered::default());
    assert_eq!(sorted(unordered.0), sorted(recorder));
}
