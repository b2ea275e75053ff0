//! State of a guaranteed policy that changes of single slices need.

use super::handover::Handover;
use super::reserved::Reserved;
use super::shared::Shared;
use super::terms::{NewSlice, Slice};
use crate::classifier::{Buckets, Entry as Position, Parts};
use slicewise_model::{ClassParams, PolicyParams, SliceParams};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The slices in force, by class.
pub(crate) type Slices = Shared<Option<Slice>>;

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
    /// The handover to look at next.
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
        let slice = self.slice(class);
        let slice = slice.or_else(|| self.handovers.get(&class)?.removed())?;
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
        let mut slice = Slice::new(new.into(), params, order);
        slice.is_of_policy = is_of_policy;
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
            if let Some(class) = self.class_of(name) {
                self.slice_mut(class).is_of_policy = false;
            }
        }
    }

    /// A slice is not in force any more; its name stays in use.
    pub(crate) fn take(&mut self, class: u32) -> Slice {
        let slice = self.slices.get_mut(class as usize).and_then(Option::take);
        slice.unwrap_or_else(|| unreachable!("class {class} is a slice in force"))
    }

    /// A slice in force.
    pub(super) fn slice(&self, class: u32) -> Option<&Slice> {
        self.slices.get(class as usize)?.as_ref()
    }

    /// A slice that is known to be in force.
    pub(super) fn slice_mut(&mut self, class: u32) -> &mut Slice {
        match self.slices.get_mut(class as usize) {
            Some(Some(slice)) => slice,
            _ => unreachable!("class {class} is a slice in force"),
        }
    }

    pub(super) fn params(&self, class: u32) -> Option<SliceParams> {
        self.slice(class).map(|slice| slice.params)
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
