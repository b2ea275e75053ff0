//! The sources of a study: what it says of a source, put in terms of departures.

use crate::{
    Cbr, HostTiming, Interval, Iperf3, Iperf3Params, Mix, OnOff, Pace, Pattern, PatternParams,
    Periods, Poisson, Random, Replay, ReplayError, Sizes, SizesParams, Source, SourceParams,
    Timeline, WeightedSize,
};
use slicewise_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Streams of random numbers of a source's seed: what its pattern draws, and what the sizes of its
/// packets are drawn from. Impairments of links come after them.
const PATTERN_STREAM: u64 = 0;
const SIZES_STREAM: u64 = 1;
/// Of periods at random: they are the same whatever is sent in them.
const PERIODS_STREAM: u64 = 2;
/// Between the seeds of what a source sends one after the other: 2⁶⁴ divided by the golden ratio.
const PARTS_APART: u64 = 0x9E37_79B9_7F4A_7C15;

/// Why there is no source for what a study says.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Its packets are never due.
    #[error("source `{0}` has a rate of zero")]
    RateZero(String),
    /// It pauses all the time.
    #[error("source `{0}` is never on")]
    NeverOn(String),
    /// None of its sizes has a weight.
    #[error("source `{0}` has packets of no size")]
    NoSize(String),
    /// The capture to replay cannot be opened.
    #[error("{}: {error}", path.display())]
    Unopened {
        /// The capture.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The capture cannot be replayed.
    #[error("{}: {error}", path.display())]
    Replay {
        /// The capture.
        path: PathBuf,
        /// Problem with the capture.
        error: ReplayError,
    },
}

/// Makes sources of what a study says. One serves all runs and threads: it reads each capture to
/// replay once and keeps its times.
#[derive(Debug, Default)]
pub struct Sources {
    timelines: Mutex<BTreeMap<PathBuf, Timeline>>,
    /// Departures, by name of the source, that replace those of the study.
    sent: BTreeMap<String, Timeline>,
}

impl Sources {
    /// With nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sources that send when packets were sent in some run: those that are named here at these times, the
    /// others as the study says.
    #[must_use]
    pub fn as_sent(sent: BTreeMap<String, Timeline>) -> Self {
        Self {
            sent,
            ..Self::default()
        }
    }

    /// The source that `params` describe, on its machine among `hosts`. All that is random in it comes from
    /// `seed`, which is its own: so it
    /// sends the same packets in every run of a repetition, whoever sends them. Time zero is the start of
    /// the run.
    ///
    /// # Errors
    /// Where no packet would ever be due, or the capture to replay cannot be used.
    pub fn source(
        &self,
        params: &SourceParams,
        hosts: &HostTiming,
        seed: u64,
    ) -> Result<Source, SourceError> {
        let random = Random::stream(seed, PATTERN_STREAM);
        if let Some(timeline) = self.sent.get(&params.name) {
            let pattern = Pattern::Replay(Replay::new(timeline.clone()));
            let (start, end) = (Instant::ZERO, Instant::ZERO.saturating_add(Duration::MAX));
            let sizes = match params.sizes {
                SizesParams::Equal => Sizes::Equal(params.largest.l2_bytes),
                SizesParams::Mix(_) | SizesParams::Capture => recorded(params),
            };
            return Ok(Source::new(
                pattern,
                sizes,
                start,
                Duration::ZERO,
                end,
                random,
            ));
        }
        Ok(Source::new(
            self.pattern(params, hosts, seed)?,
            sizes(params, hosts, seed)?,
            Instant::ZERO.saturating_add(params.start),
            params.start_spread,
            Instant::ZERO.saturating_add(params.stop),
            random,
        ))
    }

    /// The source that sends what `params` describe one after the other, each until the next one starts. All are of
    /// one source, whose seed is `seed`.
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn sequence(
        &self,
        params: &[SourceParams],
        hosts: &HostTiming,
        seed: u64,
    ) -> Result<Option<Source>, SourceError> {
        let longest = params.iter().max_by_key(|params| params.largest.l2_bytes);
        if let Some(longest) = longest.filter(|params| self.sent.contains_key(&params.name)) {
            let mut sent = longest.clone();
            if params
                .iter()
                .any(|one| (&one.sizes, one.largest) != (&sent.sizes, sent.largest))
            {
                sent.sizes = SizesParams::Capture;
            }
            return self.source(&sent, hosts, seed).map(Some);
        }
        let mut all: Option<Source> = None;
        for (part, params) in (0u64..).zip(params) {
            // What is random in a later part is not what was random before.
            let next = self.source(params, hosts, seed ^ part.wrapping_mul(PARTS_APART))?;
            all = Some(match all {
                Some(all) => all.followed_by(next),
                None => next,
            });
        }
        Ok(all)
    }

