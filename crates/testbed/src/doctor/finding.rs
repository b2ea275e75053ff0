//! What is found.

use serde::Serialize;
use std::fmt;

/// Something one may want to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// `slicewise gateway`.
    Gateway,
    /// `slicewise run --on gateway`.
    RunOnGateway,
    /// `slicewise run --on tc`.
    RunOnTc,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gateway, Self::RunOnGateway, Self::RunOnTc];

    /// The command.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Gateway => "slicewise gateway",
            Self::RunOnGateway => "slicewise run --on gateway",
            Self::RunOnTc => "slicewise run --on tc",
        }
    }
}

/// Whether something can be run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All it needs is there.
    Can,
    /// Something it needs is missing.
    Cannot,
    /// Something it needs could not be looked at.
    Unknown,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The machine itself.
    Machine,
    /// What this user may do.
    Permission,
    /// Programs that are called.
    Programs,
    /// Whether a testbed has room.
    Testbed,
    /// What the kernel's network can do.
    Network,
    /// What the kernel's traffic control can do.
    TrafficControl,
}

impl Group {
    /// All of them, in the order they are told in.
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

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// There.
    Ready,
    /// There, but it could be better; nothing is stopped.
    Limited,
    /// Not there.
    Missing,
    /// It could not be looked at.
    Unknown,
}

/// What mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mend {
    /// Installing this package of Debian.
    Install(&'static str),
    /// This command.
    Run(String),
    /// Something that no single command does.
    Advice(String),
}

impl Mend {
    pub(super) fn advice(text: impl Into<String>) -> Self {
        Self::Advice(text.into())
    }

    /// The same examination with all rights.
    pub(super) fn as_root() -> Self {
        Self::Run("sudo slicewise doctor".to_owned())
    }
}

impl fmt::Display for Mend {
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

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it belongs to.
    pub group: Group,
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What needs it, in words that can follow "needed for".
    pub needed_for: &'static str,
    /// What cannot be run at all where it is missing.
    pub stops: Vec<Purpose>,
    /// What mends it.
    pub mend: Option<Mend>,
}

impl Finding {
    pub(super) fn mended_by(self, mend: Mend) -> Self {
        let mend = Some(mend);
        Self { mend, ..self }
    }
}

/// Something to look at.
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
            mend: None,
        }
    }
}

/// What every testbed needs.
pub(super) const BOTH_RUNS: &[Purpose] = &[Purpose::RunOnGateway, Purpose::RunOnTc];
/// What everything needs.
pub(super) const EVERYTHING: &[Purpose] = &Purpose::ALL;
