//! Policies as scripts of `tc`.

use crate::support::shipped::{LICENCE, no_policy, parse, policy, resolve};
use insta::assert_snapshot;
use slicewise_formats::tc;
use slicewise_model::{
    ClassSpec, Discipline, FlowQueueSpec, FlowsSpec, PolicyParams, PolicySpec, QueueManager, Rate,
};
use slicewise_units::{Accounting, BitRate, FrameLengths};

pub(crate) fn script(policy: &PolicyParams) -> String {
    tc::write(policy, LICENCE, "eth0").unwrap().to_string()
}

#[test]
fn no_policy_is_one_queue_below_the_link() {
    assert_snapshot!(script(&no_policy()));
}

#[test]
fn priority_is_a_class_within_its_rate_and_the_rest_is_kept_for_the_others() {
    assert_snapshot!(script(&policy("priority")));
}

#[test]
fn shaping_is_a_ceiling() {
    assert_snapshot!(script(&policy("shaping")));
}

#[test]
fn policing_is_an_action_of_the_filter() {
    assert_snapshot!(script(&policy("policing")));
}

#[test]
fn a_minimum_is_the_rate_of_a_class() {
    assert_snapshot!(script(&policy("bandwidth")));
}

#[test]
fn a_queue_limit_in_time_is_one_in_bytes() {
    assert_snapshot!(script(&policy("tail-drop")));
}

/// IOS text, resolved, for a link of 35 Mbit/s of frames.
pub(crate) fn of_text(text: &str) -> Result<tc::TcConfig, slicewise_formats::ExportError> {
    let link = Rate::l2(BitRate::new(35_000_000));
    tc::write(&resolve(&parse(text)), link, "eth0")
}

/// The commands without the programs of the filters.
fn commands(config: &tc::TcConfig) -> String {
    let lines: Vec<String> = config
        .commands
        .iter()
        .map(|command| {
            let mut command = command.clone();
            if let Some(program) = command.arguments.iter_mut().find(|a| a.contains(',')) {
                *program = "PROGRAM".to_owned();
            }
            command.to_string()
        })
        .collect();
    lines.join("\n")
}

#[test]
fn a_policy_within_a_class_is_a_scheduler_within_it() {
    let config = of_text(
        "class-map match-any a\n match vlan 1 2\nclass-map match-any b\n match dscp ef\n\
         class-map match-any c\n match dscp af11\n\
         policy-map inner\n class b\n  priority 1000\n class c\n  bandwidth remaining ratio 6\n \
         class class-default\n  bandwidth remaining ratio 4\n\
         policy-map outer\n class a\n  shape average 10000000\n  service-policy inner\n \
         class class-default\n  bandwidth remaining ratio 2\n",
    );
    assert_snapshot!(commands(&config.unwrap()));
}

