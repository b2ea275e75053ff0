//! The data plane of P4-TINS under a controller, at run time: V2 to V9 of the publication at a hundredth of its rates.

use super::{Ends, Running, Setup, run_in};
use serde_json::json;
use slicewise_api::{AdmissionRule, ClientError, Precondition, Slice};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Page with the configuration that is used.
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/mechanisms/metered-slices.md"
);
/// Length of each phase, and of the part at its beginning that is not measured: counters are reported each second.
const PHASE: Duration = Duration::from_secs(7);
const SETTLING: Duration = Duration::from_millis(2_600);
/// Time in which iperf3 opens 125 flows of UDP.
const CONNECTING: Duration = Duration::from_millis(500);
/// Ports of a slice, one for each process of iperf3, which opens at most 128 connections.
const PORTS: u16 = 4;

/// Guaranteed and maximum rate of a slice in each phase, Mbit/s.
type Rates = &'static [(u64, u64)];

/// Traffic to a port.
#[derive(Clone, Copy)]
struct Load {
    protocol: &'static str,
    flows: u32,
    /// Rate of a flow, as iperf3 writes it; TCP without one sends all it can.
    each: Option<&'static str>,
}

const UDP: Load = load("udp", 1, Some("100M"));
const TCP: Load = load("tcp", 2, None);

const fn load(protocol: &'static str, flows: u32, each: Option<&'static str>) -> Load {
    Load {
        protocol,
        flows,
        each,
    }
}

/// Slices with their loads, and a load that is in none.
struct Experiment {
    slices: Vec<(Load, Rates)>,
    outside: Option<Load>,
}

/// V4 and V5: two slices.
const PAIR: [Rates; 2] = [
    &[(70, 80), (60, 80), (20, 100)],
    &[(20, 100), (30, 100), (50, 70)],
];

fn pair(loads: [Load; 2]) -> Experiment {
    Experiment {
        slices: loads.into_iter().zip(PAIR).collect(),
        outside: None,
    }
}

impl Experiment {
    /// Ports that are sent to, with the load of each: those of no slice are the first.
    fn ports(&self) -> Vec<(u16, Load)> {
        let slices = self.slices.iter().map(|(load, _)| Some(*load));
        let loads = (0..).zip([self.outside].into_iter().chain(slices));
        loads
            .filter_map(|(number, load)| Some((number, load?)))
            .flat_map(|(number, load)| {
                let processes = load.flows.div_ceil(128);
                let flows = load.flows / processes;
                let each = (0..processes).map(move |_| Load { flows, ..load });
                (first_port(number)..).zip(each)
            })
            .collect()
    }

    fn put(&self, setup: &Setup, phase: usize) {
        let slices = (1..).zip(&self.slices);
        // What becomes smaller first: the sum of all guarantees fits at any time.
        let mut slices: Vec<_> = slices.collect();
        slices.sort_by_key(|(_, (_, rates))| {
            let before = phase.checked_sub(1).map_or(0, |before| rates[before].0);
            rates[phase].0 > before
        });
        for (number, (load, rates)) in slices {
            setup
                .put(&metered(number, load.protocol, rates[phase]))
                .unwrap();
        }
    }

    /// Sends in all slices while their rates change. Returns for each phase the rates of layer 1 as the API reports them,
    /// and at last what the receiver got beside them, Mbit/s.
    fn run(&self, ends: &Ends, setup: &Setup) -> Vec<Vec<f64>> {
        let _servers = self.servers(ends, setup);
        self.put(setup, 0);
        setup.wait_until_installed();
        let _clients = self.clients(ends);
        let phases = 0..self.slices[0].1.len();
        let measured = phases.map(|phase| {
            self.put(setup, phase);
            self.measure(ends, setup)
        });
        measured.collect()
    }

