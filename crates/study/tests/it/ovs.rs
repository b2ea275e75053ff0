//! Policies given as commands of Open vSwitch.

use crate::support::STUDY;
use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Study};

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
    Study::parse(&text, "study.yaml", &files).map_err(|mistakes| mistakes.to_string())
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
    assert_snapshot!(with("    ovs: ovs.sh", &commands).unwrap_err(), @"
    error: class `queue-2`, minimum: with 5 Mbit/s for this class the guarantees add up to 11 Mbit/s, more than the available 10 Mbit/s: lower one of them (4 Mbit/s would fit)
     --> ovs.sh:3:50
      |
    3 |   -- --id=@q2 create queue other-config:min-rate=5000000
      |                                                  ^^^^^^^
    ");
}

#[test]
fn a_mistake_in_a_block_of_commands_is_told_at_its_place() {
    let block = COMMANDS
        .replace("set_queue:2", "set_queue:3")
        .replace('\n', "\n      ");
    assert_snapshot!(with(&format!("    ovs: |\n      {block}"), "").unwrap_err(), @"
    error: queue 3 does not exist: expected a queue of the QoS: 0, 1, 2
      --> study.yaml:31:59
       |
    31 |       ovs-ofctl add-flow br0 dl_vlan=20,actions=set_queue:3,normal
       |                                                           ^
    ");
}

#[test]
fn a_queue_that_no_rule_chooses_is_warned_of() {
    let commands = COMMANDS.replace("set_queue:2", "set_queue:1");
    let study = with("    ovs: ovs.sh", &commands).unwrap();
    assert_snapshot!(study.warnings().to_string(), @r#"
    warning: no rule chooses queue 2: it is left out
     --> ovs.sh:1:93
      |
    1 | ovs-vsctl set port eth1 qos=@qos -- --id=@qos create qos type=linux-htb queues:1=@q1 queues:2=@q2 \
      |                                                                                             ^
    "#);
}
