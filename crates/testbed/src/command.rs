//! System commands that run to completion.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A program the testbed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Interfaces, addresses, routes, namespaces.
    Ip,
    /// Queueing disciplines.
    Tc,
    /// Constant-rate traffic.
    Iperf3,
    /// Captures.
    Tcpdump,
    /// Responses to requests.
    Nginx,
    /// The device of `--on dpdk`, which is compiled where it runs.
    Cc,
    /// Where its library is.
    PkgConfig,
}

impl Tool {
    /// Name of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
            Self::Iperf3 => "iperf3",
            Self::Tcpdump => "tcpdump",
            Self::Nginx => "nginx",
            Self::Cc => "cc",
            Self::PkgConfig => "pkg-config",
        }
    }

    /// Those that compile the device of `--on dpdk`.
    pub const COMPILING: [Self; 2] = [Self::Cc, Self::PkgConfig];

    /// Those without which nothing can run. Without nginx, its work is done by a server of this program.
    pub const REQUIRED: [Self; 4] = [Self::Ip, Self::Tc, Self::Iperf3, Self::Tcpdump];

    /// Returns the required tools that are not installed.
    #[must_use]
    pub fn missing() -> Vec<Self> {
        let is_missing = |tool: &Self| tool.find().is_none();
        Self::REQUIRED.into_iter().filter(is_missing).collect()
    }

    /// Its path, found through PATH.
    #[must_use]
    pub fn find(self) -> Option<std::path::PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).map(|folder| folder.join(self.name()));
        places.into_iter().find(|place| place.is_file())
    }

    /// Its Debian package.
    #[must_use]
    pub const fn package(self) -> &'static str {
        match self {
            Self::Ip | Self::Tc => "iproute2",
            Self::Iperf3 => "iperf3",
            Self::Tcpdump => "tcpdump",
            Self::Nginx => "nginx",
            Self::Cc => "gcc",
            Self::PkgConfig => "pkg-config",
        }
    }
}

/// Run it; returns its output, or an error message.
pub(crate) fn output(tool: Tool, arguments: &[&str]) -> Result<String, String> {
    run(tool, arguments, "")
}

/// The same, with input.
pub(crate) fn run(tool: Tool, arguments: &[&str], input: &str) -> Result<String, String> {
    let name = tool.name();
    let line = || format!("{name} {}", arguments.join(" "));
    let missing = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => format!(
            "{name} is not installed: apt-get install {}",
            tool.package()
        ),
        _ => format!("{}: {error}", line()),
    };
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C in the terminal must reach only this program, which has namespaces to delete.
        .process_group(0)
        .spawn()
        .map_err(missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that reads no input may close it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(missing)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let stderr = text(&output.stderr);
        Err(format!("{}: {}", line(), stderr.trim()))
    }
}
