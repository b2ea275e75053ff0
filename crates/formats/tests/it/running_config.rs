//! Whole configurations as a device prints them, or as a terminal shows them.

use insta::assert_snapshot;
use slicewise_formats::ios::{self, IosPolicy};
use slicewise_model::{ClassSpec, Condition, PolicySpec};
use slicewise_units::{BitRate, Duration};
use std::fs;
use std::path::Path;

fn running(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/running");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn policy(text: &str) -> IosPolicy {
    let policy = ios::parse(text).unwrap().policy(None);
    policy.unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    let config = ios::parse(text).unwrap();
    config.policy(None).unwrap_err().to_string()
}

fn notes(policy: &IosPolicy) -> String {
    let lines = policy
        .notes
        .iter()
        .map(|note| format!("{}:{}: {}", note.span.line, note.span.column, note.message));
    lines.collect::<Vec<_>>().join("\n")
}

fn names(policy: &PolicySpec) -> Vec<&str> {
    policy
        .classes
        .iter()
        .map(|class| class.name.as_str())
        .collect()
}

fn class<'p>(policy: &'p PolicySpec, name: &str) -> &'p ClassSpec {
    let mut classes = policy.classes.iter();
    classes.find(|class| class.name == name).unwrap()
}

#[test]
fn a_whole_configuration_gives_the_policy_of_its_interface() {
    let policy = policy(&running("branch.cfg"));
    assert_eq!(policy.spec.name, "UPLINK");
    let queues = policy.spec.classes[0].child.as_deref().unwrap();
    let expected = ["VOICE", "SIGNALLING", "ROUTING", "BACKUP", "class-default"];
    assert_eq!(names(queues), expected);
    assert_snapshot!(notes(&policy), @"
    8:1: skipped 78 lines: interface, crypto, banner, router, ip, line, policy-map, class-map and 18 more
    87:8: class `STREAMING` is left out: `match protocol youtube` is not supported, but the class changes nothing for its packets; they go to the classes after it
    90:12: used: UPLINK (output of GigabitEthernet0/0/0); not used: MARK-LAN (input of GigabitEthernet0/0/1)
    90:12: not needed by this policy, and with lines that are not supported: access list `FROM-OUTSIDE`, policy map `PROTECT-DEVICE`
    ");
}

#[test]
fn what_is_not_about_quality_of_service_is_skipped_and_summarised() {
    let config = ios::parse(&running("branch.cfg")).unwrap();
    let skipped = config.skipped().unwrap();
    assert_snapshot!(skipped, @"skipped 78 lines: interface, crypto, banner, router, ip, line, policy-map, class-map and 18 more");
    let keywords: Vec<&str> = skipped.keywords().collect();
    assert_snapshot!(keywords.join(" "), @"interface crypto banner router ip line policy-map class-map route-map vrf ipv6 service zone-pair aaa access-list boot-end-marker boot-start-marker control-plane hostname ntp platform snmp-server username version what follows `end` zone");
    let alone = ios::parse("! only this\npolicy-map p\n class class-default\n").unwrap();
    assert_eq!(alone.skipped(), None);
    let one = ios::parse("hostname a\npolicy-map p\n").unwrap();
    assert_eq!(
        one.skipped().unwrap().to_string(),
        "skipped 1 line: hostname"
    );
}

#[test]
fn the_lines_of_a_policy_are_all_that_it_needs() {
    let text = running("branch.cfg");
    let whole = policy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let needed: Vec<&str> = whole.lines.iter().map(|line| lines[line - 1]).collect();
    let alone = policy(&needed.join("\n"));
    assert_eq!(alone.spec, whole.spec);
    assert!(
        alone
            .notes
            .iter()
            .all(|note| note.message.contains("left out"))
    );
    assert!(!needed.iter().any(|line| line.contains("secret")));
}

#[test]
fn indentation_may_be_lost() {
    for name in ["branch.cfg", "two-links.cfg", "session.cfg"] {
        let text = running(name).replace("output FAST", "output SLOW");
        let flat: Vec<&str> = text.lines().map(str::trim_start).collect();
        assert_eq!(policy(&flat.join("\n")).spec, policy(&text).spec, "{name}");
        let indented: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
        assert_eq!(
            policy(&indented.join("\r\n")).spec,
            policy(&text).spec,
            "{name}"
        );
    }
}

#[test]
fn a_pager_leaves_nothing_behind() {
    let text = running("branch.cfg").replace(
        "\n class BACKUP",
        "\n --More-- \u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}        \u{8}\u{8}\u{8}\u{8} class BACKUP",
    );
    assert_eq!(policy(&text).spec, policy(&running("branch.cfg")).spec);
}

#[test]
fn a_session_is_read_behind_its_prompts() {
    let policy = policy(&running("session.cfg"));
    assert_eq!(policy.spec.name, "EVENING");
    assert_eq!(names(&policy.spec), ["GAMES", "class-default"]);
    let flows = class(&policy.spec, "class-default").queue.flow_queue();
    assert_eq!(flows.unwrap().flows.flows, Some(64));
    assert_snapshot!(notes(&policy), @"12:20: skipped 4 lines: int, shutdown, what follows `end`");
}

#[test]
fn different_policies_of_interfaces_are_listed() {
    assert_snapshot!(error(&running("two-links.cfg")), @"interfaces have different policy maps: FAST (output of GigabitEthernet0/1); SLOW (output of GigabitEthernet0/2, GigabitEthernet0/3, range GigabitEthernet0/4 - 5): say which one");
    let config = ios::parse(&running("two-links.cfg")).unwrap();
    let named = config.policy(Some("FAST")).unwrap();
    assert_eq!(named.spec.name, "FAST");
    assert_snapshot!(notes(&named), @"1:1: skipped 8 lines: interface, hostname, version");
    let many: String = (0..20)
        .map(|n| format!("policy-map p{n}\ninterface Vlan{n}\n service-policy output p{n}\n"))
        .collect();
    assert_snapshot!(error(&many), @"interfaces have different policy maps: p0 (output of Vlan0); p1 (output of Vlan1); p10 (output of Vlan10); p11 (output of Vlan11); p12 (output of Vlan12); p13 (output of Vlan13); p14 (output of Vlan14); p15 (output of Vlan15) and 12 more: say which one");
}

#[test]
fn one_policy_on_many_interfaces_is_chosen_for_output_before_input() {
    let text = running("two-links.cfg").replace("output FAST", "output SLOW");
    let chosen = policy(&text);
    assert_eq!(chosen.spec.name, "SLOW");
    assert_snapshot!(notes(&chosen), @"
    1:1: skipped 8 lines: interface, hostname, version
    10:12: used: SLOW (output of GigabitEthernet0/1, GigabitEthernet0/2, GigabitEthernet0/3 and 1 more); not used: ARRIVING (input of GigabitEthernet0/1)
    ");
    let inward = text.replace("service-policy output", "no service-policy output");
    assert_eq!(policy(&inward).spec.name, "ARRIVING");
}

#[test]
fn an_attached_policy_that_is_not_there_is_an_error_of_the_interface() {
    let text = "policy-map slow\ninterface Gi0/1\n service-policy output slwo\n";
    assert_snapshot!(error(text), @"3:24: policy map `slwo` is not defined: expected the name of one defined in this text; did you mean `slow`?");
}

#[test]
fn what_protects_the_device_is_not_the_policy_of_a_link() {
    let copp = "policy-map COPP\n class class-default\n  police 64000\n\
                control-plane\n service-policy input COPP\n";
    assert_eq!(policy(copp).spec.name, "COPP");
    let both = format!("policy-map LINK\n class class-default\n  shape average 1m\n{copp}");
    assert_eq!(policy(&both).spec.name, "LINK");
}

#[test]
fn errors_count_where_the_policy_needs_the_definition() {
    let text = "\
class-map match-any a
 match vlan 4095
class-map match-any b
 match vlan 10
policy-map unused
 class a
  police rate 100 pps
policy-map used
 class b
  bandwidth percent 10
interface Gi0/1
 service-policy output used
";
    let used = policy(text);
    assert_snapshot!(notes(&used), @"
    8:12: not needed by this policy, and with lines that are not supported: class map `a`, policy map `unused`
    11:1: skipped 1 line: interface
    ");
    let config = ios::parse(text).unwrap();
    assert_snapshot!(config.policy(Some("unused")).unwrap_err(), @"
    2:13: `4095` is not a VLAN: expected a VLAN id, 1 to 4094, or a range such as `10-20`
    7:19: rates in packets/s are not supported: expected a rate in bit/s; write `police cir RATE conform-action transmit exceed-action drop`, RATE in bit/s or `percent P`: the policy is not judged without its policer
    ");
    assert_eq!(config.errors().len(), 2);
}

#[test]
fn a_misspelt_definition_is_no_section_to_skip() {
    let text = "hostname a\nclas-map match-any x\n match any\npolicy-mop p\n class x\n\
                ip acess-list extended y\n permit ip any any\nacces-list 101 permit ip any any\n\
                no policy-map q\n";
    assert_snapshot!(error(text), @"
    2:1: unknown command `clas-map`: expected `access-list`, `class-map`, `end`, `ip` or `policy-map`; did you mean `class-map`?
    4:1: unknown command `policy-mop`: expected `description` or `match`, or the next definition; did you mean `policy-map`?
    6:4: unexpected `acess-list`: expected `access-list`; did you mean `access-list`?
    7:2: `permit` does not belong here: expected it under `ip access-list`
    8:1: unknown command `acces-list`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition; did you mean `access-list`?
    9:1: `no` is not supported; leave out what is not configured
    ");
}

#[test]
fn what_a_banner_says_is_no_command() {
    for (open, close) in [("^C", "^C"), ("#", "#"), ("\u{3}", "\u{3}"), ("%x", "y%")] {
        for kind in ["motd ", "login ", ""] {
            let text = format!(
                "policy-map p\nbanner {kind}{open}\npolicy-map q\nclas-map\nend\n  {close}\nhostname a\n"
            );
            assert_eq!(policy(&text).spec.name, "p", "{text}");
        }
    }
    let open = "policy-map p\nbanner motd ^C\n no end\n";
    assert_snapshot!(error(open), @"2:1: this text is not terminated: expected `^C` on a line below");
}

#[test]
fn lists_that_are_not_ipv4_are_named() {
    let text = "\
ipv6 access-list SIX
 permit ipv6 any any
mac access-list extended MAC
 permit any any
class-map match-any c
 match access-group name SIX
 match access-group name MAC
 match access-group 700
access-list 700 permit 0200.0000.0001 0000.0000.0000
policy-map p
 class c
  bandwidth 1000
";
    assert_snapshot!(error(text), @"
    6:26: access list `SIX` is not an IPv4 list: expected the name of an IPv4 list; IPv6 and MAC lists are not read: match `dscp`, `precedence` or `vlan`
    7:26: access list `MAC` is not an IPv4 list: expected the name of an IPv4 list; IPv6 and MAC lists are not read: match `dscp`, `precedence` or `vlan`
    8:21: access list `700` is not an IPv4 list: expected the name of an IPv4 list; IPv6 and MAC lists are not read: match `dscp`, `precedence` or `vlan`
    ");
}

#[test]
fn fair_queue_keeps_flows_apart_and_drops_none_early() {
    let of = |line: &str| {
        let text = format!("policy-map p\n class class-default\n  {line}\n");
        class(&policy(&text).spec, "class-default").clone()
    };
    let class = of("fair-queue");
    let queue = class.queue.flow_queue().unwrap();
    assert_eq!(
        (queue.flows.flows, queue.codel.ecn),
        (Some(256), Some(false))
    );
    let spec = PolicySpec {
        classes: vec![of("fair-queue 32\n  queue-limit 40 packets")],
        ..policy("policy-map p\n").spec
    };
    let params = spec.resolve(BitRate::new(1_000_000)).unwrap();
    let flows = params.classes[0].queue.flow_queue().unwrap();
    assert_eq!(flows.flows.flows, 32);
    assert!(flows.codel.target >= Duration::from_secs(3));
    assert!(ios::write(&spec).unwrap().contains("  fair-queue 32\n"));
}

#[test]
fn names_what_is_wrong_with_a_fair_queue() {
    let text = "\
policy-map p
 class a
  fair-queue 48
 class b
  fair-queue queue-limit 20
 class c
  fair-queue many
 class d
  fair-queue 8
 class class-default
  fair-queue
  fair-queue
";
    assert_snapshot!(error(text), @"
    3:14: `48` is not a power of 2: expected the number of flow queues, a power of 2 from 16 to 4096, or the end of the line
    5:14: a limit for each flow is not supported: expected the number of flow queues, a power of 2 from 16 to 4096, or the end of the line; all flows share the class's `queue-limit`; the longest gives way
    7:14: unexpected `many`: expected the number of flow queues, a power of 2 from 16 to 4096, or the end of the line
    9:14: `8` is out of range: expected a number of flow queues, 16 to 4096
    12:3: `fair-queue` is given twice in class `class-default`: expected each setting once; the first is on line 11
    ");
    let both = "policy-map p\n class class-default\n  fair-queue\n  random-detect dscp-based\n";
    assert_snapshot!(error(both), @"4:3: `fair-queue` and `random-detect` in one class are not supported: expected one of them; early drop by class is not modelled in a queue by flow: leave out this line or line 3");
}

const WEB: &str =
    "class-map match-any WEB\n match protocol http\nclass-map match-any VOICE\n match dscp ef\n";

#[test]
fn an_application_is_an_error_where_its_class_decides_something() {
    for action in [
        "bandwidth percent 10",
        "set dscp af21",
        "police 64000",
        "service-policy child",
    ] {
        let text = format!("{WEB}policy-map child\npolicy-map p\n class WEB\n  {action}\n");
        let config = ios::parse(&text).unwrap();
        let error = config.policy(Some("p")).unwrap_err().to_string();
        assert!(
            error.starts_with("2:17: protocol `http` is not recognised"),
            "{error}"
        );
    }
}

#[test]
fn a_class_without_action_is_left_out_where_no_later_class_has_one() {
    let text = |first: &str, second: &str| {
        format!("{WEB}policy-map p\n class {first}\n class {second}\n  priority percent 10\n")
    };
    // Web packets marked as voice would get the priority that IOS keeps from them.
    assert!(error(&text("WEB", "VOICE")).contains("`http` is not recognised"));
    let text = format!("{WEB}policy-map p\n class VOICE\n  priority percent 10\n class WEB\n");
    let policy = policy(&text);
    assert_eq!(names(&policy.spec), ["VOICE"]);
    assert_snapshot!(notes(&policy), @"8:8: class `WEB` is left out: `match protocol http` is not supported, but the class changes nothing for its packets; they go to the classes after it");
}

#[test]
fn a_class_treated_as_those_after_it_is_left_out_with_a_note() {
    let text = |web: &str, voice: &str, rest: &str| {
        format!(
            "{WEB}policy-map p\n class WEB\n  set dscp {web}\n class VOICE\n  set dscp {voice}\n \
             class class-default\n  set dscp {rest}\n"
        )
    };
    let alike = policy(&text("af11", "af11", "af11"));
    assert_eq!(names(&alike.spec), ["VOICE", "class-default"]);
    assert_eq!(alike.notes.len(), 1);
    for (web, voice, rest) in [
        ("af11", "ef", "af11"),
        ("af11", "af11", "0"),
        ("ef", "af11", "af11"),
    ] {
        assert!(error(&text(web, voice, rest)).contains("`http` is not recognised"));
    }
}

#[test]
fn an_application_that_no_policy_asks_for_is_nothing() {
    let text = format!("{WEB}policy-map p\n class VOICE\n  priority percent 10\n");
    assert_eq!(policy(&text).notes, []);
}

#[test]
fn applications_of_a_port_are_matched_by_it() {
    let text = "class-map match-all bgp\n match protocol bgp\npolicy-map p\n class bgp\n";
    let spec = policy(text).spec;
    let conditions = &spec.classes[0].matches.as_ref().unwrap().conditions;
    let [Condition::AccessList(list)] = &conditions[..] else {
        panic!("{conditions:?}");
    };
    assert_eq!(list.entries.len(), 4);
    let to_port = [
        Condition::Protocol(6),
        Condition::DestinationPort(179..=179),
    ];
    assert!(list.entries.iter().any(|entry| entry.conditions == to_port));
    assert_eq!(
        ios::write(&spec).unwrap(),
        format!("class-map match-all bgp\n match protocol bgp\n!\npolicy-map p\n class bgp\n")
    );
}

#[test]
fn several_ports_of_one_entry_match_any_of_them() {
    let text = |entries: &str| {
        format!(
            "ip access-list extended l\n{entries}class-map match-any c\n \
             match access-group name l\npolicy-map p\n class c\n"
        )
    };
    let one = text(
        " 10 permit tcp any eq 80 8080 host 10.0.0.1 eq 443 22 dscp ef\n 20 deny ip any any\n",
    );
    let many = " permit tcp any eq 80 host 10.0.0.1 eq 443 dscp ef\n \
                permit tcp any eq 80 host 10.0.0.1 eq 22 dscp ef\n \
                permit tcp any eq 8080 host 10.0.0.1 eq 443 dscp ef\n \
                permit tcp any eq 8080 host 10.0.0.1 eq 22 dscp ef\n deny ip any any\n";
    assert_eq!(policy(&one).spec, policy(&text(many)).spec);
    let eleven = text(" permit tcp any any eq 1 2 3 4 5 6 7 8 9 10 11\n");
    assert_snapshot!(error(&eleven), @"2:45: unexpected `11`: expected at most 10 ports");
}
