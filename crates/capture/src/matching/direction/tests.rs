//! Two hosts whose packets are captured at both, behind clocks that differ.

use super::*;
use crate::matching::tests::{Fact, Recorder, source};
use crate::matching::{MatchParams, Matcher, drive};
use proptest::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;

/// Flow 2n sends data, flow 2n + 1 answers.
const fn reverse_flow(flow: u32) -> Option<u32> {
    Some(flow ^ 1)
}

#[derive(Debug, Clone, Copy)]
struct Network {
    clock_ns: i64,
    routers: u8,
    connections: u32,
    answers: bool,
}

/// Captures at the sender and the receiver of data: each connection sends a 1500 B packet every 10 ms,
/// answered by one of 66 B. Connections begin 1 s apart and take 3 s. The delay is 1 ms to 4 ms.
fn captures(network: Network) -> (Vec<Sighting>, Vec<Sighting>) {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let far_time =
        |time_ns: u64| (1_000 * SECOND_NS + time_ns).saturating_add_signed(network.clock_ns);
    for connection in 0..network.connections {
        for packet in 0..300_u64 {
            let left = u64::from(connection) * SECOND_NS + packet * 10_000_000;
            let arrived = left + 1_000_000 + packet % 4 * 1_000_000;
            let answered = arrived + 20_000;
            let returned = answered + 1_000_000 + packet % 3 * 1_000_000;
            let one = |time_ns, key, flow, l2_bytes, ttl| Sighting {
                time_ns,
                key,
                flow,
                l2_bytes,
                ttl,
                dscp: 0,
                direction: Direction::Unknown,
                time_is_restored: false,
            };
            let key = u64::from(connection) << 32 | packet << 1;
            let (data, answer) = (connection * 2, connection * 2 + 1);
            let low = 64 - network.routers;
            near.push(one(1_000 * SECOND_NS + left, key, data, 1_500, 64));
            far.push(one(far_time(arrived), key, data + 100, 1_500, low));
            if network.answers {
                far.push(one(far_time(answered), key + 1, answer + 100, 66, 64));
                near.push(one(1_000 * SECOND_NS + returned, key + 1, answer, 66, low));
            }
        }
    }
    near.sort_by_key(|one| one.time_ns);
    far.sort_by_key(|one| one.time_ns);
    (near, far)
}

fn filtered(
    sent: &[Sighting],
    received: &[Sighting],
    prefix: usize,
) -> (Recorder, Recorder, DirectionCounts, DirectionProbe) {
    let prefix_of = |all: &'_ [Sighting]| all[..prefix.min(all.len())].to_vec();
    let probe = DirectionProbe::new(&prefix_of(sent), &prefix_of(received), reverse_flow);
    let offset = crate::matching::Alignment::probe(&prefix_of(sent), &prefix_of(received));
    let mut matcher = Matcher::new(MatchParams {
        alignment_ns: offset.map_or(0, |found| found.offset_ns(SECOND_NS / 10)),
        ..MatchParams::default()
    });
    let (forward, reverse) = (Recorder::default(), Recorder::default());
    let mut filter = DirectionFilter::new(forward, reverse, &probe, reverse_flow);
    drive(
        &mut matcher,
        source(sent, 64),
        source(received, 64),
        &mut filter,
    );
    let (forward, reverse, counts) = filter.into_parts();
    (forward, reverse, counts, probe)
}

fn received(recorder: &Recorder) -> usize {
    let is_received = |fact: &&Fact| matches!(fact, Fact::Received(..));
    recorder.facts.iter().filter(is_received).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn separates_data_from_answers_whatever_the_clocks(
        clock_ns in -100_000_000_000_i64..100_000_000_000,
        routers in 0_u8..3,
        prefix in 100_usize..400,
    ) {
        let network = Network { clock_ns, routers, connections: 4, answers: true };
        let (near, far) = captures(network);
        let (forward, reverse, counts, _) = filtered(&near, &far, prefix);
        prop_assert_eq!(counts.forward.bytes, 4 * 300 * 1_500);
        prop_assert_eq!(counts.reverse.bytes, 4 * 300 * 66);
        prop_assert_eq!((counts.forward.flows, counts.reverse.flows), (4, 4));
        prop_assert_eq!(counts.assumed_flows, 0);
        prop_assert_eq!(received(&forward), 1_200);
        prop_assert_eq!(received(&reverse), 1_200);
        prop_assert!(!counts.look_exchanged());

        let (_, _, exchanged, _) = filtered(&far, &near, prefix);
        prop_assert!(exchanged.look_exchanged());
    }

    #[test]
    fn time_to_live_reveals_swapped_captures_without_any_answer(
        clock_ns in -100_000_000_000_i64..100_000_000_000,
    ) {
        let network = Network { clock_ns, routers: 1, connections: 2, answers: false };
        let (near, far) = captures(network);
        let (_, _, counts, _) = filtered(&near, &far, 100);
        prop_assert_eq!((counts.forward.flows, counts.reverse.flows), (2, 0));
        let (_, _, counts, _) = filtered(&far, &near, 100);
        prop_assert_eq!((counts.forward.flows, counts.reverse.flows), (0, 2));
    }
}

