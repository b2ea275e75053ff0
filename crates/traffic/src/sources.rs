//! The sources of a study: what it says of a source, put in terms of departures.

use crate::{
    Cbr, Iperf3, Iperf3Params, OnOff, Pace, Pattern, Poisson, Random, Replay, ReplayError, Source,
    Timeline,
};
use slicewise_study::{HostParams, PatternParams, RunError, SourceParams};
use slicewise_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Why there is no source for what a study says.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Its packets are never due.
    #[error("source `{0}` has a rate of zero")]
    RateZero(String),
    /// It pauses all the time.
    #[error("source `{0}` is never on")]
    NeverOn(String),
    /// The capture to replay cannot be opened.
    #[error("{}: {error}", path.display())]
    Unopened {
        /// The capture.
        path: PathBuf,
        /// What the system answered.
        error: io::Error,
    },
    /// The capture cannot be replayed.
    #[error("{}: {error}", path.display())]
    Replay {
        /// The capture.
        path: PathBuf,
        /// What is wrong with it.
        error: ReplayError,
    },
}

impl From<SourceError> for RunError {
    fn from(error: SourceError) -> Self {
        let input = |path: &Path, problem| Self::Input {
            path: path.display().to_string(),
            problem,
        };
        match &error {
            SourceError::RateZero(_) | SourceError::NeverOn(_) => Self::Failed(error.to_string()),
            SourceError::Unopened { path, error } => input(path, error.to_string()),
            SourceError::Replay { path, error } => input(path, error.to_string()),
        }
    }
}

/// Makes sources of what a study says. One serves all runs and threads: it reads each capture to
/// replay once and keeps its times.
#[derive(Debug, Default)]
pub struct Sources {
    timelines: Mutex<BTreeMap<PathBuf, Timeline>>,
    /// What the source of a name sends instead of what a study says.
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
    /// `seed`, which is its own ([`RunSpec::source_seed`](slicewise_study::RunSpec::source_seed)): so it
    /// sends the same packets in every run of a repetition, whoever sends them. Time zero is the start of
    /// the run.
    ///
    /// # Errors
    /// Where no packet would ever be due, or the capture to replay cannot be used.
    pub fn source(
        &self,
        params: &SourceParams,
        hosts: &HostParams,
        seed: u64,
    ) -> Result<Source, SourceError> {
        let random = Random::stream(seed, 0);
        if let Some(timeline) = self.sent.get(&params.name) {
            let pattern = Pattern::Replay(Replay::new(timeline.clone()));
            let (start, end) = (Instant::ZERO, Instant::ZERO.saturating_add(Duration::MAX));
            return Ok(Source::new(pattern, start, Duration::ZERO, end, random));
        }
        Ok(Source::new(
            self.pattern(params, hosts)?,
            Instant::ZERO.saturating_add(params.start),
            params.start_spread,
            Instant::ZERO.saturating_add(params.stop),
            random,
        ))
    }

