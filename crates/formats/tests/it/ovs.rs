//! Queues and rules of Open vSwitch: what they are read as, what is said of mistakes, and what is written.

use crate::support::{any_policy, ovs_fixpoint};
use insta::assert_snapshot;
use proptest::prelude::*;
use slicewise_formats::ReadPolicy;
use slicewise_formats::ovs;
use slicewise_model::{Discipline, PolicyParams, Rate, RateSpec};
use slicewise_units::BitRate;
use slicewise_wire::{Headers, IpVersion};
use std::fs;

const LINK: BitRate = BitRate::new(1_000_000_000);

fn golden(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ovs/");
    fs::read_to_string(format!("{folder}{name}.sh")).unwrap()
}

fn policy(text: &str) -> ReadPolicy {
    ovs::read(text, LINK, &[]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn params(text: &str) -> PolicyParams {
    policy(text).spec.resolve(LINK).unwrap()
}

fn mistakes(text: &str) -> String {
    let errors = ovs::read(text, LINK, &[]).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The golden file with two queues, changed.
fn changed(old: &str, new: &str) -> String {
    let text = golden("virtual-queues");
    assert!(text.contains(old), "`{old}` is not in the text");
    text.replacen(old, new, 1)
}

fn packet(source: u32, protocol: u8, port: u16) -> Headers {
    Headers {
        source: source.into(),
        ip_version: IpVersion::V4,
        protocol,
        has_ports: true,
        destination_port: port,
        ..Headers::EMPTY
    }
}

/// The class of a frame, and the named queue it waits in.
fn class_of(policy: &PolicyParams, frame: &Headers) -> (String, Option<String>) {
    let mut classes = policy.classes.iter();
    let matching =
        classes.find(|class| class.matches.as_ref().is_none_or(|map| map.matches(frame)));
    let class = matching.unwrap();
    (class.name.clone(), class.named_queue.clone())
}

#[test]
fn a_queue_is_a_class_with_a_minimum_and_a_maximum() {
    let read = policy(&golden("virtual-queues"));
    let classes = &read.spec.classes;
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["h1", "queue-2", "class-default"]);
    assert_eq!(
        (read.spec.discipline, read.spec.queues.len()),
        (Discipline::MinimumShare, 0)
    );
    let rate = |mbit: u64| Some(RateSpec::Absolute(BitRate::new(mbit * 1_000_000)));
    assert_eq!(
        (classes[0].minimum, classes[1].minimum, classes[2].minimum),
        (rate(640), rate(100), None)
    );
    assert_eq!(classes[0].shape.map(|shape| shape.rate), rate(640));
    let bursts = [0, 1].map(|class: usize| classes[class].shape.unwrap().committed_burst_bits);
    assert_eq!(bursts, [Some((1564 * 8).into()), Some(800_000.into())]);
    let params = params(&golden("virtual-queues"));
    for (source, protocol, port, class) in [
        (0x0a00_0001, 6, 80, "h1"),
        (0x0a00_0002, 6, 0x1fff, "queue-2"),
        (0x0a00_0002, 17, 1, "queue-2"),
        (0x0a00_0003, 17, 1, "class-default"),
    ] {
        assert_eq!(class_of(&params, &packet(source, protocol, port)).0, class);
    }
}

#[test]
fn the_excess_is_shared_by_the_quanta_of_the_kernel() {
    let weights = |text: &str| -> Vec<Option<u32>> {
        policy(text)
            .spec
            .classes
            .iter()
            .map(|class| class.weight)
            .collect()
    };
    // Above 16 Mbit/s a quantum is 200,000 bytes, without a minimum it is 1,000.
    assert_eq!(
        weights(&golden("virtual-queues")),
        [Some(200), Some(200), Some(1)]
    );
    let slow = changed("min-rate=100000000", "min-rate=8000000");
    assert_eq!(weights(&slow), [Some(200), Some(100), Some(1)]);
    let none = golden("virtual-queues")
        .replace("other-config:min-rate=640000000", "")
        .replace("other-config:min-rate=100000000", "");
    assert_eq!(weights(&none), [None, None, None]);
}

#[test]
fn rules_are_matched_by_priority_and_their_queue_is_shared_where_others_stand_between() {
    let params = params(&golden("exceptions"));
    let [all] = params.classes.as_slice() else {
        panic!("the max-rate of the QoS is a shaper above: {params:?}");
    };
    assert_eq!(all.shape.unwrap().rate.rate, BitRate::new(500_000_000));
    let inner = all.child.as_deref().unwrap();
    let shared = Some("queue-0".to_owned());
    assert_eq!(
        class_of(inner, &packet(1, 17, 53)),
        ("queue-0".to_owned(), shared.clone())
    );
    assert_eq!(
        class_of(inner, &packet(1, 17, 54)),
        ("queue-1".to_owned(), None)
    );
    assert_eq!(
        class_of(inner, &packet(1, 6, 53)),
        ("class-default".to_owned(), shared)
    );
    assert_eq!(inner.classes[1].set_dscp, Some(46));
}

#[test]
fn the_qos_limits_all_queues_only_where_the_link_does_not() {
    let text = golden("exceptions");
    let spec = ovs::read(&text, BitRate::new(500_000_000), &[])
        .unwrap()
        .spec;
    assert!(spec.classes.iter().all(|class| class.child.is_none()));
}

#[test]
fn what_is_left_out_is_noted_with_its_place() {
    let text = changed(
        "queues:2=@q2",
        "queues:2=@q2 queues:3=@q3 -- --id=@q3 create queue other-config:burst=9",
    );
    let notes = policy(&text).notes;
    let told: Vec<String> = notes
        .iter()
        .map(|note| format!("{}:{}: {}", note.span.line, note.span.column, note.message))
        .collect();
    assert_snapshot!(told.join("\n"), @"
    3:111: no rule chooses queue 3: it is left out
    3:161: `burst` without `max-rate` limits nothing here: a minimum has a burst of its own
    6:25: `in_port` is not checked: frames are told apart by the other fields alone
    ");
}

#[test]
fn names_every_value_that_is_wrong() {
    let hostile = golden("hostile");
    let lines: Vec<&str> = hostile.lines().collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    let second = [vec![""; first.len()], second.to_vec()].concat();
    assert_snapshot!([mistakes(&first.join("\n")), mistakes(&second.join("\n"))].join("\n"));
}

#[test]
fn names_what_contradicts_each_other() {
    assert_snapshot!(mistakes(&golden("contradictions")), @"
    2:64: no queue `@q3` is created: expected `--id=@q3 create queue …`; did you mean `@q1`?
    3:72: `class-default` is the class of what no rule matches: expected a name of its own
    4:22: the QoS does not have the queue `@q2`: expected `queues:N=@q2` in it
    6:61: this rule and that on line 5 match common packets, choose queues 2 and 1, and have the same priority: expected `priority=N` in one of them
    7:57: queue 7 does not exist: expected a queue of the QoS: 0, 1, 2
    ");
}

#[test]
fn a_record_with_an_error_in_it_is_still_created() {
    let wrong = changed("other-config:min-rate=", "other-config:min-rat=");
    assert_eq!(mistakes(&wrong).lines().count(), 1, "{}", mistakes(&wrong));
    assert!(mistakes(&wrong).contains("did you mean `min-rate`?"));
    let no_queue = changed("--id=@q1 create queue", "--id=@q1 create quue");
    assert_eq!(
        mistakes(&no_queue).lines().count(),
        1,
        "{}",
        mistakes(&no_queue)
    );
}

#[test]
fn a_rule_alone_on_a_line_may_have_action_or_actions() {
    let rule = |word: &str| {
        format!(
            "{}\nip,nw_src=10.9.9.9,{word}=set_queue:1,normal\n",
            golden("virtual-queues")
        )
    };
    assert_eq!(policy(&rule("action")), policy(&rule("actions")));
}

#[test]
fn every_field_that_a_message_offers_is_read() {
    let rule = |field: &str| {
        changed(
            "\n",
            &format!("\novs-ofctl add-flow br0 {field},actions=normal\n"),
        )
    };
    let refused = mistakes(&rule("nonsense=1"));
    let (_, offered) = refused.split_once("expected ").unwrap();
    let fields: Vec<&str> = offered.split('`').skip(1).step_by(2).collect();
    assert!(
        fields.len() > 20 && fields.contains(&"udp_dst"),
        "{refused}"
    );
    for field in fields {
        let read = ovs::read(&rule(&format!("{field}=1")), LINK, &[]);
        let told = read.map_or_else(|errors| format!("{errors:?}"), |_| String::new());
        assert!(
            !told.contains("is not a field that is read"),
            "{field}: {told}"
        );
    }
}

#[test]
fn minimums_above_the_maximum_of_the_qos_are_refused() {
    assert_snapshot!(mistakes(&changed("max-rate=1000000000", "max-rate=700000000")), @"5:50: the min-rates add up to more than 700 Mbit/s, the max-rate of the QoS: expected at most 60000000");
}

#[test]
fn minimums_above_the_link_are_refused_with_the_place_of_the_queue() {
    let text = changed("other-config:max-rate=1000000000 ", "");
    let read = ovs::read(&text, LINK, &[]).unwrap();
    let error = read.spec.resolve(BitRate::new(700_000_000)).unwrap_err();
    assert_eq!((error.class.as_str(), error.field), ("queue-2", "minimum"));
    let place = read
        .places
        .iter()
        .find(|place| place.class == error.class && place.field == error.field);
    let span = place.unwrap().span;
    assert_eq!((span.line, span.column), (5, 50));
}

#[test]
fn a_text_without_a_qos_or_a_port_is_refused() {
    let told = [
        mistakes(""),
        mistakes("ovs-ofctl add-flow br0 ip,actions=normal"),
        mistakes("ovs-vsctl -- --id=@a create qos type=linux-htb"),
        mistakes("ovs-vsctl set port eth0 qos=@b -- --id=@a create qos queues={}"),
        mistakes("ovs-vsctl set port eth0 'qos=@b"),
    ];
    assert_snapshot!(told.join("\n"), @"
    1:1: the text creates no QoS: expected `ovs-vsctl set port NAME qos=@ID -- --id=@ID create qos type=linux-htb …`
    1:1: the text creates no QoS: expected `ovs-vsctl set port NAME qos=@ID -- --id=@ID create qos type=linux-htb …`
    1:29: no port uses the QoS `@a`: expected `set port NAME qos=@a`
    1:50: the QoS has no type: expected `type=linux-htb`
    1:25: the quote is not closed on its line: expected a closing '
    ");
}

#[test]
fn a_policy_is_written_as_a_script() {
    let written = ovs::write(&params(&golden("virtual-queues")), Rate::l2(LINK), "eth1").unwrap();
    assert_snapshot!(written.to_string());
}

#[test]
fn what_the_switch_does_not_have_is_refused() {
    let good = params(&golden("virtual-queues"));
    let refused = |change: &dyn Fn(&mut PolicyParams)| {
        let mut policy = good.clone();
        change(&mut policy);
        ovs::write(&policy, Rate::l2(LINK), "eth1")
            .unwrap_err()
            .to_string()
    };
    let vlan = slicewise_model::Condition::InnerVlan(3..=3);
    let told = [
        refused(&|p| p.discipline = Discipline::DeficitRoundRobin),
        refused(&|p| {
            p.classes[0].minimum = None;
            p.classes[0].priority = Some(slicewise_model::PriorityParams {
                level: 1,
                police: None,
            });
        }),
        refused(&|p| p.classes[2].set_dscp = Some(8)),
        refused(&|p| p.classes[0].child = Some(Box::new(good.clone()))),
        refused(&|p| p.classes[0].matches.as_mut().unwrap().conditions = vec![vlan.clone()]),
    ];
    assert_snapshot!(told.join("\n"), @"
    policy `ovs`: Open vSwitch cannot express this:
      discipline: its queues have a minimum, and share the excess: the discipline `minimum_share`
    policy `ovs`: Open vSwitch cannot express this:
      class `h1`: priority: no queue is served strictly first
    policy `ovs`: Open vSwitch cannot express this:
      class `class-default`: set_dscp: queue 0, of frames that no rule matches, does not mark them
    policy `ovs`: Open vSwitch cannot express this:
      class `h1`: child: queues are not divided
    policy `ovs`: Open vSwitch cannot express this:
      class `h1`: match: matches the inner VLAN id
    ");
    let error = ovs::write(&good, Rate::l2(LINK), "a b").unwrap_err();
    assert!(error.to_string().contains("interface"), "{error}");
}

#[test]
fn every_file_of_the_corpus_reads_the_same_after_writing() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/ovs_commands"
    );
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() >= 4, "the corpus is gone");
    for file in files {
        ovs_fixpoint::check(&fs::read_to_string(file.unwrap().path()).unwrap());
    }
}

fn rule() -> impl Strategy<Value = String> {
    use prop::sample::select;
    let network = select(vec!["ip", "tcp", "udp", "ipv6", "udp6", "icmp"]);
    let fields = (
        any::<u8>(),
        24..=32u8,
        any::<bool>(),
        0..64u8,
        any::<u16>(),
        0..=16u32,
    );
    (
        0..4u16,
        network,
        fields,
        prop::option::of(1..20u16),
        0..4u32,
    )
        .prop_map(
            |(priority, network, (host, length, has_address, dscp, port, bits), vlan, queue)| {
                let mut text = format!("priority={priority},{network}");
                if has_address && !network.contains('6') {
                    text += &format!(",nw_src=10.0.0.{host}/{length}");
                }
                if dscp < 8 {
                    text += &format!(",ip_dscp={dscp}");
                }
                if ["tcp", "udp", "udp6"].contains(&network) && bits > 0 {
                    text += &format!(",tp_dst={port}/{:#x}", u16::MAX << (16 - bits));
                }
                text += &vlan.map_or(String::new(), |vlan| format!(",dl_vlan={vlan}"));
                format!("{text},actions=set_queue:{queue},normal")
            },
        )
}

fn text() -> impl Strategy<Value = String> {
    let rates = (
        prop::option::of(1..300_000_000u64),
        prop::option::of(0..600_000_000u64),
        prop::option::of(1..10_000_000u64),
        prop::option::of(0..64u8),
    );
    let queues = prop::collection::vec(rates, 4);
    let limit = prop::option::of(900_000_000..1_100_000_000u64);
    (queues, prop::collection::vec(rule(), 0..8), limit).prop_map(|(queues, rules, limit)| {
        let mut text =
            "ovs-vsctl set port eth1 qos=@a -- --id=@a create qos type=linux-htb".to_owned();
        text += &limit.map_or(String::new(), |rate| {
            format!(" other-config:max-rate={rate}")
        });
        for number in 0..queues.len() {
            text += &format!(" queues:{number}=@q{number}");
        }
        for (number, (min, more, burst, dscp)) in queues.iter().enumerate() {
            text += &format!(" -- --id=@q{number} create queue external-ids:n={number}");
            text += &min.map_or(String::new(), |rate| {
                format!(" other-config:min-rate={rate}")
            });
            text += &more.map_or(String::new(), |more| {
                format!(" other-config:max-rate={}", min.unwrap_or(1) + more)
            });
            text += &burst.map_or(String::new(), |bits| format!(" other-config:burst={bits}"));
            if number > 0 {
                text += &dscp.map_or(String::new(), |dscp| format!(" dscp={dscp}"));
            }
        }
        format!("{text}\n{}\n", rules.join("\n"))
    })
}

/// Rules of different priorities about four addresses and two protocols, so that many overlap: priority, host, prefix
/// length, protocol, queue.
fn overlapping() -> impl Strategy<Value = Vec<(usize, u8, u8, Option<u8>, u32)>> {
    let protocol = prop::sample::select(vec![None, Some(6), Some(17)]);
    let rule = (0..4u8, 30..=32u8, protocol, 0..3u32);
    let rules = prop::collection::vec(rule, 1..8).prop_map(|rules| {
        let numbered = rules.into_iter().enumerate();
        let rules = numbered
            .map(|(at, (host, length, protocol, queue))| (at, host, length, protocol, queue));
        rules.collect::<Vec<_>>()
    });
    rules.prop_shuffle()
}

proptest! {
    #[test]
    fn what_is_read_is_written_so_that_it_reads_the_same(text in text()) {
        ovs_fixpoint::check(&text);
    }

    #[test]
    fn a_frame_waits_in_the_queue_of_its_first_rule(rules in overlapping()) {
        let mut text = "ovs-vsctl set port e qos=@a -- --id=@a create qos type=linux-htb queues:1=@b queues:2=@c \
                        -- --id=@b create queue dscp=1 -- --id=@c create queue dscp=2\n".to_owned();
        for (priority, host, length, protocol, queue) in &rules {
            let network = match protocol { None => "ip", Some(6) => "tcp", Some(_) => "udp" };
            text += &format!("priority={priority},{network},nw_src=10.0.0.{host}/{length} actions=set_queue:{queue},normal\n");
        }
        let params = params(&text);
        for (source, of_frame) in (0..4u8).flat_map(|source| [(source, 6), (source, 17)]) {
            let is_of = |&&(_, host, length, protocol, _): &&(usize, u8, u8, Option<u8>, u32)| {
                host >> (32 - length) == source >> (32 - length) && protocol.is_none_or(|it| it == of_frame)
            };
            let first = rules.iter().filter(is_of).max_by_key(|rule| rule.0);
            let expected = first.map_or(0, |rule| rule.4);
            let (class, queue) = class_of(&params, &packet(0x0a00_0000 + u32::from(source), of_frame, 1));
            let name = queue.unwrap_or(class);
            let is_default = expected == 0 && name == "class-default";
            prop_assert!(is_default || name == format!("queue-{expected}"), "{} is not queue {}", name, expected);
        }
    }

    #[test]
    fn any_policy_is_written_or_refused(policy in any_policy::policy(true)) {
        if let Ok(params) = policy.resolve(LINK) {
            let _ = ovs::write(&params, Rate::l2(LINK), "eth1");
        }
    }

    #[test]
    fn no_text_of_commands_is_read_with_a_panic(
        text in text(), at in any::<prop::sample::Index>(), inserted in "[\\PC\\n'\"=,:@\\\\ -]{0,4}", cut in 0..30usize
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        let start = at.index(characters.len());
        let end = (start + cut).min(characters.len());
        characters.splice(start..end, inserted.chars());
        ovs_fixpoint::check(&characters.into_iter().collect::<String>());
    }
}
