//! Records of devices with known behaviour, for tests of verdicts and summaries.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "figures are made up in floats, and small"
)]

pub mod applications;
pub mod devices;

use slicewise_stats::description::{
    Capacity, ComparedDelay, Margins, PolicyDescription, PublishedVerdict, Scalability,
    ScenarioDescription, SliceDescription, SliceLimit, StudyDescription,
};
use slicewise_stats::record::{
    CdfPoint, DelayFigures, Figures, IatFigures, RunKey, RunRecord, SCHEMA_VERSION, Series,
    SliceRecord, Transient,
};
use slicewise_stats::testbed::{IdleBaseline, TestbedRecord};

pub const CRITICAL: usize = 0;
pub const BEST_EFFORT: usize = 1;
pub const LINK: f64 = 35e6;

use std::collections::BTreeMap;

/// The one-way delay is compared, and a few repetitions are enough to decide: what the number of repetitions and queueing delay change has
/// tests of its own.
pub const MARGINS: Margins = Margins {
    confidence: 0.95,
    throughput_relative: 0.01,
    loss_absolute: 0.001,
    delay_relative: 0.25,
    delay_of: ComparedDelay::OneWay,
    delay_resolution_ns: 0,
    rare_runs: 0.9,
    reallocation_holds: 0.95,
    reallocation_broken: 0.05,
};

const DURATION_NS: u64 = 40_000_000_000;
const BIN_NS: u64 = 50_000_000;
const BINS: u64 = DURATION_NS / BIN_NS;
const FRAME_BYTES: f64 = 1490.0;

/// A study like the router study: two slices, a 35 Mbit/s link, `scenarios` named s0 (the
/// reference), s1, …
pub fn study(policies: &[(&str, Option<PublishedVerdict>)], scenarios: u32) -> StudyDescription {
    let slice = |name: &str, guaranteed| SliceDescription {
        name: name.to_owned(),
        share_bits_per_second: 17_500_000,
        guaranteed,
        objective: None,
    };
    StudyDescription {
        name: "synthetic".into(),
        digest: "digest".into(),
        file_name: "synthetic.yaml".into(),
        seed: 1,
        program_version: "0.0.0".into(),
        backend: "simulator".to_owned(),
        repetitions: 10,
        duration_ns: DURATION_NS,
        capacity: Capacity {
            varies: false,
            bits_per_second: 35_000_000,
            frame_overhead_bytes: 0,
            in_atm_cells: false,
        },
        slices: vec![slice("critical", true), slice("best effort", false)],
        policies: policies
            .iter()
            .map(|(name, published)| PolicyDescription {
                name: (*name).to_owned(),
                title: String::new(),
                configuration: String::new(),
                scalability: Scalability {
                    slices: SliceLimit::Slices(256),
                    limited_by: "classes of a policy map".into(),
                    source: "data sheet".into(),
                },
                delay_bounds: BTreeMap::new(),
                round_ns: 0,
                unbounded: Vec::new(),
                not_judged: None,
                rests_on: Vec::new(),
                published_verdict: published.clone(),
                phase: None,
            })
            .collect(),
        scenarios: (0..scenarios)
            .map(|index| ScenarioDescription {
                x: String::new(),
                name: format!("s{index}"),
                title: String::new(),
                reference: index == 0,
                cycle_ns: 2_000_000_000,
            })
            .collect(),
        margins: MARGINS,
        ..StudyDescription::default()
    }
}

pub fn published(isolation: bool, reallocation: bool, scalability: &str) -> PublishedVerdict {
    PublishedVerdict {
        isolation,
        reallocation,
        scalability: scalability.into(),
        remark: String::new(),
    }
}

/// Load and service of a slice, before variation between repetitions.
#[derive(Clone, Copy)]
pub struct Service {
    /// bit/s while on, and while off: 1 s each.
    pub offered: (f64, f64),
    /// bit/s while on, and while off.
    pub received: (f64, f64),
    pub loss_ratio: f64,
    pub delay_mean_ns: f64,
    pub delay_p99_ns: f64,
}

impl Service {
    /// All of `rate` received, with 0.2 ms of delay.
    pub fn untroubled(rate: f64) -> Self {
        Self {
            offered: (rate, rate),
            received: (rate, rate),
            loss_ratio: 0.0,
            delay_mean_ns: 200_000.0,
            delay_p99_ns: 400_000.0,
        }
    }

    /// On/off load on top of `base`.
    pub fn on_off(base: f64, peak: f64) -> Self {
        let rates = (base + peak, base);
        Self {
            offered: rates,
            received: rates,
            ..Self::untroubled(base)
        }
    }
}

/// The relative deviation of a repetition: spread evenly, mean 0 over ten repetitions, and
/// different for each `what`.
pub fn scatter(repetition: u32, what: u32) -> f64 {
    (f64::from((repetition * 3 + what * 7) % 10) - 4.5) / 4.5
}

