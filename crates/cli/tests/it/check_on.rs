//! `slicewise check --on` finds, with its place, whatever `run --on` would refuse of a study; and a gateway's check what no gateway can run.

use crate::support::small_study::STUDY;
use crate::support::{Sandbox, contains, text};
use insta::assert_snapshot;
use slicewise_live::EngineError;
use slicewise_study::TestbedError;
use slicewise_units::{BitRate, Duration};

fn sandbox(text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("file.yaml", text);
    sandbox
}

/// [`STUDY`], with each of the first replaced by the second.
fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(STUDY.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    })
}

/// [`STUDY`] with a loop over rates.
fn reallocated(every: &str) -> String {
    let with = format!(
        "      - {{name: critical, slice: critical, shape: 5 Mbit/s}}\n    \
         reallocate: {{every: {every}, classes: {{critical: {{guarantee: 50 %}}}}}}"
    );
    let priority = "      - {name: critical, slice: critical, priority: {rate: 5 Mbit/s}}";
    changed(&[(priority, &with)])
}

/// The study that leads to an error, the back end, and where and what is said.
fn refused(error: &TestbedError) -> (String, &'static str, &'static str, &'static str) {
    match error {
        TestbedError::Populations => (
            "\
name: many
link: {rate: 1 Gbit/s}
dut: {model: port}
slices: {all: {match: {}, share: 10 %, guaranteed: true}}
populations: {all: {sends: backlog, frame: 1514 B}}
scenarios: {few: {reference: true, populations: {all: 4}}}
policies: {p: {discipline: deficit_round_robin, classes: [{name: all, slice: all}]}}
repetitions: 1
duration: 1 s
"
            .to_owned(),
            "gateway",
            "file.yaml:5:1",
            "are populations, whose frames have no headers",
        ),
        TestbedError::Impairments => (
            changed(&[(
                "link: {rate: 1 Gbit/s}",
                "link: {rate: 1 Gbit/s, impairments: {egress: {loss: 1 %}}}",
            )]),
            "tc",
            "file.yaml:3:24",
            "are impaired",
        ),
        TestbedError::VaryingRate => (
            changed(&[(
                "port_rate: 10 Mbit/s",
                "port_rate: [{at: 0 s, rate: 10 Mbit/s}, {at: 1 s, rate: 8 Mbit/s}]",
            )]),
            "gateway",
            "file.yaml:4:20",
            "the rate of the port changes during a run",
        ),
        TestbedError::Propagation(_) => (
            changed(&[(
                "link: {rate: 1 Gbit/s}",
                "link: {rate: 1 Gbit/s, propagation: 5 ms}",
            )]),
            "gateway",
            "file.yaml:3:37",
            "the links of this study take 5 ms",
        ),
        TestbedError::HostPropagation(_) => (
            changed(&[
                (
                    "link: {rate: 1 Gbit/s}",
                    "link: {rate: 1 Gbit/s}\nhosts: {propagation: {far: 5 ms}}",
                ),
                ("pattern: cbr", "host: far, pattern: cbr"),
            ]),
            "gateway",
            "file.yaml:4:28",
            "host `far` has a link of its own length",
        ),
        TestbedError::Path => (
            changed(&[
                (
                    "dut: {model: port, port_rate: 10 Mbit/s}",
                    "path: [one, two]",
                ),
                (
                    "slices:\n",
                    "devices: {one: {model: port, port_rate: 10 Mbit/s}, two: {model: port, port_rate: 10 Mbit/s}}\nslices:\n",
                ),
            ]),
            "gateway",
            "file.yaml:4:1",
            "a path of several devices",
        ),
        TestbedError::Ecn(_) => (
            changed(&[("headers: {vlan: 20,", "headers: {ecn: ect0, vlan: 20,")]),
            "gateway",
            "file.yaml:10:38",
            "source `rest` is ECN-capable",
        ),
        TestbedError::Tunnel(_) => (
            changed(&[("headers: {vlan: 20,", "headers: {teid: 7, vlan: 20,")]),
            "tc",
            "file.yaml:10:39",
            "source `rest` is in a tunnel",
        ),
        TestbedError::Reallocation(_) => (
            reallocated("100 ms"),
            "tc",
            "file.yaml:19:5",
            "a loop sets the rates of policy `first`",
        ),
        TestbedError::PolicyChange(_) => (
            format!(
                "{STUDY}timeline:\n  settle: 500 ms\n  changes:\n    later: {{at: 2 s, policies: {{first: {{classes: [{{name: critical, slice: critical, weight: 3}}]}}}}}}\n"
            ),
            "tc",
            "file.yaml:27:5",
            "phase `later` changes a policy",
        ),
        TestbedError::Policy { .. } => (
            // A licence is all that the link of a testbed carries.
            changed(&[
                (
                    "model: port, port_rate: 10 Mbit/s",
                    "model: isr4221, port_rate: 10 Mbit/s, licence: {rate: 4 Mbit/s, credit: 3 kB}",
                ),
                (
                    "      - {name: critical, slice: critical, priority: {rate: 5 Mbit/s}}",
                    "      - {name: critical, slice: critical, minimum: 2 Mbit/s}\n      - {name: rest, slice: rest, minimum: 3 Mbit/s}",
                ),
                ("rate: 90 %", "rate: 40 %"),
            ]),
            "gateway",
            "",
            "",
        ),
    }
}

