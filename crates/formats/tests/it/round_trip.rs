//! What is written reads the same, for every policy that IOS can express.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use slicewise_formats::ios;
use slicewise_model::{
    AccessEntry, AccessList, Action, BurstBits, BurstSpec, ClassMap, ClassSpec, ColourMode,
    Condition, Discipline, IpPrefix, MatchMode, PolicerSpec, PolicySpec, PrioritySpec,
    QueueLimitSpec, QueueSpec, RateSpec, RedCurveSpec, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};
use std::ops::RangeInclusive;

fn vlans() -> impl Strategy<Value = RangeInclusive<u16>> {
    (1..=4094u16, 0..50u16).prop_map(|(first, more)| first..=(first + more).min(4094))
}

fn ports() -> impl Strategy<Value = RangeInclusive<u16>> {
    (any::<u16>(), any::<u16>()).prop_map(|(a, b)| a.min(b)..=a.max(b))
}

fn prefix() -> impl Strategy<Value = IpPrefix> {
    (any::<u32>(), 0..=32u8)
        .prop_map(|(a, n)| IpPrefix::new(std::net::Ipv4Addr::from(a).into(), n).unwrap())
}

/// Up to eight DSCPs, or up to four precedences.
fn code_points() -> impl Strategy<Value = u64> {
    let dscps = prop::collection::vec(0..64u64, 1..=8)
        .prop_map(|values| values.into_iter().fold(0, |set, dscp| set | 1 << dscp));
    let precedences = prop::collection::vec(0..8u64, 1..=4)
        .prop_map(|values| values.into_iter().fold(0, |set, p| set | 0xff << (8 * p)));
    prop_oneof![dscps, precedences]
}

/// Conditions in the order in which the parser gives them.
fn extended_entry() -> impl Strategy<Value = Vec<Condition>> {
    let ports = || prop::option::of(ports());
    let with_ports = (select(vec![6u8, 17, 132]), ports(), ports())
        .prop_map(|(protocol, from, to)| (Some(protocol), from, to));
    let without = prop::option::of(1..=255u8).prop_map(|protocol| (protocol, None, None));
    let code_point = prop_oneof![
        (0..64u8).prop_map(|dscp| Condition::Dscp(1 << dscp)),
        (0..8u8).prop_map(Condition::precedence)
    ];
    let transport = prop_oneof![with_ports, without];
    (transport, prefix(), prefix(), prop::option::of(code_point)).prop_map(
        |((protocol, from, to), source, destination, code_point)| {
            let destination = Some(destination).filter(|&d| d != IpPrefix::ALL_IPV4);
            let mut conditions: Vec<Condition> = Vec::new();
            conditions.extend(protocol.map(Condition::Protocol));
            conditions.push(Condition::Source(source));
            conditions.extend(from.map(Condition::SourcePort));
            conditions.extend(destination.map(Condition::Destination));
            conditions.extend(to.map(Condition::DestinationPort));
            conditions.extend(code_point);
            conditions
        },
    )
}

fn access_list(name: String, standard: bool) -> BoxedStrategy<AccessList> {
    let conditions = if standard {
        prefix()
            .prop_map(|source| vec![Condition::Source(source)])
            .boxed()
    } else {
        extended_entry().boxed()
    };
    let entry = (any::<bool>(), conditions)
        .prop_map(|(permit, conditions)| AccessEntry { permit, conditions });
    prop::collection::vec(entry, 1..4)
        .prop_map(move |entries| AccessList {
            name: name.clone(),
            entries,
        })
        .boxed()
}

/// `unique` keeps the names of access lists apart.
fn condition(unique: u32) -> BoxedStrategy<Condition> {
    let plain = prop_oneof![
        Just(Condition::Everything),
        vlans().prop_map(Condition::OuterVlan),
        vlans().prop_map(Condition::InnerVlan),
        Just(Condition::Source(IpPrefix::ALL_IPV4)),
        Just(Condition::Source(IpPrefix::ALL_IPV6)),
        select(vec![1u8, 6, 17]).prop_map(Condition::Protocol),
        code_points().prop_map(Condition::Dscp),
        access_list(format!("list-{unique}"), false).prop_map(Condition::AccessList),
        access_list((1300 + unique).to_string(), true).prop_map(Condition::AccessList),
        access_list((2000 + unique).to_string(), false).prop_map(Condition::AccessList),
    ];
    (plain, any::<bool>())
        .prop_map(|(condition, negated)| {
            if negated {
                Condition::Not(Box::new(condition))
            } else {
                condition
            }
        })
        .boxed()
}

