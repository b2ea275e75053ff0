use super::study::POLICIES;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::{
    CdfPoint, DelayFigures, DropCount, Figures, IatFigures, RunKey, RunRecord, SCHEMA_VERSION,
    Series, SliceRecord, Transient, VariationFigures,
};

const BIN_NS: u64 = 50_000_000;
const FRAME_BYTES: f64 = 1494.0;
const LINK_BYTES: f64 = 35e6 / 8.0 * 0.05;
const SHARE_BYTES: f64 = 17.5e6 / 8.0 * 0.05;

/// xorshift64*: tests need numbers that look random and never change.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn about(&mut self, value: f64, relative: f64) -> f64 {
        value * (1.0 + relative * (self.next() - 0.5))
    }
}

/// One run of the synthetic study.
pub fn record(
    study: &StudyDescription,
    policy: usize,
    scenario: usize,
    repetition: u32,
) -> RunRecord {
    let seed = 1 + u64::from(repetition) + 100 * scenario as u64 + 10_000 * policy as u64;
    let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let series = series(study, policy, scenario, &mut noise);
    let transient_bins =
        if matches!(POLICIES[policy].0, "no policy" | "priority" | "bandwidth") && scenario > 1 {
            (series[0].sent_bytes.len() / 5).max(1)
        } else {
            0
        };
    let aggregate_rate = |bins: std::ops::Range<usize>| {
        let seconds = bins.len() as f64 * 0.05;
        let bytes: u64 = series
            .iter()
            .flat_map(|s| &s.received_bytes[bins.clone()])
            .sum();
        if bins.is_empty() {
            0.0
        } else {
            bytes as f64 * 8.0 / seconds
        }
    };
    let bins = series[0].sent_bytes.len();
    let transient = Transient {
        end_ns: transient_bins as u64 * BIN_NS,
        steady_state_reached: true,
        throughput_before_bits_per_second: aggregate_rate(0..transient_bins),
        throughput_after_bits_per_second: aggregate_rate(transient_bins..bins),
    };
    let dropped: u64 = series[1].lost_frames.iter().map(|&f| u64::from(f)).sum();
    let slices: Vec<SliceRecord> = study
        .slices
        .iter()
        .zip(series)
        .map(|(slice, series)| slice_record(&slice.name, series, transient_bins, &mut noise))
        .collect();
    RunRecord {
        schema_version: SCHEMA_VERSION,
        key: RunKey {
            policy: study.policies[policy].name.clone(),
            scenario: study.scenarios[scenario].name.clone(),
            repetition,
            seed,
            inputs: study.inputs[policy][scenario].clone(),
        },
        duration_ns: study.duration_ns,
        bin_ns: BIN_NS,
        transient,
        aggregate: both(&slices),
        slices,
        drops: vec![DropCount {
            class: "class-default".to_owned(),
            reason: "queue_full".to_owned(),
            frames: dropped,
        }],
        ..RunRecord::default()
    }
}

fn series(
    study: &StudyDescription,
    policy: usize,
    scenario: usize,
    noise: &mut Noise,
) -> Vec<Series> {
    let on_off = [5.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0][scenario] / 100.0;
    let mut out = vec![Series::default(), Series::default()];
    let mut queue = [0.0f64; 2];
    let mut bucket = 2e6;
    let phase = noise.next() * 40.0;
    for bin in 0..study.duration_ns / BIN_NS {
        let on = ((bin as f64 + phase) as u64 / 20).is_multiple_of(2);
        let offered = [
            noise.about(0.45 * LINK_BYTES, 0.01),
            noise.about((0.45 + if on { on_off } else { 0.0 }) * LINK_BYTES, 0.01),
        ];
        let sum = offered[0] + offered[1];
        let credit = (sum - LINK_BYTES).clamp(-bucket, bucket);
        let link = LINK_BYTES + credit.max(0.0);
        bucket = (bucket - credit).min(2e6);
        let want = [queue[0] + offered[0], queue[1] + offered[1]];
        let (served, limit) = match POLICIES[policy].0 {
            "no policy" => {
                let scale = (link / (want[0] + want[1])).min(1.0);
                ([want[0] * scale, want[1] * scale], [4e4, 4e4])
            }
            "priority" | "bandwidth" => ([want[0], want[1].min(link - want[0])], [4e4, 8e4]),
            "policing" => ([want[0], want[1].min(SHARE_BYTES * 1.01)], [4e4, 0.0]),
            "WRED" => ([want[0], want[1].min(SHARE_BYTES)], [4e4, 4e3]),
            "tail drop" => ([want[0], want[1].min(SHARE_BYTES)], [4e4, 2e4]),
            _ => ([want[0], want[1].min(SHARE_BYTES)], [4e4, 9e4]),
        };
        for slice in 0..2 {
            let left = want[slice] - served[slice];
            let lost = (left - limit[slice]).max(0.0);
            queue[slice] = left - lost;
            let rate = served[slice].max(1.0) / 0.05;
            let mut delay = 0.000_14 + queue[slice] / rate;
            if slice == 0 && POLICIES[policy].0 == "bandwidth" && on {
                delay += 0.000_05 * scenario as f64;
            }
            let delay_ns = noise.about(delay * 1e9, 0.2);
            let s = &mut out[slice];
            s.sent_bytes.push(offered[slice] as u64);
            s.received_bytes.push(served[slice] as u64);
            s.served_bytes.push(served[slice] as u64);
            s.lost_bytes.push(lost.min(offered[slice]) as u64);
            s.sent_frames.push((offered[slice] / FRAME_BYTES) as u32);
            s.lost_frames
                .push((lost / FRAME_BYTES).min(offered[slice] / FRAME_BYTES) as u32);
            s.delay_mean_ns.push(Some(delay_ns as u64));
            s.delay_max_ns
                .push(Some(noise.about(delay_ns * 2.2, 0.3) as u64));
        }
    }
    out
}

