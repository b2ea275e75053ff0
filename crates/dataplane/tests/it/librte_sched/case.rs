//! Random hierarchies and loads, as a script for the library and as calls of ours.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use slicewise_dataplane::Frame;
use slicewise_dataplane::hqos::{Hqos, HqosPlace};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_model::hqos::{
    BEST_EFFORT, HqosPipeProfile, HqosPipeRange, HqosRates, HqosRedCurve, HqosSubport, QUEUES,
    TRAFFIC_CLASSES,
};
use slicewise_model::{Colour, HqosParams, HqosSpec};
use slicewise_units::{BitRate, FrameLengths, Instant};
use slicewise_wire::TrafficClass;
use std::fmt::Write;

/// Most frames in all queues: the library's buffers in `peer.c`.
const FRAMES: u32 = 32_000;
/// The library reads differences of less than 2^24 bytes of time.
const LONGEST_STEP: u64 = (1 << 24) - 2;

/// What is done.
#[derive(Debug, Clone, Copy)]
enum Event {
    Enqueue(HqosPlace, u32),
    /// Nanoseconds since the start, and the most frames.
    Call(u64, u32),
}

/// A hierarchy and a load.
pub(crate) struct Case {
    spec: HqosSpec,
    port: BitRate,
    seed: u32,
    events: Vec<Event>,
}

struct Random(Xoshiro256PlusPlus);

impl Random {
    /// At least `low`, at most `high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high.max(low) - low + 1)
    }

    /// The same, each order of magnitude equally often.
    fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let bits = self.between(low.max(1).ilog2().into(), high.max(1).ilog2().into());
        let value = self.between(1 << bits, (1 << bits) * 2 - 1);
        value.clamp(low, high)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.between(1, n) == 1
    }
}

impl Case {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
        let (port, spec, events) = if seed.is_multiple_of(10) {
            oversubscribed(&mut random)
        } else {
            let port = random.magnitude(2_000_000, 12_500_000_000);
            let spec = hierarchy(&mut random, port);
            let events = load(&mut random, &spec, port);
            (port, spec, events)
        };
        Self {
            spec,
            port: BitRate::new(port * 8),
            seed: random.between(0, u32::MAX.into()) as u32,
            events,
        }
    }

    /// The case for `peer.c`.
    pub(crate) fn script(&self) -> String {
        let rate = self.port.bits_per_second() / 8;
        let spec = &self.spec;
        let mut script = format!("port {rate} {} {}\n", spec.mtu, spec.frame_overhead);
        for rates in &spec.subport_profiles {
            line(&mut script, &format!("subport_profile {}", words(rates)));
        }
        for profile in &spec.pipe_profiles {
            let weights = numbers(profile.wrr_weights);
            let weight = profile.oversubscription_weight;
            let rates = words(&profile.rates);
            line(
                &mut script,
                &format!("pipe_profile {rates} {weight} {weights}"),
            );
        }
        for (class, colours) in spec.red.iter().flat_map(|red| red.iter().enumerate()) {
            for (colour, curve) in colours.iter().enumerate() {
                let Some(curve) = curve else { continue };
                let (min, max) = (curve.min_packets, curve.max_packets);
                let (inverse, weight) = (curve.inverse_probability, curve.weight);
                let red = format!("red {class} {colour} {min} {max} {inverse} {weight}");
                line(&mut script, &red);
            }
        }
        for subport in &spec.subports {
            let ranges = subport.assigned.iter();
            let ranges =
                ranges.map(|range| format!(" {} {} {}", range.first, range.last, range.profile));
            let text = format!(
                "subport {} {} {} {}{}",
                subport.profile,
                subport.pipes,
                numbers(subport.queue_sizes),
                subport.assigned.len(),
                ranges.collect::<String>()
            );
            line(&mut script, &text);
        }
        line(&mut script, &format!("start {}", self.seed));
        for event in &self.events {
            let text = match event {
                Event::Enqueue(place, bytes) => format!(
                    "e {} {} {} {} {bytes}",
                    place.subport, place.pipe, place.queue, place.colour
                ),
                Event::Call(nanos, most) => format!("c {} {most}", bytes_of(*nanos, rate)),
            };
            line(&mut script, &text);
        }
        line(&mut script, "end");
        script
    }

    pub(crate) fn params(&self) -> HqosParams {
        self.spec.resolve(self.port).unwrap()
    }

    /// What our scheduler answers, in the words of `peer.c`.
    pub(crate) fn answers(&self) -> Vec<String> {
        let mut hqos = Hqos::new(&self.params(), self.seed.into(), Instant::ZERO);
        let mut pool = FramePool::with_capacity(FRAMES);
        let (mut answers, mut handle) = (Vec::new(), 0);
        let mut now = Instant::ZERO;
        for event in &self.events {
            match *event {
                Event::Enqueue(place, bytes) => {
                    let queued = frame(handle, bytes, now);
                    if hqos.try_enqueue(place, queued, &mut pool).is_err() {
                        answers.push(format!("d {handle}"));
                    }
                    handle += 1;
                }
                Event::Call(nanos, most) => {
                    now = Instant::from_nanos(nanos);
                    hqos.begin(now);
                    let mut answer = "s".to_owned();
                    for _ in 0..most {
                        let Some(queued) = hqos.next(&mut pool) else {
                            break;
                        };
                        let _ = write!(answer, " {}", queued.handle());
                    }
                    answers.push(answer);
                }
            }
        }
        answers.push("end".to_owned());
        answers
    }
}

