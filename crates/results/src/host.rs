//! Facts about the host: they explain how long a study took, and nothing about its results.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about the host a study was run on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Operating system: "linux".
    pub operating_system: String,
    /// Processor architecture: "x86_64".
    pub architecture: String,
    /// Processor model, as the operating system names it; empty where unknown.
    pub processor: String,
    /// Processors that this process could use; 0 where unknown.
    pub logical_processors: u32,
    /// Runs that were done at the same time; 0 where unknown.
    pub jobs: u32,
    /// Runs done by the last invocation; those already there are not counted.
    pub runs_done: u64,
    /// Wall-clock time of the last invocation, ms.
    pub elapsed_ms: u64,
    /// By policy, then scenario: how long its runs took. Of runs that an earlier invocation did,
    /// what it measured.
    pub simulated: BTreeMap<String, BTreeMap<String, RunTime>>,
}

/// How long runs took, and how many frames were sent in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTime {
    /// Runs.
    pub runs: u64,
    /// Frames sent in all of them, by all slices.
    pub frames: u64,
    /// Wall-clock time of all of them, each from its first frame to its record, ns.
    pub elapsed_ns: u64,
}

impl RunTime {
    /// With `other` added.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs.saturating_add(other.runs),
            frames: self.frames.saturating_add(other.frames),
            elapsed_ns: self.elapsed_ns.saturating_add(other.elapsed_ns),
        }
    }

    /// Wall-clock time a frame, ns: of all that a run does, traffic and measurement included.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a time that is printed")]
    pub fn ns_a_frame(self) -> Option<f64> {
        (self.frames > 0).then(|| self.elapsed_ns as f64 / self.frames as f64)
    }
}

impl HostFacts {
    /// Returns the facts that this host tells; those that only the caller knows stay 0.
    #[must_use]
    pub fn of_this_host() -> Self {
        let logical_processors = std::thread::available_parallelism()
            .map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
        Self {
            operating_system: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: processor_model().unwrap_or_default(),
            logical_processors,
            ..Self::default()
        }
    }

    /// Take over the times of `earlier`, an invocation into the same folder, of runs that this one
    /// did not do. Those of another kind of host or with other company are not comparable.
    #[must_use]
    pub fn with_times_of(mut self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        if (&earlier.processor, earlier.jobs) != (&self.processor, self.jobs) {
            return self;
        }
        for (policy, scenarios) in earlier.simulated {
            let own = self.simulated.entry(policy).or_default();
            for (scenario, time) in scenarios {
                let both = own.get(&scenario).map_or(time, |own| own.and(time));
                own.insert(scenario, both);
            }
        }
        self
    }

    /// How long the runs of a policy × scenario took, where that was measured.
    #[must_use]
    pub fn run_time(&self, policy: &str, scenario: &str) -> Option<RunTime> {
        self.simulated.get(policy)?.get(scenario).copied()
    }
}

/// The first "model name" that Linux tells; elsewhere nothing.
fn processor_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':')
        .map(|(_, model)| model.trim().to_owned())
}
