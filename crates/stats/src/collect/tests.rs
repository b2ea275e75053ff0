use super::*;
use crate::objective::Percentile;
use crate::record::{Figures, IatFigures, SliceRecord};
use crate::tail::DelayFrom;
use proptest::prelude::*;

mod phases;

const MS: u64 = 1_000_000;

fn params(duration_ms: u64, bin_ms: u64) -> CollectorParams {
    CollectorParams {
        slices: vec!["critical".into(), "best effort".into()],
        duration: Duration::from_millis(duration_ms),
        bin: Duration::from_millis(bin_ms),
        cycle: Duration::ZERO,
    }
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn at_us(us: u64) -> Instant {
    at(us * 1000)
}

fn key() -> RunKey {
    RunKey {
        policy: "p".into(),
        scenario: "s".into(),
        repetition: 3,
        seed: 9,
        ..RunKey::default()
    }
}

fn finish(collector: &mut RunCollector) -> RunRecord {
    collector.finish(key(), Vec::new())
}

/// Packets sent whose fate is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct InFlight {
    frames: i64,
    bytes: i64,
}

impl InFlight {
    /// Those of a slice, including those sent after the end of the run.
    fn of(collector: &RunCollector, slice: usize) -> Self {
        let state = &collector.slices[slice];
        let sum = |value: fn(&Bin) -> u64| {
            let all: u64 = state.bins.iter().map(value).sum();
            i64::try_from(all).unwrap()
        };
        let recent = |count: u64| i64::try_from(count).unwrap();
        Self {
            frames: sum(|b| b.sent_frames.into()) + recent(state.recent.sent_frames)
                - sum(|b| b.received_frames.into())
                - recent(state.recent.received_frames)
                - sum(|b| b.lost_frames.into()),
            bytes: sum(|b| b.sent_bytes) + recent(state.recent.sent_bytes)
                - sum(|b| b.received_bytes)
                - recent(state.recent.received_bytes)
                - sum(|b| b.lost_bytes),
        }
    }
}

#[test]
fn rejects_durations_that_are_not_a_whole_number_of_bins() {
    let refused = |params: CollectorParams| RunCollector::new(params).unwrap_err();
    assert_eq!(refused(params(100, 0)), CollectorError::ZeroBin);
    assert_eq!(
        refused(params(120, 50)).to_string(),
        "the duration 120 ms is not a positive multiple of the interval 50 ms"
    );
    assert!(matches!(
        refused(params(0, 50)),
        CollectorError::NotAMultiple { .. }
    ));
    assert!(matches!(
        refused(params(1 << 40, 1)),
        CollectorError::TooManyBins { .. }
    ));
    let no_slices = CollectorParams {
        slices: Vec::new(),
        ..params(100, 50)
    };
    assert_eq!(refused(no_slices), CollectorError::NoSlices);
}

#[test]
fn bins_sent_and_lost_by_send_time_and_received_by_receive_time() {
    let mut collector = RunCollector::new(params(200, 50)).unwrap();
    collector.on_sent(0, true, at(10 * MS), 1000);
    collector.on_sent(0, true, at(49 * MS), 500);
    collector.on_sent(1, true, at(50 * MS), 100);
    collector.on_sent(0, true, at(120 * MS), 1000);
    collector.on_received(0, None, at(10 * MS), at(60 * MS), 1000);
    collector.on_lost(0, at(49 * MS), 500);
    // Received after the end: counts for delay, not for throughput.
    collector.on_received(0, None, at(120 * MS), at(230 * MS), 1000);
    let record = finish(&mut collector);
    let series = &record.slices[0].series;
    assert_eq!(series.sent_bytes, [1500, 0, 1000, 0]);
    assert_eq!(series.sent_frames, [2, 0, 1, 0]);
    assert_eq!(series.received_bytes, [0, 1000, 0, 0]);
    assert_eq!(series.lost_frames, [1, 0, 0, 0]);
    assert_eq!(series.lost_bytes, [500, 0, 0, 0]);
    // 50 ms earlier: that is the smallest delay.
    assert_eq!(series.served_bytes, [1000, 0, 0, 1000]);
    assert_eq!(
        series.delay_mean_ns,
        [Some(50 * MS), None, Some(110 * MS), None]
    );
    assert_eq!(series.delay_max_ns, series.delay_mean_ns);
    assert!(series.late_frames.is_empty());
    let whole = record.slices[0].whole;
    assert_eq!(
        (whole.sent_frames, whole.received_frames, whole.lost_frames),
        (3, 1, 1)
    );
    assert_eq!(whole.delay.samples, 2);
    assert_eq!(whole.delay.mean_ns, 80.0 * MS as f64);
    assert_eq!(
        (whole.delay.min_ns, whole.delay.max_ns),
        (50 * MS, 110 * MS)
    );
    assert_eq!(whole.offered_bits_per_second, 2500.0 * 8.0 / 0.2);
    assert_eq!(whole.throughput_bits_per_second, 1000.0 * 8.0 / 0.2);
    assert!((whole.loss_ratio - 1.0 / 3.0).abs() < 1e-15);
    assert_eq!(record.aggregate.sent_bytes, 2600);
    assert_eq!(record.slices[0].iat_sent.samples, 2);
}

