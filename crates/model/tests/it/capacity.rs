//! How much of what exact deadlines allow is admitted: the table of `docs/mechanisms/guaranteed-bound.md`.
//!
//! `cargo test -p slicewise-model --test it capacity -- --nocapture` prints it.

use slicewise_model::{Admission, AdmissionParams, DelayRange, GuaranteeRequest, Rate};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};
use std::fmt::Write as _;

const LINK: u64 = 1_000_000_000;
const LARGEST_FRAME: u64 = 1_522;
/// Of each slice.
const RATE: u64 = 20_000;
const BURST: u64 = 1_522;

fn range() -> DelayRange {
    DelayRange::new(Duration::from_micros(10), Duration::from_millis(100))
}

/// Slices of these delays, ns, in turn: how many earliest-deadline-first without buckets and classes can serve beside a largest
/// frame, by the condition at every deadline.
fn exact(delays: &[u64]) -> u64 {
    let nanobits = |bytes: u64| u128::from(bytes) * 8_000_000_000;
    let fits = |count: u64| {
        let each = delays.len() as u64;
        let number = |index: usize| count / each + u64::from((index as u64) < count % each);
        u128::from(RATE * count) <= u128::from(LINK)
            && delays.iter().all(|&at| {
                let due = delays.iter().enumerate().filter(|(_, delay)| **delay <= at);
                let due = due.map(|(index, delay)| {
                    let one = nanobits(BURST) + u128::from(RATE) * u128::from(at - delay);
                    u128::from(number(index)) * one
                });
                due.sum::<u128>() + nanobits(LARGEST_FRAME) <= u128::from(LINK) * u128::from(at)
            })
    };
    (1..).find(|&count| !fits(count)).unwrap() - 1
}

/// How many are admitted, where each asks for `of(delay)`.
fn admitted(delays: &[u64], of: impl Fn(Duration) -> Duration) -> u64 {
    let mut admission = Admission::new(AdmissionParams {
        link: Rate::l2(BitRate::new(LINK)),
        accounting: Accounting::L2,
        largest_frame: ByteCount::new(LARGEST_FRAME),
        buffer: None,
        delays: range(),
    });
    let mut admits = |delay: &u64| {
        let request = GuaranteeRequest {
            rate: BitRate::new(RATE),
            burst: ByteCount::new(BURST),
            delay: Some(of(Duration::from_nanos(*delay))),
            smallest_frame: ByteCount::ZERO,
        };
        admission.try_admit(&request).is_ok()
    };
    delays
        .iter()
        .cycle()
        .take_while(|delay| admits(delay))
        .count() as u64
}

#[test]
fn up_to_128_distinct_delays_lose_at_most_one_percent_and_the_page_says_how_much() {
    let micros = |delays: &[u64]| delays.iter().map(|delay| delay * 1_000).collect::<Vec<_>>();
    let millis = |delays: &[u64]| delays.iter().map(|delay| delay * 1_000_000).collect();
    let spread = |count: u64| {
        let delays = (0..count).map(|index| 2_000_000 + index * 90_000_000 / count);
        delays.collect::<Vec<u64>>()
    };
    let mixes: [(&str, Vec<u64>); 6] = [
        ("1, 2, 4, 8 ms", millis(&[1, 2, 4, 8])),
        ("5, 10, 20 ms", millis(&[5, 10, 20])),
        ("200 µs, 3 ms, 30 ms", micros(&[200, 3_000, 30_000])),
        ("64 from 2 to 92 ms", spread(64)),
        ("128 from 2 to 92 ms", spread(128)),
        ("500 from 2 to 92 ms", spread(500)),
    ];
    let mut table = String::from(
        "| delays, in turn | exact EDF | admitted | share | four delays per doubling |\n|---|---|---|---|---|\n",
    );
    for (name, delays) in &mixes {
        let all = exact(delays);
        let ours = admitted(delays, |delay| delay);
        let stepped = admitted(delays, |delay| range().step_within(delay).unwrap());
        let share = |part: u64| part as f64 / all as f64 * 100.0;
        if delays.len() <= 128 {
            assert!(share(ours) >= 99.0, "{name}: {ours} of {all}");
        }
        assert!(ours <= all, "{name}: more than can be served");
        writeln!(
            table,
            "| {name} | {all} | {ours} | {:.1} % | {:.1} % |",
            share(ours),
            share(stepped)
        )
        .unwrap();
    }
    println!("{table}");
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/mechanisms/guaranteed-bound.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table),
        "the page has another table than this:\n{table}"
    );
}
