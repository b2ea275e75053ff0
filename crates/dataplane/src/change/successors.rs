//! Which classes of a policy are the same in another, and which of them the same frames reach.

use crate::build;
use crate::classifier::overlapping;
use slicewise_model::{ClassParams, PolicyParams};
use std::collections::HashMap;

/// The class of the same path in another policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Successor {
    pub(super) class: u32,
    /// The same frames reach it.
    pub(super) same_members: bool,
}

/// For each class of `old`, the one of the same path among those of `new`, of which these are the numbers.
pub(super) fn successors(
    old: &PolicyParams,
    new: &PolicyParams,
    numbers: &HashMap<String, u32>,
) -> Vec<Option<Successor>> {
    let mut successors = Vec::new();
    for_each_path(old, "", &mut |path| {
        successors.push(numbers.get(path).map(|&class| Successor {
            class,
            same_members: false,
        }));
    });
    find_same_members(old, new, 0, &mut successors);
    successors
}

/// The paths of all classes without a child, in their order.
fn for_each_path(policy: &PolicyParams, prefix: &str, visit: &mut impl FnMut(&str)) {
    for class in &policy.classes {
        let path = build::join(prefix, &class.name);
        match &class.child {
            Some(child) => for_each_path(child, &path, visit),
            None => visit(&path),
        }
    }
}

/// The same frames reach a class if it and all before it, in its policy and those around it, are as
/// they were; or if its class map is, and has no frame in common with another that moved, came or went.
/// `first` is the number of the first class without child under `old`.
fn find_same_members(
    old: &PolicyParams,
    new: &PolicyParams,
    mut first: usize,
    successors: &mut [Option<Successor>],
) {
    let pairs = old.classes.iter().zip(&new.classes);
    let in_place =
        pairs.take_while(|(old, new)| old.name == new.name && old.matches == new.matches);
    let in_place = in_place.count();
    let apart = apart(
        old.classes.get(in_place..).unwrap_or_default(),
        new.classes.get(in_place..).unwrap_or_default(),
    );
    for (position, class) in old.classes.iter().enumerate() {
        let same = match position.checked_sub(in_place) {
            None => new.classes.get(position),
            Some(moved) => apart.get(moved).copied().flatten(),
        };
        match (&class.child, same.map(|same| &same.child)) {
            (Some(old), Some(Some(new))) => find_same_members(old, new, first, successors),
            (None, Some(None)) => {
                if let Some(Some(successor)) = successors.get_mut(first) {
                    successor.same_members = true;
                }
            }
            _ => {}
        }
        first += class.child.as_ref().map_or(1, |child| build::leaves(child));
    }
}

/// For each class of `old`, that of the same name in `new` if both have a class map that is the same and no other
/// has a frame in common with. If that is so of all classes, class-default is the same, too.
fn apart<'a>(old: &[ClassParams], new: &'a [ClassParams]) -> Vec<Option<&'a ClassParams>> {
    if old.is_empty() || new.is_empty() {
        return vec![None; old.len()];
    }
    let overlap = Overlap::of(old.iter().chain(new));
    let successors: HashMap<&str, &ClassParams> = new
        .iter()
        .map(|class| (class.name.as_str(), class))
        .collect();
    let same = |class: &ClassParams| {
        let successor = *successors.get(class.name.as_str())?;
        let is_same = class.matches.is_some() && class.matches == successor.matches;
        (is_same && !overlap.of_class(&class.name)).then_some(successor)
    };
    let mut apart: Vec<Option<&ClassParams>> = old.iter().map(same).collect();
    if let (Some((same_default, others)), [.., old_default], [.., new_default]) =
        (apart.split_last_mut(), old, new)
        && old.len() == new.len()
        && old_default.matches.is_none()
        && new_default.matches.is_none()
        && others.iter().all(Option::is_some)
    {
        *same_default = Some(new_default);
    }
    apart
}

/// Which classes, of two policies, have a class map, in either of them, that has a frame in common with that of another class.
pub(super) struct Overlap<'a> {
    owners: HashMap<&'a str, usize>,
    overlap: Vec<bool>,
}

impl<'a> Overlap<'a> {
    pub(super) fn of(classes: impl IntoIterator<Item = &'a ClassParams>) -> Self {
        let mut owners: HashMap<&str, usize> = HashMap::new();
        let mut maps = Vec::new();
        for class in classes {
            let next = owners.len();
            let owner = *owners.entry(&class.name).or_insert(next);
            maps.extend(class.matches.as_ref().map(|map| (owner, map)));
        }
        let overlap = overlapping(owners.len(), maps);
        Self { owners, overlap }
    }

    /// Returns whether the class map of a class does.
    pub(super) fn of_class(&self, name: &str) -> bool {
        let owner = self.owners.get(name);
        owner.is_none_or(|&owner| self.overlap.get(owner).copied().unwrap_or(true))
    }
}
