//! Rates that the classes of a policy may count on when all of them send.

use slicewise_model::{ClassParams, PolicyParams};
use slicewise_units::BitRate;

/// Rate that a class may count on, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) rate: u64,
    /// Guaranteed whatever the others send.
    pub(super) is_guaranteed: bool,
    /// Most that it passes.
    pub(super) limit: Option<u64>,
}

/// Returns the share of each class of `params`, which divide `rate`, when all send.
///
/// Rates are given to priority and minimums first. What is left goes by weight to the others; a class that passes less
/// than that leaves the rest to them. No class has more than its policer, its shaper or its child policy passes.
pub(super) fn shares(params: &PolicyParams, rate: BitRate) -> Vec<Share> {
    let all: u64 = params.classes.iter().filter_map(committed).sum();
    // Some is left for the headers that a port carries beside frames.
    let rest = rate.bits_per_second().saturating_sub(all) / 10 * 9;
    let parts = parts(params, rest);
    let classes = params.classes.iter().zip(parts);
    let share = |(class, part): (&ClassParams, u64)| {
        Share {
            rate: committed(class).unwrap_or(part),
            // Priority without a rate has all that it asks for.
            is_guaranteed: committed(class).is_some() || class.priority.is_some(),
            limit: limit(class),
        }
    };
    classes.map(share).collect()
}

/// Rate that a class has before others, bit/s: by priority, as far as its policer lets it, or as its minimum.
fn committed(class: &ClassParams) -> Option<u64> {
    let conditional = class.priority.and_then(|priority| priority.police);
    let stated = conditional
        .or(class.minimum)
        .map(|(rate, _)| rate.rate.bits_per_second());
    match class.priority {
        Some(_) => [stated, limit(class)].into_iter().flatten().min(),
        None => Some(stated?.min(limit(class).unwrap_or(u64::MAX))),
    }
}

/// Most that a class passes, bit/s: what its policer, its shaper and the classes of its child policy let through.
pub(super) fn limit(class: &ClassParams) -> Option<u64> {
    let policer = class.police.as_ref().and_then(|police| police.passed());
    let policer = policer.map(|(rate, _)| rate.bits_per_second());
    let shaper = class.shape.map(|shape| shape.rate.rate.bits_per_second());
    let child = class.child.as_deref().and_then(|child| {
        let limits: Option<Vec<u64>> = child.classes.iter().map(limit).collect();
        Some(limits?.into_iter().fold(0, u64::saturating_add))
    });
    [policer, shaper, child].into_iter().flatten().min()
}

/// Divides `rest` among the classes without a committed rate, by weight and within their limits: a part for each class.
fn parts(params: &PolicyParams, mut rest: u64) -> Vec<u64> {
    let mut parts = vec![0; params.classes.len()];
    let most = |class: &ClassParams| limit(class).unwrap_or(u64::MAX);
    let classes = params.classes.iter().zip(&mut parts);
    let mut open: Vec<(&ClassParams, &mut u64)> = classes
        .filter(|(class, _)| committed(class).is_none())
        .collect();
    // A class that passes less than its part leaves the rest to those after it.
    open.sort_by(|(a, _), (b, _)| {
        let scaled = |one, other: &ClassParams| u128::from(most(one)) * u128::from(other.weight);
        scaled(a, b).cmp(&scaled(b, a))
    });
    let mut weights: u64 = open.iter().map(|(class, _)| u64::from(class.weight)).sum();
    for (class, part) in open {
        let by_weight = u128::from(rest) * u128::from(class.weight) / u128::from(weights.max(1));
        *part = most(class).min(u64::try_from(by_weight).unwrap_or(rest));
        rest = rest.saturating_sub(*part);
        weights = weights.saturating_sub(u64::from(class.weight));
    }
    parts
}
