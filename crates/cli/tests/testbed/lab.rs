//! `slicewise run --on lab.yaml`: sender, router and receiver are reached over SSH. Each is a network namespace; the client
//! starts a `sshd` in it for every connection, with keys of the sandbox.
//!
//! They require root, network namespaces and `openssh-server`. Without them each test reports that it was skipped.

use crate::bench::{Bench, PATIENCE, Running, delete};
use crate::support::{contains, text as text_of};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Two slices on 20 Mbit/s, which the reference fits in, and the overload does not.
const STUDY: &str = "
name: lab
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 20 Mbit/s}
slices:
  critical: {match: {dscp: ef}, share: 50 %, guaranteed: true}
  best-effort: {match: {}, share: 50 %}
sources:
  critical:
    slice: critical
    headers: {source: 10.0.1.2, destination: 10.0.2.2, destination_port: 6001, dscp: ef}
    pattern: cbr
    payload: 1400 B
    rate: 30 %
  files:
    slice: best-effort
    headers: {source: 10.0.1.2, destination: 10.0.2.2, destination_port: 6002}
    pattern: poisson
    payload: 1400 B
scenarios:
  calm: {reference: true, sources: {files: {rate: 20 %}}}
  overload: {sources: {files: {rate: 150 %}}}
policies:
  none: {none: true}
  priority:
    classes:
      - {name: critical, slice: critical, priority: {}}
repetitions: 1
duration: 1 s
seed: 5
";

const LAB: &str = "
sender: {ssh: sender, interface: data, address: 10.0.1.2, program: PROGRAM}
receiver: {ssh: receiver, interface: data, address: 10.0.2.2, program: PROGRAM}
device:
  ssh: router
  apply: 'tc qdisc del dev right root 2>/dev/null; sh -e'
  export: tc
  interface: right
ssh_config: ssh_config
";

const SSHD: &str = "/usr/sbin/sshd";
const HOSTS: [&str; 3] = ["sender", "router", "receiver"];

struct LabBench {
    bench: Bench,
}

impl LabBench {
    fn new() -> Option<Self> {
        let bench = Bench::new()?;
        if !Path::new(SSHD).exists() {
            eprintln!("skipped: openssh-server is not installed");
            return None;
        }
        // Where sshd separates privileges; the package makes it when its service starts.
        fs::create_dir_all("/run/sshd").unwrap();
        let sandbox = &bench.sandbox;
        sandbox.write("study.yaml", STUDY);
        let program = env!("CARGO_BIN_EXE_slicewise");
        sandbox.write("lab.yaml", LAB.replace("PROGRAM", program));
        let path = |name: &str| sandbox.path(name).display().to_string();
        for key in ["user_key", "host_key"] {
            call(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)],
            );
        }
        let mut client = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking accept-new\nUser root\n",
            path("user_key"),
            path("known_hosts")
        );
        for host in HOSTS {
            for folder in ["run", "tmp"] {
                fs::create_dir(sandbox.path(&format!("{folder}-{host}"))).unwrap();
            }
            let (run, tmp) = (path(&format!("run-{host}")), path(&format!("tmp-{host}")));
            let server = format!(
                "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nPrintMotd no\n\
                 SetEnv SLICEWISE_RUN_DIR={run} TMPDIR={tmp}\n",
                path("host_key"),
                path("user_key.pub"),
            );
            let config = format!("sshd-{host}");
            sandbox.write(&config, server);
            let name = name(host);
            client += &format!(
                "Host {host}\n  ProxyCommand ip netns exec {name} {SSHD} -i -f {}\n",
                path(&config)
            );
        }
        sandbox.write("ssh_config", client);
        let lab = Self { bench };
        HOSTS.iter().for_each(|host| add(host));
        join("sender", "data", "10.0.1.2", "left", "10.0.1.1");
        join("receiver", "data", "10.0.2.2", "right", "10.0.2.1");
        on("router", "sysctl -q -w net.ipv4.ip_forward=1");
        Some(lab)
    }

    /// Standard error of a run in the lab that is to end like that.
    fn stderr(&self, code: i32, arguments: &[&str]) -> String {
        let lab = ["--on", "lab.yaml", "--out", "out"];
        self.bench.stderr(code, &[&lab[..], arguments].concat())
    }

    fn record(&self, cell: &str) -> Value {
        self.bench.record("out", cell, 0).unwrap()
    }

    /// No program, file or process of a run is left on a host.
    fn assert_cleared_up(&self) {
        let files = |host: &str| {
            let folder = self.bench.sandbox.path(&format!("tmp-{host}"));
            fs::read_dir(folder).unwrap().count()
        };
        // A host learns of the end by that of its connection.
        let end = Instant::now() + PATIENCE;
        while HOSTS.iter().any(|host| files(host) > 0) {
            assert!(Instant::now() < end, "files are left");
            sleep(Duration::from_millis(20));
        }
        self.bench.assert_cleared_up();
    }
}

