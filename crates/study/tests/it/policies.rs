//! Policies written as classes, and conditions on headers.

use crate::support::{STUDY, parse};
use insta::assert_snapshot;
use slicewise_model::queue::DualPi2Params;
use slicewise_model::{
    Action, BurstSpec, ClassMap, ClassSpec, CoDelSpec, ColourMode, Condition, Discipline,
    FlowQueueSpec, FlowsSpec, MatchMode, QueueLimitSpec, QueueManager, RateSpec, RedCurve,
    Separation, WredKey,
};
use slicewise_study::{Study, StudyPolicy};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// The policy made of these classes, which are lines of YAML.
fn policy(classes: &str) -> StudyPolicy {
    try_policy(classes)
        .unwrap_or_else(|message| panic!("{message}"))
        .policies
        .swap_remove(0)
}

fn try_policy(classes: &str) -> Result<Study, String> {
    let start = STUDY.find("policies:").unwrap();
    let end = STUDY.find("repetitions:").unwrap();
    let policies = format!("policies:\n  p:\n    classes:\n{classes}\n");
    parse(&format!("{}{policies}{}", &STUDY[..start], &STUDY[end..]))
}

fn class(settings: &str) -> ClassSpec {
    let classes = format!("      - {{name: c, match: {{vlan: 10}}, {settings}}}");
    policy(&classes).spec.classes.swap_remove(0)
}

fn matches(condition: &str) -> ClassMap {
    let classes = format!("      - {{name: c, match: {condition}}}");
    policy(&classes)
        .spec
        .classes
        .swap_remove(0)
        .matches
        .unwrap()
}

#[test]
fn a_policer_is_a_rate_or_all_its_settings() {
    let short = class("police: 2 Mbit/s").police.unwrap();
    assert_eq!(short.cir, RateSpec::Absolute(BitRate::new(2_000_000)));
    assert_eq!((short.cbs, short.exceed), (None, None));
    let long = class(
        "police: {rate: 10 %, burst: 20 kB, peak_rate: 2 Mbit/s, peak_burst: 10 ms, counts: L3, \
         colour: aware, conform: set_dscp af11, exceed: set_qos_group 3, violate: drop}",
    );
    let long = long.police.unwrap();
    assert_eq!(long.cir, RateSpec::PercentMilli(10_000));
    assert_eq!(long.cbs, Some(BurstSpec::Size(ByteCount::new(20_000))));
    assert_eq!(long.pir, Some(RateSpec::Absolute(BitRate::new(2_000_000))));
    assert_eq!(long.pbs, Some(BurstSpec::Time(Duration::from_millis(10))));
    assert_eq!(
        (long.accounting, long.mode),
        (Accounting::L3, ColourMode::Aware)
    );
    let actions = [long.conform, long.exceed, long.violate].map(Option::unwrap);
    assert_eq!(
        actions,
        [Action::SetDscp(10), Action::SetQosGroup(3), Action::Drop]
    );
}

#[test]
fn a_shaper_has_its_bursts_in_bits() {
    let shape =
        class("shape: {rate: 50 %, burst: 1 kB, excess_burst: 2 kB, peak: true, counts: L1}");
    let shape = shape.shape.unwrap();
    assert_eq!(shape.rate, RateSpec::PercentMilli(50_000));
    assert_eq!(
        (shape.committed_burst_bits, shape.excess_burst_bits),
        (Some(8_000.into()), Some(16_000.into()))
    );
    assert_eq!((shape.peak, shape.accounting), (true, Accounting::L1));
}

#[test]
fn a_priority_class_has_level_one_unless_it_is_said() {
    assert_eq!(class("priority: {}").priority.unwrap().level, 1);
    let priority = class("priority: {level: 2, rate: 1 Mbit/s, burst: 5 kB}")
        .priority
        .unwrap();
    assert_eq!(priority.level, 2);
    assert_eq!(
        priority.rate,
        Some(RateSpec::Absolute(BitRate::new(1_000_000)))
    );
    assert_eq!(priority.burst, Some(ByteCount::new(5_000)));
}

