//! Slices with a guarantee: defaults and rejections.

use super::support::*;
use insta::assert_snapshot;
use slicewise_model::{
    Action, BurstSpec, ClassSpec, Discipline, GuaranteeSpec, GuaranteedSpec, MaximumSpec,
    PolicerSpec, PolicyParams, PolicySpec, PortParams, QueueLimitSpec, QueueSpec, Rate, RateSpec,
    SliceParams, WredKey,
};
use slicewise_units::{Accounting, ByteCount, Duration};

fn slices(classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        discipline: Discipline::Guaranteed,
        ..policy(classes)
    }
}

fn with(common: GuaranteedSpec, classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        guaranteed: Some(common),
        ..slices(classes)
    }
}

/// A class with a guarantee of a rate within 10 ms.
fn promised(name: &str, rate: &str) -> ClassSpec {
    ClassSpec {
        guarantee: Some(GuaranteeSpec {
            rate: absolute(rate),
            burst: None,
            delay: Some(Duration::from_millis(10)),
            smallest_frame: None,
        }),
        ..class(name)
    }
}

fn at_most(rate: RateSpec, burst: Option<u64>) -> Option<MaximumSpec> {
    Some(MaximumSpec {
        rate,
        burst: burst.map(|bytes| ByteCount::new(bytes).into()),
    })
}

fn on_gigabit(spec: &PolicySpec) -> PolicyParams {
    spec.resolve(bits(1_000_000_000)).unwrap()
}

fn slice(class: ClassSpec) -> SliceParams {
    on_gigabit(&slices(vec![class])).classes[0].slice.unwrap()
}

fn refused(class: ClassSpec) -> String {
    refused_policy(&slices(vec![class]))
}

fn refused_policy(spec: &PolicySpec) -> String {
    spec.resolve(bits(1_000_000_000)).unwrap_err().to_string()
}

#[test]
fn the_largest_frame_is_counted_as_guarantees_are() {
    let counted = |accounting| {
        let spec = GuaranteedSpec {
            accounting,
            ..GuaranteedSpec::default()
        };
        spec.largest_frame().bytes()
    };
    let of = [Accounting::L3, Accounting::L2, Accounting::L1].map(counted);
    assert_eq!(of, [1_500, 1_522, 1_546]);
}

#[test]
fn a_burst_covers_4_ms_at_the_rate_and_two_largest_frames_at_least() {
    let burst = |rate| slice(promised("a", rate)).guarantee.unwrap().burst.bytes();
    assert_eq!(burst("10 Mbit/s"), 5_000);
    assert_eq!(burst("1 Mbit/s"), 2 * 1_522);
    let maximum = |rate| {
        let class = ClassSpec {
            maximum: at_most(absolute(rate), None),
            ..promised("a", "10 Mbit/s")
        };
        slice(class).maximum.unwrap().burst.bytes()
    };
    assert_eq!(maximum("100 Mbit/s"), 50_000);
    assert_eq!(
        maximum("10 Mbit/s"),
        5_000,
        "never below the guarantee's burst"
    );
}

#[test]
fn a_queue_holds_the_largest_backlog_of_a_guarantee() {
    // 5,000 B of burst, and 10 ms and 2 ms of a late gateway at the rate, if all frames have 60 B.
    let packets = slice(promised("a", "10 Mbit/s")).queue_limit.packets;
    assert_eq!(packets, (5_000 + 15_000) / 60 + 1);
    // Of 60 B with two tags the IP packet has 38.
    let l3 = PolicySpec {
        guaranteed: Some(GuaranteedSpec {
            accounting: Accounting::L3,
            ..GuaranteedSpec::default()
        }),
        ..slices(vec![promised("a", "10 Mbit/s")])
    };
    let packets = on_gigabit(&l3).classes[0]
        .slice
        .unwrap()
        .queue_limit
        .packets;
    assert_eq!(packets, (5_000 + 15_000) / 38 + 1);
    let set = ClassSpec {
        queue: QueueLimitSpec::Packets(7).into(),
        ..promised("a", "10 Mbit/s")
    };
    assert_eq!(slice(set).queue_limit.packets, 7);
}

