//! Exchanges, segment by segment, as the RFCs have them. Letters: S SYN, F FIN, `.` ACK, E ECE, W CWR, t ECT.

use crate::script::{MSS, Script, plain};
use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_transport::{Behaviour, Flags, Segment, State};

fn linux() -> Behaviour {
    let params = TransportParams {
        mtu_bytes: 1_052,
        congestion: CongestionControl::NewReno,
        ..TransportParams::of(TcpProfile::Linux)
    };
    Behaviour::new(&params, 20)
}

/// RFC 9293, figures 6 and 12.
#[test]
fn a_connection_opens_carries_data_and_closes() {
    let mut script = Script::opening(plain());
    script.at(10);
    script.gets(Segment {
        acknowledgement: 1,
        flags: Flags::SYN.with(Flags::ACK).with(Flags::SACK_PERMITTED),
        ..script.segment()
    });
    script.next = 1;
    assert_eq!(script.end.state(), State::Established);
    script.write(1_500);
    script.at(20);
    script.acks(1_501);
    script.close();
    script.at(30);
    script.acks(1_502);
    script.gets(Segment {
        flags: Flags::ACK.with(Flags::FIN),
        acknowledgement: 1_502,
        ..script.segment()
    });
    assert_eq!(script.end.state(), State::Closed);
    insta::assert_snapshot!(script.log(), @r"
     0 ms S   0:0
    10 ms .   1:1 ack 1
    10 ms .   1:1001 ack 1
    10 ms .   1001:1501 ack 1
    20 ms F.  1501:1501 ack 1
    30 ms .   1502:1502 ack 2
    ");
}

/// RFC 6298, section 5: the time-out of a SYN doubles, and after the last there is an end.
#[test]
fn a_syn_is_sent_again_until_there_is_no_hope() {
    let mut script = Script::opening(plain());
    script.at(200_000);
    insta::assert_snapshot!(script.log(), @r"
        0 ms S   0:0
     1000 ms S   0:0
     3000 ms S   0:0
     7000 ms S   0:0
    15000 ms S   0:0
    31000 ms S   0:0
    63000 ms S   0:0
    ");
    assert_eq!(script.end.state(), State::TimedOut);
    assert_eq!(script.end.poll_at(), None);
}

/// RFC 6928 and RFC 5681, section 3.1.
#[test]
fn slow_start_begins_with_ten_segments_and_sends_two_for_each_acknowledged() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(100 * MSS);
    assert_eq!(script.log().lines().count(), 10);
    script.at(20);
    script.acks(1 + 2 * MSS);
    assert_eq!(script.log().lines().count(), 4);
    assert_eq!(script.end.window_bytes(), 12 * MSS);
}

/// RFC 8985 without reordering, RFC 6675: three segments beyond a gap are a loss; RFC 9937 says how fast to go on.
#[test]
fn a_gap_behind_three_segments_is_sent_again_at_once() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(100 * MSS);
    script.log();
    script.at(20);
    script.acks(1_001);
    script.sacks(1_001, &[(2_001, 3_001)]);
    script.sacks(1_001, &[(2_001, 4_001)]);
    assert_eq!(script.end.figures().recoveries, 0, "it may be reordering");
    script.log();
    script.sacks(1_001, &[(2_001, 5_001)]);
    script.sacks(1_001, &[(2_001, 6_001)]);
    script.sacks(1_001, &[(2_001, 7_001)]);
    insta::assert_snapshot!(script.log(), @"    20 ms .   1001:2001 ack 1");
    assert_eq!(script.end.figures().recoveries, 1);
    script.at(30);
    script.acks(14_001);
    assert_eq!(script.end.figures().retransmitted_segments, 1);
}

/// RFC 8985, section 6.2: once reordering was seen, a gap has a quarter of a round trip to close.
#[test]
fn after_reordering_a_gap_is_given_time() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(10 * MSS);
    script.at(20);
    script.sacks(1, &[(1_001, 2_001)]);
    script.acks(2_001);
    script.log();
    script.at(21);
    script.sacks(2_001, &[(3_001, 10_001)]);
    insta::assert_snapshot!(script.log(), @"");
    script.at(26);
    insta::assert_snapshot!(script.log(), @"    23 ms .   2001:3001 ack 1");
}

