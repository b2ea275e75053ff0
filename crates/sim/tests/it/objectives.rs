//! The study of voice beside an overload, from file to verdict, on a short link and on a long one.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, ObjectiveIndicator, Outcome, PolicyVerdict, VerdictTable};
use slicewise_study::{Backend, RunFilter};

const STUDY: &str = include_str!("../../../../studies/voice-and-bulk.yaml");

/// Six repetitions of two seconds, with `propagation` on each of the two links.
fn verdicts(propagation: &str, delay: &str) -> VerdictTable {
    with_throughput(propagation, delay, "3 Mbit/s")
}

fn with_throughput(propagation: &str, delay: &str, throughput: &str) -> VerdictTable {
    let changes = [
        (
            "  rate: 1 Gbit/s #",
            &*format!("  propagation: {propagation}\n  rate: 1 Gbit/s #"),
        ),
        (
            "delay: 5 ms at 99.9 %",
            &*format!("delay: {delay} at 99.9 %"),
        ),
        (
            "repetitions: 34",
            "margins: {rare_runs: 42 %}\nrepetitions: 6",
        ),
        ("duration: 10 s", "duration: 2 s"),
        ("99 % of 500 ms", "90 % of 100 ms"),
        (
            "throughput: 3 Mbit/s",
            &*format!("throughput: {throughput}"),
        ),
    ];
    let study = changed(STUDY, &changes);
    let description = study.description("0");
    let mut builder = SummaryBuilder::new(&description);
    let simulator = Simulator::default();
    for run in study.runs(&RunFilter::default()).unwrap() {
        builder.add(&simulator.run(&study, &run).unwrap()).unwrap();
    }
    verdict::judge(&description, builder.observations())
}

fn isolation(table: &VerdictTable) -> Vec<(&str, Outcome, Outcome)> {
    let policies = table.policies.iter();
    policies
        .map(|p| {
            (
                &*p.policy,
                p.isolation.outcome,
                p.isolation.influence.outcome,
            )
        })
        .collect()
}

#[test]
fn voice_gets_what_it_needs_from_every_mechanism_and_not_without_one_whatever_the_propagation() {
    use Outcome::{Broken, Holds};
    let expected = [
        ("fifo", Broken, Broken),
        ("priority", Holds, Holds),
        ("guaranteed", Holds, Holds),
        ("shares", Holds, Holds),
    ];
    assert_eq!(isolation(&verdicts("0 s", "5 ms")), expected);
    // Two links of 20 ms: the same queues, and 40 ms more on the way.
    assert_eq!(isolation(&verdicts("20 ms", "45 ms")), expected);
}

#[test]
fn no_policy_meets_a_delay_that_propagation_alone_exceeds_and_none_is_blamed_for_influence() {
    let far = verdicts("20 ms", "5 ms");
    for (policy, isolation, influence) in isolation(&far) {
        assert_eq!(isolation, Outcome::Broken, "{policy}");
        assert_eq!(influence == Outcome::Broken, policy == "fifo", "{policy}");
    }
}

#[test]
fn a_short_run_over_a_long_link_is_not_charged_for_the_link_it_had_to_fill() {
    // 40 ms of 2 s are 2 %: more than lies between the objective and what voice sends.
    let [near, far] = [("0 s", "205 ms"), ("20 ms", "245 ms")]
        .map(|(propagation, delay)| with_throughput(propagation, delay, "3.15 Mbit/s"));
    for (near, far) in near.policies.iter().zip(&far.policies) {
        assert_eq!(
            near.isolation.outcome, far.isolation.outcome,
            "{}",
            near.policy
        );
        assert_eq!(near.reallocation, far.reallocation, "{}", near.policy);
        let throughput = |policy: &PolicyVerdict| -> Vec<Option<f64>> {
            let tests = &policy.isolation.objectives.as_ref().unwrap().tests;
            let of_throughput = tests
                .iter()
                .filter(|test| test.indicator == ObjectiveIndicator::Throughput);
            of_throughput.map(|test| test.mean).collect()
        };
        assert_eq!(throughput(near), throughput(far), "{}", near.policy);
    }
    assert_eq!(near.policies[1].isolation.outcome, Outcome::Holds);
}
