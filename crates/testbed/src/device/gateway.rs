//! The gateway as the device: `slicewise gateway`, as an operator would run it.

use super::DeviceFacts;
use crate::error::AttemptError;
use crate::hosts::{Hosts, LEFT, RIGHT};
use crate::process::Process;
use slicewise_live::metrics::{self, Samples};
use slicewise_live::sys::namespace;
use slicewise_live::{DirectionParams, EngineParams};
use slicewise_model::{PolicyParams, Rate};
use slicewise_stats::phase::ChangeRecord;
use slicewise_stats::record::DropCount;
use slicewise_stats::testbed::DepartureRecord;
use slicewise_study::DEFAULT_MEMORY;
use slicewise_units::Duration as Span;
use std::process::Command;
use std::time::Duration;

/// No other program listens in the device's namespace.
const METRICS_PORT: u16 = 9640;
const PATIENCE: Duration = Duration::from_secs(20);

/// Why the gateway cannot run a policy in both directions, whatever the interfaces.
pub(super) fn supports(policy: &PolicyParams, link: Rate) -> Result<(), String> {
    let direction = DirectionParams {
        link,
        policy: policy.clone().into(),
        seed: 1,
    };
    EngineParams::at_least([direction.clone(), direction], DEFAULT_MEMORY.bytes())
        .check()
        .map_err(|error| error.to_string())
}

#[derive(Debug)]
pub(crate) struct GatewayDevice {
    process: Process,
    /// The phase of the study that is in force.
    phase: usize,
    /// Later departures are late.
    lateness: Span,
}

impl GatewayDevice {
    /// Start it with a complete command except for the interfaces.
    pub(super) fn start(
        hosts: &Hosts,
        mut command: Command,
        lateness: Span,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        command
            .args(["--interfaces", LEFT, RIGHT])
            .args(["--metrics-port", &METRICS_PORT.to_string()]);
        let mut process = Process::start("the gateway", command, Some(hosts.device()))?;
        process.wait_for("event=started", PATIENCE, is_interrupted)?;
        Ok(Self {
            process,
            phase: 0,
            lateness,
        })
    }

