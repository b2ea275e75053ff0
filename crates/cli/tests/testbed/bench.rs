//! A small study on real packets, and slicewise while it carries it out. Lock, lists and captures are in the
//! sandbox, so that no testbed of anybody else waits or is waited for.

#![allow(dead_code, reason = "tests, each of which uses a part of it")]

use crate::support::{Sandbox, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Two slices on 20 Mbit/s, which 30 % + 30 % + 10 % fit in, and 160 % do not.
pub const STUDY: &str = "
name: live
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 20 Mbit/s}
slices:
  critical: {match: {vlan: 10}, share: 50 %, guaranteed: true}
  best-effort: {match: {vlan: 20}, share: 50 %}
sources:
  critical:
    slice: critical
    headers: {vlan: 10, source: 10.0.10.2, destination: 10.0.10.3}
    pattern: iperf3
    payload: 1400 B
    rate: 30 %
  steady:
    slice: best-effort
    headers: {vlan: 20, source: '2001:db8:20::2', destination: '2001:db8:20::3'}
    pattern: iperf3
    payload: 1400 B
    rate: 30 %
  bursts:
    slice: best-effort
    headers: {vlan: 20, source: 10.0.40.2, destination: 10.0.40.3}
    pattern: iperf3
    payload: 1400 B
    on_off: {on_for: 250 ms, off_for: 250 ms}
scenarios:
  calm: {reference: true, sources: {bursts: {rate: 10 %}}}
  overload: {sources: {bursts: {rate: 100 %}}}
policies:
  none: {none: true}
  priority:
    classes:
      - {name: critical, slice: critical, priority: {}}
  guaranteed:
    discipline: guaranteed
    classes:
      - {name: critical, slice: critical, guarantee: {rate: 10 Mbit/s, burst: 16 kB, delay: 20 ms}}
repetitions: 2
duration: 1 s
seed: 5
";

/// What a testbed calls, and what these tests call beside.
const TOOLS: [&str; 5] = ["ip", "tc", "iperf3", "tcpdump", "setpriv"];
/// Longer than anything here takes, even where everybody waits for a processor.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Tests on real packets: a study needs the machine for itself, hosts alone can share it.
pub static REAL_PACKETS: RwLock<()> = RwLock::new(());

static TRYING: Mutex<()> = Mutex::new(());

/// A sandbox with the study in it, beside which no other test uses real packets.
pub struct Bench {
    pub sandbox: Sandbox,
    _alone: RwLockWriteGuard<'static, ()>,
}

impl Bench {
    /// Or, said on standard error, why there can be none.
    pub fn new() -> Option<Self> {
        if let Some(why) = why_not() {
            eprintln!("skipped: {why}");
            return None;
        }
        let alone = REAL_PACKETS.write().unwrap_or_else(PoisonError::into_inner);
        let sandbox = Sandbox::new();
        sandbox.write("study.yaml", STUDY);
        for folder in ["run", "tmp"] {
            fs::create_dir(sandbox.path(folder)).unwrap();
        }
        Some(Self {
            sandbox,
            _alone: alone,
        })
    }

    /// `slicewise run study.yaml …`, taking noisy runs: these tests judge no delay.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(&["run", "study.yaml", "--tolerate-noise"]);
        command.args(arguments);
        command
    }

    pub fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        command
            .env("SLICEWISE_RUN_DIR", self.sandbox.path("run"))
            .env("TMPDIR", self.sandbox.path("tmp"));
        command
    }

    /// Standard error of a command that is to end like that.
    pub fn stderr(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
        error
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }

    /// The namespaces that a testbed of this sandbox made and that exist.
    pub fn namespaces(&self) -> Vec<String> {
        let list = fs::read_to_string(self.sandbox.path("run/namespaces")).unwrap_or_default();
        let exists = |name: &&str| Path::new("/run/netns").join(name).exists();
        list.lines().filter(exists).map(str::to_owned).collect()
    }

    /// Nothing of any run is left.
    pub fn assert_cleared_up(&self) {
        assert_eq!(self.namespaces(), Vec::<String>::new());
        let captures: Vec<_> = fs::read_dir(self.sandbox.path("tmp")).unwrap().collect();
        assert!(captures.is_empty(), "{captures:?}");
    }

    /// The record of a run; `None` where there is none.
    pub fn record(&self, results: &str, cell: &str, repetition: u64) -> Option<Value> {
        let text = fs::read_to_string(self.records(results, cell)).unwrap_or_default();
        // The last line may be on its way.
        let mut records = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        records.find(|record: &Value| record["key"]["repetition"] == repetition)
    }

    /// The file of records of a policy under a scenario.
    pub fn records(&self, results: &str, cell: &str) -> PathBuf {
        self.sandbox.path(&format!("{results}/runs/{cell}.jsonl"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in self.namespaces() {
            delete(&name);
        }
    }
}

fn why_not() -> Option<String> {
    for tool in TOOLS {
        if Command::new(tool).arg("-V").output().is_err() {
            return Some(format!("{tool} is not installed"));
        }
    }
    // Tests that begin together try one after the other: the name is the same.
    let _alone = TRYING.lock().unwrap_or_else(PoisonError::into_inner);
    let name = format!("slw-try-{}", std::process::id());
    let added = Command::new("ip").args(["netns", "add", &name]).output();
    delete(&name);
    let can = added.is_ok_and(|output| output.status.success());
    (!can).then(|| "cannot create a network namespace: this requires root".to_owned())
}

pub fn delete(namespace: &str) {
    // It may not be there.
    let _ = Command::new("ip")
        .args(["netns", "delete", namespace])
        .output();
}

/// slicewise at work, in a process group of its own, as a shell would start it.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    stderr: String,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stderr.take().unwrap());
        Self {
            child,
            lines,
            stderr: String::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Wait until it says these words.
    pub fn wait_for(&mut self, words: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.stderr.contains(words) {
            match self.lines.recv_timeout(end - Instant::now()) {
                Ok(line) => self.stderr += &(line + "\n"),
                Err(_) => panic!("`{words}` was never said, but: {}", self.stderr),
            }
        }
    }

    /// A child whose command line has all these words, once there is one.
    pub fn child(&self, words: &[&str]) -> u32 {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = children_of(self.pid()).into_iter().find(|pid| {
                let line = command_line(*pid);
                words.iter().all(|word| line.iter().any(|w| w == word))
            });
            match found {
                Some(pid) => return pid,
                None if Instant::now() > end => panic!("no {words:?}; said: {}", self.stderr),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Send a signal to it alone.
    pub fn signal(&self, name: &str) {
        signal(name, &self.pid().to_string());
    }

    /// As Ctrl-C in a terminal does: to all processes of its group.
    pub fn ctrl_c(&self) {
        signal("INT", &format!("-{}", self.pid()));
    }

    /// How it ended, and what it said.
    pub fn end(mut self) -> (ExitStatus, String) {
        let end = Instant::now() + 2 * PATIENCE;
        loop {
            match self
                .lines
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.stderr += &(line + "\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it hangs: {}", self.stderr),
            }
        }
        let status = self.child.wait().unwrap();
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        (status, std::mem::take(&mut self.stderr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

pub fn signal(name: &str, pid: &str) {
    // What every shell has built in.
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$0\" -- \"$1\"", name, pid])
        .status()
        .unwrap();
    assert!(status.success(), "kill -s {name} -- {pid}");
}

fn command_line(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(text).collect()
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name, which may have anything in it: state and parent.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().nth(1) == Some(&parent.to_string())
    })
    .collect()
}

/// Whether a process runs: neither gone nor dead and not yet buried.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, behind)| behind.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}
