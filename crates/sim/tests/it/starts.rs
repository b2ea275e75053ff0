//! Sources that a study gives no phases: they start at drawn moments, and no result rests on a common one.

use crate::support::parsed;
use slicewise_sim::Simulator;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};
use std::fmt::Write;

fn runs(study: &Study) -> impl Iterator<Item = RunRecord> {
    let runs = study.runs(&RunFilter::default()).unwrap();
    (runs.into_iter()).map(move |run| Simulator::default().run(study, &run).unwrap())
}

/// 200 flows of iperf3 that fill 90 % of a link together, a packet each 74 ms.
fn many_slow_flows(pattern: &str) -> Study {
    let mut text = "\
name: many-slow-flows
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 35 Mbit/s}
slices:
  critical: {match: {vlan: 10}, share: 50 %, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 50 %, headers: {vlan: 20}}
policies:
  fifo: {classes: [{name: class-default, queue_limit: 64 packets}]}
repetitions: 20
duration: 2 s
scenarios:
  load:
    reference: true
    sources:
"
    .to_owned();
    for number in 0..200 {
        let slice = if number < 100 { "critical" } else { "rest" };
        writeln!(
            text,
            "      s{number}: {{slice: {slice}, {pattern}, payload: 1448 B, rate: 0.45 %, counts: payload}}"
        )
        .unwrap();
    }
    parsed(&text)
}

#[test]
fn many_slow_flows_lose_nothing_on_a_link_that_they_do_not_fill() {
    for pattern in ["pattern: iperf3", "pattern: cbr"] {
        for record in runs(&many_slow_flows(pattern)) {
            let [critical, rest] = [0, 1].map(|slice| record.slices[slice].whole);
            assert!(critical.sent_frames > 2_500, "{}", critical.sent_frames);
            assert_eq!(
                (critical.lost_frames, rest.lost_frames),
                (0, 0),
                "{pattern}"
            );
        }
    }
    // In step they lose most of what they send.
    let in_step = many_slow_flows("pattern: iperf3, start_spread: 1 ms");
    let lost = runs(&in_step).map(|record| record.slices[0].whole.loss_ratio);
    assert!(lost.fold(1.0, f64::min) > 0.1);
}

#[test]
fn fairness_is_of_the_time_in_which_all_connections_are_open() {
    let fairness = |application: &str| -> Vec<Option<f64>> {
        let text = format!(
            "\
name: fairness
link: {{rate: 1 Gbit/s}}
dut: {{model: port, port_rate: 40 Mbit/s}}
slices:
  data: {{match: {{}}, share: 100 %, headers: {{protocol: tcp}}}}
scenarios:
  load: {{reference: true, sources: {{data: {{slice: data, {application}}}}}}}
policies:
  fifo: {{classes: [{{name: class-default, queue_limit: 100 packets}}]}}
repetitions: 3
duration: 10 s
"
        );
        runs(&parsed(&text))
            .map(|run| run.applications[0].transport.fairness)
            .collect()
    };
    for start in [
        "application: {kind: bulk, flows: 4}",
        "application: {kind: bulk, flows: 4, stagger: 500 ms}",
        "start_spread: 0 s, application: {kind: bulk, flows: 4, stagger: 500 ms}",
    ] {
        for found in fairness(start) {
            assert!(found.is_some_and(|found| found > 0.7), "{start}: {found:?}");
        }
    }
    // Never open together.
    let apart = "start_spread: 0 s, application: {kind: bulk, flows: 2, bytes: 1 MB, stagger: 5 s}";
    assert_eq!(fairness(apart), [None; 3]);
}
