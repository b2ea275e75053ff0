//! Bounds: proved delay bounds, stated limits of the number of slices, and the capacity.

use crate::synthetic::{BEST_EFFORT, CRITICAL, LINK, Service, run, study};
use slicewise_stats::description::{Capacity, DelayBound, SliceLimit, StudyDescription, Unbounded};
use slicewise_stats::record::{RunRecord, SchedulerFigures};
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, BoundCheck, IsolationVerdict, Outcome, PolicyVerdict};

const BASE: f64 = 0.45 * LINK;

fn judge(study: &StudyDescription, records: &[RunRecord]) -> PolicyVerdict {
    let mut builder = SummaryBuilder::new(study);
    for record in records {
        builder.add(record).unwrap();
    }
    verdict::judge(study, builder.observations())
        .policies
        .remove(0)
}

/// Five repetitions of a reference and of one more scenario; the critical slice's largest delay is
/// 480 us in all of them.
fn untroubled() -> Vec<RunRecord> {
    let services = [Service::untroubled(BASE), Service::on_off(BASE, 0.3 * LINK)];
    (0..10)
        .map(|index| run("p", &format!("s{}", index % 2), index / 2, services, 0.0))
        .collect()
}

fn bounded(scheduler_ns: u64, outside_ns: u64) -> StudyDescription {
    let mut study = study(&[("p", None)], 2);
    study.policies[0].delay_bounds.insert(
        "critical".to_owned(),
        DelayBound {
            scheduler_ns,
            outside_ns,
        },
    );
    study
}

#[test]
fn a_bound_that_is_met_is_reported_with_the_tests() {
    let isolation = judge(&bounded(400_000, 80_000), &untroubled()).isolation;
    assert_eq!(isolation.outcome, Outcome::Holds);
    assert_eq!(isolation.bounds[0].runs, 10);
    // The bound itself is within it.
    insta::assert_snapshot!(isolation.reason(), @"holds: throughput of critical within −1 % of the reference in 5 of 5 runs of s1 (95 %: in at least 10 %); mean 15.75 Mbit/s → 15.75 Mbit/s (0 %), worst run 0 %; largest delay of critical 480 µs in scenario s0, within its proved bound of 480 µs (80 µs of it outside the scheduler)");
}

#[test]
fn one_packet_above_its_bound_breaks_isolation_whatever_the_tests_say() {
    let mut records = untroubled();
    records[7].slices[CRITICAL].whole.delay.max_ns = 480_001;
    let isolation = judge(&bounded(480_000, 0), &records).isolation;
    assert_eq!(isolation.outcome, Outcome::Broken);
    assert!(
        isolation
            .influence
            .tests
            .iter()
            .all(|t| t.outcome == Outcome::Holds)
    );
    assert_eq!(isolation.broken_bound().unwrap().scenario, "s1");
    let check = isolation.broken_bound().unwrap();
    assert_eq!((check.largest_ns, check.repetition), (480_001, 3));

    records[7].slices[CRITICAL].whole.delay.max_ns = 2_100_000;
    let isolation = judge(&bounded(480_000, 60_000), &records).isolation;
    insta::assert_snapshot!(isolation.reason(), @"broken: largest delay of critical 2.1 ms in scenario s1, above its proved bound of 540 µs (60 µs of it outside the scheduler): the device or the bound is wrong");
}

#[test]
fn a_bound_does_not_apply_to_a_slice_that_exceeds_its_guarantee() {
    let mut records = untroubled();
    let figures = &mut records[7].slices[CRITICAL].whole;
    figures.delay.max_ns = 9_000_000;
    figures.offered_bits_per_second = 18e6;
    let isolation = judge(&bounded(480_000, 0), &records).isolation;
    assert_eq!(isolation.bounds[0].outcome, Outcome::Holds);
    assert_eq!(isolation.bounds[0].runs, 9);
    // Up to 1 % more than 17.5 Mbit/s is within the margin.
    records[7].slices[CRITICAL].whole.offered_bits_per_second = 17.6e6;
    let isolation = judge(&bounded(480_000, 0), &records).isolation;
    assert_eq!(isolation.bounds[0].outcome, Outcome::Broken);
    assert_eq!(isolation.bounds[0].runs, 10);
}

