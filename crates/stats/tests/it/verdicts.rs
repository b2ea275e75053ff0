//! Verdicts on devices of known behaviour.

use crate::synthetic::devices::{BASE, SCENARIOS, bandwidth, no_policy, peak, priority, shaping};
use crate::synthetic::{
    BEST_EFFORT, CRITICAL, LINK, Service, on_a_machine_with, published, run, study,
};
use slicewise_stats::description::{ComparedDelay, SliceLimit, StudyDescription};
use slicewise_stats::flow::{FlowKey, FlowRecord};
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, Outcome, PolicyVerdict, VerdictTable};

fn records(
    policy: &str,
    repetitions: u32,
    scatter: f64,
    services: impl Fn(u32) -> [Service; 2],
) -> Vec<RunRecord> {
    let scenarios = (0..SCENARIOS).flat_map(|s| (0..repetitions).map(move |r| (s, r)));
    scenarios
        .map(|(s, r)| {
            // Every scenario varies in its own order, so that pairs do, too.
            let mut record = run(policy, &format!("s{s}"), r + 3 * s, services(s), scatter);
            record.key.repetition = r;
            record
        })
        .collect()
}

fn judge(study: &StudyDescription, records: &[RunRecord]) -> VerdictTable {
    let mut builder = SummaryBuilder::new(study);
    records
        .iter()
        .for_each(|record| builder.add(record).unwrap());
    verdict::judge(study, builder.observations())
}

/// The verdict on a single policy called "p".
fn judge_one(
    repetitions: u32,
    scatter: f64,
    services: impl Fn(u32) -> [Service; 2],
) -> PolicyVerdict {
    let study = study(&[("p", None)], SCENARIOS);
    judge(&study, &records("p", repetitions, scatter, services))
        .policies
        .remove(0)
}