#[test]
fn classes_always_belong_to_a_tenant() {
    let of = |spec: &PolicySpec| {
        let params = on_gigabit(spec);
        let tenants = params.guaranteed.unwrap().tenants;
        let names: Vec<String> = params
            .classes
            .iter()
            .map(|class| tenants[class.slice.unwrap().tenant as usize].name.clone())
            .collect();
        (names, tenants.len())
    };
    assert_eq!(
        of(&slices(vec![class("a")])),
        (vec!["default".into(), "default".into()], 1)
    );
    let tenants = GuaranteedSpec {
        tenants: vec![("x".into(), 3), ("y".into(), 1)],
        ..Default::default()
    };
    let named = |name: &str, tenant: &str| ClassSpec {
        tenant: Some(tenant.into()),
        ..class(name)
    };
    let spec = with(tenants, vec![named("a", "y"), named("b", "x")]);
    assert_eq!(
        of(&spec),
        (vec!["y".into(), "x".into(), "default".into()], 3)
    );
}

#[test]
fn best_effort_has_no_guarantee_and_its_share() {
    let class = slice(ClassSpec {
        weight: Some(5),
        ..class("a")
    });
    assert_eq!(
        (class.guarantee, class.maximum, class.weight),
        (None, None, 5)
    );
}

#[test]
fn settings_of_another_discipline_are_rejected() {
    let message = |class| refusal(class);
    assert_snapshot!(message(promised("a", "1 Mbit/s")), @"policy `p`, class `a`: guarantee: requires the discipline `guaranteed`");
    assert_snapshot!(message(ClassSpec { maximum: at_most(percent(1), None), ..class("a") }), @"policy `p`, class `a`: maximum: requires the discipline `guaranteed`");
    assert_snapshot!(message(ClassSpec { tenant: Some("t".into()), ..class("a") }), @"policy `p`, class `a`: tenant: requires the discipline `guaranteed`");
    let common = PolicySpec {
        guaranteed: Some(GuaranteedSpec::default()),
        ..policy(vec![])
    };
    assert_snapshot!(refused_policy(&common), @"policy `p`, class `class-default`: guaranteed: tenants, delays, largest frame and buffer are for the discipline `guaranteed`");
    assert_snapshot!(refused(guaranteed(percent(1))), @"policy `p`, class `critical`: minimum: has no delay bound: set `guarantee`");
    assert_snapshot!(refused(shaped(shape(percent(1)))), @"policy `p`, class `be`: shape: would delay guaranteed frames: set `maximum`");
    assert_snapshot!(refused(prioritised(priority(None))), @"policy `p`, class `critical`: priority: cannot be combined with guarantees: set `guarantee` with a short `delay`");
    assert_snapshot!(refused(ClassSpec { queue: wred(WredKey::Dscp, vec![]).into(), ..class("a") }), @"policy `p`, class `a`: wred: would drop guaranteed frames: set `queue_limit`");
    assert_snapshot!(refused(ClassSpec { child: Some(Box::new(policy(vec![]))), ..class("a") }), @"policy `p`, class `a`: child: cannot be inside a slice with a guarantee: make its classes slices, and the class a tenant");
    let inner = ClassSpec {
        child: Some(Box::new(slices(vec![]))),
        ..class("a")
    };
    assert_snapshot!(refusal(inner), @"policy `p`, class `class-default`: discipline: no delay can be guaranteed inside a class, because the delay of the class itself is not known; guarantee at the outermost level");
}

#[test]
fn contradictory_numbers_are_rejected() {
    let promise = |burst: u64| GuaranteeSpec {
        rate: absolute("10 Mbit/s"),
        burst: Some(ByteCount::new(burst).into()),
        delay: None,
        smallest_frame: None,
    };
    assert_snapshot!(refused(promised("a", "0 bit/s")), @"policy `p`, class `a`: guarantee: is a rate of zero: nothing could ever pass");
    assert_snapshot!(refused(ClassSpec { guarantee: Some(promise(1_521)), ..class("a") }), @"policy `p`, class `a`: guarantee: a burst of 1.521 kB is smaller than the largest frame: at least 1.522 kB is needed");
    assert_snapshot!(refused(ClassSpec { weight: Some(0), ..promised("a", "1 Mbit/s") }), @"policy `p`, class `a`: weight: is 0: a class needs a weight of at least 1");
    let limited = |rate, burst| ClassSpec {
        maximum: at_most(absolute(rate), burst),
        guarantee: Some(promise(4_000)),
        ..class("a")
    };
    assert_snapshot!(refused(limited("9 Mbit/s", None)), @"policy `p`, class `a`: maximum: is 9 Mbit/s, below the guarantee of 10 Mbit/s");
    assert_snapshot!(refused(limited("10 Mbit/s", Some(3_999))), @"policy `p`, class `a`: maximum: has a burst of 3.999 kB, below that of the guarantee, 4 kB");
    assert_snapshot!(refused(ClassSpec { maximum: at_most(percent(1), Some(100)), ..class("a") }), @"policy `p`, class `a`: maximum: has a burst of 100 B, smaller than the largest frame: at least 1.522 kB is needed");
    assert_snapshot!(refused(ClassSpec { tenant: Some("t".into()), ..class("a") }), @"policy `p`, class `a`: tenant: unknown tenant `t`; defined: `default`");
}

