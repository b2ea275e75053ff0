//! What the machine is, and what it did meanwhile.

use crate::command::Tool;
use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

/// Processor time so far, in the kernel's ticks, of all processors together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    /// Spent by what gives way to all else (niced), too.
    idle: u64,
    stolen: u64,
    all: u64,
}

impl ProcessorTime {
    /// Until now; zeros where the kernel does not tell.
    pub(crate) fn now() -> Self {
        fs::read_to_string("/proc/stat")
            .map(|text| Self::parse(&text))
            .unwrap_or_default()
    }

    fn parse(stat: &str) -> Self {
        let Some(line) = stat.lines().find(|line| line.starts_with("cpu ")) else {
            return Self::default();
        };
        // User, nice, system, idle, waiting for input, two kinds of interrupts, stolen; what guests
        // got is in the first two already.
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        Self {
            idle: at(1) + at(3) + at(4),
            stolen: at(7),
            all: ticks.iter().sum(),
        }
    }

    /// Share of the time from `before` to this that the host took from all that wanted to run.
    pub(crate) fn stolen_since(self, before: Self) -> f64 {
        self.since(before).0
    }

    /// Shares of the time from `before` to this: stolen by the host, and idle.
    pub(crate) fn since(self, before: Self) -> (f64, f64) {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all;
        (
            share(self.stolen, before.stolen),
            share(self.idle, before.idle),
        )
    }
}

/// Versions of the kernel and of the tools that a run uses.
pub(crate) fn versions() -> Vec<(String, String)> {
    let mut versions = vec![("Linux".to_owned(), kernel_version())];
    for tool in [Tool::Iperf3, Tool::Tcpdump, Tool::Tc] {
        let version = version(tool.name(), tool).unwrap_or_default();
        versions.push((tool.name().to_owned(), version));
    }
    versions
}

/// What the program at `path` says of its version, in a line.
pub(crate) fn version(path: impl AsRef<OsStr>, tool: Tool) -> Option<String> {
    let argument = match tool {
        Tool::Ip | Tool::Tc => "-V",
        Tool::Iperf3 | Tool::Tcpdump => "--version",
    };
    let mut command = Command::new(path);
    let output = command.arg(argument).stdin(Stdio::null()).output().ok()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let first = told.lines().next()?.trim();
    output.status.success().then(|| first.to_owned())
}

/// The kernel's; empty where it does not tell.
pub(crate) fn kernel_version() -> String {
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between_two_readings() {
        let before = ProcessorTime::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n");
        let after = ProcessorTime::parse("cpu  130 20 70 810 60 0 0 10 20 0\n");
        let (stolen, idle) = after.since(before);
        assert!((stolen - 0.1).abs() < 1e-9 && (idle - 0.4).abs() < 1e-9);
        assert_eq!(ProcessorTime::parse("").since(before), (0.0, 0.0));
    }
}
