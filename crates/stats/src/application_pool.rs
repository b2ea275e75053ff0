//! The applications of one slice together, as if they were one source.

use crate::application::{
    ApplicationRecord, FlowFigures, RequestFigures, TransportFigures, VideoFigures,
};
use crate::distribution::{Distribution, Moments};
use crate::figures::DelayFigures;
use std::borrow::Cow;

impl ApplicationRecord {
    /// Returns the record of all `sources` of a slice together; `None` of none.
    ///
    /// Rates and counts are added, means are weighted by their samples, and percentiles are those of all samples together: exact where one
    /// source has samples, at most 1/128 too large where several have. Response times, distributions and series are left out.
    #[must_use]
    pub fn pooled<'a>(sources: &[&'a Self]) -> Option<Cow<'a, Self>> {
        let (first, others) = sources.split_first()?;
        if others.is_empty() {
            return Some(Cow::Borrowed(first));
        }
        Some(Cow::Owned(Self {
            slice: first.slice.clone(),
            transport: transport(&sources.iter().map(|it| &it.transport).collect::<Vec<_>>()),
            requests: requests(sources),
            flows: flows(sources),
            video: video(&sources.iter().filter_map(|it| it.video).collect::<Vec<_>>()),
            ..Self::default()
        }))
    }

    /// Times that ended, as many as `figures` have.
    fn finished_times(&self, figures: &DelayFigures) -> Distribution {
        Distribution::of_cdf(&self.times, figures.samples)
    }

    /// Times that ended, and the others until the end of the span.
    fn all_times(&self, finished: &DelayFigures, all: &DelayFigures) -> Distribution {
        let unfinished = all.samples.saturating_sub(finished.samples);
        let unfinished = Distribution::of_cdf(&self.unfinished_times, unfinished);
        self.finished_times(finished).merged(&unfinished)
    }
}

fn transport(all: &[&TransportFigures]) -> TransportFigures {
    let sum = |of: fn(&TransportFigures) -> u64| add(all.iter().map(|it| of(it)));
    let rtts = || all.iter().filter(|it| it.rtt_samples > 0);
    let rtt_means = all.iter().map(|it| (it.rtt_samples, it.rtt_mean_ns));
    let window_means = all
        .iter()
        .map(|it| (it.window_samples, it.window_mean_bytes));
    TransportFigures {
        span_ns: all.iter().map(|it| it.span_ns).max().unwrap_or(0),
        connections: sum(|it| it.connections),
        goodput_bits_per_second: all.iter().map(|it| it.goodput_bits_per_second).sum(),
        segments: sum(|it| it.segments),
        retransmitted_segments: sum(|it| it.retransmitted_segments),
        timeouts: sum(|it| it.timeouts),
        recoveries: sum(|it| it.recoveries),
        rtt_samples: sum(|it| it.rtt_samples),
        rtt_mean_ns: mean(rtt_means).unwrap_or(0.0),
        rtt_min_ns: rtts().map(|it| it.rtt_min_ns).min().unwrap_or(0),
        rtt_max_ns: rtts().map(|it| it.rtt_max_ns).max().unwrap_or(0),
        window_samples: sum(|it| it.window_samples),
        window_mean_bytes: mean(window_means).unwrap_or(0.0),
        fairness: fairness(all),
    }
}

