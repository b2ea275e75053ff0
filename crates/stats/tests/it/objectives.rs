//! Objectives: what slices need, and whether they get it.

#![allow(clippy::cast_possible_truncation)]

use crate::synthetic::{self, CRITICAL, LINK, Service, run, study};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::objective::{ConformingIntervals, DelayLimit, Objective, Percentile};
use slicewise_stats::record::{RunRecord, SentDelay, SliceRecord};
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, IsolationVerdict, Outcome};

pub(crate) const MBIT: f64 = 1e6;
const AT: Percentile = Percentile::P99;

pub(crate) fn of_delay(limit_ns: u64) -> Option<DelayLimit> {
    Some(DelayLimit { limit_ns, at: AT })
}

pub(crate) fn delay_of_5_ms() -> Objective {
    objective!(delay: of_delay(5_000_000))
}

pub(crate) fn throughput_of_5_mbit() -> Objective {
    objective!(throughput_bits_per_second: Some(5_000_000))
}

/// A reference and one more scenario; the critical slice has this objective.
pub(crate) fn with(objective: Objective) -> StudyDescription {
    let mut study = study(&[("p", None)], 2);
    study.margins.rare_runs = 0.09;
    study.slices[CRITICAL].objective = Some(objective);
    study
}

/// Runs of both scenarios, in which the critical slice sends `rate` and gets all of it within 0.4 ms.
pub(crate) fn runs(repetitions: u32, rate: f64) -> Vec<RunRecord> {
    let services = [
        Service::untroubled(rate),
        Service::on_off(0.45 * LINK, 0.3 * LINK),
    ];
    let cells = (0..2).flat_map(|s| (0..repetitions).map(move |r| (s, r)));
    let mut runs: Vec<RunRecord> = cells
        .map(|(s, r)| run("p", &format!("s{s}"), r, services, 0.0))
        .collect();
    for slice in runs.iter_mut().map(|run| &mut run.slices[CRITICAL]) {
        slice.delay_of_sent = Some(SentDelay {
            at: AT,
            ns: Some(slice.steady.delay.p99_ns),
        });
    }
    runs
}

/// The critical slice in scenario s1, of the repetitions that `picks`.
pub(crate) fn disturbed(
    runs: &mut [RunRecord],
    picks: impl Fn(u32) -> bool,
    change: impl Fn(&mut SliceRecord),
) {
    let in_s1 = runs.iter_mut().filter(|run| run.key.scenario == "s1");
    in_s1
        .filter(|run| picks(run.key.repetition))
        .for_each(|run| change(&mut run.slices[CRITICAL]));
}

/// All but three of a thousand packets are lost, and the others are prompt.
fn loses_nearly_all(slice: &mut SliceRecord) {
    slice.steady.loss_ratio = 0.997;
    slice.steady.lost_frames = slice.steady.sent_frames / 1000 * 997;
    slice.delay_of_sent = Some(SentDelay { at: AT, ns: None });
}

fn loses_all(slice: &mut SliceRecord) {
    loses_nearly_all(slice);
    slice.steady.loss_ratio = 1.0;
    slice.steady.lost_frames = slice.steady.sent_frames;
    slice.steady.delay = Default::default();
}

fn receives(rate: f64) -> impl Fn(&mut SliceRecord) {
    move |slice| {
        let bins = slice.series.served_bytes.len() as f64;
        let bytes = rate / 8.0 * slice.steady.span_ns as f64 / 1e9 / bins;
        slice.series.served_bytes.fill(bytes as u64);
    }
}

pub(crate) fn judge(study: &StudyDescription, runs: &[RunRecord]) -> IsolationVerdict {
    let mut builder = SummaryBuilder::new(study);
    runs.iter().for_each(|run| builder.add(run).unwrap());
    let mut table = verdict::judge(study, builder.observations());
    table.policies.remove(0).isolation
}

