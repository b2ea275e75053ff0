//! From two captures to figures: ours compared with dpkt, tshark, a counting loop on libpcap, and `cat`.
//!
//! `cargo bench -p slicewise-analysis --bench captures [-- --quick]`
//!
//! The captures are generated (2 million packets per side, 1500 bytes of IP, 100,000 packets/s, one in a
//! hundred lost), once with a snap length of 96 bytes and once whole: 6 GB in the folder of the build.
//! Slow peers get only the first packets; all results are in ns per packet. `--quick` takes a tenth.
//! Peers that are not installed are skipped with a note: python3 with dpkt, tshark, cc with libpcap.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

#[path = "captures/generator.rs"]
mod generator;

use slicewise_analysis::{AnalysisParams, SliceRule, Watch, analyse};
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_units::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const PACKETS: u64 = 2_000_000;
/// For peers that take tens of microseconds per packet.
const PACKETS_OF_SLOW_PEERS: u64 = 100_000;
const WHOLE: usize = 262_144;
/// Medians of this many runs; one run for slow peers.
const REPEATS: usize = 5;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let packets = if quick { PACKETS / 10 } else { PACKETS };
    let folder = folder();
    for snap_length in [96, WHOLE] {
        let pair = Pair::make(&folder, packets, snap_length);
        let few = Pair::make(&folder, PACKETS_OF_SLOW_PEERS.min(packets), snap_length);
        println!(
            "\n{} packets per side, {}",
            pair.packets,
            match snap_length {
                WHOLE => "whole frames".to_owned(),
                bytes => format!("snap length {bytes}"),
            }
        );
        compare(&pair, &few);
    }
}

/// Two captures.
struct Pair {
    sent: PathBuf,
    received: PathBuf,
    packets: u64,
}

/// Result of one contender, ns per packet, and a remark.
struct Taken {
    name: &'static str,
    ns: Result<f64, String>,
    remark: String,
}

impl Pair {
    /// Generated once and reused by later runs.
    fn make(folder: &Path, packets: u64, snap_length: usize) -> Self {
        let path = |side: &str| folder.join(format!("{side}-{packets}-{snap_length}.pcap"));
        let (sent, received) = (path("sent"), path("received"));
        if !received.exists() {
            let unfinished = path("unfinished");
            generator::write_pair(&sent, &unfinished, packets, snap_length)
                .expect("captures can be written");
            fs::rename(&unfinished, &received).expect("a file can be renamed");
        }
        Self {
            sent,
            received,
            packets,
        }
    }

    /// Nanoseconds per packet of both sides.
    fn per_packet(&self, seconds: f64) -> f64 {
        seconds * 1e9 / (2 * self.packets) as f64
    }
}

fn compare(pair: &Pair, few: &Pair) {
    // A warm-up run, so that every contender finds the files in the page cache.
    cat(pair).ns.ok();
    let (ours, record) = ours(pair);
    let slow = [dpkt(few), tshark(few)];
    let fast = [libpcap(pair), cat(pair)];
    let ns = *ours.ns.as_ref().expect("ours was measured");
    println!("{:<34}{:>12}{:>12}", "", "ns/packet", "of ours");
    println!("{:<34}{ns:>12.1}{:>12}", ours.name, "1");
    for taken in slow.iter().chain(&fast) {
        match &taken.ns {
            Ok(peer) => println!(
                "{:<34}{peer:>12.1}{:>12.2}  {}",
                taken.name,
                peer / ns,
                taken.remark
            ),
            Err(why) => println!("{:<34}skipped: {why}", taken.name),
        }
    }
    let aggregate = &record.aggregate;
    println!(
        "  figures: {} sent, {} lost, delay median {:.1} µs, 99 % {:.1} µs",
        aggregate.sent_frames,
        aggregate.lost_frames,
        aggregate.delay.p50_ns as f64 / 1e3,
        aggregate.delay.p99_ns as f64 / 1e3,
    );
}

struct Unwatched;

impl Watch for Unwatched {
    fn on_progress(&self, _: u64, _: u64) {}
}

