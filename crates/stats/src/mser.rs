//! The initial transient of a run: MSER-5, made safe for periodic load.
//!
//! MSER-5 (K. P. White, "An effective truncation heuristic for bias reduction in simulation
//! output", Simulation 69(6), 1997) cuts a series of means of five observations where the
//! *marginal standard error* of what remains is smallest. W. W. Franklin and K. P. White
//! ("Stationarity tests and MSER-5", Winter Simulation Conference 2008) and K. Hoad, S. Robinson
//! and R. Davies ("Automating warm-up length estimation", J. Oper. Res. Soc. 61, 2010) add: a
//! minimum in the second half means that the run is too short, and the last few batches are excluded,
//! because their scatter is small by chance.
//!
//! The rule assumes a series without a period. Under on/off load it would cut at a phase of the
//! cycle, so the series is first adjusted as seasonal series are: the mean course of one cycle,
//! taken from the second half of the run (the part that has to be settled for the rule to work at
//! all), is subtracted. What remains is where the run still differs from its settled cycle. (A
//! moving average over a cycle would remove the period too, but makes neighbours alike, and the
//! rule then finds quiet stretches where there are none.) And a cut must be significant: see the
//! constants below.

use crate::estimate::{self, Sample};
use crate::record::Transient;
use slicewise_units::Duration;

/// The MSER statistic of every truncation of `batch_means`: element `d` is the squared standard
/// error, as MSER defines it, of what remains after the first `d` are left out.
#[must_use]
pub fn mser_statistics(batch_means: &[f64]) -> Vec<f64> {
    let mut statistics = vec![0.0; batch_means.len()];
    // From the end, so that each truncation adds one element (Welford's recurrence).
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (statistic, &value) in statistics.iter_mut().zip(batch_means).rev() {
        count += 1.0;
        let difference = value - mean;
        mean += difference / count;
        squares += difference * (value - mean);
        *statistic = squares / (count * count);
    }
    statistics
}

/// Find the transient in the bytes received in each bin, of all slices together.
///
/// `cycle` is the longest cycle of the load, zero where it is constant. A run that is too short (less
/// than [`MIN_CYCLES`] cycles or [`MIN_BATCHES`] batches) shows no steady state.
#[must_use]
pub fn find_transient(received_bytes: &[u64], bin: Duration, cycle: Duration) -> Transient {
    let series = LoadSeries {
        bytes: received_bytes,
        cycle_bins: cycle_bins(bin, cycle),
        bin_ns: bin.nanos().max(1),
    };
    match series.truncation() {
        Truncation::None => series.without_transient(true),
        Truncation::NotReached => series.without_transient(false),
        Truncation::At(bins) => Transient {
            end_ns: bins as u64 * series.bin_ns,
            steady_state_reached: true,
            throughput_before_bits_per_second: series.throughput(&series.cycle_means_until(bins)),
            throughput_after_bits_per_second: series.throughput(&series.cycle_means_from(bins)),
        },
    }
}

/// Returns true if a run of so many bins is long enough to tell a steady state.
#[must_use]
pub fn is_long_enough(bins: usize, bin: Duration, cycle: Duration) -> bool {
    has_enough(bins, cycle_bins(bin, cycle))
}

fn has_enough(bins: usize, cycle_bins: usize) -> bool {
    bins / BATCH_BINS >= MIN_BATCHES && bins / period(cycle_bins) >= MIN_CYCLES
}

/// Bins over which a mean does not depend on the phase of the load.
const fn period(cycle_bins: usize) -> usize {
    if cycle_bins == 0 {
        BATCH_BINS
    } else {
        cycle_bins
    }
}

fn cycle_bins(bin: Duration, cycle: Duration) -> usize {
    let bin_ns = bin.nanos().max(1);
    usize::try_from((cycle.nanos() + bin_ns / 2) / bin_ns).unwrap_or(usize::MAX)
}

enum Truncation {
    None,
    NotReached,
    /// Bins to leave out.
    At(usize),
}