#[test]
fn inter_arrival_times_as_received_are_those_of_the_first_source_in_order_of_arrival() {
    let mut collector = RunCollector::new(params(200, 50)).unwrap();
    // Two packets back to back, one of them lost, one reported late, one behind the end of the run.
    for ms in [10, 12, 60, 61, 90, 180] {
        collector.on_sent(0, true, at(ms * MS), 100);
    }
    for ms in [20, 70, 64, 110, 230] {
        collector.on_received_from_first(0, at(ms * MS));
    }
    let record = finish(&mut collector);
    let iat = record.slices[0].iat_received.clone().unwrap();
    let (samples, mean_ns) = (iat.samples, iat.mean_ns);
    assert_eq!((samples, mean_ns), (3, 70.0 * MS as f64));
    // Intervals of 50, 40 and 120 ms.
    assert_eq!(iat.variance_ns2, (400.0 + 900.0 + 2500.0) / 2.0 * 1e12);
    assert_eq!(record.slices[0].iat_sent.samples, 5);
    let other = record.slices[1].iat_received.clone();
    assert_eq!(other, Some(IatFigures::default()));
    // The next run begins anew.
    collector.on_received_from_first(0, at(MS));
    let next = finish(&mut collector).slices[0].iat_received.clone();
    assert_eq!(next, Some(IatFigures::default()));
}

#[test]
fn a_frame_of_unknown_send_time_is_served_as_it_arrives_until_a_delay_is_known() {
    let mut collector = RunCollector::new(params(200, 50)).unwrap();
    collector.on_received_unmatched(0, at(110 * MS), 300);
    collector.on_sent(0, true, at(60 * MS), 1000);
    collector.on_received(0, None, at(60 * MS), at(120 * MS), 1000);
    // 60 ms is the smallest delay now.
    collector.on_received_unmatched(0, at(170 * MS), 200);
    let record = finish(&mut collector);
    let series = &record.slices[0].series;
    assert_eq!(series.received_bytes, [0, 0, 1300, 200]);
    assert_eq!(series.served_bytes, [0, 1000, 500, 0]);
    let whole = record.slices[0].whole;
    assert_eq!((whole.received_frames, whole.delay.samples), (3, 1));
}

#[test]
fn the_aggregate_is_the_sum_of_the_slices() {
    let mut collector = RunCollector::new(params(200, 50)).unwrap();
    for (slice, packets, bytes, delay) in [(0, 5, 100, MS), (1, 7, 101, 2 * MS)] {
        for sent_at in (0..packets).map(|packet| packet * 10 * MS) {
            collector.on_sent(slice, true, at(sent_at), bytes);
            if sent_at < 20 * MS {
                collector.on_lost(slice, at(sent_at), bytes);
            } else {
                collector.on_received(slice, None, at(sent_at), at(sent_at + delay), bytes);
            }
        }
    }
    let aggregate = finish(&mut collector).aggregate;
    assert_eq!((aggregate.sent_frames, aggregate.sent_bytes), (12, 1207));
    assert_eq!(
        (aggregate.received_frames, aggregate.received_bytes),
        (8, 805)
    );
    assert_eq!(aggregate.lost_frames, 4);
    let delay = aggregate.delay;
    assert_eq!((delay.samples, delay.min_ns, delay.max_ns), (8, MS, 2 * MS));
}

