//! Policers and random early detection in a pipeline: who is dropped, who is remarked, and that
//! neither delays anyone.

use crate::support::*;
use slicewise_dataplane::{DropReason, Pipeline, PipelineParams, Verdict};
use slicewise_model::{Action, ClassSpec, PolicerSpec, PrioritySpec, RateSpec, WredSpec};
use slicewise_units::{Accounting, ByteCount, Duration, Instant};

fn police(text: &str) -> PolicerSpec {
    PolicerSpec::new(RateSpec::Absolute(rate(text)))
}

fn dropped(port: &Port, class: &str, reason: DropReason) -> u64 {
    let counters = port.pipeline.counters();
    let class = counters
        .into_iter()
        .find(|counters| counters.class == class)
        .unwrap();
    class.dropped(reason)
}

#[test]
fn a_policer_drops_the_excess_and_delays_nothing() {
    let policed = ClassSpec {
        police: Some(police("17.5 Mbit/s")),
        ..vlan_class(1)
    };
    let mut port = Port::new(&policy(vec![policed]), Some(rate("1 Gbit/s")));
    let traffic = constant(1, 1_500, rate("35 Mbit/s"), Duration::from_secs(4));
    port.offer_all(&traffic);
    port.run_until(5_000_000_000);
    assert_conserved(&port);
    let sent = bytes_sent(&port.departures, 1, 0, u64::MAX);
    let promised = 546_875 + 4 * 17_500_000 / 8;
    assert!(
        sent <= promised && sent > promised - 2 * 1_500,
        "{sent} of {promised} bytes"
    );
    assert_eq!(dropped(&port, "vlan1", DropReason::Policed), port.dropped);
    for departure in &port.departures {
        let sequence = usize::try_from(departure.sequence).unwrap();
        assert_eq!(departure.at, traffic[sequence].at);
    }
}

#[test]
fn exceeding_frames_leave_with_the_remarked_code_point() {
    let policed = ClassSpec {
        police: Some(PolicerSpec {
            cbs: Some(ByteCount::new(2_000).into()),
            exceed: Some(Action::SetDscp(8)),
            conform: Some(Action::SetQosGroup(1)),
            ..police("8 Mbit/s")
        }),
        set_dscp: Some(46),
        ..vlan_class(1)
    };
    let params = PipelineParams {
        policy: policy(vec![policed]).resolve(rate("1 Gbit/s")).unwrap(),
        port_shaper: None,
        seed: 1,
    };
    let mut pipeline = Pipeline::new(&params, Instant::ZERO).unwrap();
    for sequence in 0..3 {
        let verdict = pipeline.on_frame(frame(sequence, 1, 1_000), &headers(1), Instant::ZERO);
        assert_eq!(verdict, Verdict::Queued);
    }
    let left = std::iter::from_fn(|| pipeline.poll_egress(Instant::ZERO));
    assert_eq!(
        left.map(|frame| frame.traffic_class.dscp())
            .collect::<Vec<_>>(),
        [46, 46, 8]
    );
}

/// `random-detect dscp 0 1 1 1` on top of `shape average 17500000`, overloaded by a third: all
/// drops are forced, long before the queue of 72 is full.
#[test]
fn wred_1_1_1_keeps_the_queue_of_a_shaped_class_short() {
    let class = ClassSpec {
        shape: Some(RateSpec::Absolute(rate("17.5 Mbit/s")).into()),
        queue: WredSpec {
            exponential_weight: None,
            ..red(1, 1, 1)
        }
        .into(),
        ..vlan_class(1)
    };
    let mut port = Port::new(&policy(vec![class]), Some(rate("1 Gbit/s")));
    let mut longest = 0;
    for arrival in constant(1, 1_500, rate("23 Mbit/s"), Duration::from_secs(10)) {
        let _ = port.offer(arrival);
        longest = longest.max(port.pipeline.backlog());
    }
    assert_conserved(&port);
    assert_eq!(dropped(&port, "vlan1", DropReason::RedForced), port.dropped);
    assert!(port.dropped > 0);
    assert!(longest < 36, "{longest} packets waited");
}

#[test]
fn a_priority_class_is_held_to_its_rate_only_while_others_wait_and_a_change_gives_it_no_new_burst()
{
    let gold = ClassSpec {
        priority: Some(PrioritySpec {
            level: 1,
            rate: Some(RateSpec::Absolute(rate("1 Mbit/s"))),
            burst: Some(ByteCount::new(3_000)),
            accounting: Accounting::L2,
        }),
        ..vlan_class(1)
    };
    let spec = policy(vec![gold]);
    let mut port = Port::new(&spec, Some(rate("10 Mbit/s")));
    // 8 Mbit/s: each frame has left when the next one comes.
    let mut offer = |port: &mut Port, vlan| {
        let at = port.now() + if vlan == 1 { 1_000_000 } else { 0 };
        port.offer(arrival(at, vlan, 1_000))
    };
    for _ in 0..100 {
        assert_eq!(offer(&mut port, 1), Verdict::Queued);
    }
    for _ in 0..64 {
        let _ = offer(&mut port, 2);
    }
    let queued = |port: &mut Port, offer: &mut dyn FnMut(&mut Port, u16) -> Verdict| {
        let verdicts: Vec<_> = (0..20).map(|_| offer(port, 1)).collect();
        let excess = Verdict::Dropped(DropReason::PriorityExceeded);
        assert!(
            verdicts
                .iter()
                .all(|v| [Verdict::Queued, excess].contains(v))
        );
        verdicts.iter().filter(|v| **v == Verdict::Queued).count()
    };
    // 125 bytes come in each millisecond: 5,500 in all with a full bucket, of which the 100 frames left less than a frame.
    let first = queued(&mut port, &mut offer);
    assert!((2..=3).contains(&first), "{first}");
    port.apply(&spec);
    let second = queued(&mut port, &mut offer);
    assert!((2..=3).contains(&second), "{second}");
    assert_eq!(port.dropped, 40 - (first + second) as u64);
    assert_conserved(&port);
}
