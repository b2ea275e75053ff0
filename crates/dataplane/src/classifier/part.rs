//! A part of the frames of a class that goes to another class.
//!
//! When the class map of a class is replaced, frames that only the old one matches leave it, and frames that only the new one
//! matches join it. For a while each of the two parts has a class number of its own. They are tested after the class itself,
//! which keeps what both maps match.

use super::buckets::Entry;
use super::compile::PATTERNS_MAX;
use super::key::Pattern;
use super::{Classifier, Level, compile};
use slicewise_model::ClassMap;
use slicewise_wire::Headers;

/// Frames that have a class number of their own, or had one when their class was added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(super) patterns: Vec<Pattern>,
    /// It has frames of a class map that is walked.
    pub(super) is_walked: bool,
}

/// Changes of a class whose class map is replaced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Split {
    /// Frames that it gets.
    pub(crate) joining: Part,
    /// Frames that it does not have any more.
    pub(crate) leaving: Part,
    /// Part that it has without the joining frames.
    pub(crate) kept: Part,
    /// Of that, what is new.
    pub(crate) added: Part,
}

impl Part {
    /// All frames of a class map.
    pub(crate) fn whole(map: &ClassMap) -> Self {
        let patterns = compile::patterns(map);
        Self {
            is_walked: patterns.is_none(),
            patterns: patterns.unwrap_or_default(),
        }
    }

    const fn of(patterns: Vec<Pattern>) -> Self {
        Self {
            patterns,
            is_walked: false,
        }
    }

    /// Returns true if no frame belongs to it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.patterns.is_empty() && !self.is_walked
    }

    /// Returns true if a frame may belong to both; always where a class map is walked.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        if self.is_walked || other.is_walked {
            return !self.is_empty() && !other.is_empty();
        }
        let meets = |own: &Pattern| other.patterns.iter().any(|other| own.and(other).is_some());
        self.patterns.iter().any(meets)
    }

    /// With the frames of another one.
    pub(crate) fn extend(&mut self, other: Self) {
        self.patterns.extend(other.patterns);
        self.is_walked |= other.is_walked;
    }
}

/// Returns true if every frame of a pattern belongs to one of `others`.
fn is_within(pattern: &Pattern, others: &[Pattern]) -> bool {
    let mut others = others.iter();
    others.any(|other| pattern.and(other) == Some(*pattern))
}

/// Returns the patterns for which a condition holds.
fn those(patterns: &[Pattern], condition: impl Fn(&Pattern) -> bool) -> Vec<Pattern> {
    let patterns = patterns.iter().copied();
    patterns.filter(|pattern| condition(pattern)).collect()
}

impl Classifier {
    /// All frames of a class of the outermost level, which was added with `map`.
    pub(crate) fn part_of(&self, class: u32, map: &ClassMap) -> Part {
        let mut walked = self.levels.iter().take(1).flat_map(|level| &level.walked);
        let is_walked = walked.any(|walked| walked.entry.target() == class);
        let Part { patterns, .. } = Part::whole(map);
        Part {
            patterns,
            is_walked,
        }
    }

    /// Returns the changes of a class of the outermost level, which has `old`, when it gets another class map. `None`
    /// where one of both is walked, or they meet in too many ways.
    pub(crate) fn split(&self, old: &Part, new: &ClassMap) -> Option<Split> {
        let new = compile::patterns(new)?;
        if old.is_walked {
            return None;
        }
        let old = &old.patterns;
        let joining = those(&new, |pattern| !is_within(pattern, old));
        let leaving = those(old, |pattern| !is_within(pattern, &new));
        let mut kept = those(old, |pattern| is_within(pattern, &new));
        let mut added = those(&new, |pattern| {
            is_within(pattern, old) && !old.contains(pattern)
        });
        // Frames of both that neither contains.
        let pairs = leaving
            .iter()
            .flat_map(|a| joining.iter().map(move |b| a.and(b)));
        for both in pairs.flatten() {
            if !is_within(&both, &kept) && !added.contains(&both) {
                added.push(both);
            }
            if added.len() > PATTERNS_MAX {
                return None;
            }
        }
        self.levels
            .first()?
            .tables_for(joining.iter().chain(&added))?;
        kept.extend(&added);
        Some(Split {
            joining: Part::of(joining),
            leaving: Part::of(leaving),
            kept: Part::of(kept),
            added: Part::of(added),
        })
    }

    /// Replaces the class map of a class; its parts have the class numbers `joining` and `leaving` from here on.
    pub(crate) fn replace(&mut self, class: u32, split: &Split, (joining, leaving): (u32, u32)) {
        self.revision += 1;
        if let Some(level) = self.levels.first_mut() {
            level.take(&split.leaving, class);
            level.add(&split.added, class);
            level.add(&split.joining, joining);
            level.add(&split.leaving, leaving);
        }
    }

    /// Has a part that is class `from` belong to class `to`, at its position in the order.
    pub(crate) fn join(&mut self, part: &Part, from: u32, to: u32) {
        self.revision += 1;
        let Some(level) = self.levels.first_mut() else {
            return;
        };
        for walked in &mut level.walked {
            walked.entry.retarget(from, to);
        }
        for pattern in &part.patterns {
            if let Some(index) = level.table_of(pattern) {
                level.tables[index].retarget(pattern, from, to);
            }
        }
    }

    /// Removes a part of class `class`.
    pub(crate) fn leave(&mut self, part: &Part, class: u32) {
        self.revision += 1;
        if let Some(level) = self.levels.first_mut() {
            level.take(part, class);
        }
    }

    /// Where a frame with these headers leads in the outermost level without class `class`.
    pub(crate) fn entry_but(&self, headers: &Headers, class: u32) -> Entry {
        let Some(level) = self.levels.first() else {
            return Entry::NONE;
        };
        let tables = level.tables.iter();
        let found = tables.map(|table| table.find_but(headers, class));
        let walked = level.walked.iter();
        let walked =
            walked.filter(|walked| walked.entry.target() != class && walked.map.matches(headers));
        let found = found.chain(walked.map(|walked| walked.entry)).min();
        let found = found.filter(|entry| *entry != Entry::NONE);
        found.unwrap_or(Entry::new(u32::MAX, level.default))
    }
}

impl Level {
    /// Have patterns of a part lead to class `target`, after all others.
    fn add(&mut self, part: &Part, target: u32) {
        let entry = self.next_entry(target);
        for pattern in &part.patterns {
            self.insert_pattern(pattern, entry);
        }
    }

    /// Remove a part of a class.
    fn take(&mut self, part: &Part, target: u32) {
        for pattern in &part.patterns {
            self.remove_pattern(pattern, target);
        }
        if part.is_walked {
            self.walked.retain(|walked| walked.entry.target() != target);
        }
    }
}
