//! The testbed as a back end of studies.

use crate::acceptance::{self, Objection, Thresholds};
use crate::attempt::{Attempt, Attempted};
use crate::device::DeviceKind;
use crate::error::AttemptError;
use crate::lease::Lease;
use crate::machine::{self, ProcessorTime};
use crate::workspace::Workspace;
use slicewise_stats::backend::BackendInfo;
use slicewise_stats::record::{RunKey, RunRecord};
use slicewise_study::{Backend, RunError, RunSpec, Study};
use slicewise_traffic::Sources;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Pauses between attempts at a run.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Steal must stay low for `REST` before the next attempt; after `LONGEST_SPELL` the run is attempted
/// anyway.
const REST: Duration = Duration::from_secs(2);
/// One or two ticks in half a second, which is not significant.
const STEAL_AT_REST: f64 = 0.03;
const LONGEST_SPELL: Duration = Duration::from_secs(90);

/// Receives progress messages for the user.
pub type Notice = Box<dyn Fn(&str) + Send + Sync>;

/// Receives an accepted run, and sources that send the same packets.
pub type Replay = Box<dyn Fn(&RunSpec, Sources) + Send + Sync>;

/// Executes runs one after the other, on this machine or in a lab.
pub struct Testbed {
    device: DeviceKind,
    /// Lease of this machine; `None` for a lab.
    lease: Option<Lease>,
    thresholds: Thresholds,
    /// True if runs on a noisy machine are accepted.
    tolerates_noise: bool,
    /// Where captures are kept; otherwise they are deleted after the analysis.
    captures: Option<PathBuf>,
    interrupt: Arc<AtomicBool>,
    sources: Sources,
    versions: Vec<(String, String)>,
    notice: Notice,
    replay: Option<Replay>,
}

impl Testbed {
    /// A testbed on this machine, for which it has a lease, or a lab; runs end soon once `interrupt` is set. `notice` receives messages
    /// about rejected attempts.
    #[must_use]
    pub fn new(
        device: DeviceKind,
        lease: impl Into<Option<Lease>>,
        interrupt: Arc<AtomicBool>,
        notice: Notice,
    ) -> Self {
        Self {
            thresholds: device.thresholds(),
            tolerates_noise: false,
            captures: None,
            interrupt,
            sources: Sources::new(),
            versions: match &device {
                DeviceKind::Lab(session) => session.versions(),
                _ => machine::versions(),
            },
            notice,
            replay: None,
            device,
            lease: lease.into(),
        }
    }

    /// Pass every accepted run to `replay` if its send times describe the traffic completely: all of it
    /// UDP.
    #[must_use]
    pub fn with_replay(self, replay: Replay) -> Self {
        Self {
            replay: Some(replay),
            ..self
        }
    }

    /// Keep the captures of every run that is taken: of run 7 of policy `p` under scenario `s` in
    /// `<root>/p/s/rep-007`. No file that is there is replaced.
    #[must_use]
    pub fn with_captures(self, root: PathBuf) -> Self {
        Self {
            captures: Some(root),
            ..self
        }
    }

    /// Accept runs disturbed by a noisy machine, and record the violated limits. Runs in which something
    /// was not measured at all are still rejected.
    #[must_use]
    pub fn tolerating_noise(self) -> Self {
        Self {
            tolerates_noise: true,
            ..self
        }
    }

    fn attempt(
        &self,
        study: &Study,
        run: &RunSpec,
        key: &RunKey,
    ) -> Result<(Attempted, Workspace), Trouble> {
        let kept = self.captures.as_deref().map(|root| (root, key));
        let workspace =
            Workspace::new(self.lease.as_ref(), kept).map_err(|error| failed(&error))?;
        let unknown = || Trouble::Run(RunError::UnknownRun(*run));
        let policy = study.policies.get(run.policy).ok_or_else(unknown)?;
        let scenario = study.scenarios.get(run.scenario).ok_or_else(unknown)?;
        let interrupt = &self.interrupt;
        let is_interrupted = || interrupt.load(Ordering::Relaxed);
        let attempt = Attempt {
            study,
            run,
            policy,
            scenario,
            key,
            device: &self.device,
            lease: self.lease.as_ref(),
            sources: &self.sources,
            workspace: &workspace,
            most: (!self.tolerates_noise).then_some(&self.thresholds),
            is_interrupted: &is_interrupted,
        };
        let attempted = attempt.carry_out().map_err(|error| match error {
            // Failures during an interruption are caused by it.
            _ if is_interrupted() => Trouble::Run(RunError::Interrupted),
            AttemptError::Retryable(why) => Trouble::Retryable(why),
            AttemptError::Interrupted => Trouble::Run(RunError::Interrupted),
            AttemptError::Failed(why) => Trouble::Run(RunError::Failed(why)),
            AttemptError::Unsupported(what) => Trouble::Run(RunError::Unsupported {
                backend: self.device.info().id.to_owned(),
                what,
            }),
        })?;
        Ok((attempted, workspace))
    }
}

