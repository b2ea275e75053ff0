//! Captures of simulated runs: every packet is there, and other tools find nothing wrong with it.

use slicewise_capture::RunMark;
use slicewise_sim::Simulator;
use slicewise_sim::capture::{EPOCH_NS, FILE_NAMES};
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every header a study can give a source, three hosts; the port is overloaded, and remarks the second slice.
const STUDY: &str = "\
name: small
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 60 %, guaranteed: true}
  rest: {match: {vlan: 20}, share: 40 %}
sources:
  plain: {slice: gold, host: one, pattern: iperf3, rate: 30 %, payload: 1000 B, headers: {vlan: 10, source: 10.1.2.3, destination: 10.3.2.1, dscp: ef}}
  double: {slice: gold, pattern: cbr, rate: 20 %, payload: 333 B, headers: {vlan: 10, inner_vlan: 7}}
  six: {slice: rest, pattern: poisson, rate: 4 Mbit/s, payload: 777 B, headers: {vlan: 20, source: '2001:db8::1', destination: '2001:db8::2'}}
  tcp: {slice: rest, host: two, pattern: cbr, rate: 4 Mbit/s, payload: 1200 B, headers: {vlan: 20, protocol: tcp}}
  ping: {slice: rest, pattern: cbr, rate: 50 kbit/s, payload: 5 B, headers: {vlan: 20, protocol: icmp}}
  tiny: {slice: rest, pattern: cbr, rate: 50 kbit/s, payload: 1 B, headers: {vlan: 20}}
scenarios:
  heavy: {reference: true}
policies:
  weighted:
    classes:
      - {name: gold, slice: gold, minimum: 60 %}
      - {name: rest, slice: rest, set_dscp: af13, queue_limit: 20 packets}
repetitions: 2
duration: 1 s
";

fn study() -> Study {
    Study::parse(STUDY, "small.yaml", &MemoryFiles::new())
        .map_err(|e| e.to_string())
        .unwrap()
}

/// The second repetition, captured under `root`; and its folder.
fn captured(root: &Path, snap_bytes: u32) -> (RunRecord, PathBuf) {
    let study = study();
    let runs = study.runs(&RunFilter::default()).unwrap();
    let simulator = Simulator::default().with_captures(root.to_owned(), snap_bytes);
    let record = simulator.run(&study, &runs[1]).unwrap();
    (record, root.join("weighted/heavy/rep-001"))
}

/// What a program prints, by lines and fields; `None` where it is not installed.
fn printed(program: &str, arguments: &[&str], file: &Path) -> Option<Vec<Vec<String>>> {
    let output = Command::new(program).args(arguments).arg(file).output();
    let Ok(output) = output else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    Some(text.lines().map(fields).collect())
}

fn sum(record: &RunRecord, value: fn(&slicewise_stats::record::Figures) -> u64) -> u64 {
    record.slices.iter().map(|slice| value(&slice.whole)).sum()
}

/// Packets of a file, counted by its blocks.
fn packets(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut packets) = (0, 0);
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "at {at}");
        packets += u64::from(word(at) == 6);
        at += length;
    }
    packets
}

#[test]
fn a_captured_run_gives_the_same_record_and_every_packet_once() {
    let root = tempfile::tempdir().unwrap();
    let (record, folder) = captured(root.path(), 96);
    let study = study();
    let runs = study.runs(&RunFilter::default()).unwrap();
    assert_eq!(record, Simulator::default().run(&study, &runs[1]).unwrap());
    let (sent, lost) = (
        sum(&record, |f| f.sent_frames),
        sum(&record, |f| f.lost_frames),
    );
    assert!(lost > 0 && sent > lost);
    assert_eq!(packets(&folder.join(FILE_NAMES[0])), sent);
    // Those that arrive after the end of the run are captured too.
    assert_eq!(packets(&folder.join(FILE_NAMES[1])), sent - lost);
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        2,
        "no file is left unfinished"
    );
    // The comment is the first option of the file.
    let bytes = fs::read(folder.join(FILE_NAMES[1])).unwrap();
    let length = usize::from(u16::from_le_bytes([bytes[26], bytes[27]]));
    let mark = RunMark::find(std::str::from_utf8(&bytes[28..28 + length]).unwrap());
    let expected = RunMark {
        start_ns: EPOCH_NS,
        duration_ns: 1_000_000_000,
        cycle_ns: 0,
    };
    assert_eq!(mark, Some(expected));
}