#[test]
fn a_percentile_of_all_frames_sent_counts_lost_ones_as_infinitely_late() {
    let limit = |at| DelayLimit { limit_ns: MS, at };
    let measured = |at: Percentile, lost: u64| {
        let slice = MeasuredSlice {
            name: "voice".into(),
            delay: Some(limit(at)),
        };
        let mut collector = RunCollector::new(CollectorParams {
            slices: vec![slice],
            ..params(100, 50)
        })
        .unwrap();
        for packet in 0..100 {
            collector.on_sent(0, true, at_us(packet), 100);
            if packet < lost {
                collector.on_lost(0, at_us(packet), 100);
            } else {
                let delay = 100 + packet;
                collector.on_received(0, None, at_us(packet), at_us(packet + delay), 100);
            }
        }
        let record = finish(&mut collector);
        let moment = record.slices[0].delay_of_sent.unwrap();
        assert_eq!(moment.at, at);
        moment.ns
    };
    let within = |value: Option<u64>, us: u64| {
        let value = value.unwrap();
        (us * 1000..=us * 1001).contains(&value)
    };
    // Delays are 100 us, 101 us, … 199 us; the smallest are lost.
    assert!(within(measured(Percentile::P90, 0), 189));
    assert!(within(measured(Percentile::P90, 4), 193));
    assert!(within(measured(Percentile::P90, 10), 199));
    assert_eq!(measured(Percentile::P90, 11), None);
    assert_eq!(measured(Percentile::Max, 1), None);
    assert_eq!(measured(Percentile::P50, 100), None);
}

#[test]
fn delay_varies_from_the_smallest_of_the_run_also_after_the_transient() {
    // 1 ms for 8 s with more traffic, then 3 to 4 ms.
    let mut collector = RunCollector::new(params(40_000, 50)).unwrap();
    for packet in 0..40_000u64 {
        let (bytes, delay) = match packet {
            0..8_000 => (1200, MS),
            _ => (1000, 3 * MS + packet % 2 * MS),
        };
        collector.on_sent(0, true, at(packet * MS), bytes);
        collector.on_received(0, None, at(packet * MS), at(packet * MS + delay), bytes);
    }
    let record = finish(&mut collector);
    assert!(record.transient.end_ns >= 8_000 * MS);
    for figures in [record.slices[0].steady, record.aggregate] {
        assert_eq!(figures.delay.min_ns, 3 * MS);
        assert_eq!(figures.variation.pdv_mean_ns, 2.5 * MS as f64);
        assert_eq!(figures.variation.pdv_max_ns, 3 * MS);
        assert_eq!(figures.variation.pdv_p50_ns, figures.delay.p50_ns - MS);
    }
}

#[test]
fn packets_sent_after_the_end_are_in_no_figure() {
    let mut collector = RunCollector::new(params(100, 50)).unwrap();
    collector.on_sent(0, true, at(100 * MS), 1000);
    collector.on_received(0, None, at(100 * MS), at(101 * MS), 1000);
    collector.on_sent(0, true, at(170 * MS), 1000);
    collector.on_lost(0, at(170 * MS), 1000);
    assert_eq!(InFlight::of(&collector, 0), InFlight::default());
    let record = finish(&mut collector);
    let figures = Figures {
        span_ns: 100 * MS,
        ..Figures::default()
    };
    assert_eq!(record.slices[0].whole, figures);
    assert!(record.slices[0].delay_cdf.is_empty());
}

