//! What each scheduler promises, over random traffic.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "small numbers of a test"
)]

use crate::support::*;
use proptest::prelude::*;
use slicewise_model::{
    Discipline, ManagerSpec, PolicySpec, PrioritySpec, QueueLimitSpec, Rate, RateSpec, ShaperParams,
};
use slicewise_units::{Accounting, ByteCount, Duration};

fn arrivals(vlans: u16, count: usize, gap_ns: u64) -> impl Strategy<Value = Vec<Arrival>> {
    prop::collection::vec((0..gap_ns, 0..vlans, 60u32..1522), count).prop_map(|steps| {
        let mut at = 0;
        steps
            .into_iter()
            .map(|(gap, vlan, bytes)| {
                at += gap;
                arrival(at, vlan, bytes)
            })
            .collect()
    })
}

/// Two equal ports get the same traffic; one is also polled at additional times.
fn assert_extra_polls_change_nothing(
    port: impl Fn() -> Port,
    traffic: &[Arrival],
    mut extra: Vec<u64>,
) {
    let mut asked = port();
    asked.offer_all(traffic);
    asked.run_until(u64::MAX / 2);
    let mut eager = port();
    extra.sort_unstable();
    let mut polls = extra.into_iter().peekable();
    for arrival in traffic {
        while let Some(at) = polls.next_if(|&at| at < arrival.at) {
            eager.run_until(at);
            // Too early by `poll_at`: must yield nothing.
            if eager.pipeline.poll_at().is_none_or(|due| due.nanos() > at) {
                let early = slicewise_units::Instant::from_nanos(at);
                assert!(eager.pipeline.poll_egress(early).is_none());
            }
        }
        let _ = eager.offer(*arrival);
    }
    eager.run_until(u64::MAX / 2);
    assert_eq!(asked.departures, eager.departures);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn strict_priority_never_sends_a_lower_class_while_a_higher_one_waits(
        traffic in arrivals(3, 300, 500_000),
    ) {
        let classes = (0..3u16)
            .map(|vlan| {
                let mut class = vlan_class(vlan);
                class.priority = Some(priority(vlan as u8 + 1));
                class
            })
            .collect();
        let mut port = Port::new(&policy(classes), Some(rate("20 Mbit/s")));
        port.offer_all(&traffic);
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.departures.len(), traffic.len());
        for (index, sent) in port.departures.iter().enumerate() {
            for later in &port.departures[index + 1..] {
                let arrived = traffic[later.sequence as usize].at;
                prop_assert!(
                    later.vlan >= sent.vlan || arrived >= sent.at,
                    "{later:?} waited since {arrived} while {sent:?} was sent"
                );
            }
        }
    }

    #[test]
    fn a_shaper_never_exceeds_burst_plus_rate_times_time(
        traffic in arrivals(1, 400, 300_000),
        burst in 1522u64..20_000,
    ) {
        let spec = policy(vec![shaped(0, "8 Mbit/s", burst * 8)]);
        let mut port = Port::new(&spec, None);
        port.offer_all(&traffic);
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.departures.len(), traffic.len());
        for first in 0..port.departures.len() {
            let mut bytes = 0;
            for sent in &port.departures[first..] {
                bytes += u64::from(sent.bytes);
                let elapsed = sent.at - port.departures[first].at;
                // 8 Mbit/s is one byte a microsecond.
                prop_assert!(bytes * 1000 <= burst * 1000 + elapsed, "{bytes} B in {elapsed} ns");
            }
        }
    }

    #[test]
    fn a_link_without_shapers_never_idles_while_a_frame_waits(
        traffic in arrivals(4, 300, 400_000),
    ) {
        let mut port = Port::new(&drr(&[(0, 1), (1, 3), (2, 5)]), Some(rate("20 Mbit/s")));
        port.offer_all(&traffic);
        port.run_until(u64::MAX / 2);
        let mut busy_until = 0;
        let mut arrived = traffic.iter().map(|a| a.at).collect::<Vec<_>>();
        arrived.sort_unstable();
        for (n, sent) in port.departures.iter().enumerate() {
            // The n-th departure starts when the link is free, unless nothing had arrived by then.
            let earliest = busy_until.max(arrived[n].min(sent.at));
            prop_assert!(sent.at <= earliest + 1, "frame {n} left at {}, could at {earliest}", sent.at);
            busy_until = sent.at + u64::from(sent.bytes) * 400;
        }
    }

    #[test]
    fn a_minimum_is_met_whatever_the_others_offer(
        others in prop::collection::vec(60u32..1522, 50..200),
        minimum_mbit in 2u64..9,
    ) {
        let mut guaranteed = vlan_class(1);
        guaranteed.minimum = Some(RateSpec::Absolute(slicewise_units::BitRate::new(minimum_mbit * 1_000_000)));
        guaranteed.weight = Some(1);
        let mut greedy = vlan_class(2);
        greedy.weight = Some(100);
        for class in [&mut guaranteed, &mut greedy] {
            class.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
        }
        let mut port = Port::new(&policy(vec![guaranteed, greedy]), Some(rate("10 Mbit/s")));
        for round in 0..20 {
            for bytes in &others {
                let _ = port.offer(arrival(0, 2, *bytes));
            }
            let _ = round;
        }
        port.offer_all(&[arrival(0, 1, 1000); 2_000]);
        let span = Duration::from_millis(500).nanos().min(20 * others.iter().map(|&b| u64::from(b) * 800).sum::<u64>());
        port.run_until(span);
        let sent = bytes_sent(&port.departures, 1, 0, span);
        let promised = minimum_mbit * span / 8_000;
        prop_assert!(sent + 2 * 1522 >= promised, "{sent} B of {promised} B promised");
    }

    #[test]
    fn polling_more_often_than_asked_changes_nothing(
        traffic in arrivals(3, 200, 400_000),
        extra in prop::collection::vec(0u64..80_000_000, 50),
    ) {
        let spec = || {
            let mut low = shaped(1, "5 Mbit/s", 16_000);
            low.minimum = Some(RateSpec::Absolute(rate("2 Mbit/s")));
            policy(vec![shaped(0, "10 Mbit/s", 40_000), low])
        };
        assert_extra_polls_change_nothing(|| Port::new(&spec(), None), &traffic, extra);
    }

    #[test]
    fn polling_more_often_under_a_shaper_over_schedulers_changes_nothing(
        traffic in arrivals(4, 200, 400_000),
        extra in prop::collection::vec(0u64..80_000_000, 50),
    ) {
        let port = || {
            let mut first = vlan_class(0);
            first.priority = Some(priority(1));
            let mut minimum = vlan_class(1);
            minimum.minimum = Some(RateSpec::Absolute(rate("2 Mbit/s")));
            let spec = policy(vec![first, minimum, shaped(2, "3 Mbit/s", 16_000)]);
            let shaper = ShaperParams {
                rate: Rate::l2(rate("8 Mbit/s")),
                burst: ByteCount::new(3_000),
                priority_borrows: false,
            };
            Port::with_shaper(&spec, None, Some(shaper))
        };
        assert_extra_polls_change_nothing(port, &traffic, extra);
    }

    #[test]
    fn every_frame_is_sent_queued_or_dropped_for_one_reason(
        traffic in arrivals(5, 400, 60_000),
        stop in 0u64..40_000_000,
    ) {
        let mut police = vlan_class(0);
        police.police = Some(slicewise_model::PolicerSpec {
            cbs: Some(slicewise_model::BurstSpec::Size(ByteCount::new(3000))),
            ..slicewise_model::PolicerSpec::new(RateSpec::Absolute(rate("1 Mbit/s")))
        });
        let mut priority = vlan_class(1);
        priority.priority = Some(PrioritySpec {
            level: 1,
            rate: Some(RateSpec::Absolute(rate("1 Mbit/s"))),
            burst: Some(ByteCount::new(2000)),
            accounting: Accounting::L2,
        });
        let mut limited = shaped(2, "2 Mbit/s", 16_000);
        limited.queue.limit = Some(QueueLimitSpec::Bytes(ByteCount::new(5_000)));
        let mut early = vlan_class(3);
        early.queue.manager = ManagerSpec::Red(red(1, 4, 2));
        let mut port = Port::new(&policy(vec![police, priority, limited, early]), Some(rate("10 Mbit/s")));
        port.offer_all(&traffic);
        port.run_until(stop);
        assert_conserved(&port);
        assert_in_order(&port.departures);
        port.run_until(u64::MAX / 2);
        assert_conserved(&port);
        prop_assert_eq!(port.pipeline.backlog(), 0);
    }
}

