//! Hosts in network namespaces of their own, one behind the other: `gen` — `mid` — `sink`. The second
//! forwards, and may have a token bucket towards the third; or it is left out.

use crate::bench::REAL_PACKETS;
use crate::support::{record, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLockReadGuard};
use std::thread::{self, sleep};
use std::time::Duration;

/// What is between the two hosts that send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// A wire.
    Wire,
    /// A router.
    Router,
    /// A router that sends on no more than 10 Mbit/s, out of a queue of 20 kB.
    Bottleneck,
}

/// Deleted when it goes out of scope, on panic too.
pub struct Testbed {
    prefix: String,
    between: Between,
    _beside_no_study: RwLockReadGuard<'static, ()>,
}

/// The address of the receiving host.
pub const SINK: &str = "10.99.2.2";
const TOOLS: [&str; 5] = ["ip", "tc", "ethtool", "tcpdump", "iperf3"];

impl Testbed {
    /// The hosts, or why there can be none.
    pub fn new(between: Between) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        for tool in TOOLS {
            if Command::new(tool).arg("-V").output().is_err() {
                return Err(format!("{tool} is not installed"));
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let testbed = Self {
            prefix: format!("slw{}-{number}", std::process::id()),
            between,
            _beside_no_study: REAL_PACKETS.read().unwrap_or_else(PoisonError::into_inner),
        };
        for host in ["gen", "mid", "sink"] {
            call("ip", &["netns", "add", &testbed.name(host)])?;
            testbed.on(host, "ip link set lo up")?;
        }
        if between == Between::Wire {
            testbed.join(("gen", "10.99.2.1"), ("sink", SINK))?;
            return Ok(testbed);
        }
        testbed.join(("gen", "10.99.1.1"), ("mid", "10.99.1.2"))?;
        testbed.join(("mid", "10.99.2.1"), ("sink", SINK))?;
        testbed.on("gen", "ip route add default via 10.99.1.2")?;
        testbed.on("sink", "ip route add default via 10.99.2.1")?;
        testbed.on("mid", "sysctl -q -w net.ipv4.ip_forward=1")?;
        if between == Between::Bottleneck {
            let bucket = "tc qdisc add dev sink root tbf rate 10mbit burst 5kb limit 20kb";
            testbed.on("mid", bucket)?;
        }
        Ok(testbed)
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    /// A wire between two hosts. Each calls its end by the other's name; the adapters neither join nor
    /// split segments.
    fn join(
        &self,
        (a, a_address): (&str, &str),
        (b, b_address): (&str, &str),
    ) -> Result<(), String> {
        let (a_name, b_name) = (self.name(a), self.name(b));
        let link = ["link", "add", b, "netns", &a_name, "type", "veth"];
        let peer = ["peer", "name", a, "netns", &b_name];
        call("ip", &[&link[..], &peer].concat())?;
        for (host, end, address) in [(a, b, a_address), (b, a, b_address)] {
            self.on(host, &format!("ip addr add {address}/24 dev {end}"))?;
            self.on(host, &format!("ip link set {end} up"))?;
            self.on(
                host,
                &format!("ethtool -K {end} tso off gso off gro off tx off"),
            )?;
        }
        Ok(())
    }

    /// Frames that the token bucket dropped.
    pub fn dropped(&self) -> u64 {
        let stderr = self.on("mid", "tc -s -j qdisc show dev sink").unwrap();
        let stderr: Value = serde_json::from_str(&stderr).unwrap();
        stderr[0]["drops"].as_u64().unwrap()
    }

    /// A counter of the kernel of that host: `Tcp`, `RetransSegs`.
    pub fn counter(&self, host: &str, protocol: &str, name: &str) -> u64 {
        let stderr = self.on(host, "cat /proc/net/snmp").unwrap();
        let start = format!("{protocol}: ");
        let mut lines = stderr.lines().filter_map(|line| line.strip_prefix(&start));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let mut both = names.split(' ').zip(values.split(' '));
        let value = both.find(|(found, _)| *found == name).unwrap().1;
        value.parse().unwrap()
    }

    fn command(&self, host: &str, line: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name(host)])
            .args(line.split(' '))
            .stdin(Stdio::null());
        command
    }

