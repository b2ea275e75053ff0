//! What a run on real packets must keep to be taken: otherwise it measured the machine, not the device.

use slicewise_stats::live::LiveRecord;

/// The most that is tolerated in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thresholds {
    /// Share of processor time that the host gave to others (steal).
    pub(crate) steal_ratio: f64,
    /// Share of processor time in which something must be free to run at once.
    pub(crate) idle_ratio: f64,
    /// 99th percentile of the lateness of a sender of ours, ns.
    pub(crate) sender_lateness_p99_ns: u64,
    /// The least share of its load that a slice must send.
    pub(crate) offered_ratio: f64,
    /// The longest time in which a source of iperf3 sends nothing, ns.
    pub(crate) pause_ns: u64,
    /// Share of departures from the device later than it counts as late.
    pub(crate) late_departures_ratio: f64,
    /// Median of the idle baseline, ns.
    pub(crate) baseline_p50_ns: u64,
    /// 99th percentile of the idle baseline, ns.
    pub(crate) baseline_p99_ns: u64,
    /// How often a run is tried.
    pub(crate) attempts: u32,
}

impl Default for Thresholds {
    /// What a source that stood still for 10 ms owes then comes at once, and is delayed by its own burst.
    /// A sender within 1 ms is as punctual as iperf3, whose timer that is. Late departures shift as large a
    /// share of delays, so 0.5 % leaves a 99th percentile what it is, nearly; steal is of all processors, of
    /// which one matters at a time. Where the processors are never idle, everything waits for everything else.
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

/// Something that can be said against a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Objection {
    /// In words.
    pub(crate) why: String,
    /// The machine was noisy: what was measured is true, but not of the device alone. Otherwise something
    /// was not measured at all.
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

/// All that can be said against a run. `missed_frames` are those that a capture or the device never saw.
pub(crate) fn objections(
    live: &LiveRecord,
    missed_frames: u64,
    most: &Thresholds,
) -> Vec<Objection> {
    let mut found = Vec::new();
    if missed_frames > 0 {
        found.push(Objection::gap(format!(
            "{missed_frames} frames were not seen in time"
        )));
    }
    // Without a UDP source there is nobody to probe for.
    if live.baseline.samples == 0 && live.baseline.sent_frames > 0 {
        found.push(Objection::gap(
            "nothing came through the idle device".to_owned(),
        ));
    }
    found.extend(noise(live, most).map(Objection::noise));
    found
}

/// What is said of a host that took more than it may.
pub(crate) fn stolen(ratio: f64, most: &Thresholds) -> String {
    format!(
        "the host took {} of the processors' time, more than {}",
        percent(ratio),
        percent(most.steal_ratio)
    )
}

fn percent(ratio: f64) -> String {
    format!("{:.2} %", 100.0 * ratio)
}

fn noise(live: &LiveRecord, most: &Thresholds) -> impl Iterator<Item = String> {
    let micros = |ns: u64| format!("{} µs", ns / 1_000);
    let steal = (live.steal_ratio > most.steal_ratio).then(|| stolen(live.steal_ratio, most));
    let idle = (live.idle_ratio < most.idle_ratio).then(|| {
        format!(
            "the processors were idle for {} of the time, less than {}",
            percent(live.idle_ratio),
            percent(most.idle_ratio)
        )
    });
    let baseline = [
        ("half", live.baseline.p50_ns, most.baseline_p50_ns),
        ("1 %", live.baseline.p99_ns, most.baseline_p99_ns),
    ];
    let baseline = (baseline.into_iter())
        .filter(|(_, took, allowed)| took > allowed)
        .map(move |(share, took, allowed)| {
            format!(
                "{share} of the packets took {} or more through the idle device, more than {}",
                micros(took),
                micros(allowed)
            )
        });
    let late = (live.senders.iter())
        .filter(|sender| sender.lateness_p99_ns > most.sender_lateness_p99_ns)
        .map(move |sender| {
            format!(
                "the sender of {} was late by {} at the 99th percentile, more than {}",
                sender.source,
                micros(sender.lateness_p99_ns),
                micros(most.sender_lateness_p99_ns)
            )
        });
    let offered = (live.least_offered_ratio < most.offered_ratio).then(|| {
        format!(
            "a slice sent {} of its load, less than {}",
            percent(live.least_offered_ratio),
            percent(most.offered_ratio)
        )
    });
    let pause = (live.longest_pause_ns > most.pause_ns).then(|| {
        format!(
            "a source of iperf3 sent nothing for {} beyond its period, more than {}",
            micros(live.longest_pause_ns),
            micros(most.pause_ns)
        )
    });
    let departures = (live.departures)
        .filter(|departures| departures.late_ratio() > most.late_departures_ratio)
        .map(|departures| {
            format!(
                "{} of departures were later than {}, more than {}",
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
    use slicewise_stats::live::{DepartureRecord, IdleBaseline, SenderRecord};

    /// A run at the very limits.
    fn at_the_limits() -> LiveRecord {
        let most = Thresholds::default();
        let sender = |source: &str| SenderRecord {
            source: source.to_owned(),
            sent_frames: 1_000,
            refused_frames: 0,
            lateness_p50_ns: 0,
            lateness_p99_ns: most.sender_lateness_p99_ns,
            lateness_max_ns: 9_000_000,
        };
        LiveRecord {
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
            departures: Some(DepartureRecord {
                frames: 1_000,
                late_frames: 5,
                late_ns: 100_000,
            }),
            versions: Vec::new(),
        }
    }

    /// What is said against it, a line each; what is no noise is marked.
    fn said(missed_frames: u64, change: impl FnOnce(&mut LiveRecord)) -> String {
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
    fn nothing_is_said_against_a_run_at_the_limits() {
        assert_eq!(said(0, |_| ()), "");
    }

    #[test]
    fn one_step_beyond_a_limit_is_said_in_words() {
        assert_snapshot!(said(1, |_| ()), @"! 1 frames were not seen in time");
        assert_snapshot!(said(0, |live| live.baseline.samples = 0), @"! nothing came through the idle device");
        assert_snapshot!(said(0, |live| live.steal_ratio = 0.0112), @"the host took 1.12 % of the processors' time, more than 1.00 %");
        assert_snapshot!(said(0, |live| live.idle_ratio = 0.03), @"the processors were idle for 3.00 % of the time, less than 5.00 %");
        assert_snapshot!(said(0, |live| live.baseline.p50_ns = 501_000), @"half of the packets took 501 µs or more through the idle device, more than 500 µs");
        assert_snapshot!(said(0, |live| live.baseline.p99_ns = 1_001_000), @"1 % of the packets took 1001 µs or more through the idle device, more than 1000 µs");
        assert_snapshot!(said(0, |live| live.senders[1].lateness_p99_ns += 1_000), @"the sender of on-off was late by 1001 µs at the 99th percentile, more than 1000 µs");
        assert_snapshot!(said(0, |live| live.least_offered_ratio = 0.76), @"a slice sent 76.00 % of its load, less than 99.00 %");
        assert_snapshot!(said(0, |live| live.longest_pause_ns += 1_000_000), @"a source of iperf3 sent nothing for 11000 µs beyond its period, more than 10000 µs");
        assert_snapshot!(said(0, |live| live.departures.as_mut().unwrap().late_frames += 1), @"0.60 % of departures were later than 100 µs, more than 0.50 %");
    }

    #[test]
    fn all_that_is_wrong_is_said() {
        let all = said(2, |live| {
            live.steal_ratio = 1.0;
            for sender in &mut live.senders {
                sender.lateness_p99_ns = 2_000_000;
            }
        });
        assert_snapshot!(all, @r"
        ! 2 frames were not seen in time
        the host took 100.00 % of the processors' time, more than 1.00 %
        the sender of critical was late by 2000 µs at the 99th percentile, more than 1000 µs
        the sender of on-off was late by 2000 µs at the 99th percentile, more than 1000 µs
        ");
    }

    #[test]
    fn nobody_is_missed_where_nobody_was_sent() {
        let without_probes = said(0, |live| live.baseline = IdleBaseline::default());
        assert_eq!(without_probes, "");
    }
}
