//! The gateway under attack, between real interfaces: pairs of virtual ones, in namespaces. Needs root; says
//! so and passes where it cannot.

use crate::support::{
    CRITICAL_PORT, Endpoint, FLOODED_PORT, Gateway, THIRD_PORT, Testbed, run, udp,
};
use slicewise_live::port::Port;
use slicewise_live::sys::scheduling;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Every test of this file.
pub fn all() {
    for packet_io in ["af_xdp", "af_packet"] {
        a_flood_into_a_long_queue_costs_the_other_slice_no_frame(packet_io);
    }
    sixteen_receive_queues_leave_the_other_interface_its_memory();
    a_reload_that_changes_slices_and_the_link_loses_no_frame();
    a_slice_that_comes_back_while_it_drains_is_there_at_last();
    a_log_that_cannot_be_written_stops_no_frame();
}

/// Numbers of the frames to the critical port that an end receives, until it is stopped.
fn numbers(mut end: Endpoint, stop: Arc<AtomicBool>) -> thread::JoinHandle<BTreeSet<u32>> {
    thread::spawn(move || {
        // What it does not fetch in time, the kernel drops, and the gateway would be blamed for it.
        let _ = scheduling::become_real_time();
        let mut seen = BTreeSet::new();
        while !stop.load(Ordering::Relaxed) {
            let mut arrivals = Vec::new();
            end.port.receive(&mut end.memory, &mut arrivals).unwrap();
            if arrivals.is_empty() {
                thread::sleep(Duration::from_micros(200));
            }
            for arrival in arrivals {
                let frame = end.memory.head(arrival.frame);
                if frame.get(36..38) == Some(&CRITICAL_PORT.to_be_bytes()) {
                    let number = frame.last_chunk().map(|number| u32::from_be_bytes(*number));
                    seen.extend(number);
                }
                end.memory.release(arrival.frame);
            }
        }
        seen
    })
}

/// Send so many frames as fast as the interface takes them.
fn send(end: &mut Endpoint, frame: &[u8], mut count: usize) {
    while count > 0 {
        let room = end.port.room(&mut end.memory).min(count).min(256);
        if room == 0 {
            thread::sleep(Duration::from_micros(50));
        }
        let frames: Vec<_> = (0..room)
            .map(|_| end.memory.store(&[frame]).unwrap())
            .collect();
        end.port.transmit(&mut end.memory, &frames).unwrap();
        count -= room;
    }
}

fn a_flood_into_a_long_queue_costs_the_other_slice_no_frame(packet_io: &str) {
    let Some(testbed) = Testbed::new(&format!("flood-{packet_io}"), 1_500) else {
        return;
    };
    let mut source = testbed.endpoint("source");
    let mut gateway = Gateway::start(&testbed, &format!("{packet_io} 100000000 flood 0"));
    let stop = Arc::new(AtomicBool::new(false));
    let receiver = numbers(testbed.endpoint("sink"), Arc::clone(&stop));

    // 150,000 frames/s for 4 s, where the machine can, and until the memory has run low.
    let bulk = udp(&[], FLOODED_PORT, 1_000, 0);
    let refused = "slicewise_frame_memory_refused_frames_total";
    let start = Instant::now();
    for step in 1.. {
        send(&mut source, &bulk, 1_500);
        let due = start + Duration::from_millis(10) * step;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let has_run_low = || {
            gateway
                .metrics(&testbed)
                .is_some_and(|m| m.sum(refused, &[]) > 0.0)
        };
        if step >= 400 && step % 100 == 0 && has_run_low() {
            break;
        }
        assert!(step < 6_000, "the memory never ran low");
    }
    gateway.wait_for("event=memory_low");

    let voice = 0..1_500;
    for number in voice.clone() {
        source.send(&[udp(&[], CRITICAL_PORT, 200, number)]);
        thread::sleep(Duration::from_millis(1));
    }
    let sent = |samples: &slicewise_live::metrics::Samples| {
        let class = [("class", "critical"), ("direction", "left>right")];
        samples.sum("slicewise_class_sent_frames_total", &class) >= 1_500.0
    };
    let metrics = gateway.wait_until(&testbed, sent);
    thread::sleep(Duration::from_millis(200));
    stop.store(true, Ordering::Relaxed);
    let arrived = receiver.join().unwrap();
    assert_eq!(arrived, voice.collect(), "{packet_io}");
    assert_eq!(
        metrics.sum("slicewise_interface_short_refills_total", &[]),
        0.0
    );
    gateway.signal("TERM");
    assert!(gateway.wait());
}

