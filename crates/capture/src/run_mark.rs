//! Run data in the comment of a capture file written by the simulator.
//!
//! A line of its own: `slicewise: run starts at 1577836800000000000 ns, lasts 40000000000 ns,
//! load cycle 2000000000 ns`. The first time is since the epoch. It lets an analysis divide the run into
//! the same bins as the simulator and get the same figures.

use std::fmt;

/// Start and duration of the run in a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunMark {
    /// Start of the run, ns since the epoch.
    pub start_ns: u64,
    /// How long traffic is offered, ns; packets may still arrive later.
    pub duration_ns: u64,
    /// The longest on/off cycle of the load, ns; 0 where the load is constant.
    pub cycle_ns: u64,
}

impl fmt::Display for RunMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            start_ns,
            duration_ns,
            cycle_ns,
        } = self;
        write!(
            f,
            "{START}{start_ns}{DURATION}{duration_ns}{CYCLE}{cycle_ns}{END}"
        )
    }
}

impl RunMark {
    /// The mark in a comment, which may contain other lines; `None` if there is none.
    #[must_use]
    pub fn find(comment: &str) -> Option<Self> {
        comment.lines().find_map(Self::parse)
    }

    fn parse(line: &str) -> Option<Self> {
        let line = line.trim().strip_prefix(START)?.strip_suffix(END)?;
        let (start, rest) = line.split_once(DURATION)?;
        let (duration, cycle) = rest.split_once(CYCLE)?;
        Some(Self {
            start_ns: start.parse().ok()?,
            duration_ns: duration.parse().ok()?,
            cycle_ns: cycle.parse().ok()?,
        })
    }
}

const START: &str = "slicewise: run starts at ";
const DURATION: &str = " ns, lasts ";
const CYCLE: &str = " ns, load cycle ";
const END: &str = " ns";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mark_is_found_among_other_lines() {
        let mark = RunMark {
            start_ns: 1_577_836_800_000_000_000,
            duration_ns: 40_000_000_000,
            cycle_ns: 0,
        };
        insta::assert_snapshot!(mark, @"slicewise: run starts at 1577836800000000000 ns, lasts 40000000000 ns, load cycle 0 ns");
        let comment = format!("from the laboratory\r\n{mark}\r\nrun 7");
        assert_eq!(RunMark::find(&comment), Some(mark));
    }

    #[test]
    fn other_text_is_not_mistaken_for_a_mark() {
        for text in [
            "",
            "slicewise",
            "slicewise: run starts at soon",
            "slicewise: run starts at 1 ns",
            "slicewise: run starts at 1 ns, lasts -2 ns, load cycle 0 ns",
            "slicewise: run starts at 99999999999999999999 ns, lasts 2 ns, load cycle 0 ns",
        ] {
            assert_eq!(RunMark::find(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_mark_survives_text(start_ns: u64, duration_ns: u64, cycle_ns: u64) {
            let mark = RunMark { start_ns, duration_ns, cycle_ns };
            prop_assert_eq!(RunMark::find(&mark.to_string()), Some(mark));
        }

        #[test]
        fn any_text_is_parsed_without_panic(text in "(slicewise: run starts at )?.{0,60}( ns)?") {
            let _ = RunMark::find(&text);
        }
    }
}
