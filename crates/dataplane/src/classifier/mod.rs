//! Which class a frame belongs to: the first whose class map matches, else class-default.
//!
//! The class maps of a policy are compiled into tables, one per combination of header bits that decide:
//! tuple space search (Srinivasan, Suri, Varghese, SIGCOMM 1999). Tables are searched in the order of
//! their earliest class, and the search ends as soon as no other can hold an earlier one (Pfaff et al.,
//! The Design and Implementation of Open vSwitch, NSDI 2015, section 3.2). So the work depends on the number of tables and
//! not on the number of classes. Class maps that are not a few exact or prefix matches are walked in order.

mod buckets;
mod compile;
mod direct;
mod key;
mod overlap;
mod part;
mod parts;
mod segments;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use buckets::{Buckets, Entry};
use key::Pattern;
pub(crate) use overlap::overlapping;
pub(crate) use part::{Part, Split};
pub(crate) use parts::Parts;
use slicewise_model::{ClassMap, PolicyParams};
use slicewise_wire::Headers;
use table::Table;

/// Set in a target that is the index of another level, not a class.
const LEVEL: u32 = 1 << 31;
/// Most tables per level. Patterns of further masks are walked: a table costs a look-up per frame, too.
const TABLES_MAX: usize = 64;
/// Frames of a burst that are looked up together.
const BURST: usize = 8;
/// Tables with fewer patterns, about 2.5 MB, stay in the processor's caches.
const LARGE: usize = 1 << 16;

/// A compiled policy tree: headers in, leaf class out.
#[derive(Debug, Clone)]
pub struct Classifier {
    levels: Vec<Level>,
    /// Changes so far, those of the classifiers before it included.
    revision: u64,
}

/// Why a class cannot be added to a classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The policy has fewer levels.
    #[error("the policy has no level {level}")]
    NoSuchLevel {
        /// The level asked for.
        level: usize,
    },
    /// The class number is too large.
    #[error("class number {number} is above {}, the largest", LEVEL - 1)]
    NumberTooLarge {
        /// The number.
        number: u32,
    },
    /// More insertions than a level can count.
    #[error(
        "{} classes have been added to this level one by one: replace the whole policy",
        u32::MAX
    )]
    Exhausted,
}

/// The classes of one policy of the tree.
#[derive(Debug, Clone)]
struct Level {
    /// Sorted by `lowest`.
    tables: Vec<Table>,
    /// Sorted by order.
    walked: Vec<Walked>,
    /// Where frames go that no class map matches.
    default: u32,
    /// The order of the next class.
    next_order: u32,
}

/// A class map that is not in tables.
#[derive(Debug, Clone)]
struct Walked {
    entry: Entry,
    map: ClassMap,
}

impl Classifier {
    /// Compile `policy`. Leaves are numbered from 0 in depth-first order of the classes.
    #[must_use]
    pub fn new(policy: &PolicyParams) -> Self {
        let mut levels = Vec::new();
        let mut next_leaf = 0;
        compile_level(policy, &mut levels, &mut next_leaf);
        Self {
            levels,
            revision: 0,
        }
    }

    /// Another number than before if frames may be of other classes than before: a class may be kept with this number.
    #[inline]
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// It takes the place of `other`.
    pub(crate) const fn succeed(&mut self, other: &Self) {
        self.revision = other.revision + 1;
    }

    /// The leaf class of a frame with these headers.
    #[inline]
    #[must_use]
    pub fn classify(&self, headers: &Headers) -> u32 {
        self.classify_below(0, headers)
    }

    #[inline]
    fn classify_below(&self, mut level: usize, headers: &Headers) -> u32 {
        loop {
            // Levels are numbered as they are compiled, so every number in a target exists.
            let Some(found) = self.levels.get(level) else {
                return 0;
            };
            let target = found.target_of(headers);
            if target & LEVEL == 0 {
                return target;
            }
            level = (target & !LEVEL) as usize;
        }
    }

