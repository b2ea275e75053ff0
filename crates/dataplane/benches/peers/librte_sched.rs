//! Builds `librte_sched.c` against the installed DPDK and runs it.

use crate::workload::{Measurement, Scenario};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
    /// What is missing, in one sentence: pkg-config, the library, or a working compiler.
    pub fn build() -> Result<Self, String> {
        let version = pkg_config("--modversion")?.join(" ");
        let flags = pkg_config("--cflags")?;
        let libraries = pkg_config("--libs")?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/librte_sched.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("librte_sched");
        let output = Command::new("cc")
            .args(["-O3", "-DALLOW_EXPERIMENTAL_API", "-o"])
            .args([&program, &source])
            .args(flags)
            .args(libraries)
            .arg("-lm")
            .output()
            .map_err(|_| "cc (a C compiler) is not installed".to_owned())?;
        succeeded(&output).map_err(|why| format!("cc cannot compile librte_sched.c: {why}"))?;
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
        succeeded(&output)?;
        Measurement::from_json(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| "cannot parse its output".to_owned())
    }
}

fn pkg_config(question: &str) -> Result<Vec<String>, String> {
    let output = Command::new("pkg-config")
        .args([question, "libdpdk"])
        .output()
        .map_err(|_| "pkg-config is not installed".to_owned())?;
    if !output.status.success() {
        return Err(
            "pkg-config does not know libdpdk (Debian: packages libdpdk-dev dpdk-dev)".into(),
        );
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    Ok(answer.split_whitespace().map(str::to_owned).collect())
}

/// The last line of what a program that failed complained about.
fn succeeded(output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty());
    Err(last
        .unwrap_or("it failed without a message")
        .trim()
        .to_owned())
}
