//! Topologies: which are refused, which way flows take, and what a pause does.
use crate::support::{GIGABIT, Recorder, cbr, device, ethernet, join, join_egress, plain_port};
use slicewise_dataplane::Pipeline;
use slicewise_sim::device::DeviceParams;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::{FlowParams, Node, Outcome, PortId, Topology, TopologyError};
use slicewise_study::FlowControlParams;
use slicewise_units::{BitRate, ByteCount, Duration, Instant};

const FRAME_NS: u64 = 1_518 * 8;
const SECOND: Duration = Duration::from_secs(1);

type Described = Topology<Pipeline>;

fn endpoints<const N: usize>(topology: &mut Described) -> [Node; N] {
    [(); N].map(|()| topology.endpoint(EndpointParams::default()))
}

fn refusal(topology: Described, flows: Vec<FlowParams>) -> TopologyError {
    let built = topology.build(flows, Recorder::default());
    built.map(|_| ()).unwrap_err()
}

fn run(topology: Described, flows: Vec<FlowParams>) -> (Recorder, Outcome) {
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    let outcome = network.run_until(Instant::MAX);
    (network.into_parts().0, outcome)
}

/// endpoint – device – endpoint, all of 1 Gbit/s; the ports of the sender and of the device.
fn line() -> (Described, [Node; 2], [PortId; 2]) {
    let mut topology = Topology::default();
    let [sender, sink] = endpoints(&mut topology);
    let middle = device(&mut topology, Duration::ZERO);
    let link = ethernet(1_000_000_000);
    let first = join(&mut topology, sender, middle, link);
    let second = join_egress(&mut topology, middle, plain_port(GIGABIT), sink, link);
    (topology, [sender, sink], [first, second])
}

#[test]
fn a_device_that_cannot_forward_is_refused() {
    let mut topology = Described::default();
    let end = device(&mut topology, Duration::ZERO);
    assert_eq!(refusal(topology, Vec::new()), TopologyError::NoWay(end));
    let mut topology = Described::default();
    let [sender] = endpoints(&mut topology);
    let end = device(&mut topology, Duration::ZERO);
    join(&mut topology, sender, end, ethernet(1));
    assert_eq!(refusal(topology, Vec::new()), TopologyError::NoWay(end));
}

#[test]
fn links_that_form_a_loop_are_refused() {
    let mut topology = Described::default();
    let lone = device(&mut topology, Duration::ZERO);
    join(&mut topology, lone, lone, ethernet(1));
    assert_eq!(refusal(topology, Vec::new()), TopologyError::Loop(lone));

    let mut topology = Described::default();
    let ring = [(); 3].map(|()| device(&mut topology, Duration::ZERO));
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        join(&mut topology, ring[from], ring[to], ethernet(1));
    }
    assert!(matches!(
        refusal(topology, Vec::new()),
        TopologyError::Loop(_)
    ));

    let (mut topology, [sender, sink], _) = line();
    join(&mut topology, sender, sink, ethernet(1));
    assert!(matches!(
        refusal(topology, Vec::new()),
        TopologyError::Loop(_)
    ));
}

#[test]
fn a_port_without_a_link_with_two_links_or_that_does_not_exist_is_refused() {
    let (mut topology, [_, sink], _) = line();
    let port = topology.port(sink);
    let dangling = TopologyError::Dangling { port, node: sink };
    assert_eq!(refusal(topology, Vec::new()), dangling);

    let (mut topology, _, [first, second]) = line();
    topology.link(first, second, ethernet(1));
    let two_links = TopologyError::TwoLinks(first);
    assert_eq!(refusal(topology, Vec::new()), two_links);

    let (mut topology, ..) = line();
    topology.link(port, port, ethernet(1));
    let no_port = TopologyError::NoSuchPort(port);
    assert_eq!(refusal(topology, Vec::new()), no_port);
}

#[test]
fn a_link_without_a_rate_and_nodes_that_do_not_exist_are_refused() {
    let mut topology = Described::default();
    let [one, other] = endpoints(&mut topology);
    let port = join(&mut topology, one, other, ethernet(0));
    assert_eq!(refusal(topology, Vec::new()), TopologyError::RateZero(port));

    for nowhere in [Node::Endpoint(9), Node::Device(0), Node::Device(9)] {
        let (topology, [sender, _], _) = line();
        let flow = cbr(0, [sender, nowhere], 1, Duration::ZERO, SECOND);
        let nobody = TopologyError::NoSuchNode(nowhere);
        assert_eq!(refusal(topology, vec![flow]), nobody);
    }
    let (mut topology, [sender, _], _) = line();
    join(&mut topology, Node::Device(9), sender, ethernet(1));
    let nobody = TopologyError::NoSuchNode(Node::Device(9));
    assert_eq!(refusal(topology, Vec::new()), nobody);
}

#[test]
fn a_flow_without_a_path_or_whose_path_needs_a_policy_is_refused() {
    let flow = |ends| vec![cbr(0, ends, 1, Duration::ZERO, SECOND)];
    let (mut topology, [from, _], _) = line();
    let [to] = endpoints(&mut topology);
    let no_path = TopologyError::NoPath { from, to };
    assert_eq!(refusal(topology, flow([from, to])), no_path);

    let (topology, [from, _], _) = line();
    let no_path = TopologyError::NoPath { from, to: from };
    assert_eq!(refusal(topology, flow([from, from])), no_path);

    // Through two devices by ports without a policy, of which one has flow control: it counts what waits at its own ports, and
    // may pause the other.
    for controlled in 0..2 {
        let mut topology = Described::default();
        let [from, to] = endpoints(&mut topology);
        let devices = [0, 1].map(|number| {
            let flow_control = (number == controlled).then_some(FlowControlParams {
                per_priority: false,
                buffer: ByteCount::new(100_000),
                high: ByteCount::new(40_000),
                low: ByteCount::new(20_000),
                host_queue: 10,
            });
            topology.device(DeviceParams {
                processing: Duration::ZERO,
                flow_control,
            })
        });
        join(&mut topology, from, devices[0], ethernet(1));
        join(&mut topology, devices[0], devices[1], ethernet(1));
        join(&mut topology, devices[1], to, ethernet(1));
        let refused = refusal(topology, flow([from, to]));
        let first = devices[0];
        let last = devices[controlled];
        assert!(
            matches!(refused, TopologyError::NoPolicy { node, .. } if node == first || node == last),
            "{refused}"
        );
    }
}

