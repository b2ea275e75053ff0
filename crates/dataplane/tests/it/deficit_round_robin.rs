//! Deficit round robin in a pipeline: shares, and classes that wait for a shaper of their own.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "small numbers of a test"
)]

use crate::support::*;
use proptest::prelude::*;
use slicewise_model::{Discipline, PolicySpec, QueueLimitSpec};
use slicewise_units::Instant;

/// The longest frame of these tests, bytes, and the quantum of the least weight.
const LONGEST: i64 = 1522;

/// How far apart two classes were, in bytes × both weights: at most since the start, either way,
/// and within any interval.
fn apart(departures: &[Departure], one: (u16, u32), other: (u16, u32)) -> (i64, i64) {
    let (mut ahead, mut least, mut most) = (0, 0, 0);
    for sent in departures {
        let bytes = i64::from(sent.bytes);
        if sent.vlan == one.0 {
            ahead += bytes * i64::from(other.1);
        } else if sent.vlan == other.0 {
            ahead -= bytes * i64::from(one.1);
        }
        least = least.min(ahead);
        most = most.max(ahead);
    }
    (most.max(-least), most - least)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn deficit_round_robin_keeps_shares_within_one_quantum_and_a_frame(
        weights in prop::collection::vec(1u32..8, 2..6),
        sizes in prop::collection::vec(60u32..=1522, 400),
    ) {
        let classes: Vec<(u16, u32)> = (0u16..).zip(weights.iter().copied()).collect();
        let mut port = Port::new(&drr(&classes), Some(rate("10 Mbit/s")));
        for (n, bytes) in sizes.iter().cycle().take(sizes.len() * classes.len()).enumerate() {
            let _ = port.offer(arrival(0, (n % classes.len()) as u16, *bytes));
        }
        port.run_until(u64::MAX / 2);
        // Until the first class has sent its last frame, all are backlogged.
        let mut left = vec![sizes.len(); classes.len()];
        let backlogged = port.departures.iter().position(|sent| {
            left[usize::from(sent.vlan)] -= 1;
            left[usize::from(sent.vlan)] == 0
        });
        let departures = &port.departures[..backlogged.unwrap()];
        // class-default has weight 1, which is the least.
        for (n, &one) in classes.iter().enumerate() {
            for &other in &classes[..n] {
                let (since_start, any) = apart(departures, one, other);
                let (w, v) = (i64::from(one.1), i64::from(other.1));
                let quantum = LONGEST * w * v;
                prop_assert!(since_start < quantum + LONGEST * w.max(v), "{one:?} {other:?}");
                prop_assert!(any < quantum + LONGEST * (w + v), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_shaped_class_below_its_share_gets_its_rate_at_any_weight(
        weight in 1u32..1_000_000,
    ) {
        let mut slow = shaped(0, "5 Mbit/s", 20_000);
        slow.weight = Some(weight);
        let mut greedy = vlan_class(1);
        greedy.weight = Some(weight);
        greedy.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
        let spec = PolicySpec { discipline: Discipline::DeficitRoundRobin, ..policy(vec![slow, greedy]) };
        let mut port = Port::new(&spec, Some(rate("35 Mbit/s")));
        for vlan in [0, 1] {
            port.offer_all(&[arrival(0, vlan, 1000); 5_000]);
        }
        port.run_until(1_000_000_000);
        let sent = bytes_sent(&port.departures, 0, 0, 1_000_000_000);
        prop_assert!(sent.abs_diff(625_000) <= 12_500, "{sent} B in a second at 5 Mbit/s");
    }
}

#[test]
fn a_class_that_waits_for_its_shaper_saves_no_more_than_one_turn() {
    // A tenant with a slow inner class and, after ten seconds, a fast one, next to a greedy class.
    let mut tenant = slicewise_model::ClassSpec::new(slicewise_model::ClassMap {
        name: "tenant".into(),
        mode: slicewise_model::MatchMode::Any,
        conditions: vec![slicewise_model::Condition::OuterVlan(1..=2)],
    });
    let mut fast = vlan_class(2);
    fast.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
    tenant.child = Some(Box::new(policy(vec![shaped(1, "1 Mbit/s", 16_000), fast])));
    let mut greedy = vlan_class(3);
    greedy.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
    let spec = PolicySpec {
        discipline: Discipline::DeficitRoundRobin,
        ..policy(vec![tenant, greedy])
    };
    let mut port = Port::new(&spec, Some(rate("35 Mbit/s")));
    for (vlan, frames) in [(1, 3_000), (3, 60_000)] {
        port.offer_all(&vec![arrival(0, vlan, 1000); frames]);
    }
    let (from, to) = (10_000_000_000, 11_000_000_000);
    port.run_until(from);
    port.offer_all(&[arrival(from, 2, 1000); 5_000]);
    port.run_until(to);
    let half = 35_000_000 / 8 / 2;
    let sent = bytes_sent(&port.departures, 3, from, to);
    assert!(
        sent + 5_000 >= half,
        "greedy got {sent} B of its half, {half} B"
    );
}

/// The example of docs/mechanisms/deficit-round-robin.md. A byte takes 1 us on the link and 8 us
/// in the shaper of the first class.
#[test]
fn a_kept_turn_is_used_ahead_of_others_and_no_quantum_is_added_meanwhile() {
    let mut second = vlan_class(2);
    second.weight = Some(2);
    let spec = PolicySpec {
        discipline: Discipline::DeficitRoundRobin,
        ..policy(vec![shaped(1, "1 Mbit/s", 1522 * 8), second])
    };
    let mut port = Port::new(&spec, Some(rate("8 Mbit/s")));
    port.offer_all(&[1, 2].map(|vlan| arrival(0, vlan, 1000)).repeat(30));
    let millisecond = 1_000_000;
    port.run_until(22 * millisecond);
    let order: Vec<(u64, u16)> = port.departures.iter().map(|d| (d.at, d.vlan)).collect();
    let firsts = [0, 4, 12, 21];
    let expected: Vec<(u64, u16)> = (0..22)
        .map(|n| (n * millisecond, if firsts.contains(&n) { 1 } else { 2 }))
        .collect();
    assert_eq!(order, expected);
}

/// Its owner reads ahead what belongs to it.
#[test]
fn the_frame_behind_the_one_that_left_last_is_named() {
    let mut port = Port::new(&drr(&[(1, 1), (2, 1)]), None);
    for (vlan, bytes) in [(1, 100), (2, 200), (1, 300), (2, 400)] {
        let _ = port.offer(arrival(0, vlan, bytes));
    }
    let now = Instant::ZERO;
    let sent = std::iter::from_fn(|| {
        let sent = port.pipeline.poll_egress(now)?;
        Some((sent.handle >> 16, port.pipeline.next_handle()))
    });
    let none = u64::MAX;
    let expected = [(0, 2 << 16 | 1), (2, none), (1, 3 << 16 | 2), (3, none)];
    assert_eq!(sent.collect::<Vec<_>>(), expected);
}
