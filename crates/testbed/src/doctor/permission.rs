//! Permissions of this user.

use super::Untried;
use super::finding::{Check, EVERY_RUN, Finding, Fix, Group, Purpose};
use std::fs;

const ROOT: Check = Check {
    group: Group::Permission,
    name: "root",
    needed_for: "network namespaces, and programs started in them",
    stops: EVERY_RUN,
};
const CAPABILITIES: Check = Check {
    group: Group::Permission,
    name: "capabilities",
    needed_for: "interfaces, packets, eBPF, namespaces, real time",
    stops: &[],
};

/// A required capability, by its number (`linux/capability.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Capability {
    number: u32,
    name: &'static str,
    /// Purposes that cannot run without it.
    stops: &'static [Purpose],
}

const ALL: [Capability; 5] = [
    Capability {
        number: 12,
        name: "CAP_NET_ADMIN",
        stops: &Purpose::ALL,
    },
    Capability {
        number: 13,
        name: "CAP_NET_RAW",
        stops: &Purpose::ALL,
    },
    Capability {
        number: 21,
        name: "CAP_SYS_ADMIN",
        stops: EVERY_RUN,
    },
    Capability {
        number: 23,
        name: "CAP_SYS_NICE",
        stops: &[],
    },
    Capability {
        number: 39,
        name: "CAP_BPF",
        stops: &[],
    },
];

/// User of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    /// Effective user.
    id: Option<u32>,
    /// Bit mask of effective capabilities.
    capabilities: u64,
}

impl User {
    pub(super) fn current() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    fn parse(status: &str) -> Self {
        let line = |name| {
            status
                .lines()
                .find_map(|line: &str| line.strip_prefix(name))
        };
        // Real, effective, saved, and that of file accesses.
        let id = line("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let bits = line("CapEff:").and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        Self {
            id,
            capabilities: bits.unwrap_or(0),
        }
    }

    pub(super) const fn is_root(&self) -> bool {
        matches!(self.id, Some(0))
    }

    /// Why nothing can be tried, if so.
    pub(super) fn barred(&self) -> Option<Untried> {
        let stops = |one: &Capability| !one.stops.is_empty();
        if !self.is_root() {
            Some(Untried::new("needs root", Some(Fix::as_root())))
        } else if self.lacks().iter().any(stops) {
            Some(Untried::new("needs the missing capabilities", None))
        } else {
            None
        }
    }

    fn lacks(&self) -> Vec<Capability> {
        let lacks = |one: &Capability| self.capabilities & (1 << one.number) == 0;
        ALL.into_iter().filter(lacks).collect()
    }
}

pub(super) fn examine(user: &User) -> Vec<Finding> {
    let root = match user.id {
        Some(0) => ROOT.ready("user 0"),
        id => {
            let who = id.map_or_else(|| "?".to_owned(), |id| id.to_string());
            ROOT.missing(format!("user {who}")).with_fix(Fix::as_root())
        }
    };
    vec![root, capabilities(user)]
}

fn capabilities(user: &User) -> Finding {
    let names = |of: &[Capability]| {
        let names: Vec<&str> = of.iter().map(|one| one.name).collect();
        names.join(", ")
    };
    let lacks = user.lacks();
    if lacks.is_empty() {
        return CAPABILITIES.ready(names(&ALL));
    }
    let detail = format!("without {}", names(&lacks));
    let mut stops: Vec<Purpose> = lacks.iter().flat_map(|one| one.stops).copied().collect();
    stops.sort_unstable();
    stops.dedup();
    let fix = if user.is_root() {
        Fix::advice("give the container these capabilities, or run outside it")
    } else {
        Fix::as_root()
    };
    let finding = if stops.is_empty() {
        CAPABILITIES.limited(detail)
    } else {
        CAPABILITIES.missing(detail)
    };
    Finding { stops, ..finding }.with_fix(fix)
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn status(user: u32, capabilities: u64) -> User {
        User::parse(&format!(
            "Name:\tslicewise\nUid:\t1000\t{user}\t0\t0\nCapEff:\t{capabilities:016x}\n"
        ))
    }

    #[test]
    fn the_effective_user_counts() {
        assert!(status(0, 0).is_root() && !status(1000, u64::MAX).is_root());
        assert!(!User::parse("").is_root());
    }

    #[test]
    fn checks_require_every_capability_of_a_run() {
        let without = |number: u32| status(0, !(1 << number)).barred();
        assert_eq!(status(7, u64::MAX).barred().unwrap().why, "needs root");
        assert!(without(21).is_some() && without(39).is_none());
    }

    #[test]
    fn each_capability_stops_what_needs_it() {
        let without = |name: &str| {
            let number = ALL.iter().find(|one| one.name == name).unwrap().number;
            capabilities(&status(0, !(1 << number)))
        };
        assert_eq!(capabilities(&status(0, u64::MAX)).state, State::Ready);
        assert_eq!(without("CAP_NET_RAW").stops, Purpose::ALL);
        assert_eq!(without("CAP_SYS_ADMIN").stops, EVERY_RUN);
        let bpf = without("CAP_BPF");
        assert_eq!((bpf.state, bpf.stops.len()), (State::Limited, 0));
        assert_eq!(bpf.detail, "without CAP_BPF");
    }
}
