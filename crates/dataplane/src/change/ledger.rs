//! State of a guaranteed policy that changes of single slices need.

use super::reserved::Reserved;
use super::shared::Shared;
use super::slice::{Conditioning, Handover, NewSlice};
use crate::classifier::{Buckets, Entry as Position, Parts};
use slicewise_model::{
    ClassMap, ClassParams, FlowQueueParams, PolicerParams, PolicyParams, QueueParams, SliceParams,
};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The slices in force, by class.
pub(crate) type Slices = Shared<Option<Slice>>;

/// A slice as it is in force: what a whole-policy change compares and rebuilds.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    pub(crate) name: Box<str>,
    /// Without a name of its own where that is the slice's: with many slices it would take much memory.
    matches: Option<ClassMap>,
    pub(crate) params: SliceParams,
    set_dscp: Option<u8>,
    rare: Option<Box<Rare>>,
    /// Its position in the order in which class maps are tested.
    pub(super) order: u32,
    /// It is a class of the policy, and was not added beside it.
    pub(crate) is_of_policy: bool,
}

/// Settings that few slices have.
#[derive(Debug, Clone)]
struct Rare {
    police: Option<PolicerParams>,
    flow_queue: Option<FlowQueueParams>,
}

impl Rare {
    /// `None` where there is neither.
    fn of(police: Option<PolicerParams>, flow_queue: Option<FlowQueueParams>) -> Option<Box<Self>> {
        let is_needed = police.is_some() || flow_queue.is_some();
        is_needed.then(|| Box::new(Self { police, flow_queue }))
    }
}

impl Slice {
    pub(crate) fn new(class: ClassParams, params: SliceParams, order: u32) -> Self {
        let mut matches = class.matches;
        if let Some(map) = matches.as_mut().filter(|map| map.name == class.name) {
            map.name = String::new();
        }
        Self {
            name: class.name.into_boxed_str(),
            matches,
            params,
            set_dscp: class.set_dscp,
            rare: Rare::of(class.police, class.queue.flow_queue()),
            order,
            is_of_policy: true,
        }
    }

    /// The class that it would be in a policy.
    fn to_class(&self) -> ClassParams {
        let mut matches = self.matches.clone();
        if let Some(map) = &mut matches
            && map.name.is_empty()
        {
            map.name = self.name.to_string();
        }
        ClassParams {
            name: self.name.to_string(),
            matches,
            police: self.rare.as_ref().and_then(|rare| rare.police.clone()),
            set_dscp: self.set_dscp,
            priority: None,
            minimum: None,
            weight: self.params.weight,
            shape: None,
            queue: QueueParams::of_slice(
                self.params.queue_limit,
                self.rare.as_ref().and_then(|rare| rare.flow_queue),
            ),
            hqos: None,
            named_queue: None,
            elephants: None,
            child: None,
            slice: Some(self.params),
        }
    }
}

impl From<NewSlice> for ClassParams {
    fn from(new: NewSlice) -> Self {
        Self {
            name: new.name,
            matches: Some(new.matches),
            police: new.conditioning.police,
            set_dscp: new.conditioning.set_dscp,
            priority: None,
            minimum: None,
            weight: new.params.weight,
            shape: None,
            queue: QueueParams::of_slice(new.params.queue_limit, new.flow_queue),
            hqos: None,
            named_queue: None,
            elephants: None,
            child: None,
            slice: Some(new.params),
        }
    }
}

/// The classes of a policy with these slices, each with its number, in the order in which class maps are
/// tested.
pub(crate) fn classes_of(slices: &Slices) -> Vec<(usize, ClassParams)> {
    let slices = slices.iter().enumerate();
    let mut slices: Vec<(usize, &Slice)> = slices
        .filter_map(|(class, slice)| Some((class, slice.as_ref()?)))
        .collect();
    slices.sort_by_key(|(_, slice)| (slice.matches.is_none(), slice.order));
    slices
        .into_iter()
        .map(|(class, slice)| (class, slice.to_class()))
        .collect()
}

