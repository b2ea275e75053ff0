//! Builds `librte_sched.c` against the installed DPDK and runs it.

#[path = "../../tests/support/dpdk.rs"]
mod dpdk;

use crate::workload::{Measurement, Scenario};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The peer, built.
pub struct LibrteSched {
    program: PathBuf,
    /// The version of DPDK it is linked to.
    pub version: String,
}

/// Which of a pipe's 13 traffic classes holds the slice's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficClass {
    /// The first of the strict-priority classes: one queue, the library's cheapest.
    Strict,
    /// The class most configurations use: four queues served by weighted round robin.
    BestEffort,
}

impl LibrteSched {
    /// Compile the peer into the folder Cargo keeps for the temporary files of benchmarks.
    ///
    /// # Errors
    /// What is missing, in one sentence: pkg-config, the library of the release, or a working compiler.
    pub fn build() -> Result<Self, String> {
        let version = dpdk::find()?;
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("librte_sched");
        dpdk::compile("benches/peers/librte_sched.c", &["-O3"], &program)?;
        Ok(Self { program, version })
    }

    /// One run of the peer.
    ///
    /// # Errors
    /// What the peer wrote to its standard error.
    pub fn run(
        &self,
        scenario: Scenario,
        pipes: u32,
        packets: u64,
        class: TrafficClass,
    ) -> Result<Measurement, String> {
        let class = match class {
            TrafficClass::Strict => "0",
            TrafficClass::BestEffort => "12",
        };
        let output = Command::new(&self.program)
            .args(["--scenario", scenario.name(), "--traffic-class", class])
            .args(["--pipes", &pipes.to_string()])
            .args(["--packets", &packets.to_string()])
            .output()
            .map_err(|error| error.to_string())?;
        dpdk::succeeded(&output)?;
        Measurement::from_json(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| "cannot parse its output".to_owned())
    }
}
