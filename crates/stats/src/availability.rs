//! Conforming intervals: those in which a slice meets all its objectives.

use crate::application::ApplicationRecord;
use crate::objective::Objective;
use crate::record::{RunRecord, SliceRecord};
use std::ops::Range;

/// Intervals of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intervals {
    /// In which every objective is met.
    pub conforming: u32,
    /// In which the slice sent something.
    pub all: u32,
}

impl Intervals {
    /// The share that conforms; `None` where there are none.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.all > 0).then(|| f64::from(self.conforming) / f64::from(self.all))
    }
}

/// The intervals of `length_ns` after the transient; what is left of the run at its end is none.
///
/// Goodput is held against what is asked for over the whole run, less the throughput `margin`, as far as that is known, and not
/// judged where that is less than the objective, less the margin.
pub(crate) fn of_slice(
    (objective, length_ns): (&Objective, u64),
    margin: f64,
    run: &RunRecord,
    slice: &SliceRecord,
) -> Intervals {
    let bin_ns = run.bin_ns.max(1);
    let length = usize::try_from(length_ns.div_ceil(bin_ns)).unwrap_or(usize::MAX);
    let length = length.max(1);
    let applications = run.applications.iter();
    let applications: Vec<&ApplicationRecord> = applications
        .filter(|source| source.slice == slice.slice)
        .collect();
    let least_goodput = objective.goodput_bits_per_second.and_then(|rate| {
        let rate = rate as f64;
        let Some(asked) = ApplicationRecord::goodput_asked(&applications) else {
            return Some(rate);
        };
        let asked_less_margin = (1.0 - margin) * asked;
        (asked >= (1.0 - margin) * rate).then_some(rate.min(asked_less_margin))
    });
    let interval = Interval {
        objective,
        slice,
        least_goodput,
        goodput: (applications.iter())
            .map(|source| source.series.goodput_bytes.as_slice())
            .collect(),
        seconds: bin_ns as f64 * length as f64 / 1e9,
    };
    let mut intervals = Intervals::default();
    let mut from = run.steady_from();
    while let Some(to) = from
        .checked_add(length)
        .filter(|&to| to <= slice.series.sent_frames.len())
    {
        if total(&slice.series.sent_frames, &(from..to)) > 0 {
            intervals.all = intervals.all.saturating_add(1);
            let conforms = u32::from(interval.conforms(&(from..to)));
            intervals.conforming = intervals.conforming.saturating_add(conforms);
        }
        from = to;
    }
    intervals
}

struct Interval<'a> {
    objective: &'a Objective,
    slice: &'a SliceRecord,
    /// Bit/s; `None` where goodput is not judged.
    least_goodput: Option<f64>,
    /// Of each of its applications.
    goodput: Vec<&'a [u64]>,
    seconds: f64,
}

impl Interval<'_> {
    fn conforms(&self, bins: &Range<usize>) -> bool {
        let series = &self.slice.series;
        let sent_frames = total(&series.sent_frames, bins);
        let lost_frames = total(&series.lost_frames, bins);
        let objective = self.objective;

        let is_lossless_enough = objective
            .loss_ratio
            .is_none_or(|limit| lost_frames as f64 <= limit * sent_frames as f64);
        // By send time: arrival time depends on propagation.
        let is_fast_enough = objective.throughput_bits_per_second.is_none_or(|rate| {
            let sent_bytes = total(&series.sent_bytes, bins);
            let arrived_bytes = sent_bytes.saturating_sub(total(&series.lost_bytes, bins));
            arrived_bytes as f64 >= (rate as f64 / 8.0 * self.seconds).min(sent_bytes as f64)
        });
        let is_prompt_enough = objective.delay.is_none_or(|limit| {
            // A lost frame is not there in time: (late + lost) / sent ≤ 1 − percentile, in whole numbers.
            let beyond = lost_frames + total(&series.late_frames, bins);
            beyond * 100_000 <= sent_frames * u64::from(100_000 - limit.at.per_100_000())
        });
        let is_even_enough = objective.delay_variation.is_none_or(|limit| {
            let largest = of(&series.delay_max_ns, bins).iter().flatten().max();
            let smallest = self.slice.whole.delay.min_ns;
            match largest {
                Some(largest) => largest.saturating_sub(smallest) <= limit.limit_ns,
                // What never arrives has no delay to vary.
                None => lost_frames == 0,
            }
        });
        let has_goodput = self.least_goodput.is_none_or(|rate| {
            let bytes: u64 = self.goodput.iter().map(|series| total(series, bins)).sum();
            bytes as f64 >= rate / 8.0 * self.seconds
        });
        has_goodput && is_lossless_enough && is_fast_enough && is_prompt_enough && is_even_enough
    }
}

