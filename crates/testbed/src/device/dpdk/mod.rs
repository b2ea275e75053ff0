//! DPDK's hierarchical scheduler as the device: the library itself, between the threads and rings of its sample
//! application `qos_sched`. `docs/devices/dpdk-qos-sched.md` says how it is run.

mod counters;
mod program;

pub use program::DpdkProgram;
pub(crate) use program::{LIBRARY_PACKAGE, supported_library};

use super::DeviceFacts;
use crate::error::AttemptError;
use crate::hosts::{Hosts, LEFT, RIGHT, TAGS_BYTES};
use crate::process::Process;
use counters::{Counters, Event, Ready};
use slicewise_model::hqos::HqosParams;
use slicewise_study::{DutModel, QosSchedParams, Study, StudyPolicy};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// It puts every frame that may wait into place before it is ready.
const PATIENCE: Duration = Duration::from_secs(20);
/// Addresses and type of a frame.
const HEADER_BYTES: u32 = 14;
/// Frames in the ring of an interface. More than a card has: hosts on the same machine send thousands in a row, such as
/// when connections are opened, and nothing of a model waits there.
const NIC_RING: u32 = 8_192;
/// Largest burst that the program has room for.
const MAX_BURST: u32 = 1_024;

#[derive(Debug)]
pub(crate) struct DpdkDevice {
    process: Process,
    ready: Ready,
}

/// Why the library cannot run a policy.
pub(super) fn supports(policy: &StudyPolicy, study: &Study) -> Result<(), String> {
    let Some(profile) = profile(policy) else {
        return Err(
            "only policies written as profile files (`dpdk: ..`) are for DPDK's scheduler"
                .to_owned(),
        );
    };
    // As Debian builds the library; the program finds out by itself, but only when it runs.
    if profile.red.is_some() {
        return Err(
            "a section [red], and Debian's librte_sched is built without congestion management (RTE_SCHED_CMAN)"
                .to_owned(),
        );
    }
    let burst = threads(policy, study).burst;
    let largest = [burst.receive, burst.enqueue, burst.dequeue, burst.transmit];
    if largest.into_iter().any(|burst| burst > MAX_BURST) {
        return Err(format!(
            "bursts of at most {MAX_BURST} packets are possible"
        ));
    }
    Ok(())
}

/// What the profile file of a policy says, if it is one.
fn profile(policy: &StudyPolicy) -> Option<&HqosParams> {
    let mut classes = policy.params.classes.iter();
    classes.find_map(|class| class.hqos.as_deref())
}

/// Bursts and rings of the device that a policy runs on; those of the sample application for one without.
fn threads(policy: &StudyPolicy, study: &Study) -> QosSchedParams {
    match policy.device.as_ref().unwrap_or(&study.dut).model {
        DutModel::QosSched(threads) => threads,
        _ => QosSchedParams::default(),
    }
}

impl DpdkDevice {
    pub(super) fn start(
        program: &DpdkProgram,
        (hosts, folder): (&Hosts, &Path),
        (study, policy): (&Study, &StudyPolicy),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        supports(policy, study).map_err(AttemptError::Unsupported)?;
        let file = folder.join("profile.cfg");
        fs::write(&file, &policy.configuration).map_err(AttemptError::failed("the profile"))?;
        let mut command = Command::new(program.put_into(folder)?);
        command
            .args(["--in", LEFT, "--out", RIGHT, "--profile"])
            .arg(file)
            .args(settings(study, policy));
        let name = "the program around librte_sched";
        let mut process = Process::start_with_input(name, command, hosts.device())?;
        let ready = process.wait_until(PATIENCE, is_interrupted, |lines| {
            lines.iter().find_map(|line| match Event::parse(line)? {
                Event::Ready(ready) => Some(ready),
                Event::Counters(_) => None,
            })
        })?;
        Ok(Self { process, ready })
    }

    /// From now on frames wait for whole bursts, or no longer: those that wait leave at once.
    pub(super) fn wait_for_bursts(&mut self, waits: bool) -> Result<(), AttemptError> {
        self.process
            .tell(if waits { "bursts" } else { "no-bursts" })
    }

    pub(super) fn check(&mut self) -> Result<(), AttemptError> {
        self.process.check()
    }

    pub(super) fn facts(&mut self) -> Result<DeviceFacts, AttemptError> {
        let before = answers(&self.process.lines()).count();
        self.process.tell("counters")?;
        let counters = self
            .process
            .wait_until(PATIENCE, &|| false, |lines| answers(lines).nth(before))?;
        Ok(counters.facts(self.ready.describe()))
    }
}

fn answers(lines: &[String]) -> impl Iterator<Item = Counters> {
    lines.iter().filter_map(|line| match Event::parse(line)? {
        Event::Counters(counters) => Some(counters),
        Event::Ready(_) => None,
    })
}

/// Options beside interfaces and profile.
fn settings(study: &Study, policy: &StudyPolicy) -> Vec<String> {
    let QosSchedParams { burst, ring, drain } = threads(policy, study);
    let rate = profile(policy).map_or(0, |profile| profile.rate);
    let frame = study.link.mtu_bytes + HEADER_BYTES + TAGS_BYTES;
    let bursts = [burst.receive, burst.enqueue, burst.dequeue, burst.transmit];
    let options = [
        ("--rate", rate.to_string()),
        ("--frame-bytes", frame.to_string()),
        ("--bursts", bursts.map(|burst| burst.to_string()).join(",")),
        ("--ring", ring.software.to_string()),
        ("--nic-ring", NIC_RING.to_string()),
        ("--drain-us", drain.nanos().div_ceil(1_000).to_string()),
    ];
    options
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
}

#[cfg(test)]
mod tests;
