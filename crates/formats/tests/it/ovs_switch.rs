//! Open vSwitch takes what is written, and what it then has reads as the same policy. Needs its daemons, which use no
//! kernel module and no network here; says so where they are missing, and tests nothing then.
#![cfg(target_os = "linux")]

use slicewise_formats::ovs;
use slicewise_model::{PolicyParams, Rate};
use slicewise_units::BitRate;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LINK: BitRate = BitRate::new(1_000_000_000);
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const PATIENCE: Duration = Duration::from_secs(20);

/// A database and a switch with dummy ports, ended when dropped.
struct Switch {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Drop for Switch {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Switch {
    /// `None`, with the reason printed, where this machine has no Open vSwitch.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("conf.db");
        let created = run("ovsdb-tool", &["create", text(&database), SCHEMA]);
        if let Err(reason) = created {
            println!("skipped: Open vSwitch is not installed: {reason}");
            return None;
        }
        let mut switch = Self {
            folder,
            daemons: Vec::new(),
        };
        let remote = format!("--remote=punix:{}", text(&switch.path("db.sock")));
        switch.start("ovsdb-server", &[text(&database), &remote], "db.sock")?;
        let socket = switch.database();
        switch.vsctl(&["init"]);
        switch.start(
            "ovs-vswitchd",
            &[&socket, "--enable-dummy=override", "--disable-system"],
            "switch",
        )?;
        switch.vsctl(&["add-br", "br0", "--", "add-port", "br0", "eth1"]);
        switch.wait_for("br0.mgmt").then_some(switch)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn database(&self) -> String {
        format!("unix:{}", text(&self.path("db.sock")))
    }

    fn start(&mut self, program: &str, arguments: &[&str], socket: &str) -> Option<()> {
        let control = format!("--unixctl={}", text(&self.path("switch")));
        let control = if socket == "switch" {
            control
        } else {
            format!("{control}.db")
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args([&control, "-vconsole:off", "-vsyslog:off"]);
        command.env("OVS_RUNDIR", self.folder.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match command.spawn() {
            Ok(daemon) => self.daemons.push(daemon),
            Err(reason) => {
                println!("skipped: {program} cannot be started: {reason}");
                return None;
            }
        }
        let is_there = self.wait_for(socket);
        if !is_there {
            println!("skipped: {program} did not start");
        }
        is_there.then_some(())
    }

    fn wait_for(&self, name: &str) -> bool {
        let start = Instant::now();
        while !self.path(name).exists() {
            if start.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    fn vsctl<S: AsRef<str>>(&self, arguments: &[S]) -> String {
        let mut all = vec!["--no-wait".to_owned(), format!("--db={}", self.database())];
        all.extend(
            arguments
                .iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        run("ovs-vsctl", &all).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ofctl(&self, verb: &str, more: &[&str]) -> String {
        let bridge = format!("unix:{}", text(&self.path("br0.mgmt")));
        let mut all = vec!["-O", "OpenFlow10,OpenFlow13", verb, &bridge];
        all.extend(more);
        run("ovs-ofctl", &all).unwrap_or_else(|error| panic!("{error}"))
    }

    /// What the switch has now, as the commands that make it.
    fn described(&self) -> String {
        let get = |table: &str, record: &str, column: &str| {
            self.vsctl(&["get", table, record, column])
                .trim()
                .to_owned()
        };
        let qos = get("port", "eth1", "qos");
        let config = get("qos", &qos, "other_config");
        let mut head = format!(
            "ovs-vsctl set port eth1 qos=@a -- --id=@a create qos type=linux-htb 'other-config={config}'"
        );
        let mut tail = String::new();
        let queues = get("qos", &qos, "queues");
        let queues = queues.trim_matches(['{', '}']).split(", ");
        for (number, record) in queues.filter_map(|pair| pair.split_once('=')) {
            head += &format!(" queues:{number}=@q{number}");
            tail += &format!(" -- --id=@q{number} create queue");
            for column in ["other_config", "external_ids"] {
                tail += &format!(" '{column}={}'", get("queue", record, column));
            }
            let dscp = get("queue", record, "dscp");
            if dscp != "[]" {
                tail += &format!(" dscp={dscp}");
            }
        }
        let flows = self.ofctl("dump-flows", &["--no-stats"]);
        format!("{head}{tail}\n{flows}")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run<S: AsRef<str>>(program: &str, arguments: &[S]) -> Result<String, String> {
    let arguments = arguments.iter().map(AsRef::as_ref);
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// The policy with alternatives of each class map in one order: the switch keeps none among rules of one priority.
fn ordered(mut policy: PolicyParams) -> PolicyParams {
    for class in &mut policy.classes {
        if let Some(map) = &mut class.matches {
            map.conditions
                .sort_by_key(|condition| format!("{condition:?}"));
        }
        class.child = class.child.take().map(|child| Box::new(ordered(*child)));
    }
    policy
}

#[test]
fn open_vswitch_takes_what_is_written_and_has_the_policy_then() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ovs/");
    for name in ["virtual-queues", "exceptions"] {
        let Some(switch) = Switch::new() else {
            return;
        };
        let script = fs::read_to_string(format!("{folder}{name}.sh")).unwrap();
        let policy = ovs::read(&script, LINK, &[])
            .unwrap()
            .spec
            .resolve(LINK)
            .unwrap();
        let written = ovs::write(&policy, Rate::l2(LINK), "eth1").unwrap();
        switch.vsctl(&written.vsctl);
        for rule in &written.rules {
            switch.ofctl("add-flow", &[rule]);
        }
        let described = switch.described();
        let read = ovs::read(&described, LINK, &[])
            .unwrap_or_else(|errors| panic!("{errors:?}\n{described}"));
        let again = read.spec.resolve(LINK).unwrap();
        assert_eq!(ordered(again), ordered(policy), "{described}");
    }
}
