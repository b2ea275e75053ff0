//! The hierarchical scheduler of a class: what it excludes.

use super::{ClassResolver, PolicyError};
use crate::{Discipline, HqosParams, HqosSpec, QueueLimitParams};
use std::sync::Arc;

impl ClassResolver<'_> {
    pub(super) fn hqos(&self, spec: &HqosSpec) -> Result<Arc<HqosParams>, PolicyError> {
        let class = self.spec;
        let excluded = [
            ("priority", class.priority.is_some()),
            ("queue", class.named_queue.is_some()),
            ("elephants", class.elephants.is_some()),
            ("child", class.child.is_some()),
        ];
        let excluded = excluded.into_iter().find(|(_, set)| *set);
        if let Some(field) = excluded.map(|(field, _)| field).or(class.queue.setting()) {
            return Err(self.error(
                field,
                "cannot be set on a class with a hierarchical scheduler, which has queues of its own",
            ));
        }
        if matches!(
            self.policy.discipline,
            Discipline::Fifo | Discipline::Guaranteed
        ) {
            return Err(self.error(
                "hqos",
                "is for the disciplines `minimum_share` and `deficit_round_robin`",
            ));
        }
        let params = spec.resolve(self.port.rate.rate);
        params
            .map(Arc::new)
            .map_err(|error| self.error("hqos", error.to_string()))
    }
}

/// Returns the limit of all queues together.
pub(super) fn limit(params: &HqosParams) -> QueueLimitParams {
    QueueLimitParams::of_packets(u32::try_from(params.packets()).unwrap_or(u32::MAX))
}
