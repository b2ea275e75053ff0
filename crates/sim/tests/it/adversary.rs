//! Worst cases of every kind of bound that a study states: constructions that come close to it, and random networks that never exceed
//! it. That of flow queues is in the tests of `dataplane`, that of a gateway that is late in those of `live`.

use crate::support::parsed;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use slicewise_sim::Simulator;
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};
use std::cell::Cell;
use std::fmt::Write as _;

/// For each slice that has a bound: the largest delay of its packets over all runs, and the bound, ns. No packet is lost.
fn measured(study: &Study) -> Vec<(u64, u64)> {
    let description = study.description("test");
    let bounds = &description.policies[0].delay_bounds;
    let runs = study.runs(&RunFilter::default()).unwrap();
    let records: Vec<_> = runs
        .iter()
        .map(|run| Simulator::default().run(study, run).unwrap())
        .collect();
    let slices = description.slices.iter().enumerate();
    let bounded = slices.filter_map(|(index, slice)| Some((index, bounds.get(&slice.name)?)));
    let of_slice = |(index, bound): (usize, &slicewise_stats::description::DelayBound)| {
        let figures = records.iter().map(|record| &record.slices[index].whole);
        let largest = figures.map(|figures| {
            assert_eq!(
                figures.lost_frames,
                0,
                "slice {index}: {:?}",
                record_drops(&records)
            );
            figures.delay.max_ns
        });
        (largest.max().unwrap_or(0), bound.end_to_end_ns())
    };
    bounded.map(of_slice).collect()
}

fn record_drops(records: &[slicewise_stats::record::RunRecord]) -> Vec<String> {
    records
        .iter()
        .map(|record| format!("{:?}", record.drops))
        .collect()
}

/// The closest that any slice comes to its bound, which none exceeds.
fn closest(text: &str) -> f64 {
    let study = parsed(text);
    let found = measured(&study);
    assert_ne!(found, [], "{:?}", study.notes());
    let ratios = found.into_iter().map(|(largest, bound)| {
        assert!(
            largest <= bound,
            "{largest} ns is above {bound} ns:\n{text}"
        );
        largest as f64 / bound as f64
    });
    ratios.fold(0.0, f64::max)
}

/// Two slices that together fill what the link sends in 20 ms, beside a largest frame of best effort that has just begun.
fn one_link(device: &str, rate_kbit: u64) -> String {
    let sent = rate_kbit * 20 / 8 - 212;
    let (gold, other) = (sent / 5, sent * 4 / 5);
    format!(
        "
name: adversary
title: t
description: d
link: {{rate: 100 Gbit/s}}
dut: {device}
hosts: {{timer: 500 ms, clock_drift: 0 ppm}}
slices:
  gold: {{match: {{dscp: ef}}, share: {gold_rate} kbit/s, guaranteed: true, headers: {{dscp: ef, source: 10.0.1.2, destination: 10.0.2.2}}}}
  other: {{match: {{dscp: af41}}, share: {other_rate} kbit/s, guaranteed: true, headers: {{dscp: af41, source: 10.0.1.3, destination: 10.0.2.3}}}}
  bulk: {{match: {{dscp: 0}}, share: 1 kbit/s, headers: {{source: 10.0.1.4, destination: 10.0.2.4}}}}
sources:
  gold: {{slice: gold, host: a, pattern: iperf3, payload: 58 B, rate: {gold_sent} kbit/s, start: 100.003 ms, start_spread: 0 s}}
  other: {{slice: other, host: b, pattern: iperf3, payload: 58 B, rate: {other_sent} kbit/s, start: 100.002 ms, start_spread: 0 s}}
  bulk: {{slice: bulk, host: c, pattern: cbr, payload: 158 B, rate: 120 %, start: 100.001 ms, start_spread: 0 s}}
scenarios:
  worst: {{title: both bursts at once, reference: true}}
policies:
  guaranteed:
    title: guaranteed
    discipline: guaranteed
    guaranteed: {{largest_frame: 202 B, delays: {{shortest: 10 us, longest: 60 ms}}}}
    classes:
      - {{name: gold, slice: gold, guarantee: {{rate: {gold_rate} kbit/s, burst: {gold} B, delay: 20 ms}}}}
      - {{name: other, slice: other, guarantee: {{rate: {other_rate} kbit/s, burst: {other} B, delay: 20 ms}}}}
repetitions: 1
duration: 900 ms
seed: 1
",
        // A burst each 500 ms, of one frame of 100 B less, 58 of them payload.
        gold_rate = (gold - 110) * 8 / 500,
        other_rate = (other - 110) * 8 / 500,
        gold_sent = (gold - 110) * 8 / 500 * 58 / 100,
        other_sent = (other - 110) * 8 / 500 * 58 / 100,
    )
}

