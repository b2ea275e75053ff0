//! A configuration that was read: definitions by name, and the policies they make.

use super::access_list::AccessListText;
use super::attach::{Attached, Attachment, InterfaceRates, listed, rate_of_name};
use super::class_map::ClassMapText;
use super::policy_map::PolicyMapText;
use super::sections::Skipped;
use crate::error::{Report, TextError, TextNote, closest, quoted};
use slicewise_model::PolicySpec;
use slicewise_units::BitRate;
use std::collections::{BTreeMap, BTreeSet};

/// Class maps, access lists and policy maps of one text, in the order written; and where policy
/// maps are attached.
#[derive(Debug, Clone, Default)]
pub struct IosConfig {
    pub(super) class_maps: Vec<ClassMapText>,
    pub(super) access_lists: Vec<AccessListText>,
    pub(super) policy_maps: Vec<PolicyMapText>,
    pub(super) attachments: Vec<Attachment>,
    /// By the name of the interface.
    pub(super) interfaces: BTreeMap<String, InterfaceRates>,
    /// Policy maps of what is addressed to the device itself.
    pub(super) of_control_plane: BTreeSet<String>,
    pub(super) skipped: Skipped,
    /// Lines that are not modelled are left out, and noted.
    pub(super) is_lenient: bool,
    /// Of lines that are part of no definition.
    pub(super) errors: Report,
}

/// A policy of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IosPolicy {
    /// The policy map with its class maps, access lists and children.
    pub spec: PolicySpec,
    /// Notes on how it was read, in the order of the text.
    pub notes: Vec<TextNote>,
    /// The rest of what was not used of the text, in order: with `notes` every line that is not among `lines`.
    pub unused: Vec<TextNote>,
    /// All policy maps that are attached to interfaces, for output before those for input.
    pub attached: Vec<Attached>,
    /// Numbers of the lines that it was read from, in order, from 1.
    pub lines: Vec<usize>,
}

/// Why a configuration gives no policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IosPolicyError {
    /// It is not clear which one.
    Choice(PolicyChoiceError),
    /// The text is wrong: the independent errors in order, [`ERRORS_MAX`](crate::ERRORS_MAX) at most.
    Text(Vec<TextError>),
}

impl std::fmt::Display for IosPolicyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Choice(error) => error.fmt(f),
            Self::Text(errors) => {
                let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

impl std::error::Error for IosPolicyError {}

/// Why no policy map could be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyChoiceError {
    /// The text has no policy map at all.
    #[error("the configuration has no `policy-map`")]
    NoPolicyMap,
    /// There is no policy map of that name.
    #[error("the configuration has no `policy-map {name}`: it has {}{}", known.join(", "), did_you_mean(name, known))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// No name was given, none is attached, and several policy maps could be meant.
    #[error("the configuration has several policy maps ({}): say which one", names.join(", "))]
    Ambiguous {
        /// The policy maps that are not the child of another.
        names: Vec<String>,
    },
    /// No name was given and several policy maps are attached.
    #[error(
        "interfaces have different policy maps: {}: say which one",
        listed(attached)
    )]
    SeveralAttached {
        /// The policy maps with their places; those for input only where there is none for output.
        attached: Vec<Attached>,
    },
}

fn did_you_mean(name: &str, known: &[String]) -> String {
    closest(name, known.iter().map(String::as_str))
        .map(|known| format!("; did you mean {}?", quoted(known)))
        .unwrap_or_default()
}

impl IosConfig {
    /// The names of the policy maps, in the order written.
    pub fn policy_names(&self) -> impl Iterator<Item = &str> {
        let names = self.policy_maps.iter().map(|map| map.name.as_str());
        names.filter(|name| !name.is_empty())
    }

    /// The same configuration, of which lines that are no mistake and not modelled are left out, each with a note: a
    /// setting as if it were not there, a criterion as if no packet met it.
    #[must_use]
    pub fn leniently(self) -> Self {
        Self {
            is_lenient: true,
            ..self
        }
    }

    /// The rate of an interface: as its configuration states it (`bandwidth`, `speed`), or that of the interface that it
    /// is a part of; else as its name says. `None` where neither does.
    #[must_use]
    pub fn interface_rate(&self, interface: &str) -> Option<BitRate> {
        self.stated_rate(interface)
            .or_else(|| rate_of_name(interface))
    }

    /// True where the configuration itself states the rate of an interface.
    #[must_use]
    pub fn states_rate(&self, interface: &str) -> bool {
        self.stated_rate(interface).is_some()
    }

    fn stated_rate(&self, interface: &str) -> Option<BitRate> {
        let whole = interface
            .split_once('.')
            .map_or(interface, |(whole, _)| whole);
        let stated = |name: &str| self.interfaces.get(name)?.stated();
        stated(interface).or_else(|| stated(whole))
    }

    /// The names of the class maps, in the order written.
    pub fn class_map_names(&self) -> impl Iterator<Item = &str> {
        self.class_maps.iter().map(|map| map.name.as_str())
    }

    /// The lines that are not about quality of service; none where all of them are.
    #[must_use]
    pub fn skipped(&self) -> Option<&Skipped> {
        Some(&self.skipped).filter(|skipped| skipped.lines() > 0)
    }
}
