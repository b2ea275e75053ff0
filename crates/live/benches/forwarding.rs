//! The gateway on virtual interfaces, beside the kernel. Not timed tests: figures of this machine.
//!
//!     sudo cargo bench -p slicewise-live --bench forwarding [rate|delay]
//!
//! `rate`: frames of 64 bytes a second that come through, flooded from one thread: the gateway with a
//! priority policy through AF_XDP and AF_PACKET, the kernel's bridge, and kernel forwarding with HTB.
//! `delay`: one-way delay at 35 Mbit/s of a slice of 15.75 Mbit/s beside one that sends 40 Mbit/s: with
//! priority, guaranteed, and FIFO, and alone; also where processors are kept awake, and where the gateway
//! never sleeps. Sender and receiver read one clock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/it/support/mod.rs"]
mod support;

use slicewise_live::port::Port;
use slicewise_live::sys::{namespace, time};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::{Endpoint, Gateway, Testbed, run, udp};

fn main() {
    if support::be_gateway() {
        return;
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wants = |what: &str| {
        let named: Vec<&String> = wanted.iter().filter(|w| !w.starts_with('-')).collect();
        named.is_empty() || named.iter().any(|word| word.as_str() == what)
    };
    if wants("rate") {
        rates();
    }
    if wants("delay") {
        delays();
    }
}

/// How long each figure is measured.
const MEASURED: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;

fn rates() {
    println!("frames of 64 B (60 without FCS) a second, medians of {ROUNDS} rounds of 3 s");
    println!(
        "{:36} {:>9} {:>9} {:>11} {:>13}  each round",
        "", "offered", "forwarded", "of bridge's", "a second busy"
    );
    let cases = [
        ("kernel bridge", "bridge"),
        ("kernel forwarding + HTB", "htb"),
        ("gateway, AF_PACKET, priority policy", "af_packet"),
        ("gateway, AF_XDP, priority policy", "af_xdp"),
    ];
    // In turn, so that what else the machine does disturbs all of them alike.
    let mut measured: [Vec<Flooded>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, what), measured) in cases.iter().zip(&mut measured) {
            measured.extend(rate(what));
        }
    }
    let median_of = |measured: &[Flooded], figure: fn(&Flooded) -> f64| {
        median(measured.iter().map(figure).collect())
    };
    let bridge = median_of(&measured[0], |one| one.forwarded);
    for ((name, _), measured) in cases.iter().zip(&measured) {
        let forwarded = median_of(measured, |one| one.forwarded);
        let rounds = measured.iter().map(|one| format!("{:.0}", one.forwarded));
        println!(
            "{name:36} {:9.0} {forwarded:9.0} {:11.2} {:13.0}  {}",
            median_of(measured, |one| one.offered),
            forwarded / bridge,
            median_of(measured, |one| one.forwarded_a_second_busy),
            rounds.collect::<Vec<_>>().join(" ")
        );
    }
}

