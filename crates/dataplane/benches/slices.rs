//! ns/packet, the longest call and the state of a slice: our scheduler compared with `librte_sched`.
//!
//! `cargo bench -p slicewise-dataplane --bench slices [-- --quick]`
//!
//! Both sides run in turn, each run in a process of its own; the table gives medians. Without DPDK,
//! a C compiler or pkg-config only our own numbers are printed. `--quick` takes one size and one
//! run. What is measured, and what is not: `docs/benchmarks/slices.md`.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

#[path = "slices/contender.rs"]
mod contender;
#[path = "peers/librte_sched.rs"]
mod librte_sched;
#[path = "slices/workload.rs"]
mod workload;

use librte_sched::{LibrteSched, TrafficClass};
use std::process::Command;
use workload::{Measurement, Scenario, Workload};

/// The scheduler that is measured.
type Ours = contender::GuaranteedSlices;

/// Sizes at which both run: powers of two, as the peer requires.
const SIZES_OF_BOTH: [u32; 4] = [16, 4_096, 32_768, 1_048_576];
/// Sizes at which only ours runs.
const SIZES_OF_OURS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// The size the targets are about.
const REFERENCE_SIZE: u32 = 4_096;
const REPEATS: usize = 3;
/// Random arrivals occasionally fill a queue. A larger share of drops would distort the measurement.
const DROP_SHARE_TO_REPORT: f64 = 0.001;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "--run", scenario, slices, packets] => {
            let (mut workload, packets) = workload_of(scenario, slices, packets);
            println!("{}", workload.measure(packets).to_json());
        }
        _ if words.contains(&"--quick") => report(&[REFERENCE_SIZE], &[], 1),
        _ => report(&SIZES_OF_BOTH, &SIZES_OF_OURS, REPEATS),
    }
}

fn workload_of(scenario: &str, slices: &str, packets: &str) -> (Workload<Ours>, u64) {
    let scenario = Scenario::from_name(scenario).expect("the name of a scenario");
    let slices = slices.parse().expect("a number of slices");
    let packets = packets.parse().expect("a number of packets");
    (Workload::new(slices, scenario), packets)
}

/// Packets of a run. In the peer's shaped runs a packet takes real time: 5 µs at 4,096 pipes.
fn packets(scenario: Scenario, slices: u32) -> u64 {
    match scenario {
        Scenario::Shaped if slices > REFERENCE_SIZE => 50_000,
        Scenario::Shaped => 100_000,
        Scenario::Deep | Scenario::Shallow => 1_000_000,
    }
}

/// Shaped, a slice may send two packets at once: fewer slices than these cannot fill a burst.
const SHAPED_SLICES_MIN: u32 = 256;
/// Shaped, the peer's clock must be read every 8 ms, and a call takes longer the more pipes it visits.
const SHAPED_PIPES_MAX: u32 = 65_536;

fn ours(scenario: Scenario, slices: u32) -> Measurement {
    let itself = std::env::current_exe().expect("the path of this benchmark");
    let output = Command::new(itself)
        .args(["--run", scenario.name(), &slices.to_string()])
        .arg(packets(scenario, slices).to_string())
        // Huge pages for allocations, as for the peer.
        .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
        .output()
        .expect("this benchmark starts itself");
    let line = String::from_utf8_lossy(&output.stdout);
    Measurement::from_json(&line).unwrap_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        panic!("{} with {slices} slices: {complaint}", scenario.name())
    })
}

struct Row {
    scenario: Scenario,
    slices: u32,
    ours: Measurement,
    strict: Option<Measurement>,
    best_effort: Option<Measurement>,
}

/// Both sides in turn, `repeats` times.
fn row(peer: Option<&LibrteSched>, scenario: Scenario, slices: u32, repeats: usize) -> Row {
    let peer = peer.filter(|_| scenario != Scenario::Shaped || slices <= SHAPED_PIPES_MAX);
    let (mut own, mut strict, mut best_effort) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeats {
        own.push(ours(scenario, slices));
        let Some(peer) = peer else { continue };
        for (class, runs) in [
            (TrafficClass::Strict, &mut strict),
            (TrafficClass::BestEffort, &mut best_effort),
        ] {
            match peer.run(scenario, slices, packets(scenario, slices), class) {
                Ok(run) => runs.push(run),
                Err(why) => eprintln!("librte_sched, {}, {slices} pipes: {why}", scenario.name()),
            }
        }
    }
    Row {
        scenario,
        slices,
        ours: Measurement::median(&own).expect("at least one run"),
        strict: Measurement::median(&strict),
        best_effort: Measurement::median(&best_effort),
    }
}

