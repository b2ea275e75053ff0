//! Slices told apart by VLAN pair, destination address or TEID: ns/packet when no flow is seen twice, bytes
//! per slice, and the time to add or remove one slice while packets are classified. Peers in the same run: one
//! standard hash map per mask, and the plain walk of ten class maps.
//!
//! `cargo bench -p slicewise-dataplane --bench classifier` (with valgrind: instructions/packet, too)
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
#![allow(unsafe_code, reason = "a global allocator that counts")]

#[path = "classifier/kinds.rs"]
mod kinds;

use kinds::{ALLOCATED, KINDS, Kind, MILLION, Random, clock, frames};
use slicewise_dataplane::Classifier;
use slicewise_model::{ClassMap, Discipline, PolicySpec};
use slicewise_units::BitRate;
use slicewise_wire::Headers;
use std::collections::HashMap;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

#[global_allocator]
static ALLOCATOR: kinds::Counting = kinds::Counting;

const ROUNDS: usize = 7;
const BURST: usize = 32;
const CHANGES: usize = 100_000;

fn empty() -> Classifier {
    let policy = PolicySpec {
        name: "slices".into(),
        classes: Vec::new(),
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    };
    Classifier::new(&policy.resolve(BitRate::new(10_000_000_000)).expect("valid"))
}

fn classifier(kind: Kind, slices: u32) -> Classifier {
    let mut classifier = empty();
    for slice in 0..slices {
        let inserted = classifier.insert(0, slice + 1, &kind.map(slice));
        inserted.expect("there is room");
    }
    classifier
}

/// Median ns per frame of several rounds over all of them.
fn nanos(frames: &[Headers], mut round: impl FnMut(&[Headers]) -> u64) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = clock();
            black_box(round(frames));
            (clock() - start) as f64 / frames.len() as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn singly(classifier: &Classifier, frames: &[Headers]) -> u64 {
    frames
        .iter()
        .fold(0, |sum, frame| sum + u64::from(classifier.classify(frame)))
}

fn in_bursts(classifier: &Classifier, frames: &[Headers]) -> u64 {
    let mut classes = [0; BURST];
    frames.chunks(BURST).fold(0, |sum, burst| {
        classifier.classify_burst(burst, &mut classes);
        sum + u64::from(classes[0])
    })
}

fn speed(name: &str, kind: Kind, slices: u32) {
    let frames = frames(kind, slices);
    let before = ALLOCATED.load(Ordering::Relaxed);
    let table = classifier(kind, slices);
    let bytes = (ALLOCATED.load(Ordering::Relaxed) - before) as f64 / f64::from(slices);
    let expected: u64 = (0..u64::from(MILLION))
        .map(|n| n % u64::from(slices) + 1)
        .sum();
    assert_eq!(
        singly(&table, &frames),
        expected,
        "every frame finds its slice"
    );
    let single = nanos(&frames, |frames| singly(&table, frames));
    let burst = nanos(&frames, |frames| in_bursts(&table, frames));
    let map: HashMap<u128, u32> = (0..slices)
        .map(|slice| (kind.key(&kind.headers(slice)), slice + 1))
        .collect();
    let peer = nanos(&frames, |frames| {
        let class = |frame| map.get(&kind.key(frame)).copied().unwrap_or(0);
        frames.iter().fold(0, |sum, f| sum + u64::from(class(f)))
    });
    let bytes = if slices < 1_000 {
        "-".to_owned()
    } else {
        format!("{bytes:.1}")
    };
    println!("{name:<22} {slices:>8} {single:>8.1} {burst:>8.1} {bytes:>8} {peer:>8.1}");
}

/// The walk of ten class maps, one after the other.
fn walk() {
    let maps: Vec<ClassMap> = (0..10).map(|slice| Kind::VlanPair.map(slice)).collect();
    let frames = frames(Kind::VlanPair, 10);
    let walked = nanos(&frames, |frames| {
        let class = |frame| maps.iter().position(|map| map.matches(frame)).unwrap_or(10);
        frames.iter().fold(0, |sum, f| sum + class(f) as u64)
    });
    println!("{:<22} {:>8} {walked:>8.1}", "plain walk", 10);
}

