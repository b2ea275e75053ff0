//! Record of a run on real packets besides its measurements: how it went, and the state of the machine.
//! These are facts about a host, and never compared.

use serde::{Deserialize, Serialize};

/// Course of a run on real packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestbedRecord {
    /// The device under test, one line: "slicewise gateway, af_xdp_native".
    pub device: String,
    /// Start, ns since 1970.
    pub began_ns: u64,
    /// Why earlier attempts at this run were rejected, in order.
    pub rejected: Vec<String>,
    /// Why this run would have been rejected without the option to tolerate noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<String>,
    /// One-way delay through the idle device, just before the load: the noise of this machine.
    pub baseline: IdleBaseline,
    /// Share of processor time taken by the host while traffic was offered (steal), 0 to 1.
    pub steal_ratio: f64,
    /// Idle share of processor time, including niced threads, 0 to 1.
    pub idle_ratio: f64,
    /// The longest time beyond its period in which an iperf3 UDP source sent nothing, ns, over sources
    /// that are the first of their slices; 0 if there was none. It sends at least once per timer period,
    /// so this is how long the machine stalled it.
    #[serde(default)]
    pub longest_pause_ns: u64,
    /// Smallest share of its load that a slice sent, over slices with known load (UDP at a stated rate);
    /// 1 if there is none.
    #[serde(default = "all")]
    pub least_offered_ratio: f64,
    /// Our own senders; for other senders only the longest pause is known.
    pub senders: Vec<SenderRecord>,
    /// In a lab: offset of the receiver's clock from the sender's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockOffset>,
    /// Punctuality as reported by the device, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<DepartureRecord>,
    /// Kernel and tools, by name: "Linux": "6.1.0", "iperf3": "3.12".
    pub versions: Vec<(String, String)>,
}

const fn all() -> f64 {
    1.0
}

impl TestbedRecord {
    /// Differences of delay that are not of the device, ns: the 99th percentile of the idle baseline. In a lab, whose
    /// links delay packets, too: its distance to the median, and the error of the clocks.
    #[must_use]
    pub fn noise_ns(&self) -> Option<u64> {
        let idle = &self.baseline;
        (idle.samples > 0).then(|| match &self.clocks {
            None => idle.p99_ns,
            Some(clocks) => {
                (idle.p99_ns.saturating_sub(idle.p50_ns)).saturating_add(clocks.bound_ns)
            }
        })
    }
}

/// How far the receiver's clock is ahead of the sender's. Where it was measured, delays are corrected by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockOffset {
    /// It was measured before and after the run; otherwise the user says how well the clocks are synchronised.
    pub is_measured: bool,
    /// Offset before the run, ns; smaller than measured by as much as packets would have arrived before they were sent.
    pub offset_ns: i64,
    /// Change of it during the run, ns.
    pub change_ns: i64,
    /// Largest error, ns.
    pub bound_ns: u64,
}

impl ClockOffset {
    /// Clocks that the user says are synchronised this well.
    #[must_use]
    pub const fn stated(within_ns: u64) -> Self {
        Self {
            is_measured: false,
            offset_ns: 0,
            change_ns: 0,
            bound_ns: within_ns,
        }
    }
}

/// One-way delay through an idle device, of a few packets far apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleBaseline {
    /// Packets sent.
    pub sent_frames: u64,
    /// Packets received, with these delays. If 0, all other fields are 0.
    pub samples: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

/// Punctuality of one of our own senders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderRecord {
    /// The source's name.
    pub source: String,
    /// Packets sent.
    pub sent_frames: u64,
    /// Packets refused by the system.
    pub refused_frames: u64,
    /// How much later than due packets were sent: median, ns.
    pub lateness_p50_ns: u64,
    /// 99th percentile, ns.
    pub lateness_p99_ns: u64,
    /// Largest, ns.
    pub lateness_max_ns: u64,
}

/// Punctuality of departures from the device, until shortly before the end of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepartureRecord {
    /// Frames that left.
    pub frames: u64,
    /// Those that left more than `late_ns` late.
    pub late_frames: u64,
    /// Threshold for late, ns.
    pub late_ns: u64,
    /// Link time that the device lost because it was late while frames waited, ns.
    #[serde(default)]
    pub lost_link_time_ns: u64,
}

impl DepartureRecord {
    /// The share of late departures, 0 to 1.
    #[must_use]
    pub fn late_ratio(self) -> f64 {
        if self.frames == 0 {
            return 0.0;
        }
        self.late_frames as f64 / self.frames as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockOffset, DepartureRecord, IdleBaseline, TestbedRecord};

    #[test]
    fn the_noise_of_a_lab_is_the_spread_of_idle_delays_and_the_error_of_clocks() {
        let mut record = TestbedRecord::default();
        assert_eq!(record.noise_ns(), None, "no probe arrived");
        record.baseline = IdleBaseline {
            sent_frames: 9,
            samples: 9,
            p50_ns: 20_000_000,
            p99_ns: 20_300_000,
            max_ns: 21_000_000,
        };
        assert_eq!(record.noise_ns(), Some(20_300_000));
        record.clocks = Some(ClockOffset::stated(50_000));
        assert_eq!(record.noise_ns(), Some(350_000));
    }

    #[test]
    fn the_share_of_late_departures_is_of_those_that_left() {
        let of = |frames, late_frames| {
            let departures = DepartureRecord {
                frames,
                late_frames,
                late_ns: 1_000,
                lost_link_time_ns: 0,
            };
            departures.late_ratio()
        };
        assert!((of(8, 2) - 0.25).abs() < 1e-12);
        assert!(of(0, 0).abs() < 1e-12);
    }
}
