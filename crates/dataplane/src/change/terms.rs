//! Slices of a guaranteed policy: as they are added, and as they are in force.

use slicewise_model::{
    ClassMap, ClassParams, FlowQueueParams, PolicerParams, QueueParams, SliceParams,
};

/// A slice to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSlice {
    /// Its name, which no other slice has.
    pub name: String,
    /// Which frames belong to it.
    pub matches: ClassMap,
    /// Its guarantee, maximum, weight, tenant and queue limit.
    pub params: SliceParams,
    /// Its mark and policer.
    pub conditioning: Conditioning,
    /// One queue per flow instead of one for the slice.
    pub flow_queue: Option<FlowQueueParams>,
    /// It is a class of the policy: not one of the slices that [stay](super::Change::PolicyBesideSlices) beside another.
    pub is_of_policy: bool,
}

/// Traffic conditioning (RFC 2475) of a slice, in this order. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditioning {
    /// Set the DSCP of every packet.
    pub set_dscp: Option<u8>,
    /// Meter every packet, and act on its colour.
    pub police: Option<PolicerParams>,
}

/// A slice as it is in force: what a whole-policy change compares and rebuilds.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    pub(crate) name: Box<str>,
    /// Without a name of its own where that is the slice's: with many slices it would take much memory.
    pub(super) matches: Option<ClassMap>,
    pub(crate) params: SliceParams,
    set_dscp: Option<u8>,
    rare: Option<Box<Rare>>,
    /// Its position in the order in which class maps are tested.
    pub(super) order: u32,
    /// It is a class of the policy, and was not added beside it.
    pub(crate) is_of_policy: bool,
}

/// Settings that few slices have.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rare {
    police: Option<PolicerParams>,
    flow_queue: Option<FlowQueueParams>,
}

impl Slice {
    pub(super) fn new(class: ClassParams, params: SliceParams, order: u32) -> Self {
        let mut matches = class.matches;
        if let Some(map) = matches.as_mut().filter(|map| map.name == class.name) {
            map.name = String::new();
        }
        let mut slice = Self {
            name: class.name.into_boxed_str(),
            matches,
            params,
            set_dscp: class.set_dscp,
            rare: None,
            order,
            is_of_policy: true,
        };
        slice.set_rare(class.police, class.queue.flow_queue());
        slice
    }

    fn rare(&self) -> Rare {
        self.rare.as_deref().cloned().unwrap_or_default()
    }

    fn set_rare(&mut self, police: Option<PolicerParams>, flow_queue: Option<FlowQueueParams>) {
        let rare = Rare { police, flow_queue };
        self.rare = (rare != Rare::default()).then(|| Box::new(rare));
    }

    pub(super) fn flow_queue(&self) -> Option<FlowQueueParams> {
        self.rare.as_ref()?.flow_queue
    }

    pub(super) fn set_flow_queue(&mut self, flow_queue: Option<FlowQueueParams>) {
        self.set_rare(self.rare().police, flow_queue);
    }

    pub(super) fn set_conditioning(&mut self, conditioning: Conditioning) {
        self.set_rare(conditioning.police, self.flow_queue());
        self.set_dscp = conditioning.set_dscp;
    }

    /// The class that it would be in a policy.
    pub(super) fn to_class(&self) -> ClassParams {
        let mut matches = self.matches.clone();
        if let Some(map) = matches.as_mut().filter(|map| map.name.is_empty()) {
            map.name = self.name.to_string();
        }
        let Rare { police, flow_queue } = self.rare();
        let set_dscp = self.set_dscp;
        let conditioning = Conditioning { set_dscp, police };
        class(
            self.name.to_string(),
            matches,
            self.params,
            conditioning,
            flow_queue,
        )
    }
}

impl From<NewSlice> for ClassParams {
    fn from(new: NewSlice) -> Self {
        let matches = Some(new.matches);
        class(
            new.name,
            matches,
            new.params,
            new.conditioning,
            new.flow_queue,
        )
    }
}

/// The class of a slice in a policy.
fn class(
    name: String,
    matches: Option<ClassMap>,
    params: SliceParams,
    conditioning: Conditioning,
    flow_queue: Option<FlowQueueParams>,
) -> ClassParams {
    ClassParams {
        name,
        matches,
        police: conditioning.police,
        set_dscp: conditioning.set_dscp,
        priority: None,
        minimum: None,
        weight: params.weight,
        shape: None,
        queue: QueueParams::of_slice(params.queue_limit, flow_queue),
        hqos: None,
        named_queue: None,
        elephants: None,
        child: None,
        slice: Some(params),
    }
}
