//! Policies given as commands of Open vSwitch.

use crate::support::{STUDY, told};
use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Study};
use slicewise_wire::{Headers, IpVersion};

const COMMANDS: &str = "\
ovs-vsctl set port eth1 qos=@qos -- --id=@qos create qos type=linux-htb queues:1=@q1 queues:2=@q2 \\
  -- --id=@q1 create queue other-config:min-rate=6000000 other-config:max-rate=8000000 \\
  -- --id=@q2 create queue other-config:min-rate=4000000
ovs-ofctl add-flow br0 dl_vlan=10,actions=set_queue:1,normal
ovs-ofctl add-flow br0 dl_vlan=20,actions=set_queue:2,normal
";

/// [`STUDY`] with only the policy `p` of these settings, and `ovs.sh`.
fn with(policy: &str, commands: &str) -> Result<Study, String> {
    let start = STUDY.find("policies:").unwrap();
    let end = STUDY.find("repetitions:").unwrap();
    let text = format!(
        "{}policies:\n  p:\n{policy}\n{}",
        &STUDY[..start],
        &STUDY[end..]
    );
    let files = MemoryFiles::new().with("ovs.sh", commands);
    Study::parse(&text, "study.yaml", &files).map_err(|mistakes| told(&mistakes))
}

#[test]
fn a_policy_is_what_queues_and_rules_make() {
    let study = with("    ovs: ovs.sh", COMMANDS).unwrap();
    let policy = &study.policies[0];
    let names: Vec<&str> = policy
        .params
        .classes
        .iter()
        .map(|class| class.name.as_str())
        .collect();
    assert_eq!(names, ["queue-1", "queue-2", "class-default"]);
    assert_eq!(policy.spec.name, "p");
    assert_eq!(policy.configuration, COMMANDS.trim_end());
    assert_eq!(study.warnings().count(), 0);
}

#[test]
fn minimums_that_do_not_fit_in_the_link_are_told_at_their_place() {
    let commands = COMMANDS.replace("min-rate=4000000", "min-rate=5000000");
    assert_snapshot!(with("    ovs: ovs.sh", &commands).unwrap_err(), @"ovs.sh:3:50 `5000000`: class `queue-2`, minimum: with 5 Mbit/s for this class the guarantees add up to 11 Mbit/s, more than the available 10 Mbit/s: lower one of them (4 Mbit/s would fit)");
}

#[test]
fn a_mistake_in_a_block_of_commands_is_told_at_its_place() {
    let block = COMMANDS
        .replace("set_queue:2", "set_queue:3")
        .replace('\n', "\n      ");
    assert_snapshot!(with(&format!("    ovs: |\n      {block}"), "").unwrap_err(), @"study.yaml:31:59 `3`: queue 3 does not exist: expected a queue of the QoS: 0, 1, 2");
}

#[test]
fn a_queue_that_no_rule_chooses_is_warned_of() {
    let commands = COMMANDS.replace("set_queue:2", "set_queue:1");
    let study = with("    ovs: ovs.sh", &commands).unwrap();
    assert_snapshot!(told(study.warnings()), @"ovs.sh:1:93 `2`: warning: no rule chooses queue 2: it is left out");
}

/// A bridge that shapes what comes in by each of two ports: the example of Open vSwitch's list of questions.
const BY_PORT: &str = "\
ovs-vsctl -- \\
  add-br br0 -- \\
  add-port br0 eth0 -- \\
  add-port br0 vif1.0 -- set interface vif1.0 ofport_request=5 -- \\
  add-port br0 vif2.0 -- set interface vif2.0 ofport_request=6 -- \\
  set port eth0 qos=@newqos -- \\
  --id=@newqos create qos type=linux-htb \\
      other-config:max-rate=1000000000 \\
      queues:123=@vif10queue \\
      queues:234=@vif20queue -- \\
  --id=@vif10queue create queue other-config:max-rate=10000000 -- \\
  --id=@vif20queue create queue other-config:max-rate=20000000
ovs-ofctl add-flow br0 in_port=5,actions=set_queue:123,normal
ovs-ofctl add-flow br0 in_port=6,actions=set_queue:234,normal
";

/// A study with these slices and ports, and rules for [`BY_PORT`].
fn by_port(slices: &str, in_ports: &str, commands: &str) -> Result<Study, String> {
    let text = format!(
        "\
name: field
link: {{rate: 1 Gbit/s}}
dut: {{model: port, port_rate: 10 Mbit/s}}
slices: {{{slices}}}
sources:
  v: {{slice: voice, pattern: cbr, rate: 10 %, payload: 160 B, headers: {{dscp: ef}}}}
scenarios:
  calm: {{reference: true}}
policies:
  p: {{ovs: ovs.sh{in_ports}}}
repetitions: 2
duration: 5 s
"
    );
    let files = MemoryFiles::new().with("ovs.sh", commands);
    Study::parse(&text, "study.yaml", &files).map_err(|mistakes| told(&mistakes))
}

const VOICE_AND_REST: &str =
    "voice: {match: {dscp: ef}, share: 10 %}, rest: {match: {}, share: 90 %}";

