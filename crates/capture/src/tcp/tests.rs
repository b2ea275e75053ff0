//! Connections given segment by segment.

use super::{TcpFigures, TcpSegment, TcpTracker};
use proptest::prelude::*;
use slicewise_wire::TcpFlags;

const DATA: u32 = 0;
const ACKS: u32 = 1;

fn tracker() -> TcpTracker<impl FnMut(u32) -> Option<u32>> {
    TcpTracker::new(|flow| Some(1 - flow.min(1)))
}

fn data(time_ns: u64, sequence: u32, payload_bytes: u32) -> TcpSegment {
    TcpSegment {
        time_ns,
        flow: DATA,
        sequence,
        acknowledgement: 1,
        flags: TcpFlags::ACK,
        payload_bytes,
    }
}

fn ack(time_ns: u64, acknowledgement: u32) -> TcpSegment {
    TcpSegment {
        time_ns,
        flow: ACKS,
        sequence: 1,
        acknowledgement,
        flags: TcpFlags::ACK,
        payload_bytes: 0,
    }
}

fn figures(segments: &[TcpSegment]) -> TcpFigures {
    let mut tracker = tracker();
    for segment in segments {
        tracker.on_segment(segment);
    }
    tracker.flow(DATA).unwrap()
}

#[test]
fn measures_from_data_to_the_acknowledgement_that_covers_it() {
    let figures = figures(&[
        data(0, 100, 10),
        data(5, 110, 10),
        ack(50, 110),
        ack(75, 120),
    ]);
    assert_eq!(figures.segments, 2);
    assert_eq!(figures.data_bytes, 20);
    assert_eq!(
        figures.acknowledged_bytes, 10,
        "after the first acknowledgement"
    );
    assert_eq!(figures.rtt.samples, 2);
    assert_eq!((figures.rtt.min_ns, figures.rtt.max_ns), (50, 70));
    assert_eq!(figures.rtt.mean_ns, 60.0);
}

#[test]
fn an_acknowledgement_of_several_segments_gives_the_round_trip_of_the_last() {
    let figures = figures(&[data(0, 0, 10), data(40, 10, 10), ack(50, 20)]);
    assert_eq!(figures.rtt.samples, 1);
    assert_eq!(figures.rtt.max_ns, 10);
}

#[test]
fn a_retransmission_is_counted_and_gives_no_round_trip() {
    let figures = figures(&[
        data(0, 0, 10),
        data(1, 10, 10),
        data(100, 0, 10),
        ack(150, 20),
        data(200, 20, 10),
        ack(230, 30),
    ]);
    assert_eq!(figures.retransmitted_segments, 1);
    assert_eq!(figures.retransmitted_bytes, 10);
    assert_eq!(figures.data_bytes, 30);
    assert_eq!(figures.rtt.samples, 1);
    assert_eq!(figures.rtt.max_ns, 30);
}

#[test]
fn new_bytes_of_a_segment_that_repeats_some_are_new() {
    let figures = figures(&[data(0, 0, 10), data(9, 5, 10)]);
    assert_eq!(figures.retransmitted_segments, 1);
    assert_eq!(figures.retransmitted_bytes, 5);
    assert_eq!(figures.data_bytes, 15);
}

#[test]
fn sequence_numbers_wrap_around() {
    let start = u32::MAX - 14;
    let figures = figures(&[
        data(0, start, 10),
        data(1, start.wrapping_add(10), 10),
        data(2, 5, 10),
        ack(20, 15),
        data(30, u32::MAX, 3),
    ]);
    assert_eq!(figures.data_bytes, 30);
    assert_eq!(figures.rtt.max_ns, 18);
    assert_eq!(figures.retransmitted_segments, 1);
    assert_eq!(figures.retransmitted_bytes, 3);
}

#[test]
fn keep_alives_are_not_retransmissions() {
    for payload_bytes in [0, 1] {
        let figures = figures(&[data(0, 0, 10), ack(20, 10), data(9_000, 9, payload_bytes)]);
        assert_eq!(figures.keep_alives, 1);
        assert_eq!(figures.retransmitted_segments, 0);
    }
}

