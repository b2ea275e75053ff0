//! ns/packet of the bare pipeline in bursts of 32, one row per mechanism.
//!
//! `cargo bench -p slicewise-dataplane --bench pipeline`
#![allow(missing_docs, clippy::expect_used)]

mod workload;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use workload::{BURST_MAX, MECHANISMS, Workload};

const PACKETS: u64 = 4_096;

fn mechanisms(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(PACKETS));
    for mechanism in MECHANISMS {
        let mut workload = Workload::new(mechanism);
        group.bench_function(mechanism, |bencher| {
            bencher.iter(|| workload.run(PACKETS, BURST_MAX))
        });
    }
    group.finish();
}

criterion_group!(benches, mechanisms);
criterion_main!(benches);
