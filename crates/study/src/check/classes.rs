//! Policies written as classes in the study file.

use super::elephants::Elephants;
use super::matching::{Matches, class_map};
use super::named_queues::Queue;
use super::police::{NO_RATE, Police};
use super::queues::{QueueSettings, queue_settings};
use super::traffic::SliceSpec;
use super::{Checker, MAX_ENTRIES, Table, check_names};
use crate::file::{Decode, Entry, Placed, Problems, Schemas};
use crate::spec::{At, AtLeastOne, Dscp, List, Name, Named, Reference, Short};
use crate::{problem, settings};
use serde_json::Value;
use slicewise_model::{
    CLASS_DEFAULT, ClassMap, ClassSpec, Discipline, GuaranteeSpec, GuaranteedSpec, MaximumSpec,
    NamedQueueSpec, PolicySpec, PrioritySpec, RateSpec, ShaperSpec,
};
use slicewise_units::{Accounting, ByteCount, Duration};

/// A class: what the model takes, and what refers to other settings.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    name: Option<At<Name>>,
    matches: Option<Matches>,
    slice: Option<At<Reference>>,
    queue: Option<At<Reference>>,
    own_queue: QueueSettings,
    /// Queues that its policer chooses, and that of its elephants.
    chosen: Vec<At<Reference>>,
    child: Option<Box<Child>>,
    spec: ClassSpec,
}

queue_settings! {
    /// One class of a policy.
    impl Class as "ClassFileSpec" = Self {
        name: None,
        matches: None,
        slice: None,
        queue: None,
        own_queue: QueueSettings::default(),
        chosen: Vec::new(),
        child: None,
        spec: ClassSpec::class_default(),
    };
    {
        /// Name of the class; `class-default` is the class for everything else.
        [required] name,
        /// Which frames: conditions that must all hold, or a list of such groups, one of which must.
        match => matches,
        /// Instead of `match`: the frames of this slice.
        slice,
        /// Meter the class, and act on what exceeds.
        police: Short<RateSpec, Police> = |class, police| {
            class.chosen.extend(police.value.queues);
            class.spec.police = Some(police.value.spec);
        },
        /// Set the code point of every packet.
        set_dscp: Dscp = |class, dscp| class.spec.set_dscp = Some(dscp.0),
        /// Serve the class before all that have no priority.
        priority => spec.priority,
        /// Rate it gets at least: a rate, or a percentage of the port (of the parent class, in a child).
        minimum => spec.minimum,
        /// Its weight in the excess, relative to the other classes. Default 1.
        weight: AtLeastOne<u32> = |class, weight| class.spec.weight = Some(weight.0),
        /// Maximum rate; what comes faster is delayed.
        shape: Short<RateSpec, ShaperSpec> = |class, shape| class.spec.shape = Some(shape.value),
        /// The queue of the policy in which the class waits, instead of one of its own.
        queue,
        /// Flows above a rate wait in another queue of the policy.
        elephants: Elephants = |class, elephants| {
            class.spec.elephants = Some(elephants.spec());
            class.chosen.extend(elephants.queue);
        },
        /// Divide the class in turn.
        child: Child = |class, child| class.child = Some(Box::new(child)),
        /// Guaranteed rate and delay bound; for the discipline
        /// `guaranteed`.
        guarantee: ShortGuarantee = |class, it| class.spec.guarantee = Some(it.value),
        /// Maximum rate, even if more is unused; for the discipline `guaranteed`.
        maximum: ShortMaximum = |class, it| class.spec.maximum = Some(it.value),
        /// The tenant whose part of the excess it shares; for the discipline `guaranteed`.
        tenant: Name = |class, tenant| class.spec.tenant = Some(tenant.0),
    }
}

settings! {
    /// The classes a class is divided in.
    struct Child as "ChildSpec" {
        /// Classes in order.
        [required] classes: List<Placed<Class>>,
        /// How the classes without priority share.
        discipline: Discipline,
        /// Queues that its classes may use.
        queues: List<Placed<Queue>>,
    }
}

/// A guarantee as its rate, or with its burst and delay.
pub(crate) type ShortGuarantee = Short<RateSpec, GuaranteeSpec>;
/// A maximum as its rate, or with its burst.
pub(crate) type ShortMaximum = Short<RateSpec, MaximumSpec>;

