//! Instructions/packet of our scheduler: by the machine's counters through `perf`, with cycles and
//! cache misses, or by callgrind where there are none.

use crate::workload::Scenario;
use std::process::{Command, Stdio};

const SIZES: [u32; 2] = [4_096, 100_000];
const FEW: u64 = 10_000;
const MANY: u64 = 210_000;
const EVENTS: [&str; 3] = ["instructions", "cycles", "cache-misses"];

/// Count and print a row per scenario and size.
pub fn report(name: &str) {
    println!("ours: {name}; difference between {MANY} and {FEW} packets, per packet");
    let perf = perf(&["true"]).is_some();
    if perf {
        println!(
            "{:<9}{:>9}{:>14}{:>9}{:>14}",
            "scenario", "slices", EVENTS[0], EVENTS[1], EVENTS[2]
        );
    } else if callgrind(&["--version"]).is_some() {
        println!("perf is not supported here; callgrind counts instructions");
        println!("{:<9}{:>9}{:>14}", "scenario", "slices", EVENTS[0]);
    } else {
        println!("skipped: perf is not supported here, and valgrind is not installed");
        return;
    }
    for scenario in Scenario::ALL {
        for slices in SIZES {
            let count = |packets| count(perf, scenario, slices, packets);
            let (Some(few), Some(many)) = (count(FEW), count(MANY)) else {
                println!("{:<9}{slices:>9}{:>14}", scenario.name(), "–");
                continue;
            };
            print!("{:<9}{slices:>9}", scenario.name());
            for ((few, many), width) in few.iter().zip(&many).zip([14, 9, 14]) {
                print!("{:>width$.1}", (many - few) / (MANY - FEW) as f64);
            }
            println!();
        }
    }
}

fn count(perf_counts: bool, scenario: Scenario, slices: u32, packets: u64) -> Option<Vec<f64>> {
    let itself = std::env::current_exe().ok()?;
    let (slices, packets) = (slices.to_string(), packets.to_string());
    let command = [
        itself.to_str()?,
        "--count",
        scenario.name(),
        &slices,
        &packets,
    ];
    if perf_counts {
        perf(&command)
    } else {
        callgrind(&command)
    }
}

/// The events of a program, or `None` if the machine cannot count one of them.
fn perf(command: &[&str]) -> Option<Vec<f64>> {
    let output = Command::new("perf")
        .args(["stat", "-x,", "-e", &EVENTS.join(":u,"), "--"])
        .args(command)
        .stdout(Stdio::null())
        .output()
        .ok()?;
    let log = String::from_utf8_lossy(&output.stderr);
    let of = |event: &&str| {
        let line = log.lines().find(|line| line.contains(*event))?;
        line.split(',').next()?.parse().ok()
    };
    EVENTS.iter().map(of).collect()
}

/// The instructions of a program; of no program (`--version`) an empty list.
fn callgrind(command: &[&str]) -> Option<Vec<f64>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(command)
        .stdout(Stdio::null())
        .output()
        .ok()?;
    if command == ["--version"] {
        return Some(Vec::new());
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let collected = |line: &str| line.split_once("Collected : ")?.1.trim().parse().ok();
    log.lines().find_map(collected).map(|count| vec![count])
}