/// RFC 8985, section 7: the loss of a tail is probed for after two round trips, long before a time-out.
#[test]
fn the_loss_of_a_tail_is_probed_for() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(3 * MSS);
    script.at(20);
    script.acks(1_001);
    script.log();
    script.at(900);
    insta::assert_snapshot!(script.log(), @"    40 ms .   2001:3001 ack 1");
    assert_eq!(script.end.figures().probes, 1);
    assert_eq!(script.end.figures().timeouts, 0);
}

/// RFC 8985, section 7.2: a probe is sent no later than the time-out would come, and that after it has its usual length: 210 ms,
/// and then 420, to a tick of 4 ms and one more; from 256 ms on to one of 32 ms.
#[test]
fn a_single_segment_is_probed_for_where_its_time_out_would_come() {
    let mut script = Script::opened(linux(), Flags::SACK_PERMITTED);
    script.write(MSS);
    script.at(20);
    script.acks(1_001);
    script.write(500);
    script.log();
    script.at(1_000);
    insta::assert_snapshot!(script.log(), @"
    236 ms .   1001:1501 ack 1
    452 ms .   1001:1501 ack 1
    896 ms .   1001:1501 ack 1
    ");
    assert_eq!(script.end.figures().probes, 1);
    assert_eq!(script.end.figures().timeouts, 2);
}

/// RFC 8985, section 7.3: one probe at a time. One that was answered stays open until more is acknowledged, and a time-out ends it.
/// Linux 6.18 sends single segments whose first copies are lost again by a probe, a time-out, a probe, and so on; after a probe and a
/// time-out for one segment, by a probe.
#[test]
fn losses_of_single_segments_are_repaired_by_probes_and_time_outs_in_turn() {
    let mut script = Script::opened(linux(), Flags::SACK_PERMITTED);
    script.write(MSS);
    script.at(20);
    script.acks(1_001);
    let mut repaired_by = |at: u64, answered_at: u64| {
        let before = *script.end.figures();
        script.at(at);
        script.write(MSS);
        script.at(answered_at);
        let end = script.end.acknowledged_bytes() + 1 + MSS;
        script.acks(end);
        let after = *script.end.figures();
        (
            after.probes - before.probes,
            after.timeouts - before.timeouts,
        )
    };
    let once = [1_000, 2_000, 3_000, 4_000].map(|at| repaired_by(at, at + 300));
    assert_eq!(once, [(1, 0), (0, 1), (1, 0), (0, 1)]);
    assert_eq!(repaired_by(5_000, 5_500), (1, 1));
    assert_eq!(repaired_by(6_000, 6_300), (1, 0));
}

/// RFC 8985, section 6.3: what was sent less than a round trip before a time-out may still arrive.
#[test]
fn a_timeout_does_not_send_again_what_has_just_been_sent() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(MSS);
    script.at(20);
    script.acks(1_001);
    script.write(2 * MSS);
    script.at(1_030);
    script.write(MSS);
    script.log();
    script.at(1_042);
    script.acks(3_001);
    insta::assert_snapshot!(script.log(), @"  1040 ms .   1001:2001 ack 1");
    script.at(1_050);
    script.acks(4_001);
    assert_eq!(script.end.figures().timeouts, 1);
    assert_eq!(
        script.end.figures().retransmitted_segments,
        2,
        "one by a probe"
    );
}

/// RFC 8985, section 7.4: a probe that repaired a loss still says that the path is congested.
#[test]
fn a_loss_that_a_probe_repairs_reduces_the_window() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(4 * MSS);
    script.at(20);
    script.acks(2_001);
    script.at(60);
    script.acks(4_001);
    let before = script.end.window_bytes();
    script.write(4 * MSS);
    script.at(70);
    script.acks(8_001);
    assert!(script.end.window_bytes() < before);
}

/// RFC 6298, section 5, RFC 5681, section 3.1: a time-out sends one segment, and slow start begins again.
#[test]
fn after_a_time_out_one_segment_is_sent_and_slow_start_begins_again() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(10 * MSS);
    script.log();
    script.at(3_100);
    insta::assert_snapshot!(script.log(), @r"
      30 ms .   9001:10001 ack 1
    1030 ms .   1:1001 ack 1
    3030 ms .   1:1001 ack 1
    ");
    assert_eq!(script.end.window_bytes(), MSS);
    script.acks(1_001);
    insta::assert_snapshot!(script.log(), @r"
    3100 ms .   1001:2001 ack 1
    3100 ms .   2001:3001 ack 1
    ");
}

/// RFC 3522: the acknowledgement of the original tells that the time-out was none.
#[test]
fn a_spurious_time_out_is_taken_back() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(10 * MSS);
    let original = script.segment().stamp;
    script.at(1_100);
    assert_eq!(script.end.window_bytes(), MSS);
    let mut late = script.segment();
    (late.acknowledgement, late.echo) = (1_001, original);
    script.gets(late);
    assert_eq!(script.end.figures().undone, 1);
    assert!(script.end.window_bytes() >= 10 * MSS);
}

