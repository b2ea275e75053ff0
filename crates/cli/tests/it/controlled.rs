//! A real controller and a real gateway with real traffic, between network namespaces. Needs root, iproute2 and iperf3;
//! says so and passes where they are missing.

mod partitioned;
mod published;

use crate::support::{Sandbox, is_installed};
use serde_json::{Value, json};
use slicewise_api::{
    Client, ClientError, ClientParams, EventKind, Precondition, Slice, SliceQuery, SliceState,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than anything here takes: only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often controller and gateway are killed.
const KILLS: &str = "SLICEWISE_TEST_KILLS";

/// A sender and a receiver in namespaces, and two interfaces between them here. Gone when this is dropped.
pub struct Ends {
    names: [String; 2],
    interfaces: [String; 2],
}

/// Look until it is so; a test fails with what gateway and controller logged.
fn wait_until(sandbox: &Sandbox, what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let logs = ["gateway.log", "controller.log"].map(|log| sandbox.read(log));
        assert!(
            start.elapsed() < PATIENCE,
            "never: {what}\n{}",
            logs.join("\n")
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn run(line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    let output = command
        .args(words)
        .output()
        .map_err(|error| error.to_string())?;
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    output
        .status
        .success()
        .then_some(())
        .ok_or(format!("{line}: {error}"))
}

/// Returns the output of a program in a namespace.
fn run_in(namespace: &str, command: &[&str]) -> String {
    let mut inside = Command::new("ip");
    let output = inside
        .args(["netns", "exec", namespace])
        .args(command)
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

impl Ends {
    pub fn new(what: &str) -> Option<Self> {
        for program in ["ip", "ethtool", "iperf3"] {
            if !is_installed(program) {
                println!("skipped: {program} is not installed");
                return None;
            }
        }
        let id = std::process::id() % 100_000;
        let ends = Self {
            names: ["a", "b"].map(|end| format!("sw{what}{end}{id}")),
            interfaces: ["l", "r"].map(|side| format!("sw{what}{side}{id}")),
        };
        match ends.build() {
            Ok(()) => Some(ends),
            Err(reason) => {
                println!("skipped: network namespaces cannot be made here: {reason}");
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        for ((name, interface), address) in self.names.iter().zip(&self.interfaces).zip(1..) {
            run(&format!("ip netns add {name}"))?;
            run(&format!(
                "ip link add {interface} type veth peer name eth0 netns {name}"
            ))?;
            run(&format!("ip link set {interface} addrgenmode none up"))?;
            run(&format!(
                "ip -n {name} addr add 192.0.2.{address}/24 dev eth0"
            ))?;
            run(&format!("ip -n {name} link set eth0 up"))?;
            run(&format!("ip -n {name} link set lo up"))?;
            run(&format!(
                "ip netns exec {name} ethtool -K eth0 tx off tso off gso off gro off"
            ))?;
        }
        Ok(())
    }

    /// iperf3 in a namespace.
    pub fn iperf3(&self, end: usize, arguments: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end], "iperf3"]);
        command.args(arguments.split_whitespace());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        for interface in &self.interfaces {
            let _ = run(&format!("ip link del {interface}"));
        }
        for name in &self.names {
            let _ = run(&format!("ip netns del {name}"));
        }
    }
}

/// A process that is killed when this is dropped.
pub struct Running(pub Child);

impl Running {
    fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Shifts the time of day of a process by the seconds that a file says, and leaves clocks that do not jump alone.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    char text[32] = "";
    int file = clock == CLOCK_REALTIME ? open(getenv("SHIFT"), O_RDONLY) : -1;
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) > 0) time->tv_sec += atol(text);
        close(file);
    }
    return result;
}
"#;

