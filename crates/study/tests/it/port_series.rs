//! Ports whose rate changes during a run: what is read, and what is refused.

use crate::support::{ROUTER, STUDY};
use slicewise_study::{MemoryFiles, Pacing, Study, TestbedError};
use slicewise_units::{Accounting, BitRate};

const STEPS: &str = "[{at: 0 s, rate: 20 Mbit/s}, {at: 2 s, rate: 5 Mbit/s}]";
const TRACE: &str = "{trace: traces/up.trace}";

/// The small study with absolute rates in its policies and this rate of the port.
fn with(rate: &str) -> String {
    let rate = format!("port_rate: {rate}");
    let text = STUDY.replacen("port_rate: 10 Mbit/s", &rate, 1);
    text.replacen("minimum: 60 %", "minimum: 3 Mbit/s", 1)
}

fn read_with(text: &str, trace: &str) -> Result<Study, String> {
    let files = MemoryFiles::new()
        .with("router.cfg", ROUTER)
        .with("traces/up.trace", trace);
    Study::parse(text, "study.yaml", &files).map_err(|mistakes| mistakes.to_string())
}

fn read(text: &str) -> Result<Study, String> {
    read_with(text, "1\n1\n2\n4\n")
}

#[test]
fn percentages_are_of_the_mean_over_the_run() {
    let study = read(&with(STEPS)).unwrap();
    let mean = BitRate::new(11_000_000);
    assert_eq!(study.dut.port_rate.rate, mean);
    assert_eq!(study.dut.port_rate.accounting, Accounting::L1);
    assert_eq!(study.slices[0].share, BitRate::new(6_600_000));
    let steps = study.port_series.as_ref().unwrap().steps();
    assert_eq!(steps.len(), 2);
    let shown = study.description("test").dut;
    assert_eq!(
        shown,
        "egress port of 5 Mbit/s to 20 Mbit/s, on average 11 Mbit/s (model)"
    );
}

#[test]
fn a_trace_counts_ip_packets_unless_the_study_says_otherwise() {
    let study = read(&with(TRACE)).unwrap();
    // Four packets of 1500 B each 4 ms.
    assert_eq!(study.dut.port_rate.rate, BitRate::new(12_000_000));
    assert_eq!(study.dut.port_rate.accounting, Accounting::L3);
    let counted = with(&format!("{TRACE}\n  port_counts: L1"));
    let study = read(&counted).unwrap();
    assert_eq!(study.dut.port_rate.accounting, Accounting::L1);
}

#[test]
fn runs_depend_on_each_rate_and_on_the_contents_of_a_trace() {
    let inputs = |study: &Study| study.inputs(0, 0, 1).unwrap();
    let one = inputs(&read(&with(STEPS)).unwrap());
    // The mean is the same.
    let other = "[{at: 0 s, rate: 5 Mbit/s}, {at: 3 s, rate: 20 Mbit/s}]";
    let other = read(&with(other)).unwrap();
    assert_eq!(other.dut.port_rate.rate, BitRate::new(11_000_000));
    assert_ne!(one, inputs(&other));
    let [first, second] =
        ["1\n1\n2\n4\n", "1\n1\n3\n4\n"].map(|trace| read_with(&with(TRACE), trace));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.dut, second.dut);
    assert_ne!(inputs(&first), inputs(&second));
    assert_ne!(first.digest(), second.digest());
}

#[test]
fn rates_that_cannot_be_used_are_refused_where_they_stand() {
    let cases = [
        ("[]", "there is no rate"),
        ("[{at: 1 s, rate: 5 Mbit/s}]", "the first step is at 1 s"),
        (
            "[{at: 0 s, rate: 5 Mbit/s}, {at: 0 s, rate: 6 Mbit/s}]",
            "write steps in order of time",
        ),
        (
            "[{at: 0 s, rate: 5 Mbit/s}, {at: 1 s, rate: 0 bit/s}]",
            "end with a rate above zero",
        ),
        ("[{at: 0 s}]", "`rate` is missing"),
        ("{trace: none.trace}", "cannot read `none.trace`"),
        ("0 bit/s", "a rate of zero"),
    ];
    for (rate, message) in cases {
        let told = read(&with(rate)).unwrap_err();
        assert!(told.contains(message), "{rate}: {told}");
    }
    let told = read_with(&with(TRACE), "1\nsoon\n").unwrap_err();
    assert!(
        told.contains("`traces/up.trace`: line 2 is `soon`"),
        "{told}"
    );
}

/// The rate is 0 for all of the run.
#[test]
fn a_port_by_which_nothing_passes_during_the_run_is_refused() {
    let late = "[{at: 0 s, rate: 0 bit/s}, {at: 60 s, rate: 5 Mbit/s}]";
    let told = read(&with(late)).unwrap_err();
    assert!(
        told.contains("nothing passes the port during the run"),
        "{told}"
    );
}

#[test]
fn what_follows_from_a_constant_rate_is_refused() {
    let steps = with(STEPS);
    let changed = |from: &str, to: &str| {
        assert!(steps.contains(from), "{from}");
        read(&steps.replacen(from, to, 1)).unwrap_err()
    };
    let shaped = changed("minimum: 3 Mbit/s", "shape: 30 %");
    assert!(shaped.contains("`gold` has a rate in percent"), "{shaped}");
    let guaranteed = changed(
        "    classes:\n      - {name: gold, slice: gold, minimum: 3 Mbit/s}",
        "    discipline: guaranteed\n    classes:\n      - {name: gold, slice: gold, guarantee: 3 Mbit/s}",
    );
    assert!(
        guaranteed.contains("its guarantees are admitted"),
        "{guaranteed}"
    );
    let model = changed("model: port", "model: gateway");
    assert!(
        model.contains("only the port of the model `port`"),
        "{model}"
    );
    let timeline = changed(
        "repetitions: 2",
        "timeline: {settle: 100 ms, changes: {later: {at: 2 s, sources: {steady: {rate: 40 %}}}}}\nrepetitions: 2",
    );
    assert!(
        timeline.contains("`timeline` and a `dut.port_rate` that changes"),
        "{timeline}"
    );
    let loops = changed(
        "      - {name: rest, match: {vlan: 20}, queue_limit: 64 packets}",
        "      - {name: rest, match: {vlan: 20}, queue_limit: 64 packets}\n    dut: {port_rate: 20 Mbit/s}",
    );
    assert!(loops.contains("it has a device of its own"), "{loops}");
}

#[test]
fn a_device_of_a_path_has_one_rate() {
    let path = format!(
        "path: [one, two]\ndevices:\n  one: {{model: port, port_rate: {STEPS}}}\n  two: {{model: port, port_rate: 10 Mbit/s}}\n"
    );
    let text = STUDY.replacen("dut:\n  model: port\n  port_rate: 10 Mbit/s\n", &path, 1);
    let told = read(&text).unwrap_err();
    assert!(
        told.contains("a device of a `path` cannot change"),
        "{told}"
    );
}

#[test]
fn a_testbed_does_not_carry_it_out() {
    for pacing in [Pacing::Departures, Pacing::TokenBucket, Pacing::Bursts] {
        let study = read(&with(STEPS)).unwrap();
        let error = study.into_testbed(pacing).unwrap_err();
        assert_eq!(error, TestbedError::VaryingRate);
        assert!(error.to_string().contains("simulate the study"), "{error}");
    }
}