#[test]
fn bursts_at_the_edge_of_admission_reach_the_bound_of_one_link() {
    let closest = closest(&one_link(
        "{model: port, port_rate: 100 Mbit/s, port_counts: L2}",
        100_000,
    ));
    assert!(closest >= 0.98, "{closest}");
}

#[test]
fn bursts_at_the_edge_of_admission_reach_the_bound_of_a_licence() {
    let licence =
        "{model: isr4221, port_rate: 1 Gbit/s, licence: {rate: 35 Mbit/s, credit: 1600 B}}";
    let closest = closest(&one_link(licence, 35_000));
    assert!(closest >= 0.98, "{closest}");
}

/// Frames of one host wait behind a burst and then use the tokens that the source of the other host left.
#[test]
fn a_class_fed_by_two_hosts_reaches_the_bound_of_both_together() {
    let text = "
name: adversary
title: t
description: d
link: {rate: 100 Mbit/s}
dut: {model: port, port_rate: 100 Mbit/s}
hosts: {timer: 100 ms, clock_drift: 0 ppm}
slices:
  gold: {match: {dscp: ef}, share: 10 Mbit/s, guaranteed: true, headers: {dscp: ef, source: 10.0.1.2, destination: 10.0.2.2}}
  bulk: {match: {dscp: 0}, share: 40 Mbit/s, headers: {source: 10.0.1.3, destination: 10.0.2.3}}
sources:
  f1: {slice: gold, host: h1, pattern: cbr, payload: 158 B, rate: 0.4 Mbit/s, start: 110.4 ms, start_spread: 0 s}
  f2: {slice: gold, host: h2, pattern: cbr, payload: 158 B, rate: 9.5 Mbit/s, start: 100.1 ms, start_spread: 0 s}
  g1: {slice: bulk, host: h1, pattern: iperf3, payload: 1458 B, rate: 75 Mbit/s, start: 110.3 ms, start_spread: 0 s}
  g2: {slice: bulk, host: h2, pattern: iperf3, payload: 1458 B, rate: 75 Mbit/s, start: 100 ms, start_spread: 0 s}
scenarios:
  storm: {title: bursts, reference: true}
policies:
  guaranteed:
    title: guaranteed
    discipline: guaranteed
    classes:
      - {name: gold, slice: gold, queue_limit: 5000 packets, guarantee: {rate: 10 Mbit/s, burst: 2000 B, delay: 2 ms}, maximum: {rate: 10 Mbit/s, burst: 2000 B}}
repetitions: 1
duration: 1 s
seed: 1
";
    let closest = closest(text);
    assert!(closest >= 0.98, "{closest}");
}

