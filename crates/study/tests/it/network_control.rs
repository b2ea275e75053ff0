//! The share that a gateway keeps for ARP and the other protocols that a link needs.

use crate::support::told;
use slicewise_model::{ClassParams, Discipline};
use slicewise_study::{GatewayConfig, MemoryFiles};
use slicewise_units::BitRate;
use slicewise_wire::{Headers, LinkType, parse_frame};

fn parse(text: &str) -> Result<GatewayConfig, String> {
    let text = format!("interfaces: [left, right]\nlink: 35 Mbit/s\n{text}\n");
    GatewayConfig::parse(&text, "gateway.yaml", &MemoryFiles::default())
        .map_err(|mistakes| told(&mistakes))
}

fn headers(types_and_tags: &[u8], payload: &[u8]) -> Headers {
    let frame = [&[2; 12], types_and_tags, payload, &[0; 8]].concat();
    let bytes = u32::try_from(frame.len()).unwrap();
    parse_frame(LinkType::ETHERNET, &frame, bytes).headers
}

/// IPv6, with this header behind it.
fn ipv6(protocol: u8, payload: &[u8; 8]) -> Headers {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, protocol, 255];
    packet.extend([0xfe; 32]);
    packet.extend(payload);
    headers(&[0x86, 0xdd], &packet)
}

/// The class, and the discipline, of a policy of both directions.
fn class(policy: &str) -> (ClassParams, Discipline) {
    let config = parse(&format!("policy: {policy}")).unwrap();
    let [forward, backward] = config.directions;
    assert_eq!(forward, backward);
    let first = forward.policy.classes[0].clone();
    assert_eq!(first.name, "network-control");
    (first, forward.policy.discipline)
}

#[test]
fn what_a_link_needs_belongs_to_it_and_nothing_else() {
    let (class, _) = class("{none: true}");
    let map = class.matches.unwrap();
    let own = [
        ("ARP", headers(&[8, 6], &[0; 28])),
        ("ARP in a VLAN", headers(&[0x81, 0, 0, 10, 8, 6], &[0; 28])),
        ("LACP", headers(&[0x88, 9], &[1, 1])),
        ("LLDP", headers(&[0x88, 0xcc], &[2, 7])),
        ("PTP", headers(&[0x88, 0xf7], &[0, 2])),
        ("802.1X", headers(&[0x88, 0x8e], &[1, 0])),
        ("STP", headers(&[0, 38], &[0x42, 0x42, 3])),
        (
            "STP of each VLAN",
            headers(&[0, 50], &[0xaa, 0xaa, 3, 0, 0, 0x0c, 1, 0x0b]),
        ),
        ("router solicitation", ipv6(58, &[133; 8])),
        ("neighbour solicitation", ipv6(58, &[135; 8])),
    ];
    for (name, headers) in own {
        assert!(map.matches(&headers), "{name}");
    }
    let others = [
        ("echo request", ipv6(58, &[128; 8])),
        ("hop-by-hop options", ipv6(0, &[135; 8])),
        ("BGP", ipv6(17, &[0, 179, 0, 179, 0, 8, 0, 0])),
        ("OSPF", ipv6(89, &[0; 8])),
        ("IS-IS", headers(&[0, 50], &[0xfe, 0xfe, 3])),
        ("MPLS", headers(&[0x88, 0x47], &[0; 4])),
    ];
    for (name, headers) in others {
        assert!(!map.matches(&headers), "{name}");
    }
    let config = parse("policy: {none: true}\nnetwork_control: {routing: true}").unwrap();
    let map = config.directions[0].policy.classes[0].matches.clone();
    let map = map.unwrap();
    for (name, headers) in others {
        let is_routing = ["BGP", "OSPF", "IS-IS"].contains(&name);
        assert_eq!(map.matches(&headers), is_routing, "{name}");
    }
}