#[test]
fn common_settings_of_classes_are_checked() {
    let message = |common| refused_policy(&with(common, vec![]));
    let default = GuaranteedSpec::default;
    assert_snapshot!(message(GuaranteedSpec { largest_frame: Some(ByteCount::new(59)), ..default() }), @"policy `p`, class `class-default`: largest_frame: 59 B is outside 60 B to 65.557 kB, the shortest and the longest frame as L2 counts them");
    assert_snapshot!(message(GuaranteedSpec { largest_frame: Some(ByteCount::new(83)), accounting: Accounting::L1, ..default() }), @"policy `p`, class `class-default`: largest_frame: 83 B is outside 84 B to 65.581 kB, the shortest and the longest frame as L1 counts them");
    assert_snapshot!(message(GuaranteedSpec { largest_frame: Some(ByteCount::new(37)), accounting: Accounting::L3, ..default() }), @"policy `p`, class `class-default`: largest_frame: 37 B is outside 38 B to 65.535 kB, the shortest and the longest frame as L3 counts them");
    for (largest_frame, accounting) in [
        (84, Accounting::L1),
        (65_581, Accounting::L1),
        (38, Accounting::L3),
    ] {
        let common = GuaranteedSpec {
            largest_frame: Some(ByteCount::new(largest_frame)),
            accounting,
            ..default()
        };
        assert!(with(common, vec![]).resolve(bits(1_000_000_000)).is_ok());
    }
    assert_snapshot!(message(GuaranteedSpec { shortest_delay: Duration::from_nanos(999), ..default() }), @"policy `p`, class `class-default`: delays: 999 ns is shorter than 1 µs");
    assert_snapshot!(message(GuaranteedSpec { longest_delay: Duration::from_micros(9), ..default() }), @"policy `p`, class `class-default`: delays: the shortest, 10 µs, is longer than the longest, 9 µs");
    assert_snapshot!(message(GuaranteedSpec { tenants: vec![("t".into(), 0)], ..default() }), @"policy `p`, class `class-default`: tenants: tenant `t` has a weight of 0: must be at least 1");
    assert_snapshot!(message(GuaranteedSpec { tenants: vec![("t".into(), 1), ("t".into(), 2)], ..default() }), @"policy `p`, class `class-default`: tenants: tenant `t` is defined twice");
}

#[test]
fn the_first_class_that_does_not_fit_gets_the_reason() {
    let spec = slices(vec![
        promised("a", "600 Mbit/s"),
        promised("b", "500 Mbit/s"),
        promised("c", "1 Mbit/s"),
    ]);
    assert_snapshot!(refused_policy(&spec), @"policy `p`, class `b`: guarantee: guarantees 500 Mbit/s (L2), but only 400 Mbit/s (L2) of the link is free: write a rate of at most 400 Mbit/s");
    let l1 = PortParams::from(Rate {
        rate: bits(1_000_000_000),
        accounting: Accounting::L1,
    });
    let fitting = slices(vec![
        promised("a", "500 Mbit/s"),
        promised("b", "200 Mbit/s"),
    ]);
    assert!(fitting.resolve_for(l1).is_ok());
    // A gigabit of wire carries 714 Mbit/s of smallest frames.
    let above = slices(vec![
        promised("a", "500 Mbit/s"),
        promised("b", "215 Mbit/s"),
    ]);
    assert!(above.resolve(bits(1_000_000_000)).is_ok());
    assert_snapshot!(above.resolve_for(l1).unwrap_err(), @"policy `p`, class `b`: guarantee: guarantees 215 Mbit/s (L2), in small frames 301 Mbit/s (L1), but only 300 Mbit/s (L1) of the link is free: write a rate of at most 214.2 Mbit/s (L2), a smallest frame of at least 61 B, or `counts: L1` for all guarantees of the link");
}

