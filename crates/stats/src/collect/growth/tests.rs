use super::*;
use crate::collect::FlowPosition;
use crate::record::{RunKey, RunRecord};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn finish(collector: &mut RunCollector) -> RunRecord {
    let key = RunKey {
        policy: "p".into(),
        scenario: "s".into(),
        ..RunKey::default()
    };
    collector.finish(key, Vec::new())
}

/// A packet: slice, send time, and delay if it arrives.
type Packet = (usize, u64, Option<u64>);

/// Each slice is one flow. Packets arrive in threes, the last sent first.
fn feed(collector: &mut RunCollector, packets: &[Packet]) {
    let mut sequences = [0; 3];
    for three in packets.chunks(3) {
        let mut sent = Vec::new();
        for &(slice, sent_at, delay) in three {
            collector.on_sent(slice, true, at(sent_at), 1000);
            let position = FlowPosition {
                flow: u32::try_from(slice).unwrap(),
                sequence: sequences[slice],
            };
            sequences[slice] += 1;
            sent.push((slice, sent_at, delay, position));
        }
        for (slice, sent_at, delay, position) in sent.into_iter().rev() {
            let Some(delay) = delay else {
                collector.on_lost(slice, at(sent_at), 1000);
                continue;
            };
            let received_at = at(sent_at + delay);
            collector.on_received(slice, Some(position), at(sent_at), received_at, 1000);
        }
    }
}

/// The record of a collector that knows the slices "a", "b", … and that the run lasts until the
/// end of the bin in which the last thing happens.
fn known(packets: &[Packet], slices: usize, bin: Duration) -> RunRecord {
    let last = packets.iter().map(|p| p.1 + p.2.unwrap_or(0)).max();
    let bins = last.unwrap_or(0) / bin.nanos() + 1;
    let mut collector = RunCollector::new(CollectorParams {
        slices: names(slices).into_iter().map(Into::into).collect(),
        duration: Duration::from_nanos(bins * bin.nanos()),
        bin,
        cycle: Duration::ZERO,
    })
    .unwrap();
    feed(&mut collector, packets);
    finish(&mut collector)
}

fn names(slices: usize) -> Vec<String> {
    ["a", "b", "c"][..slices]
        .iter()
        .map(|&s| s.to_owned())
        .collect()
}

fn open_ended(bin: Duration, slices: usize) -> RunCollector {
    let mut collector = RunCollector::open_ended(bin, Duration::ZERO).unwrap();
    for (index, name) in names(slices).into_iter().enumerate() {
        assert_eq!(collector.add_slice(name), index);
    }
    collector
}

#[test]
fn a_run_lasts_until_the_end_of_the_bin_in_which_the_last_thing_happened() {
    let bin = Duration::from_millis(50);
    assert_eq!(
        RunCollector::open_ended(Duration::ZERO, bin).unwrap_err(),
        CollectorError::ZeroBin
    );
    let mut collector = open_ended(bin, 1);
    collector.on_sent(0, true, at(120 * MS), 1000);
    collector.on_received(0, None, at(120 * MS), at(150 * MS), 1000);
    let record = finish(&mut collector);
    assert_eq!((record.duration_ns, record.bin_ns), (200 * MS, 50 * MS));
    assert_eq!(record.slices[0].series.received_bytes, [0, 0, 0, 1000]);
    // The next run starts empty.
    let empty = finish(&mut collector);
    assert_eq!((empty.duration_ns, empty.slices.len()), (50 * MS, 0));
}

#[test]
fn a_frame_is_lost_where_it_was_sent_also_once_bins_are_wider() {
    let mut collector = open_ended(Duration::from_millis(1), 1);
    for _ in 0..2 {
        collector.on_lost(0, at(5 * MS), 1000);
        collector.on_sent(0, true, at((MAX_BINS + 1) * MS), 1000);
    }
    assert_eq!(collector.grid.bin_ns, 2 * MS);
    let lost: Vec<u32> = collector.slices[0].bins[..6]
        .iter()
        .map(|bin| bin.lost_frames)
        .collect();
    assert_eq!(lost, [0, 0, 2, 0, 0, 0]);
}