    /// [`classify`](Self::classify) for a burst: `classes` receives the class of each frame. Faster because each
    /// table is searched for several frames at once, and for policies too large for the processor's caches because
    /// the memory accesses of all frames overlap.
    pub fn classify_burst(&self, headers: &[Headers], classes: &mut [u32]) {
        let Some(level) = self.levels.first() else {
            return classes.fill(0);
        };
        for table in level.tables.iter().filter(|table| table.len() >= LARGE) {
            let touched = headers.iter().fold(0, |sum, h| sum ^ table.touch(h));
            std::hint::black_box(touched);
        }
        for (headers, classes) in headers.chunks(BURST).zip(classes.chunks_mut(BURST)) {
            let best = level.search_burst(headers);
            for ((headers, best), class) in headers.iter().zip(best).zip(classes) {
                let target = level.walk(headers, best);
                *class = if target & LEVEL == 0 {
                    target
                } else {
                    self.classify_below((target & !LEVEL) as usize, headers)
                };
            }
        }
    }

    /// Adds class `class` to a level, after its other classes and before its class-default. Levels are the policies
    /// of the tree in depth-first order; 0 is the outermost.
    ///
    /// A class map that compiles into tables takes a bounded time, however many classes there are.
    ///
    /// # Errors
    /// If there is no such level, the number is too large, or the level has been changed too often. Nothing is
    /// changed then.
    pub fn insert(&mut self, level: usize, class: u32, map: &ClassMap) -> Result<(), InsertError> {
        self.check(level, class)?;
        self.revision += 1;
        if let Some(level) = self.levels.get_mut(level) {
            let entry = level.next_entry(class);
            level.insert_at(entry, map);
        }
        Ok(())
    }

    /// Adds class `class` to the outermost level at a position in the order. Of class maps that a frame may be of, each has
    /// another position.
    pub(crate) fn insert_at(&mut self, order: u32, class: u32, map: &ClassMap) {
        self.revision += 1;
        if let Some(level) = self.levels.first_mut() {
            level.insert_at(Entry::new(order, class), map);
        }
    }

    /// The position in the order of the next class that is added to the outermost level.
    pub(crate) fn next_order(&self) -> u32 {
        self.levels.first().map_or(0, |level| level.next_order)
    }

    /// Checks that a class with this number can be added to a level.
    pub(crate) fn check(&self, level: usize, class: u32) -> Result<(), InsertError> {
        let found = self.levels.get(level);
        let found = found.ok_or(InsertError::NoSuchLevel { level })?;
        if class >= LEVEL {
            return Err(InsertError::NumberTooLarge { number: class });
        }
        // A class map that is replaced takes three positions.
        if found.next_order >= u32::MAX - 3 {
            return Err(InsertError::Exhausted);
        }
        Ok(())
    }

    /// Removes class `class` from a level. `map` is the class map it was added with. Returns whether it was found.
    ///
    /// A class map that compiles into tables takes a bounded time, however many classes there are.
    pub fn remove(&mut self, level: usize, class: u32, map: &ClassMap) -> bool {
        self.revision += 1;
        self.levels
            .get_mut(level)
            .is_some_and(|level| level.remove(class, map))
    }
}

/// Returns the index of the level.
fn compile_level(policy: &PolicyParams, levels: &mut Vec<Level>, leaf: &mut u32) -> u32 {
    let index = levels.len();
    levels.push(Level::new());
    for (number, class) in (0..).zip(&policy.classes) {
        let target = if let Some(child) = &class.child {
            LEVEL | compile_level(child, levels, leaf)
        } else {
            *leaf += 1;
            *leaf - 1
        };
        match &class.matches {
            Some(map) => {
                levels[index].insert_at(Entry::new(number, target), map);
            }
            None => levels[index].default = target,
        }
    }
    u32::try_from(index).unwrap_or(0)
}

impl Level {
    const fn new() -> Self {
        Self {
            tables: Vec::new(),
            walked: Vec::new(),
            default: 0,
            next_order: 0,
        }
    }