impl Drop for LabBench {
    fn drop(&mut self) {
        HOSTS.iter().for_each(|host| remove(host));
    }
}

fn name(host: &str) -> String {
    format!("slw-lab-{}-{host}", std::process::id())
}

fn add(host: &str) {
    call("ip", &["netns", "add", &name(host)]);
    on(host, "ip link set lo up");
}

/// End everything that runs on a host, and the host.
fn remove(host: &str) {
    let pids = Command::new("ip")
        .args(["netns", "pids", &name(host)])
        .output();
    let pids = pids.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    for pid in pids.unwrap_or_default().split_whitespace() {
        // It may have ended.
        let _ = Command::new("kill")
            .args(["-9", pid])
            .stderr(Stdio::null())
            .status();
    }
    delete(&name(host));
}

/// Connect a host with the router.
fn join(host: &str, interface: &str, address: &str, port: &str, gateway: &str) {
    let (host_name, router) = (name(host), name("router"));
    let link = [
        "link", "add", interface, "netns", &host_name, "type", "veth",
    ];
    let peer = ["peer", "name", port, "netns", &router];
    call("ip", &[&link[..], &peer].concat());
    on(
        host,
        &format!("ip address add {address}/24 dev {interface}"),
    );
    on("router", &format!("ip address add {gateway}/24 dev {port}"));
    on(host, &format!("ip link set {interface} up"));
    on("router", &format!("ip link set {port} up"));
    on(host, &format!("ip route add default via {gateway}"));
}

fn on(host: &str, line: &str) {
    let name = name(host);
    let words: Vec<&str> = line.split(' ').collect();
    call("ip", &[&["netns", "exec", &name][..], &words].concat());
}

fn call(program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
}

/// Frames of a slice that were sent, and lost.
fn frames(record: &Value, slice: usize) -> [u64; 2] {
    let whole = &record["slices"][slice]["whole"];
    ["sent_frames", "lost_frames"].map(|name| whole[name].as_u64().unwrap())
}

#[test]
fn a_study_between_hosts_over_ssh_measures_what_the_policies_of_the_router_do() {
    let Some(lab) = LabBench::new() else { return };
    let stderr = lab.stderr(0, &[]);
    contains(&stderr, "measuring 4 runs on lab");
    lab.assert_cleared_up();
    for cell in [
        "none/calm",
        "none/overload",
        "priority/calm",
        "priority/overload",
    ] {
        let record = lab.record(cell);
        let live = &record["live"];
        assert_eq!(live["device"], "device of a lab, router");
        let clocks = &live["clocks"];
        assert_eq!(clocks["is_measured"], true, "{clocks}");
        // One machine has one clock.
        let [offset, bound] = ["offset_ns", "bound_ns"].map(|name| clocks[name].as_i64().unwrap());
        assert!(offset.abs() <= bound && bound < 1_000_000, "{clocks}");
        assert!(live["baseline"]["samples"].as_u64().unwrap() > 20, "{live}");
        assert_eq!(live["senders"].as_array().unwrap().len(), 2);
        // 6 Mbit/s of 1442 bytes for 1 s are 520.
        let [sent, _] = frames(&record, 0);
        assert!((510..530).contains(&sent), "{cell}: {sent}");
    }
    // Under priority as in the prediction: best effort loses, and critical nothing.
    for folder in ["out", "out/prediction"] {
        let of = |cell| lab.bench.record(folder, cell, 0).unwrap();
        let [_, lost] = frames(&of("priority/overload"), 0);
        assert_eq!(lost, 0, "{folder}");
        let [sent, lost] = frames(&of("priority/overload"), 1);
        assert!(lost > sent / 5, "{folder}: {lost} of {sent}");
        let [sent, lost] = frames(&of("none/overload"), 0);
        assert!(lost > sent / 10, "{folder}: {lost} of {sent}");
        let [_, lost] = frames(&of("none/calm"), 0);
        assert_eq!(lost, 0, "{folder}");
    }
    let again = lab.stderr(0, &[]);
    contains(&again, "4 of 4 runs were finished before");
}

