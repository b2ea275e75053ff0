//! Files that describe labs.

use insta::assert_snapshot;
use slicewise_study::{
    ConfigurationLanguage, ConfiguredBy, FileKind, Lab, LabClocks, LabHost, MemoryFiles,
};
use std::path::PathBuf;

const LAB: &str = "\
sender: {ssh: user@host-a, interface: eth1, address: 10.0.1.2}
receiver: {ssh: host-b, interface: eth2, address: 10.0.2.2, program: sudo slicewise}
device: {apply: './apply.sh {policy} {file}', export: ios}
";

fn parsed(text: &str) -> Result<Lab, String> {
    let lab = Lab::parse(text, "lab.yaml", &MemoryFiles::new());
    lab.map_err(|wrong| wrong.to_string())
}

/// Everything that is wrong when one setting is another.
fn wrong(from: &str, to: &str) -> String {
    assert!(LAB.contains(from), "{from}");
    let told = parsed(&LAB.replacen(from, to, 1)).unwrap_err();
    let has_source =
        |line: &&str| line.contains("error: ") || line.contains("-->") || line.contains("help");
    let lines = told.lines().filter(has_source).map(str::trim);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_lab_has_defaults_for_what_is_not_said() {
    let lab = parsed(LAB).unwrap();
    let sender = LabHost {
        ssh: "user@host-a".to_owned(),
        interface: "eth1".to_owned(),
        address: [10, 0, 1, 2].into(),
        program: "slicewise".to_owned(),
    };
    assert_eq!(lab.sender, sender);
    assert_eq!(lab.receiver.program, "sudo slicewise");
    assert_eq!(lab.device.export, Some(ConfigurationLanguage::Ios));
    let limit_ns = 1_000_000;
    assert_eq!(lab.clocks, LabClocks::TwoWay { limit_ns });
    assert_eq!(lab.ssh_config, None);
    let text = LAB.replace("device: {apply: './apply.sh {policy} {file}', export: ios}", "\
        device: {operator: 'Configure it, then press Enter'}\nclocks: {synchronised: 1 us}\nssh_config: hosts");
    let lab = parsed(&text).unwrap();
    let operator = ConfiguredBy::Operator("Configure it, then press Enter".to_owned());
    assert_eq!(lab.device.configured_by, operator);
    assert_eq!(lab.clocks, LabClocks::Synchronised { within_ns: 1_000 });
    assert_eq!(lab.ssh_config, Some(PathBuf::from("hosts")));
}

#[test]
fn a_file_of_hosts_is_a_lab() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("three-hosts.yaml");
    std::fs::write(&path, LAB).unwrap();
    assert_eq!(FileKind::of(&path).unwrap(), FileKind::Lab);
}

#[test]
fn contradictions_have_their_places() {
    assert_snapshot!(wrong("interface: eth1", "interfaces: eth1"), @r"
        error: `interfaces` is not a setting here
        --> lab.yaml:1:28
        = help: did you mean `interface`?
        ");
    assert_snapshot!(wrong("ssh: host-b", "ssh: -oProxyCommand=reboot"), @r"
        error: `-oProxyCommand=reboot` is no destination of SSH: expected `user@host`, or a name of the SSH configuration
        --> lab.yaml:2:17
        ");
    assert_snapshot!(wrong("address: 10.0.2.2", "address: 10.0.1.2"), @r"
        error: sender and receiver need two addresses of one IP version, and they have 10.0.1.2 and 10.0.1.2
        --> lab.yaml:2:51
        ");
    assert_snapshot!(wrong("address: 10.0.2.2", "address: 2001:db8::2"), @r"
        error: sender and receiver need two addresses of one IP version, and they have 10.0.1.2 and 2001:db8::2
        --> lab.yaml:2:51
        ");
    assert_snapshot!(wrong("ssh: host-b", "ssh: user@host-a"), @r"
        error: sender and receiver are one host: one host can take part only once
        --> lab.yaml:2:17
        = help: name a second host, or measure between namespaces of one: `--on tc` or `--on gateway`
        ");
    assert_snapshot!(wrong("address: 10.0.2.2", "address: 0.0.0.0"), @r"
        error: 0.0.0.0 is no address of an interface towards a device
        --> lab.yaml:2:51
        ");
    assert_snapshot!(wrong("program: sudo slicewise", "program: ' '"), @r"
        error: this is empty: expected the command that starts this program
        --> lab.yaml:2:70
        ");
    assert_snapshot!(wrong("device:", "clocks: {limit: 0 s}\ndevice:"), @r"
        error: no offset is known exactly: expected a limit above zero, such as `1 ms`
        --> lab.yaml:3:17
        ");
    assert_snapshot!(wrong(", export: ios", ""), @r"
        error: `{file}` is the exported configuration, and policies are not exported
        --> lab.yaml:3:17
        = help: say in which language: `export: tc`, `ios`, `ovs`, `dpdk` or `p4-tins`
        ");
    assert_snapshot!(wrong("export: ios", "export: ios, ssh: host-c"), @r"
        error: `{file}` is on this machine, and the command runs on another one
        --> lab.yaml:3:17
        = help: read the configuration from standard input
        ");
    assert_snapshot!(wrong("export: ios", "export: tc"), @r"
        error: this configuration names the interface to the receiver: expected `interface: NAME`
        --> lab.yaml:3:1
        ");
    assert_snapshot!(wrong("export: ios", "export: ios, interface: eth3"), @r"
        error: only configurations of `tc` and `ovs` name an interface
        --> lab.yaml:3:71
        = help: leave it out
        ");
    assert_snapshot!(wrong("export: ios", "export: ios, operator: Hello"), @r"
        error: a policy is put in force either by a command, `apply`, or by a person, `operator`: expected one of them
        --> lab.yaml:3:1
        ");
    assert_snapshot!(wrong("apply: './apply.sh {policy} {file}'", "operator: Hello, ssh: host-c"), @r"
        error: `ssh` is the host of `apply`, and a person configures this device
        --> lab.yaml:3:32
        = help: leave out `ssh` or `operator`
        ");
    assert_snapshot!(wrong("'./apply.sh {policy} {file}'", "''"), @r"
        error: this is empty: expected the command that puts a policy in force
        --> lab.yaml:3:17
        ");
    assert_snapshot!(wrong("apply: './apply.sh {policy} {file}', export: ios", "operator: ''"), @r"
        error: this is empty: expected what a person has to do
        --> lab.yaml:3:20
        ");
    assert_snapshot!(wrong("'./apply.sh {policy} {file}', export: ios", "./apply.sh"), @r"
        error: this command is the same for every policy
        --> lab.yaml:3:17
        = help: give it the name, `{policy}`, or the configuration: `export: tc`, `ios`, `ovs`, `dpdk` or `p4-tins`
        ");
    assert_snapshot!(wrong("'./apply.sh {policy} {file}'", "\"./apply.sh '{policy}'\""), @r"
        error: `{policy}` and `{file}` are filled in as quoted words of a shell
        --> lab.yaml:3:17
        = help: leave out the quotes around them
        ");
    assert_snapshot!(wrong("device:", "clocks: {synchronised: 1 us, limit: 1 ms}\ndevice:"), @r"
        error: clocks are either measured (`check`, `limit`) or stated to be `synchronised`
        --> lab.yaml:3:24
        = help: leave out one of them
        ");
}
