//! Exchanges that show what a host adds to the standards, and what the options of RFC 7323 say.

use crate::script::{MSS, Script, plain};
use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_transport::{Behaviour, Flags, Segment, stamp};
use slicewise_units::{Duration, Instant};

fn host(profile: TcpProfile) -> Behaviour {
    let params = TransportParams {
        mtu_bytes: 1_052,
        congestion: CongestionControl::NewReno,
        ..TransportParams::of(profile)
    };
    Behaviour::new(&params, 20)
}

/// Lengths of the segments sent, in frames.
fn frames(log: &str) -> Vec<u64> {
    let lengths = log.lines().filter_map(|line| {
        let (start, end) = line.split_whitespace().nth(3)?.split_once(':')?;
        Some((end.parse::<u64>().ok()? - start.parse::<u64>().ok()?) / MSS)
    });
    lengths.filter(|frames| *frames > 0).collect()
}

/// RFC 7323, section 4.3: of two segments that one acknowledgement answers, the first one's time stamp is echoed; what arrives beyond
/// a gap does not change it.
#[test]
fn the_stamp_of_the_earliest_segment_not_acknowledged_is_echoed() {
    let at = |millis| stamp(Instant::ZERO + Duration::from_millis(millis));
    let mut script = Script::listening(plain(), Flags::SACK_PERMITTED);
    script.at(20);
    script.sends(1, 1_000);
    script.at(30);
    script.sends(1_001, 1_000);
    assert_eq!(
        (script.last.acknowledgement, script.last.echo),
        (2_001, at(20))
    );
    script.at(40);
    script.sends(3_001, 1_000);
    assert_eq!(
        (script.last.acknowledgement, script.last.echo),
        (2_001, at(20))
    );
    script.at(50);
    script.sends(2_001, 1_000);
    assert_eq!(
        (script.last.acknowledgement, script.last.echo),
        (4_001, at(50))
    );
}

/// RFC 5681, section 4.2, lets a receiver acknowledge sooner than it must. Linux does for the first sixteen full segments, and again after a
/// silence that is longer than its own time-out; not where it answers with data (measured with Linux 6.18).
#[test]
fn after_a_silence_acknowledgements_are_quick_again_unless_the_receiver_answers() {
    let mut script = Script::listening(host(TcpProfile::Linux), Flags::SACK_PERMITTED);
    let mut position = 1;
    let mut is_acknowledged_at_once = |script: &mut Script, at: u64| {
        script.at(at);
        script.log();
        script.sends(position, 1_000);
        position += MSS;
        !script.log().is_empty()
    };
    let mut at_once = |script: &mut Script, times: &[u64]| -> usize {
        let times = times.iter();
        times
            .filter(|at| is_acknowledged_at_once(script, **at))
            .count()
    };
    let first: Vec<u64> = (0..20).map(|n| 100 * n + 100).collect();
    assert_eq!(at_once(&mut script, &first), 16);
    assert_eq!(at_once(&mut script, &[2_200, 2_300]), 0);
    assert_eq!(at_once(&mut script, &[2_550, 2_650]), 2);
    // The answer takes the acknowledgement along, and so will the next one.
    script.write(500);
    script.at(2_660);
    let answered = script.end.acknowledged_bytes() + 501;
    script.acks(answered);
    assert_eq!(at_once(&mut script, &[3_000]), 0);
}

/// RFC 7323, section 2: a window above 64 KiB is told in units of its scale, here of 16 B, and never more than there is.
#[test]
fn a_large_window_is_told_in_units_of_its_scale() {
    let behaviour = Behaviour {
        initial_receive_window_bytes: 1_000_003,
        receive_window_bytes: 1_000_003,
        ..plain()
    };
    let mut script = Script::listening(behaviour, Flags::SACK_PERMITTED);
    script.sends(1, 2_000);
    assert_eq!(script.last.window_bytes, 1_000_003 / 16 * 16);
}