/// The second slice makes segments wider between two packets of the first, which are in one bin.
#[test]
fn a_frame_is_in_the_segment_of_its_bin_also_once_segments_are_wider() {
    let bin = Duration::from_millis(1);
    let last = 2 * MAX_HELD_SEGMENTS as u64 - 1;
    let early = (0, 700 * MS, Some(100));
    let late = (1, last * MS, Some(100));
    let packets = [[early; 3], [late; 3], [early; 3]].concat();
    let mut collector = open_ended(bin, 2);
    feed(&mut collector, &packets);
    let record = finish(&mut collector);
    assert!(record.slices == known(&packets, 2, bin).slices);
}

#[test]
fn a_slice_added_late_also_has_the_earlier_bins() {
    let mut collector = open_ended(Duration::from_millis(1), 1);
    feed(&mut collector, &[(0, 5 * MS, Some(1))]);
    let late = collector.add_slice("b");
    feed(&mut collector, &[(late, 7 * MS, None)]);
    let record = finish(&mut collector);
    assert_eq!(record.slices[1].slice, "b");
    assert_eq!(
        record.slices[1].series.lost_frames,
        [0, 0, 0, 0, 0, 0, 0, 1]
    );
    assert_eq!(record.slices[0].series.sent_bytes.len(), 8);
}

#[test]
fn bins_become_wider_where_they_would_be_too_many() {
    // 1 µs bins hold 1.05 s of one slice, half a second of two.
    let bin = Duration::from_micros(1);
    // One in ten of them is used.
    let packets: Vec<Packet> = (0..150_000)
        .map(|n| (0, n * 20_000, Some(n * 20)))
        .collect();
    let mut collector = open_ended(bin, 1);
    feed(&mut collector, &packets);
    assert!(collector.memory_bytes() < (96 << 20) + (8 << 20));
    let record = finish(&mut collector);
    assert_eq!(record.bin_ns, 4_000);
    assert_eq!(
        record.slices[0].whole,
        known(&packets, 1, Duration::from_micros(4)).slices[0].whole
    );

    let mut collector = open_ended(bin, 1);
    feed(&mut collector, &packets[..50_000]);
    assert_eq!(collector.grid.bin_ns, 1_000);
    collector.add_slice("b");
    let second = finish(&mut collector);
    assert_eq!(second.bin_ns, 2_000);
    assert_eq!(second.slices[0].whole.delay.samples, 50_000);
}

#[test]
fn no_point_in_time_is_too_late() {
    let mut collector = open_ended(Duration::from_nanos(1), 2);
    feed(
        &mut collector,
        &[(0, 3, Some(4)), (1, u64::MAX - 9, Some(5)), (1, 8, None)],
    );
    let record = finish(&mut collector);
    assert_eq!(record.slices[0].whole.sent_frames, 1);
    assert_eq!(record.slices[1].whole.lost_frames, 1);
    assert_eq!(record.slices[1].whole.delay.max_ns, 5);
    assert!(record.duration_ns >= u64::MAX >> 2);
}

#[test]
fn delays_of_many_slices_stay_within_their_limit() {
    let mut collector =
        RunCollector::open_ended(Duration::from_millis(10), Duration::ZERO).unwrap();
    for name in 0..50 {
        collector.add_slice(name.to_string());
    }
    for packet in 0..60_000u64 {
        let slice = usize::try_from(packet % 50).unwrap();
        let sent_at = at(packet * 200_000);
        let delay = Duration::from_nanos(1 << (10 + packet % 7));
        collector.on_sent(slice, true, sent_at, 100);
        collector.on_received(slice, None, sent_at, sent_at.saturating_add(delay), 100);
    }
    let bytes = collector.pages.bytes();
    assert!(bytes <= MAX_HELD_BYTES + (2 << 20), "{bytes}");
    assert!(collector.grid.bins_per_segment > 1);
    let record = finish(&mut collector);
    let samples: u64 = record.slices.iter().map(|s| s.whole.delay.samples).sum();
    assert_eq!(samples, 60_000);
}