#[test]
fn whatever_keeps_a_study_from_a_testbed_has_its_place() {
    let name = String::new;
    let errors = [
        TestbedError::Populations,
        TestbedError::Impairments,
        TestbedError::VaryingRate,
        TestbedError::Propagation(Duration::ZERO),
        TestbedError::HostPropagation("far".to_owned()),
        TestbedError::Path,
        TestbedError::Ecn(name()),
        TestbedError::Tunnel(name()),
        TestbedError::Reallocation(name()),
        TestbedError::PolicyChange(name()),
    ];
    for error in errors {
        let (text, on, place, message) = refused(&error);
        let sandbox = sandbox(&text);
        sandbox.succeeded(&["check", "file.yaml"]);
        let said = sandbox.refused(2, &["check", "file.yaml", "--on", on]);
        contains(&said, place);
        contains(&said, message);
    }
    let policy = TestbedError::Policy {
        policy: name(),
        rate: BitRate::ZERO,
        error: Box::new(slicewise_model::PolicyError {
            policy: name(),
            part: slicewise_model::Part::Class,
            class: name(),
            field: "",
            problem: name(),
        }),
    };
    // What fits in a licence is checked for it before.
    let (text, ..) = refused(&policy);
    let said = sandbox(&text).refused(2, &["check", "file.yaml"]);
    contains(&said, "more than the available 4 Mbit/s");
}

#[test]
fn a_case_that_a_testbed_leaves_out_is_a_warning_while_others_remain() {
    let checked = |cases: &str| {
        let sandbox = sandbox(&format!("{STUDY}{cases}"));
        let output = sandbox.slicewise(&["check", "file.yaml", "--on", "gateway"]);
        (output.status.code(), text(&output.stderr))
    };
    let far = "far: {link: {propagation: 5 ms}}";
    let sweep = "sweep: {axes: {far: {path: link.propagation, values: [0 s, 5 ms]}}}\n";
    for (cases, code, said) in [
        (format!("cases: {{near: {{}}, {far}}}\n"), 0, "warning: "),
        (format!("cases: {{{far}}}\n"), 2, "error: "),
        (sweep.to_owned(), 0, "warning: "),
    ] {
        let (found, told) = checked(&cases);
        assert_eq!(found, Some(code), "{told}");
        contains(&told, &format!("{said}the links of this study take 5 ms"));
    }
}