#[test]
fn in_a_guaranteed_policy_it_is_one_more_slice_that_is_admitted() {
    let (class, _) = class("{discipline: guaranteed, classes: []}");
    let guarantee = class.slice.unwrap().guarantee.unwrap();
    // 1 % of the link, and two largest frames.
    assert_eq!(guarantee.rate, BitRate::new(350_000));
    assert_eq!(guarantee.burst.bytes(), 2 * 1522);
    assert!(class.priority.is_none());
}

#[test]
fn in_any_other_policy_it_has_priority_up_to_its_rate() {
    let voice = "{name: voice, match: {vlan: 1}, priority: {}}";
    for policy in [
        "{none: true}".to_owned(),
        format!("{{classes: [{voice}]}}"),
        format!("{{discipline: deficit_round_robin, classes: [{voice}]}}"),
        "{discipline: fifo, classes: [{name: a, match: {vlan: 1}}]}".to_owned(),
        "{ios: \"class-map match-all c\\n match vlan 1\\npolicy-map p\\n class c\\n  priority\\n\"}".to_owned(),
    ] {
        let (class, discipline) = class(&policy);
        let priority = class.priority.unwrap_or_else(|| panic!("{policy}"));
        let (rate, _) = priority.police.unwrap();
        assert_eq!((priority.level, rate.rate), (1, BitRate::new(350_000)), "{policy}");
        assert!(discipline != Discipline::Fifo, "{policy}");
    }
}

#[test]
fn classes_of_one_fifo_go_on_to_share_a_queue() {
    let text = "policy: {discipline: fifo, classes: [{name: a, match: {vlan: 1}}, {name: class-default, queue_limit: 9 packets}]}";
    let policy = &parse(text).unwrap().directions[0].policy;
    let waiting = policy
        .classes
        .iter()
        .map(|class| (class.name.as_str(), class.named_queue.as_deref()));
    let waiting: Vec<_> = waiting.collect();
    let shared = Some("fifo");
    assert_eq!(
        waiting,
        [
            ("network-control", None),
            ("a", shared),
            ("class-default", shared)
        ]
    );
    assert_eq!(policy.queues[0].queue.limit.packets, 9);
}

#[test]
fn its_rate_and_burst_are_what_is_said_and_at_most_1_mbit_otherwise() {
    let of = |control: &str, policy: &str| {
        let text = format!("policy: {policy}\nnetwork_control: {control}");
        let config = parse(&text.replace("35 M", "1 G")).unwrap();
        config.directions[0].policy.classes[0].clone()
    };
    let guaranteed = "{discipline: guaranteed, classes: []}";
    let class = of("{rate: 2 %, burst: 9 kB}", guaranteed);
    let guarantee = class.slice.unwrap().guarantee.unwrap();
    assert_eq!(
        (guarantee.rate, guarantee.burst.bytes()),
        (BitRate::new(700_000), 9_000)
    );
    let class = of("{rate: 64 kbit/s, burst: 4 kB}", "{none: true}");
    let (rate, burst) = class.priority.unwrap().police.unwrap();
    assert_eq!((rate.rate, burst.bytes()), (BitRate::new(64_000), 4_000));
    let fast = "interfaces: [a, b]\nlink: 10 Gbit/s\npolicy: {none: true}\n";
    let fast = GatewayConfig::parse(fast, "gateway.yaml", &MemoryFiles::default()).unwrap();
    let priority = fast.directions[0].policy.classes[0].priority.unwrap();
    assert_eq!(priority.police.unwrap().0.rate, BitRate::new(1_000_000));
}

#[test]
fn without_it_a_policy_is_as_it_is_written() {
    let text = "policy: {discipline: fifo, classes: []}\nnetwork_control: {enabled: false}";
    let policy = &parse(text).unwrap().directions[0].policy;
    assert_eq!(
        (policy.classes.len(), policy.discipline),
        (1, Discipline::Fifo)
    );
}

