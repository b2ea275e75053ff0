//! A policy of a configuration: which one is meant, what is wrong with it, and what it says.

use super::attach::{Attached, Direction, grouped};
use super::class_map::{ClassMapText, MatchLine};
use super::config::{IosConfig, IosPolicy, IosPolicyError, PolicyChoiceError};
use super::definition::Definitions;
use super::link;
use super::notes::Notes;
use super::policy_map::PolicyMapText;
use super::reach::Reach;
use crate::error::TextError;
use slicewise_model::{ClassMap, ClassSpec, Condition, Discipline, ManagerSpec, PolicySpec};
use std::collections::BTreeSet;

impl IosConfig {
    /// The errors of the whole text, also in definitions that no policy needs:
    /// [`ERRORS_MAX`](crate::ERRORS_MAX) at most, in order. Errors of names are given where
    /// every line could be read.
    #[must_use]
    pub fn errors(&self) -> Vec<TextError> {
        let all = Reach::all(self);
        let policies = 0..self.policy_maps.len();
        match self.check(&all, policies) {
            Ok(()) => Vec::new(),
            Err(errors) => errors,
        }
    }

    /// The policy map `name`, with its class maps, access lists and children. Without a name: the
    /// only one that a `service-policy` attaches to an interface, for output rather than for input;
    /// where none is attached, the only one that is not the child of another.
    ///
    /// # Errors
    /// Where there is no such policy map, or no name was given and several could be meant. What is
    /// wrong in the definitions that the policy needs, and in lines that belong to no definition: a
    /// line that is not known, an argument that is missing, wrong or out of range, a name that is
    /// defined twice or not at all, a policy map that contains itself.
    pub fn policy(&self, name: Option<&str>) -> Result<IosPolicy, IosPolicyError> {
        let index = self.choose(name).map_err(|error| {
            // A definition may be missing because its first line is wrong.
            match self.errors.is_empty() {
                true => error,
                false => IosPolicyError::Text(self.errors.clone().into_errors()),
            }
        })?;
        let reach = Reach::of(self, index);
        self.check(&reach, index..index + 1)
            .map_err(IosPolicyError::Text)?;
        let Some(map) = self.policy_maps.get(index) else {
            return Err(IosPolicyError::Choice(PolicyChoiceError::NoPolicyMap));
        };
        let Notes { notes, unused } = self.notes(&reach, map, name.is_none());
        Ok(IosPolicy {
            spec: self.policy_spec(map),
            notes,
            unused,
            attached: grouped(&self.attachments),
            lines: reach.lines(self),
        })
    }

    /// Returns the index of the policy map of that name, or of the only one.
    fn choose(&self, name: Option<&str>) -> Result<usize, IosPolicyError> {
        let choice = |error| Err(IosPolicyError::Choice(error));
        if let Some(name) = name {
            let found = self.policy_maps.iter().position(|map| map.name == name);
            return found.map_or_else(
                || match self.policy_maps.len() {
                    0 => choice(PolicyChoiceError::NoPolicyMap),
                    _ => choice(PolicyChoiceError::Unknown {
                        name: name.to_owned(),
                        known: self.policy_names().map(str::to_owned).collect(),
                    }),
                },
                Ok,
            );
        }
        let candidates = self.candidates();
        if let Some(first) = candidates.first() {
            if candidates.iter().any(|other| other.policy != first.policy) {
                let attached = candidates;
                return choice(PolicyChoiceError::SeveralAttached { attached });
            }
            return self.attached(&first.policy);
        }
        let roots = self.roots();
        match roots[..] {
            [] => choice(PolicyChoiceError::NoPolicyMap),
            [root] => Ok(root),
            _ => {
                let maps = roots.iter().filter_map(|&root| self.policy_maps.get(root));
                let names = maps.map(|map| map.name.clone()).collect();
                choice(PolicyChoiceError::Ambiguous { names })
            }
        }
    }

    /// Returns the policy maps attached for output, or else those for input.
    fn candidates(&self) -> Vec<Attached> {
        let mut attached = grouped(&self.attachments);
        if attached
            .first()
            .is_some_and(|first| first.direction == Direction::Output)
        {
            attached.retain(|one| one.direction == Direction::Output);
        }
        attached
    }