fn class_map(unique: u32) -> BoxedStrategy<ClassMap> {
    let conditions: Vec<_> = (0..3).map(|index| condition(10 * unique + index)).collect();
    let mode = prop_oneof![Just(MatchMode::Any), Just(MatchMode::All)];
    (mode, conditions, 0..=3usize)
        .prop_map(move |(mode, mut conditions, count)| {
            conditions.truncate(count);
            ClassMap {
                name: format!("class-{unique}"),
                mode,
                conditions,
            }
        })
        .boxed()
}

fn percent() -> impl Strategy<Value = RateSpec> {
    (1..=100u32).prop_map(|percent| RateSpec::PercentMilli(percent * 1_000))
}

fn rate() -> impl Strategy<Value = RateSpec> {
    (1..=BitRate::MAX.bits_per_second()).prop_map(|bits| RateSpec::Absolute(BitRate::new(bits)))
}

fn kilobits_only() -> impl Strategy<Value = RateSpec> {
    (1..=100_000_000u64).prop_map(|k| RateSpec::Absolute(BitRate::new(k * 1_000)))
}

fn kilobits() -> impl Strategy<Value = RateSpec> {
    prop_oneof![kilobits_only(), percent()]
}

fn size() -> impl Strategy<Value = ByteCount> {
    (1..=1_000_000_000u64).prop_map(ByteCount::new)
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Transmit),
        Just(Action::Drop),
        (0..64u8).prop_map(Action::SetDscp),
        (0..100u8).prop_map(Action::SetQosGroup)
    ]
}

fn policer() -> BoxedStrategy<PolicerSpec> {
    let by_rate = (
        rate(),
        size().prop_map(BurstSpec::Size),
        size().prop_map(BurstSpec::Size),
        rate(),
    );
    let time = || (1..=2_000u64).prop_map(|ms| BurstSpec::Time(Duration::from_millis(ms)));
    let by_share = (percent(), time(), time(), percent());
    let actions = || prop::option::of(action());
    let rates = prop_oneof![by_rate, by_share];
    (rates, any::<[bool; 3]>(), actions(), actions(), actions())
        .prop_map(
            |(
                (cir, committed, excess, peak),
                [has_cbs, has_excess, two_rates],
                conform,
                exceed,
                violate,
            )| {
                let excess = has_excess.then_some(excess);
                PolicerSpec {
                    cir,
                    cbs: has_cbs.then_some(committed),
                    ebs: excess.filter(|_| !two_rates),
                    pir: two_rates.then_some(peak),
                    pbs: excess.filter(|_| two_rates),
                    eir: None,
                    accounting: Accounting::L2,
                    refill_interval: None,
                    mode: ColourMode::Blind,
                    conform,
                    exceed,
                    violate,
                }
            },
        )
        .boxed()
}

fn shaper() -> BoxedStrategy<ShaperSpec> {
    let bursts = |unit: fn(u64) -> BurstBits, most: u64| {
        prop_oneof![
            Just((None, None)),
            (1..=most).prop_map(move |bc| (Some(unit(bc)), None)),
            (1..=most, 0..=most).prop_map(move |(bc, be)| (Some(unit(bc)), Some(unit(be)))),
        ]
    };
    let by_rate = (rate(), bursts(BurstBits::Bits, 1_000_000));
    let millis = |millis| BurstBits::Time(Duration::from_millis(millis));
    let by_share = (percent(), bursts(millis, 2_000));
    (prop_oneof![by_rate, by_share], any::<bool>())
        .prop_map(|((rate, (bc, be)), peak)| ShaperSpec {
            rate,
            committed_burst_bits: bc,
            excess_burst_bits: be,
            peak,
            accounting: Accounting::L2,
        })
        .boxed()
}

