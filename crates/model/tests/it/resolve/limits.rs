//! Values at the limit of what is accepted. Values beyond are rejected with the messages in `refusals`.

use super::support::*;
use slicewise_model::{
    Action, BurstSpec, ClassSpec, CoDelSpec, Discipline, FlowQueueSpec, FlowsSpec, GuaranteeSpec,
    GuaranteedSpec, MaximumSpec, PolicerSpec, PolicySpec, PortParams, QueueLimitSpec, Rate,
    RateSpec, WredKey, WredSpec,
};
use slicewise_units::{ByteCount, Duration};

fn under(discipline: Discipline, class: ClassSpec) -> PolicySpec {
    PolicySpec {
        discipline,
        ..policy(vec![class])
    }
}

fn is_taken(spec: &PolicySpec) -> bool {
    spec.resolve(bits(35_000_000)).is_ok()
}

/// A class with a guarantee of 10 Mbit/s within 10 ms and a burst of 4 kB, and this maximum.
fn slice(maximum: Option<MaximumSpec>) -> ClassSpec {
    ClassSpec {
        guarantee: Some(GuaranteeSpec {
            rate: absolute("10 Mbit/s"),
            burst: Some(ByteCount::new(4_000).into()),
            delay: Some(Duration::from_millis(10)),
            smallest_frame: None,
        }),
        maximum,
        ..class("a")
    }
}

fn at_most(rate: &str, burst: u64) -> Option<MaximumSpec> {
    Some(MaximumSpec {
        rate: absolute(rate),
        burst: Some(ByteCount::new(burst).into()),
    })
}

#[test]
fn classes_at_their_limits() {
    let remark = PolicerSpec {
        exceed: Some(Action::SetDscp(63)),
        ..police(percent(100))
    };
    let equal_rates = PolicerSpec {
        pir: Some(absolute("10 Mbit/s")),
        ..police(absolute("10 Mbit/s"))
    };
    let weighed = |exponent| ClassSpec {
        queue: WredSpec {
            exponential_weight: Some(exponent),
            ..wred(WredKey::Dscp, vec![(63, curve(0, 1, 1))])
        }
        .into(),
        ..class("a")
    };
    let flow_queue = |spec: FlowQueueSpec| ClassSpec {
        queue: spec.into(),
        ..class("a")
    };
    let base = FlowQueueSpec::default;
    for class in [
        ClassSpec {
            set_dscp: Some(63),
            weight: Some(u32::MAX),
            ..class("a")
        },
        ClassSpec {
            shape: Some(shape(percent(50))),
            ..guaranteed(percent(50))
        },
        policed(remark),
        policed(equal_rates),
        guaranteed(percent(100)),
        limited(QueueLimitSpec::Packets(1)),
        limited(QueueLimitSpec::Bytes(ByteCount::new(1_522))),
        weighed(1),
        weighed(16),
        flow_queue(FlowQueueSpec {
            flows: FlowsSpec {
                flows: Some(1),
                quantum: Some(ByteCount::new(300)),
                ..base().flows
            },
            ..base()
        }),
        flow_queue(FlowQueueSpec {
            flows: FlowsSpec {
                flows: Some(8_192),
                quantum: Some(ByteCount::new(1 << 20)),
                priority: vec![vec![63], vec![0], vec![1]],
            },
            codel: CoDelSpec {
                target: Some(Duration::from_nanos(1)),
                interval: Some(Duration::from_nanos(2)),
                ..base().codel
            },
        }),
        flow_queue(FlowQueueSpec {
            codel: CoDelSpec {
                interval: Some(Duration::from_secs(4)),
                ..base().codel
            },
            ..base()
        }),
    ] {
        assert!(is_taken(&policy(vec![class.clone()])), "{class:?}");
    }
}

#[test]
fn disciplines_accept_their_settings() {
    let weighted = ClassSpec {
        weight: Some(3),
        ..shaped(shape(percent(50)))
    };
    assert!(is_taken(&under(Discipline::DeficitRoundRobin, weighted)));
    let of_all = ClassSpec {
        queue: QueueLimitSpec::Packets(7).into(),
        ..ClassSpec::class_default()
    };
    let fifo = under(Discipline::Fifo, of_all);
    let params = fifo.resolve(bits(35_000_000)).unwrap();
    assert_eq!(params.classes[0].queue.limit.packets, 7);
    assert!(is_taken(&under(
        Discipline::Fifo,
        policed(police(percent(1)))
    )));
}