/// An address that no other test has: a controller that is started again would find its port taken where others take any free one of 127.0.0.1.
fn own_address() -> String {
    static TAKEN: AtomicU8 = AtomicU8::new(0);
    let [high, low] = [8, 0].map(|shift| std::process::id() >> shift & 0xff);
    let own = TAKEN.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{low}.{own}:9650", 1 + high % 254)
}

/// A controller and a gateway in a folder.
pub struct Setup {
    sandbox: Sandbox,
    /// Set for both.
    environment: Vec<(&'static str, PathBuf)>,
    /// Where the controller serves.
    listen: String,
    client: Client,
}

impl Setup {
    pub fn new(ends: &Ends) -> Self {
        let sandbox = Sandbox::new();
        let listen = own_address();
        let [left, right] = &ends.interfaces;
        sandbox.write(
            "gateway.yaml",
            format!(
                "interfaces: [{left}, {right}]\nlink: 20 Mbit/s\npolicy: {{discipline: guaranteed, classes: []}}\n\
                 metrics_port: 0\ncontroller:\n  url: http://{listen}\n  name: edge\n  link: uplink\n  \
                 state: edge.state\n"
            ),
        );
        let client = Client::new(&ClientParams {
            url: format!("http://{listen}"),
            token: None,
            authorities: None,
        });
        Self {
            sandbox,
            environment: Vec::new(),
            listen,
            client: client.unwrap(),
        }
    }

    /// Where the controller serves.
    pub fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// Run both under a clock that [`Self::shift`] moves; `false` without a C compiler.
    fn shift_clocks(&mut self) -> bool {
        let Some(library) = self.sandbox.preload(SHIFTED_CLOCK) else {
            return false;
        };
        self.environment = vec![
            ("LD_PRELOAD", library),
            ("SHIFT", self.sandbox.path("shift")),
        ];
        true
    }

    fn shift(&self, hours: i64) {
        let new = self.sandbox.path("new");
        std::fs::write(&new, (hours * 3600).to_string()).unwrap();
        std::fs::rename(new, self.sandbox.path("shift")).unwrap();
    }

    fn start(&self, log: &str, arguments: &[&str]) -> Running {
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.sandbox.path(log))
            .unwrap();
        let mut command = self.sandbox.command(arguments);
        command.envs(self.environment.iter().cloned());
        command.stdout(Stdio::null()).stderr(log);
        Running(command.spawn().unwrap())
    }

    pub fn controller(&self) -> Running {
        let store = "sqlite:controller.sqlite";
        self.start(
            "controller.log",
            &["controller", "--store", store, "--listen", &self.listen],
        )
    }

    pub fn gateway(&self) -> Running {
        self.start("gateway.log", &["gateway", "gateway.yaml"])
    }

    pub fn wait_until(&self, what: &str, is_so: impl FnMut() -> bool) {
        wait_until(&self.sandbox, what, is_so);
    }

    pub fn wait_for_link(&self) {
        self.wait_until("the link is announced", || {
            self.client.links().is_ok_and(|links| !links.is_empty())
        });
    }

    fn states(&self) -> Option<Vec<(String, SliceState)>> {
        let page = self.client.slices(&SliceQuery::default()).ok()?;
        Some(
            page.items
                .into_iter()
                .map(|record| (record.slice.name, record.state))
                .collect(),
        )
    }

    pub fn wait_until_installed(&self) {
        self.wait_until("all slices are installed", || {
            let states = self.states();
            states.is_some_and(|states| {
                states
                    .iter()
                    .all(|(_, state)| *state == SliceState::Installed)
            })
        });
    }
}

/// UDP to a port.
pub fn slice(name: &str, port: u16, guarantee: Option<Value>) -> Slice {
    let terms = json!({"guarantee": guarantee, "weight": 1});
    serde_json::from_value(json!({
        "name": name,
        "tenant": "default",
        "path": ["uplink"],
        "matches": [{"protocol": "udp", "destination_port": port.to_string()}],
        "forward": terms,
    }))
    .unwrap()
}

