//! The gateway between real interfaces: pairs of virtual ones, in namespaces. Needs root; says so and
//! passes where it cannot.

use crate::support::{Endpoint, Gateway, Testbed, run, udp};
use slicewise_live::metrics;
use slicewise_live::sys::namespace;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// Every test of this file.
pub fn all() {
    for packet_io in ["af_packet", "af_xdp"] {
        all_kinds_of_frames_and_the_gateway_survive_what_happens_to_interfaces(packet_io);
    }
    every_frame_is_sent_or_counted_while_the_mtu_shrinks();
}

/// What must come through as it is.
fn all_kinds() -> Vec<Vec<u8>> {
    let vlan = [0x81, 0x00, 0x60, 10];
    let outer = [0x88, 0xa8, 0x20, 7];
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 0, 0xa, 0x08, 0x06]);
    arp.resize(42, 1);
    let mut v6 = vec![2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa, 0x86, 0xdd];
    v6.extend([0x60, 0, 0, 0, 0, 20, 17, 64]);
    v6.extend([0x20; 32]);
    v6.extend([0x30, 0x39, 0x14, 0x51, 0, 20, 0, 0]);
    v6.resize(14 + 40 + 20, 9);
    vec![
        udp(&[], 5201, 60, 1),
        udp(&[vlan], 5201, 64, 2),
        udp(&[outer, vlan], 5201, 68, 3),
        arp,
        v6,
        udp(&[], 5201, 1_514, 4),
        udp(&[vlan], 5201, 1_518, 5),
        udp(&[], 5201, 9_014, 6),
        udp(&[vlan], 5201, 9_018, 7),
    ]
}

fn forwards(source: &mut Endpoint, sink: &mut Endpoint) {
    let sent = all_kinds();
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&mut *source, &mut *sink];
        let [one, two] = ends;
        let (from, to) = if from < to { (one, two) } else { (two, one) };
        from.send(&sent);
        let received = to.receive(sent.len(), PATIENCE);
        let lengths: Vec<usize> = received.iter().map(Vec::len).collect();
        assert!(received == sent, "received {lengths:?}");
    }
}

fn all_kinds_of_frames_and_the_gateway_survive_what_happens_to_interfaces(packet_io: &str) {
    let Some(testbed) = Testbed::new(packet_io, 9_000) else {
        return;
    };
    let task = format!("{packet_io} 1000000000 fifo");
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    let mut killed = Gateway::start(&testbed, &task);
    forwards(&mut source, &mut sink);

    killed.signal("KILL");
    assert!(!killed.wait());
    for interface in ["left", "right"] {
        let link = testbed.link(interface);
        assert!(!link.contains("prog/xdp"), "{link}");
        assert!(link.contains("promiscuity 0"), "{link}");
    }

    let mut gateway = Gateway::start(&testbed, &format!("{task} 0 awake"));
    gateway.wait_for_thread("awake-");
    forwards(&mut source, &mut sink);
    let namespace = testbed.namespace("gateway");
    run(&format!("ip -n {namespace} link set right down")).unwrap();
    gateway.wait_for("link_down");
    source.send(&all_kinds());
    run(&format!("ip -n {namespace} link set right up")).unwrap();
    gateway.wait_for("link_up");
    std::thread::sleep(Duration::from_millis(300));
    sink.receive(100, Duration::from_millis(200));
    forwards(&mut source, &mut sink);

    run(&format!("ip -n {namespace} link del right")).unwrap();
    gateway.wait_for("interface_unusable");
    testbed.connect("sink", "right", 9_000).unwrap();
    gateway.wait_for("interface_open");
    let mut sink = testbed.endpoint("sink");
    forwards(&mut source, &mut sink);

    // The second while the first is being prepared: both are carried out.
    gateway.signal("HUP");
    std::thread::sleep(Duration::from_millis(30));
    gateway.signal("HUP");
    gateway.wait_for("reloaded");
    gateway.wait_for("reloaded");
    forwards(&mut source, &mut sink);
    gateway.signal("TERM");
    assert!(gateway.wait());
    let link = testbed.link("left");
    assert!(
        !link.contains("prog/xdp") && link.contains("promiscuity 0"),
        "{link}"
    );
}

fn every_frame_is_sent_or_counted_while_the_mtu_shrinks() {
    let Some(testbed) = Testbed::new("mtu", 1_500) else {
        return;
    };
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    let mut gateway = Gateway::start(&testbed, "af_packet 1000000000 fifo 0");
    let namespace = testbed.namespace("gateway");
    let mut arrived = 0;
    for number in 0..2_000 {
        if number == 1_000 {
            run(&format!("ip -n {namespace} link set right mtu 1000")).unwrap();
        }
        source.send(&[
            udp(&[], 5201, 1_514, 2 * number),
            udp(&[], 5201, 500, 2 * number + 1),
        ]);
        arrived += sink.receive(2, Duration::from_micros(300)).len();
    }
    arrived += sink.receive(4_000, Duration::from_secs(1)).len();
    let arrived = f64::from(u32::try_from(arrived).unwrap());
    let port = gateway.metrics_port();
    let samples = namespace::within(&namespace, || metrics::read(port).unwrap()).unwrap();
    let direction = [("direction", "left>right")];
    let count = |name: &str| samples.sum(&format!("slicewise_{name}_frames_total"), &direction);
    // Numbers of frames are exact in a float.
    assert_eq!(count("received"), 4_000.0);
    assert_eq!(count("sent"), arrived);
    let not_sent = count("discarded") + count("class_dropped");
    assert_eq!(arrived + not_sent, 4_000.0);
    // Of the frames that do not fit any more, none came through.
    assert!(arrived <= 3_000.0, "{arrived}");
    gateway.signal("TERM");
    assert!(gateway.wait());
}
