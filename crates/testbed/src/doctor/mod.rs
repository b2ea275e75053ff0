//! Checks everything that `slicewise gateway` and `slicewise run --on gateway|tc|dpdk` need from this
//! machine, by trying it where possible, and how to fix what is missing.
//!
//! Nothing is changed. Trials run in a temporary network namespace, under the [`Lease`]: if another
//! testbed is running, or left something behind, they are skipped and reported as such.

mod dpdk;
mod features;
mod finding;
mod network;
mod permission;
mod place;
mod programs;
mod system;
mod tcp;

pub use finding::{Finding, Fix, Group, Purpose, Readiness, State};

use crate::command::Tool;
use crate::lease::Lease;
use crate::machine::ProcessorTime;
use crate::scratch::Scratch;
use finding::Check;
use permission::User;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

/// Shortest time over which steal is measured.
const STEAL_SPAN: Duration = Duration::from_secs(1);
/// Longest delay until an interrupt is noticed.
const POLL: Duration = Duration::from_millis(50);

/// All findings, by group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// One per check.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Tells whether something can run.
    #[must_use]
    pub fn readiness(&self, purpose: Purpose) -> Readiness {
        let mut readiness = Readiness::Can;
        for finding in &self.findings {
            match finding.state {
                _ if !finding.stops.contains(&purpose) => {}
                State::Ready | State::Limited => {}
                State::Missing => return Readiness::Cannot,
                State::Unknown => readiness = Readiness::Unknown,
            }
        }
        readiness
    }

    /// One command that installs all missing packages.
    #[must_use]
    pub fn install_command(&self) -> Option<String> {
        let fixes = self.findings.iter().filter_map(|one| one.fix.as_ref());
        let packages: BTreeSet<&str> = fixes
            .filter_map(|fix| match fix {
                Fix::Install(package) => Some(*package),
                Fix::Run(_) | Fix::Advice(_) => None,
            })
            .collect();
        let packages: Vec<&str> = packages.into_iter().collect();
        (!packages.is_empty()).then(|| finding::install(&packages))
    }
}

/// Examine this machine for a second or two. `None` if interrupted; temporary namespaces are deleted
/// then, too.
pub fn examine(is_interrupted: &dyn Fn() -> bool) -> Option<Examination> {
    let (before, start) = (ProcessorTime::now(), Instant::now());
    let user = User::current();
    let mut findings = system::examine();
    findings.extend(permission::examine(&user));
    findings.extend(programs::examine(user.is_root()));
    findings.extend(dpdk::examine());
    let (found, lease) = place::examine(user.barred());
    findings.extend(found);
    findings.extend(try_things(lease, is_interrupted)?);
    while start.elapsed() < STEAL_SPAN {
        if is_interrupted() {
            return None;
        }
        thread::sleep(POLL);
    }
    let (stolen, _) = ProcessorTime::now().since(before);
    findings.push(system::steal(stolen));
    findings.sort_by_key(|finding| finding.group);
    Some(Examination { findings })
}

/// The lease for trials, or why there is none and how to fix that.
type TrialLease = Result<Lease, Untried>;

/// Why something could not be tried.
#[derive(Debug, Clone)]
struct Untried {
    why: String,
    fix: Option<Fix>,
}

impl Untried {
    fn new(why: impl Into<String>, fix: Option<Fix>) -> Self {
        let why = why.into();
        Self { why, fix }
    }

    fn findings(&self, checks: impl IntoIterator<Item = Check>) -> Vec<Finding> {
        let unknown = |check: Check| Finding {
            fix: self.fix.clone(),
            ..check.unknown(&self.why)
        };
        checks.into_iter().map(unknown).collect()
    }
}

/// Checks that need trials; `None` if interrupted.
fn try_things(lease: TrialLease, is_interrupted: &dyn Fn() -> bool) -> Option<Vec<Finding>> {
    let all = || {
        let network = network::CHECKS.into_iter().chain(tcp::CHECKS);
        network.chain(features::checks())
    };
    let untried = match (lease, Tool::Ip.find()) {
        (Err(untried), _) => untried,
        (Ok(_), None) => Untried::new("cannot run `ip`", None),
        (Ok(lease), Some(_)) => match Scratch::empty(&lease) {
            Ok(scratch) => return try_in(&scratch, is_interrupted),
            Err(problem) => {
                let mut findings = vec![network::no_namespace(&problem)];
                let untried = Untried::new("no network namespace to try it in", None);
                findings.extend(untried.findings(all().filter(|check| !network::is_first(check))));
                return Some(findings);
            }
        },
    };
    Some(untried.findings(all()))
}

fn try_in(scratch: &Scratch, is_interrupted: &dyn Fn() -> bool) -> Option<Vec<Finding>> {
    if is_interrupted() {
        return None;
    }
    let (mut findings, has_interfaces) = network::examine(scratch);
    if is_interrupted() {
        return None;
    }
    findings.extend(tcp::examine(scratch));
    findings.extend(features::examine(scratch, has_interfaces));
    (!is_interrupted()).then_some(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Check = Check {
        group: Group::Network,
        name: "wire",
        needed_for: "packets",
        stops: &[Purpose::RunOnTc],
    };

    fn readiness(findings: &[Finding], purpose: Purpose) -> Readiness {
        let findings = findings.to_vec();
        Examination { findings }.readiness(purpose)
    }

    #[test]
    fn only_required_items_block_a_purpose() {
        let missing = CHECK.missing("cut");
        let findings = [CHECK.ready("there"), missing, CHECK.unknown("dark")];
        assert_eq!(readiness(&findings, Purpose::RunOnTc), Readiness::Cannot);
        assert_eq!(readiness(&findings, Purpose::Gateway), Readiness::Can);
    }

    #[test]
    fn limited_items_run_and_unknown_ones_are_not_promised() {
        let findings = [CHECK.limited("thin"), CHECK.ready("there")];
        assert_eq!(readiness(&findings, Purpose::RunOnTc), Readiness::Can);
        let findings = [CHECK.unknown("dark"), CHECK.ready("there")];
        assert_eq!(readiness(&findings, Purpose::RunOnTc), Readiness::Unknown);
    }

    #[test]
    fn one_command_installs_each_package_once() {
        let install = |package| CHECK.missing("").with_fix(Fix::Install(package));
        let findings = vec![install("tcpdump"), install("iproute2"), install("iproute2")];
        let command = Examination { findings }.install_command();
        assert_eq!(command.as_deref(), Some("apt-get install iproute2 tcpdump"));
    }

    #[test]
    fn every_check_is_reported_once_if_nothing_can_be_tried() {
        let untried = Untried::new("needs root", None);
        let findings = try_things(Err(untried), &|| false).unwrap();
        let names: BTreeSet<&str> = findings.iter().map(|finding| finding.name).collect();
        assert_eq!(names.len(), findings.len());
        assert!(findings.iter().all(|one| one.state == State::Unknown));
        assert!(names.contains("AF_XDP") && names.contains("sch_htb"));
    }
}
