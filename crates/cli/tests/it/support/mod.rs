//! A folder to call the command in, and captures small enough to be written byte by byte.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "tests, each of which uses a part of it"
)]

pub mod browser;
#[path = "../../../../report/tests/it/support/seal.rs"]
pub mod seal;
pub mod small_study;

use serde_json::Value;
use slicewise_capture::write::PcapWriter;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder of its own for each test.
pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compile C whose functions take the place of those of the C library (`LD_PRELOAD`); `None` without a C compiler.
    pub fn preload(&self, source: &str) -> Option<PathBuf> {
        self.write("preload.c", source);
        let library = self.path("preload.so");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &self.path("preload.c")])
            .status();
        made.is_ok_and(|made| made.success()).then_some(library)
    }

    /// Write a file, and the folders on the way to it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slicewise"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Makes `certificate.pem`, signed by its own key `key.pem`, for a server at this address.
    pub fn certify(&self, address: &str) {
        let made = Command::new("openssl")
            .args(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
                    .split(' '),
            )
            .args("-subj /CN=controller -keyout key.pem -out certificate.pem".split(' '))
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-addext", &format!("subjectAltName=IP:{address}")])
            .current_dir(self.path(""))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
    }

    pub fn slicewise(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a shell prints on a terminal of so many columns and 24 lines; `$slicewise` is the command. `None` where no
    /// terminal can be made.
    pub fn on_a_terminal(&self, columns: u16, line: &str) -> Option<String> {
        if !is_installed("script") {
            eprintln!("not tested: there is no `script` to make a terminal");
            return None;
        }
        let line = format!("stty cols {columns} rows 24; {line}");
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(self.folder.path())
            .env("slicewise", env!("CARGO_BIN_EXE_slicewise"))
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .output();
        Some(text(&output.unwrap().stdout).replace('\r', ""))
    }

    /// Standard output and standard error of a call that must succeed.
    pub fn succeeded(&self, arguments: &[&str]) -> (String, String) {
        let output = self.slicewise(arguments);
        let error = text(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        (text(&output.stdout), error)
    }

    /// Standard error of a call that must exit with `code`.
    pub fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.slicewise(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
        error
    }

    /// The record of the one run that `analyse --out DIR --sent … --received …` makes.
    pub fn record(&self, results: &str) -> Value {
        record(
            &self
                .path(results)
                .join("runs/as-captured/as-captured.jsonl"),
        )
    }
}

/// The value in a file: a list of policies, or the record of the only run.
pub fn record(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Lines of files of records below a folder, and of the files before them.
pub fn records_below(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                // The last one may be on its way.
                let whole = text
                    .split_inclusive('\n')
                    .filter_map(|line| line.strip_suffix('\n'));
                found.extend(whole.map(|line| (path.clone(), line.to_owned())));
            }
        }
    }
    found.sort();
    found
}

/// Panics, showing `text`, where it has no such part.
#[track_caller]
pub fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "no `{part}` in: {text}");
}

/// Arguments of a command, separated by spaces.
pub fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Files in a folder, and in the folders in it, whose names end with `.` and this extension; in order.
pub fn files_with(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_with(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Whether a program can be called at all.
pub fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok()
}

/// When captures begin: 2026-01-01, in nanoseconds.
pub const START_NS: u64 = 1_767_225_600_000_000_000;
pub const MS: u64 = 1_000_000;

/// A packet of UDP, as two ends may capture it.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// From [`START_NS`] on.
    pub at_ns: u64,
    pub vlan: Option<u16>,
    pub source_port: u16,
    /// In its payload: no two packets of a flow are alike.
    pub number: u32,
    /// From the second host to the first.
    pub goes_back: bool,
}

/// A packet every millisecond.
pub fn packets(count: u32) -> Vec<Packet> {
    let packet = |number| Packet {
        at_ns: u64::from(number) * MS,
        vlan: None,
        source_port: 49_152,
        number,
        goes_back: false,
    };
    (0..count).map(packet).collect()
}

/// The same packets so much later.
pub fn later(packets: &[Packet], by_ns: u64) -> Vec<Packet> {
    let later = |packet: &Packet| Packet {
        at_ns: packet.at_ns + by_ns,
        ..*packet
    };
    packets.iter().map(later).collect()
}

/// Bytes of UDP payload; frames without tag are 42 bytes longer.
pub const PAYLOAD_BYTES: usize = 100;