    /// Have it reload the study until phase number `phase` is in force: each reload goes on by a phase.
    pub(super) fn change_to(
        &mut self,
        phase: usize,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<ChangeRecord, AttemptError> {
        let mut change = ChangeRecord::default();
        while self.phase < phase {
            let before = answers(&self.process.lines()).count();
            self.process.reload()?;
            let answer = self.process.wait_until(PATIENCE, is_interrupted, |lines| {
                answers(lines).nth(before).map(change_of)
            })?;
            change = change.and(answer);
            self.phase += 1;
        }
        Ok(change)
    }

    pub(super) fn check(&mut self) -> Result<(), AttemptError> {
        self.process.check()
    }

    pub(super) fn facts(&mut self, hosts: &Hosts) -> Result<DeviceFacts, AttemptError> {
        let read = namespace::open_in(Some(hosts.device()), || {
            metrics::read(METRICS_PORT).map_err(std::io::Error::other)
        });
        match read {
            Ok(samples) => Ok(facts(&samples, self.lateness)),
            Err(error) => {
                // If it has ended, its own output says why it does not answer.
                self.process.check()?;
                Err(AttemptError::Retryable(format!("the gateway: {error}")))
            }
        }
    }
}

/// Returns the lines about reloads.
fn answers(lines: &[String]) -> impl Iterator<Item = &str> {
    let lines = lines.iter().map(String::as_str);
    lines.filter(|line| line.contains("event=reload"))
}

/// Reads the effect of a reload from a line of the log.
fn change_of(line: &str) -> ChangeRecord {
    let field = |name: &str| {
        let value = line.split_once(&format!(" {name}="))?.1;
        Some(value.split(' ').next().unwrap_or(value))
    };
    let number = |name| {
        field(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(0)
    };
    ChangeRecord {
        waiting_frames: number("waiting_frames"),
        lost_frames: number("lost_frames"),
        refused: (line.contains("event=reload_refused")).then(|| {
            let reason = line
                .split_once(" reason=")
                .map_or(line, |(_, reason)| reason);
            reason.to_owned()
        }),
    }
}

/// The counts of the measured direction.
fn facts(samples: &Samples, lateness: Span) -> DeviceFacts {
    let way = format!("{LEFT}>{RIGHT}");
    let frames = samples.sum(
        "slicewise_departure_lateness_seconds_count",
        &[("direction", way.as_str())],
    );
    let lost_link_time = samples.sum(
        "slicewise_lost_link_time_seconds_total",
        &[("direction", way.as_str())],
    );
    let (punctual, late_ns) = punctual(samples, &way, lateness);
    let dropped = samples.of("slicewise_class_dropped_frames_total");
    let drops = dropped
        .filter(|sample| sample.label("direction") == way)
        .map(|sample| DropCount {
            class: sample.label("class").to_owned(),
            reason: sample.label("reason").to_owned(),
            frames: count(sample.value),
        });
    let packet_io = samples
        .of("slicewise_interface_up")
        .find(|sample| sample.label("interface") == LEFT)
        .map_or("", |sample| sample.label("packet_io"));
    DeviceFacts {
        description: format!("Slicewise gateway, {packet_io}"),
        departures: Some(DepartureRecord {
            frames: count(frames),
            late_frames: count(frames - punctual),
            late_ns,
            lost_link_time_ns: count(lost_link_time * 1e9),
        }),
        drops: drops.collect(),
        missed_frames: count(samples.sum(
            "slicewise_interface_lost_frames_total",
            &[("interface", LEFT), ("reason", "ring_full")],
        )),
    }
}

/// Frames that left no later than the highest end of the gateway's buckets that is not above `lateness` (or the lowest of
/// all), and that end, ns.
fn punctual(samples: &Samples, way: &str, lateness: Span) -> (f64, u64) {
    let buckets = samples.of("slicewise_departure_lateness_seconds_bucket");
    let ends = buckets
        .filter(|bucket| bucket.label("direction") == way)
        .filter_map(|bucket| {
            let seconds: f64 = bucket.label("le").parse().ok()?;
            seconds
                .is_finite()
                .then(|| (count((seconds * 1e9).round()), bucket.value))
        });
    let ends: Vec<(u64, f64)> = ends.collect();
    let allowed = ends.iter().filter(|(end, _)| *end <= lateness.nanos());
    let lowest = ends.iter().min_by_key(|(end, _)| *end);
    let chosen = allowed.max_by_key(|(end, _)| *end).or(lowest);
    chosen.map_or((0.0, lateness.nanos()), |&(end, frames)| (frames, end))
}

/// A counter; OpenMetrics represents it as a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are whole and far below 2^53"
)]
fn count(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = r#"# TYPE slicewise_interface info
slicewise_interface_up{interface="left",packet_io="af_packet"} 1
slicewise_interface_up{interface="right",packet_io="af_xdp_native"} 1
slicewise_interface_lost_frames_total{interface="left",reason="ring_full"} 3
slicewise_interface_lost_frames_total{interface="left",reason="too_long"} 20
slicewise_interface_lost_frames_total{interface="right",reason="ring_full"} 100
slicewise_departure_lateness_seconds_bucket{direction="left>right",le="0.00001"} 10
slicewise_departure_lateness_seconds_bucket{direction="left>right",le="0.0001"} 990
slicewise_departure_lateness_seconds_bucket{direction="left>right",le="+Inf"} 1000
slicewise_departure_lateness_seconds_count{direction="left>right"} 1000
slicewise_departure_lateness_seconds_bucket{direction="right>left",le="0.0001"} 0
slicewise_departure_lateness_seconds_count{direction="right>left"} 50
slicewise_lost_link_time_seconds_total{direction="left>right"} 0.002000001
slicewise_lost_link_time_seconds_total{direction="right>left"} 1.5
slicewise_class_dropped_frames_total{direction="left>right",class="gold",reason="policed"} 5
slicewise_class_dropped_frames_total{direction="left>right",class="rest",reason="queue_full"} 7
slicewise_class_dropped_frames_total{direction="right>left",class="rest",reason="queue_full"} 9
# EOF
"#;

    #[test]
    fn facts_cover_the_measured_direction() {
        let facts = facts(&Samples::parse(METRICS), Span::from_micros(100));
        assert_eq!(facts.description, "Slicewise gateway, af_packet");
        assert_eq!(facts.missed_frames, 3);
        let departures = DepartureRecord {
            frames: 1_000,
            late_frames: 10,
            late_ns: 100_000,
            lost_link_time_ns: 2_000_001,
        };
        assert_eq!(facts.departures, Some(departures));
        let drops: Vec<(&str, &str, u64)> = (facts.drops.iter())
            .map(|drop| (drop.class.as_str(), drop.reason.as_str(), drop.frames))
            .collect();
        assert_eq!(drops, [("gold", "policed", 5), ("rest", "queue_full", 7)]);
    }

    #[test]
    fn frames_are_late_from_an_end_of_the_buckets_on_that_is_allowed() {
        let late = |micros| {
            let facts = facts(&Samples::parse(METRICS), Span::from_micros(micros));
            let departures = facts.departures.unwrap();
            (departures.late_frames, departures.late_ns)
        };
        assert_eq!(late(99), (990, 10_000));
        assert_eq!(late(2_000), (10, 100_000));
        assert_eq!(late(1), (990, 10_000), "there is no lower end");
    }

    #[test]
    fn a_reload_says_what_it_did_to_frames_or_why_it_was_refused() {
        let lines = [
            "time=1 level=info event=started pid=7",
            "time=2 level=info event=reloaded waiting_frames=12 lost_frames=1",
            "time=3 level=warn event=reload_refused reason=\"no file\" so=nothing",
        ];
        let lines = lines.map(str::to_owned);
        let changes: Vec<ChangeRecord> = answers(&lines).map(change_of).collect();
        assert_eq!((changes[0].waiting_frames, changes[0].lost_frames), (12, 1));
        assert_eq!(changes[0].refused, None);
        assert_eq!(
            changes[1].refused.as_deref(),
            Some("\"no file\" so=nothing")
        );
    }

    #[test]
    fn a_gateway_without_metrics_gives_zeros() {
        let facts = facts(&Samples::parse("garbage {"), Span::from_micros(100));
        assert_eq!((facts.missed_frames, facts.drops.len()), (0, 0));
        assert_eq!(
            facts.departures.map(|departures| departures.frames),
            Some(0)
        );
    }
}
