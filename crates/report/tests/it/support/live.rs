use super::fluid::record;
use slicewise_results::{Force, ResultsFolder, Unsupported};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::flow::{CaptureRecord, PointRecord};
use slicewise_stats::prediction::OfferedTraffic;
use slicewise_stats::record::{DelayFigures, RunRecord};
use slicewise_stats::testbed::{DepartureRecord, IdleBaseline, SenderRecord, TestbedRecord};
use std::path::Path;

/// Delay that everything has more on real packets than in the fluid model, ns.
const SOFTWARE_NS: u64 = 40_000;

/// The study as a live back end runs it: fewer repetitions, the first scenario and the last.
pub fn live_study(study: &StudyDescription, backend: &str, dut: &str) -> StudyDescription {
    let mut study = study.clone();
    study.backend = backend.to_owned();
    study.dut = dut.to_owned();
    study.repetitions = study.repetitions.min(2);
    let last = study.scenarios.len() - 1;
    let mut place = 0;
    study.scenarios.retain(|_| {
        place += 1;
        place == 1 || place == last + 1
    });
    study
}

/// A run on packets that are as real as the fluid model's.
fn live_record(
    study: &StudyDescription,
    whole: &StudyDescription,
    (policy, scenario, repetition): (usize, usize, u32),
    order: u64,
) -> RunRecord {
    let mut record = record(study, policy, scenario, repetition);
    let index = whole
        .scenarios
        .iter()
        .position(|s| s.name == record.key.scenario)
        .unwrap();
    // The fluid model knows scenarios by their place in the whole study.
    let of_whole = super::record(whole, policy, index, repetition + 10);
    record.slices = of_whole.slices;
    record.aggregate = of_whole.aggregate;
    record.transient = of_whole.transient;
    for slice in &mut record.slices {
        for figures in [&mut slice.steady, &mut slice.whole] {
            figures.delay = slower(figures.delay);
        }
    }
    record.capture = Some(CaptureRecord {
        points: vec![PointRecord {
            name: "sent".to_owned(),
            capture_drops: Some(0),
            ..PointRecord::default()
        }],
        matched_frames: 1,
        ..CaptureRecord::default()
    });
    record.testbed = Some(TestbedRecord {
        device: study.dut.clone(),
        began_ns: 1_795_325_910_000_000_000 + order * 60_000_000_000,

        rejected: match order {
            1 => vec!["steal of 4.2 % is more than 1 %".to_owned()],
            _ => Vec::new(),
        },
        tolerated: match order {
            2 => vec!["1.10 % of departures were later than 100 µs, more than 1.00 %".to_owned()],
            _ => Vec::new(),
        },
        baseline: IdleBaseline {
            sent_frames: 100,
            samples: 100,
            p50_ns: 31_000 + order,
            p99_ns: 74_000,
            max_ns: 310_000,
        },
        steal_ratio: 0.001,
        idle_ratio: 0.6,
        longest_pause_ns: 2_100_000,
        clocks: None,
        least_offered_ratio: 0.9999,
        senders: vec![SenderRecord {
            source: "critical".to_owned(),
            sent_frames: 10_000,
            refused_frames: 0,
            lateness_p50_ns: 4_000,
            lateness_p99_ns: 61_000,
            lateness_max_ns: 412_000,
        }],
        departures: (study.backend == "gateway").then_some(DepartureRecord {
            frames: 20_000,
            late_frames: 41,
            late_ns: 100_000,
            lost_link_time_ns: 0,
        }),
        versions: vec![
            ("Linux".to_owned(), "6.1.0".to_owned()),
            ("iperf3".to_owned(), "3.12".to_owned()),
        ],
    });
    record
}

fn slower(delay: DelayFigures) -> DelayFigures {
    DelayFigures {
        mean_ns: delay.mean_ns + SOFTWARE_NS as f64,
        min_ns: delay.min_ns + SOFTWARE_NS,
        p50_ns: delay.p50_ns + SOFTWARE_NS,
        p90_ns: delay.p90_ns + 2 * SOFTWARE_NS,
        p95_ns: delay.p95_ns + 3 * SOFTWARE_NS,
        p99_ns: delay.p99_ns + 5 * SOFTWARE_NS,
        p999_ns: delay.p999_ns + 8 * SOFTWARE_NS,
        p9999_ns: delay.p9999_ns + 9 * SOFTWARE_NS,
        p99999_ns: delay.p99999_ns + 9 * SOFTWARE_NS,
        max_ns: delay.max_ns + 10 * SOFTWARE_NS,
        ..delay
    }
}

/// Write a folder of live runs of all policies but those that are not supported, and a prediction of
/// them; `study` is the live one, `whole` that of the simulator.
pub fn fill_live(
    path: &Path,
    study: &StudyDescription,
    whole: &StudyDescription,
    unsupported: &[(&str, &str)],
) -> ResultsFolder {
    let folder = ResultsFolder::create(path, study, Force::Refuse).unwrap();
    let predicted = StudyDescription {
        backend: "simulator".to_owned(),
        ..study.clone()
    };
    let [prediction, replay] = OfferedTraffic::ALL.map(|traffic| {
        let path = folder.prediction_path(traffic);
        ResultsFolder::create(path, &predicted, Force::Refuse).unwrap()
    });
    let mut order = 0;
    for (policy, description) in study.policies.iter().enumerate() {
        if unsupported
            .iter()
            .any(|(name, _)| *name == description.name)
        {
            continue;
        }
        for (scenario, description) in study.scenarios.iter().enumerate() {
            let mut scenarios = whole.scenarios.iter();
            let index = scenarios.position(|s| s.name == description.name).unwrap();
            for repetition in 0..study.repetitions {
                let place = (policy, scenario, repetition);
                let mut live = live_record(study, whole, place, order);
                folder.write_run(&live).unwrap();
                // What was sent explains all of it.
                live.testbed = None;
                live.key
                    .inputs
                    .clone_from(&predicted.inputs[policy][scenario]);
                replay.write_run(&live).unwrap();
                let mut simulated = record(whole, policy, index, repetition);
                simulated
                    .key
                    .inputs
                    .clone_from(&predicted.inputs[policy][scenario]);
                prediction.write_run(&simulated).unwrap();
                order += 1;
            }
        }
    }
    let list: Vec<Unsupported> = unsupported
        .iter()
        .map(|&(policy, reason)| Unsupported {
            policy: policy.to_owned(),
            reason: reason.to_owned(),
        })
        .collect();
    folder.write_unsupported(&list).unwrap();
    folder
}

/// Simulator, gateway and kernel beside each other under `root`; the kernel has no "shaping".
pub fn three_back_ends(root: &Path, size: super::Size) -> [ResultsFolder; 3] {
    let whole = super::study(size);
    let simulator = super::fill(&root.join("synthetic"), &whole);
    let gateway = live_study(
        &whole,
        "gateway",
        "slicewise gateway, af_xdp_native, 35 Mbit/s",
    );
    let gateway = fill_live(&root.join("synthetic-gateway"), &gateway, &whole, &[]);
    let kernel = live_study(&whole, "tc", "Linux 6.1.0, HTB, 35 Mbit/s");
    let unsupported = [("shaping", "this kernel has no HTB queueing discipline")];
    let kernel = fill_live(&root.join("synthetic-tc"), &kernel, &whole, &unsupported);
    [simulator, gateway, kernel]
}