    fn measure(&self, ends: &Ends, setup: &Setup) -> Vec<f64> {
        let start = Instant::now();
        std::thread::sleep(SETTLING);
        let (from, before) = (Instant::now(), ends.received());
        let names = (1..=self.slices.len()).map(|number| format!("s{number}"));
        let mut sent: Vec<_> = names.map(|name| (name, Sent::default())).collect();
        while start.elapsed() < PHASE {
            for (name, sent) in &mut sent {
                sent.add(setup, name);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let received = (ends.received() - before) as f64 * 8e-6 / from.elapsed().as_secs_f64();
        setup.wait_until_installed();
        let mut rates: Vec<f64> = sent.into_iter().map(|(_, sent)| sent.mbit()).collect();
        rates.push(received - rates.iter().sum::<f64>());
        rates
    }

    fn clients(&self, ends: &Ends) -> Vec<Running> {
        let start = |(port, load): (u16, Load)| {
            let kind = match load.protocol {
                "udp" => "-u -l 1448",
                _ => "-C reno",
            };
            let each = load.each.map_or(String::new(), |rate| format!("-b {rate}"));
            let flows = load.flows;
            let arguments = format!("-c 192.0.2.2 -p {port} {kind} -P {flows} {each} -t 600");
            let mut client = ends.iperf3(0, &arguments);
            let running = Running(client.stdout(Stdio::null()).spawn().unwrap());
            if load.protocol == "udp" {
                std::thread::sleep(CONNECTING);
            }
            running
        };
        // A client of UDP never begins where the first packet of a flow is lost, so it goes before what fills queues.
        let mut ports = self.ports();
        ports.sort_by_key(|(_, load)| load.protocol != "udp");
        ports.into_iter().map(start).collect()
    }

    fn servers(&self, ends: &Ends, setup: &Setup) -> Vec<Running> {
        let ports = || self.ports().into_iter().map(|(port, _)| port);
        let servers = ports().map(|port| {
            let mut server = ends.iperf3(1, &format!("-s -p {port}"));
            Running(server.stdout(Stdio::null()).spawn().unwrap())
        });
        let servers = servers.collect();
        for port in ports() {
            setup.wait_until("iperf3 listens", || {
                let mut probe = ends.iperf3(0, &format!("-c 192.0.2.2 -p {port} -u -b 1M -t 1"));
                probe.output().unwrap().status.success()
            });
        }
        servers
    }
}

impl Ends {
    /// Returns the bytes of layer 1 that the receiver got so far.
    fn received(&self) -> u64 {
        let read = |counter: &str| -> u64 {
            let file = format!("/sys/class/net/eth0/statistics/rx_{counter}");
            let text = run_in(&self.names[1], &["cat", &file]);
            text.trim().parse().unwrap()
        };
        read("bytes") + 24 * read("packets")
    }
}

impl Setup {
    fn published(ends: &Ends) -> Self {
        let setup = Self::new(ends);
        let part = |text: &str, from: &str, to: &str| {
            let from = text.find(from).unwrap();
            text[from..from + text[from..].find(to).unwrap()].to_owned()
        };
        let before = setup.sandbox.read("gateway.yaml");
        let page = std::fs::read_to_string(PAGE).unwrap();
        let example = part(&page, "link: {", "controller:");
        let after = before.replace(&part(&before, "link: ", "metrics_port"), &example);
        setup.sandbox.write("gateway.yaml", after);
        setup
    }

    fn put(&self, slice: &Slice) -> Result<(), ClientError> {
        let put = self.client.put_slice(slice, Precondition::None, None);
        put.map(drop)
    }

    fn remove_all(&self) {
        for (name, _) in self.states().unwrap() {
            let removed = self.client.remove_slice(&name, Precondition::None, None);
            removed.unwrap();
        }
        self.wait_until("all are gone", || {
            self.states().is_some_and(|states| states.is_empty())
        });
    }
}

/// Port of a slice by its number; that of what is in no slice, by 0.
const fn first_port(number: u16) -> u16 {
    5200 + PORTS * number
}

/// A slice of `protocol` with rates in Mbit/s, and buckets of 100 ms.
fn metered(number: u16, protocol: &str, (min, max): (u64, u64)) -> Slice {
    let rate = |mbit: u64| json!({"rate_bps": mbit * 1_000_000, "burst_bytes": 1_250_000});
    let first = first_port(number);
    let ports = format!("{first}-{}", first + PORTS - 1);
    serde_json::from_value(json!({
        "name": format!("s{number}"),
        "matches": [{"protocol": protocol, "destination_port": ports}],
        "forward": {"guarantee": rate(min), "maximum": rate(max)},
    }))
    .unwrap()
}

fn refused(outcome: Result<(), ClientError>) -> (u16, String) {
    match outcome {
        Err(ClientError::Refused(problem)) => (problem.status, problem.detail.clone()),
        other => panic!("{other:?}"),
    }
}

/// Sent bytes of layer 1, and the time in which they were.
#[derive(Clone, Copy, Default)]
struct Sent {
    bytes: u64,
    nanos: u64,
    /// The report that was added last.
    at_ms: u64,
}

impl Sent {
    /// Adds the newest report of a slice.
    fn add(&mut self, setup: &Setup, name: &str) {
        let counters = setup.client.slice_counters(name, false).unwrap();
        let before = self.at_ms;
        let newer = counters.hops.iter().filter(|hop| hop.at_ms > before);
        for (hop, sent) in newer.filter_map(|hop| Some((hop, hop.forward.as_ref()?))) {
            self.bytes += sent.sent_bytes + 24 * sent.sent_frames;
            self.nanos += hop.interval_ns;
            self.at_ms = hop.at_ms;
        }
    }

    fn mbit(self) -> f64 {
        self.bytes as f64 * 8e3 / self.nanos as f64
    }
}

#[test]
fn slices_of_the_published_data_plane_are_created_changed_and_removed_at_run_time() {
    let Some(ends) = Ends::new("p") else { return };
    let setup = Setup::published(&ends);
    let _controller = setup.controller();
    let gateway = setup.gateway();
    setup.wait_for_link();
    let link = || setup.client.link("uplink").unwrap().forward;
    assert_eq!(link().admission, AdmissionRule::SumOfRates);
    // 1 Mbit/s is that of network control.
    assert_eq!(link().left.rate_bps, 99_000_000);

    let udp = pair([UDP, UDP]);
    let measured = udp.run(&ends, &setup);
    // However little a busy machine sends; a bucket that has filled meanwhile is 2.8 % of what is measured.
    for (phase, rates) in measured.into_iter().enumerate() {
        for (rate, limits) in rates.into_iter().zip(PAIR) {
            let (_, max) = limits[phase];
            assert!(rate > 0.0 && rate < 1.05 * max as f64, "{rate} of {max}");
        }
    }

    for number in [2, 1] {
        let back = metered(number, "udp", PAIR[usize::from(number) - 1][0]);
        setup.put(&back).unwrap();
    }
    // 90 of 99 Mbit/s are guaranteed.
    let third = metered(3, "udp", (20, 30));
    let (status, why) = refused(setup.put(&third));
    assert_eq!(status, 409);
    assert!(
        why.contains("only 9 Mbit/s (L1) of the link is free: write a rate of at most 9 Mbit/s"),
        "{why}"
    );
    let offer = setup.client.offer(&third).unwrap();
    assert_eq!(
        (offer.accepted, offer.largest_rate_bps),
        (false, Some(9_000_000))
    );
    let mut late = metered(3, "udp", (20, 30));
    let terms = late.forward.as_mut().unwrap();
    terms.guarantee.as_mut().unwrap().delay_ns = Some(5_000_000);
    let (status, why) = refused(setup.put(&late));
    assert_eq!(status, 409);
    assert!(
        why.contains("the link promises rates only") && why.contains("leave the delay out"),
        "{why}"
    );

    // What is on the disk is in force after a restart.
    gateway.kill();
    let _gateway = setup.gateway();
    setup.wait_until("the gateway is back", || {
        setup
            .sandbox
            .read("gateway.log")
            .matches("event=started")
            .count()
            == 2
    });
    setup.wait_until_installed();
    setup.remove_all();
    assert_eq!(link().left.rate_bps, 99_000_000);
}

#[test]
#[ignore = "takes a machine that does nothing else"]
fn slices_of_the_published_data_plane_have_their_guarantees_and_share_the_rest() {
    let Some(ends) = Ends::new("g") else { return };
    let setup = Setup::published(&ends);
    let _controller = setup.controller();
    let _gateway = setup.gateway();
    setup.wait_for_link();
    let udp = pair([UDP, UDP]);
    let measured = udp.run(&ends, &setup);
    for (phase, rates) in measured.iter().enumerate() {
        for (rate, limits) in rates.iter().zip(PAIR) {
            let (min, max) = limits[phase];
            let kept = 0.95 * min as f64..1.02 * max as f64;
            assert!(kept.contains(rate), "{rate} of ({min}, {max})");
        }
        let sum: f64 = rates[..2].iter().sum();
        assert!((94.0..101.0).contains(&sum), "the rest is used: {sum}");
    }
    // The rest goes to yellow frames in proportion to their arrivals, here of 10 and 80, then 20 and 70 Mbit/s. In the third phase that depends
    // on the bursts of iperf3.
    let expected = [71.1, 28.9, 62.2, 37.8];
    let of_slices = measured.iter().flat_map(|rates| &rates[..2]);
    for (found, expected) in of_slices.zip(expected) {
        assert!(
            (found - expected).abs() < 6.0,
            "{found} instead of {expected}"
        );
    }
}

/// V2 to V9, which the publication ran at 10 Gbit/s, with two flows of TCP or one of UDP where it has flows of 10 Gbit/s.
fn published() -> Vec<(&'static str, Experiment)> {
    let beside = |outside| Experiment {
        slices: vec![(TCP, &[(70, 80), (20, 100)])],
        outside: Some(outside),
    };
    let slices = |slices: Vec<(Load, Rates)>| Experiment {
        slices,
        outside: None,
    };
    let four = |protocol| load(protocol, 4, Some("20M"));
    let six = |protocols: [&'static str; 4]| {
        let rates: [Rates; 4] = [
            &[(10, 10), (10, 40)],
            &[(10, 20), (10, 30)],
            &[(10, 30), (10, 20)],
            &[(10, 40), (10, 10)],
        ];
        let loads = protocols.map(|protocol| load(protocol, 2, Some("20M")));
        slices(loads.into_iter().zip(rates).collect())
    };
    let udp_100 = load("udp", 100, Some("1M"));
    let tcp_100 = load("tcp", 100, None);
    let seven: [Rates; 2] = [
        &[(35, 40), (30, 40), (10, 50)],
        &[(10, 50), (15, 50), (25, 35)],
    ];
    let eight = vec![
        (
            load("udp", 500, Some("200K")),
            [(10, 20), (10, 20)].as_slice(),
        ),
        (load("tcp", 500, None), &[(10, 20), (10, 20)]),
        (load("udp", 500, Some("200K")), &[(10, 40), (30, 40)]),
        (load("tcp", 500, None), &[(10, 40), (30, 40)]),
    ];
    let twenty = |number| -> (Load, Rates) {
        match number < 10 {
            true => (load("udp", 100, Some("90K")), &[(2, 10), (4, 10)]),
            false => (load("tcp", 100, None), &[(2, 10), (2, 10)]),
        }
    };
    vec![
        ("V2 TCP, TCP", beside(TCP)),
        ("V3 TCP, UDP", beside(UDP)),
        ("V4 TCP, TCP", pair([TCP, TCP])),
        ("V4 UDP, TCP", pair([UDP, TCP])),
        ("V5 TCP, TCP", pair([four("tcp"), four("tcp")])),
        ("V5 UDP, TCP", pair([four("udp"), four("tcp")])),
        ("V6 TCP", six(["tcp"; 4])),
        ("V6 UDP, TCP, UDP, TCP", six(["udp", "tcp", "udp", "tcp"])),
        (
            "V7",
            slices(vec![
                (udp_100, seven[0]),
                (udp_100, seven[0]),
                (tcp_100, seven[1]),
                (tcp_100, seven[1]),
            ]),
        ),
        ("V8", slices(eight)),
        ("V9", slices((0..20).map(twenty).collect())),
    ]
}

/// Prints what slices get. One whose packets come at its rate at least has its guarantee.
#[test]
#[ignore = "measures, for docs/studies/p4-tins.md"]
fn the_published_rates_under_a_controller() {
    let Some(ends) = Ends::new("v") else { return };
    let setup = Setup::published(&ends);
    let _controller = setup.controller();
    let _gateway = setup.gateway();
    setup.wait_for_link();
    let mut short = Vec::new();
    for (name, experiment) in published() {
        let measured = experiment.run(&ends, &setup);
        for (phase, rates) in measured.iter().enumerate() {
            let sum: f64 = rates.iter().sum();
            println!(
                "{name}, phase {}: {rates:.1?}, together {sum:.1} Mbit/s of L1",
                phase + 1
            );
            for (rate, (_, limits)) in rates.iter().zip(&experiment.slices) {
                let (min, _) = limits[phase];
                // Where nothing was sent at all there is no number.
                if rate.is_nan() || *rate < 0.95 * min as f64 {
                    short.push(format!("{name}, phase {}: {rate:.1} of {min}", phase + 1));
                }
            }
        }
        setup.remove_all();
    }
    assert!(short.is_empty(), "{short:#?}");
}
