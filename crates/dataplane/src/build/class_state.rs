//! A class, as the packet path sees it.

use crate::TokenBucket;
use crate::counters::ClassCounters;
use crate::elephants::Elephants;
use crate::hqos::HqosPlaces;
use crate::scheduler::QueueId;
use crate::slice_flows::FlowWatch;
use slicewise_model::Colour;

/// A class without child, as the packet path sees it. Of most classes a frame needs only the first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ClassState {
    pub(crate) queue: QueueId,
    /// State that few classes have.
    pub(crate) special: Option<Box<Special>>,
    /// The policer that acts only under congestion.
    pub(crate) priority_police: Option<Box<TokenBucket>>,
    pub(crate) counters: ClassCounters,
}

const _: () = assert!(size_of::<ClassState>() == 192, "three cache lines");

/// Steps for frames of a class before they are queued, if there are any.
#[derive(Debug, Default)]
pub(crate) struct Special {
    /// Outermost class first.
    pub(crate) ingress: Vec<Ingress>,
    /// The hash of the flow is needed: a queue of it keeps flows apart, or counts them.
    pub(crate) by_flow: bool,
    /// Its queue is looked up for each frame.
    pub(crate) choice: Option<Box<Choice>>,
    /// Its flows are counted. They are `by_flow` then.
    pub(crate) flows: Option<Box<FlowWatch>>,
    /// How many frames of it had been sent when the last left that does not carry the hash of its flow.
    pub(crate) by_flow_from: u64,
}

/// How the queue of a frame is found, where it is not that of the class, or its flow is counted there.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The queue of each colour.
    pub(crate) by_colour: [QueueId; Colour::ALL.len()],
    /// Active flows of a queue of it are counted.
    pub(crate) counts_flows: bool,
    /// Flows of it move to another queue.
    pub(crate) elephants: Option<Elephants>,
    /// Frames have places in a hierarchy.
    pub(crate) places: Option<HqosPlaces>,
}

impl Special {
    /// `None` where it does nothing.
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        let is_needed = !self.ingress.is_empty() || self.by_flow || self.choice.is_some();
        is_needed.then(|| Box::new(self))
    }

    /// Of a class that was removed.
    pub(crate) fn removed() -> Option<Box<Self>> {
        let ingress = vec![Ingress::Removed];
        let removed = Self {
            ingress,
            ..Self::default()
        };
        removed.boxed()
    }
}

impl ClassState {
    pub(crate) fn new(class: String, queue: QueueId, special: Special) -> Self {
        Self {
            queue,
            special: special.boxed(),
            priority_police: None,
            counters: ClassCounters {
                class,
                ..ClassCounters::default()
            },
        }
    }

    /// The place of a class that was removed. A frame that was classified before is classified again.
    pub(crate) fn unused() -> Self {
        Self {
            queue: QueueId::NONE,
            special: Special::removed(),
            priority_police: None,
            counters: ClassCounters::default(),
        }
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.queue == QueueId::NONE
    }

    /// A queue of it keeps flows apart.
    #[inline]
    pub(crate) fn is_by_flow(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.by_flow)
    }

    /// Every frame of it that waits carries the hash of its flow.
    pub(crate) fn waits_by_flow(&self) -> bool {
        let special = self.special.as_ref().filter(|special| special.by_flow);
        special.is_some_and(|special| special.by_flow_from <= self.counters.sent_frames)
    }

    /// Returns the counter of its flows.
    pub(crate) fn flows_mut(&mut self) -> Option<&mut FlowWatch> {
        self.special.as_mut()?.flows.as_deref_mut()
    }

    pub(crate) fn elephants(&self) -> Option<&Elephants> {
        self.choice()?.elephants.as_ref()
    }

    #[inline]
    pub(crate) fn elephants_mut(&mut self) -> Option<&mut Elephants> {
        self.choice_mut()?.elephants.as_mut()
    }

    /// The places of its frames in a hierarchy.
    pub(crate) fn places(&self) -> Option<&HqosPlaces> {
        self.choice()?.places.as_ref()
    }

    /// How the queue of a frame is found, where it is not always that of the class.
    #[inline]
    pub(crate) fn choice(&self) -> Option<&Choice> {
        self.special.as_ref()?.choice.as_deref()
    }

    /// The same, to change what it keeps.
    #[inline]
    pub(crate) fn choice_mut(&mut self) -> Option<&mut Choice> {
        self.special.as_mut()?.choice.as_deref_mut()
    }

    /// Its queue for each colour, and that of its elephants or [`QueueId::NONE`].
    pub(crate) fn queues(&self) -> [QueueId; Colour::ALL.len() + 1] {
        let choice = self.choice();
        let of_colour = [self.queue; Colour::ALL.len()];
        let [green, yellow, red] = choice.map_or(of_colour, |choice| choice.by_colour);
        let elephants = self.elephants().map(Elephants::queue);
        [green, yellow, red, elephants.unwrap_or(QueueId::NONE)]
    }

    /// Takes the counters of a class that a change removed while its frames wait, in `queue` from now on.
    pub(crate) fn take_retired(&mut self, queue: QueueId) -> Self {
        Self {
            queue,
            special: None,
            priority_police: None,
            counters: std::mem::take(&mut self.counters),
        }
    }
}

/// One step at ingress.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ingress {
    SetDscp(u8),
    /// Index into the pipeline's policers: a policer of an outer class is shared by its inner ones.
    Police(u32),
    /// The class was removed: its frames are dropped until those that wait have left.
    Removed,
}