/// The part of a series in these bins; a series that is shorter has less.
fn of<'s, T>(series: &'s [T], bins: &Range<usize>) -> &'s [T] {
    let end = bins.end.min(series.len());
    &series[bins.start.min(end)..end]
}

fn total<T: Copy + Into<u64>>(series: &[T], bins: &Range<usize>) -> u64 {
    of(series, bins).iter().map(|&value| value.into()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::{
        ApplicationRecord, ApplicationSeries, FlowFigures, RequestFigures, TransportFigures,
    };
    use crate::objective::{DelayLimit, Percentile};
    use crate::record::{DelayFigures, Figures, RunKey, Series, Transient};

    const MARGIN: f64 = 0.02;

    /// Four intervals of 100 ms, ten frames of 1000 B each, all of them received within 1 to 2 ms.
    fn run() -> RunRecord {
        let figures = Figures {
            delay: DelayFigures {
                samples: 40,
                min_ns: 1_000_000,
                ..DelayFigures::default()
            },
            ..Figures::default()
        };
        RunRecord {
            schema_version: crate::record::SCHEMA_VERSION,
            key: RunKey::default(),
            duration_ns: 400_000_000,
            bin_ns: 100_000_000,
            transient: Transient {
                steady_state_reached: true,
                ..Transient::default()
            },
            slices: vec![SliceRecord {
                slice: "voice".to_owned(),
                whole: figures,
                steady: figures,
                series: Series {
                    sent_bytes: vec![10_000; 4],
                    received_bytes: vec![10_000; 4],
                    served_bytes: vec![10_000; 4],
                    lost_bytes: vec![0; 4],
                    sent_frames: vec![10; 4],
                    lost_frames: vec![0; 4],
                    delay_mean_ns: vec![Some(1_500_000); 4],
                    delay_max_ns: vec![Some(2_000_000); 4],
                    late_frames: vec![0; 4],
                },
                ..SliceRecord::default()
            }],
            aggregate: figures,
            ..RunRecord::default()
        }
    }

    fn objective() -> Objective {
        Objective {
            delay: Some(DelayLimit {
                limit_ns: 5_000_000,
                at: Percentile::P90,
            }),
            delay_variation: Some(DelayLimit {
                limit_ns: 1_000_000,
                at: Percentile::P999,
            }),
            loss_ratio: Some(0.1),
            throughput_bits_per_second: Some(720_000),
            ..Objective::default()
        }
    }

    fn availability_after(change: impl Fn(&mut Series)) -> Option<f64> {
        let mut run = run();
        change(&mut run.slices[0].series);
        share(&objective(), &run)
    }

    /// The share of intervals of one bin.
    fn share(objective: &Objective, run: &RunRecord) -> Option<f64> {
        of_slice((objective, run.bin_ns), MARGIN, run, &run.slices[0]).share()
    }

    #[test]
    fn intervals_at_the_limits_are_available() {
        assert_eq!(availability_after(|_| ()), Some(1.0));
        let at_the_limits = availability_after(|series| {
            (series.lost_frames[0], series.lost_bytes[0]) = (1, 1_000);
            series.late_frames[2] = 1;
        });
        assert_eq!(at_the_limits, Some(1.0));
    }

    #[test]
    fn every_missed_objective_makes_its_interval_unavailable() {
        type Change = fn(&mut Series);
        let changes: [Change; 4] = [
            |series| series.lost_frames[0] = 2,
            // 0.72 Mbit/s are 9,000 B: a frame longer than the mean was lost.
            |series| (series.lost_frames[0], series.lost_bytes[0]) = (1, 1_001),
            |series| series.late_frames[0] = 2,
            |series| series.delay_max_ns[0] = Some(2_000_001),
        ];
        for change in changes {
            assert_eq!(availability_after(change), Some(0.75));
        }
    }

    #[test]
    fn an_interval_without_the_goodput_of_all_applications_together_is_not_available() {
        let source = |name: &str, slice: &str, bytes: [u64; 4]| ApplicationRecord {
            source: name.to_owned(),
            slice: slice.to_owned(),
            series: ApplicationSeries {
                goodput_bytes: bytes.to_vec(),
                ..ApplicationSeries::default()
            },
            ..ApplicationRecord::default()
        };
        let mut run = run();
        run.applications = vec![
            source("one", "voice", [5_000, 9_000, 0, 8_999]),
            source("two", "voice", [4_000, 0, 0, 0]),
            source("other", "other", [0, 0, 9_000, 9_000]),
        ];
        // 9,000 B in 100 ms.
        let of_goodput = Objective {
            goodput_bits_per_second: Some(720_000),
            ..Objective::default()
        };
        assert_eq!(share(&of_goodput, &run), Some(0.5));
        // 712,000 bit/s of answers to 99 % of the requests: 719,192 were asked for, less 2 % are 8,810 B.
        let answered = |goodput: f64, achieved: f64| ApplicationRecord {
            transport: TransportFigures {
                goodput_bits_per_second: goodput,
                ..TransportFigures::default()
            },
            requests: Some(RequestFigures {
                offered_per_second: 100.0,
                achieved_per_second: achieved,
                ..RequestFigures::default()
            }),
            ..source("web", "voice", [8_809, 8_811, 8_811, 8_811])
        };
        run.applications = vec![answered(712_000.0, 99.0)];
        assert_eq!(
            share(&of_goodput, &run),
            Some(0.75),
            "no more than was asked for, less the margin"
        );
        let mut few = answered(400_000.0, 99.0);
        few.series.goodput_bytes[0] = 0;
        run.applications = vec![few];
        assert_eq!(
            share(&of_goodput, &run),
            Some(1.0),
            "far less was asked for"
        );
        // Flows may have asked for more.
        run.applications = vec![ApplicationRecord {
            flows: Some(FlowFigures::default()),
            ..source("web", "voice", [0, 0, 9_000, 0])
        }];
        assert_eq!(share(&of_goodput, &run), Some(0.25));
        run.applications.clear();
        assert_eq!(share(&of_goodput, &run), Some(1.0), "it has no application");
    }

    #[test]
    fn lost_frames_are_not_late_and_reduce_the_number_that_may_be() {
        let availability = availability_after(|series| {
            series.lost_frames[0] = 1;
            series.late_frames[0] = 1;
        });
        assert_eq!(availability, Some(0.75));
    }

    #[test]
    fn an_interval_of_which_nothing_arrives_is_not_available_whatever_is_asked() {
        let delay = objective().delay;
        let of_delay = Objective {
            delay,
            ..Objective::default()
        };
        let of_variation = Objective {
            delay_variation: delay,
            ..Objective::default()
        };
        let mut run = run();
        let series = &mut run.slices[0].series;
        series.lost_frames[1] = 10;
        series.delay_max_ns[1] = None;
        for objective in [of_delay, of_variation] {
            assert_eq!(share(&objective, &run), Some(0.75));
        }
    }

    #[test]
    fn a_slice_that_sends_less_than_its_objective_needs_only_what_it_sent() {
        let availability = availability_after(|series| {
            series.sent_bytes[0] = 5_000;
        });
        assert_eq!(availability, Some(1.0));
    }

    #[test]
    fn frames_arriving_in_a_later_interval_count_as_received() {
        // A long link: nothing arrives in the first interval.
        let availability = availability_after(|series| series.received_bytes[0] = 0);
        assert_eq!(availability, Some(1.0));
    }

    #[test]
    fn silent_intervals_and_the_transient_do_not_count() {
        let silent = |series: &mut Series| {
            series.sent_frames[1] = 0;
            series.delay_max_ns[1] = None;
            series.lost_frames[0] = 5;
        };
        let after = availability_after(silent).unwrap();
        assert!((after - 2.0 / 3.0).abs() < 1e-12);
        let mut run = run();
        silent(&mut run.slices[0].series);
        run.transient.end_ns = 100_000_000;
        assert_eq!(share(&objective(), &run), Some(1.0));
        run.slices[0].series.sent_frames.fill(0);
        assert_eq!(share(&objective(), &run), None);
    }

    #[test]
    fn an_interval_is_of_whole_bins_and_what_is_left_is_none() {
        let mut run = run();
        // Two frames of ten lost are too many in 100 ms, and just not in 200 ms.
        run.slices[0].series.lost_frames[2] = 2;
        let of = |length_ns: u64| {
            let loss = Objective {
                loss_ratio: Some(0.1),
                ..Objective::default()
            };
            let intervals = of_slice((&loss, length_ns), MARGIN, &run, &run.slices[0]);
            (intervals.conforming, intervals.all)
        };
        assert_eq!(of(1), (3, 4));
        assert_eq!(of(100_000_000), (3, 4));
        assert_eq!(of(150_000_000), (2, 2));
        assert_eq!(of(300_000_000), (1, 1));
        assert_eq!(of(500_000_000), (0, 0));
        assert_eq!(of(u64::MAX), (0, 0));
    }
}