struct LoadSeries<'a> {
    bytes: &'a [u64],
    /// 0 where the load is constant.
    cycle_bins: usize,
    bin_ns: u64,
}

impl LoadSeries<'_> {
    fn truncation(&self) -> Truncation {
        let bins = self.bytes.len();
        if !has_enough(bins, self.cycle_bins) {
            return Truncation::NotReached;
        }
        let batches: Vec<f64> = self.adjusted().chunks_exact(BATCH_BINS).map(mean).collect();
        let statistics = mser_statistics(&batches);
        let tail = TAIL_BATCHES
            .max(self.cycle_bins.div_ceil(BATCH_BINS))
            .min(batches.len() - 1);
        let half = batches.len() / 2;
        let late_end = (statistics.len() - tail).max(half + 1);
        let (early, late) = (&statistics[..=half], &statistics[half..late_end]);
        let (_, least) = smallest(early);
        let (later_cut, later_least) = smallest(late);
        // The first cut that is nearly as good as the best: a later one may be slightly better by
        // chance.
        let good_enough = SAME_STATISTIC * least + f64::EPSILON * statistics[0];
        let cut = early.iter().position(|s| *s <= good_enough).unwrap_or(0);
        let cut_bins = cut * BATCH_BINS;
        let later_bins = (half + later_cut) * BATCH_BINS;
        // What follows the later cut may be too short to have a scatter; the second half is not.
        let unsettled = later_least <= MAX_REMAINING_STATISTIC * least
            && [later_bins, half * BATCH_BINS].into_iter().any(|split| {
                let before = self.cycle_means(cut_bins, split);
                level_changes(&before, &self.cycle_means_from(split), UNSETTLED_CONFIDENCE)
            });
        if unsettled {
            return Truncation::NotReached;
        }
        // A cut within the first cycle excludes all of it, so that the phase of the load does not
        // decide.
        let cut_bins = if cut > 0 {
            cut_bins.max(period(self.cycle_bins))
        } else {
            0
        };
        let is_transient = cut > 0
            && statistics[cut] <= MAX_REMAINING_STATISTIC * statistics[0]
            && level_changes(
                &self.cycle_means_until(cut_bins),
                &self.cycle_means_from(cut_bins),
                CUT_CONFIDENCE,
            );
        if is_transient {
            Truncation::At(cut_bins)
        } else {
            Truncation::None
        }
    }

    /// The series less the mean course of one cycle of the second half; as it is under constant
    /// load.
    fn adjusted(&self) -> Vec<f64> {
        let bins = self.bytes.len();
        let mut course = vec![0u128; self.cycle_bins.min(bins)];
        let cycles = (bins / 2).checked_div(course.len()).unwrap_or(0);
        // Counted from the end: the phase of a bin is its distance from there.
        for cycle in self.bytes.rchunks_exact(course.len().max(1)).take(cycles) {
            for (sum, &bytes) in course.iter_mut().zip(cycle.iter().rev()) {
                *sum += u128::from(bytes);
            }
        }
        let settled = |distance_from_end: usize| match course.get(distance_from_end) {
            Some(&sum) if cycles > 0 => sum as f64 / cycles as f64,
            _ => 0.0,
        };
        let phase = |bin: usize| (bins - 1 - bin).checked_rem(course.len()).unwrap_or(0);
        let bytes = self.bytes.iter().enumerate();
        bytes
            .map(|(bin, &bytes)| bytes as f64 - settled(phase(bin)))
            .collect()
    }

    /// Mean bytes per bin of each whole period before `bin`, counted back from it.
    fn cycle_means_until(&self, bin: usize) -> Vec<f64> {
        self.cycle_means(0, bin)
    }

    /// The same between two bins.
    fn cycle_means(&self, from: usize, to: usize) -> Vec<f64> {
        self.bytes[from..to]
            .rchunks_exact(period(self.cycle_bins))
            .map(mean_bytes)
            .collect()
    }

    /// The same from `bin` on.
    fn cycle_means_from(&self, bin: usize) -> Vec<f64> {
        self.bytes[bin..]
            .chunks_exact(period(self.cycle_bins))
            .map(mean_bytes)
            .collect()
    }

    fn throughput(&self, bytes_a_bin: &[f64]) -> f64 {
        mean(bytes_a_bin) * 8e9 / self.bin_ns as f64
    }

    fn without_transient(&self, steady_state_reached: bool) -> Transient {
        let mean_bytes = if self.bytes.is_empty() {
            0.0
        } else {
            mean_bytes(self.bytes)
        };
        Transient {
            steady_state_reached,
            throughput_after_bits_per_second: mean_bytes * 8e9 / self.bin_ns as f64,
            ..Transient::default()
        }
    }
}