#[test]
fn guarantees_fit_the_licence_as_well_as_the_port() {
    let port = PortParams {
        rate: Rate::l2(bits(1_000_000_000)),
        admissible: Rate::l2(bits(35_000_000)),
        hysteresis: 0,
    };
    assert!(
        slices(vec![promised("a", "20 Mbit/s")])
            .resolve_for(port)
            .is_ok()
    );
    assert!(
        slices(vec![promised("a", "36 Mbit/s")])
            .resolve_for(port)
            .is_err()
    );
    // As much as the licence allows, but more than the port carries.
    let port = PortParams {
        rate: Rate {
            rate: bits(35_000_000),
            accounting: Accounting::L1,
        },
        admissible: Rate::l2(bits(35_000_000)),
        hysteresis: 0,
    };
    assert!(
        slices(vec![promised("a", "26 Mbit/s")])
            .resolve_for(port)
            .is_err()
    );
}

#[test]
fn what_a_scheduler_cannot_represent_is_rejected() {
    let huge = BurstSpec::Size(ByteCount::new(2_000_000_000));
    let class = |guarantee| ClassSpec {
        guarantee,
        ..promised("a", "10 Mbit/s")
    };
    let guarantee = promised("a", "10 Mbit/s")
        .guarantee
        .map(|guarantee| GuaranteeSpec {
            burst: Some(huge),
            ..guarantee
        });
    assert_snapshot!(refused(class(guarantee)), @"policy `p`, class `a`: guarantee: has a burst of 2 GB: must be at most 1 GB");
    let heavy = ClassSpec {
        weight: Some(65_536),
        ..promised("a", "10 Mbit/s")
    };
    assert_snapshot!(refused(heavy), @"policy `p`, class `a`: weight: is above 65535, the largest weight of a slice");
}

#[test]
fn classes_that_can_lose_frames_within_their_guarantee_are_told() {
    let with = |queue_limit, police: Option<(u64, u64, Action)>| {
        let police = police.map(|(mbit, bytes, action)| PolicerSpec {
            cbs: Some(BurstSpec::Size(ByteCount::new(bytes))),
            exceed: Some(action.clone()),
            violate: Some(action),
            ..PolicerSpec::new(RateSpec::Absolute(bits(mbit * 1_000_000)))
        });
        let class = ClassSpec {
            queue: QueueSpec::default().with_limit(queue_limit),
            police,
            ..promised("a", "10 Mbit/s")
        };
        on_gigabit(&slices(vec![class])).loss_notes().join("\n")
    };
    assert_eq!(with(None, None), "");
    assert_snapshot!(with(Some(QueueLimitSpec::Packets(291)), None), @"class `a`: its queue holds 291 packets, but up to 292 small ones may wait within the guarantee: some may be lost; leave `queue_limit` out, or state the `smallest_frame` of the guarantee");
    assert_eq!(with(Some(QueueLimitSpec::Packets(292)), None), "");
    assert_snapshot!(with(Some(QueueLimitSpec::Bytes(ByteCount::new(17_000))), None), @"class `a`: its queue holds 284 packets, but up to 292 small ones may wait within the guarantee: some may be lost; leave `queue_limit` out, or state the `smallest_frame` of the guarantee");
    assert_snapshot!(with(None, Some((9, 5_000, Action::Drop))), @"class `a`: its policer drops frames within the guarantee of 10 Mbit/s with bursts of 5 kB: police at no less");
    assert_snapshot!(with(None, Some((10, 4_999, Action::Drop))), @"class `a`: its policer drops frames within the guarantee of 10 Mbit/s with bursts of 5 kB: police at no less");
    assert_eq!(with(None, Some((10, 5_000, Action::Drop))), "");
    assert_eq!(with(None, Some((1, 5_000, Action::Transmit))), "");
}
