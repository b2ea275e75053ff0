//! What a receiver acknowledges at once, and what it waits with. Linux: as measured with 6.18, for which a server sent what the
//! tests send to a client 10 ms away; 4.15 differs where it says so.

use crate::script::{MSS, Script};
use slicewise_traffic::transport::{TcpProfile, TransportParams};
use slicewise_transport::{Behaviour, Flags, Segment};

const LINUX: TcpProfile = TcpProfile::Linux;
const LINUX_415: TcpProfile = TcpProfile::Linux415;
const RFC: TcpProfile = TcpProfile::Rfc;

/// A receiver of segments of 1000 B whose quick acknowledgements are used up.
fn receiver(profile: TcpProfile) -> Script {
    let params = TransportParams {
        mtu_bytes: 1_052,
        ..TransportParams::of(profile)
    };
    let behaviour = Behaviour {
        quick_acks: 0,
        ..Behaviour::new(&params, 20)
    };
    let mut script = Script::listening(behaviour, Flags::SACK_PERMITTED);
    // It learns how long full segments are.
    script.sends(1, 1_000);
    script.sends(1_001, 1_000);
    script.log();
    script
}

/// From where a receiver of [`receiver`] expects data.
const START: u64 = 2 * MSS + 1;

/// How long the receiver waits with the acknowledgement of the last of `segments`, ms: lengths, and whether they end what was
/// written. They arrive together, each acknowledgement asked for after the last.
fn wait(script: &mut Script, start: u64, segments: &[(u32, bool)]) -> u64 {
    let at = 1_000 * (start / 100);
    script.at(at);
    script.log();
    let mut position = start;
    for (bytes, is_last) in segments {
        if *is_last {
            script.sends_last(position, *bytes);
        } else {
            script.sends(position, *bytes);
        }
        position += u64::from(*bytes);
    }
    script.at(at + 500);
    assert_eq!(script.last.acknowledgement, position);
    let log = script.log();
    let time = log.lines().last().unwrap().split_whitespace().next();
    time.unwrap().parse::<u64>().unwrap() - at
}

/// RFC 5681, section 4.2: "at least every second full-sized segment". Linux acknowledges one and a part, as a response of 2000 B is
/// with segments of 1448 B.
#[test]
fn linux_acknowledges_more_than_one_full_segment_and_the_rfc_waits_for_two() {
    let end = [(1_000, false), (400, true)];
    for (profile, waits) in [(LINUX, 0), (LINUX_415, 0), (RFC, 200)] {
        assert_eq!(
            wait(&mut receiver(profile), START, &end),
            waits,
            "{profile:?}"
        );
        let two = [(1_000, false); 2];
        assert_eq!(wait(&mut receiver(profile), START, &two), 0, "{profile:?}");
    }
}

/// 40 ms, and one to two ticks of 4 ms.
#[test]
fn a_single_full_segment_of_more_waits_for_the_next() {
    for (profile, waits) in [(LINUX, 44), (LINUX_415, 44), (RFC, 200)] {
        let waited = wait(&mut receiver(profile), START, &[(1_000, false)]);
        assert_eq!(waited, waits, "{profile:?}");
    }
}

/// A request, the tail of a response.
#[test]
fn a_segment_that_is_not_full_is_acknowledged_at_once_by_linux() {
    for (profile, waits) in [(LINUX, 0), (LINUX_415, 0), (RFC, 200)] {
        let waited = wait(&mut receiver(profile), START, &[(300, true)]);
        assert_eq!(waited, waits, "{profile:?}");
    }
}

/// Linux since 6.6, "tcp: fix delayed ACKs for MSS boundary condition": a response that fills its segments, and an odd number of them.
#[test]
fn a_full_segment_that_ends_what_was_written_is_acknowledged_at_once_by_linux_since_6_6() {
    for (profile, waits) in [(LINUX, 0), (LINUX_415, 44), (RFC, 200)] {
        let mut script = receiver(profile);
        assert_eq!(
            wait(&mut script, START, &[(1_000, true)]),
            waits,
            "{profile:?}"
        );
        let three = [(1_000, false), (1_000, false), (1_000, true)];
        let waited = wait(&mut script, START + MSS, &three);
        assert_eq!(waited, waits, "{profile:?}");
    }
}