#[test]
fn a_delay_objective_is_missed_where_packets_are_lost_however_prompt_the_others_are() {
    let objective = delay_of_5_ms();
    let mut runs = runs(34, 3.2 * MBIT);
    assert_eq!(judge(&with(objective), &runs).outcome, Outcome::Holds);
    disturbed(&mut runs, |_| true, loses_nearly_all);
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Broken);
    let objectives = isolation.objectives.unwrap();
    insta::assert_snapshot!(objectives.deciding().unwrap(), @"critical within 5 ms for 99 % of packets in 0 of 34 runs of s1 (95 %: in less than 91 %); worst run ∞, 99.7 % lost");
}

#[test]
fn a_run_that_received_nothing_counts_against_delay_and_its_variation() {
    for objective in [
        objective!(delay: of_delay(5_000_000)),
        objective!(delay_variation: of_delay(5_000_000)),
    ] {
        let judged = |lossy: u32| {
            let mut runs = runs(40, 3.2 * MBIT);
            disturbed(&mut runs, |repetition| repetition < lossy, loses_all);
            judge(&with(objective), &runs).objectives.unwrap()
        };
        // 24 of 40, as 241 of 400; and all.
        for lossy in [24, 40] {
            let missed = judged(lossy);
            assert_eq!(missed.outcome, Outcome::Broken, "{lossy} {objective:?}");
            let test = missed.decided_by.unwrap();
            assert_eq!((test.runs.runs, test.runs.beyond), (40, lossy));
            assert_eq!((test.mean, test.worst), (None, None));
        }
        // One run of 40 neither shows that more than 9 % are like it nor that fewer are.
        let open = judged(1);
        assert_eq!(open.outcome, Outcome::Inconclusive);
        assert_eq!(open.repetitions_needed, Some(149));
        assert_eq!(judged(0).outcome, Outcome::Holds);
    }
}

#[test]
fn infinite_values_are_decided_by_the_share_of_runs_beyond_the_limit() {
    let objective = delay_of_5_ms();
    let judged = |repetitions: u32, lossy: u32| {
        let mut runs = runs(repetitions, 3.2 * MBIT);
        disturbed(&mut runs, |repetition| repetition < lossy, loses_all);
        judge(&with(objective), &runs).outcome
    };
    assert_eq!(judged(90, 1), Outcome::Holds);
    assert_eq!(judged(50, 1), Outcome::Inconclusive);
    // Of two tests.
    assert_eq!(judged(34, 12), Outcome::Broken);
    assert_eq!(judged(34, 6), Outcome::Inconclusive);
    assert_eq!(judged(1, 1), Outcome::Inconclusive);
    assert_eq!(judged(2, 2), Outcome::Broken);
}

#[test]
fn a_throughput_that_is_all_a_source_sends_is_judged_within_the_margin() {
    let objective = throughput_of_5_mbit();
    // As `cbr` at 5 Mbit/s comes out.
    let sent = 4.9997 * MBIT;
    let mut runs = runs(34, sent);
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Holds);
    insta::assert_snapshot!(isolation.deciding(), @"critical gets at least 5 Mbit/s (4.95 Mbit/s because it sends 5 Mbit/s) in 34 of 34 runs of s0 (95 %: in at least 91 %); worst run 5 Mbit/s");
    disturbed(&mut runs, |_| true, receives(0.62 * sent));
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(isolation.deciding(), @"critical gets at least 5 Mbit/s (4.95 Mbit/s because it sends 5 Mbit/s) in 0 of 34 runs of s1 (95 %: in less than 91 %); worst run 3.1 Mbit/s");
}

#[test]
fn what_a_source_sends_at_random_is_asked_of_each_run_by_itself() {
    let objective = throughput_of_5_mbit();
    // 5 Mbit/s on average, ± 4 %, of which everything arrives.
    let all: Vec<RunRecord> = (0..34)
        .flat_map(|repetition| {
            let rate = (5.0 + 0.2 * synthetic::scatter(repetition, 0)) * MBIT;
            let mut runs = runs(1, rate);
            for run in &mut runs {
                run.key.repetition = repetition;
            }
            runs
        })
        .collect();
    assert_eq!(judge(&with(objective), &all).outcome, Outcome::Holds);
}

