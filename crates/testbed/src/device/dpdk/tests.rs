use super::*;
use insta::assert_snapshot;
use slicewise_study::MemoryFiles;

const PROFILE: &str = include_str!("../../../../formats/tests/golden/dpdk/equal-pipes.cfg");
const WITH_RED: &str = include_str!("../../../../formats/tests/golden/dpdk/early-detection.cfg");
const OVERSUBSCRIBED: &str =
    include_str!("../../../../formats/tests/golden/dpdk/oversubscribed.cfg");
const TWO_SUBPORTS: &str = include_str!("../../../../formats/tests/golden/dpdk/two-subports.cfg");
const START_PROFILE: &str = include_str!("qos_sched/start_profile.c");
const STEPS: &str = include_str!("qos_sched/steps.c");
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
  short: {dpdk: profile.cfg, dut: {threads: mixed, burst: 1, ring: {software: 64}}}
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
    refusals_of(&study(profile))
}

fn refusals_of(study: &Study) -> String {
    let refusal = |policy: &StudyPolicy| match supports(policy, study) {
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
fn bytes_that_a_link_adds_are_for_the_profile() {
    let refused = |counts: &str| {
        let text = STUDY.replace("qos_sched,", &format!("qos_sched, port_counts: {counts},"));
        let refused = refusals_of(&parsed(&text, PROFILE));
        refused.lines().next().unwrap().to_owned()
    };
    assert_eq!(refused("L2"), "profile: runs");
    assert_snapshot!(refused("L1 + 8 B"), @"profile: the link counts L1 + 8 B, but DPDK's scheduler adds bytes to frames (L2) only by its profile: leave them out of `port_counts`, and state them as `frame overhead` in the profile");
    assert_snapshot!(refused("L3 in ATM cells"), @"profile: the link counts L3 in ATM cells, but DPDK's scheduler adds bytes to frames (L2) only by its profile: leave them out of `port_counts`, and state them as `frame overhead` in the profile");
}

#[test]
fn the_program_gets_the_threads_of_the_policy_and_the_rate_of_the_profile() {
    let study = study(PROFILE);
    let settings = |policy: usize| settings(&study, &study.policies[policy]).join(" ");
    assert_snapshot!(settings(0), @"--rate 1250000000 --mtu 1522 --frame-bytes 1522 --bursts 16,64,8,64 --ring 8192 --nic-ring 8192 --drain-us 2");
    assert_snapshot!(settings(1), @"--rate 1250000000 --mtu 1522 --frame-bytes 1522 --bursts 1,1,1,1 --ring 64 --nic-ring 8192 --drain-us 2 --mixed");
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

/// Returns true if the library and what compiles against it are there. If not, the test is skipped, or fails where they
/// are required.
fn has_library() -> bool {
    let Err(why) = DpdkProgram::find() else {
        return true;
    };
    let required = std::env::var("SLICEWISE_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word == "dpdk");
    assert!(!is_required, "SLICEWISE_REQUIRE={required}, but {why}");
    eprintln!("skipped: {why}");
    false
}

/// Returns the output, for `arguments`, of a program in C that has `main` and is linked to the steps of the device.
fn said(folder: &Path, main: &str, arguments: &[String]) -> String {
    let program = folder.join("program");
    program::compile_test(folder, main, &program).unwrap();
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file with the profile as the program gets it.
fn written(folder: &Path, name: &str, profile: &str) -> String {
    let file = folder.join(name);
    let study = study(profile);
    fs::write(&file, profile_text(&study.policies[0]).unwrap()).unwrap();
    file.display().to_string()
}

#[test]
fn the_library_takes_every_profile_as_it_is_written_for_it() {
    if !has_library() {
        return;
    }
    let left_out = with_defaults();
    let texts = [PROFILE, WITH_RED, OVERSUBSCRIBED, TWO_SUBPORTS, &left_out];
    let folder = tempfile::tempdir().unwrap();
    let names = texts.iter().enumerate();
    let files = names.map(|(n, text)| written(folder.path(), &format!("{n}.cfg"), text));
    let answers = said(folder.path(), START_PROFILE, &files.collect::<Vec<_>>());
    assert_eq!(answers, "starts\n".repeat(texts.len()));
}

#[test]
fn frames_wait_where_their_headers_say_are_counted_where_they_are_dropped_and_held_while_nothing_is_sent()
 {
    if !has_library() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tagged = |vlan: u16, inner: u16, first: u8, last: u8| {
        let before = "45000014".to_owned() + &"00".repeat(12);
        format!("8100{vlan:04x}8100{inner:04x}0800{before}{first:02x}0000{last:02x}")
    };
    let frames = [
        tagged(0, 5, 4, 3),
        tagged(0, 4097, 2, 14),
        tagged(1, 4, 3, 16),
        "0800".to_owned(),
        "86dd".to_owned() + &"ff".repeat(40),
    ];
    let says = |profile: &str| {
        let profile = written(folder.path(), "profile.cfg", profile);
        let arguments: Vec<String> = [profile].into_iter().chain(frames.clone()).collect();
        said(folder.path(), STEPS, &arguments)
    };
    let plain = says(PROFILE);
    let (steps, counters) = plain.trim_end().rsplit_once('\n').unwrap();
    assert_snapshot!(steps, @"
    subport 0 pipe 5 tc 3 queue 0 colour 0
    subport 0 pipe 1 tc 12 queue 2 colour 2
    subport 0 pipe 4 tc 0 queue 0 colour 2
    subport 0 pipe 0 tc 0 queue 0 colour 0
    subport 0 pipe 0 tc 0 queue 0 colour 0
    worked: 1 1 1 1 0 and with room: 1
    mixed: 1 0 1 2 1 2 0 2, after the drain: 0 3
    ");
    // 100 frames, and a queue of 64.
    let of_queue = |reason: &str, frames| {
        (
            "subport 0 pipe 5 tc 3".to_owned(),
            reason.to_owned(),
            frames,
        )
    };
    assert_eq!(drops(counters), [of_queue("queue_full", 36)]);
    let curve = |class: u32| {
        let keys = [
            "min = 4 4 4",
            "max = 8 8 8",
            "inv prob = 1 1 1",
            "weight = 1 1 1",
        ];
        keys.map(|key| format!("tc {class} wred {key}\n")).concat()
    };
    let curves: String = (0..13).map(curve).collect();
    let early = says(&format!("{PROFILE}[red]\n{curves}"));
    let [(queue, reason, frames)] = drops(early.lines().last().unwrap()).try_into().unwrap();
    assert_eq!(of_queue("red", frames), (queue, reason, frames));
    // Between four and eight packets on average, and none beyond that.
    assert!((85..=96).contains(&frames), "{frames}");
}

/// Class, reason and frames.
fn drops(counters: &str) -> Vec<(String, String, u64)> {
    let Some(Event::Counters(counters)) = Event::parse(counters) else {
        panic!("{counters}");
    };
    let drops = counters.facts(String::new()).drops.into_iter();
    drops
        .map(|drop| (drop.class, drop.reason, drop.frames))
        .collect()
}

#[test]
fn the_program_ends_so_that_only_what_may_help_is_tried_again() {
    if !has_library() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = DpdkProgram::default().put_into(folder.path()).unwrap();
    let profile = written(folder.path(), "profile.cfg", PROFILE);
    let ends = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        (output.status.code(), said)
    };
    let (code, said) = ends(&["--bursts", "0,1,1,1"]);
    assert_eq!(code, Some(USELESS_TO_REPEAT));
    assert_snapshot!(said, @"qos-sched: --bursts 0,1,1,1: four numbers from 1 to 1024, as 64,64,32,64");
    let (code, said) = ends(&["--in", "no-such-in", "--out", "lo", "--profile", "no-file"]);
    assert_eq!(code, Some(USELESS_TO_REPEAT));
    assert_snapshot!(said, @"qos-sched: no-file cannot be read as a profile");
    // Whoever may have packet sockets gets further.
    let (code, said) = ends(&["--in", "no-such-in", "--out", "lo", "--profile", &profile]);
    if said.contains("not permitted") {
        assert_eq!(code, Some(USELESS_TO_REPEAT));
        assert!(said.contains("run as root"), "{said}");
    } else {
        assert_eq!(code, Some(1));
        assert_snapshot!(said, @"qos-sched: there is no interface no-such-in: leave the namespaces of a testbed alone, and start the study again");
    }
}
