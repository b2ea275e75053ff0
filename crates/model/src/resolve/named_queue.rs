//! Named queues, and which classes and meters may use them.

use super::{ClassResolver, Part, PolicyError, PortParams};
use crate::policy::{ClassParams, ClassSpec, Discipline, PolicyParams, PolicySpec};
use crate::{Action, NamedQueueParams, NamedQueueSpec, PrioritySpec};
use slicewise_units::{Accounting, BitRate};
use std::collections::BTreeSet;

impl NamedQueueSpec {
    /// A class with the same settings: they are checked and completed as those of a class.
    fn as_class(&self) -> ClassSpec {
        ClassSpec {
            name: self.name.clone(),
            priority: self.priority.map(|level| PrioritySpec {
                level,
                rate: None,
                burst: None,
                accounting: Accounting::L2,
            }),
            minimum: self.minimum,
            weight: self.weight,
            shape: self.shape,
            queue: self.queue.clone(),
            ..ClassSpec::class_default()
        }
    }
}

impl From<ClassParams> for NamedQueueParams {
    /// The queue of a class.
    fn from(class: ClassParams) -> Self {
        Self {
            name: class.name,
            priority: class.priority,
            minimum: class.minimum,
            weight: class.weight,
            per_flow: false,
            shape: class.shape,
            queue: class.queue,
        }
    }
}

impl PolicySpec {
    /// The named queues with their defaults.
    pub(super) fn named_queues(
        &self,
        port: PortParams,
        depth: usize,
    ) -> Result<Vec<NamedQueueParams>, PolicyError> {
        let fail = |name: &str, field, problem: &str| {
            Err(PolicyError {
                policy: self.name.clone(),
                part: Part::Queue,
                class: name.to_owned(),
                field,
                problem: problem.to_owned(),
            })
        };
        let mut names = BTreeSet::new();
        let mut queues = Vec::with_capacity(self.queues.len());
        for queue in &self.queues {
            match self.discipline {
                Discipline::MinimumShare | Discipline::DeficitRoundRobin => {}
                Discipline::Fifo => {
                    let problem =
                        "one FIFO for all classes is one queue: leave the named queues out";
                    return fail(&queue.name, "queues", problem);
                }
                Discipline::Guaranteed => {
                    let problem = "each class of the discipline `guaranteed` has a queue and a bound of its \
                                   own: use `deficit_round_robin` or `minimum_share`";
                    return fail(&queue.name, "queues", problem);
                }
            }
            if !names.insert(&queue.name) {
                return fail(&queue.name, "queues", "is defined twice");
            }
            let resolver = ClassResolver {
                policy: self,
                part: Part::Queue,
                spec: &queue.as_class(),
                port,
                depth,
            };
            if queue.per_flow && self.discipline != Discipline::DeficitRoundRobin {
                let problem = "weights by active flows are for `deficit_round_robin`";
                return fail(&queue.name, "weights", problem);
            }
            let params = resolver.class(None)?.into();
            queues.push(NamedQueueParams {
                per_flow: queue.per_flow && queue.priority.is_none(),
                ..params
            });
        }
        Ok(queues)
    }
}

impl PolicyParams {
    /// The rate that the meter of `class` commits to a queue of strict priority: the frames of nobody else are sent
    /// meanwhile, so such rates must fit together.
    pub(super) fn committed_by_meter(&self, class: &ClassParams) -> Option<BitRate> {
        let police = class.police.as_ref()?;
        let queue = match &police.conform {
            Action::Queue(queue) => queue,
            Action::Drop => return None,
            Action::Transmit | Action::SetDscp(_) | Action::SetQosGroup(_) => {
                class.named_queue.as_ref()?
            }
        };
        let queue = self.queues.iter().find(|one| one.name == *queue)?;
        queue.priority?;
        Some(police.algorithm.committed_rate().rate)
    }
}

impl ClassResolver<'_> {
    /// A class that waits in a named queue has no settings of a queue, and the queues that it and its meter name exist.
    pub(super) fn check_named_queues(&self) -> Result<(), PolicyError> {
        let spec = self.spec;
        if let Some(queue) = &spec.named_queue {
            self.check_is_queue("queue", queue)?;
            let own = [
                ("priority", spec.priority.is_some()),
                ("minimum", spec.minimum.is_some()),
                ("weight", spec.weight.is_some()),
                ("shape", spec.shape.is_some()),
            ];
            let own = own.into_iter().find(|(_, is_set)| *is_set);
            let own = own.map(|(field, _)| field).or(spec.queue.setting());
            if let Some(field) = own {
                let problem = format!("the class waits in the queue `{queue}`: set this there");
                return Err(self.error(field, problem));
            }
            if spec.child.is_some() {
                let problem = format!(
                    "the class waits in the queue `{queue}`, which a child policy cannot divide: remove one of both"
                );
                return Err(self.error("child", problem));
            }
        }
        let police = spec.police.iter().flat_map(|police| police.actions());
        for (setting, action) in police {
            let Some(queue) = action.and_then(Action::queue) else {
                continue;
            };
            let field = match setting {
                "conform" => "police.conform",
                "exceed" => "police.exceed",
                _ => "police.violate",
            };
            self.check_is_queue(field, queue)?;
            if spec.child.is_some() {
                let problem = "chooses a queue, but a child policy divides the class: police the classes of that";
                return Err(self.error(field, problem));
            }
        }
        Ok(())
    }

    pub(super) fn check_is_queue(
        &self,
        field: &'static str,
        name: &str,
    ) -> Result<(), PolicyError> {
        let queues = &self.policy.queues;
        if queues.iter().any(|queue| queue.name == name) {
            return Ok(());
        }
        let names: Vec<String> = queues
            .iter()
            .map(|queue| format!("`{}`", queue.name))
            .collect();
        let problem = match names.as_slice() {
            [] => format!(
                "there is no queue `{name}`: define it under the `queues` of policy `{}`",
                self.policy.name
            ),
            names => format!(
                "there is no queue `{name}`: the policy has {}",
                names.join(", ")
            ),
        };
        Err(self.error(field, problem))
    }
}
