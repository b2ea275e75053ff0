//! Many parts of class maps, among which those are found that have a frame in common with another.

use super::Part;
use super::key::{Mask, Pattern, WORDS};
use std::collections::BTreeSet;

/// The value of a pattern, and the class that it is of.
type Value = ([u64; WORDS], u32);

/// Parts, each of a class. A part of patterns that test the bits that those of another test is found in O(log n).
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// By mask.
    patterns: Vec<(Mask, BTreeSet<Value>)>,
    /// Classes with frames of class maps that are walked.
    walked: BTreeSet<u32>,
}

impl Parts {
    pub(crate) fn insert(&mut self, part: &Part, class: u32) {
        for Pattern { mask, value } in part.patterns.iter().copied() {
            let found = self.patterns.iter().position(|(of, _)| *of == mask);
            let index = found.unwrap_or_else(|| {
                self.patterns.push((mask, BTreeSet::new()));
                self.patterns.len() - 1
            });
            self.patterns[index].1.insert((value, class));
        }
        if part.is_walked {
            self.walked.insert(class);
        }
    }

    /// One that was inserted.
    pub(crate) fn remove(&mut self, part: &Part, class: u32) {
        for Pattern { mask, value } in &part.patterns {
            if let Some((_, values)) = self.patterns.iter_mut().find(|(of, _)| of == mask) {
                values.remove(&(*value, class));
            }
        }
        self.patterns.retain(|(_, values)| !values.is_empty());
        self.walked.remove(&class);
    }

    /// Returns a class with a part that a frame of `part` [may be of](Part::overlaps), too.
    pub(crate) fn overlapping(&self, part: &Part) -> Option<u32> {
        let mut patterns = self.patterns.iter().flat_map(|(_, values)| values);
        let any = if part.is_walked {
            patterns.next().map(|(_, class)| *class)
        } else {
            None
        };
        let walked = self.walked.first().filter(|_| !part.is_empty());
        any.or_else(|| walked.copied()).or_else(|| {
            let mut own = part.patterns.iter();
            own.find_map(|own| self.of_pattern(own))
        })
    }

    fn of_pattern(&self, pattern: &Pattern) -> Option<u32> {
        self.patterns.iter().find_map(|(mask, values)| {
            if *mask == pattern.mask {
                let mut same = values.range((pattern.value, 0)..=(pattern.value, u32::MAX));
                return same.next().map(|(_, class)| *class);
            }
            let meets = |(value, _): &&Value| {
                let (mask, value) = (*mask, *value);
                pattern.and(&Pattern { mask, value }).is_some()
            };
            values.iter().find(meets).map(|(_, class)| *class)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::overlap::tests::map;
    use proptest::prelude::*;
    use slicewise_model::{ClassMap, Condition};

    fn map_or_walked() -> impl Strategy<Value = ClassMap> {
        let wide = Condition::OuterVlan(1..=900);
        prop_oneof![
            9 => map(),
            1 => map().prop_map(move |map| ClassMap { conditions: vec![wide.clone()], ..map }),
        ]
    }

    proptest! {
        #[test]
        fn a_part_is_found_if_a_comparison_with_each_finds_one(
            maps in prop::collection::vec(map_or_walked(), 1..8),
            kept in any::<[bool; 8]>(),
        ) {
            let parts: Vec<Part> = maps.iter().map(Part::whole).collect();
            let mut index = Parts::default();
            let numbered = || (0u32..).zip(&parts).skip(1);
            numbered().for_each(|(class, part)| index.insert(part, class));
            let gone = numbered().filter(|(class, _)| !kept[*class as usize]);
            gone.for_each(|(class, part)| index.remove(part, class));
            let there = numbered().filter(|(class, _)| kept[*class as usize]);
            let expected: Vec<u32> = there
                .filter(|(_, part)| part.overlaps(&parts[0]))
                .map(|(class, _)| class)
                .collect();
            match index.overlapping(&parts[0]) {
                Some(found) => prop_assert!(expected.contains(&found), "{found} {expected:?}"),
                None => prop_assert_eq!(expected, Vec::<u32>::new()),
            }
        }
    }
}