#[test]
fn what_hosts_cannot_send_and_devices_cannot_do_has_its_place() {
    let tcp = changed(&[("headers: {vlan: 20,", "headers: {protocol: tcp, vlan: 20,")]);
    let said = sandbox(&tcp).refused(2, &["check", "file.yaml", "--on", "gateway"]);
    assert_snapshot!(said, @"
    error: source rest has IP protocol 6: the testbed sends UDP in all patterns, and TCP only with iperf3 at a constant rate
      --> file.yaml:12:37
       |
    12 |   calm: {reference: true, sources: {rest: {rate: 40 %}}}
       |                                     ^^^^

    error: source rest has IP protocol 6: the testbed sends UDP in all patterns, and TCP only with iperf3 at a constant rate
      --> file.yaml:13:23
       |
    13 |   crowded: {sources: {rest: {rate: 90 %}}}
       |                       ^^^^

    error: 2 mistakes in file.yaml
    ");
    // Tunnels with UDP go through the gateway, those with TCP nowhere.
    let tunnel = changed(&[("headers: {vlan: 20,", "headers: {teid: 7, vlan: 20,")]);
    sandbox(&tunnel).succeeded(&["check", "file.yaml", "--on", "gateway"]);
    let tcp = changed(&[(
        "headers: {vlan: 20,",
        "headers: {protocol: tcp, teid: 7, vlan: 20,",
    )]);
    let said = sandbox(&tcp).refused(2, &["check", "file.yaml", "--on", "gateway"]);
    contains(&said, "file.yaml:10:54");
    contains(&said, "senders of a testbed put UDP alone into tunnels");
    // A policy that is left out is a warning where others remain.
    let wred = changed(&[("priority: {rate: 5 Mbit/s}}", "wred: {}}")]);
    let (out, said) = sandbox(&wred).succeeded(&["check", "file.yaml", "--on", "tc"]);
    contains(&out, "2 policies");
    assert_snapshot!(said, @"
    warning: policy `first` cannot be run here: class `critical`: wred: has several curves, of code points 0 and 8 for example: red has one for all packets of its queue, and gred chooses its curve by a mark (tc_index) that no classic filter sets; give all code points of the class one curve, or each curve a class with a `match` of its code points
      --> file.yaml:18:43
       |
    18 |       - {name: critical, slice: critical, wred: {}}
       |                                           ^^^^
    ");
    let alone = wred.replace("  shared: {none: true}\n", "");
    sandbox(&alone).refused(2, &["check", "file.yaml", "--on", "tc"]);
    let said = sandbox(STUDY).refused(2, &["check", "file.yaml", "--on", "dpdk"]);
    contains(&said, "file.yaml:15:3");
    contains(&said, "policies written as profile files");
    let plan = "link: 1 Gbit/s\nslices: {all: {count: 3, guarantee: 1 Mbit/s}}\n";
    let said = sandbox(plan).refused(2, &["check", "file.yaml", "--on", "tc"]);
    contains(&said, "`--on` is for studies");
}

#[test]
fn a_loop_over_rates_runs_on_the_gateway_unless_it_reads_too_often() {
    let on_gateway = ["check", "file.yaml", "--on", "gateway"];
    let (out, said) = sandbox(&reallocated("10 ms")).succeeded(&on_gateway);
    assert_eq!((out.contains("2 policies"), said.as_str()), (true, ""));
    let (_, said) = sandbox(&reallocated("9 ms")).succeeded(&on_gateway);
    assert_snapshot!(said, @"
    warning: policy `first` cannot be run here: every: is 9 ms: at least 10 ms on a gateway, whose loop shares the processor with others
      --> file.yaml:19:5
       |
    19 |     reallocate: {every: 9 ms, classes: {critical: {guarantee: 50 %}}}
       |     ^^^^^^^^^^
    ");
}

/// Which of the configurations of [`gateways`] leads to an error of the engine; `None` where the machine decides.
const fn refused_by_gateway(error: &EngineError) -> Option<usize> {
    match error {
        EngineError::Build(_) => Some(0),
        EngineError::TooLittleMemory { .. } => Some(1),
        EngineError::Memory { .. } => None,
    }
}

/// Configurations that no gateway can run, and the place of the mistake.
fn gateways() -> [(String, &'static str); 2] {
    let config = |settings: &str| format!("interfaces: [left, right]\nlink: 1 Gbit/s\n{settings}");
    let levels = (1..=70).map(|level| {
        format!(
            "    - {{name: c{level}, match: {{vlan: {level}}}, priority: {{level: {level}}}}}\n"
        )
    });
    let levels: String = levels.collect();
    [
        (
            config(&format!("policy:\n  classes:\n{levels}")),
            "file.yaml:68:",
        ),
        (
            config("policy: {none: true}\nmemory: 1 kB\n"),
            "file.yaml:4:9",
        ),
    ]
}

#[test]
fn a_gateway_that_cannot_start_is_found_by_both_checks() {
    let too_little = EngineError::TooLittleMemory {
        bytes: 0,
        least_bytes: 0,
        needed_bytes: 0,
        receive_queues: 0,
        queues: 0,
    };
    assert_eq!(refused_by_gateway(&too_little), Some(1));
    for (text, place) in gateways() {
        let sandbox = sandbox(&text);
        for arguments in [
            &["check", "file.yaml"][..],
            &["gateway", "--check", "file.yaml"],
        ] {
            let said = sandbox.refused(2, arguments);
            contains(&said, place);
        }
    }
}
