//! Lengths of queues, as looks at them find them, and the flows of elephants.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_stats::queues::QueueRecord;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study, StudyFile};
use std::path::Path;

/// Frames of 1,250 B on the link (L1), one a millisecond at the port; 80 % of them arrive at random.
const STUDY: &str = "
name: random
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  all: {match: {vlan: 1}, share: 50 %, headers: {vlan: 1}}
policies:
  shared: {classes: [{name: class-default, queue_limit: 10000 packets}]}
scenarios:
  load:
    sources: {a: {slice: all, pattern: poisson, rate: 8 Mbit/s, counts: L1, payload: 1180 B}}
repetitions: 20
duration: 40 s
measure: {queue_lengths: 5 ms}
";

fn runs(study: &Study) -> impl Iterator<Item = RunRecord> {
    let runs = study.runs(&RunFilter::default()).unwrap();
    let simulator = Simulator::default();
    runs.into_iter()
        .map(move |run| simulator.run(study, &run).unwrap())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

/// Pollaczek (1930), Khinchine (1932): of M/D/1, load² / (2 × (1 − load)) wait.
#[test]
fn the_mean_length_of_a_queue_is_that_of_pollaczek_and_khinchine() {
    let lengths: Vec<f64> = runs(&changed(STUDY, &[]))
        .map(|run| {
            let [queue] = &run.queues[..] else {
                panic!("{:?}", run.queues);
            };
            assert_eq!((queue.device, queue.queue.as_str()), (1, "class-default"));
            assert_eq!(queue.looks, 8_000);
            assert!(f64::from(queue.largest_frames) > 5.0 * queue.mean_frames);
            queue.mean_frames
        })
        .collect();
    let (mean, theory) = (mean(&lengths), 0.8 * 0.8 / (2.0 * (1.0 - 0.8)));
    let variance = lengths.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 19.0;
    // Student's t with 19 degrees of freedom: 2.86 for 99 %.
    let half_width = 2.86 * (variance / 20.0).sqrt();
    assert!(
        (mean - theory).abs() < half_width && half_width < 0.2 * theory,
        "{mean} ± {half_width}, {theory}"
    );
}

/// Two sources send a frame of 1 ms every 4 ms, and the one that comes second waits for the rest of the first, for the same time in
/// each period. Looks at multiples of 12 ms would all find the same.
#[test]
fn looks_are_not_locked_to_a_load_with_a_period() {
    let poisson =
        "{a: {slice: all, pattern: poisson, rate: 8 Mbit/s, counts: L1, payload: 1180 B}}";
    let source = "{slice: all, pattern: cbr, rate: 2.5 Mbit/s, counts: L1, payload: 1180 B}";
    let periodic = format!("{{a: {source}, b: {source}}}");
    let length = |interval: &str, seed: &str| {
        let interval = format!("queue_lengths: {interval}");
        let changes = [
            (poisson, periodic.as_str()),
            ("repetitions: 20", seed),
            ("queue_lengths: 5 ms", &interval),
        ];
        let run = runs(&changed(STUDY, &changes)).next().unwrap();
        run.queues[0].mean_frames
    };
    let mut longest = 0.0_f64;
    for seed in 1..20 {
        let seed = format!("repetitions: 1\nseed: {seed}");
        let (seldom, often) = (length("12 ms", &seed), length("100 us", &seed));
        assert!((seldom - often).abs() < 0.01, "{seldom}, {often}");
        longest = longest.max(often);
    }
    assert!((0.1..=0.25).contains(&longest), "{longest}");
}

#[test]
fn looking_changes_nothing_else() {
    let once = ("repetitions: 20", "repetitions: 1");
    let with = runs(&changed(STUDY, &[once])).next().unwrap();
    let without = changed(STUDY, &[once, ("measure: {queue_lengths: 5 ms}\n", "")]);
    let without = runs(&without).next().unwrap();
    let same = RunRecord {
        queues: Vec::new(),
        key: without.key.clone(),
        ..with
    };
    assert_eq!(same, without);
}

/// The short study of P4-TINS: queues of several classes, which appear in its second phase, and elephants.
fn p4_tins(policy: &str) -> RunRecord {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/p4-tins-100m.yaml"
    );
    let Ok(StudyFile::Series(series)) = StudyFile::load(Path::new(path)) else {
        panic!("{path}");
    };
    let mut study = series.case("tcp").unwrap().clone();
    study.measure.queue_lengths = Some(slicewise_units::Duration::from_millis(1));
    let filter = RunFilter {
        policies: vec![policy.to_owned()],
        repetitions: Some(1),
        ..RunFilter::default()
    };
    let runs = study.runs(&filter).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

#[test]
fn each_phase_has_the_lengths_of_its_queues() {
    let run = p4_tins("baseline");
    let names = |queues: &[QueueRecord]| -> Vec<String> {
        queues.iter().map(|queue| queue.queue.clone()).collect()
    };
    assert_eq!(names(&run.phases[0].queues), ["low"]);
    assert_eq!(names(&run.phases[1].queues), ["high", "low"]);
    assert_eq!(run.phases[1].queues[0].looks, 4_000, "without settling");
    assert_eq!(names(&run.queues), ["high", "low"]);
    let [high, low] = &run.phases[2].queues[..] else {
        panic!("{:?}", run.phases[2].queues);
    };
    assert!(
        10.0 * high.mean_frames < low.mean_frames,
        "{high:?} {low:?}"
    );
}

#[test]
fn elephants_are_counted_over_all_phases() {
    let run = p4_tins("p4-tins");
    let tagged = |name: &str| {
        let mut classes = run.elephants.iter();
        let class = classes.find(|class| class.class == name).unwrap();
        (class.tagged, class.moved)
    };
    // The class of the slice moves elephants in the first phase alone.
    assert_eq!(tagged("sliced"), (1, 1));
    assert_eq!(tagged("class-default"), (1, 1));
    assert!(p4_tins("baseline").elephants.is_empty());
}
