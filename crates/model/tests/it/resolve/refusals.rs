use super::support::*;
use insta::assert_snapshot;
use slicewise_model::{
    AccessEntry, AccessList, Action, ClassMap, ClassSpec, Condition, Discipline, MatchMode,
    PolicerSpec, PolicySpec, PrioritySpec, QueueLimitSpec, RateSpec, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// Why these classes do not resolve for a link of 35 Mbit/s.
fn refusal_of_all(classes: Vec<ClassSpec>) -> String {
    policy(classes)
        .resolve(bits(35_000_000))
        .unwrap_err()
        .to_string()
}

fn refusal_under(discipline: Discipline, class: ClassSpec) -> String {
    let spec = PolicySpec {
        discipline,
        ..policy(vec![class])
    };
    spec.resolve(bits(35_000_000)).unwrap_err().to_string()
}

fn refusal_of_match(condition: Condition) -> String {
    let map = ClassMap {
        name: "c".to_owned(),
        mode: MatchMode::Any,
        conditions: vec![condition],
    };
    refusal(ClassSpec::new(map))
}

#[test]
fn guarantees_that_do_not_fit_the_link() {
    let classes = vec![
        guaranteed(absolute("20 Mbit/s")),
        ClassSpec {
            priority: Some(priority(Some(absolute("17.5 Mbit/s")))),
            ..class("voice")
        },
    ];
    assert_snapshot!(refusal_of_all(classes), @"policy `p`, class `voice`: priority: with 17.5 Mbit/s for this class the guarantees add up to 37.5 Mbit/s, more than the available 35 Mbit/s: lower one of them (15 Mbit/s would fit)");
    assert_snapshot!(refusal(guaranteed(absolute("35.000001 Mbit/s"))), @"policy `p`, class `critical`: minimum: guarantees 35000.001 kbit/s, more than the available 35 Mbit/s");
    let huge = vec![
        guaranteed(RateSpec::Absolute(BitRate::new(u64::MAX))),
        ClassSpec {
            minimum: Some(RateSpec::Absolute(BitRate::new(u64::MAX))),
            ..class("b")
        },
    ];
    let spec = policy(huge);
    assert!(
        spec.resolve(bits(u64::MAX)).is_err(),
        "their sum does not wrap"
    );
}

#[test]
fn a_guarantee_above_the_maximum() {
    let class = ClassSpec {
        shape: Some(shape(absolute("8 Mbit/s"))),
        ..guaranteed(absolute("10 Mbit/s"))
    };
    assert_snapshot!(refusal(class), @"policy `p`, class `critical`: minimum: guarantees 10 Mbit/s, above the maximum of 8 Mbit/s its shaper sets");
}

#[test]
fn guarantees_of_a_child_that_do_not_fit_its_parent() {
    let child = policy(vec![guaranteed(absolute("9 Mbit/s"))]);
    let parent = ClassSpec {
        child: Some(Box::new(child)),
        ..shaped(shape(absolute("8 Mbit/s")))
    };
    assert_snapshot!(refusal(parent), @"policy `p`, class `critical`: minimum: guarantees 9 Mbit/s, more than the available 8 Mbit/s");
}

#[test]
fn rates_of_zero() {
    let zero = RateSpec::Absolute(BitRate::ZERO);
    assert_snapshot!(refusal(shaped(shape(zero))), @"policy `p`, class `be`: shape: is a rate of zero: nothing could ever pass");
    assert_snapshot!(refusal(policed(police(zero))), @"policy `p`, class `be`: police: is a rate of zero: nothing could ever pass");
    assert_snapshot!(refusal(guaranteed(zero)), @"policy `p`, class `critical`: minimum: is a rate of zero: nothing could ever pass");
    assert_snapshot!(refusal(prioritised(priority(Some(zero)))), @"policy `p`, class `critical`: priority: is a rate of zero: nothing could ever pass");
    assert_snapshot!(policy(vec![]).resolve(BitRate::ZERO).unwrap_err(), @"policy `p`, class `class-default`: link: has a rate of zero: nothing could ever pass");
    let one_bit = policy(vec![guaranteed(percent(50))]);
    assert_snapshot!(one_bit.resolve(bits(1)).unwrap_err(), @"policy `p`, class `critical`: minimum: is a rate of zero: nothing could ever pass");
}

#[test]
fn percentages_out_of_range() {
    assert_snapshot!(refusal(shaped(shape(percent(0)))), @"policy `p`, class `be`: shape: is 0 %");
    assert_snapshot!(refusal(shaped(shape(RateSpec::PercentMilli(100_001)))), @"policy `p`, class `be`: shape: is more than 100 %");
}

#[test]
fn weights_and_code_points_out_of_range() {
    assert_snapshot!(refusal(ClassSpec { weight: Some(0), ..class("be") }), @"policy `p`, class `be`: weight: is 0: a class needs a weight of at least 1");
    assert_snapshot!(refusal(ClassSpec { set_dscp: Some(64), ..class("be") }), @"policy `p`, class `be`: set_dscp: is above 63, the largest code point");
    let remark = PolicerSpec {
        exceed: Some(Action::SetDscp(64)),
        ..police(percent(50))
    };
    assert_snapshot!(refusal(policed(remark)), @"policy `p`, class `be`: police: sets a code point above 63, the largest");
}

#[test]
fn settings_of_a_policer_that_contradict() {
    let spec = || police(absolute("10 Mbit/s"));
    let burst = Some(ByteCount::new(9_000).into());
    let rate = Some(absolute("12 Mbit/s"));
    let message = |spec| refusal(policed(spec));
    assert_snapshot!(message(PolicerSpec { pir: rate, eir: rate, ..spec() }), @"policy `p`, class `be`: police: has both `pir` (RFC 2698) and `eir` (RFC 4115): keep one");
    assert_snapshot!(message(PolicerSpec { pir: rate, ebs: burst, ..spec() }), @"policy `p`, class `be`: police: has both `pir` and an excess burst: a two-rate meter uses `pbs`");
    assert_snapshot!(message(PolicerSpec { pbs: burst, ..spec() }), @"policy `p`, class `be`: police: has a peak burst without a peak rate: set `pir`, or use `ebs`");
    assert_snapshot!(message(PolicerSpec { eir: rate, pbs: burst, ..spec() }), @"policy `p`, class `be`: police: has a peak burst without a peak rate: set `pir`, or use `ebs`");
    assert_snapshot!(message(PolicerSpec { pir: Some(absolute("9 Mbit/s")), ..spec() }), @"policy `p`, class `be`: police: peak rate 9 Mbit/s is below the committed rate 10 Mbit/s");
}

#[test]
fn bursts_that_no_packet_fits_in() {
    let none = Some(ByteCount::ZERO.into());
    let spec = || police(absolute("10 Mbit/s"));
    let rate = Some(absolute("12 Mbit/s"));
    assert_snapshot!(refusal(policed(PolicerSpec { cbs: none, ..spec() })), @"policy `p`, class `be`: police: has a burst of 0 B: no packet would ever conform, because the shortest counts 34 B as L2");
    assert_snapshot!(refusal(policed(PolicerSpec { pir: rate, pbs: none, ..spec() })), @"policy `p`, class `be`: police: has a burst of 0 B: no packet would ever conform, because the shortest counts 34 B as L2");
    assert_snapshot!(refusal(policed(PolicerSpec { eir: rate, ebs: none, ..spec() })), @"policy `p`, class `be`: police: has a burst of 0 B: no packet would ever conform, because the shortest counts 34 B as L2");
    let l1 = |burst: u64| {
        policed(PolicerSpec {
            cbs: Some(ByteCount::new(burst).into()),
            accounting: Accounting::L1,
            ..spec()
        })
    };
    assert_snapshot!(refusal(l1(83)), @"policy `p`, class `be`: police: has a burst of 83 B: no packet would ever conform, because the shortest counts 84 B as L1");
    assert!(policy(vec![l1(84)]).resolve(bits(35_000_000)).is_ok());
    let shaper = ShaperSpec {
        committed_burst_bits: Some(0.into()),
        ..shape(absolute("10 Mbit/s"))
    };
    assert_snapshot!(refusal(shaped(shaper)), @"policy `p`, class `be`: shape: has a committed burst of zero");
}

#[test]
fn settings_that_exclude_priority() {
    let class = || prioritised(priority(None));
    assert_snapshot!(refusal(ClassSpec { minimum: Some(percent(10)), ..class() }), @"policy `p`, class `critical`: minimum: cannot be set on a priority class: it is served before everything else");
    assert_snapshot!(refusal(ClassSpec { weight: Some(2), ..class() }), @"policy `p`, class `critical`: weight: cannot be set on a priority class: it is served before everything else");
    assert_snapshot!(refusal(ClassSpec { shape: Some(shape(percent(10))), ..class() }), @"policy `p`, class `critical`: shape: cannot be set on a priority class: it is served before everything else");
    assert_snapshot!(refusal(ClassSpec { queue: wred(WredKey::Dscp, vec![]).into(), ..class() }), @"policy `p`, class `critical`: wred: cannot be set on a priority class: it is served before everything else");
    assert_snapshot!(refusal(ClassSpec { child: Some(Box::new(policy(vec![]))), ..class() }), @"policy `p`, class `critical`: child: cannot be set on a priority class: it is served before everything else");
    assert_snapshot!(refusal(prioritised(PrioritySpec { level: 0, ..priority(None) })), @"policy `p`, class `critical`: priority: level 0 does not exist: 1 is served first");
}

#[test]
fn settings_that_need_a_queue_on_a_class_that_has_none() {
    let child = Some(Box::new(policy(vec![])));
    let limit = QueueLimitSpec::Packets(5);
    assert_snapshot!(refusal(ClassSpec { child, queue: limit.into(), ..class("be") }), @"policy `p`, class `be`: child: a class divided by a child policy has no queue of its own: set the queue limit, WRED or the flow queue on the child's classes");
    let message = |class| refusal_under(Discipline::Fifo, class);
    assert_snapshot!(message(ClassSpec { queue: limit.into(), ..class("be") }), @"policy `p`, class `be`: queue_limit: one FIFO for all classes has one queue: set this on `class-default`");
    assert_snapshot!(message(ClassSpec { queue: wred(WredKey::Dscp, vec![]).into(), ..class("be") }), @"policy `p`, class `be`: wred: one FIFO for all classes has one queue: set this on `class-default`");
}

#[test]
fn settings_the_discipline_does_not_have() {
    assert_snapshot!(refusal_under(Discipline::DeficitRoundRobin, guaranteed(percent(10))), @"policy `p`, class `critical`: minimum: deficit round robin shares by weight alone: set `weight`, or use the discipline `minimum_share`");
    assert_snapshot!(refusal_under(Discipline::Fifo, guaranteed(percent(10))), @"policy `p`, class `critical`: discipline: one FIFO for all classes has no rate, weight or priority by class");
    for class in [
        ClassSpec {
            weight: Some(2),
            ..class("be")
        },
        shaped(shape(percent(10))),
        prioritised(priority(None)),
        ClassSpec {
            child: Some(Box::new(policy(vec![]))),
            ..class("be")
        },
    ] {
        let message = refusal_under(Discipline::Fifo, class);
        assert!(message.contains("one FIFO for all classes"), "{message}");
    }
}

#[test]
fn queue_limits_in_which_nothing_fits() {
    assert_snapshot!(refusal(limited(QueueLimitSpec::Packets(0))), @"policy `p`, class `be`: queue_limit: is 0: no packet could ever be queued");
    assert_snapshot!(refusal(limited(QueueLimitSpec::Bytes(ByteCount::new(1_521)))), @"policy `p`, class `be`: queue_limit: holds 1.521 kB, less than one largest frame (1.522 kB)");
    assert_snapshot!(refusal(limited(QueueLimitSpec::Time(Duration::ZERO))), @"policy `p`, class `be`: queue_limit: holds 0 B, less than one largest frame (1.522 kB)");
    assert_snapshot!(refusal(limited(QueueLimitSpec::Time(Duration::from_micros(300)))), @"policy `p`, class `be`: queue_limit: holds 1.312 kB, less than one largest frame (1.522 kB)");
}

#[test]
fn invalid_curves() {
    let with = |key, value, curve| {
        refusal(ClassSpec {
            queue: wred(key, vec![(value, curve)]).into(),
            ..class("be")
        })
    };
    assert_snapshot!(with(WredKey::Dscp, 0, curve(5, 4, 1)), @"policy `p`, class `be`: wred: curve of 0: needs 0 ≤ min ≤ max and max ≥ 1, but min is 5 and max is 4");
    assert_snapshot!(with(WredKey::Dscp, 0, curve(0, 0, 1)), @"policy `p`, class `be`: wred: curve of 0: needs 0 ≤ min ≤ max and max ≥ 1, but min is 0 and max is 0");
    assert_snapshot!(with(WredKey::Dscp, 8, curve(1, 2, 0)), @"policy `p`, class `be`: wred: curve of 8: denominator is 0");
    assert_snapshot!(with(WredKey::Dscp, 64, curve(1, 2, 1)), @"policy `p`, class `be`: wred: code point 64 does not exist");
    assert_snapshot!(with(WredKey::Precedence, 8, curve(1, 2, 1)), @"policy `p`, class `be`: wred: precedence 8 does not exist");
    let weight = |n| ClassSpec {
        queue: WredSpec {
            exponential_weight: Some(n),
            ..wred(WredKey::Dscp, vec![])
        }
        .into(),
        ..class("be")
    };
    assert_snapshot!(refusal(weight(0)), @"policy `p`, class `be`: wred: has a weight exponent outside 1 to 16");
    assert_snapshot!(refusal(weight(17)), @"policy `p`, class `be`: wred: has a weight exponent outside 1 to 16");
}

#[test]
fn classes_that_are_defined_twice_or_match_nothing() {
    assert_snapshot!(refusal_of_all(vec![class("a"), class("b"), class("a")]), @"policy `p`, class `a`: classes: is defined twice");
    let default = ClassSpec::class_default;
    assert_snapshot!(refusal_of_all(vec![default(), default()]), @"policy `p`, class `class-default`: classes: is defined twice");
    assert_snapshot!(refusal(ClassSpec { matches: None, ..class("be") }), @"policy `p`, class `be`: match: has no class map");
    let matched_default = ClassSpec {
        name: "class-default".to_owned(),
        ..class("be")
    };
    assert_snapshot!(refusal(matched_default), @"policy `p`, class `class-default`: match: matches every frame that no other class does and must not have a class map");
}

#[test]
fn conditions_that_can_never_match() {
    let (first, last) = (30, 10);
    assert_snapshot!(refusal_of_match(Condition::OuterVlan(first..=last)), @"policy `p`, class `c`: match: VLAN 30 to 10 is an empty range: write the smaller number first");
    let largest = ClassMap {
        name: "c".to_owned(),
        mode: MatchMode::Any,
        conditions: vec![Condition::InnerVlan(1..=4_094)],
    };
    assert!(
        policy(vec![ClassSpec::new(largest)])
            .resolve(bits(1))
            .is_ok()
    );
    assert_snapshot!(refusal_of_match(Condition::InnerVlan(4_095..=4_095)), @"policy `p`, class `c`: match: VLAN 4095 is above 4094, the largest id");
    assert_snapshot!(refusal_of_match(Condition::Not(Box::new(Condition::SourcePort(first..=last)))), @"policy `p`, class `c`: match: port 30 to 10 is an empty range: write the smaller number first");
    assert_snapshot!(refusal_of_match(Condition::GtpTeid(first.into()..=last.into())), @"policy `p`, class `c`: match: TEID 30 to 10 is an empty range: write the smaller number first");
    assert_snapshot!(refusal_of_match(Condition::GtpTeid(0..=9)), @"policy `p`, class `c`: match: TEID 0 is not used by user packets: the smallest is 1");
    assert_snapshot!(refusal_of_match(Condition::Dscp(0)), @"policy `p`, class `c`: match: lists no code point, so it can never match");
    let entry = AccessEntry {
        permit: true,
        conditions: vec![Condition::DestinationPort(first..=last)],
    };
    let list = AccessList {
        name: "101".to_owned(),
        entries: vec![entry],
    };
    assert_snapshot!(refusal_of_match(Condition::AccessList(list)), @"policy `p`, class `c`: match: port 30 to 10 is an empty range: write the smaller number first");
}

#[test]
fn policies_nested_too_deeply() {
    let nested = |levels: usize| {
        (1..levels).fold(policy(vec![class("leaf")]), |child, _| {
            policy(vec![ClassSpec {
                child: Some(Box::new(child)),
                ..class("inner")
            }])
        })
    };
    assert!(nested(5).resolve(bits(1_000_000)).is_ok());
    assert_snapshot!(nested(6).resolve(bits(1_000_000)).unwrap_err(), @"policy `p`, class `class-default`: child: nested deeper than 5 levels");
}
