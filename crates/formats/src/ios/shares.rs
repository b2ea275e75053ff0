//! `bandwidth remaining`: from percentages and ratios to weights.

use super::policy_map::{ClassText, PolicyMapText, Share};
use super::queueing::RATIO_MAX;
use crate::error::Span;
use crate::error::{TextError, quoted};
use slicewise_model::{CLASS_DEFAULT, ClassSpec};

/// Set the weight of every class of `policy`, whose shares are all of one kind.
///
/// A ratio is a weight. Percentages leave a rest, which the classes without a percentage share
/// equally, as in IOS; class-default is one of them even where it is not written, so it may
/// have to be added. Priority classes take no part.
pub(super) fn assign_weights(policy: &mut PolicyMapText) -> Result<(), TextError> {
    let mut assigned = 0;
    let mut first: Option<(Share, Span)> = None;
    for class in &policy.classes {
        let Some((share, span)) = class.share else {
            continue;
        };
        first.get_or_insert((share, span));
        if let Share::Percent(percent) = share {
            assigned += percent;
            if assigned > 100 {
                let message = format!(
                    "the percentages of {} add up to more than 100",
                    quoted(&policy.name)
                );
                return Err(TextError::at(span, message)
                    .expected(format!("at most {} %", 100 + percent - assigned)));
            }
        }
    }
    match first {
        None => Ok(()),
        Some((Share::Ratio(_), _)) => {
            for class in &mut policy.classes {
                if let Some((Share::Ratio(ratio), _)) = class.share {
                    class.spec.weight = Some(ratio);
                }
            }
            Ok(())
        }
        Some((Share::Percent(_), span)) => share_rest(policy, 100 - assigned, span),
    }
}

fn shares_rest(class: &ClassText) -> bool {
    class.share.is_none() && class.spec.priority.is_none()
}

fn share_rest(policy: &mut PolicyMapText, rest: u32, span: Span) -> Result<(), TextError> {
    if rest > 0 && !policy.classes.iter().any(ClassText::is_default) {
        policy.classes.push(ClassText::new(CLASS_DEFAULT, span));
    }
    let sharers = policy
        .classes
        .iter()
        .filter(|class| shares_rest(class))
        .count();
    // Weights in units of 1/sharers of a percent, so that the rest divides; then reduced.
    let sharers = if rest == 0 {
        1
    } else {
        u32::try_from(sharers.max(1)).unwrap_or(u32::MAX)
    };
    let weight = |class: &ClassText| match class.share {
        Some((Share::Percent(percent), _)) => Some(percent.saturating_mul(sharers)),
        _ if rest > 0 && shares_rest(class) => Some(rest),
        _ => None,
    };
    let divisor = policy
        .classes
        .iter()
        .filter_map(weight)
        .fold(0, greatest_common_divisor)
        .max(1);
    for class in &mut policy.classes {
        class.spec.weight = weight(class).map(|weight| weight / divisor);
        if class.spec.weight.is_some_and(|weight| weight > RATIO_MAX) {
            let message = format!(
                "the {rest} % not assigned cannot be divided exactly between {sharers} classes"
            );
            return Err(
                TextError::at(span, message).expected("a percentage for every class, or ratios")
            );
        }
    }
    Ok(())
}

/// The percentages from which [`assign_weights`] makes the weights of `classes`, in their proportion: none for classes
/// that share the rest. `None` where there are no such percentages.
pub(super) fn percentages(classes: &[ClassSpec]) -> Option<Vec<Option<u32>>> {
    let weights = || classes.iter().filter_map(|class| class.weight);
    if weights().any(|weight| weight == 0) {
        return None;
    }
    let sum: u64 = weights().map(u64::from).sum();
    let percent = |class: &ClassSpec| {
        let hundredfold = u64::from(class.weight?) * 100;
        let whole = hundredfold.is_multiple_of(sum);
        whole.then(|| u32::try_from(hundredfold / sum).ok())?
    };
    let percents: Vec<Option<u32>> = classes.iter().map(percent).collect();
    let mut rest = classes
        .iter()
        .zip(&percents)
        .filter(|(class, percent)| class.weight.is_some() && percent.is_none())
        .map(|(class, _)| class);
    let complete = classes.iter().any(|class| class.name == CLASS_DEFAULT)
        && classes
            .iter()
            .all(|class| class.weight.is_some() || class.priority.is_some());
    let is_expressible = match rest.next() {
        Some(first) => {
            let shares =
                |class: &ClassSpec| class.weight == first.weight && class.priority.is_none();
            complete && shares(first) && rest.all(shares)
        }
        // A class without a weight has one of 1: beside it no common factor may be lost.
        None => complete || weights().fold(0, greatest_common_divisor) == 1,
    };
    is_expressible.then_some(percents)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
