//! The rules, case by case.

use super::{Fact, Recorder, sighting};
use crate::matching::{Alignment, MatchParams, Matcher};
use Fact::{AmbiguousReceived, AmbiguousSent, Closed, Duplicate, Lost, Received, Unsent};

/// The fates of packets sent (`S`) and received (`R`) at these times, all with one key.
fn fates(seen: &[(char, u64)]) -> Vec<Fact> {
    let mut recorder = Recorder::default();
    let mut matcher = Matcher::new(MatchParams {
        timeout_ns: 100,
        ..MatchParams::default()
    });
    for &(side, time_ns) in seen {
        match side {
            'S' => matcher.on_sent(&sighting(time_ns, 7, 0), &mut recorder),
            _ => matcher.on_received(&sighting(time_ns, 7, 3), &mut recorder),
        }
    }
    matcher.finish(&mut recorder);
    recorder.fates()
}

#[test]
fn a_packet_sent_and_received_is_matched() {
    assert_eq!(fates(&[('S', 10), ('R', 20)]), [Received(7, 10, 20)]);
    assert_eq!(fates(&[('R', 10), ('S', 20)]), [Received(7, 20, 10)]);
}

#[test]
fn a_packet_is_lost_when_it_comes_later_than_the_time_out() {
    assert_eq!(fates(&[('S', 10), ('R', 110)]), [Received(7, 10, 110)]);
    assert_eq!(
        fates(&[('S', 10), ('R', 111)]),
        [Lost(7, 10), Unsent(7, 111)]
    );
}

#[test]
fn a_second_copy_is_a_duplicate_not_a_reception() {
    assert_eq!(
        fates(&[('S', 10), ('R', 20), ('R', 21)]),
        [Received(7, 10, 20), Duplicate(7, 10, 21)]
    );
}

#[test]
fn packets_in_flight_with_equal_keys_are_ambiguous() {
    assert_eq!(
        fates(&[('S', 10), ('S', 20), ('R', 30), ('R', 40)]),
        [
            AmbiguousSent(7, 10),
            AmbiguousSent(7, 20),
            AmbiguousReceived(7, 30),
            AmbiguousReceived(7, 40),
            Closed(7, 2, 2)
        ]
    );
}

#[test]
fn a_key_sent_again_after_its_packet_was_received_leaves_that_packet_alone() {
    assert_eq!(
        fates(&[('S', 10), ('R', 20), ('S', 30), ('R', 40)]),
        [
            Received(7, 10, 20),
            AmbiguousSent(7, 30),
            AmbiguousReceived(7, 40),
            Closed(7, 1, 1)
        ]
    );
}

#[test]
fn a_key_sent_again_after_the_time_out_is_a_packet_of_its_own() {
    assert_eq!(
        fates(&[('S', 10), ('R', 20), ('S', 111), ('R', 120)]),
        [Received(7, 10, 20), Received(7, 111, 120)]
    );
    assert_eq!(
        fates(&[('S', 10), ('S', 111), ('R', 120)]),
        [Lost(7, 10), Received(7, 111, 120)]
    );
}

#[test]
fn a_packet_received_twice_before_it_is_sent_is_ambiguous() {
    assert_eq!(
        fates(&[('R', 10), ('R', 11), ('S', 20)]),
        [
            AmbiguousReceived(7, 10),
            AmbiguousReceived(7, 11),
            AmbiguousSent(7, 20),
            Closed(7, 1, 2)
        ]
    );
}

#[test]
fn counts_certain_losses_among_indistinguishable_packets() {
    let mut recorder = Recorder::default();
    let mut matcher = Matcher::new(MatchParams::default());
    for time_ns in 0..5 {
        matcher.on_sent(&sighting(time_ns, 7, 0), &mut recorder);
    }
    for time_ns in 10..13 {
        matcher.on_received(&sighting(time_ns, 7, 0), &mut recorder);
    }
    matcher.finish(&mut recorder);
    assert_eq!(matcher.counts().ambiguous_sent, 5);
    assert_eq!(matcher.counts().ambiguous_received, 3);
    assert_eq!(matcher.counts().ambiguous_lost, 2);
    assert_eq!(matcher.counts().lost, 0);
}

#[test]
fn reports_the_send_order_of_packets_with_equal_timestamps() {
    let mut recorder = Recorder::default();
    let mut matcher = Matcher::new(MatchParams::default());
    for key in [3, 1, 2] {
        matcher.on_sent(&sighting(5, key, 0), &mut recorder);
    }
    for key in [1, 2, 3] {
        matcher.on_received(&sighting(9, key, 0), &mut recorder);
    }
    assert_eq!(recorder.orders, [1, 2, 0]);
}

#[test]
fn no_alignment_without_shared_packets() {
    let one = [sighting(1, 1, 0), sighting(2, 2, 0)];
    let other = [sighting(1, 3, 0), sighting(2, 4, 0)];
    assert_eq!(Alignment::probe(&one, &other), None);
    assert_eq!(Alignment::probe(&one, &[]), None);
}

#[test]
fn alignment_is_the_median_over_keys_that_occur_once() {
    let sent: Vec<_> = (0..9).map(|key| sighting(1_000, key, 0)).collect();
    let mut received: Vec<_> = (0..9).map(|key| sighting(400 + key, key, 0)).collect();
    received.push(sighting(9_999, 8, 0));
    let found = Alignment::probe(&sent, &received).unwrap();
    assert_eq!(found.shared, 8);
    assert_eq!(
        (found.smallest_ns, found.median_ns, found.largest_ns),
        (-600, -596, -593)
    );
    assert_eq!(found.offset_ns(0), -596);
    assert_eq!(found.offset_ns(1_000), 0);
}
