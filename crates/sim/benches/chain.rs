//! Simulated packets a second through the whole chain: source, link, processing, priority policy,
//! licence, link, capture, statistics — one run of scenario 6 of the router study.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use slicewise_sim::Simulator;
use slicewise_study::{Backend, RunFilter, Study};
use std::hint::black_box;
use std::path::Path;

const STUDY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../studies/router-mechanisms.yaml"
);

fn chain(criterion: &mut Criterion) {
    let study = Study::load(Path::new(STUDY)).expect("the study that ships is valid");
    let simulator = Simulator::default();
    let mut group = criterion.benchmark_group("chain");
    group.sample_size(20);
    for policy in ["priority", "no-policy", "bandwidth"] {
        let filter = RunFilter {
            policies: vec![policy.to_owned()],
            scenarios: vec!["6".to_owned()],
            repetitions: Some(1),
        };
        let runs = study
            .runs(&filter)
            .expect("policy and scenario are in the study");
        let run = || {
            simulator
                .run(&study, &runs[0])
                .expect("a run of the study that ships")
        };
        let packets = run()
            .slices
            .iter()
            .map(|slice| slice.whole.sent_frames)
            .sum();
        group.throughput(Throughput::Elements(packets));
        group.bench_function(policy, |bencher| bencher.iter(|| black_box(run())));
    }
    group.finish();
}

criterion_group!(benches, chain);
criterion_main!(benches);
