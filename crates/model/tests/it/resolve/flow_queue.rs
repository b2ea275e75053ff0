//! Flow queueing: defaults and rejections.

use super::support::*;
use insta::assert_snapshot;
use slicewise_model::{
    ClassSpec, CoDelSpec, Discipline, FlowQueueParams, FlowQueueSpec, FlowsSpec, PolicySpec,
};
use slicewise_units::{ByteCount, Duration};

fn with(flow_queue: FlowQueueSpec) -> ClassSpec {
    ClassSpec {
        queue: flow_queue.into(),
        ..class("a")
    }
}

fn params(flow_queue: FlowQueueSpec) -> FlowQueueParams {
    resolved(with(flow_queue)).queue.flow_queue().unwrap()
}

fn refused(flow_queue: FlowQueueSpec) -> String {
    refusal(with(flow_queue))
}

fn base() -> FlowQueueSpec {
    FlowQueueSpec::default()
}

#[test]
fn omitted_settings_are_as_in_rfc_8290() {
    let params = params(base());
    assert_eq!((params.flows.flows, params.flows.quantum), (1024, 1514));
    assert_eq!(params.codel.target, Duration::from_millis(5));
    assert_eq!(params.codel.interval, Duration::from_millis(100));
    assert!(params.codel.ecn);
    assert_eq!(params.flows.levels.count(), 1);
    assert!((0..64).all(|dscp| params.flows.levels.of(dscp) == 0));
    assert_eq!(resolved(class("a")).queue.flow_queue(), None);
}

#[test]
fn unlisted_code_points_are_on_the_last_level() {
    let params = params(FlowQueueSpec {
        flows: FlowsSpec {
            priority: vec![vec![46, 40], vec![0], vec![63]],
            ..base().flows
        },
        ..base()
    });
    assert_eq!(params.flows.levels.count(), 4);
    let levels = [46, 40, 0, 63, 1, 62].map(|dscp| params.flows.levels.of(dscp));
    assert_eq!(levels, [0, 0, 1, 2, 3, 3]);
}

#[test]
fn a_slice_may_have_a_flow_queue() {
    let spec = PolicySpec {
        discipline: Discipline::Guaranteed,
        ..policy(vec![with(base())])
    };
    let params = spec.resolve(bits(35_000_000)).unwrap();
    assert!(params.classes[0].queue.flow_queue().is_some());
}

#[test]
fn invalid_flow_queues() {
    let ms = Duration::from_millis;
    assert_snapshot!(refused(FlowQueueSpec { flows: FlowsSpec { flows: Some(0), ..base().flows }, ..base() }), @"policy `p`, class `a`: flow_queue: has 0 flows: must be 1 to 8192");
    assert_snapshot!(refused(FlowQueueSpec { flows: FlowsSpec { flows: Some(8_193), ..base().flows }, ..base() }), @"policy `p`, class `a`: flow_queue: has 8193 flows: must be 1 to 8192");
    assert_snapshot!(refused(FlowQueueSpec { codel: CoDelSpec { target: Some(Duration::ZERO), ..base().codel }, ..base() }), @"policy `p`, class `a`: flow_queue: has a target of zero: every frame exceeds it");
    assert_snapshot!(refused(FlowQueueSpec { codel: CoDelSpec { interval: Some(ms(5)), ..base().codel }, ..base() }), @"policy `p`, class `a`: flow_queue: has an interval of 5 ms, which must be longer than the target of 5 ms");
    assert_snapshot!(refused(FlowQueueSpec { codel: CoDelSpec { interval: Some(ms(4_001)), ..base().codel }, ..base() }), @"policy `p`, class `a`: flow_queue: has an interval of 4.001 s: at most 4 s");
    assert_snapshot!(refused(FlowQueueSpec { flows: FlowsSpec { quantum: Some(ByteCount::new(299)), ..base().flows }, ..base() }), @"policy `p`, class `a`: flow_queue: has a quantum of 299 B: must be 300 B to 1048576 B");
    assert_snapshot!(refused(FlowQueueSpec { flows: FlowsSpec { quantum: Some(ByteCount::new(1 << 40)), ..base().flows }, ..base() }), @"policy `p`, class `a`: flow_queue: has a quantum of 1099511627776 B: must be 300 B to 1048576 B");
}

#[test]
fn invalid_priority_levels() {
    let refused = |priority| {
        refused(FlowQueueSpec {
            flows: FlowsSpec {
                priority,
                ..base().flows
            },
            ..base()
        })
    };
    assert_snapshot!(refused(vec![vec![1], vec![2], vec![3], vec![4]]), @"policy `p`, class `a`: flow_queue: has 5 priority levels, including that of all other code points: at most 4");
    assert_snapshot!(refused(vec![vec![1], vec![]]), @"policy `p`, class `a`: flow_queue: priority level 2 has no code point");
    assert_snapshot!(refused(vec![vec![64]]), @"policy `p`, class `a`: flow_queue: code point 64 does not exist");
    assert_snapshot!(refused(vec![vec![46], vec![46]]), @"policy `p`, class `a`: flow_queue: code point 46 is listed twice");
}

#[test]
fn settings_that_exclude_a_flow_queue() {
    assert_snapshot!(refusal(ClassSpec { child: Some(Box::new(policy(vec![]))), ..with(base()) }), @"policy `p`, class `a`: child: a class divided by a child policy has no queue of its own: set the queue limit, WRED or the flow queue on the child's classes");
    let fifo = PolicySpec {
        discipline: Discipline::Fifo,
        ..policy(vec![with(base())])
    };
    assert_snapshot!(fifo.resolve(bits(35_000_000)).unwrap_err().to_string(), @"policy `p`, class `a`: flow_queue: one FIFO for all classes has one queue: set this on `class-default`");
}