#[test]
fn a_transient_is_cut_where_a_collector_with_known_length_cuts_it() {
    // 800 bins: 13 per segment, which no number of merges gives.
    let packets: Vec<Packet> = (0..40_000u64)
        .flat_map(|n| {
            let delay = if n < 8_000 { 10 * MS } else { MS + n };
            let twice = if n < 8_000 && n % 5 == 0 { 2 } else { 1 };
            std::iter::repeat_n((0, n * MS, Some(delay)), twice)
        })
        .filter(|p| p.1 + p.2.unwrap_or(0) < 40_000 * MS)
        .collect();
    let bin = Duration::from_millis(50);
    let expected = known(&packets, 1, bin);
    assert!(expected.transient.end_ns > 0);
    let mut collector = open_ended(bin, 1);
    feed(&mut collector, &packets);
    assert_eq!(finish(&mut collector), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_record_is_that_of_a_collector_that_knew_length_and_slices(
        packets in prop::collection::vec(
            (0usize..3, 0u64..1_200 * MS, prop::option::of(prop_oneof![0..MS, 0..900 * MS])),
            0..300,
        ),
        bin_ms in prop::sample::select(vec![2u64, 5, 10, 50, 1000]),
    ) {
        let bin = Duration::from_millis(bin_ms);
        let mut collector = open_ended(bin, 3);
        feed(&mut collector, &packets);
        prop_assert_eq!(finish(&mut collector), known(&packets, 3, bin));
    }
}

proptest! {
    // Each has a million bins.
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn merged_bins_hold_what_happened_in_both(
        packets in prop::collection::vec((0usize..3, 0u64..100 * MS, prop::option::of(0..MS)), 1..100),
        late in 0u64..200 * MS,
    ) {
        // Bins of 64 ns become 128, 256 or 512 ns wide somewhere on the way.
        let mut collector = open_ended(Duration::from_nanos(64), 3);
        let mut packets = packets;
        packets.push((2, late, None));
        feed(&mut collector, &packets);
        let record = finish(&mut collector);
        let bin = Duration::from_nanos(record.bin_ns);
        prop_assert_eq!(record, known(&packets, 3, bin));
    }
}

#[test]
fn bins_held_for_later_are_given_up_where_slices_are_added() {
    // 300,000 bins of 1 µs fit for three slices; half a million are held for one.
    let mut collector = open_ended(Duration::from_micros(1), 1);
    feed(&mut collector, &[(0, 300 * MS, Some(1000))]);
    collector.add_slice("b");
    collector.add_slice("c");
    assert!(collector.memory_bytes() < (96 << 20) + (8 << 20));
    assert_eq!(collector.grid.bin_ns, 1_000);
}

#[test]
fn a_pause_of_a_day_makes_no_long_series() {
    let day = 86_400_000 * MS;
    let pause: Vec<Packet> = (0..40)
        .map(|n| (0, n * 10 * MS + if n < 20 { 0 } else { day }, Some(2 * MS)))
        .collect();
    let mut collector = open_ended(Duration::from_millis(50), 3);
    feed(&mut collector, &pause);
    assert!(collector.slices[0].segments.capacity() < 4 * MAX_HELD_SEGMENTS);
    let record = finish(&mut collector);
    let bins = record.slices[0].series.sent_frames.len();
    assert!((4_000..=FEW_BINS / 3).contains(&bins), "{bins}");
    assert_eq!(
        record,
        known(&pause, 3, Duration::from_nanos(record.bin_ns))
    );

    // Where something happens all the time, intervals stay as asked for.
    let often: Vec<Packet> = (0..10_000).map(|n| (0, n * 200 * MS, Some(MS))).collect();
    let mut collector = open_ended(Duration::from_millis(50), 1);
    feed(&mut collector, &often);
    assert_eq!(finish(&mut collector).bin_ns, 50 * MS);
}
