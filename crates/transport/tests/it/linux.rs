//! What Linux 6.18 does, as seen by a scripted peer behind a TUN device and by `TCP_INFO`.

use crate::script::{MSS, Script, plain};
use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_transport::{Behaviour, Flags};

fn linux() -> Behaviour {
    let params = TransportParams {
        mtu_bytes: 1_052,
        congestion: CongestionControl::NewReno,
        ..TransportParams::of(TcpProfile::Linux)
    };
    Behaviour::new(&params, 20)
}

/// Position behind so many segments.
const fn after(segments: u64) -> u64 {
    1 + segments * MSS
}

/// RFC 7661, section 4.3. Linux 6.18, a write of so many segments to a window of 10, acknowledged one by one.
#[test]
fn slow_start_doubles_what_was_under_way_in_a_round_trip() {
    for (written, window) in [(4, 10), (5, 10), (6, 12), (8, 16), (10, 20)] {
        for behaviour in [linux(), plain()] {
            let mut script = Script::opened(behaviour, Flags::SACK_PERMITTED);
            for round in 0..3 {
                script.write(written * MSS);
                script.at(20 + 10 * round);
                for segment in 1..=written {
                    script.acks(after(round * written + segment));
                }
                assert_eq!(script.end.window_bytes(), window * MSS, "{written}");
            }
        }
    }
}

/// RFC 3042 and RFC 6675. Linux 6.18 sends a segment for each of the first two, although its bursts are longer and the window would
/// soon allow one.
#[test]
fn a_segment_leaves_for_each_of_the_first_that_arrive_beyond_a_gap() {
    let mut script = Script::opened(linux(), Flags::SACK_PERMITTED);
    script.write(200 * MSS);
    script.at(20);
    script.acks(after(10));
    script.log();
    script.at(30);
    script.sacks(after(10), &[(after(11), after(12))]);
    insta::assert_snapshot!(script.log(), @"    30 ms .   30001:31001 ack 1");
    script.sacks(after(10), &[(after(11), after(13))]);
    insta::assert_snapshot!(script.log(), @"    30 ms .   31001:32001 ack 1");
}

/// RFC 2018, section 5. Linux 6.18 took two segments for sacked and sent two.
#[test]
fn blocks_of_an_acknowledgement_that_was_overtaken_count() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(100 * MSS);
    script.at(20);
    script.acks(after(4));
    script.log();
    script.sacks(after(2), &[(after(6), after(8))]);
    insta::assert_snapshot!(script.log(), @r"
    20 ms .   18001:19001 ack 1
    20 ms .   19001:20001 ack 1
    ");
    // A block that has been acknowledged since is no sign of a duplicate, nor does an acknowledgement without blocks say anything.
    script.sacks(after(2), &[(after(3), after(4))]);
    script.acks(after(3));
    assert_eq!(script.log(), "");
    assert_eq!(script.end.acknowledged_bytes(), 4 * MSS);
    // Three beyond the gap are a loss, whatever position they came with.
    script.sacks(after(1), &[(after(6), after(9))]);
    assert_eq!(script.end.figures().recoveries, 1);
}

/// RFC 9293, section 3.8.6. As Linux 6.18: with 8 segments under way and a window of 3 nothing leaves; with a window of 4 beyond all that
/// was sent, 4; of two windows that otherwise say the same the larger one counts.
#[test]
fn a_window_that_shrinks_is_kept_to() {
    let mut script = Script::opened(plain(), Flags::SACK_PERMITTED);
    script.write(100 * MSS);
    script.log();
    script.at(20);
    script.offers(3_000);
    script.acks(after(2));
    assert_eq!(script.log(), "");
    script.at(30);
    script.offers(4_000);
    script.acks(after(10));
    insta::assert_snapshot!(script.log(), @r"
    30 ms .   10001:11001 ack 1
    30 ms .   11001:12001 ack 1
    30 ms .   12001:13001 ack 1
    30 ms .   13001:14001 ack 1
    ");
    script.offers(1_000);
    script.acks(after(10));
    script.at(40);
    script.offers(4_000);
    script.acks(after(12));
    insta::assert_snapshot!(script.log(), @r"
    40 ms .   14001:15001 ack 1
    40 ms .   15001:16001 ack 1
    ");
}

/// RFC 2883. The exchange with Linux 6.18, block for block.
#[test]
fn what_arrives_again_is_said_also_where_it_is_held_and_in_parts() {
    let mut script = Script::listening(plain(), Flags::SACK_PERMITTED);
    let mut answer = |from: u64, to: u64| {
        script.sends(after(from), u32::try_from((to - from) * MSS).unwrap());
        let ack = script.last.acknowledgement;
        let blocks: Vec<(u64, u64)> = script.last.sack.iter(ack).collect();
        let segments = |position: u64| (position - 1) / MSS;
        let blocks: Vec<_> = blocks
            .iter()
            .map(|b| (segments(b.0), segments(b.1)))
            .collect();
        (segments(ack), blocks)
    };
    answer(0, 1);
    assert_eq!(answer(2, 4), (1, vec![(2, 4)]));
    // Held; held in part.
    assert_eq!(answer(3, 4), (1, vec![(3, 4), (2, 4)]));
    assert_eq!(answer(3, 5), (1, vec![(3, 4), (2, 5)]));
    assert_eq!(answer(7, 8), (1, vec![(7, 8), (2, 5)]));
    // Fills the gap and more; old; old in part; around what is held.
    assert_eq!(answer(1, 3), (5, vec![(2, 3), (7, 8)]));
    assert_eq!(answer(0, 1), (5, vec![(0, 1), (7, 8)]));
    assert_eq!(answer(4, 6), (6, vec![(4, 5), (7, 8)]));
    assert_eq!(answer(6, 9), (9, vec![(7, 8)]));
    assert_eq!(answer(10, 11), (9, vec![(10, 11)]));
    assert_eq!(answer(12, 13), (9, vec![(12, 13), (10, 11)]));
    assert_eq!(answer(10, 13), (9, vec![(10, 11), (10, 13)]));
}
