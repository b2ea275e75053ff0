//! Configurations of IOS: what of them is judged, what is not used, and a study made of one.

use crate::support::told;
use insta::assert_snapshot;
use slicewise_study::{MemoryFiles, Study, study_of_ios};

/// The running-config of a branch office, with the lines of NBAR that have to be left out.
const BRANCH: &str = include_str!("../../../formats/tests/golden/running/branch-office.cfg");
const XR: &str = include_str!("../../../formats/tests/golden/running/xr.cfg");
const MPLS: &str = include_str!("../../../formats/tests/golden/running/mpls-vpn.cfg");
const ECN: &str = include_str!("../../../formats/tests/golden/running/wred-ecn.cfg");
const SET_COS: &str = include_str!("../../../formats/tests/golden/running/set-cos.cfg");
const CLINIC: &str = include_str!("../../../formats/tests/golden/running/clinic.cfg");

/// Voice beside bulk, under `policies` on what `device` says.
fn study(device: &str, policies: &str, configuration: &str) -> Result<Study, String> {
    let text = format!(
        "name: branch\nlink: {{rate: 1 Gbit/s}}\n{device}\n\
         slices:\n\
         \x20 voice: {{match: {{dscp: ef}}, headers: {{dscp: ef, source: 10.1.20.5}}, share: 5 Mbit/s, guaranteed: true}}\n\
         \x20 rest: {{match: {{}}, headers: {{source: 10.1.10.9}}, share: 25 Mbit/s}}\n\
         sources:\n\
         \x20 voice: {{slice: voice, pattern: cbr, payload: 160 B, rate: 2.5 Mbit/s}}\n\
         \x20 rest: {{slice: rest, pattern: poisson, payload: 1000 B}}\n\
         scenarios:\n\
         \x20 calm: {{reference: true, sources: {{rest: {{rate: 10 Mbit/s}}}}}}\n\
         \x20 storm: {{sources: {{rest: {{rate: 60 Mbit/s}}}}}}\n\
         policies:\n{policies}\nrepetitions: 34\nduration: 5 s\n"
    );
    let files = MemoryFiles::new().with("router.cfg", configuration);
    Study::parse(&text, "study.yaml", &files).map_err(|mistakes| told(&mistakes))
}

const PORT: &str = "dut: {model: port, port_rate: 50 Mbit/s}";
const TODAY: &str = "  today: {ios: router.cfg, lenient: yes}";

fn assumptions(study: &Study) -> String {
    study.description("test").assumptions.join("\n")
}

#[test]
fn an_input_policy_that_is_not_judged_is_part_of_the_verdict() {
    let study = study(PORT, &format!("{TODAY}\n  fifo: {{none: true}}"), BRANCH).unwrap();
    let description = study.description("test");
    let [today, fifo] = &description.policies[..] else {
        panic!("two policies");
    };
    assert_snapshot!(today.not_judged.as_deref().unwrap_or_default(), @"GUEST-POLICE (input of GigabitEthernet0/0/1.300); LAN-MARK-IN (input of GigabitEthernet0/0/1.10, GigabitEthernet0/0/1.20)");
    assert_eq!(fifo.not_judged, None);
    assert_snapshot!(study.notes().join("\n"), @"policy `today` is judged without what its configuration attaches before it: GUEST-POLICE (input of GigabitEthernet0/0/1.300); LAN-MARK-IN (input of GigabitEthernet0/0/1.10, GigabitEthernet0/0/1.20) (make it the policy of a first device of a `path` to judge it, too)");
}

#[test]
fn an_input_policy_of_a_first_device_is_judged() {
    let path = "path: [lan, wan]\ndevices:\n  \
                lan: {model: port, port_rate: 1 Gbit/s, policy: {ios: router.cfg, policy_map: LAN-MARK-IN, lenient: yes}}\n  \
                wan: {model: port, port_rate: 50 Mbit/s}";
    let study = study(path, TODAY, BRANCH).unwrap();
    assert_snapshot!(study.policies[0].not_judged.as_deref().unwrap_or_default(), @"GUEST-POLICE (input of GigabitEthernet0/0/1.300)");
}

/// Traffic that arrives on the interface goes the other way.
#[test]
fn an_input_policy_of_the_same_interface_is_not_before() {
    let text = SET_COS.replace("FastEthernet0/0", "FastEthernet0/1");
    let with = |text: &str| {
        let study = study(PORT, TODAY, text).unwrap();
        study.policies[0].not_judged.clone()
    };
    assert_eq!(with(&text), None);
    assert_eq!(
        with(SET_COS).as_deref(),
        Some("REMARK (input of FastEthernet0/0)")
    );
}