/// RFC 6582: without SACK, three duplicates are a loss, and a partial acknowledgement is the next one.
#[test]
fn without_sack_duplicates_and_partial_acknowledgements_tell_of_losses() {
    let mut script = Script::opened(plain(), Flags::default());
    script.write(100 * MSS);
    script.log();
    script.at(20);
    for _ in 0..2 {
        script.acks(1);
    }
    // RFC 3042: each of the first two lets a new segment go.
    insta::assert_snapshot!(script.log(), @r"
    20 ms .   10001:11001 ack 1
    20 ms .   11001:12001 ack 1
    ");
    script.acks(1);
    insta::assert_snapshot!(script.log(), @"    20 ms .   1:1001 ack 1");
    script.at(30);
    script.acks(4_001);
    insta::assert_snapshot!(script.log(), @"    30 ms .   4001:5001 ack 1");
    assert_eq!(script.end.figures().recoveries, 1);
    script.at(40);
    script.acks(10_001);
    assert_eq!(
        script.end.window_bytes(),
        5 * MSS,
        "half of what was under way"
    );
}

/// RFC 5681, section 4.2: every second segment at once, a single one later.
#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_after_a_while() {
    let mut script = Script::listening(plain(), Flags::SACK_PERMITTED);
    script.log();
    script.sends(1, 1_000);
    script.at(12);
    script.sends(1_001, 1_000);
    script.at(20);
    script.sends(2_001, 1_000);
    script.at(300);
    insta::assert_snapshot!(script.log(), @r"
     12 ms .   1:1 ack 2001
    220 ms .   1:1 ack 3001
    ");
}

/// An end that answers within 40 ms has its next acknowledgements go with its answers, as an interactive session on Linux.
#[test]
fn an_end_that_answers_acknowledges_its_first_request_alone_and_others_with_the_answer() {
    let mut script = Script::listening(linux(), Flags::SACK_PERMITTED);
    script.log();
    for (request, at) in [(0, 100), (1, 700), (2, 1_300)] {
        script.at(at);
        script.sends(1 + request * 100, 100);
        script.next = 101 + request * 100;
        script.at(at + 1);
        script.write(500);
        script.at(at + 20);
        script.acks(501 + request * 500);
    }
    insta::assert_snapshot!(script.log(), @"
     100 ms .   1:1 ack 101
     101 ms .   1:501 ack 101
     701 ms .   501:1001 ack 201
    1301 ms .   1001:1501 ack 301
    ");
    // What it does not answer is acknowledged after 40 ms and one to two ticks.
    script.sends(301, 100);
    script.at(1_400);
    insta::assert_snapshot!(script.log(), @"  1364 ms .   1501:1501 ack 401");
    // An end that asks answers nothing, and goes on to acknowledge at once.
    let mut client = Script::opened(linux(), Flags::SACK_PERMITTED);
    client.at(100);
    client.write(100);
    client.at(120);
    client.acks(101);
    client.sends(1, 500);
    client.at(700);
    client.write(100);
    client.at(720);
    client.sends(501, 500);
    insta::assert_snapshot!(client.log(), @"
    100 ms .   1:101 ack 1
    120 ms .   101:101 ack 501
    700 ms .   101:201 ack 501
    720 ms .   201:201 ack 1001
    ");
}

/// tcp(7), `TCP_QUICKACK`: a Linux receiver acknowledges the first segments one by one, and delays 40 ms later.
#[test]
fn linux_acknowledges_the_first_segments_at_once() {
    let mut script = Script::listening(linux(), Flags::SACK_PERMITTED);
    script.log();
    for n in 0..16 {
        script.sends(1 + n * MSS, 1_000);
    }
    assert_eq!(script.log().lines().count(), 16);
    script.sends(16_001, 1_000);
    script.at(100);
    insta::assert_snapshot!(script.log(), @"    52 ms .   1:1 ack 17001");
}

/// RFC 2018, section 4, and RFC 2883: the latest block first, and what arrived twice before all.
#[test]
fn blocks_tell_what_arrived_last_and_what_arrived_twice() {
    let mut script = Script::listening(plain(), Flags::SACK_PERMITTED);
    script.log();
    script.sends(2_001, 1_000);
    script.sends(6_001, 1_000);
    script.sends(4_001, 1_000);
    script.sends(8_001, 1_000);
    script.sends(7_001, 1_000);
    script.sends(4_001, 1_000);
    script.sends(1, 2_000);
    script.sends(1, 1_000);
    insta::assert_snapshot!(script.log(), @r"
    10 ms .   1:1 ack 1 sack 2001-3001
    10 ms .   1:1 ack 1 sack 6001-7001 2001-3001
    10 ms .   1:1 ack 1 sack 4001-5001 6001-7001 2001-3001
    10 ms .   1:1 ack 1 sack 8001-9001 4001-5001 6001-7001
    10 ms .   1:1 ack 1 sack 6001-9001 4001-5001 2001-3001
    10 ms .   1:1 ack 1 sack 4001-5001 4001-5001 6001-9001
    10 ms .   1:1 ack 3001 sack 4001-5001 6001-9001
    10 ms .   1:1 ack 3001 sack 1-1001 4001-5001 6001-9001
    ");
    assert_eq!(script.end.take_arrived(), 3_000);
}

/// RFC 3168: agreed on in the handshake, echoed until the sender says that it has reduced its window.
#[test]
fn marks_are_echoed_until_the_sender_has_reduced_its_window() {
    let behaviour = Behaviour {
        ecn: true,
        ..plain()
    };
    let asks = Flags::SACK_PERMITTED.with(Flags::ECE).with(Flags::CWR);
    let mut script = Script::listening(behaviour, asks);
    for (position, marked) in [(1, true), (1_001, false), (2_001, false), (3_001, false)] {
        let mut segment = script.segment();
        (segment.sequence, segment.bytes) = (position, 1_000);
        script.gets_marked(segment, marked);
    }
    let mut reduced = script.segment();
    (reduced.sequence, reduced.bytes) = (4_001, 2_000);
    reduced.flags = reduced.flags.with(Flags::CWR);
    script.gets(reduced);
    insta::assert_snapshot!(script.log(), @r"
     0 ms S.E 0:0 ack 1
    10 ms .E  1:1 ack 2001
    10 ms .E  1:1 ack 4001
    10 ms .   1:1 ack 6001
    ");
}

/// RFC 3168, section 6.1.2: the window is reduced once a round trip, and nothing is sent again.
#[test]
fn an_echo_reduces_the_window_once_a_round_trip() {
    let behaviour = Behaviour {
        ecn: true,
        ..plain()
    };
    let mut script = Script::opened(behaviour, Flags::SACK_PERMITTED.with(Flags::ECE));
    script.write(100 * MSS);
    script.log();
    script.at(20);
    for acknowledged in [2_001, 4_001, 6_001] {
        let mut echo = script.segment();
        echo.acknowledgement = acknowledged;
        echo.flags = echo.flags.with(Flags::ECE);
        script.gets(echo);
    }
    let figures = *script.end.figures();
    assert_eq!(
        (figures.mark_reductions, figures.retransmitted_segments),
        (1, 0)
    );
    let log = script.log();
    assert_eq!(log.matches('W').count(), 1, "CWR once:\n{log}");
    assert!(
        log.lines().all(|line| line.contains('t')),
        "all are ECT:\n{log}"
    );
}

/// RFC 8257, section 3.2: an acknowledgement tells of marked segments or of others, never of both.
#[test]
fn a_dctcp_receiver_acknowledges_before_marks_change() {
    let params = TransportParams {
        mtu_bytes: 1_052,
        congestion: CongestionControl::Dctcp,
        ..TransportParams::of(TcpProfile::Rfc)
    };
    let asks = Flags::SACK_PERMITTED.with(Flags::ECE).with(Flags::CWR);
    let mut script = Script::listening(Behaviour::new(&params, 20), asks);
    script.log();
    for (position, marked) in [(1, false), (1_001, true), (2_001, true), (3_001, false)] {
        let mut segment = script.segment();
        (segment.sequence, segment.bytes) = (position, 1_000);
        script.gets_marked(segment, marked);
    }
    insta::assert_snapshot!(script.log(), @r"
    10 ms .   1:1 ack 1001
    10 ms .E  1:1 ack 3001
    ");
}

/// RFC 9293, section 3.8.6.1: a closed window is probed, ever more seldom, until it opens.
#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(2 * MSS);
    script.offers(0);
    script.at(20);
    script.acks(2_001);
    script.log();
    script.write(3 * MSS);
    script.at(5_000);
    insta::assert_snapshot!(script.log(), @r"
    1020 ms .   2001:2002 ack 1
    3020 ms .   2001:2002 ack 1
    ");
    script.offers(10_000);
    script.acks(2_001);
    insta::assert_snapshot!(script.log(), @"");
}

/// RFC 9293, section 3.8.6.2.1: a window too small for a segment is not filled crumb by crumb.
#[test]
fn a_window_of_crumbs_is_left_alone_while_data_is_under_way() {
    let mut script = Script::opening(plain());
    script.offers(2_300);
    script.gets(Segment {
        acknowledgement: 1,
        flags: Flags::SYN.with(Flags::ACK),
        ..script.segment()
    });
    script.next = 1;
    script.log();
    script.write(10 * MSS);
    assert_eq!(script.log().lines().count(), 2, "two whole segments");
    script.at(20);
    script.offers(300);
    script.acks(script.end.acknowledged_bytes() + 2_001);
    assert_eq!(script.log(), "");
}

/// RFC 8985, section 7: all of a short response is lost. The probe's arrival tells of the rest, without a time-out.
#[test]
fn a_short_flight_that_is_lost_is_repaired_by_its_probe() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(MSS);
    let before = script.segment().stamp;
    script.at(20);
    script.acks(1_001);
    script.write(3 * MSS);
    script.log();
    script.at(51);
    // The receiver echoes what arrived in order before the probe.
    let mut answer = script.segment();
    answer.echo = before;
    answer.sack.push(3_001, 4_001);
    script.gets(answer);
    script.at(100);
    insta::assert_snapshot!(script.log(), @r"
    40 ms .   3001:4001 ack 1
    51 ms .   1001:2001 ack 1
    ");
    assert_eq!(script.end.figures().timeouts, 0);
}

/// RFC 5681, section 3.1: the loss of a SYN makes the initial window one segment, and does not end slow start.
#[test]
fn the_loss_of_a_syn_costs_the_initial_window_and_not_slow_start() {
    let mut script = Script::opening(plain());
    script.at(1_010);
    script.gets(Segment {
        acknowledgement: 1,
        flags: Flags::SYN.with(Flags::ACK).with(Flags::SACK_PERMITTED),
        ..script.segment()
    });
    script.next = 1;
    script.log();
    script.write(100 * MSS);
    assert_eq!(script.log().lines().count(), 1);
    for position in (0..30).map(|n| 1_001 + n * MSS) {
        script.acks(position);
    }
    assert_eq!(script.end.window_bytes(), 31 * MSS);
}

/// RFC 3465, section 2.3: what had arrived long before does not open the window after a time-out.
#[test]
fn after_a_time_out_the_window_grows_by_what_arrives() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(10 * MSS);
    script.at(20);
    // All but the first have arrived; the retransmission is lost, too.
    script.sacks(1, &[(1_001, 10_001)]);
    script.at(2_000);
    assert_eq!(script.end.window_bytes(), MSS);
    script.acks(10_001);
    assert_eq!(script.end.window_bytes(), 2 * MSS);
}

/// RFC 5681, section 3.1: what was acknowledged in congestion avoidance before a second time-out does not count after it.
#[test]
fn congestion_avoidance_begins_anew_after_each_of_two_time_outs() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(30 * MSS);
    script.at(1_100);
    for position in 1..=8 {
        script.acks(position * MSS + 1);
    }
    // Half of what was under way, and four of the five acknowledgements that it takes to grow.
    assert_eq!(script.end.window_bytes(), 5 * MSS);
    script.at(10_000);
    assert_eq!(script.end.window_bytes(), MSS);
    let mut windows = Vec::new();
    for position in 9..=14 {
        script.acks(position * MSS + 1);
        windows.push(script.end.window_bytes() / MSS);
    }
    assert_eq!(windows, [2, 3, 4, 5, 5, 5]);
}