fn priority() -> impl Strategy<Value = PrioritySpec> {
    let police = prop::option::of((kilobits(), prop::option::of(size())));
    (1..=7u8, police).prop_map(|(level, police)| PrioritySpec {
        level,
        rate: police.map(|(rate, _)| rate),
        burst: police.and_then(|(_, burst)| burst),
        accounting: Accounting::L2,
    })
}

fn queue_limit() -> impl Strategy<Value = QueueLimitSpec> {
    prop_oneof![
        (1..=u32::MAX).prop_map(QueueLimitSpec::Packets),
        size().prop_map(QueueLimitSpec::Bytes),
        (1..=3_600_000_000u64).prop_map(|us| QueueLimitSpec::Time(Duration::from_micros(us))),
    ]
}

fn wred() -> BoxedStrategy<WredSpec> {
    let curves = |largest: u8| {
        let values = subsequence((0..=largest).collect::<Vec<u8>>(), 0..4).prop_shuffle();
        let threshold = || {
            prop_oneof![
                any::<u32>().prop_map(QueueLimitSpec::Packets),
                (0..=1u64 << 40).prop_map(|size| QueueLimitSpec::Bytes(ByteCount::new(size))),
                (0..=3_600_000_000u64)
                    .prop_map(|us| QueueLimitSpec::Time(Duration::from_micros(us))),
            ]
        };
        let curve = (threshold(), threshold(), 1..=65_536u32);
        (values, prop::collection::vec(curve, 4)).prop_map(|(values, curves)| {
            let curves = curves
                .into_iter()
                .map(|(min, max, mark_denominator)| RedCurveSpec {
                    min,
                    max,
                    mark_denominator,
                });
            values.into_iter().zip(curves).collect()
        })
    };
    let by_dscp = curves(63).prop_map(|curves| (WredKey::Dscp, curves));
    let by_precedence = curves(7).prop_map(|curves| (WredKey::Precedence, curves));
    (
        prop_oneof![by_dscp, by_precedence],
        prop::option::of(1..=16u8),
        any::<bool>(),
    )
        .prop_map(|((key, curves), exponential_weight, ecn)| WredSpec {
            key,
            curves,
            exponential_weight,
            ecn,
        })
        .boxed()
}

/// Which kinds of `bandwidth` the classes of a policy map have.
#[derive(Debug, Clone, Copy)]
enum Kinds {
    Kilobits,
    Percents,
    Weights,
    Any,
}

/// One class; most of them are such as IOS XE takes.
fn class(unique: Option<u32>, kinds: Kinds) -> BoxedStrategy<ClassSpec> {
    let base = match unique {
        Some(unique) => class_map(unique).prop_map(ClassSpec::new).boxed(),
        None => Just(ClassSpec::class_default()).boxed(),
    };
    let minimum = match kinds {
        Kinds::Kilobits => kilobits_only().boxed(),
        // Four classes of at most 25 %.
        Kinds::Percents => (1..=25u32)
            .prop_map(|percent| RateSpec::PercentMilli(percent * 1_000))
            .boxed(),
        Kinds::Weights | Kinds::Any => kilobits().boxed(),
    };
    let is_weighted = matches!(kinds, Kinds::Weights | Kinds::Any);
    let has_minimum = !matches!(kinds, Kinds::Weights);
    let sharing = (
        prop::option::of(minimum).prop_map(move |minimum| minimum.filter(|_| has_minimum)),
        prop::option::of(1..=1_000u32).prop_map(move |weight| weight.filter(|_| is_weighted)),
        prop::option::weighted(0.3, priority()),
        prop::bool::weighted(0.9),
    );
    (
        base,
        prop::option::of(policer()),
        prop::option::of(0..64u8),
        sharing,
        prop::option::of(shaper()),
        prop::option::of(queue_limit()),
        prop::option::of(wred()),
    )
        .prop_map(
            |(
                base,
                police,
                set_dscp,
                (minimum, weight, priority, tidy),
                shape,
                queue_limit,
                wred,
            )| {
                let is_priority = tidy && priority.is_some();
                ClassSpec {
                    police,
                    set_dscp,
                    priority,
                    minimum: minimum.filter(|_| !is_priority),
                    weight: weight.filter(|_| !is_priority),
                    shape,
                    queue: wred
                        .map_or_else(QueueSpec::default, QueueSpec::from)
                        .with_limit(queue_limit),
                    ..base
                }
            },
        )
        .boxed()
}

