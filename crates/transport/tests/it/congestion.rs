//! Exchanges in which the window is what counts: CUBIC, HyStart++, DCTCP, PRR.

use crate::script::{MSS, Script, plain};
use slicewise_traffic::transport::CongestionControl;
use slicewise_transport::{Behaviour, Flags};

fn with(congestion: CongestionControl) -> Behaviour {
    Behaviour {
        congestion,
        ecn: congestion == CongestionControl::Dctcp,
        ..plain()
    }
}

/// The next segment sent after `count` of them.
const fn after(count: u64) -> u64 {
    1 + count * MSS
}

/// Acknowledge one segment after the other, up to `until`, so many milliseconds apart.
fn acks_each(script: &mut Script, segments: std::ops::Range<u64>, at: impl Fn(u64) -> u64) {
    for n in segments {
        script.at(at(n));
        script.acks(after(n + 1));
    }
}

/// RFC 6937, section 3.1: while ten segments beyond a gap arrive, one is sent for every two; RFC 5681: the window ends at
/// half of what was under way.
#[test]
fn during_recovery_a_segment_leaves_for_every_two_that_arrive() {
    let mut script = Script::opened(with(CongestionControl::NewReno), Flags::SACK_PERMITTED);
    script.write(100 * MSS);
    acks_each(&mut script, 0..10, |_| 20);
    script.log();
    assert_eq!(script.end.window_bytes(), 20 * MSS);
    // Segment 10 is lost.
    script.at(30);
    for arrived in 12..30 {
        script.sacks(after(10), &[(after(11), after(arrived))]);
    }
    let log = script.log();
    let (again, new): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| line.contains(" 10001:"));
    assert_eq!(again.len(), 1, "{log}");
    // 19 of the 20 under way have arrived, of which half may be replaced; one was sent again.
    assert!((8..=10).contains(&new.len()), "{log}");
    script.at(40);
    script.acks(after(30));
    assert_eq!(script.end.window_bytes(), 10 * MSS);
}

/// RFC 9438, sections 4.6 and 4.3: after a loss the window is 0.7 of what it was, and a small one then grows by 9/17 of a segment a
/// round trip.
#[test]
fn cubic_keeps_seven_tenths_of_its_window_and_grows_as_reno_does() {
    let mut script = Script::opened(with(CongestionControl::Cubic), Flags::SACK_PERMITTED);
    script.write(1_000 * MSS);
    acks_each(&mut script, 0..10, |_| 20);
    script.at(30);
    script.sacks(after(10), &[(after(11), after(30))]);
    script.at(40);
    script.acks(after(30));
    assert_eq!(script.end.window_bytes() / MSS, 14);
    // Twenty round trips of 10 ms: K = cbrt(20 * 0.3 / 0.4) s is far away.
    let mut acknowledged = 30;
    for round in 0..20 {
        script.at(50 + 10 * round);
        let window = script.end.window_bytes() / MSS;
        for _ in 0..window {
            acknowledged += 1;
            script.acks(after(acknowledged));
        }
    }
    // 6 segments take 11 round trips; from the old window on, it is a segment a round trip.
    let window = script.end.window_bytes() / MSS;
    assert!((26..=30).contains(&window), "{window}");
}

/// RFC 9406, section 4.2: a round trip that grows by more than its threshold of 4 ms makes slow start four times slower.
#[test]
fn slow_start_grows_by_a_quarter_once_round_trips_grow() {
    let growth = |rtt: u64| {
        let mut script = Script::opened(with(CongestionControl::Cubic), Flags::SACK_PERMITTED);
        script.write(1_000 * MSS);
        acks_each(&mut script, 0..10, |_| 20);
        acks_each(&mut script, 10..30, |_| 30);
        // The round in which the first of these arrive has shorter round trips, too.
        acks_each(&mut script, 30..70, |_| 30 + rtt);
        let before = script.end.window_bytes();
        assert_eq!(before, 80 * MSS);
        acks_each(&mut script, 70..150, |_| 30 + 2 * rtt);
        (script.end.window_bytes() - before) / MSS
    };
    assert_eq!(growth(10), 80, "no longer than before");
    assert_eq!(growth(13), 80, "within 4 ms");
    // Eight round trips of a round are measured before it is compared with the one before.
    let conservative = growth(15);
    assert!((20..=24).contains(&conservative), "{conservative}");
}

/// RFC 8257, section 3.3: marks of all segments halve the window, as in the beginning alpha is 1; of few, they cost as much less.
#[test]
fn dctcp_reduces_its_window_by_half_of_the_share_that_was_marked() {
    let mut script = Script::opened(
        with(CongestionControl::Dctcp),
        Flags::SACK_PERMITTED.with(Flags::ECE),
    );
    script.write(10_000 * MSS);
    let mut echo = script.segment();
    (echo.acknowledgement, echo.flags) = (after(1), echo.flags.with(Flags::ECE));
    script.at(20);
    script.gets(echo);
    // Without marks, alpha loses a sixteenth a round trip.
    let mut acknowledged = 1;
    for round in 0..80 {
        script.at(30 + 10 * round);
        let window = script.end.window_bytes() / MSS;
        for _ in 0..window {
            acknowledged += 1;
            script.acks(after(acknowledged));
        }
        if round == 0 {
            let window = script.end.window_bytes();
            assert!(
                window <= 7 * MSS,
                "half of ten segments, and growth: {window}"
            );
        }
    }
    let before = script.end.window_bytes();
    let mut echo = script.segment();
    (echo.acknowledgement, echo.flags) = (after(acknowledged + 1), echo.flags.with(Flags::ECE));
    script.at(840);
    script.gets(echo);
    script.at(850);
    script.acks(after(acknowledged + before / MSS));
    let after = script.end.window_bytes();
    assert!(after * 100 > before * 98, "{after} of {before}");
}
