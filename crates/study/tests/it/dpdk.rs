//! Policies given as a profile of DPDK's scheduler, and the device `qos_sched`.

use crate::support::{parse, told};
use insta::assert_snapshot;
use slicewise_study::{
    DutModel, MemoryFiles, QosSchedBursts, QosSchedParams, QosSchedRings, QosSchedThreads, Study,
};
use slicewise_units::Duration;

const PROFILE: &str = include_str!("../../../formats/tests/golden/dpdk/oversubscribed.cfg");
const STUDY: &str = "\
name: threads
link: {rate: 1 Gbit/s}
dut: {model: qos_sched}
slices:
  first: {match: {vlan: 0, inner_vlan: 3}, share: 50 %, headers: {vlan: 0, inner_vlan: 3}}
  second: {match: {vlan: 0, inner_vlan: 20}, share: 50 %, headers: {vlan: 0, inner_vlan: 20}}
sources:
  first: {slice: first, pattern: cbr, rate: 10 %, payload: 1000 B}
  second: {slice: second, pattern: cbr, rate: 10 %, payload: 1000 B}
scenarios:
  both: {reference: true}
policies:
  profile: {dpdk: profile.cfg}
repetitions: 1
duration: 1 s
";

fn with(changes: &[(&str, &str)], profile: &str) -> Result<Study, String> {
    let mut text = STUDY.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "`{old}` is not in the study");
        text = text.replacen(old, new, 1);
    }
    let files = MemoryFiles::new().with("profile.cfg", profile);
    Study::parse(&text, "study.yaml", &files).map_err(|mistakes| told(&mistakes))
}

