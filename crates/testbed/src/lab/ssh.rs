//! The SSH client of the system, with the user's own configuration.

use slicewise_study::Lab;
use std::process::Command;

/// Options of each connection: nobody is asked for a password, and a host that does not answer is given up soon.
const OPTIONS: [&str; 5] = [
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=20",
    "-oServerAliveInterval=2",
    "-oServerAliveCountMax=3",
];
/// Exit code of `ssh` for errors of its own.
pub(super) const CONNECTION_FAILED: i32 = 255;
/// Exit code of a shell that does not find a program.
pub(super) const NOT_FOUND: i32 = 127;

/// The command that has the shell of a host run `line`.
pub(super) fn command(lab: &Lab, destination: &str, line: &str) -> Command {
    let mut command = Command::new("ssh");
    command.args(OPTIONS);
    if let Some(config) = &lab.ssh_config {
        command.arg("-F").arg(config);
    }
    command.args(["--", destination, line]);
    command
}
