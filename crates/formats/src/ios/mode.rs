//! The modes of the IOS command line, and the commands that tell one part of a configuration from
//! another.

use super::access_list::{kind_of_number, number_of_name};
use super::police;
use super::policy_map::CLASS_COMMANDS;
use super::words::Words;
use crate::error::one_of;

/// Where on the command line we are. What is being defined is the last of its kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Top,
    ClassMap,
    AccessList,
    PolicyMap,
    Class,
    Police,
    /// A part of the configuration that is skipped.
    Section,
}

impl Mode {
    pub const ALL: [Self; 6] = [
        Self::Top,
        Self::ClassMap,
        Self::AccessList,
        Self::PolicyMap,
        Self::Class,
        Self::Police,
    ];

    pub fn parent(self) -> Option<Self> {
        match self {
            Self::Top => None,
            Self::ClassMap | Self::AccessList | Self::PolicyMap | Self::Section => Some(Self::Top),
            Self::Class => Some(Self::PolicyMap),
            Self::Police => Some(Self::Class),
        }
    }

    /// The first words of the commands of this mode.
    pub fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Top => &["access-list", "class-map", "end", "ip", "policy-map"],
            Self::ClassMap => &["description", "match"],
            Self::AccessList => &["deny", "permit", "remark"],
            Self::PolicyMap => &["class", "description"],
            Self::Class => &CLASS_COMMANDS,
            Self::Police => &police::ACTIONS,
            Self::Section => &[],
        }
    }

    /// True where `words` is a command of this mode. Of the commands at the top, some belong to other
    /// parts of a configuration: those are not about quality of service.
    pub fn has(self, words: &Words<'_, '_>) -> bool {
        let is = |index: usize, keyword: &str| words.at(index).is_some_and(|w| w.is(keyword));
        let Some(first) = words.peek() else {
            return false;
        };
        if !self.commands().iter().any(|command| first.is(command)) {
            return self == Self::AccessList && words.peek_number().is_some();
        }
        let second = words.at(1).map(|word| word.text);
        match (self, first.text.to_ascii_lowercase().as_str()) {
            (Self::Top, "ip") => is(1, "access-list") && (is(2, "extended") || is(2, "standard")),
            (Self::Top, "access-list") => second
                .and_then(number_of_name)
                .is_some_and(|number| kind_of_number(number).is_some()),
            (Self::Top, "class-map" | "policy-map") => !is(1, "type") || words.is_queueing_type(1),
            _ => true,
        }
    }

    /// Where its commands belong, in words.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Top | Self::Section => "at the top",
            Self::ClassMap => "under `class-map`",
            Self::AccessList => "under `ip access-list`",
            Self::PolicyMap => "under `policy-map`",
            Self::Class => "under `class` in a policy map",
            Self::Police => "under `police`",
        }
    }

    /// Describes the commands that may stand here.
    pub fn expected(self) -> String {
        match self {
            Self::Top | Self::Section => one_of(Self::Top.commands()),
            Self::Police => {
                let commands = [self.commands(), Self::Class.commands()].concat();
                format!("{}, or the next class or definition", one_of(&commands))
            }
            Self::Class => format!(
                "{}, or the next class or definition",
                one_of(self.commands())
            ),
            _ => format!("{}, or the next definition", one_of(self.commands())),
        }
    }

    /// This mode and those around it.
    pub fn chain(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |mode| mode.parent())
    }
}

/// Commands that leave a mode; the latter two leave a definition in IOS XR.
pub(super) const LEAVING: [&str; 3] = ["exit", "end-class-map", "end-policy-map"];
/// Long keywords of the top, a misspelling of which would skip a definition.
const KEYWORDS: [&str; 3] = ["access-list", "class-map", "policy-map"];
/// Commands that begin another section even in a text that is not indented at all. Elsewhere any
/// command does that is not indented and not known.
pub(super) const SECTIONS: [&str; 38] = [
    "aaa",
    "alias",
    "archive",
    "banner",
    "boot",
    "bridge",
    "bridge-domain",
    "cdp",
    "control-plane",
    "controller",
    "crypto",
    "dial-peer",
    "enable",
    "event",
    "hostname",
    "interface",
    "ip",
    "ipv6",
    "key",
    "line",
    "logging",
    "ntp",
    "object-group",
    "parameter-map",
    "redundancy",
    "route-map",
    "router",
    "service",
    "snmp-server",
    "spanning-tree",
    "tacacs-server",
    "track",
    "username",
    "version",
    "vlan",
    "vrf",
    "zone",
    "zone-pair",
];
/// Sections other than `interface` with a `service-policy` of their own, which may not be indented.
pub(super) const PLACES: [&str; 3] = ["control-plane", "map-class", "template"];

/// Returns true for `interface` or an abbreviation of it: the section is skipped anyway.
pub(super) fn is_interface(word: &str) -> bool {
    const INTERFACE: &str = "interface";
    word.len() >= 3
        && INTERFACE
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// The keyword that `word` is a misspelling or an abbreviation of.
pub(super) fn misspelt(word: &str) -> Option<&'static str> {
    const ABBREVIATION_CHARS_MIN: usize = 7;
    const DISTANCE_MAX: usize = 2;
    let word = word.to_ascii_lowercase();
    if word.len() > 2 * ABBREVIATION_CHARS_MIN {
        return None;
    }
    KEYWORDS.into_iter().find(|keyword| {
        *keyword != word
            && (word.len() >= ABBREVIATION_CHARS_MIN && keyword.starts_with(&word)
                || strsim::damerau_levenshtein(&word, keyword) <= DISTANCE_MAX)
    })
}