fn ours(pair: &Pair) -> (Taken, RunRecord) {
    let params = AnalysisParams {
        sent: vec![pair.sent.clone()],
        via: Vec::new(),
        received: vec![pair.received.clone()],
        slices: SliceRule::Automatic,
        bin: Duration::from_millis(50),
        run: None,
        phases: Vec::new(),
        medians: false,
        loss_timeout: Duration::from_secs(5),
        accept_clock_estimate: false,
        innermost: false,
    };
    let mut last = None;
    let seconds = median_of(REPEATS, || {
        let key = RunKey {
            policy: "p".to_owned(),
            scenario: "s".to_owned(),
            repetition: 0,
            ..RunKey::default()
        };
        last = Some(analyse(&params, key, &Unwatched, None).expect("it is analysed"));
    });
    let taken = Taken {
        name: "ours, to all figures",
        ns: Ok(pair.per_packet(seconds)),
        remark: String::new(),
    };
    (taken, last.expect("it ran"))
}

fn median_of(runs: usize, mut run: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[runs / 2]
}

/// Runs a program to its end; returns its output.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(said.lines().last().unwrap_or("it failed").to_owned())
}

fn timed(runs: usize, mut command: impl FnMut() -> Command) -> Result<f64, String> {
    let mut problem = None;
    let seconds = median_of(runs, || problem = run(&mut command()).err());
    problem.map_or(Ok(seconds), Err)
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
}

fn dpkt(pair: &Pair) -> Taken {
    let script = peers().join("with_dpkt.py");
    let printed = run(Command::new("python3")
        .arg(script)
        .args([&pair.sent, &pair.received]));
    let seconds = printed.and_then(|line| {
        let field = line.split("\"seconds\": ").nth(1);
        let digits = field.and_then(|field| field.split([',', '}']).next()?.parse().ok());
        digits
            .map(|seconds: f64| (seconds, line.trim().to_owned()))
            .ok_or(line)
    });
    let (ns, remark) = match seconds {
        Ok((seconds, line)) => (Ok(pair.per_packet(seconds)), line),
        Err(why) => (Err(why), String::new()),
    };
    Taken {
        name: "dpkt, Python",
        ns,
        remark,
    }
}

fn tshark(pair: &Pair) -> Taken {
    let fields = [
        "frame.time_epoch",
        "frame.len",
        "ip.id",
        "udp.srcport",
        "data.data",
    ];
    let seconds = [&pair.sent, &pair.received].into_iter().map(|file| {
        timed(1, || {
            let mut command = Command::new("tshark");
            command.arg("-r").arg(file).args(["-T", "fields"]);
            for field in fields {
                command.args(["-e", field]);
            }
            command.stdout(Stdio::null());
            command
        })
    });
    Taken {
        name: "tshark -T fields, parsing only",
        ns: seconds
            .sum::<Result<f64, _>>()
            .map(|seconds| pair.per_packet(seconds)),
        remark: String::new(),
    }
}

/// Compiled here, against the installed library.
fn libpcap(pair: &Pair) -> Taken {
    let program = folder().join("count_with_libpcap");
    let built = run(Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(peers().join("count_with_libpcap.c"))
        .arg("-lpcap"));
    let seconds = built.and_then(|_| {
        timed(REPEATS, || {
            let mut command = Command::new(&program);
            command.args([&pair.sent, &pair.received]);
            command
        })
    });
    Taken {
        name: "libpcap, counting only",
        ns: seconds.map(|seconds| pair.per_packet(seconds)),
        remark: String::new(),
    }
}

fn cat(pair: &Pair) -> Taken {
    let seconds = timed(REPEATS, || {
        let mut command = Command::new("sh");
        command
            .args(["-c", "cat \"$0\" \"$1\" > /dev/null"])
            .args([&pair.sent, &pair.received]);
        command
    });
    Taken {
        name: "cat > /dev/null",
        ns: seconds.map(|seconds| pair.per_packet(seconds)),
        remark: String::new(),
    }
}

/// Next to the build output.
fn folder() -> PathBuf {
    let itself = std::env::current_exe().expect("the path of this benchmark");
    let folder = itself
        .ancestors()
        .find(|path| path.ends_with("release"))
        .unwrap_or(Path::new("."))
        .join("captures-benchmark");
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}
