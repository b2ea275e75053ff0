//! Scalability: the hard limit of a mechanism on its device.

use crate::description::{Scalability, SliceLimit};
use serde::{Deserialize, Serialize};

/// How many slices a policy supports, and what limits it: declared by the device model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalabilityVerdict {
    /// Most slices.
    pub limit: SliceLimit,
    /// Limiting resource.
    pub limited_by: String,
    /// Where the limit is stated.
    pub source: String,
}

impl ScalabilityVerdict {
    pub(super) fn of(scalability: &Scalability) -> Self {
        Self {
            limit: scalability.slices,
            limited_by: scalability.limited_by.clone(),
            source: scalability.source.clone(),
        }
    }

    /// True if a publication names the same number, or also none. A publication's words
    /// may hold several numbers ("2 levels (256 classes)"): one of them must be ours.
    pub(super) fn agrees_with(&self, published: &str) -> bool {
        let mut numbers = published
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse::<u64>().ok())
            .peekable();
        match self.limit {
            SliceLimit::Slices(limit) => numbers.any(|number| number == limit),
            SliceLimit::NoPracticalLimit | SliceLimit::NotStated => {
                numbers.peek().is_none() && !published.trim().is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_where_the_published_words_hold_our_number() {
        for (limit, published, agrees) in [
            (SliceLimit::Slices(256), "256", true),
            (SliceLimit::Slices(2), "2 levels (256 classes)", true),
            (SliceLimit::Slices(25), "256", false),
            (SliceLimit::Slices(256), "no limit", false),
            (SliceLimit::NoPracticalLimit, "no limit", true),
            (SliceLimit::NotStated, "no limit", true),
            (SliceLimit::NotStated, "256", false),
            (SliceLimit::NoPracticalLimit, "", false),
        ] {
            let verdict = ScalabilityVerdict {
                limit,
                limited_by: String::new(),
                source: String::new(),
            };
            assert_eq!(
                verdict.agrees_with(published),
                agrees,
                "{limit:?} {published}"
            );
        }
    }
}
