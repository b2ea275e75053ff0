//! Pause frames: what they keep, whom they hold up, and two ports that pause each other.

use crate::support::{
    Recorder, cbr, changed, ethernet, join, join_egress, plain_port, policy, vlan_class,
};
use proptest::prelude::*;
use slicewise_model::ClassSpec;
use slicewise_sim::device::DeviceParams;
use slicewise_sim::device::port::port;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::{Node, PortId, Simulator, Topology};
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, Outcome};
use slicewise_study::{Backend, FlowControlParams, RunFilter};
use slicewise_units::{BitRate, ByteCount, Duration, Instant};

/// A host whose bulk exceeds the rate of its queue, and whose calls have a queue of their own; beside it another host.
const STUDY: &str = "\
name: flow-control
link: {rate: 100 Mbit/s, propagation: 5 us}
dut: {model: switch, processing_delay: 3 us, flow_control: {buffer: 30 kB, high: 15 kB, low: 6 kB}}
slices:
  bulk: {match: {dscp: 0}, share: 20 %, headers: {}}
  call: {match: {dscp: ef}, share: 1 %, headers: {dscp: ef}}
  other: {match: {dscp: cs1}, share: 60 %, headers: {dscp: cs1}}
sources:
  bulk: {slice: bulk, host: one, pattern: cbr, payload: 1470 B, counts: L2, rate: 60 Mbit/s}
  call: {slice: call, host: one, pattern: cbr, payload: 160 B, counts: L2, rate: 0.5 Mbit/s}
  other: {slice: other, host: two, pattern: poisson, payload: 1000 B, counts: L2, rate: 20 Mbit/s}
scenarios:
  all: {reference: true, sources: {}}
policies:
  queues:
    classes:
      - {name: call, slice: call, priority: {level: 1}, queue_limit: 1000 packets}
      - {name: bulk, slice: bulk, shape: 10 Mbit/s, queue_limit: 1000 packets}
      - {name: other, slice: other, queue_limit: 1000 packets}
repetitions: 1
duration: 1 s
";
const FLOW_CONTROL: &str = ", flow_control: {buffer: 30 kB, high: 15 kB, low: 6 kB}";