#[test]
fn a_queue_limit_is_packets_bytes_or_time() {
    let limit = |text: &str| class(&format!("queue_limit: {text}")).queue.limit.unwrap();
    assert_eq!(limit("1 packet"), QueueLimitSpec::Packets(1));
    assert_eq!(limit("1_000 packets"), QueueLimitSpec::Packets(1_000));
    assert_eq!(
        limit("64 kB"),
        QueueLimitSpec::Bytes(ByteCount::new(64_000))
    );
    assert_eq!(
        limit("10 ms"),
        QueueLimitSpec::Time(Duration::from_millis(10))
    );
}

#[test]
fn wred_curves_are_for_code_points_by_number_or_name() {
    let wred = class(
        "shape: 1 Mbit/s, wred: {weight_exponent: 4, curves: [{for: 0, min: 1, max: 1, \
         denominator: 1}, {for: ef, min: 5, max: 9}]}",
    );
    let wred = wred.queue.wred().unwrap();
    let curve = |min_packets, max_packets, mark_denominator| RedCurve {
        min_packets,
        max_packets,
        mark_denominator,
    };
    assert_eq!(wred.key, WredKey::Dscp);
    assert_eq!(wred.exponential_weight, Some(4));
    assert_eq!(
        wred.curves,
        [(0, curve(1, 1, 1).into()), (46, curve(5, 9, 10).into())]
    );
}

#[test]
fn a_flow_queue_has_the_defaults_of_the_rfc_and_levels_by_code_point() {
    let queue = class("flow_queue: {}").queue.flow_queue().unwrap();
    assert_eq!(queue, FlowQueueSpec::default());
    let queue = class(
        "flow_queue: {flows: 64, target: 1 ms, interval: 20 ms, quantum: 300 B, ecn: false, \
         priority: [{dscp: [ef, 40]}, {dscp: [af41]}]}",
    );
    let expected = FlowQueueSpec {
        flows: FlowsSpec {
            flows: Some(64),
            quantum: Some(ByteCount::new(300)),
            priority: vec![vec![46, 40], vec![34]],
        },
        codel: CoDelSpec {
            target: Some(Duration::from_millis(1)),
            interval: Some(Duration::from_millis(20)),
            ecn: Some(false),
        },
    };
    assert_eq!(queue.queue.flow_queue().unwrap(), expected);
}

#[test]
fn a_class_is_divided_by_a_child() {
    let class = class(
        "shape: 2 Mbit/s, child: {discipline: deficit_round_robin, classes: [{name: a, match: \
         {dscp: 1}, weight: 3}, {name: class-default, weight: 2}]}",
    );
    let child = class.child.unwrap();
    assert_eq!(child.discipline, Discipline::DeficitRoundRobin);
    assert_eq!(child.classes.len(), 2);
    assert!(child.classes[1].matches.is_none());
}

#[test]
fn a_class_of_a_slice_matches_what_the_slice_does() {
    let study = parse(STUDY).unwrap();
    let of_slice = policy("      - {name: gold, slice: gold}")
        .spec
        .classes
        .swap_remove(0);
    assert_eq!(of_slice.matches.unwrap(), study.slices[0].matches);
}

#[test]
fn values_of_one_key_are_alternatives() {
    let map = matches("{vlan: [10, 20-29]}");
    assert_eq!(map.mode, MatchMode::Any);
    assert_eq!(
        map.conditions,
        [Condition::OuterVlan(10..=10), Condition::OuterVlan(20..=29)]
    );
}

#[test]
fn keys_must_all_hold() {
    let map = matches("{vlan: 10, protocol: udp, dscp: [ef, 0]}");
    assert_eq!(map.mode, MatchMode::All);
    assert_eq!(
        map.conditions,
        [
            Condition::OuterVlan(10..=10),
            Condition::Protocol(17),
            Condition::Dscp(1 | 1 << 46),
        ]
    );
}