/// Percent of the packets that an iperf3 sender lost.
pub fn lost_percent(report: &[u8]) -> f64 {
    let report: Value = serde_json::from_slice(report).unwrap();
    report["end"]["sum"]["lost_percent"].as_f64().unwrap()
}

#[test]
fn a_slice_that_was_asked_for_holds_beside_one_that_is_overloaded() {
    let Some(ends) = Ends::new("o") else { return };
    let setup = Setup::new(&ends);
    let _controller = setup.controller();
    let _gateway = setup.gateway();
    setup.wait_for_link();
    let guarantee = json!({"rate_bps": 10_000_000, "burst_bytes": 30_000, "delay_ns": 50_000_000});
    for slice in [
        slice("critical", 5201, Some(guarantee)),
        slice("bulk", 5202, None),
    ] {
        setup
            .client
            .put_slice(&slice, Precondition::Absent, None)
            .unwrap();
    }
    setup.wait_until_installed();
    let _servers = [5201, 5202].map(|port| {
        let mut server = ends.iperf3(1, &format!("-s -p {port}"));
        Running(server.stdout(Stdio::null()).spawn().unwrap())
    });
    setup.wait_until("iperf3 listens", || {
        let sent = ends
            .iperf3(0, "-c 192.0.2.2 -p 5201 -u -b 1M -t 1")
            .output()
            .unwrap();
        sent.status.success()
    });
    let client = |port: u16, rate: &str, seconds: u32| {
        let arguments = format!("-c 192.0.2.2 -p {port} -u -b {rate} -l 1000 -t {seconds} -J");
        ends.iperf3(0, &arguments).spawn().unwrap()
    };
    let bulk = client(5202, "60M", 6);
    std::thread::sleep(Duration::from_secs(1));
    let critical = client(5201, "8M", 4);
    // While both send, the controller is told what they do, and of which flows.
    setup.wait_until("the flow is counted", || {
        let counters = setup.client.slice_counters("critical", true);
        counters.is_ok_and(|counters| {
            counters.hops.iter().any(|hop| {
                let sent = hop
                    .forward
                    .as_ref()
                    .is_some_and(|forward| forward.sent_frames > 0);
                sent && hop.flows.iter().any(|flow| flow.destination_port == 5201)
            })
        })
    });
    let critical = lost_percent(&critical.wait_with_output().unwrap().stdout);
    let bulk = lost_percent(&bulk.wait_with_output().unwrap().stdout);
    println!("lost: critical {critical} %, bulk {bulk} %");
    assert!(critical < 1.0, "{critical} %");
    assert!(bulk > 30.0, "{bulk} %: it was overloaded");
    setup
        .client
        .remove_slice("bulk", Precondition::None, None)
        .unwrap();
    setup.wait_until("it is gone", || {
        setup.states().is_some_and(|states| states.len() == 1)
    });
}

