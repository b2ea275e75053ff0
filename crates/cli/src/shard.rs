//! Shards: parts of the runs of a study, each carried out by itself, on any machine.

use crate::Failure;
use crate::exit::Exit;
use crate::{noteln, outln};
use slicewise_stats::words::count;
use slicewise_study::{RunSpec, Study};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// 2⁶⁴ divided by the golden ratio: of its multiples, any number in a row are spread evenly over 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// One of several parts of the runs, which are carried out independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    number: u64,
    of: u64,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            None => Err("expected I/N, such as 2/4 for the second of four shards".to_owned()),
            Some((0, _)) => Err("shards are numbered from 1".to_owned()),
            Some((number, of)) if number > of => Err(format!("there is no shard {number} of {of}")),
            Some((number, of)) => Ok(Self { number, of }),
        }
    }
}

impl Shard {
    /// Returns the first of so many shards.
    pub const fn first_of(of: u64) -> Self {
        Self { number: 1, of }
    }

    /// Returns the end of the name of its results folder.
    pub fn suffix(self) -> String {
        format!("-shard-{}-of-{}", self.number, self.of)
    }

    /// Leaves of the runs of each study only those of this shard. Runs with the same inputs, of several cases, are in the
    /// same shard, which simulates them once.
    pub fn select(self, studies: &[Study], runs: &mut [Vec<RunSpec>]) -> Result<(), Failure> {
        let mut places: HashMap<(Option<String>, u32), u64> = HashMap::new();
        for (study, runs) in studies.iter().zip(&mut *runs) {
            let mut digests = HashMap::new();
            runs.retain(|run| {
                let digest = digests
                    .entry((run.policy, run.scenario))
                    .or_insert_with(|| study.inputs(run.policy, run.scenario, run.study_seed));
                let next = places.len() as u64;
                let place = places.entry((digest.clone(), run.repetition));
                self.has(*place.or_insert(next))
            });
        }
        let different = places.len() as u64;
        self.check(different, "different run")
    }

    /// Leaves only the runs of this shard, of runs that all differ. All shards have about as many bytes to read.
    pub fn select_by_bytes<T>(
        self,
        runs: &mut Vec<T>,
        bytes: impl Fn(&T) -> u64,
    ) -> Result<(), Failure> {
        let total = runs.len();
        self.check(total as u64, "run")?;
        let bytes: Vec<u64> = runs.iter().map(bytes).collect();
        let mut shards = shards_by_bytes(self.of, &bytes).into_iter();
        runs.retain(|_| shards.next() == Some(self.number));
        self.note(runs.len(), total);
        Ok(())
    }

    /// Refuses more shards than there are runs, called `noun`.
    fn check(self, runs: u64, noun: &str) -> Result<(), Failure> {
        if self.of <= runs {
            return Ok(());
        }
        Err(Failure::mistake(format!(
            "there {} to be carried out, so of {} shards some would have nothing to do: divide into at most {runs}",
            match runs {
                1 => "is 1 run".to_owned(),
                _ => format!("are {}", count(runs, noun)),
            },
            self.of
        )))
    }

    /// Says how many of the runs are of this shard.
    pub fn note(self, selected: usize, total: usize) {
        noteln!("shard {self}: {selected} of {}", count(total as u64, "run"));
    }

    /// Deals run by run to the shards in turn, beginning each round with another one. Otherwise a shard would get, say,
    /// only runs of the scenario that takes longest wherever numbers of shards and scenarios have a factor in common.
    fn has(self, place: u64) -> bool {
        let round = (place / self.of).wrapping_mul(GOLDEN);
        let first = (u128::from(round) * u128::from(self.of)) >> 64;
        let shard = (u128::from(place) + first) % u128::from(self.of);
        shard + 1 == u128::from(self.number)
    }

    /// Says where the runs are. A part of a study has no report: most verdicts need all of it.
    pub fn conclude(self, folder: &Path, exit: Exit) -> Exit {
        if exit == Exit::Success {
            outln!(
                "Shard {self} is in {}; `slicewise collect DIR SHARD...` puts all shards together and makes the report",
                folder.display()
            );
        }
        exit
    }
}

/// Returns the shard of each run, given their lengths: the longest run first, each to the shard that has least, which takes
/// at most a third longer than the best division (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969).
fn shards_by_bytes(of: u64, bytes: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..bytes.len()).collect();
    order.sort_by_key(|&run| Reverse(bytes[run]));
    let mut loads: BinaryHeap<_> = (1..=of).map(|shard| Reverse((0_u64, shard))).collect();
    let mut shards = vec![0; bytes.len()];
    for run in order {
        let Some(mut least) = loads.peek_mut() else {
            break;
        };
        let Reverse((load, shard)) = &mut *least;
        shards[run] = *shard;
        // An empty run counts, too, so that every shard gets one.
        *load = load.saturating_add(bytes[run]).saturating_add(1);
    }
    shards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_one_shard_and_shards_are_equally_long() {
        for of in 1..=20 {
            let mut dealt: Vec<u64> = Vec::new();
            let lengths = (1..=of).map(|number| {
                let places = (0..100).filter(|&place| Shard { number, of }.has(place));
                let before = dealt.len();
                dealt.extend(places);
                dealt.len() - before
            });
            let lengths: Vec<usize> = lengths.collect();
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{of}: {lengths:?}");
            dealt.sort_unstable();
            assert!(dealt.into_iter().eq(0..100), "{of}");
        }
    }

    #[test]
    fn captures_are_divided_by_their_bytes_and_no_shard_is_empty() {
        assert_eq!(shards_by_bytes(2, &[1, 9, 3, 5]), [1, 1, 2, 2]);
        assert_eq!(shards_by_bytes(3, &[0, 0, 0]), [1, 2, 3]);
        assert_eq!(shards_by_bytes(2, &[u64::MAX, u64::MAX, 7]), [1, 2, 1]);
        for of in 1..=20 {
            let shards = shards_by_bytes(of, &[1_000; 20]);
            let runs = (1..=of).map(|number| shards.iter().filter(move |&&shard| shard == number));
            let runs: Vec<usize> = runs.map(Iterator::count).collect();
            let (least, most) = (runs.iter().min(), runs.iter().max());
            assert!(*least.unwrap() > 0 && most.unwrap() - least.unwrap() <= 1);
        }
    }

    #[test]
    fn long_and_short_runs_are_spread_over_all_shards() {
        // Every second, fourth, … cell is long, and has so many repetitions.
        for (cells, repetitions, of) in [(2, 1, 2), (2, 8, 64), (4, 4, 16), (4, 1, 4), (8, 8, 64)] {
            let rounds = 16;
            let long_runs = |number| {
                let is_long = |place: &u64| (place / repetitions).is_multiple_of(cells);
                let places = (0..of * rounds).filter(|&place| Shard { number, of }.has(place));
                places.filter(is_long).count() as u64
            };
            let (least, most) = (1..=of).fold((u64::MAX, 0), |(least, most), number| {
                let runs = long_runs(number);
                (least.min(runs), most.max(runs))
            });
            let mean = rounds / cells;
            assert!(
                least + 2 >= mean && most <= mean + 2,
                "{of}: {least} to {most}"
            );
        }
    }
}