    #[inline]
    fn target_of(&self, headers: &Headers) -> u32 {
        let mut best = Entry::new(u32::MAX, self.default);
        for table in &self.tables {
            if table.lowest() > best.order() {
                break;
            }
            best = table.find(headers, best);
        }
        self.walk(headers, best)
    }

    /// The earliest entry of each of up to [`BURST`] frames in the tables.
    #[inline]
    fn search_burst(&self, headers: &[Headers]) -> [Entry; BURST] {
        let mut best = [Entry::new(u32::MAX, self.default); BURST];
        for table in &self.tables {
            table.find_burst(headers, &mut best);
        }
        best
    }

    /// The target of a frame for which `best` was found in tables: that of an earlier class map that is not in
    /// tables, if one matches.
    #[inline]
    fn walk(&self, headers: &Headers, best: Entry) -> u32 {
        if self.walked.is_empty() {
            return best.target();
        }
        self.walk_some(headers, best)
    }

    /// Not inlined, so that the usual case stays short.
    #[inline(never)]
    fn walk_some(&self, headers: &Headers, best: Entry) -> u32 {
        for walked in &self.walked {
            if walked.entry > best {
                break;
            }
            if walked.map.matches(headers) {
                return walked.entry.target();
            }
        }
        best.target()
    }

    /// Later than all others.
    const fn next_entry(&mut self, target: u32) -> Entry {
        let entry = Entry::new(self.next_order, target);
        self.next_order = self.next_order.saturating_add(1);
        entry
    }

    fn insert_at(&mut self, entry: Entry, map: &ClassMap) {
        self.next_order = self.next_order.max(entry.order().saturating_add(1));
        let Some(patterns) = self.patterns(map) else {
            let index = self.walked.partition_point(|other| other.entry < entry);
            let map = map.clone();
            self.walked.insert(index, Walked { entry, map });
            return;
        };
        for pattern in &patterns {
            self.insert_pattern(pattern, entry);
        }
    }

    fn insert_pattern(&mut self, pattern: &Pattern, entry: Entry) {
        let mut index = self.table_of(pattern).unwrap_or_else(|| {
            self.tables.push(Table::new(pattern.mask, entry.order()));
            self.tables.len() - 1
        });
        self.tables[index].insert(pattern, entry);
        while index > 0 && self.tables[index - 1].lowest() > self.tables[index].lowest() {
            self.tables.swap(index - 1, index);
            index -= 1;
        }
    }

    fn remove_pattern(&mut self, pattern: &Pattern, target: u32) -> bool {
        let Some(index) = self.table_of(pattern) else {
            return false;
        };
        let table = &mut self.tables[index];
        let is_removed = table.remove(pattern, target);
        if table.len() == 0 {
            self.tables.remove(index);
        }
        is_removed
    }

    fn remove(&mut self, target: u32, map: &ClassMap) -> bool {
        let mut walked = self.walked.iter();
        if let Some(index) = walked.position(|walked| walked.entry.target() == target) {
            self.walked.remove(index);
            return true;
        }
        let patterns = compile::patterns(map).unwrap_or_default();
        // A map that no frame matches has no entry.
        let mut is_removed = patterns.is_empty();
        for pattern in patterns {
            is_removed |= self.remove_pattern(&pattern, target);
        }
        is_removed
    }

    /// The patterns of `map`, if it can be in tables.
    fn patterns(&self, map: &ClassMap) -> Option<Vec<Pattern>> {
        let patterns = compile::patterns(map)?;
        self.tables_for(patterns.iter())?;
        Some(patterns)
    }

    /// `None` if there would be too many tables with some more patterns.
    fn tables_for<'a>(&self, patterns: impl Iterator<Item = &'a Pattern>) -> Option<()> {
        let new = patterns.filter(|pattern| self.table_of(pattern).is_none());
        (self.tables.len() + new.count() <= TABLES_MAX).then_some(())
    }

    fn table_of(&self, pattern: &Pattern) -> Option<usize> {
        self.tables
            .iter()
            .position(|table| *table.mask() == pattern.mask)
    }
}