/// ip-sysctl, `tcp_rmem` and `tcp_adv_win_scale`; Fisk and Feng: the window begins with 64 KiB, and follows twice what arrives in a round
/// trip, up to half of the buffer.
#[test]
fn the_receive_window_follows_what_arrives_in_a_round_trip() {
    let mut script = Script::listening(host(TcpProfile::Linux), Flags::SACK_PERMITTED);
    script.at(20);
    let mut position = 1;
    let mut flight = |script: &mut Script, at: u64, segments: u64| {
        script.at(at);
        for _ in 0..segments {
            let segment = Segment {
                sequence: position,
                bytes: 1_000,
                // The sender has just seen what was sent a round trip ago.
                echo: stamp(Instant::ZERO + Duration::from_millis(at - 10)),
                ..script.segment()
            };
            script.gets(segment);
            position += MSS;
        }
        script.last.window_bytes
    };
    assert_eq!(flight(&mut script, 20, 10), 65_536);
    assert_eq!(flight(&mut script, 30, 20), 65_536, "that suffices");
    let grown = [(40, 60), (50, 120), (60, 240)].map(|(at, n)| flight(&mut script, at, n));
    assert!(grown[0] < grown[1] && grown[1] < grown[2], "{grown:?}");
    assert!(grown[2] >= 240_000, "{grown:?}");
}

/// RFC 5681, section 4.2, with receive offload: what one interrupt brings is one segment, and has one acknowledgement.
#[test]
fn an_aggregate_has_one_acknowledgement() {
    let mut script = Script::listening(host(TcpProfile::Linux), Flags::SACK_PERMITTED);
    script.log();
    let frame = |sequence| Segment {
        sequence,
        bytes: 1_000,
        ..script.segment()
    };
    let mut joined = frame(1);
    for n in 1..20 {
        assert!(joined.absorb(&frame(1 + n * MSS), 65_535));
    }
    script.gets(joined);
    insta::assert_snapshot!(script.log(), @"    10 ms .   1:1 ack 20001");
}

/// Corbet 2013 and ip-sysctl, `tcp_min_tso_segs`, `tcp_tso_rtt_log`: over a long path a burst holds what the pacing rate sends in a
/// millisecond, at least two frames; over a short one up to 64 KiB. Without offloads each frame leaves by itself.
#[test]
fn bursts_are_as_long_as_the_pacing_rate_sends_in_a_millisecond() {
    let first_flight = |profile, rtt: u64| {
        let mut script = Script::opening(host(profile));
        script.at(rtt);
        script.gets(Segment {
            acknowledgement: 1,
            flags: Flags::SYN.with(Flags::ACK).with(Flags::SACK_PERMITTED),
            ..script.segment()
        });
        script.next = 1;
        script.log();
        script.write(100 * MSS);
        frames(&script.log())
    };
    assert_eq!(first_flight(TcpProfile::Linux, 100), [2; 5]);
    // Ten segments in 4 ms, twice as fast in slow start: five a millisecond.
    assert_eq!(first_flight(TcpProfile::Linux415, 4), [5, 5]);
    // 64 KiB, halved for each 0.512 ms of the 4 ms, is less than a frame.
    assert_eq!(first_flight(TcpProfile::Linux, 4), [5, 5]);
    assert_eq!(first_flight(TcpProfile::Linux415, 0), [10]);
    assert_eq!(first_flight(TcpProfile::Linux, 0), [10]);
    assert_eq!(first_flight(TcpProfile::Rfc, 4), [1; 10]);
}

/// ip-sysctl, `tcp_limit_output_bytes`: while two bursts wait in the adapter, nothing more is handed down.
#[test]
fn no_more_than_two_bursts_wait_below_the_socket() {
    let mut script = Script::opened(host(TcpProfile::Linux), Flags::SACK_PERMITTED);
    script.is_adapter_busy = true;
    script.write(100 * MSS);
    // Ten segments in 10 ms, twice as fast: two a millisecond.
    assert_eq!(frames(&script.log()), [2, 2]);
    script.leaves(1_000);
    assert_eq!(frames(&script.log()), [2], "less than two bursts wait");
    script.leaves(1_000);
    assert_eq!(frames(&script.log()), [0; 0], "two bursts wait");
    script.leaves(4_000);
    assert_eq!(frames(&script.log()), [2, 2]);
}

/// Linux's `fq` and ip-sysctl, `tcp_pacing_ss_ratio`: paced, a window of ten segments and a round trip of 10 ms leave two frames each
/// millisecond instead of all at once.
#[test]
fn paced_bursts_leave_one_after_the_other() {
    let behaviour = Behaviour {
        pacing: true,
        ..host(TcpProfile::Linux)
    };
    let mut script = Script::opened(behaviour, Flags::SACK_PERMITTED);
    script.write(100 * MSS);
    script.at(19);
    insta::assert_snapshot!(script.log(), @r"
    10 ms .   1:2001 ack 1
    11 ms .   2001:4001 ack 1
    12 ms .   4001:6001 ack 1
    13 ms .   6001:8001 ack 1
    14 ms .   8001:10001 ack 1
    ");
}