settings! {
    /// A guarantee with a delay bound.
    impl GuaranteeSpec as "GuaranteeFileSpec", strict = NO_RATE.into(); {
        /// Committed rate.
        [required] rate,
        /// Committed burst: a size, or a duration at the rate. Default 4 ms, two largest frames at
        /// least.
        burst,
        /// Delay bound of frames within rate and burst. Default: the time the rate takes
        /// to send the burst where that fits, else the smallest delay that does.
        delay,
        /// Smallest frame, as `counts` counts it: smaller ones are charged as this, so that less is reserved of a link
        /// that counts more bytes of each frame. Default: any frame.
        smallest_frame,
    }
}

settings! {
    /// The most a slice may send.
    impl MaximumSpec as "MaximumFileSpec", strict = NO_RATE.into(); {
        /// Peak rate, at least the guaranteed rate.
        [required] rate,
        /// Peak burst: a size, or a duration at the rate. Default 4 ms, two largest frames and the
        /// guaranteed burst at least.
        burst,
    }
}

settings! {
    /// Settings that slices with a delay bound have in common.
    impl GuaranteedSpec as "GuaranteedFileSpec", strict = Self::default(); {
        /// Which bytes of a frame rates, bursts, largest frame and buffer count. Default L2.
        counts => accounting,
        /// The largest frame there can be. Default 1522 B of L2.
        largest_frame,
        /// The range of delay classes. Default 10 µs to 100 ms.
        delays: Delays = |common, delays| delays.apply(common),
        /// Tenants, who share the excess first, and the weight of each. Classes that name none belong
        /// to the tenant `default`.
        tenants: Tenants = |common, tenants| common.tenants = tenants.0,
        /// How much can wait in all classes together, where that is limited.
        buffer,
    }
}

settings! {
    /// The shortest and the longest delay, between which there are four classes to a doubling and 64
    /// at most: a delay is rounded down to one of them.
    struct Delays as "DelaysSpec", strict {
        /// The shortest. Default 10 µs.
        shortest: Option<Duration>,
        /// The longest. Default 100 ms.
        longest: Option<Duration>,
    }
}

impl Delays {
    pub(super) fn apply(&self, common: &mut GuaranteedSpec) {
        common.shortest_delay = self.shortest.unwrap_or(common.shortest_delay);
        common.longest_delay = self.longest.unwrap_or(common.longest_delay);
    }
}

/// Tenants and their weights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tenants(pub(crate) Vec<(String, u32)>);

impl Decode for Tenants {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let entries = entry.table(problems)?;
        if let Some((key, _)) = entries.get(MAX_ENTRIES) {
            problem!(problems, key.span => "there are more than {MAX_ENTRIES} tenants");
            return None;
        }
        let named = Named::<At<u32>>::decode(entry, problems)?;
        check_names(&named, problems);
        let tenants = named.iter().filter_map(|(name, weight)| {
            if weight.value == 0 {
                problems.add(weight.span, "a tenant needs a weight of at least 1");
                return None;
            }
            Some((name.value.clone(), weight.value))
        });
        let tenants: Vec<(String, u32)> = tenants.collect();
        (tenants.len() == entries.len()).then_some(Self(tenants))
    }

    fn schema(schemas: &mut Schemas) -> Value {
        Named::<u32>::schema(schemas)
    }
}

settings! {
    /// A place in the low-latency queue.
    impl PrioritySpec as "PriorityFileSpec", strict = Self {
        level: 1,
        rate: None,
        burst: None,
        accounting: Accounting::L2,
    };
    {
        /// 1 is served first. Default 1.
        level,
        /// While the link is congested, more than this is dropped. Default: no limit.
        rate,
        /// Burst of that limit. Default 200 ms at the rate.
        burst,
        /// Which bytes of a frame the rate counts. Default L2.
        counts => accounting,
    }
}

settings! {
    /// A shaper.
    impl ShaperSpec as "ShapeSpec", strict = NO_RATE.into(); {
        /// The rate.
        [required] rate,
        /// Committed burst. Default 4 ms at the rate.
        burst: ByteCount = |shaper, burst| shaper.committed_burst_bits = Some(burst.bits().into()),
        /// Excess burst. Default: as the committed burst where `peak`, else none.
        excess_burst: ByteCount = |shaper, burst| shaper.excess_burst_bits = Some(burst.bits().into()),
        /// Send both bursts in each interval, instead of the committed one.
        peak,
        /// Which bytes of a frame the rate counts. Default L2.
        counts => accounting,
    }
}

