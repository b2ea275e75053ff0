//! Simulated data packets a second at 10 Gbit/s with full-size frames, acknowledgements and measurement included: bulk
//! transfers over TCP through a port, 10 flows and 2000; and two hosts behind a switch, with UDP of 10 Gbit/s each, and with
//! 2 and 200 flows of TCP. The first load in ns-3, too, where that is installed: a single run each, of less simulated time.

#[path = "peers/ns3.rs"]
mod ns3;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};
use std::hint::black_box;
use std::path::Path;

const STUDIES: [(&str, &str); 2] = [
    (
        "tcp",
        concat!(env!("CARGO_MANIFEST_DIR"), "/benches/tcp.yaml"),
    ),
    (
        "switch",
        concat!(env!("CARGO_MANIFEST_DIR"), "/benches/switch.yaml"),
    ),
];

fn tcp(criterion: &mut Criterion) {
    for (name, path) in STUDIES {
        let study = Study::load(Path::new(path)).expect("the study of this benchmark is valid");
        bench(criterion, name, &study);
    }
    beside_ns3();
}

/// Packets that arrived in ns-3, and the seconds of processor time it took.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn beside_ns3() {
    for flows in [10, 2000] {
        match ns3::run(flows, 0.1) {
            Ok(line) => println!("ns-3, {flows} flows: {line}"),
            Err(why) => println!("ns-3 is skipped: {why}"),
        }
    }
}

fn bench(criterion: &mut Criterion, name: &str, study: &Study) {
    let simulator = Simulator::default();
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    for scenario in study.scenarios.iter().map(|scenario| &scenario.name) {
        let filter = RunFilter {
            scenarios: vec![scenario.clone()],
            ..RunFilter::default()
        };
        let runs = study.runs(&filter).expect("the study has this scenario");
        let run = || {
            simulator
                .run(study, &runs[0])
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
