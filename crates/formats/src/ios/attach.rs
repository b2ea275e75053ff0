//! `service-policy` on an interface: which policy map a configuration is about.

use super::definition::Reference;
use slicewise_units::BitRate;
use std::collections::BTreeMap;
use std::fmt;

/// On which side of an interface a policy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// For what leaves.
    Output,
    /// For what arrives.
    Input,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Output => "output",
            Self::Input => "input",
        })
    }
}

/// One `service-policy` outside of policy maps.
#[derive(Debug, Clone)]
pub(super) struct Attachment {
    /// The first line of the section it stands in, without `interface`.
    pub place: String,
    pub direction: Direction,
    pub policy: Reference,
}

/// Rates in the configuration of an interface.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InterfaceRates {
    /// `bandwidth`, which percentages refer to.
    pub bandwidth: Option<BitRate>,
    /// `speed`.
    pub speed: Option<BitRate>,
}

impl InterfaceRates {
    pub const fn stated(self) -> Option<BitRate> {
        match self.bandwidth {
            Some(rate) => Some(rate),
            None => self.speed,
        }
    }
}

/// The rate that the name of an interface says: `GigabitEthernet0/0/1`.
pub(super) fn rate_of_name(name: &str) -> Option<BitRate> {
    // In kbit/s; a serial interface is a T1 unless its configuration says otherwise.
    const KINDS: [(&str, u64); 10] = [
        ("hundredgig", 100_000_000),
        ("fiftygig", 50_000_000),
        ("fortygig", 40_000_000),
        ("twentyfivegig", 25_000_000),
        ("ten", 10_000_000),
        ("fivegig", 5_000_000),
        ("twogig", 2_500_000),
        ("gi", 1_000_000),
        ("fa", 100_000),
        ("se", 1_544),
    ];
    let name = name.to_ascii_lowercase();
    let kind = KINDS.iter().find(|(kind, _)| name.starts_with(kind));
    kind.map(|&(_, kilobits)| BitRate::new(kilobits * 1_000))
}

/// Places named in a message for each policy.
const PLACES_SHOWN: usize = 3;
/// Policies named in a message.
const POLICIES_SHOWN: usize = 8;

/// A policy map and the places where it is attached, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The policy map.
    pub policy: String,
    /// On which side.
    pub direction: Direction,
    /// Interfaces, and other places that a policy can be attached to.
    pub places: Vec<String>,
}

impl fmt::Display for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<&str> = self
            .places
            .iter()
            .take(PLACES_SHOWN)
            .map(String::as_str)
            .collect();
        write!(
            f,
            "{} ({} of {}",
            self.policy,
            self.direction,
            shown.join(", ")
        )?;
        match self.places.len().saturating_sub(shown.len()) {
            0 => f.write_str(")"),
            more => write!(f, " and {more} more)"),
        }
    }
}

/// `attachments` by direction and policy.
pub(super) fn grouped(attachments: &[Attachment]) -> Vec<Attached> {
    let mut groups: BTreeMap<(Direction, &str), Vec<String>> = BTreeMap::new();
    for attachment in attachments {
        let key = (attachment.direction, attachment.policy.name.as_str());
        groups
            .entry(key)
            .or_default()
            .push(attachment.place.clone());
    }
    let attached = |((direction, policy), places): ((Direction, &str), _)| Attached {
        policy: policy.to_owned(),
        direction,
        places,
    };
    groups.into_iter().map(attached).collect()
}

/// "A; B and 2 more" of what is attached.
pub(super) fn listed(attached: &[Attached]) -> String {
    let shown: Vec<String> = attached
        .iter()
        .take(POLICIES_SHOWN)
        .map(ToString::to_string)
        .collect();
    let more = attached.len() - shown.len();
    match more {
        0 => shown.join("; "),
        _ => format!("{} and {more} more", shown.join("; ")),
    }
}