#[test]
fn percentiles_are_those_of_the_steady_state() {
    // 8 s with 20 % more traffic and 10 ms of delay, then 32 s with 1 ms and a few late packets.
    let mut collector = RunCollector::new(params(40_000, 50)).unwrap();
    for packet in 0..40_000u64 {
        let sent_at = packet * MS;
        let (bytes, delay) = match packet {
            0..8_000 => (1200, 10 * MS),
            _ if packet % 50 == 0 => (1000, 5 * MS),
            _ => (1000, MS),
        };
        collector.on_sent(0, true, at(sent_at), bytes);
        let position = FlowPosition {
            flow: 7,
            sequence: u32::try_from(packet).unwrap(),
        };
        collector.on_received(0, Some(position), at(sent_at), at(sent_at + delay), bytes);
    }
    let record = finish(&mut collector);
    // The first packets of the excess arrive 10 ms late: the end may be a batch later.
    assert!((8_000 * MS..=8_250 * MS).contains(&record.transient.end_ns));
    let (whole, steady) = (record.slices[0].whole.delay, record.slices[0].steady.delay);
    let within = |value: u64, expected: u64| {
        assert!(
            value >= expected && value - expected <= expected / 1000,
            "{value} {expected}"
        );
    };
    within(whole.p99_ns, 10 * MS);
    within(steady.p50_ns, MS);
    within(steady.p99_ns, 5 * MS);
    assert_eq!((steady.min_ns, steady.max_ns), (MS, 5 * MS));
    assert!(
        (steady.mean_ns - 1.08 * MS as f64).abs() < 1.0,
        "{}",
        steady.mean_ns
    );
    // 10 ms to 5 ms once, at the end of the transient; 1 ms to 5 ms and back after it. A segment has 650 ms.
    let (whole, steady) = (
        record.slices[0].whole.variation,
        record.slices[0].steady.variation,
    );
    assert_eq!((whole.ipdv_samples, whole.ipdv_max_ns), (39_999, 5 * MS));
    assert_eq!(
        (steady.ipdv_samples, steady.ipdv_max_ns),
        (40_000 - 13 * 650, 4 * MS)
    );
    assert_eq!((whole.pdv_max_ns, steady.pdv_max_ns), (9 * MS, 4 * MS));
    let cdf = &record.slices[0].delay_cdf;
    assert_eq!(cdf.len(), 2);
    assert!((cdf[0].1 - 0.98).abs() < 1e-3);
    assert_eq!(cdf[1].0, 5 * MS);
}

#[test]
fn packets_of_the_steady_state_that_all_lie_in_its_first_segment_have_percentiles() {
    // Segments of 650 ms: the last packet with a delay is sent 50 ms after the transient, in its last segment.
    let mut collector = RunCollector::new(params(40_000, 50)).unwrap();
    for packet in 0..40_000u64 {
        let (slice, bytes) = (
            usize::from(packet >= 8_050),
            if packet < 8_000 { 1200 } else { 1000 },
        );
        collector.on_sent(slice, true, at(packet * MS), bytes);
        collector.on_received(slice, None, at(packet * MS), at(packet * MS + MS), bytes);
    }
    let record = finish(&mut collector);
    assert_eq!(record.transient.end_ns, 8_000 * MS);
    let steady = record.slices[0].steady.delay;
    assert_eq!((steady.samples, steady.p50_ns, steady.p99_ns), (50, MS, MS));
    assert!(!record.slices[0].delay_cdf.is_empty());
}

#[test]
fn a_collector_used_again_gives_the_same_record() {
    let run = |collector: &mut RunCollector| {
        for packet in 0..5000u64 {
            let slice = (packet % 3 == 0) as usize;
            let (sent_at, delay) = (packet * 700_000, 90_000 + packet * packet % 7_000_000);
            collector.on_sent(slice, packet % 2 == 0, at(sent_at), 1400);
            if packet % 11 == 0 {
                collector.on_lost(slice, at(sent_at), 1400);
            } else {
                collector.on_received(slice, None, at(sent_at), at(sent_at + delay), 1400);
            }
        }
        finish(collector)
    };
    let mut collector = RunCollector::new(params(4_000, 50)).unwrap();
    let first = run(&mut collector);
    assert_eq!(collector.memory_bytes(), 2 * 81 * size_of::<Bin>());
    // An abandoned run leaves no trace either.
    collector.on_sent(1, true, at(5), 99);
    collector.reset();
    assert_eq!(run(&mut collector), first);
    // Nor in the memory of another.
    let other = RunCollector::new(params(4_000, 50)).unwrap();
    collector.on_sent(1, true, at(5), 99);
    collector.on_received(1, None, at(5), at(95_000), 99);
    let mut other = other.with_memory(collector.into_memory());
    assert_eq!(other.memory_bytes(), 2 * 81 * size_of::<Bin>());
    assert_eq!(run(&mut other), first);
}

