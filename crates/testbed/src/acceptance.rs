//! What a run on real packets must keep to be taken: otherwise it measured the machine, not the device.

use slicewise_stats::live::LiveRecord;

/// The most that is tolerated in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Share of processor time that the host gave to others (steal).
    pub steal_ratio: f64,
    /// 99th percentile of the lateness of a sender of ours, ns.
    pub sender_lateness_p99_ns: u64,
    /// Share of departures from the device later than it counts as late.
    pub late_departures_ratio: f64,
    /// Median of the idle baseline, ns.
    pub baseline_p50_ns: u64,
    /// 99th percentile of the idle baseline, ns.
    pub baseline_p99_ns: u64,
    /// How often a run is tried.
    pub attempts: u32,
}

impl Default for Thresholds {
    /// Steal 5 %, senders 1 ms, departures 1 %, baseline 0.5 ms and 1 ms; eight attempts.
    ///
    /// A sender within 1 ms is as punctual as iperf3, whose timer that is. Late departures shift as large a
    /// share of delays, so 1 % leaves a 99th percentile what it is.
    fn default() -> Self {
        Self {
            steal_ratio: 0.05,
            sender_lateness_p99_ns: 1_000_000,
            late_departures_ratio: 0.01,
            baseline_p50_ns: 500_000,
            baseline_p99_ns: 1_000_000,
            attempts: 8,
        }
    }
}

/// Why a run is not to be taken, in words; `None` where it is. `missed_frames` are those that a capture or
/// the device never saw.
pub(crate) fn objection(
    live: &LiveRecord,
    missed_frames: u64,
    most: &Thresholds,
) -> Option<String> {
    let percent = |ratio: f64| format!("{:.2} %", 100.0 * ratio);
    let micros = |ns: u64| format!("{} us", ns / 1_000);
    if missed_frames > 0 {
        return Some(format!("{missed_frames} frames were not seen in time"));
    }
    if live.steal_ratio > most.steal_ratio {
        return Some(format!(
            "the host took {} of the processors' time, more than {}",
            percent(live.steal_ratio),
            percent(most.steal_ratio)
        ));
    }
    if live.baseline.samples == 0 {
        return Some("nothing came through the idle device".to_owned());
    }
    let baseline = [
        ("half", live.baseline.p50_ns, most.baseline_p50_ns),
        ("1 %", live.baseline.p99_ns, most.baseline_p99_ns),
    ];
    for (share, took, allowed) in baseline {
        if took > allowed {
            return Some(format!(
                "{share} of the packets took {} or more through the idle device, more than {}",
                micros(took),
                micros(allowed)
            ));
        }
    }
    for sender in &live.senders {
        if sender.lateness_p99_ns > most.sender_lateness_p99_ns {
            return Some(format!(
                "the sender of {} was late by {} at the 99th percentile, more than {}",
                sender.source,
                micros(sender.lateness_p99_ns),
                micros(most.sender_lateness_p99_ns)
            ));
        }
    }
    let departures = live.departures?;
    let ratio = departures.late_ratio();
    (ratio > most.late_departures_ratio).then(|| {
        format!(
            "{} of departures were later than {}, more than {}",
            percent(ratio),
            micros(departures.late_ns),
            percent(most.late_departures_ratio)
        )
    })
}
