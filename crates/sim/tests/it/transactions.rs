//! Transactions of a run, one by one: beside the same record, and as many as were foretold.

use crate::support::parsed;
use slicewise_sim::Simulator;
use slicewise_stats::application::{SourceTransactions, Transaction};
use slicewise_study::{Backend, RunFilter, Study};

fn study(queue: &str) -> Study {
    parsed(&format!(
        "\
name: web
link: {{rate: 1 Gbit/s, propagation: 1 ms}}
dut: {{model: port, port_rate: 5 Mbit/s}}
slices: {{web: {{match: {{source: 10.0.0.1}}, headers: {{source: 10.0.0.1, destination: 10.1.0.1}}, share: 100 %}}}}
scenarios:
  busy:
    sources:
      calls: {{slice: web, application: {{kind: requests, rate: 40 /s, connections: 3, response: {{exponential: 8 kB}}}}}}
      pages: {{slice: web, headers: {{destination: 10.1.0.2}}, application: {{kind: short_flows, clients: 2, response: 3 kB, pause: 1 ms}}}}
      files: {{slice: web, headers: {{destination: 10.1.0.3}}, start_spread: 2 s, application: {{kind: bulk, flows: 5, bytes: 30 kB}}}}
      films: {{slice: web, headers: {{destination: 10.1.0.4}}, application: {{kind: video, clients: 2, segment: 1 s, buffer: 3 s, ladder: [100 kbit/s, 400 kbit/s]}}}}
      endless: {{slice: web, headers: {{destination: 10.1.0.5}}, application: bulk}}
policies: {{fifo: {{classes: [{{name: class-default, queue_limit: {queue}}}]}}}}
repetitions: 2
duration: 4 s
"
    ))
}

fn answered(of: &SourceTransactions) -> Vec<u64> {
    let took = |one: &Transaction| Some(one.ends_ns? - one.begins_ns);
    of.transactions.iter().filter_map(took).collect()
}

#[test]
fn transactions_are_what_distributions_of_the_same_record_are_of() {
    let study = study("30 packets");
    for run in study.runs(&RunFilter::default()).unwrap() {
        let simulator = Simulator::default();
        let (record, sources) = simulator.run_with_transactions(&study, &run).unwrap();
        assert_eq!(record, simulator.run(&study, &run).unwrap());
        assert_eq!(record.applications.len(), sources.len());
        for (application, of) in record.applications.iter().zip(&sources) {
            assert_eq!(
                (&application.source, &application.slice),
                (&of.source, &of.slice)
            );
            let took = answered(of);
            let finished = [
                application.requests.map(|of| of.latency.samples),
                application.flows.map(|of| of.completed),
                application.video.map(|of| of.segments),
            ];
            let finished = finished.into_iter().flatten().next().unwrap_or(0);
            assert_eq!(took.len() as u64, finished, "{}", of.source);
            for point in &application.times {
                let below = took.iter().filter(|took| **took <= point.0).count();
                assert_eq!(below as f64 / took.len() as f64, point.1, "{}", of.source);
            }
            let pending = of.transactions.len() - took.len();
            if let Some(requests) = application.requests {
                assert_eq!(pending as u64, requests.unanswered);
            }
            if let Some(flows) = application.flows {
                assert_eq!(of.transactions.len() as u64, flows.time_of_begun.samples);
            }
        }
        let kinds = sources.iter();
        let kinds = kinds.map(|of| of.transactions.first().map(|one| one.kind));
        let mut kinds: Vec<_> = kinds.collect();
        kinds.sort_unstable();
        let wanted = ["flow", "flow", "request", "segment"].map(Some);
        assert_eq!(kinds, [&[None][..], &wanted].concat());
    }
}

#[test]
fn there_are_at_most_as_many_as_foretold() {
    let study = study("100 packets");
    let runs = study.runs(&RunFilter::default()).unwrap();
    let (_, sources) = (Simulator::default())
        .run_with_transactions(&study, &runs[0])
        .unwrap();
    let counts: Vec<usize> = sources.iter().map(|of| of.transactions.len()).collect();
    // 160 requests, 5 files, 2 × 9 segments; the link carries 768 short flows if nothing else is sent.
    let most = study.most_transactions(0, 0);
    assert_eq!(most, 160 + 5 + 2 * 9 + 768 + 2);
    assert_eq!((counts[0], counts[2]), (160, 5));
    assert!(counts[1] > 10 && counts[3] > 4, "{counts:?}");
    assert!(counts.iter().sum::<usize>() as u64 <= most, "{counts:?}");
    assert_eq!(study.most_transactions(0, 1), 0, "no such scenario");
}