fn line(script: &mut String, text: &str) {
    script.push_str(text);
    script.push('\n');
}

fn numbers<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
    numbers.join(" ")
}

fn words(rates: &HqosRates) -> String {
    let (rate, size, period) = (rates.tb_rate, rates.tb_size, rates.tc_period);
    format!("{rate} {size} {} {period}", numbers(rates.tc_rates))
}

fn bytes_of(nanos: u64, rate: u64) -> u128 {
    u128::from(nanos) * u128::from(rate) / 1_000_000_000
}

fn frame(handle: u64, l2_bytes: u32, now: Instant) -> QueuedFrame {
    let lengths = FrameLengths {
        l2_bytes,
        l3_offset: 22,
    };
    let frame = Frame {
        handle,
        lengths,
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    };
    QueuedFrame::new(&frame, 0, now, 0)
}

fn hierarchy(random: &mut Random, port: u64) -> HqosSpec {
    let has_queue: [bool; BEST_EFFORT] = std::array::from_fn(|_| !random.one_in(5));
    let has_queue = |class: usize| has_queue.get(class).copied().unwrap_or(true);
    let spec = HqosSpec {
        mtu: 1522,
        frame_overhead: if random.one_in(3) { 0 } else { 24 },
        ..HqosSpec::default()
    };
    let n_profiles = random.between(1, 3);
    let subport_profiles = (0..n_profiles)
        .map(|_| rates(random, port, |_| true))
        .collect();
    let n_pipe_profiles = random.between(1, 5);
    let pipe_profiles = (0..n_pipe_profiles).map(|_| HqosPipeProfile {
        rates: rates(random, port, has_queue),
        oversubscription_weight: random.between(1, 10) as u8,
        wrr_weights: std::array::from_fn(|_| random.magnitude(1, 255) as u8),
    });
    let pipe_profiles = pipe_profiles.collect();
    let n_subports = 1 << random.between(0, 3);
    let subports = (0..n_subports).map(|_| {
        // Few pipes more often than many.
        let most = if n_subports == 1 && random.one_in(8) {
            12
        } else {
            7
        };
        let pipes = 1 << random.between(0, most);
        HqosSubport {
            profile: random.between(0, n_profiles - 1) as u32,
            pipes,
            queue_sizes: std::array::from_fn(|class| match has_queue(class) {
                true => 1 << random.between(0, 6),
                false => 0,
            }),
            assigned: assigned(random, pipes, n_pipe_profiles),
        }
    });
    let subports = subports.collect();
    HqosSpec {
        subports,
        subport_profiles,
        pipe_profiles,
        red: random.one_in(2).then(|| {
            Box::new(std::array::from_fn::<_, TRAFFIC_CLASSES, _>(|_| {
                std::array::from_fn(|_| (!random.one_in(4)).then(|| curve(random)))
            }))
        }),
        ..spec
    }
}

/// Every pipe, in some ranges; sometimes not every one.
fn assigned(random: &mut Random, pipes: u32, profiles: u64) -> Vec<HqosPipeRange> {
    let (mut ranges, mut first) = (Vec::new(), 0);
    while first < pipes && ranges.len() < 60 {
        let last = random.between(first.into(), (pipes - 1).into()) as u32;
        if !random.one_in(12) {
            let profile = random.between(0, profiles - 1) as u32;
            ranges.push(HqosPipeRange {
                first,
                last,
                profile,
            });
        }
        first = last + 1;
    }
    ranges
}

