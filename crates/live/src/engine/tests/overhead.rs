//! Links with what a modem behind the gateway adds to each frame.

use super::{Bench, direction, tagged};
use slicewise_units::Instant;

/// Frames of 142 B: packets of 124 B behind a VLAN tag.
#[test]
fn a_link_takes_as_long_for_a_frame_as_the_modem_behind_it() {
    for (counts, bytes) in [
        ("L1 + 8 B", 142 + 24 + 8),
        ("L2 + 8 B", 150),
        ("L3 + 40 B in ATM cells", 4 * 53),
    ] {
        let mut params = direction(10_000_000, vec![]);
        params.link.accounting = counts.parse().unwrap();
        let mut bench = Bench::both_ways(params);
        (0..20).for_each(|i| bench.arrive(tagged(10, 142, i)));
        let sent = bench.run_until(Instant::MAX);
        let times: Vec<u64> = sent.iter().map(|(at, _)| at.nanos()).collect();
        let expected: Vec<u64> = (0..20).map(|index| index * bytes * 800).collect();
        assert_eq!(times, expected, "{counts}");
    }
}
