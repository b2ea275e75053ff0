//! Runs of slices by the thousand: one port, its scheduler, and slices that send in bursts or
//! never stop.
//!
//! Hosts, headers and classifier are left out: at this scale they would be most of the work, and
//! only the scheduler is studied. Delay is from the moment a frame arrives at the scheduler
//! to its last bit on the link. The offered traffic does not depend on the policy.

use crate::link::Transmitter;
use crate::run::{collector, failed, unsupported};
use slicewise_dataplane::guaranteed::{Guaranteed, READ_AHEAD, Selection, SliceId};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_dataplane::{DropReason, Frame};
use slicewise_model::{
    Colour, DelayRange, Discipline, GuaranteedParams, PolicyParams, SliceParams, TenantParams,
};
use slicewise_stats::collect::RunCollector;
use slicewise_stats::record::{DropCount, PopulationRecord, RunRecord, SchedulerFigures};
use slicewise_study::{
    BACKLOG_FRAMES, MAX_WAITING_FRAMES, PopulationPatternParams, RunError, RunSpec, Study,
};
use slicewise_traffic::Random;
use slicewise_units::{Accounting, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;
use std::collections::BTreeMap;

/// Bytes before the IP header of every frame.
const L3_OFFSET: u8 = 14;

/// Carry out one run of a study of populations.
pub(crate) fn run(study: &Study, run: &RunSpec) -> Result<RunRecord, RunError> {
    let unknown = || RunError::UnknownRun(*run);
    let key = run.key(study).ok_or_else(unknown)?;
    let policy = &study.policies.get(run.policy).ok_or_else(unknown)?.params;
    let scenario = study.scenarios.get(run.scenario).ok_or_else(unknown)?;
    let collector = collector(study, run.scenario)?;
    let mut port = Port::new(study, policy, &scenario.populations, collector)?;
    port.offer(study, run);
    port.run();
    let populations = port.records(study);
    let drops = port.drops(study);
    let mut record = port.collector.finish(key, drops);
    record.populations = populations;
    // Delay is measured from the scheduler on, so it is the time in the scheduler.
    for slice in &mut record.slices {
        slice.scheduler = (slice.whole.delay.samples > 0).then_some(SchedulerFigures {
            delay_max_ns: slice.whole.delay.max_ns,
            after_eligible_max_ns: None,
        });
    }
    Ok(record)
}

/// State that all slices of a population have in common.
#[derive(Debug)]
struct Population {
    /// Index of the slice it is measured as.
    measured_as: usize,
    frame_bytes: u32,
    pattern: PopulationPatternParams,
    first: u32,
    count: u32,
    /// Frames that may wait in each slice.
    waiting_frames: u32,
    /// When its next burst comes; never for a backlog.
    next_burst: Instant,
    dropped: BTreeMap<&'static str, u64>,
}

/// A port with its scheduler.
struct Port {
    scheduler: Guaranteed,
    largest_frame: u64,
    pool: FramePool,
    link: Transmitter,
    populations: Vec<Population>,
    /// Of each slice: its weight, and the bytes it has sent while traffic was offered.
    weights: Vec<u32>,
    sent_bytes: Vec<u64>,
    collector: RunCollector,
    end: Instant,
}

impl Port {
    fn new(
        study: &Study,
        policy: &PolicyParams,
        counts: &[u32],
        collector: RunCollector,
    ) -> Result<Self, RunError> {
        let common = common_params(policy)?;
        let total: u32 = counts.iter().fold(0, |sum, n| sum.saturating_add(*n));
        let mut scheduler = Guaranteed::new(&common, total as usize);
        let mut populations = Vec::new();
        let mut weights = Vec::with_capacity(total as usize);
        for (params, &count) in study.populations.iter().zip(counts) {
            let name = study
                .slices
                .get(params.slice)
                .map_or("", |s| s.name.as_str());
            let class = policy.classes.iter().find(|class| class.name == name);
            let class = class.ok_or_else(|| {
                RunError::Failed(format!("policy `{}` has no class `{name}`", policy.name))
            })?;
            if !class.queue.keeps_order() {
                return Err(RunError::Failed(format!(
                    "class `{name}` has a flow queue, but each slice of a population is one flow"
                )));
            }
            let best_effort = SliceParams {
                guarantee: None,
                maximum: None,
                weight: class.weight,
                tenant: 0,
                queue_limit: class.queue.limit,
            };
            let slice = class.slice.unwrap_or(best_effort);
            let first = u32::try_from(weights.len()).unwrap_or(u32::MAX);
            for number in 0..count as usize {
                let own = params.weights.get(number % params.weights.len().max(1));
                let weight = own.copied().unwrap_or(slice.weight);
                let slice = SliceParams { weight, ..slice };
                scheduler.add_slice(&slice, Instant::ZERO).map_err(failed)?;
                weights.push(weight);
            }
            populations.push(Population {
                measured_as: params.slice,
                frame_bytes: params.frame_bytes,
                pattern: params.pattern,
                first,
                count,
                waiting_frames: params.waiting_frames(slice.queue_limit.packets),
                next_burst: Instant::MAX,
                dropped: BTreeMap::new(),
            });
        }
        Ok(Self {
            scheduler,
            largest_frame: common.largest_frame.bytes(),
            pool: FramePool::with_capacity(pool_frames(&populations)?),
            link: Transmitter::new(study.dut.port_rate),
            sent_bytes: vec![0; weights.len()],
            weights,
            populations,
            collector,
            end: Instant::ZERO.saturating_add(study.duration),
        })
    }

    /// Fill the backlogs, and draw when the bursts of each population begin: somewhere within
    /// their period, all slices of it at the same moment.
    fn offer(&mut self, study: &Study, run: &RunSpec) {
        for number in 0..self.populations.len() {
            match self.populations[number].pattern {
                PopulationPatternParams::Backlog => {
                    self.burst(number, BACKLOG_FRAMES, Instant::ZERO);
                }
                PopulationPatternParams::Bursts { every, .. } => {
                    let slice = study.slices.get(self.populations[number].measured_as);
                    let seed = run.source_seed(slice.map_or("", |slice| &slice.name));
                    let phase = Random::stream(seed, 0).below(every.min(study.duration).nanos());
                    self.populations[number].next_burst = Instant::from_nanos(phase);
                }
            }
        }
    }

    /// Every slice of a population gets `frames` frames.
    fn burst(&mut self, number: usize, frames: u32, now: Instant) {
        let (first, count) = (
            self.populations[number].first,
            self.populations[number].count,
        );
        for id in first..first.saturating_add(count) {
            for _ in 0..frames {
                self.arrive(number, id, now);
            }
        }
    }

    fn arrive(&mut self, number: usize, id: u32, now: Instant) {
        let population = &mut self.populations[number];
        let bytes = population.frame_bytes;
        self.collector
            .on_sent(population.measured_as, false, now, bytes);
        let queued = QueuedFrame::new(
            &Frame {
                handle: 0,
                lengths: FrameLengths {
                    l2_bytes: bytes,
                    l3_offset: L3_OFFSET,
                },
                traffic_class: TrafficClass::DEFAULT,
                colour: Colour::Green,
            },
            u32::try_from(number).unwrap_or(u32::MAX),
            now,
            0,
        );
        let accepted = self
            .scheduler
            .try_enqueue(SliceId::new(id), queued, &mut self.pool);
        if let Err(reason) = accepted {
            self.collector.on_lost(population.measured_as, now, bytes);
            *population
                .dropped
                .entry(DropReason::name(reason))
                .or_default() += 1;
        }
    }

    /// Bursts up to `now`, in order of time.
    fn bursts_until(&mut self, now: Instant) {
        while let Some((number, at)) = self.next_burst()
            && at <= now
        {
            if let PopulationPatternParams::Bursts { frames, every } =
                self.populations[number].pattern
            {
                self.burst(number, frames, at);
                let next = at.saturating_add(every);
                self.populations[number].next_burst =
                    if next < self.end { next } else { Instant::MAX };
            }
        }
    }

    fn next_burst(&self) -> Option<(usize, Instant)> {
        let bursts = self.populations.iter().enumerate();
        bursts
            .map(|(number, population)| (number, population.next_burst))
            .filter(|(_, at)| *at < self.end)
            .min_by_key(|(_, at)| *at)
    }

    /// Send until no more traffic is offered and no frame waits.
    fn run(&mut self) {
        let mut until_read_ahead = 0;
        let mut now = Instant::ZERO;
        loop {
            now = now.max(self.link.free_at());
            self.bursts_until(now);
            if until_read_ahead == 0 {
                until_read_ahead = READ_AHEAD;
                self.scheduler.departures_ahead(&self.pool, now);
            }
            until_read_ahead -= 1;
            let next_burst = self.next_burst().map(|(_, at)| at);
            match self.scheduler.select(&self.pool, now) {
                Selection::Ready(selected) => {
                    let (id, guaranteed) = (selected.slice, selected.guaranteed);
                    let queued = self.scheduler.take(id, guaranteed, &mut self.pool, now);
                    self.send(id, &queued, now);
                }
                Selection::Wait(until) => now = next_burst.map_or(until, |at| at.min(until)),
                Selection::Empty => match next_burst {
                    Some(at) => now = at,
                    None => return,
                },
            }
        }
    }

    fn send(&mut self, id: SliceId, queued: &QueuedFrame, now: Instant) {
        let lengths = queued.lengths();
        let done = self.link.send(lengths, now);
        let number = queued.class() as usize;
        let population = &self.populations[number];
        let bytes = lengths.l2_bytes;
        self.collector
            .on_received(population.measured_as, None, queued.arrival(), done, bytes);
        if now < self.end {
            if let Some(sent) = self.sent_bytes.get_mut(id.index() as usize) {
                *sent += u64::from(bytes);
            }
            if population.pattern == PopulationPatternParams::Backlog {
                self.arrive(number, id.index(), now);
            }
        }
    }

    fn records(&self, study: &Study) -> Vec<PopulationRecord> {
        let record = |population: &Population| {
            let first = population.first as usize;
            let own = first..first + population.count as usize;
            let per_weight = self.sent_bytes[own.clone()]
                .iter()
                .zip(&self.weights[own])
                .map(|(bytes, weight)| bytes / u64::from(*weight));
            PopulationRecord {
                slice: study
                    .slices
                    .get(population.measured_as)
                    .map(|slice| slice.name.clone())
                    .unwrap_or_default(),
                slices: population.count,
                backlogged: population.pattern == PopulationPatternParams::Backlog,
                least_bytes_per_weight: per_weight.clone().min().unwrap_or(0),
                most_bytes_per_weight: per_weight.max().unwrap_or(0),
                turn_bytes: self.largest_frame,
                state_bytes: Guaranteed::bytes_per_slice() as u64,
            }
        };
        self.populations.iter().map(record).collect()
    }

    fn drops(&self, study: &Study) -> Vec<DropCount> {
        let of = |population: &Population| {
            let name = study.slices.get(population.measured_as);
            let class = name.map(|slice| slice.name.clone()).unwrap_or_default();
            let drops = population.dropped.clone().into_iter();
            drops
                .map(move |(reason, frames)| DropCount {
                    class: class.clone(),
                    reason: reason.to_owned(),
                    frames,
                })
                .collect::<Vec<_>>()
        };
        self.populations.iter().flat_map(of).collect()
    }
}

/// Parameters common to all slices: under deficit round robin nothing is guaranteed, so the
/// remaining capacity is the whole capacity and is shared by weight.
fn common_params(policy: &PolicyParams) -> Result<GuaranteedParams, RunError> {
    match (policy.discipline, &policy.guaranteed) {
        (Discipline::Guaranteed, Some(common)) => Ok(common.clone()),
        (Discipline::DeficitRoundRobin, _) => Ok(GuaranteedParams {
            accounting: Accounting::L2,
            largest_frame: ByteCount::new(1522),
            delays: DelayRange::new(Duration::from_micros(10), Duration::from_millis(10)),
            tenants: vec![TenantParams {
                name: "all".to_owned(),
                weight: 1,
            }],
        }),
        _ => Err(unsupported(&format!(
            "populations under policy `{}`: its discipline is neither `guaranteed` nor \
             `deficit_round_robin`",
            policy.name
        ))),
    }
}

/// Maximum number of waiting frames.
fn pool_frames(populations: &[Population]) -> Result<u32, RunError> {
    let frames = populations.iter();
    let frames = frames.fold(0u64, |sum, population| {
        sum.saturating_add(u64::from(population.count) * u64::from(population.waiting_frames))
    });
    u32::try_from(frames)
        .ok()
        .filter(|frames| *frames <= MAX_WAITING_FRAMES)
        .ok_or_else(|| {
            RunError::Failed(format!(
                "up to {frames} frames may wait, more than the {MAX_WAITING_FRAMES} there is room for"
            ))
        })
}
