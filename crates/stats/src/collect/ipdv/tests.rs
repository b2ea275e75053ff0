use super::*;
use crate::collect::{CollectorParams, MeasuredSlice, RunCollector};
use crate::objective::{DelayLimit, Percentile};
use crate::record::{DelayFigures, RunKey, RunRecord, SliceRecord, VariationFigures};
use proptest::prelude::*;
use slicewise_units::Duration;

const DURATION: Duration = Duration::from_millis(1);
const BIN: Duration = Duration::from_micros(100);
const LIMIT: Duration = Duration::from_micros(20);

/// A packet: its flow, send time, and delay if it arrives.
#[derive(Debug, Clone, Copy)]
struct Packet {
    flow: u32,
    sequence: u32,
    sent_ns: u64,
    delay_ns: Option<u64>,
}

impl Packet {
    /// Flows 0 and 1 are of slice 0, which has a limit of delay; flow 2 is of slice 1.
    const fn slice(&self) -> usize {
        self.flow as usize / 2
    }
}

/// Packets in the order sent; their first sequence number is `first`. No more than 50 packets are sent
/// within the largest delay.
fn packets(first: u32) -> impl Strategy<Value = Vec<Packet>> {
    let delay = prop_oneof![
        4 => (0u64..50_000).prop_map(Some),
        2 => (0u64..300).prop_map(Some),
        1 => Just(None),
    ];
    let packet = (0u32..3, 1_000u64..5_000, delay);
    prop::collection::vec(packet, 0..400).prop_map(move |drawn| {
        let (mut now, mut sent) = (0, [0u32; 3]);
        let packet = |(flow, gap, delay_ns): (u32, u64, Option<u64>)| {
            now += gap;
            let sequence = first.wrapping_add(sent[flow as usize]);
            sent[flow as usize] += 1;
            Packet {
                flow,
                sequence,
                sent_ns: now,
                delay_ns,
            }
        };
        drawn.into_iter().map(packet).collect()
    })
}

/// The record of these packets, received in order of time.
fn measured(packets: &[Packet]) -> RunRecord {
    let limited = MeasuredSlice {
        name: "limited".into(),
        delay: Some(DelayLimit {
            limit_ns: LIMIT.nanos(),
            at: Percentile::P90,
        }),
    };
    let mut collector = RunCollector::new(CollectorParams {
        slices: vec![limited, "free".into()],
        duration: DURATION,
        bin: BIN,
        cycle: Duration::ZERO,
    })
    .unwrap();
    for packet in packets {
        collector.on_sent(
            packet.slice(),
            false,
            Instant::from_nanos(packet.sent_ns),
            100,
        );
    }
    let mut received: Vec<(u64, &Packet)> = packets
        .iter()
        .filter_map(|packet| Some((packet.sent_ns + packet.delay_ns?, packet)))
        .collect();
    received.sort_by_key(|(at, _)| *at);
    for (at, packet) in received {
        let position = FlowPosition {
            flow: packet.flow,
            sequence: packet.sequence,
        };
        let (sent_at, at) = (Instant::from_nanos(packet.sent_ns), Instant::from_nanos(at));
        collector.on_received(packet.slice(), Some(position), sent_at, at, 100);
    }
    let key = RunKey {
        policy: "p".into(),
        scenario: "s".into(),
        ..RunKey::default()
    };
    collector.finish(key, Vec::new())
}

/// Sorted absolute differences of the delays of neighbours in `packets`, by the definition.
fn variations(packets: &[Packet], slice: usize) -> Vec<u64> {
    let mut variations = Vec::new();
    for flow in 0..3 {
        let sent: Vec<&Packet> = packets.iter().filter(|p| p.flow == flow).collect();
        for pair in sent.windows(2) {
            if let (Some(a), Some(b)) = (pair[0].delay_ns, pair[1].delay_ns)
                && pair[1].slice() == slice
                && pair[1].sent_ns < DURATION.nanos()
            {
                variations.push(a.abs_diff(b));
            }
        }
    }
    variations.sort_unstable();
    variations
}

/// A percentile lies at most 1/128 above the exact one, and never below it.
fn is_percentile(value: u64, sorted: &[u64], per_mille: usize) -> bool {
    let exact = sorted[(sorted.len() * per_mille).div_ceil(1000) - 1];
    value >= exact && value - exact <= exact / 128
}