/// True where the level before the cut differs from the level after it by more than
/// [`MIN_LEVEL_CHANGE`], and by more than the scatter of the settled part explains. (The part before a
/// cut is not stationary: its own scatter means nothing.)
fn level_changes(before: &[f64], after: &[f64], confidence: f64) -> bool {
    let (Some(first), Some(settled)) = (Sample::of(before), Sample::of(after)) else {
        return false;
    };
    let Some(variance) = settled.variance else {
        return false;
    };
    let change = (first.mean - settled.mean).abs();
    let counts = 1.0 / f64::from(first.count) + 1.0 / f64::from(settled.count);
    let error = (variance * counts).sqrt();
    let quantile = estimate::t_quantile(confidence, f64::from(settled.count - 1));
    change > MIN_LEVEL_CHANGE * settled.mean && change > quantile * error
}

/// The first smallest value and where it is; a never empty slice is expected.
fn smallest(statistics: &[f64]) -> (usize, f64) {
    let mut found = (0, f64::INFINITY);
    for (index, &statistic) in statistics.iter().enumerate() {
        if statistic < found.1 {
            found = (index, statistic);
        }
    }
    found
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn mean_bytes(bytes: &[u64]) -> f64 {
    bytes.iter().copied().map(u128::from).sum::<u128>() as f64 / bytes.len().max(1) as f64
}

/// Bins of a batch mean: the 5 of MSER-5.
pub const BATCH_BINS: usize = 5;
/// A series of fewer batches cannot be judged.
pub const MIN_BATCHES: usize = 10;
/// A run of fewer cycles cannot be judged: two in each half.
pub const MIN_CYCLES: usize = 4;
/// Batches at the end at which no cut is looked for (or one cycle, where that is longer).
const TAIL_BATCHES: usize = 5;
/// A cut whose statistic is within this factor of the smallest is as good: past the transient
/// the statistic is nearly flat, and the exact position of its minimum is random.
const SAME_STATISTIC: f64 = 1.5;
/// A cut must at least halve the MSER statistic; cutting pure noise rarely does. So must a cut in
/// the second half, compared with the best in the first, to show that a run is too short.
const MAX_REMAINING_STATISTIC: f64 = 0.5;
/// Relative change of the mean throughput, over whole cycles, below which nothing is worth
/// cutting: that of the default margin of throughput.
const MIN_LEVEL_CHANGE: f64 = 0.01;
/// One-sided confidence that the change of level is not noise. High, because the cut was chosen
/// to make the change large.
const CUT_CONFIDENCE: f64 = 0.999;
/// The same for a run that has not settled: a trend adds to the scatter of what it is compared with.
const UNSETTLED_CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const BIN: Duration = Duration::from_millis(50);
    const CYCLE: Duration = Duration::from_secs(2);
    const BINS: usize = 800;
    const SECOND: usize = 20;

    /// Noise makes the rule cut a little more than necessary (White 1997 finds the same).
    const OVERSHOOT: f64 = 2.0;

    /// 35 Mbit/s in 50 ms.
    const LEVEL: u64 = 218_750;

    fn on_off(bin: usize) -> u64 {
        if (bin / SECOND).is_multiple_of(2) {
            30_000
        } else {
            0
        }
    }

    fn series(value: impl Fn(usize) -> u64) -> Vec<u64> {
        (0..BINS).map(value).collect()
    }

    /// Noise of ± one frame, as counting whole frames gives, or more.
    fn with_noise(mut series: Vec<u64>, amplitude: u64, seed: u64) -> Vec<u64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for value in &mut series {
            *value = *value + random.next_u64() % (2 * amplitude + 1) - amplitude;
        }
        series
    }

    fn assert_no_transient(found: Transient) {
        assert_eq!(
            (found.end_ns, found.steady_state_reached),
            (0, true),
            "{found:?}"
        );
    }

    fn seconds(found: Transient) -> f64 {
        found.end_ns as f64 / 1e9
    }

    #[test]
    fn the_statistic_is_the_variance_of_the_rest_over_its_count() {
        // Rest {2, 4}: Σ(z − 3)² = 2, over 2² = 0.5. Rest {4}: 0. All: Σ(z − 5)² = 26 over 9.
        let statistics = mser_statistics(&[9.0, 2.0, 4.0]);
        for (statistic, expected) in statistics.iter().zip([26.0 / 9.0, 0.5, 0.0]) {
            assert!((statistic - expected).abs() < 1e-12, "{statistics:?}");
        }
    }

    #[test]
    fn a_level_changes_where_it_differs_by_more_than_scatter_and_one_percent() {
        // Variance 2/3, t(0.95, 3) = 2.353 363: 2.148 from one value √(2/3 · (1 + 1/4)), 1.664
        // from the mean of two √(2/3 · (1/2 + 1/4)).
        let settled = [99.0, 101.0, 100.0, 100.0];
        for (before, changes) in [
            (&[102.14][..], false),
            (&[102.16], true),
            (&[97.86], false),
            (&[97.84], true),
            (&[90.0, 113.32], false),
            (&[90.0, 113.34], true),
            (&[], false),
        ] {
            let found = level_changes(before, &settled, 0.95);
            assert_eq!(found, changes, "{before:?}");
        }
        assert!(!level_changes(&[101.0], &[100.0; 4], 0.95));
        assert!(level_changes(&[101.1], &[100.0; 4], 0.95));
        // The scatter of a single value is not known.
        assert!(!level_changes(&[200.0], &[100.0], 0.95));
    }

    #[test]
    fn constant_load_has_no_transient() {
        let found = find_transient(&series(|_| LEVEL), BIN, Duration::ZERO);
        assert_no_transient(found);
        assert!((found.throughput_after_bits_per_second - 35e6).abs() < 1.0);
    }

    #[test]
    fn noise_has_no_transient() {
        for seed in 0..50 {
            for cycle in [Duration::ZERO, CYCLE] {
                for amplitude in [1_500, 30_000] {
                    let noisy = with_noise(series(|_| LEVEL), amplitude, seed);
                    assert_no_transient(find_transient(&noisy, BIN, cycle));
                }
            }
        }
    }

    #[test]
    fn on_off_load_has_no_transient_at_any_phase() {
        for phase in 0..2 * SECOND {
            let periodic = series(|bin| LEVEL + on_off(bin + phase));
            assert_no_transient(find_transient(&periodic, BIN, CYCLE));
            let noisy = with_noise(periodic, 1_500, phase as u64);
            assert_no_transient(find_transient(&noisy, BIN, CYCLE));
        }
    }

    #[test]
    fn eight_seconds_of_excess_are_cut() {
        let excess = series(|bin| {
            if bin < 8 * SECOND {
                LEVEL + LEVEL / 10
            } else {
                LEVEL
            }
        });
        for cycle in [Duration::ZERO, CYCLE] {
            let found = find_transient(&excess, BIN, cycle);
            assert_eq!(
                (found.end_ns, found.steady_state_reached),
                (8_000_000_000, true)
            );
            assert!((found.throughput_before_bits_per_second - 38.5e6).abs() < 1.0);
            assert!((found.throughput_after_bits_per_second - 35e6).abs() < 1.0);
        }
    }

    #[test]
    fn eight_seconds_of_excess_under_on_off_load_are_cut_at_any_phase() {
        for phase in 0..2 * SECOND {
            // Settled, the on phase is served at the level only.
            let excess = series(|bin| {
                let peak = if bin < 8 * SECOND {
                    on_off(bin + phase)
                } else {
                    0
                };
                LEVEL - 10_000 + peak
            });
            let found = find_transient(&with_noise(excess, 1_500, phase as u64), BIN, CYCLE);
            assert!(found.steady_state_reached);
            // It ends with the last on phase before 8 s.
            let last = (0..8 * SECOND)
                .rev()
                .find(|&bin| on_off(bin + phase) > 0)
                .unwrap()
                + 1;
            let expected = last as f64 / SECOND as f64;
            let error = seconds(found) - expected;
            assert!(
                (-0.25..=OVERSHOOT).contains(&error),
                "phase {phase}: {found:?}"
            );
        }
    }

    #[test]
    fn excess_with_on_off_load_that_stays_is_cut_at_any_phase() {
        for phase in 0..2 * SECOND {
            let excess = series(|bin| {
                LEVEL + on_off(bin + phase) + if bin < 8 * SECOND { 20_000 } else { 0 }
            });
            let found = find_transient(&with_noise(excess, 1_500, phase as u64), BIN, CYCLE);
            assert!(
                (8.0..=8.0 + OVERSHOOT).contains(&seconds(found)),
                "phase {phase}: {found:?}"
            );
            let before = found.throughput_before_bits_per_second;
            let after = found.throughput_after_bits_per_second;
            // 3.2 Mbit/s, less what a cut that is too late mixes in.
            assert!((2.4e6..3.3e6).contains(&(before - after)), "{found:?}");
        }
    }

    #[test]
    fn a_trend_reaches_no_steady_state() {
        for cycle in [Duration::ZERO, CYCLE] {
            let trend = with_noise(series(|bin| LEVEL + 200 * bin as u64), 1_500, 3);
            let found = find_transient(&trend, BIN, cycle);
            assert_eq!((found.end_ns, found.steady_state_reached), (0, false));
        }
    }

    #[test]
    fn excess_for_more_than_half_of_the_run_reaches_no_steady_state() {
        let late = series(|bin| {
            if bin < 25 * SECOND {
                LEVEL + 20_000
            } else {
                LEVEL
            }
        });
        let found = find_transient(&late, BIN, Duration::ZERO);
        assert_eq!((found.end_ns, found.steady_state_reached), (0, false));
    }

    #[test]
    fn a_run_too_short_has_not_shown_a_steady_state() {
        for (bins, cycle) in [
            (0, Duration::ZERO),
            (20, Duration::ZERO),
            (100, CYCLE),
            (9, CYCLE),
        ] {
            assert!(!find_transient(&vec![LEVEL; bins], BIN, cycle).steady_state_reached);
        }
    }

    #[test]
    fn ten_batches_and_four_cycles_are_enough_to_judge() {
        for (bins, cycle, is_enough) in [
            (50, Duration::ZERO, true),
            (49, Duration::ZERO, false),
            (160, CYCLE, true),
            (159, CYCLE, false),
        ] {
            let found = find_transient(&vec![LEVEL; bins], BIN, cycle);
            assert_eq!(found.steady_state_reached, is_enough, "{bins} bins");
        }
    }

    #[test]
    fn a_level_that_rises_with_each_cycle_of_the_second_half_is_not_steady() {
        let cycle = 100;
        let rising = series(|bin| {
            let rises = (bin / cycle).saturating_sub(3).min(4) as u64;
            let first_rise = u64::from(rises > 0);
            LEVEL + LEVEL * (first_rise + rises) / 10
        });
        let found = find_transient(&rising, BIN, BIN * cycle as u64);
        assert_eq!((found.end_ns, found.steady_state_reached), (0, false));
    }
}