/// Frames a second.
struct Flooded {
    offered: f64,
    forwarded: f64,
    /// For each second of processor time of the gateway; 0 where it is the kernel.
    forwarded_a_second_busy: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn rate(what: &str) -> Option<Flooded> {
    let testbed = Testbed::new("rate", 1_500)?;
    let inside = testbed.namespace("gateway");
    let gateway = match what {
        "bridge" => {
            run(&format!("ip -n {inside} link add br0 type bridge")).unwrap();
            for port in ["left", "right"] {
                run(&format!("ip -n {inside} link set {port} master br0")).unwrap();
            }
            run(&format!("ip -n {inside} link set br0 up")).unwrap();
            None
        }
        "htb" => {
            route_through_the_kernel(&testbed, &inside);
            None
        }
        packet_io => {
            let task = format!("{packet_io} 100000000000 priority");
            Some(Gateway::start(&testbed, &task))
        }
    };
    let next_hop = match what {
        "htb" => address(&inside, "left"),
        _ => address(&testbed.namespace("sink"), "eth0"),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let sender = flood(&testbed, &next_hop, Arc::clone(&stop));
    thread::sleep(Duration::from_millis(500));
    let count = || {
        [
            counted(&testbed, "source", "TX:"),
            counted(&testbed, "sink", "RX:"),
        ]
    };
    let before = count();
    let worked = || gateway.as_ref().map_or(0.0, Gateway::processor_seconds);
    let (start, worked_before) = (Instant::now(), worked());
    thread::sleep(MEASURED);
    let after = count();
    let (seconds, busy) = (start.elapsed().as_secs_f64(), worked() - worked_before);
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    let [offered, forwarded] = [0, 1].map(|end: usize| (after[end] - before[end]) as f64);
    Some(Flooded {
        offered: offered / seconds,
        forwarded: forwarded / seconds,
        forwarded_a_second_busy: if busy > 0.0 { forwarded / busy } else { 0.0 },
    })
}

fn route_through_the_kernel(testbed: &Testbed, inside: &str) {
    let sink = address(&testbed.namespace("sink"), "eth0");
    for command in [
        format!("ip netns exec {inside} sysctl -qw net.ipv4.ip_forward=1"),
        format!("ip netns exec {inside} sysctl -qw net.ipv4.conf.all.rp_filter=0"),
        format!("ip netns exec {inside} sysctl -qw net.ipv4.conf.left.rp_filter=0"),
        format!("ip -n {inside} addr add 192.0.2.254/24 dev left"),
        format!("ip -n {inside} addr add 198.51.100.254/24 dev right"),
        format!("ip -n {inside} neigh add 198.51.100.1 lladdr {sink} dev right"),
        format!("ip netns exec {inside} tc qdisc add dev right root handle 1: htb default 20"),
        format!(
            "ip netns exec {inside} tc class add dev right parent 1: classid 1:1 htb rate 40gbit"
        ),
        format!(
            "ip netns exec {inside} tc class add dev right parent 1:1 classid 1:10 htb rate 20gbit ceil 40gbit prio 0"
        ),
        format!(
            "ip netns exec {inside} tc class add dev right parent 1:1 classid 1:20 htb rate 20gbit ceil 40gbit prio 1"
        ),
        format!(
            "ip netns exec {inside} tc filter add dev right parent 1: protocol ip u32 match ip dport 5201 0xffff flowid 1:10"
        ),
    ] {
        run(&command).unwrap();
    }
}

/// Frames that an end has received (`RX:`), or has sent or could not send (`TX:`), as its interface counts.
fn counted(testbed: &Testbed, end: &str, what: &str) -> u64 {
    let namespace = testbed.namespace(end);
    let text = run(&format!("ip -n {namespace} -s link show eth0")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains(what)).unwrap();
    // Bytes, packets, errors, dropped.
    let counts = lines[at + 1].split_whitespace();
    let counts: Vec<u64> = counts.map(|count| count.parse().unwrap()).collect();
    match what {
        // What the other end has no room for.
        "TX:" => counts[1] + counts[3],
        _ => counts[1],
    }
}

/// Datagrams that make frames of 60 bytes, of which the kernel makes 64 out of each that it is given: so one
/// thread sends more than anything between the ends can forward.
fn flood(testbed: &Testbed, next_hop: &str, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    const PAYLOAD: i32 = 60 - 14 - 20 - 8;
    const SOL_UDP: i32 = 17;
    const UDP_SEGMENT: i32 = 103;
    let source = testbed.namespace("source");
    for command in [
        // Checksums are left to hardware, and nobody looks at them: before Linux 6.11, the kernel makes no
        // datagrams out of one without.
        format!("ip netns exec {source} ethtool -K eth0 tx on tx-udp-segmentation off"),
        format!("ip -n {source} addr add 192.0.2.1/24 dev eth0"),
        format!("ip -n {source} neigh add 192.0.2.254 lladdr {next_hop} dev eth0"),
        format!("ip -n {source} route add default via 192.0.2.254"),
    ] {
        run(&command).unwrap();
    }
    let socket = namespace::within(&source, || {
        let socket = UdpSocket::bind("192.0.2.1:40000").unwrap();
        socket
            .connect(("198.51.100.1", support::CRITICAL_PORT))
            .unwrap();
        slicewise_live::sys::socket::set(socket.as_fd(), SOL_UDP, UDP_SEGMENT, &PAYLOAD).unwrap();
        socket
    })
    .unwrap();
    thread::spawn(move || {
        let payload = vec![0; usize::try_from(64 * PAYLOAD).unwrap()];
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = socket.send(&payload) {
                assert!(slicewise_live::sys::socket::was_refused(&error), "{error}");
            }
        }
    })
}

/// The hardware address of an interface, as `ip` takes it.
fn address(namespace: &str, interface: &str) -> String {
    let state = namespace::within(namespace, || {
        slicewise_live::sys::interface::Interfaces::new()
            .and_then(|interfaces| interfaces.state(interface))
    });
    let [a, b, c, d, e, f] = state.unwrap().unwrap().address;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn delays() {
    println!(
        "\none-way delay at 35 Mbit/s (L1): critical 15.75 Mbit/s beside 40 Mbit/s, 10 s each"
    );
    let late = "departures later than 100 µs, and the machine meanwhile";
    println!(
        "{:34} {:>8} {:>8} {:>8} {:>8} {:>7}  {late}",
        "µs", "median", "p99", "p99.9", "longest", "loss"
    );
    for packet_io in ["af_xdp", "af_packet"] {
        for policy in ["idle", "priority", "guaranteed", "fifo"] {
            delay(packet_io, policy, "");
        }
        for wait in ["awake", "busy"] {
            for policy in ["idle", "priority"] {
                delay(packet_io, policy, wait);
            }
        }
    }
}

/// Bytes of the frames whose delay is measured, without FCS.
const FRAME_BYTES: usize = 1_490;

/// `wait` is how the gateway waits: kept awake, busily, or else asleep.
fn delay(packet_io: &str, policy: &str, wait: &str) {
    let Some(testbed) = Testbed::new("delay", 1_500) else {
        return;
    };
    let in_force = if policy == "idle" { "priority" } else { policy };
    let task = format!("{packet_io} 35000000 {in_force} 0 {wait}");
    let gateway = Gateway::start(&testbed, &task);
    let seconds = 10;
    let best_effort = if policy == "idle" { 0 } else { 40_000_000 };
    let stop = Arc::new(AtomicBool::new(false));
    let receiver = receive(&testbed, Arc::clone(&stop));
    let busy_before = processor_ticks();
    let sent = send(&testbed, best_effort, Duration::from_secs(seconds));
    let busy = processor_ticks();
    let share = |of: usize| {
        let ticks: u64 = busy.iter().zip(&busy_before).map(|(b, a)| b - a).sum();
        100.0 * (busy[of] - busy_before[of]) as f64 / ticks.max(1) as f64
    };
    let (idle, stolen) = (share(3), share(7));
    thread::sleep(Duration::from_millis(300));
    let text = metrics(&testbed, &gateway);
    stop.store(true, Ordering::Relaxed);
    let mut delays = receiver.join().unwrap();
    delays.sort_unstable();
    let at = |thousandths: usize| {
        let index = (delays.len() * thousandths / 1000).min(delays.len().saturating_sub(1));
        delays.get(index).copied().unwrap_or(0) as f64 / 1e3
    };
    let loss = 100.0 * (1.0 - delays.len() as f64 / sent as f64);
    println!(
        "{packet_io:10} {policy:10} {wait:12} {:8.0} {:8.0} {:8.0} {:8.0} {loss:6.2}%  {text:>7}   {idle:.0} % idle, {stolen:.1} % stolen",
        at(500),
        at(990),
        at(999),
        at(1000)
    );
}

/// What processors did so far: user, nice, system, idle, I/O wait, interrupts twice, stolen.
fn processor_ticks() -> Vec<u64> {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all = stat.lines().next().unwrap().split_whitespace();
    all.skip(1).take(8).map(|n| n.parse().unwrap()).collect()
}

/// The share of departures that were late, as the gateway itself reports.
fn metrics(testbed: &Testbed, gateway: &Gateway) -> String {
    let port = gateway.metrics_port();
    let read = namespace::within(&testbed.namespace("gateway"), || {
        slicewise_live::metrics::read(port)
    });
    let samples = read.unwrap().unwrap();
    let name = "slicewise_departure_lateness_seconds";
    let direction = ("direction", "left>right");
    let all = samples.sum(&format!("{name}_count"), &[direction]);
    let within = samples.sum(&format!("{name}_bucket"), &[direction, ("le", "0.0001")]);
    format!("{:.2} %", 100.0 * (all - within) / all)
}

/// What is measured is the gateway, not how long sender and receiver wait for a processor.
fn be_punctual() {
    slicewise_live::sys::scheduling::without_timer_slack();
    let _ = slicewise_live::sys::scheduling::become_real_time();
}

/// Sends the slice that is measured, stamped when it is sent, and the one beside it, at random times with
/// these mean rates; returns how many frames of the first.
fn send(testbed: &Testbed, best_effort: u64, duration: Duration) -> u64 {
    let mut endpoint = testbed.endpoint("source");
    be_punctual();
    let bits = FRAME_BYTES as u64 * 8;
    let gap = |rate: u64| bits * 1_000_000_000 / rate.max(1);
    let mut critical = udp(&[], support::CRITICAL_PORT, FRAME_BYTES, 0);
    let other = udp(&[], 9, FRAME_BYTES, 0);
    let start = time::now().nanos();
    let end = start + u64::try_from(duration.as_nanos()).unwrap();
    let mut next = [start, start];
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut sent = 0;
    loop {
        let which = usize::from(best_effort > 0 && next[1] < next[0]);
        let due = next[which];
        if due >= end {
            return sent;
        }
        let now = time::now().nanos();
        if due > now {
            thread::sleep(Duration::from_nanos(due - now));
        }
        if which == 0 {
            critical[42..50].copy_from_slice(&time::now().nanos().to_be_bytes());
            endpoint.send(std::slice::from_ref(&critical));
            sent += 1;
        } else {
            endpoint.send(std::slice::from_ref(&other));
        }
        // Between half and one and a half of the mean, so that the two streams do not lock phase.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mean = gap([15_750_000, best_effort][which]);
        next[which] += mean / 2 + random % mean;
    }
}

/// Delays of the frames that arrive, ns.
fn receive(testbed: &Testbed, stop: Arc<AtomicBool>) -> thread::JoinHandle<Vec<u64>> {
    let Endpoint {
        mut memory,
        mut port,
    } = testbed.endpoint("sink");
    thread::spawn(move || {
        be_punctual();
        let mut delays = Vec::new();
        let mut waiting = slicewise_live::sys::poll::PollSet::new();
        let mut arrivals = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            arrivals.clear();
            let _ = port.receive(&mut memory, &mut arrivals);
            let now = time::now().nanos();
            for arrival in &arrivals {
                if let Some(stamp) = stamp(memory.head(arrival.frame)) {
                    delays.push(now.saturating_sub(stamp));
                }
                memory.release(arrival.frame);
            }
            if arrivals.is_empty() {
                waiting.clear();
                waiting.add(port.descriptor());
                waiting
                    .wait(slicewise_units::Duration::from_millis(50))
                    .unwrap();
            }
        }
        delays
    })
}

fn stamp(frame: &[u8]) -> Option<u64> {
    let port = frame.get(36..38)?;
    (port == support::CRITICAL_PORT.to_be_bytes())
        .then(|| u64::from_be_bytes(frame[42..50].try_into().unwrap()))
}
