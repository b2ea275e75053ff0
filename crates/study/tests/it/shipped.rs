//! The study files that ship: their numbers are the ones of the study.

use slicewise_model::MeterAlgorithm;
use slicewise_study::{
    DutModel, PopulationPatternParams, QosSchedThreads, RunFilter, Study, StudyFile,
};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

fn shipped() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut studies: Vec<PathBuf> = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    studies.sort();
    studies
}

fn load(name: &str) -> Study {
    Study::load(&folder().join(name)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn every_shipped_study_is_correct() {
    let names: Vec<String> = shipped()
        .iter()
        .map(
            |path| match StudyFile::load(path).unwrap_or_else(|mistakes| panic!("{mistakes}")) {
                StudyFile::Study(study) => study.name,
                StudyFile::Series(series) => {
                    format!("{} ({} cases)", series.name, series.cases.len())
                }
            },
        )
        .collect();
    assert_eq!(
        names,
        [
            "dpdk-hqos-round-trips (12 cases)",
            "dpdk-hqos-variations (4 cases)",
            "dpdk-hqos (12 cases)",
            "dual-queue",
            "flows-under-load (5 cases)",
            "million-slices",
            "p4-tins-100m (2 cases)",
            "p4-tins-case-study (7 cases)",
            "p4-tins-next (2 cases)",
            "p4-tins-tunnels (4 cases)",
            "p4-tins (13 cases)",
            "router-delay-spikes (5 cases)",
            "router-extensions (4 cases)",
            "router-mechanisms-as-listed",
            "router-mechanisms-minimum",
            "router-mechanisms-two-priorities",
            "router-mechanisms-wred-bandwidth",
            "router-mechanisms",
            "router-minimums",
            "router-reallocation (3 cases)",
            "shape-peak",
            "shared-buffer",
            "slices-under-load (28 cases)",
            "tcp-and-slices",
            "tcp-in-both-slices",
            "tcp-linux-simulated (2 cases)",
            "tcp-linux",
            "two-hops",
            "upgrade",
            "virtual-queues-pause (9 cases)",
            "virtual-queues-tcp (3 cases)",
            "virtual-queues (24 cases)",
            "voice-and-bulk",
        ]
    );
}

#[test]
fn the_router_study_runs_eight_policies_seven_scenarios_as_often_as_its_verdicts_take() {
    let study = load("router-mechanisms.yaml");
    assert_eq!(
        (
            study.policies.len(),
            study.scenarios.len(),
            study.repetitions
        ),
        (8, 7, 34)
    );
    assert_eq!(study.runs(&RunFilter::default()).unwrap().len(), 8 * 7 * 34);
    assert_eq!(study.duration, Duration::from_secs(40));
    let reference: Vec<&str> = study
        .scenarios
        .iter()
        .filter(|s| s.reference)
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(reference, ["0"]);
}

#[test]
fn p4_tins_guarantees_in_every_phase_what_was_published() {
    let path = folder().join("p4-tins.yaml");
    let Ok(StudyFile::Series(series)) = StudyFile::load(&path) else {
        panic!("the study has cases");
    };
    let case = series.case("v4-tcp").unwrap();
    let policy = |phase: usize, name: &str| {
        let policies = &case.phases[phase].study.policies;
        &policies.iter().find(|p| p.name == name).unwrap().params
    };
    let gigabits = |rate: slicewise_model::Rate| rate.rate.bits_per_second() / 1_000_000_000;
    let metered = |phase: usize| -> Vec<(u64, u64)> {
        let meters = policy(phase, "p4-tins").classes.iter();
        let meters = meters.filter_map(|class| class.police.as_ref());
        let rates = meters.filter_map(|police| match police.algorithm {
            MeterAlgorithm::TwoRateThreeColour { cir, pir, .. } => {
                Some((gigabits(cir), gigabits(pir)))
            }
            _ => None,
        });
        rates.collect()
    };
    assert_eq!(metered(1), [(7, 8), (2, 10)]);
    assert_eq!(metered(2), [(6, 8), (3, 10)]);
    assert_eq!(metered(3), [(2, 10), (5, 7)]);
    let guaranteed = |phase: usize| -> Vec<u64> {
        let slices = policy(phase, "guaranteed").classes.iter();
        let slices = slices.filter_map(|class| class.slice.as_ref()?.guarantee);
        slices
            .map(|it| it.rate.bits_per_second() / 1_000_000_000)
            .collect()
    };
    assert_eq!([1, 2, 3].map(guaranteed), [[7, 2], [6, 3], [2, 5]]);
}

#[test]
fn the_study_of_a_million_slices_has_a_thousand_to_a_million() {
    let study = load("million-slices.yaml");
    let totals: Vec<u32> = study
        .scenarios
        .iter()
        .map(|scenario| scenario.populations.iter().sum())
        .collect();
    assert_eq!(totals, [1_000, 10_000, 100_000, 1_000_000]);
    assert!(
        study
            .scenarios
            .iter()
            .all(|s| s.populations[..2] == [100, 400]),
        "who is measured is the same in all of them"
    );
    let bursts = &study.populations[..2];
    for (population, rate, burst) in [(&bursts[0], 10_000_000, 2), (&bursts[1], 1_000_000, 2)] {
        let PopulationPatternParams::Bursts { frames, every } = population.pattern else {
            panic!("{population:?}");
        };
        // What occupies the wire, with preamble, FCS and gap, is within what was promised.
        let wire_bits = u64::from(frames) * u64::from(population.frame_bytes + 24) * 8;
        assert_eq!(frames, burst);
        assert!(
            wire_bits * 1_000_000_000 / every.nanos() <= rate,
            "{population:?}"
        );
    }
}

#[test]
fn frames_of_the_router_study_have_1494_bytes_and_come_every_0_7355_ms() {
    let study = load("router-mechanisms.yaml");
    for scenario in &study.scenarios {
        for source in &scenario.sources {
            assert_eq!(
                (source.largest.payload_bytes, source.largest.l2_bytes),
                (1448, 1494)
            );
        }
        let base = &scenario.sources[0];
        assert_eq!(base.rate, BitRate::new(15_750_000));
        let interval = base
            .rate
            .time_to_send(ByteCount::new(base.largest.counted_bytes.into()))
            .unwrap();
        assert_eq!(interval, Duration::from_nanos(735_493));
    }
}

#[test]
fn the_load_of_the_router_study_peaks_where_its_table_says() {
    let study = load("router-mechanisms.yaml");
    let peaks: Vec<u64> = study
        .scenarios
        .iter()
        .map(|s| {
            s.sources
                .iter()
                .map(|source| source.rate.bits_per_second())
                .sum::<u64>()
        })
        .map(|peak| peak * 100 / 35_000_000)
        .collect();
    assert_eq!(peaks, [95, 105, 110, 115, 120, 125, 130]);
}

#[test]
fn the_smallest_delay_of_the_router_study_is_the_published_one() {
    let study = load("router-mechanisms.yaml");
    let frame = ByteCount::new(1494 + 24);
    let serialization = study.link.rate.rate.time_to_send(frame).unwrap();
    let least = serialization.nanos() * 2 + study.dut.processing_delay.nanos();
    assert!(least.abs_diff(66_000) < 50, "{least} ns");
}

#[test]
fn the_licence_is_used_up_after_eight_seconds_of_scenario_6() {
    let study = load("router-mechanisms.yaml");
    let licence = study.dut.licence.unwrap();
    let scenario = study.scenarios.last().unwrap();
    let mean: u64 = scenario
        .sources
        .iter()
        .map(|source| {
            let l3 = u64::from(source.largest.l2_bytes) - u64::from(source.headers.l3_offset());
            let rate = source.rate.bits_per_second() * l3 / u64::from(source.largest.counted_bytes);
            if source.on_off.is_some() {
                rate / 2
            } else {
                rate
            }
        })
        .sum();
    let drained = licence.credit.bits() * 1_000 / (mean - licence.rate.rate.bits_per_second());
    assert!((7_500..9_000).contains(&drained), "{drained} ms");
}

#[test]
fn policing_has_the_default_burst_of_ios() {
    let study = load("router-mechanisms.yaml");
    let policing = study
        .policies
        .iter()
        .find(|policy| policy.name == "policing")
        .unwrap();
    let be = policing
        .params
        .classes
        .iter()
        .find(|class| class.name == "be")
        .unwrap();
    let MeterAlgorithm::SingleRateTwoColour { cir, cbs } = be.police.as_ref().unwrap().algorithm
    else {
        panic!("{:?}", be.police);
    };
    assert_eq!(
        (cir.rate.bits_per_second(), cbs.bytes()),
        (17_500_000, 17_500_000 / 32)
    );
}

#[test]
fn peak_shaping_doubles_its_rate() {
    let study = load("shape-peak.yaml");
    let rates: Vec<Option<u64>> = study
        .policies
        .iter()
        .map(|policy| {
            policy.params.classes[0]
                .shape
                .map(|s| s.rate.rate.bits_per_second())
        })
        .collect();
    assert_eq!(
        rates,
        [None, Some(17_500_000), Some(17_500_000), Some(35_000_000)]
    );
}

#[test]
fn published_verdicts_are_the_table_of_the_publication() {
    let description = load("router-mechanisms.yaml").description("test");
    let table: Vec<String> = description
        .policies
        .iter()
        .filter(|policy| policy.published_verdict.is_some())
        .map(|policy| {
            let verdict = policy.published_verdict.as_ref().unwrap();
            let word = |yes| if yes { "yes" } else { "no" };
            format!(
                "{}: {} {} | {} {} | {}",
                policy.name,
                word(verdict.isolation),
                verdict.remark,
                word(verdict.reallocation),
                verdict.scalability,
                policy
                    .scalability
                    .slices
                    .number()
                    .map_or("no limit".to_owned(), |n| n.to_string()),
            )
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"), @"
    no-policy: no  | yes no limit | no limit
    priority: yes  | yes 2 levels (256 classes) | 2
    shaping: yes  | no 256 | 256
    policing: yes  | no 256 | 256
    bandwidth: no latency | yes 256 | 256
    wred: yes  | no 256 | 256
    tail-drop: yes  | no 256 | 256
    ");
}

#[test]
fn a_study_is_described_from_its_file_alone() {
    let study = load("router-mechanisms.yaml");
    let description = study.description("1.2.3");
    assert_eq!(description.file_name, "router-mechanisms.yaml");
    assert_eq!(description.program_version, "1.2.3");
    assert_eq!(
        description.dut,
        "Cisco ISR 4221 (model), licence 35 Mbit/s of L3, ports 1 Gbit/s"
    );
    assert_eq!(description.digest, study.digest());
    assert_eq!(description.slices[0].share_bits_per_second, 17_500_000);
    assert!(
        description
            .scenarios
            .iter()
            .all(|scenario| scenario.cycle_ns == 2_000_000_000)
    );
    let text = serde_json::to_string(&description).unwrap();
    assert_eq!(
        serde_json::from_str::<slicewise_stats::description::StudyDescription>(&text).unwrap(),
        description
    );
}

#[test]
fn digests_tell_the_shipped_studies_apart() {
    let files = shipped().into_iter().map(|path| StudyFile::load(&path));
    let digests = files.map(|file| match file.unwrap() {
        StudyFile::Study(study) => study.digest().to_owned(),
        StudyFile::Series(series) => series.cases[0].digest().to_owned(),
    });
    let digests: Vec<String> = digests.collect();
    let distinct: BTreeSet<&String> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
    assert!(digests.iter().all(|digest| digest.len() == 64));
}

#[test]
fn the_study_of_virtual_queues_has_six_sets_with_and_without_flow_control() {
    let file = StudyFile::load(&folder().join("virtual-queues.yaml"));
    let StudyFile::Series(series) = file.unwrap() else {
        panic!("it has cases");
    };
    // Megabits a second: what h2 sends, and the limit of its queue.
    let sets = [
        (465, 100),
        (465, 206),
        (465, 255),
        (640, 100),
        (640, 206),
        (640, 255),
    ];
    for (case, study) in series.cases.iter().enumerate() {
        let (sent, limit) = sets[case % sets.len()];
        let burst = study.scenarios.last().unwrap();
        let h2 = burst.sources.iter().find(|source| source.name == "h2");
        assert_eq!(h2.unwrap().rate, BitRate::new(sent * 1_000_000));
        assert_eq!(study.slices[1].share, BitRate::new(limit * 1_000_000));
        assert_eq!(study.repetitions, 10);
        let DutModel::Switch(switch) = study.dut.model else {
            panic!("{:?}", study.dut);
        };
        let per_priority = switch.flow_control.map(|control| control.per_priority);
        let expected = [None, Some(false), Some(true), None][case / sets.len()];
        assert_eq!(per_priority, expected, "{:?}", study.case);
    }
    assert_eq!(series.cases.len(), 4 * sets.len());
}

#[test]
fn the_study_of_dpdk_has_the_profile_behind_threads_and_guarantees_on_a_port_without() {
    let file = StudyFile::load(&folder().join("dpdk-hqos.yaml"));
    let StudyFile::Series(series) = file.unwrap() else {
        panic!("it has cases");
    };
    // Mbit/s of the pipe on which each slice falls, by its inner VLAN, and packets of its queues.
    let pipe = |vlan: u16| [200, 1000, 100, 50][usize::from(vlan / 8)];
    for study in &series.cases {
        for policy in &study.policies {
            let device = policy.device.unwrap_or(study.dut);
            let Some(hqos) = policy.params.classes[0].hqos.as_deref() else {
                assert_eq!(device.model, DutModel::Port);
                continue;
            };
            let DutModel::QosSched(threads) = device.model else {
                panic!("{device:?}");
            };
            let queue = hqos.subports[0].queue_sizes[0];
            let layout = match (threads.threads, threads.drain.nanos() / 1_000_000) {
                (QosSchedThreads::Mixed, 15) => "",
                (QosSchedThreads::Mixed, 3) => "-3ms",
                (QosSchedThreads::Separate, _) => "-separate",
                other => panic!("{other:?}"),
            };
            let name = format!("q{queue}-b{}{layout}", threads.burst.dequeue);
            assert_eq!(policy.name, name);
            for source in study.scenarios.iter().flat_map(|s| &s.applications) {
                let vlan = source.headers.inner_vlan.unwrap();
                let mut ranges = hqos.subports[0].assigned.iter();
                let range = ranges.find(|range| (range.first..=range.last).contains(&vlan.into()));
                let profile = &hqos.pipe_profiles[range.unwrap().profile as usize];
                assert_eq!(profile.best_effort_rate, pipe(vlan) * 1_000_000 / 8);
            }
        }
    }
    let names = series
        .cases
        .iter()
        .filter_map(|study| study.case.as_deref());
    let published: Vec<&str> = names.filter(|name| name.len() == 2).collect();
    assert_eq!(published, ["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"]);
}

#[test]
fn percentages_of_the_starter_study_are_of_the_port_as_it_says() {
    let text = include_str!("../../../cli/src/init/starter.yaml");
    let study = crate::support::parse(text).unwrap();
    let overload = &study.scenarios[1];
    assert_eq!(overload.title, "data at 150 % of the port's rate");
    let data = overload.sources.iter().find(|source| source.name == "data");
    let port = study.dut.port_rate.rate.bits_per_second();
    assert_eq!(data.unwrap().rate.bits_per_second(), port * 3 / 2);
}
