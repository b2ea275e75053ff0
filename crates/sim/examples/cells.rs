//! Runs each policy × scenario of a study once, or one of them, and prints what each slice got.
//!
//!     cargo run --release -p slicewise-sim --example cells -- studies/router-mechanisms.yaml \
//!         [POLICY [SCENARIO]]

#![allow(clippy::print_stdout, reason = "a program that prints")]

use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |n| std::env::args().nth(n);
    let path = argument(1).unwrap_or("studies/router-mechanisms.yaml".to_owned());
    let study = Study::load(Path::new(&path)).map_err(|problems| format!("{problems}"))?;
    let filter = RunFilter {
        policies: argument(2).into_iter().collect(),
        scenarios: argument(3).into_iter().collect(),
        repetitions: Some(1),
    };
    println!(
        "policy      scenario slice        Mbit/s  whole   loss %   mean µs   p50 µs   p99 µs   \
         max µs  min µs | mean, whole run"
    );
    let (simulator, start) = (Simulator::default(), Instant::now());
    let mut packets = 0;
    for run in study.runs(&filter)? {
        let record = simulator.run(&study, &run)?;
        packets += record
            .slices
            .iter()
            .map(|slice| slice.whole.sent_frames)
            .sum::<u64>();
        print(&record);
    }
    let elapsed = start.elapsed();
    println!(
        "{packets} packets in {elapsed:?}: {} ns each",
        elapsed.as_nanos() / u128::from(packets)
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn print(record: &RunRecord) {
    for slice in &record.slices {
        let (steady, whole) = (&slice.steady, &slice.whole);
        let us = |ns: u64| ns as f64 / 1e3;
        println!(
            "{:<12} {:>6} {:<12} {:>7.3} {:>7.3} {:>8.4} {:>9.1} {:>8.1} {:>8.1} {:>8.1} {:>7.1} | {:>8.1}",
            record.key.policy,
            record.key.scenario,
            slice.slice,
            steady.throughput_bits_per_second / 1e6,
            whole.throughput_bits_per_second / 1e6,
            whole.loss_ratio * 100.0,
            steady.delay.mean_ns / 1e3,
            us(steady.delay.p50_ns),
            us(steady.delay.p99_ns),
            us(steady.delay.max_ns),
            us(whole.delay.min_ns),
            whole.delay.mean_ns / 1e3,
        );
    }
    let transient = &record.transient;
    println!(
        "{:>19} transient ends at {:.2} s{}; {:.3} Mbit/s before, {:.3} after; drops {}",
        "",
        transient.end_ns as f64 / 1e9,
        if transient.steady_state_reached {
            ""
        } else {
            " (no steady state)"
        },
        transient.throughput_before_bits_per_second / 1e6,
        transient.throughput_after_bits_per_second / 1e6,
        record
            .drops
            .iter()
            .map(|drop| format!("{} {} {}", drop.class, drop.reason, drop.frames))
            .collect::<Vec<_>>()
            .join(", "),
    );
}