#[test]
fn a_run_of_the_router_study_takes_a_few_megabytes() {
    let mut collector = RunCollector::new(params(40_000, 50)).unwrap();
    for packet in 0..200_000u64 {
        let (slice, sent_at) = ((packet % 2) as usize, packet * 200_000);
        // Best effort goes through every delay from 0.1 to 500 ms in every segment.
        let delay = if slice == 0 {
            200_000 + packet % 1000
        } else {
            packet * 7919 % (500 * MS)
        };
        let position = FlowPosition {
            flow: u32::try_from(packet % 4).unwrap(),
            sequence: u32::try_from(packet / 4).unwrap(),
        };
        collector.on_sent(slice, false, at(sent_at), 1400);
        collector.on_received(
            slice,
            Some(position),
            at(sent_at),
            at(sent_at + delay),
            1400,
        );
    }
    assert!(
        collector.memory_bytes() < 5_000_000,
        "{}",
        collector.memory_bytes()
    );
}

#[test]
fn a_record_survives_json() {
    let mut collector = RunCollector::new(params(3_000, 50)).unwrap();
    for packet in 0..3000u64 {
        collector.on_sent(0, true, at(packet * MS + packet * packet % 1000), 1000);
        collector.on_received(
            0,
            None,
            at(packet * MS),
            at(packet * MS + 333_333 + packet),
            1000,
        );
    }
    let record = finish(&mut collector);
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap(), record);
}

/// Fate of a packet: lost, still under way, or received after this delay.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Lost,
    UnderWay,
    Received(u64),
}

