//! Policers of classes, and the queues that their colours choose.

use crate::file::{Decode, Entry, Problems, Schemas, Value};
use crate::settings;
use crate::spec::{At, PlainAction, Reference};
use serde_json::{Value as Json, json};
use slicewise_model::{Action, PolicerSpec, RateSpec};
use slicewise_units::BitRate;

/// Stands for a rate that must be written.
pub(super) const NO_RATE: RateSpec = RateSpec::Absolute(BitRate::ZERO);

/// A policer, and the queues that it chooses.
#[derive(Debug, Clone)]
pub(super) struct Police {
    pub(super) spec: PolicerSpec,
    pub(super) queues: Vec<At<Reference>>,
}

impl From<RateSpec> for Police {
    fn from(cir: RateSpec) -> Self {
        Self {
            spec: cir.into(),
            queues: Vec::new(),
        }
    }
}

settings! {
    /// A policer. One rate and one burst, or the three-colour markers: `excess_burst` alone is
    /// RFC 2697, `peak_rate` is RFC 2698, `excess_rate` is RFC 4115.
    impl Police as "PoliceSpec", strict = NO_RATE.into(); {
        /// Committed rate.
        [required] rate => spec.cir,
        /// Committed burst: a size, or a duration at the rate. Default 250 ms.
        burst => spec.cbs,
        /// Excess burst.
        excess_burst => spec.ebs,
        /// Peak rate, at least the committed rate.
        peak_rate => spec.pir,
        /// Peak burst. Default 250 ms at the peak rate.
        peak_burst => spec.pbs,
        /// Excess rate, beside the committed rate.
        excess_rate => spec.eir,
        /// Which bytes of a frame are counted. Default L2.
        counts => spec.accounting,
        /// `blind` (default) or `aware` of the colour a packet comes with.
        colour => spec.mode,
        /// Replenish the buckets only at multiples of this interval, as meters of switches do. Default: continuously.
        refill_interval => spec.refill_interval,
        /// Action within the rate. Default `transmit`.
        conform: Chosen = |police, chosen| police.spec.conform = Some(chosen.action(&mut police.queues)),
        /// Action beyond the committed rate. Default `drop`.
        exceed: Chosen = |police, chosen| police.spec.exceed = Some(chosen.action(&mut police.queues)),
        /// Action beyond every rate and burst. Default as `exceed`.
        violate: Chosen = |police, chosen| police.spec.violate = Some(chosen.action(&mut police.queues)),
    }
}

/// An action: words, or the queue of the policy in which the frames wait.
enum Chosen {
    Words(Action),
    Queue(At<Reference>),
}

impl Chosen {
    fn action(self, queues: &mut Vec<At<Reference>>) -> Action {
        match self {
            Self::Words(action) => action,
            Self::Queue(queue) => {
                let action = Action::Queue(queue.value.as_ref().to_owned());
                queues.push(queue);
                action
            }
        }
    }
}

settings! {
    /// The queue of the policy in which frames of a colour wait.
    struct ChosenQueue as "ChosenQueueSpec", strict {
        /// Its name.
        [required] queue: Option<At<Reference>>,
    }
}

impl Decode for Chosen {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        match &entry.node.value {
            Value::Mapping(_) => ChosenQueue::decode(entry, problems)?.queue.map(Self::Queue),
            _ => PlainAction::decode(entry, problems).map(|action| Self::Words(action.0)),
        }
    }

    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "anyOf": [PlainAction::schema(schemas), ChosenQueue::schema(schemas)] })
    }
}
