//! Namespaces with virtual interfaces, a gateway between them, and somebody who sends and receives.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the tests and the benchmark each use a part of it"
)]

use slicewise_live::DirectionParams;
use slicewise_live::af_packet::AfPacketPort;
use slicewise_live::frame_memory::FrameMemory;
use slicewise_live::gateway::{self, GatewayParams, PacketIo, WaitMode};
use slicewise_live::metrics::{self, Samples};
use slicewise_live::port::Port;
use slicewise_live::sys::interface::Interfaces;
use slicewise_live::sys::namespace;
use slicewise_model::{
    ClassMap, ClassSpec, Condition, Discipline, GuaranteeSpec, MatchMode, PolicySpec, PrioritySpec,
    QueueLimitSpec, Rate, RateSpec, ReallocatedClassSpec, ReallocatedPolicy, ReallocationSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration as Span};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The environment variable with the task of a gateway of a test, in words.
pub const TASK: &str = "SLICEWISE_GATEWAY_OF_A_TEST";

/// Run a command; its output, where it worked.
pub fn run(command: &str) -> Result<String, String> {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

/// A network namespace that is gone when this is dropped.
pub struct Namespace(String);

impl Namespace {
    /// `None`, and says why, where this machine or this user cannot.
    pub fn new(what: &str) -> Option<Self> {
        let name = format!("sw-{what}-{}", std::process::id());
        match run(&format!("ip netns add {name}")) {
            Ok(_) => Some(Self(name)),
            Err(reason) => {
                eprintln!("skipped: network namespaces cannot be made here: {reason}");
                None
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = run(&format!("ip netns del {}", self.0));
    }
}

/// `source`—`left` [gateway] `right`—`sink`, three namespaces that are gone when this is dropped.
pub struct Testbed {
    prefix: String,
}

impl Testbed {
    /// `None`, and says why, where this machine or this user cannot.
    pub fn new(what: &str, mtu: u32) -> Option<Self> {
        let testbed = Self {
            prefix: format!("sw-{what}-{}", std::process::id()),
        };
        match testbed.build(mtu) {
            Ok(()) => Some(testbed),
            Err(reason) => {
                eprintln!("skipped: network namespaces cannot be made here: {reason}");
                None
            }
        }
    }

    pub fn namespace(&self, which: &str) -> String {
        format!("{}-{which}", self.prefix)
    }

    fn build(&self, mtu: u32) -> Result<(), String> {
        for which in ["source", "gateway", "sink"] {
            let name = self.namespace(which);
            run(&format!("ip netns add {name}"))?;
            run(&format!("ip -n {name} link set lo up"))?;
        }
        self.connect("source", "left", mtu)?;
        self.connect("sink", "right", mtu)
    }

    /// Connect an end to the gateway's namespace.
    pub fn connect(&self, end: &str, interface: &str, mtu: u32) -> Result<(), String> {
        let (there, here) = (self.namespace(end), self.namespace("gateway"));
        run(&format!(
            "ip link add eth0 netns {there} type veth peer name {interface} netns {here}"
        ))?;
        for (namespace, name) in [(&there, "eth0"), (&here, interface)] {
            // Nobody but us is to send on it.
            run(&format!(
                "ip -n {namespace} link set {name} addrgenmode none mtu {mtu}"
            ))?;
            // The offloads that a virtual interface pretends to have; not all have all.
            let _ = run(&format!(
                "ip netns exec {namespace} ethtool -K {name} tx off tso off gso off gro off"
            ));
            run(&format!("ip -n {namespace} link set {name} up"))?;
        }
        Ok(())
    }

    pub fn endpoint(&self, end: &str) -> Endpoint {
        Endpoint::open(&self.namespace(end), "eth0")
    }

    pub fn link(&self, interface: &str) -> String {
        let namespace = self.namespace("gateway");
        run(&format!("ip -n {namespace} -d link show {interface}")).unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for which in ["source", "gateway", "sink"] {
            let _ = run(&format!("ip netns del {}", self.namespace(which)));
        }
    }
}

/// Sends and receives whole frames.
pub struct Endpoint {
    pub memory: FrameMemory,
    pub port: AfPacketPort,
}

impl Endpoint {
    pub fn open(namespace: &str, interface: &str) -> Self {
        let port = namespace::within(namespace, || {
            let state = Interfaces::new().unwrap().state(interface).unwrap();
            AfPacketPort::open(&state).unwrap()
        });
        Self {
            memory: FrameMemory::new(8192).unwrap(),
            port: port.unwrap(),
        }
    }

    pub fn send(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            while self.port.room(&mut self.memory) == 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
            let id = self.memory.store(&[frame]).unwrap();
            let _ = self.port.transmit(&mut self.memory, &[id]);
        }
    }

    /// What has arrived, until there are so many or the time is over.
    pub fn receive(&mut self, count: usize, patience: Duration) -> Vec<Vec<u8>> {
        let start = Instant::now();
        let mut frames = Vec::new();
        while frames.len() < count && start.elapsed() < patience {
            let mut arrivals = Vec::new();
            let _ = self.port.receive(&mut self.memory, &mut arrivals);
            if arrivals.is_empty() {
                std::thread::sleep(Duration::from_micros(200));
            }
            for arrival in arrivals {
                frames.push(
                    self.memory
                        .pieces(arrival.frame)
                        .flatten()
                        .copied()
                        .collect(),
                );
                self.memory.release(arrival.frame);
            }
        }
        frames
    }
}

/// A gateway in a process of its own.
pub struct Gateway {
    child: Child,
    lines: Receiver<String>,
    metrics_port: u16,
}

impl Gateway {
    /// This very program, which is to [`be_gateway`].
    pub fn start(testbed: &Testbed, task: &str) -> Self {
        let mut child = Self::spawn(testbed, task, Stdio::piped());
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut gateway = Self {
            child,
            lines,
            metrics_port: 0,
        };
        if task.split_whitespace().nth(3).is_some() {
            let line = gateway.wait_for("event=metrics");
            gateway.metrics_port = line.rsplit(':').next().unwrap().parse().unwrap();
        }
        gateway.wait_for("event=started");
        gateway
    }

    /// One that logs to `stderr`, whatever that is, and serves its metrics on a port of its own.
    pub fn start_logging_to(testbed: &Testbed, task: &str, stderr: Stdio, port: u16) -> Self {
        let gateway = Self {
            child: Self::spawn(testbed, &format!("{task} {port}"), stderr),
            lines: channel().1,
            metrics_port: port,
        };
        gateway.wait_until(testbed, |_| true);
        gateway
    }

    fn spawn(testbed: &Testbed, task: &str, stderr: Stdio) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &testbed.namespace("gateway")])
            .arg(std::env::current_exe().unwrap())
            .env(TASK, task)
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap()
    }

    /// Its metrics, where it serves them.
    pub fn metrics(&self, testbed: &Testbed) -> Option<Samples> {
        let namespace = testbed.namespace("gateway");
        namespace::within(&namespace, || metrics::read(self.metrics_port).ok()).unwrap()
    }

    /// Wait until its metrics are so.
    pub fn wait_until(&self, testbed: &Testbed, is_so: impl Fn(&Samples) -> bool) -> Samples {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            match self.metrics(testbed) {
                Some(samples) if is_so(&samples) => return samples,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        panic!("it never came to that: {:#?}", self.metrics(testbed));
    }

    /// Where it serves its metrics, where its task has a fourth word.
    pub fn metrics_port(&self) -> u16 {
        self.metrics_port
    }

    /// The next line of its log with this in it.
    pub fn wait_for(&self, what: &str) -> String {
        let mut seen = Vec::new();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            match self.lines.recv_timeout(Duration::from_millis(200)) {
                Ok(line) if line.contains(what) => return line,
                Ok(line) => seen.push(line),
                Err(_) => {}
            }
        }
        panic!("`{what}` does not come; what came is {seen:#?}");
    }

    /// Wait for a thread whose name begins like that: it has its name once it runs.
    pub fn wait_for_thread(&self, name: &str) {
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_there = || {
            let mut tasks = std::fs::read_dir(&tasks).unwrap().flatten();
            tasks.any(|task| {
                let name_read = std::fs::read_to_string(task.path().join("comm"));
                name_read.is_ok_and(|read| read.starts_with(name))
            })
        };
        let start = Instant::now();
        while !is_there() {
            assert!(start.elapsed() < Duration::from_secs(60), "no {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: &str) {
        run(&format!("kill -{signal} {}", self.child.id())).unwrap();
    }

    /// Time that processors have worked for it, in steps of 10 ms.
    pub fn processor_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let behind_name = stat.rsplit(')').next().unwrap();
        let ticks = behind_name.split_whitespace().skip(11).take(2);
        ticks.map(|t| t.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }

    /// Whether it ended well.
    pub fn wait(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where this process was started to be a gateway, be one; returns whether it was.
pub fn be_gateway() -> bool {
    let Ok(task) = std::env::var(TASK) else {
        return false;
    };
    let words: Vec<&str> = task.split_whitespace().collect();
    let packet_io = match words[0] {
        "af_xdp" => PacketIo::AfXdp,
        "af_packet" => PacketIo::AfPacket,
        other => panic!("{other}"),
    };
    let rate = words[1].parse().unwrap();
    let direction = direction(rate, words[2]);
    let params = GatewayParams {
        interfaces: ["left".to_owned(), "right".to_owned()],
        directions: [direction.clone(), direction],
        reallocated: [(words[2] == "lent").then(|| lent(rate)), None],
        packet_io,
        memory_bytes: 256 << 20,
        metrics_port: words.get(3).map(|port| port.parse().unwrap()),
    };
    let wait = WaitMode {
        busy_poll: words.get(4) == Some(&"busy"),
        keep_awake: words.get(4) == Some(&"awake"),
    };
    let mut reloads = 0;
    let mut load = || {
        // Long enough that a second reload is asked for before the first is in force.
        std::thread::sleep(Duration::from_millis(100));
        reloads += 1;
        let mut params = params.clone();
        let (other, rate) = match words[2] {
            "lent" => ("fifo", rate),
            // On a slower link.
            "exchange" => ("exchanged", rate / 2),
            "third" => ("no third", rate),
            same => (same, rate),
        };
        if reloads % 2 == 1 {
            params.directions = [0; 2].map(|_| self::direction(rate, other));
            params.reallocated = [None, None];
        }
        Ok(params)
    };
    gateway::run(&params, wait, &mut load, None).unwrap();
    true
}

/// The port that the slice to be protected sends to.
pub const CRITICAL_PORT: u16 = 5201;
/// The port of the slice with a queue longer than the memory.
pub const FLOODED_PORT: u16 = 5202;
/// The port of a slice that comes and goes.
pub const THIRD_PORT: u16 = 5203;

fn direction(rate: u64, policy: &str) -> DirectionParams {
    let link = Rate {
        rate: BitRate::new(rate),
        accounting: Accounting::L1,
    };
    let mut critical = ClassSpec::new(ClassMap {
        name: "critical".to_owned(),
        mode: MatchMode::All,
        conditions: vec![Condition::DestinationPort(CRITICAL_PORT..=CRITICAL_PORT)],
    });
    let (classes, discipline) = match policy {
        "fifo" => (vec![], Discipline::Fifo),
        "priority" => {
            critical.priority = Some(PrioritySpec {
                level: 1,
                rate: None,
                burst: None,
                accounting: Accounting::L2,
            });
            (vec![critical], Discipline::MinimumShare)
        }
        "flood" => {
            critical.priority = Some(PrioritySpec {
                level: 1,
                rate: None,
                burst: None,
                accounting: Accounting::L2,
            });
            let mut bulk = ClassSpec::new(ClassMap {
                name: "bulk".to_owned(),
                mode: MatchMode::All,
                conditions: vec![Condition::DestinationPort(FLOODED_PORT..=FLOODED_PORT)],
            });
            bulk.queue.limit = Some(QueueLimitSpec::Packets(200_000));
            (vec![critical, bulk], Discipline::MinimumShare)
        }
        "guaranteed" => {
            critical.guarantee = Some(GuaranteeSpec {
                rate: RateSpec::PercentMilli(50_000),
                burst: Some(ByteCount::new(6_088).into()),
                delay: Some(Span::from_millis(5)),
                smallest_frame: None,
            });
            (vec![critical], Discipline::Guaranteed)
        }
        "exchange" | "exchanged" => {
            let mut bulk = ClassSpec::new(ClassMap {
                name: "bulk".to_owned(),
                mode: MatchMode::All,
                conditions: vec![Condition::DestinationPort(FLOODED_PORT..=FLOODED_PORT)],
            });
            let guaranteed = |percent: u32| {
                Some(GuaranteeSpec {
                    rate: RateSpec::PercentMilli(percent * 1_000),
                    burst: Some(ByteCount::new(6_088).into()),
                    delay: Some(Span::from_millis(50)),
                    smallest_frame: None,
                })
            };
            let is_exchanged = policy == "exchanged";
            critical.guarantee = guaranteed(if is_exchanged { 10 } else { 50 });
            bulk.guarantee = guaranteed(if is_exchanged { 50 } else { 10 });
            let mut classes = vec![critical, bulk];
            if is_exchanged {
                classes.insert(0, third());
            }
            (classes, Discipline::Guaranteed)
        }
        "third" => (vec![critical, third()], Discipline::Guaranteed),
        "no third" => (vec![critical], Discipline::Guaranteed),
        "lent" => (lent(rate).spec.classes, Discipline::MinimumShare),
        other => panic!("{other}"),
    };
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes,
        discipline,
        guaranteed: None,
        queues: Vec::new(),
    };
    DirectionParams {
        link,
        policy: spec.resolve_for(link.into()).unwrap().into(),
        seed: 1,
    }
}

/// Best effort that is shaped to half of the link, and a loop that lends it what the critical class leaves.
fn lent(rate: u64) -> ReallocatedPolicy {
    let class = |name: &str, port: u16| {
        ClassSpec::new(ClassMap {
            name: name.to_owned(),
            mode: MatchMode::All,
            conditions: vec![Condition::DestinationPort(port..=port)],
        })
    };
    let mut bulk = class("bulk", FLOODED_PORT);
    bulk.shape = Some(RateSpec::PercentMilli(50_000).into());
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes: vec![class("critical", CRITICAL_PORT), bulk],
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    };
    let half = |name: &str| ReallocatedClassSpec {
        name: name.to_owned(),
        guarantee: RateSpec::PercentMilli(50_000),
        minimum: None,
        maximum: None,
    };
    let reallocation = ReallocationSpec {
        every: Span::from_millis(20),
        delay: Span::from_millis(5),
        rate: None,
        headroom: 0,
        weight: 100_000,
        classes: vec![half("critical"), half("bulk")],
    };
    let params = reallocation.resolve(&spec, BitRate::new(rate)).unwrap();
    ReallocatedPolicy { spec, params }
}

/// A slice that comes and goes.
fn third() -> ClassSpec {
    let mut third = ClassSpec::new(ClassMap {
        name: "third".to_owned(),
        mode: MatchMode::All,
        conditions: vec![Condition::DestinationPort(THIRD_PORT..=THIRD_PORT)],
    });
    third.queue.limit = Some(QueueLimitSpec::Packets(1_000));
    third
}

/// UDP in IPv4, from and to addresses of nobody.
pub fn udp(tags: &[[u8; 4]], port: u16, bytes: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa];
    frame.extend(tags.iter().flatten());
    frame.extend([0x08, 0x00]);
    let start = frame.len();
    let total = u16::try_from(bytes - start).unwrap();
    frame.extend([
        0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1,
    ]);
    frame[start + 2..start + 4].copy_from_slice(&total.to_be_bytes());
    let words = frame[start..].chunks(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let checksum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(40_000u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(bytes, 0x5a);
    frame[bytes - 4..].copy_from_slice(&number.to_be_bytes());
    frame
}
