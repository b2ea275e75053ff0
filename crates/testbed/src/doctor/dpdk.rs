//! DPDK, which the device of `run --on dpdk` is compiled against, and memory for it.

use super::finding::{Check, Finding, Fix, Group, Purpose};
use crate::command::Tool;
use crate::device::{LIBRARY_PACKAGE, supported_library};
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

/// As many of 2 MB hold frames and queues of the sample application's profile.
const PAGES: u32 = 256;

pub(super) fn examine() -> [Finding; 2] {
    let has_pkg_config = Tool::PkgConfig.find().is_some();
    let library = match has_pkg_config.then(supported_library) {
        None => LIBRARY
            .unknown("cannot run `pkg-config`")
            .with_fix(Fix::Install(LIBRARY_PACKAGE)),
        Some(Ok(version)) => LIBRARY.ready(version),
        Some(Err(problem)) => LIBRARY
            .missing(problem)
            .with_fix(Fix::Install(LIBRARY_PACKAGE)),
    };
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    [library, hugepages(&meminfo)]
}

fn hugepages(meminfo: &str) -> Finding {
    match free_pages(meminfo) {
        Some(free) if free > 0 => HUGEPAGES.ready(format!("{free} free")),
        _ => HUGEPAGES
            .limited("none free: ordinary memory is used, which a processor finds more slowly")
            .with_fix(Fix::Run(format!("sysctl vm.nr_hugepages={PAGES}"))),
    }
}

fn free_pages(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn without_hugepages_the_device_runs_in_ordinary_memory() {
        let with = hugepages("MemFree: 7 kB\nHugePages_Total:    64\nHugePages_Free:     12\n");
        assert_eq!(
            (with.state, with.detail.as_str()),
            (State::Ready, "12 free")
        );
        for without in ["HugePages_Free: 0\n", ""] {
            let without = hugepages(without);
            assert_eq!(without.state, State::Limited);
            assert!(without.stops.is_empty() && without.fix.is_some());
        }
    }
}
