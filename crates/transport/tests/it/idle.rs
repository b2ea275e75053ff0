//! A sender that had nothing to send (RFC 5681, section 4.1; RFC 2861).

use crate::script::{MSS, Script, plain};
use slicewise_transport::Flags;

/// One that has sent and had acknowledged 40 segments, a round trip of 10 ms each, the last at 20 ms.
fn warm() -> Script {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(40 * MSS);
    script.at(20);
    for position in (0..40).map(|n| 1_001 + n * MSS) {
        script.acks(position);
    }
    script.log();
    script
}

/// Segments that it sends at once at a time when it has more than enough to send, and its window then.
fn sends_at(script: &mut Script, millis: u64) -> (u64, u64) {
    script.at(millis);
    script.write(200 * MSS);
    let log = script.log();
    let time = format!("{millis:>6} ms");
    assert!(log.lines().all(|line| line.starts_with(&time)), "{log}");
    (log.lines().count() as u64, script.end.window_bytes() / MSS)
}

#[test]
fn the_window_is_halved_for_each_timeout_that_has_passed_down_to_the_initial_one() {
    assert_eq!(warm().end.window_bytes(), 50 * MSS);
    // The last segment was sent at 20 ms, and the time-out is 1 s.
    for (at, expected) in [
        (1_020, 50),
        (1_021, 25),
        (2_019, 25),
        (2_020, 12),
        (3_020, 10),
        (60_000, 10),
    ] {
        let sent = sends_at(&mut warm(), at);
        assert_eq!(sent, (expected, expected), "at {at} ms");
    }
}

#[test]
fn a_sender_that_was_silent_sends_an_initial_window_and_doubles_it_in_each_round_trip() {
    let mut script = warm();
    let mut sent = 0;
    for (at, window) in [(60_000, 10), (60_010, 20), (60_020, 40)] {
        script.at(at);
        script.acks(1 + (40 + sent) * MSS);
        if sent == 0 {
            script.write(200 * MSS);
        }
        let log = script.log();
        assert_eq!(script.end.window_bytes(), window * MSS);
        assert_eq!(log.lines().count() as u64, window, "{log}");
        sent += window;
    }
}
