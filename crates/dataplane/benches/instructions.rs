//! Instructions/packet of the bare pipeline, counted by callgrind: the same on any machine of an
//! architecture, whatever else it does.
//!
//! `cargo bench -p slicewise-dataplane --bench instructions` runs itself under
//! `valgrind --tool=callgrind` once with few and once with many packets of each mechanism; the
//! difference is the cost of packets. Without valgrind it prints a note and exits.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

mod workload;

use std::process::{Command, Stdio};
use workload::{MECHANISMS, Workload};

const FEW: u64 = 10_000;
const MANY: u64 = 110_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, mechanism, packets] = arguments.as_slice()
        && flag == "--count"
    {
        let packets = packets.parse().expect("a number of packets");
        std::hint::black_box(Workload::new(mechanism).run(packets));
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
    println!("{:<22} instructions/packet", "mechanism");
    for mechanism in MECHANISMS {
        let per_packet = (count(mechanism, MANY) - count(mechanism, FEW)) / (MANY - FEW);
        println!("{mechanism:<22} {per_packet}");
    }
}

fn count(mechanism: &str, packets: u64) -> u64 {
    let itself = std::env::current_exe().expect("the path of this benchmark");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(itself)
        .args(["--count", mechanism, &packets.to_string()])
        .output()
        .expect("valgrind starts");
    let log = String::from_utf8_lossy(&output.stderr);
    log.lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, number)| number.trim().parse().ok())
        .expect("callgrind prints what it collected")
}
