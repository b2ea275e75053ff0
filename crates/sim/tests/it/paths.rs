//! Several devices in a row.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::observations::Observations;
use slicewise_stats::record::RunRecord;
use slicewise_stats::verdict::{self, Outcome};
use slicewise_study::{Backend, RunFilter, Study};
use std::path::Path;

const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/two-hops.yaml");

/// The study that ships, shorter.
fn study(changes: &[(&str, &str)]) -> Study {
    let shorter = [("duration: 5 s", "duration: 1 s")];
    let text = std::fs::read_to_string(STUDY).unwrap();
    changed(&text, &[&shorter, changes].concat())
}

/// Two repetitions of each scenario.
fn runs(study: &Study, policy: &str) -> Vec<RunRecord> {
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        repetitions: Some(2),
        ..RunFilter::default()
    };
    let runs = study.runs(&filter).unwrap();
    let simulator = Simulator::default();
    runs.iter()
        .map(|run| simulator.run(study, run).unwrap())
        .collect()
}

fn largest(runs: &[RunRecord]) -> u64 {
    let delays = runs.iter().map(|run| run.slices[0].whole.delay.max_ns);
    delays.max().unwrap()
}

#[test]
fn the_shipped_study_is_the_one_tested() {
    assert!(Study::load(Path::new(STUDY)).is_ok());
}

#[test]
fn no_packet_exceeds_what_two_guarantees_prove_together() {
    let study = study(&[]);
    let description = study.description("test");
    let policy = description.policies.iter().find(|p| p.name == "guaranteed");
    assert_eq!(policy.unwrap().unbounded, []);
    let bound = policy.unwrap().delay_bounds["voice"];
    let runs = runs(&study, "guaranteed");
    let largest = largest(&runs);
    assert!(largest <= bound.end_to_end_ns(), "{largest} of {bound:?}");
    // A frame of bulk traffic is in the way on both devices.
    assert!(
        largest > bound.outside_ns + 300_000,
        "{largest} of {bound:?}"
    );
    // What was asked of each device: frames of one host stay in order, so a burst is paid for once.
    assert_eq!(bound.scheduler_ns, 2 * 5_000_000);
    let mut observations = Observations::default();
    for run in &runs {
        assert_eq!(run.slices[0].scheduler, None, "it has several");
        observations.add(&description, run).unwrap();
    }
    let judged = verdict::judge(&description, &observations);
    let judged = judged.policies.iter().find(|p| p.policy == "guaranteed");
    let check = &judged.unwrap().isolation.bounds[0];
    assert_eq!((check.outcome, check.largest_ns), (Outcome::Holds, largest));
    let said = check.describe();
    assert!(said.contains("of it outside the scheduler"), "{said}");
}

#[test]
fn a_packet_later_than_the_bound_of_a_path_breaks_isolation() {
    let study = study(&[]);
    let mut description = study.description("test");
    let runs = runs(&study, "guaranteed");
    for policy in &mut description.policies {
        for bound in policy.delay_bounds.values_mut() {
            bound.scheduler_ns = largest(&runs) - bound.outside_ns - 1;
        }
    }
    let mut observations = Observations::default();
    for run in &runs {
        observations.add(&description, run).unwrap();
    }
    let judged = verdict::judge(&description, &observations);
    let judged = judged.policies.iter().find(|p| p.policy == "guaranteed");
    let check = &judged.unwrap().isolation.bounds[0];
    assert_eq!(check.outcome, Outcome::Broken);
}

#[test]
fn every_device_adds_its_own_delay_and_drops_by_its_own_policy() {
    let shared = runs(&study(&[]), "fifo");
    // 184 B on links of 1 Gbit/s, 100 and 50 Mbit/s; two devices; three propagations.
    let expected = 184 * (8 + 80 + 160) + 2 * 10_000 + 3 * 50_000;
    assert_eq!(shared[0].slices[0].whole.delay.min_ns, expected);

    // Percentages would refer to the access device, which alone is under the policy that is compared.
    let own = "core: {policy: {classes: [{name: voice, slice: voice, priority: {level: 1}}]}, model: port,";
    let first_queue = study(&[
        ("core: {model: port,", own),
        ("rate: 150 %", "rate: 75 Mbit/s"),
    ]);
    let drops = |run: &RunRecord| run.drops.iter().map(|d| d.frames).sum::<u64>();
    let own = runs(&first_queue, "fifo");
    // With priority at the core, which alone is overloaded here, voice is not lost any more.
    let voice_lost = |runs: &[RunRecord]| -> Vec<u64> {
        let core = runs.iter().filter(|run| run.key.scenario == "core");
        core.map(|run| run.slices[0].whole.lost_frames).collect()
    };
    let is_conserved = |run: &RunRecord| {
        let lost: u64 = run.slices.iter().map(|s| s.whole.lost_frames).sum();
        drops(run) == lost
    };
    assert!(own.iter().chain(&shared).all(is_conserved));
    assert!(voice_lost(&shared).iter().all(|lost| *lost > 0));
    assert_eq!(voice_lost(&own), [0, 0]);
}