#[test]
fn buckets_that_must_not_limit_hold_what_a_fast_link_lets_out_at_once() {
    let policy = resolve(&parse(
        "class-map match-any a\n match vlan 1\npolicy-map p\n class a\n  priority level 1\n",
    ));
    let link = Rate::l2(BitRate::new(10_000_000_000));
    let config = tc::write(&policy, link, "eth0").unwrap();
    assert_snapshot!(commands(&config), @"
    tc qdisc add dev eth0 root handle 1: stab overhead 4 tbf rate 10000000000bit burst 126522 limit 126522
    tc qdisc add dev eth0 parent 1:1 handle 10: htb default 11
    tc class add dev eth0 parent 10: classid 10:1 htb rate 10000000000bit ceil 10000000000bit burst 125000 cburst 125000 quantum 1522
    tc class add dev eth0 parent 10:1 classid 10:10 htb rate 10000000000bit ceil 10000000000bit burst 125000 cburst 125000 quantum 1522 prio 0
    tc qdisc add dev eth0 parent 10:10 pfifo limit 512
    tc class add dev eth0 parent 10:1 classid 10:11 htb rate 8bit ceil 10000000000bit burst 1 cburst 125000 quantum 1522 prio 1
    tc qdisc add dev eth0 parent 10:11 pfifo limit 4166
    tc filter add dev eth0 parent 10: protocol all prio 1 bpf bytecode PROGRAM flowid 10:10
    ");
}

#[test]
fn levels_of_priority_come_before_minimums_and_these_before_the_rest() {
    let config = of_text(
        "class-map match-any a\n match vlan 1\nclass-map match-any b\n match vlan 2\n\
         class-map match-any c\n match vlan 3\n\
         policy-map p\n class a\n  priority level 1\n class b\n  priority level 2 5000\n \
         class c\n  bandwidth 4000\n  queue-limit 30000 bytes\n",
    );
    assert_snapshot!(commands(&config.unwrap()));
}

#[test]
fn one_curve_of_early_detection_is_red() {
    let text = "policy-map p\n class class-default\n  random-detect precedence-based\n";
    let mut policy = resolve(&parse(text));
    let QueueManager::Red(wred) = &mut policy.classes[0].queue.manager else {
        panic!("no RED");
    };
    let curve = wred.curves[0];
    wred.curves.fill(curve);
    let config = tc::write(&policy, LICENCE, "eth0").unwrap();
    assert_snapshot!(commands(&config), @"
    tc qdisc add dev eth0 root handle 1: stab overhead -14 tbf rate 35000000bit burst 1959 limit 1959
    tc qdisc add dev eth0 parent 1:1 red limit 6249000 min 1561500 max 3124500 avpkt 1500 burst 1295 probability 0.1 bandwidth 35000000bit
    ");
    assert_snapshot!(config.differences.join("\n"), @"
    A frame that finds the link idle leaves at once, before the time that sending it takes and not after; so do up to 1959 bytes of shorter frames together. Frames that count more than 1959 bytes are dropped.
    Frames are taken to have at most one VLAN tag, which Linux keeps beside the packet: each further tag counts as 4 bytes of the IP packet.
    Class `class-default`: red averages and limits bytes, not packets: its thresholds are those of packets that count 1500 bytes, and shorter ones fill the queue less (its limit of 4166 packets is 6249000 bytes).
    Random early detection of class `class-default` counts frames without FCS (L2), but the kernel counts for it as for the link: IP packets (L3). A frame of 1514 bytes counts 14 bytes less, so that 0.9 % more is held than it says.
    ");
}

/// The disciplines `red`, or what is said of `wred`, of a policy with early detection in its class `c`, where `map` is the class
/// map of that class and `before` a class that is tested first.
fn early_detection(map: &str, before: &str) -> String {
    let text = format!(
        "class-map match-any c\n {map}\nclass-map match-all first\n match dscp default\n\
         policy-map p\n{before} class c\n  bandwidth 4000\n  random-detect dscp-based\n  random-detect dscp 46 20 40 10\n  random-detect dscp 34 10 40 10\n"
    );
    match tc::write(&resolve(&parse(&text)), LICENCE, "eth0") {
        Ok(config) => {
            let all = commands(&config);
            let red = all.lines().filter_map(|line| line.split_once(" red "));
            red.map(|(_, red)| red.to_owned())
                .collect::<Vec<_>>()
                .join("\n")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn only_the_curves_of_code_points_that_a_class_can_have_decide_whether_it_is_red() {
    let ef = early_detection("match dscp ef", "");
    assert_snapshot!(ef, @"limit 96000 min 30000 max 60000 avpkt 1500 burst 106 probability 0.1 bandwidth 35000000bit");
    let first = " class first\n  bandwidth 1000\n";
    assert_eq!(early_detection("match dscp ef", first), ef);
    let two = early_detection("match dscp ef af41", "");
    assert!(
        two.contains("class `c`: wred: has several curves, of code points 34 and 46"),
        "{two}"
    );
    // Other packets than those of the code point, or its packets before other classes take them.
    for map in [
        "match protocol ip",
        "match dscp ef default",
        "match vlan 10",
    ] {
        let said = early_detection(map, "");
        assert!(
            said.contains("has several curves, of code points 0 and"),
            "{map}: {said}"
        );
    }
    let red = early_detection("match dscp ef default", first);
    assert!(
        red.contains("has several curves"),
        "packets that are not IP have 0: {red}"
    );
}

#[test]
fn a_class_with_an_exception_has_the_code_points_it_lets_through() {
    let text = |map: &str| {
        format!(
            "ip access-list extended ssh\n permit tcp any any eq 22\nip access-list extended ef\n permit udp any any dscp ef\n\
             class-map match-all c\n{map}policy-map p\n class c\n  bandwidth 4000\n  random-detect dscp-based\n  \
             random-detect dscp 46 20 40 10\n"
        )
    };
    let said = |map: &str| match tc::write(&resolve(&parse(&text(map))), LICENCE, "eth0") {
        Ok(config) => commands(&config).matches(" red ").count().to_string(),
        Err(error) => error.to_string(),
    };
    for map in [
        " match dscp ef\n match not access-group name ssh\n",
        " match access-group name ef\n match not access-group name ssh\n",
    ] {
        assert_eq!(said(map), "1", "{map}");
    }
    for map in [
        " match not access-group name ssh\n",
        " match not dscp ef\n match not access-group name ssh\n",
    ] {
        let said = said(map);
        assert!(
            said.contains("has several curves, of code points 0 and"),
            "{map}: {said}"
        );
    }
}

#[test]
fn a_class_within_another_has_the_code_points_of_both() {
    let text = "class-map match-any c\n match dscp ef\npolicy-map inner\n class class-default\n  random-detect dscp-based\n\
                policy-map p\n class c\n  shape average 4000000\n  service-policy inner\n";
    let config = tc::write(&resolve(&parse(text)), LICENCE, "eth0").unwrap();
    assert!(commands(&config).contains(" red "), "{}", commands(&config));
}

#[test]
fn flow_queues_are_codel_and_fq_codel() {
    let of_flows = |flows: Option<u32>| {
        let spec = PolicySpec {
            name: "p".into(),
            classes: vec![ClassSpec {
                queue: FlowQueueSpec {
                    flows: FlowsSpec {
                        flows,
                        ..FlowsSpec::default()
                    },
                    ..FlowQueueSpec::default()
                }
                .into(),
                ..ClassSpec::class_default()
            }],
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        };
        commands(&tc::write(&resolve(&spec), LICENCE, "eth0").unwrap())
    };
    assert_snapshot!(of_flows(None), @"
    tc qdisc add dev eth0 root handle 1: stab overhead -14 tbf rate 35000000bit burst 1959 limit 1959
    tc qdisc add dev eth0 parent 1:1 fq_codel limit 4166 target 5000us interval 100000us flows 1024 quantum 1514 ecn
    ");
    assert_snapshot!(of_flows(Some(1)), @"
    tc qdisc add dev eth0 root handle 1: stab overhead -14 tbf rate 35000000bit burst 1959 limit 1959
    tc qdisc add dev eth0 parent 1:1 codel limit 4166 target 5000us interval 100000us ecn
    ");
}

#[test]
fn a_link_of_the_wire_counts_short_frames_as_long_as_they_occupy_it() {
    let link = Rate {
        rate: BitRate::new(1_000_000_000),
        accounting: Accounting::L1,
    };
    let config = tc::write(&policy("shaping"), link, "eth0").unwrap();
    assert_snapshot!(config.commands[0].to_string(), @"tc qdisc add dev eth0 root handle 1: stab overhead 28 mpu 84 mtu 2047 tsize 2048 tbf rate 1000000000bit burst 14046 limit 14046");
    assert_snapshot!(config.differences[1], @"Frames are taken to have a VLAN tag, because the policy matches VLANs: a frame without counts 4 bytes too many.");
}

/// Bytes that the kernel counts of a packet, by the arguments of a size table with an entry for each byte
/// (`__qdisc_calculate_pkt_len`; the table of iproute2's `tc_calc_size_table`).
fn counted_by_kernel(table: &str, packet_bytes: i64) -> i64 {
    let words: Vec<&str> = table.split(' ').collect();
    let value = |name| {
        let at = words.iter().position(|word| *word == name);
        at.map_or(0, |at| words[at + 1].parse().unwrap())
    };
    let bytes = (packet_bytes + value("overhead")).max(value("mpu"));
    if table.contains("linklayer atm") {
        (bytes.max(1) + 47) / 48 * 53
    } else {
        bytes
    }
}

#[test]
fn size_tables_count_as_the_link_does() {
    for (counts, table) in [
        ("L2 + 8 B", "stab overhead 8"),
        ("L3 + 18 B", "stab overhead 4"),
        ("L1 - 4 B", "stab overhead 20 mpu 80 mtu 2047 tsize 2048"),
        (
            "L3 + 40 B in ATM cells",
            "stab overhead 26 linklayer atm mtu 2047 tsize 2048",
        ),
        (
            "L3 + 14 B in ATM cells",
            "stab overhead 0 linklayer atm mtu 2047 tsize 2048",
        ),
    ] {
        let accounting: Accounting = counts.parse().unwrap();
        let link = Rate {
            rate: BitRate::new(10_000_000),
            accounting,
        };
        let plain = PolicySpec {
            name: "plain".to_owned(),
            classes: Vec::new(),
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        };
        let config = tc::write(&plain.resolve(link.rate).unwrap(), link, "eth0").unwrap();
        let root = config.commands[0].to_string();
        assert!(root.contains(&format!(" {table} tbf ")), "{counts}: {root}");
        for l2_bytes in 60..=1_514 {
            let lengths = FrameLengths {
                l2_bytes,
                l3_offset: 14,
            };
            let counted = i64::try_from(accounting.count(lengths).bytes()).unwrap();
            assert_eq!(
                counted_by_kernel(table, l2_bytes.into()),
                counted,
                "{counts}"
            );
        }
    }
}