#[test]
fn a_syn_takes_a_number_and_measures_the_first_round_trip() {
    let syn = TcpSegment {
        flags: TcpFlags::SYN,
        ..data(0, 99, 0)
    };
    let again = TcpSegment {
        time_ns: 1_000,
        ..syn
    };
    let once = figures(&[syn, ack(40, 100), data(41, 100, 10), ack(90, 110)]);
    assert_eq!(once.rtt.samples, 2);
    assert_eq!((once.rtt.min_ns, once.rtt.max_ns), (40, 49));
    assert_eq!(once.data_bytes, 10);
    assert_eq!(once.acknowledged_bytes, 10);

    let twice = figures(&[syn, again, ack(1_040, 100)]);
    assert_eq!(twice.retransmitted_segments, 1);
    assert_eq!(twice.retransmitted_bytes, 0);
    assert_eq!(twice.rtt.samples, 0);
}

#[test]
fn a_connection_reusing_the_ports_of_an_earlier_one_starts_afresh() {
    let syn = |time_ns, sequence| TcpSegment {
        flags: TcpFlags::SYN,
        ..data(time_ns, sequence, 0)
    };
    let figures = figures(&[
        syn(0, 1_000_000),
        ack(10, 1_000_001),
        data(20, 1_000_001, 50),
        ack(30, 1_000_051),
        syn(1_000, 500),
        ack(1_010, 501),
        data(1_020, 501, 50),
        ack(1_040, 551),
    ]);
    assert_eq!(figures.retransmitted_segments, 0);
    assert_eq!(figures.data_bytes, 100);
    assert_eq!(figures.rtt.samples, 4);
}

#[test]
fn an_acknowledgement_of_unseen_data_is_ignored() {
    let figures = figures(&[data(0, 100, 10), ack(5, 5_000)]);
    assert_eq!(figures.acknowledged_bytes, 0);
    assert_eq!(figures.rtt.samples, 0);
}

#[test]
fn a_flow_that_was_not_seen_has_no_figures() {
    let mut tracker = tracker();
    tracker.on_segment(&data(0, 0, 10));
    assert_eq!(tracker.flow(7), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn counts_every_byte_once_as_new_wherever_numbers_begin(
        start in any::<u32>(),
        sizes in proptest::collection::vec((1_u32..3_000, any::<bool>()), 1..200),
    ) {
        let mut tracker = tracker();
        let (mut offset, mut again, mut retransmitted, mut time_ns) = (0_u32, 0_u64, 0_u64, 0);
        for &(size, is_lost) in &sizes {
            time_ns += 1_000;
            tracker.on_segment(&data(time_ns, start.wrapping_add(offset), size));
            if is_lost {
                tracker.on_segment(&data(time_ns + 200, start.wrapping_add(offset), size));
                again += u64::from(size);
                retransmitted += 1;
            }
            offset += size;
            tracker.on_segment(&ack(time_ns + 300, start.wrapping_add(offset)));
        }
        let figures = tracker.flow(DATA).unwrap();
        prop_assert_eq!(figures.data_bytes, u64::from(offset));
        prop_assert_eq!(figures.retransmitted_bytes, again);
        prop_assert_eq!(figures.retransmitted_segments, retransmitted);
        let samples = sizes.len() as u64 - retransmitted;
        prop_assert_eq!(figures.rtt.samples, samples);
        if samples > 0 {
            prop_assert_eq!((figures.rtt.min_ns, figures.rtt.max_ns), (300, 300));
        }
    }

    #[test]
    fn tracks_any_segments_in_bounded_memory(
        segments in proptest::collection::vec(
            (any::<u64>(), 0_u32..2, any::<u32>(), any::<u32>(), any::<u8>(), any::<u32>()),
            0..2_000,
        ),
    ) {
        let mut tracker = tracker();
        for (time_ns, flow, sequence, acknowledgement, flags, payload_bytes) in segments {
            tracker.on_segment(&TcpSegment {
                time_ns, flow, sequence, acknowledgement, payload_bytes, flags: TcpFlags(flags),
            });
        }
        prop_assert!(tracker.memory_bytes() < 2 * 16 * 1_024);
    }
}
