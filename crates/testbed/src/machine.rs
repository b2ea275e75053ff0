//! Facts about the machine and its processor time.

use crate::command::Tool;
use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

/// Processor time so far, in kernel ticks, over all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    /// Idle time, including niced time.
    idle: u64,
    stolen: u64,
    all: u64,
}

impl ProcessorTime {
    /// Current values; zeros if the kernel does not report them.
    pub(crate) fn now() -> Self {
        fs::read_to_string("/proc/stat")
            .map(|text| Self::parse(&text))
            .unwrap_or_default()
    }

    fn parse(stat: &str) -> Self {
        let Some(line) = stat.lines().find(|line| line.starts_with("cpu ")) else {
            return Self::default();
        };
        // User, nice, system, idle, I/O wait, hard and soft interrupts, steal; guest time is included in
        // the first two.
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

    /// Share of the busy time from `before` to this that the host took.
    pub(crate) fn stolen_since(self, before: Self) -> f64 {
        self.since(before).0
    }

    /// Shares of the time from `before` to this: steal, and idle.
    pub(crate) fn since(self, before: Self) -> (f64, f64) {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all;
        (
            share(self.stolen, before.stolen),
            share(self.idle, before.idle),
        )
    }
}

/// Versions of the kernel and the tools used by a run.
pub(crate) fn versions() -> Vec<(String, String)> {
    let mut versions = vec![("Linux".to_owned(), kernel_version())];
    for tool in [Tool::Iperf3, Tool::Tcpdump, Tool::Tc, Tool::Nginx] {
        let version = version(tool.name(), tool).unwrap_or_default();
        versions.push((tool.name().to_owned(), version));
    }
    versions
}

/// Version line of the program at `path`.
pub(crate) fn version(path: impl AsRef<OsStr>, tool: Tool) -> Option<String> {
    let argument = match tool {
        Tool::Ip | Tool::Tc => "-V",
        Tool::Iperf3 | Tool::Tcpdump | Tool::Cc | Tool::PkgConfig => "--version",
        Tool::Nginx => "-v",
    };
    let mut command = Command::new(path);
    let output = command.arg(argument).stdin(Stdio::null()).output().ok()?;
    // nginx writes it to the other one.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().next()?.trim();
    output.status.success().then(|| first.to_owned())
}

/// Kernel version; empty if unknown.
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
