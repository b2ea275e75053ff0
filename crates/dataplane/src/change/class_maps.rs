//! Which class maps have to be exchanged at once on the way to another policy, because they meet others.

use super::slice::{ClassMaps, NewSlice, SliceChange};
use super::successors::Overlap;
use crate::classifier::Part;
use slicewise_model::{ClassMap, ClassParams, MatchMode, SliceParams};
use std::collections::{HashMap, HashSet};

/// Most class maps that are exchanged, and most other slices that may lose frames to them in one step.
const MOST: usize = 64;
/// So many are exchanged in one step, unless more meet one another.
const AT_ONCE: usize = 4;
/// From the last class map to one that comes after it.
const STEP: u32 = 1 << 10;

/// A class map at its place in a policy.
struct Placed<'a> {
    class: &'a ClassParams,
    /// Its index in the policy.
    index: usize,
    part: Part,
    /// Its position in the order in which class maps are tested.
    order: u32,
    /// Whether it is in force already: then it is behind those at the head that it meets.
    is_in_force: bool,
    /// Slices that may lose frames to it.
    from: Vec<&'a str>,
}

/// Class maps in force that meet others, by the names of their classes, with their positions in the order.
type Maps<'a> = HashMap<&'a str, (u32, &'a Option<ClassMap>)>;

/// The exchange of class maps that meet others and come, go, change, or move in their order, from `old`, with their positions in the
/// order, to `new`, in some steps; `None` if there are too many, or the order has no place for one.
///
/// Class maps at the head that stay as they are keep their frames whatever comes behind them: those meet no other.
pub(super) fn exchanged(old: &[(u32, ClassParams)], new: &[ClassParams]) -> Option<Vec<ClassMaps>> {
    let stays = |((_, old), new): &(&(u32, ClassParams), &ClassParams)| {
        old.name == new.name && old.matches == new.matches
    };
    let head = old.iter().zip(new).take_while(stays).count();
    let ((head, old), (_, new)) = (old.split_at(head), new.split_at(head));
    let first = head.iter().map(|(order, _)| *order).max().unwrap_or(0);
    let before = old.iter().map(|(_, class)| class);
    let overlap = Overlap::of(before.clone().chain(new));
    let meets = |class: &ClassParams| class.matches.is_some() && overlap.of_class(&class.name);
    let maps = old.iter().filter(|(_, class)| meets(class));
    let maps = maps.map(|(order, class)| (&*class.name, (*order, &class.matches)));
    let maps: Maps<'_> = maps.collect();
    let after = new.iter().enumerate().filter(|(_, class)| meets(class));
    let after: Vec<Placed<'_>> = after
        .map(|(index, class)| placed(index, class, &maps))
        .collect();
    let staying = staying(before.filter(|class| meets(class)), &after);
    let (stay, others): (Vec<_>, Vec<_>) = after
        .into_iter()
        .partition(|placed| staying.contains(&*placed.class.name));
    let wanted: HashSet<&str> = others.iter().map(|placed| &*placed.class.name).collect();
    let gone = |name: &&str| !staying.contains(name) && !wanted.contains(name);
    let mut gone: Vec<&str> = maps.keys().copied().filter(gone).collect();
    // In an order that does not depend on a hash.
    gone.sort_unstable();
    (others.len() + gone.len() <= MOST).then_some(())?;
    let mut settled: Vec<Placed<'_>> = Vec::new();
    for mut placed in others {
        settle(&mut placed, first, &stay, &settled)?;
        settled.push(placed);
    }
    // Only in another order than class maps that they do not meet.
    let is_same = |placed: &Placed<'_>| {
        let before = maps.get(&*placed.class.name);
        before == Some(&(placed.order, &placed.class.matches))
    };
    let (same, settled): (Vec<_>, Vec<_>) = settled.into_iter().partition(is_same);
    let before = |name: &str| maps.get(name).and_then(|(_, map)| map.as_ref());
    let gone = gone.into_iter().map(|name| {
        let order = maps.get(name).map_or(0, |(order, _)| *order);
        (name, nothing(name), order, Vec::new())
    });
    let settled = settled.into_iter().filter_map(|placed| {
        let map = placed.class.matches.clone()?;
        Some((&*placed.class.name, map, placed.order, placed.from))
    });
    let mut groups: Vec<Group> = Vec::new();
    for (name, map, order, from) in gone.chain(settled) {
        let mut part = before(name).map(Part::whole).unwrap_or_default();
        part.extend(Part::whole(&map));
        let from = from
            .into_iter()
            .chain(same.iter().map(|it| &*it.class.name));
        let maps = ClassMaps {
            placed: vec![(name.to_owned(), map, order)],
            from: from.map(str::to_owned).collect(),
        };
        join(&mut groups, (part, maps));
    }
    in_steps(groups)
}

/// Class maps that meet one another, and those that do not meet any of another group.
type Group = (Part, ClassMaps);

