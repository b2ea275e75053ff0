use super::*;
use insta::assert_snapshot;
use slicewise_study::MemoryFiles;

const PROFILE: &str = include_str!("../../../../formats/tests/golden/dpdk/equal-pipes.cfg");
const WITH_RED: &str = include_str!("../../../../formats/tests/golden/dpdk/early-detection.cfg");
const OVERSUBSCRIBED: &str =
    include_str!("../../../../formats/tests/golden/dpdk/oversubscribed.cfg");
const TWO_SUBPORTS: &str = include_str!("../../../../formats/tests/golden/dpdk/two-subports.cfg");
const START_PROFILE: &str = include_str!("qos_sched/start_profile.c");
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
    parsed(STUDY, profile)
}

fn parsed(study: &str, profile: &str) -> Study {
    let files = MemoryFiles::new().with("profile.cfg", profile);
    Study::parse(study, "study.yaml", &files)
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
    assert!(refusals(WITH_RED).starts_with("profile: runs\n"));
}

#[test]
fn the_program_gets_the_threads_of_the_policy_and_the_rate_of_the_profile() {
    let study = study(PROFILE);
    let settings = |policy: usize| settings(&study, &study.policies[policy]).join(" ");
    assert_snapshot!(settings(0), @"--rate 1250000000 --mtu 1522 --frame-bytes 1522 --bursts 16,64,8,64 --ring 8192 --nic-ring 8192 --drain-us 2");
    assert_snapshot!(settings(1), @"--rate 1250000000 --mtu 1522 --frame-bytes 1522 --bursts 1,1,1,1 --ring 64 --nic-ring 8192 --drain-us 2");
}

#[test]
fn the_scheduler_counts_with_the_same_largest_frame_as_the_model_whatever_the_interfaces_carry() {
    let jumbo = STUDY.replace("rate: 10 Gbit/s}", "rate: 10 Gbit/s, mtu: 9000 B}");
    let study = parsed(&jumbo, PROFILE);
    let settings = settings(&study, &study.policies[0]).join(" ");
    assert!(
        settings.contains("--mtu 1522 --frame-bytes 9022"),
        "{settings}"
    );
}

#[test]
fn only_what_the_program_calls_permanent_is_not_tried_again() {
    let ended = || AttemptError::Retryable("ended".to_owned());
    assert!(matches!(
        permanent(ended(), Some(2)),
        AttemptError::Failed(_)
    ));
    for other in [Some(1), None] {
        assert!(matches!(
            permanent(ended(), other),
            AttemptError::Retryable(_)
        ));
    }
    let stopped = permanent(AttemptError::Interrupted, Some(2));
    assert!(matches!(stopped, AttemptError::Interrupted));
}

/// Weights and queue sizes that the format lets a file leave out.
fn with_defaults() -> String {
    let left_out = ["tc 12 over", "tc 12 wrr", "queue sizes", "number of"];
    let lines = PROFILE.lines();
    let lines = lines.filter(|line| !left_out.iter().any(|key| line.starts_with(key)));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_library_takes_every_profile_as_it_is_written_for_it() {
    if let Err(why) = DpdkProgram::find() {
        return eprintln!("skipped: {why}");
    }
    let left_out = with_defaults();
    let texts = [PROFILE, WITH_RED, OVERSUBSCRIBED, TWO_SUBPORTS, &left_out];
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("start-profile");
    program::compile_test(folder.path(), START_PROFILE, &program).unwrap();
    let mut command = Command::new(program);
    for (number, text) in texts.into_iter().enumerate() {
        let file = folder.path().join(format!("{number}.cfg"));
        let study = study(text);
        let written = dpdk::write(&study.policies[0].spec).unwrap();
        fs::write(&file, written.to_string()).unwrap();
        command.arg(file);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers, "starts\n".repeat(texts.len()));
}