    fn on(&self, host: &str, line: &str) -> Result<String, String> {
        stderr(self.command(host, line).output(), line)
    }

    /// Capture what passes the one interface of `gen` or `sink` into `file`, from now on.
    pub fn capture(&self, host: &str, file: &Path) -> Capturing {
        let interface = match (self.between, host) {
            (Between::Wire, "gen") => "sink",
            (Between::Wire, _) => "gen",
            _ => "mid",
        };
        let line = format!(
            "tcpdump -n -i {interface} -s 96 -U --immediate-mode -B 16384 -Z root \
             --time-stamp-precision=nano -w {}",
            file.display()
        );
        let mut command = self.command(host, &line);
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "tcpdump ended");
        }
        Capturing {
            child,
            stderr: Box::new(stderr),
        }
    }

    /// What iperf3 reports of sending to the third host.
    pub fn iperf3(&self, settings: &str) -> Value {
        let mut server = self.command("sink", "iperf3 -s -1 --forceflush");
        let server = server.stdout(Stdio::piped()).spawn().unwrap();
        let mut server = Stopped(server);
        let mut listening = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let ready = listening
            .by_ref()
            .map(Result::unwrap)
            .any(|line| line.contains("listening"));
        assert!(ready);
        // Nobody may be left to write to a pipe that is not read.
        let reader = thread::spawn(move || listening.for_each(drop));
        let line = format!("iperf3 -c {SINK} --json {settings}");
        let stderr = self.on("gen", &line).unwrap();
        server.0.wait().unwrap();
        reader.join().unwrap();
        serde_json::from_str(&stderr).unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for host in ["gen", "mid", "sink"] {
            // What still runs in there was started by this test, and keeps the namespace alive.
            let _ = call("ip", &["netns", "del", &self.name(host)]);
        }
    }
}

/// A process that does not outlive the test.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// tcpdump, as long as it captures.
pub struct Capturing {
    child: Child,
    stderr: Box<dyn Read>,
}

impl Capturing {
    /// Stop once nothing more comes; how many packets it missed.
    pub fn stop(mut self, file: &Path) -> u64 {
        let size = || fs::metadata(file).unwrap().len();
        let mut before = 0;
        while before != size() {
            before = size();
            sleep(Duration::from_millis(300));
        }
        call("kill", &["-INT", &self.child.id().to_string()]).unwrap();
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        self.child.wait().unwrap();
        let line = stderr
            .lines()
            .find(|line| line.contains("dropped by kernel"))
            .unwrap();
        line.split(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Packets in a capture, as tcpdump reads it.
pub fn count(file: &Path, filter: &str) -> u64 {
    let mut command = Command::new("tcpdump");
    command.args(["-n", "-r"]).arg(file).args(filter.split(' '));
    stderr(command.output(), "tcpdump -r")
        .unwrap()
        .lines()
        .count() as u64
}

/// The flows of a record that go from the first host to a port of the third.
pub fn flows_to(path: &Path, protocol: u8) -> Vec<Value> {
    let record = record(path);
    let flows = record["flows"].as_array().unwrap().iter();
    flows
        .filter(|flow| {
            flow["flow"]["protocol"] == protocol
                && flow["flow"]["destination"] == SINK
                && flow["flow"]["destination_port"] == 5201
        })
        .cloned()
        .collect()
}

fn call(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    stderr(output, &format!("{program} {}", arguments.join(" ")))
}

fn stderr(output: std::io::Result<Output>, line: &str) -> Result<String, String> {
    let output = output.map_err(|error| format!("{line}: {error}"))?;
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let error = text(&output.stderr);
        Err(format!("{line}: {}", error.trim()))
    }
}