#[test]
fn slices_at_their_limits() {
    let largest = |burst| GuaranteeSpec {
        rate: RateSpec::Absolute(bits(1)),
        burst: Some(BurstSpec::Size(ByteCount::new(burst))),
        delay: None,
        smallest_frame: None,
    };
    let common = GuaranteedSpec {
        shortest_delay: Duration::from_secs(10_000),
        longest_delay: Duration::from_secs(100_000_000),
        ..GuaranteedSpec::default()
    };
    let with = |guarantee| PolicySpec {
        guaranteed: Some(common.clone()),
        ..under(
            Discipline::Guaranteed,
            ClassSpec {
                guarantee: Some(guarantee),
                ..class("a")
            },
        )
    };
    assert!(with(largest(1_000_000_000)).resolve(bits(u64::MAX)).is_ok());
    assert!(
        with(largest(1_000_000_001))
            .resolve(bits(u64::MAX))
            .is_err()
    );
    for class in [
        slice(at_most("10 Mbit/s", 4_000)),
        ClassSpec {
            guarantee: None,
            ..slice(at_most("1 bit/s", 1_522))
        },
        ClassSpec {
            weight: Some(65_535),
            ..slice(None)
        },
    ] {
        assert!(
            is_taken(&under(Discipline::Guaranteed, class.clone())),
            "{class:?}"
        );
    }
}

#[test]
fn common_settings_of_slices_at_their_limits() {
    let default = GuaranteedSpec::default;
    for common in [
        GuaranteedSpec {
            largest_frame: Some(ByteCount::new(60)),
            ..default()
        },
        GuaranteedSpec {
            largest_frame: Some(ByteCount::new(65_557)),
            ..default()
        },
        GuaranteedSpec {
            shortest_delay: Duration::from_micros(1),
            longest_delay: Duration::from_micros(1),
            ..default()
        },
    ] {
        assert_eq!(common.check(), Ok(()), "{common:?}");
    }
    let above = GuaranteedSpec {
        largest_frame: Some(ByteCount::new(65_558)),
        ..default()
    };
    assert!(above.check().is_err());
}

#[test]
fn a_default_tenant_exists_only_if_a_class_needs_it() {
    let tenants = |classes, named: &[&str]| {
        let spec = PolicySpec {
            guaranteed: Some(GuaranteedSpec {
                tenants: named.iter().map(|name| ((*name).into(), 2)).collect(),
                ..GuaranteedSpec::default()
            }),
            discipline: Discipline::Guaranteed,
            ..policy(classes)
        };
        let params = spec.resolve(bits(35_000_000)).unwrap();
        let tenants = params.guaranteed.unwrap().tenants;
        let tenant_list = tenants.iter().map(|t| format!("{} {}", t.name, t.weight));
        tenant_list.collect::<Vec<_>>().join(", ")
    };
    let of = |tenant: &str, class: ClassSpec| ClassSpec {
        tenant: Some(tenant.into()),
        ..class
    };
    let default = ClassSpec::class_default;
    assert_eq!(
        tenants(vec![of("x", class("a")), of("x", default())], &["x"]),
        "x 2"
    );
    assert_eq!(tenants(vec![of("x", class("a"))], &["x"]), "x 2, default 1");
    assert_eq!(
        tenants(vec![of("x", class("a")), default()], &["x"]),
        "x 2, default 1"
    );
    assert_eq!(
        tenants(vec![class("a"), of("x", default())], &["x"]),
        "x 2, default 1"
    );
    assert_eq!(tenants(vec![class("a")], &["default"]), "default 2");
}

#[test]
fn a_child_may_guarantee_no_more_than_the_device_forwards() {
    let port = PortParams {
        rate: Rate::l2(bits(1_000_000_000)),
        admissible: Rate::l2(bits(35_000_000)),
        hysteresis: 0,
    };
    let with_child = |minimum| {
        let child = policy(vec![guaranteed(absolute(minimum))]);
        policy(vec![ClassSpec {
            child: Some(Box::new(child)),
            ..class("parent")
        }])
    };
    assert!(with_child("35 Mbit/s").resolve_for(port).is_ok());
    assert!(with_child("36 Mbit/s").resolve_for(port).is_err());
}
