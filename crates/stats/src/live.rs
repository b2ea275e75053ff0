//! What is written down of a run on real packets, beside what was measured: how it went, and what the
//! machine did meanwhile. Facts about a host, and so never a part of what is compared.

use serde::{Deserialize, Serialize};

/// How a run on real packets went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveRecord {
    /// The device under test, one line: "slicewise gateway, af_xdp_native".
    pub device: String,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// Why earlier attempts at this run were thrown away, in words, in their order.
    pub rejected: Vec<String>,
    /// For what this run would have been thrown away, too, had the user not asked to take it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<String>,
    /// One-way delay through the idle device, just before the load: the noise of this machine.
    pub baseline: IdleBaseline,
    /// Share of processor time that the host gave to others while traffic was offered (steal), 0 to 1.
    pub steal_ratio: f64,
    /// Share of processor time in which nothing ran, or only what gives way to all else (niced), 0 to 1.
    pub idle_ratio: f64,
    /// The longest time beyond its period in which a UDP source of iperf3 sent nothing, ns, of the sources
    /// that are the first of their slices; 0 where there was none. It sends at least once in a period of its
    /// timer, so this is how long the machine stood still for it.
    #[serde(default)]
    pub longest_pause_ns: u64,
    /// Of the slices whose load is known beforehand (UDP at a stated rate), the least share of it that was
    /// sent; 1 where there is none.
    #[serde(default = "all")]
    pub least_offered_ratio: f64,
    /// Our own senders; of those of others only the longest pause is known.
    pub senders: Vec<SenderRecord>,
    /// What the device tells of its own punctuality, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<DepartureRecord>,
    /// Kernel and tools, by name: "Linux": "6.1.0", "iperf3": "3.12".
    pub versions: Vec<(String, String)>,
}

const fn all() -> f64 {
    1.0
}

/// One-way delay through an idle device, of a few packets far apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleBaseline {
    /// Packets sent.
    pub sent_frames: u64,
    /// Packets received, whose delays these are. All else is 0 where this is 0.
    pub samples: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

/// How punctual a sender of ours was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderRecord {
    /// The source's name.
    pub source: String,
    /// Packets sent.
    pub sent_frames: u64,
    /// Packets that the system did not take.
    pub refused_frames: u64,
    /// How much later than due packets were sent: median, ns.
    pub lateness_p50_ns: u64,
    /// 99th percentile, ns.
    pub lateness_p99_ns: u64,
    /// Largest, ns.
    pub lateness_max_ns: u64,
}

/// How punctual departures from the device were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepartureRecord {
    /// Frames that left.
    pub frames: u64,
    /// Those of them that left later than `late_ns` after they should have.
    pub late_frames: u64,
    /// What counts as late, ns.
    pub late_ns: u64,
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