fn threads(dut: &str) -> Result<QosSchedParams, String> {
    let study = with(&[("dut: {model: qos_sched}", dut)], PROFILE)?;
    match study.dut.model {
        DutModel::QosSched(threads) => Ok(threads),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_is_what_a_profile_makes() {
    let study = with(&[], PROFILE).unwrap();
    let policy = &study.policies[0];
    assert_eq!(policy.spec.name, "profile");
    let hqos = policy.params.classes[0].hqos.as_deref().unwrap();
    assert_eq!(hqos.rate, 125_000_000);
    assert_eq!(policy.configuration, PROFILE.trim_end());
    assert_eq!(study.warnings().count(), 0);
}

#[test]
fn a_mistake_in_a_profile_is_told_at_its_place() {
    let profile = PROFILE.replace("pipe 16-30 = 1", "pipe 15-30 = 1");
    assert_snapshot!(with(&[], &profile).unwrap_err(), @"profile.cfg:11:1 `pipe 15-30`: pipe 15 is in `pipe 0-15` (line 10) already: expected each pipe in one range");
    let profile = PROFILE.replace("tb rate = 16800000", "tb rate = 168000000");
    assert_snapshot!(with(&[], &profile).unwrap_err(), @"profile.cfg:33:11 `168000000`: `tb rate` is 168000000 byte/s: must be 1 to 125000000, the rate of the port (1 Gbit/s, which the link or its device has, and not the profile)");
    let block = PROFILE
        .replace("[red]", "")
        .replace("wrr weights = 1 2", "wrr wieghts = 1 2");
    let block = format!(
        "profile:\n    dpdk: |\n      {}",
        block.replace('\n', "\n      ")
    );
    assert_snapshot!(with(&[("profile: {dpdk: profile.cfg}", &block)], "").unwrap_err(), @"
    study.yaml:66:8 `pipe profile 1`: `[pipe profile 1]` has no `tc 12 wrr weights`: expected `tc 12 wrr weights = …` below it
    study.yaml:84:7 `tc 12 wrr wieghts`: `tc 12 wrr wieghts` is not read here: expected `tb rate`, `tb size`, `tc 12 oversubscription weight`, `tc 12 wrr weights`, `tc 0 rate` to `tc 12 rate`; help: did you mean `tc 12 wrr weights`?
    ");
}

#[test]
fn a_slice_whose_packets_fall_on_no_pipe_is_refused() {
    let fewer = PROFILE.replace("pipe 16-30 = 1\n", "");
    assert_snapshot!(with(&[], &fewer).unwrap_err(), @"study.yaml:6:3 `second`: packets of slice `second` fall on pipe 20 of subport 0, which has no profile in policy `profile`; help: give the pipe a profile, or the slice another `inner_vlan`");
    let untagged = (
        "share: 50 %, headers: {vlan: 0, inner_vlan: 3}",
        "share: 50 %, headers: {vlan: 0}",
    );
    let matched = ("match: {vlan: 0, inner_vlan: 3}", "match: {vlan: 0}");
    assert_snapshot!(with(&[untagged, matched], PROFILE).unwrap_err(), @"
    study.yaml:5:3 `first`: packets of slice `first` have no two VLAN tags, which choose the pipe in policy `profile`; help: the outer tag is the subport and the inner one the pipe: set `vlan` and `inner_vlan`
    study.yaml:9:19 `second`: the packets of source `second` belong to slice `first`, which stands before `second` and matches them too; help: narrow the `match` of `first`, or write `second` before it
    ");
}

#[test]
fn frames_that_no_bucket_or_class_has_credits_for_are_refused_at_the_key() {
    let small = |old, new| {
        let class = "headers: {vlan: 0, inner_vlan: 3";
        let class = (class, &*format!("{class}, destination: 10.0.10.3"));
        with(&[class], &PROFILE.replacen(old, new, 1))
    };
    let bucket = small("tb size = 100000\n", "tb size = 1073\n").unwrap_err();
    assert!(
        bucket.contains(
            "cost 1074 B, and `tb size` of [subport profile 0] is 1073: none would ever leave"
        ),
        "{bucket}"
    );
    assert!(bucket.contains("profile.cfg:16:11"), "{bucket}");
    assert!(small("tb size = 100000\n", "tb size = 1074\n").is_ok());
    let class = small("tc 3 rate = 16800000", "tc 3 rate = 38000").unwrap_err();
    assert!(
        class.contains(
            "`tc 3 rate` of [pipe profile 0] is 1064 B in a `tc period`: none would ever leave"
        ),
        "{class}"
    );
    // The second slice is of another class and pipe.
    assert!(small("tc 4 rate = 16800000", "tc 4 rate = 38000").is_ok());
}

#[test]
fn applications_whose_packets_may_be_too_large_for_a_bucket_are_warned_of() {
    let source = "first: {slice: first, pattern: cbr, rate: 10 %, payload: 1000 B}";
    let requests = "first: {slice: first, application: {kind: requests, rate: 100 /s, connections: 10, response: 859 B}}";
    let profile = PROFILE.replacen("tb size = 100000\n", "tb size = 1200\n", 1);
    let study = with(&[(source, requests)], &profile).unwrap();
    assert_snapshot!(told(study.warnings()), @"profile.cfg:16:11 `1200`: warning: frames of slice `first` cost up to 1546 B, and `tb size` of [subport profile 0] is 1200: those that cost more would never leave");
}

#[test]
fn vlans_beyond_the_last_pipe_are_warned_of_with_the_pipe_that_they_are() {
    let beyond = (
        "inner_vlan: 20}, share: 50 %, headers: {vlan: 0, inner_vlan: 20}",
        "inner_vlan: 36}, share: 50 %, headers: {vlan: 0, inner_vlan: 36}",
    );
    let study = with(&[beyond], PROFILE).unwrap();
    assert_snapshot!(told(study.warnings()), @"study.yaml:6:3 `second`: warning: packets of slice `second` have VLANs beyond the last subport or pipe and fall on pipe 4 of subport 0 in policy `profile`");
}

#[test]
fn threads_are_those_of_the_sample_application_unless_the_study_says_otherwise() {
    assert_eq!(
        threads("dut: {model: qos_sched}"),
        Ok(QosSchedParams::default())
    );
    let all = threads("dut: {model: qos_sched, burst: 8}").unwrap();
    assert_eq!(all.burst, QosSchedBursts::all(8));
    let some = "dut: {model: qos_sched, threads: mixed, burst: {dequeue: 16}, ring: {software: 256}, drain: 1 ms}";
    let expected = QosSchedParams {
        threads: QosSchedThreads::Mixed,
        burst: QosSchedBursts {
            dequeue: 16,
            ..QosSchedParams::default().burst
        },
        ring: QosSchedRings {
            software: 256,
            ..QosSchedParams::default().ring
        },
        drain: Duration::from_millis(1),
    };
    assert_eq!(threads(some), Ok(expected));
    let mixed = with(&[("dut: {model: qos_sched}", some)], PROFILE).unwrap();
    assert_snapshot!(mixed.description("test").dut, @"DPDK's qos_sched (model), port of 1 Gbit/s, bursts of 64, 64, 16 and 64, a worker that transmits, drain 1 ms");
    // No second ring, so no burst that does not fit into it.
    assert!(
        threads("dut: {model: qos_sched, threads: mixed, burst: 64, ring: {software: 64}}").is_ok()
    );
    let study = with(&[], PROFILE).unwrap();
    assert_snapshot!(study.description("test").dut, @"DPDK's qos_sched (model), port of 1 Gbit/s, bursts of 64, 64, 32 and 64");
}

#[test]
fn descriptors_of_the_receiving_interface_have_no_effect_which_is_said() {
    let warned = |changes: &[(&str, &str)]| told(with(changes, PROFILE).unwrap().warnings());
    let fewer = "dut: {model: qos_sched, ring: {receive: 256}}";
    assert_snapshot!(warned(&[("dut: {model: qos_sched}", fewer)]), @"study.yaml:3:25 `ring`: warning: `ring.receive` has no effect: a receive thread that polls without pause leaves nothing in the interface. What waits for the worker is in the ring of `ring.software`");
    let own = "profile.cfg, dut: {ring: {receive: 256}}";
    assert_snapshot!(warned(&[("profile.cfg", own)]), @"study.yaml:13:38 `ring`: warning: `ring.receive` has no effect: a receive thread that polls without pause leaves nothing in the interface. What waits for the worker is in the ring of `ring.software`");
    let sample = "dut: {model: qos_sched, ring: {receive: 1024, transmit: 256}}";
    assert_eq!(warned(&[("dut: {model: qos_sched}", sample)]), "");
}

#[test]
fn settings_of_threads_that_cannot_be_are_refused() {
    let refused = |dut| threads(dut).unwrap_err();
    assert_snapshot!(refused("dut: {model: qos_sched, burst: 0}"), @"study.yaml:3:32 `0`: there must be at least one");
    assert_snapshot!(refused("dut: {model: qos_sched, burst: {dequeue: 70000}}"), @"study.yaml:3:42 `70000`: a burst is at most 65535 packets");
    assert_snapshot!(refused("dut: {model: qos_sched, ring: {software: 1000}}"), @"study.yaml:3:42 `1000`: a ring of DPDK has a power of two of entries: 1000 is none");
    assert_snapshot!(refused("dut: {model: qos_sched, burst: 64, ring: {software: 64}}"), @"study.yaml:3:32 `64`: the worker would wait forever: a burst of 64 packets, and a ring of 64 entries holds 63; help: lower `burst.dequeue`, or give a larger `ring.software`");
    assert_snapshot!(refused("dut: {model: port, burst: 64, drain: 1 ms}"), @"
    study.yaml:3:27 `64`: `burst` is of the model `qos_sched` alone; help: leave it out, or use the model `qos_sched`
    study.yaml:3:38 `1 ms`: `drain` is of the model `qos_sched` alone; help: leave it out, or use the model `qos_sched`
    ");
    assert_snapshot!(refused("dut: {model: qos_sched, queues: 8}"), @"study.yaml:3:33 `8`: `queues` is of the model `switch` alone; help: leave it out, or use the model `switch`");
}

#[test]
fn a_policy_has_the_device_that_it_names_and_its_settings_on_top_of_the_studys() {
    let policies = "profile: {dpdk: profile.cfg}\n  \
        few: {dpdk: profile.cfg, dut: {burst: 8}}\n  \
        port: {none: true, dut: {model: port}}";
    let study = with(
        &[
            ("{model: qos_sched}", "{model: qos_sched, drain: 3 ms}"),
            ("profile: {dpdk: profile.cfg}", policies),
        ],
        PROFILE,
    );
    let study = study.unwrap();
    let model = |policy| study.hops(policy).next().unwrap().0.model;
    let with = |burst| QosSchedParams {
        burst,
        drain: Duration::from_millis(3),
        ..QosSchedParams::default()
    };
    assert_eq!(
        model(0),
        DutModel::QosSched(with(QosSchedParams::default().burst))
    );
    assert_eq!(model(1), DutModel::QosSched(with(QosSchedBursts::all(8))));
    assert_eq!(model(2), DutModel::Port);
    let described = study.description("test");
    let first = |policy: usize| {
        described.policies[policy]
            .configuration
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_snapshot!(first(1), @"on DPDK's qos_sched (model), port of 1 Gbit/s, bursts of 8, 8, 8 and 8");
    assert_snapshot!(first(2), @"on egress port of 1 Gbit/s (model)");
}

#[test]
fn a_device_that_a_policy_cannot_be_on_is_refused() {
    let refused = |dut: &str, own: &str| {
        let policy = format!("profile: {{none: true, dut: {own}}}");
        with(
            &[
                ("dut: {model: qos_sched}", dut),
                ("profile: {dpdk: profile.cfg}", &policy),
            ],
            PROFILE,
        )
        .unwrap_err()
    };
    assert_snapshot!(refused("dut: {model: qos_sched}", "{model: switch}"), @"study.yaml:13:38 `switch`: a policy can be on a `port`, a `gateway` or a `qos_sched`; help: leave `dut` of the policy out, or make two studies of it");
    assert_snapshot!(refused("dut: {model: switch}", "{model: port}"), @"study.yaml:13:38 `port`: policies on devices of their own need a `dut` that is a `port`, `gateway` or `qos_sched`; help: leave `dut` of the policy out, or make two studies of it");
    assert_snapshot!(refused("dut: {model: qos_sched}", "{model: port, burst: 8}"), @"study.yaml:13:51 `8`: `burst` is of the model `qos_sched` alone; help: leave it out, or use the model `qos_sched`");
    assert_snapshot!(refused("dut: {model: qos_sched}", "{burst: {dequeue: 8191, transmit: 9000}, ring: {software: 4096}}"), @"study.yaml:13:31 `burst`: the worker would wait forever: a burst of 8191 packets, and a ring of 4096 entries holds 4095; help: lower `burst.dequeue`, or give a larger `ring.software`");
}

#[test]
fn a_guarantee_behind_the_threads_has_no_bound() {
    let guaranteed = "profile:\n    discipline: guaranteed\n    classes: [{name: first, slice: first, guarantee: {rate: 100 Mbit/s, burst: 5 kB, delay: 1 ms}}]\n    dut: {model: MODEL}";
    let notes = |model| {
        let text = STUDY.replace(
            "profile: {dpdk: profile.cfg}",
            &guaranteed.replace("MODEL", model),
        );
        let text = text.replace(
            "share: 50 %, headers: {vlan: 0, inner_vlan: 3}",
            "share: 50 %, guaranteed: true, headers: {vlan: 0, inner_vlan: 3}",
        );
        parse(&text).unwrap().notes().join("\n")
    };
    assert!(!notes("port").contains("whole bursts"));
    assert_snapshot!(notes("qos_sched"), @"
    no scenario fills the device, which carries 1 Gbit/s: the most that is offered is 204.6 Mbit/s (scenario both), so packets wait only where a policy itself holds them back (`shape`)
    policy `profile`: the delay of slice `first` has no bound to be judged by in scenario both: the device hands frames on in whole bursts, and nothing bounds how long one waits for others
    ");
}