/// Times of single changes, with about 0.3 us for reading the clock, and with interrupts; a few frames are classified between them.
struct Changes(Vec<u64>);

impl Changes {
    fn time(&mut self, change: impl FnOnce()) {
        // The first system call after a while does what the kernel has postponed.
        black_box(clock());
        let start = clock();
        change();
        self.0.push(clock() - start);
    }

    fn print(mut self, what: &str) {
        self.0.sort_unstable();
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share) as usize];
        println!(
            "{what:<31} {:>8} {:>8} {:>8} {:>8}",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
}

fn changes(name: &str, kind: Kind) {
    let frames = frames(kind, MILLION);
    let mut random = Random(2);
    let (mut growing, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    let mut table = empty();
    let mut times = Changes(std::mem::take(&mut growing));
    for slice in 0..MILLION {
        let map = kind.map(slice);
        times.time(|| table.insert(0, slice + 1, &map).expect("there is room"));
    }
    times.print(&format!("{name}: grow to a million"));
    let (mut adding, mut removing) = (
        Changes(std::mem::take(&mut added)),
        Changes(std::mem::take(&mut removed)),
    );
    for _ in 0..CHANGES {
        let slice = random.below(MILLION as usize) as u32;
        let map = kind.map(slice);
        let start = random.below(frames.len() - BURST);
        black_box(singly(&table, &frames[start..start + BURST]));
        removing.time(|| assert!(table.remove(0, slice + 1, &map)));
        black_box(singly(&table, &frames[start..start + BURST]));
        adding.time(|| table.insert(0, slice + 1, &map).expect("there is room"));
    }
    adding.print(&format!("{name}: add one"));
    removing.print(&format!("{name}: remove one"));
    let mut times = Changes(Vec::new());
    for slice in 0..MILLION {
        let map = kind.map(slice);
        times.time(|| assert!(table.remove(0, slice + 1, &map)));
    }
    times.print(&format!("{name}: shrink to none"));
}

/// Instructions/packet: the difference between many and few packets under callgrind.
fn instructions() {
    let has_valgrind = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if has_valgrind.is_err() {
        println!("instructions: skipped, valgrind is not installed");
        return;
    }
    println!(
        "\n{:<22} {:>8} instructions/packet",
        "slices told apart by", "slices"
    );
    for (index, (name, kind)) in KINDS.iter().enumerate() {
        for slices in [10, kind.most()] {
            let [few, many] = [10_000, 110_000].map(|packets| {
                let itself = std::env::current_exe().expect("the path of this benchmark");
                let output = Command::new("valgrind")
                    .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                    .arg(itself)
                    .args(["--count", &index.to_string(), &slices.to_string()])
                    .arg(packets.to_string())
                    .output()
                    .expect("valgrind starts");
                let log = String::from_utf8_lossy(&output.stderr);
                let counted = log
                    .lines()
                    .find_map(|line| line.split_once("Collected : "))
                    .and_then(|(_, number)| number.trim().parse::<u64>().ok());
                counted.expect("callgrind prints what it collected")
            });
            println!("{name:<22} {slices:>8} {}", (many - few) / 100_000);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, kind, slices, packets] = arguments.as_slice()
        && flag == "--count"
    {
        let number = |text: &String| text.parse::<usize>().expect("a number");
        let (_, kind) = KINDS[number(kind)];
        let slices = number(slices) as u32;
        let (table, frames) = (classifier(kind, slices), frames(kind, slices));
        black_box(singly(&table, &frames[..number(packets)]));
        return;
    }
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "slices told apart by", "slices", "ns", "ns burst", "B/slice", "HashMap"
    );
    for (name, kind) in KINDS {
        for slices in [10, kind.most()] {
            speed(name, kind, slices);
        }
    }
    walk();
    println!(
        "\n{:<31} {:>8} {:>8} {:>8} {:>8}",
        "ns per change", "median", "99 %", "99.9 %", "most"
    );
    changes("VLAN pair", Kind::VlanPair);
    changes("IPv6 destination", Kind::Ipv6);
    instructions();
}
