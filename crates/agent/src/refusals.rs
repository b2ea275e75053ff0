//! Which refusals of slices are worth a line of the log.

use slicewise_api::RefusedSlice;
use std::collections::BTreeMap;

/// Refusals that were logged: slices and reasons.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(BTreeMap<String, String>);

impl RefusalLog {
    /// Returns those of the slices refused now that were not refused before, or for another reason. How often the
    /// controller is told, and whether it can be, does not matter.
    pub(crate) fn news<'a>(&mut self, refused: &'a [RefusedSlice]) -> Vec<&'a RefusedSlice> {
        let before = std::mem::take(&mut self.0);
        let now = refused
            .iter()
            .map(|one| (one.slice.clone(), one.reason.clone()));
        self.0 = now.collect();
        let is_new = |one: &&RefusedSlice| before.get(&one.slice) != Some(&one.reason);
        refused.iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_news_once_until_its_reason_changes_or_the_slice_was_in_force() {
        let refused = |names: &[(&str, &str)]| {
            let refused = names.iter().map(|&(slice, reason)| RefusedSlice {
                slice: slice.to_owned(),
                reason: reason.to_owned(),
                waits_for: None,
            });
            refused.collect::<Vec<_>>()
        };
        let mut log = RefusalLog::default();
        let mut news = |names: &[(&str, &str)]| {
            let refused = refused(names);
            let news = log.news(&refused).into_iter();
            news.map(|one| one.slice.clone()).collect::<Vec<_>>()
        };
        assert_eq!(news(&[("a", "x"), ("b", "x")]), ["a", "b"]);
        assert_eq!(news(&[("a", "x"), ("b", "x")]).len(), 0);
        assert_eq!(news(&[("a", "y"), ("b", "x"), ("c", "x")]), ["a", "c"]);
        assert_eq!(news(&[("a", "y")]).len(), 0);
        assert_eq!(news(&[("a", "y"), ("b", "x")]), ["b"]);
    }
}
