//! Checks that a testbed can run here: no other one running, nothing left over, writable folders.

use super::finding::{Check, EVERY_RUN, Finding, Fix, Group};
use super::{TrialLease, Untried};
use crate::lease::{self, Lease, LeaseError};
use slicewise_live::sys::storage;
use std::fs::{self, File};
use std::io;
use std::path::Path;

const LOCK: Check = Check {
    group: Group::Testbed,
    name: "testbed lock",
    needed_for: "one testbed at a time: the next one waits",
    stops: &[],
};
const LEFT_OVER: Check = Check {
    group: Group::Testbed,
    name: "left-over namespaces",
    needed_for: "a clean start: the next testbed deletes them",
    stops: &[],
};
const FOLDER: Check = Check {
    group: Group::Testbed,
    name: "testbed folder",
    needed_for: "the lock, and the cleanup list",
    stops: EVERY_RUN,
};
const TEMPORARY: Check = Check {
    group: Group::Testbed,
    name: "temporary folder",
    needed_for: "the captures of a run, until it is analysed",
    stops: EVERY_RUN,
};

/// Room for the captures of a long run: 128 bytes per frame at both ends.
const ENOUGH_BYTES: u64 = 1 << 30;

/// Findings, and the lease for trials, if available.
pub(super) fn examine(barred: Option<Untried>) -> (Vec<Finding>, TrialLease) {
    let (mut findings, lease) = match barred {
        None => with_lease(),
        Some(untried) => (looked_at(&untried), Err(untried)),
    };
    findings.push(temporary());
    (findings, lease)
}

/// Checks that need no lock.
fn looked_at(untried: &Untried) -> Vec<Finding> {
    let holder = lease::holder();
    let mut findings = vec![
        lock(holder.is_some(), holder),
        left_over(&lease::left_over(), holder.is_some()),
    ];
    findings.extend(untried.findings([FOLDER]));
    findings
}

/// Take the lock if it is free and nothing was left over. If another testbed is killed between the check
/// and the lock, its leftovers are deleted, as by any next testbed.
fn with_lease() -> (Vec<Finding>, TrialLease) {
    let (names, holder) = (lease::left_over(), lease::holder());
    if !names.is_empty() && holder.is_none() {
        let left = left_over(&names, false);
        let untried = Untried::new(
            "not tried: a killed testbed left namespaces",
            left.fix.clone(),
        );
        return (vec![lock(false, None), left, writable()], Err(untried));
    }
    let do_not_wait = || true;
    let folders = lease::left_over_folders();
    if let (Some(folder), None) = (folders.first(), holder) {
        let untried = Untried::new(
            "not tried: a killed testbed left a folder",
            Some(Fix::Run(format!("rm -r {}", folder.display()))),
        );
        return (vec![lock(false, None), writable()], Err(untried));
    }
    match Lease::take(|| (), |_| (), do_not_wait) {
        Ok(lease) => {
            let findings = vec![lock(false, None), left_over(&[], false), writable()];
            (findings, Ok(lease))
        }
        Err(LeaseError::Interrupted) => {
            let wait = Fix::advice("try again when it is done");
            let untried = Untried::new("not tried: another testbed is running", Some(wait));
            let left = left_over(&names, true);
            (vec![lock(true, holder), left, writable()], Err(untried))
        }
        Err(error) => {
            let folder = FOLDER
                .missing(error.to_string())
                .with_fix(Fix::advice("mount /run writable"));
            let untried = Untried::new("not tried: no testbed lock", None);
            let mut findings = untried.findings([LOCK, LEFT_OVER]);
            findings.push(folder);
            (findings, Err(untried))
        }
    }
}

fn writable() -> Finding {
    FOLDER.ready(format!("{}: writable", lease::folder().display()))
}

fn lock(is_held: bool, holder: Option<u32>) -> Finding {
    match (is_held, holder) {
        (false, _) => LOCK.ready("free"),
        (true, Some(pid)) => LOCK
            .limited(format!("held by process {pid}: another testbed is running"))
            .with_fix(Fix::advice("wait until it is done")),
        (true, None) => LOCK
            .limited("held: another testbed is running")
            .with_fix(Fix::advice("wait until it is done")),
    }
}

fn left_over(names: &[String], another_runs: bool) -> Finding {
    if names.is_empty() {
        LEFT_OVER.ready("none")
    } else if another_runs {
        LEFT_OVER.ready("only those of the running testbed")
    } else {
        let delete: Vec<String> = (names.iter())
            .map(|name| format!("ip netns delete {name}"))
            .collect();
        LEFT_OVER
            .limited(names.join(", "))
            .with_fix(Fix::Run(delete.join("; ")))
    }
}

fn temporary() -> Finding {
    let folder = std::env::temp_dir();
    let name = folder.display().to_string();
    let another = || Fix::advice("set TMPDIR to a writable folder with enough space");
    if let Err(error) = write_and_delete(&folder) {
        return TEMPORARY
            .missing(format!("{name}: {error}"))
            .with_fix(another());
    }
    match storage::free_bytes(&folder) {
        Ok(bytes) if bytes < ENOUGH_BYTES => TEMPORARY
            .limited(format!("{name}: {} MiB free", bytes >> 20))
            .with_fix(another()),
        Ok(bytes) => TEMPORARY.ready(format!("{name}: {} GiB free", bytes >> 30)),
        Err(error) => TEMPORARY.limited(format!("{name}: {error}")),
    }
}

fn write_and_delete(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!("slicewise-{}-doctor", std::process::id()));
    File::create_new(&file)?;
    fs::remove_file(&file)
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn leftovers_of_a_killed_testbed_come_with_the_command_to_delete_them() {
        let names = ["a", "b"].map(str::to_owned);
        let found = left_over(&names, false);
        let command = "ip netns delete a; ip netns delete b".to_owned();
        assert_eq!(found.state, State::Limited);
        assert_eq!(found.fix, Some(Fix::Run(command)));
        assert_eq!(left_over(&names, true).fix, None);
    }
}