#[test]
fn a_slice_that_sends_less_than_its_objective_misses_it_by_losing_and_does_not_meet_it() {
    let objective = throughput_of_5_mbit();
    let mut runs = runs(34, 3.2 * MBIT);
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Inconclusive);
    assert_eq!(isolation.repetitions_needed(), None);
    insta::assert_snapshot!(isolation.reason(), @"inconclusive: critical gets at least 5 Mbit/s in 34 of 34 runs of s0; worst run 3.2 Mbit/s; it sends only 3.2 Mbit/s: whether it would get more is unknown; no influence of others: throughput of critical within −1 % of the reference in 34 of 34 runs of s1 (95 %: in at least 91 %); mean 3.2 Mbit/s → 3.2 Mbit/s (0 %), worst run 0 %");
    disturbed(&mut runs, |_| true, receives(2.0 * MBIT));
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(isolation.deciding(), @"critical gets at least 5 Mbit/s (3.168 Mbit/s because it sends 3.2 Mbit/s) in 0 of 34 runs of s1 (95 %: in less than 91 %); worst run 2 Mbit/s");
}

#[test]
fn what_cannot_be_judged_leaves_isolation_inconclusive_and_influence_beside_it() {
    let objective = delay_of_5_ms();
    let mut runs = runs(34, 3.2 * MBIT);
    for slice in runs.iter_mut().map(|run| &mut run.slices[CRITICAL]) {
        slice.delay_of_sent = None;
    }
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(isolation.reason(), @"inconclusive: critical in s0: no run has a value for its delay at 99 %; no influence of others: throughput of critical within −1 % of the reference in 34 of 34 runs of s1 (95 %: in at least 91 %); mean 3.2 Mbit/s → 3.2 Mbit/s (0 %), worst run 0 %");
    // Without any run there is nothing to be inconclusive about.
    assert_eq!(judge(&with(objective), &[]).outcome, Outcome::NotTested);
}

#[test]
fn a_scenario_in_which_a_slice_sends_nothing_says_nothing_of_it() {
    let objective = objective!(loss_ratio: Some(0.001));
    let mut runs = runs(34, 3.2 * MBIT);
    disturbed(
        &mut runs,
        |_| true,
        |slice| {
            slice.steady = Default::default();
            slice.whole = Default::default();
            slice.series.served_bytes.fill(0);
            slice.series.sent_bytes.fill(0);
            slice.delay_of_sent = None;
        },
    );
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Holds, "{}", isolation.reason());
    let silent = &isolation.not_judged[0];
    assert_eq!(
        (&*silent.scenario, &*silent.why),
        ("s1", "it sends nothing there")
    );
    // Nor is it influenced there.
    let mut study = with(objective);
    study.slices[CRITICAL].objective = None;
    let isolation = judge(&study, &runs);
    assert_eq!(isolation.outcome, Outcome::NotTested);
    assert_eq!(isolation.not_judged[0].why, "it sends nothing there");
}

#[test]
fn an_objective_whose_repetitions_differ_is_described_with_its_bounds() {
    let mut runs = runs(34, 3.2 * MBIT);
    for run in &mut runs {
        let ns = Some(400_000 + 100_000 * u64::from(run.key.repetition % 2));
        run.slices[CRITICAL].delay_of_sent = Some(SentDelay { at: AT, ns });
    }
    let isolation = judge(&with(delay_of_5_ms()), &runs);
    insta::assert_snapshot!(isolation.objectives.unwrap().deciding().unwrap(), @"critical within 5 ms for 99 % of packets in 34 of 34 runs of s0 (95 %: in at least 91 %); worst run 500 µs");
}

