use super::*;
use insta::assert_snapshot;
use slicewise_study::MemoryFiles;

const PROFILE: &str = include_str!("../../../../formats/tests/golden/dpdk/equal-pipes.cfg");
const WITH_RED: &str = include_str!("../../../../formats/tests/golden/dpdk/early-detection.cfg");
const STUDY: &str = "
name: pipes
link: {rate: 10 Gbit/s}
dut: {model: qos_sched, burst: {receive: 16, dequeue: 8}, drain: 1500 ns}
slices:
  data: {match: {vlan: 0, inner_vlan: 3}, share: 1 %, headers: {vlan: 0, inner_vlan: 3}}
sources:
  data: {slice: data, pattern: cbr, rate: 1 Mbit/s, payload: 1000 B}
scenarios:
  alone: {reference: true}
policies:
  profile: {dpdk: profile.cfg}
  short: {dpdk: profile.cfg, dut: {burst: 1, ring: {software: 64}}}
  long: {dpdk: profile.cfg, dut: {burst: 2000}}
  none: {none: true}
repetitions: 1
duration: 1 s
";

fn study(profile: &str) -> Study {
    let files = MemoryFiles::new().with("profile.cfg", profile);
    Study::parse(STUDY, "study.yaml", &files)
        .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)))
}

fn refusals(profile: &str) -> String {
    let study = study(profile);
    let refusal = |policy: &StudyPolicy| match supports(policy, &study) {
        Ok(()) => format!("{}: runs", policy.name),
        Err(why) => format!("{}: {why}", policy.name),
    };
    let lines: Vec<String> = study.policies.iter().map(refusal).collect();
    lines.join("\n")
}

#[test]
fn profiles_run_unless_the_library_or_the_program_has_no_room_for_them() {
    assert_snapshot!(refusals(PROFILE), @"
    profile: runs
    short: runs
    long: bursts of at most 1024 packets are possible
    none: only policies written as profile files (`dpdk: ..`) are for DPDK's scheduler
    ");
    let with_red = refusals(WITH_RED);
    assert!(
        with_red.starts_with("profile: a section [red], and Debian's librte_sched is built"),
        "{with_red}"
    );
}

#[test]
fn the_program_gets_the_threads_of_the_policy_and_the_rate_of_the_profile() {
    let study = study(PROFILE);
    let settings = |policy: usize| settings(&study, &study.policies[policy]).join(" ");
    assert_snapshot!(settings(0), @"--rate 1250000000 --frame-bytes 1522 --bursts 16,64,8,64 --ring 8192 --nic-ring 8192 --drain-us 2");
    assert_snapshot!(settings(1), @"--rate 1250000000 --frame-bytes 1522 --bursts 1,1,1,1 --ring 64 --nic-ring 8192 --drain-us 2");
}