#[test]
fn a_scenario_without_a_bound_is_not_judged_by_it_and_says_why() {
    let mut records = untroubled();
    records[7].slices[CRITICAL].whole.delay.max_ns = 9_000_000;
    let mut study = bounded(480_000, 0);
    let unbounded = |scenario: &str| Unbounded {
        slice: "critical".to_owned(),
        scenario: scenario.to_owned(),
        why: "class `gold` may be sent bursts of 9 kB, and 6 kB are guaranteed".to_owned(),
        scheduler_ns: None,
    };
    study.policies[0].unbounded = vec![unbounded("s1")];
    let isolation = judge(&study, &records).isolation;
    assert_eq!(isolation.outcome, Outcome::Holds);
    assert_eq!(isolation.bounds[0].runs, 5);
    assert_eq!(isolation.unbounded(), None, "it was judged in s0");
    assert!(isolation.not_judged[0].only_bound && !isolation.not_judged[0].missing);

    study.policies[0].unbounded.push(unbounded("s0"));
    study.policies[0].delay_bounds.clear();
    let isolation = judge(&study, &records).isolation;
    assert!(isolation.bounds.is_empty());
    insta::assert_snapshot!(isolation.reason(), @"holds: throughput of critical within −1 % of the reference in 5 of 5 runs of s1 (95 %: in at least 10 %); mean 15.75 Mbit/s → 15.75 Mbit/s (0 %), worst run 0 %; no bound of delay for critical in scenario s1: class `gold` may be sent bursts of 9 kB, and 6 kB are guaranteed");
}

