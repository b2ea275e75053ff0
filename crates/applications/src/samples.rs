//! Figures of times that were kept one by one.

use slicewise_stats::distribution::{Distribution, Moments};
use slicewise_stats::record::DelayFigures;

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
    fn without_samples_there_are_zeros() {
        assert_eq!(figures(Vec::new()), DelayFigures::default());
    }
}
