//! What IOS cannot express is named, and what it says in other words keeps its meaning.

use insta::assert_snapshot;
use slicewise_formats::ios;
use slicewise_model::{
    AccessEntry, AccessList, Action, BurstSpec, ClassMap, ClassSpec, ColourMode, Condition,
    Discipline, MatchMode, PolicerSpec, PolicySpec, PrioritySpec, QueueLimitSpec, QueueSpec,
    RateSpec, RedCurveSpec, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

const MBIT: RateSpec = RateSpec::Absolute(BitRate::new(1_000_000));

fn policy(class: ClassSpec) -> PolicySpec {
    PolicySpec {
        name: "p".into(),
        classes: vec![class],
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    }
}

fn matching(mode: MatchMode, conditions: Vec<Condition>) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: "c".into(),
        mode,
        conditions,
    })
}

fn policer() -> PolicerSpec {
    PolicerSpec::new(MBIT)
}

/// One message for each way of changing class-default.
fn refusals(changes: Vec<ClassSpec>) -> String {
    let messages = changes
        .into_iter()
        .map(|class| ios::write(&policy(class)).unwrap_err());
    messages
        .map(|error| error.problem)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn names_the_policy_and_the_class() {
    let error = ios::write(&policy(ClassSpec {
        weight: Some(0),
        ..ClassSpec::class_default()
    }));
    assert_snapshot!(error.unwrap_err(), @"policy `p`, class `class-default`: IOS cannot express this: weight 0: `bandwidth remaining ratio` goes from 1 to 1000");
    let spaced = PolicySpec {
        name: "tail drop".into(),
        ..policy(ClassSpec::class_default())
    };
    assert_snapshot!(ios::write(&spaced).unwrap_err(), @"policy `tail drop`: IOS cannot express this: `tail drop` is not one word of printable ASCII");
}

#[test]
fn refuses_what_ios_xe_does_not_take_together() {
    let share = |minimum, weight| ClassSpec {
        minimum,
        weight,
        ..ClassSpec::class_default()
    };
    let percent = |percent: u32| Some(RateSpec::PercentMilli(percent * 1_000));
    let refusal = |class| ios::write(&policy(class)).unwrap_err().to_string();
    assert_snapshot!(refusal(share(Some(MBIT), Some(2))), @"policy `p`, class `class-default`: IOS cannot express this: `bandwidth remaining ratio` and `bandwidth` in kbit/s exclude each other in a policy map; IOS XE takes one kind of `bandwidth` in all classes of a policy map");
    // Weights that percentages can say are written so beside a minimum in percent.
    let text = ios::write(&policy(share(percent(20), Some(7)))).unwrap();
    assert!(text.contains("bandwidth remaining percent 100"), "{text}");
    let queueing = Some(Box::new(policy(share(None, Some(2)))));
    let divided = ClassSpec {
        child: queueing,
        ..share(percent(20), None)
    };
    assert_snapshot!(refusal(divided), @"policy `p`, class `class-default`: IOS cannot express this: `service-policy` of a policy map that queues and `bandwidth percent` exclude each other in a class; IOS XE takes `bandwidth remaining` in a class that a queueing policy map divides");
}

#[test]
fn refuses_disciplines_other_than_minimum_share() {
    for discipline in [Discipline::Fifo, Discipline::DeficitRoundRobin] {
        let policy = PolicySpec {
            discipline,
            ..policy(ClassSpec::class_default())
        };
        assert!(ios::write(&policy).is_err());
    }
}

#[test]
fn refuses_policers_without_an_equivalent() {
    let size = |bytes| Some(BurstSpec::Size(ByteCount::new(bytes)));
    let policers = [
        PolicerSpec {
            accounting: Accounting::L1,
            ..policer()
        },
        PolicerSpec {
            mode: ColourMode::Aware,
            ..policer()
        },
        PolicerSpec {
            eir: Some(MBIT),
            ..policer()
        },
        PolicerSpec {
            pir: Some(MBIT),
            ebs: size(1),
            ..policer()
        },
        PolicerSpec {
            pbs: size(1),
            ..policer()
        },
        PolicerSpec {
            pir: Some(RateSpec::PercentMilli(50_000)),
            ..policer()
        },
        PolicerSpec {
            cir: RateSpec::PercentMilli(12_500),
            ..policer()
        },
        PolicerSpec {
            cir: RateSpec::PercentMilli(12_000),
            cbs: size(1),
            ..policer()
        },
        PolicerSpec {
            cir: RateSpec::PercentMilli(12_000),
            cbs: Some(BurstSpec::Time(Duration::from_micros(1_500))),
            ..policer()
        },
        PolicerSpec {
            cir: RateSpec::Absolute(BitRate::ZERO),
            ..policer()
        },
        PolicerSpec {
            cbs: size(0),
            ..policer()
        },
        PolicerSpec {
            exceed: Some(Action::SetDscp(64)),
            ..policer()
        },
        PolicerSpec {
            exceed: Some(Action::SetQosGroup(100)),
            ..policer()
        },
    ];
    let classes = policers.map(|police| ClassSpec {
        police: Some(police),
        ..ClassSpec::class_default()
    });
    assert_snapshot!(refusals(classes.into()), @"
    a rate that counts L1: IOS counts L2
    colour-aware metering without class maps for the colours
    an excess information rate (RFC 4115); a peak rate it can
    an excess burst beside a peak rate
    a peak burst without a peak rate
    one rate in percent and the other not
    12.500 %: percentages are whole, 1 to 100
    a burst in bytes beside a rate in percent: give it as a time
    a burst of 1.5 ms: whole ms, 1 to 2000
    a rate of 0 bit/s
    a size of 0 bytes: 1 to 1000000000000000000
    DSCP 64, above 63
    QoS group 100, above 99
    ");
}

#[test]
fn refuses_queueing_without_an_equivalent() {
    let place = PrioritySpec {
        level: 1,
        rate: None,
        burst: None,
        accounting: Accounting::L2,
    };
    let shaper = ShaperSpec {
        rate: MBIT,
        committed_burst_bits: None,
        excess_burst_bits: None,
        peak: false,
        accounting: Accounting::L2,
    };
    let curve = RedCurveSpec {
        min: QueueLimitSpec::Packets(1),
        max: QueueLimitSpec::Packets(2),
        mark_denominator: 1,
    };
    let wred = |curves| {
        let wred = WredSpec {
            key: WredKey::Precedence,
            curves,
            ..WredSpec::default()
        };
        QueueSpec::from(wred)
    };
    let base = ClassSpec::class_default;
    let odd = RateSpec::Absolute(BitRate::new(1_500));
    let classes = vec![
        ClassSpec {
            minimum: Some(odd),
            ..base()
        },
        ClassSpec {
            priority: Some(PrioritySpec { level: 8, ..place }),
            ..base()
        },
        ClassSpec {
            priority: Some(PrioritySpec {
                burst: Some(ByteCount::new(1)),
                ..place
            }),
            ..base()
        },
        ClassSpec {
            shape: Some(ShaperSpec {
                excess_burst_bits: Some(1.into()),
                ..shaper
            }),
            ..base()
        },
        ClassSpec {
            shape: Some(ShaperSpec {
                committed_burst_bits: Some(0.into()),
                ..shaper
            }),
            ..base()
        },
        ClassSpec {
            shape: Some(ShaperSpec {
                rate: RateSpec::PercentMilli(10_000),
                committed_burst_bits: Some(1.into()),
                ..shaper
            }),
            ..base()
        },
        ClassSpec {
            queue: QueueLimitSpec::Packets(0).into(),
            ..base()
        },
        ClassSpec {
            queue: QueueLimitSpec::Time(Duration::from_nanos(1)).into(),
            ..base()
        },
        ClassSpec {
            queue: QueueLimitSpec::Time(Duration::ZERO).into(),
            ..base()
        },
        ClassSpec {
            queue: wred(vec![(8, curve)]),
            ..base()
        },
        ClassSpec {
            queue: wred(vec![(1, curve), (1, curve)]),
            ..base()
        },
        ClassSpec {
            queue: wred(vec![(
                1,
                RedCurveSpec {
                    mark_denominator: 0,
                    ..curve
                },
            )]),
            ..base()
        },
        ClassSpec {
            set_dscp: Some(64),
            ..base()
        },
        ClassSpec {
            weight: Some(1_001),
            ..base()
        },
    ];
    assert_snapshot!(refusals(classes), @"
    1.5 kbit/s is not a whole number of kbit/s, the unit of `bandwidth` and `priority`
    priority level 8
    a priority burst without a rate
    a shaper's excess burst without a committed burst
    a shaper's burst outside 1 to 1000000000000000000 bits
    a shaper's burst in bits beside a rate in percent
    a queue limit of no packets
    a queue limit of 1 ns, which is not whole microseconds
    a queue limit of 0 ns
    a WRED curve for precedence 8, above 7
    two WRED curves for precedence 1
    a mark probability denominator of 0: 1 to 65536
    DSCP 64, above 63
    weight 1001: `bandwidth remaining ratio` goes from 1 to 1000
    ");
}

#[test]
fn refuses_conditions_without_an_equivalent() {
    let list = |name: &str, conditions: Vec<Condition>| {
        let entries = vec![AccessEntry {
            permit: true,
            conditions,
        }];
        Condition::AccessList(AccessList {
            name: name.into(),
            entries,
        })
    };
    let ipv4 = || Condition::Source("10.0.0.0/8".parse().unwrap());
    let ipv6 = || Condition::Source("2001:db8::/32".parse().unwrap());
    let all = |condition| matching(MatchMode::All, vec![condition]);
    let empty = Condition::AccessList(AccessList {
        name: "l".into(),
        entries: Vec::new(),
    });
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let classes = vec![
        all(Condition::OuterVlan(0..=5)),
        all(Condition::InnerVlan(6..=5)),
        all(Condition::Protocol(50)),
        all(Condition::DestinationPort(80..=80)),
        all(Condition::GtpTeid(1..=9)),
        all(Condition::Dscp(0)),
        all(Condition::Dscp(0x1ff << 1)),
        all(Condition::Not(Box::new(Condition::Not(Box::new(
            Condition::Everything,
        ))))),
        all(ipv6()),
        all(empty),
        all(list("500", vec![ipv4()])),
        all(list("a b", vec![ipv4()])),
        all(list("10", vec![ipv4(), Condition::Protocol(17)])),
        all(list("l", vec![Condition::Protocol(17)])),
        all(list("l", vec![ipv4(), Condition::DestinationPort(80..=80)])),
        all(list("l", vec![ipv4(), ipv4()])),
        all(list("l", vec![ipv4(), Condition::OuterVlan(1..=1)])),
        all(list("l", vec![ipv4(), Condition::Dscp(3)])),
        all(list("l", vec![ipv4(), Condition::Protocol(0)])),
        matching(
            MatchMode::All,
            vec![list("l", vec![ipv4()]), list("l", vec![ipv4(), ipv4()])],
        ),
        ClassSpec {
            matches: None,
            ..matching(MatchMode::All, vec![])
        },
        ClassSpec {
            name: "d".into(),
            ..matching(MatchMode::All, vec![])
        },
    ];
    assert_snapshot!(refusals(classes));
}

#[test]
fn refuses_two_definitions_of_one_name() {
    let map = |vlan: u16| ClassMap {
        name: "c".into(),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(vlan..=vlan)],
    };
    let child = policy(ClassSpec::new(map(10)));
    let child = PolicySpec {
        name: "child".into(),
        ..child
    };
    let mut parent = policy(ClassSpec::new(map(20)));
    parent.classes[0].child = Some(Box::new(child.clone()));
    assert_snapshot!(ios::write(&parent).unwrap_err(), @"policy `child`, class `c`: IOS cannot express this: two different class maps have the name `c`");
    // The same name for the same thing is not a contradiction.
    parent.classes[0].matches = Some(map(10));
    assert!(ios::write(&parent).is_ok());
    let itself = PolicySpec {
        name: "p".into(),
        ..child
    };
    parent.classes[0].child = Some(Box::new(itself));
    assert_snapshot!(ios::write(&parent).unwrap_err(), @"policy `p`: IOS cannot express this: two different policy maps have the name `p`");
}

#[test]
fn refuses_deep_nesting() {
    let mut nested = policy(ClassSpec::class_default());
    for level in 0..5 {
        let class = ClassSpec {
            child: Some(Box::new(nested)),
            ..ClassSpec::class_default()
        };
        nested = PolicySpec {
            name: format!("p{level}"),
            ..policy(class)
        };
    }
    assert_snapshot!(ios::write(&nested).unwrap_err(), @"policy `p`: IOS cannot express this: policies nest deeper than 5 levels");
}

#[test]
fn puts_bare_addresses_into_access_lists() {
    let class = matching(
        MatchMode::All,
        vec![
            Condition::Source("10.0.10.0/24".parse().unwrap()),
            Condition::Not(Box::new(Condition::Destination(
                "10.0.30.7".parse().unwrap(),
            ))),
        ],
    );
    assert_snapshot!(ios::write(&policy(class)).unwrap(), @"
    ip access-list extended c-1
     permit ip 10.0.10.0 0.0.0.255 any
    !
    ip access-list extended c-2
     permit ip any host 10.0.30.7
    !
    class-map match-all c
     match access-group name c-1
     match not access-group name c-2
    !
    policy-map p
     class c
    ");
}

#[test]
fn spreads_many_code_points_over_lines_where_that_means_the_same() {
    let set = Condition::Dscp((1 << 20) - 1);
    let written = |mode, condition| ios::write(&policy(matching(mode, vec![condition]))).unwrap();
    assert_snapshot!(written(MatchMode::Any, set.clone()), @"
    class-map match-any c
     match dscp default 1 2 3 4 5 6 7
     match dscp cs1 9 af11 11 af12 13 af13 15
     match dscp cs2 17 af21 19
    !
    policy-map p
     class c
    ");
    assert_snapshot!(written(MatchMode::All, Condition::Not(Box::new(set))), @"
    class-map match-all c
     match not dscp default 1 2 3 4 5 6 7
     match not dscp cs1 9 af11 11 af12 13 af13 15
     match not dscp cs2 17 af21 19
    !
    policy-map p
     class c
    ");
}

#[test]
fn gives_the_burst_of_an_absolute_rate_in_bytes() {
    let police = PolicerSpec {
        cbs: Some(Duration::from_millis(100).into()),
        ..policer()
    };
    let class = ClassSpec {
        police: Some(police),
        ..ClassSpec::class_default()
    };
    assert_snapshot!(ios::write(&policy(class)).unwrap(), @"
    policy-map p
     class class-default
      police cir 1000000 bc 12500
    ");
}

#[test]
fn refuses_guarantees_with_a_delay_bound() {
    let guaranteed = PolicySpec {
        discipline: Discipline::Guaranteed,
        ..policy(ClassSpec::class_default())
    };
    assert_snapshot!(ios::write(&guaranteed).unwrap_err(), @"policy `p`: IOS cannot express this: a guarantee with a delay bound (`priority` serves first and `bandwidth` keeps a rate, but neither bounds the delay of several classes)");
}

#[test]
fn refuses_queues_that_classes_share_and_meters_choose() {
    let mut spec = policy(ClassSpec {
        named_queue: Some("low".into()),
        ..ClassSpec::class_default()
    });
    spec.queues = vec![slicewise_model::NamedQueueSpec::new("low")];
    assert_snapshot!(ios::write(&spec).unwrap_err(), @"policy `p`: IOS cannot express this: the queue `low`, which several classes may use (a class of a policy map has a queue of its own)");
    let chosen = PolicerSpec {
        exceed: Some(Action::Queue("low".into())),
        ..policer()
    };
    let slow = PolicerSpec {
        refill_interval: Some(Duration::from_millis(1)),
        ..policer()
    };
    let written = |police| {
        ios::write(&policy(ClassSpec {
            police: Some(police),
            ..ClassSpec::class_default()
        }))
    };
    assert_snapshot!(written(chosen).unwrap_err(), @"policy `p`, class `class-default`: IOS cannot express this: a policer that chooses the queue `low`");
    assert_snapshot!(written(slow).unwrap_err(), @"policy `p`, class `class-default`: IOS cannot express this: a policer replenished every 1 ms only");
}

#[test]
fn codel_is_not_something_ios_can_say() {
    let class = ClassSpec {
        queue: slicewise_model::FlowQueueSpec::default().into(),
        ..ClassSpec::class_default()
    };
    assert_snapshot!(ios::write(&policy(class)).unwrap_err().to_string(), @"policy `p`, class `class-default`: IOS cannot express this: a flow queue with CoDel; `fair-queue` drops nothing early, and `random-detect` drops for all flows alike");
}
