//! Histories of connections → the figures of a record.

use super::sampling::History;
use slicewise_live::sys::diag::TcpFigures;
use slicewise_stats::application::{ApplicationSeries, TransportFigures};
use std::ops::Range;

/// Figures of connections over some bins of a run.
///
/// Round-trip times and windows are means over what was seen at the ends of bins, where the kernel's round-trip time is
/// smoothed (RFC 6298). Recoveries without a time-out are not known, and 0.
pub(crate) fn transport(
    histories: &[&History],
    bins: &Range<usize>,
    bin_ns: u64,
) -> TransportFigures {
    let mut total = TransportFigures {
        span_ns: bin_ns.saturating_mul(u64::try_from(bins.len()).unwrap_or(u64::MAX)),
        ..TransportFigures::default()
    };
    let seconds = total.span_ns as f64 / 1e9;
    let (mut bytes, mut rtt_sum, mut window_sum) = (0, 0.0, 0.0);
    for history in histories {
        let Some(change) = Change::over(history, bins) else {
            continue;
        };
        total.connections += 1;
        bytes += change.bytes;
        total.segments += change.segments;
        total.retransmitted_segments += change.retransmitted;
        total.timeouts += change.timeouts;
        for (_, sample) in seen_in(history, bins) {
            let rtt_ns = u64::from(sample.rtt_us) * 1_000;
            if rtt_ns == 0 {
                continue;
            }
            total.rtt_samples += 1;
            total.window_samples += 1;
            rtt_sum += rtt_ns as f64;
            window_sum += window_bytes(sample) as f64;
            total.rtt_max_ns = total.rtt_max_ns.max(rtt_ns);
            if total.rtt_min_ns == 0 || rtt_ns < total.rtt_min_ns {
                total.rtt_min_ns = rtt_ns;
            }
        }
    }
    let samples = total.rtt_samples.max(1) as f64;
    total.rtt_mean_ns = rtt_sum / samples;
    total.window_mean_bytes = window_sum / samples;
    total.goodput_bits_per_second = if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    };
    total.fairness = fairness(&shares(histories, bins));
    total
}

/// Returns the bytes that each connection got while all of them were open.
fn shares(histories: &[&History], bins: &Range<usize>) -> Vec<f64> {
    let open = histories
        .iter()
        .filter(|of| Change::over(of, bins).is_some());
    let ends = |of: &&&History| Some((of.samples.first()?.0, of.samples.last()?.0 + 1));
    let all = open.clone().filter_map(|of| ends(&of));
    let all = all.fold(bins.clone(), |all, (first, end)| {
        all.start.max(first)..all.end.min(end)
    });
    let got = open.filter_map(|of| Some(Change::over(of, &all)?.bytes as f64));
    got.collect()
}

