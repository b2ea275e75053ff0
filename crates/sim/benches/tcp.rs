//! Simulated data packets a second with TCP: bulk transfers over a link of 10 Gbit/s with full-size frames,
//! acknowledgements and measurement included; 10 flows, and 2000.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};
use std::hint::black_box;
use std::path::Path;

const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/tcp.yaml");

fn tcp(criterion: &mut Criterion) {
    let study = Study::load(Path::new(STUDY)).expect("the study of this benchmark is valid");
    let simulator = Simulator::default();
    let mut group = criterion.benchmark_group("tcp");
    group.sample_size(10);
    for scenario in ["flows-10", "flows-2000"] {
        let filter = RunFilter {
            scenarios: vec![scenario.to_owned()],
            ..RunFilter::default()
        };
        let runs = study.runs(&filter).expect("the study has this scenario");
        let run = || {
            simulator
                .run(&study, &runs[0])
                .expect("a run of a valid study")
        };
        let first = run();
        print(scenario, &first);
        let packets = first
            .slices
            .iter()
            .map(|slice| slice.whole.sent_frames)
            .sum();
        group.throughput(Throughput::Elements(packets));
        group.bench_function(scenario, |bencher| bencher.iter(|| black_box(run())));
    }
    group.finish();
}

/// What was simulated, so that a figure can be judged.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn print(scenario: &str, record: &RunRecord) {
    for application in &record.applications {
        let transport = &application.transport;
        println!(
            "{scenario}: {:.3} Gbit/s goodput, {} of {} segments sent again, round trip {:.0} us",
            transport.goodput_bits_per_second / 1e9,
            transport.retransmitted_segments,
            transport.segments,
            transport.rtt_mean_ns / 1e3,
        );
    }
}

criterion_group!(benches, tcp);
criterion_main!(benches);