fn level(first: u32, name: &'static str) -> BoxedStrategy<PolicySpec> {
    let kinds = select(vec![
        Kinds::Kilobits,
        Kinds::Percents,
        Kinds::Weights,
        Kinds::Any,
    ]);
    let classes = kinds.prop_flat_map(move |kinds| {
        let classes: Vec<_> = (first..first + 3)
            .map(|unique| class(Some(unique), kinds))
            .collect();
        (classes, 0..=3usize, prop::option::of(class(None, kinds)))
    });
    classes
        .prop_map(move |(mut classes, count, rest)| {
            classes.truncate(count);
            classes.extend(rest);
            PolicySpec {
                name: name.into(),
                classes,
                discipline: Discipline::MinimumShare,
                guaranteed: None,
                queues: Vec::new(),
            }
        })
        .boxed()
}

/// Two levels; the child hangs at any class of the parent.
fn policy() -> impl Strategy<Value = PolicySpec> {
    (
        level(0, "parent"),
        level(10, "child"),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut parent, child, index)| {
            if !parent.classes.is_empty() {
                let at = index.index(parent.classes.len());
                parent.classes[at].child = Some(Box::new(child));
            }
            parent
        })
}

/// The rules of IOS XE once more, written for whole policies; and whether weights stand where they can only be
/// written as percentages, which not all are.
fn is_refused(policy: &PolicySpec) -> bool {
    let classes = || policy.classes.iter();
    let any = |is: fn(&ClassSpec) -> bool| classes().any(is);
    let absolute = |class: &ClassSpec| matches!(class.minimum, Some(RateSpec::Absolute(_)));
    let percent = |class: &ClassSpec| match class.minimum {
        Some(RateSpec::PercentMilli(milli)) => milli,
        _ => 0,
    };
    let queues = |class: &ClassSpec| {
        (class.priority.is_some() || class.shape.is_some())
            || (class.minimum.is_some() || class.weight.is_some())
    };
    let child_queues = |class: &ClassSpec| {
        let child = class.child.as_ref();
        child.is_some_and(|child| child.classes.iter().any(queues))
    };
    let is_mixed = classes().any(absolute) && classes().any(|class| percent(class) > 0);
    let is_weighted = any(|class| class.weight.is_some())
        && (any(|class| class.minimum.is_some())
            || any(|class| class.weight.is_some() && class.priority.is_some()));
    is_mixed
        || is_weighted
        || any(|class| class.priority.is_some() && class.minimum.is_some())
        || classes().any(|class| class.minimum.is_some() && child_queues(class))
        || classes().map(percent).sum::<u32>() > 100_000
        || classes().any(|class| class.child.as_ref().is_some_and(|child| is_refused(child)))
}

/// Weights in their lowest terms where every class has one: written as percentages they mean the same.
fn reduced(policy: &PolicySpec) -> PolicySpec {
    fn divisor(a: u32, b: u32) -> u32 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    let mut policy = policy.clone();
    let common = (policy.classes.iter())
        .filter_map(|class| class.weight)
        .fold(0, divisor);
    let is_complete =
        (policy.classes.iter()).all(|class| class.weight.is_some() || class.priority.is_some());
    for class in &mut policy.classes {
        if is_complete {
            class.weight = class.weight.map(|weight| weight / common.max(1));
        }
        class.child = class.child.as_ref().map(|child| Box::new(reduced(child)));
    }
    policy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_policy_reads_as_it_was_written(policy in policy()) {
        let text = match ios::write(&policy) {
            Ok(text) => text,
            Err(error) => {
                prop_assert!(is_refused(&policy), "{}", error);
                return Ok(());
            }
        };
        let read = ios::parse(&text).unwrap().policy(Some(&policy.name));
        let read = read.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?.spec;
        if is_refused(&policy) {
            prop_assert_eq!(&reduced(&read), &reduced(&policy), "{}", text);
        } else {
            prop_assert_eq!(&read, &policy, "{}", text);
        }
        prop_assert_eq!(ios::write(&read).unwrap(), text);
    }
}
