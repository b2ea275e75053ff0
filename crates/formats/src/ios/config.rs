//! A configuration that was read: definitions by name, and the policies they make.

use super::access_list::AccessListText;
use super::class_map::ClassMapText;
use super::error::{closest, quoted};
use super::policy_map::PolicyMapText;
use slicewise_model::{ClassMap, ClassSpec, Condition, Discipline, PolicySpec};

/// Class maps, access lists and policy maps of one text, in the order written.
///
/// Whatever they refer to exists and nothing refers to itself: [`parse`](super::parse) has
/// checked that.
#[derive(Debug, Clone, Default)]
pub struct IosConfig {
    pub(super) class_maps: Vec<ClassMapText>,
    pub(super) access_lists: Vec<AccessListText>,
    pub(super) policy_maps: Vec<PolicyMapText>,
}

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
    /// No name was given and several policy maps could be meant.
    #[error("the configuration has several policy maps ({}): say which one", names.join(", "))]
    Ambiguous {
        /// The policy maps that are not the child of another.
        names: Vec<String>,
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
        self.policy_maps.iter().map(|map| map.name.as_str())
    }

    /// The names of the class maps, in the order written.
    pub fn class_map_names(&self) -> impl Iterator<Item = &str> {
        self.class_maps.iter().map(|map| map.name.as_str())
    }

    /// The policy map `name`, with its class maps, access lists and children. Without a name: the
    /// only policy map that is not the child of another.
    ///
    /// # Errors
    /// Where there is no such policy map, or no name was given and several could be meant.
    pub fn policy(&self, name: Option<&str>) -> Result<PolicySpec, PolicyChoiceError> {
        let chosen = match name {
            Some(name) => {
                let found = self.policy_maps.iter().find(|map| map.name == name);
                found.ok_or_else(|| match self.policy_maps.len() {
                    0 => PolicyChoiceError::NoPolicyMap,
                    _ => PolicyChoiceError::Unknown {
                        name: name.to_owned(),
                        known: self.policy_names().map(str::to_owned).collect(),
                    },
                })?
            }
            None => {
                let mut roots = self.roots();
                let Some(first) = roots.next() else {
                    return Err(PolicyChoiceError::NoPolicyMap);
                };
                if roots.next().is_some() {
                    let names = self.roots().map(|map| map.name.clone()).collect();
                    return Err(PolicyChoiceError::Ambiguous { names });
                }
                first
            }
        };
        Ok(self.policy_spec(chosen))
    }

    /// The policy maps that are not the child of another.
    fn roots(&self) -> impl Iterator<Item = &PolicyMapText> {
        let classes = self.policy_maps.iter().flat_map(|map| &map.classes);
        let mut is_child = vec![false; self.policy_maps.len()];
        for child in classes.filter_map(|class| class.child.as_ref()?.index) {
            if let Some(is_child) = is_child.get_mut(child) {
                *is_child = true;
            }
        }
        self.policy_maps
            .iter()
            .zip(is_child)
            .filter(|(_, is_child)| !is_child)
            .map(|(map, _)| map)
    }

    /// Recursion ends: `parse` has bounded the depth and the size of what comes out.
    fn policy_spec(&self, map: &PolicyMapText) -> PolicySpec {
        let classes = map.classes.iter().map(|class| {
            let class_map = class.map.and_then(|index| self.class_maps.get(index));
            let child = class
                .child
                .as_ref()
                .and_then(|child| self.policy_maps.get(child.index?));
            ClassSpec {
                matches: class_map.map(|map| self.class_map(map)),
                child: child.map(|child| Box::new(self.policy_spec(child))),
                ..class.spec.clone()
            }
        });
        PolicySpec {
            name: map.name.clone(),
            classes: classes.collect(),
            discipline: Discipline::MinimumShare,
            guaranteed: None,
        }
    }

    fn class_map(&self, map: &ClassMapText) -> ClassMap {
        use super::class_map::MatchLine;
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
        });
        ClassMap {
            name: map.name.clone(),
            mode: map.mode,
            conditions: conditions.collect(),
        }
    }
}