/// One run. Delays scatter by `scatter_relative` between repetitions; rates and loss do not.
pub fn run(
    policy: &str,
    scenario: &str,
    repetition: u32,
    services: [Service; 2],
    scatter_relative: f64,
) -> RunRecord {
    let slices = ["critical", "best effort"].iter().zip(services).enumerate();
    let slices: Vec<SliceRecord> = slices
        .map(|(index, (name, service))| {
            let factor = 1.0 + scatter_relative * scatter(repetition, index as u32);
            slice(name, service, factor)
        })
        .collect();
    let aggregate = Figures {
        // No two runs of a study are the same.
        sent_frames: u64::from(repetition),
        throughput_bits_per_second: slices
            .iter()
            .map(|s| s.steady.throughput_bits_per_second)
            .sum(),
        ..slices[0].steady
    };
    RunRecord {
        schema_version: SCHEMA_VERSION,
        key: RunKey {
            policy: policy.into(),
            scenario: scenario.into(),
            repetition,
            seed: u64::from(repetition),
            inputs: String::new(),
        },
        duration_ns: DURATION_NS,
        bin_ns: BIN_NS,
        transient: Transient {
            steady_state_reached: true,
            throughput_after_bits_per_second: aggregate.throughput_bits_per_second,
            ..Transient::default()
        },
        slices,
        aggregate,
        ..RunRecord::default()
    }
}

/// Circumstances of a run on real packets: a machine through which packets take up to `idle_p99_ns` without load.
pub fn on_a_machine_with(idle_p99_ns: u64) -> TestbedRecord {
    TestbedRecord {
        baseline: IdleBaseline {
            sent_frames: 100,
            samples: 100,
            p50_ns: idle_p99_ns / 2,
            p99_ns: idle_p99_ns,
            max_ns: idle_p99_ns,
        },
        idle_ratio: 1.0,
        least_offered_ratio: 1.0,
        ..TestbedRecord::default()
    }
}

fn slice(name: &str, service: Service, delay_factor: f64) -> SliceRecord {
    let bytes = |(on, off): (f64, f64)| -> Vec<u64> {
        let rate = |bin: u64| {
            if (bin / 20).is_multiple_of(2) {
                on
            } else {
                off
            }
        };
        (0..BINS)
            .map(|bin| (rate(bin) * BIN_NS as f64 / 8e9) as u64)
            .collect()
    };
    let (sent, received) = (bytes(service.offered), bytes(service.received));
    let frames = |bytes: &[u64]| (bytes.iter().sum::<u64>() as f64 / FRAME_BYTES) as u64;
    let rate = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64 * 8e9 / DURATION_NS as f64;
    let delay_ns = |mean: f64| (mean * delay_factor) as u64;
    let figures = Figures {
        span_ns: DURATION_NS,
        sent_frames: frames(&sent),
        sent_bytes: sent.iter().sum(),
        received_frames: frames(&received),
        received_bytes: received.iter().sum(),
        lost_frames: (frames(&sent) as f64 * service.loss_ratio) as u64,
        offered_bits_per_second: rate(&sent),
        throughput_bits_per_second: rate(&received),
        loss_ratio: service.loss_ratio,
        delay: DelayFigures {
            samples: frames(&received),
            mean_ns: service.delay_mean_ns * delay_factor,
            min_ns: delay_ns(service.delay_mean_ns / 3.0),
            p50_ns: delay_ns(service.delay_mean_ns),
            p90_ns: delay_ns(service.delay_mean_ns * 1.1),
            p95_ns: delay_ns(service.delay_mean_ns * 1.2),
            p99_ns: delay_ns(service.delay_p99_ns),
            p999_ns: delay_ns(service.delay_p99_ns * 1.1),
            p9999_ns: delay_ns(service.delay_p99_ns * 1.2),
            p99999_ns: delay_ns(service.delay_p99_ns * 1.2),
            max_ns: delay_ns(service.delay_p99_ns * 1.2),
        },
        ..Figures::default()
    };
    SliceRecord {
        slice: name.into(),
        whole: figures,
        steady: figures,
        delay_cdf: vec![CdfPoint(figures.delay.max_ns, 1.0)],
        iat_sent: IatFigures {
            samples: 1000,
            mean_ns: 735_500.0,
            variance_ns2: 1.85e11,
            cdf: vec![CdfPoint(12_000, 0.3), CdfPoint(1_000_000, 1.0)],
        },
        series: Series {
            sent_frames: vec![0; sent.len()],
            lost_frames: vec![0; sent.len()],
            delay_mean_ns: vec![None; sent.len()],
            delay_max_ns: vec![None; sent.len()],
            late_frames: Vec::new(),
            lost_bytes: vec![0; sent.len()],
            sent_bytes: sent,
            served_bytes: received.clone(),
            received_bytes: received,
        },
        ..SliceRecord::default()
    }
}
