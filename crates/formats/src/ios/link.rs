//! References between definitions: they must exist, must not form a loop, and what they expand to
//! must stay of reasonable size.

use super::class_map::{ClassMapText, MatchLine};
use super::config::IosConfig;
use super::definition::{Definitions, Reference, UnmodelledLine};
use super::lexer::Line;
use super::policy_map::{ClassText, LeftOut, PolicyMapText};
use super::rules::{self, Command, Given};
use super::shares;
use crate::error::Span;
use crate::error::{Report, TextError, quoted};
use std::collections::BTreeSet;

/// Where each name is defined.
#[derive(Debug)]
pub(super) struct Names {
    pub class_maps: Definitions,
    pub access_lists: Definitions,
    pub policy_maps: Definitions,
    /// Access lists that are not IPv4 lists.
    foreign: BTreeSet<String>,
}

impl Names {
    /// Remember the list that a skipped line defines, if it defines one.
    pub fn note_foreign(&mut self, line: &Line<'_>) {
        let is = |index: usize, keyword: &str| line.words.get(index).is_some_and(|w| w.is(keyword));
        let at = if is(0, "access-list") {
            1
        } else if (is(0, "ipv6") || is(0, "mac")) && is(1, "access-list") {
            if is(2, "extended") { 3 } else { 2 }
        } else {
            return;
        };
        if let Some(name) = line.words.get(at) {
            self.foreign.insert(name.text.to_owned());
        }
    }

    /// Find the list of a `match access-group`, or say why there is none: one that is not of IPv4 cannot be matched.
    fn access_list(&self, line: &mut MatchLine, report: &mut Report) {
        let MatchLine::AccessGroup { list, negated } = line else {
            return;
        };
        list.index = self.access_lists.index(&list.name);
        if list.index.is_some() {
            return;
        }
        if !self.foreign.contains(&list.name) {
            report.add(|| self.access_lists.undefined(&list.name, list.span));
            return;
        }
        let message = format!("access list {} is not an IPv4 list", quoted(&list.name));
        let error = TextError::at(list.span, message)
            .expected("the name of an IPv4 list")
            .help("IPv6 and MAC lists are not read: match `dscp`, `precedence` or `vlan`")
            .unmodelled();
        *line = MatchLine::Unseen {
            criterion: format!("access-group {}", list.name),
            negated: *negated,
            error,
        };
    }
}

impl Default for Names {
    fn default() -> Self {
        Self {
            class_maps: Definitions::new("class map"),
            access_lists: Definitions::new("access list"),
            policy_maps: Definitions::new("policy map"),
            foreign: BTreeSet::new(),
        }
    }
}

/// Policy maps that may stand one below the other (IOS: three; the model: five).
pub(super) const DEPTH_MAX: usize = 5;
/// Most classes in a policy with all its children.
const CLASSES_MAX: u64 = 4_096;
/// Most conditions in a policy with all its children, entries of access lists counted wherever
/// they are used.
const CONDITIONS_MAX: u64 = 65_536;

/// Resolve every reference of `config`, leave out what decides nothing, set the weights of classes, and note
/// with each definition what is wrong.
pub(super) fn link(config: &mut IosConfig, names: &Names) {
    for list in &mut config.access_lists {
        let has_read_all = list.source.wrong.is_empty() && list.source.unmodelled.is_empty();
        if list.entries.is_empty() && has_read_all {
            list.source.unlinked.add(|| {
                let message = format!("access list {} has no entries", quoted(&list.name));
                TextError::at(list.span, message).expected("`permit` or `deny` lines")
            });
        }
        let sorted = list.sort();
        list.source.unlinked.add_failure(sorted);
    }
    for map in &mut config.class_maps {
        for line in &mut map.matches {
            names.access_list(line, &mut map.source.unlinked);
        }
    }
    for policy in &mut config.policy_maps {
        for class in &mut policy.classes {
            if !class.is_default() {
                class.map = names.class_maps.index(&class.spec.name);
                if class.map.is_none() {
                    let (name, span) = (&class.spec.name, class.span);
                    let undefined = || names.class_maps.undefined(name, span);
                    policy.source.unlinked.add(undefined);
                }
            }
            if let Some(child) = &mut class.child {
                let report = &mut policy.source.unlinked;
                names.policy_maps.resolve(child, report);
            }
        }
        leave_out(policy, &config.class_maps);
    }
    for attachment in &mut config.attachments {
        let policy = &mut attachment.policy;
        policy.index = names.policy_maps.index(&policy.name);
    }
    for index in 0..config.policy_maps.len() {
        check_commands(config, index);
    }
}