/// Jain's index; `None` for fewer than two, or where none got anything.
fn fairness(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Figures bin by bin, of a run of so many bins.
pub(crate) fn series(histories: &[&History], bins: usize) -> ApplicationSeries {
    let mut series = ApplicationSeries {
        goodput_bytes: vec![0; bins],
        retransmitted_segments: vec![0; bins],
        rtt_mean_ns: vec![None; bins],
        first_window_bytes: vec![None; bins],
        first_rtt_ns: vec![None; bins],
    };
    let mut rtts: Vec<(u64, u64)> = vec![(0, 0); bins];
    for (place, history) in histories.iter().enumerate() {
        let mut before = TcpFigures::default();
        for &(bin, sample) in &history.samples {
            let Some(rtt) = rtts.get_mut(bin) else {
                break;
            };
            let bytes = sample
                .acknowledged_bytes
                .saturating_sub(before.acknowledged_bytes);
            add(&mut series.goodput_bytes, bin, bytes);
            let again = sample.retransmitted_segments;
            let again = again.saturating_sub(before.retransmitted_segments);
            add(&mut series.retransmitted_segments, bin, again);
            before = sample;
            let rtt_ns = u64::from(sample.rtt_us) * 1_000;
            if rtt_ns == 0 {
                continue;
            }
            *rtt = (rtt.0 + rtt_ns, rtt.1 + 1);
            if place == 0 {
                set(&mut series.first_window_bytes, bin, window_bytes(sample));
                set(&mut series.first_rtt_ns, bin, rtt_ns);
            }
        }
    }
    for (mean, (sum, count)) in series.rtt_mean_ns.iter_mut().zip(rtts) {
        *mean = sum.checked_div(count);
    }
    series
}

fn add<T: std::ops::AddAssign>(series: &mut [T], bin: usize, amount: T) {
    if let Some(value) = series.get_mut(bin) {
        *value += amount;
    }
}

fn set(series: &mut [Option<u64>], bin: usize, to: u64) {
    if let Some(value) = series.get_mut(bin) {
        *value = Some(to);
    }
}

fn window_bytes(sample: TcpFigures) -> u64 {
    u64::from(sample.window_segments) * u64::from(sample.segment_bytes)
}

fn seen_in(history: &History, bins: &Range<usize>) -> impl Iterator<Item = (usize, TcpFigures)> {
    let samples = history.samples.iter().copied();
    samples.filter(|(bin, _)| bins.contains(bin))
}

/// Counters of a connection over some bins.
struct Change {
    bytes: u64,
    segments: u64,
    retransmitted: u64,
    timeouts: u64,
}

impl Change {
    /// `None` where it was not open in them.
    fn over(history: &History, bins: &Range<usize>) -> Option<Self> {
        let (_, last) = seen_in(history, bins).last()?;
        // The kernel may make a socket of a handshake twice, and end one of the two at once.
        if history.has_ended && last.data_segments == 0 {
            return None;
        }
        let earlier = history
            .samples
            .iter()
            .take_while(|(bin, _)| *bin < bins.start);
        let before = earlier.last().map(|(_, figures)| *figures);
        let then = before.unwrap_or_default();
        let more = |now: u32, then: u32| u64::from(now.saturating_sub(then));
        Some(Self {
            bytes: last
                .acknowledged_bytes
                .saturating_sub(then.acknowledged_bytes),
            segments: more(last.data_segments, then.data_segments),
            retransmitted: more(last.retransmitted_segments, then.retransmitted_segments),
            timeouts: u64::from(last.timeouts.saturating_sub(then.timeouts)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn figures(acknowledged_bytes: u64, data_segments: u32, rtt_us: u32) -> TcpFigures {
        TcpFigures {
            acknowledged_bytes,
            data_segments,
            rtt_us,
            retransmitted_segments: data_segments / 10,
            window_segments: 10,
            segment_bytes: 1_000,
            ..TcpFigures::default()
        }
    }

    fn history(samples: Vec<(usize, TcpFigures)>) -> History {
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        History {
            local: end,
            remote: end,
            samples,
            has_ended: false,
        }
    }

    fn of<T>(work: impl FnOnce(&[&History]) -> T) -> T {
        let two = two();
        work(&two.each_ref())
    }

    fn two() -> [History; 2] {
        [
            history(
                (0..10)
                    .map(|bin| (bin, figures(1_000 * bin as u64, 10, 5_000)))
                    .collect(),
            ),
            history(vec![
                (4, figures(500, 20, 0)),
                (5, figures(2_500, 40, 7_000)),
            ]),
        ]
    }

    #[test]
    fn a_span_counts_what_happened_in_it() {
        let all = of(|two| transport(two, &(5..10), 100_000_000));
        // 4000 B to 9000 B; 500 B to 2500 B: in half a second.
        assert!((all.goodput_bits_per_second - 7_000.0 * 16.0).abs() < 1e-6);
        assert_eq!((all.span_ns, all.connections), (500_000_000, 2));
        assert_eq!((all.segments, all.retransmitted_segments), (20, 2));
        assert_eq!(
            (all.rtt_samples, all.rtt_min_ns, all.rtt_max_ns),
            (6, 5_000_000, 7_000_000)
        );
        assert!((all.rtt_mean_ns - 32e6 / 6.0).abs() < 1e-3);
        assert!((all.window_mean_bytes - 10_000.0).abs() < 1e-9);
        // 1000 B and 2000 B while both were open, in bin 5.
        assert!((all.fairness.unwrap() - 0.9).abs() < 1e-9);
        let both = of(|two| transport(two, &(4..6), 100_000_000));
        // 2000 B and 2500 B.
        let expected = 4_500.0 * 4_500.0 / (2.0 * (2_000.0 * 2_000.0 + 2_500.0 * 2_500.0));
        assert!((both.fairness.unwrap() - expected).abs() < 1e-9);
        let mut unused = history(vec![(6, figures(1, 0, 100))]);
        unused.has_ended = true;
        let unused = transport(&[&unused], &(5..10), 100_000_000);
        assert_eq!((unused.connections, unused.rtt_samples), (0, 0));
        let none = of(|two| transport(two, &(20..30), 100_000_000));
        assert_eq!((none.connections, none.rtt_samples), (0, 0));
    }

    #[test]
    fn bins_add_up_to_the_whole_and_the_first_connection_is_shown_alone() {
        let series = of(|two| series(two, 10));
        assert_eq!(
            series.goodput_bytes,
            [
                0, 1_000, 1_000, 1_000, 1_500, 3_000, 1_000, 1_000, 1_000, 1_000
            ]
        );
        assert_eq!(
            series.retransmitted_segments,
            [1, 0, 0, 0, 2, 2, 0, 0, 0, 0]
        );
        assert_eq!(series.rtt_mean_ns[4..6], [Some(5_000_000), Some(6_000_000)]);
        assert_eq!(series.first_rtt_ns[5], Some(5_000_000));
        assert_eq!(series.first_window_bytes[9], Some(10_000));
    }

    #[test]
    fn equal_shares_are_fair_and_one_that_takes_all_is_not() {
        assert_eq!(fairness(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(fairness(&[3.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!(fairness(&[3.0]), None);
    }
}