#[test]
fn a_capture_that_cannot_be_written_fails_the_run_and_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let study = study();
    let runs = study.runs(&RunFilter::default()).unwrap();
    let simulator = Simulator::default().with_captures(file, 96);
    let error = simulator.run(&study, &runs[0]).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot make folders for captures in "),
        "{error}"
    );
    // A folder where the file should be: reported at the end, when it would get its name.
    let folder = root.path().join("weighted/heavy/rep-000");
    fs::create_dir_all(folder.join(FILE_NAMES[1]).join("in the way")).unwrap();
    let simulator = Simulator::default().with_captures(root.path().to_owned(), 96);
    let error = simulator.run(&study, &runs[0]).unwrap_err().to_string();
    assert!(error.contains("received.pcapng"), "{error}");
    let left = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter()
            .all(|name| !name.to_string_lossy().ends_with(".part"))
    );
}

/// As fields: time, lengths, tags, IP, transport, and what tshark found wrong.
const FIELDS: [&str; 16] = [
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "vlan.id",
    "ieee8021ad.id",
    "ip.ttl",
    "ipv6.hlim",
    "ip.id",
    "ip.dsfield.dscp",
    "ip.len",
    "udp.length",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "icmp.checksum.status",
    "_ws.malformed",
];

fn dissected(file: &Path) -> Option<Vec<Vec<String>>> {
    let mut arguments = vec!["-n", "-T", "fields", "-E", "occurrence=a"];
    for checked in [
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
    ] {
        arguments.extend(["-o", checked]);
    }
    for field in FIELDS {
        arguments.extend(["-e", field]);
    }
    arguments.push("-r");
    printed("tshark", &arguments, file)
}

#[test]
fn tshark_finds_nothing_wrong_with_any_header() {
    let root = tempfile::tempdir().unwrap();
    let (record, folder) = captured(root.path(), 9_216);
    let [Some(sent), Some(received)] = FILE_NAMES.map(|name| dissected(&folder.join(name))) else {
        return;
    };
    let field = |row: &[String], name: &str| {
        let place = FIELDS.iter().position(|field| *field == name).unwrap();
        row[place].clone()
    };
    assert_eq!(sent.len() as u64, sum(&record, |f| f.sent_frames));
    let bytes = |row: &Vec<String>| field(row, "frame.len").parse::<u64>().unwrap();
    assert_eq!(
        sent.iter().map(bytes).sum::<u64>(),
        sum(&record, |f| f.sent_bytes)
    );
    let mut checked = [0; 4];
    for row in sent.iter().chain(&received) {
        assert_eq!(field(row, "_ws.malformed"), "", "{row:?}");
        assert_eq!(field(row, "frame.len"), field(row, "frame.cap_len"));
        for (count, name) in checked.iter_mut().zip(["ip", "udp", "tcp", "icmp"]) {
            let status = field(row, &format!("{name}.checksum.status"));
            assert!(status.is_empty() || status == "1", "{name} {row:?}");
            *count += u32::from(status == "1");
        }
        let tags = (field(row, "ieee8021ad.id"), field(row, "vlan.id"));
        let known = [("", "10"), ("10", "7"), ("", "20")];
        assert!(
            known.contains(&(tags.0.as_str(), tags.1.as_str())),
            "{row:?}"
        );
    }
    assert!(checked.iter().all(|count| *count > 0), "{checked:?}");
    let first = &sent[0];
    let time = field(first, "frame.time_epoch");
    assert!(
        time.starts_with("1577836800.0") || time.starts_with("2020-01-01T00:00:00.0"),
        "{time}"
    );
    let hops = |rows: &[Vec<String>], at: &str| {
        rows.iter()
            .all(|row| field(row, "ip.ttl") + &field(row, "ipv6.hlim") == at)
    };
    assert!(hops(&sent, "64") && hops(&received, "63"));
    let remarked = |rows: &[Vec<String>]| {
        rows.iter()
            .filter(|r| field(r, "ip.dsfield.dscp") == "14")
            .count()
    };
    assert!(remarked(&sent) == 0 && remarked(&received) > 0);
}

#[test]
fn capinfos_knows_how_the_files_were_written() {
    let root = tempfile::tempdir().unwrap();
    let (_, folder) = captured(root.path(), 96);
    let Some(message) = printed("capinfos", &[], &folder.join(FILE_NAMES[0])) else {
        return;
    };
    let text: String = message
        .into_iter()
        .map(|line| line.join("\t") + "\n")
        .collect();
    for expected in [
        "Ethernet",
        "nanoseconds (9)",
        "Strict time order:   True",
        "Name = sender",
        "slicewise: run starts at 1577836800000000000 ns",
        "Capture length = 96",
    ] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
}