/// Leave out the classes whose criterion cannot be seen here, where they decide nothing: neither
/// they nor the classes after them have an action (that of `class-default` is theirs, too), or their packets are treated alike in every class
/// that comes after. A class without action keeps its packets from actions of later classes.
fn leave_out(policy: &mut PolicyMapText, class_maps: &[ClassMapText]) {
    let unseen = |class: &ClassText| {
        let map = class.map.and_then(|map| class_maps.get(map))?;
        map.matches.iter().find_map(|line| match line {
            MatchLine::Unseen { criterion, .. } => Some(criterion.clone()),
            _ => None,
        })
    };
    let mut kept: Vec<ClassText> = Vec::new();
    let mut ends_alike = true;
    // From the last class: what comes after it is what its packets are left to.
    while let Some(class) = policy.classes.pop() {
        let is_alike = |kept: &ClassText| class.only_marks_as(kept);
        let has_default = kept.first().is_some_and(ClassText::is_default);
        let none_acts = |class: &ClassText| class.is_default() || class.has_no_action();
        let decides_nothing = (class.has_no_action() && kept.iter().all(none_acts))
            || (has_default && ends_alike && kept.last().is_some_and(is_alike));
        match unseen(&class).filter(|_| decides_nothing) {
            Some(criterion) => policy.left_out.push(LeftOut {
                class: class.spec.name,
                span: class.span,
                map: class.map,
                criterion,
            }),
            None => {
                ends_alike = ends_alike && kept.last().is_none_or(is_alike);
                kept.push(class);
            }
        }
    }
    policy.left_out.reverse();
    policy.classes = kept;
    policy.classes.reverse();
}

/// The rules about the commands of a policy map, and the weights of its classes.
fn check_commands(config: &mut IosConfig, index: usize) {
    let given = given(config, index);
    let conflicts = rules::conflicts(&given);
    let Some(policy) = config.policy_maps.get_mut(index) else {
        return;
    };
    if conflicts.is_empty() {
        let assigned = shares::assign_weights(policy);
        policy.source.unlinked.add_failure(assigned);
    }
    let report = &mut policy.source.unlinked;
    for conflict in conflicts {
        report.add(|| {
            let line = conflict.first.at.line;
            TextError::at(conflict.second.at, conflict.to_string())
                .expected(conflict.instead)
                .help(format!(
                    "IOS XE accepts only one of them; the other is on line {line}"
                ))
        });
    }
    if let Some((above, most)) = rules::above_all(&given) {
        report.add(|| {
            let message = "the percentages of `bandwidth percent` add up to more than 100";
            TextError::at(above.at, message).expected(match most {
                0 => "none here: the classes above use all".to_owned(),
                most => format!("at most {most} %"),
            })
        });
    }
    for class in &policy.classes {
        let both = class.given("fair-queue").zip(class.given("random-detect"));
        policy
            .source
            .unmodelled
            .extend(both.map(early_drop_by_flow));
    }
}

/// Early drop in a queue by flow, which [`IosConfig::policy`] leaves out where it is lenient.
fn early_drop_by_flow((fair_queue, random_detect): (Span, Span)) -> UnmodelledLine {
    let error = TextError::at(
        random_detect,
        "`fair-queue` and `random-detect` in one class are not supported",
    );
    let line = fair_queue.line;
    UnmodelledLine {
        command: "random-detect".to_owned(),
        error: error
            .expected("one of them")
            .help(format!(
                "early drop by class is not modelled in a queue by flow: leave out this line or line {line}"
            ))
            .unmodelled(),
    }
}