/// Ethernet, IPv4, UDP. Checksums are left out, as capturing hosts do that leave them to the adapter.
pub fn frame(packet: &Packet) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if let Some(vlan) = packet.vlan {
        bytes.extend([0x81, 0x00]);
        bytes.extend(vlan.to_be_bytes());
    }
    bytes.extend([0x08, 0x00]);
    let mut ends = [([10, 0, 0, 1], packet.source_port), ([10, 0, 0, 2], 5201)];
    if packet.goes_back {
        ends.reverse();
    }
    let [(source, source_port), (destination, destination_port)] = ends;
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    bytes.extend([0x45, 0]);
    bytes.extend(length(28 + PAYLOAD_BYTES));
    bytes.extend(length(packet.number as usize & 0xffff));
    bytes.extend([0x40, 0, 64, 17, 0, 0]);
    bytes.extend(source);
    bytes.extend(destination);
    bytes.extend(source_port.to_be_bytes());
    bytes.extend(destination_port.to_be_bytes());
    bytes.extend(length(8 + PAYLOAD_BYTES));
    bytes.extend([0, 0]);
    bytes.extend(packet.number.to_be_bytes());
    bytes.resize(bytes.len() + PAYLOAD_BYTES - 4, 0xa5);
    bytes
}

/// A capture in nanoseconds, little-endian, of snap length 96.
pub fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), 96).unwrap();
    for packet in packets {
        let frame = frame(packet);
        let length = u32::try_from(frame.len()).unwrap();
        writer
            .write_packet(START_NS.wrapping_add(packet.at_ns), &frame, length)
            .unwrap();
    }
    writer.finish().unwrap()
}

pub const PAIR: [&str; 5] = ["analyse", "--sent", "tx.pcap", "--received", "rx.pcap"];

/// 100 packets, each received 2 ms later, of which the last ten are lost.
pub fn pair() -> Sandbox {
    let sandbox = Sandbox::new();
    let sent = packets(100);
    sandbox.write("tx.pcap", pcap(&sent));
    sandbox.write("rx.pcap", pcap(&later(&sent[..90], 2 * MS)));
    sandbox
}

pub fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

/// Standard error, and the record, of analysing the pair of captures.
pub fn analysed(sandbox: &Sandbox, more: &[&str]) -> (String, Value) {
    let (_, stderr) = sandbox.succeeded(&with(&with(&PAIR, &["--out", "out"]), more));
    (stderr, sandbox.record("out"))
}

pub fn frames(record: &Value, slice: usize) -> [u64; 3] {
    let whole = &record["slices"][slice]["whole"];
    ["sent_frames", "received_frames", "lost_frames"].map(|field| whole[field].as_u64().unwrap())
}

/// Packets of both directions. Each takes 1 ms and up to 0.4 ms more; the receiving clock goes `behind_ns`
/// behind.
pub fn both_ways(behind_ns: u64) -> Sandbox {
    let (mut tx, mut rx) = (Vec::new(), Vec::new());
    for number in 0..400_u32 {
        let goes_back = number % 4 == 3;
        let sent_at = u64::from(number) * MS + 200 * MS;
        let received_at = sent_at + MS + u64::from(number % 5) * MS / 10;
        let packet = |at_ns| Packet {
            at_ns,
            vlan: None,
            source_port: 49_152,
            number,
            goes_back,
        };
        let (at_tx, at_rx) = if goes_back {
            (received_at, sent_at)
        } else {
            (sent_at, received_at)
        };
        tx.push(packet(at_tx));
        rx.push(packet(at_rx - behind_ns));
    }
    tx.sort_by_key(|packet| packet.at_ns);
    rx.sort_by_key(|packet| packet.at_ns);
    let sandbox = Sandbox::new();
    sandbox.write("tx.pcap", pcap(&tx));
    sandbox.write("rx.pcap", pcap(&rx));
    sandbox
}

/// Gold has VLAN 10, and the rest takes half of what gold sends once it is crowded.
pub const MEASURED: &str = "
name: lab
dut: a router in the lab
link: 10 Mbit/s
slices:
  gold: {match: {vlan: 10}, share: 60 %, guaranteed: true}
  rest: {match: {vlan: 20}, share: 40 %}
policies:
  shared: {configuration: none}
scenarios:
  calm: {reference: true}
  crowded: {}
repetitions: 2
duration: 2 s
captures:
  sent: '{policy}/{scenario}-{repetition}-tx.pcap'
  received: '{policy}/{scenario}-{repetition}-rx*.pcap'
";
