//! DPDK's hierarchical scheduler as the device: the library itself, between the threads and rings of its sample
//! application `qos_sched`. `docs/devices/dpdk-qos-sched.md` says how it is run.

mod counters;
mod program;

pub use program::DpdkProgram;
pub(crate) use program::{LIBRARY_PACKAGE, LibraryProblem, supported_library};

use super::DeviceFacts;
use crate::error::AttemptError;
use crate::hosts::{Hosts, LEFT, RIGHT, TAGS_BYTES};
use crate::process::Process;
use counters::{Counters, Event, Ready};
use slicewise_formats::dpdk;
use slicewise_model::hqos::HqosParams;
use slicewise_study::{DutModel, QosSchedParams, QosSchedThreads, Study, StudyPolicy};
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
/// Exit status of the program where another start would fail as well: `EXIT_USELESS_TO_REPEAT` in `main.c`.
const USELESS_TO_REPEAT: i32 = 2;
/// Largest burst that the program has room for.
const MAX_BURST: u32 = 1_024;

#[derive(Debug)]
pub(crate) struct DpdkDevice {
    process: Process,
    ready: Ready,
}

/// Why the library cannot run a policy.
pub(super) fn supports(policy: &StudyPolicy, study: &Study) -> Result<(), String> {
    if profile(policy).is_none() {
        return Err(
            "only policies written as profile files (`dpdk: ..`) are for DPDK's scheduler"
                .to_owned(),
        );
    }
    let counts = study.capacity_of(policy).accounting;
    if counts.overhead_bytes != 0 || counts.in_atm_cells {
        return Err(format!(
            "the link counts {counts}, but DPDK's scheduler adds bytes to frames (L2) only by its profile: leave them out of \
             `port_counts`, and state them as `frame overhead` in the profile"
        ));
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

/// The profile that the program reads. It is not the text of the user: the program has no defaults of its own, so it runs what
/// was read and checked.
fn profile_text(policy: &StudyPolicy) -> Result<String, AttemptError> {
    let written = dpdk::write(&policy.spec);
    let written = written.map_err(|error| AttemptError::Unsupported(error.to_string()))?;
    Ok(written.to_string())
}

/// Returns the parameters of a policy that is a profile file.
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
        fs::write(&file, profile_text(policy)?).map_err(AttemptError::failed("the profile"))?;
        let mut command = Command::new(program.put_into(folder)?);
        command
            .args(["--in", LEFT, "--out", RIGHT, "--profile"])
            .arg(file)
            .args(settings(study, policy));
        let name = "the program around librte_sched";
        let mut process = Process::start_with_input(name, command, Some(hosts.device()))?;
        let ready = process.wait_until(PATIENCE, is_interrupted, |lines| {
            lines.iter().find_map(|line| match Event::parse(line)? {
                Event::Ready(ready) => Some(ready),
                Event::Counters(_) => None,
            })
        });
        let ready = ready.map_err(|error| permanent(error, process.exit_code()))?;
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

/// Why it did not start: for good, where the program says so.
fn permanent(error: AttemptError, exit_code: Option<i32>) -> AttemptError {
    match error {
        AttemptError::Retryable(why) if exit_code == Some(USELESS_TO_REPEAT) => {
            AttemptError::Failed(why)
        }
        other => other,
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
    let QosSchedParams {
        threads,
        burst,
        ring,
        drain,
    } = threads(policy, study);
    let (rate, mtu) = profile(policy).map_or((0, 0), |profile| {
        (profile.rate, profile.mtu - profile.frame_overhead)
    });
    // What the interfaces may carry. The scheduler counts with the largest frame of the sample application, as the model.
    let frame = study.link.mtu_bytes + HEADER_BYTES + TAGS_BYTES;
    let bursts = [burst.receive, burst.enqueue, burst.dequeue, burst.transmit];
    let options = [
        ("--rate", rate.to_string()),
        ("--mtu", mtu.to_string()),
        ("--frame-bytes", frame.to_string()),
        ("--bursts", bursts.map(|burst| burst.to_string()).join(",")),
        ("--ring", ring.software.to_string()),
        ("--nic-ring", NIC_RING.to_string()),
        ("--drain-us", drain.nanos().div_ceil(1_000).to_string()),
    ];
    let mut settings: Vec<String> = options
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
    if threads == QosSchedThreads::Mixed {
        settings.push("--mixed".to_owned());
    }
    settings
}

#[cfg(test)]
mod tests;
