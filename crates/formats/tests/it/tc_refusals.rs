//! What traffic control cannot express is refused, class by class.

use crate::support::shipped::{LICENCE, no_policy, policy, resolve};
use crate::tc_export::{of_text, script};
use insta::assert_snapshot;
use slicewise_formats::tc;
use slicewise_model::{
    Action, ClassMap, ClassSpec, Condition, Discipline, GuaranteeSpec, MatchMode, NamedQueueSpec,
    PolicerSpec, PolicySpec, Rate, RateSpec,
};
use slicewise_units::{BitRate, Duration};

#[test]
fn everything_that_cannot_be_expressed_is_listed() {
    let error = of_text(
        "class-map match-any a\n match vlan 1\nclass-map match-any b\n match vlan 2\n\
         class-map match-any c\n match vlan 3\n\
         policy-map p\n class a\n  police cir 1000000 pir 2000000 exceed-action set-dscp-transmit 8\n \
         class b\n  shape average 5000000\n  random-detect dscp-based\n \
         class c\n  set dscp ef\n  police 1000000 8000 8000 violate-action drop exceed-action transmit\n",
    );
    assert_snapshot!(error.unwrap_err(), @"
    policy `p`: Linux traffic control cannot express this:
      class `b`: wred: has several curves, of code points 0 and 8 for example: red has one for all packets of its queue, and gred chooses its curve by a mark (tc_index) that no classic filter sets; give all code points of the class one curve, or each curve a class with a `match` of its code points
      class `a`: police: sets DSCP 8 on some packets: act_police passes or drops, and has no other action for what exceeds; choose `transmit` or `drop`
      class `c`: set_dscp: the kernel rewrites headers with act_pedit alone, which does not find IP behind a second VLAN tag and leaves the checksum to another action; mark packets where they come in, or run the policy on the gateway
      class `c`: police: passes what either the committed or the excess bucket holds (RFC 2697): act_police has one bucket; drop or pass both what exceeds and what violates
    ");
}

#[test]
fn guarantees_with_a_delay_bound_are_refused_class_by_class() {
    let class = |name: &str, guarantee: bool| ClassSpec {
        guarantee: guarantee.then_some(GuaranteeSpec {
            rate: RateSpec::Absolute(BitRate::new(5_000_000)),
            burst: None,
            delay: None,
            smallest_frame: None,
        }),
        ..ClassSpec::new(ClassMap {
            name: name.into(),
            mode: MatchMode::Any,
            conditions: vec![Condition::Everything],
        })
    };
    let spec = PolicySpec {
        name: "guaranteed".into(),
        classes: vec![class("a", true), class("b", false), class("c", true)],
        discipline: Discipline::Guaranteed,
        guaranteed: None,
        queues: Vec::new(),
    };
    let error = tc::write(&resolve(&spec), LICENCE, "eth0").unwrap_err();
    assert_snapshot!(error, @"
    policy `guaranteed`: Linux traffic control cannot express this:
      class `a`: guarantee: the kernel has no scheduler that keeps a delay bound for each slice: HTB keeps rates, and serves first or in turn; run the policy on the gateway, or write one with `minimum` (a rate) and `priority` (served first)
      class `c`: guarantee: the kernel has no scheduler that keeps a delay bound for each slice: HTB keeps rates, and serves first or in turn; run the policy on the gateway, or write one with `minimum` (a rate) and `priority` (served first)
    ");
}

#[test]
fn queues_that_classes_share_and_meters_choose_are_refused() {
    let rate = RateSpec::Absolute(BitRate::new(5_000_000));
    let spec = |police: PolicerSpec, queues| PolicySpec {
        name: "shared".into(),
        classes: vec![ClassSpec {
            police: Some(police),
            ..ClassSpec::class_default()
        }],
        discipline: Discipline::DeficitRoundRobin,
        guaranteed: None,
        queues,
    };
    let chosen = PolicerSpec {
        exceed: Some(Action::Queue("low".into())),
        ..PolicerSpec::new(rate)
    };
    let shared = spec(chosen, vec![NamedQueueSpec::new("low")]);
    assert_snapshot!(tc::write(&resolve(&shared), LICENCE, "eth0").unwrap_err(), @"
    policy `shared`: Linux traffic control cannot express this:
      queues: several classes may use the queue `low`: here each class of HTB has a queue of its own; give each class its own, without `queue`
    ");
    let slow = PolicerSpec {
        refill_interval: Some(Duration::from_millis(1)),
        ..PolicerSpec::new(rate)
    };
    let slow = spec(slow, Vec::new());
    assert_snapshot!(tc::write(&resolve(&slow), LICENCE, "eth0").unwrap_err(), @"
    policy `shared`: Linux traffic control cannot express this:
      class `class-default`: police: is replenished every 1 ms only: act_police replenishes its bucket continuously; leave the interval out
    ");
}

#[test]
fn a_policer_that_passes_everything_is_none_with_or_without_a_scheduler() {
    let rate = RateSpec::Absolute(BitRate::new(5_000_000));
    let passing = || PolicerSpec {
        refill_interval: Some(Duration::from_millis(1)),
        exceed: Some(Action::Transmit),
        violate: Some(Action::Transmit),
        ..PolicerSpec::new(rate)
    };
    let script_of = |discipline, police: Option<PolicerSpec>| {
        let class = ClassSpec {
            police,
            ..ClassSpec::new(ClassMap {
                name: "a".into(),
                mode: MatchMode::Any,
                conditions: vec![Condition::OuterVlan(10..=10)],
            })
        };
        let spec = PolicySpec {
            name: "passing".into(),
            classes: vec![class, ClassSpec::class_default()],
            discipline,
            guaranteed: None,
            queues: Vec::new(),
        };
        tc::write(&resolve(&spec), LICENCE, "eth0").unwrap()
    };
    for discipline in [Discipline::Fifo, Discipline::MinimumShare] {
        let plain = script_of(discipline, None);
        assert_eq!(script_of(discipline, Some(passing())), plain);
    }
}

#[test]
fn refuses_guarantees_beyond_the_link_and_impossible_names() {
    let link = Rate::l2(BitRate::new(10_000_000));
    let error = tc::write(&policy("bandwidth"), link, "eth 0").unwrap_err();
    assert_snapshot!(error, @"
    policy `bandwidth`: Linux traffic control cannot express this:
      interface: `eth 0` is not the name of one: 1 to 15 characters, none of them a space, `/` or `:`
      guarantees: add up to 17.5 Mbit/s, more than the 10 Mbit/s there is: HTB would not keep any of them; lower one
    ");
    let none = Rate::l2(BitRate::ZERO);
    let error = tc::write(&no_policy(), none, "eth0").unwrap_err();
    assert_snapshot!(error, @"
    policy `no-policy`: Linux traffic control cannot express this:
      link: 0 bit/s is less than one byte per second
    ");
}

#[test]
fn a_name_cannot_break_out_of_a_script() {
    let mut policy = policy("shaping");
    policy.name = "p\nreboot".into();
    policy.classes[0].name = "be\n$(reboot)".into();
    let script = script(&policy);
    let harmless = |line: &str| line.is_empty() || line.starts_with('#') || line.starts_with("tc ");
    let others: Vec<&str> = script.lines().filter(|line| !harmless(line)).collect();
    assert_eq!(others, ["set -e"]);
    let commands: Vec<&str> = script.lines().filter(|l| l.starts_with("tc ")).collect();
    assert!(commands.iter().all(|command| !command.contains("reboot")));
}
