//! Instructions/packet of the bare pipeline, counted by callgrind: the same on any machine of an
//! architecture, whatever else it does.
//!
//! Frames and their headers exist before: reading them is counted, making them is not.
//!
//! `cargo bench -p slicewise-dataplane --bench instructions` runs itself under
//! `valgrind --tool=callgrind` once with few and once with many packets of each mechanism; the
//! difference is the cost of packets. Without valgrind it prints a note and exits.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

mod workload;

use std::process::{Command, Stdio};
use workload::{BURST_MAX, MECHANISMS, Workload};

const FEW: u64 = 9_600;
const MANY: u64 = 105_600;
/// Frames that arrive together: one per flow, and as many as drivers usually hand over.
const BURSTS: [usize; 2] = [4, BURST_MAX];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, mechanism, packets, burst] = arguments.as_slice()
        && flag == "--count"
    {
        let packets = packets.parse().expect("a number of packets");
        let burst = burst.parse().expect("a number of frames");
        std::hint::black_box(Workload::new(mechanism).run(packets, burst));
        return;
    }
    if Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        println!("instructions: skipped, valgrind is not installed");
        return;
    }
    let [few, many] = BURSTS;
    println!("instructions/packet     in bursts of {few}  of {many}");
    for mechanism in MECHANISMS {
        let [few, many] = BURSTS.map(|burst| {
            let packets = count(mechanism, MANY, burst) - count(mechanism, FEW, burst);
            packets / (MANY - FEW)
        });
        println!("{mechanism:<22} {few:>13} {many:>6}");
    }
}

fn count(mechanism: &str, packets: u64, burst: usize) -> u64 {
    let itself = std::env::current_exe().expect("the path of this benchmark");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(itself)
        .args(["--count", mechanism])
        .args([packets.to_string(), burst.to_string()])
        .output()
        .expect("valgrind starts");
    let log = String::from_utf8_lossy(&output.stderr);
    log.lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, number)| number.trim().parse().ok())
        .expect("callgrind prints what it collected")
}
