//! Figures of times that were kept one by one.

use slicewise_stats::distribution::{Distribution, Moments};
use slicewise_stats::flow_delays::FlowDelays;
use slicewise_stats::record::{CdfPoint, DelayFigures};

/// The distribution function of these times in ns: too large by 1/128 at most, so that a wide range takes few points, up to the
/// last time.
pub fn cdf(times: &[u64]) -> Vec<CdfPoint> {
    let mut histogram = FlowDelays::default();
    for &time in times {
        histogram.record(time);
    }
    let largest = times.iter().max().copied().unwrap_or(0);
    histogram.distribution().cdf(usize::MAX, largest)
}

/// The figures of these times in ns, with exact percentiles: the smallest time that is not below that share of all.
pub fn figures(mut times: Vec<u64>) -> DelayFigures {
    times.sort_unstable();
    let mut distribution = Distribution::default();
    let mut moments = Moments::default();
    for time in times {
        distribution.push(time, 1);
        moments.record(time);
    }
    moments.figures(&distribution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let figures = figures((1..=1_000).rev().collect());
        assert_eq!((figures.samples, figures.mean_ns), (1_000, 500.5));
        assert_eq!((figures.min_ns, figures.max_ns), (1, 1_000));
        assert_eq!((figures.p50_ns, figures.p99_ns), (500, 990));
        assert_eq!((figures.p999_ns, figures.p9999_ns), (999, 1_000));
    }

    #[test]
    fn a_distribution_function_counts_every_time_up_to_the_largest() {
        let times: Vec<u64> = (1..=1_000).map(|time| time * 1_000).collect();
        let points = cdf(&times);
        assert_eq!(points.last(), Some(&CdfPoint(1_000_000, 1.0)));
        for CdfPoint(value, share) in points {
            let below = times.iter().filter(|time| **time <= value).count();
            let below = u32::try_from(below).unwrap();
            assert_eq!(share, f64::from(below) / 1_000.0, "up to {value}");
        }
        assert!(cdf(&[]).is_empty());
    }

    #[test]
    fn without_samples_there_are_zeros() {
        assert_eq!(figures(Vec::new()), DelayFigures::default());
    }
}