    fn pattern(&self, params: &SourceParams, hosts: &HostParams) -> Result<Pattern, SourceError> {
        let pace = |slower_ppb| {
            Pace::slower(params.counted_bytes, params.rate, slower_ppb)
                .ok_or_else(|| SourceError::RateZero(params.name.clone()))
        };
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
            PatternParams::Cbr => {
                let slower_ppb = hosts.cbr_slowness_ppb(params.machine);
                Pattern::Cbr(Cbr::new(pace(slower_ppb)?))
            }
            PatternParams::Poisson => Pattern::Poisson(Poisson::new(&pace(0)?)),
            PatternParams::Replay { pcap } => Pattern::Replay(Replay::new(self.timeline(pcap)?)),
        };
        let Some(on_off) = params.on_off else {
            return Ok(pattern);
        };
        let gated = OnOff::new(pattern, on_off.on, on_off.off)
            .ok_or_else(|| SourceError::NeverOn(params.name.clone()))?;
        Ok(Pattern::OnOff(Box::new(gated)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_capture::write::{PcapngParams, PcapngWriter};
    use slicewise_study::{OnOffParams, SourceHeaders};
    use slicewise_units::BitRate;
    use std::net::{IpAddr, Ipv4Addr};

    const HOST: HostParams = HostParams {
        timer: Duration::from_millis(1),
        clock_drift_ppb: 1_000_000,
        timer_slack: Duration::from_micros(50),
        send_cost: Duration::from_micros(15),
        interrupt_moderation: Duration::ZERO,
    };

    fn params(pattern: PatternParams) -> SourceParams {
        SourceParams {
            name: "voice".to_owned(),
            machine: 0,
            slice: 0,
            headers: SourceHeaders {
                vlan: None,
                inner_vlan: None,
                source: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
                destination: IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1)),
                protocol: 17,
                source_port: 1024,
                destination_port: 5201,
                dscp: 46,
            },
            payload_bytes: 1250,
            l2_bytes: 1292,
            rate: BitRate::new(10_000_000),
            counted_bytes: 1250,
            pattern,
            on_off: None,
            start: Duration::from_millis(5),
            stop: Duration::from_millis(105),
            start_spread: Duration::from_millis(1),
        }
    }

