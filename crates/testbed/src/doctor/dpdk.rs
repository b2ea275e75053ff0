//! DPDK, which the device of `run --on dpdk` is compiled against, and memory for it.

use super::finding::{Check, Finding, Fix, Group, Purpose};
use crate::command::Tool;
use crate::device::{LIBRARY_PACKAGE, LibraryProblem, supported_library};
use std::fs;

const LIBRARY: Check = Check {
    group: Group::Programs,
    name: "libdpdk",
    needed_for: "the device of `run --on dpdk`",
    stops: &[Purpose::RunOnDpdk],
};

const HUGEPAGES: Check = Check {
    group: Group::Machine,
    name: "hugepages",
    needed_for: "frames and queues of `run --on dpdk`, as in the publications",
    stops: &[],
};

/// Memory for frames and queues of the sample application's profile, MB.
const NEEDED_MB: u64 = 512;
/// Of a page, where the kernel does not say.
const PAGE_KB: u64 = 2_048;

pub(super) fn examine() -> [Finding; 2] {
    let has_pkg_config = Tool::PkgConfig.find().is_some();
    let library = match has_pkg_config.then(supported_library) {
        None => LIBRARY
            .unknown("cannot run `pkg-config`")
            .with_fix(Fix::Install(LIBRARY_PACKAGE)),
        Some(Ok(version)) => LIBRARY.ready(version),
        Some(Err(problem)) => unsupported(&problem),
    };
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    [library, hugepages(&meminfo)]
}

/// The package is of no use where another version is installed: the problem says what is.
fn unsupported(problem: &LibraryProblem) -> Finding {
    let finding = LIBRARY.missing(problem.to_string());
    match problem {
        LibraryProblem::Missing => finding.with_fix(Fix::Install(LIBRARY_PACKAGE)),
        LibraryProblem::OtherVersion(_) => finding,
    }
}

fn hugepages(meminfo: &str) -> Finding {
    let free_kb = value(meminfo, "HugePages_Free:")
        .zip(value(meminfo, "Hugepagesize:"))
        .map_or(0, |(pages, kilobytes)| pages * kilobytes);
    let needed = format!("{NEEDED_MB} MB hold frames and queues of the sample application");
    if free_kb / 1024 >= NEEDED_MB {
        return HUGEPAGES.ready(format!("{} MB free", free_kb / 1024));
    }
    let pages = NEEDED_MB * 1024 / value(meminfo, "Hugepagesize:").unwrap_or(PAGE_KB).max(1);
    HUGEPAGES
        .limited(format!(
            "{} MB free, and {needed}: ordinary memory is used, which a processor finds more slowly",
            free_kb / 1024
        ))
        .with_fix(Fix::Run(format!("sysctl vm.nr_hugepages={}", pages.max(1))))
}

/// Of a line `KEY:  NUMBER kB` or `KEY:  NUMBER`.
fn value(meminfo: &str, key: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let value = lines.find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn without_hugepages_the_device_runs_in_ordinary_memory() {
        let enough = "HugePages_Total: 300\nHugePages_Free:    256\nHugepagesize:    2048 kB\n";
        let with = hugepages(enough);
        assert_eq!(
            (with.state, with.detail.as_str()),
            (State::Ready, "512 MB free")
        );
        let fewer = enough.replace("256", "255");
        for without in ["HugePages_Free: 0\n", "", &fewer] {
            let without = hugepages(without);
            assert_eq!(without.state, State::Limited);
            assert!(without.stops.is_empty());
            assert_eq!(
                without.fix,
                Some(Fix::Run("sysctl vm.nr_hugepages=256".to_owned()))
            );
        }
        let large = hugepages("HugePages_Free: 0\nHugepagesize: 1048576 kB\n");
        assert_eq!(
            large.fix,
            Some(Fix::Run("sysctl vm.nr_hugepages=1".to_owned()))
        );
    }

    #[test]
    fn another_version_is_not_mended_by_the_package() {
        assert!(unsupported(&LibraryProblem::Missing).fix.is_some());
        let other = unsupported(&LibraryProblem::OtherVersion("24.11.2".to_owned()));
        assert_eq!(other.state, State::Missing);
        assert_eq!(other.fix, None);
        assert!(other.detail.contains("PKG_CONFIG_PATH"), "{}", other.detail);
    }
}