/// The slices that were added beside the policy, as classes, in the order in which class maps are tested.
pub(crate) fn added(slices: &Slices) -> Vec<ClassParams> {
    let slices = slices.iter().flatten();
    let mut added: Vec<&Slice> = slices.filter(|slice| !slice.is_of_policy).collect();
    added.sort_by_key(|slice| slice.order);
    added.into_iter().map(Slice::to_class).collect()
}

/// State that a guaranteed policy keeps for changes of its slices, beside [`Slices`].
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Position of the scheduler in the tree.
    pub(crate) leaf: u32,
    pub(crate) slices: Slices,
    /// Class-default.
    pub(crate) default: u32,
    pub(crate) reserved: Reserved,
    /// Classes by the hash of their name. Of two names with the same hash the second is not known.
    names: Buckets<1, 3>,
    /// Tenants by name.
    pub(crate) tenants: HashMap<String, u32>,
    /// Numbers of classes that are not used.
    pub(crate) free: Vec<u32>,
    /// Positions of policers that are not used.
    pub(crate) free_policers: Vec<u32>,
    /// Handovers of frames from one class to another, by the class number that they have meanwhile.
    pub(crate) handovers: BTreeMap<u32, Handover>,
    /// Parts of slices that are leaving them, to find one that has a frame in common with another.
    pub(crate) parts: Parts,
    /// The last of them that was looked at.
    pub(crate) looked_at: u32,
    /// Handovers that wait for frames of a class, by that class and in the order of marks.
    pub(crate) behind: BTreeMap<(u32, u64), u32>,
    /// Handovers to a slice, by its class.
    pub(crate) joining: BTreeMap<u32, u32>,
    /// Serial number of the newest handover.
    pub(crate) next_serial: u64,
    /// Handovers to class-default.
    pub(crate) to_default: ToDefault,
}

/// Handovers to class-default. All their frames wait under one limit, that of class-default's queue.
#[derive(Debug, Default)]
pub(crate) struct ToDefault {
    /// Number of handovers.
    pub(crate) classes: u32,
    /// Frames that the frame memory has room for because of them.
    pub(crate) room: u64,
    /// Their frames that wait.
    pub(crate) packets: u32,
    /// Bytes of these, L2 without FCS.
    pub(crate) bytes: u64,
}

impl Ledger {
    /// Of a guaranteed policy, whose classes move here, with its scheduler at position `leaf`. `None` if
    /// it is another.
    pub(crate) fn new(policy: &mut PolicyParams, leaf: Option<u32>) -> Option<Box<Self>> {
        let (leaf, common) = leaf.zip(policy.guaranteed.as_ref())?;
        let tenants = common.tenants.iter().map(|tenant| tenant.name.clone());
        let tenants = tenants.zip(0..).collect();
        let classes = std::mem::take(&mut policy.classes);
        let count = u32::try_from(classes.len()).unwrap_or(u32::MAX);
        let slices = classes.iter().filter_map(|class| class.slice.as_ref());
        let guarantees = slices.filter_map(|slice| slice.guarantee.as_ref());
        let mut ledger = Self {
            leaf,
            slices: Slices::new(),
            default: count.saturating_sub(1),
            reserved: Reserved::new(&policy.links, guarantees),
            names: Buckets::new(),
            tenants,
            free: Vec::new(),
            free_policers: Vec::new(),
            handovers: BTreeMap::new(),
            parts: Parts::default(),
            looked_at: 0,
            behind: BTreeMap::new(),
            joining: BTreeMap::new(),
            next_serial: 0,
            to_default: ToDefault::default(),
        };
        for (number, class) in (0..).zip(classes) {
            ledger
                .names
                .try_insert([hash(&class.name)], Position::new(0, number));
            let slice = class.slice.map(|params| Slice::new(class, params, number));
            ledger.slices.push(slice);
        }
        Some(Box::new(ledger))
    }

