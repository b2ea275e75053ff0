//! Programs that a testbed calls.

use super::finding::{BOTH_RUNS, Check, Finding, Group, Mend};
use crate::command::Tool;
use crate::machine;
use std::path::Path;

/// Where programs for root are that the path of others leaves out.
const ROOTS_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

const fn check(tool: Tool) -> Check {
    Check {
        group: Group::Programs,
        name: tool.name(),
        needed_for: match tool {
            Tool::Ip => "hosts and the links between them",
            Tool::Tc => "queueing disciplines, and to find out which there are",
            Tool::Iperf3 => "sources of constant rate",
            Tool::Tcpdump => "captures at both ends",
        },
        stops: BOTH_RUNS,
    }
}

pub(super) fn examine(is_root: bool) -> Vec<Finding> {
    Tool::ALL.map(|tool| look_for(tool, is_root)).into()
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
            .mended_by(Mend::Run(format!(
                "export PATH=\"$PATH:{}\"",
                folder.display()
            ))),
        // Those who are not root need not have it in their path.
        Some(folder) => installed(
            &check,
            tool,
            &folder.join(tool.name()),
            ", in the PATH of root",
        ),
        None => check
            .missing("not installed")
            .mended_by(Mend::Install(tool.package())),
    }
}

fn installed(check: &Check, tool: Tool, path: &Path, remark: &str) -> Finding {
    let place = path.display();
    match machine::version(path, tool) {
        Some(version) => check.ready(format!("{version}: {place}{remark}")),
        None => check
            .missing(format!("{place} does not run"))
            .mended_by(Mend::Run(format!(
                "apt-get install --reinstall {}",
                tool.package()
            ))),
    }
}