    fn attached(&self, policy: &str) -> Result<usize, IosPolicyError> {
        let mut attachments = self.attachments.iter();
        let found = attachments.find(|attachment| attachment.policy.name == policy);
        match found.map(|attachment| (&attachment.policy, attachment.policy.index)) {
            Some((_, Some(index))) => Ok(index),
            Some((reference, None)) => {
                let mut names = Definitions::new("policy map");
                for (index, map) in self.policy_maps.iter().enumerate() {
                    let _ = names.define(&map.name, map.span, index);
                }
                let error = names.undefined(&reference.name, reference.span);
                Err(IosPolicyError::Text(vec![error]))
            }
            None => Err(IosPolicyError::Choice(PolicyChoiceError::NoPolicyMap)),
        }
    }

    /// The policy maps that are not the child of another; where there are others, without those attached to the
    /// control plane.
    fn roots(&self) -> Vec<usize> {
        let classes = self.policy_maps.iter().flat_map(|map| &map.classes);
        let children: BTreeSet<usize> = classes
            .filter_map(|class| class.child.as_ref()?.index)
            .collect();
        let roots = 0..self.policy_maps.len();
        let (of_device, of_links): (Vec<usize>, Vec<usize>) = roots
            .filter(|root| !children.contains(root))
            .partition(|&root| {
                let map = self.policy_maps.get(root);
                map.is_some_and(|map| self.of_control_plane.contains(&map.name))
            });
        if of_links.is_empty() {
            of_device
        } else {
            of_links
        }
    }

    /// Checks the definitions of `reach`, of which `policies` must expand to something.
    fn check(&self, reach: &Reach, policies: std::ops::Range<usize>) -> Result<(), Vec<TextError>> {
        let mut report = self.errors.clone();
        for source in reach.sources(self) {
            report.extend(source.wrong.iter());
            if !self.is_lenient {
                report.extend(source.unmodelled.iter().map(|line| &line.error));
            }
        }
        if !self.is_lenient {
            report.extend(reach.unseen(self).map(|(.., error)| error));
        }
        if report.is_empty() {
            for source in reach.sources(self) {
                report.extend(source.unlinked.iter());
            }
        }
        if report.is_empty() {
            let mut sizes = vec![None; self.policy_maps.len()];
            let mut expanded = policies.map(|index| link::check_expansion(self, index, &mut sizes));
            report.add_failure(expanded.find(Result::is_err).unwrap_or(Ok(())));
        }
        match report.is_empty() {
            true => Ok(()),
            false => Err(report.into_errors()),
        }
    }

    /// Recursion ends: `check` has bounded the depth and the size of what comes out.
    fn policy_spec(&self, map: &PolicyMapText) -> PolicySpec {
        let classes = map.classes.iter().map(|class| {
            let class_map = class.map.and_then(|index| self.class_maps.get(index));
            let child = class
                .child
                .as_ref()
                .and_then(|child| self.policy_maps.get(child.index?));
            let spec = class.spec.clone();
            // Early drop in a queue by flow is not modelled.
            let mut queue = spec.queue;
            if let (ManagerSpec::TailDrop, Some(wred)) = (&queue.manager, &class.wred) {
                queue.manager = ManagerSpec::Red(wred.clone());
            }
            ClassSpec {
                matches: class_map.map(|map| self.class_map(map)),
                child: child.map(|child| Box::new(self.policy_spec(child))),
                queue,
                ..spec
            }
        });
        PolicySpec {
            name: map.name.clone(),
            classes: classes.collect(),
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        }
    }

    fn class_map(&self, map: &ClassMapText) -> ClassMap {
        let conditions = map.matches.iter().filter_map(|line| match line {
            MatchLine::Condition(condition) => Some(condition.clone()),
            MatchLine::AccessGroup { list, negated } => {
                let list = self.access_lists.get(list.index?)?;
                let condition = Condition::AccessList(list.access_list());
                Some(if *negated {
                    Condition::Not(Box::new(condition))
                } else {
                    condition
                })
            }
            // Refused by `check` unless it is lenient: then no packet meets it.
            MatchLine::Unseen { negated: true, .. } => Some(Condition::Everything),
            MatchLine::Unseen { negated: false, .. } => {
                Some(Condition::Not(Box::new(Condition::Everything)))
            }
        });
        ClassMap {
            name: map.name.clone(),
            mode: map.mode,
            conditions: conditions.collect(),
        }
    }
}
