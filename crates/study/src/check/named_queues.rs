//! Named queues of a policy.

use super::Checker;
use super::queues::{QueueSettings, queue_settings};
use crate::file::{Decode, Entry, Placed, Problems, Schemas, Span, Value};
use crate::spec::{At, AtLeastOne, List, Name, Reference, Short};
use crate::{problem, settings};
use serde_json::{Value as Json, json};
use slicewise_model::{NamedQueueSpec, RateSpec, ShaperSpec};
use std::collections::BTreeMap;

/// A queue: what the model takes, and where its name is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    name: Option<At<Name>>,
    own_queue: QueueSettings,
    spec: NamedQueueSpec,
}

queue_settings! {
    /// A queue of a policy, which several classes may use. Its settings are those of a class.
    impl Queue as "QueueFileSpec" = Self::default(); {
        /// Name of the queue.
        [required] name,
        /// Level of strict priority, before all that have none: 1 is served first.
        priority: Level = |queue, level| queue.spec.priority = Some(level.0),
        /// Rate it gets at least: a rate, or a percentage of the port.
        minimum => spec.minimum,
        /// Its weight in the excess, relative to the other queues and classes. Default 1.
        weight: AtLeastOne<u32> = |queue, weight| queue.spec.weight = Some(weight.0),
        /// Maximum rate; what comes faster is delayed.
        shape: Short<RateSpec, ShaperSpec> = |queue, shape| queue.spec.shape = Some(shape.value),
    }
}

/// A level of strict priority, as its number or as classes write it.
struct Level(u8);

settings! {
    /// A level of strict priority.
    struct LongLevel as "QueuePrioritySpec", strict {
        /// 1 is served first. Default 1.
        level: Option<u8>,
    }
}

impl Decode for Level {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        match &entry.node.value {
            Value::Mapping(_) => {
                let long = LongLevel::decode(entry, problems)?;
                Some(Self(long.level.unwrap_or(1)))
            }
            _ => u8::decode(entry, problems).map(Self),
        }
    }

    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "anyOf": [u8::schema(schemas), LongLevel::schema(schemas)] })
    }
}

impl Checker<'_> {
    /// The queues of a policy whose classes make these references; `None` where a queue or a reference cannot be used.
    pub(super) fn queues<'a>(
        &mut self,
        queues: &List<Placed<Queue>>,
        references: impl Iterator<Item = &'a At<Reference>>,
    ) -> Option<Vec<NamedQueueSpec>> {
        let mut specs: Vec<NamedQueueSpec> = Vec::with_capacity(queues.0.len());
        let mut names: BTreeMap<&str, Span> = BTreeMap::new();
        let mut are_whole = true;
        for queue in &queues.0 {
            are_whole &= queue.is_whole;
            let Some(name) = &queue.value.name else {
                are_whole = false;
                continue;
            };
            let (Name(name), span) = (&name.value, name.span);
            if names.insert(name, span).is_some() {
                problem!(self.problems, span => "queue `{name}` is defined twice");
                are_whole = false;
                continue;
            }
            let Some(own) = queue.value.own_queue.resolve(queue, self.problems) else {
                are_whole = false;
                continue;
            };
            specs.push(NamedQueueSpec {
                name: name.clone(),
                queue: own,
                ..queue.value.spec.clone()
            });
        }
        let mut unused = names.clone();
        for reference in references {
            let name = reference.value.as_ref();
            unused.remove(name);
            if names.contains_key(name) || !are_whole {
                continue;
            }
            are_whole = false;
            let message = if names.is_empty() {
                format!("there is no queue `{name}`: define it under `queues`, beside `classes`")
            } else {
                format!("there is no queue `{name}` in this policy")
            };
            let known: Vec<&str> = names.keys().copied().collect();
            self.problems
                .add_unknown(reference.span, message, (name, &known));
        }
        if are_whole {
            self.warn_of_unused(&unused);
        }
        are_whole.then_some(specs)
    }

    /// A queue that nothing uses is no mistake: a switch has its queues whether frames wait there or not, and the classes
    /// of a later phase, or slices of a controller, may use it. Otherwise another name is probably meant.
    fn warn_of_unused(&mut self, unused: &BTreeMap<&str, Span>) {
        let later = [&["timeline", "changes"][..], &["controller"]];
        if later.iter().any(|path| !self.entries_at(path).is_empty()) {
            return;
        }
        for (name, span) in unused {
            self.problems
                .warn(*span, format!("no class uses the queue `{name}`"));
        }
    }
}