/// Jain's index of the connections of all sources: a source's sum of squares follows from its own index. `None` where that is not known, of
/// fewer than two connections, or if none of them got anything.
fn fairness(all: &[&TransportFigures]) -> Option<f64> {
    let (mut connections, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for of in all.iter().filter(|of| of.connections > 0) {
        let goodput = of.goodput_bits_per_second;
        let index = match of.fairness {
            Some(index) => index,
            None if of.connections == 1 || goodput == 0.0 => 1.0,
            None => return None,
        };
        connections += of.connections as f64;
        sum += goodput;
        squares += goodput * goodput / (of.connections as f64 * index);
    }
    (connections > 1.0 && squares > 0.0).then(|| sum * sum / (connections * squares))
}

fn requests(sources: &[&ApplicationRecord]) -> Option<RequestFigures> {
    let own = || {
        sources
            .iter()
            .filter_map(|it| Some((*it, it.requests.as_ref()?)))
    };
    own().next()?;
    let latency = own().map(|(it, of)| (of.latency, it.finished_times(&of.latency)));
    let of_due = own().map(|(it, of)| {
        let times = it.all_times(&of.latency, &of.latency_of_due);
        (of.latency_of_due, times)
    });
    Some(RequestFigures {
        offered_per_second: own().map(|(_, of)| of.offered_per_second).sum(),
        achieved_per_second: own().map(|(_, of)| of.achieved_per_second).sum(),
        unanswered: add(own().map(|(_, of)| of.unanswered)),
        latency: times(latency),
        response_time: DelayFigures::default(),
        latency_of_due: times(of_due),
    })
}

fn flows(sources: &[&ApplicationRecord]) -> Option<FlowFigures> {
    let own = || {
        sources
            .iter()
            .filter_map(|it| Some((*it, it.flows.as_ref()?)))
    };
    own().next()?;
    let completed = own().map(|(it, of)| {
        let times = it.finished_times(&of.completion_time);
        (of.completion_time, times)
    });
    let begun = own().map(|(it, of)| {
        let times = it.all_times(&of.completion_time, &of.time_of_begun);
        (of.time_of_begun, times)
    });
    let rates = own().filter_map(|(_, of)| Some((of.completed, of.rate_mean_bits_per_second?)));
    Some(FlowFigures {
        completed: add(own().map(|(_, of)| of.completed)),
        completion_time: times(completed),
        time_of_begun: times(begun),
        rate_mean_bits_per_second: mean(rates),
    })
}

/// Means of segments are weighted by segments; of time, by clients, because a client that stalls gets fewer segments.
fn video(all: &[VideoFigures]) -> Option<VideoFigures> {
    let by_segments = |of: fn(&VideoFigures) -> Option<f64>| {
        mean(all.iter().filter_map(|it| Some((it.segments, of(it)?))))
    };
    let by_clients = |of: fn(&VideoFigures) -> Option<f64>| {
        mean(all.iter().filter_map(|it| Some((it.clients, of(it)?))))
    };
    all.first()?;
    Some(VideoFigures {
        clients: add(all.iter().map(|it| it.clients)),
        segments: add(all.iter().map(|it| it.segments)),
        quality_mean: by_segments(|it| it.quality_mean),
        quality_least: all
            .iter()
            .filter_map(|it| it.quality_least)
            .reduce(f64::min),
        bit_rate_mean: by_segments(|it| it.bit_rate_mean),
        switches_per_minute: by_clients(|it| it.switches_per_minute),
        start_up_mean_ns: by_clients(|it| it.start_up_mean_ns),
        stalls: add(all.iter().map(|it| it.stalls)),
        stalled_ratio: by_clients(|it| it.stalled_ratio),
    })
}

/// Pools times of several sources: the figures of each, and their distribution. Times that a distribution lacks are as long as the longest.
fn times(of: impl Iterator<Item = (DelayFigures, Distribution)>) -> DelayFigures {
    let sources: Vec<_> = of.filter(|(figures, _)| figures.samples > 0).collect();
    if let [(figures, _)] = sources.as_slice() {
        return *figures;
    }
    let (mut moments, mut all) = (Moments::default(), Distribution::default());
    for (figures, distribution) in &sources {
        moments = moments.merged(&Moments {
            samples: figures.samples,
            sum_ns: 0,
            min_ns: figures.min_ns,
            max_ns: figures.max_ns,
        });
        let mut missing = Distribution::default();
        let lacks = figures.samples.saturating_sub(distribution.total());
        missing.push(figures.max_ns, lacks);
        all = all.merged(distribution).merged(&missing);
    }
    let means = sources.iter().map(|(of, _)| (of.samples, of.mean_ns));
    DelayFigures {
        mean_ns: mean(means).unwrap_or(0.0),
        ..moments.figures(&all)
    }
}

fn add(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Mean of values weighted by numbers of samples; `None` without any.
fn mean(values: impl Iterator<Item = (u64, f64)>) -> Option<f64> {
    let (samples, sum) = values.fold((0.0, 0.0), |(samples, sum), (weight, value)| {
        let weight = weight as f64;
        (samples + weight, sum + weight * value)
    });
    (samples > 0.0).then(|| sum / samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_delays::FlowDelays;
    use crate::record::CdfPoint;
    use proptest::prelude::*;

    fn histogram(times: &[u64]) -> (DelayFigures, Vec<CdfPoint>) {
        let mut all = FlowDelays::default();
        times.iter().for_each(|time| all.record(*time));
        let largest = times.iter().max().copied().unwrap_or(0);
        let points = all.distribution().cdf(usize::MAX, largest);
        (all.figures(), points)
    }

    /// Flows that took these times, and flows in progress since.
    fn flows(completed: &[u64], in_progress: &[u64]) -> ApplicationRecord {
        let (completion_time, times) = histogram(completed);
        let (_, unfinished_times) = histogram(in_progress);
        ApplicationRecord {
            flows: Some(FlowFigures {
                completed: completion_time.samples,
                completion_time,
                time_of_begun: histogram(&[completed, in_progress].concat()).0,
                rate_mean_bits_per_second: None,
            }),
            times,
            unfinished_times,
            ..ApplicationRecord::default()
        }
    }

    fn pooled(sources: &[ApplicationRecord]) -> FlowFigures {
        let sources: Vec<_> = sources.iter().collect();
        let all = ApplicationRecord::pooled(&sources).unwrap();
        all.flows.unwrap()
    }

    /// The smallest time that is not below that share of all.
    fn exact(times: &[u64], percent: usize) -> u64 {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[(times.len() * percent).div_ceil(100) - 1]
    }

    #[test]
    fn the_median_of_two_sources_is_that_of_their_flows_and_not_the_larger_median() {
        // 285 short flows and 122 long ones.
        let short: Vec<u64> = (1..=285).map(|n| n * 3_000_000).collect();
        let long: Vec<u64> = (1..=122).map(|n| n * 16_000_000).collect();
        let of = pooled(&[flows(&short, &[]), flows(&long, &[])]);
        let both = [short, long].concat();
        assert_eq!((of.completed, of.completion_time.samples), (407, 407));
        let (median, truth) = (of.completion_time.p50_ns as f64, exact(&both, 50) as f64);
        assert!(
            (1.0..=1.0 + 1.0 / 128.0).contains(&(median / truth)),
            "{median}"
        );
        assert_eq!(of.completion_time.max_ns, 1_952_000_000);
        let mean = both.iter().sum::<u64>() as f64 / 407.0;
        assert!((of.completion_time.mean_ns / mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn flows_in_progress_of_every_source_have_taken_the_time_until_the_end() {
        let later = [[20; 84].as_slice(), &[3_000]].concat();
        let of = pooled(&[flows(&[10; 90], &[4_000; 10]), flows(&later, &[9; 15])]);
        assert_eq!(of.time_of_begun.samples, 200);
        assert_eq!(
            (of.time_of_begun.p90_ns, of.completion_time.p95_ns),
            (20, 20)
        );
        assert!((4_000..4_032).contains(&of.time_of_begun.p99_ns));
        // Where it is not recorded for how long: as long as the longest.
        let mut unknown = flows(&[10; 90], &[4_000, 5_000]);
        unknown.unfinished_times.clear();
        let of = pooled(&[unknown, flows(&[20; 8], &[])]);
        assert_eq!(
            (of.time_of_begun.p95_ns, of.time_of_begun.p99_ns),
            (20, 5_000)
        );
    }

    #[test]
    fn percentiles_stay_exact_where_one_source_has_samples() {
        let one = flows(&[1_000_001, 1_000_003], &[]);
        let (figures, of) = (one.flows.unwrap(), pooled(&[one, flows(&[], &[])]));
        assert_eq!(of.completion_time, figures.completion_time);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pooled_percentiles_are_at_most_a_bin_above_those_of_all_times(
            sources in prop::collection::vec(prop::collection::vec(1u64..1 << 40, 1..200), 2..5),
        ) {
            let records: Vec<_> = sources.iter().map(|times| flows(times, &[])).collect();
            let (of, all) = (pooled(&records).completion_time, sources.concat());
            for (got, percent) in [(of.p50_ns, 50), (of.p90_ns, 90), (of.p99_ns, 99)] {
                let truth = exact(&all, percent);
                prop_assert!(got >= truth && got as f64 <= truth as f64 * (1.0 + 1.0 / 128.0));
            }
        }
    }

    #[test]
    fn the_fairness_of_sources_together_is_that_of_their_connections() {
        let source = |connections, goodput_bits_per_second, fairness| ApplicationRecord {
            transport: TransportFigures {
                connections,
                goodput_bits_per_second,
                fairness,
                ..TransportFigures::default()
            },
            ..ApplicationRecord::default()
        };
        let of = |sources: &[ApplicationRecord]| {
            let sources: Vec<_> = sources.iter().collect();
            ApplicationRecord::pooled(&sources)
                .unwrap()
                .transport
                .fairness
        };
        // Connections of 3 and 1, and one of 2: (3 + 1 + 2)² / (3 (9 + 1 + 4)).
        let two = source(2, 4.0, Some(16.0 / 20.0));
        assert_eq!(of(std::slice::from_ref(&two)), Some(0.8));
        let all = of(&[two, source(1, 2.0, None)]).unwrap();
        assert!((all - 36.0 / 42.0).abs() < 1e-12, "{all}");
        // Two that get nothing beside two that share 4, and two of which it is not known.
        let starved = of(&[source(2, 4.0, Some(1.0)), source(2, 0.0, None)]);
        assert_eq!(starved, Some(0.5));
        assert_eq!(of(&[source(2, 4.0, Some(1.0)), source(2, 4.0, None)]), None);
        assert_eq!(of(&[source(1, 2.0, None)]), None);
        assert_eq!(of(&[source(1, 0.0, None), source(1, 0.0, None)]), None);
    }
}