/// On the first device a burst is due with a frame of voice, and on the second, a hundred times slower, another one that has just come.
#[test]
fn bursts_that_meet_a_frame_on_each_device_reach_the_bound_of_the_path() {
    let text = "
name: adversary
title: t
description: d
link: {rate: 1 Tbit/s}
path: [fast, slow]
devices:
  fast: {model: port, port_rate: 1 Gbit/s, port_counts: L2}
  slow:
    model: port
    port_rate: 10 Mbit/s
    port_counts: L2
    policy:
      title: slow
      discipline: guaranteed
      guaranteed: {largest_frame: 202 B}
      classes:
        - {name: voice, match: {dscp: ef}, guarantee: {rate: 100 kbit/s, burst: 202 B, delay: 20 ms}}
        - {name: second, match: {dscp: af31}, guarantee: {rate: 400 kbit/s, burst: 24590 B, delay: 20 ms}}
hosts: {timer: 500 ms, clock_drift: 0 ppm}
slices:
  voice: {match: {dscp: ef}, share: 100 kbit/s, guaranteed: true, headers: {dscp: ef, source: 10.0.1.2, destination: 10.0.2.2}}
  second: {match: {dscp: af31}, share: 400 kbit/s, guaranteed: true, headers: {dscp: af31, source: 10.0.1.3, destination: 10.0.2.3}}
  first: {match: {dscp: af41}, share: 42 Mbit/s, guaranteed: true, headers: {dscp: af41, source: 10.0.1.4, destination: 10.0.2.4}}
  bulk: {match: {dscp: 0}, share: 1 kbit/s, headers: {source: 10.0.1.5, destination: 10.0.2.5}}
sources:
  voice: {slice: voice, host: a, pattern: cbr, payload: 58 B, rate: 3200 bit/s, start: 100.025 ms, start_spread: 0 s}
  second: {slice: second, host: b, pattern: iperf3, payload: 58 B, rate: 227 kbit/s, start: 119.77 ms, start_spread: 0 s}
  first: {slice: first, host: c, pattern: iperf3, payload: 158 B, rate: 31.26 Mbit/s, start: 100.002 ms, start_spread: 0 s}
  bulk: {slice: bulk, host: d, pattern: cbr, payload: 158 B, rate: 20 Mbit/s, start: 100 ms, start_spread: 0 s}
scenarios:
  worst: {title: bursts, reference: true}
policies:
  guaranteed:
    title: guaranteed
    discipline: guaranteed
    guaranteed: {largest_frame: 202 B}
    classes:
      - {name: voice, slice: voice, guarantee: {rate: 100 kbit/s, burst: 202 B, delay: 20 ms}}
      - {name: second, slice: second, guarantee: {rate: 400 kbit/s, burst: 24590 B, delay: 205 us}}
      - {name: first, slice: first, guarantee: {rate: 40 Mbit/s, burst: 2473800 B, delay: 20 ms}}
repetitions: 1
duration: 900 ms
seed: 1
";
    let closest = closest(text);
    assert!(closest >= 0.98, "{closest}");
}

/// A class of a device: how much its slices send, and a tenth more for each above 10, is guaranteed; its delay, ms; whether it may send no
/// more than that.
type RandomClass = (u32, u32, bool);

/// Of a device, to which of its classes each of three slices belongs, these classes, and whether deadlines have a coarse resolution.
type RandomDevice = ([usize; 3], [RandomClass; 3], bool);

#[derive(Debug, Clone)]
struct Network {
    devices: Vec<RandomDevice>,
    /// Of each slice: host, pattern, rate (100 kbit/s), payload, start (µs).
    sources: [(usize, bool, u32, u32, u32); 3],
    /// Of each host: rate (Mbit/s) and start (µs) of bulk that it sends as well.
    bulk: [(u32, u32); 3],
    timer_ms: u32,
}

fn network() -> impl Strategy<Value = Network> {
    let class = (10u32..14, 3u32..60, any::<bool>());
    let device = (
        prop::array::uniform3(0usize..3),
        prop::array::uniform3(class),
        any::<bool>(),
    );
    let source = (
        0usize..3,
        any::<bool>(),
        2u32..40,
        18u32..1_458,
        0u32..30_000,
    );
    let bulk = (0u32..16, 0u32..30_000);
    (
        prop::collection::vec(device, 1..5),
        prop::array::uniform3(source),
        prop::array::uniform3(bulk),
        1u32..20,
    )
        .prop_map(|(devices, sources, bulk, timer_ms)| Network {
            devices,
            sources,
            bulk,
            timer_ms,
        })
}

const DSCPS: [&str; 3] = ["ef", "af41", "af31"];

impl Network {
    /// Rate, kbit/s, and burst, bytes, of what a slice sends.
    fn sent(&self, slice: usize) -> (u64, u64) {
        let (_, ticks, rate, payload, _) = self.sources[slice];
        let rate = u64::from(rate) * 100;
        let frame = u64::from(payload) + 42;
        let burst = if ticks {
            rate * u64::from(self.timer_ms) / 8
        } else {
            0
        };
        (rate, burst + 2 * frame)
    }