#[test]
fn known_devices_get_the_correct_verdicts() {
    let policies = [
        ("no policy", Some(published(false, true, "256"))),
        (
            "priority",
            Some(published(true, true, "2 levels (256 classes)")),
        ),
        ("bandwidth", Some(published(false, true, "no limit"))),
        ("shaping", Some(published(true, true, "256"))),
        ("not run", Some(published(true, true, "256"))),
    ];
    let study = study(&policies, SCENARIOS);
    let mut all = records("no policy", 10, 0.02, no_policy);
    all.extend(records("priority", 10, 0.02, priority));
    all.extend(records("bandwidth", 10, 0.02, bandwidth));
    all.extend(records("shaping", 10, 0.02, shaping));
    let table = judge(&study, &all);
    let reasons: Vec<String> = table
        .policies
        .iter()
        .map(|p| {
            let agrees = [
                p.agrees.isolation,
                p.agrees.reallocation,
                p.agrees.scalability,
            ]
            .map(|agrees| {
                agrees.map_or(
                    "?",
                    |agrees| if agrees { "as published" } else { "differs" },
                )
            });
            format!(
                "{}\n  {} [{}]\n  {} [{}]\n  {} [{}]",
                p.policy,
                p.isolation.reason(),
                agrees[0],
                p.reallocation.reason(),
                agrees[1],
                p.scalability.reason(),
                agrees[2],
            )
        })
        .collect();
    insta::assert_snapshot!(reasons.join("\n"), @"
    no policy
      broken: p99 delay of critical within +25 % of the reference in 0 of 10 runs of s1 (95 %: in less than 91 %); mean 400 µs → 20 ms (50-fold), worst run 52-fold [as published]
      holds: best effort gets at least 95 % of the unused capacity in 10 of 10 runs (95 %: in at least 10 %); mean 1.604 Mbit/s of 1.604 Mbit/s, 100 %, worst run 100 % [as published]
      256 slices: classes of a policy map [as published]
    priority
      holds: mean delay of critical within +25 % of the reference in 10 of 10 runs of s1 (95 %: in at least 10 %); mean 200 µs → 200 µs (0 %), worst run +4.08 % [as published]
      holds: best effort gets at least 95 % of the unused capacity in 10 of 10 runs (95 %: in at least 10 %); mean 1.604 Mbit/s of 1.604 Mbit/s, 100 %, worst run 100 % [as published]
      256 slices: classes of a policy map [as published]
    bandwidth
      broken: p99 delay of critical within +25 % of the reference in 0 of 10 runs of s6 (95 %: in less than 91 %); mean 400 µs → 816 µs (+104 %), worst run +108 %; first in s4 [as published]
      holds: best effort gets at least 95 % of the unused capacity in 10 of 10 runs (95 %: in at least 10 %); mean 1.604 Mbit/s of 1.604 Mbit/s, 100 %, worst run 100 % [as published]
      256 slices: classes of a policy map [differs]
    shaping
      holds: mean delay of critical within +25 % of the reference in 10 of 10 runs of s1 (95 %: in at least 10 %); mean 200 µs → 200 µs (0 %), worst run +4.08 % [as published]
      broken: best effort gets at most 5 % of the unused capacity in 10 of 10 runs (95 %: in at least 10 %); mean 0 bit/s of 1.604 Mbit/s, 0 %, worst run 0 % [differs]
      256 slices: classes of a policy map [as published]
    not run
      not tested: critical in s1: the reference scenario has no runs [?]
      not tested: in no load cycle was capacity of guaranteed slices unused while best effort had demand [?]
      256 slices: classes of a policy map [as published]
    ");
}

#[test]
fn a_breach_names_the_worst_and_the_first_scenario() {
    let verdict = judge_one(10, 0.02, bandwidth);
    assert_eq!(verdict.isolation.outcome, Outcome::Broken);
    let numbers = verdict.isolation.influence.decided_by.unwrap();
    assert_eq!(numbers.scenario.as_deref(), Some("s6"));
    assert_eq!(numbers.slice, "critical");
    assert_eq!(
        verdict.isolation.influence.first_broken.as_deref(),
        Some("s4")
    );
}

#[test]
fn what_is_at_the_margin_is_not_beyond_it() {
    let at_the_margin = judge_one(2, 0.0, |scenario| {
        let mut services = priority(scenario);
        if scenario > 0 {
            services[CRITICAL].delay_mean_ns *= 1.25;
            services[CRITICAL].loss_ratio = 0.001;
        }
        services
    });
    assert_eq!(at_the_margin.isolation.outcome, Outcome::Holds);
}

#[test]
fn too_few_runs_leave_it_undecided_and_say_how_many_decide() {
    // 15 % worse on average.
    let services = |scenario| {
        let mut services = priority(scenario);
        if scenario == 4 {
            services[CRITICAL].delay_mean_ns *= 1.15;
        }
        services
    };
    let mut study = study(&[("p", None)], SCENARIOS);
    study.margins.rare_runs = 0.09;
    let judged = |repetitions, scatter| {
        let records = records("p", repetitions, scatter, services);
        judge(&study, &records).policies.remove(0).isolation
    };
    let few = judged(10, 0.02);
    assert_eq!(few.outcome, Outcome::Inconclusive);
    let needed = few.repetitions_needed().unwrap();
    assert_eq!(judged(needed, 0.02).outcome, Outcome::Holds);
    // Where runs scatter by ± 30 %, four of ten are beyond 25 %, and others as much better.
    let scattered = judged(10, 0.3);
    assert_eq!(scattered.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(scattered.reason(), @"inconclusive: mean delay of critical within +25 % of the reference in 4 of 10 runs of s6; mean 200 µs → 200 µs (0 %), worst run +38.1 %; about 487 repetitions would decide");
}

#[test]
fn a_single_repetition_decides_nothing_and_asks_for_two() {
    let verdict = judge_one(1, 0.02, priority);
    assert_eq!(verdict.isolation.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.isolation.influence.repetitions_needed, Some(2));
    assert_eq!(verdict.reallocation.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.reallocation.repetitions_needed, Some(2));
    insta::assert_snapshot!(verdict.reason(), @"isolation inconclusive: throughput of critical within −1 % of the reference in 1 of 1 run of s1; 15.75 Mbit/s → 15.75 Mbit/s (0 %); about 2 repetitions would decide; reallocation inconclusive: best effort gets at least 95 % of the unused capacity in 1 of 1 run; 1.604 Mbit/s of 1.604 Mbit/s, 100 %; about 2 repetitions would decide; scalability 256 slices: classes of a policy map");
}

#[test]
fn a_scenario_without_runs_keeps_isolation_from_holding_but_not_from_being_broken() {
    let study = study(&[("p", None)], SCENARIOS);
    let without_s6 = |services: fn(u32) -> [Service; 2]| {
        let mut records = records("p", 5, 0.02, services);
        records.retain(|record| record.key.scenario != "s6");
        judge(&study, &records).policies.remove(0).isolation
    };
    let held = without_s6(priority);
    assert_eq!(held.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(held.reason(), @"inconclusive: critical in s6: the scenario has no runs");
    assert_eq!(without_s6(no_policy).outcome, Outcome::Broken);
}

#[test]
fn a_delay_within_the_resolution_of_the_method_is_no_breach() {
    let mut study = study(&[("p", None)], SCENARIOS);
    study.margins.delay_resolution_ns = 1_000_000;
    let judged = |factor| {
        let mut table = judge(&study, &delayed(factor));
        table.policies.remove(0).isolation
    };
    // p99 rises by 0.8 ms, then by 1.6 ms.
    let within = judged(3.0);
    assert_eq!(within.outcome, Outcome::Holds);
    insta::assert_snapshot!(within.reason(), @"holds: p99 delay of critical within +1 ms of the reference in 10 of 10 runs of s1 (95 %: in at least 10 %); mean 400 µs → 1.2 ms (+800 µs), worst run +832 µs");
    assert_eq!(judged(5.0).outcome, Outcome::Broken);
}

#[test]
fn a_delay_within_the_idle_baseline_is_no_breach() {
    let mut study = study(&[("p", None)], SCENARIOS);
    study.margins.delay_resolution_ns = 300_000;
    let judged = |factor, idle_p99_ns: [u64; 2]| {
        let mut records = delayed(factor);
        for record in &mut records {
            let is_treatment = record.key.scenario != "s0";
            record.testbed = Some(on_a_machine_with(idle_p99_ns[usize::from(is_treatment)]));
        }
        judge(&study, &records).policies.remove(0).isolation
    };
    // p99 rises by 0.8 ms, then by 1.6 ms; idle, it is 1 ms in the middle of both scenarios, or 0.2 ms.
    let within = judged(3.0, [500_000, 1_500_000]);
    assert_eq!(within.outcome, Outcome::Holds);
    insta::assert_snapshot!(within.reason(), @"holds: p99 delay of critical within +1 ms of the reference in 10 of 10 runs of s1 (95 %: in at least 10 %); mean 400 µs → 1.2 ms (+800 µs), worst run +832 µs");
    assert_eq!(judged(5.0, [500_000, 1_500_000]).outcome, Outcome::Broken);
    let quiet = judged(3.0, [200_000, 200_000]);
    assert_eq!(quiet.outcome, Outcome::Broken);
    assert_eq!(quiet.influence.decided_by.unwrap().margin, 300_000.0);
}

/// Runs in which the critical slice takes `factor` times as long in every scenario but the reference.
fn delayed(factor: f64) -> Vec<RunRecord> {
    records("p", 10, 0.02, |scenario| {
        let mut services = priority(scenario);
        if scenario > 0 {
            services[CRITICAL].delay_mean_ns *= factor;
            services[CRITICAL].delay_p99_ns *= factor;
        }
        services
    })
}

#[test]
fn a_slice_that_exceeds_its_own_share_is_not_judged_there() {
    let verdict = judge_one(5, 0.02, |scenario| {
        let mut services = priority(scenario);
        if scenario == 2 {
            services[CRITICAL] = Service {
                loss_ratio: 0.2,
                ..Service::untroubled(20e6)
            };
        }
        services
    });
    assert_eq!(verdict.isolation.outcome, Outcome::Holds);
    let skipped: Vec<_> = verdict
        .isolation
        .not_judged
        .iter()
        .map(|n| (&*n.scenario, &*n.why))
        .collect();
    assert_eq!(skipped, [("s2", "it exceeds its own guarantee there")]);
}

#[test]
fn a_slice_that_receives_nothing_is_broken_not_undefined() {
    let verdict = judge_one(3, 0.02, |scenario| {
        let mut services = priority(scenario);
        if scenario == 5 {
            services[CRITICAL].received = (0.0, 0.0);
            services[CRITICAL].loss_ratio = 1.0;
        }
        services
    });
    assert_eq!(verdict.isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(verdict.isolation.reason(), @"broken: loss ratio of critical within +0.1 points of the reference in 0 of 3 runs of s5 (95 %: in less than 91 %); mean 0 % → 100 % (+100 points), worst run +100 points");
}

#[test]
fn bursts_that_only_shift_their_own_share_in_time_are_not_reallocation() {
    // A policer's bucket passes more than the share at the start of each on phase, a deep shaper
    // queue sends at its rate in the off phase: over a cycle neither exceeds 17.5 Mbit/s.
    for received in [(19.0e6, 16.0e6), (17.5e6, 17.5e6)] {
        let verdict = judge_one(5, 0.02, |scenario| {
            let best_effort = Service {
                received,
                ..Service::on_off(BASE, peak(scenario))
            };
            [Service::untroubled(BASE), best_effort]
        });
        assert_eq!(
            verdict.reallocation.outcome,
            Outcome::Broken,
            "{received:?}"
        );
    }
}

#[test]
fn capacity_no_link_could_have_used_is_not_spare() {
    // 21 Mbit/s offered in the on phase, and 15.75 Mbit/s in the off phase. On: the share and all of the
    // unused 1.75 Mbit/s. Off: what waited, too, in 50 ms of the link. There is no more to be had.
    let verdict = judge_one(5, 0.0, |_| {
        let best_effort = Service {
            received: (19.25e6, 17.5e6),
            ..Service::on_off(BASE, 0.15 * LINK)
        };
        [Service::untroubled(BASE), best_effort]
    });
    assert_eq!(verdict.reallocation.outcome, Outcome::Holds);
}

#[test]
fn half_of_the_spare_capacity_is_partial() {
    let verdict = judge_one(10, 0.02, |scenario| {
        // 18.375 Mbit/s: half of the unused 1.75 Mbit/s on top of the share.
        let mut services = [Service::untroubled(BASE), Service::on_off(BASE, 0.4 * LINK)];
        services[BEST_EFFORT].received = (18.375e6, 18.375e6);
        if scenario < 6 {
            services[BEST_EFFORT] = Service::untroubled(BASE);
        }
        services
    });
    assert_eq!(verdict.reallocation.outcome, Outcome::Partial);
    assert_eq!(verdict.reallocation.scenarios.len(), 1);
    insta::assert_snapshot!(verdict.reallocation.reason(), @"partial: best effort gets a part below 95 % of the unused capacity in 10 of 10 runs of s6 (95 %: in at least 10 %); mean 874.9 kbit/s of 1.75 Mbit/s, 50 %, worst run 50 %");
}

#[test]
fn nothing_to_reallocate_is_not_tested() {
    let verdict = judge_one(5, 0.02, |_| {
        [Service::untroubled(BASE), Service::untroubled(0.3 * LINK)]
    });
    assert_eq!(verdict.reallocation.outcome, Outcome::NotTested);
    insta::assert_snapshot!(verdict.reallocation.reason(), @"not tested: in no load cycle was capacity of guaranteed slices unused while best effort had demand");
}

#[test]
fn the_order_of_records_does_not_matter_and_json_keeps_the_table() {
    let study = study(&[("p", Some(published(true, true, "256")))], SCENARIOS);
    let mut records = records("p", 10, 0.1, bandwidth);
    let table = judge(&study, &records);
    records.reverse();
    records.swap(3, 30);
    assert_eq!(judge(&study, &records), table);
    let json = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<VerdictTable>(&json).unwrap(), table);
}

#[test]
fn without_variation_it_holds_only_with_enough_repetitions_to_exclude_rare_failures() {
    let mut study = study(&[("p", None)], SCENARIOS);
    study.margins.rare_runs = 0.09;
    let judged = |repetitions| {
        let mut table = judge(&study, &records("p", repetitions, 0.0, priority));
        table.policies.remove(0)
    };
    let few = judged(33);
    assert_eq!(few.isolation.outcome, Outcome::Inconclusive);
    assert_eq!(few.isolation.repetitions_needed(), Some(34));
    assert_eq!(few.reallocation.outcome, Outcome::Inconclusive);
    assert_eq!(few.reallocation.repetitions_needed, Some(34));
    insta::assert_snapshot!(few.isolation.reason(), @"inconclusive: throughput of critical within −1 % of the reference in 33 of 33 runs of s1; mean 15.75 Mbit/s → 15.75 Mbit/s (0 %), worst run 0 %; about 34 repetitions would decide");
    let enough = judged(34);
    assert_eq!(enough.isolation.outcome, Outcome::Holds);
    assert_eq!(enough.reallocation.outcome, Outcome::Holds);
}

#[test]
fn one_lossy_run_among_many_keeps_it_from_holding() {
    let mut study = study(&[("p", None)], 2);
    study.margins.rare_runs = 0.09;
    let mut all = records("p", 40, 0.0, priority);
    all.retain(|record| ["s0", "s1"].contains(&&*record.key.scenario));
    assert_eq!(
        judge(&study, &all).policies[0].isolation.outcome,
        Outcome::Holds
    );
    // 0.2 % lost in one run of 40: on average a twentieth of the margin.
    let lossy = all.iter_mut().find(|r| r.key.scenario == "s1").unwrap();
    lossy.slices[CRITICAL].steady.loss_ratio = 0.002;
    let isolation = judge(&study, &all).policies.remove(0).isolation;
    assert_eq!(isolation.outcome, Outcome::Inconclusive);
    let numbers = isolation.influence.decided_by.unwrap();
    assert_eq!((numbers.runs.runs, numbers.runs.beyond), (40, 1));
}

#[test]
fn propagation_changes_no_verdict_on_queueing_delay() {
    let mut study = study(&[("p", None)], SCENARIOS);
    study.margins.delay_of = ComparedDelay::Queueing;
    let judged = |propagation_ns: u64, factor: f64| {
        let mut records = delayed(factor);
        for record in &mut records {
            for slice in &mut record.slices {
                for delay in [&mut slice.steady.delay, &mut slice.whole.delay] {
                    delay.mean_ns += propagation_ns as f64;
                    delay.min_ns += propagation_ns;
                    delay.p99_ns += propagation_ns;
                }
            }
        }
        judge(&study, &records).policies.remove(0).isolation
    };
    for (factor, outcome) in [(1.1, Outcome::Holds), (2.0, Outcome::Broken)] {
        let near = judged(0, factor);
        assert_eq!(near.outcome, outcome);
        assert_eq!(judged(20_000_000, factor).reason(), near.reason());
    }
    insta::assert_snapshot!(judged(20_000_000, 2.0).reason(), @"broken: mean queueing delay of critical within +25 % of the reference in 0 of 10 runs of s1 (95 %: in less than 91 %); mean 134.7 µs → 334.7 µs (+149 %), worst run +162 %");
    // The one-way delay, mostly propagation, would hide the same worsening.
    study.margins.delay_of = ComparedDelay::OneWay;
    let mut records = delayed(2.0);
    for slice in records.iter_mut().flat_map(|record| &mut record.slices) {
        slice.steady.delay.mean_ns += 2e7;
        slice.steady.delay.p99_ns += 20_000_000;
    }
    assert_eq!(
        judge(&study, &records).policies[0].isolation.outcome,
        Outcome::Holds
    );
}

#[test]
fn repetitions_are_paired_and_unpaired_ones_are_ignored() {
    // Repetitions differ tenfold, scenarios within a repetition by 1 %.
    let mut study = study(&[("p", None)], 2);
    study.margins.delay_of = ComparedDelay::OneWay;
    let mut all = Vec::new();
    for repetition in 0..10 {
        for scenario in 0..2 {
            let mut services = priority(0);
            let level = f64::from(1 + repetition) * (1.0 + 0.01 * f64::from(scenario));
            services[CRITICAL].delay_mean_ns *= level;
            services[CRITICAL].delay_p99_ns *= level;
            all.push(run("p", &format!("s{scenario}"), repetition, services, 0.0));
        }
    }
    let isolation = |records: &[RunRecord]| judge(&study, records).policies.remove(0).isolation;
    assert_eq!(isolation(&all).outcome, Outcome::Holds);
    all.retain(|record| record.key.scenario == "s0" || record.key.repetition < 8);
    let judged = isolation(&all);
    assert_eq!(judged.outcome, Outcome::Holds);
    assert_eq!(judged.influence.tests[0].numbers.runs.runs, 8);
    all.retain(|record| (record.key.scenario == "s0") == (record.key.repetition >= 8));
    let judged = isolation(&all);
    assert_eq!(judged.outcome, Outcome::NotTested);
    insta::assert_snapshot!(judged.reason(), @"not tested: critical in s1: it has no repetition in common with the reference scenario");
}

/// The critical slice sends a third in every scenario but the reference, and receives `share` of that.
fn sending_less(scenario: u32, share: f64) -> [Service; 2] {
    let mut services = priority(scenario);
    if scenario > 0 {
        services[CRITICAL] = Service::untroubled(BASE / 3.0);
        services[CRITICAL].received = (BASE / 3.0 * share, BASE / 3.0 * share);
    }
    services
}

#[test]
fn a_slice_that_sends_less_is_judged_by_the_share_of_it_that_it_receives() {
    let judged = |share| judge_one(5, 0.02, |scenario| sending_less(scenario, share)).isolation;
    assert_eq!(judged(1.0).outcome, Outcome::Holds);
    let broken = judged(0.9);
    assert_eq!(broken.outcome, Outcome::Broken);
    insta::assert_snapshot!(broken.influence.deciding().unwrap(), @"received share of the rate sent of critical within −1 % of the reference in 0 of 5 runs of s1 (95 %: in less than 91 %); mean 100 % → 90 % (−10 %), worst run −10 %");
}

#[test]
fn tcp_that_sends_less_because_it_receives_less_is_judged_by_its_rate() {
    let study = study(&[("p", None)], SCENARIOS);
    let mut records = records("p", 5, 0.02, |scenario| sending_less(scenario, 1.0));
    for record in &mut records {
        record.flows = vec![tcp_flow()];
    }
    let isolation = judge(&study, &records).policies.remove(0).isolation;
    assert_eq!(isolation.outcome, Outcome::Broken);
}

#[test]
fn a_table_says_something_where_any_attribute_was_tested_or_stated() {
    let mut study = study(&[("p", None)], SCENARIOS);
    study.policies[0].scalability.slices = SliceLimit::NotStated;
    let untested = judge(&study, &[]);
    assert!(!untested.says_something());
    let changes: [fn(&mut PolicyVerdict); 5] = [
        |policy| policy.isolation.outcome = Outcome::Inconclusive,
        |policy| policy.reallocation.outcome = Outcome::Broken,
        |policy| policy.scalability.limit = SliceLimit::NoPracticalLimit,
        |policy| policy.published = Some(published(true, true, "")),
        |policy| policy.not_supported = Some("it has no queues".into()),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut table = untested.clone();
        change(&mut table.policies[0]);
        assert!(table.says_something(), "change {index}");
    }
}

fn tcp_flow() -> FlowRecord {
    FlowRecord {
        flow: FlowKey {
            source: "10.0.0.1".into(),
            destination: "10.0.0.2".into(),
            source_port: Some(5201),
            destination_port: Some(5201),
            protocol: 6,
            ..FlowKey::default()
        },
        slice: "critical".into(),
        sent_frames: 1,
        sent_bytes: 1490,
        received_frames: 1,
        received_bytes: 1490,
        ..FlowRecord::default()
    }
}
