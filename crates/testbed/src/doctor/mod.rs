//! What this machine can do: everything that `slicewise gateway` and `slicewise run --on gateway|tc` need
//! of it, tried where it can be tried, and what mends what is missing.
//!
//! Nothing is changed. What is tried is tried in a network namespace made for that, under the [`Lease`]:
//! where another testbed runs, or left something behind, it is not tried, and said so.

mod features;
mod finding;
mod network;
mod permission;
mod place;
mod programs;
mod system;

pub use finding::{Finding, Group, Mend, Purpose, State, Verdict};

use crate::command::Tool;
use crate::lease::Lease;
use crate::machine::ProcessorTime;
use crate::scratch::Scratch;
use finding::Check;
use permission::User;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

/// Least time that steal is measured over.
const STEAL_SPAN: Duration = Duration::from_secs(1);
/// Longest wait until an interrupt is seen.
const POLL: Duration = Duration::from_millis(50);

/// Everything that was found, by group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// One of each check.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Whether something can be run.
    #[must_use]
    pub fn verdict(&self, purpose: Purpose) -> Verdict {
        let mut verdict = Verdict::Can;
        for finding in &self.findings {
            match finding.state {
                _ if !finding.stops.contains(&purpose) => {}
                State::Ready | State::Limited => {}
                State::Missing => return Verdict::Cannot,
                State::Unknown => verdict = Verdict::Unknown,
            }
        }
        verdict
    }

    /// The one command that installs all packages that are missing.
    #[must_use]
    pub fn install_command(&self) -> Option<String> {
        let mends = self.findings.iter().filter_map(|one| one.mend.as_ref());
        let packages: BTreeSet<&str> = mends
            .filter_map(|mend| match mend {
                Mend::Install(package) => Some(*package),
                Mend::Run(_) | Mend::Advice(_) => None,
            })
            .collect();
        let packages: Vec<&str> = packages.into_iter().collect();
        (!packages.is_empty()).then(|| finding::install(&packages))
    }
}

/// Look at this machine, for a second or two. `None` once `is_interrupted` says so; what was made to try
/// things in is gone then, too.
pub fn examine(is_interrupted: &dyn Fn() -> bool) -> Option<Examination> {
    let (before, start) = (ProcessorTime::now(), Instant::now());
    let user = User::current();
    let mut findings = system::examine();
    findings.extend(permission::examine(&user));
    findings.extend(programs::examine(user.is_root()));
    let (found, ground) = place::examine(user.barred());
    findings.extend(found);
    findings.extend(try_things(ground, is_interrupted)?);
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

/// The right to try things, or why not, and what mends that.
type Ground = Result<Lease, Untold>;

/// Why something could not be tried.
#[derive(Debug, Clone)]
struct Untold {
    why: String,
    mend: Option<Mend>,
}

impl Untold {
    fn new(why: impl Into<String>, mend: Option<Mend>) -> Self {
        let why = why.into();
        Self { why, mend }
    }

    fn findings(&self, checks: impl IntoIterator<Item = Check>) -> Vec<Finding> {
        let unknown = |check: Check| Finding {
            mend: self.mend.clone(),
            ..check.unknown(&self.why)
        };
        checks.into_iter().map(unknown).collect()
    }
}

/// What can only be told by trying; `None` once interrupted.
fn try_things(ground: Ground, is_interrupted: &dyn Fn() -> bool) -> Option<Vec<Finding>> {
    let all = || network::CHECKS.into_iter().chain(features::checks());
    let untold = match (ground, Tool::Ip.find()) {
        (Err(untold), _) => untold,
        (Ok(_), None) => Untold::new("`ip` cannot be called", None),
        (Ok(lease), Some(_)) => match Scratch::empty(&lease) {
            Ok(scratch) => return try_in(&scratch, is_interrupted),
            Err(problem) => {
                let mut findings = vec![network::no_namespace(&problem)];
                let untold = Untold::new("there is no network namespace to try it in", None);
                findings.extend(untold.findings(all().filter(|check| !network::is_first(check))));
                return Some(findings);
            }
        },
    };
    Some(untold.findings(all()))
}

fn try_in(scratch: &Scratch, is_interrupted: &dyn Fn() -> bool) -> Option<Vec<Finding>> {
    if is_interrupted() {
        return None;
    }
    let (mut findings, has_interfaces) = network::examine(scratch);
    if is_interrupted() {
        return None;
    }
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

    fn verdict(findings: &[Finding], purpose: Purpose) -> Verdict {
        let findings = findings.to_vec();
        Examination { findings }.verdict(purpose)
    }

    #[test]
    fn only_what_something_needs_stops_it() {
        let missing = CHECK.missing("cut");
        let findings = [CHECK.ready("there"), missing, CHECK.unknown("dark")];
        assert_eq!(verdict(&findings, Purpose::RunOnTc), Verdict::Cannot);
        assert_eq!(verdict(&findings, Purpose::Gateway), Verdict::Can);
    }

    #[test]
    fn what_is_limited_runs_and_what_is_unknown_is_not_promised() {
        let findings = [CHECK.limited("thin"), CHECK.ready("there")];
        assert_eq!(verdict(&findings, Purpose::RunOnTc), Verdict::Can);
        let findings = [CHECK.unknown("dark"), CHECK.ready("there")];
        assert_eq!(verdict(&findings, Purpose::RunOnTc), Verdict::Unknown);
    }

    #[test]
    fn one_command_installs_each_package_once() {
        let install = |package| CHECK.missing("").mended_by(Mend::Install(package));
        let findings = vec![install("tcpdump"), install("iproute2"), install("iproute2")];
        let command = Examination { findings }.install_command();
        assert_eq!(command.as_deref(), Some("apt-get install iproute2 tcpdump"));
    }

    #[test]
    fn every_check_is_told_once_where_nothing_can_be_tried() {
        let untold = Untold::new("needs root", None);
        let findings = try_things(Err(untold), &|| false).unwrap();
        let names: BTreeSet<&str> = findings.iter().map(|finding| finding.name).collect();
        assert_eq!(names.len(), findings.len());
        assert!(findings.iter().all(|one| one.state == State::Unknown));
        assert!(names.contains("AF_XDP") && names.contains("sch_htb"));
    }
}
