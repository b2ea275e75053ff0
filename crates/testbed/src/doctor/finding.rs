//! Findings.

use serde::Serialize;
use std::fmt;

/// Something to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// `slicewise gateway`.
    Gateway,
    /// `slicewise run --on gateway`.
    RunOnGateway,
    /// `slicewise run --on tc`.
    RunOnTc,
    /// `slicewise run --on dpdk`.
    RunOnDpdk,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Gateway,
        Self::RunOnGateway,
        Self::RunOnTc,
        Self::RunOnDpdk,
    ];

    /// The command.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Gateway => "slicewise gateway",
            Self::RunOnGateway => "slicewise run --on gateway",
            Self::RunOnTc => "slicewise run --on tc",
            Self::RunOnDpdk => "slicewise run --on dpdk",
        }
    }
}

/// Readiness of a purpose on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// All it needs is present.
    Can,
    /// Something it needs is missing.
    Cannot,
    /// Something it needs could not be checked.
    Unknown,
}

/// Subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The machine itself.
    Machine,
    /// Permissions of this user.
    Permission,
    /// Programs called.
    Programs,
    /// Conditions for a testbed to run here.
    Testbed,
    /// Network features of the kernel.
    Network,
    /// Traffic-control features of the kernel.
    TrafficControl,
}

impl Group {
    /// All of them, in output order.
    pub const ALL: [Self; 6] = [
        Self::Machine,
        Self::Permission,
        Self::Programs,
        Self::Testbed,
        Self::Network,
        Self::TrafficControl,
    ];

    /// Its heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Machine => "Machine",
            Self::Permission => "Permission",
            Self::Programs => "Programs",
            Self::Testbed => "Testbed",
            Self::Network => "Network",
            Self::TrafficControl => "Traffic control",
        }
    }
}

/// Its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// There.
    Ready,
    /// Present, but limited; blocks nothing.
    Limited,
    /// Not there.
    Missing,
    /// Could not be checked.
    Unknown,
}

/// How to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// Installing this package of Debian.
    Install(&'static str),
    /// This command.
    Run(String),
    /// Something that takes more than one command.
    Advice(String),
}

impl Fix {
    pub(super) fn advice(text: impl Into<String>) -> Self {
        Self::Advice(text.into())
    }

    /// The same examination as root.
    pub(super) fn as_root() -> Self {
        Self::Run("sudo slicewise doctor".to_owned())
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(package) => f.write_str(&install(&[package])),
            Self::Run(text) | Self::Advice(text) => f.write_str(text),
        }
    }
}

pub(super) fn install(packages: &[&str]) -> String {
    format!("apt-get install {}", packages.join(" "))
}

/// One thing checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its group.
    pub group: Group,
    /// Name of the check.
    pub name: &'static str,
    /// Its state.
    pub state: State,
    /// Details of the result.
    pub detail: String,
    /// Purpose of it; can follow "needed for".
    pub needed_for: &'static str,
    /// Purposes that cannot run without it.
    pub stops: Vec<Purpose>,
    /// How to fix it.
    pub fix: Option<Fix>,
}

impl Finding {
    pub(super) fn with_fix(self, fix: Fix) -> Self {
        let fix = Some(fix);
        Self { fix, ..self }
    }
}

/// Something to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) group: Group,
    pub(super) name: &'static str,
    pub(super) needed_for: &'static str,
    pub(super) stops: &'static [Purpose],
}

impl Check {
    pub(super) fn ready(&self, detail: impl Into<String>) -> Finding {
        self.found(State::Ready, detail)
    }

    pub(super) fn limited(&self, detail: impl Into<String>) -> Finding {
        self.found(State::Limited, detail)
    }

    pub(super) fn missing(&self, detail: impl Into<String>) -> Finding {
        self.found(State::Missing, detail)
    }

    pub(super) fn unknown(&self, detail: impl Into<String>) -> Finding {
        self.found(State::Unknown, detail)
    }

    fn found(&self, state: State, detail: impl Into<String>) -> Finding {
        Finding {
            group: self.group,
            name: self.name,
            state,
            detail: detail.into(),
            needed_for: self.needed_for,
            stops: self.stops.to_vec(),
            fix: None,
        }
    }
}

/// Purposes that need a testbed.
pub(super) const EVERY_RUN: &[Purpose] =
    &[Purpose::RunOnGateway, Purpose::RunOnTc, Purpose::RunOnDpdk];
/// All purposes.
pub(super) const EVERYTHING: &[Purpose] = &Purpose::ALL;
