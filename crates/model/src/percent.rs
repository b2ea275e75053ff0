//! Rates of a policy that are percentages of its port's.

use crate::{ClassSpec, PolicySpec, RateSpec};

impl PolicySpec {
    /// The first class or queue with a rate that is a percentage of the rate of the port; a percentage of a shaped class is of
    /// that class.
    #[must_use]
    pub fn has_part_of_port(&self) -> Option<&str> {
        let queue = self.queues.iter().find(|queue| {
            let rates = [queue.minimum, queue.shape.as_ref().map(|shape| shape.rate)];
            are_parts(&rates)
        });
        let queue = queue.map(|queue| queue.name.as_str());
        queue.or_else(|| self.classes.iter().find_map(class_with_part))
    }
}

fn class_with_part(class: &ClassSpec) -> Option<&str> {
    let police = class.police.as_ref();
    let rates = [
        class.minimum,
        class.shape.as_ref().map(|shape| shape.rate),
        class.priority.as_ref().and_then(|priority| priority.rate),
        class.elephants.as_ref().map(|elephants| elephants.rate),
        class.guarantee.map(|guarantee| guarantee.rate),
        class.maximum.map(|maximum| maximum.rate),
        police.map(|police| police.cir),
        police.and_then(|police| police.pir),
        police.and_then(|police| police.eir),
    ];
    if are_parts(&rates) {
        return Some(&class.name);
    }
    let child = class.child.as_deref().filter(|_| class.shape.is_none());
    child.and_then(PolicySpec::has_part_of_port)
}

fn are_parts(rates: &[Option<RateSpec>]) -> bool {
    let mut rates = rates.iter().flatten();
    rates.any(|rate| matches!(rate, RateSpec::PercentMilli(_)))
}
