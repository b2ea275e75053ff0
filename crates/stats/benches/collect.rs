//! Cost of measurement per packet: `on_sent` and `on_received` together.

#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hdrhistogram::Histogram;
use slicewise_stats::collect::{CollectorParams, FlowPosition, RunCollector};
use slicewise_stats::record::RunKey;
use slicewise_units::{Duration, Instant};
use std::hint::black_box;
use std::time;

const PACKETS: u64 = 100_000;
/// 100,000 packets of two slices in 40 s, as in the router study.
const GAP_NS: u64 = 400_000;

fn params() -> CollectorParams {
    CollectorParams {
        slices: vec!["critical".into(), "best effort".into()],
        duration: Duration::from_secs(40),
        bin: Duration::from_millis(50),
        cycle: Duration::from_secs(2),
    }
}

/// A delay between 0.2 and 8.6 ms with jumps like those of queues.
fn delay_ns(packet: u64) -> u64 {
    200_000 + (packet.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 41)
}

/// Packets of four flows, of which every `lost_every`th is lost.
fn collect(collector: &mut RunCollector, lost_every: u64) {
    for packet in 0..PACKETS {
        let slice = usize::from(packet & 1 == 1);
        let position = FlowPosition {
            flow: u32::try_from(packet & 3).unwrap(),
            sequence: u32::try_from(packet >> 2).unwrap(),
        };
        let sent_at = Instant::from_nanos(packet * GAP_NS);
        collector.on_sent(slice, packet & 2 == 0, sent_at, 1490);
        if packet % lost_every == lost_every - 1 {
            collector.on_lost(slice, sent_at, 1490);
            continue;
        }
        let now = Instant::from_nanos(packet * GAP_NS + delay_ns(packet));
        collector.on_received(slice, Some(position), sent_at, now, 1490);
        if packet & 2 == 0 {
            collector.on_received_from_first(slice, now);
        }
    }
}

fn key() -> RunKey {
    RunKey {
        policy: "p".into(),
        scenario: "s".into(),
        ..RunKey::default()
    }
}

fn benches(c: &mut Criterion) {
    let mut collector = RunCollector::new(params()).unwrap();
    let mut group = c.benchmark_group("collect");
    group
        .sample_size(20)
        .measurement_time(time::Duration::from_secs(2));
    group.throughput(Throughput::Elements(PACKETS));
    for (name, lost_every) in [
        ("on_sent + on_received", u64::MAX),
        ("on_sent + on_received or on_lost, 1 % lost", 100),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                collect(&mut collector, lost_every);
                collector.reset();
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("finish a run of 40 s", |b| {
        let mut full = RunCollector::new(params()).unwrap();
        collect(&mut full, u64::MAX);
        b.iter_batched_ref(
            || full.clone(),
            |collector| black_box(collector.finish(key(), Vec::new())),
            BatchSize::LargeInput,
        );
    });
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("hdrhistogram alone, for comparison", |b| {
        let mut histogram = Histogram::<u32>::new_with_bounds(1, 100_000_000_000, 3).unwrap();
        b.iter(|| {
            for packet in 0..PACKETS {
                histogram.record(black_box(delay_ns(packet))).unwrap();
            }
        });
    });
    group.finish();
}

criterion_group!(collect_benches, benches);
criterion_main!(collect_benches);