/// The queue of a frame with this code point: its class, and its shaper.
fn queue(study: &Study, dscp: u8) -> (String, Option<u64>) {
    let frame = Headers {
        ip_version: IpVersion::V4,
        dscp,
        ..Headers::EMPTY
    };
    let mut classes = study.policies[0].params.classes.iter();
    let class = classes.find(|class| class.matches.as_ref().is_none_or(|map| map.matches(&frame)));
    let class = class.unwrap();
    let shape = class.shape.map(|shape| shape.rate.rate.bits_per_second());
    (class.name.clone(), shape)
}

#[test]
fn a_slice_stands_for_what_comes_in_by_a_port() {
    let ten = ("queue-123".to_owned(), Some(10_000_000));
    let twenty = ("queue-234".to_owned(), Some(20_000_000));
    for ports in ["{5: voice, 6: rest}", "{vif1.0: voice, vif2.0: rest}"] {
        let study = by_port(VOICE_AND_REST, &format!(", in_ports: {ports}"), BY_PORT).unwrap();
        assert_eq!(
            (queue(&study, 46), queue(&study, 0)),
            (ten.clone(), twenty.clone())
        );
    }
    // Whatever the order of the rules, and by the name of the interface too.
    let (first, second) = BY_PORT.split_at(BY_PORT.find("ovs-ofctl").unwrap());
    let rules: Vec<&str> = second.lines().rev().collect();
    let reversed = format!("{first}{}\n", rules.join("\n")).replace("in_port=5", "in_port=vif1.0");
    let study = by_port(VOICE_AND_REST, ", in_ports: {5: voice, 6: rest}", &reversed).unwrap();
    assert_eq!((queue(&study, 46), queue(&study, 0)), (ten, twenty));
}

#[test]
fn a_port_without_a_rule_is_noted() {
    let ports = ", in_ports: {5: voice, 6: rest, 7: rest, vif3.0: rest}";
    let warnings = by_port(VOICE_AND_REST, ports, BY_PORT).unwrap();
    let warnings = told(warnings.warnings());
    for port in ["7", "vif3.0"] {
        let note = format!("no rule is for port `{port}`, which `in_ports` names for slice `rest`");
        assert!(warnings.contains(&note), "{warnings}");
    }
    assert_eq!(warnings.matches("no rule is for port").count(), 2);
}

#[test]
fn a_field_beside_a_port_is_one_of_the_slice() {
    let rule = "ovs-ofctl add-flow br0 priority=40000,in_port=6,udp,tp_dst=53,actions=set_queue:123,normal\n";
    let study = by_port(
        "voice: {match: {dscp: ef}, share: 10 %}, rest: {match: {dscp: default}, share: 90 %}",
        ", in_ports: {5: voice, 6: rest}",
        &format!("{BY_PORT}{rule}"),
    );
    let study = study.unwrap();
    let class = |dscp, protocol| {
        let frame = Headers {
            ip_version: IpVersion::V4,
            protocol,
            has_ports: true,
            destination_port: 53,
            dscp,
            ..Headers::EMPTY
        };
        let mut classes = study.policies[0].params.classes.iter();
        let class = classes.find(|it| it.matches.as_ref().is_none_or(|map| map.matches(&frame)));
        class.unwrap().name.clone()
    };
    assert_eq!(class(46, 17), "queue-123");
    assert_eq!(class(0, 6), "queue-234");
    assert!(class(0, 17).starts_with("queue-123"), "{}", class(0, 17));
}

#[test]
fn a_port_that_stands_for_no_slice_is_told() {
    assert_snapshot!(by_port(VOICE_AND_REST, "", BY_PORT).unwrap_err(), @"
    ovs.sh:13:24 `in_port=5`: a policy does not know the port that a frame came in by: expected a slice that stands for it, or a header field too, such as `nw_src`; help: say beside `ovs` which slice comes in by it: `in_ports: {5: SLICE}`
    ovs.sh:14:24 `in_port=6`: a policy does not know the port that a frame came in by: expected a slice that stands for it, or a header field too, such as `nw_src`; help: say beside `ovs` which slice comes in by it: `in_ports: {6: SLICE}`
    ");
    let misspelt = by_port(VOICE_AND_REST, ", in_ports: {5: voice, 6: rst}", BY_PORT);
    let misspelt = misspelt.unwrap_err();
    assert!(misspelt.contains("there is no slice `rst`"), "{misspelt}");
}

#[test]
fn frames_of_a_slice_never_follow_the_rule_of_another_port() {
    // Without a rule for voice, its frames would be among the rest; behind that of the rest, too.
    let only = BY_PORT.replace(
        "ovs-ofctl add-flow br0 in_port=5,actions=set_queue:123,normal\n",
        "",
    );
    let later = BY_PORT.replace("br0 in_port=5", "br0 priority=7,in_port=5");
    let part = BY_PORT.replace("br0 in_port=5", "br0 udp,in_port=5");
    for commands in [only, later, part] {
        let refused = by_port(VOICE_AND_REST, ", in_ports: {5: voice, 6: rest}", &commands);
        let refused = refused.unwrap_err();
        assert!(
            refused.contains("frames of slice `voice` would follow this rule, too"),
            "{refused}"
        );
    }
}
