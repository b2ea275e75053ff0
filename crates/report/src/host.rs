//! Facts about the host: they explain how long a study took, and nothing about its results.

use serde::{Deserialize, Serialize};

/// What is known of the host a study was run on.
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
}

impl HostFacts {
    /// What can be asked of this host; what only the caller knows stays 0.
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
}

/// The first "model name" that Linux tells; elsewhere nothing.
fn processor_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':')
        .map(|(_, model)| model.trim().to_owned())
}