/// A reference that is bounded end to end, and a scenario in which only the scheduler's part is.
#[test]
fn with_an_unbounded_path_to_the_device_only_the_scheduler_is_judged() {
    let mut records = untroubled();
    for record in &mut records {
        record.slices[CRITICAL].scheduler = Some(SchedulerFigures {
            delay_max_ns: 9_000_000,
            after_eligible_max_ns: Some(1_900_000),
        });
    }
    let mut study = bounded(400_000, 80_000);
    study.policies[0].unbounded = vec![Unbounded {
        slice: "critical".to_owned(),
        scenario: "s1".to_owned(),
        why: "source `x` is Poisson".to_owned(),
        scheduler_ns: Some(2_000_000),
    }];
    let isolation = judge(&study, &records).isolation;
    assert_eq!(isolation.outcome, Outcome::Holds);
    let reasons: Vec<String> = isolation.bounds.iter().map(BoundCheck::describe).collect();
    insta::assert_snapshot!(reasons.join("\n"), @"
    largest delay of critical 480 µs in scenario s0, within its proved bound of 480 µs (80 µs of it outside the scheduler)
    at the scheduler: largest delay of critical 1.9 ms after its eligible time in scenario s1, within its proved bound of 2 ms (the path to the device has no bound, because source `x` is Poisson)
    ");
    assert_eq!(
        isolation.bounds.iter().map(|b| b.runs).collect::<Vec<_>>(),
        [5, 5]
    );

    let mut with_largest = |largest_ns| {
        let figures = records[7].slices[CRITICAL].scheduler.as_mut().unwrap();
        figures.after_eligible_max_ns = Some(largest_ns);
        judge(&study, &records).isolation
    };
    assert_eq!(with_largest(2_000_000).outcome, Outcome::Holds);
    assert_eq!(with_largest(2_000_001).outcome, Outcome::Broken);
    let isolation = with_largest(2_100_000);
    assert_eq!(isolation.broken_bound().unwrap().scenario, "s1");
    insta::assert_snapshot!(isolation.reason(), @"broken: at the scheduler: largest delay of critical 2.1 ms after its eligible time in scenario s1, above its proved bound of 2 ms (the path to the device has no bound, because source `x` is Poisson): the device or the bound is wrong");

    // For captures and real packets it is unknown.
    for record in &mut records {
        record.slices[CRITICAL].scheduler = None;
    }
    study.policies[0].delay_bounds.clear();
    let isolation = judge(&study, &records).isolation;
    assert!(isolation.bounds.is_empty());
    insta::assert_snapshot!(isolation.reason(), @"holds: throughput of critical within −1 % of the reference in 5 of 5 runs of s1 (95 %: in at least 10 %); mean 15.75 Mbit/s → 15.75 Mbit/s (0 %), worst run 0 %; no bound of delay for critical in scenario s1: the path to the device has no bound, because source `x` is Poisson");
}

#[test]
fn a_bound_of_a_slice_without_packets_is_not_checked() {
    let mut records = untroubled();
    for record in &mut records {
        record.slices[CRITICAL].whole.delay.samples = 0;
    }
    let isolation = judge(&bounded(1, 0), &records).isolation;
    assert!(isolation.bounds.is_empty());
}

#[test]
fn the_kinds_of_slice_limits_are_distinguished() {
    let mut reasons = Vec::new();
    for (slices, limited_by) in [
        (SliceLimit::Slices(1), "one queue"),
        (SliceLimit::Slices(256), "classes in a policy"),
        (
            SliceLimit::NoPracticalLimit,
            "160 bytes of memory per slice",
        ),
        (SliceLimit::NotStated, "none is stated for this device"),
    ] {
        let mut study = study(&[("p", None)], 2);
        study.policies[0].scalability.slices = slices;
        study.policies[0].scalability.limited_by = limited_by.to_owned();
        reasons.push(judge(&study, &[]).scalability.reason());
    }
    insta::assert_snapshot!(reasons.join("\n"), @"
    1 slice: one queue
    256 slices: classes in a policy
    no practical limit: 160 bytes of memory per slice
    no limit known: none is stated for this device
    ");
}

/// A port of 35 Mbit/s of L1 carries 34.45 Mbit/s in frames of 1490 bytes: best effort that takes
/// all of what is left there takes all there is.
#[test]
fn shares_of_l2_bytes_on_a_port_that_counts_l1_leave_only_its_spare_capacity() {
    let carried = LINK * 1490.0 / 1514.0;
    let services = [
        Service::untroubled(BASE),
        Service {
            received: (carried - BASE, carried - BASE),
            ..Service::untroubled(25e6)
        },
    ];
    let mut records: Vec<RunRecord> = (0..10)
        .map(|index| run("p", &format!("s{}", index % 2), index / 2, services, 0.0))
        .collect();
    for slice in records.iter_mut().flat_map(|record| &mut record.slices) {
        let frames = |bytes: &u64| u32::try_from(bytes / 1490).unwrap();
        slice.series.sent_frames = slice.series.sent_bytes.iter().map(frames).collect();
    }
    let mut study = study(&[("p", None)], 2);
    let fraction = |study: &StudyDescription| {
        let reallocation = judge(study, &records).reallocation;
        (reallocation.outcome, reallocation.scenarios[0].fraction)
    };
    // As if the port counted L2: 0.55 Mbit/s of 1.75 Mbit/s are not there to be taken.
    let (outcome, read_low) = fraction(&study);
    assert!(
        outcome == Outcome::Partial && (0.6..0.75).contains(&read_low),
        "{read_low}"
    );
    study.capacity = Capacity {
        varies: false,
        bits_per_second: 35_000_000,
        frame_overhead_bytes: 24,
        in_atm_cells: false,
    };
    let (outcome, taken) = fraction(&study);
    assert!(outcome == Outcome::Holds && taken > 0.98, "{taken}");

    // Half of it counts as half.
    for record in &mut records {
        for bytes in &mut record.slices[BEST_EFFORT].series.served_bytes {
            let share = 109_375; // 17.5 Mbit/s in a bin of 50 ms
            *bytes = share + bytes.saturating_sub(share) / 2;
        }
    }
    let taken = judge(&study, &records).reallocation.scenarios[0].fraction;
    assert!((0.48..0.52).contains(&taken), "{taken}");
}

/// Isolation where `critical` has this bound, ns, and best effort the other one and a largest delay of 10 ms.
fn beside_best_effort(bound_ns: u64, other_ns: u64) -> IsolationVerdict {
    let mut study = bounded(bound_ns, 0);
    let bound = DelayBound {
        scheduler_ns: other_ns,
        outside_ns: 0,
    };
    let other = study.slices[BEST_EFFORT].name.clone();
    study.policies[0].delay_bounds.insert(other, bound);
    let mut records = untroubled();
    for record in &mut records {
        let figures = &mut record.slices[BEST_EFFORT].whole;
        figures.delay.max_ns = 10_000_000;
        figures.offered_bits_per_second = BASE;
    }
    judge(&study, &records).isolation
}

#[test]
fn the_broken_bound_that_is_named_is_the_one_exceeded_by_the_most() {
    // 479 µs too late, and 100 µs, where both the delay and the bound are longer.
    let isolation = beside_best_effort(1_000, 9_900_000);
    let broken = isolation.bounds.iter();
    assert!(broken.clone().count() == 2 && broken.clone().all(|b| b.outcome == Outcome::Broken));
    assert_eq!(isolation.broken_bound().unwrap().slice, "critical");
}

#[test]
fn the_worst_bound_is_the_broken_one_or_the_one_that_is_nearest_to_used_up() {
    let worst = |scheduler_ns| {
        let isolation = beside_best_effort(scheduler_ns, 20_000_000);
        let worst = isolation.worst_bound().unwrap();
        (worst.slice.clone(), worst.outcome)
    };
    // 480 µs of it are used, and a half of the other bound, from which 10 ms are missing.
    assert_eq!(worst(500_000), ("critical".to_owned(), Outcome::Holds));
    assert_eq!(worst(5_000_000), ("best effort".to_owned(), Outcome::Holds));
    assert_eq!(worst(1_000), ("critical".to_owned(), Outcome::Broken));
}

#[test]
fn bounds_that_are_kept_are_no_test_of_isolation_alone() {
    let judged = |with_reference: bool| {
        let mut study = bounded(500_000, 0);
        study.scenarios[0].reference = with_reference;
        judge(&study, &untroubled()).isolation
    };
    let alone = judged(false);
    assert_eq!(alone.outcome, Outcome::NotTested);
    assert!(alone.has_only_bounds() && alone.bounds[0].outcome == Outcome::Holds);
    assert!(!judged(true).has_only_bounds());
}