    fn classes(&self, device: &RandomDevice, of_slice: &str) -> String {
        let (of, classes, is_coarse) = device;
        let longest = if *is_coarse { 5_000 } else { 100 };
        let mut text = format!(
            "{of_slice}  guaranteed: {{delays: {{shortest: 1 ms, longest: {longest} ms}}}}\n{of_slice}  classes:\n"
        );
        for (index, (more, delay, limited)) in classes.iter().enumerate() {
            let members: Vec<usize> = (0..3).filter(|slice| of[*slice] == index).collect();
            let (Some(_), sums) = (
                members.first(),
                members.iter().map(|slice| self.sent(*slice)),
            ) else {
                continue;
            };
            let (rate, burst) = sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let rate = rate * u64::from(*more) / 10;
            let dscps: Vec<&str> = members.iter().map(|slice| DSCPS[*slice]).collect();
            let burst = burst.max(1_522);
            let maximum = match limited {
                true => format!(", maximum: {{rate: {rate} kbit/s, burst: {burst} B}}"),
                false => String::new(),
            };
            writeln!(
                text,
                "{of_slice}    - {{name: c{index}, match: {{dscp: [{}]}}, queue_limit: 20000 packets, guarantee: {{rate: {rate} kbit/s, burst: {burst} B, delay: {delay} ms}}{maximum}}}",
                dscps.join(", ")
            )
            .unwrap();
        }
        text
    }

    /// `None` where a guarantee is refused.
    fn study(&self) -> Option<Study> {
        let mut text =
            String::from("name: random\ntitle: t\ndescription: d\nlink: {rate: 20 Mbit/s}\n");
        writeln!(
            text,
            "hosts: {{timer: {} ms, clock_drift: 0 ppm}}",
            self.timer_ms
        )
        .unwrap();
        let names: Vec<String> = (0..self.devices.len())
            .map(|index| format!("d{index}"))
            .collect();
        writeln!(text, "path: [{}]\ndevices:", names.join(", ")).unwrap();
        for (name, device) in names.iter().zip(&self.devices).skip(1) {
            let classes = self.classes(device, "    ");
            writeln!(text, "  {name}:\n    model: port\n    port_rate: 20 Mbit/s\n    policy:\n      title: t\n      discipline: guaranteed\n{classes}").unwrap();
        }
        writeln!(text, "  d0: {{model: port, port_rate: 20 Mbit/s}}\nslices:").unwrap();
        for (slice, dscp) in DSCPS.iter().enumerate() {
            let (rate, _) = self.sent(slice);
            writeln!(text, "  s{slice}: {{match: {{dscp: {dscp}}}, share: {rate} kbit/s, guaranteed: true, headers: {{dscp: {dscp}, source: 10.0.1.{slice}, destination: 10.0.2.{slice}}}}}").unwrap();
        }
        text.push_str("  bulk: {match: {dscp: 0}, share: 1 Mbit/s, headers: {source: 10.0.1.9, destination: 10.0.2.9}}\nsources:\n");
        for (slice, (host, ticks, rate, payload, start)) in self.sources.iter().enumerate() {
            let pattern = if *ticks { "iperf3" } else { "cbr" };
            writeln!(text, "  s{slice}: {{slice: s{slice}, host: h{host}, pattern: {pattern}, payload: {payload} B, rate: {} kbit/s, start: {start} us, start_spread: 0 s}}", rate * 100).unwrap();
        }
        for (host, (rate, start)) in self.bulk.iter().enumerate() {
            if *rate > 0 {
                writeln!(text, "  b{host}: {{slice: bulk, host: h{host}, pattern: iperf3, payload: 1458 B, rate: {rate} Mbit/s, start: {start} us, start_spread: 0 s}}").unwrap();
            }
        }
        let classes = self.classes(&self.devices[0], "  ");
        writeln!(text, "scenarios: {{all: {{title: t, reference: true}}}}\npolicies:\n  p:\n    title: t\n    discipline: guaranteed\n{classes}\nrepetitions: 1\nduration: 200 ms\nseed: 1").unwrap();
        Study::parse(&text, "random.yaml", &MemoryFiles::default()).ok()
    }
}

/// How many random networks are tried.
const NETWORKS: u32 = 10_000;

#[test]
fn no_random_network_exceeds_its_bounds() {
    let mut runner = TestRunner::new(Config {
        cases: NETWORKS,
        failure_persistence: None,
        ..Config::default()
    });
    let (bounded, closest) = (Cell::new(0u32), Cell::new(0.0f64));
    let checked = runner.run(&network(), |network| {
        let Some(study) = network.study() else {
            return Ok(());
        };
        for (largest, bound) in measured(&study) {
            prop_assert!(largest <= bound, "{} ns is above {} ns", largest, bound);
            bounded.set(bounded.get() + 1);
            closest.set(closest.get().max(largest as f64 / bound as f64));
        }
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
    println!(
        "{} bounds, the closest was reached to {:.3}",
        bounded.get(),
        closest.get()
    );
    assert!(bounded.get() > NETWORKS, "{} bounds", bounded.get());
}