fn check(packets: &[Packet], slice: usize, record: &SliceRecord) -> Result<(), TestCaseError> {
    let figures = record.whole.variation;
    prop_assert_eq!(record.steady.variation, figures);
    let exact = variations(packets, slice);
    prop_assert_eq!(figures.ipdv_samples, exact.len() as u64);
    if let Some(&largest) = exact.last() {
        let sum: u64 = exact.iter().sum();
        prop_assert_eq!(figures.ipdv_mean_ns, sum as f64 / exact.len() as f64);
        prop_assert_eq!(figures.ipdv_max_ns, largest);
        prop_assert!(is_percentile(figures.ipdv_p95_ns, &exact, 950));
        prop_assert!(is_percentile(figures.ipdv_p99_ns, &exact, 990));
        prop_assert!(is_percentile(figures.ipdv_p999_ns, &exact, 999));
    }
    let in_time = packets
        .iter()
        .filter(|packet| packet.slice() == slice && packet.sent_ns < DURATION.nanos());
    let delays: Vec<u64> = in_time.clone().filter_map(|p| p.delay_ns).collect();
    if let Some(&least) = delays.iter().min() {
        let above = delays.iter().map(|delay| delay - least);
        let mean = above.clone().sum::<u64>() as f64 / delays.len() as f64;
        prop_assert_eq!(figures.pdv_mean_ns, mean);
        prop_assert_eq!(Some(figures.pdv_max_ns), above.max());
        let DelayFigures { min_ns, p95_ns, .. } = record.whole.delay;
        prop_assert_eq!(figures.pdv_p95_ns, p95_ns - min_ns);
    } else {
        prop_assert_eq!(figures, VariationFigures::default());
    }
    let is_late = |delay: u64| slice == 0 && delay > LIMIT.nanos();
    let mut late = vec![0; record.series.sent_bytes.len()];
    for packet in in_time.filter(|packet| packet.delay_ns.is_some_and(is_late)) {
        late[usize::try_from(packet.sent_ns / BIN.nanos()).unwrap()] += 1;
    }
    let has_limit = slice == 0;
    let expected: &[u32] = if has_limit { &late } else { &[] };
    prop_assert_eq!(&record.series.late_frames, expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn variations_and_late_frames_are_those_of_the_definitions(
        packets in prop_oneof![packets(0), packets(1), packets(u32::MAX - 20)],
    ) {
        let record = measured(&packets);
        for (slice, slice_record) in record.slices.iter().enumerate() {
            check(&packets, slice, slice_record)?;
        }
        let mut all = variations(&packets, 0);
        all.extend(variations(&packets, 1));
        all.sort_unstable();
        let variation = record.aggregate.variation;
        prop_assert_eq!(variation.ipdv_samples, all.len() as u64);
        prop_assert_eq!(variation.ipdv_max_ns, all.last().copied().unwrap_or(0));
    }
}

/// The numbers of pairs measured of packets that arrive in this order.
fn pairs(arrivals: impl IntoIterator<Item = u32>) -> u64 {
    let (mut flows, mut pairs) = (Flows::default(), 0);
    for sequence in arrivals {
        let packet = Received {
            sequence,
            sent_at: Instant::ZERO,
            delay_ns: 5,
        };
        if flows.on_successor(0, packet).is_some() {
            pairs += 1;
            continue;
        }
        let arrival = flows.on_out_of_turn(0, packet);
        pairs += u64::from(arrival.variation_ns.is_some()) + u64::from(arrival.next.is_some());
    }
    pairs
}

#[test]
fn a_packet_overtaken_by_fewer_than_the_window_is_compared_on_both_sides() {
    let late_by = |later: u32| pairs((0..10).chain(11..11 + later).chain([10]));
    let window = u32::try_from(WINDOW).unwrap();
    assert_eq!(late_by(window - 2), 9 + u64::from(window - 3) + 2);
    // The packet before it is no longer kept, then neither is the one after it.
    assert_eq!(late_by(window - 1), 9 + u64::from(window - 2) + 1);
    assert_eq!(late_by(window + 1), 9 + u64::from(window));
}

#[test]
fn only_flows_with_gaps_remember_more_than_one_packet() {
    let bytes = |arrivals: &[u32]| {
        let mut flows = Flows::default();
        for &sequence in arrivals {
            let packet = Received {
                sequence,
                sent_at: Instant::ZERO,
                delay_ns: 5,
            };
            if flows.on_successor(0, packet).is_none() {
                flows.on_out_of_turn(0, packet);
            }
        }
        flows.bytes()
    };
    assert_eq!(bytes(&[0, 1, 2, 3, 4, 5]), 40);
    let window = size_of::<Window>();
    assert!(window <= 2096, "{window}");
    assert_eq!(bytes(&[0, 1, 2, 4, 5]), 40 + window);
    assert_eq!(bytes(&[3, 2]), 40 + window);
}