#[test]
fn a_slice_that_exceeds_its_share_by_more_than_the_margin_is_not_judged() {
    // A share of 17.5 Mbit/s, and 1 % of it: 17.675 Mbit/s.
    let judged = |rate| judge(&with(delay_of_5_ms()), &runs(34, rate));
    let within = judged(17.6 * MBIT);
    assert_eq!(within.outcome, Outcome::Holds, "{}", within.reason());
    assert_eq!(within.objectives.unwrap().tests.len(), 2);
    let beyond = judged(17.7 * MBIT);
    assert_eq!(beyond.outcome, Outcome::NotTested, "{}", beyond.reason());
    let why: Vec<_> = beyond.not_judged.iter().map(|n| &*n.why).collect();
    assert_eq!(why, ["it exceeds its own share there"; 2]);
}

#[test]
fn a_delay_varies_from_the_smallest_of_the_run() {
    let objective = objective!(delay_variation: of_delay(10_000_000));
    let mut runs = runs(34, 3.2 * MBIT);
    disturbed(
        &mut runs,
        |_| true,
        |slice| {
            // Crowded after the transient only: 40 to 43.65 ms.
            slice.steady.delay.min_ns = 40_000_000;
            slice.steady.delay.p99_ns = 43_650_000;
        },
    );
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Broken);
    let test = isolation.objectives.unwrap().decided_by.unwrap();
    assert!((test.mean.unwrap() - 43.583e6).abs() < 1e4, "{test:?}");
}

#[test]
fn an_objective_of_everything_that_is_met_has_no_room_and_not_less() {
    let length_ns = ConformingIntervals::LENGTH_NS;
    let always = ConformingIntervals {
        share: 1.0,
        length_ns,
    };
    let objective = objective!(loss_ratio: Some(0.0), availability: Some(always));
    let mut runs = runs(34, 3.2 * MBIT);
    for slice in runs.iter_mut().map(|run| &mut run.slices[CRITICAL]) {
        slice.series.sent_frames.fill(10);
    }
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Holds);
    insta::assert_snapshot!(isolation.deciding(), @"critical loses at most 0 % in 34 of 34 runs of s0 (95 %: in at least 91 %); worst run 0 %; resolution 0.001 %");
    for test in isolation.objectives.unwrap().tests {
        assert_eq!(test.room, Some(0.0), "{test:?}");
    }
}

#[test]
fn as_many_repetitions_as_are_said_to_be_needed_decide() {
    let judged = |repetitions: u32, lossy: u32| {
        let mut runs = runs(repetitions, 3.2 * MBIT);
        disturbed(&mut runs, |repetition| repetition % 40 < lossy, loses_all);
        judge(&with(delay_of_5_ms()), &runs).objectives.unwrap()
    };
    for (lossy, outcome) in [(1, Outcome::Holds), (8, Outcome::Broken)] {
        let open = judged(40, lossy);
        assert_eq!(open.outcome, Outcome::Inconclusive, "{lossy}");
        let needed = open.repetitions_needed.unwrap();
        assert_eq!(judged(needed, lossy).outcome, outcome);
    }
    assert_eq!(judged(1, 0).repetitions_needed, Some(34));
}