#[test]
fn a_host_that_dies_fails_the_run_and_the_same_command_resumes() {
    let Some(lab) = LabBench::new() else { return };
    let arguments = [
        "--on",
        "lab.yaml",
        "--out",
        "out",
        "--scenario",
        "calm",
        "--verbose",
    ];
    let mut running: Running = lab.bench.start(&arguments);
    running.wait_for("measuring 2 runs on lab");
    let cells = ["none/calm", "priority/calm"];
    let there = |cell: &str| lab.bench.record("out", cell, 0).is_some();
    let end = Instant::now() + PATIENCE;
    while !cells.iter().any(|cell| there(cell)) {
        assert!(Instant::now() < end, "no run is finished");
        sleep(Duration::from_millis(20));
    }
    // The other run has begun, or is about to.
    sleep(Duration::from_millis(1_500));
    remove("sender");
    let (status, stderr) = running.end();
    assert_eq!(status.code(), Some(1), "{stderr}");
    contains(&stderr, "sender sender cannot be reached over SSH");
    assert_eq!(cells.iter().filter(|cell| there(cell)).count(), 1);
    // The host is back, without what the killed one has left.
    add("sender");
    // The other end of its link may go a moment later than the host.
    let router = name("router");
    let left = ["-n", &router, "link", "delete", "left"];
    let _ = Command::new("ip").args(left).stderr(Stdio::null()).status();
    join("sender", "data", "10.0.1.2", "left", "10.0.1.1");
    let stderr = lab.stderr(0, &["--scenario", "calm"]);
    contains(&stderr, "1 of 2 runs were finished before");
    assert!(cells.iter().all(|cell| there(cell)));
    lab.assert_cleared_up();
}

#[test]
fn a_person_who_configures_the_device_is_told_each_policy_and_waited_for() {
    let Some(lab) = LabBench::new() else { return };
    let program = env!("CARGO_BIN_EXE_slicewise");
    let hosts = LAB.replace("PROGRAM", program);
    let (hosts, _) = hosts.split_once("device:").unwrap();
    let text = format!(
        "{hosts}device: {{operator: 'Set up the router, then press Enter', export: tc, interface: right}}\n\
         clocks: {{synchronised: 1 us}}\nssh_config: ssh_config\n"
    );
    lab.bench.sandbox.write("lab.yaml", text);
    let arguments = [
        "--on",
        "lab.yaml",
        "--out",
        "out",
        "--policy",
        "none",
        "--scenario",
        "calm",
    ];
    let mut command = lab.bench.command(&arguments);
    let nobody = command.stdin(Stdio::null()).output().unwrap();
    contains(&text_of(&nobody.stderr), "standard input has ended");
    assert_eq!(nobody.status.code(), Some(1));
    let mut child = lab.bench.command(&arguments);
    let child = child
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let done = child.wait_with_output().unwrap();
    let stderr = text_of(&done.stderr);
    contains(&stderr, "policy none: Set up the router, then press Enter");
    contains(&stderr, "its configuration is in ");
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    let clocks = &lab.record("none/calm")["live"]["clocks"];
    assert_eq!(
        (&clocks["is_measured"], &clocks["bound_ns"]),
        (&false.into(), &1_000.into())
    );
}

#[test]
fn what_is_wrong_with_a_lab_is_said_before_anything_is_sent() {
    let Some(lab) = LabBench::new() else { return };
    let right = fs::read_to_string(lab.bench.sandbox.path("lab.yaml")).unwrap();
    let program = env!("CARGO_BIN_EXE_slicewise");
    let refused = |from: &str, to: &str| {
        assert!(right.contains(from), "{from}");
        lab.bench
            .sandbox
            .write("lab.yaml", right.replacen(from, to, 1));
        lab.stderr(2, &[])
    };
    contains(
        &refused("ssh: sender", "ssh: nobody"),
        "sender nobody cannot be reached over SSH: ",
    );
    let missing = refused(program, "/no/slicewise");
    contains(&missing, "sender sender has no `/no/slicewise`");
    contains(&missing, "scp ");
    contains(
        &refused("interface: data", "interface: eth9"),
        "sender sender: there is no interface `eth9`: expected one of lo, data",
    );
    contains(
        &refused("interface: data", "interface: lo"),
        "interface `lo` does not have the address 10.0.1.2",
    );
    let old = "'echo ''[{\"answer\":\"ready\",\"version\":\"0.0.9\"},0]'' #'";
    contains(&refused(program, old), "has slicewise 0.0.9, and this is");
    let unknown = refused("interface: data", "interfaces: data");
    contains(&unknown, "lab.yaml:2:23");
    contains(&unknown, "interfaces");
    let denied = refused("address: 10.0.1.2", "address: 10.0.1.9");
    contains(&denied, "does not have the address 10.0.1.9");
    // Applications and TCP are for the testbed of one machine.
    lab.bench.sandbox.write("lab.yaml", &right);
    let tagged = STUDY.replacen("{source: 10.0.1.2,", "{vlan: 7, source: 10.0.1.2,", 1);
    lab.bench.sandbox.write("study.yaml", tagged);
    contains(&lab.stderr(2, &[]), "source critical has a VLAN tag");
    let mut check = lab.bench.bare(&["check", "study.yaml", "--on", "lab.yaml"]);
    let checked = text_of(&check.output().unwrap().stderr);
    contains(&checked, "source critical has a VLAN tag");
    contains(&checked, "study.yaml:");
    lab.assert_cleared_up();
    assert!(!lab.bench.sandbox.path("out").exists());
}