fn run(changes: &[(&str, &str)]) -> RunRecord {
    let study = changed(STUDY, changes);
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

fn lost(record: &RunRecord) -> u64 {
    let slices = record.slices.iter();
    slices.map(|slice| slice.whole.lost_frames).sum()
}

/// A paused host sends less because it gets less: its verdict is of the rate, not of the share of what it sent.
#[test]
fn what_pause_frames_take_from_a_slice_breaks_its_isolation() {
    let changes = [
        (
            "  call: {match: {dscp: ef}, share: 1 %,",
            "  call: {match: {dscp: ef}, share: 1 %, guaranteed: true,",
        ),
        (
            "  all: {reference: true, sources: {}}",
            "  calm: {reference: true, sources: {bulk: {rate: 5 Mbit/s}}}\n  all: {sources: {}}",
        ),
        (
            "repetitions: 1",
            "repetitions: 34\nmargins: {delay: 1000 %, delay_resolution: 1 s}",
        ),
    ];
    let study = changed(STUDY, &changes);
    let description = study.description("0");
    let mut builder = SummaryBuilder::new(&description);
    for run in study.runs(&RunFilter::default()).unwrap() {
        let record = Simulator::default().run(&study, &run).unwrap();
        let withheld = record.slices.iter().map(|slice| slice.withheld_frames > 0);
        let is_calm = record.key.scenario == "calm";
        assert_eq!(withheld.collect::<Vec<_>>(), [!is_calm, !is_calm, false]);
        builder.add(&record).unwrap();
    }
    let verdicts = verdict::judge(&description, builder.observations());
    assert_eq!(verdicts.policies[0].isolation.outcome, Outcome::Broken);
}

/// Neither a mark just below the buffer nor frames that do not fit between the two keep a sender from being paused: in both cases
/// the frames on the wire are lost at each pause, and no more.
#[test]
fn a_sender_is_paused_although_no_whole_frame_fits_above_the_mark() {
    for buffer in ["15001 B", "15.9 kB"] {
        let changed = FLOW_CONTROL.replace("30 kB", buffer);
        let record = run(&[(FLOW_CONTROL, &changed)]);
        let bulk = &record.slices[0].whole;
        assert!(bulk.sent_frames < 1_500, "{buffer}: {bulk:?}");
        assert!(
            (1..400).contains(&lost(&record)),
            "{buffer}: {}",
            lost(&record)
        );
    }
}

#[test]
fn a_paused_host_loses_nothing_and_sends_what_its_queue_is_served() {
    let without = run(&[
        (FLOW_CONTROL, ""),
        (
            "shape: 10 Mbit/s, queue_limit: 1000",
            "shape: 10 Mbit/s, queue_limit: 20",
        ),
    ]);
    assert!(lost(&without) > 3_000);
    let with = run(&[]);
    assert_eq!(lost(&with), 0);
    let bulk = with.slices[0].whole;
    // 10 Mbit/s, and what waits in the switch and in the host at the end.
    let mbit = bulk.offered_bits_per_second / 1e6;
    assert!((10.0..12.0).contains(&mbit), "{mbit}");
}

#[test]
fn a_paused_link_holds_up_the_calls_of_its_host_and_nobody_else() {
    let delay = |record: &RunRecord, slice: usize| record.slices[slice].whole.delay.p99_ns;
    let pauses = run(&[]);
    // Behind up to 92 frames that leave at 10 Mbit/s.
    assert!(delay(&pauses, 1) > 50_000_000, "{}", delay(&pauses, 1));
    assert!(pauses.slices[1].whole.offered_bits_per_second < 250_000.0);
    assert!(delay(&pauses, 2) < 2_000_000, "{}", delay(&pauses, 2));
    let per_priority = run(&[("low: 6 kB", "low: 6 kB, per_priority: true")]);
    assert!(
        delay(&per_priority, 1) < 500_000,
        "{}",
        delay(&per_priority, 1)
    );
    assert!(per_priority.slices[1].whole.offered_bits_per_second > 490_000.0);
    assert_eq!(lost(&per_priority), 0);
    // A call that finds its priority free, and another one paused, is sent when it comes, not when the link became free.
    let least = |record: &RunRecord| record.slices[1].whole.delay.min_ns;
    assert_eq!(least(&per_priority), least(&run(&[(FLOW_CONTROL, "")])));
}

#[test]
fn a_host_that_holds_more_frames_delays_them_longer() {
    let median = |changes: &[(&str, &str)]| run(changes).slices[0].whole.delay.p50_ns;
    let (usual, less) = (
        median(&[]),
        median(&[("low: 6 kB", "low: 6 kB, host_queue: 9 packets")]),
    );
    assert!(usual > less * 3, "{usual} and {less}");
}

/// What a switch with this room above its mark loses.
fn lost_with_room(room: u64, propagation: &str, processing: &str) -> (RunRecord, u64) {
    let control = format!(
        ", flow_control: {{buffer: {} B, high: 15 kB, low: 6 kB}}",
        15_000 + room
    );
    let record = run(&[
        (FLOW_CONTROL, &control),
        ("propagation: 5 us", &format!("propagation: {propagation}")),
        (
            "processing_delay: 3 us",
            &format!("processing_delay: {processing}"),
        ),
    ]);
    let lost = lost(&record);
    (record, lost)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn nothing_is_lost_where_the_buffer_holds_what_is_on_the_wire(
        propagation_us in 0u64..200,
        processing_us in 0u64..100,
    ) {
        let (propagation, processing) = (format!("{propagation_us} us"), format!("{processing_us} us"));
        let study = changed(STUDY, &[
            ("propagation: 5 us", &format!("propagation: {propagation}")),
        ]);
        let room = FlowControlParams::on_the_wire(&study.link, Duration::from_micros(processing_us), 1_542).bytes();
        let (_, lost) = lost_with_room(room, &propagation, &processing);
        prop_assert_eq!(lost, 0);
    }
}

#[test]
fn frames_are_lost_and_counted_where_the_buffer_is_too_small_for_them() {
    let (record, lost) = lost_with_room(1_000, "200 us", "3 us");
    assert!(lost > 0);
    let drops: Vec<_> = record
        .drops
        .iter()
        .map(|drop| (drop.reason.as_str(), drop.frames))
        .collect();
    assert_eq!(drops, [("buffer_full", lost)]);
}

/// Pauses links at 40 kB that wait in it.
fn pausing() -> DeviceParams {
    DeviceParams {
        processing: Duration::ZERO,
        flow_control: Some(FlowControlParams {
            per_priority: false,
            buffer: ByteCount::new(100_000),
            high: ByteCount::new(40_000),
            low: ByteCount::new(20_000),
            host_queue: 10,
        }),
    }
}

#[test]
fn a_host_whose_sources_never_wait_is_paused_too() {
    let mut topology = Topology::default();
    let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let device = topology.device(pausing());
    join(&mut topology, sender, device, ethernet(1_000_000_000));
    let port = plain_port(BitRate::new(100_000_000));
    let slow = ethernet(100_000_000);
    join_egress(&mut topology, device, port, sink, slow);
    let until = Duration::from_millis(100);
    let flows = vec![cbr(0, [sender, sink], 200_000_000, Duration::ZERO, until)];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    network.run_until(Instant::MAX);
    let (recorder, _) = network.into_parts();
    assert_eq!(
        (recorder.lost(), recorder.arrivals(0).len()),
        (0, recorder.sent.len())
    );
}

/// What waits is counted by the priority with which it came to the device, both when it comes and when it leaves.
#[test]
fn a_priority_that_a_device_before_has_changed_is_paused_and_goes_on() {
    let mut topology = Topology::default();
    let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let [marking, pausing] = [false, true].map(|is_pausing| {
        let mut params = pausing();
        match &mut params.flow_control {
            Some(control) if is_pausing => control.per_priority = true,
            control => *control = None,
        }
        topology.device(params)
    });
    let (link, slow) = (ethernet(1_000_000_000), ethernet(100_000_000));
    join(&mut topology, sender, marking, link);
    let all = ClassSpec {
        set_dscp: Some(40),
        ..vlan_class("all", 10)
    };
    let marked = policy(vec![all])
        .resolve(BitRate::new(1_000_000_000))
        .unwrap();
    let marks = port(marked, 1).unwrap();
    join_egress(&mut topology, marking, marks, pausing, link);
    let served = plain_port(BitRate::new(100_000_000));
    join_egress(&mut topology, pausing, served, sink, slow);
    let until = Duration::from_millis(100);
    let flows = vec![cbr(0, [sender, sink], 200_000_000, Duration::ZERO, until)];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    let outcome = network.run_until(Instant::MAX);
    let (recorder, _) = network.into_parts();
    assert_eq!((recorder.lost(), outcome.in_flight), (0, 0));
    assert_eq!(recorder.arrivals(0).len(), recorder.sent.len());
}

/// Two devices with flow control between two hosts who send to each other, and whose own ports are paused for good.
fn storm() -> (Option<[PortId; 2]>, [PortId; 2], usize) {
    let mut topology = Topology::default();
    let hosts = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let devices: [Node; 2] = [(); 2].map(|()| topology.device(pausing()));
    let rate = BitRate::new(1_000_000_000);
    let link = ethernet(1_000_000_000);
    let to_hosts = [0, 1].map(|side| {
        let port = topology.egress(devices[side], plain_port(rate));
        let adapter = topology.port(hosts[side]);
        topology.link(adapter, port, link);
        port
    });
    let between = devices.map(|device| topology.egress(device, plain_port(rate)));
    topology.link(between[0], between[1], link);
    let until = Duration::from_secs(1);
    let flows = vec![
        cbr(0, hosts, 300_000_000, Duration::ZERO, until),
        cbr(1, [hosts[1], hosts[0]], 300_000_000, Duration::ZERO, until),
    ];
    let mut network = topology.build(flows, Recorder::default()).unwrap();
    for port in to_hosts {
        network.pause(port, Instant::MAX, Instant::ZERO);
    }
    // Without an end, ports that are paused for good would repeat their pauses for ever.
    let outcome = network.run_until(Instant::ZERO.saturating_add(Duration::from_secs(2)));
    assert!(
        outcome.ended_at < Instant::ZERO.saturating_add(until),
        "{outcome:?}"
    );
    (outcome.storm, between, outcome.in_flight)
}

#[test]
fn two_ports_that_pause_each_other_end_the_run_and_are_named() {
    let (storm, between, in_flight) = storm();
    let mut named = storm.expect("a pause storm");
    named.sort_unstable();
    assert_eq!(named, between);
    assert!(in_flight > 0);
}
