//! A policy that differs from the one in force in parameters of its slices alone, as changes of single slices.
//!
//! To commit a whole policy takes time for each slice; these changes can be spread over time.

use super::slice::SliceChange;
use super::{Basis, beside, ledger};
use slicewise_model::{ClassParams, GuaranteeParams, PolicyParams, SliceParams};

impl Basis {
    /// The changes of single slices after which `policy` is in force beside slices that were added one by one; `None` if it
    /// differs in more than guarantees, maximums, weights and queue limits. O(classes).
    ///
    /// To be carried out in this order. What slices will not have any more they give up first, and then each gets what it
    /// will have: no slice has less meanwhile than what both policies promise it, and no change is refused but until the
    /// deadlines under guarantees that were given up have passed.
    #[must_use]
    pub fn slice_changes(&self, policy: &PolicyParams) -> Option<Vec<SliceChange>> {
        let Some(slices) = &self.slices else {
            return (self.params.policy == *policy).then(Vec::new);
        };
        let added = ledger::added(slices);
        let mut after = beside::policy_with(policy.clone(), added, &self.params.policy).ok()?;
        let (before, _) = self.policy();
        let mut before = before.into_owned();
        let old = std::mem::take(&mut before.classes);
        let new = std::mem::take(&mut after.classes);
        if before != after || old.len() != new.len() {
            return None;
        }
        let (mut given_up, mut given) = (Vec::new(), Vec::new());
        for (old, new) in old.into_iter().zip(new) {
            let (from, to) = old.slice.zip(new.slice)?;
            if from.tenant != to.tenant || !differ_in_slice_only(old, &new) {
                return None;
            }
            let kept = SliceParams {
                guarantee: from
                    .guarantee
                    .zip(to.guarantee)
                    .map(|(from, to)| common(from, to)),
                ..from
            };
            let change = |params| SliceChange::Change {
                name: new.name.clone(),
                params,
            };
            if kept.guarantee == from.guarantee {
                given.extend((to != from).then(|| change(to)));
            } else if kept.guarantee == to.guarantee {
                given_up.push(change(to));
            } else {
                given_up.push(change(kept));
                given.push(change(to));
            }
        }
        given_up.append(&mut given);
        Some(given_up)
    }
}

/// Whether two classes are one but for what [`SliceChange::Change`] changes.
fn differ_in_slice_only(old: ClassParams, new: &ClassParams) -> bool {
    let changed = ClassParams {
        weight: new.weight,
        queue_limit: new.queue_limit,
        slice: new.slice,
        ..old
    };
    changed == *new
}

/// What both guarantees promise.
fn common(one: GuaranteeParams, other: GuaranteeParams) -> GuaranteeParams {
    GuaranteeParams {
        rate: one.rate.min(other.rate),
        burst: one.burst.min(other.burst),
        class: one.class.max(other.class),
    }
}