/// The second of two segments of a length is taken for a full one. Of equal responses the first is acknowledged at once, the second is
/// not, and the third is where what ends what was written is (Linux 6.18: 0, 48, 0, 0 and 0 ms).
#[test]
fn segments_of_equal_length_are_taken_for_full_ones() {
    for (profile, waits) in [(LINUX, [0, 44, 0, 0]), (LINUX_415, [0, 44, 44, 44])] {
        let mut script = receiver(profile);
        let waited =
            [0, 600, 1_200, 1_800].map(|behind| wait(&mut script, START + behind, &[(600, true)]));
        assert_eq!(waited, waits, "{profile:?}");
        // They are, until a longer one comes: one and a part is more than a full one.
        let waited = wait(&mut script, START + 2_400, &[(600, false), (100, true)]);
        assert_eq!(waited, 0, "{profile:?}");
    }
}

/// A Linux end that has just answered what came.
fn answering() -> Script {
    let mut script = receiver(LINUX);
    script.at(500);
    script.sends_last(START, 300);
    script.write(100);
    script.at(510);
    script.acks(101);
    script
}

/// An end that answers within 40 ms (Linux: "pingpong") keeps its acknowledgements for its next answer, unless more than a full segment
/// waits, or the ends of two writes.
#[test]
fn an_end_that_answers_waits_for_its_answer_but_not_with_two() {
    let waits = |segments: &[(u32, bool)]| wait(&mut answering(), START + 300, segments);
    assert_eq!(waits(&[(1_000, true)]), 44);
    assert_eq!(waits(&[(300, true)]), 44);
    assert_eq!(waits(&[(1_000, false), (400, true)]), 0);
    assert_eq!(waits(&[(300, true), (300, true)]), 0);
}

/// After it had to acknowledge alone, it no longer answers.
#[test]
fn an_end_whose_answer_does_not_come_acknowledges_the_next_at_once() {
    let mut script = answering();
    assert_eq!(wait(&mut script, START + 300, &[(300, true)]), 44);
    assert_eq!(wait(&mut script, START + 600, &[(300, true)]), 0);
}

/// tcp(7), `TCP_QUICKACK`: sixteen acknowledgements are quick, whatever they are of (Linux since 6.6, "tcp: fix quick-ack counting to
/// count actual ACKs of new data").
#[test]
fn every_acknowledgement_of_data_uses_up_a_quick_one() {
    let mut script = receiver(LINUX);
    script.behaviour.quick_acks = 16;
    let mut position = START;
    // After a silence they are quick again.
    script.at(2_000);
    for _ in 0..16 {
        let joined = Segment {
            sequence: position,
            bytes: 2_000,
            ..script.segment()
        };
        script.gets(joined);
        position += 2 * MSS;
    }
    assert_eq!(script.log().lines().count(), 16);
    script.sends(position, 1_000);
    assert_eq!(script.log(), "");
}

/// The end of what the application has written so far is marked, also where it is sent again, and of a stream without end there is none.
#[test]
fn what_ends_a_write_is_marked() {
    let params = TransportParams {
        mtu_bytes: 1_052,
        ..TransportParams::of(RFC)
    };
    let behaviour = Behaviour::new(&params, 20);
    let mut script = Script::opened(behaviour, Flags::SACK_PERMITTED);
    let is_marked = |script: &Script| script.last.flags.has(Flags::PSH);
    script.write(2_500);
    assert!(is_marked(&script));
    script.at(20);
    script.acks(2_501);
    script.write(20 * MSS);
    assert!(
        !is_marked(&script),
        "the window ends before what was written"
    );
    script.at(30);
    script.acks(12_501);
    assert!(is_marked(&script));
    script.at(600);
    assert_eq!(script.end.figures().probes, 1);
    assert_eq!(script.last.sequence, 21_501);
    assert!(is_marked(&script), "a probe is the last segment again");
    let mut endless = Script::opened(behaviour, Flags::SACK_PERMITTED);
    endless.write(u64::MAX);
    assert!(!is_marked(&endless));
}
