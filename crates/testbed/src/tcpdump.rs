//! Captures of one end of the testbed by tcpdump.

use crate::command::Tool;
use crate::error::AttemptError;
use crate::hosts::INTERFACE;
use crate::process::Process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes kept of a frame: all headers of QinQ and IPv6, and enough of the payload to tell packets apart.
const SNAP_BYTES: u32 = 128;
/// The kernel's buffer, KiB: more than a second of what these testbeds send.
const BUFFER_KIB: u32 = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Which frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Those that the host sends.
    Out,
    /// Those that it receives.
    In,
}

/// tcpdump, as long as it captures.
#[derive(Debug)]
pub(crate) struct Capturing {
    process: Process,
    file: PathBuf,
}

impl Capturing {
    /// Capture from now on; it has begun when this returns.
    pub(crate) fn start(
        namespace: &str,
        way: Way,
        file: &Path,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let (direction, end) = match way {
            Way::Out => ("out", "sending"),
            Way::In => ("in", "receiving"),
        };
        let mut command = Command::new(Tool::Tcpdump.name());
        command
            .args(["-n", "-p", "-i", INTERFACE, "-Q", direction])
            .args(["-s", &SNAP_BYTES.to_string(), "-B", &BUFFER_KIB.to_string()])
            .args(["--immediate-mode", "--time-stamp-precision=nano"])
            .args(["-Z", "root", "-w"])
            .arg(file);
        let name = format!("tcpdump at the {end} end");
        let mut process = Process::start(name, command, namespace)?;
        process.wait_for("listening on", PATIENCE, is_interrupted)?;
        Ok(Self {
            process,
            file: file.to_owned(),
        })
    }

    /// An error where it has ended although it should not: a full disk, or somebody killed it.
    pub(crate) fn check(&mut self) -> Result<(), AttemptError> {
        self.process.check()
    }

    /// Stop it; the file, and how many frames it missed.
    pub(crate) fn stop(mut self) -> Result<(PathBuf, u64), AttemptError> {
        self.process.interrupt(PATIENCE)?;
        let lines = self.process.lines();
        let missed = lines
            .iter()
            .find(|line| line.contains("dropped by kernel"))
            .and_then(|line| line.split_whitespace().next()?.parse().ok());
        match missed {
            Some(missed) => Ok((self.file, missed)),
            None => Err(AttemptError::Spoilt(format!(
                "tcpdump did not finish: {}",
                lines.last().map_or("", String::as_str)
            ))),
        }
    }
}