#[test]
fn a_policy_that_leaves_no_room_for_it_is_refused_with_what_to_do() {
    let full = "policy: {classes: [{name: a, match: {vlan: 1}, minimum: 100 %}]}";
    insta::assert_snapshot!(parse(full).unwrap_err(), @"gateway.yaml:3:1 `policy`: beside the share of ARP and other network control the policy does not fit: policy `policy`, class `a`: minimum: with 35 Mbit/s for this class the guarantees add up to 35.35 Mbit/s, more than the available 35 Mbit/s: lower one of them (34.65 Mbit/s would fit); help: lower a guarantee, give the share less (`network_control: {rate: …, burst: …}`), or do without it (`network_control: {enabled: false}`)");
    assert!(parse(&format!("{full}\nnetwork_control: {{enabled: false}}")).is_ok());
    // What is wrong without it is said as ever.
    let wrong = "policy: {classes: [{name: a, match: {vlan: 1}, minimum: 101 %}]}";
    let told = parse(wrong).unwrap_err();
    assert!(!told.contains("network control"), "{told}");
    let same = "policy: {classes: [{name: network-control, match: {vlan: 1}}]}";
    insta::assert_snapshot!(parse(same).unwrap_err(), @"gateway.yaml:3:1 `policy`: class `network-control` has the name of the gateway's own class for ARP and the like; help: rename it, or keep only yours with `network_control: {enabled: false}`");
}

#[test]
fn ethertypes_are_matched_by_number_and_by_name() {
    let matches = |condition: &str| {
        let text = format!(
            "network_control: {{enabled: false}}\npolicy: {{classes: [{{name: a, match: {{{condition}}}}}]}}"
        );
        let map = parse(&text)?.directions[0].policy.classes[0]
            .matches
            .clone();
        Ok::<_, String>(map.unwrap())
    };
    let arp = headers(&[8, 6], &[0; 28]);
    let mpls = headers(&[0x88, 0x47], &[0; 4]);
    let echo = ipv6(58, &[128; 8]);
    for (condition, matched) in [
        ("ethertype: arp", [true, false, false]),
        ("ethertype: 0x8847", [false, true, false]),
        ("ethertype: 2054", [true, false, false]),
        ("ethertype: [arp, 0x8847]", [true, true, false]),
        ("ethertype: ipv6", [false, false, true]),
        ("icmp_type: 128", [false, false, true]),
        ("not: {ethertype: ipv6}", [true, true, false]),
    ] {
        let map = matches(condition).unwrap();
        let found = [&arp, &mpls, &echo].map(|headers| map.matches(headers));
        assert_eq!(found, matched, "{condition}");
    }
    let wrong = ["0x8100", "1500", "apr", "0x10000"].map(|number| {
        let told = matches(&format!("ethertype: {number}")).unwrap_err();
        told.lines().next().unwrap_or_default().to_owned()
    });
    insta::assert_snapshot!(wrong.join("\n"), @"
    gateway.yaml:4:49 `0x8100`: `0x8100` is the type of a VLAN tag: match `vlan`
    gateway.yaml:4:49 `1500`: `1500` is the length of a frame, not an EtherType: write a number from 0x0600 to 0xffff, that of a service access point (0 to 0xff) for frames without one, or a name
    gateway.yaml:4:49 `apr`: `apr` is not an EtherType: write a number from 0x0600 to 0xffff, that of a service access point (0 to 0xff) for frames without one, or a name: known are `arp`, `ipv4`, `ipv6`, `stp`, `isis`, `lacp`, `eapol`, `lldp`, `ptp`
    gateway.yaml:4:49 `0x10000`: `0x10000` is not an EtherType: write a number from 0x0600 to 0xffff, that of a service access point (0 to 0xff) for frames without one, or a name: known are `arp`, `ipv4`, `ipv6`, `stp`, `isis`, `lacp`, `eapol`, `lldp`, `ptp`
    ");
}