#[test]
fn everything_that_is_not_used_stands_under_assumptions() {
    let study = study(PORT, TODAY, BRANCH).unwrap();
    assert_snapshot!(assumptions(&study), @"
    `today`, router.cfg line 8: skipped 84 lines: interface, ip, router, line, aaa, service, vrf, clock and 15 more.
    `today`, router.cfg line 50: `match protocol rtp audio` is taken to match no packet, because headers do not tell.
    `today`, router.cfg line 54: `match protocol sip` is taken to match no packet, because headers do not tell.
    `today`, router.cfg line 65: `match protocol ftp` is taken to match no packet, because headers do not tell.
    `today`, router.cfg line 114: `random-detect` is left out: `fair-queue` and `random-detect` in one class are not supported.
    `today`, router.cfg line 115: used: WAN-SHAPE-50M (output of GigabitEthernet0/0/0); not used: GUEST-POLICE (input of GigabitEthernet0/0/1.300); LAN-MARK-IN (input of GigabitEthernet0/0/1.10, GigabitEthernet0/0/1.20).
    `today`, router.cfg line 8: not about quality of service: lines 8–13, 15, 17–18, 20, 22–23, 25–26, 28–32, 34–35, 37, 39–41, 43, 45–46, 123–124, 126–131, 134–137, 139–143, 146–149, 152–156, 159–162, 164–167, 169–171, 173–177, 179–184, 203, 205, 207–211, 213.
    `today`, router.cfg line 115: not needed by this policy: access list `GUEST-IN`, class map `GUEST-VLAN`, policy map `LAN-MARK-IN`, policy map `GUEST-POLICE` (lines 72–73, 75–87, 119–121, 197–199).
    ");
    let xr = self::study(PORT, TODAY, SET_COS).unwrap();
    assert_snapshot!(assumptions(&xr), @"
    `today`, router.cfg line 14: `set cos` changes no result here and is left out: classes cannot match what it marks (lines 14, 17, 20, 23).
    `today`, router.cfg line 24: used: Parent-1Mbps (output of FastEthernet0/1); not used: REMARK (input of FastEthernet0/0).
    `today`, router.cfg line 32: skipped 2 lines: interface.
    `today`, router.cfg line 24: not needed by this policy: class map `REMARK-VOICE`, policy map `REMARK` (lines 9–10, 28–30).
    `today`, router.cfg line 32: not about quality of service: lines 32, 34.
    ");
}

#[test]
fn what_is_not_modelled_names_the_way_on() {
    let refused = study(PORT, "  today: {ios: router.cfg}", CLINIC).unwrap_err();
    assert_snapshot!(refused, @"router.cfg:10:3 `random-detect`: `fair-queue` and `random-detect` in one class are not supported: expected one of them; help: early drop by class is not modelled in a queue by flow: leave out this line or line 9; or leave it out with `lenient: yes` beside `ios`: the report then says so");
    let lenient = study(PORT, TODAY, CLINIC).unwrap();
    assert_snapshot!(assumptions(&lenient), @"
    `today`, router.cfg line 10: `random-detect` is left out: `fair-queue` and `random-detect` in one class are not supported.
    `today`, router.cfg line 15: skipped 1 line: interface.
    `today`, router.cfg line 15: not about quality of service: line 15.
    ");
}

#[test]
fn curves_above_the_queue_limit_are_warned_of() {
    let text = "\
class-map voice
 match dscp ef
policy-map p
 class voice
  bandwidth percent 35
  random-detect dscp-based
  random-detect dscp 31 70 4000 2
  random-detect dscp 46 2 4000 2
  random-detect dscp 10 2 64 2
  random-detect dscp 12 80 90
";
    let found = study(PORT, "  today: {ios: router.cfg}", text).unwrap();
    assert_snapshot!(told(found.warnings()), @"
    router.cfg:6:3 `random-detect dscp-based`: warning: class `voice`: WRED for DSCP 12 begins at 80 packets, and the queue limit is 72: it never drops a packet, the queue drops at its tail
    router.cfg:6:3 `random-detect dscp-based`: warning: class `voice`: WRED for DSCP 31 ends at 4000 packets, above the queue limit of 72: the queue drops at its tail before the curve has risen
    router.cfg:6:3 `random-detect dscp-based`: warning: class `voice`: WRED for DSCP 46 ends at 4000 packets, above the queue limit of 72: the queue drops at its tail before the curve has risen
    ");
    // The report says so, too.
    assert_snapshot!(assumptions(&found), @"
    `today`, router.cfg line 6: class `voice`: WRED for DSCP 12 begins at 80 packets, and the queue limit is 72: it never drops a packet, the queue drops at its tail.
    `today`, router.cfg line 6: class `voice`: WRED for DSCP 31 ends at 4000 packets, above the queue limit of 72: the queue drops at its tail before the curve has risen.
    `today`, router.cfg line 6: class `voice`: WRED for DSCP 46 ends at 4000 packets, above the queue limit of 72: the queue drops at its tail before the curve has risen.
    ");
    let native = "  p:\n    classes:\n      - {name: a, slice: voice, queue_limit: 20 packets, \
                  wred: {curves: [{for: ef, min: 5, max: 21}]}}";
    assert_snapshot!(told(study(PORT, native, "").unwrap().warnings()), @"study.yaml:16:58 `wred`: warning: class `a`: WRED for DSCP 46 ends at 21 packets, above the queue limit of 20: the queue drops at its tail before the curve has risen");
}

#[test]
fn a_port_that_no_scenario_fills_is_noted() {
    let fast = "dut: {model: port, port_rate: 100 Mbit/s}";
    let policy = "  fifo: {none: true}";
    assert_snapshot!(study(fast, policy, "").unwrap().notes().join("\n"), @"no scenario fills the device, which carries 100 Mbit/s: the most that is offered is 64.18 Mbit/s (scenario storm), so packets wait only where a policy itself holds them back (`shape`)");
    assert_eq!(
        study(PORT, policy, "").unwrap().notes(),
        Vec::<String>::new()
    );
    let shaped = "  shaped: {classes: [{name: class-default, shape: 50 Mbit/s}]}";
    assert_eq!(
        study(fast, shaped, "").unwrap().notes(),
        Vec::<String>::new()
    );
}

#[test]
fn a_study_is_made_of_a_configuration() {
    let made = study_of_ios("router.cfg", BRANCH, None).unwrap().text;
    assert_snapshot!(made);
    let map = Some("Parent-1Mbps");
    assert_snapshot!(study_of_ios("a b.cfg", SET_COS, map).unwrap().text);
}

/// Whatever is made passes the check, and each source's packets are in the class that its slice is named after.
#[test]
fn a_study_made_of_a_configuration_is_right() {
    for text in [BRANCH, XR, MPLS, ECN, SET_COS, CLINIC] {
        let made = study_of_ios("router.cfg", text, None).unwrap().text;
        let files = MemoryFiles::new().with("router.cfg", text);
        let study = Study::parse(&made, "study.yaml", &files);
        let study = study.unwrap_or_else(|mistakes| panic!("{made}\n{mistakes}"));
        assert!(study.slices.len() > 1, "{made}");
        for source in &study.scenarios[0].sources {
            let mut params = &study.policies[0].params;
            let class = loop {
                let mut classes = params.classes.iter();
                let of_source = classes.find(|class| {
                    let map = class.matches.as_ref();
                    map.is_none_or(|map| map.matches(&(&source.headers).into()))
                });
                let class = of_source.unwrap();
                match &class.child {
                    Some(child) => params = child,
                    None => break class,
                }
            };
            let slice = &study.slices[source.slice].name;
            assert!(
                slice.ends_with(class.name.as_str()),
                "{slice}: {}",
                class.name
            );
        }
    }
}

/// Share of each slice of the study made of the policy map of this text, and what is sent in scenario `overload`.
fn made_of(classes: &str) -> String {
    let text = format!(
        "class-map V\n match dscp ef\nclass-map D\n match dscp af21\nclass-map E\n match dscp af11\n{classes}\n\
         interface GigabitEthernet1\n bandwidth 10000\n service-policy output P\n"
    );
    let made = study_of_ios("r.cfg", &text, None).unwrap().text;
    let files = MemoryFiles::new().with("r.cfg", &text);
    let study = Study::parse(&made, "study.yaml", &files).unwrap();
    let slices = study.slices.iter().map(|slice| {
        let guaranteed = if slice.guaranteed { " guaranteed" } else { "" };
        format!("{} {}{guaranteed}", slice.name, slice.share)
    });
    let overload = made
        .lines()
        .find_map(|line| line.trim().strip_prefix("overload: "));
    slices
        .chain(overload.map(str::to_owned))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_class_has_no_more_than_its_policer_and_priority_within_it_is_guaranteed() {
    // The usual class of voice, at a rate and as a percentage; and priority without a rate.
    assert_snapshot!(made_of("policy-map P\n class V\n  priority\n  police cir 1000000\n class D\n  bandwidth remaining percent 60\n class class-default\n  bandwidth remaining percent 40"), @"
    V 1 Mbit/s guaranteed
    D 4.86 Mbit/s
    class-default 3.24 Mbit/s
    {title: class-default at 150 % of 10 Mbit/s, sources: {class-default: {rate: 15 Mbit/s}}}
    ");
    assert_snapshot!(made_of("policy-map P\n class V\n  priority level 1\n  police cir percent 5\n class D\n  priority level 2 2000\n  police rate 1 mbps\n class E\n  priority level 3"), @"
    V 500 kbit/s guaranteed
    D 1 Mbit/s guaranteed
    E 3.825 Mbit/s guaranteed
    class-default 3.825 Mbit/s
    {title: class-default at 150 % of 10 Mbit/s, sources: {class-default: {rate: 15 Mbit/s}}}
    ");
    // A policer that only marks limits nothing; one of the class around does.
    assert_snapshot!(made_of("policy-map C\n class D\n  bandwidth remaining ratio 3\n class class-default\n  bandwidth remaining ratio 1\npolicy-map P\n class V\n  priority percent 10\n  police cir 8000 conform-action transmit exceed-action set-dscp-transmit 0\n class class-default\n  police cir 4m\n  service-policy C"), @"
    V 1 Mbit/s guaranteed
    class-default-D 2.7 Mbit/s
    class-default-class-default 900 kbit/s
    {title: class-default-class-default at 150 % of 4 Mbit/s, sources: {class-default-class-default: {rate: 6 Mbit/s}}}
    ");
    // What a policed class leaves goes to the others, and it is not the one that overloads.
    assert_snapshot!(made_of("policy-map C\n class V\n  police cir 100000\n class class-default\n  police cir 200000\npolicy-map P\n class D\n  shape average 2m\n class E\n  service-policy C\n class class-default\n  police cir 1m conform-action transmit exceed-action drop"), @"
    D 2 Mbit/s
    E-class-default 170 kbit/s
    class-default 1 Mbit/s
    {title: D at 150 % of 2 Mbit/s, sources: {D: {rate: 3 Mbit/s}}}
    ");
}

#[test]
fn the_rate_of_a_port_is_said_with_its_source() {
    let port = |interface: &str| {
        let text = format!(
            "policy-map P\n class class-default\n  fair-queue\ninterface {interface}\n service-policy output P\n"
        );
        study_of_ios("r.cfg", &text, None).unwrap().port
    };
    let ports = [
        "Serial0/0/0",
        "Serial0/0/0:0\n bandwidth 1984",
        "GigabitEthernet1",
        "TwentyFiveGigE1/0/1",
        "Tunnel7",
    ];
    assert_snapshot!(ports.map(port).join("\n"), @"
    1.544 Mbit/s (the usual rate of Serial0/0/0, which states none)
    1.984 Mbit/s (the rate of Serial0/0/0:0)
    1 Gbit/s (the usual rate of GigabitEthernet1, which states none)
    25 Gbit/s (the usual rate of TwentyFiveGigE1/0/1, which states none)
    1 Gbit/s (assumed: fill in the rate of Tunnel7)
    ");
}

#[test]
fn counters_are_no_configuration_and_the_message_says_what_to_give() {
    let shown = "R1#show policy-map interface\n GigabitEthernet0/0/0\n\n  Service-policy output: WAN\n\n    \
                 Class-map: VOICE (match-any)\n      0 packets, 0 bytes\n      Match: dscp ef (46)\n";
    let refused = study(PORT, TODAY, shown).unwrap_err();
    assert!(
        refused.contains("this is the output of `show policy-map interface`"),
        "{refused}"
    );
    assert!(
        refused.contains("give the configuration: the output of `show running-config`"),
        "{refused}"
    );
}

#[test]
fn a_configuration_is_no_study_and_says_so() {
    let refused = Study::parse(BRANCH, "router.cfg", &MemoryFiles::new()).unwrap_err();
    assert_snapshot!(refused, @"
    error: this is a configuration of IOS
     --> router.cfg:1:1
      |
    1 | Building configuration...
      | ^
      |
      = help: `slicewise init --ios router.cfg` writes a study of it
    ");
    let several = "policy-map a\n class class-default\npolicy-map b\n class class-default\n";
    assert_snapshot!(study_of_ios("router.cfg", several, None).err().unwrap(), @"
    error: the configuration has several policy maps (a, b): say which one (`slicewise init --ios FILE --policy-map NAME`)
    --> router.cfg
    ");
}