fn failed(error: &AttemptError) -> Trouble {
    Trouble::Run(RunError::Failed(error.to_string()))
}

enum Trouble {
    /// Another attempt may succeed.
    Retryable(String),
    Run(RunError),
}

impl Backend for Testbed {
    fn info(&self) -> BackendInfo {
        self.device.info()
    }

    fn is_concurrent(&self) -> bool {
        false
    }

    fn run(&self, study: &Study, run: &RunSpec) -> Result<RunRecord, RunError> {
        let key = run.key(study).ok_or(RunError::UnknownRun(*run))?;
        let mut rejected = Vec::new();
        loop {
            let why = match self.attempt(study, run, &key) {
                Ok((mut attempted, workspace)) => {
                    let missed = attempted.missed_frames;
                    let found =
                        acceptance::objections(&attempted.testbed, missed, &self.thresholds);
                    let (tolerated, found): (Vec<_>, Vec<_>) = found
                        .into_iter()
                        .partition(|one| one.is_noise && self.tolerates_noise);
                    if found.is_empty() {
                        let kept = workspace.keep_captures();
                        kept.map_err(|error| RunError::Failed(error.to_string()))?;
                        let sent = attempted.send_times.take();
                        if let Some((replay, sent)) = self.replay.as_ref().zip(sent) {
                            replay(run, Sources::as_sent(sent));
                        }
                        return Ok(self.accepted(attempted, rejected, words(tolerated)));
                    }
                    words(found).join("; ")
                }
                Err(Trouble::Retryable(why)) => why,
                Err(Trouble::Run(error)) => return Err(error),
            };
            let (policy, scenario, repetition) = (&key.policy, &key.scenario, key.repetition);
            (self.notice)(&format!(
                "rejected: {policy} / {scenario}, repetition {repetition}: {why}"
            ));
            rejected.push(why);
            if rejected.len() >= self.thresholds.attempts as usize {
                return Err(RunError::Failed(format!(
                    "all {} attempts were rejected: {}",
                    rejected.len(),
                    with_counts(&rejected)
                )));
            }
            self.pause(rejected.len());
        }
    }
}

impl Testbed {
    /// Wait before another attempt, longer each time, and until steal is low, if it ever is:
    /// disturbances come in bursts.
    fn pause(&self, attempts: usize) {
        let doubled = 1 << attempts.min(6);
        let began = Instant::now();
        let least = LONGEST_PAUSE.min(FIRST_PAUSE * doubled);
        let mut at_rest = Duration::ZERO;
        while !self.interrupt.load(Ordering::Relaxed) {
            let waited = began.elapsed();
            let is_at_rest = self.tolerates_noise || at_rest >= REST || waited >= LONGEST_SPELL;
            if waited >= least && is_at_rest {
                return;
            }
            let before = ProcessorTime::now();
            thread::sleep(FIRST_PAUSE);
            if ProcessorTime::now().stolen_since(before) > STEAL_AT_REST {
                at_rest = Duration::ZERO;
            } else {
                at_rest += FIRST_PAUSE;
            }
        }
    }

    fn accepted(
        &self,
        attempted: Attempted,
        rejected: Vec<String>,
        tolerated: Vec<String>,
    ) -> RunRecord {
        let mut record = attempted.record;
        let mut live = attempted.testbed;
        live.rejected = rejected;
        live.tolerated = tolerated;
        live.versions.clone_from(&self.versions);
        record.testbed = Some(live);
        record
    }
}

/// Each reason once, with how often it was one.
fn with_counts(reasons: &[String]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match counted.iter_mut().find(|(other, _)| other == reason) {
            Some((_, count)) => *count += 1,
            None => counted.push((reason, 1)),
        }
    }
    let told = counted.into_iter().map(|(reason, count)| match count {
        1 => reason.to_owned(),
        _ => format!("{reason} ({count} times)"),
    });
    told.collect::<Vec<_>>().join("; ")
}

fn words(objections: Vec<Objection>) -> Vec<String> {
    objections.into_iter().map(|one| one.why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_rejected_attempts_are_told_once_with_their_number() {
        let reasons = ["no room", "too late", "no room", "no room"].map(str::to_owned);
        assert_eq!(with_counts(&reasons), "no room (3 times); too late");
    }
}
