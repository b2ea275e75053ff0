//! How long the queues of devices are, found by looking at them from time to time.

use crate::device::{Forwarding, Plane};
use crate::network::Network;
use crate::observer::Observer;
use crate::port::PortId;
use slicewise_stats::queues::QueueRecord;
use slicewise_study::Study;
use slicewise_units::{Duration, Instant};
use std::collections::BTreeMap;

/// The golden ratio less one, as a fraction of 2³².
const GOLDEN: u64 = 0x9E37_79B9;

/// Looks at the queues of devices.
#[derive(Debug)]
pub(crate) struct QueueLengths<'a> {
    /// The ports of the devices, in the order of the path.
    egress: &'a [PortId],
    /// How often; `None` for never.
    interval: Option<Duration>,
    looks: u64,
    /// Of the whole run, then of each phase.
    spans: Vec<Span>,
}

/// Lengths of queues that were seen.
#[derive(Debug)]
pub(crate) struct QueueLengthRecords {
    pub(crate) of_run: Vec<QueueRecord>,
    /// In the order of the study.
    pub(crate) of_phases: Vec<Vec<QueueRecord>>,
}

#[derive(Debug)]
struct Span {
    from: Instant,
    to: Instant,
    /// By device, and by queue.
    queues: Vec<BTreeMap<String, Lengths>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lengths {
    looks: u64,
    frames: u64,
    largest: u32,
}

impl<'a> QueueLengths<'a> {
    pub(crate) fn new(study: &Study, egress: &'a [PortId]) -> Self {
        let span = |from, to| Span {
            from: Instant::ZERO.saturating_add(from),
            to: Instant::ZERO.saturating_add(to),
            queues: vec![BTreeMap::new(); egress.len()],
        };
        let phases = study.phases.iter();
        let phases = phases.map(|phase| span(phase.measured_from, phase.ends));
        let run = span(Duration::ZERO, study.duration);
        Self {
            egress,
            interval: study.measure.queue_lengths,
            looks: 0,
            spans: [run].into_iter().chain(phases).collect(),
        }
    }

    /// Simulate until `end`, and look on the way.
    pub(crate) fn run_until<O: Observer>(&mut self, network: &mut Network<Plane, O>, end: Instant) {
        while let Some(next) = self.next().filter(|next| *next < end) {
            network.run_until(next);
            self.look(network, next);
            self.looks += 1;
        }
        network.run_until(end);
    }

    /// One look in every interval, each at another place of it, lest all fall into one phase of what is sent periodically: the
    /// fractions of multiples of the golden ratio are spread evenly, however many they are.
    fn next(&self) -> Option<Instant> {
        let interval = self.interval?.nanos();
        let fraction = self.looks.wrapping_mul(GOLDEN) & u64::from(u32::MAX);
        let within = (u128::from(interval) * u128::from(fraction)) >> 32;
        let within = u64::try_from(within).unwrap_or(interval);
        let at = self.looks.checked_mul(interval)?.checked_add(within)?;
        Some(Instant::from_nanos(at))
    }

    fn look<O: Observer>(&mut self, network: &Network<Plane, O>, now: Instant) {
        let spans = self.spans.iter_mut();
        for span in spans.filter(|span| span.from <= now && now < span.to) {
            for (port, queues) in self.egress.iter().zip(&mut span.queues) {
                let Some(plane) = network.forwarding(*port) else {
                    continue;
                };
                for (name, frames) in plane.pipeline().queue_lengths() {
                    match queues.get_mut(name) {
                        Some(lengths) => lengths.add(frames),
                        None => queues.entry(name.to_owned()).or_default().add(frames),
                    }
                }
            }
        }
    }

    pub(crate) fn records(self) -> QueueLengthRecords {
        let mut spans = self.spans.into_iter().map(Span::records);
        QueueLengthRecords {
            of_run: spans.next().unwrap_or_default(),
            of_phases: spans.collect(),
        }
    }
}

impl Span {
    fn records(self) -> Vec<QueueRecord> {
        let devices = (1..).zip(self.queues);
        let records = devices.flat_map(|(device, queues)| {
            let queues = queues.into_iter();
            queues.map(move |(queue, lengths)| lengths.record(device, queue))
        });
        records.collect()
    }
}

impl Lengths {
    fn add(&mut self, frames: u32) {
        self.looks += 1;
        self.frames += u64::from(frames);
        self.largest = self.largest.max(frames);
    }

    fn record(self, device: u32, queue: String) -> QueueRecord {
        QueueRecord {
            device,
            queue,
            looks: self.looks,
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            mean_frames: self.frames as f64 / self.looks.max(1) as f64,
            largest_frames: self.largest,
        }
    }
}