/// With the groups that it meets it becomes one.
fn join(groups: &mut Vec<Group>, (mut part, mut maps): Group) {
    groups.retain_mut(|(other, of_other)| {
        let stays = !other.overlaps(&part);
        if !stays {
            of_other.append(&mut maps);
            std::mem::swap(of_other, &mut maps);
            part.extend(std::mem::take(other));
        }
        stays
    });
    groups.push((part, maps));
}

/// A few class maps in each step, or all that meet one another.
fn in_steps(groups: Vec<Group>) -> Option<Vec<ClassMaps>> {
    let mut steps: Vec<ClassMaps> = Vec::new();
    for (_, mut maps) in groups {
        match steps.last_mut() {
            Some(last) if last.placed.len() + maps.placed.len() <= AT_ONCE => {
                last.append(&mut maps);
            }
            _ => steps.push(maps),
        }
    }
    for step in &mut steps {
        step.from.sort_unstable();
        step.from.dedup();
        (step.from.len() <= MOST).then_some(())?;
    }
    Some(steps)
}

fn placed<'a>(index: usize, class: &'a ClassParams, before: &Maps<'_>) -> Placed<'a> {
    let part = class.matches.as_ref().map(Part::whole);
    let in_force = before.get(&*class.name);
    Placed {
        class,
        index,
        part: part.unwrap_or_default(),
        // A new one has none yet.
        order: in_force.map_or(0, |(order, _)| *order),
        is_in_force: in_force.is_some_and(|(_, map)| **map == class.matches),
        from: Vec::new(),
    }
}

/// A class map gets a position behind those before it that it meets, and before those behind it; those may lose frames to it.
///
/// One that it did not have yet is also behind `first`, the last one of the head.
fn settle<'a>(
    placed: &mut Placed<'a>,
    first: u32,
    stay: &[Placed<'a>],
    settled: &[Placed<'_>],
) -> Option<()> {
    let (mut low, mut high) = (0, None);
    for other in stay
        .iter()
        .filter(|other| other.part.overlaps(&placed.part))
    {
        if other.index < placed.index {
            low = low.max(other.order);
        } else {
            high = Some(high.map_or(other.order, |high: u32| high.min(other.order)));
            placed.from.push(&other.class.name);
        }
    }
    let settled = settled.iter();
    let before = settled.filter(|other| other.part.overlaps(&placed.part));
    let low = before.map(|other| other.order).fold(low, u32::max);
    let is_behind_head = placed.is_in_force || placed.order > first;
    if is_behind_head && placed.order > low && high.is_none_or(|high| placed.order < high) {
        return Some(());
    }
    let low = low.max(first);
    placed.order = match high {
        Some(high) => low + high.checked_sub(low)? / 2,
        None => low.checked_add(STEP)?,
    };
    (placed.order > low).then_some(())
}

/// The names of the class maps that stay as they are, in their order: as many as possible.
fn staying<'a>(old: impl Iterator<Item = &'a ClassParams>, new: &[Placed<'_>]) -> HashSet<&'a str> {
    let after = new.iter().map(|placed| (&*placed.class.name, placed));
    let after: HashMap<&str, &Placed<'_>> = after.collect();
    let same = old.filter_map(|class| {
        let placed = after.get(&*class.name)?;
        (placed.class.matches == class.matches).then_some((placed.index, &*class.name))
    });
    let same: Vec<(usize, &str)> = same.collect();
    // A longest increasing subsequence (Schensted 1961): the last of the best of each length, and what was before each.
    let mut best: Vec<usize> = Vec::new();
    let mut before = Vec::with_capacity(same.len());
    let index_of = |position: usize| same.get(position).map(|(index, _)| *index);
    for (position, (index, _)) in same.iter().enumerate() {
        let length = best.partition_point(|&last| index_of(last) < Some(*index));
        before.push(
            length
                .checked_sub(1)
                .and_then(|last| best.get(last))
                .copied(),
        );
        match best.get_mut(length) {
            Some(place) => *place = position,
            None => best.push(position),
        }
    }
    let last = best.last().copied();
    let chain = std::iter::successors(last, |&position| before.get(position).copied().flatten());
    chain
        .filter_map(|position| Some(same.get(position)?.1))
        .collect()
}

/// A class map that no frame matches.
fn nothing(name: &str) -> ClassMap {
    ClassMap {
        name: name.to_owned(),
        mode: MatchMode::All,
        conditions: Vec::new(),
    }
}

/// A slice that comes, before it gets its class map and its guarantee, and the class that it is then, but for the class map.
pub(super) fn bare(mut new: NewSlice, class: &ClassParams) -> (SliceChange, ClassParams) {
    new.matches = nothing(&new.matches.name);
    new.params.guarantee = None;
    let class = ClassParams {
        slice: class.slice.map(|slice| SliceParams {
            guarantee: None,
            ..slice
        }),
        ..class.clone()
    };
    (SliceChange::Add(Box::new(new)), class)
}
