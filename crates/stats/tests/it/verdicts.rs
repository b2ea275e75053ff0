//! Verdicts on devices of known behaviour.

use crate::synthetic::devices::{BASE, SCENARIOS, bandwidth, no_policy, peak, priority, shaping};
use crate::synthetic::{
    BEST_EFFORT, CRITICAL, LINK, Service, on_a_machine_with, published, run, study,
};
use slicewise_stats::description::{ComparedDelay, SliceLimit, StudyDescription};
use slicewise_stats::flow::{FlowKey, FlowRecord, ReorderingFigures};
use slicewise_stats::record::{DelayFigures, RunRecord};
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
      broken: p99 delay of critical in s1 50-fold (49.6-fold to 50.4-fold), margin 25 %; 10 of 10 repetitions beyond it (paired Fieller, p < 0.001) [as published]
      holds: best effort gets 100 % (in every repetition) of the unused capacity over 6 scenarios, at least 95 % needed (Student) [as published]
      256 slices: classes of a policy map [as published]
    priority
      holds: closest to its margin: mean delay of critical in s5 0 % (−1.35 % to +1.37 %), margin 25 %; 0 of 10 repetitions beyond it (paired Fieller, p < 0.001) [as published]
      holds: best effort gets 100 % (in every repetition) of the unused capacity over 6 scenarios, at least 95 % needed (Student) [as published]
      256 slices: classes of a policy map [as published]
    bandwidth
      broken: p99 delay of critical in s6 +104 % (+101 % to +107 %), margin 25 %; 10 of 10 repetitions beyond it (paired Fieller, p < 0.001); first in s4 [as published]
      holds: best effort gets 100 % (in every repetition) of the unused capacity over 6 scenarios, at least 95 % needed (Student) [as published]
      256 slices: classes of a policy map [differs]
    shaping
      holds: closest to its margin: mean delay of critical in s5 0 % (−1.35 % to +1.37 %), margin 25 %; 0 of 10 repetitions beyond it (paired Fieller, p < 0.001) [as published]
      broken: best effort gets 0 % (in every repetition) of the unused capacity over 6 scenarios, at most 5 % counts as none (Student) [differs]
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
fn equal_repetitions_are_beyond_the_margin_only_if_unseen_ones_could_not_compensate() {
    // 1.26 times the delay in s3 and 1.52 times in s4, without any scatter. Two repetitions may have
    // missed 78 % of all runs: broken is what is beyond 25 % / 0.22 = 112 %.
    let first_broken = |repetitions| {
        let verdict = judge_one(repetitions, 0.0, bandwidth);
        verdict.isolation.influence.first_broken
    };
    assert_eq!(first_broken(2), None);
    assert_eq!(first_broken(5).as_deref(), Some("s4"));
    assert_eq!(first_broken(100).as_deref(), Some("s3"));
    // At the margin itself it holds.
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
fn variation_leaves_it_undecided_and_reports_the_repetitions_needed() {
    // 15 % worse on average, with repetitions that scatter by ± 30 %.
    let services = |scenario| {
        let mut services = priority(scenario);
        if scenario == 4 {
            services[CRITICAL].delay_mean_ns *= 1.15;
        }
        services
    };
    let verdict = judge_one(10, 0.3, services);
    assert_eq!(verdict.isolation.outcome, Outcome::Inconclusive);
    let numbers = verdict.isolation.influence.decided_by.as_ref().unwrap();
    assert_eq!(numbers.scenario.as_deref(), Some("s4"));
    let needed = verdict.isolation.influence.repetitions_needed.unwrap();
    assert!((20..200).contains(&needed), "{needed}");
    // And that many do decide it.
    assert_eq!(
        judge_one(needed, 0.3, services).isolation.outcome,
        Outcome::Holds
    );
    insta::assert_snapshot!(verdict.isolation.reason(), @"inconclusive: mean delay of critical in s4 +15 % (−5.9 % to +40.5 %), margin 25 %; 4 of 10 repetitions beyond it (paired Fieller, p = 0.232); about 108 repetitions would decide");
}

#[test]
fn a_single_repetition_decides_nothing_and_asks_for_two() {
    let verdict = judge_one(1, 0.02, priority);
    assert_eq!(verdict.isolation.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.isolation.influence.repetitions_needed, Some(2));
    assert_eq!(verdict.reallocation.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.reallocation.repetitions_needed, Some(2));
    insta::assert_snapshot!(verdict.reason(), @"isolation inconclusive: throughput of critical in s1 0 % (no interval), margin 1 %; 0 of 1 repetition beyond it (paired Fieller); about 2 repetitions would decide; reallocation inconclusive: best effort gets 100 % (no interval) of the unused capacity over 6 scenarios, 95 % needed (Student); about 2 repetitions would decide; scalability 256 slices: classes of a policy map");
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
    insta::assert_snapshot!(within.reason(), @"holds: closest to its margin: p99 delay of critical in s5 +800 µs (+788.7 µs to +811.3 µs), margin 1 ms; 0 of 10 repetitions beyond it (paired t, p < 0.001)");
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
    insta::assert_snapshot!(within.reason(), @"holds: closest to its margin: p99 delay of critical in s5 +800 µs (+788.7 µs to +811.3 µs), margin 1 ms; 0 of 10 repetitions beyond it (paired t, p < 0.001)");
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
    insta::assert_snapshot!(verdict.isolation.reason(), @"broken: loss ratio of critical in s5 +100 points (in every repetition), margin 0.1 points; 3 of 3 repetitions beyond it (paired t)");
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
    insta::assert_snapshot!(verdict.reallocation.reason(), @"partial: best effort gets 50 % (in every repetition) of the unused capacity in s6, 95 % needed (Student)");
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
    let few = judged(31);
    assert_eq!(few.isolation.outcome, Outcome::Inconclusive);
    assert_eq!(few.isolation.repetitions_needed(), Some(32));
    assert_eq!(few.reallocation.outcome, Outcome::Inconclusive);
    assert_eq!(few.reallocation.repetitions_needed, Some(32));
    insta::assert_snapshot!(few.isolation.reason(), @"inconclusive: throughput of critical in s1 0 % (in every repetition), margin 1 %; 0 of 31 repetitions beyond it (paired Fieller); about 32 repetitions would decide");
    let enough = judged(32);
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
    assert_eq!((numbers.repetitions, numbers.repetitions_beyond), (40, 1));
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
    insta::assert_snapshot!(judged(20_000_000, 2.0).reason(), @"broken: mean queueing delay of critical in s1 +149 % (+146 % to +151 %), margin 25 %; 10 of 10 repetitions beyond it (paired Fieller, p < 0.001)");
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
    assert_eq!(judged.influence.tests[0].numbers.repetitions, 8);
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
    insta::assert_snapshot!(broken.influence.deciding().unwrap(), @"received share of the rate sent of critical in s1 −10 % (in every repetition), margin 1 %; 5 of 5 repetitions beyond it (paired Fieller)");
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
            vlans: Vec::new(),
            dscp: 0,
        },
        slice: "critical".into(),
        sent_frames: 1,
        sent_bytes: 1490,
        received_frames: 1,
        received_bytes: 1490,
        lost_frames: 0,
        duplicate_frames: 0,
        ambiguous_frames: 0,
        reordering: ReorderingFigures::default(),
        delay: DelayFigures::default(),
        sent: None,
        received: None,
        tcp: None,
    }
}
