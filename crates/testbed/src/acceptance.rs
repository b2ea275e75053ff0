//! Limits a run on real packets must meet to be accepted: otherwise it measured the machine, not the
//! device.

use slicewise_stats::testbed::TestbedRecord;

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thresholds {
    /// Largest share of processor time taken by the host (steal).
    pub(crate) steal_ratio: f64,
    /// Least idle share of processor time.
    pub(crate) idle_ratio: f64,
    /// 99th percentile of the lateness of our own senders, ns.
    pub(crate) sender_lateness_p99_ns: u64,
    /// Least share of its load that a slice must send.
    pub(crate) offered_ratio: f64,
    /// Longest time in which an iperf3 source sends nothing, ns.
    pub(crate) pause_ns: u64,
    /// Largest share of late departures from the device.
    pub(crate) late_departures_ratio: f64,
    /// Median of the idle baseline, ns.
    pub(crate) baseline_p50_ns: u64,
    /// 99th percentile of the idle baseline, ns.
    pub(crate) baseline_p99_ns: u64,
    /// Attempts per run.
    pub(crate) attempts: u32,
}

impl Default for Thresholds {
    /// A source that stalls for 10 ms then sends its backlog at once and delays its own packets. A
    /// sender within 1 ms is as punctual as iperf3, which has a 1 ms timer. Late departures shift an
    /// equal share of delays, so 0.5 % hardly changes a 99th percentile; steal is over all processors,
    /// of which one matters at a time. If the processors are never idle, everything waits for everything
    /// else.
    fn default() -> Self {
        Self {
            steal_ratio: 0.01,
            idle_ratio: 0.05,
            sender_lateness_p99_ns: 1_000_000,
            offered_ratio: 0.99,
            pause_ns: 10_000_000,
            late_departures_ratio: 0.005,
            baseline_p50_ns: 500_000,
            baseline_p99_ns: 1_000_000,
            attempts: 8,
        }
    }
}

impl Thresholds {
    /// Limits in a lab, whose device and links may delay packets even when they are idle.
    pub(crate) fn in_lab() -> Self {
        Self {
            baseline_p50_ns: u64::MAX,
            baseline_p99_ns: u64::MAX,
            ..Self::default()
        }
    }
}

/// A violated limit of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Objection {
    /// Description.
    pub(crate) why: String,
    /// The machine was noisy: the measurement is complete, but not of the device alone. Otherwise
    /// something was not measured at all.
    pub(crate) is_noise: bool,
}

impl Objection {
    fn noise(why: String) -> Self {
        Self {
            why,
            is_noise: true,
        }
    }

    fn gap(why: String) -> Self {
        Self {
            why,
            is_noise: false,
        }
    }
}

/// All violated limits of a run. `missed_frames` are those that a capture or the device never saw.
pub(crate) fn objections(
    live: &TestbedRecord,
    missed_frames: u64,
    most: &Thresholds,
) -> Vec<Objection> {
    let mut found = Vec::new();
    if missed_frames > 0 {
        found.push(Objection::gap(format!(
            "{missed_frames} frames were missed by the device or a capture"
        )));
    }
    // Without a UDP source there is nothing to probe.
    if live.baseline.samples == 0 && live.baseline.sent_frames > 0 {
        found.push(Objection::gap(
            "no packet passed the idle device".to_owned(),
        ));
    }
    found.extend(noise(live, most).map(Objection::noise));
    found
}

/// Message for a host that took too much processor time.
pub(crate) fn stolen(ratio: f64, most: &Thresholds) -> String {
    format!(
        "steal was {} of processor time (limit {})",
        percent(ratio),
        percent(most.steal_ratio)
    )
}

fn percent(ratio: f64) -> String {
    format!("{:.2} %", 100.0 * ratio)
}

