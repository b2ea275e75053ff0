//! Instructions a simulated packet takes through the whole chain: source, link, processing, policy, licence, link,
//! capture, statistics. Scenario 6 of the router study; counted by callgrind, so the same on any machine of an
//! architecture, whatever else it does.
//!
//! `cargo bench -p slicewise-sim --bench instructions` runs itself under `valgrind --tool=callgrind` with one run
//! and with two of each policy; the difference is the cost of a run. Without valgrind it prints a note and exits.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

use slicewise_sim::Simulator;
use slicewise_study::{Backend, RunFilter, Study};
use std::path::Path;
use std::process::{Command, Stdio};

const STUDY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../studies/router-mechanisms.yaml"
);
const POLICIES: [&str; 3] = ["priority", "no-policy", "bandwidth"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, policy, runs] = arguments.as_slice()
        && flag == "--count"
    {
        println!("packets {}", run(policy, runs.parse().expect("a number")));
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
    println!("{:<12} instructions/packet", "policy");
    for policy in POLICIES {
        let (once, packets) = count(policy, 1);
        let (twice, _) = count(policy, 2);
        println!("{policy:<12} {}", (twice - once) / packets);
    }
}

/// Packets sent in one run, of which `runs` take place.
fn run(policy: &str, runs: u32) -> u64 {
    let study = Study::load(Path::new(STUDY)).expect("the study that ships is valid");
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        scenarios: vec!["6".to_owned()],
        repetitions: Some(1),
    };
    let plan = study
        .runs(&filter)
        .expect("policy and scenario are in the study");
    let simulator = Simulator::default();
    let mut packets = 0;
    for _ in 0..runs {
        let record = simulator
            .run(&study, &plan[0])
            .expect("a run of the study that ships");
        packets = record
            .slices
            .iter()
            .map(|slice| slice.whole.sent_frames)
            .sum();
    }
    packets
}

/// Instructions of the whole process, and packets in one run.
fn count(policy: &str, runs: u32) -> (u64, u64) {
    let itself = std::env::current_exe().expect("the path of this benchmark");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(itself)
        .args(["--count", policy, &runs.to_string()])
        .output()
        .expect("valgrind starts");
    let number = |text: &str, mark: &str| {
        let line = text.lines().find_map(|line| line.split_once(mark));
        line.and_then(|(_, number)| number.trim().parse().ok())
    };
    let log = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout);
    number(&log, "Collected : ")
        .zip(number(&out, "packets "))
        .expect("callgrind prints what it collected")
}
