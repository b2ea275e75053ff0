//! What objectives need besides runs: packets, a delay that does not grow, and of captures and influence what they are held against.

use crate::objectives::{
    MBIT, delay_of_5_ms, disturbed, judge, of_delay, runs, study_of_influence,
    throughput_of_5_mbit, with,
};
use crate::synthetic::{BEST_EFFORT, CRITICAL};
use slicewise_stats::objective::Objective;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::SentDelay;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{IsolationVerdict, Outcome};

/// Thirty-four runs of a hundred packets cannot show that one in ten thousand is lost at most, and of two thousand they can.
#[test]
fn a_share_that_is_finer_than_the_packets_is_not_shown_to_be_kept() {
    let objective = objective!(loss_ratio: Some(1e-4));
    let with_packets = |packets, lost: fn(u32) -> u64| {
        let mut runs = runs(34, 3.2 * MBIT);
        for run in &mut runs {
            let slice = &mut run.slices[CRITICAL].steady;
            slice.sent_frames = packets;
            slice.lost_frames = lost(run.key.repetition);
            slice.loss_ratio = slice.lost_frames as f64 / packets as f64;
        }
        judge(&with(objective), &runs).objectives.unwrap()
    };
    let few = with_packets(100, |_| 0);
    assert_eq!(few.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(few.deciding().unwrap(), @"critical loses at most 0.01 % in 34 of 34 runs of s0; worst run 0 %; 0 of 3400 packets lost, 36889 needed; about 1024 repetitions would decide");
    assert_eq!(with_packets(2_000, |_| 0).outcome, Outcome::Holds);
    // One loss of 68,000 is far below one in ten thousand, and may be more.
    let one = with_packets(2_000, |repetition| u64::from(repetition == 0));
    assert_eq!(one.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(one.deciding().unwrap(), @"critical loses at most 0.01 % in 33 of 34 runs of s0; worst run 0.05 %; about 168 repetitions would decide");
}

/// The mean of all packets so far is within the limit, and what the next ones will have is not.
#[test]
fn a_delay_that_still_grows_is_not_shown_to_stay_within_its_limit() {
    let grows_by_in = |objective, ms: u64| {
        let mut runs = runs(34, 3.2 * MBIT);
        for run in &mut runs {
            let bins = &mut run.slices[CRITICAL].series.delay_mean_ns;
            let last = bins.len() as u64;
            for (bin, delay) in (0..).zip(bins) {
                *delay = Some(300_000 + 2_000_000 * ms * bin / last);
            }
        }
        judge(&with(objective), &runs).objectives.unwrap()
    };
    let grows_by = |ms| grows_by_in(delay_of_5_ms(), ms);
    assert_eq!(grows_by(0).outcome, Outcome::Holds);
    // What else follows from a queue that grows does not hold either.
    let of_loss = objective!(loss_ratio: Some(0.001));
    assert_eq!(grows_by_in(of_loss, 0).outcome, Outcome::Holds);
    assert_eq!(grows_by_in(of_loss, 2).outcome, Outcome::Inconclusive);
    let growing = grows_by(1);
    assert_eq!(growing.outcome, Outcome::Inconclusive);
    assert_eq!(growing.repetitions_needed, None);
    insta::assert_snapshot!(growing.deciding().unwrap(), @"critical within 5 ms for 99 % of packets in 34 of 34 runs of s0; worst run 400 µs; still growing by 50 µs in a second: run longer");
}

/// Of one capture everything is known; of what comes after it no more than its packets say.
#[test]
fn one_capture_is_a_census_and_says_what_follows_if_the_load_stays_as_it_is() {
    let judged = |lost: fn(usize) -> u32| {
        let mut study = with(Objective {
            loss_ratio: Some(1e-3),
            ..delay_of_5_ms()
        });
        study.backend = "captures".to_owned();
        let mut runs = runs(1, 3.2 * MBIT);
        for run in &mut runs {
            let slice = &mut run.slices[CRITICAL];
            // 40 s in bins of 50 ms.
            slice.series.sent_frames.fill(100);
            slice.series.late_frames = vec![0; slice.series.sent_frames.len()];
            for (bin, count) in slice.series.lost_frames.iter_mut().enumerate() {
                *count = lost(bin);
            }
            slice.steady.sent_frames = 80_000;
            slice.steady.lost_frames = slice.series.lost_frames.iter().map(|&n| u64::from(n)).sum();
            slice.steady.loss_ratio = slice.steady.lost_frames as f64 / 80_000.0;
        }
        judge(&study, &runs)
    };
    let describe = |isolation: &IsolationVerdict| {
        let tests = isolation.objectives.as_ref().unwrap().tests.iter();
        let of_s1 = tests.filter(|test| test.scenario == "s1");
        let told: Vec<String> = of_s1.map(|test| test.describe()).collect();
        format!("{}\n{}", isolation.outcome, told.join("\n"))
    };
    let none = judged(|_| 0);
    insta::assert_snapshot!(describe(&none), @"
    holds
    critical loses at most 0.1 %: met in this capture of s1; 0 of 80000 packets lost, 80 allowed; if the load stays as it is at most 0.004 % (95 %, 40 blocks of 1 s)
    critical within 5 ms for 99 % of packets: met in this capture of s1; 0 of 80000 packets lost or late, 800 allowed; if the load stays as it is at most 0.004 % (95 %, 40 blocks of 1 s)
    ");
    let apart = judged(|bin| u32::from(bin % 25 == 7));
    insta::assert_snapshot!(describe(&apart), @"
    holds
    critical loses at most 0.1 %: met in this capture of s1; 32 of 80000 packets lost, 80 allowed; if the load stays as it is at most 0.047 % (95 %, 40 blocks of 1 s)
    critical within 5 ms for 99 % of packets: met in this capture of s1; 32 of 80000 packets lost or late, 800 allowed; if the load stays as it is at most 0.047 % (95 %, 40 blocks of 1 s)
    ");
    let together = judged(|bin| if bin == 100 { 40 } else { 0 });
    insta::assert_snapshot!(describe(&together), @"
    holds
    critical loses at most 0.1 %: met in this capture of s1; 40 of 80000 packets lost, 80 allowed; nothing to project: fewer than ten blocks contain one
    critical within 5 ms for 99 % of packets: met in this capture of s1; 40 of 80000 packets lost or late, 800 allowed; nothing to project: fewer than ten blocks contain one
    ");
    let many = judged(|bin| u32::from(bin % 8 == 7));
    insta::assert_snapshot!(describe(&many), @"
    broken
    critical loses at most 0.1 %: missed in this capture of s1; 100 of 80000 packets lost, 80 allowed; if the load stays as it is at most 0.138 % (95 %, 40 blocks of 1 s)
    critical within 5 ms for 99 % of packets: met in this capture of s1; 100 of 80000 packets lost or late, 800 allowed; if the load stays as it is at most 0.138 % (95 %, 40 blocks of 1 s)
    ");
}

/// A percentile of which only the value of each run is known needs as many values as one of packets, at least.
#[test]
fn a_percentile_of_few_values_is_not_shown_to_be_kept() {
    let judged = |samples: u64| {
        let mut runs = runs(34, 3.2 * MBIT);
        for run in &mut runs {
            run.slices[CRITICAL].steady.delay.samples = samples;
        }
        let objective = objective!(delay_variation: of_delay(5_000_000));
        judge(&with(objective), &runs).objectives.unwrap()
    };
    let few = judged(10);
    assert_eq!(few.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(few.deciding().unwrap(), @"critical varies within 5 ms for 99 % of packets received in 34 of 34 runs of s0; worst run 333.3 µs; 340 packets in all runs, 369 needed; about 64 repetitions would decide");
    assert_eq!(judged(11).outcome, Outcome::Holds);
}

/// A run of a hundred packets loses 1 % of them or none, and half of them lose one.
#[test]
fn runs_that_are_too_short_for_what_is_allowed_do_not_show_that_it_is_exceeded() {
    let judged = |lossy: u32| {
        let mut runs = runs(40, 3.2 * MBIT);
        for run in &mut runs {
            let slice = &mut run.slices[CRITICAL].steady;
            slice.sent_frames = 100;
            slice.lost_frames = u64::from(run.key.repetition % 4 < lossy);
            slice.loss_ratio = slice.lost_frames as f64 / 100.0;
        }
        let objective = objective!(loss_ratio: Some(0.006));
        judge(&with(objective), &runs).objectives.unwrap()
    };
    let half = judged(2);
    assert_eq!(half.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(half.deciding().unwrap(), @"critical loses at most 0.6 % in 20 of 40 runs of s1; worst run 1 %; 20 of 4000 packets lost, which shows at most 0.733 %; about 40 repetitions would decide");
    assert_eq!(judged(4).outcome, Outcome::Broken);
}

/// Two captures are a pair, and not all there is of what they are compared in.
#[test]
fn one_capture_is_no_census_of_influence() {
    let mut study = study_of_influence();
    study.backend = "captures".to_owned();
    let mut runs = runs(1, 3.2 * MBIT);
    disturbed(
        &mut runs,
        |_| true,
        |slice| slice.steady.delay.mean_ns *= 3.0,
    );
    assert_eq!(judge(&study, &runs).outcome, Outcome::Inconclusive);
}

/// What a service tolerates is known from its objectives, and what no policy can avoid is no influence.
#[test]
fn margins_of_influence_are_those_of_the_slice_and_of_the_policy() {
    let influence = |objective: Objective, round_ns: u64| {
        let mut study = with(objective);
        study.policies[0].round_ns = round_ns;
        let mut runs = runs(34, 3.2 * MBIT);
        // 0.05 % are lost, and packets wait 300 us longer.
        disturbed(
            &mut runs,
            |_| true,
            |slice| {
                slice.steady.loss_ratio = 0.0005;
                slice.steady.delay.mean_ns += 300_000.0;
                slice.steady.delay.p99_ns += 300_000;
            },
        );
        let influence = judge(&study, &runs).influence;
        let of = |indicator| {
            let mut tests = influence.tests.iter();
            let test = tests.find(|test| test.numbers.indicator == Some(indicator));
            test.unwrap().outcome
        };
        [of(Quantity::LossRatio), of(Quantity::DelayMean)]
    };
    let of_throughput = throughput_of_5_mbit();
    let of_loss = Objective {
        loss_ratio: Some(0.0001),
        ..of_throughput
    };
    use Outcome::{Broken, Holds};
    assert_eq!(influence(of_throughput, 0), [Holds, Broken]);
    assert_eq!(influence(of_loss, 0), [Broken, Broken]);
    assert_eq!(influence(of_throughput, 300_000), [Holds, Holds]);
    assert_eq!(influence(delay_of_5_ms(), 0), [Holds, Holds]);
}

#[test]
fn a_record_of_more_frames_than_any_run_can_have_is_damaged() {
    let study = with(delay_of_5_ms());
    let added = |frames: u64| {
        let mut run = runs(1, 3.2 * MBIT).remove(0);
        run.slices[CRITICAL].steady.lost_frames = frames;
        SummaryBuilder::new(&study).add(&run).is_ok()
    };
    assert!(added(1 << 46) && !added((1 << 46) + 1));
}

/// Two guaranteed slices, of which others delay the first, with an objective that it meets, by a factor of 10 and the second
/// by a factor of 1.3 in the repetitions that `picks`.
fn two_slices(picks: impl Fn(u32) -> bool) -> IsolationVerdict {
    let mut study = with(delay_of_5_ms());
    study.slices[BEST_EFFORT].guaranteed = true;
    study.slices[BEST_EFFORT].name = "second".to_owned();
    let mut runs = runs(34, 3.2 * MBIT);
    for run in &mut runs {
        run.slices[BEST_EFFORT].slice = "second".to_owned();
        let is_picked = picks(run.key.repetition);
        let factors = [10.0, if is_picked { 1.3 } else { 1.0 }];
        let slices = run.slices.iter_mut().zip(factors);
        for (slice, factor) in slices.filter(|_| run.key.scenario == "s1") {
            slice.steady.delay.mean_ns *= factor;
        }
    }
    judge(&study, &runs)
}

#[test]
fn influence_that_decides_is_that_on_slices_without_objectives() {
    let broken = two_slices(|_| true);
    assert_eq!(broken.outcome, Outcome::Broken);
    insta::assert_snapshot!(broken.reason(), @"broken: mean delay of second within +25 % of the reference in 0 of 34 runs of s1 (95 %: in less than 91 %); mean 200 µs → 260 µs (+30 %), worst run +30 %");
    assert_eq!(broken.influence.decided_by.unwrap().slice, "critical");

    let open = two_slices(|repetition| repetition == 0);
    assert_eq!(open.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(open.reason(), @"inconclusive: mean delay of second within +25 % of the reference in 33 of 34 runs of s1; mean 200 µs → 201.8 µs (+0.882 %), worst run +30 %; about 168 repetitions would decide");
    assert!(open.repetitions_needed().is_some());

    let holds = two_slices(|_| false);
    assert_eq!(holds.outcome, Outcome::Holds);
    insta::assert_snapshot!(holds.reason(), @"holds: critical within 5 ms for 99 % of packets in 34 of 34 runs of s0 (95 %: in at least 91 %); worst run 400 µs; influence of others: mean delay of critical within +500 µs of the reference in 0 of 34 runs of s1 (95 %: in less than 91 %); mean 200 µs → 2 ms (+1.8 ms), worst run +1.8 ms");
}

#[test]
fn the_loss_beside_the_worst_run_is_the_loss_in_that_run() {
    let mut runs = runs(34, 3.2 * MBIT);
    disturbed(
        &mut runs,
        |repetition| repetition == 7,
        |slice| {
            slice.steady.loss_ratio = 0.5;
            slice.steady.lost_frames = slice.steady.sent_frames / 2;
            slice.delay_of_sent = slice.delay_of_sent.map(|of| SentDelay { ns: None, ..of });
        },
    );
    let objectives = judge(&with(delay_of_5_ms()), &runs).objectives.unwrap();
    let test = objectives.decided_by.unwrap();
    assert_eq!(test.measured(), "worst run ∞, 50 % lost");
}
