//! Which class maps have to be exchanged at once on the way to another policy, because they meet others.

use super::slice::{ClassMaps, NewSlice, SliceChange};
use super::successors::Overlap;
use crate::classifier::Part;
use slicewise_model::{ClassMap, ClassParams, MatchMode, SliceParams};
use std::collections::{HashMap, HashSet};

/// Most class maps that are exchanged at once, and most other slices that may lose frames to them. Each is looked at in one step.
const MOST: usize = 64;
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
}

/// Class maps in force that meet others, by the names of their classes, with their positions in the order.
type Maps<'a> = HashMap<&'a str, (u32, &'a Option<ClassMap>)>;

/// The exchange of class maps that meet others and come, go, change, or move in their order, from `old`, with their positions in the
/// order, to `new`; `None` if there are too many, or the order has no place for one.
pub(super) fn exchanged(
    old: &[(u32, ClassParams)],
    new: &[ClassParams],
) -> Option<Option<ClassMaps>> {
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
    let mut from = HashSet::new();
    let mut settled: Vec<Placed<'_>> = Vec::new();
    for mut placed in others {
        placed.order = order_of(&placed, &stay, &settled, &mut from)?;
        settled.push(placed);
    }
    // Only in another order than class maps that they do not meet.
    let is_same = |placed: &Placed<'_>| {
        let before = maps.get(&*placed.class.name);
        before == Some(&(placed.order, &placed.class.matches))
    };
    let (same, settled): (Vec<_>, Vec<_>) = settled.into_iter().partition(is_same);
    if settled.is_empty() && gone.is_empty() {
        return Some(None);
    }
    from.extend(same.iter().map(|placed| &*placed.class.name));
    (from.len() <= MOST).then_some(())?;
    let mut from: Vec<String> = from.into_iter().map(str::to_owned).collect();
    from.sort_unstable();
    let gone = gone.into_iter().map(|name| {
        let order = maps.get(name).map_or(0, |(order, _)| *order);
        (name.to_owned(), nothing(name), order)
    });
    let placed = settled.into_iter().filter_map(|placed| {
        let map = placed.class.matches.clone()?;
        Some((placed.class.name.clone(), map, placed.order))
    });
    let placed = gone.chain(placed).collect();
    Some(Some(ClassMaps { placed, from }))
}

fn placed<'a>(index: usize, class: &'a ClassParams, before: &Maps<'_>) -> Placed<'a> {
    let part = class.matches.as_ref().map(Part::whole);
    Placed {
        class,
        index,
        part: part.unwrap_or_default(),
        // A new one has none yet.
        order: before.get(&*class.name).map_or(0, |(order, _)| *order),
    }
}

/// The position of a class map behind those before it that it meets, and before those behind it; the others lose frames to it.
fn order_of<'a>(
    placed: &Placed<'_>,
    stay: &[Placed<'a>],
    settled: &[Placed<'_>],
    from: &mut HashSet<&'a str>,
) -> Option<u32> {
    let (mut low, mut high) = (0, None);
    for other in stay
        .iter()
        .filter(|other| other.part.overlaps(&placed.part))
    {
        if other.index < placed.index {
            low = low.max(other.order);
        } else {
            high = Some(high.map_or(other.order, |high: u32| high.min(other.order)));
            from.insert(&other.class.name);
        }
    }
    let settled = settled.iter();
    let before = settled.filter(|other| other.part.overlaps(&placed.part));
    let low = before.map(|other| other.order).fold(low, u32::max);
    let order = match high {
        _ if placed.order > low && high.is_none_or(|high| placed.order < high) => placed.order,
        Some(high) => low + high.checked_sub(low)? / 2,
        None => low.checked_add(STEP)?,
    };
    (order > low).then_some(order)
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
