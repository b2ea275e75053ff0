//! tcpdump captures at the ends of the testbed.

use crate::command::Tool;
use crate::error::AttemptError;
use crate::process::Process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes captured per frame: all headers of QinQ and IPv6, and enough payload to distinguish packets.
const SNAP_BYTES: u32 = 128;
/// Kernel buffer, KiB: some seconds of testbed traffic, for tcpdump goes behind hosts and device on a busy machine.
const BUFFER_KIB: u32 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Which frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Those sent by the host.
    Out,
    /// Those received by the host.
    In,
}

/// A running tcpdump.
#[derive(Debug)]
pub(crate) struct Capturing {
    process: Process,
    file: PathBuf,
}

impl Capturing {
    /// Start capturing on an interface in a network namespace, or in that of this process, what passes a filter; it is
    /// active when this returns.
    pub(crate) fn start(
        (namespace, interface): (Option<&str>, &str),
        (way, filter): (Way, &str),
        file: &Path,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let (direction, end) = match way {
            Way::Out => ("out", "sending"),
            Way::In => ("in", "receiving"),
        };
        let mut command = Command::new(Tool::Tcpdump.name());
        command
            .args(["-n", "-p", "-i", interface, "-Q", direction])
            .args(["-s", &SNAP_BYTES.to_string(), "-B", &BUFFER_KIB.to_string()])
            .args(["--immediate-mode", "--time-stamp-precision=nano"])
            .args(["-Z", "root", "-w"])
            .arg(file);
        if !filter.is_empty() {
            command.arg("--").arg(filter);
        }
        let name = format!("tcpdump at the {end} end");
        let mut process = Process::start(name, command, namespace)?;
        process.wait_for("listening on", PATIENCE, is_interrupted)?;
        Ok(Self {
            process,
            file: file.to_owned(),
        })
    }

    /// An error if it has ended unexpectedly.
    pub(crate) fn check(&mut self) -> Result<(), AttemptError> {
        self.process.check()
    }

    /// Stop it once it has read everything received; returns its counts.
    pub(crate) fn stop(
        mut self,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Captured, AttemptError> {
        self.process.wait_until_asleep(PATIENCE, is_interrupted)?;
        self.process.interrupt(PATIENCE)?;
        let lines = self.process.lines();
        let counts = (
            counted(&lines, "captured"),
            counted(&lines, "dropped by kernel"),
        );
        match counts {
            (Some(packets), Some(missed)) => Ok(Captured {
                file: self.file,
                packets,
                missed,
            }),
            _ => Err(AttemptError::Retryable(format!(
                "tcpdump did not finish: {}",
                lines.last().map_or("", String::as_str)
            ))),
        }
    }
}

/// Counts reported by tcpdump.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) file: PathBuf,
    /// Packets it tried to write, whether or not that succeeded.
    pub(crate) packets: u64,
    /// Frames it missed.
    pub(crate) missed: u64,
}

/// "17 packets captured": 17.
fn counted(lines: &[String], what: &str) -> Option<u64> {
    let line = lines.iter().find(|line| line.ends_with(what))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_tcpdumps_summary() {
        let lines = [
            "tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 128 bytes",
            "537 packets captured",
            "540 packets received by filter",
            "3 packets dropped by kernel",
        ]
        .map(str::to_owned);
        assert_eq!(counted(&lines, "captured"), Some(537));
        assert_eq!(counted(&lines, "dropped by kernel"), Some(3));
        assert_eq!(counted(&lines[..1], "captured"), None);
    }
}