impl Class {
    /// The queues that it, its policer and its elephants name.
    fn queues(&self) -> impl Iterator<Item = &At<Reference>> {
        self.queue.iter().chain(&self.chosen)
    }
}

impl Checker<'_> {
    /// The policy `name` of these classes; `None` where one of them cannot be used.
    pub(super) fn level(
        &mut self,
        name: &str,
        classes: &List<Placed<Class>>,
        discipline: Discipline,
        queues: &List<Placed<Queue>>,
        slices: &Named<Placed<SliceSpec>>,
    ) -> Option<PolicySpec> {
        let references = classes.0.iter().flat_map(|class| class.value.queues());
        let queues = self.queues(queues, references);
        self.own_queues_differ_from(queues.as_deref().unwrap_or_default(), classes);
        let mut seen = std::collections::BTreeSet::new();
        let classes = classes.0.iter();
        let specs: Vec<Option<ClassSpec>> = classes
            .map(|class| {
                let name = class.value.name.as_ref()?;
                if !seen.insert(&name.value.0) {
                    problem!(self.problems, name.span => "class `{}` is defined twice", name.value.0);
                    return None;
                }
                let spec = self.class(name, class, slices)?;
                class.is_whole.then_some(spec)
            })
            .collect();
        Some(PolicySpec {
            name: name.to_owned(),
            classes: specs.into_iter().collect::<Option<_>>()?,
            discipline,
            guaranteed: None,
            queues: queues?,
        })
    }

    /// The queue of a class is called as the class is: tables of results would take it for a named queue.
    fn own_queues_differ_from(&mut self, queues: &[NamedQueueSpec], classes: &List<Placed<Class>>) {
        let with_own = classes.0.iter().filter(|class| class.value.queue.is_none());
        for at in with_own.filter_map(|class| class.value.name.as_ref()) {
            let name = &at.value.0;
            if queues.iter().any(|queue| queue.name == *name) {
                problem!(self.problems, at.span => "class `{name}` has a queue of its own, and another queue is called \
                    `{name}`";
                    "let the class wait in it (`queue: {name}`), or rename one of them");
            }
        }
    }

    fn class(
        &mut self,
        name: &At<Name>,
        class: &Placed<Class>,
        slices: &Named<Placed<SliceSpec>>,
    ) -> Option<ClassSpec> {
        let matches = self.class_matches(name, class, slices);
        let Name(name) = &name.value;
        let child = class.value.child.as_ref();
        let child = child.map(|child| {
            self.level(
                name,
                &child.classes,
                child.discipline,
                &child.queues,
                slices,
            )
        });
        let queue = class.value.own_queue.resolve(class, self.problems);
        Some(ClassSpec {
            name: name.clone(),
            matches: matches?,
            queue: queue?,
            named_queue: class
                .value
                .queue
                .as_ref()
                .map(|queue| queue.value.as_ref().to_owned()),
            child: match child {
                Some(child) => Some(Box::new(child?)),
                None => None,
            },
            ..class.value.spec.clone()
        })
    }

    /// The class map; `Some(None)` for class-default, which has none.
    fn class_matches(
        &mut self,
        at: &At<Name>,
        class: &Placed<Class>,
        slices: &Named<Placed<SliceSpec>>,
    ) -> Option<Option<ClassMap>> {
        let Name(name) = &at.value;
        if name == CLASS_DEFAULT {
            let Some(at) = class.place("match").or(class.place("slice")) else {
                return Some(None);
            };
            problem!(self.problems, at => "`class-default` gets what matches no other class");
            return None;
        }
        match (class.place("match"), class.place("slice")) {
            (Some(_), None) => {
                let matches = class.value.matches.as_ref()?;
                Some(Some(class_map(name, matches)))
            }
            (None, Some(_)) => {
                let slice = class.value.slice.as_ref()?;
                let Some(found) = slices.get(slice.value.as_ref()) else {
                    self.report_unknown(Table::SLICES, slice, slices.len(), || slices.names());
                    return None;
                };
                // A slice without `match` is reported where the slice is.
                let matches = found.value.r#match.as_ref()?;
                Some(Some(class_map(name, matches)))
            }
            _ => {
                problem!(self.problems, at.span => "a class needs either `match` or `slice`, to say which frames");
                None
            }
        }
    }
}