/// Rates of which every class can send a frame of the largest size in a period.
fn rates(random: &mut Random, port: u64, has_queue: impl Fn(usize) -> bool) -> HqosRates {
    let tc_period = random.magnitude(1, 40);
    let least = (1_546 * 1_000_u64)
        .div_ceil(tc_period)
        .max(port / 1_000_000);
    let tb_rate = match random.between(0, 3) {
        0 => port,
        _ => random
            .magnitude(least, port)
            .clamp(least, port / 1_000 * 999),
    };
    HqosRates {
        tb_rate,
        tb_size: random.magnitude(1_546, 1_000_000),
        tc_rates: std::array::from_fn(|class| match (has_queue(class), random.one_in(2)) {
            (false, _) => 0,
            (true, false) => tb_rate,
            (true, true) => random.magnitude(least.min(tb_rate), tb_rate),
        }),
        tc_period,
    }
}

fn curve(random: &mut Random) -> HqosRedCurve {
    let min_packets = random.between(0, 30) as u16;
    HqosRedCurve {
        min_packets,
        max_packets: min_packets + random.between(1, 40) as u16,
        inverse_probability: random.magnitude(1, 255) as u16,
        weight: random.between(1, 12) as u16,
    }
}

/// Best effort of all pipes is more than that of their subport, for so many periods that the watermark limits it.
fn oversubscribed(random: &mut Random) -> (u64, HqosSpec, Vec<Event>) {
    let port = random.between(5_000_000, 20_000_000);
    let pipes = 1 << random.between(1, 4);
    let rates = |tb_size, best_effort| {
        let mut tc_rates = [port; TRAFFIC_CLASSES];
        tc_rates[BEST_EFFORT] = best_effort;
        HqosRates {
            tb_rate: port,
            tb_size,
            tc_rates,
            tc_period: 1,
        }
    };
    let spec = HqosSpec {
        subports: vec![HqosSubport {
            profile: 0,
            pipes,
            queue_sizes: [16; TRAFFIC_CLASSES],
            assigned: assigned(random, pipes, 2),
        }],
        subport_profiles: vec![rates(20_000, random.between(2_000_000, 4_500_000))],
        pipe_profiles: (0..2)
            .map(|_| HqosPipeProfile {
                rates: rates(20_000, port),
                oversubscription_weight: random.between(1, 4) as u8,
                wrr_weights: [1, 2, 3, 4],
            })
            .collect(),
        ..HqosSpec::default()
    };
    let mut events = Vec::new();
    for step in 1..8_000 {
        for _ in 0..random.between(0, 3) {
            let place = HqosPlace {
                subport: 0,
                pipe: random.between(0, u64::from(pipes) - 1) as u32,
                queue: if random.one_in(30) { 3 } else { 12 } + random.between(0, 3) as u32,
                colour: 0,
            };
            events.push(Event::Enqueue(place, random.between(100, 1_522) as u32));
        }
        events.push(Event::Call(step * 250_000, 8));
    }
    (port, spec, events)
}

fn load(random: &mut Random, spec: &HqosSpec, port: u64) -> Vec<Event> {
    let (mut events, mut nanos) = (Vec::new(), 0);
    let (calls, burst) = (random.between(20, 400), 1 << random.between(0, 6));
    // Arrivals between two calls, and time in frames: from less than the port sends to more.
    let arrivals = random.magnitude(1, burst);
    let frames = random.magnitude(1, 8 * burst);
    // All queues, or few.
    let spread = random.between(1, QUEUES as u64);
    let pipes = random.magnitude(1, 4096);
    let fixed_bytes = random.one_in(3).then(|| random.between(40, 1522));
    for _ in 0..calls {
        for _ in 0..random.between(0, arrivals) {
            let subport = random.between(0, spec.subports.len() as u64 - 1) as u32;
            let queues = &spec.subports[subport as usize];
            let place = HqosPlace {
                subport,
                pipe: random.between(0, u64::from(queues.pipes).min(pipes) - 1) as u32,
                queue: (QUEUES as u64 - random.between(1, spread)) as u32,
                colour: random.between(0, 2) as u32,
            };
            let class = (place.queue as usize).min(BEST_EFFORT);
            if queues.queue_sizes[class] == 0 && !random.one_in(20) {
                continue;
            }
            let bytes = fixed_bytes.unwrap_or_else(|| random.between(40, 1522));
            events.push(Event::Enqueue(place, bytes as u32));
        }
        let step = match random.between(0, 40) {
            0 => LONGEST_STEP,
            1..4 => 0,
            _ => random.between(0, frames * 1_600).min(LONGEST_STEP),
        };
        nanos += step * 1_000_000_000 / port;
        events.push(Event::Call(nanos, random.between(1, burst) as u32));
    }
    events
}