    fn pattern(
        &self,
        params: &SourceParams,
        hosts: &HostTiming,
        seed: u64,
    ) -> Result<Pattern, SourceError> {
        let pace = |slower_ppb| pace(params, params.largest.counted_bytes, slower_ppb);
        let pattern = match &params.pattern {
            // iperf3 sends what is owed of the time that has passed: a slow timer changes when it looks.
            PatternParams::Iperf3 => {
                let host = Iperf3Params {
                    tick: hosts.timer_of(params.machine),
                    timer_slack: hosts.timer_slack,
                    send_cost: hosts.send_cost,
                };
                Pattern::Iperf3(Iperf3::new(pace(0)?, &host))
            }
            PatternParams::Cbr => Pattern::Cbr(Cbr::new(pace(slower_ppb(params, hosts))?)),
            PatternParams::Poisson => Pattern::Poisson(Poisson::new(mean_gap_ns(params)?)),
            PatternParams::Replay { pcap, .. } => {
                let timeline = self.timeline(pcap)?;
                let mtu = params.largest.l2_bytes - u32::from(params.headers.l3_offset());
                if params.sizes == SizesParams::Capture && timeline.longest() > mtu {
                    return Err(SourceError::Replay {
                        path: pcap.clone(),
                        error: ReplayError::AboveMtu {
                            longest: timeline.longest(),
                            mtu,
                        },
                    });
                }
                Pattern::Replay(Replay::new(timeline))
            }
        };
        let Some(on_off) = params.on_off else {
            return Ok(pattern);
        };
        let gated = OnOff::new(pattern, on_off.on, on_off.off)
            .ok_or_else(|| SourceError::NeverOn(params.name.clone()))?;
        Ok(Pattern::OnOff(Box::new(match on_off.periods {
            Periods::Fixed => gated,
            Periods::Exponential => gated.at_random(Random::stream(seed, PERIODS_STREAM)),
        })))
    }

    fn timeline(&self, pcap: &Path) -> Result<Timeline, SourceError> {
        let mut timelines = self
            .timelines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(timeline) = timelines.get(pcap) {
            return Ok(timeline.clone());
        }
        let path = || pcap.to_owned();
        let file = File::open(pcap).map_err(|error| SourceError::Unopened {
            path: path(),
            error,
        })?;
        let timeline = Timeline::read(file).map_err(|error| SourceError::Replay {
            path: path(),
            error,
        })?;
        timelines.insert(path(), timeline.clone());
        Ok(timeline)
    }
}

fn pace(params: &SourceParams, counted_bytes: u32, slower_ppb: u32) -> Result<Pace, SourceError> {
    Pace::slower(counted_bytes, params.rate, slower_ppb)
        .ok_or_else(|| SourceError::RateZero(params.name.clone()))
}

/// By how much the clock that paces a source is slow.
fn slower_ppb(params: &SourceParams, hosts: &HostTiming) -> u32 {
    match params.pattern {
        PatternParams::Cbr => hosts.cbr_slowness_ppb(params.machine),
        PatternParams::Iperf3 | PatternParams::Poisson | PatternParams::Replay { .. } => 0,
    }
}

/// The time between two packets on average: what one of mean size lasts.
fn mean_gap_ns(params: &SourceParams) -> Result<f64, SourceError> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for WeightedSize { size, weight } in params.weighted_sizes() {
        sum += pace(params, size.counted_bytes, 0)?.interval_ns() * f64::from(weight);
        weights += f64::from(weight);
    }
    Ok(sum / weights)
}

fn sizes(params: &SourceParams, hosts: &HostTiming, seed: u64) -> Result<Sizes, SourceError> {
    Ok(match &params.sizes {
        SizesParams::Equal => Sizes::Equal(params.largest.l2_bytes),
        SizesParams::Capture => recorded(params),
        SizesParams::Mix(sizes) => {
            // What is replayed has its own times and no rate.
            let interval = |size: &WeightedSize| match params.pattern {
                PatternParams::Replay { .. } => Ok(Interval::default()),
                _ => pace(params, size.size.counted_bytes, slower_ppb(params, hosts))
                    .map(|pace| pace.interval()),
            };
            let sizes: Vec<_> = sizes
                .iter()
                .map(|sized| Ok((sized.size.l2_bytes, sized.weight, interval(sized)?)))
                .collect::<Result<_, SourceError>>()?;
            let mix = Mix::new(sizes, Random::stream(seed, SIZES_STREAM));
            Sizes::Mix(mix.ok_or_else(|| SourceError::NoSize(params.name.clone()))?)
        }
    })
}

/// The sizes of a recording, as far as the source's own headers fit in them.
fn recorded(params: &SourceParams) -> Sizes {
    Sizes::Recorded {
        l3_offset: params.headers.l3_offset().into(),
        least: params.largest.l2_bytes - params.largest.payload_bytes,
    }
}

#[cfg(test)]
mod tests;
