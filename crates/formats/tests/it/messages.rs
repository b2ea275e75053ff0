//! Messages about texts that are wrong: every message with its place.

use insta::assert_snapshot;
use slicewise_formats::ERRORS_MAX;
use slicewise_formats::ios::{self, TEXT_BYTES_MAX};
use std::fs;
use std::path::Path;

fn errors_of(text: &str) -> String {
    let errors = match ios::parse(text) {
        Ok(config) => config.errors(),
        Err(error) => vec![error],
    };
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn hostile(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hostile");
    errors_of(&fs::read_to_string(folder.join(name)).unwrap())
}

#[test]
fn names_every_command_it_does_not_know() {
    assert_snapshot!(hostile("commands.cfg"), @"
    7:16: unexpected `of-course`: expected the end of the line
    8:1: unknown command `clas-map`: expected `description` or `match`, or the next definition; did you mean `class-map`?
    12:3: unknown command `polize`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition; did you mean `police`?
    14:3: unknown command `sh`: expected `conform-action`, `exceed-action`, `violate-action`, `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition; abbreviations are not read: write `shape`
    16:3: `no` is not supported; leave out what is not configured
    17:3: `match` does not belong here: expected it under `class-map`
    18:3: unknown command `quux`: expected `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition
    21:19: unexpected `!`: expected the end of the line; IOS reads a comment only on a line of its own
    23:2: `permit` does not belong here: expected it under `ip access-list`
    25:1: unexpected `policy-map`: expected nothing after `end`
    ");
}

#[test]
fn names_every_value_that_is_wrong() {
    assert_snapshot!(hostile("values.cfg"), @"
    1:11: unexpected `match-sum`: expected `match-any` or `match-all` before the name; did you mean `match-any`?
    2:13: `4095` is not a VLAN: expected a VLAN id, 1 to 4094, or a range such as `10-20`
    3:13: `30-20` is not a VLAN: expected a VLAN id, 1 to 4094, or a range such as `10-20`
    4:16: `af14` does not exist: expected a DSCP: 0 to 63, `default`, `ef`, `af11` to `af43`, `cs0` to `cs7`; did you mean `af11`?
    5:19: `8` does not exist: expected an IP precedence: 0 to 7, or `routine` to `network`
    6:11: unexpected `address`: expected `dscp` or `precedence`
    7:17: protocol `http` is not recognised: expected `ip`, `ipv6`, `eigrp`, `gre`, `icmp`, `ipinip`, `ospf`, `tcp`, `udp`, `bgp`, `dhcp`, `dns`, `ntp`, `rip`, `snmp`, `ssh`, `syslog` or `telnet`; payloads are not inspected: match an `access-group` with the application's ports
    8:21: `video` is not a number: expected the number of an access list, or `name` and its name; write `match access-group name video`
    9:8: `match cos` is not supported: expected `any`, `vlan`, `dscp`, `precedence`, `ip dscp`, `ip precedence`, `access-group` or `protocol`; the priority bits of a VLAN tag are not matched: match `dscp` or `vlan`
    10:7: the line ends too early: expected `any`, `vlan`, `dscp`, `precedence`, `ip dscp`, `ip precedence`, `access-group` or `protocol`
    13:9: the kind of shaping is missing: expected `average` or `peak`; write `shape average 17500000`
    14:17: `17.5` is not a rate: expected a rate in bit/s such as `17500000` or `17.5m`
    16:13: unexpected `ten`: expected a rate in kbit/s, `percent` or `remaining`; write `bandwidth KBPS`, `bandwidth percent P` or `bandwidth remaining percent P`: the policy is not judged without its share
    17:21: `101` is out of range: expected a whole percentage, 1 to 100
    18:23: unexpected `10`: expected `percent` or `ratio`
    19:18: `0` is out of range: expected a priority level, 1 to 7
    20:23: unexpected `7`: expected the end of the line
    21:18: unexpected `sec`: expected `packets`, `bytes`, `kbytes`, `mbytes`, `gbytes`, `ms` or `us`
    22:15: `0` is out of range: expected a queue limit, 1 to 1000000000000000000
    ");
}

#[test]
fn names_what_is_wrong_with_a_policer() {
    assert_snapshot!(hostile("police.cfg"), @"
    3:9: the line ends too early: expected a rate in bit/s, `cir`, `rate` or `percent`
    7:28: the burst of a percentage is a time: expected whole milliseconds, 1 to 2000; write `bc N ms`, or the rate in bit/s and the burst in bytes
    9:23: unexpected `percent`: expected a rate in bit/s, as the committed rate is; write `police cir RATE conform-action transmit exceed-action drop`, RATE in bit/s or `percent P`: the policy is not judged without its policer
    11:19: rates in packets/s are not supported: expected a rate in bit/s; write `police cir RATE conform-action transmit exceed-action drop`, RATE in bit/s or `percent P`: the policy is not judged without its policer
    13:44: `conform-action` is given twice: expected one action for each outcome; a packet gets one code point
    16:35: the line ends too early: expected a DSCP: 0 to 63, `default`, `ef`, `af11` to `af43`, `cs0` to `cs7`
    17:4: unknown command `exceed`: expected `conform-action`, `exceed-action`, `violate-action`, `bandwidth`, `drop`, `fair-queue`, `police`, `priority`, `queue-limit`, `random-detect`, `service-policy`, `set` or `shape`, or the next class or definition; abbreviations are not read: write `exceed-action`
    18:37: `9` does not exist: expected an IP precedence: 0 to 7, or `routine` to `network`
    21:3: `police` is given twice in class `g`: expected each setting once; the first is on line 20
    23:31: this burst is given twice: expected `bc`, `pir`, `be`, `conform-action`, `exceed-action`, `violate-action` or the end of the line
    25:28: unexpected `1000`: expected `bc`, `pir`, `be`, `conform-action`, `exceed-action`, `violate-action` or the end of the line
    27:15: colour-aware policing by class is not supported: expected `bc`, `pir`, `be`, `conform-action`, `exceed-action`, `violate-action` or the end of the line; write `police cir RATE conform-action transmit exceed-action drop`, RATE in bit/s or `percent P`: the policy is not judged without its policer
    ");
}

#[test]
fn names_what_is_wrong_with_queues_and_marking() {
    assert_snapshot!(hostile("queues.cfg"), @"
    3:3: WRED is not enabled in this class: expected `random-detect dscp-based` on a line before
    5:17: WRED goes by precedence in this class: expected `random-detect dscp-based` on a line before
    6:32: the line ends too early: expected the maximum threshold, 0 to 1000000000000000000
    7:36: `0` is out of range: expected the mark probability denominator, 1 to 65536
    10:28: this value has a curve already: expected one curve for each value
    11:48: `17` is out of range: expected an exponent, 1 to 16
    14:3: `queue-limit` is given twice in class `class-default`: expected each setting once; the first is on line 13
    16:12: tunnel headers are not marked: expected a value
    17:18: a direction stands only under an interface: expected the name of the policy map that divides this class
    18:8: class `class-default` is defined twice: expected another name; the first is on line 2
    ");
}

#[test]
fn names_commands_that_ios_xe_does_not_take_together() {
    assert_snapshot!(hostile("rules.cfg"), @"
    9:3: `bandwidth` in kbit/s and `bandwidth remaining ratio` exclude each other in a policy map: expected one kind of `bandwidth` in all classes of a policy map; IOS XE accepts only one of them; the other is on line 7
    13:3: `bandwidth remaining ratio` and `bandwidth percent` exclude each other in a policy map: expected one kind of `bandwidth` in all classes of a policy map; IOS XE accepts only one of them; the other is on line 12
    18:3: `bandwidth` in kbit/s and `bandwidth percent` exclude each other in a policy map: expected all of a policy map's `bandwidth` in kbit/s, or all in percent; IOS XE accepts only one of them; the other is on line 16
    23:3: `bandwidth remaining percent` and `bandwidth` in kbit/s exclude each other in a policy map: expected all of a policy map's `bandwidth` in kbit/s, or all in percent; IOS XE accepts only one of them; the other is on line 21
    28:3: `priority level` and `priority` exclude each other in a policy map: expected a level in every priority class of a policy map, or in none; IOS XE accepts only one of them; the other is on line 26
    32:3: `bandwidth` in kbit/s and `priority` exclude each other in a class: expected a rate with `priority` instead, or another class; IOS XE accepts only one of them; the other is on line 31
    35:3: `priority` and `bandwidth` in kbit/s exclude each other in a class: expected a rate with `priority` instead, or another class; IOS XE accepts only one of them; the other is on line 34
    39:3: `bandwidth remaining ratio` and `priority` exclude each other in a class: expected one of the two: a priority class takes no part in what remains; IOS XE accepts only one of them; the other is on line 38
    43:3: `bandwidth percent` and `service-policy` of a policy map that queues exclude each other in a class: expected `bandwidth remaining` in a class that a queueing policy map divides; IOS XE accepts only one of them; the other is on line 42
    51:3: the percentages of `bandwidth percent` add up to more than 100: expected at most 40 %
    ");
}

/// No reference was found for a rule about these.
#[test]
fn takes_together_what_no_rule_excludes() {
    let text = "\
class-map match-any gold
 match vlan 10
class-map match-any silver
 match vlan 20
class-map match-any voice
 match vlan 30
policy-map child
 class gold
  police 1000000
policy-map all
 class voice
  priority percent 10
 class gold
  bandwidth percent 20
  bandwidth remaining percent 50
  shape average 2m
  service-policy child
 class class-default
  priority
policy-map one-level
 class voice
  priority level 1
 class gold
  priority level 1
 class silver
  bandwidth 2000
 class class-default
  bandwidth 1000
";
    assert_eq!(ios::parse(text).unwrap().errors(), []);
}

#[test]
fn names_what_is_wrong_with_access_lists() {
    assert_snapshot!(hostile("access-lists.cfg"), @"
    2:23: `udp` is not an IPv4 address: expected `any`, `host` and an IPv4 address, or an address and a wildcard mask; a standard list matches source addresses, nothing else
    3:24: `10.0.0.0` is not an IP protocol: expected `ip`, `tcp`, `udp`, `icmp` or another protocol by name or number, 1 to 255
    4:24: `upd` is not an IP protocol: expected `ip`, `tcp`, `udp`, `icmp` or another protocol by name or number, 1 to 255; did you mean `udp`?
    5:36: wildcard mask `255.255.255.0` does not make a prefix: expected ones only at its end; a wildcard is the inverse of a netmask: write `0.0.0.255`
    6:36: wildcard mask `0.255.0.255` does not make a prefix: expected ones only at its end
    7:27: `10.0.0` is not an IPv4 address: expected `any`, `host` and an IPv4 address, or an address and a wildcard mask
    8:31: this protocol has no ports: expected `tcp`, `udp` or `sctp` as protocol
    9:39: `http` is not a port: expected a port, 0 to 65535
    10:36: `neq` is not supported: expected `eq`, `range`, `lt` or `gt`
    11:41: the range ends before it begins: expected a port of at least 90
    12:35: no port satisfies this: expected a port of at least 1
    13:36: `established` is not supported: expected `eq`, `range`, `lt` or `gt`
    15:17: unexpected `allow`: expected `permit`, `deny` or `remark`
    16:25: `10` does not name an extended access list: expected a name that does not begin with a digit, or a number of that kind
    18:2: unknown command `ten`: expected `deny`, `permit` or `remark`, or the next definition
    19:17: `any` is not an IPv4 address: expected an address such as `10.0.10.2`
    ");
}

#[test]
fn names_what_is_not_defined() {
    assert_snapshot!(hostile("names.cfg"), @"
    1:25: access list `empty` has no entries: expected `permit` or `deny` lines
    4:5: entry 10 of `twice` exists already: expected another number
    6:26: access list `vidoe` is not defined: expected the name of one defined in this text; did you mean `video`?
    7:21: access list `150` is not defined: expected the name of one defined in this text
    12:8: class map `slcie` is not defined: expected the name of one defined in this text; did you mean `slice`?
    13:18: policy map `kid` is not defined: expected the name of one defined in this text
    17:3: the percentages of `child` add up to more than 100: expected at most 40 %
    22:3: `bandwidth remaining percent` and `bandwidth remaining ratio` exclude each other in a policy map: expected one kind of `bandwidth` in all classes of a policy map; IOS XE accepts only one of them; the other is on line 20
    ");
}

#[test]
fn names_what_is_defined_twice() {
    assert_snapshot!(hostile("duplicates.cfg"), @"
    3:11: class map `slice` is defined twice: expected another name; the first is on line 1
    4:11: `class-default` exists already: expected another name; it gets every packet that no other class matches
    7:25: access list `101` is defined twice: expected another name; the first is on line 6
    10:8: class `slice` is defined twice: expected another name; the first is on line 9
    11:12: policy map `p` is defined twice: expected another name; the first is on line 8
    12:11: the line ends too early: expected the name of the policy map
    13:12: `é` is not one word of printable ASCII: expected the name of the policy map
    ");
}

#[test]
fn refuses_policy_maps_that_contain_themselves() {
    assert_snapshot!(hostile("loop.cfg"), @"6:18: policy map `a` contains itself: expected a policy map that does not lead back here");
}

#[test]
fn refuses_deep_nesting() {
    let mut text = String::new();
    for level in 0..6 {
        let child = level + 1;
        text += &format!("policy-map p{level}\nclass class-default\nservice-policy p{child}\n");
    }
    text += "policy-map p6\n";
    assert_snapshot!(errors_of(&text), @"15:16: policy map `p5` nests too deep: expected at most 5 levels");
}

#[test]
fn refuses_policies_that_expand_to_too_much() {
    // Each level uses the next one eight times: eight to the fifth in all.
    let mut text = String::new();
    for level in 0..5 {
        text += &format!("policy-map p{level}\n");
        for class in 0..8 {
            text += &format!(" class c{class}\n");
            if level < 4 {
                text += &format!("  service-policy p{}\n", level + 1);
            }
        }
    }
    for class in 0..8 {
        text += &format!("class-map c{class}\n match any\n");
    }
    assert_snapshot!(errors_of(&text), @"18:12: policy map `p1` comes to 4680 classes: expected at most 4096, those of its children included");
    let mut text = String::from("ip access-list extended long\n");
    text += &" permit ip any any\n".repeat(700);
    text += "class-map match-any c\n match access-group name long\npolicy-map p\n";
    for copy in 0..100 {
        text += &format!(" class c{copy}\n");
    }
    for copy in 0..100 {
        text += &format!("class-map c{copy}\n match access-group name long\n");
    }
    assert_snapshot!(errors_of(&text), @"704:12: policy map `p` comes to 70100 conditions: expected at most 65536, those of its children included");
}

#[test]
fn refuses_texts_above_the_limit() {
    assert_snapshot!(errors_of(&"!".repeat(TEXT_BYTES_MAX + 1)), @"1:1: the text has 1048577 bytes: expected at most 1048576");
    assert!(ios::parse(&"!".repeat(TEXT_BYTES_MAX)).is_ok());
}

#[test]
fn stops_after_so_many_errors() {
    let text = format!("policy-map p\n{}", "  bogus\n".repeat(1_000));
    let errors = ios::parse(&text).unwrap().errors();
    assert_eq!(errors.len(), ERRORS_MAX);
    assert_eq!(errors.last().map(|error| error.line), Some(ERRORS_MAX + 1));
}

#[test]
fn shows_long_and_unprintable_words_in_short() {
    let text = format!(
        "policy-map p\n {}\npolicy-map a\u{7}\u{1b}[31m\n",
        "x".repeat(100_000)
    );
    assert_snapshot!(errors_of(&text), @r"
    2:2: unknown command `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`: expected `class` or `description`, or the next definition
    3:12: `a\u{7}\u{1b}[31m` is not one word of printable ASCII: expected the name of the policy map
    ");
}

#[test]
fn an_error_says_how_long_its_place_is() {
    let text = "policy-map p\n class class-default\n  shape averagely 5";
    let errors = ios::parse(text).unwrap().errors();
    let places: Vec<_> = errors
        .iter()
        .map(|e| (e.line, e.column, e.length))
        .collect();
    assert_eq!(places, [(3, 9, 9)]);
}

#[test]
fn says_which_policy_maps_could_be_chosen() {
    let config = ios::parse("policy-map gold\npolicy-map silver\n").unwrap();
    assert_snapshot!(config.policy(None).unwrap_err(), @"the configuration has several policy maps (gold, silver): say which one");
    assert_snapshot!(config.policy(Some("glod")).unwrap_err(), @"the configuration has no `policy-map glod`: it has gold, silver; did you mean `gold`?");
    assert_eq!(config.policy(Some("silver")).unwrap().spec.name, "silver");
    let empty = ios::parse("").unwrap();
    assert_snapshot!(empty.policy(Some("gold")).unwrap_err(), @"the configuration has no `policy-map`");
}