/// Two endpoints at each side of two devices: 0 and 1 – a – b – 2 and 3, every port of a device with a
/// policy.
fn dumbbell() -> (Described, [Node; 4]) {
    let mut topology = Topology::default();
    let ends: [Node; 4] = endpoints(&mut topology);
    let [a, b] = [(); 2].map(|()| device(&mut topology, Duration::ZERO));
    let link = ethernet(1_000_000_000);
    for (at, end) in [(a, 0), (a, 1), (b, 2), (b, 3)] {
        join_egress(&mut topology, at, plain_port(GIGABIT), ends[end], link);
    }
    let (forward, backward) = (
        topology.egress(a, plain_port(GIGABIT)),
        topology.egress(b, plain_port(GIGABIT)),
    );
    topology.link(forward, backward, link);
    (topology, ends)
}

#[test]
fn frames_take_the_way_to_their_destination_in_both_directions() {
    let (topology, ends) = dumbbell();
    let flow = |slice: u16, from: usize, to: usize| {
        let start = Duration::from_millis(slice.into());
        cbr(slice, [ends[from], ends[to]], 1_000_000, start, SECOND)
    };
    let hops = |recorder: &Recorder, slice| {
        let delay = recorder.delays(slice)[0];
        assert_eq!(delay % FRAME_NS, 0);
        delay / FRAME_NS
    };
    let flows = vec![flow(0, 0, 2), flow(1, 3, 1), flow(2, 0, 1), flow(3, 2, 3)];
    let (recorder, outcome) = run(topology, flows);
    // Across three links, or two where both endpoints are at the same device.
    assert_eq!(
        [0, 1, 2, 3].map(|slice| hops(&recorder, slice)),
        [3, 3, 2, 2]
    );
    assert_eq!((outcome.in_flight, recorder.lost()), (0, 0));
}

#[test]
fn the_directions_of_a_link_do_not_delay_each_other() {
    let (topology, ends) = dumbbell();
    // Both directions at nine tenths of the link between the devices.
    let forward = cbr(0, [ends[0], ends[2]], 900_000_000, Duration::ZERO, SECOND);
    let backward = cbr(1, [ends[3], ends[1]], 900_000_000, Duration::ZERO, SECOND);
    let (recorder, _) = run(topology, vec![forward, backward]);
    for slice in [0, 1] {
        assert!(recorder.delays(slice).len() > 70_000);
        assert!(
            recorder
                .delays(slice)
                .iter()
                .all(|delay| *delay == 3 * FRAME_NS)
        );
    }
}

#[test]
fn a_paused_adapter_keeps_its_frames_and_sends_them_once_the_pause_ends() {
    let (mut topology, ends, _) = line();
    let limited = EndpointParams {
        transmit_ring_frames: Some(4),
        ..EndpointParams::default()
    };
    let sender = topology.endpoint(limited);
    let port = join(
        &mut topology,
        sender,
        Node::Device(0),
        ethernet(1_000_000_000),
    );
    // A frame every 119.52 us from zero on.
    let until = Duration::from_millis(1);
    let flows = vec![cbr(
        0,
        [sender, ends[1]],
        100_000_000,
        Duration::ZERO,
        until,
    )];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    let at = |micros: u64| Instant::from_nanos(micros * 1_000);
    // Begun already: the frame of time zero is completed.
    network.run_until(at(1));
    network.pause(port, at(630), at(1));
    network.run_until(Instant::MAX);
    let recorder = network.into_parts().0;
    let arrivals = recorder.arrivals(0);
    assert_eq!(arrivals[0], 2 * FRAME_NS);
    // Of the five frames of the pause, the ring had room for four.
    assert_eq!(recorder.lost(), 1);
    let resumed: Vec<u64> = (1..=4).map(|n| 630_000 + (n + 1) * FRAME_NS).collect();
    assert_eq!(arrivals[1..5], resumed);
    assert_eq!(recorder.sent.len(), arrivals.len() + 1);
}

#[test]
fn a_paused_port_of_a_device_lets_its_policy_decide_when_the_pause_ends_early() {
    let mut topology = Topology::default();
    let [sender, sink] = endpoints(&mut topology);
    let middle = device(&mut topology, Duration::ZERO);
    join(&mut topology, sender, middle, ethernet(1_000_000_000));
    let rate = BitRate::new(100_000_000);
    let slow = ethernet(100_000_000);
    let port = join_egress(&mut topology, middle, plain_port(rate), sink, slow);
    let until = Duration::from_micros(200);
    let flows = vec![cbr(0, [sender, sink], 100_000_000, Duration::ZERO, until)];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    let at = |micros: u64| Instant::from_nanos(micros * 1_000);
    network.pause(port, at(10_000), at(0));
    network.run_until(at(500));
    network.pause(port, at(0), at(500));
    network.run_until(Instant::MAX);
    let arrivals = network.into_parts().0.arrivals(0);
    let first = 500_000 + 10 * FRAME_NS;
    assert_eq!(arrivals, [first, first + 10 * FRAME_NS]);
}