#[test]
fn assumes_forward_if_only_the_clocks_contradict() {
    let network = Network {
        clock_ns: -5 * SECOND_NS.cast_signed(),
        routers: 0,
        connections: 2,
        answers: false,
    };
    let (near, far) = captures(network);
    let (_, _, counts, probe) = filtered(&near, &far, 1_000);
    assert_eq!((counts.forward.flows, counts.reverse.flows), (2, 0));
    assert_eq!(probe.basis, SplitBasis::Assumed);
    assert_eq!(probe.received_before_sent, probe.shared);
}

#[test]
fn trusts_clocks_that_sort_flows_into_two_kinds() {
    let network = Network {
        clock_ns: 0,
        routers: 0,
        connections: 2,
        answers: true,
    };
    let (near, far) = captures(network);
    let probe = DirectionProbe::new(&near, &far, |_| None);
    assert_eq!(probe.basis, SplitBasis::Clocks);
    let expected = [
        (0, FlowDirection::Forward),
        (1, FlowDirection::Reverse),
        (2, FlowDirection::Forward),
        (3, FlowDirection::Reverse),
    ];
    assert_eq!(probe.flows, expected);
}

#[test]
fn an_unanswered_flow_is_judged_by_the_packets_that_waited_least() {
    // Flow 0 waits in a queue and is answered; flow 2 neither waits nor is answered.
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let one = |time_ns, key, flow| Sighting {
        time_ns,
        key,
        flow,
        l2_bytes: 100,
        ttl: 64,
        dscp: 0,
        direction: Direction::Unknown,
        time_is_restored: false,
    };
    for packet in 0..100_u64 {
        let left = SECOND_NS + packet * 20_000_000;
        near.push(one(left, packet * 3, 0));
        far.push(one(left + 10_000_000, packet * 3, 0));
        far.push(one(left + 10_050_000, packet * 3 + 1, 1));
        near.push(one(left + 10_060_000, packet * 3 + 1, 1));
        near.push(one(left + 12_000_000, packet * 3 + 2, 2));
        far.push(one(left + 12_001_000, packet * 3 + 2, 2));
    }
    let (_, _, counts, probe) = filtered(&near, &far, 20);
    assert_eq!(probe.basis, SplitBasis::BothWays);
    assert_eq!((counts.forward.flows, counts.reverse.flows), (2, 1));
}

#[test]
fn a_flow_that_never_arrives_counts_as_lost() {
    let network = Network {
        clock_ns: 0,
        routers: 0,
        connections: 3,
        answers: false,
    };
    let (near, mut far) = captures(network);
    far.retain(|one| one.flow != 104);
    let (forward, reverse, counts, _) = filtered(&near, &far, 100);
    assert_eq!(counts.assumed_flows, 1);
    assert_eq!(counts.forward.packets, 900);
    let is_lost = |fact: &&Fact| matches!(fact, Fact::Lost(..));
    assert_eq!(forward.facts.iter().filter(is_lost).count(), 300);
    assert_eq!(reverse.facts, []);
}

#[test]
fn held_packets_are_reported_before_their_fate() {
    let network = Network {
        clock_ns: 0,
        routers: 1,
        connections: 1,
        answers: true,
    };
    let (near, far) = captures(network);
    let (forward, ..) = filtered(&near, &far, 0);
    let mut sent = std::collections::BTreeSet::new();
    for fact in forward.facts {
        match fact {
            Fact::Sent(key, _) => assert!(sent.insert(key)),
            Fact::Received(key, ..) => assert!(sent.contains(&key)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent.len(), 300);
}

#[test]
fn capture_directions_count_only_if_both_ends_state_them() {
    let one = |direction| Sighting {
        time_ns: 0,
        key: 0,
        flow: 0,
        l2_bytes: 0,
        ttl: 0,
        dscp: 0,
        direction,
        time_is_restored: false,
    };
    let (inbound, outbound) = (one(Direction::Inbound), one(Direction::Outbound));
    assert_eq!(
        by_capture(&outbound, &inbound),
        Some(FlowDirection::Forward)
    );
    assert_eq!(by_capture(&inbound, &outbound), None);
    assert_eq!(by_capture(&outbound, &one(Direction::Unknown)), None);
}