fn slice_record(
    name: &str,
    series: Series,
    transient_bins: usize,
    noise: &mut Noise,
) -> SliceRecord {
    let bins = series.sent_bytes.len();
    let delays = sorted_delays(&series, transient_bins..bins);
    let last = delays.len() - 1;
    let delay_cdf = (1..=100)
        .map(|i| CdfPoint(delays[last * i / 100], i as f64 / 100.0))
        .collect();
    let burst = noise.about(0.265, 0.02);
    let iat_sent = IatFigures {
        samples: 54_384,
        mean_ns: noise.about(735_500.0, 0.001),
        variance_ns2: noise.about(1.86e11, 0.01),
        cdf: vec![
            CdfPoint(11_000, 0.0),
            CdfPoint(12_000, burst),
            CdfPoint(980_000, burst + 0.01),
            CdfPoint(1_000_000, 0.95),
            CdfPoint(1_020_000, 1.0),
        ],
    };
    SliceRecord {
        slice: name.to_owned(),
        whole: figures(&series, 0..bins),
        steady: figures(&series, transient_bins..bins),
        delay_cdf,
        iat_received: Some(iat_sent.clone()),
        iat_sent,
        series,
        ..SliceRecord::default()
    }
}

fn sorted_delays(series: &Series, bins: std::ops::Range<usize>) -> Vec<u64> {
    let mut delays: Vec<u64> = series.delay_mean_ns[bins]
        .iter()
        .copied()
        .flatten()
        .collect();
    delays.sort_unstable();
    delays
}

fn figures(series: &Series, bins: std::ops::Range<usize>) -> Figures {
    let sum = |values: &[u64]| values[bins.clone()].iter().sum::<u64>();
    let sum32 = |values: &[u32]| {
        values[bins.clone()]
            .iter()
            .map(|&v| u64::from(v))
            .sum::<u64>()
    };
    let seconds = bins.len() as f64 * 0.05;
    let delays = sorted_delays(series, bins.clone());
    let at = |permille: usize| delays[(delays.len() - 1) * permille / 1000];
    let (sent_frames, lost_frames) = (sum32(&series.sent_frames), sum32(&series.lost_frames));
    let mean_ns = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
    let largest = series.delay_max_ns[bins.clone()].iter().copied().flatten();
    let largest = largest.max().unwrap();
    let variation = VariationFigures {
        pdv_mean_ns: mean_ns - delays[0] as f64,
        pdv_p50_ns: at(500) - delays[0],
        pdv_p95_ns: at(950) - delays[0],
        pdv_p99_ns: at(990) - delays[0],
        pdv_p999_ns: at(999) - delays[0],
        pdv_max_ns: largest - delays[0],
        ipdv_samples: sent_frames - 2 * lost_frames.min(sent_frames / 2),
        ipdv_mean_ns: mean_ns / 10.0,
        ipdv_p95_ns: at(500) / 4,
        ipdv_p99_ns: at(500) / 2,
        ipdv_p999_ns: at(500),
        ipdv_max_ns: at(990),
    };
    Figures {
        span_ns: bins.len() as u64 * BIN_NS,
        sent_frames,
        sent_bytes: sum(&series.sent_bytes),
        received_frames: sent_frames - lost_frames,
        received_bytes: sum(&series.received_bytes),
        lost_frames,
        offered_bits_per_second: sum(&series.sent_bytes) as f64 * 8.0 / seconds,
        throughput_bits_per_second: sum(&series.received_bytes) as f64 * 8.0 / seconds,
        loss_ratio: lost_frames as f64 / sent_frames as f64,
        delay: DelayFigures {
            samples: sent_frames - lost_frames,
            mean_ns,
            min_ns: delays[0],
            p50_ns: at(500),
            p90_ns: at(900),
            p95_ns: at(950),
            p99_ns: at(990),
            p999_ns: at(999),
            p9999_ns: at(1000),
            p99999_ns: at(1000),
            max_ns: largest,
        },
        ..Figures {
            variation,
            ..Figures::default()
        }
    }
}

fn both(slices: &[SliceRecord]) -> Figures {
    let (a, b) = (&slices[0].whole, &slices[1].whole);
    let (sent_frames, lost_frames) = (a.sent_frames + b.sent_frames, a.lost_frames + b.lost_frames);
    Figures {
        sent_frames,
        sent_bytes: a.sent_bytes + b.sent_bytes,
        received_frames: a.received_frames + b.received_frames,
        received_bytes: a.received_bytes + b.received_bytes,
        lost_frames,
        offered_bits_per_second: a.offered_bits_per_second + b.offered_bits_per_second,
        throughput_bits_per_second: a.throughput_bits_per_second + b.throughput_bits_per_second,
        loss_ratio: lost_frames as f64 / sent_frames as f64,
        delay: DelayFigures {
            mean_ns: (a.delay.mean_ns + b.delay.mean_ns) / 2.0,
            max_ns: a.delay.max_ns.max(b.delay.max_ns),
            ..b.delay
        },
        variation: b.variation,
        ..*a
    }
}
