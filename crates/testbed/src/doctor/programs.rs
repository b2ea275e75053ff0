//! Programs the testbed calls.

use super::finding::{Check, EVERY_RUN, Finding, Fix, Group, Purpose};
use crate::command::Tool;
use crate::machine;
use std::path::Path;

/// System folders missing from the PATH of ordinary users.
const ROOTS_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

const fn check(tool: Tool) -> Check {
    Check {
        group: Group::Programs,
        name: tool.name(),
        needed_for: match tool {
            Tool::Ip => "hosts and the links between them",
            Tool::Tc => "queueing disciplines, and finding out which exist",
            Tool::Iperf3 => "constant-rate sources",
            Tool::Tcpdump => "captures at both ends",
            Tool::Nginx => "responses to requests of applications",
            Tool::Cc | Tool::PkgConfig => "compiling the device of `run --on dpdk`",
        },
        stops: match tool {
            Tool::Nginx => &[],
            Tool::Cc | Tool::PkgConfig => &[Purpose::RunOnDpdk],
            _ => EVERY_RUN,
        },
    }
}

pub(super) fn examine(is_root: bool) -> Vec<Finding> {
    let required = Tool::REQUIRED.into_iter();
    let all = required.chain([Tool::Nginx]).chain(Tool::COMPILING);
    all.map(|tool| look_for(tool, is_root)).collect()
}

fn look_for(tool: Tool, is_root: bool) -> Finding {
    let check = check(tool);
    if let Some(path) = tool.find() {
        return installed(&check, tool, &path, "");
    }
    let mut places = ROOTS_FOLDERS.iter().map(Path::new);
    match places.find(|folder| folder.join(tool.name()).is_file()) {
        Some(folder) if is_root => check
            .missing(format!("in {}, which is not in PATH", folder.display()))
            .with_fix(Fix::Run(format!(
                "export PATH=\"$PATH:{}\"",
                folder.display()
            ))),
        // Ordinary users need not have it in PATH.
        Some(folder) => installed(
            &check,
            tool,
            &folder.join(tool.name()),
            ", in the PATH of root",
        ),
        None if tool == Tool::Nginx => check
            .limited("not installed: a server of this program answers instead")
            .with_fix(Fix::Install(tool.package())),
        None => check
            .missing("not installed")
            .with_fix(Fix::Install(tool.package())),
    }
}

fn installed(check: &Check, tool: Tool, path: &Path, remark: &str) -> Finding {
    let place = path.display();
    match machine::version(path, tool) {
        Some(version) => check.ready(format!("{version}: {place}{remark}")),
        None => check
            .missing(format!("{place} does not run"))
            .with_fix(Fix::Run(format!(
                "apt-get install --reinstall {}",
                tool.package()
            ))),
    }
}
