//! Which definitions of a text a policy needs.

use super::class_map::MatchLine;
use super::config::IosConfig;
use super::definition::Source;
use super::policy_map::PolicyMapText;
use crate::error::{TextError, quoted};
use std::collections::BTreeSet;

/// Definitions, by their index among their kind.
#[derive(Debug, Default)]
pub(super) struct Reach {
    access_lists: BTreeSet<usize>,
    class_maps: BTreeSet<usize>,
    policy_maps: BTreeSet<usize>,
    /// Class maps of classes that are left out.
    left_out: BTreeSet<usize>,
}

impl Reach {
    /// Everything.
    pub fn all(config: &IosConfig) -> Self {
        Self {
            access_lists: (0..config.access_lists.len()).collect(),
            class_maps: (0..config.class_maps.len()).collect(),
            policy_maps: (0..config.policy_maps.len()).collect(),
            left_out: BTreeSet::new(),
        }
    }

    /// Finds the definitions that the policy map at `policy` leads to.
    pub fn of(config: &IosConfig, policy: usize) -> Self {
        let mut reach = Self::default();
        let mut open = vec![policy];
        while let Some(index) = open.pop() {
            let Some(map) = config.policy_maps.get(index) else {
                continue;
            };
            if !reach.policy_maps.insert(index) {
                continue;
            }
            let left_out = map.left_out.iter();
            reach
                .left_out
                .extend(left_out.filter_map(|class| class.map));
            for class in &map.classes {
                reach.class_maps.extend(class.map);
                open.extend(class.child.as_ref().and_then(|child| child.index));
            }
        }
        let maps = reach.class_maps.iter();
        let maps = maps.filter_map(|&map| config.class_maps.get(map));
        for line in maps.flat_map(|map| &map.matches) {
            if let MatchLine::AccessGroup { list, .. } = line {
                reach.access_lists.extend(list.index);
            }
        }
        reach
    }

    pub fn policy_maps<'c>(
        &self,
        config: &'c IosConfig,
    ) -> impl Iterator<Item = &'c PolicyMapText> {
        let maps = self.policy_maps.iter();
        maps.filter_map(|&index| config.policy_maps.get(index))
    }

    /// Where the definitions stand.
    pub fn sources<'c>(&self, config: &'c IosConfig) -> impl Iterator<Item = &'c Source> {
        let lists = self.access_lists.iter();
        let lists = lists.filter_map(|&index| Some(&config.access_lists.get(index)?.source));
        let maps = self.class_maps.iter();
        let maps = maps.filter_map(|&index| Some(&config.class_maps.get(index)?.source));
        let policies = self.policy_maps(config).map(|map| &map.source);
        lists.chain(maps).chain(policies)
    }

    /// Numbers of the lines of the definitions, in order.
    pub fn lines(&self, config: &IosConfig) -> Vec<usize> {
        let left_out = self.left_out.difference(&self.class_maps);
        let left_out = left_out.filter_map(|&map| Some(&config.class_maps.get(map)?.source));
        let sources = self.sources(config).chain(left_out);
        let mut lines: Vec<usize> = sources.flat_map(|source| source.lines.clone()).collect();
        lines.sort_unstable();
        lines
    }

    /// The criteria that cannot be matched, each with whether it is negated, and why.
    pub fn unseen<'c>(
        &self,
        config: &'c IosConfig,
    ) -> impl Iterator<Item = (&'c str, bool, &'c TextError)> {
        let maps = self.class_maps.iter();
        let maps = maps.filter_map(|&index| config.class_maps.get(index));
        maps.flat_map(|map| &map.matches)
            .filter_map(|line| match line {
                MatchLine::Unseen {
                    criterion,
                    negated,
                    error,
                } => Some((criterion.as_str(), *negated, error)),
                _ => None,
            })
    }

    /// The definitions that are not needed, each with its name and where it stands.
    pub fn unused<'c>(&self, config: &'c IosConfig) -> impl Iterator<Item = (String, &'c Source)> {
        let lists = config.access_lists.iter().enumerate();
        let lists = lists
            .filter(|(index, _)| !self.access_lists.contains(index))
            .map(|(_, list)| (format!("access list {}", quoted(&list.name)), &list.source));
        let maps = config.class_maps.iter().enumerate();
        let maps = maps
            .filter(|(index, _)| !self.class_maps.contains(index) && !self.left_out.contains(index))
            .map(|(_, map)| (format!("class map {}", quoted(&map.name)), &map.source));
        let policies = config.policy_maps.iter().enumerate();
        let policies = policies
            .filter(|(index, _)| !self.policy_maps.contains(index))
            .map(|(_, map)| (format!("policy map {}", quoted(&map.name)), &map.source));
        lists.chain(maps).chain(policies)
    }
}