    /// The class with this name, also one that drains.
    pub(crate) fn class_of(&self, name: &str) -> Option<u32> {
        let class = self.named(name)?;
        let slice = match self.slices.get(class as usize) {
            Some(Some(slice)) => slice,
            _ => self.handovers.get(&class)?.removed()?,
        };
        (*slice.name == *name).then_some(class)
    }

    /// Returns whether no slice has this name, or another with the same hash.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        self.named(name).is_none()
    }

    fn named(&self, name: &str) -> Option<u32> {
        let found = self.names.find(&[hash(name)]);
        (found != Position::NONE).then(|| found.target())
    }

    /// A slice is in force, tested at a position in the order.
    pub(crate) fn insert(&mut self, class: u32, new: NewSlice, order: u32) {
        self.names
            .try_insert([hash(&new.name)], Position::new(0, class));
        let (params, is_of_policy) = (new.params, new.is_of_policy);
        let slice = Slice {
            is_of_policy,
            ..Slice::new(new.into(), params, order)
        };
        while self.slices.len() <= class as usize {
            self.slices.push(None);
        }
        if let Some(place) = self.slices.get_mut(class as usize) {
            *place = Some(slice);
        }
    }

    /// The slices of these names were added beside the policy.
    pub(crate) fn mark_added<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            let class = self.class_of(name);
            if let Some(Some(slice)) = class.and_then(|class| self.slices.get_mut(class as usize)) {
                slice.is_of_policy = false;
            }
        }
    }

    /// A slice is not in force any more; its name stays in use.
    pub(crate) fn take(&mut self, class: u32) -> Option<Slice> {
        self.slices.get_mut(class as usize)?.take()
    }

    /// The class map of a slice.
    pub(crate) fn matches(&self, class: u32) -> Option<&ClassMap> {
        Some(self.placed(class)?.1)
    }

    /// The same, and its position in the order.
    pub(crate) fn placed(&self, class: u32) -> Option<(u32, &ClassMap)> {
        let slice = self.slices.get(class as usize)?.as_ref()?;
        Some((slice.order, slice.matches.as_ref()?))
    }

    pub(crate) fn set_matches(&mut self, class: u32, matches: ClassMap) {
        if let Some(Some(slice)) = self.slices.get_mut(class as usize) {
            slice.matches = Some(matches);
        }
    }

    pub(crate) fn params(&self, class: u32) -> Option<SliceParams> {
        let slice = self.slices.get(class as usize)?.as_ref();
        slice.map(|slice| slice.params)
    }

    pub(crate) fn set_params(&mut self, class: u32, params: &SliceParams) {
        if let Some(Some(slice)) = self.slices.get_mut(class as usize) {
            slice.params = *params;
        }
    }

    /// The flow queue of a slice.
    pub(crate) fn flow_queue(&self, class: u32) -> Option<FlowQueueParams> {
        let slice = self.slices.get(class as usize)?.as_ref()?;
        slice.rare.as_ref()?.flow_queue
    }

    pub(crate) fn set_flow_queue(&mut self, class: u32, flow_queue: Option<FlowQueueParams>) {
        if let Some(Some(slice)) = self.slices.get_mut(class as usize) {
            let police = slice.rare.take().and_then(|rare| rare.police);
            slice.rare = Rare::of(police, flow_queue);
        }
    }

    pub(crate) fn set_conditioning(&mut self, class: u32, conditioning: Conditioning) {
        if let Some(Some(slice)) = self.slices.get_mut(class as usize) {
            let flow_queue = slice.rare.take().and_then(|rare| rare.flow_queue);
            slice.rare = Rare::of(conditioning.police, flow_queue);
            slice.set_dscp = conditioning.set_dscp;
        }
    }

    pub(crate) fn remove_name(&mut self, name: &str, class: u32) {
        self.names.remove(&[hash(name)], class);
    }

    /// A number for a new class, of which there are `classes`.
    pub(crate) fn allocate_class_id(&mut self, classes: usize) -> u32 {
        let next = u32::try_from(classes).unwrap_or(u32::MAX);
        self.free.pop().unwrap_or(next)
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