fn noise(live: &TestbedRecord, most: &Thresholds) -> impl Iterator<Item = String> {
    let micros = |ns: u64| format!("{} µs", ns / 1_000);
    let steal = (live.steal_ratio > most.steal_ratio).then(|| stolen(live.steal_ratio, most));
    let idle = (live.idle_ratio < most.idle_ratio).then(|| {
        format!(
            "the processors were idle for only {} of the time (at least {} required)",
            percent(live.idle_ratio),
            percent(most.idle_ratio)
        )
    });
    let baseline = [
        ("median", live.baseline.p50_ns, most.baseline_p50_ns),
        (
            "99th-percentile",
            live.baseline.p99_ns,
            most.baseline_p99_ns,
        ),
    ];
    let baseline = (baseline.into_iter())
        .filter(|(_, took, allowed)| took > allowed)
        .map(move |(quantile, took, allowed)| {
            format!(
                "{quantile} delay through the idle device was {} (limit {})",
                micros(took),
                micros(allowed)
            )
        });
    let late = (live.senders.iter())
        .filter(|sender| sender.lateness_p99_ns > most.sender_lateness_p99_ns)
        .map(move |sender| {
            format!(
                "the sender of {} was late by {} at the 99th percentile (limit {})",
                sender.source,
                micros(sender.lateness_p99_ns),
                micros(most.sender_lateness_p99_ns)
            )
        });
    let offered = (live.least_offered_ratio < most.offered_ratio).then(|| {
        format!(
            "a slice sent only {} of its load (at least {} required)",
            percent(live.least_offered_ratio),
            percent(most.offered_ratio)
        )
    });
    let pause = (live.longest_pause_ns > most.pause_ns).then(|| {
        format!(
            "an iperf3 source sent nothing for {} beyond its period (limit {})",
            micros(live.longest_pause_ns),
            micros(most.pause_ns)
        )
    });
    let departures = (live.departures)
        .filter(|departures| departures.late_ratio() > most.late_departures_ratio)
        .map(|departures| {
            format!(
                "{} of departures were later than {} (limit {})",
                percent(departures.late_ratio()),
                micros(departures.late_ns),
                percent(most.late_departures_ratio)
            )
        });
    steal
        .into_iter()
        .chain(idle)
        .chain(baseline)
        .chain(late)
        .chain(offered)
        .chain(pause)
        .chain(departures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use slicewise_stats::testbed::{DepartureRecord, IdleBaseline, SenderRecord};

    /// A run exactly at the limits.
    fn at_the_limits() -> TestbedRecord {
        let most = Thresholds::default();
        let sender = |source: &str| SenderRecord {
            source: source.to_owned(),
            sent_frames: 1_000,
            refused_frames: 0,
            lateness_p50_ns: 0,
            lateness_p99_ns: most.sender_lateness_p99_ns,
            lateness_max_ns: 9_000_000,
        };
        TestbedRecord {
            device: "a gateway".to_owned(),
            began_ns: 0,
            rejected: Vec::new(),
            tolerated: Vec::new(),
            baseline: IdleBaseline {
                sent_frames: 100,
                samples: 99,
                p50_ns: most.baseline_p50_ns,
                p99_ns: most.baseline_p99_ns,
                max_ns: 9_000_000,
            },
            steal_ratio: most.steal_ratio,
            idle_ratio: most.idle_ratio,
            longest_pause_ns: most.pause_ns,
            least_offered_ratio: most.offered_ratio,
            senders: vec![sender("critical"), sender("on-off")],
            clocks: None,
            departures: Some(DepartureRecord {
                frames: 1_000,
                late_frames: 5,
                late_ns: 100_000,
                lost_link_time_ns: 0,
            }),
            versions: Vec::new(),
        }
    }

    /// Its violations, one per line; those that are not noise are marked.
    fn said(missed_frames: u64, change: impl FnOnce(&mut TestbedRecord)) -> String {
        let mut live = at_the_limits();
        change(&mut live);
        let found = objections(&live, missed_frames, &Thresholds::default());
        let lines: Vec<String> = found
            .into_iter()
            .map(|one| match one.is_noise {
                true => one.why,
                false => format!("! {}", one.why),
            })
            .collect();
        lines.join("\n")
    }

    #[test]
    fn a_run_exactly_at_the_limits_is_accepted() {
        assert_eq!(said(0, |_| ()), "");
    }

    #[test]
    fn one_step_beyond_a_limit_is_reported() {
        assert_snapshot!(said(1, |_| ()), @"! 1 frames were missed by the device or a capture");
        assert_snapshot!(said(0, |live| live.baseline.samples = 0), @"! no packet passed the idle device");
        assert_snapshot!(said(0, |live| live.steal_ratio = 0.0112), @"steal was 1.12 % of processor time (limit 1.00 %)");
        assert_snapshot!(said(0, |live| live.idle_ratio = 0.03), @"the processors were idle for only 3.00 % of the time (at least 5.00 % required)");
        assert_snapshot!(said(0, |live| live.baseline.p50_ns = 501_000), @"median delay through the idle device was 501 µs (limit 500 µs)");
        assert_snapshot!(said(0, |live| live.baseline.p99_ns = 1_001_000), @"99th-percentile delay through the idle device was 1001 µs (limit 1000 µs)");
        assert_snapshot!(said(0, |live| live.senders[1].lateness_p99_ns += 1_000), @"the sender of on-off was late by 1001 µs at the 99th percentile (limit 1000 µs)");
        assert_snapshot!(said(0, |live| live.least_offered_ratio = 0.76), @"a slice sent only 76.00 % of its load (at least 99.00 % required)");
        assert_snapshot!(said(0, |live| live.longest_pause_ns += 1_000_000), @"an iperf3 source sent nothing for 11000 µs beyond its period (limit 10000 µs)");
        assert_snapshot!(said(0, |live| live.departures.as_mut().unwrap().late_frames += 1), @"0.60 % of departures were later than 100 µs (limit 0.50 %)");
    }

    #[test]
    fn every_violation_is_reported() {
        let all = said(2, |live| {
            live.steal_ratio = 1.0;
            for sender in &mut live.senders {
                sender.lateness_p99_ns = 2_000_000;
            }
        });
        assert_snapshot!(all, @r"
        ! 2 frames were missed by the device or a capture
        steal was 100.00 % of processor time (limit 1.00 %)
        the sender of critical was late by 2000 µs at the 99th percentile (limit 1000 µs)
        the sender of on-off was late by 2000 µs at the 99th percentile (limit 1000 µs)
        ");
    }

    #[test]
    fn no_probe_is_missed_if_none_was_sent() {
        let without_probes = said(0, |live| live.baseline = IdleBaseline::default());
        assert_eq!(without_probes, "");
    }
}