/// The commands of a policy map that rules are about.
fn given(config: &IosConfig, policy: usize) -> Vec<Given<Span>> {
    let queues = |index: usize| {
        let map = config.policy_maps.get(index);
        map.is_some_and(|map| map.classes.iter().any(|class| !class.ruled.is_empty()))
    };
    let mut given = Vec::new();
    let classes = config.policy_maps.get(policy).map(|map| map.classes.iter());
    for (class, text) in classes.into_iter().flatten().enumerate() {
        let child = text.child.as_ref();
        let child = child.filter(|child| child.index.is_some_and(queues));
        let child = child.map(|child| (Command::QueueingChild, child.span));
        let mut commands: Vec<_> = text.ruled.iter().copied().chain(child).collect();
        commands.sort_by_key(|(_, span)| (span.line, span.column));
        given.extend(
            commands
                .into_iter()
                .map(|(command, at)| Given { class, command, at }),
        );
    }
    given
}

/// Size of a policy with all its children.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    levels: usize,
    classes: u64,
    conditions: u64,
}

/// Refuse loops, deep nesting, and a policy map that expands to too much. References are resolved; `sizes` are those
/// known already.
pub(super) fn check_expansion(
    config: &IosConfig,
    index: usize,
    sizes: &mut [Option<Size>],
) -> Result<(), TextError> {
    size_of(config, index, &mut Vec::new(), sizes).map(|_| ())
}

/// `path` holds the policy maps above this one; sizes known already are not computed again.
fn size_of(
    config: &IosConfig,
    index: usize,
    path: &mut Vec<usize>,
    sizes: &mut [Option<Size>],
) -> Result<Size, TextError> {
    if let Some(&Some(size)) = sizes.get(index) {
        return Ok(size);
    }
    let Some(policy) = config.policy_maps.get(index) else {
        return Ok(Size::default());
    };
    path.push(index);
    let mut size = Size {
        levels: 1,
        ..Size::default()
    };
    for class in &policy.classes {
        size.classes += 1;
        let map = class.map.and_then(|map| config.class_maps.get(map));
        size.conditions = size
            .conditions
            .saturating_add(map.map_or(0, |m| conditions(config, m)));
        let Some(reference) = &class.child else {
            continue;
        };
        let Some(child) = reference.index else {
            continue;
        };
        if path.contains(&child) {
            let message = format!("policy map {} contains itself", quoted(&reference.name));
            return Err(TextError::at(reference.span, message)
                .expected("a policy map that does not lead back here"));
        }
        if path.len() >= DEPTH_MAX {
            return Err(too_deep(reference));
        }
        let child = size_of(config, child, path, sizes)?;
        size.levels = size.levels.max(child.levels + 1);
        size.classes = size.classes.saturating_add(child.classes);
        size.conditions = size.conditions.saturating_add(child.conditions);
        if size.levels > DEPTH_MAX {
            return Err(too_deep(reference));
        }
    }
    path.pop();
    check_size(policy, size)?;
    if let Some(slot) = sizes.get_mut(index) {
        *slot = Some(size);
    }
    Ok(size)
}

fn too_deep(reference: &Reference) -> TextError {
    let message = format!("policy map {} nests too deep", quoted(&reference.name));
    TextError::at(reference.span, message).expected(format!("at most {DEPTH_MAX} levels"))
}

fn check_size(policy: &PolicyMapText, size: Size) -> Result<(), TextError> {
    let checks = [
        ("classes", size.classes, CLASSES_MAX),
        ("conditions", size.conditions, CONDITIONS_MAX),
    ];
    match checks.iter().find(|(_, count, most)| count > most) {
        None => Ok(()),
        Some((what, count, most)) => {
            let message = format!(
                "policy map {} comes to {count} {what}",
                quoted(&policy.name)
            );
            Err(TextError::at(policy.span, message)
                .expected(format!("at most {most}, those of its children included")))
        }
    }
}

fn conditions(config: &IosConfig, map: &ClassMapText) -> u64 {
    let of_list = |index: usize| {
        config
            .access_lists
            .get(index)
            .map_or(0, |l| l.entries.len())
    };
    let counts = map.matches.iter().map(|line| match line {
        MatchLine::AccessGroup { list, .. } => 1 + list.index.map_or(0, of_list),
        MatchLine::Condition(slicewise_model::Condition::AccessList(list)) => {
            1 + list.entries.len()
        }
        MatchLine::Condition(_) => 1,
        MatchLine::Unseen { .. } => 0,
    });
    counts.fold(0, |sum: u64, count| {
        sum.saturating_add(u64::try_from(count).unwrap_or(u64::MAX))
    })
}
