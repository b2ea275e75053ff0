//! Policies of every shape that traffic control might be asked for; many resolve.

use proptest::prelude::*;
use proptest::sample::select;
use slicewise_model::{
    Action, ClassMap, ClassSpec, Condition, Discipline, FlowQueueSpec, FlowsSpec, MatchMode,
    PolicerSpec, PolicySpec, PrioritySpec, QueueLimitSpec, QueueSpec, RateSpec, ShaperSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

fn rate() -> impl Strategy<Value = RateSpec> {
    prop_oneof![
        8 => (1u32..=20).prop_map(|percent| RateSpec::PercentMilli(percent * 1_000)),
        1 => (1u64..=1_000_000_000).prop_map(|rate| RateSpec::Absolute(BitRate::new(rate))),
        1 => Just(RateSpec::Absolute(BitRate::MAX)),
    ]
}

fn accounting() -> impl Strategy<Value = Accounting> {
    (
        select(vec![Accounting::L1, Accounting::L2, Accounting::L3]),
        select(vec![0i16, 0, 0, 20, -8]),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(accounting, overhead_bytes, in_atm_cells)| Accounting {
            overhead_bytes,
            in_atm_cells,
            ..accounting
        })
}

fn class_map(index: usize) -> impl Strategy<Value = ClassMap> {
    let condition = select(vec![
        Condition::Everything,
        Condition::OuterVlan(1..=9),
        Condition::InnerVlan(3..=3),
        Condition::Source("2001:db8::/33".parse().unwrap()),
        Condition::Not(Box::new(Condition::Destination(
            "10.0.0.0/7".parse().unwrap(),
        ))),
        Condition::DestinationPort(1..=1023),
        Condition::Dscp(0xf0f0),
    ]);
    (prop::collection::vec(condition, 0..3), any::<bool>()).prop_map(move |(conditions, any)| {
        ClassMap {
            name: format!("c{index}"),
            mode: if any { MatchMode::Any } else { MatchMode::All },
            conditions,
        }
    })
}

fn policer() -> impl Strategy<Value = PolicerSpec> {
    let action = select(vec![
        Action::Transmit,
        Action::Drop,
        Action::Drop,
        Action::SetDscp(8),
    ]);
    let optional = || prop::option::of(rate());
    (
        rate(),
        optional(),
        optional(),
        accounting(),
        prop::option::of(action),
    )
        .prop_map(|(cir, pir, eir, accounting, violate)| PolicerSpec {
            pir,
            eir,
            accounting,
            violate,
            ..PolicerSpec::new(cir)
        })
}

fn limit() -> impl Strategy<Value = QueueLimitSpec> {
    prop_oneof![
        (1u32..=u32::MAX).prop_map(QueueLimitSpec::Packets),
        (1_522u64..=1 << 33).prop_map(|bytes| QueueLimitSpec::Bytes(ByteCount::new(bytes))),
        (1u64..200).prop_map(|ms| QueueLimitSpec::Time(Duration::from_millis(ms))),
    ]
}

/// What a class has: nothing most of the time, so that not too much excludes each other.
fn sometimes<S: Strategy>(strategy: S) -> impl Strategy<Value = Option<S::Value>> {
    prop::option::weighted(0.2, strategy)
}

fn class(index: usize, child: bool) -> BoxedStrategy<ClassSpec> {
    let priority =
        (1u8..=9, prop::option::of(rate()), accounting()).prop_map(|(level, rate, accounting)| {
            PrioritySpec {
                level,
                rate,
                burst: None,
                accounting,
            }
        });
    let shape =
        (rate(), any::<bool>(), accounting()).prop_map(|(rate, peak, accounting)| ShaperSpec {
            rate,
            committed_burst_bits: None,
            excess_burst_bits: None,
            peak,
            accounting,
        });
    let flows = sometimes(select(vec![1u32, 64])).prop_map(|flows| FlowQueueSpec {
        flows: FlowsSpec {
            flows,
            ..FlowsSpec::default()
        },
        ..FlowQueueSpec::default()
    });
    let child = if child {
        sometimes(policy(false)).boxed()
    } else {
        Just(None).boxed()
    };
    let basics = (class_map(index), sometimes(policer()), sometimes(priority));
    let shares = (
        sometimes(rate()),
        sometimes(1u32..=u32::MAX),
        sometimes(shape),
    );
    let queue = (sometimes(limit()), sometimes(flows), child);
    (basics, shares, queue)
        .prop_map(
            |(
                (map, police, priority),
                (minimum, weight, shape),
                (queue_limit, flow_queue, child),
            )| {
                ClassSpec {
                    police,
                    priority,
                    minimum,
                    weight,
                    shape,
                    queue: flow_queue
                        .map_or_else(QueueSpec::default, QueueSpec::from)
                        .with_limit(queue_limit),
                    child: child.map(Box::new),
                    ..ClassSpec::new(map)
                }
            },
        )
        .boxed()
}

/// A policy, with policies in its classes where `children` says so.
pub fn policy(children: bool) -> BoxedStrategy<PolicySpec> {
    let discipline = select(vec![
        Discipline::MinimumShare,
        Discipline::MinimumShare,
        Discipline::MinimumShare,
        Discipline::DeficitRoundRobin,
        Discipline::Fifo,
    ]);
    let classes: Vec<_> = (0..5).map(|index| class(index, children)).collect();
    (discipline, classes, 0..=5usize)
        .prop_map(|(discipline, mut classes, count)| {
            classes.truncate(count);
            PolicySpec {
                name: "p".into(),
                classes,
                discipline,
                guaranteed: None,
                queues: Vec::new(),
            }
        })
        .boxed()
}