fn fates() -> impl Strategy<Value = Vec<(bool, u64, u32, Fate)>> {
    let fate = prop_oneof![
        Just(Fate::Lost),
        Just(Fate::UnderWay),
        (0..3_000 * MS).prop_map(Fate::Received),
        (0..MS).prop_map(Fate::Received),
    ];
    prop::collection::vec((any::<bool>(), 0..1_200 * MS, 60u32..9000, fate), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_frame_is_received_lost_or_in_flight(packets in fates(), bin_ms in prop::sample::select(vec![1u64, 2, 5, 10, 50, 100, 1000])) {
        let mut collector = RunCollector::new(params(1_000, bin_ms)).unwrap();
        let mut under_way = [InFlight::default(); 2];
        let mut delays: Vec<u64> = Vec::new();
        for &(slice, sent_at, bytes, fate) in &packets {
            let slice = usize::from(slice);
            collector.on_sent(slice, true, at(sent_at), bytes);
            match fate {
                Fate::Lost => collector.on_lost(slice, at(sent_at), bytes),
                Fate::UnderWay => {
                    under_way[slice].frames += 1;
                    under_way[slice].bytes += i64::from(bytes);
                }
                Fate::Received(delay) => {
                    collector.on_received(slice, None, at(sent_at), at(sent_at + delay), bytes);
                    if sent_at < 1_000 * MS {
                        delays.push(delay);
                    }
                }
            }
        }
        prop_assert_eq!([InFlight::of(&collector, 0), InFlight::of(&collector, 1)], under_way);
        let record = finish(&mut collector);
        let in_time: Vec<_> = packets.iter().filter(|p| p.1 < 1_000 * MS).collect();
        let sent: u64 = record.slices.iter().map(|s| s.whole.sent_frames).sum();
        prop_assert_eq!(sent, in_time.len() as u64);
        let lost: u64 = record.slices.iter().map(|s| s.whole.lost_frames).sum();
        prop_assert_eq!(lost, in_time.iter().filter(|p| matches!(p.3, Fate::Lost)).count() as u64);
        for slice in &record.slices {
            let series = &slice.series;
            prop_assert_eq!(series.sent_bytes.len() as u64, 1_000 / bin_ms);
            prop_assert_eq!(series.sent_bytes.iter().sum::<u64>(), slice.whole.sent_bytes);
            prop_assert_eq!(series.received_bytes.iter().sum::<u64>(), slice.whole.received_bytes);
            let delay = slice.whole.delay;
            prop_assert!(delay.min_ns <= delay.p50_ns && delay.p50_ns <= delay.p99_ns);
            prop_assert!(delay.p99_ns <= delay.p999_ns && delay.p999_ns <= delay.max_ns);
            prop_assert!(slice.delay_cdf.windows(2).all(|w| w[0].1 < w[1].1));
        }
        let samples: u64 = record.slices.iter().map(|s| s.whole.delay.samples).sum();
        prop_assert_eq!(samples, delays.len() as u64);
        let largest = record.slices.iter().map(|s| s.whole.delay.max_ns).max();
        prop_assert_eq!(largest, Some(delays.iter().copied().max().unwrap_or(0)));
    }

    #[test]
    fn propagation_changes_neither_what_is_served_nor_the_transient(
        packets in fates(),
        propagation_ns in 0..2_000 * MS,
    ) {
        let measured = |propagation_ns: u64| {
            let mut collector = RunCollector::new(params(1_000, 50)).unwrap();
            let mut arrivals = Vec::new();
            for &(slice, sent_at, bytes, fate) in &packets {
                let slice = usize::from(slice);
                collector.on_sent(slice, true, at(sent_at), bytes);
                if let Fate::Received(delay) = fate {
                    arrivals.push((sent_at + delay + propagation_ns, slice, sent_at, bytes));
                }
            }
            arrivals.sort_unstable();
            for (now, slice, sent_at, bytes) in arrivals {
                collector.on_received(slice, None, at(sent_at), at(now), bytes);
            }
            finish(&mut collector)
        };
        let (near, far) = (measured(0), measured(propagation_ns));
        prop_assert_eq!(near.transient, far.transient);
        for (near, far) in near.slices.iter().zip(&far.slices) {
            prop_assert_eq!(&near.series.served_bytes, &far.series.served_bytes);
            let of = |slice: &SliceRecord| {
                let variation = slice.steady.variation;
                (variation.pdv_mean_ns, variation.pdv_max_ns)
            };
            prop_assert_eq!(of(near), of(far));
        }
    }
}

#[test]
fn a_run_knows_nothing_of_the_delays_of_the_one_before() {
    let run = |collector: &mut RunCollector, order: [usize; 2]| {
        for slice in order {
            collector.on_sent(slice, true, at(0), 100);
            collector.on_received(slice, None, at(0), at(10 + slice as u64), 100);
        }
        finish(collector).slices
    };
    let mut fresh = RunCollector::new(params(100, 50)).unwrap();
    let expected = run(&mut fresh, [1, 0]);
    let mut used = RunCollector::new(params(100, 50)).unwrap();
    run(&mut used, [0, 1]);
    assert_eq!(run(&mut used, [1, 0]), expected);
}

#[test]
fn memory_of_a_collector_that_has_merged_segments_is_used_again() {
    let mut open = RunCollector::open_ended(Duration::from_nanos(1), Duration::ZERO).unwrap();
    open.add_slice("a");
    for sent_at in 0..3_000 {
        open.on_sent(0, true, at(sent_at), 100);
        open.on_received(0, None, at(sent_at), at(sent_at + 7), 100);
    }
    let collector = RunCollector::new(params(100, 50)).unwrap();
    let mut collector = collector.with_memory(open.into_memory());
    collector.on_sent(0, true, at(0), 100);
    collector.on_received(0, None, at(0), at(7), 100);
    assert_eq!(finish(&mut collector).slices[0].whole.delay.p50_ns, 7);
}

#[test]
fn medians_from_each_segment_on_are_kept_where_they_are_asked_for() {
    let measured = |collector: RunCollector| {
        let mut collector = collector;
        // 1 ms in the first half of the run, 5 ms in the second.
        for (ms, delay_ms) in (0..200).map(|ms| (ms, if ms < 100 { 1 } else { 5 })) {
            collector.on_sent(0, true, at(ms * MS), 100);
            collector.on_received(0, None, at(ms * MS), at((ms + delay_ms) * MS), 100);
        }
        finish(&mut collector).slices
    };
    let collector = || RunCollector::new(params(200, 50)).unwrap();
    assert_eq!(measured(collector())[0].delay_from, []);
    let slices = measured(collector().with_medians());
    let rounded = |of: &DelayFrom| (of.from_ns / MS, of.p50_ns.map(|ns| ns / MS));
    let medians: Vec<_> = slices[0].delay_from.iter().map(rounded).collect();
    let expected = [(0, Some(1)), (50, Some(5)), (100, Some(5)), (150, Some(5))];
    assert_eq!(medians, expected);
    assert_eq!(
        slices[0].delay_from[0].p50_ns,
        Some(slices[0].whole.delay.p50_ns)
    );
    // Of equal delays, the median is that delay.
    assert_eq!(slices[0].delay_from[3].p50_ns, Some(5 * MS));
    let silent: Vec<_> = slices[1].delay_from.iter().map(|of| of.p50_ns).collect();
    assert_eq!(silent, [None; 4]);
}
