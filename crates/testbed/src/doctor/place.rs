//! Whether a testbed has room here: nobody else's, nothing left over, somewhere to write.

use super::finding::{BOTH_RUNS, Check, Finding, Group, Mend};
use super::{Ground, Untold};
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
    needed_for: "a clean start: the next testbed deletes them by itself",
    stops: &[],
};
const FOLDER: Check = Check {
    group: Group::Testbed,
    name: "testbed folder",
    needed_for: "the lock, and the list of what must be cleared up",
    stops: BOTH_RUNS,
};
const TEMPORARY: Check = Check {
    group: Group::Testbed,
    name: "temporary folder",
    needed_for: "the captures of a run, until it is analysed",
    stops: BOTH_RUNS,
};

/// Room for the captures of a long run: 128 bytes a frame at both ends.
const ENOUGH_BYTES: u64 = 1 << 30;

/// What was found, and the right to try things, if there is one.
pub(super) fn examine(barred: Option<Untold>) -> (Vec<Finding>, Ground) {
    let (mut findings, ground) = match barred {
        None => with_lease(),
        Some(untold) => (looked_at(&untold), Err(untold)),
    };
    findings.push(temporary());
    (findings, ground)
}

/// What can be told without taking the lock.
fn looked_at(untold: &Untold) -> Vec<Finding> {
    let holder = lease::holder();
    let mut findings = vec![
        lock(holder.is_some(), holder),
        left_over(&lease::left_over(), holder.is_some()),
    ];
    findings.extend(untold.findings([FOLDER]));
    findings
}

/// The lock, if nobody has it and nothing was left over. Should another testbed be killed in the very moment
/// between looking and taking, what it left is deleted, as by any testbed that comes next.
fn with_lease() -> (Vec<Finding>, Ground) {
    let (names, holder) = (lease::left_over(), lease::holder());
    if !names.is_empty() && holder.is_none() {
        let left = left_over(&names, false);
        let untold = Untold::new("not tried: a testbed left namespaces", left.mend.clone());
        return (vec![lock(false, None), left, writable()], Err(untold));
    }
    let do_not_wait = || true;
    let folders = lease::left_over_folders();
    if let (Some(folder), None) = (folders.first(), holder) {
        let untold = Untold::new(
            "not tried: a testbed left a folder",
            Some(Mend::Run(format!("rm -r {}", folder.display()))),
        );
        return (vec![lock(false, None), writable()], Err(untold));
    }
    match Lease::take(|| (), |_| (), do_not_wait) {
        Ok(lease) => {
            let findings = vec![lock(false, None), left_over(&[], false), writable()];
            (findings, Ok(lease))
        }
        Err(LeaseError::Interrupted) => {
            let wait = Mend::advice("ask again when it is done");
            let untold = Untold::new("not tried: another testbed runs", Some(wait));
            let left = left_over(&names, true);
            (vec![lock(true, holder), left, writable()], Err(untold))
        }
        Err(error) => {
            let folder = FOLDER
                .missing(error.to_string())
                .mended_by(Mend::advice("mount /run so that it can be written"));
            let untold = Untold::new("not tried: there is no testbed lock", None);
            let mut findings = untold.findings([LOCK, LEFT_OVER]);
            findings.push(folder);
            (findings, Err(untold))
        }
    }
}

fn writable() -> Finding {
    FOLDER.ready(format!("{}: can be written", lease::folder().display()))
}

fn lock(is_held: bool, holder: Option<u32>) -> Finding {
    match (is_held, holder) {
        (false, _) => LOCK.ready("free"),
        (true, Some(pid)) => LOCK
            .limited(format!("held by process {pid}: another testbed runs"))
            .mended_by(Mend::advice("wait until it is done")),
        (true, None) => LOCK
            .limited("held: another testbed runs")
            .mended_by(Mend::advice("wait until it is done")),
    }
}

fn left_over(names: &[String], another_runs: bool) -> Finding {
    if names.is_empty() {
        LEFT_OVER.ready("none")
    } else if another_runs {
        LEFT_OVER.ready("none but those of the testbed that runs")
    } else {
        let delete: Vec<String> = (names.iter())
            .map(|name| format!("ip netns delete {name}"))
            .collect();
        LEFT_OVER
            .limited(names.join(", "))
            .mended_by(Mend::Run(delete.join("; ")))
    }
}

fn temporary() -> Finding {
    let folder = std::env::temp_dir();
    let name = folder.display().to_string();
    let another = || Mend::advice("set TMPDIR to a folder with room that can be written");
    if let Err(error) = write_and_delete(&folder) {
        return TEMPORARY
            .missing(format!("{name}: {error}"))
            .mended_by(another());
    }
    match storage::free_bytes(&folder) {
        Ok(bytes) if bytes < ENOUGH_BYTES => TEMPORARY
            .limited(format!("{name}: {} MiB free", bytes >> 20))
            .mended_by(another()),
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
    fn what_a_killed_testbed_left_comes_with_the_command_that_deletes_it() {
        let names = ["a", "b"].map(str::to_owned);
        let found = left_over(&names, false);
        let command = "ip netns delete a; ip netns delete b".to_owned();
        assert_eq!(found.state, State::Limited);
        assert_eq!(found.mend, Some(Mend::Run(command)));
        assert_eq!(left_over(&names, true).mend, None);
    }
}