#[test]
fn excess_is_shared_by_weight_and_does_not_consume_the_minimum() {
    let mut a = vlan_class(1);
    a.minimum = Some(RateSpec::Absolute(rate("2 Mbit/s")));
    a.weight = Some(1);
    let mut b = vlan_class(2);
    b.weight = Some(3);
    for class in [&mut a, &mut b] {
        class.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
    }
    let mut port = Port::new(&policy(vec![a, b]), Some(rate("10 Mbit/s")));
    port.offer_all(&[1, 2].map(|vlan| arrival(0, vlan, 1000)).repeat(2_000));
    let second = 1_000_000_000;
    port.run_until(second);
    // 2 Mbit/s + a quarter of the other 8 for one, three quarters for the other.
    let sent = |vlan| bytes_sent(&port.departures, vlan, 0, second);
    assert!(sent(1).abs_diff(500_000) <= 3 * 1522, "{}", sent(1));
    assert!(sent(2).abs_diff(750_000) <= 3 * 1522, "{}", sent(2));
}

#[test]
fn classes_with_credit_for_their_minimum_take_turns() {
    let classes = (1..=3).map(|vlan| {
        let mut class = vlan_class(vlan);
        class.minimum = Some(RateSpec::Absolute(rate("2 Mbit/s")));
        class
    });
    let mut port = Port::new(&policy(classes.collect()), Some(rate("10 Mbit/s")));
    for _ in 0..3 {
        for vlan in 1..=3 {
            let _ = port.offer(arrival(0, vlan, 1000));
        }
    }
    port.run_until(u64::MAX / 2);
    let order: Vec<u16> = port.departures.iter().map(|left| left.vlan).collect();
    assert_eq!(order, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_limit_in_bytes_holds_however_many_frames_have_left() {
    let mut class = vlan_class(1);
    class.queue.limit = Some(QueueLimitSpec::Bytes(ByteCount::new(3_000)));
    let mut port = Port::new(&policy(vec![class]), Some(rate("1 Mbit/s")));
    for round in 0..50 {
        // One frame leaves every 12 ms, and as many fit as have left.
        port.offer_all(&[arrival(round * 12_000_000, 1, 1_500); 4]);
        assert!(port.pipeline.backlog() <= 2, "round {round}");
    }
    assert!(port.departures.len() >= 45);
}

#[test]
fn priority_frames_borrow_from_a_port_shaper_and_others_pay() {
    let mut critical = vlan_class(1);
    critical.priority = Some(priority(1));
    let shaper = |priority_borrows| ShaperParams {
        rate: Rate::l2(rate("8 Mbit/s")),
        burst: ByteCount::new(2_000),
        priority_borrows,
    };
    let traffic = merged(vec![
        // Lengths that do not divide each other: arrivals drift past the moments credit is there.
        constant(1, 970, rate("2 Mbit/s"), Duration::from_secs(1)),
        constant(2, 1000, rate("20 Mbit/s"), Duration::from_secs(1)),
    ]);
    for borrows in [true, false] {
        let spec = policy(vec![critical.clone()]);
        let mut port = Port::with_shaper(&spec, Some(rate("1 Gbit/s")), Some(shaper(borrows)));
        port.offer_all(&traffic);
        let worst = port
            .departures
            .iter()
            .filter(|d| d.vlan == 1)
            .map(|d| d.at - traffic[d.sequence as usize].at)
            .max()
            .unwrap();
        if borrows {
            assert!(
                worst <= 16_000,
                "at most two frames of the link, waited {worst} ns"
            );
        } else {
            assert!(
                worst > 500_000,
                "waits for credit like any frame, waited {worst} ns"
            );
        }
        let total: u64 = [1, 2]
            .map(|v| bytes_sent(&port.departures, v, 0, 1_000_000_000))
            .iter()
            .sum();
        assert!(
            total.abs_diff(1_002_000) <= 3_000,
            "the rate holds either way: {total} B"
        );
    }
}

#[test]
fn priority_that_borrows_is_held_to_the_rate_once_it_owes_200_ms() {
    let mut critical = vlan_class(1);
    critical.priority = Some(priority(1));
    let shaper = ShaperParams {
        rate: Rate::l2(rate("8 Mbit/s")),
        burst: ByteCount::new(2_000),
        priority_borrows: true,
    };
    let second = 1_000_000_000;
    let traffic = constant(1, 1_000, rate("20 Mbit/s"), Duration::from_secs(3));
    let mut port = Port::with_shaper(
        &policy(vec![critical]),
        Some(rate("1 Gbit/s")),
        Some(shaper),
    );
    port.offer_all(&traffic);
    let sent = |from, to| bytes_sent(&port.departures, 1, from, to);
    // The bucket, 200 ms of the rate, and the rate; then the rate alone.
    let first = sent(0, second);
    assert!(first.abs_diff(1_202_000) <= 2_000, "{first}");
    let later = sent(second, 3 * second);
    assert!(later.abs_diff(2_000_000) <= 2_000, "{later}");
}

#[test]
fn a_frame_longer_than_the_burst_still_leaves_and_is_paid_for() {
    let mut port = Port::new(&policy(vec![shaped(0, "8 Mbit/s", 1522 * 8)]), None);
    port.offer_all(&[arrival(0, 0, 9000); 3]);
    port.run_until(u64::MAX / 2);
    let at: Vec<u64> = port.departures.iter().map(|d| d.at).collect();
    // One byte a microsecond: each must wait for the 9000 of the one before.
    assert_eq!(at, [0, 9_000_000, 18_000_000]);
}

#[test]
fn a_fifo_policy_keeps_one_order_over_all_classes() {
    let spec = PolicySpec {
        discipline: Discipline::Fifo,
        ..policy(vec![vlan_class(1), vlan_class(2)])
    };
    let mut port = Port::new(&spec, Some(rate("10 Mbit/s")));
    let traffic = merged(vec![
        constant(1, 700, rate("9 Mbit/s"), Duration::from_millis(20)),
        constant(2, 300, rate("9 Mbit/s"), Duration::from_millis(20)),
    ]);
    port.offer_all(&traffic);
    port.run_until(u64::MAX / 2);
    assert!(
        port.departures
            .windows(2)
            .all(|pair| pair[0].sequence < pair[1].sequence)
    );
    assert_conserved(&port);
}

#[test]
fn a_nested_policy_shares_what_its_parent_got() {
    let mut gold = vlan_class(1);
    gold.weight = Some(3);
    let mut silver = vlan_class(2);
    silver.weight = Some(1);
    for class in [&mut gold, &mut silver] {
        class.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
    }
    let mut tenant = slicewise_model::ClassSpec::new(slicewise_model::ClassMap {
        name: "tenant".into(),
        mode: slicewise_model::MatchMode::Any,
        conditions: vec![slicewise_model::Condition::OuterVlan(1..=2)],
    });
    tenant.shape = shaped(0, "4 Mbit/s", 16_000).shape;
    tenant.child = Some(Box::new(policy(vec![gold, silver])));
    let mut rest = slicewise_model::ClassSpec::class_default();
    rest.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
    let mut port = Port::new(&policy(vec![tenant, rest]), Some(rate("10 Mbit/s")));
    port.offer_all(&[1, 2, 3].map(|vlan| arrival(0, vlan, 1000)).repeat(2_000));
    port.run_until(1_000_000_000);
    let sent = |vlan| bytes_sent(&port.departures, vlan, 0, 1_000_000_000);
    assert!(
        sent(1).abs_diff(375_000) <= 6_000,
        "three quarters of 4 Mbit/s: {}",
        sent(1)
    );
    assert!(
        sent(2).abs_diff(125_000) <= 6_000,
        "one quarter of 4 Mbit/s: {}",
        sent(2)
    );
    assert!(
        sent(3).abs_diff(750_000) <= 6_000,
        "what the tenant's shaper leaves: {}",
        sent(3)
    );
    let names: Vec<&str> = port.pipeline.counters().map(|c| c.class.as_str()).collect();
    assert_eq!(
        names,
        [
            "tenant/vlan1",
            "tenant/vlan2",
            "tenant/class-default",
            "class-default"
        ]
    );
}