/// Nothing in them is random: another run would be the same, and shows no more.
#[test]
fn runs_that_are_copies_count_as_one_and_decide_as_far_as_its_packets_go() {
    let copies = |lost: u64| {
        let mut runs = runs(5, 3.2 * MBIT);
        for run in &mut runs {
            run.aggregate.sent_frames = 0;
            let slice = &mut run.slices[CRITICAL].steady;
            slice.lost_frames = lost;
            slice.loss_ratio = lost as f64 / slice.sent_frames as f64;
        }
        runs
    };
    let judged = |limit: f64, lost: u64| {
        let objective = objective!(loss_ratio: Some(limit));
        let mut study = with(objective);
        study.is_without_chance = true;
        judge(&study, &copies(lost)).objectives.unwrap()
    };
    let met = judged(0.01, 0);
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding().unwrap(), @"critical loses at most 1 % in 1 of 1 run of s0 (deterministic: one run); 0 %; resolution 0.034 %");
    assert_eq!(judged(0.01, 500).outcome, Outcome::Broken);
    let few = judged(0.0001, 0);
    assert_eq!(
        (few.outcome, few.repetitions_needed),
        (Outcome::Inconclusive, None)
    );
    insta::assert_snapshot!(few.deciding().unwrap(), @"critical loses at most 0.01 % in 1 of 1 run of s0 (deterministic: one run); 0 %; 0 of 10738 packets lost, 36889 needed");
    let mut study = study_of_influence();
    // What happens now and then may only not have happened.
    assert_eq!(judge(&study, &copies(0)).outcome, Outcome::Inconclusive);
    study.is_without_chance = true;
    let isolation = judge(&study, &copies(0));
    assert_eq!(isolation.outcome, Outcome::Holds);
    insta::assert_snapshot!(isolation.deciding(), @"throughput of critical within −1 % of the reference in 1 of 1 run of s1 (deterministic: one run); 3.2 Mbit/s → 3.2 Mbit/s (0 %)");
}

pub(crate) fn study_of_influence() -> StudyDescription {
    let mut study = with(Objective::default());
    study.slices[CRITICAL].objective = None;
    study
}

/// One run of a hundred that never settles is no matter, and a scenario that never does cannot hold.
#[test]
fn runs_without_a_steady_state_do_not_show_that_a_limit_is_kept() {
    let judged = |study: &StudyDescription, unsettled: u32| {
        let mut runs = runs(100, 3.2 * MBIT);
        for run in runs.iter_mut().filter(|run| run.key.repetition < unsettled) {
            run.transient.steady_state_reached = false;
            // 40 s, in which the rate rises all the time.
            for (bin, bytes) in (0..).zip(&mut run.slices[CRITICAL].series.received_bytes) {
                *bytes = 10_000 + 10 * bin;
            }
        }
        judge(study, &runs)
    };
    for study in [with(delay_of_5_ms()), study_of_influence()] {
        assert_eq!(judged(&study, 1).outcome, Outcome::Holds);
        let isolation = judged(&study, 100);
        assert_eq!(isolation.outcome, Outcome::Inconclusive);
        assert!(
            isolation
                .deciding()
                .contains("had no steady state: run longer"),
            "{}",
            isolation.deciding()
        );
    }
}

#[test]
fn an_objective_of_everything_that_is_missed_has_less_than_no_room() {
    let objective = objective!(loss_ratio: Some(0.0));
    let mut runs = runs(34, 3.2 * MBIT);
    disturbed(&mut runs, |_| true, |slice| slice.steady.loss_ratio = 1e-6);
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Broken);
    let tests = isolation.objectives.unwrap().tests;
    let rooms: Vec<_> = tests
        .iter()
        .map(|test| (&*test.scenario, test.room))
        .collect();
    assert_eq!(rooms, [("s0", Some(0.0)), ("s1", Some(-1.0))]);
}

#[test]
fn a_run_without_a_packet_in_its_steady_state_says_nothing_of_delay_variation() {
    let objective = objective!(delay_variation: of_delay(5_000_000));
    let mut runs = runs(40, 3.2 * MBIT);
    disturbed(
        &mut runs,
        |repetition| repetition < 4,
        |slice| {
            slice.steady.lost_frames = 0;
            slice.steady.delay = Default::default();
        },
    );
    let isolation = judge(&with(objective), &runs);
    assert_eq!(isolation.outcome, Outcome::Holds, "{}", isolation.reason());
    let tests = isolation.objectives.unwrap().tests;
    let counted = tests
        .iter()
        .map(|test| (test.runs.runs, test.worst.is_some()));
    assert_eq!(counted.collect::<Vec<_>>(), [(40, true), (36, true)]);
}