#[test]
fn a_pair_of_tags_and_a_teid_are_conditions_like_others() {
    assert_eq!(
        matches("{vlan: 10, inner_vlan: 7}").conditions,
        [Condition::OuterVlan(10..=10), Condition::InnerVlan(7..=7)]
    );
    assert_eq!(
        matches("{teid: [7, 4000000000-4294967295]}").conditions,
        [
            Condition::GtpTeid(7..=7),
            Condition::GtpTeid(4_000_000_000..=u32::MAX)
        ]
    );
    let refusal = try_policy("      - {name: a, match: {teid: 0}}").unwrap_err();
    insta::assert_snapshot!(refusal, @"study.yaml:27:33 `0`: `0` is not a whole number from 1 to 4,294,967,295, or a range like `1-1000`");
}

#[test]
fn a_list_of_conditions_needs_one_of_them() {
    let map = matches("[{vlan: 10}, {source: 10.0.0.0/8}]");
    assert_eq!(map.mode, MatchMode::Any);
    let prefix = "10.0.0.0/8".parse().unwrap();
    assert_eq!(
        map.conditions,
        [Condition::OuterVlan(10..=10), Condition::Source(prefix)]
    );
}

#[test]
fn no_condition_is_every_frame() {
    assert_eq!(matches("{}").conditions, [Condition::Everything]);
}

