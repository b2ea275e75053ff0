//! The gateway on virtual interfaces, beside the kernel. Not timed tests: figures of this machine.
//!
//!     sudo cargo bench -p slicewise-live --bench forwarding [rate|delay]
//!
//! `rate`: frames of 64 bytes a second that come through, flooded from one thread: the gateway with a
//! priority policy through AF_XDP and AF_PACKET, the kernel's bridge, and kernel forwarding with HTB.
//! `delay`: one-way delay at 35 Mbit/s of a slice of 15.75 Mbit/s beside one that sends 40 Mbit/s: with
//! priority, guaranteed, and FIFO. Sender and receiver read one clock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use slicewise_live::port::Port;
use slicewise_live::sys::{namespace, time};
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
const REPETITIONS: usize = 3;

fn rates() {
    let mut bridge = 0.0;
    println!("frames of 64 B (60 without FCS) a second, the most of {REPETITIONS} times 3 s");
    let cases = [
        ("kernel bridge", "bridge"),
        ("kernel forwarding + HTB", "htb"),
        ("gateway, AF_PACKET, priority policy", "af_packet"),
        ("gateway, AF_XDP, priority policy", "af_xdp"),
    ];
    for (name, what) in cases {
        let measured: Vec<(f64, f64)> = (0..REPETITIONS).filter_map(|_| rate(what)).collect();
        let rates: Vec<f64> = measured.iter().map(|(rate, _)| *rate).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let busiest = measured.iter().map(|(_, each)| *each).fold(0.0, f64::max);
        if what == "bridge" {
            bridge = most;
        }
        let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        let ratio = most / bridge;
        let own = if busiest > 0.0 {
            format!("; {busiest:.0} a second of its own processor time")
        } else {
            String::new()
        };
        println!(
            "{name:38} {most:9.0}   {ratio:.2} of the bridge   ({}){own}",
            all.join(", ")
        );
    }
}

/// Frames a second, and a second of processor time of the gateway, where it is one.
fn rate(what: &str) -> Option<(f64, f64)> {
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
    let mut frame = udp(&[], support::CRITICAL_PORT, 60, 0);
    if what == "htb" {
        let address = namespace::within(&inside, || {
            let system = slicewise_live::sys::interface::Interfaces::new().unwrap();
            system.state("left").unwrap().address
        });
        frame[..6].copy_from_slice(&address.unwrap());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let sender = flood(&testbed, frame, Arc::clone(&stop));
    thread::sleep(Duration::from_millis(500));
    let before = received(&testbed);
    let worked = || gateway.as_ref().map_or(0.0, Gateway::processor_seconds);
    let (start, worked_before) = (Instant::now(), worked());
    thread::sleep(MEASURED);
    let frames = received(&testbed) - before;
    let (seconds, own) = (start.elapsed().as_secs_f64(), worked() - worked_before);
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    let each = if own > 0.0 { frames as f64 / own } else { 0.0 };
    Some((frames as f64 / seconds, each))
}

fn route_through_the_kernel(testbed: &Testbed, inside: &str) {
    let sink = namespace::within(&testbed.namespace("sink"), || {
        let system = slicewise_live::sys::interface::Interfaces::new().unwrap();
        system.state("eth0").unwrap().address
    });
    let [a, b, c, d, e, f] = sink.unwrap();
    let address = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    for command in [
        format!("ip netns exec {inside} sysctl -qw net.ipv4.ip_forward=1"),
        format!("ip netns exec {inside} sysctl -qw net.ipv4.conf.all.rp_filter=0"),
        format!("ip netns exec {inside} sysctl -qw net.ipv4.conf.left.rp_filter=0"),
        format!("ip -n {inside} addr add 192.0.2.254/24 dev left"),
        format!("ip -n {inside} addr add 198.51.100.254/24 dev right"),
        format!("ip -n {inside} neigh add 198.51.100.1 lladdr {address} dev right"),
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

/// Frames that have arrived at the sink, as its interface counts.
fn received(testbed: &Testbed) -> u64 {
    let namespace = testbed.namespace("sink");
    let text = run(&format!("ip -n {namespace} -s link show eth0")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("RX:")).unwrap();
    lines[at + 1]
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

fn flood(testbed: &Testbed, frame: Vec<u8>, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let Endpoint {
        mut memory,
        mut port,
    } = testbed.endpoint("source");
    thread::spawn(move || {
        let mut frames = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            frames.clear();
            let room = port.room(&mut memory).min(64);
            frames.extend((0..room).filter_map(|_| memory.store(&[&frame])));
            let _ = port.transmit(&mut memory, &frames);
        }
    })
}

fn delays() {
    println!(
        "\none-way delay at 35 Mbit/s (L1): critical 15.75 Mbit/s beside 40 Mbit/s, 10 s each"
    );
    let late = "departures later than 100 us, and the machine meanwhile";
    println!(
        "{:34} {:>8} {:>8} {:>8} {:>8} {:>7}  {late}",
        "us", "median", "p99", "p99.9", "longest", "loss"
    );
    for packet_io in ["af_xdp", "af_packet"] {
        for policy in ["idle", "priority", "guaranteed", "fifo"] {
            delay(packet_io, policy);
        }
    }
}

/// Bytes of the frames whose delay is measured, without FCS.
const FRAME_BYTES: usize = 1_490;

fn delay(packet_io: &str, policy: &str) {
    let Some(testbed) = Testbed::new("delay", 1_500) else {
        return;
    };
    let in_force = if policy == "idle" { "priority" } else { policy };
    let task = format!("{packet_io} 35000000 {in_force} 0");
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
        "{packet_io:10} {policy:23} {:8.0} {:8.0} {:8.0} {:8.0} {loss:6.2}%  {text:>7}   {idle:.0} % idle, {stolen:.1} % stolen",
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

/// The share of departures that were late, as the gateway itself tells.
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
