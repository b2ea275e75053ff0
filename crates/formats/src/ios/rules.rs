//! Which commands IOS XE does not take together, in a class or in a policy map.
//!
//! Reader and writer both ask here. `docs/formats/ios.md` names the reference of each rule, and the combinations
//! of which no reference was found: those are accepted.

use slicewise_model::RateSpec;
use std::fmt;

/// A command that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// `bandwidth KBPS`.
    Kilobits,
    /// `bandwidth percent`, in thousandths of a percent.
    Percent(u32),
    /// `bandwidth remaining percent`.
    RemainingPercent,
    /// `bandwidth remaining ratio`.
    RemainingRatio,
    /// `priority` without a level.
    Priority,
    /// `priority level`.
    PriorityLevel,
    /// `shape`.
    Shape,
    /// `service-policy`, of a policy map in which any of the others stands: these make a class a queue.
    QueueingChild,
}

use Command::{
    Kilobits, Percent, Priority, PriorityLevel, QueueingChild, RemainingPercent, RemainingRatio,
    Shape,
};

impl Command {
    /// The `bandwidth` that states a minimum.
    pub const fn of_minimum(minimum: RateSpec) -> Self {
        match minimum {
            RateSpec::Absolute(_) => Kilobits,
            RateSpec::PercentMilli(milli) => Percent(milli),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kilobits => "`bandwidth` in kbit/s",
            Percent(_) => "`bandwidth percent`",
            RemainingPercent => "`bandwidth remaining percent`",
            RemainingRatio => "`bandwidth remaining ratio`",
            Priority => "`priority`",
            PriorityLevel => "`priority level`",
            Shape => "`shape`",
            QueueingChild => "`service-policy` of a policy map that queues",
        })
    }
}

/// A command of a policy map: in which class, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<T> {
    pub class: usize,
    pub command: Command,
    pub at: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Class,
    PolicyMap,
}

/// Commands that exclude each other.
struct Rule {
    scope: Scope,
    one: fn(Command) -> bool,
    other: fn(Command) -> bool,
    /// Commands to write instead.
    instead: &'static str,
}

const RULES: [Rule; 6] = [
    Rule {
        scope: Scope::PolicyMap,
        one: |c| c == RemainingRatio,
        other: |c| matches!(c, Kilobits | Percent(_) | RemainingPercent),
        instead: "one kind of `bandwidth` in all classes of a policy map",
    },
    Rule {
        scope: Scope::PolicyMap,
        one: |c| c == Kilobits,
        other: |c| matches!(c, Percent(_) | RemainingPercent),
        instead: "all of a policy map's `bandwidth` in kbit/s, or all in percent",
    },
    Rule {
        scope: Scope::PolicyMap,
        one: |c| c == Priority,
        other: |c| c == PriorityLevel,
        instead: "a level in every priority class of a policy map, or in none",
    },
    Rule {
        scope: Scope::Class,
        one: |c| matches!(c, Priority | PriorityLevel),
        other: |c| matches!(c, Kilobits | Percent(_)),
        instead: "a rate with `priority` instead, or another class",
    },
    Rule {
        scope: Scope::Class,
        one: |c| matches!(c, Priority | PriorityLevel),
        other: |c| c == RemainingRatio,
        instead: "one of the two: a priority class takes no part in what remains",
    },
    Rule {
        scope: Scope::Class,
        one: |c| matches!(c, Kilobits | Percent(_)),
        other: |c| c == QueueingChild,
        instead: "`bandwidth remaining` in a class that a queueing policy map divides",
    },
];

/// Two commands that IOS XE does not take together; `second` is the later one.
#[derive(Debug)]
pub(super) struct Conflict<T> {
    pub first: Given<T>,
    pub second: Given<T>,
    scope: Scope,
    /// Commands to write instead.
    pub instead: &'static str,
}

impl<T> fmt::Display for Conflict<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            Scope::Class => "class",
            Scope::PolicyMap => "policy map",
        };
        let (first, second) = (self.first.command, self.second.command);
        write!(f, "{second} and {first} exclude each other in a {scope}")
    }
}

/// The conflicts between the commands of one policy map, given class by class: one a rule and policy map, or class.
pub(super) fn conflicts<T: Copy>(given: &[Given<T>]) -> Vec<Conflict<T>> {
    let mut conflicts = Vec::new();
    for rule in &RULES {
        let mut find = |part: &[Given<T>]| {
            let one = part.iter().position(|g| (rule.one)(g.command));
            let other = part.iter().position(|g| (rule.other)(g.command));
            if let (Some(one), Some(other)) = (one, other) {
                conflicts.push(Conflict {
                    first: part[one.min(other)],
                    second: part[one.max(other)],
                    scope: rule.scope,
                    instead: rule.instead,
                });
            }
        };
        match rule.scope {
            Scope::PolicyMap => find(given),
            Scope::Class => given.chunk_by(|a, b| a.class == b.class).for_each(find),
        }
    }
    conflicts
}

/// The `bandwidth percent` with which the sum in a policy map passes 100 %, and what it may be, in whole percent.
pub(super) fn above_all<T: Copy>(given: &[Given<T>]) -> Option<(Given<T>, u32)> {
    let mut left = 100_000u32;
    for one in given {
        if let Percent(milli) = one.command {
            match left.checked_sub(milli) {
                Some(less) => left = less,
                None => return Some((*one, left / 1_000)),
            }
        }
    }
    None
}