/// Slices change all the time; controller and gateway are killed (SIGKILL), each so many times, and started again.
fn kill_again_and_again(what: &str, kills: usize) {
    let Some(ends) = Ends::new(what) else { return };
    let setup = Setup::new(&ends);
    let mut controller = Some(setup.controller());
    let mut gateway = Some(setup.gateway());
    setup.wait_for_link();
    let mut answered = 0;
    // What was answered last; nothing where an answer was lost.
    let mut promised: BTreeMap<String, Option<Slice>> = BTreeMap::new();
    for kill in 0..kills {
        for change in 0..12u16 {
            let name = format!("s{}", change % 5);
            let rate = 100_000 + u64::from(change) * 10_000;
            let guarantee = json!({"rate_bps": rate, "burst_bytes": 3_000, "delay_ns": 90_000_000});
            // Its packets change, too.
            let port = 6_000 + change % 5 * 2 + u16::try_from(kill % 2).unwrap();
            let wanted = slice(&name, port, Some(guarantee));
            // It may be away, or the slice may still drain.
            let outcome = if change % 6 == 5 {
                let removed = setup.client.remove_slice(&name, Precondition::None, None);
                removed.map(|_| None)
            } else {
                let put = setup.client.put_slice(&wanted, Precondition::None, None);
                put.map(|_| Some(wanted))
            };
            match outcome {
                Ok(now) => {
                    answered += 1;
                    promised.insert(name, now);
                }
                Err(ClientError::Refused(_)) => {}
                Err(_) => drop(promised.remove(&name)),
            }
            std::thread::sleep(Duration::from_millis((kill as u64 * 7) % 13));
        }
        if kill % 2 == 0 {
            controller.take().unwrap().kill();
            controller = Some(setup.controller());
        } else {
            gateway.take().unwrap().kill();
            gateway = Some(setup.gateway());
        }
        setup.wait_until("the controller answers", || setup.client.links().is_ok());
    }
    setup.wait_until_installed();
    println!("{answered} changes, {kills} kills");
    for (name, promised) in &promised {
        match (promised, setup.client.slice(name)) {
            (Some(promised), Ok(kept)) => assert_eq!(
                (&kept.matches, &kept.forward),
                (&promised.matches, &promised.forward)
            ),
            (None, Err(ClientError::Refused(problem))) => assert_eq!(problem.status, 404),
            (promised, kept) => panic!("{name}: {promised:?} was answered, and there is {kept:?}"),
        }
    }
    assert!(answered > 0);
    let gateways = setup.client.gateways().unwrap();
    assert!(gateways[0].acknowledged > 0);
}

#[test]
fn controller_and_gateway_that_are_killed_under_changes_converge() {
    let kills = std::env::var(KILLS)
        .ok()
        .and_then(|kills| kills.parse().ok());
    kill_again_and_again("k", kills.unwrap_or(4));
}

#[test]
#[ignore = "takes long"]
fn controller_and_gateway_that_are_killed_five_hundred_times_converge() {
    kill_again_and_again("m", 500);
}

#[test]
fn clocks_of_controller_and_gateway_that_jump_by_hours_change_nothing() {
    let Some(ends) = Ends::new("j") else { return };
    let mut setup = Setup::new(&ends);
    if !setup.shift_clocks() {
        println!("skipped: there is no C compiler to shift clocks with");
        return;
    }
    let _controller = setup.controller();
    let _gateway = setup.gateway();
    setup.wait_for_link();
    let mut shifts = Vec::new();
    for (hours, port) in [5, -11, 24 * 400, 0].into_iter().zip(6000..) {
        setup.shift(hours);
        let wanted = slice(&format!("s{port}"), port, None);
        let put = || {
            let key = Some(wanted.name.as_str());
            setup.client.put_slice(&wanted, Precondition::Absent, key)
        };
        let made = put().unwrap();
        setup.wait_until_installed();
        // Long enough for the controller to look for gateways that are gone.
        std::thread::sleep(Duration::from_millis(2_500));
        assert!(setup.client.gateways().unwrap()[0].connected);
        setup.shift(hours + 30);
        assert_eq!(put().unwrap(), made, "the key counts");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let shifted = i128::from(made.value.created_at_ms) - now.as_millis() as i128;
        shifts.push(shifted as f64 / 3.6e6);
    }
    // The clock of the controller did jump.
    let shifts: Vec<f64> = shifts.iter().map(|hours| hours.round()).collect();
    assert_eq!(shifts, [5.0, -11.0, 9600.0, 0.0]);
    let events = setup.client.events(0, None).unwrap().items;
    let went = events
        .iter()
        .filter(|event| event.kind == EventKind::GatewayWent);
    assert_eq!(went.count(), 0);
    let history = setup.client.generations(None, None).unwrap().items;
    let generations: Vec<u64> = history.iter().map(|one| one.generation).collect();
    assert_eq!(generations, [4, 3, 2, 1]);
}
