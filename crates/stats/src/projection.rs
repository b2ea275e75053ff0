//! Projection of one long run to the time after it, if its load is stationary: an upper bound of a share of packets,
//! from blocks of the run.
//!
//! Packets follow each other too closely to be a sample, and blocks of enough seconds are one: they are doubled until neighbours do not
//! correlate (batch means; A. M. Law, *Simulation Modeling and Analysis*). Excesses that are seen in a few blocks only say little of how
//! often they come, so that nothing is projected from them.

use crate::pooled::upper_share;
use serde::{Deserialize, Serialize};

/// Most blocks: longer ones depend less on each other.
const MOST_BLOCKS: usize = 60;
/// Fewest blocks, and fewest of them with an excess where there is any.
const FEWEST_BLOCKS: usize = 10;
/// Neighbouring blocks correlate by less.
const MOST_CORRELATION: f64 = 0.1;
const FIRST_BLOCK_NS: u64 = 1_000_000_000;

/// An upper bound of the share of packets beyond a limit, from one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// Length of a block, ns.
    pub block_ns: u64,
    /// Blocks.
    pub blocks: u32,
    /// Upper bound of the share beyond the limit; `None` where too few blocks contain an excess.
    pub upper: Option<f64>,
}

impl Projection {
    /// From the packets beyond the limit and all packets of each bin. `None` where the run is too short for blocks that do not depend on
    /// each other.
    #[must_use]
    pub fn of(bins: &[(u64, u64)], bin_ns: u64, confidence: f64) -> Option<Self> {
        let bin_ns = bin_ns.max(1);
        let mut length = usize::try_from(FIRST_BLOCK_NS.div_ceil(bin_ns)).ok()?;
        loop {
            let blocks: Vec<(u64, u64)> = bins.chunks_exact(length).map(total).collect();
            if blocks.len() < FEWEST_BLOCKS {
                return None;
            }
            if blocks.len() <= MOST_BLOCKS && correlation(&blocks) < MOST_CORRELATION {
                let with_excess = blocks.iter().filter(|block| block.0 > 0).count();
                let is_enough = with_excess == 0 || with_excess >= FEWEST_BLOCKS;
                return Some(Self {
                    block_ns: (length as u64).saturating_mul(bin_ns),
                    blocks: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
                    upper: (is_enough)
                        .then(|| upper_share(&blocks, 1.0 - confidence))
                        .flatten(),
                });
            }
            length = length.checked_mul(2)?;
        }
    }
}

fn total(bins: &[(u64, u64)]) -> (u64, u64) {
    let sum = |of: fn(&(u64, u64)) -> u64| bins.iter().map(of).fold(0, u64::saturating_add);
    (sum(|bin| bin.0), sum(|bin| bin.1))
}

/// Correlation of neighbouring blocks' packets beyond the limit; 0 where they do not vary.
fn correlation(blocks: &[(u64, u64)]) -> f64 {
    let values: Vec<f64> = blocks.iter().map(|block| block.0 as f64).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products = values
        .windows(2)
        .map(|two| (two[0] - mean) * (two[1] - mean));
    if squares > 0.0 {
        products.sum::<f64>() / squares
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Bins of 100 ms with 1,000 packets each.
    fn project(beyond: &[u64]) -> Option<Projection> {
        let bins: Vec<_> = beyond.iter().map(|&beyond| (beyond, 1_000)).collect();
        Projection::of(&bins, SECOND / 10, 0.95)
    }

    #[test]
    fn a_run_without_an_excess_is_bounded_by_its_packets() {
        let projection = project(&[0; 3_000]).unwrap();
        // 300 s in blocks of 8 s: 37 of them.
        assert_eq!((projection.block_ns, projection.blocks), (8 * SECOND, 37));
        // ln 20 of the 2,960,000 packets in them.
        assert!((projection.upper.unwrap() / 1.012e-6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn excesses_apart_are_projected_and_those_of_a_few_blocks_are_not() {
        let apart: Vec<u64> = (0..600).map(|bin| u64::from(bin % 20 == 3)).collect();
        let projection = project(&apart).unwrap();
        let share = 30.0 / 600_000.0;
        let upper = projection.upper.unwrap();
        assert!((share..1.6 * share).contains(&upper), "{upper}");
        let mut together = vec![0; 600];
        together[100..110].fill(1);
        assert_eq!(project(&together).unwrap().upper, None);
    }

    #[test]
    fn blocks_are_doubled_until_neighbours_do_not_depend_on_each_other() {
        // Four seconds with one in each bin, four seconds without.
        let slow: Vec<u64> = (0..600).map(|bin| u64::from(bin % 80 < 40)).collect();
        assert_eq!(project(&slow).unwrap().block_ns, 2 * SECOND);
    }

    #[test]
    fn a_run_of_less_than_ten_blocks_projects_nothing() {
        assert_eq!(project(&[0; 99]), None);
        assert!(project(&[0; 100]).is_some());
        // It rises all the time: no blocks are independent.
        let rising: Vec<u64> = (0..600).collect();
        assert_eq!(project(&rising), None);
        assert_eq!(Projection::of(&[(0, 1); 9], u64::MAX, 0.95), None);
    }
}