#[test]
fn a_policy_is_shown_as_it_was_written() {
    let shown = policy(
        "      # the one\n      - name: c\n        match: {vlan: 10}\n        minimum: 5 %\n",
    );
    insta::assert_snapshot!(shown.configuration, @"
    classes:
      # the one
      - name: c
        match: {vlan: 10}
        minimum: 5 %
    ");
}

#[test]
fn mistakes_in_classes_are_all_told() {
    let message = try_policy(
        "      - {name: a, match: {vlan: 4095}}
      - {name: b, match: {protocol: tpc}}
      - {name: c, match: {precedence: 8}}
      - {name: d, match: {source: 10.0.0.0/33}}
      - {name: e, match: {dscp: af14}}
      - {name: f, match: {vlan: 20-10}}
      - {name: g, match: {vlan: 1}, police: {rate: 1 Mbit/s, exceed: drops}}
      - {name: h, match: {vlan: 1}, queue_limit: 5}
      - {name: class-default, match: {vlan: 1}}
      - {name: i}",
    );
    insta::assert_snapshot!(message.unwrap_err(), @"
    study.yaml:27:33 `4095`: this is above 4094, the largest
    study.yaml:28:37 `tpc`: `tpc` is not a protocol: write a number from 0 to 255 or a name: known are `icmp`, `tcp`, `udp`, `icmpv6`, `sctp`
    study.yaml:29:39 `8`: a precedence is a number from 0 to 7
    study.yaml:30:35 `10.0.0.0/33`: `10.0.0.0/33` is not an address prefix: write for example `10.0.10.0/24` or `2001:db8::/32`
    study.yaml:31:33 `af14`: `af14` is not a code point from 0 to 63, or the name of one: did you mean `af41`?
    study.yaml:32:33 `20-10`: the range `20-10` ends before it starts
    study.yaml:33:70 `drops`: `drops` is not an action: write `transmit`, `drop`, `set_dscp af11`, `set_qos_group 3` or `{queue: NAME}`
    study.yaml:34:50 `5`: `5` is not a queue limit: write for example `64 packets`, `100 kB` or `10 ms`
    study.yaml:35:31 `match`: `class-default` gets what matches no other class
    study.yaml:36:16 `i`: a class needs either `match` or `slice`, to say which frames
    ");
}

fn guaranteed(common: &str, classes: &str) -> Result<StudyPolicy, String> {
    let classes = format!("{classes}\n    discipline: guaranteed\n{common}");
    try_policy(&classes).map(|mut study| study.policies.swap_remove(0))
}

#[test]
fn a_guarantee_is_a_rate_or_all_its_settings() {
    let policy = guaranteed(
        "    guaranteed: {counts: L1, largest_frame: 1546 B, delays: {shortest: 50 us, longest: 1 s}, \
         tenants: {gold: 3, lead: 1}, buffer: 1 MB}",
        "      - {name: c, match: {vlan: 10}, tenant: lead, maximum: {rate: 50 %, burst: 10 kB},\n         \
         guarantee: {rate: 1 Mbit/s, burst: 4 kB, delay: 20 ms}}\n      \
         - {name: d, match: {vlan: 20}, guarantee: 5 %, maximum: 1 Mbit/s}",
    )
    .unwrap();
    let [c, d] = &policy.spec.classes[..] else {
        panic!("two classes")
    };
    let guarantee = c.guarantee.unwrap();
    assert_eq!(guarantee.rate, RateSpec::Absolute(BitRate::new(1_000_000)));
    assert_eq!(guarantee.burst, Some(ByteCount::new(4_000).into()));
    assert_eq!(guarantee.delay, Some(Duration::from_millis(20)));
    assert_eq!(c.maximum.unwrap().rate, RateSpec::PercentMilli(50_000));
    assert_eq!(c.tenant.as_deref(), Some("lead"));
    let guarantee = d.guarantee.unwrap();
    assert_eq!((guarantee.burst, guarantee.delay), (None, None));
    let common = policy.spec.guaranteed.unwrap();
    assert_eq!(common.accounting, Accounting::L1);
    assert_eq!(common.largest_frame, Some(ByteCount::new(1_546)));
    assert_eq!(common.shortest_delay, Duration::from_micros(50));
    assert_eq!(common.longest_delay, Duration::from_secs(1));
    assert_eq!(
        common.tenants,
        [("gold".to_owned(), 3), ("lead".to_owned(), 1)]
    );
    assert_eq!(common.buffer, Some(ByteCount::new(1_000_000)));
    let tenant = |class: usize| policy.params.classes[class].slice.unwrap().tenant;
    assert_eq!((tenant(0), tenant(1), tenant(2)), (1, 2, 2));
}

#[test]
fn a_guarantee_that_does_not_fit_is_told_at_its_class() {
    let message = guaranteed(
        "",
        "      - {name: c, match: {vlan: 10}, guarantee: {rate: 8 Mbit/s, delay: 50 ms}}",
    )
    .unwrap_err();
    assert_snapshot!(message, @"study.yaml:27:38 `guarantee`: class `c`, guarantee: guarantees 8 Mbit/s (L2), in small frames 11.2 Mbit/s (L1), but only 10 Mbit/s (L1) of the link is free: write a rate of at most 7.142 Mbit/s (L2), a smallest frame of at least 96 B, or `counts: L1` for all guarantees of the link");
    let message = guaranteed(
        "",
        "      - {name: c, match: {vlan: 10}, guarantee: 1 Mbit/s, minimum: 1 Mbit/s}",
    )
    .unwrap_err();
    assert_snapshot!(message, @"study.yaml:27:68 `1 Mbit/s`: class `c`, minimum: has no delay bound: set `guarantee`");
}

#[test]
fn what_guarantees_have_in_common_is_told_at_its_place() {
    let class = "      - {name: c, match: {vlan: 10}, tenant: gld}";
    let message = guaranteed("    guaranteed: {tenants: {gold: 1}}", class).unwrap_err();
    assert_snapshot!(message, @"study.yaml:27:46 `gld`: class `c`, tenant: unknown tenant `gld`; defined: `gold`, `default`");
    let message = guaranteed(
        "    guaranteed: {largest_frame: 10 B, delays: {shortest: 1}, tenants: {gold: 0}}",
        class,
    )
    .unwrap_err();
    assert_snapshot!(message, @"
    study.yaml:29:58 `1`: `1` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h
    study.yaml:29:78 `0`: a tenant needs a weight of at least 1
    ");
    let message = guaranteed("    guaranteed: {delays: {shortest: 1 s}}", class).unwrap_err();
    assert_snapshot!(message, @"study.yaml:29:37 `1 s`: delays: the shortest, 1 s, is longer than the longest, 100 ms");
    let other = try_policy("      - {name: c, match: {vlan: 10}}\n    guaranteed: {buffer: 1 MB}")
        .unwrap_err();
    assert_snapshot!(other, @"study.yaml:28:5 `guaranteed`: this requires the discipline `guaranteed`: set that too");
}

#[test]
fn conditions_stand_in_one_order_whatever_the_order_they_are_written_in() {
    let written = matches("{vlan: 10, source: 10.0.0.0/8, protocol: udp, dscp: ef}");
    let reversed = matches("{dscp: ef, protocol: udp, source: 10.0.0.0/8, vlan: 10}");
    assert_eq!(written, reversed);
}

#[test]
fn a_burst_in_a_licence_is_of_its_rate_wherever_the_rate_is_written() {
    let licensed = |licence: &str| {
        let dut = format!("model: isr4221\n  licence: {licence}\n  port_rate: 10 Mbit/s");
        let text = STUDY.replacen("model: port\n  port_rate: 10 Mbit/s", &dut, 1);
        parse(&text).unwrap().dut.licence.unwrap().credit
    };
    assert_eq!(licensed("{rate: 10 Mbit/s, credit: 10 ms}").bytes(), 12_500);
    assert_eq!(licensed("{credit: 10 ms, rate: 10 Mbit/s}").bytes(), 12_500);
}

#[test]
fn conditions_hold_however_deeply_not_is_nested() {
    let nested = |depth: usize| format!("{}vlan: 10{}", "not: {".repeat(depth), "}".repeat(depth));
    let mut conditions = matches(&format!("{{{}}}", nested(10))).conditions;
    for _ in 0..10 {
        let [Condition::Not(inner)] = conditions.as_slice() else {
            panic!("{conditions:?}");
        };
        conditions = vec![(**inner).clone()];
    }
    assert_eq!(conditions, [Condition::OuterVlan(10..=10)]);
}

#[test]
fn a_policy_names_the_assumptions_that_its_verdict_rests_on() {
    let with = |name: &str| {
        let assumed = "assumptions:\n  credit: A second of it.\nslices:";
        let text = STUDY.replacen("slices:", assumed, 1);
        text.replacen(
            "  weighted:",
            &format!("  weighted:\n    rests_on: {{{name}: broken with less}}"),
            1,
        )
    };
    let study = parse(&with("credit")).unwrap();
    let description = study.description("test");
    assert_eq!(
        description.policies[1].rests_on,
        ["credit: broken with less"]
    );
    assert_snapshot!(parse(&with("credits")).unwrap_err(), @"study.yaml:29:16 `credits`: there is no assumption `credits`; help: did you mean `credit`?");
}

#[test]
fn dualpi2_has_the_defaults_of_linux_and_all_its_settings_may_be_written() {
    let params = |text: &str| {
        let classes = format!("      - {{name: c, match: {{vlan: 10}}, {text}}}");
        match policy(&classes).params.classes[0].queue.manager {
            QueueManager::DualPi2(params) => params,
            _ => panic!("{text}"),
        }
    };
    let expected = DualPi2Params {
        target: Duration::from_millis(15),
        update: Duration::from_millis(16),
        step: Duration::from_millis(1),
        coupling: 2,
        weight: 15,
    };
    assert_eq!(params("dualpi2: {}"), expected);
    let expected = DualPi2Params {
        target: Duration::from_millis(5),
        update: Duration::from_millis(8),
        step: Duration::from_micros(500),
        coupling: 3,
        weight: 9,
    };
    let text = "dualpi2: {target: 5 ms, update: 8 ms, step: 0.5 ms, coupling: 3, weight: 9}";
    assert_eq!(params(text), expected);
}

#[test]
fn codel_alone_has_one_queue_and_the_defaults_of_the_rfc() {
    let queue = |text: &str| {
        let classes = format!("      - {{name: c, match: {{vlan: 10}}, {text}}}");
        policy(&classes).params.classes[0].queue.clone()
    };
    let alone = queue("codel: {}");
    assert_eq!((alone.flows, alone.keeps_order()), (Separation::None, true));
    assert_eq!(alone.manager, queue("flow_queue: {}").manager);
    let text = "{target: 1 ms, interval: 20 ms, ecn: no}";
    let (alone, by_flow) = (format!("codel: {text}"), format!("flow_queue: {text}"));
    assert_eq!(queue(&alone).manager, queue(&by_flow).manager);
}