fn report(sizes_of_both: &[u32], sizes_of_ours: &[u32], repeats: usize) {
    let peer = LibrteSched::build();
    match &peer {
        Ok(peer) => println!("peer: librte_sched of DPDK {}", peer.version),
        Err(why) => println!("peer: librte_sched is skipped, only our numbers follow: {why}"),
    }
    println!("ours: {}", <Ours as contender::Contender>::NAME);
    println!(
        "medians of {repeats} runs; TC0: pipes with one strict-priority queue, BE: with the \
         best-effort queues\n"
    );
    println!(
        "{:<9}{:>9} |{:>9}{:>9}{:>9} |{:>8}{:>8} |{:>9}{:>9}{:>9} |{:>7}{:>7}{:>7}",
        "scenario",
        "slices",
        "ns/pkt",
        "TC0",
        "BE",
        "/TC0",
        "/BE",
        "call µs",
        "TC0",
        "BE",
        "B/slice",
        "TC0",
        "BE"
    );
    let peer = peer.as_ref().ok();
    let mut rows = Vec::new();
    for scenario in Scenario::ALL {
        let enough = |slices: &&u32| scenario != Scenario::Shaped || **slices >= SHAPED_SLICES_MIN;
        for &slices in sizes_of_both.iter().filter(enough) {
            rows.push(row(peer, scenario, slices, repeats));
            print_row(rows.last().expect("just pushed"));
        }
        for &slices in sizes_of_ours {
            rows.push(row(None, scenario, slices, repeats));
            print_row(rows.last().expect("just pushed"));
        }
    }
    println!();
    for scenario in Scenario::ALL {
        let cost = |slices| {
            let mut rows = rows.iter();
            let row = rows.find(|row| row.scenario == scenario && row.slices == slices)?;
            Some(row.ours.ns_per_packet)
        };
        if let (Some(million), Some(reference)) = (cost(1_000_000), cost(REFERENCE_SIZE)) {
            let ratio = million / reference;
            println!(
                "{}, ours: 1,000,000 slices cost {ratio:.2} times 4,096",
                scenario.name()
            );
        }
    }
}

fn print_row(row: &Row) {
    let of = |run: Option<Measurement>, quantity: fn(&Measurement) -> f64, decimals: usize| {
        run.map_or_else(
            || "–".to_owned(),
            |run| format!("{:.decimals$}", quantity(&run)),
        )
    };
    let own = Some(row.ours);
    let cost = |run| of(run, |run| run.ns_per_packet, 1);
    let ratio = |run: Option<Measurement>| {
        run.map_or_else(
            || "–".to_owned(),
            |run| format!("{:.2}", row.ours.ns_per_packet / run.ns_per_packet),
        )
    };
    let call = |run| of(run, |run| run.longest_call_us, 1);
    let state = |run| of(run, |run| run.bytes_per_slice, 0);
    println!(
        "{:<9}{:>9} |{:>9}{:>9}{:>9} |{:>8}{:>8} |{:>9}{:>9}{:>9} |{:>7}{:>7}{:>7}",
        row.scenario.name(),
        row.slices,
        cost(own),
        cost(row.strict),
        cost(row.best_effort),
        ratio(row.strict),
        ratio(row.best_effort),
        call(own),
        call(row.strict),
        call(row.best_effort),
        state(own),
        state(row.strict),
        state(row.best_effort),
    );
    for (side, run) in [("ours", own), ("TC0", row.strict), ("BE", row.best_effort)] {
        if let Some(run) = run.filter(|run| run.drop_ratio > DROP_SHARE_TO_REPORT) {
            println!(
                "  {side} dropped {:.1} % of these packets",
                run.drop_ratio * 100.0
            );
        }
    }
}
