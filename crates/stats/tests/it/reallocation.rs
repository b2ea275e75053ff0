//! How much of the spare capacity best effort gets, and what that comes to.

use crate::synthetic::{BEST_EFFORT, CRITICAL, Service, run, study};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::opportunity::Opportunity;
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, Outcome, ReallocationVerdict};

/// Each slice's share of an interval of 50 ms, bytes.
const SHARE: u64 = 109_375;
/// What best effort wants beyond it, half of what the critical slice leaves.
const WANTED: f64 = 10_000.0;

/// A run in which best effort gets this fraction of the spare capacity that it wants.
fn run_with(repetition: u32, fraction: f64) -> RunRecord {
    let mut record = run("p", "s0", repetition, [Service::untroubled(15e6); 2], 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a fraction of ten thousand"
    )]
    let taken = (WANTED * fraction).round() as u64;
    record.slices[CRITICAL].series.sent_bytes.fill(89_375);
    let series = &mut record.slices[BEST_EFFORT].series;
    series.sent_bytes.fill(SHARE + 10_000);
    series.served_bytes.fill(SHARE + taken);
    record
}

fn judged(fractions: &[f64]) -> ReallocationVerdict {
    judged_in(&study(&[("p", None)], 1), fractions)
}

fn judged_in(study: &StudyDescription, fractions: &[f64]) -> ReallocationVerdict {
    let mut builder = SummaryBuilder::new(study);
    for (repetition, &fraction) in (0..).zip(fractions) {
        builder.add(&run_with(repetition, fraction)).unwrap();
    }
    let mut table = verdict::judge(study, builder.observations());
    table.policies.remove(0).reallocation
}

#[test]
fn repetitions_beyond_the_threshold_are_counted_and_the_threshold_itself_is_not_beyond() {
    use Outcome::{Broken, Holds, Inconclusive, Partial};
    let mut nearly_all = [1.0; 10];
    nearly_all[3] = 0.94;
    let mut nearly_none = [0.0; 10];
    nearly_none[3] = 0.06;
    for (fractions, outcome, margin, beyond) in [
        (&[1.0][..], Inconclusive, 0.95, 0),
        (&[0.95], Inconclusive, 0.95, 0),
        (&[0.9], Inconclusive, 0.95, 0),
        (&[1.0, 1.0], Holds, 0.95, 0),
        (&[0.95, 0.95], Holds, 0.95, 0),
        (&nearly_all, Holds, 0.95, 1),
        (&[0.0, 0.0], Broken, 0.05, 0),
        (&[0.05, 0.05], Broken, 0.05, 0),
        (&nearly_none, Broken, 0.05, 1),
        (&[0.5, 0.5], Partial, 0.95, 0),
        (&[0.5, 0.6, 0.55], Partial, 0.95, 0),
        (&[0.95, 0.5, 0.04], Inconclusive, 0.95, 2),
    ] {
        let verdict = judged(fractions);
        let numbers = verdict.decided_by.unwrap();
        assert_eq!(
            (verdict.outcome, numbers.margin, numbers.runs.beyond),
            (outcome, margin, beyond),
            "{fractions:?}"
        );
    }
}

#[test]
fn the_rates_behind_the_fraction_are_what_was_left_and_what_of_it_was_taken() {
    let verdict = judged(&[0.5, 0.7]);
    let numbers = verdict.decided_by.unwrap();
    // 10,000 bytes in 50 ms.
    assert!((numbers.reference.unwrap() - 1.6e6).abs() < 1.0);
    assert!((numbers.treatment.unwrap() - 0.96e6).abs() < 1.0);
    assert!((numbers.statistic - 0.6).abs() < 1e-9);
    let scenario = &verdict.scenarios[0];
    // 40 s in cycles of 2 s.
    assert_eq!((scenario.repetitions, scenario.windows), (2, 40));
    assert!((scenario.fraction - 0.6).abs() < 1e-9);
}