    fn departures(mut source: Source) -> Vec<u64> {
        std::iter::from_fn(|| source.next_departure())
            .map(Instant::nanos)
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_departures_and_another_others() {
        for pattern in [
            PatternParams::Iperf3,
            PatternParams::Cbr,
            PatternParams::Poisson,
        ] {
            let params = params(pattern);
            let times =
                |sources: &Sources, seed| departures(sources.source(&params, &HOST, seed).unwrap());
            let one = Sources::new();
            let first = times(&one, 7);
            assert!((50..150).contains(&first.len()), "{}", first.len());
            assert!(first[0] >= 5_000_000 && first[first.len() - 1] < 105_000_000);
            assert_eq!(times(&one, 7), first);
            assert_eq!(times(&Sources::new(), 7), first);
            assert_ne!(times(&one, 8), first);
        }
    }

    /// When a source of 40 s without any randomness sends on each of two machines.
    fn on_two_machines(pattern: &PatternParams) -> [Vec<u64>; 2] {
        let hosts = HostParams {
            timer_slack: Duration::ZERO,
            ..HOST
        };
        [0, 1].map(|machine| {
            let params = SourceParams {
                machine,
                start: Duration::ZERO,
                stop: Duration::from_secs(40),
                start_spread: Duration::ZERO,
                // A packet lasts 0.735 of the timer's milliseconds.
                rate: BitRate::new(13_600_000),
                ..params(pattern.clone())
            };
            departures(Sources::new().source(&params, &hosts, 1).unwrap())
        })
    }

    #[test]
    fn the_timers_of_two_machines_drift_apart_while_iperf3_keeps_its_rate() {
        let times = on_two_machines(&PatternParams::Iperf3);
        for (times, tick) in times.iter().zip([1_001_000, 1_002_000]) {
            // Every packet leaves at a tick, or 15 us after another one of it.
            assert!(times.iter().all(|at| [0, 15_000].contains(&(at % tick))));
            let exact = 40 * 13_600_000 / 10_000;
            assert!(
                (exact - 2..=exact).contains(&times.len()),
                "{}",
                times.len()
            );
        }
        // As many ticks apart as 40 s have milliseconds, times 0.1 %.
        let ticks = times.map(|times| times.last().unwrap() / 1_001_000);
        assert!((39_900..40_000).contains(&ticks[0]), "{ticks:?}");
    }

    #[test]
    fn equal_streams_of_constant_bit_rate_pass_each_other_within_the_tolerance_of_a_crystal() {
        let [one, other] = on_two_machines(&PatternParams::Cbr);
        let exact = 40 * 13_600_000 / 10_000;
        let least = exact - exact * 100 / 1_000_000 - 1;
        for times in [&one, &other] {
            assert!((least..exact).contains(&times.len()), "{}", times.len());
        }
        let apart = one.iter().zip(&other).map(|(a, b)| a.abs_diff(*b));
        assert!(apart.max().unwrap() > 735_000, "not by a packet in 40 s");
    }

    #[test]
    fn a_source_pauses_as_the_study_says() {
        let mut params = params(PatternParams::Cbr);
        params.start_spread = Duration::ZERO;
        params.on_off = Some(OnOffParams {
            on: Duration::from_millis(10),
            off: Duration::from_millis(30),
        });
        let times = departures(Sources::new().source(&params, &HOST, 1).unwrap());
        // Ten packets, a millisecond each, from 5, 45 and 85 ms.
        assert_eq!(times.len(), 30);
        assert_eq!(
            [times[0], times[10], times[20]],
            [5_000_000, 45_000_000, 85_000_000]
        );
    }

    #[test]
    fn what_was_sent_is_sent_again_whatever_the_study_says() {
        let times = |nanos: &[u64]| {
            Timeline::since_start(nanos.iter().copied().map(Duration::from_nanos).collect())
        };
        let named = |name: &str, nanos| (name.to_owned(), times(nanos));
        let sent = [named("silent", &[]), named("voice", &[7, 5, 900_000_000])];
        let sources = Sources::as_sent(sent.into());
        let mut paused = params(PatternParams::Cbr);
        paused.on_off = Some(OnOffParams {
            on: Duration::from_nanos(1),
            off: Duration::from_secs(1),
        });
        let mut sent = |name: &str, sources: &Sources| {
            paused.name = name.to_owned();
            departures(sources.source(&paused, &HOST, 1).unwrap())
        };
        assert_eq!(sent("silent", &sources), [0; 0]);
        assert_eq!(sent("voice", &sources), [5, 7, 900_000_000]);
        assert_eq!(sent("other", &sources), sent("other", &Sources::new()));
    }

    #[test]
    fn refuses_what_would_never_send() {
        let sources = Sources::new();
        let refused =
            |params: &SourceParams| RunError::from(sources.source(params, &HOST, 1).unwrap_err());
        let mut never = params(PatternParams::Poisson);
        never.rate = BitRate::ZERO;
        let error = refused(&never);
        assert!(matches!(error, RunError::Failed(_)));
        insta::assert_snapshot!(error, @"source `voice` has a rate of zero");
        never = params(PatternParams::Cbr);
        never.on_off = Some(OnOffParams {
            on: Duration::ZERO,
            off: Duration::from_secs(1),
        });
        insta::assert_snapshot!(refused(&never), @"source `voice` is never on");
    }

    #[test]
    fn a_capture_to_replay_is_read_once_and_named_where_it_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let pcap = folder.path().join("recorded.pcapng");
        let replay = params(PatternParams::Replay { pcap: pcap.clone() });
        let sources = Sources::new();
        let refused = || RunError::from(sources.source(&replay, &HOST, 1).unwrap_err());
        let named = |error: &RunError| matches!(error, RunError::Input { path, .. } if *path == pcap.display().to_string());
        assert!(named(&refused()), "it is not there");
        std::fs::write(&pcap, b"GIF89a\0\0").unwrap();
        assert!(named(&refused()), "it is no capture");

        let capture = PcapngParams {
            comment: "",
            application: "",
            interface: "",
            snap_bytes: 96,
        };
        let mut writer = PcapngWriter::new(Vec::new(), &capture).unwrap();
        for time_ns in [100, 400, 900] {
            writer.write_packet(time_ns, &[0; 20], 20).unwrap();
        }
        std::fs::write(&pcap, writer.finish().unwrap()).unwrap();
        let times = departures(sources.source(&replay, &HOST, 1).unwrap());
        assert_eq!(times.len(), 3);
        assert_eq!([times[1] - times[0], times[2] - times[0]], [300, 800]);
        std::fs::remove_file(&pcap).unwrap();
        assert_eq!(
            departures(sources.source(&replay, &HOST, 1).unwrap()),
            times
        );
    }
}