fn sixteen_receive_queues_leave_the_other_interface_its_memory() {
    let Some(testbed) = Testbed::new("queues", 1_500) else {
        return;
    };
    let [there, here] = ["source", "gateway"].map(|end| testbed.namespace(end));
    run(&format!("ip -n {here} link del left")).unwrap();
    let queues = "numrxqueues 16 numtxqueues 16";
    run(&format!(
        "ip link add eth0 netns {there} {queues} type veth peer name left netns {here} {queues}"
    ))
    .unwrap();
    for (namespace, name) in [(&there, "eth0"), (&here, "left")] {
        let _ = run(&format!(
            "ip netns exec {namespace} ethtool -K {name} tx off tso off gso off gro off"
        ));
        run(&format!(
            "ip -n {namespace} link set {name} addrgenmode none"
        ))
        .unwrap();
        run(&format!("ip -n {namespace} link set {name} up")).unwrap();
    }
    let mut gateway = Gateway::start(&testbed, "af_xdp 1000000000 fifo 0");
    let ends = [testbed.endpoint("source"), testbed.endpoint("sink")];
    let [mut source, mut sink] = ends;
    for (from, to) in [(0, 1), (1, 0)] {
        let stop = Arc::new(AtomicBool::new(false));
        let name = ["source", "sink"][to];
        let receiver = numbers(testbed.endpoint(name), Arc::clone(&stop));
        let from = if from == 0 { &mut source } else { &mut sink };
        for number in 0..1_000 {
            from.send(&[udp(&[], CRITICAL_PORT, 200, number)]);
            thread::sleep(Duration::from_micros(200));
        }
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        let arrived = receiver.join().unwrap();
        assert_eq!(arrived, (0..1_000).collect(), "to the {name}");
    }
    gateway.signal("TERM");
    assert!(gateway.wait());
}

/// Where a gateway logs to: a full disk, a pipe whose reader has left, and one that nobody empties.
fn unwritable(which: &str) -> (Stdio, Option<std::io::PipeReader>) {
    if which == "full" {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        return (full.unwrap().into(), None);
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    if which == "closed" {
        return (writer.into(), None);
    }
    // As much as a pipe holds.
    writer.write_all(&[b'\n'; 65_536]).unwrap();
    (writer.into(), Some(reader))
}

/// Each of two slices gets what the other gives up, and a third comes or goes; the link's rate changes, too, so that the
/// whole is put in force at once.
fn a_reload_that_changes_slices_and_the_link_loses_no_frame() {
    let Some(testbed) = Testbed::new("slices", 1_500) else {
        return;
    };
    let mut gateway = Gateway::start(&testbed, "af_packet 1000000000 exchange 0");
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    for reload in 0..3u32 {
        // The second is asked for before the first is in force.
        gateway.signal("HUP");
        if reload == 1 {
            thread::sleep(Duration::from_millis(130));
            gateway.signal("HUP");
        }
        let frames =
            (0..400).map(|i| udp(&[], CRITICAL_PORT + i % 3, 500, reload * 400 + u32::from(i)));
        let frames: Vec<Vec<u8>> = frames.collect();
        for some in frames.chunks(40) {
            source.send(some);
            thread::sleep(Duration::from_millis(20));
        }
        let arrived = sink.receive(frames.len(), Duration::from_secs(5));
        assert_eq!(arrived.len(), frames.len());
        let line = gateway.wait_for("reloaded");
        // Where the first was in force before the second, there was nothing left to change.
        let is_whole = line.contains("lost_frames=0") || line.contains("slice_changes=0 ");
        assert!(is_whole, "{line}");
    }
    gateway.wait_for("reloaded");
    gateway.signal("TERM");
    assert!(gateway.wait());
}

/// Its frames take 4 s to leave. The reload that brings it back waits for 2 s, and then puts the whole policy in force.
fn a_slice_that_comes_back_while_it_drains_is_there_at_last() {
    let Some(testbed) = Testbed::new("back", 1_500) else {
        return;
    };
    let mut gateway = Gateway::start(&testbed, "af_packet 1000000 third 0");
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    let frame = |number: u32| udp(&[], THIRD_PORT, 1_000, number);
    let frames: Vec<Vec<u8>> = (0..500).map(frame).collect();
    for some in frames.chunks(50) {
        source.send(some);
        thread::sleep(Duration::from_millis(2));
    }
    gateway.signal("HUP");
    let line = gateway.wait_for("reloaded");
    assert!(line.contains("slice_changes=2"), "{line}");
    gateway.signal("HUP");
    let line = gateway.wait_for("slices_not_changed");
    assert!(line.contains("frames of it still wait"), "{line}");
    let line = gateway.wait_for("reloaded");
    assert!(line.contains("lost_frames=0"), "{line}");
    source.send(&[frame(500)]);
    let arrived = sink.receive(501, Duration::from_secs(20));
    let expected: Vec<Vec<u8>> = (0..501).map(frame).collect();
    assert!(arrived == expected, "{} of 501 in order", arrived.len());
    gateway.signal("TERM");
    assert!(gateway.wait());
}

fn a_log_that_cannot_be_written_stops_no_frame() {
    for which in ["full", "closed", "stuck"] {
        let Some(testbed) = Testbed::new(which, 1_500) else {
            return;
        };
        let (stderr, _reader) = unwritable(which);
        let task = "af_packet 1000000000 fifo";
        let mut gateway = Gateway::start_logging_to(&testbed, task, stderr, 9_640);
        let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
        for reload in 0..3u8 {
            let reloads = |samples: &slicewise_live::metrics::Samples| {
                samples.sum("slicewise_reloads_total", &[]) >= f64::from(reload)
            };
            gateway.wait_until(&testbed, reloads);
            let frame = udp(&[], CRITICAL_PORT, 200, reload.into());
            source.send(std::slice::from_ref(&frame));
            assert_eq!(sink.receive(1, Duration::from_secs(20)), [frame], "{which}");
            gateway.signal("HUP");
        }
        if which != "stuck" {
            let lost = "slicewise_log_lines_lost_total";
            gateway.wait_until(&testbed, |samples| samples.sum(lost, &[]) >= 3.0);
        }
        gateway.signal("TERM");
        assert!(gateway.wait(), "{which}");
    }
}