#[test]
fn an_undecided_verdict_says_how_many_repetitions_would_decide() {
    let judged = |fractions: &[f64]| {
        let mut study = study(&[("p", None)], 1);
        study.margins.rare_runs = 0.09;
        judged_in(&study, fractions)
    };
    let near_all = judged(&[0.94, 0.96, 0.98, 1.0]);
    assert_eq!(near_all.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(near_all.reason(), @"inconclusive: best effort gets at least 95 % of the unused capacity in 3 of 4 runs of s0; mean 1.552 Mbit/s of 1.6 Mbit/s, 97 %, worst run 94 %; more repetitions alone will not decide");
    for (fraction, outcome) in [
        (0.95, Outcome::Holds),
        (0.5, Outcome::Partial),
        (0.05, Outcome::Broken),
    ] {
        let few = judged(&[fraction; 4]);
        assert_eq!((few.outcome, few.claimed), (Outcome::Inconclusive, outcome));
        assert_eq!(few.repetitions_needed, Some(34));
        assert_eq!(judged(&[fraction; 34]).outcome, outcome);
    }
}

/// Bytes that both slices together may send in an interval, which is what an ideal link keeps at most.
const BOTH: u64 = 2 * SHARE;
/// Intervals of a cycle.
const CYCLE: usize = 40;
/// What best effort sends at once at the beginning of each cycle: more than its share of that.
const BURST: u64 = 8_000_000;

/// A run in which best effort sends a burst in each cycle and nothing else is sent: what is served of it in each
/// interval of the cycle, and the rest is lost at once.
fn bursts(served: impl Fn(u64) -> u64) -> RunRecord {
    let mut record = run("p", "s0", 0, [Service::untroubled(15e6); 2], 0.0);
    record.slices[CRITICAL].series.sent_bytes.fill(0);
    let series = &mut record.slices[BEST_EFFORT].series;
    let of_cycle: u64 = (0..CYCLE as u64).map(&served).sum();
    for bin in 0..series.sent_bytes.len() {
        let begins = bin.is_multiple_of(CYCLE);
        series.sent_bytes[bin] = if begins { BURST } else { 0 };
        series.lost_bytes[bin] = if begins { BURST - of_cycle } else { 0 };
        series.served_bytes[bin] = served((bin % CYCLE) as u64);
    }
    record
}

fn opportunity(record: &RunRecord) -> Opportunity {
    let study = study(&[("p", None)], 1);
    let mut builder = SummaryBuilder::new(&study);
    builder.add(record).unwrap();
    let run = builder.observations().run(0, 0, 0).unwrap();
    run.opportunity
}

#[test]
fn what_an_ideal_link_would_have_lost_was_not_available() {
    // One interval's worth leaves at once and as much waits: far less than the share of best effort.
    let lost = opportunity(&bursts(|bin| if bin < 2 { BOTH } else { 0 }));
    assert_eq!(lost, Opportunity::default());
    assert_eq!(lost.fraction(), None);
}

#[test]
fn an_ideal_link_keeps_as_much_as_waited_on_this_one() {
    let served = |bin: u64| BOTH.min(BURST.saturating_sub(bin * BOTH));
    let kept = opportunity(&bursts(served));
    let beyond_share = (BURST - CYCLE as u64 * SHARE) as f64;
    assert_eq!((kept.windows, kept.seconds), (20, 40.0));
    assert_eq!(kept.available_bytes, 20.0 * beyond_share);
    assert_eq!(kept.fraction(), Some(1.0));
}

#[test]
fn a_guaranteed_slice_that_sends_exactly_its_share_takes_nothing_of_what_others_leave() {
    let mut study = study(&[("p", None)], 1);
    study.capacity.bits_per_second = 52_500_000;
    let mut third = study.slices[CRITICAL].clone();
    third.name = "third".to_owned();
    study.slices.push(third);
    let windows = |third_sends: u64| {
        let mut record = run_with(0, 1.0);
        let mut third = record.slices[CRITICAL].clone();
        third.slice = "third".to_owned();
        third.series.sent_bytes.fill(third_sends);
        record.slices.push(third);
        let mut builder = SummaryBuilder::new(&study);
        builder.add(&record).unwrap();
        let run = builder.observations().run(0, 0, 0).unwrap();
        (run.opportunity.windows, run.opportunity.available_bytes)
    };
    // 10,000 bytes in each of 800 intervals.
    assert_eq!(windows(SHARE), (20, 8e6));
    // With more it competes for it.
    assert_eq!(windows(SHARE + 1), (0, 0.0));
}

#[test]
fn a_share_of_a_rate_that_changes_is_not_tested() {
    let mut study = study(&[("p", None)], 1);
    let constant = judged_in(&study, &[1.0, 1.0]);
    assert_eq!(constant.outcome, Outcome::Holds);
    study.capacity.varies = true;
    let verdict = judged_in(&study, &[1.0, 1.0]);
    assert_eq!(verdict.outcome, Outcome::NotTested);
    let reason = verdict.reason();
    assert!(
        reason.contains("the rate that slices share changes"),
        "{reason}"
    );
}
